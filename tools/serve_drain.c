/* tools/serve_drain.c - DRAIN, POST /admin/drain, noh drain: finish what there is, say how far it is, end.
 *
 * Clients ask; the main thread does it, and looks after signals and the watchdog meanwhile. Whoever waits is told what came of
 * it before the server ends.
 */
#include "tools/serve_in.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define SAY_NS UINT64_C(1000000000)

static void answer_all(struct server *s, bool ok, const char *sentence)
{
	for (int i = 0; i < RELOADS_AT_ONCE; i++) {
		uint64_t request = atomic_exchange(&s->drain.asked[i], 0);

		if (request)
			(void)noh_drained(s->box, request, ok, sentence);
	}
}

/* A worker calls this: as reload_asked. The first deadline counts. */
void drain_asked(void *user, uint64_t request, uint32_t deadline_ms)
{
	struct server *s = user;
	uint32_t none = 0;
	bool noted = request == 0;

	for (int i = 0; !noted && i < RELOADS_AT_ONCE; i++) {
		uint64_t nobody = 0;

		noted = atomic_compare_exchange_strong(&s->drain.asked[i], &nobody, request);
	}
	if (!noted) {
		(void)noh_drained(s->box, request, false, "too many wait for the drain already; it goes on");
		return;
	}
	(void)atomic_compare_exchange_strong(&s->drain.deadline_ms, &none, deadline_ms);
	if (atomic_load(&s->ending))
		answer_all(s, false, "the server is stopping");
	else
		kill(getpid(), SIGUSR1);
}

bool drain_wanted(struct server *s)
{
	return atomic_load(&s->drain.deadline_ms) != 0;
}

void drain_end(struct server *s)
{
	answer_all(s, false, "the server is stopping");
}

static int progress(void *user, const noh_drain_state *state)
{
	struct server *s = user;
	const struct timespec at_once = { 0, 0 };
	uint64_t now = cli_now_ns();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	s->drain.cut_by = sigtimedwait(&set, NULL, &at_once);
	pulse_take(s);
	if (s->drain.cut_by > 0)
		return 1;
	s->drain.cut_by = 0;
	if (now < s->drain.say_ns || (state->actors == 0 && state->messages == 0))
		return 0;
	s->drain.say_ns = now + SAY_NS;
	server_say(s, NOH_INFO, "draining: %llu actors and %llu messages left, %u s to go", (unsigned long long)state->actors,
		   (unsigned long long)state->messages, state->left_ms / 1000);
	return 0;
}

bool drain_now(struct server *s)
{
	uint32_t deadline = atomic_load(&s->drain.deadline_ms);
	uint64_t began = cli_now_ns();
	char limit[32], took[32];

	settings_write(limit, sizeof limit, deadline, SETTING_DURATION);
	server_say(s, NOH_INFO, "draining, at most %s: new work is refused", limit);
	server_notify("STATUS=draining");
	s->drain.say_ns = began + SAY_NS;
	int rc = noh_drain(s->box, deadline, progress, s);

	cli_time(took, sizeof took, (double)(cli_now_ns() - began));
	if (rc == NOH_OK)
		server_say(s, NOH_INFO, "drained in %s", took);
	else
		server_say(s, NOH_ERROR, "the drain did not finish: %s", noh_why());
	answer_all(s, rc == NOH_OK, rc == NOH_OK ? "" : noh_why());
	return rc == NOH_OK;
}
