/* box/dead.c - messages that were set aside: told of, sent again, forgotten.
 *
 * They are rows of the image, named by time and number. To take one away is a turn of an actor of the box's own, the clerk:
 * its record says that the row goes (PART_UNDEAD) and, if it is sent again, has the message to its actor. So both happen or
 * none does (P4), and an idempotency key made of the row's name lets it happen once (P7), although the row itself stays
 * until that record is folded. The clerk keeps nothing: each of its turns ends with noh_erase.
 */
#include "box/api.h"
#include "core/address.h"
#include "sched/turn.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#define CLERK_TYPE "noh.clerk"
#define CLERK CLERK_TYPE ":dead"

enum clerk_kind { CLERK_REDRIVE, CLERK_PURGE };

struct job {                               /* then the address, padded to 8, then the body */
	uint64_t pass;
	struct part_undead row;
	uint32_t kind, address_len, len, zero;
};

/* The clerk works for the box alone: whoever else writes to it does not know this. The same in every run: a key is only good
 * for the same bytes. */
static uint64_t pass_of(noh_box *box)
{
	return XXH3_64bits_withSeed(CLERK, sizeof CLERK - 1, box->sched.seed);
}

/* ── the clerk ── */

static int on_message(noh_turn *t, const noh_msg *m)
{
	const struct job *j = m->body;
	const char *address = (const char *)(j + 1);
	char text[ADDRESS_MAX + 1];
	int rc = NOH_OK;

	if (m->len < sizeof *j || j->pass != pass_of(noh_turn_box(t)))
		return noh_fail(t, "the clerk works for the box alone");
	if (m->kind == CLERK_REDRIVE) {
		memcpy(text, address, j->address_len);
		text[j->address_len] = 0;
		rc = noh_tell_to(t, text, j->kind, address + record_pad(j->address_len), j->len);
	}
	if (rc == NOH_FULL)
		return noh_fail(t, "the mailbox of %s is full: try again later", text);
	if (rc != NOH_OK)
		return rc;
	t->undead = j->row;
	t->so_far.flags |= TURN_UNDEAD;
	return noh_erase(t);
}

static const noh_kind kinds[] = { { "redrive", 0, NULL }, { "purge", 0, NULL } };
static const noh_type clerk = { .name = CLERK_TYPE, .full_mode = NOH_BLOCK, .kinds = kinds, .kind_count = 2,
				.on_message = on_message };

int box_register_clerk(noh_box *box)
{
	return box->disk.db ? noh_register(box, &clerk) : NOH_OK;
}

/* ── looking ── */

static int has_disk(noh_box *box, const char *what)
{
	int rc = api_may_block(what);

	if (rc == NOH_OK)
		rc = api_running(box);
	if (rc == NOH_OK && !box->disk.db)
		rc = error_set(NOH_EINVAL, "%s: a box without a data directory keeps nothing of this kind", what);
	return rc;
}

static bool parse_id(const char *id, uint64_t *at_ms, uint64_t *number)
{
	char again[44];

	if (!id || strlen(id) >= sizeof again || sscanf(id, "%" SCNu64 "-%" SCNu64, at_ms, number) != 2)
		return false;
	snprintf(again, sizeof again, "%" PRIu64 "-%" PRIu64, *at_ms, *number);
	return strcmp(again, id) == 0;
}

static int bad_id(const char *id)
{
	return error_set(NOH_EINVAL, "\"%.40s\" is no id of a message that was set aside", id ? id : "");
}

struct look {
	noh_box     *box;
	const char  *address;              /* NULL: of all                                       */
	uint64_t     after_ms, after_number;
	bool         has_after, only;      /* only: that very one                                */
	bool         found;
	noh_dead_fn *each;
	void        *user;
};

static const char *kind_name(noh_box *box, const char *address, size_t len, uint32_t kind)
{
	struct address a;
	struct type *t = address_parse(&a, address, len) == NOH_OK ? sched_find_type(&box->sched, a.type, a.type_len) : NULL;

	return t && kind < t->pub.kind_count && t->pub.kinds[kind].name ? t->pub.kinds[kind].name : "";
}

