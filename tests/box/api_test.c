/* tests/box/api_test.c - noh.h from outside: order of calls, calls and answers, lists, numbers. */
#include "tests/box/kit.h"

#include <stdlib.h>

enum { ADD, GET, ECHO, SILENT, EMPTY, HOLD, TIMER, LENGTH, LATE };

static int on_message(noh_turn *t, const noh_msg *m)
{
	uint64_t *sum = noh_state(t);

	switch (m->kind) {
	case ADD: *sum += *(const uint64_t *)m->body; return NOH_OK;
	case GET: return noh_reply(t, sum, 8);
	case ECHO: return noh_reply(t, m->body, m->len);
	case SILENT: (void)noh_defer(t, m); return NOH_OK;
	case EMPTY: return NOH_OK;
	case HOLD: gate_pass(); return noh_reply(t, "late", 4);
	case LENGTH: {
		uint64_t n = 0;
		EXPECT_EQ((uintptr_t)m->body % 8, 0);
		for (uint32_t i = 0; i < m->len; i++)
			n += ((const uint8_t *)m->body)[i];
		return noh_reply(t, &n, 8);
	}
	}
	return NOH_EINVAL;
}

static const noh_kind kinds[] = { [ADD] = { "add", 0, NULL }, [GET] = { "get", 0, NULL },
	[ECHO] = { "echo", 0, NULL }, [SILENT] = { "silent", 0, NULL }, [EMPTY] = { "empty", 0, NULL },
	[HOLD] = { "hold", 0, NULL }, [TIMER] = { "tick", NOH_KIND_TIMER, NULL },
	[LENGTH] = { "length", 0, NULL } };

static const noh_type a_type = { .name = "a", .state_size = 8, .kinds = kinds, .kind_count = 8,
	.mailbox_capacity = 100000, .full_mode = NOH_BLOCK, .idle_timeout_ms = NOH_NEVER,
	.on_message = on_message };
static const noh_type b_type = { .name = "b", .state_size = 8, .idle_timeout_ms = NOH_NEVER,
	.on_message = on_message };

static void versions_and_codes_have_texts(void)
{
	EXPECT(strcmp(noh_version(), NOH_VERSION) == 0);
	for (int code = -30; code <= 10; code++)
		EXPECT(noh_strerror(code) && *noh_strerror(code));
	EXPECT(strcmp(noh_strerror(NOH_FULL), "mailbox full") == 0);
	EXPECT(noh_why() != NULL);
	for (int life = NOH_NOT_ACTIVE; life <= NOH_DEACTIVATING; life++)
		EXPECT(*noh_life_name((noh_life)life));
}

static void kinds_have_numbers(void)
{
	noh_box *box;

	EXPECT_EQ(noh_open(&box, NULL), NOH_OK);
	EXPECT_EQ(noh_register(box, &a_type), NOH_OK);
	EXPECT_EQ(noh_register(box, &b_type), NOH_OK);
	EXPECT_EQ(noh_kind_number(box, "a", "add"), ADD);
	EXPECT_EQ(noh_kind_number(box, "a", "length"), LENGTH);
	EXPECT_EQ(noh_kind_number(box, "a", "ADD"), NOH_EKIND);
	EXPECT(strstr(noh_why(), "\"ADD\""));
	EXPECT_EQ(noh_kind_number(box, "b", "add"), NOH_EKIND);         /* it has no table */
	EXPECT_EQ(noh_kind_number(box, "c", "add"), NOH_ENOTYPE);
	noh_close(box);
}

static void options_that_make_no_sense_are_refused(void)
{
	noh_box *box = (noh_box *)1;

	EXPECT_EQ(noh_open(NULL, NULL), NOH_EINVAL);
	EXPECT_EQ(noh_open(&box, &(noh_options){ .workers = 100000 }), NOH_EINVAL);
	EXPECT(box == NULL);
	EXPECT_EQ(noh_open(&box, &(noh_options){ .max_message = UINT32_MAX }), NOH_EINVAL);
	EXPECT_EQ(noh_open(&box, &(noh_options){ .max_actors = UINT64_MAX }), NOH_EINVAL);
	EXPECT(*noh_why());
	noh_close(NULL);
}

