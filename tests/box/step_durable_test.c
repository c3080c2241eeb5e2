/* tests/box/step_durable_test.c - steps over several actors on disk: after a crash all of one or none of it
 * (P4, P6), nothing is told before it is there (P5), and a key makes it happen once (P7). */
#include "tests/box/durable_kit.h"
#include "tests/box/step_kit.h"

#include "box/box.h"
#include "core/mem.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static int fat_message(noh_turn *t, const noh_msg *m)
{
	if (m->kind == ADD)
		memset(noh_state(t), *(const char *)m->body, 400000);
	return noh_reply(t, (const char *)noh_look(t) + 399992, 8);
}

static const noh_type light_type = { .name = "light", .state_size = sizeof(struct purse), .is_volatile = true,
				     .on_message = purse_message };
static const noh_type fat_type = { .name = "fat", .state_size = 400000, .on_message = fat_message };

static noh_box *open_types(const char *dir, unsigned workers)
{
	noh_type types[] = { purse_type, shown_type, light_type, fat_type };

	return open_dir(dir, workers, types, 4);
}

static noh_call_options key(const char *text)
{
	return (noh_call_options){ .key = text, .key_len = strlen(text), .timeout_ms = SOON };
}

/* ── on disk ── */

static void a_step_that_was_answered_is_there_after_a_restart(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_part parts[4] = { part_of("purse:a", KEEP, N(5)), part_of("shown:b", ADD, N(7)),
			      part_of("light:c", ADD, N(9)), part_of("purse:d", ADD, N(11)) };
	struct order o = { .n = 3, .to = "purse:e" };
	noh_part bad[4] = { part_of("purse:a", KEEP, N(5)), { "purse:f", TELL, &o, sizeof o },
			    part_of("light:c", ADD, N(9)), part_of("purse:d", FAIL, N(1)) };

	for (int round = 0; round < 4; round++) {
		noh_box *box = open_types(dir, round % 2 ? 2 : 1);

		EXPECT_EQ(balance(box, "purse:a"), 5 * round);
		EXPECT_EQ(balance(box, "shown:b"), 7 * round);
		EXPECT_EQ(balance(box, "light:c"), 0);
		EXPECT_EQ(balance(box, "purse:d"), 11 * round);
		EXPECT_EQ(balance(box, "purse:e"), 0);
		EXPECT_EQ(step(box, parts, 4), NOH_OK);
		EXPECT_EQ(balance(box, "light:c"), 9);
		EXPECT_EQ(step(box, bad, 4), NOH_EFAILED);
		if (round % 2)
			shut(box);
		else
			noh_close(box);
	}
	remove_dir(dir);
}

static void a_step_larger_than_a_frame_is_one_all_the_same(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	static const char *const names[4] = { "fat:1", "fat:2", "fat:3", "fat:4" };

	for (char round = 1; round <= 3; round++) {
		noh_box *box = open_types(dir, 2);
		noh_part parts[5];

		for (int i = 0; i < 4; i++) {
			EXPECT_EQ(get(box, names[i], GET) & 0xff, round - 1);
			parts[i] = (noh_part){ names[i], ADD, &round, 1 };
		}
		parts[4] = part_of("purse:a", ADD, N(1));
		EXPECT_EQ(step(box, parts, 5), NOH_OK);
		noh_close(box);
	}
	remove_dir(dir);
}

/* ── before it is on disk ── */

struct told { atomic_u64 times; int status; int64_t answer[2]; };

static void note(void *user, int status, const noh_part_answer *answers, size_t count)
{
	struct told *told = user;

	told->status = status;
	for (size_t i = 0; i < 2 && i < count; i++)
		told->answer[i] = answers[i].len >= 8 ? *(const int64_t *)answers[i].body : -1;
	add_seq_cst(&told->times, 1);
}

static noh_box *open_stepped(const char *dir)
{
	noh_options o = { .workers = 1, .dir = dir, .unpinned = true, .max_actors = 1000, .log = kit_log };
	noh_box *box = NULL;

	EXPECT_EQ(noh_open(&box, &o), NOH_OK);
	EXPECT_EQ(noh_register(box, &purse_type), NOH_OK);
	EXPECT_EQ(noh_register(box, &light_type), NOH_OK);
	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	box->sched.journal.take = NULL;          /* the journal is written when the test says so */
	sched_set_self(&box->sched.workers[0]);
	return box;
}

static void close_stepped(noh_box *box)
{
	sched_set_self(NULL);
	noh_close(box);
}

static void pass(noh_box *box)
{
	while (sched_pass(&box->sched.workers[0]))
		;
}

