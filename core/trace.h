/* core/trace.h - a request's way through the box: W3C trace context, and what is remembered of each hop.
 *
 * Every hop (a message from its sender to the end of the turn that handled it) is a span with an id of its own;
 * the one it came from is its parent. Six instants are kept of each, in a ring per worker that overwrites the
 * oldest: whoever asks later puts the pieces together again (noh_trace_show).
 *
 * Owns     a ring owns its slots.
 * Threads  span_put: the ring's worker.  span_read: any.  All else works on the caller's memory.
 * Never    blocks. A reader that meets a slot as it is written reads nothing, and the writer does not notice.
 */
#ifndef NOH_CORE_TRACE_H
#define NOH_CORE_TRACE_H

#include "core/atomic.h"

#include <assert.h>
#include <stdalign.h>
#include <stddef.h>

/* ── the context, as W3C's Trace Context (level 1 and 2) has it ── */

enum { TRACE_SAMPLED = 1, TRACE_RANDOM = 2 };            /* flags; others are not carried on */
enum { TRACE_PARENT_LEN = 55, TRACE_STATE_MAX = 512 };

struct trace {
	uint64_t hi, lo;                 /* trace id; never both 0                                */
	uint64_t span;                   /* of this hop                                           */
	uint64_t parent;                 /* the span it came from; 0: it began here               */
	uint32_t flags;
	uint32_t zero;
};

/* "00-<32 hex>-<16 hex>-<2 hex>": the id read is the sender's, so it becomes the parent; span is 0. False: it is
 * none, and is to be ignored. */
bool trace_parse(const char *text, size_t len, struct trace *t);

/* Is this a tracestate that may be handed on as it is? */
bool trace_state_ok(const char *text, size_t len);

/* What the next one is told: this hop as the parent. With NUL. */
void trace_write(const struct trace *t, char out[TRACE_PARENT_LEN + 1]);
void trace_write_id(uint64_t hi, uint64_t lo, char out[33]);
void trace_write_span(uint64_t span, char out[17]);
bool trace_read_id(const char *text, size_t len, uint64_t *hi, uint64_t *lo);   /* 32 hex digits, not all 0 */

/* A fresh id, never 0. *state: 0 before the first; then it is seeded by the system. */
uint64_t trace_fresh(uint64_t *state);

/* A trace that begins here. */
void trace_begin(struct trace *t, uint64_t *state);

/* The last bytes of a traced message's envelope (mailbox/ring.h); its tracestate stands before, padded to 8. */
struct trace_tail {
	struct trace at;
	uint64_t     received_ns, queued_ns;
	uint64_t     state_len;
};
static_assert(sizeof(struct trace_tail) % 8 == 0, "nothing of an envelope is padding");

static inline const char *trace_state(const struct trace_tail *tail)
{
	return (const char *)tail - ((tail->state_len + 7) & ~UINT64_C(7));
}

/* ── what is remembered ── */

enum { SPAN_RECEIVED, SPAN_QUEUED, SPAN_STARTED, SPAN_ENDED, SPAN_ON_DISK, SPAN_ANSWERED, SPAN_STAMPS };

/* A piece of a span: 0 for what this piece does not know. Several pieces of one span are joined by its id. */
struct span {
	uint64_t hi, lo, span, parent;
	uint64_t at_ns[SPAN_STAMPS];     /* the box's monotonic clock                             */
	uint32_t kind;
	int32_t  status;
	uint16_t worker;
	uint16_t batch;                  /* messages handled in the same turn                     */
	uint16_t turn;                   /* 1: this piece is the turn's: kind, status, address count */
	uint16_t address_len;
	char     address[256];
};
static_assert(sizeof(struct span) % 8 == 0, "copied by words");

#define SPAN_WORDS (sizeof(struct span) / 8)
struct span_slot {
	alignas(CACHE_LINE) atomic_u64 version;  /* odd: being written */
	atomic_u64 words[SPAN_WORDS];
};

#define SPANS 1024                       /* of a ring; a power of two */
struct span_ring {
	struct { uint64_t next; uint64_t seed; } mine;             /* where; of ids: trace_fresh    */
	struct { _Atomic(struct span_slot *) slots; } shown;       /* NULL: none was ever put       */
};

void span_ring_close(struct span_ring *r);               /* nobody reads any more */
void span_put(struct span_ring *r, const struct span *s);        /* makes the slots the first time */

/* Slot i of SPANS. False: nothing there, or it is being written. */
bool span_read(struct span_ring *r, uint32_t i, struct span *out);

/* The same for one trace (hi, lo), mostly without a copy. */
bool span_read_of(struct span_ring *r, uint32_t i, uint64_t hi, uint64_t lo, struct span *out);

#endif
