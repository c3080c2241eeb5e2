/* The event log: told with the turn, kept with the state, read by number, bounded. */
#include "tests/box/durable_kit.h"
#include "tests/box/kit.h"

#include "box/box.h"

#include <signal.h>
#include <sys/wait.h>

enum { TELL, FAIL, REFUSE, MANY, PASS_ON, READ, WAIT, TELL_BAD, QUIET };

static atomic_u32 wait_said;

static int bad_events(noh_turn *t)
{
	static const char long_kind[] = "0123456789012345678901234567890123456789012345678901234567890123";
	char long_reason[NOH_EVENT_REASON + 2] = "";
	int rc = NOH_OK;

	memset(long_reason, 'r', NOH_EVENT_REASON + 1);
	if (noh_emit(t, &(noh_emit_options){ .kind = NULL }) != NOH_EINVAL ||
	    noh_emit(t, &(noh_emit_options){ .kind = "" }) != NOH_EINVAL ||
	    noh_emit(t, &(noh_emit_options){ .kind = "two words" }) != NOH_EINVAL ||
	    noh_emit(t, &(noh_emit_options){ .kind = "line\n" }) != NOH_EINVAL ||
	    noh_emit(t, &(noh_emit_options){ .kind = "k\xc3\xa4se" }) != NOH_EINVAL ||
	    noh_emit(t, &(noh_emit_options){ .kind = long_kind }) != NOH_EINVAL ||
	    noh_emit(t, &(noh_emit_options){ .kind = "k", .from = long_kind }) != NOH_EINVAL ||
	    noh_emit(t, &(noh_emit_options){ .kind = "k", .data = "", .len = NOH_EVENT_DATA + 1 }) != NOH_ETOOBIG ||
	    noh_emit(t, &(noh_emit_options){ .kind = "k", .reason = long_reason }) != NOH_ETOOBIG)
		return noh_fail(t, "an event was taken that is none");
	for (int i = 0; rc == NOH_OK && i < 256; i++)
		rc = noh_emit(t, &(noh_emit_options){ .kind = "k" });
	if (rc != NOH_OK || noh_emit(t, &(noh_emit_options){ .kind = "k" }) != NOH_ETOOBIG)
		return noh_fail(t, "not 256 events");
	return NOH_OK;
}

static int emit_next(noh_turn *t, const char *kind)
{
	uint64_t *count = noh_state(t);

	++*count;
	return noh_emit(t, &(noh_emit_options){ .kind = kind, .from = "before", .to = "after", .reason = "because",
						.revision = *count, .data = count, .len = sizeof *count });
}

static int tell(noh_turn *t, const noh_msg *m)
{
	int rc = NOH_OK;

	switch (m->kind) {
	case TELL:
		return emit_next(t, "told");
	case FAIL:
		(void)emit_next(t, "told");
		return noh_fail(t, "as asked");
	case REFUSE:
		(void)emit_next(t, "told");
		return noh_refuse(t, NULL, 0);
	case MANY:
		for (uint32_t i = 0; rc == NOH_OK && i < *(const uint32_t *)m->body; i++)
			rc = emit_next(t, i % 2 ? "odd" : "even");
		return rc;
	case PASS_ON:
		rc = emit_next(t, "cause");
		return rc == NOH_OK ? noh_tell_to(t, m->body, TELL, NULL, 0) : rc;
	case READ:
		return noh_emit(t, &(noh_emit_options){ .kind = "k" }) == NOH_EREADONLY ? NOH_OK : NOH_EFAILED;
	case WAIT:
		store_relaxed(&wait_said, (uint32_t)-noh_events_wait(noh_turn_box(t), 0, 1));
		return NOH_OK;
	case TELL_BAD:
		return bad_events(t);
	default:
		return NOH_OK;
	}
}

static const noh_kind kinds[] = { { "tell", 0, NULL }, { "fail", 0, NULL }, { "refuse", 0, NULL }, { "many", 0, NULL },
				  { "pass_on", 0, NULL }, { "read", NOH_KIND_READ, NULL }, { "wait", 0, NULL },
				  { "tell_bad", 0, NULL }, { "quiet", 0, NULL } };
static const noh_type teller = { .name = "teller", .state_size = 8, .on_message = tell, .full_mode = NOH_BLOCK,
				 .mailbox_capacity = 1000, .kinds = kinds, .kind_count = 9 };
static const noh_type airy = { .name = "airy", .state_size = 8, .on_message = tell, .full_mode = NOH_BLOCK,
			       .is_volatile = true };

