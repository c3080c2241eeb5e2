// Actor benchmarks on Tokio.          tokio-peer <benchmark> <threads> <N>
//
// What   Savina's set and three more: one task per actor, one bounded tokio::sync::mpsc channel
//        per mailbox. Every benchmark checks its result and prints one line:
//        peer benchmark threads operations seconds operations/s bytes-per-actor|-
// Tuned  Fat LTO, one codegen unit, panic=abort, target-cpu=native, parking_lot; no I/O or time
//        driver in the runtime; everything runs in tasks, the main thread only waits.
//        TOKIO_RUNTIME=current selects the current_thread runtime, which needs no atomics in its
//        queues; run.sh measures both with one thread and reports the better one.
// Fair   Bounded channels, so that a fast sender waits, as noh's mailboxes make it wait. They are
//        as large as the benchmark can fill, 1024 where producers never pause, and 32 (the block
//        Tokio allocates anyway) in random-counters. The feature "unbounded" builds it with
//        unbounded channels, which are faster and never make a sender wait: a lesser promise,
//        so run.sh shows it beside, for the benchmarks whose protocol bounds the queues.
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Builder;

#[cfg(not(feature = "unbounded"))]
use tokio::sync::mpsc::{channel, Receiver, Sender};
#[cfg(feature = "unbounded")]
use tokio::sync::mpsc::{UnboundedReceiver as Receiver, UnboundedSender as Sender};

#[cfg(feature = "unbounded")]
fn channel<T>(_capacity: usize) -> (Sender<T>, Receiver<T>) {
    tokio::sync::mpsc::unbounded_channel()
}

const MILLION: usize = 1_000_000;

struct Outcome {
    ops: u64,
    seconds: f64,
    bytes_per_actor: Option<u64>,
}

fn timed(ops: u64, seconds: f64) -> Outcome {
    Outcome { ops, seconds, bytes_per_actor: None }
}

fn anonymous_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

struct Rng(u64);

impl Rng {
    fn new(i: u64) -> Rng {
        Rng(i.wrapping_mul(0x9E3779B97F4A7C15).wrapping_add(88172645463325252))
    }
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * n as u64) >> 32) as usize
    }
    fn other(&mut self, me: usize, n: usize) -> usize {
        let k = self.below(n - 1);
        if k >= me { k + 1 } else { k }
    }
}

/// Send, waiting while the mailbox is full.
#[cfg(not(feature = "unbounded"))]
macro_rules! tell {
    ($to:expr, $message:expr) => {
        if $to.send($message).await.is_err() {
            panic!("mailbox closed")
        }
    };
}

#[cfg(feature = "unbounded")]
macro_rules! tell {
    ($to:expr, $message:expr) => {
        if $to.send($message).is_err() {
            panic!("mailbox closed")
        }
    };
}

fn mailboxes<T>(actors: usize, capacity: usize) -> (Vec<Sender<T>>, Vec<Receiver<T>>) {
    (0..actors).map(|_| channel(capacity)).unzip()
}

// ── ping-pong: two actors, N round trips ──────────────────────────────────────────────────────

async fn ping_pong(n: u64) -> Outcome {
    let (to_ping, mut at_ping) = channel::<u64>(16);
    let (to_pong, mut at_pong) = channel::<u64>(16);
    let t = Instant::now();
    let pong = tokio::spawn(async move {
        let mut pings = 0;
        while let Some(v) = at_pong.recv().await {
            pings += 1;
            tell!(to_ping, v);
        }
        pings
    });
    let ping = tokio::spawn(async move {
        let mut pongs = 0;
        tell!(to_pong, n);
        while let Some(v) = at_ping.recv().await {
            pongs += 1;
            if v == 1 {
                break;
            }
            tell!(to_pong, v - 1);
        }
        pongs
    });
    let (a, b): (u64, u64) = (ping.await.unwrap(), pong.await.unwrap());
    let seconds = t.elapsed().as_secs_f64();
    assert!(a == n && b == n);
    timed(2 * n, seconds)
}

// ── counting and fan-in: 1, 10 or 1000 producers, one counter ─────────────────────────────────

async fn fan_in(n: u64, producers: u64) -> Outcome {
    let each = n / producers;
    let (to, mut at) = channel::<u64>(1024);
    let t = Instant::now();
    let counter = tokio::spawn(async move {
        let mut sum = 0;
        while let Some(v) = at.recv().await {
            sum += v;
        }
        sum
    });
    for _ in 0..producers {
        let to = to.clone();
        tokio::spawn(async move {
            for _ in 0..each {
                tell!(to, 1);
            }
        });
    }
    drop(to); // the counter ends with the last producer
    let sum = counter.await.unwrap();
    let seconds = t.elapsed().as_secs_f64();
    assert_eq!(sum, each * producers);
    timed(sum, seconds)
}

