/* tests/actors/sale_test.c - the built-in types with real threads, real time and kill -9: nothing is sold
 * twice, lost or counted twice (UC-10, UC-11, UC-13; P7). */
#include "tests/box/kit.h"

#include "noh_actors.h"
#include "tests/box/durable_kit.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { UNITS = 1000, BUYERS = 8 };

static noh_box *box;
static atomic_u64 commits, releases, sold_out, taken[64 * UNITS];

static noh_box *open_box(const char *dir, unsigned workers)
{
	return open_dir(dir, workers, (noh_type[]){ *noh_counter_type(), *noh_inventory_type() }, 2);
}

static uint32_t ask(const char *address, uint32_t kind, const void *body, size_t len, void *answer, size_t size,
		    const char *key)
{
	noh_call_options o = { .timeout_ms = 60000, .key = key, .key_len = key ? strlen(key) : 0 };
	size_t got = size;
	uint32_t outcome;

	if (!EXPECT_EQ(noh_call_with(box, address, kind, body, len, &o, answer, &got), NOH_OK) ||
	    !EXPECT_EQ(got, size))
		return UINT32_MAX;
	memcpy(&outcome, answer, sizeof outcome);
	return outcome;
}

static noh_inventory_stock stock(const char *sku)
{
	noh_inventory_stock a;

	EXPECT_EQ(ask(sku, NOH_INVENTORY_GET, NULL, 0, &a, sizeof a, NULL), NOH_INVENTORY_OK);
	EXPECT_EQ(a.on_hand, a.available + a.reserved);
	EXPECT_EQ(a.restocked + a.adjusted, a.on_hand + a.sold);
	return a;
}

static void restock(const char *sku, int64_t n)
{
	noh_inventory_stock a;

	EXPECT_EQ(ask(sku, NOH_INVENTORY_RESTOCK, &n, sizeof n, &a, sizeof a, NULL), NOH_INVENTORY_OK);
}

/* Reserve one; most buyers pay, some change their minds, and some only let their time pass. */
static void *buy(void *number)
{
	uint64_t random = test_seed + (uintptr_t)number;

	while (!load_relaxed(&sold_out)) {
		uint64_t mind = test_random(&random) % 10;
		noh_inventory_reserve m = { 1, mind == 0 ? 1 : 60000 };
		noh_inventory_reserved r;
		noh_inventory_ended e;

		switch (ask("inventory:shoe", NOH_INVENTORY_RESERVE, &m, sizeof m, &r, sizeof r, NULL)) {
		case NOH_INVENTORY_OK:
			break;
		case NOH_INVENTORY_SHORT:
			if (stock("inventory:shoe").sold == UNITS)
				store_relaxed(&sold_out, 1);
			continue;
		default:
			EXPECT(!"a reservation is made, or there is none left");
			return NULL;
		}
		EXPECT_EQ(add_relaxed(&taken[r.reservation % (64 * UNITS)], 1), 0);      /* nobody else has it */
		if (mind == 0)
			continue;
		uint32_t kind = mind == 1 ? NOH_INVENTORY_RELEASE : NOH_INVENTORY_COMMIT;
		EXPECT_EQ(ask("inventory:shoe", kind, &r.reservation, 8, &e, sizeof e, NULL), NOH_INVENTORY_OK);
		add_relaxed(mind == 1 ? &releases : &commits, 1);
	}
	return NULL;
}

static void a_flash_sale_sells_what_there_is(void)
{
	for (int durable = 0; durable <= 1; durable++) {
		char room[256];
		struct threads t;

		store_relaxed(&sold_out, 0);
		store_relaxed(&commits, 0);
		memset(taken, 0, sizeof taken);
		box = open_box(durable ? fresh_dir(room, sizeof room) : NULL, 2);
		restock("inventory:shoe", UNITS);
		threads_start(&t, BUYERS, buy);
		threads_join(&t);
		EXPECT_EQ(load_relaxed(&commits), UNITS);
		EXPECT_EQ(stock("inventory:shoe").sold, UNITS);
		EXPECT_EQ(stock("inventory:shoe").on_hand, 0);
		shut(box);
		if (durable)
			remove_dir(room);
	}
}

