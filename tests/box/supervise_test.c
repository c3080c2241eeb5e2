/* tests/box/supervise_test.c - an actor that fails: restarted, given up, resumed; what is known of it. */
#include "tests/box/chain_kit.h"
#include "tests/box/supervise_kit.h"

#include <sys/wait.h>

#define QUICK .base_ms = 1, .cap_ms = 4

static const noh_supervision patient = { QUICK, .restarts = 100 };
static const noh_supervision strict = { QUICK, .restarts = 2, .then = NOH_THEN_DEGRADE, .retries = 50 };
static const noh_supervision breaker = { .base_ms = 1, .cap_ms = 300, .restarts = 2, .then = NOH_THEN_DEGRADE, .retries = 50 };
static const noh_supervision jail = { QUICK, .restarts = 2, .then = NOH_THEN_QUARANTINE, .retries = 50 };
static const noh_supervision stopping = { QUICK, .restarts = 2, .then = NOH_THEN_STOP, .retries = 50 };
static const noh_supervision await = { QUICK, .restarts = 2, .then = NOH_THEN_AWAIT, .retries = 50 };
static const noh_supervision jail_all = { QUICK, .restarts = 2, .then = NOH_THEN_QUARANTINE_TYPE, .retries = 50 };
static const noh_supervision at_once = { QUICK, .restarts = 100, .retries = NOH_NEVER };
static const noh_supervision hasty = { QUICK, .restarts = 100, .turn_deadline_ms = 20 };
static const noh_supervision temporary = { QUICK, .restart = NOH_TEMPORARY };
static const noh_supervision transient = { QUICK, .restart = NOH_TRANSIENT };
static const noh_supervision steep = { .base_ms = 1, .factor = 100, .cap_ms = 5000, .restarts = 100, .retries = 50 };
static const noh_supervision slow = { .base_ms = 60000, .cap_ms = 60000, .restarts = 100 };

static const noh_type plain = WORKER("w", NULL), patients = WORKER("w", &patient), strictly = WORKER("w", &strict),
	breakers = WORKER("w", &breaker), jailed = WORKER("w", &jail), stopped = WORKER("w", &stopping),
	awaiting = WORKER("w", &await), jailed_all = WORKER("w", &jail_all), gives_up = WORKER("w", &at_once),
	hurried = WORKER("w", &hasty), temps = WORKER("w", &temporary), transients = WORKER("w", &transient),
	slowly = WORKER("w", &slow), steeply = WORKER("w", &steep);

/* ── restarts ── */

static void a_message_that_failed_comes_again_after_a_restart(void)
{
	FOR_WORKERS(n) {
		noh_box *box = BOX(n, &patients);

		set_failures(3, false);
		EXPECT_EQ(get(box, "w:one", FLAKY), 100);        /* once, however often it was tried */
		EXPECT_EQ(get(box, "w:one", ACTIVATIONS), 4);
		noh_vitals v = vitals_of(box, "w:one");

		EXPECT_EQ(v.health, NOH_HEALTHY);
		EXPECT_EQ(v.restarts, 3);
		EXPECT(strcmp(v.reason, "no luck today") == 0);
		EXPECT(v.failed_ms != 0);
		EXPECT_EQ(stats_of(box, "w").restarts, 3);
		EXPECT_EQ(stats_of(box, "w").activations, 1);
		EXPECT(settles(box, "w"));
		EXPECT_EQ(stats_of(box, "w").failed, 0);
		end_chained(box);
	}
}

/* Up to 1 ms after the first failure, up to 100 ms after the second; after the third it would be 10 s, and is cut to 5. */
static void a_back_off_grows_to_its_cap_and_is_drawn_from_all_of_it(void)
{
	enum { MANY = 200 };
	noh_box *box = BOX(2, &steeply);
	uint64_t sum = 0, most = 0;
	unsigned quarter[4] = { 0 };
	char address[16];

	for (int i = 0; i < MANY; i++) {
		snprintf(address, sizeof address, "w:%d", i);
		EXPECT_EQ(noh_send(box, address, POISON, "abc", 3), NOH_OK);
	}
	for (int i = 0; i < MANY; i++) {
		noh_vitals v;

		snprintf(address, sizeof address, "w:%d", i);
		do {
			usleep(1000);
			v = vitals_of(box, address);
		} while (v.restarts < 2 || v.health != NOH_DOWN);
		uint64_t wait = v.until_ms - v.failed_ms;

		EXPECT(v.until_ms >= v.failed_ms && wait <= 5000);
		if (wait <= 5000)
			quarter[wait / 1251]++;
		sum += wait;
		most = wait > most ? wait : most;
	}
	for (int q = 0; q < 4; q++)
		EXPECT(quarter[q] >= MANY / 10);         /* a quarter of them are to be expected */
	EXPECT(most > 4000 && sum / MANY > 1500 && sum / MANY < 3500);
	end_chained(box);
}

