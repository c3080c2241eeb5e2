/* net/command_client.c - CLIENT: this connection, and the others. */
#include "net/command.h"
#include "net/session.h"

#include "core/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ── this one ─────────────────────────────────────────────────────────────────────────────────── */
void cmd_client_id(struct call *c)
{
	out_int(call_out(c), (int64_t)call_session(c)->id);
}

void cmd_client_getname(struct call *c)
{
	const char *name = call_session(c)->name;

	if (*name)
		out_text(call_out(c), name);
	else
		out_nil(call_out(c));
}

/* What CLIENT LIST can show without confusion, in one word. */
static bool printable(const struct arg *a)
{
	for (uint32_t i = 0; i < a->len; i++)
		if (a->at[i] < '!' || a->at[i] > '~')
			return false;
	return true;
}

bool client_name_ok(struct call *c, const struct arg *name)
{
	if (!printable(name))
		out_error(call_out(c), "Client names cannot contain spaces, newlines or special characters.");
	else if (name->len > SESSION_NAME_MAX)
		out_error(call_out(c), "Client names have at most %d characters", SESSION_NAME_MAX);
	else
		return true;
	return false;
}

void cmd_client_setname(struct call *c)
{
	struct session *s = call_session(c);

	if (!client_name_ok(c, &c->argv[2]))
		return;
	arg_show(&c->argv[2], s->name, sizeof s->name);
	net_client_changed(c->conn);
	out_simple(call_out(c), "OK");
}

void cmd_client_setinfo(struct call *c)
{
	struct session *s = call_session(c);
	bool name = arg_is(&c->argv[2], "lib-name");
	char what[32];

	if (!name && !arg_is(&c->argv[2], "lib-ver")) {
		arg_show(&c->argv[2], what, sizeof what);
		out_error(call_out(c), "Unrecognized option '%s'", what);
		return;
	}
	if (!printable(&c->argv[3])) {
		out_error(call_out(c), "%s cannot contain spaces, newlines or special characters.",
			  name ? "lib-name" : "lib-ver");
		return;
	}
	if (name)                                     /* longer ones are cut: it is only shown */
		arg_show(&c->argv[3], s->lib, sizeof s->lib);
	else
		arg_show(&c->argv[3], s->lib_version, sizeof s->lib_version);
	net_client_changed(c->conn);
	out_simple(call_out(c), "OK");
}

void cmd_client_reply(struct call *c)
{
	struct session *s = call_session(c);
	const struct arg *mode = &c->argv[2];

	if (arg_is(mode, "on")) {
		s->reply = REPLY_ON;
		out_simple(call_out(c), "OK");
	} else if (arg_is(mode, "off")) {
		s->reply = REPLY_OFF;
	} else if (arg_is(mode, "skip")) {
		if (s->reply != REPLY_OFF)
			s->reply = REPLY_SKIP_NEXT;
	} else {
		out_syntax_error(call_out(c));
	}
}

static void on_or_off(struct call *c, bool *which)
{
	bool on = arg_is(&c->argv[2], "on");

	if (!on && !arg_is(&c->argv[2], "off")) {
		out_syntax_error(call_out(c));
		return;
	}
	*which = on;
	out_simple(call_out(c), "OK");
}

void cmd_client_no_evict(struct call *c)
{
	on_or_off(c, &call_session(c)->no_evict);
}

void cmd_client_no_touch(struct call *c)
{
	on_or_off(c, &call_session(c)->no_touch);
}

void cmd_client_unpause(struct call *c)
{
	out_simple(call_out(c), "OK");
}

/* ── all of them ──────────────────────────────────────────────────────────────────────────────── */
enum { LINE_MAX_BYTES = 1024 };

