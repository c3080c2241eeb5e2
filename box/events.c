/* box/events.c - noh.h: the event log, read by its numbers.
 *
 * The newest events are in memory (persist/eventlog.h). An event has its number from its place in the log, so a cursor is
 * good for any of its parts.
 */
#include "box/api.h"
#include "sched/notice.h"

#include <string.h>

#define EVENTS_BYTES ((uint64_t)256 << 20)
#define EVENTS_MEMORY ((uint64_t)16 << 20)       /* of a box without a directory */
#define EVENTS_MS ((uint64_t)7 * 24 * 3600 * 1000)
#define EVENTS_LIMIT 100
#define EVENTS_LOOK 20000                        /* events one call looks at      */
#define EVENTS_LAST_LOOK 65536
#define EVENTS_LAST_MOST 1000

/* ── open, change, end ── */

/* One at a time: notice.c sees to it. */
static void keep(void *arg, const void *event, size_t len)
{
	noh_box *box = arg;

	if (!eventlog_append(&box->events, event, len))
		add_relaxed(&box->sched.events.lost, 1);
}

static void show(void *arg)
{
	noh_box *box = arg;
	uint64_t now = clock_wall_ms(&box->sched.clock), age = load_relaxed(&box->events_ms);

	eventlog_show(&box->events, load_relaxed(&box->events.shown.appended));
	(void)eventlog_trim(&box->events, load_relaxed(&box->events_bytes), now > age ? now - age : 0);
}

static void more_for_sockets(void *arg)
{
	noh_box *box = arg;

	if (load_acquire(&box->phase) == BOX_RUNNING)
		sched_wake_all(&box->sched);
}

int noh_set_events(noh_box *box, uint64_t bytes, uint64_t ms, int detail)
{
	if (detail < NOH_EVENTS_DEFAULT || detail > NOH_EVENTS_NONE)
		return error_set(NOH_EINVAL, "events_detail %d is none of the three", detail);
	store_relaxed(&box->events_bytes, bytes ? bytes : box->disk.db ? EVENTS_BYTES : EVENTS_MEMORY);
	store_relaxed(&box->events_ms, ms ? ms : EVENTS_MS);
	store_relaxed(&box->sched.events.detail, (uint32_t)detail);
	return NOH_OK;
}

int box_events_open(noh_box *box, const noh_options *o)
{
	struct sched_events *e = &box->sched.events;

	eventlog_open(&box->events, 0);
	box->events.fixed.on_more = more_for_sockets;
	box->events.fixed.arg = box;
	e->arg = box;
	e->keep = keep;
	e->shown = show;
	return noh_set_events(box, o->events_bytes, o->events_ms, o->events_detail);
}

void box_events_stop(noh_box *box)
{
	eventlog_stop(&box->events);
}

void box_events_close(noh_box *box)
{
	if (!box->sched.events.keep)
		return;
	notice_close(&box->sched);
	eventlog_close(&box->events);
}

/* ── reading ── */

struct reading {
	const noh_events_filter *filter;
	noh_event_fn *each;
	void         *user;
	uint64_t      cursor;
	uint32_t      limit, told, looked;
	bool          damaged;
};

enum { GO_ON, ENOUGH };

static int read_one(void *arg, uint64_t seq, const void *bytes, size_t len)
{
	struct reading *r = arg;
	noh_event e;

	if (!event_open(bytes, len, &e)) {
		r->damaged = true;
		return ENOUGH;
	}
	e.seq = seq;
	r->cursor = seq;
	r->looked++;
	if (event_matches(&e, r->filter)) {
		r->told++;
		if (r->each(r->user, &e) != 0)
			return ENOUGH;
	}
	return r->told == r->limit || r->looked == EVENTS_LOOK ? ENOUGH : GO_ON;
}

static int too_old(noh_box *box, uint64_t cursor)
{
	return error_set(NOH_ETOOOLD, "events after %llu are gone: the oldest there is has the number %llu; go on from %llu, and "
			 "what was in between is missing", (unsigned long long)cursor,
			 (unsigned long long)eventlog_oldest(&box->events),
			 (unsigned long long)eventlog_oldest(&box->events) - 1);
}

