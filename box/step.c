/* box/step.c - noh.h, section 4: a step over several actors. Checked and copied here, taken by sched/step.c. */
#include "box/api.h"
#include "core/futex.h"
#include "sched/step.h"

#include <string.h>
#include <xxhash.h>

/* ── is it one? ── */

static int check_part(struct sched *s, const noh_part *part, struct address *a, struct type **type)
{
	struct type *t;
	int rc;

	if (!part->address || (!part->body && part->len))
		return error_set(NOH_EINVAL, "a part of a step without %s", part->address ? "its body" : "an address");
	rc = address_parse(a, part->address, strlen(part->address));
	if (rc != NOH_OK)
		return rc;
	*type = t = sched_find_type(s, a->type, a->type_len);
	if (!t)
		return error_set(NOH_ENOTYPE, "no type \"%.*s\" is registered (address \"%s\")", a->type_len, a->type,
				 part->address);
	if (t->refused)
		return error_set(t->refused, "type %s is refused: its stored actors are of a version that no "
				 "migration leads from; see the log of the start, or run noh check", t->name);
	return api_check_message(s, t, part->kind, part->body, part->len);
}

/* Everything that can be refused before anything happens; *bytes: of addresses and bodies, padded. */
static int check_parts(struct sched *s, const noh_part *parts, size_t count, bool keyed, size_t *bytes)
{
	bool kept = !keyed;
	size_t big = 0;

	if (count < 1 || count > NOH_STEP_PARTS || !parts)
		return error_set(NOH_EINVAL, "a step has 1 to %d parts, not %zu", NOH_STEP_PARTS, count);
	*bytes = 0;
	for (size_t i = 0; i < count; i++) {
		struct address a;
		struct type *t = NULL;
		int rc = check_part(s, &parts[i], &a, &t);

		if (rc != NOH_OK)
			return rc;
		*bytes += record_pad(strlen(parts[i].address) + 1) + record_pad(parts[i].len);
		big += parts[i].len + t->pub.state_size;
		if (big > NOH_STEP_BYTES)
			return error_set(NOH_ETOOBIG, "a step whose bodies and states take more than %u bytes (at %s, "
					 "part %zu of %zu)", NOH_STEP_BYTES, parts[i].address, i + 1, count);
		kept |= t->durable;
	}
	return kept ? NOH_OK : error_set(NOH_EINVAL, "a step's idempotency key is kept with one of its actors: one of them "
					 "has to be of a durable type");
}

/* ── a copy of it ── */

static void fill_part(struct sched *s, struct step_part *to, const noh_part *from, uint8_t **at)
{
	size_t len = strlen(from->address);
	struct address a;

	(void)address_parse(&a, from->address, len);
	memcpy(*at, from->address, len + 1);
	(*at)[a.type_len] = ':';
	to->address = (const char *)*at;
	to->address_len = len;
	to->type = sched_find_type(s, a.type, a.type_len);
	to->hash = address_hash(&a, s->seed);
	*at += record_pad(len + 1);
	to->msg = (noh_msg){ .kind = from->kind, .len = (uint32_t)from->len, .body = *at,
			     .flags = NOH_MSG_WANTS_REPLY, .reply_to = REPLY_STEP };
	if (from->len)
		memcpy(*at, from->body, from->len);
	*at += record_pad(from->len);
}

/* In the order of names: who names them in another order means the same. */
static uint64_t print_of(const struct step *s)
{
	uint64_t h = XXH3_64bits_withSeed(&s->count, sizeof s->count, 0x73746570);

	for (uint32_t i = 0; i < s->count; i++) {
		const struct step_part *p = &s->parts[s->answered[i]];

		h = XXH3_64bits_withSeed(p->address, p->address_len, h);
		h = XXH3_64bits_withSeed(&p->msg.kind, sizeof p->msg.kind, h);
		h = XXH3_64bits_withSeed(p->msg.body, p->msg.len, h);
	}
	return h;
}

/* The order in which all steps take their actors: by hash, and by name where that is the same. */
static int before(const struct step_part *a, const struct step_part *b)
{
	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return strcmp(a->address, b->address);
}

static int before_by_name(const struct step_part *a, const struct step_part *b)
{
	return strcmp(a->address, b->address);
}

typedef int before_fn(const struct step_part *a, const struct step_part *b);

