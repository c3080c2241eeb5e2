/* persist/tail_apply.c - an actor put together: what LMDB has, then every record of the tail about it, in order. */
#include "persist/tail_in.h"

#include "core/error.h"
#include "core/mem.h"
#include "noh.h"

#include <stdlib.h>
#include <string.h>

/* An actor being put together: pointers into the tail and into LMDB's image. */
struct whole {
	struct part  state, timers, vitals;     /* len 0: none */
	struct entry { struct part part; uint32_t order; } *entries;
	struct part *messages;
	struct message_id *consumed;
	uint32_t     entry_count, entry_room, message_count, message_room, consumed_count, consumed_room;
	bool         failed;
};

static void *more(void *list, uint32_t count, uint32_t *room, size_t size, bool *failed)
{
	uint32_t larger = *room ? *room * 2 : 8;
	void *fresh;

	if (count < *room)
		return list;
	fresh = mem_alloc(larger * size);
	if (!fresh) {
		*failed = true;
		return list;
	}
	if (count)
		memcpy(fresh, list, count * size);
	mem_free(list, *room * size);
	*room = larger;
	return fresh;
}

static void whole_part(struct whole *w, const struct part *p, const char *address, size_t len,
		       bool message_only)
{
	if (message_only != (p->kind == PART_EMITTED))
		return;
	switch (p->kind) {
	case PART_STATE:
		w->state = *p;
		break;
	case PART_TIMERS:
		w->timers = *p;
		break;
	case PART_VITALS:
		w->vitals = *p;
		break;
	case PART_PUT:
	case PART_DELETE:
		w->entries = more(w->entries, w->entry_count, &w->entry_room, sizeof *w->entries, &w->failed);
		if (!w->failed) {
			w->entries[w->entry_count] = (struct entry){ *p, w->entry_count };
			w->entry_count++;
		}
		break;
	case PART_CONSUMED:
		w->consumed = more(w->consumed, w->consumed_count, &w->consumed_room, sizeof *w->consumed,
				   &w->failed);
		if (!w->failed)
			memcpy(&w->consumed[w->consumed_count++], p->data, sizeof *w->consumed);
		break;
	case PART_EMITTED:
		if (p->key_len != len || memcmp(p->key, address, len) != 0)
			break;
		w->messages = more(w->messages, w->message_count, &w->message_room, sizeof *w->messages,
				   &w->failed);
		if (!w->failed)
			w->messages[w->message_count++] = *p;
		break;
	default:
		break;
	}
}

static void whole_free(struct whole *w)
{
	mem_free(w->entries, w->entry_room * sizeof *w->entries);
	mem_free(w->messages, w->message_room * sizeof *w->messages);
	mem_free(w->consumed, w->consumed_room * sizeof *w->consumed);
}

static int by_key(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	size_t n = x->part.key_len < y->part.key_len ? x->part.key_len : y->part.key_len;
	int c = memcmp(x->part.key, y->part.key, n);

	if (c == 0)
		c = (x->part.key_len > y->part.key_len) - (x->part.key_len < y->part.key_len);
	return c ? c : (x->order > y->order) - (x->order < y->order);
}

static int by_id(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct message_id));
}

static bool consumed(const struct whole *w, const struct part *message)
{
	struct message_id id;

	memcpy(&id, message->data, sizeof id);
	return w->consumed_count &&
	       bsearch(&id, w->consumed, w->consumed_count, sizeof id, by_id) != NULL;
}

/* In the order of each sender. */
static int by_sender(const void *a, const void *b)
{
	struct message_id x, y;

	memcpy(&x, ((const struct part *)a)->data, sizeof x);
	memcpy(&y, ((const struct part *)b)->data, sizeof y);
	if (x.sender != y.sender)
		return x.sender > y.sender ? 1 : -1;
	if (x.seq != y.seq)
		return x.seq > y.seq ? 1 : -1;
	return (x.index > y.index) - (x.index < y.index);
}

/* Of each key the last word; of the messages those that nobody consumed, once: what is folded already is
 * in LMDB and in the tail. */
static void settle_whole(struct whole *w)
{
	uint32_t kept = 0;

	if (w->entry_count)
		qsort(w->entries, w->entry_count, sizeof *w->entries, by_key);
	for (uint32_t i = 0; i < w->entry_count; i++) {
		bool last = i + 1 == w->entry_count ||
			    w->entries[i + 1].part.key_len != w->entries[i].part.key_len ||
			    memcmp(w->entries[i + 1].part.key, w->entries[i].part.key,
				   w->entries[i].part.key_len) != 0;

		if (last && w->entries[i].part.kind == PART_PUT)
			w->entries[kept++] = w->entries[i];
	}
	w->entry_count = kept;
	if (w->consumed_count)
		qsort(w->consumed, w->consumed_count, sizeof *w->consumed, by_id);
	kept = 0;
	if (w->message_count)
		qsort(w->messages, w->message_count, sizeof *w->messages, by_sender);
	for (uint32_t i = 0; i < w->message_count; i++)
		if (!consumed(w, &w->messages[i]) &&
		    (kept == 0 || by_sender(&w->messages[kept - 1], &w->messages[i]) != 0))
			w->messages[kept++] = w->messages[i];
	w->message_count = kept;
}

