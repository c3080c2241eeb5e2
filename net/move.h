/* net/move.h - a connection goes over to another worker (crew.h says when).
 *
 * It leaves when its last reply was sent and nothing of it is under way: no command, no output, no subscription. Its
 * receive is ended; what has arrived until then is served here, and it stays for now. Else it is taken out of this
 * worker's table and put into the other one's; what the client says in between waits in its socket.
 *
 * Owns     the connections on their way. Whoever lists clients, or ends one, holds `server.moves` for that time: nobody
 *          leaves or arrives then, so that everybody is seen once.
 * Threads  note, noted, left: the worker it leaves.  arrives: the one it goes to.
 * Never    blocks: where the lock is held it stays a little longer.
 */
#ifndef NOH_NET_MOVE_H
#define NOH_NET_MOVE_H

#include "net/net.h"

struct mover {                             /* in the body of its struct late */
	struct conn  *conn;
	struct mover *next;
	uint32_t      changes;             /* of options and accounts: those it went by             */
	bool          killed;              /* to be ended when it arrives                           */
};

static inline uint32_t move_target(const struct net *n, const struct conn *c)
{
	return (uint32_t)c->session.id % n->width;
}
static inline bool move_is_due(const struct net *n, const struct conn *c)
{
	return move_target(n, c) != n->worker;
}
void move_note(struct net *n, struct conn *c);
void move_noted(struct net *n);                        /* end of a pass: who was noted leaves    */
bool move_left(struct net *n, struct conn *c);         /* io_handlers.left                       */
void move_arrives(struct net *n, struct late *l);
void move_lost(struct net *n, struct late *l);         /* no worker runs any more                */

#endif
