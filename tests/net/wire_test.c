/* tests/net/wire_test.c - bytes in, bytes out, over real sockets and on both io backends: however requests are
 * cut and however they are mixed, the replies are the same and in order. */
#include "tests/net/wire_kit.h"

/* ── cut anywhere ── */

/* Leaves nothing behind, so that it can be said again and again on one connection. */
static const char corpus[] =
	"*1\r\n$4\r\nPING\r\n"
	"PING inline\r\n"
	"\r\n"
	"*0\r\n"
	"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n"
	"*3\r\n$6\r\nINCRBY\r\n$1\r\na\r\n$3\r\n-12\r\n"
	"set b 5\n"
	"*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$4\r\nnone\r\n"
	"GET b\r\n"
	"*2\r\n$4\r\nECHO\r\n$12\r\nbin\0ary\r\n*1$\r\n"
	"NOSUCH \"two words\"\r\n"
	"GET\r\n"
	"INCRBY a many\r\n"
	"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
	"GET none\r\n"
	"INV.RESTOCK s 10\r\n"
	"*3\r\n$7\r\nINV.GET\r\n$1\r\ns\r\n$4\r\nmore\r\n"
	"*5\r\n$12\r\nACTOR.INVOKE\r\n$7\r\nqueue:x\r\n$1\r\n0\r\n$0\r\n\r\n$7\r\nTIMEOUT\r\n"
	"ACTOR.INVOKE queue:x 0 ''\r\n"
	"CLIENT REPLY SKIP\r\nINCR c\r\nINCR c\r\n"
	"CLIENT REPLY OFF\r\nINCR c\r\nPING\r\nCLIENT REPLY ON\r\n"
	"INV.SET s 0\r\n"
	"HELLO 2\r\n"
	"DEL a b c\r\n"
	"PING end\r\n";
#define CORPUS_LEN (sizeof corpus - 1)

/* The reply to the whole corpus: it ends with that of "PING end". */
static size_t hear_corpus(int fd, char *to, size_t size)
{
	static const char last[] = "$3\r\nend\r\n";
	size_t got = 0, len = sizeof last - 1;

	while (got < size && (got < len || memcmp(to + got - len, last, len) != 0)) {
		ssize_t n = take(fd, to + got, size - got);

		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}

static void compare(const char *got, size_t got_len, const char *want, size_t want_len, size_t split)
{
	if (got_len == want_len && memcmp(got, want, want_len) == 0)
		return;
	test_failed(__FILE__, __LINE__, "split at %zu: %zu bytes \"%.*s\" instead of %zu bytes \"%.*s\"", split, got_len,
		    (int)got_len, got, want_len, (int)want_len, want);
}

static void split_everywhere(struct wire *w)
{
	char want[4096], got[4096];
	int fd = dial(w);
	uint64_t sent = 0;
	size_t len;

	(void)say_bytes(fd, corpus, CORPUS_LEN);
	len = hear_corpus(fd, want, sizeof want);
	EXPECT(len > 200 && memmem(want, len, "bin\0ary\r\n*1$", 12) != NULL);
	EXPECT(memmem(want, len, "$2\r\n-1\r\n", 8) == NULL && memmem(want, len, ":-11\r\n", 6) != NULL);
	sent = net_stats(w).bytes_in;
	for (size_t split = 1; split < CORPUS_LEN; split++) {
		(void)say_bytes(fd, corpus, split);
		sent += split;
		if (!EXPECT(comes_to(w, BYTES_IN, sent)))        /* it has the first part, and only that */
			break;
		(void)say_bytes(fd, corpus + split, CORPUS_LEN - split);
		sent += CORPUS_LEN - split;
		compare(got, hear_corpus(fd, got, sizeof got), want, len, split);
	}
	for (size_t i = 0; i < CORPUS_LEN; i++)
		(void)say_bytes(fd, corpus + i, 1);
	compare(got, hear_corpus(fd, got, sizeof got), want, len, 0);
	(void)close(fd);
}

static void every_split_of_requests_gives_the_same_replies(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 1, .io = io);
		split_everywhere(&w);
		w.local = true;
		split_everywhere(&w);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		wire_end(&w);
	}
}

/* ── mixed and many ── */

struct script { char *ask, *answer; size_t ask_len, answer_len, room; };

NOH_PRINTF(3, 4) static void add(char *text, size_t *len, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	*len += (size_t)vsprintf(text + *len, format, args);
	va_end(args);
}

