/* tests/persist/db_shed_test.c - the pages LMDB keeps are given back, whoever reads meanwhile. */
#include "tests/persist/image_kit.h"

#include "core/atomic.h"
#include "persist/db_in.h"

#include <pthread.h>
#include <sys/wait.h>

enum { ACTORS = 400, SMALL = 80000, LOADERS = 3, ROUNDS = 40 };

static struct {
	pthread_t  thread[LOADERS];
	uint64_t   seed[LOADERS];
	atomic_u64 loads, last;
	atomic_u32 stop;
} hammer;

static void fill(uint64_t seq, size_t len)
{
	char text[400];
	char address[24];

	memset(text, 'a' + (int)(seq % 26), len);
	text[len] = 0;
	for (unsigned i = 0; i < ACTORS; i++) {
		snprintf(address, sizeof address, "actor:%05u", i);
		begin(address, seq);
		state(1, text);
		in_frame(seq);
	}
	commit(seq);
}

static bool load_is_right(struct db *db, unsigned i, uint64_t least)
{
	char address[24];
	struct db_loaded l;

	snprintf(address, sizeof address, "actor:%05u", i);
	if (db_load(db, address, strlen(address), UINT64_MAX, &l) != NOH_OK)
		return false;
	const char *bytes = l.image;
	bool right = l.seq >= least && bytes[l.len - 8] == 'a' + (char)(l.seq % 26);

	mem_free(l.image, l.len);
	return right;
}

static void *keep_loading(void *arg)
{
	uint64_t *rng = arg;

	while (!load_acquire(&hammer.stop)) {
		uint64_t least = load_acquire(&hammer.last);

		if (!EXPECT(load_is_right(kit.db, (unsigned)(test_random(rng) % ACTORS), least)))
			break;
		(void)db_oldest_reader_ms(kit.db, NOW);
		add_relaxed(&hammer.loads, 1);
	}
	return NULL;
}

#ifndef NOH_SANITIZED
static uint64_t anonymous_bytes(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	unsigned long long kb = 0;
	char line[256];

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "RssAnon: %llu kB", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb * 1024;
}
#endif

static void what_a_fold_changed_is_given_back(void)
{
	start();
	EXPECT_EQ(db_shed(kit.db), 0);                   /* there is nothing */
	for (unsigned i = 0; i < SMALL; i++) {
		char address[24];

		snprintf(address, sizeof address, "small:%05u", i);
		begin(address, 1);
		state(1, "a state of about a hundred bytes, so that many of them are some thousand pages");
		in_frame(1);
	}
	commit(1);
	uint64_t map = stats().map_bytes, images = stats().images;

#ifndef NOH_SANITIZED
	fold_trim(kit.db);
	mem_trim();
	uint64_t before = anonymous_bytes(), kept = kit.db->folding.pages;
#endif
	EXPECT_EQ(db_shed(kit.db), 1);
#ifndef NOH_SANITIZED
	mem_trim();
	EXPECT(anonymous_bytes() + kept / 2 < before);
#endif
	EXPECT_EQ(db_shed(kit.db), 0);
	EXPECT_EQ(stats().map_bytes, map);
	EXPECT_EQ(stats().images, images);
	fill(4, 100);
	EXPECT(load_is_right(kit.db, 7, 4));
	EXPECT(verified());
	start_again();
	EXPECT(load_is_right(kit.db, 7, 4));
	EXPECT(verified());
	finish();
}

static void who_reads_is_not_disturbed(void)
{
	struct reader *r;

	start();
	fill(1, 100);
	kit.db->folding.pages = UINT64_MAX;
	EXPECT_EQ(reader_take(kit.db, &r), NOH_OK);
	EXPECT_EQ(db_shed(kit.db), 0);
	EXPECT(load_is_right(kit.db, 1, 1));             /* and others may still come */
	reader_give(r);
	EXPECT_EQ(db_shed(kit.db), 1);
	EXPECT(load_is_right(kit.db, 1, 1));
	finish();
}

static void pages_are_given_back_under_loading_threads(void)
{
	uint64_t rng = test_seed, seq = 1;
	unsigned shed = 0;

	start();
	fill(seq, 300);
	store_relaxed(&hammer.loads, 0);
	store_relaxed(&hammer.stop, 0);
	store_relaxed(&hammer.last, 0);
	for (int t = 0; t < LOADERS; t++) {
		hammer.seed[t] = test_random(&rng);
		EXPECT_EQ(pthread_create(&hammer.thread[t], NULL, keep_loading, &hammer.seed[t]), 0);
	}
	while (shed < ROUNDS) {
		fill(++seq, 300);
		store_release(&hammer.last, seq);
		kit.db->folding.pages = UINT64_MAX;
		int rc = db_shed(kit.db);

		if (!EXPECT(rc >= 0))
			break;
		shed += (unsigned)rc;
	}
	store_release(&hammer.stop, 1);
	for (int t = 0; t < LOADERS; t++)
		pthread_join(hammer.thread[t], NULL);
	EXPECT(load_relaxed(&hammer.loads) > 0);
	EXPECT(verified());
	finish();
}

static int done[2];

/* Reads beside the box until it is told to end. */
static int look_beside(void)
{
	struct db_options o = kit.options;
	struct db *db;
	unsigned i = 0;
	char c = 'x';

	o.read_only = true;
	if (db_open(&db, &o) != NOH_OK || write(done[1], &c, 1) != 1)
		return 10;
	for (uint64_t frame = 0, epoch; frame < ROUNDS; i++) {
		db_stamp(db, &frame, &epoch);
		if (!load_is_right(db, i % ACTORS, frame))
			return 11;
	}
	if (db_verify(db, tell_problem, NULL, NULL) != 0)
		return 12;
	db_close(db);
	return 0;
}

static void a_tool_beside_it_does_not_notice(void)
{
	char c;
	int status;

	start();
	fill(1, 100);
	EXPECT_EQ(pipe(done), 0);
	pid_t pid = fork();

	if (pid == 0)
		_exit(look_beside());
	EXPECT_EQ(read(done[0], &c, 1), 1);
	for (uint64_t seq = 2; seq <= ROUNDS; seq++) {
		fill(seq, 100);
		kit.db->folding.pages = UINT64_MAX;
		EXPECT_EQ(db_shed(kit.db), 1);
	}
	waitpid(pid, &status, 0);
	EXPECT_EQ(status, 0);
	close(done[0]);
	close(done[1]);
	EXPECT(verified());
	finish();
}

TEST_MAIN(
	TEST(what_a_fold_changed_is_given_back),
	TEST(who_reads_is_not_disturbed),
	TEST(pages_are_given_back_under_loading_threads),
	TEST(a_tool_beside_it_does_not_notice))