/* A heap: parts come from outside, and qsort may allocate. */
static void sift(const struct step *s, uint32_t *order, before_fn *is_before, uint32_t at, uint32_t end)
{
	uint32_t child, it = order[at];

	while ((child = 2 * at + 1) < end) {
		if (child + 1 < end && is_before(&s->parts[order[child]], &s->parts[order[child + 1]]) < 0)
			child++;
		if (is_before(&s->parts[it], &s->parts[order[child]]) >= 0)
			break;
		order[at] = order[child];
		at = child;
	}
	order[at] = it;
}

static void sort(const struct step *s, uint32_t *order, before_fn *is_before)
{
	for (uint32_t i = s->count / 2; i-- > 0; )
		sift(s, order, is_before, i, s->count);
	for (uint32_t end = s->count; end-- > 1; ) {
		uint32_t last = order[0];

		order[0] = order[end];
		order[end] = last;
		sift(s, order, is_before, 0, end);
	}
}

/* Kept with the lowest name that keeps anything: the same one in whatever order they are named. */
static void set_key(struct step *s, uint8_t *at, const noh_call_options *o)
{
	uint32_t i = 0;

	memcpy(at, o->key, o->key_len);
	s->key = at;
	s->key_len = o->key_len;
	sort(s, s->answered, before_by_name);
	while (!s->parts[s->answered[i]].type->durable)
		i++;                             /* check_parts has seen one */
	s->keeper = s->answered[i];
	s->print = print_of(s);
}

static int put_in_order(struct step *s)
{
	sort(s, s->order, before);
	for (uint32_t i = 1; i < s->count; i++)
		if (before(step_part_at(s, i - 1), step_part_at(s, i)) == 0)
			return error_set(NOH_EINVAL, "%s is in one step twice", step_part_at(s, i)->address);
	return NOH_OK;
}

static int make(struct sched *s, const noh_part *parts, size_t count, const noh_call_options *o, struct step **step)
{
	size_t key = o && o->key ? o->key_len : 0, bytes = 0;
	int rc = check_parts(s, parts, count, key != 0, &bytes);
	struct step *x;
	uint8_t *at;

	if (rc != NOH_OK)
		return rc;
	bytes += sizeof *x + count * (sizeof x->parts[0] + 2 * sizeof *x->order + sizeof *x->answers) + record_pad(key);
	x = mem_zalloc(bytes);
	if (!x)
		return error_set(NOH_ENOMEM, "no memory for a step of %zu bytes", bytes);
	x->sched = s;
	x->bytes = bytes;
	x->count = (uint32_t)count;
	x->at_once = o && o->durability == NOH_MEMORY;
	store_relaxed(&x->refs, 2);
	x->answers = (noh_part_answer *)(void *)(x->parts + count);
	x->order = (uint32_t *)(void *)(x->answers + count);
	x->answered = x->order + count;
	at = (uint8_t *)(x->answered + count);   /* twice as many: it is aligned to 8 */
	for (uint32_t i = 0; i < x->count; i++) {
		fill_part(s, &x->parts[i], &parts[i], &at);
		x->order[i] = x->answered[i] = i;
	}
	if (key)
		set_key(x, at, o);
	rc = put_in_order(x);
	if (rc != NOH_OK)
		mem_free(x, bytes);
	else
		*step = x;
	return rc;
}

/* ── limits ── */

#define HAS_RATE (LIMIT_WAIT | LIMIT_REFUSE)

static void unadmit(struct port *p, struct step *x, uint32_t count)
{
	struct cell *c;
	uint32_t gen;

	for (uint32_t i = 0; i < count; i++) {
		struct step_part *part = &x->parts[i];

		if ((load_relaxed(&part->type->limits) & HAS_RATE) &&
		    sched_resolve(p, part->address, part->address_len, &c, &gen) == NOH_OK)
			limit_unadmit(p, c, part->type);
	}
}

/* A step holds other actors while it waits, so it never waits for a token: all of its parts have one now, or none is taken. */
static int admit(struct port *p, struct step *x)
{
	struct cell *c;
	uint32_t gen, i;
	int rc = NOH_OK;

	for (i = 0; i < x->count && rc == NOH_OK; i++) {
		struct step_part *part = &x->parts[i];

		if (!(load_relaxed(&part->type->limits) & HAS_RATE))
			continue;
		rc = sched_resolve(p, part->address, part->address_len, &c, &gen);
		if (rc == NOH_OK)
			rc = limit_admit(p, c, part->type);
	}
	if (rc != NOH_OK)
		unadmit(p, x, i - 1);
	return rc;
}

