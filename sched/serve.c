/* sched/serve.c - running one actor: from BUSY to idle, parked, queued again, or gone.
 *
 * Read sched_serve first. An actor is served until nothing waits, its slice is used up, or it has to
 * rest; then the worker goes on with the actor it handed a message to, if any. Whoever serves owns
 * the cell: its flags, state and ext are plain memory until mailbox_idle, mailbox_park or
 * sched_enqueue gives it away, and not to be touched after.
 */
#include "sched/turn.h"

#include <string.h>

/* ── delivering to others ── */

static void node_undeliverable(struct port *p, struct sysmsg *n)
{
	if (n->op == SYS_ANSWER)
		count_one(&p->late_answers, 1);
	else if (n->op == SYS_ACTIVATE || n->op == SYS_DEACTIVATE)
		(void)pending_complete(p, n->token, NOH_ENOACTOR, NULL, 0);
	node_free(p, n);
}

void sched_sys(struct port *p, struct cell *c, uint32_t gen, struct sysmsg *n)
{
	struct sysmsg *lost;

	if (mailbox_sys_push(&c->mailbox, gen, n, &lost))
		sched_enqueue(p, c);
	while (lost) {
		struct sysmsg *next = lost->next;

		node_undeliverable(p, lost);
		lost = next;
	}
}

/* Each waiter names the actor that rests, in token. */
void sched_wake_waiters(struct port *p, struct sysmsg *list)
{
	struct sched *s = p->sched;

	while (list) {
		struct sysmsg *next = list->next;
		noh_actor who = { list->token };

		sched_sys(p, cell_at(s, ref_number(who)), ref_gen(who), list);
		list = next;
	}
	if (load_seq_cst(&s->room_waiters)) {
		add_seq_cst(&s->room_event, 1);
		futex_wake_all(&s->room_event);
	}
}

/* A message that will not be handled: its body goes, and whoever waits for the answer hears why. */
void msg_dispose(struct port *p, struct type *t, const struct msg *m, int status)
{
	(void)t;
	if (m->reply && !pending_complete(p, m->reply, status, NULL, 0))
		count_one(&p->late_answers, 1);
	if (m->len > MSG_INLINE)
		mem_free(m->body.big, m->len);
}

static void drop_oldest(struct port *p, struct cell *c, uint32_t gen, struct type *t, bool *dropped)
{
	struct slot *slot;

	*dropped = mailbox_drop(&c->mailbox, &p->room, gen, &slot) == MB_TAKEN;
	if (!*dropped)
		return;
	count_one(&p->types[t->index].dropped_oldest, 1);
	msg_dispose(p, t, &slot->msg, NOH_FULL);
	mailbox_release(slot);
}

/* Accepted already: only a drop_oldest mailbox still enforces its capacity here. */
int sched_deliver(struct port *p, struct cell *c, uint32_t gen, const struct msg *m)
{
	struct type *t = cell_type(p->sched, c);
	uint32_t capacity = t->shared ? t->capacity : UINT32_MAX;

	for (;;) {
		bool dropped;

		switch (mailbox_push(&c->mailbox, &p->room, gen, capacity, m)) {
		case MB_PUSHED_WAKE:
			sched_enqueue(p, c);
			/* fall through */
		case MB_PUSHED:
			count_one(&p->types[t->index].accepted, 1);
			return NOH_OK;
		case MB_FULL:
			drop_oldest(p, c, gen, t, &dropped);
			if (!dropped)
				capacity = UINT32_MAX;   /* the oldest is not published yet */
			break;
		case MB_GONE:
			return NOH_EGONE;
		case MB_NOMEM:
			return NOH_ENOMEM;
		}
	}
}

/* Several from one sender. Returns how many went in; then *rc tells about the next. */
uint32_t sched_deliver_run(struct port *p, struct cell *c, uint32_t gen, const struct msg *msgs,
			   size_t stride, uint32_t n, int *rc)
{
	struct type *t = cell_type(p->sched, c);
	uint32_t done = 0;

	*rc = NOH_OK;
	while (done < n && *rc == NOH_OK) {
		const struct msg *m = (const struct msg *)(const void *)((const char *)msgs + done * stride);
		uint32_t k = n - done;

		if (t->shared) {
			*rc = sched_deliver(p, c, gen, m);
			done += *rc == NOH_OK;
			continue;
		}
		switch (mailbox_push_run(&c->mailbox, &p->room, gen, m, stride, &k)) {
		case MB_PUSHED_WAKE:
			sched_enqueue(p, c);
			/* fall through */
		case MB_PUSHED:
			count_one(&p->types[t->index].accepted, k);
			done += k;
			break;
		case MB_NOMEM:
			*rc = NOH_ENOMEM;
			break;
		default:
			*rc = NOH_EGONE;
		}
	}
	return done;
}

