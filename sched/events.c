/* sched/events.c - what actors publish and listen to. */
#include "sched/events.h"

#include "sched/durable.h"
#include "sched/meter.h"
#include "sched/trace.h"

#include <string.h>

#define NOTES_MAX (64u << 20)          /* bytes that one turn may publish            */
#define NOTES_KEPT 65536               /* room that is kept for the next one         */

struct subscription {
	struct topic_member  member;   /* first: the topic hands it out              */
	noh_actor            who;
	atomic_u32           kind;
	struct subscription *next;     /* of the same actor                          */
};

/* What a turn has noted, one after the other: this, the channel, the body; each padded to 8. */
enum { PUBLISH, SUBSCRIBE, UNSUBSCRIBE };
struct topic_note {
	uint32_t what;
	uint32_t channel_len, len;
	uint32_t bytes;                /* of all of it                               */
	struct subscription *made;     /* SUBSCRIBE: seated, unseen                  */
};

static uint32_t padded(size_t len)
{
	return (uint32_t)((len + 7) & ~(size_t)7);
}

int events_check(const char *channel, size_t len)
{
	if (channel && len > 0 && len <= CHANNEL_MAX)
		return NOH_OK;
	return error_set(NOH_EINVAL, "a channel has 1 to %d bytes, this one has %zu", CHANNEL_MAX, channel ? len : 0);
}

/* ── delivering ── */

static bool set_event(struct msg *m, const struct event *e, uint32_t kind)
{
	size_t bytes = sizeof(struct envelope) + e->len + e->channel_len + 1;
	struct envelope *env = mem_alloc(bytes);
	char *at;

	if (!env)
		return false;
	*env = (struct envelope){ .bytes = (uint32_t)bytes, .flags = ENVELOPE_TOPIC };
	at = (char *)(env + 1);
	if (e->len)
		memcpy(at, e->body, e->len);
	memcpy(at + e->len, e->channel, e->channel_len);
	at[e->len + e->channel_len] = 0;
	*m = (struct msg){ .kind = kind, .len = (uint32_t)e->len | MSG_WRAPPED };
	m->body.big = env;
	return true;
}

/* By the full mode of its mailbox; nobody waits. True: it is in. */
static bool push_event(struct port *p, struct cell *c, struct type *t, uint32_t gen, const struct msg *m)
{
	struct type_counts *counts = &p->types[t->index];

	if (t->shared) {
		int rc = sched_deliver(p, c, gen, m);

		count_one(&counts->refused, rc == NOH_ENOMEM);
		return rc == NOH_OK;
	}
	switch (mailbox_push(&c->mailbox, &p->room, gen, t->sheds ? t->hard : t->capacity, m)) {
	case MB_PUSHED_WAKE:
		sched_enqueue(p, c);
		/* fall through */
	case MB_PUSHED:
		meter_accepted(p, c, t, 1);
		return true;
	case MB_FULL:
	case MB_NOMEM:
		count_one(&counts->refused, 1);
		break;
	case MB_GONE:                            /* it left before it could hear it: not a receiver */
		break;
	}
	return false;
}

static bool put_event(struct port *p, struct cell *c, uint32_t gen, const struct msg *m)
{
	struct type *t = cell_type(p->sched, c);

	if (__builtin_expect(!(load_relaxed(&t->limits) & LIMIT_REFUSE), 1))
		return push_event(p, c, t, gen, m);
	if (limit_admit(p, c, t) != NOH_OK)
		return false;
	if (push_event(p, c, t, gen, m))
		return true;
	limit_unadmit(p, c, t);
	return false;
}

