/* core/record.h - what a turn did, as bytes: the one format of journal, storage and overlay.
 *
 *     record   head 40 | address, padded to 8 | part | part | ...
 *     part     kind 2 | key length 2 | length 4 | key | data | padding to 8
 *
 * A record is what one turn changed: the journal's unit. An image is the same parts without the
 * head: everything there is of one actor. Numbers are in the machine's order (little-endian; the
 * data directory says so). Padding is zero.
 *
 * part          key          data
 * PART_STATE    -            struct part_state, then the state's bytes
 * PART_TIMERS   -            struct part_timer, any number: the whole list after the turn
 * PART_PUT      entry's key  entry's value
 * PART_DELETE   entry's key  -
 * PART_CONSUMED -            struct message_id of a recorded message that found its end
 * PART_EMITTED  receiver     struct part_emitted, then the body
 * PART_IDEM     the key      struct part_idem, then the answer
 * PART_DEAD     receiver     struct part_dead, then the body: a message set aside
 * PART_HINT     -            8 bytes, in images that stay in memory only: a wheel has a hint for then
 * PART_UNDEAD   -            struct part_undead: a message set aside that is no longer: sent again, or forgotten
 * PART_EVENT    -            struct part_event and its texts (event.h); the record has RECORD_EVENTS
 * PART_VITALS   -            struct part_vitals, then its three texts: how the actor is, and whose child
 *
 * Owns     nothing.   Threads  any.
 * Never    reads past what it was given: record_next and part_next check every length, so bytes from
 *          a damaged file are safe to walk.
 */
#ifndef NOH_CORE_RECORD_H
#define NOH_CORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum part_kind {
	PART_STATE = 1, PART_TIMERS, PART_PUT, PART_DELETE, PART_CONSUMED, PART_EMITTED, PART_IDEM,
	PART_DEAD, PART_HINT, PART_UNDEAD,
	PART_EVENT,
	PART_VITALS = 12,
	PART_KINDS
};

enum {
	RECORD_GONE = 1,        /* the actor was erased: state, timers and entries; then its parts count */
	RECORD_EVENTS = 2,      /* there are events among its parts                                   */
	RECORD_NOTICE = 4,      /* there is nothing else: it is about no actor, and its seq means nothing */
};

struct record_head {
	uint32_t size;          /* of all, a multiple of 8                                    */
	uint8_t  address_len;   /* 1 to 255                                                   */
	uint8_t  flags;         /* RECORD_...                                                 */
	uint16_t zero;
	uint64_t tag;           /* the box's epoch before the push                            */
	uint64_t seq;           /* of the actor: max(previous + 1, tag << 20)                 */
	uint64_t hash;          /* of the address                                             */
	uint64_t order;         /* RECORD_EVENTS: of its events among those of its group      */
};

struct part_head {
	uint16_t kind, key_len;
	uint32_t len;           /* of the data; key and padding come on top                   */
};

struct part_state { uint32_t version, zero; uint64_t schema; };
struct part_timer { uint64_t due_ms, period_ms; uint32_t kind, zero; };     /* wall-clock time */
struct message_id { uint64_t sender, seq; uint32_t index, zero; };          /* hash, its seq, place */
struct part_emitted {
	struct message_id id;
	uint64_t tag;           /* of the record that sent it                                 */
	uint64_t ask;           /* 0: nobody waits; else the number the asker was given       */
	uint32_t kind, answer_kind, timeout_ms;
	uint32_t flags;         /* EMITTED_...                                                */
	int32_t  status;        /* of an answer                                               */
	uint32_t from_len;      /* the asker's address, before the body; padded to 8; 0: none */
};
enum { EMITTED_ANSWER = 1 };
struct part_idem {
	uint64_t at_ms;         /* when, wall-clock                                           */
	uint64_t body_hash;
	int32_t  status;
	uint32_t flags;         /* IDEM_...                                                   */
};
enum { IDEM_DEFERRED = 1 };     /* the turn put its answer off: there is none to give again  */
struct part_dead {
	struct message_id id;   /* zero: it was not a recorded one                            */
	uint64_t at_ms;
	uint32_t kind, reason_len;   /* the reason's bytes come before the body, padded to 8  */
};

