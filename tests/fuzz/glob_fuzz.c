/* tests/fuzz/glob_fuzz.c - any bytes as pattern and text: read no byte too far, and never for long (libFuzzer's
 * -timeout is the judge). What is escaped matches itself; a star in front loses no match. */
#include "core/glob.h"

#include "core/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static char *copy(const void *from, size_t len, size_t before)    /* exactly as long: a byte too far is seen */
{
	char *to = malloc(len + before ? len + before : 1);

	must(to);
	if (len)
		memcpy(to + before, from, len);
	return to;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	size_t plen = data[0] * (len - 1) / 255, tlen = len - 1 - plen;
	char *pattern = copy(data + 1, plen, 0), *text = copy(data + 1 + plen, tlen, 0);
	char *star = copy(data + 1, plen, 1), *escaped = malloc(2 * tlen + 1);
	bool found = glob_match(pattern, plen, text, tlen);

	must(escaped);
	must(glob_plain(pattern, plen) <= plen);
	if (found)
		must(tlen >= glob_plain(pattern, plen) &&
		     memcmp(pattern, text, glob_plain(pattern, plen)) == 0);
	if (glob_plain(pattern, plen) == plen)
		must(found == (plen == tlen && memcmp(pattern, text, plen) == 0));
	*star = '*';
	must(!found || glob_match(star, plen + 1, text, tlen));
	for (size_t i = 0; i < tlen; i++) {
		escaped[2 * i] = '\\';
		escaped[2 * i + 1] = text[i];
	}
	must(glob_match(escaped, 2 * tlen, text, tlen));
	(void)glob_match_any_case(pattern, plen, text, tlen);
	free(pattern);
	free(text);
	free(star);
	free(escaped);
	return 0;
}
