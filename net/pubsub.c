/* net/pubsub.c - connections that listen to channels and patterns, and what is published to them.
 *
 * Each worker knows which of its connections listen to a topic (struct listeners), and the topic knows which
 * workers have such (core/topics.h). A message is written down once, as RESP2 would have it; for RESP3 one byte
 * is different. It is appended to the output of every connection of this worker that listens, and handed
 * to each other worker that has listeners once, however many those are; unless that worker sleeps, and it is a lone
 * message for a few of them: then it is sent in its place (lend.h).
 *
 * Order: a worker takes what is handed to it in the order it was handed over, and appends nothing of its own
 * before it (publish_here). So messages of one publisher on one channel reach each listener in their order,
 * also when the publisher is an actor that moves from worker to worker.
 *
 * A push is written behind the replies that wait (it never lands inside or before one that was asked for
 * earlier), and waits for the disk like them. To the client whose command runs at this moment it is written
 * when that command is over.
 */
#include "net/hand.h"
#include "net/lend.h"

#include "core/mem.h"

#include <string.h>

#define KEPT_BYTES 65536               /* a larger buffer is given back */

struct subscribed { struct listeners *to; uint32_t at; };   /* at: in to->list */
struct subscriptions {
	uint32_t          n, room;
	struct subscribed list[];
};

static struct topics *topics_of(struct net *n)
{
	return n->server->door.topics;
}

/* ── who listens ── */

static uint32_t *count_of(struct conn *c, bool pattern)
{
	return pattern ? &c->session.patterns : &c->session.channels;
}

/* The shorter of the two lists is looked through. */
static struct subscribed *subscription(struct conn *c, struct listeners *l)
{
	if (!c->subs || !l)
		return NULL;
	if (c->subs->n <= l->n) {
		for (uint32_t i = 0; i < c->subs->n; i++)
			if (c->subs->list[i].to == l)
				return &c->subs->list[i];
		return NULL;
	}
	for (uint32_t i = 0; i < l->n; i++)
		if (l->list[i].conn == c->socket.number)
			return &c->subs->list[l->list[i].index];
	return NULL;
}

static bool room_in_conn(struct conn *c)
{
	struct subscriptions *old = c->subs, *s;
	uint32_t n = old ? old->n : 0, room = n ? n * 2 : 4;

	if (old && n < old->room)
		return true;
	s = mem_alloc(sizeof *s + room * sizeof s->list[0]);
	if (!s)
		return false;
	s->n = n;
	s->room = room;
	if (old) {
		memcpy(s->list, old->list, n * sizeof s->list[0]);
		mem_free(old, sizeof *old + old->room * sizeof old->list[0]);
	}
	c->subs = s;
	return true;
}

static bool room_in_list(struct listeners *l)
{
	uint32_t room = l->room ? l->room * 2 : 2;
	struct listener *list;

	if (l->n < l->room)
		return true;
	list = mem_alloc(room * sizeof *list);
	if (!list)
		return false;
	if (l->n)
		memcpy(list, l->list, l->n * sizeof *list);
	mem_free(l->list, l->room * sizeof *list);
	l->list = list;
	l->room = room;
	return true;
}

static void listeners_free(struct net *n, struct listeners *l)
{
	if (l->topic)
		topics_let_go(topics_of(n), n->epoch, l->topic);
	mem_free(l->list, l->room * sizeof *l->list);
	mem_free(l, sizeof *l);
}

static struct listeners *listeners_new(struct net *n, bool pattern, const struct arg *name)
{
	struct listeners *l = mem_zalloc(sizeof *l);

	if (!l)
		return NULL;
	l->topic = topics_hold(topics_of(n), n->epoch, pattern, name->at, name->len);
	if (l->topic)
		return l;
	listeners_free(n, l);
	return NULL;
}

static struct listeners *listeners_of(struct net *n, bool pattern, const struct arg *name)
{
	struct topic *t = topics_find(topics_of(n), pattern, name->at, name->len);

	return t ? topic_local(t, n->worker) : NULL;
}

/* False: no memory. */
static bool add(struct net *n, struct conn *c, bool pattern, const struct arg *name)
{
	struct listeners *l = listeners_of(n, pattern, name);
	bool fresh = l == NULL;

	if (subscription(c, l))
		return true;
	if (fresh)
		l = listeners_new(n, pattern, name);
	if (!l)
		return false;
	if (!room_in_conn(c) || !room_in_list(l) ||
	    !topic_hear(topics_of(n), n->epoch, l->topic, n->worker, l, l->n + 1)) {
		if (fresh)
			listeners_free(n, l);
		if (c->subs && c->subs->n == 0)
			pubsub_forget(n, c);
		return false;
	}
	l->list[l->n] = (struct listener){ c->socket.number, c->subs->n };
	c->subs->list[c->subs->n++] = (struct subscribed){ l, l->n++ };
	++*count_of(c, pattern);
	return true;
}

