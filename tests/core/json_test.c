/* tests/core/json_test.c - JSON: what is taken, what is refused and why, what is written. */
#include "core/json.h"
#include "core/mem.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check(const char *text, size_t len)
{
	char *copy = calloc(1, len ? len : 1);   /* exactly as long: a sanitizer sees who reads beyond */
	noh_json v;
	int rc;

	memcpy(copy, text, len);
	rc = noh_json_check(copy, len, &v);
	free(copy);
	return rc;
}
#define TAKES(text) test_expect(check(text, sizeof(text) - 1) == NOH_OK, "taken: " #text, __FILE__, __LINE__)
#define REFUSES(text, why)                                                                                          \
	test_expect(check(text, sizeof(text) - 1) == NOH_EINVAL && strstr(noh_why(), why), "refused (" why "): " #text, \
		    __FILE__, __LINE__)

static void what_the_standard_allows_is_taken(void)
{
	TAKES("{}");
	TAKES(" \t\r\n[ ] \n");
	TAKES("null");
	TAKES("true");
	TAKES("false");
	TAKES("0");
	TAKES("-0");
	TAKES("-12.5e+3");
	TAKES("1E400");
	TAKES("123456789012345678901234567890");
	TAKES("\"\"");
	TAKES("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\ude00\"");
	TAKES("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
	TAKES("\"\\u0000\"");
	TAKES("{\"a\":{\"a\":[1,{\"a\":2}]},\"b\":[],\"\":null}");
	TAKES("[1 , 2\n,\t3]");
}

static void what_is_not_json_is_refused_with_its_place(void)
{
	REFUSES("", "ends where a value");
	REFUSES("  ", "ends where a value");
	REFUSES("{", "a name in quotes");
	REFUSES("[", "ends where a value");
	REFUSES("[1", "before a bracket");
	REFUSES("[1,]", "a value is expected, at byte 3 of 4");
	REFUSES("[,1]", "a value is expected");
	REFUSES("{\"a\":1,}", "a name in quotes");
	REFUSES("{a:1}", "a name in quotes");
	REFUSES("{'a':1}", "a name in quotes");
	REFUSES("{\"a\" 1}", "a colon");
	REFUSES("{\"a\":}", "a value is expected");
	REFUSES("{\"a\":1]", "a comma or a closing bracket");
	REFUSES("[1}", "a comma or a closing bracket");
	REFUSES("[1 2]", "a comma or a closing bracket");
	REFUSES("1 2", "something follows");
	REFUSES("{}{}", "something follows");
	REFUSES("]", "a value is expected");
	REFUSES("nul", "a value is expected");
	REFUSES("True", "a value is expected");
	REFUSES("NaN", "a value is expected");
	REFUSES("Infinity", "a value is expected");
	REFUSES("-Infinity", "a digit is missing");
	REFUSES("// c\n1", "a value is expected");
	REFUSES("1\0", "something follows");
	REFUSES("\xef\xbb\xbf{}", "a value is expected");
}

static void numbers_are_those_of_the_standard(void)
{
	REFUSES("01", "begins with 0");
	REFUSES("-01", "begins with 0");
	REFUSES("+1", "a value is expected");
	REFUSES("-", "a digit is missing");
	REFUSES("1.", "a digit is missing");
	REFUSES(".5", "a value is expected");
	REFUSES("1e", "a digit is missing");
	REFUSES("1e+", "a digit is missing");
	REFUSES("0x10", "something follows");
	REFUSES("[-]", "a digit is missing");
}

static void strings_are_utf8_and_escapes_are_known(void)
{
	REFUSES("\"", "does not end");
	REFUSES("\"a", "does not end");
	REFUSES("\"\\", "does not end");
	REFUSES("\"\\\"", "does not end");
	REFUSES("\"\\x\"", "an escape");
	REFUSES("\"\\\0\"", "an escape");
	REFUSES("\"\\u12\"", "four hexadecimal");
	REFUSES("\"\\u12g4\"", "four hexadecimal");
	REFUSES("\"a\nb\"", "a control character");
	REFUSES("\"\x1f\"", "a control character");
	REFUSES("\"a\0b\"", "a control character");
	REFUSES("\"\\ud800\"", "half a surrogate");
	REFUSES("\"\\udc00\"", "half a surrogate");
	REFUSES("\"\\ud800\\u0041\"", "half a surrogate");
	REFUSES("\"\\ud800\\ud800\"", "half a surrogate");
	REFUSES("\"\x80\"", "not UTF-8");
	REFUSES("\"\xc0\xaf\"", "not UTF-8");
	REFUSES("\"\xc3\"", "not UTF-8");
	REFUSES("\"\xe0\x80\x80\"", "not UTF-8");
	REFUSES("\"\xed\xa0\x80\"", "not UTF-8");
	REFUSES("\"\xf4\x90\x80\x80\"", "not UTF-8");
	REFUSES("\"\xf5\x80\x80\x80\"", "not UTF-8");
	REFUSES("\"\xff\"", "not UTF-8");
}

static void a_name_is_in_an_object_once_however_it_is_written(void)
{
	REFUSES("{\"a\":1,\"a\":1}", "twice");
	REFUSES("{\"a\":1,\"\\u0061\":2}", "twice");
	REFUSES("{\"\xc3\xa9\":1,\"\\u00E9\":2}", "twice");
	REFUSES("{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}", "twice");
	REFUSES("{\"x\":[{\"b\":{},\"b\":{}}]}", "twice");
	REFUSES("{\"\":1,\"\":2}", "twice");
	REFUSES("{\"a\\u0000\":1}", "a NUL in a name");
	TAKES("{\"a\":1,\"A\":2,\"aa\":3,\"\\u00e9\":4,\"e\":5}");
	TAKES("[{\"a\":1},{\"a\":1},{\"b\":{\"a\":1},\"a\":{\"b\":1}}]");
}

/* n members, each with its own name, and perhaps one that is there already. */
static char *large_object(uint32_t n, bool twice, size_t *len)
{
	char *text = malloc(n * 24 + 64);
	size_t at = 0;

	text[at++] = '{';
	for (uint32_t i = 0; i < n; i++)
		at += (size_t)sprintf(text + at, "%s\"k%u\":%u", i ? "," : "", i * 2654435761u, i);
	if (twice)
		at += (size_t)sprintf(text + at, ",\"\\u006b%u\":0", n / 2 * 2654435761u);
	text[at++] = '}';
	*len = at;
	return text;
}

static void a_large_object_is_checked_for_names_without_squaring(void)
{
	for (uint32_t n = 1; n <= 100000; n = n * 7 + 3)
		for (int twice = 0; twice < 2; twice++) {
			size_t len;
			char *text = large_object(n, twice, &len);

			EXPECT_EQ(check(text, len), twice ? NOH_EINVAL : NOH_OK);
			free(text);
		}
}

static void without_memory_a_large_object_is_refused_as_that(void)
{
	size_t len;
	char *text = large_object(500, false, &len);

	(void)mem_fail_at(1, 0);
	EXPECT_EQ(check(text, len), NOH_ENOMEM);
	(void)mem_fail_at(0, 0);
	EXPECT_EQ(check(text, len), NOH_OK);
	free(text);
}

static void depth_has_a_limit(void)
{
	char deep[200];

	for (int d = 31; d <= 33; d++) {
		memset(deep, '[', (size_t)d);
		memset(deep + d, ']', (size_t)d);
		EXPECT_EQ(check(deep, 2 * (size_t)d), d <= NOH_JSON_DEPTH ? NOH_OK : NOH_EINVAL);
	}
	memset(deep, '[', sizeof deep);
	EXPECT_EQ(check(deep, sizeof deep), NOH_EINVAL);
	EXPECT(strstr(noh_why(), "too deep"));
}

/* ── reading ── */

static bool int_of(const char *text, int64_t *n)
{
	noh_json v;

	return noh_json_check(text, strlen(text), &v) == NOH_OK && noh_json_int(v, n);
}

static void integers_are_exact_to_the_last_bit_of_64(void)
{
	int64_t n = 0;

	EXPECT(int_of("9007199254740993", &n) && n == INT64_C(9007199254740993));
	EXPECT(int_of("9223372036854775807", &n) && n == INT64_MAX);
	EXPECT(int_of("-9223372036854775808", &n) && n == INT64_MIN);
	EXPECT(int_of("-0", &n) && n == 0);
	EXPECT(!int_of("9223372036854775808", &n));
	EXPECT(!int_of("-9223372036854775809", &n));
	EXPECT(!int_of("99999999999999999999", &n));
	EXPECT(!int_of("1.0", &n));
	EXPECT(!int_of("1e3", &n));
	EXPECT(!int_of("\"1\"", &n));
}

enum { NAME, COUNT, FORCE, WHEN, MORE, FIELDS };
static const noh_json_field fields[FIELDS] = {
	[NAME] = { .name = "name", .type = NOH_JSON_STRING, .required = true, .least = 1, .most = 5 },
	[COUNT] = { .name = "count", .type = NOH_JSON_INT, .least = -3, .most = 9, .preset = 7 },
	[FORCE] = { .name = "force", .type = NOH_JSON_BOOL },
	[WHEN] = { .name = "when", .type = NOH_JSON_TIME },
	[MORE] = { .name = "more", .type = NOH_JSON_OBJECT },
};

static int read_fields(const char *text, noh_json_got *got)
{
	return noh_json_read(text, strlen(text), fields, FIELDS, got);
}
#define WRONG(text, why)                                                                                     \
	test_expect(read_fields(text, got) == NOH_EINVAL && strstr(noh_why(), why), text, __FILE__, __LINE__)

static void fields_are_read_with_their_types_ranges_and_presets(void)
{
	noh_json_got got[FIELDS];
	char text[16];

	EXPECT_EQ(read_fields(" {\"n\\u0061me\" : \"a\\u00e9\\n\", \"more\":{\"x\":[1,\"}\"]} , \"force\":true}\n", got), NOH_OK);
	EXPECT_EQ(noh_json_text(got[NAME].value, text, sizeof text), 4);
	EXPECT(strcmp(text, "a\xc3\xa9\n") == 0);
	EXPECT(!got[COUNT].given && got[COUNT].n == 7);
	EXPECT(got[FORCE].given && got[FORCE].n == 1);
	EXPECT(got[MORE].value.len == 13 && memcmp(got[MORE].value.at, "{\"x\":[1,\"}\"]}", 13) == 0);
	EXPECT_EQ(read_fields("{\"name\":\"a\",\"count\":null,\"when\":\"1970-01-01T00:00:01.5Z\"}", got), NOH_OK);
	EXPECT(!got[COUNT].given && got[COUNT].n == 7);
	EXPECT_EQ(got[WHEN].n, 1500);
	EXPECT_EQ(read_fields("{\"count\":-3,\"name\":\"12345\"}", got), NOH_OK);
	EXPECT_EQ(got[COUNT].n, -3);
}

static void a_wrong_field_is_named_with_what_it_must_be(void)
{
	noh_json_got got[FIELDS];

	WRONG("{}", "\"name\" is missing");
	WRONG("{\"name\":null}", "\"name\" must be a string, not null");
	WRONG("{\"name\":5}", "\"name\" must be a string, not 5");
	WRONG("{\"name\":\"\"}", "1 to 5 bytes, not 0");
	WRONG("{\"name\":\"123456\"}", "1 to 5 bytes, not 6");
	WRONG("{\"name\":\"a\",\"count\":10}", "from -3 to 9, not 10");
	WRONG("{\"name\":\"a\",\"count\":1.5}", "an integer of 64 bits, not 1.5");
	WRONG("{\"name\":\"a\",\"count\":\"1\"}", "an integer");
	WRONG("{\"name\":\"a\",\"force\":1}", "true or false");
	WRONG("{\"name\":\"a\",\"when\":\"tomorrow\"}", "a time like");
	WRONG("{\"name\":\"a\",\"more\":[]}", "an object");
	WRONG("{\"name\":\"a\",\"nam\":1}", "there is no field \"nam\" here, only: name, count");
	WRONG("[]", "a JSON object is expected");
	WRONG("{\"name\":", "not JSON");
	EXPECT(noh_json_read("{\"x\":1}", 7, NULL, 0, NULL) == NOH_EINVAL && strstr(noh_why(), "must be empty"));
}

static void members_and_items_are_walked_in_order(void)
{
	const char *text = "{\"a\":[1 , \"x\\\"]\" ,{\"b\":[]} , null],\"c\":-1}";
	noh_json whole, name, value, item;
	noh_json_walk walk = { NULL }, inner = { NULL };
	static const char *const items[] = { "1", "\"x\\\"]\"", "{\"b\":[]}", "null" };
	uint32_t n = 0;

	EXPECT_EQ(noh_json_check(text, strlen(text), &whole), NOH_OK);
	EXPECT(noh_json_next(whole, &walk, &name, &value) && noh_json_is(name, "a"));
	while (noh_json_next(value, &inner, NULL, &item) && n < 4) {
		EXPECT(item.len == strlen(items[n]) && memcmp(item.at, items[n], item.len) == 0);
		n++;
	}
	EXPECT_EQ(n, 4);
	EXPECT(noh_json_next(whole, &walk, &name, &value) && noh_json_is(name, "c") && !noh_json_is(name, "cc"));
	EXPECT(!noh_json_next(whole, &walk, &name, &value));
}

static void text_is_cut_at_a_whole_character(void)
{
	noh_json v = { "\"ab\xe2\x82\xac" "c\"", 8 };
	char text[5];

	EXPECT_EQ(noh_json_text(v, text, sizeof text), 6);
	EXPECT(strcmp(text, "ab") == 0);
}

static bool says(const char *json, const char *text)
{
	noh_json v;

	return noh_json_check(json, strlen(json), &v) == NOH_OK && noh_json_is(v, text);
}

static void a_string_is_what_it_says_however_it_is_written(void)
{
	EXPECT(says("\"\"", "") && says("\"incr\"", "incr") && says("\"\\u0069ncr\"", "incr"));
	EXPECT(says("\"\\u00e9\\ud83d\\ude00\"", "\xc3\xa9\xf0\x9f\x98\x80"));
	EXPECT(!says("\"inc\"", "incr") && !says("\"incr\"", "inc") && !says("\"\"", "i") && !says("\"i\"", ""));
	EXPECT(!says("\"\\u0000\"", "") && !says("\"i\\u0000\"", "i") && !says("\"\\u0000\"", "i"));
	EXPECT(!says("\"\\u00e9\"", "\xc3"));
	EXPECT(!says("1", "1") && !says("true", "rue"));
}

/* Every byte, at every place of a text of every length around eight. */
static void plain_bytes_are_told_from_others_at_every_place(void)
{
	bool right = true;

	for (size_t len = 1; len <= 20; len++)
		for (size_t place = 0; place < len; place++)
			for (unsigned c = 0; c < 256; c++) {
				bool plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
				char *text = malloc(len);

				memset(text, "a ~!#["[c % 6], len);
				text[place] = (char)c;
				right &= json_plain(text, len) == (plain ? len : place);
				free(text);
			}
	EXPECT(right);
}

/* ── times ── */

static bool time_of(const char *text, int64_t *ms)
{
	char quoted[80];

	sprintf(quoted, "\"%s\"", text);
	return noh_json_time((noh_json){ quoted, strlen(quoted) }, ms);
}

static void times_are_written_in_utc_with_milliseconds(void)
{
	char text[TIME_TEXT];

	EXPECT(json_time_text(0, text) && strcmp(text, "1970-01-01T00:00:00.000Z") == 0);
	EXPECT(json_time_text(INT64_C(1709210096789), text) && strcmp(text, "2024-02-29T12:34:56.789Z") == 0);
	EXPECT(json_time_text(-1, text) && strcmp(text, "1969-12-31T23:59:59.999Z") == 0);
	EXPECT(json_time_text(INT64_C(253402300799999), text) && strcmp(text, "9999-12-31T23:59:59.999Z") == 0);
	EXPECT(!json_time_text(INT64_C(253402300800000), text));
	EXPECT(!json_time_text(INT64_MAX, text));
	EXPECT(!json_time_text(INT64_MIN, text));
}

static void times_are_read_as_rfc_3339_has_them(void)
{
	int64_t ms = 0;
	char text[TIME_TEXT];

	EXPECT(time_of("2024-02-29T12:34:56.789Z", &ms) && ms == INT64_C(1709210096789));
	EXPECT(time_of("2024-02-29T14:04:56.7891234+01:30", &ms) && ms == INT64_C(1709210096789));
	EXPECT(time_of("2024-02-29t12:34:56z", &ms) && ms == INT64_C(1709210096000));
	EXPECT(time_of("2024-02-29 12:34:56-00:00", &ms) && ms == INT64_C(1709210096000));
	for (const char *const *bad = (const char *const[]){ "", "2024", "2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z",
		     "2024-00-01T00:00:00Z", "2024-01-32T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z",
		     "2024-01-01T00:00:00", "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00+1:00", "2024-01-01T00:00:00Zx",
		     "24-01-01T00:00:00Z", "2024-1-1T00:00:00Z", "+024-01-01T00:00:00Z", NULL }; *bad; bad++)
		if (time_of(*bad, &ms))
			test_failed(__FILE__, __LINE__, "%s is a time", *bad);
	uint64_t seed = test_seed;

	for (int i = 0; i < 20000; i++) {
		int64_t at = (int64_t)(test_random(&seed) % UINT64_C(253402300800000));

		if (!EXPECT(json_time_text(at, text) && time_of(text, &ms) && ms == at))
			break;
	}
}

/* ── writing ── */

static void what_is_written_is_json_again(void)
{
	char text[400];
	noh_json_out o = { .at = text, .room = sizeof text };
	noh_json v;
	const char *expected = "{\"a\":-9223372036854775808,\"b\":18446744073709551615,\"c\":[true,null,{}],"
			       "\"d\":\"q\\\"\\\\\\n\\u0000\\u007f\xc3\xa9\\ufffd\",\"e\":[1,2],\"f\":\"AQID/w==\",\"g\":null,"
			       "\"h\":\"1970-01-01T00:00:00.000Z\"}";

	noh_json_open(&o, NULL, '{');
	noh_json_put_int(&o, "a", INT64_MIN);
	noh_json_put_uint(&o, "b", UINT64_MAX);
	noh_json_open(&o, "c", '[');
	noh_json_put_bool(&o, NULL, true);
	noh_json_put_null(&o, NULL);
	noh_json_open(&o, NULL, '{');
	noh_json_close(&o, '}');
	noh_json_close(&o, ']');
	noh_json_put_text(&o, "d", "q\"\\\n\0\x7f\xc3\xa9\xff", 9);
	noh_json_put_raw(&o, "e", "[1,2]", 5);
	noh_json_put_base64(&o, "f", "\x01\x02\x03\xff", 4);
	noh_json_put_time(&o, "g", INT64_MAX);
	noh_json_put_time(&o, "h", 0);
	noh_json_close(&o, '}');
	EXPECT_EQ(o.len, strlen(expected));
	EXPECT(memcmp(text, expected, strlen(expected)) == 0);
	EXPECT_EQ(noh_json_check(text, o.len, &v), NOH_OK);
}

static void a_buffer_that_ends_is_counted_on(void)
{
	char text[8];
	noh_json_out o = { .at = text, .room = 4 };

	memset(text, '#', sizeof text);
	noh_json_put_text(&o, "name", "value", 5);
	EXPECT_EQ(o.len, 14);
	EXPECT(memcmp(text, "\"nam####", 8) == 0);
}

static void base64_is_padded(void)
{
	static const char *const expected[] = { "\"\"", "\"TQ==\"", "\"TWE=\"", "\"TWFu\"", "\"TWFuTQ==\"" };

	for (size_t n = 0; n <= 4; n++) {
		char text[16];
		noh_json_out o = { .at = text, .room = sizeof text };

		noh_json_put_base64(&o, NULL, "ManM", n);
		EXPECT(o.len == strlen(expected[n]) && memcmp(text, expected[n], o.len) == 0);
	}
}

/* Text of random pieces of JSON: what is taken can be walked to its end, and nothing beyond it is read. */
static void walk_all(noh_json v)
{
	noh_json_walk walk = { NULL };
	noh_json name, value;
	char text[64];

	while (noh_json_next(v, &walk, &name, &value)) {
		noh_json_type type = noh_json_type_of(value);

		if (type == NOH_JSON_OBJECT || type == NOH_JSON_ARRAY)
			walk_all(value);
		else if (type == NOH_JSON_STRING)
			(void)noh_json_text(value, text, sizeof text);
	}
}

static void whatever_is_taken_can_be_walked(void)
{
	static const char *const pieces[] = { "{", "}", "[", "]", ",", ":", "\"a\"", "\"b\\u00e9\"", "1", "-2.5e3", "true", "null",
					      " ", "\"\\\"", "\"]}\"", "{}", "[]", "\"k\":", "1]" };
	uint64_t seed = test_seed;
	uint32_t taken = 0;

	for (int i = 0; i < 300000; i++) {
		char text[256];
		size_t len = 0;
		noh_json v;

		for (uint64_t n = test_random(&seed) % 9 + 1; n; n--) {
			const char *p = pieces[test_random(&seed) % (sizeof pieces / sizeof pieces[0])];

			memcpy(text + len, p, strlen(p));
			len += strlen(p);
		}
		if (check(text, len) != NOH_OK)
			continue;
		taken++;
		(void)noh_json_check(text, len, &v);
		if (*v.at == '{' || *v.at == '[')
			walk_all(v);
	}
	EXPECT(taken > 1000);
}

TEST_MAIN(
	TEST(what_the_standard_allows_is_taken),
	TEST(what_is_not_json_is_refused_with_its_place),
	TEST(numbers_are_those_of_the_standard),
	TEST(strings_are_utf8_and_escapes_are_known),
	TEST(a_name_is_in_an_object_once_however_it_is_written),
	TEST(a_large_object_is_checked_for_names_without_squaring),
	TEST(without_memory_a_large_object_is_refused_as_that),
	TEST(depth_has_a_limit),
	TEST(integers_are_exact_to_the_last_bit_of_64),
	TEST(fields_are_read_with_their_types_ranges_and_presets),
	TEST(a_wrong_field_is_named_with_what_it_must_be),
	TEST(members_and_items_are_walked_in_order),
	TEST(text_is_cut_at_a_whole_character),
	TEST(a_string_is_what_it_says_however_it_is_written),
	TEST(plain_bytes_are_told_from_others_at_every_place),
	TEST(times_are_written_in_utc_with_milliseconds, "API-10"),
	TEST(times_are_read_as_rfc_3339_has_them, "API-10"),
	TEST(what_is_written_is_json_again),
	TEST(a_buffer_that_ends_is_counted_on),
	TEST(base64_is_padded),
	TEST(whatever_is_taken_can_be_walked))
