/* tests/net/change_test.c - what a program changes while it listens: limits, what CONFIG GET tells, accounts and what
 * they mean for connections that are open; a reload that a client asks for; a stop that waits for nobody deaf. */
#include "tests/net/wire_kit.h"

#include <openssl/sha.h>

static noh_account account(const char *name, int role, const char *secret)
{
	noh_account a = { .name = name, .role = role };

	SHA256((const unsigned char *)secret, strlen(secret), a.token);
	return a;
}

/* The value CONFIG GET tells. */
static bool tells(int fd, const char *name, const char *value)
{
	char line[200], command[100];

	snprintf(command, sizeof command, "CONFIG GET %s\r\n", name);
	(void)say(fd, command);
	for (int i = 0; i < 5; i++)
		hear_line(fd, line, sizeof line);
	return strcmp(line, value) == 0;
}

/* ── options ── */

static void limits_change_under_clients_that_are_connected(void)
{
	struct wire w;

	FOR_IO(io) {
		noh_listen_options l = { .io = io, .max_arg_bytes = 4096 };

		wire_open(&w, (noh_options){ .workers = 2 }, l);
		int fds[4];

		for (int i = 0; i < 4; i++) {            /* on whichever worker */
			fds[i] = dial(&w);
			EXPECT_ASK(fds[i], "PING", "+PONG");
		}
		l.max_arg_bytes = 1024;
		EXPECT_EQ(noh_set_listen_options(w.box, &l), NOH_OK);
		for (int i = 0; i < 4; i++) {
			(void)say(fds[i], "*2\r\n$4\r\nECHO\r\n$2000\r\n");
			EXPECT_HEARS(fds[i], "-ERR Protocol error: invalid bulk length\r\n");
			(void)close(fds[i]);
		}
		wire_end(&w);
	}
}

static void what_a_client_set_stays_until_the_program_changes_that_very_option(void)
{
	static const char *const one[] = { "color", "red", NULL }, *const two[] = { "color", "blue", NULL };
	noh_listen_options l = { .call_ms = 1000, .timeout_ms = 2000, .info = one };
	struct wire w;

	wire_open(&w, (noh_options){ .workers = 1 }, l);
	int fd = dial(&w);

	EXPECT(tells(fd, "color", "red"));
	EXPECT_ASK(fd, "CONFIG SET noh-call-ms 777", "+OK");
	l.timeout_ms = 2500;
	l.info = two;
	EXPECT_EQ(noh_set_listen_options(w.box, &l), NOH_OK);
	EXPECT(tells(fd, "noh-call-ms", "777"));
	EXPECT(tells(fd, "noh-client-timeout-ms", "2500"));
	EXPECT(tells(fd, "color", "blue"));
	l.call_ms = 0;                                   /* the default again */
	EXPECT_EQ(noh_set_listen_options(w.box, &l), NOH_OK);
	EXPECT(tells(fd, "noh-call-ms", "30000"));
	(void)close(fd);
	wire_end(&w);
}

static int hold(noh_turn *t, const noh_msg *m)
{
	(void)t, (void)m;
	gate_pass();
	return NOH_OK;
}
static const noh_type held_type = { .name = "held", .is_volatile = true, .on_message = hold };

