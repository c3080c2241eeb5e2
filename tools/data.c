/* tools/data.c - noh verify, check, backup, restore, compact: thin words around noh.h's section 7. */
#include "tools/data.h"

#include "noh_actors.h"

#include "tools/cli.h"
#include "tools/crash.h"
#include "tools/verbs.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ── words ── */

static bool unknown(const struct data_verb *v, const char *name)
{
	static const char *const names[] = { "json", "help", "list", "type", "limit" };
	const char *near = cli_nearest(name, names, v->lists ? 5 : 2);

	if (near)
		fprintf(stderr, "noh %s: there is no option --%s; did you mean --%s?\n", v->name, name,
			near);
	else
		fprintf(stderr, "noh %s: there is no option --%s; noh %s --help lists them\n", v->name,
			name, v->name);
	return false;
}

static bool option(struct data_words *w, const struct data_verb *v, struct cli_args *args)
{
	const char *name = args->name;

	if (v->json && strcmp(name, "json") == 0) {
		w->json = true;
	} else if (v->lists && strcmp(name, "list") == 0) {
		w->list = true;
	} else if (v->lists && strcmp(name, "type") == 0) {
		w->list = true;
		w->type = cli_value(args);
		if (!w->type) {
			fprintf(stderr, "noh %s: --type needs the name of a type\n", v->name);
			return false;
		}
	} else if (v->lists && strcmp(name, "limit") == 0) {
		if (!cli_number(cli_value(args), 1, UINT64_MAX / 2, &w->limit)) {
			fprintf(stderr, "noh %s: --limit needs a number from 1 up\n", v->name);
			return false;
		}
	} else {
		return unknown(v, name);
	}
	return true;
}

bool data_words(struct data_words *w, const struct data_verb *v, int argc, char **argv, int *code)
{
	struct cli_args args = { .count = argc, .at = 1, .words = argv };

	*w = (struct data_words){ .count = 0 };
	*code = CLI_USAGE;
	crash_means("noh: ended by a signal while reading: the image (image/data.mdb) is most likely damaged; "
		    "stop its box and run noh verify\n");
	while (cli_next(&args)) {
		if (args.name && !option(w, v, &args))
			return false;
		if (args.name)
			continue;
		if (w->count == v->most) {
			fprintf(stderr, "noh %s: one word too many: \"%s\"; usage: noh %s %s\n", v->name,
				args.value, v->name, verb_find(v->name)->words);
			return false;
		}
		w->plain[w->count++] = args.value;
	}
	if (w->count < v->least) {
		fprintf(stderr, "noh %s: %s is missing; usage: noh %s %s\n", v->name,
			w->count == 0 ? "the data directory" : "the second directory", v->name,
			verb_find(v->name)->words);
		return false;
	}
	return true;
}

int data_failed(const char *verb, int rc)
{
	fprintf(stderr, "noh %s: %s\n", verb, noh_why());
	return cli_exit_of(rc);
}

/* ── a bar ── */

enum { BAR = 40 };

void data_progress(void *user, const char *what, uint64_t done, uint64_t all)
{
	uint64_t part = all == 0 || done >= all ? BAR : done * BAR / all;

	(void)user;
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K%-8s [", what);
	for (uint64_t i = 0; i < BAR; i++)
		fputc(i < part ? '#' : '.', stderr);
	fprintf(stderr, "] %3" PRIu64 " %%", part * 100 / BAR);
	fflush(stderr);
}

void data_progress_end(void)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
}

/* While LMDB copies, only the file's length tells how far it is. */
struct watch {
	pthread_t       thread;
	bool            on;
	_Atomic bool    stop;
	char            copy[4096];
	uint64_t        all;
};

static void *watch_main(void *arg)
{
	struct watch *w = arg;
	struct stat st;

	while (!atomic_load(&w->stop)) {
		if (stat(w->copy, &st) == 0)
			data_progress(NULL, "image", (uint64_t)st.st_size, w->all);
		cli_sleep_ns(100000000);
	}
	return NULL;
}

/* from: a data directory; to: what its image is copied to, without /image/data.mdb. */
static void watch_start(struct watch *w, const char *from, const char *to, const char *ending)
{
	char image[4096];
	struct stat st;

	*w = (struct watch){ .on = false };
	snprintf(image, sizeof image, "%s/image/data.mdb", from);
	snprintf(w->copy, sizeof w->copy, "%s%s/image/data.mdb", to, ending);
	if (!isatty(STDERR_FILENO) || stat(image, &st) != 0)
		return;
	w->all = (uint64_t)st.st_size;
	w->on = pthread_create(&w->thread, NULL, watch_main, w) == 0;
}

