/* tests/box/dead_test.c - messages that were set aside: told of, sent again exactly once, forgotten; and schedules, told of
 * and taken away. */
#include "tests/box/durable_kit.h"

#include "core/atomic.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

enum { GET, POISON, TICK, ARM, KINDS };

static atomic_u32 mended;                  /* then the message that killed adds to the sum */

static int on_message(noh_turn *t, const noh_msg *m)
{
	int64_t *sum = noh_state(t);
	uint64_t ms;

	switch (m->kind) {
	case GET:
		return noh_reply(t, sum, 8);
	case POISON:
		if (!load_relaxed(&mended))
			raise(SIGKILL);
		*sum += m->len;
		return NOH_OK;
	case TICK:
		*sum += 1000;
		return NOH_OK;
	case ARM:
		memcpy(&ms, m->body, sizeof ms);
		if (ms % 2)
			return noh_schedule_every(t, TICK, ms);
		return noh_schedule_once(t, TICK, ms);
	}
	return NOH_EINVAL;
}

static const noh_kind kinds[KINDS] = { { .name = "get" }, { .name = "poison" }, { .name = "tick" }, { .name = "arm" } };
static const noh_type types[] = {
	{ .name = "sum", .state_size = 8, .on_message = on_message, .full_mode = NOH_BLOCK, .kinds = kinds, .kind_count = KINDS },
	{ .name = "other", .state_size = 8, .on_message = on_message, .full_mode = NOH_BLOCK, .kinds = kinds, .kind_count = KINDS },
};

static void quiet(void *user, int level, const char *actor, const char *line)
{
	(void)user; (void)level; (void)actor; (void)line;
}

static noh_box *open_box(const char *dir)
{
	noh_box *box = NULL;

	EXPECT_EQ(noh_open(&box, &(noh_options){ .workers = 2, .dir = dir, .unpinned = true, .log = quiet,
						 .max_actors = 1000 }), NOH_OK);
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(noh_register(box, &types[i]), NOH_OK);
	EXPECT_EQ(noh_start(box), NOH_OK);
	return box;
}

/* A process of its own that opens the box and does this; true: it was killed. */
static bool dies(const char *dir, void (*work)(noh_box *box))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		noh_box *box = open_box(dir);

		work(box);
		noh_close(box);
		_exit(0);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

static void poison(noh_box *box)
{
	(void)noh_call(box, "sum:victim", POISON, "bad", 3, 5000, NULL, NULL);
}

/* Three times it kills, the fourth time it is set aside. The box is open, and its code is mended. */
static noh_box *with_one_dead(const char *dir)
{
	store_relaxed(&mended, 0);
	for (int i = 0; i < 3; i++)
		EXPECT(dies(dir, poison));
	noh_box *box = open_box(dir);

	EXPECT_EQ(noh_call(box, "sum:victim", POISON, "bad", 3, 5000, NULL, NULL), NOH_EPOISON);
	store_relaxed(&mended, 1);
	return box;
}

struct seen {
	unsigned count;
	noh_dead last;
	char     address[256], reason[256], body[64], kind[32];
};

static int see(void *user, const noh_dead *d)
{
	struct seen *s = user;

	s->count++;
	s->last = *d;
	snprintf(s->address, sizeof s->address, "%s", d->address);
	snprintf(s->reason, sizeof s->reason, "%s", d->reason);
	snprintf(s->kind, sizeof s->kind, "%s", d->kind_name);
	snprintf(s->body, sizeof s->body, "%.*s", (int)d->len, (const char *)d->body);
	return 0;
}

static struct seen list_dead(noh_box *box, const char *address, const char *after)
{
	struct seen s = { .count = 0 };

	EXPECT_EQ(noh_dead_list(box, address, after, 10000, see, &s), NOH_OK);
	return s;
}

static int64_t sum_of(noh_box *box, const char *address)
{
	return call_i64(box, address, GET, 0);
}

