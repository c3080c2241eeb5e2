/* sched/step_turn.c - the turns of a step: run one after the other, kept aside, then all of them made real, or
 * all of them undone (P4).
 *
 * A worker has one turn, with its buffers. What a part's turn leaves in it is saved as soon as its hook has
 * returned, and loaded again to be committed or undone. Its record is written at once, but into memory: only
 * when every hook has said yes do all records go to the journal's ring, as one entry with one tag, so that no
 * frame ever holds some of them. From that push on it has happened; what comes after cannot fail.
 */
#include "sched/late.h"
#include "sched/serve.h"
#include "sched/step.h"

#include "core/plant.h"

#include <string.h>

struct saved {
	struct noh_turn turn;
	struct effects  fx;
	struct late_turn *late;          /* room to keep what it sends, if it must be kept   */
	void           *scratch;
};

struct run {
	struct worker       *w;
	struct step         *s;
	struct saved        *saved;
	size_t               bytes;      /* of saved, with all scratch behind it             */
	uint32_t             ran;        /* the first so many parts are saved                */
	bool                 set_aside;  /* the next one was not even begun: it is poison    */
	struct durable_group group;
	uint8_t             *answers;    /* as they travel (step.h)                          */
	size_t               answer_len;
	uint64_t             now_ms;
	struct effects      *fx, *other_fx;      /* the worker's own */
	void                *scratch;
	struct schedule_op  *ops;
	uint32_t             op_room;
	struct letters       letters;
};

/* ── the worker's turn, in and out ── */

#define TURN_FROM offsetof(struct noh_turn, type)        /* what is before stays, or is shown to others */

static void take_buffers(struct noh_turn *t)             /* they are somebody else's now */
{
	t->ops = NULL;
	t->op_room = t->op_count = 0;
	t->letters = (struct letters){ NULL, 0 };
	memset(&t->kv_log, 0, sizeof t->kv_log);
}

static void free_buffers(struct noh_turn *t)
{
	mem_free(t->ops, t->op_room * sizeof *t->ops);
	mem_free(t->letters.bytes, t->letters.room);
	take_buffers(t);
}

/* False: no memory for its messages; then it is where it was. */
static bool save(struct run *r, uint32_t i)
{
	struct noh_turn *t = &r->w->mine.turn;
	struct saved *v = &r->saved[i];
	uint32_t count = t->fx->count;

	if (t->fx != &v->fx && count) {
		v->fx.list = mem_aligned(CACHE_LINE, count * sizeof *v->fx.list);
		if (!v->fx.list)
			return false;
		memcpy(v->fx.list, t->fx->list, count * sizeof *v->fx.list);
		v->fx.count = v->fx.room = count;
	}
	if (t->fx != &v->fx)
		t->fx->count = 0;
	if (count) {
		v->late = r->w->mine.lates.spare;
		r->w->mine.lates.spare = NULL;
	}
	memcpy((char *)&v->turn + TURN_FROM, (char *)t + TURN_FROM, sizeof *t - TURN_FROM);
	take_buffers(t);
	t->fx = r->fx;
	return true;
}

static void load(struct run *r, uint32_t i)
{
	struct noh_turn *t = &r->w->mine.turn;
	struct saved *v = &r->saved[i];

	memcpy((char *)t + TURN_FROM, (char *)&v->turn + TURN_FROM, sizeof *t - TURN_FROM);
	store_relaxed(&t->cell, r->s->parts[i].cell);
	t->fx = &v->fx;
	t->other_fx = r->other_fx;
	r->w->mine.scratch = t->scratch;
	late_give(r->w, v->late);
	v->late = NULL;
}

/* What was loaded has been committed or undone. */
static void forget(struct run *r, uint32_t i)
{
	free_buffers(&r->w->mine.turn);
	mem_free(r->saved[i].fx.list, r->saved[i].fx.room * sizeof(struct effect));
	r->saved[i].fx = (struct effects){ .count = 0 };
	r->w->mine.turn.fx = r->fx;
}

static size_t copy_room(const struct type *t)
{
	size_t bytes = (size_t)t->state_words * 8;

	return bytes > STATE_COPY_LEAST ? bytes : STATE_COPY_LEAST;
}