static void a_worker_in_a_long_turn_is_waited_for_but_not_for_ever(void)
{
	noh_options o = kit_options(1);
	struct wire w = { .box = kit_open(&o, TYPES(&held_type)) };
	noh_listen_options l = { .max_pipeline = 10 };

	gate_shut();
	EXPECT_EQ(wire_listen(&w, l), NOH_OK);
	EXPECT_EQ(noh_start(w.box), NOH_OK);
	int fd = dial(&w);

	EXPECT_ASK(fd, "PING", "+PONG");
	EXPECT_EQ(noh_send(w.box, "held:a", 0, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	l.max_pipeline = 11;
	EXPECT_EQ(noh_set_listen_options(w.box, &l), NOH_ETIMEOUT);
	gate_open();
	EXPECT(tells(fd, "noh-max-pipeline", "11"));     /* it goes by them after that turn */
	(void)close(fd);
	end(w.box);
}

struct config_told { char text[400]; };

static int add_config(void *user, const noh_event *e)
{
	struct config_told *t = user;
	size_t at = strlen(t->text);

	snprintf(t->text + at, sizeof t->text - at, "%s %s>%s|", e->reason, e->from, e->to);
	return 0;
}

static void what_a_client_sets_is_told_once_with_both_values(void)
{
	struct config_told told = { "" };
	uint64_t cursor = 0;
	struct wire w;

	wire_open(&w, (noh_options){ .workers = 1 }, (noh_listen_options){ .call_ms = 1000 });
	int fd = dial(&w);

	EXPECT_ASK(fd, "CONFIG SET noh-call-ms 777 timeout 5 loglevel error", "+OK");
	EXPECT_ASK(fd, "CONFIG SET noh-call-ms 777", "+OK");     /* it is that already */
	EXPECT_ASK(fd, "CONFIG SET noh-call-ms 0", "-ERR");      /* refused: nothing to tell */
	EXPECT_EQ(noh_events_read(w.box, &cursor, &(noh_events_filter){ .kind = "config" }, 0, add_config, &told), NOH_END);
	if (!EXPECT(strcmp(told.text, "loglevel debug>error|noh-call-ms 1000>777|timeout 0>5|") == 0))
		printf("  %s\n", told.text);
	(void)close(fd);
	wire_end(&w);
}

/* ── accounts ── */

static void a_revoked_account_loses_its_open_connections(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 2, .io = io);
		const noh_account before[] = { account("ann", NOH_USER, "a"), account("bob", NOH_USER, "b"),
					       account("eve", NOH_USER, "e"), account("root", NOH_ADMIN, "r") };
		const noh_account after[] = { account("ann", NOH_USER, "a"), account("eve", NOH_USER, "new"),
					      account("root", NOH_USER, "r") };
		int ann, bob[3], eve, root, nobody;

		EXPECT_EQ(noh_set_accounts(w.box, before, 4), NOH_OK);
		ann = dial(&w), eve = dial(&w), root = dial(&w), nobody = dial(&w);
		EXPECT_ASK(ann, "AUTH ann a", "+OK");
		EXPECT_ASK(eve, "AUTH eve e", "+OK");
		EXPECT_ASK(root, "AUTH root r", "+OK");
		EXPECT_ASK(root, "CONFIG SET timeout 0", "+OK");
		EXPECT_ASK(nobody, "INCR k", "-NOAUTH");
		for (int i = 0; i < 3; i++) {
			bob[i] = dial(&w);
			EXPECT_ASK(bob[i], "AUTH bob b", "+OK");
		}
		EXPECT_ASK(bob[1], "SUBSCRIBE news", "*3");
		(void)say(bob[2], "ACTOR.INVOKE later:a 0 ''\r\n");
		EXPECT(keeps(&w, "later:a", "1"));
		EXPECT_EQ(noh_set_accounts(w.box, after, 3), NOH_OK);
		for (int i = 0; i < 3; i++)              /* idle, listening, waiting for an answer: all of them */
			EXPECT(hears_the_end(bob[i]));
		EXPECT(hears_the_end(eve));              /* another token: not the same any more */
		EXPECT_ASK(root, "CONFIG SET timeout 0", "-NOPERM");     /* another role: from now on */
		EXPECT_ASK(ann, "INCR k", ":1");
		EXPECT_ASK(nobody, "AUTH eve new", "+OK");
		EXPECT(comes_to(&w, CONNECTIONS, 3));
		EXPECT(logged("their accounts are gone"));
		let_go(&w, "later:a");
		(void)close(ann), (void)close(eve), (void)close(root), (void)close(nobody);
		for (int i = 0; i < 3; i++)
			(void)close(bob[i]);
		wire_end(&w);
	}
}

