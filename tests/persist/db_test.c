/* tests/persist/db_test.c - the image's file: readers while it grows, damage, copies, full disks. */
#include "tests/persist/image_kit.h"

#include "core/atomic.h"
#include "persist/db_in.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

/* ── what is written, and how to tell whether it is right ── */

static void write_actor(unsigned i, uint64_t seq)
{
	char address[24], text[64];

	snprintf(address, sizeof address, "actor:%05u", i);
	snprintf(text, sizeof text, "state %u of %d", i, (int)seq);
	begin(address, seq);
	state(1, text);
	if (i % 4 == 0) {
		put("a", text);
		put("b", "the other entry");
	}
	if (i % 7 == 0)
		timers(1, (int)(1000 + i));
	if (i % 9 == 0)
		emitted(address, 3, i + 1, 0, 0, text);
	if (i % 5 == 0)
		idem("key", NOW, text);
}

static bool is_right(const char *found, unsigned i, uint64_t seq)
{
	char want[300], text[64];

	snprintf(text, sizeof text, "state %u of %d", i, (int)seq);
	snprintf(want, sizeof want, "%d S1:%s", (int)seq, text);
	if (i % 7 == 0)
		say(want, sizeof want, " T[%d]", (int)(1000 + i));
	if (i % 4 == 0)
		say(want, sizeof want, " a=%s b=the other entry", text);
	if (i % 9 == 0)
		say(want, sizeof want, " <3.%u.0:%s", i + 1, text);
	return strcmp(found, want) == 0;
}

static void fill(unsigned many, uint64_t seq)
{
	for (unsigned i = 0; i < many; i++) {
		write_actor(i, seq);
		in_frame(seq);
	}
	commit(seq);
}

static const char *load_number(unsigned i)
{
	char address[24];

	snprintf(address, sizeof address, "actor:%05u", i);
	return load_before(address, UINT64_MAX);
}

/* ── opening ── */

static void a_new_image_is_empty_and_whole(void)
{
	uint64_t frame, epoch;
	struct stat s;
	char path[100];

	start();
	db_stamp(kit.db, &frame, &epoch);
	EXPECT(frame == 0 && epoch == 0);
	EXPECT(db_empty(kit.db));
	EXPECT(verified());
	snprintf(path, sizeof path, "%s/image.new", kit.dir);
	EXPECT(stat(path, &s) != 0);
	start_again();
	EXPECT(loads("a:1", "none"));
	begin("a:1", 1); state(1, "x"); in_frame(1);
	commit(1);
	EXPECT(!db_empty(kit.db));
	EXPECT_EQ(db_images(kit.db), 1);
	finish();
}

