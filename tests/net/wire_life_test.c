/* tests/net/wire_life_test.c - clients that come, vanish, are killed or have no business here; a server that stops
 * under them. On both io backends. Nothing of them is left: a stop that waits for nobody proves it, and so
 * do the sanitizers. */
#include "tests/net/wire_kit.h"

#include <openssl/sha.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* ── vanishing ── */

static void clients_that_vanish_anywhere_leave_nothing(void)
{
	static const char *const moments[] = {
		"", "*", "*2\r\n$4\r\nECHO\r\n$5000\r\nabc", "INCR k\r\n", "INCR k\r\nINCR",
		"ACTOR.INVOKE later:a 0 ''\r\n",
		"ACTOR.INVOKE later:a 0 ''\r\nINCR k\r\nMGET a b c\r\nPING\r\nACTOR.INVOKE later:a 0 ''\r\n",
		("ACTOR.INVOKE queue:x 0 ''\r\nACTOR.INVOKE queue:x 0 ''\r\nACTOR.INVOKE queue:x 0 ''\r\n"
		 "ACTOR.INVOKE queue:x 0 ''\r\nACTOR.INVOKE queue:x 0 ''\r\nACTOR.INVOKE queue:x 0 ''\r\nMGET a b\r\n"),
		"CLIENT REPLY OFF\r\nINCR k\r\nACTOR.INVOKE later:a 0 ''\r\n", "QUIT\r\n", "*1\r\n:\r\n",
	};
	struct wire w;

	FOR_IO(io) {
		for (int round = 0; round < 4; round++) {
			WIRE_ON_DISK(&w, 2, .io = io, .call_ms = 2000);
			uint64_t bytes = 0;
			int fd;

			w.local = round & 1;
			EXPECT_EQ(put(w.box, "queue:x", JAM_JAM, 0), NOH_OK);
			EXPECT(keeps(&w, "later:jam", "1"));
			for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
				fd = dial(&w);
				(void)say(fd, moments[i]);
				bytes += strlen(moments[i]);
				if (round < 2)
					EXPECT(comes_to(&w, BYTES_IN, bytes));   /* it has them; else: perhaps */
				if (i % 2 == 0)
					vanish(fd);
				else
					(void)close(fd);
			}
			let_go(&w, "later:a");
			let_go(&w, "later:jam");
			EXPECT(comes_to(&w, CONNECTIONS, 0));
			fd = dial(&w);
			EXPECT_ASK(fd, "PING", "+PONG");
			(void)close(fd);
			wire_end(&w);
		}
	}
}

/* The one that answers never comes to it; the client does not wait so long. */
static void a_stop_does_not_wait_for_clients_that_are_gone(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 2, .io = io, .call_ms = 60000);
		int fd = dial(&w);
		uint64_t began;

		(void)say(fd, "ACTOR.INVOKE later:a 0 ''\r\n");
		EXPECT(keeps(&w, "later:a", "1"));
		vanish(fd);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		began = now_us();
		EXPECT_EQ(noh_stop(w.box, SOON), NOH_OK);
		EXPECT(now_us() - began < 5000000);
		noh_close(w.box);
	}
}

#define STORM 150
static void hundreds_of_connections_come_and_go(void)
{
	struct wire w;
	int fd[STORM];

	FOR_IO(io) {
		WIRE(&w, 2, .io = io);
		for (int round = 0; round < 5; round++) {
			for (int i = 0; i < STORM; i++) {
				fd[i] = dial(&w);
				(void)say(fd[i], "INCR k\r\nPING\r\n");
			}
			for (int i = 0; i < STORM; i++) {
				if (i % 3 == 0) {
					char line[40];

					EXPECT(hear_line(fd[i], line, sizeof line)[0] == ':');
					EXPECT_HEARS(fd[i], "+PONG\r\n");
				}
				if (i % 2)
					vanish(fd[i]);
				else
					(void)close(fd[i]);
			}
			EXPECT(comes_to(&w, CONNECTIONS, 0));
		}
		EXPECT_EQ(net_stats(&w).accepted, 5 * STORM);
		wire_end(&w);
	}
}

