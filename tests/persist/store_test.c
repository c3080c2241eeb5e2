/* tests/persist/store_test.c - any store behind the interface; so far the one in memory. */
#include "persist/store.h"

#include "core/atomic.h"
#include "core/mem.h"
#include "noh.h"
#include "tests/lib/test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct store *s;

static void start(void)
{
	EXPECT_EQ(store_mem_open(&s), NOH_OK);
}

/* A hash as the box would make it: any 64 bits, the same for the same address. */
static uint64_t hash_of(const char *address)
{
	uint64_t h = 1469598103934665603u;

	for (; *address; address++)
		h = (h ^ (uint8_t)*address) * 1099511628211u;
	return test_random(&h);
}

static int put(const char *address, size_t alen, uint64_t hash, const void *image, size_t len)
{
	struct stored in = { .image = (void *)(uintptr_t)image, .len = len, .seq = 5, .due = 9 };

	return store_save(s, address, alen, hash, &in);
}

static int drop(const char *address, size_t alen, uint64_t hash)
{
	struct stored in = { .gone = true };

	return store_save(s, address, alen, hash, &in);
}

static int get(const char *address, size_t alen, uint64_t hash, void **copy, size_t *len)
{
	struct stored out;
	int rc = store_load(s, address, alen, hash, &out);

	EXPECT(!out.gone && !out.fresh);
	if (rc == NOH_OK)
		EXPECT(out.seq == 5 && out.due == 9);
	*copy = out.image;
	*len = out.len;
	return rc;
}

static int save(const char *address, const char *image)
{
	return put(address, strlen(address), hash_of(address), image, strlen(image));
}

static int erase(const char *address)
{
	return drop(address, strlen(address), hash_of(address));
}

static bool holds(const char *address, const char *image)
{
	void *copy = NULL;
	size_t len = 0;

	if (get(address, strlen(address), hash_of(address), &copy, &len) != NOH_OK)
		return false;
	bool same = len == strlen(image) && memcmp(copy, image, len) == 0;
	mem_free(copy, len);
	return same;
}

static bool absent(const char *address)
{
	void *copy = NULL;
	size_t len = 0;

	return get(address, strlen(address), hash_of(address), &copy, &len) == NOH_END &&
	       copy == NULL;
}

static void what_was_saved_is_loaded_until_erased(void)
{
	start();
	EXPECT(absent("cart:1"));
	EXPECT(!store_may_have(s, hash_of("cart:1")));
	EXPECT_EQ(erase("cart:1"), NOH_OK);
	EXPECT_EQ(save("cart:1", "three pears"), NOH_OK);
	EXPECT(store_may_have(s, hash_of("cart:1")));
	EXPECT(holds("cart:1", "three pears"));
	EXPECT_EQ(save("cart:1", "two"), NOH_OK);
	EXPECT(holds("cart:1", "two"));
	EXPECT_EQ(store_count(s), 1);
	EXPECT_EQ(erase("cart:1"), NOH_OK);
	EXPECT(absent("cart:1"));
	EXPECT_EQ(erase("cart:1"), NOH_OK);
	EXPECT(!store_may_have(s, hash_of("cart:1")));
	EXPECT_EQ(store_count(s), 0);
	store_close(s);
	store_close(NULL);
}

static void an_empty_image_is_an_image(void)
{
	start();
	EXPECT_EQ(save("note:1", ""), NOH_OK);
	EXPECT(holds("note:1", ""));
	EXPECT_EQ(store_count(s), 1);
	EXPECT_EQ(put("note:1", 6, hash_of("note:1"), NULL, 0), NOH_OK);
	EXPECT(holds("note:1", ""));
	EXPECT_EQ(put("note:1", 6, 0, "x", SIZE_MAX - 8), NOH_ENOMEM);
	store_close(s);
}

static void sequence_and_due_are_kept_with_the_image(void)
{
	struct stored in = { .image = (void *)(uintptr_t)"x", .len = 1, .seq = 77, .due = 12 }, out;

	start();
	EXPECT_EQ(store_save(s, "a:1", 3, 5, &in), NOH_OK);
	EXPECT_EQ(store_load(s, "a:1", 3, 5, &out), NOH_OK);
	EXPECT(out.seq == 77 && out.due == 12 && out.len == 1);
	mem_free(out.image, out.len);
	store_close(s);
}

static void there_are_no_idempotency_keys_without_a_disk(void)
{
	void *part;
	size_t len;
	uint64_t due;

	start();
	EXPECT_EQ(store_idem_put(s, "a:1", 3, 5, "key", 3, "part", 4, 1), NOH_OK);
	EXPECT_EQ(store_idem_get(s, "a:1", 3, 5, "key", 3, &part, &len, &due), NOH_END);
	store_close(s);
}

