/* tools/serve_in.h - the parts of noh serve: serve.c (start), serve_run.c (signals, reload, accounts, stop),
 * serve_say.c (banner, log, service manager).
 *
 * Owns     the box, the settings in effect, the accounts in effect.
 * Threads  the main thread.
 */
#ifndef NOH_TOOLS_SERVE_IN_H
#define NOH_TOOLS_SERVE_IN_H

#include "noh.h"
#include "tools/accounts.h"
#include "tools/settings.h"

#include <sys/types.h>
#include <time.h>

struct server {
	struct settings settings;            /* in effect: what needs a restart is as it was at the start */
	noh_box        *box;
	uint64_t        began_ns;
	bool            fresh;               /* the data directory was made just now           */
	uint64_t        max_connections;     /* as the limit of open files allows              */
	const char     *info[2 * SETTINGS + 8];
	char            node_id[64];

	struct accounts accounts;            /* in effect                                      */
	char            users[4200];         /* their file                                     */
	struct users_mark {                  /* what the file was when it was read last        */
		struct timespec changed;
		ino_t           inode;
		off_t           size;
		bool            there;
	} mark;

	struct server_log {
		noh_logger *logger;
		bool        json;
		bool        journal;         /* stderr is systemd's journal: <3> instead of times */
	} log;
};

/* ── serve_run.c ── */

/* Signals are for sigwait: in this thread and those it starts. */
void server_take_signals(void);
/* Read the accounts file (if it changed: looked at by its mark). False: why; those in effect stay. */
bool server_read_accounts(struct server *s, char *why, size_t size);
bool server_has_accounts(const struct server *s);
int  server_apply_accounts(struct server *s);            /* noh_set_accounts */
/* Until a signal or the disk ends it; the exit code. */
int  server_run(struct server *s);

/* ── serve_say.c ── */
int  server_log_open(struct server *s);                  /* and again, after a reload */
void server_log_close(struct server *s);
/* A line that is always told, whatever the level. */
void server_say(struct server *s, int level, const char *format, ...) NOH_PRINTF(3, 4);
void server_banner(struct server *s);
/* "READY=1" and the like to the service manager, if there is one. */
void server_notify(const char *state);

#endif
