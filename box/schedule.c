/* box/schedule.c - schedules of durable actors, told from the image and taken away; and what both lists begin with. */
#include "box/api.h"
#include "core/address.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int box_fold_now(noh_box *box, uint32_t timeout_ms)
{
	uint64_t until = api_until_ns(box, timeout_ms), frame, epoch;
	struct journal_stats stats;
	int rc = noh_sync(box, timeout_ms);

	if (rc != NOH_OK)
		return rc;
	journal_get_stats(box->disk.journal, &stats);
	for (db_stamp(box->disk.db, &frame, &epoch); frame < stats.durable_frame; db_stamp(box->disk.db, &frame, &epoch)) {
		if (clock_now_ns(&box->sched.clock) >= until)
			return error_set(NOH_ETIMEOUT, "the journal could not be folded in %u ms: the newest may be missing", timeout_ms);
		if (load_relaxed(&box->sched.stopping))
			return error_set(NOH_ESTOPPED, "the box is not running");
		keeper_ask(&box->disk.keeper);
		usleep(500);
	}
	return NOH_OK;
}

/* ── listing ── */

struct listing {
	noh_box          *box;
	const char       *type;            /* NULL: all                                          */
	size_t            type_len;
	char              address[ADDRESS_MAX + 1];    /* of the actor being told                 */
	size_t            len;
	uint64_t          due_ms;          /* of its row                                         */
	uint32_t          told, limit;
	bool              more;            /* the last one told is not the last there is         */
	noh_scheduled_fn *each;
	void             *user;
};

static const char *kind_name(const struct listing *l, uint32_t kind)
{
	struct address a;
	struct type *t = address_parse(&a, l->address, l->len) == NOH_OK
				 ? sched_find_type(&l->box->sched, a.type, a.type_len) : NULL;

	return t && kind < t->pub.kind_count && t->pub.kinds[kind].name ? t->pub.kinds[kind].name : "";
}

static int give_timer(void *arg, const struct part_timer *timer)
{
	struct listing *l = arg;
	noh_scheduled s = { l->address, timer->kind, kind_name(l, timer->kind), timer->due_ms, timer->period_ms };

	l->each(l->user, &s);
	l->told++;
	return 0;
}

static int give_row(void *arg, uint64_t due_ms, const char *address, size_t len)
{
	struct listing *l = arg;

	if (load_relaxed(&l->box->sched.stopping))
		return 1;
	if (len > ADDRESS_MAX || (l->type && (len <= l->type_len || memcmp(address, l->type, l->type_len) != 0 ||
					      address[l->type_len] != ':')))
		return 0;
	if (l->told >= l->limit) {
		l->more = true;
		return 1;
	}
	memcpy(l->address, address, len);
	l->address[len] = 0;
	l->len = len;
	l->due_ms = due_ms;
	(void)db_timers_of(l->box->disk.db, address, len, give_timer, l);
	return 0;
}

/* "1794834000123 inventory:shoes": the last actor told. False: it is none of ours. */
static bool parse_cursor(const char *cursor, uint64_t *due_ms, const char **address)
{
	int used = 0;

	if (sscanf(cursor, "%" SCNu64 " %n", due_ms, &used) != 1 || used == 0)
		return false;
	*address = cursor + used;
	return strlen(*address) >= 3 && strlen(*address) <= ADDRESS_MAX;
}

static int list_one(struct listing *l, const char *address, char *cursor)
{
	struct address a;
	int rc = address_parse(&a, address, address_len(address));

	if (rc != NOH_OK)
		return rc;
	l->len = (size_t)snprintf(l->address, sizeof l->address, "%.*s:%.*s", a.type_len, a.type, a.id_len, a.id);
	cursor[0] = 0;
	rc = db_timers_of(l->box->disk.db, l->address, l->len, give_timer, l);
	return rc == NOH_END ? NOH_OK : rc;
}

int noh_schedule_list(noh_box *box, const char *type, const char *address, char *cursor, uint32_t limit,
		      uint32_t timeout_ms, noh_scheduled_fn *each, void *user)
{
	struct listing l = { .box = box, .type = type, .type_len = type ? strlen(type) : 0, .limit = limit ? limit : 100,
			     .each = each, .user = user };
	const char *after = NULL;
	uint64_t from = 0;
	char last[ADDRESS_MAX + 1];
	int rc = api_may_block("noh_schedule_list"), folded = NOH_OK;

	if (rc == NOH_OK)
		rc = api_running(box);
	if (rc != NOH_OK)
		return rc;
	if (!box->disk.db)
		return error_set(NOH_EINVAL, "noh_schedule_list: a box without a data directory keeps no schedules");
	if (*cursor && !parse_cursor(cursor, &from, &after))
		return error_set(NOH_EINVAL, "no cursor that noh_schedule_list gave");
	if (after)
		snprintf(last, sizeof last, "%s", after);
	else
		folded = box_fold_now(box, timeout_ms);
	if (folded < 0 && folded != NOH_ETIMEOUT)
		return folded;
	rc = address ? list_one(&l, address, cursor)
		     : db_timers_after(box->disk.db, from, after ? last : NULL, after ? strlen(last) : 0, give_row, &l);
	if (rc != NOH_OK)
		return rc;
	if (!address && l.more)
		snprintf(cursor, NOH_CURSOR, "%" PRIu64 " %s", l.due_ms, l.address);
	else
		cursor[0] = 0;
	return folded;
}

/* ── taking one away ── */

int noh_schedule_drop(noh_box *box, const char *address, uint32_t kind, uint32_t timeout_ms)
{
	uint64_t until = api_until_ns(box, timeout_ms);
	int rc = api_may_block("noh_schedule_drop");

	if (rc == NOH_OK)
		rc = api_running(box);
	if (rc != NOH_OK)
		return rc;
	do {
		rc = api_ask_system(box, address, SYS_UNSCHEDULE, kind, until);
	} while (rc == NOH_ENOACTOR);
	if (rc == NOH_END)
		return error_set(rc, "%s has no schedule of kind %u", address, kind);
	return api_call_result(address, rc, 0, 0, false);
}
