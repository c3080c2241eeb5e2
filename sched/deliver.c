/* sched/deliver.c - messages on their way into other actors' mailboxes.
 *
 * What was accepted is delivered, dropped by a full mode, or given back to say so: every end of a
 * message is counted (P8), and whoever waits for its answer hears of it.
 */
#include "sched/kin.h"
#include "sched/meter.h"
#include "sched/step.h"

void node_undeliverable(struct port *p, struct sysmsg *n)
{
	if (n->op == SYS_JOIN) {
		step_lost(p, n);
		return;
	}
	if (n->op == SYS_ANSWER)
		count_one(&p->late_answers, 1);
	else if (n->op == SYS_KIN_RESTART)
		kin_lost(p, n);
	else if (n->op == SYS_ACTIVATE || n->op == SYS_DEACTIVATE || n->op == SYS_UNSCHEDULE ||
		 (n->op == SYS_RESUME && n->token))
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
void msg_dispose(struct port *p, const struct msg *m, int status)
{
	if (m->reply && !pending_complete(p, m->reply, status, NULL, 0))
		count_one(&p->late_answers, 1);
	msg_free_body(m);
}

/* Make room by dropping the oldest. False: it is not published yet, so nobody can take it. */
static bool drop_oldest(struct port *p, struct cell *c, uint32_t gen, struct type *t)
{
	struct slot *slot;
	enum mb_take got = mailbox_drop(&c->mailbox, &p->room, gen, &slot);

	if (got == MB_TAKEN) {
		count_one(&p->types[t->index].dropped_oldest, 1);
		meter_full(p, t);
		msg_dispose(p, &slot->msg, NOH_FULL);
		mailbox_release(slot);
	}
	return got != MB_UNPUBLISHED;
}

/* Accepted already: only a drop_oldest mailbox still enforces its capacity here. */
int sched_deliver(struct port *p, struct cell *c, uint32_t gen, const struct msg *m)
{
	struct type *t = cell_type(p->sched, c);
	uint32_t capacity = t->shared ? t->capacity : UINT32_MAX;

	for (;;) {
		switch (mailbox_push(&c->mailbox, &p->room, gen, capacity, m)) {
		case MB_PUSHED_WAKE:
			sched_enqueue(p, c);
			/* fall through */
		case MB_PUSHED:
			meter_accepted(p, c, t, 1);
			return NOH_OK;
		case MB_FULL:
			if (!drop_oldest(p, c, gen, t))
				capacity = UINT32_MAX;
			break;
		case MB_GONE:
			return NOH_EGONE;
		case MB_NOMEM:
			return NOH_ENOMEM;
		}
	}
}

/* Several from one sender. Returns how many went in; then *rc tells about the next. */
uint32_t sched_deliver_run(struct port *p, struct cell *c, uint32_t gen, const struct msg *const *msgs,
			   uint32_t n, int *rc)
{
	struct type *t = cell_type(p->sched, c);
	uint32_t done = 0;

	*rc = NOH_OK;
	while (done < n && *rc == NOH_OK) {
		uint32_t k = n - done;

		if (t->shared) {
			*rc = sched_deliver(p, c, gen, msgs[done]);
			done += *rc == NOH_OK;
			continue;
		}
		switch (mailbox_push_run(&c->mailbox, &p->room, gen, msgs + done, &k)) {
		case MB_PUSHED_WAKE:
			sched_enqueue(p, c);
			/* fall through */
		case MB_PUSHED:
			meter_accepted(p, c, t, k);
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