static void to_disk(noh_box *box)
{
	for (int i = 0; i < 5; i++)
		(void)box_journal_round(box, true);
	(void)box_journal_round(box, true);
}

static void nothing_of_a_step_is_told_before_it_is_on_disk(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_stepped(dir);
	noh_part parts[2] = { part_of("purse:a", ADD, N(5)), part_of("light:b", ADD, N(7)) };
	noh_part look[2] = { part_of("purse:c", GET, N(0)), part_of("light:b", GET, N(0)) };
	noh_part no[2] = { part_of("purse:c", ADD, N(1)), part_of("purse:a", TAKE, N(100)) };
	noh_call_options at_once = { .durability = NOH_MEMORY };
	struct told told[5] = { 0 };

	EXPECT_EQ(noh_step_then(box, parts, 2, NULL, note, &told[0]), NOH_OK);
	EXPECT_EQ(noh_step_then(box, look, 2, NULL, note, &told[1]), NOH_OK);    /* only looks at what it did */
	EXPECT_EQ(noh_step_then(box, no, 2, NULL, note, &told[2]), NOH_OK);      /* and is refused for it */
	EXPECT_EQ(noh_step_then(box, parts, 2, &at_once, note, &told[3]), NOH_OK);
	pass(box);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(load_relaxed(&told[i].times), 0);
	EXPECT_EQ(load_relaxed(&told[3].times), 1);
	EXPECT_EQ(told[3].answer[1], 14);
	to_disk(box);
	pass(box);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(load_relaxed(&told[i].times), 1);
	EXPECT_EQ(told[0].status, NOH_OK);
	EXPECT_EQ(told[1].answer[1], 7);
	EXPECT_EQ(told[2].status, NOH_REFUSED);
	EXPECT_EQ(told[2].answer[1], 5);
	close_stepped(box);
	remove_dir(dir);
}

static bool full;
static bool is_full(void *arg)
{
	(void)arg;
	return full;
}

static void on_a_full_disk_a_step_is_refused_and_holds_nobody(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_stepped(dir);
	noh_part parts[3] = { part_of("light:c", ADD, N(1)), part_of("purse:a", ADD, N(5)),
			      part_of("purse:b", ADD, N(7)) };
	noh_part look[2] = { part_of("purse:a", GET, N(0)), part_of("light:c", GET, N(0)) };
	struct told told = { 0 };

	full = true;
	box->sched.journal.no_space = is_full;
	EXPECT_EQ(noh_step_then(box, parts, 3, NULL, note, &told), NOH_OK);
	EXPECT_EQ(load_relaxed(&told.times), 1);
	EXPECT_EQ(told.status, NOH_ENOSPC);
	EXPECT_EQ(noh_step_then(box, look, 2, NULL, note, &told), NOH_OK);       /* reads go on */
	EXPECT_EQ(told.status, NOH_OK);
	EXPECT_EQ(told.answer[0], 0);
	EXPECT_EQ(told.answer[1], 0);
	for (int i = 0; i < 3; i++) {            /* it does not wait for one that is busy, holding others */
		EXPECT_EQ(noh_send(box, parts[i].address, GET, N(0), 8), NOH_OK);
		EXPECT_EQ(noh_step_then(box, parts, 3, NULL, note, &told), NOH_OK);
		pass(box);
		EXPECT_EQ(load_relaxed(&told.times), 3 + i);
		EXPECT_EQ(told.status, NOH_ENOSPC);
	}
	full = false;
	EXPECT_EQ(noh_step_then(box, parts, 3, NULL, note, &told), NOH_OK);
	to_disk(box);
	pass(box);
	EXPECT_EQ(told.status, NOH_OK);
	close_stepped(box);
	remove_dir(dir);
}

