/* tests/box/limits_back_test.c - a token that was taken for a message is given back if the message is not sent after all:
 * a full mailbox, no memory. And who is thrown out while memory is short hears of it. */
#include "core/mem.h"
#include "tests/box/hands_kit.h"

enum { NOTE, TELL_BIG, FAIL };
enum { BURST = 2, BIG = 100 };

static int told;
static uint64_t notes;
static bool hook_fails;

static int on_message(noh_turn *t, const noh_msg *m)
{
	static const char body[BIG];
	noh_actor to;

	switch (m->kind) {
	case TELL_BIG:
		memcpy(&to, m->body, sizeof to);
		mem_fail_at(1, 1);
		told = noh_tell(t, to, NOTE, body, sizeof body);
		mem_fail_at(0, 0);
		return NOH_OK;
	case FAIL:
		return noh_fail(t, "as it was told to");
	default:
		*(uint64_t *)noh_state(t) += 1;
		notes++;
		return NOH_OK;
	}
}

/* From here on there is no memory. */
static int on_deactivate(noh_turn *t)
{
	(void)t;
	if (hook_fails)
		mem_fail_at(1, 1);
	return NOH_OK;
}

static const noh_supervision strict = { .base_ms = 1, .cap_ms = 5, .restarts = 1, .then = NOH_THEN_QUARANTINE };
#define REFUSES(burst) { .actor_per_second = 0.001, .actor_burst = (burst), .over = NOH_OVER_REFUSE }
static const noh_type tight = { .name = "tight", .state_size = 8, .mailbox_capacity = 1, .full_mode = NOH_DROP_NEWEST,
				.idle_timeout_ms = NOH_NEVER, .on_message = on_message, .limits = REFUSES(BURST) };
static const noh_type hears = { .name = "hears", .state_size = 8, .mailbox_capacity = 1, .full_mode = NOH_DROP_NEWEST,
				.idle_timeout_ms = NOH_NEVER, .on_message = on_message, .limits = REFUSES(3),
				.topics = (const noh_topic[]){ { "news", NOTE } }, .topic_count = 1 };
static const noh_type free_type = { .name = "free", .state_size = 8, .on_message = on_message };
static const noh_type jailed = { .name = "jailed", .state_size = 8, .idle_timeout_ms = NOH_NEVER, .on_message = on_message,
				 .on_deactivate = on_deactivate, .supervision = &strict };

static noh_box *stepped(void)
{
	notes = 0;
	hook_fails = false;
	return hands_start(TYPES(&tight, &hears, &free_type, &jailed));
}

/* ── tokens ── */

static void a_full_mailbox_takes_no_token(void)
{
	noh_box *box = stepped();

	EXPECT_EQ(noh_send(box, "tight:a", NOTE, NULL, 0), NOH_OK);
	for (int i = 0; i < 5; i++)
		EXPECT_EQ(noh_send(box, "tight:a", NOTE, NULL, 0), NOH_FULL);
	hands_run(box);
	EXPECT_EQ(noh_send(box, "tight:a", NOTE, NULL, 0), NOH_OK);
	hands_run(box);
	EXPECT_EQ(noh_send(box, "tight:a", NOTE, NULL, 0), NOH_ERATE);
	EXPECT_EQ(notes, BURST);
	noh_close(box);
}

static void a_message_there_is_no_memory_for_takes_no_token(void)
{
	noh_box *box = stepped();
	noh_actor ref;

	EXPECT_EQ(noh_ref(box, "tight:a", &ref), NOH_OK);
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(noh_send(box, "free:x", TELL_BIG, &ref, sizeof ref), NOH_OK);
		hands_run(box);
		EXPECT_EQ(told, NOH_ENOMEM);
	}
	for (int i = 0; i < BURST; i++) {
		EXPECT_EQ(noh_send(box, "tight:a", NOTE, NULL, 0), NOH_OK);
		hands_run(box);
	}
	EXPECT_EQ(notes, BURST);
	noh_close(box);
}

static void an_event_that_finds_no_room_takes_no_token(void)
{
	noh_box *box = stepped();

	EXPECT_EQ(noh_send(box, "hears:a", NOTE, NULL, 0), NOH_OK);      /* the first token */
	hands_run(box);
	EXPECT_EQ(noh_publish_to(box, "news", "x", 1), 1);               /* the second */
	for (int i = 0; i < 5; i++)
		EXPECT_EQ(noh_publish_to(box, "news", "x", 1), 0);
	EXPECT_EQ(stats_of(box, "hears").refused_rate, 0);
	hands_run(box);
	EXPECT_EQ(noh_publish_to(box, "news", "x", 1), 1);
	hands_run(box);
	EXPECT_EQ(notes, 3);
	noh_close(box);
}

/* ── thrown out ── */

static void told_status(void *user, int status, const void *answer, size_t len)
{
	(void)answer, (void)len;
	*(int *)user = status;
}

static void force_out(noh_box *box, const char *address, int *status)
{
	struct port *p = sched_port(&box->sched);        /* noh_deactivate would wait for this thread */
	struct sysmsg *n = node_take(p, SYS_DEACTIVATE);
	struct cell *c;
	uint32_t gen;

	*status = 1;
	EXPECT_EQ(sched_resolve(p, address, strlen(address), &c, &gen), NOH_OK);
	EXPECT(cell_ext(c) != NULL);
	n->status = 1;
	n->token = pending_then(p, told_status, status);
	sched_sys(p, c, gen, n);
	sched_port_done(p);
}

/* It was given up, and what it had changed could not be stored. */
static void who_cannot_be_stored_is_not_thrown_out_and_whoever_asked_is_told(void)
{
	noh_box *box = stepped();
	int status;

	EXPECT_EQ(noh_send(box, "jailed:a", NOTE, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_send(box, "jailed:a", FAIL, NULL, 0), NOH_OK);
	hook_fails = true;
	for (int i = 0; i < 10; i++) {                   /* it is restarted, and fails again */
		hands_run(box);
		clock_virtual_advance(&hands, 10000000);
	}
	EXPECT_EQ(status_of(box, "jailed:a").life, NOH_NOT_ACTIVE);
	mem_fail_at(0, 0);
	force_out(box, "jailed:a", &status);
	mem_fail_at(1, 1);
	hands_run(box);
	mem_fail_at(0, 0);
	EXPECT_EQ(status, NOH_ENOMEM);
	force_out(box, "jailed:a", &status);
	hands_run(box);
	EXPECT_EQ(status, NOH_OK);
	noh_close(box);
}

TEST_MAIN(TEST(a_full_mailbox_takes_no_token, "MB-11"),
	  TEST(a_message_there_is_no_memory_for_takes_no_token, "MB-11"),
	  TEST(an_event_that_finds_no_room_takes_no_token, "MB-11"),
	  TEST(who_cannot_be_stored_is_not_thrown_out_and_whoever_asked_is_told))