static uint64_t to_actors(struct port *p, struct topic *topic, const struct event *e)
{
	struct sched *s = p->sched;
	uint64_t heard = 0;
	uint32_t n;
	struct seats *seats = topic_seats(topic, &n);

	for (uint32_t i = 0; i < n; i++) {
		struct subscription *sub = (struct subscription *)topic_seat(seats, i);
		struct cell *c;
		struct msg m;

		if (!sub)
			continue;
		c = cell_at(s, ref_number(sub->who));
		if (e->len > s->max_message || !set_event(&m, e, load_relaxed(&sub->kind))) {
			count_one(&p->types[load_relaxed(&c->type)].refused, 1);
			continue;
		}
		if (__builtin_expect(e->trace != NULL, 0))       /* without memory it goes on without */
			(void)trace_send_on(p->worker, &m, e->trace, clock_now_ns(&s->clock));
		/* It left its seat before its cell went, so in this section the cell is still there. */
		if (e->due)
			durable_raise(c, e->due);
		if (put_event(p, c, ref_gen(sub->who), &m))
			heard++;
		else
			msg_free_body(&m);
	}
	return heard;
}

uint64_t events_publish(struct port *p, const struct event *e)
{
	struct sched *s = p->sched;
	struct topic *topic;
	uint64_t heard = 0;

	epoch_enter(&p->epoch);
	topic = topics_find(&s->topics, false, e->channel, e->channel_len);
	if (topic)
		heard += to_actors(p, topic, e);
	if (s->net.arg)
		heard += s->net.publish(s->net.arg, p, topic, e);
	epoch_leave(&p->epoch);
	return heard;
}

/* ── the personal channel ── */

#define PERSONAL "actor.personal."

static bool names(const struct type *t, const char *at, size_t len)
{
	return t->personal >= 0 && len > t->name_len + 1u && at[t->name_len] == '.' &&
	       memcmp(at, t->name, t->name_len) == 0;
}

bool events_personal(struct sched *s, const char *channel, size_t len, char address[ADDRESS_MAX + 1],
		     size_t *address_len, uint32_t *kind)
{
	size_t prefix = sizeof PERSONAL - 1;
	const struct type *found = NULL;

	if (len <= prefix || memcmp(channel, PERSONAL, prefix) != 0)
		return false;
	channel += prefix;
	len -= prefix;
	for (uint32_t i = 0; i < s->type_count; i++)
		if (names(s->types[i], channel, len) && (!found || s->types[i]->name_len > found->name_len))
			found = s->types[i];
	if (!found || len > ADDRESS_MAX || memchr(channel, 0, len))
		return false;
	memcpy(address, channel, len);
	address[found->name_len] = ':';
	address[len] = 0;
	*address_len = len;
	*kind = (uint32_t)found->personal;
	return true;
}

/* ── what a turn notes ── */

static struct topic_note *note(noh_turn *t, uint32_t what, const char *channel, size_t channel_len, const void *body,
			       size_t len)
{
	uint32_t used = t->so_far.topics;
	uint64_t need = sizeof(struct topic_note) + (uint64_t)padded(channel_len) + padded(len);
	struct topic_note *n;
	char *bytes;

	if (used + need > t->topics.room) {
		uint64_t room = (used + need) * 2;

		bytes = used + need > NOTES_MAX ? NULL : mem_alloc(room);
		if (!bytes)
			return NULL;
		if (used)
			memcpy(bytes, t->topics.bytes, used);
		mem_free(t->topics.bytes, t->topics.room);
		t->topics.bytes = bytes;
		t->topics.room = (uint32_t)room;
	}
	n = (struct topic_note *)(void *)(t->topics.bytes + used);
	*n = (struct topic_note){ .what = what, .channel_len = (uint32_t)channel_len, .len = (uint32_t)len,
				  .bytes = (uint32_t)need };
	memcpy(n + 1, channel, channel_len);
	if (len)
		memcpy((char *)(n + 1) + padded(channel_len), body, len);
	t->so_far.topics = used + (uint32_t)need;
	t->so_far.flags |= TURN_TOPICS;
	return n;
}

static int no_room(noh_turn *t, const char *channel)
{
	return error_set(NOH_ENOMEM, "%s: no memory for what it does with channel %s (%u bytes of events in this turn "
			 "so far)", noh_address(t), channel, t->so_far.topics);
}

