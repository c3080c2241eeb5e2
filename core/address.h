/* core/address.h - "type:id" taken apart.
 *
 * Owns     nothing: the parts point into the text that was parsed.
 * Threads  any.
 */
#ifndef NOH_CORE_ADDRESS_H
#define NOH_CORE_ADDRESS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ADDRESS_MAX 255
#define TYPE_NAME_MAX 63

struct address {
	const char *type, *id;
	uint8_t     type_len, id_len;
};

/* Of what a caller gave: NULL has none, and address_parse says so. */
static inline size_t address_len(const char *text)
{
	return text ? strlen(text) : 0;
}

/* Split at the first colon; "type/id" is the same if no colon comes before the slash (ID-02,
 * ID-06). Returns NOH_OK, NOH_EADDRESS, or NOH_EINVAL of NULL, with a sentence. text need not end in a NUL. */
int address_parse(struct address *out, const char *text, size_t len);

/* Low half of XXH3-128 of "type:id": the same for both spellings. _text: of an address in this one. */
uint64_t address_hash(const struct address *a, uint64_t seed);
uint64_t address_hash_text(const char *text, size_t len, uint64_t seed);

#endif
