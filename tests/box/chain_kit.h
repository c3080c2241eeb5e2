/* tests/box/chain_kit.h - the box ends, and each event of an actor began where the one before it ended.
 *
 * Over one life of a box: what was told before a process ended may have no end.
 */
#ifndef NOH_TESTS_BOX_CHAIN_KIT_H
#define NOH_TESTS_BOX_CHAIN_KIT_H

#include "tests/box/kit.h"

enum { CHAIN_ACTORS = 512 };
struct chain { unsigned count; struct { char actor[64], state[64], kind[64]; } last[CHAIN_ACTORS]; };

static inline int chain_link(void *user, const noh_event *e)
{
	struct chain *k = user;
	unsigned i = 0;

	if (!e->by_box || !strchr(e->actor, ':') || (!*e->from && !*e->to))      /* of the box, a type, or no state */
		return 0;
	while (i < k->count && strcmp(k->last[i].actor, e->actor) != 0)
		i++;
	if (i == CHAIN_ACTORS)
		return 0;
	if (i == k->count) {
		k->count++;
		snprintf(k->last[i].actor, sizeof k->last[i].actor, "%s", e->actor);
		snprintf(k->last[i].state, sizeof k->last[i].state, "not active");
		snprintf(k->last[i].kind, sizeof k->last[i].kind, "its beginning");
	}
	if (!EXPECT(strcmp(k->last[i].state, e->from) == 0))
		printf("  %s: %s leads to \"%s\", and %s begins with \"%s\"\n", e->actor, k->last[i].kind, k->last[i].state,
		       e->kind, e->from);
	snprintf(k->last[i].state, sizeof k->last[i].state, "%s", e->to);
	snprintf(k->last[i].kind, sizeof k->last[i].kind, "%s", e->kind);
	return 0;
}

static inline void end_chained(noh_box *box)
{
	static struct chain k;
	uint64_t cursor = 0;
	int rc = NOH_OK;

	if (!EXPECT_EQ(noh_stop(box, SOON), NOH_OK))
		printf("  %s\n", noh_why());
	k.count = 0;
	while (rc == NOH_OK)
		rc = noh_events_read(box, &cursor, NULL, 0, chain_link, &k);
	EXPECT_EQ(rc, NOH_END);
	for (unsigned i = 0; i < k.count; i++)   /* a box that has stopped has nobody in memory */
		if (!EXPECT(strcmp(k.last[i].state, "active") && strcmp(k.last[i].state, "down") &&
			    strcmp(k.last[i].state, "activating")))
			printf("  %s: its last event is %s, to \"%s\"\n", k.last[i].actor, k.last[i].kind, k.last[i].state);
	noh_close(box);
}

#endif
