// Actor benchmarks on CAF 0.17.          caf <benchmark> <threads> <N>
//
// What   Savina's set and three more, one event-based stateful actor per actor. Every benchmark
//        checks its result and prints one line:
//        peer benchmark threads operations seconds operations/s bytes-per-actor|-
// Tuned  -O3 -march=native -DNDEBUG; state in stateful_actor, so handlers capture little; the
//        sender travels in the envelope (current_sender), not as a second counted reference in
//        the message; lazy_init, so a new actor is not scheduled before its first message;
//        max-throughput unlimited (default). CAF_POLICY=sharing selects the shared queue instead
//        of work stealing; run.sh measures both and reports the better one.
// Fair   Mailboxes are CAF's own, unbounded. A producer therefore sends bursts of 256 and yields
//        by a message to itself; without that, one worker would first fill the mailbox with all
//        messages and then drain it from cold memory, which is slower.
#include <caf/all.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

using namespace caf;
using u64 = uint64_t;
using i64 = int64_t;

constexpr size_t million = 1000000;
constexpr u64 burst = 256;

struct outcome {
	u64 ops;
	double seconds;
	u64 bytes_per_actor; // 0: not measured
};

[[noreturn]] void fail(const char *what, u64 a = 0, u64 b = 0)
{
	fprintf(stderr, "FAIL: caf: %s %lu %lu\n", what, (unsigned long)a, (unsigned long)b);
	_exit(1);
}

u64 anonymous_memory()
{
	std::ifstream f("/proc/self/status");
	for (std::string line; std::getline(f, line);)
		if (line.compare(0, 8, "RssAnon:") == 0)
			return strtoull(line.c_str() + 8, nullptr, 10) * 1024;
	fail("no RssAnon");
}

class stopwatch {
	std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
public:
	double seconds() const
	{
		return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
	}
};

struct rng {
	u64 x;
	explicit rng(u64 i) : x(i * 0x9E3779B97F4A7C15ull + 88172645463325252ull) {}
	size_t below(size_t n)
	{
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		return ((x >> 32) * n) >> 32;
	}
	size_t other(size_t me, size_t n)
	{
		size_t k = below(n - 1);
		return k >= me ? k + 1 : k;
	}
};

using go = atom_constant<atom("go")>;
using inc = atom_constant<atom("inc")>;
using query = atom_constant<atom("query")>;
using ping = atom_constant<atom("ping")>;
using pong = atom_constant<atom("pong")>;
using done = atom_constant<atom("done")>;
using total = atom_constant<atom("total")>;
using report = atom_constant<atom("report")>;
using meet = atom_constant<atom("meet")>;
using change = atom_constant<atom("change")>;
using fade = atom_constant<atom("fade")>;
using faded = atom_constant<atom("faded")>;
using debit = atom_constant<atom("debit")>;
using credit = atom_constant<atom("credit")>;
using ack = atom_constant<atom("ack")>;

template <class Self>
actor sender_of(Self *self)
{
	return actor_cast<actor>(self->current_sender());
}

u64 await_total(scoped_actor &self)
{
	u64 sum = 0;
	self->receive([&](total, u64 x) { sum = x; });
	return sum;
}

// ── ping-pong: two actors, N round trips ───────────────────────────────────────────────────────
struct count_state {
	u64 n = 0;
};

behavior pong_actor(stateful_actor<count_state> *self, actor sink)
{
	return {
		[=](ping, u64 v) {
			++self->state.n;
			self->send(sender_of(self), pong::value, v);
		},
		[=](done) {
			self->send(sink, total::value, self->state.n);
			self->quit();
		},
	};
}

behavior ping_actor(stateful_actor<count_state> *self, actor partner, actor sink)
{
	return {
		[=](go, u64 n) { self->send(partner, ping::value, n); },
		[=](pong, u64 v) {
			++self->state.n;
			if (v > 1) {
				self->send(partner, ping::value, v - 1);
				return;
			}
			self->send(partner, done::value);
			self->send(sink, total::value, self->state.n);
			self->quit();
		},
	};
}

outcome ping_pong(actor_system &sys, u64 n)
{
	scoped_actor self{sys};
	auto sink = actor_cast<actor>(self);
	stopwatch t;
	auto b = sys.spawn(pong_actor, sink);
	auto a = sys.spawn(ping_actor, b, sink);
	self->send(a, go::value, n);
	u64 x = await_total(self), y = await_total(self);
	double sec = t.seconds();
	if (x != n || y != n)
		fail("ping-pong", x, y);
	return {2 * n, sec, 0};
}

