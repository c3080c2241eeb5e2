/* tests/persist/datadir_test.c - a data directory is made once, has one owner, and a refusal leaves it
 * as it was to the byte. */
#include "persist/datadir.h"

#include "noh.h"
#include "tests/lib/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

static char base[64], dir[128], text_path[160];
static struct datadir d, e;

static void fresh(void)
{
	snprintf(base, sizeof base, "/tmp/noh-datadir-XXXXXX");
	EXPECT(mkdtemp(base) != NULL);
	snprintf(dir, sizeof dir, "%s/data", base);
	snprintf(text_path, sizeof text_path, "%s/noh.dir", dir);
}

static void gone(void)
{
	char command[160];

	snprintf(command, sizeof command, "rm -r %s", base);
	EXPECT_EQ(system(command), 0);
}

/* Names, sizes and bytes of all files in it. */
static uint64_t contents(void)
{
	char command[512], line[256];
	uint64_t sum = 0;

	snprintf(command, sizeof command,
		 "cd %s && find . -printf '%%p %%s %%m %%T@\\n' -type f -exec cksum {} + | sort",
		 base);
	FILE *f = popen(command, "r");

	while (f && fgets(line, sizeof line, f))
		sum = XXH3_64bits_withSeed(line, strlen(line), sum);
	if (f)
		pclose(f);
	return sum;
}

static void write_text(const char *text)
{
	FILE *f = fopen(text_path, "w");

	EXPECT(f && fputs(text, f) >= 0);
	if (f)
		fclose(f);
}

static void expect_refused(unsigned flags, int code, const char *word)
{
	uint64_t before = contents();

	EXPECT_EQ(datadir_open(&e, dir, flags, 0), code);
	EXPECT(strstr(noh_why(), word) != NULL);
	EXPECT(contents() == before);
	EXPECT_EQ(e.lock, -1);
}

/* As a box does at its first start, when image and journal are there. */
static int made(struct datadir *a, uint64_t seed)
{
	int rc = datadir_open(a, dir, DATADIR_CREATE, seed);

	return rc == NOH_OK ? datadir_finish(a) : rc;
}

static void a_new_directory_gets_an_identity_that_stays(void)
{
	fresh();
	expect_refused(0, NOH_ESYSTEM, "No such file");
	EXPECT_EQ(made(&d, 0), NOH_OK);
	EXPECT(d.id && d.seed && d.format == DATADIR_FORMAT);
	uint64_t id = d.id, seed = d.seed;

	datadir_close(&d);
	EXPECT_EQ(datadir_open(&d, dir, 0, 99), NOH_OK);
	EXPECT(d.id == id && d.seed == seed);
	EXPECT_EQ(datadir_open(&e, dir, DATADIR_LOOK, 0), NOH_OK);     /* beside a running box */
	EXPECT(e.id == id && e.lock == -1);
	datadir_close(&e);
	datadir_close(&d);
	gone();
}

static void the_seed_may_be_given_and_two_directories_differ(void)
{
	fresh();
	EXPECT_EQ(made(&d, 42), NOH_OK);
	EXPECT_EQ(d.seed, 42);
	strcat(dir, "2");
	EXPECT_EQ(made(&e, 42), NOH_OK);
	EXPECT(e.id != d.id);
	datadir_close(&d);
	datadir_close(&e);
	gone();
}

static void a_second_box_is_refused_with_the_process_that_has_it(void)
{
	char word[64];

	fresh();
	EXPECT_EQ(made(&d, 0), NOH_OK);
	snprintf(word, sizeof word, "in use by process %ld", (long)getpid());
	expect_refused(DATADIR_CREATE, NOH_EINUSE, word);
	expect_refused(0, NOH_EINUSE, word);
	pid_t child = fork();

	if (child == 0)
		_exit(datadir_open(&e, dir, 0, 0) == NOH_EINUSE ? 0 : 1);
	int status = -1;

	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	datadir_close(&d);
	gone();
}

