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

/* Counts whole messages, runs with the same time stamp (a batch) at once; how many bytes they were. */
static size_t messages(struct load_thread *t, const uint8_t *at, size_t n)
{
	const struct load *l = t->load;
	size_t done = 0;

	while (n - done >= l->message_len) {
		uint64_t start = stamp_of(t, at + done + l->head_len), run = 0;

		for (; n - done >= l->message_len; done += l->message_len, run++) {
			const uint8_t *m = at + done;

			if (memcmp(m, l->head, l->head_len) != 0) {
				load_fail(t, "a subscriber got something else than a message: %.40s",
					  (const char *)m);
				return n;
			}
			if (memcmp(m + l->head_len, t->stamp_text, LOAD_STAMP) != 0)
				break;
		}
		t->out.delivered += run;
		if (!t->measuring)
			continue;
		t->out.ops += run;
		hist_add_many(&t->out.latency, t->now > start ? t->now - start : 0, run);
	}
	return done;
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
		messages(t, c->part, len);
		c->part_len = 0;
	}
	size_t done = messages(t, bytes, n);

	memcpy(c->part, bytes + done, n - done);
	c->part_len = (uint32_t)(n - done);
}