static void equal_hashes_do_not_confuse_addresses(void)
{
	void *copy = NULL;
	size_t len = 0;

	start();
	EXPECT_EQ(put("a:1", 3, 77, "one", 3), NOH_OK);
	EXPECT_EQ(put("a:12", 4, 77, "twelve", 6), NOH_OK);
	EXPECT_EQ(put("b:1", 3, 77, "other", 5), NOH_OK);
	EXPECT_EQ(store_count(s), 3);
	EXPECT_EQ(drop("a:1", 3, 77), NOH_OK);
	EXPECT_EQ(get("a:1", 3, 77, &copy, &len), NOH_END);
	EXPECT_EQ(get("a:12", 4, 77, &copy, &len), NOH_OK);
	EXPECT(len == 6 && memcmp(copy, "twelve", 6) == 0);
	mem_free(copy, len);
	store_close(s);
}

static void many_images_are_all_found_and_counted(void)
{
	enum { MANY = 50000 };
	char address[32], image[32];

	start();
	uint64_t empty = store_bytes(s);

	for (int i = 0; i < MANY; i++) {
		snprintf(address, sizeof address, "user:%d", i);
		snprintf(image, sizeof image, "image %d", i * 7);
		EXPECT_EQ(save(address, image), NOH_OK);
	}
	EXPECT_EQ(store_count(s), MANY);
	EXPECT(store_bytes(s) > empty + MANY * 16);
	for (int i = 0; i < MANY; i++) {
		snprintf(address, sizeof address, "user:%d", i);
		snprintf(image, sizeof image, "image %d", i * 7);
		EXPECT(holds(address, image));
		if (i % 2)
			EXPECT_EQ(erase(address), NOH_OK);
	}
	EXPECT_EQ(store_count(s), MANY / 2);
	EXPECT(absent("user:1"));
	EXPECT(holds("user:2", "image 14"));
	store_close(s);
}

static void a_failed_allocation_changes_nothing(void)
{
	mem_fail_at(1, 0);
	EXPECT_EQ(store_mem_open(&s), NOH_ENOMEM);
	mem_fail_at(0, 0);
	for (uint64_t nth = 1; nth < 200; nth++) {
		char address[32];
		bool saved[100];
		void *copy;
		size_t len;
		uint64_t count = 0;

		start();
		mem_fail_at(nth, nth % 2);
		for (uint64_t i = 0; i < 100; i++) {     /* one shard: it grows three times */
			int alen = snprintf(address, sizeof address, "t:%d", (int)i);
			int rc = put(address, (size_t)alen, i << 48, "image", 5);
			EXPECT(rc == NOH_OK || rc == NOH_ENOMEM);
			saved[i] = rc == NOH_OK;
			count += saved[i];
			rc = get(address, (size_t)alen, i << 48, &copy, &len);
			EXPECT(saved[i] ? rc != NOH_END : rc == NOH_END);
			if (rc == NOH_OK)
				mem_free(copy, len);
		}
		mem_fail_at(0, 0);
		EXPECT_EQ(store_count(s), count);
		for (uint64_t i = 0; i < 100; i++) {
			int alen = snprintf(address, sizeof address, "t:%d", (int)i);
			EXPECT_EQ(drop(address, (size_t)alen, i << 48), NOH_OK);
			EXPECT_EQ(store_count(s), count -= saved[i]);
		}
		store_close(s);
	}
}

static void a_table_that_cannot_grow_goes_on_crowded(void)
{
	char name[2] = "a";

	start();
	for (uint64_t i = 0; i < 40; i++) {
		name[0] = (char)('A' + i);
		mem_fail_at(i ? 2 : 0, 1);       /* the image's memory, but not the table's */
		EXPECT_EQ(put(name, 1, i << 48, &i, sizeof i), NOH_OK);
	}
	mem_fail_at(0, 0);
	EXPECT_EQ(store_count(s), 40);
	EXPECT_EQ(put(name, 1, (uint64_t)39 << 48, "x", 1), NOH_OK);      /* now it grows */
	EXPECT_EQ(store_count(s), 40);
	for (uint64_t i = 0; i < 40; i++) {
		name[0] = (char)('A' + i);
		EXPECT_EQ(drop(name, 1, i << 48), NOH_OK);
	}
	store_close(s);
}

/* Four threads on few addresses. An image is one letter, repeated as often as the letter says:
 * a mixture of two would show. */
enum { THREADS = 4, ROUNDS = 20000, ADDRESSES = 24 };

static struct {
	pthread_t  thread[THREADS];
	uint64_t   seed[THREADS];
	atomic_u64 loads;
} hammer;

