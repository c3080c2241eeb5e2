/* box/metrics_process.c - the process, as the system sees it: the names every exporter has. */
#include "box/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;

	if (fd >= 0)
		(void)close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

void metric_cpu(struct scrape *m)
{
	struct rusage used;

	if (getrusage(RUSAGE_SELF, &used) != 0)
		return;
	metric_seconds(m, "", (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000u +
			      (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000u);
}

static void memory(struct scrape *m, bool resident)
{
	char text[128], *rest;
	uint64_t pages, page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (!read_file("/proc/self/statm", text, sizeof text))
		return;
	pages = strtoull(text, &rest, 10);
	metric_number(m, "", (resident ? strtoull(rest, NULL, 10) : pages) * page);
}

void metric_resident(struct scrape *m) { memory(m, true); }
void metric_virtual(struct scrape *m) { memory(m, false); }

/* Linux tells their number as the directory's size since 6.2; before, they are counted. */
void metric_fds(struct scrape *m)
{
	struct stat s;
	uint64_t n = 0;
	DIR *d;

	if (stat("/proc/self/fd", &s) == 0 && s.st_size > 0) {
		metric_number(m, "", (uint64_t)s.st_size);
		return;
	}
	d = opendir("/proc/self/fd");
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d)) != NULL; )
		n += e->d_name[0] != '.';
	(void)closedir(d);
	metric_number(m, "", n ? n - 1 : 0);     /* not the one for looking */
}

void metric_max_fds(struct scrape *m)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, &most) == 0)
		metric_number(m, "", most.rlim_cur);
}

/* Field 22 of /proc/self/stat: ticks from boot to its start. The second field is a name in parentheses, with anything
 * in it. */
uint64_t process_start_ms(uint64_t wall_ms)
{
	char text[1024], *at;
	struct timespec up;
	uint64_t began, now;

	if (!read_file("/proc/self/stat", text, sizeof text) || clock_gettime(CLOCK_BOOTTIME, &up) != 0)
		return 0;
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return 0;
	began = strtoull(at, NULL, 10) * 1000u / (uint64_t)sysconf(_SC_CLK_TCK);
	now = (uint64_t)up.tv_sec * 1000u + (uint64_t)up.tv_nsec / 1000000u;
	return now > began && wall_ms > now - began ? wall_ms - (now - began) : 0;
}

void metric_process_start(struct scrape *m)
{
	if (m->box->process_start_ms)
		metric_seconds(m, "", m->box->process_start_ms * 1000000u);
}
