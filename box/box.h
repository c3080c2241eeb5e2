/* box/box.h - where the stages meet: a box is a scheduler, a storage, and threads.
 *
 * Owns     all of it, from noh_open to noh_close.
 * Threads  noh.h says it per function.
 */
#ifndef NOH_BOX_BOX_H
#define NOH_BOX_BOX_H

#include "box/marks.h"
#include "persist/crashes.h"
#include "persist/datadir.h"
#include "persist/eventlog.h"
#include "persist/keeper.h"
#include "persist/tail.h"
#include "sched/sched.h"

#include <pthread.h>
#include <sched.h>

enum box_phase { BOX_OPEN, BOX_RUNNING, BOX_STOPPED };

/* What a box with a data directory has: all of it NULL in one without. */
struct box_disk {
	struct datadir  dir;
	bool            locked;          /* dir is open                                            */
	struct disk    *disk;
	struct db      *db;
	struct journal *journal;
	bool            gives_way;       /* the journaller's thread lets workers end what they do (core/thread.h) */
	struct store   *store;
	struct tail    *tail;            /* until whoever it mentions is woken; the store owns it */
	struct keeper   keeper;
	struct crashes  crashes;
	pthread_t       threads[3];      /* journaller, keeper, maker of segments                  */
	uint32_t        thread_count;
	atomic_u32      stop_journal, stop_keeper;
	atomic_u32      failed;          /* NOH_EDISK or NOH_ECORRUPT, negated; said once          */
	uint64_t        boot_tag;        /* the first epoch of this run                            */
	uint64_t        segment_bytes;   /* of the journal, and of each worker's ring; 0: as usual */
	uint32_t        ring_bytes;
	uint64_t        timers_to_ms;    /* keeper: dormant timers are armed up to then, wall-clock */
	bool            woken;           /* keeper: who has messages from before was woken         */
	uint64_t        last_frame;      /* of the run before: what it left is counted when the image is there */
	atomic_u32      counted;         /* how many actors of each type existed when this run began */
	bool            types_known;     /* which of them are quarantined; else the keeper finds out */
};

struct server;
struct errands;

struct noh_box {
	struct sched   sched;
	struct store  *store;            /* in memory: of volatile types                           */
	struct box_disk disk;
	struct server  *server;          /* NULL: it does not listen                               */
	struct type    *counter, *inventory;   /* of plain keys; NULL: not registered              */
	struct marks    marks;
	struct errands *errands;         /* NULL: it does not listen                               */
	struct eventlog events;
	atomic_u64      events_bytes, events_ms;     /* how many are kept, and how long            */
	atomic_u64      events_looked;   /* so many bytes there were when the oldest were last looked for */
	bool            no_uring;
	pthread_t     *threads;          /* workers, then the watchdog */
	uint32_t       thread_count;
	bool           unpinned;
	cpu_set_t      cpus;             /* which the workers sit on, if they are pinned */
	bool           stepped;          /* tests: no threads, sched_pass by hand */
	atomic_u32     phase;            /* enum box_phase */
	uint64_t       opened_ns, opened_wall_ms, process_start_ms;
	atomic_u64     drain_until_ns;   /* it is being drained, until then; 0: it is not */
	atomic_u64     ready_ns;         /* noh_start is done; 0: not yet */
	struct pulse { uint64_t passes, seen_ns; } *pulse;   /* by worker: noh_pulse; NULL: not asked yet */
};

/* For tests and the simulator: noh_open in another world. The disk becomes the box's, and is ended by
 * noh_close; NULL: the real one. */
struct box_seams {
	struct clock clock;
	struct disk *disk;
	uint64_t     segment_bytes;      /* of the journal, and of each worker's ring; 0: as usual */
	uint32_t     ring_bytes;
};
int box_open(noh_box **box, const noh_options *options, const struct box_seams *seams);

/* For tests and the simulator: everything of noh_start but the threads; the caller runs
 * sched_pass(&box->sched.workers[i]) himself, with sched_set_self around it. */
int box_start_stepped(noh_box *box);

/* box.c - for drain.c: everybody sleeps and nothing is on its way; network: no client waits, either. */
bool box_is_quiet(struct sched *s, bool network);
void box_wait_for_ports(struct sched *s);

/* serve.c - the network; deliver.c: its requests. */
void box_net_start(noh_box *box);                            /* types are known; before the threads */
void box_net_stop(noh_box *box);
void box_net_close(noh_box *box);                            /* no thread runs                      */
void box_feeds_stop(noh_box *box);                           /* readers of events are told, and end */

/* errand.c - what the network wants of the box that may block: done one after the other by a thread of its own. */
void box_errands_start(noh_box *box);                        /* a box that listens                  */
void box_errands_close(noh_box *box);
void box_errands_stop(noh_box *box);                         /* waits for the one under way; the rest is ESTOPPED */

/* dead.c - the actor that takes messages back from where they were set aside. Before noh_start knows its types. */
int  box_register_clerk(noh_box *box);

/* schedule.c - what is told from the image. Blocks until all that is durable now is folded: NOH_OK, NOH_ETIMEOUT. */
int  box_fold_now(noh_box *box, uint32_t timeout_ms);

/* events.c - the event log. */
int  box_events_open(noh_box *box, const noh_options *o);    /* before the disk                  */
void box_events_start(noh_box *box);                         /* the disk is open, if there is one */
void box_events_stop(noh_box *box);                          /* who waits for one is told so     */
void box_events_close(noh_box *box);

/* vitals.c - types that are quarantined as a whole: whoever is to blame has it stored, in the image or in the tail (NULL: there
 * is none). Looks at so many at most; false: there may be more. Blocks in the image. */
bool box_find_quarantined_types(noh_box *box, const struct tail *tail, uint32_t most);

/* stop_tree.c - every tree there is, from its leaves; workers run, and nothing comes from outside any more. go_on (or
 * NULL) is asked now and then; false: it is not waited for any longer. */
void box_stop_trees(noh_box *box, uint64_t until_ns, bool (*go_on)(void *arg), void *arg);

/* change.c - what may change while it runs. */
#define BOX_SLOW_TURN_MS 100
uint32_t box_idle_ds(uint32_t idle_timeout_ms);              /* of the scheduler's tenths           */
void box_tell_number(noh_box *box, const char *what, uint64_t from, uint64_t to);   /* as an event, if it is another and the box runs */

/* disk.c - the durable side, in the order of a box's life. */
int  box_disk_open(noh_box *box, const noh_options *o);      /* recovers; before types are known */
int  box_disk_start(noh_box *box, bool threads);             /* types are known                  */
int  box_disk_stop(noh_box *box, bool fold);                 /* workers have ended               */
void box_disk_close(noh_box *box);
void box_disk_share(noh_box *box);                           /* the memory budget is known, or new */
/* wake.c - the keeper's: who has messages from before, once; whose timers are due soon, again and again. */
void box_wake_left_behind(noh_box *box);
void box_arm_timers(noh_box *box);
/* What the two threads do in one round; tests and the simulator call them. */
int  box_journal_round(noh_box *box, bool wait);
int  box_keeper_round(noh_box *box);

#endif