/* A coupon is a SKU, and so is a bounded counter. */
static void *grab(void *number)
{
	const noh_counter_add one = { .by = 1, .low = INT64_MIN, .high = UNITS };

	(void)number;
	for (int i = 0; i < UNITS / 4; i++) {
		noh_inventory_reserved r;
		noh_counter_added a;

		if (ask("inventory:coupon", NOH_INVENTORY_RESERVE, &(int64_t){ 1 }, 8, &r, sizeof r, NULL) ==
		    NOH_INVENTORY_OK)
			add_relaxed(&commits, 1);
		if (ask("counter:coupon", NOH_COUNTER_ADD, &one, sizeof one, &a, sizeof a, NULL) == NOH_COUNTER_OK)
			add_relaxed(&releases, (uint64_t)a.applied);
	}
	return NULL;
}

static void so_many_coupons_have_so_many_winners(void)
{
	struct threads t;

	store_relaxed(&commits, 0);
	store_relaxed(&releases, 0);
	box = open_box(NULL, 2);
	restock("inventory:coupon", UNITS);
	threads_start(&t, BUYERS, grab);                 /* twice as many tries as there are coupons */
	threads_join(&t);
	EXPECT_EQ(load_relaxed(&commits), UNITS);
	EXPECT_EQ(load_relaxed(&releases), UNITS);
	EXPECT_EQ(stock("inventory:coupon").available, 0);
	shut(box);
}

static void *count_up(void *number)
{
	for (int i = 0; i < 500; i++) {
		int64_t by = (int64_t)(uintptr_t)number + 1;
		char address[32];
		noh_counter_added a;

		snprintf(address, sizeof address, "counter:%d", i % 7);
		EXPECT_EQ(ask(address, NOH_COUNTER_ADD, &by, sizeof by, &a, sizeof a, NULL), NOH_COUNTER_OK);
	}
	return NULL;
}

static void many_who_count_count_right(void)
{
	int64_t sum = 0;
	struct threads t;

	box = open_box(NULL, 4);
	threads_start(&t, BUYERS, count_up);
	threads_join(&t);
	for (int i = 0; i < 7; i++) {
		char address[32];
		noh_counter_value a;

		snprintf(address, sizeof address, "counter:%d", i);
		EXPECT_EQ(ask(address, NOH_COUNTER_GET, NULL, 0, &a, sizeof a, NULL), NOH_COUNTER_OK);
		sum += a.value;
	}
	EXPECT_EQ(sum, 500 * BUYERS * (BUYERS + 1) / 2);
	shut(box);
}

static bool key_is_gone(void *unused)
{
	noh_counter_value a;

	(void)unused;
	return ask("counter:brief", NOH_COUNTER_GET, NULL, 0, &a, sizeof a, NULL) == NOH_COUNTER_NONE;
}

static bool hold_is_gone(void *unused)
{
	(void)unused;
	return stock("inventory:brief").reserved == 0;
}

static bool nobody_is_left(void *unused)
{
	(void)unused;
	return stats(box).stored + stats(box).actors == 1;       /* the SKU */
}

static void time_passes_in_a_running_box(void)
{
	noh_counter_set brief = { .value = 1, .time = 30, .flags = NOH_COUNTER_IN };
	noh_inventory_reserve hold = { 1, 30 };
	noh_inventory_reserved r;
	noh_counter_value a;

	box = open_box(NULL, 2);
	restock("inventory:brief", 1);
	EXPECT_EQ(ask("inventory:brief", NOH_INVENTORY_RESERVE, &hold, sizeof hold, &r, sizeof r, NULL),
		  NOH_INVENTORY_OK);
	EXPECT_EQ(ask("counter:brief", NOH_COUNTER_SET, &brief, sizeof brief, &a, sizeof a, NULL), NOH_COUNTER_OK);
	EXPECT(test_wait_until(nobody_is_left, NULL, 20000));
	EXPECT(test_wait_until(hold_is_gone, NULL, 20000));
	EXPECT(test_wait_until(key_is_gone, NULL, 20000));
	shut(box);
}

/* ── kill -9 ── */

enum { STOCK = 300, ORDERS = 500, CLERKS = 4, ROUNDS = 4 };
enum { NEW, SOLD, REFUSED };

/* Shared with the child that is killed. */
static struct tally {
	atomic_u64 order[ORDERS], reservation[ORDERS], answered;
} *tally;

