/* tests/box/scan_kit.h - what the tests of noh_scan share: actors "c:17" that can be made, asked, erased
 * and sent to storage, and scans that note how often each was told. */
#ifndef NOH_TESTS_BOX_SCAN_KIT_H
#define NOH_TESTS_BOX_SCAN_KIT_H

#include "tests/box/durable_kit.h"

#include "box/api.h"

enum { ADD, GET, ERASE, PUT, STOP, LOOK, TELL };

static void (*looks)(noh_box *box);      /* LOOK: called inside the turn */
enum { MOST = 20000, SOON = 60000 };     /* SOON: ms, far more than anything here takes */

static inline int on_message(noh_turn *t, const noh_msg *m)
{
	int64_t n = m->len >= 8 ? *(const int64_t *)m->body : 0;

	switch (m->kind) {
	case ADD:
		*(int64_t *)noh_state(t) += n;
		return noh_reply(t, noh_look(t), 8);
	case GET:
		return noh_reply(t, noh_look(t), 8);
	case ERASE:
		return noh_erase(t);
	case PUT:
		return noh_kv_put(t, "k", 1, "v", 1);
	case STOP:
		return noh_stop_self(t);
	case TELL:
		return noh_tell_to(t, "c:2", GET, NULL, 0);
	case LOOK:
		looks(noh_turn_box(t));
		return NOH_OK;
	}
	return NOH_EINVAL;
}

static const noh_type types[] = {
	{ .name = "c", .state_size = 8, .on_message = on_message, .full_mode = NOH_BLOCK,
	  .mailbox_capacity = 100000 },
	{ .name = "d", .state_size = 8, .on_message = on_message, .full_mode = NOH_BLOCK,
	  .mailbox_capacity = 100000 },
	{ .name = "v", .state_size = 8, .on_message = on_message, .is_volatile = true, .full_mode = NOH_BLOCK },
};
#define TYPES_HERE (sizeof types / sizeof types[0])

/* ── scanning ── */

struct told { uint16_t times[MOST]; uint32_t all, twice, strange, active, calls; char type; };

static inline void each(void *user, const noh_scanned *a)
{
	struct told *t = user;
	unsigned long id = a->len > 2 ? strtoul(a->address + 2, NULL, 10) : MOST;

	EXPECT_EQ(strlen(a->address), a->len);
	t->all++;
	t->active += a->active;
	if (a->address[0] != t->type || a->address[1] != ':' || id >= MOST) {
		t->strange++;
		return;
	}
	t->twice += t->times[id] == 1;
	t->times[id]++;
}

static inline void go_on(noh_box *box, const char *type, uint64_t *cursor, uint32_t limit, struct told *t)
{
	do {
		uint32_t before = t->all;

		if (!EXPECT_EQ(noh_scan(box, type, cursor, limit, each, t), NOH_OK)) {
			fprintf(stderr, "%s\n", noh_why());
			return;
		}
		t->calls++;
		EXPECT(t->all - before <= limit);
	} while (*cursor && EXPECT(t->calls < 1000000));
}

static inline void scan_all(noh_box *box, const char *type, uint32_t limit, struct told *t)
{
	uint64_t cursor = 0;

	memset(t, 0, sizeof *t);
	t->type = type[0];
	go_on(box, type, &cursor, limit, t);
}

static struct told told;

/* Exactly those with is(id), each once, however many are asked for at a time. */
static inline bool tells(noh_box *box, const char *type, uint32_t upto, bool (*is)(uint32_t id))
{
	static const uint32_t limits[] = { 1, 10, 333, 10000 };
	uint32_t count = 0;
	bool ok = true;

	for (uint32_t id = 0; id < upto; id++)
		count += is(id);
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		if (limits[i] < upto / 200)
			continue;
		scan_all(box, type, limits[i], &told);
		for (uint32_t id = 0; ok && id < MOST; id++)
			ok = EXPECT_EQ(told.times[id], id < upto && is(id));
		ok = EXPECT_EQ(told.all, count) && EXPECT_EQ(told.strange, 0) && ok;
	}
	return ok;
}

static inline uint64_t existing(noh_box *box, const char *type)
{
	noh_type_stats s;

	EXPECT_EQ(noh_get_type_stats(box, type, &s), NOH_OK);
	return s.existing;
}

static inline bool is_counted(void *box)
{
	noh_type_stats s;

	return noh_get_type_stats(box, "c", &s) == NOH_OK && !s.counting;
}

/* ── making ── */

static inline int say(noh_box *box, char type, uint32_t id, uint32_t kind)
{
	char address[16];
	int64_t one = 1;

	snprintf(address, sizeof address, "%c:%u", type, id);
	return noh_call(box, address, kind, &one, 8, SOON, NULL, NULL);
}

static inline void send_all(noh_box *box, char type, uint32_t from, uint32_t upto, uint32_t kind,
			    bool (*is)(uint32_t id))
{
	char address[16];
	int64_t one = 1;

	for (uint32_t id = from; id < upto; id++) {
		if (is && !is(id))
			continue;
		snprintf(address, sizeof address, "%c:%u", type, id);
		EXPECT_EQ(noh_send_wait(box, address, kind, &one, 8, SOON), NOH_OK);
	}
	EXPECT_EQ(say(box, type, from, GET), NOH_OK);
}

struct range { noh_box *box; char type; uint32_t from, upto; };

static inline bool handled_all(void *arg)
{
	struct range *r = arg;
	noh_type_stats s;

	return noh_get_type_stats(r->box, (char[]){ r->type, 0 }, &s) == NOH_OK &&
	       s.accepted == s.handled + s.failed;
}

static inline bool all_home(void *arg)
{
	struct range *r = arg;

	for (; r->from < r->upto; r->from++) {
		noh_status s;
		char address[16];

		snprintf(address, sizeof address, "%c:%u", r->type, r->from);
		if (noh_get_status(r->box, address, &s) != NOH_OK || s.life != NOH_NOT_ACTIVE)
			return false;
	}
	return true;
}

static inline void settle(noh_box *box, const char *type)
{
	EXPECT(test_wait_until(handled_all, &(struct range){ box, type[0], 0, 0 }, SOON));
}

static inline void send_home(noh_box *box, const char *type, uint32_t from, uint32_t upto)
{
	send_all(box, type[0], from, upto, STOP, NULL);
	settle(box, type);
	EXPECT_EQ(say(box, type[0], from, STOP), NOH_OK);    /* send_all has asked it something */
	EXPECT(test_wait_until(all_home, &(struct range){ box, type[0], from, upto }, SOON));
}

static inline bool folded(void *arg)
{
	noh_box_stats s;

	return noh_get_stats(arg, &s) == NOH_OK && s.journal_unfolded == 0 && !s.folding;
}

static inline void fold(noh_box *box)
{
	EXPECT_EQ(noh_sync(box, SOON), NOH_OK);
	do
		keeper_ask(&box->disk.keeper);
	while (!test_wait_until(folded, box, 200));
}

static inline noh_box *open_plain(unsigned workers)
{
	noh_options o = { .workers = workers, .unpinned = true, .max_actors = 100000 };
	noh_box *box = NULL;

	EXPECT_EQ(noh_open(&box, &o), NOH_OK);
	for (size_t i = 0; i < TYPES_HERE; i++)
		EXPECT_EQ(noh_register(box, &types[i]), NOH_OK);
	EXPECT_EQ(noh_start(box), NOH_OK);
	return box;
}

#endif
