/* net/io_uring.c - sockets through io_uring.
 *
 * One receive per connection that goes on by itself (multishot), into buffers that the kernel picks from
 * a ring of ours and that go back as soon as they are read; accept likewise; one send per connection and
 * pass. Completions come when this thread enters the kernel (DEFER_TASKRUN), which is once a pass.
 *
 * Whatever is under way names its connection by number and generation, never by pointer: a completion
 * that comes after the connection's end finds nobody.
 */
#include "net/io.h"

#include "core/mem.h"

#include <errno.h>
#include <liburing.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define ENTRIES 1024
#define COMPLETIONS 8192
#define BUFFERS 512                /* a power of two */
#define BUFFERS_FIRST 32           /* of them, in turn until that is too few: so that they stay in the cache */
#define BUFFER_BYTES 8192
#define BUFFER_STRIDE (BUFFER_BYTES + 3 * 64)    /* else they all begin in the same set of the cache */
#define GROUP 0
#define LISTENERS 4
#define ROUND 512                  /* completions looked at in one pass: at most BUFFERS */

enum op { OP_NONE, OP_ACCEPT, OP_RECV, OP_SEND, OP_WAKE, OP_LEND };

struct ring {
	struct io io;
	struct io_uring uring;
	struct io_uring_buf_ring *buffers;
	char    *bytes;
	uint64_t woken;
	struct { int fd; uint32_t kind; bool armed; } listeners[LISTENERS];
	uint32_t listener_count;
	bool     wake_armed, accepts, starved;
	bool     too_few;              /* buffers in turn, in this pass                       */
	uint16_t read[BUFFERS];        /* buffers that were handed up since the last settling */
	uint32_t read_count;
	uint32_t in_turn;              /* buffers that the kernel may fill, or we read        */
};

static uint64_t data_of(enum op op, uint32_t number, uint16_t gen)
{
	return (uint64_t)op << 56 | (uint64_t)gen << 32 | number;
}

static struct ring *ring_of(struct io *io)
{
	return (struct ring *)(void *)io;
}

/* The queue is submitted when it is full: there is always an entry. */
static struct io_uring_sqe *entry(struct ring *r)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&r->uring);

	while (!sqe) {
		count_one(&r->io.shown.sq_full, 1);
		(void)io_uring_submit(&r->uring);
		sqe = io_uring_get_sqe(&r->uring);
	}
	return sqe;
}

/* ── what is asked for ── */

static void arm_wake(struct ring *r)
{
	struct io_uring_sqe *sqe = entry(r);

	io_uring_prep_read(sqe, r->io.wake_fd, &r->woken, sizeof r->woken, 0);
	io_uring_sqe_set_data64(sqe, data_of(OP_WAKE, 0, 0));
	r->wake_armed = true;
}

static void arm_accept(struct ring *r, uint32_t i)
{
	struct io_uring_sqe *sqe = entry(r);

	io_uring_prep_multishot_accept(sqe, r->listeners[i].fd, NULL, NULL, SOCK_CLOEXEC);
	io_uring_sqe_set_data64(sqe, data_of(OP_ACCEPT, i, 0));
	r->listeners[i].armed = true;
}

static void arm_listeners(struct ring *r)
{
	for (uint32_t i = 0; r->accepts && !r->starved && i < r->listener_count; i++)
		if (!r->listeners[i].armed)
			arm_accept(r, i);
}

