/* The newest part of the event log: numbers, groups, readers, the old end. */
#include "persist/eventlog.h"

#include "core/mem.h"
#include "tests/lib/test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct eventlog l;

static void begin(uint64_t newest)
{
	memset(&l, 0, sizeof l);
	eventlog_open(&l, newest);
}

static size_t make(uint8_t *room, const char *kind, uint64_t revision, uint64_t at_ms, size_t len)
{
	static const uint8_t zeros[NOH_EVENT_DATA];
	noh_event e = { .kind = kind, .actor = "a:1", .revision = revision, .at_ms = at_ms, .data = zeros, .len = len };
	struct part_event head = event_head(&e);

	event_write(&e, &head, room);
	return event_size(&head);
}

static void append(uint64_t revision, uint64_t at_ms, size_t len)
{
	static uint8_t room[EVENT_MAX];

	EXPECT(eventlog_append(&l, room, make(room, "k", revision, at_ms, len)));
}

struct got { uint64_t first, last, count, revisions; uint64_t until; };

static int note(void *arg, uint64_t seq, const void *event, size_t len)
{
	struct got *g = arg;
	noh_event e;

	EXPECT(event_open(event, len, &e));
	EXPECT(g->count == 0 || seq == g->last + 1);
	if (g->count++ == 0)
		g->first = seq;
	g->last = seq;
	g->revisions = g->revisions * 10 + e.revision % 10;
	return seq == g->until ? 7 : 0;
}

static void what_is_appended_is_read_when_it_is_shown(void)
{
	struct got g = { 0 };

	begin(41);
	append(1, 0, 0);
	append(2, 0, 0);
	EXPECT_EQ(eventlog_read(&l, 42, note, &g), 0);
	EXPECT_EQ(g.count, 0);
	eventlog_show(&l, 42);
	EXPECT_EQ(eventlog_read(&l, 42, note, &g), 0);
	EXPECT(g.count == 1 && g.first == 42);
	eventlog_show(&l, 43);
	EXPECT_EQ(eventlog_read(&l, 43, note, &g), 0);
	EXPECT(g.count == 2 && g.last == 43 && g.revisions == 12);
	EXPECT_EQ(eventlog_read(&l, 41, note, &g), NOH_ETOOOLD);
	EXPECT_EQ(eventlog_oldest(&l), 42);
	eventlog_close(&l);
}

static void a_reader_goes_on_over_chunks_and_stops_where_it_wants(void)
{
	struct got g = { .until = 77 };

	begin(0);
	for (uint64_t i = 1; i <= 100; i++)
		append(i, 0, i % 3 ? 9000 : 0);
	eventlog_show(&l, 100);
	EXPECT_EQ(eventlog_read(&l, 5, note, &g), 7);
	EXPECT(g.first == 5 && g.last == 77);
	eventlog_close(&l);
}

static size_t put_record(uint8_t *room, uint64_t order, unsigned first, unsigned count)
{
	static uint8_t event[EVENT_MAX];
	uint8_t *at = record_begin(room, "a:1", 3, 1, 1, 1 << 20, RECORD_EVENTS);

	record_set_order(room, order);
	for (unsigned i = 0; i < count; i++) {
		size_t len = make(event, "k", first + i, 0, 0);

		memcpy(part_put(&at, PART_EVENT, NULL, 0, len), event, len);
		(void)part_put(&at, PART_STATE, NULL, 0, sizeof(struct part_state));
	}
	record_finish(room, at);
	return (size_t)(at - room);
}

static void stage(uint64_t order, unsigned first, unsigned count)
{
	_Alignas(8) static uint8_t room[4096];
	const struct record_head *head;
	const uint8_t *at = room, *parts, *end;
	size_t n = put_record(room, order, first, count);

	EXPECT(record_next(&at, room + n, &head, &parts, &end));
	eventlog_stage(&l, head, parts, end);
}

static void events_of_a_group_are_put_in_the_order_they_were_drawn(void)
{
	struct got g = { 0 };

	begin(0);
	stage(30, 5, 1);                 /* the ring of a worker that came later to it */
	stage(10, 1, 2);
	stage(20, 3, 2);
	eventlog_settle(&l);
	stage(1, 6, 1);                  /* the next group, of another run */
	eventlog_settle(&l);
	EXPECT_EQ(eventlog_appended(&l), 6);
	eventlog_show(&l, 6);
	EXPECT_EQ(eventlog_read(&l, 1, note, &g), 0);
	EXPECT_EQ(g.revisions, 123456);
	eventlog_close(&l);
}

static void without_memory_the_numbers_go_on_and_what_is_missing_is_said(void)
{
	struct got g = { 0 };

	begin(0);
	append(1, 0, 0);
	(void)mem_fail_at(1, 1);
	stage(1, 2, 2);
	eventlog_settle(&l);
	(void)mem_fail_at(0, 0);
	EXPECT_EQ(eventlog_appended(&l), 3);
	stage(2, 4, 1);
	eventlog_settle(&l);
	eventlog_show(&l, 4);
	EXPECT_EQ(eventlog_read(&l, 1, note, &g), NOH_ETOOOLD);
	EXPECT_EQ(eventlog_oldest(&l), 4);
	EXPECT_EQ(eventlog_read(&l, 4, note, &g), 0);
	EXPECT(g.count == 1 && g.revisions == 4);
	eventlog_close(&l);
}

