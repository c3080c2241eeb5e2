/* sched/scan.h - who is in memory, for scans: by hash, a window at a time.
 *
 * The directory's entries hold the next 32 bits of the hash after those that pick the table, so a window of a
 * table is read without looking at any other actor's cell, whatever the table has grown to.
 *
 * Owns     nothing.   Threads  any, each with its port.
 * Never    takes a lock, or waits.
 */
#ifndef NOH_SCHED_SCAN_H
#define NOH_SCHED_SCAN_H

#include "core/names.h"
#include "sched/sched.h"

/* Actors that are loaded, of this type (NULL: any), with a hash in [from, last], which share its top 12
 * bits and end on whole 20 bits: NAME_THERE or not, NAME_ACTIVE, NAME_DURABLE, NAME_REBORN, due. False:
 * no memory. */
bool scan_window(struct port *p, const struct type *only, uint64_t from, uint64_t last, struct names *out);

/* About how many cells share the hash's top 12 bits; 0 is exact. *lines: of memory that a window reads. */
uint64_t scan_near(struct sched *s, uint64_t hash, uint64_t *lines);

/* What is known of one who is loaded: flags as above, and *due. False: he is not. */
bool scan_look(struct port *p, const struct address *a, struct type *t, uint64_t hash, uint16_t *flags,
	       uint64_t *due);

#endif
