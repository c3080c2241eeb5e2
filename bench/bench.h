/* bench/bench.h - what a benchmark is, what it is given, and what it hands back.
 *
 * A repetition runs in a process of its own, so memory is measured from a clean start and a failure
 * ends that process alone. A benchmark registers its types, starts the box, makes its references,
 * and times itself from the first send to the last answer. Whatever does not add up ends the
 * process with a sentence on stderr (bench_fail): a benchmark that returns was right.
 *
 * Owns     one box per repetition.
 * Threads  a benchmark runs on the main thread; its hooks run on the box's workers.
 */
#ifndef NOH_BENCH_BENCH_H
#define NOH_BENCH_BENCH_H

#include "bench/gather.h"
#include "core/random.h"
#include "noh.h"

#include <stdio.h>

enum bench_group {
	BENCH_PEER,      /* same shape and rules as the peer programs                 */
	BENCH_EXTRA,     /* ours alone, labelled as such                              */
	BENCH_DISK,      /* not in the default set: they need a disk                  */
	BENCH_SWEEP      /* not in the default set: for --plot, or by name            */
};

struct bench_run;

struct bench {
	const char      *name;
	const char      *unit;            /* what one op is                                    */
	const char      *about;           /* one line for --list; says what --n is             */
	enum bench_group group;
	unsigned         least_workers;
	uint64_t         n, smoke_n;      /* how much work, in the benchmark's own measure      */
	uint64_t         actors, smoke_actors;
	uint32_t         payload;         /* bytes of its commonest message                     */
	bool             latency;         /* p50/p99 are the point                              */
	void           (*run)(struct bench_run *r);
};

extern const struct bench bench_all[];
extern const unsigned bench_count;

struct bench_result {
	uint64_t ops;
	double   seconds;
	double   bytes_per_actor;                     /* 0: not the point */
	uint64_t p50_ns, p99_ns, p999_ns, worst_ns;   /* 0: not the point */
	double   idle_cpu_ms;                         /* below 0: not measured */
	uint64_t refused;                             /* sends answered NOH_FULL, then repeated */
	noh_worker_stats total;
	char     note[160];                           /* a few words for the table */
};

enum { BENCH_TYPES = 8 };

struct bench_run {
	const struct bench *bench;
	unsigned    workers, rep;             /* rep counts from 0 */
	uint64_t    n, actors, seed, rate;
	bool        smoke;
	bool        quiet;                    /* keep the box's warnings to ourselves */
	bool        all_events;               /* the box tells all it can             */
	const char *dir;                      /* where durable ones put their data; NULL: here */
	char       *rubbish;                  /* a directory to remove once the box is closed */
	noh_box    *box;
	noh_actor   gather;
	const char *types[BENCH_TYPES];
	unsigned    type_count;
	uint64_t    began;
	struct bench_result out;
};

/* ── for benchmarks ───────────────────────────────────────────────────────────────────────── */

/* A type by the rules of the peer rows: on_message, block, default capacity. */
noh_type bench_type(const char *name, size_t state_size,
		    int (*on_message)(noh_turn *, const noh_msg *), void *user);
void bench_register(struct bench_run *r, const noh_type *type);
void bench_start(struct bench_run *r);                    /* also makes r->gather */

noh_actor bench_ref(struct bench_run *r, const char *type, uint64_t id);
void bench_send(struct bench_run *r, noh_actor to, uint32_t kind, const void *body, size_t len);
struct gathered bench_wait(struct bench_run *r, uint64_t reports);
void bench_quiet(struct bench_run *r);   /* wait until every accepted message was handled */

void bench_begin(struct bench_run *r);                    /* the clock, to be started and ... */
void bench_end(struct bench_run *r, uint64_t ops);        /* ... stopped                      */

_Noreturn void bench_fail(const struct bench_run *r, const char *format, ...) NOH_PRINTF(2, 3);
void bench_must(const struct bench_run *r, int code, const char *what);
void bench_same(const struct bench_run *r, const char *what, int64_t got, int64_t want);

/* "type:000000000042": twelve digits. room is at least 64 bytes. */
void bench_address(char *room, const char *type, uint64_t id);
void bench_next_address(char *end);      /* the one with the next number; end: of the text */
uint64_t bench_id(noh_turn *turn);       /* back from an address to the number */
void *bench_memory(struct bench_run *r, size_t bytes);    /* zeroed and touched */

/* xorshift, the generator of the peer programs. */
static inline uint64_t bench_seed(uint64_t who)
{
	uint64_t x = who * 0x9E3779B97F4A7C15u + 88172645463325252u;
	return x != 0 ? x : 1;
}
static inline uint64_t bench_below(uint64_t *state, uint64_t n)
{
	return ((random_next(state) >> 32) * n) >> 32;
}
static inline uint64_t bench_other(uint64_t *state, uint64_t me, uint64_t n)
{
	uint64_t k = bench_below(state, n - 1);
	return k >= me ? k + 1 : k;
}

/* ── for the harness ──────────────────────────────────────────────────────────────────────── */
struct bench_plan {                     /* what the command line asked for */
	unsigned    workers[16], worker_counts;
	uint64_t    n, seed, rate;      /* n 0: each benchmark's own */
	unsigned    reps;
	bool        smoke, json, raw, all_events;
	const char *dir;
	const char *plot;
	char        command[256];
};

struct bench_row {                      /* one benchmark at one worker count */
	const struct bench *bench;
	unsigned workers, reps;
	uint64_t n, actors;
	struct bench_result *all;       /* reps of them, slowest first */
	struct bench_result  typical;   /* the median one */
	double spread;                  /* (fastest - slowest) / median, percent */
};

int  bench_main(int argc, char **argv);
void bench_usage(void);
void bench_list(void);

/* One repetition in a child process. False: it failed, and has said why on stderr. */
bool bench_repeat(struct bench_run *r);
bool bench_measure(const struct bench_plan *plan, const struct bench *b, unsigned workers,
		   struct bench_row *row);
void bench_row_free(struct bench_row *row);
const struct bench *bench_find(const char *name);
double bench_rate(const struct bench_result *x);

const char *bench_machine(void);        /* "CPU, cores, kernel" */
void bench_report_head(const struct bench_plan *plan);
void bench_report_row(const struct bench_plan *plan, const struct bench_row *row);
void bench_report_raw(const struct bench_run *r);
int  bench_plot(const struct bench_plan *plan);

/* ── the benchmarks ───────────────────────────────────────────────────────────────────────── */
void bench_ping_pong(struct bench_run *r);
void bench_thread_ring(struct bench_run *r);
void bench_fan_in(struct bench_run *r);
void bench_fan_in_batch(struct bench_run *r);
void bench_fork_join_create(struct bench_run *r);
void bench_fork_join_throughput(struct bench_run *r);
void bench_big(struct bench_run *r);
void bench_chameneos(struct bench_run *r);
void bench_bank(struct bench_run *r);
void bench_random_counters(struct bench_run *r);
void bench_flood(struct bench_run *r);
void bench_read_only(struct bench_run *r);
void bench_idle_memory(struct bench_run *r);
void bench_stuck(struct bench_run *r);
void bench_supervise(struct bench_run *r);
void bench_restart(struct bench_run *r);
void bench_scrape(struct bench_run *r);
void bench_durable_counters(struct bench_run *r);
void bench_durable_latency(struct bench_run *r);
void bench_durable_start(struct bench_run *r);
void bench_durable_activate(struct bench_run *r);
void bench_durable_sustain(struct bench_run *r);
void bench_events(struct bench_run *r);

#endif
