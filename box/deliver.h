/* box/deliver.h - what deliver.c gives to serve.c: the door's way in, and the way back.
 *
 * Owns     nothing.   Threads  the worker's.
 */
#ifndef NOH_BOX_DELIVER_H
#define NOH_BOX_DELIVER_H

#include "box/api.h"
#include "net/net.h"

/* net.h: struct net_door */
void door_prepare(void *arg, uint32_t worker, struct arrival *list, uint32_t n, bool behind);
int door_deliver(void *arg, uint32_t worker, struct arrival *a);
int door_step(void *arg, uint32_t worker, const struct request *requests, uint32_t n, uint32_t timeout_ms,
	      uint64_t token);

/* sched.h: struct sched_net */
void door_answer(void *arg, struct port *p, uint64_t token, uint64_t due, int status, const void *body,
		 size_t len);

#endif
