/* bench/load_epoll.c - for kernels and containers without io_uring: a call per read and per send. */
#include "bench/load_io.h"
#include "tools/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 256, BYTES = 65536 };

struct poll_io {
	struct load_io io;
	int     fd;
	bool    no_pwait2;                       /* before Linux 5.11 */
	struct epoll_event events[EVENTS];
	uint8_t bytes[BYTES];
};

static bool change(struct poll_io *p, int op, struct load_conn *c, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.u64 = (uint64_t)c->index << 32 | c->generation };

	return epoll_ctl(p->fd, op, c->fd, &e) == 0;
}

static bool poll_watch(struct load_io *io, struct load_conn *c)
{
	int flags = fcntl(c->fd, F_GETFL);

	return flags >= 0 && fcntl(c->fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
	       change((struct poll_io *)io, EPOLL_CTL_ADD, c, EPOLLIN);
}

static void poll_unwatch(struct load_io *io, struct load_conn *c)
{
	change((struct poll_io *)io, EPOLL_CTL_DEL, c, 0);
	c->generation++;
}

static void poll_send(struct load_io *io, struct load_conn *c)
{
	while (c->out_sent < c->out_len) {
		ssize_t n = send(c->fd, c->out + c->out_sent, c->out_len - c->out_sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			change((struct poll_io *)io, EPOLL_CTL_MOD, c, EPOLLIN | EPOLLOUT);
			return;
		}
		if (n < 0)
			return;              /* the receiving side is told as well, and says so */
		c->out_sent += (uint32_t)n;
	}
}

static void readable(struct poll_io *p, struct load_conn *c)
{
	ssize_t n = recv(c->fd, p->bytes, BYTES, 0);

	if (n > 0)
		load_received(p->io.thread, c, p->bytes, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		load_lost(p->io.thread, c, n == 0 ? 0 : errno);
}

static int sleep_until(struct poll_io *p, uint64_t until)
{
	uint64_t now = cli_now_ns(), wait = until > now ? until - now : 0;
	struct timespec ts = { (time_t)(wait / 1000000000u), (long)(wait % 1000000000u) };

	if (!p->no_pwait2) {
		int n = epoll_pwait2(p->fd, p->events, EVENTS, &ts, NULL);

		if (n >= 0 || (errno != ENOSYS && errno != EPERM))
			return n;
		p->no_pwait2 = true;
	}
	return epoll_wait(p->fd, p->events, EVENTS, (int)(wait / 1000000));    /* the last bit awake */
}

static bool poll_wait(struct load_io *io, uint64_t until)
{
	struct poll_io *p = (struct poll_io *)io;
	int n = sleep_until(p, until);

	if (n < 0 && errno != EINTR) {
		load_fail(io->thread, "epoll: %s", strerror(errno));
		return false;
	}
	load_woke(io->thread);
	for (int i = 0; i < n; i++) {
		struct load_conn *c = &io->thread->conns[p->events[i].data.u64 >> 32];

		if (c->down || (uint32_t)p->events[i].data.u64 != c->generation)
			continue;
		if (p->events[i].events & EPOLLOUT) {
			change(p, EPOLL_CTL_MOD, c, EPOLLIN);
			poll_send(io, c);
		}
		if (p->events[i].events & ~(uint32_t)EPOLLOUT)
			readable(p, c);
	}
	return true;
}

static void poll_close(struct load_io *io)
{
	close(((struct poll_io *)io)->fd);
	free(io);
}

struct load_io *load_epoll_open(struct load_thread *t, char *why, size_t room)
{
	static const struct load_io_ops ops = { poll_watch, poll_unwatch, poll_send, poll_wait, poll_close };
	struct poll_io *p = calloc(1, sizeof *p);

	if (p != NULL) {
		p->io = (struct load_io){ &ops, t };
		p->fd = epoll_create1(EPOLL_CLOEXEC);
		if (p->fd >= 0)
			return &p->io;
	}
	snprintf(why, room, "epoll cannot be used here (%s)", strerror(errno));
	free(p);
	return NULL;
}
