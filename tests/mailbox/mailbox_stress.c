/* tests/mailbox/mailbox_stress.c - 4 producers through rings of 4 slots: laps, growth, detach and full
 * happen all the time. Checks that nothing is lost, doubled, or reordered within a producer, and that
 * one thread at a time runs the actor. */
#include "mailbox/mailbox.h"

#include "tests/lib/test.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#ifdef NOH_SANITIZED
#define EACH 20000u
#else
#define EACH 300000u
#endif
#define PRODUCERS 4
#define BOXES 3

struct actor {
	struct mailbox box;
	uint32_t       running;              /* plain memory of whoever runs it: a race shows a bug */
	uint32_t       last[PRODUCERS];
	uint64_t       handled;
};

static struct {
	struct rings rings;
	struct actor actors[BOXES];
	uint32_t     capacity, boxes;
	bool         shared, runs;      /* runs: several messages at a time, and a cursor takes them */
	atomic_u64   dropped, refused;
} s;

struct producer {
	uint32_t          id;
	struct ring_cache cache;
	struct mailroom   room;
	pthread_t         thread;
};

static void check(const struct msg *m, uint32_t *last, bool gaps)
{
	EXPECT(m->kind < PRODUCERS);
	EXPECT(gaps ? m->len > *last : m->len == *last + 1);
	EXPECT_EQ(m->reply, (uint64_t)m->kind << 32 | m->len);
	EXPECT_EQ(m->body.bytes[MSG_INLINE - 1], m->len & 0xff);
	*last = m->len;
}

static void handle(struct actor *a, struct slot *slot)
{
	check(&slot->msg, &a->last[slot->msg.kind], s.shared);
	a->handled++;
	mailbox_release(slot);
}

static void run(struct producer *p, struct actor *a)
{
	EXPECT_EQ(a->running, 0);
	a->running = 1;
	for (;;) {
		struct slot *slot;

		switch (mailbox_take(&a->box, &p->room, s.shared, &slot)) {
		case MB_TAKEN:
			handle(a, slot);
			if (s.runs) {
				struct mb_cursor cur;

				mailbox_cursor(&a->box, &p->room, &cur);
				while (mailbox_take_next(&a->box, &cur, &slot))
					handle(a, slot);
			}
			continue;
		case MB_UNPUBLISHED:
			sched_yield();
			continue;
		case MB_EMPTY:
			break;
		}
		a->running = 0;
		if (mailbox_idle(&a->box, &p->room, s.shared))
			return;
		a->running = 1;
	}
}

static struct msg message(struct producer *p, uint32_t number)
{
	struct msg m = { .kind = p->id, .len = number, .reply = (uint64_t)p->id << 32 | number };

	memset(m.body.bytes, (int)(number & 0xff), sizeof m.body.bytes);
	return m;
}

/* From number on, up to 7 of them; not more than there are. Returns how many. */
static uint32_t send_run(struct producer *p, struct actor *a, uint32_t number)
{
	struct msg msgs[7];
	const struct msg *order[7];
	uint32_t n = 1 + number * 5 % 7;

	n = n < EACH - number + 1 ? n : EACH - number + 1;
	for (uint32_t i = 0; i < n; i++) {
		msgs[i] = message(p, number + i);
		order[i] = &msgs[i];
	}
	switch (mailbox_push_run(&a->box, &p->room, 0, order, &n)) {
	case MB_PUSHED_WAKE:
		run(p, a);
		return n;
	case MB_PUSHED:
		return n;
	default:
		test_failed(__FILE__, __LINE__, "refused for no reason");
		return n;
	}
}

static void send(struct producer *p, struct actor *a, uint32_t number)
{
	struct msg m = message(p, number);

	for (;;) {
		struct slot *slot;

		switch (mailbox_push(&a->box, &p->room, 0, s.capacity, &m)) {
		case MB_PUSHED_WAKE:
			run(p, a);
			/* fall through */
		case MB_PUSHED:
			return;
		case MB_FULL:
			if (!s.shared || mailbox_drop(&a->box, &p->room, 0, &slot) != MB_TAKEN) {
				add_relaxed(&s.refused, 1);
				sched_yield();
				continue;
			}
			EXPECT_EQ(slot->msg.body.bytes[0], slot->msg.len & 0xff);
			add_relaxed(&s.dropped, 1);
			mailbox_release(slot);
			continue;
		case MB_GONE:
		case MB_NOMEM:
			test_failed(__FILE__, __LINE__, "refused for no reason");
			return;
		}
	}
}

static void *produce(void *arg)
{
	struct producer *p = (struct producer *)arg;

	for (uint32_t i = 1; s.runs && i <= EACH; )
		i += send_run(p, &s.actors[0], i);
	if (s.runs)
		return NULL;
	for (uint32_t i = 1; i <= EACH; i++)
		for (uint32_t k = 0; k < s.boxes; k++)
			send(p, &s.actors[k], i);
	return NULL;
}

static void stress(uint32_t boxes, uint32_t capacity, bool shared, bool runs)
{
	static struct producer producers[PRODUCERS];
	uint64_t handled = 0;

	memset(&s, 0, sizeof s);
	memset(producers, 0, sizeof producers);
	s.boxes = boxes;
	s.capacity = capacity;
	s.shared = shared;
	s.runs = runs;
	EXPECT(rings_open(&s.rings, 4096));
	for (uint32_t k = 0; k < boxes; k++)
		mailbox_born(&s.actors[k].box, MB_IDLE);
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		producers[i].id = i;
		producers[i].room = (struct mailroom){ &s.rings, &producers[i].cache };
		EXPECT(!pthread_create(&producers[i].thread, NULL, produce, &producers[i]));
	}
	for (uint32_t i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i].thread, NULL);
	for (uint32_t k = 0; k < boxes; k++) {
		EXPECT_EQ(mb_state(load_relaxed(&s.actors[k].box.word)), MB_IDLE);
		EXPECT_EQ(mailbox_depth(&s.actors[k].box), 0);
		handled += s.actors[k].handled;
		for (uint32_t i = 0; !shared && i < PRODUCERS; i++)
			EXPECT_EQ(s.actors[k].last[i], EACH);
	}
	EXPECT_EQ(handled + load_relaxed(&s.dropped), (uint64_t)boxes * PRODUCERS * EACH);
	rings_close(&s.rings);
}

static void every_producer_is_heard_in_order(void) { stress(1, UINT32_MAX, false, false); }
static void runs_of_every_producer_stay_in_order(void) { stress(1, UINT32_MAX, false, true); }
static void a_full_mailbox_refuses_and_loses_nothing(void) { stress(1, 3, false, false); }
static void mailboxes_trade_their_rings(void) { stress(BOXES, 2, false, false); }
static void the_oldest_makes_room_and_is_counted(void) { stress(1, 3, true, false); }
static void droppers_and_traded_rings(void) { stress(BOXES, 2, true, false); }

TEST_MAIN(
	TEST(every_producer_is_heard_in_order, "MB-01 MB-09"),
	TEST(runs_of_every_producer_stay_in_order, "MB-09"),
	TEST(a_full_mailbox_refuses_and_loses_nothing, "MB-04"),
	TEST(mailboxes_trade_their_rings),
	TEST(the_oldest_makes_room_and_is_counted, "MB-03"),
	TEST(droppers_and_traded_rings))
