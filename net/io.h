/* net/io.h - sockets of one worker: io_uring, or epoll where that is forbidden.
 *
 * One small interface, two backends. What has happened is told to the handlers during poll; what is
 * asked for (send, pause ...) is under way when it returns, and done by a later poll.
 *
 * Owns     its ring or epoll set, the receive buffers, and an eventfd to be woken by. Sockets are the
 *          connection's: it closes them when `released` says that nothing is under way any more.
 * Threads  io_wake, io_uring_missing: any.  All else: the worker.
 * Blocks   wait only.
 */
#ifndef NOH_NET_IO_H
#define NOH_NET_IO_H

#include "core/atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a backend keeps about one socket: embedded in the connection. */
struct io_socket {
	int      fd;
	uint32_t number;           /* the connection's, in its worker's table: how completions find it      */
	uint16_t gen;              /* of that number                                                        */
	bool     receiving;        /* a receive is under way (io_uring), or wanted (epoll)                  */
	bool     paused;           /* not to be read for now                                                */
	bool     sending;          /* one send is under way                                                 */
	bool     closing;          /* told to end: nothing more is handed up                                */
	bool     released;         /* and nothing is under way any more                                     */
	bool     leaving;          /* asked to go elsewhere: `left` is to be told                           */
	bool     queued;           /* epoll: will be told of what has happened to it                        */
	const char *rest;          /* epoll: what send() did not take yet                                   */
	size_t   rest_len;         /* io_uring: what is being sent                                          */
};

enum { IO_LOCAL = 1, IO_HTTP = 2 };      /* kinds of listeners: a Unix socket; for HTTP */

struct io_handlers {
	void (*accepted)(void *user, int fd, uint32_t kind);          /* of its listener */
	struct io_socket *(*find)(void *user, uint32_t number, uint16_t gen);   /* NULL: gone */
	/* bytes are valid until `settle`, which comes before they go */
	void (*received)(void *user, struct io_socket *s, char *bytes, size_t len);
	void (*ended)(void *user, struct io_socket *s, int error);    /* 0: the client said so */
	void (*sent)(void *user, struct io_socket *s, bool ok);       /* all of it, or it failed */
	void (*released)(void *user, struct io_socket *s);            /* after end: nothing is under way */
	void (*settle)(void *user);
	void (*lent)(void *user, uint32_t index, int result);         /* of `lend`: bytes, or -errno */
	void (*starved)(void *user);         /* no descriptor or no memory for who comes: accepts nobody until told to */
	/* After leave: nothing is under way. True: it is another worker's now, and not to be touched; false: it stays. */
	bool (*left)(void *user, struct io_socket *s);
};

struct io;
struct io_ops {
	const char *name;
	void (*close)(struct io *io);
	bool (*listen)(struct io *io, int fd, uint32_t kind);         /* accept from now on           */
	void (*unlisten)(struct io *io);                              /* accept nobody any more       */
	void (*relisten)(struct io *io);                              /* after `starved`: try again   */
	bool (*begin)(struct io *io, struct io_socket *s);            /* receive from now on; false: no memory */
	void (*send)(struct io *io, struct io_socket *s, const void *bytes, size_t len);
	/* To a socket of another worker, as much as it takes at once; `lent` is told before lend_now returns. */
	void (*lend)(struct io *io, int fd, const void *bytes, size_t len, uint32_t index);
	void (*lend_now)(struct io *io);
	void (*pause)(struct io *io, struct io_socket *s);
	void (*resume)(struct io *io, struct io_socket *s);
	void (*leave)(struct io *io, struct io_socket *s);            /* nothing is being sent; `left` follows */
	void (*end)(struct io *io, struct io_socket *s);              /* shut down; `released` follows */
	uint32_t (*poll)(struct io *io);                              /* submit, and tell what happened */
	bool (*ready)(struct io *io);                                 /* would poll have something to tell? */
	void (*wait)(struct io *io, uint64_t timeout_ns);             /* UINT64_MAX: until woken      */
};

enum io_op { IO_ACCEPT, IO_RECEIVE, IO_SEND, IO_OPS };

struct io {
	const struct io_ops      *ops;
	const struct io_handlers *up;
	void                     *user;
	int                       wake_fd;
	struct {
		atomic_u64 errors[IO_OPS];    /* what the system refused; not clients that went       */
		atomic_u64 sq_full;           /* io_uring: the queue was submitted early, it was full */
	} shown;
};

/* Can io_uring be used here, with all that is needed? NULL: yes; else why not. */
const char *io_uring_missing(void);
struct io *io_uring_new(const struct io_handlers *up, void *user);    /* on the thread that will use it; */
struct io *io_epoll_new(const struct io_handlers *up, void *user);    /* NULL: not to be had, see errno */

void io_wake(struct io *io);
int  io_wake_open(struct io *io);        /* for backends: 0 or -errno                */
void io_failed(struct io *io, enum io_op op, int error);     /* for backends: counts it, if it is one */
void io_drain_wake(struct io *io);       /* for backends: read what io_wake wrote */

#endif
