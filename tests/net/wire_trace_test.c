/* tests/net/wire_trace_test.c - traces of requests that come over sockets: TRACE, sampling, and when replies leave. */
#include "tests/net/wire_kit.h"

#define TRACE_ID "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
#define TRACEPARENT "00-" TRACE_ID "-" PARENT "-01"

#define MOST 64
static struct { uint32_t n; noh_span list[MOST]; char actors[MOST][64]; } shown;

static void keep(void *user, const noh_span *span)
{
	(void)user;
	if (shown.n == MOST)
		return;
	shown.list[shown.n] = *span;
	snprintf(shown.actors[shown.n++], 64, "%s", span->actor);
}

struct wanted { noh_box *box; uint32_t n; };

/* So many spans, and each answered. */
static bool all_answered(void *arg)
{
	struct wanted *w = arg;

	shown.n = 0;
	(void)noh_trace_show(w->box, TRACE_ID, keep, NULL);
	for (uint32_t i = 0; i < shown.n; i++)
		if (!shown.list[i].at_ns[NOH_ANSWERED])
			return false;
	return shown.n >= w->n;
}

static bool come(struct wire *w, uint32_t n)
{
	struct wanted all = { w->box, n };

	return test_wait_until(all_answered, &all, SOON) && shown.n == n;
}

static void a_request_is_traced_from_its_bytes_to_its_reply(void)
{
	FOR_IO(io) {
		struct wire w;
		int fd;

		WIRE_ON_DISK(&w, 2, .io = io);
		fd = dial(&w);
		EXPECT_ASK(fd, "ACTOR.SEND counter:a 1 'x' TRACE " TRACEPARENT, "-");    /* not its payload: its turn fails */
		EXPECT_ASK(fd, "INCR a", ":1");
		EXPECT_ASK(fd, "ACTOR.INVOKE later:x 2 '' TRACE " TRACEPARENT, "$1");
		EXPECT_HEARS(fd, "0\r\n");
		EXPECT(come(&w, 2));
		const uint64_t *t = shown.list[1].at_ns;

		EXPECT(strcmp(shown.actors[0], "counter:a") == 0 && shown.list[0].status < 0);
		EXPECT(strcmp(shown.actors[1], "later:x") == 0 && shown.list[1].status == NOH_OK);
		EXPECT(strcmp(shown.list[0].parent_id, PARENT) == 0 && strcmp(shown.list[1].parent_id, PARENT) == 0);
		EXPECT(strcmp(shown.list[0].span_id, shown.list[1].span_id) != 0);
		EXPECT(t[NOH_RECEIVED] && t[NOH_RECEIVED] <= t[NOH_QUEUED] && t[NOH_QUEUED] <= t[NOH_STARTED]);
		EXPECT(t[NOH_STARTED] <= t[NOH_ENDED] && t[NOH_ENDED] <= t[NOH_ANSWERED]);
		close(fd);
		wire_end(&w);
	}
}

static void keep_id(void *user, const noh_trace_summary *t)
{
	if (strcmp(t->actor, "counter:a") == 0)
		memcpy(user, t->trace_id, sizeof t->trace_id);
}

static bool write_is_told(void *box)
{
	char id[33] = "";

	shown.n = 0;
	(void)noh_trace_list(box, 10, keep_id, id);
	return noh_trace_show(box, id, keep, NULL) == NOH_OK && shown.list[0].at_ns[NOH_ANSWERED] &&
	       shown.list[0].at_ns[NOH_ON_DISK];
}

static void a_write_is_on_disk_before_its_reply_leaves(void)
{
	FOR_IO(io) {
		struct wire w;
		const uint64_t *t = shown.list[0].at_ns;
		int fd;

		WIRE_ON_DISK(&w, 2, .io = io, .trace_sample = 1);
		fd = dial(&w);
		EXPECT_ASK(fd, "INCR a", ":1");
		EXPECT(test_wait_until(write_is_told, w.box, SOON));
		EXPECT(t[NOH_ENDED] < t[NOH_ON_DISK] && t[NOH_ON_DISK] <= t[NOH_ANSWERED]);
		EXPECT(shown.list[0].parent_id[0] == 0);
		close(fd);
		wire_end(&w);
	}
}

static void what_is_no_trace_is_ignored_and_the_command_goes_on(void)
{
	struct wire w;
	int fd;

	WIRE(&w, 1, .io = NOH_IO_EPOLL);
	fd = dial(&w);
	EXPECT_ASK(fd, "ACTOR.INVOKE later:x 2 '' TRACE nonsense", "$1");
	EXPECT_HEARS(fd, "0\r\n");
	EXPECT_ASK(fd, "ACTOR.INVOKE later:x 2 '' TRACE", "-ERR syntax error");
	EXPECT_ASK(fd, "ACTOR.INVOKE later:x 2 '' TRACE a TRACE b", "-ERR syntax error");
	EXPECT_ASK(fd, "ACTOR.SEND later:x 2 '' TRACESTATE a=b TRACE " TRACEPARENT, "+OK");
	EXPECT(come(&w, 1));
	close(fd);
	wire_end(&w);
}

