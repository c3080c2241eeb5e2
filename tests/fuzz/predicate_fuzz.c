/* tests/fuzz/predicate_fuzz.c - any text as what noh wait is to wait for: understood, or refused with a sentence and a place in
 * it; what is understood can be tried; and the bytes of a stream of events, however they are cut. */
#include "core/must.h"
#include "tools/client.h"
#include "tools/predicate.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void as_predicate(const char *text)
{
	struct predicate_facts f = { .text = { "active", "healthy", "", "", "x", "", "true" } };
	struct predicate p;
	char why[300] = "";
	size_t at = 0;

	if (!predicate_read(&p, text, &at, why, sizeof why)) {
		must(*why && at <= strlen(text));
		return;
	}
	must(p.count > 0 && p.count <= PREDICATE_STEPS);
	(void)predicate_holds(&p, &f);
	predicate_event(&p, "restarted");
	for (int i = 0; i < FACTS; i++)
		f.number[i] = UINT64_MAX;
	(void)predicate_holds(&p, &f);
}

static void as_stream(char *bytes, size_t len)
{
	struct client_event e;
	size_t from = 0;

	for (;;) {
		int took = client_read_event(bytes + from, len - from, &e);

		if (took <= 0)
			break;
		must((size_t)took <= len - from && e.len == strlen(e.data));
		must(e.len == 0 || (e.data > bytes && e.data + e.len < bytes + from + took));
		from += (size_t)took;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1), *exact = malloc(len ? len : 1);

	if (text && exact) {
		if (len) {
			memcpy(text, data, len);
			memcpy(exact, data, len);
		}
		text[len] = 0;
		as_predicate(text);
		as_stream(exact, len);           /* no NUL behind it to lean on */
	}
	free(text);
	free(exact);
	return 0;
}