static noh_box *box_in(const char *dir, const noh_options *with)
{
	noh_options o = with ? *with : (noh_options){ .workers = 2 };
	noh_box *box = NULL;

	o.dir = dir;
	o.unpinned = true;
	o.max_actors = 100000;
	o.log = kit_log;
	if (!EXPECT_EQ(noh_open(&box, &o), NOH_OK))
		fprintf(stderr, "%s\n", noh_why());
	EXPECT_EQ(noh_register(box, &teller), NOH_OK);
	EXPECT_EQ(noh_register(box, &airy), NOH_OK);
	EXPECT_EQ(noh_start(box), NOH_OK);
	return box;
}

/* ── a reader that remembers ── */

struct reader {
	uint64_t cursor, count, last_seq, revision, same;
	char     actor[64], kind[64], text[200];
	noh_events_filter filter;
	uint32_t stop_at;
};

static int see(void *user, const noh_event *e)
{
	struct reader *r = user;

	EXPECT(e->seq > r->last_seq);
	r->last_seq = e->seq;
	r->count++;
	r->revision = e->revision;
	snprintf(r->actor, sizeof r->actor, "%s", e->actor);
	snprintf(r->kind, sizeof r->kind, "%s", e->kind);
	snprintf(r->text, sizeof r->text, "%s>%s %s%s", e->from, e->to, e->reason, e->by_box ? " (box)" : "");
	return r->stop_at && r->count == r->stop_at;
}

static int follow(noh_box *box, struct reader *r)
{
	int rc = NOH_OK;

	while (rc == NOH_OK)
		rc = noh_events_read(box, &r->cursor, &r->filter, 7, see, r);
	return rc;
}

static uint64_t newest(noh_box *box)
{
	uint64_t n = 0;

	EXPECT_EQ(noh_events_bounds(box, NULL, &n), NOH_OK);
	return n;
}

static uint64_t oldest(noh_box *box)
{
	uint64_t n = 0;

	EXPECT_EQ(noh_events_bounds(box, &n, NULL), NOH_OK);
	return n;
}

/* ── told with the turn ── */

static void an_event_is_told_with_its_turn_and_only_then(void)
{
	noh_box *box = BOX(2, &teller);
	struct reader r = { .filter.type = "teller", .filter.kind = "told" };
	uint64_t from = 0, to = 0;

	EXPECT(noh_events_bounds(box, &from, &to) == NOH_OK && from == 0 && to == 0);
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT_EQ(call(box, "teller:a", TELL), NOH_OK);
	EXPECT_EQ(noh_events_wait(box, 0, SOON), NOH_OK);
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT(r.count == 1 && r.cursor == 1 && r.revision == 1);
	EXPECT(strcmp(r.actor, "teller:a") == 0 && strcmp(r.kind, "told") == 0 && strcmp(r.text, "before>after because") == 0);
	EXPECT_EQ(call(box, "teller:a", FAIL), NOH_EFAILED);
	EXPECT_EQ(call(box, "teller:a", REFUSE), NOH_REFUSED);
	EXPECT_EQ(call(box, "teller:a", TELL), NOH_OK);
	EXPECT_EQ(call(box, "teller:a", READ), NOH_OK);
	EXPECT_EQ(call(box, "teller:a", TELL_BAD), NOH_OK);
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT(r.count == 2 && r.revision == 2);
	end(box);
}

static void the_same_on_disk(void)
{
	char room[200];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = box_in(dir, NULL);
	struct reader r = { .filter.kind = "told" };

	EXPECT_EQ(call(box, "teller:a", TELL), NOH_OK);
	EXPECT_EQ(follow(box, &r), NOH_END);             /* the answer was on disk, so is the event */
	EXPECT(r.count == 1 && r.cursor == 1);
	EXPECT_EQ(call(box, "teller:a", FAIL), NOH_EFAILED);
	EXPECT_EQ(call(box, "teller:a", REFUSE), NOH_REFUSED);
	EXPECT_EQ(call(box, "airy:a", TELL), NOH_OK);    /* its state is not kept, its event is */
	EXPECT_EQ(call(box, "teller:a", TELL), NOH_OK);
	EXPECT_EQ(noh_sync(box, SOON), NOH_OK);
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT(r.count == 3 && r.revision == 2);
	shut(box);
	remove_dir(dir);
}

