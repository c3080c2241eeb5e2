/* tests/fuzz/kv_fuzz.c - any bytes as the stored key-value part of an actor: refused, or an image that
 * encodes to the very same bytes, sorted, every entry to be found, every change to be undone. */
#include "sched/kv.h"

#include "core/must.h"
#include "noh.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void same_bytes(const struct kv *kv, const uint8_t *data, size_t len)
{
	uint8_t *out = malloc(len ? len : 1);

	must(out && kv_encoded_size(kv) == len);
	kv_encode(kv, out);
	must(memcmp(out, data, len) == 0);
	free(out);
}

static void sorted_and_found(const struct kv *kv)
{
	const struct kv_node *last = NULL;
	uint64_t count = 0;

	for (const struct kv_node *n; (n = kv_next(kv, last ? kv_key(last) : NULL, last ? last->klen : 0));
	     last = n, count++) {
		must(kv_get(kv, kv_key(n), n->klen) == n);
		if (last) {
			size_t both = last->klen < n->klen ? last->klen : n->klen;
			int order = memcmp(kv_key(last), kv_key(n), both);
			must(order < 0 || (order == 0 && last->klen < n->klen));
		}
	}
	must(count == kv->entries);
}

static void undone(struct kv *kv)
{
	const struct kv_node *first = kv_next(kv, NULL, 0);
	struct kv_log log = {0};

	must(kv_put(kv, &log, "fuzz", 4, "value", 5) == NOH_OK);
	if (first)
		must(kv_delete(kv, &log, kv_key(first), first->klen) == NOH_OK);
	kv_rollback(kv, &log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct kv kv = { .seed = 7 };
	uint8_t *image = malloc(len ? len : 1);  /* exactly as long: one byte too far is seen */

	must(image);
	if (len)
		memcpy(image, data, len);
	int rc = kv_decode(&kv, image, len);
	must(rc == NOH_OK || rc == NOH_EINVAL || rc == NOH_ENOMEM);
	must(rc == NOH_OK || !kv.root);
	if (rc == NOH_OK) {
		same_bytes(&kv, image, len);
		sorted_and_found(&kv);
		undone(&kv);
		same_bytes(&kv, image, len);
	}
	kv_free(&kv);
	free(image);
	return 0;
}