/* Turns of a step are set aside until all have run; what they note here could not be. */
static int may_note(noh_turn *t, const char *channel, size_t len)
{
	if (t->so_far.flags & TURN_READONLY)
		return turn_read_only(t);
	if (t->so_far.flags & TURN_STEP)
		return error_set(NOH_EINVAL, "%s: topics are not for a step over several actors", noh_address(t));
	return events_check(channel, len);
}

int noh_publish(noh_turn *t, const char *channel, const void *body, size_t len)
{
	char address[ADDRESS_MAX + 1];
	size_t channel_len = channel ? strlen(channel) : 0, address_len;
	uint32_t kind, before = t->so_far.topics;
	int rc;

	rc = may_note(t, channel, channel_len);
	if (rc != NOH_OK)
		return rc;
	if (len > t->sched->max_message)
		return tell_too_big(t->sched, len);
	if (!note(t, PUBLISH, channel, channel_len, body, len))
		return no_room(t, channel);
	if (events_personal(t->sched, channel, channel_len, address, &address_len, &kind)) {
		rc = noh_tell_to(t, address, kind, body, len);
		if (rc != NOH_OK)
			t->so_far.topics = before;
	}
	return rc;
}

/* ── listening ── */

static void free_subscription(ck_epoch_entry_t *e)
{
	mem_free(e, sizeof(struct subscription));
}

/* Seated, and not seen yet. NULL: no memory. */
static struct subscription *seat(struct worker *w, struct cell *c, const char *channel, size_t len, uint32_t kind)
{
	struct sched *s = w->fixed.sched;
	ck_epoch_record_t *epoch = &w->mine.port.epoch;
	struct subscription *sub = mem_zalloc(sizeof *sub);
	struct topic *topic = sub ? topics_hold(&s->topics, epoch, false, channel, len) : NULL;
	bool ok = topic && topic_sit(&s->topics, epoch, topic, &sub->member);

	if (topic)
		topics_let_go(&s->topics, epoch, topic);     /* the seat holds it */
	if (!ok) {
		mem_free(sub, sizeof *sub);
		return NULL;
	}
	sub->who = ref_make(cell_number(s, c), load_relaxed(&c->mailbox.gen));
	store_relaxed(&sub->kind, kind);
	return sub;
}

static void unseat(struct port *p, struct subscription *sub)
{
	topic_leave(&p->sched->topics, &p->epoch, &sub->member);
	epoch_defer(&p->epoch, &sub->member.entry, free_subscription);
}

static void link_in(struct sched *s, struct cell *c, struct subscription *sub)
{
	sub->next = c->ext->subscriptions;
	c->ext->subscriptions = sub;
	c->ext->subscription_count++;
	topic_appear(&s->topics, &sub->member);
}

int noh_subscribe(noh_turn *t, const char *channel, uint32_t kind)
{
	size_t len = channel ? strlen(channel) : 0;
	struct topic_note *n;
	struct ext *x;
	int rc;

	rc = may_note(t, channel, len);
	if (rc == NOH_OK)
		rc = type_check_kind(t->type, kind);
	if (rc != NOH_OK)
		return rc;
	x = cell_ext(t->cell);
	if (x && x->subscription_count >= EVENTS_TOPICS_MAX)
		return error_set(NOH_EINVAL, "%s listens to %u channels: no actor to more", noh_address(t),
				 x->subscription_count);
	n = x ? note(t, SUBSCRIBE, channel, len, NULL, 0) : NULL;
	if (!n)
		return no_room(t, channel);
	n->made = seat(t->worker, t->cell, channel, len, kind);
	if (n->made)
		return NOH_OK;
	t->so_far.topics -= n->bytes;
	return no_room(t, channel);
}

