/* tests/e2e/orders.c PORT UNITS CONNECTIONS - a flash sale from outside, by clients that never give up.
 *
 * Each connection takes the next order, reserves one unit and commits it, each with an idempotency key of the
 * order. Whatever happens to the connection or the server, it connects again and repeats the very same request
 * until it is answered. There are more orders than units. At the end: exactly UNITS orders were sold, each with a
 * hold of its own, and the article's numbers say the same. Says "at N" after each quarter, so that somebody kills
 * the server then: the sale waits for that half a quarter later, so that no kill comes when all is sold. At the end
 * "fine" or what is wrong.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int port;
static long units, orders;
static atomic_long next_order, sold, refused, reconnects, doubled, odd;
static atomic_long kill_wanted;      /* sold when it was last asked for; 0: nobody has been asked, or it has come */
static atomic_char *seen;            /* by number of hold */
static time_t deadline;

static int dial(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval patience = { .tv_sec = 10 };
	int one = 1;

	while (time(NULL) < deadline) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
			return fd;
		(void)close(fd);
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	return -1;
}

/* One whole reply: a line, and for an array of integers its items. False: the connection is gone. */
static bool hear(int fd, char *to, size_t size)
{
	size_t got = 0;
	int lines = 0, want = 1;

	while (got + 1 < size && lines < want) {
		if (recv(fd, to + got, 1, 0) != 1)
			return false;
		if (to[got++] == '\n' && ++lines == 1 && to[0] == '*')
			want = 1 + atoi(to + 1);
	}
	to[got] = 0;
	return lines == want;
}

/* Until it is answered, whatever it takes. */
static bool ask(int *fd, const char *request, char *reply, size_t size)
{
	while (time(NULL) < deadline) {
		if (*fd < 0)
			*fd = dial();
		if (*fd >= 0 && send(*fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request) &&
		    hear(*fd, reply, size) && strncmp(reply, "-STOPPING", 9) != 0 && strncmp(reply, "-TIMEOUT", 8) != 0)
			return true;
		atomic_fetch_add(&reconnects, 1);
		atomic_store(&kill_wanted, 0);
		if (*fd >= 0)
			(void)close(*fd);
		*fd = -1;
	}
	return false;
}

static void one_more_sold(void)
{
	long n = atomic_fetch_add(&sold, 1) + 1;

	if (n % (units / 4) == 0 && n < units) {
		atomic_store(&kill_wanted, n);
		printf("at %ld\n", n);
		fflush(stdout);
	}
}

/* Asks on, so as to notice it. */
static void wait_for_kill(int *fd)
{
	char reply[100];
	long wanted;

	while ((wanted = atomic_load(&kill_wanted)) != 0 && sold >= wanted + units / 8 &&
	       ask(fd, "PING\r\n", reply, sizeof reply))
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static void *buy(void *arg)
{
	int fd = -1;
	char request[200], reply[300];
	long k, hold;

	(void)arg;
	while (wait_for_kill(&fd), (k = atomic_fetch_add(&next_order, 1)) < orders) {
		snprintf(request, sizeof request, "INV.RESERVE sale 1 IDEM reserve-%ld\r\n", k);
		if (!ask(&fd, request, reply, sizeof reply))
			break;
		if (strncmp(reply, "-OUTOFSTOCK", 11) == 0) {
			atomic_fetch_add(&refused, 1);
			continue;
		}
		hold = strncmp(reply, "*2\r\n:", 5) == 0 ? atol(reply + 5) : 0;
		if (hold < 1 || hold > units) {
			atomic_fetch_add(&odd, 1);
			printf("odd: %s -> %s\n", request, reply);
			continue;
		}
		if (atomic_exchange(&seen[hold], 1))
			atomic_fetch_add(&doubled, 1);
		snprintf(request, sizeof request, "INV.COMMIT sale %ld IDEM commit-%ld\r\n", hold, k);
		if (!ask(&fd, request, reply, sizeof reply))
			break;
		if (strcmp(reply, ":1\r\n") == 0)
			one_more_sold();
		else
			atomic_fetch_add(&odd, 1);
	}
	if (fd >= 0)
		(void)close(fd);
	return NULL;
}

/* All the server says to INV.GET, until it ends the connection; false: that ended before the answer did. */
static bool ask_stock(char *reply, size_t size)
{
	int fd = dial();
	size_t got = 0;
	ssize_t n = 0;

	if (fd >= 0 && send(fd, "INV.GET sale\r\nQUIT\r\n", 20, MSG_NOSIGNAL) == 20)
		while (got + 1 < size && (n = recv(fd, reply + got, size - 1 - got, 0)) > 0)
			got += (size_t)n;
	reply[got] = 0;
	if (fd >= 0)
		(void)close(fd);
	return got >= 5 && strcmp(reply + got - 5, "+OK\r\n") == 0;
}

/* Asked until it is answered, like everything else: a request that failed late may have been taken for the last kill. */
static bool stock_is(const char *want)
{
	char reply[400] = "";

	while (!ask_stock(reply, sizeof reply) && time(NULL) < deadline)
		atomic_fetch_add(&reconnects, 1);
	for (char *c = reply; *c; c++)           /* names and numbers, one after the other */
		if (*c == '\r' || *c == '\n')
			*c = ' ';
	if (strstr(reply, want))
		return true;
	printf("INV.GET: %s\nwanted:  %s\n", reply, want);
	return false;
}

int main(int argc, char **argv)
{
	int connections = argc > 3 ? atoi(argv[3]) : 200, fd = -1;
	pthread_t threads[1000];
	char request[100], reply[200], want[300];

	port = argc > 1 ? atoi(argv[1]) : 7411;
	units = argc > 2 ? atol(argv[2]) : 10000;
	orders = units + units / 10;
	deadline = time(NULL) + 300;
	seen = calloc((size_t)units + 1, 1);
	if (connections < 1 || connections > 1000 || units < 4 || !seen)
		return 2;
	snprintf(request, sizeof request, "INV.RESTOCK sale %ld IDEM restock\r\n", units);
	if (!ask(&fd, request, reply, sizeof reply))
		return 1;
	for (int i = 0; i < connections; i++)
		(void)pthread_create(&threads[i], NULL, buy, NULL);
	for (int i = 0; i < connections; i++)
		(void)pthread_join(threads[i], NULL);
	snprintf(want, sizeof want, "on_hand  :0  $8  reserved  :0  $9  available  :0  $4  sold  :%ld ", units);
	printf("%ld sold, %ld refused, %ld doubled, %ld odd, %ld reconnects\n", sold, refused, doubled, odd, reconnects);
	if (sold != units || refused != orders - units || doubled || odd || !stock_is(want))
		return 1;
	printf("fine\n");
	return 0;
}
