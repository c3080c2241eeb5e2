/* bench/load_thread.c - one thread's connections, from the first batch to the last reply.
 *
 *     wait ─► load_woke (what time is it) ─► load_received ─► a batch is answered ─► the next one
 *
 * With a rate, batch number k of a thread is due at base + k * interval and belongs to connection k mod
 * senders. A connection that is idle when its batch becomes due starts it; one that is not owes it, and
 * starts it as soon as it can, with its intended start. No queue is kept: numbers are enough.
 */
#include "bench/load_io.h"
#include "tools/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { RETRY_NS = 20000000, BEAT_NS = 20000000 };

void load_fail(struct load_thread *t, const char *format, ...)
{
	va_list args;

	if (t->out.failure[0] != '\0')
		return;                                   /* the first one counts */
	va_start(args, format);
	vsnprintf(t->out.failure, sizeof t->out.failure, format, args);
	va_end(args);
}

/* ── the measured interval ────────────────────────────────────────────────────────────────── */
static double server_cpu(int pid)
{
	char path[64], text[1024], *at;
	unsigned long user, system;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *f = pid != 0 ? fopen(path, "r") : NULL;
	if (f == NULL)
		return -1;
	size_t n = fread(text, 1, sizeof text - 1, f);

	fclose(f);
	text[n] = '\0';
	at = strrchr(text, ')');                          /* the name may hold anything */
	if (at == NULL ||
	    sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
		return -1;
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void begin_measuring(struct load_thread *t)
{
	t->measuring = true;
	t->measured_from = t->now;
	if (t->number == 0) {
		t->out.server_cpu = server_cpu(t->load->plan->server_pid);
		t->out.client_cpu = cli_cpu_seconds();
	}
}

static void end_measuring(struct load_thread *t)
{
	t->measuring = false;
	t->measured = true;
	t->measured_to = t->now;
	if (t->number == 0) {
		double cpu = server_cpu(t->load->plan->server_pid);

		t->out.server_cpu = cpu < 0 || t->out.server_cpu < 0 ? -1 : cpu - t->out.server_cpu;
		t->out.client_cpu = cli_cpu_seconds() - t->out.client_cpu;
	}
}

void load_woke(struct load_thread *t)
{
	t->now = cli_now_ns();
	if (!t->measuring && !t->measured && t->now >= t->begin)
		begin_measuring(t);
	if (t->now >= t->end && !t->stopping) {
		if (t->measuring)
			end_measuring(t);
		t->stopping = true;
	}
}

/* With a rate a request counts if it should have started within the interval, whenever it is answered:
 * otherwise the slowest ones at the end would be forgotten. */
static void answered(struct load_thread *t, const struct load_conn *c, uint32_t n)
{
	bool counts = t->interval > 0 ? c->start >= t->begin && c->start < t->end : t->measuring;

	t->out.replies += n;
	if (t->load->plan->mix == MIX_PUBSUB)
		return;                                   /* there a delivery is the operation */
	if (t->measuring)
		t->out.ops += n;
	if (counts)
		hist_add_many(&t->out.latency, t->now > c->start ? t->now - c->start : 0, n);
}

/* ── batches ──────────────────────────────────────────────────────────────────────────────── */
static void transmit(struct load_thread *t, struct load_conn *c)
{
	if (!c->down)
		t->io->ops->send(t->io, c);
}

static bool start_batch(struct load_thread *t, struct load_conn *c, uint64_t start, bool fresh)
{
	c->start = start;
	c->count = load_fill(t, c, fresh);
	if (c->count == 0)
		return false;
	c->awaiting = c->count;
	c->out_sent = 0;
	c->out_len = c->slots[c->count - 1].end;
	t->out.requests += c->count;
	t->busy++;
	transmit(t, c);
	return true;
}

static uint64_t due_at(const struct load_thread *t, uint64_t batch)
{
	double share = (double)t->number / t->load->plan->threads;       /* threads take turns */

	return t->load->base + (uint64_t)(t->interval * ((double)batch + share));
}

static void start_owed(struct load_thread *t, struct load_conn *c)
{
	uint64_t start = due_at(t, c->due);

	c->owed--;
	c->due += t->senders;
	if (!start_batch(t, c, start, true))
		c->owed = 0;                              /* the last request has been made */
}

/* What became due since the last pass; then until when there is nothing. The generator's own lateness is
 * that of batches whose connection was idle: whatever else is late waits for the server. */
static uint64_t release_due(struct load_thread *t)
{
	uint64_t due = due_at(t, t->next);

	while (due <= t->now && due < t->end && t->budget > 0) {
		struct load_conn *c = &t->conns[t->next % t->senders];

		if (c->owed++ == 0)
			c->due = t->next;
		if (c->awaiting == 0) {
			if (t->measuring)
				hist_add(&t->out.lag, t->now - due);
			start_owed(t, c);
		}
		due = due_at(t, ++t->next);
	}
	return due < t->end && t->budget > 0 ? due : t->now + BEAT_NS;
}

static void batch_answered(struct load_thread *t, struct load_conn *c)
{
	t->busy--;
	if (c->owed > 0)
		start_owed(t, c);
	else if (t->interval == 0 || t->stopping)         /* at the end: what is reserved is still committed */
		start_batch(t, c, t->now, !t->stopping);
}

/* ── replies ──────────────────────────────────────────────────────────────────────────────── */
static void one_reply(struct load_thread *t, struct load_conn *c)
{
	static const char *const expected[] = { [KIND_INCR] = ":", [KIND_GET] = "$_:", [KIND_SET] = "+",
						[KIND_PING] = "+", [KIND_PUBLISH] = ":" };
	const struct load_slot *slot = &c->slots[c->count - c->awaiting];
	const struct reply *r = &c->reply;

	if (slot->kind == KIND_RESERVE || slot->kind == KIND_COMMIT) {
		inventory_reply(t, c, slot);
	} else if (r->type == '-') {
		if (t->out.errors++ == 0)
			memcpy(t->out.first_error, r->leaf, sizeof r->leaf);
	} else if (strchr(expected[slot->kind], r->type) == NULL) {
		load_fail(t, "%s was answered with %c%.60s", load_mix_name(t->load->plan->mix), r->type,
			  r->leaf);
	}
}

void load_received(struct load_thread *t, struct load_conn *c, const uint8_t *bytes, size_t n)
{
	const uint8_t *at = bytes, *end = bytes + n;
	const struct load_plan *p = t->load->plan;
	bool integers = p->mix == MIX_PUBSUB || (p->mix == MIX_INCR && p->reads <= 0);

	if (c->listener) {
		pubsub_received(t, c, bytes, n);
		return;
	}
	t->last_reply = t->now;
	while (at < end) {
		uint32_t done = integers && reply_between(&c->reply) ? reply_integers(&at, end) : 0;

		if (done == 0) {
			enum reply_state state = reply_next(&c->reply, &at, end);

			if (state == REPLY_MORE)
				return;
			if (state == REPLY_BROKEN) {
				load_fail(t, "the server sent something that is no RESP");
				return;
			}
			if (c->awaiting > 0)
				one_reply(t, c);
			done = 1;
		}
		if (done > c->awaiting) {
			load_fail(t, "the server sent more replies than it got requests");
			return;
		}
		answered(t, c, done);
		c->awaiting -= done;
		if (c->awaiting == 0)
			batch_answered(t, c);
	}
}

/* ── lost connections ─────────────────────────────────────────────────────────────────────── */
void load_lost(struct load_thread *t, struct load_conn *c, int error)
{
	if (t->load->plan->retry <= 0 || c->listener) {
		load_fail(t, "the server closed connection %u%s%s", c->index, error != 0 ? ": " : "",
			  error != 0 ? strerror(error) : "");
		return;
	}
	t->io->ops->unwatch(t->io, c);
	close(c->fd);
	c->fd = -1;
	c->down = true;
	c->since = t->now;
	c->again = t->now + RETRY_NS;
	t->down++;
}

/* What was not answered is sent again, byte for byte: with idempotency keys it counts once. */
static void connect_again(struct load_thread *t, struct load_conn *c)
{
	char why[200];

	c->again = t->now + RETRY_NS;
	c->fd = load_dial(t->load->plan, why, sizeof why);
	if (c->fd < 0) {
		if ((double)(t->now - c->since) > t->load->plan->retry * 1e9)
			load_fail(t, "%s, for %.0f s", why, t->load->plan->retry);
		return;
	}
	reply_reset(&c->reply);
	c->down = false;
	t->down--;
	t->out.reconnects++;
	t->last_reply = t->now;
	if (!t->io->ops->watch(t->io, c))
		load_fail(t, "a new connection cannot be watched");
	uint32_t done = c->count - c->awaiting;

	c->out_sent = done > 0 ? c->slots[done - 1].end : 0;
	if (c->awaiting > 0)
		transmit(t, c);
}

static void mend(struct load_thread *t)
{
	t->last_reply = t->now;
	for (unsigned i = 0; i < t->conn_count; i++)
		if (t->conns[i].down && t->now >= t->conns[i].again)
			connect_again(t, &t->conns[i]);
}

/* ── the loop ─────────────────────────────────────────────────────────────────────────────── */
static bool all_done(const struct load_thread *t)
{
	if (t->busy > 0 || (!t->stopping && t->budget > 0))
		return false;
	if (t->interval > 0 && t->budget > 0 && due_at(t, t->next) < t->end)
		return false;                             /* woke late: the last ones are still to be begun */
	if (t->interval > 0)
		for (unsigned i = 0; i < t->senders; i++)
			if (t->conns[i].owed > 0)
				return false;
	return t->listeners == 0 || t->out.delivered >= t->out.requests * t->listeners;
}

static void give_up(struct load_thread *t)
{
	uint64_t missing = t->out.requests - t->out.replies;

	for (unsigned i = 0; t->interval > 0 && i < t->senders; i++)
		for (struct load_conn *c = &t->conns[i]; c->owed > 0; c->owed--, c->due += t->senders) {
			uint64_t due = due_at(t, c->due);

			t->out.late += t->load->plan->pipeline;
			if (due >= t->begin && due < t->end)      /* it took at least this long */
				hist_add_many(&t->out.latency, t->now - due, t->load->plan->pipeline);
		}
	if (missing > 0)
		load_fail(t, "%llu of %llu requests were not answered within %g s", (unsigned long long)missing,
			  (unsigned long long)t->out.requests, t->load->plan->patience);
	else if (t->out.late > 0)
		load_fail(t, "%llu requests were due and not sent %g s after the end: the rate is too high",
			  (unsigned long long)t->out.late, t->load->plan->patience);
	else
		load_fail(t, "%llu of %llu messages were delivered", (unsigned long long)t->out.delivered,
			  (unsigned long long)(t->out.requests * t->listeners));
}

static bool out_of_patience(const struct load_thread *t)
{
	uint64_t patience = (uint64_t)(t->load->plan->patience * 1e9);

	if (t->now > t->last_reply + patience)
		return t->busy > 0 || t->stopping || t->budget == 0;
	return t->stopping && t->end != UINT64_MAX && t->now > t->end + patience;
}

void load_thread_run(struct load_thread *t)
{
	prctl(PR_SET_TIMERSLACK, 1000ul);                 /* due times are kept to the microsecond */
	while (cli_now_ns() + 50000 < t->load->base)
		cli_sleep_ns(t->load->base - cli_now_ns());
	load_woke(t);
	t->last_reply = t->now;
	for (unsigned i = 0; t->interval == 0 && i < t->senders; i++)
		start_batch(t, &t->conns[i], t->now, true);
	while (!all_done(t) && t->out.failure[0] == '\0') {
		uint64_t until = t->interval > 0 ? release_due(t) : t->now + BEAT_NS;

		if (t->down > 0 && until > t->now + RETRY_NS)
			until = t->now + RETRY_NS;
		if (!t->io->ops->wait(t->io, until))
			break;
		if (t->down > 0)
			mend(t);
		else if (out_of_patience(t))
			give_up(t);
		store_relaxed(&t->shown_ops, t->listeners > 0 ? t->out.delivered : t->out.replies);
		store_relaxed(&t->shown_errors, t->out.errors);
	}
	if (t->measuring)
		end_measuring(t);
}