/* One line, in the form that tools read. */
static int line(char *text, size_t size, const struct client *k, uint64_t now_ms)
{
	uint64_t age = now_ms > k->since_ms ? (now_ms - k->since_ms) / 1000 : 0;
	uint64_t idle = now_ms > k->active_ms ? (now_ms - k->active_ms) / 1000 : 0;

	return snprintf(text, size, "id=%" PRIu64 " addr=%s laddr=%s fd=%d name=%s age=%" PRIu64 " idle=%" PRIu64
			" flags=%c db=0 sub=%u psub=%u ssub=0 multi=-1 watch=0 qbuf=%u qbuf-free=0 argv-mem=0 "
			"multi-mem=0 rbs=0 rbp=0 obl=%u oll=0 omem=0 tot-mem=%u events=r cmd=%s user=%s redir=-1 "
			"resp=%u lib-name=%s lib-ver=%s\n", k->id, k->addr, k->local, k->fd, k->name, age, idle, k->flag,
			k->channels, k->patterns, k->in_bytes, k->out_bytes, k->in_bytes + k->out_bytes, k->command,
			k->user, k->proto, k->lib, k->lib_version);
}

void cmd_client_info(struct call *c)
{
	struct client self;
	char text[LINE_MAX_BYTES];

	net_client(c->conn, &self);
	int len = line(text, sizeof text, &self, c->now_ms);

	out_verbatim(call_out(c), text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
}

/* Which clients are meant, and what is done with them. */
struct filter {
	struct call *call;
	const struct arg *addr, *local, *user;
	const struct arg *ids;                    /* id_count numbers                          */
	uint32_t id_count;
	char     flag;                            /* 0: any                                    */
	int64_t  min_age;                         /* seconds; -1: any                          */
	bool     skip_me;
	struct out text;                          /* of CLIENT LIST                            */
	uint64_t *found;                          /* of CLIENT KILL                            */
	uint32_t count, room;
	bool     me;
};

static bool text_is(const struct arg *a, const char *text)
{
	return strlen(text) == a->len && memcmp(text, a->at, a->len) == 0;
}

static bool is_meant(const struct filter *f, const struct client *k)
{
	if (f->addr && !text_is(f->addr, k->addr))
		return false;
	if (f->local && !text_is(f->local, k->local))
		return false;
	if (f->user && !text_is(f->user, k->user))
		return false;
	if (f->flag && f->flag != k->flag)
		return false;
	if (f->min_age >= 0 && f->call->now_ms < k->since_ms + (uint64_t)f->min_age * 1000)
		return false;
	for (uint32_t i = 0; i < f->id_count; i++) {
		uint64_t id;

		if (arg_uint(&f->ids[i], &id) && id == k->id)
			return true;
	}
	return f->id_count == 0;
}

static bool list_one(void *user, const struct client *k)
{
	struct filter *f = user;
	char text[LINE_MAX_BYTES];

	if (!is_meant(f, k))
		return true;
	int len = line(text, sizeof text, k, f->call->now_ms);

	out_bytes(&f->text, text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
	return !f->text.failed;
}

/* "normal" and "pubsub"; of the others Redis knows ("replica", "master") there are never any. */
static bool read_kind(struct call *c, const struct arg *a, char *flag)
{
	char text[32];

	if (arg_is(a, "normal"))
		*flag = 'N';
	else if (arg_is(a, "pubsub"))
		*flag = 'P';
	else if (arg_is(a, "replica") || arg_is(a, "slave") || arg_is(a, "master"))
		*flag = 'S';
	else {
		arg_show(a, text, sizeof text);
		out_error(call_out(c), "Unknown client type '%s'", text);
		return false;
	}
	return true;
}

static bool ids_ok(struct call *c, const struct arg *ids, uint32_t n, const char *else_)
{
	uint64_t id;

	for (uint32_t i = 0; i < n; i++)
		if (!arg_uint(&ids[i], &id) || id == 0) {
			out_error(call_out(c), "%s", else_);
			return false;
		}
	return true;
}

void cmd_client_list(struct call *c)
{
	struct filter f = { .call = c, .min_age = -1 };

	if (c->argc >= 4 && arg_is(&c->argv[2], "id")) {
		f.ids = &c->argv[3];
		f.id_count = c->argc - 3;
		if (!ids_ok(c, f.ids, f.id_count, "Invalid client ID"))
			return;
	} else if (c->argc == 4 && arg_is(&c->argv[2], "type")) {
		if (!read_kind(c, &c->argv[3], &f.flag))
			return;
	} else if (c->argc != 2) {
		out_syntax_error(call_out(c));
		return;
	}
	net_each_client(c->net, list_one, &f);
	if (f.text.failed)
		out_status(call_out(c), NOH_ENOMEM);
	else
		out_verbatim(call_out(c), f.text.bytes, f.text.len);
	out_close(&f.text);
}

/* ── end some of them ─────────────────────────────────────────────────────────────────────────── */
static bool find_one(void *user, const struct client *k)
{
	struct filter *f = user;

	if (!is_meant(f, k))
		return true;
	if (k->id == call_session(f->call)->id) {
		f->me = !f->skip_me;
		return true;
	}
	if (f->count == f->room) {
		uint32_t room = f->room ? f->room * 2 : 64;
		uint64_t *found = mem_alloc(room * sizeof *found);

		if (found == NULL)
			return false;                 /* those found so far are ended, and counted */
		if (f->count)
			memcpy(found, f->found, f->count * sizeof *found);
		mem_free(f->found, f->room * sizeof *found);
		f->found = found;
		f->room = room;
	}
	f->found[f->count++] = k->id;
	return true;
}

static bool read_filter(struct call *c, struct filter *f)
{
	struct out *o = call_out(c);

	if (c->argc % 2 != 0) {
		out_syntax_error(o);
		return false;
	}
	for (uint32_t i = 2; i < c->argc; i += 2) {
		const struct arg *name = &c->argv[i], *value = &c->argv[i + 1];

		if (arg_is(name, "id")) {
			if (!ids_ok(c, value, 1, "client-id should be greater than 0"))
				return false;
			f->ids = value;
			f->id_count = 1;
		} else if (arg_is(name, "addr")) {
			f->addr = value;
		} else if (arg_is(name, "laddr")) {
			f->local = value;
		} else if (arg_is(name, "user")) {
			f->user = value;
		} else if (arg_is(name, "type")) {
			if (!read_kind(c, value, &f->flag))
				return false;
		} else if (arg_is(name, "maxage")) {
			if (!arg_int(value, &f->min_age) || f->min_age < 0 || f->min_age > INT32_MAX) {
				out_not_int(o);
				return false;
			}
		} else if (arg_is(name, "skipme") && (arg_is(value, "yes") || arg_is(value, "no"))) {
			f->skip_me = arg_is(value, "yes");
		} else {
			out_syntax_error(o);
			return false;
		}
	}
	return true;
}

void cmd_client_kill(struct call *c)
{
	struct filter f = { .call = c, .min_age = -1, .skip_me = true };
	uint32_t ended = 0;
	bool by_address = c->argc == 3;

	if (by_address) {
		f.addr = &c->argv[2];
		f.skip_me = false;
	} else if (!read_filter(c, &f)) {
		return;
	}
	net_each_client(c->net, find_one, &f);
	for (uint32_t i = 0; i < f.count; i++) {
		char id[24];

		snprintf(id, sizeof id, "%" PRIu64, f.found[i]);
		call_audit(c, "client kill", NULL, id);
		ended += net_kill_client(c->net, f.found[i]);
	}
	mem_free(f.found, f.room * sizeof *f.found);
	if (f.me) {
		call_session(c)->closing = true;
		ended++;
	}
	if (!by_address)
		out_int(call_out(c), ended);
	else if (ended)
		out_simple(call_out(c), "OK");
	else
		out_error(call_out(c), "No such client");
}

void cmd_client_help(struct call *c)
{
	out_help(call_out(c), c->command);
}