static void one_blow(uint64_t dice)
{
	uint64_t which = dice % ADDRESSES;
	uint64_t hash = which % 3 << 52 | which % 2 << 56;    /* six hashes in two shards */
	char address[2] = { 'a', (char)('0' + which) }, image[64];
	size_t len = dice >> 16 & 63;
	void *copy;

	memset(image, (int)('A' + len), sizeof image);
	if (dice >> 32 & 1) {
		EXPECT_EQ(put(address, 2, hash, image, len), NOH_OK);
	} else if (dice >> 33 & 1) {
		int rc = get(address, 2, hash, &copy, &len);
		if (rc != NOH_OK) {
			EXPECT_EQ(rc, NOH_END);
			return;
		}
		for (size_t i = 0; i < len; i++)
			EXPECT_EQ(((char *)copy)[i], (char)('A' + len));
		mem_free(copy, len);
		add_relaxed(&hammer.loads, 1);
	} else {
		EXPECT_EQ(drop(address, 2, hash), NOH_OK);
		(void)store_may_have(s, hash);
		(void)store_count(s);
	}
}

static void *blows(void *seed)
{
	for (int i = 0; i < ROUNDS; i++)
		one_blow(test_random(seed));
	return NULL;
}

static void four_threads_never_see_half_an_image(void)
{
	uint64_t rng = test_seed;

	start();
	store_relaxed(&hammer.loads, 0);
	for (int t = 0; t < THREADS; t++) {
		hammer.seed[t] = test_random(&rng);
		EXPECT_EQ(pthread_create(&hammer.thread[t], NULL, blows, &hammer.seed[t]), 0);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(hammer.thread[t], NULL);
	EXPECT(load_relaxed(&hammer.loads) > 0);
	for (uint64_t which = 0; which < ADDRESSES; which++) {
		char address[2] = { 'a', (char)('0' + which) };
		EXPECT_EQ(drop(address, 2, which % 3 << 52 | which % 2 << 56), NOH_OK);
		EXPECT(store_count(s) < ADDRESSES - which);
	}
	EXPECT_EQ(store_count(s), 0);
	store_close(s);
}

static void *change_length(void *arg)
{
	static const char image[5000];

	for (int i = 0; i < ROUNDS; i++)
		EXPECT_EQ(put("a:1", 3, 1, image, i % 2 ? sizeof image : 1), NOH_OK);
	store_release((atomic_u32 *)arg, 1);
	return NULL;
}

static void a_load_follows_an_image_that_changes_its_length(void)
{
	atomic_u32 done = 0;
	void *copy;
	size_t len;

	start();
	EXPECT_EQ(put("a:1", 3, 1, "x", 1), NOH_OK);
	EXPECT_EQ(pthread_create(&hammer.thread[0], NULL, change_length, &done), 0);
	while (!load_acquire(&done)) {
		EXPECT_EQ(get("a:1", 3, 1, &copy, &len), NOH_OK);
		EXPECT(len == 1 || len == 5000);
		mem_free(copy, len);
	}
	pthread_join(hammer.thread[0], NULL);
	store_close(s);
}

/* Each thread has addresses of its own, so it knows what it must find. */
static void *own_addresses(void *arg)
{
	unsigned me = *(unsigned *)arg;
	char address[32], image[32];

	for (unsigned i = 0; i < 3000; i++) {
		snprintf(address, sizeof address, "t%u:%u", me, i);
		snprintf(image, sizeof image, "%u of %u", i, me);
		EXPECT_EQ(save(address, image), NOH_OK);
		EXPECT(store_may_have(s, hash_of(address)));
		EXPECT(holds(address, image));
		if (i % 3 == 0)
			EXPECT_EQ(erase(address), NOH_OK);
	}
	return NULL;
}

static void four_threads_find_what_they_saved(void)
{
	unsigned id[THREADS];

	start();
	for (unsigned t = 0; t < THREADS; t++) {
		id[t] = t;
		EXPECT_EQ(pthread_create(&hammer.thread[t], NULL, own_addresses, &id[t]), 0);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(hammer.thread[t], NULL);
	EXPECT_EQ(store_count(s), THREADS * 2000);
	EXPECT(holds("t3:2998", "2998 of 3"));
	EXPECT(absent("t3:2997"));
	store_close(s);
}

TEST_MAIN(
	TEST(what_was_saved_is_loaded_until_erased, "RT-24"),
	TEST(an_empty_image_is_an_image),
	TEST(sequence_and_due_are_kept_with_the_image),
	TEST(there_are_no_idempotency_keys_without_a_disk),
	TEST(equal_hashes_do_not_confuse_addresses),
	TEST(many_images_are_all_found_and_counted),
	TEST(a_failed_allocation_changes_nothing),
	TEST(a_table_that_cannot_grow_goes_on_crowded),
	TEST(four_threads_never_see_half_an_image, "RT-24"),
	TEST(a_load_follows_an_image_that_changes_its_length),
	TEST(four_threads_find_what_they_saved))