static int give(void *arg, uint64_t at_ms, uint64_t number, const char *receiver, size_t len, const struct part_dead *dead,
		const void *rest, size_t rest_len)
{
	struct look *l = arg;
	size_t padded = record_pad(dead->reason_len);
	char address[ADDRESS_MAX + 1], reason[4097];
	noh_dead d = { .at_ms = at_ms, .address = address, .kind = dead->kind, .reason = reason,
		       .body = (const char *)rest + padded, .len = rest_len - padded };

	if (l->has_after && at_ms == l->after_ms && number == l->after_number)
		return 0;
	if (l->only && (at_ms != l->after_ms || number != l->after_number))
		return 1;
	if (len > ADDRESS_MAX || (l->address && (strlen(l->address) != len || memcmp(l->address, receiver, len) != 0)))
		return load_relaxed(&l->box->sched.stopping) != 0;
	snprintf(d.id, sizeof d.id, "%" PRIu64 "-%" PRIu64, at_ms, number);
	memcpy(address, receiver, len);
	address[len] = 0;
	memcpy(reason, rest, dead->reason_len);
	reason[dead->reason_len] = 0;
	d.kind_name = kind_name(l->box, address, len, dead->kind);
	l->found = true;
	return l->each(l->user, &d) != 0 || l->only || load_relaxed(&l->box->sched.stopping);
}

int noh_dead_list(noh_box *box, const char *address, const char *after, uint32_t timeout_ms, noh_dead_fn *each, void *user)
{
	struct look l = { .box = box, .address = address, .has_after = after && *after, .each = each, .user = user };
	int rc = has_disk(box, "noh_dead_list"), folded = NOH_OK;

	if (rc != NOH_OK)
		return rc;
	if (l.has_after && !parse_id(after, &l.after_ms, &l.after_number))
		return bad_id(after);
	if (!l.has_after)                        /* who goes on has seen to that already */
		folded = box_fold_now(box, timeout_ms);
	if (folded < 0 && folded != NOH_ETIMEOUT)
		return folded;
	rc = db_dead(box->disk.db, l.after_ms, l.after_number, give, &l);
	return rc != NOH_OK ? rc : folded;
}

int noh_dead_get(noh_box *box, const char *id, noh_dead_fn *each, void *user)
{
	struct look l = { .box = box, .only = true, .each = each, .user = user };
	int rc = has_disk(box, "noh_dead_get");

	if (rc != NOH_OK)
		return rc;
	if (!parse_id(id, &l.after_ms, &l.after_number))
		return bad_id(id);
	rc = db_dead(box->disk.db, l.after_ms, l.after_number, give, &l);
	return rc == NOH_OK && !l.found ? NOH_END : rc;
}

/* ── taking one away ── */

struct taken {
	struct job *job;
	size_t      bytes;
	uint64_t    pass;
	int         rc;
};

/* The same bytes each time: the key is only good for those. */
static int copy_job(void *user, const noh_dead *d)
{
	struct taken *t = user;
	size_t len = strlen(d->address), body_at = sizeof *t->job + record_pad(len);

	t->bytes = body_at + d->len;
	t->job = mem_zalloc(t->bytes);
	if (!t->job) {
		t->rc = error_set(NOH_ENOMEM, "no memory for a message of %zu bytes", d->len);
		return 1;
	}
	*t->job = (struct job){ .pass = t->pass, .kind = d->kind, .address_len = (uint32_t)len, .len = (uint32_t)d->len };
	(void)parse_id(d->id, &t->job->row.at_ms, &t->job->row.number);
	memcpy(t->job + 1, d->address, len);
	if (d->len)
		memcpy((char *)t->job + body_at, d->body, d->len);
	return 1;
}

static int take(noh_box *box, const char *what, const char *id, enum clerk_kind kind, uint32_t timeout_ms)
{
	noh_call_options o = { .timeout_ms = timeout_ms, .key = id, .key_len = id ? strlen(id) : 0 };
	struct taken t = { .rc = NOH_OK, .pass = pass_of(box) };
	int rc = has_disk(box, what);

	if (rc == NOH_OK)
		rc = noh_dead_get(box, id, copy_job, &t);
	if (rc == NOH_OK)
		rc = t.rc;
	if (rc != NOH_OK)
		return rc;
	if (kind == CLERK_PURGE)
		rc = noh_call_with(box, CLERK, kind, t.job, sizeof *t.job, &o, NULL, NULL);
	else if (t.bytes > box->sched.max_message)
		rc = error_set(NOH_ETOOBIG, "%s: its message of %u bytes is over the limit with what goes with it", id, t.job->len);
	else
		rc = noh_call_with(box, CLERK, kind, t.job, t.bytes, &o, NULL, NULL);
	mem_free(t.job, t.bytes);
	if (rc == NOH_EIDEM)
		return error_set(rc, "%s: it was %s before", id, kind == CLERK_PURGE ? "redriven" : "purged");
	return rc;
}

int noh_dead_redrive(noh_box *box, const char *id, uint32_t timeout_ms)
{
	return take(box, "noh_dead_redrive", id, CLERK_REDRIVE, timeout_ms);
}

int noh_dead_purge(noh_box *box, const char *id, uint32_t timeout_ms)
{
	return take(box, "noh_dead_purge", id, CLERK_PURGE, timeout_ms);
}
