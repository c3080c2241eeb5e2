/* box/wake.c - after a start: whoever has messages or timers from before is woken, and whose turn it was when the process ended, by
 * the keeper, in the background. */
#include "box/box.h"

#include "sched/notice.h"
#include "sched/supervise.h"

#include <string.h>

static int arm_timer(void *arg, uint64_t due_ms, const char *address, size_t len)
{
	struct sched *s = arg;
	char text[256];

	if (len >= sizeof text)
		return 0;
	memcpy(text, address, len);
	text[len] = 0;
	due_ms = due_ms > s->wall_offset_ms ? due_ms - s->wall_offset_ms : 0;
	(void)clock_arm_dormant(&s->workers[len % s->worker_count], text, len, due_ms);
	return load_relaxed(&s->stopping) != 0;
}

static int wake_receiver(void *arg, const char *address, size_t len)
{
	struct sched *s = arg;
	struct port *p = sched_port(s);
	struct sysmsg *n;
	struct cell *c;
	uint32_t gen;
	int stop = load_relaxed(&s->stopping) != 0, rc = NOH_ESTOPPED;

	if (!stop)
		rc = sched_resolve(p, address, len, &c, &gen);
	if (rc == NOH_OK && (n = node_take(p, SYS_WAKE)) != NULL) {
		sched_sys(p, c, gen, n);
		rc = NOH_ESTOPPED;               /* done */
	}
	sched_port_done(p);
	if (rc == NOH_OK || rc == NOH_ENOMEM)    /* over the budget: the clock tries again */
		(void)arm_timer(arg, s->wall_offset_ms, address, len);
	return stop;
}

static int wake_from_tail(void *arg, uint64_t due_ms, const char *address, size_t len)
{
	return due_ms ? arm_timer(arg, due_ms, address, len) : wake_receiver(arg, address, len);
}

#define TIMERS_AHEAD_MS 60000

/* Timers of actors that were dormant when the box started: a window at a time, so that start does not
 * depend on how many there are. Those that go dormant later leave their own hints. */
void box_arm_timers(noh_box *box)
{
	struct box_disk *d = &box->disk;
	struct sched *s = &box->sched;
	uint64_t now = sched_clock_wall_ms(s);

	if (d->timers_to_ms > now + TIMERS_AHEAD_MS / 2)
		return;
	(void)db_timers(d->db, d->timers_to_ms, now + TIMERS_AHEAD_MS, arm_timer, s);
	d->timers_to_ms = now + TIMERS_AHEAD_MS;
}

/* A hook that has ended the process so often is not run again because of that: the box would not stay up. */
static bool ends_us_again(const struct crash_found *f)
{
	return f->kind == UINT32_MAX && f->times >= CRASHES_ENOUGH;
}

/* Its activation is its restart, and says so (supervise_admits). Of the others there is nothing to restart. */
static bool is_restarted(struct sched *s, const struct crash_found *f)
{
	const char *colon = strchr(f->address, ':');
	struct type *t = colon ? sched_find_type(s, f->address, (size_t)(colon - f->address)) : NULL;

	return f->entry && t && t->durable && t->supervised && t->sup.restart != NOH_TEMPORARY;
}

static void wake_crashed(noh_box *box)
{
	struct crashes *c = &box->disk.crashes;

	for (uint32_t i = 0; i < c->found_count; i++) {
		struct crash_found *f = &c->found[i];

		if (!is_restarted(&box->sched, f)) {
			if (!f->entry || !swap_acq_rel(&f->entry->blamed, 1))
				notice_of(&box->sched, f->address, NOTICE_FAILED,
					  &(noh_emit_options){ .from = "active", .to = "not active", .reason = SUPERVISE_CRASHED });
		} else if (!ends_us_again(f)) {
			(void)wake_receiver(&box->sched, f->address, f->address_len);
		}
	}
}

void box_wake_left_behind(noh_box *box)
{
	struct box_disk *d = &box->disk;

	d->woken = true;
	wake_crashed(box);
	if (d->tail) {                   /* nobody but the keeper takes it away */
		tail_wakes(d->tail, wake_from_tail, &box->sched);
		d->tail = NULL;
		keeper_ask(&d->keeper);
	}
	(void)db_receivers(d->db, NULL, 0, d->boot_tag, wake_receiver, &box->sched);
}