// ── counting and fan-in: 1, 10 or 1000 producers, one counter ──────────────────────────────────
struct sum_state {
	u64 sum = 0;
};

behavior counter_actor(stateful_actor<sum_state> *self)
{
	return {
		[=](inc, u64 v) { self->state.sum += v; },
		[=](query, const actor &to) { self->send(to, total::value, self->state.sum); },
	};
}

behavior producer_actor(stateful_actor<count_state> *self, actor counter, u64 n, actor sink)
{
	self->state.n = n;
	return {
		[=](go) {
			auto &left = self->state.n;
			for (u64 k = 0; k < burst && left > 0; ++k, --left)
				self->send(counter, inc::value, u64{1});
			if (left > 0) {
				self->send(self, go::value);
				return;
			}
			self->send(sink, ack::value);
			self->quit();
		},
	};
}

outcome fan_in(actor_system &sys, u64 n, u64 producers)
{
	scoped_actor self{sys};
	auto sink = actor_cast<actor>(self);
	u64 each = n / producers;
	stopwatch t;
	auto counter = sys.spawn(counter_actor);
	for (u64 i = 0; i < producers; ++i)
		anon_send(sys.spawn<lazy_init>(producer_actor, counter, each, sink), go::value);
	for (u64 i = 0; i < producers; ++i)
		self->receive([](ack) {});
	self->send(counter, query::value, sink);
	u64 sum = await_total(self);
	double sec = t.seconds();
	if (sum != each * producers)
		fail("fan-in", sum);
	return {sum, sec, 0};
}

// ── thread-ring: 100 actors, N hops ────────────────────────────────────────────────────────────
struct ring_state {
	actor next;
};

behavior ring_actor(stateful_actor<ring_state> *self, u64 i, actor sink)
{
	return {
		[=](go, const actor &next) { self->state.next = next; },
		[=](ping, u64 v) {
			if (v == 0)
				self->send(sink, total::value, i);
			else
				self->send(self->state.next, ping::value, v - 1);
		},
	};
}

outcome thread_ring(actor_system &sys, u64 n)
{
	scoped_actor self{sys};
	auto sink = actor_cast<actor>(self);
	std::vector<actor> ring;
	stopwatch t;
	for (u64 i = 0; i < 100; ++i)
		ring.push_back(sys.spawn(ring_actor, i, sink));
	for (size_t i = 0; i < 100; ++i)
		self->send(ring[i], go::value, ring[(i + 1) % 100]);
	self->send(ring[0], ping::value, n);
	u64 last = await_total(self);
	double sec = t.seconds();
	if (last != n % 100)
		fail("thread-ring", last);
	return {n, sec, 0};
}

// ── fork-join-create: N actors, one message each; all stay alive ───────────────────────────────
std::vector<actor> *directory;

behavior child_actor(stateful_actor<sum_state> *self, actor collector)
{
	return {
		[=](inc, u64 v) {
			self->state.sum += v;
			self->send(collector, total::value, self->state.sum);
		},
	};
}

struct tally_state {
	u64 n = 0, sum = 0;
};

behavior collector_actor(stateful_actor<tally_state> *self, u64 want, actor sink)
{
	return {
		[=](total, u64 v) {
			auto &s = self->state;
			s.sum += v;
			if (++s.n == want) {
				self->send(sink, total::value, s.sum);
				self->quit();
			}
		},
	};
}

behavior creator_actor(stateful_actor<count_state> *self, u64 n, actor collector)
{
	self->state.n = n;
	return {
		[=](go) {
			auto &left = self->state.n;
			for (u64 k = 0; k < burst && left > 0; ++k, --left) {
				auto child = self->spawn<lazy_init>(child_actor, collector);
				self->send(child, inc::value, u64{1});
				directory->push_back(std::move(child));
			}
			if (left > 0)
				self->send(self, go::value);
			else
				self->quit();
		},
	};
}

