/* net/session.h - what a connection remembers between its commands, and what commands ask of the connection
 * layer.
 *
 * Owns     struct session: plain fields, embedded in struct conn.
 * Threads  the worker of the connection. Of other connections a command sees copies alone (struct client).
 */
#ifndef NOH_NET_SESSION_H
#define NOH_NET_SESSION_H

#include "core/atomic.h"
#include "net/call.h"

enum { SESSION_NOBODY = -1 };                     /* role of a client that has not logged in yet       */
enum { SESSION_NAME_MAX = 63, SESSION_LIB_MAX = 47, SESSION_VERSION_MAX = 23, CLIENT_ADDR_MAX = 127 };
enum session_reply { REPLY_ON, REPLY_OFF, REPLY_SKIP_NEXT, REPLY_SKIP };

struct session {
	uint64_t    id;                           /* of the connection, in the life of the server: CLIENT ID */
	uint64_t    since_ms;
	atomic_u64 *calls;                        /* of this worker: command_total() counters; NULL: nobody counts */
	const struct command *last;               /* the command run last; NULL: none                  */
	int8_t      role;                         /* SESSION_NOBODY, NOH_USER ...                      */
	int8_t      first_role;                   /* of a client that has not said who it is: RESET    */
	uint8_t     proto;                        /* 2 or 3: of the replies to commands yet to come    */
	uint8_t     reply;                        /* enum session_reply                                */
	uint64_t    account;                      /* of its account's token: is it still the same? 0: not logged in */
	bool        closing;                      /* run no further command; close when this one's reply has left */
	uint32_t    channels, patterns;           /* subscribed to                                     */
	bool        no_evict, no_touch;           /* said, shown, and without effect                   */
	char        user[SESSION_NAME_MAX + 1];   /* "default" if nobody in particular                 */
	char        name[SESSION_NAME_MAX + 1];
	char        lib[SESSION_LIB_MAX + 1];
	char        lib_version[SESSION_VERSION_MAX + 1];
};

/* role: NOH_ADMIN where there are no accounts, SESSION_NOBODY where there are. */
void session_open(struct session *s, uint64_t id, int role, uint64_t now_ms);

/* As if it had just connected: RESET. */
void session_reset(struct session *s);

/* To be called once for every command, right after command_run has returned (whether or not its reply is
 * there yet): true if the reply is to be thrown away (CLIENT REPLY OFF and SKIP). */
bool session_mutes(struct session *s);

/* "Who is there", as CLIENT LIST tells it: a copy. The first part is filled in from the session ... */
struct client {
	uint64_t id;
	uint64_t since_ms;
	int      role;
	uint8_t  proto;
	char     flag;                            /* 'N': normal, 'P': subscriber ...                  */
	char     user[SESSION_NAME_MAX + 1];
	char     name[SESSION_NAME_MAX + 1];
	char     lib[SESSION_LIB_MAX + 1];
	char     lib_version[SESSION_VERSION_MAX + 1];
	const char *command;                      /* the last one's name; a constant; "NULL": none     */
	/* ... and this one by the connection. */
	uint64_t active_ms;                       /* when it said something last                       */
	int      fd;
	uint32_t channels, patterns;              /* subscribed to                                     */
	uint32_t in_bytes, out_bytes;             /* read but not run; written but not taken           */
	char     addr[CLIENT_ADDR_MAX + 1];       /* "127.0.0.1:51234", "/run/noh.sock:0"              */
	char     local[CLIENT_ADDR_MAX + 1];
};
void session_describe(const struct session *s, struct client *client);

/* ── what the connection layer gives ──────────────────────────────────────────────────────────── */
struct session *call_session(struct call *c);

/* An event, and a line of the log: the client asked for this ("dead redrive"), about an actor or a type, and about something
 * else; each may be NULL. To be called when the request is known to make sense, before it is done. */
void call_audit(struct call *c, const char *call, const char *actor, const char *target);

/* Whatever this connection asked before is answered; else this command waits. Before anything is written. */
bool call_alone(struct call *c);