static void a_message_set_aside_is_told_with_all_it_was(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = with_one_dead(dir);
	struct seen s = list_dead(box, NULL, NULL), again = { .count = 0 };

	EXPECT_EQ(s.count, 1);
	EXPECT(strcmp(s.address, "sum:victim") == 0);
	EXPECT(strcmp(s.kind, "poison") == 0);
	EXPECT(strcmp(s.body, "bad") == 0);
	EXPECT(strstr(s.reason, "each time") != NULL);
	EXPECT(s.last.at_ms > 1700000000000);
	EXPECT_EQ(list_dead(box, "sum:victim", NULL).count, 1);
	EXPECT_EQ(list_dead(box, "sum:other", NULL).count, 0);
	EXPECT_EQ(list_dead(box, NULL, s.last.id).count, 0);             /* nothing behind it */
	EXPECT_EQ(noh_dead_get(box, s.last.id, see, &again), NOH_OK);
	EXPECT(again.count == 1 && strcmp(again.body, "bad") == 0);
	EXPECT_EQ(noh_dead_get(box, "1-1", see, &again), NOH_END);
	EXPECT_EQ(noh_dead_get(box, "1-01", see, &again), NOH_EINVAL);
	EXPECT_EQ(noh_dead_get(box, "x", see, &again), NOH_EINVAL);
	shut(box);
	remove_dir(dir);
}

static void redriven_it_is_handled_once_however_often_one_asks(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = with_one_dead(dir);
	struct seen s = list_dead(box, NULL, NULL);

	for (int i = 0; i < 3; i++)              /* its row is not folded away yet: the key sees to it */
		EXPECT_EQ(noh_dead_redrive(box, s.last.id, 5000), NOH_OK);
	EXPECT_EQ(noh_dead_purge(box, s.last.id, 5000), NOH_EIDEM);
	EXPECT_EQ(sum_of(box, "sum:victim"), 3);
	EXPECT_EQ(list_dead(box, NULL, NULL).count, 0);
	EXPECT_EQ(noh_dead_redrive(box, s.last.id, 5000), NOH_END);
	shut(box);
	box = open_box(dir);
	EXPECT_EQ(list_dead(box, NULL, NULL).count, 0);
	EXPECT_EQ(sum_of(box, "sum:victim"), 3);
	shut(box);
	remove_dir(dir);
}

static char the_id[44];

static void redrive_and_die(noh_box *box)
{
	if (noh_dead_redrive(box, the_id, 5000) == NOH_OK)
		raise(SIGKILL);
}

static void redriven_before_a_crash_it_is_handled_once_after_it(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = with_one_dead(dir);
	struct seen s = list_dead(box, NULL, NULL);

	shut(box);
	memcpy(the_id, s.last.id, sizeof the_id);
	EXPECT(dies(dir, redrive_and_die));
	EXPECT(dies(dir, redrive_and_die));      /* asked again: the tail of the journal knows the key */
	box = open_box(dir);
	EXPECT_EQ(list_dead(box, NULL, NULL).count, 0);
	EXPECT_EQ(sum_of(box, "sum:victim"), 3);
	shut(box);
	remove_dir(dir);
}

static void purged_it_is_gone(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = with_one_dead(dir);
	struct seen s = list_dead(box, NULL, NULL);

	EXPECT_EQ(noh_dead_purge(box, s.last.id, 5000), NOH_OK);
	EXPECT_EQ(noh_dead_redrive(box, s.last.id, 5000), NOH_EIDEM);
	EXPECT_EQ(list_dead(box, NULL, NULL).count, 0);
	EXPECT_EQ(sum_of(box, "sum:victim"), 0);
	shut(box);
	remove_dir(dir);
}

static void nobody_else_can_make_the_clerk_work(void)
{
	char room[256], forged[4096] = { 0 };
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_box(dir);

	EXPECT(noh_call(box, "noh.clerk:dead", 0, NULL, 0, 5000, NULL, NULL) < 0);
	memset(forged, 0xff, sizeof forged);     /* lengths far beyond it */
	EXPECT(noh_call(box, "noh.clerk:dead", 0, forged, sizeof forged, 5000, NULL, NULL) < 0);
	EXPECT(noh_call(box, "noh.clerk:x", 1, forged, 8, 5000, NULL, NULL) < 0);
	EXPECT_EQ(sum_of(box, "sum:a"), 0);
	shut(box);
	remove_dir(dir);
}

/* ── schedules ── */

struct timers {
	unsigned count;
	char     text[2048];
};

static void note(void *user, const noh_scheduled *s)
{
	struct timers *t = user;
	size_t at = strlen(t->text);

	t->count++;
	snprintf(t->text + at, sizeof t->text - at, "%s %s %llu,", s->address, s->kind_name, (unsigned long long)s->period_ms);
}

