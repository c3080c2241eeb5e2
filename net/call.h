/* net/call.h - one command, from its arguments to its reply.
 *
 * A command's function looks at the arguments and does one of these, exactly once:
 *   - writes a reply into call_out(c)                     PING, CLIENT, an error in the arguments
 *   - call_actors(c, ...): one message to each of n actors, each on its own; when the last has answered,
 *     `format` writes the reply                           GET, INCR (n = 1), MGET, DEL (n > 1)
 *   - call_step(c, ...): the same, all or nothing: one turn over all of them (MSET, INV.RESERVEALL)
 * It never blocks, and never waits: replies leave in the order of the commands by themselves.
 *
 * Owns     nothing: arguments are the connection's and valid until the function returns; so are ids, bodies
 *          and keys of requests, which are copied where they must outlive that.
 * Threads  the worker of the connection.
 */
#ifndef NOH_NET_CALL_H
#define NOH_NET_CALL_H

#include "net/out.h"
#include "net/resp_read.h"
#include "noh.h"

struct command;
struct conn;
struct net;

struct call {
	struct net           *net;
	struct conn          *conn;
	const struct command *command;
	const struct arg     *argv;        /* argv[0] is the command's name */
	uint32_t              argc;
	uint64_t              now_ms;      /* of this pass: the box's wall-clock time */
	bool                  later;       /* it has to wait for those before it: command_run */
};

/* What is asked of one actor. */
enum request_op {
	REQUEST_CALL,              /* a message, and its answer                                        */
	REQUEST_SEND,              /* a message; answered (empty) once it is accepted, or recorded: ack */
	REQUEST_ACTIVATE,
	REQUEST_DEACTIVATE,
	REQUEST_DEACTIVATE_FORCE,
};
enum request_type { TYPE_IN_ADDRESS, TYPE_COUNTER, TYPE_INVENTORY };

/* The W3C trace a request is part of, as it was received; what is none by that standard is ignored. */
struct trace_text { struct arg parent, state; };

struct request {
	enum request_op   op;
	enum request_type type;    /* TYPE_IN_ADDRESS: id is "type:id"                                 */
	const char *id;
	uint32_t    id_len;
	uint32_t    kind;
	const void *body;
	uint32_t    len;
	const void *key;           /* idempotency key; NULL: none                                      */
	uint32_t    key_len;
	uint32_t    timeout_ms;    /* 0: the server's default                                          */
	int         durability;    /* NOH_DISK: the server's default; NOH_MEMORY                       */
	bool        no_wait;       /* REQUEST_SEND with ACK none: answered before it is even accepted  */
	const void *note;          /* what `format` will need: copied, and tag.a points to the copy; NULL: none */
	uint32_t    note_len;
	uint32_t    running;       /* of running.h: over when this is answered; 0: none                */
	const struct trace_text *trace;   /* NULL: none                                                */
};

/* The answer of one of them: status is NOH_OK, NOH_REFUSED (then it is noh_refuse's) or why there is none; body is
 * aligned to 8. Without an answer it is empty, or a sentence about this very case (noh_fail's, or what noh_why
 * told). */
struct reply_part {
	int         status;
	uint32_t    len;
	const void *body;
};

/* Writes the whole reply. tag: whatever the command gave to call_actors; nothing else of the call is left.
 * Any part may have failed: out_status(o, part) writes its error. */
struct tag { uint64_t a, b; };
typedef void format_fn(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag);

struct out *call_out(struct call *c);
void call_actors(struct call *c, const struct request *requests, uint32_t n, format_fn *format, struct tag tag);

/* All of one type and with one key (that of requests[0]) or none. If one of them fails, or answers through
 * noh_fail, nothing happened to any. */
void call_step(struct call *c, const struct request *requests, uint32_t n, format_fn *format, struct tag tag);

/* What only operators ask for, and what may block: run by a thread of its own, one after the other. It returns the status
 * and writes the body of the one part that `format` gets. args (len bytes) are copied; aligned to 8 in run. */
typedef int errand_fn(noh_box *box, const void *args, uint32_t len, struct out *body);
void call_errand(struct call *c, errand_fn *run, const void *args, uint32_t len, uint32_t timeout_ms, format_fn *format,
		 struct tag tag);

/* Events as they come: answered when there is one, or when the wish's time is up. The one part that `format` gets is a
 * struct feed_answer and the events as RESP. */
struct feed_wish;
void call_events(struct call *c, const struct feed_wish *wish, format_fn *format, struct tag tag);

/* "-MAILBOXFULL ..." and the like for status < 0 or NOH_FULL: the stable first words of CONVENTIONS. */
void out_status(struct out *o, int status);

/* The same of a part without an answer, with the sentence in its body, if it has one, instead of ours. */
void out_part_status(struct out *o, const struct reply_part *part);

noh_box *call_box(struct call *c);       /* for what never blocks and tells of no actor: noh_get_stats */

#endif
