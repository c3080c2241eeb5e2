/* tests/sched/late_race_test.c - real workers in a box with too few cells: readers are sent home while they are written to,
 * others take their cells, and what was sent has to wait for one. Nothing is lost, doubled or out of order. */
#include "tests/box/kit.h"

#include "box/box.h"

#include <stdlib.h>

enum { NOTE, GO, LOOK };
enum { WRITERS = 2, READERS = 6, FILLERS = 200, CELLS = 24, EACH = 3 };

struct writer { uint64_t sent[READERS]; };
struct reader { uint64_t last[WRITERS]; };
struct letter { uint32_t writer; uint64_t n; };

static atomic_u64 disorder;
static atomic_u32 over, target;        /* target: the reader to send home, plus 1 */
static noh_box *box;

static int write_some(noh_turn *t, const noh_msg *m)
{
	struct writer *w = noh_state(t);
	uint32_t to;
	char address[16];
	int rc = NOH_OK;

	if (m->kind == LOOK)
		return noh_reply(t, w, sizeof *w);
	memcpy(&to, m->body, sizeof to);
	snprintf(address, sizeof address, "reader:%u", to);
	for (int i = 0; rc == NOH_OK && i < EACH; i++) {
		struct letter note = { (uint32_t)atoi(noh_id(t)), ++w->sent[to] };

		rc = noh_tell_to(t, address, NOTE, &note, sizeof note);
	}
	/* Somebody is asked to send the reader home, and waited for: a little, or the box would stand still. */
	store_release(&target, to + 1);
	for (int i = 0; rc == NOH_OK && i < 10 && status_of(box, address).life == NOH_ACTIVE; i++)
		nap_us(100);
	return rc;
}

static int read_one(noh_turn *t, const noh_msg *m)
{
	struct reader *r = noh_state(t);
	const struct letter *note = m->body;

	if (m->kind == LOOK)
		return noh_reply(t, r, sizeof *r);
	if (note->n != r->last[note->writer] + 1)
		add_relaxed(&disorder, 1);
	r->last[note->writer] = note->n;
	return NOH_OK;
}

static int nothing(noh_turn *t, const noh_msg *m)
{
	(void)t, (void)m;
	return NOH_OK;
}

static const noh_type writer = { .name = "writer", .state_size = sizeof(struct writer), .full_mode = NOH_BLOCK,
				 .mailbox_capacity = 1000, .idle_timeout_ms = NOH_NEVER, .on_message = write_some };
static const noh_type reader = { .name = "reader", .state_size = sizeof(struct reader), .full_mode = NOH_BLOCK,
				 .mailbox_capacity = 1000, .idle_timeout_ms = NOH_NEVER, .on_message = read_one };
static const noh_type filler = { .name = "filler", .idle_timeout_ms = 100, .on_message = nothing };

/* Others want their cells, too. */
static void *send_home(void *arg)
{
	uint64_t random = test_seed + (uintptr_t)arg;
	char address[16];

	while (!load_acquire(&over)) {
		uint32_t who = swap_acq_rel(&target, 0);

		snprintf(address, sizeof address, "reader:%u", who - 1);
		if (!who || noh_deactivate(box, address, false, SOON) != NOH_OK) {
			nap_us(20);
			continue;
		}
		snprintf(address, sizeof address, "filler:%u", (unsigned)(test_random(&random) % FILLERS));
		(void)noh_send(box, address, NOTE, NULL, 0);
	}
	return NULL;
}

/* Without a cell nobody can be asked. */
static bool look(const char *address, void *state, size_t size)
{
	uint64_t until = now_us() + SOON * UINT64_C(1000);
	size_t len = size;
	int rc;

	while ((rc = noh_call(box, address, LOOK, NULL, 0, SOON, state, &len)) == NOH_ENOMEM && now_us() < until)
		nap_us(1000);
	return EXPECT_EQ(rc, NOH_OK);
}

static uint64_t late_now(void)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < box->sched.worker_count; i++)
		n += load_relaxed(&box->sched.workers[i].shown.late);
	return n;
}

static void who_is_sent_home_behind_a_turns_back_gets_all_of_it_in_order(void)
{
	noh_options o = kit_options(3);
	uint64_t random = test_seed, until = now_us() + SOON * UINT64_C(1000), was_late = 0, want = test_size(10, 3);
	struct reader readers[READERS];
	struct writer w;
	struct threads t;
	char address[16];

	store_relaxed(&over, 0);
	store_relaxed(&disorder, 0);
	o.max_actors = CELLS;
	box = kit_start(&o, TYPES(&writer, &reader, &filler));
	threads_start(&t, 2, send_home);
	while ((was_late < want || stats_of(box, "writer").handled < 10 * want) && now_us() < until) {
		uint32_t to = (uint32_t)(test_random(&random) % READERS);
		int rc;

		snprintf(address, sizeof address, "writer:%u", (unsigned)(test_random(&random) % WRITERS));
		rc = noh_send(box, address, GO, &to, sizeof to);
		EXPECT(rc == NOH_OK || rc == NOH_FULL || rc == NOH_ENOMEM);
		was_late += late_now() != 0;
		nap_us(200);
	}
	EXPECT(was_late >= want);
	store_release(&over, 1);
	threads_join(&t);
	EXPECT(settles(box, "writer") && settles(box, "reader"));
	for (unsigned r = 0; r < READERS; r++) {
		snprintf(address, sizeof address, "reader:%u", r);
		(void)look(address, &readers[r], sizeof readers[r]);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		snprintf(address, sizeof address, "writer:%u", i);
		(void)look(address, &w, sizeof w);
		for (unsigned r = 0; r < READERS; r++)
			EXPECT_EQ(readers[r].last[i], w.sent[r]);
	}
	EXPECT_EQ(load_relaxed(&disorder), 0);
	EXPECT_EQ(stats(box).dead_letters, 0);
	end(box);
}

TEST_MAIN(TEST(who_is_sent_home_behind_a_turns_back_gets_all_of_it_in_order, "TB-02"))
