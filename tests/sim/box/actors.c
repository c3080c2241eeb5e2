/* tests/sim/box/actors.c - who runs in the simulated box, and what they do with each kind of message. */
#include "tests/sim/box/sim.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

const struct sim_actor sim_actors[ACTORS] = {
	{ "acc:0", ACC }, { "acc:1", ACC }, { "acc:2", ACC }, { "acc:3", ACC }, { "acc:4", ACC },
	{ "acc:5", ACC }, { "log:0", LOG }, { "log:1", LOG }, { "last:0", LAST }, { "tmp:0", TMP },
	{ "tmp:1", TMP }, { "tmp:2", TMP }, { "vol:0", VOL }, { "vol:1", VOL },
};
const char *const sim_kind_names[SIM_KINDS] = {
	"add", "get", "read", "move", "credit", "via", "relay", "note", "ask", "answered", "arm", "tick",
	"every", "beat", "quiet", "put", "del", "erase", "fail", "fail late", "set", "stop", "burst", "look",
	"step", "refuse"
};

#define RETRIES 50                       /* two whose mailboxes are full of each other would go on for ever */

struct doing {
	noh_turn *t;
	unsigned  a;
	uint32_t  v;                     /* the version this turn makes; 0: none so far */
	struct sim_state *s;
};

static unsigned actor_of(noh_turn *t)
{
	for (unsigned a = 0; a < ACTORS; a++)
		if (strcmp(noh_address(t), sim_name(a)) == 0)
			return a;
	sim_violation("%s runs, and nobody wrote to it", noh_address(t));
}

/* ── what turns are made of ── */

static void change(struct doing *d)
{
	if (d->v)
		return;
	d->s = noh_state(d->t);
	d->v = model_version(d->a);
	d->s->version = d->v;
	events_tell(d->t, d->v);
	memset(d->s->pad, (int)(d->v & 0xff), sizeof d->s->pad);
}

static uint32_t current(const struct doing *d)   /* what an answer of this turn tells */
{
	return d->v ? d->v : sim->tip[d->a];
}

static int answer(struct doing *d, const noh_msg *m)
{
	uint32_t out[2] = { 1, current(d) };
	int rc = noh_reply_to(d->t, m, out, sizeof out);

	return rc == NOH_NOBODY ? NOH_OK : rc;
}

/* NOH_FULL of a mailbox that drops the newest is an answer; the message was never sent. */
static int tell(struct doing *d, unsigned to, enum sim_kind kind, struct sim_body *b)
{
	int rc;

	b->uid = model_send(d->a, to, d->v, is_durable(d->a) && is_durable(to));
	if (d->v) {
		b->count = 1;
		b->known[0] = d->v;
	}
	rc = noh_tell_to(d->t, sim_name(to), kind, b, sizeof *b);
	if (rc != NOH_OK)
		sim->message[b->uid].recorded = false;
	return rc == NOH_FULL && sim_actors[to].type != ACC ? NOH_OK : rc;
}

static int burst(struct doing *d, const struct sim_body *b)
{
	int rc = NOH_OK;
	uint32_t count = 2 + b->amount % 6;

	if (count > 3 * sim->plan.capacity)
		count = 3 * sim->plan.capacity;  /* above four times the capacity it never goes in */
	for (uint32_t i = 0; rc == NOH_OK && i < count; i++) {
		unsigned to = (b->target + (i & b->amount >> 3 & 1)) % sim->plan.targets;
		struct sim_body note = { .op = 0, .amount = b->amount + i };

		if (to != d->a)
			rc = tell(d, to, sim_actors[to].type == LAST ? K_SET : K_NOTE, &note);
	}
	return rc;
}

uint64_t actors_entry_sum(const void *key, size_t key_len, const void *value, size_t len)
{
	return XXH3_64bits_withSeed(value, len, XXH3_64bits(key, key_len));
}

static void check_entries(struct doing *d, const struct sim_state *s)
{
	const void *key = NULL, *value;
	size_t key_len = 0, len;
	uint64_t sum = 0;

	while (noh_kv_next(d->t, &key, &key_len, &value, &len) == NOH_OK)
		sum += actors_entry_sum(key, key_len, value, len);
	if (sum != s->entries)
		sim_violation("%s: its entries are not those of its state", sim_name(d->a));
}

static int put(struct doing *d, const struct sim_body *b, bool put)
{
	static const size_t sizes[] = { 0, 1, 40, 41, 500, 4000, 17000 };
	static uint8_t value[17000];
	char key[16];
	size_t key_len = (size_t)snprintf(key, sizeof key, "e%u", b->amount % 5);
	size_t len = sizes[b->amount / 5 % (sizeof sizes / sizeof sizes[0])];
	const void *old;
	size_t old_len;

	change(d);
	if (noh_kv_get(d->t, key, key_len, &old, &old_len) == NOH_OK)
		d->s->entries -= actors_entry_sum(key, key_len, old, old_len);
	if (!put) {
		(void)noh_kv_delete(d->t, key, key_len);
		return NOH_OK;
	}
	memset(value, (int)(d->v & 0xff), len);
	d->s->entries += actors_entry_sum(key, key_len, value, len);
	return noh_kv_put(d->t, key, key_len, value, len);
}

