/* tests/sched/late_test.c - a turn is over, and there is no memory to deliver what it has sent (sched/late.h). Step by
 * step, in boxes whose rings, cells or budget are used up at the moment that matters. */
#include "tests/box/durable_kit.h"
#include "tests/box/kit.h"
#include "tests/box/metrics_kit.h"

#include "box/box.h"
#include "core/mem.h"

enum { NOTE, BURST, STOP, GO_HOME, ASK, HEARD, HOOKS };
enum { NOTES = 10 };                   /* of a burst: more than a small ring holds */

struct writer { uint64_t bursts, answers; };
struct reader { uint64_t notes, last; bool disorder; };

static bool hooks_write;
static atomic_u64 in_order;            /* notes that were heard by r, if in order */
static noh_box *box;

static int burst(noh_turn *t, uint64_t from, unsigned notes)
{
	int rc = NOH_OK;

	for (uint64_t i = 1; rc == NOH_OK && i <= notes; i++)
		rc = noh_tell_to(t, "reader:r", NOTE, &(uint64_t){ from + i }, 8);
	return rc;
}

static uint32_t step(unsigned worker)
{
	struct worker *w = &box->sched.workers[worker], *was = sched_self();
	uint32_t work;

	sched_set_self(w);
	work = sched_pass(w);
	sched_set_self(was);
	return work;
}

static void steps(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		(void)step(i % box->sched.worker_count);
}

static int write_message(noh_turn *t, const noh_msg *m)
{
	struct writer *w = noh_state(t);
	noh_ask_options o = { .answer_kind = HEARD };
	int rc;

	switch (m->kind) {
	case BURST:
		rc = burst(t, w->bursts++ * NOTES, NOTES);
		break;
	case GO_HOME:                      /* r goes while this turn runs, and memory is used up then */
		rc = burst(t, w->bursts++ * NOTES, NOTES);
		(void)step(1 - sched_self()->fixed.index);
		EXPECT_EQ(status_of(box, "reader:r").life, NOH_NOT_ACTIVE);
		((void (*)(void))(uintptr_t)noh_user(t))();
		break;
	case ASK: return noh_ask_to(t, "reader:r", ASK, NULL, 0, &o, NULL);
	case HEARD:
		EXPECT_EQ(m->status, NOH_OK);
		w->answers++;
		return NOH_OK;
	case STOP: return noh_stop_self(t);
	default: return noh_reply(t, w, sizeof *w);
	}
	return rc == NOH_OK && (m->flags & NOH_MSG_WANTS_REPLY) ? noh_reply(t, w, sizeof *w) : rc;
}

static int write_in_hook(noh_turn *t)
{
	struct writer *w = noh_state(t);

	return hooks_write ? burst(t, w->bursts++ * NOTES, NOTES) : NOH_OK;
}

static int read_message(noh_turn *t, const noh_msg *m)
{
	struct reader *r = noh_state(t);

	if (m->kind == STOP)
		return noh_stop_self(t);
	if (m->kind == ASK)
		return noh_reply(t, r, sizeof *r);
	r->disorder |= *(const uint64_t *)m->body != r->last + 1;
	r->last = *(const uint64_t *)m->body;
	r->notes++;
	if (!r->disorder)
		store_release(&in_order, r->notes);
	return NOH_OK;
}

static noh_type writer = { .name = "writer", .state_size = sizeof(struct writer), .full_mode = NOH_BLOCK,
	.mailbox_capacity = 1000, .idle_timeout_ms = NOH_NEVER, .on_activate = write_in_hook,
	.on_message = write_message, .on_deactivate = write_in_hook };
static const noh_type reader = { .name = "reader", .state_size = sizeof(struct reader), .full_mode = NOH_BLOCK,
	.mailbox_capacity = 1000, .idle_timeout_ms = NOH_NEVER, .on_message = read_message };

static void open_stepped(unsigned workers, void (*when_gone)(void))
{
	noh_options o = kit_options(workers);

	writer.user = (void *)(uintptr_t)when_gone;
	hooks_write = false;
	store_relaxed(&in_order, 0);
	box = kit_open(&o, TYPES(&writer, &reader));
	EXPECT_EQ(box_start_stepped(box), NOH_OK);
}

/* ── using up ── */

static uint32_t fresh_rings[RING_CLASSES], fresh_cells;

static void empty(struct slab *s, uint32_t *fresh)
{
	*fresh = load_relaxed(&s->shared.fresh);
	store_relaxed(&s->shared.fresh, s->fixed.limit);
	store_relaxed(&s->shared.free, 0);
}

static struct port *port_at(uint32_t i)
{
	struct sched *s = &box->sched;

	return i < s->worker_count ? &s->workers[i].mine.port : &s->outside[i - s->worker_count];
}

