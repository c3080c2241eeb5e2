/* tests/box/kit.h - what the tests of a whole box share: opening one that logs into memory, a gate
 * that holds an actor in its turn, threads, and calls with a number in and out.
 *
 * Owns     the captured log and the gate, one of each per test program.
 * Threads  any. gate_pass is for hooks: it holds the worker, as a bad actor would.
 */
#ifndef NOH_TESTS_BOX_KIT_H
#define NOH_TESTS_BOX_KIT_H

#include "core/atomic.h"
#include "noh.h"
#include "tests/lib/test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SOON 30000                     /* ms: far more than anything here takes, also under TSan on a busy machine */

static struct {
	pthread_mutex_t lock;
	char            text[1 << 16];
	size_t          len;
	atomic_u32      open, inside;      /* the gate */
} kit = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ── time ── */

static inline uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static inline void nap_us(unsigned us)
{
	nanosleep(&(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 }, NULL);
}

/* ── the log ── */

static inline void kit_log(void *user, int level, const char *actor, const char *line)
{
	(void)user;
	(void)level;
	pthread_mutex_lock(&kit.lock);
	if (kit.len + strlen(actor) + strlen(line) + 4 < sizeof kit.text)
		kit.len += (size_t)sprintf(kit.text + kit.len, "%s|%s\n", actor, line);
	pthread_mutex_unlock(&kit.lock);
}

static inline bool logged(const char *part)
{
	bool found;

	pthread_mutex_lock(&kit.lock);
	found = strstr(kit.text, part) != NULL;
	pthread_mutex_unlock(&kit.lock);
	return found;
}

static inline bool is_logged(void *part)
{
	return logged((const char *)part);
}

/* ── the box ── */

static inline noh_options kit_options(unsigned workers)
{
	return (noh_options){ .workers = workers, .unpinned = true, .max_actors = 100000,
			      .log = kit_log };
}

static inline noh_box *kit_open(const noh_options *options, const noh_type *const *types)
{
	noh_box *box = NULL;

	pthread_mutex_lock(&kit.lock);
	kit.len = 0;
	kit.text[0] = 0;
	pthread_mutex_unlock(&kit.lock);
	EXPECT_EQ(noh_open(&box, options), NOH_OK);
	for (; *types; types++)
		EXPECT_EQ(noh_register(box, *types), NOH_OK);
	return box;
}

static inline noh_box *kit_start(const noh_options *options, const noh_type *const *types)
{
	noh_box *box = kit_open(options, types);

	EXPECT_EQ(noh_start(box), NOH_OK);
	return box;
}
#define TYPES(...) ((const noh_type *const[]){ __VA_ARGS__, NULL })
#define BOX(n, ...) kit_box((n), TYPES(__VA_ARGS__))
static inline noh_box *kit_box(unsigned workers, const noh_type *const *types)
{
	noh_options o = kit_options(workers);

	return kit_start(&o, types);
}

static inline void end(noh_box *box)
{
	if (!EXPECT_EQ(noh_stop(box, SOON), NOH_OK))
		printf("  %s\n", noh_why());
	noh_close(box);
}

/* ── small calls ── */

static inline uint64_t get(noh_box *box, const char *address, uint32_t kind)
{
	uint64_t n = UINT64_MAX;
	size_t   len = sizeof n;

	EXPECT_EQ(noh_call(box, address, kind, NULL, 0, SOON, &n, &len), NOH_OK);
	EXPECT_EQ(len, sizeof n);
	return n;
}

static inline int call(noh_box *box, const char *address, uint32_t kind)
{
	return noh_call(box, address, kind, NULL, 0, SOON, NULL, NULL);
}

static inline int put(noh_box *box, const char *address, uint32_t kind, uint64_t n)
{
	return noh_send(box, address, kind, &n, sizeof n);
}

static inline noh_type_stats stats_of(noh_box *box, const char *type)
{
	noh_type_stats s;

	EXPECT_EQ(noh_get_type_stats(box, type, &s), NOH_OK);
	return s;
}

