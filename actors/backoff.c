/* actors/backoff.c - waiting before the next attempt: exponential, capped, full jitter (SUP-08, SUP-09).
 *
 * Full jitter, because whatever failed together (a registry that went away under a thousand pulls) must not come back
 * together. The random numbers of an actor begin with its address and the instant of its first failure: nothing is
 * shared, and a simulation with the same clock sees the same waits.
 */
#include "actors/reconcile.h"

#define BASE_MS 100u
#define FACTOR  2u
#define CAP_MS  30000u

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

uint64_t noh_backoff_ms(const noh_backoff *policy, uint32_t failures, uint64_t random)
{
	uint64_t most = policy && policy->base_ms ? policy->base_ms : BASE_MS;
	uint64_t factor = policy && policy->factor ? policy->factor : FACTOR;
	uint64_t cap = policy && policy->cap_ms ? policy->cap_ms : CAP_MS;

	for (uint32_t i = 1; i < failures && most < cap && factor > 1; i++)
		most *= factor;                  /* both are below 2^32: it cannot overflow */
	if (most > cap)
		most = cap;
	return random % (most + 1);
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
