/* tools/serve_run.c - while it serves: signals, accounts and settings that change, a disk that fails, the end.
 *
 * The main thread waits for a signal, a second at a time, and looks around in between: at the accounts file,
 * and whether the disk still takes what is written. Everything else is the workers' business.
 */
#include "tools/crash.h"
#include "tools/serve_in.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const int taken[] = { SIGTERM, SIGINT, SIGHUP };

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

/* ── accounts ── */

static struct users_mark mark_of(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return (struct users_mark){ .there = false };
	return (struct users_mark){ st.st_mtim, st.st_ino, st.st_size, true };
}

static bool same_mark(const struct users_mark *a, const struct users_mark *b)
{
	return a->there == b->there && a->inode == b->inode && a->size == b->size &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

bool server_read_accounts(struct server *s, char *why, size_t size)
{
	const char *admin = settings_text(&s->settings, SET_ADMIN_TOKEN);
	struct accounts fresh = { 0 };
	uint8_t hash[TOKEN_HASH];

	s->mark = mark_of(s->users);             /* before it is read: a change in between is seen next time */
	if (!accounts_read(&fresh, s->users, why, size))
		return false;
	if (!fresh.present && s->accounts.present) {
		snprintf(why, size, "%s is gone; to serve without users, restart", s->users);
		return false;
	}
	account_hash(admin, hash);
	if (*admin && !accounts_append(&fresh, "admin", NOH_ADMIN, hash, "-")) {
		snprintf(why, size, "users.admin_token is set, and %s has a user admin as well; one of them is enough",
			 s->users);
		accounts_free(&fresh);
		return false;
	}
	accounts_free(&s->accounts);
	s->accounts = fresh;
	return true;
}

bool server_has_accounts(const struct server *s)
{
	return s->accounts.present || s->accounts.count > 0;
}

/* To the library no accounts mean no door. A list that has become empty is a locked one instead: an account
 * whose token nobody has. */
static int lock_door(noh_box *box)
{
	noh_account nobody = { .name = "nobody", .role = NOH_USER };

	if (getrandom(nobody.token, sizeof nobody.token, 0) != sizeof nobody.token)
		return NOH_ESYSTEM;
	return noh_set_accounts(box, &nobody, 1);
}

int server_apply_accounts(struct server *s)
{
	size_t count = s->accounts.count;

	if (count == 0)
		return s->accounts.present ? lock_door(s->box) : NOH_OK;
	noh_account *all = calloc(count, sizeof *all);

	if (!all)
		return NOH_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		all[i].name = s->accounts.all[i].name;
		all[i].role = s->accounts.all[i].role;
		memcpy(all[i].token, s->accounts.all[i].token, TOKEN_HASH);
	}
	int rc = noh_set_accounts(s->box, all, count);

	free(all);
	return rc;
}

static void take_over_accounts(struct server *s)
{
	char why[1024];

	if (!server_read_accounts(s, why, sizeof why))
		server_say(s, NOH_ERROR, "%s; the users stay as they were", why);
	else if (server_apply_accounts(s) != NOH_OK)
		server_say(s, NOH_ERROR, "the users could not be changed: %s", noh_why());
	else if (s->accounts.count == 0)
		server_say(s, NOH_WARN, "%s has no user: nobody may use the server until one is added", s->users);
	else
		server_say(s, NOH_INFO, "users: %zu now, from %s", s->accounts.count, s->users);
}

static void watch_accounts(struct server *s)
{
	struct users_mark now = mark_of(s->users);

	if (!same_mark(&now, &s->mark))
		take_over_accounts(s);
}

/* ── settings ── */

static bool same_value(const struct setting *t, const struct setting_value *a, const struct setting_value *b)
{
	bool text = t->type == SETTING_TEXT || t->type == SETTING_PATH || t->type == SETTING_ADDRESS ||
		    t->type == SETTING_LEVELS;

	return text ? strcmp(a->text, b->text) == 0 : a->number == b->number;
}

static void exchange(struct settings *a, struct settings *b, unsigned id)
{
	struct setting_value held = a->value[id];

	a->value[id] = b->value[id];
	b->value[id] = held;
}

/* How many differ; those that can be changed are. */
static unsigned take_over(struct server *s, struct settings *fresh)
{
	unsigned changed = 0;

	for (unsigned i = 0; i < SETTINGS; i++) {
		const struct setting *t = &settings_table[i];

		if (same_value(t, &s->settings.value[i], &fresh->value[i]))
			continue;
		changed++;
		server_say(s, t->restart ? NOH_WARN : NOH_INFO, "%s.%s: \"%s\" -> \"%s\" (%s)%s", t->section, t->key,
			   settings_shown(&s->settings, i), settings_shown(fresh, i), settings_origin(fresh, i),
			   t->restart ? ": needs a restart" : "");
		if (!t->restart)
			exchange(&s->settings, fresh, i);
	}
	return changed;
}

static void reload(struct server *s)
{
	struct settings fresh;
	char state[64];
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)now.tv_sec * 1000000u + (unsigned long long)now.tv_nsec / 1000u);
	server_notify(state);
	if (!settings_reload(&fresh, &s->settings, environ)) {
		server_say(s, NOH_ERROR, "the settings have errors, so they stay as they were");
	} else {
		if (take_over(s, &fresh) == 0)
			server_say(s, NOH_INFO, "settings read again: nothing has changed");
		if (server_log_open(s) != NOH_OK)
			server_say(s, NOH_ERROR, "log.types: %s; the levels stay as they were", noh_why());
		accounts_path(&s->settings, s->users, sizeof s->users);
		take_over_accounts(s);
	}
	settings_free(&fresh);
	server_notify("READY=1");
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
	taken_set(&set);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static int stop(struct server *s, int sig)
{
	uint64_t deadline = settings_number(&s->settings, SET_STOP_DEADLINE), began = cli_now_ns();
	char took[32];

	server_say(s, NOH_INFO, "%s: stopping, at most %s; again to end now", sig == SIGINT ? "SIGINT" : "SIGTERM",
		   settings_text(&s->settings, SET_STOP_DEADLINE));
	server_notify("STOPPING=1");
	arm_second_signal();
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

int server_run(struct server *s)
{
	const struct timespec second = { .tv_sec = 1 };
	bool full = false;
	sigset_t set;

	taken_set(&set);
	for (;;) {
		int sig = sigtimedwait(&set, NULL, &second);

		if (sig == SIGTERM || sig == SIGINT)
			return stop(s, sig);
		if (sig == SIGHUP)
			reload(s);
		if (noh_sync(s->box, 0) == NOH_EDISK)
			return died(s);
		watch_accounts(s);
		watch_space(s, &full);
	}
}
