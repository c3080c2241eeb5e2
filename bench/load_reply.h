/* bench/load_reply.h - where one reply of a RESP server ends and the next begins.
 *
 * Bytes come in pieces of any size; a reader keeps what it needs between two of them. Of a reply it
 * keeps its first byte and its first leaf (the number, the text, or the first of them in an array),
 * the rest is skipped without being kept: a reply of a gigabyte costs no memory.
 *
 * Owns     nothing but the reader.
 * Threads  a reader belongs to one thread.
 * Never    allocates; reads past `end`.
 */
#ifndef NOH_BENCH_LOAD_REPLY_H
#define NOH_BENCH_LOAD_REPLY_H

#include <stdbool.h>
#include <stdint.h>

enum reply_state { REPLY_MORE, REPLY_DONE, REPLY_BROKEN };
enum { REPLY_LEAF = 119, REPLY_DEPTH = 8 };

struct reply {
	/* of the reply that was complete last */
	uint8_t  type;                    /* its first byte: + - : $ * and those of RESP3            */
	uint8_t  leaf_len;
	char     leaf[REPLY_LEAF + 1];    /* text of the first leaf, cut; ends with 0                */
	uint32_t leaves;                  /* how many there were                                     */

	/* within a reply */
	uint8_t  phase, kind, depth, digits;
	bool     minus;
	uint64_t number;                  /* of the line                                             */
	uint64_t body;                    /* bytes of a string that are still to come, with its CRLF */
	uint64_t left[REPLY_DEPTH];       /* elements that are still to come, per array              */
};

void reply_reset(struct reply *r);

/* Reads until the end of one reply, or of the bytes. REPLY_BROKEN: this is no RESP. */
enum reply_state reply_next(struct reply *r, const uint8_t **at, const uint8_t *end);

static inline bool reply_between(const struct reply *r)     /* no reply is half read */
{
	return r->phase == 0 && r->depth == 0;
}

/* The shortcut for what servers mostly answer: as many whole ":123\r\n" as there are from *at on, if
 * there is nothing else up to the last line's end; *at is then behind them. 0: read one by one. */
uint32_t reply_integers(const uint8_t **at, const uint8_t *end);

#endif
