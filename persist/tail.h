/* persist/tail.h - the journal's tail after a crash, as it was read: served from memory until folded.
 *
 * Folding a full journal into LMDB takes seconds; a start may not (P9). So recovery only copies the
 * records and notes who they are about; an actor's image is put together when it is first needed: what
 * LMDB has, then every record about it, in order. The keeper folds the same frames in its own time; when
 * it has, the tail goes.
 *
 * Why that is right: as long as the tail is here, LMDB stands somewhere before its end, and records
 * applied once more in their order, up to the end, give the same as if they had been applied once. An
 * actor that made newer records in this run is found in the overlay, which is asked first and, when an
 * entry has gone from it, everything before that entry, so all of the tail, is folded and the tail gone.
 *
 * Owns     copies of the records.   Threads  tail_record: one, before sharing. Then read by any.
 */
#ifndef NOH_PERSIST_TAIL_H
#define NOH_PERSIST_TAIL_H

#include "core/record.h"
#include "persist/store.h"

struct tail;

/* seed: of address hashes. most: bytes of records there may be, as address space. */
int  tail_open(struct tail **t, uint64_t seed, uint64_t most);
void tail_close(struct tail *t);                         /* NULL is fine */

/* A journal_each_fn. NOH_OK, NOH_ENOMEM, NOH_ECORRUPT. */
int  tail_record(void *t, uint64_t frame, uint64_t epoch, const struct record_head *head,
		 const uint8_t *parts, const uint8_t *parts_end);
void tail_done(struct tail *t);                          /* all were given */
uint64_t tail_records(const struct tail *t);
uint64_t tail_bytes(const struct tail *t);               /* of memory */

bool tail_has(const struct tail *t, uint64_t hash);      /* a record about it, or a message for it? */

/* *io is what LMDB has (image NULL: nothing) and becomes what it has with the tail; the old image is
 * freed. NOH_OK, NOH_END: nothing at all, NOH_ENOMEM (then *io is freed and empty). */
int  tail_apply(const struct tail *t, const char *address, size_t len, uint64_t hash, struct stored *io);

/* Does it exist, as far as the tail goes? *reborn: it was erased, and is there again. */
enum store_says tail_says(const struct tail *t, const char *address, size_t len, uint64_t hash, bool *reborn);
/* Those with a hash in [from, last] of whom it says something. False: no memory. */
bool tail_window(const struct tail *t, uint64_t from, uint64_t last, struct names *out);
uint64_t tail_actors(const struct tail *t);              /* it mentions: about how many */

/* An IDEM part's data, copied. NOH_OK, NOH_END, NOH_ENOMEM. */
int  tail_idem(const struct tail *t, const char *address, size_t len, uint64_t hash, const void *key,
	       size_t key_len, void **part, size_t *part_len);

/* Whom to wake: receivers of messages, and actors with timers (due_ms: the first). May name one several
 * times, or for nothing. each() returning non-zero ends it. */
typedef int tail_wake_fn(void *arg, uint64_t due_ms, const char *address, size_t len);
void tail_wakes(const struct tail *t, tail_wake_fn *each, void *arg);

/* Who, at some time, was quarantined with all of its type (due_ms: 0); whether it still is, its image says. May name one
 * several times. False: there are more than were noted. */
bool tail_jailers(const struct tail *t, tail_wake_fn *each, void *arg);

#endif
