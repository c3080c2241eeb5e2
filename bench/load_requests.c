/* bench/load_requests.c - requests are templates, made ahead: writing one is a copy and a few digits. */
#include "bench/load.h"

#include <stdio.h>
#include <string.h>

enum { ORDER_DIGITS = 12 };

/* Writes number into the `digits` places before end, from the right, with leading zeros. */
void load_digits(char *end, uint64_t number, unsigned digits)
{
	static const char pairs[] =
		"00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445"
		"46474849505152535455565758596061626364656667686970717273747576777879808182838485868788899091"
		"9293949596979899";

	if (digits > 6) {                        /* two short chains of divisions instead of a long one */
		load_digits(end - 6, number / 1000000, digits - 6);
		number %= 1000000;
		digits = 6;
	}
	for (; digits >= 2; digits -= 2) {
		end -= 2;
		memcpy(end, pairs + 2 * (number % 100), 2);
		number /= 100;
	}
	if (digits == 1)
		end[-1] = (char)('0' + number % 10);
}

static unsigned key_digits(const struct load_plan *p)
{
	return p->key_bytes - (unsigned)strlen(p->prefix);
}

static void key_zero(const struct load *l, char *key)      /* the key number 0, LOAD_KEY bytes */
{
	if (l->plan->mix == MIX_SALE)
		snprintf(key, LOAD_KEY, "%s", l->sku);
	else
		snprintf(key, LOAD_KEY, "%s%0*d", l->plan->prefix, (int)key_digits(l->plan), 0);
}

static void template(struct load_template *x, unsigned argc, const char *const *argv, unsigned key_at,
		     unsigned order_at)
{
	*x = (struct load_template){ 0 };
	x->len = (uint32_t)load_command(x->text, sizeof x->text, argc, argv);
	if (key_at != 0)      /* the first arguments up to the key give its place */
		x->key_end = (uint32_t)load_command((char[512]){ 0 }, 512, key_at + 1, argv) - 2;
	if (order_at != 0)
		x->order_end = (uint32_t)load_command((char[1024]){ 0 }, 1024, order_at + 1, argv) - 2;
}

static void inventory_templates(struct load *l, const char *key)
{
	const struct load_plan *p = l->plan;
	char ttl[16], order[64];
	bool idem = p->idem || p->mix == MIX_SALE;

	snprintf(ttl, sizeof ttl, "%u", p->ttl);
	snprintf(order, sizeof order, "o%s-%0*d", l->run, ORDER_DIGITS, 0);
	if (p->dialect == DIALECT_NOH) {
		const char *reserve[] = { "INV.RESERVE", key, "1", "TTL", ttl, "IDEM", order };
		const char *commit[] = { "INV.COMMIT", key, "" };

		template(&l->ask[KIND_RESERVE], idem ? 7 : 5, reserve, 1, idem ? 6 : 0);
		template(&l->ask[KIND_COMMIT], 3, commit, 1, 0);
	} else {
		const char *plain[] = { "EVALSHA", l->sha_reserve, "1", key, "1", ttl };
		const char *once[] = { "EVALSHA", l->sha_reserve, "2", key, order, "1", ttl };
		const char *commit[] = { "EVALSHA", l->sha_commit, "1", key, "" };

		if (idem)
			template(&l->ask[KIND_RESERVE], 7, once, 3, 4);
		else
			template(&l->ask[KIND_RESERVE], 6, plain, 3, 0);
		template(&l->ask[KIND_COMMIT], 5, commit, 3, 0);
	}
	l->ask[KIND_COMMIT].len -= (uint32_t)strlen("$0\r\n\r\n");      /* the id comes there */
	if (p->mix == MIX_SALE)
		l->ask[KIND_RESERVE].key_end = l->ask[KIND_COMMIT].key_end = 0;
}

