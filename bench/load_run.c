/* bench/load_run.c - a run: connect, prepare, start the threads together, add up, verify. */
#include "bench/load_io.h"
#include "tools/cli.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { SETTLE_NS = 5000000, PROGRESS_MS = 500 };

struct worker {
	struct load_thread *thread;
	pthread_t           id;
	pthread_barrier_t  *ready;
	char                why[240];
};

/* ── connections ──────────────────────────────────────────────────────────────────────────── */
static bool open_conn(struct load_thread *t, struct load_conn *c, char *why, size_t room)
{
	struct load *l = t->load;
	unsigned pipeline = l->plan->pipeline;

	c->fd = load_dial(l->plan, why, room);
	if (c->fd < 0)
		return false;
	c->out = malloc(pipeline * load_most_bytes(l));
	c->slots = calloc(pipeline, sizeof *c->slots);
	c->holds = calloc(pipeline, sizeof *c->holds);
	c->part = c->listener ? malloc(l->message_len) : NULL;
	if (c->out == NULL || c->slots == NULL || c->holds == NULL || (c->listener && c->part == NULL)) {
		snprintf(why, room, "no memory for %u connections with pipeline %u", l->plan->connections,
			 pipeline);
		return false;
	}
	if (!c->listener)
		return true;
	char channel[32];
	const char *subscribe[] = { "SUBSCRIBE", channel };
	struct reply r = { 0 };

	snprintf(channel, sizeof channel, "load-%s", l->run);
	if (load_ask(c->fd, &r, NULL, 0, 2, subscribe) && r.type == '*')
		return true;
	snprintf(why, room, "SUBSCRIBE was answered with: %.100s", r.leaf);
	return false;
}

static bool open_conns(struct load_thread *t, char *why, size_t room)
{
	t->conns = calloc(t->conn_count, sizeof *t->conns);
	if (t->conns == NULL) {
		snprintf(why, room, "no memory for %u connections", t->conn_count);
		return false;
	}
	for (unsigned i = 0; i < t->conn_count; i++) {
		t->conns[i].index = i;
		t->conns[i].fd = -1;
	}
	for (unsigned i = 0; i < t->conn_count; i++) {
		t->conns[i].listener = i >= t->senders;
		if (!open_conn(t, &t->conns[i], why, room))
			return false;
	}
	return true;
}

static void close_conns(struct load_thread *t)
{
	for (unsigned i = 0; t->conns != NULL && i < t->conn_count; i++) {
		struct load_conn *c = &t->conns[i];

		if (c->fd >= 0)
			close(c->fd);
		free(c->out);
		free(c->slots);
		free(c->holds);
		free(c->part);
	}
	free(t->conns);
	free(t->winners);
}

static bool open_io(struct load_thread *t, char *why, size_t room)
{
	enum load_io_kind kind = t->load->plan->io;

	if (kind != LOAD_EPOLL)
		t->io = load_uring_open(t, why, room);
	t->out.uring = t->io != NULL;
	if (t->io == NULL && kind != LOAD_URING)
		t->io = load_epoll_open(t, why, room);
	for (unsigned i = 0; t->io != NULL && i < t->conn_count; i++)
		if (!t->io->ops->watch(t->io, &t->conns[i])) {
			snprintf(why, room, "connection %u cannot be watched", i);
			return false;
		}
	return t->io != NULL;
}

/* ── threads ──────────────────────────────────────────────────────────────────────────────── */
static void *worker_main(void *arg)
{
	struct worker *w = arg;
	bool fine = open_io(w->thread, w->why, sizeof w->why);  /* a ring belongs to the thread that made it */

	if (!fine)
		load_fail(w->thread, "%s", w->why);
	pthread_barrier_wait(w->ready);                              /* all are open: main sets the start */
	pthread_barrier_wait(w->ready);
	if (fine)
		load_thread_run(w->thread);
	if (w->thread->io != NULL)
		w->thread->io->ops->close(w->thread->io);
	return NULL;
}

static void share_out(struct load *l, struct load_thread *t, unsigned number)
{
	const struct load_plan *p = l->plan;
	unsigned n = p->threads;
	uint64_t total = p->requests, from = total / n * number;

	t->load = l;
	t->number = number;
	t->senders = p->mix == MIX_PUBSUB ? p->publishers : p->connections / n + (number < p->connections % n);
	t->listeners = p->mix == MIX_PUBSUB ? p->connections : 0;
	t->conn_count = t->senders + t->listeners;
	t->random = (p->seed * 0x9E3779B97F4A7C15u) ^ (0xD1B54A32D192ED03u * (number + 1));
	if (t->random == 0)
		t->random = 1;
	for (unsigned i = 0; i < 8; i++)
		random_next(&t->random);
	t->order = number;
	t->seq = from;
	t->budget = total == 0 ? UINT64_MAX : number + 1 == n ? total - from : total / n;
	if (p->rate > 0)
		t->interval = 1e9 * p->pipeline * n / (double)p->rate;
}

static void set_start(struct load *l, struct worker *w)
{
	const struct load_plan *p = l->plan;

	l->base = cli_now_ns() + SETTLE_NS;
	for (unsigned i = 0; i < p->threads; i++) {
		struct load_thread *t = w[i].thread;

		t->begin = l->base + (uint64_t)(p->warmup * 1e9);
		t->end = p->requests > 0 ? UINT64_MAX : t->begin + (uint64_t)(p->seconds * 1e9);
	}
}