/* Out of both lists: the last one of each takes its place. */
static void drop(struct net *n, struct conn *c, struct subscribed *s)
{
	struct listeners *l = s->to;
	struct subscribed *last = &c->subs->list[c->subs->n - 1];
	struct listener *end = &l->list[l->n - 1];

	--*count_of(c, l->topic->pattern);
	if (s->at != l->n - 1) {
		l->list[s->at] = *end;
		n->conns[end->conn]->subs->list[end->index].at = s->at;
	}
	l->n--;
	if (s != last) {
		*s = *last;
		s->to->list[s->at].index = (uint32_t)(s - c->subs->list);
	}
	c->subs->n--;
	(void)topic_hear(topics_of(n), n->epoch, l->topic, n->worker, l->n ? l : NULL, l->n);
	if (l->n == 0)
		listeners_free(n, l);
}

void pubsub_forget(struct net *n, struct conn *c)
{
	struct subscriptions *s = c->subs;

	while (s->n)
		drop(n, c, &s->list[s->n - 1]);
	mem_free(s, sizeof *s + s->room * sizeof s->list[0]);
	c->subs = NULL;
}

/* ── pushing ── */

static void trim(struct out *o)
{
	o->len = 0;
	if (o->room > KEPT_BYTES || o->failed)
		out_close(o);
	o->failed = false;
}

static void append(struct out *o, const char *bytes, size_t len, char first)
{
	size_t at = o->len;

	out_bytes(o, bytes, len);
	if (!o->failed)
		o->bytes[at] = first;
}

/* Behind what waits in its slots: with the text that stands last there, or in a slot of its own. */
static bool queue(struct net *n, struct conn *c, const char *bytes, size_t len, char first, uint64_t due)
{
	struct asked *last = &n->slots[c->last];

	if (!last->format && last->parts == 0 && last->state == SLOT_READY) {
		append(&last->u.text, bytes, len, first);
		if (last->u.text.failed)
			return false;
		c->queued += len;
	} else {
		struct out saved = n->scratch;
		bool ok;

		n->scratch = (struct out){ 0 };
		append(&n->scratch, bytes, len, first);
		ok = !n->scratch.failed && slot_text(n, c);
		out_close(&n->scratch);
		n->scratch = saved;
		if (!ok)
			return false;
		last = &n->slots[c->last];
	}
	if (last->at_once || due > last->due)
		last->due = due;
	last->at_once = last->due == 0;
	return true;
}

static void push(struct net *n, struct conn *c, const char *bytes, size_t len, char first, uint64_t due)
{
	if (c->flags & CONN_DEAD)
		return;
	if (c == n->running) {
		append(&n->own, bytes, len, first);
		n->own_due = due > n->own_due ? due : n->own_due;
		return;
	}
	if (c->out.len + c->flying.len + c->queued + len > n->o.max_subscriber_bytes) {
		count_one(&n->shown.counts.closed_slow, 1);
		conn_end(n, c);
		return;
	}
	if (c->first) {
		if (!queue(n, c, bytes, len, first, due))
			conn_end(n, c);
		return;
	}
	append(&c->out, bytes, len, first);
	conn_wrote(n, c, due);
}

void pubsub_settle(struct net *n)
{
	struct conn *c = n->running;

	n->running = NULL;
	if (n->own.failed)
		conn_end(n, c);
	else
		push(n, c, n->own.bytes, n->own.len, n->own.bytes[0], n->own_due);
	trim(&n->own);
	n->own_due = 0;
}

static char first_byte(const struct conn *c)
{
	return c->session.proto == 3 ? '>' : '*';
}

/* Who is too slow ends, but stays in the list until it is buried: nobody changes the list meanwhile. */
static void push_all(struct net *n, struct listeners *l, const struct out *text, uint64_t due)
{
	for (uint32_t i = 0; i < l->n; i++) {
		struct conn *c = n->conns[l->list[i].conn];

		if (i + 4 < l->n)
			__builtin_prefetch(n->conns[l->list[i + 4].conn], 1);
		push(n, c, text->bytes, text->len, first_byte(c), due);
	}
	count_one(&n->shown.counts.pushed, l->n);
}

/* ── a message, written down ── */

