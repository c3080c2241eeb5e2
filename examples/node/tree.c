/* tree.c - the supervisors, which have children and policies and nothing else, and the two workers of observability. */
#include "node.h"

#include <string.h>

/* Whom each of them has from the start. The others come by messages, keyed by their ids (SUP-10). */
static const struct { const char *name, *children[6]; int strategy; } supervisors[] = {
	{ "node_supervisor", { "image_cache_supervisor:" NODE, "volume_supervisor:" NODE, "overlay_supervisor:" NODE,
			       "instance_supervisor:" NODE, "observability_supervisor:" NODE, "control_plane_stream:" NODE },
	  NOH_ONE_FOR_ONE },
	{ "instance_supervisor", { NULL }, NOH_ONE_FOR_ONE },
	{ "volume_supervisor", { NULL }, NOH_ONE_FOR_ONE },
	{ "overlay_supervisor", { NULL }, NOH_ONE_FOR_ONE },
	{ "image_cache_supervisor", { "image_gc:" NODE }, NOH_ONE_FOR_ONE },
	{ "observability_supervisor", { "log_tail:" NODE, "metrics_scrape:" NODE }, NOH_REST_FOR_ONE },
};
enum { SUPERVISORS = sizeof supervisors / sizeof supervisors[0] };

static int on_activate(noh_turn *turn)
{
	const char *const *children = noh_user(turn);

	for (int i = 0; i < 6 && children[i]; i++) {
		int rc = noh_spawn(turn, children[i], NULL);

		if (rc != NOH_OK)
			return rc;
	}
	return NOH_OK;
}

static int on_message(noh_turn *turn, const noh_msg *msg)
{
	const struct child_message *m = msg->body;
	noh_actor child;
	int rc;

	if (msg->len < CHILD_HEAD || msg->len != CHILD_HEAD + m->len || !memchr(m->address, 0, sizeof m->address))
		return noh_refuse(turn, "not a message for a child", 25);
	rc = noh_spawn(turn, m->address, &child);
	return rc == NOH_OK ? noh_tell(turn, child, m->kind, m->body, m->len) : rc;
}

/* ── log_tail, metrics_scrape: they work, and break, and work again ── */

struct worker { uint64_t rounds; };
enum { WORK, WORKER_KINDS };
static const noh_kind worker_kinds[WORKER_KINDS] = { [WORK] = { .name = "work", .flags = NOH_KIND_TIMER } };

static int work(noh_turn *turn, const noh_msg *msg)
{
	struct worker *w = noh_state(turn);

	(void)msg;
	w->rounds++;
	return flaky() && flaky() ? noh_fail(turn, "the file was rotated away") : NOH_OK;
}

static int begin_work(noh_turn *turn)
{
	return noh_schedule_every(turn, WORK, 20);
}

int register_supervisors(noh_box *box)
{
	static const noh_supervision worker_policy = { .base_ms = 5, .cap_ms = 50, .restarts = NOH_NEVER };
	int rc = NOH_OK;

	for (int i = 0; rc == NOH_OK && i < SUPERVISORS; i++) {
		const noh_supervision policy = { .strategy = supervisors[i].strategy, .base_ms = 5, .cap_ms = 100, .restarts = 20 };
		const noh_type type = { .name = supervisors[i].name, .full_mode = NOH_BLOCK, .idle_timeout_ms = NOH_NEVER,
					.on_activate = on_activate, .on_message = on_message,
					.user = (void *)(uintptr_t)supervisors[i].children, .supervision = &policy };

		rc = noh_register(box, &type);
	}
	for (int i = 0; rc == NOH_OK && i < 2; i++) {
		const noh_type type = { .name = i ? "metrics_scrape" : "log_tail", .state_size = sizeof(struct worker),
					.is_volatile = true, .idle_timeout_ms = NOH_NEVER, .kinds = worker_kinds,
					.kind_count = WORKER_KINDS, .on_activate = begin_work, .on_message = work,
					.supervision = &worker_policy };

		rc = noh_register(box, &type);
	}
	return rc;
}
