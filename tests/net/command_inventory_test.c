/* tests/net/command_inventory_test.c - inventory commands: what is asked of which article, and how its answer reads. */
#include "tests/net/command_kit.h"

static void stock_comes_in_and_is_counted(void)
{
	noh_inventory_stock s = { .on_hand = 10, .reserved = 3, .available = 7, .sold = 2, .holds = 1, .restocked = 13,
				  .adjusted = -1 };

	fake_open(NOH_USER);
	ASKS("inv.restock s 10", "inventory:s restock 10");
	ANSWERS(s, ":7");
	ASKS("INV.SET s 0 IDEM k", "inventory:s set 0 key k");
	ANSWERS(s, ":7");
	ASKS("inv.get s", "inventory:s get");
	ANSWERS(s, "*14\r\n$7\r\non_hand\r\n:10\r\n$8\r\nreserved\r\n:3\r\n$9\r\navailable\r\n:7\r\n$4\r\nsold\r\n:2\r\n"
		"$5\r\nholds\r\n:1\r\n$9\r\nrestocked\r\n:13\r\n$8\r\nadjusted\r\n:-1");
	s = (noh_inventory_stock){ .outcome = NOH_INVENTORY_NO_SKU };
	ANSWERS(s, "-NOSKU there is no such article; INV.RESTOCK or INV.SET makes it known");
	ASKS("inv.set s 2", "inventory:s set 2");
	s = (noh_inventory_stock){ .outcome = NOH_INVENTORY_BELOW_RESERVED, .reserved = 3 };
	ANSWERS(s, "-BELOWRESERVED 3 are reserved; release some first, or count again");
	s.outcome = NOH_INVENTORY_OVERFLOW;
	ANSWERS(s, "-OVERFLOW more than 63 bits can count; nothing was changed");
	fake.out.len = 0;
	fake.session.proto = 3;
	ASKS("inv.get s", "inventory:s get");
	s = (noh_inventory_stock){ 0 };
	fake_answer(&(struct reply_part){ NOH_OK, sizeof s, &s }, 1);
	EXPECT(memcmp(fake.out.bytes, "%7\r\n", 4) == 0);
}

#define BAD_AMOUNT "-BADAMOUNT the amount must be above 0 (INV.SET: 0 or above)"

static void amounts_are_checked_before_anybody_is_asked(void)
{
	fake_open(NOH_USER);
	REPLIES("inv.restock s 0", BAD_AMOUNT);
	REPLIES("inv.restock s -1", BAD_AMOUNT);
	REPLIES("inv.reserve s 0", BAD_AMOUNT);
	REPLIES("inv.set s -1", BAD_AMOUNT);
	REPLIES("inv.restock s x", NOT_INT);
	REPLIES("inv.reserve s 9223372036854775808", NOT_INT);
	ASKS("inv.reserve s 9223372036854775807", "inventory:s reserve 9223372036854775807");
}

static void reservations_are_taken(void)
{
	noh_inventory_reserved r = { .reservation = 5, .available = 7, .expires = -1 };

	fake_open(NOH_USER);
	ASKS("inv.reserve s 2", "inventory:s reserve 2");
	ANSWERS(r, "*2\r\n:5\r\n:7");
	r = (noh_inventory_reserved){ .outcome = NOH_INVENTORY_SHORT, .available = 1 };
	ANSWERS(r, "-OUTOFSTOCK only 1 available; nothing was reserved");
	fake.out.len = 0;
	fake_answer(&(struct reply_part){ NOH_REFUSED, sizeof r, &r }, 1);
	WROTE("-OUTOFSTOCK only 1 available; nothing was reserved");
	ASKS("inv.reserve s 2 TTL 600 IDEM order-77", "inventory:s reserve 2 ttl 600000 key order-77");
	ASKS("inv.reserve s 2 IDEM order-77 TTL 1", "inventory:s reserve 2 ttl 1000 key order-77");
	REPLIES("inv.reserve s 2 TTL 0", "-ERR TTL must be a number of seconds, 1 to 31536000");
	REPLIES("inv.reserve s 2 TTL 4611686018427388", "-ERR TTL must be a number of seconds, 1 to 31536000");
	REPLIES("inv.reserve s 2 TTL 31536001", "-ERR TTL must be a number of seconds, 1 to 31536000");
	REPLIES("inv.reserve s 2 TTL x", "-ERR TTL must be a number of seconds, 1 to 31536000");
	REPLIES("inv.reserve s 2 TTL", SYNTAX);
	REPLIES("inv.reserve s 2 TTL 5 TTL 5", SYNTAX);
	REPLIES("inv.reserve s 2 IDEM", SYNTAX);
	REPLIES("inv.reserve s 2 foo", SYNTAX);
}

