#include "sched/image.h"

#include "core/error.h"
#include "core/mem.h"
#include "sched/cell.h"

#include <string.h>

#define HEAD 28
#define SCHEDULE 20

static void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static void put64(uint8_t *p, uint64_t v)
{
	put32(p, (uint32_t)v);
	put32(p + 4, (uint32_t)(v >> 32));
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get64(const uint8_t *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

size_t image_size(uint32_t state_size, const struct ext *x)
{
	size_t n = HEAD + (size_t)state_size;

	if (x)
		n += (size_t)x->schedule_count * SCHEDULE;
	if (x && x->kv.root)
		n += kv_encoded_size(&x->kv);
	return n;
}

void image_encode(uint8_t *out, const void *state, uint32_t state_size, const struct ext *x)
{
	uint32_t schedules = x ? x->schedule_count : 0;
	size_t   kv = x && x->kv.root ? kv_encoded_size(&x->kv) : 0;

	memcpy(out, "noh1", 4);
	put32(out + 4, state_size);
	put32(out + 8, schedules);
	put64(out + 12, kv);
	put64(out + 20, x ? x->hint_ms : 0);
	out += HEAD;
	if (state_size)
		memcpy(out, state, state_size);
	out += state_size;
	for (uint32_t i = 0; i < schedules; i++, out += SCHEDULE) {
		put64(out, x->schedules[i].due_ms);
		put64(out + 8, x->schedules[i].period_ms);
		put32(out + 16, x->schedules[i].kind);
	}
	if (kv)
		kv_encode(&x->kv, out);
}

static int decode_schedules(const uint8_t *in, uint32_t count, struct ext *x)
{
	x->schedules = mem_alloc(count * sizeof *x->schedules);
	if (!x->schedules)
		return NOH_ENOMEM;
	x->schedule_room = count;
	for (uint32_t i = 0; i < count; i++, in += SCHEDULE)
		x->schedules[x->schedule_count++] = (struct schedule){
			.due_ms = get64(in), .period_ms = get64(in + 8), .kind = get32(in + 16),
			.serial = ++x->next_serial };
	return NOH_OK;
}

int image_decode(const uint8_t *in, size_t len, void *state, uint32_t state_size, struct ext **x)
{
	uint32_t schedules;
	uint64_t kv;
	size_t   left;
	int      rc = NOH_OK;

	if (len < HEAD || memcmp(in, "noh1", 4) != 0 || get32(in + 4) != state_size ||
	    len - HEAD < state_size)
		return NOH_EINVAL;
	schedules = get32(in + 8);
	kv = get64(in + 12);
	left = len - HEAD - state_size;
	if (left / SCHEDULE < schedules || left - (size_t)schedules * SCHEDULE != kv)
		return NOH_EINVAL;
	if ((schedules || kv || get64(in + 20)) && !*x) {
		*x = mem_zalloc(sizeof **x);
		if (!*x)
			return NOH_ENOMEM;
	}
	if (*x)
		(*x)->hint_ms = get64(in + 20);
	if (schedules)
		rc = decode_schedules(in + HEAD + state_size, schedules, *x);
	if (rc == NOH_OK && kv)
		rc = kv_decode(&(*x)->kv, in + HEAD + state_size + (size_t)schedules * SCHEDULE, kv);
	if (rc == NOH_OK && kv && !(*x)->kv.root)
		rc = NOH_EINVAL;                 /* encode leaves an empty one out */
	if (rc == NOH_OK && state_size)
		memcpy(state, in + HEAD, state_size);
	return rc;
}

void ext_free(struct ext *x)
{
	if (!x)
		return;
	kv_free(&x->kv);
	mem_free(x->schedules, x->schedule_room * sizeof *x->schedules);
	mem_free(x, sizeof *x);
}
