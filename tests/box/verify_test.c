/* tests/box/verify_test.c - verify finds what is planted and says where; a directory that cannot be opened
 * is refused in one sentence and left as it was, by a box and by every tool. */
#include "tests/box/care_kit.h"

#include "persist/frame.h"
#include "persist/value.h"

#include <lmdb.h>

#define SEGMENT "journal/00000001.seg"
#define MARK INT64_C(0x6b72616d2d796d21)     /* a state that is easy to find in a file */

/* Answers one after another, so a frame each; entries, a timer. Stopped: folded, or killed: all in the tail. */
static void make(const char *dir, bool stop)
{
	noh_box *box = care_box(dir);

	for (int64_t i = 0; i < 30; i++)
		EXPECT_EQ(call_i64(box, "care:a", CARE_ADD, 1), i + 1);
	EXPECT_EQ(call_i64(box, "care:mark", CARE_ADD, MARK), MARK);
	EXPECT_EQ(noh_call(box, "care:a", CARE_PUT, &(int64_t){ 77 }, 8, 5000, NULL, NULL), NOH_OK);
	EXPECT_EQ(noh_call(box, "care:a", CARE_ALARM, &(int64_t){ 3600000 }, 8, 5000, NULL, NULL), NOH_OK);
	EXPECT_EQ(call_i64(box, "care:z", CARE_ADD, 1), 1);
	if (stop)
		shut(box);
	else
		noh_close(box);
}

static void expect_found(const char *dir, const char *where, const char *what)
{
	struct findings f;
	noh_verified v;
	char before[64], after[64];

	digest(dir, before);
	EXPECT_EQ(verify_dir(dir, &f, &v), NOH_ECORRUPT);
	EXPECT(f.count > 0 && f.count == v.findings);
	if (!EXPECT(strstr(f.all, where) && strstr(f.all, what)))
		fprintf(stderr, "not \"%s\" and \"%s\" in: %s\n", where, what, f.all);
	digest(dir, after);
	EXPECT(strcmp(before, after) == 0);
}

/* A box refuses it, names the file, and changes nothing. */
static void expect_refused(const char *dir, int code, const char *word)
{
	noh_options o = { .workers = 1, .dir = dir, .unpinned = true, .max_actors = 1000 };
	char before[64], after[64];
	noh_box *box = NULL;

	digest(dir, before);
	EXPECT_EQ(noh_open(&box, &o), code);
	EXPECT(box == NULL);
	if (!EXPECT(strstr(noh_why(), word) != NULL))
		fprintf(stderr, "not \"%s\" in: %s\n", word, noh_why());
	digest(dir, after);
	EXPECT(strcmp(before, after) == 0);
}

/* Every tool that opens it says the same. */
static void expect_tools_refuse(const char *dir, int code, const char *word)
{
	char before[64], after[64], dest[600];
	noh_dir_info info;
	struct stat st;

	snprintf(dest, sizeof dest, "%s.copy", dir);
	digest(dir, before);
	EXPECT_EQ(noh_verify(dir, NULL, NULL, NULL, NULL), code);
	EXPECT(strstr(noh_why(), word) != NULL);
	EXPECT_EQ(noh_inspect(dir, &info), code);
	EXPECT(strstr(noh_why(), word) != NULL);
	EXPECT_EQ(noh_check(dir, NULL, 0, NULL, NULL), code);
	EXPECT_EQ(noh_backup_dir(dir, dest, NULL), code);
	EXPECT_EQ(noh_restore(dir, dest, NULL, NULL, NULL), code);
	EXPECT_EQ(noh_compact(dir, NULL), code);
	EXPECT(strstr(noh_why(), word) != NULL);
	EXPECT(lstat(dest, &st) != 0);
	digest(dir, after);
	EXPECT(strcmp(before, after) == 0);
}

static void a_healthy_directory_is_clean(void)
{
	struct place p;
	struct findings f;
	noh_verified v;

	place_make(&p);
	make(p.path, false);
	EXPECT_EQ(verify_dir(p.path, &f, &v), NOH_OK);
	EXPECT(v.frames >= 34 && v.records >= 34 && v.torn_bytes == 0);
	remove_dir(p.path);
	make(p.path, true);
	expect_clean(p.path);
	remove_dir(p.base);
}