/* ── one turn ── */

static ALWAYS_INLINE void to_public(noh_msg *out, const struct msg *m)
{
	memcpy(&out->kind, &m->kind, 8);     /* kind and len stand side by side in both */
	out->body = turn_body(m);
	out->flags = m->reply != 0;      /* NOH_MSG_WANTS_REPLY */
	out->status = NOH_OK;
	out->ask = 0;
	out->reply_to = m->reply;
}

/* Nothing left for c once this turn is over: then its last message may be handed on. */
static ALWAYS_INLINE bool at_its_end(struct worker *w, struct cell *c, uint32_t budget)
{
	uint64_t word = load_relaxed(&c->mailbox.word);

	return budget > 1 && !(word & (MB_SYS | MB_WAIT)) && cell_plain(c) &&
	       !(w->mine.turn.so_far.flags & (TURN_STOP | TURN_RESTS)) &&
	       (mb_ring(word) == 0 || mb_tail(word) == mb_tail(load_relaxed(&c->mailbox.head)));
}

static void fail_turn(struct worker *w, struct cell *c, int rc)
{
	struct noh_turn *t = &w->mine.turn;
	struct port *p = &w->mine.port;

	turn_undo(w);
	for (uint32_t i = 0; i < t->msg_count; i++)
		if (t->msgs[i].reply_to &&
		    !pending_complete(p, t->msgs[i].reply_to, rc, NULL, 0))
			count_one(&p->late_answers, 1);
	count_one(&p->types[t->type->index].failed, t->msg_count);
	sched_logf(t->sched, NOH_WARN, noh_address(t), "turn failed: %s",
		   t->so_far.flags & TURN_REASON ? t->reason : noh_strerror(rc));
	(void)c;
}

/* NOH_OK: committed. NOH_FULL: undone, to be run again. Below zero: undone and failed; with
 * `retry`, undone only. */
static ALWAYS_INLINE int end_turn(struct worker *w, struct cell *c, int rc, uint32_t budget,
				  bool single, bool retry, struct effect **handed)
{
	struct noh_turn *t = &w->mine.turn;

	if (__builtin_expect(rc == NOH_OK || (rc > 0 && !(rc == NOH_FULL && t->so_far.full_on)), 1)) {
		*handed = turn_commit(w, c, at_its_end(w, c, budget), single);
		count_one(&t->counts->handled, single ? 1 : t->msg_count);
		return NOH_OK;
	}
	*handed = NULL;
	if (rc == NOH_FULL || retry) {
		turn_undo(w);
		return rc;
	}
	fail_turn(w, c, rc);
	return rc;
}

static int one_turn(struct worker *w, struct cell *c, const noh_msg *msgs, uint32_t n, bool retry)
{
	struct noh_turn *t = &w->mine.turn;
	struct type *ty = cell_type(w->fixed.sched, c);
	struct effect *none;
	int rc;

	turn_begin(w, c, ty, msgs, n);
	if (ty->pub.on_message && (n == 1 || !ty->pub.on_batch))
		rc = ty->pub.on_message(t, msgs);
	else
		rc = ty->pub.on_batch(t, msgs, n);
	return end_turn(w, c, rc, 0, false, retry, &none);
}

/* ── resting ── */

#define CIRCLE_HOPS 10000

/* Does whoever c rests on rest, in the end, on c? All of a standing circle are PARKED, and the last
 * of them to park sees all the others so (park is seq_cst): he finds it. */
static bool in_circle(struct sched *s, const struct cell *c, uint32_t on)
{
	uint32_t me = cell_number(s, c);

	for (int hops = 0; hops < CIRCLE_HOPS; hops++) {
		struct cell *other;

		if (on == me)
			return true;
		if (on == 0)
			return false;
		other = cell_at(s, on);
		if (mb_state(load_seq_cst(&other->mailbox.word)) != MB_PARKED)
			return false;
		on = load_relaxed(&other->mailbox.link);
	}
	return false;
}

