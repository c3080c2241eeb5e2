/* net/io.c - what both backends share: being woken, and what counts as an error. */
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

/* A client that goes in the middle of something is no error of ours; nor is what is tried again. */
void io_failed(struct io *io, enum io_op op, int error)
{
	switch (error) {
	case 0:
	case EAGAIN:
	case EINTR:
	case ECANCELED:
	case ECONNABORTED:
	case ECONNRESET:
	case EPIPE:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
		return;
	default:
		count_one(&io->shown.errors[op], 1);
	}
}
