/* tests/net/audit_test.c - whoever asks for what operators ask for is told of: in the event log, and in a line that is
 * written whatever the level of the log is. */
#include "tests/net/rest_kit.h"

static struct response p;

/* SHA-256 of "admin" */
static const noh_account admin = { "anna", NOH_ADMIN, { 0x8c, 0x69, 0x76, 0xe5, 0xb5, 0x41, 0x04, 0x15, 0xbd, 0xe9, 0x08, 0xbd, 0x4d, 0xee,
	0x15, 0xdf, 0xb1, 0x67, 0xa9, 0xc8, 0x73, 0xfc, 0x4b, 0xb8, 0xa8, 0x1f, 0x6f, 0x2a, 0xb4, 0x48, 0xa9, 0x18 } };

#define TOKEN "Authorization: Bearer admin\r\n"

struct heard { char text[4000]; };

static int add(void *user, const noh_event *e)
{
	struct heard *h = user;
	size_t at = strlen(h->text);

	snprintf(h->text + at, sizeof h->text - at, "%s|%s|%.*s\n", e->actor, e->reason, (int)e->len, (const char *)e->data);
	return 0;
}

static void hear_admin(noh_box *box, struct heard *h)
{
	uint64_t cursor = 0;

	h->text[0] = 0;
	EXPECT_EQ(noh_sync(box, 10000), NOH_OK);
	EXPECT_EQ(noh_events_read(box, &cursor, &(noh_events_filter){ .kind = "admin" }, 0, add, h), NOH_END);
}

/* The event, and its line. */
static bool told(const struct heard *h, const char *actor, const char *asked)
{
	char event[400], line[400];

	snprintf(event, sizeof event, "%s|anna asked for \"%s\"|{\"user\":\"anna\",\"call\":\"", actor, asked);
	snprintf(line, sizeof line, "%s|anna asked for \"%s\"\n", actor, asked);
	if (strstr(h->text, event) && logged(line))
		return true;
	printf("  not told: %s in\n%s", event, h->text);
	return false;
}

static void every_call_of_an_operator_is_an_event_with_who_and_what(void)
{
	struct rest r;
	struct heard h;

	REST_ON_DISK(&r, .node_id = NULL);
	EXPECT_EQ(noh_set_accounts(r.wire.box, &admin, 1), NOH_OK);
	EXPECT_EQ(noh_set_log_level(r.wire.box, "error"), NOH_OK);
	int fd = rest_dial(&r), resp = dial(&r.wire);

	ASK_WITH("/actor/activate", TOKEN, ADDRESSED("counter:a"), 200, "activated_at");
	ASK_WITH("/actor/deactivate", TOKEN, ADDRESSED("counter:a"), 200, "was_active");
	ASK_WITH("/actor/deactivate", TOKEN, "{\"actor_address\":\"counter:b\",\"force\":true}", 200, "was_active");
	ASK_WITH("/admin/dead/redrive", TOKEN, "{\"id\":\"1-17\"}", 404, "not_found");
	ASK_WITH("/admin/dead/purge", TOKEN, "{\"id\":\"1-18\"}", 404, "not_found");
	ASK_WITH("/admin/schedule/cancel", TOKEN, "{\"actor_address\":\"counter:a\",\"message_type\":\"expire\"}", 200, "was_scheduled");
	ASK_WITH("/admin/quarantine/resume", TOKEN, "{\"actor\":\"counter:a\"}", 404, "nothing_to_resume");
	EXPECT_ASK(resp, "AUTH anna admin", "+OK");
	EXPECT_ASK(resp, "ACTOR.ACTIVATE counter/c", "+OK");
	EXPECT_ASK(resp, "ACTOR.DEACTIVATE counter:c FORCE", "+OK");
	EXPECT_ASK(resp, "ACTOR.RESUME counter", "-");
	EXPECT_ASK(resp, "CONFIG SET loglevel warn timeout 60", "+OK");
	EXPECT_ASK(resp, "CONFIG RESETSTAT", "+OK");
	hear_admin(r.wire.box, &h);
	EXPECT(told(&h, "counter:a", "activate counter:a"));
	EXPECT(told(&h, "counter:a", "deactivate counter:a"));
	EXPECT(told(&h, "counter:b", "deactivate by force counter:b"));
	EXPECT(told(&h, "", "dead redrive 1-17"));
	EXPECT(told(&h, "", "dead purge 1-18"));
	EXPECT(told(&h, "counter:a", "schedule cancel counter:a expire"));
	EXPECT(told(&h, "counter:a", "quarantine resume counter:a"));
	EXPECT(told(&h, "counter:c", "activate counter:c"));
	EXPECT(told(&h, "counter:c", "deactivate by force counter:c"));
	EXPECT(told(&h, "counter", "quarantine resume counter"));
	EXPECT(told(&h, "", "config set loglevel timeout"));
	EXPECT(told(&h, "", "config resetstat"));
	EXPECT(strstr(h.text, "\"call\":\"dead redrive\",\"target\":\"1-17\",\"from\":\"127.0.0.1:"));
	close(fd);
	close(resp);
	wire_end(&r.wire);
}

