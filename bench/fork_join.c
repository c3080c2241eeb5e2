/* bench/fork_join.c - making actors, and feeding many from one.
 *
 * fork-join-create      one actor sends the first message to each of n new addresses; every new
 *                       actor answers to a collector. One op is one actor, made and heard.
 * fork-join-throughput  one actor sends n messages to each of 60: one op is one message.
 */
#include "bench/bench.h"
#include "tools/cli.h"

#include <string.h>

enum { GO, WORK };
enum { CREATE_RUN = 64 };

struct nursery { noh_actor gather; uint64_t n; };
struct creator { uint64_t made; };
struct cell { int64_t sum; };
struct hello { int64_t value; noh_actor answer_to; };

static int cell_message(noh_turn *turn, const noh_msg *msg)
{
	const struct hello *hello = msg->body;
	struct cell *me = noh_state(turn);

	me->sum += hello->value;
	return gather_add(turn, hello->answer_to, me->sum);
}

static int creator_message(noh_turn *turn, const noh_msg *msg)
{
	const struct nursery *nursery = noh_user(turn);
	struct creator *me = noh_state(turn);
	struct hello hello = { 1, nursery->gather };
	char addresses[2][32];
	size_t len;

	(void)msg;
	memset(addresses, 0, sizeof addresses);
	bench_address(addresses[0], "cell", me->made + 1);
	len = strlen(addresses[0]);
	for (unsigned i = 0; i < CREATE_RUN && me->made < nursery->n; i++, me->made++) {
		char *address = addresses[i % 2], *next = addresses[(i + 1) % 2];

		/* One ahead: words are not to be read where a byte has just been written. */
		memcpy(next, address, sizeof addresses[0]);
		bench_next_address(next + len);
		int rc = noh_tell_to(turn, address, WORK, &hello, sizeof hello);
		if (rc != NOH_OK)
			return rc;
	}
	if (me->made == nursery->n)
		return NOH_OK;
	return noh_tell(turn, noh_self(turn), GO, NULL, 0);
}

void bench_fork_join_create(struct bench_run *r)
{
	static struct nursery nursery;
	noh_type creator = bench_type("creator", sizeof(struct creator), creator_message, &nursery);
	noh_type cell = bench_type("cell", sizeof(struct cell), cell_message, NULL);
	noh_type_stats stats;

	bench_register(r, &creator);
	bench_register(r, &cell);
	bench_start(r);
	nursery = (struct nursery){ r->gather, r->n };
	noh_actor first = bench_ref(r, "creator", 1);
	uint64_t before = cli_rss_anon();

	bench_begin(r);
	bench_send(r, first, GO, NULL, 0);
	struct gathered all = bench_wait(r, r->n);
	bench_end(r, r->n);
	bench_same(r, "the sum of all answers", all.sums[0], (int64_t)r->n);
	bench_quiet(r);
	bench_must(r, noh_get_type_stats(r->box, "cell", &stats), "reading the counters");
	bench_same(r, "activations", (int64_t)stats.activations, (int64_t)r->n);
	r->out.bytes_per_actor = (double)(cli_rss_anon() - before) / (double)r->n;
}

/* ── fork-join-throughput ─────────────────────────────────────────────────────────────────── */
enum { HANDS = 60, ROUNDS = 16 };     /* rounds in one turn of the foreman */

struct works { noh_actor hands[HANDS], gather; uint64_t n; };
struct foreman { uint64_t left; };
struct hand { uint64_t count; int64_t sum; };

static int hand_message(noh_turn *turn, const noh_msg *msg)
{
	const struct works *works = noh_user(turn);
	struct hand *me = noh_state(turn);

	me->sum += *(const int64_t *)msg->body;
	if (++me->count < works->n)
		return NOH_OK;
	return gather_add(turn, works->gather, me->sum);
}

static int foreman_activate(noh_turn *turn)
{
	const struct works *works = noh_user(turn);
	struct foreman *me = noh_state(turn);

	me->left = works->n;
	return NOH_OK;
}

static int foreman_message(noh_turn *turn, const noh_msg *msg)
{
	const struct works *works = noh_user(turn);
	struct foreman *me = noh_state(turn);
	int64_t one = 1;

	(void)msg;
	for (unsigned k = 0; k < ROUNDS && me->left > 0; k++, me->left--)
		for (unsigned i = 0; i < HANDS; i++) {
			int rc = noh_tell(turn, works->hands[i], WORK, &one, sizeof one);
			if (rc != NOH_OK)
				return rc;
		}
	if (me->left == 0)
		return NOH_OK;
	return noh_tell(turn, noh_self(turn), GO, NULL, 0);
}

void bench_fork_join_throughput(struct bench_run *r)
{
	static struct works works;
	noh_type foreman = bench_type("foreman", sizeof(struct foreman), foreman_message, &works);
	noh_type hand = bench_type("hand", sizeof(struct hand), hand_message, &works);

	foreman.on_activate = foreman_activate;
	bench_register(r, &foreman);
	bench_register(r, &hand);
	bench_start(r);
	works.gather = r->gather;
	works.n = r->n;
	for (uint64_t i = 0; i < HANDS; i++)
		works.hands[i] = bench_ref(r, "hand", i);
	noh_actor first = bench_ref(r, "foreman", 1);

	bench_begin(r);
	bench_send(r, first, GO, NULL, 0);
	struct gathered all = bench_wait(r, HANDS);
	bench_end(r, HANDS * r->n);
	bench_same(r, "the sum of all work", all.sums[0], (int64_t)(HANDS * r->n));
}
