/* tests/net/rest_kit.h - a box that listens on HTTP, in this process, with types that answer in every way there is; and
 * a client that sends JSON and looks at what comes back.
 *
 * Owns     one data directory and one socket file per server (wire_kit.h).
 * Threads  the test's own.
 */
#ifndef NOH_TESTS_NET_REST_KIT_H
#define NOH_TESTS_NET_REST_KIT_H

#include "core/json.h"
#include "tests/net/wire_kit.h"

/* ── types ── */

/* Answers what it was sent, or in the way its message type says. */
enum { ECHO_BACK, ECHO_OBJECT, ECHO_NUMBER, ECHO_TEXT, ECHO_BYTES, ECHO_NOTHING, ECHO_NO, ECHO_FAIL, ECHO_KINDS };
static const noh_kind echo_kinds[ECHO_KINDS] = {
	[ECHO_BACK] = { .name = "back" }, [ECHO_OBJECT] = { .name = "object" }, [ECHO_NUMBER] = { .name = "number" },
	[ECHO_TEXT] = { .name = "text" }, [ECHO_BYTES] = { .name = "bytes" }, [ECHO_NOTHING] = { .name = "nothing" },
	[ECHO_NO] = { .name = "no" }, [ECHO_FAIL] = { .name = "fail" } };

static inline int echo_message(noh_turn *t, const noh_msg *m)
{
	switch (m->kind) {
	case ECHO_BACK: return noh_reply(t, m->body, m->len);
	case ECHO_OBJECT: return noh_reply(t, " {\"a\":[1.10]} ", 14);
	case ECHO_NUMBER: return noh_reply(t, "18446744073709551616", 20);
	case ECHO_TEXT: return noh_reply(t, "say \"ah\"", 8);
	case ECHO_BYTES: return noh_reply(t, "\0\xff", 2);
	case ECHO_NO: return noh_refuse(t, "{\"why\":\"closed\"}", 16);
	case ECHO_FAIL: return noh_fail(t, "no such thing as \"%s\"", "it");
	}
	return NOH_OK;
}

/* Its kinds have no names. */
static inline int plain_message(noh_turn *t, const noh_msg *m)
{
	char text[16];

	return noh_reply(t, text, (size_t)snprintf(text, sizeof text, "%u", m->kind));
}

/* Its body is larger than the room that is there at first; without answers that it could show. */
static inline int wide_from_json(void *user, noh_json_message *m)
{
	(void)user;
	m->kind = 0;
	m->len = 3000;
	if (m->room < m->len)
		return NOH_ETOOBIG;
	memset(m->body, 'w', m->len);
	return NOH_OK;
}

static inline int wide_to_json(void *user, noh_json_reply *r)
{
	noh_json_out o = { .at = r->json, .room = r->room };

	(void)user;
	noh_json_open(&o, NULL, '{');
	noh_json_put_text(&o, "wide", r->body, r->len);
	noh_json_close(&o, '}');
	r->json_len = o.len;
	return r->len == 3000 ? NOH_OK : NOH_EINVAL;
}

static const noh_type echo_type = { .name = "echo", .kinds = echo_kinds, .kind_count = ECHO_KINDS, .is_volatile = true,
				    .on_message = echo_message };
static const noh_type plain_type = { .name = "plain", .is_volatile = true, .on_message = plain_message };
static const noh_type wide_type = { .name = "wide", .is_volatile = true, .on_message = echo_message,
				    .from_json = wide_from_json, .to_json = wide_to_json };
static inline int gated_message(noh_turn *t, const noh_msg *m)
{
	(void)t;
	(void)m;
	gate_pass();
	return NOH_OK;
}

static const noh_type gated_type = { .name = "gated", .is_volatile = true, .on_message = gated_message };
static const noh_type oldest_type = { .name = "oldest", .mailbox_capacity = 4, .full_mode = NOH_DROP_OLDEST,
				      .is_volatile = true, .on_message = jam_message };
static const noh_type kept_type = { .name = "kept", .mailbox_capacity = 64, .full_mode = NOH_BLOCK, .version = 1,
				    .on_message = jam_message };

/* ── server and client ── */

static const noh_type *rest_also;                /* one more type; NULL: none */

struct rest {
	struct wire wire;
	int         http;          /* port */
};

