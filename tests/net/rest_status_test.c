/* tests/net/rest_status_test.c - what /actor/status, /actor/list and ACTOR.STATUS tell of an actor that fails. */
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

TEST_MAIN(
	TEST(the_status_tells_how_an_actor_is_and_what_it_failed_of, "API-05 API-06"))
