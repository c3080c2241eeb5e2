/* timer.c - a recurring schedule. A clock is started by a call; it ticks every 10 ms, five times,
 * and then answers with the milliseconds that have passed. */
#include <noh.h>
#include <stdio.h>

enum { START, TICK };
enum { EVERY_MS = 10, TICKS = 5 };

struct ticker {
	noh_promise starter;       /* who waits for the last tick */
	uint64_t    started_ms;
	int         ticks;
};

static const noh_kind kinds[] = {
	[START] = { .name = "start" },
	[TICK] = { .name = "tick", .flags = NOH_KIND_TIMER },    /* nobody else can send it */
};

static int on_message(noh_turn *turn, const noh_msg *msg)
{
	struct ticker *t = noh_state(turn);

	if (msg->kind == START) {
		t->starter = noh_defer(turn, msg);
		t->started_ms = noh_now_ms(turn);
		return noh_schedule_every(turn, TICK, EVERY_MS);
	}
	if (++t->ticks < TICKS)
		return NOH_OK;
	uint64_t passed = noh_now_ms(turn) - t->started_ms;
	noh_schedule_cancel(turn, TICK);
	noh_answer(turn, t->starter, NOH_OK, &passed, sizeof passed);
	return NOH_OK;
}

int main(void)
{
	const noh_type ticker = { .name = "ticker", .state_size = sizeof(struct ticker),
				  .kinds = kinds, .kind_count = 2, .on_message = on_message };
	uint64_t passed = 0;
	size_t len = sizeof passed;
	noh_box *box;

	if (noh_open(&box, NULL) || noh_register(box, &ticker) || noh_start(box))
		return fprintf(stderr, "%s\n", noh_why()), 1;
	int rc = noh_call(box, "ticker:1", START, NULL, 0, 5000, &passed, &len);
	printf("%d ticks in %llu ms (%s)\n", TICKS, (unsigned long long)passed, noh_strerror(rc));
	noh_close(box);
	return rc != NOH_OK || passed < TICKS * EVERY_MS;        /* late happens, early never */
}
