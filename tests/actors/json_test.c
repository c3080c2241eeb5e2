/* tests/actors/json_test.c - messages and answers of the built-in types as JSON: no box is needed for that. */
#include "noh_actors.h"
#include "noh_json.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

static struct {
	noh_json_message m;
	uint64_t         body[32];
	int              rc;
} got;

static void read_message(const noh_type *type, const char *name, const char *json)
{
	memset(&got, 0x5a, sizeof got);
	got.m = (noh_json_message){ .type = name, .json = json, .json_len = strlen(json), .kind = UINT32_MAX, .body = got.body,
				    .room = sizeof got.body };
	got.rc = type->from_json(type->user, &got.m);
}

static bool means(const noh_type *type, const char *name, const char *json, uint32_t kind, const void *body, size_t len,
		  const char *file, int line)
{
	read_message(type, name, json);
	if (got.rc == NOH_OK && got.m.kind == kind && got.m.len == len && (len == 0 || memcmp(got.body, body, len) == 0))
		return true;
	test_failed(file, line, "%s %s: %d (%s), kind %u, %zu bytes", name, json, got.rc, got.m.why, got.m.kind, got.m.len);
	return false;
}

static bool refuses(const noh_type *type, const char *name, const char *json, const char *why, const char *file, int line)
{
	read_message(type, name, json);
	if (got.rc == NOH_EINVAL && strstr(got.m.why[0] ? got.m.why : noh_why(), why))
		return true;
	test_failed(file, line, "%s %s: %d, %s / %s", name, json, got.rc, got.m.why, noh_why());
	return false;
}

#define COUNTER(name, json, kind, ...)                                                                         \
	do {                                                                                                   \
		__typeof__(__VA_ARGS__) body_ = __VA_ARGS__;                                                   \
		means(noh_counter_type(), name, json, kind, &body_, sizeof body_, __FILE__, __LINE__);         \
	} while (0)
#define INVENTORY(name, json, kind, ...)                                                                       \
	do {                                                                                                   \
		__typeof__(__VA_ARGS__) body_ = __VA_ARGS__;                                                   \
		means(noh_inventory_type(), name, json, kind, &body_, sizeof body_, __FILE__, __LINE__);       \
	} while (0)
#define EMPTY(type, name, kind) means(type, name, " {} ", kind, NULL, 0, __FILE__, __LINE__)
#define NO_COUNTER(name, json, why) refuses(noh_counter_type(), name, json, why, __FILE__, __LINE__)
#define NO_INVENTORY(name, json, why) refuses(noh_inventory_type(), name, json, why, __FILE__, __LINE__)

static void additions_are_short_where_nothing_else_is_asked(void)
{
	COUNTER("incr", "{}", NOH_COUNTER_ADD, (int64_t)1);
	COUNTER("add", "{\"by\":-5}", NOH_COUNTER_ADD, (int64_t)-5);
	COUNTER("incr", "{\"by\":9223372036854775807}", NOH_COUNTER_ADD, INT64_MAX);
	COUNTER("decr", "{}", NOH_COUNTER_ADD, (int64_t)-1);
	COUNTER("decr", "{\"by\":9223372036854775807}", NOH_COUNTER_ADD, -INT64_MAX);
	COUNTER("incr", "{\"by\":null,\"saturate\":false}", NOH_COUNTER_ADD, (int64_t)1);
	NO_COUNTER("decr", "{\"by\":-9223372036854775808}", "cannot be negated");
}

