/* tests/e2e/hang.c - preloaded: while the file named by $HANG is there, a worker that wants to wait for its sockets
 * never comes back, as in a system call that hangs. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

static void hang(void)
{
	while (access(getenv("HANG"), F_OK) == 0)
		usleep(20000);
}

int epoll_pwait2(int fd, struct epoll_event *events, int most, const struct timespec *timeout, const sigset_t *mask)
{
	int (*real)(int, struct epoll_event *, int, const struct timespec *, const sigset_t *) =
		(int (*)(int, struct epoll_event *, int, const struct timespec *, const sigset_t *))dlsym(RTLD_NEXT, "epoll_pwait2");

	hang();
	return real(fd, events, most, timeout, mask);
}
