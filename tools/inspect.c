/* tools/inspect.c - noh inspect: what is stored, read beside a running box if there is one. */
#include "tools/cli.h"
#include "tools/data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct data_verb verb = { "inspect", 1, 2, true, true };

/* ── in numbers ── */

static int type_line(void *user, const noh_stored_type *t)
{
	char a[24], tail[64] = "";

	(void)user;
	if (t->tail)
		snprintf(tail, sizeof tail, " (+ %" PRIu64 " records in the tail)", t->tail);
	printf("  %-22s version %-5u %14s%s\n", t->name, t->version,
	       cli_count(a, sizeof a, t->actors), tail);
	return 0;
}

static int type_json(void *user, const noh_stored_type *t)
{
	bool *any = user;

	printf("%s{\"type\":", *any ? "," : "");
	cli_json_text(t->name, strlen(t->name));
	printf(",\"version\":%u,\"schema\":\"%016" PRIx64 "\",\"actors\":%" PRIu64 ",\"tail\":%" PRIu64
	       "}", t->version, t->schema, t->actors, t->tail);
	*any = true;
	return 0;
}

static void line(const char *what, uint64_t number)
{
	char a[24];

	printf("%-18s %20s\n", what, cli_count(a, sizeof a, number));
}

static int numbers_json(const char *dir, const noh_dir_info *i)
{
	const struct { const char *name; uint64_t number; } all[] = {
		{ "stamp", i->stamp }, { "epoch", i->epoch }, { "journal_end", i->end },
		{ "tail_frames", i->end - i->stamp }, { "tail_records", i->tail_records },
		{ "torn_bytes", i->torn_bytes }, { "segments", i->segments },
		{ "journal_bytes", i->journal_bytes }, { "image_bytes", i->image_bytes },
		{ "actors", i->actors }, { "entries", i->entries }, { "pending", i->pending },
		{ "keys", i->keys }, { "key_bytes", i->key_bytes }, { "timers", i->timers },
		{ "dead_letters", i->dead_letters }, { "events", i->events }, { "event_bytes", i->event_bytes },
		{ "event_seq", i->event_seq },
	};
	bool any = false;

	printf("{\"format\":%u,\"id\":\"%016" PRIx64 "\",\"in_use\":%s", i->format, i->id,
	       i->in_use ? "true" : "false");
	for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
		printf(",\"%s\":%" PRIu64, all[k].name, all[k].number);
	printf(",\"types\":[");
	int rc = noh_check(dir, NULL, 0, type_json, &any);

	printf("]}\n");
	return rc == NOH_OK ? CLI_FINE : data_failed(verb.name, rc);
}

static int numbers_text(const char *dir, const noh_dir_info *i)
{
	char a[24];

	printf("%-18s %20u\n%-18s %20s\n%-18s     %016" PRIx64 "\n", "format", i->format, "in use",
	       i->in_use ? "yes" : "no", "id", i->id);
	line("image: frame", i->stamp);
	printf("%-18s %20s\n", "image: size", cli_bytes(a, sizeof a, i->image_bytes));
	line("journal: frame", i->end);
	line("  beyond image", i->end - i->stamp);
	line("  records there", i->tail_records);
	printf("%-18s %20s in %" PRIu64 " segments\n", "journal: size",
	       cli_bytes(a, sizeof a, i->journal_bytes), i->segments);
	if (i->torn_bytes)
		printf("%-18s %20s (fine: nobody was told of it)\n", "  torn tail",
		       cli_bytes(a, sizeof a, i->torn_bytes));
	line("actors", i->actors);
	int rc = noh_check(dir, NULL, 0, type_line, NULL);

	line("entries", i->entries);
	line("pending messages", i->pending);
	line("idempotency keys", i->keys);
	printf("%-18s %20s\n", "  bytes of them", cli_bytes(a, sizeof a, i->key_bytes));
	line("actors with timers", i->timers);
	line("dead letters", i->dead_letters);
	line("events", i->events);
	printf("%-18s %20s\n", "  bytes of them", cli_bytes(a, sizeof a, i->event_bytes));
	line("  the last one", i->event_seq);
	return rc == NOH_OK ? CLI_FINE : data_failed(verb.name, rc);
}

