/* tools/demo_actors.h - the actors of the demonstration.
 *
 *     counter  a sum; a million of them          driver   adds one to random counters, until told
 *     visitor  goes from address to address      alarm    rings once, some time from now
 *     gather   (bench/gather.h) knows when all of them are done
 *
 * Owns     nothing. struct demo_world is written before the actors that read it are started; the
 *          atomics may change at any time.
 */
#ifndef NOH_TOOLS_DEMO_ACTORS_H
#define NOH_TOOLS_DEMO_ACTORS_H

#include "bench/gather.h"
#include "noh.h"

#include <stdatomic.h>

enum { COUNTER_ADD, COUNTER_TELL, COUNTER_VALUE };  /* add; tell gather; answer the caller       */
enum { VISIT_ADD, VISIT_TELL, VISIT_ALARMS };       /* to every counter / alarm of a range       */
enum { DRIVER_GO };
enum { ALARM_SET, ALARM_RING };

struct demo_visit { uint64_t from, to; };           /* body of a VISIT_... */

struct demo_world {
	noh_actor        gather;
	noh_actor       *counters;                  /* references, for the drivers */
	uint64_t         actors;
	uint64_t         alarm_span_ms;
	_Atomic bool     drivers_stop;
	_Atomic uint64_t latest_ns;                 /* the worst delay of an alarm */
	_Atomic uint64_t early;                     /* alarms before their time: never */
};

/* Registers all types. idle_ms: after which a counter goes to storage. */
int demo_register(noh_box *box, struct demo_world *world, uint32_t idle_ms);

#endif
