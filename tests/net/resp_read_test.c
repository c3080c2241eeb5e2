/* tests/net/resp_read_test.c - bytes cut into commands: whole, in pieces, hostile. */
#include "net/resp_read.h"

#include "core/mem.h"
#include "tests/lib/test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct resp_limits usual = { .args = 65536, .arg_bytes = 1 << 20, .command_bytes = 16 << 20,
					  .inline_bytes = 65536 };

/* What a client's bytes came out as: "[GET|k]" for a command, "()" for nothing, "!why" for an end. */
struct log {
	char   text[1 << 16];
	size_t len;
};

static void note(struct log *l, const char *bytes, size_t len)
{
	if (EXPECT(l->len + len < sizeof l->text)) {
		memcpy(l->text + l->len, bytes, len);
		l->len += len;
	}
	l->text[l->len] = 0;
}

static bool take(struct log *l, struct resp_reader *r, char *bytes, enum resp_result result)
{
	if (result == RESP_BAD) {
		note(l, "!", 1);
		note(l, r->why, strlen(r->why));
		return false;
	}
	note(l, result == RESP_COMMAND ? "[" : "(", 1);
	for (uint32_t i = 0; result == RESP_COMMAND && i < r->argc; i++) {
		struct arg a = resp_arg(r, bytes, i);

		if (i)
			note(l, "|", 1);
		note(l, a.at, a.len);
	}
	note(l, result == RESP_COMMAND ? "]" : ")", 1);
	return true;
}

/* Feed `len` bytes in pieces that end at the given cuts. Each piece is read from a buffer of its own that is
 * exactly as long as what has not been taken yet: the sanitizer sees a byte too far, and places that are
 * not offsets. */
static void feed(struct log *l, const char *bytes, size_t len, const size_t *cuts, size_t cut_count,
		 const struct resp_limits *limits)
{
	struct resp_reader r;
	size_t taken = 0;

	l->len = 0;
	l->text[0] = 0;
	resp_open(&r);
	char *held = NULL;
	size_t held_len = 0;

	for (size_t i = 0; i <= cut_count; i++) {
		size_t until = i < cut_count ? cuts[i] : len;
		size_t fresh = until - taken - held_len;
		char *now = malloc(held_len + fresh + !(held_len + fresh));

		if (held_len)
			memcpy(now, held, held_len);
		memcpy(now + held_len, bytes + taken + held_len, fresh);
		free(held);
		held = now;
		held_len += fresh;
		for (;;) {
			enum resp_result result = resp_read(&r, held, held_len, limits);

			if (result == RESP_MORE)
				break;
			if (!take(l, &r, held, result)) {
				free(held);
				resp_close(&r);
				return;
			}
			size_t took = resp_next(&r);

			EXPECT(took > 0 && took <= held_len);
			taken += took;
			held_len -= took;
			char *rest = malloc(held_len + !held_len);

			memcpy(rest, held + took, held_len);
			free(held);
			held = rest;
		}
	}
	if (held_len)
		note(l, "...", 3);
	free(held);
	resp_close(&r);
}

static struct log whole, pieces;

static bool reads_as(const char *bytes, size_t len, const char *expected, const struct resp_limits *limits)
{
	feed(&whole, bytes, len, NULL, 0, limits);
	if (EXPECT(whole.len == strlen(expected) && memcmp(whole.text, expected, whole.len) == 0))
		return true;
	printf("   %s\nread as %s\nand not %s\n", bytes, whole.text, expected);
	return false;
}

#define READS(bytes, expected) reads_as(bytes, sizeof bytes - 1, expected, &usual)

static void arrays_of_bulk_strings_are_commands(void)
{
	READS("*1\r\n$4\r\nPING\r\n", "[PING]");
	READS("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n42\r\n", "[SET|k|42]");
	READS("*2\r\n$3\r\nGET\r\n$0\r\n\r\n", "[GET|]");
	READS("*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n", "[PING][QUIT]");
	READS("*2\r\n$4\r\nECHO\r\n$6\r\na\r\n$1b\r\n", "[ECHO|a\r\n$1b]");
	READS("*0\r\n*-1\r\n*-7\r\n*1\r\n$4\r\nPING\r\n", "()()()[PING]");
}

