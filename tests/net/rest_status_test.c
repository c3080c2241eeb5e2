/* tests/net/rest_status_test.c - what /actor/status, /actor/list and ACTOR.STATUS tell: of an actor that fails, and how much one
 * has handled. */
#include "tests/net/rest_kit.h"

static struct response p;

static int fragile_message(noh_turn *t, const noh_msg *m)
{
	if (m->kind == ECHO_FAIL)
		return noh_fail(t, "it \"broke\"");
	*(uint64_t *)noh_state(t) += 1;
	return NOH_OK;
}

/* Once may happen. */
static const noh_supervision once = { .restarts = 1, .base_ms = 1, .retries = NOH_NEVER, .then = NOH_THEN_QUARANTINE };
static const noh_type fragile_type = { .name = "fragile", .version = 1, .state_size = 8, .kinds = echo_kinds, .kind_count = ECHO_KINDS,
				       .on_message = fragile_message, .supervision = &once };

#define UNKNOWN "\"state\":\"inactive\",\"restarts\":0,\"last_failure\":null,\"last_failure_at\":null,\"retry_at\":null"

static bool is_in_state(void *arg)
{
	int fd = ((int *)arg)[0];

	rest_say(fd, "/actor/status", "", ADDRESSED("fragile:a"));
	rest_hear(fd, &p);
	return strstr(p.body, ((int *)arg)[1] ? "\"state\":\"quarantined\"" : "\"state\":\"active\",\"restarts\":1") != NULL;
}

/* A reply of lines, up to this one. */
static void hear_until(int fd, const char *last, char *text, size_t size)
{
	char line[300];
	size_t len = 0;

	do {
		hear_line(fd, line, sizeof line);
		len += (size_t)snprintf(text + len, size - len, "%s|", line);
	} while (*line && strcmp(line, last) != 0 && len < size);
}

static void the_status_tells_how_an_actor_is_and_what_it_failed_of(void)
{
	struct rest r;
	char text[2000];

	rest_also = &fragile_type;
	REST_ON_DISK(&r, .node_id = NULL);
	int fd = rest_dial(&r), resp = dial(&r.wire);

	ASK("/actor/status", ADDRESSED("fragile:a"), 200, UNKNOWN);
	ASK("/actor/invoke", INVOKE("fragile:a", "back", "{}"), 200, "response");
	ASK("/actor/status", ADDRESSED("fragile:a"), 200, "\"state\":\"active\",\"restarts\":0,\"last_failure\":null");
	ASK("/actor/invoke", INVOKE("fragile:a", "fail", "{}"), 500, "broke");
	EXPECT(test_wait_until(is_in_state, (int[2]){ fd, 0 }, 10000));
	EXPECT(strstr(p.body, "\"last_failure\":\"it \\\"broke\\\"\",\"last_failure_at\":\"2"));
	EXPECT(strstr(p.body, "\"is_active\":true"));
	ASK("/actor/invoke", INVOKE("fragile:a", "fail", "{}"), 500, "broke");
	EXPECT(test_wait_until(is_in_state, (int[2]){ fd, 1 }, 10000));
	EXPECT(strstr(p.body, "\"is_active\":false") && strstr(p.body, "\"last_failure\":\"it \\\"broke\\\"\""));
	ASK("/actor/list", "{\"active_only\":false,\"actor_type\":\"fragile\"}", 200, "\"state\":\"quarantined\",\"restarts\":1");
	ASK("/actor/list", "{\"active_only\":false,\"actor_type\":\"fragile\"}", 200, "\"last_failure\":\"it \\\"broke\\\"\"");
	EXPECT(say(resp, "ACTOR.STATUS fragile:a\r\n"));
	hear_until(resp, "retry_ms", text, sizeof text);
	EXPECT(strstr(text, "|state|$11|quarantined|$8|restarts|:1|$12|last_failure|$10|it \"broke\"|$15|last_failure_ms|:1"));
	close(fd);
	close(resp);
	wire_end(&r.wire);
	rest_also = NULL;
}

/* To and fro between relay:a and relay:b, so often. */
static int relay_message(noh_turn *t, const noh_msg *m)
{
	uint64_t left;

	if (m->len != sizeof left)
		return NOH_OK;
	memcpy(&left, m->body, sizeof left);
	return left-- ? noh_tell_to(t, noh_id(t)[0] == 'a' ? "relay:b" : "relay:a", 0, &left, sizeof left) : NOH_OK;
}

