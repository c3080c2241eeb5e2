/* net/status.c - why there is no answer, in words that stay: docs/commands.md lists them. */
#include "net/call.h"

static const char *words(int status)
{
	switch (status) {
	case NOH_FULL:      return "-MAILBOXFULL the actor's mailbox is full; nothing was sent, try again later";
	case NOH_REFUSED:   return "-REFUSED the actor says no; nothing was done";
	case NOH_ENOMEM:    return "-OOM out of memory, or over the memory budget; nothing was changed";
	case NOH_EADDRESS:  return "-BADADDRESS a key has 1 to 247 bytes, an address is \"type:id\" of at most 255, "
				   "and neither has a NUL byte";
	case NOH_ENOTYPE:   return "-NOTYPE no such actor type is registered";
	case NOH_EKIND:     return "-NOKIND the type has no such message kind";
	case NOH_ETOOBIG:   return "-TOOBIG the message is over the limit";
	case NOH_ESTOPPED:  return "-STOPPING the server is stopping; nothing was changed";
	case NOH_EGONE:     return "-GONE the actor was deactivated before it came to this message";
	case NOH_ETIMEOUT:  return "-TIMEOUT no answer in time; it may still take effect";
	case NOH_ECYCLE:    return "-FAILED waiting for this answer would close a circle of waiting actors";
	case NOH_EFAILED:   return "-FAILED the actor failed; the message had no effect";
	case NOH_ENOACTOR:  return "-NOACTOR no such actor is active";
	case NOH_EREADONLY: return "-FAILED a message kind that only reads tried to change something";
	case NOH_EDISK:     return "-DISKFAILED the disk failed: the server ends, a restart recovers";
	case NOH_ENOSPC:    return "-READONLY no space left on disk: nothing was changed, reads go on";
	case NOH_ECORRUPT:  return "-CORRUPT what is stored of this actor is damaged; noh verify tells more";
	case NOH_EVERSION:  return "-VERSION the actor was stored by another version, and no migration leads here";
	case NOH_EIDEM:     return "-IDEMCONFLICT the idempotency key was used with another message";
	case NOH_EPOISON:   return "-QUARANTINED the message crashed the server again and again; it was set aside";
	case NOH_EINVAL:    return "-ERR an argument makes no sense; idempotency keys need a server with a data "
				   "directory";
	default:            return NULL;
	}
}

void out_status(struct out *o, int status)
{
	const char *text = words(status);

	if (text)
		out_error(o, "-%s", text + 1);
	else
		out_error(o, "-FAILED %s (%d)", noh_strerror(status), status);
}

void out_part_status(struct out *o, const struct reply_part *part)
{
	const char *text = words(part->status);
	int first = 0;

	if (part->len == 0) {
		out_status(o, part->status);
		return;
	}
	if (text == NULL)
		text = "-FAILED";
	while (text[first] && text[first] != ' ')
		first++;
	out_error(o, "-%.*s %.*s", first - 1, text + 1, (int)(part->len < 400 ? part->len : 400),
		  (const char *)part->body);
}
