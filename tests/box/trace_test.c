/* tests/box/trace_test.c - traces: into turns, onward with every message, and what is remembered of them. */
#include "tests/box/durable_kit.h"
#include "tests/box/kit.h"

#include <stdatomic.h>

#define TRACE_ID "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
#define TRACEPARENT "00-" TRACE_ID "-" PARENT "-01"
#define UNSAMPLED "00-" TRACE_ID "-" PARENT "-00"

enum { NOTE, FORWARD, ASK, ANSWERED, SILENT, FAIL, REFUSE, BIG, TELL_ALL, SET_TIMER, SET_TWICE, SET_AND_CANCEL, REPEAT, TICK, KINDS };

struct hop {
	uint64_t          turns;
	noh_promise       who;
	noh_trace_context last;        /* of the last turn */
	int32_t           status;
};

static int forward(noh_turn *t, const noh_msg *m)
{
	const char *to = m->body;

	return m->len ? noh_tell_to(t, to, FORWARD, to + strlen(to) + 1, m->len - strlen(to) - 1) : NOH_OK;
}

/* The body: whom to ask, and for what. */
static int ask_on(noh_turn *t, const noh_msg *m, struct hop *s)
{
	const char *to = m->body;
	noh_ask_options how = { .answer_kind = ANSWERED };
	uint32_t kind = (uint32_t)(to[strlen(to) + 1] - '0');

	s->who = noh_defer(t, m);
	return noh_ask_to(t, to, kind, NULL, 0, &how, NULL);
}

static atomic_uint ticks;

/* It goes on, three times: by a message, and by a schedule of its own. */
static int tick(noh_turn *t, const noh_msg *m)
{
	EXPECT((m->flags & NOH_MSG_TIMER) && m->len == 0);
	if (atomic_fetch_add(&ticks, 1) >= 2)
		return NOH_OK;
	(void)noh_tell_to(t, "hop:told", SILENT, NULL, 0);
	return noh_schedule_once(t, TICK, 1);
}

static int hop_message(noh_turn *t, const noh_msg *m)
{
	struct hop *s = noh_state(t);
	char big[300];

	s->turns++;
	s->status = m->status;
	(void)noh_trace(t, &s->last);
	switch (m->kind) {
	case NOTE: return noh_reply(t, s, sizeof *s);
	case FORWARD: return forward(t, m);
	case ASK: return ask_on(t, m, s);
	case ANSWERED: return noh_answer(t, s->who, NOH_OK, &m->status, sizeof m->status);
	case SILENT: return NOH_OK;
	case FAIL: return noh_fail(t, "as told");
	case REFUSE: return noh_refuse(t, "no", 2);
	case BIG:
		memset(big, 'x', sizeof big);
		EXPECT(m->len == 300 && memcmp(m->body, big, 300) == 0);
		return NOH_OK;
	case TELL_ALL: return noh_publish(t, "news", "hear", 4);
	case SET_TIMER: return noh_schedule_once(t, TICK, 2);
	case SET_TWICE:
		(void)noh_schedule_once(t, TICK, 60000);
		return noh_schedule_once(t, TICK, 2);
	case SET_AND_CANCEL:
		(void)noh_schedule_once(t, TICK, 60000);
		return noh_schedule_cancel(t, TICK);
	case REPEAT: return noh_schedule_every(t, TICK, 2);
	case TICK: return tick(t, m);
	}
	return NOH_OK;
}

static const noh_kind kinds[] = { { .name = "note" }, { .name = "forward" }, { .name = "ask" }, { .name = "answered" },
				  { .name = "silent" }, { .name = "fail" }, { .name = "refuse" }, { .name = "big" },
				  { .name = "tell_all" }, { .name = "set_timer" }, { .name = "set_twice" },
				  { .name = "set_and_cancel" }, { .name = "repeat" }, { .name = "tick", .flags = NOH_KIND_TIMER } };
static const noh_type hop_type = { .name = "hop", .state_size = sizeof(struct hop), .on_message = hop_message,
				   .kinds = kinds, .kind_count = KINDS };

static int batch_run(noh_turn *t, const noh_msg *m, uint32_t n)
{
	(void)m;
	if (n > 1)
		(void)noh_tell_to(t, "hop:after", SILENT, NULL, 0);
	gate_pass();
	return NOH_OK;
}
static const noh_type batch_type = { .name = "batch", .on_batch = batch_run, .mailbox_capacity = 1000 };

