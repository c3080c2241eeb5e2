/* tools/doctor_machine.c - what the account, the machine and its kernel allow. */
#include "tools/doctor.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static void workers(struct doctor *d)
{
	uint64_t wanted = settings_number(d->settings, SET_WORKERS);
	cpu_set_t mine;
	unsigned cores = sched_getaffinity(0, sizeof mine, &mine) == 0 ? (unsigned)CPU_COUNT(&mine) : 1;

	if (wanted > cores)
		doctor_say(d, VERDICT_WARN, "workers", "--workers 0 takes one per core", "%llu workers on %u cores get in each other's way",
			   (unsigned long long)wanted, cores);
	else
		doctor_say(d, VERDICT_OK, "workers", "", "%llu on %u cores", (unsigned long long)(wanted ? wanted : cores), cores);
}

static void files(struct doctor *d)
{
	enum { OWN_FILES = 128 };
	uint64_t need = settings_number(d->settings, SET_MAX_CONNECTIONS) + OWN_FILES;
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) != 0)
		return;
	if (l.rlim_max != RLIM_INFINITY && l.rlim_max < need)
		doctor_say(d, VERDICT_FAIL, "open-files", "raise ulimit -Hn or LimitNOFILE, or choose a smaller --max-connections",
			   "%s connections need %llu open files, and this account may have %llu",
			   settings_text(d->settings, SET_MAX_CONNECTIONS), (unsigned long long)need, (unsigned long long)l.rlim_max);
	else
		doctor_say(d, VERDICT_OK, "open-files", "", "enough for %s connections", settings_text(d->settings, SET_MAX_CONNECTIONS));
}

/* The least of all groups we are in; UINT64_MAX: none says anything. */
static uint64_t group_limit(void)
{
	char line[4096], path[4400];
	uint64_t least = UINT64_MAX, n;

	if (!doctor_line("/proc/self/cgroup", line, sizeof line) || strncmp(line, "0::", 3) != 0)
		return least;
	for (char *at = line + 3; ; ) {
		snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", at);
		if (doctor_number(path, &n) && n < least)
			least = n;
		char *slash = strrchr(at, '/');

		if (!slash || !*at)
			return least;
		*slash = 0;
	}
}

static void memory(struct doctor *d)
{
	uint64_t budget = settings_number(d->settings, SET_MEMORY), group = group_limit(), has;
	char a[24], b[24];

	has = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	if (group < has)
		has = group;
	cli_bytes(a, sizeof a, budget);
	cli_bytes(b, sizeof b, has);
	if (budget > has)
		doctor_say(d, VERDICT_FAIL, "memory", "choose --memory below it, with a fifth to spare", "a budget of %s, and there are %s%s", a, b,
			   has == group ? " for this group of processes" : "");
	else if (budget > has / 10 * 9)
		doctor_say(d, VERDICT_WARN, "memory", "leave a tenth to others", "a budget of %s of %s", a, b);
	else if (budget == 0 && has == group)
		doctor_say(d, VERDICT_WARN, "memory", "set --memory below it: then cold actors go to disk instead",
			   "this group of processes is ended beyond %s, and there is no budget", b);
	else
		doctor_say(d, VERDICT_OK, "memory", "", "%s; there are %s", budget ? a : "no budget", b);
}

/* Tables are reserved, not used: a kernel that counts reservations, or a limit on them, is in the way. */
static void address_space(struct doctor *d)
{
	struct rlimit l;
	uint64_t mode = 0;

	if (getrlimit(RLIMIT_AS, &l) == 0 && l.rlim_cur != RLIM_INFINITY)
		doctor_say(d, VERDICT_FAIL, "address-space", "ulimit -v unlimited; what noh uses is bounded by --memory",
			   "this account may reserve %llu bytes only", (unsigned long long)l.rlim_cur);
	if (doctor_number("/proc/sys/vm/overcommit_memory", &mode) && mode == 2)
		doctor_say(d, VERDICT_WARN, "overcommit", "sysctl -w vm.overcommit_memory=0",
			   "the kernel counts reserved memory as used, and noh reserves much more than it uses");
}

static void huge_pages(struct doctor *d)
{
	char line[128];

	if (doctor_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line) && strstr(line, "[never]"))
		doctor_say(d, VERDICT_WARN, "huge-pages", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
			   "switched off: millions of actors cost more cache misses");
}

/* What noh serve will find: asked of the kernel itself, as a filter may stand before it. */
static void uring(struct doctor *d)
{
	unsigned char params[256] = { 0 };
	bool wanted = strcmp(settings_text(d->settings, SET_IO), "uring") == 0;
	char todo[128] = "";
	uint64_t off = 0;

	if (strcmp(settings_text(d->settings, SET_IO), "epoll") == 0) {
		doctor_say(d, VERDICT_OK, "io_uring", "", "not wanted (io = epoll)");
		return;
	}
	int fd = (int)syscall(SYS_io_uring_setup, 4, params), err = errno;

	if (fd >= 0) {
		close(fd);
		doctor_say(d, VERDICT_OK, "io_uring", "", "works");
		return;
	}
	if (doctor_number("/proc/sys/kernel/io_uring_disabled", &off) && off)
		snprintf(todo, sizeof todo, "sysctl -w kernel.io_uring_disabled=0");
	else if (err == EPERM || err == EACCES)
		snprintf(todo, sizeof todo, "allow it in the container's seccomp profile");
	else if (err == ENOSYS)
		snprintf(todo, sizeof todo, "a kernel from 5.19 on has it");
	doctor_say(d, wanted ? VERDICT_FAIL : VERDICT_WARN, "io_uring", todo, "not to be had (%s): %s", strerror(err),
		   wanted ? "and io = uring insists on it" : "epoll is used, which costs more");
}

static void kernel(struct doctor *d)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	if (uname(&u) != 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return;
	if (major < 6 || (major == 6 && minor < 1))
		doctor_say(d, VERDICT_WARN, "kernel", "6.1 and later serve fastest", "%s is older than what noh is measured on", u.release);
	else
		doctor_say(d, VERDICT_OK, "kernel", "", "%s", u.release);
}

static void wall_clock(struct doctor *d)
{
	enum { YEAR_2024 = 1704067200 };
	struct timex t = { .modes = 0 };
	int state = adjtimex(&t);

	if (time(NULL) < YEAR_2024)
		doctor_say(d, VERDICT_FAIL, "clock", "set it (timedatectl)", "it says a time before 2024");
	else if (state == TIME_ERROR || (t.status & STA_UNSYNC))
		doctor_say(d, VERDICT_WARN, "clock", "run a time service (systemd-timesyncd, chrony): timers and keys across restarts go by it",
			   "nothing keeps it right");
	else
		doctor_say(d, VERDICT_OK, "clock", "", "kept right by a time service");
}

void doctor_machine(struct doctor *d)
{
	workers(d);
	files(d);
	memory(d);
	address_space(d);
	huge_pages(d);
	uring(d);
	kernel(d);
	wall_clock(d);
}
