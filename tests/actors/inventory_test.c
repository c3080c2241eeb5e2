/* tests/actors/inventory_test.c - the inventory: every message, every outcome, its books, and time. (Threads
 * and crashes: sale_test.c; long random runs against a model: inventory_model_test.c.) */
#include "tests/actors/kit.h"

static const char sku[] = "inventory:shoe";

static noh_inventory_stock stock(uint32_t kind, const void *body, size_t len)
{
	noh_inventory_stock a;

	kit_ask(sku, kind, body, len, &a, sizeof a);
	if (a.outcome == NOH_INVENTORY_OK) {                     /* US-12: at every step */
		EXPECT_EQ(a.on_hand, a.available + a.reserved);
		EXPECT_EQ(a.restocked + a.adjusted, a.on_hand + a.sold);
		EXPECT(a.on_hand >= 0 && a.reserved >= 0 && a.available >= 0 && a.sold >= 0);
	}
	return a;
}

static noh_inventory_stock get(void) { return stock(NOH_INVENTORY_GET, NULL, 0); }
static noh_inventory_stock restock(int64_t n) { return stock(NOH_INVENTORY_RESTOCK, &n, sizeof n); }
static noh_inventory_stock count(int64_t n) { return stock(NOH_INVENTORY_SET, &n, sizeof n); }

static noh_inventory_reserved reserve(int64_t n, int64_t ttl_ms)
{
	noh_inventory_reserve m = { n, ttl_ms };
	noh_inventory_reserved a;

	kit_ask(sku, NOH_INVENTORY_RESERVE, &m, ttl_ms ? sizeof m : sizeof m.n, &a, sizeof a);
	return a;
}

static noh_inventory_ended end(uint32_t kind, uint64_t hold)
{
	noh_inventory_ended a;

	kit_ask(sku, kind, &hold, sizeof hold, &a, sizeof a);
	EXPECT_EQ(a.reservation, hold);
	return a;
}

static noh_inventory_ended commit(uint64_t hold) { return end(NOH_INVENTORY_COMMIT, hold); }
static noh_inventory_ended release(uint64_t hold) { return end(NOH_INVENTORY_RELEASE, hold); }

static struct { noh_inventory_holds head; noh_inventory_hold list[NOH_INVENTORY_PAGE_MAX]; } page;

static uint32_t holds(uint64_t cursor, uint32_t limit)
{
	noh_inventory_page m = { cursor, limit, 0 };

	EXPECT_EQ(kit_call(sku, NOH_INVENTORY_HOLDS, &m, sizeof m, NULL), NOH_OK);
	memcpy(&page, k.heard.body, k.heard.len);
	EXPECT_EQ(k.heard.len, sizeof page.head + page.head.count * sizeof page.list[0]);
	return page.head.count;
}

static bool is(int64_t on_hand, int64_t reserved, int64_t sold)
{
	noh_inventory_stock a = get();

	return EXPECT_EQ(a.outcome, NOH_INVENTORY_OK) & EXPECT_EQ(a.on_hand, on_hand) &
	       EXPECT_EQ(a.reserved, reserved) & EXPECT_EQ(a.sold, sold);
}

/* ── reserve, commit, release ── */

static void goods_are_reserved_then_sold_or_released(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		kit_begin(noh_inventory_type(), durable);
		EXPECT_EQ(restock(10).available, 10);
		noh_inventory_reserved a = reserve(4, 0), b = reserve(3, 0);
		EXPECT_EQ(a.reservation, 1);
		EXPECT_EQ(a.available, 6);
		EXPECT_EQ(a.expires, -1);
		EXPECT_EQ(b.reservation, 2);
		EXPECT_EQ(b.available, 3);
		EXPECT(is(10, 7, 0));
		noh_inventory_ended c = commit(1);
		EXPECT_EQ(c.outcome, NOH_INVENTORY_OK);
		EXPECT_EQ(c.n, 4);
		EXPECT(is(6, 3, 4));
		EXPECT_EQ(release(2).n, 3);
		EXPECT(is(6, 0, 4));
		EXPECT_EQ(get().holds, 0);
		EXPECT_EQ(reserve(6, 0).reservation, 3);         /* numbers are not used again */
		EXPECT_EQ(get().restocked, 10);
		kit_end();
	}
}

