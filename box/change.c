/* box/change.c - what of a box can change while it runs, and whether its workers are alive.
 *
 * Each of these is one word that workers load where they need it: a change costs them nothing, and needs no
 * moment at which all of them stand still.
 */
#include "box/box.h"

#include "core/error.h"

#include <stdio.h>
#include <string.h>

/* ── numbers ── */

void box_tell_number(noh_box *box, const char *what, uint64_t from, uint64_t to)
{
	char before[24], after[24];

	if (from == to || load_relaxed(&box->phase) != BOX_RUNNING)
		return;
	snprintf(before, sizeof before, "%llu", (unsigned long long)from);
	snprintf(after, sizeof after, "%llu", (unsigned long long)to);
	(void)noh_tell_config(box, what, before, after);
}

int noh_set_memory_budget(noh_box *box, uint64_t bytes)
{
	struct sched *s = &box->sched;

	box_tell_number(box, "box.memory", load_relaxed(&s->memory_budget), bytes);
	store_relaxed(&s->memory_budget, bytes);
	if (box->disk.store)
		box_disk_share(box);
	if (load_relaxed(&box->phase) != BOX_RUNNING)
		return NOH_OK;
	if (bytes) {
		store_relaxed(&s->budget_ms, 0);
		sched_weigh(s, clock_now_ns(&s->clock) / 1000000u);
	} else {
		store_relaxed(&s->actor_budget, NO_BUDGET);   /* whoever still goes by the old one finds room */
	}
	sched_wake_all(s);                       /* who is too many goes now, not with the next message */
	return NOH_OK;
}

int noh_set_slow_turn(noh_box *box, uint32_t ms)
{
	ms = ms ? ms : BOX_SLOW_TURN_MS;
	box_tell_number(box, "box.slow_turn", load_relaxed(&box->sched.slow_turn_ms), ms);
	store_relaxed(&box->sched.slow_turn_ms, ms);
	return NOH_OK;
}

/* ── idle times ── */

uint32_t box_idle_ds(uint32_t idle_timeout_ms)
{
	uint32_t idle = idle_timeout_ms ? idle_timeout_ms : 300000;

	return idle == NOH_NEVER ? UINT32_MAX : (idle + 99) / 100 + 1;
}

/* Chunks know when a sweep would find somebody by the times as they were: all are looked at once. */
static void sweep_anew(struct sched *s)
{
	uint32_t chunks = load_relaxed(&s->cells.shared.fresh) / CHUNK_CELLS + 1;

	for (uint32_t i = 0; i < chunks; i++)
		store_relaxed(&s->chunk_due_ds[i], 0);
	store_seq_cst(&s->next_sweep_ds, 0);
	sched_wake_all(s);
}

static void show_idle(uint32_t ds, char *out, size_t size)
{
	if (ds == UINT32_MAX)
		snprintf(out, size, "never");
	else
		snprintf(out, size, "%llu ms", (unsigned long long)(ds - 1) * 100);
}

static void tell_idle(noh_box *box, const struct type *t, uint32_t ds)
{
	char what[128], before[24], after[24];

	if (load_relaxed(&box->phase) != BOX_RUNNING)
		return;
	snprintf(what, sizeof what, "idle timeout of %.64s", t->name);
	show_idle(load_relaxed(&t->idle_ds), before, sizeof before);
	show_idle(ds, after, sizeof after);
	(void)noh_tell_config(box, what, before, after);
}

int noh_set_idle_timeout(noh_box *box, const char *type, uint32_t idle_timeout_ms)
{
	struct sched *s = &box->sched;
	struct type *t = sched_find_type(s, type, strlen(type));
	uint32_t least = UINT32_MAX;

	if (!t)
		return error_set(NOH_ENOTYPE, "there is no type %.64s", type);
	if (load_relaxed(&t->idle_ds) != box_idle_ds(idle_timeout_ms))
		tell_idle(box, t, box_idle_ds(idle_timeout_ms));
	store_relaxed(&t->idle_ds, box_idle_ds(idle_timeout_ms));
	for (uint32_t i = 0; i < s->type_count; i++)
		if (load_relaxed(&s->types[i]->idle_ds) < least)
			least = load_relaxed(&s->types[i]->idle_ds);
	store_relaxed(&s->min_idle_ds, least);
	if (load_relaxed(&box->phase) == BOX_RUNNING)
		sweep_anew(s);
	return NOH_OK;
}

/* ── limits ── */