static void put_part(uint8_t **at, const struct part *p)
{
	void *data = part_put(at, (enum part_kind)p->kind, p->key, p->key_len, p->len);

	if (p->len)
		memcpy(data, p->data, p->len);
}

static size_t whole_size(const struct whole *w)
{
	size_t n = (w->state.len ? part_size(0, w->state.len) : 0) +
		   (w->timers.len ? part_size(0, w->timers.len) : 0) +
		   (w->vitals.len ? part_size(0, w->vitals.len) : 0);

	for (uint32_t i = 0; i < w->entry_count; i++)
		n += part_size(w->entries[i].part.key_len, w->entries[i].part.len);
	for (uint32_t i = 0; i < w->message_count; i++)
		n += part_size(w->messages[i].key_len, w->messages[i].len);
	return n;
}

static void write_whole(const struct whole *w, uint8_t *at)
{
	if (w->state.len)
		put_part(&at, &w->state);
	if (w->timers.len)
		put_part(&at, &w->timers);
	if (w->vitals.len)
		put_part(&at, &w->vitals);
	for (uint32_t i = 0; i < w->entry_count; i++)
		put_part(&at, &w->entries[i].part);
	for (uint32_t i = 0; i < w->message_count; i++)
		put_part(&at, &w->messages[i]);
}

static uint64_t seq_at(const struct tail *t, uint32_t at)
{
	const uint8_t *parts, *end;

	return tail_record_at(t, at, &parts, &end)->seq;
}

/* An actor may have been on two workers within one frame, whose rings stand one after the other there. */
static void sort_by_seq(const struct tail *t, uint32_t *list, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		uint32_t at = list[i], to = i;
		uint64_t seq = seq_at(t, at);

		for (; to > 0 && seq_at(t, list[to - 1]) > seq; to--)
			list[to] = list[to - 1];
		list[to] = at;
	}
}

/* Mentions are linked from the newest; what they say has to be applied in the order of sequences. */
static uint32_t *oldest_first(const struct tail *t, uint64_t hash, uint32_t *count)
{
	uint32_t newest = tail_slot(t, hash)->newest, n = 0, *list;

	for (uint32_t m = newest; m; m = t->mentions[m].older)
		n++;
	list = mem_alloc((n + 1) * sizeof *list);
	*count = n;
	for (uint32_t m = newest; list && m; m = t->mentions[m].older)
		list[--n] = t->mentions[m].at;
	if (list)
		sort_by_seq(t, list, *count);
	return list;
}

static void apply_record(struct whole *w, const struct tail *t, uint32_t at, const char *address, size_t len,
			 uint64_t *seq)
{
	const uint8_t *parts, *end;
	const struct record_head *h = tail_record_at(t, at, &parts, &end);
	bool message = at & MENTION_MESSAGE;
	struct part p;

	if (!message && !tail_is_about(h, address, len))
		return;
	if (!message) {
		*seq = h->seq > *seq ? h->seq : *seq;
		if (h->flags & RECORD_GONE) {
			w->state.len = w->timers.len = w->vitals.len = 0;
			w->entry_count = 0;
		}
	}
	while (part_next(&parts, end, &p))
		whole_part(w, &p, address, len, message);
}

int tail_apply(const struct tail *t, const char *address, size_t len, uint64_t hash, struct stored *io)
{
	const uint8_t *at = io->image, *end = at + io->len;
	struct whole w = { .failed = false };
	uint32_t count, *list = oldest_first(t, hash, &count);
	uint64_t seq = io->seq;
	uint8_t *fresh = NULL;
	size_t size = 0;
	struct part p;
	int rc;

	while (at && part_next(&at, end, &p))
		whole_part(&w, &p, address, len, p.kind == PART_EMITTED);
	for (uint32_t i = 0; list && i < count; i++)
		if (i == 0 || list[i] != list[i - 1])    /* one record may send it several messages */
			apply_record(&w, t, list[i], address, len, &seq);
	if (list && !w.failed) {
		settle_whole(&w);
		size = whole_size(&w);
		fresh = mem_alloc(size);
	}
	if (fresh)
		write_whole(&w, fresh);
	rc = !fresh ? error_set(NOH_ENOMEM, "loading %.*s: out of memory", (int)len, address) :
	     size == 0 && seq == 0 ? NOH_END : NOH_OK;
	mem_free(list, (count + 1) * sizeof *list);
	whole_free(&w);
	mem_free(io->image, io->len);
	if (rc != NOH_OK) {
		mem_free(fresh, size);
		*io = (struct stored){ .image = NULL };
		return rc;
	}
	*io = (struct stored){ .image = fresh, .len = size, .seq = seq, .fresh = true,
			       .gone = size == 0 };
	if (io->gone) {
		mem_free(fresh, size);
		io->image = NULL;
	}
	return NOH_OK;
}