static bool begin(struct run *r)
{
	struct noh_turn *t = &r->w->mine.turn;
	uint32_t count = r->s->count;
	uint8_t *scratch;

	r->bytes = count * sizeof *r->saved;
	for (uint32_t i = 0; i < count; i++)
		r->bytes += copy_room(r->s->parts[i].type);
	r->saved = mem_zalloc(r->bytes);
	if (!r->saved)
		return false;
	scratch = (uint8_t *)(r->saved + count);
	for (uint32_t i = 0; i < count; i++) {
		r->saved[i].scratch = scratch;
		scratch += copy_room(r->s->parts[i].type);
	}
	r->fx = t->fx;
	r->other_fx = t->other_fx;
	r->scratch = r->w->mine.scratch;
	r->ops = t->ops;
	r->op_room = t->op_room;
	r->letters = t->letters;
	take_buffers(t);
	return true;
}

static void end(struct run *r)
{
	struct noh_turn *t = &r->w->mine.turn;

	free_buffers(t);
	t->fx = r->fx;
	t->other_fx = r->other_fx;
	t->scratch = r->w->mine.scratch = r->scratch;
	t->ops = r->ops;
	t->op_room = r->op_room;
	t->letters = r->letters;
	mem_free(r->saved, r->bytes);
	mem_free(r->group.bytes, r->group.room);
	for (uint32_t i = 0; i < r->s->count; i++)
		msg_free_body(&r->s->parts[i].answer);
}

/* ── one part ── */

static struct type_counts *counts_of(struct run *r, uint32_t i)
{
	return &r->w->mine.port.types[r->s->parts[i].type->index];
}

static void begin_part(struct run *r, uint32_t i)
{
	struct noh_turn *t = &r->w->mine.turn;
	struct step_part *p = &r->s->parts[i];

	turn_begin(r->w, p->cell, p->type, &p->msg, 1);
	t->so_far.flags |= TURN_STEP;
	t->so_far.now_ms = r->now_ms;            /* one instant for all of them */
	t->scratch = r->w->mine.scratch = r->saved[i].scratch;
}

/* What it answered is ours; its place among the messages stays, since they are called by their places. */
static void take_answer(struct noh_turn *t, struct step_part *p)
{
	for (uint32_t i = 0; i < t->fx->count; i++) {
		struct effect *e = &t->fx->list[i];

		if (e->cell != 0 || e->msg.reply != REPLY_STEP)
			continue;
		msg_free_body(&p->answer);
		p->answer = e->msg;
		p->status = (int)e->gen;
		e->msg.len = 0;
	}
	t->so_far.replied = 1;
}

static int run_hook(struct run *r, uint32_t i)
{
	struct worker *w = r->w;
	struct noh_turn *t = &w->mine.turn;
	struct step_part *p = &r->s->parts[i];
	noh_msg nobody = p->msg;
	int rc;

	nobody.reply_to = 0;
	r->set_aside = poison_refused(w, p->cell, &nobody);
	if (r->set_aside)
		return NOH_EPOISON;
	begin_part(r, i);
	poison_note(w, p->cell, &p->msg, 1);
	supervise_hook_begins(w, p->type);
	rc = p->type->single(t, &p->msg);
	poison_done(w);
	if (p->type->supervised)
		rc = supervise_hook_ended(w, rc);
	if (rc == NOH_REFUSED && (t->so_far.flags & TURN_REFUSED))
		p->answer = t->refusal;
	else if (t->so_far.flags & TURN_REFUSED)
		msg_free_body(&t->refusal);
	if (rc < 0 || rc == NOH_REFUSED || rc == NOH_FULL)
		return rc;
	take_answer(t, p);
	if (p->type->durable && !(r->s->key && i == r->s->keeper))
		return durable_prepare_part(w, p->cell, &r->group, NULL);
	return NOH_OK;
}

/* Leaves no trace of it; and says so, unless that is nothing unusual. */
static int failed(struct run *r, uint32_t i, int rc)
{
	struct noh_turn *t = &r->w->mine.turn;
	struct step_part *p = &r->s->parts[i];
	bool reason = t->so_far.flags & TURN_REASON;

	p->status = rc;
	if (r->set_aside) {              /* said, and counted as failed */
		count_one(&counts_of(r, i)->accepted, 1);
		return rc;
	}
	turn_undo(r->w);
	free_buffers(t);
	count_one(&counts_of(r, i)->accepted, 1);
	if (rc == NOH_REFUSED) {
		count_one(&counts_of(r, i)->handled, 1);
		turn_counted(p->cell, t->type, 1);
		return rc;
	}
	msg_free_body(&p->answer);
	p->answer.len = 0;
	count_one(&counts_of(r, i)->failed, 1);
	turn_counted(p->cell, t->type, 1);
	if (rc != NOH_ENOSPC)            /* a full disk is said once, not once a step */
		sched_logf(r->s->sched, NOH_WARN, noh_address(t), "turn failed, and with it a step over %u actors: %s",
			   r->s->count, reason ? t->reason : noh_strerror(rc));
	return rc;
}

