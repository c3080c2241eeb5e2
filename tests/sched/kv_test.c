/* tests/sched/kv_test.c - the key-value part against a plain table. */
#include "sched/kv.h"

#include "core/mem.h"
#include "noh.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 300

/* The model: key i is a fixed string, version[i] says which value it has; 0: absent. */
static struct {
	struct kv     kv;
	struct kv_log log;
	uint64_t      rng;
	uint32_t      version[KEYS], committed[KEYS];
	uint8_t       key[KEYS][KV_KEY_MAX];
	size_t        klen[KEYS];
	uint8_t       value[4096];
} m;

/* Keys of all lengths over few letters, so that many begin like others. */
static void start(void)
{
	memset(&m, 0, sizeof m);
	m.rng = test_seed;
	for (uint32_t i = 0; i < KEYS; i++) {
		m.klen[i] = i < 3 ? i + 1 : i < 10 ? 255 - i : 4 + i % 40;
		memset(m.key[i], i % 3 ? 0xff : 0, m.klen[i]);
		for (size_t at = 0; i >= 3 && at < 4; at++)
			m.key[i][m.klen[i] - 1 - at] = (uint8_t)((i >> at * 3 & 7) * 36);
	}
}

static size_t make_value(uint32_t i, uint32_t version)
{
	size_t len = (i * 7 + version * 13) % (version % 10 == 0 ? sizeof m.value : 40);

	memset(m.value, (int)(version & 0xff), len);
	return len;
}

static int put(uint32_t i, uint32_t version)
{
	return kv_put(&m.kv, &m.log, m.key[i], m.klen[i], m.value, make_value(i, version));
}

static void expect_like(const uint32_t *version)
{
	struct kv_walk w = { .kv = &m.kv };
	uint64_t present = 0, bytes = 0, entries = 0;

	for (uint32_t i = 0; i < KEYS; i++) {
		const struct kv_node *n = kv_get(&m.kv, m.key[i], m.klen[i]);

		if (!EXPECT_EQ(n != NULL, version[i] != 0) || !n)
			continue;
		present++;
		EXPECT_EQ(n->vlen, make_value(i, version[i]));
		EXPECT(memcmp(kv_value(n), m.value, n->vlen) == 0);
		EXPECT_EQ((uintptr_t)kv_value(n) % 8, 0);
	}
	EXPECT_EQ(m.kv.entries, present);
	for (const struct kv_node *n; (n = kv_walk_on(&w)) != NULL; entries++)
		bytes += sizeof *n + n->klen + n->vlen;
	EXPECT_EQ(entries, present);
	EXPECT(m.kv.bytes >= bytes && m.kv.bytes <= bytes + 600 * (entries + 1));
}

static int before(const void *a, size_t alen, const void *b, size_t blen)
{
	int c = memcmp(a, b, alen < blen ? alen : blen);

	return c < 0 || (c == 0 && alen < blen);
}

static void expect_sorted_scan(void)
{
	const struct kv_node *n = NULL, *last = NULL;
	uint64_t seen = 0;

	while ((n = kv_next(&m.kv, last ? kv_key(last) : NULL, last ? last->klen : 0))) {
		EXPECT(!last || before(kv_key(last), last->klen, kv_key(n), n->klen));
		last = n;
		if (!EXPECT(++seen <= m.kv.entries))
			return;
	}
	EXPECT_EQ(seen, m.kv.entries);
}

static void random_turn(unsigned changes)
{
	for (unsigned c = 0; c < changes; c++) {
		uint64_t dice = test_random(&m.rng);
		uint32_t i = (uint32_t)(dice >> 8) % KEYS;
		uint32_t version = 1 + (uint32_t)(dice >> 40);

		if (dice % 8 < 5) {
			EXPECT_EQ(put(i, version), NOH_OK);
			m.version[i] = version;
		} else {
			int rc = kv_delete(&m.kv, &m.log, m.key[i], m.klen[i]);
			EXPECT_EQ(rc, m.version[i] ? NOH_OK : NOH_END);
			m.version[i] = 0;
		}
	}
}

/* P4: a turn that fails leaves nothing of itself behind. */
static void turns_are_kept_or_undone_as_a_whole(void)
{
	start();
	for (unsigned turn = 0; turn < 1500; turn++) {
		uint64_t old = m.kv.entries;

		random_turn((unsigned)(test_random(&m.rng) % (turn % 50 ? 12 : 400)));
		if (turn % 100 == 0)
			expect_like(m.version);
		if (test_random(&m.rng) % 2) {
			kv_commit(&m.kv, &m.log);
			memcpy(m.committed, m.version, sizeof m.version);
		} else {
			kv_rollback(&m.kv, &m.log);
			memcpy(m.version, m.committed, sizeof m.version);
			EXPECT_EQ(m.kv.entries, old);
		}
		EXPECT_EQ(m.log.count, 0);
		if (turn % 10 == 0)
			expect_like(m.version);
	}
	expect_sorted_scan();
	kv_free(&m.kv);
	EXPECT_EQ(m.kv.entries + m.kv.bytes, 0);
}