static int check_read(noh_box *box, uint64_t cursor, noh_event_fn *each)
{
	if (!each)
		return error_set(NOH_EINVAL, "noh_events_read: nobody to tell them");
	if (cursor > eventlog_newest(&box->events))
		return error_set(NOH_EINVAL, "cursor %llu: the newest event has the number %llu; is it of another data "
				 "directory?", (unsigned long long)cursor,
				 (unsigned long long)eventlog_newest(&box->events));
	return NOH_OK;
}

int noh_events_read(noh_box *box, uint64_t *cursor, const noh_events_filter *filter, uint32_t limit, noh_event_fn *each,
		    void *user)
{
	struct reading r = { .filter = filter, .each = each, .user = user, .limit = limit ? limit : EVENTS_LIMIT };
	int rc = cursor ? check_read(box, *cursor, each) : error_set(NOH_EINVAL, "noh_events_read: no cursor");

	if (rc != NOH_OK)
		return rc;
	r.cursor = *cursor ? *cursor : eventlog_oldest(&box->events) - 1;
	if (eventlog_read(&box->events, r.cursor + 1, read_one, &r) == NOH_ETOOOLD)
		return too_old(box, r.cursor);
	*cursor = r.cursor;
	return r.cursor < eventlog_newest(&box->events) ? NOH_OK : NOH_END;
}

int noh_events_bounds(noh_box *box, uint64_t *oldest, uint64_t *newest)
{
	uint64_t last = eventlog_newest(&box->events);

	if (newest)
		*newest = last;
	if (oldest)
		*oldest = last ? eventlog_oldest(&box->events) : 0;
	return NOH_OK;
}

int noh_events_wait(noh_box *box, uint64_t cursor, uint32_t timeout_ms)
{
	int rc = api_may_block("noh_events_wait");

	return rc == NOH_OK ? eventlog_wait(&box->events, cursor, (uint64_t)timeout_ms * 1000000u) : rc;
}

/* ── the last of one actor ── */

struct last {
	const char *address;
	uint64_t    seqs[EVENTS_LAST_MOST];      /* the last n, in a circle */
	uint32_t    n;
	uint64_t    count;
};

static int note_last(void *arg, uint64_t seq, const void *bytes, size_t len)
{
	struct last *l = arg;
	noh_event e;

	if (event_open(bytes, len, &e) && strcmp(e.actor, l->address) == 0)
		l->seqs[l->count++ % l->n] = seq;
	return 0;
}

int noh_events_last(noh_box *box, const char *address, uint32_t n, noh_event_fn *each, void *user)
{
	struct last l = { .address = address, .n = n == 0 ? 10 : n > EVENTS_LAST_MOST ? EVENTS_LAST_MOST : n };
	noh_events_filter of_it = { .actor = address };
	uint64_t newest = eventlog_newest(&box->events), oldest = eventlog_oldest(&box->events), cursor, end;
	int rc = NOH_OK;

	if (!address || !each)
		return error_set(NOH_EINVAL, "noh_events_last: no address, or nobody to tell");
	if (newest > EVENTS_LAST_LOOK && newest - EVENTS_LAST_LOOK > oldest)
		oldest = newest - EVENTS_LAST_LOOK;
	(void)eventlog_read(&box->events, oldest, note_last, &l);
	if (l.count == 0)
		return NOH_END;
	cursor = l.seqs[l.count > l.n ? l.count % l.n : 0] - 1;
	end = l.seqs[(l.count - 1) % l.n];
	while (rc == NOH_OK && cursor < end)
		rc = noh_events_read(box, &cursor, &of_it, 0, each, user);
	return rc;
}

/* ── what changed ── */

int noh_tell_config(noh_box *box, const char *what, const char *from, const char *to)
{
	if (!what || !*what)
		return error_set(NOH_EINVAL, "noh_tell_config: what has changed?");
	notice_of(&box->sched, "", NOTICE_CONFIG, &(noh_emit_options){ .reason = what, .from = from, .to = to });
	return NOH_OK;
}
