/* tools/serve_run.c - while it serves: signals, a disk that fails, the end.
 *
 * The main thread waits for a signal, a second at a time, and looks around in between: at the accounts file
 * (serve_users.c), whether the workers are alive (serve_pulse.c) and whether the disk still takes what is written.
 * Everything else is the workers' business.
 */
#include "tools/crash.h"
#include "tools/serve_in.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int taken[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1 };       /* the last: drain_asked */

static void taken_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
		sigaddset(set, taken[i]);
}

void server_take_signals(void)
{
	sigset_t set;

	taken_set(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* ── the end ── */

static void end_now(int sig)
{
	static const char text[] = "ending now: what was answered is on disk\n";
	struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };

	(void)sig;
	if (poll(&ready, 1, 0) == 1)             /* nobody waits for a log, least of all now */
		(void)!write(STDERR_FILENO, text, sizeof text - 1);
	_exit(CLI_FAILED);
}

/* From here on a signal ends the process, as kill -9 would: that costs nothing that was answered. */
static void arm_second_signal(void)
{
	struct sigaction now = { .sa_handler = end_now }, ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	sigaction(SIGTERM, &now, NULL);
	sigaction(SIGINT, &now, NULL);
	sigaction(SIGHUP, &ignore, NULL);
	sigaction(SIGUSR1, &ignore, NULL);
	taken_set(&set);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static int stop_within(struct server *s, uint64_t deadline)
{
	uint64_t began = cli_now_ns();
	char took[32];

	pulse_end(s, deadline);
	arm_second_signal();
	reload_end(s);
	drain_end(s);
	int rc = noh_stop(s->box, (uint32_t)deadline);

	cli_time(took, sizeof took, (double)(cli_now_ns() - began));
	if (rc == NOH_OK)
		server_say(s, NOH_INFO, "stopped in %s", took);
	else
		server_say(s, NOH_ERROR, "the stop did not finish: %s; what was answered is safe", noh_why());
	crash_watch(NULL);
	noh_close(s->box);
	s->box = NULL;
	return rc == NOH_OK ? CLI_FINE : CLI_FAILED;
}

static int stop(struct server *s, int sig)
{
	server_say(s, NOH_INFO, "%s: stopping, at most %s; again to end now", sig == SIGINT ? "SIGINT" : "SIGTERM",
		   settings_text(&s->settings, SET_STOP_DEADLINE));
	return stop_within(s, settings_number(&s->settings, SET_STOP_DEADLINE));
}

/* What is left after a drain that took too long is not waited for again. */
static int drain(struct server *s)
{
	enum { NOTHING_LEFT_MS = 30000, TOO_LATE_MS = 1000 };
	bool done = drain_now(s);

	if (s->drain.cut_by)
		return stop(s, s->drain.cut_by);
	int code = stop_within(s, done ? NOTHING_LEFT_MS : TOO_LATE_MS);

	return done ? code : CLI_FAILED;
}

/* Nothing is acknowledged any more, and threads may hang in the kernel: say why and go, for whoever restarts it. */
static int died(struct server *s)
{
	server_say(s, NOH_ERROR, "the disk failed: %s; ending, so that a restart recovers what was answered "
		   "(noh verify %s checks the directory)", noh_why(), settings_text(&s->settings, SET_DIR));
	server_notify("STATUS=the disk failed");
	fflush(NULL);
	(void)noh_logger_flush(s->log.logger, 2000);
	_exit(CLI_FAILED);
}

static void watch_space(struct server *s, bool *was_full)
{
	noh_box_stats stats;

	if (noh_get_stats(s->box, &stats) != NOH_OK || stats.read_only == *was_full)
		return;
	*was_full = stats.read_only;
	if (stats.read_only)
		server_say(s, NOH_ERROR, "no space left for %s: writes are refused, reads go on, until there is room",
			   settings_text(&s->settings, SET_DIR));
	else
		server_say(s, NOH_WARN, "there is space again for %s: writes go on", settings_text(&s->settings, SET_DIR));
}

static void tell_signal(struct server *s, const siginfo_t *by)
{
	char from[64];

	snprintf(from, sizeof from, "process %d of user %u", (int)by->si_pid, (unsigned)by->si_uid);
	(void)noh_tell_admin(s->box, &(noh_admin_call){ .who = "SIGHUP", .call = "config reload", .from = from });
}

int server_run(struct server *s)
{
	bool full = false;
	sigset_t set;

	taken_set(&set);
	pulse_begin(s);
	for (;;) {
		const struct timespec nap = pulse_nap(s);
		siginfo_t by = { .si_pid = 0 };
		int sig = sigtimedwait(&set, &by, &nap);

		if (sig == SIGTERM || sig == SIGINT)
			return stop(s, sig);
		if (sig == SIGHUP && by.si_pid != getpid())      /* not by reload_asked: that has told already */
			tell_signal(s, &by);
		if (sig == SIGHUP)
			reload_now(s);
		if (drain_wanted(s))
			return drain(s);
		if (noh_sync(s->box, 0) == NOH_EDISK)
			return died(s);
		users_watch(s);
		watch_space(s, &full);
		pulse_take(s);
	}
}