static void arm_receive(struct ring *r, struct io_socket *s)
{
	struct io_uring_sqe *sqe = entry(r);

	io_uring_prep_recv_multishot(sqe, s->fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = GROUP;
	io_uring_sqe_set_data64(sqe, data_of(OP_RECV, s->number, s->gen));
	s->receiving = true;
}

static bool ring_listen(struct io *io, int fd, uint32_t kind)
{
	struct ring *r = ring_of(io);

	if (r->listener_count == LISTENERS)
		return false;
	r->listeners[r->listener_count].fd = fd;
	r->listeners[r->listener_count].kind = kind;
	r->accepts = true;
	arm_accept(r, r->listener_count++);
	return true;
}

static void cancel(struct ring *r, uint64_t data)
{
	struct io_uring_sqe *sqe = entry(r);

	io_uring_prep_cancel64(sqe, data, 0);
	io_uring_sqe_set_data64(sqe, data_of(OP_NONE, 0, 0));
}

static void ring_unlisten(struct io *io)
{
	struct ring *r = ring_of(io);

	r->accepts = false;
	for (uint32_t i = 0; i < r->listener_count; i++)
		if (r->listeners[i].armed)
			cancel(r, data_of(OP_ACCEPT, i, 0));
}

/* At once: the worker may sleep before it polls again, and nobody would wake it. */
static void ring_relisten(struct io *io)
{
	struct ring *r = ring_of(io);

	r->starved = false;
	arm_listeners(r);
}

static bool ring_begin(struct io *io, struct io_socket *s)
{
	arm_receive(ring_of(io), s);
	return true;
}

static void ring_send(struct io *io, struct io_socket *s, const void *bytes, size_t len)
{
	struct io_uring_sqe *sqe = entry(ring_of(io));

	/* WAITALL: the kernel goes on by itself until all is sent. */
	io_uring_prep_send(sqe, s->fd, bytes, len, MSG_NOSIGNAL | MSG_WAITALL);
	io_uring_sqe_set_data64(sqe, data_of(OP_SEND, s->number, s->gen));
	s->rest_len = len;
	s->sending = true;
}

/* Once: whoever comes by later finds that it was told. */
static void tell_lent(struct ring *r, struct io_uring_cqe *cqe)
{
	uint64_t data = io_uring_cqe_get_data64(cqe);

	if (data >> 56 != OP_LEND)
		return;
	cqe->user_data = data_of(OP_NONE, 0, 0);
	r->io.up->lent(r->io.user, (uint32_t)data, cqe->res);
}

static void ring_lend(struct io *io, int fd, const void *bytes, size_t len, uint32_t index)
{
	struct io_uring_sqe *sqe = entry(ring_of(io));

	io_uring_prep_send(sqe, fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	io_uring_sqe_set_data64(sqe, data_of(OP_LEND, index, 0));
}

/* They end while they are submitted. Told in their turn they would wait for what is told before them: commands, and the
 * turns these run. So they are looked for, and what is left of them tells nobody anything. */
static void ring_lend_now(struct io *io)
{
	struct ring *r = ring_of(io);
	struct io_uring_cqe *cqe;
	unsigned head;

	(void)io_uring_submit(&r->uring);
	io_uring_for_each_cqe(&r->uring, head, cqe)
		tell_lent(r, cqe);
}

static void ring_pause(struct io *io, struct io_socket *s)
{
	s->paused = true;
	if (s->receiving)
		cancel(ring_of(io), data_of(OP_RECV, s->number, s->gen));
}

static void ring_resume(struct io *io, struct io_socket *s)
{
	s->paused = false;
	if (!s->receiving && !s->closing)
		arm_receive(ring_of(io), s);
}

static void release_if_quiet(struct ring *r, struct io_socket *s)
{
	if (!s->closing || s->receiving || s->sending || s->released)
		return;
	s->released = true;
	r->io.up->released(r->io.user, s);
}

/* What arrives before the receive has ended is handed up as ever. */
static void ring_leave(struct io *io, struct io_socket *s)
{
	s->leaving = s->receiving;
	if (s->receiving)
		cancel(ring_of(io), data_of(OP_RECV, s->number, s->gen));
}

static void ring_end(struct io *io, struct io_socket *s)
{
	struct ring *r = ring_of(io);

	s->closing = true;
	(void)shutdown(s->fd, SHUT_RDWR);
	if (s->receiving)
		cancel(r, data_of(OP_RECV, s->number, s->gen));
	release_if_quiet(r, s);
}

/* ── what has happened ── */

static void give_back(struct ring *r, const uint16_t *ids, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		io_uring_buf_ring_add(r->buffers, r->bytes + (size_t)ids[i] * BUFFER_STRIDE, BUFFER_BYTES,
				      ids[i], BUFFERS - 1, (int)i);
	io_uring_buf_ring_advance(r->buffers, (int)n);
}

static void more_buffers(struct ring *r, uint32_t in_turn)
{
	for (; r->in_turn < in_turn && r->in_turn < BUFFERS; r->in_turn++)
		give_back(r, &(uint16_t){ (uint16_t)r->in_turn }, 1);
}

static void settle(struct ring *r)
{
	if (!r->read_count)
		return;
	r->io.up->settle(r->io.user);
	give_back(r, r->read, r->read_count);
	r->read_count = 0;
}

static bool is_starved(int res)
{
	return res == -EMFILE || res == -ENFILE || res == -ENOMEM || res == -ENOBUFS;
}

static void on_accept(struct ring *r, const struct io_uring_cqe *cqe, uint32_t i)
{
	if (!(cqe->flags & IORING_CQE_F_MORE)) {
		r->listeners[i].armed = false;
		if (cqe->res >= 0 && r->accepts)
			arm_accept(r, i);
	}
	if (cqe->res < 0)
		io_failed(&r->io, IO_ACCEPT, -cqe->res);
	if (is_starved(cqe->res)) {              /* armed again, it would fail at once */
		r->starved = true;
		r->io.up->starved(r->io.user);
	}
	if (cqe->res >= 0)
		r->io.up->accepted(r->io.user, cqe->res, r->listeners[i].kind);
}

static void on_receive(struct ring *r, const struct io_uring_cqe *cqe, struct io_socket *s)
{
	int res = cqe->res;

	if (s && !(cqe->flags & IORING_CQE_F_MORE))
		s->receiving = false;
	if (cqe->flags & IORING_CQE_F_BUFFER) {
		uint16_t id = (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);

		if (s && res > 0 && !s->closing)
			r->io.up->received(r->io.user, s, r->bytes + (size_t)id * BUFFER_STRIDE, (size_t)res);
		r->read[r->read_count++] = id;
	}
	if (!s)
		return;
	if (res == -ENOBUFS)                     /* that one is ours: all buffers are in use */
		r->too_few = true;
	else if (res < 0)
		io_failed(&r->io, IO_RECEIVE, -res);
	if (!s->closing && (res == 0 || (res < 0 && res != -ECANCELED && res != -ENOBUFS)))
		r->io.up->ended(r->io.user, s, -res);
	if (s->leaving && !s->receiving) {
		s->leaving = false;
		if (!s->closing && r->io.up->left(r->io.user, s))
			return;
	}
	if (!s->receiving && !s->closing && !s->paused && (res > 0 || res == -ENOBUFS || res == -ECANCELED))
		arm_receive(r, s);
	release_if_quiet(r, s);
}

static void on_send(struct ring *r, const struct io_uring_cqe *cqe, struct io_socket *s)
{
	if (!s)
		return;
	s->sending = false;
	if (cqe->res < 0)
		io_failed(&r->io, IO_SEND, -cqe->res);
	r->io.up->sent(r->io.user, s, cqe->res >= 0 && (size_t)cqe->res == s->rest_len);
	release_if_quiet(r, s);
}

static void on_completion(struct ring *r, struct io_uring_cqe *cqe)
{
	uint64_t data = io_uring_cqe_get_data64(cqe);
	uint32_t number = (uint32_t)data;
	uint16_t gen = (uint16_t)(data >> 32);

	switch ((enum op)(data >> 56)) {
	case OP_NONE:
		break;
	case OP_WAKE:
		r->wake_armed = false;
		break;
	case OP_ACCEPT:
		on_accept(r, cqe, number);
		break;
	case OP_RECV:
		on_receive(r, cqe, r->io.up->find(r->io.user, number, gen));
		break;
	case OP_SEND:
		on_send(r, cqe, r->io.up->find(r->io.user, number, gen));
		break;
	case OP_LEND:                            /* the queue was too full to submit it sooner */
		tell_lent(r, cqe);
		break;
	}
}

static uint32_t reap(struct ring *r)
{
	struct io_uring_cqe *cqe;
	unsigned head;
	uint32_t n = 0;

	io_uring_for_each_cqe(&r->uring, head, cqe) {
		on_completion(r, cqe);
		if (++n == ROUND)
			break;
	}
	io_uring_cq_advance(&r->uring, n);
	settle(r);
	if (r->too_few)
		more_buffers(r, 2 * r->in_turn);
	r->too_few = false;
	return n;
}

static uint32_t ring_poll(struct io *io)
{
	struct ring *r = ring_of(io);

	if (!r->wake_armed)
		arm_wake(r);
	arm_listeners(r);
	if (io_uring_sq_ready(&r->uring) ||
	    (*r->uring.sq.kflags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)))
		(void)io_uring_submit_and_get_events(&r->uring);
	return reap(r);
}

static bool ring_ready(struct io *io)
{
	struct ring *r = ring_of(io);

	return io_uring_cq_ready(&r->uring) || io_uring_sq_ready(&r->uring) ||
	       (*(volatile unsigned *)r->uring.sq.kflags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW));
}