// ── thread-ring: 100 actors, N hops ───────────────────────────────────────────────────────────

async fn thread_ring(n: u64) -> Outcome {
    const ACTORS: usize = 100;
    let (to, at) = mailboxes::<u64>(ACTORS, 4);
    let (to_end, mut end) = channel::<usize>(1);
    let t = Instant::now();
    for (i, mut at) in at.into_iter().enumerate() {
        let (next, to_end) = (to[(i + 1) % ACTORS].clone(), to_end.clone());
        tokio::spawn(async move {
            while let Some(v) = at.recv().await {
                if v == 0 {
                    tell!(to_end, i);
                    return;
                }
                tell!(next, v - 1);
            }
        });
    }
    tell!(to[0], n);
    let last = end.recv().await.unwrap();
    let seconds = t.elapsed().as_secs_f64();
    assert_eq!(last as u64, n % ACTORS as u64);
    timed(n, seconds)
}

// ── fork-join-create: N actors, one message each; all stay alive ──────────────────────────────

async fn fork_join_create(n: u64) -> Outcome {
    let mut directory: Vec<Sender<u64>> = Vec::with_capacity(n as usize);
    let before = anonymous_memory();
    let (to_sum, mut results) = channel::<u64>(1024);
    let t = Instant::now();
    let creator = tokio::spawn(async move {
        for _ in 0..n {
            let (to, mut at) = channel::<u64>(1);
            let to_sum = to_sum.clone();
            tokio::spawn(async move {
                let mut state = 0;
                while let Some(v) = at.recv().await {
                    state += v;
                    tell!(to_sum, state);
                }
            });
            tell!(to, 1);
            directory.push(to);
        }
        directory
    });
    let mut sum = 0;
    for _ in 0..n {
        sum += results.recv().await.unwrap();
    }
    let seconds = t.elapsed().as_secs_f64();
    let directory = creator.await.unwrap();
    assert!(sum == n && directory.len() as u64 == n);
    let bytes = (anonymous_memory() - before) / n;
    std::mem::forget(directory);
    Outcome { ops: n, seconds, bytes_per_actor: Some(bytes) }
}

// ── fork-join-throughput: one sender, 60 actors, N messages each, round robin ─────────────────

async fn fork_join_throughput(n: u64) -> Outcome {
    const ACTORS: usize = 60;
    let t = Instant::now();
    let (to, at) = mailboxes::<u64>(ACTORS, 256);
    let mut workers = Vec::new();
    for mut at in at {
        workers.push(tokio::spawn(async move {
            let mut sum = 0;
            while let Some(v) = at.recv().await {
                sum += v;
            }
            sum
        }));
    }
    tokio::spawn(async move {
        for _ in 0..n {
            for worker in &to {
                tell!(worker, 1);
            }
        }
    });
    let mut sum = 0;
    for worker in workers {
        sum += worker.await.unwrap();
    }
    let seconds = t.elapsed().as_secs_f64();
    assert_eq!(sum, ACTORS as u64 * n);
    timed(sum, seconds)
}

// ── big: 120 actors, each N pings to random others, one outstanding ───────────────────────────

enum Big {
    Ping(usize),
    Pong,
    Stop,
}

async fn big_actor(
    i: usize, n: u64, to: Arc<Vec<Sender<Big>>>, mut at: Receiver<Big>, done: Sender<()>,
) -> (u64, u64) {
    let (mut random, mut pings, mut pongs) = (Rng::new(i as u64 + 1), 0, 0);
    tell!(to[random.other(i, to.len())], Big::Ping(i));
    while let Some(message) = at.recv().await {
        match message {
            Big::Ping(from) => {
                pings += 1;
                tell!(to[from], Big::Pong);
            }
            Big::Pong => {
                pongs += 1;
                if pongs < n {
                    tell!(to[random.other(i, to.len())], Big::Ping(i));
                } else {
                    tell!(done, ());
                }
            }
            Big::Stop => break,
        }
    }
    (pings, pongs)
}

async fn big(n: u64) -> Outcome {
    const ACTORS: usize = 120;
    let (to, at) = mailboxes::<Big>(ACTORS, 2 * ACTORS);
    let to = Arc::new(to);
    let (to_done, mut done) = channel::<()>(ACTORS);
    let t = Instant::now();
    let mut actors = Vec::new();
    for (i, at) in at.into_iter().enumerate() {
        actors.push(tokio::spawn(big_actor(i, n, to.clone(), at, to_done.clone())));
    }
    for _ in 0..ACTORS {
        done.recv().await.unwrap();
    }
    let seconds = t.elapsed().as_secs_f64();
    for actor in to.iter() {
        tell!(actor, Big::Stop);
    }
    let (mut pings, mut pongs) = (0, 0);
    for actor in actors {
        let (x, y) = actor.await.unwrap();
        pings += x;
        pongs += y;
    }
    assert!(pings == ACTORS as u64 * n && pongs == ACTORS as u64 * n);
    timed(2 * ACTORS as u64 * n, seconds)
}

