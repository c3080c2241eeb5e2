// Actor benchmarks in Go.          go <benchmark> <threads> <N>
//
// What: Savina's set and three more: one goroutine per actor, one buffered channel per mailbox.
// Every benchmark checks its result and prints one line:
// peer benchmark threads operations seconds operations/s bytes-per-actor|-
//
// Tuned: Messages are values, nothing on the send path escapes to the heap; GOGC=400, since the
// live heap is small and memory is plenty; GOAMD64=v3; GOMAXPROCS is the thread count.
//
// Fair: Buffers are as large as the benchmark can fill, so that a talking actor never blocks; 1024
// where producers never pause (64 to 16384 differ by less than the noise); and 4 in
// random-counters, where more would only cost memory.

package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

const million = 1000000

type outcome struct {
	ops   int64
	spent time.Duration
	bytes int64 // per actor; 0: not measured
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "FAIL: go: "+format+"\n", args...)
	os.Exit(1)
}

// anonymousMemory is what the process holds after a collection, in bytes.
func anonymousMemory() int64 {
	debug.FreeOSMemory()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		fail("%v", err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if w := strings.Fields(s.Text()); w[0] == "RssAnon:" {
			kib, _ := strconv.ParseInt(w[1], 10, 64)
			return kib * 1024
		}
	}
	fail("no RssAnon")
	return 0
}

type rng uint64

func newRng(i int) *rng {
	r := rng(uint64(i)*0x9E3779B97F4A7C15 + 88172645463325252)
	return &r
}

func (r *rng) below(n int) int {
	x := uint64(*r)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*r = rng(x)
	return int(((x >> 32) * uint64(n)) >> 32)
}

func (r *rng) other(me, n int) int {
	k := r.below(n - 1)
	if k >= me {
		k++
	}
	return k
}

// ── ping-pong: two actors, N round trips ──────────────────────────────────────────────────────

func pingPong(n int) outcome {
	a, b, done := make(chan int, 16), make(chan int, 16), make(chan int)
	t := time.Now()
	go func() {
		pings := 0
		for v := range b {
			pings++
			a <- v
		}
		done <- pings
	}()
	go func() {
		pongs := 0
		b <- n
		for v := range a {
			pongs++
			if v == 1 {
				break
			}
			b <- v - 1
		}
		close(b)
		done <- pongs
	}()
	x, y := <-done, <-done
	d := time.Since(t)
	if x != n || y != n {
		fail("ping-pong %d %d", x, y)
	}
	return outcome{int64(2 * n), d, 0}
}

// ── counting and fan-in: 1, 10 or 1000 producers, one counter ─────────────────────────────────

func fanIn(n, producers int) outcome {
	each := n / producers
	in, result := make(chan int64, 1024), make(chan int64, 1)
	var wg sync.WaitGroup
	wg.Add(producers)
	t := time.Now()
	go func() {
		var sum int64
		for v := range in {
			sum += v
		}
		result <- sum
	}()
	for i := 0; i < producers; i++ {
		go func() {
			for k := 0; k < each; k++ {
				in <- 1
			}
			wg.Done()
		}()
	}
	wg.Wait()
	close(in)
	sum := <-result
	d := time.Since(t)
	if sum != int64(each*producers) {
		fail("fan-in %d", sum)
	}
	return outcome{sum, d, 0}
}

// ── thread-ring: 100 actors, N hops ───────────────────────────────────────────────────────────

func threadRing(n int) outcome {
	const actors = 100
	ring := make([]chan int, actors)
	for i := range ring {
		ring[i] = make(chan int, 4)
	}
	done := make(chan int, 1)
	t := time.Now()
	for i := range ring {
		go func(i int, in, next chan int) {
			for v := range in {
				if v == 0 {
					done <- i
					return
				}
				next <- v - 1
			}
		}(i, ring[i], ring[(i+1)%actors])
	}
	ring[0] <- n
	last := <-done
	d := time.Since(t)
	if last != n%actors {
		fail("thread-ring ended at %d", last)
	}
	return outcome{int64(n), d, 0}
}

// ── fork-join-create: N actors, one message each; all stay alive ──────────────────────────────

func forkJoinCreate(n int) outcome {
	directory := make([]chan int64, n)
	before := anonymousMemory()
	results := make(chan int64, 1024)
	t := time.Now()
	go func() {
		for i := range directory {
			c := make(chan int64, 1)
			directory[i] = c
			go func() {
				var state int64
				for v := range c {
					state += v
					results <- state
				}
			}()
			c <- 1
		}
	}()
	var sum int64
	for i := 0; i < n; i++ {
		sum += <-results
	}
	d := time.Since(t)
	if sum != int64(n) {
		fail("fork-join-create %d", sum)
	}
	bytes := (anonymousMemory() - before) / int64(n)
	runtime.KeepAlive(directory)
	return outcome{int64(n), d, bytes}
}