static const noh_type relay_type = { .name = "relay", .is_volatile = true, .mailbox_capacity = 100000, .on_message = relay_message };

static uint64_t processed(noh_box *box, const char *address)
{
	noh_status s;

	EXPECT_EQ(noh_get_status(box, address, &s), NOH_OK);
	return s.messages_processed;
}

struct awaited { noh_box *box; const char *address; uint64_t n; };

static bool has_processed(void *arg)
{
	struct awaited *a = arg;

	return processed(a->box, a->address) >= a->n;
}

static void expect_processed(noh_box *box, const char *address, uint64_t n)
{
	struct awaited a = { box, address, n };

	EXPECT(test_wait_until(has_processed, &a, 10000));
	EXPECT_EQ(processed(box, address), n);
}

/* One by one in place, out of a ring, from hand to hand, and in a batch that failed: whatever way a message takes. */
static void every_message_that_a_turn_handles_is_counted_once(void)
{
	uint64_t many = test_size(10000, 1000);
	struct rest r;

	rest_also = &relay_type;
	REST(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	ASK("/actor/status", ADDRESSED("echo:a"), 200, "\"messages_processed\":0");
	for (int i = 0; i < 3; i++)
		ASK("/actor/invoke", INVOKE("echo:a", "back", "{}"), 200, "response");
	ASK("/actor/invoke", INVOKE("echo:a", "no", "{}"), 409, "closed");
	ASK("/actor/invoke", INVOKE("echo:a", "fail", "{}"), 500, "no such thing");
	ASK("/actor/status", ADDRESSED("echo:a"), 200, "\"messages_processed\":5,\"mailbox_size\":0");
	ASK("/actor/list", "{\"actor_type\":\"echo\"}", 200, "\"messages_processed\":5,");
	EXPECT_EQ(noh_send(r.wire.box, "relay:a", 0, &many, sizeof many), NOH_OK);
	expect_processed(r.wire.box, "relay:a", many / 2 + 1);
	expect_processed(r.wire.box, "relay:b", many / 2);
	for (uint64_t i = 0; i < many; i++)
		EXPECT_EQ(noh_send(r.wire.box, "relay:c", 0, NULL, 0), NOH_OK);
	expect_processed(r.wire.box, "relay:c", many);
	EXPECT_EQ(noh_deactivate(r.wire.box, "relay:c", false, 10000), NOH_OK);
	EXPECT_EQ(processed(r.wire.box, "relay:c"), 0);
	close(fd);
	wire_end(&r.wire);
	rest_also = NULL;
}

static void a_step_over_several_actors_is_one_message_of_each(void)
{
	struct rest r;

	REST_ON_DISK(&r, .node_id = NULL);
	int fd = rest_dial(&r), resp = dial(&r.wire);

	for (int i = 0; i < 4; i++)
		ASK("/actor/invoke", INVOKE("counter:a", "incr", "{}"), 200, "response");
	EXPECT_ASK(resp, "MSET a 1 b 2", "+OK");
	ASK("/actor/status", ADDRESSED("counter:a"), 200, "\"messages_processed\":5");
	ASK("/actor/status", ADDRESSED("counter:b"), 200, "\"messages_processed\":1");
	close(fd);
	close(resp);
	wire_end(&r.wire);
}

static void a_box_that_does_not_listen_counts_nothing_by_actor(void)
{
	noh_options o = kit_options(1);
	noh_box *box = kit_open(&o, TYPES(&relay_type));

	EXPECT_EQ(noh_start(box), NOH_OK);
	EXPECT_EQ(noh_call(box, "relay:x", 0, NULL, 0, 10000, NULL, NULL), NOH_OK);
	EXPECT_EQ(processed(box, "relay:x"), 0);
	end(box);
}

TEST_MAIN(
	TEST(the_status_tells_how_an_actor_is_and_what_it_failed_of, "API-05 API-06"),
	TEST(every_message_that_a_turn_handles_is_counted_once, "API-05"),
	TEST(a_step_over_several_actors_is_one_message_of_each, "API-05"),
	TEST(a_box_that_does_not_listen_counts_nothing_by_actor))
