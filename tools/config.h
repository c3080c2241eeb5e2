/* tools/config.h - noh config: the settings, shown and checked. */
#ifndef NOH_TOOLS_CONFIG_H
#define NOH_TOOLS_CONFIG_H

#include <stdbool.h>

int config_main(int argc, char **argv);   /* the exit code; argv[0] is "config" */

/* A settings_say_fn: to stderr, "noh VERB: sentence". verb is a string. */
void config_say(void *verb, bool is_wrong, const char *sentence);

#endif
