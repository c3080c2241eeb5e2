/* tests/core/glob_test.c - patterns as Redis writes them, and those that are meant to hurt. */
#include "core/glob.h"
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool matches(const char *pattern, const char *text)
{
	return glob_match(pattern, strlen(pattern), text, strlen(text));
}

static bool matches_any_case(const char *pattern, const char *text)
{
	return glob_match_any_case(pattern, strlen(pattern), text, strlen(text));
}

static void plain_bytes_match_themselves_and_nothing_else(void)
{
	EXPECT(matches("", ""));
	EXPECT(matches("user:1", "user:1"));
	EXPECT(!matches("user:1", "user:12"));
	EXPECT(!matches("user:12", "user:1"));
	EXPECT(!matches("user:1", "User:1"));
	EXPECT(!matches("", "a"));
	EXPECT(glob_match("a\0b", 3, "a\0b", 3));
	EXPECT(!glob_match("a\0b", 3, "a\0c", 3));
}

static void a_star_takes_any_bytes_and_a_question_mark_one(void)
{
	EXPECT(matches("*", ""));
	EXPECT(matches("**", "abc"));
	EXPECT(matches("user:*", "user:"));
	EXPECT(matches("user:*:name", "user:1:2:name"));
	EXPECT(!matches("user:*:name", "user:1:name:x"));
	EXPECT(matches("*ab*ab*", "abxab"));
	EXPECT(!matches("*ab*ab*", "abxa"));
	EXPECT(matches("*aab", "aaab"));
	EXPECT(matches("h?llo", "hello"));
	EXPECT(!matches("h?llo", "hllo"));
	EXPECT(matches("?*?", "ab"));
	EXPECT(!matches("?*?", "a"));
}

static void a_set_takes_one_of_its_bytes(void)
{
	EXPECT(matches("h[ae]llo", "hallo"));
	EXPECT(!matches("h[ae]llo", "hillo"));
	EXPECT(matches("h[^e]llo", "hallo"));
	EXPECT(!matches("h[^e]llo", "hello"));
	EXPECT(matches("k[a-c0-9]", "kb"));
	EXPECT(matches("k[a-c0-9]", "k7"));
	EXPECT(!matches("k[a-c0-9]", "kd"));
	EXPECT(matches("k[c-a]", "kb"));                 /* backwards is the same */
	EXPECT(matches("k[^a-c]*", "kxyz"));
	EXPECT(!matches("k[a]", "k"));
	EXPECT(matches("[-a]", "-"));
	EXPECT(matches("[a-]", "_"));                    /* as in Redis: from a to the bracket, and not closed */
	EXPECT(matches("[\\]]", "]"));
	EXPECT(matches("[\\a-z]", "-"));                 /* no range begins with an escape */
	EXPECT(!matches("[\\a-z]", "m"));
}

static void a_backslash_takes_the_meaning_away(void)
{
	EXPECT(matches("a\\*b", "a*b"));
	EXPECT(!matches("a\\*b", "axb"));
	EXPECT(matches("\\?\\[\\\\", "?[\\"));
	EXPECT(matches("a\\", "a\\"));                   /* at the end it is itself */
	EXPECT(matches("*\\*", "ab*"));
}

static void what_is_not_closed_ends_with_the_pattern(void)
{
	EXPECT(matches("a[bc", "ac"));
	EXPECT(!matches("a[bc", "ad"));
	EXPECT(!matches("a[", "a["));
	EXPECT(!matches("a[", "a"));
	EXPECT(matches("a[^", "ax"));
	EXPECT(!matches("[]x", "x"));                    /* an empty set takes nothing */
}

static void letters_may_be_one_with_their_capitals(void)
{
	EXPECT(matches_any_case("MaxMemory*", "maxmemory-policy"));
	EXPECT(matches_any_case("[A-C]x", "bX"));
	EXPECT(!matches_any_case("[^a]", "A"));
	EXPECT(!matches_any_case("@", "`"));
}

static void the_plain_beginning_is_known(void)
{
	EXPECT_EQ(glob_plain("user:*", 6), 5);
	EXPECT_EQ(glob_plain("user", 4), 4);
	EXPECT_EQ(glob_plain("*", 1), 0);
	EXPECT_EQ(glob_plain("a\\b", 3), 1);
	EXPECT_EQ(glob_plain("", 0), 0);
}

/* Every star tried anew would take until the end of time here. RELIABILITY 101. */
static void a_hostile_pattern_is_no_slower_than_its_length(void)
{
	enum { TEXT = 20000, STARS = 2000 };
	char *text = malloc(TEXT), *pattern = malloc(2 * STARS + 1);
	struct timespec from, to;

	memset(text, 'a', TEXT);
	for (int i = 0; i < STARS; i++)
		memcpy(pattern + 2 * i, "a*", 2);
	pattern[2 * STARS] = 'b';
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	EXPECT(!matches("a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
	EXPECT(!glob_match(pattern, 2 * STARS + 1, text, TEXT));
	text[TEXT - 1] = 'b';
	EXPECT(glob_match(pattern, 2 * STARS + 1, text, TEXT));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	EXPECT(to.tv_sec - from.tv_sec < 5);
	free(text);
	free(pattern);
}

/* What it should be, the slow way: each star tries everything. */
static bool slowly(const char *p, const char *t)
{
	if (*p == '*')
		return slowly(p + 1, t) || (*t && slowly(p, t + 1));
	if (!*p)
		return !*t;
	return *t && (*p == '?' || *p == *t) && slowly(p + 1, t + 1);
}

static void it_agrees_with_trying_everything(void)
{
	uint64_t rng = test_seed;

	for (int i = 0; i < 200000; i++) {
		char pattern[9], text[9];
		uint64_t dice = test_random(&rng);
		size_t plen = dice % 8, tlen = dice / 8 % 8;

		for (size_t n = 0; n < plen; n++)
			pattern[n] = "ab*?"[dice >> (8 + 2 * n) & 3];
		for (size_t n = 0; n < tlen; n++)
			text[n] = "ab"[dice >> (32 + n) & 1];
		pattern[plen] = text[tlen] = 0;
		if (matches(pattern, text) != slowly(pattern, text)) {
			test_failed(__FILE__, __LINE__, "\"%s\" and \"%s\"", pattern, text);
			return;
		}
	}
}

TEST_MAIN(
	TEST(plain_bytes_match_themselves_and_nothing_else),
	TEST(a_star_takes_any_bytes_and_a_question_mark_one),
	TEST(a_set_takes_one_of_its_bytes),
	TEST(a_backslash_takes_the_meaning_away),
	TEST(what_is_not_closed_ends_with_the_pattern),
	TEST(letters_may_be_one_with_their_capitals),
	TEST(the_plain_beginning_is_known),
	TEST(a_hostile_pattern_is_no_slower_than_its_length),
	TEST(it_agrees_with_trying_everything))