static void lines_are_commands_with_quotes_resolved(void)
{
	READS("PING\r\n", "[PING]");
	READS("PING\n", "[PING]");
	READS("  set  k\t42 \r\nget k\r\n", "[set|k|42][get|k]");
	READS("\r\n\n  \r\nPING\r\n", "()()()[PING]");
	READS("set k \"a b\"\r\n", "[set|k|a b]");
	READS("set k 'a b'\r\n", "[set|k|a b]");
	READS("set k \"\\x41\\x4a\\x4Az\\n\\r\\t\\b\\a\\\\\\\"\\q\"\r\n", "[set|k|AJJz\n\r\t\b\a\\\"q]");
	READS("set k 'it\\'s \\n'\r\n", "[set|k|it's \\n]");
	READS("set \"\" ''\r\n", "[set||]");
	READS("set ab\"cd e\" x\r\n", "[set|abcd e|x]");
	READS("set k \"\\xZZ\"\r\n", "[set|k|xZZ]");
}

static void quotes_must_close_and_end_their_word(void)
{
	const char *why = "!Protocol error: unbalanced quotes in request";

	READS("set k \"a b\r\n", why);
	READS("set k 'a b\r\n", why);
	READS("set k \"a\"b\r\n", why);
	READS("set k 'a'b\r\n", why);
	READS("set k \"a\\\"\r\n", why);
	READS("set k \"\\\r\n", why);
	READS("\"\r\n", why);
}

static void what_is_no_protocol_says_so_in_the_words_of_redis(void)
{
	const char *count = "!Protocol error: invalid multibulk length", *bulk = "!Protocol error: invalid bulk length";

	READS("*x\r\n", count);
	READS("*\r\n", count);
	READS("*+1\r\n", count);
	READS("*01\r\n", count);
	READS("*-0\r\n", count);
	READS("*-\r\n", count);
	READS("* 1\r\n", count);
	READS("*1 \r\n", count);
	READS("*1\n", count);
	READS("*1\rx", count);
	READS("*65537\r\n", count);
	READS("*4294967295\r\n", count);
	READS("*4294967297\r\n", count);
	READS("*99999999999999999999999999\r\n", count);
	READS("*18446744073709551617\r\n", count);
	READS("*1\r\n$-1\r\n", bulk);
	READS("*1\r\n$x\r\n", bulk);
	READS("*1\r\n$+4\r\nPING\r\n", bulk);
	READS("*1\r\n$04\r\nPING\r\n", bulk);
	READS("*1\r\n$1048577\r\n", bulk);
	READS("*1\r\n$9999999999\r\n", bulk);
	READS("*1\r\n$4294967300\r\nPING\r\n", bulk);
	READS("*1\r\n$18446744073709551620\r\nPING\r\n", bulk);
	READS("*1\r\n:4\r\n", "!Protocol error: expected '$', got ':'");
	READS("*1\r\n\001", "!Protocol error: expected '$', got '?'");
	READS("*1\r\n*1\r\n$4\r\nPING\r\n", "!Protocol error: expected '$', got '*'");
	READS("*1\r\n$4\r\nPINGxx", "!Protocol error: expected CRLF after the bulk string");
	READS("*1\r\n$4\r\nPING\rx", "!Protocol error: expected CRLF after the bulk string");
}