/* After a turn that filled a mailbox: c rests until that one is at half. */
static void block(struct worker *w, struct cell *c, uint32_t on, uint32_t gen)
{
	struct port *p = &w->mine.port;
	struct cell *to = cell_at(w->fixed.sched, on);
	struct type *ty = cell_type(w->fixed.sched, to);
	struct ext  *x = cell_ext(c);
	struct sysmsg *n;

	if (!x || load_acquire(&to->mailbox.gen) != gen || mailbox_depth(&to->mailbox) <= ty->half ||
	    (c->flags & (CELL_WAITING | CELL_BLOCKED)))
		return;
	n = node_take(p, SYS_ROOM);
	if (!n)
		return;
	n->token = ref_make(cell_number(w->fixed.sched, c), load_relaxed(&c->mailbox.gen)).bits;
	x->rests_on = on;
	c->flags |= CELL_BLOCKED;
	n = mailbox_ask_room(&to->mailbox, n);
	if (n)
		sched_wake_waiters(p, n);
}

static void rest_after_turn(struct worker *w, struct cell *c, int rc)
{
	struct noh_turn *t = &w->mine.turn;

	if (rc == NOH_FULL) {
		block(w, c, t->so_far.full_on, t->so_far.full_gen);
		return;
	}
	if (rc != NOH_OK)
		return;
	if (__builtin_expect(t->so_far.wait_token != 0, 0)) {
		if (pending_waits(t->sched, t->so_far.wait_token)) {
			c->ext->waits_for = t->so_far.wait_token;
			c->ext->rests_on = t->so_far.wait_on;
			c->flags |= CELL_WAITING;
		}
	} else if (__builtin_expect(t->so_far.block_on != 0, 0)) {
		block(w, c, t->so_far.block_on, t->so_far.block_gen);
	}
}

static ALWAYS_INLINE void after_turn(struct worker *w, struct cell *c, int rc)
{
	struct noh_turn *t = &w->mine.turn;

	if (__builtin_expect(rc == NOH_FULL || (t->so_far.flags & TURN_RESTS), 0))
		rest_after_turn(w, c, rc);
}

/* True: c is parked, and not ours any more. */
static bool rest(struct worker *w, struct cell *c)
{
	struct sched *s = w->fixed.sched;
	uint32_t on = c->ext->rests_on;

	store_relaxed(&c->mailbox.link, on);
	if (!mailbox_park(&c->mailbox))
		return false;
	if (!in_circle(s, c, on) || !mailbox_wake(&c->mailbox))
		return true;
	c->flags &= (uint8_t)~CELL_BLOCKED;
	if (c->flags & CELL_WAITING)
		(void)pending_complete(&w->mine.port, c->ext->waits_for, NOH_ECYCLE, NULL, 0);
	return false;
}

/* ── messages that come back ── */

static bool redo_add(struct cell *c, const noh_msg *m, const struct msg *owned, bool in_front)
{
	struct ext *x = cell_ext(c);
	struct redo *r = x ? mem_alloc(sizeof *r) : NULL;

	if (!r)
		return false;
	r->msg = *owned;
	r->flags = m->flags;
	r->status = m->status;
	r->ask = m->ask;
	r->next = NULL;
	c->flags |= CELL_EXTRA;
	if (!x->redo)
		x->redo_end = &x->redo;
	if (in_front) {
		r->next = x->redo;
		if (!x->redo)
			x->redo_end = &r->next;
		x->redo = r;
	} else {
		*x->redo_end = r;
		x->redo_end = &r->next;
	}
	return true;
}

/* Keep a message for later; if there is no memory for that, it fails. */
static void keep(struct worker *w, struct cell *c, const noh_msg *m, const struct msg *owned,
		 bool in_front)
{
	if (redo_add(c, m, owned, in_front))
		return;
	count_one(&w->mine.port.types[load_relaxed(&c->type)].failed, 1);
	msg_dispose(&w->mine.port, NULL, owned, NOH_ENOMEM);
}

/* A message out of order: answer, timer, or one that comes again. */
static void serve_extra(struct worker *w, struct cell *c, const noh_msg *m, const struct msg *owned,
			bool again)
{
	int rc;

	if (c->flags & (CELL_BLOCKED | CELL_WAITING)) {
		keep(w, c, m, owned, again);
		return;
	}
	rc = one_turn(w, c, m, 1, false);
	if (rc == NOH_FULL)
		keep(w, c, m, owned, true);
	else if (owned->len > MSG_INLINE)
		mem_free(owned->body.big, owned->len);
	after_turn(w, c, rc);
}