static void more_than_there_is_cannot_be_reserved(void)
{
	kit_begin(noh_inventory_type(), false);
	restock(5);
	reserve(3, 0);
	noh_inventory_reserved a = reserve(3, 0);
	EXPECT_EQ(a.outcome, NOH_INVENTORY_SHORT);
	EXPECT_EQ(a.reservation, 0);
	EXPECT_EQ(a.available, 2);
	EXPECT(is(5, 3, 0));
	EXPECT_EQ(reserve(2, 0).reservation, 2);
	EXPECT_EQ(reserve(1, 0).outcome, NOH_INVENTORY_SHORT);
	commit(1);
	EXPECT_EQ(reserve(1, 0).outcome, NOH_INVENTORY_SHORT);   /* sold is not available */
	release(2);
	EXPECT_EQ(reserve(2, 0).outcome, NOH_INVENTORY_OK);
	EXPECT_EQ(reserve(INT64_MAX, 0).outcome, NOH_INVENTORY_SHORT);
	kit_end();
}

static void the_end_of_a_hold_is_told_the_same_each_time(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		kit_begin(noh_inventory_type(), durable);
		restock(10);
		reserve(1, 0);
		reserve(2, 0);
		reserve(3, 50);
		commit(1);
		release(2);
		kit_pass_ms(50);
		for (int i = 0; i < 3; i++) {
			static const struct { uint32_t kind; uint64_t hold; uint32_t outcome; int64_t n; } t[] = {
				{ NOH_INVENTORY_COMMIT, 1, NOH_INVENTORY_OK, 1 },
				{ NOH_INVENTORY_RELEASE, 1, NOH_INVENTORY_COMMITTED, 1 },
				{ NOH_INVENTORY_COMMIT, 2, NOH_INVENTORY_RELEASED, 2 },
				{ NOH_INVENTORY_RELEASE, 2, NOH_INVENTORY_OK, 2 },
				{ NOH_INVENTORY_COMMIT, 3, NOH_INVENTORY_EXPIRED, 3 },
				{ NOH_INVENTORY_RELEASE, 3, NOH_INVENTORY_EXPIRED, 3 },
			};

			for (size_t r = 0; r < sizeof t / sizeof t[0]; r++) {
				noh_inventory_ended a = end(t[r].kind, t[r].hold);

				EXPECT_EQ(a.outcome, t[r].outcome);
				EXPECT_EQ(a.n, t[r].n);
			}
			EXPECT(is(9, 0, 1));
			if (durable && i == 1)
				kit_restart(noh_inventory_type(), 0);
		}
		kit_end();
	}
}

static void nobody_knows_a_number_that_was_never_given(void)
{
	kit_begin(noh_inventory_type(), false);
	restock(1);
	reserve(1, 0);
	static const uint64_t odd[] = { 0, 2, 1000, UINT64_C(1) << 56, (UINT64_C(1) << 56) + 1, UINT64_MAX };
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		EXPECT_EQ(commit(odd[i]).outcome, NOH_INVENTORY_NO_HOLD);
		EXPECT_EQ(release(odd[i]).outcome, NOH_INVENTORY_NO_HOLD);
	}
	EXPECT(is(1, 1, 0));
	kit_end();
}

static bool nothing_is_left(void)
{
	noh_box_stats s = kit_stats();

	return s.actors == 0 && s.stored == 0 && s.timers == 0 && s.journal_records == 0;
}

