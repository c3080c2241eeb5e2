/* net/command.h - the commands: one table, from which they are found, checked, run, documented and listed.
 *
 * Owns     nothing: the table is constant. docs/commands.md and COMMAND DOCS are made of it.
 * Threads  any; command_run: the worker of the connection.
 */
#ifndef NOH_NET_COMMAND_H
#define NOH_NET_COMMAND_H

#include "net/call.h"

typedef void command_fn(struct call *c);

enum command_flag {
	COMMAND_WRITE    = 1,      /* may change something                                     */
	COMMAND_READONLY = 2,
	COMMAND_FAST     = 4,
	COMMAND_NO_AUTH  = 8,      /* before a log-in as well                                  */
	COMMAND_ADMIN    = 16,
	COMMAND_PUBSUB   = 32,
	COMMAND_REFUSED  = 64,     /* known, and refused in one sentence: not listed           */
	COMMAND_DENYOOM  = 128,    /* may need memory                                          */
	COMMAND_IDEM     = 256,    /* takes IDEM key                                           */
	COMMAND_LISTENER = 512,    /* also of a RESP2 client that has subscribed to something  */
	COMMAND_ALONE    = 1024    /* looks at, or tells, what others did: not before the commands before it are
				      answered                                                 */
};

enum command_group { GROUP_CONNECTION, GROUP_SERVER, GROUP_COUNTER, GROUP_KEYS, GROUP_INVENTORY, GROUP_ACTOR,
		     GROUP_PUBSUB, GROUP_TRANSACTION, GROUPS };

struct command {
	const char *name;          /* "incr"; a subcommand: "client|list"                      */
	command_fn *run;           /* NULL: only with a subcommand                             */
	int16_t     arity;         /* with the name; -n: n or more                             */
	uint16_t    flags;
	uint8_t     role;          /* NOH_USER ...                                             */
	uint8_t     group;
	uint8_t     subs;          /* the next so many rows are its subcommands                */
	int8_t      first_key, last_key, key_step;   /* of the arguments; last -1: to the end; 0: none */
	const char *syntax;        /* what follows the name                                    */
	const char *reply;
	const char *complexity;
	const char *since;
	const char *summary;
};

/* Rows of the table, subcommands included, are numbered from 0. */
uint32_t command_total(void);
const struct command *command_row(uint32_t index);
uint32_t command_index(const struct command *command);
const char *command_group_name(int group);

/* By name, whatever its case; _full: "client|list" as well. NULL: there is none. */
const struct command *command_find(const char *name, uint32_t len);
const struct command *command_find_full(const char *name, uint32_t len);
const struct command *command_find_sub(const struct command *of, const char *name, uint32_t len);

/* Find it, check its arguments' number and the client's role, run it. */
void command_run(struct call *c);

/* ── for the commands' functions ──────────────────────────────────────────────────────────────── */
bool arg_is(const struct arg *a, const char *word);             /* word in lower case; any case matches */
bool arg_int(const struct arg *a, int64_t *n);                  /* strictly: as %lld would print it     */
bool arg_uint(const struct arg *a, uint64_t *n);
int  arg_show(const struct arg *a, char *text, size_t size);    /* printable, cut to size - 1           */

/* Patterns take time; one that is too long is refused, and the error written. */
enum { PATTERN_MAX = 1024 };
bool call_pattern(struct call *c, const struct arg *pattern);

void out_syntax_error(struct out *o);
void out_arity_error(struct out *o, const struct command *command);
void out_not_int(struct out *o);
void out_cursor(struct out *o, uint64_t cursor);
void out_help(struct out *o, const struct command *of);         /* of a subcommand HELP: the others     */
bool client_name_ok(struct call *c, const struct arg *name);    /* false: the error is written          */

/* The IDEM option at argv[at]: 1 to 255 bytes; false: it was none, and the error is written. */
bool call_idem(struct call *c, uint32_t at, struct arg *key);

/* One message to one actor, its answer written by format. key may be NULL. */
void call_one(struct call *c, enum request_type type, const struct arg *id, uint32_t kind, const void *body,
	      uint32_t len, const struct arg *key, format_fn *format, struct tag tag);

/* Room for n requests: inside if they are few, allocated if not. NULL: no memory, the error is written. */
#define REQUESTS_INSIDE 8
struct request *requests_open(struct call *c, uint32_t n, struct request *inside);
void requests_close(struct request *requests, uint32_t n, struct request *inside);

/* The first of the parts that has no answer (a refusal is one) of `len` bytes or more, as an error; true if there
 * was one. */
bool out_failed(struct out *o, const struct reply_part *parts, uint32_t n, uint32_t len);

/* By file: command_conn.c, _client.c, _command.c, _info.c, _config.c, _counter.c, _keys.c, _scan.c, _inventory.c,
 * _actor.c, _events.c, _pubsub.c. */
command_fn cmd_ping, cmd_echo, cmd_quit, cmd_reset, cmd_select, cmd_hello, cmd_auth, cmd_time, cmd_shutdown, cmd_drain,
	cmd_no_transactions;
command_fn cmd_client_id, cmd_client_getname, cmd_client_setname, cmd_client_setinfo, cmd_client_info,
	cmd_client_list, cmd_client_reply, cmd_client_no_evict, cmd_client_no_touch, cmd_client_kill,
	cmd_client_unpause, cmd_client_help;
command_fn cmd_command, cmd_command_count, cmd_command_docs, cmd_command_info, cmd_command_list,
	cmd_command_getkeys, cmd_command_help;
command_fn cmd_info, cmd_config_get, cmd_config_set, cmd_config_reload, cmd_config_resetstat, cmd_config_help;
command_fn cmd_get, cmd_set, cmd_setnx, cmd_setex, cmd_psetex, cmd_getset, cmd_getdel, cmd_incr, cmd_decr,
	cmd_incrby, cmd_decrby, cmd_increx, cmd_mget, cmd_mset;
command_fn cmd_del, cmd_exists, cmd_expire, cmd_pexpire, cmd_expireat, cmd_pexpireat, cmd_ttl, cmd_pttl,
	cmd_expiretime, cmd_pexpiretime, cmd_persist, cmd_type;
command_fn cmd_scan, cmd_keys, cmd_dbsize;
command_fn cmd_inv_restock, cmd_inv_set, cmd_inv_reserve, cmd_inv_commit, cmd_inv_release, cmd_inv_get,
	cmd_inv_holds, cmd_inv_reserveall;
command_fn cmd_actor_send, cmd_actor_invoke, cmd_actor_activate, cmd_actor_deactivate, cmd_actor_status,
	cmd_actor_list, cmd_actor_pool;
command_fn cmd_events_read, cmd_actor_describe, cmd_actor_tree, cmd_actor_resume, cmd_quarantine_list;
command_fn cmd_subscribe, cmd_psubscribe, cmd_unsubscribe, cmd_punsubscribe, cmd_publish, cmd_pubsub_channels,
	cmd_pubsub_numsub, cmd_pubsub_numpat, cmd_pubsub_help;

#endif
