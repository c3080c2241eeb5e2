/* bench/load_keys.c - zipf without tables: rejection-inversion (Hoermann and Derflinger, 1996).
 *
 * The area under x^-s from k - 1/2 to k + 1/2 is never smaller than k^-s, so a point drawn uniformly from
 * the area up to count + 1/2 (its x coordinate comes from the inverse of the integral) is taken for the k
 * it rounds to if it lies within k^-s of the column's right edge, and drawn anew otherwise: exact for
 * every s, no memory, and rarely a second draw. `sure` is how far left of k a point may lie to be within
 * without a look; the first column is cut to k^-s right away (`from`).
 */
#include "bench/load_keys.h"

#include <math.h>
#include <stdbool.h>

static double area(double s, double x)        /* integral of t^-s from 1 to x */
{
	double l = log(x), y = (1 - s) * l;

	return fabs(y) > 1e-8 ? l * expm1(y) / y : l * (1 + y / 2);
}

static double area_inverse(double s, double a)
{
	double y = a * (1 - s);

	if (y < -1)
		y = -1;                               /* only by rounding */
	return exp(fabs(y) > 1e-8 ? a * log1p(y) / y : a * (1 - y / 2));
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b != 0) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

void keys_init(struct keys *k, enum keys_kind kind, uint64_t count, double parameter)
{
	*k = (struct keys){ .kind = kind, .count = count };
	if (kind == KEYS_HOT)
		k->share = parameter;
	if (kind != KEYS_ZIPF)
		return;
	k->s = parameter;
	k->from = area(k->s, 1.5) - 1;
	k->to = area(k->s, (double)count + 0.5);
	k->sure = 2 - area_inverse(k->s, area(k->s, 2.5) - pow(2, -k->s));
	k->spread = (uint64_t)((double)count * 0.6180339887) | 1;
	while (common_divisor(k->spread, count) != 1)
		k->spread++;
}

static double unit(uint64_t *random)          /* 0 <= u < 1, 53 bits */
{
	return (double)((random_next(random) * 0x2545F4914F6CDD1Du) >> 11) * 0x1p-53;
}

static uint64_t uniform(uint64_t count, uint64_t *random)
{
	return ((random_next(random) >> 32) * count) >> 32;
}

static uint64_t zipf_rank(const struct keys *k, uint64_t *random)
{
	for (;;) {
		double u = k->to + unit(random) * (k->from - k->to);
		double x = area_inverse(k->s, u);
		double rank = floor(x + 0.5);

		rank = rank < 1 ? 1 : rank > (double)k->count ? (double)k->count : rank;
		if (rank - x <= k->sure || u >= area(k->s, rank + 0.5) - pow(rank, -k->s))
			return (uint64_t)rank;
	}
}

uint64_t keys_of_rank(const struct keys *k, uint64_t rank)
{
	return (rank - 1) * k->spread % k->count;
}

uint64_t keys_next(const struct keys *k, uint64_t *random, uint64_t *next)
{
	switch (k->kind) {
	case KEYS_SEQ:
		return (*next)++ % k->count;
	case KEYS_ZIPF:
		return keys_of_rank(k, zipf_rank(k, random));
	case KEYS_HOT:
		if (k->share >= 1 || unit(random) < k->share)
			return 0;
		return uniform(k->count, random);
	default:
		return uniform(k->count, random);
	}
}