static void a_flip_in_a_frame_with_later_ones_is_corruption(void)
{
	struct place p;
	off_t at;

	place_make(&p);
	make(p.path, false);
	at = find_bytes(p.path, SEGMENT, &(int64_t){ MARK }, 8);
	EXPECT(at > 0);
	flip(p.path, SEGMENT, at);
	char offset[32];

	snprintf(offset, sizeof offset, "offset %lld", (long long)(at / 4096 * 4096));
	expect_found(p.path, SEGMENT, offset);
	expect_refused(p.path, NOH_ECORRUPT, SEGMENT);
	remove_dir(p.base);
}

static void a_torn_tail_is_fine(void)
{
	struct place p;
	struct findings f;
	noh_verified v;
	int64_t one = 1;
	off_t last = -1, at = 0;
	char path[400];

	place_make(&p);
	make(p.path, false);
	snprintf(path, sizeof path, "%s/" SEGMENT, p.path);
	int fd = open(path, O_RDONLY);
	struct frame_head h;

	for (at = 4096; pread(fd, &h, sizeof h, at) == sizeof h && h.magic == FRAME_MAGIC; at += (off_t)frame_size(h.bytes))
		last = at;
	close(fd);
	flip(p.path, SEGMENT, last + 90);        /* nothing after it knew it */
	EXPECT_EQ(verify_dir(p.path, &f, &v), NOH_OK);
	EXPECT_EQ(f.count, 0);
	EXPECT(v.torn_bytes >= 4096);
	noh_box *box = care_box(p.path);

	EXPECT_EQ(call_i64(box, "care:mark", CARE_GET, 0), MARK);
	EXPECT_EQ(call_i64(box, "care:z", CARE_ADD, one), 1);
	shut(box);
	remove_dir(p.base);
}

static void damage_to_a_segments_head_is_found(void)
{
	struct place p;

	place_make(&p);
	make(p.path, false);
	flip(p.path, SEGMENT, 3000);
	expect_found(p.path, SEGMENT, "offset 3000");
	flip(p.path, SEGMENT, 3000);
	flip(p.path, SEGMENT, 20);
	expect_found(p.path, SEGMENT, "offset 0");
	expect_refused(p.path, NOH_ECORRUPT, SEGMENT);
	remove_dir(p.base);
}

static void a_truncated_segment_is_found(void)
{
	struct place p;

	place_make(&p);
	make(p.path, false);
	EXPECT_EQ(shell("truncate -s 50000 %s/" SEGMENT, p.path), 0);
	expect_found(p.path, SEGMENT, "cut off at offset 50000");
	expect_refused(p.path, NOH_ECORRUPT, SEGMENT);
	remove_dir(p.base);
}

/* Who asks it is told that it is damaged, not that it failed; others answer. */
static void expect_corrupt(const char *dir, const char *address)
{
	noh_box *box = care_box(dir);

	EXPECT_EQ(noh_call(box, address, CARE_GET, NULL, 0, 5000, NULL, NULL), NOH_ECORRUPT);
	EXPECT_EQ(noh_call(box, address, CARE_ADD, &(int64_t){ 1 }, 8, 5000, NULL, NULL), NOH_ECORRUPT);
	EXPECT_EQ(call_i64(box, "care:other", CARE_ADD, 5), 5);
	shut(box);
}

static void flips_in_the_image_are_found(void)
{
	struct place p;
	off_t at;
	int flips = 0;

	place_make(&p);
	make(p.path, true);
	for (; (at = find_bytes(p.path, "image/data.mdb", &(int64_t){ MARK }, 8)) >= 0; flips++)
		flip(p.path, "image/data.mdb", at);      /* in old pages, too */
	EXPECT(flips > 0);
	expect_found(p.path, "image/data.mdb", "care:mark");
	expect_corrupt(p.path, "care:mark");
	remove_dir(p.base);
}

static void a_truncated_image_is_refused(void)
{
	struct place p;

	place_make(&p);
	make(p.path, true);
	EXPECT_EQ(shell("truncate -s 12288 %s/image/data.mdb", p.path), 0);
	expect_found(p.path, "image/data.mdb", "cut short");
	expect_refused(p.path, NOH_ECORRUPT, "image/data.mdb");
	EXPECT_EQ(shell("truncate -s 0 %s/image/data.mdb", p.path), 0);
	expect_refused(p.path, NOH_ECORRUPT, "image/data.mdb");
	EXPECT_EQ(shell("rm %s/image/data.mdb", p.path), 0);
	expect_refused(p.path, NOH_ECORRUPT, "image/data.mdb");
	remove_dir(p.base);
}

