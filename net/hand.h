/* net/hand.h - published messages on their way to the connections of other workers.
 *
 * Several that a client sends at once go together: their worker is woken once, and sends each of its connections all of
 * them at once.
 *
 * Owns     what was handed and not given yet.
 * Threads  the worker of `here`; hand_event without one: any.
 * Never    keeps anything over a turn, or over the end of net_read.
 */
#ifndef NOH_NET_HAND_H
#define NOH_NET_HAND_H

#include "net/net.h"

/* To the worker of n, for those that listen there. here: the calling worker's; NULL: none. */
void hand_event(struct net *here, struct net *n, const struct out *text, const struct event *e);
void hand_now(struct net *here);       /* what waits for others behind it; there is something */

#endif
