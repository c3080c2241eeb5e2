/* sched/image.h - an inactive actor as bytes: the parts (core/record.h) that storage keeps.
 *
 * STATE, TIMERS in wall-clock time, a PUT per entry; and, in an image that stays in memory, a HINT. What
 * comes from disk may also have EMITTED parts: messages it was sent before a crash.
 *
 * Owns     nothing.   Threads  whoever runs the actor.
 */
#ifndef NOH_SCHED_IMAGE_H
#define NOH_SCHED_IMAGE_H

#include "sched/sched.h"

size_t image_size(struct sched *s, struct cell *c);
void image_encode(struct sched *s, struct cell *c, uint8_t *out);

/* Into w's scratch (the state, migrated if need be) and c->ext. NOH_OK, NOH_ECORRUPT, NOH_EVERSION,
 * NOH_ENOMEM; c->ext is to be freed in any case. */
int image_decode(struct worker *w, struct cell *c, const uint8_t *in, size_t len);

/* Is any of it the actor's own? Messages that wait for it are not. */
bool image_is_kept(const uint8_t *in, size_t len);

/* Nothing in it: no different from an actor that never was. */
bool image_blank(struct sched *s, struct cell *c);

/* Frees what an ext holds, and itself. */
void ext_free(struct ext *x);

#endif
