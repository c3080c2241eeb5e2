/* sched/kv.c - entries by key, and the log of a turn's changes; the tree they are in is kv_tree.c.
 *
 * Undoing needs no memory: the log keeps what was replaced, and goes back from its end. What is empty then is let go when all is
 * back.
 */
#include "sched/kv_tree.h"

#include "core/mem.h"
#include "core/must.h"
#include "noh.h"

/* ── the log ───────────────────────────────────────────────────────────────────────────────── */
static struct kv_change *changes(struct kv_log *log)
{
	return log->more ? log->more : log->few;
}

static bool make_room(struct kv_log *log)
{
	uint32_t room = log->more ? log->room : KV_LOG_INLINE;

	if (log->count < room)
		return true;
	if (room > UINT32_MAX / 2)
		return false;
	struct kv_change *more = mem_alloc(sizeof *more * room * 2);

	if (!more)
		return false;
	memcpy(more, changes(log), sizeof *more * log->count);
	mem_free(log->more, sizeof *more * room);
	log->more = more;
	log->room = room * 2;
	return true;
}

static void note(struct kv_log *log, struct kv_node *before, struct kv_node *after)
{
	changes(log)[log->count++] = (struct kv_change){ before, after };
}

static void log_end(struct kv_log *log)
{
	mem_free(log->more, sizeof *log->more * log->room);
	log->more = NULL;
	log->count = log->room = 0;
	log->sparse = false;
}

void kv_commit(struct kv *kv, struct kv_log *log)
{
	for (uint32_t i = 0; i < log->count; i++) {
		struct kv_change c = changes(log)[i];

		if (!c.after && log->sparse)
			kv_tidy(kv, c.before);
		kv_node_free(c.before);
	}
	log_end(log);
}
/* ── changing ──────────────────────────────────────────────────────────────────────────────── */
static bool is_key(size_t klen)
{
	return klen >= 1 && klen <= KV_KEY_MAX;
}

int kv_put(struct kv *kv, struct kv_log *log, const void *key, size_t klen, const void *val,
	   size_t vlen)
{
	struct kv_search k = kv_search_for(key, is_key(klen) ? klen : 0);
	struct kv_path p;
	struct kv_node *n;

	if (!k.len)
		return NOH_EINVAL;
	n = kv_node_new(&k, val, vlen);
	if (n && make_room(log)) {
		if (kv_find(kv, &k, &p)) {
			note(log, kv_replace(kv, &p, n), n);
			return NOH_OK;
		}
		if (kv_make_place(kv, &p, &k)) {
			kv_insert(kv, &p, &k, n);
			note(log, NULL, n);
			return NOH_OK;
		}
	}
	kv_node_free(n);
	return NOH_ENOMEM;
}

int kv_delete(struct kv *kv, struct kv_log *log, const void *key, size_t klen)
{
	struct kv_search k = kv_search_for(key, is_key(klen) ? klen : 0);
	struct kv_path p;

	if (!k.len)
		return NOH_EINVAL;
	if (!kv_find(kv, &k, &p))
		return NOH_END;
	if (!make_room(log))
		return NOH_ENOMEM;
	note(log, kv_drop(kv, &p), NULL);
	log->sparse |= kv_is_sparse(&p);
	return NOH_OK;
}

static void undo(struct kv *kv, struct kv_change c)
{
	struct kv_search k = kv_search_of(c.after ? c.after : c.before);
	struct kv_path p;
	bool there = kv_find(kv, &k, &p);

	must(there == (c.after != NULL));
	if (c.after && c.before) {
		must(kv_replace(kv, &p, c.before) == c.after);
	} else if (c.after) {
		must(kv_drop(kv, &p) == c.after);
	} else {
		must(kv_has_place(&p));
		kv_insert(kv, &p, &k, c.before);
	}
}

void kv_rollback(struct kv *kv, struct kv_log *log)
{
	for (uint32_t i = log->count; i-- > 0; )
		undo(kv, changes(log)[i]);
	for (uint32_t i = 0; i < log->count; i++) {      /* no block goes before all is back */
		struct kv_change c = changes(log)[i];

		if (c.after && !c.before)
			kv_tidy(kv, c.after);
		kv_node_free(c.after);
	}
	log_end(log);
}

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */
const struct kv_node *kv_get(const struct kv *kv, const void *key, size_t klen)
{
	struct kv_search k = kv_search_for(key, is_key(klen) ? klen : 0);
	struct kv_path p;

	return k.len && kv_find(kv, &k, &p) ? kv_here(&p) : NULL;
}

const struct kv_node *kv_next(const struct kv *kv, const void *key, size_t klen)
{
	struct kv_search k = kv_search_for(key, klen);
	struct kv_path p;

	if (kv_find(kv, &k, &p))
		kv_go_on(&p);
	return kv_here_or_behind(&p);
}

const struct kv_node *kv_walk_on(struct kv_walk *w)
{
	if (!w->begun)
		(void)kv_find(w->kv, &(struct kv_search){ 0 }, &w->path);
	else
		kv_go_on(&w->path);
	w->begun = true;
	return kv_here_or_behind(&w->path);
}
