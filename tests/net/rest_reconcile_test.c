/* tests/net/rest_reconcile_test.c - a reconciler over HTTP: its messages as JSON, its answers as objects. */
#include "noh_reconcile.h"
#include "tests/net/rest_kit.h"

static struct response p;

/* A page that is written as it is desired: spec and snapshot are JSON, as they came. */
static int diff(noh_turn *turn, noh_reconcile *now, noh_action *next, size_t room)
{
	(void)turn;
	(void)room;
	next[0].arg = (uint64_t)now->goal;
	if (now->goal != NOH_GOAL_RUN)
		return now->observed_len != 0;
	return now->observed_len != now->desired_len || memcmp(now->observed, now->desired, now->desired_len) != 0;
}

static int apply(noh_turn *turn, noh_reconcile *now, const noh_action *action)
{
	(void)turn;
	return noh_reconcile_observe(now, now->desired, action->arg == NOH_GOAL_RUN ? now->desired_len : 0);
}

static const noh_reconciler page = { .name = "page", .settle_ms = 1, .diff = diff, .apply = apply };

static void a_thing_is_applied_waited_for_looked_at_and_stopped(void)
{
	static const char too_long[] = INVOKE("page:a", "apply", "{\"revision\":8,\"spec\":{\"title\":\""
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}}");
	noh_type type = noh_reconcile_type(&page);
	struct rest r;

	rest_also = &type;
	REST_ON_DISK(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	ASK("/actor/invoke", INVOKE("page:a", "apply", "{\"revision\":7,\"spec\":{\"title\":\"a\"}}"), 200,
	    "{\"outcome\":\"ok\",\"phase\":\"converging\",\"revision\":7,\"applied\":0}");
	ASK("/actor/invoke", INVOKE("page:a", "wait", "{}"), 200,
	    "\"phase\":\"active\",\"goal\":\"run\",\"revision\":7,\"applied\":7");
	ASK("/actor/invoke", INVOKE("page:a", "apply", "{\"revision\":6,\"spec\":{}}"), 200, "\"outcome\":\"stale\"");
	ASK("/actor/invoke", INVOKE("page:a", "apply", "{\"revision\":7,\"spec\":{}}"), 200, "\"outcome\":\"conflict\"");
	ASK("/actor/invoke", INVOKE("page:a", "apply", "{\"revision\":0,\"spec\":{}}"), 422, "revision");
	ASK("/actor/invoke", INVOKE("page:a", "apply", "{\"revision\":8}"), 422, "spec");
	ASK("/actor/invoke", too_long, 409, "the spec is longer than this type allows");
	ASK("/actor/invoke", INVOKE("page:a", "state", "{}"), 200, "\"passes\":1");
	ASK("/actor/invoke", INVOKE("page:a", "stop", "{\"reason\":\"enough\"}"), 200, "\"phase\":\"stopped\"");
	close(fd);
	wire_end(&r.wire);
	rest_also = NULL;
}

TEST_MAIN(
	TEST(a_thing_is_applied_waited_for_looked_at_and_stopped, "RC-05 RC-08"))