static int run_parts(struct run *r)
{
	for (uint32_t i = 0; i < r->s->count; i++) {
		int rc = run_hook(r, i);

		if (rc == NOH_OK && !save(r, i))
			rc = NOH_ENOMEM;
		if (rc != NOH_OK)
			return failed(r, i, rc);
		r->ran = i + 1;
	}
	return NOH_OK;
}

static void undo_all(struct run *r)
{
	while (r->ran) {
		uint32_t i = --r->ran;

		load(r, i);
		turn_undo(r->w);
		forget(r, i);
		msg_free_body(&r->s->parts[i].answer);
		r->s->parts[i].answer.len = 0;
		r->s->parts[i].status = NOH_OK;
	}
	r->group.len = 0;
}

/* ── all of them ── */

static int pack_answers(struct run *r)
{
	size_t len = 0;
	uint8_t *at;

	for (uint32_t i = 0; i < r->s->count; i++)
		len += sizeof(struct step_answer) + record_pad(msg_len(&r->s->parts[i].answer));
	if (len > NOH_STEP_BYTES)
		return error_set(NOH_ETOOBIG, "the answers of a step take %zu bytes, the limit is %u", len,
				 NOH_STEP_BYTES);
	mem_free(r->answers, r->answer_len);
	r->answer_len = len;
	at = r->answers = mem_zalloc(len);
	if (!at)
		return error_set(NOH_ENOMEM, "no memory for the answers of a step");
	for (uint32_t i = 0; i < r->s->count; i++) {
		const struct step_part *p = &r->s->parts[r->s->answered[i]];
		const struct msg *m = &p->answer;
		struct step_answer a = { p->status, msg_len(m) };

		memcpy(at, &a, sizeof a);
		if (a.len)
			memcpy(at + sizeof a, msg_body(m), a.len);
		at += sizeof a + record_pad(a.len);
	}
	return NOH_OK;
}

/* The keeper's record holds the key, and with it what all of them answered. In the turn at hand. */
static int record_key(struct run *r, int status)
{
	struct step *s = r->s;
	struct durable_key key = { .key = s->key, .key_len = s->key_len, .answer = r->answers,
				   .len = r->answer_len,
				   .part = { .at_ms = sched_wall_ms(r->w),
					     .body_hash = s->print, .status = status } };

	return durable_prepare_part(r->w, s->parts[s->keeper].cell, &r->group, &key);
}

static void remember_key(struct run *r, int status, uint64_t due)
{
	struct step *s = r->s;
	struct step_part *p = &s->parts[s->keeper];
	struct sched_storage *disk = p->type->storage;
	struct part_idem part = { .at_ms = sched_wall_ms(r->w),
				  .body_hash = s->print, .status = status };
	size_t len = sizeof part + r->answer_len;
	uint8_t *bytes = mem_alloc(len);

	if (bytes) {
		memcpy(bytes, &part, sizeof part);
		memcpy(bytes + sizeof part, r->answers, r->answer_len);
	}
	if (!PLANT(PLANT_KEY_FORGOTTEN) &&
	    (!bytes || disk->idem_put(disk->arg, p->address, p->address_len, p->hash, s->key, s->key_len, bytes,
				      len, due) != NOH_OK))
		sched_logf(s->sched, NOH_ERROR, p->address, "no memory for an idempotency key: a retry within the "
			   "next minute may be handled twice");
	mem_free(bytes, len);
}

/* What an answer that has looked at them waits for. */
static uint64_t due_of(struct step *s)
{
	uint64_t due = 0;

	for (uint32_t i = 0; sched_is_durable(s->sched) && i < s->count; i++) {
		uint64_t its = load_relaxed(body_due(s->parts[i].cell->body));

		due = its > due ? its : due;
	}
	return due;
}

