/* core/address.c - one parser for every face: library, command line, protocols. */
#include "core/address.h"

#include "core/error.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

int address_parse(struct address *out, const char *text, size_t len)
{
	size_t split = 0;

	if (!text)
		return error_set(NOH_EINVAL, "there is no address: it is NULL");
	if (len > ADDRESS_MAX)
		return error_set(NOH_EADDRESS, "address of %zu bytes: at most %d are allowed", len,
				 ADDRESS_MAX);
	if (memchr(text, 0, len))
		return error_set(NOH_EADDRESS, "address with a NUL byte in it");
	while (split < len && text[split] != ':' && text[split] != '/')
		split++;
	if (split == len)
		return error_set(NOH_EADDRESS, "address \"%.*s\" has no colon: write type:id", (int)len,
				 text);
	if (split == 0 || split > TYPE_NAME_MAX)
		return error_set(NOH_EADDRESS, "address \"%.*s\": the type has 1 to %d bytes",
				 (int)len, text, TYPE_NAME_MAX);
	if (split + 1 == len)
		return error_set(NOH_EADDRESS, "address \"%.*s\" has no id after the colon", (int)len,
				 text);
	out->type = text;
	out->type_len = (uint8_t)split;
	out->id = text + split + 1;
	out->id_len = (uint8_t)(len - split - 1);
	return NOH_OK;
}

/* flatten: the other half of the hash is not needed, so let it not be computed. */
__attribute__((flatten)) uint64_t address_hash_text(const char *text, size_t len, uint64_t seed)
{
	return XXH3_128bits_withSeed(text, len, seed).low64;
}

uint64_t address_hash(const struct address *a, uint64_t seed)
{
	char text[ADDRESS_MAX + 1];

	memcpy(text, a->type, a->type_len);
	text[a->type_len] = ':';
	memcpy(text + a->type_len + 1, a->id, a->id_len);
	return address_hash_text(text, (size_t)a->type_len + 1u + a->id_len, seed);
}
