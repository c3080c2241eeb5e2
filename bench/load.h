/* bench/load.h - noh bench load: a load generator for RESP servers, any of them.
 *
 *     plan ─► load_run ─┬─ thread ─ io (uring or epoll) ─ connections ─► the server
 *                       └─ thread ...                                      result ─► load_report
 *
 * A connection has one batch of requests under way (--pipeline of them), and starts the next one when the
 * last reply is there (saturate), or when it is due (--rate). With a rate every batch has an intended
 * start, laid down beforehand; latency counts from there, so a server that stalls is charged for all the
 * requests that should have started meanwhile (no coordinated omission).
 *
 * Owns     connections, their buffers, and one ring or epoll per thread.
 * Threads  a connection belongs to one thread. Main starts them, shows progress, and adds up.
 * Never    goes on after a reply it did not expect: a result is verified or it is an error.
 */
#ifndef NOH_BENCH_LOAD_H
#define NOH_BENCH_LOAD_H

#include "bench/hist.h"
#include "bench/load_keys.h"
#include "bench/load_reply.h"
#include "core/atomic.h"

#include <stddef.h>

#define LOAD_PRINTF(a, b) __attribute__((format(printf, a, b)))

enum load_mix { MIX_INCR, MIX_GET, MIX_SET, MIX_PING, MIX_RESERVE, MIX_SALE, MIX_PUBSUB };
enum load_dialect { DIALECT_NOH, DIALECT_REDIS };
enum load_io_kind { LOAD_AUTO, LOAD_URING, LOAD_EPOLL };

enum {
	LOAD_MOST_PIPELINE = 10000, LOAD_MOST_CONNECTIONS = 100000, LOAD_MOST_THREADS = 64,
	LOAD_KEY = 200,             /* bytes of a key */
	LOAD_PAYLOAD = 4096,        /* bytes of a published message */
	LOAD_STAMP = 20,            /* digits of a time in it */
	LOAD_ID = 47                /* bytes of a reservation's id */
};

/* ── what the command line asked for ──────────────────────────────────────────────────────── */
struct load_plan {
	const char *host, *unix_path, *user, *token;      /* unix_path or host and port; token NULL: no AUTH */
	unsigned    port, connections, publishers, pipeline, threads;
	double      seconds, warmup, patience, retry;     /* retry 0: a lost connection is an error          */
	uint64_t    requests, rate;                       /* 0: until the time is over; as fast as it goes   */
	enum keys_kind dist;
	double      dist_parameter, reads;
	uint64_t    keys, seed, units, holds;
	const char *prefix;
	unsigned    key_bytes, payload, ttl;
	enum load_mix     mix;
	enum load_dialect dialect;
	enum load_io_kind io;
	bool        idem, prepare, json;
	int         server_pid;                           /* 0: unknown */
	char        command[400];
};

/* ── what came out ────────────────────────────────────────────────────────────────────────── */
struct load_result {
	uint64_t    ops;                                  /* answered (pubsub: delivered) while measuring    */
	double      rate, seconds;
	uint64_t    requests, replies, errors;            /* of the whole run, warm-up included              */
	uint64_t    late;                                 /* due, but not even sent when patience ended      */
	uint64_t    reserved, committed, sold_out, delivered, reconnects;
	struct hist latency, lag;                         /* lag: the generator's own, see load_run.c        */
	double      server_cpu, client_cpu;               /* seconds; server < 0: unknown                    */
	uint64_t    server_rss_anon;                      /* bytes at the end; 0: unknown                    */
	bool        uring;
	char        first_error[REPLY_LEAF + 1];
	char        failure[320];                         /* "": all is verified                             */
};

/* ── inside ───────────────────────────────────────────────────────────────────────────────── */
enum request_kind { KIND_INCR, KIND_GET, KIND_SET, KIND_PING, KIND_RESERVE, KIND_COMMIT, KIND_PUBLISH };

struct load_template {                  /* a request, with places for a key and an order number */
	char     text[LOAD_PAYLOAD + 512];
	uint32_t len, key_end, order_end;   /* where the digits end; 0: none */
};

struct load_slot {                      /* one request of a batch */
	uint32_t end;                       /* in out */
	uint8_t  kind;
	uint64_t key;
};

struct load_hold {                      /* reserved, not committed yet */
	uint64_t key;
	uint8_t  len;
	char     id[LOAD_ID];
};

