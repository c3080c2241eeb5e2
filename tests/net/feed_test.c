/* tests/net/feed_test.c - events over real sockets: streams of HTTP and commands that wait, from a box that tells events; slow
 * clients, clients that go, a thousand that only listen, and the end of the server. */
#include "box/box.h"
#include "core/mem.h"
#include "net/net.h"
#include "tests/net/rest_kit.h"

#include <dirent.h>
#include <inttypes.h>
#include <sys/resource.h>

/* ── who tells ── */

enum { TELL, TELL_MANY };                  /* an event with the body as its data; as many, 4 KiB each */
static int tell_message(noh_turn *t, const noh_msg *m)
{
	static char large[4096];
	uint64_t n = 1;
	int rc = NOH_OK;

	if (m->kind == TELL)
		return noh_emit(t, &(noh_emit_options){ .kind = "told", .from = "a", .to = "b", .reason = "because", .revision = 7,
							.data = m->body, .len = m->len });
	memset(large, 'x', sizeof large);
	memcpy(&n, m->body, m->len < sizeof n ? m->len : sizeof n);
	for (uint64_t i = 0; i < n && rc == NOH_OK; i++)
		rc = noh_emit(t, &(noh_emit_options){ .kind = "large", .data = large, .len = sizeof large });
	return rc;
}

static const noh_type teller_type = { .name = "teller", .on_message = tell_message, .mailbox_capacity = 100000 };
static const noh_type other_type = { .name = "other", .on_message = tell_message };

static void open_box(struct rest *r, noh_options o, noh_listen_options l)
{
	rest_open_types(r, o, l, TYPES(&teller_type, &other_type));
}
#define FEEDS(r, ...) open_box((r), (noh_options){ .workers = 2 }, (noh_listen_options){ __VA_ARGS__ })

static void tell(struct rest *r, const char *who, const char *data)
{
	EXPECT_EQ(noh_call(r->wire.box, who, TELL, data, strlen(data), SOON, NULL, NULL), NOH_OK);
}

static void tell_many(struct rest *r, uint64_t n)
{
	for (; n; n -= n < 250 ? n : 250) {
		uint64_t some = n < 250 ? n : 250;

		EXPECT_EQ(noh_call(r->wire.box, "teller:many", TELL_MANY, &some, sizeof some, SOON, NULL, NULL), NOH_OK);
	}
}

static uint64_t newest(struct rest *r)
{
	uint64_t n = 0;

	EXPECT_EQ(noh_events_bounds(r->wire.box, NULL, &n), NOH_OK);
	return n;
}

/* ── a client ── */

struct sse {
	int    fd;
	char   head[2048];
	char   bytes[1 << 16];
	size_t len;
	char   name[32], data[1 << 15];    /* of the last event                             */
	uint64_t id;                       /* of the last event that had one                */
};

static void sse_open(struct sse *s, struct rest *r, const char *target, const char *headers)
{
	char text[1024];
	size_t got = 0;

	memset(s, 0, sizeof *s);
	s->fd = rest_dial(r);
	snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", target, headers);
	EXPECT(say(s->fd, text));
	while (got + 1 < sizeof s->head && take(s->fd, s->head + got, 1) == 1) {
		s->head[++got] = 0;
		if (got >= 4 && memcmp(s->head + got - 4, "\r\n\r\n", 4) == 0)
			break;
	}
}

static bool is_stream(const struct sse *s)
{
	return strncmp(s->head, "HTTP/1.1 200 ", 13) == 0 && strstr(s->head, "Content-Type: text/event-stream\r\n") != NULL;
}

static void read_block(struct sse *s, char *block)
{
	snprintf(s->name, sizeof s->name, "message");
	s->data[0] = 0;
	for (char *line = strtok_r(block, "\n", &block); line; line = strtok_r(NULL, "\n", &block)) {
		if (strncmp(line, "id: ", 4) == 0)
			s->id = strtoull(line + 4, NULL, 10);
		else if (strncmp(line, "event: ", 7) == 0)
			snprintf(s->name, sizeof s->name, "%s", line + 7);
		else if (strncmp(line, "data: ", 6) == 0)
			snprintf(s->data, sizeof s->data, "%s", line + 6);
	}
}