static void an_unknown_sku_leaves_nothing_behind(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		kit_begin(noh_inventory_type(), durable);
		EXPECT_EQ(get().outcome, NOH_INVENTORY_NO_SKU);
		EXPECT(nothing_is_left());
		EXPECT_EQ(reserve(1, 0).outcome, NOH_INVENTORY_NO_SKU);
		EXPECT(nothing_is_left());
		EXPECT_EQ(commit(1).outcome, NOH_INVENTORY_NO_SKU);
		EXPECT(nothing_is_left());
		EXPECT_EQ(release(1).outcome, NOH_INVENTORY_NO_SKU);
		EXPECT_EQ(holds(0, 0), 0);
		EXPECT_EQ(page.head.outcome, NOH_INVENTORY_NO_SKU);
		EXPECT_EQ(restock(0).outcome, NOH_INVENTORY_BAD_AMOUNT);
		EXPECT_EQ(count(-1).outcome, NOH_INVENTORY_BAD_AMOUNT);
		EXPECT(nothing_is_left());
		EXPECT_EQ(count(0).outcome, NOH_INVENTORY_OK);   /* counted, and there are none: known */
		EXPECT_EQ(get().outcome, NOH_INVENTORY_OK);
		EXPECT_EQ(reserve(1, 0).outcome, NOH_INVENTORY_SHORT);
		kit_end();
	}
}

static void amounts_that_make_no_sense_are_refused(void)
{
	kit_begin(noh_inventory_type(), false);
	restock(5);
	static const int64_t bad[] = { 0, -1, INT64_MIN };
	for (size_t i = 0; i < 3; i++) {
		EXPECT_EQ(restock(bad[i]).outcome, NOH_INVENTORY_BAD_AMOUNT);
		EXPECT_EQ(reserve(bad[i], 0).outcome, NOH_INVENTORY_BAD_AMOUNT);
		if (bad[i] < 0)
			EXPECT_EQ(count(bad[i]).outcome, NOH_INVENTORY_BAD_AMOUNT);
	}
	EXPECT_EQ(restock(INT64_MAX).outcome, NOH_INVENTORY_OVERFLOW);
	EXPECT_EQ(restock(INT64_MAX - 5).outcome, NOH_INVENTORY_OK);
	EXPECT_EQ(restock(1).outcome, NOH_INVENTORY_OVERFLOW);
	reserve(INT64_MAX, 0);
	commit(1);
	EXPECT_EQ(restock(1).outcome, NOH_INVENTORY_OVERFLOW);   /* sold counts as well */
	EXPECT_EQ(count(1).outcome, NOH_INVENTORY_OVERFLOW);
	EXPECT_EQ(count(0).outcome, NOH_INVENTORY_OK);
	EXPECT(is(0, 0, INT64_MAX));
	kit_end();
}

static void a_stock_take_is_accounted_and_never_below_what_is_reserved(void)
{
	kit_begin(noh_inventory_type(), false);
	restock(10);
	reserve(4, 0);
	noh_inventory_stock a = count(3);
	EXPECT_EQ(a.outcome, NOH_INVENTORY_BELOW_RESERVED);
	EXPECT_EQ(a.on_hand, 10);
	EXPECT_EQ(a.reserved, 4);
	a = count(4);
	EXPECT_EQ(a.outcome, NOH_INVENTORY_OK);
	EXPECT_EQ(a.available, 0);
	EXPECT_EQ(a.adjusted, -6);
	commit(1);
	a = count(20);
	EXPECT_EQ(a.adjusted, 14);
	EXPECT_EQ(a.restocked, 10);
	EXPECT_EQ(a.sold, 4);
	EXPECT_EQ(a.on_hand, 20);
	kit_end();
}

static void a_set_of_holds_is_listed_page_by_page(void)
{
	uint64_t cursor = 0, seen = 0;
	int pages = 0;

	kit_begin(noh_inventory_type(), false);
	restock(100000);
	for (int i = 1; i <= 250; i++)
		reserve(i, i % 2 ? 0 : 1000 * i);
	commit(1);
	release(250);
	do {
		uint32_t n = holds(cursor, 100);

		for (uint32_t i = 0; i < n; i++) {
			noh_inventory_hold h = page.list[i];

			EXPECT_EQ(h.reservation, seen + 2);
			EXPECT_EQ(h.n, h.reservation);
			EXPECT_EQ(h.expires, h.n % 2 ? -1 : kit_wall() + 1000 * h.n);
			seen++;
		}
		cursor = page.head.cursor;
		pages++;
	} while (cursor);
	EXPECT_EQ(seen, 248);
	EXPECT_EQ(pages, 3);
	EXPECT_EQ(holds(0, 0), 100);
	EXPECT_EQ(holds(0, NOH_INVENTORY_PAGE_MAX), 248);
	EXPECT_EQ(page.head.cursor, 0);
	EXPECT_EQ(holds(UINT64_MAX, 10), 0);
	EXPECT_EQ(page.head.cursor, 0);
	kit_end();
}