static void write_event(struct out *o, const struct topic *pattern, const struct event *e)
{
	o->len = 0;
	o->proto = 2;
	out_array(o, pattern ? 4 : 3);
	out_text(o, pattern ? "pmessage" : "message");
	if (pattern)
		out_bulk(o, pattern->name, pattern->len);
	out_bulk(o, e->channel, e->channel_len);
	out_bulk(o, e->body, e->len);
}

static size_t digits(size_t n)
{
	size_t d = 1;

	while (n >= 10) {
		n /= 10;
		d++;
	}
	return d;
}

/* The other way round, of what write_event wrote. */
static void read_event(const char *bytes, size_t len, size_t channel_len, struct event *e)
{
	size_t at = sizeof "*3\r\n$7\r\nmessage\r\n$" - 1 + digits(channel_len) + 2;
	size_t left;

	e->channel = bytes + at;
	e->channel_len = channel_len;
	left = len - at - channel_len - sizeof "\r\n$\r\n\r\n" + 1;      /* its length in digits, and itself */
	for (size_t d = 1;; d++)
		if (digits(left - d) == d) {
			e->len = left - d;
			break;
		}
	e->body = bytes + len - 2 - e->len;
}

struct matching {
	struct net              *n;
	const struct event *e;
};

static bool push_matched(void *user, struct topic *t)
{
	struct matching *m = user;
	struct listeners *l = topic_local(t, m->n->worker);

	if (!l || !topic_matches(t, m->e->channel, m->e->channel_len))
		return true;
	write_event(&m->n->matched, t, m->e);
	if (m->n->matched.failed)
		add_relaxed(&m->n->pushes_dropped, l->n);
	else
		push_all(m->n, l, &m->n->matched, m->e->due);
	trim(&m->n->matched);
	return true;
}

/* To the connections of this worker. */
static void publish_local(struct net *n, struct topic *topic, const struct out *text, const struct event *e)
{
	struct listeners *l = topic ? topic_local(topic, n->worker) : NULL;

	if (l)
		push_all(n, l, text, e->due);
	if (topics_count(topics_of(n), true))
		topics_each(topics_of(n), true, push_matched, &(struct matching){ n, e });
}

void pubsub_late(struct net *n, const struct late *l)
{
	struct event e = { .due = l->due };
	struct out text = { .bytes = (char *)(uintptr_t)l->body, .len = l->len };

	sub_relaxed(&n->late_event_bytes, l->len);
	read_event(text.bytes, text.len, (uint32_t)l->status >> 8, &e);
	epoch_enter(n->epoch);
	publish_local(n, topics_find(topics_of(n), false, e.channel, e.channel_len), &text, &e);
	epoch_leave(n->epoch);
}

/* ── to all workers ── */

#define WORKERS_MAX 1024
struct workers { uint64_t bits[WORKERS_MAX / 64]; uint64_t count; const struct event *e; };

static void note_audience(struct workers *to, struct topic *t)
{
	struct audience *a = load_acquire(&t->audience);

	for (uint32_t i = 0; a && i < a->n; i++) {
		uint32_t count = load_relaxed(&a->of[i].count);

		if (count)
			to->bits[a->of[i].worker / 64] |= UINT64_C(1) << (a->of[i].worker % 64);
		to->count += count;
	}
}

static bool note_matching(void *user, struct topic *t)
{
	struct workers *to = user;

	if (topic_matches(t, to->e->channel, to->e->channel_len))
		note_audience(to, t);
	return true;
}

/* What was handed to this worker and not taken yet goes first. */
static void publish_here(struct net *n, struct topic *topic, const struct out *text, const struct event *e)
{
	if (load_relaxed(&n->late))
		hand_event(n, n, text, e);
	else
		publish_local(n, topic, text, e);
}

/* A client's command, and no other before or behind it; no patterns; and listeners of others. */
static bool is_lone(const struct net *here, struct topic *topic, uint64_t listeners)
{
	struct listeners *own;

	if (!here || !topic || !here->running || here->more_input || here->handing_count || topics_count(here->server->door.topics, true))
		return false;
	own = topic_local(topic, here->worker);
	return listeners > (own ? own->n : 0);
}