static void who_may_not_and_who_only_looks_is_not_told_of(void)
{
	struct rest r;
	struct heard h;

	REST(&r, .node_id = NULL);
	EXPECT_EQ(noh_set_accounts(r.wire.box, &admin, 1), NOH_OK);
	int fd = rest_dial(&r);

	ASK_WITH("/actor/status", TOKEN, ADDRESSED("counter:a"), 200, "is_active");
	ASK_WITH("/actor/pool/status", TOKEN, "{}", 200, "nodes");
	ASK_WITH("/actor/activate", TOKEN, ADDRESSED("nope:a"), 404, "no_type");
	ASK("/actor/activate", ADDRESSED("counter:a"), 401, "");
	hear_admin(r.wire.box, &h);
	EXPECT(h.text[0] == 0);
	close(fd);
	wire_end(&r.wire);
}

static void what_a_client_sends_stays_inside_its_field(void)
{
	struct rest r;
	struct heard h;
	noh_json v;

	REST(&r, .node_id = NULL);
	int fd = rest_dial(&r);

	ASK("/admin/dead/purge", "{\"id\":\"1\\\",\\n\\u0001x\"}", 422, "");
	hear_admin(r.wire.box, &h);
	const char *data = strstr(h.text, "|{");

	if (EXPECT(data != NULL))
		EXPECT_EQ(noh_json_check(data + 1, strlen(data + 1), &v), NOH_OK);
	close(fd);
	wire_end(&r.wire);
}

static void a_program_tells_of_its_own_commands(void)
{
	noh_options o = kit_options(1);
	noh_box *box = kit_open(&o, TYPES(noh_counter_type()));
	char longest[2000];
	struct heard h;

	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	EXPECT_EQ(noh_start(box), NOH_OK);
	EXPECT_EQ(noh_tell_admin(box, &(noh_admin_call){ .who = "eve" }), NOH_EINVAL);
	EXPECT_EQ(noh_tell_admin(box, NULL), NOH_EINVAL);
	EXPECT_EQ(noh_tell_admin(box, &(noh_admin_call){ .who = "eve", .call = "open the door" }), NOH_OK);
	EXPECT_EQ(noh_tell_admin(box, &(noh_admin_call){ .who = longest, .call = longest, .target = longest, .from = longest }), NOH_OK);
	hear_admin(box, &h);
	EXPECT(strncmp(h.text, "|eve asked for \"open the door\"|{\"user\":\"eve\",\"call\":\"open the door\"}\n", 69) == 0);
	EXPECT(strstr(h.text, "xxxx"));
	EXPECT_EQ(noh_stop(box, 5000), NOH_OK);
	noh_close(box);
}

TEST_MAIN(
	TEST(every_call_of_an_operator_is_an_event_with_who_and_what),
	TEST(who_may_not_and_who_only_looks_is_not_told_of),
	TEST(what_a_client_sends_stays_inside_its_field, "P11"),
	TEST(a_program_tells_of_its_own_commands))
