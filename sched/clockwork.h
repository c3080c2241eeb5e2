/* sched/clockwork.h - schedules, deadlines and rests: what is in the workers' wheels, and who is woken by it.
 *
 * The second word of a wheel entry says what the first is: the serial of a schedule (then the first is a reference), or one
 * of these.
 *
 * Owns     dormant entries.   Threads  clock_add, clock_cancel, clock_due: any; the others: the worker.
 */
#ifndef NOH_SCHED_CLOCKWORK_H
#define NOH_SCHED_CLOCKWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cell;
struct sched;
struct worker;

#define WHEEL_DEADLINE (UINT64_C(1) << 63)     /* first: token of a pending answer                 */
#define WHEEL_DORMANT (UINT64_C(1) << 62)      /* first: a struct dormant                          */
#define WHEEL_LIMIT (UINT64_C(1) << 60)        /* first: a reference; and the serial of its rest   */
#define WHEEL_RESTART (UINT64_C(1) << 61)      /* first: a reference; the rest of the second: which back-off */
uint32_t clock_add(struct worker *w, uint64_t due_ms, uint64_t a, uint64_t b);  /* any thread; 0: no memory */
void clock_cancel(struct sched *s, uint32_t worker, uint32_t entry, uint64_t a, uint64_t b);
uint32_t clock_advance(struct worker *owner, struct worker *runner);    /* fires what is due */
void clock_arm_schedules(struct worker *w, struct cell *c);             /* after loading     */
bool clock_arm_dormant(struct worker *w, const char *address, size_t len, uint64_t due_ms);
bool clock_take_schedule(struct worker *w, struct cell *c, uint64_t serial, uint32_t *kind);
uint64_t clock_due(struct sched *s, uint64_t delay_ms);
uint64_t clock_next_ms(struct worker *w);
uint64_t clock_pending(struct worker *w);
void clock_close(struct worker *w);

#endif
