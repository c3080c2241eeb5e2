/* tests/bench/load_run_test.c - the generator against a server of the test's own: it counts exactly what was
 * served, on both io backends, and notices what a server can do wrong. */
#include "bench/load.h"
#include "tests/bench/tiny_server.h"
#include "tools/cli.h"

#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct load_result result;

/* Runs "noh bench load" with these words against a server with these faults; how many commands it served. */
static uint64_t load(const struct tiny_faults *faults, const char *words)
{
	struct tiny_server *s = tiny_start(faults);
	struct load_plan plan;
	char text[512], *save = NULL;
	char *argv[40] = { "load", "--unix", (char *)(uintptr_t)tiny_path(s), "--patience", "60" };
	int argc = 5;

	snprintf(text, sizeof text, "%s", words);
	for (char *w = strtok_r(text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	memset(&result, 0, sizeof result);
	if (EXPECT_EQ(load_parse(argc, argv, &plan), CLI_FINE))
		load_run(&plan, &result);
	uint64_t served = tiny_commands(s);

	tiny_stop(s);
	return served;
}

static void says(const char *part)
{
	if (!EXPECT(strstr(result.failure, part) != NULL))
		printf("  failure is \"%s\", not \"...%s...\"\n", result.failure, part);
}

static void fine(void)
{
	if (!EXPECT(result.failure[0] == '\0'))
		printf("  failure is \"%s\"\n", result.failure);
	EXPECT_EQ(result.errors, 0);
	EXPECT_EQ(result.replies, result.requests);
}

/* ── what is counted ──────────────────────────────────────────────────────────────────────── */
static void every_request_is_served_and_answered_once(void)
{
	static const char *const runs[] = {
		"--mix ping --requests 999 --connections 7",
		"--mix incr --requests 5000 --connections 7 --pipeline 16 --keys 100",
		"--mix incr --requests 5000 --connections 7 --pipeline 16 --keys 100 --reads 0.5",
		"--mix get --requests 1000 --connections 3 --keys 10 --dist zipf",
		"--mix set --requests 1001 --connections 3 --pipeline 64 --keys 10 --dist hot:0.5",
		"--mix incr --requests 4000 --connections 8 --threads 3 --pipeline 5 --keys 4000 --dist seq",
		"--mix incr --requests 3000 --rate 100k --connections 5 --pipeline 4 --keys 10",
	};
	static const char *const ios[] = { "auto", "epoll" };

	for (unsigned i = 0; i < sizeof runs / sizeof runs[0]; i++)
		for (unsigned k = 0; k < 2; k++) {
			char words[256];

			snprintf(words, sizeof words, "%s --io %s", runs[i], ios[k]);
			EXPECT_EQ(load(NULL, words), (uint64_t)strtoull(strstr(words, "--requests ") + 11, NULL, 10));
			fine();
			EXPECT_EQ(result.ops, result.requests);
			EXPECT_EQ(result.latency.count, result.requests);
		}
}

static void a_time_is_kept_and_what_is_under_way_at_its_end_is_awaited(void)
{
	uint64_t served = load(NULL, "--mix incr --seconds 0.2 --warmup 0.1 --pipeline 8 --connections 4 --keys 100");

	fine();
	EXPECT_EQ(served, result.requests);
	EXPECT(result.seconds > 0.05 && result.seconds < 5);
	EXPECT(result.ops > 0 && result.ops < result.requests);      /* the warm-up is not in it */
}

static void replies_may_come_byte_by_byte(void)
{
	static const struct tiny_faults slow = { .dribble = true };

	load(&slow, "--mix incr --requests 500 --connections 3 --pipeline 7 --keys 10 --reads 0.3");
	fine();
	load(&slow, "--mix incr --requests 500 --connections 3 --pipeline 7 --keys 10 --io epoll");
	fine();
	load(&slow, "--mix pubsub --requests 20 --connections 3 --pipeline 2");
	fine();
	EXPECT_EQ(result.delivered, 60);
}

static void a_token_is_given_to_every_connection(void)
{
	static const struct tiny_faults closed = { .token = "secret" };

	load(&closed, "--mix ping --requests 50 --connections 5 --auth me:secret");
	fine();
	load(&closed, "--mix ping --requests 50 --connections 5 --auth wrong");
	says("AUTH was answered with: WRONGPASS");
	load(&closed, "--mix ping --requests 50 --connections 5");
	EXPECT_EQ(result.errors, 50);
}

/* ── latency ──────────────────────────────────────────────────────────────────────────────── */

/* The server stands still for 300 ms of a second with 1000 requests due. Measured from their intended starts
 * about 300 of them were late; a generator that waits for the server would see one per connection. */
static void a_stall_is_charged_to_all_it_delayed(void)
{
	static const struct tiny_faults stall = { .stall = 200, .stall_ms = 300 };
	const char *words = "--mix incr --rate 1000 --seconds 1 --warmup 0 --connections 2 --keys 10 --io ";

	for (unsigned i = 0; i < 2; i++) {
		char text[200];

		snprintf(text, sizeof text, "%s%s", words, i == 0 ? "auto" : "epoll");
		load(&stall, text);
		fine();
		EXPECT_EQ(result.requests, 1000);
		EXPECT_EQ(result.latency.count, 1000);
		EXPECT(hist_at(&result.latency, 1) >= 295u * 1000000);
		EXPECT(hist_at(&result.latency, 0.90) >= 150u * 1000000);
		EXPECT(hist_at(&result.latency, 0.80) >= 50u * 1000000);
	}
}

static void a_stall_at_the_very_end_is_not_forgotten(void)
{
	static const struct tiny_faults stall = { .stall = 90, .stall_ms = 500 };

	load(&stall, "--mix incr --rate 200 --seconds 0.5 --warmup 0 --connections 1 --keys 10");
	fine();
	EXPECT_EQ(result.latency.count, 100);
	EXPECT(hist_at(&result.latency, 1) >= 495u * 1000000);
}

/* ── inventory ────────────────────────────────────────────────────────────────────────────── */
static void half_of_the_operations_commit_what_the_others_reserved(void)
{
	load(NULL, "--mix reserve-commit --requests 4000 --connections 5 --keys 50 --pipeline 16");
	fine();
	EXPECT(result.committed > 0 && result.reserved >= result.committed);
	load(NULL, "--mix reserve-commit --seconds 0.1 --warmup 0 --connections 5 --keys 50 --idem");
	fine();
	EXPECT_EQ(result.committed, result.reserved);         /* the last ones at the end */
}

static void a_flash_sale_has_exactly_as_many_winners_as_units(void)
{
	load(NULL, "--mix flash-sale --units 300 --requests 1000 --connections 40");
	fine();
	EXPECT_EQ(result.reserved, 300);
	EXPECT_EQ(result.committed, 300);
	EXPECT_EQ(result.sold_out, 700);
	load(NULL, "--mix flash-sale --units 300 --requests 200 --connections 10 --pipeline 4 --threads 2 --io epoll");
	fine();
	EXPECT_EQ(result.committed, 200);
}

static void a_sale_goes_on_after_lost_connections_and_counts_every_order_once(void)
{
	for (uint32_t at = 30; at <= 600; at += 57) {
		struct tiny_faults cut = { .hang_up = at };
		char words[200];

		snprintf(words, sizeof words, "--mix flash-sale --units 200 --requests 500 --connections 20 --retry 20 "
			 "--pipeline %u --io %s", at % 4 < 2 ? 1 : 7, at % 2 == 0 ? "auto" : "epoll");
		load(&cut, words);
		fine();
		EXPECT(result.reconnects >= 1);
		EXPECT_EQ(result.committed, 200);
	}
}

static void an_oversold_sale_is_noticed(void)
{
	static const struct tiny_faults oversell = { .oversell = 1 }, same = { .same_hold = true };

	load(&oversell, "--mix flash-sale --units 100 --requests 300 --connections 10");
	says("101 won");
	load(&same, "--mix flash-sale --units 100 --requests 300 --connections 10");
	says("the same reservation");
}

/* ── pub/sub ──────────────────────────────────────────────────────────────────────────────── */
static void every_subscriber_gets_every_message(void)
{
	load(NULL, "--mix pubsub --requests 300 --connections 11 --publishers 2 --pipeline 3 --payload 100");
	fine();
	EXPECT_EQ(result.delivered, 300 * 11);
}

static void a_message_that_does_not_arrive_is_noticed(void)
{
	static const struct tiny_faults lose = { .lose = 1 };

	load(&lose, "--mix pubsub --requests 100 --connections 4 --patience 0.3");
	says("399 of 400 messages were delivered");
}

/* ── what a server does wrong ─────────────────────────────────────────────────────────────── */
static void a_missing_reply_is_noticed(void)
{
	static const struct tiny_faults f = { .swallow = 77 };

	load(&f, "--mix incr --requests 200 --connections 1 --pipeline 10 --keys 5 --patience 0.3");
	says("not answered");
	load(&f, "--mix incr --seconds 0.2 --warmup 0 --connections 2 --keys 5 --patience 0.3 --io epoll");
	says("not answered");
}

static void a_reply_too_many_is_noticed(void)
{
	static const struct tiny_faults f = { .twice = 50 };

	load(&f, "--mix incr --requests 100 --connections 1 --pipeline 10 --keys 5");
	says("more replies");
}

static void errors_are_counted_and_the_first_is_kept(void)
{
	static const struct tiny_faults f = { .error = 50 };

	load(&f, "--mix incr --requests 100 --connections 1 --pipeline 10 --keys 5");
	EXPECT_EQ(result.errors, 1);
	EXPECT_EQ(result.replies, 100);
	EXPECT(strcmp(result.first_error, "ERR planted") == 0);
	EXPECT(result.failure[0] == '\0');
}

static void a_reply_of_the_wrong_kind_is_noticed(void)
{
	static const struct tiny_faults text = { .text = 42 }, garbage = { .garbage = 42 };

	load(&text, "--mix incr --requests 100 --connections 1 --pipeline 10 --keys 5");
	says("incr was answered with +OK");
	load(&garbage, "--mix incr --requests 100 --connections 1 --pipeline 10 --keys 5");
	says("no RESP");
}

static void a_lost_connection_is_an_error_unless_it_may_be_retried(void)
{
	static const struct tiny_faults f = { .hang_up = 60 };

	load(&f, "--mix incr --requests 100 --connections 4 --keys 5");
	says("closed connection");
}

static void no_server_is_said_at_once(void)
{
	struct load_plan plan;
	char *argv[] = { "load", "--unix", "/nowhere/socket" };

	EXPECT_EQ(load_parse(3, argv, &plan), CLI_FINE);
	EXPECT(!load_run(&plan, &result));
	says("cannot connect to /nowhere/socket");
}

/* ── the command line ─────────────────────────────────────────────────────────────────────── */
static void what_cannot_be_meant_is_refused(void)
{
	static const char *const bad[][4] = {
		{ "--conections", "5" }, { "--connections", "0" }, { "--connections", "many" }, { "--mix", "inc" },
		{ "--dist", "zipf:-1" }, { "--dist", "normal" }, { "--reads", "2" }, { "--pipeline" }, { "--json=yes" },
		{ "--reads", "0.5", "--mix", "get" }, { "--holds", "5" }, { "--key-bytes", "4" }, { "word" },
		{ "--mix", "pubsub", "--threads", "2" }, { "--io", "aio" },
	};

	int loud = dup(STDERR_FILENO), quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);

	dup2(quiet, STDERR_FILENO);
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct load_plan plan;
		char words[4][32], *argv[5] = { "load" };
		int argc = 1;

		for (unsigned k = 0; k < 4 && bad[i][k] != NULL; k++) {
			snprintf(words[k], sizeof words[k], "%s", bad[i][k]);
			argv[argc++] = words[k];
		}
		EXPECT_EQ(load_parse(argc, argv, &plan), CLI_USAGE);
	}
	dup2(loud, STDERR_FILENO);
	close(loud);
	close(quiet);
}

TEST_MAIN(
	TEST(every_request_is_served_and_answered_once),
	TEST(a_time_is_kept_and_what_is_under_way_at_its_end_is_awaited),
	TEST(replies_may_come_byte_by_byte),
	TEST(a_token_is_given_to_every_connection),
	TEST(a_stall_is_charged_to_all_it_delayed),
	TEST(a_stall_at_the_very_end_is_not_forgotten),
	TEST(half_of_the_operations_commit_what_the_others_reserved),
	TEST(a_flash_sale_has_exactly_as_many_winners_as_units),
	TEST(a_sale_goes_on_after_lost_connections_and_counts_every_order_once),
	TEST(an_oversold_sale_is_noticed),
	TEST(every_subscriber_gets_every_message),
	TEST(a_message_that_does_not_arrive_is_noticed),
	TEST(a_missing_reply_is_noticed),
	TEST(a_reply_too_many_is_noticed),
	TEST(errors_are_counted_and_the_first_is_kept),
	TEST(a_reply_of_the_wrong_kind_is_noticed),
	TEST(a_lost_connection_is_an_error_unless_it_may_be_retried),
	TEST(no_server_is_said_at_once),
	TEST(what_cannot_be_meant_is_refused))
