/* tests/net/rest_later_test.c - messages for later over HTTP: accepted with an id, told, taken back, forgotten with their timer. */
#include "tests/net/rest_kit.h"

static struct response p;

#define LATER(to, ms) "{\"actor_address\":\"" to "\",\"message_type\":\"incr\",\"message\":{},\"delay_ms\":" ms "}"
#define KEEPER "later:counter:a"
#define CANCEL "{\"actor_address\":\"" KEEPER "\",\"message_type\":\"due\"}"

static int begin(struct rest *r)
{
	rest_open_types(r, (noh_options){ .workers = 2, .dir = "" }, (noh_listen_options){ .node_id = "node-7" },
			TYPES(noh_counter_type(), noh_later_type()));
	return rest_dial(r);
}

/* The id in the last response; "": there is none. */
static const char *id_of(char id[64])
{
	const char *at = strstr(p.body, "\"id\":\"");

	id[0] = 0;
	if (EXPECT(at))
		snprintf(id, 64, "%.*s", (int)strcspn(at + 6, "\""), at + 6);
	return id;
}

static void cancel(int fd, const char *id, int status, const char *words)
{
	char json[300];

	snprintf(json, sizeof json, INVOKE(KEEPER, "cancel", "{\"id\":\"%s\"}"), id);
	ASK("/actor/invoke", json, status, words);
}

static void it_is_told_and_taken_back_by_its_id(void)
{
	struct rest r;
	int fd = begin(&r);
	char first[64], second[64];

	ASK("/actor/send", LATER("counter:a", "3600000"), 202, "{\"accepted\":true,\"actor_node\":\"node-7\",\"later\":{\"id\":\"");
	id_of(first);
	ASK("/actor/send", LATER("counter/a", "7200000"), 202, "\"due_at\":\"");       /* the same actor */
	EXPECT(strcmp(first, id_of(second)) != 0);
	ASK("/actor/invoke", INVOKE(KEEPER, "list", "{\"limit\":1}"), 200, "{\"response\":{\"waiting\":2,\"messages\":[{\"id\":\"");
	EXPECT(strstr(p.body, "\"message_type\":\"add\",\"kind\":1,\"size\":8}],\"next_cursor\":\""));
	EXPECT(strstr(p.body, first));
	cancel(fd, first, 200, "\"due_at\":\"");
	cancel(fd, first, 409, "no such message waits");
	cancel(fd, "1-x", 422, "no id of a message that waits");
	cancel(fd, second, 200, "\"due_at\":\"");
	ASK("/actor/status", "{\"actor_address\":\"" KEEPER "\"}", 200, "\"exists\":false");
	ASK("/actor/invoke", INVOKE(KEEPER, "send", "{}"), 422, "it has list, cancel, clear");
	close(fd);
	wire_end(&r.wire);
}

static void a_key_gives_the_same_id_again(void)
{
	struct rest r;
	int fd = begin(&r);
	char first[64], again[64];

	ASK_WITH("/actor/send", "Idempotency-Key: k\r\n", LATER("counter:a", "3600000"), 202, "\"later\"");
	id_of(first);
	ASK_WITH("/actor/send", "Idempotency-Key: k\r\n", LATER("counter:a", "3600000"), 202, "\"later\"");
	EXPECT(strstr(p.head, "Idempotency-Replayed: true\r\n"));
	EXPECT(strcmp(first, id_of(again)) == 0);
	ASK_WITH("/actor/send", "Idempotency-Key: k\r\n", LATER("counter:a", "3600001"), 422, "idempotency_conflict");
	ASK("/actor/invoke", INVOKE(KEEPER, "list", "{}"), 200, "\"waiting\":1,");
	close(fd);
	wire_end(&r.wire);
}

/* Without its timer it would neither arrive nor be gone. */
static void who_cancels_the_timer_forgets_what_waits(void)
{
	struct rest r;
	int fd = begin(&r);

	ASK("/admin/schedule/cancel", CANCEL, 200, "\"was_scheduled\":false");
	ASK("/actor/send", LATER("counter:a", "3600000"), 202, "\"later\"");
	ASK("/actor/send", LATER("counter:a", "3600000"), 202, "\"later\"");
	ASK("/admin/schedule/list", "{}", 200, "{\"actor_address\":\"" KEEPER "\",\"message_type\":\"due\"");
	ASK("/admin/schedule/cancel", CANCEL, 200, "\"was_scheduled\":true");
	ASK("/admin/schedule/cancel", CANCEL, 200, "\"was_scheduled\":false");
	ASK("/actor/invoke", INVOKE(KEEPER, "list", "{}"), 200, "\"waiting\":0,");
	ASK("/actor/send", LATER("counter:a", "1"), 202, "\"later\"");
	for (int i = 0; i < 500 && !strstr(p.body, "\"value\":1"); i++) {
		usleep(10000);
		ASK("/actor/invoke", INVOKE("counter:a", "get", "{}"), 200, "\"value\":");
	}
	EXPECT(strstr(p.body, "\"value\":1"));
	close(fd);
	wire_end(&r.wire);
}

TEST_MAIN(
	TEST(it_is_told_and_taken_back_by_its_id),
	TEST(a_key_gives_the_same_id_again),
	TEST(who_cancels_the_timer_forgets_what_waits))