static void additions_have_bounds_and_times(void)
{
	COUNTER("incr", "{\"by\":2,\"low\":0,\"high\":10,\"saturate\":true,\"ttl_ms\":5000,\"if\":\"no_expiry\"}", NOH_COUNTER_ADD,
		(noh_counter_add){ .by = 2, .low = 0, .high = 10, .time = 5000,
				   .flags = NOH_COUNTER_IN | NOH_COUNTER_IF_NO_TIME | NOH_COUNTER_SATURATE });
	COUNTER("incr", "{\"expires_at\":\"2024-02-29T12:34:56.789Z\"}", NOH_COUNTER_ADD,
		(noh_counter_add){ .by = 1, .low = INT64_MIN, .high = INT64_MAX, .time = INT64_C(1709210096789),
				   .flags = NOH_COUNTER_AT });
	COUNTER("decr", "{\"persist\":true,\"low\":0}", NOH_COUNTER_ADD,
		(noh_counter_add){ .by = -1, .low = 0, .high = INT64_MAX, .flags = NOH_COUNTER_PERSIST });
	NO_COUNTER("incr", "{\"low\":2,\"high\":1}", "\"low\" is above");
	NO_COUNTER("incr", "{\"ttl_ms\":1,\"persist\":true}", "exclude each other");
	NO_COUNTER("incr", "{\"ttl_ms\":1,\"expires_at\":\"2024-02-29T12:34:56Z\"}", "exclude each other");
	NO_COUNTER("incr", "{\"ttl_ms\":0}", "\"ttl_ms\" must be from 1");
	NO_COUNTER("incr", "{\"if\":\"no_expiry\"}", "needs \"ttl_ms\"");
	NO_COUNTER("incr", "{\"if\":\"later\",\"ttl_ms\":1}", "can only be");
	NO_COUNTER("incr", "{\"by\":1.5}", "an integer");
	NO_COUNTER("incr", "{\"x\":1}", "there is no field \"x\"");
}

static void values_are_set_with_conditions(void)
{
	COUNTER("set", "{\"value\":7}", NOH_COUNTER_SET, (int64_t)7);
	COUNTER("set", "{\"value\":7,\"if\":\"absent\",\"ttl_ms\":9}", NOH_COUNTER_SET,
		(noh_counter_set){ .value = 7, .time = 9, .flags = NOH_COUNTER_IN | NOH_COUNTER_IF_NONE });
	COUNTER("set", "{\"value\":7,\"if\":\"present\",\"keep_expiry\":true}", NOH_COUNTER_SET,
		(noh_counter_set){ .value = 7, .flags = NOH_COUNTER_KEEP | NOH_COUNTER_IF_THERE });
	NO_COUNTER("set", "{}", "\"value\" is missing");
	NO_COUNTER("set", "{\"value\":1,\"if\":\"new\"}", "\"absent\" or \"present\"");
	NO_COUNTER("set", "{\"value\":1,\"keep_expiry\":true,\"ttl_ms\":1}", "exclude each other");
}

static void times_are_set_with_conditions(void)
{
	COUNTER("expire", "{\"ttl_ms\":-1}", NOH_COUNTER_EXPIRE, (noh_counter_expire){ .time = -1, .flags = NOH_COUNTER_IN });
	COUNTER("expire", "{\"ttl_ms\":5,\"if\":\"later\"}", NOH_COUNTER_EXPIRE,
		(noh_counter_expire){ .time = 5, .flags = NOH_COUNTER_IN | NOH_COUNTER_IF_LATER });
	COUNTER("expire", "{\"expires_at\":\"1970-01-01T00:00:00.001Z\",\"if\":\"earlier\"}", NOH_COUNTER_EXPIRE,
		(noh_counter_expire){ .time = 1, .flags = NOH_COUNTER_AT | NOH_COUNTER_IF_EARLIER });
	COUNTER("expire", "{\"ttl_ms\":5,\"if\":\"expiry\"}", NOH_COUNTER_EXPIRE,
		(noh_counter_expire){ .time = 5, .flags = NOH_COUNTER_IN | NOH_COUNTER_IF_TIME });
	COUNTER("expire", "{\"ttl_ms\":5,\"if\":\"no_expiry\"}", NOH_COUNTER_EXPIRE,
		(noh_counter_expire){ .time = 5, .flags = NOH_COUNTER_IN | NOH_COUNTER_IF_NO_TIME });
	COUNTER("expire", "{\"persist\":true}", NOH_COUNTER_EXPIRE, (noh_counter_expire){ .flags = NOH_COUNTER_PERSIST });
	NO_COUNTER("expire", "{}", "is needed");
	NO_COUNTER("expire", "{\"persist\":false}", "is needed");
	NO_COUNTER("expire", "{\"persist\":true,\"if\":\"later\"}", "does not go with");
	NO_COUNTER("expire", "{\"ttl_ms\":1,\"if\":\"never\"}", "\"no_expiry\", \"expiry\"");
}

