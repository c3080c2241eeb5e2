/* box/check.c - which types and versions are stored, and whether a program can open them.
 *
 * The rule is also asked at a box's start (disk.c); here before an upgrade, beside the old program.
 * The image counts actors by type and version; what the journal has beyond it is looked at, too, so that
 * a version that was written a second ago is not overlooked.
 */
#include "box/care.h"

#include "core/mem.h"

#include <string.h>

#define KINDS_MOST 4096          /* types and versions; more of them are not told */

struct stored {
	char     name[64];
	uint32_t version;
	uint64_t schema, actors, tail;
};

struct stored_list {
	size_t        count;
	struct stored at[KINDS_MOST];
};

static struct stored *of(struct stored_list *l, const char *name, size_t len, uint32_t version, uint64_t schema)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->at[i].version == version && l->at[i].schema == schema &&
		    strlen(l->at[i].name) == len && memcmp(l->at[i].name, name, len) == 0)
			return &l->at[i];
	if (l->count == KINDS_MOST || len >= sizeof l->at[0].name)
		return NULL;
	struct stored *s = &l->at[l->count++];

	*s = (struct stored){ .version = version, .schema = schema };
	memcpy(s->name, name, len);
	return s;
}

static int from_image(void *arg, const char *type, uint32_t version, uint64_t schema, uint64_t images)
{
	struct stored *s = of(arg, type, strlen(type), version, schema);

	if (s)
		s->actors = images;
	return 0;
}

static int from_tail(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
		     const uint8_t *parts, const uint8_t *end)
{
	const char *address = record_address(head);
	const char *colon = memchr(address, ':', head->address_len);
	struct part_state state;
	struct part p;

	(void)frame, (void)epoch;
	while (colon && part_next(&parts, end, &p)) {
		if (p.kind != PART_STATE || p.len < sizeof state)
			continue;
		memcpy(&state, p.data, sizeof state);
		struct stored *s = of(arg, address, (size_t)(colon - address), state.version, state.schema);

		if (s)
			s->tail++;
	}
	return NOH_OK;
}

static void forget_tail(void *arg)
{
	struct stored_list *l = arg;

	for (size_t i = 0; i < l->count; i++)
		l->at[i].tail = 0;
}

/* ── the rule ── */

static bool has_step(const noh_type *t, uint32_t from)
{
	for (uint32_t i = 0; i < t->migration_count; i++)
		if (t->migrations[i].from == from)
			return true;
	return false;
}

void care_judge(noh_stored_type *s, const noh_type *t)
{
	if (!t || t->is_volatile) {
		s->verdict = NOH_UNKNOWN;
		return;
	}
	s->to = t->version ? t->version : 1;
	s->verdict = NOH_FITS;
	if (s->version == 0)                     /* no state, no layout */
		return;
	if (s->version > s->to)
		s->verdict = NOH_TOO_NEW;
	else if (s->version == s->to && s->schema != t->schema)
		s->verdict = NOH_OTHER_SCHEMA;
	for (uint32_t v = s->version; v < s->to && s->verdict != NOH_NO_STEP; v++) {
		s->verdict = has_step(t, v) ? NOH_MIGRATES : NOH_NO_STEP;
		s->missing = s->verdict == NOH_NO_STEP ? v : 0;
	}
}

static int tell(const struct stored_list *l, const noh_type *types, size_t count,
		noh_stored_type_fn *each, void *user)
{
	int rc = NOH_OK;

	for (size_t i = 0; i < l->count; i++) {
		const struct stored *s = &l->at[i];
		noh_stored_type told = { .name = s->name, .version = s->version, .schema = s->schema,
					 .actors = s->actors, .tail = s->tail };
		const noh_type *t = NULL;

		if (s->actors + s->tail == 0)
			continue;
		for (size_t k = 0; k < count && !t; k++)
			t = strcmp(types[k].name, s->name) == 0 ? &types[k] : NULL;
		care_judge(&told, t);
		if (told.verdict >= NOH_NO_STEP)
			rc = error_set(NOH_EVERSION, "type %s: %llu actors are stored with version %u, which this "
				       "program cannot open", s->name, (unsigned long long)s->actors, s->version);
		else if (told.verdict == NOH_UNKNOWN && count && rc == NOH_OK)
			rc = error_set(NOH_ENOTYPE, "type %s is stored, but this program does not have it", s->name);
		if (each && each(user, &told) != 0)
			break;
	}
	return rc;
}

int noh_check(const char *dir, const noh_type *types, size_t count, noh_stored_type_fn *each, void *user)
{
	struct stored_list *l = mem_zalloc(sizeof *l);
	struct care_walk w = { .again = forget_tail, .each = from_tail, .arg = l };
	struct journal_end end;
	struct care c;

	if (!l)
		return error_set(NOH_ENOMEM, "no memory to check %s", dir);
	int rc = care_look(&c, dir);

	if (rc == NOH_OK) {
		rc = db_types(c.db, from_image, l);
		if (rc == NOH_OK)
			rc = care_walk(&c, &w, &end);
		care_close(&c);
	}
	if (rc == NOH_OK)
		rc = tell(l, types, count, each, user);
	mem_free(l, sizeof *l);
	return rc;
}
