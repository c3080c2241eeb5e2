/* tests/box/stop_tree_test.c - trees stop from their leaves, also where a parent is not in memory. */
#include "tests/box/kin_kit.h"

static void a_tree_stops_from_its_leaves_the_last_spawned_first(void)
{
	FOR_WORKERS(n) {
		noh_box *box = BOX(n, &bare, &child);

		EXPECT_EQ(tell(box, "p:1", SPAWN, "p:2"), NOH_OK);
		EXPECT(test_wait_until(has_parent, &(struct kit_about){ box, "p:2", 0 }, SOON));
		family(box, "p:2", 2);
		EXPECT_EQ(tell(box, "p:1", SPAWN, "c:4"), NOH_OK);
		EXPECT(test_wait_until(has_parent, &(struct kit_about){ box, "c:4", 0 }, SOON));
		forget();
		EXPECT_EQ(noh_stop_tree(box, "p:2", SOON), NOH_OK);
		EXPECT(traces("-c:2 -c:1 -p:2 "));
		forget();
		EXPECT_EQ(noh_stop_tree(box, "p:1", SOON), NOH_OK);
		EXPECT(traces("-c:4 -p:1 "));
		EXPECT_EQ(noh_stop_tree(box, "p:1", SOON), NOH_OK);      /* nobody is there */
		end(box);
	}
}

/* p:1, below it p:2, below that c:1 and c:2; then p:2 goes to storage. */
static noh_box *family_without_its_middle(unsigned workers)
{
	noh_box *box = BOX(workers, &bare, &child);

	EXPECT_EQ(tell(box, "p:1", SPAWN, "p:2"), NOH_OK);
	EXPECT(test_wait_until(has_parent, &(struct kit_about){ box, "p:2", 0 }, SOON));
	family(box, "p:2", 2);
	EXPECT_EQ(noh_deactivate(box, "p:2", false, SOON), NOH_OK);
	forget();
	return box;
}

static void children_of_a_parent_in_storage_stop_with_the_tree(void)
{
	FOR_WORKERS(n) {
		noh_box *box = family_without_its_middle(n);

		EXPECT_EQ(noh_stop_tree(box, "p:1", SOON), NOH_OK);
		EXPECT(traces("-c:2 -c:1 -p:1 "));
		end(box);
		box = family_without_its_middle(n);      /* the root itself */
		EXPECT_EQ(noh_stop_tree(box, "p:2", SOON), NOH_OK);
		EXPECT(traces("-c:2 -c:1 "));
		EXPECT_EQ(status_of(box, "p:1").life, NOH_ACTIVE);
		end(box);
		box = family_without_its_middle(n);      /* the top as well: nobody in memory knows that it is one */
		EXPECT_EQ(noh_deactivate(box, "p:1", false, SOON), NOH_OK);
		forget();
		EXPECT_EQ(noh_stop_tree(box, "p:1", SOON), NOH_OK);
		EXPECT(traces("-c:2 -c:1 "));
		end(box);
		box = family_without_its_middle(n);
		EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
		EXPECT(is_traced((void *)(uintptr_t)"-c:2 -c:1 -p:1 "));
		noh_close(box);
	}
}

static void children_stop_with_a_parent_that_was_not_active_since_the_start(void)
{
	char room[256];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = open_logged(dir, 2, TYPES(&parent, &child));

	family(box, "p:1", 3);
	end(box);
	box = open_logged(dir, 2, TYPES(&parent, &child));
	EXPECT_EQ(tell(box, "c:1", CHILDREN, NULL), NOH_OK);
	EXPECT_EQ(tell(box, "c:3", CHILDREN, NULL), NOH_OK);
	forget();
	EXPECT_EQ(noh_stop_tree(box, "p:1", SOON), NOH_OK);
	EXPECT(traces("-c:3 -c:1 "));
	end(box);
	box = open_logged(dir, 2, TYPES(&child));        /* its type is gone: who stops it does not wait for it */
	EXPECT_EQ(tell(box, "c:1", CHILDREN, NULL), NOH_OK);
	forget();
	EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
	EXPECT(is_traced((void *)(uintptr_t)"-c:1 "));
	noh_close(box);
	remove_dir(dir);
}

