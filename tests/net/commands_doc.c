/* tests/net/commands_doc.c - what is made of the table of commands: tools/commands.sh runs it.
 *
 *	commands_doc           docs/commands.md
 *	commands_doc --slots   net/command_slots.h
 */
#include "net/command.h"
#include "net/command_hash.h"
#include "net/redis_version.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ── net/command_slots.h ──────────────────────────────────────────────────────────────────────── */
static int slots(void)
{
	unsigned char table[COMMAND_SLOTS] = { 0 };

	for (uint32_t i = 0; i < command_total(); i++) {
		const char *name = command_row(i)->name;

		if (strchr(name, '|'))
			continue;
		uint32_t slot = command_hash(name, (uint32_t)strlen(name));

		while (table[slot])
			slot = (slot + 1) % COMMAND_SLOTS;
		table[slot] = (unsigned char)(i + 1);
	}
	printf("/* net/command_slots.h - where in the table a command's name is found. Made by tools/commands.sh. */\n"
	       "static const unsigned char command_slots[COMMAND_SLOTS] = {");
	for (int i = 0; i < COMMAND_SLOTS; i++)
		printf("%s%u,", i % 16 ? " " : "\n\t", table[i]);
	printf("\n};\n");
	return 0;
}

/* ── docs/commands.md ─────────────────────────────────────────────────────────────────────────── */
static const char before[] =
	"# Commands\n\n"
	"Made from the table in `net/command_table.c` by tools/commands.sh; `COMMAND DOCS` tells the same. These commands,\n"
	"and no others, are served over RESP2 and RESP3. Where Redis has a command of the same name, its documentation is the\n"
	"reference for replies and errors; what differs is said here. `redis_version` in `INFO` and `version` in `HELLO` are\n"
	"\"" REDIS_VERSION "\": the version of Redis whose wording and handshake the server follows, for clients that ask; noh's own\n"
	"is `noh_version`.\n\n"
	"- **Keys.** A plain key `k` is the actor `counter:k`, an article `s` is `inventory:s`. So keys have 1 to 247 bytes\n"
	"  (articles 245), and no NUL byte. A key holds a 64-bit integer; anything else is refused.\n"
	"- **IDEM.** A write with `IDEM idem` (1 to 255 bytes) takes effect once, however often it is sent to the same key; the\n"
	"  retry gets the first answer. The same `idem` with another command or other arguments is `IDEMCONFLICT`. Where any\n"
	"  number of keys may follow (DEL, UNLINK, MSET) a last but one argument `IDEM` is this option and never a key.\n"
	"- **IDEM with several keys.** For MSET and INV.RESERVEALL the order of the pairs does not matter: a retry in another\n"
	"  order is the same command, and is answered in its own order. Such an `idem` belongs to the lowest key named (byte by\n"
	"  byte): the same `idem` with another selection is `IDEMCONFLICT` if its lowest key is the same one, and else another\n"
	"  command. So name an order's articles in full when you try again. (Earlier it belonged to the first key named: what\n"
	"  was stored so is found again only if that was the lowest, too.) DEL and UNLINK ask each key by itself, with the same `idem`.\n"
	"- **On disk.** An answer to a write means that it is on disk, unless the server runs with another durability.\n"
	"- **Several keys.** MSET and INV.RESERVEALL happen at one instant, all or nothing. DEL, UNLINK, EXISTS, TOUCH and MGET\n"
	"  ask each key by itself; if one cannot answer, its error is the reply, and what happened to the others has happened.\n"
	"- **Roles.** user, developer, admin: each may do what those before it may. Without accounts everybody is admin.\n"
	"- **Times to live** go by the server's wall clock as it was when the server started, and on from there.\n"
	"  They end in the year 9999 at the latest; a later instant is refused.\n";

