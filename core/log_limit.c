#include "core/log_limit.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* The same whoever said it, and whatever its numbers: a flood is about one thing. */
static uint64_t hash_of(const struct log_entry *e)
{
	char text[sizeof e->msg + sizeof e->type];
	size_t n = 0;

	for (const char *c = e->msg; *c; c++)
		if (*c < '0' || *c > '9')
			text[n++] = *c;
	for (const char *c = e->type; *c; c++)
		text[n++] = *c;
	return XXH3_64bits_withSeed(text, n, (XXH64_hash_t)e->level) | 1;
}

static void begin(struct log_kind *k, uint64_t now_ms, uint64_t window_ms, uint32_t allowed)
{
	k->from_ms = now_ms;
	k->window_ms = window_ms < LOG_WINDOW_MOST_MS ? window_ms : LOG_WINDOW_MOST_MS;
	k->allowed = allowed;
	k->left_out = 0;
}

static bool over(const struct log_kind *k, uint64_t now_ms)
{
	return now_ms - k->from_ms >= k->window_ms;
}

/* Its window is over: tell what was left out, and be stricter; or there was nothing, and all is forgotten. */
static void settle(struct log_kind *k, uint64_t now_ms, log_say_fn *say, void *user)
{
	if (k->left_out == 0) {
		k->hash = 0;
		return;
	}
	say(user, &k->last, k->left_out);
	begin(k, now_ms, k->window_ms * 2, 0);
}

static void settle_second(struct log_limit *l, uint64_t now_ms, log_say_fn *say, void *user)
{
	struct log_entry e = { .level = NOH_WARN, .shard = -1 };

	if (now_ms - l->second < 1000)
		return;
	if (l->over) {
		snprintf(e.msg, sizeof e.msg, "%llu lines of the log were left out: more than %d came within a second",
			 (unsigned long long)l->over, LOG_A_SECOND);
		say(user, &e, 0);
	}
	l->second = now_ms;
	l->this_second = 0;
	l->over = 0;
}

static struct log_kind *kind_of(struct log_limit *l, const struct log_entry *e, uint64_t now_ms, log_say_fn *say,
				void *user)
{
	uint64_t hash = hash_of(e);
	struct log_kind *k = &l->kinds[hash / 2 % LOG_KINDS];

	if (k->hash && over(k, now_ms))
		settle(k, now_ms, say, user);
	if (k->hash == hash)
		return k;
	if (k->hash && k->left_out)              /* it has to make room */
		say(user, &k->last, k->left_out);
	k->hash = hash;
	begin(k, now_ms, LOG_WINDOW_MS, LOG_ALIKE);
	return k;
}

void log_limit_take(struct log_limit *l, const struct log_entry *e, uint64_t now_ms, log_say_fn *say, void *user)
{
	struct log_kind *k = kind_of(l, e, now_ms, say, user);

	settle_second(l, now_ms, say, user);
	if (k->allowed == 0) {
		if (k->left_out++ == 0) {
			k->last = *e;
			k->last.wall_ms = 0;     /* when it is told */
		}
		l->left_out++;
		return;
	}
	k->allowed--;
	if (l->this_second++ < LOG_A_SECOND) {
		say(user, e, 0);
		return;
	}
	l->over++;
	l->left_out++;
}

uint64_t log_limit_tick(struct log_limit *l, uint64_t now_ms, bool end, log_say_fn *say, void *user)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < LOG_KINDS; i++) {
		struct log_kind *k = &l->kinds[i];

		if (k->hash && k->left_out && (end || over(k, now_ms)))
			settle(k, now_ms, say, user);
		if (k->hash && k->left_out && k->from_ms + k->window_ms < next)
			next = k->from_ms + k->window_ms;
	}
	if (l->over && end)
		l->second = now_ms - 1000;
	settle_second(l, now_ms, say, user);
	if (l->over && l->second + 1000 < next)
		next = l->second + 1000;
	return next;
}