/* Another stamp, as a bug in folding might leave it: sealed, so its checksum is right. */
static void set_stamp(const char *dir, uint64_t frame)
{
	char path[400];
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_val key = { 5, (void *)(uintptr_t)"stamp" }, val;
	uint8_t row[sizeof(struct value_head) + sizeof(struct meta_stamp)];

	snprintf(path, sizeof path, "%s/image", dir);
	EXPECT_EQ(mdb_env_create(&env), 0);
	EXPECT_EQ(mdb_env_set_maxdbs(env, 16), 0);
	EXPECT_EQ(mdb_env_open(env, path, 0, 0600), 0);
	EXPECT_EQ(mdb_txn_begin(env, NULL, 0, &txn), 0);
	EXPECT_EQ(mdb_dbi_open(txn, table_name(TABLE_META), 0, &dbi), 0);
	EXPECT_EQ(mdb_get(txn, dbi, &key, &val), 0);
	EXPECT_EQ(val.mv_size, sizeof row);
	memcpy(row, val.mv_data, sizeof row);
	memcpy(row + sizeof(struct value_head), &frame, sizeof frame);
	value_seal(TABLE_META, "stamp", 5, row, sizeof row, 0);
	val = (MDB_val){ sizeof row, row };
	EXPECT_EQ(mdb_put(txn, dbi, &key, &val, 0), 0);
	EXPECT_EQ(mdb_txn_commit(txn), 0);
	mdb_env_close(env);
}

static void a_stamp_beyond_the_journal_is_found(void)
{
	struct place p;

	place_make(&p);
	make(p.path, false);
	set_stamp(p.path, 1000000);
	expect_found(p.path, "image/data.mdb", "frame 1000000");
	remove_dir(p.base);
}

static void a_stamp_beyond_what_was_folded_is_found(void)
{
	struct place p;
	noh_box *box;

	place_make(&p);
	make(p.path, true);
	box = care_box(p.path);
	for (int64_t i = 0; i < 5; i++)
		EXPECT_EQ(call_i64(box, "care:a", CARE_ADD, 1), 31 + i);
	noh_close(box);                          /* five frames in the tail */
	noh_dir_info info;

	EXPECT_EQ(noh_inspect(p.path, &info), NOH_OK);
	EXPECT_EQ(info.end, info.stamp + 5);
	set_stamp(p.path, info.end);
	expect_found(p.path, "care:a", "its state is older");
	remove_dir(p.base);
}

/* ── what is refused, by a box and by the tools ── */

static void a_newer_format_is_refused_and_left_alone(void)
{
	struct place p;
	char text[512] = "", path[400];
	FILE *f;

	place_make(&p);
	make(p.path, true);
	snprintf(path, sizeof path, "%s/noh.dir", p.path);
	f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;

	EXPECT(n > 0);
	if (f)
		fclose(f);
	char *format = strstr(text, "format 1"), *sum = strstr(text, "\nsum ");

	if (!EXPECT(format && sum))
		return;
	format[7] = '2';
	f = fopen(path, "w");
	fprintf(f, "%.*ssum %016llx\n", (int)(sum + 1 - text), text,
		(unsigned long long)XXH3_64bits(text, (size_t)(sum + 1 - text)));
	fclose(f);
	expect_refused(p.path, NOH_EVERSION, "format 2");
	expect_tools_refuse(p.path, NOH_EVERSION, "format 2");
	remove_dir(p.base);
}

static void a_damaged_identity_is_refused(void)
{
	struct place p;

	place_make(&p);
	make(p.path, true);
	flip(p.path, "noh.dir", 40);
	expect_refused(p.path, NOH_ECORRUPT, "noh.dir");
	expect_tools_refuse(p.path, NOH_ECORRUPT, "noh.dir");
	remove_dir(p.base);
}

