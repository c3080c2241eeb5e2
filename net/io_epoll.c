/* net/io_epoll.c - sockets through epoll and plain calls, where io_uring is not allowed.
 *
 * Level-triggered. A round receives at most once from each connection that has something, so that nobody
 * who sends much keeps others waiting. What send() does not take at once waits for EPOLLOUT.
 */
#include "net/io.h"

#include "core/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 256
#define BUFFER_BYTES 65536
#define LISTENERS 4
#define NUMBER_WAKE UINT32_MAX
#define NUMBER_LISTENER (UINT32_MAX - LISTENERS)     /* and those after it */

struct poller {
	struct io io;
	int      fd;
	struct { int fd; uint32_t kind; bool starved; } listeners[LISTENERS];
	uint32_t listener_count;
	int      ready;                /* events that wait did not hand on yet */
	struct epoll_event events[EVENTS];
	struct io_socket **done;       /* sends that were finished, ends that were asked for: told at the next poll */
	uint32_t done_count, done_room, sockets;
	char     bytes[BUFFER_BYTES];
};

static struct poller *poller_of(struct io *io)
{
	return (struct poller *)(void *)io;
}

static uint64_t data_of(uint32_t number, uint16_t gen)
{
	return (uint64_t)gen << 32 | number;
}

static void watch(struct poller *p, struct io_socket *s, int op)
{
	struct epoll_event e = { .events = (s->receiving && !s->paused ? EPOLLIN | EPOLLRDHUP : 0) |
					   (s->rest_len ? (uint32_t)EPOLLOUT : 0),
				 .data.u64 = data_of(s->number, s->gen) };

	(void)epoll_ctl(p->fd, op, s->fd, &e);
}

static bool watch_listener(struct poller *p, int fd, uint32_t i)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLEXCLUSIVE, .data.u64 = NUMBER_LISTENER + i };

	return epoll_ctl(p->fd, EPOLL_CTL_ADD, fd, &e) == 0;
}

static bool poller_listen(struct io *io, int fd, uint32_t kind)
{
	struct poller *p = poller_of(io);

	if (p->listener_count == LISTENERS || fcntl(fd, F_SETFL, O_NONBLOCK) != 0 ||
	    !watch_listener(p, fd, p->listener_count))
		return false;
	p->listeners[p->listener_count].fd = fd;
	p->listeners[p->listener_count++].kind = kind;
	return true;
}

static void poller_unlisten(struct io *io)
{
	struct poller *p = poller_of(io);

	for (uint32_t i = 0; i < p->listener_count; i++)
		(void)epoll_ctl(p->fd, EPOLL_CTL_DEL, p->listeners[i].fd, NULL);
	p->listener_count = 0;
}

static void poller_relisten(struct io *io)
{
	struct poller *p = poller_of(io);

	for (uint32_t i = 0; i < p->listener_count; i++)
		if (p->listeners[i].starved)
			p->listeners[i].starved = !watch_listener(p, p->listeners[i].fd, i);
}

/* Each socket is in the list of those to be told at most once, and once more while it is told: there is room for
 * that. */
static bool poller_begin(struct io *io, struct io_socket *s)
{
	struct poller *p = poller_of(io);

	if (p->sockets == p->done_room) {
		uint32_t room = p->done_room ? p->done_room * 2 : 256;
		struct io_socket **list = mem_alloc(2 * (size_t)room * sizeof *list);

		if (!list)
			return false;
		for (uint32_t i = 0; i < p->done_count; i++)
			list[i] = p->done[i];
		mem_free(p->done, 2 * (size_t)p->done_room * sizeof *list);
		p->done = list;
		p->done_room = room;
	}
	p->sockets++;
	s->receiving = true;
	watch(p, s, EPOLL_CTL_ADD);
	return true;
}

/* To be told at the next poll, never from within the call that caused it. */
static void tell_later(struct poller *p, struct io_socket *s)
{
	if (s->queued)
		return;
	s->queued = true;
	p->done[p->done_count++] = s;
}

