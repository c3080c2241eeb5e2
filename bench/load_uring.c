/* bench/load_uring.c - one system call per pass: it hands over all sends and waits for the next replies.
 *
 * Multishot receives into a ring of buffers, so reading costs no submission. A send that succeeds
 * reports nothing (MSG_WAITALL: success is all of it): otherwise its own completion would end the wait
 * that is meant for replies, and every pass would be two. That the bytes are gone follows from the
 * replies to them.
 */
#include "bench/load_io.h"
#include "tools/cli.h"

#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { ENTRIES = 1024, COMPLETIONS = 16384, LEAST_BUFFERS = 64, MOST_BUFFERS = 4096 };
enum { BUFFER = 8192, LARGE_BUFFER = 32768, BEAT_MS = 20 };
enum { OP_RECEIVE, OP_SEND, OP_BEAT };

struct ring_io {
	struct load_io  io;
	struct io_uring ring;
	struct io_uring_buf_ring *returns;      /* buffers the kernel may fill */
	uint8_t *buffers;
	unsigned count, size, given;
	bool     beating;
	struct __kernel_timespec beat;
};

static uint64_t name(const struct load_conn *c, unsigned op)
{
	return (uint64_t)c->index << 32 | (uint64_t)(c->generation & 0xFFFFFF) << 8 | op;
}

static struct io_uring_sqe *sqe(struct ring_io *u)
{
	struct io_uring_sqe *s = io_uring_get_sqe(&u->ring);

	if (s == NULL) {                         /* full: hand over what there is */
		io_uring_submit(&u->ring);
		s = io_uring_get_sqe(&u->ring);
	}
	return s;
}

static bool receive(struct ring_io *u, struct load_conn *c)
{
	struct io_uring_sqe *s = sqe(u);

	if (s == NULL)
		return false;
	io_uring_prep_recv_multishot(s, c->fd, NULL, 0, 0);
	s->flags |= IOSQE_BUFFER_SELECT;
	s->buf_group = 0;
	io_uring_sqe_set_data64(s, name(c, OP_RECEIVE));
	return true;
}

static bool ring_watch(struct load_io *io, struct load_conn *c)
{
	return receive((struct ring_io *)io, c);
}

static void ring_unwatch(struct load_io *io, struct load_conn *c)
{
	/* What is queued names the socket by its number, which the next one may get. */
	(void)io_uring_submit(&((struct ring_io *)io)->ring);
	shutdown(c->fd, SHUT_RDWR);              /* ends what is under way on it; its reports are of the past */
	c->generation++;
}

static void ring_send(struct load_io *io, struct load_conn *c)
{
	struct ring_io *u = (struct ring_io *)io;
	struct io_uring_sqe *s = sqe(u);

	if (s == NULL) {
		load_fail(io->thread, "the submission queue stays full");
		return;
	}
	io_uring_prep_send(s, c->fd, c->out + c->out_sent, c->out_len - c->out_sent,
			   MSG_NOSIGNAL | MSG_WAITALL);
	s->flags |= IOSQE_CQE_SKIP_SUCCESS;
	io_uring_sqe_set_data64(s, name(c, OP_SEND));
}

static void give_back(struct ring_io *u, unsigned number)
{
	io_uring_buf_ring_add(u->returns, u->buffers + (size_t)number * u->size, u->size,
			      (unsigned short)number, io_uring_buf_ring_mask(u->count), (int)u->given++);
}

static void received(struct ring_io *u, struct load_conn *c, const struct io_uring_cqe *q, bool past)
{
	struct load_thread *t = u->io.thread;
	bool more = (q->flags & IORING_CQE_F_MORE) != 0;

	if (q->res > 0) {
		unsigned number = q->flags >> IORING_CQE_BUFFER_SHIFT;

		if (!past)
			load_received(t, c, u->buffers + (size_t)number * u->size, (size_t)q->res);
		give_back(u, number);
	} else if (q->res != -ENOBUFS) {
		if (!past)
			load_lost(t, c, -q->res);
		return;
	}
	if (!more && !past && !c->down && !receive(u, c))
		load_fail(t, "the submission queue stays full");
}

static void complete(struct ring_io *u, const struct io_uring_cqe *q)
{
	unsigned op = (unsigned)(q->user_data & 0xFF);

	if (op == OP_BEAT) {
		u->beating = false;
		return;
	}
	struct load_conn *c = &u->io.thread->conns[q->user_data >> 32];
	bool past = c->down || (q->user_data >> 8 & 0xFFFFFF) != (c->generation & 0xFFFFFF);

	if (op == OP_RECEIVE)
		received(u, c, q, past);
	else if (q->res < 0 && !past)
		load_lost(u->io.thread, c, -q->res);
}

