/* bench/load_inventory.c - reserve and commit, against noh's commands or a script of the same meaning.
 *
 * reserve-commit   half of a batch commits what the batch before it reserved, half reserves anew
 * flash-sale       the same with one SKU, a number of orders, each with its idempotency key; to be told
 *                  that all is sold is an answer, not an error
 *
 * In the script a SKU is a hash: a available, s sold, i last reservation, h<i> units held by it; and a
 * sorted set of the holds by the time they end. It does the least that means the same: stock never below
 * zero, holds that end, one answer per idempotency key.
 */
#include "bench/load.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLENTY 1000000000ull        /* units of a SKU that must not run out */

static const char lua_reserve[] =
	"local k,o,d=KEYS[1],KEYS[2],KEYS[1]..':d' "
	"if o then local was=redis.call('GET',o) if was then "
	"local i,a=string.match(was,'(%d+):(%d+)') return {tonumber(i),tonumber(a)} end end "
	"local now=tonumber(redis.call('TIME')[1]) "
	"for _,i in ipairs(redis.call('ZRANGEBYSCORE',d,'-inf',now,'LIMIT',0,8)) do "
	"redis.call('HINCRBY',k,'a',redis.call('HGET',k,'h'..i)) "
	"redis.call('HDEL',k,'h'..i) redis.call('ZREM',d,i) end "
	"local f=redis.call('HMGET',k,'a','i') local a,n=tonumber(f[1] or '0'),tonumber(ARGV[1]) "
	"if a<n then return redis.error_reply('OUTOFSTOCK '..a..' available') end "
	"local i=tonumber(f[2] or '0')+1 a=a-n "
	"redis.call('HSET',k,'a',a,'i',i,'h'..i,n) redis.call('ZADD',d,now+ARGV[2],i) "
	"if o then redis.call('SET',o,i..':'..a,'EX',86400) end return {i,a}";
static const char lua_commit[] =
	"local k,h=KEYS[1],'h'..ARGV[1] local n=redis.call('HGET',k,h) "
	"if not n then return redis.error_reply('NOHOLD '..ARGV[1]) end "
	"redis.call('HDEL',k,h) redis.call('ZREM',k..':d',ARGV[1]) return redis.call('HINCRBY',k,'s',n)";

/* ── before ───────────────────────────────────────────────────────────────────────────────── */
static bool load_script(int fd, const char *text, char *sha, size_t room, char *why, size_t why_room)
{
	const char *argv[] = { "SCRIPT", "LOAD", text };
	struct reply r;

	if (load_ask(fd, &r, NULL, 0, 3, argv) && r.type == '$') {
		snprintf(sha, room, "%.40s", r.leaf);
		return true;
	}
	snprintf(why, why_room, "SCRIPT LOAD was not answered as Redis does; is --dialect redis right?");
	return false;
}

/* The same request for keys 0 .. count - 1, `each` times, a thousand under way. */
static bool for_all_keys(struct load *l, int fd, const struct load_template *x, uint64_t count, uint64_t each,
			 char *why, size_t room)
{
	enum { GROUP = 1000 };
	uint64_t total = count * each;
	char *bytes = malloc(GROUP * (size_t)(x->len + 1));
	struct reply r = { .type = '+' };
	bool fine = bytes != NULL;

	for (uint64_t done = 0; fine && done < total; ) {
		char *at = bytes;
		uint64_t n = 0;

		for (; n < GROUP && done < total; n++, done++)
			at = load_put(l, at, x, done / each, 999999999999u - done);   /* orders of their own */
		fine = load_say(fd, bytes, (size_t)(at - bytes)) && load_hear(fd, n, &r, NULL, 0) &&
		       r.type != '-';
	}
	free(bytes);
	if (!fine)
		snprintf(why, room, "stock cannot be prepared: %.120s", r.type == '-' ? r.leaf : "no answer");
	return fine;
}