static void without_supervision_a_failure_is_answered_and_nothing_else(void)
{
	noh_box *box = BOX(1, &plain);

	set_failures(1, false);
	EXPECT_EQ(call(box, "w:one", FLAKY), NOH_EFAILED);
	EXPECT_EQ(get(box, "w:one", ACTIVATIONS), 1);
	EXPECT_EQ(vitals_of(box, "w:one").restarts, 0);
	end_chained(box);
}

static void what_waits_survives_the_restart_in_order(void)
{
	FOR_WORKERS(n) {
		noh_box *box = BOX(n, &patients);

		set_failures(3, false);
		EXPECT_EQ(noh_send(box, "w:one", FLAKY, NULL, 0), NOH_OK);
		for (uint64_t i = 1; i <= 9; i++)
			EXPECT_EQ(put(box, "w:one", ADD, i), NOH_OK);
		EXPECT_EQ(get(box, "w:one", LIST), 0x123456789);
		EXPECT_EQ(get(box, "w:one", GET), 145);
		EXPECT(settles(box, "w"));
		end_chained(box);
	}
}

static void a_message_that_always_fails_is_set_aside_and_its_actor_goes_on(void)
{
	noh_box *box = BOX(1, &patients);

	EXPECT_EQ(noh_call(box, "w:one", POISON, "abc", 3, SOON, NULL, NULL), NOH_EFAILED);
	EXPECT_EQ(vitals_of(box, "w:one").restarts, 4);          /* once, and three retries */
	EXPECT_EQ(put(box, "w:one", ADD, 7), NOH_OK);
	EXPECT_EQ(get(box, "w:one", GET), 7);
	EXPECT_EQ(stats_of(box, "w").set_aside, 1);
	EXPECT_EQ(stats_of(box, "w").failed, 1);
	EXPECT_EQ(stats(box).dead_letters, 1);
	EXPECT(strcmp(vitals_of(box, "w:one").reason, "I never liked 3") == 0);
	end_chained(box);
}

static void who_called_is_told_what_it_failed_of(void)
{
	noh_box *box = BOX(1, &jailed);

	EXPECT_EQ(noh_call(box, "w:one", POISON, "abc", 3, SOON, NULL, NULL), NOH_EFAILED);
	EXPECT(strstr(noh_why(), "w:one: ") == noh_why() && strstr(noh_why(), ": I never liked 3") != NULL);
	EXPECT(gets(box, "w:one", NOH_QUARANTINED));
	EXPECT_EQ(call(box, "w:one", GET), NOH_EQUARANTINED);
	EXPECT(strstr(noh_why(), "w:one: ") == noh_why() && strstr(noh_why(), ": I never liked 3") != NULL);
	end_chained(box);
}

static int found_dead(void *user, const noh_dead *d)
{
	EXPECT(strcmp(d->address, "w:one") == 0);
	EXPECT(strstr(d->reason, "I never liked") != NULL);
	EXPECT_EQ(d->kind, POISON);
	EXPECT(d->len == 3 && memcmp(d->body, "abc", 3) == 0);
	++*(int *)user;
	return 0;
}

static void a_message_set_aside_is_a_durable_dead_letter(void)
{
	char room[256];
	const char *dir = light_dir(room, sizeof room);
	int found = 0;
	noh_box *box = open_logged(dir, 1, TYPES(&gives_up));

	EXPECT_EQ(noh_call(box, "w:one", POISON, "abc", 3, SOON, NULL, NULL), NOH_EFAILED);
	EXPECT_EQ(vitals_of(box, "w:one").restarts, 1);          /* no retry */
	EXPECT_EQ(noh_dead_list(box, NULL, NULL, SOON, found_dead, &found), NOH_OK);
	EXPECT_EQ(found, 1);
	end_chained(box);
	box = open_logged(dir, 1, TYPES(&gives_up));
	EXPECT_EQ(noh_dead_list(box, NULL, NULL, SOON, found_dead, &found), NOH_OK);
	EXPECT_EQ(found, 2);
	EXPECT_EQ(vitals_of(box, "w:one").restarts, 1);
	end_chained(box);
	remove_dir(dir);
}