/* True: all of it is gone, or never will be. */
static bool push_out(struct poller *p, struct io_socket *s)
{
	while (s->rest_len) {
		ssize_t n = send(s->fd, s->rest, s->rest_len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return false;
		if (n < 0) {
			io_failed(&p->io, IO_SEND, errno);
			n = (ssize_t)s->rest_len;        /* nobody will take it; the end is told by itself */
		}
		s->rest += n;
		s->rest_len -= (size_t)n;
	}
	return true;
}

static void poller_send(struct io *io, struct io_socket *s, const void *bytes, size_t len)
{
	struct poller *p = poller_of(io);

	s->rest = bytes;
	s->rest_len = len;
	s->sending = true;
	if (push_out(p, s))
		tell_later(p, s);
	else
		watch(p, s, EPOLL_CTL_MOD);
}

static void poller_lend(struct io *io, int fd, const void *bytes, size_t len, uint32_t index)
{
	ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	io->up->lent(io->user, index, n < 0 ? -errno : (int)n);
}

static void poller_lend_now(struct io *io)
{
	(void)io;                                /* it was */
}

static void poller_pause(struct io *io, struct io_socket *s)
{
	s->paused = true;
	watch(poller_of(io), s, EPOLL_CTL_MOD);
}

static void poller_resume(struct io *io, struct io_socket *s)
{
	s->paused = false;
	watch(poller_of(io), s, EPOLL_CTL_MOD);
}

/* What epoll_wait has told of it already finds nobody. */
static void poller_leave(struct io *io, struct io_socket *s)
{
	struct poller *p = poller_of(io);

	(void)epoll_ctl(p->fd, EPOLL_CTL_DEL, s->fd, NULL);
	s->receiving = false;
	p->sockets--;
	if (io->up->left(io->user, s))
		return;
	p->sockets++;
	s->receiving = true;
	watch(p, s, EPOLL_CTL_ADD);
}

static void poller_end(struct io *io, struct io_socket *s)
{
	struct poller *p = poller_of(io);

	s->closing = true;
	s->receiving = false;
	s->rest_len = 0;
	(void)epoll_ctl(p->fd, EPOLL_CTL_DEL, s->fd, NULL);
	(void)shutdown(s->fd, SHUT_RDWR);
	tell_later(p, s);
}

static void accept_some(struct poller *p, uint32_t i)
{
	for (int n = 0; n < 64; n++) {
		int fd = accept4(p->listeners[i].fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			io_failed(&p->io, IO_ACCEPT, errno);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
			(void)epoll_ctl(p->fd, EPOLL_CTL_DEL, p->listeners[i].fd, NULL);
			p->listeners[i].starved = true;
			p->io.up->starved(p->io.user);
		}
		if (fd < 0)
			return;
		p->io.up->accepted(p->io.user, fd, p->listeners[i].kind);
	}
}

static void receive(struct poller *p, struct io_socket *s)
{
	ssize_t n = recv(s->fd, p->bytes, sizeof p->bytes, MSG_DONTWAIT);

	if (n > 0) {
		p->io.up->received(p->io.user, s, p->bytes, (size_t)n);
		p->io.up->settle(p->io.user);
	} else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
		int error = n == 0 ? 0 : errno;

		io_failed(&p->io, IO_RECEIVE, error);
		s->receiving = false;
		watch(p, s, EPOLL_CTL_MOD);
		p->io.up->ended(p->io.user, s, error);
	}
}

static void on_event(struct poller *p, const struct epoll_event *e)
{
	uint32_t number = (uint32_t)e->data.u64;
	struct io_socket *s;

	if (number == NUMBER_WAKE) {
		io_drain_wake(&p->io);
		return;
	}
	if (number >= NUMBER_LISTENER) {
		if (number - NUMBER_LISTENER < p->listener_count)
			accept_some(p, number - NUMBER_LISTENER);
		return;
	}
	s = p->io.up->find(p->io.user, number, (uint16_t)(e->data.u64 >> 32));
	if (s && (e->events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) && s->sending && s->rest_len && push_out(p, s)) {
		watch(p, s, EPOLL_CTL_MOD);
		tell_later(p, s);
	}
	if (s && s->receiving && !s->paused && !s->closing &&
	    (e->events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)))
		receive(p, s);
	else if (s && !s->closing && (e->events & (EPOLLERR | EPOLLHUP)))       /* it would be told again and again */
		p->io.up->ended(p->io.user, s, ECONNRESET);
}