/* ── CLIENT KILL ── */

#define CROWD 12
static void any_client_is_killed_from_any_worker(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 4, .io = io);
		int fd[CROWD], killer = dial(&w);
		char line[100];

		for (int i = 0; i < CROWD; i++) {
			fd[i] = dial(&w);
			EXPECT_ASK(fd[i], "PING", "+PONG");
		}
		for (int i = 0; i < CROWD; i += 2) {
			char kill[200];

			(void)say(fd[i], "CLIENT ID\r\n");
			snprintf(kill, sizeof kill, "CLIENT KILL ID %s", hear_line(fd[i], line, sizeof line) + 1);
			if (i % 4 == 0)
				(void)say(fd[i], "ACTOR.INVOKE later:a 0 ''\r\n");
			EXPECT_ASK(killer, kill, ":1");
			EXPECT(hears_the_end(fd[i]));
		}
		EXPECT(comes_to(&w, CONNECTIONS, CROWD / 2 + 1));
		for (int i = 1; i < CROWD; i += 2)
			EXPECT_ASK(fd[i], "PING", "+PONG");
		EXPECT_ASK(killer, "CLIENT KILL ID 999999", ":0");
		EXPECT_ASK(killer, "CLIENT KILL TYPE normal SKIPME yes", ":6");
		for (int i = 1; i < CROWD; i += 2)
			EXPECT(hears_the_end(fd[i]));
		EXPECT_ASK(killer, "PING", "+PONG");
		for (int i = 0; i < CROWD; i++)
			(void)close(fd[i]);
		(void)close(killer);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		let_go(&w, "later:a");
		wire_end(&w);
	}
}

/* ── who may ── */

static noh_account account(const char *name, int role, const char *secret)
{
	noh_account a = { .name = name, .role = role };

	SHA256((const unsigned char *)secret, strlen(secret), a.token);
	return a;
}

static void who_has_not_logged_in_may_do_next_to_nothing(void)
{
	struct wire w;
	static char big[20000];

	FOR_IO(io) {
		WIRE(&w, 1, .io = io, .timeout_ms = 500);
		const noh_account ann = account("ann", NOH_USER, "secret");
		int fd;

		EXPECT_EQ(noh_set_accounts(w.box, &ann, 1), NOH_OK);
		fd = dial(&w);
		EXPECT_ASK(fd, "INCR k", "-NOAUTH");
		EXPECT_ASK(fd, "CLIENT LIST", "-NOAUTH");
		EXPECT_ASK(fd, "AUTH ann wrong", "-WRONGPASS");
		EXPECT_ASK(fd, "AUTH bob secret", "-WRONGPASS");
		EXPECT_ASK(fd, "HELLO 3 AUTH ann wrong", "-WRONGPASS");
		(void)say(fd, "*11\r\n");                        /* ten arguments of 16 KiB, no more */
		EXPECT_HEARS(fd, "-ERR Protocol error: invalid multibulk length\r\n");
		EXPECT(hears_the_end(fd));
		(void)close(fd);
		fd = dial(&w);
		(void)say(fd, "*2\r\n$4\r\nAUTH\r\n$16385\r\n");
		EXPECT_HEARS(fd, "-ERR Protocol error: invalid bulk length\r\n");
		EXPECT(hears_the_end(fd));
		(void)close(fd);
		fd = dial(&w);
		EXPECT_ASK(fd, "AUTH ann secret", "+OK");
		snprintf(big, sizeof big, "ECHO %017000d", 1);
		EXPECT_ASK(fd, big, "$17000");
		(void)hear(fd, big, 17002);
		EXPECT_ASK(fd, "INCR k", ":1");
		EXPECT_ASK(fd, "CONFIG SET timeout 1", "-NOPERM");
		EXPECT_ASK(fd, "RESET", "+RESET");
		EXPECT_ASK(fd, "INCR k", "-NOAUTH");
		(void)close(fd);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		wire_end(&w);
	}
}

