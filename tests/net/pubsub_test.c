/* tests/net/pubsub_test.c - publish and subscribe as clients see it: byte by byte, over real sockets, with RESP2 and
 * RESP3, on both io backends. */
#include "tests/box/kit.h"

#include "box/box.h"
#include "tests/box/durable_kit.h"

#include "noh_actors.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ── an actor that answers when it is told to, and one that hears ── */

enum { WAIT, GO, SAY, SAY_EPOCH, SAY_NEXT };

static int on_message(noh_turn *t, const noh_msg *m)
{
	noh_promise *kept = noh_state(t);

	switch (m->kind) {
	case WAIT:
		*kept = noh_defer(t, m);
		return NOH_OK;
	case GO:
		return noh_answer(t, *kept, NOH_OK, "went", 4);
	case SAY:
		return noh_publish(t, "news", m->body, m->len);
	case SAY_NEXT: {
		char text[32];

		return noh_publish(t, "n", text, (size_t)sprintf(text, "%07u", (unsigned)kept->bits++));
	}
	case SAY_EPOCH: {                        /* its record is not in a frame before this one */
		struct sched_journal *j = &noh_turn_box(t)->sched.journal;
		char text[32];
		int n = sprintf(text, "%010llu", (unsigned long long)j->epoch(j->arg));

		kept->bits++;
		return noh_publish(t, "news", text, (size_t)n);
	}
	}
	return NOH_EKIND;
}

static atomic_u64 heard;
static char heard_text[64];
static pthread_mutex_t heard_lock = PTHREAD_MUTEX_INITIALIZER;

static bool heard_last(const char *text)
{
	bool same;

	pthread_mutex_lock(&heard_lock);
	same = strcmp(heard_text, text) == 0;
	pthread_mutex_unlock(&heard_lock);
	return same;
}

static int on_hear(noh_turn *t, const noh_msg *m)
{
	pthread_mutex_lock(&heard_lock);
	snprintf(heard_text, sizeof heard_text, "%s %.*s", noh_channel(t, m) ? noh_channel(t, m) : "-", (int)m->len,
		 (const char *)m->body);
	pthread_mutex_unlock(&heard_lock);
	add_seq_cst(&heard, 1);
	return NOH_OK;
}

static const noh_kind slow_kinds[] = { { .name = "wait" }, { .name = "go" }, { .name = "say" },
				       { .name = "say_epoch" }, { .name = "say_next" } };
static const noh_kind ear_kinds[] = { { .name = "event" }, { .name = "mail", .flags = NOH_KIND_PERSONAL } };
static const noh_topic ear_topics[] = { { "news", 0 } };
static const noh_type slow = { .name = "slow", .state_size = sizeof(noh_promise), .on_message = on_message,
			       .kinds = slow_kinds, .kind_count = 5, .full_mode = NOH_BLOCK };
static const noh_type ear = { .name = "ear", .on_message = on_hear, .kinds = ear_kinds, .kind_count = 2,
			      .topics = ear_topics, .topic_count = 1 };

/* ── a server ── */

static struct { noh_box *box; char path[100]; int io; unsigned workers; noh_listen_options more; const char *dir; int port; unsigned dialled; } server;

/* One that is free at this moment. */
static int free_port(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	EXPECT(bind(fd, (struct sockaddr *)&at, len) == 0 && getsockname(fd, (struct sockaddr *)&at, &len) == 0);
	(void)close(fd);
	return ntohs(at.sin_port);
}

static void serve(void)
{
	noh_listen_options o = server.more;
	noh_options box = kit_options(server.workers);

	snprintf(server.path, sizeof server.path, "/tmp/noh-pubsub-%d.sock", (int)getpid());
	box.dir = server.dir;
	o.resp_port = server.port = free_port();
	o.unix_path = server.path;
	o.io = server.io;
	server.box = kit_open(&box, TYPES(noh_counter_type(), &slow, &ear));
	EXPECT_EQ(noh_listen(server.box, &o), NOH_OK);
	EXPECT_EQ(noh_start(server.box), NOH_OK);
}

static void unserve(void)
{
	end(server.box);
}

/* ── a client ── */

struct client { int fd; size_t len; char bytes[1 << 16]; };

/* By TCP, where workers take turns, and now and then by the Unix socket. */
static struct client *dial(void)
{
	struct client *c = calloc(1, sizeof *c);
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	struct sockaddr_in tcp = { .sin_family = AF_INET, .sin_port = htons((uint16_t)server.port),
				   .sin_addr = { htonl(INADDR_LOOPBACK) } };
	bool near = server.dialled++ % 4 == 0;