/* The next one with data. False: the end. */
static bool sse_next(struct sse *s)
{
	for (;;) {
		char *end = memmem(s->bytes, s->len, "\n\n", 2);
		static char block[1 << 16];
		ssize_t n;

		if (end) {
			size_t size = (size_t)(end - s->bytes);

			memcpy(block, s->bytes, size);
			block[size] = 0;
			s->len -= size + 2;
			memmove(s->bytes, end + 2, s->len);
			read_block(s, block);
			if (s->data[0])
				return true;
			continue;
		}
		n = s->len < sizeof s->bytes ? take(s->fd, s->bytes + s->len, sizeof s->bytes - s->len) : -1;
		if (n <= 0)
			return false;
		s->len += (size_t)n;
	}
}

static void sse_close(struct sse *s)
{
	(void)close(s->fd);
}

#define EXPECT_SAYS(s, part) do { if (!EXPECT(strstr((s)->data, part))) printf("  %s: %.300s\n", (s)->name, (s)->data); } while (0)

/* ── streams ── */

static void a_stream_tells_events_as_they_come(void)
{
	struct sse s;
	struct rest r;

	FOR_IO(io) {
		FEEDS(&r, .io = io);
		tell(&r, "teller:before", "{}");
		sse_open(&s, &r, "/events", "");
		EXPECT(is_stream(&s) && strstr(s.head, "Cache-Control: no-store") && strstr(s.head, "Connection: close"));
		tell(&r, "teller:a", "{\"n\":\n1}");
		EXPECT(sse_next(&s) && strcmp(s.name, "message") == 0);
		EXPECT_EQ(s.id, newest(&r));
		EXPECT_SAYS(&s, "\"actor\":\"teller:a\",\"kind\":\"told\",\"from\":\"a\",\"to\":\"b\",\"reason\":\"because\",\"revision\":7,"
				"\"by_box\":false,\"data\":{\"n\": 1}}");
		EXPECT_SAYS(&s, "\"at\":\"20");
		tell(&r, "teller:b", "\xff");
		EXPECT(sse_next(&s));
		EXPECT_SAYS(&s, "\"data\":{\"base64\":\"/w==\"}");
		tell(&r, "teller:b", "some text");
		EXPECT(sse_next(&s));
		EXPECT_SAYS(&s, "\"data\":{\"text\":\"some text\"}");
		sse_close(&s);
		EXPECT(comes_to(&r.wire, CONNECTIONS, 0));
		wire_end(&r.wire);
	}
}

static void a_stream_goes_on_where_it_was(void)
{
	struct sse s;
	struct rest r;
	char header[64];
	uint64_t last = 0;

	FEEDS(&r, .io = NOH_IO_AUTO);
	sse_open(&s, &r, "/events?cursor=0", "");
	for (int i = 0; i < 300; i++) {
		tell(&r, "teller:a", "{}");
		if (i % 50 == 49) {              /* gone in the middle of them, and back */
			sse_close(&s);
			snprintf(header, sizeof header, "Last-Event-ID: %llu\r\n", (unsigned long long)last);
			sse_open(&s, &r, "/events?cursor=0", header);
		}
		if (i % 7 != 3)
			continue;
		while (last < newest(&r)) {
			if (!EXPECT(sse_next(&s)) || !EXPECT_EQ(s.id, last + 1))
				break;
			last = s.id;
		}
	}
	sse_close(&s);
	wire_end(&r.wire);
}

