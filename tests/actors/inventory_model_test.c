/* tests/actors/inventory_model_test.c - a hundred thousand random messages to two inventories, on a clock that
 * jumps from instant to instant, against a model that is one table of holds. Every answer must be the model's,
 * and the list of holds as well, through idle times, storage and restarts. */
#include "tests/actors/kit.h"

enum { SKUS = 2, STEPS = 100000, HOLDS = STEPS + 1 };
enum state { OPEN, COMMITTED, RELEASED, EXPIRED };

struct hold { enum state state; int64_t n, until, ended; };     /* until: -1: none */
static struct model {
	bool         known;
	int64_t      on_hand, sold, restocked, adjusted;
	uint64_t     next;
	uint64_t     open_from;                                 /* all below have ended, and long ago */
	struct hold *holds;
} models[SKUS];
static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
	return test_random(&random_state) % below;
}

/* Time passes for the model. */
static int64_t reserved(struct model *m)
{
	int64_t sum = 0;

	for (uint64_t i = m->open_from; i < m->next; i++) {
		struct hold *h = &m->holds[i];

		if (h->state == OPEN && h->until >= 0 && h->until <= kit_wall()) {
			h->state = EXPIRED;
			h->ended = h->until;
		}
		if (h->state == OPEN)
			sum += h->n;
	}
	while (m->open_from < m->next && m->holds[m->open_from].state != OPEN)
		m->open_from++;
	return sum;
}

static void check_stock(struct model *m, uint32_t outcome)
{
	noh_inventory_stock a;
	int64_t held = reserved(m);
	uint32_t open = 0;

	for (uint64_t i = m->open_from; i < m->next; i++)
		open += m->holds[i].state == OPEN;
	memcpy(&a, k.heard.body, sizeof a);
	EXPECT_EQ(k.heard.len, sizeof a);
	EXPECT_EQ(a.outcome, outcome);
	EXPECT_EQ(a.on_hand, m->on_hand);
	EXPECT_EQ(a.reserved, held);
	EXPECT_EQ(a.available, m->on_hand - held);
	EXPECT_EQ(a.sold, m->sold);
	EXPECT_EQ(a.restocked, m->restocked);
	EXPECT_EQ(a.adjusted, m->adjusted);
	EXPECT_EQ(a.holds, open);
}

static void do_reserve(const char *address, struct model *m)
{
	noh_inventory_reserve b = { (int64_t)draw(8) - 1, draw(3) ? (int64_t)(1 + draw(200)) : 0 };
	int64_t free = m->on_hand - reserved(m);
	noh_inventory_reserved a;

	if (b.ttl_ms && draw(50) == 0)
		b.ttl_ms = (int64_t)draw(365) * DAY + 1;
	EXPECT_EQ(kit_call(address, NOH_INVENTORY_RESERVE, &b, b.ttl_ms ? 16 : 8, NULL), NOH_OK);
	memcpy(&a, k.heard.body, sizeof a);
	if (b.n <= 0 || !m->known || b.n > free) {
		EXPECT_EQ(a.outcome, b.n <= 0 ? NOH_INVENTORY_BAD_AMOUNT : !m->known ? NOH_INVENTORY_NO_SKU
										   : NOH_INVENTORY_SHORT);
		EXPECT_EQ(a.available, free);
		EXPECT_EQ(a.reservation, 0);
		return;
	}
	EXPECT_EQ(a.outcome, NOH_INVENTORY_OK);
	EXPECT_EQ(a.reservation, m->next);
	EXPECT_EQ(a.available, free - b.n);
	m->holds[m->next] = (struct hold){ .n = b.n, .until = b.ttl_ms ? kit_wall() + b.ttl_ms : -1 };
	EXPECT_EQ(a.expires, m->holds[m->next].until);
	m->next++;
}

static void do_end(const char *address, struct model *m, bool commits)
{
	static const uint32_t told[] = { [COMMITTED] = NOH_INVENTORY_COMMITTED, [RELEASED] = NOH_INVENTORY_RELEASED,
					 [EXPIRED] = NOH_INVENTORY_EXPIRED };
	enum state how = commits ? COMMITTED : RELEASED;
	uint64_t back = draw(4) ? draw(30) : draw(3000), id = back >= m->next ? back : m->next - back;
	noh_inventory_ended a;
	struct hold *h = NULL;

	(void)reserved(m);
	EXPECT_EQ(kit_call(address, commits ? NOH_INVENTORY_COMMIT : NOH_INVENTORY_RELEASE, &id, 8, NULL), NOH_OK);
	memcpy(&a, k.heard.body, sizeof a);
	EXPECT_EQ(a.reservation, id);
	if (!m->known || id == 0 || id >= m->next) {
		EXPECT_EQ(a.outcome, m->known ? NOH_INVENTORY_NO_HOLD : NOH_INVENTORY_NO_SKU);
		return;
	}
	h = &m->holds[id];
	if (h->state == OPEN) {
		EXPECT_EQ(a.outcome, NOH_INVENTORY_OK);
		h->state = how;
		h->ended = kit_wall();
		m->on_hand -= commits ? h->n : 0;
		m->sold += commits ? h->n : 0;
	} else if (h->ended + NOH_INVENTORY_KEPT_MS <= kit_wall() && a.outcome == NOH_INVENTORY_FORGOTTEN) {
		EXPECT_EQ(a.n, 0);               /* (expired ones are remembered from when they were noticed) */
		return;
	} else {
		EXPECT_EQ(a.outcome, h->state == how ? NOH_INVENTORY_OK : told[h->state]);
	}
	EXPECT_EQ(a.n, h->n);
}

