/* tests/box/supervise_events_test.c - what supervision does is told as events: kinds, states, reasons, in their order. */
#include "tests/box/chain_kit.h"

enum { WORK, FAIL, SPAWN };

static int work(noh_turn *t, const noh_msg *m)
{
	if (m->kind == SPAWN)
		return noh_spawn(t, "child:a", NULL);
	return m->kind == FAIL ? noh_fail(t, "it broke") : noh_set_revision(t, 5, 5);
}

static const noh_supervision patient = { .base_ms = 1, .cap_ms = 5, .restarts = 100, .retries = 1, .then = NOH_THEN_QUARANTINE };
static const noh_supervision strict = { .base_ms = 1, .cap_ms = 5, .restarts = 1, .then = NOH_THEN_QUARANTINE };
static const noh_supervision once = { .base_ms = 1, .cap_ms = 5, .restarts = 1, .retries = 1 };
static const noh_supervision whole = { .base_ms = 1, .cap_ms = 5, .restarts = 1, .then = NOH_THEN_QUARANTINE_TYPE };
static const noh_supervision above = { .base_ms = 1, .cap_ms = 5, .restarts = 100, .then = NOH_THEN_ESCALATE };
static const noh_type patient_type = { .name = "patient", .on_message = work, .supervision = &patient };
static const noh_type strict_type = { .name = "strict", .on_message = work, .supervision = &strict };
static const noh_type whole_type = { .name = "whole", .on_message = work, .supervision = &whole };
static const noh_type parent_type = { .name = "parent", .on_message = work, .supervision = &above };
static const noh_supervision never = { .restart = NOH_TEMPORARY };
static const noh_type never_type = { .name = "once", .on_message = work, .supervision = &never };
static const noh_type loose_type = { .name = "loose", .on_message = work };
static const noh_type child_type = { .name = "child", .on_message = work, .supervision = &once };

static noh_box *open_all(void)
{
	return BOX(2, &patient_type, &strict_type, &whole_type, &parent_type, &child_type, &loose_type,
		   &never_type);
}

struct told { noh_box *box; noh_events_filter filter; const char *wanted; char text[2000]; };

static int add(void *user, const noh_event *e)
{
	struct told *t = user;
	size_t at = strlen(t->text);

	EXPECT(e->by_box);
	snprintf(t->text + at, sizeof t->text - at, "%s %s>%s %s|", e->kind, e->from, e->to, e->reason);
	return 0;
}

static bool is_told(void *arg)
{
	struct told *t = arg;
	uint64_t cursor = 0;
	int rc = NOH_OK;

	t->text[0] = 0;
	while (rc == NOH_OK)
		rc = noh_events_read(t->box, &cursor, &t->filter, 0, add, t);
	return strcmp(t->text, t->wanted) == 0;
}

/* All events of this actor, or of this kind, are these in the end. */
static void expect_told(noh_box *box, const char *actor, const char *kind, const char *wanted)
{
	struct told t = { .box = box, .filter = { .actor = actor, .kind = kind }, .wanted = wanted };

	if (!EXPECT(test_wait_until(is_told, &t, SOON)))
		printf("  %s\n  and not %s\n", t.text, wanted);
}

static void a_failure_and_the_restart_are_told(void)
{
	noh_box *box = open_all();

	EXPECT_EQ(call(box, "patient:a", WORK), NOH_OK);
	EXPECT_EQ(call(box, "patient:a", FAIL), NOH_EFAILED);
	EXPECT_EQ(call(box, "patient:a", WORK), NOH_OK);
	expect_told(box, "patient:a", NULL,
		    "activated not active>active |failed active>down it broke|restarted down>activating it broke|"
		    "activated activating>active |failed active>down it broke|dead_letter > it broke|"
		    "restarted down>activating it broke|activated activating>active |");
	end_chained(box);
}

/* When the box stops the watchdog tells the last sums, and all of them are there. */
static void a_message_set_aside_is_told_once_and_in_no_sum(void)
{
	noh_box *box = open_all();
	struct told sums = { .box = box, .filter = { .actor = "loose", .kind = "failed" },
			     .wanted = "" };

	EXPECT_EQ(call(box, "patient:a", FAIL), NOH_EFAILED);
	for (int i = 0; i < 40; i++)             /* ten of a second are told one by one, the others as a sum */
		EXPECT_EQ(call(box, "loose:a", FAIL), NOH_EFAILED);
	EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
	(void)is_told(&sums);
	EXPECT(strstr(sums.text, "more failures") != NULL);
	expect_told(box, NULL, "dead_letter", "dead_letter > it broke|");
	noh_close(box);
}

static void giving_up_and_resuming_are_told(void)
{
	noh_box *box = open_all();

	(void)call(box, "strict:a", FAIL);
	expect_told(box, NULL, "quarantined", "quarantined not active>quarantined it broke|");
	expect_told(box, "strict:a", "deactivated", "deactivated down>not active it was given up|");
	EXPECT_EQ(noh_resume(box, "strict:a", SOON), NOH_OK);
	expect_told(box, NULL, "resumed", "resumed quarantined>not active |");
	end_chained(box);
}

static void one_that_is_not_restarted_is_told_to_go(void)
{
	noh_box *box = open_all();

	EXPECT_EQ(call(box, "once:a", FAIL), NOH_EFAILED);
	expect_told(box, "once:a", NULL, "activated not active>active |failed active>down it broke|dead_letter > it broke|"
		    "deactivated down>not active it was given up|");
	end_chained(box);
}

static void a_type_that_is_given_up_is_told_by_its_name(void)
{
	noh_box *box = open_all();

	(void)call(box, "whole:a", FAIL);
	expect_told(box, "whole", NULL, "quarantined healthy>quarantined it broke|");
	EXPECT_EQ(noh_resume(box, "whole", SOON), NOH_OK);
	expect_told(box, "whole", NULL, "quarantined healthy>quarantined it broke|resumed quarantined>healthy |");
	end_chained(box);
}

static void an_escalation_is_told(void)
{
	noh_box *box = open_all();

	EXPECT_EQ(call(box, "parent:a", SPAWN), NOH_OK);
	(void)call(box, "child:a", FAIL);
	expect_told(box, NULL, "escalated", "escalated down>down it broke|");
	end_chained(box);
}

TEST_MAIN(
	TEST(a_failure_and_the_restart_are_told, "SUP-01"),
	TEST(a_message_set_aside_is_told_once_and_in_no_sum, "SUP-01"),
	TEST(giving_up_and_resuming_are_told, "SUP-06 SUP-07"),
	TEST(one_that_is_not_restarted_is_told_to_go, "SUP-03"),
	TEST(a_type_that_is_given_up_is_told_by_its_name, "SUP-05"),
	TEST(an_escalation_is_told, "SUP-03"))
