/* tests/box/lost_test.c - a data directory of which a part is gone: refused by its name, with the way out, and left as it
 * is. What was answered does not vanish in silence. */
#include "tests/box/care_kit.h"

static void expect_says(int rc, const char *word)
{
	EXPECT_EQ(rc, NOH_ECORRUPT);
	if (!EXPECT(strstr(noh_why(), word) && strstr(noh_why(), "restore")))
		fprintf(stderr, "not \"%s\" and a way out in: %s\n", word, noh_why());
}

/* A box, and every tool; the directory stays as it is. */
static void expect_all_refuse(const struct place *p, const char *word)
{
	noh_options o = { .workers = 1, .dir = p->path, .unpinned = true, .max_actors = 1000 };
	char before[64], after[64], other[300];
	noh_box *box = NULL;
	struct findings f;
	noh_dir_info info;

	place_in(other, sizeof other, p, "copy");
	digest(p->path, before);
	expect_says(noh_open(&box, &o), word);
	EXPECT(box == NULL);
	EXPECT_EQ(verify_dir(p->path, &f, NULL), NOH_ECORRUPT);
	if (!EXPECT(strstr(f.all, word) && strstr(f.all, "restore")))
		fprintf(stderr, "verify: %s\n", f.all);
	expect_says(noh_inspect(p->path, &info), word);
	expect_says(noh_check(p->path, &care_type, 1, NULL, NULL), word);
	expect_says(noh_backup_dir(p->path, other, NULL), word);
	expect_says(noh_compact(p->path, NULL), word);
	EXPECT_EQ(noh_restore(p->path, other, NULL, NULL, NULL), NOH_ECORRUPT);
	EXPECT(access(other, F_OK) != 0);
	digest(p->path, after);
	EXPECT(strcmp(before, after) == 0);
}

static void lose(const char *what, bool folded, const char *word)
{
	struct place p;

	place_make(&p);
	make_twenty(p.path, folded);
	EXPECT_EQ(shell("cp -r %s %s/whole && cd %s && rm -r %s", p.path, p.base, p.path, what), 0);
	expect_all_refuse(&p, word);
	EXPECT_EQ(shell("cd %s && rm -r data && mv whole data", p.base), 0);
	expect_twenty(p.path);                   /* put back, all is well */
	remove_dir(p.base);
}

static void a_journal_that_is_gone_is_damage(void)
{
	lose("journal", false, "data/journal is missing");
	lose("journal", true, "data/journal is missing");
}

static void a_journal_without_segments_is_damage(void)
{
	lose("journal/*", false, "data/journal is missing or has no segment");
	lose("journal/*", true, "data/journal is missing or has no segment");
}

static void an_image_that_is_gone_is_damage(void)
{
	lose("image", false, "data/image is missing");
	lose("image", true, "data/image is missing");
}

static void both_gone_is_damage(void)
{
	lose("image journal", true, "data/image is missing");
}

/* The segment with the frames the image says it has. */
static void a_journal_that_lost_its_end_is_damage(void)
{
	noh_options o = { .workers = 1, .unpinned = true, .max_actors = 1000 };
	noh_box *box = NULL;
	struct place p;
	char first[300];

	place_make(&p);
	place_in(first, sizeof first, &p, "first.seg");
	noh_close(care_box(p.path));
	EXPECT_EQ(shell("cp %s/journal/00000001.seg %s", p.path, first), 0);
	make_twenty(p.path, true);
	EXPECT_EQ(shell("rm %s/journal/*.seg && mv %s %s/journal/00000001.seg", p.path, first, p.path), 0);
	o.dir = p.path;
	expect_says(noh_open(&box, &o), "the journal ends with frame 0, but the image has frame ");
	EXPECT(strstr(noh_why(), p.path) != NULL);
	remove_dir(p.base);
}

/* Compaction has folded all: there is a journal all the same, and it counts. */
static void a_compacted_directory_opens_and_its_journal_counts(void)
{
	struct place p;

	place_make(&p);
	make_twenty(p.path, false);
	EXPECT_EQ(noh_compact(p.path, NULL), NOH_OK);
	expect_clean(p.path);
	EXPECT_EQ(noh_compact(p.path, NULL), NOH_OK);
	expect_clean(p.path);
	EXPECT_EQ(shell("mkdir %s/kept && mv %s/journal/* %s/kept", p.base, p.path, p.base), 0);
	expect_all_refuse(&p, "data/journal is missing or has no segment");
	EXPECT_EQ(shell("mv %s/kept/* %s/journal", p.base, p.path), 0);
	expect_twenty(p.path);
	expect_twenty(p.path);
	expect_clean(p.path);
	remove_dir(p.base);
}

static void a_copy_of_a_compacted_directory_opens(void)
{
	char copy[300], again[300];
	struct place p;

	place_make(&p);
	place_in(copy, sizeof copy, &p, "copy");
	place_in(again, sizeof again, &p, "again");
	make_twenty(p.path, false);
	EXPECT_EQ(noh_compact(p.path, NULL), NOH_OK);
	EXPECT_EQ(noh_backup_dir(p.path, copy, NULL), NOH_OK);
	EXPECT_EQ(noh_restore(copy, again, NULL, NULL, NULL), NOH_OK);
	expect_twenty(again);
	remove_dir(p.base);
}

/* As a start leaves it that was killed, or had no room for the first segment, just before its end. */
static void a_first_start_that_was_interrupted_is_taken_up(void)
{
	struct place p;

	for (int left = 0; left < 3; left++) {
		place_make(&p);
		noh_close(care_box(p.path));
		EXPECT_EQ(shell("cd %s && mv noh.dir noh.dir.tmp && rm -f running crashes", p.path), 0);
		if (left < 2)
			EXPECT_EQ(shell("rm %s/journal/*", p.path), 0);
		if (left < 1)
			EXPECT_EQ(shell("cd %s && mv image image.new && : > image.new/data.mdb", p.path), 0);
		make_twenty(p.path, false);
		expect_clean(p.path);
		expect_twenty(p.path);
		remove_dir(p.base);
	}
}

TEST_MAIN(
	TEST(a_journal_that_is_gone_is_damage, "P5 P8 P11"),
	TEST(a_journal_without_segments_is_damage, "P5 P8 P11"),
	TEST(an_image_that_is_gone_is_damage, "P5 P8 P11"),
	TEST(both_gone_is_damage, "P5 P8 P11"),
	TEST(a_journal_that_lost_its_end_is_damage, "P11"),
	TEST(a_compacted_directory_opens_and_its_journal_counts),
	TEST(a_copy_of_a_compacted_directory_opens),
	TEST(a_first_start_that_was_interrupted_is_taken_up))