static void every_split_gives_the_same_commands(void)
{
	static const char *const corpus[] = {
		"*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$5\r\nk\r\n\r\n\r\n$2\r\n42\r\nPING\r\n",
		"*2\r\n$6\r\nINCRBY\r\n$12\r\nkey:00000001\r\n*0\r\n*-1\r\n\r\nget k\r\n",
		"set k \"a \\x41\\\"b\" 'it\\'s'\r\n*2\r\n$3\r\nGET\r\n$0\r\n\r\n\n\r\n  ping \r\n",
		("*18\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n$1\r\ng\r\n$1\r\nh\r\n$1\r\ni\r\n"
		"$1\r\nj\r\n$1\r\nk\r\n$1\r\nl\r\n$1\r\nm\r\n$1\r\nn\r\n$1\r\no\r\n$1\r\np\r\n$1\r\nq\r\n$2\r\nrr\r\nPING\r\n"),
		"PING\r\n*1\r\n$4\r\nPINGxx", "PING\r\n*3\r\n$-1\r\n", "*1000000000000\r\n", "PING \"\r\n", "*1\r\n+OK\r\n",
		"*1\r\n$4\r\nPI", "PING\r\nPIN", "*", "*1\r\n$10000000000\r\n",
	};

	for (size_t c = 0; c < sizeof corpus / sizeof corpus[0]; c++) {
		size_t len = strlen(corpus[c]), all[512];

		feed(&whole, corpus[c], len, NULL, 0, &usual);
		for (size_t i = 0; i <= len; i++) {
			for (size_t j = i; j <= len; j++) {
				feed(&pieces, corpus[c], len, (size_t[]){ i, j }, 2, &usual);
				if (!EXPECT(pieces.len == whole.len && memcmp(pieces.text, whole.text, whole.len) == 0)) {
					printf("   cut at %zu and %zu: %s\nread as %s\nand not %s\n", i, j, corpus[c],
					       pieces.text, whole.text);
					return;
				}
			}
			all[i] = i;
		}
		feed(&pieces, corpus[c], len, all, len, &usual);         /* a byte at a time */
		EXPECT(pieces.len == whole.len && memcmp(pieces.text, whole.text, whole.len) == 0);
	}
}

static void every_limit_is_exact(void)
{
	struct resp_limits small = { .args = 3, .arg_bytes = 4, .command_bytes = 40, .inline_bytes = 10 };
#define SMALL(bytes, expected) reads_as(bytes, sizeof bytes - 1, expected, &small)

	SMALL("*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n", "[a|b|c]");
	SMALL("*4\r\n", "!Protocol error: invalid multibulk length");
	SMALL("*1\r\n$4\r\nabcd\r\n", "[abcd]");
	SMALL("*1\r\n$5\r\n", "!Protocol error: invalid bulk length");
	SMALL("*3\r\n$4\r\nabcd\r\n$4\r\nabcd\r\n$4\r\nabcd\r\n", "[abcd|abcd|abcd]");       /* 34 bytes */
	small.command_bytes = 34;
	SMALL("*3\r\n$4\r\nabcd\r\n$4\r\nabcd\r\n$4\r\nabcd\r\n", "[abcd|abcd|abcd]");
	small.command_bytes = 33;
	SMALL("*3\r\n$4\r\nabcd\r\n$4\r\nabcd\r\n$4\r\n", "!Protocol error: too big command");
	SMALL("abc abc ab\r\n", "[abc|abc|ab]");
	SMALL("abc abc ab\n", "[abc|abc|ab]");
	SMALL("abc abc abc\n", "!Protocol error: too big inline request");
	SMALL("abc abc abc\r\n", "!Protocol error: too big inline request");
	SMALL("abc abc ab", "...");
	SMALL("abc abc abcd", "!Protocol error: too big inline request");
	SMALL("a b c d\r\n", "!Protocol error: too many arguments in inline request");
	SMALL("abcde\r\n", "!Protocol error: too big argument in inline request");
	small = (struct resp_limits){ UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX };
	SMALL("*2\r\n$4294967290\r\n", "!Protocol error: too big command");
	SMALL("*2\r\n$4294967295\r\n", "!Protocol error: too big command");
	SMALL("*4294967295\r\n$1\r\na\r\n", "...");
	SMALL("PING\r\n", "[PING]");
}

static void nothing_is_allocated_by_what_is_announced(void)
{
	struct resp_limits wide = { .args = UINT32_MAX, .arg_bytes = 1u << 30, .command_bytes = UINT32_MAX,
				    .inline_bytes = 1 };
	char bytes[] = "*4294967295\r\n$1\r\na\r\n$1000000000\r\nabc";
	struct resp_reader r;

	resp_open(&r);
	mem_fail_at(0, 0);
	EXPECT_EQ(resp_read(&r, bytes, sizeof bytes - 1, &wide), RESP_MORE);
	EXPECT_EQ(mem_fail_at(0, 0), 0);
	EXPECT_EQ(r.argc, 1);
	resp_close(&r);
}

/* A command of n arguments "1", in memory that the caller frees. */
static char *many(uint32_t n, size_t *len)
{
	char *bytes = malloc(32 + (size_t)n * 7);

	*len = (size_t)sprintf(bytes, "*%u\r\n", n);
	for (uint32_t i = 0; i < n; i++, *len += 7)
		memcpy(bytes + *len, "$1\r\n1\r\n", 7);
	return bytes;
}

