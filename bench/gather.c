/* bench/gather.c - sums reports; answers the waiting call when they are complete. */
#include "bench/gather.h"

#include <string.h>

struct gather {
	noh_promise     waiting;
	uint64_t        wanted;
	struct gathered all;
};

static int gather_message(noh_turn *turn, const noh_msg *msg)
{
	struct gather *g = noh_state(turn);

	if (msg->kind == GATHER_WAIT) {
		g->waiting = noh_defer(turn, msg);
		memcpy(&g->wanted, msg->body, sizeof g->wanted);
	} else {
		const int64_t *column = msg->body;

		for (uint32_t i = 0; i < msg->len / sizeof *column && i < GATHER_COLUMNS; i++)
			g->all.sums[i] += column[i];
		g->all.reports++;
	}
	if (g->waiting.bits == 0 || g->all.reports < g->wanted)
		return NOH_OK;
	int rc = noh_answer(turn, g->waiting, NOH_OK, &g->all, sizeof g->all);

	memset(g, 0, sizeof *g);
	return rc == NOH_NOBODY ? NOH_OK : rc;
}

noh_type gather_type(void)
{
	return (noh_type){ .name = "gather", .state_size = sizeof(struct gather),
			   .full_mode = NOH_BLOCK, .on_message = gather_message };
}

int gather_add(noh_turn *turn, noh_actor gather, int64_t value)
{
	return noh_tell(turn, gather, GATHER_ADD, &value, sizeof value);
}

int gather_wait(noh_box *box, uint64_t reports, uint32_t timeout_ms, struct gathered *all)
{
	size_t len = sizeof *all;

	return noh_call(box, GATHER_ADDRESS, GATHER_WAIT, &reports, sizeof reports, timeout_ms, all,
			&len);
}