static inline noh_box_stats stats(noh_box *box)
{
	noh_box_stats s;

	EXPECT_EQ(noh_get_stats(box, &s), NOH_OK);
	return s;
}

static inline noh_status status_of(noh_box *box, const char *address)
{
	noh_status s;

	EXPECT_EQ(noh_get_status(box, address, &s), NOH_OK);
	return s;
}

/* Everything that was accepted has met its end. */
static inline bool adds_up(noh_box *box, const char *type)
{
	noh_type_stats s = stats_of(box, type);

	return s.accepted == s.handled + s.failed + s.dropped_oldest + s.dropped_forced +
			     s.dropped_stop + s.dropped_unwell + s.coalesced;
}

struct kit_about { noh_box *box; const char *name; uint64_t n; };

static inline bool is_settled(void *arg)
{
	struct kit_about *a = arg;

	return adds_up(a->box, a->name);
}

/* Nothing waits any more; then the numbers are exact. */
static inline bool settles(noh_box *box, const char *type)
{
	bool ok = test_wait_until(is_settled, &(struct kit_about){ box, type, 0 }, SOON);
	noh_type_stats s = stats_of(box, type);

	if (!ok)
		printf("  %s: accepted %llu, handled %llu, failed %llu, dropped %llu %llu %llu, "
		       "coalesced %llu\n", type, (unsigned long long)s.accepted,
		       (unsigned long long)s.handled, (unsigned long long)s.failed,
		       (unsigned long long)s.dropped_oldest, (unsigned long long)s.dropped_forced,
		       (unsigned long long)s.dropped_stop, (unsigned long long)s.coalesced);
	return ok;
}

static inline bool is_gone(void *arg)
{
	struct kit_about *a = arg;

	return status_of(a->box, a->name).life == NOH_NOT_ACTIVE;
}

static inline bool goes_to_storage(noh_box *box, const char *address)
{
	return test_wait_until(is_gone, &(struct kit_about){ box, address, 0 }, SOON);
}

static inline bool is_waiting(void *arg)
{
	struct kit_about *a = arg;

	return status_of(a->box, a->name).mailbox_size == a->n;
}

/* So many messages wait in its mailbox. */
static inline bool gets_to_hold(noh_box *box, const char *address, uint64_t n)
{
	return test_wait_until(is_waiting, &(struct kit_about){ box, address, n }, SOON);
}

static inline bool is_reached(void *arg)
{
	atomic_u64 *counter = ((void **)arg)[0];

	return load_acquire(counter) >= *(uint64_t *)((void **)arg)[1];
}

static inline bool reaches(atomic_u64 *counter, uint64_t n)
{
	void *args[2] = { counter, &n };

	return test_wait_until(is_reached, args, SOON);
}

/* ── the gate ── */

static inline void gate_shut(void)
{
	store_seq_cst(&kit.open, 0);
	store_seq_cst(&kit.inside, 0);
}

static inline void gate_open(void)
{
	store_seq_cst(&kit.open, 1);
}

static inline void gate_pass(void)
{
	add_seq_cst(&kit.inside, 1);
	while (!load_seq_cst(&kit.open))
		nap_us(100);
}

static inline bool is_inside(void *n)
{
	return load_seq_cst(&kit.inside) >= *(uint32_t *)n;
}

static inline bool gate_holds(uint32_t n)
{
	return test_wait_until(is_inside, &n, SOON);
}

/* ── threads ── */

#define THREADS_MAX 8
struct threads { pthread_t of[THREADS_MAX]; unsigned count; };

static inline void threads_start(struct threads *t, unsigned count, void *(*run)(void *))
{
	t->count = count;
	for (uintptr_t i = 0; i < count; i++)
		EXPECT_EQ(pthread_create(&t->of[i], NULL, run, (void *)i), 0);
}

static inline void threads_join(struct threads *t)
{
	for (unsigned i = 0; i < t->count; i++)
		EXPECT_EQ(pthread_join(t->of[i], NULL), 0);
}

/* Run body with 1, 2 and 4 workers. */
#define FOR_WORKERS(n) for (unsigned n = 1; n <= 4; n *= 2)

#endif