static void an_activation_that_fails_is_tried_again(void)
{
	noh_box *box = BOX(2, &patients);

	set_failures(3, true);
	EXPECT_EQ(put(box, "w:one", ADD, 5), NOH_OK);
	EXPECT_EQ(get(box, "w:one", GET), 5);
	EXPECT_EQ(get(box, "w:one", ACTIVATIONS), 1);            /* the others were undone */
	EXPECT_EQ(vitals_of(box, "w:one").restarts, 3);
	EXPECT(strcmp(vitals_of(box, "w:one").reason, "cannot begin") == 0);
	EXPECT_EQ(stats_of(box, "w").activations, 1);
	end_chained(box);
}

static void a_turn_past_its_deadline_has_failed(void)
{
	noh_box *box = BOX(1, &hurried);

	set_failures(2, false);                  /* twice it takes 60 ms */
	EXPECT_EQ(call(box, "w:one", LATE), NOH_OK);
	EXPECT_EQ(get(box, "w:one", GET), 100);
	EXPECT(vitals_of(box, "w:one").restarts >= 2);
	EXPECT(strstr(vitals_of(box, "w:one").reason, "20 are allowed") != NULL);
	end_chained(box);
}

static void a_temporary_actor_is_not_restarted(void)
{
	noh_box *box = BOX(1, &temps);

	EXPECT_EQ(put(box, "w:one", ADD, 5), NOH_OK);
	EXPECT_EQ(noh_call(box, "w:one", POISON, NULL, 0, SOON, NULL, NULL), NOH_EFAILED);
	EXPECT(goes_to_storage(box, "w:one"));
	EXPECT_EQ(vitals_of(box, "w:one").restarts, 0);
	EXPECT_EQ(get(box, "w:one", GET), 5);            /* woken, with what it had */
	EXPECT_EQ(get(box, "w:one", ACTIVATIONS), 2);
	end_chained(box);
}

static bool came_back(void *box)
{
	return stats_of(box, "w").activations == 2;
}

static void a_permanent_actor_that_stops_itself_comes_back(void)
{
	noh_box *box = BOX(1, &patients);

	EXPECT_EQ(noh_send(box, "w:one", STOP, NULL, 0), NOH_OK);
	EXPECT(test_wait_until(came_back, box, SOON));
	end_chained(box);
	box = BOX(1, &transients);
	EXPECT_EQ(noh_send(box, "w:one", STOP, NULL, 0), NOH_OK);
	EXPECT(goes_to_storage(box, "w:one"));
	EXPECT_EQ(stats_of(box, "w").activations, 1);
	end_chained(box);
}

static void a_box_stops_although_an_actor_is_down(void)
{
	char room[256];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = open_logged(dir, 2, TYPES(&slowly));
	noh_vitals v;

	set_failures(1, false);
	EXPECT_EQ(noh_send(box, "w:one", FLAKY, NULL, 0), NOH_OK);
	EXPECT(gets(box, "w:one", NOH_DOWN));
	v = vitals_of(box, "w:one");
	EXPECT(v.until_ms > v.failed_ms && v.until_ms <= v.failed_ms + 60000);
	uint64_t five = 5;

	/* Recorded: it survives, though nobody is there to take it. */
	EXPECT_EQ(noh_call(box, "w:sender", SEND_ADD, &five, 8, SOON, NULL, NULL), NOH_OK);
	end_chained(box);
	set_failures(0, false);
	box = open_logged(dir, 2, TYPES(&slowly));
	EXPECT_EQ(get(box, "w:one", GET), 5);
	EXPECT_EQ(vitals_of(box, "w:one").health, NOH_HEALTHY);
	end_chained(box);
	remove_dir(dir);
}

