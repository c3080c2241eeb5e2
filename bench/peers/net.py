#!/usr/bin/env python3
"""Measure noh beside Redis, Valkey and PostgreSQL over loopback, and write docs/benchmarks.md's part on it.

    bench/peers/net.py                     every row; wants an idle machine and half an hour
    bench/peers/net.py incr-none hot-key   these rows alone         --list    their names
    bench/peers/net.py --quick             seconds per row: does everything still work?
    bench/peers/net.py --report FILE...    only write the report again, from kept results

Options: --reps N (5; latency rows 7)   --seconds S (2)   --keys N (1M)   --big N (5M)   --docs DIR
Environment: NOH, REDIS, VALKEY (skipped if unset), PGBIN, WORKERS (of noh), SCRATCH (a directory on the
disk to be measured, default /var/tmp).

One client for all: noh bench load (PostgreSQL: pgbench). Inside every repetition all peers of a row run one
after the other, starting with another one each time; medians are shown. A run during which other processes
took over 15 % of the machine is done once more. Results are JSON lines in out/peers/net-*.jsonl. Everything
listens on 127.0.0.1 on free ports, keeps its data in a temporary directory, and is ended by its pid.
A part goes to out/peers/ instead of docs/. Standard library only.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import net_report  # noqa: E402
import net_servers as servers  # noqa: E402
from net_servers import Noh, Postgres, Redis  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")


class Plan:
    reps, latency_reps, seconds, keys, big, skus, quick = 5, 7, 2.0, 1000000, 5000000, 100000, False

    def make_quick(self):
        self.reps = self.latency_reps = 1
        self.seconds, self.keys, self.big, self.skus, self.quick = 0.4, 50000, 200000, 2000, True


plan = Plan()
results = None                      # the open file


def say(*words):
    print(" ", *words, file=sys.stderr, flush=True)


def emit(row, peer, **values):
    results.write(json.dumps({"row": row, "peer": peer, **values}) + "\n")
    results.flush()


# ── one run ────────────────────────────────────────────────────────────────────────────────────
def busy():
    with open("/proc/stat") as f:
        v = [int(x) for x in f.readline().split()[1:9]]
    return (v[0] + v[1] + v[2] + v[5] + v[6]) / TICK, v[7] / TICK


def machine_share(before, after, own, wall):
    """The share of all cores that neither the client nor the server used."""
    cores = os.cpu_count() * max(wall, 1e-3)
    return max(0.0, after[0] - before[0] - own) / cores, (after[1] - before[1]) / cores


def load(server, mix, clients=50, pipeline=1, seconds=None, **more):
    """One run of the load generator; its JSON, or None and a word about why."""
    command = [servers.NOH, "bench", "load", "--json", "--host", "127.0.0.1", "--port", server.port, "--mix", mix,
               "--connections", clients, "--pipeline", pipeline, "--server-pid", server.pid, "--dialect",
               server.dialect]
    if "requests" not in more:
        command += ["--seconds", seconds or plan.seconds, "--warmup", 0.1 if plan.quick else 0.3]
    for name, value in more.items():
        flag = "--" + name.replace("_", "-")
        command += [flag] if value is True else [flag, value]
    for again in (False, True):
        before, cpu, mine, t = busy(), server.cpu(), os.times(), time.monotonic()
        run = subprocess.run([str(x) for x in command], capture_output=True, text=True)
        wall, after, now = time.monotonic() - t, busy(), os.times()
        if run.returncode != 0 or not run.stdout:
            say(f"FAIL  {server.name} {mix}: {run.stderr.strip()[:300]}")
            return None
        r = json.loads(run.stdout)
        own = now.children_user + now.children_system - mine.children_user - mine.children_system + server.cpu() - cpu
        r["other"], r["steal"] = machine_share(before, after, own, wall)
        if r["other"] <= 0.15 or again or plan.quick:
            return r
    return None


def summary(runs):
    """Medians of several runs, as one flat record."""
    runs = [r for r in runs if r]
    if not runs:
        return None
    med = lambda f: statistics.median(f(r) for r in runs)
    rates = [r["rate"] for r in runs]
    out = {"n": len(runs), "rate": med(lambda r: r["rate"]), "least": min(rates), "most": max(rates),
           "other": med(lambda r: r.get("other", 0)), "steal": med(lambda r: r.get("steal", 0))}
    if "latency_us" in runs[0]:
        for name in ("p50", "p90", "p99", "p99.9", "max"):
            out[name] = med(lambda r: r["latency_us"][name])
        out["client_cpu"] = med(lambda r: r["client_cpu_seconds"] / r["seconds"])
        out["server_cpu"] = med(lambda r: r.get("server_cpu_seconds", 0) / r["seconds"])
        out["per_cpu"] = med(lambda r: r.get("operations_per_server_cpu_second", 0))
    return out


def interleave(peers, run, reps):
    """reps rounds of run(peer) for every peer, each round starting with another one."""
    got = {p: [] for p in peers}
    for i in range(reps):
        for k in range(len(peers)):
            p = peers[(i + k) % len(peers)]
            got[p].append(run(p))
    return got


def compare(row, peers, mix, clients, pipeline, reps=None, **more):
    got = interleave(peers, lambda s: load(s, mix, clients, pipeline, **more), reps or plan.reps)
    for s, runs in got.items():
        r = summary(runs)
        if r is None:
            continue
        say(f"{row:14} {s.name:16} {clients:4} clients, pipeline {pipeline:3}  {r['rate']:12,.0f}/s  "
            f"p50 {r['p50']:8.0f} us  p99 {r['p99']:8.0f} us  others {r['other']:.0%}")
        emit(row, s.name, clients=clients, pipeline=pipeline, mix=mix, **r)
    return got


def fill(server, keys):
    load(server, "incr", 8, 64, dist="seq", keys=keys, requests=keys)


# ── peers ──────────────────────────────────────────────────────────────────────────────────────
def volatile_peers():
    return servers.start([Noh("none"), Redis("off"), Redis("off", valkey=True)])


def durable_peers(middle=False):
    some = [Noh("disk"), Redis("always"), Redis("always", valkey=True)]
    if middle:
        some += [Noh("memory"), Redis("everysec"), Redis("everysec", valkey=True)]
    return servers.start(some)


# ── the rows: each can be run alone ────────────────────────────────────────────────────────────
def incr_none():
    with volatile_peers() as peers:
        for s in peers:
            fill(s, plan.keys)
        for pipeline in (1, 16, 64):
            compare("incr-none", peers, "incr", 50, pipeline, keys=plan.keys)


def incr_disk():
    with durable_peers(middle=True) as peers:
        for s in peers:
            fill(s, plan.keys)
        for clients, pipeline in ((50, 1), (50, 16), (256, 1), (256, 16)):
            compare("incr-disk", peers, "incr", clients, pipeline, keys=plan.keys)


def hot_key():
    with volatile_peers() as peers:
        compare("hot-key-none", peers, "incr", 50, 16, dist="hot")
    with durable_peers() as peers:
        compare("hot-key-disk", peers, "incr", 50, 16, dist="hot")


def reserve():
    with durable_peers() as peers:
        for s in peers:
            load(s, "reserve-commit", 8, 16, seconds=0.1, keys=plan.skus)           # makes the stock
        for pipeline in (1, 16):
            compare("reserve", peers, "reserve-commit", 50, pipeline, keys=plan.skus, no_prepare=True)
        for pipeline in (1, 16):
            compare("reserve-idem", peers, "reserve-commit", 50, pipeline, keys=plan.skus, no_prepare=True, idem=True)


def reserve_postgres():
    with servers.start([Noh("disk"), Postgres()]) as peers:
        noh = [p for p in peers if isinstance(p, Noh)]
        for s in noh:
            load(s, "reserve-commit", 8, 16, seconds=0.1, keys=plan.skus)
        for s in peers:
            if isinstance(s, Postgres):
                s.make_stock(plan.skus)

        def run(s):
            if isinstance(s, Postgres):
                return s.reserve_commit(50, max(1, round(plan.seconds)), plan.skus)
            return load(s, "reserve-commit", 50, 1, keys=plan.skus, no_prepare=True)
        for s, runs in interleave(peers, run, plan.reps).items():
            r = summary(runs)
            if r:
                say(f"reserve-postgres {s.name:16} {r['rate']:12,.0f}/s")
                emit("reserve-postgres", s.name, clients=50, pipeline=1, mix="reserve-commit", **r)


def holds():
    """One SKU with 10 open holds, one with 100,000: what a reservation costs."""
    many = 2000 if plan.quick else 100000
    with servers.start([Noh("disk"), Noh("none")]) as peers:
        for s in peers:
            for count in (10, many):
                load(s, "reserve-commit", 8, 16, seconds=0.1, keys=1, prefix=f"h{count}-", key_bytes=16, holds=count,
                     ttl=86400)
            got = {10: [], many: []}
            for i in range(plan.reps):
                for count in ((10, many), (many, 10))[i % 2]:
                    got[count].append(load(s, "reserve-commit", 50, 16, keys=1, prefix=f"h{count}-", key_bytes=16,
                                           no_prepare=True, ttl=86400))
            for count, runs in got.items():
                r = summary(runs)
                if r:
                    say(f"holds  {s.name:10} {count:7} open holds  {r['rate']:12,.0f}/s")
                    emit("holds", s.name, clients=50, pipeline=16, holds="many" if count == many else "few",
                         count=count, **r)


def pubsub():
    with volatile_peers() as peers:
        for pipeline in (1, 16):
            compare("pubsub", peers, "pubsub", 50, pipeline)


def lone():
    with volatile_peers() as peers:
        compare("lone-none", peers, "incr", 1, 1, keys=plan.keys)
    with durable_peers() as peers:
        compare("lone-disk", peers, "incr", 1, 1, keys=plan.keys)


def restart():
    """From exec to the first right answer; the page cache is warm."""
    def again(s, kind, stop, before=None):
        times = []
        for _ in range(plan.reps):
            if before:
                before(s)
            stop(s)
            t = time.monotonic()
            s.spawn()
            times.append(s.first_answer(t))
        say(f"restart  {s.name:16} {kind:10} {statistics.median(times):.3f} s")
        emit("restart", s.name, kind=kind, keys=plan.big, n=len(times), seconds=statistics.median(times),
             least=min(times), most=max(times))

    def write_a_while(s):
        if isinstance(s, Postgres):
            s.update(50, 1 if plan.quick else 3, plan.big)
        else:
            load(s, "incr", 50, 16, seconds=0.5 if plan.quick else 3, keys=plan.big)
    for make in (lambda: Noh("disk"), lambda: Redis("rdb"), lambda: Redis("rdb", valkey=True),
                 lambda: Redis("always"), lambda: Postgres()):
        with servers.start([make()]) as peers:
            for s in peers:
                if isinstance(s, Postgres):
                    s.make_counters(plan.big)
                else:
                    fill(s, plan.big)
                again(s, "clean", lambda x: x.stop())
                if isinstance(s, (Noh, Postgres)):
                    again(s, "crash", lambda x: x.kill(), write_a_while)


def memory():
    """RssAnon of 5 M counters with 12-character keys: as they were written, and when what that took is given back; and with a
    budget, served from disk."""
    peers = [lambda: Noh("none"), lambda: Noh("disk"), lambda: Redis("off"), lambda: Redis("off", valkey=True),
             lambda: Noh("disk", "--memory", "200MB", name="noh-200MB")]
    for make in peers:
        with servers.start([make()]) as started:
            for s in started:
                empty = s.rss_anon()
                fill(s, plan.big)
                loaded = s.rss_anon()
                full = s.settled_rss_anon()
                r = load(s, "get", 50, 16, keys=plan.big, seconds=max(plan.seconds, 1 if plan.quick else 10))
                after = s.rss_anon()
                present = s.count_present(plan.big, 500 if plan.quick else 20000)
                say(f"memory  {s.name:12} {(full - empty) / plan.big:6.1f} bytes a key, {after / 1e6:.0f} MB after reads, "
                    f"{present:.2%} of a sample there")
                emit("memory", s.name, keys=plan.big, bytes_per_key=(full - empty) / plan.big, rss_anon_loaded=loaded,
                     rss_anon=full, rss_anon_after=after, present=present, rate=r["rate"] if r else None)


def latency_of(row, peers, mix, clients, pipeline, **more):
    """p99 at 70 % of what Redis does at most, seven interleaved runs."""
    redis = [p for p in peers if p.name.startswith("redis")]
    if not redis:
        return
    most = summary([load(redis[0], mix, clients, pipeline, **more) for _ in range(1 if plan.quick else 3)])
    if most is None:
        return
    per_request = clients if mix == "pubsub" else 1
    rate = max(100, int(0.7 * most["rate"] / per_request))
    got = interleave(peers, lambda s: load(s, mix, clients, pipeline, rate=rate, **more), plan.latency_reps)
    for s, runs in got.items():
        r = summary(runs)
        if r:
            lag = statistics.median(x["own_lag_us"]["p99"] for x in runs if x)
            say(f"p99 of {row:10} {s.name:14} {clients:4} clients, pipeline {pipeline:3}  intended {rate:9,}/s  "
                f"p50 {r['p50']:8.0f} us  p99 {r['p99']:8.0f} us")
            emit("p99", s.name, of=row, clients=clients, pipeline=pipeline, mix=mix, intended=rate, own_lag_p99=lag, **r)


def p99():
    with servers.start([Noh("none"), Redis("off")]) as peers:
        for s in peers:
            fill(s, plan.keys)
        for pipeline in (1, 16, 64):
            latency_of("incr-none", peers, "incr", 50, pipeline, keys=plan.keys)
        latency_of("hot-key-none", peers, "incr", 50, 16, dist="hot")
        for pipeline in (1, 16):
            latency_of("pubsub", peers, "pubsub", 50, pipeline)
        latency_of("lone-none", peers, "incr", 1, 1, keys=plan.keys)
    with servers.start([Noh("disk"), Redis("always")]) as peers:
        for s in peers:
            fill(s, plan.keys)
            load(s, "reserve-commit", 8, 16, seconds=0.1, keys=plan.skus)
        for clients, pipeline in ((50, 1), (50, 16), (256, 1), (256, 16)):
            latency_of("incr-disk", peers, "incr", clients, pipeline, keys=plan.keys)
        latency_of("hot-key-disk", peers, "incr", 50, 16, dist="hot")
        for pipeline in (1, 16):
            latency_of("reserve", peers, "reserve-commit", 50, pipeline, keys=plan.skus, no_prepare=True)
        latency_of("lone-disk", peers, "incr", 1, 1, keys=plan.keys)


ROWS = {"incr-none": incr_none, "incr-disk": incr_disk, "hot-key": hot_key, "reserve": reserve,
        "reserve-postgres": reserve_postgres, "holds": holds, "pubsub": pubsub, "lone": lone, "restart": restart,
        "memory": memory, "p99": p99}


# ── the whole ──────────────────────────────────────────────────────────────────────────────────
def text_of(path, default="?"):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return default


def facts(rows):
    cpu = [l.split(":", 1)[1].strip() for l in text_of("/proc/cpuinfo").splitlines() if l.startswith("model name")]
    kb = [int(l.split()[1]) for l in text_of("/proc/meminfo").splitlines() if l.startswith("MemTotal")]
    return {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "cpu": cpu[0] if cpu else "?",
            "cores": os.cpu_count(), "memory": f"{kb[0] / 1048576:.1f} GiB" if kb else "?",
            "kernel": " ".join(os.uname()[i] for i in (0, 2)), "reps": plan.reps, "latency_reps": plan.latency_reps,
            "seconds": plan.seconds, "keys": plan.keys, "big": plan.big, "skus": plan.skus, "quick": plan.quick,
            "rows": rows, "versions": servers.versions()}


def arguments(argv):
    rows, report, docs = [], None, None
    it = iter(argv)
    for a in it:
        if a in ("-h", "--help"):
            print(__doc__)
            sys.exit(0)
        elif a == "--list":
            print("\n".join(ROWS))
            sys.exit(0)
        elif a == "--quick":
            plan.make_quick()
        elif a == "--reps":
            plan.reps = plan.latency_reps = int(next(it))
        elif a == "--seconds":
            plan.seconds = float(next(it))
        elif a == "--keys":
            plan.keys = int(next(it))
        elif a == "--big":
            plan.big = int(next(it))
        elif a == "--docs":
            docs = next(it)
        elif a == "--report":
            report = list(it)
        elif a in ROWS:
            rows.append(a)
        else:
            sys.exit(f"net.py: there is no row or option {a}; see --help, --list")
    return rows, report, docs


def main():
    global results
    rows, report, docs = arguments(sys.argv[1:])
    os.chdir(ROOT)
    whole = not rows and not plan.quick
    docs = docs or ("docs" if whole else "out/peers")
    os.makedirs("out/peers", exist_ok=True)
    if report is not None:
        net_report.write(docs, report)
        return
    servers.need_noh()
    name = f"out/peers/net-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
    scratch = tempfile.mkdtemp(prefix="noh-peers-", dir=os.environ.get("SCRATCH", "/var/tmp"))
    servers.use_scratch(scratch)
    failed = []
    try:
        with open(name, "w") as results:
            results.write(json.dumps({"facts": facts(rows or list(ROWS))}) + "\n")
            for row in rows or ROWS:
                say(f"── {row}")
                try:
                    ROWS[row]()
                except (servers.Failed, subprocess.SubprocessError, OSError) as e:
                    say(f"FAIL  {row}: {e}")
                    failed.append(row)
    finally:
        servers.stop_all()
        shutil.rmtree(scratch, ignore_errors=True)
    net_report.write(docs, [name])
    say(f"RAW   {name}")
    if failed:
        sys.exit("these rows failed: " + " ".join(failed))


if __name__ == "__main__":
    main()