int noh_unsubscribe(noh_turn *t, const char *channel)
{
	size_t len = channel ? strlen(channel) : 0;
	int rc;

	rc = may_note(t, channel, len);
	if (rc != NOH_OK)
		return rc;
	return note(t, UNSUBSCRIBE, channel, len, NULL, 0) ? NOH_OK : no_room(t, channel);
}

const char *noh_channel(noh_turn *t, const noh_msg *m)
{
	const struct envelope *env = msg_envelope(m);

	(void)t;
	return env && (env->flags & ENVELOPE_TOPIC) ? (const char *)m->body + m->len : NULL;
}

/* ── the end of a turn ── */

static struct subscription **find_sub(struct cell *c, const char *channel, size_t len)
{
	struct subscription **at = &c->ext->subscriptions;

	while (*at && ((*at)->member.topic->len != len || memcmp((*at)->member.topic->name, channel, len) != 0))
		at = &(*at)->next;
	return at;
}

static void subscribe(struct port *p, struct cell *c, const struct topic_note *n)
{
	struct subscription *old = *find_sub(c, (const char *)(n + 1), n->channel_len);

	if (old) {
		store_relaxed(&old->kind, load_relaxed(&n->made->kind));
		unseat(p, n->made);
	} else {
		link_in(p->sched, c, n->made);
	}
}

static void unsubscribe(struct port *p, struct cell *c, const struct topic_note *n)
{
	struct subscription **at = c->ext ? find_sub(c, (const char *)(n + 1), n->channel_len) : NULL;
	struct subscription *sub = at ? *at : NULL;

	if (!sub)
		return;
	*at = sub->next;
	c->ext->subscription_count--;
	unseat(p, sub);
}

static void done_with_notes(noh_turn *t)
{
	if (t->topics.room > NOTES_KEPT) {
		mem_free(t->topics.bytes, t->topics.room);
		t->topics = (struct letters){ 0 };
	}
	t->so_far.topics = 0;
}

/* Its record is pushed, and its due known. */
void events_commit(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	struct port *p = &w->mine.port;
	uint32_t bytes = t->so_far.topics;

	for (uint32_t at = 0; at < bytes; ) {
		struct topic_note *n = (struct topic_note *)(void *)(t->topics.bytes + at);
		const char *channel = (const char *)(n + 1);

		if (n->what == SUBSCRIBE)
			subscribe(p, t->cell, n);
		else if (n->what == UNSUBSCRIBE)
			unsubscribe(p, t->cell, n);
		else
			(void)events_publish(p, &(struct event){ channel, n->channel_len, channel + padded(n->channel_len),
								 n->len, sched_is_durable(p->sched) ? t->due : 0,
								 t->so_far.flags & TURN_TRACED ? t->trace : NULL });
		at += n->bytes;
	}
	done_with_notes(t);
}

void events_undo(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;

	for (uint32_t at = 0; at < t->so_far.topics; ) {
		struct topic_note *n = (struct topic_note *)(void *)(t->topics.bytes + at);

		if (n->what == SUBSCRIBE)
			unseat(&w->mine.port, n->made);
		at += n->bytes;
	}
	done_with_notes(t);
}

/* ── coming and going ── */

int events_join(struct worker *w, struct cell *c, const struct type *t)
{
	for (uint32_t i = 0; i < t->pub.topic_count; i++) {
		const noh_topic *topic = &t->pub.topics[i];
		struct subscription *sub = cell_ext(c) ? seat(w, c, topic->channel, strlen(topic->channel), topic->kind)
						       : NULL;

		if (!sub)
			return error_set(NOH_ENOMEM, "no memory to listen to %s", topic->channel);
		link_in(w->fixed.sched, c, sub);
	}
	return NOH_OK;
}

void events_drop(struct port *p, struct cell *c)
{
	while (c->ext->subscriptions) {
		struct subscription *sub = c->ext->subscriptions;

		c->ext->subscriptions = sub->next;
		unseat(p, sub);
	}
	c->ext->subscription_count = 0;
}
