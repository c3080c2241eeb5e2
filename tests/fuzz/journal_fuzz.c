/* tests/fuzz/journal_fuzz.c - any bytes as the frames of a segment: recovery ends, with records that can
 * be walked or with a refusal, and says the same twice.
 *
 * The input is a row of frames: two bytes of flags and length, then the records' bytes. Where the flags
 * say so, checksums and numbers are made right, so that what lies behind them is reached. */
#include "core/must.h"
#include "noh.h"
#include "persist/frame.h"
#include "persist/journal.h"
#include "persist/segment.h"
#include "tests/persist/mem_disk.h"

#define DIR_ID 42
#define BYTES (1u << 15)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct seen { uint64_t records, frame, sum; };

static int see(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
	       const uint8_t *parts, const uint8_t *parts_end)
{
	struct seen *s = arg;
	struct part p;

	(void)epoch;
	must(frame >= s->frame && frame > 0);
	s->frame = frame;
	s->records++;
	for (unsigned i = 0; i < head->address_len; i++)
		s->sum = s->sum * 31 + (uint8_t)record_address(head)[i];
	if (parts_valid(parts, parts_end))
		while (part_next(&parts, parts_end, &p))
			s->sum = s->sum * 31 + (p.len ? ((const uint8_t *)p.data)[p.len - 1] : 0u);
	return NOH_OK;
}

/* A head that is right, and frames as the input has them. */
static void fill(struct disk_file *f, uint64_t number, const uint8_t **data, const uint8_t *end)
{
	struct segment_head head = { .magic = SEGMENT_MAGIC, .format = FRAME_FORMAT, .dir_id = DIR_ID,
				     .number = number, .epoch = 1, .first = number == 1, .bytes = BYTES };
	static uint64_t next, sum;
	uint64_t off = DISK_BLOCK;

	head.sum = segment_sum(&head);
	memcpy(f->bytes, &head, sizeof head);
	if (number == 1)
		next = 1, sum = head.sum;
	while (end - *data >= 2 && off + DISK_BLOCK <= BYTES) {
		uint8_t flags = (*data)[0];
		size_t len = (size_t)(*data)[1] * 8;

		*data += 2;
		if (len > (size_t)(end - *data))
			len = (size_t)(end - *data);
		struct frame_head h = {
			.magic = FRAME_MAGIC, .format = FRAME_FORMAT, .flags = flags & 3,
			.dir_id = DIR_ID, .segment = number, .segment_epoch = 1,
			.number = flags & 4 ? next + 1 : next, .epoch = next + 1,
			.durable = flags & 8 ? 0 : next - 1, .bytes = (uint32_t)len, .before = sum,
		};
		if (off + frame_size(len) > BYTES)
			break;
		memcpy(f->bytes + off, &h, sizeof h);
		if (len)
			memcpy(f->bytes + off + sizeof h, *data, len);
		struct frame_head *at = (struct frame_head *)(void *)(f->bytes + off);

		at->sum = frame_sum(at) + (flags & 16 ? 1 : 0);
		sum = at->sum;
		next = h.number + 1;
		*data += len;
		off += frame_size(len);
		if (flags & 32)
			break;                              /* the rest goes to the next segment */
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct mem_disk *d = mem_disk_open();
	const uint8_t *end = data + len;
	struct journal_end first, second;
	struct seen a = { 0 }, b = { 0 };

	for (uint64_t number = 1; number <= 2; number++) {
		struct disk_file *f;

		must(disk_open(&d->disk, segment_name(number, "seg").text, DISK_WRITE | DISK_CREATE,
			       &f) == NOH_OK);
		must(disk_fill(&d->disk, f, BYTES) == NOH_OK);
		fill(f, number, &data, end);
		disk_close(&d->disk, f);
	}
	int rc = journal_recover(&d->disk, DIR_ID, 0, see, &a, &first);

	must(rc == NOH_OK || rc == NOH_ECORRUPT);
	must(journal_recover(&d->disk, DIR_ID, 0, see, &b, &second) == rc);
	must(memcmp(&a, &b, sizeof a) == 0);
	must(rc != NOH_OK || (memcmp(&first, &second, sizeof first) == 0 && first.frame >= a.frame));
	disk_end(&d->disk);
	return 0;
}