outcome fork_join_create(actor_system &sys, u64 n)
{
	scoped_actor self{sys};
	auto sink = actor_cast<actor>(self);
	directory = new std::vector<actor>;
	directory->reserve(n);
	u64 before = anonymous_memory();
	stopwatch t;
	auto collector = sys.spawn(collector_actor, n, sink);
	anon_send(sys.spawn(creator_actor, n, collector), go::value);
	u64 sum = await_total(self);
	double sec = t.seconds();
	if (sum != n || directory->size() != n)
		fail("fork-join-create", sum);
	return {n, sec, (anonymous_memory() - before) / n};
}

// ── fork-join-throughput: one sender, 60 actors, N messages each, round robin ──────────────────
behavior worker_actor(stateful_actor<tally_state> *self, u64 want, actor sink)
{
	return {
		[=](inc, u64 v) {
			auto &s = self->state;
			s.sum += v;
			if (++s.n == want) {
				self->send(sink, total::value, s.sum);
				self->quit();
			}
		},
	};
}

behavior rounds_actor(stateful_actor<count_state> *self, std::vector<actor> workers, u64 n)
{
	self->state.n = n;
	return {
		[=](go) {
			auto &left = self->state.n;
			for (int k = 0; k < 8 && left > 0; ++k, --left)
				for (auto &w : workers)
					self->send(w, inc::value, u64{1});
			if (left > 0)
				self->send(self, go::value);
			else
				self->quit();
		},
	};
}

outcome fork_join_throughput(actor_system &sys, u64 n)
{
	scoped_actor self{sys};
	auto sink = actor_cast<actor>(self);
	std::vector<actor> workers;
	stopwatch t;
	for (int i = 0; i < 60; ++i)
		workers.push_back(sys.spawn(worker_actor, n, sink));
	anon_send(sys.spawn(rounds_actor, workers, n), go::value);
	u64 sum = 0;
	for (int i = 0; i < 60; ++i)
		sum += await_total(self);
	double sec = t.seconds();
	if (sum != 60 * n)
		fail("fork-join-throughput", sum);
	return {sum, sec, 0};
}

// ── big: 120 actors, each N pings to random others, one outstanding ────────────────────────────
struct big_state {
	rng random{1};
	u64 pings = 0, pongs = 0;
	std::vector<actor> all;
};

behavior big_actor(stateful_actor<big_state> *self, size_t i, u64 n, actor sink)
{
	self->state.random = rng(i + 1);
	auto send_ping = [=] {
		auto &s = self->state;
		self->send(s.all[s.random.other(i, s.all.size())], ping::value);
	};
	return {
		[=](go, const std::vector<actor> &all) {
			self->state.all = all;
			send_ping();
		},
		[=](ping) {
			++self->state.pings;
			self->send(sender_of(self), pong::value);
		},
		[=](pong) {
			if (++self->state.pongs < n)
				send_ping();
			else
				self->send(sink, ack::value);
		},
		[=](query) {
			auto &s = self->state;
			self->send(sink, report::value, s.pings, s.pongs);
		},
	};
}

outcome big(actor_system &sys, u64 n)
{
	constexpr size_t actors = 120;
	scoped_actor self{sys};
	auto sink = actor_cast<actor>(self);
	std::vector<actor> all;
	stopwatch t;
	for (size_t i = 0; i < actors; ++i)
		all.push_back(sys.spawn(big_actor, i, n, sink));
	for (auto &a : all)
		self->send(a, go::value, all);
	for (size_t i = 0; i < actors; ++i)
		self->receive([](ack) {});
	double sec = t.seconds();
	u64 pings = 0, pongs = 0;
	for (auto &a : all)
		self->send(a, query::value);
	for (size_t i = 0; i < actors; ++i)
		self->receive([&](report, u64 x, u64 y) { pings += x; pongs += y; });
	if (pings != actors * n || pongs != actors * n)
		fail("big", pings, pongs);
	return {2 * actors * n, sec, 0};
}

// ── chameneos: 100 creatures meet N times at the mall ──────────────────────────────────────────
int complement(int a, int b)
{
	return a == b ? a : 3 - a - b;
}

struct mall_state {
	actor waiting;
	u64 left = 0, sum = 0;
	int faded = 0;
};