static void many_arguments_take_memory_and_give_it_back(void)
{
	size_t len;
	char *bytes = many(5000, &len);
	struct resp_reader r;

	resp_open(&r);
	EXPECT_EQ(resp_read(&r, bytes, len, &usual), RESP_COMMAND);
	EXPECT_EQ(r.argc, 5000);
	for (uint32_t i = 0; i < r.argc; i++) {
		struct arg a = resp_arg(&r, bytes, i);

		EXPECT(a.len == 1 && *a.at == '1');
	}
	EXPECT_EQ(resp_next(&r), len);
	EXPECT(r.places == r.inside && r.room == RESP_ARGS_INSIDE);
	free(bytes);
	bytes = many(100, &len);
	EXPECT_EQ(resp_read(&r, bytes, len, &usual), RESP_COMMAND);
	EXPECT_EQ(resp_next(&r), len);
	mem_fail_at(0, 0);
	EXPECT_EQ(resp_read(&r, bytes, len, &usual), RESP_COMMAND);     /* the room is kept */
	EXPECT_EQ(mem_fail_at(0, 0), 0);
	resp_close(&r);
	free(bytes);
}

static void without_memory_the_client_is_told(void)
{
	size_t len;
	char *bytes = many(5000, &len);
	struct resp_reader r;

	for (uint64_t nth = 1; nth <= 3; nth++) {
		resp_open(&r);
		mem_fail_at(nth, 0);
		EXPECT_EQ(resp_read(&r, bytes, len, &usual), RESP_BAD);
		EXPECT(strstr(r.why, "memory"));
		mem_fail_at(0, 0);
		resp_close(&r);
	}
	free(bytes);
}

static void what_was_seen_is_not_looked_at_again(void)
{
	char line[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", bulk[] = "*2\r\n$2\r\nab\r\n$9\r\nabc";
	struct resp_reader r;

	resp_open(&r);
	EXPECT_EQ(resp_read(&r, line, 20, &usual), RESP_MORE);
	memset(line, '\n', 20);                       /* it would stumble over these */
	EXPECT_EQ(resp_read(&r, line, 40, &usual), RESP_MORE);
	EXPECT_EQ(r.at, 40);
	resp_close(&r);
	resp_open(&r);
	EXPECT_EQ(resp_read(&r, bulk, sizeof bulk - 1, &usual), RESP_MORE);
	memset(bulk, '!', sizeof bulk - 1);
	EXPECT_EQ(resp_read(&r, bulk, sizeof bulk - 1, &usual), RESP_MORE);
	EXPECT_EQ(r.argc, 1);
	resp_close(&r);
}

static void random_bytes_never_confuse_it(void)
{
	static const char alphabet[] = "*$\r\n\r\n\r\n0123456789-+ '\"\\xaGET";
	uint64_t random = test_seed;

	for (int round = 0; round < 3000; round++) {
		char bytes[64];
		size_t len = test_random(&random) % sizeof bytes, cuts[2];

		for (size_t i = 0; i < len; i++)
			bytes[i] = alphabet[test_random(&random) % (sizeof alphabet - 1)];
		feed(&whole, bytes, len, NULL, 0, &usual);
		cuts[0] = test_random(&random) % (len + 1);
		cuts[1] = cuts[0] + test_random(&random) % (len - cuts[0] + 1);
		feed(&pieces, bytes, len, cuts, 2, &usual);
		EXPECT(pieces.len == whole.len && memcmp(pieces.text, whole.text, whole.len) == 0);
	}
}

TEST_MAIN(
	TEST(arrays_of_bulk_strings_are_commands),
	TEST(lines_are_commands_with_quotes_resolved),
	TEST(quotes_must_close_and_end_their_word),
	TEST(what_is_no_protocol_says_so_in_the_words_of_redis, "P11"),
	TEST(every_split_gives_the_same_commands),
	TEST(every_limit_is_exact, "P11"),
	TEST(nothing_is_allocated_by_what_is_announced, "P11"),
	TEST(many_arguments_take_memory_and_give_it_back),
	TEST(without_memory_the_client_is_told, "P11"),
	TEST(what_was_seen_is_not_looked_at_again),
	TEST(random_bytes_never_confuse_it))
