/* net/command.c - find a command, check who may run it and how, run it; and what its function needs.
 *
 * A name is found through net/command_slots.h, a hash table of row numbers that is made from the table by
 * tools/commands.sh (a test says when it must be made anew), so that nothing is built or written at run time.
 */
#include "net/command.h"

#include "core/mem.h"
#include "net/command_hash.h"
#include "net/command_slots.h"
#include "net/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ── find ─────────────────────────────────────────────────────────────────────────────────────── */
static bool same_name(const char *row, const char *name, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		char c = name[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c + 32);
		if (c != row[i] || c == 0)
			return false;
	}
	return row[len] == 0;
}

const struct command *command_find(const char *name, uint32_t len)
{
	if (len == 0 || len > COMMAND_NAME_MAX)
		return NULL;
	for (uint32_t slot = command_hash(name, len); command_slots[slot]; slot = (slot + 1) % COMMAND_SLOTS) {
		const struct command *command = command_row(command_slots[slot] - 1u);

		if (same_name(command->name, name, len))
			return command;
	}
	return NULL;
}

/* Clients repeat themselves: the last one of this thread, by the very bytes of its name. */
static const struct command *find_again(const struct arg *name)
{
	static _Thread_local struct { uint64_t low, high; uint32_t len; const struct command *command; } last;
	uint64_t low, high;

	if (name->len == 0 || name->len > 16)
		return command_find(name->at, name->len);
	command_words(name->at, name->len, &low, &high);
	if (low != last.low || high != last.high || name->len != last.len) {
		const struct command *command = command_find(name->at, name->len);

		if (!command)
			return NULL;
		last.low = low;
		last.high = high;
		last.len = name->len;
		last.command = command;
	}
	return last.command;
}

const struct command *command_find_sub(const struct command *of, const char *name, uint32_t len)
{
	for (uint32_t i = 1; i <= of->subs; i++)
		if (same_name(strchr(of[i].name, '|') + 1, name, len))
			return &of[i];
	return NULL;
}

const struct command *command_find_full(const char *name, uint32_t len)
{
	const char *bar = memchr(name, '|', len);

	if (bar == NULL)
		return command_find(name, len);
	uint32_t first = (uint32_t)(bar - name);
	const struct command *of = command_find(name, first);

	return of ? command_find_sub(of, bar + 1, len - first - 1) : NULL;
}

uint32_t command_index(const struct command *command)
{
	return (uint32_t)(command - command_row(0));
}

/* ── run ──────────────────────────────────────────────────────────────────────────────────────── */
enum { SHOWN = 128 };             /* bytes of a client's words in an error */

static void unknown_command(struct call *c)
{
	char name[SHOWN + 1], words[SHOWN + 8];
	size_t at = 0;

	if (arg_is(&c->argv[0], "post") || arg_is(&c->argv[0], "host:")) {
		/* A browser was talked into this: what follows are its words, not those of a client. */
		call_session(c)->closing = true;
		out_error(call_out(c), "this is HTTP, and this port speaks RESP; the connection is closed");
		return;
	}
	arg_show(&c->argv[0], name, sizeof name);
	words[0] = 0;
	for (uint32_t i = 1; i < c->argc && at + 4 < SHOWN; i++) {
		words[at++] = '\'';
		at += (size_t)arg_show(&c->argv[i], words + at, SHOWN - at - 2);
		words[at++] = '\'';
		words[at++] = ' ';
		words[at] = 0;
	}
	out_error(call_out(c), "unknown command '%s', with args beginning with: %s", name, words);
}

static void unknown_subcommand(struct call *c, const struct command *of)
{
	char name[SHOWN + 1], upper[32];
	size_t i = 0;

	for (; of->name[i] && i < sizeof upper - 1; i++)
		upper[i] = (char)(of->name[i] >= 'a' && of->name[i] <= 'z' ? of->name[i] - 32 : of->name[i]);
	upper[i] = 0;
	arg_show(&c->argv[1], name, sizeof name);
	out_error(call_out(c), "unknown subcommand '%s'. Try %s HELP.", name, upper);
}

static bool may_run(struct call *c, const struct command *command)
{
	struct session *s = call_session(c);

	if (__builtin_expect(s->role >= command->role, 1) || (command->flags & COMMAND_NO_AUTH))
		return true;
	if (s->role == SESSION_NOBODY)
		out_error(call_out(c), "-NOAUTH Authentication required.");
	else
		out_error(call_out(c), "-NOPERM User %s has no permissions to run the '%s' command", s->user,
			  command->name);
	return false;
}

