/* tests/box/budget_test.c - a box with a memory budget and a data directory: what it holds, and that all are served. */
#include "tests/box/durable_kit.h"
#include "tests/box/kit.h"

#include "box/box.h"

#ifdef NOH_SANITIZED
#define MANY 6000
#define SMALL (UINT64_C(400) << 10)
#else
#define MANY 40000
#define SMALL (UINT64_C(2) << 20)
#endif

enum { ADD, GET, FILL, FILL_MORE, TOUCH, SUM };

static int on_message(noh_turn *t, const noh_msg *m)
{
	uint64_t *n = noh_state(t);
	static const char filling[100000];
	const void *value;
	size_t len;

	switch (m->kind) {
	case ADD:
		++*n;
		return NOH_OK;
	case GET:
		return noh_reply(t, n, sizeof *n);
	case FILL:
	case FILL_MORE:
		EXPECT_EQ(noh_kv_put(t, "filling", 7, filling, m->kind == FILL ? 10000 : sizeof filling), NOH_OK);
		return noh_kv_put(t, "touched", 7, n, sizeof *n);
	case TOUCH:
		++*n;
		EXPECT_EQ(noh_kv_put(t, "touched", 7, n, sizeof *n), NOH_OK);
		return noh_reply(t, n, sizeof *n);
	default:
		len = 0;
		(void)noh_kv_get(t, "filling", 7, &value, &len);
		*n = *n << 32 | len;
		return noh_reply(t, n, sizeof *n);
	}
}

static const noh_type type = { .name = "a", .state_size = 8, .idle_timeout_ms = NOH_NEVER,
			       .on_message = on_message };
static const noh_type fleeting = { .name = "v", .state_size = 8, .idle_timeout_ms = NOH_NEVER,
				   .is_volatile = true, .on_message = on_message };

static noh_box *box;
static char dir[256];

static void open_small(uint64_t budget, uint64_t most_actors)
{
	noh_options o = kit_options(2);

	o.dir = dir;
	o.memory_budget = budget;
	o.max_actors = most_actors;
	box = kit_start(&o, TYPES(&type, &fleeting));
}

static void close_small(void)
{
	shut(box);
	remove_dir(dir);
}

/* Over the budget is not an error but a matter of waiting. */
static int send_patiently(const char *address, uint32_t kind)
{
	uint64_t until = now_us() + SOON * UINT64_C(1000);
	int rc;

	while (((rc = noh_send(box, address, kind, NULL, 0)) == NOH_ENOMEM || rc == NOH_FULL) && now_us() < until)
		nap_us(100);
	return rc;
}

static uint64_t get_patiently(const char *address, uint32_t kind)
{
	uint64_t until = now_us() + SOON * UINT64_C(1000), n = UINT64_MAX;
	size_t len = sizeof n;
	int rc;

	while ((rc = noh_call(box, address, kind, NULL, 0, SOON, &n, &len)) == NOH_ENOMEM && now_us() < until)
		nap_us(100);
	EXPECT_EQ(rc, NOH_OK);
	return n;
}

/* Of all, one message each. Returns the most bytes actors ever took. */
static uint64_t tell_all(const char *name, unsigned count, uint32_t kind)
{
	uint64_t most = 0;
	char address[32];

	for (unsigned i = 0; i < count; i++) {
		snprintf(address, sizeof address, "%s:%u", name, i);
		if (!EXPECT_EQ(send_patiently(address, kind), NOH_OK))
			break;
		if (i % 64 == 0 && stats(box).actor_bytes > most)
			most = stats(box).actor_bytes;
	}
	return most;
}

static void more_actors_than_fit_are_all_served(void)
{
	char address[32];
	uint64_t most;

	(void)fresh_dir(dir, sizeof dir);
	open_small(SMALL, MANY);
	for (int round = 0; round < 2; round++) {
		most = tell_all("a", MANY, ADD);
		EXPECT(most <= SMALL / 2);               /* the rest is for folds and for what waits for them */
	}
	EXPECT(settles(box, "a"));
	for (unsigned i = 0; i < MANY; i += 7) {
		snprintf(address, sizeof address, "a:%u", i);
		if (!EXPECT_EQ(get_patiently(address, GET), 2))
			break;
	}
	EXPECT(stats(box).evictions > MANY);
	EXPECT_EQ(stats_of(box, "a").failed, 0);
	close_small();
}