static int numbers(const struct data_words *w)
{
	noh_dir_info info;
	int rc = noh_inspect(w->plain[0], &info);

	if (rc != NOH_OK)
		return data_failed(verb.name, rc);
	return (w->json ? numbers_json : numbers_text)(w->plain[0], &info);
}

/* ── a list ── */

struct listing { bool json; uint64_t count, limit; };

static int say_address(void *user, const char *address)
{
	struct listing *l = user;

	if (l->json) {
		printf("%s", l->count ? "," : "");
		cli_json_text(address, strlen(address));
	} else {
		printf("%s\n", address);
	}
	return ++l->count == l->limit;
}

static int list(const struct data_words *w)
{
	struct listing l = { .json = w->json, .limit = w->limit };

	if (w->json)
		printf("[");
	int rc = noh_inspect_list(w->plain[0], w->type, say_address, &l);

	if (w->json)
		printf("]\n");
	return rc == NOH_OK ? CLI_FINE : data_failed(verb.name, rc);
}

/* ── one actor ── */

static const char *const piece_names[] = {
	"state", "timer", "no timers", "entry", "entry gone", "pending", "record", "erased", "handled",
	"sent", "key", "dead", "vitals"
};

static const char *wall(char *buf, size_t size, uint64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	char text[32];

	if (!gmtime_r(&seconds, &tm) || strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		snprintf(text, sizeof text, "%" PRIu64 " ms", ms);
	snprintf(buf, size, "%s.%03uZ", text, (unsigned)(ms % 1000));
	return buf;
}

static void hex_json(const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	putchar('"');
	for (size_t i = 0; i < len; i++)
		printf("%02x", at[i]);
	putchar('"');
}

static void dump(const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	for (size_t row = 0; row < len; row += 16) {
		printf("    %06zx ", row);
		for (size_t i = row; i < row + 16; i++)
			if (i < len)
				printf(" %02x", at[i]);
			else
				printf("   ");
		printf("  ");
		for (size_t i = row; i < row + 16 && i < len; i++)
			putchar(at[i] >= ' ' && at[i] <= '~' ? at[i] : '.');
		putchar('\n');
	}
}

static void say_key(const noh_piece *p)
{
	const unsigned char *at = p->key;
	bool plain = p->key_len > 0;

	for (size_t i = 0; i < p->key_len; i++)
		plain &= at[i] >= ' ' && at[i] <= '~';
	if (plain)
		printf(" \"%.*s\"", (int)p->key_len, (const char *)p->key);
	for (size_t i = 0; !plain && i < p->key_len; i++)
		printf("%s%02x", i ? "" : " 0x", at[i]);
}

static void say_value(const noh_piece *p)
{
	int64_t number;

	printf(", %zu bytes", p->len);
	if (p->len == sizeof number) {
		memcpy(&number, p->value, sizeof number);
		printf(", as a number %" PRId64, number);
	}
	printf("\n");
	dump(p->value, p->len);
}

struct showing { bool json, any, tail; };

static void heading(struct showing *s, const noh_piece *p)
{
	if (!s->any && !p->tail)
		printf("in the image, sequence %" PRIu64 "\n", p->seq);
	if (p->tail && !s->tail)
		printf("in the journal beyond the image\n");
	s->tail |= p->tail;
	s->any = true;
}

static void say_piece(const noh_piece *p)
{
	char a[48];

	printf("  %s", piece_names[p->what]);
	switch (p->what) {
	case NOH_PIECE_STATE:
		printf(", version %u, schema %" PRIx64, p->version, p->schema);
		say_value(p);
		return;
	case NOH_PIECE_TIMER:
		printf(" of kind %u, due %s", p->kind, wall(a, sizeof a, p->due_ms));
		if (p->period_ms)
			printf(", every %" PRIu64 " ms", p->period_ms);
		break;
	case NOH_PIECE_ENTRY:
	case NOH_PIECE_KEY:
		say_key(p);
		say_value(p);
		return;
	case NOH_PIECE_VITALS:
		say_value(p);
		return;
	case NOH_PIECE_ENTRY_GONE:
		say_key(p);
		break;
	case NOH_PIECE_RECORD:
	case NOH_PIECE_ERASED:
		printf(" in frame %" PRIu64 ", sequence %" PRIu64, p->frame, p->seq);
		break;
	case NOH_PIECE_HANDLED:
		printf(" message %016" PRIx64 "/%" PRIu64 "/%u", p->sender, p->sender_seq, p->index);
		break;
	case NOH_PIECE_SENT:
	case NOH_PIECE_PENDING:
	case NOH_PIECE_DEAD:
		printf(" message of kind %u, %016" PRIx64 "/%" PRIu64 "/%u", p->kind, p->sender,
		       p->sender_seq, p->index);
		if (p->what == NOH_PIECE_SENT) {
			printf(", to");
			say_key(p);
		}
		say_value(p);
		return;
	default:
		break;
	}
	printf("\n");
}

static void json_piece(const struct showing *s, const noh_piece *p)
{
	printf("%s{\"what\":\"%s\",\"tail\":%s,\"seq\":%" PRIu64, s->any ? "," : "", piece_names[p->what],
	       p->tail ? "true" : "false", p->seq);
	if (p->tail)
		printf(",\"frame\":%" PRIu64, p->frame);
	if (p->what == NOH_PIECE_STATE)
		printf(",\"version\":%u,\"schema\":\"%016" PRIx64 "\"", p->version, p->schema);
	if (p->what == NOH_PIECE_TIMER)
		printf(",\"due_ms\":%" PRIu64 ",\"period_ms\":%" PRIu64, p->due_ms, p->period_ms);
	if (p->what == NOH_PIECE_TIMER || p->what == NOH_PIECE_PENDING || p->what == NOH_PIECE_SENT ||
	    p->what == NOH_PIECE_DEAD)
		printf(",\"kind\":%u", p->kind);
	if (p->what == NOH_PIECE_PENDING || p->what == NOH_PIECE_HANDLED || p->what == NOH_PIECE_SENT)
		printf(",\"sender\":\"%016" PRIx64 "\",\"sender_seq\":%" PRIu64 ",\"index\":%u",
		       p->sender, p->sender_seq, p->index);
	if (p->key_len) {
		printf(",\"key\":");
		cli_json_text(p->key, p->key_len);
	}
	if (p->what == NOH_PIECE_STATE || p->what == NOH_PIECE_ENTRY || p->what == NOH_PIECE_PENDING ||
	    p->what == NOH_PIECE_SENT || p->what == NOH_PIECE_KEY) {
		printf(",\"hex\":");
		hex_json(p->value, p->len);
	}
	printf("}");
}

static int piece(void *user, const noh_piece *p)
{
	struct showing *s = user;

	if (s->json) {
		json_piece(s, p);
		s->any = true;
	} else {
		heading(s, p);
		say_piece(p);
	}
	return 0;
}

static int actor(const struct data_words *w)
{
	struct showing s = { .json = w->json };

	if (w->json)
		printf("[");
	int rc = noh_inspect_actor(w->plain[0], w->plain[1], piece, &s);

	if (w->json)
		printf("]\n");
	if (rc == NOH_OK)
		return CLI_FINE;
	int code = data_failed(verb.name, rc);

	return rc == NOH_ENOACTOR ? CLI_NOT_FOUND : rc == NOH_EADDRESS ? CLI_USAGE : code;
}

int inspect_main(int argc, char **argv)
{
	struct data_words w;
	int code;

	if (!data_words(&w, &verb, argc, argv, &code))
		return code;
	if (w.list && w.count == 2) {
		fprintf(stderr, "noh inspect: an address or --list, not both\n");
		return CLI_USAGE;
	}
	return w.list ? list(&w) : w.count == 2 ? actor(&w) : numbers(&w);
}
