/* sched/notice_sums.c - what happens too often to be told one by one: how often, by type, once a second.
 *
 * Everybody counts for himself (struct type_counts); the watchdog looks at the sums now and then, and tells what has come
 * to them since. A flood of drops is one event a second for its type and reason.
 */
#include "sched/notice.h"

#include <stddef.h>
#include <stdio.h>

#define EVERY_NS UINT64_C(1000000000)

enum { FULL_OLDEST, FULL_NEWEST, FORCED, RATE, FAILED, COUNTS };

struct type_seen { uint64_t counts[COUNTS]; };
struct notice_sums {
	uint64_t         next_ns, dead;
	struct type_seen types[];
};

static size_t sums_bytes(const struct sched *s)
{
	return sizeof(struct notice_sums) + s->type_count * sizeof(struct type_seen);
}

struct notice_sums *notice_sums_open(struct sched *s)
{
	return mem_zalloc(sums_bytes(s));
}

void notice_sums_close(struct notice_sums *n, struct sched *s)
{
	mem_free(n, sums_bytes(s));
}

static uint64_t sum_of(struct sched *s, uint32_t type, size_t offset)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->worker_count; i++)
		sum += load_relaxed((atomic_u64 *)(void *)((char *)&s->workers[i].mine.port.types[type] + offset));
	for (uint32_t i = 0; i < OUTSIDE_PORTS; i++)
		sum += load_relaxed((atomic_u64 *)(void *)((char *)&s->outside[i].types[type] + offset));
	return sum;
}

/* Those that were told one by one are told; how many that were is looked at first. */
static uint64_t count_of(struct sched *s, struct type *t, int which)
{
	uint64_t told, all;

	switch (which) {
	case FULL_OLDEST:
		return sum_of(s, t->index, offsetof(struct type_counts, dropped_oldest));
	case FULL_NEWEST:
		return t->pub.full_mode == NOH_DROP_NEWEST ? sum_of(s, t->index, offsetof(struct type_counts, refused)) : 0;
	case FORCED:
		return sum_of(s, t->index, offsetof(struct type_counts, dropped_forced));
	case RATE:
		return sum_of(s, t->index, offsetof(struct type_counts, refused_rate));
	default:
		told = load_relaxed(&t->failures_told);
		all = t->tells ? 0 : sum_of(s, t->index, offsetof(struct type_counts, failed)) +
				     sum_of(s, t->index, offsetof(struct type_counts, broken));
		return all > told ? all - told : 0;
	}
}

static void tell(struct sched *s, const char *who, enum notice_kind kind, uint64_t count, const char *word, const char *why)
{
	char reason[160], data[96];
	int n = snprintf(data, sizeof data, "{\"count\":%llu,\"reason\":\"%s\"}", (unsigned long long)count, word);

	snprintf(reason, sizeof reason, "%llu %s", (unsigned long long)count, why);
	notice_of(s, who, kind, &(noh_emit_options){ .reason = reason, .data = data, .len = (size_t)n });
}

static void tell_type(struct notice_sums *n, struct sched *s, struct type *t)
{
	static const struct { enum notice_kind kind; const char *word, *why; } ways[COUNTS] = {
		[FULL_OLDEST] = { NOTICE_DROPPED, "full_oldest", "messages: the mailbox was full, the oldest went" },
		[FULL_NEWEST] = { NOTICE_DROPPED, "full_newest", "messages: the mailbox was full, their senders were told" },
		[FORCED] = { NOTICE_DROPPED, "forced", "messages: the actor was forced to go" },
		[RATE] = { NOTICE_DROPPED, "rate", "messages: over the limits of the type, their senders were told" },
		[FAILED] = { NOTICE_FAILED, "sum", "more failures that were not told one by one" } };

	for (int i = 0; i < COUNTS; i++) {
		uint64_t now = count_of(s, t, i), *seen = &n->types[t->index].counts[i];

		if (now > *seen) {
			tell(s, t->name, ways[i].kind, now - *seen, ways[i].word, ways[i].why);
			*seen = now;
		}
	}
}

/* Messages whose receiver was gone. Those set aside are told by themselves: they are counted as such before they are counted
 * as dead letters, so they are looked at last. */
static void tell_dead(struct notice_sums *n, struct sched *s)
{
	uint64_t all = sched_sum(s, offsetof(struct port, dead_letters)), aside = 0;

	for (uint32_t i = 0; i < s->type_count; i++)
		aside += sum_of(s, i, offsetof(struct type_counts, quarantined)) +
			 sum_of(s, i, offsetof(struct type_counts, set_aside));
	if (all > aside && all - aside > n->dead) {
		tell(s, "", NOTICE_DEAD_LETTER, all - aside - n->dead, "undeliverable", "messages: their receivers were gone");
		n->dead = all - aside;
	}
}

void notice_sums_tell(struct notice_sums *n, struct sched *s, bool now)
{
	uint64_t ns = clock_now_ns(&s->clock);

	if (!n || (ns < n->next_ns && !now))
		return;
	n->next_ns = ns + EVERY_NS;
	for (uint32_t i = 0; i < s->type_count; i++)
		tell_type(n, s, s->types[i]);
	tell_dead(n, s);
}
