/* core/event.h - an event of the log as bytes: the same in a turn, in its record, in memory and in the image.
 *
 *     struct part_event | actor NUL | kind NUL | from NUL | to NUL | reason NUL | data
 *
 * Owns     nothing.   Threads  any.
 * Never    reads past what it was given: event_open checks every length and that each text ends where it should.
 */
#ifndef NOH_CORE_EVENT_H
#define NOH_CORE_EVENT_H

#include "core/record.h"
#include "noh.h"

#define EVENT_ACTOR_MAX 255
#define EVENT_MAX (sizeof(struct part_event) + EVENT_ACTOR_MAX + 3 * NOH_EVENT_KIND + NOH_EVENT_REASON + 5 + NOH_EVENT_DATA)

/* How long its texts are, how many bytes it takes, and those. A text that is NULL is empty; a reason that is too long is cut,
 * the rest was checked. seq is not among them: it is the event's place in the log. */
struct part_event event_head(const noh_event *e);
size_t event_size(const struct part_event *head);
void   event_write(const noh_event *e, const struct part_event *head, uint8_t *out);

/* Pointers into the bytes; all but seq. out NULL: only check. False: this is no event. */
bool   event_open(const void *bytes, size_t len, noh_event *out);

/* NULL: fits. Else what does not, in words. */
const char *event_problem(const noh_event *e);

/* Does it fit the filter (NULL: everything does)? */
bool   event_matches(const noh_event *e, const noh_events_filter *filter);

#endif
