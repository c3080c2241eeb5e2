/* sched/vitals.h - how an actor is: its health, what it failed of, its revisions, whose child it is.
 *
 * Few actors have any. They stand in a table by hash, so that whoever asks is told without the actor's help, even if
 * it hangs in a turn. With the actor they go into its record and its image (PART_VITALS). Who is given up (degraded,
 * stopped, quarantined, awaiting) leaves memory, but not this table: it decides whether he may come back.
 *
 * Owns     the entries; ext.vitals points to one from the actor's activation to its end.
 * Threads  only the worker that runs the actor writes, under the stripe's word; it may read without. Others: vitals_get,
 *          vitals_each, which hold a stripe for one entry, or for a stripe's.
 */
#ifndef NOH_SCHED_VITALS_H
#define NOH_SCHED_VITALS_H

#include "core/record.h"
#include "sched/sched.h"

#define VITALS_STRIPES 256

struct watcher {                           /* watch.c */
	struct watcher *next;
	uint32_t        kind;
	uint32_t        len;
	char            address[];         /* with NUL */
};

struct vitals {
	struct vitals  *next;
	uint64_t        hash;
	uint32_t        cell;              /* whose they are; 0: nobody is in memory               */
	uint32_t        type;
	struct part_vitals of;             /* as stored; the lengths are those below               */
	char           *parent, *reason, *error;   /* with NUL; NULL: none                         */
	struct watcher *watchers;
	uint32_t        watcher_count;
	/* the runner's alone, and not stored: */
	uint32_t        entry, worker;     /* in the wheel: when the back-off is over              */
	uint64_t        serial;            /* of that: an older one that fires says nothing        */
	const char     *told;              /* the state it was last told to be in; NULL: its life says it */
	struct round   *round;             /* children that are being restarted (kin.h)            */
	uint8_t         counted;           /* the health it is counted with                        */
	bool            down;              /* it rests until then                                  */
	bool            with_kin;          /* down until its parent restarts it, with siblings     */
	bool            told_parent;       /* that its back-off is over                            */
	bool            then_children;     /* when it is restarted, so are they                    */
	uint8_t         address_len;
	char            address[];
};

struct vitals_stripe {
	alignas(CACHE_LINE) atomic_u32 held;
	struct vitals **buckets;           /* guarded by held, as is all below */
	uint32_t        room, count;       /* room: a power of two, or 0       */
};

struct vitals_table { struct vitals_stripe stripes[VITALS_STRIPES]; };

bool vitals_open(struct sched *s);
void vitals_close(struct sched *s);        /* no thread runs */

/* Of an actor that is loaded; made if need be. NULL: no memory. */
struct vitals *vitals_of(struct sched *s, struct cell *c);
static inline struct vitals *vitals_if(const struct cell *c)
{
	return c->ext ? c->ext->vitals : NULL;
}

/* The actor comes: what is known of it already, or what its image says (part; NULL: nothing). False: no memory. */
bool vitals_load(struct sched *s, struct cell *c, const struct part *part);
void vitals_leave(struct sched *s, struct cell *c);      /* it goes: kept only if there is a reason to */
void vitals_forget(struct sched *s, struct cell *c);     /* noh_erase: as if it had never failed       */

/* To change anything that others read. */
void vitals_lock(struct sched *s, const struct vitals *v);
void vitals_unlock(struct sched *s, const struct vitals *v);
bool vitals_text(char **to, uint8_t *len, const char *text, size_t n);    /* replaced; cut to 255; false: no memory */

/* Is there anything to store? As many bytes, as data of a PART_VITALS. */
bool   vitals_kept(const struct vitals *v);
size_t vitals_size(const struct vitals *v);
void   vitals_write(const struct vitals *v, void *out);

/* For whoever asks, any thread. False: nothing is known of it here. */
bool vitals_get(struct sched *s, const char *address, size_t len, uint64_t hash, noh_vitals *out);
bool vitals_read(const struct part *part, noh_vitals *out);               /* as stored */
/* Of all in the table, a stripe held: must not block or call back. */
typedef void vitals_fn(void *arg, const struct vitals *v);
void vitals_each(struct sched *s, vitals_fn *each, void *arg);
void vitals_tell(struct sched *s, const struct vitals *v, noh_vitals *out);    /* inside vitals_each */

/* By address, for who is not its runner (watch.c): with the stripe held until vitals_unlock; made if need be. NULL: no
 * memory, and nothing is held. */
struct vitals *vitals_hold(struct sched *s, const char *address, size_t len, uint64_t hash, uint32_t type, bool make);

#endif
