/* tests/box/poison_test.c - a message that ends the process again and again is set aside, and the box goes on. */
#include "tests/box/durable_kit.h"
#include "tests/box/metrics_kit.h"

#include "core/atomic.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { ADD, GET, POISON, SEND_POISON };

static atomic_u32 recorded;

static int on_message(noh_turn *t, const noh_msg *m)
{
	int64_t *sum = noh_state(t);

	switch (m->kind) {
	case ADD:
		*sum += *(const int64_t *)m->body;
		return noh_reply(t, sum, 8);
	case GET:
		return noh_reply(t, noh_look(t), 8);
	case POISON:                             /* not before its sender's record is on disk */
		while (!load_acquire(&recorded))
			usleep(100);
		raise(SIGKILL);                  /* as a crash would, but without a core */
		return NOH_OK;
	case SEND_POISON:
		*sum += 1;
		return noh_tell_to(t, "sum:victim", POISON, "bad", 3);
	}
	return NOH_EINVAL;
}

static int on_batch(noh_turn *t, const noh_msg *msgs, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		int64_t *sum = noh_state(t);

		if (msgs[i].kind == POISON)
			raise(SIGKILL);
		*sum += 1;
		(void)noh_reply_to(t, &msgs[i], sum, 8);
	}
	return NOH_OK;
}

static const noh_type types[] = {
	{ .name = "sum", .state_size = 8, .on_message = on_message, .full_mode = NOH_BLOCK },
	{ .name = "batch", .state_size = 8, .on_batch = on_batch, .full_mode = NOH_BLOCK },
};

static void quiet(void *user, int level, const char *actor, const char *line)
{
	(void)user; (void)level; (void)actor; (void)line;
}

static void send_poison(noh_box *box);

static noh_box *open_quietly(const char *dir)
{
	noh_box *box = NULL;

	EXPECT_EQ(noh_open(&box, &(noh_options){ .workers = 1, .dir = dir, .unpinned = true, .log = quiet,
						 .max_actors = 1000 }), NOH_OK);
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(noh_register(box, &types[i]), NOH_OK);
	EXPECT_EQ(noh_start(box), NOH_OK);
	return box;
}

/* A process that opens the box and does this; true: it was killed. */
static bool dies(const char *dir, void (*first)(noh_box *box))
{
	int status = 0;

	store_release(&recorded, first != send_poison);
	pid_t child = fork();

	if (child == 0) {
		noh_box *box = open_quietly(dir);

		first(box);
		noh_close(box);
		_exit(0);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

static void send_poison(noh_box *box)
{
	(void)noh_call(box, "sum:sender", SEND_POISON, NULL, 0, 5000, NULL, NULL);
	store_release(&recorded, 1);
	(void)noh_call(box, "sum:victim", GET, NULL, 0, 5000, NULL, NULL);
}

static void ask_victim(noh_box *box)
{
	(void)noh_call(box, "sum:victim", GET, NULL, 0, 5000, NULL, NULL);
}

/* An answer leaves before its message is counted as handled. */
static bool is_settled(void *box)
{
	scrape(box);
	return said("noh_mailbox_depth{type=\"sum\"}") == 0;
}

static void a_recorded_message_that_kills_three_times_is_set_aside(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box_stats stats;
	noh_box *box;

	EXPECT(dies(dir, send_poison));
	EXPECT(dies(dir, ask_victim));           /* it comes again, as recorded messages do */
	EXPECT(dies(dir, ask_victim));
	box = open_quietly(dir);
	EXPECT_EQ(call_i64(box, "sum:victim", GET, 0), 0);
	EXPECT_EQ(call_i64(box, "sum:victim", ADD, 5), 5);
	EXPECT_EQ(call_i64(box, "sum:sender", GET, 0), 1);
	EXPECT_EQ(noh_get_stats(box, &stats), NOH_OK);
	EXPECT_EQ(stats.dead_letters, 1);
	EXPECT(test_wait_until(is_settled, box, 5000));
	EXPECT_EQ(said("noh_quarantined{type=\"sum\"}"), 1);
	EXPECT_EQ(said("noh_messages_dropped_total{type=\"sum\",reason=\"quarantined\"}"), 1);
	EXPECT_EQ(said("noh_messages_processed_total{type=\"sum\",result=\"failed\"}"), 0);
	EXPECT_EQ(said("noh_dead_letters{reason=\"undeliverable\"}"), 0);
	shut(box);
	box = open_quietly(dir);                 /* and it is gone for good */
	scrape(box);
	EXPECT_EQ(said("noh_dead_letters{reason=\"quarantined\"}"), 1);
	EXPECT_EQ(call_i64(box, "sum:victim", GET, 0), 5);
	EXPECT_EQ(noh_get_stats(box, &stats), NOH_OK);
	EXPECT_EQ(stats.dead_letters, 0);
	shut(box);
	remove_dir(dir);
}

static void call_poison(noh_box *box)
{
	(void)noh_call(box, "sum:victim", POISON, "same", 4, 5000, NULL, NULL);
}

static void a_caller_that_insists_is_refused(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box;

	for (int i = 0; i < 3; i++)
		EXPECT(dies(dir, call_poison));
	box = open_quietly(dir);
	EXPECT_EQ(noh_call(box, "sum:victim", POISON, "same", 4, 5000, NULL, NULL), NOH_EPOISON);
	EXPECT_EQ(call_i64(box, "sum:victim", ADD, 5), 5);
	shut(box);
	remove_dir(dir);
}

static void send_batch(noh_box *box)
{
	for (int i = 0; i < 20; i++)
		(void)noh_send(box, "batch:victim", i == 10 ? POISON : ADD, NULL, 0);
	(void)noh_call(box, "batch:victim", ADD, NULL, 0, 5000, NULL, NULL);
}

static void in_a_batch_the_one_message_is_found(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	int deaths = 0;

	while (deaths < 6 && dies(dir, send_batch))
		deaths++;
	EXPECT(deaths >= 3 && deaths <= 4);      /* once for the batch, three times for the message */
	remove_dir(dir);
}

TEST_MAIN(
	TEST(a_recorded_message_that_kills_three_times_is_set_aside),
	TEST(a_caller_that_insists_is_refused),
	TEST(in_a_batch_the_one_message_is_found))