/* A failure that tells what the state is. */
static int fail(struct doing *d)
{
	return -1000000 - (int)sim->tip[d->a];
}

/* After all that is undone: what the state was before. */
static int say_no(struct doing *d)
{
	uint32_t out[2] = { 1, sim->tip[d->a] };
	struct sim_body b = { .amount = 7 };

	change(d);
	d->s->balance += 1000;
	(void)put(d, &b, true);
	(void)noh_schedule_once(d->t, K_TICK, 1);
	return noh_refuse(d->t, out, sizeof out);
}

static int heard(struct doing *d, const noh_msg *m)      /* an answer to K_ASK */
{
	const uint32_t *in = m->body;
	struct sim_body b = { .count = 1 };

	if (m->status != NOH_OK || m->len != 8)
		return NOH_OK;
	b.known[0] = in[1];
	change(d);
	b.uid = 0;
	for (unsigned i = 0; i < CAUSES; i++)
		if (!sim->version[d->v].causes[i]) {
			sim->version[d->v].causes[i] = b.known[0];
			break;
		}
	return NOH_OK;
}

static int timer(struct doing *d, uint32_t kind)
{
	const struct sim_state *s = noh_look(d->t);

	if (kind == K_TICK ? !s->armed : !s->every)
		sim_violation("%s: a schedule fires that is not there", sim_name(d->a));
	change(d);
	if (kind == K_TICK)
		d->s->armed = 0;
	*(kind == K_TICK ? &seen->ticks : &seen->beats) += 1;
	return NOH_OK;
}

/* ── the durable ones ── */

/* To others. */
static int send_on(struct doing *d, uint32_t kind, const struct sim_body *b, struct sim_body *out)
{
	switch (kind) {
	case K_MOVE:
		d->s->balance -= b->amount;
		return tell(d, b->target, K_CREDIT, out);
	case K_VIA:
		return tell(d, VOL_FIRST + b->amount % 2, K_RELAY, out);
	case K_ASK:
		out->uid = model_send(d->a, b->target, d->v, is_durable(b->target));
		return noh_ask_to(d->t, sim_name(b->target), K_GET, out, sizeof *out,
				  &(noh_ask_options){ .answer_kind = K_ANSWERED, .timeout_ms = 5000,
						      .wait = b->amount % 4 == 0 }, NULL);
	case K_BURST:
		return burst(d, b);
	}
	return NOH_OK;
}

/* To itself. */
static int do_alone(struct doing *d, uint32_t kind, const struct sim_body *b)
{
	switch (kind) {
	case K_STEP:
		if (sim_actors[d->a].type == ACC && b->target < 2)
			d->s->balance += b->target ? b->amount : -(int64_t)b->amount;
		return NOH_OK;
	case K_CREDIT:
		d->s->balance += b->amount;
		return NOH_OK;
	case K_ARM:
		d->s->armed = 1;
		return noh_schedule_once(d->t, K_TICK, b->amount);
	case K_EVERY:
		d->s->every = 1;
		return noh_schedule_every(d->t, K_BEAT, 10 + b->amount);
	case K_QUIET:
		d->s->every = 0;
		return noh_schedule_cancel(d->t, K_BEAT);
	case K_PUT: case K_DEL:
		check_entries(d, d->s);
		return put(d, b, kind == K_PUT);
	case K_ERASE:
		sim->version[d->v].erased = true;
		seen->erased++;
		return noh_erase(d->t);
	case K_STOP:
		return noh_stop_self(d->t);
	}
	return NOH_OK;
}

static int fail_late(struct doing *d, const noh_msg *m, struct sim_body *out)
{
	const struct sim_body *b = m->body;

	d->s->balance += 1000;
	(void)put(d, b, true);
	(void)noh_schedule_once(d->t, K_TICK, 1);
	if (!sim->several[b->op].count)
		(void)tell(d, b->target, K_NOTE, out);
	(void)answer(d, m);
	return noh_fail(d->t, "as asked");
}

