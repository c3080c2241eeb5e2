/* tests/persist/refs_test.c - references in the order of their keys, whatever the keys are. */
#include "persist/refs.h"

#include "core/mem.h"
#include "persist/value.h"
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

#define MOST 6000
#define LONGEST 511

static uint8_t keys[MOST][LONGEST + 1];
static struct refs refs;
static uint64_t seed;

static uint32_t below(uint32_t n)
{
	if (!seed)
		seed = test_seed;
	return (uint32_t)(test_random(&seed) % n);
}

static void add(size_t len, uint64_t seq)
{
	EXPECT(refs_add(&refs, keys[refs.count], len, seq, keys[refs.count], (uint32_t)refs.count));
}

static int order(const struct ref *a, const struct ref *b)
{
	int by_key = key_compare(a->key, a->len, b->key, b->len);

	if (by_key)
		return by_key;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* Sorted, stable, nobody lost or doubled, and groups are those with the same key. */
static void expect_sorted(void)
{
	static bool seen[MOST];
	bool fine = refs_sort(&refs);

	memset(seen, 0, sizeof seen);
	for (size_t i = 0; fine && i < refs.count; i++) {
		const struct ref *r = refs_nth(&refs, i), *before = i ? refs_nth(&refs, i - 1) : NULL;

		fine = r->at == keys[r->note] && !seen[r->note];
		seen[r->note] = true;
		if (before && fine)
			fine = order(before, r) < 0 || (order(before, r) == 0 && before->note < r->note);
	}
	for (size_t i = 0, end; fine && i < refs.count; i = end) {
		end = refs_group(&refs, i);
		for (size_t n = i + 1; n < refs.count && n <= end; n++) {
			bool same = key_compare(refs_nth(&refs, i)->key, refs_nth(&refs, i)->len,
						refs_nth(&refs, n)->key, refs_nth(&refs, n)->len) == 0;

			fine &= same == (n < end);
		}
	}
	EXPECT(fine);
	refs_free(&refs);
}

static const uint32_t sizes[] = { 0, 1, 2, 3, 15, 16, 17, 18, 100, 300, MOST };
#define SIZES (sizeof sizes / sizeof sizes[0])

/* `letters` different bytes from `first` on, lengths from least to most, behind a prefix that all have. */
static void random_keys(uint32_t n, const char *prefix, uint32_t least, uint32_t most, uint8_t first, uint32_t letters)
{
	size_t before = strlen(prefix);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t len = least + below(most - least + 1);

		memcpy(keys[i], prefix, before);
		for (uint32_t k = 0; k < len; k++)
			keys[i][before + k] = (uint8_t)(first + below(letters));
		add(before + len, below(4));
	}
}

static void numbers_behind_a_name_are_sorted(void)
{
	for (size_t s = 0; s < SIZES; s++) {
		random_keys(sizes[s], "counter:", 1, 12, '0', 10);
		expect_sorted();
		random_keys(sizes[s], "counter:key:", 8, 8, '0', 10);
		expect_sorted();
		random_keys(sizes[s], "counter:key:", 3, 3, '0', 10);        /* many are the same */
		expect_sorted();
	}
}

static void any_bytes_of_any_length_are_sorted(void)
{
	for (size_t s = 0; s < SIZES; s++) {
		random_keys(sizes[s], "", 1, 40, 0, 256);
		expect_sorted();
		random_keys(sizes[s], "", 0, LONGEST, 0, 2);
		expect_sorted();
	}
}

static void a_key_and_the_same_with_zeros_behind_it_are_two(void)
{
	for (size_t s = 0; s < SIZES; s++) {
		random_keys(sizes[s], "", 1, 20, 0, 1);
		expect_sorted();
		random_keys(sizes[s], "abcdefg", 0, 18, 0, 2);
		expect_sorted();
	}
}

static void what_differs_only_far_behind_is_sorted(void)
{
	char prefix[400];

	memset(prefix, 'x', sizeof prefix);
	prefix[sizeof prefix - 1] = 0;
	for (size_t s = 0; s < SIZES; s++) {
		random_keys(sizes[s], prefix, 0, 9, 'a', 3);
		expect_sorted();
		random_keys(sizes[s], prefix, 9, 100, 'x', 2);
		expect_sorted();
	}
}

static void one_key_is_sorted_by_sequence(void)
{
	for (size_t s = 0; s < SIZES; s++)
		for (uint64_t shape = 0; shape < 3; shape++) {
			for (uint32_t i = 0; i < sizes[s]; i++) {
				memcpy(keys[i], "inventory:apples", 16);
				add(16, shape == 0 ? i : shape == 1 ? UINT64_MAX - i : test_random(&seed));
			}
			expect_sorted();
		}
}

static void the_same_references_can_be_filled_and_sorted_again(void)
{
	for (uint32_t round = 0; round < 4; round++) {
		refs.count = 0;
		random_keys(round == 2 ? 900 : 20, "k", 1, 4, 'a', 4);
		EXPECT(refs_sort(&refs));
		for (size_t i = 1; i < refs.count; i++)
			EXPECT(order(refs_nth(&refs, i - 1), refs_nth(&refs, i)) <= 0);
	}
	refs_free(&refs);
}

/* No memory at any of its allocations: it says so, and can be tried again. */
static void without_memory_there_is_no_order(void)
{
	for (uint64_t nth = 1; nth <= 2; nth++) {
		random_keys(100, "k", 1, 4, 'a', 4);
		(void)mem_fail_at(nth, 0);
		EXPECT(!refs_sort(&refs));
		(void)mem_fail_at(0, 0);
		expect_sorted();
	}
}

TEST_MAIN(
	TEST(numbers_behind_a_name_are_sorted),
	TEST(any_bytes_of_any_length_are_sorted),
	TEST(a_key_and_the_same_with_zeros_behind_it_are_two),
	TEST(what_differs_only_far_behind_is_sorted),
	TEST(one_key_is_sorted_by_sequence),
	TEST(the_same_references_can_be_filled_and_sorted_again),
	TEST(without_memory_there_is_no_order))
