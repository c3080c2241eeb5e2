/* tests/sim/box/scanner.c - scans while everything else goes on, over crashes, and after each of them.
 *
 * Whether an actor exists follows from its records alone: one that does not erase it makes it exist. A
 * scan goes on for many steps, with others in between also inside its calls, and its cursor outlives the
 * box. Whoever existed all the time must be told, whoever never did must not, and nobody before the
 * epoch that brings it to disk is named (P5). */
#include "tests/sim/box/sim.h"

#include "box/api.h"
#include "sched/durable.h"

#include <inttypes.h>
#include <string.h>

int __wrap_db_rows(struct db *db, const char *prefix, size_t prefix_len, const char *after, size_t after_len,
		   uint32_t most, struct names *out, bool *end);
int __real_db_rows(struct db *db, const char *prefix, size_t prefix_len, const char *after, size_t after_len,
		   uint32_t most, struct names *out, bool *end);
bool __wrap_overlay_window(struct overlay *o, uint64_t from, uint64_t last, struct names *out);
bool __real_overlay_window(struct overlay *o, uint64_t from, uint64_t last, struct names *out);
int __wrap_db_mark_stored(struct db *db, struct names *n, uint32_t first);
int __real_db_mark_stored(struct db *db, struct names *n, uint32_t first);

/* Others get in before and after memory's second place is looked at, and between a snapshot and what is
 * made of it. */
bool __wrap_overlay_window(struct overlay *o, uint64_t from, uint64_t last, struct names *out)
{
	bool ok;

	if (overlay_near(o, from))
		steps_nest();
	ok = __real_overlay_window(o, from, last, out);
	if (overlay_near(o, from))
		steps_nest();
	return ok;
}

int __wrap_db_mark_stored(struct db *db, struct names *n, uint32_t first)
{
	steps_nest();
	return __real_db_mark_stored(db, n, first);
}

int __wrap_db_rows(struct db *db, const char *prefix, size_t prefix_len, const char *after, size_t after_len,
		   uint32_t most, struct names *out, bool *end)
{
	int rc = __real_db_rows(db, prefix, prefix_len, after, after_len, most, out, end);

	for (int i = 0; i < 4; i++)
		steps_nest();
	return rc;
}

static unsigned actor_at(const char *address)
{
	unsigned a = 0;

	while (a < ACTORS && strcmp(address, sim_name(a)) != 0)
		a++;
	if (a == ACTORS)
		sim_violation("a scan tells of %s, whom nobody knows", address);
	return a;
}

void scanner_recorded(const char *address, bool erased, uint64_t due)
{
	unsigned a = actor_at(address);

	if (!sim->scan.there[a] || erased)
		sim->scan.born_due[a] = due;
	sim->scan.there[a] = !erased;
	if (erased)
		sim->scan.steady[a] = false;
	else
		sim->scan.ever[a] = true;
}

/* What there is after a crash; a scan that was under way goes on. */
void scanner_recovered(const bool *there)
{
	for (unsigned a = 0; a < ACTORS; a++) {
		sim->scan.there[a] = there[a];
		sim->scan.born_due[a] = 0;
		if (there[a])
			sim->scan.ever[a] = true;
		else
			sim->scan.steady[a] = false;
	}
}

static void each(void *arg, const noh_scanned *s)
{
	unsigned a = family_is(s->address) || limited_is(s->address) ? VOL_FIRST : actor_at(s->address);

	(void)arg;
	if (!is_durable(a))
		return;
	if (!sim->scan.ever[a])
		sim_violation("a scan tells of %s, which did not exist since it began", s->address);
	sim->scan.told[a]++;
	sim->scan.now[a] = true;
	sim_note(a);
}

static void begin(void)
{
	memset(sim->scan.told, 0, sizeof sim->scan.told);
	memcpy(sim->scan.steady, sim->scan.there, sizeof sim->scan.steady);
	memcpy(sim->scan.ever, sim->scan.there, sizeof sim->scan.ever);
	sim->scan.under_way = true;
	sim->scan.cursor = 0;
}

static void finish(void)
{
	for (unsigned a = 0; a < VOL_FIRST; a++)
		if (sim->scan.steady[a] && !sim->scan.told[a])
			sim_violation("a scan does not tell of %s, which existed all the time", sim_name(a));
	sim->scan.under_way = false;
	seen->scans++;
}

/* One call. */
static void go_on(void)
{
	uint32_t limit = 1 + sim_below(4);
	uint64_t due = 0, durable;
	int rc;

	memset(sim->scan.now, 0, sizeof sim->scan.now);
	rc = api_scan(sim->box, NULL, &sim->scan.cursor, limit, each, NULL, &due);
	durable = load_acquire(&sim->box->sched.durable);
	if (rc != NOH_OK && !disk_sim_is_off(sim->disk) && !load_relaxed(&sim->box->disk.failed))
		sim_violation("a scan fails: %s", noh_why());
	if (rc != NOH_OK)
		return;
	for (unsigned a = 0; a < VOL_FIRST; a++)
		if (sim->scan.now[a] && sim->scan.there[a] && sim->scan.born_due[a] > due &&
		    sim->scan.born_due[a] > durable)
			sim_violation("a scan tells of %s by epoch %" PRIu64 ", it is on disk with %" PRIu64,
				      sim_name(a), due, sim->scan.born_due[a]);
	if (sim->scan.cursor == 0)
		finish();
}

/* Between two steps the numbers are exact. */
static void check_counts(void)
{
	struct sched *s = &sim->box->sched;

	for (uint32_t i = 0; load_acquire(&sim->box->disk.counted) && i < s->type_count; i++) {
		const struct type *t = s->types[i];
		uint64_t there = 0;
		noh_type_stats stats;

		for (unsigned a = 0; a < VOL_FIRST; a++)
			there += sim->scan.there[a] && strncmp(sim_name(a), t->name, t->name_len) == 0 &&
				 sim_name(a)[t->name_len] == ':';
		if (!t->durable || family_is_type(t->name) || noh_get_type_stats(sim->box, t->name, &stats) != NOH_OK)
			continue;
		if (stats.existing != there)
			sim_violation("%" PRIu64 " actors of type %s exist, counted are %" PRIu64, there, t->name,
				      stats.existing);
		seen->counted++;
	}
}

void scanner_act(void)
{
	bool midst = false;

	for (unsigned i = 0; i < sim->workers; i++)
		midst |= sim->in_worker[i];
	if (!midst)
		check_counts();
	if (!sim->scan.under_way)
		begin();
	go_on();
}

/* Nothing has run yet: exactly those that the store has, and each once unless it is in the journal's
 * tail. */
void scanner_started(void)
{
	uint64_t cursor = sim->scan.cursor;
	struct sim_scan was = sim->scan;

	begin();
	while (sim->scan.under_way)
		go_on();
	for (unsigned a = 0; a < VOL_FIRST; a++)
		if ((sim->scan.told[a] > 0) != sim->scan.there[a])
			sim_violation("after a crash a scan tells of %s %u times, which does%s exist", sim_name(a),
				      sim->scan.told[a], sim->scan.there[a] ? "" : " not");
	sim->scan = was;
	sim->scan.cursor = cursor;
}
