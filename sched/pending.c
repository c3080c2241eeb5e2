/* sched/pending.c - answers that somebody waits for.
 *
 * A token names a pending answer: its number in the slab and the generation it had. It travels with
 * the message (msg.reply) and is completed at most once: by the answer, by the deadline, or by
 * whoever finds that the message cannot be delivered. The state word decides the race:
 *
 *     gen 32 | FREE, WAITING, TAKEN, DONE
 *
 * A -> B  whoever takes it (WAITING -> TAKEN) sees how the asker filled it in.
 * C -> D  the blocked caller sees the answer before DONE.
 */
#include "sched/sched.h"

#include <string.h>

enum { FREE = 0, WAITING = 1, TAKEN = 2, DONE = 3 };

struct pending {
	atomic_u64   state;
	atomic_u32   link;             /* the slab's                                       */
	atomic_u32   event;            /* call: the caller sleeps on it                    */
	uint32_t     op;
	uint32_t     answer_kind;      /* ask                                              */
	noh_actor    asker;            /* ask                                              */
	uint64_t     number;           /* ask: what the asker calls it                     */
	atomic_u32   worker;           /* ask, then: whose wheel has its deadline          */
	atomic_u32   entry;            /* and where; a hint                                */
	noh_done_fn *done;             /* then                                             */
	void        *user;             /* then; call: where the answer goes                */
	size_t       room, len;        /* call                                             */
	int          status;           /* call                                             */
};

size_t pending_size(void)
{
	return (sizeof(struct pending) + 7) & ~(size_t)7;
}

size_t pending_link(void)
{
	return offsetof(struct pending, link);
}

/* An ask's token says so itself: most answers are to callers, and need not look. */
#define ASK (UINT64_C(1) << 31)

static inline uint32_t number_of(uint64_t token)
{
	return (uint32_t)token & ~(uint32_t)ASK;
}

static struct pending *at(struct sched *s, uint64_t token)
{
	return (struct pending *)slab_at(&s->pendings, number_of(token));
}

static inline uint64_t state_of(uint64_t token, unsigned what)
{
	return (token & UINT64_C(0xffffffff00000000)) | what;
}

static struct pending *pending_new(struct port *p, uint32_t op, uint64_t *token)
{
	uint32_t n = slab_take(&p->sched->pendings, &p->pendings);
	struct pending *e;

	if (!n)
		return NULL;
	e = (struct pending *)slab_at(&p->sched->pendings, n);
	*token = (((load_relaxed(&e->state) & UINT64_C(0xffffffff00000000)) + (UINT64_C(1) << 32)) &
		  ~TOKEN_OF_NET) + n;
	e->op = op;
	store_relaxed(&e->entry, 0);
	return e;
}

static void pending_free(struct port *p, uint64_t token)
{
	store_release(&at(p->sched, token)->state, state_of(token, FREE));
	slab_give(&p->sched->pendings, &p->pendings, number_of(token));
}

/* Not whether it was ever given out: that is on a line that everybody writes, and memory nobody has used says FREE. */
static bool valid(struct sched *s, uint64_t token)
{
	return !(token & TOKEN_OF_NET) && number_of(token) != 0 && number_of(token) < s->pendings.fixed.limit;
}

bool pending_waits(struct sched *s, uint64_t token)
{
	if (token & TOKEN_OF_NET)
		return true;             /* the network knows better, on its own thread */
	return valid(s, token) &&
	       load_acquire(&at(s, token)->state) == state_of(token, WAITING);
}

/* About an ask that is under way. A token that is over says nothing that matters: its answer goes
 * nowhere. */
static struct pending *ask_at(struct sched *s, uint64_t token)
{
	struct pending *e = (token & ASK) && pending_waits(s, token) ? at(s, token) : NULL;

	return e && e->op == PENDING_ASK ? e : NULL;
}

bool pending_is_ask(struct sched *s, uint64_t token)
{
	return ask_at(s, token) != NULL;
}

noh_actor pending_asker(struct sched *s, uint64_t token)
{
	struct pending *e = ask_at(s, token);

	return e ? e->asker : (noh_actor){ 0 };
}

uint32_t pending_answer_kind(struct sched *s, uint64_t token)
{
	struct pending *e = ask_at(s, token);

	return e ? e->answer_kind : 0;
}