/* A full mailbox holds its connection; what waits there keeps its trace, and the wait shows. */
static void a_request_that_is_held_keeps_its_trace(void)
{
	FOR_IO(io) {
		struct wire w;
		char command[256];
		int fd, other;

		WIRE(&w, 1, .io = io);
		fd = dial(&w);
		other = dial(&w);
		EXPECT_ASK(other, "ACTOR.SEND queue:q 1 '' ACK memory", "+OK");
		snprintf(command, sizeof command, "ACTOR.INVOKE queue:q 0 '' TRACE %s TRACESTATE a=b\r\n", TRACEPARENT);
		for (int i = 0; i < 10; i++)
			EXPECT(say(fd, command));
		EXPECT(gets_to_hold(w.box, "queue:q", 4));
		EXPECT_ASK(other, "ACTOR.INVOKE later:jam 1 ''", "$4");
		for (int i = 0; i < 10; i++)
			EXPECT_HEARS(fd, "$5\r\nnoted\r\n");
		EXPECT(come(&w, 10));
		close(fd);
		close(other);
		wire_end(&w);
	}
}

struct listed { uint32_t traces, spans; };
static void count_traces(void *user, const noh_trace_summary *t)
{
	struct listed *l = user;

	l->traces++;
	l->spans += t->spans;
}

static bool ten_are_listed(void *arg)
{
	struct listed l = { 0, 0 };

	(void)noh_trace_list(arg, 1000, count_traces, &l);
	return l.traces == 10 && l.spans == 10;
}

static void of_so_many_requests_one_is_sampled(void)
{
	struct wire w;
	char number[16];
	int fd;

	WIRE(&w, 1, .io = NOH_IO_EPOLL, .trace_sample = 10);
	fd = dial(&w);
	for (int i = 1; i <= 100; i++) {
		snprintf(number, sizeof number, ":%d", i);
		EXPECT_ASK(fd, "INCR a", number);
	}
	EXPECT(test_wait_until(ten_are_listed, w.box, SOON));
	EXPECT_ASK(fd, "CONFIG SET noh-trace-sample 0", "+OK");
	for (int i = 101; i <= 120; i++) {
		snprintf(number, sizeof number, ":%d", i);
		EXPECT_ASK(fd, "INCR a", number);
	}
	EXPECT(ten_are_listed(w.box));
	close(fd);
	wire_end(&w);
}

/* Every key of MGET is a request; their client waits for one reply. */
static void each_of_several_keys_has_its_span(void)
{
	struct wire w;
	char line[64];
	int fd;

	WIRE(&w, 1, .io = NOH_IO_EPOLL, .trace_sample = 1);
	fd = dial(&w);
	EXPECT_ASK(fd, "MGET a b c d e f g h i j", "*10");
	for (int i = 0; i < 10; i++)
		hear_line(fd, line, sizeof line);
	EXPECT(test_wait_until(ten_are_listed, w.box, SOON));
	close(fd);
	wire_end(&w);
}

static void a_client_that_goes_leaves_nothing_behind(void)
{
	struct wire w;
	int fd;

	WIRE(&w, 1, .io = NOH_IO_EPOLL);
	for (int i = 0; i < 400; i++) {          /* more than are watched at a time */
		fd = dial(&w);
		EXPECT(say(fd, "ACTOR.INVOKE later:x 0 '' TRACE " TRACEPARENT "\r\n"));
		vanish(fd);
	}
	fd = dial(&w);
	EXPECT_ASK(fd, "ACTOR.INVOKE later:x 1 ''", "$4");
	hear(fd, (char[8]){ 0 }, 6);
	EXPECT_ASK(fd, "ACTOR.INVOKE later:y 2 '' TRACE 00-" "0000000000000000000000000000000f" "-" PARENT "-01", "$1");
	hear(fd, (char[8]){ 0 }, 3);
	struct listed l = { 0, 0 };

	EXPECT_EQ(noh_trace_list(w.box, 1000, count_traces, &l), NOH_OK);
	EXPECT(l.traces >= 1);
	close(fd);
	wire_end(&w);
}

TEST_MAIN(
	TEST(a_request_is_traced_from_its_bytes_to_its_reply),
	TEST(a_write_is_on_disk_before_its_reply_leaves),
	TEST(what_is_no_trace_is_ignored_and_the_command_goes_on),
	TEST(a_request_that_is_held_keeps_its_trace),
	TEST(of_so_many_requests_one_is_sampled),
	TEST(each_of_several_keys_has_its_span),
	TEST(a_client_that_goes_leaves_nothing_behind))
