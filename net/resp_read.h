/* net/resp_read.h - bytes of a client, cut into commands (RESP2, RESP3 and inline).
 *
 * Owns     the places of the arguments found so far: offsets, so that the bytes may move between two calls.
 * Threads  one at a time.
 * Never    allocates by what is announced, only by what has arrived; looks at no byte twice because more came
 *          (the digits of one length excepted: twelve at most).
 *
 * Stricter than Redis where leniency helps nobody but an attacker: lengths are plain decimal (no sign, no
 * leading zero), and CR LF stands where it must. A line of an inline command ends with LF or CR LF.
 */
#ifndef NOH_NET_RESP_READ_H
#define NOH_NET_RESP_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arg {
	const char *at;
	uint32_t    len;
};

struct resp_limits {
	uint32_t args;             /* arguments of one command           */
	uint32_t arg_bytes;        /* of one argument                    */
	uint32_t command_bytes;    /* of a whole command                 */
	uint32_t inline_bytes;     /* of an inline command               */
};

#define RESP_ARGS_INSIDE 16        /* more are an allocation */

struct resp_place { uint32_t at, len; };
struct resp_reader {
	uint32_t want;             /* arguments announced; 0: between two commands             */
	uint32_t argc;             /* complete so far                                          */
	uint32_t at;               /* where to go on                                           */
	uint32_t bulk;             /* length of the argument under way + 1; 0: none            */
	uint32_t room;             /* of places: RESP_ARGS_INSIDE, or allocated                */
	struct resp_place *places; /* points to inside, or to an allocation                    */
	struct resp_place inside[RESP_ARGS_INSIDE];
	const char *why;           /* RESP_BAD: what is wrong, as Redis words it: "Protocol error: ..." */
	char why_text[40];         /* of the reasons that name a byte                          */
};

enum resp_result {
	RESP_COMMAND,              /* one is complete: resp_arg, then resp_next                */
	RESP_MORE,                 /* call again with the same bytes and more behind them      */
	RESP_NOTHING,              /* an empty line or an empty array: nothing to answer; resp_next and go on */
	RESP_BAD                   /* answer r->why and close                                  */
};

void resp_open(struct resp_reader *r);
void resp_close(struct resp_reader *r);

/* bytes: the same start as in the last call unless resp_next was called. They are written to in one case:
 * the quotes of an inline command are taken out of them when its line is complete. */
enum resp_result resp_read(struct resp_reader *r, char *bytes, size_t len,
			   const struct resp_limits *limits);

/* After RESP_COMMAND. */
static inline struct arg resp_arg(const struct resp_reader *r, const char *bytes, uint32_t i)
{
	return (struct arg){ bytes + r->places[i].at, r->places[i].len };
}

/* After RESP_COMMAND and RESP_NOTHING: how many bytes it took; the next command begins there. */
size_t resp_next(struct resp_reader *r);

#endif
