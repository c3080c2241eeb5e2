/* tools/verbs_table.c - the verbs, in the order of the overview. */
#include "bench/bench.h"
#include "tools/ask.h"
#include "tools/cli.h"
#include "tools/config.h"
#include "tools/data.h"
#include "tools/demo.h"
#include "tools/doctor.h"
#include "tools/serve.h"
#include "tools/settings.h"
#include "tools/sim.h"
#include "tools/top.h"
#include "tools/trace.h"
#include "tools/user.h"
#include "tools/verbs.h"

#include <string.h>

const struct verb_option verbs_remote[] = {
	{ "url", "URL", "the server, http://HOST:PORT; without it: its Unix socket (environment: NOH_URL)" },
	{ "socket", "PATH", "its Unix socket, if not the one its settings name" },
	{ "data", "DIR", "its data directory: tells where the socket is" },
	{ "config", "FILE", "its configuration file: tells where the data directory is" },
	{ "token-file", "FILE", "a file with your token (environment: NOH_TOKEN_FILE, or the token in NOH_TOKEN)" },
	{ "token", "TOKEN", "the token itself; others on this machine may see it" },
	{ "timeout", "TIME", "how long to wait for the answer; 30s" },
	{ "json", NULL, "the server's answer as it is, for programs" },
	{ "no-color", NULL, "plain text on a terminal, too (environment: NO_COLOR)" },
	{ NULL, NULL, NULL },
};

#define OPTIONS(...) (const struct verb_option[]){ __VA_ARGS__, { NULL, NULL, NULL } }
#define ACTIONS(...) (const struct verb_action[]){ __VA_ARGS__, { NULL, NULL, NULL } }
#define JSON { "json", NULL, "for programs" }
#define DATA { "data", "DIR", "the data directory" }
#define IDEM { "idem", "KEY", "idempotency key: sent again with it, it takes effect once, and is answered as before" }
#define TEST_EXITS "0 fine, 1 failure, 2 wrong usage"
#define DIR_LATER ", 75 try again later (directory in use, disk full, no memory)"

#define MESSAGE_TEXT \
	"MESSAGE is the type's own message: JSON ('{\"by\": 5}'), or NAME=VALUE words (by=5), or - to read JSON from\n" \
	"stdin, or nothing. What the built-in types understand:\n\n" \
	"  counter:ID     incr by=N   get   set value=N\n" \
	"  inventory:SKU  restock n=N   reserve n=N ttl_ms=MS   commit reservation=R\n" \
	"                 release reservation=R   get\n" \
	"  later:TYPE:ID  list   cancel id=ID   clear: what waits for that actor (noh send --delay)"

#define CURL "  curl localhost:5012/actor/invoke -H 'Content-Type: application/json' "

