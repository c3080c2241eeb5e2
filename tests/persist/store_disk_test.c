/* tests/persist/store_disk_test.c - the overlay over LMDB: which of the two speaks, and when. */
#include "persist/store.h"

#include "core/atomic.h"
#include "tests/persist/image_kit.h"

#include <pthread.h>

static struct store *s;

static void start_store(uint64_t boot_tag)
{
	start();
	EXPECT_EQ(store_disk_open(&s, kit.db, boot_tag), NOH_OK);
}

static void finish_store(void)
{
	store_close(s);
	finish();
}

static int save_at(const char *address, const char *image, uint64_t seq, uint64_t due)
{
	struct stored in = { .image = (void *)(uintptr_t)image, .len = strlen(image), .seq = seq,
			     .due = due };

	return store_save(s, address, strlen(address), hash_of(address), &in);
}

static int erase_at(const char *address, uint64_t seq, uint64_t due)
{
	struct stored in = { .seq = seq, .due = due, .gone = true };

	return store_save(s, address, strlen(address), hash_of(address), &in);
}

/* The overlay's images are plain text here; it does not look into them. */
static bool over(const char *address, const char *image, uint64_t seq, uint64_t due)
{
	struct stored out;

	if (store_load(s, address, strlen(address), hash_of(address), &out) != NOH_OK)
		return false;
	bool same = !out.gone && !out.fresh && out.seq == seq && out.due == due &&
		    out.len == strlen(image) && memcmp(out.image, image, out.len) == 0;
	mem_free(out.image, out.len);
	return same;
}

static bool fresh(const char *address, const char *text)
{
	struct stored out;
	char found[1000];

	if (store_load(s, address, strlen(address), hash_of(address), &out) != NOH_OK)
		return false;
	say_image(out.image, out.len, out.seq, found, sizeof found);
	mem_free(out.image, out.len);
	if (strcmp(found, text) != 0)
		fprintf(stderr, "%s is: %s\n", address, found);
	return out.fresh && !out.gone && out.due == 0 && strcmp(found, text) == 0;
}

static bool erased(const char *address, uint64_t seq)
{
	struct stored out;

	return store_load(s, address, strlen(address), hash_of(address), &out) == NOH_OK && out.gone &&
	       !out.image && out.seq == seq;
}

static bool unknown(const char *address)
{
	struct stored out;

	return store_load(s, address, strlen(address), hash_of(address), &out) == NOH_END && !out.image;
}

static void a_saved_image_stands_until_it_is_folded(void)
{
	start_store(1);
	EXPECT(unknown("a:1"));
	EXPECT(!store_may_have(s, hash_of("a:1")));
	EXPECT_EQ(save_at("a:1", "in memory", 5, 10), NOH_OK);
	EXPECT(store_may_have(s, hash_of("a:1")));
	EXPECT(over("a:1", "in memory", 5, 10));
	EXPECT_EQ(store_count(s), 1);
	EXPECT(store_disk_overlay_bytes(s) > 0);
	begin("a:1", 5); state(1, "on disk"); in_frame(1);
	commit(1);
	EXPECT(over("a:1", "in memory", 5, 10));
	store_disk_folded(s, 9);
	EXPECT(over("a:1", "in memory", 5, 10));
	store_disk_folded(s, 10);
	EXPECT(fresh("a:1", "5 S1:on disk"));
	EXPECT_EQ(store_count(s), 1);
	EXPECT(store_may_have(s, hash_of("a:1")));
	EXPECT(store_may_have(s, hash_of("never heard of")));
	finish_store();
}

static void what_is_folded_already_is_not_kept(void)
{
	start_store(1);
	begin("a:1", 5); state(1, "five"); in_frame(1);
	begin("a:1", 6); state(1, "six"); in_frame(1);
	commit(1);
	EXPECT_EQ(save_at("a:1", "five", 5, 9), NOH_OK);
	store_disk_folded(s, 8);
	EXPECT_EQ(save_at("a:2", "x", 5, 8), NOH_OK);
	EXPECT(unknown("a:2"));
	EXPECT(over("a:1", "five", 5, 9));
	/* The sweep for epoch 10 came first: what stands there is older and goes. */
	store_disk_folded(s, 10);
	EXPECT_EQ(save_at("a:1", "later", 7, 30), NOH_OK);
	EXPECT_EQ(save_at("a:1", "six", 8, 10), NOH_OK);
	EXPECT(fresh("a:1", "6 S1:six"));
	EXPECT_EQ(save_at("a:1", "never changed", 6, 0), NOH_OK);
	EXPECT(fresh("a:1", "6 S1:six"));
	finish_store();
}

