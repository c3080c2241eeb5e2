/* actors/later.c - messages that are to arrive later: "later:TARGET" keeps those for the actor TARGET.
 *
 * An entry per message, in the order of their times; one timer for the first, set anew by every turn that changes what
 * waits: whoever cares for the server may have taken it away (noh_schedule_drop). Sending a message and forgetting it
 * are one turn, so it arrives once, whatever crashes in between (P4). When nothing waits any more, nothing of it is left.
 */
#include "actors/answer.h"
#include "actors/json_types.h"

#include <stdio.h>
#include <string.h>

#define SLICE 64                 /* sent in one turn, at most */
#define AGAIN_MS 5               /* the target is full: what is left of a slice tries again then */

struct kept {
	uint64_t number;         /* of the last one                     */
	uint64_t count;          /* of those that wait                  */
	int64_t  reserved;       /* has something in old directories    */
};

struct entry { uint32_t kind, reserved; };       /* the payload follows */

struct key { uint8_t bytes[16]; };               /* due, number: big end first, so that they sort */

static struct key key_of(uint64_t due, uint64_t number)
{
	struct key k;

	for (int i = 8; i--; due >>= 8, number >>= 8) {
		k.bytes[i] = (uint8_t)due;
		k.bytes[8 + i] = (uint8_t)number;
	}
	return k;
}

static uint64_t number_at(const uint8_t *at)
{
	uint64_t n = 0;

	for (int i = 0; i < 8; i++)
		n = n << 8 | at[i];
	return n;
}

static uint64_t due_of(const uint8_t *key)
{
	return number_at(key);
}

static uint64_t number_of(const uint8_t *key)
{
	return number_at(key + 8);
}

/* ── its timer ── */

static int wake_at(noh_turn *turn, uint64_t due)
{
	uint64_t now = noh_wall_ms(turn), left = due > now ? due - now : 0;

	return noh_schedule_once(turn, NOH_LATER_DUE, left < NOH_LATER_MAX_MS ? left : NOH_LATER_MAX_MS);
}

/* Set for the first that waits; the last one gone, all of it goes. */
static int close_turn(noh_turn *turn, const struct kept *s, uint64_t not_before)
{
	const void *key = NULL, *value;
	size_t key_len = 0, len;
	uint64_t due;

	if (s->count == 0)
		return noh_erase(turn);
	if (noh_kv_next(turn, &key, &key_len, &value, &len) != NOH_OK || key_len != sizeof(struct key))
		return noh_fail(turn, "an entry of what waits is missing: nothing is changed");
	due = due_of(key);
	return wake_at(turn, due < not_before ? not_before : due);
}

/* ── messages ── */

static int no(noh_turn *turn, const char *why)
{
	return noh_refuse(turn, why, strlen(why));
}

static int keep(noh_turn *turn, const noh_msg *msg)
{
	const struct kept *before = noh_look(turn);
	noh_later_sent a = { 0 };
	noh_later_send m;
	struct kept *s;
	int rc;

	if (msg->len < sizeof m)
		return malformed(turn, "later SEND", msg);
	memcpy(&m, msg->body, sizeof m);
	if (m.reserved != 0)
		return malformed(turn, "later SEND", msg);
	if (m.delay_ms > NOH_LATER_MAX_MS)
		return no(turn, "the delay is at most 365 days");
	if (before->count >= NOH_LATER_MOST)
		return no(turn, "too many messages wait for this actor already");
	s = noh_state(turn);
	s->number++;
	s->count++;
	a.number = s->number;
	a.due = noh_wall_ms(turn) + m.delay_ms;

	struct key k = key_of(a.due, a.number);
	const uint8_t *entry = (const uint8_t *)msg->body + offsetof(noh_later_send, kind);

	rc = noh_kv_put(turn, &k, sizeof k, entry, msg->len - offsetof(noh_later_send, kind));
	if (rc == NOH_OK)
		rc = close_turn(turn, s, 0);
	return rc == NOH_OK ? answer(turn, &a, sizeof a) : rc;
}

static int cancel(noh_turn *turn, const noh_msg *msg)
{
	noh_later_sent m;
	struct kept *s;
	struct key k;
	int rc;

	if (msg->len != sizeof m)
		return malformed(turn, "later CANCEL", msg);
	memcpy(&m, msg->body, sizeof m);
	k = key_of(m.due, m.number);
	rc = noh_kv_delete(turn, &k, sizeof k);
	if (rc == NOH_END)
		return no(turn, "no such message waits: it was sent, or cancelled, or never there");
	if (rc != NOH_OK)
		return rc;
	s = noh_state(turn);
	s->count--;
	rc = close_turn(turn, s, 0);
	return rc == NOH_OK ? answer(turn, &m, sizeof m) : rc;
}

/* All of it goes: entries, timer and count. */
static int clear(noh_turn *turn, const noh_msg *msg)
{
	uint64_t count = ((const struct kept *)noh_look(turn))->count;
	int rc;

	if (msg->len != 0)
		return malformed(turn, "later CLEAR", msg);
	rc = answer(turn, &count, sizeof count);
	return rc == NOH_OK && count ? noh_erase(turn) : rc;
}

