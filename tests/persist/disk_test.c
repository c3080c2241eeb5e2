/* tests/persist/disk_test.c - real files, by io_uring and by plain calls: both behave the same. */
#include "persist/disk.h"

#include "core/mem.h"
#include "noh.h"
#include "tests/lib/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];
static struct disk *d;
static struct disk_file *f;
static uint8_t *buf;

static bool start(enum disk_io io, const char *where)
{
	snprintf(dir, sizeof dir, "%s/noh-disk-XXXXXX", where);
	EXPECT(mkdtemp(dir) != NULL);
	buf = mem_aligned(DISK_BLOCK, 1 << 20);
	if (disk_real_open(&d, dir, io) == NOH_OK)
		return true;
	EXPECT(io == DISK_URING && strstr(noh_why(), "io_uring"));
	rmdir(dir);
	mem_free(buf, 1 << 20);
	test_skip("io_uring is not allowed here");
	return false;
}

static void stop(void)
{
	char command[96];

	disk_end(d);
	mem_free(buf, 1 << 20);
	snprintf(command, sizeof command, "rm -r %s", dir);
	EXPECT_EQ(system(command), 0);
}

static void add_name(void *arg, const char *name)
{
	strcat(strcat(arg, name), " ");
}

static void files_names_and_bytes(void)
{
	char names[256] = "", back[16] = "";
	uint64_t size = 0;
	size_t got = 0;

	EXPECT_EQ(disk_open(d, "a", DISK_WRITE, &f), NOH_END);
	EXPECT_EQ(disk_list(d, "sub", add_name, names), NOH_OK);
	EXPECT(names[0] == 0);
	EXPECT_EQ(disk_open(d, "sub/a", DISK_WRITE | DISK_CREATE, &f), NOH_OK);   /* makes its folder */
	EXPECT_EQ(disk_write(d, f, "hello", 5, 3), NOH_OK);
	EXPECT_EQ(disk_sync(d, f), NOH_OK);
	EXPECT_EQ(disk_size(d, f, &size), NOH_OK);
	EXPECT_EQ(size, 8);
	EXPECT_EQ(disk_read(d, f, back, sizeof back, 3, &got), NOH_OK);
	EXPECT(got == 5 && !memcmp(back, "hello", 5));
	EXPECT_EQ(disk_read(d, f, back, sizeof back, 100, &got), NOH_OK);
	EXPECT_EQ(got, 0);
	disk_close(d, f);
	EXPECT_EQ(disk_open(d, "sub/a", DISK_WRITE | DISK_CREATE, &f), NOH_EDISK);
	EXPECT(strstr(noh_why(), "sub/a"));
	EXPECT_EQ(disk_rename(d, "sub/a", "sub/b"), NOH_OK);
	EXPECT_EQ(disk_sync_dir(d, "sub"), NOH_OK);
	EXPECT_EQ(disk_sync_dir(d, ""), NOH_OK);
	EXPECT_EQ(disk_list(d, "sub", add_name, names), NOH_OK);
	EXPECT(!strcmp(names, "b "));
	EXPECT_EQ(disk_remove(d, "sub/b"), NOH_OK);
	EXPECT_EQ(disk_remove(d, "sub/b"), NOH_END);
}

static void fill_and_submit(void)
{
	uint64_t size = 0, ticket = 0;
	size_t got = 0;
	int result = 1;

	EXPECT_EQ(disk_open(d, "seg", DISK_WRITE | DISK_CREATE | DISK_DURABLE, &f), NOH_OK);
	EXPECT_EQ(disk_fill(d, f, (3 << 20) + DISK_BLOCK), NOH_OK);
	EXPECT_EQ(disk_size(d, f, &size), NOH_OK);
	EXPECT_EQ(size, (3 << 20) + DISK_BLOCK);
	EXPECT_EQ(disk_reap(d, true, &ticket, &result), NOH_END);
	for (uint64_t i = 0; i < 20; i++) {
		size_t len = (size_t)(1 + i % 3) * DISK_BLOCK;
		uint8_t *half = buf + i % 2 * (1 << 19);

		memset(half, (int)i + 1, len);
		EXPECT_EQ(disk_submit(d, f, half, len, i * 4 * DISK_BLOCK, i), NOH_OK);
		if (i % 2 == 0)
			continue;
		EXPECT_EQ(disk_reap(d, true, &ticket, &result), NOH_OK);
		EXPECT(result == NOH_OK && (ticket == i || ticket == i - 1));
		uint64_t other = 2 * i - 1 - ticket;

		EXPECT_EQ(disk_reap(d, true, &ticket, &result), NOH_OK);
		EXPECT(result == NOH_OK && ticket == other);
	}
	for (uint64_t i = 0; i < 20; i++) {
		EXPECT_EQ(disk_read(d, f, buf, 4 * DISK_BLOCK, i * 4 * DISK_BLOCK, &got), NOH_OK);
		EXPECT(got == 4 * DISK_BLOCK && buf[0] == i + 1 && buf[4 * DISK_BLOCK - 1] == 0);
	}
	disk_close(d, f);
}

