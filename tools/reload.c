/* tools/reload.c - the client of POST /admin/config/reload, over the server's own Unix socket. */
#include "tools/reload.h"

#include "tools/client.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 65000 };                    /* the server gives up after 60 s */

/* ── what came of it ── */

/* "kind TAB field TAB field ..." */
static void tell_line(char *line, unsigned counts[2])
{
	char *field[5] = { "", "", "", "", "" };

	for (int i = 0; i < 5 && line; i++)
		field[i] = strsep(&line, "\t");
	if (strcmp(field[0], "changed") == 0 || strcmp(field[0], "restart") == 0) {
		bool waits = field[0][0] == 'r';

		counts[waits]++;
		printf("%-8s %s: \"%s\" -> \"%s\"  (%s)\n", waits ? "restart" : "changed", field[1], field[2], field[3], field[4]);
	} else {
		printf("%-8s %s\n", field[0], field[1]);
	}
}

static void tell(char *body, bool good)
{
	unsigned counts[2] = { 0, 0 };

	for (char *line; (line = strsep(&body, "\n")) != NULL; )
		if (*line)
			tell_line(line, counts);
	if (!good)
		printf("nothing was changed\n");
	else if (counts[0] + counts[1] == 0)
		printf("read again: nothing has changed\n");
	else if (counts[1])
		printf("%u changed, %u as before until a restart\n", counts[0], counts[1]);
	else
		printf("%u changed\n", counts[0]);
}

static int judge(struct client_reply *r, bool json)
{
	bool told = r->status == 200 || r->status == 422;
	int code = r->status == 200 ? CLI_FINE : strstr(r->body, RELOAD_STOPPING) ? CLI_TEMPORARY : CLI_USAGE;

	if (told && json)
		fputs(r->body, stdout);
	else if (told)
		tell(r->body, r->status == 200);
	if (told)
		return code;
	fprintf(stderr, "noh config reload: the server says %d: %s\n", r->status, r->body);
	return r->status == 503 || r->status == 504 ? CLI_TEMPORARY : CLI_FAILED;
}

/* ── the verb ── */

static void say_nothing(void *user, bool wrong, const char *sentence)
{
	(void)user, (void)wrong, (void)sentence;
}

int reload_request(struct settings *s, bool json)
{
	char room[4200], why[600];
	struct client c = { .timeout_ms = PATIENCE_MS };
	struct client_reply r;
	const char *path;
	int code;

	s->say = say_nothing;
	(void)settings_load(s, environ);
	path = settings_http_path(s, room, sizeof room);
	if (!path) {
		fprintf(stderr, "noh config reload: there is no Unix socket for HTTP (http.unix, or the data directory); send the "
			"server SIGHUP instead\n");
		return CLI_USAGE;
	}
	if (!client_set_unix(&c, path, why, sizeof why)) {
		fprintf(stderr, "noh config reload: %s %s\n", path, why);
		return CLI_USAGE;
	}
	enum client_result result = client_call(&c, "POST", "/admin/config/reload",
						json ? "Accept: application/json\r\n" : "Accept: text/plain\r\n", NULL, 0, &r,
						why, sizeof why);

	if (result != CLIENT_OK) {
		fprintf(stderr, "noh config reload: %s%s\n", why,
			result == CLIENT_UNREACHABLE ? "" : "; its log says what came of it");
		return CLI_TEMPORARY;
	}
	code = judge(&r, json);
	client_reply_free(&r);
	return code;
}