/* More in between than the table of them has room for at first. */
static void a_long_line_of_parents_in_storage_is_followed_to_its_top(void)
{
	noh_box *box = BOX(2, &bare, &child);
	char above[32], below[32];

	for (unsigned i = 1; i <= 300; i++) {
		snprintf(above, sizeof above, "p:%u", i);
		snprintf(below, sizeof below, i < 300 ? "p:%u" : "c:%u", i + 1);
		EXPECT_EQ(tell(box, above, SPAWN, below), NOH_OK);
		EXPECT(test_wait_until(has_parent, &(struct kit_about){ box, below, 0 }, SOON));
	}
	for (unsigned i = 2; i <= 300; i++) {
		snprintf(above, sizeof above, "p:%u", i);
		EXPECT_EQ(noh_deactivate(box, above, false, SOON), NOH_OK);
	}
	forget();
	EXPECT_EQ(noh_stop_tree(box, "p:1", SOON), NOH_OK);
	EXPECT(traces("-c:301 -p:1 "));
	end(box);
}

static void the_box_stops_its_trees_in_order(void)
{
	noh_box *box = BOX(2, &bare, &child);

	family(box, "p:1", 3);
	forget();
	EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
	EXPECT(is_traced((void *)(uintptr_t)"-c:3 -c:2 -c:1 -p:1 "));
	noh_close(box);
}

static void a_box_that_is_drained_stops_its_trees_in_order(void)
{
	FOR_WORKERS(n) {
		noh_box *box = BOX(n, &bare, &child);

		family(box, "p:1", 3);
		forget();
		EXPECT_EQ(noh_drain(box, SOON, NULL, NULL), NOH_OK);
		EXPECT(is_traced((void *)(uintptr_t)"-c:3 -c:2 -c:1 -p:1 "));
		end(box);
	}
}

static void who_does_not_even_stop_by_force_is_named(void)
{
	noh_box *box = BOX(2, &bare, &hurried);

	family(box, "p:1", 2);
	gate_shut();
	EXPECT_EQ(noh_send(box, "c:1", HANG, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(noh_stop_tree(box, "p:1", SOON), NOH_ETIMEOUT);
	EXPECT(strstr(noh_why(), "c:1 did not stop") != NULL);
	EXPECT_EQ(status_of(box, "c:2").life, NOH_NOT_ACTIVE);
	EXPECT_EQ(status_of(box, "p:1").life, NOH_NOT_ACTIVE);
	gate_open();
	end(box);
}

static void who_does_not_stop_in_time_is_stopped_by_force(void)
{
	noh_box *box = BOX(2, &bare, &hurried);

	family(box, "p:1", 1);
	set_failures(1000000, false);
	EXPECT_EQ(noh_send(box, "c:1", FAIL, NULL, 0), NOH_OK);  /* it is down again and again, and never done */
	EXPECT_EQ(noh_stop_tree(box, "p:1", SOON), NOH_OK);
	EXPECT_EQ(status_of(box, "c:1").life, NOH_NOT_ACTIVE);
	EXPECT_EQ(status_of(box, "p:1").life, NOH_NOT_ACTIVE);
	set_failures(0, false);
	end(box);
}

TEST_MAIN(
	TEST(a_tree_stops_from_its_leaves_the_last_spawned_first),
	TEST(children_of_a_parent_in_storage_stop_with_the_tree),
	TEST(children_stop_with_a_parent_that_was_not_active_since_the_start),
	TEST(a_long_line_of_parents_in_storage_is_followed_to_its_top),
	TEST(the_box_stops_its_trees_in_order),
	TEST(a_box_that_is_drained_stops_its_trees_in_order),
	TEST(who_does_not_even_stop_by_force_is_named),
	TEST(who_does_not_stop_in_time_is_stopped_by_force))