#define KEYS 20
/* Commands of all kinds and what they must answer, by a model of the counters. */
static void write_script(struct script *s, uint32_t commands, const char *prefix, uint64_t seed)
{
	int64_t values[KEYS] = { 0 };
	bool there[KEYS] = { 0 };
	char text[64];

	s->ask_len = s->answer_len = 0;
	s->ask = malloc(commands * 100u);
	s->answer = malloc(commands * 200u);
	for (uint32_t i = 0; i < commands; i++) {
		unsigned k = (unsigned)(test_random(&seed) % KEYS), other = (k + 1) % KEYS;
		int by = (int)(test_random(&seed) % 1000) - 500;

		switch (test_random(&seed) % 9) {
		case 0: case 1: case 2:
			there[k] = true;
			add(s->ask, &s->ask_len, "INCR %s%u\r\n", prefix, k);
			add(s->answer, &s->answer_len, ":%lld\r\n", (long long)++values[k]);
			break;
		case 3:
			there[k] = true;
			snprintf(text, sizeof text, "%d", by);
			add(s->ask, &s->ask_len, "*3\r\n$6\r\nINCRBY\r\n$%zu\r\n%s%u\r\n$%zu\r\n%s\r\n",
			    strlen(prefix) + (k < 10 ? 1 : 2), prefix, k, strlen(text), text);
			add(s->answer, &s->answer_len, ":%lld\r\n", (long long)(values[k] += by));
			break;
		case 4:
			add(s->ask, &s->ask_len, "MGET %s%u %s%u\r\n", prefix, k, prefix, other);
			add(s->answer, &s->answer_len, "*2\r\n");
			for (unsigned j = k, n = 0; n < 2; j = other, n++) {
				snprintf(text, sizeof text, "%lld", (long long)values[j]);
				if (there[j])
					add(s->answer, &s->answer_len, "$%zu\r\n%s\r\n", strlen(text), text);
				else
					add(s->answer, &s->answer_len, "$-1\r\n");
			}
			break;
		case 5:
			add(s->ask, &s->ask_len, "PING %u\r\n", i);
			snprintf(text, sizeof text, "%u", i);
			add(s->answer, &s->answer_len, "$%zu\r\n%u\r\n", strlen(text), i);
			break;
		case 6:
			add(s->ask, &s->ask_len, "DEL %s%u\r\n", prefix, k);
			add(s->answer, &s->answer_len, ":%d\r\n", there[k]);
			values[k] = 0;
			there[k] = false;
			break;
		case 7:
			add(s->ask, &s->ask_len, "GET %s%u too many\r\n", prefix, k);
			add(s->answer, &s->answer_len, "-ERR wrong number of arguments for 'get' command\r\n");
			break;
		default:
			add(s->ask, &s->ask_len, "EXISTS %s%u %s%u\r\n", prefix, k, prefix, other);
			add(s->answer, &s->answer_len, ":%d\r\n", there[k] + there[other]);
			break;
		}
	}
}

/* Writes and reads at the same time: neither side may have to wait for the other to end. */
static void converse(int fd, const struct script *s, size_t said)
{
	size_t heard = 0;
	char *got = malloc(s->answer_len + 1);

	while (heard < s->answer_len) {
		struct pollfd p = { fd, (short)(POLLIN | (said < s->ask_len ? POLLOUT : 0)), 0 };
		ssize_t n;

		int ready = poll(&p, 1, SOON);

		if (ready == 0 || (ready < 0 && errno != EINTR))
			break;
		if (ready < 0)
			continue;
		if (p.revents & POLLOUT) {
			n = send(fd, s->ask + said, s->ask_len - said, MSG_DONTWAIT | MSG_NOSIGNAL);
			said += n > 0 ? (size_t)n : 0;
		}
		if (p.revents & (POLLIN | POLLHUP)) {
			n = recv(fd, got + heard, s->answer_len - heard, MSG_DONTWAIT);
			if (n == 0)
				break;
			heard += n > 0 ? (size_t)n : 0;
		}
	}
	for (size_t i = 0; i < heard; i++)
		if (got[i] != s->answer[i]) {
			test_failed(__FILE__, __LINE__, "reply differs at byte %zu: \"%.60s\" instead of \"%.60s\"", i,
				    got + i, s->answer + i);
			break;
		}
	EXPECT_EQ(heard, s->answer_len);
	free(got);
}

static void free_script(struct script *s)
{
	free(s->ask);
	free(s->answer);
}

