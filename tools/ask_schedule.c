/* tools/ask_schedule.c - noh schedule list, cancel: durable timers of a running server. */
#include "tools/ask.h"

#include <string.h>

static void show(const struct words *w, noh_json answer)
{
	noh_json timers = ask_member(answer, "timers"), t;
	noh_json_walk walk = { NULL };
	char address[300], kind[80], at[64], period[32];

	if (ask_items(timers) == 0 && !*ask_text(answer, "next_cursor", at, sizeof at)) {
		printf("nothing is scheduled\n");
		return;
	}
	printf("%-26s %-40s %-16s %s\n", "DUE", "ACTOR", "KIND", "EVERY");
	while (timers.len && noh_json_next(timers, &walk, NULL, &t)) {
		long long every = ask_number(t, "period_ms");

		settings_write(period, sizeof period, every > 0 ? (uint64_t)every : 0, SETTING_DURATION);
		ask_text(t, "due_at", at, sizeof at);
		ask_text(t, "actor_address", address, sizeof address);
		if (!*ask_text(t, "message_type", kind, sizeof kind))
			snprintf(kind, sizeof kind, "%lld", ask_number(t, "kind"));
		printf("%-26s %-40s %-16s %s\n", at, address, kind, every > 0 ? period : "once");
	}
	ask_more(w, answer);
}

static int list(const struct client *c, const struct words *w)
{
	struct answer a = { .text = NULL };
	struct ask_body b;

	if (!words_count(w, 0, 0, ""))
		return CLI_USAGE;
	if (words_flag(w, "type") && words_flag(w, "actor"))
		return words_wrong(w, "--type or --actor, not both");
	ask_begin(&b);
	if (!ask_page(&b, w))
		return CLI_USAGE;
	ask_put(&b, "actor_type", words_text(w, "type"));
	ask_put(&b, "actor_address", words_text(w, "actor"));
	int code = ask_end(&b, w) ? ask(c, w, "/admin/schedule/list", "", b.text, &a) : CLI_USAGE;

	if (a.text && !ask_printed(w))
		show(w, a.json);
	answer_free(&a);
	return code;
}

static int cancel(const struct client *c, const struct words *w)
{
	struct answer a = { .text = NULL };
	struct ask_body b;

	if (!words_count(w, 2, 2, w->count ? "the timer's kind is" : "address and kind are"))
		return CLI_USAGE;
	ask_begin(&b);
	ask_put(&b, "actor_address", w->plain[0]);
	ask_put(&b, "message_type", w->plain[1]);
	int code = ask_end(&b, w) ? ask(c, w, "/admin/schedule/cancel", "", b.text, &a) : CLI_USAGE;

	if (a.text && !ask_bool(a.json, "was_scheduled"))
		code = words_failed(w, CLI_NOT_FOUND, "%.255s has no timer of the kind %.60s; noh schedule list --actor %.255s lists them",
				    w->plain[0], w->plain[1], w->plain[0]);
	else if (a.text && !ask_printed(w))
		printf("cancelled\n");
	answer_free(&a);
	return code;
}

int schedule_main(int argc, char **argv)
{
	struct words w;
	struct client c;
	int code;

	if (!words_read(&w, "schedule", argc, argv, &code))
		return code;
	if (ask_open(&c, &w, &code))
		code = strcmp(w.action, "list") == 0 ? list(&c, &w) : cancel(&c, &w);
	words_free(&w);
	return code;
}
