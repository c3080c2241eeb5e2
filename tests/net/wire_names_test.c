/* tests/net/wire_names_test.c - a message is called the same over RESP as over HTTP. */
#include "tests/net/wire_kit.h"

static bool test_bulk(int fd, const char *command, const char *want, const char *file, int line)
{
	char head[32], got[600];

	(void)say(fd, command);
	(void)say(fd, "\r\n");
	hear_line(fd, head, sizeof head);
	if (head[0] != '$') {
		test_failed(file, line, "%.100s: expected a bulk string, got \"%s\"", command, head);
		return false;
	}
	return test_text(hear_line(fd, got, sizeof got), want, file, line);
}
#define EXPECT_BULK(fd, command, want) test_bulk((fd), (command), (want), __FILE__, __LINE__)

static void json_messages_have_their_names_over_resp(void)
{
	struct wire w;

	WIRE_ON_DISK(&w, 2, .io = NOH_IO_AUTO);
	int fd = dial(&w);

	EXPECT_BULK(fd, "ACTOR.INVOKE counter:c incr '{\"by\":5}'", "{\"outcome\":\"ok\",\"value\":5,\"applied\":5}");
	EXPECT_BULK(fd, "ACTOR.INVOKE counter:c decr ''", "{\"outcome\":\"ok\",\"value\":4,\"applied\":-1}");
	EXPECT_BULK(fd, "ACTOR.INVOKE counter/c add '{\"by\":2}' IDEM k", "{\"outcome\":\"ok\",\"value\":6,\"applied\":2}");
	EXPECT_BULK(fd, "ACTOR.INVOKE counter:c incr ' {\"by\": 2} ' IDEM k", "{\"outcome\":\"ok\",\"value\":6,\"applied\":2}");
	EXPECT_ASK(fd, "INCRBY c 2 IDEM k", ":6");                       /* all of them are one message */
	EXPECT_ASK(fd, "ACTOR.SEND counter:c set '{\"value\":9}'", "+OK");
	EXPECT_BULK(fd, "ACTOR.INVOKE counter:c get '{}'", "{\"outcome\":\"ok\",\"value\":9}");
	EXPECT_BULK(fd, "ACTOR.INVOKE inventory:s restock '{\"n\":3}'",
		    "{\"outcome\":\"ok\",\"on_hand\":3,\"reserved\":0,\"available\":3,\"sold\":0,\"holds\":0,"
		    "\"restocked\":3,\"adjusted\":0}");
	EXPECT_ASK(fd, "INV.RESERVE s 1", "*2");
	(void)close(fd);
	wire_end(&w);
}

static void bytes_go_by_the_number_of_their_kind(void)
{
	struct wire w;

	WIRE_ON_DISK(&w, 2, .io = NOH_IO_AUTO);
	int fd = dial(&w);
	char ask[160];

	snprintf(ask, sizeof ask, "ACTOR.INVOKE counter:c %d \"\\x05\\x00\\x00\\x00\\x00\\x00\\x00\\x00\"\r\n", NOH_COUNTER_ADD);
	say(fd, ask);
	EXPECT_HEARS(fd, "$24\r\n");
	vanish(fd);
	fd = dial(&w);
	EXPECT_ASK(fd, "INCR c", ":6");
	EXPECT_ASK(fd, "ACTOR.INVOKE later:a 2 ''", "$1");               /* a type without names has numbers alone */
	(void)close(fd);
	wire_end(&w);
}

static void what_is_no_message_is_told_what_there_is(void)
{
	struct wire w;

	WIRE_ON_DISK(&w, 2, .io = NOH_IO_AUTO);
	int fd = dial(&w);

	EXPECT_ASK(fd, "ACTOR.INVOKE counter:c inc ''",
		   "-NOKIND type counter has no message \"inc\"; it has get, incr, add, decr, set, delete, expire, ttl");
	EXPECT_ASK(fd, "ACTOR.SEND inventory:s sell ''", "-NOKIND type inventory has no message \"sell\"; it has restock, reserve, ");
	EXPECT_ASK(fd, "ACTOR.INVOKE later:a go ''", "-NOKIND type later has no message kind \"go\"");
	EXPECT_ASK(fd, "ACTOR.INVOKE counter:c incr '{\"bye\":1}'", "-ERR there is no field \"bye\" here");
	EXPECT_ASK(fd, "ACTOR.INVOKE counter:c incr 12345678", "-ERR \"incr\" of type counter takes a JSON object, or nothing; for "
		   "bytes name the kind by its number");
	EXPECT_ASK(fd, "ACTOR.INVOKE counter:c set ''", "-ERR \"value\" is missing");
	EXPECT_ASK(fd, "ACTOR.SEND counter:c incr '{'", "-ERR \"incr\" of type counter takes a JSON object");
	EXPECT_ASK(fd, "EXISTS c", ":0");
	(void)close(fd);
	wire_end(&w);
}

TEST_MAIN(
	TEST(json_messages_have_their_names_over_resp),
	TEST(bytes_go_by_the_number_of_their_kind),
	TEST(what_is_no_message_is_told_what_there_is))