static void one_that_is_down_can_be_deactivated_by_force(void)
{
	noh_box *box = BOX(2, &slowly);

	set_failures(1, false);
	EXPECT_EQ(noh_send(box, "w:one", FLAKY, NULL, 0), NOH_OK);
	EXPECT(gets(box, "w:one", NOH_DOWN));
	EXPECT_EQ(noh_activate(box, "w:one", SOON), NOH_EDEGRADED);
	EXPECT_EQ(noh_deactivate(box, "w:one", true, SOON), NOH_OK);
	EXPECT_EQ(get(box, "w:one", GET), 0);
	EXPECT(settles(box, "w"));
	end_chained(box);
}

/* ── given up ── */

static void fail_too_often(noh_box *box, const char *address)
{
	set_failures(1000000, false);
	EXPECT_EQ(call(box, address, FLAKY), NOH_EFAILED);
	set_failures(0, false);
}

static void too_many_failures_degrade_and_it_is_tried_again(void)
{
	noh_box *box = BOX(2, &breakers);

	EXPECT_EQ(put(box, "w:one", ADD, 5), NOH_OK);
	fail_too_often(box, "w:one");
	EXPECT_EQ(vitals_of(box, "w:one").health, NOH_DEGRADED);
	EXPECT_EQ(vitals_of(box, "w:one").restarts, 2);
	EXPECT_EQ(call(box, "w:one", GET), NOH_EDEGRADED);
	EXPECT_EQ(stats_of(box, "w").degraded, 1);
	EXPECT(gets(box, "w:one", NOH_HEALTHY));         /* by itself, without a message */
	EXPECT_EQ(get(box, "w:one", GET), 5);
	EXPECT_EQ(stats_of(box, "w").degraded, 0);
	EXPECT(logged("failed 3 times within 60000 ms, and is degraded"));
	EXPECT(settles(box, "w"));
	end_chained(box);
}

static int count_unwell(void *user, const char *address, const noh_vitals *v)
{
	(void)address;
	(void)v;
	++*(int *)user;
	return 0;
}

static void one_that_was_degraded_is_healthy_on_disk_when_it_is_again(void)
{
	char room[256];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = open_logged(dir, 2, TYPES(&breakers));
	int unwell = 0;

	fail_too_often(box, "w:one");
	EXPECT_EQ(noh_quarantine_list(box, "w", SOON, count_unwell, &unwell), NOH_OK);
	EXPECT_EQ(unwell, 1);
	EXPECT(gets(box, "w:one", NOH_HEALTHY));
	end_chained(box);
	box = open_logged(dir, 2, TYPES(&breakers));
	EXPECT_EQ(vitals_of(box, "w:one").health, NOH_HEALTHY);
	EXPECT_EQ(noh_quarantine_list(box, "w", SOON, count_unwell, &unwell), NOH_OK);
	EXPECT_EQ(unwell, 1);
	end_chained(box);
	remove_dir(dir);
}

static void one_that_was_stopped_stays_so_until_it_is_resumed(void)
{
	noh_box *box = BOX(1, &stopped);

	fail_too_often(box, "w:one");
	EXPECT_EQ(vitals_of(box, "w:one").health, NOH_STOPPED);
	EXPECT_EQ(call(box, "w:one", GET), NOH_EDEGRADED);
	EXPECT_EQ(noh_resume(box, "w:one", SOON), NOH_OK);
	EXPECT_EQ(noh_resume(box, "w:one", SOON), NOH_END);
	EXPECT_EQ(call(box, "w:one", GET), NOH_OK);
	EXPECT_EQ(vitals_of(box, "w:one").health, NOH_HEALTHY);
	end_chained(box);
}

static int list_one(void *user, const char *address, const noh_vitals *v)
{
	EXPECT(strcmp(address, "w:one") == 0);
	EXPECT_EQ(v->health, NOH_QUARANTINED);
	EXPECT(strcmp(v->reason, "no luck today") == 0);
	++*(int *)user;
	return 0;
}

static int listed(noh_box *box)
{
	int n = 0;

	EXPECT_EQ(noh_quarantine_list(box, NULL, SOON, list_one, &n), NOH_OK);
	return n;
}