static void watch_end(struct watch *w)
{
	atomic_store(&w->stop, true);
	if (w->on)
		pthread_join(w->thread, NULL);
	data_progress_end();
}

static const char *took(char *buf, size_t size, uint64_t began)
{
	return cli_time(buf, size, (double)(cli_now_ns() - began));
}

/* ── verify ── */

struct finding { bool json, any; };

static void found(void *user, const char *what)
{
	struct finding *f = user;

	data_progress_end();
	if (f->json) {
		printf("%s", f->any ? "," : "");
		cli_json_text(what, strlen(what));
	} else {
		printf("FOUND  %s\n", what);
	}
	fflush(stdout);
	f->any = true;
}

static void say_verified(const noh_verified *v, bool json, uint64_t began)
{
	char a[24], b[24], c[24], d[24], t[24];
	uint64_t ns = cli_now_ns() - began;

	if (json) {
		printf("],\"findings\":%" PRIu64 ",\"frames\":%" PRIu64 ",\"records\":%" PRIu64
		       ",\"segments\":%" PRIu64 ",\"journal_bytes\":%" PRIu64 ",\"torn_bytes\":%" PRIu64
		       ",\"rows\":%" PRIu64 ",\"image_bytes\":%" PRIu64 ",\"seconds\":%.6f}\n", v->findings,
		       v->frames, v->records, v->segments, v->journal_bytes, v->torn_bytes, v->rows,
		       v->image_bytes, (double)ns * 1e-9);
		return;
	}
	printf("journal  %s frames, %s records in %" PRIu64 " segments (%s)\n",
	       cli_count(a, sizeof a, v->frames), cli_count(b, sizeof b, v->records), v->segments,
	       cli_bytes(c, sizeof c, v->journal_bytes));
	if (v->torn_bytes)
		printf("         its tail is torn: %s that nobody was told of; the next start cuts them off\n",
		       cli_bytes(d, sizeof d, v->torn_bytes));
	printf("image    %s rows (%s)\n", cli_count(a, sizeof a, v->rows),
	       cli_bytes(b, sizeof b, v->image_bytes));
	if (v->findings)
		printf("%s found in %s: restore a backup (noh restore); docs/operations.md says more\n",
		       cli_count(a, sizeof a, v->findings), cli_time(t, sizeof t, (double)ns));
	else
		printf("all is well, %s\n", cli_time(t, sizeof t, (double)ns));
}

int verify_main(int argc, char **argv)
{
	static const struct data_verb verb = { "verify", 1, 1, true, false };
	struct data_words w;
	noh_verified v;
	uint64_t began = cli_now_ns();
	int code;

	if (!data_words(&w, &verb, argc, argv, &code))
		return code;
	struct finding f = { .json = w.json };

	if (w.json)
		printf("{\"found\":[");
	int rc = noh_verify(w.plain[0], found, data_progress, &f, &v);

	data_progress_end();
	if (rc != NOH_OK && v.findings == 0) {
		printf("%s", w.json ? "]}\n" : "");
		return data_failed(verb.name, rc);
	}
	say_verified(&v, w.json, began);
	return v.findings ? CLI_FAILED : CLI_FINE;
}

/* ── check ── */

struct checking { bool json, any; };

static void verdict(const noh_stored_type *t)
{
	switch (t->verdict) {
	case NOH_FITS: printf("fits\n"); break;
	case NOH_MIGRATES:
		printf("migrates to version %u, %u step%s\n", t->to, t->to - t->version,
		       t->to - t->version == 1 ? "" : "s");
		break;
	case NOH_NO_STEP: printf("CANNOT be opened: no migration from version %u\n", t->missing); break;
	case NOH_TOO_NEW: printf("CANNOT be opened: this program has version %u\n", t->to); break;
	case NOH_OTHER_SCHEMA: printf("CANNOT be opened: another schema\n"); break;
	default: printf("not a type of this program\n"); break;
	}
}

static int say_type(void *user, const noh_stored_type *t)
{
	static const char *const words[] = { "fits", "migrates", "unknown", "no step", "too new",
					     "other schema" };
	struct checking *c = user;
	char a[24], b[24];

	if (c->json) {
		printf("%s{\"type\":", c->any ? "," : "");
		cli_json_text(t->name, strlen(t->name));
		printf(",\"version\":%u,\"schema\":\"%016" PRIx64 "\",\"actors\":%" PRIu64 ",\"tail\":%" PRIu64
		       ",\"verdict\":\"%s\"}", t->version, t->schema, t->actors, t->tail, words[t->verdict]);
	} else {
		if (!c->any)
			printf("%-24s %8s %16s %14s %14s  %s\n", "type", "version", "schema", "actors",
			       "in the tail", "this program");
		printf("%-24s %8u %16" PRIx64 " %14s %14s  ", t->name, t->version, t->schema,
		       cli_count(a, sizeof a, t->actors), cli_count(b, sizeof b, t->tail));
		verdict(t);
	}
	c->any = true;
	return 0;
}