/* It may neither send for ever nor make the server keep what it does not read. */
static void who_has_not_logged_in_and_never_reads_takes_little_memory(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 1, .io = io, .timeout_ms = 500);
		const noh_account list[] = { account("ann", NOH_ADMIN, "secret") };
		int fd, admin;
		char line[1000];
		uint64_t sent = 0;

		EXPECT_EQ(noh_set_accounts(w.box, list, 1), NOH_OK);
		fd = dial(&w);
		for (;;) {
			struct pollfd p = { fd, POLLOUT, 0 };

			if (poll(&p, 1, 200) <= 0 || (p.revents & (POLLERR | POLLHUP)))
				break;
			ssize_t n = send(fd, "PING\r\nPING\r\nPING\r\nPING\r\n", 24, MSG_DONTWAIT | MSG_NOSIGNAL);

			if (n < 0 && errno != EAGAIN && errno != EINTR)
				break;
			sent += n > 0 ? (uint64_t)n : 0;
		}
		EXPECT(sent < 50u << 20);                /* it is not read further */
		admin = dial(&w);
		EXPECT_ASK(admin, "AUTH ann secret", "+OK");
		(void)say(admin, "CLIENT LIST\r\n");
		hear_line(admin, line, sizeof line);
		hear_line(admin, line, sizeof line);
		EXPECT(strstr(line, " obl=") != NULL && atol(strstr(line, " obl=") + 5) < 100000);
		EXPECT(comes_to(&w, CLOSED_SLOW, 1));
		EXPECT(hears_the_end(fd));
		(void)close(fd);
		(void)close(admin);
		wire_end(&w);
	}
}

static void accounts_are_replaced_while_clients_are_connected(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 2, .io = io);
		const noh_account first[] = { account("ann", NOH_USER, "one"), account("root", NOH_ADMIN, "r") };
		const noh_account second[] = { account("ann", NOH_USER, "two"), account("root", NOH_ADMIN, "r") };
		int fd;

		EXPECT_EQ(noh_set_accounts(w.box, first, 2), NOH_OK);
		fd = dial(&w);
		EXPECT_ASK(fd, "AUTH ann one", "+OK");
		EXPECT_EQ(noh_set_accounts(w.box, second, 2), NOH_OK);
		EXPECT(hears_the_end(fd));                               /* what it logged in with is gone */
		(void)close(fd);
		fd = dial(&w);
		EXPECT_ASK(fd, "AUTH ann one", "-WRONGPASS");
		EXPECT_ASK(fd, "AUTH ann two", "+OK");
		EXPECT_ASK(fd, "HELLO 2 AUTH root r", "*14");
		(void)close(fd);
		EXPECT_EQ(noh_set_accounts(w.box, NULL, 0), NOH_OK);     /* nobody in particular: everybody */
		fd = dial(&w);
		EXPECT_ASK(fd, "INCR k", ":1");
		EXPECT_ASK(fd, "CONFIG SET timeout 100", "+OK");
		(void)close(fd);
		wire_end(&w);
	}
}

/* ── stopping ── */

struct stopper { pthread_t thread; noh_box *box; uint32_t ms; int rc; };
static void *stop_it(void *arg)
{
	struct stopper *s = arg;

	s->rc = noh_stop(s->box, s->ms);
	return NULL;
}

