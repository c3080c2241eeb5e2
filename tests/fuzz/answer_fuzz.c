/* tests/fuzz/answer_fuzz.c - any bytes as what a server answers the command line: the head of an HTTP answer, however it is
 * cut, and numbers of /metrics. Understood within its bounds, or refused with a sentence. */
#include "core/must.h"
#include "tools/client.h"
#include "tools/scrape.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void as_head(const char *bytes, size_t len)
{
	struct client_reply r = { .status = 0 };
	size_t body = 0;
	char why[256] = "";
	int head = client_read_head(bytes, len, &r, &body, why, sizeof why);

	must(head <= (int)len && head >= -1);
	must(head != -1 || *why);
	if (head > 0)
		must(r.status >= 100 && r.status <= 999 && body <= CLIENT_BODY_MAX && memcmp(bytes + head - 4, "\r\n\r\n", 4) == 0);
	/* What has come of it so far is never more than not all there yet, or wrong. */
	for (size_t cut = 0; head > 0 && cut < (size_t)head; cut++)
		must(client_read_head(bytes, cut, &r, &body, why, sizeof why) <= 0);
}

static void as_numbers(const char *text, size_t len)
{
	const char *values[4];
	struct scrape s;

	must(scrape_read(&s, text, len));
	for (size_t i = 0; i < s.count; i++) {
		must(*s.all[i].name && s.all[i].labels <= SCRAPE_LABELS);
		(void)scrape_quantile(NULL, &s, s.all[i].name, NULL, NULL, 0.5);
		must(scrape_values(&s, s.all[i].name, "le", values, 4) <= 4);
		if (i > 8)
			break;
	}
	scrape_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *copy = malloc(len + 1);            /* the head's reader gets no NUL behind it to lean on */

	if (!copy)
		return 0;
	if (len)
		memcpy(copy, data, len);
	char *exact = malloc(len ? len : 1);

	if (exact && len)
		memcpy(exact, data, len);
	if (exact)
		as_head(exact, len);
	as_numbers(copy, len);
	free(exact);
	free(copy);
	return 0;
}