static void no_rings(void)
{
	for (uint32_t c = 0; c < RING_CLASSES; c++) {
		empty(&box->sched.rings.slab[c], &fresh_rings[c]);
		for (uint32_t i = 0; i < box->sched.worker_count + OUTSIDE_PORTS; i++)
			port_at(i)->rings.cache[c].count = 0;
	}
}

static void rings_again(void)
{
	for (uint32_t c = 0; c < RING_CLASSES; c++)
		store_relaxed(&box->sched.rings.slab[c].shared.fresh, fresh_rings[c]);
}

static void no_cells(void)
{
	empty(&box->sched.cells, &fresh_cells);
	for (uint32_t i = 0; i < box->sched.worker_count + OUTSIDE_PORTS; i++)
		port_at(i)->cells.count = 0;
}

static void cells_again(void)
{
	store_relaxed(&box->sched.cells.shared.fresh, fresh_cells);
}

static void no_budget(void)
{
	store_relaxed(&box->sched.actor_budget, 0);
	store_relaxed(&box->sched.memory_budget, 1);
	EXPECT_EQ(noh_send(box, "reader:new", NOTE, "12345678", 8), NOH_ENOMEM);
}

static void send(const char *address, uint32_t kind)
{
	EXPECT_EQ(noh_send(box, address, kind, NULL, 0), NOH_OK);
}

static uint64_t late(void)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < box->sched.worker_count; i++)
		n += load_relaxed(&box->sched.workers[i].shown.late);
	return n;
}

/* ── without rings ── */

/* Not even one ring: r is idle between two notes, and takes each in hand. */
static void what_a_turn_sent_is_delivered_in_order_when_no_ring_can_be_had(void)
{
	for (unsigned workers = 1; workers <= 3; workers++) {
		open_stepped(workers, NULL);
		for (int i = 0; i < 4; i++)
			send("writer:w", BURST);
		no_rings();
		for (unsigned i = 0; i < workers && late() == 0; i++)
			(void)step(i);
		EXPECT(late() > 0);
		steps(200 * workers);
		EXPECT_EQ(load_acquire(&in_order), 4 * NOTES);
		EXPECT_EQ(late(), 0);
		EXPECT_EQ(stats(box).dead_letters, 0);
		EXPECT_EQ(stats_of(box, "writer").handled, 4);
		noh_close(box);
	}
}

/* r rests until it is told something else, so that nothing can be put into its hand. */
static void a_sender_runs_nothing_until_what_it_sent_is_out(void)
{
	struct cell *r;
	uint32_t gen;
	struct port *p;

	open_stepped(2, NULL);
	send("reader:r", STOP);
	steps(4);
	p = sched_port(&box->sched);
	EXPECT_EQ(sched_resolve(p, "reader:r", 8, &r, &gen), NOH_OK);
	sched_port_done(p);
	EXPECT(mailbox_claim(&r->mailbox, gen));         /* it is ours, and BUSY */
	send("writer:w", BURST);
	send("writer:w", BURST);
	send("writer:other", ASK);
	no_rings();
	steps(20);
	EXPECT_EQ(late(), NOTES + 1);                    /* of w one burst, and the question */
	EXPECT_EQ(stats_of(box, "writer").handled, 2);
	EXPECT_EQ(noh_send(box, "reader:r", NOTE, "12345678", 8), NOH_ENOMEM);
	EXPECT_EQ(load_acquire(&in_order), 0);
	rings_again();
	sched_enqueue(&box->sched.workers[0].mine.port, r);
	steps(20);
	EXPECT_EQ(load_acquire(&in_order), 2 * NOTES);
	EXPECT_EQ(stats_of(box, "writer").handled, 4);   /* and the answer */
	EXPECT_EQ(late(), 0);
	noh_close(box);
}

static void what_is_sent_in_hooks_is_delivered_too(void)
{
	open_stepped(2, NULL);
	hooks_write = true;
	send("writer:w", BURST);
	send("writer:w", STOP);
	no_rings();
	steps(400);
	EXPECT_EQ(late(), 0);
	EXPECT_EQ(stats(box).dead_letters, 0);
	/* on_activate, BURST, on_deactivate; it came back for those, and went again: twice more. */
	EXPECT(load_acquire(&in_order) >= 3 * NOTES);
	EXPECT_EQ(load_acquire(&in_order) % NOTES, 0);
	noh_close(box);
}

