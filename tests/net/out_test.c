/* tests/net/out_test.c - replies in both protocols, byte by byte. */
#include "net/out.h"

#include "core/mem.h"
#include "tests/lib/test.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct out o;

static void speaks(uint8_t proto)
{
	out_close(&o);
	o = (struct out){ .proto = proto };
}

static bool wrote(const char *expected)
{
	bool same = o.len == strlen(expected) && memcmp(o.bytes, expected, o.len) == 0;

	if (!EXPECT(same))
		printf("   wrote %.*s\n", (int)o.len, o.bytes);
	o.len = 0;
	return same;
}

static void numbers_are_exact(void)
{
	static const int64_t edges[] = { 0, 9, 10, 99, 100, 999, 1000, 9999, 10000, 99999, 100000, 12345678,
					 INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1 };
	char text[64];
	uint64_t random = test_seed;

	speaks(2);
	for (size_t i = 0; i < 2000; i++) {
		int64_t n = i < sizeof edges / sizeof edges[0] ? edges[i] :
			    (int64_t)(test_random(&random) >> test_random(&random) % 64);

		for (int sign = 0; sign < 2; sign++, n = (int64_t)(0 - (uint64_t)n)) {
			snprintf(text, sizeof text, ":%" PRId64 "\r\n", n);
			out_int(&o, n);
			wrote(text);
			int len = snprintf(text, sizeof text, "%" PRId64, n);
			char bulk[96];

			snprintf(bulk, sizeof bulk, "$%d\r\n%s\r\n", len, text);
			out_bulk_int(&o, n);
			wrote(bulk);
		}
	}
}

static void each_kind_of_reply_in_resp2(void)
{
	speaks(2);
	out_simple(&o, "OK"), wrote("+OK\r\n");
	out_bulk(&o, "a\r\nb", 4), wrote("$4\r\na\r\nb\r\n");
	out_bulk(&o, NULL, 0), wrote("$0\r\n\r\n");
	out_text(&o, "text"), wrote("$4\r\ntext\r\n");
	out_nil(&o), wrote("$-1\r\n");
	out_array(&o, 0), wrote("*0\r\n");
	out_map(&o, 3), wrote("*6\r\n");
	out_set(&o, 3), wrote("*3\r\n");
	out_push(&o, 3), wrote("*3\r\n");
	out_bool(&o, true), wrote(":1\r\n");
	out_bool(&o, false), wrote(":0\r\n");
	out_double(&o, 1.5), wrote("$3\r\n1.5\r\n");
	out_verbatim(&o, "hey", 3), wrote("$3\r\nhey\r\n");
	speaks(2);
}

static void each_kind_of_reply_in_resp3(void)
{
	speaks(3);
	out_nil(&o), wrote("_\r\n");
	out_array(&o, 2), wrote("*2\r\n");
	out_map(&o, 3), wrote("%3\r\n");
	out_set(&o, 3), wrote("~3\r\n");
	out_push(&o, 3), wrote(">3\r\n");
	out_bool(&o, true), wrote("#t\r\n");
	out_bool(&o, false), wrote("#f\r\n");
	out_double(&o, 1.5), wrote(",1.5\r\n");
	out_double(&o, INFINITY), wrote(",inf\r\n");
	out_double(&o, -INFINITY), wrote(",-inf\r\n");
	out_double(&o, NAN), wrote(",nan\r\n");
	out_verbatim(&o, "hey", 3), wrote("=7\r\ntxt:hey\r\n");
	speaks(2);
}

static void an_error_is_one_line(void)
{
	char text[2000], expected[OUT_ERROR_MAX + 8];

	speaks(2);
	out_error(&o, "no such %s", "thing"), wrote("-ERR no such thing\r\n");
	out_error(&o, "-NOAUTH Authentication required."), wrote("-NOAUTH Authentication required.\r\n");
	out_error(&o, "a%sb", "\r\n+OK\r\n"), wrote("-ERR a  +OK  b\r\n");
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = 0;
	out_error(&o, "%s", text);
	snprintf(expected, sizeof expected, "-ERR %.*s\r\n", OUT_ERROR_MAX - 6, text);
	wrote(expected);
	speaks(2);
}

static void it_grows_as_needed(void)
{
	char text[1000];

	speaks(2);
	memset(text, 'x', sizeof text);
	for (int i = 0; i < 100; i++)
		out_bulk(&o, text, sizeof text);
	EXPECT_EQ(o.len, 100 * (7 + 1000 + 2));
	EXPECT(memcmp(o.bytes + 99 * 1009, "$1000\r\nxxx", 10) == 0);
	EXPECT(!o.failed);
	speaks(2);
}

static void without_memory_it_fails_once_and_for_all(void)
{
	speaks(2);
	out_int(&o, 1);
	size_t len = o.len;

	mem_fail_at(1, 0);
	EXPECT(!out_room(&o, 1 << 20));
	mem_fail_at(0, 0);
	EXPECT(o.failed);
	out_int(&o, 2);                                  /* would fit, but half a reply is worse than none */
	EXPECT_EQ(o.len, len);
	EXPECT(!out_room(&o, SIZE_MAX));
	speaks(2);
	EXPECT(!out_room(&o, SIZE_MAX - 10));
	EXPECT(o.failed);
	speaks(2);
}

TEST_MAIN(
	TEST(numbers_are_exact),
	TEST(each_kind_of_reply_in_resp2),
	TEST(each_kind_of_reply_in_resp3),
	TEST(an_error_is_one_line, "P11"),
	TEST(it_grows_as_needed),
	TEST(without_memory_it_fails_once_and_for_all, "P11"))