static bool refuses(const struct cell *c)
{
	return (c->flags & CELL_BROKEN) || (c->ext && c->ext->forced);
}

/* What waits for an actor that is being thrown out, or that could not be activated. */
static void refuse(struct worker *w, struct cell *c, const struct msg *m)
{
	struct type_counts *counts = &w->mine.port.types[load_relaxed(&c->type)];

	if (c->flags & CELL_BROKEN) {
		count_one(&counts->failed, 1);
		msg_dispose(&w->mine.port, NULL, m, NOH_EFAILED);
	} else {
		count_one(&counts->dropped_forced, 1);
		msg_dispose(&w->mine.port, NULL, m, NOH_EGONE);
	}
}

static void serve_redo(struct worker *w, struct cell *c)
{
	struct ext  *x = c->ext;
	struct redo *r = x->redo;
	struct redo  copy = *r;
	noh_msg m;

	x->redo = r->next;
	if (!x->redo)
		x->redo_end = &x->redo;
	mem_free(r, sizeof *r);
	if (refuses(c)) {
		refuse(w, c, &copy.msg);
		return;
	}
	to_public(&m, &copy.msg);
	m.flags = copy.flags;
	m.status = copy.status;
	m.ask = copy.ask;
	serve_extra(w, c, &m, &copy.msg, true);
}

/* ── system lane ── */

static void activate(struct worker *w, struct cell *c);

static void serve_sys_message(struct worker *w, struct cell *c, struct sysmsg *n)
{
	struct msg owned = { .kind = n->kind, .len = n->len };
	noh_msg m = { .kind = n->kind, .len = n->len, .status = n->status, .ask = n->token,
		      .flags = NOH_MSG_ANSWER };

	if (n->len > SYS_INLINE && n->len > MSG_INLINE) {
		owned.body.big = n->body.big;
		n->len = 0;              /* now ours */
	} else if (n->len > SYS_INLINE) {
		memcpy(owned.body.bytes, n->body.big, n->len);
	} else {
		memcpy(owned.body.bytes, n->body.bytes, n->len);
	}
	m.body = turn_body(&owned);
	if (n->op == SYS_TIMER) {
		m.flags = NOH_MSG_TIMER;
		m.ask = 0;
		if (!clock_take_schedule(w, c, n->token, &m.kind))
			return;
		owned.kind = m.kind;
	} else if ((c->flags & CELL_WAITING) && c->ext->waits_for == n->token) {
		c->flags &= (uint8_t)~CELL_WAITING;
	}
	count_one(&w->mine.port.types[load_relaxed(&c->type)].accepted, 1);
	serve_extra(w, c, &m, &owned, false);
}

static void serve_sys(struct worker *w, struct cell *c, struct sysmsg *n)
{
	struct port *p = &w->mine.port;

	if (n->gen != load_relaxed(&c->mailbox.gen)) {
		node_undeliverable(p, n);
		return;
	}
	switch (n->op) {
	case SYS_ROOM:
		c->flags &= (uint8_t)~CELL_BLOCKED;
		break;
	case SYS_ANSWER:
	case SYS_TIMER:
		if (!(c->flags & CELL_BROKEN))
			serve_sys_message(w, c, n);
		break;
	case SYS_ACTIVATE:
		(void)pending_complete(p, n->token, c->flags & CELL_BROKEN ? NOH_EFAILED : NOH_OK, NULL,
				       0);
		break;
	case SYS_DEACTIVATE:
		if (!cell_ext(c)) {
			(void)pending_complete(p, n->token, NOH_ENOMEM, NULL, 0);
			break;
		}
		c->flags |= CELL_STOP;
		if (n->status) {
			c->ext->forced = true;
			c->flags |= CELL_EXTRA;
		}
		n->next = c->ext->goodbyes;
		c->ext->goodbyes = n;
		return;                          /* answered when it is gone */
	}
	node_free(p, n);
}

static void serve_sys_lane(struct worker *w, struct cell *c)
{
	struct sysmsg *list = mailbox_sys_take(&c->mailbox);

	for (struct sysmsg *n = list; n; n = n->next)
		if (n->op == SYS_SPAWN && n->gen == load_relaxed(&c->mailbox.gen) && cell_ext(c))
			c->ext->parent = (noh_actor){ n->token };
	if (list && load_relaxed(&c->life) != NOH_ACTIVE && !(c->flags & CELL_BROKEN))
		activate(w, c);
	while (list) {
		struct sysmsg *next = list->next;

		serve_sys(w, c, list);
		list = next;
	}
}

