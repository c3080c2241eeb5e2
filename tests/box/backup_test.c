/* tests/box/backup_test.c - a backup is one instant and has every answer given before it; restore and
 * compact lose nothing and overwrite nothing. */
#include "tests/box/care_kit.h"

#include <pthread.h>

static void expect_has(const char *dir, const uint64_t *answered, uint32_t passed)
{
	noh_box *box = care_box(dir);
	char address[32];

	for (int i = 0; box && i < 8; i++) {
		snprintf(address, sizeof address, "care:%d", i);
		EXPECT((uint64_t)call_i64(box, address, CARE_GET, 0) >= answered[i]);
	}
	if (!box)
		return;
	int64_t left = call_i64(box, "care:p", CARE_GET, 0);

	EXPECT(-left >= (int64_t)passed);
	EXPECT_EQ(noh_stop(box, 20000), NOH_OK);                 /* pending ones arrive */
	noh_close(box);
	box = care_box(dir);
	EXPECT_EQ(call_i64(box, "care:p-to", CARE_GET, 0), -left);
	shut(box);
}

static void a_backup_beside_another_process_has_every_answer(void)
{
	struct place p;
	char backup[300], restored[300];
	uint64_t answered[8];

	place_make(&p);
	struct other *o = other_start(p.path);

	for (int round = 0; round < 5; round++) {
		noh_copied c;

		snprintf(backup, sizeof backup, "%s/backup%d", p.base, round);
		snprintf(restored, sizeof restored, "%s/restored%d", p.base, round);
		for (int i = 0; i < 8; i++)
			answered[i] = load_seq_cst(&o->answered[i]);
		uint32_t passed = load_seq_cst(&o->passed);

		if (!EXPECT_EQ(noh_backup_dir(p.path, backup, &c), NOH_OK))
			fprintf(stderr, "%s\n", noh_why());
		EXPECT(c.frame > 0 && c.image_bytes > 0);
		if (!EXPECT_EQ(noh_restore(backup, restored, NULL, NULL, NULL), NOH_OK))
			fprintf(stderr, "%s\n", noh_why());
		expect_clean(restored);
		expect_has(restored, answered, passed);
		remove_dir(restored);
		remove_dir(backup);
		usleep(20000);
	}
	other_kill(o);
	expect_clean(p.path);
	remove_dir(p.base);
}

/* ── in this process ── */

struct writer { noh_box *box; atomic_u32 stop; atomic_u64 answered[8]; };

static void *write_on(void *arg)
{
	struct writer *w = arg;
	char address[32];

	for (uint64_t i = 0; !load_seq_cst(&w->stop); i++) {
		snprintf(address, sizeof address, "care:%d", (int)(i % 8));
		store_seq_cst(&w->answered[i % 8], (uint64_t)call_i64(w->box, address, CARE_ADD, 1));
	}
	return NULL;
}

static void a_running_box_backs_itself_up(void)
{
	struct place p;
	struct writer w = { .box = NULL };
	uint64_t answered[8];
	char backup[300];
	pthread_t thread;

	place_make(&p);
	w.box = care_box(p.path);
	pthread_create(&thread, NULL, write_on, &w);
	for (int round = 0; round < 3; round++) {
		usleep(50000);
		snprintf(backup, sizeof backup, "%s/backup%d", p.base, round);
		for (int i = 0; i < 8; i++)
			answered[i] = load_seq_cst(&w.answered[i]);
		if (!EXPECT_EQ(noh_backup(w.box, backup), NOH_OK))
			fprintf(stderr, "%s\n", noh_why());
		expect_clean(backup);
		expect_has(backup, answered, 0);
		EXPECT_EQ(noh_backup(w.box, backup), NOH_EEXISTS);
		remove_dir(backup);
	}
	EXPECT_EQ(noh_backup_dir(p.path, backup, NULL), NOH_EINUSE);
	EXPECT_EQ(noh_verify(p.path, NULL, NULL, NULL, NULL), NOH_EINUSE);
	store_seq_cst(&w.stop, 1);
	pthread_join(thread, NULL);
	shut(w.box);
	expect_clean(p.path);
	remove_dir(p.base);
}

static bool has_bytes_at(const char *dir, const char *name, off_t at)
{
	char path[512], bytes[8], none[8] = { 0 };

	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDONLY);
	bool has = fd >= 0 && pread(fd, bytes, sizeof bytes, at) == sizeof bytes && memcmp(bytes, none, sizeof none) != 0;

	if (fd >= 0)
		close(fd);
	return has;
}

/* A box whose first segment is full and says that another is there; nothing is in that one. *n: what care:a counts. */
static noh_box *fill_a_segment(const char *dir, int64_t *n)
{
	noh_box *box = care_box(dir);
	char full[512];
	struct stat st;

	snprintf(full, sizeof full, "%s/journal/00000001.seg", dir);
	EXPECT(stat(full, &st) == 0);
	for (*n = 0; *n < 100000 && !has_bytes_at(dir, "journal/00000001.seg", st.st_size - 4096); )
		EXPECT_EQ(call_i64(box, "care:a", CARE_ADD, 1), ++*n);
	EXPECT(!has_bytes_at(dir, "journal/00000002.seg", 4096));
	return box;
}