/* ── time ── */

static void a_hold_past_its_time_is_released_by_its_timer(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		kit_begin(noh_inventory_type(), durable);
		restock(10);
		noh_inventory_reserved a = reserve(4, 2000);
		EXPECT_EQ(a.expires, kit_wall() + 2000);
		reserve(3, 1000);
		reserve(1, 0);
		EXPECT_EQ(kit_stats().timers, 1);
		kit_pass_ms(999);
		EXPECT(is(10, 8, 0));
		kit_pass_ms(1);
		EXPECT(is(10, 5, 0));
		EXPECT_EQ(get().holds, 2);
		kit_pass_ms(1000);
		EXPECT(is(10, 1, 0));
		EXPECT_EQ(commit(1).outcome, NOH_INVENTORY_EXPIRED);
		EXPECT_EQ(commit(3).outcome, NOH_INVENTORY_OK);
		kit_end();
	}
}

static int without_timers(noh_turn *turn, const noh_msg *msg)
{
	return msg->flags & NOH_MSG_TIMER ? NOH_OK : noh_inventory_type()->on_message(turn, msg);
}

/* COMMIT races the expiry, and time decides: before it the commit wins, from then on the expiry. */
static void time_decides_although_the_timer_is_late(void)
{
	noh_type late = *noh_inventory_type();

	late.on_message = without_timers;
	kit_begin(&late, true);
	restock(10);
	reserve(4, 100);
	reserve(6, 100);
	kit_pass_ms(99);
	EXPECT_EQ(commit(1).outcome, NOH_INVENTORY_OK);
	EXPECT_EQ(reserve(1, 0).outcome, NOH_INVENTORY_SHORT);
	kit_pass_ms(1);
	uint64_t records = kit_stats().journal_records;
	EXPECT_EQ(commit(2).outcome, NOH_INVENTORY_EXPIRED);
	EXPECT_EQ(commit(2).n, 6);
	EXPECT_EQ(release(2).outcome, NOH_INVENTORY_EXPIRED);
	EXPECT_EQ(holds(0, 10), 0);
	EXPECT(is(6, 0, 4));                                     /* as it is, not as it was written */
	EXPECT_EQ(reserve(7, 0).available, 6);
	kit_run(true);
	EXPECT_EQ(kit_stats().journal_records, records);         /* and none of it wrote */
	EXPECT_EQ(reserve(6, 0).available, 0);
	EXPECT_EQ(commit(2).outcome, NOH_INVENTORY_EXPIRED);
	EXPECT_EQ(commit(2).n, 6);
	EXPECT_EQ(release(3).outcome, NOH_INVENTORY_OK);
	reserve(5, 10);
	kit_pass_ms(10);
	EXPECT_EQ(count(0).outcome, NOH_INVENTORY_OK);           /* nothing is reserved any more */
	kit_end();
}

/* A timer whose turn came to nothing (no memory, say) is set again by whoever comes by later. */
static int first_timer_fails(noh_turn *turn, const noh_msg *msg)
{
	static bool failed;

	if ((msg->flags & NOH_MSG_TIMER) && !failed) {
		failed = true;
		return NOH_ENOMEM;
	}
	return noh_inventory_type()->on_message(turn, msg);
}

