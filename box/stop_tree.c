/* box/stop_tree.c - trees stop from their leaves, the last spawned first, one after the other.
 *
 * A chain: each deactivation's answer starts the next. Who does not stop in its time is stopped by force; who does not even
 * then (it hangs in a turn) is left behind after the same time once more. A parent that is in storage, or on its way out of
 * it, holds its children together all the same: they are stopped, and before whoever is above it.
 */
#include "box/tree.h"
#include "core/plant.h"

#include <string.h>

#define LOOK_NS UINT64_C(20000000)         /* how often who waits is asked whether to go on */

struct stopper {
	noh_box     *box;
	noh_done_fn *done;
	void        *user;
	uint32_t     count, at;
	uint32_t     left;                 /* who did not stop even by force: the first of them, plus 1; 0: nobody */
	bool         by_force;
	size_t       bytes;
	uint32_t     from[];               /* where each address begins in the text behind it */
};

static const char *address_of(const struct stopper *st, uint32_t i)
{
	return (const char *)&st->from[st->count] + st->from[i];
}

/* Who is not in memory has stopped. */
static struct cell *find(struct port *p, const char *address, struct type **t, uint32_t *gen)
{
	struct address a;
	struct cell *c;

	if (address_parse(&a, address, address_len(address)) != NOH_OK || !(*t = sched_find_type(p->sched, a.type, a.type_len)))
		return NULL;
	epoch_enter(&p->epoch);
	c = sched_find(p, &a, *t, address_hash(&a, p->sched->seed), gen);
	if (c && cell_life(c) == NOH_NOT_ACTIVE && mb_state(load_acquire(&c->mailbox.word)) == MB_IDLE)
		c = NULL;
	epoch_leave(&p->epoch);
	return c;
}

static void stopped(void *user, int status, const void *answer, size_t len);

/* True: nobody is left. Else st is the answer's from here on. */
static bool stop_next(struct stopper *st, struct port *p)
{
	for (; st->at < st->count; st->at++, st->by_force = false) {
		struct type *t = NULL;
		uint32_t gen = 0;
		struct cell *c = find(p, address_of(st, st->at), &t, &gen);
		uint64_t token = c ? pending_then(p, stopped, st) : 0;
		struct sysmsg *n = token ? node_take(p, SYS_DEACTIVATE) : NULL;

		if (!n) {
			if (token)
				pending_drop(p, token);
			continue;
		}
		n->token = token;
		n->status = st->by_force;
		pending_deadline(p, token, clock_due(p->sched, t->sup.stop_ms));
		sched_sys(p, c, gen, n);
		return false;
	}
	return true;
}

/* Without a port: whoever is told may want one, and there are not many. */
static void finish(struct stopper *st)
{
	if (st->done && st->left)
		st->done(st->user, NOH_ETIMEOUT, address_of(st, st->left - 1), strlen(address_of(st, st->left - 1)));
	else if (st->done)
		st->done(st->user, NOH_OK, NULL, 0);
	mem_free(st, st->bytes);
}

static void stopped(void *user, int status, const void *answer, size_t len)
{
	struct stopper *st = user;
	struct port *p = sched_port(&st->box->sched);
	bool all;

	(void)answer;
	(void)len;
	if (status == NOH_ESTOPPED) {
		st->at = st->count;              /* the box ends: so do all */
	} else if (status == NOH_ETIMEOUT && !st->by_force) {
		st->by_force = true;
	} else {
		if (status == NOH_ETIMEOUT && !st->left)
			st->left = st->at + 1;
		st->by_force = false;
		st->at++;
	}
	all = stop_next(st, p);
	sched_port_done(p);
	if (all)
		finish(st);
}

/* The tree's addresses, in the order they stop. */
static struct stopper *make(noh_box *box, const struct tree *t, noh_done_fn *done, void *user)
{
	size_t text = 0, bytes;
	struct stopper *st;
	uint32_t used = 0;

	for (uint32_t i = 0; i < t->steps; i++)
		text += strlen(t->nodes[t->walk[i].node]->address) + 1;
	bytes = sizeof *st + t->steps * sizeof st->from[0] + text;
	st = mem_zalloc(bytes);
	if (!st)
		return NULL;
	*st = (struct stopper){ .box = box, .done = done, .user = user, .count = t->steps, .bytes = bytes };
	for (uint32_t i = 0; i < t->steps; i++) {
		uint32_t step = PLANT(PLANT_STOP_ORDER) ? i : t->steps - 1 - i;
		const char *address = t->nodes[t->walk[step].node]->address;

		st->from[i] = used;
		memcpy((char *)&st->from[st->count] + used, address, strlen(address) + 1);
		used += (uint32_t)strlen(address) + 1;
	}
	return st;
}

/* root NULL: all trees. */
static int begin(noh_box *box, struct port *p, const char *root, noh_done_fn *done, void *user, struct stopper **st)
{
	struct tree t;
	int rc = tree_make(box, p, root, true, &t);

	if (rc != NOH_OK)
		return rc;
	*st = make(box, &t, done, user);
	tree_free(&t);
	return *st ? NOH_OK : error_set(NOH_ENOMEM, "no memory to stop a tree");
}

