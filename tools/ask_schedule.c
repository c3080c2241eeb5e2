/* tools/ask_schedule.c - noh schedule list, cancel: durable timers of a running server. */
#include "tools/ask.h"

#include <string.h>

static void show(const struct words *w, const json_t *answer)
{
	const json_t *timers = json_object_get(answer, "timers"), *t;
	char address[300], kind[80], at[64], period[32];
	size_t i;

	if (json_array_size(timers) == 0 && !*ask_text(answer, "next_cursor")) {
		printf("nothing is scheduled\n");
		return;
	}
	printf("%-26s %-40s %-16s %s\n", "DUE", "ACTOR", "KIND", "EVERY");
	json_array_foreach(timers, i, t) {
		long long every = ask_number(t, "period_ms");

		settings_write(period, sizeof period, every > 0 ? (uint64_t)every : 0, SETTING_DURATION);
		printf("%-26s %-40s %-16s %s\n", ask_shown(at, sizeof at, ask_text(t, "due_at")),
		       ask_shown(address, sizeof address, ask_text(t, "actor_address")),
		       ask_shown(kind, sizeof kind, ask_text(t, "message_type")), every > 0 ? period : "once");
	}
	ask_more(w, answer);
}

static int list(const struct client *c, const struct words *w)
{
	const char *type = words_text(w, "type"), *actor = words_text(w, "actor");
	json_t *answer = NULL, *body;

	if (!words_count(w, 0, 0, ""))
		return CLI_USAGE;
	if (type && actor)
		return words_wrong(w, "--type or --actor, not both");
	body = ask_page(w);
	if (!body)
		return CLI_USAGE;
	if (type)
		json_object_set_new(body, "actor_type", json_string(type));
	if (actor)
		json_object_set_new(body, "actor_address", json_string(actor));
	int code = ask(c, w, "/admin/schedule/list", "", body, &answer);

	if (answer && !ask_printed(w))
		show(w, answer);
	json_decref(answer);
	return code;
}

static int cancel(const struct client *c, const struct words *w)
{
	json_t *answer = NULL;

	if (!words_count(w, 2, 2, w->count ? "the timer's kind is" : "address and kind are"))
		return CLI_USAGE;
	int code = ask(c, w, "/admin/schedule/cancel", "",
		       json_pack("{ssss}", "actor_address", w->plain[0], "message_type", w->plain[1]), &answer);

	if (answer && !ask_bool(answer, "was_scheduled"))
		code = words_failed(w, CLI_NOT_FOUND, "%.255s has no timer of the kind %.60s; noh schedule list --actor %.255s lists them",
				    w->plain[0], w->plain[1], w->plain[0]);
	else if (answer && !ask_printed(w))
		printf("cancelled\n");
	json_decref(answer);
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