static void a_stream_tells_what_it_is_asked_for(void)
{
	static const struct { const char *query; uint64_t ids[4]; } asked[] = {
		{ "/events?follow=false&cursor=0", { 1, 2, 3, 4 } },
		{ "/events?follow=false&cursor=2", { 3, 4 } },
		{ "/events?follow=false&last=2", { 3, 4 } },
		{ "/events?follow=false&last=0", { 0 } },
		{ "/events?follow=false&last=1&actor=teller:a", { 3 } },
		{ "/events?follow=false&cursor=0&actor=teller%3Aa", { 1, 3 } },
		{ "/events?follow=false&cursor=0&type=teller", { 1, 2, 3 } },
		{ "/events?follow=false&cursor=0&type=tell", { 0 } },
		{ "/events?follow=false&cursor=0&kind=large", { 2 } },
		{ "/events?follow=false&since=0", { 1, 2, 3, 4 } },
		{ "/events?follow=false&since=2000-01-01T00:00:00Z", { 1, 2, 3, 4 } },
		{ "/events?follow=false&cursor=0&since=2990-01-01T00:00:00Z", { 0 } },
		{ "/events?follow=false", { 0 } },
	};
	struct sse s;
	struct rest r;

	FEEDS(&r, .io = NOH_IO_AUTO);
	tell(&r, "teller:a", "{}");
	tell_many(&r, 1);
	tell(&r, "teller:a", "{}");
	tell(&r, "other:a", "{}");
	for (unsigned i = 0; i < sizeof asked / sizeof asked[0]; i++) {
		unsigned n = 0;

		sse_open(&s, &r, asked[i].query, "");
		while (sse_next(&s) && strcmp(s.name, "message") == 0 && n < 4)
			if (!EXPECT_EQ(s.id, asked[i].ids[n++]))
				printf("  %s\n", asked[i].query);
		if (!EXPECT(n == 4 || asked[i].ids[n] == 0))
			printf("  %s: %u\n", asked[i].query, n);
		EXPECT(strcmp(s.name, "end") == 0 && strstr(s.data, "\"cursor\":4}"));
		EXPECT(!sse_next(&s));           /* and the connection ends */
		sse_close(&s);
	}
	wire_end(&r.wire);
}

static void what_makes_no_sense_is_refused_in_one_sentence(void)
{
	static const struct { const char *target, *header, *words; int status; } bad[] = {
		{ "/events?cursor=x", "", "\\\"cursor\\\" is a number", 400 },
		{ "/events?cursor=-1", "", "\\\"cursor\\\" is a number", 400 },
		{ "/events?cursor=9999999999999999999", "", "\\\"cursor\\\" is a number", 400 },
		{ "/events?cursor=5", "", "the newest event has the number 1", 400 },
		{ "/events?cursor=0&cursor=0", "", "is there twice", 400 },
		{ "/events?last=1001", "", "from 0 to 1000", 400 },
		{ "/events?since=yesterday", "", "RFC 3339", 400 },
		{ "/events?since=%22", "", "RFC 3339", 400 },
		{ "/events?actor=nocolon", "", "bad_address", 422 },
		{ "/events?actor=nope:a", "", "no_type", 404 },
		{ "/events?actor=teller:%0", "", "an escape in it is none", 400 },
		{ "/events?actor=teller:%00", "", "an escape in it is none", 400 },
		{ "/events?kind=", "", "1 to 63 bytes", 400 },
		{ "/events?follow=maybe", "", "true or false", 400 },
		{ "/events?form=1", "", "takes cursor, last, since, actor, type, kind, follow", 400 },
		{ "/events", "Last-Event-ID: 12x\r\n", "Last-Event-ID is the number", 400 },
		{ "/events", "Last-Event-ID: 2\r\n", "bad_cursor", 400 },
		{ "/actor/describe", "", "\\\"actor\\\" is missing", 400 },
		{ "/actor/describe?actor=nope:a", "", "no_type", 404 },
		{ "/actor/tree?limit=0", "", "from 1 to 10000", 400 },
	};
	static struct response p;
	struct rest r;
	int fd;

	FEEDS(&r, .io = NOH_IO_AUTO);
	tell(&r, "teller:a", "{}");
	fd = rest_dial(&r);
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ASK_WITH(bad[i].target, bad[i].header, "", bad[i].status, bad[i].words);
	ASK("/events", "{}", 405, "method_not_allowed");
	(void)close(fd);
	wire_end(&r.wire);
}

