/* net/event_text.h - an event as JSON, as a server-sent event, and as RESP.
 *
 * docs/events.md lists the fields. RESP has them under these names; JSON has `at` (RFC 3339) for at_ms, and null where a text is empty
 * or there is no revision. A server-sent event is the JSON on one line.
 *
 * Owns     nothing.   Threads  any.
 */
#ifndef NOH_NET_EVENT_TEXT_H
#define NOH_NET_EVENT_TEXT_H

#include "net/out.h"
#include "noh_json.h"

void event_put_json(noh_json_out *o, const char *name, const noh_event *e);
void event_put_sse(struct out *o, const noh_event *e);           /* id: its seq; data: the JSON, on one line */
void event_put_resp(struct out *o, const noh_event *e);          /* a map */

/* The last words of a stream, and nothing but them: "event: cut", and as data the reason and the cursor to go on with. */
void event_put_end(struct out *o, const char *event, const char *why, uint64_t cursor);

#endif
