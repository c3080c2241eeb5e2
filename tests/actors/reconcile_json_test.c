/* tests/actors/reconcile_json_test.c - a reconciler's messages and answers as JSON. */
#include "noh_json.h"
#include "noh_reconcile.h"
#include "tests/lib/test.h"

#include <string.h>

static int no_diff(noh_turn *turn, noh_reconcile *now, noh_action *next, size_t room)
{
	(void)turn, (void)now, (void)next, (void)room;
	return 0;
}

static int no_apply(noh_turn *turn, noh_reconcile *now, const noh_action *action)
{
	(void)turn, (void)now, (void)action;
	return NOH_OK;
}

/* {"copies": n} as a number of 8 bytes. */
static int from_json(void *user, uint32_t kind, const char *json, size_t json_len, void *to, size_t room, size_t *len, char *why)
{
	static const noh_json_field fields[] = {
		{ .name = "copies", .type = NOH_JSON_INT, .least = 0, .most = 100, .required = true } };
	noh_json_got got[1];

	EXPECT(strcmp(user, "me") == 0);
	EXPECT(kind == NOH_RECONCILE_APPLY || kind == NOH_RECONCILE_OBSERVED);
	if (noh_json_read(json, json_len, fields, 1, got) != NOH_OK) {
		strcpy(why, "copies: 0 to 100");
		return NOH_EINVAL;
	}
	EXPECT(room >= sizeof got[0].n);
	memcpy(to, &got[0].n, sizeof got[0].n);
	*len = sizeof got[0].n;
	return NOH_OK;
}

static const char *const names[] = { "scale" };
static const noh_reconciler plain = { .name = "app", .diff = no_diff, .apply = no_apply, .action_names = names, .action_count = 1 };

static struct { noh_json_message m; _Alignas(8) uint8_t body[512]; } sent;

/* As the network hands it over: the kind of that name is known already. */
static int read_as(const noh_reconciler *how, const char *name, uint32_t kind, const char *json)
{
	noh_type type = noh_reconcile_type(how);

	memset(&sent, 0, sizeof sent);
	sent.m = (noh_json_message){ .type = name, .json = json, .json_len = strlen(json), .kind = kind, .body = sent.body,
				     .room = 256 };
	return type.from_json(type.user, &sent.m);
}

static uint64_t number(void)
{
	uint64_t n;

	memcpy(&n, sent.body, sizeof n);
	return n;
}

static void desired_and_observed_are_a_number_and_the_object_as_it_came(void)
{
	EXPECT_EQ(read_as(&plain, "apply", NOH_RECONCILE_APPLY, "{\"revision\": 7, \"spec\": {\"copies\": 3}}"), NOH_OK);
	EXPECT_EQ(sent.m.kind, NOH_RECONCILE_APPLY);
	EXPECT_EQ(number(), 7);
	EXPECT(sent.m.len == 8 + 13 && memcmp(sent.body + 8, "{\"copies\": 3}", 13) == 0);
	EXPECT_EQ(read_as(&plain, "observed", NOH_RECONCILE_OBSERVED, "{\"snapshot\": {}}"), NOH_OK);
	EXPECT_EQ(number(), 0);
	EXPECT_EQ(sent.m.len, 10);
}

static void a_type_may_make_bytes_of_it(void)
{
	noh_reconciler own = plain;

	own.from_json = from_json;
	own.user = "me";
	EXPECT_EQ(read_as(&own, "apply", NOH_RECONCILE_APPLY, "{\"revision\": 7, \"spec\": {\"copies\": 3}}"), NOH_OK);
	EXPECT_EQ(sent.m.len, 16);
	EXPECT_EQ(sent.body[8], 3);
	EXPECT_EQ(read_as(&own, "observed", NOH_RECONCILE_OBSERVED, "{\"snapshot\": {\"copies\": 300}}"), NOH_EINVAL);
	EXPECT(strcmp(sent.m.why, "copies: 0 to 100") == 0);
}