/* 200 of them with 10 kB each are 2 MB, and their states alone would all fit. */
#define HEAVY 200
static bool has_sent_many_home(void *arg)
{
	(void)arg;
	return stats(box).evictions > HEAVY / 4;
}

static void key_value_parts_are_counted(void)
{
	char address[32];
	uint64_t budget = UINT64_C(1) << 20;

	(void)fresh_dir(dir, sizeof dir);
	open_small(budget, 10000);
	(void)tell_all("a", HEAVY, FILL);
	EXPECT(settles(box, "a"));
	if (!EXPECT(test_wait_until(has_sent_many_home, NULL, SOON)))
		printf("  %llu went, %llu are here with %llu bytes\n", (unsigned long long)stats(box).evictions,
		       (unsigned long long)stats(box).actors, (unsigned long long)stats(box).actor_bytes);
	for (unsigned i = 0; i < HEAVY; i++) {
		snprintf(address, sizeof address, "a:%u", i);
		if (!EXPECT_EQ(get_patiently(address, SUM), 10000))
			break;
	}
	close_small();
}

static bool holds_nobody(void *arg)
{
	(void)arg;
	return stats(box).actors == 0;
}

static void what_goes_gives_back_what_it_was_counted_for(void)
{
	uint64_t before;
	char address[32];

	(void)fresh_dir(dir, sizeof dir);
	open_small(UINT64_C(64) << 20, 10000);
	(void)tell_all("a", HEAVY, ADD);
	EXPECT(settles(box, "a"));
	before = stats(box).actor_bytes;
	(void)tell_all("a", HEAVY, FILL);
	EXPECT(settles(box, "a"));
	EXPECT(stats(box).actor_bytes - before > HEAVY * 10000);
	for (unsigned i = 0; i < HEAVY; i++) {
		snprintf(address, sizeof address, "a:%u", i);
		EXPECT_EQ(noh_deactivate(box, address, 0, SOON), NOH_OK);
	}
	EXPECT(test_wait_until(holds_nobody, NULL, SOON));
	EXPECT(stats(box).actor_bytes < before);
	close_small();
}

/* A small change of a large actor is a short record, and a long state to keep until it is folded: far below what
 * the keeper waits for, far above what memory has for it. By itself nobody would fold for a minute. */
#define LARGE 12
static void short_memory_makes_the_keeper_fold(void)
{
	char address[32];
	uint64_t folds;

	(void)fresh_dir(dir, sizeof dir);
	open_small(UINT64_C(1) << 20, 10000);
	(void)tell_all("a", LARGE, FILL_MORE);
	shut(box);
	open_small(UINT64_C(1) << 20, 10000);
	folds = stats(box).folds;
	for (unsigned i = 0; i < LARGE; i++) {
		snprintf(address, sizeof address, "a:%u", i);
		if (!EXPECT_EQ(get_patiently(address, TOUCH), 1))
			break;
	}
	EXPECT(stats(box).folds > folds);
	for (unsigned i = 0; i < LARGE; i++) {
		snprintf(address, sizeof address, "a:%u", i);
		if (!EXPECT_EQ(get_patiently(address, SUM), UINT64_C(1) << 32 | 100000))
			break;
	}
	close_small();
}

/* States of volatile actors have nowhere else to go: the budget holds for those in use, not for those at rest. */
static void volatile_actors_at_rest_are_beside_the_budget(void)
{
	char address[32];

	(void)fresh_dir(dir, sizeof dir);
	open_small(SMALL, MANY);
	EXPECT(tell_all("v", MANY, ADD) <= SMALL / 2);
	EXPECT(settles(box, "v"));
	EXPECT(stats(box).stored > MANY / 2);
	for (unsigned i = 0; i < MANY; i += 7) {
		snprintf(address, sizeof address, "v:%u", i);
		if (!EXPECT_EQ(get_patiently(address, GET), 1))
			break;
	}
	close_small();
}

/* ── who comes up with others ── */

#define KIDS 4
#define HERD 100