static int handle(struct doing *d, const noh_msg *m)
{
	const struct sim_body *b = m->body;
	struct sim_body out = { .op = 0, .amount = 0 };
	int rc;

	if (m->flags & NOH_MSG_TIMER)
		return timer(d, m->kind);
	if (m->flags & NOH_MSG_ANSWER)
		return heard(d, m);
	if (m->kind == K_GET || m->kind == K_READ)
		return answer(d, m);
	if (m->kind == K_FAIL)
		return fail(d);
	if (m->kind == K_REFUSE)
		return say_no(d);
	change(d);
	model_handles(d->a, d->v, b);
	out.op = b->op;
	out.amount = b->amount;
	out.target = b->target;
	if (m->kind == K_FAIL_LATE)
		return fail_late(d, m, &out);
	rc = send_on(d, m->kind, b, &out);
	if (rc == NOH_OK)
		rc = do_alone(d, m->kind, b);
	if (rc == NOH_OK)
		return answer(d, m);
	if (rc == NOH_FULL && ++sim->op[b->op].retries > RETRIES)
		return noh_fail(d->t, "full again and again");
	return rc;
}

static int batch(noh_turn *t, const noh_msg *msgs, uint32_t n)
{
	struct doing d = { .t = t, .a = actor_of(t) };
	int rc = NOH_OK;

	steps_nest();
	model_enter(d.a, noh_look(t));
	for (uint32_t i = 0; rc == NOH_OK && i < n; i++) {
		model_hears(d.a, &msgs[i], msgs[i].body);
		rc = handle(&d, &msgs[i]);
	}
	steps_nest();
	model_leave(d.a, d.v, rc, d.s);
	return rc;
}

static int one(noh_turn *t, const noh_msg *m)
{
	return batch(t, m, 1);
}

/* ── the volatile ones: they pass on what they hear, and remember whom it was about ── */

static int relay(noh_turn *t, const noh_msg *m)
{
	struct doing d = { .t = t, .a = actor_of(t) };
	const struct sim_body *b = m->body;
	uint32_t out[1 + ACTORS] = { 0 };
	int rc = NOH_OK;

	model_enter(d.a, NULL);
	model_hears(d.a, m, b);
	if (m->kind == K_LOOK || m->kind == K_GET || m->kind == K_READ) {
		const struct sim_known *k = noh_look(t);

		for (unsigned a = 0; a < ACTORS; a++)
			if (k->version[a])
				out[1 + out[0]++] = (uint32_t)k->version[a];
		rc = m->reply_to ? noh_reply(t, out, 4 * (1 + (size_t)out[0])) : NOH_OK;
	} else {
		struct sim_known *k = noh_state(t);
		struct sim_body on = *b;

		for (unsigned i = 0; i < b->count && i < CAUSES; i++)
			k->version[sim->version[b->known[i]].actor] = b->known[i];
		if (b->target < sim->plan.targets)
			rc = tell(&d, b->target, sim_actors[b->target].type == LAST ? K_SET : K_NOTE, &on);
	}
	steps_nest();
	model_leave(d.a, 0, rc, NULL);
	return rc;
}

/* ── types ── */

static void coalesce(const void *body, size_t len, uint64_t *key, uint64_t *revision)
{
	const struct sim_body *b = body;

	(void)len;
	*key = b->amount % 2;
	*revision = b->uid;
}

int actors_register(noh_box *box)
{
	static noh_kind kinds[SIM_KINDS];
	uint32_t cap = sim->plan.capacity;
	noh_type types[SIM_TYPES] = {
		[ACC] = { .name = "acc", .state_size = sizeof(struct sim_state), .on_message = one,
			  .full_mode = NOH_BLOCK },
		[LOG] = { .name = "log", .state_size = sizeof(struct sim_state), .on_batch = batch,
			  .full_mode = NOH_DROP_NEWEST },
		[LAST] = { .name = "last", .state_size = sizeof(struct sim_state), .on_message = one,
			   .full_mode = NOH_DROP_OLDEST, .kinds = kinds, .kind_count = SIM_KINDS },
		[TMP] = { .name = "tmp", .state_size = sizeof(struct sim_state), .on_message = one,
			  .full_mode = NOH_BLOCK, .kinds = kinds, .kind_count = SIM_KINDS },
		[VOL] = { .name = "vol", .state_size = sizeof(struct sim_known), .on_message = relay,
			  .full_mode = NOH_BLOCK, .is_volatile = true },
	};
	int rc = NOH_OK;

	for (unsigned k = 0; k < SIM_KINDS; k++)
		kinds[k] = (noh_kind){ .name = sim_kind_names[k] };
	kinds[K_READ].flags = NOH_KIND_READ;
	kinds[K_SET].flags = NOH_KIND_COALESCE;
	kinds[K_SET].coalesce = coalesce;
	kinds[K_TICK].flags = kinds[K_BEAT].flags = NOH_KIND_TIMER;
	for (unsigned i = 0; rc == NOH_OK && i < SIM_TYPES; i++) {
		types[i].mailbox_capacity = cap;
		types[i].idle_timeout_ms = sim->plan.faults & F_EVICT ? 100 + sim_below(2000) : 300000;
		rc = noh_register(box, &types[i]);
	}
	return rc;
}
