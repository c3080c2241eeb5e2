/* net/io.c - what both backends share: being woken. */
#include "net/io.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

int io_wake_open(struct io *io)
{
	/* Blocking: io_uring gives up on a descriptor that is not, instead of waiting. */
	io->wake_fd = eventfd(0, EFD_CLOEXEC);
	return io->wake_fd >= 0 ? 0 : -errno;
}

void io_wake(struct io *io)
{
	uint64_t one = 1;

	while (write(io->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

void io_drain_wake(struct io *io)
{
	uint64_t count;

	while (read(io->wake_fd, &count, sizeof count) < 0 && errno == EINTR)
		;
}
