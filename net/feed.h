/* net/feed.h - who reads events as they come: streams of HTTP (GET /events), and commands that wait for the next ones
 * (EVENTS.READ).
 *
 * One thread reads for all of them, and the workers do nothing for a reader but send what it has written. It sleeps until
 * there is an event, a reader comes, goes or has made room, or one has waited long enough.
 *
 *     feeds_news ─► thread: events behind each reader's cursor, as text ─► late ─► worker: its connection ─► client
 *                     ▲ feed_taken: the client took it ◄─────────────────────────────────┘
 *
 * A reader is given at most FEED_WINDOW bytes that it has not taken (and one event more, however large), a command in all;
 * behind that it waits, and its cursor with it. Who makes no room for half of the client time-out is told where to go on, and ended.
 *
 * Owns     readers, from feed_open until their side has said feed_leave and the thread has seen it.
 * Threads  feeds_news: any. feed_open, feed_taken, feed_leave, feed_late: the connection's worker.
 * Never    makes a worker wait.
 */
#ifndef NOH_NET_FEED_H
#define NOH_NET_FEED_H

#include "core/address.h"
#include "core/atomic.h"
#include "noh.h"

struct conn;
struct feed;
struct late;
struct net;
struct server;

enum { FEED_WINDOW = 65536, FEED_LAST_MOST = 1000 };

/* What a reader wants. Texts: "" any. */
struct feed_wish {
	bool     stream;                   /* else a command                                        */
	uint64_t cursor;                   /* events behind this one                                */
	uint32_t last;                     /* a stream: begin with the last so many instead; UINT32_MAX: no */
	uint64_t since_ms;
	char     actor[ADDRESS_MAX + 1], type[TYPE_NAME_MAX + 1], kind[NOH_EVENT_KIND + 1];
	bool     once;                     /* a stream: ends when all there is has been told        */
	uint32_t patience_ms;              /* a stream: so long it may make no room                 */
	uint32_t limit;                    /* a command: at most so many                            */
	uint32_t block_ms;                 /* a command: how long to wait for the first; 0: not     */
	uint8_t  proto;                    /* a command: RESP 2 or 3                                */
};

/* ── the server's: feed.c ── */
int  feeds_open(struct server *s);                       /* NOH_OK, NOH_ENOMEM                     */
void feeds_start(struct server *s);
void feeds_stop(struct server *s);                       /* tells all readers so; as often as wanted */
void feeds_close(struct server *s);                      /* no worker runs any more                */
void feeds_news(struct server *s);                       /* there are events that may be read      */
uint32_t feeds_count(const struct server *s);

/* ── a worker's: feed_conn.c ── */

/* One more reader. token: of the slot that waits for a command's answer; of a stream: for the word that it begins (NOH_OK), or why it
 * cannot (then its connection ends). NOH_OK, NOH_ENOMEM, NOH_ESTOPPED. */
int  feed_open(struct net *n, struct conn *c, uint64_t token, const struct feed_wish *wish, struct feed **feed);
void feed_leave(struct net *n, struct feed *x);          /* it reads no more, and is nobody's from now on */
void feed_hurry(struct net *n, struct conn *c);          /* its commands wait no longer: it may be gone */
void feed_taken(struct conn *c);                         /* the client took some of it             */
void feed_late(struct net *n, const struct late *l);     /* the thread has written something       */

/* What the thread answers a command with: its cursor and count, then so many events as RESP. */
struct feed_answer { uint64_t cursor, count; };

#endif