static void a_cursor_that_is_too_old_is_told_the_oldest(void)
{
	uint64_t oldest = 0;
	char words[64], line[400];
	static struct response p;
	struct rest r;
	int fd;

	open_box(&r, (noh_options){ .workers = 1, .events_bytes = 200000 }, (noh_listen_options){ .io = NOH_IO_AUTO });
	tell_many(&r, 500);
	EXPECT_EQ(noh_events_bounds(r.wire.box, &oldest, NULL), NOH_OK);
	EXPECT(oldest > 100);
	snprintf(words, sizeof words, "has the number %llu;", (unsigned long long)oldest);
	fd = rest_dial(&r);
	ASK("/events?cursor=5", "", 410, words);
	EXPECT(strstr(p.head, "Connection: close\r\n"));
	(void)close(fd);
	fd = rest_dial(&r);
	ASK_WITH("/events?cursor=0", "Last-Event-ID: 5\r\n", "", 410, "\"code\":\"too_old\"");
	(void)close(fd);
	fd = dial(&r.wire);
	EXPECT(say(fd, "EVENTS.READ CURSOR 5\r\n"));
	hear_line(fd, line, sizeof line);
	snprintf(words, sizeof words, "the number %llu;", (unsigned long long)oldest);
	EXPECT(strncmp(line, "-TOOOLD ", 8) == 0 && strstr(line, words));
	(void)close(fd);
	wire_end(&r.wire);
}

/* ── slow ones, gone ones ── */

struct told { struct rest *r; uint64_t n; };

static bool tells_until_cut(void *arg)
{
	struct told *t = arg;

	if (t->n < 5000)
		tell_many(t->r, 250);            /* a megabyte; sockets take a few of them */
	t->n += 250;
	return wire_number(&t->r->wire, CLOSED_SLOW) > 0;
}

/* It takes nothing while up to 20 MB are told. After half of its time it is cut; until all of it is over it finds what fitted,
 * whole events, and at the end where to go on. */
static void a_slow_reader_is_cut_and_told_where_to_go_on(void)
{
	struct told t = { .n = 0 };
	struct sse s;
	struct rest r;
	char target[64];
	uint64_t last = 0, cursor;

	FOR_IO(io) {
		t = (struct told){ &r, 0 };
		open_box(&r, (noh_options){ .workers = 2, .events_bytes = 64 << 20 }, (noh_listen_options){ .io = io, .timeout_ms = 10000 });
		last = 0;
		sse_open(&s, &r, "/events?cursor=0", "");
		EXPECT(test_wait_until(tells_until_cut, &t, SOON));
		while (sse_next(&s) && strcmp(s.name, "message") == 0) {
			if (!EXPECT_EQ(s.id, last + 1))
				break;
			last = s.id;
		}
		EXPECT(strcmp(s.name, "cut") == 0);
		EXPECT_SAYS(&s, "too slow");
		EXPECT(sscanf(strstr(s.data, "\"cursor\":") ? strstr(s.data, "\"cursor\":") + 9 : "", "%" SCNu64, &cursor) == 1);
		EXPECT_EQ(cursor, last);
		EXPECT(last > 0 && last < newest(&r));
		EXPECT(!sse_next(&s));
		sse_close(&s);
		snprintf(target, sizeof target, "/events?follow=false&cursor=%" PRIu64, cursor);
		sse_open(&s, &r, target, "");
		while (sse_next(&s) && strcmp(s.name, "message") == 0)
			last = s.id == last + 1 ? s.id : 0;
		EXPECT_EQ(last, newest(&r));
		sse_close(&s);
		wire_end(&r.wire);
	}
}

static bool nobody_reads(void *arg)
{
	struct rest *r = arg;

	return feeds_count(r->wire.box->server) == 0;
}

