/* core/logger.c - noh.h, section 9: lines into a ring, and a thread that writes them.
 *
 * The ring is bounded, with many producers and one consumer. A slot is a baton; turn says whose move it is:
 *     turn == pos          free: whoever claims pos may write the line
 *     turn == pos + 1      full: the writer at pos may read it
 *     turn == pos + LINES  free again, one lap later
 * C -> D  publishes the line. With less the writer may read the last lap's.
 * E -> A  gives the slot back. With less its next owner writes while the line is still read.
 * B       relaxed: it deals out numbers.
 * Sleeping: the producer publishes (C), then looks whether the writer sleeps (F); the writer says that it will (G),
 * then looks whether there is a line (D). All four are in the one total order, so one of them sees the other.
 * A full ring is an answer: the line is counted as lost (P8), and nobody waits, whatever stderr is connected to.
 */
#include "core/clock.h"
#include "core/error.h"
#include "core/futex.h"
#include "core/log_limit.h"
#include "core/log_text.h"
#include "core/mem.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES 1024                       /* a power of two */

enum { GOING, OVER, LEFT_ALONE };        /* the writer has ended; its owner has not waited for that */

struct log_slot {
	atomic_u64       turn;
	struct log_entry entry;          /* plain memory, guarded by turn */
};

struct noh_logger {
	struct {
		noh_logger_options o;
		struct clock       clock;
		struct log_slot   *slots;
		pthread_t          thread;
	} fixed;
	struct {
		struct log_limit limit;
		uint64_t         told_lost;
	} mine;                                  /* the writer's */
	alignas(CACHE_LINE) struct {
		atomic_u64 tail;
		atomic_u64 lost;
		atomic_u32 json;
		atomic_u32 ending;
		atomic_u32 fate;                 /* GOING; then who comes second frees it */
		atomic_u32 flushing;             /* how many wait for `done` */
		atomic_u32 event;                /* the writer sleeps on it  */
	} shared;
	alignas(CACHE_LINE) struct {
		atomic_u32 asleep;
		atomic_u32 done_event;
		atomic_u64 done;                 /* lines that are over: written, or not to be */
		atomic_u64 written, left_out;
	} shown;
};

/* ── into the ring ── */

static void copy_text(char *to, size_t size, const char *from)
{
	size_t n = from ? strnlen(from, size - 1) : 0;

	if (n)
		memcpy(to, from, n);
	to[n] = 0;
	if (n == size - 1 && from[n])
		memcpy(to + n - 3, "...", 3);    /* there was more */
}

static void fill(struct log_entry *e, const noh_log_line *line, uint64_t wall_ms)
{
	e->wall_ms = wall_ms;
	e->level = line->level;
	e->shard = line->shard;
	copy_text(e->actor, sizeof e->actor, line->actor);
	copy_text(e->type, sizeof e->type, line->type);
	copy_text(e->msg_id, sizeof e->msg_id, line->msg_id);
	copy_text(e->trace_id, sizeof e->trace_id, line->trace_id);
	copy_text(e->span_id, sizeof e->span_id, line->span_id);
	copy_text(e->msg, sizeof e->msg, line->msg);
}

static void wake(noh_logger *l)
{
	add_seq_cst(&l->shared.event, 1);
	futex_wake_all(&l->shared.event);
}

void noh_logger_write(void *logger, const noh_log_line *line)
{
	noh_logger *l = logger;
	uint64_t pos = load_relaxed(&l->shared.tail);

	for (;;) {
		struct log_slot *s = &l->fixed.slots[pos % LINES];
		uint64_t turn = load_acquire(&s->turn);                            /* A */

		if (turn == pos) {
			if (!cas_relaxed(&l->shared.tail, &pos, pos + 1))          /* B */
				continue;
			fill(&s->entry, line, clock_wall_ms(&l->fixed.clock));
			store_seq_cst(&s->turn, pos + 1);                          /* C */
			break;
		}
		if ((int64_t)(turn - pos) < 0) {
			add_relaxed(&l->shared.lost, 1);
			return;
		}
		pos = load_relaxed(&l->shared.tail);
	}
	if (load_seq_cst(&l->shown.asleep))                                        /* F */
		wake(l);
}

/* ── the writer ── */

static bool write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			(void)poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
		} else if (n == 0 || errno != EINTR) {
			return false;
		}
	}
	return true;
}

static void say(void *user, const struct log_entry *e, uint64_t repeated)
{
	noh_logger *l = user;
	const noh_log_line line = { e->level, e->msg, e->actor, e->type, e->msg_id, e->trace_id, e->span_id, e->shard };
	char text[LOG_LINE_MAX];
	size_t n = log_text(text, &line, load_relaxed(&l->shared.json) ? LOG_JSON : LOG_TEXT, l->fixed.o.journal,
			    e->wall_ms ? e->wall_ms : clock_wall_ms(&l->fixed.clock), repeated);

	if (write_all(l->fixed.o.fd, text, n))
		count_one(&l->shown.written, 1);
	else
		add_relaxed(&l->shared.lost, 1);         /* nobody reads it any more, or its disk is full */
}

static void tell_lost(noh_logger *l)
{
	uint64_t lost = load_relaxed(&l->shared.lost);
	struct log_entry e = { .level = NOH_WARN, .shard = -1 };

	if (lost == l->mine.told_lost)
		return;
	snprintf(e.msg, sizeof e.msg, "%llu lines of the log were lost: it could not be written fast enough",
		 (unsigned long long)(lost - l->mine.told_lost));
	l->mine.told_lost = lost;
	say(l, &e, 0);
	l->mine.told_lost += load_relaxed(&l->shared.lost) > lost;       /* if that was lost as well */
}