/* ── the mailbox ── */

/* ── windows: batches and coalescing ── */

struct coalesce { uint64_t key, revision; bool is, gone; };

/* Of the messages with one key only the highest revision stays, the latest of equals (MB-07). */
static uint32_t coalesce(struct worker *w, struct type *t, struct slot **slots, uint32_t n)
{
	struct coalesce of[WINDOW_MAX];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct msg *m = &slots[i]->msg;

		of[i].gone = false;
		of[i].is = t->pub.kinds && m->kind < t->pub.kind_count &&
			   (t->pub.kinds[m->kind].flags & NOH_KIND_COALESCE);
		if (!of[i].is)
			continue;
		t->pub.kinds[m->kind].coalesce(turn_body(m), m->len, &of[i].key, &of[i].revision);
		for (uint32_t j = 0; j < i; j++) {
			if (of[j].gone || !of[j].is || slots[j]->msg.kind != m->kind ||
			    of[j].key != of[i].key)
				continue;
			if (of[j].revision > of[i].revision)
				of[i].gone = true;
			else
				of[j].gone = true;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		if (of[i].gone) {
			count_one(&w->mine.port.types[t->index].coalesced, 1);
			msg_dispose(&w->mine.port, t, &slots[i]->msg, NOH_OK);
			mailbox_release(slots[i]);
		} else {
			slots[kept++] = slots[i];
		}
	}
	return kept;
}

static void window_done(struct slot **slots, const noh_msg *msgs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (msgs[i].len > MSG_INLINE)
			mem_free(slots[i]->msg.body.big, msgs[i].len);
		mailbox_release(slots[i]);
	}
}

/* The actor cannot go on with the rest of the window now. */
static void window_keep(struct worker *w, struct cell *c, uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < n; i++) {
		keep(w, c, &w->mine.msgs[i], &w->mine.window[i]->msg, false);
		mailbox_release(w->mine.window[i]);
	}
}

static uint32_t serve_part(struct worker *w, struct cell *c, uint32_t at, uint32_t n, bool retry)
{
	int rc = one_turn(w, c, &w->mine.msgs[at], n, retry);

	if (rc == NOH_FULL || (rc < 0 && retry)) {
		if (rc == NOH_FULL)
			after_turn(w, c, rc);
		return 0;
	}
	window_done(&w->mine.window[at], &w->mine.msgs[at], n);
	after_turn(w, c, rc);
	return n;
}

static bool resting(const struct cell *c)
{
	return (c->flags & (CELL_BLOCKED | CELL_WAITING)) != 0;
}

/* Messages that only read are not mixed with others in a batch. */
static uint32_t batch_length(struct worker *w, struct type *t, uint32_t at, uint32_t n)
{
	uint32_t part = 1;

	if (t->reads && type_reads(t, w->mine.msgs[at].kind))
		return 1;
	while (at + part < n && part < BATCH_MAX &&
	       !(t->reads && type_reads(t, w->mine.msgs[at + part].kind)))
		part++;
	return part;
}

static void serve_window(struct worker *w, struct cell *c, struct type *t, uint32_t n)
{
	uint32_t at = 0;

	if (t->coalesces)
		n = coalesce(w, t, w->mine.window, n);
	for (uint32_t i = 0; i < n; i++)
		to_public(&w->mine.msgs[i], &w->mine.window[i]->msg);
	while (at < n && !resting(c)) {
		uint32_t part = t->pub.on_batch ? batch_length(w, t, at, n) : 1, end;

		if (part > 1 && serve_part(w, c, at, part, true)) {
			at += part;
			continue;
		}
		/* One message, or a batch that failed: message by message. */
		end = at + part;
		while (at < end && !resting(c) && serve_part(w, c, at, 1, false))
			at++;
		if (at < end)
			break;
	}
	window_keep(w, c, at, n);
}

/* ── the actor ── */

/* Who rests until there is room here is woken in small groups: all at once they would only fill the
 * mailbox to its limit and be refused. A group that left the mailbox empty was too small, one that
 * filled it too large. */