// ── fork-join-throughput: one sender, 60 actors, N messages each, round robin ─────────────────

func forkJoinThroughput(n int) outcome {
	const actors = 60
	boxes := make([]chan int64, actors)
	results := make(chan int64, actors)
	t := time.Now()
	for i := range boxes {
		c := make(chan int64, 256)
		boxes[i] = c
		go func() {
			var sum int64
			for k := 0; k < n; k++ {
				sum += <-c
			}
			results <- sum
		}()
	}
	go func() {
		for k := 0; k < n; k++ {
			for _, c := range boxes {
				c <- 1
			}
		}
	}()
	var sum int64
	for range boxes {
		sum += <-results
	}
	d := time.Since(t)
	if sum != int64(actors*n) {
		fail("fork-join-throughput %d", sum)
	}
	return outcome{sum, d, 0}
}

// ── big: 120 actors, each N pings to random others, one outstanding ───────────────────────────

const (
	bigPong = -1 // else: a ping from that actor
	bigStop = -2
)

type bigTotal struct{ pings, pongs int }

func bigActor(i, n int, boxes []chan int, done chan<- struct{}) (sum bigTotal) {
	random := newRng(i + 1)
	boxes[random.other(i, len(boxes))] <- i
	for m := range boxes[i] {
		switch {
		case m >= 0:
			sum.pings++
			boxes[m] <- bigPong
		case m == bigStop:
			return
		default:
			if sum.pongs++; sum.pongs < n {
				boxes[random.other(i, len(boxes))] <- i
			} else {
				done <- struct{}{}
			}
		}
	}
	return
}

func big(n int) outcome {
	const actors = 120
	boxes := make([]chan int, actors)
	for i := range boxes {
		boxes[i] = make(chan int, 2*actors)
	}
	done, totals := make(chan struct{}, actors), make(chan bigTotal, actors)
	t := time.Now()
	for i := range boxes {
		go func(i int) { totals <- bigActor(i, n, boxes, done) }(i)
	}
	for range boxes {
		<-done
	}
	d := time.Since(t)
	for _, c := range boxes {
		c <- bigStop
	}
	pings, pongs := 0, 0
	for range boxes {
		x := <-totals
		pings += x.pings
		pongs += x.pongs
	}
	if pings != actors*n || pongs != actors*n {
		fail("big %d %d", pings, pongs)
	}
	return outcome{int64(2 * actors * n), d, 0}
}

// ── chameneos: 100 creatures meet N times at the mall ─────────────────────────────────────────

const (
	meet = iota
	change
	fade
)

type creatureMsg struct {
	kind     uint8
	color    int8
	meetings int
	from     chan creatureMsg
}

func complement(a, b int8) int8 {
	if a == b {
		return a
	}
	return 3 - a - b
}

func mallActor(mall chan creatureMsg, left, creatures int) (sum int) {
	var waiting chan creatureMsg
	faded := 0
	for m := range mall {
		switch {
		case m.kind == fade:
			sum += m.meetings
			if faded++; faded == creatures {
				return
			}
		case left == 0:
			m.from <- creatureMsg{kind: fade}
		case waiting == nil:
			waiting = m.from
		default:
			left--
			waiting <- m
			waiting = nil
		}
	}
	return
}

func creature(mall chan creatureMsg, color int8) {
	me, meetings := make(chan creatureMsg, 4), 0
	mall <- creatureMsg{kind: meet, color: color, from: me}
	for m := range me {
		switch m.kind {
		case meet:
			color = complement(color, m.color)
			m.from <- creatureMsg{kind: change, color: color}
		case change:
			color = m.color
		default:
			mall <- creatureMsg{kind: fade, meetings: meetings}
			return
		}
		meetings++
		mall <- creatureMsg{kind: meet, color: color, from: me}
	}
}

func chameneos(n int) outcome {
	const creatures = 100
	mall, total := make(chan creatureMsg, 2*creatures), make(chan int, 1)
	t := time.Now()
	go func() { total <- mallActor(mall, n, creatures) }()
	for i := 0; i < creatures; i++ {
		go creature(mall, int8(i%3))
	}
	sum := <-total
	d := time.Since(t)
	if sum != 2*n {
		fail("chameneos %d", sum)
	}
	return outcome{int64(n), d, 0}
}

// ── bank-transaction: 1000 accounts, a teller with 256 transfers outstanding ──────────────────

const (
	debit = iota
	credit
	ack
	report
)

type bankMsg struct {
	kind   uint8
	amount int64
	peer   chan bankMsg // debit: who gets it; credit: who paid
}

type bankTotal struct{ balance, debits, credits int64 }

