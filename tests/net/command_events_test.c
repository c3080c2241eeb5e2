/* tests/net/command_events_test.c - EVENTS.READ, ACTOR.DESCRIBE, ACTOR.TREE, ACTOR.RESUME, QUARANTINE.LIST: what they take, and
 * what they ask for. */
#include "net/feed.h"
#include "tests/net/command_kit.h"

#define BOUNDS(what, least, most) "-ERR " what " must be a number from " least " to " most

static void events_are_read_behind_a_cursor(void)
{
	fake_open(NOH_DEVELOPER);
	ASKS("events.read", "events behind 0 limit 100 block 0");
	ASKS("EVENTS.READ CURSOR 7", "events behind 7 limit 100 block 0");
	ASKS("events.read cursor $ block 500", "events behind 99 limit 100 block 500");
	ASKS("events.read BLOCK 0", "events behind 0 limit 100 block 2147000000");
	ASKS("events.read COUNT 1000 ACTOR counter:a TYPE counter KIND failed SINCE 12",
	     "events behind 0 limit 1000 block 0 actor counter:a type counter kind failed since 12");
	ASKS("events.read ACTOR counter/a", "events behind 0 limit 100 block 0 actor counter:a");
	fake_close();
}

static void what_events_read_does_not_take_is_said(void)
{
	fake_open(NOH_DEVELOPER);
	REPLIES("events.read CURSOR", SYNTAX);
	REPLIES("events.read FROM 1", SYNTAX);
	REPLIES("events.read CURSOR -1", BOUNDS("CURSOR (or $, behind the newest)", "0", "9223372036854775807"));
	REPLIES("events.read CURSOR 9223372036854775808", BOUNDS("CURSOR (or $, behind the newest)", "0", "9223372036854775807"));
	REPLIES("events.read COUNT 0", BOUNDS("COUNT", "1", "1000"));
	REPLIES("events.read COUNT 1001", BOUNDS("COUNT", "1", "1000"));
	REPLIES("events.read BLOCK 86400001", BOUNDS("BLOCK", "0", "86400000"));
	REPLIES("events.read KIND a KIND b", "-ERR KIND must be 1 to 63 bytes without a NUL, and be there once");
	fake_run("events.read ACTOR nocolon");
	EXPECT(fake.out.len > 12 && memcmp(fake.out.bytes, "-BADADDRESS ", 12) == 0);
	fake_close();
}

static void an_answer_has_the_next_cursor(void)
{
	struct { struct feed_answer head; char text[8]; } two = { { 41, 2 }, ":1\r\n:22\r" };
	struct feed_answer none = { 41, 0 };

	fake_open(NOH_DEVELOPER);
	ASKS("events.read CURSOR 39", "events behind 39 limit 100 block 0");
	fake.out.len = 0;
	fake_answer(&(struct reply_part){ NOH_OK, sizeof two, &two }, 1);
	out_bytes(&fake.out, "\n", 1);
	WROTE("*2\r\n:41\r\n*2\r\n:1\r\n:22");
	ASKS("events.read CURSOR 41", "events behind 41 limit 100 block 0");
	ANSWERS(none, "*2\r\n:41\r\n*0");
	FAILS(NOH_ETOOOLD, "-TOOOLD the events behind this cursor are gone; begin with 0");
	fake.out.len = 0;
	fake_answer(&(struct reply_part){ NOH_ETOOOLD, 12, "the oldest 5" }, 1);
	WROTE("-TOOOLD the oldest 5");
	fake_close();
}

static void an_actor_is_described(void)
{
	fake_open(NOH_DEVELOPER);
	ASKS("actor.describe counter:a", "describe counter:a limit 10");
	ASKS("actor.describe counter/a EVENTS 0", "describe counter:a limit 0");
	REPLIES("actor.describe counter:a EVENTS 101", BOUNDS("events", "0", "100"));
	REPLIES("actor.describe counter:a LIMIT 1", SYNTAX);
	REPLIES("actor.describe counter:a EVENTS", SYNTAX);
	fake.out.len = 0;
	ASKS("actor.describe counter:a", "describe counter:a limit 10");
	fake_answer(&(struct reply_part){ NOH_OK, 6, "%0\r\n\r\n" }, 1);
	EXPECT(fake.out.len == 6);
	fake_close();
}

static void a_tree_may_begin_anywhere(void)
{
	fake_open(NOH_DEVELOPER);
	ASKS("actor.tree", "tree all limit 1000");
	ASKS("actor.tree LIMIT 5", "tree all limit 5");
	ASKS("actor.tree counter:a", "tree counter:a limit 1000");
	ASKS("actor.tree counter:a limit 10000", "tree counter:a limit 10000");
	REPLIES("actor.tree LIMIT 10001", BOUNDS("limit", "1", "10000"));
	REPLIES("actor.tree counter:a counter:b", SYNTAX);
	fake_close();
}

static void who_is_unwell_is_listed_and_resumed(void)
{
	fake_open(NOH_ADMIN);
	ASKS("quarantine.list", "quarantine all limit 100");
	ASKS("quarantine.list TYPE counter LIMIT 7", "quarantine counter limit 7");
	REPLIES("quarantine.list TYPE nope", "-NOTYPE no such actor type is registered");
	REPLIES("quarantine.list TYPE", SYNTAX);
	ASKS("actor.resume counter:a", "resume counter:a limit 0");
	EXPECT(strcmp(fake.audit, "quarantine resume counter:a -") == 0);
	fake.out.len = 0;
	fake_answer(&(struct reply_part){ NOH_OK, 0, NULL }, 1);
	WROTE("+OK");
	ASKS("actor.resume counter", "resume counter limit 0");
	EXPECT(strcmp(fake.audit, "quarantine resume counter -") == 0);
	FAILS(NOH_END, "-NOACTOR there is nothing to resume: it is healthy, or nothing is known of it");
	REPLIES("actor.resume nope", "-NOTYPE no such actor type is registered");
	fake_close();
}

static void each_needs_its_role(void)
{
	static const char *const developers[] = { "events.read", "actor.describe counter:a", "actor.tree", "quarantine.list" };

	for (size_t i = 0; i < sizeof developers / sizeof developers[0]; i++) {
		fake_open(NOH_USER);
		fake_run(developers[i]);
		EXPECT(fake.out.len > 8 && memcmp(fake.out.bytes, "-NOPERM ", 8) == 0);
		fake_close();
	}
	fake_open(NOH_DEVELOPER);
	fake_run("actor.resume counter:a");
	EXPECT(fake.out.len > 8 && memcmp(fake.out.bytes, "-NOPERM ", 8) == 0);
	fake_close();
}

TEST_MAIN(
	TEST(events_are_read_behind_a_cursor),
	TEST(what_events_read_does_not_take_is_said),
	TEST(an_answer_has_the_next_cursor),
	TEST(an_actor_is_described, "CLI-03"),
	TEST(a_tree_may_begin_anywhere),
	TEST(who_is_unwell_is_listed_and_resumed, "SUP-07"),
	TEST(each_needs_its_role, "API-09"))