static void a_step_tells_all_of_its_events_or_none(void)
{
	char room[200];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = box_in(dir, NULL);
	noh_part good[] = { { "teller:a", TELL, NULL, 0 }, { "teller:b", TELL, NULL, 0 }, { "airy:c", TELL, NULL, 0 } };
	noh_part bad[] = { { "teller:a", TELL, NULL, 0 }, { "airy:c", TELL, NULL, 0 }, { "teller:b", FAIL, NULL, 0 } };
	struct reader r = { .filter.kind = "told" };

	EXPECT_EQ(noh_step(box, good, 3, NULL, NULL, NULL, NULL), NOH_OK);
	EXPECT_EQ(noh_step(box, bad, 3, NULL, NULL, NULL, NULL), NOH_EFAILED);
	EXPECT_EQ(noh_sync(box, SOON), NOH_OK);
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT_EQ(r.count, 3);
	shut(box);
	remove_dir(dir);
}

/* ── order ── */

enum { ACTORS = 20, EACH = 300 };
struct order { uint64_t seq, seen, last[ACTORS], causes, effects; bool wrong; };

static int see_order(void *user, const noh_event *e)
{
	struct order *o = user;
	unsigned a = (unsigned)strtoul(strchr(e->actor, ':') + 1, NULL, 10);

	o->wrong |= e->seq != ++o->seq || a >= ACTORS || e->revision != ++o->last[a];
	o->causes += strcmp(e->kind, "cause") == 0;
	o->effects += strcmp(e->kind, "told") == 0;
	o->wrong |= o->effects > o->causes;      /* what was told by a message comes after what was told by its sender */
	o->seen++;
	return 0;
}

static void no_event_comes_before_its_cause_or_out_of_its_actors_order(void)
{
	char room[200], from[32], to[32];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = box_in(dir, &(noh_options){ .workers = 3, .events_detail = NOH_EVENTS_NONE });
	struct order o = { 0 };
	uint64_t cursor = 0;

	for (unsigned i = 0; i < ACTORS * EACH; i++) {
		snprintf(from, sizeof from, "teller:%u", i % ACTORS);
		snprintf(to, sizeof to, "teller:%u", (i * 7 + 3) % ACTORS);
		EXPECT_EQ(noh_send_wait(box, from, PASS_ON, to, sizeof to, SOON), NOH_OK);
	}
	while (o.seen < 2 * ACTORS * EACH && !o.wrong) {
		int rc = noh_events_read(box, &cursor, NULL, 1000, see_order, &o);

		if (rc == NOH_END && o.seen < 2 * ACTORS * EACH)
			rc = noh_events_wait(box, cursor, SOON);
		if (!EXPECT(rc == NOH_OK || rc == NOH_END))
			break;
	}
	if (!EXPECT(!o.wrong && o.causes == ACTORS * EACH && o.effects == o.causes))
		printf("  %llu causes, %llu effects, newest %llu\n%s", (unsigned long long)o.causes, (unsigned long long)o.effects,
		       (unsigned long long)newest(box), kit.text);
	shut(box);
	remove_dir(dir);
}

/* ── across starts ── */

static void numbers_and_cursors_survive_a_stop(void)
{
	char room[200];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = box_in(dir, NULL);
	struct reader r = { .filter.kind = "told", .stop_at = 30 }, again = { .filter.kind = "told" };
	uint64_t last;

	for (int i = 0; i < 50; i++)
		EXPECT_EQ(call(box, "teller:a", TELL), NOH_OK);
	while (r.count < 30)
		(void)noh_events_read(box, &r.cursor, &r.filter, 100, see, &r);
	EXPECT_EQ(r.revision, 30);
	last = newest(box);
	shut(box);
	box = box_in(dir, NULL);
	EXPECT_EQ(newest(box), last);
	EXPECT_EQ(oldest(box), 1);
	r.stop_at = 0;
	EXPECT_EQ(call(box, "teller:a", TELL), NOH_OK);
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT(r.count == 51 && r.revision == 51);
	EXPECT_EQ(follow(box, &again), NOH_END);
	EXPECT(again.count == 51 && again.cursor == r.cursor);
	shut(box);
	remove_dir(dir);
}

