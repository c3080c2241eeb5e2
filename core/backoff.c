/* core/backoff.c - how long to wait before the next attempt: exponential, capped, full jitter (SUP-08, SUP-09).
 *
 * Full jitter, because whatever failed together (a registry that went away under a thousand pulls) must not come back
 * together.
 */
#include "noh_reconcile.h"

#define BASE_MS 100u
#define FACTOR  2u
#define CAP_MS  30000u

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
