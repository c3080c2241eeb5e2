/* net/sources.c - see sources.h. */
#include "net/sources.h"

#include "core/mem.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <xxhash.h>

#define MINUTE_US UINT64_C(60000000)

struct source {
	struct source *next;
	uint8_t        address[SOURCE_ADDRESS]; /* of IPv4: mapped; of IPv6: the network's, then zeros */
	uint32_t       shard;
	uint32_t       connections;        /* guarded by the shard's word, as is all below        */
	struct bucket  failures;
	uint64_t       told_ms;            /* when it was last said that it has to wait; 0: never */
};

/* A -> B  hands the entries on. */
static void hold(atomic_u32 *word)
{
	while (swap_acquire(word, 1) != 0)                                     /* B */
		cpu_relax();
}

static void let_go(atomic_u32 *word)
{
	store_release(word, 0);                                                /* A */
}

bool sources_open(struct sources *s)
{
	memset(s, 0, sizeof *s);
	if (getrandom(&s->seed, sizeof s->seed, 0) != (ssize_t)sizeof s->seed)
		s->seed = (uintptr_t)s;
	s->shards = mem_zalloc(SOURCES_SHARDS * sizeof *s->shards);
	return s->shards != NULL;
}

void sources_close(struct sources *s)
{
	for (uint32_t i = 0; s->shards && i < SOURCES_SHARDS; i++)
		while (s->shards[i].first) {
			struct source *x = s->shards[i].first;

			s->shards[i].first = x->next;
			mem_free(x, sizeof *x);
		}
	mem_free(s->shards, SOURCES_SHARDS * sizeof *s->shards);
	s->shards = NULL;
}

/* ── buckets ── */

static void leak(struct bucket *b, uint64_t now_ms)
{
	uint64_t leaked = now_ms > b->seen_ms ? (now_ms - b->seen_ms) * 1000 : 0;

	b->level_us -= leaked < b->level_us ? leaked : b->level_us;
	b->seen_ms = now_ms;
}

/* How long until there is room for one more of so many a minute. */
static uint64_t wait_us(const struct bucket *b, uint64_t per_minute)
{
	uint64_t full = b->level_us + MINUTE_US / per_minute;

	return full > MINUTE_US ? full - MINUTE_US : 0;
}

static void fill(struct bucket *b, uint64_t per_minute)
{
	b->level_us += MINUTE_US / per_minute;
	if (b->level_us > MINUTE_US)
		b->level_us = MINUTE_US;
}

/* ── entries ── */

bool source_address(int fd, uint8_t out[SOURCE_ADDRESS])
{
	struct sockaddr_storage at;
	socklen_t len = sizeof at;

	if (getpeername(fd, (struct sockaddr *)&at, &len) != 0)
		return false;
	memset(out, 0, SOURCE_ADDRESS);
	if (at.ss_family == AF_INET) {
		out[10] = out[11] = 0xff;
		memcpy(out + 12, &((struct sockaddr_in *)(void *)&at)->sin_addr, 4);
		return true;
	}
	if (at.ss_family != AF_INET6)
		return false;
	struct in6_addr *six = &((struct sockaddr_in6 *)(void *)&at)->sin6_addr;

	memcpy(out, six, IN6_IS_ADDR_V4MAPPED(six) ? 16 : 8);
	return true;
}

/* Who has no connection, and no failure that still counts, is forgotten. */
static struct source *find(struct sources *s, struct source_shard *shard, const uint8_t address[SOURCE_ADDRESS], uint64_t now_ms)
{
	struct source *found = NULL;

	for (struct source **at = &shard->first; *at; ) {
		struct source *x = *at;

		leak(&x->failures, now_ms);
		if (memcmp(x->address, address, sizeof x->address) == 0) {
			found = x;
		} else if (!x->connections && !x->failures.level_us) {
			*at = x->next;
			mem_free(x, sizeof *x);
			sub_relaxed(&s->kept, 1);
			continue;
		}
		at = &x->next;
	}
	return found;
}

