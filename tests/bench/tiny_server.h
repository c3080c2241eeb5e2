/* tests/bench/tiny_server.h - a RESP server of one thread, as small as a test of its clients allows.
 *
 * Knows PING, INCR, GET, SET, AUTH, SUBSCRIBE, PUBLISH, INV.RESTOCK, INV.RESERVE, INV.COMMIT, INV.GET, on a Unix
 * socket; and can be told to misbehave, for what a generator must notice.
 *
 * Owns     its thread, its sockets, its socket file.
 * Threads  started and stopped by the test; faults are set before the start.
 */
#ifndef NOH_TESTS_BENCH_TINY_SERVER_H
#define NOH_TESTS_BENCH_TINY_SERVER_H

#include <stdbool.h>
#include <stdint.h>

struct tiny_faults {
	uint32_t swallow;        /* the reply with this number (from 1) is not sent              */
	uint32_t twice;          /* this one is sent twice                                       */
	uint32_t error;          /* this one is an error                                         */
	uint32_t text;           /* this one is +OK, whatever was asked                          */
	uint32_t garbage;        /* this one is no RESP                                          */
	uint32_t hang_up;        /* every connection is closed before this reply, once           */
	uint32_t stall;          /* before this reply nothing happens for stall_ms               */
	uint32_t stall_ms;
	uint32_t oversell;       /* so many units more than there are are given away             */
	uint32_t lose;           /* so many published messages do not reach the first subscriber */
	bool     same_hold;      /* all reservations have the same id                            */
	bool     dribble;        /* replies leave byte by byte                                   */
	const char *token;       /* AUTH it or be refused                                        */
};

struct tiny_server;
struct tiny_server *tiny_start(const struct tiny_faults *faults);
const char *tiny_path(const struct tiny_server *s);
uint64_t    tiny_commands(const struct tiny_server *s);         /* served so far; AUTH is none */
uint64_t    tiny_hangups(const struct tiny_server *s);
void        tiny_stop(struct tiny_server *s);

#endif