uint64_t pending_number(struct sched *s, uint64_t token)
{
	struct pending *e = ask_at(s, token);

	return e ? e->number : 0;
}

void pending_set_number(struct sched *s, uint64_t token, uint64_t number)
{
	at(s, token)->number = number;
}

/* WAITING before the wheel knows it: a deadline that comes at once must find it so. */
static uint64_t arm(struct port *p, struct pending *e, uint64_t token, struct worker *w,
		    uint64_t due_ms)
{
	uint32_t entry;

	store_relaxed(&e->worker, w->fixed.index);
	store_release(&e->state, state_of(token, WAITING));                        /* A */
	entry = clock_add(w, due_ms, token, WHEEL_DEADLINE);
	if (!entry) {
		store_release(&e->state, state_of(token, FREE));
		slab_give(&p->sched->pendings, &p->pendings, number_of(token));
		return 0;
	}
	store_relaxed(&e->entry, entry);
	return token;
}

uint64_t pending_ask(struct worker *w, struct cell *c, uint32_t answer_kind, uint64_t due_ms)
{
	uint64_t token;
	struct pending *e = pending_new(&w->mine.port, PENDING_ASK, &token);

	if (!e)
		return 0;
	token |= ASK;
	e->answer_kind = answer_kind;
	e->asker = ref_make(cell_number(w->fixed.sched, c), load_relaxed(&c->mailbox.gen));
	e->number = token;
	return arm(&w->mine.port, e, token, w, due_ms);
}

uint64_t pending_call(struct port *p, void *answer, size_t room)
{
	uint64_t token;
	struct pending *e = pending_new(p, PENDING_CALL, &token);

	if (!e)
		return 0;
	e->user = answer;
	e->room = room;
	store_relaxed(&e->event, 0);
	store_release(&e->state, state_of(token, WAITING));                        /* A */
	return token;
}

uint64_t pending_then(struct port *p, noh_done_fn *done, void *user)
{
	uint64_t token;
	struct pending *e = pending_new(p, PENDING_THEN, &token);

	if (!e)
		return 0;
	e->done = done;
	e->user = user;
	store_relaxed(&e->worker, p->worker ? p->worker->fixed.index
					    : number_of(token) % p->sched->worker_count);
	store_release(&e->state, state_of(token, WAITING));                        /* A */
	return token;
}

/* After its message was accepted: a refusal must not race with a deadline of now. The answer may be
 * here already; then the deadline will find the token over. */
void pending_deadline(struct port *p, uint64_t token, uint64_t due_ms)
{
	struct pending *e = at(p->sched, token);
	uint32_t who = load_relaxed(&e->worker), entry;

	if (!pending_waits(p->sched, token) || who >= p->sched->worker_count)
		return;
	entry = clock_add(&p->sched->workers[who], due_ms, token, WHEEL_DEADLINE);
	if (entry)
		store_relaxed(&e->entry, entry);
	else
		(void)pending_complete(p, token, NOH_ENOMEM, NULL, 0);
}

static void complete_ask(struct port *p, struct pending *e, uint64_t token, int status,
			 const void *body, size_t len, struct msg *wrapped)
{
	struct sysmsg *n = node_take(p, SYS_ANSWER);
	noh_actor asker = e->asker;
	uint32_t  kind = e->answer_kind;
	uint64_t  number = e->number;

	pending_free(p, token);
	if (!n) {
		count_one(&p->dead_letters, 1);
		return;
	}
	n->kind = kind;
	n->token = number;
	n->status = status;
	if (wrapped) {
		n->len = wrapped->len;
		n->body.big = wrapped->body.big;
		wrapped->len = 0;                /* the envelope travels on */
	} else if (!node_set_body(n, body, len)) {
		n->status = NOH_ENOMEM;
	}
	sched_sys(p, cell_at(p->sched, ref_number(asker)), ref_gen(asker), n);
}

static void complete_call(struct pending *e, uint64_t token, int status, const void *body, size_t len)
{
	size_t n = len < e->room ? len : e->room;

	if (n)
		memcpy(e->user, body, n);
	e->len = len;
	e->status = status;
	store_release(&e->state, state_of(token, DONE));                           /* C */
	store_seq_cst(&e->event, 1);
	futex_wake_all(&e->event);   /* the memory stays, whatever the caller does meanwhile */
}

