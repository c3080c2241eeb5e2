/* tests/net/hold_test.c - a connection's replies: in order, and not before they are on disk.
 *
 * The real network of one worker, driven by hand, with a door behind which the test sits: it answers when, in
 * which order and due when it likes. Both backends.
 */
#include "net/net.h"
#include "noh_actors.h"

#include "tests/lib/test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MOST 256

static struct {
	struct server *server;
	struct net    *net;
	char           path[64];
	atomic_u64     durable, awaits;
	uint64_t       now_ms;
	uint64_t       tokens[MOST];
	uint32_t       count;
	int            refuse;             /* what deliver says */
	int            client;
} t;

static void door_prepare(void *box, uint32_t worker, struct arrival *list, uint32_t n, bool behind)
{
	(void)box, (void)worker, (void)list, (void)n, (void)behind;
}

static int door_deliver(void *box, uint32_t worker, struct arrival *a)
{
	(void)box, (void)worker;
	if (t.refuse != NOH_OK)
		return t.refuse;
	if (t.count < MOST)
		t.tokens[t.count++] = a->token;
	return NOH_OK;
}

static int door_step(void *box, uint32_t worker, const struct request *parts, uint32_t n, uint32_t ms, uint64_t token)
{
	(void)box, (void)worker, (void)parts, (void)n, (void)ms;
	t.tokens[t.count++] = token;
	return NOH_OK;
}

static atomic_u64 *door_awaits(void *box, uint32_t worker) { (void)box, (void)worker; return &t.awaits; }
static uint64_t door_now(void *box) { (void)box; return t.now_ms * 1000000u; }
static uint64_t door_wall(void *box) { (void)box; return t.now_ms; }
static void door_log(void *box, int level, const char *line) { (void)box, (void)level, (void)line; }

static ck_epoch_record_t *door_epoch(void *box, uint32_t worker) { (void)box, (void)worker; return NULL; }

static struct span_ring spans;

static struct span_ring *door_spans(void *box, uint32_t worker) { (void)box, (void)worker; return &spans; }

static int io_wanted;