const struct verb verbs[] = {
	/* ── serve ── */
	{ .group = "Serve", .name = "serve", .about = "counters, inventory and actors for Redis clients and over HTTP",
	  .main = serve_main, .words = "[options]", .settings = true,
	  .text = "Runs the server in this terminal until Ctrl-C. An answer means that it is on disk. Ask it with redis-cli -p 7411,\n"
		  "with curl (noh invoke --help shows how; http://localhost:5012/openapi.json has every path and field), or with the\n"
		  "other verbs: they find it by its data directory.",
	  .examples = "  noh serve\n"
		      "  noh serve --data /var/lib/noh --memory 4GiB",
	  .exits = "0 stopped, 1 failure, 2 wrong usage or settings, 75 try again later (directory in use, disk full, no memory)",
	  .more = serve_help_more },
	{ .name = "user", .about = "who may use it: add, list, revoke", .main = user_main, .words = "add|list|revoke",
	  .actions = ACTIONS({ "add", "NAME [--role ROLE]", "prints the user's token, once: only its SHA-256 is kept" },
			     { "list", "[--json]", "names, roles, and since when" },
			     { "revoke", "NAME", "ends a user's access" }),
	  .options = OPTIONS({ "role", "ROLE", "user, developer or admin: each may do what those before it may; user" }, JSON, DATA,
			     { "users-file", "PATH", "the accounts, if not in the data directory" }),
	  .text = "From the first user on, nobody uses the server without a token. The accounts are in the file users of the\n"
		  "data directory. A running server takes a change over by itself.",
	  .examples = "  noh user add alice --role developer\n"
		      "  noh user list",
	  .exits = "0 fine, 1 failure, 2 wrong usage, 3 no such user" },
	{ .name = "config", .about = "its settings: show, check, reload", .main = config_main, .words = "show|check|reload|doc", .settings = true,
	  .actions = ACTIONS({ "show", "[--json] [options]", "every setting: its value and where it comes from; can be saved and used as a file" },
			     { "check", "[--json] [FILE | options]", "say what is wrong, line by line, without starting anything" },
			     { "reload", "[--json] [options]", "a running server reads settings and users again: what changed, what needs a restart" },
			     { "doc", "", "docs/configuration.md, as this program would write it" }),
	  .options = OPTIONS(JSON),
	  .text = "A value comes from the strongest of: default < configuration file < environment < flag. All but doc take every\n"
		  "option of noh serve. check reads one FILE, or all that noh serve would go by: file (--config), environment, options,\n"
		  "users. reload finds the server by its Unix socket for HTTP, which --data (or --http-unix) names.",
	  .examples = "  noh config show > noh.conf\n"
		      "  noh config check --config /etc/noh/noh.conf && noh config reload",
	  .exits = "0 fine, 1 failure, 2 wrong usage or settings (and nothing was changed), 75 no server answers" },
	{ .name = "doctor", .about = "is everything as it should be? one line per check, with what to do", .main = doctor_main,
	  .words = "[--json] [options of noh serve]", .settings = true,
	  .options = OPTIONS(JSON, { "quiet", NULL, "only what is not ok" },
			     { "url", "URL", "a server elsewhere, http://HOST:PORT: only what it says of itself" },
			     { "token-file", "FILE", "with --url: a file with an admin's token (environment: NOH_TOKEN_FILE, NOH_TOKEN)" },
			     { "no-color", NULL, "plain text on a terminal, too (environment: NO_COLOR)" }),
	  .text = "Looks at the configuration, the data directory, the limits of this account, the kernel, and the server if it\n"
		  "runs; changes nothing. Give it the options you give to noh serve, and run it as the same user. With --url it asks a\n"
		  "server elsewhere whether it is alive, ready and healthy: directory, limits and kernel can only be looked at on its machine.",
	  .examples = "  noh doctor\n"
		      "  noh doctor --config /etc/noh/noh.conf --quiet\n"
		      "  noh doctor --url http://10.0.0.7:5012 --token-file ~/.noh-token",
	  .exits = "0 nothing failed (warnings are fine), 1 at least one check failed, 2 wrong usage" },

	/* ── ask ── */
	{ .group = "Ask a running server", .name = "invoke", .about = "send a message to an actor and print its answer",
	  .main = invoke_main, .words = "TYPE:ID KIND [MESSAGE]", .remote = true, .options = OPTIONS(IDEM),
	  .text = "An address needs no creation: the first message brings the actor to life. " "KIND is the name of the message.\n"
		  MESSAGE_TEXT,
	  .examples = "  noh invoke counter:hits incr by=5\n"
		      "  noh invoke inventory:shoes restock n=10\n"
		      "  noh invoke inventory:shoes reserve n=2 --idem order-77     prints the reservation's number\n"
		      "  noh invoke inventory:shoes commit reservation=1\n"
		      "  noh invoke inventory:shoes get\n"
		      "\n"
		      "The same with curl\n"
		      CURL "-d \\\n"
		      "    '{\"actor_address\": \"inventory:boots\", \"message_type\": \"restock\", \"message\": {\"n\": 10}}'\n"
		      CURL "-H 'Idempotency-Key: order-78' -d \\\n"
		      "    '{\"actor_address\": \"inventory:boots\", \"message_type\": \"reserve\", \"message\": {\"n\": 2}}'\n"
		      CURL "-d \\\n"
		      "    '{\"actor_address\": \"inventory:boots\", \"message_type\": \"commit\", \"message\": {\"reservation\": 1}}'\n"
		      "  curl localhost:5012/openapi.json\n"
		      "\n"
		      "The last tells every path and field. If there are users: -H 'Authorization: Bearer TOKEN' as well." },
	{ .name = "send", .about = "send a message to an actor without waiting for its answer", .main = send_main,
	  .words = "TYPE:ID KIND [MESSAGE]", .remote = true,
	  .options = OPTIONS(IDEM, { "delay", "TIME", "it arrives so much later, once, also after a crash" }),
	  .text = "It is accepted when this returns, and will be handled. With --delay it tells the id it can be taken back with.\n"
		  MESSAGE_TEXT,
	  .examples = "  noh send counter:hits incr by=1\n"
		      "  noh send counter:hits incr by=1 --delay 10m\n"
		      "  noh invoke later:counter:hits list\n"
		      "  noh invoke later:counter:hits cancel id=1794834000123-7\n"
		      "  echo '{\"by\": 1}' | noh send counter:hits incr -" },
	{ .name = "status", .about = "one actor: active or not, its mailbox, its last message", .main = status_main,
	  .words = "TYPE:ID", .remote = true, .text = "Never activates it.",
	  .examples = "  noh status counter:hits\n"
		      "  noh status counter:hits --json" },
	{ .name = "list", .about = "actors, active or stored", .main = list_main, .words = "[--type TYPE] [--all]", .remote = true,
	  .options = OPTIONS({ "type", "TYPE", "of this type only" }, { "all", NULL, "the stored ones as well" },
			     { "limit", "N", "how many, at most 1000; 100" }, { "cursor", "CURSOR", "go on where the last list ended" }),
	  .text = "Needs the role developer. If there are more, the last line says how to go on.",
	  .examples = "  noh list\n"
		      "  noh list --type counter --all --limit 1000" },
	{ .name = "activate", .about = "bring an actor to life", .main = activate_main, .words = "TYPE:ID", .remote = true,
	  .text = "Needs the role developer. Not necessary before a message: that does it as well.",
	  .examples = "  noh activate counter:hits" },
	{ .name = "deactivate", .about = "send an actor back to storage", .main = deactivate_main, .words = "TYPE:ID [--force]",
	  .remote = true, .options = OPTIONS({ "force", NULL, "at once: what waits in its mailbox is not handled first" }),
	  .text = "Needs the role developer. Nothing durable is lost, also with --force.",
	  .examples = "  noh deactivate counter:hits",
	  .exits = "0 fine (also if it was not active), 1 failure, 2 wrong usage, 4 no answer in time, 75 try again later" },
	{ .name = "pool", .about = "the node: capacity, actors, health", .main = pool_main, .words = "", .remote = true,
	  .text = "Needs the role admin.", .examples = "  noh pool\n  noh pool --json" },
	{ .name = "drain", .about = "let it finish what it has, and end", .main = drain_main, .words = "[--deadline TIME]", .remote = true,
	  .options = OPTIONS({ "deadline", "TIME", "how long it may take; 30s" }),
	  .text = "The server takes no new work (clients are told so, and /readyz says it), finishes what waits, puts every actor to\n"
		  "storage, syncs, and ends. How far it is stands on stderr meanwhile. Needs the role admin. A SIGTERM during it\n"
		  "makes it an ordinary stop.",
	  .examples = "  noh drain\n"
		      "  noh drain --deadline 2m --url http://localhost:5012",
	  .exits = "0 drained: nothing is left, 1 not all of it in time (the sentence says what is left; the server ends), 2 wrong usage,\n"
		   "75 no server answers" },
	{ .name = "top", .about = "live: workers, types, latencies, the disk", .main = top_main, .words = "[--once]", .remote = true,
	  .options = OPTIONS({ "every", "TIME", "between two looks; 1s" }, { "once", NULL, "one look at what happened during that time, and end" }),
	  .text = "A screen that is drawn anew every second: per worker turns per second, how busy it is, and steals; per type\n"
		  "actors, messages per second, the latency of half and of 99 % of the turns, and waiting messages; how far the disk is\n"
		  "behind. q ends it. Needs the role of /metrics.",
	  .examples = "  noh top\n"
		      "  noh top --once --json" },
	{ .name = "trace", .about = "where a request was, and how long: show, list", .main = trace_main, .words = "show|list", .remote = true,
	  .actions = ACTIONS({ "show", "TRACE_ID", "one trace: 32 hex digits, as a client sent them in its traceparent, or as list tells" },
			     { "list", "[--limit N]", "those that took longest, of what clients traced and of one in trace.sample besides" }),
	  .options = OPTIONS({ "limit", "N", "list: at most so many; 20" }),
	  .text = "Where a request was and for how long: one line for every message on its way to an actor and through its turn,\n"
		  "each below the one it came from. The last thousand or so spans of every worker are remembered, until the server\n"
		  "ends.\n\n"
		  "  received   when it came, counted from the first       waited   in the mailbox, until its turn\n"
		  "  turn       in the actor's code                        disk     from there until it is on disk\n"
		  "  answer     from received until the answer left        -        it has not come to that, or not yet",
	  .examples = "  noh trace list --limit 5\n"
		      "  curl -H 'traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' ...\n"
		      "  noh trace show 4bf92f3577b34da6a3ce929d0e0e4736",
	  .exits = "0 shown, 1 failure, 2 wrong usage, 3 nothing is remembered of it, 4 no answer in time, 75 the server is not there" },
	{ .name = "schedule", .about = "durable timers: list, cancel", .main = schedule_main, .words = "list|cancel", .remote = true,
	  .actions = ACTIONS({ "list", "[--type TYPE | --actor TYPE:ID]", "what is due, the soonest first" },
			     { "cancel", "TYPE:ID KIND", "takes one timer of an actor away, on disk when this returns" }),
	  .options = OPTIONS({ "type", "TYPE", "of actors of this type only" }, { "actor", "TYPE:ID", "of this actor only" },
			     { "limit", "N", "how many, at most 1000; 100" }, { "cursor", "CURSOR", "go on where the last list ended" }),
	  .text = "Needs the role developer; cancel needs admin. An actor may count on its timers: know what you cancel.\n"
		  "Messages for later (noh send --delay) are one timer of the actor later:TYPE:ID, named due: to cancel that is to\n"
		  "forget all that wait for TYPE:ID. One of them is taken back with noh invoke later:TYPE:ID cancel id=ID.",
	  .examples = "  noh schedule list --type inventory\n"
		      "  noh schedule cancel inventory:shoes expire\n"
		      "  noh schedule cancel later:counter:hits due",
	  .exits = "0 fine, 1 failure, 2 wrong usage, 3 no such timer, 4 no answer in time, 75 try again later" },
	{ .name = "dead", .about = "messages that were set aside: list, show, redrive, purge", .main = dead_main,
	  .words = "list|show|redrive|purge", .remote = true,
	  .actions = ACTIONS({ "list", "[--actor TYPE:ID]", "the oldest first: number, when, actor, kind, why" },
			     { "show", "ID", "one of them, with its body" },
			     { "redrive", "ID... | --all", "back to its actor: exactly once, however often you ask" },
			     { "purge", "ID... | --all", "forget them for good" }),
	  .options = OPTIONS({ "actor", "TYPE:ID", "for this actor only" }, { "limit", "N", "how many, at most 1000; 100" },
			     { "cursor", "CURSOR", "go on where the last list ended" }, { "all", NULL, "all of them (of --actor, if given)" },
			     { "yes", NULL, "with purge --all: do not ask" }),
	  .text = "A message to a durable actor is set aside with everything it was if it was being handled each time the process\n"
		  "ended (three times), if it failed more often than its type's supervision retries it, or if a durable actor sent\n"
		  "it to one that was given up. Mend what is wrong, then redrive it. list and show need the role developer, the\n"
		  "others admin.",
	  .examples = "  noh dead list\n"
		      "  noh dead show 1794834000123-7\n"
		      "  noh dead redrive 1794834000123-7",
	  .exits = "0 fine, 1 failure, 2 wrong usage, 3 no such message, 4 no answer in time, 75 try again later" },

	{ .name = "describe", .about = "all that is known of an actor, with its last events", .main = describe_main, .words = "TYPE:ID",
	  .remote = true, .options = OPTIONS({ "events", "N", "how many of its last events, at most 100; 10" }),
	  .text = "Desired and observed revision, the error of its last try to get from one to the other, restarts and why it failed\n"
		  "last, how many messages wait, who supervises it, and what happened to it. Never activates it. Needs the role\n"
		  "developer.",
	  .examples = "  noh describe counter:hits\n"
		      "  noh describe counter:hits --events 50 --json" },
	{ .name = "tree", .about = "who supervises whom, and how they are", .main = tree_main, .words = "[TYPE:ID]", .remote = true,
	  .options = OPTIONS({ "limit", "N", "how many actors, at most 10000; 1000" }),
	  .text = "Children in the order they were spawned, below their supervisor; from this actor on, or all. In the tree are actors in\n"
		  "memory, and those that are not healthy. Needs the role developer.",
	  .examples = "  noh tree\n"
		      "  noh tree supervisor:node-1" },
	{ .name = "events", .about = "what happens, as it happens: tail", .main = events_main, .words = "tail", .remote = true,
	  .actions = ACTIONS({ "tail", "[--actor TYPE:ID] [--type TYPE] [--since TIME] [-n N]", "the last events, then each as it comes" }),
	  .options = OPTIONS({ "actor", "TYPE:ID", "of this actor only" }, { "type", "TYPE", "of actors of this type only" },
			     { "kind", "KIND", "of this kind only: failed, restarted, an actor's own ..." },
			     { "since", "TIME", "begin so long ago (10m), or then (2031-05-01T12:00:00Z)" },
			     { "last", "N", "begin with the last N, at most 1000; 10; -n N means the same" },
			     { "cursor", "N", "begin behind event N; 0: with the oldest there is" },
			     { "no-follow", NULL, "end when all there is has been told" }),
	  .text = "A line per event: number, time, kind, actor, states before and after, why. Failures, restarts, escalations, drops,\n"
		  "dead letters, and what actors tell themselves; each is on disk before it is shown. With --json an object per line.\n"
		  "If the server ends, the last line says how to go on without missing one. Needs the role developer.",
	  .examples = "  noh events tail\n"
		      "  noh events tail --actor worker:7 --since 1h\n"
		      "  noh events tail --kind quarantined -n 100 --no-follow --json",
	  .exits = "0 fine (with --no-follow), 1 failure, 2 wrong usage, 4 no answer in time, 75 the server is not there, or has ended" },
	{ .name = "wait", .about = "until an actor is as you want it", .main = wait_main, .words = "--actor TYPE:ID --for CONDITION [--timeout TIME]",
	  .remote = true,
	  .options = OPTIONS({ "actor", "TYPE:ID", "whom; or as the first word" },
			     { "for", "CONDITION", "'state=active and revision>=3': see below" }),
	  .text = "CONDITION is one or more tests FIELD=VALUE, joined by and, or, not and parentheses:\n\n"
		  "  state      active, inactive, activating, deactivating, down, degraded, stopped, quarantined, awaiting\n"
		  "  health     healthy, down, degraded, stopped, quarantined, awaiting\n"
		  "  revision   the one it has; desired: the one it is to have; both, and those below, with = != >= <= > <\n"
		  "  restarts   how often it was restarted; mailbox: messages that wait; children: actors it supervises\n"
		  "  event      the kind of an event of it since this command began\n"
		  "  error, failure, parent, exists     a word, 'text in quotes', '' for none; true or false\n\n"
		  "A number may be compared with another field: revision=desired. Needs the role developer.",
	  .examples = "  noh wait --actor instance:7 --for 'state=active and revision>=3' --timeout 30s\n"
		      "  noh wait instance:7 --for 'revision=desired or health!=healthy' --timeout 5m",
	  .exits = "0 it is so, 1 failure, 2 wrong usage, 3 no such type, 4 not so in time, 75 the server is not there" },
	{ .name = "quarantine", .about = "actors that failed too often: list, resume", .main = quarantine_main, .words = "list|resume", .remote = true,
	  .actions = ACTIONS({ "list", "[--type TYPE]", "those that are degraded, stopped, quarantined or awaiting a revision, and why" },
			     { "resume", "TYPE:ID... | TYPE", "let them begin anew: on disk when this returns" }),
	  .options = OPTIONS({ "type", "TYPE", "of this type only" }, { "limit", "N", "how many, at most 1000; 100" }),
	  .text = "An actor that fails more often than its supervision allows is taken out: whoever asks it is refused at once, and what\n"
		  "it has is kept. Mend what made it fail, then resume it. list needs the role developer, resume admin.",
	  .examples = "  noh quarantine list\n"
		      "  noh quarantine resume worker:7",
	  .exits = "0 fine, 1 failure, 2 wrong usage, 3 nothing to resume, 4 no answer in time, 75 try again later" },

	/* ── care ── */
	{ .group = "Care for a data directory", .name = "inspect", .about = "what it holds, or one actor of it", .main = inspect_main,
	  .words = "DIR [ADDRESS] [--list [--type T] [--limit N]] [--json]",
	  .options = OPTIONS({ "list", NULL, "addresses, one per line; with --json a list" }, { "type", "T", "of this type only" },
			     { "limit", "N", "at most N of them" }, JSON),
	  .text = "What a data directory holds: in numbers, or of one actor all that is stored, with what the\n"
		  "journal has beyond the image. Changes nothing; works beside a running box.",
	  .examples = "  noh inspect noh-data\n  noh inspect noh-data counter:hits",
	  .exits = "0 fine, 1 failure, 2 wrong usage, 3 no such actor" DIR_LATER },
	{ .name = "verify", .about = "read every byte: is all well?", .main = verify_main, .words = "DIR [--json]", .options = OPTIONS(JSON),
	  .text = "Reads every byte of a data directory, also beside a running box: checksums, the journal's\n"
		  "chain, and whether journal and image fit together. A line for each finding. A torn tail is\n"
		  "fine.",
	  .examples = "  noh verify noh-data", .exits = "0 fine, 1 failure or findings, 2 wrong usage" DIR_LATER },
	{ .name = "check", .about = "which types and versions are stored; can they be opened?", .main = check_main,
	  .words = "DIR [--json]", .options = OPTIONS(JSON),
	  .text = "Which types and versions are stored, how many actors of each, and whether the noh serve of this program\n"
		  "can open them. An embedder asks with his own types: noh_check in noh.h.",
	  .examples = "  noh check noh-data", .exits = "0 all of it can be opened, 1 some cannot, 2 wrong usage" DIR_LATER },
	{ .name = "backup", .about = "copy it while its box runs", .main = backup_main, .words = "DIR DEST",
	  .text = "Copies a data directory to DEST, which must not exist, also while a box runs on it. The copy\n"
		  "is one instant and contains every answer given before the command. It is written to\n"
		  "DEST.partial, synced, and renamed: a DEST that is there is whole. The accounts (DIR/users) are not in it.",
	  .examples = "  noh backup noh-data /backup/noh-monday", .exits = TEST_EXITS DIR_LATER },
	{ .name = "restore", .about = "check a backup and copy it back", .main = restore_main, .words = "BACKUP DIR",
	  .text = "Verifies BACKUP and copies it to DIR, which must not exist or be empty. DIR keeps the backup's\n"
		  "id: it is in every file and ties them together. Nothing is overwritten. Accounts are not in a backup.",
	  .examples = "  noh restore /backup/noh-monday noh-data", .exits = TEST_EXITS DIR_LATER },
	{ .name = "compact", .about = "fold the journal and shrink the image; offline", .main = compact_main, .words = "DIR",
	  .text = "Folds the journal into the image and writes the image anew, without free pages. No box may\n"
		  "have DIR open. Needs room for a second image; interrupted, it has happened or not.",
	  .examples = "  noh compact noh-data", .exits = TEST_EXITS DIR_LATER },

	/* ── try ── */
	{ .group = "Try and measure", .name = "demo", .about = "one minute with a million actors, live", .main = demo_main,
	  .words = "[--seconds N] [--actors N] [--workers N]",
	  .options = OPTIONS({ "seconds", "N", "how long; 60" }, { "actors", "N", "how many; 1M" }, { "workers", "N", "threads; one per core" }),
	  .text = "A million actors at work: created, driven, checked, put to sleep, woken,\n"
		  "with a table at the end. Takes about a minute (--seconds); Ctrl-C ends it\n"
		  "early, with the table so far.",
	  .examples = "  noh demo --seconds 20", .exits = TEST_EXITS },
	{ .name = "bench", .about = "from ping-pong to ten million actors, all verified", .main = bench_main,
	  .words = "[NAME ...] [options]",
	  .options = OPTIONS({ "workers", "N[,M...]", "worker threads, one run each" }, { "n", "N", "how much work" },
			     { "reps", "R", "repetitions" }, { "rate", "R", "flood: intended messages/s" },
			     { "dir", "DIR", "where durable-... put their data" }, { "seed", "S", "of all random choices" },
			     { "smoke", NULL, "tiny sizes" }, { "all-events", NULL, "of boxes in memory: every actor that comes or goes is an event" }, JSON, { "raw", NULL, "one line per repetition" },
			     { "plot", "FILE.svg", "draw instead" }, { "list", NULL, "the benchmarks" }),
	  .text = "Runs the named benchmarks and checks every result exactly. noh bench load puts load on a server.",
	  .examples = "  noh bench ping-pong big --workers 1,2 --reps 5", .exits = TEST_EXITS },
	{ .name = "sim", .about = "whole boxes from seeds: crashes, power cuts, full disks; nothing may be lost", .main = sim_main,
	  .words = "[--seed N] [--seeds K] [--minutes M] [--seconds S] [--loud] [--plants]",
	  .options = OPTIONS({ "seed", "N", "the first one" }, { "seeds", "K", "how many" }, { "minutes", "M", "as many as that allows" },
			     { "seconds", "S", "as many as that allows" }, { "loud", NULL, "what happens, step by step" },
			     { "plants", NULL, "do planted bugs get found?" }),
	  .text = "Runs whole boxes from seeds N, N+1, ...: one thread, a virtual clock, a disk that loses what was\n"
		  "not synced, tears, fails and fills up, a process that is killed. Checks that nothing which was\n"
		  "answered is lost, nothing happens twice, and everything ends. The same seed takes the same course.",
	  .examples = "  noh sim --seed 42                  one seed\n"
		      "  noh sim --seed 42 --loud           what happened in it, step by step\n"
		      "  noh sim --seed 1 --minutes 5       as many as five minutes allow",
	  .exits = TEST_EXITS },

	/* ── help ── */
	{ .group = "Help", .name = "help", .about = "this overview; noh help VERB for one verb", .main = help_main, .words = "[VERB | --man]",
	  .options = OPTIONS({ "man", NULL, "the manual page noh(1), to be read by man -l" }),
	  .text = "All there is to say about a verb is in its help.", .examples = "  noh help invoke\n  noh help --man | man -l -", .exits = TEST_EXITS },
	{ .name = "completion", .about = "completes your words in the shell: bash, zsh, fish", .main = completion_main,
	  .words = "bash|zsh|fish", .text = "Prints a script for your shell. It asks no server and knows every verb and option.",
	  .examples = "  noh completion bash > ~/.local/share/bash-completion/completions/noh\n"
		      "  noh completion zsh > \"${fpath[1]}/_noh\"\n"
		      "  noh completion fish > ~/.config/fish/completions/noh.fish", .exits = TEST_EXITS },
	{ .name = "version", .about = "print the version", .main = version_main, .words = "[--json]", .options = OPTIONS(JSON),
	  .text = "Of this program, and of the interface it was built for.", .examples = "  noh version", .exits = TEST_EXITS },
	{ .name = NULL },
};

const struct verb *verb_find(const char *name)
{
	for (const struct verb *v = verbs; v->name; v++)
		if (strcmp(v->name, name) == 0)
			return v;
	return NULL;
}

const char *verb_nearest(const char *name)
{
	const char *names[64];
	size_t n = 0;

	for (const struct verb *v = verbs; v->name && n < 64; v++)
		names[n++] = v->name;
	return cli_nearest(name, names, n);
}