static void wake_some(struct worker *w, struct cell *c, struct type *t, uint32_t waiting)
{
	struct sysmsg *n, *first = NULL;
	struct ext *x = c->ext;

	if (waiting > t->half) {                 /* the flag stays up */
		if (x && x->room_woken && waiting >= t->capacity && x->room_batch > 1)
			x->room_batch /= 2;
		if (x)
			x->room_woken = false;
		return;
	}
	n = mailbox_take_waiters(&c->mailbox);
	x = n ? cell_ext(c) : x;
	if (!x) {                                /* only outside threads; or no memory to be careful */
		sched_wake_waiters(&w->mine.port, n);
		return;
	}
	if (!x->room_queue)
		x->room_end = &x->room_queue;
	for (*x->room_end = n; n; n = n->next)
		x->room_end = &n->next;
	if (!x->room_woken || waiting == 0) {
		if (waiting == 0 && x->room_woken && x->room_batch < t->half)
			x->room_batch *= 2;
		if (x->room_batch == 0)
			x->room_batch = 1;
		x->room_woken = true;
		n = first = x->room_queue;
		for (uint32_t i = 1; n && n->next && i < x->room_batch; i++)
			n = n->next;
		if (n) {
			x->room_queue = n->next;
			n->next = NULL;
		}
	}
	sched_wake_waiters(&w->mine.port, first);
	if (x->room_queue)
		c->flags |= CELL_EXTRA;
}

/* CELL_EXTRA goes when there is nothing extra any more. */
static void settle_extra(struct cell *c)
{
	if (!c->ext->redo && !c->ext->room_queue && !c->ext->forced)
		c->flags &= (uint8_t)~CELL_EXTRA;
}

static ALWAYS_INLINE void check_waiters(struct worker *w, struct cell *c, struct type *t)
{
	bool flagged = (load_relaxed(&c->mailbox.word) & MB_WAIT) != 0;

	if (__builtin_expect(flagged || (c->flags & CELL_EXTRA), 0)) {
		uint32_t waiting = mailbox_depth(&c->mailbox);

		if (flagged || (waiting <= t->half) != c->ext->room_woken)
			wake_some(w, c, t, waiting);
		if (c->flags & CELL_EXTRA)
			settle_extra(c);
	}
}

enum next { AGAIN, GONE };

static enum next nothing_waits(struct worker *w, struct cell *c, struct type *t)
{
	uint64_t word = load_relaxed(&c->mailbox.word);

	if ((word & MB_WAIT) || (c->flags & CELL_EXTRA)) {
		wake_some(w, c, t, 0);
		if (c->flags & CELL_EXTRA)
			settle_extra(c);
		if (c->ext && c->ext->room_queue) {      /* some still rest: come back for them */
			sched_enqueue(&w->mine.port, c);
			return GONE;
		}
	}
	if (word & (MB_WAIT | MB_SYS))
		return AGAIN;
	if (c->flags & (CELL_STOP | CELL_BROKEN))
		return life_deactivate(w, c) ? GONE : AGAIN;
	store_relaxed(&c->last_active, w->mine.now_ds);
	return mailbox_idle(&c->mailbox, &w->mine.port.room, t->shared) ? GONE : AGAIN;
}

static uint32_t fill_window(struct worker *w, struct cell *c, struct type *t, struct slot *first)
{
	uint32_t n = 1, max = t->coalesces ? WINDOW_MAX : BATCH_MAX;

	w->mine.window[0] = first;
	while (n < max && mailbox_take(&c->mailbox, &w->mine.port.room, t->shared,
				       &w->mine.window[n]) == MB_TAKEN)
		n++;
	return n;
}

static void activate(struct worker *w, struct cell *c)
{
	if (life_activate(w, c))
		after_turn(w, c, NOH_OK);
}

/* The end of a turn over one message. Returns the actor to go on with if there was a hand-off. */
static struct cell *finish_message(struct worker *w, struct cell *c, struct type *ty,
				   const noh_msg *m, const struct msg *owned, struct slot *slot,
				   int rc, uint32_t budget, struct effect **in_hand)
{
	struct effect *handed;

	rc = end_turn(w, c, rc, budget, true, false, &handed);
	if (__builtin_expect(rc == NOH_FULL, 0))
		keep(w, c, m, owned, true);
	else if (m->len > MSG_INLINE)
		mem_free(owned->body.big, m->len);
	if (slot)
		mailbox_release(slot);
	if (handed) {
		*in_hand = handed;
		store_relaxed(&c->last_active, w->mine.now_ds);
		if (!mailbox_idle_in_place(&c->mailbox) &&
		    !mailbox_idle(&c->mailbox, &w->mine.port.room, ty->shared))
			sched_enqueue(&w->mine.port, c);
		return cell_at(w->fixed.sched, handed->cell);
	}
	after_turn(w, c, rc);
	return NULL;
}