static void numbers_and_cursors_survive_a_kill(void)
{
	char room[200];
	const char *dir = light_dir(room, sizeof room);
	struct reader r = { .filter.kind = "told" };

	for (int life = 0; life < 4; life++) {
		int pipes[2], status;
		uint64_t told = 0;

		EXPECT_EQ(pipe(pipes), 0);
		pid_t pid = fork();

		if (pid == 0) {
			noh_box *box = box_in(dir, NULL);

			for (int i = 0; i < 100; i++) {
				if (call(box, "teller:a", TELL) != NOH_OK)
					_exit(1);
				told = newest(box);
			}
			(void)!write(pipes[1], &told, sizeof told);
			raise(SIGKILL);
		}
		close(pipes[1]);
		EXPECT_EQ(read(pipes[0], &told, sizeof told), sizeof told);
		close(pipes[0]);
		EXPECT(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
		if (life % 2)
			continue;
		noh_box *box = box_in(dir, NULL);        /* every other time: then the tail is two runs long */

		EXPECT(newest(box) >= told);
		EXPECT_EQ(follow(box, &r), NOH_END);
		EXPECT(r.count == (uint64_t)(life + 1) * 100 && r.revision == r.count);
		shut(box);
	}
	remove_dir(dir);
}

/* ── the old end ── */

static uint64_t oldest_in_words(void)
{
	const char *at = strstr(noh_why(), "has the number ");

	return at ? strtoull(at + 15, NULL, 10) : 0;
}

static void fill(noh_box *box, uint32_t turns, uint32_t each)
{
	for (uint32_t i = 0; i < turns; i++)
		EXPECT_EQ(noh_call(box, "teller:a", MANY, &each, sizeof each, SOON, NULL, NULL), NOH_OK);
}

static bool first_is_gone(void *box)
{
	struct reader r = { .cursor = 1 };

	return noh_events_read(box, &r.cursor, NULL, 1, see, &r) == NOH_ETOOOLD;
}

static void the_oldest_go_first_and_an_old_cursor_is_told_where_to_go_on(void)
{
	char room[200];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = box_in(dir, &(noh_options){ .workers = 1, .events_bytes = 100000 });
	struct reader r = { .cursor = 1 }, all = { 0 };

	fill(box, 20, 200);
	EXPECT_EQ(box_fold_now(box, SOON), NOH_OK);
	EXPECT_EQ(newest(box), 4000);
	EXPECT(oldest(box) > 2000 && oldest(box) < 3700);
	EXPECT(test_wait_until(first_is_gone, box, SOON));       /* from memory, a moment later */
	EXPECT_EQ(follow(box, &r), NOH_ETOOOLD);
	EXPECT_EQ(oldest_in_words(), oldest(box));
	EXPECT(r.count == 0 && r.cursor == 1);
	EXPECT_EQ(follow(box, &all), NOH_END);
	EXPECT_EQ(all.count, 4000 - oldest(box) + 1);
	r.cursor = oldest(box) - 1;
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT_EQ(r.count, all.count);
	fill(box, 1, 10);
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT_EQ(r.count, all.count + 10);
	r.cursor = 5000;
	EXPECT_EQ(follow(box, &r), NOH_EINVAL);
	shut(box);
	noh_verified v;

	EXPECT_EQ(noh_verify(dir, NULL, NULL, NULL, &v), NOH_OK);
	remove_dir(dir);
}

static bool none_left(void *box)
{
	return oldest(box) > newest(box);
}

/* What is not folded yet is not old yet. */
static bool none_left_on_disk(void *box)
{
	return box_fold_now(box, SOON) == NOH_OK && none_left(box);
}

static void old_events_go_though_nothing_happens(void)
{
	char room[200];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = box_in(dir, NULL);
	struct reader r = { .cursor = 3 }, all = { 0 };

	fill(box, 5, 10);
	EXPECT_EQ(box_fold_now(box, SOON), NOH_OK);
	EXPECT_EQ(oldest(box), 1);
	EXPECT_EQ(noh_set_events(box, 0, 1, NOH_EVENTS_DEFAULT), NOH_OK);      /* that is told, too */
	EXPECT(test_wait_until(none_left_on_disk, box, SOON));
	EXPECT_EQ(follow(box, &all), NOH_END);
	EXPECT_EQ(newest(box), 51);
	EXPECT_EQ(noh_set_events(box, 0, 0, NOH_EVENTS_DEFAULT), NOH_OK);
	fill(box, 1, 10);
	EXPECT_EQ(follow(box, &r), NOH_ETOOOLD);
	EXPECT_EQ(oldest_in_words(), 52);
	shut(box);
	box = box_in(dir, NULL);
	EXPECT(oldest(box) == 52 && newest(box) >= 62);
	shut(box);
	remove_dir(dir);
}

static void events_in_memory_are_bounded_as_well(void)
{
	noh_box *box = kit_start(&(noh_options){ .workers = 1, .unpinned = true, .events_bytes = 200000, .log = kit_log },
				 TYPES(&teller));
	struct reader r = { .cursor = 1 };

	fill(box, 50, 200);
	EXPECT_EQ(newest(box), 10000);
	EXPECT(oldest(box) > 5000);
	EXPECT_EQ(follow(box, &r), NOH_ETOOOLD);
	EXPECT_EQ(oldest_in_words(), oldest(box));
	end(box);
}

static void old_events_in_memory_go_though_nothing_happens(void)
{
	noh_box *box = BOX(1, &teller);
	struct reader r = { .cursor = 3 }, all = { 0 }, last = { 0 };

	fill(box, 5, 10);
	EXPECT_EQ(oldest(box), 1);
	EXPECT_EQ(noh_set_events(box, 0, 1, NOH_EVENTS_DEFAULT), NOH_OK);      /* that is told, too */
	EXPECT(test_wait_until(none_left, box, SOON));
	EXPECT_EQ(newest(box), 51);
	EXPECT_EQ(follow(box, &all), NOH_END);
	EXPECT_EQ(noh_events_last(box, "teller:a", 5, see, &last), NOH_END);
	EXPECT(all.count == 0 && last.count == 0);
	EXPECT_EQ(noh_set_events(box, 0, 0, NOH_EVENTS_DEFAULT), NOH_OK);
	fill(box, 1, 10);
	EXPECT_EQ(follow(box, &r), NOH_ETOOOLD);
	EXPECT_EQ(oldest_in_words(), 52);
	EXPECT_EQ(follow(box, &all), NOH_END);
	EXPECT_EQ(all.count, 11);
	end(box);
}

static void an_old_cursor_is_told_so_by_a_box_where_nothing_happens(void)
{
	noh_box *box = BOX(1, &teller);

	fill(box, 5, 10);
	EXPECT_EQ(noh_set_events(box, 0, 1, NOH_EVENTS_DEFAULT), NOH_OK);
	EXPECT(test_wait_until(first_is_gone, box, SOON));
	end(box);
}

/* ── reading ── */

static void filters_leave_out_and_the_cursor_moves_on(void)
{
	noh_box *box = BOX(1, &teller, &airy);
	struct reader kind = { .filter.kind = "odd" }, actor = { .filter.actor = "airy:b" }, type = { .filter.type = "airy" },
		      both = { .filter = { .type = "teller", .kind = "told" } }, late = { .filter.since_ms = UINT64_MAX };
	uint32_t n = 10;

	EXPECT_EQ(noh_call(box, "teller:a", MANY, &n, sizeof n, SOON, NULL, NULL), NOH_OK);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(call(box, "airy:b", TELL), NOH_OK);
		EXPECT_EQ(call(box, "airy:c", TELL), NOH_OK);
		EXPECT_EQ(call(box, "teller:airy", TELL), NOH_OK);
	}
	EXPECT(follow(box, &kind) == NOH_END && kind.count == 5);
	EXPECT(follow(box, &actor) == NOH_END && actor.count == 3);
	EXPECT(follow(box, &type) == NOH_END && type.count == 6);
	EXPECT(follow(box, &both) == NOH_END && both.count == 3);
	EXPECT(follow(box, &late) == NOH_END && late.count == 0);
	EXPECT(kind.cursor == 19 && late.cursor == 19);
	end(box);
}

