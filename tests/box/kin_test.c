/* tests/box/kin_test.c - parents and children: the tree, restarting several, escalation, watching. */
#include "tests/box/chain_kit.h"
#include "tests/box/kin_kit.h"

/* ── who belongs to whom ── */

static void children_are_kept_in_the_order_spawned(void)
{
	char room[256], text[4096];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = open_logged(dir, 2, TYPES(&parent, &child));

	set_failures(0, false);
	family(box, "p:1", 3);
	EXPECT_EQ(tell(box, "p:1", SPAWN, "c:2"), NOH_OK);               /* it keeps its place */
	EXPECT_EQ(tell(box, "p:1", SPAWN_AND_FAIL, "c:9"), NOH_EINVAL);  /* retried, set aside: never a child */
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(ask_text(box, "p:1", CHILDREN, NULL, text, sizeof text), NOH_OK);
		EXPECT(strcmp(text, "c:1 c:2 c:3 ") == 0);
		EXPECT_EQ(ask_text(box, "c:2", PARENT, NULL, text, sizeof text), NOH_OK);
		EXPECT(strcmp(text, "p:1") == 0);
		EXPECT_EQ(vitals_of(box, "c:2").order, 2);
		EXPECT_EQ(vitals_of(box, "p:1").children, 3);
		EXPECT_EQ(get(box, "p:1", KEYS), 1);             /* its own */
		end_chained(box);
		box = open_logged(dir, 2, TYPES(&parent, &child));
	}
	EXPECT_EQ(tell(box, "p:1", DISOWN, "c:2"), NOH_OK);
	EXPECT_EQ(tell(box, "p:1", SPAWN, "c:4"), NOH_OK);
	EXPECT_EQ(ask_text(box, "p:1", CHILDREN, NULL, text, sizeof text), NOH_OK);
	EXPECT(strcmp(text, "c:1 c:3 c:4 ") == 0);
	end_chained(box);
	remove_dir(dir);
}

static void an_actor_is_not_its_own_ancestor(void)
{
	noh_box *box = BOX(1, &bare, &child);

	EXPECT_EQ(tell(box, "p:1", SPAWN, "p:1"), NOH_EINVAL);
	EXPECT_EQ(tell(box, "p:1", SPAWN, "p/1"), NOH_EINVAL);
	EXPECT_EQ(tell(box, "p:1", SPAWN, "p:2"), NOH_OK);
	EXPECT(test_wait_until(has_parent, &(struct kit_about){ box, "p:2", 0 }, SOON));
	EXPECT_EQ(tell(box, "p:2", SPAWN, "p:1"), NOH_EINVAL);
	end_chained(box);
}

static int draw(void *user, const noh_tree_node *n)
{
	sprintf((char *)user + strlen(user), "%*s%s%s\n", (int)n->depth * 2, "", n->address, n->last ? "." : "");
	return 0;
}

static void the_tree_is_told_depth_first(void)
{
	char text[4096] = "";
	noh_box *box = BOX(2, &bare, &child);

	EXPECT_EQ(tell(box, "p:1", SPAWN, "p:2"), NOH_OK);
	EXPECT(test_wait_until(has_parent, &(struct kit_about){ box, "p:2", 0 }, SOON));
	family(box, "p:2", 3);
	EXPECT_EQ(tell(box, "p:1", SPAWN, "c:4"), NOH_OK);
	EXPECT(test_wait_until(has_parent, &(struct kit_about){ box, "c:4", 0 }, SOON));
	EXPECT_EQ(noh_tree(box, NULL, draw, text), NOH_OK);
	EXPECT(strcmp(text, "p:1.\n  p:2\n    c:1\n    c:2\n    c:3.\n  c:4.\n") == 0);
	text[0] = 0;
	EXPECT_EQ(noh_tree(box, "p/2", draw, text), NOH_OK);
	EXPECT(strcmp(text, "p:2.\n  c:1\n  c:2\n  c:3.\n") == 0);
	EXPECT_EQ(noh_tree(box, "p:9", draw, text), NOH_ENOACTOR);
	end_chained(box);
}

/* ── several at once ── */

static void one_for_one_restarts_only_the_one(void)
{
	noh_box *box = BOX(2, &parent, &child);

	family(box, "p:1", 3);
	forget();
	set_failures(1, false);
	EXPECT_EQ(call(box, "c:2", FAIL), NOH_OK);
	EXPECT(traces("+c:2 "));
	EXPECT_EQ(vitals_of(box, "c:1").restarts, 0);
	end_chained(box);
}