static void messages_without_fields_have_no_body(void)
{
	EMPTY(noh_counter_type(), "get", NOH_COUNTER_GET);
	EMPTY(noh_counter_type(), "delete", NOH_COUNTER_DELETE);
	EMPTY(noh_counter_type(), "ttl", NOH_COUNTER_TTL);
	EMPTY(noh_inventory_type(), "get", NOH_INVENTORY_GET);
	NO_COUNTER("get", "{\"a\":1}", "must be empty");
	read_message(noh_counter_type(), "expired", "{}");       /* its own timer */
	EXPECT_EQ(got.rc, NOH_EKIND);
	read_message(noh_inventory_type(), "sell", "{}");
	EXPECT_EQ(got.rc, NOH_EKIND);
}

static void stock_is_reserved_committed_and_released(void)
{
	INVENTORY("restock", "{\"n\":5}", NOH_INVENTORY_RESTOCK, (int64_t)5);
	INVENTORY("set", "{\"n\":0}", NOH_INVENTORY_SET, (int64_t)0);
	INVENTORY("reserve", "{}", NOH_INVENTORY_RESERVE, (int64_t)1);
	INVENTORY("reserve", "{\"n\":-3}", NOH_INVENTORY_RESERVE, (int64_t)-3);           /* the article says bad_amount */
	INVENTORY("reserve", "{\"n\":3,\"ttl_ms\":60000}", NOH_INVENTORY_RESERVE, (noh_inventory_reserve){ 3, 60000 });
	INVENTORY("commit", "{\"reservation\":9007199254740993}", NOH_INVENTORY_COMMIT, UINT64_C(9007199254740993));
	INVENTORY("release", "{\"reservation\":1}", NOH_INVENTORY_RELEASE, UINT64_C(1));
	INVENTORY("holds", "{}", NOH_INVENTORY_HOLDS, (noh_inventory_page){ .limit = 100 });
	INVENTORY("holds", "{\"cursor\":7,\"limit\":1000}", NOH_INVENTORY_HOLDS, (noh_inventory_page){ .cursor = 7, .limit = 1000 });
	NO_INVENTORY("restock", "{}", "\"n\" is missing");
	NO_INVENTORY("commit", "{\"reservation\":0}", "from 1");
	NO_INVENTORY("reserve", "{\"ttl_ms\":0}", "from 1");
	NO_INVENTORY("holds", "{\"limit\":1001}", "from 1 to 1000");
}

/* ── answers ── */

static bool shows(const noh_type *type, uint32_t kind, const void *body, size_t len, const char *expected, const char *file,
		  int line)
{
	char text[600] = "", small[8];
	noh_json_reply r = { .kind = kind, .body = body, .len = len, .json = text, .room = sizeof text };
	noh_json_reply cut = { .kind = kind, .body = body, .len = len, .json = small, .room = sizeof small };
	int rc = type->to_json(type->user, &r);

	if (rc != NOH_OK || r.json_len != strlen(expected) || strcmp(text, expected) != 0) {
		test_failed(file, line, "%d: %s and not %s", rc, text, expected);
		return false;
	}
	/* Too little room: it tells how much, and stays within. */
	return EXPECT(type->to_json(type->user, &cut) == NOH_OK && cut.json_len == r.json_len &&
		      memcmp(small, expected, sizeof small) == 0);
}
#define SHOWS(type, kind, expected, ...)                                                                       \
	do {                                                                                                   \
		__typeof__(__VA_ARGS__) body_ = __VA_ARGS__;                                                   \
		shows(type, kind, &body_, sizeof body_, expected, __FILE__, __LINE__);                         \
	} while (0)