/* Every allocation of a step fails once, and it is all there or not at all. */
static void without_memory_a_step_does_not_happen_or_all_of_it_does(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_stepped(dir);
	struct order o[2] = { { .n = 3, .to = "purse:x" }, { .n = 4, .to = "light:y" } };
	int64_t happened = 0;
	uint64_t nth = 0, used;

	do {
		noh_part parts[4] = { part_of("purse:a", KEEP, N(1)), { "purse:b", TELL, &o[0], sizeof o[0] },
				      { "light:c", TELL, &o[1], sizeof o[1] }, part_of("purse:d", ADD, N(1)) };
		noh_part look[2] = { part_of("purse:a", GET, N(0)), part_of("purse:b", GET, N(0)) };
		noh_part look2[2] = { part_of("light:c", GET, N(0)), part_of("purse:d", GET, N(0)) };
		noh_part look3[2] = { part_of("purse:x", GET, N(0)), part_of("light:y", GET, N(0)) };
		struct told told = { 0 }, seen = { 0 };
		char text[16];
		int rc;

		snprintf(text, sizeof text, "k%d", (int)nth);
		(void)mem_fail_at(++nth, 0);
		noh_call_options once = key(text);

		rc = noh_step_then(box, parts, 4, nth % 2 ? &once : NULL, note, &told);
		used = mem_fail_at(0, 0);
		to_disk(box);
		pass(box);
		EXPECT_EQ(load_relaxed(&told.times), rc == NOH_OK);
		EXPECT(rc == NOH_OK || rc == NOH_ENOMEM);
		/* An answer without memory is an error, too; then the retry tells. */
		if (rc == NOH_OK && told.status != NOH_OK)
			EXPECT(told.status == NOH_ENOMEM || told.status == NOH_EFAILED);
		EXPECT_EQ(noh_step_then(box, look, 2, NULL, note, &seen), NOH_OK);
		happened = seen.answer[0];
		EXPECT_EQ(seen.answer[1], -3 * happened);
		EXPECT_EQ(noh_step_then(box, look2, 2, NULL, note, &seen), NOH_OK);
		EXPECT_EQ(seen.answer[0], -4 * happened);
		EXPECT_EQ(seen.answer[1], happened);
		EXPECT_EQ(noh_step_then(box, look3, 2, NULL, note, &seen), NOH_OK);
		to_disk(box);
		pass(box);
		EXPECT_EQ(seen.answer[0], 3 * happened);
		EXPECT_EQ(load_relaxed(&seen.times), 3);
	} while (nth <= used + 2 && nth < 500);
	EXPECT(nth > 10);
	EXPECT(happened > 0);
	close_stepped(box);
	remove_dir(dir);
}

/* ── once ── */

static void a_key_makes_the_whole_step_happen_once(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_part parts[3] = { part_of("purse:a", ADD, N(5)), part_of("purse:b", ADD, N(7)),
			      part_of("light:c", ADD, N(9)) };
	noh_part other[3] = { part_of("purse:a", ADD, N(5)), part_of("purse:b", ADD, N(8)),
			      part_of("light:c", ADD, N(9)) };
	noh_part reads[2] = { part_of("purse:new", GET, N(0)), part_of("purse:a", GET, N(0)) };
	noh_call_options once = key("once"), again = key("again"), looked = key("looked");

	for (int round = 0; round < 3; round++) {
		noh_box *box = open_types(dir, round % 2 ? 2 : 1);

		for (int i = 0; i < 3; i++) {
			noh_part_answer answers[3];
			int64_t bodies[3];
			size_t len = sizeof bodies;

			EXPECT_EQ(noh_step(box, parts, 3, &once, answers, bodies, &len), NOH_OK);
			EXPECT_EQ(len, sizeof bodies);
			EXPECT_EQ(bodies[0], 5);
			EXPECT_EQ(bodies[1], 7);
			EXPECT_EQ(bodies[2], 9);
		}
		EXPECT_EQ(noh_step(box, other, 3, &once, NULL, NULL, NULL), NOH_EIDEM);
		EXPECT_EQ(noh_step(box, parts, 2, &once, NULL, NULL, NULL), NOH_EIDEM);
		EXPECT_EQ(noh_call_with(box, "purse:a", ADD, N(5), 8, &once, NULL, NULL), NOH_EIDEM);
		EXPECT_EQ(noh_call_with(box, "purse:a", ADD, N(0), 8, &again, NULL, NULL), NOH_OK);
		EXPECT_EQ(noh_step(box, parts, 3, &again, NULL, NULL, NULL), NOH_EIDEM);
		EXPECT_EQ(step_with(box, reads, 2, &looked, NULL, NULL), NOH_OK);
		EXPECT_EQ(balance(box, "purse:a"), 5);
		EXPECT_EQ(balance(box, "purse:b"), 7);
		if (round % 2)
			shut(box);
		else
			noh_close(box);
	}
	remove_dir(dir);
}