/* An actor that is in no tree is one by itself. */
static int begin_alone(noh_box *box, const char *address, noh_done_fn *done, void *user, struct stopper **st)
{
	size_t len = strlen(address) + 1, bytes = sizeof(struct stopper) + sizeof(uint32_t) + len;

	*st = mem_zalloc(bytes);
	if (!*st)
		return error_set(NOH_ENOMEM, "no memory to stop %s", address);
	**st = (struct stopper){ .box = box, .done = done, .user = user, .count = 1, .bytes = bytes };
	memcpy(&(*st)->from[1], address, len);
	return NOH_OK;
}

int noh_stop_tree_then(noh_box *box, const char *root, noh_done_fn *done, void *user)
{
	char address[ADDRESS_MAX + 1];
	struct stopper *st;
	struct type *t;
	struct port *p;
	bool all;
	int rc = api_running(box);

	if (rc == NOH_OK)
		rc = tree_spell(box, root, address, &t);
	if (rc != NOH_OK)
		return rc;
	p = api_port(box);
	if (!p)
		return NOH_ESTOPPED;
	rc = begin(box, p, address, done, user, &st);
	if (rc == NOH_ENOACTOR)
		rc = begin_alone(box, address, done, user, &st);
	all = rc == NOH_OK && stop_next(st, p);
	sched_port_done(p);
	if (all)
		finish(st);
	return rc;
}

/* ── and waiting for it ── */

struct waiting {                                         /* who leaves last frees it */
	atomic_u32 done, users;
	char       left[ADDRESS_MAX + 1];                /* behind done: who did not stop; "": nobody */
};

static void leave(struct waiting *w)
{
	if (add_seq_cst(&w->users, UINT32_MAX) == 1)
		mem_free(w, sizeof *w);
}

static void all_stopped(void *user, int status, const void *answer, size_t len)
{
	struct waiting *w = user;

	if (status == NOH_ETIMEOUT)
		memcpy(w->left, answer, len);    /* ends with the zero that was there */
	store_seq_cst(&w->done, 1);
	futex_wake_all(&w->done);
	leave(w);
}

static int wait_for(noh_box *box, struct waiting *w, uint64_t until_ns, bool (*go_on)(void *arg), void *arg,
		    char left[ADDRESS_MAX + 1])
{
	int rc = NOH_OK;

	while (rc == NOH_OK && !load_seq_cst(&w->done)) {
		uint64_t now = clock_now_ns(&box->sched.clock);

		if (now >= until_ns || (go_on && !go_on(arg)))
			rc = NOH_ETIMEOUT;
		else
			futex_wait(&w->done, 0, go_on && until_ns - now > LOOK_NS ? LOOK_NS : until_ns - now);
	}
	memcpy(left, rc == NOH_OK ? w->left : "", rc == NOH_OK ? sizeof w->left : 1);
	leave(w);
	return rc;
}

int noh_stop_tree(noh_box *box, const char *root, uint32_t timeout_ms)
{
	uint64_t until = api_until_ns(box, timeout_ms);
	char left[ADDRESS_MAX + 1];
	struct waiting *w;
	int rc = api_may_block("noh_stop_tree");

	if (rc != NOH_OK)
		return rc;
	w = mem_zalloc(sizeof *w);
	if (!w)
		return error_set(NOH_ENOMEM, "no memory to wait");
	store_relaxed(&w->users, 2);
	rc = noh_stop_tree_then(box, root, all_stopped, w);
	if (rc != NOH_OK) {
		mem_free(w, sizeof *w);
		return rc;
	}
	rc = wait_for(box, w, until, NULL, NULL, left);
	if (rc == NOH_OK && *left)
		return error_set(NOH_ETIMEOUT, "%s did not stop in its time, not even by force: it was left behind, and the others "
				 "have stopped", left);
	return rc == NOH_OK ? rc : error_set(rc, "%s and those below it have not all stopped within %u ms", root, timeout_ms);
}

void box_stop_trees(noh_box *box, uint64_t until_ns, bool (*go_on)(void *arg), void *arg)
{
	char left[ADDRESS_MAX + 1];
	struct stopper *st;
	struct waiting *w;
	struct port *p;
	bool all, begun;

	if (!load_relaxed(&box->sched.vitals_used))
		return;
	w = mem_zalloc(sizeof *w);
	if (!w)
		return;
	store_relaxed(&w->users, 2);
	p = sched_port(&box->sched);
	begun = begin(box, p, NULL, all_stopped, w, &st) == NOH_OK;
	all = begun && stop_next(st, p);
	sched_port_done(p);
	if (all)
		finish(st);
	if (begun)
		(void)wait_for(box, w, until_ns, go_on, arg, left);
	else
		mem_free(w, sizeof *w);
}