static void a_stop_answers_what_was_asked_and_closes(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE_ON_DISK(&w, 2, .io = io, .call_ms = 1000);
		struct stopper s = { .box = w.box, .ms = SOON };
		int waits = dial(&w), idle = dial(&w), half = dial(&w), busy = dial(&w);
		char line[100];

		(void)say(waits, "INCR k\r\nACTOR.INVOKE later:a 0 ''\r\nINCR k\r\n");
		(void)say(half, "INCR");
		EXPECT_ASK(idle, "PING", "+PONG");
		EXPECT(keeps(&w, "later:a", "1"));
		EXPECT_EQ(pthread_create(&s.thread, NULL, stop_it, &s), 0);
		EXPECT(hears_the_end(idle));
		EXPECT(hears_the_end(half));
		while (say(busy, "INCR k\r\n") && hear_line(busy, line, sizeof line)[0] == ':')
			;                                /* answered or closed, but never left alone */
		EXPECT(line[0] == 0 || strncmp(line, "-STOPPING", 9) == 0);
		EXPECT_HEARS(waits, ":1\r\n");           /* what it asked is answered: here with the end of the wait */
		hear_line(waits, line, sizeof line);
		EXPECT(strncmp(line, "-TIMEOUT", 8) == 0);
		EXPECT_HEARS(waits, ":2\r\n");
		EXPECT(hears_the_end(waits));
		EXPECT_EQ(pthread_join(s.thread, NULL), 0);
		EXPECT_EQ(s.rc, NOH_OK);
		noh_close(w.box);
		remove_dir(w.dir);
		(void)close(waits), (void)close(idle), (void)close(half), (void)close(busy);
	}
}

/* Clients that never take their answers do not keep it from ending in time. */
static void a_stop_ends_in_time_whatever_clients_do(void)
{
	struct wire w;
	static char request[1000];

	snprintf(request, sizeof request, "ECHO %0900d\r\n", 1);
	FOR_IO(io) {
		WIRE(&w, 2, .io = io);
		int deaf = dial(&w), waits = dial(&w);
		uint64_t began;

		for (;;) {
			struct pollfd p = { deaf, POLLOUT, 0 };
			int rc = poll(&p, 1, 100);

			if (rc == 0)
				break;
			(void)!send(deaf, request, strlen(request), MSG_DONTWAIT | MSG_NOSIGNAL);
		}
		(void)say(waits, "ACTOR.INVOKE later:a 0 ''\r\n");
		EXPECT(keeps(&w, "later:a", "1"));
		began = now_us();
		(void)noh_stop(w.box, 1000);
		EXPECT(now_us() - began < 4000000);
		noh_close(w.box);
		EXPECT(hears_the_end(deaf) && hears_the_end(waits));
		(void)close(deaf), (void)close(waits);
	}
}

/* ── sockets ── */

