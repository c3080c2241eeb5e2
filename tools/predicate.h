/* tools/predicate.h - what noh wait waits for: 'state=active and revision>=3'.
 *
 *     all    = one { "or" one }          one  = part { "and" part }          part = "not" part | "(" all ")" | test
 *     test   = field op value            op   = "=" "!=" ">=" "<=" ">" "<"   ("==" is "=")
 *     value  = word | number | 'text' | "text" | field that is a number
 *
 * Strict: what is not of this form, a field there is not, a state there is not, a number that is none are refused with one
 * sentence and the place. It is read into a list of steps that need no memory and no recursion to be tried.
 *
 * Owns     nothing but itself.   Threads  one.
 */
#ifndef NOH_TOOLS_PREDICATE_H
#define NOH_TOOLS_PREDICATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PREDICATE_MAX = 1000, PREDICATE_STEPS = 128, PREDICATE_DEPTH = 32 };

enum predicate_field {
	FACT_STATE, FACT_HEALTH, FACT_PARENT, FACT_ERROR, FACT_FAILURE, FACT_EVENT, FACT_EXISTS,       /* texts   */
	FACT_REVISION, FACT_DESIRED, FACT_RESTARTS, FACT_MAILBOX, FACT_CHILDREN,                       /* numbers */
	FACTS
};

struct predicate_step {
	uint8_t  op;                       /* enum in predicate.c                                   */
	uint8_t  field;
	uint8_t  other;                    /* the value is this field's; FACTS: it is not           */
	bool     seen;                     /* event=...: there was one                              */
	uint16_t text, len;                /* the value, in predicate.text                          */
	uint64_t number;
};

struct predicate {
	struct predicate_step steps[PREDICATE_STEPS];
	unsigned count;
	char     text[PREDICATE_MAX + 1];
};

/* Texts are never NULL; FACT_EVENT is predicate_event's. */
struct predicate_facts {
	const char *text[FACT_REVISION];
	uint64_t    number[FACTS];         /* by field: from FACT_REVISION on                       */
};

/* False: why is a sentence, and *at the place in text, from 0. */
bool predicate_read(struct predicate *p, const char *text, size_t *at, char *why, size_t size);

bool predicate_holds(const struct predicate *p, const struct predicate_facts *facts);
void predicate_event(struct predicate *p, const char *kind);     /* one of this kind has happened */

#endif