static void quarantine_lasts_across_a_restart_of_the_box(void)
{
	char room[256];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = open_logged(dir, 2, TYPES(&jailed));
	uint64_t five = 5;

	EXPECT_EQ(noh_call(box, "w:one", ADD, &five, 8, SOON, NULL, NULL), NOH_OK);
	fail_too_often(box, "w:one");
	EXPECT_EQ(call(box, "w:one", GET), NOH_EQUARANTINED);
	EXPECT_EQ(listed(box), 1);
	/* What a durable actor sent is not lost. */
	EXPECT_EQ(noh_call(box, "w:sender", SEND_ADD, &five, 8, SOON, NULL, NULL), NOH_OK);
	EXPECT(settles(box, "w"));
	EXPECT_EQ(stats_of(box, "w").dropped_unwell, 2);
	end_chained(box);
	for (int crash = 0; crash < 2; crash++) {
		box = open_logged(dir, 2, TYPES(&jailed));
		EXPECT_EQ(vitals_of(box, "w:one").health, NOH_QUARANTINED);
		EXPECT_EQ(listed(box), 1);
		EXPECT_EQ(call(box, "w:one", GET), NOH_EQUARANTINED);
		if (!crash)
			noh_close(box);          /* at once: what follows reads the journal */
	}
	EXPECT_EQ(noh_resume(box, "w:one", SOON), NOH_OK);
	EXPECT_EQ(get(box, "w:one", GET), 5);
	EXPECT_EQ(listed(box), 0);
	end_chained(box);
	box = open_logged(dir, 2, TYPES(&jailed));
	EXPECT_EQ(get(box, "w:one", GET), 5);
	EXPECT_EQ(vitals_of(box, "w:one").restarts, 2);
	end_chained(box);
	noh_verified verified;

	EXPECT_EQ(noh_verify(dir, NULL, NULL, NULL, &verified), NOH_OK);
	remove_dir(dir);
}

static void a_higher_revision_is_a_new_beginning(void)
{
	noh_box *box = BOX(2, &awaiting);
	uint64_t three = 3, four = 4;

	EXPECT_EQ(noh_call(box, "w:one", APPLY, &three, 8, SOON, NULL, NULL), NOH_OK);
	fail_too_often(box, "w:one");
	EXPECT_EQ(vitals_of(box, "w:one").health, NOH_AWAITING);
	EXPECT_EQ(vitals_of(box, "w:one").desired, 3);
	EXPECT_EQ(call(box, "w:one", GET), NOH_EQUARANTINED);
	EXPECT_EQ(noh_call(box, "w:one", APPLY, &three, 8, SOON, NULL, NULL), NOH_EQUARANTINED);
	EXPECT_EQ(noh_call(box, "w:one", APPLY, &four, 8, SOON, NULL, NULL), NOH_OK);
	EXPECT_EQ(get(box, "w:one", GET), 4);
	EXPECT_EQ(vitals_of(box, "w:one").health, NOH_HEALTHY);
	EXPECT_EQ(vitals_of(box, "w:one").desired, 4);
	end_chained(box);
}

static void a_type_can_be_quarantined_as_a_whole(void)
{
	noh_box *box = BOX(2, &jailed_all);

	EXPECT_EQ(call(box, "w:two", GET), NOH_OK);
	fail_too_often(box, "w:one");
	EXPECT(gets(box, "w:two", NOH_QUARANTINED));
	EXPECT_EQ(call(box, "w:two", GET), NOH_EQUARANTINED);
	EXPECT_EQ(call(box, "w:three", GET), NOH_EQUARANTINED);
	EXPECT_EQ(noh_resume(box, "w:one", SOON), NOH_EQUARANTINED);
	EXPECT_EQ(noh_resume(box, "w", SOON), NOH_OK);
	EXPECT_EQ(call(box, "w:one", GET), NOH_OK);
	EXPECT_EQ(call(box, "w:two", GET), NOH_OK);
	EXPECT_EQ(call(box, "w:three", GET), NOH_OK);
	EXPECT_EQ(noh_resume(box, "w", SOON), NOH_END);
	end_chained(box);
}

static bool all_have_gone(void *box)
{
	char address[16];
	bool gone = true;

	for (int i = 0; gone && i < 100; i++) {
		snprintf(address, sizeof address, "w:%d", i);
		gone = status_of(box, address).life == NOH_NOT_ACTIVE;
	}
	return gone;
}

