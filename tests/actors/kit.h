/* tests/actors/kit.h - the built-in types on a box whose clock stands still until a test moves it.
 *
 * The box is stepped: kit_run runs whatever there is to run, in this thread, so that a test sees each
 * instant as it is. With a directory the types are durable. Tests with real threads use tests/box/kit.h.
 *
 * Owns     one box, its clock and its directory.   Threads  one.
 */
#ifndef NOH_TESTS_ACTORS_KIT_H
#define NOH_TESTS_ACTORS_KIT_H

#include "box/box.h"
#include "noh_actors.h"
#include "tests/box/durable_kit.h"

#include <limits.h>

#define SECOND INT64_C(1000)
#define DAY (INT64_C(24) * 3600 * SECOND)
#define START_MS INT64_C(1700000000000)        /* wall clock when a test begins */

static struct {
	noh_box             *box;
	struct clock_virtual clock;
	char                 dir[256];
	bool                 durable;
	uint64_t             calls;
	char                 log[4096];
	struct { int count, status; size_t len; _Alignas(8) char body[32768]; } heard;
} k;

static const noh_type *kit_also;               /* a second type; NULL: none */

static inline void kit_log(void *user, int level, const char *actor, const char *line)
{
	(void)user;
	(void)level;
	snprintf(k.log, sizeof k.log, "%s: %s", actor, line);
}

static inline int64_t kit_wall(void)
{
	return (int64_t)(load_relaxed(&k.clock.wall_ms) + load_relaxed(&k.clock.ns) / 1000000u);
}

static inline void kit_open(const noh_type *type)
{
	noh_options o = { .workers = 2, .unpinned = true, .max_actors = 10000, .log = kit_log,
			  .dir = k.durable ? k.dir : NULL };

	if (!EXPECT_EQ(box_open(&k.box, &o, &(struct box_seams){ .clock = k.clock.clock }), NOH_OK))
		printf("  %s\n", noh_why());
	EXPECT_EQ(noh_register(k.box, type), NOH_OK);
	if (kit_also)
		EXPECT_EQ(noh_register(k.box, kit_also), NOH_OK);
	EXPECT_EQ(box_start_stepped(k.box), NOH_OK);
}

static inline void kit_begin(const noh_type *type, bool durable)
{
	memset(&k, 0, sizeof k);
	k.durable = durable;
	if (durable)
		light_dir(k.dir, sizeof k.dir);
	clock_virtual_init(&k.clock, UINT64_C(1000000000));
	store_relaxed(&k.clock.wall_ms, (uint64_t)START_MS - 1000u);
	kit_open(type);
}

static inline void kit_end(void)
{
	noh_close(k.box);
	if (k.durable)
		remove_dir(k.dir);
}

static inline bool kit_write_journal(void)
{
	bool wrote = false;
	int rc;

	EXPECT(journal_prepare(k.box->disk.journal) >= 0);       /* a segment, if one is wanted */
	while ((rc = box_journal_round(k.box, true)) == JOURNAL_BUSY || rc == JOURNAL_FULL) {
		wrote = true;
		if (rc == JOURNAL_FULL && !EXPECT(box_keeper_round(k.box) >= 0))
			break;
	}
	return wrote;
}

/* Until nobody has anything to do at this instant. */
static inline void kit_run(bool to_disk)
{
	bool more = true;

	while (more) {
		more = false;
		for (uint32_t i = 0; i < 2; i++) {
			sched_set_self(&k.box->sched.workers[i]);
			while (sched_pass(&k.box->sched.workers[i]) != 0)
				more = true;
			sched_set_self(NULL);
		}
		if (k.durable && to_disk && kit_write_journal())
			more = true;
	}
}

static inline void kit_pass_ms(int64_t ms)
{
	clock_virtual_advance(&k.clock, (uint64_t)ms * 1000000u);
	kit_run(true);
}

/* The process ends and another begins, by as much as by earlier or later on the system's clock. */
static inline void kit_restart(const noh_type *type, int64_t by_ms)
{
	kit_run(true);
	noh_close(k.box);
	store_relaxed(&k.clock.wall_ms, load_relaxed(&k.clock.wall_ms) + (uint64_t)by_ms);
	kit_open(type);
	(void)box_keeper_round(k.box);           /* it wakes whoever has something to do */
	kit_run(true);
}

static inline void kit_done(void *user, int status, const void *answer, size_t len)
{
	(void)user;
	k.heard.count++;
	k.heard.status = status;
	k.heard.len = len;
	memcpy(k.heard.body, answer, len < sizeof k.heard.body ? len : 0);
}

/* Send it, and run until it is answered; key NULL: none. */
static inline int kit_call(const char *address, uint32_t kind, const void *body, size_t len, const char *key)
{
	bool to_disk = k.calls++ % 32 == 0;
	noh_call_options o = { .durability = to_disk ? NOH_DISK : NOH_MEMORY, .timeout_ms = 3600000, .key = key,
			       .key_len = key ? strlen(key) : 0 };

	k.heard.count = 0;
	int rc = noh_call_then_with(k.box, address, kind, body, len, &o, kit_done, NULL);
	if (rc != NOH_OK)
		return rc;
	kit_run(to_disk);
	EXPECT_EQ(k.heard.count, 1);
	return k.heard.status;
}

/* The same for one that must be answered with so many bytes. */
static inline void kit_ask(const char *address, uint32_t kind, const void *body, size_t len, void *answer,
			   size_t size)
{
	memset(answer, 0xee, size);
	if (!EXPECT_EQ(kit_call(address, kind, body, len, NULL), NOH_OK))
		printf("  %s\n", k.log);
	if (EXPECT_EQ(k.heard.len, size))
		memcpy(answer, k.heard.body, size);
}

static inline noh_box_stats kit_stats(void)
{
	noh_box_stats s;

	EXPECT_EQ(noh_get_stats(k.box, &s), NOH_OK);
	return s;
}

/* Run body with a box in memory, and with one on disk. */
#define IN_MEMORY_AND_ON_DISK(durable) for (int durable = 0; durable <= 1; durable++)

#endif