func account(me, teller chan bankMsg) (s bankTotal) {
	for m := range me {
		switch m.kind {
		case debit:
			s.balance -= m.amount
			s.debits++
			m.peer <- bankMsg{kind: credit, amount: m.amount, peer: me}
		case credit:
			s.balance += m.amount
			s.credits++
			m.peer <- bankMsg{kind: ack}
		case ack:
			teller <- bankMsg{kind: ack}
		default:
			return
		}
	}
	return
}

func tellerActor(teller chan bankMsg, accounts []chan bankMsg, n, window int) {
	random, sent, acks := newRng(1), 0, 0
	transfer := func() {
		a := random.below(len(accounts))
		b := random.other(a, len(accounts))
		sent++
		accounts[a] <- bankMsg{kind: debit, amount: int64(1 + sent%100), peer: accounts[b]}
	}
	for sent < window && sent < n {
		transfer()
	}
	for range teller {
		if acks++; acks == n {
			return
		}
		if sent < n {
			transfer()
		}
	}
}

func bankTransaction(n int) outcome {
	const window = 256
	accounts := make([]chan bankMsg, 1000)
	for i := range accounts {
		accounts[i] = make(chan bankMsg, window)
	}
	teller, totals := make(chan bankMsg, window), make(chan bankTotal, len(accounts))
	done := make(chan struct{})
	t := time.Now()
	for _, c := range accounts {
		go func(c chan bankMsg) { totals <- account(c, teller) }(c)
	}
	go func() {
		tellerActor(teller, accounts, n, window)
		close(done)
	}()
	<-done
	d := time.Since(t)
	for _, c := range accounts {
		c <- bankMsg{kind: report}
	}
	var s bankTotal
	for range accounts {
		x := <-totals
		s.balance += x.balance
		s.debits += x.debits
		s.credits += x.credits
	}
	if s.balance != 0 || s.debits != int64(n) || s.credits != int64(n) {
		fail("bank-transaction %v", s)
	}
	return outcome{int64(n), d, 0}
}

// ── random-counters-1M: two drivers, N increments to random ones of a million live actors ─────

type counterMsg struct {
	add   int64
	reply chan int64 // not nil: send the sum there
}

func counter(in chan counterMsg) {
	var sum int64
	for m := range in {
		if m.reply != nil {
			m.reply <- sum
		} else {
			sum += m.add
		}
	}
}

// sweep asks every counter and adds the answers up.
func sweep(boxes []chan counterMsg) (sum int64) {
	reply := make(chan int64, 1024)
	go func() {
		for _, c := range boxes {
			c <- counterMsg{reply: reply}
		}
	}()
	for range boxes {
		sum += <-reply
	}
	return
}

func randomCounters(n int) outcome {
	const drivers = 2
	boxes := make([]chan counterMsg, million)
	before := anonymousMemory()
	for i := range boxes {
		boxes[i] = make(chan counterMsg, 4)
		go counter(boxes[i])
	}
	if sweep(boxes) != 0 { // not timed: everyone is alive and waits
		fail("random-counters warm-up")
	}
	bytes := (anonymousMemory() - before) / million
	var wg sync.WaitGroup
	wg.Add(drivers)
	t := time.Now()
	for i := 0; i < drivers; i++ {
		go func(i int) {
			random := newRng(i + 1)
			for k := 0; k < n/drivers; k++ {
				boxes[random.below(million)] <- counterMsg{add: 1}
			}
			wg.Done()
		}(i)
	}
	wg.Wait()
	sum := sweep(boxes)
	d := time.Since(t)
	if sum != int64(n/drivers*drivers) {
		fail("random-counters %d", sum)
	}
	return outcome{sum + 2*million, d, bytes}
}

var benches = map[string]func(n int) outcome{
	"ping-pong":            pingPong,
	"counting":             func(n int) outcome { return fanIn(n, 1) },
	"thread-ring":          threadRing,
	"fork-join-create":     forkJoinCreate,
	"fork-join-throughput": forkJoinThroughput,
	"big":                  big,
	"chameneos":            chameneos,
	"bank-transaction":     bankTransaction,
	"fan-in-10":            func(n int) outcome { return fanIn(n, 10) },
	"fan-in-1000":          func(n int) outcome { return fanIn(n, 1000) },
	"random-counters-1M":   randomCounters,
}

func main() {
	if len(os.Args) != 4 || benches[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go <benchmark> <threads> <N>")
		os.Exit(2)
	}
	threads, _ := strconv.Atoi(os.Args[2])
	n, _ := strconv.Atoi(os.Args[3])
	runtime.GOMAXPROCS(threads)
	r := benches[os.Args[1]](n)
	bytes := "-"
	if r.bytes > 0 {
		bytes = strconv.FormatInt(r.bytes, 10)
	}
	fmt.Printf("go %s %d %d %.6f %.0f %s\n", os.Args[1], threads, r.ops, r.spent.Seconds(),
		float64(r.ops)/r.spent.Seconds(), bytes)
}