static uint32_t tell(struct poller *p)
{
	uint32_t n = p->done_count;

	/* Those that come up meanwhile stand behind the n, and wait for the next round. */
	for (uint32_t i = 0; i < n; i++) {
		struct io_socket *s = p->done[i];

		s->queued = false;
		if (s->sending && !s->rest_len) {
			s->sending = false;
			p->io.up->sent(p->io.user, s, !s->closing);
		}
		if (s->closing && !s->queued) {
			p->sockets--;
			p->io.up->released(p->io.user, s);
		}
	}
	p->done_count -= n;
	for (uint32_t i = 0; i < p->done_count; i++)
		p->done[i] = p->done[n + i];
	return n;
}

static int wait_ms(struct poller *p, int ms)
{
	int n = epoll_wait(p->fd, p->events, EVENTS, ms);

	return n < 0 ? 0 : n;
}

static uint32_t poller_poll(struct io *io)
{
	struct poller *p = poller_of(io);
	uint32_t told = tell(p);
	int n = p->ready ? p->ready : wait_ms(p, 0);

	p->ready = 0;
	for (int i = 0; i < n; i++)
		on_event(p, &p->events[i]);
	return told + (uint32_t)n;
}

static bool poller_ready(struct io *io)
{
	struct poller *p = poller_of(io);

	if (!p->ready && !p->done_count)
		p->ready = wait_ms(p, 0);
	return p->ready || p->done_count;
}

static void poller_wait(struct io *io, uint64_t timeout_ns)
{
	struct poller *p = poller_of(io);
	struct timespec ts = { (time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u) };
	int n;

	if (p->ready || p->done_count)
		return;
	n = epoll_pwait2(p->fd, p->events, EVENTS, timeout_ns == UINT64_MAX ? NULL : &ts, NULL);
	if (n < 0 && errno == ENOSYS)            /* before Linux 5.11 */
		n = epoll_wait(p->fd, p->events, EVENTS,
			       timeout_ns > 1000000000u ? 1000 : (int)(timeout_ns / 1000000u) + 1);
	p->ready = n > 0 ? n : 0;
}

static void poller_close(struct io *io)
{
	struct poller *p = poller_of(io);

	if (p->fd >= 0)
		(void)close(p->fd);
	if (io->wake_fd >= 0)
		(void)close(io->wake_fd);
	mem_free(p->done, 2 * (size_t)p->done_room * sizeof *p->done);
	mem_free(p, sizeof *p);
}

static const struct io_ops poller_ops = {
	"epoll", poller_close, poller_listen, poller_unlisten, poller_relisten, poller_begin, poller_send, poller_lend,
	poller_lend_now, poller_pause, poller_resume, poller_leave, poller_end, poller_poll, poller_ready, poller_wait,
};

struct io *io_epoll_new(const struct io_handlers *up, void *user)
{
	struct poller *p = mem_zalloc(sizeof *p);
	struct epoll_event wake = { .events = EPOLLIN, .data.u64 = NUMBER_WAKE };

	if (!p) {
		errno = ENOMEM;
		return NULL;
	}
	p->io.ops = &poller_ops;
	p->io.up = up;
	p->io.user = user;
	p->io.wake_fd = -1;
	p->fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->fd >= 0 && io_wake_open(&p->io) == 0 &&
	    epoll_ctl(p->fd, EPOLL_CTL_ADD, p->io.wake_fd, &wake) == 0)
		return &p->io;
	int saved = errno;

	poller_close(&p->io);
	errno = saved;
	return NULL;
}