/* All entries as bytes, as a walk meets them. */
static uint8_t *walked(size_t *len)
{
	struct kv_walk w = { .kv = &m.kv };
	uint8_t *bytes = malloc(m.kv.bytes + 1), *at = bytes;
	uint64_t entries = 0;

	for (const struct kv_node *n; (n = kv_walk_on(&w)) != NULL; entries++) {
		memcpy(at, kv_value(n), n->vlen + n->klen);      /* the key stands behind the value */
		at += n->vlen + n->klen;
	}
	EXPECT_EQ(entries, m.kv.entries);
	*len = (size_t)(at - bytes);
	return bytes;
}

static void an_undone_turn_needs_no_memory_and_leaves_the_same_tree(void)
{
	start();
	random_turn(400);
	kv_commit(&m.kv, &m.log);
	memcpy(m.committed, m.version, sizeof m.version);
	size_t len, len_again;
	uint8_t *image = walked(&len), *again;

	random_turn(2000);
	mem_fail_at(1, 1);
	kv_rollback(&m.kv, &m.log);
	EXPECT_EQ(mem_fail_at(0, 0), 0);
	expect_like(m.committed);
	again = walked(&len_again);
	EXPECT(len == len_again && memcmp(image, again, len) == 0);
	kv_free(&m.kv);
	free(image);
	free(again);
}

static void a_failed_allocation_changes_nothing(void)
{
	start();
	for (uint64_t nth = 1; nth < 40; nth++) {
		unsigned refused = 0;

		mem_fail_at(nth, 1);
		for (uint32_t i = 0; i < 60; i++) {
			uint32_t version = 1 + (uint32_t)nth * 100 + i;
			int rc = put(i, version);

			EXPECT(rc == NOH_OK || rc == NOH_ENOMEM);
			refused += rc == NOH_ENOMEM;
			m.version[i] = rc == NOH_OK ? version : m.version[i];
		}
		for (uint32_t i = 0; i < 60; i += 3) {
			int rc = kv_delete(&m.kv, &m.log, m.key[i], m.klen[i]);

			EXPECT(rc == (m.version[i] ? NOH_OK : NOH_END) || rc == NOH_ENOMEM);
			m.version[i] = rc == NOH_OK ? 0 : m.version[i];
		}
		mem_fail_at(0, 0);
		EXPECT(refused > 0);
		expect_like(m.version);
		if (nth % 2) {
			kv_commit(&m.kv, &m.log);
			memcpy(m.committed, m.version, sizeof m.version);
		} else {
			kv_rollback(&m.kv, &m.log);
			memcpy(m.version, m.committed, sizeof m.version);
		}
		expect_like(m.version);
	}
	kv_free(&m.kv);
}

static void keys_have_between_1_and_255_bytes(void)
{
	uint8_t key[256] = { 1 };

	start();
	EXPECT_EQ(kv_put(&m.kv, &m.log, key, 0, "x", 1), NOH_EINVAL);
	EXPECT_EQ(kv_put(&m.kv, &m.log, key, 256, "x", 1), NOH_EINVAL);
	EXPECT_EQ(kv_delete(&m.kv, &m.log, key, 0), NOH_EINVAL);
	EXPECT_EQ(kv_delete(&m.kv, &m.log, key, 256), NOH_EINVAL);
	EXPECT(kv_get(&m.kv, key, 0) == NULL);
	EXPECT(kv_get(&m.kv, key, 256) == NULL);
	EXPECT_EQ(kv_put(&m.kv, &m.log, key, 255, NULL, 0), NOH_OK);
	EXPECT_EQ(kv_put(&m.kv, &m.log, key, 1, "x", SIZE_MAX), NOH_ENOMEM);
	EXPECT_EQ(m.kv.entries, 1);
	EXPECT_EQ(kv_get(&m.kv, key, 255)->vlen, 0);
	kv_commit(&m.kv, &m.log);
	kv_free(&m.kv);
}