static const char after[] =
	"\n## Errors\n\nThe first word of an error stays; the sentence after it may change.\n\n"
	"| first word | what happened |\n| --- | --- |\n"
	"| `ERR` | the command or its arguments are wrong, in Redis's words where it has any |\n"
	"| `NOAUTH`, `WRONGPASS`, `NOPERM` | not logged in; wrong name or secret; the role may not |\n"
	"| `NOPROTO` | HELLO asked for a protocol other than 2 and 3 |\n"
	"| `BADADDRESS` | not a key, article or address: empty, too long, a NUL byte, no type |\n"
	"| `NOTYPE`, `NOKIND` | no such type of actor is registered; the type has no such kind of message |\n"
	"| `NOACTOR` | the actor is not in memory |\n"
	"| `MAILBOXFULL` | the actor's mailbox is full; nothing was sent |\n"
	"| `TOOBIG` | the message is over the limit |\n"
	"| `TIMEOUT` | no answer in time; it may still take effect (retry with IDEM) |\n"
	"| `IDEMCONFLICT` | the idempotency key was used with another message |\n"
	"| `READONLY` | no space left on disk: nothing was changed, reads go on |\n"
	"| `OOM` | out of memory, or over the memory budget; nothing was changed |\n"
	"| `REFUSED` | the actor says no, and why; nothing was done |\n"
	"| `FAILED` | the actor failed; the message had no effect |\n"
	"| `GONE` | the actor was deactivated by force before it came to the message |\n"
	"| `QUARANTINED` | the message crashed the server again and again, and was set aside; or its actor (or type) failed too "
	"often and takes none until it is resumed |\n"
	"| `DEGRADED` | the actor failed too often: it is tried again later, or was stopped |\n"
	"| `CORRUPT`, `VERSION` | what is stored of the actor is damaged, or of another version |\n"
	"| `DISKFAILED`, `STOPPING` | the disk failed and the server ends; the server is stopping |\n"
	"| `NOSKU` | the article was never restocked or counted |\n"
	"| `OUTOFSTOCK` | fewer are available than asked for; nothing was reserved |\n"
	"| `NOHOLD` | the article never gave this reservation |\n"
	"| `COMMITTED`, `RELEASED`, `EXPIRED` | what became of the reservation instead |\n"
	"| `FORGOTTEN` | the reservation ended so long ago that it is not known how |\n"
	"| `BADAMOUNT`, `OVERFLOW` | an amount below what makes sense; more than 63 bits can count |\n"
	"| `BELOWRESERVED` | a stock-take below what is reserved |\n"
	"\n## Not here\n\n"
	"`MULTI`, `EXEC`, `DISCARD`, `WATCH` and `UNWATCH` are refused in one sentence: there are no transactions over commands.\n"
	"Any other command is unknown, in Redis's words.\n";

static void upper(char *to, size_t size, const char *name)
{
	size_t i = 0;

	for (; name[i] && i + 1 < size; i++)
		to[i] = name[i] == '|' ? ' ' : (char)toupper((unsigned char)name[i]);
	to[i] = 0;
}

/* Inside a table: a bar would end the cell. */
static void cell(const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			putchar('\\');
		putchar(*text);
	}
}

static void row(const struct command *k)
{
	static const char *const roles[] = { "user", "developer", "admin" };
	char name[64];

	upper(name, sizeof name, k->name);
	printf("| `");
	cell(name);
	if (*k->syntax) {
		putchar(' ');
		cell(k->syntax);
	}
	printf("` | ");
	cell(k->summary);
	printf(" | ");
	cell(k->reply);
	printf(" | %s | %s |\n", k->flags & COMMAND_NO_AUTH ? "anybody" : roles[k->role], k->complexity);
}

static int document(void)
{
	static const char *const titles[GROUPS] = { "Connection", "Server", "Counters", "Keys", "Inventory", "Actors",
						    "Publish and subscribe", NULL };

	printf("%s", before);
	for (int group = 0; group < GROUPS; group++) {
		bool first = true;

		for (uint32_t i = 0; titles[group] && i < command_total(); i++) {
			const struct command *k = command_row(i);

			if (k->group != group || k->run == NULL || (k->flags & COMMAND_REFUSED))
				continue;
			if (first)
				printf("\n## %s\n\n| command | what it does | reply | who may | cost |\n"
				       "| --- | --- | --- | --- | --- |\n", titles[group]);
			first = false;
			row(k);
		}
	}
	printf("%s", after);
	return 0;
}

int main(int argc, char **argv)
{
	return argc > 1 && strcmp(argv[1], "--slots") == 0 ? slots() : document();
}