static void the_first_account_ends_whoever_might_do_all(void)
{
	struct wire w;

	WIRE(&w, 2, .io = NOH_IO_AUTO);
	const noh_account ann = account("ann", NOH_USER, "a");
	int early = dial(&w), late;

	EXPECT_ASK(early, "CONFIG SET timeout 0", "+OK");
	EXPECT_EQ(noh_set_accounts(w.box, &ann, 1), NOH_OK);
	EXPECT(hears_the_end(early));
	late = dial(&w);
	EXPECT_ASK(late, "INCR k", "-NOAUTH");
	EXPECT_EQ(noh_set_accounts(w.box, NULL, 0), NOH_OK);     /* and without any, everybody may again */
	EXPECT_ASK(late, "INCR k", ":1");
	(void)close(early), (void)close(late);
	wire_end(&w);
}

static void *change_accounts(void *arg)
{
	struct wire *w = arg;
	const noh_account both[] = { account("ann", NOH_USER, "a"), account("bob", NOH_USER, "b") };

	for (int i = 0; i < 300; i++)
		EXPECT_EQ(noh_set_accounts(w->box, both, i % 2 ? 1 : 2), NOH_OK);
	return NULL;
}

/* Old lists are given back while others log in: a sanitizer sees it if one is looked at too late. */
static void accounts_change_again_and_again_under_clients_that_log_in(void)
{
	struct wire w;
	pthread_t changer;
	const noh_account ann = account("ann", NOH_USER, "a");

	WIRE(&w, 2, .io = NOH_IO_AUTO);
	EXPECT_EQ(noh_set_accounts(w.box, &ann, 1), NOH_OK);
	int fd = dial(&w);

	EXPECT_EQ(pthread_create(&changer, NULL, change_accounts, &w), 0);
	for (int i = 0; i < 300; i++)
		EXPECT_ASK(fd, "AUTH ann a", "+OK");
	EXPECT_EQ(pthread_join(changer, NULL), 0);
	(void)close(fd);
	wire_end(&w);
}

/* ── a reload ── */

static atomic_u64 asked;
static void on_reload(void *user, uint64_t request)
{
	(void)user;
	store_seq_cst(&asked, request);
}

static bool is_asked(void *unused)
{
	(void)unused;
	return load_seq_cst(&asked) != 0;
}

static void a_reload_that_a_client_asks_for_is_answered_by_the_program(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 2, .io = io, .on_reload = on_reload);
		int fd = dial(&w);

		for (int round = 0; round < 3; round++) {
			store_seq_cst(&asked, 0);
			(void)say(fd, "CONFIG RELOAD\r\nPING\r\n");
			EXPECT(test_wait_until(is_asked, NULL, SOON));
			uint64_t request = load_seq_cst(&asked);

			EXPECT_EQ(noh_reloaded(w.box, request, round != 1,
					       round == 0 ? "changed\ta.b\t1\t\tf:3\nwarning\tso so\ncut off" :
					       round == 1 ? "error\tf:1: no\nerror\tf:2: never\n" : ""), NOH_OK);
			EXPECT_HEARS(fd, round == 0 ? "*2\r\n*5\r\n$7\r\nchanged\r\n$3\r\na.b\r\n$1\r\n1\r\n$0\r\n\r\n$3\r\nf:3\r\n"
							"*2\r\n$7\r\nwarning\r\n$5\r\nso so\r\n+PONG\r\n" :
					 round == 1 ? "-ERR nothing was changed: f:1: no | f:2: never\r\n+PONG\r\n" :
						      "*0\r\n+PONG\r\n");
			EXPECT_EQ(noh_reloaded(w.box, request, true, ""), NOH_OK);     /* twice: nobody hears it */
		}
		EXPECT_ASK(fd, "PING", "+PONG");
		EXPECT_EQ(noh_reloaded(w.box, 7, true, ""), NOH_EINVAL);
		(void)close(fd);
		wire_end(&w);
	}
}

