/* tests/net/wire_once_test.c - what was asked for once happens once, in whatever order a retry names it (P7). */
#include "tests/net/wire_kit.h"

static void reserveall_in_another_order_is_the_same_order(void)
{
	struct wire w;

	WIRE_ON_DISK(&w, 2, .io = NOH_IO_AUTO);
	int fd = dial(&w);

	EXPECT_ASK(fd, "INV.RESTOCK a 10", ":10");
	EXPECT_ASK(fd, "INV.RESTOCK b 20", ":20");
	EXPECT_ASK(fd, "INV.RESTOCK c 30", ":30");
	for (int i = 0; i < 2; i++) {
		say(fd, "INV.RESERVEALL IDEM ord a 1 b 2\r\n");
		EXPECT_HEARS(fd, "*2\r\n*2\r\n:1\r\n:9\r\n*2\r\n:1\r\n:18\r\n");
		say(fd, "INV.RESERVEALL IDEM ord b 2 a 1\r\n");
		EXPECT_HEARS(fd, "*2\r\n*2\r\n:1\r\n:18\r\n*2\r\n:1\r\n:9\r\n");
	}
	EXPECT_ASK(fd, "INV.RESERVEALL IDEM ord b 1 a 2", "-IDEMCONFLICT");
	EXPECT_ASK(fd, "INV.RESERVEALL IDEM ord a 1", "-IDEMCONFLICT");
	EXPECT_ASK(fd, "INV.RESERVEALL IDEM ord c 1 b 2 a 1", "-IDEMCONFLICT");
	EXPECT_ASK(fd, "INV.RESERVEALL IDEM ord TTL 60 a 1 b 2", "-IDEMCONFLICT");
	EXPECT_ASK(fd, "INV.RESERVEALL IDEM much c 1 b 900 a 1", "-OUTOFSTOCK article 'b': only 18 available");
	EXPECT_ASK(fd, "INV.RESERVEALL IDEM much a 1 c 1 b 900", "-OUTOFSTOCK article 'b': only 18 available");
	EXPECT_ASK(fd, "INV.RESERVEALL a 1 \"b\\x07 c\" 1", "-NOSKU article 'b? c': there is no such article");
	/* Without a, which keeps the key, it is another order. */
	say(fd, "INV.RESERVEALL IDEM ord b 2\r\n");
	EXPECT_HEARS(fd, "*1\r\n*2\r\n:2\r\n:16\r\n");
	(void)close(fd);
	wire_end(&w);
}

static void mset_in_another_order_is_the_same_mset(void)
{
	struct wire w;

	WIRE_ON_DISK(&w, 2, .io = NOH_IO_AUTO);
	int fd = dial(&w);

	EXPECT_ASK(fd, "MSET ma 1 mb 2 IDEM mm", "+OK");
	EXPECT_ASK(fd, "INCR ma", ":2");
	EXPECT_ASK(fd, "MSET mb 2 ma 1 IDEM mm", "+OK");
	EXPECT_ASK(fd, "MSET ma 7 mb 2 ma 1 IDEM mm", "+OK");            /* of a key named twice the last counts */
	EXPECT_ASK(fd, "INCR ma", ":3");
	EXPECT_ASK(fd, "MSET mb 1 ma 2 IDEM mm", "-IDEMCONFLICT");
	EXPECT_ASK(fd, "INCR ma", ":4");
	(void)close(fd);
	wire_end(&w);
}

TEST_MAIN(
	TEST(reserveall_in_another_order_is_the_same_order, "P7"),
	TEST(mset_in_another_order_is_the_same_mset, "P7"))
