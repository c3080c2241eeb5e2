/* tests/crash/work.c - somebody who uses journal and image and says what is durable, for blk.sh.
 *
 *     work write DIR MARK COUNT [forgetful]    numbers 1 to COUNT, as states of a few actors; into MARK goes
 *                                              the last one that is durable, again and again
 *     work check DIR                           recovers; prints the last number up to which all are there
 *
 * forgetful: the same on a door that leaves out every sync. It must be caught.
 */
#include "core/mem.h"
#include "core/must.h"
#include "noh.h"
#include "persist/db.h"
#include "persist/journal.h"
#include "persist/keeper.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ACTORS  7
#define DIR_ID  0x626c6bu
#define FOLD_AT 23                   /* numbers between two folds */

/* ── a door that forgets to sync ── */

static struct {
	struct disk_ops        ops;
	const struct disk_ops *real;
	uint64_t               ticket;
	bool                   ended;
} forgetful;

static int no_sync(struct disk_file *f)
{
	(void)f;
	return NOH_OK;
}

static int submit_buffered(struct disk_file *f, const void *buf, size_t len, uint64_t off,
			   uint64_t ticket)
{
	forgetful.ticket = ticket;
	forgetful.ended = true;
	return forgetful.real->write(f, buf, len, off);
}

static int reap_at_once(struct disk *d, bool wait, uint64_t *ticket, int *result)
{
	(void)d;
	(void)wait;
	if (!forgetful.ended)
		return NOH_END;
	*ticket = forgetful.ticket;
	*result = NOH_OK;
	forgetful.ended = false;
	return NOH_OK;
}

static void forget(struct disk *d)
{
	forgetful.real = d->ops;
	forgetful.ops = *d->ops;
	forgetful.ops.sync = no_sync;
	forgetful.ops.submit = submit_buffered;
	forgetful.ops.reap = reap_at_once;
	d->ops = &forgetful.ops;
	d->in_flight = 1;
}

static int complain(const char *what)
{
	fprintf(stderr, "work: %s: %s\n", what, noh_why());
	return 1;
}

static bool mark(int fd, uint64_t number)
{
	char text[32];
	int len = snprintf(text, sizeof text, "%llu\n", (unsigned long long)number);

	return pwrite(fd, text, (size_t)len, 0) == len;
}

static int address_of(uint64_t number, char *out, size_t room)
{
	return snprintf(out, room, "n:%llu", (unsigned long long)(number % ACTORS));
}

static void push(struct journal *j, uint64_t number)
{
	uint8_t bytes[256], *end, *data;
	char address[16];
	int len = address_of(number, address, sizeof address);
	uint64_t tag = journal_epoch(j);
	struct part_state head = { .version = 1 };

	end = record_begin(bytes, address, (size_t)len, number % ACTORS, tag, (tag << 20) + number, 0);
	data = part_put(&end, PART_STATE, NULL, 0, sizeof head + sizeof number);
	memcpy(data, &head, sizeof head);
	memcpy(data + sizeof head, &number, sizeof number);
	record_finish(bytes, end);
	memcpy(journal_reserve(j, 0, (size_t)(end - bytes)), bytes, (size_t)(end - bytes));
	journal_push(j, 0);
}

static uint64_t wall_ms(void *arg)
{
	(void)arg;
	return 1700000000000u;
}

struct place { struct disk *disk; struct db *db; struct journal *journal; uint64_t last[ACTORS]; };

static int see(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
	       const uint8_t *parts, const uint8_t *end)
{
	struct place *p = arg;
	struct part part;
	uint64_t number;

	(void)frame;
	(void)epoch;
	(void)head;
	while (part_next(&parts, end, &part))
		if (part.kind == PART_STATE) {
			memcpy(&number, (const uint8_t *)part.data + sizeof(struct part_state), 8);
			p->last[number % ACTORS] = number;
		}
	return NOH_OK;
}

