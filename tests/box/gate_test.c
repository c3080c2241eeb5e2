/* tests/box/gate_test.c - P5, step by step: nothing that could be lost is shown to who waits for the disk, not as an
 * answer, not to a reader, not as an error. The box is stepped: what is not written by hand is not on disk. */
#include "tests/box/durable_kit.h"

#include "box/box.h"

enum { SET, GET, LEAVE, FAIL, RELAY };

static int on_activate(noh_turn *t)
{
	return *(const int64_t *)noh_look(t) == 13 ? noh_fail(t, "thirteen") : NOH_OK;
}

static int on_message(noh_turn *t, const noh_msg *m)
{
	switch (m->kind) {
	case SET:
		*(int64_t *)noh_state(t) = *(const int64_t *)m->body;
		return NOH_OK;
	case GET:
		return noh_reply(t, noh_look(t), 8);
	case LEAVE:
		return noh_stop_self(t);
	case FAIL:
		return *(const int64_t *)noh_look(t) ? noh_fail(t, "not zero") : NOH_OK;
	case RELAY:                              /* the volatile one tells what it has heard */
		return noh_tell_to(t, "relay:1", SET, noh_look(t), 8);
	}
	return NOH_EINVAL;
}

static const noh_type types[] = {
	{ .name = "num", .state_size = 8, .on_message = on_message, .on_activate = on_activate },
	{ .name = "relay", .state_size = 8, .on_message = on_message, .is_volatile = true },
};

static struct { char dir[256]; noh_box *box; } k;
static struct { int count, status; int64_t value; } heard;

static void quiet(void *user, int level, const char *actor, const char *line)
{
	(void)user; (void)level; (void)actor; (void)line;
}

static void start(void)
{
	EXPECT_EQ(noh_open(&k.box, &(noh_options){ .workers = 1, .dir = fresh_dir(k.dir, sizeof k.dir),
						   .max_actors = 1000, .log = quiet }), NOH_OK);
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(noh_register(k.box, &types[i]), NOH_OK);
	EXPECT_EQ(box_start_stepped(k.box), NOH_OK);
}

static void run(void)
{
	struct worker *w = &k.box->sched.workers[0];

	sched_set_self(w);
	while (sched_pass(w) != 0)
		;
	sched_set_self(NULL);
}

static void write_journal(void)
{
	while (box_journal_round(k.box, true) == JOURNAL_BUSY)
		;
	run();
}

static void finish(void)
{
	noh_close(k.box);
	remove_dir(k.dir);
}

static void done(void *user, int status, const void *answer, size_t len)
{
	(void)user;
	heard.count++;
	heard.status = status;
	if (len == 8)
		memcpy(&heard.value, answer, 8);
}

static void call(const char *address, uint32_t kind, int64_t body, int durability)
{
	memset(&heard, 0, sizeof heard);
	EXPECT_EQ(noh_call_then_with(k.box, address, kind, &body, 8,
				     &(noh_call_options){ .durability = durability, .timeout_ms = 100000 }, done,
				     NULL), NOH_OK);
	run();
}

/* Somebody has changed it, and did not wait. */
static void change(const char *address, int64_t value)
{
	call(address, SET, value, NOH_MEMORY);
	EXPECT_EQ(heard.count, 1);
}

static void an_answer_waits_for_its_own_record(void)
{
	start();
	call("num:1", SET, 7, NOH_DISK);
	EXPECT_EQ(heard.count, 0);
	write_journal();
	EXPECT_EQ(heard.count, 1);
	EXPECT_EQ(heard.status, NOH_OK);
	finish();
}

static void a_reader_waits_for_what_it_has_read(void)
{
	start();
	change("num:1", 7);
	call("num:1", GET, 0, NOH_DISK);
	EXPECT_EQ(heard.count, 0);
	write_journal();
	EXPECT_EQ(heard.count, 1);
	EXPECT_EQ(heard.value, 7);
	call("num:1", GET, 0, NOH_DISK);         /* now there is nothing to wait for */
	EXPECT_EQ(heard.count, 1);
	finish();
}

static void who_asks_for_memory_does_not_wait(void)
{
	start();
	change("num:1", 7);
	call("num:1", GET, 0, NOH_MEMORY);
	EXPECT_EQ(heard.count, 1);
	EXPECT_EQ(heard.value, 7);
	finish();
}

static void an_error_waits_for_the_state_it_was_found_in(void)
{
	start();
	change("num:1", 7);
	call("num:1", FAIL, 0, NOH_DISK);
	EXPECT_EQ(heard.count, 0);
	write_journal();
	EXPECT_EQ(heard.count, 1);
	EXPECT_EQ(heard.status, NOH_EFAILED);
	finish();
}

static void a_failed_activation_waits_for_the_state_it_was_found_in(void)
{
	start();
	change("num:1", 13);
	call("num:1", LEAVE, 0, NOH_MEMORY);
	EXPECT_EQ(heard.count, 1);
	call("num:1", GET, 0, NOH_DISK);
	EXPECT_EQ(heard.count, 0);
	write_journal();
	EXPECT_EQ(heard.count, 1);
	EXPECT_EQ(heard.status, NOH_EFAILED);
	finish();
}

static void a_volatile_actor_waits_for_what_it_was_told(void)
{
	start();
	change("num:1", 7);
	call("num:1", RELAY, 0, NOH_MEMORY);
	call("relay:1", GET, 0, NOH_DISK);
	EXPECT_EQ(heard.count, 0);
	write_journal();
	EXPECT_EQ(heard.count, 1);
	EXPECT_EQ(heard.value, 7);
	finish();
}

static void a_refusal_that_looked_at_nothing_comes_at_once(void)
{
	start();
	change("num:1", 7);
	EXPECT_EQ(noh_call_then(k.box, "nobody:1", GET, NULL, 0, 1000, done, NULL), NOH_ENOTYPE);
	finish();
}

TEST_MAIN(
	TEST(an_answer_waits_for_its_own_record, "US-10"),
	TEST(a_reader_waits_for_what_it_has_read, "PL-29"),
	TEST(who_asks_for_memory_does_not_wait),
	TEST(an_error_waits_for_the_state_it_was_found_in),
	TEST(a_failed_activation_waits_for_the_state_it_was_found_in),
	TEST(a_volatile_actor_waits_for_what_it_was_told),
	TEST(a_refusal_that_looked_at_nothing_comes_at_once))
