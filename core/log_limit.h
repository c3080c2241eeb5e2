/* core/log_limit.h - which lines of a log are written: not the same one again and again.
 *
 * Lines that are alike but for their numbers share a window of time. In the first, a second long, ten are written; the
 * rest are counted, and told in one line at its end. While they go on, windows get twice as long, up to a minute,
 * and that one line is all. After a window without any it begins anew. And of all kinds together LOG_A_SECOND at
 * most are written within a second.
 *
 * Owns     copies of the lines it counts.   Threads  one.
 * Never    allocates; time is handed in.
 */
#ifndef NOH_CORE_LOG_LIMIT_H
#define NOH_CORE_LOG_LIMIT_H

#include "noh.h"

struct log_entry {
	uint64_t wall_ms;                  /* 0: now                                          */
	int      level, shard;
	char     actor[256], type[64], msg_id[64], trace_id[33], span_id[17], msg[1024];
};

#define LOG_A_SECOND 2000
#define LOG_ALIKE 10                       /* of them in a first window                       */
#define LOG_WINDOW_MS 1000
#define LOG_WINDOW_MOST_MS 60000
#define LOG_KINDS 64                       /* looked after at a time: direct mapped           */

struct log_kind {
	uint64_t hash;                     /* 0: nobody's                                     */
	uint64_t from_ms, window_ms;
	uint32_t allowed;                  /* more of them in this window                     */
	uint64_t left_out;
	struct log_entry last;
};

struct log_limit {
	struct log_kind kinds[LOG_KINDS];
	uint64_t second;                   /* since when `this_second` counts                 */
	uint32_t this_second;
	uint64_t over;                     /* left out since: there were too many of all      */
	uint64_t left_out;                 /* ever                                            */
};

/* repeated: how many like it were left out; 0: the line itself. */
typedef void log_say_fn(void *user, const struct log_entry *e, uint64_t repeated);

/* One more line: said, or counted. May say something about others first. */
void log_limit_take(struct log_limit *l, const struct log_entry *e, uint64_t now_ms, log_say_fn *say, void *user);

/* Time has passed: say what was left out in windows that are over; end: in all of them. When to come again;
 * UINT64_MAX: no need. */
uint64_t log_limit_tick(struct log_limit *l, uint64_t now_ms, bool end, log_say_fn *say, void *user);

#endif
