/* net/hand.c - published messages on their way to the connections of other workers.
 *
 * Order of messages: as long as anything waits here, all that this worker hands to others goes behind it.
 */
#include "net/hand.h"

#include "core/mem.h"

#include <string.h>

#define LATE_EVENT_MAX (64u << 20)     /* bytes handed to a worker that does not take them; then they are dropped */

static void give(struct net *n, struct late *newest, struct late *oldest)
{
	const struct net_door *door = &n->server->door;

	if (net_push_late_all(n, newest, oldest))
		door->wake(door->box, n->worker);
}

void hand_now(struct net *here)
{
	for (uint32_t i = 0; i < here->handing_count; i++)
		give(here->handing[i].to, here->handing[i].newest, here->handing[i].oldest);
	here->handing_count = 0;
}

static void wait_for_more(struct net *here, struct net *n, struct late *l)
{
	uint32_t i = 0;

	while (i < here->handing_count && here->handing[i].to != n)
		i++;
	if (i == HANDING_MOST) {
		hand_now(here);
		i = 0;
	}
	if (i == here->handing_count) {
		here->handing[i].to = n;
		here->handing[i].newest = here->handing[i].oldest = l;
		here->handing_count++;
		return;
	}
	l->next = here->handing[i].newest;
	here->handing[i].newest = l;
}

void hand_event(struct net *here, struct net *n, const struct out *text, const struct event *e)
{
	struct late *l = load_relaxed(&n->late_event_bytes) + text->len > LATE_EVENT_MAX
				 ? NULL : mem_alloc(sizeof *l + text->len);

	if (!l) {
		add_relaxed(&n->pushes_dropped, 1);
		return;
	}
	*l = (struct late){ .due = e->due, .status = LATE_EVENT | (int)(e->channel_len << 8),
			    .len = (uint32_t)text->len, .count = UINT32_MAX };
	memcpy(l->body, text->bytes, text->len);
	add_relaxed(&n->late_event_bytes, text->len);
	if (here && here != n && (here->gathering || here->handing_count))
		wait_for_more(here, n, l);
	else
		give(n, l, l);
}