static void an_interrupted_first_start_is_begun_again(void)
{
	char path[100];

	start();
	finish();
	EXPECT_EQ(mkdir(kit.dir, 0700), 0);
	snprintf(path, sizeof path, "%s/image.new", kit.dir);
	EXPECT_EQ(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/image.new/data.mdb", kit.dir);
	FILE *half = fopen(path, "w");
	fputs("half of a page", half);
	fclose(half);
	open_db();
	EXPECT(loads("a:1", "none"));
	finish();
}

static void refuses(int code, const char *why)
{
	struct db *db = NULL;

	EXPECT_EQ(db_open(&db, &kit.options), code);
	EXPECT(strstr(noh_why(), "data.mdb") != NULL);
	if (!strstr(noh_why(), why))
		fprintf(stderr, "it said: %s\n", noh_why());
	EXPECT(strstr(noh_why(), why) != NULL);
	db_close(db);
}

static void a_file_of_another_directory_is_refused(void)
{
	start();
	db_close(kit.db);
	kit.options.dir_id = DIR_ID + 1;
	refuses(NOH_ECORRUPT, "mixed");
	open_db();
	finish();
}

static void a_truncated_file_is_refused(void)
{
	char path[100];
	struct stat s;
	int refused = 0, tried = 0;

	start();
	fill(500, 1);
	uint64_t used = stats().used_bytes;

	db_close(kit.db);
	snprintf(path, sizeof path, "%s/image/data.mdb", kit.dir);
	EXPECT_EQ(truncate(path, (off_t)used), 0);       /* room kept for later may go */
	open_db();
	EXPECT(verified());
	db_close(kit.db);
	EXPECT_EQ(stat(path, &s), 0);
	for (off_t size = s.st_size - 1; size >= 0; size -= size > 20000 ? 4096 : 777, tried++) {
		struct db *db = NULL;

		EXPECT_EQ(truncate(path, size), 0);
		refused += db_open(&db, &kit.options) == NOH_ECORRUPT &&
			   strstr(noh_why(), "data.mdb") != NULL;
		db_close(db);
	}
	EXPECT_EQ(refused, tried);
	EXPECT_EQ(truncate(path, 0), 0);
	refuses(NOH_ECORRUPT, "damaged or missing");
	EXPECT_EQ(unlink(path), 0);
	refuses(NOH_ECORRUPT, "missing");
	remove_dir(kit.dir);
}

/* ── readers and growth ── */

enum { LOADERS = 3, MANY = 3000 };

static struct {
	pthread_t  thread[LOADERS];
	uint64_t   seed[LOADERS];
	atomic_u64 last;                 /* what is committed has at least this sequence */
	atomic_u64 loads;
	atomic_u32 stop;
} hammer;

static void *keep_loading(void *arg)
{
	uint64_t *rng = arg;
	char address[24], text[2000];

	while (!load_acquire(&hammer.stop)) {
		unsigned i = (unsigned)(test_random(rng) % MANY);
		uint64_t least = load_acquire(&hammer.last);
		struct db_loaded l;

		snprintf(address, sizeof address, "actor:%05u", i);
		int rc = db_load(kit.db, address, strlen(address), UINT64_MAX, &l);

		if (rc == NOH_END && least == 0)
			continue;
		if (!EXPECT_EQ(rc, NOH_OK)) {
			fprintf(stderr, "%s: %s\n", address, noh_why());
			break;
		}
		say_image(l.image, l.len, l.seq, text, sizeof text);
		EXPECT(l.seq >= least);
		EXPECT(l.seq == 0 || is_right(text, i, l.seq));
		mem_free(l.image, l.len);
		add_relaxed(&hammer.loads, 1);
	}
	return NULL;
}

static bool they_load(void *loads)
{
	return load_relaxed((atomic_u64 *)loads) > 0;
}

static void the_map_grows_under_loading_threads(void)
{
	uint64_t rng = test_seed, first;

	start();
	finish();
	EXPECT_EQ(mkdir(kit.dir, 0700), 0);
	kit.options.map_bytes = 128 * 1024;
	open_db();
	first = stats().map_bytes;
	EXPECT_EQ(first, 128 * 1024);
	store_relaxed(&hammer.last, 0);
	store_relaxed(&hammer.loads, 0);
	store_relaxed(&hammer.stop, 0);
	for (int t = 0; t < LOADERS; t++) {
		hammer.seed[t] = test_random(&rng);
		EXPECT_EQ(pthread_create(&hammer.thread[t], NULL, keep_loading, &hammer.seed[t]), 0);
	}
	for (uint64_t seq = 1; seq <= 12; seq++) {
		fill(seq < 3 ? MANY / 10 : MANY, seq);
		if (seq >= 3)
			store_release(&hammer.last, seq);
		if (seq == 3)
			EXPECT(test_wait_until(they_load, &hammer.loads, 30000));
	}
	store_release(&hammer.stop, 1);
	for (int t = 0; t < LOADERS; t++)
		pthread_join(hammer.thread[t], NULL);
	EXPECT(stats().map_bytes >= 8 * first);
	EXPECT(verified());
	start_again();                                   /* the map is as large as it was */
	EXPECT(stats().map_bytes >= 8 * first);
	EXPECT(is_right(load_number(7), 7, 12));
	finish();
}

/* ── another process ── */

static int go_on[2], went_on[2];

/* Opens beside the writer, then follows it through growth. */
static int look_beside(void)
{
	struct db_options o = kit.options;
	struct db *db;
	struct db_loaded l;
	struct fold *f;
	uint64_t frame, epoch;
	char c = 'x';

	o.read_only = true;
	if (db_open(&db, &o) != NOH_OK)
		return 10;
	if (db_load(db, "actor:00001", 11, 0, &l) != NOH_OK || l.seq != 1)
		return 11;
	if (fold_begin(db, &f) != NOH_EREADONLY)
		return 12;
	if (write(went_on[1], &c, 1) != 1 || read(go_on[0], &c, 1) != 1)
		return 13;
	if (db_load(db, "actor:02999", 11, 0, &l) != NOH_OK || l.seq != 5)
		return 14;
	db_stamp(db, &frame, &epoch);
	if (frame != 5 || epoch != 50 || db_verify(db, tell_problem, NULL, NULL) != 0)
		return 15;
	db_close(db);
	return 0;
}

static void a_tool_looks_beside_a_running_box(void)
{
	char c = 'x';
	int status;

	start();
	finish();
	EXPECT_EQ(mkdir(kit.dir, 0700), 0);
	kit.options.map_bytes = 256 * 1024;
	open_db();
	fill(50, 1);
	EXPECT_EQ(pipe(go_on), 0);
	EXPECT_EQ(pipe(went_on), 0);
	pid_t pid = fork();

	if (pid == 0)
		_exit(look_beside());
	EXPECT_EQ(read(went_on[0], &c, 1), 1);
	fill(MANY, 5);
	EXPECT(stats().map_bytes > 256 * 1024);
	EXPECT_EQ(write(go_on[1], &c, 1), 1);
	waitpid(pid, &status, 0);
	EXPECT_EQ(status, 0);
	for (int i = 0; i < 2; i++) {
		close(go_on[i]);
		close(went_on[i]);
	}
	finish();
}

static void looking_at_nothing_makes_nothing(void)
{
	struct db_options o;
	struct db *db;
	struct stat s;
	char path[100];

	start();
	finish();
	EXPECT_EQ(mkdir(kit.dir, 0700), 0);
	o = kit.options;
	o.read_only = true;
	EXPECT_EQ(db_open(&db, &o), NOH_ECORRUPT);
	EXPECT(db == NULL);
	snprintf(path, sizeof path, "%s/image", kit.dir);
	EXPECT(stat(path, &s) != 0);
	remove_dir(kit.dir);
}

static int open_to_look(void)
{
	struct db_options o = kit.options;
	struct db *db;
	int rc;

	o.read_only = true;
	rc = db_open(&db, &o);
	db_close(db);
	return rc;
}

static void change_image(bool (*change)(MDB_txn *txn))
{
	char path[100];
	MDB_env *env;
	MDB_txn *txn;

	snprintf(path, sizeof path, "%s/image", kit.dir);
	EXPECT_EQ(mdb_env_create(&env), 0);
	mdb_env_set_maxdbs(env, TABLES);
	EXPECT_EQ(mdb_env_open(env, path, 0, 0600), 0);
	EXPECT_EQ(mdb_txn_begin(env, NULL, 0, &txn), 0);
	EXPECT(change(txn));
	EXPECT_EQ(mdb_txn_commit(txn), 0);
	mdb_env_close(env);
}

static bool drop_events(MDB_txn *txn)
{
	MDB_dbi dbi;

	return mdb_dbi_open(txn, table_name(TABLE_EVENTS), 0, &dbi) == 0 && mdb_drop(txn, dbi, 1) == 0;
}

static bool make_format_1(MDB_txn *txn)
{
	struct { struct value_head head; struct meta_format format; } row = { .format = { .format = 1, .dir_id = DIR_ID } };
	MDB_val key = { 6, (void *)(uintptr_t)"format" }, val = { sizeof row, &row };
	MDB_dbi dbi;

	value_seal(TABLE_META, key.mv_data, key.mv_size, (uint8_t *)&row, sizeof row, 0);
	return mdb_dbi_open(txn, table_name(TABLE_META), 0, &dbi) == 0 && mdb_put(txn, dbi, &key, &val, 0) == 0;
}

static void a_table_that_is_missing_is_damage_unless_its_format_had_none(void)
{
	start();
	fill(20, 1);
	db_close(kit.db);
	kit.db = NULL;
	EXPECT_EQ(open_to_look(), NOH_OK);
	change_image(drop_events);
	EXPECT_EQ(open_to_look(), NOH_ECORRUPT);
	EXPECT(strstr(noh_why(), "table events is missing; restore a backup"));
	EXPECT_EQ(db_open(&kit.db, &kit.options), NOH_ECORRUPT);
	change_image(make_format_1);
	EXPECT_EQ(open_to_look(), NOH_OK);
	open_db();                                       /* and it is one of this format from now on */
	EXPECT_EQ(open_to_look(), NOH_OK);
	EXPECT(verified());
	finish();
}

/* ── bit flips ── */

enum { FLIPPED = 1000 };
enum { FINE, REFUSED, DETECTED, SILENT_WRONG, SILENT_ABSENT, ENDS };

/* Every load is right, or says what is wrong. */
static int look_at_all(int unused)
{
	int seen = FINE;
	char address[24];
	void *part;
	size_t len;

	(void)unused;
	alarm(20);
	if (db_open(&kit.db, &kit.options) != NOH_OK)
		return REFUSED;
	for (unsigned i = 0; i < FLIPPED; i++) {
		const char *found = load_number(i);

		if (strncmp(found, "error", 5) == 0)
			seen = DETECTED;
		else if (strcmp(found, "none") == 0)
			return SILENT_ABSENT;
		else if (!is_right(found, i, 1))
			return SILENT_WRONG;
		snprintf(address, sizeof address, "actor:%05u", i);
		int rc = i % 5 ? NOH_OK : db_idem(kit.db, address, 11, "key", 3, &part, &len);
		if (rc == NOH_END)
			return SILENT_ABSENT;
		if (rc != NOH_OK)
			seen = DETECTED;
	}
	return seen;
}

static void one_flip(const char *path, uint64_t dice, uint64_t bytes, int *ends, int *crashes)
{
	int fd = open(path, O_RDWR), end;
	off_t at = (off_t)(dice % bytes);
	uint8_t byte, bad;

	EXPECT_EQ(pread(fd, &byte, 1, at), 1);
	bad = byte ^ (uint8_t)(1u << (dice >> 60 & 7));
	EXPECT_EQ(pwrite(fd, &bad, 1, at), 1);
	end = in_silence(look_at_all, 0);
	if (end >= 0 && end < ENDS)
		ends[end]++;
	else
		(*crashes)++;
	if (end >= SILENT_WRONG && end < ENDS)
		fprintf(stderr, "byte %lld (page %lld + %lld), %02x -> %02x: %s\n", (long long)at,
			(long long)at / 4096, (long long)at % 4096, byte, bad,
			end == SILENT_WRONG ? "silently wrong" : "silently absent");
	EXPECT_EQ(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void no_flipped_bit_is_silent(void)
{
	uint64_t rng = test_seed, bytes;
	int ends[ENDS] = {0}, crashes = 0, flips = (int)test_size(300, 60);
	char path[100];

	start();
	fill(FLIPPED, 1);
	bytes = stats().used_bytes;
	db_close(kit.db);
	kit.db = NULL;
	snprintf(path, sizeof path, "%s/image/data.mdb", kit.dir);
	for (int i = 0; i < flips; i++)
		one_flip(path, test_random(&rng), bytes, ends, &crashes);
	printf("  %d bit flips: %d harmless, %d refused at the start, %d detected by a load, %d crashes of "
	       "LMDB\n", flips, ends[FINE], ends[REFUSED], ends[DETECTED], crashes);
	EXPECT_EQ(ends[SILENT_WRONG], 0);
	EXPECT_EQ(ends[SILENT_ABSENT], 0);
	EXPECT(ends[DETECTED] > 0);
	EXPECT_EQ(in_silence(look_at_all, 0), FINE);
	remove_dir(kit.dir);
}

/* A byte of each table's rows, changed through a copy of the file: verify names the table. */
static void verify_finds_a_changed_row(void)
{
	static const char *const marks[] = { "state 12 of 1", "the other entry" };
	char path[100], *bytes;
	struct stat s;

	for (size_t m = 0; m < sizeof marks / sizeof marks[0]; m++) {
		start();
		fill(200, 1);
		EXPECT(verified());
		db_close(kit.db);
		snprintf(path, sizeof path, "%s/image/data.mdb", kit.dir);
		int fd = open(path, O_RDWR);

		EXPECT_EQ(fstat(fd, &s), 0);
		bytes = malloc((size_t)s.st_size);
		EXPECT_EQ(pread(fd, bytes, (size_t)s.st_size, 0), s.st_size);
		char *at = bytes, *end = bytes + s.st_size;
		int found = 0;           /* all of them: some are left over from pages that were split */
		for (; (at = memmem(at, (size_t)(end - at), marks[m], strlen(marks[m]))); at++, found++)
			EXPECT_EQ(pwrite(fd, "S", 1, at - bytes), 1);
		EXPECT(found > 0);
		close(fd);
		free(bytes);
		open_db();
		EXPECT(db_verify(kit.db, NULL, NULL, NULL) >= 1);
		finish();
	}
}

/* ── walks ── */

struct seen { unsigned count; char last[64], stop_at[64]; };

static int see(void *arg, const char *address, size_t len)
{
	struct seen *s = arg;
	struct db_loaded l;

	EXPECT(len < 64);
	char now[64];
	snprintf(now, sizeof now, "%.*s", (int)len, address);
	EXPECT(strcmp(s->last, now) < 0);
	strcpy(s->last, now);
	s->count++;
	if (s->count % 100 == 0) {                       /* a callback may load */
		EXPECT_EQ(db_load(kit.db, address, len, 0, &l), NOH_OK);
		mem_free(l.image, l.len);
	}
	return strcmp(now, s->stop_at) == 0;
}

static void walks_meet_everyone_once_and_go_on(void)
{
	struct seen s = { .count = 0 };

	start();
	fill(MANY, 1);
	EXPECT_EQ(db_addresses(kit.db, NULL, 0, see, &s), NOH_OK);
	EXPECT_EQ(s.count, MANY);
	s = (struct seen){ .stop_at = "actor:00999" };
	EXPECT_EQ(db_addresses(kit.db, NULL, 0, see, &s), NOH_OK);
	EXPECT_EQ(s.count, 1000);
	EXPECT_EQ(db_addresses(kit.db, s.last, strlen(s.last), see, &s), NOH_OK);
	EXPECT_EQ(s.count, MANY);
	s = (struct seen){ .count = 0 };
	EXPECT_EQ(db_receivers(kit.db, NULL, 0, 1, see, &s), NOH_OK);
	EXPECT_EQ(s.count, (MANY + 8) / 9);
	s = (struct seen){ .count = 0 };
	EXPECT_EQ(db_receivers(kit.db, "actor:00009", 11, 1, see, &s), NOH_OK);
	EXPECT_EQ(s.count, (MANY + 8) / 9 - 2);
	s = (struct seen){ .count = 0 };
	EXPECT_EQ(db_receivers(kit.db, NULL, 0, 0, see, &s), NOH_OK);
	EXPECT_EQ(s.count, 0);
	finish();
}

static void a_walk_without_memory_says_so(void)
{
	struct seen s = { .count = 0 };

	start();
	fill(100, 1);
	for (uint64_t nth = 1; nth < 3; nth++) {
		mem_fail_at(nth, 0);
		EXPECT_EQ(db_addresses(kit.db, NULL, 0, see, &s), NOH_ENOMEM);
		mem_fail_at(0, 0);
	}
	struct db_loaded l;

	mem_fail_at(1, 0);
	EXPECT_EQ(db_load(kit.db, "actor:00004", 11, 0, &l), NOH_ENOMEM);
	mem_fail_at(0, 0);
	struct db *db;

	mem_fail_at(1, 0);
	EXPECT_EQ(db_open(&db, &kit.options), NOH_ENOMEM);
	mem_fail_at(0, 0);
	finish();
}

/* ── copies ── */

static void a_copy_is_the_same(void)
{
	char to[100], path[100];
	uint64_t frame = 0, epoch = 0;

	start();
	fill(MANY, 3);
	snprintf(to, sizeof to, "%s/copy", kit.dir);
	EXPECT_EQ(mkdir(to, 0700), 0);
	EXPECT_EQ(db_copy(kit.db, to, &frame, &epoch), NOH_OK);
	EXPECT(frame == 3 && epoch == 30);
	EXPECT_EQ(db_copy(kit.db, to, &frame, &epoch), NOH_EDISK);       /* it is there already */
	fill(MANY, 4);
	db_close(kit.db);
	struct db_options o = kit.options;

	o.dir = to;
	EXPECT_EQ(db_open(&kit.db, &o), NOH_OK);
	for (unsigned i = 0; i < MANY; i++)
		EXPECT(is_right(load_number(i), i, 3));
	EXPECT(verified());
	db_stamp(kit.db, &frame, &epoch);
	EXPECT_EQ(frame, 3);
	snprintf(path, sizeof path, "%s/image", kit.dir);
	finish();
}

/* ── a full disk ── */

static void a_full_disk_is_told_before_anything_is_written(void)
{
	char ballast[100];
	static char zeros[1 << 20];
	uint64_t frame, epoch;

	start();
	finish();
	EXPECT_EQ(mkdir(kit.dir, 0700), 0);
	if (mount("tmpfs", kit.dir, "tmpfs", 0, "size=4m") != 0) {
		remove_dir(kit.dir);
		test_skip("mounting a small file system needs root");
		return;
	}
	open_db();
	fill(200, 1);
	snprintf(ballast, sizeof ballast, "%s/ballast", kit.dir);
	FILE *file = fopen(ballast, "w");
	while (fwrite(zeros, 1, 4096, file) == 4096 && fflush(file) == 0)
		;
	fclose(file);
	for (unsigned i = 0; i < MANY; i++) {
		write_actor(i, 2);
		in_frame(2);
	}
	EXPECT_EQ(try_commit_at(2, NOW), NOH_ENOSPC);
	EXPECT(strstr(noh_why(), "data.mdb") != NULL);
	db_stamp(kit.db, &frame, &epoch);
	EXPECT_EQ(frame, 1);
	for (unsigned i = 0; i < 200; i++)
		EXPECT(is_right(load_number(i), i, 1));
	EXPECT_EQ(unlink(ballast), 0);                   /* room: it goes on */
	fill(MANY, 2);
	EXPECT(is_right(load_number(MANY - 1), MANY - 1, 2));
	EXPECT(verified());
	db_close(kit.db);
	kit.db = NULL;
	EXPECT_EQ(umount(kit.dir), 0);
	remove_dir(kit.dir);
}

TEST_MAIN(
	TEST(a_new_image_is_empty_and_whole, "US-04 US-10"),
	TEST(an_interrupted_first_start_is_begun_again),
	TEST(a_file_of_another_directory_is_refused),
	TEST(a_truncated_file_is_refused),
	TEST(the_map_grows_under_loading_threads),
	TEST(a_tool_looks_beside_a_running_box),
	TEST(looking_at_nothing_makes_nothing),
	TEST(a_table_that_is_missing_is_damage_unless_its_format_had_none, "US-10"),
	TEST(no_flipped_bit_is_silent, "US-10"),
	TEST(verify_finds_a_changed_row),
	TEST(walks_meet_everyone_once_and_go_on, "API-06"),
	TEST(a_walk_without_memory_says_so),
	TEST(a_copy_is_the_same),
	TEST(a_full_disk_is_told_before_anything_is_written))