static void do_restock(const char *address, struct model *m)
{
	int64_t n = (int64_t)draw(20) - 2;

	EXPECT_EQ(kit_call(address, NOH_INVENTORY_RESTOCK, &n, 8, NULL), NOH_OK);
	if (n > 0) {
		m->on_hand += n;
		m->restocked += n;
		m->next = m->known ? m->next : 1;
		m->open_from = m->known ? m->open_from : 1;
		m->known = true;
	}
	check_stock(m, n > 0 ? NOH_INVENTORY_OK : NOH_INVENTORY_BAD_AMOUNT);
}

static void do_set(const char *address, struct model *m)
{
	int64_t n = m->on_hand + (int64_t)draw(21) - 10;
	uint32_t outcome = n < 0 ? NOH_INVENTORY_BAD_AMOUNT : n < reserved(m) ? NOH_INVENTORY_BELOW_RESERVED
									    : NOH_INVENTORY_OK;

	EXPECT_EQ(kit_call(address, NOH_INVENTORY_SET, &n, 8, NULL), NOH_OK);
	if (outcome == NOH_INVENTORY_OK) {
		m->adjusted += n - m->on_hand;
		m->on_hand = n;
		m->next = m->known ? m->next : 1;
		m->open_from = m->known ? m->open_from : 1;
		m->known = true;
	}
	check_stock(m, outcome);
}

static void do_holds(const char *address, struct model *m)
{
	uint64_t cursor = 0, at = m->open_from;
	noh_inventory_holds head;

	(void)reserved(m);
	do {
		noh_inventory_page b = { cursor, (uint32_t)draw(8), 0 };

		EXPECT_EQ(kit_call(address, NOH_INVENTORY_HOLDS, &b, sizeof b, NULL), NOH_OK);
		memcpy(&head, k.heard.body, sizeof head);
		EXPECT_EQ(head.outcome, m->known ? NOH_INVENTORY_OK : NOH_INVENTORY_NO_SKU);
		for (uint32_t i = 0; i < head.count; i++) {
			noh_inventory_hold h;

			memcpy(&h, k.heard.body + sizeof head + i * sizeof h, sizeof h);
			while (at < m->next && m->holds[at].state != OPEN)
				at++;
			EXPECT_EQ(h.reservation, at);
			EXPECT_EQ(h.n, m->holds[at].n);
			EXPECT_EQ(h.expires, m->holds[at].until);
			at++;
		}
		cursor = head.cursor;
	} while (cursor);
	while (at < m->next && m->holds[at].state != OPEN)
		at++;
	EXPECT_EQ(at, m->next);                                  /* none is missing */
}

static void do_one(int i)
{
	struct model *m = &models[i];
	char address[32];

	snprintf(address, sizeof address, "inventory:%d", i);
	switch (draw(16)) {
	case 0: do_restock(address, m); return;
	case 1: if (draw(4) == 0) do_set(address, m); return;
	case 2: if (draw(20) == 0) do_holds(address, m); return;
	case 3:
		EXPECT_EQ(kit_call(address, NOH_INVENTORY_GET, NULL, 0, NULL), NOH_OK);
		check_stock(m, m->known ? NOH_INVENTORY_OK : NOH_INVENTORY_NO_SKU);
		return;
	case 4: case 5: case 6: case 7: case 8: do_reserve(address, m); return;
	}
	do_end(address, m, draw(2));
}

static void every_answer_is_the_models(void)
{
	for (int i = 0; i < SKUS; i++)
		models[i].holds = malloc(HOLDS * sizeof *models[i].holds);
	IN_MEMORY_AND_ON_DISK(durable) {
		random_state = test_seed + (uint64_t)durable;
		for (int i = 0; i < SKUS; i++)
			models[i] = (struct model){ .holds = models[i].holds };
		kit_begin(noh_inventory_type(), durable);
		for (uint64_t i = test_size(STEPS, STEPS / 10) / 2; i > 0; i--) {
			if (draw(3) == 0)
				kit_pass_ms((int64_t)draw(30));
			else if (draw(1000) == 0)
				kit_pass_ms((int64_t)draw((uint64_t)(3 * DAY)));
			if (durable && draw(3000) == 0)
				kit_restart(noh_inventory_type(), (int64_t)draw(1000));
			do_one((int)draw(SKUS));
		}
		for (int i = 0; i < SKUS; i++) {
			char address[32];

			snprintf(address, sizeof address, "inventory:%d", i);
			EXPECT(models[i].sold > 0);              /* it was a lively run */
			do_holds(address, &models[i]);
		}
		kit_end();
	}
	for (int i = 0; i < SKUS; i++)
		free(models[i].holds);
}

TEST_MAIN(
	TEST(every_answer_is_the_models, "UC-10 US-12 RT-23 LC-02 LC-05"))
