/* tests/fuzz/image_fuzz.c - any bytes as a stored actor: refused with the state untouched, or an image
 * that encodes to the very same bytes. The first byte of the input is the type's state size. */
#include "sched/image.h"

#include "core/must.h"
#include "noh.h"
#include "sched/cell.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void same_bytes(const uint8_t *image, size_t len, const void *state, uint32_t size,
		       const struct ext *x)
{
	uint8_t *out = malloc(len);

	must(out && image_size(size, x) == len);
	image_encode(out, state, size, x);
	must(memcmp(out, image, len) == 0);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	uint32_t size = data[0];
	size_t image_len = len - 1;
	uint8_t *image = malloc(image_len ? image_len : 1);   /* exactly as long, as is the state: */
	uint8_t *state = malloc(size ? size : 1);             /* one byte too far is seen          */
	struct ext *x = NULL;

	must(image && state);
	memset(state, 0x5a, size ? size : 1);
	if (image_len)
		memcpy(image, data + 1, image_len);
	int rc = image_decode(image, image_len, state, size, &x);

	must(rc == NOH_OK || rc == NOH_EINVAL || rc == NOH_ENOMEM);
	if (rc == NOH_OK)
		same_bytes(image, image_len, state, size, x);
	else
		for (uint32_t i = 0; i < size; i++)
			must(state[i] == 0x5a);
	ext_free(x);
	free(image);
	free(state);
	return 0;
}
