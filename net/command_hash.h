/* net/command_hash.h - the hash of a command's name, the same for either case. For net/command.c, and for
 * whoever makes net/command_slots.h. */
#ifndef NOH_NET_COMMAND_HASH_H
#define NOH_NET_COMMAND_HASH_H

#include <stdint.h>
#include <string.h>

enum { COMMAND_SLOTS = 256, COMMAND_NAME_MAX = 63 };

/* name: 1 to COMMAND_NAME_MAX bytes, none beyond them is read. Two words that hold all of up to 16 of them. Little-endian machines. */
static inline void command_words(const char *name, uint32_t len, uint64_t *low, uint64_t *high)
{
	*low = *high = 0;
	if (len >= 8) {
		memcpy(low, name, 8);
		memcpy(high, name + len - 8, 8);
	} else if (len >= 4) {
		memcpy(low, name, 4);
		memcpy(high, name + len - 4, 4);
	} else {
		*low = (uint64_t)(unsigned char)name[0] | (uint64_t)(unsigned char)name[len / 2] << 8 |
		       (uint64_t)(unsigned char)name[len - 1] << 16;
	}
}

static inline uint32_t command_hash(const char *name, uint32_t len)
{
	uint64_t low, high;

	command_words(name, len, &low, &high);
	low |= UINT64_C(0x2020202020202020);          /* lower case, and for what is no letter no harm */
	high |= UINT64_C(0x2020202020202020);
	return (uint32_t)((low ^ high * UINT64_C(0x9E3779B97F4A7C15) ^ len) * UINT64_C(0xD6E8FEB86659FD93) >> 56);
}

#endif