static void a_changed_entry_outlives_the_fold_of_the_old_one(void)
{
	start_store(1);
	EXPECT_EQ(save_at("a:1", "five", 5, 10), NOH_OK);
	EXPECT_EQ(save_at("a:1", "six", 6, 12), NOH_OK);
	store_disk_folded(s, 11);
	EXPECT(over("a:1", "six", 6, 12));
	EXPECT_EQ(save_at("a:1", "stale", 5, 20), NOH_OK);       /* by sequence, not by time */
	EXPECT(over("a:1", "six", 6, 12));
	finish_store();
}

static void a_tombstone_hides_what_lmdb_still_has(void)
{
	start_store(1);
	begin("a:1", 5); state(1, "old"); in_frame(1);
	commit(1);
	EXPECT(fresh("a:1", "5 S1:old"));
	EXPECT_EQ(erase_at("a:1", 6, 20), NOH_OK);
	EXPECT(erased("a:1", 6));
	gone("a:1", 6); in_frame(2);
	commit(2);
	EXPECT(erased("a:1", 6));
	store_disk_folded(s, 20);
	EXPECT(unknown("a:1"));
	EXPECT_EQ(store_count(s), 0);
	EXPECT(!store_may_have(s, hash_of("a:1")));
	finish_store();
}

/* The argument of store_disk.c, step by step. */
static void pending_messages_are_handed_out_once(void)
{
	start_store(50);
	begin("s:1", 1); emitted("r:1", 1, 1, 0, 49, "before"); emitted("r:1", 1, 1, 1, 50, "of this run");
	emitted("r:2", 1, 1, 2, 10, "to another"); in_frame(1);
	commit(1);
	EXPECT(fresh("r:1", "0 <1.1.0:before"));
	EXPECT(fresh("r:1", "0 <1.1.0:before"));         /* went without having handled it */
	EXPECT_EQ(save_at("r:1", "handled", 60, 100), NOH_OK);
	EXPECT(over("r:1", "handled", 60, 100));         /* not fresh: no messages */
	begin("r:1", 60); state(1, "handled"); consumed(1, 1, 0); in_frame(2);
	commit(2);
	EXPECT(over("r:1", "handled", 60, 100));
	store_disk_folded(s, 100);
	EXPECT(fresh("r:1", "60 S1:handled"));
	EXPECT(fresh("r:2", "0 <1.1.2:to another"));
	EXPECT(store_may_have(s, hash_of("r:2")));
	finish_store();
}

static bool key_is(const char *address, const char *key, const char *part, uint64_t due)
{
	void *found;
	size_t len;
	uint64_t when;
	int rc = store_idem_get(s, address, strlen(address), hash_of(address), key, strlen(key), &found,
				&len, &when);

	if (rc != NOH_OK)
		return rc == NOH_END && !part;
	bool same = part && when == due && len >= strlen(part) &&
		    memcmp((char *)found + len - strlen(part), part, strlen(part)) == 0;
	mem_free(found, len);
	return same;
}

static void keys_are_known_from_the_push_on(void)
{
	start_store(1);
	EXPECT(key_is("a:1", "key", NULL, 0));
	EXPECT_EQ(store_idem_put(s, "a:1", 3, hash_of("a:1"), "key", 3, "answer", 6, 10), NOH_OK);
	EXPECT(key_is("a:1", "key", "answer", 10));
	EXPECT(key_is("a:1", "other", NULL, 0));
	EXPECT(key_is("a:2", "key", NULL, 0));
	begin("a:1", 1); idem("key", NOW, "answer"); in_frame(1);
	commit(1);
	EXPECT(key_is("a:1", "key", "answer", 10));
	store_disk_folded(s, 10);
	EXPECT(key_is("a:1", "key", "answer", 0));
	EXPECT_EQ(store_idem_put(s, "a:1", 3, hash_of("a:1"), "late", 4, "answer", 6, 9), NOH_OK);
	EXPECT(key_is("a:1", "late", NULL, 0));          /* folded before it was put: LMDB knows */
	EXPECT_EQ(store_idem_put(s, "a:1", 3, hash_of("a:1"), "", 0, "x", 1, 99), NOH_EINVAL);
	finish_store();
}