static int listener_message(noh_turn *t, const noh_msg *m)
{
	const char *channel = noh_channel(t, m);

	EXPECT(m->kind != 1 || (channel && strcmp(channel, "news") == 0 && m->len == 4 && memcmp(m->body, "hear", 4) == 0));
	return m->kind == 1 ? noh_tell_to(t, "hop:told", SILENT, NULL, 0) : NOH_OK;
}
static const noh_topic news = { .channel = "news", .kind = 1 };
static const noh_type listener_type = { .name = "listener", .on_message = listener_message, .topics = &news, .topic_count = 1 };

/* ── what is remembered ── */

#define MOST 32
static struct shown { uint32_t n; noh_span list[MOST]; char actors[MOST][256], kinds[MOST][32]; } shown;

static void keep(void *user, const noh_span *span)
{
	struct shown *s = user;

	if (s->n == MOST)
		return;
	s->list[s->n] = *span;
	snprintf(s->actors[s->n], 256, "%s", span->actor);
	snprintf(s->kinds[s->n], 32, "%s", span->kind_name);
	s->n++;
}

static uint32_t show(noh_box *box, const char *id)
{
	shown.n = 0;
	(void)noh_trace_show(box, id, keep, &shown);
	return shown.n;
}

static const noh_span *of(const char *actor, uint32_t kind)
{
	static const noh_span none = { .actor = "" };

	for (uint32_t i = 0; i < shown.n; i++)
		if (strcmp(shown.actors[i], actor) == 0 && shown.list[i].kind == kind)
			return &shown.list[i];
	test_failed(__FILE__, __LINE__, "there is no span of %s, kind %u", actor, kind);
	return &none;
}

struct wanted { noh_box *box; uint32_t spans; bool on_disk; };
static bool there(void *arg)
{
	struct wanted *w = arg;

	if (show(w->box, TRACE_ID) < w->spans)
		return false;
	for (uint32_t i = 0; w->on_disk && i < shown.n; i++)
		if (!shown.list[i].at_ns[NOH_ON_DISK])
			return false;
	return true;
}

static bool in_order(const noh_span *s)
{
	uint64_t last = 0;

	for (int i = 0; i < NOH_STAMPS; i++) {
		if (s->at_ns[i] && s->at_ns[i] < last)
			return false;
		last = s->at_ns[i] ? s->at_ns[i] : last;
	}
	return s->at_ns[NOH_RECEIVED] && s->at_ns[NOH_STARTED] && s->at_ns[NOH_ENDED];
}

static int traced(noh_box *box, const char *address, uint32_t kind, const void *body, size_t len, const char *parent,
		  struct hop *answer)
{
	noh_call_options o = { .traceparent = parent, .tracestate = parent ? "rojo=1,congo=2" : NULL };
	size_t room = answer ? sizeof *answer : 0;

	return noh_call_with(box, address, kind, body, len, &o, answer, &room);
}

static void nothing(void *user, int status, const void *answer, size_t len)
{
	(void)user, (void)status, (void)answer, (void)len;
}

/* ── the tests ── */

static void a_turn_can_read_its_trace(void)
{
	noh_box *box = BOX(1, &hop_type);
	struct hop s = { 0 };

	EXPECT_EQ(traced(box, "hop:a", NOTE, NULL, 0, TRACEPARENT, &s), NOH_OK);
	EXPECT(strncmp(s.last.traceparent, "00-" TRACE_ID "-", 36) == 0);
	EXPECT(strcmp(s.last.traceparent + 52, "-01") == 0);
	EXPECT(strncmp(s.last.traceparent + 36, PARENT, 16) != 0);       /* a span of its own */
	EXPECT(strcmp(s.last.tracestate, "rojo=1,congo=2") == 0);
	EXPECT_EQ(show(box, TRACE_ID), 1);
	EXPECT(strcmp(shown.list[0].parent_id, PARENT) == 0);
	EXPECT(strncmp(s.last.traceparent + 36, shown.list[0].span_id, 16) == 0);
	EXPECT(strcmp(shown.actors[0], "hop:a") == 0 && strcmp(shown.kinds[0], "note") == 0);
	EXPECT(in_order(&shown.list[0]));
	EXPECT(shown.list[0].at_ns[NOH_ANSWERED] != 0);
	EXPECT_EQ(shown.list[0].at_ns[NOH_ON_DISK], 0);                  /* there is none */
	EXPECT_EQ(traced(box, "hop:a", NOTE, NULL, 0, NULL, &s), NOH_OK);
	EXPECT(s.last.traceparent[0] == 0 && s.last.tracestate[0] == 0);
	EXPECT_EQ(show(box, TRACE_ID), 1);
	end(box);
}

