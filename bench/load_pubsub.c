/* bench/load_pubsub.c - subscribers: every message is as long as every other and begins alike, so counting
 * them is a comparison of the beginning, and latency a comparison of the time stamp with the last one seen.
 */
#include "bench/load.h"

#include <stdio.h>
#include <string.h>

void pubsub_message(struct load *l)
{
	l->head_len = (uint32_t)snprintf(l->head, sizeof l->head,
					 "*3\r\n$7\r\nmessage\r\n$%zu\r\nload-%s\r\n$%u\r\n",
					 strlen(l->run) + 5, l->run, l->plan->payload);
	l->message_len = l->head_len + l->plan->payload + 2;
}

static uint64_t stamp_of(struct load_thread *t, const uint8_t *text)
{
	if (memcmp(text, t->stamp_text, LOAD_STAMP) == 0)
		return t->stamp;
	memcpy(t->stamp_text, text, LOAD_STAMP);
	t->stamp = 0;
	for (unsigned i = 0; i < LOAD_STAMP; i++)
		t->stamp = t->stamp * 10 + (uint64_t)(text[i] - '0');
	return t->stamp;
}

static void message(struct load_thread *t, const uint8_t *at)
{
	const struct load *l = t->load;

	if (memcmp(at, l->head, l->head_len) != 0) {
		load_fail(t, "a subscriber got something else than a message: %.40s", (const char *)at);
		return;
	}
	uint64_t start = stamp_of(t, at + l->head_len);
	t->out.delivered++;
	if (!t->measuring)
		return;
	t->out.ops++;
	hist_add(&t->out.latency, t->now > start ? t->now - start : 0);
}

void pubsub_received(struct load_thread *t, struct load_conn *c, const uint8_t *bytes, size_t n)
{
	const size_t len = t->load->message_len;

	t->last_reply = t->now;
	if (c->part_len > 0) {
		size_t take = n < len - c->part_len ? n : len - c->part_len;

		memcpy(c->part + c->part_len, bytes, take);
		c->part_len += (uint32_t)take;
		bytes += take;
		n -= take;
		if (c->part_len < len)
			return;
		message(t, c->part);
		c->part_len = 0;
	}
	for (; n >= len; bytes += len, n -= len)
		message(t, bytes);
	memcpy(c->part, bytes, n);
	c->part_len = (uint32_t)n;
}
