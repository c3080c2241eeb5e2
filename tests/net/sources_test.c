/* tests/net/sources_test.c - where clients come from: how many, how often they fail, and what is remembered of it. */
#include "net/sources.h"

#include "tests/lib/test.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sources s;

static void address_of(uint32_t n, uint8_t out[SOURCE_ADDRESS])
{
	memset(out, 0, SOURCE_ADDRESS);
	out[10] = out[11] = 0xff;
	memcpy(out + 12, &n, 4);
}

static struct source *enter(uint32_t n, uint32_t most, uint64_t now_ms, bool *full)
{
	uint8_t address[SOURCE_ADDRESS];

	address_of(n, address);
	return source_enter(&s, address, most, now_ms, full);
}

static void an_address_has_as_many_connections_as_it_may(void)
{
	struct source *one, *two, *other;
	bool full;

	EXPECT(sources_open(&s));
	one = enter(1, 2, 0, &full);
	EXPECT(one && !full);
	two = enter(1, 2, 0, &full);
	EXPECT(two == one && !full);
	EXPECT(!enter(1, 2, 0, &full) && full);
	other = enter(2, 2, 0, &full);
	EXPECT(other && other != one && !full);
	source_leave(&s, two, 0);
	EXPECT(enter(1, 2, 0, &full) == one && !full);
	EXPECT(enter(1, 0, 0, &full) == one && !full);           /* 0: no limit */
	for (int i = 0; i < 3; i++)
		source_leave(&s, one, 0);
	source_leave(&s, other, 0);
	source_leave(&s, NULL, 0);
	EXPECT_EQ(load_relaxed(&s.kept), 0);
	sources_close(&s);
}

/* 30 in a minute: a burst of 30, and then one in two seconds. */
static void who_fails_too_often_waits_and_may_then_try_again(void)
{
	struct source *x, *other;
	unsigned tried = 0;
	bool full;

	EXPECT(sources_open(&s));
	x = enter(1, 0, 1000, &full);
	other = enter(2, 0, 1000, &full);
	for (; source_waits_ms(&s, x, 30, 1000) == 0 && tried < 100; tried++)
		EXPECT_EQ(source_failed(&s, x, 30, 1000), tried == 29);  /* said once */
	EXPECT_EQ(tried, 30);
	EXPECT_EQ(source_waits_ms(&s, x, 30, 1000), 2000);
	EXPECT_EQ(source_waits_ms(&s, x, 30, 2500), 500);
	EXPECT_EQ(source_waits_ms(&s, x, 30, 3000), 0);
	EXPECT(!source_failed(&s, x, 30, 3000));                 /* still in the same minute: not said again */
	EXPECT_EQ(source_waits_ms(&s, x, 30, 3000), 2000);
	EXPECT_EQ(source_waits_ms(&s, x, 1000000, 3000), 1);     /* settings change, what was does not */
	EXPECT_EQ(source_waits_ms(&s, other, 30, 3000), 0);
	EXPECT_EQ(source_waits_ms(&s, NULL, 30, 3000), 0);
	EXPECT_EQ(source_waits_ms(&s, x, 30, 63000), 0);         /* a minute later all is forgotten */
	source_leave(&s, x, 63000);
	source_leave(&s, other, 63000);
	sources_close(&s);
}

static void failures_stay_when_the_connection_goes(void)
{
	struct source *x;
	bool full;

	EXPECT(sources_open(&s));
	x = enter(1, 0, 0, &full);
	for (int i = 0; i < 30; i++)
		(void)source_failed(&s, x, 30, 0);
	source_leave(&s, x, 0);
	EXPECT_EQ(load_relaxed(&s.kept), 1);
	x = enter(1, 0, 100, &full);
	EXPECT_EQ(load_relaxed(&s.kept), 0);
	EXPECT_EQ(source_waits_ms(&s, x, 30, 100), 1900);
	source_leave(&s, x, 100);
	EXPECT_EQ(load_relaxed(&s.kept), 1);
	/* Who comes by later clears it away. */
	x = enter(1, 0, 100000, &full);
	source_leave(&s, x, 100000);
	EXPECT_EQ(load_relaxed(&s.kept), 0);
	sources_close(&s);
}

/* A million addresses fail once each: what is remembered of them has an end, and while there are too many in a minute
 * whoever has failed waits; who has not, does not. */