behavior mall_actor(stateful_actor<mall_state> *self, u64 n, actor sink)
{
	self->state.left = n;
	return {
		[=](meet, int color) {
			auto &s = self->state;
			if (s.left == 0) {
				self->send(sender_of(self), fade::value);
			} else if (!s.waiting) {
				s.waiting = sender_of(self);
			} else {
				--s.left;
				self->send(s.waiting, meet::value, sender_of(self), color);
				s.waiting = nullptr;
			}
		},
		[=](faded, u64 meetings) {
			auto &s = self->state;
			s.sum += meetings;
			if (++s.faded == 100) {
				s.waiting = nullptr;
				self->send(sink, total::value, s.sum);
				self->quit();
			}
		},
	};
}

struct creature_state {
	int color = 0;
	u64 meetings = 0;
};

behavior creature_actor(stateful_actor<creature_state> *self, actor mall, int color)
{
	self->state.color = color;
	auto become = [=](int c) {
		self->state.color = c;
		++self->state.meetings;
		self->send(mall, meet::value, c);
	};
	return {
		[=](go) { self->send(mall, meet::value, self->state.color); },
		[=](meet, const actor &other, int c) {
			int mixed = complement(self->state.color, c);
			self->send(other, change::value, mixed);
			become(mixed);
		},
		[=](change, int c) { become(c); },
		[=](fade) {
			self->send(mall, faded::value, self->state.meetings);
			self->quit();
		},
	};
}

outcome chameneos(actor_system &sys, u64 n)
{
	scoped_actor self{sys};
	stopwatch t;
	auto mall = sys.spawn(mall_actor, n, actor_cast<actor>(self));
	for (int i = 0; i < 100; ++i)
		anon_send(sys.spawn(creature_actor, mall, i % 3), go::value);
	u64 sum = await_total(self);
	double sec = t.seconds();
	if (sum != 2 * n)
		fail("chameneos", sum);
	return {n, sec, 0};
}

// ── bank-transaction: 1000 accounts, a teller with 256 transfers outstanding ───────────────────
struct account_state {
	i64 balance = 0;
	u64 debits = 0, credits = 0;
};

behavior account_actor(stateful_actor<account_state> *self, actor teller)
{
	return {
		[=](debit, i64 amount, const actor &to) {
			self->state.balance -= amount;
			++self->state.debits;
			self->send(to, credit::value, amount);
		},
		[=](credit, i64 amount) {
			self->state.balance += amount;
			++self->state.credits;
			self->send(sender_of(self), ack::value);
		},
		[=](ack) { self->send(teller, ack::value); },
		[=](query, const actor &to) {
			auto &s = self->state;
			self->send(to, report::value, s.balance, s.debits, s.credits);
		},
	};
}

struct teller_state {
	rng random{1};
	u64 sent = 0, acks = 0;
	std::vector<actor> accounts;
};

behavior teller_actor(stateful_actor<teller_state> *self, u64 n, actor sink)
{
	auto transfer = [=] {
		auto &s = self->state;
		size_t a = s.random.below(s.accounts.size());
		size_t b = s.random.other(a, s.accounts.size());
		++s.sent;
		self->send(s.accounts[a], debit::value, i64(1 + s.sent % 100), s.accounts[b]);
	};
	return {
		[=](go, const std::vector<actor> &accounts) {
			self->state.accounts = accounts;
			while (self->state.sent < n && self->state.sent < 256)
				transfer();
		},
		[=](ack) {
			auto &s = self->state;
			if (++s.acks == n) {
				self->send(sink, total::value, s.acks);
				self->quit();
			} else if (s.sent < n) {
				transfer();
			}
		},
	};
}

outcome bank_transaction(actor_system &sys, u64 n)
{
	scoped_actor self{sys};
	auto sink = actor_cast<actor>(self);
	std::vector<actor> accounts;
	stopwatch t;
	auto teller = sys.spawn(teller_actor, n, sink);
	for (int i = 0; i < 1000; ++i)
		accounts.push_back(sys.spawn<lazy_init>(account_actor, teller));
	self->send(teller, go::value, accounts);
	u64 acks = await_total(self);
	double sec = t.seconds();
	i64 balance = 0;
	u64 debits = 0, credits = 0;
	for (auto &a : accounts)
		self->send(a, query::value, sink);
	for (size_t i = 0; i < accounts.size(); ++i)
		self->receive([&](report, i64 x, u64 y, u64 z) {
			balance += x;
			debits += y;
			credits += z;
		});
	if (acks != n || balance != 0 || debits != n || credits != n)
		fail("bank-transaction", debits, credits);
	return {n, sec, 0};
}