static int comes_with_others(noh_turn *t)
{
	char address[300];
	int rc = NOH_OK;

	for (unsigned k = 0; rc == NOH_OK && k < KIDS; k++) {
		snprintf(address, sizeof address, "a:%s.%u", noh_id(t), k);
		rc = k % 2 ? noh_spawn(t, address, NULL) : noh_tell_to(t, address, ADD, NULL, 0);
	}
	return rc;
}

static const noh_supervision never_given_up = { .base_ms = 1, .cap_ms = 4, .restarts = NOH_NEVER };
static const noh_type boss = { .name = "boss", .state_size = 8, .idle_timeout_ms = NOH_NEVER, .full_mode = NOH_BLOCK,
			       .supervision = &never_given_up, .on_activate = comes_with_others,
			       .on_message = on_message };

static noh_options for_bosses(uint64_t budget)
{
	noh_options o = kit_options(2);

	o.memory_budget = budget;
	o.max_actors = 10000;
	return o;
}

/* As long as it is down it stays in memory, and it is down as long as there is no room: if it took the room itself it would
 * stay so for ever, and nobody else would ever come in. */
static void nobody_waits_for_room_that_it_takes_itself(void)
{
	for (int on_disk = 0; on_disk < 2; on_disk++) {
		uint64_t n = UINT64_MAX;
		size_t len = sizeof n;

		noh_options o = for_bosses(on_disk ? 1000 : 250);

		o.dir = on_disk ? fresh_dir(dir, sizeof dir) : NULL;
		box = kit_start(&o, TYPES(&type, &boss));
		EXPECT_EQ(noh_call(box, "boss:0", GET, NULL, 0, SOON, &n, &len), NOH_OK);
		EXPECT_EQ(n, 0);
		EXPECT_EQ(get_patiently("a:0", GET), 0);
		EXPECT_EQ(get_patiently("a:0.0", GET), 1);
		EXPECT_EQ(stats_of(box, "boss").failed, 0);
		on_disk ? close_small() : shut(box);
	}
}

static void step_all(void)
{
	for (uint32_t i = 0; i < box->sched.worker_count; i++) {
		sched_set_self(&box->sched.workers[i]);
		(void)sched_pass(&box->sched.workers[i]);
	}
	sched_set_self(NULL);
}

/* All are accepted before the first one comes, and then they take more than all the room. The budget still is one: they do
 * not come up with all of theirs at once. */
static void a_herd_that_takes_all_the_room_comes_up_one_by_one(void)
{
	noh_options o = for_bosses(16384);
	uint64_t most = 0, until = now_us() + SOON * UINT64_C(1000);
	char address[32];

	box = kit_open(&o, TYPES(&type, &boss));
	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	for (unsigned i = 0; i < HERD; i++) {
		snprintf(address, sizeof address, "boss:%u", i);
		EXPECT_EQ(noh_send(box, address, ADD, NULL, 0), NOH_OK);
	}
	while (stats_of(box, "boss").handled < HERD && now_us() < until) {
		step_all();
		if (stats(box).actor_bytes > most)
			most = stats(box).actor_bytes;
	}
	EXPECT_EQ(stats_of(box, "boss").handled, HERD);
	EXPECT_EQ(stats_of(box, "boss").failed, 0);
	EXPECT(stats_of(box, "boss").restarts > HERD / 2);       /* there was no room for most of them at first */
	if (!EXPECT(most < 16384 + HERD * 600))                  /* down they have 500 each, up and with theirs 2000 */
		printf("  %llu bytes\n", (unsigned long long)most);
	noh_close(box);
}

/* ── who is refused others in an ordinary turn ── */

static atomic_u64 refusals;

static int wants_others(noh_turn *t, const noh_msg *m)
{
	char address[300];
	int rc = NOH_OK;

	if (m->kind != FILL)
		return on_message(t, m);
	for (unsigned k = 0; rc == NOH_OK && k < KIDS; k++) {
		snprintf(address, sizeof address, "a:%s.%u", noh_id(t), k);
		rc = noh_tell_to(t, address, ADD, NULL, 0);
	}
	if (rc == NOH_ENOMEM)
		add_relaxed(&refusals, 1);
	return rc;
}

