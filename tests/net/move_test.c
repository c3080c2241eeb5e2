/* tests/net/move_test.c - connections that go over from worker to worker while their clients speak. */
#include "box/box.h"
#include "net/net.h"
#include "tests/net/wire_kit.h"

enum { WORKERS = 3, SPEAKERS = 4, EACH = 6, CLIENTS = SPEAKERS * EACH };

/* From now on by hand: a worker that is about to look holds the lock, and then finds that it is not time. */
static void open_by_hand(struct wire *w, int io, const char *http_path)
{
	struct crew *crew;

	WIRE(w, WORKERS, .io = io, .http_unix_path = http_path);
	crew = &w->box->server->crew;
	pthread_mutex_lock(&crew->lock);
	store_relaxed(&crew->look_ms, UINT64_MAX);
	pthread_mutex_unlock(&crew->lock);
}

static void set_width(struct wire *w, uint32_t width) { store_relaxed(&w->box->server->crew.width, width); }

static uint64_t moved(struct wire *w)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < WORKERS; i++)
		sum += load_relaxed(&w->box->server->nets[i]->shown.moved);
	return sum;
}

static uint64_t connections_of(struct wire *w, uint32_t worker)
{
	return load_relaxed(&w->box->server->nets[worker]->shown.connections);
}

/* ── one after the other ── */

static void expect_number(int fd, const char *word, uint64_t n)
{
	char line[64], wanted[32];

	EXPECT(say(fd, word));
	hear_line(fd, line, sizeof line);
	snprintf(wanted, sizeof wanted, ":%llu", (unsigned long long)n);
	EXPECT(strcmp(line, wanted) == 0);
}

static bool all_on_one(void *arg) { return connections_of(arg, 1) + connections_of(arg, 2) == 0; }

static void those_that_speak_are_gathered_and_spread_again(void)
{
	int fds[CLIENTS];
	struct wire w;

	FOR_IO(io) {
		uint64_t n = 0;

		open_by_hand(&w, io, NULL);
		for (int i = 0; i < CLIENTS; i++)
			fds[i] = dial(&w);
		set_width(&w, 1);
		for (int round = 0; round < 200 && (round < 2 || !all_on_one(&w)); round++)
			for (int i = 0; i < CLIENTS; i++)
				expect_number(fds[i], "INCR all\r\n", ++n);
		EXPECT(test_wait_until(all_on_one, &w, SOON));
		set_width(&w, WORKERS);
		for (int round = 0; round < 200 && connections_of(&w, 0) != CLIENTS / WORKERS; round++)
			for (int i = 0; i < CLIENTS; i++)
				expect_number(fds[i], "INCR all\r\n", ++n);
		EXPECT_EQ(connections_of(&w, 0), CLIENTS / WORKERS);
		for (int i = 0; i < CLIENTS; i++)
			(void)close(fds[i]);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		wire_end(&w);
	}
}

/* ── all at once ── */

struct speaker { struct wire *w; int fds[EACH]; uint64_t said; atomic_u32 *stop; pthread_t thread; };

/* One at a time, several at once, and a word of which the end comes later. */
static void *speak(void *arg)
{
	struct speaker *s = arg;
	char line[64];

	while (!load_seq_cst(s->stop)) {
		for (int i = 0; i < EACH; i++) {
			bool three = i == 0, cut = i == 1;

			EXPECT(say(s->fds[i], three ? "INCR all\r\nINCR all\r\nINCR all\r\n" : cut ? "INC" : "INCR all\r\n"));
			if (cut) {
				usleep(50);
				EXPECT(say(s->fds[i], "R all\r\n"));
			}
			for (int k = 0; k < (three ? 3 : 1); k++, s->said++) {
				hear_line(s->fds[i], line, sizeof line);
				EXPECT(line[0] == ':');
			}
		}
	}
	return NULL;
}

/* How many lines CLIENT LIST has. */
static uint32_t listed(int fd)
{
	char line[400];
	uint32_t lines = 0;

	EXPECT(say(fd, "CLIENT LIST\r\n"));
	hear_line(fd, line, sizeof line);
	while (hear_line(fd, line, sizeof line)[0])
		lines += strncmp(line, "id=", 3) == 0;
	return lines;
}

static void clients_go_to_and_fro_and_nothing_is_lost(void)
{
	static struct speaker speakers[SPEAKERS];
	uint64_t rng = test_seed;
	struct wire w;

	FOR_IO(io) {
		atomic_u32 stop = 0;
		uint64_t said = 0;

		open_by_hand(&w, io, NULL);
		int watch = dial(&w);

		for (int i = 0; i < SPEAKERS; i++) {
			speakers[i] = (struct speaker){ .w = &w, .stop = &stop };
			for (int k = 0; k < EACH; k++)
				speakers[i].fds[k] = dial(&w);
		}
		EXPECT(comes_to(&w, CONNECTIONS, CLIENTS + 1));
		for (int i = 0; i < SPEAKERS; i++)
			pthread_create(&speakers[i].thread, NULL, speak, &speakers[i]);
		for (int round = 0; round < (int)test_size(400, 100); round++) {
			set_width(&w, 1 + (uint32_t)(test_random(&rng) % WORKERS));
			usleep(500);
			if (round % 8 == 0)
				EXPECT_EQ(listed(watch), CLIENTS + 1);
		}
		store_seq_cst(&stop, 1);
		for (int i = 0; i < SPEAKERS; i++) {
			pthread_join(speakers[i].thread, NULL);
			said += speakers[i].said;
			for (int k = 0; k < EACH; k++)
				(void)close(speakers[i].fds[k]);
		}
		expect_number(watch, "INCR all\r\n", said + 1);
		EXPECT(moved(&w) > 20);
		(void)close(watch);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		wire_end(&w);
	}
}