static void a_reader_that_goes_leaves_nothing(void)
{
	struct sse s;
	struct rest r;
	int fd[20];

	FEEDS(&r, .io = NOH_IO_AUTO);
	for (int i = 0; i < 20; i++) {
		sse_open(&s, &r, "/events", "");
		fd[i] = s.fd;
	}
	EXPECT_EQ(feeds_count(r.wire.box->server), 20);
	for (int i = 0; i < 20; i++)
		(void)(i % 2 ? close(fd[i]) : shutdown(fd[i], SHUT_WR));     /* all of it, or only that it says no more */
	EXPECT(comes_to(&r.wire, CONNECTIONS, 0));
	EXPECT(test_wait_until(nobody_reads, &r, SOON));
	for (int i = 0; i < 20; i += 2)
		(void)close(fd[i]);
	for (int i = 0; i < 20; i++) {
		fd[i] = dial(&r.wire);
		EXPECT(say(fd[i], "EVENTS.READ CURSOR $ BLOCK 0\r\nPING\r\n"));
	}
	EXPECT(comes_to(&r.wire, COMMANDS, 20 + 20));                    /* read: its PINGs are not run before their turn */
	for (int i = 0; i < 20; i++)
		(void)close(fd[i]);
	EXPECT(test_wait_until(nobody_reads, &r, SOON));
	wire_end(&r.wire);
}

/* A socket that is not read does not tell that its client has gone: whatever stops the reading ends the waiting. */
static void a_reader_whose_connection_is_not_read_waits_no_longer(void)
{
	static const char *const behind[] = { "DBSIZE\r\n", "QUIT\r\n", "PING\r\nPING\r\nPING\r\nPING\r\n",
					      "EVENTS.READ CURSOR $ BLOCK 0\r\nINFO\r\n" };
	uint64_t said;
	char text[200];
	struct rest r;

	FOR_IO(io) {
		said = 0;
		FEEDS(&r, .io = io, .max_pipeline = 4);
		for (size_t i = 0; i < sizeof behind / sizeof behind[0]; i++) {
			int fd = dial(&r.wire);

			snprintf(text, sizeof text, "EVENTS.READ CURSOR $ BLOCK 0\r\n%s", behind[i]);
			EXPECT(say(fd, text));
			EXPECT(comes_to(&r.wire, BYTES_IN, said += strlen(text)));
			(void)close(fd);
			EXPECT(comes_to(&r.wire, CONNECTIONS, 0));
			EXPECT(test_wait_until(nobody_reads, &r, SOON));
		}
		wire_end(&r.wire);
	}
}

/* How often the workers of this process gave up their processor so far. */
static uint64_t worker_wakes(void)
{
	char path[300], line[256];
	uint64_t sum = 0, n;
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;

	while (dir && (e = readdir(dir)) != NULL) {
		bool worker = false;
		FILE *f;

		snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof line, f)) {
			worker |= strncmp(line, "Name:\tnoh/", 10) == 0 && strspn(line + 10, "0123456789") > 0;
			if (worker && sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &n) == 1)
				sum += n;
		}
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return sum;
}

static void a_thousand_readers_cost_the_workers_nothing(void)
{
	enum { READERS = 1000 };
	static struct sse s[READERS];
	struct rlimit limit;
	struct rest r;
	uint64_t before, after;

	EXPECT(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < 3 * READERS) {
		test_skip("not enough file descriptors");
		return;
	}
	FEEDS(&r, .io = NOH_IO_AUTO);
	for (int i = 0; i < READERS; i++)
		sse_open(&s[i], &r, i % 2 ? "/events" : "/events?actor=teller:b", "");
	tell(&r, "teller:a", "{}");
	for (int i = 1; i < READERS; i += 2)
		EXPECT(sse_next(&s[i]) && s[i].id == 1);
	before = worker_wakes();
	nap_us(2000000);                         /* two sweeps, if there were any */
	after = worker_wakes();
	if (!EXPECT(after - before < 20))
		printf("  they woke %llu times in two seconds\n", (unsigned long long)(after - before));
	tell(&r, "teller:b", "{}");
	for (int i = 0; i < READERS; i++) {
		EXPECT(sse_next(&s[i]) && s[i].id == 2);
		sse_close(&s[i]);
	}
	wire_end(&r.wire);
}

