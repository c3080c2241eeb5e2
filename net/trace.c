/* net/trace.c - traces of requests: where they begin or come in, and when their replies leave.
 *
 * The rest of a span is the turn's business (sched/trace.h); both are pieces of one span in the worker's ring.
 */
#include "net/net.h"

#include <string.h>

static uint64_t now_ns(struct net *n)
{
	return n->server->door.now_ns(n->server->door.box);
}

/* The turn of one that nobody traces has come. */
static bool sampled(struct net *n, struct trace *t)
{
	if (n->traces.every == 0 || n->traces.until_next != 0)
		return false;
	n->traces.until_next = n->traces.every;
	trace_begin(t, &n->traces.spans->mine.seed);
	return true;
}

void net_trace_every(struct net *n, uint32_t requests)
{
	n->traces.every = n->traces.until_next = requests;
}

/* Its reply is what the client waits for: of one of several keys, that of all of them. Of too many at once some are
 * remembered without their answer. */
static void watch(struct net *n, const struct trace_tail *tail, uint32_t slot)
{
	const struct asked *s = &n->slots[slot];
	uint32_t whole = s->parent ? s->parent : slot;

	if (n->traces.count == TRACED_MOST)
		return;
	n->traces.list[n->traces.count++] = (struct traced){ tail->at, whole, n->slots[whole].gen, tail->received_ns, UINT64_MAX };
	n->slots[whole].traced = true;
}

const struct trace_tail *net_trace(struct net *n, const struct request *r, uint32_t slot)
{
	const struct trace_text *text = r->trace;
	struct trace_tail tail = { .received_ns = 0 };
	char *at = (char *)n->bytes + n->bytes_used;
	size_t room;

	if (text && trace_parse(text->parent.at, text->parent.len, &tail.at)) {
		tail.at.span = trace_fresh(&n->traces.spans->mine.seed);
		if (trace_state_ok(text->state.at, text->state.len))
			tail.state_len = text->state.len;
	} else if (!sampled(n, &tail.at)) {
		return NULL;
	}
	tail.received_ns = now_ns(n);
	room = (tail.state_len + 7) & ~UINT64_C(7);
	if (tail.state_len)
		memcpy(at, text->state.at, tail.state_len);
	memcpy(at + room, &tail, sizeof tail);
	n->bytes_used += (uint32_t)(room + sizeof tail);
	if (tail.at.flags & TRACE_SAMPLED)
		watch(n, &tail, slot);
	return (const struct trace_tail *)(const void *)(at + room);
}

void net_trace_replied(struct net *n, uint32_t slot, uint64_t due)
{
	for (uint32_t i = 0; i < n->traces.count; i++)
		if (n->traces.list[i].slot == slot && n->traces.list[i].slot_gen == n->slots[slot].gen)
			n->traces.list[i].due = due;
}

/* Behind a reply that is not on disk yet a later one waits as well; by then both are. */
void net_trace_left(struct net *n)
{
	uint64_t durable = load_acquire(n->server->door.durable), now = now_ns(n);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n->traces.count; i++) {
		const struct traced *t = &n->traces.list[i];
		struct span s = { .hi = t->at.hi, .lo = t->at.lo, .span = t->at.span, .parent = t->at.parent,
				  .worker = (uint16_t)n->worker };

		if (t->due == UINT64_MAX && n->slots[t->slot].gen != t->slot_gen)
			continue;                /* its client has gone */
		if (t->due > durable) {
			n->traces.list[kept++] = *t;
			continue;
		}
		s.at_ns[SPAN_RECEIVED] = t->received_ns;
		s.at_ns[SPAN_ANSWERED] = now;
		s.at_ns[SPAN_ON_DISK] = t->due ? now : 0;        /* unless its own worker has seen that before */
		span_put(n->traces.spans, &s);
	}
	n->traces.count = kept;
}