struct part_undead { uint64_t at_ms, number; };          /* its row in the image */

struct part_event {
	uint64_t at_ms, revision;
	uint16_t actor_len, kind_len, from_len, to_len, reason_len;
	uint16_t flags;         /* EVENT_...                                                  */
	uint32_t len;           /* of the data behind the texts                               */
};
enum { EVENT_BY_BOX = 1 };

struct part_vitals {            /* then the parent's address, the reason, the error: one after the other */
	uint64_t failed_ms, window_ms, until_ms;         /* wall-clock time                   */
	uint64_t desired, observed;
	uint64_t order;         /* which child of its parent it is                            */
	uint64_t spawned;       /* how many children it has spawned                           */
	uint32_t children;      /* how many it has                                            */
	uint32_t restarts, in_window, streak;
	uint8_t  health;        /* noh_health                                                 */
	uint8_t  parent_len, reason_len, error_len;
	uint32_t flags;         /* VITALS_...                                                 */
};
#define VITALS_HEALTH_MAX 5     /* NOH_AWAITING */
enum { VITALS_WHOLE_TYPE = 1 }; /* quarantined with all of its type                        */

struct part {                   /* as walked: pointers into the bytes */
	uint16_t    kind, key_len;
	uint32_t    len;
	const char *key;
	const void *data;       /* aligned to 8 if the bytes were                            */
};

static inline size_t record_pad(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* Bytes of a part with this key and data. Key and data are padded each. */
static inline size_t part_size(size_t key_len, size_t len)
{
	return sizeof(struct part_head) + record_pad(key_len) + record_pad(len);
}

/* Writes the head, the key and the padding; returns where `len` bytes of data go (padding behind
 * them is zeroed). */
static inline void *part_put(uint8_t **at, enum part_kind kind, const void *key, size_t key_len, size_t len)
{
	struct part_head head = { (uint16_t)kind, (uint16_t)key_len, (uint32_t)len };
	uint8_t *data = *at + sizeof head + record_pad(key_len);

	memcpy(*at, &head, sizeof head);
	if (key_len) {
		memset(data - 8, 0, 8);
		memcpy(*at + sizeof head, key, key_len);
	}
	*at = data + record_pad(len);
	if (len)
		memset(*at - 8, 0, 8);
	return data;
}

/* The next part between *at and end. False: the end; then *at == end, or else the bytes are damaged. */
bool part_next(const uint8_t **at, const uint8_t *end, struct part *part);

/* Head and address at `out`; returns where the parts begin. record_finish sets the size. record_head: the address, `len` bytes,
 * is still to be written behind the head. */
uint8_t *record_head(uint8_t *out, size_t len, uint64_t hash, uint64_t tag, uint64_t seq, uint8_t flags);
uint8_t *record_begin(uint8_t *out, const char *address, size_t len, uint64_t hash, uint64_t tag,
		      uint64_t seq, uint8_t flags);
void record_finish(uint8_t *record, const uint8_t *end);
void record_set_order(uint8_t *record, uint64_t order);

static inline size_t record_parts_at(size_t address_len)
{
	return sizeof(struct record_head) + record_pad(address_len);
}

/* The next whole record between *at and end: its head, and its parts between *parts and *parts_end;
 * the address follows the head. False: the end; then *at == end, or else the bytes are damaged.
 * `at` must be aligned to 8. Parts are not checked here; record_valid does. */
bool record_next(const uint8_t **at, const uint8_t *end, const struct record_head **head,
		 const uint8_t **parts, const uint8_t **parts_end);
static inline const char *record_address(const struct record_head *head)
{
	return (const char *)(head + 1);
}

/* Is data of this kind as long as its struct, and is what stands inside it whole? */
bool part_data_fits(uint16_t kind, const void *data, size_t len);

/* Are all parts of known kinds and whole, with data as long as their structs? */
bool parts_valid(const uint8_t *parts, const uint8_t *end);

#endif