static void the_end_of_the_server_is_told(void)
{
	struct sse s;
	struct rest r;
	char line[200];
	int fd;

	FEEDS(&r, .io = NOH_IO_AUTO);
	tell(&r, "teller:a", "{}");
	sse_open(&s, &r, "/events?last=1", "");
	EXPECT(sse_next(&s) && s.id == 1);
	fd = dial(&r.wire);
	EXPECT(say(fd, "EVENTS.READ CURSOR $ BLOCK 0\r\n"));
	EXPECT(comes_to(&r.wire, COMMANDS, 2));
	wire_end(&r.wire);
	EXPECT(sse_next(&s) && strcmp(s.name, "end") == 0);
	EXPECT_SAYS(&s, "stopping");
	EXPECT_SAYS(&s, "\"cursor\":1}");
	EXPECT(!sse_next(&s));
	sse_close(&s);
	hear_line(fd, line, sizeof line);
	EXPECT(strncmp(line, "-STOPPING", 9) == 0);
	(void)close(fd);
}

static void a_stream_ends_with_its_account(void)
{
	static const uint8_t hash[32] = { 0x2b, 0xb8, 0x0d, 0x53, 0x7b, 0x1d, 0xa3, 0xe3, 0x8b, 0xd3, 0x03, 0x61, 0xaa, 0x85, 0x56, 0x86,
					  0xbd, 0xe0, 0xea, 0xcd, 0x71, 0x62, 0xfe, 0xf6, 0xa2, 0x5f, 0xe9, 0x7b, 0xf5, 0x27, 0xa2, 0x5b };
	noh_account dev = { .name = "dev", .role = NOH_DEVELOPER }, boss = { .name = "boss", .role = NOH_ADMIN, .token = { 1 } };
	const char *token = "Authorization: Bearer secret\r\n";
	struct sse open, s;
	struct rest r;

	memcpy(dev.token, hash, sizeof hash);    /* of "secret" */
	FEEDS(&r, .io = NOH_IO_AUTO);
	sse_open(&open, &r, "/events", "");      /* while everybody may */
	EXPECT_EQ(noh_set_accounts(r.wire.box, (noh_account[]){ dev, boss }, 2), NOH_OK);
	EXPECT(!sse_next(&open));
	sse_open(&s, &r, "/events", "");
	EXPECT(strncmp(s.head, "HTTP/1.1 401 ", 13) == 0);
	sse_close(&s);
	sse_open(&s, &r, "/events", token);
	EXPECT(is_stream(&s));
	EXPECT_EQ(noh_set_accounts(r.wire.box, (noh_account[]){ boss, dev }, 2), NOH_OK);       /* another order is no change */
	tell(&r, "teller:a", "{}");
	EXPECT(sse_next(&s) && s.id == 1);
	dev.role = NOH_USER;
	EXPECT_EQ(noh_set_accounts(r.wire.box, (noh_account[]){ dev, boss }, 2), NOH_OK);
	EXPECT(!sse_next(&s));
	sse_close(&open);
	sse_close(&s);
	wire_end(&r.wire);
}

