/* net/tell.h - how actors are and who belongs to whom, for both protocols: found out as errands (call_errand), since they
 * read the image and wait until what they tell is on disk.
 *
 * Owns     nothing.   Threads  the errands'; tell_state_of: any.
 */
#ifndef NOH_NET_TELL_H
#define NOH_NET_TELL_H

#include "core/address.h"
#include "net/call.h"

enum { TELL_MS = 10000, TELL_EVENTS = 10, TELL_EVENTS_MOST = 100, TELL_TREE = 1000, TELL_TREE_MOST = 10000,
       TELL_LIST = 100, TELL_LIST_MOST = 1000 };

struct tell_wish {
	char     whom[ADDRESS_MAX + 1];    /* an address; of tell_quarantine and tell_resume also a type; "": all */
	uint32_t limit;                    /* entries; of tell_actor: events                        */
	uint8_t  proto;                    /* RESP 2 or 3; 0: JSON                                  */
};

/* What they write is the whole reply; what goes wrong is a sentence. NOH_END: there was nothing to resume. */
errand_fn tell_actor, tell_tree, tell_quarantine, tell_resume;

/* In one word: its health, or if that is good whether it is active. */
const char *tell_state_of(noh_health health, noh_life life);

#endif