static void arm(noh_box *box, const char *address, uint64_t ms)
{
	EXPECT_EQ(noh_call(box, address, ARM, &ms, sizeof ms, 5000, NULL, NULL), NOH_OK);
}

static struct timers list_timers(noh_box *box, const char *type, const char *address)
{
	struct timers t = { .count = 0 };
	char cursor[NOH_CURSOR] = "";

	EXPECT_EQ(noh_schedule_list(box, type, address, cursor, 0, 10000, note, &t), NOH_OK);
	EXPECT(cursor[0] == 0);
	return t;
}

static void schedules_are_told_soonest_first(void)
{
	char room[256], cursor[NOH_CURSOR] = "";
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_box(dir);
	struct timers t = { .count = 0 };

	arm(box, "sum:late", 9000000);
	arm(box, "sum:soon", 3600001);
	arm(box, "other:middle", 6000000);
	EXPECT(strcmp(list_timers(box, NULL, NULL).text, "sum:soon tick 3600001,other:middle tick 0,sum:late tick 0,") == 0);
	EXPECT(strcmp(list_timers(box, "sum", NULL).text, "sum:soon tick 3600001,sum:late tick 0,") == 0);
	EXPECT(strcmp(list_timers(box, NULL, "other:middle").text, "other:middle tick 0,") == 0);
	EXPECT_EQ(list_timers(box, "none", NULL).count, 0);
	EXPECT_EQ(list_timers(box, NULL, "sum:nobody").count, 0);
	for (int page = 0; page < 3; page++) {   /* one at a time comes to the same */
		EXPECT_EQ(noh_schedule_list(box, NULL, NULL, cursor, 1, 10000, note, &t), NOH_OK);
		EXPECT_EQ(t.count, page + 1);
		EXPECT((cursor[0] == 0) == (page == 2));
	}
	EXPECT(strcmp(t.text, "sum:soon tick 3600001,other:middle tick 0,sum:late tick 0,") == 0);
	snprintf(cursor, sizeof cursor, "nonsense");
	EXPECT_EQ(noh_schedule_list(box, NULL, NULL, cursor, 1, 10000, note, &t), NOH_EINVAL);
	shut(box);
	remove_dir(dir);
}

static void a_schedule_that_was_dropped_never_fires(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_box(dir);

	arm(box, "sum:a", 300);
	arm(box, "sum:b", 300);
	EXPECT_EQ(noh_schedule_drop(box, "sum:a", TICK, 5000), NOH_OK);
	EXPECT_EQ(noh_schedule_drop(box, "sum:a", TICK, 5000), NOH_END);
	EXPECT_EQ(noh_schedule_drop(box, "sum:never", TICK, 5000), NOH_END);
	EXPECT_EQ(noh_schedule_drop(box, "none:x", TICK, 5000), NOH_ENOTYPE);
	for (int i = 0; i < 1000 && sum_of(box, "sum:b") == 0; i++)
		usleep(5000);
	EXPECT_EQ(sum_of(box, "sum:b"), 1000);   /* its neighbour's has */
	EXPECT_EQ(sum_of(box, "sum:a"), 0);
	shut(box);
	remove_dir(dir);
}

static void drop_and_die(noh_box *box)
{
	if (noh_schedule_drop(box, "sum:a", TICK, 5000) == NOH_OK)
		raise(SIGKILL);
}

static void a_schedule_dropped_before_a_crash_is_gone_after_it(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_box(dir);

	arm(box, "sum:a", 3600000);
	shut(box);
	EXPECT(dies(dir, drop_and_die));         /* it was in storage: it is woken for that */
	box = open_box(dir);
	EXPECT_EQ(list_timers(box, NULL, NULL).count, 0);
	shut(box);
	remove_dir(dir);
}

TEST_MAIN(
	TEST(a_message_set_aside_is_told_with_all_it_was),
	TEST(redriven_it_is_handled_once_however_often_one_asks),
	TEST(redriven_before_a_crash_it_is_handled_once_after_it),
	TEST(purged_it_is_gone),
	TEST(nobody_else_can_make_the_clerk_work),
	TEST(schedules_are_told_soonest_first),
	TEST(a_schedule_that_was_dropped_never_fires),
	TEST(a_schedule_dropped_before_a_crash_is_gone_after_it))