/* One order: counted, reserved, sold; all of it with keys, so that it may be tried as often as need be. */
static void work_on(uint64_t i)
{
	noh_inventory_reserve m = { 1, 0 };
	noh_inventory_reserved r;
	noh_inventory_ended e;
	noh_counter_added c;
	char key[32];

	snprintf(key, sizeof key, "order-%llu", (unsigned long long)i);
	EXPECT_EQ(ask("counter:orders", NOH_COUNTER_ADD, &(int64_t){ 1 }, 8, &c, sizeof c, key), NOH_COUNTER_OK);
	if (ask("inventory:shoe", NOH_INVENTORY_RESERVE, &m, sizeof m, &r, sizeof r, key) == NOH_INVENTORY_OK) {
		uint64_t before = load_relaxed(&tally->reservation[i]);

		EXPECT(before == 0 || before == r.reservation);  /* the retry has the same one */
		store_relaxed(&tally->reservation[i], r.reservation);
		EXPECT_EQ(ask("inventory:shoe", NOH_INVENTORY_COMMIT, &r.reservation, 8, &e, sizeof e, NULL),
			  NOH_INVENTORY_OK);
		store_relaxed(&tally->order[i], SOLD);
	} else {
		EXPECT_EQ(r.outcome, NOH_INVENTORY_SHORT);
		store_relaxed(&tally->order[i], REFUSED);
	}
	add_seq_cst(&tally->answered, 1);
}

static void *clerk(void *number)
{
	for (uint64_t i = (uintptr_t)number; i < ORDERS; i += CLERKS)
		if (load_relaxed(&tally->order[i]) == NEW)
			work_on(i);
	return NULL;
}

static void work(const char *dir)
{
	struct threads t;

	box = open_box(dir, 2);
	threads_start(&t, CLERKS, clerk);
	threads_join(&t);
}

static bool enough(void *until)
{
	return load_seq_cst(&tally->answered) >= *(uint64_t *)until;
}

static uint64_t orders_that(uint64_t what)
{
	uint64_t n = 0;

	for (int i = 0; i < ORDERS; i++)
		n += load_relaxed(&tally->order[i]) == what;
	return n;
}

static void kill_minus_nine_in_the_middle_of_a_sale(void)
{
	uint64_t random = test_seed;
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_counter_value a;

	tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	box = open_box(dir, 1);
	restock("inventory:shoe", STOCK);
	noh_close(box);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t until = load_seq_cst(&tally->answered) + test_random(&random) % (ORDERS / ROUNDS);
		pid_t child = fork();

		if (child == 0) {
			work(dir);
			pause();
		}
		EXPECT(test_wait_until(enough, &until, 30000));
		kill(child, SIGKILL);
		EXPECT_EQ(waitpid(child, NULL, 0), child);
		box = open_box(dir, 2);
		EXPECT(stock("inventory:shoe").sold >= (int64_t)orders_that(SOLD));
		noh_close(box);
	}
	work(dir);                                       /* and to the end */
	EXPECT_EQ(orders_that(SOLD), STOCK);
	EXPECT_EQ(orders_that(REFUSED), ORDERS - STOCK);
	for (uint64_t i = 0; i < ORDERS; i++)            /* once more, all of them: nothing happens */
		work_on(i);
	EXPECT_EQ(orders_that(SOLD), STOCK);
	EXPECT_EQ(stock("inventory:shoe").sold, STOCK);
	EXPECT_EQ(stock("inventory:shoe").on_hand, 0);
	EXPECT_EQ(ask("counter:orders", NOH_COUNTER_GET, NULL, 0, &a, sizeof a, NULL), NOH_COUNTER_OK);
	EXPECT_EQ(a.value, ORDERS);
	shut(box);
	munmap(tally, sizeof *tally);
	remove_dir(dir);
}

TEST_MAIN(
	TEST(a_flash_sale_sells_what_there_is, "UC-10 UC-18 US-12"),
	TEST(so_many_coupons_have_so_many_winners, "UC-13"),
	TEST(many_who_count_count_right, "UC-11 UC-18"),
	TEST(time_passes_in_a_running_box, "LC-05"),
	TEST(kill_minus_nine_in_the_middle_of_a_sale, "UC-10 US-10 US-12"))