static void show_until_end(const struct load_plan *p, struct worker *w)
{
	uint64_t started = cli_now_ns(), last_ops = 0, last = started;

	for (unsigned i = 0; i < p->threads; i++)
		for (;;) {
			uint64_t ops = 0, errors = 0;
			struct timespec until;

			clock_gettime(CLOCK_REALTIME, &until);
			until.tv_nsec += PROGRESS_MS * 1000000L;
			until.tv_sec += until.tv_nsec / 1000000000;
			until.tv_nsec %= 1000000000;
			if (pthread_timedjoin_np(w[i].id, NULL, &until) == 0)
				break;
			for (unsigned k = 0; k < p->threads; k++) {
				ops += load_relaxed(&w[k].thread->shown_ops);
				errors += load_relaxed(&w[k].thread->shown_errors);
			}
			uint64_t now = cli_now_ns();

			load_progress(p, ops, (double)(ops - last_ops) * 1e9 / (double)(now - last), errors,
				      (double)(now - started) / 1e9);
			last = now;
			last_ops = ops;
		}
	fputs("\r\033[K", stderr);
}

static void run_threads(struct load *l, struct load_thread *threads)
{
	const struct load_plan *p = l->plan;
	struct worker w[LOAD_MOST_THREADS];
	pthread_barrier_t ready;

	pthread_barrier_init(&ready, NULL, p->threads + 1);
	for (unsigned i = 0; i < p->threads; i++) {
		w[i] = (struct worker){ .thread = &threads[i], .ready = &ready };
		if (pthread_create(&w[i].id, NULL, worker_main, &w[i]) != 0) {
			perror("noh bench load: pthread_create");
			exit(CLI_FAILED);
		}
	}
	pthread_barrier_wait(&ready);
	set_start(l, w);
	pthread_barrier_wait(&ready);
	if (isatty(STDERR_FILENO))
		show_until_end(p, w);
	else
		for (unsigned i = 0; i < p->threads; i++)
			pthread_join(w[i].id, NULL);
	pthread_barrier_destroy(&ready);
}

/* ── the whole ────────────────────────────────────────────────────────────────────────────── */
static uint64_t rss_anon(int pid)
{
	char path[64], line[256];
	unsigned long long kb = 0;

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	FILE *f = pid != 0 ? fopen(path, "r") : NULL;
	while (f != NULL && fgets(line, sizeof line, f) != NULL && sscanf(line, "RssAnon: %llu", &kb) != 1)
		;
	if (f != NULL)
		fclose(f);
	return kb * 1024;
}

static void add_up(const struct load_thread *t, struct load_result *out)
{
	const struct load_result *r = &t->out;
	double seconds = (double)(t->measured_to - t->measured_from) / 1e9;

	out->ops += r->ops;
	if (t->measured && seconds > 0)
		out->rate += (double)r->ops / seconds;
	if (t->measured && seconds > out->seconds)
		out->seconds = seconds;
	out->requests += r->requests;
	out->replies += r->replies;
	out->late += r->late;
	out->reserved += r->reserved;
	out->committed += r->committed;
	out->sold_out += r->sold_out;
	out->delivered += r->delivered;
	out->reconnects += r->reconnects;
	out->uring = r->uring;
	hist_merge(&out->latency, &r->latency);
	hist_merge(&out->lag, &r->lag);
	if (out->errors == 0)
		memcpy(out->first_error, r->first_error, sizeof out->first_error);
	out->errors += r->errors;
	if (out->failure[0] == '\0')
		memcpy(out->failure, r->failure, sizeof out->failure);
	if (t->number == 0) {
		out->server_cpu = r->server_cpu;
		out->client_cpu = r->client_cpu;
	}
}

static void many_files(const struct load_plan *p)
{
	struct rlimit r;
	rlim_t want = p->connections + p->publishers + 64;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < want) {
		r.rlim_cur = want < r.rlim_max ? want : r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

static bool prepare(struct load *l, char *why, size_t room)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(l->run, sizeof l->run, "%010llu", ((unsigned long long)now.tv_sec * 1000000 +
		 (unsigned long long)now.tv_nsec / 1000 + (unsigned long long)getpid() * 7919) % 10000000000u);
	keys_init(&l->keys, l->plan->dist, l->plan->mix == MIX_SALE ? 1 : l->plan->keys,
		  l->plan->dist_parameter);
	pubsub_message(l);
	if (l->plan->mix == MIX_RESERVE || l->plan->mix == MIX_SALE)
		return inventory_prepare(l, why, room);
	load_templates(l);
	return true;
}

bool load_run(const struct load_plan *plan, struct load_result *out)
{
	struct load *l = calloc(1, sizeof *l);
	struct load_thread *threads = calloc(plan->threads, sizeof *threads);
	bool fine = l != NULL && threads != NULL;

	*out = (struct load_result){ .server_cpu = -1 };
	if (fine) {
		l->plan = plan;
		many_files(plan);
		fine = prepare(l, out->failure, sizeof out->failure);
	}
	for (unsigned i = 0; fine && i < plan->threads; i++) {
		share_out(l, &threads[i], i);
		fine = open_conns(&threads[i], out->failure, sizeof out->failure);
	}
	if (fine) {
		out->failure[0] = '\0';          /* a first address that failed, before a second did not */
		run_threads(l, threads);
		for (unsigned i = 0; i < plan->threads; i++)
			add_up(&threads[i], out);
		out->server_rss_anon = rss_anon(plan->server_pid);
		inventory_verify(l, threads, out);
	}
	for (unsigned i = 0; threads != NULL && i < plan->threads; i++)
		close_conns(&threads[i]);
	free(threads);
	free(l);
	return fine;
}
