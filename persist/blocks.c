#include "persist/blocks.h"

#include "core/mem.h"

void *blocks_take(struct blocks *b, size_t bytes)
{
	for (uint32_t i = 0; b && bytes >= BLOCKS_LARGE && i < b->count; i++)
		if (b->kept[i].bytes == bytes) {
			void *at = b->kept[i].at;

			b->kept[i] = b->kept[--b->count];
			b->bytes -= bytes;
			return at;
		}
	return mem_large(bytes);
}

void blocks_give(struct blocks *b, void *at, size_t bytes)
{
	if (at && b && bytes >= BLOCKS_LARGE && b->bytes + bytes <= BLOCKS_BYTES && b->count < BLOCKS_MOST) {
		b->kept[b->count].at = at;
		b->kept[b->count++].bytes = bytes;
		b->bytes += bytes;
		return;
	}
	mem_large_free(at, bytes);
}

void blocks_free(struct blocks *b)
{
	b->bytes = 0;
	while (b->count) {
		b->count--;
		mem_large_free(b->kept[b->count].at, b->kept[b->count].bytes);
	}
}