/* ── on their way ── */

static void *go_to_and_fro(void *arg)
{
	struct speaker *s = arg;

	for (uint32_t i = 0; !load_seq_cst(s->stop); i++) {
		set_width(s->w, 1 + i % WORKERS);
		usleep(100);
	}
	return NULL;
}

/* Speaks until it is cut off. */
static void *speak_to_the_end(void *arg)
{
	char line[64] = ":";

	while (line[0] && say(*(int *)arg, "INCR all\r\n"))
		hear_line(*(int *)arg, line, sizeof line);
	return NULL;
}

static void who_is_to_be_cut_off_is_wherever_it_is(void)
{
	struct wire w;

	FOR_IO(io) {
		atomic_u32 stop = 0;
		struct speaker s = { .w = &w, .stop = &stop };
		pthread_t mover, speaker;
		char line[64], word[128];

		open_by_hand(&w, io, NULL);
		int boss = dial(&w);

		pthread_create(&mover, NULL, go_to_and_fro, &s);
		for (int round = 0; round < 30; round++) {
			int fd = dial(&w);

			EXPECT(say(fd, "CLIENT ID\r\n"));
			hear_line(fd, line, sizeof line);
			snprintf(word, sizeof word, "CLIENT KILL ID %s\r\n", line + 1);
			pthread_create(&speaker, NULL, speak_to_the_end, &fd);
			usleep(300);
			EXPECT(say(boss, word));
			hear_line(boss, line, sizeof line);
			EXPECT(strcmp(line, ":1") == 0);
			pthread_join(speaker, NULL);
			(void)close(fd);
		}
		EXPECT(comes_to(&w, CONNECTIONS, 1));
		store_seq_cst(&stop, 1);
		pthread_join(mover, NULL);
		(void)close(boss);
		wire_end(&w);
	}
}

/* One request on a connection that is kept: true if it was answered, and nothing but that. */
static bool gets(int fd)
{
	char line[400];
	size_t len = 0;
	bool ok;

	if (!say(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		return false;
	ok = strcmp(hear_line(fd, line, sizeof line), "HTTP/1.1 200 OK") == 0;
	while (hear_line(fd, line, sizeof line)[0])
		if (strncmp(line, "Content-Length: ", 16) == 0)
			len = (size_t)atol(line + 16);
	return ok && len > 0 && len < sizeof line && hear(fd, line, len) == len;
}

static void clients_of_http_move_as_well(void)
{
	struct wire w, http;
	char path[108];

	FOR_IO(io) {
		int fds[EACH];

		wire_socket_path(path);
		open_by_hand(&w, io, path);
		http = w;
		http.local = true;
		memcpy(http.path, path, sizeof path);
		for (int i = 0; i < EACH; i++)
			fds[i] = dial(&http);
		for (uint32_t round = 0; round < 300 && (round < 30 || moved(&w) < 10); round++) {
			set_width(&w, 1 + round % WORKERS);
			for (int i = 0; i < EACH; i++)
				EXPECT(gets(fds[i]));
		}
		EXPECT(moved(&w) >= 10);
		for (int i = 0; i < EACH; i++)
			(void)close(fds[i]);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		wire_end(&w);
	}
}

static void the_box_stops_while_they_move(void)
{
	static struct speaker speakers[SPEAKERS];
	struct wire w;

	FOR_IO(io) {
		atomic_u32 stop = 0;
		struct speaker s = { .w = &w, .stop = &stop };
		pthread_t mover, threads[SPEAKERS];

		open_by_hand(&w, io, NULL);
		for (int i = 0; i < SPEAKERS; i++) {
			speakers[i].fds[0] = dial(&w);
			pthread_create(&threads[i], NULL, speak_to_the_end, &speakers[i].fds[0]);
		}
		pthread_create(&mover, NULL, go_to_and_fro, &s);
		EXPECT(comes_to(&w, COMMANDS, 100));
		EXPECT_EQ(noh_stop(w.box, 20000), NOH_OK);
		store_seq_cst(&stop, 1);
		pthread_join(mover, NULL);
		for (int i = 0; i < SPEAKERS; i++) {
			pthread_join(threads[i], NULL);
			(void)close(speakers[i].fds[0]);
		}
		noh_close(w.box);
	}
}

TEST_MAIN(
	TEST(those_that_speak_are_gathered_and_spread_again),
	TEST(clients_go_to_and_fro_and_nothing_is_lost),
	TEST(who_is_to_be_cut_off_is_wherever_it_is),
	TEST(clients_of_http_move_as_well),
	TEST(the_box_stops_while_they_move))