/* RLIMIT_FSIZE makes a write fail as a full disk would: part of it is written, the rest is refused. */
static void a_write_that_fails(void)
{
	struct rlimit old, tight = { 2 * DISK_BLOCK, 2 * DISK_BLOCK };
	uint64_t ticket = 0;
	int result = NOH_OK;

	EXPECT_EQ(disk_open(d, "small", DISK_WRITE | DISK_CREATE | DISK_DURABLE, &f), NOH_OK);
	EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
	tight.rlim_max = old.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
	EXPECT_EQ(disk_submit(d, f, buf, 4 * DISK_BLOCK, 0, 5), NOH_OK);
	EXPECT_EQ(disk_reap(d, true, &ticket, &result), NOH_OK);
	EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
	EXPECT_EQ(ticket, 5);
	EXPECT_EQ(result, NOH_EDISK);
	EXPECT(strstr(noh_why(), "small at 8192"));          /* the first half was a short write */
	disk_close(d, f);
}

static void io_uring_keeps_files_names_and_bytes(void)
{
	if (start(DISK_URING, "/tmp"))
		files_names_and_bytes(), stop();
}

static void plain_calls_keep_files_names_and_bytes(void)
{
	if (start(DISK_PLAIN, "/tmp"))
		files_names_and_bytes(), stop();
}

/* A small one that is alone blocks, and is there; a large one, or one beside another, is under way. */
static void small_and_large(void)
{
	static const struct { size_t len; bool ended; } tries[] = {
		{ DISK_BLOCK, true }, { DISK_BLOCK, false }, { 65536, true }, { 1 << 18, false },
	};
	uint64_t ticket;
	int result;

	EXPECT_EQ(disk_open(d, "two", DISK_WRITE | DISK_CREATE | DISK_DURABLE, &f), NOH_OK);
	EXPECT_EQ(disk_fill(d, f, 1 << 20), NOH_OK);
	for (uint64_t i = 0; i < 4; i++) {
		EXPECT_EQ(disk_submit(d, f, buf, tries[i].len, 0, i), NOH_OK);
		EXPECT_EQ(d->ended, tries[i].ended);
		for (int all = i == 0 ? 0 : i == 1 ? 2 : 1; all > 0; all--) {
			EXPECT_EQ(disk_reap(d, true, &ticket, &result), NOH_OK);
			EXPECT_EQ(result, NOH_OK);
		}
	}
	disk_close(d, f);
}

static void io_uring_writes_what_was_submitted(void)
{
	if (start(DISK_URING, "/tmp")) {
		EXPECT(strstr(d->how, "io_uring"));
		fill_and_submit(), small_and_large(), a_write_that_fails(), stop();
	}
}

static void plain_calls_write_what_was_submitted(void)
{
	if (start(DISK_PLAIN, "/tmp")) {
		EXPECT(strstr(d->how, "plain calls"));
		fill_and_submit(), a_write_that_fails(), stop();
	}
}

static void a_file_system_in_memory_works_as_well(void)
{
	if (access("/dev/shm", W_OK)) {
		test_skip("no /dev/shm");
		return;
	}
	if (start(DISK_AUTO, "/dev/shm"))
		files_names_and_bytes(), fill_and_submit(), stop();
	if (start(DISK_PLAIN, "/dev/shm"))
		fill_and_submit(), stop();
}

static void a_full_disk_is_no_space_and_nothing_worse(void)
{
	snprintf(dir, sizeof dir, "/tmp/noh-disk-XXXXXX");
	EXPECT(mkdtemp(dir) != NULL);
	if (mount("noh-test", dir, "tmpfs", 0, "size=1m")) {
		rmdir(dir);
		test_skip("this user may not mount a small file system");
		return;
	}
	EXPECT_EQ(disk_real_open(&d, dir, DISK_AUTO), NOH_OK);
	EXPECT_EQ(disk_open(d, "seg", DISK_WRITE | DISK_CREATE, &f), NOH_OK);
	EXPECT_EQ(disk_fill(d, f, 4 << 20), NOH_ENOSPC);
	EXPECT(strstr(noh_why(), "seg"));
	disk_close(d, f);
	EXPECT_EQ(disk_remove(d, "seg"), NOH_OK);
	EXPECT_EQ(disk_open(d, "seg", DISK_WRITE | DISK_CREATE, &f), NOH_OK);
	EXPECT_EQ(disk_fill(d, f, 1 << 19), NOH_OK);
	disk_close(d, f);
	disk_end(d);
	EXPECT_EQ(umount(dir), 0);
	rmdir(dir);
}

static void a_directory_that_is_not_there_is_named(void)
{
	EXPECT_EQ(disk_real_open(&d, "/nonexistent/x", DISK_AUTO), NOH_EDISK);
	EXPECT(strstr(noh_why(), "/nonexistent/x"));
}

TEST_MAIN(
	TEST(io_uring_keeps_files_names_and_bytes, "US-09"),
	TEST(plain_calls_keep_files_names_and_bytes),
	TEST(io_uring_writes_what_was_submitted, "US-09"),
	TEST(plain_calls_write_what_was_submitted),
	TEST(a_file_system_in_memory_works_as_well),
	TEST(a_full_disk_is_no_space_and_nothing_worse),
	TEST(a_directory_that_is_not_there_is_named))
