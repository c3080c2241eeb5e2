/* tests/net/rest_test.c - the actor API over HTTP, path by path, with real sockets and a box in this process. */
#include "tests/net/rest_kit.h"

static struct response p;

static bool is_time(const char *raw)             /* "2026-01-31T23:59:59.250Z", with its quotes */
{
	const char *form = "\"dddd-dd-ddTdd:dd:dd.dddZ\"";

	if (strlen(raw) != strlen(form))
		return false;
	for (size_t i = 0; form[i]; i++)
		if (form[i] == 'd' ? raw[i] < '0' || raw[i] > '9' : raw[i] != form[i])
			return false;
	return true;
}

static bool has_header(const char *line)
{
	return strstr(p.head, line) != NULL;
}

/* ── send and invoke ── */

static void a_message_is_accepted_by_the_node(void)
{
	struct rest r;

	REST_ON_DISK(&r, .node_id = "node-7");
	int fd = rest_dial(&r);

	ASK("/actor/send", INVOKE("counter:a", "incr", "{\"by\":5}"), 202, "{\"accepted\":true,\"actor_node\":\"node-7\"}");
	ASK("/actor/invoke", INVOKE("counter:a", "get", "{}"), 200, "\"value\":5");
	ASK("/actor/send", INVOKE("echo:a", "no", "{}"), 202, "\"accepted\":true");
	close(fd);
	wire_end(&r.wire);
}

static void a_schedule_is_cancelled_by_any_name_of_its_kind(void)
{
	struct rest r;

	REST_ON_DISK(&r, .node_id = "node-7");
	int fd = rest_dial(&r);

	ASK("/admin/schedule/cancel", "{\"actor_address\":\"counter:a\",\"message_type\":\"incr\"}", 200, "\"was_scheduled\":false");
	ASK("/admin/schedule/cancel", "{\"actor_address\":\"counter:a\",\"message_type\":\"set\"}", 200, "\"was_scheduled\":false");
	ASK("/admin/schedule/cancel", "{\"actor_address\":\"counter:a\",\"message_type\":\"1\"}", 200, "\"was_scheduled\":false");
	ASK("/admin/schedule/cancel", "{\"actor_address\":\"counter:a\",\"message_type\":\"inc\"}", 422,
	    "type counter has no message \\\"inc\\\"; it has get, incr");
	ASK("/admin/schedule/cancel", "{\"actor_address\":\"counter:a\",\"message_type\":\" 1\"}", 422, "no_kind");
	ASK("/admin/schedule/cancel", "{\"actor_address\":\"counter:a\",\"message_type\":\"+1\"}", 422, "no_kind");
	ASK("/admin/schedule/cancel", "{\"actor_address\":\"counter:a\",\"message_type\":\"4294967297\"}", 422, "no_kind");
	ASK("/admin/schedule/cancel", "{\"actor_address\":\"cow:a\",\"message_type\":\"incr\"}", 404, "no_type");
	ASK("/admin/schedule/list", "{\"actor_address\":\"counter:a\",\"actor_type\":\"counter\"}", 422, "not both");
	close(fd);
	wire_end(&r.wire);
}

static void an_invocation_answers_with_the_response(void)
{
	struct rest r;

	REST_ON_DISK(&r, .node_id = "node-7");
	int fd = rest_dial(&r);

	ASK("/actor/invoke", INVOKE("counter:a", "incr", "{}"), 200,
	    "{\"response\":{\"outcome\":\"ok\",\"value\":1,\"applied\":1}}\n");
	ASK("/actor/invoke", "{\"timeout_ms\":30000,\"message\":{\"by\":2},\"message_type\":\"decr\",\"actor_address\":\"counter/a\"}",
	    200, "\"value\":-1,\"applied\":-2");
	EXPECT(has_header("Content-Type: application/json\r\n"));
	EXPECT(!has_header("Idempotency-Replayed"));
	close(fd);
	wire_end(&r.wire);
}

