/* core/plant.h - bugs put in on purpose, which the simulator must find (tests/sim/box).
 *
 * Only the simulator's own build of these sources has them (-DNOH_PLANTS); everywhere else PLANT(x) is
 * the constant 0, and so is what it guards.
 */
#ifndef NOH_CORE_PLANT_H
#define NOH_CORE_PLANT_H

enum plant {
	PLANT_NONE,
	PLANT_ACK_BEFORE_SYNC,       /* a frame counts as written when it is submitted                */
	PLANT_SKIP_CHECKSUM,         /* frames are taken unread                                       */
	PLANT_LOSE_WAKE,             /* the journaller is not woken by a push                         */
	PLANT_LOSE_WAKE_DURABLE,     /* a worker is not woken by its epoch                            */
	PLANT_ANSWER_AT_TAG,         /* an answer waits for `tag`, not for `due`                      */
	PLANT_RELEASE_BEFORE_PUSH,   /* the cell is released, and its messages sent, before the push  */
	PLANT_ERROR_UNGATED,         /* an error computed from a state does not wait                  */
	PLANT_READ_UNGATED,          /* a turn without a record does not wait for what it has seen    */
	PLANT_EMPTY_EPOCH,           /* an epoch without records is not published                     */
	PLANT_GAP_IS_WHOLE,          /* a missing frame with a whole one behind it ends the journal    */
	PLANT_STALE_SNAPSHOT,        /* an activation looks into LMDB first, then into the overlay    */
	PLANT_FOLD_PAST_STAMP,       /* a fold is stamped with a frame above what it holds            */
	PLANT_REDELIVER,             /* a handled message is not recorded as consumed                 */
	PLANT_OVERTAKE,              /* of messages that waited for a creation the second comes first */
	PLANT_SEQUENCE_RESET,        /* an erased actor counts from the beginning again               */
	PLANT_TIMER_LOST,            /* who goes to storage leaves no hint for his timers             */
	PLANT_RELAY_FORGETS,         /* a volatile actor does not wait for what it was told           */
	PLANT_KEY_FORGOTTEN,         /* a key is not known before it is folded                        */
	PLANT_ENTRIES_LEFT,          /* erasing an actor leaves its entries in the image              */
	PLANT_STEP_SPLIT,            /* a step's records are split over two frames                   */
	PLANT_EVENT_STAYS,           /* a turn that is undone has told its events all the same        */
	PLANT_BACKOFF_UNCAPPED,      /* a back-off grows beyond its cap                              */
	PLANT_RESTART_LOSES,         /* a restart loses what waits in the mailbox                    */
	PLANT_ESCALATION_LOOP,       /* escalation goes on in a circle of parents                    */
	PLANT_STOP_ORDER,            /* a tree stops from its root, in the order spawned             */
	PLANT_LATE_LOST,             /* what a turn sent is given up if there is no memory to deliver it  */
	PLANT_LATE_OVERTAKEN,        /* the sender goes on before that is delivered                   */
	PLANT_TOKEN_LOST,            /* a send that fails after it was admitted keeps its token       */
	PLANT_PLACE_KEPT,            /* who has been served keeps its place among its type's turns    */
	PLANTS
};

#ifdef NOH_PLANTS
extern int noh_plant;
#define PLANT(which) (noh_plant == (which))
#else
#define PLANT(which) 0
#endif

#endif