static void the_other_messages_are_read_and_nothing_else_is(void)
{
	EXPECT_EQ(read_as(&plain, "stop", NOH_RECONCILE_STOP, "{\"reason\": \"enough\"}"), NOH_OK);
	EXPECT(sent.m.kind == NOH_RECONCILE_STOP && sent.m.len == 6 && memcmp(sent.body, "enough", 6) == 0);
	EXPECT_EQ(read_as(&plain, "drain", NOH_RECONCILE_DRAIN, "{\"deadline_ms\": 500, \"reason\": \"node\"}"), NOH_OK);
	EXPECT(number() == 500 && sent.m.len == 12 && memcmp(sent.body + 8, "node", 4) == 0);
	EXPECT_EQ(read_as(&plain, "wait", NOH_RECONCILE_WAIT, "{\"revision\": 9}"), NOH_OK);
	EXPECT(number() == 9 && sent.m.len == 8);
	EXPECT_EQ(read_as(&plain, "wait", NOH_RECONCILE_WAIT, "{}"), NOH_OK);
	EXPECT_EQ(sent.m.len, 0);
	EXPECT_EQ(read_as(&plain, "tick", NOH_RECONCILE_TICK, "{}"), NOH_OK);
	EXPECT_EQ(read_as(&plain, "retry", NOH_RECONCILE_RETRY, "{}"), NOH_OK);
	EXPECT_EQ(read_as(&plain, "state", NOH_RECONCILE_STATE, "{}"), NOH_OK);
	EXPECT_EQ(read_as(&plain, "apply", NOH_RECONCILE_APPLY, "{\"revision\": 0, \"spec\": {}}"), NOH_EINVAL);
	EXPECT_EQ(read_as(&plain, "apply", NOH_RECONCILE_APPLY, "{\"revision\": 1}"), NOH_EINVAL);
	EXPECT_EQ(read_as(&plain, "drain", NOH_RECONCILE_DRAIN, "{\"deadline_ms\": -1}"), NOH_EINVAL);
	EXPECT_EQ(read_as(&plain, "finish", NOH_RECONCILE_FINISH, "{}"), NOH_EKIND);
	EXPECT_EQ(read_as(&plain, "answer", NOH_RECONCILE_ANSWER, "{}"), NOH_EKIND);
	EXPECT_EQ(read_as(&plain, "nonsense", UINT32_MAX, "{}"), NOH_EKIND);
}

static void more_than_the_room_asks_for_room(void)
{
	char long_spec[600] = "{\"revision\": 1, \"spec\": {\"a\": \"", long_reason[600] = "{\"reason\": \"";

	memset(long_spec + strlen(long_spec), 'x', 300);
	strcat(long_spec, "\"}}");
	EXPECT_EQ(read_as(&plain, "apply", NOH_RECONCILE_APPLY, long_spec), NOH_ETOOBIG);
	EXPECT(sent.m.len > 256);
	memset(long_reason + strlen(long_reason), 'x', 300);
	strcat(long_reason, "\"}");
	EXPECT_EQ(read_as(&plain, "stop", NOH_RECONCILE_STOP, long_reason), NOH_OK);      /* cut: it is for people */
	EXPECT_EQ(sent.m.len, NOH_RECONCILE_ERROR - 1);
}

static void answers_are_objects(void)
{
	noh_type type = noh_reconcile_type(&plain);
	noh_reconcile_answer a = { NOH_RECONCILE_STALE, NOH_PHASE_ACTIVE, 7, 6 };
	noh_reconcile_state s = { .revision = 7, .applied = 6, .passes = 1, .actions = 2, .failed = 1, .phase = NOH_PHASE_RETRYING,
				  .failures = 1, .action = 0, .error = "scale: \"no\"" };
	char json[400];
	noh_json_reply r = { .kind = NOH_RECONCILE_APPLY, .body = &a, .len = sizeof a, .json = json, .room = sizeof json };

	EXPECT_EQ(type.to_json(type.user, &r), NOH_OK);
	json[r.json_len] = 0;
	if (!EXPECT(strcmp(json, "{\"outcome\":\"stale\",\"phase\":\"active\",\"revision\":7,\"applied\":6}") == 0))
		test_failed(__FILE__, __LINE__, "%s", json);
	r = (noh_json_reply){ .kind = NOH_RECONCILE_STATE, .body = &s, .len = sizeof s, .json = json, .room = sizeof json };
	EXPECT_EQ(type.to_json(type.user, &r), NOH_OK);
	json[r.json_len] = 0;
	if (!EXPECT(strcmp(json, "{\"phase\":\"retrying\",\"goal\":\"run\",\"revision\":7,\"applied\":6,\"passes\":1,\"actions\":2,"
			   "\"failed\":1,\"failures\":1,\"action\":\"scale\",\"error\":\"scale: \\\"no\\\"\"}") == 0))
		test_failed(__FILE__, __LINE__, "%s", json);
	r.len = 3;
	EXPECT(type.to_json(type.user, &r) < 0);
	r = (noh_json_reply){ .kind = NOH_RECONCILE_APPLY, .status = NOH_REFUSED, .body = "no", .len = 2, .json = json,
			      .room = sizeof json };
	EXPECT(type.to_json(type.user, &r) < 0);                 /* shown as the text it is */
}

TEST_MAIN(
	TEST(desired_and_observed_are_a_number_and_the_object_as_it_came, "RC-05"),
	TEST(a_type_may_make_bytes_of_it),
	TEST(the_other_messages_are_read_and_nothing_else_is, "RC-05"),
	TEST(more_than_the_room_asks_for_room),
	TEST(answers_are_objects))