static void answers_of_counters_begin_with_their_outcome(void)
{
	const noh_type *t = noh_counter_type();

	SHOWS(t, NOH_COUNTER_GET, "{\"outcome\":\"ok\",\"value\":-3}", (noh_counter_value){ NOH_COUNTER_OK, 1, -3 });
	SHOWS(t, NOH_COUNTER_GET, "{\"outcome\":\"not_found\",\"value\":null}", (noh_counter_value){ NOH_COUNTER_NONE, 0, 0 });
	SHOWS(t, NOH_COUNTER_DELETE, "{\"outcome\":\"ok\",\"value\":9}", (noh_counter_value){ NOH_COUNTER_OK, 1, 9 });
	SHOWS(t, NOH_COUNTER_SET, "{\"outcome\":\"unchanged\",\"previous\":9}", (noh_counter_value){ NOH_COUNTER_UNCHANGED, 1, 9 });
	SHOWS(t, NOH_COUNTER_ADD, "{\"outcome\":\"out_of_bounds\",\"value\":9,\"applied\":0}",
	      (noh_counter_added){ NOH_COUNTER_OUT_OF_BOUNDS, 0, 9, 0 });
	SHOWS(t, NOH_COUNTER_ADD, "{\"outcome\":\"overflow\",\"value\":9223372036854775807,\"applied\":0}",
	      (noh_counter_added){ NOH_COUNTER_OVERFLOW, 0, INT64_MAX, 0 });
	SHOWS(t, NOH_COUNTER_TTL, "{\"outcome\":\"ok\",\"ttl_ms\":1500,\"expires_at\":\"1970-01-01T00:00:02.000Z\"}",
	      (noh_counter_times){ NOH_COUNTER_OK, 0, 1500, 2000 });
	SHOWS(t, NOH_COUNTER_EXPIRE, "{\"outcome\":\"ok\",\"ttl_ms\":null,\"expires_at\":null}",
	      (noh_counter_times){ NOH_COUNTER_OK, 0, -1, -1 });
	SHOWS(t, NOH_COUNTER_TTL, "{\"outcome\":\"ok\",\"ttl_ms\":1,\"expires_at\":\"9999-12-31T23:59:59.999Z\"}",
	      (noh_counter_times){ NOH_COUNTER_OK, 0, 1, NOH_COUNTER_TIME_MAX });
}

static void answers_of_articles_begin_with_their_outcome(void)
{
	const noh_type *t = noh_inventory_type();
	struct { noh_inventory_holds head; noh_inventory_hold list[2]; } holds = {
		{ NOH_INVENTORY_OK, 2, 2 }, { { 1, 5, -1 }, { 2, 6, 1000 } } };

	SHOWS(t, NOH_INVENTORY_GET, "{\"outcome\":\"ok\",\"on_hand\":9,\"reserved\":2,\"available\":7,\"sold\":1,\"holds\":1,"
				    "\"restocked\":10,\"adjusted\":0}",
	      (noh_inventory_stock){ NOH_INVENTORY_OK, 1, 9, 2, 7, 1, 10, 0 });
	SHOWS(t, NOH_INVENTORY_RESERVE, "{\"outcome\":\"ok\",\"reservation\":18446744073709551615,"
					"\"expires_at\":\"1970-01-01T00:00:01.000Z\",\"available\":3}",
	      (noh_inventory_reserved){ NOH_INVENTORY_OK, 0, UINT64_MAX, 3, 1000 });
	SHOWS(t, NOH_INVENTORY_RESERVE, "{\"outcome\":\"out_of_stock\",\"available\":3}",
	      (noh_inventory_reserved){ NOH_INVENTORY_SHORT, 0, 0, 3, -1 });
	SHOWS(t, NOH_INVENTORY_COMMIT, "{\"outcome\":\"expired\",\"reservation\":4,\"n\":2}",
	      (noh_inventory_ended){ NOH_INVENTORY_EXPIRED, 0, 4, 2 });
	SHOWS(t, NOH_INVENTORY_HOLDS, "{\"outcome\":\"ok\",\"holds\":[{\"reservation\":1,\"n\":5,\"expires_at\":null},{\"reservation\":2,"
				      "\"n\":6,\"expires_at\":\"1970-01-01T00:00:01.000Z\"}],\"next_cursor\":2}", holds);
	SHOWS(t, NOH_INVENTORY_HOLDS, "{\"outcome\":\"no_sku\",\"holds\":[],\"next_cursor\":null}",
	      (noh_inventory_holds){ NOH_INVENTORY_NO_SKU, 0, 0 });
}

#define LATER(name, json, kind, ...)                                                                           \
	do {                                                                                                   \
		__typeof__(__VA_ARGS__) body_ = __VA_ARGS__;                                                   \
		means(noh_later_type(), name, json, kind, &body_, sizeof body_, __FILE__, __LINE__);           \
	} while (0)
#define NO_LATER(name, json, why) refuses(noh_later_type(), name, json, why, __FILE__, __LINE__)