/* Whoever retries may have a list in another order: of a set, or made anew from a map. */
static void a_retry_in_another_order_is_the_same_step(void)
{
	enum { PARTS = 4, ORDERS = 24 };
	static const char *const names[PARTS] = { "purse:d", "purse:b", "light:a", "purse:c" };
	static const int64_t amounts[PARTS] = { 1, 2, 3, 4 }, much = 1000, other = 7;
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_call_options once = key("once"), no = key("no");
	noh_part lacks[PARTS - 1];

	for (int nth = 0; nth < ORDERS; nth++) {
		noh_box *box = open_types(dir, 1);
		noh_part parts[PARTS], short_of[PARTS];
		int64_t bodies[PARTS], said = 0;
		noh_part_answer answers[PARTS];
		size_t len = sizeof bodies;
		int left[PARTS] = { 0, 1, 2, 3 }, which = -1;

		for (int i = 0, rest = nth; i < PARTS; rest /= PARTS - i, i++) {
			int at = rest % (PARTS - i), it = left[at];

			memmove(&left[at], &left[at + 1], (size_t)(PARTS - 1 - at) * sizeof left[0]);
			parts[i] = part_of(names[it], ADD, &amounts[it]);
			short_of[i] = part_of(names[it], it == 1 ? TAKE : ADD, &much);
		}
		EXPECT_EQ(noh_step(box, parts, PARTS, &once, answers, bodies, &len), NOH_OK);
		EXPECT_EQ(len, sizeof bodies);
		for (int i = 0; i < PARTS; i++)          /* in the order of this call */
			EXPECT_EQ(bodies[i], *(const int64_t *)parts[i].body);
		EXPECT_EQ(step_with(box, short_of, PARTS, &no, &said, &which), NOH_REFUSED);
		EXPECT_EQ(said, 2);
		EXPECT(which >= 0 && short_of[which].kind == TAKE);
		for (int i = 0, n = 0; i < PARTS; i++)
			if (strcmp(parts[i].address, "purse:c") != 0)
				lacks[n++] = parts[i];
		EXPECT_EQ(noh_step(box, lacks, PARTS - 1, &once, NULL, NULL, NULL), NOH_EIDEM);
		parts[nth % PARTS].body = &other;
		EXPECT_EQ(noh_step(box, parts, PARTS, &once, NULL, NULL, NULL), NOH_EIDEM);
		EXPECT_EQ(balance(box, "purse:b"), 2);
		EXPECT_EQ(balance(box, "purse:c"), 4);
		EXPECT_EQ(balance(box, "purse:d"), 1);
		noh_close(box);
	}
	remove_dir(dir);
}

static void a_refusal_is_kept_with_its_key_and_a_failure_is_not(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_part parts[2] = { part_of("purse:a", ADD, N(5)), part_of("purse:b", TAKE, N(7)) };
	noh_part fails[2] = { part_of("purse:a", ADD, N(5)), part_of("purse:b", FAIL, N(7)) };
	noh_call_options no = key("no"), failed = key("failed"), plain = key("plain");

	for (int round = 0; round < 3; round++) {
		noh_box *box = open_types(dir, 1);
		int64_t said = 0;
		size_t len = sizeof said;
		int which;

		EXPECT_EQ(step_with(box, parts, 2, &no, &said, &which), NOH_REFUSED);
		EXPECT_EQ(which, 1);
		EXPECT_EQ(said, 0);
		EXPECT_EQ(step_with(box, fails, 2, &failed, NULL, NULL), NOH_EFAILED);
		EXPECT_EQ(noh_call_with(box, "purse:b", TAKE, N(2000), 8, &plain, &said, &len), NOH_REFUSED);
		EXPECT_EQ(said, 0);                      /* as it was said the first time */
		EXPECT_EQ(noh_call(box, "purse:b", ADD, N(100), 8, SOON, NULL, NULL), NOH_OK);
		EXPECT_EQ(step_with(box, parts, 2, &no, &said, &which), NOH_REFUSED);
		EXPECT_EQ(said, 0);
		EXPECT_EQ(balance(box, "purse:a"), 0);
		if (round % 2)
			shut(box);
		else
			noh_close(box);
	}
	remove_dir(dir);
}

