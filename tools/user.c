/* tools/user.c - noh user add, list, revoke. A running server sees the change within a second or two. */
#include "tools/user.h"

#include "noh.h"
#include "tools/accounts.h"
#include "tools/config.h"
#include "tools/settings.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct words {
	const char *verb, *name, *role;
	bool        json;
	struct settings settings;
	char        path[4200];          /* the accounts file */
};

static int failed(const struct words *w, const char *why)
{
	fprintf(stderr, "noh user %s: %s\n", w->verb, why);
	return CLI_FAILED;
}

/* The data directory may be younger than its first user: make it as a box does. */
static bool make_data_directory(const struct settings *s, char *why, size_t size)
{
	char head[4200];
	noh_box *box;

	if (*settings_text(s, SET_USERS_FILE))
		return true;
	snprintf(head, sizeof head, "%s/noh.dir", settings_text(s, SET_DIR));
	if (access(head, F_OK) == 0)
		return true;
	const noh_options options = { .dir = settings_text(s, SET_DIR), .workers = 1 };
	int rc = noh_open(&box, &options);

	if (rc == NOH_OK)
		noh_close(box);
	else if (rc != NOH_EINUSE)               /* a server is making it at this moment: fine */
		snprintf(why, size, "%s", noh_why());
	return rc == NOH_OK || rc == NOH_EINUSE;
}

static void print_added(const struct words *w, const char *role, const char *token)
{
	printf("added %s, role %s, to %s\n\n"
	       "  token  %s\n\n"
	       "This is the only time it is shown. To use it:\n"
	       "  redis-cli -p %s --user %s --pass %s PING\n"
	       "  curl -H 'Authorization: Bearer %s' localhost:%s/readyz\n",
	       w->name, role, w->path, token, settings_text(&w->settings, SET_RESP_PORT), w->name, token, token,
	       settings_text(&w->settings, SET_HTTP_PORT));
}

static int user_add(struct words *w)
{
	char token[TOKEN_TEXT], why[1024];
	int role = NOH_USER;

	if (w->role && !account_role(w->role, &role)) {
		fprintf(stderr, "noh user add: --role is user, developer or admin, not \"%s\"\n", w->role);
		return CLI_USAGE;
	}
	if (!make_data_directory(&w->settings, why, sizeof why) ||
	    !accounts_add(w->path, w->name, role, token, why, sizeof why))
		return failed(w, why);
	if (w->json)
		printf("{ \"name\": \"%s\", \"role\": \"%s\", \"token\": \"%s\" }\n", w->name, account_role_name(role), token);
	else
		print_added(w, account_role_name(role), token);
	explicit_bzero(token, sizeof token);
	return CLI_FINE;
}

static int user_list(struct words *w)
{
	struct accounts a;
	char why[1024];

	if (!accounts_read(&a, w->path, why, sizeof why))
		return failed(w, why);
	if (w->json)
		printf("[");
	else if (a.count == 0)
		printf("%s: no users; %s\n", w->path, a.present ? "nobody may use the server until one is added"
								 : "whoever can connect may do everything");
	for (size_t i = 0; i < a.count; i++) {
		const struct account *u = &a.all[i];

		printf(w->json ? "%s\n  { \"name\": \"%s\", \"role\": \"%s\", \"since\": \"" : "%s%-24s %-10s ",
		       w->json && i ? "," : "", u->name, account_role_name(u->role));
		printf(w->json ? "%s\" }" : "%s\n", u->since);
	}
	if (w->json)
		printf("\n]\n");
	accounts_free(&a);
	return CLI_FINE;
}

static int user_revoke(struct words *w)
{
	char why[1024];
	size_t left;

	if (!accounts_revoke(w->path, w->name, &left, why, sizeof why)) {
		failed(w, why);
		return strncmp(why, "there is no user", 16) == 0 ? CLI_NOT_FOUND : CLI_FAILED;
	}
	if (w->json) {
		printf("{ \"name\": \"%s\", \"revoked\": true }\n", w->name);
		return CLI_FINE;
	}
	printf("revoked %s; %s\n", w->name, left ? "a running server closes the door within two seconds" :
	       "no user is left, so nobody may use the server until one is added");
	if (left == 0)
		printf("(remove %s to let everybody in who can connect)\n", w->path);
	return CLI_FINE;
}

static bool option(struct words *w, struct cli_args *args)
{
	static const char *const own[] = { "role", "json" };

	if (strcmp(args->name, "json") == 0)
		return w->json = true;
	if (strcmp(args->name, "role") == 0 && strcmp(w->verb, "add") == 0) {
		w->role = cli_value(args);
		if (!w->role)
			settings_wrong(&w->settings, "--role needs one of user, developer, admin");
		return w->role != NULL;
	}
	if (settings_flag(&w->settings, args))
		return true;
	settings_unknown_flag(&w->settings, "user", args->name, own, 2);
	return false;
}

static bool words(struct words *w, struct cli_args *args)
{
	bool wants_name = strcmp(w->verb, "list") != 0;

	while (cli_next(args)) {
		if (args->name) {
			if (!option(w, args))
				return false;
		} else if (w->name || !wants_name) {
			settings_wrong(&w->settings, "one word too many: \"%.60s\"", args->value);
			return false;
		} else {
			w->name = args->value;
		}
	}
	if (wants_name && !w->name)
		settings_wrong(&w->settings, "the name of the user is missing");
	else if (wants_name && !account_name_ok(w->name))
		settings_wrong(&w->settings, "\"%.80s\" is no name for a user: it has 1 to %d letters, digits, dots, "
			       "dashes and underscores", w->name, ACCOUNT_NAME_MAX);
	return w->settings.errors == 0;
}

int user_main(int argc, char **argv)
{
	static const char *const verbs[] = { "add", "list", "revoke" };
	static int (*const functions[])(struct words *) = { user_add, user_list, user_revoke };
	struct cli_args args = { .count = argc, .at = 2, .words = argv };
	struct words w = { .verb = argc > 1 ? argv[1] : "" };
	char full[32];
	int code = CLI_USAGE;

	for (unsigned i = 0; i < 3; i++) {
		if (strcmp(verbs[i], w.verb) != 0)
			continue;
		snprintf(full, sizeof full, "user %s", w.verb);
		settings_init(&w.settings, config_say, full);
		if (words(&w, &args) && settings_load(&w.settings, environ)) {
			accounts_path(&w.settings, w.path, sizeof w.path);
			code = functions[i](&w);
		}
		settings_free(&w.settings);
		return code;
	}
	const char *near = *w.verb ? cli_nearest(w.verb, verbs, 3) : NULL;

	fprintf(stderr, "noh user: %s%s%s\n", near ? "did you mean noh user " : "one of add NAME, list, revoke NAME",
		near ? near : "", near ? "?" : "");
	return CLI_USAGE;
}