static bool restock(struct load *l, int fd, char *why, size_t room)
{
	const struct load_plan *p = l->plan;
	const struct load_template *reserve = &l->ask[KIND_RESERVE];
	struct load_template x = { 0 };
	char units[24], key[LOAD_KEY];
	uint32_t key_len = p->mix == MIX_SALE ? (uint32_t)strlen(l->sku) : p->key_bytes;
	const char *noh[] = { "INV.RESTOCK", key, units }, *redis[] = { "HINCRBY", key, "a", units };

	snprintf(units, sizeof units, "%llu", p->mix == MIX_SALE ? (unsigned long long)p->units : PLENTY);
	if (p->mix == MIX_SALE)
		snprintf(key, sizeof key, "%s", l->sku);
	else
		snprintf(key, sizeof key, "%s%0*d", p->prefix, (int)(key_len - strlen(p->prefix)), 0);
	x.len = (uint32_t)(p->dialect == DIALECT_NOH ? load_command(x.text, sizeof x.text, 3, noh)
						     : load_command(x.text, sizeof x.text, 4, redis));
	if (reserve->key_end != 0)
		x.key_end = (uint32_t)(strstr(x.text, key) - x.text) + key_len;
	uint64_t keys = p->mix == MIX_SALE ? 1 : p->keys;

	return for_all_keys(l, fd, &x, keys, 1, why, room) &&
	       (p->holds == 0 || for_all_keys(l, fd, reserve, keys, p->holds, why, room));
}

bool inventory_prepare(struct load *l, char *why, size_t room)
{
	int fd = load_dial(l->plan, why, room);
	bool fine = fd >= 0;

	if (fine && l->plan->dialect == DIALECT_REDIS)
		fine = load_script(fd, lua_reserve, l->sha_reserve, sizeof l->sha_reserve, why, room) &&
		       load_script(fd, lua_commit, l->sha_commit, sizeof l->sha_commit, why, room);
	snprintf(l->sku, sizeof l->sku, "%ssale%s", l->plan->prefix, l->run);
	load_templates(l);
	if (fine && l->plan->prepare)
		fine = restock(l, fd, why, room);
	if (fd >= 0)
		close(fd);
	return fine;
}

/* ── while ────────────────────────────────────────────────────────────────────────────────── */
static char *put_commit(struct load *l, char *at, const struct load_hold *h)
{
	at = load_put(l, at, &l->ask[KIND_COMMIT], h->key, 0);
	at += sprintf(at, "$%u\r\n", h->len);
	memcpy(at, h->id, h->len);
	memcpy(at + h->len, "\r\n", 2);
	return at + h->len + 2;
}

uint32_t inventory_fill(struct load_thread *t, struct load_conn *c, bool fresh)
{
	struct load *l = t->load;
	uint32_t most = l->plan->pipeline, half = most > 1 ? most / 2 : 1, n = 0;
	char *at = c->out;

	for (; c->held > 0 && n < most; n++) {
		struct load_hold *h = &c->holds[--c->held];

		at = put_commit(l, at, h);
		c->slots[n] = (struct load_slot){ (uint32_t)(at - c->out), KIND_COMMIT, h->key };
	}
	for (uint32_t i = 0; fresh && i < half && n < most && t->budget > 0; i++, n++) {
		uint64_t key = keys_next(&l->keys, &t->random, &t->seq);

		at = load_put(l, at, &l->ask[KIND_RESERVE], key, t->order);
		t->order += l->plan->threads;
		t->budget--;
		c->slots[n] = (struct load_slot){ (uint32_t)(at - c->out), KIND_RESERVE, key };
	}
	return n;
}

static uint64_t hash_of(const char *text, size_t n)
{
	uint64_t h = 14695981039346656037u;

	while (n-- > 0)
		h = (h ^ (uint8_t)*text++) * 1099511628211u;
	return h;
}

static void remember_winner(struct load_thread *t, const struct reply *r)
{
	if (t->out.reserved >= t->winners_room) {
		uint64_t room = t->winners_room > 0 ? 2 * t->winners_room : 1024;
		uint64_t *more = realloc(t->winners, room * sizeof *more);

		if (more == NULL) {
			load_fail(t, "no memory for %llu winners", (unsigned long long)room);
			return;
		}
		t->winners = more;
		t->winners_room = room;
	}
	t->winners[t->out.reserved] = hash_of(r->leaf, r->leaf_len);
}

static bool says_sold_out(const char *text)
{
	return strncmp(text, "OUTOFSTOCK", 10) == 0;
}

