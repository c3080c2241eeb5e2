/* net/command_conn.c - commands of a connection about itself: PING, HELLO, AUTH and their like. */
#include "net/command.h"
#include "net/redis_version.h"
#include "net/session.h"

#include <string.h>

void cmd_ping(struct call *c)
{
	struct session *s = call_session(c);

	if (c->argc > 2) {
		out_arity_error(call_out(c), c->command);
	} else if (s->proto == 2 && (s->channels | s->patterns)) {     /* it expects nothing but arrays */
		struct out *o = call_out(c);

		out_array(o, 2);
		out_text(o, "pong");
		out_bulk(o, c->argc == 2 ? c->argv[1].at : "", c->argc == 2 ? c->argv[1].len : 0);
	} else if (c->argc == 2) {
		out_bulk(call_out(c), c->argv[1].at, c->argv[1].len);
	} else {
		out_simple(call_out(c), "PONG");
	}
}

void cmd_echo(struct call *c)
{
	out_bulk(call_out(c), c->argv[1].at, c->argv[1].len);
}

void cmd_quit(struct call *c)
{
	call_session(c)->closing = true;
	out_simple(call_out(c), "OK");
}

void cmd_reset(struct call *c)
{
	session_reset(call_session(c));
	net_unsubscribe_all(c->conn);
	net_client_changed(c->conn);
	call_out(c)->proto = 2;
	out_simple(call_out(c), "RESET");
}

void cmd_select(struct call *c)
{
	int64_t db;

	if (!arg_int(&c->argv[1], &db))
		out_not_int(call_out(c));
	else if (db != 0)
		out_error(call_out(c), "DB index is out of range");
	else
		out_simple(call_out(c), "OK");
}

void cmd_time(struct call *c)
{
	struct out *o = call_out(c);

	out_array(o, 2);
	out_bulk_int(o, (int64_t)(c->now_ms / 1000));
	out_bulk_int(o, (int64_t)(c->now_ms % 1000 * 1000));
}

void cmd_no_transactions(struct call *c)
{
	out_error(call_out(c), "'%s' is not supported: noh has no transactions over commands; MSET, INV.RESERVEALL and "
		  "an actor's own turn are atomic", c->command->name);
}

void cmd_shutdown(struct call *c)
{
	for (uint32_t i = 1; i < c->argc; i++) {
		const struct arg *a = &c->argv[i];

		if (arg_is(a, "abort")) {
			out_error(call_out(c), "No shutdown in progress.");
			return;
		}
		if (!arg_is(a, "nosave") && !arg_is(a, "save") && !arg_is(a, "now") && !arg_is(a, "force")) {
			out_syntax_error(call_out(c));
			return;
		}
	}
	if (!net_options(c->net)->may_shutdown) {
		out_error(call_out(c), "this server does not shut down by command; send it SIGTERM");
		return;
	}
	call_audit(c, "shutdown", NULL, NULL);
	call_session(c)->closing = true;
	net_shutdown(c->net);
}

#define WRONG_PASS "-WRONGPASS invalid username-password pair or user is disabled."

/* ── who are you ──────────────────────────────────────────────────────────────────────────────── */
static const struct arg default_user = { "default", 7 };

/* As Redis does whose user `default` has no password: it may log in with any, if it is named; and there is nobody else. */
static bool login_without_accounts(struct call *c, const struct arg *name)
{
	if (name == NULL)
		out_error(call_out(c), "AUTH <password> called without any password configured for the default user. "
			  "Are you sure your configuration is correct?");
	else if (name->len == default_user.len && memcmp(name->at, default_user.at, name->len) == 0 &&
		 call_session(c)->role != SESSION_NOBODY)
		return true;
	else
		out_error(call_out(c), WRONG_PASS);
	return false;
}

/* name: NULL: none was said. */
static bool login(struct call *c, const struct arg *name, const struct arg *secret)
{
	struct session *s = call_session(c);
	const struct arg *who = name ? name : &default_user;
	uint32_t wait_s = call_login_waits_s(c);
	int role;

	if (wait_s) {
		out_error(call_out(c), "-WRONGPASS too many failed logins from your address: this one was not looked at, try "
			  "again in %u s", wait_s);
		return false;
	}
	role = net_login(c->net, s, who, secret);
	if (role == -2)
		return login_without_accounts(c, name);
	if (role < 0) {
		call_login_failed(c);
		out_error(call_out(c), WRONG_PASS);
		return false;
	}
	s->role = (int8_t)role;
	arg_show(who, s->user, sizeof s->user);
	return true;
}

void cmd_auth(struct call *c)
{
	if (c->argc > 3) {
		out_syntax_error(call_out(c));
		return;
	}
	if (!login(c, c->argc == 3 ? &c->argv[1] : NULL, &c->argv[c->argc - 1]))
		return;
	net_client_changed(c->conn);
	out_simple(call_out(c), "OK");
}

/* What HELLO was told: everything is checked before anything is done. */
struct hello {
	int64_t proto;
	const struct arg *user, *secret, *name;
};

static bool read_hello(struct call *c, struct hello *h)
{
	struct out *o = call_out(c);

	if (c->argc > 1) {
		if (!arg_int(&c->argv[1], &h->proto)) {
			out_error(o, "Protocol version is not an integer or out of range");
			return false;
		}
		if (h->proto < 2 || h->proto > 3) {
			out_error(o, "-NOPROTO unsupported protocol version");
			return false;
		}
	}
	for (uint32_t i = 2; i < c->argc; i++) {
		uint32_t more = c->argc - 1 - i;
		char text[64];

		if (arg_is(&c->argv[i], "auth") && more >= 2) {
			h->user = &c->argv[i + 1];
			h->secret = &c->argv[i + 2];
			i += 2;
		} else if (arg_is(&c->argv[i], "setname") && more >= 1) {
			h->name = &c->argv[++i];
		} else {
			arg_show(&c->argv[i], text, sizeof text);
			out_error(o, "Syntax error in HELLO option '%s'", text);
			return false;
		}
	}
	return true;
}

void cmd_hello(struct call *c)
{
	struct session *s = call_session(c);
	struct out *o = call_out(c);
	struct hello h = { .proto = s->proto };

	if (!read_hello(c, &h) || (h.name && !client_name_ok(c, h.name)))
		return;
	if (h.user && !login(c, h.user, h.secret))
		return;
	if (s->role == SESSION_NOBODY) {
		out_error(o, "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
			  "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP "
			  "protocol version at the same time");
		return;
	}
	if (h.name)
		arg_show(h.name, s->name, sizeof s->name);
	s->proto = o->proto = (uint8_t)h.proto;
	net_client_changed(c->conn);
	out_map(o, 7);
	out_text(o, "server"), out_text(o, "noh");
	out_text(o, "version"), out_text(o, REDIS_VERSION);
	out_text(o, "proto"), out_int(o, h.proto);
	out_text(o, "id"), out_int(o, (int64_t)s->id);
	out_text(o, "mode"), out_text(o, "standalone");
	out_text(o, "role"), out_text(o, "master");
	out_text(o, "modules"), out_array(o, 0);
}
