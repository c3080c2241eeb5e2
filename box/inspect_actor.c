/* box/inspect_actor.c - everything that is stored of one actor, piece by piece. Reads only.
 *
 * The image first. Then the journal's tail: the actor's own records, and the messages others sent to it
 * there. Beside a running box the walk over the tail may have to begin again, so its pieces are kept as
 * records and handed out when the walk is over.
 */
#include "box/care.h"

#include "core/address.h"
#include "core/event.h"
#include "core/mem.h"

#include <string.h>

struct kept {
	struct kept *next;
	uint64_t     frame;
	size_t       len;                    /* of the record: head, address, parts             */
	bool         own;                    /* of this actor; else only what it sends to it    */
	_Alignas(8) uint8_t record[];
};

struct seen {
	const char   *address;
	size_t        len;
	noh_piece_fn *each;
	void         *user;
	bool          any, ended;
	struct kept  *first, **last;
};

static void give(struct seen *s, const noh_piece *piece)
{
	s->any = true;
	if (!s->ended)
		s->ended = s->each(s->user, piece) != 0;
}

/* ── parts, as pieces ── */

static void give_timers(struct seen *s, const struct part *p, noh_piece piece)
{
	struct part_timer t;

	if (p->len == 0 && piece.tail) {
		piece.what = NOH_PIECE_NO_TIMERS;
		give(s, &piece);
	}
	for (size_t at = 0; at + sizeof t <= p->len; at += sizeof t) {
		memcpy(&t, (const uint8_t *)p->data + at, sizeof t);
		piece.what = NOH_PIECE_TIMER;
		piece.kind = t.kind;
		piece.due_ms = t.due_ms;
		piece.period_ms = t.period_ms;
		give(s, &piece);
	}
}

static void set_id(noh_piece *piece, const struct message_id *id)
{
	piece->sender = id->sender;
	piece->sender_seq = id->seq;
	piece->index = id->index;
}

static void set_rest(noh_piece *piece, const struct part *p, size_t before)
{
	piece->value = (const uint8_t *)p->data + before;
	piece->len = p->len - before;
}

static void give_message(struct seen *s, const struct part *p, noh_piece piece, int what)
{
	struct part_emitted e;

	memcpy(&e, p->data, sizeof e);
	piece.what = what;
	piece.kind = e.kind;
	set_id(&piece, &e.id);
	set_rest(&piece, p, sizeof e + record_pad(e.from_len));
	give(s, &piece);
}

static void give_part(struct seen *s, const struct part *p, noh_piece piece)
{
	struct part_state state;
	struct part_dead dead;
	struct message_id id;
	noh_event event;

	piece.key = p->key;
	piece.key_len = p->key_len;
	piece.value = p->data;
	piece.len = p->len;
	switch (p->kind) {
	case PART_STATE:
		memcpy(&state, p->data, sizeof state);
		piece.what = NOH_PIECE_STATE;
		piece.version = state.version;
		piece.schema = state.schema;
		set_rest(&piece, p, sizeof state);
		break;
	case PART_TIMERS:
		give_timers(s, p, piece);
		return;
	case PART_VITALS:
		piece.what = NOH_PIECE_VITALS;
		break;
	case PART_PUT:
		piece.what = NOH_PIECE_ENTRY;
		break;
	case PART_DELETE:
		piece.what = NOH_PIECE_ENTRY_GONE;
		break;
	case PART_CONSUMED:
		memcpy(&id, p->data, sizeof id);
		piece.what = NOH_PIECE_HANDLED;
		set_id(&piece, &id);
		break;
	case PART_EMITTED:
		give_message(s, p, piece, piece.tail ? NOH_PIECE_SENT : NOH_PIECE_PENDING);
		return;
	case PART_IDEM:
		piece.what = NOH_PIECE_KEY;
		set_rest(&piece, p, sizeof(struct part_idem));
		break;
	case PART_DEAD:
		memcpy(&dead, p->data, sizeof dead);
		piece.what = NOH_PIECE_DEAD;
		piece.kind = dead.kind;
		set_id(&piece, &dead.id);
		set_rest(&piece, p, sizeof dead + record_pad(dead.reason_len));
		break;
	case PART_EVENT:
		if (!event_open(p->data, p->len, &event))
			return;
		piece.what = NOH_PIECE_EVENT;
		piece.key = event.kind;
		piece.key_len = strlen(event.kind);
		piece.value = event.data;
		piece.len = event.len;
		break;
	default:
		return;
	}
	give(s, &piece);
}

