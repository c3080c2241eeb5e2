/* tools/settings.h - every setting of noh, once: the table behind flags, environment, file and documentation.
 *
 * A value comes from the strongest of four places: its default < the configuration file < the environment
 * < a flag. Whoever asks is told which one it was. Nothing is guessed: an unknown key, a number without its
 * unit, a value out of range is an error that names the place and what would be right.
 *
 * Owns     the texts of a struct settings, from settings_init to settings_free.
 * Threads  one.
 * Never    prints or exits: errors and warnings go to the caller's function, one sentence each.
 */
#ifndef NOH_TOOLS_SETTINGS_H
#define NOH_TOOLS_SETTINGS_H

#include "tools/cli.h"

enum setting_type {
	SETTING_TEXT,          /* any printable text                                     */
	SETTING_PATH,
	SETTING_ADDRESS,       /* an IPv4 or IPv6 address, or localhost                  */
	SETTING_CHOICE,        /* one of a few words; its number is the place in choices */
	SETTING_BOOL,          /* true, false; also yes, no, on, off                     */
	SETTING_NUMBER,
	SETTING_SIZE,          /* bytes: 64MiB, 200MB, 512B                              */
	SETTING_DURATION,      /* milliseconds: 300s, 250ms, 24h                         */
	SETTING_RATIO,         /* 0 to 1, such as 0.8; its number is thousandths         */
	SETTING_LEVELS,        /* TYPE=WORD,TYPE=WORD: one of choices each               */
	SETTING_RATES,         /* TYPE=RATE,TYPE=RATE:BURST: messages a second           */
	SETTING_COUNTS         /* TYPE=N,TYPE=N: least to most                           */
};

enum setting_id {
	SET_DIR, SET_DURABILITY, SET_JOURNAL, SET_IDEM_KEEP, SET_IDEM_BYTES,
	SET_EVENTS_BYTES, SET_EVENTS_KEEP, SET_EVENTS_DETAIL,
	SET_BIND, SET_RESP_PORT, SET_UNIX, SET_IO, SET_INSECURE, SET_SHUTDOWN,
	SET_MAX_CONNECTIONS, SET_MAX_ADDRESS_CONNECTIONS, SET_AUTH_FAILURES, SET_MAX_ARGS, SET_MAX_ARG_BYTES, SET_MAX_COMMAND_BYTES, SET_MAX_INLINE_BYTES,
	SET_MAX_PIPELINE, SET_MAX_OUTPUT_BYTES, SET_MAX_SUBSCRIPTIONS, SET_MAX_SUBSCRIBER_BYTES, SET_TIMEOUT, SET_IDLE, SET_CALL,
	SET_STOP_PATIENCE,
	SET_HTTP_PORT, SET_HTTP_UNIX, SET_HTTP_MAX_HEADER, SET_HTTP_MAX_HEADERS, SET_HTTP_MAX_BODY, SET_HTTP_HEADER_TIMEOUT,
	SET_HTTP_BODY_TIMEOUT, SET_HTTP_MIN_RATE, SET_HTTP_IDLE,
	SET_WORKERS, SET_PIN, SET_MEMORY, SET_MAX_ACTORS, SET_MAX_MESSAGE, SET_SLOW_TURN, SET_STOP_DEADLINE,
	SET_ACTOR_IDLE, SET_ACTOR_MAILBOX,
	SET_LIMIT_RATE, SET_LIMIT_ACTOR_RATE, SET_LIMIT_TURNS, SET_LIMIT_OVER,
	SET_USERS_FILE, SET_ADMIN_TOKEN,
	SET_LOG_LEVEL, SET_LOG_TYPES, SET_LOG_FORMAT, SET_TRACE_SAMPLE,
	SET_NODE_ID, SET_NODE_MODE, SET_CLAIM_TTL, SET_CLAIM_REFRESH, SET_PLACEMENT, SET_NODES, SET_PARTITIONS, SET_REPLICAS,
	SET_POOL_NAME, SET_POOL_TYPE, SET_MIN_INSTANCES, SET_MAX_INSTANCES, SET_SCALE_UP, SET_SCALE_DOWN,
	SET_ACTORS_PER_NODE,
	SETTINGS
};

struct setting {
	const char *section, *key;
	const char *flag;                /* without the dashes; NULL for secrets: ps would show it     */
	const char *alias[2];            /* in the environment, beside NOH_SECTION_KEY                 */
	const char *seed;                /* what the same is called in files of other systems; any section; NULL */
	const char *alias_unit;          /* of such a name's plain number: ..._SECONDS is "s"          */
	const char *preset;              /* the default, as one would write it; "": not set            */
	const char *help;                /* one sentence                                               */
	const char *const *choices;      /* NULL at the end                                            */
	uint64_t    least, most;         /* NUMBER, SIZE, DURATION; length of a TEXT                   */
	enum setting_type type;
	bool        or_zero;             /* 0 is allowed beside least..most                            */
	bool        restart;             /* a running server cannot change it                          */
	bool        secret;              /* never shown; KEY_file names a file that holds it           */
	bool        ignored;             /* accepted from elsewhere; one box has no use for it         */
};
extern const struct setting settings_table[SETTINGS];