static void show_held(struct step *s, bool held)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->parts[i].type->reads)
			cell_set_held(s->parts[i].cell, held);
}

static void commit_part(struct run *r, uint32_t i, uint64_t due)
{
	struct cell *c = r->s->parts[i].cell;

	load(r, i);
	r->w->mine.turn.due = due;
	(void)turn_commit(r->w, c, false, true);
	after_turn(r->w, c, NOH_OK);
	count_one(&counts_of(r, i)->accepted, 1);
	count_one(&counts_of(r, i)->handled, 1);
	turn_counted(c, r->w->mine.turn.type, 1);
	forget(r, i);
}

static int commit_all(struct run *r, uint64_t *due)
{
	struct step *s = r->s;
	int rc = pack_answers(r);

	if (rc == NOH_OK && s->key) {
		load(r, s->keeper);
		rc = record_key(r, NOH_OK);
		(void)save(r, s->keeper);
	}
	if (rc == NOH_OK && sched_is_durable(s->sched))
		rc = durable_push_group(r->w, &r->group, due);
	if (rc != NOH_OK)
		return rc;
	show_held(s, true);
	for (uint32_t i = 0; i < s->count; i++)
		commit_part(r, i, *due);
	show_held(s, false);
	if (s->key)
		remember_key(r, NOH_OK, *due);
	return NOH_OK;
}

/* A refusal is an answer like any other: with a key it is kept. */
static int keep_refusal(struct run *r, uint64_t *due)
{
	struct cell *c = r->s->parts[r->s->keeper].cell;
	int rc = pack_answers(r);

	if (rc != NOH_OK || !r->s->key)
		return rc == NOH_OK ? NOH_REFUSED : rc;
	begin_part(r, r->s->keeper);
	if (*body_seq(c->body) & SEQ_BARE)       /* it was not there, and a refusal does not change that */
		r->w->mine.turn.so_far.flags |= TURN_ERASE;
	rc = record_key(r, NOH_REFUSED);
	if (rc == NOH_OK)
		rc = durable_push_group(r->w, &r->group, due);
	if (rc != NOH_OK)
		return rc;
	r->w->mine.turn.due = *due;
	durable_commit(r->w, c);
	remember_key(r, NOH_REFUSED, *due);
	return NOH_REFUSED;
}

/* The same step, or another with its key, was handled before. */
static bool repeated(struct worker *w, struct step *s)
{
	struct step_part *p = &s->parts[s->keeper];
	struct sched_storage *disk = p->type->storage;
	struct part_idem part;
	void *bytes = NULL;
	size_t len = 0;
	uint64_t due = 0;
	int rc = s->key ? disk->idem_get(disk->arg, p->address, p->address_len, p->hash, s->key, s->key_len, &bytes,
					 &len, &due) : NOH_END;

	if (rc == NOH_END)
		return false;
	if (rc != NOH_OK || len < sizeof part) {
		step_end(w, s, 0, rc == NOH_OK ? NOH_ECORRUPT : rc, NULL, 0);
	} else {
		memcpy(&part, bytes, sizeof part);
		if (part.body_hash != s->print)
			step_end(w, s, due, NOH_EIDEM, NULL, 0);
		else {
			durable_replayed(w, p->type, s->asked_by);
			step_end(w, s, due, part.status, (char *)bytes + sizeof part, len - sizeof part);
		}
	}
	if (rc == NOH_OK)
		mem_free(bytes, len);
	return true;
}

void step_run(struct worker *w, struct step *s)
{
	struct run r = { .w = w, .s = s, .now_ms = sched_now_ms(w) };
	uint64_t due = due_of(s);
	int rc = NOH_ENOMEM;

	if (repeated(w, s))
		return;
	if (sched_is_durable(s->sched))
		r.group.tag = s->sched->journal.epoch(s->sched->journal.arg);
	if (begin(&r)) {
		rc = run_parts(&r);
		if (rc == NOH_OK)
			rc = commit_all(&r, &due);
		if (rc != NOH_OK)
			undo_all(&r);
		if (rc == NOH_REFUSED)
			rc = keep_refusal(&r, &due);
		else if (rc != NOH_OK && pack_answers(&r) != NOH_OK)
			r.answer_len = 0;
		end(&r);
	}
	step_end(w, s, due, rc, r.answers, r.answers ? r.answer_len : 0);
	mem_free(r.answers, r.answer_len);
}
