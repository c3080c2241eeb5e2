/* tests/box/crash_known_test.c - the process ended in an actor's turn: the next run says so when it starts, before anybody asks. */
#include "tests/box/supervise_kit.h"

#include <sys/wait.h>

static const noh_supervision quick = { .base_ms = 1, .cap_ms = 4 }, once = { .base_ms = 1, .restart = NOH_TEMPORARY },
	strict = { .base_ms = 1, .restarts = 1, .then = NOH_THEN_QUARANTINE };
static const noh_type kept = WORKER("w", &quick), jailed = WORKER("w", &strict), temporary = WORKER("w", &once), plain = WORKER("w", NULL);

static int dies_at_once(noh_turn *t)
{
	(void)t;
	raise(SIGKILL);
	return NOH_OK;
}

static void silent(void *user, int level, const char *actor, const char *line)
{
	(void)user; (void)level; (void)actor; (void)line;
}

static noh_box *open_with(const char *dir, const noh_type *type)
{
	noh_box *box = NULL;

	EXPECT_EQ(noh_open(&box, &(noh_options){ .workers = 2, .dir = dir, .unpinned = true, .log = silent, .max_actors = 1000 }), NOH_OK);
	EXPECT_EQ(noh_register(box, type), NOH_OK);
	EXPECT_EQ(noh_start(box), NOH_OK);
	return box;
}

static int add_event(void *user, const noh_event *e)
{
	char *text = user;

	if (strcmp(e->kind, "failed") == 0 || strcmp(e->kind, "restarted") == 0 || strcmp(e->kind, "quarantined") == 0)
		snprintf(text + strlen(text), 400 - strlen(text), "%s %s>%s|", e->kind, e->from, e->to);
	return 0;
}

static const char *events_of_one(noh_box *box)
{
	static char text[400];
	uint64_t cursor = 0;

	text[0] = 0;
	EXPECT_EQ(noh_events_read(box, &cursor, &(noh_events_filter){ .actor = "w:one" }, 1000, add_event, text), NOH_END);
	return text;
}

/* What is told is on disk. */
static bool is_told(void *box)
{
	const char *told = events_of_one(box);

	return strstr(told, "restarted") || strstr(told, "not active") || strstr(told, "quarantined");
}

enum { FIRST, AGAIN, BY_ITSELF };

/* True: the process was killed, by a message: at once, or when it is told of the time before; or by itself within so many ms. */
static bool dies(const char *dir, const noh_type *type, int how, uint32_t kind_or_ms)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		noh_box *box = open_with(dir, type);

		if (how == BY_ITSELF)
			nap_us(kind_or_ms * 1000u);
		else if (how == FIRST || test_wait_until(is_told, box, SOON))
			(void)call(box, "w:one", kind_or_ms);
		_exit(0);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

static bool is_active(void *box)
{
	return vitals_of(box, "w:one").life == NOH_ACTIVE;
}

static bool is_given_up(void *box)
{
	return vitals_of(box, "w:one").health == NOH_QUARANTINED;
}

static void whose_turn_it_was_has_failed_before_anybody_asks(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);

	EXPECT(dies(dir, &kept, FIRST, KILL));
	noh_box *box = open_with(dir, &kept);

	EXPECT(test_wait_until(is_told, box, SOON));
	EXPECT(test_wait_until(is_active, box, SOON));
	EXPECT_EQ(vitals_of(box, "w:one").restarts, 1);
	EXPECT(strstr(vitals_of(box, "w:one").reason, "the process ended") != NULL);
	EXPECT(strcmp(events_of_one(box), "failed active>down|restarted down>activating|") == 0);
	end(box);
	box = open_with(dir, &kept);             /* it was said */
	EXPECT_EQ(vitals_of(box, "w:one").restarts, 1);
	EXPECT_EQ(call_i64(box, "w:one", GET, 0), 0);
	EXPECT(strcmp(events_of_one(box), "failed active>down|restarted down>activating|") == 0);
	end(box);
	remove_dir(dir);
}

static void too_many_crashes_are_decided_on_at_start(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);

	EXPECT(dies(dir, &jailed, FIRST, KILL));
	EXPECT(dies(dir, &jailed, AGAIN, KILL));
	noh_box *box = open_with(dir, &jailed);

	if (!EXPECT(test_wait_until(is_given_up, box, SOON)))
		printf("  %s\n", events_of_one(box));
	EXPECT_EQ(noh_call(box, "w:one", GET, NULL, 0, SOON, NULL, NULL), NOH_EQUARANTINED);
	end(box);
	remove_dir(dir);
}

/* Nothing is restarted that would not be after another failure: one event, and that is all. */
static void who_is_not_restarted_is_told_of_and_stays_away(void)
{
	const noh_type *types[] = { &plain, &temporary };

	for (int i = 0; i < 2; i++) {
		char room[256];
		const char *dir = fresh_dir(room, sizeof room);

		EXPECT(dies(dir, types[i], FIRST, KILL));
		noh_box *box = open_with(dir, types[i]);

		EXPECT(test_wait_until(is_told, box, SOON));
		EXPECT_EQ(vitals_of(box, "w:one").life, NOH_NOT_ACTIVE);
		EXPECT_EQ(call_i64(box, "w:one", GET, 0), 0);
		EXPECT(strcmp(events_of_one(box), "failed active>not active|") == 0);
		end(box);
		remove_dir(dir);
	}
}

/* Its restart at start ends the process again, twice. Then it has to be asked for. */
static void a_hook_that_ends_the_process_does_not_keep_the_box_down(void)
{
	noh_type fatal = kept;
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);

	fatal.on_activate = dies_at_once;
	EXPECT(dies(dir, &fatal, FIRST, GET));
	EXPECT(dies(dir, &fatal, BY_ITSELF, SOON));
	EXPECT(dies(dir, &fatal, BY_ITSELF, SOON));
	EXPECT(!dies(dir, &fatal, BY_ITSELF, 300));
	noh_box *box = open_with(dir, &kept);    /* it was mended */

	EXPECT_EQ(call_i64(box, "w:one", GET, 0), 0);
	end(box);
	remove_dir(dir);
}

TEST_MAIN(
	TEST(whose_turn_it_was_has_failed_before_anybody_asks, "SUP-01 SUP-17"),
	TEST(too_many_crashes_are_decided_on_at_start, "SUP-01"),
	TEST(who_is_not_restarted_is_told_of_and_stays_away),
	TEST(a_hook_that_ends_the_process_does_not_keep_the_box_down))
