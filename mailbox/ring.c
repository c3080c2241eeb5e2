/* mailbox/ring.c - sizes. A ring holds 4 slots at first and grows in steps, so that a million
 * mailboxes with one message each take 320 bytes each, and one with a million takes one ring. */
#include "mailbox/ring.h"

#ifndef RING_SIZES                      /* tests/interleave has smaller ones */
#define RING_SIZES                                                                                 \
	{ 2, 1u << 23 }, { 4, 1u << 22 }, { 6, 1u << 20 }, { 8, 1u << 18 },                        \
	{ 11, 1u << 15 }, { 14, 1u << 12 }, { 17, 1u << 9 }, { 22, 1u << 4 },
#endif

static const struct { uint32_t slots_log2, limit; } classes[RING_CLASSES] = { RING_SIZES };

uint32_t ring_slots_log2(uint32_t class_no)
{
	return classes[class_no].slots_log2;
}

bool rings_open(struct rings *rs, uint32_t most)
{
	for (uint32_t c = 0; c < RING_CLASSES; c++)
		rs->slab[c].fixed.base = NULL;
	for (uint32_t c = 0; c < RING_CLASSES; c++) {
		size_t size = sizeof(struct ring) + (sizeof(struct slot) << classes[c].slots_log2);

		uint32_t limit = most < classes[c].limit ? most : classes[c].limit;

		if (!slab_open(&rs->slab[c], size, offsetof(struct ring, link), limit)) {
			rings_close(rs);
			return false;
		}
	}
	return true;
}

void rings_close(struct rings *rs)
{
	for (uint32_t c = 0; c < RING_CLASSES; c++)
		if (rs->slab[c].fixed.base)
			slab_close(&rs->slab[c]);
}