/* When nothing is due at a certain time, a slow beat ends waits in which no reply comes; arming it anew
 * only after it fired is cheaper than giving every wait a time-out. */
static int enter(struct ring_io *u, uint64_t until)
{
	struct load_thread *t = u->io.thread;
	uint64_t now = t->interval > 0 ? cli_now_ns() : 0;

	if (t->interval > 0 && until <= now)
		return io_uring_submit_and_get_events(&u->ring);
	if (t->interval > 0) {
		struct __kernel_timespec wait = { .tv_sec = (long long)((until - now) / 1000000000u),
						  .tv_nsec = (long long)((until - now) % 1000000000u) };
		struct io_uring_cqe *first;

		return io_uring_submit_and_wait_timeout(&u->ring, &first, 1, &wait, NULL);
	}
	if (!u->beating) {
		struct io_uring_sqe *s = sqe(u);

		if (s != NULL) {
			io_uring_prep_timeout(s, &u->beat, 0, 0);
			io_uring_sqe_set_data64(s, OP_BEAT);
			u->beating = true;
		}
	}
	return io_uring_submit_and_wait(&u->ring, 1);
}

static bool ring_wait(struct load_io *io, uint64_t until)
{
	struct ring_io *u = (struct ring_io *)io;
	struct io_uring_cqe *q;
	unsigned head, seen = 0;
	int rc = enter(u, until);

	if (rc < 0 && rc != -ETIME && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY) {
		load_fail(io->thread, "io_uring: %s", strerror(-rc));
		return false;
	}
	load_woke(io->thread);
	io_uring_for_each_cqe(&u->ring, head, q) {
		complete(u, q);
		seen++;
	}
	io_uring_cq_advance(&u->ring, seen);
	if (u->given > 0) {
		io_uring_buf_ring_advance(u->returns, (int)u->given);
		u->given = 0;
	}
	return true;
}

static void ring_close(struct load_io *io)
{
	struct ring_io *u = (struct ring_io *)io;

	if (u->ring.ring_fd > 0)
		io_uring_queue_exit(&u->ring);
	if (u->returns != NULL)
		munmap(u->returns, u->count * sizeof(struct io_uring_buf));
	if (u->buffers != NULL)
		munmap(u->buffers, (size_t)u->count * u->size);
	free(u);
}

static void *pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED ? p : NULL;
}

static int open_ring(struct ring_io *u)
{
	struct io_uring_params p = { .flags = IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER |
					      IORING_SETUP_DEFER_TASKRUN, .cq_entries = COMPLETIONS };
	struct io_uring_buf_reg reg = { .ring_entries = u->count };
	int rc = io_uring_queue_init_params(ENTRIES, &u->ring, &p);

	if (rc < 0) {
		u->ring.ring_fd = -1;
		return rc;
	}
	io_uring_register_ring_fd(&u->ring);     /* a little cheaper; without it works as well */
	u->returns = pages(u->count * sizeof(struct io_uring_buf));
	u->buffers = pages((size_t)u->count * u->size);
	if (u->returns == NULL || u->buffers == NULL)
		return -ENOMEM;
	reg.ring_addr = (uintptr_t)u->returns;
	rc = io_uring_register_buf_ring(&u->ring, &reg, 0);
	if (rc < 0)
		return rc;
	io_uring_buf_ring_init(u->returns);
	for (unsigned i = 0; i < u->count; i++)
		give_back(u, i);
	io_uring_buf_ring_advance(u->returns, (int)u->given);
	u->given = 0;
	return 0;
}

struct load_io *load_uring_open(struct load_thread *t, char *why, size_t room)
{
	static const struct load_io_ops ops = { ring_watch, ring_unwatch, ring_send, ring_wait, ring_close };
	struct ring_io *u = calloc(1, sizeof *u);

	if (u == NULL)
		return NULL;
	u->io = (struct load_io){ &ops, t };
	u->beat.tv_nsec = BEAT_MS * 1000000;
	u->size = t->listeners > 0 ? LARGE_BUFFER : BUFFER;
	u->count = LEAST_BUFFERS;
	while (u->count < 2 * t->conn_count && u->count < MOST_BUFFERS)
		u->count *= 2;
	int rc = open_ring(u);
	if (rc == 0)
		return &u->io;
	snprintf(why, room, "io_uring cannot be used here (%s); try --io epoll", strerror(-rc));
	ring_close(&u->io);
	return NULL;
}
