/* tools/ask_actor.c - noh send, invoke, status, list, activate, deactivate, pool. */
#include "tools/ask.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE_MAX = 16 << 20 };

/* ── the message ── */

/* All of stdin; NULL: said so. */
static char *read_stdin(const struct words *w)
{
	size_t room = 65536, len = 0, n;
	char *text = malloc(room), *larger;

	while (text && (n = fread(text + len, 1, room - len - 1, stdin)) > 0) {
		len += n;
		if (len > MESSAGE_MAX || memchr(text, 0, len))
			break;
		if (len + 1 < room)
			continue;
		larger = realloc(text, room *= 2);
		if (!larger)
			free(text);
		text = larger;
	}
	if (text)
		text[len] = 0;
	if (!text || len > MESSAGE_MAX || strlen(text) != len) {
		words_wrong(w, "the message on stdin is no text of at most %d MiB", MESSAGE_MAX >> 20);
		free(text);
		return NULL;
	}
	return text;
}

/* by=5 name=ann list=[1,2]: what is JSON counts as that, the rest is text. */
static char *from_pairs(const struct words *w, unsigned first)
{
	json_t *message = json_object();
	char *text = NULL;

	for (unsigned i = first; i < w->count; i++) {
		const char *equals = strchr(w->plain[i], '=');
		char name[256];

		if (!equals || equals == w->plain[i] || equals - w->plain[i] >= (long)sizeof name) {
			words_wrong(w, "\"%.60s\" is neither JSON ('{...}') nor NAME=VALUE nor -", w->plain[i]);
			json_decref(message);
			return NULL;
		}
		snprintf(name, sizeof name, "%.*s", (int)(equals - w->plain[i]), w->plain[i]);
		json_t *value = json_loads(equals + 1, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);

		if (!value)
			value = json_string(equals + 1);
		if (!value || json_object_get(message, name) || json_object_set_new(message, name, value) != 0) {
			words_wrong(w, "\"%.60s\": %s", w->plain[i], value ? "said twice" : "not UTF-8");
			json_decref(message);
			return NULL;
		}
	}
	text = json_dumps(message, JSON_COMPACT);
	json_decref(message);
	return text;
}

/* The message as JSON text, exactly as it was given if it was: numbers stay what they are. NULL: said so. */
static char *message_text(const struct words *w)
{
	const char *first = w->count > 2 ? w->plain[2] : "{}";
	json_error_t error;
	char *text;

	if (w->count > 3 || (w->count == 3 && *first != '{' && strcmp(first, "-") != 0))
		return from_pairs(w, 2);
	text = strcmp(first, "-") == 0 ? read_stdin(w) : strdup(first);
	if (!text)
		return NULL;
	json_t *parsed = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!json_is_object(parsed)) {
		words_wrong(w, "the message is no JSON object: %s", parsed ? "it is a list" : error.text);
		free(text);
		text = NULL;
	}
	json_decref(parsed);
	return text;
}

/* {"actor_address":..., "message_type":..., "message":<as given>, "timeout_ms":...} */
static char *request_text(const struct words *w, const char *message, uint64_t timeout_ms)
{
	json_t *address = json_string(w->plain[0]), *kind = json_string(w->plain[1]);
	char *a = json_dumps(address, JSON_ENCODE_ANY), *k = json_dumps(kind, JSON_ENCODE_ANY), *text = NULL;
	char timeout[48] = "";

	if (timeout_ms)
		snprintf(timeout, sizeof timeout, ",\"timeout_ms\":%llu", (unsigned long long)timeout_ms);
	if (!a || !k || asprintf(&text, "{\"actor_address\":%s,\"message_type\":%s,\"message\":%s%s}", a, k, message, timeout) < 0) {
		words_wrong(w, "an address and the name of a message are UTF-8");
		text = NULL;
	}
	free(a);
	free(k);
	json_decref(address);
	json_decref(kind);
	return text;
}