static void a_lost_timer_is_set_again(void)
{
	noh_type unlucky = *noh_inventory_type();

	unlucky.on_message = first_timer_fails;
	kit_begin(&unlucky, false);
	restock(10);
	reserve(4, 1000);
	reserve(1, 60000);
	kit_pass_ms(1000);
	EXPECT_EQ(kit_stats().timers, 0);
	kit_pass_ms(11000);
	commit(2);
	kit_run(true);
	EXPECT_EQ(kit_stats().timers, 1);
	kit_pass_ms(1);
	EXPECT(is(9, 0, 1));
	kit_end();
}

static void many_holds_expire_in_slices(void)
{
	kit_begin(noh_inventory_type(), true);
	restock(2000);
	for (int i = 0; i < 1000; i++)
		reserve(1, 1000 + i % 3);
	EXPECT(is(2000, 1000, 0));
	clock_virtual_advance(&k.clock, UINT64_C(2000) * 1000000u);
	for (int i = 0; i < 20; i++)                             /* a millisecond for each */
		kit_pass_ms(1);
	EXPECT(is(2000, 0, 0));
	EXPECT_EQ(get().holds, 0);
	EXPECT_EQ(reserve(2000, 0).outcome, NOH_INVENTORY_OK);
	kit_end();
}

static void ended_holds_are_remembered_for_a_day_and_no_longer(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		kit_begin(noh_inventory_type(), durable);
		restock(1000);
		for (int i = 0; i < 300; i++)
			reserve(1, 0);
		for (uint64_t i = 1; i <= 299; i++)
			(void)(i % 2 ? commit(i) : release(i));
		kit_pass_ms(NOH_INVENTORY_KEPT_MS - 1);
		EXPECT_EQ(commit(1).outcome, NOH_INVENTORY_OK);
		for (int i = 0; i < 10; i++)
			kit_pass_ms(1);
		EXPECT_EQ(commit(1).outcome, NOH_INVENTORY_FORGOTTEN);
		EXPECT_EQ(commit(1).n, 0);
		EXPECT_EQ(release(299).outcome, NOH_INVENTORY_FORGOTTEN);
		EXPECT_EQ(commit(300).outcome, NOH_INVENTORY_OK);        /* open all the while */
		EXPECT_EQ(commit(301).outcome, NOH_INVENTORY_NO_HOLD);
		kit_end();
	}
}

static void each_hold_is_remembered_for_its_own_day(void)
{
	kit_begin(noh_inventory_type(), false);
	restock(1000);
	for (int i = 0; i < 3; i++)
		reserve(1, 0);
	for (uint64_t i = 1; i <= 3; i++) {
		commit(i);
		kit_pass_ms(600 * SECOND);
	}
	kit_pass_ms(NOH_INVENTORY_KEPT_MS - 1800 * SECOND);
	EXPECT_EQ(commit(1).outcome, NOH_INVENTORY_FORGOTTEN);
	EXPECT_EQ(commit(2).outcome, NOH_INVENTORY_OK);
	kit_pass_ms(600 * SECOND);
	EXPECT_EQ(commit(2).outcome, NOH_INVENTORY_FORGOTTEN);
	EXPECT_EQ(commit(3).outcome, NOH_INVENTORY_OK);
	kit_pass_ms(600 * SECOND);
	EXPECT_EQ(commit(3).outcome, NOH_INVENTORY_FORGOTTEN);
	EXPECT_EQ(kit_stats().timers, 0);                        /* nothing is left to do */
	kit_end();
}

static void of_many_that_ended_the_oldest_are_forgotten(void)
{
	kit_begin(noh_inventory_type(), false);
	restock(NOH_INVENTORY_KEPT + 5);
	for (uint64_t i = 1; i <= NOH_INVENTORY_KEPT + 5; i++) {
		reserve(1, 0);
		commit(i);
	}
	EXPECT_EQ(commit(5).outcome, NOH_INVENTORY_FORGOTTEN);
	EXPECT_EQ(commit(6).outcome, NOH_INVENTORY_OK);
	EXPECT(is(0, 0, NOH_INVENTORY_KEPT + 5));
	kit_end();
}