/* Its activation leaves it late, and in the same lane it is told to restart: that comes when all is out. */
static void what_comes_by_the_system_lane_waits_too(void)
{
	static const noh_supervision often = { .base_ms = 1, .cap_ms = 5, .restarts = 100 };
	noh_options o = kit_options(1);
	noh_type kin = writer;
	struct cell *w, *r;
	struct sysmsg *n;
	uint32_t gen, r_gen;
	struct port *p;

	kin.supervision = &often;
	hooks_write = true;
	store_relaxed(&in_order, 0);
	box = kit_open(&o, TYPES(&kin, &reader));
	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	p = sched_port(&box->sched);
	EXPECT_EQ(sched_resolve(p, "reader:r", 8, &r, &r_gen), NOH_OK);
	EXPECT(mailbox_claim(&r->mailbox, r_gen));       /* it is ours, and BUSY */
	EXPECT_EQ(sched_resolve(p, "writer:w", 8, &w, &gen), NOH_OK);
	for (int i = 0; i < 2; i++) {
		n = node_take(p, SYS_KIN_RESTART);
		n->token = ref_make(cell_number(&box->sched, w), gen).bits;
		n->body.bytes[0] = 0;
		sched_sys(p, w, gen, n);
	}
	sched_port_done(p);
	no_rings();
	steps(20);
	EXPECT_EQ(late(), NOTES);                        /* of one hook */
	rings_again();
	sched_enqueue(&box->sched.workers[0].mine.port, r);
	steps(40);
	EXPECT_EQ(late(), 0);
	EXPECT_EQ(load_acquire(&in_order), 3 * NOTES);   /* it came, and was restarted twice */
	EXPECT_EQ(stats_of(box, "writer").restarts, 2);
	EXPECT_EQ(stats(box).dead_letters, 0);
	hooks_write = false;
	noh_close(box);
}

static void stepped(void *user, int status, const noh_part_answer *answers, size_t count)
{
	(void)answers;
	EXPECT_EQ(count, 2);
	EXPECT_EQ(status, NOH_OK);
	*(bool *)user = true;
}

static void all_of_a_step_is_delivered_too(void)
{
	noh_part parts[2] = { { "writer:w", BURST, NULL, 0 }, { "writer:other", BURST, NULL, 0 } };
	bool done = false;

	open_stepped(2, NULL);
	no_rings();
	EXPECT_EQ(noh_step_then(box, parts, 2, NULL, stepped, &done), NOH_OK);
	steps(10);
	EXPECT(done);                                    /* the answer does not wait for the messages */
	EXPECT(late() > 0);
	EXPECT_EQ(stats_of(box, "writer").handled, 2);
	steps(200);
	EXPECT_EQ(late(), 0);
	EXPECT_EQ(stats_of(box, "reader").handled, 2 * NOTES);
	rings_again();
	send("writer:w", BURST);                         /* they were let go */
	send("writer:other", BURST);
	steps(20);
	EXPECT_EQ(stats_of(box, "writer").handled, 4);
	EXPECT_EQ(stats_of(box, "reader").handled, 4 * NOTES);
	noh_close(box);
}

static void what_is_late_when_the_box_closes_is_counted(void)
{
	open_stepped(1, NULL);
	send("writer:w", BURST);
	no_rings();
	(void)step(0);
	EXPECT_EQ(late(), NOTES - 1);                    /* the first was in its hand */
	scrape(box);
	EXPECT_EQ(said("noh_messages_late"), NOTES - 1);
	free(scraped.text);
	scraped.text = NULL;
	scraped.room = 0;
	EXPECT_EQ(noh_stop(box, 0), NOH_OK);
	EXPECT_EQ(stats_of(box, "reader").dropped_stop, NOTES - 1);
	EXPECT(adds_up(box, "reader"));
	noh_close(box);
}

/* ── without cells ── */

/* The writer writes to r on one worker, and on the other r is told to go meanwhile: then nobody can be made. */
static void write_to_who_goes(void (*when_gone)(void))
{
	noh_actor r, w = { 0 };
	char address[32];
	uint32_t home;

	open_stepped(2, when_gone);
	send("reader:r", ASK);
	steps(4);
	EXPECT_EQ(status_of(box, "reader:r").life, NOH_ACTIVE);
	EXPECT_EQ(noh_ref(box, "reader:r", &r), NOH_OK);
	home = ring_hash_owner(&box->sched.homes, cell_at(&box->sched, ref_number(r))->body->hash);
	for (int i = 0; ref_number(w) == 0 || home == ring_hash_owner(&box->sched.homes,
								      cell_at(&box->sched, ref_number(w))->body->hash); i++) {
		snprintf(address, sizeof address, "writer:%d", i);
		EXPECT_EQ(noh_ref(box, address, &w), NOH_OK);
	}
	send("reader:r", STOP);
	send(address, GO_HOME);
	(void)step(1 - home);
	EXPECT_EQ(stats_of(box, "writer").handled, 1);
	EXPECT_EQ(noh_send(box, address, BURST, NULL, 0), NOH_OK);
}

