/* sched/image.h - an inactive actor as bytes: what storage keeps.
 *
 *     "noh1" | state length 4 | schedules 4 | key-value bytes 8 | hint 8 | state | schedules | key-value
 *
 * Numbers are little-endian. A schedule is due 8, period 8, kind 4. hint: see ext.hint_ms. decode takes nothing but what
 * encode can have made for a type of that state size.
 *
 * Owns     nothing.   Threads  whoever runs the actor.
 */
#ifndef NOH_SCHED_IMAGE_H
#define NOH_SCHED_IMAGE_H

#include <stddef.h>
#include <stdint.h>

struct ext;

size_t image_size(uint32_t state_size, const struct ext *x);
void image_encode(uint8_t *out, const void *state, uint32_t state_size, const struct ext *x);

/* *x is made if the image needs it (zeroed otherwise untouched). NOH_OK, NOH_EINVAL, NOH_ENOMEM. */
int image_decode(const uint8_t *in, size_t len, void *state, uint32_t state_size, struct ext **x);

/* Frees what an ext holds, and itself. */
void ext_free(struct ext *x);

#endif