// ── chameneos: 100 creatures meet N times at the mall ─────────────────────────────────────────

const CREATURES: usize = 100;

enum Creature {
    Meet(u8, u32), // colour, who
    Change(u8),
    Fade,
    Faded(u64),
}

fn complement(a: u8, b: u8) -> u8 {
    if a == b { a } else { 3 - a - b }
}

async fn mall(mut left: u64, mut at: Receiver<Creature>, to: Arc<Vec<Sender<Creature>>>) -> u64 {
    let (mut waiting, mut faded, mut sum) = (None, 0, 0);
    while let Some(message) = at.recv().await {
        match message {
            Creature::Meet(_, who) if left == 0 => tell!(to[who as usize], Creature::Fade),
            Creature::Meet(color, who) => match waiting.take() {
                None => waiting = Some(who),
                Some(first) => {
                    left -= 1;
                    tell!(to[first as usize], Creature::Meet(color, who));
                }
            },
            Creature::Faded(meetings) => {
                sum += meetings;
                faded += 1;
                if faded == CREATURES {
                    break;
                }
            }
            _ => unreachable!(),
        }
    }
    sum
}

async fn creature(
    me: u32, mut at: Receiver<Creature>, mall: Sender<Creature>, to: Arc<Vec<Sender<Creature>>>,
) {
    let (mut color, mut meetings) = ((me % 3) as u8, 0);
    tell!(mall, Creature::Meet(color, me));
    while let Some(message) = at.recv().await {
        match message {
            Creature::Meet(other, who) => {
                color = complement(color, other);
                tell!(to[who as usize], Creature::Change(color));
            }
            Creature::Change(mixed) => color = mixed,
            _ => break,
        }
        meetings += 1;
        tell!(mall, Creature::Meet(color, me));
    }
    tell!(mall, Creature::Faded(meetings));
}

async fn chameneos(n: u64) -> Outcome {
    let (to, at) = mailboxes::<Creature>(CREATURES, 4);
    let to = Arc::new(to);
    let (to_mall, at_mall) = channel::<Creature>(2 * CREATURES);
    let t = Instant::now();
    let meetings = tokio::spawn(mall(n, at_mall, to.clone()));
    for (i, at) in at.into_iter().enumerate() {
        tokio::spawn(creature(i as u32, at, to_mall.clone(), to.clone()));
    }
    let sum = meetings.await.unwrap();
    let seconds = t.elapsed().as_secs_f64();
    assert_eq!(sum, 2 * n);
    timed(n, seconds)
}

// ── bank-transaction: 1000 accounts, a teller with 256 transfers outstanding ──────────────────

const WINDOW: usize = 256;

enum Bank {
    Debit(i64, u32),  // amount, who gets it
    Credit(i64, u32), // amount, who paid
    Ack,
    Stop,
}

async fn account(
    me: u32, mut at: Receiver<Bank>, to: Arc<Vec<Sender<Bank>>>, teller: Sender<()>,
) -> (i64, u64, u64) {
    let (mut balance, mut debits, mut credits) = (0, 0, 0);
    while let Some(message) = at.recv().await {
        match message {
            Bank::Debit(amount, other) => {
                balance -= amount;
                debits += 1;
                tell!(to[other as usize], Bank::Credit(amount, me));
            }
            Bank::Credit(amount, from) => {
                balance += amount;
                credits += 1;
                tell!(to[from as usize], Bank::Ack);
            }
            Bank::Ack => tell!(teller, ()),
            Bank::Stop => break,
        }
    }
    (balance, debits, credits)
}

async fn teller(n: u64, mut at: Receiver<()>, to: Arc<Vec<Sender<Bank>>>) {
    let (mut random, mut sent, mut acks) = (Rng::new(1), 0, 0);
    while acks < n {
        while sent < n && sent - acks < WINDOW as u64 {
            let a = random.below(to.len());
            let b = random.other(a, to.len());
            sent += 1;
            tell!(to[a], Bank::Debit(1 + (sent % 100) as i64, b as u32));
        }
        at.recv().await.unwrap();
        acks += 1;
    }
}