/* Whoever has the first place of all as well. */
static void all_of_a_quarantined_type_leave_memory(void)
{
	noh_box *box = BOX(1, &jailed_all);
	bool first = false;
	char address[16];
	noh_actor ref;

	for (int i = 0; i < 100; i++) {
		snprintf(address, sizeof address, "w:%d", i);
		EXPECT_EQ(call(box, address, GET), NOH_OK);
		EXPECT_EQ(noh_ref(box, address, &ref), NOH_OK);
		first |= (uint32_t)ref.bits == 2;                /* 1 is nobody's */
	}
	EXPECT(first);
	fail_too_often(box, "w:fails");
	EXPECT(test_wait_until(all_have_gone, box, SOON));
	end_chained(box);
}

static void a_quarantined_type_stays_so_across_a_restart_of_the_box(void)
{
	char room[256];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = open_logged(dir, 2, TYPES(&jailed_all));

	fail_too_often(box, "w:one");
	EXPECT_EQ(call(box, "w:two", GET), NOH_EQUARANTINED);
	end_chained(box);
	for (int i = 0; i < 2; i++) {
		box = open_logged(dir, 2, TYPES(&jailed_all));
		EXPECT(gets(box, "w:two", NOH_QUARANTINED));     /* soon after the start */
		EXPECT_EQ(call(box, "w:three", GET), NOH_EQUARANTINED);
		if (i == 0)
			noh_close(box);
	}
	EXPECT_EQ(noh_resume(box, "w", SOON), NOH_OK);
	EXPECT_EQ(call(box, "w:one", GET), NOH_OK);
	end_chained(box);
	box = open_logged(dir, 2, TYPES(&jailed_all));
	EXPECT_EQ(call(box, "w:three", GET), NOH_OK);
	end_chained(box);
	remove_dir(dir);
}

static void strict_limits_count_failures_not_messages(void)
{
	noh_box *box = BOX(1, &strictly);

	set_failures(2, false);
	EXPECT_EQ(get(box, "w:one", FLAKY), 100);        /* two restarts are allowed */
	EXPECT_EQ(vitals_of(box, "w:one").health, NOH_HEALTHY);
	fail_too_often(box, "w:one");
	end_chained(box);
}

static void kill_in(const char *dir, const noh_type *type)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		noh_box *box = open_logged(dir, 1, TYPES(type));

		(void)call(box, "w:one", KILL);
		_exit(0);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT(WIFSIGNALED(status));
}

static int add_crash(void *user, const noh_event *e)
{
	char *text = user;

	if (strcmp(e->kind, "failed") == 0 || strcmp(e->kind, "restarted") == 0)
		snprintf(text + strlen(text), 200 - strlen(text), "%s %s>%s|", e->kind, e->from, e->to);
	return 0;
}

static void a_process_that_ended_in_its_turn_is_its_failure(void)
{
	char room[256];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box;

	kill_in(dir, &jailed);
	for (int i = 0; i < 2; i++) {            /* it is counted once */
		box = open_logged(dir, 1, TYPES(&jailed));
		EXPECT_EQ(call(box, "w:one", GET), NOH_OK);
		EXPECT_EQ(noh_deactivate(box, "w:one", false, SOON), NOH_OK);
		EXPECT_EQ(call(box, "w:one", GET), NOH_OK);
		EXPECT_EQ(vitals_of(box, "w:one").restarts, 1);
		EXPECT(strstr(vitals_of(box, "w:one").reason, "the process ended") != NULL);
		char told[200] = "";
		uint64_t cursor = 0;

		EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
		EXPECT_EQ(noh_events_read(box, &cursor, &(noh_events_filter){ .actor = "w:one" }, 0, add_crash, told), NOH_END);
		EXPECT(strcmp(told, "failed active>down|restarted down>activating|") == 0);
		noh_close(box);
	}
	remove_dir(dir);
}

/* ── what an actor says of itself ── */