static void types_that_make_no_sense_are_refused(void)
{
	noh_options o = kit_options(1);
	noh_box *box = kit_open(&o, TYPES(&b_type));
	char     name[65];
	noh_kind no_function = { "k", NOH_KIND_COALESCE, NULL };
	noh_type t = b_type;

	EXPECT_EQ(noh_register(box, &b_type), NOH_EEXISTS);
	EXPECT(strstr(noh_why(), "type b"));
	EXPECT_EQ(noh_register(box, NULL), NOH_EINVAL);
	t.name = NULL;
	EXPECT_EQ(noh_register(box, &t), NOH_EINVAL);
	t.name = "";
	EXPECT_EQ(noh_register(box, &t), NOH_EINVAL);
	t.name = "a:b";
	EXPECT_EQ(noh_register(box, &t), NOH_EINVAL);
	t.name = "a/b";
	EXPECT_EQ(noh_register(box, &t), NOH_EINVAL);
	memset(name, 'n', 64);
	name[64] = 0;
	t.name = name;
	EXPECT_EQ(noh_register(box, &t), NOH_EINVAL);
	t.on_message = NULL;
	t.name = "c";
	EXPECT_EQ(noh_register(box, &t), NOH_EINVAL);
	t = (noh_type){ .name = "c", .on_message = on_message, .full_mode = 3 };
	EXPECT_EQ(noh_register(box, &t), NOH_EINVAL);
	t = (noh_type){ .name = "c", .on_message = on_message, .state_size = (1u << 20) + 1 };
	EXPECT_EQ(noh_register(box, &t), NOH_EINVAL);
	t = (noh_type){ .name = "c", .on_message = on_message, .mailbox_capacity = (1u << 20) + 1 };
	EXPECT_EQ(noh_register(box, &t), NOH_EINVAL);
	t = (noh_type){ .name = "c", .on_message = on_message, .kind_count = 1 };
	EXPECT_EQ(noh_register(box, &t), NOH_EINVAL);
	t = (noh_type){ .name = "c", .on_message = on_message, .kind_count = 1, .kinds = &no_function };
	EXPECT_EQ(noh_register(box, &t), NOH_EINVAL);
	EXPECT(strstr(noh_why(), "c"));
	name[63] = 0;
	t = (noh_type){ .name = name, .on_message = on_message };
	EXPECT_EQ(noh_register(box, &t), NOH_OK);
	noh_close(box);
}

static void calls_out_of_order_are_refused(void)
{
	noh_options o = kit_options(1);
	noh_box *box = kit_open(&o, (const noh_type *[]){ NULL });
	noh_status status;
	noh_box_stats numbers;
	noh_entry entry;
	uint64_t cursor = 0;
	size_t count = 1;

	EXPECT_EQ(noh_start(box), NOH_EINVAL);             /* no type */
	EXPECT_EQ(noh_register(box, &b_type), NOH_OK);
	EXPECT_EQ(put(box, "b:1", ADD, 1), NOH_ESTOPPED);  /* not started */
	EXPECT_EQ(call(box, "b:1", GET), NOH_ESTOPPED);
	EXPECT_EQ(noh_get_status(box, "b:1", &status), NOH_ESTOPPED);
	EXPECT_EQ(noh_get_stats(box, &numbers), NOH_ESTOPPED);
	EXPECT_EQ(noh_list(box, NULL, &cursor, &entry, &count), NOH_ESTOPPED);
	EXPECT_EQ(noh_stop(box, 0), NOH_ESTOPPED);
	EXPECT_EQ(noh_start(box), NOH_OK);
	EXPECT_EQ(noh_start(box), NOH_ESTOPPED);
	EXPECT_EQ(noh_register(box, &a_type), NOH_ESTOPPED);
	EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
	EXPECT_EQ(noh_stop(box, SOON), NOH_ESTOPPED);
	EXPECT_EQ(noh_start(box), NOH_ESTOPPED);
	EXPECT_EQ(put(box, "b:1", ADD, 1), NOH_ESTOPPED);
	EXPECT(strstr(noh_why(), "not running"));
	EXPECT_EQ(noh_send_wait(box, "b:1", ADD, "12345678", 8, 10), NOH_ESTOPPED);
	EXPECT_EQ(call(box, "b:1", GET), NOH_ESTOPPED);
	EXPECT_EQ(noh_activate(box, "b:1", 10), NOH_ESTOPPED);
	EXPECT_EQ(noh_deactivate(box, "b:1", false, 10), NOH_ESTOPPED);
	noh_close(box);
}

