/* core/topics.h - who listens to what: channels and patterns, the workers whose connections have subscribed to
 * them, and the actors that have.
 *
 * A topic is there as long as somebody listens to it. Whoever publishes looks it up and walks over its
 * listeners without a lock, inside an epoch section; whoever subscribes or leaves takes the lock of the table
 * the topic is in, for one operation.
 *
 *     topic ─► audience: { worker, how many of its connections, what that worker knows of them }, ...
 *           ─► seats:    member, member, -, member ...          a member is an actor's subscription
 *
 * Owns     topics, audiences and seats. Members and what workers know of their connections are their makers'.
 * Threads  any, each with its own epoch record; topic_local: the worker it is of. An epoch record of NULL
 *          means: nobody reads any more, what goes is freed at once.
 * Never    blocks a reader, or keeps a topic that nobody listens to.
 */
#ifndef NOH_CORE_TOPICS_H
#define NOH_CORE_TOPICS_H

#include "core/atomic.h"
#include "core/epoch.h"
#include "noh.h"

#include <pthread.h>
#include <stddef.h>

#define CHANNEL_MAX NOH_CHANNEL_MAX    /* of patterns, too */
#define TOPIC_TABLES 64

/* Something published. due: it tells of what is on disk by then. */
struct event {
	const char *channel;
	size_t      channel_len;
	const void *body;
	size_t      len;
	uint64_t    due;
	const struct trace_tail *trace;  /* of the turn that tells it (core/trace.h); NULL: none */
};

struct topic;

struct topic_member {              /* freed by its owner, after the epoch in which it left */
	ck_epoch_entry_t entry;
	struct topic    *topic;
	uint32_t         seat;     /* the topic's */
};

struct hearing {
	uint32_t   worker;
	atomic_u32 count;          /* of its connections; 0: none any more */
	void      *local;          /* that worker's                        */
};
struct audience {
	ck_epoch_entry_t entry;
	uint32_t         n;
	struct hearing   of[];
};

struct seats {
	ck_epoch_entry_t entry;
	uint32_t         room;
	atomic_u32       used;     /* those from here on were never taken            */
	atomic_ptr       seat[];   /* a member; with a bit in the lowest two: not there */
};

struct topic {
	ck_epoch_entry_t entry;
	uint64_t   hash;
	atomic_ptr audience;       /* NULL: no connections                           */
	atomic_ptr seats;          /* NULL: no actors                                */
	atomic_u32 actors;         /* members that have appeared                     */
	uint32_t   holders;        /* this and what follows: guarded by the table's lock */
	uint32_t   taken;          /* seats                                          */
	uintptr_t  free_seat;      /* the last one given back; 0: none               */
	uint32_t   plain;          /* of a pattern: how many bytes stand for themselves */
	uint16_t   len;
	bool       pattern;
	char       name[];
};

struct topic_table {
	pthread_mutex_t lock;
	atomic_ptr      slots;     /* struct topic_slots */
	atomic_u32      live;      /* topics             */
	uint32_t        used;      /* places that are not free: topics, and where some were */
};

struct topics {
	uint64_t           seed;
	struct topic_table channels[TOPIC_TABLES];
	struct topic_table patterns;
};

void topics_open(struct topics *ts, uint64_t seed);
void topics_close(struct topics *ts);            /* nobody uses it any more */

/* ── in an epoch section ── */
struct topic *topics_find(struct topics *ts, bool pattern, const char *name, size_t len);    /* NULL: nobody listens */
bool topic_matches(const struct topic *pattern, const char *channel, size_t len);
uint64_t topic_listeners(struct topic *t);
void *topic_local(struct topic *t, uint32_t worker);         /* of the calling worker; NULL: none of its connections */

/* All of them; each() ends it with false. What comes or goes meanwhile may be seen or not. */
typedef bool topic_fn(void *user, struct topic *t);
void topics_each(struct topics *ts, bool pattern, topic_fn *each, void *user);
uint64_t topics_count(struct topics *ts, bool pattern);

/* ── listening ── */

/* Find or make, and keep it until it is let go. NULL: no memory. */
struct topic *topics_hold(struct topics *ts, ck_epoch_record_t *epoch, bool pattern, const char *name, size_t len);
void topics_let_go(struct topics *ts, ck_epoch_record_t *epoch, struct topic *t);

/* So many connections of this worker listen now. False: no memory (never if the count was above 0 before, or
 * is 0 now). */
bool topic_hear(struct topics *ts, ck_epoch_record_t *epoch, struct topic *t, uint32_t worker, void *local,
		uint32_t count);

/* Take a seat, unseen (false: no memory); appear on it; leave it, seen or unseen. */
bool topic_sit(struct topics *ts, ck_epoch_record_t *epoch, struct topic *t, struct topic_member *m);
void topic_appear(struct topics *ts, struct topic_member *m);
void topic_leave(struct topics *ts, ck_epoch_record_t *epoch, struct topic_member *m);

/* For i from 0 up to topic_seats(): who sits there, or NULL. One and the same `seats` for the whole walk. */
static inline struct seats *topic_seats(struct topic *t, uint32_t *n)
{
	struct seats *s = load_acquire(&t->seats);

	*n = s ? load_acquire(&s->used) : 0;
	return s;
}
static inline struct topic_member *topic_seat(struct seats *s, uint32_t i)
{
	void *m = load_acquire(&s->seat[i]);

	return (uintptr_t)m & 3 ? NULL : m;
}

#endif