enum setting_origin { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_FLAG };

struct setting_value {
	char       *text;                /* as it was written; "" if not set                           */
	uint64_t    number;              /* what it means                                              */
	enum setting_origin from;
	char       *where;               /* "/etc/noh/noh.conf:12", "NOH_NET_BIND", "--bind"           */
};

/* Told of every error (and warning, if not wrong): one sentence without a newline. */
typedef void settings_say_fn(void *user, bool wrong, const char *sentence);

struct settings {
	struct setting_value value[SETTINGS];
	char            *config;         /* the file that was read; NULL: none                         */
	char            *config_flag;    /* --config; NULL: the usual place, if there                  */
	unsigned         errors;
	settings_say_fn *say;
	void            *user;
};

#define SETTINGS_USUAL_FILE "/etc/noh/noh.conf"
enum { SETTINGS_FILE_MAX = 1 << 20, SETTINGS_VALUE_MAX = 4095 };

void settings_init(struct settings *s, settings_say_fn *say, void *user);     /* all defaults */
void settings_free(struct settings *s);

/* One option of the command line. False: it is none of these. (If its value is wrong that is an error, and
 * true.) Known beside the table: --config FILE. */
bool settings_flag(struct settings *s, struct cli_args *args);

/* An option that nobody knows: says so, with the nearest of ours and of `others` (count of them). */
void settings_unknown_flag(struct settings *s, const char *verb, const char *name,
			   const char *const *others, size_t count);

/* After the flags: the file, the environment (names and values: environ), and what must hold between
 * settings. True: no errors at all so far. */
bool settings_load(struct settings *s, char *const *environment);

/* The parts of it, for tests and for noh config check. Each returns true if it met no error. */
bool settings_read_file(struct settings *s, const char *path, bool must_be_there);
bool settings_parse(struct settings *s, const char *name, const char *text, size_t len);
bool settings_environment(struct settings *s, char *const *environment);
bool settings_check(struct settings *s);

/* The same again, as a running server does on SIGHUP: a fresh one with the flags of old. */
bool settings_reload(struct settings *fresh, const struct settings *old, settings_say_fn *say, void *user,
		     char *const *environment);

/* Do both mean the same for this setting? */
bool settings_same(const struct settings *a, const struct settings *b, enum setting_id id);

uint64_t    settings_number(const struct settings *s, enum setting_id id);
const char *settings_text(const struct settings *s, enum setting_id id);
bool        settings_given(const struct settings *s, enum setting_id id);   /* not the default */
const char *settings_shown(const struct settings *s, enum setting_id id);   /* "(secret)" if it is one */
const char *settings_origin(const struct settings *s, enum setting_id id);  /* "default", or where */
void        settings_env_name(enum setting_id id, char *buf, size_t size);  /* NOH_NET_BIND */
bool        settings_is_loopback(const char *address);
/* The Unix socket for HTTP, where the command line finds a running server; NULL: there is none. */
const char *settings_http_path(const struct settings *s, char *buf, size_t size);

/* ── between the parts ── */

/* Give a setting a value from somewhere; weaker places lose. False (and an error at `where`) if it is none. */
bool settings_put(struct settings *s, enum setting_id id, const char *text, enum setting_origin from,
		  const char *where);
/* The same under a name of other systems: a plain number there has the unit of the name. */
bool settings_put_alias(struct settings *s, enum setting_id id, const char *text, enum setting_origin from,
			const char *where);
bool settings_put_secret_file(struct settings *s, enum setting_id id, const char *path,
			      enum setting_origin from, const char *where);

/* What the text means for this setting. False: why (of size bytes) is a half sentence with what is right. */
bool settings_value(const struct setting *t, const char *text, uint64_t *number, char *why, size_t size);

/* Of a list TYPE=VALUE,TYPE=VALUE: the value of this type, copied; false: it has none. */
bool settings_of_type(const struct settings *s, enum setting_id id, const char *type, char *value, size_t size);
/* "100", "0.5:20": false, it is none. burst 0: not said. */
bool settings_rate(const char *text, double *per_second, uint32_t *burst);

void settings_write(char *buf, size_t size, uint64_t number, enum setting_type type);   /* "64MiB", "30s", "7" */

void settings_wrong(struct settings *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void settings_warn(struct settings *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Memory is never short in the beginning of a program, or else this ends it: exit code 1. */
char *settings_copy(const char *text);

/* ── words about the table: noh serve --help, docs/configuration.md ── */
void settings_print_help(void);
void settings_print_page(void);

#endif