static void reservations_end(void)
{
	static const struct { uint32_t outcome; const char *word; } ends[] = {
		{ NOH_INVENTORY_NO_SKU, "-NOSKU " }, { NOH_INVENTORY_NO_HOLD, "-NOHOLD " },
		{ NOH_INVENTORY_COMMITTED, "-COMMITTED " }, { NOH_INVENTORY_RELEASED, "-RELEASED " },
		{ NOH_INVENTORY_EXPIRED, "-EXPIRED " }, { NOH_INVENTORY_FORGOTTEN, "-FORGOTTEN " }, { 99, "-FAILED " } };
	noh_inventory_ended e = { .reservation = 5, .n = 2 };

	fake_open(NOH_USER);
	ASKS("inv.commit s 5", "inventory:s commit 5");
	ANSWERS(e, ":2");
	ASKS("inv.release s 5 IDEM k", "inventory:s release 5 key k");
	ANSWERS(e, ":2");
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		e.outcome = ends[i].outcome;
		fake.out.len = 0;
		fake_answer(&(struct reply_part){ NOH_OK, sizeof e, &e }, 1);
		EXPECT(memcmp(fake.out.bytes, ends[i].word, strlen(ends[i].word)) == 0);
	}
	REPLIES("inv.commit s x", "-ERR a reservation is the number that INV.RESERVE answered");
	REPLIES("inv.commit s -1", "-ERR a reservation is the number that INV.RESERVE answered");
	REPLIES("inv.commit s 5 foo", ARITY("inv.commit"));
}

static void holds_are_listed_in_pages(void)
{
	struct {
		noh_inventory_holds head;
		noh_inventory_hold  holds[2];
	} page = { { .count = 2, .cursor = 9 }, { { 5, 2, 1700000000000 }, { 9, 1, -1 } } };

	fake_open(NOH_USER);
	ASKS("inv.holds s", "inventory:s holds from 0 limit 0");
	ANSWERS(page, "*2\r\n$1\r\n9\r\n*2\r\n*3\r\n:5\r\n:2\r\n:1700000000000\r\n*3\r\n:9\r\n:1\r\n:-1");
	page.head.count = 3;
	ANSWERS(page, "-FAILED the actor gave an answer of 64 bytes where 88 were expected");
	page.head.outcome = NOH_INVENTORY_NO_SKU;
	ANSWERS(page, "-NOSKU there is no such article; INV.RESTOCK or INV.SET makes it known");
	ASKS("inv.holds s CURSOR 9 LIMIT 1000", "inventory:s holds from 9 limit 1000");
	REPLIES("inv.holds s LIMIT 1001", "-ERR LIMIT must be 1 to 1000");
	REPLIES("inv.holds s LIMIT 0", "-ERR LIMIT must be 1 to 1000");
	REPLIES("inv.holds s CURSOR x", "-ERR invalid cursor");
	REPLIES("inv.holds s CURSOR", SYNTAX);
	REPLIES("inv.holds s foo", SYNTAX);
}

static void several_articles_are_reserved_in_one_step(void)
{
	noh_inventory_reserved a = { .reservation = 5, .available = 7 }, b = { .reservation = 1, .available = 0 };
	struct reply_part parts[] = { { NOH_OK, sizeof a, &a }, { NOH_OK, sizeof b, &b } };

	fake_open(NOH_USER);
	ASKS("inv.reserveall a 2 b 3", "inventory:a reserve 2 ttl 0; inventory:b reserve 3 ttl 0");
	EXPECT(fake.step);
	fake_answer(parts, 2);
	WROTE("*2\r\n*2\r\n:5\r\n:7\r\n*2\r\n:1\r\n:0");
	b = (noh_inventory_reserved){ .outcome = NOH_INVENTORY_SHORT, .available = 2 };
	fake.out.len = 0;
	fake_answer(parts, 2);
	WROTE("-OUTOFSTOCK article 'b': only 2 available; nothing was reserved");
	parts[0] = (struct reply_part){ NOH_OK, 0, NULL };                /* undone with the other: that one says why */
	parts[1].status = NOH_REFUSED;
	fake.out.len = 0;
	fake_answer(parts, 2);
	WROTE("-OUTOFSTOCK article 'b': only 2 available; nothing was reserved");
	parts[1] = (struct reply_part){ NOH_ETIMEOUT, 0, NULL };
	parts[0] = (struct reply_part){ NOH_ETIMEOUT, 0, NULL };
	fake.out.len = 0;
	fake_answer(parts, 2);
	WROTE("-TIMEOUT no answer in time; it may still take effect");
	ASKS("inv.reserveall TTL 5 IDEM k a 2 b 3", "inventory:a reserve 2 ttl 5000 key k; inventory:b reserve 3 ttl 5000");
	ASKS("inv.reserveall IDEM k TTL 5 a 2", "inventory:a reserve 2 ttl 5000 key k");
	REPLIES("inv.reserveall a 2 a 3", "-ERR article 'a' is named twice; add the amounts");
	REPLIES("inv.reserveall a 2 b", ARITY("inv.reserveall"));
	REPLIES("inv.reserveall TTL 5", ARITY("inv.reserveall"));
	REPLIES("inv.reserveall TTL x a 2", "-ERR TTL must be a number of seconds, 1 to 31536000");
	REPLIES("inv.reserveall a x", NOT_INT);
	REPLIES("inv.reserveall a 1 b 0", "-BADAMOUNT article 'b': the amount must be above 0 (INV.SET: 0 or above)");
}

TEST_MAIN(
	TEST(stock_comes_in_and_is_counted),
	TEST(amounts_are_checked_before_anybody_is_asked, "P11"),
	TEST(reservations_are_taken),
	TEST(reservations_end),
	TEST(holds_are_listed_in_pages),
	TEST(several_articles_are_reserved_in_one_step))