void pending_fetch(struct sched *s, uint64_t token)
{
	if (valid(s, token))
		__builtin_prefetch(at(s, token), 1);
}

bool pending_complete(struct port *p, uint64_t token, int status, const void *body, size_t len)
{
	uint64_t waiting = state_of(token, WAITING);
	struct pending *e;

	if (token & TOKEN_OF_NET) {
		p->sched->net.answer(p->sched->net.arg, p, token, 0, status, body, len);
		return true;
	}
	if (!valid(p->sched, token))
		return false;
	e = at(p->sched, token);
	if (!cas_acq_rel(&e->state, &waiting, state_of(token, TAKEN)))             /* B */
		return false;
	if (e->op == PENDING_CALL) {
		complete_call(e, token, status, body, len);
		return true;
	}
	clock_cancel(p->sched, load_relaxed(&e->worker), load_relaxed(&e->entry), token, WHEEL_DEADLINE);
	if (e->op == PENDING_ASK) {
		complete_ask(p, e, token, status, body, len, NULL);
	} else {
		noh_done_fn *done = e->done;
		void *user = e->user;

		pending_free(p, token);
		done(user, status, body ? body : "", len);
	}
	return true;
}

bool pending_answer_msg(struct port *p, uint64_t token, int status, struct msg *m)
{
	uint64_t waiting = state_of(token, WAITING);
	struct pending *e = ask_at(p->sched, token);

	if (!e || !cas_acq_rel(&e->state, &waiting, state_of(token, TAKEN)))       /* B */
		return false;
	clock_cancel(p->sched, load_relaxed(&e->worker), load_relaxed(&e->entry), token, WHEEL_DEADLINE);
	complete_ask(p, e, token, status, NULL, 0, m);
	return true;
}

bool pending_answerable(struct port *p, uint64_t token)
{
	struct sysmsg *n;

	if (__builtin_expect(p->nodes.count != 0, 1) || !pending_is_ask(p->sched, token))
		return true;
	n = node_take(p, SYS_ANSWER);
	if (n)
		node_free(p, n);
	return n != NULL;
}

void pending_expired(struct port *p, uint64_t token)
{
	(void)pending_complete(p, token, NOH_ETIMEOUT, NULL, 0);
}

void pending_drop(struct port *p, uint64_t token)
{
	uint64_t waiting = state_of(token, WAITING);
	struct pending *e = at(p->sched, token);

	if (!cas_acq_rel(&e->state, &waiting, state_of(token, TAKEN)))
		return;                         /* its deadline came first: the answer is under way */
	if (e->op != PENDING_CALL)
		clock_cancel(p->sched, load_relaxed(&e->worker), load_relaxed(&e->entry), token, WHEEL_DEADLINE);
	pending_free(p, token);
}

/* Blocks. The port is given back meanwhile: others may send through it. */
int pending_wait(struct sched *s, uint64_t token, uint64_t until, size_t *answer_len)
{
	struct pending *e = at(s, token);
	uint64_t state;
	struct port *p;
	int status;

	for (;;) {
		state = load_acquire(&e->state);                                   /* D */
		uint64_t now = clock_now_ns(&s->clock);

		if (state == state_of(token, DONE))
			break;
		if (now >= until && state == state_of(token, WAITING) &&
		    cas_acq_rel(&e->state, &state, state_of(token, TAKEN))) {
			e->status = error_set(NOH_ETIMEOUT, "no answer within the time given");
			e->len = 0;
			break;
		}
		futex_wait(&e->event, 0, now >= until ? 1000000u : until - now);
	}
	status = e->status;
	if (answer_len)
		*answer_len = e->len;
	p = sched_port(s);
	pending_free(p, token);
	sched_port_done(p);
	return status;
}

/* The box has stopped: whoever still waits hears so. */
void pending_end_all(struct port *p)
{
	uint32_t end = load_relaxed(&p->sched->pendings.shared.fresh);

	for (uint32_t n = 1; n < end; n++) {
		uint64_t state = load_acquire(&at(p->sched, n)->state);

		if ((uint32_t)state == WAITING)
			(void)pending_complete(p, (state & UINT64_C(0xffffffff00000000)) | n, NOH_ESTOPPED,
					       NULL, 0);
	}
}
