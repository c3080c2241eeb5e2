/* tests/e2e/flaky.c DIR RESP_PORT HTTP_PORT - a server with actors that fail and tell events, for tests/e2e/events.sh: a program that
 * embeds noh, as anybody's.
 *
 *     keeper:ID   start {}                 spawns worker:1, worker:2, worker:3
 *     worker:ID   apply {"revision": N}    says that it has revision N, and tells "applied"
 *                 note {...}               tells "note", with the message as its data
 *                 flood {"n": N}           tells N times "flood", a kilobyte each
 *                 fail {}                  fails, each time: after three it is quarantined
 *                 error {}                 says that its last try went wrong
 * Says "ready" when it serves; SIGTERM ends it.
 */
#include "noh.h"
#include "noh_json.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { APPLY, NOTE, FLOOD, FAIL, ERROR, WORKER_KINDS };
static const noh_kind worker_kinds[WORKER_KINDS] = { [APPLY] = { .name = "apply" }, [NOTE] = { .name = "note" }, [FLOOD] = { .name = "flood" },
						     [FAIL] = { .name = "fail" }, [ERROR] = { .name = "error" } };

static int64_t number(const noh_msg *m, const char *name)
{
	const noh_json_field field = { .name = name, .type = NOH_JSON_INT, .least = 0, .most = 1000000 };
	noh_json_got got = { .n = 0 };

	return noh_json_read(m->body, m->len, &field, 1, &got) == NOH_OK ? got.n : 0;
}

static int apply(noh_turn *t, const noh_msg *m)
{
	uint64_t revision = (uint64_t)number(m, "revision");
	int rc = noh_set_revision(t, revision, revision);

	if (rc == NOH_OK)
		rc = noh_set_error(t, NULL);
	return rc == NOH_OK ? noh_emit(t, &(noh_emit_options){ .kind = "applied", .revision = revision }) : rc;
}

static int flood(noh_turn *t, const noh_msg *m)
{
	char text[1024];
	int rc = NOH_OK;

	memset(text, 'x', sizeof text);
	for (int64_t i = number(m, "n"); i > 0 && rc == NOH_OK; i--)
		rc = noh_emit(t, &(noh_emit_options){ .kind = "flood", .data = text, .len = sizeof text });
	return rc;
}

static int work(noh_turn *t, const noh_msg *m)
{
	(void)noh_state(t);
	switch (m->kind) {
	case APPLY: return apply(t, m);
	case NOTE: return noh_emit(t, &(noh_emit_options){ .kind = "note", .data = m->body, .len = m->len });
	case FLOOD: return flood(t, m);
	case ERROR: return noh_set_error(t, "the other side says no");
	default: return noh_fail(t, "a worker of %s broke", noh_id(t));
	}
}

static const noh_kind keeper_kinds[] = { { .name = "start" } };

static int keep(noh_turn *t, const noh_msg *m)
{
	int rc = noh_spawn(t, "worker:1", NULL);

	(void)m;
	(void)noh_state(t);
	if (rc == NOH_OK)
		rc = noh_spawn(t, "worker:2", NULL);
	return rc == NOH_OK ? noh_spawn(t, "worker:3", NULL) : rc;
}

static const noh_supervision strict = { .base_ms = 1, .cap_ms = 20, .restarts = 2, .then = NOH_THEN_QUARANTINE };
static const noh_type worker_type = { .name = "worker", .state_size = 8, .on_message = work, .kinds = worker_kinds,
				      .kind_count = WORKER_KINDS, .supervision = &strict };
static const noh_type keeper_type = { .name = "keeper", .state_size = 8, .on_message = keep, .kinds = keeper_kinds, .kind_count = 1,
				      .supervision = &strict };

int main(int argc, char **argv)
{
	noh_options options = { .dir = argc > 1 ? argv[1] : NULL, .workers = 2 };
	noh_listen_options listen = { .resp_port = argc > 2 ? atoi(argv[2]) : -1, .http_port = argc > 3 ? atoi(argv[3]) : 0 };
	noh_box *box;
	sigset_t end;
	int number_, rc;

	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	if (noh_open(&box, &options) || noh_register(box, &worker_type) || noh_register(box, &keeper_type) || noh_listen(box, &listen) ||
	    noh_start(box)) {
		fprintf(stderr, "%s\n", noh_why());
		return 1;
	}
	puts("ready");
	fflush(stdout);
	sigwait(&end, &number_);
	rc = noh_stop(box, 10000);
	noh_close(box);
	return rc != NOH_OK;
}
