/* net/command_table.c - every command there is.
 *
 * One row each: how it is called, who may, what it answers. From this COMMAND, COMMAND DOCS, docs/commands.md
 * and the errors about arguments are made. After a change: tools/commands.sh.
 *
 * arity counts the name, and is negative where more may follow. Keys: first, last (-1: to the end), step.
 */
#include "net/command.h"

#define W  COMMAND_WRITE
#define R  COMMAND_READONLY
#define F  COMMAND_FAST
#define NA COMMAND_NO_AUTH
#define AD COMMAND_ADMIN
#define M  COMMAND_DENYOOM
#define ID COMMAND_IDEM
#define PS COMMAND_PUBSUB
#define AL COMMAND_ALONE
#define L  COMMAND_LISTENER
#define KEY_NONE 0, 0, 0
#define KEY_ONE  1, 1, 1
#define KEYS_ALL 1, -1, 1
#define PAIRS    1, -1, 2
#define ROW(name, run, arity, role, flags, group, keys, syntax, reply, complexity, summary)                        \
	{ name, run, arity, flags, role, GROUP_##group, 0, keys, syntax, reply, complexity, "0.1.0", summary }
#define PARENT(name, run, arity, subs, group, syntax, reply, summary)                                              \
	{ name, run, arity, 0, NOH_USER, GROUP_##group, subs, KEY_NONE, syntax, reply, "O(1)", "0.1.0", summary }

static const struct command table[] = {
	/* ── connection ── */
	ROW("auth", cmd_auth, -2, NOH_USER, F | NA, CONNECTION, KEY_NONE, "[username] password", "OK", "O(1)",
	    "Log in. Without a username: the user default."),
	PARENT("client", NULL, -2, 12, CONNECTION, "subcommand", "", "Connections: this one and the others."),
	ROW("client|getname", cmd_client_getname, 2, NOH_USER, F, CONNECTION, KEY_NONE, "",
	    "bulk string, or nil", "O(1)", "The name of this connection."),
	ROW("client|help", cmd_client_help, 2, NOH_USER, F, CONNECTION, KEY_NONE, "", "array of lines", "O(1)",
	    "The subcommands of CLIENT."),
	ROW("client|id", cmd_client_id, 2, NOH_USER, F, CONNECTION, KEY_NONE, "", "integer", "O(1)",
	    "The number of this connection; never given twice while the server runs."),
	ROW("client|info", cmd_client_info, 2, NOH_USER, 0, CONNECTION, KEY_NONE, "", "one line of CLIENT LIST",
	    "O(1)", "This connection."),
	ROW("client|kill", cmd_client_kill, -3, NOH_ADMIN, AD, CONNECTION, KEY_NONE,
	    "addr:port | [ID id] [ADDR addr:port] [LADDR addr:port] [USER name] [TYPE normal|pubsub] [MAXAGE seconds] "
	    "[SKIPME yes|no]", "OK for the first form, else the number of connections ended", "O(connections)",
	    "End connections."),
	ROW("client|list", cmd_client_list, -2, NOH_ADMIN, AD, CONNECTION, KEY_NONE,
	    "[TYPE normal|pubsub] [ID id ...]", "text, one line for each connection", "O(connections)",
	    "Who is connected."),
	ROW("client|no-evict", cmd_client_no_evict, 3, NOH_USER, F, CONNECTION, KEY_NONE, "ON | OFF", "OK", "O(1)",
	    "Accepted for clients that send it: no connection is ever evicted."),
	ROW("client|no-touch", cmd_client_no_touch, 3, NOH_USER, F, CONNECTION, KEY_NONE, "ON | OFF", "OK", "O(1)",
	    "Accepted for clients that send it."),
	ROW("client|reply", cmd_client_reply, 3, NOH_USER, F, CONNECTION, KEY_NONE, "ON | OFF | SKIP",
	    "OK for ON, else none", "O(1)", "Whether the commands of this connection are answered; SKIP: the next is not."),
	ROW("client|setinfo", cmd_client_setinfo, 4, NOH_USER, F, CONNECTION, KEY_NONE,
	    "LIB-NAME name | LIB-VER version", "OK", "O(1)", "Which library this client uses; shown by CLIENT LIST."),
	ROW("client|setname", cmd_client_setname, 3, NOH_USER, F, CONNECTION, KEY_NONE, "name", "OK", "O(1)",
	    "Name this connection: at most 63 printable characters without spaces."),
	ROW("client|unpause", cmd_client_unpause, 2, NOH_ADMIN, AD, CONNECTION, KEY_NONE, "", "OK", "O(1)",
	    "Accepted for clients that send it: connections are never paused."),
	ROW("echo", cmd_echo, 2, NOH_USER, F, CONNECTION, KEY_NONE, "message", "bulk string", "O(1)",
	    "Says what it was told."),
	ROW("hello", cmd_hello, -1, NOH_USER, F | NA, CONNECTION, KEY_NONE,
	    "[protover [AUTH username password] [SETNAME name]]", "map: server, version, proto, id, mode, role, modules",
	    "O(1)", "Choose RESP2 or RESP3, and log in with it."),
	ROW("ping", cmd_ping, -1, NOH_USER, F | L, CONNECTION, KEY_NONE, "[message]", "PONG, or the message", "O(1)",
	    "Is anybody there?"),
	ROW("quit", cmd_quit, -1, NOH_USER, F | NA | L, CONNECTION, KEY_NONE, "", "OK", "O(1)",
	    "Answer, then close the connection."),
	ROW("reset", cmd_reset, 1, NOH_USER, F | NA | L, CONNECTION, KEY_NONE, "", "RESET", "O(1)",
	    "As if this connection had just been made: RESP2, no name, no subscriptions, not logged in."),
	ROW("select", cmd_select, 2, NOH_USER, F, CONNECTION, KEY_NONE, "index", "OK", "O(1)",
	    "There is one database, 0."),

	/* ── server ── */
	PARENT("command", cmd_command, -1, 6, SERVER, "", "array of what COMMAND INFO tells", "Every command there is."),
	ROW("command|count", cmd_command_count, 2, NOH_USER, 0, SERVER, KEY_NONE, "", "integer", "O(1)",
	    "How many commands there are."),
	ROW("command|docs", cmd_command_docs, -2, NOH_USER, 0, SERVER, KEY_NONE, "[command ...]",
	    "map of maps: summary, since, group, complexity, syntax, reply", "O(commands)",
	    "What is written about commands here."),
	ROW("command|getkeys", cmd_command_getkeys, -3, NOH_USER, 0, SERVER, KEY_NONE, "command [arg ...]",
	    "array of keys", "O(arguments)", "Which arguments of a command are keys."),
	ROW("command|help", cmd_command_help, 2, NOH_USER, 0, SERVER, KEY_NONE, "", "array of lines", "O(1)",
	    "The subcommands of COMMAND."),
	ROW("command|info", cmd_command_info, -2, NOH_USER, 0, SERVER, KEY_NONE, "[command ...]",
	    "array: name, arity, flags, first key, last key, step, categories, tips, key specifications, subcommands",
	    "O(commands)", "Facts about commands."),
	ROW("command|list", cmd_command_list, -2, NOH_USER, 0, SERVER, KEY_NONE,
	    "[FILTERBY MODULE name | ACLCAT category | PATTERN pattern]", "array of names", "O(commands)",
	    "The names of commands."),
	PARENT("config", NULL, -2, 5, SERVER, "subcommand", "", "Settings."),
	ROW("config|get", cmd_config_get, -3, NOH_DEVELOPER, AD, SERVER, KEY_NONE, "pattern [pattern ...]",
	    "map of names and values", "O(settings)", "Settings whose names match."),
	ROW("config|help", cmd_config_help, 2, NOH_USER, 0, SERVER, KEY_NONE, "", "array of lines", "O(1)",
	    "The subcommands of CONFIG."),
	ROW("config|reload", cmd_config_reload, 2, NOH_ADMIN, AD, SERVER, KEY_NONE, "",
	    "array of arrays: changed or restart, name, old, new, where; warning, sentence", "O(settings)",
	    "Read the settings and the users again. All of it happens or, with an error, nothing; what is marked restart waits "
	    "for one."),
	ROW("config|resetstat", cmd_config_resetstat, 2, NOH_ADMIN, AD, SERVER, KEY_NONE, "", "OK", "O(commands)",
	    "Begin to count anew."),
	ROW("config|set", cmd_config_set, -4, NOH_ADMIN, AD, SERVER, KEY_NONE, "name value [name value ...]", "OK",
	    "O(1)", "Change a setting, until the server ends. Few can be changed while it runs."),
	ROW("drain", cmd_drain, -1, NOH_ADMIN, AD, SERVER, KEY_NONE, "[DEADLINE milliseconds] [NOWAIT] | STATUS",
	    "OK when nothing is left, or at once with NOWAIT; STATUS: map of draining, actors, messages, left_ms", "O(actors)",
	    "Refuse new work, finish what waits, put every actor to storage, and end; 30 000 ms at most, unless DEADLINE says "
	    "otherwise. Error if not all of it was done in time: DRAINTIMEOUT, with what is left. STATUS: how far it is."),
	ROW("info", cmd_info, -1, NOH_USER, AL, SERVER, KEY_NONE, "[section ...]", "text", "O(1)",
	    "The server in numbers: server, clients, memory, persistence, stats, replication, cpu, commandstats, "
	    "keyspace, noh, types."),
	ROW("shutdown", cmd_shutdown, -1, NOH_ADMIN, AD, SERVER, KEY_NONE, "[NOSAVE | SAVE] [NOW] [FORCE]",
	    "none: the connection ends", "O(actors)",
	    "Finish what waits and end. What was answered is on disk in any case, so the options change nothing."),
	ROW("time", cmd_time, 1, NOH_USER, F, SERVER, KEY_NONE, "", "array: seconds, microseconds", "O(1)",
	    "The server's wall clock; the microseconds are whole milliseconds."),

	/* ── counters ── */
	ROW("decr", cmd_decr, -2, NOH_USER, W | M | F | ID, COUNTER, KEY_ONE, "key [IDEM idem]", "integer: the new value",
	    "O(1)", "Subtract 1. A key that is not there counts as 0."),
	ROW("decrby", cmd_decrby, -3, NOH_USER, W | M | F | ID, COUNTER, KEY_ONE, "key decrement [IDEM idem]",
	    "integer: the new value", "O(1)", "Subtract."),
	ROW("get", cmd_get, 2, NOH_USER, R | F, COUNTER, KEY_ONE, "key", "bulk string, or nil", "O(1)",
	    "The value of a key."),
	ROW("getdel", cmd_getdel, -2, NOH_USER, W | F | ID, COUNTER, KEY_ONE, "key [IDEM idem]", "bulk string, or nil",
	    "O(1)", "The value of a key, which is deleted."),
	ROW("getset", cmd_getset, -3, NOH_USER, W | M | F | ID, COUNTER, KEY_ONE, "key value [IDEM idem]",
	    "bulk string, or nil: the old value", "O(1)", "Set, and tell what was there."),
	ROW("incr", cmd_incr, -2, NOH_USER, W | M | F | ID, COUNTER, KEY_ONE, "key [IDEM idem]", "integer: the new value",
	    "O(1)", "Add 1. A key that is not there counts as 0."),
	ROW("incrby", cmd_incrby, -3, NOH_USER, W | M | F | ID, COUNTER, KEY_ONE, "key increment [IDEM idem]",
	    "integer: the new value", "O(1)", "Add."),
	ROW("increx", cmd_increx, -2, NOH_USER, W | M | F | ID, COUNTER, KEY_ONE,
	    "key [BYINT increment] [LBOUND low] [UBOUND high] [SATURATE] [EX seconds | PX milliseconds | EXAT seconds | "
	    "PXAT milliseconds | PERSIST] [ENX] [IDEM idem]",
	    "array: the value, and what was added (0: the sum would be out of bounds, nothing was changed)", "O(1)",
	    "Add within bounds, and set the time to live: rate limits, quotas. SATURATE: up to the bound. ENX: set the "
	    "time only if there is none."),
	ROW("mget", cmd_mget, -2, NOH_USER, R | F, COUNTER, KEYS_ALL, "key [key ...]", "array of bulk strings and nils",
	    "O(keys)", "The values of several keys, each read by itself."),
	ROW("mset", cmd_mset, -3, NOH_USER, W | M | ID | AL, COUNTER, PAIRS, "key value [key value ...] [IDEM idem]", "OK",
	    "O(keys)", "Set several keys, all of them at one instant; at most 1024."),
	ROW("psetex", cmd_psetex, -4, NOH_USER, W | M | ID, COUNTER, KEY_ONE, "key milliseconds value [IDEM idem]", "OK",
	    "O(1)", "Set, with a time to live."),
	ROW("set", cmd_set, -3, NOH_USER, W | M | ID, COUNTER, KEY_ONE,
	    "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | KEEPTTL] "
	    "[IDEM idem]", "OK, nil if NX or XX did not hold; with GET: the old value, or nil", "O(1)",
	    "Set a key to a 64-bit number; anything else is an error."),
	ROW("setex", cmd_setex, -4, NOH_USER, W | M | ID, COUNTER, KEY_ONE, "key seconds value [IDEM idem]", "OK", "O(1)",
	    "Set, with a time to live."),
	ROW("setnx", cmd_setnx, -3, NOH_USER, W | M | F | ID, COUNTER, KEY_ONE, "key value [IDEM idem]",
	    "integer: 1 if it was set", "O(1)", "Set, unless the key is there."),

	/* ── keys ── */
	ROW("dbsize", cmd_dbsize, 1, NOH_USER, R | F | AL, KEYS, KEY_NONE, "", "integer", "O(1)",
	    "How many keys there are; those past their time count until they are gone."),
	ROW("del", cmd_del, -2, NOH_USER, W | ID, KEYS, KEYS_ALL, "key [key ...] [IDEM idem]",
	    "integer: how many were there", "O(keys)", "Delete keys, each by itself."),
	ROW("exists", cmd_exists, -2, NOH_USER, R | F, KEYS, KEYS_ALL, "key [key ...]",
	    "integer; a key named twice counts twice", "O(keys)", "How many of these keys are there."),
	ROW("expire", cmd_expire, -3, NOH_USER, W | F | ID, KEYS, KEY_ONE, "key seconds [NX | XX | GT | LT] [IDEM idem]",
	    "integer: 1 if it was set", "O(1)", "Set a key's time to live."),
	ROW("expireat", cmd_expireat, -3, NOH_USER, W | F | ID, KEYS, KEY_ONE,
	    "key unix-seconds [NX | XX | GT | LT] [IDEM idem]", "integer: 1 if it was set", "O(1)",
	    "Set the instant at which a key goes away."),
	ROW("expiretime", cmd_expiretime, 2, NOH_USER, R | F, KEYS, KEY_ONE, "key",
	    "integer; -1: it stays; -2: there is no such key", "O(1)", "The instant at which a key goes away, in seconds."),
	ROW("keys", cmd_keys, 2, NOH_DEVELOPER, R | AL, KEYS, KEY_NONE, "pattern", "array of keys", "O(keys)",
	    "Keys that match. Refused if there are more than 100 000: it would hold up everybody else. Use SCAN."),
	ROW("persist", cmd_persist, -2, NOH_USER, W | F | ID, KEYS, KEY_ONE, "key [IDEM idem]",
	    "integer: 1 if there was a time to take away", "O(1)", "Let a key stay for ever."),
	ROW("pexpire", cmd_pexpire, -3, NOH_USER, W | F | ID, KEYS, KEY_ONE,
	    "key milliseconds [NX | XX | GT | LT] [IDEM idem]", "integer: 1 if it was set", "O(1)",
	    "Set a key's time to live, in milliseconds."),
	ROW("pexpireat", cmd_pexpireat, -3, NOH_USER, W | F | ID, KEYS, KEY_ONE,
	    "key unix-milliseconds [NX | XX | GT | LT] [IDEM idem]", "integer: 1 if it was set", "O(1)",
	    "Set the instant at which a key goes away, in milliseconds."),
	ROW("pexpiretime", cmd_pexpiretime, 2, NOH_USER, R | F, KEYS, KEY_ONE, "key",
	    "integer; -1: it stays; -2: there is no such key", "O(1)",
	    "The instant at which a key goes away, in milliseconds."),
	ROW("pttl", cmd_pttl, 2, NOH_USER, R | F, KEYS, KEY_ONE, "key", "integer; -1: it stays; -2: there is no such key",
	    "O(1)", "How long a key stays, in milliseconds."),
	ROW("scan", cmd_scan, -2, NOH_USER, R | AL, KEYS, KEY_NONE, "cursor [MATCH pattern] [COUNT n] [TYPE type]",
	    "array: the next cursor (0: the end), array of keys", "O(COUNT)",
	    "Keys, some at a time; COUNT at most 10 000. A key that is there all the while is told at least once."),
	ROW("touch", cmd_exists, -2, NOH_USER, R | F, KEYS, KEYS_ALL, "key [key ...]", "integer", "O(keys)",
	    "How many of these keys are there."),
	ROW("ttl", cmd_ttl, 2, NOH_USER, R | F, KEYS, KEY_ONE, "key", "integer; -1: it stays; -2: there is no such key",
	    "O(1)", "How long a key stays, in seconds."),
	ROW("type", cmd_type, 2, NOH_USER, R | F, KEYS, KEY_ONE, "key", "string, or none", "O(1)",
	    "Is it there? To clients a counter is a string."),
	ROW("unlink", cmd_del, -2, NOH_USER, W | F | ID, KEYS, KEYS_ALL, "key [key ...] [IDEM idem]",
	    "integer: how many were there", "O(keys)", "The same as DEL."),

	/* ── inventory ── */
	ROW("inv.commit", cmd_inv_commit, -3, NOH_USER, W | F | ID, INVENTORY, KEY_ONE, "sku reservation [IDEM idem]",
	    "integer: how many were sold", "O(log holds)",
	    "Sell what a reservation holds. Repeated: the same answer. Errors: NOSKU, NOHOLD, RELEASED, EXPIRED, FORGOTTEN."),
	ROW("inv.get", cmd_inv_get, 2, NOH_USER, R | F, INVENTORY, KEY_ONE, "sku",
	    "map: on_hand, reserved, available, sold, holds, restocked, adjusted", "O(1)",
	    "The stock of an article. Error: NOSKU."),
	ROW("inv.holds", cmd_inv_holds, -2, NOH_USER, R, INVENTORY, KEY_ONE, "sku [CURSOR cursor] [LIMIT n]",
	    "array: the next cursor (0: the end), array of [reservation, n, expires in milliseconds since 1970 or -1]",
	    "O(LIMIT)", "Open reservations, in the order of their numbers; LIMIT 1 to 1000, 100 if none is given. "
	    "Error: NOSKU."),
	ROW("inv.release", cmd_inv_release, -3, NOH_USER, W | F | ID, INVENTORY, KEY_ONE, "sku reservation [IDEM idem]",
	    "integer: how many are available again", "O(log holds)",
	    "Give up a reservation. Repeated: the same answer. Errors: NOSKU, NOHOLD, COMMITTED, EXPIRED, FORGOTTEN."),
	ROW("inv.reserve", cmd_inv_reserve, -3, NOH_USER, W | M | F | ID, INVENTORY, KEY_ONE,
	    "sku n [TTL seconds] [IDEM idem]", "array: reservation, available", "O(log holds)",
	    "Hold n of an article, for a while (at most a year) or until committed or released; never more than there is. Errors: NOSKU, "
	    "OUTOFSTOCK, BADAMOUNT."),
	ROW("inv.reserveall", cmd_inv_reserveall, -3, NOH_USER, W | M | ID | AL, INVENTORY, KEY_NONE,
	    "[TTL seconds] [IDEM idem] sku n [sku n ...]", "array of [reservation, available]", "O(articles)",
	    "Hold several articles (at most 1024), all or none, at one instant. Errors as INV.RESERVE's, naming the article."),
	ROW("inv.restock", cmd_inv_restock, -3, NOH_USER, W | M | F | ID, INVENTORY, KEY_ONE, "sku n [IDEM idem]",
	    "integer: available now", "O(1)", "More of an article came in; the first time makes it known. Errors: BADAMOUNT, "
	    "OVERFLOW."),
	ROW("inv.set", cmd_inv_set, -3, NOH_USER, W | M | F | ID, INVENTORY, KEY_ONE, "sku n [IDEM idem]",
	    "integer: available now", "O(1)", "Stock-take: n are on hand, reserved ones included. Errors: BELOWRESERVED, "
	    "BADAMOUNT, OVERFLOW."),

	/* ── actors ── */
	ROW("actor.activate", cmd_actor_activate, 2, NOH_DEVELOPER, F, ACTOR, KEY_NONE, "type:id", "OK", "O(1)",
	    "Load an actor into memory, and answer when it is there."),
	ROW("actor.deactivate", cmd_actor_deactivate, -2, NOH_DEVELOPER, 0, ACTOR, KEY_NONE, "type:id [FORCE]", "OK",
	    "O(1)", "Let an actor finish what waits and go back to storage. FORCE: what waits is dropped. Error: NOACTOR."),
	ROW("actor.describe", cmd_actor_describe, -2, NOH_DEVELOPER, R | AL, ACTOR, KEY_NONE, "type:id [EVENTS n]",
	    "map: actor_address, state, health, reconcile_error, last_failure, parent, is_active, exists, desired_revision, "
	    "observed_revision, restarts, last_failure_ms, retry_ms, mailbox_size, children, cursor, events",
	    "O(events looked at)", "All that is known of an actor, with its last events (10; at most 100). Asking activates nobody."),
	ROW("actor.invoke", cmd_actor_invoke, -4, NOH_USER, W | ID, ACTOR, KEY_NONE,
	    "type:id kind payload [TIMEOUT milliseconds] [IDEM idem] [TRACE traceparent [TRACESTATE tracestate]]",
	    "bulk string: the answer; of a JSON message it is JSON", "the actor's",
	    "Send a message and wait for the answer. kind: the name of a message, or the number of a kind. A name that is one of "
	    "the type's JSON messages (as over HTTP: counter, inventory) takes a JSON object or '', and is answered in JSON; with a "
	    "number, or of a type without such messages, payload and answer are bytes as they are. Error: NOKIND, with the names "
	    "there are. TRACE: as W3C writes it; what is none is ignored."),
	ROW("actor.list", cmd_actor_list, -1, NOH_DEVELOPER, R | AL, ACTOR, KEY_NONE,
	    "[TYPE type] [CURSOR cursor] [LIMIT n] [ALL]",
	    "array: the next cursor (0: the end), array of [address, life]", "O(LIMIT)",
	    "Actors in memory, of one type or of all; LIMIT 1 to 1000, 100 if none is given. ALL: all that exist, stored "
	    "ones too; then a page may have fewer, also none, and go on. A cursor belongs to the form it came from."),
	ROW("actor.pool", cmd_actor_pool, 1, NOH_ADMIN, AD | R, ACTOR, KEY_NONE, "",
	    "map: workers, actors, stored, memory and what was done so far", "O(workers)", "The box in numbers."),
	ROW("actor.resume", cmd_actor_resume, 2, NOH_ADMIN, AD | AL, ACTOR, KEY_NONE, "type:id | type", "OK", "O(actors resumed)",
	    "Let an actor that is quarantined, stopped, degraded or awaiting a revision begin anew, or all of a type. Error: NOACTOR: "
	    "there was nothing to resume."),
	ROW("actor.send", cmd_actor_send, -4, NOH_USER, W | ID, ACTOR, KEY_NONE,
	    "type:id kind payload [IDEM idem] [ACK none|memory|disk] [DELAY ms] [TRACE traceparent [TRACESTATE tracestate]]", "OK",
	    "O(1)",
	    "Send a message; kind and payload as in ACTOR.INVOKE. ACK disk (the default): answered when it is recorded; memory (and for a volatile type): when it is "
	    "in the mailbox; none: at once. DELAY: it arrives so much later, once, also after a crash; until then "
	    "ACTOR.INVOKE later:type:id list {} tells its id, and cancel {\"id\": ...} takes it back."),
	ROW("actor.status", cmd_actor_status, 2, NOH_USER, R | F | AL, ACTOR, KEY_NONE, "type:id",
	    "map: actor_address, is_active, life, exists, stored, mailbox_size, idle_ms, resting, messages_processed, state, restarts, last_failure, "
	    "last_failure_ms, retry_ms", "O(1)", "How an actor is. Asking activates nobody."),

	ROW("actor.tree", cmd_actor_tree, -1, NOH_DEVELOPER, R | AL, ACTOR, KEY_NONE, "[type:id] [LIMIT n]",
	    "array of [depth, address, state, restarts, last failure], depth first", "O(actors in the tree)",
	    "Who supervises whom, and how they are; from this actor on, or all. LIMIT 1 to 10 000, 1000 if none is given."),
	ROW("events.read", cmd_events_read, -1, NOH_DEVELOPER, R | AL, ACTOR, KEY_NONE,
	    "[CURSOR cursor | $] [ACTOR type:id] [TYPE type] [KIND kind] [SINCE milliseconds] [COUNT n] [BLOCK milliseconds]",
	    "array: the next cursor, array of maps: seq, at_ms, actor, kind, from, to, reason, revision, by_box, data", "O(events looked at)",
	    "Events behind a cursor (0, or none: from the oldest; $: behind the newest), in order; COUNT 1 to 1000, 100 if none is "
	    "given; fewer where they are more than 64 KiB. BLOCK: if there is none, wait so long for one; 0: as long as it takes. Error: "
	    "TOOOLD names the oldest."),
	ROW("quarantine.list", cmd_quarantine_list, -1, NOH_DEVELOPER, R | AL, ACTOR, KEY_NONE, "[TYPE type] [LIMIT n]",
	    "array of [0, address, state, restarts, last failure]", "O(actors stored)",
	    "Actors that are degraded, stopped, quarantined or awaiting a revision. LIMIT 1 to 1000, 100 if none is given."),

	/* ── publish and subscribe ── */
	ROW("psubscribe", cmd_psubscribe, -2, NOH_USER, PS | L, PUBSUB, KEY_NONE, "pattern [pattern ...]",
	    "a push for each: psubscribe, the pattern, how many subscriptions there are", "O(patterns)",
	    "Listen to all channels whose names match: * ? [a-z] [^a-z] and \\x as elsewhere."),
	ROW("publish", cmd_publish, 3, NOH_USER, PS | F | AL, PUBSUB, KEY_NONE, "channel message",
	    "integer: how many clients and actors got it", "O(listeners + patterns)",
	    "Say something to all that listen to a channel now. On actor.personal.TYPE.ID it is sent to that actor, which is "
	    "woken, and answered when its turn is recorded."),
	PARENT("pubsub", NULL, -2, 4, PUBSUB, "subcommand", "", "Who listens to what."),
	ROW("pubsub|channels", cmd_pubsub_channels, -2, NOH_USER, PS, PUBSUB, KEY_NONE, "[pattern]", "array of channels",
	    "O(channels)", "Channels that clients or actors listen to."),
	ROW("pubsub|help", cmd_pubsub_help, 2, NOH_USER, 0, PUBSUB, KEY_NONE, "", "array of lines", "O(1)",
	    "The subcommands of PUBSUB."),
	ROW("pubsub|numpat", cmd_pubsub_numpat, 2, NOH_USER, PS, PUBSUB, KEY_NONE, "", "integer", "O(1)",
	    "How many different patterns clients listen to."),
	ROW("pubsub|numsub", cmd_pubsub_numsub, -2, NOH_USER, PS, PUBSUB, KEY_NONE, "[channel ...]",
	    "array: channel, listeners, channel, listeners ...", "O(channels named)",
	    "How many clients and actors listen to channels."),
	ROW("punsubscribe", cmd_punsubscribe, -1, NOH_USER, PS | L, PUBSUB, KEY_NONE, "[pattern ...]",
	    "a push for each: punsubscribe, the pattern, how many subscriptions are left", "O(patterns)",
	    "Listen to them no more; without an argument: to none."),
	ROW("subscribe", cmd_subscribe, -2, NOH_USER, PS | L, PUBSUB, KEY_NONE, "channel [channel ...]",
	    "a push for each: subscribe, the channel, how many subscriptions there are", "O(channels)",
	    "Listen to channels. What is published comes as a push: message, the channel, the message. A RESP2 client that "
	    "listens can only subscribe, unsubscribe, PING, QUIT and RESET."),
	ROW("unsubscribe", cmd_unsubscribe, -1, NOH_USER, PS | L, PUBSUB, KEY_NONE, "[channel ...]",
	    "a push for each: unsubscribe, the channel, how many subscriptions are left", "O(channels)",
	    "Listen to them no more; without an argument: to none."),

	/* ── transactions: not here ── */
	ROW("multi", cmd_no_transactions, -1, NOH_USER, COMMAND_REFUSED, TRANSACTION, KEY_NONE, "", "", "O(1)", "Refused."),
	ROW("exec", cmd_no_transactions, -1, NOH_USER, COMMAND_REFUSED, TRANSACTION, KEY_NONE, "", "", "O(1)", "Refused."),
	ROW("discard", cmd_no_transactions, -1, NOH_USER, COMMAND_REFUSED, TRANSACTION, KEY_NONE, "", "", "O(1)", "Refused."),
	ROW("watch", cmd_no_transactions, -1, NOH_USER, COMMAND_REFUSED, TRANSACTION, KEY_NONE, "", "", "O(1)", "Refused."),
	ROW("unwatch", cmd_no_transactions, -1, NOH_USER, COMMAND_REFUSED, TRANSACTION, KEY_NONE, "", "", "O(1)", "Refused."),
};

uint32_t command_total(void)
{
	return sizeof table / sizeof table[0];
}

const struct command *command_row(uint32_t index)
{
	return &table[index];
}

const char *command_group_name(int group)
{
	static const char *const names[GROUPS] = { "connection", "server", "counter", "keys", "inventory", "actor",
						   "pubsub", "transactions" };

	return names[group];
}