static void the_longest_hold_is_a_year(void)
{
	kit_begin(noh_inventory_type(), false);
	restock(2);
	EXPECT_EQ(reserve(1, NOH_INVENTORY_TTL_MAX).outcome, NOH_INVENTORY_OK);
	EXPECT_EQ(NOH_INVENTORY_TTL_MAX, 365 * DAY);
	kit_pass_ms(365 * DAY - 1);
	EXPECT(is(2, 1, 0));
	kit_pass_ms(1);
	EXPECT(is(2, 0, 0));
	kit_end();
}

static void clocks_that_are_set_change_nothing_but_across_a_restart(void)
{
	const noh_type *type = noh_inventory_type();

	kit_begin(type, true);
	restock(10);
	reserve(1, 100 * SECOND);
	uint64_t right = load_relaxed(&k.clock.wall_ms);
	store_relaxed(&k.clock.wall_ms, right + (uint64_t)(365 * DAY));
	kit_pass_ms(10 * SECOND);
	EXPECT(is(10, 1, 0));                                    /* 90 left */
	store_relaxed(&k.clock.wall_ms, right);
	kit_restart(type, 30 * SECOND);
	EXPECT_EQ(holds(0, 1), 1);
	EXPECT_EQ(page.list[0].expires, kit_wall() + 60 * SECOND);
	kit_restart(type, -40 * SECOND);
	kit_pass_ms(99 * SECOND);
	EXPECT(is(10, 1, 0));
	kit_restart(type, 1 * SECOND);
	EXPECT(is(10, 0, 0));
	EXPECT_EQ(commit(1).outcome, NOH_INVENTORY_EXPIRED);
	kit_end();
}

/* ── keys, books, and what anybody may send ── */

static void a_reservation_with_a_key_is_made_once(void)
{
	noh_inventory_reserve m = { 2, 60000 };
	noh_inventory_reserved first, a;

	kit_begin(noh_inventory_type(), true);
	restock(10);
	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(kit_call(sku, NOH_INVENTORY_RESERVE, &m, sizeof m, "order-17"), NOH_OK);
		memcpy(&a, k.heard.body, sizeof a);
		if (i == 0)
			first = a;
		EXPECT(memcmp(&a, &first, sizeof a) == 0);
		if (i == 1)
			kit_restart(noh_inventory_type(), 0);
		if (i == 2)
			commit(a.reservation);
	}
	EXPECT(is(8, 0, 2));
	m.n = 3;
	EXPECT_EQ(kit_call(sku, NOH_INVENTORY_RESERVE, &m, sizeof m, "order-17"), NOH_EIDEM);
	kit_end();
}

/* Books that were damaged are not carried on: the first of the fields is what is on hand. */
static int cook_the_books(noh_turn *turn)
{
	int64_t *on_hand = noh_state(turn);

	if (*on_hand == 7)
		*on_hand = 8;
	return NOH_OK;
}

static void books_that_do_not_balance_fail_the_turn(void)
{
	noh_type cooked = *noh_inventory_type();
	int64_t one = 1;

	cooked.on_activate = cook_the_books;
	kit_begin(&cooked, true);
	restock(7);
	reserve(2, 0);
	kit_restart(&cooked, 0);
	EXPECT_EQ(kit_call(sku, NOH_INVENTORY_RESTOCK, &one, 8, NULL), NOH_EFAILED);
	EXPECT(strstr(k.log, "the books do not balance: on hand 9, reserved 2, available 6"));
	EXPECT_EQ(kit_call(sku, NOH_INVENTORY_COMMIT, &one, 8, NULL), NOH_EFAILED);
	EXPECT_EQ(kit_call(sku, NOH_INVENTORY_RESERVE, &one, 8, NULL), NOH_EFAILED);
	EXPECT_EQ(holds(0, 10), 1);                              /* as it was */
	kit_end();
}

static bool takes(uint32_t kind, const void *body, size_t len)
{
	int rc = kit_call(sku, kind, body, len, NULL);

	EXPECT(rc == NOH_OK || rc == NOH_EINVAL);
	return rc == NOH_OK;
}