static void a_killed_box_leaves_no_lock(void)
{
	fresh();
	pid_t child = fork();

	if (child == 0) {
		if (made(&d, 0) == NOH_OK)
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	int status = 0;

	EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	EXPECT_EQ(datadir_open(&d, dir, 0, 0), NOH_OK);
	datadir_close(&d);
	gone();
}

static void somebody_elses_directory_is_left_alone(void)
{
	char path[160];

	fresh();
	EXPECT_EQ(mkdir(dir, 0700), 0);
	expect_refused(0, NOH_EINVAL, "not a data directory");
	expect_refused(DATADIR_LOOK, NOH_EINVAL, "not a data directory");
	snprintf(path, sizeof path, "%s/thesis.txt", dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	expect_refused(DATADIR_CREATE, NOH_EINVAL, "thesis.txt");
	EXPECT_EQ(unlink(path), 0);
	EXPECT_EQ(made(&d, 0), NOH_OK);   /* an empty one is fine */
	datadir_close(&d);
	gone();
}

static void a_file_is_not_a_directory(void)
{
	fresh();
	close(open(dir, O_CREAT | O_WRONLY, 0600));
	expect_refused(DATADIR_CREATE, NOH_EINVAL, "not a directory");
	gone();
}

static void in_it(char path[192], const char *name)
{
	snprintf(path, 192, "%s/%s", dir, name);
}

static void what_was_half_made_is_made_again(void)
{
	char unfinished[192];

	fresh();
	EXPECT_EQ(datadir_open(&d, dir, DATADIR_CREATE, 0), NOH_OK);
	datadir_close(&d);
	in_it(unfinished, "noh.dir.tmp");
	EXPECT_EQ(truncate(unfinished, 20), 0);           /* as if the power had gone while it was written */
	EXPECT_EQ(made(&d, 0), NOH_OK);
	EXPECT(access(unfinished, F_OK) != 0 && access(text_path, F_OK) == 0);
	datadir_close(&d);
	gone();
}

static void a_first_start_that_was_interrupted_goes_on_with_the_same_identity(void)
{
	char path[192];

	fresh();
	EXPECT_EQ(datadir_open(&d, dir, DATADIR_CREATE, 0), NOH_OK);
	EXPECT(d.unfinished);
	uint64_t id = d.id, seed = d.seed;

	datadir_close(&d);
	EXPECT(access(text_path, F_OK) != 0);
	in_it(path, "image");
	EXPECT_EQ(mkdir(path, 0700), 0);
	in_it(path, "journal/00000001.seg");
	close(open(path, O_CREAT | O_WRONLY, 0600));
	expect_refused(0, NOH_EINVAL, "first start was not completed");
	expect_refused(DATADIR_LOOK, NOH_EINVAL, "start it again");
	EXPECT_EQ(made(&d, 0), NOH_OK);
	EXPECT(d.id == id && d.seed == seed && !d.unfinished);
	datadir_close(&d);
	EXPECT_EQ(datadir_open(&d, dir, DATADIR_CREATE, 0), NOH_OK);
	EXPECT(d.id == id && !d.unfinished);
	datadir_close(&d);
	gone();
}

static void a_directory_that_lost_its_name_is_not_made_anew(void)
{
	char path[192];

	fresh();
	EXPECT_EQ(made(&d, 0), NOH_OK);
	datadir_close(&d);
	in_it(path, "image");
	EXPECT_EQ(mkdir(path, 0700), 0);
	EXPECT_EQ(unlink(text_path), 0);
	expect_refused(DATADIR_CREATE, NOH_EINVAL, "noh.dir is missing, but image is there: put noh.dir back, or restore");
	expect_refused(0, NOH_EINVAL, "put noh.dir back");
	expect_refused(DATADIR_LOOK, NOH_EINVAL, "put noh.dir back");
	gone();
}

static void one_that_cannot_be_made_says_what_to_do(void)
{
	fresh();
	snprintf(dir, sizeof dir, "%s/no/data", base);
	EXPECT_EQ(datadir_open(&d, dir, DATADIR_CREATE, 0), NOH_ESYSTEM);
	EXPECT(strstr(noh_why(), "make that first, or choose another place") != NULL);
	EXPECT_EQ(datadir_open(&d, "/proc/noh-data", DATADIR_CREATE, 0), NOH_ESYSTEM);
	EXPECT(strstr(noh_why(), "/proc/noh-data") != NULL && strstr(noh_why(), "or choose another place") != NULL);
	gone();
}

static void every_flipped_bit_and_every_cut_is_noticed(void)
{
	char text[512] = "", bad[512];

	fresh();
	EXPECT_EQ(made(&d, 0), NOH_OK);
	datadir_close(&d);
	FILE *f = fopen(text_path, "r");
	size_t len = f ? fread(text, 1, sizeof text - 1, f) : 0;

	if (f)
		fclose(f);
	for (size_t bit = 0; bit < len * 8; bit++) {
		memcpy(bad, text, len + 1);
		bad[bit / 8] = (char)(bad[bit / 8] ^ (1 << bit % 8));
		write_text(bad);
		int rc = datadir_open(&e, dir, 0, 0);

		EXPECT_EQ(rc, NOH_ECORRUPT);
		EXPECT(strstr(noh_why(), "noh.dir"));
	}
	for (size_t cut = 0; cut < len; cut++) {
		memcpy(bad, text, len + 1);
		bad[cut] = 0;
		write_text(bad);
		int rc = datadir_open(&e, dir, 0, 0);

		EXPECT_EQ(rc, NOH_ECORRUPT);
	}
	expect_refused(0, NOH_ECORRUPT, "noh.dir");
	gone();
}

static void another_version_is_refused_by_name(void)
{
	char text[512];
	int n = snprintf(text, sizeof text, "noh data directory\nformat 7\nsecret 1\n");

	fresh();
	EXPECT_EQ(made(&d, 0), NOH_OK);
	datadir_close(&d);
	snprintf(text + n, sizeof text - (size_t)n, "sum %016llx\n",
		 (unsigned long long)XXH3_64bits(text, (size_t)n));
	write_text(text);
	expect_refused(DATADIR_CREATE, NOH_EVERSION, "format 7");
	/* What stands behind the number is that format's own business. */
	write_text("noh data directory\nformat 7\nsealed otherwise\n");
	expect_refused(DATADIR_CREATE, NOH_EVERSION, "a newer release has written it");
	write_text("noh data directory\nformat 0\n");
	expect_refused(DATADIR_CREATE, NOH_EVERSION, "older than the first release");
	gone();
}

static void one_that_cannot_be_written_to_is_refused(void)
{
	fresh();
	if (geteuid() == 0) {
		gone();
		test_skip("root may write everywhere");
		return;
	}
	EXPECT_EQ(mkdir(dir, 0500), 0);
	expect_refused(DATADIR_CREATE, NOH_ESYSTEM, "not writable");
	gone();
}

TEST_MAIN(
	TEST(a_new_directory_gets_an_identity_that_stays),
	TEST(the_seed_may_be_given_and_two_directories_differ),
	TEST(a_second_box_is_refused_with_the_process_that_has_it),
	TEST(a_killed_box_leaves_no_lock),
	TEST(somebody_elses_directory_is_left_alone),
	TEST(a_file_is_not_a_directory),
	TEST(what_was_half_made_is_made_again),
	TEST(a_first_start_that_was_interrupted_goes_on_with_the_same_identity),
	TEST(a_directory_that_lost_its_name_is_not_made_anew),
	TEST(one_that_cannot_be_made_says_what_to_do),
	TEST(every_flipped_bit_and_every_cut_is_noticed),
	TEST(another_version_is_refused_by_name),
	TEST(one_that_cannot_be_written_to_is_refused))