uint64_t server_publish(struct server *s, uint32_t self, struct topic *topic, const struct event *e)
{
	struct workers to = { .e = e };
	struct net *here = self < s->workers ? load_acquire(&s->nets[self]) : NULL;
	struct out mine = { 0 }, *text = here ? &here->event : &mine;
	bool lends;

	if (topic)
		note_audience(&to, topic);
	if (topics_count(s->door.topics, true))
		topics_each(s->door.topics, true, note_matching, &to);
	if (to.count == 0)
		return 0;
	write_event(text, NULL, e);
	lends = is_lone(here, topic, to.count) && !text->failed && lend_begin(here, text, e);
	for (uint32_t i = 0; i < (s->workers + 63) / 64; i++)            /* the others first: they may have to wake up */
		for (uint64_t bits = to.bits[i]; bits; bits &= bits - 1) {
			struct net *n = load_acquire(&s->nets[i * 64 + (uint32_t)__builtin_ctzll(bits)]);

			if (text->failed)
				add_relaxed(&n->pushes_dropped, 1);
			else if (n != here && !(lends && lend_push(here, n, topic)))
				hand_event(here, n, text, e);
		}
	if (lends)
		lend_end(here);
	if (here && !text->failed && (to.bits[self / 64] >> self % 64 & 1))
		publish_here(here, topic, text, e);
	trim(text);
	if (!here)
		out_close(text);
	return to.count;
}

/* ── what commands ask: session.h ── */

uint64_t net_publish(struct call *c, const struct arg *channel, const struct arg *body)
{
	struct net *n = c->net;
	const struct net_door *door = &n->server->door;
	uint64_t count;

	request_deliver(n);                         /* who hears of it finds done what was asked before */
	conn_reply_from(n, c->conn);
	conn_goes_first(n, c->conn);                /* it may ask again while the others are written to */
	n->gathering = n->more_input;
	count = door->publish(door->box, n->worker, channel, body);
	if (n->handing_count && !n->gathering)
		hand_now(n);
	n->gathering = false;
	return count;
}

bool net_personal(struct call *c, const struct arg *channel, char *room, struct request *r)
{
	const struct net_door *door = &c->net->server->door;

	r->id = room;
	return door->personal(door->box, channel, r);
}

static void confirm(struct call *c, const char *what, const struct arg *name)
{
	struct net *n = c->net;
	struct session *s = &c->conn->session;

	n->own.proto = s->proto;
	out_push(&n->own, 3);
	out_text(&n->own, what);
	if (name)
		out_bulk(&n->own, name->at, name->len);
	else
		out_nil(&n->own);
	out_int(&n->own, (int64_t)s->channels + s->patterns);
}

bool net_subscribe(struct call *c, bool pattern, const struct arg *name)
{
	bool ok;

	epoch_enter(c->net->epoch);
	ok = add(c->net, c->conn, pattern, name);
	epoch_leave(c->net->epoch);
	if (ok)
		confirm(c, pattern ? "psubscribe" : "subscribe", name);
	return ok;
}

static void leave(struct call *c, bool pattern, const struct arg *name)
{
	struct subscribed *s;

	epoch_enter(c->net->epoch);
	s = subscription(c->conn, listeners_of(c->net, pattern, name));
	if (s)
		drop(c->net, c->conn, s);
	epoch_leave(c->net->epoch);
	confirm(c, pattern ? "punsubscribe" : "unsubscribe", name);
}

void net_unsubscribe(struct call *c, bool pattern, const struct arg *name)
{
	struct conn *conn = c->conn;
	char room[CHANNEL_MAX];

	if (name)
		leave(c, pattern, name);
	else if (*count_of(conn, pattern) == 0)
		confirm(c, pattern ? "punsubscribe" : "unsubscribe", NULL);
	for (uint32_t i = conn->subs && !name ? conn->subs->n : 0; i-- > 0; ) {
		struct topic *t = conn->subs->list[i].to->topic;

		if (t->pattern != pattern)
			continue;
		memcpy(room, t->name, t->len);
		struct arg one = { room, t->len };

		leave(c, pattern, &one);
	}
	if (conn->subs && conn->subs->n == 0)
		pubsub_forget(c->net, conn);
}

void net_unsubscribe_all(struct conn *conn)
{
	if (conn->subs)
		pubsub_forget(conn->net, conn);
}

struct naming { channel_fn *each; void *user; };

static bool name_channel(void *arg, struct topic *t)
{
	struct naming *to = arg;

	return !topic_listeners(t) || to->each(to->user, t->name, t->len);
}

void net_each_channel(struct net *n, channel_fn *each, void *user)
{
	epoch_enter(n->epoch);
	topics_each(topics_of(n), false, name_channel, &(struct naming){ each, user });
	epoch_leave(n->epoch);
}

uint64_t net_listeners(struct net *n, const struct arg *channel)
{
	struct topic *t;
	uint64_t count;

	epoch_enter(n->epoch);
	t = topics_find(topics_of(n), false, channel->at, channel->len);
	count = t ? topic_listeners(t) : 0;
	epoch_leave(n->epoch);
	return count;
}

uint64_t net_topics(struct net *n, bool pattern)
{
	return topics_count(topics_of(n), pattern);
}