static void one_for_all_restarts_all_in_the_order_spawned(void)
{
	FOR_WORKERS(n) {
		noh_box *box = BOX(n, &all, &child);

		family(box, "p:1", 4);
		forget();
		set_failures(1, false);
		EXPECT_EQ(call(box, "c:3", FAIL), NOH_OK);
		EXPECT(traces("+c:1 +c:2 +c:3 +c:4 "));
		EXPECT_EQ(vitals_of(box, "c:3").restarts, 1);
		EXPECT_EQ(vitals_of(box, "c:1").restarts, 0);    /* it has not failed */
		EXPECT(gets(box, "c:4", NOH_HEALTHY));
		EXPECT_EQ(call(box, "c:1", CHILDREN), NOH_OK);
		end_chained(box);
	}
}

static void rest_for_one_restarts_those_spawned_after_it(void)
{
	FOR_WORKERS(n) {
		noh_box *box = BOX(n, &rest, &child);

		family(box, "p:1", 4);
		forget();
		set_failures(1, false);
		EXPECT_EQ(call(box, "c:2", FAIL), NOH_OK);
		EXPECT(traces("+c:2 +c:3 +c:4 "));
		EXPECT(gets(box, "c:4", NOH_HEALTHY));
		end_chained(box);
	}
}

/* ── upwards ── */

static void repeated_failure_goes_up_the_tree(void)
{
	noh_box *box = BOX(2, &top, &middle, &weak);

	EXPECT_EQ(tell(box, "top:1", SPAWN, "p:1"), NOH_OK);
	EXPECT(test_wait_until(has_parent, &(struct kit_about){ box, "p:1", 0 }, SOON));
	family(box, "p:1", 2);
	forget();
	set_failures(3, false);                  /* two restarts are allowed: the third is the parent's */
	EXPECT_EQ(call(box, "c:1", FAIL), NOH_OK);
	EXPECT(traces("+c:1 +c:1 +p:1 +c:1 +c:2 "));
	EXPECT_EQ(vitals_of(box, "p:1").restarts, 1);
	EXPECT(strcmp(vitals_of(box, "p:1").reason, "its child c:1 failed too often") == 0);
	EXPECT_EQ(vitals_of(box, "top:1").restarts, 0);
	set_failures(1000000, false);            /* now for good: the parent is given up by its own supervisor */
	EXPECT_EQ(noh_send(box, "c:1", FAIL, NULL, 0), NOH_OK);
	EXPECT(gets(box, "p:1", NOH_QUARANTINED));
	EXPECT_EQ(vitals_of(box, "top:1").health, NOH_HEALTHY);
	set_failures(0, false);
	EXPECT_EQ(noh_resume(box, "p:1", SOON), NOH_OK);
	EXPECT_EQ(call(box, "p:1", CHILDREN), NOH_OK);
	end_chained(box);
}

/* ── what one knows of itself ── */

enum { SET, LOOK, SET_AND_FAIL, ONLY_LOOK };

static int own_message(noh_turn *t, const noh_msg *m)
{
	noh_vitals v;
	int rc;

	if (m->kind == SET || m->kind == SET_AND_FAIL) {
		EXPECT_EQ(noh_set_revision(t, m->kind + 7, 6), NOH_OK);
		EXPECT_EQ(noh_set_error(t, "no such host"), NOH_OK);
		EXPECT_EQ(noh_spawn(t, m->kind == SET ? "c:1" : "c:2", NULL), NOH_OK);
	}
	rc = noh_get_own_vitals(t, &v);
	if (rc != NOH_OK)
		return rc;
	if (m->kind == SET_AND_FAIL) {           /* what this turn has said so far */
		EXPECT(v.desired == SET_AND_FAIL + 7 && v.children == 2);
		return noh_fail(t, "told to");
	}
	return noh_reply(t, &v, sizeof v);
}

static const noh_kind own_kinds[] = { { "set", 0, NULL }, { "look", 0, NULL }, { "set_and_fail", 0, NULL },
				      { "only_look", NOH_KIND_READ, NULL } };
static const noh_type own = { .name = "own", .state_size = 8, .full_mode = NOH_BLOCK, .idle_timeout_ms = NOH_NEVER,
			      .on_message = own_message, .kinds = own_kinds, .kind_count = 4 };

static noh_vitals own_vitals(noh_box *box, uint32_t kind)
{
	noh_vitals v = { .health = -1 };
	size_t room = sizeof v;

	EXPECT_EQ(noh_call(box, "own:1", kind, NULL, 0, SOON, &v, &room), NOH_OK);
	return v;
}

