/* box/events.c - noh.h: the event log, read by its numbers.
 *
 * The newest events are in memory (persist/eventlog.h), those before them in the image, with some in both. An event has
 * its number from its place in the journal, so a cursor is good for either. What leaves memory is in the image by then:
 * so who does not find it in memory looks there, and in this order nothing is missed.
 */
#include "box/api.h"
#include "core/json.h"
#include "core/utf8.h"
#include "net/feed.h"
#include "sched/notice.h"

#include <stdio.h>
#include <string.h>

#define EVENTS_MEMORY ((uint64_t)16 << 20)       /* of a box without a directory */
#define EVENTS_MS ((uint64_t)7 * 24 * 3600 * 1000)
#define EVENTS_LIMIT 100
#define EVENTS_LOOK 20000                        /* events one call looks at      */
#define EVENTS_LAST_LOOK 65536
#define EVENTS_LAST_MOST 1000
#define SCAN_BYTES ((size_t)64 << 10)            /* read from the image at once   */

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
	uint64_t now, age;

	eventlog_show(&box->events, load_relaxed(&box->events.shown.appended));
	if (eventlog_bytes(&box->events) == load_relaxed(&box->events_looked))
		return;                          /* no chunk more: what is too old there, who reads does not see */
	now = clock_wall_ms(&box->sched.clock);
	age = load_relaxed(&box->events_ms);
	(void)eventlog_trim(&box->events, load_relaxed(&box->events_bytes), now > age ? now - age : 0);
	store_relaxed(&box->events_looked, eventlog_bytes(&box->events));
}

static void more_for_readers(void *arg)
{
	noh_box *box = arg;

	feeds_news(box->server);                 /* nobody listens where there is none */
}

struct events_set { uint64_t bytes, ms; uint32_t detail; };

static void tell_set(noh_box *box, const struct events_set *was, const struct events_set *now)
{
	static const char *const details[] = { "default", "all", "none" };

	box_tell_number(box, "events.bytes", was->bytes, now->bytes);
	box_tell_number(box, "events.keep", was->ms, now->ms);
	if (was->detail != now->detail && load_relaxed(&box->phase) == BOX_RUNNING)
		(void)noh_tell_config(box, "events.detail", details[was->detail], details[now->detail]);
}

int noh_set_events(noh_box *box, uint64_t bytes, uint64_t ms, int detail)
{
	struct events_set was = { load_relaxed(&box->events_bytes), load_relaxed(&box->events_ms),
				  load_relaxed(&box->sched.events.detail) };
	struct events_set now = { bytes ? bytes : EVENTS_MEMORY, ms ? ms : EVENTS_MS, (uint32_t)detail };

	if (detail < NOH_EVENTS_DEFAULT || detail > NOH_EVENTS_NONE)
		return error_set(NOH_EINVAL, "events_detail %d is none of the three", detail);
	if (detail == NOH_EVENTS_NONE)           /* then nothing is told any more */
		tell_set(box, &was, &now);
	store_relaxed(&box->events_bytes, now.bytes);
	store_relaxed(&box->events_ms, now.ms);
	store_relaxed(&box->events_looked, 0);
	store_relaxed(&box->sched.events.detail, now.detail);
	if (box->disk.db)
		db_keep_events(box->disk.db, bytes, ms);
	if (detail != NOH_EVENTS_NONE)
		tell_set(box, &was, &now);
	return NOH_OK;
}

int box_events_open(noh_box *box, const noh_options *o)
{
	struct sched_events *e = &box->sched.events;

	eventlog_open(&box->events, 0);
	box->events.fixed.on_more = more_for_readers;
	box->events.fixed.arg = box;
	e->arg = box;
	e->keep = keep;
	e->shown = show;
	return noh_set_events(box, o->events_bytes, o->events_ms, o->events_detail);
}

