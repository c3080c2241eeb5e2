/* tests/net/command_pubsub_test.c - SUBSCRIBE, PUBLISH and their like, as far as a connection is not needed. */
#include "tests/net/command_kit.h"

static void subscribing_asks_the_connection(void)
{
	fake_open(NOH_USER);
	fake.options.max_subscriptions = 4;
	fake_run("subscribe a b");
	EXPECT(strcmp(fake.asked, "subscribe a\nsubscribe b\n") == 0 && fake.out.len == 0);
	fake_run("PSUBSCRIBE x*");
	EXPECT(strcmp(fake.asked, "psubscribe x*\n") == 0 && fake.out.len == 0);
	REPLIES("subscribe c d", "-ERR too many subscriptions: a connection can have 4, this one has 3 and asks for 2 more; "
		"unsubscribe, or use another connection");
	EXPECT(fake.asked[0] == 0);
	fake_run("unsubscribe");
	EXPECT(strcmp(fake.asked, "unsubscribe all\n") == 0);
	fake_run("punsubscribe a b");
	EXPECT(strcmp(fake.asked, "punsubscribe a\npunsubscribe b\n") == 0);
	REPLIES("subscribe", ARITY("subscribe"));
	EXPECT_EQ(fake.changes, 4);              /* CLIENT LIST hears of each */
	fake_close();
}

#define NOT_NOW(name) "-ERR Can't execute '" name "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are " \
		      "allowed in this context"

static void a_listener_of_resp2_may_do_little_else(void)
{
	static const char *const allowed[] = { "subscribe", "psubscribe", "unsubscribe", "punsubscribe", "ping", "quit", "reset" };

	for (uint32_t i = 0; i < command_total(); i++) {
		const struct command *row = command_row(i);
		bool may = false;

		for (size_t k = 0; k < sizeof allowed / sizeof allowed[0]; k++)
			may |= strcmp(row->name, allowed[k]) == 0;
		if (may != ((row->flags & COMMAND_LISTENER) != 0))
			test_failed(__FILE__, __LINE__, "%s", row->name);
	}
	fake_open(NOH_USER);
	fake.session.patterns = 1;
	REPLIES("get k", NOT_NOW("get"));
	REPLIES("client id", NOT_NOW("client|id"));
	REPLIES("nonsense", "-ERR unknown command 'nonsense', with args beginning with: ");
	REPLIES("get", ARITY("get"));
	REPLIES("ping", "*2\r\n$4\r\npong\r\n$0\r\n");
	REPLIES("ping hi", "*2\r\n$4\r\npong\r\n$2\r\nhi");
	fake.session.proto = 3;
	ASKS("get k", "counter:k get");
	REPLIES("ping", "+PONG");
	fake.session.proto = 2;
	REPLIES("reset", "+RESET");
	ASKS("get k", "counter:k get");
	fake_close();
}

static void publishing_tells_how_many_heard(void)
{
	fake_open(NOH_USER);
	fake_run("publish news hello");
	EXPECT(strcmp(fake.asked, "publish news hello\n") == 0);
	WROTE(":2");
	fake_run("publish none hello");
	WROTE(":0");
	fake_run("publish actor.personal.robo.x hello");
	EXPECT(fake.out.len == 0 && fake.requests == 1 && strstr(fake.asked, "robo:x") != NULL);
	fake_answer(&(struct reply_part){ NOH_OK, 0, NULL }, 1);
	WROTE(":1");
	FAILS(NOH_FULL, "-MAILBOXFULL the actor's mailbox is full; nothing was sent, try again later");
	REPLIES("publish news", ARITY("publish"));
	fake_close();
}

static void pubsub_tells_who_listens(void)
{
	fake_open(NOH_USER);
	REPLIES("pubsub channels", "*2\r\n$4\r\nnews\r\n$7\r\nweather");
	REPLIES("pubsub channels w*", "*1\r\n$7\r\nweather");
	REPLIES("pubsub channels x*", "*0");
	REPLIES("pubsub channels a b", ARITY("pubsub|channels"));
	REPLIES("pubsub numsub", "*0");
	REPLIES("pubsub numsub news x", "*4\r\n$4\r\nnews\r\n:2\r\n$1\r\nx\r\n:0");
	REPLIES("pubsub numpat", ":1");
	REPLIES("pubsub", ARITY("pubsub"));
	REPLIES("pubsub what", "-ERR unknown subcommand 'what'. Try PUBSUB HELP.");
	fake_run("pubsub help");
	EXPECT(fake.out.len > 10 && fake.out.bytes[0] == '*');
	fake_close();
}

TEST_MAIN(
	TEST(subscribing_asks_the_connection),
	TEST(a_listener_of_resp2_may_do_little_else),
	TEST(publishing_tells_how_many_heard),
	TEST(pubsub_tells_who_listens))