	snprintf(local.sun_path, sizeof local.sun_path, "%s", server.path);
	c->fd = socket(near ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	EXPECT_EQ(near ? connect(c->fd, (struct sockaddr *)&local, sizeof local)
		       : connect(c->fd, (struct sockaddr *)&tcp, sizeof tcp), 0);
	return c;
}

static void hang_up(struct client *c)
{
	(void)close(c->fd);
	free(c);
}

static void say(struct client *c, const char *format, ...)
{
	char text[8192];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	EXPECT(n > 0 && (size_t)n < sizeof text && write(c->fd, text, (size_t)n) == n);
}

/* More bytes, or false: it was closed, or nothing came for long. */
static bool more(struct client *c, int ms)
{
	struct pollfd p = { c->fd, POLLIN, 0 };
	ssize_t n = poll(&p, 1, ms) > 0 ? read(c->fd, c->bytes + c->len, sizeof c->bytes - c->len) : -1;

	if (n > 0)
		c->len += (size_t)n;
	return n > 0;
}

static void used(struct client *c, size_t len)
{
	c->len -= len;
	memmove(c->bytes, c->bytes + len, c->len);
}

static bool hears(struct client *c, const char *text, const char *file, int line)
{
	size_t len = strlen(text);

	while (c->len < len && more(c, SOON))
		;
	if (c->len < len || memcmp(c->bytes, text, len) != 0) {
		test_failed(file, line, "heard '%.*s' and not '%s'", (int)c->len, c->bytes, text);
		c->len = 0;
		return false;
	}
	used(c, len);
	return true;
}
#define HEARS(c, text) hears(c, text, __FILE__, __LINE__)

static bool is_closed(struct client *c)
{
	while (more(c, SOON))
		c->len = 0;
	return recv(c->fd, c->bytes, 1, MSG_DONTWAIT) == 0 || errno != EAGAIN;
}

#define SUB(what, name, n) "*3\r\n$" what "\r\n" name "\r\n:" n "\r\n"
#define PUSH(what, name, n) ">3\r\n$" what "\r\n" name "\r\n:" n "\r\n"

/* ── tests ── */

static void replies_are_those_of_redis(void)
{
	struct client *c;

	serve();
	c = dial();
	say(c, "SUBSCRIBE a b a\r\n");
	HEARS(c, SUB("9\r\nsubscribe", "$1\r\na", "1") SUB("9\r\nsubscribe", "$1\r\nb", "2")
		 SUB("9\r\nsubscribe", "$1\r\na", "2"));
	say(c, "PSUBSCRIBE x*\r\nUNSUBSCRIBE nobody b\r\n");
	HEARS(c, SUB("10\r\npsubscribe", "$2\r\nx*", "3") SUB("11\r\nunsubscribe", "$6\r\nnobody", "3")
		 SUB("11\r\nunsubscribe", "$1\r\nb", "2"));
	say(c, "UNSUBSCRIBE\r\nUNSUBSCRIBE\r\nPUNSUBSCRIBE\r\nPUNSUBSCRIBE\r\n");
	HEARS(c, SUB("11\r\nunsubscribe", "$1\r\na", "1") SUB("11\r\nunsubscribe", "$-1", "1")
		 SUB("12\r\npunsubscribe", "$2\r\nx*", "0") SUB("12\r\npunsubscribe", "$-1", "0"));
	say(c, "HELLO 3\r\n");
	while (!memmem(c->bytes, c->len, "modules\r\n*0\r\n", 13) && more(c, SOON))
		;
	c->len = 0;
	say(c, "SUBSCRIBE a\r\nGET k\r\nUNSUBSCRIBE\r\nUNSUBSCRIBE\r\n");
	HEARS(c, PUSH("9\r\nsubscribe", "$1\r\na", "1") "_\r\n" PUSH("11\r\nunsubscribe", "$1\r\na", "0"));
	HEARS(c, ">3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n");
	hang_up(c);
	unserve();
}

static void a_resp2_listener_may_do_little_else(void)
{
	struct client *c;

	serve();
	c = dial();
	say(c, "PING\r\nSUBSCRIBE a\r\nGET k\r\nPING\r\nPING hi\r\nCLIENT LIST\r\n");
	HEARS(c, "+PONG\r\n" SUB("9\r\nsubscribe", "$1\r\na", "1"));
	HEARS(c, "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in "
		 "this context\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n*2\r\n$4\r\npong\r\n$2\r\nhi\r\n");
	HEARS(c, "-ERR Can't execute 'client|list': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
		 "allowed in this context\r\n");
	say(c, "RESET\r\nGET k\r\nPING\r\nPUBSUB NUMSUB a\r\n");
	HEARS(c, "+RESET\r\n$-1\r\n+PONG\r\n*2\r\n$1\r\na\r\n:0\r\n");
	say(c, "SUBSCRIBE a\r\nQUIT\r\n");
	HEARS(c, SUB("9\r\nsubscribe", "$1\r\na", "1") "+OK\r\n");
	EXPECT(is_closed(c));
	hang_up(c);
	unserve();
}

static void messages_come_by_channel_and_by_pattern(void)
{
	struct client *two, *three, *p;

	serve();
	two = dial();
	three = dial();
	p = dial();
	say(two, "SUBSCRIBE news\r\nPSUBSCRIBE n?w* [a-c]\r\n");
	HEARS(two, SUB("9\r\nsubscribe", "$4\r\nnews", "1") SUB("10\r\npsubscribe", "$4\r\nn?w*", "2")
		   SUB("10\r\npsubscribe", "$5\r\n[a-c]", "3"));
	say(three, "HELLO 3\r\nSUBSCRIBE news\r\n");
	while (!memmem(three->bytes, three->len, "news\r\n:1\r\n", 10) && more(three, SOON))
		;
	three->len = 0;
	say(p, "PUBLISH news hello\r\nPUBLISH b x\r\nPUBLISH d x\r\nPUBLISH news \"\"\r\n");
	HEARS(p, ":3\r\n:1\r\n:0\r\n:3\r\n");
	HEARS(two, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n"
		   "*4\r\n$8\r\npmessage\r\n$4\r\nn?w*\r\n$4\r\nnews\r\n$5\r\nhello\r\n"
		   "*4\r\n$8\r\npmessage\r\n$5\r\n[a-c]\r\n$1\r\nb\r\n$1\r\nx\r\n"
		   "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$0\r\n\r\n"
		   "*4\r\n$8\r\npmessage\r\n$4\r\nn?w*\r\n$4\r\nnews\r\n$0\r\n\r\n");
	HEARS(three, ">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n>3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$0\r\n\r\n");
	say(p, "PUBSUB CHANNELS\r\nPUBSUB CHANNELS x*\r\nPUBSUB NUMSUB news b\r\nPUBSUB NUMPAT\r\n");
	HEARS(p, "*1\r\n$4\r\nnews\r\n*0\r\n*4\r\n$4\r\nnews\r\n:2\r\n$1\r\nb\r\n:0\r\n:2\r\n");
	hang_up(two);
	hang_up(three);
	hang_up(p);
	unserve();
}

static void who_publishes_to_himself_gets_the_reply_first(void)
{
	struct client *c;

	serve();
	c = dial();
	say(c, "HELLO 3\r\nSUBSCRIBE me\r\n");
	while (!memmem(c->bytes, c->len, "me\r\n:1\r\n", 8) && more(c, SOON))
		;
	c->len = 0;
	say(c, "PUBLISH me a\r\nPUBLISH me b\r\n");
	HEARS(c, ":1\r\n>3\r\n$7\r\nmessage\r\n$2\r\nme\r\n$1\r\na\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$2\r\nme\r\n$1\r\nb\r\n");
	/* Muted, the reply goes, and the message comes. */
	say(c, "CLIENT REPLY OFF\r\nPUBLISH me c\r\nSUBSCRIBE o\r\nCLIENT REPLY ON\r\n");
	HEARS(c, ">3\r\n$7\r\nmessage\r\n$2\r\nme\r\n$1\r\nc\r\n" PUSH("9\r\nsubscribe", "$1\r\no", "2") "+OK\r\n");
	hang_up(c);
	unserve();
}

static bool handled_by(noh_box *box, const char *type, uint64_t count)
{
	noh_type_stats s = { .handled = 0 };

	for (int ms = 0; ms < SOON && noh_get_type_stats(box, type, &s) == NOH_OK && s.handled < count; ms++)
		usleep(1000);
	return s.handled >= count;
}

/* A client that sends commands and SUBSCRIBE in one go, and does not know RESP3, takes whatever comes for the
 * answer it waits for. */
static void a_push_never_overtakes_a_reply(void)
{
	struct client *c, *p;

	serve();
	c = dial();
	p = dial();
	say(c, "ACTOR.INVOKE slow:1 wait x\r\nSUBSCRIBE news\r\n");
	for (bool there = false; !there; ) {
		say(p, "PUBSUB NUMSUB news\r\n");
		while (p->len < 18 && more(p, SOON))
			;
		there = memcmp(p->bytes, "*2\r\n$4\r\nnews\r\n:1\r\n", 18) == 0;
		p->len = 0;
	}
	say(p, "PUBLISH news early\r\nPUBLISH news too\r\n");
	HEARS(p, ":1\r\n:1\r\n");
	EXPECT(handled_by(server.box, "slow", 1));       /* subscribed is not yet: what was asked before it is there */
	EXPECT_EQ(call(server.box, "slow:1", GO), NOH_OK);
	HEARS(c, "$4\r\nwent\r\n" SUB("9\r\nsubscribe", "$4\r\nnews", "1")
		 "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nearly\r\n*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$3\r\ntoo\r\n");
	hang_up(c);
	hang_up(p);
	unserve();
}

/* What one connection sends to an actor and publishes to it comes in that order; who hears of something finds it
 * done, on whatever connection he looks. */
static void what_was_asked_before_a_publish_is_done_before_it(void)
{
	struct client *c, *p, *r;

	serve();
	c = dial();
	p = dial();
	r = dial();
	EXPECT_EQ(noh_activate(server.box, "ear:1", SOON), NOH_OK);
	for (uint64_t i = 1; i <= 20; i++) {
		store_seq_cst(&heard, 0);
		say(p, "ACTOR.SEND ear:1 event first\r\nPUBLISH news second\r\n");
		HEARS(p, "+OK\r\n:1\r\n");
		EXPECT(reaches(&heard, 2));
		EXPECT(heard_last("news second"));
	}
	say(c, "SUBSCRIBE done\r\n");
	HEARS(c, SUB("9\r\nsubscribe", "$4\r\ndone", "1"));
	for (int i = 10; i < 60; i++) {
		char expected[32];

		say(p, "SET k %d\r\nPUBLISH done %d\r\n", i, i);
		snprintf(expected, sizeof expected, "$2\r\n%d\r\n", i);
		HEARS(c, "*3\r\n$7\r\nmessage\r\n$4\r\ndone\r\n");
		HEARS(c, expected);
		say(r, "GET k\r\n");
		HEARS(r, expected);
		HEARS(p, "+OK\r\n:1\r\n");
	}
	hang_up(c);
	hang_up(p);
	hang_up(r);
	unserve();
}

#define EARS 20
#define EACH 2000

/* Two publishers, each with its own numbers: every listener hears each of them in order, and all of it. */
static void every_listener_hears_everything_in_order(void)
{
	struct client *ears[EARS], *p[2];
	char text[64 * 128];

	FOR_WORKERS(n) {
		server.workers = n;
		serve();
		for (int i = 0; i < EARS; i++) {
			ears[i] = dial();
			say(ears[i], i % 4 ? "SUBSCRIBE n\r\n" : "PSUBSCRIBE n\r\n");
			HEARS(ears[i], i % 4 ? SUB("9\r\nsubscribe", "$1\r\nn", "1") : SUB("10\r\npsubscribe", "$1\r\nn", "1"));
		}
		p[0] = dial();
		p[1] = dial();
		for (int k = 0; k < EACH; k += 50) {
			for (int w = 0; w < 2; w++) {
				size_t at = 0;

				for (int i = 0; i < 50; i++)
					at += (size_t)sprintf(text + at, "PUBLISH n %c%06d\r\n", 'a' + w, k + i);
				EXPECT(write(p[w]->fd, text, at) == (ssize_t)at);
			}
			for (int w = 0; w < 2; w++)
				for (int i = 0; i < 50; i++)
					HEARS(p[w], ":20\r\n");
			for (int e = 0; e < EARS; e++) {
				int next[2] = { k, k };

				for (int i = 0; i < 100; i++) {
					char *body;
					int w;

					HEARS(ears[e], e % 4 ? "*3\r\n$7\r\nmessage\r\n$1\r\nn\r\n$7\r\n"
							     : "*4\r\n$8\r\npmessage\r\n$1\r\nn\r\n$1\r\nn\r\n$7\r\n");
					while (ears[e]->len < 9 && more(ears[e], SOON))
						;
					body = ears[e]->bytes;
					w = body[0] - 'a';
					body[7] = 0;
					if (!EXPECT(w == 0 || w == 1) || !EXPECT_EQ(atoi(body + 1), next[w]++))
						break;
					used(ears[e], 9);
				}
			}
		}
		for (int i = 0; i < EARS; i++)
			hang_up(ears[i]);
		hang_up(p[0]);
		hang_up(p[1]);
		unserve();
	}
	server.workers = 2;
}

#define MOUTHS 8
#define WORDS 100
#define WORD "ACTOR.SEND slow:1 say_next x\r\n"

/* Its turns run where its messages come in, so it speaks now on this worker, now on that. */
static void an_actor_that_moves_is_heard_in_order(void)
{
	struct client *ears[EARS], *p[MOUTHS];
	int rounds = (int)test_size(40, 6);

	serve();
	for (int i = 0; i < EARS; i++) {
		ears[i] = dial();
		say(ears[i], "SUBSCRIBE n\r\n");
		HEARS(ears[i], SUB("9\r\nsubscribe", "$1\r\nn", "1"));
	}
	for (int i = 0; i < MOUTHS; i++)
		p[i] = dial();
	for (int round = 0; round < rounds; round++) {
		for (int w = 0; w < WORDS; w += 5)
			for (int i = 0; i < MOUTHS; i++)
				say(p[i], "%s%s%s%s%s", WORD, WORD, WORD, WORD, WORD);
		for (int i = 0; i < MOUTHS; i++)
			for (int w = 0; w < WORDS; w++)
				HEARS(p[i], "+OK\r\n");
		for (int e = 0; e < EARS; e++)
			for (int w = 0; w < MOUTHS * WORDS; w++) {
				HEARS(ears[e], "*3\r\n$7\r\nmessage\r\n$1\r\nn\r\n$7\r\n");
				while (ears[e]->len < 9 && more(ears[e], SOON))
					;
				ears[e]->bytes[7] = 0;
				if (!EXPECT_EQ(atoi(ears[e]->bytes), round * MOUTHS * WORDS + w))
					break;
				used(ears[e], 9);
			}
	}
	for (int i = 0; i < EARS; i++)
		hang_up(ears[i]);
	for (int i = 0; i < MOUTHS; i++)
		hang_up(p[i]);
	unserve();
}

static bool nobody_listens(void *arg)
{
	struct client *p = arg;
	bool none;

	say(p, "PUBSUB NUMSUB a b\r\nPUBSUB NUMPAT\r\n");
	while (p->len < 30 && more(p, SOON))
		;
	none = memcmp(p->bytes, "*4\r\n$1\r\na\r\n:0\r\n$1\r\nb\r\n:0\r\n:0\r\n", 30) == 0;
	p->len = 0;
	return none;
}

static void who_hangs_up_listens_no_more(void)
{
	struct client *c[6], *p;

	serve();
	p = dial();
	for (int i = 0; i < 6; i++) {
		c[i] = dial();
		say(c[i], "SUBSCRIBE a b\r\nPSUBSCRIBE c*\r\n");
		HEARS(c[i], SUB("9\r\nsubscribe", "$1\r\na", "1") SUB("9\r\nsubscribe", "$1\r\nb", "2")
			    SUB("10\r\npsubscribe", "$2\r\nc*", "3"));
	}
	say(p, "PUBLISH a x\r\nPUBLISH cx x\r\n");
	HEARS(p, ":6\r\n:6\r\n");
	for (int i = 0; i < 6; i++)
		hang_up(c[i]);
	EXPECT(test_wait_until(nobody_listens, p, SOON));
	say(p, "PUBSUB CHANNELS\r\nPUBLISH a x\r\n");
	HEARS(p, "*0\r\n:0\r\n");
	hang_up(p);
	unserve();
}

/* One client does not read: it alone is cut off, and the other one gets everything. */
static void a_slow_listener_is_cut_off(void)
{
	struct client *lazy, *good, *p;
	char body[1000];
	noh_net_stats s;

	server.more = (noh_listen_options){ .max_subscriber_bytes = 128 << 10 };
	serve();
	server.dialled = 0;              /* by the Unix socket: TCP's own buffers would hold all of it */
	lazy = dial();
	good = dial();
	p = dial();
	memset(body, 'x', sizeof body - 1);
	body[sizeof body - 1] = 0;
	say(lazy, "SUBSCRIBE a\r\n");
	HEARS(lazy, SUB("9\r\nsubscribe", "$1\r\na", "1"));
	say(good, "SUBSCRIBE a\r\n");
	HEARS(good, SUB("9\r\nsubscribe", "$1\r\na", "1"));
	for (int i = 0; i < 3000; i++) {
		say(p, "PUBLISH a %s\r\n", body);
		while (p->len < 4 && more(p, SOON))
			;
		EXPECT(p->bytes[0] == ':' && (p->bytes[1] == '1' || p->bytes[1] == '2'));
		p->len = 0;
		HEARS(good, "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$999\r\n");
		HEARS(good, body);
		HEARS(good, "\r\n");
	}
	EXPECT(is_closed(lazy));
	EXPECT_EQ(noh_get_net_stats(server.box, &s), NOH_OK);
	EXPECT_EQ(s.closed_slow, 1);
	EXPECT_EQ(s.pushes_dropped, 0);
	EXPECT(s.pushed >= 3000);
	say(p, "PUBLISH a x\r\n");
	HEARS(p, ":1\r\n");
	hang_up(lazy);
	hang_up(good);
	hang_up(p);
	unserve();
	server.more = (noh_listen_options){ 0 };
}

#define LONE_EARS 12
#define LONE 200

static uint64_t wakeups(uint32_t worker)
{
	return load_relaxed(&server.box->sched.workers[worker].shown.counts.wakeups);
}

/* One message at a time: the worker that has it sends it to the clients of the other one, too, which sleeps on. */
static void a_lone_message_wakes_no_other_worker(void)
{
	struct client *ears[LONE_EARS], *p;
	uint64_t before[2], woke[2];

	serve();
	for (int i = 0; i < LONE_EARS; i++) {
		ears[i] = dial();
		if (i % 2) {
			say(ears[i], "HELLO 3\r\nSUBSCRIBE n\r\n");
			while (!memmem(ears[i]->bytes, ears[i]->len, "n\r\n:1\r\n", 7) && more(ears[i], SOON))
				;
			ears[i]->len = 0;
		} else {
			say(ears[i], "SUBSCRIBE n\r\n");
			HEARS(ears[i], SUB("9\r\nsubscribe", "$1\r\nn", "1"));
		}
	}
	p = dial();
	say(p, "PING\r\n");
	HEARS(p, "+PONG\r\n");
	for (uint32_t w = 0; w < 2; w++)
		before[w] = wakeups(w);
	for (int k = 0; k < LONE; k++) {
		char text[64];

		say(p, "PUBLISH n %05d\r\n", k);
		HEARS(p, ":12\r\n");
		for (int i = 0; i < LONE_EARS; i++) {
			sprintf(text, "%c3\r\n$7\r\nmessage\r\n$1\r\nn\r\n$5\r\n%05d\r\n", i % 2 ? '>' : '*', k);
			HEARS(ears[i], text);
		}
	}
	for (uint32_t w = 0; w < 2; w++)
		woke[w] = wakeups(w) - before[w];
	EXPECT(woke[0] < LONE / 2 || woke[1] < LONE / 2);
	for (int i = 0; i < LONE_EARS; i++)
		hang_up(ears[i]);
	hang_up(p);
	unserve();
}

#define LONG_BODY 7000
#define LONG_EARS 6

/* Sockets that take only a part of it: the rest comes all the same, behind it, and before what is published later. */
static void a_lone_message_that_does_not_fit_comes_whole(void)
{
	static char body[LONG_BODY + 1];
	struct client *ears[LONG_EARS], *p;
	char head[64];

	serve();
	for (int i = 0; i < LONG_EARS; i++) {
		server.dialled = 0;              /* by the Unix socket: it holds little */
		ears[i] = dial();
		say(ears[i], "SUBSCRIBE n\r\n");
		HEARS(ears[i], SUB("9\r\nsubscribe", "$1\r\nn", "1"));
	}
	p = dial();
	for (int k = 0; k < LONE; k++) {
		memset(body, 'a' + k % 26, LONG_BODY);
		say(p, "PUBLISH n %s\r\n", body);
		HEARS(p, ":6\r\n");
	}
	sprintf(head, "*3\r\n$7\r\nmessage\r\n$1\r\nn\r\n$%d\r\n", LONG_BODY);
	for (int i = 0; i < LONG_EARS; i++)
		for (int k = 0; k < LONE; k++) {
			memset(body, 'a' + k % 26, LONG_BODY);
			if (!HEARS(ears[i], head) || !HEARS(ears[i], body) || !HEARS(ears[i], "\r\n"))
				break;
		}
	for (int i = 0; i < LONG_EARS; i++)
		hang_up(ears[i]);
	hang_up(p);
	unserve();
}

static void what_a_client_can_make_grow_has_a_limit(void)
{
	char name[600];
	struct client *c;

	server.more = (noh_listen_options){ .max_subscriptions = 3 };
	serve();
	c = dial();
	memset(name, 'n', 513);
	name[513] = 0;
	say(c, "SUBSCRIBE a %s\r\nPSUBSCRIBE %s\r\nPUBLISH %s x\r\n", name, name, name);
	HEARS(c, "-ERR a channel's name has at most 512 bytes, this one has 513\r\n"
		 "-ERR a pattern has at most 512 bytes, this one has 513\r\n"
		 "-ERR a channel's name has at most 512 bytes, this one has 513\r\n");
	say(c, "SUBSCRIBE a b\r\nPSUBSCRIBE c d\r\nSUBSCRIBE %s\r\n", name + 1);
	HEARS(c, SUB("9\r\nsubscribe", "$1\r\na", "1") SUB("9\r\nsubscribe", "$1\r\nb", "2")
		 "-ERR too many subscriptions: a connection can have 3, this one has 2 and asks for 2 more; unsubscribe, or "
		 "use another connection\r\n*3\r\n$9\r\nsubscribe\r\n$512\r\n");
	HEARS(c, name + 1);
	HEARS(c, "\r\n:3\r\n");
	hang_up(c);
	unserve();
	server.more = (noh_listen_options){ 0 };
}

static void others_see_who_listens(void)
{
	struct client *c, *p;

	serve();
	c = dial();
	p = dial();
	say(c, "SUBSCRIBE a b\r\nPSUBSCRIBE c\r\n");
	HEARS(c, SUB("9\r\nsubscribe", "$1\r\na", "1") SUB("9\r\nsubscribe", "$1\r\nb", "2")
		 SUB("10\r\npsubscribe", "$1\r\nc", "3"));
	say(p, "CLIENT LIST TYPE pubsub\r\n");
	while (!memmem(p->bytes, p->len, "\r\n", 2) || !memmem(p->bytes, p->len, "\n\r\n", 3))
		if (!EXPECT(more(p, SOON)))
			break;
	EXPECT(memmem(p->bytes, p->len, " flags=P ", 9) != NULL);
	EXPECT(memmem(p->bytes, p->len, " sub=2 psub=1 ", 14) != NULL);
	hang_up(c);
	hang_up(p);
	unserve();
}

static void actors_and_clients_hear_each_other(void)
{
	struct client *c, *p;

	serve();
	store_seq_cst(&heard, 0);
	c = dial();
	p = dial();
	say(c, "SUBSCRIBE news actor.personal.ear.2\r\n");
	HEARS(c, SUB("9\r\nsubscribe", "$4\r\nnews", "1") SUB("9\r\nsubscribe", "$20\r\nactor.personal.ear.2", "2"));
	EXPECT_EQ(noh_activate(server.box, "ear:1", SOON), NOH_OK);
	say(p, "PUBLISH news hi\r\nPUBSUB NUMSUB news\r\n");
	HEARS(p, ":2\r\n*2\r\n$4\r\nnews\r\n:2\r\n");
	HEARS(c, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n");
	EXPECT(reaches(&heard, 1));
	EXPECT(heard_last("news hi"));
	/* An actor's turn, and a thread. */
	say(p, "ACTOR.SEND slow:1 say ho\r\n");
	HEARS(p, "+OK\r\n");
	HEARS(c, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nho\r\n");
	EXPECT(reaches(&heard, 2));
	EXPECT_EQ(noh_publish_to(server.box, "news", "he", 2), 2);
	HEARS(c, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhe\r\n");
	EXPECT(reaches(&heard, 3));
	/* The personal channel wakes who sleeps; others may listen to it. */
	EXPECT_EQ(status_of(server.box, "ear:2").life, NOH_NOT_ACTIVE);
	say(p, "PUBLISH actor.personal.ear.2 you\r\n");
	HEARS(p, ":2\r\n");
	HEARS(c, "*3\r\n$7\r\nmessage\r\n$20\r\nactor.personal.ear.2\r\n$3\r\nyou\r\n");
	EXPECT_EQ(load_seq_cst(&heard), 4);      /* answered when its turn is over */
	EXPECT(heard_last("- you"));
	EXPECT_EQ(status_of(server.box, "ear:2").life, NOH_ACTIVE);
	say(p, "PUBLISH actor.personal.slow.2 x\r\nPUBLISH actor.personal.none.2 x\r\nPUBLISH actor.personal.ear. x\r\n");
	HEARS(p, ":0\r\n:0\r\n:0\r\n");
	EXPECT_EQ(status_of(server.box, "slow:2").life, NOH_NOT_ACTIVE);
	hang_up(c);
	hang_up(p);
	unserve();
}

/* What a client is told of a turn is on disk: P5 for pushes. */
static void a_push_waits_for_the_disk(void)
{
	struct client *c[4];
	char dir[256];

	server.dir = fresh_dir(dir, sizeof dir);
	serve();
	for (int i = 0; i < 4; i++) {
		c[i] = dial();
		say(c[i], "SUBSCRIBE news\r\n");
		HEARS(c[i], SUB("9\r\nsubscribe", "$4\r\nnews", "1"));
	}
	for (int k = 0; k < 50; k++) {
		EXPECT_EQ(noh_send(server.box, "slow:1", SAY_EPOCH, NULL, 0), NOH_OK);
		for (int i = 0; i < 4; i++) {
			uint64_t durable, epoch;

			HEARS(c[i], "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$10\r\n");
			while (c[i]->len < 12 && more(c[i], SOON))
				;
			durable = load_acquire(&server.box->sched.durable);
			epoch = strtoull(c[i]->bytes, NULL, 10);
			EXPECT(epoch > 0 && durable >= epoch);
			used(c[i], 12);
		}
	}
	for (int i = 0; i < 4; i++)
		hang_up(c[i]);
	unserve();
	server.dir = NULL;
	remove_dir(dir);
}

/* ── all of it, on both backends ── */

#define ALL(X)                                                                                              \
	X(replies_are_those_of_redis) X(a_resp2_listener_may_do_little_else)                                \
	X(messages_come_by_channel_and_by_pattern) X(who_publishes_to_himself_gets_the_reply_first)         \
	X(a_push_never_overtakes_a_reply) X(what_was_asked_before_a_publish_is_done_before_it)              \
	X(every_listener_hears_everything_in_order) X(who_hangs_up_listens_no_more)                         \
	X(a_slow_listener_is_cut_off) X(what_a_client_can_make_grow_has_a_limit) X(others_see_who_listens)  \
	X(actors_and_clients_hear_each_other) X(a_push_waits_for_the_disk) X(an_actor_that_moves_is_heard_in_order) \
	X(a_lone_message_wakes_no_other_worker) X(a_lone_message_that_does_not_fit_comes_whole)
#define ON(backend, number, test)                                                                           \
	static void backend##_##test(void)                                                                  \
	{                                                                                                   \
		server.io = number;                                                                         \
		server.workers = 2;                                                                         \
		test();                                                                                     \
	}
#define BOTH(test) ON(epoll, NOH_IO_EPOLL, test) ON(uring, NOH_IO_AUTO, test)
ALL(BOTH)

#define OF(test, ids) TEST(epoll_##test, ids), TEST(uring_##test, ids)
TEST_MAIN(
	OF(replies_are_those_of_redis, ""),
	OF(a_resp2_listener_may_do_little_else, ""),
	OF(messages_come_by_channel_and_by_pattern, ""),
	OF(who_publishes_to_himself_gets_the_reply_first, ""),
	OF(a_push_never_overtakes_a_reply, ""),
	OF(what_was_asked_before_a_publish_is_done_before_it, ""),
	OF(every_listener_hears_everything_in_order, "P3"),
	OF(who_hangs_up_listens_no_more, ""),
	OF(a_slow_listener_is_cut_off, "P8 P11"),
	OF(what_a_client_can_make_grow_has_a_limit, "P11"),
	OF(others_see_who_listens, ""),
	OF(actors_and_clients_hear_each_other, "TB-04 RT-05 RT-11"),
	OF(a_push_waits_for_the_disk, "P5"),
	OF(an_actor_that_moves_is_heard_in_order, "P3"),
	OF(a_lone_message_wakes_no_other_worker, ""),
	OF(a_lone_message_that_does_not_fit_comes_whole, ""))
