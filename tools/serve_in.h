/* tools/serve_in.h - the parts of noh serve: serve.c (start), serve_run.c (signals, stop), serve_reload.c (settings
 * that change), serve_sockets.c (those of a service manager), serve_limits.c (limits of types), serve_drain.c (the end, in the open), serve_users.c (accounts that change),
 * serve_pulse.c (are the workers alive?), serve_say.c (banner, log, service manager).
 *
 * Owns     the box, the settings in effect, the accounts in effect.
 * Threads  the main thread; reload_asked is called by any.
 */
#ifndef NOH_TOOLS_SERVE_IN_H
#define NOH_TOOLS_SERVE_IN_H

#include "noh.h"
#include "tools/accounts.h"
#include "tools/settings.h"

#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

enum { RELOADS_AT_ONCE = 16 };

/* What CONFIG GET tells beside its own: copies, so that a reload can drop what it replaces. */
struct info_table {
	struct info_table *older;
	const char *pairs[2 * SETTINGS + 1];
	char        text[];
};

struct server {
	struct settings settings;            /* in effect: what needs a restart is as it was at the start */
	noh_box        *box;
	uint64_t        began_ns;
	bool            fresh;               /* the data directory was made just now           */
	uint64_t        max_connections;     /* as the limit of open files allows              */
	struct info_table *info;             /* told by CONFIG GET; those before it may be looked at still */
	char            node_id[64], dir_id[20];
	char            http_path[4200];     /* of its Unix socket, if it is not a setting's own */

	struct given {                       /* sockets of the service manager                 */
		struct given_socket {
			int  fd;             /* 0: none                                        */
			bool loopback;       /* only this machine reaches it                   */
			char at[64];
		} resp, http;
	} given;

	struct accounts accounts;            /* in effect                                      */
	char            users[4200];         /* their file                                     */
	struct users_mark {                  /* what the file was when it was read last        */
		struct timespec changed;
		ino_t           inode;
		off_t           size;
		bool            there;
	} mark;

	_Atomic uint64_t reloads[RELOADS_AT_ONCE];   /* asked for by clients; 0: none          */
	_Atomic bool    ending;              /* and nobody looks at them any more              */

	struct server_drain {
		_Atomic uint64_t asked[RELOADS_AT_ONCE];     /* who waits for its end; 0: nobody */
		_Atomic uint32_t deadline_ms;        /* somebody wants it; 0: nobody           */
		uint64_t say_ns;             /* when to say again how far it is                */
		int      cut_by;             /* the signal that ended it; 0: none              */
	} drain;

	struct server_pulse {
		uint64_t next_ns;            /* when to take it again                          */
		uint64_t every_ns;
		uint64_t watchdog_ns;        /* the service manager's patience; 0: it has none  */
		uint64_t claim_ns;           /* when to renew the claim                        */
		bool     silent;             /* it was told that a worker is                   */
		bool     claimed;            /* the claim's file is there                      */
	} pulse;

	struct server_log {
		noh_logger *logger;
		bool        json;
		bool        journal;         /* stderr is systemd's journal: <3> instead of times */
	} log;
};

/* ── serve_run.c ── */

/* Signals are for sigwait: in this thread and those it starts. */
void server_take_signals(void);
/* Until a signal or the disk ends it; the exit code. */
int  server_run(struct server *s);

/* ── serve.c ── */
void server_fit_connections(struct server *s);           /* max_connections, as the system allows      */
uint64_t server_events_bytes(const struct settings *set); /* 0: as the box has it                      */
bool server_fill_info(struct server *s);                 /* a new s->info; false: no memory            */
noh_listen_options server_listen_options(struct server *s);

/* ── serve_reload.c ── */
void reload_asked(void *user, uint64_t request);         /* on_reload: any thread                      */
void reload_now(struct server *s);                       /* and answers all who asked for it           */
void reload_end(struct server *s);                       /* a stop begins: whoever asked is refused    */

/* ── serve_sockets.c ── */
bool sockets_take(struct server *s, char *why, size_t size);         /* false: why they cannot be used */

/* ── serve_limits.c ── */
/* The limits of types as these settings want them. False: why; one of them names a type that there is not. */
bool limits_check(struct server *s, const struct settings *settings, char *why, size_t size);
int  limits_apply(struct server *s, const struct settings *before);  /* of types that have others now; NULL: none had any */

/* ── serve_drain.c ── */
void drain_asked(void *user, uint64_t request, uint32_t deadline_ms);    /* on_drain: any thread       */
bool drain_wanted(struct server *s);                     /* somebody asked for it                      */
bool drain_now(struct server *s);                        /* false: not all of it in time; say so       */
void drain_end(struct server *s);                        /* a stop begins: whoever asks now is told so */

/* ── serve_users.c ── */
/* The accounts as these settings want them: into *fresh. False: why; nothing is changed. */
bool users_read(struct server *s, const struct settings *settings, const char *path, struct accounts *fresh,
		struct users_mark *mark, char *why, size_t size);
bool users_exist(const struct server *s);
int  users_apply(struct server *s, const struct accounts *list);     /* noh_set_accounts               */
void users_take(struct server *s, struct accounts *fresh);           /* they are in effect             */
void users_tell(struct server *s);
void users_watch(struct server *s);                      /* has the file changed?                      */

/* ── serve_pulse.c ── */
void pulse_begin(struct server *s);
struct timespec pulse_nap(const struct server *s);       /* how long the main thread may wait          */
void pulse_take(struct server *s);
void pulse_end(struct server *s, uint64_t deadline_ms);  /* a stop begins that may take so long        */

/* ── serve_say.c ── */
int  server_log_open(struct server *s);                  /* and again, after a reload */
void server_log_close(struct server *s);
/* A line that is always told, whatever the level. */
void server_say(struct server *s, int level, const char *format, ...) NOH_PRINTF(3, 4);
void server_banner(struct server *s);
/* "READY=1" and the like to the service manager, if there is one. */
void server_notify(const char *state);

#endif
