/* tests/fuzz/config_fuzz.c - any bytes as a configuration file and as an accounts file: understood, or refused with
 * sentences of one line; and what was understood is a value of its setting. */
#include "core/must.h"
#include "tools/accounts.h"
#include "tools/settings.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void listen_to(void *user, bool wrong, const char *sentence)
{
	must(wrong && *sentence && !strchr(sentence, '\n'));
	++*(unsigned *)user;
}

static void as_settings(const char *text, size_t len)
{
	struct settings s;
	unsigned told = 0;

	settings_init(&s, listen_to, &told);
	bool good = settings_parse(&s, "fuzz", text, len);

	must(good == (told == 0) && told == s.errors && told <= 20);
	for (unsigned i = 0; i < SETTINGS; i++) {
		char why[256];
		uint64_t number;

		if (!settings_given(&s, i))
			continue;
		must(settings_value(&settings_table[i], settings_text(&s, i), &number, why, sizeof why));
		must(number == settings_number(&s, i));
	}
	settings_free(&s);
}

static void as_accounts(const char *text, size_t len)
{
	struct accounts a = { 0 };
	char why[256] = "";
	bool good = accounts_parse(&a, "fuzz", text, len, why, sizeof why);

	must(good ? a.count <= len / 70 : *why && a.count == 0);
	for (size_t i = 0; i < a.count; i++)
		must(account_name_ok(a.all[i].name) && a.all[i].role >= 0 && a.all[i].role <= 2);
	accounts_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len ? len : 1);      /* exactly as long: one byte too far is seen */

	must(text);
	if (len)
		memcpy(text, data, len);
	if (!memmem(text, len, "_file", 5))      /* would open whatever file it names */
		as_settings(text, len);
	as_accounts(text, len);
	free(text);
	return 0;
}