static void integers_beyond_2_to_the_53_stay_exact(void)
{
	struct rest r;

	REST(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	ASK("/actor/invoke", INVOKE("counter:a", "set", "{\"value\":9007199254740993}"), 200, "\"previous\":null");
	ASK("/actor/invoke", INVOKE("counter:a", "incr", "{\"by\":9214364837600034814}"), 200, "\"value\":9223372036854775807");
	ASK("/actor/invoke", INVOKE("counter:a", "incr", "{}"), 200, "\"outcome\":\"overflow\",\"value\":9223372036854775807,\"applied\":0");
	ASK("/actor/invoke", INVOKE("counter:a", "incr", "{\"by\":9223372036854775808}"), 422, "an integer of 64 bits");
	ASK("/actor/invoke", INVOKE("echo:a", "back", "{\"n\":123456789012345678901234567890, \"x\" : 1.10}"), 200,
	    "{\"response\":{\"n\":123456789012345678901234567890, \"x\" : 1.10}}");
	close(fd);
	wire_end(&r.wire);
}

static void who_does_not_answer_in_time_is_a_gateway_timeout(void)
{
	struct rest r;

	REST(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	ASK("/actor/invoke", "{\"actor_address\":\"later:x\",\"message_type\":\"0\",\"message\":{},\"timeout_ms\":30}", 504,
	    "\"code\":\"timeout\"");
	EXPECT(has_header("Content-Type: application/problem+json\r\n"));
	ASK("/actor/invoke", INVOKE("later:x", "2", "{}"), 200, "{\"response\":{\"value\":1}}");
	close(fd);
	wire_end(&r.wire);
}

static void an_answer_without_a_hook_is_shown_as_what_it_is(void)
{
	struct rest r;

	REST(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	ASK("/actor/invoke", INVOKE("echo:a", "object", "{}"), 200, "{\"response\":{\"a\":[1.10]}}\n");
	ASK("/actor/invoke", INVOKE("echo:a", "number", "{}"), 200, "{\"response\":{\"value\":18446744073709551616}}\n");
	ASK("/actor/invoke", INVOKE("echo:a", "text", "{}"), 200, "{\"response\":{\"text\":\"say \\\"ah\\\"\"}}\n");
	ASK("/actor/invoke", INVOKE("echo:a", "bytes", "{}"), 200, "{\"response\":{\"base64\":\"AP8=\"}}\n");
	ASK("/actor/invoke", INVOKE("echo:a", "nothing", "{}"), 200, "{\"response\":{}}\n");
	ASK("/actor/invoke", INVOKE("plain:a", "41", "{}"), 200, "{\"response\":{\"value\":41}}\n");
	ASK("/actor/invoke", INVOKE("plain:a", "4294967295", "{}"), 200, "{\"value\":4294967295}");
	ASK("/actor/invoke", INVOKE("plain:a", "4294967296", "{}"), 422, "\"code\":\"no_kind\"");
	ASK("/actor/invoke", INVOKE("plain:a", "x", "{}"), 422, "\"code\":\"no_kind\"");
	ASK("/actor/invoke", INVOKE("wide:a", "x", "{}"), 200, "wwwwwwwwww");
	EXPECT_EQ(strspn(strchr(p.body, 'w') + 7, "w"), 3000);
	close(fd);
	wire_end(&r.wire);
}

static void a_refusal_is_a_conflict_and_a_failure_tells_its_reason(void)
{
	struct rest r;

	REST(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	ASK("/actor/invoke", INVOKE("echo:a", "no", "{}"), 409, "\"code\":\"refused\",\"response\":{\"why\":\"closed\"}}");
	ASK("/actor/invoke", INVOKE("echo:a", "fail", "{}"), 500, "\"detail\":\"no such thing as \\\"it\\\"\",\"code\":\"failed\"");
	ASK("/actor/invoke", INVOKE("inventory:a", "reserve", "{}"), 200, "{\"response\":{\"outcome\":\"no_sku\",\"available\":0}}");
	close(fd);
	wire_end(&r.wire);
}

static void what_is_wrong_with_a_request_is_said_in_one_sentence(void)
{
	struct rest r;

	REST(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	ASK("/actor/invoke", "{", 400, "\"code\":\"bad_json\"");
	ASK("/actor/invoke", "{\"actor_address\":\"counter:a\",\"actor_address\":\"counter:b\"}", 400, "twice");
	ASK("/actor/invoke", "[]", 422, "a JSON object is expected");
	ASK("/actor/invoke", "{\"actor_address\":\"counter:a\"}", 422, "\\\"message_type\\\" is missing");
	ASK("/actor/invoke", INVOKE("counter:a", "get", "[]"), 422, "\\\"message\\\" must be an object");
	ASK("/actor/invoke", INVOKE("counter:a", "get", "null"), 422, "\\\"message\\\" must be an object");
	ASK("/actor/invoke", "{\"actor_addres\":\"counter:a\"}", 422, "there is no field \\\"actor_addres\\\" here, only: actor_address");
	ASK("/actor/send", "{\"timeout_ms\":5}", 422, "there is no field \\\"timeout_ms\\\"");
	ASK("/actor/invoke", "{\"timeout_ms\":0}", 422, "from 1 to 86400000");
	ASK("/actor/invoke", INVOKE("counter", "get", "{}"), 422, "\"code\":\"bad_address\"");
	ASK("/actor/invoke", INVOKE("counter:", "get", "{}"), 422, "\"code\":\"bad_address\"");
	ASK("/actor/invoke", INVOKE("counter:a\\u0000", "get", "{}"), 422, "\"code\":\"bad_address\"");
	ASK("/actor/invoke", INVOKE("cow:a", "get", "{}"), 404, "\"code\":\"no_type\"");
	ASK("/actor/invoke", INVOKE("counter:a", "moo", "{}"), 422, "\"code\":\"no_kind\"");
	ASK("/actor/invoke", INVOKE("counter:a", "expired", "{}"), 422, "\"code\":\"no_kind\"");
	ASK("/actor/invoke", INVOKE("counter:a", "incr", "{\"bye\":1}"), 422, "there is no field \\\"bye\\\" here");
	ASK("/actor/list", "{\"limit\":1001}", 422, "from 1 to 1000");
	ASK("/actor/list", "{\"cursor\":\"s5\"}", 422, "next_cursor");
	ASK("/actor/list", "{\"cursor\":\"a5x\"}", 422, "next_cursor");
	ASK("/actor/list", "{\"actor_type\":\"cow\"}", 404, "\"code\":\"no_type\"");
	ASK("/actor/list", "{\"actor_type\":\"counter\\u0000\"}", 404, "\"code\":\"no_type\"");
	ASK("/actor/pool/status", "{\"a\":1}", 422, "must be empty");
	ASK_WITH("/actor/invoke", "Idempotency-Key: \"\"\r\n", INVOKE("counter:a", "get", "{}"), 400, "\"code\":\"bad_idempotency_key\"");
	ASK_WITH("/actor/invoke", "Idempotency-Key:\r\n", INVOKE("counter:a", "incr", "{}"), 400, "\"code\":\"bad_idempotency_key\"");
	ASK_WITH("/actor/send", "Idempotency-Key:  \r\n", INVOKE("counter:a", "incr", "{}"), 400, "\"code\":\"bad_idempotency_key\"");
	ASK_WITH("/actor/invoke", "Idempotency-Key: k\r\n", INVOKE("echo:a", "back", "{}"), 422, "needs a durable type");
	ASK("/actor/invoke", INVOKE("counter:a", "get", "{}"), 200, "\"not_found\"");
	close(fd);
	wire_end(&r.wire);
}

/* ── idempotency ── */

static void a_key_replays_what_it_got_and_refuses_what_it_did_not(void)
{
	struct rest r;

	REST_ON_DISK(&r, .node_id = NULL);
	int fd = rest_dial(&r), resp = dial(&r.wire);

	ASK("/actor/invoke", INVOKE("inventory:tv", "restock", "{\"n\":5}"), 200, "\"available\":5");
	ASK_WITH("/actor/invoke", "Idempotency-Key: \"order-1\"\r\n", INVOKE("inventory:tv", "reserve", "{\"n\":2}"), 200,
		 "\"reservation\":1");
	EXPECT(!has_header("Idempotency-Replayed"));
	char first[400];

	snprintf(first, sizeof first, "%.300s", p.body);
	ASK_WITH("/actor/invoke", "Idempotency-Key: order-1\r\n", INVOKE("inventory:tv", "reserve", "{ \"n\" : 2 }"), 200, first);
	EXPECT(has_header("Idempotency-Replayed: true\r\n"));
	ASK_WITH("/actor/invoke", "Idempotency-Key: order-1\r\n", INVOKE("inventory:tv", "reserve", "{\"n\":1}"), 422,
		 "\"code\":\"idempotency_conflict\"");
	ASK_WITH("/actor/invoke", "Idempotency-Key: order-1\r\n", INVOKE("inventory:tv", "get", "{}"), 422, "idempotency_conflict");
	ASK("/actor/invoke", INVOKE("inventory:tv", "get", "{}"), 200, "\"available\":3");
	EXPECT(!has_header("Idempotency-Replayed"));
	/* One thing: the key counts in the other protocol, too. */
	say(resp, "INV.RESERVE tv 2 IDEM order-1\r\n");
	EXPECT_HEARS(resp, "*2\r\n:1\r\n:3\r\n");
	EXPECT_ASK(resp, "INV.RESERVE tv 1 IDEM order-1", "-IDEMCONFLICT");
	say(resp, "INV.RESERVE tv 1 IDEM order-2\r\n");
	EXPECT_HEARS(resp, "*2\r\n:2\r\n:2\r\n");
	ASK_WITH("/actor/invoke", "Idempotency-Key: order-2\r\n", INVOKE("inventory:tv", "reserve", "{}"), 200, "\"reservation\":2");
	EXPECT(has_header("Idempotency-Replayed: true\r\n"));
	close(resp);
	close(fd);
	wire_end(&r.wire);
}

static void a_send_with_a_key_is_accepted_once(void)
{
	struct rest r;

	REST_ON_DISK(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	ASK_WITH("/actor/send", "Idempotency-Key: k\r\n", INVOKE("counter:a", "incr", "{}"), 202, "true");
	EXPECT(!has_header("Idempotency-Replayed"));
	ASK_WITH("/actor/send", "Idempotency-Key: k\r\n", INVOKE("counter:a", "incr", "{}"), 202, "true");
	EXPECT(has_header("Idempotency-Replayed: true\r\n"));
	ASK("/actor/invoke", INVOKE("counter:a", "get", "{}"), 200, "\"value\":1");
	close(fd);
	wire_end(&r.wire);
}

#define KEYED "Idempotency-Key: slow\r\n"
static void while_the_first_runs_a_second_with_its_key_is_a_conflict(void)
{
	struct rest r;

	REST_ON_DISK(&r, .node_id = NULL);
	int fd = rest_dial(&r), slow = rest_dial(&r);

	ASK("/actor/invoke", INVOKE("kept:a", "1", "{}"), 200, "{}");    /* it waits for later:jam */
	EXPECT(keeps(&r.wire, "later:jam", "1"));
	rest_say(slow, "/actor/invoke", KEYED, INVOKE("kept:a", "0", "{}"));
	EXPECT(gets_to_hold(r.wire.box, "kept:a", 1));
	ASK_WITH("/actor/invoke", KEYED, INVOKE("kept:a", "0", "{}"), 409, "\"code\":\"idempotency_running\"");
	EXPECT(has_header("Retry-After: 1\r\n"));
	let_go(&r.wire, "later:jam");
	rest_hear(slow, &p);
	EXPECT(p.status == 200 && strstr(p.body, "{\"text\":\"noted\"}"));
	ASK_WITH("/actor/invoke", KEYED, INVOKE("kept:a", "0", "{}"), 200, "{\"text\":\"noted\"}");
	EXPECT(has_header("Idempotency-Replayed: true\r\n"));
	close(slow);
	close(fd);
	wire_end(&r.wire);
}

static bool is_replayed(void *fd)
{
	rest_say(*(int *)fd, "/actor/invoke", KEYED, INVOKE("kept:a", "0", "{}"));
	rest_hear(*(int *)fd, &p);
	return p.status == 200 && strstr(p.body, "noted") && has_header("Idempotency-Replayed: true\r\n");
}

/* Whoever left is not running any more when his answer has come. */
static void a_key_of_a_client_that_left_is_free_when_its_request_is_over(void)
{
	struct rest r;

	REST_ON_DISK(&r, .node_id = NULL);
	int fd = rest_dial(&r), slow = rest_dial(&r);

	ASK("/actor/invoke", INVOKE("kept:a", "1", "{}"), 200, "{}");
	EXPECT(keeps(&r.wire, "later:jam", "1"));
	rest_say(slow, "/actor/invoke", KEYED, INVOKE("kept:a", "0", "{}"));
	EXPECT(gets_to_hold(r.wire.box, "kept:a", 1));
	vanish(slow);
	EXPECT(comes_to(&r.wire, CONNECTIONS, 1));
	ASK_WITH("/actor/invoke", KEYED, INVOKE("kept:a", "0", "{}"), 409, "idempotency_running");
	let_go(&r.wire, "later:jam");
	EXPECT(test_wait_until(is_replayed, &fd, SOON));         /* his worker has heard of it by then */
	close(fd);
	wire_end(&r.wire);
}

/* ── full mailboxes ── */

/* Its actor handles nothing until later:jam is let go, and four messages wait. */
static void fill(struct rest *r, const char *address)
{
	EXPECT_EQ(noh_send(r->wire.box, address, JAM_JAM, NULL, 0), NOH_OK);
	EXPECT(keeps(&r->wire, "later:jam", "1"));
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(noh_send(r->wire.box, address, JAM_NOTE, NULL, 0), NOH_OK);
	EXPECT(gets_to_hold(r->wire.box, address, 4));
}

static void a_full_mailbox_that_drops_the_newest_is_too_many_requests(void)
{
	struct rest r;

	REST(&r, .node_id = "node-7");
	int fd = rest_dial(&r), resp = dial(&r.wire);

	fill(&r, "jam:a");
	ASK("/actor/send", INVOKE("jam:a", "0", "{}"), 429, "\"code\":\"mailbox_full\",\"accepted\":false,\"actor_node\":\"node-7\"}");
	EXPECT(has_header("Retry-After: 1\r\n") && has_header("Content-Type: application/problem+json\r\n"));
	ASK("/actor/invoke", INVOKE("jam:a", "0", "{}"), 429, "\"code\":\"mailbox_full\"");
	EXPECT(has_header("Retry-After: 1\r\n"));
	EXPECT_ASK(resp, "ACTOR.SEND jam:a 0 x", "-MAILBOXFULL");
	EXPECT_EQ(stats_of(r.wire.box, "jam").refused, 3);
	let_go(&r.wire, "later:jam");
	ASK("/actor/invoke", INVOKE("jam:a", "0", "{}"), 200, "noted");
	close(resp);
	close(fd);
	wire_end(&r.wire);
}

static void a_type_over_its_rate_is_too_many_requests_with_a_time_to_wait(void)
{
	struct rest r;

	REST(&r, .node_id = "node-7");
	int fd = rest_dial(&r), resp = dial(&r.wire);

	EXPECT_EQ(noh_set_limits(r.wire.box, "jam", &(noh_limits){ .per_second = 0.01, .burst = 1, .over = NOH_OVER_REFUSE }), NOH_OK);
	ASK("/actor/invoke", INVOKE("jam:a", "0", "{}"), 200, "noted");
	ASK("/actor/invoke", INVOKE("jam:a", "0", "{}"), 429, "\"code\":\"over_rate\"");
	EXPECT(has_header("Retry-After: 100\r\n"));
	ASK("/actor/send", INVOKE("jam:b", "0", "{}"), 429, "\"code\":\"over_rate\",\"accepted\":false,\"actor_node\":\"node-7\"}");
	EXPECT_ASK(resp, "ACTOR.SEND jam:a 0 x", "-RATE");
	EXPECT_EQ(stats_of(r.wire.box, "jam").refused_rate, 3);
	EXPECT_EQ(noh_set_limits(r.wire.box, "jam", NULL), NOH_OK);
	ASK("/actor/invoke", INVOKE("jam:a", "0", "{}"), 200, "noted");
	close(resp);
	close(fd);
	wire_end(&r.wire);
}

static void a_full_mailbox_that_blocks_is_too_many_requests_after_the_deadline(void)
{
	struct rest r;

	REST(&r, .call_ms = 60);
	int fd = rest_dial(&r);
	uint64_t before = now_us();

	fill(&r, "queue:a");
	ASK("/actor/send", INVOKE("queue:a", "0", "{}"), 429, "\"accepted\":false");
	EXPECT(now_us() - before >= 58000);      /* the clock of a pass has whole milliseconds */
	EXPECT(has_header("Retry-After: 1\r\n"));
	ASK("/actor/invoke", "{\"actor_address\":\"queue:a\",\"message_type\":\"0\",\"message\":{},\"timeout_ms\":50}", 429, "mailbox_full");
	EXPECT_EQ(noh_get_status(r.wire.box, "queue:a", &(noh_status){ 0 }), NOH_OK);
	/* Room in time: it goes in, and is answered. */
	rest_say(fd, "/actor/invoke", "", "{\"actor_address\":\"queue:a\",\"message_type\":\"0\",\"message\":{},\"timeout_ms\":10000}");
	EXPECT(comes_to(&r.wire, COMMANDS, 3));
	let_go(&r.wire, "later:jam");
	rest_hear(fd, &p);
	EXPECT(p.status == 200 && strstr(p.body, "noted"));
	close(fd);
	wire_end(&r.wire);
}

static void a_full_mailbox_that_drops_the_oldest_accepts_and_counts(void)
{
	struct rest r;

	REST(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	fill(&r, "oldest:a");
	ASK("/actor/send", INVOKE("oldest:a", "0", "{}"), 202, "\"accepted\":true");
	ASK("/actor/send", INVOKE("oldest:a", "0", "{}"), 202, "\"accepted\":true");
	EXPECT_EQ(stats_of(r.wire.box, "oldest").dropped_oldest, 2);
	let_go(&r.wire, "later:jam");
	close(fd);
	wire_end(&r.wire);
}

/* ── activate, deactivate, status ── */

static void asking_for_the_status_activates_nobody(void)
{
	struct rest r;

	REST_ON_DISK(&r, .node_id = "node-7");
	int fd = rest_dial(&r);

	ASK("/actor/status", ADDRESSED("counter:a"), 200,
	    "{\"actor_address\":\"counter:a\",\"is_active\":false,\"node_id\":\"node-7\",\"activated_at\":null,"
	    "\"last_message_at\":null,\"messages_processed\":0,\"mailbox_size\":0,\"resting\":false,\"exists\":false,"
	    "\"state\":\"inactive\",\"restarts\":0,\"last_failure\":null,\"last_failure_at\":null,\"retry_at\":null}");
	EXPECT_EQ(stats(r.wire.box).activations, 0);
	ASK("/actor/invoke", INVOKE("counter:a", "set", "{\"value\":1}"), 200, "ok");
	ASK("/actor/status", ADDRESSED("counter/a"), 200, "\"actor_address\":\"counter:a\",\"is_active\":true,\"node_id\":\"node-7\"");
	EXPECT(strstr(p.body, "\"mailbox_size\":0,\"resting\":false,\"exists\":true,\"state\":\"active\",\"restarts\":0"));
	EXPECT(is_time(member(&p, "activated_at")));
	EXPECT(is_time(member(&p, "last_message_at")));
	EXPECT(strcmp(member(&p, "activated_at"), member(&p, "last_message_at")) <= 0);
	close(fd);
	wire_end(&r.wire);
}

static void the_status_shows_what_waits(void)
{
	struct rest r;

	REST(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	fill(&r, "queue:a");
	ASK("/actor/status", ADDRESSED("queue:a"), 200, "\"is_active\":true");
	EXPECT(strcmp(member(&p, "mailbox_size"), "4") == 0);
	let_go(&r.wire, "later:jam");
	close(fd);
	wire_end(&r.wire);
}

static void activating_tells_whether_it_was_active_already(void)
{
	struct rest r;
	char since[40];

	REST_ON_DISK(&r, .node_id = "node-7");
	int fd = rest_dial(&r);

	ASK("/actor/activate", ADDRESSED("counter:a"), 200,
	    "{\"actor_address\":\"counter:a\",\"node_id\":\"node-7\",\"already_active\":false,\"activated_at\":\"");
	snprintf(since, sizeof since, "%s", member(&p, "activated_at"));
	EXPECT(is_time(since));
	ASK("/actor/activate", ADDRESSED("counter:a"), 200, "\"already_active\":true");
	EXPECT(strcmp(member(&p, "activated_at"), since) == 0);  /* the same answer each time */
	ASK("/actor/status", ADDRESSED("counter:a"), 200, since);
	close(fd);
	wire_end(&r.wire);
}

static void deactivating_drains_what_waits(void)
{
	struct rest r;

	REST(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	ASK("/actor/deactivate", ADDRESSED("queue:a"), 200,
	    "{\"actor_address\":\"queue:a\",\"was_active\":false,\"messages_drained\":0}");
	fill(&r, "queue:a");
	rest_say(fd, "/actor/deactivate", "", ADDRESSED("queue:a"));
	EXPECT(comes_to(&r.wire, COMMANDS, 2));
	let_go(&r.wire, "later:jam");
	rest_hear(fd, &p);
	EXPECT(p.status == 200 && strstr(p.body, "\"was_active\":true,\"messages_drained\":4}"));
	EXPECT_EQ(stats_of(r.wire.box, "queue").dropped_forced, 0);
	ASK("/actor/status", ADDRESSED("queue:a"), 200, "\"is_active\":false");
	close(fd);
	wire_end(&r.wire);
}

static void deactivating_by_force_does_not_drain(void)
{
	struct rest r;

	REST(&r, .node_id = NULL);
	int fd = rest_dial(&r), other = rest_dial(&r);

	EXPECT_EQ(noh_send(r.wire.box, "queue:a", JAM_JAM, NULL, 0), NOH_OK);
	EXPECT(keeps(&r.wire, "later:jam", "1"));
	rest_say(other, "/actor/invoke", "", INVOKE("queue:a", "0", "{}"));
	EXPECT(gets_to_hold(r.wire.box, "queue:a", 1));
	rest_say(fd, "/actor/deactivate", "", "{\"actor_address\":\"queue:a\",\"force\":true}");
	EXPECT(comes_to(&r.wire, COMMANDS, 2));
	let_go(&r.wire, "later:jam");
	rest_hear(fd, &p);
	EXPECT(p.status == 200 && strstr(p.body, "\"was_active\":true,\"messages_drained\":0}"));
	rest_hear(other, &p);
	EXPECT(p.status == 409 && strstr(p.body, "\"code\":\"gone\""));
	EXPECT_EQ(stats_of(r.wire.box, "queue").dropped_forced, 1);
	close(other);
	close(fd);
	wire_end(&r.wire);
}

/* ── list ── */

static uint32_t count(const char *part)
{
	uint32_t n = 0;

	for (const char *at = p.body; (at = strstr(at, part)) != NULL; at += strlen(part))
		n++;
	return n;
}

/* All pages of a listing; returns how many actors there were. */
static uint32_t pages(int fd, const char *options, uint32_t *page_count)
{
	char json[200], cursor[80] = "";
	uint32_t all = 0;

	*page_count = 0;
	do {
		snprintf(json, sizeof json, "{%s%s%s}", options, *cursor ? ",\"cursor\":" : "", cursor);
		if (!ASK("/actor/list", json, 200, "{\"actors\":["))
			return all;
		all += count("\"actor_address\":");
		++*page_count;
		snprintf(cursor, sizeof cursor, "%s", member(&p, "next_cursor"));
	} while (strcmp(cursor, "null") != 0 && *page_count < 100);
	return all;
}

static void the_active_are_listed_page_by_page(void)
{
	struct rest r;
	uint32_t n;

	REST_ON_DISK(&r, .node_id = NULL);
	int fd = rest_dial(&r);
	char json[200];

	ASK("/actor/list", "{}", 200, "{\"actors\":[],\"next_cursor\":null}");
	for (int i = 0; i < 25; i++) {
		snprintf(json, sizeof json, INVOKE("counter:%d", "incr", "{}"), i);
		ASK("/actor/invoke", json, 200, "ok");
	}
	ASK("/actor/invoke", INVOKE("inventory:tv", "restock", "{\"n\":1}"), 200, "ok");
	EXPECT_EQ(pages(fd, "\"limit\":10", &n), 26);
	EXPECT_EQ(n, 3);
	EXPECT_EQ(pages(fd, "\"active_only\":true,\"actor_type\":\"counter\"", &n), 25);
	EXPECT_EQ(n, 1);
	EXPECT_EQ(pages(fd, "\"actor_type\":\"inventory\"", &n), 1);
	EXPECT(strstr(p.body, "\"is_active\":true") && is_time(member(&p, "activated_at")) && is_time(member(&p, "last_message_at")));
	close(fd);
	wire_end(&r.wire);
}

static void the_dormant_are_listed_when_asked_for(void)
{
	struct rest r;
	uint32_t n;

	REST_ON_DISK(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	ASK("/actor/invoke", INVOKE("counter:asleep", "set", "{\"value\":1}"), 200, "ok");
	ASK("/actor/invoke", INVOKE("counter:awake", "set", "{\"value\":1}"), 200, "ok");
	ASK("/actor/deactivate", ADDRESSED("counter:asleep"), 200, "\"was_active\":true");
	EXPECT_EQ(pages(fd, "\"active_only\":true", &n), 1);
	ASK("/actor/list", "{\"active_only\":false}", 200, "\"actor_address\":\"counter:asleep\",\"is_active\":false");
	EXPECT(strstr(p.body, "\"actor_address\":\"counter:awake\",\"is_active\":true"));
	EXPECT_EQ(pages(fd, "\"active_only\":false,\"limit\":1", &n), 2);
	ASK("/actor/status", ADDRESSED("counter:asleep"), 200, "\"is_active\":false");
	close(fd);
	wire_end(&r.wire);
}

/* ── pool ── */

static void the_pool_is_one_node_with_its_workers(void)
{
	struct rest r;

	rest_open(&r, (noh_options){ .workers = 2 }, (noh_listen_options){ .node_id = "node-7" });
	int fd = rest_dial(&r);

	ASK("/actor/invoke", INVOKE("counter:a", "incr", "{}"), 200, "ok");
	ASK("/actor/pool/status", "{}", 200, "{\"total_nodes\":1,\"healthy_nodes\":1,\"total_actors_active\":1,\"total_capacity\":100000,"
					     "\"utilization_percent\":0.0010,\"nodes\":[{\"node_id\":\"node-7\",\"actors_active\":1,"
					     "\"actors_capacity\":100000,\"actors_given_up\":0,\"status\":\"healthy\",\"last_heartbeat\":\"");
	EXPECT(is_time(member(&p, "last_heartbeat")));
	EXPECT_EQ(count("\"worker\":"), 2);
	EXPECT_EQ(count("\"status\":\"healthy\""), 3);
	close(fd);
	wire_end(&r.wire);
}

/* A worker that has been in one turn for long; the other one still answers. */
static void a_worker_that_is_stuck_makes_the_node_degraded(void)
{
	struct rest r;
	uint64_t until = now_us() + SOON * 1000u;
	bool seen = false;

	rest_open(&r, (noh_options){ .workers = 2 }, (noh_listen_options){ .node_id = "node-7" });
	gate_shut();
	EXPECT_EQ(noh_send(r.wire.box, "gated:a", 0, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	while (!seen && now_us() < until) {              /* connections of the stuck worker wait: new ones until it is the other's */
		struct timeval patience = { .tv_usec = 300000 };
		int fd = rest_dial(&r);

		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
		rest_say(fd, "/actor/pool/status", "", "{}");
		rest_hear(fd, &p);
		seen = p.status == 200 && strstr(p.body, "\"healthy_nodes\":0") && count("\"status\":\"degraded\"") == 2;
		close(fd);
	}
	EXPECT(seen && strstr(p.body, "\"status\":\"healthy\""));
	EXPECT(is_time(member(&p, "last_heartbeat")));
	gate_open();
	wire_end(&r.wire);
}

/* ── roles ── */

static void each_path_has_its_role(void)
{
	static const noh_account accounts[] = {          /* SHA-256 of "user", "developer", "admin" */
		{ "u", NOH_USER, { 0x04, 0xf8, 0x99, 0x6d, 0xa7, 0x63, 0xb7, 0xa9, 0x69, 0xb1, 0x02, 0x8e, 0xe3, 0x00, 0x75, 0x69,
				   0xea, 0xf3, 0xa6, 0x35, 0x48, 0x6d, 0xda, 0xb2, 0x11, 0xd5, 0x12, 0xc8, 0x5b, 0x9d, 0xf8, 0xfb } },
		{ "d", NOH_DEVELOPER, { 0x88, 0xfa, 0x0d, 0x75, 0x9f, 0x84, 0x5b, 0x47, 0xc0, 0x44, 0xc2, 0xcd, 0x44, 0xe2, 0x90, 0x82,
					0xcf, 0x6f, 0xea, 0x66, 0x5c, 0x30, 0xc1, 0x46, 0x37, 0x4e, 0xc7, 0xc8, 0xf3, 0xd6, 0x99, 0xe3 } },
		{ "a", NOH_ADMIN, { 0x8c, 0x69, 0x76, 0xe5, 0xb5, 0x41, 0x04, 0x15, 0xbd, 0xe9, 0x08, 0xbd, 0x4d, 0xee, 0x15, 0xdf,
				    0xb1, 0x67, 0xa9, 0xc8, 0x73, 0xfc, 0x4b, 0xb8, 0xa8, 0x1f, 0x6f, 0x2a, 0xb4, 0x48, 0xa9, 0x18 } } };
	static const struct { const char *path, *json; int role; } paths[] = {
		{ "/actor/send", INVOKE("counter:a", "incr", "{}"), NOH_USER },
		{ "/actor/invoke", INVOKE("counter:a", "incr", "{}"), NOH_USER },
		{ "/actor/status", ADDRESSED("counter:a"), NOH_USER },
		{ "/actor/activate", ADDRESSED("counter:a"), NOH_DEVELOPER },
		{ "/actor/deactivate", ADDRESSED("counter:a"), NOH_DEVELOPER },
		{ "/actor/list", "{}", NOH_DEVELOPER },
		{ "/actor/pool/status", "{}", NOH_ADMIN } };
	static const char *const tokens[] = { "user", "developer", "admin" };
	struct rest r;

	REST(&r, .node_id = NULL);
	EXPECT_EQ(noh_set_accounts(r.wire.box, accounts, 3), NOH_OK);
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		int fd = rest_dial(&r);

		rest_say(fd, paths[i].path, "", paths[i].json);
		rest_hear(fd, &p);
		EXPECT_EQ(p.status, 401);
		close(fd);
		for (int role = NOH_USER; role <= NOH_ADMIN; role++) {
			char header[80];

			fd = rest_dial(&r);
			snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", tokens[role]);
			rest_say(fd, paths[i].path, header, paths[i].json);
			rest_hear(fd, &p);
			if (role < paths[i].role)
				EXPECT_EQ(p.status, 403);
			else if (!EXPECT_EQ(p.status / 100, 2))
				printf("  %s as %s: %s\n", paths[i].path, tokens[role], p.body);
			close(fd);
		}
	}
	wire_end(&r.wire);
}

/* ── the document ── */

static void the_document_names_every_operation_and_schema(void)
{
	static const char *const parts[] = {
		"\"/actor/send\":{\"post\":{\"operationId\":\"SendToActor\"", "\"/actor/invoke\":{\"post\":{\"operationId\":\"InvokeActor\"",
		"\"/actor/activate\":{\"post\":{\"operationId\":\"ActivateActor\"",
		"\"/actor/deactivate\":{\"post\":{\"operationId\":\"DeactivateActor\"",
		"\"/actor/status\":{\"post\":{\"operationId\":\"GetActorStatus\"", "\"/actor/list\":{\"post\":{\"operationId\":\"ListActors\"",
		"\"/actor/pool/status\":{\"post\":{\"operationId\":\"GetActorPoolStatus\"",
		"\"SendToActorRequest\":{", "\"InvokeActorRequest\":{", "\"ActivateActorRequest\":{", "\"DeactivateActorRequest\":{",
		"\"GetActorStatusRequest\":{", "\"ListActorsRequest\":{", "\"GetPoolStatusRequest\":{", "\"SendToActorResponse\":{",
		"\"InvokeActorResponse\":{", "\"ActivateActorResponse\":{", "\"DeactivateActorResponse\":{", "\"ActorStatus\":{",
		"\"ListActorsResponse\":{", "\"ActorPoolStatus\":{", "\"ActorNodeStatus\":{", "\"Problem\":{",
		"\"required\":[\"actor_address\",\"message_type\",\"message\"]", "\"default\":30000", "\"default\":100",
		"\"healthz\"", "\"/openapi.json\"", "\"202\":{\"description\":\"It begins;", "\"504\":{\"description\":\"Not all of it" };
	struct rest r;

	REST(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	ASK("/openapi.json", "", 200, "{\"openapi\":\"3.0.3\"");
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (!strstr(p.body, parts[i]))
			test_failed(__FILE__, __LINE__, "there is no %s", parts[i]);
	close(fd);
	wire_end(&r.wire);
}

static void the_document_keeps_texts_and_examples(void)
{
	static const char *const parts[] = {
		"\"description\":\"Actor address in format {type}:{id}\",\"example\":\"npc-brain:character-abc123\"",
		"\"example\":\"perception\"", "\"description\":\"Message payload (JSON)\"", "\"description\":\"Node handling this actor\"",
		"\"description\":\"Actor's response payload\"", "\"description\":\"Force immediate deactivation without draining inbox\"" };
	struct rest r;

	REST(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	ASK("/openapi.json", "", 200, "{");
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (!strstr(p.body, parts[i]))
			test_failed(__FILE__, __LINE__, "there is no %s", parts[i]);
	close(fd);
	wire_end(&r.wire);
}

static void a_node_without_a_name_is_called_by_its_directory(void)
{
	struct rest r;
	noh_options o = { .workers = 1, .dir = "" };
	char id[80];

	rest_open(&r, o, (noh_listen_options){ .node_id = "" });       /* not given: rest_open would name it */
	int fd = rest_dial(&r);

	ASK("/actor/status", ADDRESSED("counter:a"), 200, "\"node_id\":");
	snprintf(id, sizeof id, "%s", member(&p, "node_id"));
	EXPECT_EQ(strlen(id), 18);
	EXPECT_EQ(strspn(id + 1, "0123456789abcdef"), 16);
	close(fd);
	wire_end(&r.wire);
}

/* A pipeline of requests that look at each other's effects is answered in order. */
static void requests_of_a_pipeline_see_what_came_before(void)
{
	struct rest r;

	REST_ON_DISK(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	rest_say(fd, "/actor/invoke", "", INVOKE("counter:a", "incr", "{}"));
	rest_say(fd, "/actor/status", "", ADDRESSED("counter:a"));
	rest_say(fd, "/actor/invoke", "", INVOKE("counter:a", "incr", "{}"));
	rest_say(fd, "/actor/list", "", "{}");
	rest_hear(fd, &p);
	EXPECT(strstr(p.body, "\"value\":1"));
	rest_hear(fd, &p);
	EXPECT(strstr(p.body, "\"is_active\":true"));
	rest_hear(fd, &p);
	EXPECT(strstr(p.body, "\"value\":2"));
	rest_hear(fd, &p);
	EXPECT(strstr(p.body, "\"counter:a\""));
	close(fd);
	wire_end(&r.wire);
}

TEST_MAIN(
	TEST(a_message_is_accepted_by_the_node, "API-01"),
	TEST(a_schedule_is_cancelled_by_any_name_of_its_kind),
	TEST(an_invocation_answers_with_the_response, "API-02"),
	TEST(integers_beyond_2_to_the_53_stay_exact, "API-02"),
	TEST(who_does_not_answer_in_time_is_a_gateway_timeout, "API-02"),
	TEST(an_answer_without_a_hook_is_shown_as_what_it_is, "API-02"),
	TEST(a_refusal_is_a_conflict_and_a_failure_tells_its_reason),
	TEST(what_is_wrong_with_a_request_is_said_in_one_sentence),
	TEST(a_key_replays_what_it_got_and_refuses_what_it_did_not),
	TEST(a_send_with_a_key_is_accepted_once),
	TEST(while_the_first_runs_a_second_with_its_key_is_a_conflict),
	TEST(a_key_of_a_client_that_left_is_free_when_its_request_is_over),
	TEST(a_full_mailbox_that_drops_the_newest_is_too_many_requests, "MB-04"),
	TEST(a_type_over_its_rate_is_too_many_requests_with_a_time_to_wait, "MB-11"),
	TEST(a_full_mailbox_that_blocks_is_too_many_requests_after_the_deadline, "MB-05"),
	TEST(a_full_mailbox_that_drops_the_oldest_accepts_and_counts, "MB-03"),
	TEST(asking_for_the_status_activates_nobody, "API-05 API-10"),
	TEST(the_status_shows_what_waits, "API-05"),
	TEST(activating_tells_whether_it_was_active_already, "API-03 API-10 API-12"),
	TEST(deactivating_drains_what_waits, "API-04"),
	TEST(deactivating_by_force_does_not_drain, "API-04"),
	TEST(the_active_are_listed_page_by_page, "API-06"),
	TEST(the_dormant_are_listed_when_asked_for, "API-06"),
	TEST(the_pool_is_one_node_with_its_workers, "API-07 API-08 PL-37"),
	TEST(a_worker_that_is_stuck_makes_the_node_degraded, "API-08"),
	TEST(each_path_has_its_role, "API-09"),
	TEST(the_document_names_every_operation_and_schema, "API-11 API-13"),
	TEST(the_document_keeps_texts_and_examples, "API-14"),
	TEST(a_node_without_a_name_is_called_by_its_directory, "CF-01"),
	TEST(requests_of_a_pipeline_see_what_came_before))
