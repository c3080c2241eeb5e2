/* box/drain.c - noh.h, section 2: a box that is about to end finishes its work in the open.
 *
 * Intake ends first: sends of other threads, requests of the network and schedules. What waits is handled, whoever is idle goes
 * home, and what that leaves is on disk. All the while workers and network are there, so whoever asks is told how far it is, and
 * whoever wants more is told why not. noh_stop does the rest.
 */
#include "box/api.h"
#include "net/net.h"
#include "sched/notice.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOOK_US 1000
#define TELL_NS UINT64_C(100000000)

static uint64_t messages(noh_box *box)
{
	uint64_t sum = 0;
	const char *type;

	for (unsigned i = 0; (type = noh_type_name(box, i)) != NULL; i++) {
		noh_type_stats stats;

		if (noh_get_type_stats(box, type, &stats) == NOH_OK)
			sum += stats.waiting;
	}
	return sum;
}

int noh_get_drain(noh_box *box, noh_drain_state *state)
{
	struct sched *s = &box->sched;
	uint64_t until = load_acquire(&box->drain_until_ns), now = clock_now_ns(&s->clock);

	memset(state, 0, sizeof *state);
	if (load_acquire(&box->phase) != BOX_RUNNING)
		return error_set(NOH_ESTOPPED, "the box is not running");
	state->draining = until != 0;
	state->actors = sched_actors(s);
	state->messages = messages(box);
	state->left_ms = until > now ? (uint32_t)((until - now) / 1000000u) : 0;
	return NOH_OK;
}

/* A worker that was delivering a request when the flag went up has done so when it has begun two more rounds, or is woken. */
static void wait_for_workers(struct sched *s, uint64_t until)
{
	for (uint32_t i = 0; i < s->worker_count; i++) {
		struct worker *w = &s->workers[i];
		uint64_t seen = load_relaxed(&w->shown.counts.passes);

		while (load_relaxed(&w->shown.counts.passes) - seen < 2 && clock_now_ns(&s->clock) < until) {
			park_wake(&w->shared.park);
			usleep(100);
		}
	}
}

/* Into the log of events. */
static void tell_event(noh_box *box, const char *from, const char *to)
{
	char reason[120], data[80];
	noh_drain_state state;
	int n;

	(void)noh_get_drain(box, &state);
	snprintf(reason, sizeof reason, "%llu actors in memory, %llu messages to be handled, %u ms to go",
		 (unsigned long long)state.actors, (unsigned long long)state.messages, state.left_ms);
	n = snprintf(data, sizeof data, "{\"actors\":%llu,\"messages\":%llu}", (unsigned long long)state.actors,
		     (unsigned long long)state.messages);
	notice_of(&box->sched, "", NOTICE_DRAIN,
		  &(noh_emit_options){ .from = from, .to = to, .reason = reason, .data = data, .len = (size_t)n });
}

struct watcher {
	noh_box      *box;
	noh_drain_fn *tell;
	void         *user;
	uint64_t      next_ns;
	bool          ended;                     /* by what tell() returned */
};

/* False: it is told to end. */
static bool tell(void *arg)
{
	struct watcher *w = arg;
	uint64_t now = clock_now_ns(&w->box->sched.clock);
	noh_drain_state state;

	if (!w->tell || w->ended || now < w->next_ns || noh_get_drain(w->box, &state) != NOH_OK)
		return !w->ended;
	w->next_ns = now + TELL_NS;
	w->ended = w->tell(w->user, &state) != 0;
	return !w->ended;
}

/* Whoever is idle goes, when nobody has anything to do: clients that are refused may keep the workers awake, so either sign
 * will do. Trees first, in their order. Again and again, since those who are not idle yet may wake others. No actor, no message:
 * those are in mailboxes. */
static bool empty(noh_box *box, uint64_t until, struct watcher *w)
{
	struct sched *s = &box->sched;

	while (!w->ended && sched_actors(s) && clock_now_ns(&s->clock) < until) {
		if (box_is_quiet(s, false) || messages(box) == 0) {
			if (load_relaxed(&s->stopping) == 1)
				box_stop_trees(box, until, tell, w);
			if (w->ended)
				break;
			store_seq_cst(&s->stopping, 2);
			store_seq_cst(&s->sweep_next, 0);
			sched_wake_all(s);
		}
		usleep(LOOK_US);
		(void)tell(w);
	}
	return sched_actors(s) == 0;
}

static int left(noh_box *box, const struct watcher *w, uint64_t ms)
{
	noh_drain_state state;

	(void)noh_get_drain(box, &state);
	return error_set(NOH_ETIMEOUT, "%llu actors are still in memory and %llu messages not handled after %llu ms%s: what is "
			 "durable goes on at the next start", (unsigned long long)state.actors,
			 (unsigned long long)state.messages, (unsigned long long)ms, w->ended ? ", when it was told to end" : "");
}

int noh_drain(noh_box *box, uint32_t timeout_ms, noh_drain_fn *progress, void *user)
{
	struct sched *s = &box->sched;
	struct watcher w = { .box = box, .tell = progress, .user = user };
	uint64_t none = 0, began = clock_now_ns(&s->clock), until = api_until_ns(box, timeout_ms), now;
	bool done;
	int rc = api_may_block("noh_drain");

	if (rc != NOH_OK)
		return rc;
	if (load_acquire(&box->phase) != BOX_RUNNING || box->stepped)
		return error_set(NOH_ESTOPPED, "the box is not running");
	if (!cas_acq_rel(&box->drain_until_ns, &none, until))
		return error_set(NOH_EEXISTS, "the box is being drained already");
	if (box->server)
		server_drain(box->server);
	store_seq_cst(&s->stopping, 1);
	box_wait_for_ports(s);                   /* who came before the flag may finish */
	tell_event(box, "running", "draining");
	done = empty(box, until, &w);
	if (done) {
		wait_for_workers(s, until);
		done = empty(box, until, &w);
	}
	now = clock_now_ns(&s->clock);
	if (!done) {
		tell_event(box, "draining", "not drained");
		return left(box, &w, w.ended ? (now - began) / 1000000u : timeout_ms);
	}
	rc = noh_sync(box, until > now ? (uint32_t)((until - now) / 1000000u) + 1 : 1);
	if (rc == NOH_OK)                        /* else the sentence is of what the disk did */
		tell_event(box, "draining", "drained");
	(void)tell(&w);
	return rc;
}
