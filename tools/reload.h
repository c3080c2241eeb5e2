/* tools/reload.h - noh config reload: ask a running server to read its settings again, and tell what came of it.
 *
 * Threads  one.
 * Blocks   as long as the server takes, a minute at most.
 */
#ifndef NOH_TOOLS_RELOAD_H
#define NOH_TOOLS_RELOAD_H

#include "tools/settings.h"

/* Finds the server by its Unix socket for HTTP, as flags, environment and (if it can be read) the file say: that it
 * has errors is what the server is to tell. The exit code. */
/* What a server that stops answers: try again when there is one. */
#define RELOAD_STOPPING "the server is stopping"

int reload_request(struct settings *s, bool json);

#endif
