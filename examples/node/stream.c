/* stream.c - ControlPlaneStreamActor: reads what is desired from the control plane, from where it stopped (SUP-13).
 *
 * Its cursor and what it tells others are one turn: whatever crashes, each event is told once. A reader that cannot
 * connect waits longer and longer, with jitter: the same back-off as everywhere (SUP-09).
 */
#include "node.h"

#include <string.h>

enum { STREAM_READ, STREAM_BATCH, STREAM_KINDS };
enum { POLL_MS = 10 };

struct stream {
	uint64_t  cursor;
	uint64_t  heartbeats;              /* reads that brought nothing: the plane is there */
	noh_retry retry;
};

static int read_on(noh_turn *turn, const struct stream *s)
{
	const noh_ask_options how = { .answer_kind = STREAM_BATCH, .timeout_ms = 100 };

	return noh_ask_to(turn, "device:plane", PLANE_READ, &s->cursor, sizeof s->cursor, &how, NULL);
}

static int reconnect(noh_turn *turn, struct stream *s)
{
	static const noh_backoff policy = { .base_ms = 5, .cap_ms = 200 };
	uint64_t wait_ms;

	noh_retry_after(turn, &s->retry, &policy, &wait_ms);
	return noh_schedule_once(turn, STREAM_READ, wait_ms);
}

static int batch(noh_turn *turn, struct stream *s, const noh_msg *msg)
{
	const struct plane_event *events = msg->body;
	size_t count = msg->len / sizeof *events;

	if (msg->status != NOH_OK)
		return reconnect(turn, s);
	noh_retry_done(&s->retry);
	s->heartbeats += count == 0;
	for (size_t i = 0; i < count; i++) {
		const struct child_message *m = &events[i].message;
		int rc;

		if (events[i].seq != s->cursor + 1)
			return noh_fail(turn, "event %llu after %llu: the stream is broken", (unsigned long long)events[i].seq,
					(unsigned long long)s->cursor);
		rc = noh_tell_to(turn, events[i].supervisor, SUPERVISOR_CHILD, m, CHILD_HEAD + m->len);
		if (rc != NOH_OK)
			return rc;
		s->cursor = events[i].seq;
	}
	return noh_schedule_once(turn, STREAM_READ, count == PLANE_BATCH ? 0 : POLL_MS);
}

/* A bug of its own now and then: it fails, and is restarted with the cursor as it was. */
static int on_message(noh_turn *turn, const noh_msg *msg)
{
	struct stream *s = noh_state(turn);

	if (msg->kind == STREAM_READ && flaky() && flaky())
		return noh_fail(turn, "lost its way");
	return msg->kind == STREAM_READ ? read_on(turn, s) : batch(turn, s, msg);
}

static int on_activate(noh_turn *turn)
{
	return noh_schedule_once(turn, STREAM_READ, 0);
}

noh_type stream_type(void)
{
	static const noh_kind kinds[STREAM_KINDS] = { [STREAM_READ] = { .name = "read", .flags = NOH_KIND_TIMER },
						      [STREAM_BATCH] = { .name = "batch" } };
	static const noh_supervision policy = { .base_ms = 5, .cap_ms = 100, .restarts = NOH_NEVER };

	return (noh_type){ .name = "control_plane_stream", .state_size = sizeof(struct stream), .full_mode = NOH_BLOCK,
			   .idle_timeout_ms = NOH_NEVER, .kinds = kinds, .kind_count = STREAM_KINDS,
			   .on_activate = on_activate, .on_message = on_message, .supervision = &policy };
}
