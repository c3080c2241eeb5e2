/* core/life_report.h - what the network is told when an actor was activated or deactivated for it.
 *
 * Owns     nothing.   Threads  any: it is a value.
 */
#ifndef NOH_CORE_LIFE_REPORT_H
#define NOH_CORE_LIFE_REPORT_H

#include <stdint.h>

struct life_report {
	uint64_t since_ms;         /* activated: when, wall clock; 0: not known                      */
	uint32_t came;             /* activated: 1, if it was not active before                      */
	uint32_t drained;          /* deactivated: messages that waited when it was asked to go, and were handled */
};

#endif