static void a_box_can_be_closed_at_any_stage(void)
{
	noh_options o = kit_options(2);
	noh_box *box = kit_open(&o, TYPES(&a_type));

	noh_close(box);                                    /* never started */
	box = BOX(2, &a_type);
	noh_close(box);                                    /* never used */
	box = BOX(2, &a_type);
	for (uint64_t i = 0; i < 1000; i++)
		EXPECT_EQ(put(box, "a:1", ADD, i), NOH_OK);
	noh_close(box);                                    /* in the middle of it */
}

static void boxes_do_not_know_each_other(void)
{
	noh_box *one = BOX(1, &a_type), *two = BOX(2, &a_type);

	EXPECT_EQ(put(one, "a:1", ADD, 1), NOH_OK);
	EXPECT_EQ(put(two, "a:1", ADD, 2), NOH_OK);
	EXPECT_EQ(get(one, "a:1", GET), 1);
	EXPECT_EQ(get(two, "a:1", GET), 2);
	end(one);
	EXPECT_EQ(get(two, "a:1", GET), 2);
	end(two);
}

static void bad_input_gets_a_code_and_a_sentence(void)
{
	noh_box *box = BOX(1, &a_type);
	char     address[300];
	static char big[(1 << 20) + 1];
	noh_status status;
	noh_type_stats type_stats;
	noh_actor ref = { 0 };

	EXPECT_EQ(put(box, "none:1", ADD, 1), NOH_ENOTYPE);
	EXPECT(strstr(noh_why(), "none"));
	EXPECT_EQ(put(box, "nocolon", ADD, 1), NOH_EADDRESS);
	EXPECT(strstr(noh_why(), "nocolon"));
	memset(address, 'x', sizeof address);
	memcpy(address, "a:", 2);
	address[256] = 0;
	EXPECT_EQ(put(box, address, ADD, 1), NOH_EADDRESS);
	EXPECT(strstr(noh_why(), "255"));
	address[255] = 0;
	EXPECT_EQ(put(box, address, ADD, 1), NOH_OK);
	EXPECT_EQ(get(box, address, GET), 1);
	EXPECT_EQ(put(box, "a:1", 8, 1), NOH_EKIND);
	EXPECT(strstr(noh_why(), "8"));
	EXPECT_EQ(put(box, "a:1", TIMER, 1), NOH_EKIND);
	EXPECT(strstr(noh_why(), "tick"));
	EXPECT_EQ(noh_send(box, "a:1", ECHO, big, sizeof big), NOH_ETOOBIG);
	EXPECT(strstr(noh_why(), "1048577") && strstr(noh_why(), "1048576"));
	EXPECT_EQ(noh_call(box, "none:1", GET, NULL, 0, 10, NULL, NULL), NOH_ENOTYPE);
	EXPECT_EQ(noh_get_status(box, "none:1", &status), NOH_ENOTYPE);
	EXPECT_EQ(noh_activate(box, "none:1", 10), NOH_ENOTYPE);
	EXPECT_EQ(noh_deactivate(box, "none:1", false, 10), NOH_ENOTYPE);
	EXPECT_EQ(noh_get_type_stats(box, "none", &type_stats), NOH_ENOTYPE);
	EXPECT_EQ(noh_ref(box, "a:", &ref), NOH_EADDRESS);
	EXPECT_EQ(noh_send_ref(box, (noh_actor){ 0 }, ADD, NULL, 0), NOH_EINVAL);
	EXPECT_EQ(noh_call_then(box, "a:1", GET, NULL, 0, 10, NULL, NULL), NOH_EINVAL);
	noh_hint(box, ref);
	EXPECT_EQ(status_of(box, "a:1").life, NOH_NOT_ACTIVE);     /* none of it activated anybody */
	end(box);
}