static bool write_next(noh_logger *l, uint64_t now_ms)
{
	uint64_t pos = load_relaxed(&l->shown.done);
	struct log_slot *s = &l->fixed.slots[pos % LINES];

	if (load_seq_cst(&s->turn) != pos + 1)                                     /* D */
		return false;
	log_limit_take(&l->mine.limit, &s->entry, now_ms, say, l);
	store_release(&s->turn, pos + LINES);                                      /* E */
	store_release(&l->shown.done, pos + 1);
	store_relaxed(&l->shown.left_out, l->mine.limit.left_out);
	return true;
}

static void sleep_until(noh_logger *l, uint64_t next_ms, uint64_t now_ms)
{
	uint32_t event = load_seq_cst(&l->shared.event);
	uint64_t pos = load_relaxed(&l->shown.done);

	store_seq_cst(&l->shown.asleep, 1);                                        /* G */
	if (load_seq_cst(&l->fixed.slots[pos % LINES].turn) != pos + 1 &&          /* D */
	    !load_seq_cst(&l->shared.ending))
		futex_wait(&l->shared.event, event,
			   next_ms == UINT64_MAX ? UINT64_MAX : next_ms > now_ms ? (next_ms - now_ms) * 1000000u : 1);
	store_seq_cst(&l->shown.asleep, 0);
}

static uint64_t now_ms_of(const noh_logger *l)
{
	return clock_now_ns(&l->fixed.clock) / 1000000u;
}

static void free_logger(noh_logger *l)
{
	mem_free(l->fixed.slots, LINES * sizeof *l->fixed.slots);
	mem_free(l, sizeof *l);
}

static void *end_writer(noh_logger *l)
{
	if (swap_acq_rel(&l->shared.fate, OVER) == LEFT_ALONE)
		free_logger(l);
	return NULL;
}

static void *write_lines(void *arg)
{
	noh_logger *l = arg;

	for (;;) {
		bool ending = load_seq_cst(&l->shared.ending);
		uint64_t next;

		while (write_next(l, now_ms_of(l)))
			;
		tell_lost(l);
		next = log_limit_tick(&l->mine.limit, now_ms_of(l), ending, say, l);
		if (load_seq_cst(&l->shared.flushing)) {
			add_seq_cst(&l->shown.done_event, 1);
			futex_wake_all(&l->shown.done_event);
		}
		if (ending)
			return end_writer(l);
		sleep_until(l, next, now_ms_of(l));
	}
}

/* ── open, flush, close ── */

/* No signal of the process is for this thread; and a pipe that nobody reads is an error, not an end. */
static int start(noh_logger *l)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&l->fixed.thread, NULL, write_lines, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		(void)pthread_setname_np(l->fixed.thread, "noh-log");
	return rc;
}

int noh_logger_open(noh_logger **logger, const noh_logger_options *o)
{
	noh_logger *l = mem_aligned(CACHE_LINE, sizeof *l);
	int rc;

	*logger = NULL;
	if (!l || !(l->fixed.slots = mem_alloc(LINES * sizeof *l->fixed.slots))) {
		mem_free(l, sizeof *l);
		return error_set(NOH_ENOMEM, "no memory for a log");
	}
	if (o)
		l->fixed.o = *o;
	store_relaxed(&l->shared.json, l->fixed.o.json);
	if (l->fixed.o.fd == 0)
		l->fixed.o.fd = STDERR_FILENO;
	clock_real(&l->fixed.clock);
	for (uint64_t i = 0; i < LINES; i++)
		store_relaxed(&l->fixed.slots[i].turn, i);
	rc = start(l);
	if (rc) {
		free_logger(l);
		return error_set(NOH_ESYSTEM, "no thread for the log: %s", strerror(rc));
	}
	*logger = l;
	return NOH_OK;
}

void noh_logger_set_json(noh_logger *l, bool json)
{
	store_relaxed(&l->shared.json, json);
}

int noh_logger_flush(noh_logger *l, uint32_t timeout_ms)
{
	uint64_t all = load_seq_cst(&l->shared.tail), until = now_ms_of(l) + timeout_ms, now;
	int rc = NOH_OK;

	add_seq_cst(&l->shared.flushing, 1);
	for (;;) {
		uint32_t event = load_seq_cst(&l->shown.done_event);

		if (load_acquire(&l->shown.done) >= all)
			break;
		now = now_ms_of(l);
		if (now >= until) {
			rc = error_set(NOH_ETIMEOUT, "the log was not written within %u ms", timeout_ms);
			break;
		}
		wake(l);
		futex_wait(&l->shown.done_event, event, (until - now) * 1000000u);
	}
	sub_relaxed(&l->shared.flushing, 1);
	return rc;
}

void noh_logger_close(noh_logger *l, uint32_t timeout_ms)
{
	struct timespec until;
	pthread_t thread;

	if (!l)
		return;
	store_seq_cst(&l->shared.ending, 1);
	wake(l);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)(timeout_ms / 1000);
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	thread = l->fixed.thread;
	if (pthread_timedjoin_np(thread, NULL, &until) == 0) {
		free_logger(l);
		return;
	}
	if (swap_acq_rel(&l->shared.fate, LEFT_ALONE) == OVER)   /* else it hangs in write(2), and frees it if it ever ends */
		free_logger(l);
	pthread_detach(thread);
}

bool noh_logger_is_journal(int fd)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(fd, &st) == 0 &&
	       (unsigned long long)st.st_dev == device && (unsigned long long)st.st_ino == inode;
}

void noh_get_logger_stats(noh_logger *l, noh_logger_stats *stats)
{
	*stats = (noh_logger_stats){ load_relaxed(&l->shown.written), load_relaxed(&l->shown.left_out),
				     load_relaxed(&l->shared.lost) };
}