static void name_kind(noh_turn *turn, noh_later_waiting *w)
{
	const char *target = noh_id(turn);
	char name[256];

	snprintf(name, sizeof name, "%.*s", (int)strcspn(target, ":"), target);
	const noh_type *t = noh_find_type(noh_turn_box(turn), name);

	if (t && t->kinds && w->kind < t->kind_count && t->kinds[w->kind].name)
		snprintf(w->name, sizeof w->name, "%s", t->kinds[w->kind].name);
}

static int list(noh_turn *turn, const noh_msg *msg)
{
	struct { noh_later_list head; noh_later_waiting page[NOH_LATER_PAGE_MAX]; } a = { 0 };
	const void *key = NULL, *value;
	noh_later_page m;
	size_t key_len = 0, len;
	struct key k;

	if (msg->len != sizeof m)
		return malformed(turn, "later LIST", msg);
	memcpy(&m, msg->body, sizeof m);
	if (m.reserved != 0 || m.limit < 1 || m.limit > NOH_LATER_PAGE_MAX)
		return malformed(turn, "later LIST", msg);
	k = key_of(m.after.due, m.after.number);
	if (m.after.due || m.after.number) {
		key = &k;
		key_len = sizeof k;
	}
	a.head.waiting = ((const struct kept *)noh_look(turn))->count;
	while (noh_kv_next(turn, &key, &key_len, &value, &len) == NOH_OK && key_len == sizeof k && len >= sizeof(struct entry)) {
		noh_later_waiting *w = &a.page[a.head.count];
		struct entry e;

		if (a.head.count == m.limit) {
			a.head.more = 1;
			break;
		}
		memcpy(&e, value, sizeof e);
		w->sent = (noh_later_sent){ .number = number_of(key), .due = due_of(key) };
		w->kind = e.kind;
		w->len = (uint32_t)(len - sizeof e);
		name_kind(turn, w);
		a.head.count++;
	}
	return answer(turn, &a, sizeof a.head + a.head.count * sizeof a.page[0]);
}

/* One that nobody will ever take (its kind is not there any more, say) is not tried for ever. */
static int send(noh_turn *turn, const void *value, size_t len)
{
	struct entry e;
	int rc;

	if (len < sizeof e)
		return noh_fail(turn, "an entry of what waits is damaged: nothing is changed");
	memcpy(&e, value, sizeof e);
	rc = noh_tell_to(turn, noh_id(turn), e.kind, (const uint8_t *)value + sizeof e, len - sizeof e);
	if (rc == NOH_FULL || rc == NOH_ERATE || rc == NOH_ENOMEM || rc == NOH_ESTOPPED || rc >= 0)
		return rc;
	noh_log(turn, NOH_WARN, "a message of kind %u whose time has come cannot be sent, and is dropped: %s", e.kind,
		noh_why());
	return NOH_OK;
}

static int due(noh_turn *turn)
{
	uint64_t now = noh_wall_ms(turn), not_before = 0;
	struct kept *s = noh_state(turn);
	int rc = NOH_OK, sent = 0;

	for (; sent < SLICE; sent++) {
		const void *key = NULL, *value;
		size_t key_len = 0, len;
		struct key k;

		if (noh_kv_next(turn, &key, &key_len, &value, &len) != NOH_OK || due_of(key) > now)
			break;
		memcpy(&k, key, sizeof k);
		rc = send(turn, value, len);
		if (rc == NOH_OK)
			rc = noh_kv_delete(turn, &k, sizeof k);
		if (rc != NOH_OK)
			break;
		s->count--;
	}
	if (rc == NOH_FULL && sent == 0)
		return NOH_FULL;                         /* again when there is room */
	if (rc == NOH_FULL || rc == NOH_ERATE)
		not_before = now + AGAIN_MS;
	else if (rc != NOH_OK)
		return rc;
	return close_turn(turn, s, not_before);
}

static int on_message(noh_turn *turn, const noh_msg *msg)
{
	switch (msg->kind) {
	case NOH_LATER_SEND: return keep(turn, msg);
	case NOH_LATER_CANCEL: return cancel(turn, msg);
	case NOH_LATER_DUE: return due(turn);
	case NOH_LATER_CLEAR: return clear(turn, msg);
	case NOH_LATER_LIST: return list(turn, msg);
	}
	return noh_fail(turn, "there is no message of kind %u for later", msg->kind);
}

static const noh_kind kinds[NOH_LATER_KINDS] = {
	[NOH_LATER_SEND] = { .name = "send" },
	[NOH_LATER_CANCEL] = { .name = "cancel" },
	[NOH_LATER_DUE] = { .name = "due", .flags = NOH_KIND_TIMER },
	[NOH_LATER_CLEAR] = { .name = "clear" },
	[NOH_LATER_LIST] = { .name = "list" },
};

static const noh_type type = {
	.name = "later",
	.state_size = sizeof(struct kept),
	.mailbox_capacity = 4096,
	.full_mode = NOH_BLOCK,
	.idle_timeout_ms = 300000,
	.kinds = kinds,
	.kind_count = NOH_LATER_KINDS,
	.on_message = on_message,
	.from_json = later_from_json,
	.to_json = later_to_json,
	.version = 1,
	.schema = 1,
};

const noh_type *noh_later_type(void)
{
	return &type;
}
