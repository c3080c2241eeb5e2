/* core/histogram.c - the scales, and adding to a bucket. */
#include "core/histogram.h"

#define US(n) (UINT64_C(1000) * (n))
#define MS(n) (UINT64_C(1000000) * (n))
#define LATENCY                                                                                    \
	US(50), US(100), US(250), US(500), MS(1), US(2500), MS(5), MS(10), MS(25), MS(50), MS(100),  \
	MS(250), MS(500), MS(1000), MS(2500), MS(5000), MS(10000), MS(30000)

const struct histogram_scale histogram_latency = { 18, true, { LATENCY } };
const struct histogram_scale histogram_fine = {
	24, true, { 500, US(1), 2500, US(5), US(10), US(25), LATENCY }
};
const struct histogram_scale histogram_batch = { 7, false, { 1, 2, 4, 8, 16, 32, 64 } };
const struct histogram_scale histogram_group = {
	9, false, { 1, 4, 16, 64, 256, 1024, 4096, 16384, 65536 }
};

void histogram_add(struct histogram *h, const struct histogram_scale *scale, uint64_t value)
{
	uint32_t i = 0;

	while (i < scale->count && value > scale->bounds[i])
		i++;
	count_one(&h->buckets[i], 1);
	count_one(&h->sum, value);
}

void histogram_collect(struct histogram_sum *into, struct histogram *from)
{
	for (uint32_t i = 0; i <= HISTOGRAM_BOUNDS; i++) {
		uint64_t n = load_relaxed(&from->buckets[i]);

		into->buckets[i] += n;
		into->count += n;
	}
	into->sum += load_relaxed(&from->sum);
}