/* One message: out of the mailbox (slot), or handed over by its sender. */
static ALWAYS_INLINE struct cell *serve_message(struct worker *w, struct cell *c, struct type *ty,
						const struct msg *owned, struct slot *slot,
						uint32_t budget, struct effect **in_hand)
{
	noh_msg m;

	to_public(&m, owned);
	turn_begin(w, c, ty, &m, 1);
	if (!slot)
		count_one(&w->mine.turn.counts->accepted, 1);
	return finish_message(w, c, ty, &m, owned, slot, ty->single(&w->mine.turn, &m), budget,
			      in_hand);
}

/* Message in hand, hand-off after hand-off: as long as nothing unusual happens, this is all there is
 * to a message between actors of one worker. Returns the actor to go on with the general way, with
 * *in_hand or without. */
static struct cell *serve_chain(struct worker *w, struct cell *c, struct effect **in_hand,
				uint32_t *budget)
{
	struct noh_turn *t = &w->mine.turn;
	struct effect *e = *in_hand;
	uint32_t left = *budget;
	noh_msg m = { .status = NOH_OK };        /* no answer, no timer, nobody waits */

	while (left > 1) {
		struct type *ty = cell_type(w->fixed.sched, c);
		struct effects *fx = t->fx;
		uint64_t word;
		int rc;

		if (!cell_plain(c) || ty->odd || e->msg.len > MSG_INLINE || e->msg.reply ||
		    (load_relaxed(&c->mailbox.word) & MB_SYS))
			break;
		memcpy(&m.kind, &e->msg.kind, 8);
		m.body = e->msg.body.bytes;
		turn_begin_plain(w, c, ty, &m, 1);
		count_one(&t->counts->accepted, 1);
		rc = ty->single(t, &m);
		word = load_relaxed(&c->mailbox.word);
		left--;
		if (rc != NOH_OK || (t->so_far.flags & ~(uint32_t)TURN_ADDRESS) || fx->count > 1 ||
		    !mb_in_place(word) || (fx->count && !turn_hand_on(w, fx->list))) {
			struct cell *next = finish_message(w, c, ty, &m, &e->msg, NULL, rc, left,
							   in_hand);

			if (!next)
				*in_hand = NULL;
			*budget = left;
			return next ? next : c;
		}
		if (t->so_far.state)
			c->flags |= CELL_DIRTY;
		count_one(&t->counts->handled, 1);
		store_relaxed(&c->last_active, w->mine.now_ds);
		bool idle = cas_acq_rel(&c->mailbox.word, &word,
					word ^ (uint64_t)(MB_IDLE ^ MB_BUSY) << MB_STATE_SHIFT);

		if (t->fx == fx) {               /* it wrote to nobody: the chain ends here */
			*in_hand = NULL;
			*budget = left;
			return idle ? NULL : c;
		}
		if (!idle)
			sched_enqueue(&w->mine.port, c);
		e = fx->list;
		c = cell_at(w->fixed.sched, e->cell);
		*in_hand = e;
	}
	*budget = left;
	return c;
}

enum ready { READY, LOOK_AGAIN, PARKED, NEVER_USED };

/* It has to rest before it could take the message in hand. */
static void put_down(struct worker *w, struct cell *c, struct effect **in_hand)
{
	const struct msg *owned = &(*in_hand)->msg;
	noh_msg m;

	to_public(&m, owned);
	count_one(&w->mine.port.types[load_relaxed(&c->type)].accepted, 1);
	keep(w, c, &m, owned, false);
	*in_hand = NULL;
}

/* Swept while nobody ever wrote to it: nothing to activate for. */
static bool never_used(const struct cell *c, uint64_t word, const struct effect *in_hand)
{
	return (c->flags & CELL_STOP) && !(word & (MB_SYS | MB_WAIT | MB_RING_MASK)) && !in_hand &&
	       !(c->ext && c->ext->redo);
}

/* Whatever comes before the next message: the system lane, resting, activation. */
static enum ready make_ready(struct worker *w, struct cell *c, struct effect **in_hand)
{
	if (load_relaxed(&c->mailbox.word) & MB_SYS)
		serve_sys_lane(w, c);
	if (resting(c)) {
		if (*in_hand)
			put_down(w, c, in_hand);
		return rest(w, c) ? PARKED : LOOK_AGAIN;
	}
	if (load_relaxed(&c->life) != NOH_ACTIVE && !(c->flags & CELL_BROKEN)) {
		if (never_used(c, load_relaxed(&c->mailbox.word), *in_hand))
			return NEVER_USED;
		activate(w, c);
		return LOOK_AGAIN;
	}
	return READY;
}