static void ring_wait(struct io *io, uint64_t timeout_ns)
{
	struct ring *r = ring_of(io);
	struct __kernel_timespec ts = { .tv_sec = (long long)(timeout_ns / 1000000000u),
					.tv_nsec = (long long)(timeout_ns % 1000000000u) };
	struct io_uring_cqe *cqe;

	if (!r->wake_armed)
		arm_wake(r);
	(void)io_uring_submit_and_wait_timeout(&r->uring, &cqe, 1, timeout_ns == UINT64_MAX ? NULL : &ts, NULL);
}

/* ── open, close ── */

static void ring_close(struct io *io)
{
	struct ring *r = ring_of(io);

	io_uring_queue_exit(&r->uring);
	if (r->buffers)
		munmap(r->buffers, BUFFERS * sizeof(struct io_uring_buf));
	if (r->bytes)
		munmap(r->bytes, (size_t)BUFFERS * BUFFER_STRIDE);
	if (io->wake_fd >= 0)
		(void)close(io->wake_fd);
	mem_free(r, sizeof *r);
}

static const struct io_ops ring_ops = {
	"io_uring", ring_close, ring_listen, ring_unlisten, ring_relisten, ring_begin, ring_send, ring_lend, ring_lend_now,
	ring_pause, ring_resume, ring_leave, ring_end, ring_poll, ring_ready, ring_wait,
};