static int blocks(noh_turn *t, const noh_msg *m)
{
	noh_box *box = noh_turn_box(t);
	size_t len = 0;

	(void)m;
	EXPECT_EQ(noh_call(box, "a:1", GET, NULL, 0, 10, NULL, &len), NOH_EINTURN);
	EXPECT(strstr(noh_why(), "noh_ask"));
	EXPECT_EQ(noh_send_wait(box, "a:1", ADD, "12345678", 8, 10), NOH_EINTURN);
	EXPECT_EQ(noh_activate(box, "a:1", 10), NOH_EINTURN);
	EXPECT_EQ(noh_deactivate(box, "a:1", false, 10), NOH_EINTURN);
	EXPECT_EQ(noh_stop(box, 10), NOH_EINTURN);
	EXPECT_EQ(noh_send(box, "a:1", ADD, &(uint64_t){ 5 }, 8), NOH_OK);     /* this never blocks */
	return NOH_OK;
}

static void blocking_inside_a_turn_is_refused(void)
{
	noh_type b = b_type;

	b.on_message = blocks;
	noh_box *box = BOX(1, &a_type, &b);
	EXPECT_EQ(call(box, "b:1", 0), NOH_OK);
	EXPECT_EQ(get(box, "a:1", GET), 5);
	end(box);
}

static void answers_are_cut_to_the_room_and_say_so(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = BOX(workers, &a_type);
		char   answer[64] = "";
		size_t len = 4;

		EXPECT_EQ(noh_call(box, "a:1", ECHO, "123456789", 9, SOON, answer, &len), NOH_ETOOBIG);
		EXPECT_EQ(len, 9);
		EXPECT(strcmp(answer, "1234") == 0);
		EXPECT(strstr(noh_why(), "a:1"));
		len = sizeof answer;
		EXPECT_EQ(noh_call(box, "a:1", ECHO, NULL, 0, SOON, answer, &len), NOH_OK);
		EXPECT_EQ(len, 0);
		len = sizeof answer;
		EXPECT_EQ(noh_call(box, "a:1", EMPTY, NULL, 0, SOON, answer, &len), NOH_OK);
		EXPECT_EQ(len, 0);
		EXPECT_EQ(noh_call(box, "a:1", ECHO, "123", 3, SOON, NULL, NULL), NOH_OK);
		len = 1;
		EXPECT_EQ(noh_call(box, "a:1", ECHO, "123", 3, SOON, NULL, &len), NOH_OK);
		EXPECT_EQ(len, 3);
		end(box);
	}
}

