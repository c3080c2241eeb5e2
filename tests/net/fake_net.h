/* tests/net/fake_net.h - a connection and a box that only write down what they are asked.
 *
 * fake_run("incrby k 5") runs a line as a command; what it asked of actors is in fake.asked, as text, and its
 * reply in fake.out. fake_answer runs the format that the command left with the parts given.
 */
#ifndef NOH_TESTS_NET_FAKE_NET_H
#define NOH_TESTS_NET_FAKE_NET_H

#include "net/command.h"
#include "net/session.h"

enum { FAKE_CLIENTS = 3, FAKE_PARTS = 1024 };

struct fake {
	struct session session;
	struct out     out;
	noh_listen_options options;
	bool           reloads;            /* there are settings to read again               */
	bool           drains;             /* the program may be drained                     */
	bool           draining;
	uint32_t       drain_ms;           /* the deadline it was asked for                  */
	bool           accounts;           /* anna/secret: user, root/secret: admin          */
	bool           step;               /* the last command asked for a step              */
	char           asked[1 << 16];     /* "" if it asked nobody                          */
	char           audit[512];         /* what was told of the last call; "": nothing    */
	uint32_t       requests;
	format_fn     *format;
	struct tag     tag;
	char           note[4096];         /* of the last request: a copy                    */
	struct client  clients[FAKE_CLIENTS];
	uint64_t       killed;             /* bits by place in clients                       */
	uint32_t       changes, resets, shutdowns;
	uint32_t       login_waits_s, logins_failed;
	char           option[64];         /* what CONFIG SET set last                       */
	uint64_t       option_value;
	bool           muted;              /* by CLIENT REPLY                                */
	atomic_u64     calls[256];
	uint64_t       existing;           /* counters                                       */
	uint32_t       scan_limit;
};
extern struct fake fake;

void fake_open(int role);
void fake_close(void);
void fake_run(const char *line);                              /* forgets the reply before  */
void fake_run_args(const struct arg *argv, uint32_t argc);
void fake_answer(const struct reply_part *parts, uint32_t n);

#endif