static void talk_in_turns(struct wire *w, uint32_t commands)
{
	struct script a, b;
	int one = dial(w), two = dial(w);
	size_t half;

	write_script(&a, commands, "a", test_seed);
	write_script(&b, commands, "b", test_seed + 1);
	half = b.ask_len / 2 < 8192 ? b.ask_len / 2 : 8192;
	(void)say_bytes(two, b.ask, half);               /* the other is in the middle of something */
	converse(one, &a, 0);
	converse(two, &b, half);
	(void)close(one);
	(void)close(two);
	EXPECT(comes_to(w, CONNECTIONS, 0));
	EXPECT_EQ(net_stats(w).commands, 2 * (uint64_t)commands);
	EXPECT_EQ(net_stats(w).bytes_out, a.answer_len + b.answer_len);
	free_script(&a);
	free_script(&b);
}

static void pipelines_of_mixed_commands_keep_their_order(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 2, .io = io);
		talk_in_turns(&w, 5000);
		wire_end(&w);
		WIRE(&w, 2, .io = io, .max_pipeline = 3, .max_output_bytes = 500);
		talk_in_turns(&w, 2000);
		wire_end(&w);
	}
}

static void pipelines_keep_their_order_while_answers_wait_for_the_disk(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE_ON_DISK(&w, 2, .io = io);
		talk_in_turns(&w, 3000);
		wire_end(&w);
	}
}

/* ── slow before fast ── */

static void fast_replies_wait_behind_a_slow_one(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 2, .io = io);
		int fd = dial(&w), other = dial(&w);
		char byte;

		(void)say(fd, "ACTOR.INVOKE later:a 0 ''\r\nINCR k\r\nPING\r\nACTOR.INVOKE later:b 0 ''\r\nINCR k\r\n");
		EXPECT(keeps(&w, "later:a", "1") && keeps(&w, "later:b", "1"));
		EXPECT_ASK(other, "GET k", "$1");        /* both increments have happened */
		EXPECT_HEARS(other, "2\r\n");
		EXPECT(recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
		let_go(&w, "later:b");
		EXPECT_ASK(other, "PING", "+PONG");
		EXPECT(recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
		let_go(&w, "later:a");
		EXPECT_HEARS(fd, "$4\r\nlate\r\n:1\r\n+PONG\r\n$4\r\nlate\r\n:2\r\n");
		(void)close(fd);
		(void)close(other);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		wire_end(&w);
	}
}

/* ── a client that has said all it will say ── */

static void half_close(struct wire *w, uint32_t commands, const char *prefix)
{
	struct script s;
	int fd = dial(w);
	char byte;

	write_script(&s, commands, prefix, test_seed);
	(void)say_bytes(fd, s.ask, s.ask_len);
	(void)shutdown(fd, SHUT_WR);
	converse(fd, &s, s.ask_len);
	EXPECT_EQ(take(fd, &byte, 1), 0);             /* and then the server ends it, too */
	(void)close(fd);
	free_script(&s);
}

static void a_client_that_only_listens_any_more_gets_all_its_answers(void)
{
	struct wire w;

	FOR_IO(io) {
		for (int local = 0; local <= 1; local++) {
			WIRE_ON_DISK(&w, 2, .io = io, .max_pipeline = 5, .max_output_bytes = 300);
			w.local = local;
			half_close(&w, 1, "x");
			half_close(&w, 1000, "y");
			EXPECT(comes_to(&w, CONNECTIONS, 0));
			wire_end(&w);
		}
	}
}

static void half_a_command_before_the_end_is_no_command(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 1, .io = io);
		int fd = dial(&w);

		(void)say(fd, "INCR k\r\n*2\r\n$4\r\nINCR\r\n$1\r\nk");
		(void)shutdown(fd, SHUT_WR);
		EXPECT_HEARS(fd, ":1\r\n");
		EXPECT(hears_the_end(fd));
		(void)close(fd);
		fd = dial(&w);
		(void)say(fd, "ACTOR.INVOKE later:a 0 ''\r\nINCR k");
		(void)shutdown(fd, SHUT_WR);
		EXPECT(keeps(&w, "later:a", "1"));
		let_go(&w, "later:a");
		EXPECT_HEARS(fd, "$4\r\nlate\r\n");
		EXPECT(hears_the_end(fd));
		(void)close(fd);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		EXPECT_EQ(net_stats(&w).commands, 2);
		wire_end(&w);
	}
}

/* ── CLIENT REPLY ── */

