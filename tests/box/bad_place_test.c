/* tests/box/bad_place_test.c - a data directory on a full disk or without rights: one sentence that names the
 * file, nothing half done, and all is there again when the place is good again. Needs root for a small disk. */
#include "tests/box/care_kit.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

/* A file system of this size at p->base, seen by this process alone. */
static bool small_disk(struct place *p, const char *size)
{
	char options[64];

	place_make(p);
	snprintf(options, sizeof options, "size=%s", size);
	if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("none", p->base, "tmpfs", 0, options) == 0)
		return true;
	test_skip("cannot mount a small file system");
	remove_dir(p->base);
	return false;
}

static void away(struct place *p)
{
	EXPECT_EQ(umount2(p->base, MNT_DETACH), 0);
	remove_dir(p->base);
}

static void fill_up(const struct place *p)
{
	(void)shell("dd if=/dev/zero of=%s/ballast bs=1k >/dev/null 2>&1", p->base);
}

static void make_room(const struct place *p)
{
	EXPECT_EQ(shell("rm %s/ballast", p->base), 0);
}

static int try_open(const char *dir, noh_box **box)
{
	noh_options o = { .workers = 1, .dir = dir, .unpinned = true, .max_actors = 1000 };

	return noh_open(box, &o);
}

static void a_new_directory_does_not_fit(void)
{
	struct place p;
	noh_box *box = NULL;

	if (!small_disk(&p, "8m"))
		return;
	EXPECT_EQ(try_open(p.path, &box), NOH_ENOSPC);
	if (!EXPECT(box == NULL && strstr(noh_why(), "journal/") != NULL))
		fprintf(stderr, "%s\n", noh_why());
	away(&p);
}

static void a_full_disk_refuses_the_start_and_loses_nothing(void)
{
	struct place p;
	noh_box *box = NULL;
	char new[300];

	if (!small_disk(&p, "120m"))
		return;
	make_twenty(p.path, false);
	fill_up(&p);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(try_open(p.path, &box), NOH_ENOSPC);
		EXPECT(box == NULL && strstr(noh_why(), p.path) != NULL && strstr(noh_why(), "make room") != NULL);
		expect_clean(p.path);
	}
	place_in(new, sizeof new, &p, "new");
	EXPECT_EQ(try_open(new, &box), NOH_ENOSPC);
	if (!EXPECT(box == NULL && strstr(noh_why(), "new/") != NULL && strstr(noh_why(), "make room") != NULL))
		fprintf(stderr, "%s\n", noh_why());
	make_room(&p);
	expect_twenty(p.path);
	expect_clean(p.path);
	away(&p);
}

static void copies_that_do_not_fit_leave_nothing(void)
{
	struct place p, q;
	char before[64], after[64], dest[300], partial[320];
	struct stat st;

	place_make(&q);
	make_twenty(q.path, true);
	if (!small_disk(&p, "8m")) {
		remove_dir(q.base);
		return;
	}
	place_in(dest, sizeof dest, &p, "dest");
	snprintf(partial, sizeof partial, "%s.partial", dest);
	digest(q.path, before);
	EXPECT_EQ(noh_backup_dir(q.path, dest, NULL), NOH_ENOSPC);
	EXPECT(strstr(noh_why(), "dest.partial/journal/") != NULL);
	EXPECT(lstat(dest, &st) != 0 && lstat(partial, &st) != 0);
	EXPECT_EQ(noh_restore(q.path, dest, NULL, NULL, NULL), NOH_ENOSPC);
	EXPECT(lstat(dest, &st) != 0 && lstat(partial, &st) != 0);
	digest(q.path, after);
	EXPECT(strcmp(before, after) == 0);
	away(&p);
	remove_dir(q.base);
}

static void compact_on_a_full_disk_changes_nothing(void)
{
	struct place p;
	char before[64], after[64];

	if (!small_disk(&p, "120m"))
		return;
	make_twenty(p.path, true);
	fill_up(&p);
	digest(p.path, before);
	EXPECT_EQ(noh_compact(p.path, NULL), NOH_ENOSPC);
	if (!EXPECT(strstr(noh_why(), "compact.new") != NULL))
		fprintf(stderr, "%s\n", noh_why());
	digest(p.path, after);
	EXPECT(strcmp(before, after) == 0);
	make_room(&p);
	EXPECT_EQ(noh_compact(p.path, NULL), NOH_OK);
	expect_twenty(p.path);
	away(&p);
}

/* As a user without rights; the exit status says which claim failed. */
static int as_nobody(const char *dir)
{
	noh_box *box = NULL;

	if (setgid(65534) != 0 || setuid(65534) != 0)
		return 77;
	if (try_open(dir, &box) != NOH_ESYSTEM || box != NULL)
		return 1;
	if (!strstr(noh_why(), "not writable") || !strstr(noh_why(), dir))
		return 2;
	if (noh_compact(dir, NULL) != NOH_ESYSTEM || !strstr(noh_why(), dir))
		return 3;
	return 0;
}

static void a_directory_of_somebody_else_is_left_alone(void)
{
	struct place p;
	char before[64], after[64];
	int status;

	if (geteuid() != 0) {
		test_skip("needs another user");
		return;
	}
	place_make(&p);
	make_twenty(p.path, true);
	EXPECT_EQ(shell("chmod -R a+rX %s", p.base), 0);
	digest(p.path, before);
	pid_t pid = fork();

	if (pid == 0)
		_exit(as_nobody(p.path));
	EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	EXPECT_EQ(WEXITSTATUS(status), 0);
	digest(p.path, after);
	EXPECT(strcmp(before, after) == 0);
	remove_dir(p.base);
}

TEST_MAIN(
	TEST(a_new_directory_does_not_fit, "P11"),
	TEST(a_full_disk_refuses_the_start_and_loses_nothing, "P11"),
	TEST(copies_that_do_not_fit_leave_nothing, "P11"),
	TEST(compact_on_a_full_disk_changes_nothing, "P11"),
	TEST(a_directory_of_somebody_else_is_left_alone, "P11"))