async fn bank_transaction(n: u64) -> Outcome {
    let (to, at) = mailboxes::<Bank>(1000, WINDOW);
    let to = Arc::new(to);
    let (to_teller, at_teller) = channel::<()>(WINDOW);
    let t = Instant::now();
    let mut accounts = Vec::new();
    for (i, at) in at.into_iter().enumerate() {
        accounts.push(tokio::spawn(account(i as u32, at, to.clone(), to_teller.clone())));
    }
    tokio::spawn(teller(n, at_teller, to.clone())).await.unwrap();
    let seconds = t.elapsed().as_secs_f64();
    for account in to.iter() {
        tell!(account, Bank::Stop);
    }
    let (mut balance, mut debits, mut credits) = (0, 0, 0);
    for account in accounts {
        let (x, y, z) = account.await.unwrap();
        balance += x;
        debits += y;
        credits += z;
    }
    assert!(balance == 0 && debits == n && credits == n);
    timed(n, seconds)
}

// ── random-counters-1M: two drivers, N increments to random ones of a million live actors ─────

enum Counter {
    Add(u64),
    Get(Sender<u64>),
}

async fn counter(mut at: Receiver<Counter>) {
    let mut sum = 0;
    while let Some(message) = at.recv().await {
        match message {
            Counter::Add(v) => sum += v,
            Counter::Get(reply) => tell!(reply, sum),
        }
    }
}

/// Ask every counter, add the answers up.
async fn sweep(to: Arc<Vec<Sender<Counter>>>) -> u64 {
    let (reply, mut answers) = channel(1024);
    tokio::spawn(async move {
        for counter in to.iter() {
            tell!(counter, Counter::Get(reply.clone()));
        }
    });
    let mut sum = 0;
    for _ in 0..MILLION {
        sum += answers.recv().await.unwrap();
    }
    sum
}

async fn random_counters(n: u64) -> Outcome {
    const DRIVERS: u64 = 2;
    let mut to = Vec::with_capacity(MILLION);
    let before = anonymous_memory();
    for _ in 0..MILLION {
        let (sender, at) = channel(32);
        tokio::spawn(counter(at));
        to.push(sender);
    }
    let to = Arc::new(to);
    assert_eq!(sweep(to.clone()).await, 0); // not timed: everyone is alive and waits
    let bytes = (anonymous_memory() - before) / MILLION as u64;
    let t = Instant::now();
    let mut drivers = Vec::new();
    for i in 1..=DRIVERS {
        let to = to.clone();
        drivers.push(tokio::spawn(async move {
            let mut random = Rng::new(i);
            for _ in 0..n / DRIVERS {
                tell!(to[random.below(MILLION)], Counter::Add(1));
            }
        }));
    }
    for driver in drivers {
        driver.await.unwrap();
    }
    let sum = sweep(to.clone()).await;
    let seconds = t.elapsed().as_secs_f64();
    assert_eq!(sum, n / DRIVERS * DRIVERS);
    Outcome { ops: sum + 2 * MILLION as u64, seconds, bytes_per_actor: Some(bytes) }
}

async fn run(name: String, n: u64) -> Outcome {
    match name.as_str() {
        "ping-pong" => ping_pong(n).await,
        "counting" => fan_in(n, 1).await,
        "thread-ring" => thread_ring(n).await,
        "fork-join-create" => fork_join_create(n).await,
        "fork-join-throughput" => fork_join_throughput(n).await,
        "big" => big(n).await,
        "chameneos" => chameneos(n).await,
        "bank-transaction" => bank_transaction(n).await,
        "fan-in-10" => fan_in(n, 10).await,
        "fan-in-1000" => fan_in(n, 1000).await,
        "random-counters-1M" => random_counters(n).await,
        _ => panic!("unknown benchmark {name}"),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() != 4 {
        eprintln!("usage: tokio-peer <benchmark> <threads> <N>");
        std::process::exit(2);
    }
    let (name, threads, n) = (&args[1], args[2].parse().unwrap(), args[3].parse().unwrap());
    let current = std::env::var("TOKIO_RUNTIME").map_or(false, |r| r == "current");
    let runtime = if current {
        Builder::new_current_thread().build().unwrap()
    } else {
        Builder::new_multi_thread().worker_threads(threads).build().unwrap()
    };
    let task = name.clone();
    let r = runtime.block_on(async move { tokio::spawn(run(task, n)).await.unwrap() });
    let bytes = r.bytes_per_actor.map_or("-".to_string(), |b| b.to_string());
    let kind = if cfg!(feature = "unbounded") { "-unbounded" } else { "" };
    let peer = format!("tokio{kind}{}", if current { "-current" } else { "" });
    let rate = r.ops as f64 / r.seconds;
    println!("{peer} {name} {threads} {} {:.6} {rate:.0} {bytes}", r.ops, r.seconds);
    std::process::exit(0); // the tear-down of a million tasks is not part of the benchmark
}