static void what_waits_is_named_by_its_id(void)
{
	LATER("cancel", "{\"id\":\"1794834000123-7\"}", NOH_LATER_CANCEL, (noh_later_sent){ 7, UINT64_C(1794834000123) });
	LATER("cancel", "{\"id\":\"18446744073709551615-18446744073709551615\"}", NOH_LATER_CANCEL, (noh_later_sent){ UINT64_MAX, UINT64_MAX });
	LATER("list", "{}", NOH_LATER_LIST, (noh_later_page){ .limit = 100 });
	LATER("list", "{\"limit\":5,\"cursor\":\"9-8\"}", NOH_LATER_LIST, (noh_later_page){ .after = { 8, 9 }, .limit = 5 });
	EMPTY(noh_later_type(), "clear", NOH_LATER_CLEAR);
	NO_LATER("cancel", "{}", "\"id\" is missing");
	NO_LATER("cancel", "{\"id\":7}", "must be a string");
	for (const char *const *id = (const char *const[]){ "abc", "1-2x", " 1-2", "1--2", "01-2", "-1-2", "1-2\\u0000", "99999999999999999999-1", NULL };
	     *id; id++) {
		char json[64];

		snprintf(json, sizeof json, "{\"id\":\"%s\"}", *id);
		NO_LATER("cancel", json, "no id");
	}
	NO_LATER("list", "{\"limit\":101}", "from 1 to 100");
	NO_LATER("list", "{\"cursor\":\"x-y\"}", "no id");
	read_message(noh_later_type(), "send", "{}");
	EXPECT_EQ(got.rc, NOH_EKIND);
	EXPECT(strstr(got.m.why, "list, cancel, clear"));
}

static void what_waits_is_shown_with_its_time(void)
{
	const noh_type *t = noh_later_type();
	struct { noh_later_list head; noh_later_waiting page[2]; } list = {
		{ 3, 2, 1 }, { { { 7, 1000 }, 1, 8, "note" }, { { 8, 2000 }, 77, 0, "" } } };

	SHOWS(t, NOH_LATER_SEND, "{\"id\":\"1000-7\",\"due_at\":\"1970-01-01T00:00:01.000Z\"}", (noh_later_sent){ 7, 1000 });
	SHOWS(t, NOH_LATER_CANCEL, "{\"id\":\"1000-7\",\"due_at\":\"1970-01-01T00:00:01.000Z\"}", (noh_later_sent){ 7, 1000 });
	SHOWS(t, NOH_LATER_CLEAR, "{\"cleared\":3}", (uint64_t){ 3 });
	SHOWS(t, NOH_LATER_LIST, "{\"waiting\":3,\"messages\":[{\"id\":\"1000-7\",\"due_at\":\"1970-01-01T00:00:01.000Z\",\"message_type\":\"note\","
				 "\"kind\":1,\"size\":8},{\"id\":\"2000-8\",\"due_at\":\"1970-01-01T00:00:02.000Z\",\"message_type\":\"\",\"kind\":77,"
				 "\"size\":0}],\"next_cursor\":\"2000-8\"}", list);
	SHOWS(t, NOH_LATER_LIST, "{\"waiting\":0,\"messages\":[],\"next_cursor\":null}", (noh_later_list){ 0, 0, 0 });
}

/* Whatever length an answer has, it is shown or refused, and never read beyond its end. */
static void an_answer_of_another_length_is_not_shown(void)
{
	uint64_t body[32] = { 0 };

	for (uint32_t kind = 0; kind < 10; kind++)
		for (size_t len = 0; len <= sizeof body; len += 4) {
			char text[64];
			noh_json_reply r = { .kind = kind, .body = body, .len = len, .json = text, .room = sizeof text };

			(void)noh_counter_type()->to_json(NULL, &r);
			(void)noh_inventory_type()->to_json(NULL, &r);
			(void)noh_later_type()->to_json(NULL, &r);
			if (len == 4)
				EXPECT(noh_counter_type()->to_json(NULL, &r) < 0 && noh_inventory_type()->to_json(NULL, &r) < 0);
		}
}

TEST_MAIN(
	TEST(additions_are_short_where_nothing_else_is_asked),
	TEST(additions_have_bounds_and_times),
	TEST(values_are_set_with_conditions),
	TEST(times_are_set_with_conditions),
	TEST(messages_without_fields_have_no_body),
	TEST(stock_is_reserved_committed_and_released),
	TEST(answers_of_counters_begin_with_their_outcome),
	TEST(answers_of_articles_begin_with_their_outcome),
	TEST(what_waits_is_named_by_its_id),
	TEST(what_waits_is_shown_with_its_time),
	TEST(an_answer_of_another_length_is_not_shown))
