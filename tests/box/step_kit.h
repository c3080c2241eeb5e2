/* tests/box/step_kit.h - purses of money, and steps over them: what the tests of steps share. */
#ifndef NOH_TESTS_BOX_STEP_KIT_H
#define NOH_TESTS_BOX_STEP_KIT_H

#include "tests/box/kit.h"

enum { ADD, TAKE, GET, FAIL, GATE, TELL, WAIT_FOR, HEARD, KEEP, FAIL_LATE, BIG, READ, NOTE, STOP, ERASE, DEFER,
       SILENT, NO, ORDER, KINDS };

struct purse {
	int64_t  balance;
	uint64_t turns, notes, last_note;        /* NOTE: the numbers must rise by one */
	bool     disorder;
};
struct order { int64_t n; char to[24]; uint32_t kind; };     /* what TELL and WAIT_FOR say */

static int purse_message(noh_turn *t, const noh_msg *m)
{
	const struct purse *was = noh_look(t);
	int64_t n = m->len >= 8 ? *(const int64_t *)m->body : 0;
	noh_ask_options wait = { .answer_kind = HEARD, .wait = true, .timeout_ms = SOON };
	const struct order *o = m->body;
	struct purse *p;
	int rc = NOH_OK;

	if (m->kind == GET || m->kind == READ)
		return noh_reply(t, &was->balance, 8);
	if (m->kind == ORDER)                            /* how many notes, if they were in order */
		return noh_reply(t, &(int64_t){ was->disorder ? -1 : (int64_t)was->notes }, 8);
	if (m->kind == TAKE && was->balance < n) {
		int64_t has = was->balance;

		((struct purse *)noh_state(t))->balance = -1000000;      /* of which nothing may be left */
		EXPECT_EQ(noh_kv_put(t, "taken", 5, &n, 8), NOH_OK);
		EXPECT_EQ(noh_tell_to(t, "purse:told", ADD, &n, 8), NOH_OK);
		return noh_refuse(t, &has, 8);
	}
	if (m->kind == GATE)
		gate_pass();
	p = noh_state(t);
	p->turns++;
	switch (m->kind) {
	case ADD: p->balance += n; break;
	case TAKE: p->balance -= n; break;
	case TELL:
		p->balance -= o->n;
		rc = noh_tell_to(t, o->to, ADD, &o->n, 8);
		break;
	case WAIT_FOR: rc = noh_ask_to(t, o->to, o->kind, &o->n, 8, &wait, NULL); break;
	case HEARD: p->notes++; return NOH_OK;
	case KEEP:
		p->balance += n;
		rc = noh_kv_put(t, "kept", 4, &n, 8);
		if (rc == NOH_OK)
			rc = noh_schedule_once(t, GET, 1000000);
		break;
	case FAIL:
	case FAIL_LATE:
		p->balance += 77;
		(void)noh_kv_put(t, "kept", 4, &n, 8);
		(void)noh_tell_to(t, "purse:told", ADD, &n, 8);
		(void)noh_schedule_once(t, GET, 1000000);
		return noh_fail(t, "as it was told to");
	case NOTE:
		p->disorder |= (uint64_t)n != p->last_note + 1;
		p->last_note = (uint64_t)n;
		p->notes++;
		break;
	case STOP: rc = noh_stop_self(t); break;
	case ERASE: rc = noh_erase(t); break;
	case DEFER: EXPECT_EQ(noh_defer(t, m).bits, 0); break;
	case SILENT: EXPECT(noh_defer(t, m).bits != 0); return NOH_OK;   /* and never answers */
	case NO: return noh_refuse(t, m->body, m->len);
	}
	return rc == NOH_OK && (m->flags & NOH_MSG_WANTS_REPLY) ? noh_reply(t, &p->balance, 8) : rc;
}

static const noh_kind purse_kinds[KINDS] = { [READ] = { .name = "read", .flags = NOH_KIND_READ } };
static const noh_type purse_type = { .name = "purse", .state_size = sizeof(struct purse), .full_mode = NOH_BLOCK,
				     .mailbox_capacity = 1000, .on_message = purse_message };
static const noh_type shown_type = { .name = "shown", .state_size = sizeof(struct purse), .full_mode = NOH_BLOCK,
				     .mailbox_capacity = 1000, .on_message = purse_message,
				     .kinds = purse_kinds, .kind_count = KINDS };

/* ── steps ── */

static inline noh_part part_of(const char *address, uint32_t kind, const int64_t *n)
{
	return (noh_part){ address, kind, n, sizeof *n };
}
#define N(x) (&(const int64_t){ (x) })           /* as long as the block it stands in */

static inline int step_with(noh_box *box, const noh_part *parts, size_t count, const noh_call_options *o,
			    int64_t *first, int *which)
{
	noh_part_answer answers[64];
	int64_t room[64] = { 0 };
	size_t len = sizeof room;
	int rc = noh_step(box, parts, count, o, answers, room, &len);

	if (first)
		*first = rc >= 0 && len >= 8 ? room[0] : INT64_MIN;
	if (which)
		*which = -1;
	for (size_t i = 0; which && count <= 64 && i < count; i++)
		if (answers[i].status != NOH_OK)
			*which = (int)i;
	return rc;
}

static inline int step(noh_box *box, const noh_part *parts, size_t count)
{
	return step_with(box, parts, count, NULL, NULL, NULL);
}

/* n from one to the other, at once. */
static inline int move(noh_box *box, const char *from, const char *to, int64_t n)
{
	noh_part parts[2] = { part_of(from, TAKE, &n), part_of(to, ADD, &n) };

	return step(box, parts, 2);
}

static inline int64_t balance(noh_box *box, const char *address)
{
	return (int64_t)get(box, address, GET);
}

#endif
