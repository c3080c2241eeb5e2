/* tools/verbs_complete.c - noh completion: the table as scripts for bash, zsh and fish. */
#include "tools/words.h"

#include <string.h>

static void names_of(const struct verb *v)
{
	for (const struct verb_option *o = v->options; o && o->name; o++)
		printf(" --%s", o->name);
	for (const struct verb_option *o = verbs_remote; v->remote && o->name; o++)
		printf(" --%s", o->name);
	for (unsigned i = 0; v->settings && i < SETTINGS; i++)
		if (settings_table[i].flag)
			printf(" --%s", settings_table[i].flag);
	printf("%s --help", v->settings ? " --config" : "");
}

static void complete_bash(void)
{
	printf("# noh completion bash\n_noh() {\n\tlocal word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words=\n"
	       "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\twords='");
	for (const struct verb *v = verbs; v->name; v++)
		printf("%s%s", v == verbs ? "" : " ", v->name);
	printf("'\n\telse\n\t\tcase $verb in\n");
	for (const struct verb *v = verbs; v->name; v++) {
		printf("\t\t%s)\n", v->name);
		if (v->actions) {
			printf("\t\t\tif [ \"$COMP_CWORD\" -eq 2 ]; then words='");
			for (const struct verb_action *a = v->actions; a->name; a++)
				printf("%s%s", a == v->actions ? "" : " ", a->name);
			printf("'; else words='");
		} else {
			printf("\t\t\twords='");
		}
		names_of(v);
		printf("'%s ;;\n", v->actions ? "; fi" : "");
	}
	printf("\t\tcompletion) words='bash zsh fish' ;;\n\t\tesac\n\tfi\n"
	       "\tcase $word in\n\t-*|\"\") COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
	       "\t*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\") $(compgen -f -- \"$word\")) ;;\n\tesac\n}\n"
	       "complete -F _noh noh\n");
}

/* A text inside '...': of the shells, zsh also minds the colon and the brackets. */
static void quoted(const char *text, bool zsh)
{
	for (; *text; text++) {
		if (*text == '\'')
			printf("'\\''");
		else if (zsh && (*text == ':' || *text == '[' || *text == ']'))
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

static void zsh_options(const struct verb_option *list)
{
	for (; list && list->name; list++) {
		printf(" \\\n\t\t\t'--%s%s[", list->name, list->value ? "=" : "");
		quoted(list->help, true);
		printf("]%s%s%s'", list->value ? ":" : "", list->value ? list->value : "", list->value ? ":_files" : "");
	}
}

static void complete_zsh(void)
{
	printf("#compdef noh\n_noh() {\n\tlocal -a verbs\n\tverbs=(\n");
	for (const struct verb *v = verbs; v->name; v++) {
		printf("\t\t'%s:", v->name);
		quoted(v->about, true);
		printf("'\n");
	}
	printf("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe verb verbs\n\t\treturn\n\tfi\n"
	       "\tlocal verb=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $verb in\n");
	for (const struct verb *v = verbs; v->name; v++) {
		printf("\t%s)\n\t\t_arguments '--help[all about it]'", v->name);
		zsh_options(v->options);
		if (v->remote)
			zsh_options(verbs_remote);
		for (unsigned i = 0; v->settings && i < SETTINGS; i++) {
			if (!settings_table[i].flag)
				continue;
			printf(" \\\n\t\t\t'--%s=[", settings_table[i].flag);
			quoted(settings_table[i].help, true);
			printf("]:value:_files'");
		}
		if (v->actions) {
			printf(" \\\n\t\t\t'1:action:(");
			for (const struct verb_action *a = v->actions; a->name; a++)
				printf("%s%s", a == v->actions ? "" : " ", a->name);
			printf(")'");
		} else if (strcmp(v->name, "completion") == 0) {
			printf(" \\\n\t\t\t'1:shell:(bash zsh fish)'");
		}
		printf(" \\\n\t\t\t'*:word:_files'\n\t\t;;\n");
	}
	printf("\tesac\n}\n_noh \"$@\"\n");
}

static void fish_option(const char *verb, const char *name, bool value, const char *help)
{
	printf("complete -c noh -n '__fish_seen_subcommand_from %s' -l %s%s -d '", verb, name, value ? " -r" : "");
	quoted(help, false);
	printf("'\n");
}

static void complete_fish(void)
{
	printf("# noh completion fish\n");
	for (const struct verb *v = verbs; v->name; v++) {
		printf("complete -c noh -n __fish_use_subcommand -f -a %s -d '", v->name);
		quoted(v->about, false);
		printf("'\n");
		for (const struct verb_action *a = v->actions; a && a->name; a++) {
			printf("complete -c noh -n '__fish_seen_subcommand_from %s' -f -a %s -d '", v->name, a->name);
			quoted(a->about, false);
			printf("'\n");
		}
		for (const struct verb_option *o = v->options; o && o->name; o++)
			fish_option(v->name, o->name, o->value, o->help);
		for (const struct verb_option *o = verbs_remote; v->remote && o->name; o++)
			fish_option(v->name, o->name, o->value, o->help);
		for (unsigned i = 0; v->settings && i < SETTINGS; i++)
			if (settings_table[i].flag)
				fish_option(v->name, settings_table[i].flag, true, settings_table[i].help);
	}
	printf("complete -c noh -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n");
}

int completion_main(int argc, char **argv)
{
	static const char *const shells[] = { "bash", "zsh", "fish" };
	static void (*const print[])(void) = { complete_bash, complete_zsh, complete_fish };
	struct words w;
	int code;

	if (!words_read(&w, "completion", argc, argv, &code))
		return code;
	code = CLI_USAGE;
	if (words_count(&w, 1, 1, "the shell is")) {
		for (unsigned i = 0; i < 3 && code == CLI_USAGE; i++) {
			if (strcmp(w.plain[0], shells[i]) != 0)
				continue;
			print[i]();
			code = CLI_FINE;
		}
		const char *near = code == CLI_USAGE ? cli_nearest(w.plain[0], shells, 3) : NULL;

		if (code == CLI_USAGE)
			words_wrong(&w, "\"%.40s\" is none of bash, zsh, fish%s%s%s", w.plain[0], near ? "; did you mean " : "",
				    near ? near : "", near ? "?" : "");
	}
	words_free(&w);
	return code;
}