static void a_segment_that_is_gone_is_named_by_all_who_look(void)
{
	struct place p;
	struct findings f;
	noh_verified v;
	char backup[300];
	int64_t n;

	place_make(&p);
	place_in(backup, sizeof backup, &p, "backup");
	noh_close(fill_a_segment(p.path, &n));
	expect_clean(p.path);
	EXPECT_EQ(shell("rm %s/journal/00000002.seg", p.path), 0);
	EXPECT_EQ(verify_dir(p.path, &f, &v), NOH_ECORRUPT);
	EXPECT(strstr(f.all, "journal/00000002.seg is missing"));
	EXPECT_EQ(noh_backup_dir(p.path, backup, NULL), NOH_ECORRUPT);
	EXPECT(strstr(noh_why(), "journal/00000002.seg is missing"));

	noh_options o = { .workers = 2, .dir = p.path, .unpinned = true, .max_actors = 100000 };
	noh_box *box = NULL;

	EXPECT_EQ(noh_open(&box, &o), NOH_ECORRUPT);
	EXPECT(strstr(noh_why(), "journal/00000002.seg is missing"));
	remove_dir(p.base);
}

/* The backup has to have the empty one, too. */
static void a_backup_may_end_with_a_segment(void)
{
	struct place p;
	char backup[300];
	int64_t n;

	place_make(&p);
	place_in(backup, sizeof backup, &p, "backup");
	noh_box *box = fill_a_segment(p.path, &n);

	EXPECT_EQ(noh_backup(box, backup), NOH_OK);
	noh_close(box);
	expect_clean(backup);
	box = care_box(backup);
	EXPECT_EQ(call_i64(box, "care:a", CARE_GET, 0), n);
	shut(box);
	remove_dir(p.base);
}

static void a_box_without_a_directory_has_nothing_to_back_up(void)
{
	noh_options o = { .workers = 1, .unpinned = true, .max_actors = 1000 };
	noh_box *box;

	EXPECT_EQ(noh_open(&box, &o), NOH_OK);
	EXPECT_EQ(noh_backup(box, "/nowhere/at/all"), NOH_EINVAL);
	noh_close(box);
}

/* ── restore ── */

static void make_small(const char *dir)
{
	noh_box *box = care_box(dir);

	for (int64_t i = 0; i < 20; i++)
		EXPECT_EQ(call_i64(box, "care:a", CARE_ADD, 1), i + 1);
	EXPECT_EQ(noh_call(box, "care:a", CARE_PUT, &(int64_t){ 77 }, 8, 5000, NULL, NULL), NOH_OK);
	noh_close(box);                          /* not stopped: there is a tail */
}

static void restore_overwrites_nothing(void)
{
	struct place p;
	char backup[300], before[64], after[64];

	place_make(&p);
	place_in(backup, sizeof backup, &p, "backup");
	make_small(p.path);
	EXPECT_EQ(noh_backup_dir(p.path, backup, NULL), NOH_OK);
	digest(p.path, before);
	EXPECT_EQ(noh_restore(backup, p.path, NULL, NULL, NULL), NOH_EEXISTS);
	EXPECT(strstr(noh_why(), "not empty") != NULL);
	digest(p.path, after);
	EXPECT(strcmp(before, after) == 0);
	remove_dir(p.path);
	EXPECT_EQ(mkdir(p.path, 0700), 0);       /* empty is as good as none */
	EXPECT_EQ(noh_restore(backup, p.path, NULL, NULL, NULL), NOH_OK);
	expect_clean(p.path);
	noh_box *box = care_box(p.path);

	EXPECT_EQ(call_i64(box, "care:a", CARE_GET, 0), 20);
	shut(box);
	remove_dir(p.base);
}

static void a_damaged_backup_is_not_restored(void)
{
	struct place p;
	char backup[300], target[300];
	struct stat st;

	place_make(&p);
	place_in(backup, sizeof backup, &p, "backup");
	place_in(target, sizeof target, &p, "target");
	make_small(p.path);
	EXPECT_EQ(noh_backup_dir(p.path, backup, NULL), NOH_OK);
	flip(backup, "journal/00000001.seg", 4096 + 100);
	EXPECT_EQ(noh_restore(backup, target, NULL, NULL, NULL), NOH_ECORRUPT);
	EXPECT(strstr(noh_why(), "00000001.seg") != NULL);
	EXPECT(lstat(target, &st) != 0);
	remove_dir(p.base);
}

static void a_damaged_directory_is_not_backed_up(void)
{
	struct place p;
	char backup[300];
	struct stat st;

	place_make(&p);
	place_in(backup, sizeof backup, &p, "backup");
	make_small(p.path);
	flip(p.path, "journal/00000001.seg", 4096 + 100);
	EXPECT_EQ(noh_backup_dir(p.path, backup, NULL), NOH_ECORRUPT);
	EXPECT(lstat(backup, &st) != 0);
	remove_dir(p.base);
}