/* In the middle of a pipeline, at every place among those that are delivered together. */
static void only_the_muted_reply_is_missing(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 1, .io = io);
		int fd = dial(&w);
		char ask[8192], want[4096];

		for (int before = 0; before <= 260; before += before < 120 || before > 132 ? 20 : 1) {
			size_t n = 0, m = 0;

			for (int i = 1; i <= before; i++) {
				add(ask, &n, "INCR k\r\n");
				add(want, &m, ":%d\r\n", i);
			}
			add(ask, &n, "CLIENT REPLY SKIP\r\nINCR k\r\nINCR k\r\nCLIENT REPLY OFF\r\nINCR k\r\nPING\r\n"
			    "GET none\r\nMGET k k\r\nNOSUCH\r\nCLIENT REPLY ON\r\nGETDEL k\r\n");
			snprintf(ask + n, sizeof ask - n, "PING\r\n");
			add(want, &m, ":%d\r\n+OK\r\n$%d\r\n%d\r\n+PONG\r\n", before + 2, before + 3 < 10 ? 1 : before + 3 < 100 ? 2 : 3,
			    before + 3);
			(void)say(fd, ask);
			if (!EXPECT_HEARS(fd, want))
				break;
		}
		(void)close(fd);
		wire_end(&w);
	}
}

static void a_large_message_after_skip_mutes_itself_alone(void)
{
	static char ask[4000];
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 1, .io = io);
		int fd = dial(&w);

		snprintf(ask, sizeof ask, "INCR k\r\nPING\r\nCLIENT REPLY SKIP\r\nACTOR.INVOKE queue:x 0 %02000d\r\nGET k\r\n", 7);
		(void)say(fd, ask);
		EXPECT_HEARS(fd, ":1\r\n+PONG\r\n$1\r\n1\r\n");
		(void)close(fd);
		wire_end(&w);
	}
}

static void a_silent_client_is_read_on(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 2, .io = io, .max_pipeline = 4);
		int fd = dial(&w);

		(void)say(fd, "CLIENT REPLY OFF\r\n");
		for (int i = 0; i < 1000; i++)
			(void)say(fd, "INCR k\r\nMGET k k\r\n");
		(void)say(fd, "CLIENT REPLY ON\r\nGET k\r\n");
		EXPECT_HEARS(fd, "+OK\r\n$4\r\n1000\r\n");
		(void)close(fd);
		wire_end(&w);
	}
}

/* ── what is no RESP ── */

static void nonsense_gets_one_sentence_and_an_end(void)
{
	static const struct { const char *bytes, *said; } table[] = {
		{ "*4294967295\r\n", "-ERR Protocol error: invalid multibulk length" },
		{ "*99999999999999999999\r\n", "-ERR Protocol error: invalid multibulk length" },
		{ "*1\r\n$4294967296\r\n", "-ERR Protocol error: invalid bulk length" },
		{ "*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length" },
		{ "*1\r\n$+4\r\nPING\r\n", "-ERR Protocol error: invalid bulk length" },
		{ "*1\r\n:4\r\n", "-ERR Protocol error: expected '$', got ':'" },
		{ "PING \"unbalanced\r\n", "-ERR Protocol error: unbalanced quotes in request" },
	};
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 1, .io = io);
		for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
			int fd = dial(&w);
			char line[300];

			(void)say(fd, "INCR k\r\n");
			(void)say(fd, table[i].bytes);
			hear_line(fd, line, sizeof line);
			EXPECT(line[0] == ':');
			hear_line(fd, line, sizeof line);
			test_text(line, table[i].said, table[i].bytes, (int)i);
			EXPECT(hears_the_end(fd));
			(void)close(fd);
		}
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		EXPECT_EQ(net_stats(&w).errors, sizeof table / sizeof table[0]);
		wire_end(&w);
	}
}

/* A browser that was made to talk to this port must not be able to say anything. */
static void http_is_not_taken_for_commands(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 1, .io = io);
		int fd = dial(&w), other = dial(&w);

		(void)say(fd, "POST / HTTP/1.1\r\nHost: localhost:7411\r\nContent-Length: 8\r\n\r\nINCR k\r\n");
		EXPECT(hears_the_end(fd));
		EXPECT_ASK(other, "EXISTS k", ":0");
		(void)close(fd);
		(void)close(other);
		wire_end(&w);
	}
}

TEST_MAIN(
	TEST(every_split_of_requests_gives_the_same_replies, "P11"),
	TEST(pipelines_of_mixed_commands_keep_their_order, "P3"),
	TEST(pipelines_keep_their_order_while_answers_wait_for_the_disk, "P3 P5"),
	TEST(fast_replies_wait_behind_a_slow_one, "P3"),
	TEST(a_client_that_only_listens_any_more_gets_all_its_answers),
	TEST(half_a_command_before_the_end_is_no_command),
	TEST(only_the_muted_reply_is_missing, "P8"),
	TEST(a_large_message_after_skip_mutes_itself_alone),
	TEST(a_silent_client_is_read_on),
	TEST(nonsense_gets_one_sentence_and_an_end, "P11"),
	TEST(http_is_not_taken_for_commands))
