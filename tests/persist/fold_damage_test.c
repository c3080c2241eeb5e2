/* tests/persist/fold_damage_test.c - folds into an image in which a sector was lost.
 *
 * A leaf page with a hole still has most of its rows. If a fold adds to it and LMDB splits it, both halves are in
 * order, and what stood in the hole, or behind it, looks as if it had never been. So such a fold must be refused.
 */
#include "tests/persist/image_kit.h"

#define ACTORS 400
#define SECTOR 512

enum { HARMLESS, REFUSED, FOUND, HIDDEN, ENDS };         /* how a child ended; and it may crash in LMDB */

static void write_state(unsigned i, const char *more, uint64_t seq, const char *text)
{
	char address[32];

	snprintf(address, sizeof address, "actor:%05u%s", i, more);
	begin(address, seq);
	state(1, text);
	in_frame(seq);
}

static bool is_missing(unsigned i)
{
	char address[32];

	snprintf(address, sizeof address, "actor:%05u", i);
	return strcmp(load_before(address, UINT64_MAX), "none") == 0;
}

/* Someone new beside every fourth, or every fourth is longer than it was; then: who is missing? */
static int fold_and_look(int grow)
{
	if (db_open(&kit.db, &kit.options) != NOH_OK)
		return REFUSED;
	for (unsigned i = 0; i < ACTORS; i += 4)
		write_state(i, grow ? "" : ".5", 2, "came later, and has more to say than the others had");
	int end = try_commit_at(2, NOW) == NOH_OK ? HARMLESS : FOUND;

	for (unsigned i = 1; i < ACTORS; i++)
		if (i % 4 != 0 && is_missing(i))
			return HIDDEN;
	return end;
}

static void copy_file(const char *from, const char *to)
{
	char command[300];

	snprintf(command, sizeof command, "cp %s %s", from, to);
	EXPECT_EQ(system(command), 0);
}

static void no_fold_hides_what_a_lost_sector_held(void)
{
	uint64_t rng = test_seed;
	int ends[ENDS + 1] = {0}, tries = (int)test_size(60, 30);
	char path[100], kept[100];
	static const uint8_t nothing[SECTOR];

	start();
	for (unsigned i = 0; i < ACTORS; i++)
		write_state(i, "", 1, "was here first");
	commit(1);
	uint64_t sectors = stats().used_bytes / SECTOR;

	db_close(kit.db);
	snprintf(path, sizeof path, "%s/image/data.mdb", kit.dir);
	snprintf(kept, sizeof kept, "%s/kept", kit.dir);
	copy_file(path, kept);
	for (int i = 0; i < tries; i++) {
		uint64_t dice = test_random(&rng), sector = (dice >> 1) % sectors;
		int fd = open(path, O_RDWR);

		EXPECT_EQ(pwrite(fd, nothing, SECTOR, (off_t)(sector * SECTOR)), SECTOR);
		close(fd);
		int end = in_silence(fold_and_look, (int)(dice & 1));

		if (end == HIDDEN)
			fprintf(stderr, "sector %d (page %d + %d)\n", (int)sector, (int)sector / 8,
				(int)sector % 8 * SECTOR);
		ends[end >= 0 && end < ENDS ? end : ENDS]++;
		copy_file(kept, path);
	}
	printf("  %d lost sectors: %d harmless, %d refused at the start, %d found by the fold, %d crashes of LMDB\n",
	       tries, ends[HARMLESS], ends[REFUSED], ends[FOUND], ends[ENDS]);
	EXPECT_EQ(ends[HIDDEN], 0);
	EXPECT(ends[FOUND] > 0);
	open_db();
	EXPECT(verified());
	finish();
}

TEST_MAIN(
	TEST(no_fold_hides_what_a_lost_sector_held))
