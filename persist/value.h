/* persist/value.h - rows of the image as bytes: keys that sort, values that prove themselves.
 *
 * LMDB has no checksums. So a value begins with a sum over its table, its key and itself, with its
 * sequence, and with a short sum of the key alone (a neighbour is checked without reading all of it).
 * Rows lie unaligned in the map: nothing here is read but through memcpy.
 *
 *     images    head | entries, entries_sum | STATE, TIMERS and VITALS parts
 *     entries   head | value
 *     pending   head | struct part_emitted, asker, body
 *     idem      head | number | struct part_idem, answer
 *     idem_age  head | key of the idem row
 *     timers    head |                           (due VALUE_UNWELL: not a timer, an actor that is not healthy)
 *     types     head | images
 *     dead      head | receiver's length | receiver, padded to 8 | struct part_dead, reason, body
 *     meta      head | struct meta_format or meta_stamp
 *     events    head | an EVENT part's data
 *
 * Owns     nothing.   Threads  any.
 * Never    reads past what it was given: any bytes are safe to open.
 */
#ifndef NOH_PERSIST_VALUE_H
#define NOH_PERSIST_VALUE_H

#include "core/record.h"

#define VALUE_KEY_MAX 511        /* LMDB's own limit: 255 + NUL + 255 just fits */
#define IMAGE_FORMAT 2           /* 1: without events; it is read, and made 2 by who writes to it */

enum table {
	TABLE_IMAGES, TABLE_ENTRIES, TABLE_PENDING, TABLE_IDEM, TABLE_IDEM_AGE, TABLE_TIMERS,
	TABLE_TYPES, TABLE_DEAD, TABLE_META,
	TABLE_EVENTS,            /* since format 2 */
	TABLES
};
const char *table_name(enum table t);

struct value_head { uint64_t sum, seq; uint32_t key_sum, zero; };

/* Before the parts of an image: how many entries there are, and the sum of their sums. So a load
 * knows that it has all of them, and none from an older page. */
struct value_image { uint64_t entries, entries_sum; };

struct meta_format { uint32_t format, zero; uint64_t dir_id; };
struct meta_stamp {
	uint64_t frame, epoch;
	uint64_t number;                         /* the last one given to a dead letter or idem key */
	uint64_t idem_bytes, idem_dropped, folds, records;
	uint64_t event_seq, event_bytes;         /* the last event that was folded; of the rows. Since format 2 */
	uint64_t event_oldest_ms;                /* when the first that is there was told; 0: none is           */
};

struct value {                                   /* as opened: data points into the bytes */
	uint64_t       sum, seq;
	const uint8_t *data;
	size_t         len;
};

/* Fill the head of a value of `len` bytes, all else being in place. */
void value_seal(enum table t, const void *key, size_t key_len, uint8_t *value, size_t len,
		uint64_t seq);
bool value_open(enum table t, const void *key, size_t key_len, const void *value, size_t len,
		struct value *out);
/* Only: is this the key the value was written with? */
bool value_key_fits(enum table t, const void *key, size_t key_len, const void *value, size_t len);

/* value_open, and what the table's rows have to look like. False: damaged. */
struct value_row {
	struct value   v;
	struct value_image image;                /* images: and its parts                         */
	uint64_t       number;                   /* idem                                          */
	uint64_t       images;                   /* types                                         */
	const char    *receiver;                 /* dead                                          */
	size_t         receiver_len;
	const uint8_t *rest;                     /* parts, value, part's data, idem row's key     */
	size_t         rest_len;
};
bool value_row(enum table t, const void *key, size_t key_len, const void *value, size_t len,
	       struct value_row *out);

/* The parts of an image; a part that is not there has kind 0. False: others are in it, or damage. */
struct value_parts { struct part state, timers, vitals; const uint8_t *state_at, *timers_at, *vitals_at; };
bool value_image_parts(const uint8_t *parts, size_t len, struct value_parts *out);
uint64_t value_due(const struct part *timers);   /* the earliest; 0: none */

/* Whoever is given up (degraded, stopped, quarantined, awaiting) has a row of its own behind all timers. */
#define VALUE_UNWELL UINT64_MAX
bool value_unwell(const struct part *vitals);

/* Keys: numbers big-endian, so that they sort. All return the length; `out` has VALUE_KEY_MAX. */
size_t key_pair(uint8_t *out, const void *address, size_t len, const void *key, size_t key_len);
size_t key_pending(uint8_t *out, const void *receiver, size_t len, const struct message_id *id);
size_t key_timer(uint8_t *out, uint64_t due_ms, const void *address, size_t len);
size_t key_numbered(uint8_t *out, uint64_t at_ms, uint64_t number);
size_t key_number(uint8_t *out, uint64_t number);
size_t key_type(uint8_t *out, const void *address, size_t len, uint32_t version, uint64_t schema);
uint64_t key_u64(const uint8_t *at);
/* memcmp, then the shorter first: LMDB's order. */
int key_compare(const void *a, size_t a_len, const void *b, size_t b_len);

#endif
