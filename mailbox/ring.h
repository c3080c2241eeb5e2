/* mailbox/ring.h - the rings that mailboxes borrow while they hold messages.
 *
 * Owns     the slots. A ring belongs to one mailbox from attach to detach; between them it rests
 *          in somebody's cache. Its memory never goes away, so a stale reader reads nonsense, not
 *          a fault, and his compare-and-swap on the mailbox's word fails.
 * Threads  ring_take, ring_give: any, each with its own cache.
 *
 * A slot is a baton. With lap = position / slots, counted over the ring's whole life:
 *     val == 2 * lap          free: whoever claims the position may write the message
 *     val == 2 * lap + 1      full: whoever takes the position may read the message
 *     val == 2 * (lap + 1)    free again, one lap later
 * Positions go on where they stopped when the ring moves to another mailbox, so nothing is
 * initialised at attach, fresh memory (zero) is ready to use, and a slot that its last reader has
 * not let go yet is simply not free.
 */
#ifndef NOH_MAILBOX_RING_H
#define NOH_MAILBOX_RING_H

#include "core/atomic.h"
#include "core/slab.h"

#include <assert.h>

#define MSG_INLINE 40

/* A message as it waits. Bodies over MSG_INLINE are one allocation, owned by the message. */
struct msg {
	uint32_t kind;
	uint32_t len;
	uint64_t reply;                 /* who waits for the answer; 0: nobody */
	union {
		uint8_t bytes[MSG_INLINE];
		void   *big;
	} body;
};

/* A message that has more to say than fits: len has MSG_WRAPPED, body.big is an envelope, and the body
 * follows it, then the key, then the trace. */
#define MSG_WRAPPED (1u << 30)
struct envelope {
	uint32_t bytes;                 /* of the allocation                                   */
	uint32_t index;                 /* of a recorded message: its place in the turn        */
	uint64_t sender, seq;           /* and who sent it, when; seq 0: it was not recorded   */
	uint16_t key_len;               /* idempotency key, behind the body; 0: none           */
	uint8_t  flags;                 /* ENVELOPE_...                                        */
	uint8_t  zero;
	uint32_t zero2;
};
enum {
	ENVELOPE_MEMORY = 1,            /* its answer need not wait for the disk               */
	ENVELOPE_TOPIC = 2,             /* published: behind the body, the channel and a NUL   */
	ENVELOPE_TRACED = 4,            /* its last bytes are a struct trace_tail (core/trace.h) */
};

static inline uint32_t msg_len(const struct msg *m)
{
	return m->len & ~MSG_WRAPPED;
}
static inline const void *msg_body(const struct msg *m)
{
	if (m->len <= MSG_INLINE)
		return m->body.bytes;
	return (const char *)m->body.big + (m->len & MSG_WRAPPED ? sizeof(struct envelope) : 0);
}
static inline const void *envelope_key(const struct envelope *e, uint32_t body_len)
{
	return (const char *)(e + 1) + body_len;
}

struct slot {
	atomic_u64 val;
	struct msg msg;                 /* plain memory, guarded by val */
};

struct ring {
	atomic_u64 start;               /* tail of the mailbox when the ring was attached      */
	atomic_u64 base;                /* position in this ring that `start` has              */
	atomic_u64 next;                /* while it rests: the position to go on with          */
	atomic_u32 prev;                /* the ring the mailbox grew out of; 0: none           */
	atomic_u32 link;                /* the slab's                                          */
	uint64_t   pad[4];
	struct slot slots[];
};
#ifndef NOH_ATOMIC_BACKEND
static_assert(sizeof(struct slot) == CACHE_LINE, "a slot is one line");
static_assert(sizeof(struct ring) == CACHE_LINE, "so is the ring's head");
#endif

/* A ring is named by 26 bits: 3 of class, 23 of number. 0 is no ring. */
#define RING_CLASSES 8
#define RING_ID_BITS 26
#define RING_NUMBER_BITS 23

struct rings {
	struct slab slab[RING_CLASSES];
};

struct ring_cache {
	struct slab_cache cache[RING_CLASSES];
};

bool rings_open(struct rings *rs, uint32_t most);    /* at most so many of each class */
void rings_close(struct rings *rs);
uint32_t ring_slots_log2(uint32_t class_no);

static inline uint32_t ring_class(uint32_t id)
{
	return id >> RING_NUMBER_BITS;
}

static inline struct ring *ring_at(const struct rings *rs, uint32_t id)
{
	return (struct ring *)slab_at(&rs->slab[ring_class(id)], id & ((1u << RING_NUMBER_BITS) - 1));
}

static inline uint32_t ring_take(struct rings *rs, struct ring_cache *rc, uint32_t class_no)
{
	uint32_t n = slab_take(&rs->slab[class_no], &rc->cache[class_no]);

	return n ? class_no << RING_NUMBER_BITS | n : 0;
}

static inline void ring_give(struct rings *rs, struct ring_cache *rc, uint32_t id)
{
	slab_give(&rs->slab[ring_class(id)], &rc->cache[ring_class(id)],
		  id & ((1u << RING_NUMBER_BITS) - 1));
}

#endif