/* Whichever allocation fails, of the worker or of the reader: it is told so, or ends, or goes on; and the next one is well. */
static void without_memory_a_reader_ends_and_no_other(void)
{
	struct sse s;
	struct rest r;
	unsigned told = 0, refused = 0;
	char line[400];
	int fd;

	FEEDS(&r, .io = NOH_IO_AUTO);
	tell(&r, "teller:a", "{}");
	sse_open(&s, &r, "/events?cursor=0", "");        /* the first one is kept: for later ones there may be no memory */
	EXPECT(is_stream(&s) && sse_next(&s) && s.id == 1);
	sse_close(&s);
	for (uint64_t nth = 1; nth <= 24; nth++) {
		(void)mem_fail_at(nth, 0);
		sse_open(&s, &r, "/events?cursor=0", "");
		(void)mem_fail_at(0, 0);
		tell(&r, "teller:a", "{}");
		if (is_stream(&s) && sse_next(&s))
			told += EXPECT(strcmp(s.name, "message") == 0 && s.id == 1);
		else
			refused++;
		sse_close(&s);
		fd = dial(&r.wire);
		(void)mem_fail_at(nth, 0);
		EXPECT(say(fd, "EVENTS.READ CURSOR 0 COUNT 1\r\n"));
		hear_line(fd, line, sizeof line);
		(void)mem_fail_at(0, 0);
		EXPECT(strcmp(line, "*2") == 0 || strncmp(line, "-OOM", 4) == 0 || line[0] == 0 || strncmp(line, "-TIMEOUT", 8) == 0);
		(void)close(fd);
	}
	EXPECT(told > 0 && refused > 0);
	EXPECT(test_wait_until(nobody_reads, &r, SOON));
	sse_open(&s, &r, "/events?last=1", "");
	EXPECT(is_stream(&s) && sse_next(&s));
	sse_close(&s);
	wire_end(&r.wire);
}

/* ── commands ── */

static void a_command_reads_and_waits(void)
{
	struct rest r;
	char line[400];
	int fd;

	FOR_IO(io) {
		FEEDS(&r, .io = io);
		fd = dial(&r.wire);
		EXPECT(say(fd, "EVENTS.READ\r\n"));
		EXPECT_HEARS(fd, "*2\r\n:0\r\n*0\r\n");
		tell(&r, "teller:a", "x");
		tell(&r, "other:a", "y");
		EXPECT(say(fd, "EVENTS.READ TYPE other\r\n"));
		EXPECT_HEARS(fd, "*2\r\n:2\r\n*1\r\n*20\r\n$3\r\nseq\r\n:2\r\n$5\r\nat_ms\r\n:");
		hear_line(fd, line, sizeof line);
		EXPECT_HEARS(fd, "$5\r\nactor\r\n$7\r\nother:a\r\n$4\r\nkind\r\n$4\r\ntold\r\n$4\r\nfrom\r\n$1\r\na\r\n$2\r\nto\r\n$1\r\nb\r\n"
				 "$6\r\nreason\r\n$7\r\nbecause\r\n$8\r\nrevision\r\n:7\r\n$6\r\nby_box\r\n:0\r\n$4\r\ndata\r\n$1\r\ny\r\n");
		EXPECT(say(fd, "EVENTS.READ CURSOR 2 BLOCK 20\r\nPING\r\n"));
		EXPECT_HEARS(fd, "*2\r\n:2\r\n*0\r\n+PONG\r\n");
		EXPECT(say(fd, "EVENTS.READ CURSOR $ BLOCK 0 COUNT 1 ACTOR other:b\r\nPING\r\n"));
		EXPECT(comes_to(&r.wire, COMMANDS, 5));
		tell(&r, "other:a", "y");
		tell(&r, "other:b", "z");
		EXPECT_HEARS(fd, "*2\r\n:4\r\n*1\r\n*20\r\n$3\r\nseq\r\n:4\r\n");
		for (int i = 0; i < 200 && strcmp(line, "+PONG") != 0; i++)
			hear_line(fd, line, sizeof line);
		EXPECT(strcmp(line, "+PONG") == 0);
		EXPECT(say(fd, "EVENTS.READ CURSOR 5\r\n"));
		hear_line(fd, line, sizeof line);
		EXPECT(strncmp(line, "-ERR cursor 5: the newest event has the number 4", 47) == 0);
		(void)close(fd);
		wire_end(&r.wire);
	}
}

