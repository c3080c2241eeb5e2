/* tools/serve_reload.c - settings read again while it serves: SIGHUP, CONFIG RELOAD, noh config reload.
 *
 * Everything is read and checked first: file, environment, users. Only if all of it is right does anything change,
 * and then all that can. Whoever asked is told what did (old and new), and what waits for a restart.
 */
#include "tools/reload.h"
#include "tools/serve_in.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ── who asked ── */

/* A stop waits for all who were not answered yet. */
static void refuse_all(struct server *s)
{
	for (int i = 0; i < RELOADS_AT_ONCE; i++) {
		uint64_t request = atomic_exchange(&s->reloads[i], 0);

		if (request)
			(void)noh_reloaded(s->box, request, false, "error\t" RELOAD_STOPPING "\n");
	}
}

/* A worker calls this: it only notes the request and wakes the main thread, as a signal from outside would. If that
 * thread has stopped looking, then either it saw the note, or the note's writer sees that. */
void reload_asked(void *user, uint64_t request)
{
	struct server *s = user;

	for (int i = 0; i < RELOADS_AT_ONCE; i++) {
		uint64_t none = 0;

		if (!atomic_compare_exchange_strong(&s->reloads[i], &none, request))
			continue;
		if (atomic_load(&s->ending))
			refuse_all(s);
		else
			kill(getpid(), SIGHUP);
		return;
	}
	(void)noh_reloaded(s->box, request, false, "error\ttoo many reloads are under way; try again later\n");
}

void reload_end(struct server *s)
{
	atomic_store(&s->ending, true);
	refuse_all(s);
}

/* ── what was found ── */

struct findings {
	struct server *server;
	size_t   len;
	unsigned changed, waiting;
	char     text[65536];                /* lines of noh_reloaded */
};

/* A line that does not fit is left out whole: the log has it all the same. */
static void note(struct findings *f, const char *format, ...) NOH_PRINTF(2, 3);
static void note(struct findings *f, const char *format, ...)
{
	size_t room = sizeof f->text - f->len;
	va_list args;

	va_start(args, format);
	int n = vsnprintf(f->text + f->len, room, format, args);
	va_end(args);
	if (n > 0 && (size_t)n < room)
		f->len += (size_t)n;
	else
		f->text[f->len] = 0;
}

static void note_sentence(void *user, bool wrong, const char *sentence)
{
	struct findings *f = user;

	server_say(f->server, wrong ? NOH_ERROR : NOH_WARN, "%s", sentence);
	note(f, "%s\t%s\n", wrong ? "error" : "warning", sentence);
}

static void note_warning(struct findings *f, const char *format, ...) NOH_PRINTF(2, 3);
static void note_warning(struct findings *f, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	note_sentence(f, false, text);
}

/* ── accounts ── */

static const struct account *find(const struct accounts *a, const char *name)
{
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->all[i].name, name) == 0)
			return &a->all[i];
	return NULL;
}

/* True: they are others than before. */
static bool note_users(struct findings *f, const struct accounts *fresh, const char *path)
{
	const struct accounts *old = &f->server->accounts;
	size_t added = 0, other = 0, stayed = 0;

	for (size_t i = 0; i < fresh->count; i++) {
		const struct account *now = &fresh->all[i], *then = find(old, now->name);

		added += then == NULL;
		stayed += then != NULL;
		other += then && (then->role != now->role || memcmp(then->token, now->token, TOKEN_HASH) != 0);
	}
	size_t gone = old->count - stayed;

	if (added + gone + other == 0 && old->present == fresh->present)
		return false;
	f->changed++;
	note(f, "changed\tusers\t%zu\t%zu (%zu added, %zu removed, %zu changed)\t%s\n", old->count, fresh->count, added, gone,
	     other, path);
	return true;
}

/* ── settings ── */

static void exchange(struct settings *a, struct settings *b, unsigned id)
{
	struct setting_value held = a->value[id];

	a->value[id] = b->value[id];
	b->value[id] = held;
}

/* Those that the box tells of by itself, when it is set. */
static bool box_tells(unsigned id)
{
	static const enum setting_id its[] = { SET_MEMORY, SET_SLOW_TURN, SET_EVENTS_BYTES, SET_EVENTS_KEEP, SET_EVENTS_DETAIL,
					       SET_ACTOR_IDLE, SET_LIMIT_RATE, SET_LIMIT_ACTOR_RATE, SET_LIMIT_TURNS,
					       SET_LIMIT_OVER };

	for (size_t i = 0; i < sizeof its / sizeof its[0]; i++)
		if (its[i] == id)
			return true;
	return false;
}

/* Those that can change do; fresh keeps the old ones. */
static void take_over(struct findings *f, struct settings *fresh, bool is_new[SETTINGS])
{
	struct server *s = f->server;

	for (unsigned i = 0; i < SETTINGS; i++) {
		const struct setting *t = &settings_table[i];
		const char *old = settings_shown(&s->settings, i), *new = settings_shown(fresh, i);

		if (settings_same(&s->settings, fresh, i))
			continue;
		server_say(s, t->restart ? NOH_WARN : NOH_INFO, "%s.%s: \"%s\" -> \"%s\" (%s)%s", t->section, t->key, old, new,
			   settings_origin(fresh, i), t->restart ? ": needs a restart" : "");
		note(f, "%s\t%s.%s\t%s\t%s\t%s\n", t->restart ? "restart" : "changed", t->section, t->key, old, new,
		     settings_origin(fresh, i));
		*(t->restart ? &f->waiting : &f->changed) += 1;
		if (t->restart)
			continue;
		is_new[i] = true;
		char what[128];

		snprintf(what, sizeof what, "%s.%s", t->section, t->key);
		if (!box_tells(i))
			(void)noh_tell_config(s->box, what, old, new);
		exchange(&s->settings, fresh, i);
	}
}