/* Against the types that noh serve has; a program with types of its own asks noh_check. */
int check_main(int argc, char **argv)
{
	static const struct data_verb verb = { "check", 1, 1, true, false };
	struct data_words w;
	uint64_t began = cli_now_ns();
	char t[24];
	int code;

	if (!data_words(&w, &verb, argc, argv, &code))
		return code;
	struct checking c = { .json = w.json };

	if (w.json)
		printf("[");
	const noh_type known[] = { *noh_counter_type(), *noh_inventory_type(), *noh_later_type() };
	int rc = noh_check(w.plain[0], known, sizeof known / sizeof *known, say_type, &c);

	if (w.json)
		printf("]\n");
	if (rc != NOH_OK)
		return data_failed(verb.name, rc);
	if (!w.json)
		printf("%schecked in %s\n", c.any ? "" : "nothing is stored; ", took(t, sizeof t, began));
	return CLI_FINE;
}

/* ── backup, restore, compact ── */

int backup_main(int argc, char **argv)
{
	static const struct data_verb verb = { "backup", 2, 2, false, false };
	struct data_words w;
	struct watch watch;
	noh_copied c;
	char a[24], b[24], d[24], t[24], users[4200];
	uint64_t began = cli_now_ns();
	int code;

	if (!data_words(&w, &verb, argc, argv, &code))
		return code;
	watch_start(&watch, w.plain[0], w.plain[1], ".partial");
	int rc = noh_backup_dir(w.plain[0], w.plain[1], &c);

	watch_end(&watch);
	if (rc != NOH_OK)
		return data_failed(verb.name, rc);
	printf("backed up %s to %s: %s actors in the image, up to frame %" PRIu64
	       "; image %s, journal %s (%" PRIu64 " frames not in the image); %s\n", w.plain[0], w.plain[1],
	       cli_count(a, sizeof a, c.actors), c.frame, cli_bytes(b, sizeof b, c.image_bytes),
	       cli_bytes(d, sizeof d, c.journal_bytes), c.tail, took(t, sizeof t, began));
	snprintf(users, sizeof users, "%s/users", w.plain[0]);
	if (access(users, F_OK) == 0)
		printf("without the accounts: copy %s by itself, as the secret it is\n", users);
	return CLI_FINE;
}

int restore_main(int argc, char **argv)
{
	static const struct data_verb verb = { "restore", 2, 2, false, false };
	struct data_words w;
	noh_copied c;
	char a[24], b[24], d[24], t[24];
	uint64_t began = cli_now_ns();
	int code;

	if (!data_words(&w, &verb, argc, argv, &code))
		return code;
	int rc = noh_restore(w.plain[0], w.plain[1], data_progress, NULL, &c);

	data_progress_end();
	if (rc != NOH_OK)
		return data_failed(verb.name, rc);
	printf("restored %s to %s: verified, %s actors in the image, up to frame %" PRIu64
	       "; image %s, journal %s; %s\n", w.plain[0], w.plain[1],
	       cli_count(a, sizeof a, c.actors), c.frame, cli_bytes(b, sizeof b, c.image_bytes),
	       cli_bytes(d, sizeof d, c.journal_bytes), took(t, sizeof t, began));
	printf("without accounts: if there were any, put their file back as %s/users, or add them again (noh user add)\n", w.plain[1]);
	return CLI_FINE;
}

int compact_main(int argc, char **argv)
{
	static const struct data_verb verb = { "compact", 1, 1, false, false };
	struct data_words w;
	struct watch watch;
	noh_copied c;
	char a[24], b[24], d[24], e[24], f[24], t[24];
	uint64_t began = cli_now_ns();
	int code;

	if (!data_words(&w, &verb, argc, argv, &code))
		return code;
	watch_start(&watch, w.plain[0], w.plain[0], "/compact.new");
	int rc = noh_compact(w.plain[0], &c);

	watch_end(&watch);
	if (rc != NOH_OK)
		return data_failed(verb.name, rc);
	printf("compacted %s: %s actors; image %s -> %s, journal %s -> %s; %s\n", w.plain[0],
	       cli_count(a, sizeof a, c.actors), cli_bytes(b, sizeof b, c.image_before),
	       cli_bytes(d, sizeof d, c.image_bytes), cli_bytes(e, sizeof e, c.journal_before),
	       cli_bytes(f, sizeof f, c.journal_bytes), took(t, sizeof t, began));
	return CLI_FINE;
}