/* As noh_get_type_stats, noh_get_status, noh_get_vitals, noh_list and noh_scan; and the reply of this call waits until what was told is on disk. */
int call_type_stats(struct call *c, const char *type, noh_type_stats *stats);
int call_status(struct call *c, const char *address, noh_status *status);
int call_vitals(struct call *c, const char *address, noh_vitals *vitals);
int call_list(struct call *c, const char *type, uint64_t *cursor, noh_entry *entries, size_t *count);
int call_scan(struct call *c, const char *type, uint64_t *cursor, uint32_t limit, noh_scan_fn *each, void *user);

/* Who is who: the role (and session.account is set), -1: wrong, -2: there are no accounts. In time that does not tell how wrong. */
int net_login(struct net *n, struct session *s, const struct arg *name, const struct arg *secret);

/* The same by the secret alone, and whose it is: HTTP's bearer tokens. */
int net_token_role(struct net *n, const struct arg *secret, char name[SESSION_NAME_MAX + 1], uint64_t *account);

/* After too many failed logins from where this connection comes, the next ones are not looked at: for how many seconds;
 * 0: it is. */
uint32_t call_login_waits_s(struct call *c);
void call_login_failed(struct call *c);

/* Name, user, library, protocol or role of this connection changed: whoever shows it to other workers takes
 * a new copy. */
void net_client_changed(struct conn *conn);

/* This connection; all of them, of all workers (each is handed a copy; false ends it); end one: false if it
 * is not there (any more). The connection of the call itself ends by session.closing, not by this. */
void net_client(struct conn *conn, struct client *client);
typedef bool client_fn(void *user, const struct client *client);
void net_each_client(struct net *n, client_fn *each, void *user);
bool net_kill_client(struct net *n, uint64_t id);

/* The options as they are in force now, defaults filled in. */
const noh_listen_options *net_options(struct net *n);

/* CONFIG SET of a field of the options that may change while it runs; false: this one may not. The names are
 * those of CONFIG GET (net/command_config.c). */
bool net_set_option(struct net *n, const char *name, uint64_t value);

uint64_t net_started_ms(struct net *n);                       /* wall-clock time                     */
uint64_t net_command_calls(struct net *n, uint32_t index);    /* sum of session.calls[index] of all workers */
void net_reset_stats(struct net *n);                          /* CONFIG RESETSTAT: calls, and what is counted
								 beside them; connections stay     */

/* Publish to whoever has subscribed: how many get it. Requests made before have been delivered first. If the
 * channel is the personal one of an actor: true, and *r is a REQUEST_SEND to it (room: CHANNEL_MAX bytes). */
uint64_t net_publish(struct call *c, const struct arg *channel, const struct arg *body);
bool net_personal(struct call *c, const struct arg *channel, char *room, struct request *r);

/* Subscribe; what the client is told comes as a push, behind the reply, if there is one. false: no memory.
 * Leave: channel NULL: all of them. Leave all of both kinds, in silence: RESET. */
bool net_subscribe(struct call *c, bool pattern, const struct arg *name);
void net_unsubscribe(struct call *c, bool pattern, const struct arg *name);
void net_unsubscribe_all(struct conn *conn);

/* Who listens: PUBSUB. each() ends it with false. */
typedef bool channel_fn(void *user, const char *name, uint32_t len);
void net_each_channel(struct net *n, channel_fn *each, void *user);
uint64_t net_listeners(struct net *n, const struct arg *channel);
uint64_t net_topics(struct net *n, bool pattern);             /* channels, or patterns, with listeners */

/* CONFIG RELOAD: calls on_reload; what noh_reloaded says is the one part that format is given. False: the program
 * has no settings to read, and nothing was written. */
bool call_reload(struct call *c, format_fn *format, struct tag tag);

/* DRAIN: calls on_drain; what noh_drained says is the one part that format is given. format NULL: nobody waits for it, and
 * nothing is written. False: the program does not drain. */
bool call_drain(struct call *c, uint32_t deadline_ms, format_fn *format, struct tag tag);
bool net_draining(struct net *n);                             /* new work is refused                 */

/* SHUTDOWN: calls on_shutdown. The reply may be lost with the connection, as clients expect. */
void net_shutdown(struct net *n);

#endif