static void the_budget_is_not_asked_again_for_what_was_sent(void)
{
	write_to_who_goes(no_budget);
	steps(40);
	EXPECT_EQ(stats(box).dead_letters, 0);
	EXPECT_EQ(load_acquire(&in_order), 2 * NOTES);
	noh_close(box);
}

static void a_receiver_that_went_is_waited_for_until_there_is_a_cell(void)
{
	write_to_who_goes(no_cells);
	steps(10);
	EXPECT_EQ(late(), NOTES);
	EXPECT_EQ(stats_of(box, "writer").handled, 1);
	cells_again();
	steps(40);
	EXPECT_EQ(stats(box).dead_letters, 0);
	EXPECT_EQ(load_acquire(&in_order), 2 * NOTES);
	noh_close(box);
}

/* ── on disk ── */

/* The same with threads: r is sent home while the writer stands in its turn. */
static int stand(noh_turn *t, const noh_msg *m)
{
	struct writer *w = noh_state(t);
	int rc = burst(t, w->bursts++ * NOTES, NOTES);

	(void)m;
	gate_pass();
	return rc == NOH_OK ? noh_reply(t, w, sizeof *w) : rc;
}

static void what_is_recorded_is_delivered_in_the_same_run(void)
{
	noh_options o = kit_options(2);
	noh_type standing = writer;
	char dir[256];

	standing.on_message = stand;
	store_relaxed(&in_order, 0);
	gate_shut();
	o.dir = light_dir(dir, sizeof dir);
	box = kit_start(&o, TYPES(&standing, &reader));
	EXPECT_EQ(noh_activate(box, "reader:r", SOON), NOH_OK);
	send("writer:w", BURST);
	EXPECT(gate_holds(1));
	EXPECT_EQ(noh_deactivate(box, "reader:r", false, SOON), NOH_OK);
	EXPECT_EQ(noh_activate(box, "reader:other", SOON), NOH_OK);
	no_budget();
	gate_open();
	EXPECT(reaches(&in_order, NOTES));
	EXPECT_EQ(stats(box).dead_letters, 0);
	store_relaxed(&box->sched.memory_budget, 0);
	end(box);
	remove_dir(dir);
}

/* The Nth allocation after the hook fails, for every N, while no ring can be had. Either the turn fails, and nothing of it
 * is heard; or it is over, and all of it is. */
#define LARGE 70                       /* notes: more than there is room for at first */
static uint64_t failing;

static int write_large(noh_turn *t, const noh_msg *m)
{
	struct writer *w = noh_state(t);
	int rc = burst(t, w->bursts++ * LARGE, LARGE);

	(void)m;
	EXPECT_EQ(rc, NOH_OK);
	mem_fail_at(failing, 0);
	return rc;
}

static void a_turn_fails_before_it_is_recorded_or_not_at_all(void)
{
	noh_options o = kit_options(1);
	noh_type large = writer;
	uint64_t allocations, failed = 0;
	char dir[256];

	large.on_message = write_large;
	hooks_write = false;
	store_relaxed(&in_order, 0);
	o.dir = light_dir(dir, sizeof dir);
	box = kit_open(&o, TYPES(&large, &reader));
	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	box->sched.journal.take = NULL;                  /* nobody writes but this test */
	failing = 0;
	send("writer:w", BURST);                         /* both are there, and the lists have grown */
	steps(5);
	do {
		failing++;
		send("writer:w", BURST);
		no_rings();
		(void)step(0);
		allocations = mem_fail_at(0, 0);
		rings_again();
		steps(5);
		failed = stats_of(box, "writer").failed;
		EXPECT_EQ(late(), 0);
		EXPECT_EQ(load_acquire(&in_order), (failing + 1 - failed) * LARGE);
		while (box_journal_round(box, true) == JOURNAL_BUSY)
			continue;
	} while (allocations >= failing && failing < 10000);
	EXPECT(failed > LARGE);                          /* each note is wrapped, and there is more */
	EXPECT_EQ(stats(box).dead_letters, 0);
	noh_close(box);
	remove_dir(dir);
}

TEST_MAIN(TEST(what_a_turn_sent_is_delivered_in_order_when_no_ring_can_be_had, "TB-02"),
	  TEST(a_sender_runs_nothing_until_what_it_sent_is_out, "TB-02"),
	  TEST(what_is_sent_in_hooks_is_delivered_too),
	  TEST(what_comes_by_the_system_lane_waits_too, "TB-02"),
	  TEST(all_of_a_step_is_delivered_too),
	  TEST(what_is_late_when_the_box_closes_is_counted),
	  TEST(the_budget_is_not_asked_again_for_what_was_sent),
	  TEST(a_receiver_that_went_is_waited_for_until_there_is_a_cell, "TB-02"),
	  TEST(what_is_recorded_is_delivered_in_the_same_run, "TB-02"),
	  TEST(a_turn_fails_before_it_is_recorded_or_not_at_all))
