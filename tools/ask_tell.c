/* tools/ask_tell.c - noh describe, tree, quarantine: how actors are, and who belongs to whom. */
#include "tools/ask.h"

#include <string.h>

/* ── one actor ── */

static const char *or_dash(const char *text)
{
	return *text ? text : "-";
}

static void show_actor(noh_json a)
{
	noh_json events = ask_member(a, "events"), e;
	noh_json_walk walk = { NULL };
	char text[600], at[64];

	printf("%-18s %s\n", "address", ask_text(a, "actor_address", text, sizeof text));
	printf("%-18s %s", "state", ask_text(a, "state", text, sizeof text));
	printf(*ask_text(a, "retry_at", at, sizeof at) ? "; tried again at %s\n" : "\n", at);
	printf("%-18s %lld\n", "desired revision", ask_number(a, "desired_revision"));
	printf("%-18s %lld\n", "observed revision", ask_number(a, "observed_revision"));
	printf("%-18s %s\n", "reconcile error", or_dash(ask_text(a, "reconcile_error", text, sizeof text)));
	printf("%-18s %lld\n", "restarts", ask_number(a, "restarts"));
	printf("%-18s %s", "last failure", or_dash(ask_text(a, "last_failure", text, sizeof text)));
	printf(*ask_text(a, "last_failure_at", at, sizeof at) ? " (%s)\n" : "\n", at);
	printf("%-18s %lld\n", "mailbox depth", ask_number(a, "mailbox_size"));
	printf("%-18s %s\n", "kept", ask_bool(a, "exists") ? "yes" : "no");
	printf("%-18s %s\n", "parent", or_dash(ask_text(a, "parent", text, sizeof text)));
	printf("%-18s %lld\n", "children", ask_number(a, "children"));
	if (*ask_text(a, "activated_at", at, sizeof at))
		printf("%-18s %s\n", "activated", at);
	if (*ask_text(a, "last_message_at", at, sizeof at))
		printf("%-18s %s\n", "last message", at);
	printf("\n%s\n", ask_items(events) ? "last events" : "no events of it are kept");
	while (events.len && noh_json_next(events, &walk, NULL, &e))
		ask_print_event(e);
}

int describe_main(int argc, char **argv)
{
	char path[ASK_PATH] = "/actor/describe";
	struct words w;
	struct client c;
	struct answer a = { .text = NULL };
	uint64_t n = 0;
	int code;

	if (!words_read(&w, "describe", argc, argv, &code))
		return code;
	if (ask_open(&c, &w, &code)) {
		code = CLI_USAGE;
		if (words_count(&w, 1, 1, "the address is") && words_number(&w, "events", 0, 100, &n) &&
		    ask_query(&w, path, "actor", w.plain[0]) && ask_query(&w, path, "events", words_text(&w, "events")))
			code = ask_get(&c, &w, path, &a);
	}
	if (a.text && !ask_printed(&w))
		show_actor(a.json);
	answer_free(&a);
	words_free(&w);
	return code;
}

/* ── the tree ── */

enum { DEPTH_SHOWN = 60 };

static void show_tree(const struct words *w, noh_json answer)
{
	noh_json actors = ask_member(answer, "actors"), a;
	noh_json_walk walk = { NULL };
	bool open[DEPTH_SHOWN] = { false };      /* at this depth there are more to come */
	char address[300], state[40], why[300];

	if (ask_items(actors) == 0)
		printf("no actor supervises another\n");
	while (actors.len && noh_json_next(actors, &walk, NULL, &a)) {
		long long depth = ask_number(a, "depth"), restarts = ask_number(a, "restarts");
		bool last = ask_bool(a, "last");

		if (depth < 0 || depth >= DEPTH_SHOWN)
			depth = DEPTH_SHOWN - 1;
		for (long long i = 1; i < depth; i++)
			printf(open[i] ? "│  " : "   ");
		if (depth)
			printf(last ? "└─ " : "├─ ");
		open[depth] = !last;
		printf("%s  %s", ask_text(a, "actor_address", address, sizeof address), ask_text(a, "state", state, sizeof state));
		if (restarts)
			printf(", %lld restart%s", restarts, restarts == 1 ? "" : "s");
		if (*ask_text(a, "last_failure", why, sizeof why) && strcmp(state, "active") != 0)
			printf(": %s", why);
		putchar('\n');
	}
	if (!ask_bool(answer, "complete"))
		fprintf(stderr, "noh %s: there are more: --limit N, or begin further down\n", w->full);
}

