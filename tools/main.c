/* tools/main.c - the one binary: noh <verb>.
 *
 * The verbs are rows of a table (verbs_table.c). Each is a function that reads its own words and returns the exit
 * code: 0 fine, 1 failure, 2 usage, 3 not found, 4 no answer in time, 75 try again later.
 */
#include "tools/cli.h"
#include "tools/verbs.h"

#include <string.h>

int main(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		verbs_overview();
		return CLI_FINE;
	}
	if (strcmp(argv[1], "--version") == 0)
		return version_main(1, argv);
	return verbs_run(argc, argv);
}
