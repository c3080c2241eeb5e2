/* bench/load_io.h - the few things a thread wants from the kernel, on io_uring or on epoll.
 *
 * Owns     the ring or the epoll, and the buffers bytes arrive in; never the sockets.
 * Threads  opened, used and closed by one thread.
 */
#ifndef NOH_BENCH_LOAD_IO_H
#define NOH_BENCH_LOAD_IO_H

#include "bench/load.h"

struct load_io_ops {
	bool (*watch)(struct load_io *io, struct load_conn *c);     /* from now on tell what arrives */
	void (*unwatch)(struct load_io *io, struct load_conn *c);   /* its socket will be closed now */
	void (*send)(struct load_io *io, struct load_conn *c);      /* out[out_sent] to out[out_len] */
	/* Hand over what is to be sent, wait until something happens but not beyond `until`, then call
	 * load_woke once and load_received or load_lost for all that happened. */
	bool (*wait)(struct load_io *io, uint64_t until);
	void (*close)(struct load_io *io);
};

struct load_io {
	const struct load_io_ops *ops;
	struct load_thread       *thread;
};

struct load_io *load_uring_open(struct load_thread *t, char *why, size_t room);   /* NULL: why says why */
struct load_io *load_epoll_open(struct load_thread *t, char *why, size_t room);

#endif
