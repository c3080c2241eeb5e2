/* actors/answer.h - the ways a message of the built-in types ends.
 *
 * Owns     nothing.   Threads  the turn's.
 * Never    is a turn refused after it has changed something: decide first.
 */
#ifndef NOH_ACTORS_ANSWER_H
#define NOH_ACTORS_ANSWER_H

#include "noh_actors.h"

#include <stddef.h>

/* It is done, or this is what was asked for. Nobody may wait for it: that is no failure. */
static inline int answer(noh_turn *turn, const void *body, size_t len)
{
	int rc = noh_reply(turn, body, len);

	return rc < 0 ? rc : NOH_OK;
}

/* What was asked for cannot be, as things are: the outcome says why, and nothing was changed. That is an answer
 * like any other, but in a step over several actors: there nothing of it may happen. */
static inline int refuse(noh_turn *turn, const void *body, size_t len)
{
	return noh_in_step(turn) ? noh_refuse(turn, body, len) : answer(turn, body, len);
}

/* A body that nobody who has read noh_actors.h sends. */
static inline int malformed(noh_turn *turn, const char *what, const noh_msg *msg)
{
	(void)noh_fail(turn, "malformed body of %s, %u bytes: noh_actors.h says how it must be", what, msg->len);
	return NOH_EINVAL;
}

#endif