static void messages_of_all_sizes_arrive_whole(void)
{
	static const size_t sizes[] = { 0, 1, 7, 8, 9, 16, 17, 31, 32, 33, 39, 40, 41, 64, 1000, 4096,
					1 << 20 };
	noh_box *box = BOX(2, &a_type);
	uint8_t *body = malloc(1 << 20), *answer = malloc(1 << 20);

	for (size_t i = 0; i < 1 << 20; i++)
		body[i] = (uint8_t)(i * 7 + 1);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		uint64_t want = 0, sum = 0;
		size_t   len = 8;

		for (size_t at = 0; at < sizes[i]; at++)
			want += body[at];
		EXPECT_EQ(noh_call(box, "a:1", LENGTH, body, sizes[i], SOON, &sum, &len), NOH_OK);
		EXPECT_EQ(sum, want);
		len = 1 << 20;
		EXPECT_EQ(noh_call(box, "a:1", ECHO, body, sizes[i], SOON, answer, &len), NOH_OK);
		EXPECT_EQ(len, sizes[i]);
		EXPECT(memcmp(answer, body, len) == 0);
	}
	free(body);
	free(answer);
	end(box);
}

static bool two_handled(void *box)
{
	return stats_of(box, "a").handled == 2;
}

static void a_call_ends_in_time_and_its_late_answer_is_counted(void)
{
	noh_box *box = BOX(2, &a_type);
	uint64_t start = now_us();

	gate_shut();
	EXPECT_EQ(noh_call(box, "a:1", HOLD, NULL, 0, 30, NULL, NULL), NOH_ETIMEOUT);
	EXPECT(now_us() - start >= 30000);
	EXPECT(strstr(noh_why(), "30 ms"));
	gate_open();
	EXPECT_EQ(call(box, "a:1", GET), NOH_OK);
	EXPECT_EQ(stats(box).late_answers, 1);
	EXPECT(test_wait_until(two_handled, box, SOON));   /* it took effect all the same */
	end(box);
}

static atomic_u64 done_count, done_sum, done_timeouts;

static void done(void *user, int status, const void *answer, size_t len)
{
	uint64_t n = 0;

	if (len == 8)
		memcpy(&n, answer, 8);
	add_relaxed(&done_sum, n);
	add_relaxed(&done_timeouts, status == NOH_ETIMEOUT);
	EXPECT(status == NOH_OK || status == NOH_ETIMEOUT || status == NOH_ESTOPPED);
	EXPECT(user == &done_count);
	add_acq_rel(&done_count, 1);
}

static void clear_done(void)
{
	store_relaxed(&done_count, 0);
	store_relaxed(&done_sum, 0);
	store_relaxed(&done_timeouts, 0);
}

static void call_then_calls_back_exactly_once(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = BOX(workers, &a_type);

		clear_done();
		for (uint64_t i = 0; i < 1000; i++)
			EXPECT_EQ(noh_call_then(box, "a:1", ECHO, &i, 8, SOON, done, &done_count), NOH_OK);
		EXPECT(reaches(&done_count, 1000));
		EXPECT_EQ(load_relaxed(&done_sum), 999 * 500);
		EXPECT_EQ(noh_call_then(box, "a:1", SILENT, NULL, 0, 20, done, &done_count), NOH_OK);
		EXPECT(reaches(&done_count, 1001));
		EXPECT_EQ(load_relaxed(&done_timeouts), 1);
		end(box);
		EXPECT_EQ(load_relaxed(&done_count), 1001);
	}
}

static void call_then_that_is_refused_never_calls_back(void)
{
	noh_box *box = BOX(2, &a_type);

	clear_done();
	for (int i = 0; i < 3000; i++)                     /* a deadline of now races with the refusal */
		EXPECT_EQ(noh_call_then(box, "none:1", GET, NULL, 0, 0, done, &done_count), NOH_ENOTYPE);
	end(box);
	EXPECT_EQ(load_relaxed(&done_count), 0);
}

static void call_then_calls_back_even_if_the_box_stops_first(void)
{
	noh_box *box = BOX(2, &a_type);

	clear_done();
	EXPECT_EQ(noh_call_then(box, "a:1", SILENT, NULL, 0, 60000, done, &done_count), NOH_OK);
	EXPECT_EQ(call(box, "a:1", GET), NOH_OK);
	end(box);
	EXPECT_EQ(load_relaxed(&done_count), 1);
}

