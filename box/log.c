/* box/log.c - what is logged: levels of the box and of its types, changed while it runs. */
#include "box/box.h"

#include "core/log_text.h"

#include <stdio.h>
#include <string.h>

static bool separates(char c)
{
	return c == ' ' || c == ',' || c == '\t';
}

static int wrong(const char *word, size_t len)
{
	return error_set(NOH_EINVAL, "\"%.*s\" is no level of the log: debug, info, warn, error; or TYPE=LEVEL for one type",
			 (int)(len < 60 ? len : 60), word);
}

/* One word of it: "info", or "counter=debug". levels: of the types, plus 1. */
static int read_word(struct sched *s, const char *word, size_t len, int *box, uint8_t *levels)
{
	const char *eq = memchr(word, '=', len);
	size_t name = eq ? (size_t)(eq - word) : 0;
	int level = eq ? log_level_number(eq + 1, len - name - 1) : log_level_number(word, len);
	struct type *t;

	if (level < 0 || (!eq && *box >= 0))
		return wrong(word, len);
	if (!eq) {
		*box = level;
		return NOH_OK;
	}
	t = sched_find_type(s, word, name);
	if (!t)
		return error_set(NOH_ENOTYPE, "there is no type \"%.*s\" to log at a level of its own",
				 (int)(name < 60 ? name : 60), word);
	levels[t->index] = (uint8_t)(level + 1);
	return NOH_OK;
}

int noh_set_log_level(noh_box *box, const char *text)
{
	struct sched *s = &box->sched;
	uint8_t levels[TYPES_MAX] = { 0 };
	int all = -1;

	for (const char *at = text; *at; ) {
		size_t len = 0;
		int rc;

		while (separates(*at))
			at++;
		while (at[len] && !separates(at[len]))
			len++;
		rc = len ? read_word(s, at, len, &all, levels) : NOH_OK;
		if (rc != NOH_OK)
			return rc;
		at += len;
	}
	if (all < 0)
		return error_set(NOH_EINVAL, "which level is the log of all other types to have? debug, info, warn, error");
	store_relaxed(&s->log_level, (uint32_t)all);
	for (uint32_t i = 0; i < s->type_count; i++)
		store_relaxed(&s->types[i]->log_level, levels[i]);
	return NOH_OK;
}

int noh_get_log_level(noh_box *box, char *out, size_t size)
{
	struct sched *s = &box->sched;
	size_t n;

	if (!out || size == 0)
		return error_set(NOH_EINVAL, "noh_get_log_level: no room for it");
	n = (size_t)snprintf(out, size, "%s", log_level_name((int)load_relaxed(&s->log_level)));
	for (uint32_t i = 0; i < s->type_count && n < size; i++) {
		uint32_t own = load_relaxed(&s->types[i]->log_level);

		if (own)
			n += (size_t)snprintf(out + n, size - n, " %s=%s", s->types[i]->name,
					      log_level_name((int)own - 1));
	}
	return NOH_OK;
}
