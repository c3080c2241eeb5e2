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
	struct ask_body b;
	noh_json value;
	const char *text;

	ask_begin(&b);
	for (unsigned i = first; i < w->count; i++) {
		const char *equals = strchr(w->plain[i], '=');
		char name[256];

		if (!equals || equals == w->plain[i] || equals - w->plain[i] >= (long)sizeof name) {
			words_wrong(w, "\"%.60s\" is neither JSON ('{...}') nor NAME=VALUE nor -", w->plain[i]);
			return NULL;
		}
		snprintf(name, sizeof name, "%.*s", (int)(equals - w->plain[i]), w->plain[i]);
		if (strpbrk(name, "\"\\")) {
			words_wrong(w, "\"%.60s\": a name with a quote or backslash needs JSON ('{...}')", w->plain[i]);
			return NULL;
		}
		if (noh_json_check(equals + 1, strlen(equals + 1), &value) == NOH_OK)
			noh_json_put_raw(&b.out, name, value.at, value.len);
		else
			ask_put(&b, name, equals + 1);
	}
	text = ask_end(&b, w);
	return text ? strdup(text) : NULL;
}

/* The message as JSON text, exactly as it was given: numbers stay what they are. NULL: said so. */
static char *message_text(const struct words *w)
{
	const char *first = w->count > 2 ? w->plain[2] : "{}";
	noh_json value;
	char *text;

	if (w->count > 3 || (w->count == 3 && *first != '{' && strcmp(first, "-") != 0))
		text = from_pairs(w, 2);
	else
		text = strcmp(first, "-") == 0 ? read_stdin(w) : strdup(first);
	if (!text)
		return NULL;
	int rc = noh_json_check(text, strlen(text), &value);

	if (rc == NOH_OK && noh_json_type_of(value) == NOH_JSON_OBJECT)
		return text;
	words_wrong(w, "the message is no JSON object: %s", rc == NOH_OK ? "it is something else" : noh_why());
	free(text);
	return NULL;
}