static void a_scan_is_sorted_and_starts_anywhere(void)
{
	static const char *const sorted[] = { "a", "aa", "ab", "b", "ba", "c" };
	static const int order[] = { 3, 0, 5, 2, 4, 1 };

	start();
	for (unsigned i = 0; i < 6; i++)
		kv_put(&m.kv, &m.log, sorted[order[i]], strlen(sorted[order[i]]), "v", 1);
	kv_commit(&m.kv, &m.log);
	expect_sorted_scan();
	EXPECT(memcmp(kv_key(kv_next(&m.kv, NULL, 0)), "a", 1) == 0);
	EXPECT(memcmp(kv_key(kv_next(&m.kv, "a", 1)), "aa", 2) == 0);
	EXPECT(memcmp(kv_key(kv_next(&m.kv, "aaa", 3)), "ab", 2) == 0);
	EXPECT(memcmp(kv_key(kv_next(&m.kv, "bz", 2)), "c", 1) == 0);
	EXPECT(kv_next(&m.kv, "c", 1) == NULL);
	kv_free(&m.kv);
}

static void a_million_entries_in_order_take_little_more_than_themselves(void)
{
	const uint32_t million = 1000000;
	char key[16];

	start();
	for (uint32_t i = 0; i < million; i++) {
		int klen = snprintf(key, sizeof key, "order-%07u", (unsigned)i);
		EXPECT_EQ(kv_put(&m.kv, &m.log, key, (size_t)klen, &i, sizeof i), NOH_OK);
	}
	kv_commit(&m.kv, &m.log);
	EXPECT_EQ(m.kv.entries, million);
	EXPECT(m.kv.bytes < million * (uint64_t)(sizeof(struct kv_node) + 13 + 4 + 18));
	size_t len;
	free(walked(&len));
	EXPECT_EQ(len, million * (13 + sizeof(uint32_t)));
	kv_free(&m.kv);
}

/* First in, first out, as holds come and go: what is gone takes no room. */
static void what_is_taken_out_gives_its_room_back(void)
{
	enum { WIDE = 5000 };
	uint64_t most = 0;

	start();
	for (uint32_t i = 0; i < 20 * WIDE; i++) {
		uint32_t key = __builtin_bswap32(i), old = __builtin_bswap32(i - WIDE);

		EXPECT_EQ(kv_put(&m.kv, &m.log, &key, 4, "value", 5), NOH_OK);
		if (i >= WIDE)
			EXPECT_EQ(kv_delete(&m.kv, &m.log, &old, 4), NOH_OK);
		kv_commit(&m.kv, &m.log);
		most = m.kv.bytes > most ? m.kv.bytes : most;
	}
	EXPECT_EQ(m.kv.entries, WIDE);
	EXPECT(most < WIDE * (sizeof(struct kv_node) + 9 + 20));
	for (uint32_t i = 19 * WIDE; i < 20 * WIDE; i++) {       /* and from the other end, every other one first */
		uint32_t key = __builtin_bswap32(19 * WIDE + (i * 2 - 38 * WIDE) % WIDE + (i * 2 - 38 * WIDE) / WIDE);

		EXPECT_EQ(kv_delete(&m.kv, &m.log, &key, 4), NOH_OK);
		kv_commit(&m.kv, &m.log);
	}
	EXPECT_EQ(m.kv.entries + m.kv.bytes, 0);
	EXPECT(m.kv.root == NULL);
}

/* Keys whose first 8 bytes are all the same: their order is in the rest. */
static void keys_that_begin_alike_are_told_apart(void)
{
	enum { ALIKE = 3000 };
	const struct kv_node *n = NULL;
	char key[32], last[32] = "";
	uint32_t seen = 0;

	start();
	for (uint32_t i = 0; i < ALIKE; i++) {
		int klen = snprintf(key, sizeof key, "beginning-%u", (unsigned)(i * 2654435761u % 100000));

		EXPECT_EQ(kv_put(&m.kv, &m.log, key, (size_t)klen, &i, 4), NOH_OK);
	}
	kv_commit(&m.kv, &m.log);
	while ((n = kv_next(&m.kv, n ? kv_key(n) : NULL, n ? n->klen : 0)) != NULL) {
		snprintf(key, sizeof key, "%.*s", (int)n->klen, (const char *)kv_key(n));
		EXPECT(strcmp(last, key) < 0);
		strcpy(last, key);
		EXPECT(kv_get(&m.kv, key, n->klen) == n);
		seen++;
	}
	EXPECT_EQ(seen, m.kv.entries);
	kv_free(&m.kv);
}

TEST_MAIN(
	TEST(turns_are_kept_or_undone_as_a_whole, "RT-23"),
	TEST(an_undone_turn_needs_no_memory_and_leaves_the_same_tree, "RT-23"),
	TEST(a_failed_allocation_changes_nothing),
	TEST(keys_have_between_1_and_255_bytes),
	TEST(a_scan_is_sorted_and_starts_anywhere, "RT-23"),
	TEST(a_million_entries_in_order_take_little_more_than_themselves, "RT-23"),
	TEST(what_is_taken_out_gives_its_room_back),
	TEST(keys_that_begin_alike_are_told_apart))