void load_templates(struct load *l)
{
	char key[LOAD_KEY], channel[32], payload[LOAD_PAYLOAD + 1];
	unsigned bytes = l->plan->payload;

	key_zero(l, key);
	snprintf(channel, sizeof channel, "load-%s", l->run);
	memset(payload, 'x', bytes);
	memset(payload, '0', LOAD_STAMP);
	payload[bytes] = '\0';
	const char *incr[] = { "INCR", key }, *get[] = { "GET", key }, *set[] = { "SET", key, "1000000" };
	const char *ping[] = { "PING" }, *publish[] = { "PUBLISH", channel, payload };

	template(&l->ask[KIND_INCR], 2, incr, 1, 0);
	template(&l->ask[KIND_GET], 2, get, 1, 0);
	template(&l->ask[KIND_SET], 3, set, 1, 0);
	template(&l->ask[KIND_PING], 1, ping, 0, 0);
	template(&l->ask[KIND_PUBLISH], 3, publish, 0, 0);
	l->ask[KIND_PUBLISH].order_end = l->ask[KIND_PUBLISH].len - 2 - bytes + LOAD_STAMP;
	inventory_templates(l, key);
}

size_t load_most_bytes(const struct load *l)
{
	size_t most = 0;

	for (unsigned i = 0; i <= KIND_PUBLISH; i++)
		if ((i == KIND_PUBLISH) == (l->plan->mix == MIX_PUBSUB) && l->ask[i].len > most)
			most = l->ask[i].len;
	return most + LOAD_ID + 16;
}

char *load_put(struct load *l, char *at, const struct load_template *x, uint64_t key, uint64_t order)
{
	memcpy(at, x->text, x->len);
	if (x->key_end != 0)
		load_digits(at + x->key_end, key, key_digits(l->plan));
	if (x->order_end != 0)
		load_digits(at + x->order_end, order, ORDER_DIGITS);
	return at + x->len;
}

static enum request_kind write_kind(enum load_mix mix)
{
	switch (mix) {
	case MIX_GET: return KIND_GET;
	case MIX_SET: return KIND_SET;
	case MIX_PING: return KIND_PING;
	case MIX_PUBSUB: return KIND_PUBLISH;
	default: return KIND_INCR;
	}
}

/* A batch of one kind of request: what the last one left in out is the same but for its digits. */
static void refill(struct load_thread *t, struct load_conn *c, enum request_kind kind, uint32_t most)
{
	struct load *l = t->load;
	const struct load_template *x = &l->ask[kind];
	unsigned digits = key_digits(l->plan);
	char *at = c->out;

	for (; c->made < most; c->made++) {
		memcpy(c->out + (size_t)c->made * x->len, x->text, x->len);
		c->slots[c->made] = (struct load_slot){ (c->made + 1) * x->len, (uint8_t)kind, 0 };
	}
	if (x->key_end != 0)
		for (uint32_t i = 0; i < most; i++, at += x->len)
			load_digits(at + x->key_end, keys_next(&l->keys, &t->random, &t->seq), digits);
	else if (x->order_end != 0)
		for (uint32_t i = 0; i < most; i++, at += x->len)
			load_digits(at + x->order_end, c->start, LOAD_STAMP);
}

static void fill_mixed(struct load_thread *t, struct load_conn *c, enum request_kind write, uint32_t most)
{
	struct load *l = t->load;
	uint64_t reads = (uint64_t)(l->plan->reads * 0x1p32);
	char *at = c->out;

	for (uint32_t i = 0; i < most; i++) {
		uint64_t key = keys_next(&l->keys, &t->random, &t->seq);
		enum request_kind kind = random_next(&t->random) >> 32 < reads ? KIND_GET : write;

		at = load_put(l, at, &l->ask[kind], key, 0);
		c->slots[i] = (struct load_slot){ (uint32_t)(at - c->out), (uint8_t)kind, key };
	}
}

uint32_t load_fill(struct load_thread *t, struct load_conn *c, bool fresh)
{
	const struct load_plan *p = t->load->plan;

	if (p->mix == MIX_RESERVE || p->mix == MIX_SALE)
		return inventory_fill(t, c, fresh);
	if (!fresh)
		return 0;
	uint32_t most = p->pipeline < t->budget ? p->pipeline : (uint32_t)t->budget;

	if (p->reads > 0)
		fill_mixed(t, c, write_kind(p->mix), most);
	else
		refill(t, c, write_kind(p->mix), most);
	t->budget -= most;
	return most;
}