static void what_is_no_trace_is_ignored_and_the_call_goes_on(void)
{
	noh_box *box = BOX(1, &hop_type);
	struct hop s = { 0 };

	EXPECT_EQ(traced(box, "hop:a", NOTE, NULL, 0, "00-nonsense", &s), NOH_OK);
	EXPECT(s.last.traceparent[0] == 0);
	EXPECT_EQ(noh_trace_show(box, "nonsense", keep, &shown), NOH_EINVAL);
	EXPECT_EQ(noh_trace_show(box, TRACE_ID, keep, &shown), NOH_END);
	EXPECT(strstr(noh_why(), TRACE_ID));
	end(box);
}

static void one_that_is_not_sampled_is_carried_on_but_not_remembered(void)
{
	noh_box *box = BOX(1, &hop_type);
	struct hop s = { 0 };

	EXPECT_EQ(traced(box, "hop:a", FORWARD, "hop:b\0", 6, UNSAMPLED, NULL), NOH_OK);
	do                                       /* what it sent follows its answer */
		EXPECT_EQ(traced(box, "hop:b", NOTE, NULL, 0, UNSAMPLED, &s), NOH_OK);
	while (s.turns < 2);
	EXPECT(strncmp(s.last.traceparent, "00-" TRACE_ID "-", 36) == 0);
	EXPECT(strcmp(s.last.traceparent + 52, "-00") == 0);
	EXPECT_EQ(show(box, TRACE_ID), 0);
	end(box);
}

static void every_message_told_is_a_hop_with_its_own_span(void)
{
	noh_box *box = BOX(2, &hop_type);
	struct wanted all = { .spans = 4 };

	all.box = box;
	EXPECT_EQ(traced(box, "hop:a", FORWARD, "hop:b\0hop:c\0hop:d", 18, TRACEPARENT, NULL), NOH_OK);
	EXPECT(test_wait_until(there, &all, SOON));
	const noh_span *a = of("hop:a", FORWARD), *b = of("hop:b", FORWARD), *c = of("hop:c", FORWARD),
		       *d = of("hop:d", FORWARD);

	EXPECT(strcmp(a->parent_id, PARENT) == 0);
	EXPECT(strcmp(b->parent_id, a->span_id) == 0);
	EXPECT(strcmp(c->parent_id, b->span_id) == 0);
	EXPECT(strcmp(d->parent_id, c->span_id) == 0);
	EXPECT(strcmp(a->span_id, b->span_id) && strcmp(b->span_id, c->span_id) && strcmp(a->span_id, c->span_id));
	EXPECT(in_order(a) && in_order(b) && in_order(c) && in_order(d));
	EXPECT_EQ(d->at_ns[NOH_ANSWERED], 0);    /* nobody waits for it */
	end(box);
}

/* Asked for NOTE (answers), SILENT (an empty answer), FAIL: all of them come back within the trace. */
static void an_answer_comes_back_within_the_trace(void)
{
	static const char *const asked[] = { "hop:b\0000", "hop:b\0004", "hop:b\0005" };
	static const int status[] = { NOH_OK, NOH_OK, NOH_EFAILED };
	static const uint32_t kind[] = { NOTE, SILENT, FAIL };

	for (int i = 0; i < 3; i++) {
		noh_box *box = BOX(2, &hop_type);
		noh_call_options o = { .traceparent = TRACEPARENT };
		int32_t said = -1;
		size_t room = sizeof said;

		EXPECT_EQ(noh_call_with(box, "hop:a", ASK, asked[i], 7, &o, &said, &room), NOH_OK);
		EXPECT_EQ(said, status[i]);
		EXPECT_EQ(show(box, TRACE_ID), 3);
		const noh_span *a = of("hop:a", ASK), *b = of("hop:b", kind[i]), *back = of("hop:a", ANSWERED);

		EXPECT(strcmp(b->parent_id, a->span_id) == 0);
		EXPECT(strcmp(back->parent_id, b->span_id) == 0);
		EXPECT_EQ(b->status, status[i]);
		EXPECT(b->at_ns[NOH_ANSWERED] != 0);
		end(box);
	}
}

static void how_a_turn_ended_is_remembered(void)
{
	noh_box *box = BOX(1, &hop_type);

	EXPECT_EQ(traced(box, "hop:a", REFUSE, NULL, 0, TRACEPARENT, NULL), NOH_REFUSED);
	EXPECT_EQ(traced(box, "hop:a", FAIL, NULL, 0, TRACEPARENT, NULL), NOH_EFAILED);
	EXPECT_EQ(show(box, TRACE_ID), 2);
	EXPECT_EQ(of("hop:a", REFUSE)->status, NOH_REFUSED);
	EXPECT_EQ(of("hop:a", FAIL)->status, NOH_EFAILED);
	end(box);
}

