/* net/command_counter.h - what commands on keys and articles share. */
#ifndef NOH_NET_COMMAND_COUNTER_H
#define NOH_NET_COMMAND_COUNTER_H

#include "net/command.h"
#include "noh_actors.h"

/* IDEM key from argv[at] on, and nothing else; key->len is 0 if there is none. False: the error is written. */
bool call_trailing_idem(struct call *c, uint32_t at, struct arg *key);

/* IDEM key as the last two arguments of a command that takes any number of them; *argc: those before it. */
bool call_last_idem(struct call *c, uint32_t *argc, struct arg *key);

bool step_too_big(struct call *c, uint32_t n);                 /* true: the error is written */

/* A time, at least `least`, into milliseconds. */
bool read_time(struct call *c, const struct arg *a, bool seconds, uint32_t how, int64_t least, int64_t *time);

/* [CURSOR c] [LIMIT n] from argv[at] on: 0 and 0 if they are not there; n is 1 to `most`. */
bool read_page(struct call *c, uint32_t at, uint64_t *cursor, uint64_t *limit, uint64_t most);
/* The same, one option at argv[*at]: 1: taken, 0: it is neither, -1: wrong, the error is written. */
int page_option(struct call *c, uint32_t *at, uint64_t *cursor, uint64_t *limit, uint64_t most);

/* The same message without body to the counters argv[1] ... argv[n]. */
void call_keys(struct call *c, uint32_t kind, uint32_t n, const struct arg *key, format_fn *format);

/* Requests to n actors, each at most once: which of them is a name already? */
struct roster {
	struct request *requests;
	union { int64_t value; noh_inventory_reserve reserve; } *bodies;   /* one for each */
	uint32_t *slots;           /* a hash table of request numbers + 1          */
	uint32_t  count, mask;
	void     *memory;
	size_t    bytes;
};
bool roster_open(struct call *c, struct roster *roster, uint32_t most);   /* false: the error is written */
uint32_t roster_add(struct roster *roster, const struct arg *name);       /* its number; == count before: it is new */
void roster_close(struct roster *roster);

#endif
