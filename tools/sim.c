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

int sim_main(int argc, char **argv)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "-sim");

	(void)argc;
	if (n <= 0) {
		fprintf(stderr, "noh sim: cannot tell where this program is: %s\n", strerror(errno));
		return CLI_FAILED;
	}
	memcpy(path + n, "-sim", sizeof "-sim");
	execv(path, argv);
	fprintf(stderr, "noh sim: %s: %s; \"make sim\" builds it\n", path, strerror(errno));
	return CLI_FAILED;
}