static int open_place(struct place *p, const char *dir, struct journal_end *end)
{
	uint64_t frame, epoch;
	int rc = disk_real_open(&p->disk, dir, DISK_AUTO);

	if (rc == NOH_OK)
		rc = db_open(&p->db, &(struct db_options){ .dir = dir, .dir_id = DIR_ID, .map_bytes = 1 << 20 });
	if (rc != NOH_OK)
		return rc;
	for (uint64_t a = 0; a < ACTORS; a++) {
		struct db_loaded loaded = { 0 };
		char address[16];
		int len = address_of(a, address, sizeof address);

		rc = db_load(p->db, address, (size_t)len, UINT64_MAX, &loaded);
		if (rc == NOH_OK)
			see(p, 0, 0, NULL, loaded.image, (const uint8_t *)loaded.image + loaded.len);
		mem_free(loaded.image, loaded.len);
		if (rc < 0)
			return rc;
	}
	db_stamp(p->db, &frame, &epoch);
	return journal_recover(p->disk, DIR_ID, frame, see, p, end);
}

static void close_place(struct place *p)
{
	journal_close(p->journal);
	db_close(p->db);
	disk_end(p->disk);
}

/* Groups of one to four numbers, folded now and then. */
static int write_numbers(struct place *p, int marks, uint64_t count, bool folds)
{
	struct keeper k = { .journal = p->journal, .db = p->db, .wall_ms = wall_ms };
	int rc = NOH_OK;

	clock_real(&k.clock);
	for (uint64_t i = 1; rc >= 0 && i <= count;) {
		for (uint64_t n = 1 + i % 4; n > 0 && i <= count; n--)
			push(p->journal, i++);
		uint64_t due = journal_epoch(p->journal);

		while (rc >= 0 && journal_durable(p->journal) < due)
			rc = journal_step(p->journal, true);
		if (rc >= 0)
			must(mark(marks, i - 1));
		if (rc >= 0 && !folds)
			rc = journal_folded(p->journal, 0);      /* only the next segment */
		else if (rc >= 0)
			rc = i % FOLD_AT < 4 ? keeper_fold_all(&k) : keeper_step(&k);
	}
	return rc;
}

static int write_all(const char *dir, const char *mark_path, uint64_t count, bool no_syncs)
{
	struct place p = { 0 };
	struct journal_end end;
	int marks = open(mark_path, O_WRONLY), rc = open_place(&p, dir, &end);

	if (marks < 0 || rc != NOH_OK)
		return complain(dir);
	printf("%s\n", p.disk->how);
	if (no_syncs)
		forget(p.disk);
	rc = journal_open(&p.journal, &(struct journal_options){ .disk = p.disk, .dir_id = DIR_ID, .rings = 1,
			  .ring_bytes = 64 << 10, .segment_bytes = 256 << 10, .limit_bytes = 8 << 20 }, &end);
	if (rc == NOH_OK)
		rc = write_numbers(&p, marks, count, !no_syncs);
	if (rc < 0)
		return complain("write");
	close_place(&p);
	return 0;
}

/* Numbers are dealt out to the actors in turn, so each one's last says what is missing. */
static int check(const char *dir)
{
	struct place p = { 0 };
	struct journal_end end;
	uint64_t missing = UINT64_MAX, highest = 0;

	if (open_place(&p, dir, &end) != NOH_OK)
		return complain(dir);
	for (uint64_t a = 0; a < ACTORS; a++) {
		uint64_t next = p.last[a] ? p.last[a] + ACTORS : a ? a : ACTORS;

		missing = next < missing ? next : missing;
		highest = p.last[a] > highest ? p.last[a] : highest;
	}
	close_place(&p);
	if (highest >= missing) {
		fprintf(stderr, "work: %llu is there, but %llu is not\n", (unsigned long long)highest,
			(unsigned long long)missing);
		return 1;
	}
	printf("%llu\n", (unsigned long long)highest);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 5 && strcmp(argv[1], "write") == 0)
		return write_all(argv[2], argv[3], strtoull(argv[4], NULL, 10), argc > 5);
	if (argc == 3 && strcmp(argv[1], "check") == 0)
		return check(argv[2]);
	fprintf(stderr, "usage: work write DIR MARK COUNT [forgetful] | work check DIR\n");
	return 2;
}