static void a_malformed_body_is_refused_and_changes_nothing(void)
{
	char zeros[64] = { 0 };

	kit_begin(noh_inventory_type(), false);
	restock(5);
	reserve(1, 0);
	for (size_t len = 0; len <= sizeof zeros; len++) {
		EXPECT_EQ(takes(NOH_INVENTORY_GET, zeros, len), len == 0);
		EXPECT_EQ(takes(NOH_INVENTORY_RESTOCK, zeros, len), len == 8);
		EXPECT_EQ(takes(NOH_INVENTORY_RESERVE, zeros, len), len == 8 || len == 16);
		EXPECT_EQ(takes(NOH_INVENTORY_COMMIT, zeros, len), len == 8);
		EXPECT_EQ(takes(NOH_INVENTORY_RELEASE, zeros, len), len == 8);
		EXPECT_EQ(takes(NOH_INVENTORY_HOLDS, zeros, len), len == 16);
		if (len != 8)
			EXPECT(!takes(NOH_INVENTORY_SET, zeros, len));
	}
	EXPECT(strstr(k.log, "inventory:shoe: turn failed: malformed body of inventory SET, 64 bytes"));
	EXPECT(!takes(NOH_INVENTORY_RESERVE, &(noh_inventory_reserve){ 1, -1 }, 16));
	EXPECT(!takes(NOH_INVENTORY_RESERVE, &(noh_inventory_reserve){ 1, NOH_INVENTORY_TTL_MAX + 1 }, 16));
	EXPECT(!takes(NOH_INVENTORY_HOLDS, &(noh_inventory_page){ 0, NOH_INVENTORY_PAGE_MAX + 1, 0 }, 16));
	EXPECT(!takes(NOH_INVENTORY_HOLDS, &(noh_inventory_page){ 0, 1, 1 }, 16));
	EXPECT_EQ(kit_call(sku, NOH_INVENTORY_EXPIRE, NULL, 0, NULL), NOH_EKIND);
	EXPECT(is(5, 1, 0));
	kit_end();
}

static void any_bytes_are_survived(void)
{
	uint64_t random = test_seed;

	kit_begin(noh_inventory_type(), false);
	for (int i = 0; i < 20000; i++) {
		uint64_t body[4];
		size_t len = test_random(&random) % 4 ? 8 * (1 + test_random(&random) % 2) : test_random(&random) % 32;

		for (size_t w = 0; w < 4; w++)
			body[w] = test_random(&random) >> test_random(&random) % 64;
		(void)takes((uint32_t)(test_random(&random) % NOH_INVENTORY_EXPIRE), body, len);
	}
	(void)get();
	kit_end();
}

TEST_MAIN(
	TEST(goods_are_reserved_then_sold_or_released, "UC-10 US-12 RT-23"),
	TEST(more_than_there_is_cannot_be_reserved, "UC-10"),
	TEST(the_end_of_a_hold_is_told_the_same_each_time),
	TEST(nobody_knows_a_number_that_was_never_given),
	TEST(an_unknown_sku_leaves_nothing_behind),
	TEST(amounts_that_make_no_sense_are_refused),
	TEST(a_stock_take_is_accounted_and_never_below_what_is_reserved, "UC-10"),
	TEST(a_set_of_holds_is_listed_page_by_page),
	TEST(a_hold_past_its_time_is_released_by_its_timer, "UC-10"),
	TEST(time_decides_although_the_timer_is_late),
	TEST(a_lost_timer_is_set_again),
	TEST(many_holds_expire_in_slices),
	TEST(ended_holds_are_remembered_for_a_day_and_no_longer),
	TEST(each_hold_is_remembered_for_its_own_day),
	TEST(of_many_that_ended_the_oldest_are_forgotten),
	TEST(the_longest_hold_is_a_year),
	TEST(clocks_that_are_set_change_nothing_but_across_a_restart),
	TEST(a_reservation_with_a_key_is_made_once),
	TEST(books_that_do_not_balance_fail_the_turn, "US-12"),
	TEST(a_malformed_body_is_refused_and_changes_nothing),
	TEST(any_bytes_are_survived))
