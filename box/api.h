/* box/api.h - what the parts of noh.h's section 4 share (api.c, call.c, scan.c, stats.c).
 *
 * Owns     nothing.   Threads  any.
 */
#ifndef NOH_BOX_API_H
#define NOH_BOX_API_H

#include "box/box.h"

struct outgoing {
	uint32_t    kind;
	const void *body;
	size_t      len;
	uint64_t    reply;                     /* token of who waits; 0: nobody */
	const noh_call_options *options;       /* NULL: none of that            */
	const struct trace_tail *trace;        /* read already; NULL: as the options say */
};

#define API_TIMEOUT_MS 30000

int api_running(noh_box *box);
struct port *api_port(noh_box *box);      /* to change something with; NULL once the box stops */
int api_check_message(struct sched *s, struct type *t, uint32_t kind, const void *body, size_t len);
int api_check_body(const void *body, size_t len);             /* is there one? */
int api_check_options(const noh_call_options *o);
int api_may_block(const char *what);
uint64_t api_until_ns(noh_box *box, uint32_t timeout_ms);
int api_call_result(const char *address, int status, size_t len, size_t room, bool wanted);
struct port *api_look_port(noh_box *box);              /* NULL: it does not run, and the sentence is set */
int api_check(struct sched *s, struct type *t, const struct outgoing *out);   /* may it be sent at all? */
bool api_set_body(struct sched *s, struct msg *m, const struct outgoing *out);
void api_set_trace(struct sched *s, struct msg *m, const struct outgoing *out);   /* trace.c: it has one */
/* A question to the system lane of the actor of this address, which is made if need be. arg: by op. Blocks. */
int api_ask_system(noh_box *box, const char *address, uint32_t op, uint32_t arg, uint64_t until);
int api_push(struct port *p, struct cell *c, uint32_t gen, const struct msg *m);
int api_send(noh_box *box, const char *address, const struct outgoing *out);
/* As noh_scan, noh_get_status and noh_list; *due: when all that is told is on disk. Who shows it to
 * others holds it back until sched.durable is there (P5). */
int api_scan(noh_box *box, const char *type, uint64_t *cursor, uint32_t limit, noh_scan_fn *each, void *user,
	     uint64_t *due);
int api_status(noh_box *box, const char *address, noh_status *status, uint64_t *due);
int api_vitals(noh_box *box, const char *address, noh_vitals *vitals, uint64_t *due);
int api_vitals_at(noh_box *box, struct port *p, const char *address, noh_vitals *vitals, uint64_t *due);     /* who has a port */
int api_list(noh_box *box, const char *type, uint64_t *cursor, noh_entry *entries, size_t *count, uint64_t *due);
/* As noh_step_then, for a request of the network's. */
int api_step_then(noh_box *box, const noh_part *parts, size_t count, const noh_call_options *o, noh_step_fn *done,
		  void *user, uint64_t asked_by);
struct out;
int box_errand(void *box, int (*run)(noh_box *, const void *, uint32_t, struct out *), const void *args, uint32_t len,
	       uint64_t token);                                  /* errand.c: the door's */
int api_send_until(noh_box *box, const char *address, const struct outgoing *out, uint64_t until_ns);

#endif
