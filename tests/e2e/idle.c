/* tests/e2e/idle.c PORT COUNT PID - opens COUNT connections, lets each say PING once (the second half) or nothing at all,
 * and tells how many bytes of the server's anonymous memory each one takes. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static long anonymous_kb(const char *pid)
{
	char path[64], line[200];
	long kb = -1;

	snprintf(path, sizeof path, "/proc/%s/status", pid);
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "RssAnon: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

static int dial(int port, int i)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
		printf("connection %d does not come about\n", i);
		exit(1);
	}
	return fd;
}

static void ping(int fd)
{
	char got[7];

	if (send(fd, "PING\r\n", 6, MSG_NOSIGNAL) != 6 || recv(fd, got, 7, MSG_WAITALL) != 7) {
		printf("PING is not answered\n");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 10000, port = argc > 1 ? atoi(argv[1]) : 7411;
	struct rlimit files = { (rlim_t)count + 100, (rlim_t)count + 100 };
	int *fd = malloc((size_t)count * sizeof *fd);
	long before, after;

	if (argc < 4 || !fd || (setrlimit(RLIMIT_NOFILE, &files) != 0 && getrlimit(RLIMIT_NOFILE, &files) == 0 &&
				files.rlim_cur < (rlim_t)count + 10)) {
		printf("SKIP  %d connections need more open files than this system allows\n", count);
		return 77;
	}
	for (int i = 0; i < 20; i++) {           /* what the first ones of all need */
		fd[i] = dial(port, i);
		ping(fd[i]);
	}
	before = anonymous_kb(argv[3]);
	for (int i = 20; i < count; i++)
		fd[i] = dial(port, i);
	for (int i = count / 2; i < count; i++)
		ping(fd[i]);
	for (int i = 20; i < count / 2; i += 100)    /* the others are accepted as well */
		ping(fd[i]);
	after = anonymous_kb(argv[3]);
	printf("%ld\n", (after - before) * 1024 / count);
	return 0;
}