static void the_unix_socket_is_ours_alone(void)
{
	struct wire w, v;
	struct stat st;

	FOR_IO(io) {
		noh_listen_options l = { .io = io, .resp_port = -1 };
		noh_options o = kit_options(1);
		struct sockaddr_un at = { .sun_family = AF_UNIX };
		int fd;

		WIRE(&w, 2, .io = io);
		EXPECT(stat(w.path, &st) == 0 && S_ISSOCK(st.st_mode) && (st.st_mode & 077) == 0);
		w.local = true;
		fd = dial(&w);
		EXPECT_ASK(fd, "PING", "+PONG");
		l.unix_path = w.path;                    /* in use: the second one is refused, the first one lives on */
		v.box = kit_open(&o, TYPES(noh_counter_type()));
		EXPECT_EQ(noh_listen(v.box, &l), NOH_ESYSTEM);
		EXPECT(strstr(noh_why(), w.path) != NULL);
		noh_close(v.box);
		EXPECT_ASK(fd, "PING", "+PONG");
		(void)close(fd);
		fd = dial(&w);
		EXPECT_ASK(fd, "PING", "+PONG");
		(void)close(fd);
		wire_end(&w);

		wire_socket_path(w.path);                /* left over from a crash: taken over */
		memcpy(at.sun_path, w.path, sizeof w.path);
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		EXPECT_EQ(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
		(void)close(fd);
		l.unix_path = w.path;
		v.box = kit_open(&o, TYPES(noh_counter_type()));
		EXPECT_EQ(noh_listen(v.box, &l), NOH_OK);
		EXPECT_EQ(noh_start(v.box), NOH_OK);
		v.local = true;
		memcpy(v.path, w.path, sizeof v.path);
		fd = dial(&v);
		EXPECT_ASK(fd, "PING", "+PONG");
		(void)close(fd);
		end(v.box);

		FILE *f = fopen(w.path, "we");           /* somebody's file: never touched */

		EXPECT(f != NULL && fclose(f) == 0);
		v.box = kit_open(&o, TYPES(noh_counter_type()));
		EXPECT_EQ(noh_listen(v.box, &l), NOH_ESYSTEM);
		noh_close(v.box);
		EXPECT(stat(w.path, &st) == 0 && S_ISREG(st.st_mode));
		(void)unlink(w.path);
	}
}

static void a_port_in_use_is_named(void)
{
	struct wire w;

	FOR_IO(io) {
		noh_options o = kit_options(1);
		noh_box *box;

		WIRE(&w, 2, .io = io);
		box = kit_open(&o, TYPES(noh_counter_type()));
		EXPECT_EQ(noh_listen(box, &(noh_listen_options){ .io = io, .resp_port = w.port }), NOH_ESYSTEM);
		EXPECT(strstr(noh_why(), "127.0.0.1 port") != NULL);
		noh_close(box);
		wire_end(&w);
	}
}

/* Out of descriptors costs no CPU, and those who are there are served. */
static void without_descriptors_clients_wait_and_nothing_spins(void)
{
	struct wire w;
	struct rlimit limit, tight;

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	FOR_IO(io) {
		WIRE(&w, 1, .io = io);
		int fd = dial(&w), late = dial(&w), spare = dup(0);
		uint64_t passes;

		EXPECT_ASK(fd, "PING", "+PONG");
		EXPECT_ASK(late, "PING", "+PONG");
		(void)close(late);
		EXPECT(comes_to(&w, CONNECTIONS, 1));
		late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		(void)close(spare);
		spare = dup(0);                          /* the lowest that is free: none is below it */
		tight = (struct rlimit){ (rlim_t)spare, limit.rlim_max };
		(void)close(spare);
		struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)w.port),
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
		EXPECT(connects(late, &at, sizeof at));
		(void)say(late, "PING\r\n");
		passes = stats(w.box).total.passes;
		for (int i = 0; i < 10; i++) {
			EXPECT_ASK(fd, "PING", "+PONG");
			nap_us(50000);
		}
		passes = stats(w.box).total.passes - passes;
		if (!EXPECT(passes < 2000))
			printf("  %llu passes in half a second\n", (unsigned long long)passes);
		EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
		struct timeval patience = { .tv_sec = SOON / 1000 };

		(void)setsockopt(late, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
		EXPECT_HEARS(late, "+PONG\r\n");
		(void)close(fd), (void)close(late);
		wire_end(&w);
	}
}

TEST_MAIN(
	TEST(clients_that_vanish_anywhere_leave_nothing, "P11"),
	TEST(a_stop_does_not_wait_for_clients_that_are_gone),
	TEST(hundreds_of_connections_come_and_go),
	TEST(any_client_is_killed_from_any_worker),
	TEST(who_has_not_logged_in_may_do_next_to_nothing, "P11"),
	TEST(who_has_not_logged_in_and_never_reads_takes_little_memory, "P11"),
	TEST(accounts_are_replaced_while_clients_are_connected),
	TEST(a_stop_answers_what_was_asked_and_closes),
	TEST(a_stop_ends_in_time_whatever_clients_do),
	TEST(the_unix_socket_is_ours_alone),
	TEST(a_port_in_use_is_named),
	TEST(without_descriptors_clients_wait_and_nothing_spins, "P11"))