struct load_conn {
	int      fd;
	uint32_t index, generation;         /* of the thread's connections; of the socket */
	bool     listener, down;            /* a subscriber; waiting to be connected again */
	uint32_t count, awaiting;           /* requests of the batch under way, and replies still to come */
	uint32_t out_len, out_sent, held, part_len;
	uint32_t made;                      /* requests that out holds already, but for their digits */
	uint64_t start;                     /* of the batch: intended, or when it was handed over */
	uint64_t owed, due;                 /* rate: batches due but not started, number of the first of them */
	uint64_t again;                     /* down: when to try next, and since when */
	uint64_t since;
	char             *out;
	struct load_slot *slots;
	struct load_hold *holds;
	uint8_t          *part;             /* subscriber: of a message that is half here */
	struct reply      reply;
};

struct load {                           /* shared by all threads, read only while they run */
	const struct load_plan *plan;
	struct keys  keys;
	char         run[16];               /* names this run's orders and channel: digits */
	char         sku[LOAD_KEY];         /* of the flash sale */
	char         sha_reserve[48], sha_commit[48];
	char         head[128];             /* of a published message as a subscriber gets it */
	uint32_t     head_len, message_len;
	uint64_t     base;                  /* when the first request is due */
	struct load_template ask[KIND_PUBLISH + 1];
};

struct load_io;
struct load_thread {
	struct load      *load;
	struct load_io   *io;
	struct load_conn *conns;
	unsigned number, conn_count, senders, listeners, down;
	uint32_t busy;                      /* connections with a batch under way */
	uint64_t now, begin, end;           /* of this pass; of measuring */
	uint64_t measured_from, measured_to, last_reply;
	bool     measuring, measured, stopping;
	uint64_t random, seq, order, budget;        /* budget: requests that may still be made (sale: orders) */
	double   interval;                          /* rate: ns between two batches of this thread */
	uint64_t next;                              /* rate: number of the next batch to become due */
	uint64_t stamp;                             /* pubsub: the last time seen in a message ... */
	char     stamp_text[LOAD_STAMP];            /* ... and as text */
	uint64_t *winners;                          /* sale: hashes of reservations */
	uint64_t winners_room;
	struct load_result out;
	atomic_u64 shown_ops, shown_errors;
};

/* load_main.c */
int load_main(int argc, char **argv);
int load_parse(int argc, char **argv, struct load_plan *plan);   /* CLI_FINE, CLI_USAGE; -1: --help */

/* load_run.c: the whole run; out->failure says what is wrong. False: it could not even begin. */
bool load_run(const struct load_plan *plan, struct load_result *out);

/* load_thread.c: one thread's loop; and what its io tells it. */
void load_thread_run(struct load_thread *t);
void load_woke(struct load_thread *t);                           /* a wait is over: what time is it? */
void load_received(struct load_thread *t, struct load_conn *c, const uint8_t *bytes, size_t n);
void load_lost(struct load_thread *t, struct load_conn *c, int error);      /* error 0: it was closed */
void load_fail(struct load_thread *t, const char *format, ...) LOAD_PRINTF(2, 3);

/* load_requests.c: a batch in c->out and c->slots; how many requests there are, 0: no more. Not fresh: only
 * what must follow from earlier ones. */
void     load_templates(struct load *l);
uint32_t load_fill(struct load_thread *t, struct load_conn *c, bool fresh);
char    *load_put(struct load *l, char *at, const struct load_template *x, uint64_t key, uint64_t order);
void     load_digits(char *end, uint64_t number, unsigned digits);
size_t   load_command(char *out, size_t room, unsigned argc, const char *const *argv);
size_t   load_most_bytes(const struct load *l);                  /* of one request */

/* load_inventory.c */
bool     inventory_prepare(struct load *l, char *why, size_t room);
uint32_t inventory_fill(struct load_thread *t, struct load_conn *c, bool fresh);
void     inventory_reply(struct load_thread *t, struct load_conn *c, const struct load_slot *slot);
void     inventory_verify(struct load *l, struct load_thread *threads, struct load_result *out);

/* load_pubsub.c */
void pubsub_message(struct load *l);
void pubsub_received(struct load_thread *t, struct load_conn *c, const uint8_t *bytes, size_t n);

/* load_dial.c: blocking conversations, before and after the run. */
int  load_dial(const struct load_plan *plan, char *why, size_t room);             /* -1: why says why */
bool load_say(int fd, const char *bytes, size_t n);
bool load_hear(int fd, uint64_t replies, struct reply *last, char *raw, size_t room);
bool load_ask(int fd, struct reply *r, char *raw, size_t room, unsigned argc, const char *const *argv);

/* load_report.c */
void load_report(const struct load_plan *plan, const struct load_result *r);
void load_report_json(const struct load_plan *plan, const struct load_result *r);
void load_progress(const struct load_plan *plan, uint64_t ops, double rate, uint64_t errors, double elapsed);
const char *load_mix_name(enum load_mix mix);

#endif
