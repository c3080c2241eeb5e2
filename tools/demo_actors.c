/* tools/demo_actors.c - what the actors of the demonstration do with a message. */
#include "tools/demo_actors.h"

#include "bench/bench.h"
#include "tools/cli.h"

enum { RUN = 64 };                 /* messages sent in one turn */

struct counter { int64_t sum; };
struct driver { uint64_t random; int64_t sent; };
struct visitor { uint64_t at, to; };
struct alarm { uint64_t due_ns; };

static int counter_message(noh_turn *turn, const noh_msg *msg)
{
	const struct counter *seen = noh_look(turn);

	if (msg->kind == COUNTER_TELL)
		return gather_add(turn, *(const noh_actor *)msg->body, seen->sum);
	if (msg->kind == COUNTER_VALUE)
		return noh_reply(turn, &seen->sum, sizeof seen->sum);
	struct counter *me = noh_state(turn);

	me->sum += *(const int64_t *)msg->body;
	return NOH_OK;
}

/* A reference goes stale when its counter went to storage; the address works always. */
static int add_one(noh_turn *turn, const struct demo_world *world, uint64_t id)
{
	int64_t one = 1;
	int rc = noh_tell(turn, world->counters[id], COUNTER_ADD, &one, sizeof one);

	if (rc != NOH_EGONE)
		return rc;
	char address[64];

	bench_address(address, "counter", id);
	return noh_tell_to(turn, address, COUNTER_ADD, &one, sizeof one);
}

static int driver_message(noh_turn *turn, const noh_msg *msg)
{
	struct demo_world *world = noh_user(turn);
	struct driver *me = noh_state(turn);
	noh_box *box = noh_turn_box(turn);
	uint64_t to[RUN];

	(void)msg;
	if (atomic_load_explicit(&world->drivers_stop, memory_order_relaxed))
		return gather_add(turn, world->gather, me->sent);
	if (me->random == 0)
		me->random = bench_seed(bench_id(turn));
	for (unsigned i = 0; i < RUN; i++) {
		to[i] = bench_below(&me->random, world->actors);
		__builtin_prefetch(&world->counters[to[i]]);
	}
	for (unsigned i = 0; i < RUN; i++)
		noh_hint(box, world->counters[to[i]]);
	for (unsigned i = 0; i < RUN; i++) {
		int rc = add_one(turn, world, to[i]);
		if (rc != NOH_OK)
			return rc;
	}
	me->sent += RUN;
	return noh_tell(turn, noh_self(turn), DRIVER_GO, NULL, 0);
}

static int visit_one(noh_turn *turn, const struct demo_world *world, uint32_t kind, uint64_t id)
{
	int64_t one = 1;
	char address[64];

	bench_address(address, kind == VISIT_ALARMS ? "alarm" : "counter", id);
	if (kind == VISIT_ADD)
		return noh_tell_to(turn, address, COUNTER_ADD, &one, sizeof one);
	if (kind == VISIT_TELL)
		return noh_tell_to(turn, address, COUNTER_TELL, &world->gather,
				   sizeof world->gather);
	uint64_t delay_ms = 100 + id * 7919 % world->alarm_span_ms;

	return noh_tell_to(turn, address, ALARM_SET, &delay_ms, sizeof delay_ms);
}

/* A visit begins with a range and goes on, a run a turn, until it is through. */
static int visitor_message(noh_turn *turn, const noh_msg *msg)
{
	const struct demo_world *world = noh_user(turn);
	struct visitor *me = noh_state(turn);

	if (msg->len == sizeof(struct demo_visit)) {
		const struct demo_visit *visit = msg->body;
		me->at = visit->from;
		me->to = visit->to;
	}
	for (unsigned i = 0; i < RUN && me->at < me->to; i++, me->at++) {
		int rc = visit_one(turn, world, msg->kind, me->at);
		if (rc != NOH_OK)
			return rc;
	}
	if (me->at < me->to)
		return noh_tell(turn, noh_self(turn), msg->kind, NULL, 0);
	return msg->kind == VISIT_ADD ? gather_add(turn, world->gather, 1) : NOH_OK;
}

static int alarm_message(noh_turn *turn, const noh_msg *msg)
{
	struct demo_world *world = noh_user(turn);
	struct alarm *me = noh_state(turn);
	uint64_t now = cli_now_ns();

	if (msg->kind == ALARM_SET) {
		uint64_t delay_ms = *(const uint64_t *)msg->body;

		me->due_ns = now + delay_ms * 1000000u;
		return noh_schedule_once(turn, ALARM_RING, delay_ms);
	}
	if (now < me->due_ns)
		atomic_fetch_add(&world->early, 1);
	uint64_t late = now > me->due_ns ? now - me->due_ns : 0;
	uint64_t latest = atomic_load_explicit(&world->latest_ns, memory_order_relaxed);

	while (late > latest && !atomic_compare_exchange_weak(&world->latest_ns, &latest, late))
		continue;
	return gather_add(turn, world->gather, 1);
}

int demo_register(noh_box *box, struct demo_world *world, uint32_t idle_ms)
{
	const noh_type types[] = {
		gather_type(),
		{ .name = "counter", .state_size = sizeof(struct counter), .full_mode = NOH_BLOCK,
		  .idle_timeout_ms = idle_ms, .on_message = counter_message, .user = world },
		{ .name = "driver", .state_size = sizeof(struct driver), .full_mode = NOH_BLOCK,
		  .on_message = driver_message, .user = world },
		{ .name = "visitor", .state_size = sizeof(struct visitor), .full_mode = NOH_BLOCK,
		  .on_message = visitor_message, .user = world },
		{ .name = "alarm", .state_size = sizeof(struct alarm), .full_mode = NOH_BLOCK,
		  .on_message = alarm_message, .user = world },
	};
	int rc = NOH_OK;

	for (unsigned i = 0; rc == NOH_OK && i < sizeof types / sizeof types[0]; i++)
		rc = noh_register(box, &types[i]);
	return rc;
}