static void a_crowd_is_held_back_in_bounded_memory(void)
{
	struct source *x, *fresh;
	uint64_t waits = 0;
	bool full;

	EXPECT(sources_open(&s));
	for (uint32_t i = 0; i < 50000; i++) {
		x = enter(1000 + i, 0, 5, &full);
		(void)source_failed(&s, x, 30, 5);
		waits += source_waits_ms(&s, x, 30, 5) != 0;
		source_leave(&s, x, 5);
	}
	EXPECT(waits >= 50000 - 30 * SOURCES_CROWD);
	EXPECT_EQ(load_relaxed(&s.kept), SOURCES_KEPT);
	fresh = enter(7, 0, 5, &full);
	EXPECT_EQ(source_waits_ms(&s, fresh, 30, 5), 0);
	source_leave(&s, fresh, 5);
	sources_close(&s);
}

static void an_ipv6_network_is_one_source(void)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	socklen_t len = sizeof at;
	uint8_t address[SOURCE_ADDRESS], other[SOURCE_ADDRESS];
	int pair[2], server = socket(AF_INET6, SOCK_STREAM, 0), client, accepted;
	char text[SOURCE_TEXT_MAX];
	struct source *x;
	bool full;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	EXPECT(!source_address(pair[0], address));
	EXPECT(!source_address(-1, address));
	(void)close(pair[0]);
	(void)close(pair[1]);
	if (server < 0 || bind(server, (struct sockaddr *)&at, sizeof at) != 0) {
		test_skip("no IPv6 here");
		(void)close(server);
		return;
	}
	EXPECT_EQ(listen(server, 1), 0);
	EXPECT_EQ(getsockname(server, (struct sockaddr *)&at, &len), 0);
	client = socket(AF_INET6, SOCK_STREAM, 0);
	EXPECT_EQ(connect(client, (struct sockaddr *)&at, sizeof at), 0);
	accepted = accept(server, NULL, NULL);
	EXPECT(source_address(accepted, address));
	memset(other, 0, sizeof other);                          /* ::/64, without the 1 */
	EXPECT_EQ(memcmp(address, other, sizeof other), 0);
	EXPECT(sources_open(&s));
	x = source_enter(&s, address, 0, 0, &full);
	source_text(x, text);
	EXPECT_EQ(strcmp(text, "::/64"), 0);
	source_leave(&s, x, 0);
	address_of(htonl(0x0a000001), address);
	x = source_enter(&s, address, 0, 0, &full);
	source_text(x, text);
	EXPECT_EQ(strcmp(text, "10.0.0.1"), 0);
	source_leave(&s, x, 0);
	sources_close(&s);
	(void)close(accepted);
	(void)close(client);
	(void)close(server);
}

static void *come_and_go(void *arg)
{
	uint64_t random = test_seed + (uintptr_t)arg;
	bool full;

	for (uint64_t i = 0; i < test_size(100000, 10000); i++) {
		struct source *x = enter((uint32_t)(test_random(&random) % 5), 3, i, &full);

		EXPECT(x || full);
		if (!x)
			continue;
		if (test_random(&random) % 4 == 0)
			(void)source_failed(&s, x, 1000000, i);
		(void)source_waits_ms(&s, x, 1000000, i);
		source_leave(&s, x, i);
	}
	return NULL;
}

static void workers_count_together(void)
{
	pthread_t of[4];
	bool full;

	EXPECT(sources_open(&s));
	for (uintptr_t i = 0; i < 4; i++)
		EXPECT_EQ(pthread_create(&of[i], NULL, come_and_go, (void *)i), 0);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(pthread_join(of[i], NULL), 0);
	for (uint32_t n = 0; n < 5; n++)                         /* none is left over */
		for (int i = 0; i < 3; i++)
			EXPECT(enter(n, 3, UINT64_C(1) << 40, &full) && !full);
	EXPECT_EQ(load_relaxed(&s.kept), 0);
	sources_close(&s);
}

TEST_MAIN(TEST(an_address_has_as_many_connections_as_it_may),
	  TEST(who_fails_too_often_waits_and_may_then_try_again),
	  TEST(failures_stay_when_the_connection_goes),
	  TEST(a_crowd_is_held_back_in_bounded_memory),
	  TEST(an_ipv6_network_is_one_source),
	  TEST(workers_count_together))
