/* tests/core/address_test.c - "type:id" taken apart, and what is no address. */
#include "core/address.h"

#include "noh.h"
#include "tests/lib/test.h"

#include <string.h>

static bool splits(const char *text, const char *type, const char *id)
{
	struct address a;

	return EXPECT_EQ(address_parse(&a, text, strlen(text)), NOH_OK) &&
	       EXPECT_EQ(a.type_len, strlen(type)) && EXPECT_EQ(a.id_len, strlen(id)) &&
	       EXPECT(memcmp(a.type, type, a.type_len) == 0) && EXPECT(memcmp(a.id, id, a.id_len) == 0);
}

static int parse(const char *text, size_t len)
{
	struct address a;

	return address_parse(&a, text, len);
}

static void the_example_addresses_are_accepted(void)
{
	splits("npc-brain:character-123", "npc-brain", "character-123");
	splits("npc-brain:character-abc123", "npc-brain", "character-abc123");
	splits("daily-cleanup:global", "daily-cleanup", "global");
	splits("chat-agent:session-xyz789", "chat-agent", "session-xyz789");
	splits("game-session:match-456", "game-session", "match-456");
}

static void an_address_is_split_at_the_first_colon(void)
{
	splits("a:b:c", "a", "b:c");
	splits("a::", "a", ":");
	splits("a:b/c", "a", "b/c");
	splits("a:/", "a", "/");
}

static void a_slash_may_stand_for_the_colon(void)
{
	splits("instance/42", "instance", "42");
	splits("volume_attachment/7", "volume_attachment", "7");
	splits("route/r", "route", "r");
	splits("app_env/prod:eu", "app_env", "prod:eu");
	splits("a/b/c", "a", "b/c");
}

static uint64_t hash(const char *text, uint64_t seed)
{
	struct address a;

	EXPECT_EQ(address_parse(&a, text, strlen(text)), NOH_OK);
	return address_hash(&a, seed);
}

static void both_spellings_are_one_address(void)
{
	EXPECT(hash("route/42", 1) == hash("route:42", 1));
	EXPECT(hash("route:42", 1) != hash("route:43", 1));
	EXPECT(hash("route:42", 1) != hash("rout:e42", 1));
	EXPECT(hash("route:42", 1) != hash("route:42", 2));        /* the seed is part of it */
}

static void what_is_no_address_is_refused_with_a_sentence(void)
{
	static const struct { const char *text, *says; } bad[] = {
		{ "nocolon", "nocolon" }, { "", "no colon" }, { ":id", "type" }, { "/id", "type" },
		{ "type:", "id" }, { "type/", "id" }, { ":", "type" } };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		EXPECT_EQ(parse(bad[i].text, strlen(bad[i].text)), NOH_EADDRESS);
		EXPECT(strstr(noh_why(), bad[i].says));
	}
}

static void lengths_are_exact(void)
{
	char text[300];

	memset(text, 'x', sizeof text);
	text[3] = ':';
	EXPECT_EQ(parse(text, 255), NOH_OK);
	EXPECT_EQ(parse(text, 256), NOH_EADDRESS);
	EXPECT(strstr(noh_why(), "256") && strstr(noh_why(), "255"));
	text[3] = 'x';
	text[63] = ':';
	EXPECT_EQ(parse(text, 100), NOH_OK);
	text[63] = 'x';
	text[64] = ':';
	EXPECT_EQ(parse(text, 100), NOH_EADDRESS);
	EXPECT(strstr(noh_why(), "63"));
}

static void a_nul_byte_is_refused_wherever_it_is(void)
{
	char text[] = "type:identity";

	for (size_t i = 0; i < sizeof text - 1; i++) {
		char with[sizeof text];

		memcpy(with, text, sizeof text);
		with[i] = 0;
		EXPECT_EQ(parse(with, sizeof text - 1), NOH_EADDRESS);
		EXPECT(strstr(noh_why(), "NUL"));
	}
}

TEST_MAIN(
	TEST(the_example_addresses_are_accepted, "ID-01 ID-02 ID-03"),
	TEST(an_address_is_split_at_the_first_colon, "ID-02"),
	TEST(a_slash_may_stand_for_the_colon, "ID-06"),
	TEST(both_spellings_are_one_address, "ID-06"),
	TEST(what_is_no_address_is_refused_with_a_sentence, "ID-02"),
	TEST(lengths_are_exact, "ID-02"),
	TEST(a_nul_byte_is_refused_wherever_it_is, "ID-02"))