static void the_last_events_of_an_actor_are_found(void)
{
	char room[200];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = box_in(dir, &(noh_options){ .workers = 1, .events_detail = NOH_EVENTS_NONE });
	struct reader r = { 0 };

	fill(box, 3, 100);
	EXPECT_EQ(box_fold_now(box, SOON), NOH_OK);      /* some in the image, some in memory */
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(call(box, "teller:b", TELL), NOH_OK);
	EXPECT_EQ(noh_events_last(box, "teller:b", 3, see, &r), NOH_END);
	EXPECT(r.count == 3 && r.revision == 4);
	memset(&r, 0, sizeof r);
	EXPECT_EQ(noh_events_last(box, "teller:a", 0, see, &r), NOH_END);
	EXPECT(r.count == 10 && r.revision == 300);
	EXPECT_EQ(noh_events_last(box, "teller:nobody", 5, see, &r), NOH_END);
	EXPECT_EQ(r.count, 10);
	EXPECT_EQ(noh_events_last(box, NULL, 5, see, &r), NOH_EINVAL);
	shut(box);
	remove_dir(dir);
}

struct busy_reader { noh_box *box; struct reader r; uint32_t fill; };

/* While we are told more comes: of the same actor, or so many of others that the old end goes. */
static int see_and_tell(void *user, const noh_event *e)
{
	struct busy_reader *b = user;

	(void)see(&b->r, e);
	if (b->fill)
		fill(b->box, b->fill, 200);
	else
		EXPECT_EQ(call(b->box, "teller:b", TELL), NOH_OK);
	return b->r.count == b->r.stop_at;
}