void inventory_reply(struct load_thread *t, struct load_conn *c, const struct load_slot *slot)
{
	const struct reply *r = &c->reply;
	bool sale = t->load->plan->mix == MIX_SALE;

	if (r->type == '-') {
		if (sale && slot->kind == KIND_RESERVE && says_sold_out(r->leaf)) {
			t->out.sold_out++;
			return;
		}
		if (t->out.errors++ == 0)
			memcpy(t->out.first_error, r->leaf, sizeof r->leaf);
	} else if (slot->kind == KIND_COMMIT) {
		t->out.committed++;
	} else if (r->type != '*' || r->leaf_len == 0 || r->leaf_len > LOAD_ID) {
		load_fail(t, "a reservation was answered with %c%.60s, not [reservation, available]", r->type,
			  r->leaf);
	} else {
		struct load_hold *h = &c->holds[c->held++];

		h->key = slot->key;
		h->len = r->leaf_len;
		memcpy(h->id, r->leaf, r->leaf_len);
		if (sale)
			remember_winner(t, r);
		t->out.reserved++;
	}
}

/* ── after ────────────────────────────────────────────────────────────────────────────────── */
static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool all_different(const struct load *l, const struct load_thread *threads, uint64_t total)
{
	uint64_t *all = calloc(total + 1, sizeof *all), n = 0;

	for (unsigned i = 0; all != NULL && i < l->plan->threads; i++) {
		if (threads[i].out.reserved > 0)
			memcpy(all + n, threads[i].winners, threads[i].out.reserved * sizeof *all);
		n += threads[i].out.reserved;
	}
	if (all == NULL)
		return false;
	qsort(all, n, sizeof *all, by_value);
	bool fine = true;
	for (uint64_t i = 1; i < n; i++)
		fine = fine && all[i] != all[i - 1];
	free(all);
	return fine;
}

/* The numbers of a flat reply, whether sent as integers or as text. */
static unsigned numbers_in(char *raw, long long *numbers, unsigned room)
{
	unsigned n = 0;
	char *save = NULL, *end;

	for (char *line = strtok_r(raw, "\r\n", &save); line != NULL && n < room;
	     line = strtok_r(NULL, "\r\n", &save)) {
		if (*line == '*' || *line == '$' || *line == '%')
			continue;
		if (*line == ':')
			line++;
		numbers[n] = strtoll(line, &end, 10);
		if (end != line && *end == '\0')
			n++;
	}
	return n;
}

LOAD_PRINTF(2, 3) static void wrong(struct load_result *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(out->failure, sizeof out->failure, format, args);
	va_end(args);
}

/* What the server says is left and sold, once all is over. */
static void ask_stock(struct load *l, struct load_result *out, uint64_t sold)
{
	const char *noh[] = { "INV.GET", l->sku }, *redis[] = { "HMGET", l->sku, "a", "s" };
	long long n[4] = { 0 };
	char raw[1024], why[200];
	struct reply r;
	int fd = load_dial(l->plan, why, sizeof why);
	bool of_noh = l->plan->dialect == DIALECT_NOH;
	bool fine = fd >= 0 && (of_noh ? load_ask(fd, &r, raw, sizeof raw, 2, noh)
				       : load_ask(fd, &r, raw, sizeof raw, 4, redis));
	long long left = (long long)(l->plan->units - sold), want = (long long)sold;

	if (fd >= 0)
		close(fd);
	unsigned found = fine ? numbers_in(raw, n, of_noh ? 4 : 2) : 0;

	if (!fine || r.type == '-')
		wrong(out, "the stock of %.60s cannot be read after the sale: %.100s", l->sku, fine ? r.leaf : "no answer");
	else if (of_noh && (found != 4 || n[0] != left || n[1] != 0 || n[2] != left || n[3] != want))
		wrong(out, "INV.GET says on hand %lld, reserved %lld, available %lld, sold %lld; not %lld, 0, %lld, %lld",
		      n[0], n[1], n[2], n[3], left, left, want);
	else if (!of_noh && (found != 2 || n[0] != left || n[1] != want))
		wrong(out, "the server says available %lld, sold %lld; not %lld, %lld", n[0], n[1], left, want);
}

void inventory_verify(struct load *l, struct load_thread *threads, struct load_result *out)
{
	uint64_t orders = l->plan->requests, want = orders < l->plan->units ? orders : l->plan->units;

	if (l->plan->mix != MIX_SALE || out->failure[0] != '\0')
		return;
	if (out->reserved != want || out->committed != want || out->sold_out != orders - want)
		wrong(out, "%llu orders for %llu units: %llu won, %llu were committed, %llu came too late",
		      (unsigned long long)orders, (unsigned long long)l->plan->units,
		      (unsigned long long)out->reserved, (unsigned long long)out->committed,
		      (unsigned long long)out->sold_out);
	else if (!all_different(l, threads, out->reserved))
		wrong(out, "two orders won the same reservation");
	else
		ask_stock(l, out, want);
}