static int count_failed(void *user, const noh_event *e)
{
	*(unsigned *)user += strcmp(e->kind, "failed") == 0;
	return 0;
}

/* There is no room but its own, so there will be none. Without supervision that is a failure like any; with it its message is
 * tried again as often as any, and set aside. Both go on. */
static void a_turn_that_is_refused_memory_is_not_run_for_ever(void)
{
	static const noh_supervision twice = { .base_ms = 1, .cap_ms = 4, .restarts = NOH_NEVER, .retries = 2 };

	for (int supervised = 0; supervised < 2; supervised++) {
		noh_type asks = boss;
		noh_options o = for_bosses(250);
		unsigned told = 0;
		uint64_t cursor = 0;

		asks.supervision = supervised ? &twice : NULL;
		asks.on_activate = NULL;
		asks.on_message = wants_others;
		store_relaxed(&refusals, 0);
		box = kit_start(&o, TYPES(&type, &asks));
		EXPECT_EQ(noh_call(box, "boss:0", FILL, NULL, 0, SOON, NULL, NULL), NOH_ENOMEM);
		EXPECT_EQ(load_relaxed(&refusals), supervised ? 3 : 1);
		EXPECT_EQ(get_patiently("boss:0", GET), 0);
		EXPECT_EQ(stats_of(box, "boss").failed, 1);
		EXPECT_EQ(stats_of(box, "boss").restarts, supervised ? 3 : 0);
		EXPECT_EQ(stats_of(box, "boss").set_aside, supervised);
		EXPECT_EQ(noh_events_read(box, &cursor, &(noh_events_filter){ .actor = "boss:0" }, 100, count_failed, &told), NOH_END);
		EXPECT_EQ(told, supervised ? 3 : 1);
		shut(box);
	}
}

/* ── what the system says ── */

static uint64_t rss_anon(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	unsigned long long kb = 0;

	while (f && fgets(line, sizeof line, f) && sscanf(line, "RssAnon: %llu kB", &kb) != 1)
		;
	if (f)
		fclose(f);
	return kb * 1024;
}

/* About three times what fits, in an order that changes pages all over the image. */
#define CROWD 300000
#define WITHIN (UINT64_C(64) << 20)
static void the_process_stays_within_the_budget(void)
{
	uint64_t most = 0;
	char address[32];

#ifdef NOH_SANITIZED
	test_skip("a sanitizer's memory is its own");
	return;
#endif
	if (rss_anon() == 0) {
		test_skip("no RssAnon in /proc/self/status");
		return;
	}
	(void)fresh_dir(dir, sizeof dir);
	open_small(WITHIN, CROWD);
	for (uint64_t i = 0; i < 2 * CROWD; i++) {
		snprintf(address, sizeof address, "a:%012u", (unsigned)(i * 7919 % CROWD));
		if (!EXPECT_EQ(send_patiently(address, ADD), NOH_OK))
			break;
		if (i % 512)
			continue;
		(void)get_patiently(address, GET);       /* messages that wait are not what is measured */
		if (rss_anon() > most)
			most = rss_anon();
	}
	EXPECT(settles(box, "a"));
	if (!EXPECT(most <= WITHIN))
		printf("  %llu MB of %llu\n", (unsigned long long)most >> 20, (unsigned long long)WITHIN >> 20);
	for (unsigned i = 0; i < CROWD; i += 97) {
		snprintf(address, sizeof address, "a:%012u", i);
		if (!EXPECT_EQ(get_patiently(address, GET), 2))
			break;
	}
	EXPECT(stats(box).evictions > CROWD);
	close_small();
}

TEST_MAIN(
	TEST(the_process_stays_within_the_budget),       /* first: others leave memory behind */
	TEST(more_actors_than_fit_are_all_served, "LC-02"),
	TEST(key_value_parts_are_counted),
	TEST(what_goes_gives_back_what_it_was_counted_for),
	TEST(short_memory_makes_the_keeper_fold),
	TEST(volatile_actors_at_rest_are_beside_the_budget),
	TEST(nobody_waits_for_room_that_it_takes_itself),
	TEST(a_herd_that_takes_all_the_room_comes_up_one_by_one),
	TEST(a_turn_that_is_refused_memory_is_not_run_for_ever))