static void the_last_events_are_no_more_than_wanted_though_others_come(void)
{
	noh_box *box = BOX(1, &teller);
	struct busy_reader b = { .box = box, .r.stop_at = 20 };

	for (int i = 0; i < 4; i++)
		EXPECT_EQ(call(box, "teller:b", TELL), NOH_OK);
	EXPECT_EQ(noh_events_last(box, "teller:b", 3, see_and_tell, &b), NOH_END);
	EXPECT(b.r.count == 3 && b.r.revision == 4);
	end(box);
}

static void who_has_heard_enough_of_the_last_events_is_told_no_more(void)
{
	noh_box *box = BOX(1, &teller);
	struct reader r = { .stop_at = 2 };

	for (int i = 0; i < 9; i++)
		EXPECT_EQ(call(box, "teller:b", TELL), NOH_OK);
	EXPECT_EQ(noh_events_last(box, "teller:b", 5, see, &r), NOH_OK);
	EXPECT(r.count == 2 && r.revision == 6);
	end(box);
}

static noh_box *forgetful_box(void)
{
	return kit_start(&(noh_options){ .workers = 1, .unpinned = true, .events_bytes = 200000, .log = kit_log },
			 TYPES(&teller));
}

static void the_last_events_are_those_that_are_left_when_some_go_meanwhile(void)
{
	noh_box *box = forgetful_box();
	struct busy_reader b = { .box = box, .fill = 20 };

	EXPECT_EQ(call(box, "teller:b", TELL), NOH_OK);
	fill(box, 4, 200);                       /* the second is in another piece of memory */
	EXPECT_EQ(call(box, "teller:b", TELL), NOH_OK);
	EXPECT_EQ(noh_events_last(box, "teller:b", 2, see_and_tell, &b), NOH_END);
	EXPECT_EQ(b.r.count, 1);
	end(box);
}

struct filler { noh_box *box; atomic_u32 stop; };

static void *fills(void *arg)
{
	struct filler *w = arg;

	while (!load_acquire(&w->stop))
		fill(w->box, 1, 200);
	return NULL;
}

static void the_last_events_are_found_however_fast_old_ones_go(void)
{
	noh_box *box = forgetful_box();
	struct filler w = { .box = box };
	pthread_t thread;

	fill(box, 20, 200);
	pthread_create(&thread, NULL, fills, &w);
	for (int i = 0; i < 300; i++) {
		struct reader r = { 0 };

		EXPECT_EQ(noh_events_last(box, "teller:a", 5, see, &r), NOH_END);
		EXPECT(r.count <= 5);
	}
	store_release(&w.stop, 1);
	pthread_join(thread, NULL);
	end(box);
}

struct waiter { noh_box *box; uint64_t cursor; int rc; };

static void *waits(void *arg)
{
	struct waiter *w = arg;

	w->rc = noh_events_wait(w->box, w->cursor, SOON);
	return NULL;
}

static void who_waits_is_woken_by_an_event_or_by_the_end(void)
{
	noh_box *box = BOX(1, &teller);
	struct waiter w = { box, 0, 1 };
	pthread_t thread;

	EXPECT_EQ(noh_events_wait(box, 0, 10), NOH_ETIMEOUT);
	pthread_create(&thread, NULL, waits, &w);
	EXPECT_EQ(call(box, "teller:a", TELL), NOH_OK);
	pthread_join(thread, NULL);
	EXPECT_EQ(w.rc, NOH_OK);
	EXPECT_EQ(call(box, "teller:a", WAIT), NOH_OK);
	EXPECT_EQ(load_relaxed(&wait_said), (uint32_t)-NOH_EINTURN);
	w.cursor = newest(box);
	pthread_create(&thread, NULL, waits, &w);
	EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
	pthread_join(thread, NULL);
	EXPECT(w.rc == NOH_ESTOPPED || w.rc == NOH_OK);
	noh_close(box);
}

/* ── what the box tells ── */

static bool has_sum(void *box)
{
	struct reader r = { .filter = { .actor = "teller", .kind = "failed" } };

	return follow(box, &r) == NOH_END && r.count > 0;
}

static void failures_are_told_one_by_one_and_a_flood_of_them_as_a_sum(void)
{
	noh_box *box = BOX(2, &teller);
	struct reader r = { .filter.kind = "failed" }, one = { .filter = { .actor = "teller:a", .kind = "failed" } };

	EXPECT_EQ(call(box, "teller:a", FAIL), NOH_EFAILED);
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT(r.count == 1 && strcmp(r.actor, "teller:a") == 0 && strcmp(r.text, "> as asked (box)") == 0);
	for (int i = 0; i < 500; i++)
		EXPECT_EQ(call(box, "teller:a", FAIL), NOH_EFAILED);
	EXPECT(test_wait_until(has_sum, box, SOON));
	EXPECT_EQ(follow(box, &one), NOH_END);
	EXPECT(one.count >= 10 && one.count < 300);
	end(box);
}