static void a_program_without_settings_says_so(void)
{
	struct wire w;

	WIRE(&w, 1, .io = NOH_IO_AUTO);
	int fd = dial(&w);

	EXPECT_ASK(fd, "CONFIG RELOAD", "-ERR this program has no settings to read again");
	(void)close(fd);
	wire_end(&w);
}

/* ── stopping ── */

/* Until the server does not read it further: its answers are not taken. */
static void fill(int fd)
{
	static char request[1000];

	snprintf(request, sizeof request, "ECHO %0900d\r\n", 1);
	for (;;) {
		struct pollfd p = { fd, POLLOUT, 0 };

		if (poll(&p, 1, 100) == 0)
			break;
		(void)!send(fd, request, strlen(request), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

static void a_stop_cuts_who_takes_nothing_and_waits_for_who_does(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 2, .io = io, .stop_ms = 300);
		int deaf = dial(&w), waits = dial(&w);
		uint64_t began;

		fill(deaf);
		(void)say(waits, "INCR k\r\n");
		EXPECT_HEARS(waits, ":1\r\n");
		began = now_us();
		EXPECT_EQ(noh_stop(w.box, 60000), NOH_OK);       /* all was done, long before the deadline */
		EXPECT(now_us() - began < 20000000);
		noh_close(w.box);
		EXPECT(hears_the_end(deaf) && hears_the_end(waits));
		(void)close(deaf), (void)close(waits);
	}
}

static void *stop_it(void *box)
{
	EXPECT_EQ(noh_stop(box, 60000), NOH_OK);
	return NULL;
}

static void a_client_that_takes_its_answers_slowly_gets_them_all_during_a_stop(void)
{
	static char answer[1 << 20];
	struct wire w;
	pthread_t stopper;
	size_t got = 0;

	WIRE(&w, 1, .stop_ms = 1000, .max_arg_bytes = 8 << 20);
	int fd = dial(&w);

	(void)say(fd, "*2\r\n$4\r\nECHO\r\n$4194304\r\n");
	for (int i = 0; i < 4; i++)
		(void)say_bytes(fd, answer, sizeof answer);
	(void)say(fd, "\r\n");
	EXPECT(comes_to(&w, COMMANDS, 1));
	EXPECT_EQ(pthread_create(&stopper, NULL, stop_it, w.box), 0);
	for (ssize_t n; got < (4 << 20) + 12 && (n = take(fd, answer, 200000)) > 0; got += (size_t)n)
		nap_us(20000);                           /* in all much longer than stop_ms */
	EXPECT_EQ(got, (4 << 20) + 12);
	EXPECT(hears_the_end(fd));
	EXPECT_EQ(pthread_join(stopper, NULL), 0);
	noh_close(w.box);
	(void)close(fd);
}

TEST_MAIN(
	TEST(limits_change_under_clients_that_are_connected, "CF-20"),
	TEST(what_a_client_sets_is_told_once_with_both_values, "CF-20"),
	TEST(what_a_client_set_stays_until_the_program_changes_that_very_option),
	TEST(a_worker_in_a_long_turn_is_waited_for_but_not_for_ever),
	TEST(a_revoked_account_loses_its_open_connections),
	TEST(the_first_account_ends_whoever_might_do_all),
	TEST(accounts_change_again_and_again_under_clients_that_log_in),
	TEST(a_reload_that_a_client_asks_for_is_answered_by_the_program, "CF-20"),
	TEST(a_program_without_settings_says_so),
	TEST(a_stop_cuts_who_takes_nothing_and_waits_for_who_does),
	TEST(a_client_that_takes_its_answers_slowly_gets_them_all_during_a_stop))