static size_t size_of_answer(int fd, uint64_t *cursor, uint64_t *count)
{
	char line[400];
	size_t all = 0;

	hear_line(fd, line, sizeof line);                        /* *2 */
	hear_line(fd, line, sizeof line);
	*cursor = strtoull(line + 1, NULL, 10);
	hear_line(fd, line, sizeof line);
	*count = strtoull(line + 1, NULL, 10);
	for (uint64_t i = 0; i < *count; i++) {
		static char data[4096 + 3];

		do {
			hear_line(fd, line, sizeof line);
			all += strlen(line) + 2;
		} while (strcmp(line, "$4096") != 0 && all < FEED_WINDOW * 2);
		all += 4096 + 2;
		EXPECT_EQ(hear(fd, data, 4096 + 2), 4096 + 2);
	}
	return all;
}

static void an_answer_is_bounded_whatever_its_count(void)
{
	uint64_t cursor, count, from = 0;
	struct rest r;
	char text[100];
	int fd;

	FEEDS(&r, .io = NOH_IO_AUTO);
	tell_many(&r, 100);
	fd = dial(&r.wire);
	while (from < 100) {
		snprintf(text, sizeof text, "EVENTS.READ CURSOR %" PRIu64 " COUNT 1000\r\n", from);
		EXPECT(say(fd, text));
		size_t len = size_of_answer(fd, &cursor, &count);

		if (!EXPECT(len <= FEED_WINDOW + 5000) || !EXPECT_EQ(cursor, from + count) || !EXPECT(count > 0))
			break;
		from = cursor;
	}
	(void)close(fd);
	wire_end(&r.wire);
}

static void a_command_sees_what_its_connection_did_before(void)
{
	struct rest r;
	int fd;

	FEEDS(&r, .io = NOH_IO_AUTO);
	fd = dial(&r.wire);
	EXPECT(say(fd, "ACTOR.INVOKE teller:a 0 x\r\nEVENTS.READ KIND told\r\n"));
	EXPECT_HEARS(fd, "$0\r\n\r\n*2\r\n:1\r\n*1\r\n");
	(void)close(fd);
	wire_end(&r.wire);
}

static void many_commands_may_wait_at_once(void)
{
	struct rest r;
	int fd[200];

	FEEDS(&r, .io = NOH_IO_AUTO);
	for (int i = 0; i < 200; i++) {
		fd[i] = dial(&r.wire);
		EXPECT(say(fd[i], "EVENTS.READ CURSOR 0 BLOCK 0\r\n"));
	}
	EXPECT(comes_to(&r.wire, COMMANDS, 200));
	tell(&r, "teller:a", "x");
	for (int i = 0; i < 200; i++) {
		EXPECT_HEARS(fd[i], "*2\r\n:1\r\n*1\r\n");
		(void)close(fd[i]);
	}
	EXPECT(test_wait_until(nobody_reads, &r, SOON));
	wire_end(&r.wire);
}

TEST_MAIN(
	TEST(a_stream_tells_events_as_they_come, "CLI-01"),
	TEST(a_stream_goes_on_where_it_was),
	TEST(a_stream_tells_what_it_is_asked_for, "CLI-01"),
	TEST(what_makes_no_sense_is_refused_in_one_sentence),
	TEST(a_cursor_that_is_too_old_is_told_the_oldest),
	TEST(a_slow_reader_is_cut_and_told_where_to_go_on),
	TEST(a_reader_that_goes_leaves_nothing),
	TEST(a_reader_whose_connection_is_not_read_waits_no_longer),
	TEST(a_thousand_readers_cost_the_workers_nothing),
	TEST(the_end_of_the_server_is_told),
	TEST(a_stream_ends_with_its_account),
	TEST(without_memory_a_reader_ends_and_no_other),
	TEST(a_command_reads_and_waits),
	TEST(an_answer_is_bounded_whatever_its_count),
	TEST(a_command_sees_what_its_connection_did_before),
	TEST(many_commands_may_wait_at_once))