int tree_main(int argc, char **argv)
{
	char path[ASK_PATH] = "/actor/tree";
	struct words w;
	struct client c;
	struct answer a = { .text = NULL };
	uint64_t n = 0;
	int code;

	if (!words_read(&w, "tree", argc, argv, &code))
		return code;
	if (ask_open(&c, &w, &code)) {
		code = CLI_USAGE;
		if (words_count(&w, 0, 1, "") && words_number(&w, "limit", 1, 10000, &n) &&
		    ask_query(&w, path, "root", w.count ? w.plain[0] : NULL) && ask_query(&w, path, "limit", words_text(&w, "limit")))
			code = ask_get(&c, &w, path, &a);
	}
	if (a.text && !ask_printed(&w))
		show_tree(&w, a.json);
	answer_free(&a);
	words_free(&w);
	return code;
}

/* ── quarantine ── */

static void show_list(const struct words *w, noh_json answer)
{
	noh_json list = ask_member(answer, "quarantined"), a;
	noh_json_walk walk = { NULL };
	char address[300], state[40], at[64], why[300];

	if (ask_items(list) == 0) {
		printf("none\n");
		return;
	}
	printf("%-40s %-12s %8s %-25s %s\n", "ACTOR", "STATE", "RESTARTS", "FAILED", "WHY");
	while (noh_json_next(list, &walk, NULL, &a)) {
		ask_text(a, "actor_address", address, sizeof address);
		ask_text(a, "state", state, sizeof state);
		ask_text(a, "last_failure_at", at, sizeof at);
		printf("%-40s %-12s %8lld %-25s %s\n", address, state, ask_number(a, "restarts"), at,
		       ask_text(a, "last_failure", why, sizeof why));
	}
	if (!ask_bool(answer, "complete"))
		fprintf(stderr, "noh %s: there are more: --limit N\n", w->full);
}

static int list(const struct client *c, const struct words *w)
{
	struct answer a = { .text = NULL };
	struct ask_body b;
	uint64_t limit = 100;

	if (!words_count(w, 0, 0, "") || !words_number(w, "limit", 1, 1000, &limit))
		return CLI_USAGE;
	ask_begin(&b);
	ask_put(&b, "actor_type", words_text(w, "type"));
	noh_json_put_uint(&b.out, "limit", limit);
	int code = ask_end(&b, w) ? ask(c, w, "/admin/quarantine/list", "", b.text, &a) : CLI_USAGE;

	if (a.text && !ask_printed(w))
		show_list(w, a.json);
	answer_free(&a);
	return code;
}

static int resume(const struct client *c, const struct words *w)
{
	int code = CLI_FINE, one;

	if (!words_count(w, 1, 10000, "who is"))
		return CLI_USAGE;
	for (unsigned i = 0; i < w->count; i++) {
		struct answer a = { .text = NULL };
		struct ask_body b;

		ask_begin(&b);
		ask_put(&b, "actor", w->plain[i]);
		one = ask_end(&b, w) ? ask(c, w, "/admin/quarantine/resume", "", b.text, &a) : CLI_USAGE;
		if (a.text && !ask_printed(w))
			printf("%s resumed\n", w->plain[i]);
		answer_free(&a);
		if (one != CLI_FINE)
			code = one;
	}
	return code;
}

int quarantine_main(int argc, char **argv)
{
	struct words w;
	struct client c;
	int code;

	if (!words_read(&w, "quarantine", argc, argv, &code))
		return code;
	if (ask_open(&c, &w, &code))
		code = strcmp(w.action, "list") == 0 ? list(&c, &w) : resume(&c, &w);
	words_free(&w);
	return code;
}
