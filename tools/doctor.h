/* tools/doctor.h - noh doctor: one line per check, ok, warn or fail, with what to do.
 *
 * Owns     nothing.   Threads  the main thread.
 * Never    changes anything: not the data directory, not the machine, not the server.
 */
#ifndef NOH_TOOLS_DOCTOR_H
#define NOH_TOOLS_DOCTOR_H

#include "noh.h"
#include "tools/words.h"

int doctor_main(int argc, char **argv);

/* ── between its parts ── */

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL };

enum { DOCTOR_HEARD = 64 };

struct doctor {
	struct words   *words;
	const struct settings *settings;
	bool            is_volatile;       /* durability none: no data directory                    */
	bool            known;             /* dir is filled                                         */
	noh_dir_info    dir;
	bool            running;           /* a server has the data directory open                  */
	unsigned        count[3];          /* by verdict                                            */
	unsigned        printed;
	struct { bool is_wrong; char *sentence; } said[DOCTOR_HEARD];      /* about settings */
	unsigned        heard;
};

/* what: a short name; todo: what to do about it, "" if there is nothing to do. */
void doctor_say(struct doctor *d, enum verdict v, const char *what, const char *todo, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* A small file of the system, its first line without the newline. False: it cannot be read. */
bool doctor_line(const char *path, char *line, size_t size);
bool doctor_number(const char *path, uint64_t *number);

/* doctor_place.c: data directory, disk, users, ports, sockets */
void doctor_place(struct doctor *d);
void doctor_door(struct doctor *d);

/* doctor_machine.c: limits, memory, kernel, clock */
void doctor_machine(struct doctor *d);

#endif