/* ── the image ── */

static int give_image(struct care *c, struct seen *s)
{
	struct db_loaded loaded = { 0 };
	struct part p;
	int rc = db_load(c->db, s->address, s->len, UINT64_MAX, &loaded);

	if (rc != NOH_OK)
		return rc == NOH_END ? NOH_OK : rc;
	const uint8_t *at = loaded.image, *end = at + loaded.len;

	s->any = true;
	if (parts_valid(at, end))
		while (part_next(&at, end, &p))
			give_part(s, &p, (noh_piece){ .seq = loaded.seq });
	mem_free(loaded.image, loaded.len);
	return NOH_OK;
}

/* ── the tail ── */

static bool sends_to(const struct seen *s, const uint8_t *parts, const uint8_t *end)
{
	struct part p;

	while (part_next(&parts, end, &p))
		if (p.kind == PART_EMITTED && p.key_len == s->len && memcmp(p.key, s->address, s->len) == 0)
			return true;
	return false;
}

static int keep(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
		const uint8_t *parts, const uint8_t *end)
{
	struct seen *s = arg;
	bool own = head->address_len == s->len && memcmp(record_address(head), s->address, s->len) == 0;

	(void)epoch;
	if ((head->flags & RECORD_NOTICE) || !parts_valid(parts, end) || (!own && !sends_to(s, parts, end)))
		return NOH_OK;
	struct kept *k = mem_alloc(sizeof *k + head->size);

	if (!k)
		return error_set(NOH_ENOMEM, "no memory for the records of %.*s", (int)s->len, s->address);
	*k = (struct kept){ .frame = frame, .len = head->size, .own = own };
	memcpy(k->record, head, head->size);
	*s->last = k;
	s->last = &k->next;
	return NOH_OK;
}

static void forget(void *arg)
{
	struct seen *s = arg;

	while (s->first) {
		struct kept *k = s->first;

		s->first = k->next;
		mem_free(k, sizeof *k + k->len);
	}
	s->last = &s->first;
}

static void give_record(struct seen *s, const struct kept *k)
{
	const struct record_head *head;
	const uint8_t *at = k->record, *parts, *end;
	struct part p;

	if (!record_next(&at, at + k->len, &head, &parts, &end))
		return;
	noh_piece piece = { .tail = true, .frame = k->frame, .seq = head->seq };

	if (k->own) {
		piece.what = head->flags & RECORD_GONE ? NOH_PIECE_ERASED : NOH_PIECE_RECORD;
		give(s, &piece);
	}
	while (part_next(&parts, end, &p)) {
		if (p.kind == PART_EMITTED && p.key_len == s->len && memcmp(p.key, s->address, s->len) == 0)
			give_message(s, &p, piece, NOH_PIECE_PENDING);
		if (k->own)
			give_part(s, &p, piece);
	}
}

static int give_tail(struct care *c, struct seen *s)
{
	struct care_walk w = { .again = forget, .each = keep, .arg = s };
	struct journal_end end;
	int rc = care_walk(c, &w, &end);

	for (struct kept *k = s->first; rc == NOH_OK && k && !s->ended; k = k->next)
		give_record(s, k);
	forget(s);
	return rc;
}

int noh_inspect_actor(const char *dir, const char *address, noh_piece_fn *each, void *user)
{
	char text[ADDRESS_MAX + 1];
	struct seen s = { .address = text, .each = each, .user = user, .last = &s.first };
	struct address a;
	struct care c;
	int rc = address_parse(&a, address, strlen(address));

	if (rc != NOH_OK)
		return rc;
	s.len = strlen(address);
	memcpy(text, address, s.len + 1);
	text[a.type_len] = ':';                  /* however it was written */
	rc = care_look(&c, dir);
	if (rc != NOH_OK)
		return rc;
	rc = give_image(&c, &s);
	if (rc == NOH_OK)
		rc = give_tail(&c, &s);
	if (rc == NOH_OK && !s.any)
		rc = error_set(NOH_ENOACTOR, "nothing is stored of %s in %s", text, c.dir.path);
	care_close(&c);
	return rc;
}