/* ── off it goes ── */

int noh_step_then(noh_box *box, const noh_part *parts, size_t count, const noh_call_options *o, noh_step_fn *done,
		  void *user)
{
	return api_step_then(box, parts, count, o, done, user, 0);
}

int api_step_then(noh_box *box, const noh_part *parts, size_t count, const noh_call_options *o, noh_step_fn *done,
		  void *user, uint64_t asked_by)
{
	struct sched *s = &box->sched;
	struct step *step = NULL;
	struct port *p;
	uint64_t token;
	int rc = api_running(box);

	if (rc == NOH_OK && o)
		rc = api_check_options(o);
	if (rc == NOH_OK && !done)
		rc = error_set(NOH_EINVAL, "noh_step_then without a function to call");
	if (rc == NOH_OK)
		rc = make(s, parts, count, o, &step);
	if (rc != NOH_OK)
		return rc;
	step->done = done;
	step->user = user;
	step->asked_by = asked_by;
	p = api_port(box);
	rc = p ? admit(p, step) : NOH_ESTOPPED;
	token = rc == NOH_OK ? pending_then(p, step_told, step) : 0;
	if (!token) {
		if (rc == NOH_OK)
			unadmit(p, step, step->count);
		if (p)
			sched_port_done(p);
		mem_free(step, step->bytes);
		return rc == NOH_OK ? error_set(NOH_ENOMEM, "no memory for another call") : rc;
	}
	step->token = token;
	step_start(p, step);             /* and it may be over already */
	pending_deadline(p, token, clock_due(s, o && o->timeout_ms ? o->timeout_ms : API_TIMEOUT_MS));
	sched_port_done(p);
	return NOH_OK;
}

/* ── and wait for it ── */

struct waiter {
	atomic_u32       over, refs;     /* the caller, and who tells him */
	int              status;
	noh_part_answer *answers;
	uint8_t         *room;
	size_t           size, len;
};

static void waiter_free(struct waiter *w)
{
	if (add_acq_rel(&w->refs, UINT32_MAX) == 1)
		mem_free(w, sizeof *w);
}

static void copy_answers(struct waiter *w, const noh_part_answer *answers, size_t count)
{
	w->len = 0;
	for (size_t i = 0; i < count; i++) {
		size_t len = answers[i].len;
		bool fits = w->len + len <= w->size;

		if (w->answers)
			w->answers[i] = (noh_part_answer){ answers[i].status, len && fits ? w->room + w->len : NULL, len };
		if (w->room && fits && len)
			memcpy(w->room + w->len, answers[i].body, len);
		w->len += len;
	}
}

static void tell_waiter(void *user, int status, const noh_part_answer *answers, size_t count)
{
	struct waiter *w = user;

	copy_answers(w, answers, count);
	w->status = status;
	store_seq_cst(&w->over, 1);
	futex_wake_all(&w->over);
	waiter_free(w);
}

int noh_step(noh_box *box, const noh_part *parts, size_t count, const noh_call_options *o, noh_part_answer *answers,
	     void *room, size_t *room_len)
{
	struct waiter *w;
	size_t len, size = room && room_len ? *room_len : 0;
	int rc = api_may_block("noh_step");

	if (rc != NOH_OK)
		return rc;
	w = mem_zalloc(sizeof *w);
	if (!w)
		return error_set(NOH_ENOMEM, "no memory to wait for a step");
	store_relaxed(&w->refs, 2);
	w->answers = answers;
	w->room = room;
	w->size = size;
	rc = noh_step_then(box, parts, count, o, tell_waiter, w);
	if (rc != NOH_OK) {
		mem_free(w, sizeof *w);
		return rc;
	}
	while (!load_seq_cst(&w->over))
		futex_wait(&w->over, 0, UINT64_MAX);
	rc = w->status;
	len = w->len;
	waiter_free(w);
	if (room_len)
		*room_len = len;
	if (rc < 0)
		return error_set(rc, "a step over %zu actors, %s first: %s", count, parts[0].address,
				 noh_strerror(rc));
	if (room_len && len > size)
		return error_set(NOH_ETOOBIG, "the answers of a step have %zu bytes, there is room for %zu", len, size);
	return rc;
}