enum taken { MESSAGE, NO_MESSAGE, LEFT };

/* The next message of the mailbox, if it is to be handled alone. */
static enum taken take_message(struct worker *w, struct cell *c, struct type *t, struct slot **slot,
			       struct mb_cursor *cur, uint32_t *budget)
{
	uint32_t n;

	cur->id = 0;
	switch (mailbox_take(&c->mailbox, &w->mine.port.room, t->shared, slot)) {
	case MB_TAKEN:
		break;
	case MB_EMPTY:
		(*budget)++;             /* nothing was handled */
		return nothing_waits(w, c, t) == GONE ? LEFT : NO_MESSAGE;
	case MB_UNPUBLISHED:
		cpu_relax();
		sched_enqueue(&w->mine.port, c);
		return LEFT;
	}
	if (__builtin_expect(c->flags & (CELL_EXTRA | CELL_BROKEN), 0) && refuses(c)) {
		refuse(w, c, &(*slot)->msg);
		mailbox_release(*slot);
		return NO_MESSAGE;
	}
	if (!t->windowed) {
		if (!t->shared)
			mailbox_cursor(&c->mailbox, &w->mine.port.room, cur);
		return MESSAGE;
	}
	n = fill_window(w, c, t, *slot);
	serve_window(w, c, t, n);
	*budget = *budget > n ? *budget - n + 1 : 1;
	return NO_MESSAGE;
}

/* Serve c; returns the actor to go on with, or NULL. */
static struct cell *serve(struct worker *w, struct cell *c, struct effect **in_hand,
			  uint32_t *budget)
{
	struct type *t = cell_type(w->fixed.sched, c);
	struct mb_cursor cur = { .id = 0 };

	for (;;) {
		const struct msg *m = NULL;
		struct slot *slot = NULL;

		if (__builtin_expect((load_relaxed(&c->mailbox.word) & MB_SYS) || !cell_plain(c), 0)) {
			enum ready r = make_ready(w, c, in_hand);

			if (r == PARKED || (r == NEVER_USED && life_deactivate(w, c)))
				return NULL;
			cur.id = 0;
			if (r != READY)
				continue;
		}
		if (*in_hand) {
			m = &(*in_hand)->msg;
			*in_hand = NULL;
			if (__builtin_expect(c->flags & CELL_BROKEN, 0)) {
				count_one(&w->mine.port.types[t->index].accepted, 1);
				refuse(w, c, m);
				m = NULL;
			}
		} else if (__builtin_expect(c->flags & CELL_EXTRA, 0) && c->ext->redo) {
			serve_redo(w, c);
		} else if (cur.id && mailbox_take_next(&c->mailbox, &cur, &slot)) {
			m = &slot->msg;
		} else {
			enum taken got = take_message(w, c, t, &slot, &cur, budget);

			if (got == LEFT)
				return NULL;
			if (got == MESSAGE)
				m = &slot->msg;
		}
		if (m) {
			struct cell *next = serve_message(w, c, t, m, slot, *budget, in_hand);

			if (next) {
				(*budget)--;
				return next;
			}
		}
		check_waiters(w, c, t);
		/* Used up its slice; or it has given others enough to do that they should come first. */
		if (--*budget == 0 || hands_many(&w->hands)) {
			sched_enqueue(&w->mine.port, c);
			return NULL;
		}
	}
}

static void serve_all(struct worker *w, struct cell *c, struct effect *in_hand)
{
	uint32_t budget = SLICE;

	store_relaxed(&w->mine.turn.cell, c);
	store_relaxed(&w->shown.serving, 1);
	while (c) {
		if (in_hand) {
			c = serve_chain(w, c, &in_hand, &budget);
			if (!c)
				break;
		}
		c = serve(w, c, &in_hand, &budget);
	}
	store_relaxed(&w->shown.serving, 0);
}

void sched_serve(struct worker *w, struct cell *c)
{
	serve_all(w, c, NULL);
}

void sched_serve_hand(struct worker *w, struct effect *e)
{
	serve_all(w, cell_at(w->fixed.sched, e->cell), e);
}
