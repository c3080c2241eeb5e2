/* tools/main.c - the one binary: noh <verb>.
 *
 * Each verb is a function that parses its own words and returns the exit code:
 * 0 fine, 1 failure, 2 usage, 3 not found, 75 try again later.
 */
#include "bench/bench.h"
#include "noh.h"
#include "tools/cli.h"
#include "tools/config.h"
#include "tools/data.h"
#include "tools/demo.h"
#include "tools/serve.h"
#include "tools/sim.h"
#include "tools/trace.h"
#include "tools/user.h"

#include <stdio.h>
#include <string.h>

static int help_main(int argc, char **argv);
static int version_main(int argc, char **argv);

static const struct verb {
	const char *group;               /* of this and those after it; NULL: as before */
	const char *name;
	const char *about;
	int (*main)(int argc, char **argv);
} verbs[] = {
	{ "Serve", "serve", "counters and inventory for every Redis client", serve_main },
	{ NULL, "user", "who may use it: add, list, revoke", user_main },
	{ NULL, "config", "its settings: show, check", config_main },
	{ NULL, "trace", "where a request was, and how long: show, list", trace_main },
	{ "Care for a data directory", "inspect", "what it holds, or one actor of it", inspect_main },
	{ NULL, "verify", "read every byte: is all well?", verify_main },
	{ NULL, "check", "which types and versions are stored; can they be opened?", check_main },
	{ NULL, "backup", "copy it while its box runs", backup_main },
	{ NULL, "restore", "check a backup and copy it back", restore_main },
	{ NULL, "compact", "fold the journal and shrink the image; offline", compact_main },
	{ "Try and measure", "demo", "one minute with a million actors, live", demo_main },
	{ NULL, "bench", "from ping-pong to ten million actors, all verified", bench_main },
	{ NULL, "sim", "whole boxes from seeds: crashes, power cuts, full disks; nothing may be lost", sim_main },
	{ "Help", "help", "this overview; noh help VERB for one verb", help_main },
	{ NULL, "version", "print the version", version_main },
};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

static void overview(void)
{
	printf("noh %s - counters, inventory and actors of your own: on all cores, on disk when answered\n\n"
	       "usage: noh VERB [options]\n", noh_version());
	for (unsigned i = 0; i < VERBS; i++) {
		if (verbs[i].group)
			printf("\n%s\n", verbs[i].group);
		printf("  %-9s %s\n", verbs[i].name, verbs[i].about);
	}
	printf("\nTry it\n"
	       "  noh serve                    then: redis-cli -p 7411 INCR hits\n"
	       "  noh demo                     watch it work\n"
	       "  noh bench ping-pong          one number in two seconds\n"
	       "  noh inspect DIR              what a box has stored; noh verify DIR: is it whole\n"
	       "  cc app.c $(pkg-config --cflags --libs noh)     your own: noh.h, examples/\n");
}

static const struct verb *find(const char *name)
{
	for (unsigned i = 0; i < VERBS; i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

static int unknown(const char *name)
{
	const char *names[VERBS];

	for (unsigned i = 0; i < VERBS; i++)
		names[i] = verbs[i].name;
	const char *near = cli_nearest(name, names, VERBS);
	if (near != NULL)
		fprintf(stderr, "noh: there is no verb \"%s\"; did you mean noh %s?\n", name, near);
	else
		fprintf(stderr, "noh: there is no verb \"%s\"; \"noh help\" lists them\n", name);
	return CLI_USAGE;
}

static int help_main(int argc, char **argv)
{
	if (argc < 2 || argv[1][0] == '-') {
		overview();
		return CLI_FINE;
	}
	const struct verb *v = find(argv[1]);

	if (v == NULL)
		return unknown(argv[1]);
	if (v->main == help_main || v->main == version_main) {
		printf("usage: noh %s\n%s\n", v->name, v->about);
		return CLI_FINE;
	}
	char ask[] = "--help", *words[] = { argv[1], ask, NULL };
	return v->main(2, words);
}

static int version_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("noh %s\n", noh_version());
	return CLI_FINE;
}

int main(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		overview();
		return CLI_FINE;
	}
	if (strcmp(argv[1], "--version") == 0)
		return version_main(argc - 1, argv + 1);
	const struct verb *v = find(argv[1]);

	if (v == NULL)
		return unknown(argv[1]);
	return v->main(argc - 1, argv + 1);
}
