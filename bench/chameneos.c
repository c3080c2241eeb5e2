/* bench/chameneos.c - a hundred creatures meet in pairs through one mall and change colours.
 *
 * The mall keeps the first of two visitors waiting and tells it about the second; the first tells
 * the second its new colour; both go to the mall again. One op is one meeting: four messages. After
 * n meetings the mall sends everybody home, and each reports how often it met somebody: 2n in all.
 */
#include "bench/bench.h"

enum { BEGIN, MEET, CHANGE, LEAVE, FADED };
enum { CREATURES = 100 };

struct forest { noh_actor mall, gather; uint64_t n; };
struct mall { noh_actor waiting; uint64_t left, faded; int64_t sum; };
struct creature { int64_t colour, met; };
struct visit { noh_actor from; int64_t colour; };

static int64_t complement(int64_t a, int64_t b)
{
	return a == b ? a : 3 - a - b;
}

static int mall_activate(noh_turn *turn)
{
	const struct forest *forest = noh_user(turn);
	struct mall *me = noh_state(turn);

	me->left = forest->n;
	return NOH_OK;
}

static int mall_message(noh_turn *turn, const noh_msg *msg)
{
	const struct forest *forest = noh_user(turn);
	struct mall *me = noh_state(turn);
	const struct visit *visit = msg->body;

	if (msg->kind == FADED) {
		me->sum += *(const int64_t *)msg->body;
		return ++me->faded < CREATURES ? NOH_OK : gather_add(turn, forest->gather, me->sum);
	}
	if (me->left == 0)
		return noh_tell(turn, visit->from, LEAVE, NULL, 0);
	if (me->waiting.bits == 0) {
		me->waiting = visit->from;
		return NOH_OK;
	}
	noh_actor first = me->waiting;

	me->waiting.bits = 0;
	me->left--;
	return noh_tell(turn, first, MEET, visit, sizeof *visit);
}

static int creature_activate(noh_turn *turn)
{
	struct creature *me = noh_state(turn);

	me->colour = (int64_t)(bench_id(turn) % 3);
	return NOH_OK;
}

static int creature_message(noh_turn *turn, const noh_msg *msg)
{
	const struct forest *forest = noh_user(turn);
	struct creature *me = noh_state(turn);
	int rc = NOH_OK;

	switch (msg->kind) {
	case MEET: {
		const struct visit *other = msg->body;
		me->colour = complement(me->colour, other->colour);
		me->met++;
		rc = noh_tell(turn, other->from, CHANGE, &me->colour, sizeof me->colour);
		break;
	}
	case CHANGE:
		me->colour = *(const int64_t *)msg->body;
		me->met++;
		break;
	case LEAVE:
		return noh_tell(turn, forest->mall, FADED, &me->met, sizeof me->met);
	default:
		break;
	}
	if (rc != NOH_OK)
		return rc;
	struct visit visit = { noh_self(turn), me->colour };
	return noh_tell(turn, forest->mall, MEET, &visit, sizeof visit);
}

void bench_chameneos(struct bench_run *r)
{
	static struct forest forest;
	noh_type mall = bench_type("mall", sizeof(struct mall), mall_message, &forest);
	noh_type creature = bench_type("creature", sizeof(struct creature), creature_message,
				       &forest);
	noh_actor all[CREATURES];

	mall.on_activate = mall_activate;
	creature.on_activate = creature_activate;
	bench_register(r, &mall);
	bench_register(r, &creature);
	bench_start(r);
	forest = (struct forest){ bench_ref(r, "mall", 1), r->gather, r->n };
	for (uint64_t i = 0; i < CREATURES; i++)
		all[i] = bench_ref(r, "creature", i);

	bench_begin(r);
	for (unsigned i = 0; i < CREATURES; i++)
		bench_send(r, all[i], BEGIN, NULL, 0);
	struct gathered sum = bench_wait(r, 1);
	bench_end(r, r->n);
	bench_same(r, "meetings counted by both sides", sum.sums[0], (int64_t)(2 * r->n));
}
