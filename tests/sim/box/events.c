/* tests/sim/box/events.c - the event log against the model: every version tells one event, in its own turn.
 *
 * So the events of an actor are its versions, one after the other, and they tell exactly as much as its state does: after
 * a crash the last event is of the version that is stored. A reader with a cursor goes on through all crashes: it
 * never misses one, sees none twice, and sees none that is lost afterwards.
 */
#include "tests/sim/box/sim.h"

#include <inttypes.h>
#include <string.h>

void events_tell(noh_turn *t, uint32_t v)
{
	int rc = noh_emit(t, &(noh_emit_options){ .kind = "version", .revision = v, .data = &v, .len = sizeof v });

	if (rc != NOH_OK)
		sim_violation("%s cannot tell of its version %u: %s", noh_address(t), v, noh_why());
}

struct follow {
	uint64_t  seq;
	uint32_t *last;                  /* version of each actor */
	bool      live;                  /* as it happens; else after a crash */
};

static unsigned actor_at(const char *address)
{
	for (unsigned a = 0; a < ACTORS; a++)
		if (strcmp(address, sim_name(a)) == 0)
			return a;
	sim_violation("an event is told of %s, who is nobody", address);
}

static void forget(uint32_t *last)
{
	for (unsigned a = 0; a < ACTORS; a++)
		last[a] = EVENT_UNKNOWN;
}

static int follow(void *user, const noh_event *e)
{
	struct follow *f = user;
	uint32_t v = (uint32_t)e->revision;

	seen->events++;
	if (f->seq && e->seq != f->seq + 1)
		sim_violation("event %" PRIu64 " comes after event %" PRIu64, e->seq, f->seq);
	if (!f->seq && e->seq > 1) {             /* who begins with the oldest does not know what was before it */
		if (!sim->plan.events_bytes)
			sim_violation("the oldest event is %" PRIu64 ", and none should have gone", e->seq);
		forget(f->last);
	}
	f->seq = e->seq;
	if (e->by_box)
		return 0;
	unsigned a = actor_at(e->actor);

	if (v == 0 || v > sim->versions || e->len != sizeof v || memcmp(e->data, &v, sizeof v) != 0)
		sim_violation("event %" PRIu64 " of %s is one that nobody told", e->seq, e->actor);
	if (sim->version[v].failed)
		sim_violation("event %" PRIu64 " tells of version %u of %s, whose turn was undone", e->seq, v, e->actor);
	if (sim->version[v].actor != a || (f->last[a] != EVENT_UNKNOWN && sim->version[v].parent != f->last[a]))
		sim_violation("event %" PRIu64 " tells of version %u of %s, and the event before of %u", e->seq, v, e->actor,
			      f->last[a]);
	f->last[a] = v;
	if (f->live)
		model_told(v, "an event");
	return 0;
}

static void read_all(noh_box *box, uint64_t *cursor, struct follow *f, uint32_t calls)
{
	int rc = NOH_OK;

	while (rc == NOH_OK && calls--)
		rc = noh_events_read(box, cursor, NULL, f->live ? 1 + sim_below(40) : 1000, follow, f);
	if (rc == NOH_ETOOOLD && sim->plan.events_bytes && f->live) {
		seen->events_gone++;
		forget(f->last);
		*cursor = 0;
	} else if (rc == NOH_EDISK && f->live && (load_relaxed(&box->disk.failed) || disk_sim_is_off(sim->disk))) {
		sim_say("events cannot be read: %s", noh_why());
	} else if (rc != NOH_OK && rc != NOH_END) {
		sim_violation("events cannot be read: %d, %s", rc, noh_why());
	}
}

/* A reader who remembers where he was. */
void events_act(void)
{
	struct follow f = { .seq = sim->event_cursor, .last = sim->event_last, .live = true };

	read_all(sim->box, &sim->event_cursor, &f, 1 + sim_below(3));
}

/* Of whom nothing is stored was erased, or never was; of several ends the events know which. */
static void settle(unsigned a, bool there, uint32_t last)
{
	if (there ? last != sim->found[a] : last && !sim->version[last].erased)
		sim_violation("%s has version %u after a crash, and its last event is of %u", sim_name(a), sim->found[a], last);
	if (!there)
		sim->found[a] = last;
}

/* The last event of an actor is of the version it has. */
void events_recovered(noh_box *box, const bool *there)
{
	uint32_t last[ACTORS] = { 0 };
	struct follow f = { .last = last };
	uint64_t cursor = 0, oldest, newest;

	(void)noh_events_bounds(box, &oldest, &newest);
	if (newest < sim->event_cursor)
		sim_violation("event %" PRIu64 " was read, and %" PRIu64 " is the last one after a crash", sim->event_cursor,
			      newest);
	if (oldest > 1 && !sim->plan.events_bytes)
		sim_violation("the oldest event is %" PRIu64 ", and none should have gone", oldest);
	if (oldest > 1)
		forget(last);
	read_all(box, &cursor, &f, UINT32_MAX);
	if (f.seq ? f.seq != newest : newest && oldest <= newest)
		sim_violation("the last event is %" PRIu64 ", and %" PRIu64 " is the last that can be read", newest, f.seq);
	for (unsigned a = 0; a < ACTORS; a++)
		if (is_durable(a) && last[a] != EVENT_UNKNOWN)
			settle(a, there[a], last[a]);
		else if (is_durable(a) && !there[a])
			sim->event_last[a] = EVENT_UNKNOWN;      /* which of its ends it was, nobody knows */
}