static void a_reference_works_until_its_actor_goes_to_storage(void)
{
	noh_box *box = BOX(2, &a_type);
	noh_actor ref, again;

	EXPECT_EQ(noh_ref(box, "a:1", &ref), NOH_OK);
	EXPECT_EQ(noh_ref(box, "a/1", &again), NOH_OK);
	EXPECT(ref.bits == again.bits && ref.bits != 0);
	EXPECT_EQ(noh_send_ref(box, ref, ADD, &(uint64_t){ 3 }, 8), NOH_OK);
	EXPECT_EQ(get(box, "a:1", GET), 3);
	EXPECT_EQ(noh_deactivate(box, "a:1", false, SOON), NOH_OK);
	EXPECT_EQ(noh_send_ref(box, ref, ADD, &(uint64_t){ 3 }, 8), NOH_EGONE);
	EXPECT(strstr(noh_why(), "address"));
	EXPECT_EQ(get(box, "a:1", GET), 3);                /* alive again, under another reference */
	EXPECT_EQ(noh_send_ref(box, ref, ADD, &(uint64_t){ 3 }, 8), NOH_EGONE);
	EXPECT_EQ(get(box, "a:1", GET), 3);
	end(box);
}

#define LISTED 10000

static unsigned list(noh_box *box, const char *type, uint8_t *seen, size_t page)
{
	noh_entry *entries = malloc(page * sizeof *entries);
	uint64_t   cursor = 0;
	unsigned   n = 0;

	do {
		size_t count = page;

		EXPECT_EQ(noh_list(box, type, &cursor, entries, &count), NOH_OK);
		EXPECT(count <= page);
		for (size_t i = 0; i < count; i++, n++) {
			const char *id = strchr(entries[i].address, ':') + 1;

			EXPECT_EQ(entries[i].life, NOH_ACTIVE);
			EXPECT(entries[i].ref.bits != 0);
			EXPECT_EQ(seen[atoi(id) + (entries[i].address[0] == 'b' ? LISTED : 0)]++, 0);
		}
	} while (cursor);
	free(entries);
	return n;
}

static void a_list_has_every_active_actor_once(void)
{
	static uint8_t seen[LISTED + 100];
	noh_box *box = BOX(2, &a_type, &b_type);
	char address[32];
	uint64_t cursor = 0;
	size_t count = 1;
	noh_entry entry;

	for (int i = 0; i < LISTED + 100; i++) {
		snprintf(address, sizeof address, i < LISTED ? "a:%d" : "b:%d", i % LISTED);
		EXPECT_EQ(put(box, address, ADD, 1), NOH_OK);
	}
	EXPECT(settles(box, "a") && settles(box, "b"));
	EXPECT_EQ(stats(box).actors, LISTED + 100);
	EXPECT_EQ(list(box, NULL, seen, 333), LISTED + 100);
	memset(seen, 0, sizeof seen);
	EXPECT_EQ(list(box, "a", seen, 1000), LISTED);
	EXPECT_EQ(list(box, "b", seen, 7), 100);
	for (int i = 0; i < LISTED + 100; i++)
		EXPECT_EQ(seen[i], 1);
	EXPECT_EQ(noh_deactivate(box, "b:7", false, SOON), NOH_OK);
	memset(seen, 0, sizeof seen);
	EXPECT_EQ(list(box, "b", seen, 1000), 99);
	EXPECT_EQ(seen[LISTED + 7], 0);
	EXPECT_EQ(noh_list(box, "none", &cursor, &entry, &count), NOH_ENOTYPE);
	end(box);
}

static bool is_idle_for_a_while(void *box)
{
	return status_of(box, "a:1").idle_ms >= 100;
}