/* A box of these types that listens on HTTP, at a port that nobody else has. */
static inline void rest_open_types(struct rest *r, noh_options o, noh_listen_options l, const noh_type *const *types)
{
	int rc = NOH_ESYSTEM;

	r->wire.dir[0] = 0;
	wire_socket_path(r->wire.path);
	l.unix_path = r->wire.path;
	if (!l.node_id)
		l.node_id = "node-7";
	o.log = kit_log;
	o.unpinned = true;
	o.max_actors = 100000;
	if (o.dir)
		o.dir = fresh_dir(r->wire.dir, sizeof r->wire.dir);
	r->wire.box = kit_open(&o, types);
	r->wire.local = false;
	for (int tries = 0; tries < 5 && rc == NOH_ESYSTEM; tries++) {
		r->http = l.http_port = free_port();
		rc = wire_listen(&r->wire, l);
	}
	if (!EXPECT_EQ(rc, NOH_OK) || !EXPECT_EQ(noh_start(r->wire.box), NOH_OK))
		printf("  %s\n", noh_why());
}

static inline void rest_open(struct rest *r, noh_options o, noh_listen_options l)
{
	rest_open_types(r, o, l, TYPES(noh_counter_type(), noh_inventory_type(), &later_type, &jam_type, &queue_type, &echo_type,
				       &plain_type, &wide_type, &oldest_type, &kept_type, &gated_type, rest_also));
}
#define REST(r, ...) rest_open((r), (noh_options){ .workers = 1 }, (noh_listen_options){ __VA_ARGS__ })
#define REST_ON_DISK(r, ...) rest_open((r), (noh_options){ .workers = 2, .dir = "" }, (noh_listen_options){ __VA_ARGS__ })

static inline int rest_dial(struct rest *r)
{
	struct wire http = r->wire;

	http.port = r->http;
	return dial(&http);
}

struct response {
	int    status;
	char   head[2048];
	char   body[1 << 17];
	size_t len;
};

static inline void rest_say(int fd, const char *path, const char *headers, const char *json)
{
	char text[4096];

	snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		*json ? "POST" : "GET", path, headers, strlen(json), json);
	EXPECT(say(fd, text));
}

static inline void rest_hear(int fd, struct response *p)
{
	size_t got = 0;
	const char *length;

	*p->head = *p->body = 0;
	p->status = 0;
	while (got + 1 < sizeof p->head && take(fd, p->head + got, 1) == 1) {
		p->head[++got] = 0;
		if (got >= 4 && memcmp(p->head + got - 4, "\r\n\r\n", 4) == 0)
			break;
	}
	length = strstr(p->head, "Content-Length: ");
	p->len = length ? (size_t)atol(length + 16) : 0;
	if (p->len >= sizeof p->body)
		p->len = 0;
	hear(fd, p->body, p->len);
	if (sscanf(p->head, "HTTP/1.1 %d ", &p->status) != 1)
		p->status = 0;
}

/* Asks, and expects this status and these words in the body. */
static inline bool test_rest(int fd, struct response *p, const char *path, const char *headers, const char *json, int status,
			     const char *words, const char *file, int line)
{
	noh_json v;

	rest_say(fd, path, headers, json);
	rest_hear(fd, p);
	if (p->status != status || !strstr(p->body, words)) {
		test_failed(file, line, "%s %.200s: expected %d with %s, got %d: %.400s", path, json, status, words, p->status,
			    p->body);
		return false;
	}
	if (noh_json_check(p->body, p->len, &v) != NOH_OK)
		test_failed(file, line, "%s: not JSON: %s: %.400s", path, noh_why(), p->body);
	return true;
}
#define ASK_WITH(path, headers, json, status, words) test_rest(fd, &p, path, headers, json, status, words, __FILE__, __LINE__)
#define ASK(path, json, status, words) ASK_WITH(path, "", json, status, words)

/* The value of one member of the response, however deep: its raw text, "" if it is not there. */
static inline const char *member(const struct response *p, const char *name)
{
	static char text[4][400];
	static unsigned next;
	char key[80], *to = text[next++ % 4];
	const char *at;
	size_t len = 0;

	snprintf(key, sizeof key, "\"%s\":", name);
	at = strstr(p->body, key);
	*to = 0;
	if (!at)
		return to;
	at += strlen(key);
	while (at[len] && (*at == '"' ? (len == 0 || at[len - 1] != '"' || len == 1) : !strchr(",}]", at[len])) && len < 399)
		len++;
	memcpy(to, at, len);
	to[len] = 0;
	return to;
}

#define INVOKE(address, type, message) \
	"{\"actor_address\":\"" address "\",\"message_type\":\"" type "\",\"message\":" message "}"
#define ADDRESSED(address) "{\"actor_address\":\"" address "\"}"

#endif