static int connect_client(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(at.sun_path, t.path, strlen(t.path) + 1);
	EXPECT_EQ(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
	return fd;
}

static void passes(int n)
{
	while (n--) {
		net_read(t.net);
		net_write(t.net);
	}
}

static void open_all(uint32_t pipeline)
{
	struct net_door door = { .prepare = door_prepare, .deliver = door_deliver, .step = door_step,
				 .awaits = door_awaits, .now_ns = door_now, .wall_ms = door_wall, .log = door_log,
				 .durable = &t.durable, .epoch = door_epoch, .spans = door_spans };
	noh_listen_options o = { .resp_port = -1, .io = io_wanted, .max_pipeline = pipeline, .call_ms = 1000 };

	memset(&t, 0, sizeof t);
	t.now_ms = 1000;
	snprintf(t.path, sizeof t.path, "/tmp/noh-hold-%d.sock", (int)getpid());
	o.unix_path = t.path;
	if (!EXPECT_EQ(server_open(&t.server, &o, 1, &door), NOH_OK) || !EXPECT(net_open(t.server, 0)))
		exit(1);
	t.net = t.server->nets[0];
	t.client = connect_client();
	passes(3);
	EXPECT_EQ(t.net->shown.connections, 1);
}

static void close_all(void)
{
	close(t.client);
	passes(4);
	EXPECT_EQ(t.net->shown.connections, 0);
	EXPECT_EQ(t.net->slots_waiting, 0);
	server_close(t.server);
}

static void say_as(int fd, const char *text)
{
	EXPECT_EQ(send(fd, text, strlen(text), 0), (long long)strlen(text));
	passes(4);
}

static void say(const char *text)
{
	say_as(t.client, text);
}

static const char *heard_by(int fd)
{
	static char got[65536];
	ssize_t n;

	passes(4);
	n = recv(fd, got, sizeof got - 1, MSG_DONTWAIT);
	got[n > 0 ? n : 0] = 0;
	return got;
}

static bool hears(const char *expected)
{
	const char *got = heard_by(t.client);

	if (strcmp(got, expected) != 0)
		printf("got \"%s\", expected \"%s\"\n", got, expected);
	return strcmp(got, expected) == 0;
}

static void answer(uint32_t i, int64_t value, uint64_t due)
{
	noh_counter_added a = { .outcome = NOH_COUNTER_OK, .value = value, .applied = 1 };

	net_answer(t.net, t.tokens[i], due, NOH_OK, &a, sizeof a);
}

static void set_durable(uint64_t epoch)
{
	store_seq_cst(&t.durable, epoch);
}

/* ── the tests, for either backend ── */

static void replies_keep_the_order_of_the_commands(void)
{
	open_all(0);
	say("INCR a\r\nINCR b\r\nPING\r\nINCR c\r\n");
	EXPECT_EQ(t.count, 3);
	answer(2, 3, 0);
	answer(1, 2, 0);
	EXPECT(hears(""));
	answer(0, 1, 0);
	EXPECT(hears(":1\r\n:2\r\n+PONG\r\n:3\r\n"));
	close_all();
}

static void a_reply_waits_until_it_is_on_disk(void)
{
	open_all(0);
	say("INCR a\r\nINCR b\r\nINCR c\r\nPING\r\n");
	answer(0, 1, 5);
	answer(1, 2, 7);
	answer(2, 3, 6);
	EXPECT(hears(""));
	EXPECT_EQ(load_relaxed(&t.awaits), 5);
	set_durable(4);
	EXPECT(hears(""));
	set_durable(5);
	EXPECT(hears(":1\r\n"));
	EXPECT_EQ(load_relaxed(&t.awaits), 7);
	set_durable(6);
	EXPECT(hears(""));                       /* 3 is on disk, but behind 2 */
	set_durable(7);
	EXPECT(hears(":2\r\n:3\r\n+PONG\r\n"));
	EXPECT_EQ(load_relaxed(&t.awaits), (long long)UINT64_MAX);
	close_all();
}

static void an_error_read_from_state_waits_as_well(void)
{
	noh_counter_added a = { .outcome = NOH_COUNTER_OVERFLOW };

	open_all(0);
	say("INCR a\r\nINCR b\r\n");
	net_answer(t.net, t.tokens[0], 9, NOH_REFUSED, &a, sizeof a);
	net_answer(t.net, t.tokens[1], 9, NOH_EFAILED, NULL, 0);
	EXPECT(hears(""));
	set_durable(9);
	const char *got = heard_by(t.client);

	EXPECT(strstr(got, "overflow") != NULL);
	EXPECT(strstr(got, "-FAILED") != NULL);
	close_all();
}

static void whoever_is_gone_leaves_nothing_behind(void)
{
	open_all(0);
	say("INCR a\r\nINCR b\r\nMGET a b\r\n");
	EXPECT_EQ(t.count, 4);
	close(t.client);
	passes(4);
	for (uint32_t i = 0; i < 4; i++)
		answer(i, 1, 3);
	EXPECT_EQ(t.net->slots_waiting, 0);
	set_durable(3);                          /* an end of file may be half of one: it is answered first */
	passes(4);
	EXPECT_EQ(t.net->shown.connections, 0);
	t.client = connect_client();
	passes(4);
	answer(0, 77, 0);                        /* once more: finds nobody */
	say("PING\r\n");
	EXPECT(hears("+PONG\r\n"));
	close_all();
}

static void a_command_without_an_answer_times_out(void)
{
	open_all(0);
	say("INCR a\r\nINCR b\r\nMGET a b\r\n");
	answer(1, 2, 0);
	answer(2, 5, 0);
	t.now_ms += 1500;
	passes(2);
	const char *got = heard_by(t.client);

	EXPECT(strncmp(got, "-TIMEOUT", 8) == 0);
	EXPECT(strstr(got, "\r\n:2\r\n-TIMEOUT") != NULL);
	answer(0, 1, 0);                         /* too late */
	answer(3, 1, 0);
	EXPECT(hears(""));
	close_all();
}

static void a_full_mailbox_holds_its_connection_and_no_other(void)
{
	int other;

	open_all(0);
	other = connect_client();
	passes(3);
	t.refuse = NOH_FULL;
	say("INCR a\r\nINCR b\r\nPING\r\n");
	EXPECT(hears(""));
	EXPECT_EQ(t.count, 0);
	t.refuse = NOH_OK;
	say_as(other, "INCR c\r\n");
	EXPECT_EQ(t.count, 1);
	t.now_ms += 10;
	passes(2);
	EXPECT_EQ(t.count, 3);
	for (uint32_t i = 0; i < 3; i++)
		answer(i, (int64_t)i, 0);
	EXPECT(hears(":1\r\n:2\r\n+PONG\r\n"));
	EXPECT(strcmp(heard_by(other), ":0\r\n") == 0);
	say("INCR a\r\n");                       /* it is read again */
	EXPECT_EQ(t.count, 4);
	answer(3, 9, 0);
	EXPECT(hears(":9\r\n"));
	close(other);
	close_all();
}

static void a_mailbox_that_stays_full_is_an_error_in_the_end(void)
{
	open_all(0);
	t.refuse = NOH_FULL;
	say("INCR a\r\n");
	t.now_ms += 1500;
	const char *got = heard_by(t.client);

	EXPECT(strncmp(got, "-MAILBOXFULL", 12) == 0 || strncmp(got, "-TIMEOUT", 8) == 0);
	t.refuse = NOH_OK;
	say("PING\r\n");
	EXPECT(hears("+PONG\r\n"));
	close_all();
}

static void too_many_unanswered_are_not_read_further(void)
{
	open_all(3);
	say("INCR a\r\nINCR b\r\nINCR c\r\nINCR d\r\nINCR e\r\n");
	EXPECT_EQ(t.count, 3);
	answer(0, 1, 0);
	EXPECT(hears(":1\r\n"));
	EXPECT_EQ(t.count, 4);
	for (uint32_t i = 1; i < 4; i++)
		answer(i, i + 1, 0);
	EXPECT(hears(":2\r\n:3\r\n:4\r\n"));
	answer(4, 5, 0);
	EXPECT(hears(":5\r\n"));
	close_all();
}

static void what_tells_of_others_waits_for_what_was_asked_before(void)
{
	open_all(0);
	say("INCR a\r\nMSET \"a\" '1' \"b\" \"2\"\r\nINCR a\r\n");
	EXPECT_EQ(t.count, 1);                   /* the step is not even begun */
	answer(0, 1, 0);
	EXPECT(hears(":1\r\n"));
	EXPECT_EQ(t.count, 2);                   /* and what comes behind it waits for its end */
	net_answer(t.net, t.tokens[1], 0, NOH_EFAILED, NULL, 0);
	EXPECT(strncmp(heard_by(t.client), "-FAILED", 7) == 0);
	EXPECT_EQ(t.count, 3);
	answer(2, 2, 0);
	EXPECT(hears(":2\r\n"));
	close_all();
}

static void a_client_that_is_held_and_goes_leaves_nothing_behind(void)
{
	open_all(0);
	t.refuse = NOH_FULL;
	for (int i = 0; i < 3; i++) {
		say("INCR a\r\nINCR b\r\nMGET a b c\r\n");
		struct linger now = { .l_onoff = 1 };

		setsockopt(t.client, SOL_SOCKET, SO_LINGER, &now, sizeof now);
		close(t.client);
		passes(3);
		t.now_ms += 2000;
		passes(4);
		t.client = connect_client();
		passes(3);
	}
	EXPECT_EQ(t.net->slots_waiting, 0);
	EXPECT_EQ(t.net->stalled, 0);
	close_all();
}

/* All of them are told of their last reply, and end, in one round. */
static void a_crowd_may_leave_at_once(void)
{
	enum { CROWD = 200 };
	int fds[CROWD];

	open_all(0);
	for (int i = 0; i < CROWD; i++) {
		fds[i] = connect_client();
		passes(1);
	}
	passes(8);
	EXPECT_EQ(t.net->shown.connections, CROWD + 1);
	for (int i = 0; i < CROWD; i++)
		EXPECT_EQ(send(fds[i], "QUIT\r\n", 6, 0), 6);
	for (int i = 0; i < 1000 && load_relaxed(&t.net->shown.connections) > 1; i++)
		passes(1);
	EXPECT_EQ(t.net->shown.connections, 1);
	for (int i = 0; i < CROWD; i++) {
		EXPECT(strcmp(heard_by(fds[i]), "+OK\r\n") == 0);
		close(fds[i]);
	}
	close_all();
}

static void *answer_elsewhere(void *arg)
{
	noh_counter_added a = { .outcome = NOH_COUNTER_OK, .value = 42, .applied = 1 };

	(void)arg;
	for (uint32_t i = 0; i < t.count; i++)
		(void)net_answer_late(t.net, t.tokens[i], 0, NOH_OK, &a, sizeof a);
	return NULL;
}

static void answers_of_other_threads_find_their_way(void)
{
	pthread_t thread;

	open_all(0);
	say("INCR a\r\nMGET a b\r\n");
	t.count = 1;
	pthread_create(&thread, NULL, answer_elsewhere, NULL);
	pthread_join(thread, NULL);
	EXPECT(net_pending(t.net));
	EXPECT(hears(":42\r\n"));
	net_answer(t.net, t.tokens[1], 0, NOH_EFAILED, NULL, 0);
	net_answer(t.net, t.tokens[2], 0, NOH_EFAILED, NULL, 0);
	EXPECT(strncmp(heard_by(t.client), "-FAILED", 7) == 0);
	close_all();
}

static void a_client_that_hangs_up_after_asking_is_answered(void)
{
	open_all(0);
	say("INCR a\r\nPING\r\n");
	shutdown(t.client, SHUT_WR);
	passes(4);
	EXPECT_EQ(t.net->shown.connections, 1);
	answer(0, 1, 2);
	EXPECT(hears(""));
	set_durable(2);
	EXPECT(hears(":1\r\n+PONG\r\n"));
	passes(4);
	EXPECT_EQ(t.net->shown.connections, 0);
	close_all();
}

static void stopping_answers_what_was_asked_and_reads_no_more(void)
{
	open_all(0);
	say("INCR a\r\n");
	server_stop(t.server);
	EXPECT(net_pending(t.net));
	say("INCR b\r\n");
	EXPECT_EQ(t.count, 1);
	EXPECT(!server_idle(t.server));
	answer(0, 1, 0);
	t.now_ms += 200;
	EXPECT(hears(":1\r\n"));
	t.now_ms += 200;
	passes(4);
	EXPECT_EQ(t.net->shown.connections, 0);
	EXPECT(server_idle(t.server));
	close_all();
}

#define BOTH(name)                                                                                 \
	static void name##_with_io_uring(void)                                                     \
	{                                                                                          \
		if (io_uring_missing()) {                                                          \
			test_skip(io_uring_missing());                                             \
			return;                                                                    \
		}                                                                                  \
		io_wanted = NOH_IO_URING;                                                          \
		name();                                                                            \
	}                                                                                          \
	static void name##_with_epoll(void)                                                        \
	{                                                                                          \
		io_wanted = NOH_IO_EPOLL;                                                          \
		name();                                                                            \
	}
BOTH(replies_keep_the_order_of_the_commands)
BOTH(a_reply_waits_until_it_is_on_disk)
BOTH(an_error_read_from_state_waits_as_well)
BOTH(whoever_is_gone_leaves_nothing_behind)
BOTH(a_command_without_an_answer_times_out)
BOTH(a_full_mailbox_holds_its_connection_and_no_other)
BOTH(a_mailbox_that_stays_full_is_an_error_in_the_end)
BOTH(too_many_unanswered_are_not_read_further)
BOTH(what_tells_of_others_waits_for_what_was_asked_before)
BOTH(a_client_that_is_held_and_goes_leaves_nothing_behind)
BOTH(a_crowd_may_leave_at_once)
BOTH(answers_of_other_threads_find_their_way)
BOTH(a_client_that_hangs_up_after_asking_is_answered)
BOTH(stopping_answers_what_was_asked_and_reads_no_more)

TEST_MAIN(
	TEST(replies_keep_the_order_of_the_commands_with_io_uring),
	TEST(replies_keep_the_order_of_the_commands_with_epoll),
	TEST(a_reply_waits_until_it_is_on_disk_with_io_uring, "P5 US-08"),
	TEST(a_reply_waits_until_it_is_on_disk_with_epoll, "P5"),
	TEST(an_error_read_from_state_waits_as_well_with_io_uring, "P5"),
	TEST(an_error_read_from_state_waits_as_well_with_epoll, "P5"),
	TEST(whoever_is_gone_leaves_nothing_behind_with_io_uring, "P11"),
	TEST(whoever_is_gone_leaves_nothing_behind_with_epoll, "P11"),
	TEST(a_command_without_an_answer_times_out_with_io_uring),
	TEST(a_command_without_an_answer_times_out_with_epoll),
	TEST(a_full_mailbox_holds_its_connection_and_no_other_with_io_uring, "MB-05 P11"),
	TEST(a_full_mailbox_holds_its_connection_and_no_other_with_epoll, "MB-05 P11"),
	TEST(a_mailbox_that_stays_full_is_an_error_in_the_end_with_io_uring, "MB-05 P8"),
	TEST(a_mailbox_that_stays_full_is_an_error_in_the_end_with_epoll, "MB-05 P8"),
	TEST(too_many_unanswered_are_not_read_further_with_io_uring, "P11"),
	TEST(too_many_unanswered_are_not_read_further_with_epoll, "P11"),
	TEST(what_tells_of_others_waits_for_what_was_asked_before_with_io_uring, "P3"),
	TEST(what_tells_of_others_waits_for_what_was_asked_before_with_epoll, "P3"),
	TEST(a_client_that_is_held_and_goes_leaves_nothing_behind_with_io_uring, "P11"),
	TEST(a_client_that_is_held_and_goes_leaves_nothing_behind_with_epoll, "P11"),
	TEST(a_crowd_may_leave_at_once_with_io_uring, "P11"),
	TEST(a_crowd_may_leave_at_once_with_epoll, "P11"),
	TEST(answers_of_other_threads_find_their_way_with_io_uring),
	TEST(answers_of_other_threads_find_their_way_with_epoll),
	TEST(a_client_that_hangs_up_after_asking_is_answered_with_io_uring),
	TEST(a_client_that_hangs_up_after_asking_is_answered_with_epoll),
	TEST(stopping_answers_what_was_asked_and_reads_no_more_with_io_uring),
	TEST(stopping_answers_what_was_asked_and_reads_no_more_with_epoll))
