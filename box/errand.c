/* box/errand.c - what a client asks for that may block: reading the image at length, waiting for a fold.
 *
 * A worker never blocks, so it leaves such a thing with a thread of its own and goes on; the answer comes back by the token
 * of the request, like an actor's that runs elsewhere. They are done one after the other: they are for operators, and
 * nobody else pays for them. The thread sleeps when there is nothing to do.
 */
#include "box/api.h"
#include "net/net.h"

#include <string.h>

#define ERRANDS_MAX 64                     /* that wait; more are refused                         */

struct errand {
	struct errand *next;
	errand_fn     *run;
	uint64_t       token;
	uint32_t       len;
	uint64_t       args[];
};

struct errands {
	pthread_t       thread;
	pthread_mutex_t lock;
	pthread_cond_t  some;
	struct errand  *first, **last;
	uint32_t        count;
	bool            stop, started;
};

static void answer(noh_box *box, uint64_t token, int status, const void *body, size_t len)
{
	uint32_t owner = token_worker(token);

	/* What it tells was read from the image, or waited for: it is on disk. */
	if (net_answer_late(load_acquire(&box->server->nets[owner]), token, 0, status, body, len))
		park_wake(&box->sched.workers[owner].shared.park);
}

static void do_it(noh_box *box, struct errand *e)
{
	struct out o = { 0 };
	int status = e->run(box, e->args, e->len, &o);

	if (o.failed)
		answer(box, e->token, NOH_ENOMEM, NULL, 0);
	else
		answer(box, e->token, status, o.bytes, o.len);
	out_close(&o);
}

static void *errands_main(void *arg)
{
	noh_box *box = arg;
	struct errands *q = box->errands;

	(void)pthread_setname_np(pthread_self(), "noh/errands");
	pthread_mutex_lock(&q->lock);
	while (!q->stop || q->first) {
		struct errand *e = q->first;

		if (!e) {
			pthread_cond_wait(&q->some, &q->lock);
			continue;
		}
		q->first = e->next;
		if (!q->first)
			q->last = &q->first;
		q->count--;
		bool stop = q->stop;

		pthread_mutex_unlock(&q->lock);
		if (stop)
			answer(box, e->token, NOH_ESTOPPED, NULL, 0);
		else
			do_it(box, e);
		mem_free(e, sizeof *e + e->len);
		pthread_mutex_lock(&q->lock);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

int box_errand(void *arg, errand_fn *run, const void *args, uint32_t len, uint64_t token)
{
	noh_box *box = arg;
	struct errands *q = box->errands;
	struct errand *e = q ? mem_alloc(sizeof *e + len) : NULL;
	bool taken;

	if (!e)
		return error_set(NOH_ENOMEM, "no memory for another request of this kind");
	*e = (struct errand){ .run = run, .token = token, .len = len };
	if (len)
		memcpy(e->args, args, len);
	pthread_mutex_lock(&q->lock);
	taken = q->started && !q->stop && q->count < ERRANDS_MAX;
	if (taken) {
		*q->last = e;
		q->last = &e->next;
		q->count++;
		pthread_cond_signal(&q->some);
	}
	pthread_mutex_unlock(&q->lock);
	if (taken)
		return NOH_OK;
	mem_free(e, sizeof *e + len);
	return error_set(NOH_ESTOPPED, "%d requests of this kind wait already, or the box stops", ERRANDS_MAX);
}

void box_errands_start(noh_box *box)
{
	struct errands *q = mem_zalloc(sizeof *q);

	if (!q)
		return;                          /* each request says so */
	box->errands = q;
	q->last = &q->first;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->some, NULL);
	q->started = pthread_create(&q->thread, NULL, errands_main, box) == 0;
	if (!q->started)
		sched_logf(&box->sched, NOH_ERROR, "", "no thread for requests of operators: they will be refused");
}

void box_errands_stop(noh_box *box)
{
	struct errands *q = box->errands;

	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	q->stop = true;
	pthread_cond_signal(&q->some);
	pthread_mutex_unlock(&q->lock);
	if (q->started)
		pthread_join(q->thread, NULL);
	q->started = false;
}

void box_errands_close(noh_box *box)
{
	struct errands *q = box->errands;

	if (!q)
		return;
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->some);
	mem_free(q, sizeof *q);
	box->errands = NULL;
}