static void status_tells_what_there_is(void)
{
	noh_box *box = BOX(2, &a_type);

	gate_shut();
	EXPECT_EQ(noh_send(box, "a:1", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
	EXPECT_EQ(status_of(box, "a:1").life, NOH_ACTIVE);
	EXPECT_EQ(status_of(box, "a:1").mailbox_size, 3);
	gate_open();
	EXPECT_EQ(get(box, "a:1", GET), 3);
	EXPECT_EQ(status_of(box, "a:1").mailbox_size, 0);
	EXPECT(test_wait_until(is_idle_for_a_while, box, SOON));
	EXPECT_EQ(noh_deactivate(box, "a:1", false, SOON), NOH_OK);
	EXPECT_EQ(status_of(box, "a:1").life, NOH_NOT_ACTIVE);
	EXPECT(status_of(box, "a:1").stored);
	EXPECT_EQ(stats(box).actors, 0);
	EXPECT_EQ(stats(box).stored, 1);
	end(box);
}

static void numbers_add_up_over_workers_and_types(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = BOX(workers, &a_type, &b_type);
		noh_worker_stats w, sum = { 0 };
		char address[32];

		for (int i = 0; i < 3000; i++) {
			snprintf(address, sizeof address, i % 3 ? "a:%d" : "b:%d", i % 50);
			EXPECT_EQ(noh_send(box, address, i % 10 ? ADD : LATE, &(uint64_t){ 1 }, 8) < 0,
				  i % 3 && i % 10 == 0);       /* a has no kind LATE, b fails it */
		}
		EXPECT(settles(box, "a") && settles(box, "b"));
		EXPECT_EQ(stats_of(box, "b").failed, 100);
		EXPECT_EQ(stats_of(box, "a").handled, 1800);
		EXPECT_EQ(stats(box).workers, workers);
		for (unsigned i = 0; i < workers; i++) {
			EXPECT_EQ(noh_get_worker_stats(box, i, &w), NOH_OK);
			sum.messages += w.messages;
			sum.turns += w.turns;
		}
		EXPECT_EQ(sum.messages, 1800 + 900 + 100);
		EXPECT_EQ(sum.messages, stats(box).total.messages);
		EXPECT(sum.turns >= sum.messages);
		EXPECT_EQ(noh_get_worker_stats(box, workers, &w), NOH_EINVAL);
		EXPECT_EQ(stats(box).activations, stats(box).actors + stats(box).deactivations);
		EXPECT(stats(box).actors_peak_bytes >= stats(box).actor_bytes);
		end(box);
	}
}

static void *opens_later(void *arg)
{
	(void)arg;
	nap_us(150000);
	gate_open();
	return NULL;
}

/* The threads can only end once the held turn does; what waited behind it is lost by then. */
static void a_stop_that_takes_too_long_drops_and_counts(void)
{
	noh_box *box = BOX(1, &a_type);
	struct threads t;

	gate_shut();
	clear_done();
	EXPECT_EQ(noh_send(box, "a:1", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 500; i++)
		EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
	EXPECT_EQ(noh_call_then(box, "a:1", GET, NULL, 0, SOON, done, &done_count), NOH_OK);
	threads_start(&t, 1, opens_later);
	EXPECT_EQ(noh_stop(box, 20), NOH_ETIMEOUT);
	threads_join(&t);
	EXPECT(stats_of(box, "a").dropped_stop > 0);
	EXPECT(adds_up(box, "a"));
	noh_close(box);
	EXPECT_EQ(load_relaxed(&done_count), 1);
}

static void what_is_null_is_refused_and_crashes_nobody(void)
{
	noh_box *box = BOX(1, &a_type);
	noh_status status;
	noh_vitals vitals;
	noh_actor ref;
	size_t len = 0;

	EXPECT_EQ(noh_send(box, NULL, ADD, NULL, 0), NOH_EINVAL);
	EXPECT(strstr(noh_why(), "NULL") != NULL);
	EXPECT_EQ(noh_send(box, "a:1", ADD, NULL, 5), NOH_EINVAL);
	EXPECT(strstr(noh_why(), "a body of 5 bytes that is NULL") != NULL);
	EXPECT_EQ(noh_send_wait(box, NULL, ADD, NULL, 0, SOON), NOH_EINVAL);
	EXPECT_EQ(noh_send_wait(box, "a:1", ADD, NULL, 5, SOON), NOH_EINVAL);
	EXPECT_EQ(noh_call(box, NULL, GET, NULL, 0, SOON, NULL, &len), NOH_EINVAL);
	EXPECT_EQ(noh_call(box, "a:1", GET, NULL, 5, SOON, NULL, &len), NOH_EINVAL);
	EXPECT_EQ(noh_call_then(box, NULL, GET, NULL, 0, SOON, done, &done_count), NOH_EINVAL);
	EXPECT_EQ(noh_call_then(box, "a:1", GET, NULL, 5, SOON, done, &done_count), NOH_EINVAL);
	EXPECT_EQ(noh_step(box, &(noh_part){ NULL, ADD, NULL, 0 }, 1, NULL, NULL, NULL, NULL), NOH_EINVAL);
	EXPECT_EQ(noh_step(box, &(noh_part){ "a:1", ADD, NULL, 5 }, 1, NULL, NULL, NULL, NULL), NOH_EINVAL);
	EXPECT_EQ(noh_ref(box, NULL, &ref), NOH_EINVAL);
	EXPECT_EQ(noh_activate(box, NULL, SOON), NOH_EINVAL);
	EXPECT_EQ(noh_deactivate(box, NULL, false, SOON), NOH_EINVAL);
	EXPECT_EQ(noh_get_status(box, NULL, &status), NOH_EINVAL);
	EXPECT_EQ(noh_get_vitals(box, NULL, &vitals), NOH_EINVAL);
	EXPECT_EQ(noh_resume(box, NULL, SOON), NOH_EINVAL);
	EXPECT_EQ(noh_stop_tree(box, NULL, SOON), NOH_EINVAL);
	EXPECT_EQ(noh_schedule_drop(box, NULL, 0, SOON), NOH_EINVAL);
	EXPECT_EQ(noh_send_ref(box, (noh_actor){ 0 }, ADD, NULL, 5), NOH_EINVAL);
	EXPECT_EQ(stats(box).actors, 0);
	end(box);
}

TEST_MAIN(
	TEST(what_is_null_is_refused_and_crashes_nobody, "SC-12"),
	TEST(versions_and_codes_have_texts),
	TEST(kinds_have_numbers),
	TEST(options_that_make_no_sense_are_refused),
	TEST(types_that_make_no_sense_are_refused, "SC-04"),
	TEST(calls_out_of_order_are_refused),
	TEST(a_box_can_be_closed_at_any_stage, "US-14"),
	TEST(boxes_do_not_know_each_other, "US-14"),
	TEST(bad_input_gets_a_code_and_a_sentence, "ID-04 SC-12"),
	TEST(blocking_inside_a_turn_is_refused),
	TEST(answers_are_cut_to_the_room_and_say_so, "RT-14"),
	TEST(messages_of_all_sizes_arrive_whole, "RT-13 RT-14"),
	TEST(a_call_ends_in_time_and_its_late_answer_is_counted, "RT-14"),
	TEST(call_then_calls_back_exactly_once, "RT-14"),
	TEST(call_then_that_is_refused_never_calls_back),
	TEST(call_then_calls_back_even_if_the_box_stops_first),
	TEST(a_reference_works_until_its_actor_goes_to_storage, "ID-06"),
	TEST(a_list_has_every_active_actor_once, "RT-18"),
	TEST(status_tells_what_there_is, "RT-17 MB-16"),
	TEST(numbers_add_up_over_workers_and_types),
	TEST(a_stop_that_takes_too_long_drops_and_counts))