/* {"actor_address":..., "message_type":..., "message":<as given>, "timeout_ms" or "delay_ms":...} */
static char *request_text(const struct words *w, const char *message, const char *time_name, uint64_t ms)
{
	struct ask_body b;
	char when[64] = "", *text = NULL;

	ask_begin(&b);
	ask_put(&b, "actor_address", w->plain[0]);
	ask_put(&b, "message_type", w->plain[1]);
	const char *head = ask_end(&b, w);

	if (ms)
		snprintf(when, sizeof when, ",\"%s\":%llu", time_name, (unsigned long long)ms);
	if (head && asprintf(&text, "%.*s,\"message\":%s%s}", (int)strlen(head) - 1, head, message, when) < 0)
		text = NULL;
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

/* For people: a member a line. */
static void print_value(noh_json value, unsigned depth)
{
	noh_json_type type = noh_json_type_of(value);
	bool object = type == NOH_JSON_OBJECT;
	noh_json_walk walk = { NULL };
	noh_json name, item;
	bool some = false;

	if (!object && type != NOH_JSON_ARRAY) {
		printf("%.*s", (int)value.len, value.at);
		return;
	}
	putchar(object ? '{' : '[');
	while (noh_json_next(value, &walk, &name, &item)) {
		printf("%s\n%*s", some ? "," : "", (int)(2 * depth + 2), "");
		if (object)
			printf("%.*s: ", (int)name.len, name.at);
		print_value(item, depth + 1);
		some = true;
	}
	if (some)
		printf("\n%*s", (int)(2 * depth), "");
	putchar(object ? '}' : ']');
}

static void print_json(noh_json value)
{
	if (!value.len)
		return;
	if (isatty(STDOUT_FILENO))
		print_value(value, 0);
	else
		printf("%.*s", (int)value.len, value.at);
	putchar('\n');
}

/* later: when it arrives, and how it is taken back; nothing of one that is on its way. */
static void print_accepted(const struct words *w, noh_json later)
{
	char id[64], at[64], to[300], *slash;

	printf("accepted\n");
	snprintf(to, sizeof to, "%s", w->plain[0]);
	slash = strchr(to, ':') ? NULL : strchr(to, '/');
	if (slash)
		*slash = ':';                            /* its keeper has the one name */
	if (later.len && *ask_text(later, "id", id, sizeof id))
		printf("due %s; to take it back: noh invoke later:%s cancel id=%s\n", ask_text(later, "due_at", at, sizeof at), to, id);
}

static int message_main(const char *verb, const char *path, bool waits, int argc, char **argv)
{
	struct words w;
	struct client c;
	char header[320], *message = NULL, *body = NULL;
	struct answer a = { .text = NULL };
	uint64_t delay = 0;
	int code;

	if (!words_read(&w, verb, argc, argv, &code))
		return code;
	if (ask_open(&c, &w, &code)) {
		code = CLI_USAGE;
		if (words_duration(&w, "delay", 1, UINT64_C(366) * 86400000, &delay) && words_count(&w, 2, 10000, w.count ? "the kind of the message is" : "address and kind of the message are") &&
		    idem_header(&w, header, sizeof header))
			message = message_text(&w);
		if (message)
			body = request_text(&w, message, waits ? "timeout_ms" : "delay_ms", waits ? c.timeout_ms : delay);
		c.timeout_ms += 2000;                    /* the server's own word on it comes first */
		if (body)
			code = ask(&c, &w, path, header, body, &a);
	}
	if (a.text && !ask_printed(&w) && waits)
		print_json(ask_member(a.json, "response"));
	if (a.text && !waits && !ask_bool(a.json, "accepted"))
		code = words_failed(&w, CLI_TEMPORARY, "it was not accepted: the actor's mailbox is full; try again");
	else if (a.text && !waits && !ask_printed(&w))
		print_accepted(&w, ask_member(a.json, "later"));
	answer_free(&a);
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

typedef int shown_fn(const struct words *w, noh_json answer);

static int one_actor(const char *verb, const char *path, const char *flag, shown_fn *show, int argc, char **argv)
{
	struct words w;
	struct client c;
	struct answer a = { .text = NULL };
	struct ask_body b;
	int code;

	if (!words_read(&w, verb, argc, argv, &code))
		return code;
	if (ask_open(&c, &w, &code)) {
		code = CLI_USAGE;
		if (words_count(&w, 1, 1, "the address is")) {
			ask_begin(&b);
			ask_put(&b, "actor_address", w.plain[0]);
			if (flag && words_flag(&w, flag))
				noh_json_put_bool(&b.out, flag, true);
			if (ask_end(&b, &w))
				code = ask(&c, &w, path, "", b.text, &a);
		}
	}
	if (a.text)
		code = show(&w, a.json);
	answer_free(&a);
	words_free(&w);
	return code;
}

/* Nothing of an actor that never failed. */
static void show_failure(noh_json a)
{
	char why[600], at[64];

	if (!*ask_text(a, "last_failure_at", at, sizeof at))
		return;
	printf("%-18s %lld\n", "restarts", ask_number(a, "restarts"));
	printf("%-18s %s (%s)\n", "last failure", ask_text(a, "last_failure", why, sizeof why), at);
	if (*ask_text(a, "retry_at", at, sizeof at))
		printf("%-18s %s\n", "tried again", at);
}

static int show_status(const struct words *w, noh_json a)
{
	static const char *const texts[][2] = { { "address", "actor_address" }, { "node", "node_id" }, { "activated", "activated_at" },
						{ "last message", "last_message_at" } };
	char t[300];

	if (ask_printed(w))
		return CLI_FINE;
	for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (*ask_text(a, texts[i][1], t, sizeof t))
			printf("%-18s %s\n", texts[i][0], t);
	printf("%-18s %s\n", "state", ask_text(a, "state", t, sizeof t));
	printf("%-18s %s\n", "active", ask_bool(a, "is_active") ? "yes" : "no");
	printf("%-18s %s\n", "kept", ask_bool(a, "exists") ? "yes" : "no");
	printf("%-18s %lld%s\n", "waiting", ask_number(a, "mailbox_size"), ask_bool(a, "resting") ? " (it rests)" : "");
	printf("%-18s %lld\n", "processed", ask_number(a, "messages_processed"));
	show_failure(a);
	return CLI_FINE;
}

int status_main(int argc, char **argv)
{
	return one_actor("status", "/actor/status", NULL, show_status, argc, argv);
}

static int show_activated(const struct words *w, noh_json a)
{
	if (!ask_printed(w))
		printf("%s\n", ask_bool(a, "already_active") ? "it was active already" : "active");
	return CLI_FINE;
}

int activate_main(int argc, char **argv)
{
	return one_actor("activate", "/actor/activate", NULL, show_activated, argc, argv);
}

static int show_deactivated(const struct words *w, noh_json a)
{
	if (ask_printed(w))
		return CLI_FINE;
	if (ask_bool(a, "was_active"))
		printf("back in storage; %lld waiting messages were handled first\n", ask_number(a, "messages_drained"));
	else
		printf("it was not active\n");
	return CLI_FINE;
}

int deactivate_main(int argc, char **argv)
{
	return one_actor("deactivate", "/actor/deactivate", "force", show_deactivated, argc, argv);
}

/* ── many ── */

static void show_list(const struct words *w, noh_json answer)
{
	noh_json actors = ask_member(answer, "actors"), a;
	noh_json_walk walk = { NULL };
	char address[300], at[64];

	if (ask_items(actors) == 0 && !*ask_text(answer, "next_cursor", at, sizeof at)) {
		printf("none%s\n", words_flag(w, "all") ? "" : " is active; --all lists the stored ones as well");
		return;
	}
	printf("%-40s %-7s %9s  %s\n", "ACTOR", "ACTIVE", "WAITING", "LAST MESSAGE");
	while (actors.len && noh_json_next(actors, &walk, NULL, &a)) {
		ask_text(a, "actor_address", address, sizeof address);
		ask_text(a, "last_message_at", at, sizeof at);
		printf("%-40s %-7s %9lld  %s\n", address, ask_bool(a, "is_active") ? "yes" : "no", ask_number(a, "mailbox_size"), at);
	}
	ask_more(w, answer);
}

int list_main(int argc, char **argv)
{
	struct words w;
	struct client c;
	struct answer a = { .text = NULL };
	struct ask_body b;
	int code;

	if (!words_read(&w, "list", argc, argv, &code))
		return code;
	ask_begin(&b);
	if (ask_open(&c, &w, &code)) {
		code = CLI_USAGE;
		if (words_count(&w, 0, 0, "") && ask_page(&b, &w)) {
			ask_put(&b, "actor_type", words_text(&w, "type"));
			noh_json_put_bool(&b.out, "active_only", !words_flag(&w, "all"));
			if (ask_end(&b, &w))
				code = ask(&c, &w, "/actor/list", "", b.text, &a);
		}
	}
	if (a.text && !ask_printed(&w))
		show_list(&w, a.json);
	answer_free(&a);
	words_free(&w);
	return code;
}

static void show_pool(noh_json p)
{
	noh_json nodes = ask_member(p, "nodes"), percent = ask_member(p, "utilization_percent"), n;
	noh_json_walk walk = { NULL };
	char id[80], status[40], at[64];

	printf("%lld of %lld nodes healthy; %lld of %lld actors active (%.*s %%)\n\n", ask_number(p, "healthy_nodes"),
	       ask_number(p, "total_nodes"), ask_number(p, "total_actors_active"), ask_number(p, "total_capacity"),
	       (int)percent.len, percent.len ? percent.at : "");
	printf("%-24s %-12s %12s %12s  %s\n", "NODE", "STATUS", "ACTIVE", "CAPACITY", "LAST HEARTBEAT");
	while (nodes.len && noh_json_next(nodes, &walk, NULL, &n)) {
		ask_text(n, "node_id", id, sizeof id);
		ask_text(n, "status", status, sizeof status);
		ask_text(n, "last_heartbeat", at, sizeof at);
		printf("%-24s %-12s %12lld %12lld  %s\n", id, status, ask_number(n, "actors_active"), ask_number(n, "actors_capacity"), at);
	}
}

int pool_main(int argc, char **argv)
{
	struct words w;
	struct client c;
	struct answer a = { .text = NULL };
	int code;

	if (!words_read(&w, "pool", argc, argv, &code))
		return code;
	if (ask_open(&c, &w, &code))
		code = words_count(&w, 0, 0, "") ? ask(&c, &w, "/actor/pool/status", "", "{}", &a) : CLI_USAGE;
	if (a.text && !ask_printed(&w))
		show_pool(a.json);
	answer_free(&a);
	words_free(&w);
	return code;
}
