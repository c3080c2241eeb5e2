/* net/status.c - why there is no answer: see status.h. */
#include "net/status.h"

#include "net/call.h"

static const struct status rows[] = {
	{ NOH_FULL, "MAILBOXFULL", 429, "mailbox_full", "the actor's mailbox is full; nothing was sent, try again later" },
	{ NOH_REFUSED, "REFUSED", 409, "refused", "the actor says no; nothing was done" },
	{ NOH_ENOMEM, "OOM", 503, "out_of_memory", "out of memory, or over the memory budget; nothing was changed" },
	{ NOH_EADDRESS, "BADADDRESS", 422, "bad_address", "a key has 1 to 247 bytes, an address is \"type:id\" of at most "
							  "255, and neither has a NUL byte" },
	{ NOH_ENOTYPE, "NOTYPE", 404, "no_type", "no such actor type is registered" },
	{ NOH_EKIND, "NOKIND", 422, "no_kind", "the type has no such message kind" },
	{ NOH_ETOOBIG, "TOOBIG", 413, "too_big", "the message is over the limit" },
	{ NOH_ESTOPPED, "STOPPING", 503, "stopping", "the server is stopping; nothing was changed" },
	{ NOH_EGONE, "GONE", 409, "gone", "the actor was deactivated before it came to this message" },
	{ NOH_ETIMEOUT, "TIMEOUT", 504, "timeout", "no answer in time; it may still take effect" },
	{ NOH_ECYCLE, "FAILED", 500, "failed", "waiting for this answer would close a circle of waiting actors" },
	{ NOH_EFAILED, "FAILED", 500, "failed", "the actor failed; the message had no effect" },
	{ NOH_ENOACTOR, "NOACTOR", 404, "no_actor", "no such actor is active" },
	{ NOH_EREADONLY, "FAILED", 500, "failed", "a message kind that only reads tried to change something" },
	{ NOH_EDISK, "DISKFAILED", 503, "disk_failed", "the disk failed: the server ends, a restart recovers" },
	{ NOH_ENOSPC, "READONLY", 507, "read_only", "no space left on disk: nothing was changed, reads go on" },
	{ NOH_ECORRUPT, "CORRUPT", 500, "corrupt", "what is stored of this actor is damaged; noh verify tells more" },
	{ NOH_EVERSION, "VERSION", 500, "version", "the actor was stored by another version, and no migration leads here" },
	{ NOH_EIDEM, "IDEMCONFLICT", 422, "idempotency_conflict", "the idempotency key was used with another message" },
	{ NOH_EPOISON, "QUARANTINED", 422, "quarantined", "the message crashed the server again and again; it was set aside" },
	{ NOH_ERATE, "RATE", 429, "over_rate", "over the limits of the actor's type; nothing was sent, try again later" },
	{ NOH_EQUARANTINED, "QUARANTINED", 503, "actor_quarantined", "the actor failed too often and takes no messages: noh quarantine "
								     "list says why, noh quarantine resume lets it go on" },
	{ NOH_EDEGRADED, "DEGRADED", 503, "degraded", "the actor failed too often and takes no messages now: try again later; noh "
						      "describe says why" },
	{ NOH_ETOOOLD, "TOOOLD", 410, "too_old", "the events behind this cursor are gone; begin with 0" },
	{ NOH_EINVAL, "ERR", 422, "invalid", "an argument makes no sense; idempotency keys need a server with a data "
					    "directory" },
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const struct status unheard = { 0, "FAILED", 500, "failed", NULL };

const struct status *status_of(int code)
{
	for (uint32_t i = 0; i < ROWS; i++)
		if (rows[i].code == code)
			return &rows[i];
	return &unheard;
}

uint32_t status_total(void)
{
	return ROWS;
}

const struct status *status_row(uint32_t index)
{
	return &rows[index];
}

void out_status(struct out *o, int status)
{
	const struct status *s = status_of(status);

	if (s->text)
		out_error(o, "-%s %s", s->word, s->text);
	else
		out_error(o, "-FAILED %s (%d)", noh_strerror(status), status);
}

void out_part_status(struct out *o, const struct reply_part *part)
{
	if (part->len == 0)
		out_status(o, part->status);
	else
		out_error(o, "-%s %.*s", status_of(part->status)->word, (int)(part->len < 400 ? part->len : 400),
			  (const char *)part->body);
}