static bool has_dropped(void *box)
{
	struct reader r = { .filter = { .type = "gated", .kind = "dropped" } };

	return follow(box, &r) == NOH_END && r.count > 0 && strcmp(r.actor, "gated") == 0;
}

static int gated(noh_turn *t, const noh_msg *m)
{
	(void)t;
	if (m->kind == 1)
		gate_pass();
	return NOH_OK;
}

static void drops_are_told_as_a_sum(void)
{
	static const noh_type type = { .name = "gated", .on_message = gated, .mailbox_capacity = 4 };
	noh_box *box = BOX(2, &type);
	struct reader r = { .filter.kind = "dropped" };

	gate_shut();
	EXPECT_EQ(noh_send(box, "gated:a", 1, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 100; i++)
		EXPECT_EQ(noh_send(box, "gated:a", 0, NULL, 0), NOH_OK);
	EXPECT(test_wait_until(has_dropped, box, SOON));
	gate_open();
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT(r.count <= 3);
	end(box);
}

static void comings_and_goings_are_told_when_somebody_wants_them(void)
{
	noh_box *box = kit_start(&(noh_options){ .workers = 1, .unpinned = true, .events_detail = NOH_EVENTS_ALL, .log = kit_log },
				 TYPES(&teller));
	struct reader r = { .filter.actor = "teller:a" };

	EXPECT_EQ(call(box, "teller:a", QUIET), NOH_OK);
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT(r.count == 1 && strcmp(r.kind, "activated") == 0 && strcmp(r.text, "not active>active  (box)") == 0);
	EXPECT_EQ(noh_deactivate(box, "teller:a", false, SOON), NOH_OK);
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT(r.count == 2 && strcmp(r.kind, "deactivated") == 0);
	EXPECT(strcmp(r.text, "active>not active somebody asked for it (box)") == 0);
	EXPECT_EQ(noh_set_events(box, 0, 0, NOH_EVENTS_DEFAULT), NOH_OK);
	EXPECT_EQ(call(box, "teller:b", QUIET), NOH_OK);
	EXPECT_EQ(newest(box), 3);                       /* the change itself */
	EXPECT_EQ(noh_set_events(box, 0, 0, NOH_EVENTS_NONE), NOH_OK);
	EXPECT_EQ(call(box, "teller:b", FAIL), NOH_EFAILED);
	EXPECT_EQ(newest(box), 4);
	EXPECT_EQ(call(box, "teller:b", TELL), NOH_OK);
	EXPECT_EQ(newest(box), 5);
	EXPECT_EQ(noh_set_events(box, 0, 0, 17), NOH_EINVAL);
	end(box);
}

static void a_changed_setting_is_told(void)
{
	noh_box *box = BOX(1, &teller);
	struct reader r = { .filter.kind = "config" };
	static const char long_value[] = "/a/path/that/is/longer/than/what/fits/into/from/and/to/which/is/not/much/really";

	EXPECT_EQ(noh_tell_config(box, "box.memory", "1GiB", "2GiB"), NOH_OK);
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT(r.count == 1 && strcmp(r.actor, "") == 0 && strcmp(r.text, "1GiB>2GiB box.memory (box)") == 0);
	EXPECT_EQ(noh_tell_config(box, "users.file", "", long_value), NOH_OK);
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT(r.count == 2 && strstr(r.text, ">/a/path/that") != NULL);
	EXPECT_EQ(noh_tell_config(box, NULL, NULL, NULL), NOH_EINVAL);
	end(box);
}

/* Each once, and only what is another than before. */
static void what_is_changed_through_the_library_is_told_with_both_values(void)
{
	noh_box *box = BOX(1, &teller);
	struct reader r = { .filter.kind = "config" };
	static const noh_limits some = { .per_second = 100, .burst = 7, .turns = 2, .over = NOH_OVER_REFUSE };
	static const char *const wanted[] = { "0>1000000 box.memory (box)", "none>rate 100/7 turns 2 over refuse limits of teller (box)",
					      "300000 ms>never idle timeout of teller (box)", "default>none events.detail (box)",
					      "none>all events.detail (box)", "86400000>1000 events.keep (box)" };

	for (unsigned i = 0; i < 6; i++) {
		for (int twice = 0; twice < 2; twice++) {
			switch (i) {
			case 0: EXPECT_EQ(noh_set_memory_budget(box, 1000000), NOH_OK); break;
			case 1: EXPECT_EQ(noh_set_limits(box, "teller", &some), NOH_OK); break;
			case 2: EXPECT_EQ(noh_set_idle_timeout(box, "teller", NOH_NEVER), NOH_OK); break;
			case 3: EXPECT_EQ(noh_set_events(box, 0, 86400000, NOH_EVENTS_NONE), NOH_OK); break;
			case 4: EXPECT_EQ(noh_set_events(box, 0, 86400000, NOH_EVENTS_ALL), NOH_OK); break;
			default: EXPECT_EQ(noh_set_events(box, 0, 1000, NOH_EVENTS_ALL), NOH_OK); break;
			}
		}
		EXPECT_EQ(follow(box, &r), NOH_END);
		if (!EXPECT(strcmp(r.text, wanted[i]) == 0) || !EXPECT_EQ(r.count, i + 1 + (i > 2)))
			printf("  %s\n  and not %s\n", r.text, wanted[i]);
	}
	end(box);
}

/* ── from outside ── */

static void the_log_is_part_of_backups_and_of_what_is_verified(void)
{
	char room[200], copy[220], back[220];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = box_in(dir, &(noh_options){ .workers = 2, .events_detail = NOH_EVENTS_NONE });
	struct reader r = { 0 };
	noh_dir_info info;
	noh_verified v;

	snprintf(copy, sizeof copy, "%s.copy", dir);
	snprintf(back, sizeof back, "%s.back", dir);
	fill(box, 10, 20);
	EXPECT_EQ(box_fold_now(box, SOON), NOH_OK);
	fill(box, 10, 20);                               /* these are in the journal */
	EXPECT_EQ(noh_backup(box, copy), NOH_OK);
	shut(box);
	EXPECT_EQ(noh_verify(copy, NULL, NULL, NULL, &v), NOH_OK);
	EXPECT_EQ(noh_compact(copy, NULL), NOH_OK);
	EXPECT_EQ(noh_verify(copy, NULL, NULL, NULL, &v), NOH_OK);
	EXPECT_EQ(noh_inspect(copy, &info), NOH_OK);
	EXPECT(info.events == 400 && info.event_seq == 400 && info.event_bytes > 400 * 50);
	EXPECT_EQ(noh_restore(copy, back, NULL, NULL, NULL), NOH_OK);
	box = box_in(back, NULL);
	EXPECT_EQ(follow(box, &r), NOH_END);
	EXPECT(r.count == 400 && r.revision == 400);
	shut(box);
	remove_dir(dir);
	remove_dir(copy);
	remove_dir(back);
}

TEST_MAIN(
	TEST(an_event_is_told_with_its_turn_and_only_then, "EV-01 EV-02"),
	TEST(the_same_on_disk, "EV-01"),
	TEST(a_step_tells_all_of_its_events_or_none),
	TEST(no_event_comes_before_its_cause_or_out_of_its_actors_order),
	TEST(numbers_and_cursors_survive_a_stop, "EV-03"),
	TEST(numbers_and_cursors_survive_a_kill, "EV-03"),
	TEST(the_oldest_go_first_and_an_old_cursor_is_told_where_to_go_on),
	TEST(old_events_go_though_nothing_happens),
	TEST(events_in_memory_are_bounded_as_well),
	TEST(old_events_in_memory_go_though_nothing_happens),
	TEST(an_old_cursor_is_told_so_by_a_box_where_nothing_happens),
	TEST(filters_leave_out_and_the_cursor_moves_on),
	TEST(the_last_events_of_an_actor_are_found),
	TEST(the_last_events_are_no_more_than_wanted_though_others_come),
	TEST(who_has_heard_enough_of_the_last_events_is_told_no_more),
	TEST(the_last_events_are_those_that_are_left_when_some_go_meanwhile),
	TEST(the_last_events_are_found_however_fast_old_ones_go),
	TEST(who_waits_is_woken_by_an_event_or_by_the_end),
	TEST(failures_are_told_one_by_one_and_a_flood_of_them_as_a_sum, "EV-02"),
	TEST(drops_are_told_as_a_sum),
	TEST(comings_and_goings_are_told_when_somebody_wants_them, "LC-03"),
	TEST(what_is_changed_through_the_library_is_told_with_both_values, "CF-20"),
	TEST(a_changed_setting_is_told, "CF-20"),
	TEST(the_log_is_part_of_backups_and_of_what_is_verified))