static void files_of_another_directory_are_refused(void)
{
	struct place p;
	char other[300];

	place_make(&p);
	place_in(other, sizeof other, &p, "other");
	make(p.path, true);
	make(other, true);
	EXPECT_EQ(shell("cp %s/" SEGMENT " %s/" SEGMENT, other, p.path), 0);
	expect_found(p.path, SEGMENT, "another data directory");
	expect_refused(p.path, NOH_ECORRUPT, "another data directory");
	EXPECT_EQ(shell("cp %s/image/data.mdb %s/image/data.mdb", p.path, other), 0);
	expect_found(other, "image/data.mdb", "mixed");
	expect_refused(other, NOH_ECORRUPT, "mixed");
	remove_dir(p.base);
}

static void a_directory_that_is_none_is_refused(void)
{
	struct place p;
	noh_dir_info info;

	place_make(&p);
	EXPECT_EQ(noh_inspect(p.path, &info), NOH_ESYSTEM);
	EXPECT(strstr(noh_why(), "no data directory") != NULL);
	EXPECT_EQ(noh_compact(p.path, NULL), NOH_ESYSTEM);
	EXPECT_EQ(mkdir(p.path, 0700), 0);
	EXPECT_EQ(shell("echo hello > %s/letter", p.path), 0);
	expect_tools_refuse(p.path, NOH_EINVAL, "noh.dir");
	expect_refused(p.path, NOH_EINVAL, "letter");
	remove_dir(p.base);
}

static void one_that_is_in_use_is_read_but_not_opened(void)
{
	struct place p;
	noh_options o = { .workers = 1, .dir = p.path, .unpinned = true, .max_actors = 1000 };
	noh_dir_info info;
	noh_box *box;

	place_make(&p);
	struct other *running = other_start(p.path);

	for (int i = 0; i < 20; i++) {
		expect_clean(p.path);
		EXPECT_EQ(noh_inspect(p.path, &info), NOH_OK);
		EXPECT(info.in_use);
		EXPECT_EQ(noh_check(p.path, &care_type, 1, NULL, NULL), NOH_OK);
	}
	EXPECT_EQ(noh_open(&box, &o), NOH_EINUSE);
	EXPECT(strstr(noh_why(), "in use by process") != NULL);
	other_kill(running);
	expect_clean(p.path);
	remove_dir(p.base);
}

/* Any bit of any page: found, or it was of no importance; never a signal. */
static void flips_anywhere_in_the_image_do_no_harm(void)
{
	uint64_t random = test_seed;
	struct place p;
	struct stat st;
	char path[400];
	int found = 0, flips = (int)test_size(400, 120);

	place_make(&p);
	make(p.path, true);
	snprintf(path, sizeof path, "%s/image/data.mdb", p.path);
	EXPECT_EQ(stat(path, &st), 0);
	for (int i = 0; i < flips; i++) {
		struct findings f;
		uint64_t pages = (uint64_t)st.st_size / 4096;
		/* The front and the back of a page are what is used of it. */
		uint64_t in = test_random(&random) % 64, page = test_random(&random) % pages;
		off_t at = (off_t)(page * 4096 + (in < 32 ? in : 4096 - 4 * (in - 31)));

		flip(p.path, "image/data.mdb", at);
		int rc = verify_dir(p.path, &f, NULL);

		EXPECT(rc == NOH_OK || rc == NOH_ECORRUPT || rc == NOH_EVERSION);
		found += rc == NOH_ECORRUPT;
		flip(p.path, "image/data.mdb", at);
	}
	EXPECT(found > (int)test_size(10, 0));
	expect_clean(p.path);
	remove_dir(p.base);
}

TEST_MAIN(
	TEST(a_healthy_directory_is_clean),
	TEST(a_flip_in_a_frame_with_later_ones_is_corruption, "P11"),
	TEST(a_torn_tail_is_fine),
	TEST(damage_to_a_segments_head_is_found, "P11"),
	TEST(a_truncated_segment_is_found, "P11"),
	TEST(flips_in_the_image_are_found, "P11"),
	TEST(flips_anywhere_in_the_image_do_no_harm, "P11"),
	TEST(a_truncated_image_is_refused, "P11"),
	TEST(a_stamp_beyond_the_journal_is_found),
	TEST(a_stamp_beyond_what_was_folded_is_found),
	TEST(a_newer_format_is_refused_and_left_alone, "P11"),
	TEST(a_damaged_identity_is_refused, "P11"),
	TEST(files_of_another_directory_are_refused, "P11"),
	TEST(a_directory_that_is_none_is_refused, "P11"),
	TEST(one_that_is_in_use_is_read_but_not_opened, "P11"))