static void what_is_dropped_is_too_old_and_what_is_read_stays_until_then(void)
{
	struct got g = { 0 };

	begin(0);
	for (uint64_t i = 1; i <= 100; i++)
		append(i, i, 9000);
	eventlog_show(&l, 100);
	eventlog_drop(&l, 50);
	EXPECT(eventlog_oldest(&l) > 40 && eventlog_oldest(&l) <= 51);
	EXPECT_EQ(eventlog_read(&l, 1, note, &g), NOH_ETOOOLD);
	EXPECT_EQ(eventlog_read(&l, 51, note, &g), 0);
	EXPECT_EQ(g.count, 50);
	EXPECT(eventlog_trim(&l, UINT64_MAX, 80) > 0);
	EXPECT(eventlog_oldest(&l) > 60 && eventlog_oldest(&l) <= 80);
	EXPECT(eventlog_trim(&l, 150000, 0) > 0);
	EXPECT(eventlog_bytes(&l) <= 150000);
	EXPECT_EQ(eventlog_newest(&l), 100);
	eventlog_close(&l);
}

/* ── several threads ── */

enum { MANY = 20000 };

static void *reads_all(void *arg)
{
	uint64_t next = 1;

	(void)arg;
	while (next <= MANY) {
		struct got g = { 0 };
		int rc = eventlog_wait(&l, next - 1, UINT64_C(60000000000));

		if (!EXPECT_EQ(rc, NOH_OK))
			break;
		rc = eventlog_read(&l, next, note, &g);
		if (rc == NOH_ETOOOLD) {         /* it was slower than the trimming */
			next = eventlog_oldest(&l);
			continue;
		}
		EXPECT(rc == 0 && g.first == next);
		next = g.last + 1;
	}
	return NULL;
}

static void readers_follow_while_events_come_and_go(void)
{
	pthread_t threads[3];

	begin(0);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, reads_all, NULL);
	for (uint64_t i = 1; i <= MANY; i++) {
		append(i, i, i % 50 ? 100 : 3000);
		if (i % 7 == 0 || i == MANY)
			eventlog_show(&l, i);
		if (i % 500 == 0)
			(void)eventlog_trim(&l, 600000, 0);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	eventlog_close(&l);
}

static void *waits(void *arg)
{
	*(int *)arg = eventlog_wait(&l, 0, UINT64_MAX);
	return NULL;
}

static void who_waits_is_told_when_nothing_more_will_come(void)
{
	pthread_t thread;
	int rc = 0;

	begin(0);
	EXPECT_EQ(eventlog_wait(&l, 0, 1000000), NOH_ETIMEOUT);
	pthread_create(&thread, NULL, waits, &rc);
	eventlog_stop(&l);
	pthread_join(thread, NULL);
	EXPECT_EQ(rc, NOH_ESTOPPED);
	eventlog_close(&l);
}

/* ── an event as bytes ── */

static void bytes_that_are_no_event_are_refused(void)
{
	uint8_t good[256], bad[256];
	noh_event e = { .actor = "a:1", .kind = "kind", .from = "x", .to = "y", .reason = "why", .data = "data", .len = 4 }, out;
	struct part_event head = event_head(&e);
	size_t n = event_size(&head);

	event_write(&e, &head, good);
	EXPECT(event_open(good, n, &out) && strcmp(out.kind, "kind") == 0 && strcmp(out.reason, "why") == 0 &&
	       out.len == 4 && memcmp(out.data, "data", 4) == 0);
	for (size_t cut = 0; cut < n; cut++)
		EXPECT(!event_open(good, cut, &out));
	for (size_t at = 16; at < sizeof(struct part_event) + 20; at++) {        /* lengths, and the first NULs */
		memcpy(bad, good, n);
		bad[at] ^= 0x41;
		if (event_open(bad, n, &out))
			EXPECT(strlen(out.actor) + strlen(out.kind) + strlen(out.from) + strlen(out.to) + strlen(out.reason) + 5 +
			       out.len + sizeof(struct part_event) == n);
	}
}

static void a_long_reason_is_cut_between_characters(void)
{
	char reason[1200] = "";
	uint8_t bytes[2048];
	noh_event e = { .kind = "k", .reason = reason }, out;

	for (int i = 0; i < 500; i++)
		strcat(reason, "ä");
	struct part_event head = event_head(&e);

	event_write(&e, &head, bytes);
	EXPECT(event_open(bytes, event_size(&head), &out));
	EXPECT_EQ(strlen(out.reason), 510);
}

TEST_MAIN(
	TEST(what_is_appended_is_read_when_it_is_shown, "EV-01"),
	TEST(a_reader_goes_on_over_chunks_and_stops_where_it_wants),
	TEST(events_of_a_group_are_put_in_the_order_they_were_drawn),
	TEST(without_memory_the_numbers_go_on_and_what_is_missing_is_said),
	TEST(what_is_dropped_is_too_old_and_what_is_read_stays_until_then),
	TEST(readers_follow_while_events_come_and_go, "EV-03"),
	TEST(who_waits_is_told_when_nothing_more_will_come),
	TEST(bytes_that_are_no_event_are_refused),
	TEST(a_long_reason_is_cut_between_characters))
