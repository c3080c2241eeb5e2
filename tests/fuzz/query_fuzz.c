/* tests/fuzz/query_fuzz.c - any bytes behind the '?' of a GET: understood within their bounds, or refused with a sentence; and read
 * the same way again. */
#include "core/must.h"
#include "net/feed.h"
#include "net/rest.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const struct rest_query *form, const struct query_got *got)
{
	for (uint32_t i = 0; i < form->count; i++) {
		const noh_json_field *f = &form->fields[i];

		if (!got[i].given) {
			must(!f->required && got[i].n == f->preset);
			continue;
		}
		must(got[i].len >= 0 && got[i].len <= ADDRESS_MAX && strlen(got[i].text) == (size_t)got[i].len);
		must(f->type != NOH_JSON_INT || (got[i].n >= f->least && got[i].n <= f->most));
		must(f->type != NOH_JSON_BOOL || got[i].n == 0 || got[i].n == 1);
		must(f->type != NOH_JSON_TIME || got[i].n >= 0);
		must(f->type != NOH_JSON_STRING || (got[i].len >= f->least && got[i].len <= f->most));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *exact = malloc(len ? len : 1);     /* no NUL behind it to lean on */

	if (!exact)
		return 0;
	if (len)
		memcpy(exact, data, len);
	for (int id = 0; id < QUERIES; id++) {
		struct query_got got[QUERY_FIELDS_MAX], again[QUERY_FIELDS_MAX];
		int rc = query_read(&rest_queries[id], exact, len, got);

		must(rc == NOH_OK || (rc == NOH_EINVAL && *noh_why()));
		must(query_read(&rest_queries[id], exact, len, again) == rc);
		if (rc == NOH_OK)
			check(&rest_queries[id], got);
	}
	free(exact);
	return 0;
}