// ── random-counters-1M: two drivers, N increments to random ones of a million live actors ──────
struct driver_state {
	rng random{1};
	u64 left = 0;
};

behavior driver_actor(stateful_actor<driver_state> *self, u64 seed, u64 n, actor sink)
{
	self->state.random = rng(seed);
	self->state.left = n;
	return {
		[=](go) {
			auto &s = self->state;
			for (u64 k = 0; k < burst && s.left > 0; ++k, --s.left)
				self->send((*directory)[s.random.below(million)], inc::value, u64{1});
			if (s.left > 0) {
				self->send(self, go::value);
				return;
			}
			self->send(sink, ack::value);
			self->quit();
		},
	};
}

behavior sweeper_actor(stateful_actor<count_state> *self, actor collector)
{
	return {
		[=](go) {
			auto &i = self->state.n;
			for (u64 k = 0; k < burst && i < million; ++k, ++i)
				self->send((*directory)[i], query::value, collector);
			if (i < million)
				self->send(self, go::value);
			else
				self->quit();
		},
	};
}

u64 sweep(actor_system &sys, scoped_actor &self) // asks every counter, adds the answers up
{
	auto collector = sys.spawn(collector_actor, u64{million}, actor_cast<actor>(self));
	anon_send(sys.spawn(sweeper_actor, collector), go::value);
	return await_total(self);
}

outcome random_counters(actor_system &sys, u64 n)
{
	scoped_actor self{sys};
	auto sink = actor_cast<actor>(self);
	directory = new std::vector<actor>;
	directory->reserve(million);
	u64 before = anonymous_memory();
	for (size_t i = 0; i < million; ++i)
		directory->push_back(sys.spawn<lazy_init>(counter_actor));
	if (sweep(sys, self) != 0) // not timed: everyone is alive and waits
		fail("random-counters warm-up");
	u64 bytes = (anonymous_memory() - before) / million;
	stopwatch t;
	for (u64 i = 1; i <= 2; ++i)
		anon_send(sys.spawn(driver_actor, i, n / 2, sink), go::value);
	for (int i = 0; i < 2; ++i)
		self->receive([](ack) {});
	u64 sum = sweep(sys, self);
	double sec = t.seconds();
	if (sum != n / 2 * 2)
		fail("random-counters", sum);
	return {sum + 2 * million, sec, bytes};
}

int main(int argc, char **argv)
{
	using bench = std::function<outcome(actor_system &, u64)>;
	const std::map<std::string, bench> benches = {
		{"ping-pong", ping_pong},
		{"counting", [](actor_system &s, u64 n) { return fan_in(s, n, 1); }},
		{"thread-ring", thread_ring},
		{"fork-join-create", fork_join_create},
		{"fork-join-throughput", fork_join_throughput},
		{"big", big},
		{"chameneos", chameneos},
		{"bank-transaction", bank_transaction},
		{"fan-in-10", [](actor_system &s, u64 n) { return fan_in(s, n, 10); }},
		{"fan-in-1000", [](actor_system &s, u64 n) { return fan_in(s, n, 1000); }},
		{"random-counters-1M", random_counters},
	};
	if (argc != 4 || benches.count(argv[1]) == 0) {
		fprintf(stderr, "usage: caf <benchmark> <threads> <N>\n");
		return 2;
	}
	const char *policy = getenv("CAF_POLICY");
	bool sharing = policy && std::string(policy) == "sharing";
	actor_system_config cfg;
	cfg.set("scheduler.policy", sharing ? atom("sharing") : atom("stealing"));
	cfg.set("scheduler.max-threads", size_t(strtoull(argv[2], nullptr, 10)));
	actor_system sys{cfg};
	outcome r = benches.at(argv[1])(sys, strtoull(argv[3], nullptr, 10));
	std::string bytes = r.bytes_per_actor ? std::to_string(r.bytes_per_actor) : "-";
	printf("%s %s %s %lu %.6f %.0f %s\n", sharing ? "caf-sharing" : "caf", argv[1], argv[2],
	       (unsigned long)r.ops, r.seconds, double(r.ops) / r.seconds, bytes.c_str());
	fflush(stdout);
	_exit(0); // the tear-down of a million actors is not part of the benchmark
}