void box_events_start(noh_box *box)
{
	notice_open(&box->sched);
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

/* Without a directory nobody else does, when nothing happens any more; with one the keeper does. */
static void forget_old(noh_box *box)
{
	uint64_t now = clock_wall_ms(&box->sched.clock), age = load_relaxed(&box->events_ms);

	if (!box->disk.db)
		eventlog_age(&box->events, now > age ? now - age : 0);
}

/* ── both parts, as one ── */

static uint64_t oldest_of(noh_box *box)
{
	uint64_t seq = 0;

	if (box->disk.db)
		(void)db_events_oldest(box->disk.db, &seq);
	return seq ? seq : eventlog_oldest(&box->events);
}

static int too_old(noh_box *box, uint64_t cursor)
{
	uint64_t oldest = oldest_of(box);

	return error_set(NOH_ETOOOLD, "events after %llu are gone: the oldest there is has the number %llu; go on from cursor "
			 "%llu, and what was in between is missing", (unsigned long long)cursor,
			 (unsigned long long)oldest, (unsigned long long)oldest - 1);
}

struct scan {
	eventlog_fn *each;
	void        *arg;
	uint64_t     cursor;             /* the last one given */
	uint8_t     *room;
	size_t       size;
};

static int scan_one(void *arg, uint64_t seq, const void *event, size_t len)
{
	struct scan *s = arg;

	s->cursor = seq;
	return s->each(s->arg, seq, event, len);
}

static bool scan_room(struct scan *s, size_t size)
{
	uint8_t *room = mem_alloc(size);

	if (!room)
		return false;
	mem_free(s->room, s->size);
	s->room = room;
	s->size = size;
	return true;
}

/* What is in the image but not in memory: a piece of it. As each() says; NOH_ETOOOLD, NOH_ENOMEM, NOH_ECORRUPT. */
static int scan_image(noh_box *box, struct scan *s)
{
	struct db *db = box->disk.db;
	size_t used;
	uint64_t first = s->cursor + 1, oldest;
	int rc;

	if (!db)
		return NOH_ETOOOLD;
	if (!s->room && !scan_room(s, SCAN_BYTES))
		return error_set(NOH_ENOMEM, "no memory to read events");
	rc = db_events(db, first, s->room, s->size, &used, &oldest);
	if (rc == NOH_ENOMEM && used > s->size && scan_room(s, used))
		rc = db_events(db, first, s->room, s->size, &used, &oldest);
	if (rc == NOH_OK && used == 0 && first > db_events_newest(db) && first < eventlog_oldest(&box->events)) {
		keeper_ask(&box->disk.keeper);
		return error_set(NOH_ENOMEM, "event %llu is in the journal only, there was no memory for it: try again in a second",
				 (unsigned long long)first);
	}
	if (rc == NOH_OK && used == 0 && first < eventlog_oldest(&box->events))
		return NOH_ETOOOLD;
	for (size_t at = 0; rc == 0 && at < used; ) {
		struct db_event head;

		memcpy(&head, s->room + at, sizeof head);
		rc = scan_one(s, head.seq, s->room + at + sizeof head, (size_t)head.len);
		at += sizeof head + record_pad((size_t)head.len);
	}
	return rc;
}

/* Events behind *cursor, until there are no more or each() returns anything but 0: that is the result. */
static int scan(noh_box *box, uint64_t *cursor, eventlog_fn *each, void *arg)
{
	struct scan s = { .each = each, .arg = arg, .cursor = *cursor };
	int rc = 0;

	while (rc == 0 && s.cursor < eventlog_newest(&box->events)) {
		rc = eventlog_read(&box->events, s.cursor + 1, scan_one, &s);
		if (rc == NOH_ETOOOLD)
			rc = scan_image(box, &s);
	}
	mem_free(s.room, s.size);
	*cursor = s.cursor;
	return rc;
}

/* ── reading ── */

struct reading {
	const noh_events_filter *filter;
	noh_event_fn *each;
	void         *user;
	uint32_t      limit, told, looked;
};

enum { GO_ON, ENOUGH };

static int read_one(void *arg, uint64_t seq, const void *bytes, size_t len)
{
	struct reading *r = arg;
	noh_event e;

	must(event_open(bytes, len, &e));        /* it was checked by whoever put it there */
	e.seq = seq;
	r->looked++;
	if (event_matches(&e, r->filter)) {
		r->told++;
		if (r->each(r->user, &e) != 0)
			return ENOUGH;
	}
	return r->told == r->limit || r->looked == EVENTS_LOOK ? ENOUGH : GO_ON;
}

static int check_read(noh_box *box, const uint64_t *cursor, noh_event_fn *each)
{
	uint64_t newest = eventlog_newest(&box->events);

	if (!cursor || !each)
		return error_set(NOH_EINVAL, "noh_events_read: no cursor, or nobody to tell them");
	if (*cursor > newest)
		return error_set(NOH_EINVAL, "cursor %llu: the newest event has the number %llu; is it of another data "
				 "directory?", (unsigned long long)*cursor, (unsigned long long)newest);
	return NOH_OK;
}

int noh_events_read(noh_box *box, uint64_t *cursor, const noh_events_filter *filter, uint32_t limit, noh_event_fn *each,
		    void *user)
{
	struct reading r = { .filter = filter, .each = each, .user = user, .limit = limit ? limit : EVENTS_LIMIT };
	uint64_t at;
	int rc = check_read(box, cursor, each);

	if (rc != NOH_OK)
		return rc;
	forget_old(box);
	do {                             /* from the beginning: while we looked, that may have gone */
		at = *cursor ? *cursor : oldest_of(box) - 1;
		rc = scan(box, &at, read_one, &r);
	} while (rc == NOH_ETOOOLD && *cursor == 0 && r.looked == 0);
	if (rc == NOH_ETOOOLD && r.looked == 0)
		return too_old(box, at);
	if (rc < 0 && r.looked == 0)
		return rc;
	*cursor = at;                    /* what is wrong behind it, the next call says */
	return at < eventlog_newest(&box->events) ? NOH_OK : NOH_END;
}

int noh_events_bounds(noh_box *box, uint64_t *oldest, uint64_t *newest)
{
	uint64_t last = eventlog_newest(&box->events);

	forget_old(box);
	if (newest)
		*newest = last;
	if (oldest)
		*oldest = last ? oldest_of(box) : 0;
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

/* The last ones are those behind *cursor up to *upto. NOH_END: there are none. */
static int find_last(noh_box *box, const char *address, uint32_t n, uint64_t *cursor, uint64_t *upto)
{
	struct last *l = mem_zalloc(sizeof *l);
	uint64_t newest = eventlog_newest(&box->events), at;
	int rc;

	if (!l)
		return error_set(NOH_ENOMEM, "no memory to look for the events of %s", address);
	l->address = address;
	l->n = n == 0 ? 10 : n > EVENTS_LAST_MOST ? EVENTS_LAST_MOST : n;
	do {                             /* while we looked the old end may have gone, and with it what we noted */
		l->count = 0;
		at = oldest_of(box) - 1;
		if (newest > EVENTS_LAST_LOOK && newest - EVENTS_LAST_LOOK > at)
			at = newest - EVENTS_LAST_LOOK;
		rc = scan(box, &at, note_last, l);
	} while (rc == NOH_ETOOOLD);
	if (rc == NOH_OK && l->count == 0)
		rc = NOH_END;
	if (rc == NOH_OK) {
		*cursor = l->seqs[l->count > l->n ? l->count % l->n : 0] - 1;
		*upto = l->seqs[(l->count - 1) % l->n];
	}
	mem_free(l, sizeof *l);
	return rc;
}

struct telling {
	noh_event_fn *each;
	void         *user;
	uint64_t      upto;
	bool          ended;             /* by each(), or all are told */
	int           rc;
};

/* What came after we looked is not among the last n: then those would be more. */
static int tell_last(void *user, const noh_event *e)
{
	struct telling *t = user;

	if (e->seq <= t->upto && t->each(t->user, e) != 0 && e->seq < t->upto)
		t->rc = NOH_OK;
	else if (e->seq < t->upto)
		return 0;
	t->ended = true;
	return 1;
}

int noh_events_last(noh_box *box, const char *address, uint32_t n, noh_event_fn *each, void *user)
{
	noh_events_filter of_it = { .actor = address };
	struct telling t = { .each = each, .user = user, .rc = NOH_END };
	uint64_t cursor;
	int rc;

	if (!address || !each)
		return error_set(NOH_EINVAL, "noh_events_last: no address, or nobody to tell");
	forget_old(box);
	rc = find_last(box, address, n, &cursor, &t.upto);
	while (rc == NOH_OK && !t.ended && cursor < t.upto) {
		rc = noh_events_read(box, &cursor, &of_it, EVENTS_LAST_MOST, tell_last, &t);
		if (rc == NOH_ETOOOLD) { /* some have gone since we looked: on with those that are left */
			cursor = 0;
			rc = NOH_OK;
		}
	}
	return rc < 0 ? rc : t.rc;
}

/* ── what changed ── */

int noh_tell_config(noh_box *box, const char *what, const char *from, const char *to)
{
	if (!what || !*what)
		return error_set(NOH_EINVAL, "noh_tell_config: what has changed?");
	notice_of(&box->sched, "", NOTICE_CONFIG, &(noh_emit_options){ .reason = what, .from = from, .to = to });
	return NOH_OK;
}

/* ── who asked for what ── */

enum { ADMIN_TEXT = 300 };                 /* of each: an address fits                             */

static size_t fitting(const char *text, size_t most)
{
	size_t len = strlen(text);

	return len <= most ? len : utf8_cut(text, most);
}

static void put_member(noh_json_out *o, const char *name, const char *text)
{
	if (text)
		noh_json_put_text(o, name, text, fitting(text, ADMIN_TEXT));
}

int noh_tell_admin(noh_box *box, const noh_admin_call *a)
{
	char line[NOH_EVENT_REASON + 1], data[6 * 4 * ADMIN_TEXT + 100];
	noh_json_out o = { .at = data, .room = sizeof data };
	const char *actor = a && a->actor ? a->actor : "", *target = a && a->target ? a->target : "";

	if (!a || !a->who || !a->call)
		return error_set(NOH_EINVAL, "noh_tell_admin: who asked for what?");
	snprintf(line, sizeof line, "%.64s asked for \"%.64s%s%.*s%s%.*s\"", a->who, a->call, *actor ? " " : "",
		 (int)fitting(actor, ADDRESS_MAX), actor, *target ? " " : "", (int)fitting(target, 100), target);
	noh_json_open(&o, NULL, '{');
	put_member(&o, "user", a->who);
	put_member(&o, "call", a->call);
	put_member(&o, "target", a->target);
	put_member(&o, "from", a->from);
	noh_json_close(&o, '}');
	sched_log_always(&box->sched, actor, line);
	notice_of(&box->sched, actor, NOTICE_ADMIN, &(noh_emit_options){ .reason = line, .data = data, .len = o.len });
	return NOH_OK;
}
