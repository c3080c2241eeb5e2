/* tools/sim.c - noh sim: hands over to noh-sim, the program beside this one.
 *
 * The simulator is a build of its own: LMDB from its archive with its file calls wrapped, and bugs put in
 * on purpose that it can be told to find. None of that belongs into the program that keeps data.
 */
#include "tools/sim.h"

#include "tools/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int help(void)
{
	printf("usage: noh sim [--seed N] [--seeds K] [--minutes M] [--seconds S] [--loud]\n\n"
	       "Runs whole boxes from seeds N, N+1, ...: one thread, a virtual clock, a disk that loses what was\n"
	       "not synced, tears, fails and fills up, a process that is killed. Checks that nothing which was\n"
	       "answered is lost, nothing happens twice, and everything ends. The same seed takes the same course.\n\n"
	       "  noh sim --seed 42                  one seed\n"
	       "  noh sim --seed 42 --loud           what happened in it, step by step\n"
	       "  noh sim --seed 1 --minutes 5       as many as five minutes allow\n"
	       "  noh sim --plants                   do planted bugs get found?\n");
	return CLI_FINE;
}

int sim_main(int argc, char **argv)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "-sim");

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return help();
	if (n <= 0) {
		fprintf(stderr, "noh sim: cannot tell where this program is: %s\n", strerror(errno));
		return CLI_FAILED;
	}
	memcpy(path + n, "-sim", sizeof "-sim");
	execv(path, argv);
	fprintf(stderr, "noh sim: %s: %s; \"make sim\" builds it\n", path, strerror(errno));
	return CLI_FAILED;
}
