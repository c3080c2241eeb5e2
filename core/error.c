/* core/error.c - the table of texts and the sentence of the thread. */
#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char why[512];

const char *noh_why(void)
{
	return why;
}

const char *noh_version(void)
{
	return NOH_VERSION;
}

int error_set(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	return code;
}

void error_clear(void)
{
	why[0] = 0;
}

const char *noh_strerror(int code)
{
	switch (code) {
	case NOH_OK: return "ok";
	case NOH_FULL: return "mailbox full";
	case NOH_NOBODY: return "nobody waits for this answer";
	case NOH_END: return "no further entry";
	case NOH_REFUSED: return "refused";
	case NOH_ENOMEM: return "out of memory";
	case NOH_EINVAL: return "invalid argument";
	case NOH_EADDRESS: return "not an address";
	case NOH_ENOTYPE: return "no such type";
	case NOH_EKIND: return "no such message kind";
	case NOH_ETOOBIG: return "too big";
	case NOH_EEXISTS: return "registered already";
	case NOH_ESTOPPED: return "box is not running";
	case NOH_EREPLIED: return "answered already";
	case NOH_EINTURN: return "blocking call inside a turn";
	case NOH_EGONE: return "stale reference";
	case NOH_ETIMEOUT: return "timed out";
	case NOH_ECYCLE: return "circle of waiting actors";
	case NOH_EFAILED: return "turn failed";
	case NOH_ENOACTOR: return "actor is not active";
	case NOH_ESYSTEM: return "system error";
	case NOH_EREADONLY: return "read-only message kind";
	case NOH_EDISK: return "disk failure";
	case NOH_ENOSPC: return "no space left on disk";
	case NOH_ECORRUPT: return "damaged file";
	case NOH_EINUSE: return "data directory is in use";
	case NOH_EVERSION: return "stored by another version";
	case NOH_EIDEM: return "idempotency key reused";
	case NOH_EPOISON: return "message set aside";
	case NOH_ERATE: return "over its rate";
	case NOH_EQUARANTINED: return "actor is quarantined";
	case NOH_EDEGRADED: return "actor is degraded";
	case NOH_ETOOOLD: return "events are gone";
	}
	return code < 0 ? "the actor's own error" : "unknown result";
}