/* ── compact ── */

static void compact_keeps_everything_and_gives_room_back(void)
{
	struct place p;
	noh_copied c;
	char address[32];

	place_make(&p);
	noh_box *box = care_box(p.path);

	for (int i = 0; i < 500; i++) {
		snprintf(address, sizeof address, "care:%d", i);
		EXPECT_EQ(call_i64(box, address, CARE_ADD, i), i);
	}
	EXPECT_EQ(noh_compact(p.path, &c), NOH_EINUSE);
	noh_close(box);
	EXPECT_EQ(noh_compact(p.path, &c), NOH_OK);
	EXPECT_EQ(c.actors, 500);
	EXPECT(c.journal_before > 0 && c.journal_bytes == 4096 && c.image_bytes > 0);
	expect_clean(p.path);
	EXPECT_EQ(noh_compact(p.path, &c), NOH_OK);              /* twice is once */
	box = care_box(p.path);
	for (int i = 0; i < 500; i += 7) {
		snprintf(address, sizeof address, "care:%d", i);
		EXPECT_EQ(call_i64(box, address, CARE_ADD, 1), i + 1);
	}
	noh_close(box);
	expect_clean(p.path);
	box = care_box(p.path);
	EXPECT_EQ(call_i64(box, "care:7", CARE_GET, 0), 8);
	shut(box);
	remove_dir(p.base);
}

static void compact_beside_another_process_is_refused(void)
{
	struct place p;

	place_make(&p);
	struct other *o = other_start(p.path);

	EXPECT_EQ(noh_compact(p.path, NULL), NOH_EINUSE);
	EXPECT(strstr(noh_why(), "in use") != NULL);
	expect_clean(p.path);                    /* beside it */
	other_kill(o);
	expect_clean(p.path);
	EXPECT_EQ(noh_compact(p.path, NULL), NOH_OK);
	expect_clean(p.path);
	remove_dir(p.base);
}

/* Killed at any moment, it has happened or not; and it can be done again. */
static void compact_interrupted_loses_nothing(void)
{
	uint64_t random = test_seed;
	struct place p;
	int64_t sum = 0;

	place_make(&p);
	for (int round = 0; round < 25; round++) {
		noh_box *box = care_box(p.path);
		int status;

		sum++;
		EXPECT_EQ(call_i64(box, "care:a", CARE_ADD, 1), sum);
		noh_close(box);                  /* a tail to fold */
		pid_t pid = fork();

		if (pid == 0)
			_exit(noh_compact(p.path, NULL) == NOH_OK ? 0 : 1);
		usleep((useconds_t)(test_random(&random) % 40000));
		kill(pid, SIGKILL);
		EXPECT(waitpid(pid, &status, 0) == pid && (WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
		expect_clean(p.path);
	}
	EXPECT_EQ(noh_compact(p.path, NULL), NOH_OK);
	noh_box *box = care_box(p.path);

	EXPECT_EQ(call_i64(box, "care:a", CARE_GET, 0), sum);
	shut(box);
	remove_dir(p.base);
}

static void a_backup_interrupted_is_none(void)
{
	uint64_t random = test_seed;
	struct place p;
	char dest[300], partial[320];
	struct stat st;

	place_make(&p);
	place_in(dest, sizeof dest, &p, "dest");
	snprintf(partial, sizeof partial, "%s.partial", dest);
	make_small(p.path);
	for (int round = 0; round < 15; round++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(noh_backup_dir(p.path, dest, NULL) == NOH_OK ? 0 : 1);
		usleep((useconds_t)(test_random(&random) % 30000));
		kill(pid, SIGKILL);
		EXPECT(waitpid(pid, &status, 0) == pid && (WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
		if (lstat(dest, &st) == 0)
			expect_clean(dest);
		else if (lstat(partial, &st) == 0)
			EXPECT_EQ(noh_backup_dir(p.path, dest, NULL), NOH_EEXISTS);
		remove_dir(dest);
		remove_dir(partial);
	}
	EXPECT_EQ(noh_backup_dir(p.path, dest, NULL), NOH_OK);
	remove_dir(p.base);
}

TEST_MAIN(
	TEST(a_backup_beside_another_process_has_every_answer, "P5 P6"),
	TEST(a_running_box_backs_itself_up, "P5"),
	TEST(a_backup_may_end_with_a_segment, "P5"),
	TEST(a_segment_that_is_gone_is_named_by_all_who_look, "P5 P11"),
	TEST(a_box_without_a_directory_has_nothing_to_back_up),
	TEST(restore_overwrites_nothing, "P11"),
	TEST(a_damaged_backup_is_not_restored, "P11"),
	TEST(a_damaged_directory_is_not_backed_up, "P11"),
	TEST(compact_keeps_everything_and_gives_room_back),
	TEST(compact_beside_another_process_is_refused, "P11"),
	TEST(compact_interrupted_loses_nothing, "P5"),
	TEST(a_backup_interrupted_is_none))
