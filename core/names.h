/* core/names.h - addresses on their way to whoever asked for a list of them, and what is known of each.
 *
 * Owns     copies of the addresses, each with a NUL behind it.
 * Threads  one at a time.
 */
#ifndef NOH_CORE_NAMES_H
#define NOH_CORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NAME_THERE = 1,        /* it exists; else it is known that it does not                        */
	NAME_ACTIVE = 2,
	NAME_DURABLE = 4,      /* of a durable type                                                   */
	NAME_REBORN = 8,       /* erased and there again, and not all of that is folded               */
	NAME_STORED = 16,      /* the image has a row of it                                           */
	NAME_CHOSEN = 32,      /* to be given                                                         */
};

struct name {
	uint64_t hash, due;    /* due: when what is said here is on disk                              */
	size_t   at;           /* in bytes                                                            */
	uint8_t  len, from;    /* from: who says so; of several the lowest is right                   */
	uint16_t flags;
};

struct names {
	struct name *list;
	uint32_t     count, room;
	char        *bytes;
	size_t       used, bytes_room;
};

bool names_room(struct names *n, uint32_t more);         /* for so many; false: no memory */
uint32_t names_left(const struct names *n);              /* so many fit without asking    */
/* There must be room. */
void names_put(struct names *n, const void *address, size_t len, struct name is);
void names_free(struct names *n);

/* Those from the first-th on: by hash, then address, then `from`. */
void names_sort(struct names *n, uint32_t first);
bool names_same(const struct names *n, uint32_t a, uint32_t b);    /* one address? */

static inline const char *names_at(const struct names *n, uint32_t i)
{
	return n->bytes + n->list[i].at;
}

#endif
