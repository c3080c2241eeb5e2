/* actors/backoff.c - attempts that are counted, and what their waits are drawn with (noh_backoff_ms: core/backoff.c).
 *
 * The random numbers of an actor begin with its address and the instant of its first failure: nothing is shared, and a
 * simulation with the same clock sees the same waits.
 */
#include "actors/reconcile.h"

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t begin_random(noh_turn *turn)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *c = noh_address(turn); *c; c++)
		hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	hash = mix(hash ^ noh_wall_ms(turn));
	return hash ? hash : 1;
}

uint64_t retry_random(noh_turn *turn, noh_retry *retry)
{
	if (retry->random == 0)
		retry->random = begin_random(turn);
	retry->random += UINT64_C(0x9e3779b97f4a7c15);
	return mix(retry->random);
}

int noh_retry_after(noh_turn *turn, noh_retry *retry, const noh_backoff *policy, uint64_t *wait_ms)
{
	if (retry->failures < UINT32_MAX)
		retry->failures++;
	*wait_ms = 0;
	if (policy && policy->attempts && retry->failures >= policy->attempts)
		return NOH_END;
	*wait_ms = noh_backoff_ms(policy, retry->failures, retry_random(turn, retry));
	return NOH_OK;
}

void noh_retry_done(noh_retry *retry)
{
	retry->failures = 0;
}