static bool idem_header(const struct words *w, char *header, size_t size)
{
	const char *key = words_text(w, "idem");

	header[0] = 0;
	if (!key)
		return true;
	for (const char *c = key; *c; c++)
		if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\') {
			words_wrong(w, "--idem: a key has printable ASCII characters, but no \" and no \\");
			return false;
		}
	if (!*key || strlen(key) > 255) {
		words_wrong(w, "--idem: a key has 1 to 255 characters");
		return false;
	}
	snprintf(header, size, "Idempotency-Key: \"%s\"\r\n", key);
	return true;
}

static void print_json(const json_t *value)
{
	char *text = json_dumps(value, (isatty(STDOUT_FILENO) ? JSON_INDENT(2) : 0) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

	if (text)
		printf("%s\n", text);
	free(text);
}

static int message_main(const char *verb, const char *path, bool waits, int argc, char **argv)
{
	struct words w;
	struct client c;
	char header[320], *message = NULL, *body = NULL;
	json_t *answer = NULL;
	int code;

	if (!words_read(&w, verb, argc, argv, &code))
		return code;
	if (ask_open(&c, &w, &code)) {
		code = CLI_USAGE;
		if (words_count(&w, 2, 10000, w.count ? "the kind of the message is" : "address and kind of the message are") &&
		    idem_header(&w, header, sizeof header))
			message = message_text(&w);
		if (message)
			body = request_text(&w, message, waits ? c.timeout_ms : 0);
		c.timeout_ms += 2000;                    /* the server's own word on it comes first */
		if (body)
			code = ask_raw(&c, &w, path, header, body, &answer);
	}
	if (answer && !ask_printed(&w) && waits)
		print_json(json_object_get(answer, "response"));
	if (answer && !waits && !ask_bool(answer, "accepted"))
		code = words_failed(&w, CLI_TEMPORARY, "it was not accepted: the actor's mailbox is full; try again");
	else if (answer && !waits && !ask_printed(&w))
		printf("accepted\n");
	json_decref(answer);
	free(message);
	free(body);
	words_free(&w);
	return code;
}

int send_main(int argc, char **argv)
{
	return message_main("send", "/actor/send", false, argc, argv);
}

int invoke_main(int argc, char **argv)
{
	return message_main("invoke", "/actor/invoke", true, argc, argv);
}

/* ── one actor ── */

typedef int shown_fn(const struct words *w, const json_t *answer);

static int one_actor(const char *verb, const char *path, const char *flag, shown_fn *show, int argc, char **argv)
{
	struct words w;
	struct client c;
	json_t *answer = NULL;
	int code;

	if (!words_read(&w, verb, argc, argv, &code))
		return code;
	if (ask_open(&c, &w, &code)) {
		code = CLI_USAGE;
		if (words_count(&w, 1, 1, "the address is")) {
			json_t *body = json_pack("{ss}", "actor_address", w.plain[0]);

			if (body && flag && words_flag(&w, flag))
				json_object_set_new(body, flag, json_true());
			code = ask(&c, &w, path, "", body, &answer);
		}
	}
	if (answer)
		code = show(&w, answer);
	json_decref(answer);
	words_free(&w);
	return code;
}

static int show_status(const struct words *w, const json_t *a)
{
	char t[300];

	if (ask_printed(w))
		return CLI_FINE;
	printf("%-18s %s\n", "address", ask_shown(t, sizeof t, ask_text(a, "actor_address")));
	printf("%-18s %s\n", "active", ask_bool(a, "is_active") ? "yes" : "no");
	printf("%-18s %s\n", "node", ask_shown(t, sizeof t, ask_text(a, "node_id")));
	if (*ask_text(a, "activated_at"))
		printf("%-18s %s\n", "activated", ask_shown(t, sizeof t, ask_text(a, "activated_at")));
	if (*ask_text(a, "last_message_at"))
		printf("%-18s %s\n", "last message", ask_shown(t, sizeof t, ask_text(a, "last_message_at")));
	printf("%-18s %lld\n", "messages handled", ask_number(a, "messages_processed"));
	printf("%-18s %lld\n", "waiting", ask_number(a, "mailbox_size"));
	return CLI_FINE;
}

int status_main(int argc, char **argv)
{
	return one_actor("status", "/actor/status", NULL, show_status, argc, argv);
}

static int show_activated(const struct words *w, const json_t *a)
{
	if (!ask_printed(w))
		printf("%s\n", ask_bool(a, "already_active") ? "it was active already" : "active");
	return CLI_FINE;
}

int activate_main(int argc, char **argv)
{
	return one_actor("activate", "/actor/activate", NULL, show_activated, argc, argv);
}

static int show_deactivated(const struct words *w, const json_t *a)
{
	bool was = ask_bool(a, "was_active");

	if (!ask_printed(w) && was)
		printf("back in storage; %lld waiting messages were handled first\n", ask_number(a, "messages_drained"));
	return was ? CLI_FINE : words_failed(w, CLI_NOT_FOUND, "it was not active");
}

int deactivate_main(int argc, char **argv)
{
	return one_actor("deactivate", "/actor/deactivate", "force", show_deactivated, argc, argv);
}

/* ── many ── */

static void show_list(const struct words *w, const json_t *answer)
{
	const json_t *actors = json_object_get(answer, "actors"), *a;
	char address[300], at[64];
	size_t i;

	if (json_array_size(actors) == 0 && !*ask_text(answer, "next_cursor")) {
		printf("none%s\n", words_flag(w, "all") ? "" : " is active; --all lists the stored ones as well");
		return;
	}
	printf("%-40s %-7s %9s %12s  %s\n", "ACTOR", "ACTIVE", "WAITING", "HANDLED", "LAST MESSAGE");
	json_array_foreach(actors, i, a)
		printf("%-40s %-7s %9lld %12lld  %s\n", ask_shown(address, sizeof address, ask_text(a, "actor_address")),
		       ask_bool(a, "is_active") ? "yes" : "no", ask_number(a, "mailbox_size"), ask_number(a, "messages_processed"),
		       ask_shown(at, sizeof at, ask_text(a, "last_message_at")));
	ask_more(w, answer);
}

int list_main(int argc, char **argv)
{
	struct words w;
	struct client c;
	json_t *answer = NULL, *body;
	int code;

	if (!words_read(&w, "list", argc, argv, &code))
		return code;
	if (ask_open(&c, &w, &code)) {
		code = CLI_USAGE;
		body = words_count(&w, 0, 0, "") ? ask_page(&w) : NULL;
		if (body) {
			if (words_flag(&w, "type"))
				json_object_set_new(body, "actor_type", json_string(words_text(&w, "type")));
			json_object_set_new(body, "active_only", json_boolean(!words_flag(&w, "all")));
			code = ask(&c, &w, "/actor/list", "", body, &answer);
		}
	}
	if (answer && !ask_printed(&w))
		show_list(&w, answer);
	json_decref(answer);
	words_free(&w);
	return code;
}

static void show_pool(const json_t *p)
{
	const json_t *nodes = json_object_get(p, "nodes"), *n;
	char id[80], status[40], at[64];
	size_t i;

	printf("%lld of %lld nodes healthy; %lld of %lld actors active (%.1f %%)\n\n", ask_number(p, "healthy_nodes"),
	       ask_number(p, "total_nodes"), ask_number(p, "total_actors_active"), ask_number(p, "total_capacity"),
	       json_number_value(json_object_get(p, "utilization_percent")));
	printf("%-24s %-12s %12s %12s  %s\n", "NODE", "STATUS", "ACTIVE", "CAPACITY", "LAST HEARTBEAT");
	json_array_foreach(nodes, i, n)
		printf("%-24s %-12s %12lld %12lld  %s\n", ask_shown(id, sizeof id, ask_text(n, "node_id")),
		       ask_shown(status, sizeof status, ask_text(n, "status")), ask_number(n, "actors_active"),
		       ask_number(n, "actors_capacity"), ask_shown(at, sizeof at, ask_text(n, "last_heartbeat")));
}

int pool_main(int argc, char **argv)
{
	struct words w;
	struct client c;
	json_t *answer = NULL;
	int code;

	if (!words_read(&w, "pool", argc, argv, &code))
		return code;
	if (ask_open(&c, &w, &code))
		code = words_count(&w, 0, 0, "") ? ask(&c, &w, "/actor/pool/status", "", json_object(), &answer) : CLI_USAGE;
	if (answer && !ask_printed(&w))
		show_pool(answer);
	json_decref(answer);
	words_free(&w);
	return code;
}
