/* net/lend.h - a worker that sleeps lends its connections to whoever publishes.
 *
 * To wake another core for a few bytes takes longer than to send them, and most of all on virtual machines. So a
 * message for quiet connections of a worker that sleeps is sent by the worker that has it, together with what that
 * sends to its own, and the other one sleeps on.
 *
 * Owns     the right to touch a net: its worker's, but while that sleeps in the kernel another one's that takes it.
 * Threads  lend_open, lend_close: the net's worker.  All else: the worker that borrows, and `here` is its own net.
 * Never    holds it longer than the sends take, at most LEND_MOST of them: for more somebody is woken. No turn is run in
 *          between: one that is stuck holds up nobody else.
 */
#ifndef NOH_NET_LEND_H
#define NOH_NET_LEND_H

#include "net/net.h"

struct listener { uint32_t conn, index; };              /* index: in its connection's list */
struct listeners {
	struct topic    *topic;
	struct listener *list;
	uint32_t         n, room;
};

void lend_open(struct net *n);         /* it is about to sleep, and touches nothing until ... */
void lend_close(struct net *n);        /* ... it is awake again: waits until it has it back */

/* One message at a time. Begin; push to each net, whose worker is not this one: false: nothing is sent there, hand it
 * over; end. */
bool lend_begin(struct net *here, const struct out *text, const struct event *e);
bool lend_push(struct net *here, struct net *n, struct topic *topic);
void lend_end(struct net *here);
void lend_sent(struct net *here, uint32_t index, int result);      /* how much a socket took, or -errno */
void lend_finish(struct net *here);    /* what could not be sent at once is, and given back */
void lend_free(struct net *here);

#endif
