/* box/crash_report.c - what a box was doing, told from inside a signal handler.
 *
 * Nothing here but write(2), and backtrace, which takes no lock once its library is loaded. A note may
 * change while it is read (other workers run on): what is printed is bounded, whatever it says.
 */
#include "box/box.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <string.h>
#include <unistd.h>

#define STACK_MOST 64

static void put(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

static void put_text(int fd, const char *text)
{
	put(fd, text, strlen(text));
}

static void put_number(int fd, uint64_t n)
{
	char digits[24];
	size_t at = sizeof digits;

	do
		digits[--at] = (char)('0' + n % 10);
	while ((n /= 10) != 0);
	put(fd, digits + at, sizeof digits - at);
}

static void put_note(int fd, uint32_t worker, const struct note *n)
{
	size_t len = n->address_len < sizeof n->address ? n->address_len : 0;

	put_text(fd, "worker ");
	put_number(fd, worker);
	put_text(fd, ": actor ");
	put(fd, n->address, len);
	if (n->kind == UINT32_MAX) {
		put_text(fd, ", a hook");
	} else {
		put_text(fd, ", message kind ");
		put_number(fd, n->kind);
	}
	put_text(fd, ", type version ");
	put_number(fd, n->version);
	put_text(fd, "\n");
}

/* LMDB trusts its pages: who ends in its code has most likely met one that is damaged. */
static void put_image(int fd, const noh_box *box, void *const *stack, int depth)
{
	Dl_info in;

	for (int i = 0; i < depth; i++) {
		if (!dladdr(stack[i], &in) || !in.dli_fname || !strstr(in.dli_fname, "liblmdb"))
			continue;
		put_text(fd, "this happened while the image was read or written: ");
		put_text(fd, box->disk.dir.path);
		put_text(fd, "/image/data.mdb may be damaged; noh verify says whether it is, then restore a backup\n");
		return;
	}
}

void noh_crash_report(noh_box *box, int fd)
{
	const struct note *notes = box ? box->sched.notes : NULL;
	void *stack[STACK_MOST];
	int depth = backtrace(stack, STACK_MOST);
	uint32_t busy = 0;

	put_text(fd, "noh " NOH_VERSION " crash report\n");
	for (uint32_t i = 0; notes && i < box->sched.worker_count; i++)
		if (load_relaxed(&notes[i].busy) == 1) {
			put_note(fd, i, &notes[i]);
			busy++;
		}
	if (notes && !busy)
		put_text(fd, "no worker was running an actor\n");
	if (box && box->disk.locked)
		put_image(fd, box, stack, depth);
	put_text(fd, "stack of this thread:\n");
	backtrace_symbols_fd(stack, depth, fd);
}
