/* tests/bench/load_reply_test.c - replies are counted right wherever the bytes are cut. */
#include "bench/load_reply.h"

#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct whole { const char *bytes, *leaf; char type; unsigned leaves; };

static const struct whole corpus[] = {
	{ "+OK\r\n", "OK", '+', 1 },
	{ "-ERR no such thing\r\n", "ERR no such thing", '-', 1 },
	{ ":1234567\r\n", "1234567", ':', 1 },
	{ ":-5\r\n", "-5", ':', 1 },
	{ "$5\r\nhe\r\no\r\n", "he\r\no", '$', 1 },
	{ "$0\r\n\r\n", "", '$', 1 },
	{ "$-1\r\n", "", '$', 1 },
	{ "*-1\r\n", "", '*', 1 },
	{ "*0\r\n", "", '*', 1 },
	{ "*2\r\n:77\r\n:12\r\n", "77", '*', 2 },
	{ "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$4\r\n:1\r\n\r\n", "message", '*', 3 },
	{ "*2\r\n*2\r\n+a\r\n*1\r\n:1\r\n*0\r\n", "a", '*', 3 },
	{ "*1\r\n-WRONG inside\r\n", "WRONG inside", '*', 1 },
	{ "_\r\n", "", '_', 1 },
	{ "#t\r\n", "t", '#', 1 },
	{ ",1.5\r\n", "1.5", ',', 1 },
	{ "(12345678901234567890123\r\n", "12345678901234567890123", '(', 1 },
	{ "%1\r\n+k\r\n:1\r\n", "k", '%', 2 },
	{ "~2\r\n:1\r\n:2\r\n", "1", '~', 2 },
	{ ">2\r\n+a\r\n+b\r\n", "a", '>', 2 },
	{ "=7\r\ntxt:abc\r\n", "txt:abc", '=', 1 },
};
enum { CORPUS = sizeof corpus / sizeof corpus[0] };

static char stream[4096];
static size_t stream_len;

static void make_stream(void)
{
	stream_len = 0;
	for (unsigned i = 0; i < CORPUS; i++) {
		size_t n = strlen(corpus[i].bytes);

		memcpy(stream + stream_len, corpus[i].bytes, n);
		stream_len += n;
	}
}

/* Feeds a piece from memory of its own size, so that a sanitizer sees any byte read beyond it. */
static unsigned feed(struct reply *r, const char *bytes, size_t n, unsigned done)
{
	uint8_t *copy = malloc(n + (n == 0));

	memcpy(copy, bytes, n);
	const uint8_t *at = copy, *end = copy + n;
	while (at < end) {
		enum reply_state state = reply_next(r, &at, end);

		if (state != REPLY_DONE) {
			EXPECT(state == REPLY_MORE);
			EXPECT(at == end);
			break;
		}
		if (!EXPECT(done < CORPUS))
			break;
		EXPECT_EQ(r->type, corpus[done].type);
		EXPECT_EQ(r->leaves, corpus[done].leaves);
		EXPECT_EQ(r->leaf_len, strlen(corpus[done].leaf));
		EXPECT(strcmp(r->leaf, corpus[done].leaf) == 0);
		done++;
	}
	free(copy);
	return done;
}

static void every_pair_of_cuts_gives_the_same_replies(void)
{
	make_stream();
	for (size_t a = 0; a <= stream_len; a++)
		for (size_t b = a; b <= stream_len; b += 1 + (b - a) / 8) {
			struct reply r;

			reply_reset(&r);
			unsigned done = feed(&r, stream, a, 0);
			done = feed(&r, stream + a, b - a, done);
			done = feed(&r, stream + b, stream_len - b, done);
			EXPECT_EQ(done, CORPUS);
			EXPECT(reply_between(&r));
		}
}

static void byte_by_byte_gives_the_same_replies(void)
{
	struct reply r;
	unsigned done = 0;

	make_stream();
	reply_reset(&r);
	for (size_t i = 0; i < stream_len; i++)
		done = feed(&r, stream + i, 1, done);
	EXPECT_EQ(done, CORPUS);
}

static void a_long_text_is_cut_and_not_lost_count_of(void)
{
	struct reply r;
	char big[6000];
	const uint8_t *at = (const uint8_t *)big;
	size_t n = (size_t)snprintf(big, sizeof big, "$5000\r\n");

	memset(big + n, '\n', 5000);
	memcpy(big + n + 5000, "\r\n", 2);
	reply_reset(&r);
	EXPECT_EQ(reply_next(&r, &at, at + n + 5002), REPLY_DONE);
	EXPECT_EQ(r.leaf_len, REPLY_LEAF);
	EXPECT(at == (const uint8_t *)big + n + 5002);
}

static void what_is_no_resp_is_refused(void)
{
	static const char *const bad[] = { "HTTP/1.1 400\r\n", "$x\r\n", "*1x\r\n", "$\r\n", "*99999999999999999999\r\n",
					   "\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n" };

	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct reply r;
		const uint8_t *at = (const uint8_t *)bad[i];

		reply_reset(&r);
		EXPECT_EQ(reply_next(&r, &at, at + strlen(bad[i])), REPLY_BROKEN);
	}
}

/* The shortcut against the reader: the same count for any numbers and any cut. */
static void integers_at_once_are_as_many_as_one_by_one(void)
{
	uint64_t random = test_seed;

	for (unsigned round = 0; round < 300; round++) {
		char text[2048];
		size_t n = 0;

		for (unsigned i = 0; i < 60; i++)
			n += (size_t)sprintf(text + n, ":%llu\r\n",
					     (unsigned long long)test_random(&random) >> test_random(&random) % 63);
		for (size_t cut = 0; cut <= n; cut += 1 + test_random(&random) % 13) {
			uint8_t *copy = malloc(cut + 1);
			uint32_t want = 0;

			memcpy(copy, text, cut);
			for (size_t i = 0; i < cut; i++)
				want += copy[i] == '\n';
			const uint8_t *at = copy;
			EXPECT_EQ(reply_integers(&at, copy + cut), want);
			EXPECT(want == 0 ? at == copy : at[-1] == '\n');
			free(copy);
		}
	}
}

static void anything_else_between_integers_is_left_to_the_reader(void)
{
	static const char *const others[] = { ":1\r\n-ERR\r\n:2\r\n", ":1\r\n+OK\r\n", "$1\r\n1\r\n", ":1\r\n:-2\r\n",
					      ":1\r\n*1\r\n:2\r\n", ":1\r\n1\r\n", ":1\r\n\r\n", "+1\r\n:1\r\n" };

	for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
		const uint8_t *at = (const uint8_t *)others[i], *from = at;

		EXPECT_EQ(reply_integers(&at, at + strlen(others[i])), 0);
		EXPECT(at == from);
	}
}

TEST_MAIN(
	TEST(every_pair_of_cuts_gives_the_same_replies),
	TEST(byte_by_byte_gives_the_same_replies),
	TEST(a_long_text_is_cut_and_not_lost_count_of),
	TEST(what_is_no_resp_is_refused),
	TEST(integers_at_once_are_as_many_as_one_by_one),
	TEST(anything_else_between_integers_is_left_to_the_reader))