static struct source *add(struct source_shard *shard, const uint8_t address[SOURCE_ADDRESS], uint32_t number, uint64_t now_ms)
{
	struct source *x = mem_zalloc(sizeof *x);

	if (!x)
		return NULL;
	memcpy(x->address, address, sizeof x->address);
	x->shard = number;
	x->failures.seen_ms = now_ms;
	x->next = shard->first;
	shard->first = x;
	return x;
}

struct source *source_enter(struct sources *s, const uint8_t address[SOURCE_ADDRESS], uint32_t most, uint64_t now_ms,
			    bool *full)
{
	struct source_shard *shard;
	struct source *x;
	uint32_t number;

	*full = false;
	if (!s->shards)
		return NULL;
	number = (uint32_t)XXH3_64bits_withSeed(address, SOURCE_ADDRESS, s->seed) & (SOURCES_SHARDS - 1);
	shard = &s->shards[number];
	hold(&shard->held);
	x = find(s, shard, address, now_ms);
	*full = most && x && x->connections >= most;
	if (!x)
		x = add(shard, address, number, now_ms);
	else if (!*full && !x->connections)
		sub_relaxed(&s->kept, 1);
	if (*full)
		x = NULL;
	if (x)
		x->connections++;
	let_go(&shard->held);
	return x;
}

static void drop(struct source_shard *shard, struct source *x)
{
	struct source **at = &shard->first;

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	mem_free(x, sizeof *x);
}

void source_leave(struct sources *s, struct source *from, uint64_t now_ms)
{
	struct source_shard *shard;

	if (!from)
		return;
	shard = &s->shards[from->shard];
	hold(&shard->held);
	leak(&from->failures, now_ms);
	if (--from->connections == 0) {
		if (from->failures.level_us && load_relaxed(&s->kept) < SOURCES_KEPT)
			add_relaxed(&s->kept, 1);
		else
			drop(shard, from);
	}
	let_go(&shard->held);
}

/* ── logins ── */

static uint64_t crowd_waits_us(struct sources *s, uint64_t per_minute, uint64_t now_ms)
{
	uint64_t us;

	hold(&s->crowd.held);
	leak(&s->crowd.failures, now_ms);
	us = wait_us(&s->crowd.failures, per_minute * SOURCES_CROWD);
	let_go(&s->crowd.held);
	return us;
}

uint64_t source_waits_ms(struct sources *s, struct source *from, uint32_t per_minute, uint64_t now_ms)
{
	struct source_shard *shard;
	uint64_t us;
	bool failed;

	if (!from)
		return 0;
	shard = &s->shards[from->shard];
	hold(&shard->held);
	leak(&from->failures, now_ms);
	us = wait_us(&from->failures, per_minute);
	failed = from->failures.level_us != 0;
	let_go(&shard->held);
	if (us == 0 && failed)
		us = crowd_waits_us(s, per_minute, now_ms);
	return (us + 999) / 1000;
}

bool source_failed(struct sources *s, struct source *from, uint32_t per_minute, uint64_t now_ms)
{
	struct source_shard *shard;
	bool tell;

	hold(&s->crowd.held);
	leak(&s->crowd.failures, now_ms);
	fill(&s->crowd.failures, (uint64_t)per_minute * SOURCES_CROWD);
	let_go(&s->crowd.held);
	if (!from)
		return false;
	shard = &s->shards[from->shard];
	hold(&shard->held);
	leak(&from->failures, now_ms);
	fill(&from->failures, per_minute);
	tell = wait_us(&from->failures, per_minute) != 0 &&
	       (!from->told_ms || now_ms - from->told_ms >= MINUTE_US / 1000);
	if (tell)
		from->told_ms = now_ms;
	let_go(&shard->held);
	return tell;
}

void source_text(const struct source *from, char text[SOURCE_TEXT_MAX])
{
	bool four = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)from->address);

	if (!inet_ntop(four ? AF_INET : AF_INET6, four ? from->address + 12 : from->address, text, SOURCE_TEXT_MAX))
		text[0] = 0;
	if (!four)
		strcat(text, "/64");
}
