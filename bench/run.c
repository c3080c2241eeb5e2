/* bench/run.c - one repetition: a process, a box, a clock, and the checks all benchmarks share. */
#include "bench/durable.h"
#include "tools/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_MS = 120 * 1000, ALARM_S = 240, LOG_LINES = 3 };

void bench_fail(const struct bench_run *r, const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fprintf(stderr, "noh bench: %s, %u worker%s, n %llu: FAILED: %s\n", r->bench->name,
		r->workers, r->workers == 1 ? "" : "s", (unsigned long long)r->n, text);
	_exit(CLI_FAILED);
}

void bench_must(const struct bench_run *r, int code, const char *what)
{
	if (code == NOH_OK)
		return;
	if (code < 0)
		bench_fail(r, "%s: %s: %s", what, noh_strerror(code), noh_why());
	bench_fail(r, "%s: %s", what, noh_strerror(code));
}

void bench_same(const struct bench_run *r, const char *what, int64_t got, int64_t want)
{
	if (got != want)
		bench_fail(r, "%s: got %lld, expected %lld", what, (long long)got, (long long)want);
}

/* The first few warnings are worth reading; a thousand of the same are not. */
static void on_log(void *user, int level, const char *actor, const char *line)
{
	static _Atomic unsigned lines;
	const struct bench_run *r = user;

	if (r->quiet || level < NOH_WARN)
		return;
	unsigned before = atomic_fetch_add(&lines, 1);
	if (before < LOG_LINES)
		fprintf(stderr, "noh bench: %s: %s%s%s\n", r->bench->name, actor,
			*actor ? ": " : "", line);
	else if (before == LOG_LINES)
		fprintf(stderr, "noh bench: %s: further warnings are not shown\n", r->bench->name);
}

noh_type bench_type(const char *name, size_t state_size,
		    int (*on_message)(noh_turn *, const noh_msg *), void *user)
{
	return (noh_type){ .name = name, .state_size = (uint32_t)state_size, .full_mode = NOH_BLOCK,
			   .on_message = on_message, .user = user };
}

void bench_register(struct bench_run *r, const noh_type *type)
{
	if (r->type_count == BENCH_TYPES)
		bench_fail(r, "more than %d types", BENCH_TYPES);
	bench_must(r, noh_register(r->box, type), "registering a type");
	r->types[r->type_count++] = type->name;
}

static void open_box(struct bench_run *r)
{
	noh_options o = { .workers = r->workers, .seed = r->seed, .log = on_log, .log_user = r,
			  .events_detail = r->all_events ? NOH_EVENTS_ALL : NOH_EVENTS_DEFAULT };
	noh_type gather = gather_type();

	bench_must(r, noh_open(&r->box, &o), "opening a box");
	bench_register(r, &gather);
}

void bench_start(struct bench_run *r)
{
	bench_must(r, noh_start(r->box), "starting the workers");
	bench_must(r, noh_activate(r->box, GATHER_ADDRESS, WAIT_MS), "activating " GATHER_ADDRESS);
	bench_must(r, noh_ref(r->box, GATHER_ADDRESS, &r->gather),
		   "a reference to " GATHER_ADDRESS);
}

void bench_address(char *room, const char *type, uint64_t id)
{
	size_t n = strlen(type);

	memcpy(room, type, n);
	room[n] = ':';
	for (size_t i = n + 12; i > n; i--, id /= 10)
		room[i] = (char)('0' + id % 10);
	room[n + 13] = '\0';
}

/* Counts up in decimal: no division, and nine times out of ten one digit. */
void bench_next_address(char *end)
{
	while (*--end == '9')
		*end = '0';
	++*end;
}

uint64_t bench_id(noh_turn *turn)
{
	return strtoull(noh_id(turn), NULL, 10);
}

noh_actor bench_ref(struct bench_run *r, const char *type, uint64_t id)
{
	char address[96];
	noh_actor ref;

	bench_address(address, type, id);
	bench_must(r, noh_ref(r->box, address, &ref), "making a reference");
	return ref;
}

void bench_send(struct bench_run *r, noh_actor to, uint32_t kind, const void *body, size_t len)
{
	int rc;

	while ((rc = noh_send_ref(r->box, to, kind, body, len)) == NOH_FULL)
		cli_sleep_ns(20000);
	bench_must(r, rc, "sending from outside");
}

struct gathered bench_wait(struct bench_run *r, uint64_t reports)
{
	struct gathered all;

