/* tests/net/command_kit.h - what tests of commands say: this line is answered so, that one asks for this. */
#ifndef NOH_TESTS_NET_COMMAND_KIT_H
#define NOH_TESTS_NET_COMMAND_KIT_H

#include "noh_actors.h"
#include "tests/lib/test.h"
#include "tests/net/fake_net.h"

#include <stdio.h>
#include <string.h>

static inline bool wrote(const char *expected, const char *file, int line)
{
	bool same = fake.out.len == strlen(expected) && memcmp(fake.out.bytes, expected, fake.out.len) == 0;

	if (!same)
		test_failed(file, line, "wrote %.*s and not %s", (int)fake.out.len, fake.out.bytes ? fake.out.bytes : "",
			    expected);
	return same;
}

/* Answered at once, and nobody was asked. */
static inline bool replies(const char *line, const char *expected, const char *file, int at)
{
	fake_run(line);
	if (fake.format)
		test_failed(file, at, "%s asked %s", line, fake.asked);
	return wrote(expected, file, at);
}

/* Nothing is answered yet, and this was asked. */
static inline bool asks(const char *line, const char *expected, const char *file, int at)
{
	fake_run(line);
	if (fake.out.len || strcmp(fake.asked, expected) != 0) {
		test_failed(file, at, "%s asked '%s' and not '%s', and wrote %.*s", line, fake.asked, expected,
			    (int)fake.out.len, fake.out.bytes ? fake.out.bytes : "");
		return false;
	}
	return true;
}

#define REPLIES(line, expected) replies(line, expected "\r\n", __FILE__, __LINE__)
#define ASKS(line, expected) asks(line, expected, __FILE__, __LINE__)
#define WROTE(expected) wrote(expected "\r\n", __FILE__, __LINE__)

/* The answer of the one actor that was asked last. */
#define ANSWERS(body, expected)                                                                            \
	do {                                                                                               \
		fake.out.len = 0;                                                                          \
		fake_answer(&(struct reply_part){ NOH_OK, sizeof(body), &(body) }, 1);                            \
		WROTE(expected);                                                                           \
	} while (0)
#define FAILS(status, expected)                                                                            \
	do {                                                                                               \
		fake.out.len = 0;                                                                          \
		fake_answer(&(struct reply_part){ status, 0, NULL }, 1);                                          \
		WROTE(expected);                                                                           \
	} while (0)

#define SYNTAX "-ERR syntax error"
#define NOT_INT "-ERR value is not an integer or out of range"
#define NO_VALUE NOT_INT ": a key holds a 64-bit integer here"
#define ARITY(name) "-ERR wrong number of arguments for '" name "' command"

#endif