static int open_ring(struct io_uring *u)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
					      IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL |
					      IORING_SETUP_CQSIZE,
				     .cq_entries = COMPLETIONS };

	return io_uring_queue_init_params(ENTRIES, u, &p);
}

static void *map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static int open_buffers(struct ring *r)
{
	struct io_uring_buf_reg reg = { .ring_entries = BUFFERS, .bgid = GROUP };
	int rc;

	r->buffers = map(BUFFERS * sizeof(struct io_uring_buf));
	r->bytes = map((size_t)BUFFERS * BUFFER_STRIDE);
	if (!r->buffers || !r->bytes)
		return -ENOMEM;
	reg.ring_addr = (uint64_t)(uintptr_t)r->buffers;
	rc = io_uring_register_buf_ring(&r->uring, &reg, 0);
	if (rc != 0)
		return rc;
	io_uring_buf_ring_init(r->buffers);
	more_buffers(r, BUFFERS_FIRST);
	return 0;
}

struct io *io_uring_new(const struct io_handlers *up, void *user)
{
	struct ring *r = mem_zalloc(sizeof *r);
	int rc;

	if (!r) {
		errno = ENOMEM;
		return NULL;
	}
	r->io.ops = &ring_ops;
	r->io.up = up;
	r->io.user = user;
	r->io.wake_fd = -1;
	rc = open_ring(&r->uring);
	if (rc != 0) {
		mem_free(r, sizeof *r);
		errno = -rc;
		return NULL;
	}
	(void)io_uring_register_ring_fd(&r->uring);      /* spares the kernel a look-up; not needed */
	rc = io_wake_open(&r->io);
	if (rc == 0)
		rc = open_buffers(r);
	if (rc != 0) {
		ring_close(&r->io);
		errno = -rc;
		return NULL;
	}
	return &r->io;
}

const char *io_uring_missing(void)
{
	struct io_uring u;
	struct io_uring_probe *probe;
	const char *why = NULL;
	int rc = open_ring(&u);

	if (rc == -EPERM || rc == -ENOSYS || rc == -EACCES)
		return "this system does not allow io_uring (a container's seccomp profile, or try sysctl -w "
		       "kernel.io_uring_disabled=0)";
	if (rc == -ENOMEM)
		return "io_uring may not lock enough memory (raise ulimit -l)";
	if (rc != 0)
		return "this kernel's io_uring is older than that of 6.1";
	probe = io_uring_get_probe_ring(&u);
	if (!probe || !io_uring_opcode_supported(probe, IORING_OP_SEND_ZC))      /* came with 6.0 */
		why = "this kernel's io_uring is older than that of 6.1";
	io_uring_free_probe(probe);
	io_uring_queue_exit(&u);
	return why;
}