static void set_box(struct server *s, const struct settings *before, const bool is_new[SETTINGS])
{
	static const char *const builtin[] = { "counter", "inventory", "later" };
	const struct settings *set = &s->settings;

	if (is_new[SET_MEMORY])
		(void)noh_set_memory_budget(s->box, settings_number(set, SET_MEMORY));
	if (is_new[SET_SLOW_TURN])
		(void)noh_set_slow_turn(s->box, (uint32_t)settings_number(set, SET_SLOW_TURN));
	if (is_new[SET_EVENTS_BYTES] || is_new[SET_EVENTS_KEEP] || is_new[SET_EVENTS_DETAIL])
		(void)noh_set_events(s->box, server_events_bytes(set), settings_number(set, SET_EVENTS_KEEP),
				     (int)settings_number(set, SET_EVENTS_DETAIL));
	for (unsigned i = 0; is_new[SET_ACTOR_IDLE] && i < 3; i++)
		(void)noh_set_idle_timeout(s->box, builtin[i], (uint32_t)settings_number(set, SET_ACTOR_IDLE));
	if ((is_new[SET_LIMIT_RATE] || is_new[SET_LIMIT_ACTOR_RATE] || is_new[SET_LIMIT_TURNS] || is_new[SET_LIMIT_OVER]) &&
	    limits_apply(s, before) != NOH_OK)
		server_say(s, NOH_ERROR, "limits: %s", noh_why());
}

/* The network's: workers may look at the old table until they go by the new one. */
static void set_network(struct findings *f)
{
	struct server *s = f->server;
	struct info_table *old = s->info;

	server_fit_connections(s);
	if (s->max_connections < settings_number(&s->settings, SET_MAX_CONNECTIONS))
		note_warning(f, "net.max_connections: as many open files are not allowed: %llu connections at most",
			     (unsigned long long)s->max_connections);
	if (!server_fill_info(s))
		note_warning(f, "no memory for what CONFIG GET tells: it tells what was before");
	const noh_listen_options options = server_listen_options(s);

	if (noh_set_listen_options(s->box, &options) != NOH_OK) {
		note_warning(f, "%s", noh_why());
	} else if (s->info != old) {
		s->info->older = NULL;
		for (struct info_table *next; old; old = next) {
			next = old->older;
			free(old);
		}
	}
}

/* ── all of it ── */

static bool read_all(struct findings *f, struct settings *fresh, struct accounts *accounts, char *path, size_t size)
{
	struct server *s = f->server;
	struct users_mark mark;
	char why[1024];

	if (!settings_reload(fresh, &s->settings, note_sentence, f, environ))
		return false;
	if (!limits_check(s, fresh, why, sizeof why)) {
		note_sentence(f, true, why);
		return false;
	}
	if (*settings_text(fresh, SET_USERS_FILE))
		snprintf(path, size, "%s", settings_text(fresh, SET_USERS_FILE));
	else
		snprintf(path, size, "%s/users", settings_text(&s->settings, SET_DIR));
	if (!users_read(s, fresh, path, accounts, &mark, why, sizeof why)) {
		note_sentence(f, true, why);
		return false;
	}
	if (note_users(f, accounts, path)) {
		if (users_apply(s, accounts) != NOH_OK) {        /* nothing after this can fail */
			note_sentence(f, true, noh_why());
			accounts_free(accounts);
			return false;
		}
		(void)noh_tell_config(s->box, "users", NULL, NULL);
	}
	s->mark = mark;
	return true;
}

static bool reload(struct findings *f)
{
	struct server *s = f->server;
	bool is_new[SETTINGS] = { false };
	struct accounts accounts = { 0 };
	struct settings fresh;
	char path[sizeof s->users];
	bool good = read_all(f, &fresh, &accounts, path, sizeof path);

	if (good) {
		memcpy(s->users, path, sizeof path);
		users_take(s, &accounts);
		take_over(f, &fresh, is_new);
		if (server_log_open(s) != NOH_OK)
			server_say(s, NOH_ERROR, "log.types: %s; the levels stay as they were", noh_why());
		set_box(s, &fresh, is_new);
		set_network(f);
		users_tell(s);
		if (f->changed + f->waiting == 0)
			server_say(s, NOH_INFO, "settings read again: nothing has changed");
	} else {
		server_say(s, NOH_ERROR, "the settings have errors, so they stay as they were");
	}
	settings_free(&fresh);
	return good;
}

void reload_now(struct server *s)
{
	static struct findings f;                /* of the main thread */
	uint64_t asked[RELOADS_AT_ONCE];
	char state[64];
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)now.tv_sec * 1000000u + (unsigned long long)now.tv_nsec / 1000u);
	server_notify(state);
	for (int i = 0; i < RELOADS_AT_ONCE; i++)        /* before it begins: who asks later wants another one */
		asked[i] = atomic_exchange(&s->reloads[i], 0);
	f.server = s;
	f.len = f.changed = f.waiting = 0;
	f.text[0] = 0;
	bool good = reload(&f);

	for (int i = 0; i < RELOADS_AT_ONCE; i++)
		if (asked[i])
			(void)noh_reloaded(s->box, asked[i], good, f.text);
	server_notify("READY=1");
}