static void an_actor_sees_its_own_vitals_with_what_its_turn_has_said(void)
{
	noh_box *box = BOX(1, &own, &parent, &child);
	noh_vitals v = own_vitals(box, LOOK);

	EXPECT(v.health == NOH_HEALTHY && v.life == NOH_ACTIVE && v.desired == 0 && v.children == 0 && !v.error[0] && !v.parent[0]);
	v = own_vitals(box, SET);                /* before its turn has ended */
	EXPECT(v.desired == 7 && v.observed == 6 && v.children == 1 && strcmp(v.error, "no such host") == 0);
	EXPECT_EQ(noh_call(box, "own:1", SET_AND_FAIL, NULL, 0, SOON, NULL, NULL), NOH_EFAILED);
	v = own_vitals(box, LOOK);               /* that was undone */
	EXPECT(v.desired == 7 && v.observed == 6 && v.children == 1 && strcmp(v.error, "no such host") == 0);
	EXPECT_EQ(tell(box, "p:1", SPAWN, "own:1"), NOH_OK);
	EXPECT(test_wait_until(has_parent, &(struct kit_about){ box, "own:1", 0 }, SOON));
	v = own_vitals(box, LOOK);
	EXPECT(strcmp(v.parent, "p:1") == 0 && v.order == 1);
	EXPECT_EQ(noh_call(box, "own:1", ONLY_LOOK, NULL, 0, SOON, NULL, NULL), NOH_EREADONLY);
	end_chained(box);
}

/* ── watching ── */

static bool is_told(void *n)
{
	pthread_mutex_lock(&told.lock);
	bool yes = told.count >= *(uint32_t *)n;
	pthread_mutex_unlock(&told.lock);
	return yes;
}

static bool gets_told(uint32_t n)
{
	return test_wait_until(is_told, &n, SOON);
}

static void a_watcher_is_told_of_failures_and_of_the_end(void)
{
	noh_box *box = BOX(2, &bare, &child);

	told.count = 0;
	EXPECT_EQ(tell(box, "p:1", WATCH, "p:1"), NOH_EINVAL);
	EXPECT_EQ(tell(box, "p:1", WATCH, "c:1"), NOH_OK);
	set_failures(1, false);
	EXPECT_EQ(call(box, "c:1", FAIL), NOH_OK);
	EXPECT(gets_told(1));
	EXPECT_EQ(told.list[0].status, NOH_EFAILED);
	EXPECT_EQ(told.list[0].health, NOH_DOWN);
	EXPECT_EQ(told.list[0].stopped, 0);
	EXPECT(strcmp(told.list[0].address, "c:1") == 0);
	EXPECT(strcmp(told.list[0].reason, "told to") == 0);
	EXPECT_EQ(noh_send(box, "c:1", QUIT, NULL, 0), NOH_OK);
	EXPECT(gets_told(2));
	EXPECT_EQ(told.list[1].status, NOH_OK);
	EXPECT_EQ(told.list[1].stopped, 1);
	EXPECT(goes_to_storage(box, "c:1"));
	EXPECT_EQ(call(box, "c:1", CHILDREN), NOH_OK);           /* a new life is watched as well */
	EXPECT_EQ(noh_deactivate(box, "c:1", false, SOON), NOH_OK);
	EXPECT(gets_told(3));
	EXPECT_EQ(tell(box, "p:1", UNWATCH, "c:1"), NOH_OK);
	EXPECT_EQ(call(box, "c:1", CHILDREN), NOH_OK);
	EXPECT_EQ(noh_deactivate(box, "c:1", false, SOON), NOH_OK);
	EXPECT_EQ(call(box, "p:1", CHILDREN), NOH_OK);
	EXPECT_EQ(told.count, 3);
	end_chained(box);
}

static void who_is_down_already_is_told_of_at_once(void)
{
	static const noh_supervision slow = { .base_ms = 60000, .cap_ms = 60000, .restarts = 100 };
	static const noh_type sleepy = ACTOR("c", &slow);
	noh_box *box = BOX(2, &bare, &sleepy);

	told.count = 0;
	set_failures(1, false);
	EXPECT_EQ(noh_send(box, "c:1", FAIL, NULL, 0), NOH_OK);
	EXPECT(gets(box, "c:1", NOH_DOWN));
	EXPECT_EQ(tell(box, "p:1", WATCH, "c:1"), NOH_OK);
	EXPECT(gets_told(1));
	EXPECT_EQ(told.list[0].health, NOH_DOWN);
	end_chained(box);
}

TEST_MAIN(
	TEST(children_are_kept_in_the_order_spawned, "SUP-10 SUP-18 LC-22"),
	TEST(an_actor_is_not_its_own_ancestor),
	TEST(the_tree_is_told_depth_first, "SUP-11 SUP-12"),
	TEST(one_for_one_restarts_only_the_one, "SUP-02"),
	TEST(one_for_all_restarts_all_in_the_order_spawned),
	TEST(rest_for_one_restarts_those_spawned_after_it),
	TEST(repeated_failure_goes_up_the_tree, "SUP-03"),
	TEST(an_actor_sees_its_own_vitals_with_what_its_turn_has_said, "SUP-15"),
	TEST(a_watcher_is_told_of_failures_and_of_the_end),
	TEST(who_is_down_already_is_told_of_at_once))
