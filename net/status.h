/* net/status.h - why there is no answer, in words that stay, for both protocols: one table.
 *
 * Owns     nothing: the table is constant. docs/commands.md and docs/http.md list it.
 * Threads  any.
 */
#ifndef NOH_NET_STATUS_H
#define NOH_NET_STATUS_H

#include <stdint.h>

struct status {
	int         code;          /* NOH_FULL, NOH_E...                                       */
	const char *word;          /* RESP: the first word of the error                        */
	uint16_t    http;
	const char *name;          /* HTTP: "code" of the problem                              */
	const char *text;
};

const struct status *status_of(int code);        /* what nobody has heard of is FAILED, 500 */
uint32_t status_total(void);
const struct status *status_row(uint32_t index);

#endif
