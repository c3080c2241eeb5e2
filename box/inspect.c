/* box/inspect.c - what is stored, in numbers, by address, and of one actor. Reads only. */
#include "box/care.h"

#include "core/address.h"
#include "core/mem.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ── in numbers ── */

static int count_record(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
			const uint8_t *parts, const uint8_t *end)
{
	(void)frame, (void)epoch, (void)head, (void)parts, (void)end;
	++*(uint64_t *)arg;
	return NOH_OK;
}

static void count_again(void *arg)
{
	*(uint64_t *)arg = 0;
}

static int fill(struct care *c, noh_dir_info *info)
{
	struct care_walk w = { .again = count_again, .each = count_record, .arg = &info->tail_records };
	struct journal_end end = { 0 };
	struct db_stats s;
	char path[PATH_MAX];
	int rc = care_walk(c, &w, &end);

	if (rc != NOH_OK)
		return rc;
	db_get_stats(c->db, &s);
	info->format = c->dir.format;
	info->in_use = c->running;
	info->id = c->dir.id;
	info->stamp = w.stamp;
	info->epoch = w.epoch;
	info->end = end.frame;
	info->torn_bytes = c->running ? 0 : end.cut_bytes;      /* of one that runs: on its way */
	info->actors = s.images;
	info->entries = s.entries;
	info->pending = s.pending;
	info->keys = s.idem;
	info->key_bytes = s.idem_bytes;
	info->timers = s.timers;
	info->dead_letters = s.dead;
	info->events = s.events;
	info->event_bytes = s.event_bytes;
	info->event_seq = s.event_seq;
	if (files_path(path, c->dir.path, JOURNAL_DIR) == NOH_OK)
		info->journal_bytes = files_bytes(path, ".seg", &info->segments);
	if (files_path(path, c->dir.path, "image") == NOH_OK)
		info->image_bytes = files_bytes(path, "data.mdb", NULL);
	return NOH_OK;
}

int noh_inspect(const char *dir, noh_dir_info *info)
{
	struct care c;
	int rc = care_look(&c, dir);

	*info = (noh_dir_info){ 0 };
	if (rc != NOH_OK)
		return rc;
	rc = fill(&c, info);
	care_close(&c);
	return rc;
}

/* ── addresses ── */

struct text { char *bytes; };            /* allocated, with a NUL */

struct list {
	struct care           *c;
	const char            *type;
	size_t                 type_len;
	noh_stored_address_fn *each;
	void                  *user;
	bool                   ended;
	struct text           *tail;     /* addresses in the journal's tail */
	size_t                 count, room;
};

static bool of_type(const struct list *l, const char *address, size_t len)
{
	return !l->type || (len > l->type_len && address[l->type_len] == ':' &&
			    memcmp(address, l->type, l->type_len) == 0);
}

static int give(struct list *l, const char *address, size_t len)
{
	char text[ADDRESS_MAX + 1];

	if (!of_type(l, address, len) || len > ADDRESS_MAX)
		return 0;
	memcpy(text, address, len);
	text[len] = 0;
	l->ended = l->each(l->user, text) != 0;
	return l->ended;
}

static int give_image(void *arg, const char *address, size_t len)
{
	struct list *l = arg;

	/* In order: what comes after the type's last one is of no interest. */
	if (l->type && len > l->type_len && memcmp(address, l->type, l->type_len) > 0)
		return 1;
	return give(l, address, len);
}

static void drop_tail(void *arg)
{
	struct list *l = arg;

	for (size_t i = 0; i < l->count; i++)
		mem_free(l->tail[i].bytes, strlen(l->tail[i].bytes) + 1);
	l->count = 0;
}

static bool make_space(struct list *l)
{
	size_t room = l->room ? 2 * l->room : 1024;
	struct text *more = l->count < l->room ? l->tail : mem_alloc(room * sizeof *more);

	if (l->count < l->room || !more)
		return more != NULL;
	if (l->count)
		memcpy(more, l->tail, l->count * sizeof *more);
	mem_free(l->tail, l->room * sizeof *more);
	l->tail = more;
	l->room = room;
	return true;
}

static int keep_tail(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
		     const uint8_t *parts, const uint8_t *end)
{
	struct list *l = arg;
	const char *address = record_address(head);
	char *text;

	(void)frame, (void)epoch, (void)parts, (void)end;
	if ((head->flags & RECORD_NOTICE) || !of_type(l, address, head->address_len) || db_has(l->c->db, address, head->address_len))
		return NOH_OK;
	text = make_space(l) ? mem_alloc(head->address_len + 1u) : NULL;
	if (!text)
		return error_set(NOH_ENOMEM, "no memory for the addresses in the journal");
	memcpy(text, address, head->address_len);
	text[head->address_len] = 0;
	l->tail[l->count++].bytes = text;
	return NOH_OK;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct text *)a)->bytes, ((const struct text *)b)->bytes);
}

static int list_tail(struct list *l)
{
	struct care_walk w = { .again = drop_tail, .each = keep_tail, .arg = l };
	struct journal_end end;
	int rc = care_walk(l->c, &w, &end);

	if (rc == NOH_OK && l->count)
		qsort(l->tail, l->count, sizeof *l->tail, by_text);
	for (size_t i = 0; rc == NOH_OK && i < l->count && !l->ended; i++)
		if (i == 0 || strcmp(l->tail[i].bytes, l->tail[i - 1].bytes) != 0)
			give(l, l->tail[i].bytes, strlen(l->tail[i].bytes));
	drop_tail(l);
	mem_free(l->tail, l->room * sizeof *l->tail);
	return rc;
}

int noh_inspect_list(const char *dir, const char *type, noh_stored_address_fn *each, void *user)
{
	struct care c;
	struct list l = { .c = &c, .type = type, .type_len = type ? strlen(type) : 0, .each = each,
			  .user = user };
	int rc = care_look(&c, dir);

	if (rc != NOH_OK)
		return rc;
	if (l.type_len > TYPE_NAME_MAX)
		rc = error_set(NOH_EINVAL, "a type's name has at most %d bytes", TYPE_NAME_MAX);
	if (rc == NOH_OK)
		rc = db_addresses(c.db, type, l.type_len, give_image, &l);
	if (rc == NOH_OK && !l.ended)
		rc = list_tail(&l);
	care_close(&c);
	return rc;
}
