/* tests/fuzz/address_fuzz.c - any bytes as an address: parsed into parts that lie inside the text and
 * add up to it, or refused with a sentence. Both spellings of one address have one hash. */
#include "core/address.h"

#include "core/error.h"
#include "core/must.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int parse(struct address *a, const char *text, size_t len)
{
	int rc = address_parse(a, text, len);

	must(rc == NOH_OK || (rc == NOH_EADDRESS && *noh_why()));
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len ? len : 1);      /* exactly as long: one byte too far is seen */
	struct address a, other;

	must(text);
	if (len)
		memcpy(text, data, len);
	if (parse(&a, text, len) == NOH_OK) {
		must(len <= ADDRESS_MAX);
		must(a.type == text && a.type_len >= 1 && a.type_len <= TYPE_NAME_MAX);
		must(a.id == text + a.type_len + 1 && a.id_len >= 1);
		must((size_t)a.type_len + 1u + a.id_len == len);
		must(!memchr(text, 0, len));
		must(!memchr(a.type, ':', a.type_len) && !memchr(a.type, '/', a.type_len));

		char *split = text + a.type_len;
		uint64_t hash = address_hash(&a, 7);

		*split = *split == ':' ? '/' : ':';
		must(parse(&other, text, len) == NOH_OK);
		must(other.type_len == a.type_len && address_hash(&other, 7) == hash);
	}
	free(text);
	return 0;
}