static void a_failed_allocation_changes_nothing(void)
{
	char address[16];

	start();
	mem_fail_at(1, 0);
	EXPECT_EQ(store_disk_open(&s, kit.db, 1), NOH_ENOMEM);
	mem_fail_at(0, 0);
	for (uint64_t nth = 1; nth < 60; nth++) {
		EXPECT_EQ(store_disk_open(&s, kit.db, 1), NOH_OK);
		mem_fail_at(nth, nth % 2);
		for (uint64_t i = 0; i < 40; i++) {      /* one shard: it grows */
			struct stored in = { .image = address, .len = 3, .seq = 1, .due = 9 }, out;
			int len = snprintf(address, sizeof address, "t:%02d", (int)i);
			int rc = store_save(s, address, (size_t)len, i << 48, &in);
			int found = store_load(s, address, (size_t)len, i << 48, &out);

			EXPECT(rc == NOH_OK || rc == NOH_ENOMEM);
			EXPECT(rc == NOH_OK ? found != NOH_END : found != NOH_OK);
			if (found == NOH_OK)
				mem_free(out.image, out.len);
		}
		mem_fail_at(0, 0);
		store_close(s);
	}
	finish();
}

/* Two threads evict and activate actors of their own again and again; a third is the keeper, and folds
 * what they recorded. Nobody may ever find less than it saved. */
enum { OWNERS = 2, OWN = 40, ROUNDS = 3000 };

static struct {
	pthread_t  thread[OWNERS];
	atomic_u64 epoch;
	atomic_u32 ended;
	atomic_u64 seqs[OWNERS][OWN];    /* pushed: what the next fold may take */
} world;

static void *evict_and_load(void *arg)
{
	unsigned me = *(unsigned *)arg;
	uint64_t rng = test_seed + me;
	char address[16], image[24];

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		unsigned which = (unsigned)(test_random(&rng) % OWN);
		uint64_t mine = load_relaxed(&world.seqs[me][which]);
		struct stored out;

		snprintf(address, sizeof address, "o%u:%u", me, which);
		int rc = store_load(s, address, strlen(address), hash_of(address), &out);

		if (mine == 0) {
			EXPECT_EQ(rc, NOH_END);
		} else if (EXPECT_EQ(rc, NOH_OK)) {
			EXPECT_EQ(out.seq, mine);
			mem_free(out.image, out.len);
		}
		/* A turn: push, due, evict. Now and then no record at all. */
		if (test_random(&rng) % 4 == 0)
			continue;
		store_seq_cst(&world.seqs[me][which], mine + 1);
		uint64_t due = load_seq_cst(&world.epoch);

		snprintf(image, sizeof image, "%d", (int)(mine + 1));
		EXPECT_EQ(save_at(address, image, mine + 1, due), NOH_OK);
	}
	add_acq_rel(&world.ended, 1);
	return NULL;
}

static void nobody_loads_less_than_it_saved(void)
{
	static unsigned id[OWNERS];
	uint64_t folded[OWNERS][OWN] = {{0}}, folds = 0;
	char address[16], text[24];

	start_store(1);
	store_relaxed(&world.epoch, 1);
	store_relaxed(&world.ended, 0);
	for (unsigned t = 0; t < OWNERS; t++) {
		for (unsigned i = 0; i < OWN; i++)
			store_relaxed(&world.seqs[t][i], 0);
		id[t] = t;
		EXPECT_EQ(pthread_create(&world.thread[t], NULL, evict_and_load, &id[t]), 0);
	}
	do {
		/* The epoch moves, then the rings are read: all with a due up to the old one are here. */
		uint64_t epoch = add_seq_cst(&world.epoch, 1);

		folds++;
		for (unsigned t = 0; t < OWNERS; t++) {
			for (unsigned i = 0; i < OWN; i++) {
				uint64_t seq = load_seq_cst(&world.seqs[t][i]);
				if (seq == folded[t][i])
					continue;
				snprintf(address, sizeof address, "o%u:%u", t, i);
				snprintf(text, sizeof text, "%d", (int)seq);
				begin(address, seq); state(1, text); in_frame(folds);
				folded[t][i] = seq;
			}
		}
		commit(folds);
		store_disk_folded(s, epoch);
	} while (load_acquire(&world.ended) < OWNERS);
	for (unsigned t = 0; t < OWNERS; t++)
		pthread_join(world.thread[t], NULL);
	finish_store();
}

TEST_MAIN(
	TEST(a_saved_image_stands_until_it_is_folded, "RT-24 LC-07 LC-15"),
	TEST(what_is_folded_already_is_not_kept),
	TEST(a_changed_entry_outlives_the_fold_of_the_old_one),
	TEST(a_tombstone_hides_what_lmdb_still_has),
	TEST(pending_messages_are_handed_out_once, "MB-12"),
	TEST(keys_are_known_from_the_push_on, "RT-30"),
	TEST(a_failed_allocation_changes_nothing),
	TEST(nobody_loads_less_than_it_saved))