	bench_must(r, gather_wait(r->box, reports, WAIT_MS, &all), "waiting for the end");
	bench_same(r, "reports", (int64_t)all.reports, (int64_t)reports);
	return all;
}

void *bench_memory(struct bench_run *r, size_t bytes)
{
	char *p = malloc(bytes);

	if (p == NULL)
		bench_fail(r, "no memory for %zu bytes", bytes);
	memset(p, 0, bytes);
	for (size_t at = 0; at < bytes; at += 4096)      /* the compiler makes a calloc of these two, and pages would come later */
		*(volatile char *)(p + at) = 0;
	return p;
}

void bench_begin(struct bench_run *r)
{
	r->began = cli_now_ns();
}

void bench_end(struct bench_run *r, uint64_t ops)
{
	r->out.seconds = (double)(cli_now_ns() - r->began) * 1e-9;
	r->out.ops = ops;
}

/* Nothing was dropped, nothing failed, everything accepted was handled. */
static bool settled(struct bench_run *r, const char *type)
{
	noh_type_stats s;

	bench_must(r, noh_get_type_stats(r->box, type, &s), "reading the counters");
	if (s.dropped_oldest + s.dropped_forced + s.dropped_stop + s.coalesced != 0)
		bench_fail(r, "type %s dropped %llu messages", type, (unsigned long long)
			   (s.dropped_oldest + s.dropped_forced + s.dropped_stop + s.coalesced));
	bench_same(r, "failed turns", (int64_t)s.failed, 0);
	return s.handled >= s.accepted;     /* timers take no room in a mailbox, but have turns */
}

void bench_quiet(struct bench_run *r)
{
	uint64_t until = cli_now_ns() + 10ull * 1000000000u;

	for (unsigned i = 0; i < r->type_count; ) {
		if (settled(r, r->types[i]))
			i++;
		else if (cli_now_ns() > until)
			bench_fail(r, "type %s still has unhandled messages", r->types[i]);
		else
			cli_sleep_ns(200000);
	}
}

static void account(struct bench_run *r)
{
	noh_box_stats b;

	bench_quiet(r);
	for (unsigned i = 0; i < r->type_count; i++) {
		noh_type_stats s;
		bench_must(r, noh_get_type_stats(r->box, r->types[i], &s), "reading the counters");
		r->out.refused += s.refused;
	}
	bench_must(r, noh_get_stats(r->box, &b), "reading the counters");
	bench_same(r, "dead letters", (int64_t)b.dead_letters, 0);
	r->out.total = b.total;
}

/* A full-size box is not taken down: a million states going to storage are not what is measured. Only one with a
 * directory is closed, because that is removed. The smoke sizes stop and close theirs, so that leaks and hangs show. */
static void child(struct bench_run *r, int fd)
{
	alarm(ALARM_S);
	r->out.idle_cpu_ms = -1;
	open_box(r);
	r->bench->run(r);
	account(r);
	if (r->smoke)
		bench_must(r, noh_stop(r->box, WAIT_MS), "stopping the box");
	if (r->smoke || r->rubbish)
		noh_close(r->box);
	if (r->rubbish)
		durable_remove(r->rubbish);
	free(r->rubbish);
	if (write(fd, &r->out, sizeof r->out) != (ssize_t)sizeof r->out)
		bench_fail(r, "handing the result over: %s", strerror(errno));
	if (r->smoke)
		exit(CLI_FINE);     /* lets a leak checker have its say */
	_exit(CLI_FINE);
}

bool bench_repeat(struct bench_run *r)
{
	int ends[2], status = 0;

	fflush(NULL);
	if (pipe(ends) != 0) {
		fprintf(stderr, "noh bench: pipe: %s\n", strerror(errno));
		return false;
	}
	pid_t pid = fork();
	if (pid < 0) {
		fprintf(stderr, "noh bench: fork: %s\n", strerror(errno));
		close(ends[0]);
		close(ends[1]);
		return false;
	}
	if (pid == 0) {
		close(ends[0]);
		child(r, ends[1]);
	}
	close(ends[1]);
	ssize_t got = read(ends[0], &r->out, sizeof r->out);
	close(ends[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (WIFSIGNALED(status))
		fprintf(stderr, "noh bench: %s, %u workers: FAILED: %s\n", r->bench->name,
			r->workers, WTERMSIG(status) == SIGALRM ? "it did not end in time"
						    : strsignal(WTERMSIG(status)));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 && got == (ssize_t)sizeof r->out;
}