static void revisions_and_errors_are_kept_with_the_turn(void)
{
	char room[256];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = open_logged(dir, 1, TYPES(&plain));
	uint64_t seven = 7, much = 700;

	EXPECT_EQ(noh_call(box, "w:one", REVISION, &seven, 8, SOON, NULL, NULL), NOH_OK);
	set_failures(1, false);
	EXPECT_EQ(noh_call(box, "w:one", APPLY, &much, 8, SOON, NULL, NULL), NOH_EFAILED);   /* undone */
	for (int i = 0; i < 2; i++) {
		noh_vitals v = vitals_of(box, "w:one");

		EXPECT_EQ(v.desired, 7);
		EXPECT_EQ(v.observed, 6);
		EXPECT(strcmp(v.error, "no such host") == 0);
		EXPECT_EQ(v.life, i ? NOH_NOT_ACTIVE : NOH_ACTIVE);
		if (i == 0) {
			end_chained(box);
			box = open_logged(dir, 1, TYPES(&plain));
		}
	}
	EXPECT_EQ(noh_call(box, "w:one", REVISION, &much, 8, SOON, NULL, NULL), NOH_OK);
	EXPECT_EQ(vitals_of(box, "w:one").error[0], 0);
	EXPECT_EQ(vitals_of(box, "w:one").observed, 699);
	end_chained(box);
	remove_dir(dir);
}

static void nonsense_is_refused(void)
{
	static const noh_supervision bad[] = { { .strategy = 3 }, { .restart = -1 }, { .then = 6 }, { .factor = 101 },
					       { .retries = 201 } };
	noh_options o = kit_options(1);
	noh_box *box = kit_open(&o, TYPES(&plain));

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		noh_type t = WORKER("bad", &bad[i]);

		EXPECT_EQ(noh_register(box, &t), NOH_EINVAL);
	}
	EXPECT_EQ(noh_start(box), NOH_OK);
	noh_vitals v;

	EXPECT_EQ(noh_get_vitals(box, "none", &v), NOH_EADDRESS);
	EXPECT_EQ(noh_get_vitals(box, "none:such", &v), NOH_ENOTYPE);
	EXPECT_EQ(noh_get_vitals(box, "w:never", &v), NOH_OK);
	EXPECT_EQ(v.health, NOH_HEALTHY);
	EXPECT_EQ(v.life, NOH_NOT_ACTIVE);
	EXPECT_EQ(noh_resume(box, "w:never", SOON), NOH_END);
	EXPECT_EQ(noh_resume(box, "nobody", SOON), NOH_ENOTYPE);
	EXPECT_EQ(noh_find_type(box, "w")->supervision == NULL, 1);
	end_chained(box);
}

TEST_MAIN(
	TEST(a_message_that_failed_comes_again_after_a_restart, "SUP-01 SUP-02"),
	TEST(a_back_off_grows_to_its_cap_and_is_drawn_from_all_of_it, "SUP-08"),
	TEST(without_supervision_a_failure_is_answered_and_nothing_else),
	TEST(what_waits_survives_the_restart_in_order, "SUP-01"),
	TEST(a_message_that_always_fails_is_set_aside_and_its_actor_goes_on),
	TEST(who_called_is_told_what_it_failed_of, "SUP-06"),
	TEST(a_message_set_aside_is_a_durable_dead_letter, "SUP-17"),
	TEST(an_activation_that_fails_is_tried_again, "SUP-01"),
	TEST(a_turn_past_its_deadline_has_failed),
	TEST(a_temporary_actor_is_not_restarted),
	TEST(a_permanent_actor_that_stops_itself_comes_back),
	TEST(a_box_stops_although_an_actor_is_down),
	TEST(one_that_is_down_can_be_deactivated_by_force),
	TEST(too_many_failures_degrade_and_it_is_tried_again, "SUP-04"),
	TEST(one_that_was_degraded_is_healthy_on_disk_when_it_is_again, "SUP-04"),
	TEST(one_that_was_stopped_stays_so_until_it_is_resumed, "SUP-06 SUP-07"),
	TEST(quarantine_lasts_across_a_restart_of_the_box, "SUP-16 SUP-17"),
	TEST(a_higher_revision_is_a_new_beginning, "SUP-07"),
	TEST(a_type_can_be_quarantined_as_a_whole, "SUP-05"),
	TEST(all_of_a_quarantined_type_leave_memory, "SUP-05"),
	TEST(a_quarantined_type_stays_so_across_a_restart_of_the_box, "SUP-05"),
	TEST(a_process_that_ended_in_its_turn_is_its_failure, "SUP-01 SUP-17"),
	TEST(strict_limits_count_failures_not_messages, "SUP-06"),
	TEST(revisions_and_errors_are_kept_with_the_turn, "SUP-15 SUP-17"),
	TEST(nonsense_is_refused))