static void show_rate(atomic_u64 *step_ns, atomic_u64 *span_ns, double *per_second, uint32_t *burst)
{
	uint64_t step = load_relaxed(step_ns);

	*per_second = step ? 1e9 / (double)step : 0;
	*burst = step ? (uint32_t)(load_relaxed(span_ns) / step) : 0;
}

int noh_get_limits(noh_box *box, const char *type, noh_limits *limits)
{
	struct type *t = sched_find_type(&box->sched, type, strlen(type));

	memset(limits, 0, sizeof *limits);
	if (!t)
		return error_set(NOH_ENOTYPE, "there is no type %.64s", type);
	show_rate(&t->limit.set.step_ns, &t->limit.set.span_ns, &limits->per_second, &limits->burst);
	show_rate(&t->limit.set.actor_step_ns, &t->limit.set.actor_span_ns, &limits->actor_per_second,
		  &limits->actor_burst);
	limits->turns = load_relaxed(&t->limit.set.turns);
	limits->over = load_relaxed(&t->limits) & LIMIT_REFUSE ? NOH_OVER_REFUSE : NOH_OVER_WAIT;
	return NOH_OK;
}

/* "none"; or, of those there are, in the words of the settings. */
static void show_limits(noh_box *box, const struct type *t, char *out, size_t size)
{
	noh_limits l;
	size_t n;

	(void)noh_get_limits(box, t->name, &l);
	snprintf(out, size, "none");
	n = 0;
	if (l.per_second > 0)
		n += (size_t)snprintf(out + n, size - n, "rate %.4g/%u ", l.per_second, l.burst);
	if (l.actor_per_second > 0 && n < size)
		n += (size_t)snprintf(out + n, size - n, "actor_rate %.4g/%u ", l.actor_per_second, l.actor_burst);
	if (l.turns && n < size)
		n += (size_t)snprintf(out + n, size - n, "turns %u ", l.turns);
	if (n && n < size)
		snprintf(out + n, size - n, "over %s", l.over == NOH_OVER_REFUSE ? "refuse" : "wait");
}

int noh_set_limits(noh_box *box, const char *type, const noh_limits *limits)
{
	static const noh_limits none;
	struct sched *s = &box->sched;
	struct type *t = sched_find_type(s, type, strlen(type));
	char what[128], before[64], after[64];
	int rc;

	if (!t)
		return error_set(NOH_ENOTYPE, "there is no type %.64s", type);
	limits = limits ? limits : &none;
	rc = limit_check(t->name, limits);
	if (rc != NOH_OK)
		return rc;
	show_limits(box, t, before, sizeof before);
	rc = limit_set(s, t, limits);
	show_limits(box, t, after, sizeof after);
	if (rc == NOH_OK && strcmp(before, after) != 0 && load_relaxed(&box->phase) == BOX_RUNNING) {
		snprintf(what, sizeof what, "limits of %.64s", t->name);
		(void)noh_tell_config(box, what, before, after);
	}
	return rc;
}

/* ── the pulse ── */

static struct pulse *first_pulse(struct sched *s, uint64_t now)
{
	struct pulse *p = mem_alloc(s->worker_count * sizeof *p);

	for (uint32_t i = 0; p && i < s->worker_count; i++)
		p[i] = (struct pulse){ load_relaxed(&s->workers[i].shown.counts.passes), now };
	return p;
}

int noh_pulse(noh_box *box, uint64_t *silent_ms, unsigned *worker)
{
	struct sched *s = &box->sched;
	uint64_t now = clock_now_ns(&s->clock), oldest = now;

	*silent_ms = 0;
	if (load_relaxed(&box->phase) != BOX_RUNNING)
		return error_set(NOH_ESTOPPED, "the box is not running");
	if (!box->pulse)
		box->pulse = first_pulse(s, now);
	if (!box->pulse)
		return error_set(NOH_ENOMEM, "no memory to watch %u workers", s->worker_count);
	for (uint32_t i = 0; i < s->worker_count; i++) {
		uint64_t passes = load_relaxed(&s->workers[i].shown.counts.passes);
		struct pulse *p = &box->pulse[i];

		if (passes != p->passes)
			*p = (struct pulse){ passes, now };
		if (p->seen_ns < oldest) {
			oldest = p->seen_ns;
			if (worker)
				*worker = i;
		}
	}
	*silent_ms = (now - oldest) / 1000000u;
	sched_wake_all(s);
	return NOH_OK;
}
