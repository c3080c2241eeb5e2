/* tests/core/trace_test.c - W3C trace context read strictly; spans that are written while they are read. */
#include "core/trace.h"
#include "tests/lib/test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define GOOD "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static bool parses(const char *text)
{
	struct trace t;

	return trace_parse(text, strlen(text), &t);
}

static void a_traceparent_is_read_and_the_next_hop_written(void)
{
	char text[TRACE_PARENT_LEN + 1];
	struct trace t;

	EXPECT(trace_parse(GOOD, strlen(GOOD), &t));
	EXPECT(t.hi == UINT64_C(0x4bf92f3577b34da6) && t.lo == UINT64_C(0xa3ce929d0e0e4736));
	EXPECT(t.parent == UINT64_C(0x00f067aa0ba902b7));
	EXPECT_EQ(t.span, 0);
	EXPECT_EQ(t.flags, TRACE_SAMPLED);
	t.span = 0xabc;
	trace_write(&t, text);
	EXPECT(strcmp(text, "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000abc-01") == 0);
}

static void what_is_no_traceparent_is_ignored(void)
{
	char longer[80];

	EXPECT(!parses(""));
	EXPECT(!parses("00"));
	EXPECT(!parses("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"));
	EXPECT(!parses("00-00000000000000000000000000000000-00f067aa0ba902b7-01"));
	EXPECT(!parses("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"));
	EXPECT(!parses("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
	EXPECT(!parses("0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
	EXPECT(!parses("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g"));
	EXPECT(!parses("00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
	EXPECT(!parses(" " GOOD));
	snprintf(longer, sizeof longer, "%s-extra", GOOD);
	EXPECT(!parses(longer));                 /* version 00 ends with its flags */
	for (size_t len = 0; len < strlen(GOOD); len++)
		EXPECT(!trace_parse(GOOD, len, &(struct trace){ 0 }));
}

static void a_later_version_may_have_more_behind_the_flags(void)
{
	EXPECT(parses("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
	EXPECT(parses("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes"));
	EXPECT(!parses("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.what"));
}

static void flags_nobody_knows_are_not_carried_on(void)
{
	struct trace t;

	EXPECT(trace_parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-fe", 55, &t));
	EXPECT_EQ(t.flags, TRACE_RANDOM);
}

static bool state_ok(const char *text)
{
	return trace_state_ok(text, strlen(text));
}

static void a_tracestate_is_handed_on_only_if_it_is_one(void)
{
	char many[1024] = "", big[TRACE_STATE_MAX + 8];

	EXPECT(state_ok("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"));
	EXPECT(state_ok("fw529a3039@dt=FfffffeA , a=b"));
	EXPECT(state_ok("a=b,,c=d"));
	EXPECT(!state_ok(""));
	EXPECT(!state_ok("no equals sign"));
	EXPECT(!state_ok("UPPER=1"));
	EXPECT(!state_ok("a=b\r\nx: y"));
	EXPECT(!state_ok("a=b=c"));
	EXPECT(!state_ok("=b"));
	for (int i = 0; i < 33; i++)
		strcat(many, i ? ",a=1" : "a=1");
	EXPECT(!state_ok(many));
	memset(big, 'x', sizeof big);
	memcpy(big, "a=", 2);
	EXPECT(!trace_state_ok(big, TRACE_STATE_MAX + 1));
}

static void fresh_ids_are_never_zero_and_differ(void)
{
	uint64_t state = 0, other = 0, last = 0;

	for (int i = 0; i < 1000; i++) {
		uint64_t id = trace_fresh(&state);

		EXPECT(id != 0 && id != last);
		last = id;
	}
	EXPECT(trace_fresh(&other) != trace_fresh(&state));
}

/* ── the ring ── */

static struct span_ring ring;
static atomic_u32 done;

static struct span made(uint64_t n)
{
	struct span s = { .hi = 1, .lo = n % 7 + 1, .span = n, .parent = ~n };

	for (int i = 0; i < SPAN_STAMPS; i++)
		s.at_ns[i] = n * 3 + (uint64_t)i;
	memset(s.address, (int)('a' + n % 26), 200);
	s.address_len = 200;
	return s;
}

static bool whole(const struct span *s)
{
	struct span other = made(s->span);

	return memcmp(&other, s, sizeof other) == 0;
}

static void the_oldest_is_overwritten(void)
{
	struct span s;
	uint32_t found = 0;

	EXPECT(!span_read(&ring, 0, &s));
	for (uint64_t n = 1; n <= SPANS + 10; n++) {
		s = made(n);
		span_put(&ring, &s);
	}
	for (uint32_t i = 0; i < SPANS; i++)
		if (EXPECT(span_read(&ring, i, &s)) && EXPECT(whole(&s)) && EXPECT(s.span > 10))
			found++;
	EXPECT_EQ(found, SPANS);
	EXPECT(!span_read_of(&ring, 0, 1, 99, &s));
	span_ring_close(&ring);
	ring = (struct span_ring){ .mine = { 0, 0 } };
}

static void *write_on(void *arg)
{
	(void)arg;
	for (uint64_t n = 1; !load_relaxed(&done); n++) {
		struct span s = made(n);

		span_put(&ring, &s);
		ring.mine.next = n % 4;          /* the same few slots again and again */
	}
	return NULL;
}

static void a_reader_never_sees_half_a_span(void)
{
	uint64_t read = 0, torn = 0;
	pthread_t writer;
	struct span s;

	store_relaxed(&done, 0);
	pthread_create(&writer, NULL, write_on, NULL);
	for (uint32_t i = 0; read < 20000; i++)
		if (i & 1 ? span_read(&ring, i % 4, &s) : span_read_of(&ring, i % 4, 1, i % 7 + 1, &s)) {
			read++;
			torn += !whole(&s);
		}
	store_relaxed(&done, 1);
	pthread_join(writer, NULL);
	EXPECT_EQ(torn, 0);
	span_ring_close(&ring);
}

TEST_MAIN(
	TEST(a_traceparent_is_read_and_the_next_hop_written),
	TEST(what_is_no_traceparent_is_ignored),
	TEST(a_later_version_may_have_more_behind_the_flags),
	TEST(flags_nobody_knows_are_not_carried_on),
	TEST(a_tracestate_is_handed_on_only_if_it_is_one),
	TEST(fresh_ids_are_never_zero_and_differ),
	TEST(the_oldest_is_overwritten),
	TEST(a_reader_never_sees_half_a_span))