void command_run(struct call *c)
{
	const struct command *command = find_again(&c->argv[0]);

	if (__builtin_expect(command == NULL, 0)) {
		unknown_command(c);
		return;
	}
	if (command->subs && c->argc > 1) {
		const struct command *sub = command_find_sub(command, c->argv[1].at, c->argv[1].len);

		if (sub == NULL) {
			unknown_subcommand(c, command);
			return;
		}
		command = sub;
	}
	if (command->run == NULL ||
	    (command->arity >= 0 ? c->argc != (uint32_t)command->arity : c->argc < (uint32_t)-command->arity)) {
		out_arity_error(call_out(c), command);
		return;
	}
	if (!may_run(c, command))
		return;
	struct session *s = call_session(c);

	if (__builtin_expect((s->channels | s->patterns) != 0, 0) && s->proto == 2 &&
	    !(command->flags & COMMAND_LISTENER)) {
		out_error(call_out(c), "Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "
			  "are allowed in this context", command->name);
		return;
	}

	if (__builtin_expect(command->flags & COMMAND_ALONE, 0) && !call_alone(c)) {
		c->later = true;
		return;
	}
	c->command = s->last = command;
	if (s->calls) {
		atomic_u64 *calls = &s->calls[command_index(command)];

		store_relaxed(calls, load_relaxed(calls) + 1);      /* nobody else writes it */
	}
	command->run(c);
}

/* ── arguments ────────────────────────────────────────────────────────────────────────────────── */
bool call_pattern(struct call *c, const struct arg *pattern)
{
	if (pattern->len <= PATTERN_MAX)
		return true;
	out_error(call_out(c), "a pattern has at most %d bytes, this one has %u", PATTERN_MAX, pattern->len);
	return false;
}

bool arg_is(const struct arg *a, const char *word)
{
	return same_name(word, a->at, a->len);
}

/* Digits alone, no leading zero, at most max. */
static bool digits(const char *p, uint32_t len, uint64_t max, uint64_t *n)
{
	uint64_t sum = 0;

	if (len == 0 || len > 20 || (*p == '0' && len > 1))
		return false;
	for (uint32_t i = 0; i < len; i++) {
		unsigned d = (unsigned)(unsigned char)p[i] - '0';

		if (d > 9 || sum > (max - d) / 10)
			return false;
		sum = sum * 10 + d;
	}
	*n = sum;
	return true;
}

bool arg_uint(const struct arg *a, uint64_t *n)
{
	return digits(a->at, a->len, UINT64_MAX, n);
}

bool arg_int(const struct arg *a, int64_t *n)
{
	uint64_t u;

	if (a->len == 0 || a->at[0] != '-') {
		if (!digits(a->at, a->len, INT64_MAX, &u))
			return false;
		*n = (int64_t)u;
		return true;
	}
	if (!digits(a->at + 1, a->len - 1, (uint64_t)INT64_MAX + 1, &u) || u == 0)
		return false;
	*n = (int64_t)(0 - u);
	return true;
}

int arg_show(const struct arg *a, char *text, size_t size)
{
	uint32_t len = a->len < size - 1 ? a->len : (uint32_t)(size - 1);

	for (uint32_t i = 0; i < len; i++)
		text[i] = a->at[i] >= ' ' && a->at[i] <= '~' ? a->at[i] : '?';
	text[len] = 0;
	return (int)len;
}

void out_syntax_error(struct out *o)
{
	out_error(o, "syntax error");
}

void out_arity_error(struct out *o, const struct command *command)
{
	out_error(o, "wrong number of arguments for '%s' command", command->name);
}

void out_not_int(struct out *o)
{
	out_error(o, "value is not an integer or out of range");
}

void out_cursor(struct out *o, uint64_t cursor)
{
	char text[24];

	out_bulk(o, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, cursor));
}

bool call_idem(struct call *c, uint32_t at, struct arg *key)
{
	if (at + 1 >= c->argc) {
		out_syntax_error(call_out(c));
		return false;
	}
	*key = c->argv[at + 1];
	if (key->len == 0 || key->len > 255) {
		out_error(call_out(c), "an idempotency key has 1 to 255 bytes, this one has %u", key->len);
		return false;
	}
	return true;
}

/* ── requests ─────────────────────────────────────────────────────────────────────────────────── */
void call_one(struct call *c, enum request_type type, const struct arg *id, uint32_t kind, const void *body,
	      uint32_t len, const struct arg *key, format_fn *format, struct tag tag)
{
	struct request request = { .op = REQUEST_CALL, .type = type, .id = id->at, .id_len = id->len, .kind = kind,
				   .body = body, .len = len };

	if (key && key->len) {
		request.key = key->at;
		request.key_len = key->len;
	}
	call_actors(c, &request, 1, format, tag);
}

struct request *requests_open(struct call *c, uint32_t n, struct request *inside)
{
	if (n <= REQUESTS_INSIDE) {
		memset(inside, 0, n * sizeof *inside);
		return inside;
	}
	struct request *requests = mem_zalloc((size_t)n * sizeof *requests);

	if (requests == NULL)
		out_status(call_out(c), NOH_ENOMEM);
	return requests;
}

void requests_close(struct request *requests, uint32_t n, struct request *inside)
{
	if (requests != inside)
		mem_free(requests, (size_t)n * sizeof *requests);
}

bool out_failed(struct out *o, const struct reply_part *parts, uint32_t n, uint32_t len)
{
	for (uint32_t i = 0; i < n; i++) {
		bool answered = parts[i].status == NOH_OK || parts[i].status == NOH_REFUSED;

		if (__builtin_expect(answered && parts[i].len >= len, 1))
			continue;
		if (answered)
			out_error(o, "-FAILED the actor gave an answer of %u bytes where %u were expected",
				  parts[i].len, len);
		else
			out_part_status(o, &parts[i]);
		return true;
	}
	return false;
}
