/* box/wake.c - after a start: whoever has messages or timers from before is woken, by the keeper, in the background. */
#include "box/box.h"

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

void box_wake_left_behind(noh_box *box)
{
	struct box_disk *d = &box->disk;

	d->woken = true;
	if (d->tail) {                   /* nobody but the keeper takes it away */
		tail_wakes(d->tail, wake_from_tail, &box->sched);
		d->tail = NULL;
		keeper_ask(&d->keeper);
	}
	(void)db_receivers(d->db, NULL, 0, d->boot_tag, wake_receiver, &box->sched);
}