static void a_large_message_keeps_its_body(void)
{
	noh_box *box = BOX(1, &hop_type);
	char big[300];

	memset(big, 'x', sizeof big);
	EXPECT_EQ(traced(box, "hop:a", BIG, big, sizeof big, TRACEPARENT, NULL), NOH_OK);
	EXPECT_EQ(traced(box, "hop:a", BIG, big, sizeof big, NULL, NULL), NOH_OK);
	EXPECT_EQ(show(box, TRACE_ID), 1);
	end(box);
}

static void messages_of_a_batch_have_a_span_each(void)
{
	noh_box *box = BOX(1, &hop_type, &batch_type);
	noh_call_options o = { .traceparent = TRACEPARENT };
	struct wanted all = { .spans = 6 };

	all.box = box;
	gate_shut();
	EXPECT_EQ(noh_send(box, "batch:1", 0, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 5; i++)
		EXPECT_EQ(noh_call_then_with(box, "batch:1", 1, NULL, 0, &o, nothing, NULL), NOH_OK);
	gate_open();
	EXPECT(test_wait_until(there, &all, SOON));
	for (uint32_t i = 0; i < shown.n; i++)
		if (strcmp(shown.actors[i], "batch:1") == 0) {
			EXPECT_EQ(shown.list[i].batch, 5);
			EXPECT(strcmp(shown.list[i].parent_id, PARENT) == 0);
		}
	(void)of("hop:after", SILENT);
	end(box);
}

static void on_disk_comes_between_the_turn_and_the_answer(void)
{
	char dir[256];
	noh_box *box = open_dir(fresh_dir(dir, sizeof dir), 2, &hop_type, 1);
	noh_call_options o = { .traceparent = TRACEPARENT, .key = "k", .key_len = 1 };
	struct wanted all = { .spans = 3, .on_disk = true };

	all.box = box;
	EXPECT_EQ(noh_call_with(box, "hop:a", FORWARD, "hop:b\0hop:c", 12, &o, NULL, NULL), NOH_OK);
	EXPECT(test_wait_until(there, &all, SOON));
	for (uint32_t i = 0; i < shown.n; i++)
		EXPECT(in_order(&shown.list[i]));
	EXPECT(of("hop:a", FORWARD)->at_ns[NOH_ANSWERED] >= of("hop:a", FORWARD)->at_ns[NOH_ON_DISK]);
	/* The same again: the stored answer, and no second turn. */
	EXPECT_EQ(noh_call_with(box, "hop:a", FORWARD, "hop:b\0hop:c", 12, &o, NULL, NULL), NOH_OK);
	EXPECT_EQ(show(box, TRACE_ID), 3);
	EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
	noh_close(box);
	remove_dir(dir);
}

static void asked_of_a_durable_actor_it_comes_back_as_well(void)
{
	char dir[256];
	noh_box *box = open_dir(fresh_dir(dir, sizeof dir), 2, &hop_type, 1);
	struct wanted all = { .spans = 3, .on_disk = true };
	noh_call_options o = { .traceparent = TRACEPARENT };

	all.box = box;
	EXPECT_EQ(noh_call_with(box, "hop:a", ASK, "hop:b\0000", 7, &o, NULL, NULL), NOH_OK);
	EXPECT(test_wait_until(there, &all, SOON));
	EXPECT(strcmp(of("hop:a", ANSWERED)->parent_id, of("hop:b", NOTE)->span_id) == 0);
	EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
	noh_close(box);
	remove_dir(dir);
}

static void sum_up(void *user, const noh_trace_summary *t)
{
	struct shown *s = user;

	snprintf(s->actors[s->n], 256, "%s", t->actor);
	s->list[s->n].batch = t->spans;
	s->list[s->n].at_ns[0] = t->took_ns;
	s->list[s->n].status = t->status;
	s->n++;
}

static void the_longest_traces_are_listed_first(void)
{
	noh_box *box = BOX(1, &hop_type, &batch_type);

	shown.n = 0;
	EXPECT_EQ(noh_trace_list(box, 10, sum_up, &shown), NOH_END);
	for (int i = 1; i <= 5; i++) {
		char parent[56], to[16];

		snprintf(parent, sizeof parent, "00-%032d-%016d-01", i, i);
		snprintf(to, sizeof to, "hop:%d", i);
		EXPECT_EQ(traced(box, to, i == 3 ? FAIL : SILENT, NULL, 0, parent, NULL), i == 3 ? NOH_EFAILED : NOH_OK);
	}
	EXPECT_EQ(noh_trace_list(box, 4, sum_up, &shown), NOH_OK);
	EXPECT_EQ(shown.n, 4);
	for (uint32_t i = 1; i < shown.n; i++)
		EXPECT(shown.list[i - 1].at_ns[0] >= shown.list[i].at_ns[0]);
	for (uint32_t i = 0; i < shown.n; i++)
		EXPECT_EQ(shown.list[i].status, strcmp(shown.actors[i], "hop:3") == 0 ? NOH_EFAILED : NOH_OK);
	EXPECT_EQ(noh_trace_list(box, 0, sum_up, &shown), NOH_EINVAL);
	end(box);
}

static void what_is_published_is_a_hop_to_each_who_listens(void)
{
	noh_box *box = BOX(2, &hop_type, &listener_type);
	struct wanted all = { .spans = 5 };

	all.box = box;
	EXPECT_EQ(noh_activate(box, "listener:x", SOON), NOH_OK);
	EXPECT_EQ(noh_activate(box, "listener:y", SOON), NOH_OK);
	EXPECT_EQ(traced(box, "hop:a", TELL_ALL, NULL, 0, TRACEPARENT, NULL), NOH_OK);
	EXPECT(test_wait_until(there, &all, SOON));
	const noh_span *a = of("hop:a", TELL_ALL), *x = of("listener:x", 1), *y = of("listener:y", 1);

	EXPECT(strcmp(x->parent_id, a->span_id) == 0 && strcmp(y->parent_id, a->span_id) == 0);
	EXPECT(strcmp(x->span_id, y->span_id) != 0);
	EXPECT(in_order(x) && in_order(y));
	EXPECT_EQ(shown.n, 5);                   /* and what they have told */
	end(box);
}

static bool has_ticked(void *n)
{
	return atomic_load(&ticks) >= *(unsigned *)n;
}

static void a_schedule_carries_the_trace_of_the_turn_that_set_it(void)
{
	noh_box *box = BOX(2, &hop_type);
	struct wanted all = { .spans = 3 };
	unsigned three = 3;

	all.box = box;
	atomic_store(&ticks, 0);
	EXPECT_EQ(traced(box, "hop:a", SET_TWICE, NULL, 0, TRACEPARENT, NULL), NOH_OK);
	EXPECT(test_wait_until(has_ticked, &three, SOON));
	EXPECT(test_wait_until(there, &all, SOON));
	const noh_span *a = of("hop:a", SET_TWICE), *tock = of("hop:a", TICK), *told = of("hop:told", SILENT);

	EXPECT(strcmp(tock->parent_id, a->span_id) == 0 && strcmp(told->parent_id, tock->span_id) == 0);
	EXPECT(in_order(tock) && tock->at_ns[NOH_QUEUED] - tock->at_ns[NOH_RECEIVED] >= 1000000);
	EXPECT_EQ(show(box, TRACE_ID), 3);       /* what a timer's turn sets is none of it */
	end(box);
}

static void one_that_repeats_or_is_cancelled_carries_none(void)
{
	noh_box *box = BOX(1, &hop_type);
	unsigned four = 4;
	struct hop last;

	atomic_store(&ticks, 2);
	EXPECT_EQ(traced(box, "hop:a", SET_AND_CANCEL, NULL, 0, TRACEPARENT, NULL), NOH_OK);
	EXPECT_EQ(traced(box, "hop:a", REPEAT, NULL, 0, TRACEPARENT, NULL), NOH_OK);
	EXPECT(test_wait_until(has_ticked, &four, SOON));
	EXPECT_EQ(traced(box, "hop:a", NOTE, NULL, 0, NULL, &last), NOH_OK);
	EXPECT_EQ(show(box, TRACE_ID), 2);
	end(box);
}

TEST_MAIN(
	TEST(a_turn_can_read_its_trace),
	TEST(what_is_no_trace_is_ignored_and_the_call_goes_on),
	TEST(one_that_is_not_sampled_is_carried_on_but_not_remembered),
	TEST(every_message_told_is_a_hop_with_its_own_span),
	TEST(an_answer_comes_back_within_the_trace),
	TEST(how_a_turn_ended_is_remembered),
	TEST(a_large_message_keeps_its_body),
	TEST(messages_of_a_batch_have_a_span_each),
	TEST(on_disk_comes_between_the_turn_and_the_answer),
	TEST(asked_of_a_durable_actor_it_comes_back_as_well),
	TEST(the_longest_traces_are_listed_first),
	TEST(what_is_published_is_a_hop_to_each_who_listens),
	TEST(a_schedule_carries_the_trace_of_the_turn_that_set_it),
	TEST(one_that_repeats_or_is_cancelled_carries_none))
