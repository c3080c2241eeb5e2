/* tests/net/fake_net.c - a connection and a box that only write down what they are asked. */
#include "tests/net/fake_net.h"

#include "core/error.h"
#include "net/feed.h"
#include "net/tell.h"
#include "noh_actors.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake fake;

/* ── writing down ─────────────────────────────────────────────────────────────────────────────── */
static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *format, ...)
{
	size_t at = strlen(fake.asked);
	va_list args;

	va_start(args, format);
	vsnprintf(fake.asked + at, sizeof fake.asked - at, format, args);
	va_end(args);
}

static int64_t word(const struct request *r, size_t at)
{
	int64_t n = 0;

	if (r->len >= at + sizeof n)
		memcpy(&n, (const char *)r->body + at, sizeof n);
	return n;
}

/* The flags of a body that has them, as letters in the order of their bits. */
static void put_flags(uint32_t flags)
{
	static const char *const names[] = { "in", "at", "keep", "persist", "ifnone", "ifthere", "ifnotime", "iftime",
					     "iflater", "ifearlier", "saturate" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (flags & 1u << i)
			put(" %s", names[i]);
}

static void put_counter(const struct request *r)
{
	static const char *const kinds[] = { "get", "add", "set", "delete", "expire", "ttl" };

	put(" %s", r->kind < 6 ? kinds[r->kind] : "?");
	if (r->len == 8)
		put(" %" PRId64, word(r, 0));
	if (r->kind == NOH_COUNTER_ADD && r->len == sizeof(noh_counter_add)) {
		const noh_counter_add *a = r->body;

		put(" %" PRId64 " within %" PRId64 " %" PRId64 " time %" PRId64, a->by, a->low, a->high, a->time);
		put_flags(a->flags);
	} else if (r->kind == NOH_COUNTER_SET && r->len == sizeof(noh_counter_set)) {
		const noh_counter_set *s = r->body;

		put(" %" PRId64 " time %" PRId64, s->value, s->time);
		put_flags(s->flags);
	} else if (r->kind == NOH_COUNTER_EXPIRE) {
		const noh_counter_expire *e = r->body;

		put(" %" PRId64, e->time);
		put_flags(e->flags);
	}
}

static void put_inventory(const struct request *r)
{
	static const char *const kinds[] = { "restock", "reserve", "commit", "release", "get", "holds", "set" };

	put(" %s", r->kind < 7 ? kinds[r->kind] : "?");
	if (r->kind == NOH_INVENTORY_HOLDS) {
		const noh_inventory_page *p = r->body;

		put(" from %" PRIu64 " limit %u", p->cursor, p->limit);
	} else if (r->len >= 8) {
		put(" %" PRId64, word(r, 0));
		if (r->len == 16)
			put(" ttl %" PRId64, word(r, 8));
	}
}

static void put_request(const struct request *r)
{
	static const char *const ops[] = { "", "send ", "activate ", "deactivate ", "force " };
	static const char *const types[] = { "", "counter:", "inventory:" };

	put("%s%s%.*s", ops[r->op], types[r->type], (int)r->id_len, r->id);
	if (r->type == TYPE_COUNTER)
		put_counter(r);
	else if (r->type == TYPE_INVENTORY)
		put_inventory(r);
	else if (r->op == REQUEST_CALL || r->op == REQUEST_SEND)
		put(" %u '%.*s'", r->kind, (int)r->len, (const char *)r->body);
	if (r->timeout_ms)
		put(" timeout %u", r->timeout_ms);
	if (r->durability == NOH_MEMORY)
		put(" memory");
	if (r->no_wait)
		put(" nowait");
	if (r->key)
		put(" key %.*s", (int)r->key_len, (const char *)r->key);
	if (r->trace)
		put(" trace %.*s", (int)r->trace->parent.len, r->trace->parent.at);
	if (r->trace && r->trace->state.len)
		put(" state %.*s", (int)r->trace->state.len, r->trace->state.at);
}

static void asked(bool step, const struct request *requests, uint32_t n, format_fn *format, struct tag tag)
{
	fake.step = step;
	fake.requests = n;
	fake.format = format;
	fake.tag = tag;
	if (n && requests->note && requests->note_len <= sizeof fake.note) {
		memcpy(fake.note, requests->note, requests->note_len);
		fake.tag.a = (uint64_t)(uintptr_t)fake.note;
	}
	for (uint32_t i = 0; i < n; i++) {
		put("%s", i ? "; " : "");
		put_request(&requests[i]);
	}
}

void call_actors(struct call *c, const struct request *requests, uint32_t n, format_fn *format, struct tag tag)
{
	(void)c;
	asked(false, requests, n, format, tag);
}

void call_step(struct call *c, const struct request *requests, uint32_t n, format_fn *format, struct tag tag)
{
	(void)c;
	asked(true, requests, n, format, tag);
}

bool call_reload(struct call *c, format_fn *format, struct tag tag)
{
	(void)c;
	if (fake.reloads)
		asked(false, NULL, 0, format, tag);
	return fake.reloads;
}

bool call_drain(struct call *c, uint32_t deadline_ms, format_fn *format, struct tag tag)
{
	(void)c;
	if (!fake.drains)
		return false;
	fake.drain_ms = deadline_ms;
	if (format)
		asked(false, NULL, 0, format, tag);
	return true;
}

bool net_draining(struct net *n)
{
	(void)n;
	return fake.draining;
}

int noh_get_drain(noh_box *box, noh_drain_state *state)
{
	(void)box;
	*state = (noh_drain_state){ .draining = fake.draining, .actors = 7, .messages = 9, .left_ms = 1500 };
	return NOH_OK;
}

/* ── what is asked of other threads ───────────────────────────────────────────────────────────── */
int tell_actor(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	(void)box, (void)args, (void)len, (void)o;
	return NOH_OK;
}

int tell_tree(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	return tell_actor(box, args, len, o);
}

int tell_quarantine(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	return tell_actor(box, args, len, o);
}

int tell_resume(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	return tell_actor(box, args, len, o);
}

void call_errand(struct call *c, errand_fn *run, const void *args, uint32_t len, uint32_t timeout_ms, format_fn *format,
		 struct tag tag)
{
	const struct tell_wish *w = args;

	(void)c, (void)len, (void)timeout_ms;
	asked(false, NULL, 0, format, tag);
	put("%s %s limit %u", run == tell_actor ? "describe" : run == tell_tree ? "tree" : run == tell_resume ? "resume" : "quarantine",
	    *w->whom ? w->whom : "all", w->limit);
}

void call_events(struct call *c, const struct feed_wish *w, format_fn *format, struct tag tag)
{
	(void)c;
	asked(false, NULL, 0, format, tag);
	put("events behind %" PRIu64 " limit %u block %u", w->cursor, w->limit, w->block_ms);
	put("%s%s", *w->actor ? " actor " : "", w->actor);
	put("%s%s", *w->type ? " type " : "", w->type);
	put("%s%s", *w->kind ? " kind " : "", w->kind);
	if (w->since_ms)
		put(" since %" PRIu64, w->since_ms);
}

void call_audit(struct call *c, const char *call, const char *actor, const char *target)
{
	(void)c;
	snprintf(fake.audit, sizeof fake.audit, "%s %s %s", call, actor ? actor : "-", target ? target : "-");
}

int noh_events_bounds(noh_box *box, uint64_t *oldest, uint64_t *newest)
{
	(void)box;
	if (oldest)
		*oldest = 5;
	if (newest)
		*newest = 99;
	return NOH_OK;
}

const noh_type *noh_find_type(noh_box *box, const char *name)
{
	static const noh_type types[] = { { .name = "counter" }, { .name = "npc" } };

	(void)box;
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (strcmp(name, types[i].name) == 0)
			return &types[i];
	return NULL;
}

/* ── the connection layer ─────────────────────────────────────────────────────────────────────── */
struct out *call_out(struct call *c)
{
	(void)c;
	return &fake.out;
}

noh_box *call_box(struct call *c)
{
	(void)c;
	return NULL;
}

struct session *call_session(struct call *c)
{
	(void)c;
	return &fake.session;
}

static bool is(const struct arg *a, const char *text)
{
	return a->len == strlen(text) && memcmp(a->at, text, a->len) == 0;
}

int net_login(struct net *n, struct session *s, const struct arg *name, const struct arg *secret)
{
	(void)n;
	(void)s;
	if (!fake.accounts)
		return -2;
	if (!is(secret, "secret"))
		return -1;
	return is(name, "anna") || is(name, "default") ? NOH_USER : is(name, "root") ? NOH_ADMIN : -1;
}

uint32_t call_login_waits_s(struct call *c)
{
	(void)c;
	return fake.login_waits_s;
}

void call_login_failed(struct call *c)
{
	(void)c;
	fake.logins_failed++;
}

void net_client_changed(struct conn *conn)
{
	(void)conn;
	fake.changes++;
}

void net_client(struct conn *conn, struct client *client)
{
	(void)conn;
	session_describe(&fake.session, client);
	client->fd = 7;
	client->active_ms = 1700000000000;
	strcpy(client->addr, "127.0.0.1:1001");
	strcpy(client->local, "127.0.0.1:7411");
}

void net_each_client(struct net *n, client_fn *each, void *user)
{
	(void)n;
	for (int i = 0; i < FAKE_CLIENTS; i++) {
		struct client client = fake.clients[i];

		if (client.id == fake.session.id)
			net_client(NULL, &client);
		if (!each(user, &client))
			return;
	}
}

bool net_kill_client(struct net *n, uint64_t id)
{
	(void)n;
	for (int i = 0; i < FAKE_CLIENTS; i++)
		if (fake.clients[i].id == id) {
			fake.killed |= 1u << i;
			return true;
		}
	return false;
}

const noh_listen_options *net_options(struct net *n)
{
	(void)n;
	return &fake.options;
}

bool net_set_option(struct net *n, const char *name, uint64_t value)
{
	(void)n;
	if (strcmp(name, "timeout") != 0 && strcmp(name, "maxclients") != 0)
		return false;
	snprintf(fake.option, sizeof fake.option, "%s", name);
	fake.option_value = value;
	return true;
}

uint64_t net_started_ms(struct net *n)
{
	(void)n;
	return 1699999990000;
}

uint64_t net_command_calls(struct net *n, uint32_t index)
{
	(void)n;
	return load_relaxed(&fake.calls[index]);
}

void net_reset_stats(struct net *n)
{
	(void)n;
	fake.resets++;
}

void net_shutdown(struct net *n)
{
	(void)n;
	fake.shutdowns++;
}

/* ── the box ──────────────────────────────────────────────────────────────────────────────────── */
static char log_level[64] = "info";

int noh_tell_config(noh_box *box, const char *what, const char *from, const char *to)
{
	(void)box, (void)what, (void)from, (void)to;
	return NOH_OK;
}

int noh_set_log_level(noh_box *box, const char *levels)
{
	(void)box;
	if (strcmp(levels, "loud") == 0)
		return error_set(NOH_EINVAL, "no such level");
	snprintf(log_level, sizeof log_level, "%s", levels);
	return NOH_OK;
}

int noh_get_log_level(noh_box *box, char *levels, size_t size)
{
	(void)box;
	snprintf(levels, size, "%s", log_level);
	return NOH_OK;
}

int noh_get_stats(noh_box *box, noh_box_stats *stats)
{
	(void)box;
	*stats = (noh_box_stats){ .workers = 2, .actors = 3, .stored = 5 };
	return NOH_OK;
}

int noh_get_net_stats(noh_box *box, noh_net_stats *stats)
{
	(void)box;
	*stats = (noh_net_stats){ .io = "epoll", .connections = 3 };
	return NOH_OK;
}

const char *noh_type_name(noh_box *box, unsigned index)
{
	static const char *const names[] = { "counter", "a\r\nb" };

	(void)box;
	return index < 2 ? names[index] : NULL;
}

int noh_get_type_stats(noh_box *box, const char *type, noh_type_stats *stats)
{
	(void)box;
	*stats = (noh_type_stats){ .existing = fake.existing };
	return strcmp(type, "counter") == 0 ? NOH_OK : NOH_ENOTYPE;
}

bool call_alone(struct call *c)
{
	(void)c;
	return true;
}

int call_type_stats(struct call *c, const char *type, noh_type_stats *stats)
{
	return noh_get_type_stats(call_box(c), type, stats);
}

int call_status(struct call *c, const char *address, noh_status *status)
{
	(void)c;
	if (strncmp(address, "no:", 3) == 0)
		return NOH_ENOTYPE;
	*status = (noh_status){ .life = NOH_ACTIVE, .exists = true, .stored = true, .mailbox_size = 4, .idle_ms = 250,
				.messages_processed = 7 };
	return NOH_OK;
}

int call_vitals(struct call *c, const char *address, noh_vitals *vitals)
{
	(void)c, (void)address;
	*vitals = (noh_vitals){ .health = NOH_DEGRADED, .restarts = 3, .failed_ms = 99, .until_ms = 100, .reason = "broke" };
	return NOH_OK;
}

const char *tell_state_of(noh_health health, noh_life life)
{
	return health == NOH_DEGRADED ? "degraded" : noh_life_name(life);
}

const char *noh_life_name(noh_life life)
{
	return life == NOH_ACTIVE ? "active" : "other";
}

int call_list(struct call *c, const char *type, uint64_t *cursor, noh_entry *entries, size_t *count)
{
	(void)c;
	if (type && strcmp(type, "no") == 0)
		return NOH_ENOTYPE;
	*count = *count < 2 ? *count : 2;
	for (size_t i = 0; i < *count; i++) {
		snprintf(entries[i].address, sizeof entries[i].address, "%s:%zu", type ? type : "any", i);
		entries[i].life = NOH_ACTIVE;
	}
	*cursor = *cursor == 0 ? 77 : 0;
	return NOH_OK;
}

/* Three actors in two pages, the middle one told twice. */
int call_scan(struct call *c, const char *type, uint64_t *cursor, uint32_t limit, noh_scan_fn *each, void *user)
{
	static const char *const ids[] = { "b", "abc", "abc", "abd" };
	uint64_t first = *cursor == 0 ? 0 : 2;
	char address[64];

	(void)c;
	if (type && strcmp(type, "no") == 0)
		return NOH_ENOTYPE;
	if (*cursor != 0 && *cursor != UINT64_MAX)
		return NOH_EINVAL;
	fake.scan_limit = limit;
	for (uint64_t i = first; i < first + 2; i++) {
		int len = snprintf(address, sizeof address, "%s:%s", type ? type : "any", ids[i]);

		each(user, &(noh_scanned){ .address = address, .len = (size_t)len, .active = i == 0 });
	}
	*cursor = first == 0 ? UINT64_MAX : 0;
	return NOH_OK;
}

int noh_kind_number(noh_box *box, const char *type, const char *name)
{
	(void)box;
	if (strcmp(type, "no") == 0)
		return NOH_ENOTYPE;
	return strcmp(name, "poke") == 0 ? 3 : error_set(NOH_EKIND, "type %s has no message kind \"%s\"; it has poke", type, name);
}

/* ── channels: news has two listeners; actor.personal.robo.x is an actor's ────────────────────────── */
uint64_t net_publish(struct call *c, const struct arg *channel, const struct arg *body)
{
	(void)c;
	put("publish %.*s %.*s\n", (int)channel->len, channel->at, (int)body->len, body->at);
	return channel->len == 4 && memcmp(channel->at, "news", 4) == 0 ? 2 : 0;
}

bool net_personal(struct call *c, const struct arg *channel, char *room, struct request *r)
{
	static const char name[] = "actor.personal.robo.x";

	(void)c;
	if (channel->len != sizeof name - 1 || memcmp(channel->at, name, channel->len) != 0)
		return false;
	memcpy(room, "robo:x", 6);
	r->id = room;
	r->id_len = 6;
	r->kind = 3;
	return true;
}

bool net_subscribe(struct call *c, bool pattern, const struct arg *name)
{
	(void)c;
	++*(pattern ? &fake.session.patterns : &fake.session.channels);
	put("%ssubscribe %.*s\n", pattern ? "p" : "", (int)name->len, name->at);
	return true;
}

void net_unsubscribe(struct call *c, bool pattern, const struct arg *name)
{
	(void)c;
	*(pattern ? &fake.session.patterns : &fake.session.channels) = 0;
	put("%sunsubscribe %.*s\n", pattern ? "p" : "", name ? (int)name->len : 3, name ? name->at : "all");
}

void net_unsubscribe_all(struct conn *conn)
{
	(void)conn;
	fake.session.channels = fake.session.patterns = 0;
}

void net_each_channel(struct net *n, channel_fn *each, void *user)
{
	(void)n;
	if (each(user, "news", 4))
		(void)each(user, "weather", 7);
}

uint64_t net_listeners(struct net *n, const struct arg *channel)
{
	(void)n;
	return channel->len == 4 ? 2 : 0;
}

uint64_t net_topics(struct net *n, bool pattern)
{
	(void)n;
	return pattern ? 1 : 2;
}

/* ── a test's side of it ──────────────────────────────────────────────────────────────────────── */
void fake_open(int role)
{
	fake_close();
	memset(&fake, 0, sizeof fake);
	session_open(&fake.session, 12, role, 1699999995000);
	fake.session.calls = fake.calls;
	fake.out.proto = 2;
	fake.existing = 4;
	fake.options = (noh_listen_options){ .bind = "127.0.0.1", .resp_port = 7411, .max_connections = 10000,
					     .max_args = 65536, .max_arg_bytes = 1 << 20, .idle_ms = 5000,
					     .may_shutdown = true };
	for (int i = 0; i < FAKE_CLIENTS; i++) {
		struct client *k = &fake.clients[i];

		*k = (struct client){ .id = 11u + (unsigned)i, .flag = i == 2 ? 'P' : 'N', .proto = 2, .command = "get",
				      .since_ms = 1699999900000 + 1000u * (unsigned)i };
		snprintf(k->addr, sizeof k->addr, "127.0.0.1:%d", 1000 + i);
		snprintf(k->user, sizeof k->user, "%s", i ? "anna" : "default");
	}
}

void fake_close(void)
{
	out_close(&fake.out);
}

void fake_run_args(const struct arg *argv, uint32_t argc)
{
	struct call c = { .argv = argv, .argc = argc, .now_ms = 1700000000123 };

	fake.out.len = 0;
	fake.out.proto = fake.session.proto;
	fake.asked[0] = fake.audit[0] = 0;
	fake.requests = 0;
	fake.format = NULL;
	fake.step = false;
	command_run(&c);
	fake.muted = session_mutes(&fake.session);
}

void fake_run(const char *line)
{
	static const struct resp_limits limits = { 65536, 1 << 20, 16 << 20, 1 << 20 };
	struct resp_reader r;
	char *text = malloc(strlen(line) + 2);
	size_t len = (size_t)sprintf(text, "%s\n", line);

	resp_open(&r);
	if (resp_read(&r, text, len, &limits) == RESP_COMMAND) {
		struct arg *argv = malloc(r.argc * sizeof *argv);

		for (uint32_t i = 0; i < r.argc; i++)
			argv[i] = resp_arg(&r, text, i);
		fake_run_args(argv, r.argc);
		free(argv);
	}
	resp_close(&r);
	free(text);
}

void fake_answer(const struct reply_part *parts, uint32_t n)
{
	fake.format(&fake.out, parts, n, fake.tag);
}