static void a_retry_while_the_first_one_runs_gets_its_answer(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_types(dir, 2);
	noh_part parts[2] = { part_of("purse:a", ADD, N(5)), part_of("purse:b", ADD, N(7)) };
	noh_call_options once = key("once");
	struct told told[8] = { 0 };

	gate_shut();
	EXPECT_EQ(noh_send(box, "purse:b", GATE, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 8; i++)
		EXPECT_EQ(noh_step_then(box, parts, 2, &once, note, &told[i]), NOH_OK);
	gate_open();
	for (int i = 0; i < 8; i++) {
		EXPECT(reaches(&told[i].times, 1));
		EXPECT_EQ(told[i].status, NOH_OK);
		EXPECT_EQ(told[i].answer[1], 7);
	}
	EXPECT_EQ(balance(box, "purse:a"), 5);
	shut(box);
	remove_dir(dir);
}

/* ── kill -9 ── */

enum { PURSES = 6, ROUNDS = 6, IN_FLIGHT = 40 };
struct tally { atomic_u64 sent, acked, in_flight, failed; };
static struct tally *tally;

static void done(void *user, int status, const noh_part_answer *answers, size_t count)
{
	(void)user, (void)answers, (void)count;
	add_seq_cst(&tally->in_flight, UINT64_MAX);
	add_seq_cst(status == NOH_OK ? &tally->acked : &tally->failed, 1);
}

/* Each step: one gives, two get, and one counts; every third with a key, sent twice. */
static void send_step(noh_box *box, uint64_t i, bool twice)
{
	static const int64_t one = 1, minus_two = -2;
	char names[3][24], text[32];
	noh_part parts[4] = { part_of("purse:count", ADD, &one) };
	noh_call_options o = { .timeout_ms = 60000 };

	for (unsigned k = 0; k < 3; k++) {
		snprintf(names[k], sizeof names[k], "purse:%u", (unsigned)((i * 7 + k) % PURSES));
		parts[k + 1] = part_of(names[k], ADD, k ? &one : &minus_two);
	}
	snprintf(text, sizeof text, "key-%llu", (unsigned long long)i);
	if (i % 3 == 0) {
		o.key = text;
		o.key_len = strlen(text);
	}
	add_seq_cst(&tally->in_flight, 1);
	if (noh_step_then(box, parts, 4, &o, done, NULL) != NOH_OK) {
		add_seq_cst(&tally->in_flight, UINT64_MAX);
		add_seq_cst(&tally->failed, 1);
	}
	if (o.key && !twice)
		send_step(box, i, true);
}

static void work(const char *dir, unsigned workers)
{
	noh_box *box = open_types(dir, workers);

	for (;;) {
		while (load_seq_cst(&tally->in_flight) > IN_FLIGHT)
			usleep(20);
		send_step(box, add_seq_cst(&tally->sent, 1), false);
	}
}

static bool enough(void *arg)
{
	return load_seq_cst(&tally->acked) >= *(uint64_t *)arg;
}

static void check(noh_box *box)
{
	int64_t sum = 0, count = balance(box, "purse:count"), sent = (int64_t)load_seq_cst(&tally->sent);

	for (int i = 0; i < PURSES; i++) {
		char name[24];

		snprintf(name, sizeof name, "purse:%d", i);
		sum += balance(box, name);
	}
	EXPECT_EQ(sum, 0);                               /* all of each step, or none of it */
	EXPECT(count <= sent);
	EXPECT(count >= (int64_t)load_seq_cst(&tally->acked) * 3 / 4 - 4);    /* each third was answered twice */
}

static void kill_minus_nine_leaves_all_of_a_step_or_none(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	uint64_t random = test_seed;

	tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t until = load_seq_cst(&tally->acked) + 20 + test_random(&random) % 300;
		unsigned workers = 1 + (unsigned)(test_random(&random) % 2);
		pid_t child = fork();

		if (child == 0) {
			work(dir, workers);
			_exit(1);
		}
		EXPECT(test_wait_until(enough, &until, 30000));
		kill(child, SIGKILL);
		EXPECT_EQ(waitpid(child, NULL, 0), child);
		store_seq_cst(&tally->in_flight, 0);
		noh_box *box = open_types(dir, 3 - workers);

		check(box);
		if (round % 2)
			shut(box);
		else
			noh_close(box);
	}
	EXPECT_EQ(load_seq_cst(&tally->failed), 0);
	munmap(tally, sizeof *tally);
	remove_dir(dir);
}

TEST_MAIN(
	TEST(a_step_that_was_answered_is_there_after_a_restart, "P4 P5"),
	TEST(a_step_larger_than_a_frame_is_one_all_the_same, "P4 P6"),
	TEST(nothing_of_a_step_is_told_before_it_is_on_disk, "P5"),
	TEST(on_a_full_disk_a_step_is_refused_and_holds_nobody, "P11"),
	TEST(without_memory_a_step_does_not_happen_or_all_of_it_does, "P4 P11"),
	TEST(a_key_makes_the_whole_step_happen_once, "P7"),
	TEST(a_retry_in_another_order_is_the_same_step, "P7"),
	TEST(a_refusal_is_kept_with_its_key_and_a_failure_is_not, "P7"),
	TEST(a_retry_while_the_first_one_runs_gets_its_answer, "P7"),
	TEST(kill_minus_nine_leaves_all_of_a_step_or_none, "P4 P5 P6 P7"))
