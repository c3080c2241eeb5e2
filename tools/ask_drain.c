/* tools/ask_drain.c - noh drain: a running server finishes what it has, and ends; how far it is meanwhile.
 *
 * One call waits for the end, on a thread of its own: so its outcome is known even if the server goes right after it. This
 * thread asks how far it is.
 */
#include "tools/ask.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLACK_MS = 30000, LOOK_US = 100000, GONE_TRIES = 100, STEPS_A_LINE = 10 };

struct drain {
	struct client       client;
	char                body[96];
	enum client_result  result;
	struct client_reply reply;
	char                why[600];
	_Atomic bool        over;
};

static void *wait_for_end(void *arg)
{
	struct drain *d = arg;

	d->result = client_call(&d->client, "POST", "/admin/drain", "", d->body, strlen(d->body),
				&d->reply, d->why, sizeof d->why);
	atomic_store(&d->over, true);
	return NULL;
}

/* On a terminal one line that changes; elsewhere one a second. */
static void show(noh_json state, unsigned step)
{
	bool terminal = isatty(STDERR_FILENO);

	if (!terminal && step % STEPS_A_LINE != 0)
		return;
	fprintf(stderr, "%s%lld actors, %lld messages left, %lld s to go%s", terminal ? "\r\033[K" : "", ask_number(state, "actors"),
		ask_number(state, "messages"), ask_number(state, "left_ms") / 1000, terminal ? "" : "\n");
}

static void watch(struct drain *d)
{
	struct client c = d->client;
	bool shown = false;

	c.timeout_ms = 2000;
	for (unsigned step = 1; !atomic_load(&d->over); step++) {
		struct client_reply r = { .body = NULL };
		noh_json state;
		char why[600];

		usleep(LOOK_US);
		if (atomic_load(&d->over) || client_call(&c, "POST", "/admin/drain/status", "", "{}",
							 2, &r, why, sizeof why) != CLIENT_OK)
			continue;
		if (r.status == 200 && noh_json_check(r.body, r.len, &state) == NOH_OK && ask_bool(state, "draining")) {
			show(state, step);
			shown = true;
		}
		client_reply_free(&r);
	}
	if (shown && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
}

/* It has told what came of it, and ends: until its door is shut. */
static bool is_gone(const struct drain *d)
{
	struct client c = d->client;
	char why[600];

	c.timeout_ms = 2000;
	for (int i = 0; i < GONE_TRIES; i++) {
		struct client_reply r = { .body = NULL };
		enum client_result result = client_call(&c, "GET", "/healthz", "", "", 0, &r, why, sizeof why);

		if (result == CLIENT_OK)
			client_reply_free(&r);
		if (result == CLIENT_UNREACHABLE)
			return true;
		usleep(LOOK_US);
	}
	return false;
}

static int judge(struct drain *d, const struct words *w)
{
	noh_json problem = { NULL, 0 };
	char detail[600] = "";

	if (d->result != CLIENT_OK)
		return words_failed(w, d->result == CLIENT_UNREACHABLE ? CLI_TEMPORARY : CLI_FAILED, "%s%s", d->why,
				    d->result == CLIENT_UNREACHABLE ? "" : "; its log says what came of the drain");
	if (words_flag(w, "json") && d->reply.len)
		printf("%s\n", d->reply.body);
	if (d->reply.status == 200) {
		bool gone = is_gone(d);

		if (!ask_printed(w))
			printf(gone ? "drained: nothing is left, and the server has ended\n"
				    : "drained: nothing is left; the server still answers, and will end\n");
		return CLI_FINE;
	}
	if (noh_json_check(d->reply.body, d->reply.len, &problem) == NOH_OK)
		ask_text(problem, "detail", detail, sizeof detail);
	words_failed(w, 0, "%s", *detail ? detail : "the server does not say why");
	return d->reply.status == 504 ? CLI_FAILED : ask_code(d->reply.status);
}

int drain_main(int argc, char **argv)
{
	uint64_t deadline = 30000;
	struct drain *d;
	struct words w;
	pthread_t thread;
	int code;

	if (!words_read(&w, "drain", argc, argv, &code))
		return code;
	d = calloc(1, sizeof *d);
	if (d && words_count(&w, 0, 0, "") && words_duration(&w, "deadline", 1, 86400000, &deadline) &&
	    ask_open(&d->client, &w, &code)) {
		d->client.timeout_ms = deadline + SLACK_MS;
		snprintf(d->body, sizeof d->body, "{\"deadline_ms\":%llu,\"wait\":true}", (unsigned long long)deadline);
		if (pthread_create(&thread, NULL, wait_for_end, d) == 0) {
			watch(d);
			pthread_join(thread, NULL);
			code = judge(d, &w);
			client_reply_free(&d->reply);
		} else {
			code = words_failed(&w, CLI_FAILED, "no thread to wait for the server with");
		}
	} else {
		code = CLI_USAGE;
	}
	free(d);
	words_free(&w);
	return code;
}
