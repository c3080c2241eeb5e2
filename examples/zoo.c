/* zoo.c - workers that fail, and what each policy of supervision makes of it.
 *
 * A zoo has cages, a cage has three animals: a, b and c. In every show b misbehaves, and what happens to it, to the others
 * and to whoever calls is told, looked at, and checked. Ends with 0 only if every show went as it should.
 *
 *     zoo ─┬─ one_for_one ─┬─ a
 *          │               ├─ b     fails
 *          │               └─ c
 *          ├─ one_for_all ── ...
 */
#define _POSIX_C_SOURCE 200809L
#include <noh.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SOON = 20000, ANIMALS = 3 };
enum { WORK, SLEEP, LEAVE, FEED, GONE, KINDS };          /* messages; GONE: to a cage, of an animal */

struct cage {
	const char     *name, *animals, *title;
	noh_supervision keeper, animal;
	atomic_int      faults;                  /* b fails so many times */
	atomic_int      births[ANIMALS], keeper_births;
	atomic_int      heard;                   /* what the cage was told of b */
};

#define QUICK .base_ms = 1, .cap_ms = 20, .restarts = NOH_NEVER, .retries = 20
#define TWICE .base_ms = 1, .cap_ms = 20, .restarts = 2, .retries = 20
enum { ONE, ALL, REST, POISON, TEMPORARY, PERMANENT, TRANSIENT, DEADLINE,
       ESCALATE, DEGRADE, STOP, QUARANTINE, QUARANTINE_TYPE, AWAIT, CAGES };
static struct cage cages[CAGES] = {
	[ONE] = { .name = "one_for_one", .animals = "cat", .title = "b alone is restarted",
		.keeper = { .strategy = NOH_ONE_FOR_ONE, QUICK }, .animal = { QUICK } },
	[ALL] = { .name = "one_for_all", .animals = "dog", .title = "all are restarted",
		.keeper = { .strategy = NOH_ONE_FOR_ALL, QUICK }, .animal = { QUICK } },
	[REST] = { .name = "rest_for_one", .animals = "elk", .title = "b, and c that came after it",
		.keeper = { .strategy = NOH_REST_FOR_ONE, QUICK }, .animal = { QUICK } },
	[POISON] = { .name = "poison", .animals = "fox", .title = "what fails again and again is set aside",
		.keeper = { QUICK }, .animal = { .base_ms = 1, .cap_ms = 5, .restarts = NOH_NEVER, .retries = 2 } },
	[TEMPORARY] = { .name = "temporary", .animals = "gnu", .title = "not restarted; the next message wakes it",
		.keeper = { QUICK }, .animal = { .restart = NOH_TEMPORARY, QUICK } },
	[PERMANENT] = { .name = "permanent", .animals = "hen", .title = "who leaves comes back",
		.keeper = { QUICK }, .animal = { .restart = NOH_PERMANENT, QUICK } },
	[TRANSIENT] = { .name = "transient", .animals = "ibis", .title = "who leaves has left",
		.keeper = { QUICK }, .animal = { .restart = NOH_TRANSIENT, QUICK } },
	[DEADLINE] = { .name = "deadline", .animals = "jay", .title = "a turn that takes too long is a failure",
		.keeper = { QUICK }, .animal = { QUICK, .turn_deadline_ms = 50 } },
	[ESCALATE] = { .name = "escalate", .animals = "kiwi", .title = "failing too often is the keeper's failure",
		.keeper = { .then = NOH_THEN_ESCALATE, QUICK }, .animal = { TWICE } },
	[DEGRADE] = { .name = "degrade", .animals = "lynx", .title = "failing too often: degraded, tried again later",
		.keeper = { .then = NOH_THEN_DEGRADE, QUICK },
		.animal = { .base_ms = 1, .cap_ms = 200, .restarts = 2, .retries = 20 } },
	[STOP] = { .name = "stop", .animals = "mole", .title = "failing too often: stopped until resumed",
		.keeper = { .then = NOH_THEN_STOP, QUICK }, .animal = { TWICE } },
	[QUARANTINE] = { .name = "quarantine", .animals = "newt", .title = "failing too often: quarantined until resumed",
		.keeper = { .then = NOH_THEN_QUARANTINE, QUICK }, .animal = { TWICE } },
	[QUARANTINE_TYPE] = { .name = "quarantine_type", .animals = "orca", .title = "and its whole type with it",
		.keeper = { .then = NOH_THEN_QUARANTINE_TYPE, QUICK }, .animal = { TWICE } },
	[AWAIT] = { .name = "await", .animals = "puma", .title = "failing too often: until there is a higher revision",
		.keeper = { .then = NOH_THEN_AWAIT, QUICK }, .animal = { TWICE } },
};

static noh_box *box;
static int wrong;

/* ── animals, cages, the zoo ── */

static int animal(noh_turn *turn, const noh_msg *msg)
{
	struct cage *cage = noh_user(turn);
	const struct timespec nap = { 0, 100 * 1000 * 1000 };
	bool fails = noh_id(turn)[0] == 'b' && atomic_load(&cage->faults) > 0 && atomic_fetch_sub(&cage->faults, 1) > 0;
	uint64_t revision = 0;

	if (msg->kind == SLEEP && fails)
		return nanosleep(&nap, NULL), NOH_OK;    /* it worked, but held everybody up */
	if (fails)
		return noh_fail(turn, "%s bit its keeper", noh_address(turn));
	if (msg->kind == LEAVE)
		return noh_stop_self(turn);
	if (msg->kind != FEED || msg->len != sizeof revision)
		return NOH_OK;
	memcpy(&revision, msg->body, sizeof revision);
	return noh_set_revision(turn, revision, revision);
}

static int animal_is_born(noh_turn *turn)
{
	struct cage *cage = noh_user(turn);

	atomic_fetch_add(&cage->births[noh_id(turn)[0] - 'a'], 1);
	return NOH_OK;
}

static int cage_is_built(noh_turn *turn)
{
	struct cage *cage = noh_user(turn);
	char address[32];
	int rc = NOH_OK;

	atomic_fetch_add(&cage->keeper_births, 1);
	for (int i = 0; rc == NOH_OK && i < ANIMALS; i++) {
		snprintf(address, sizeof address, "%s:%c", cage->animals, 'a' + i);
		rc = noh_spawn(turn, address, NULL);
	}
	snprintf(address, sizeof address, "%s:b", cage->animals);
	return rc == NOH_OK ? noh_watch(turn, address, GONE) : rc;
}

static int cage_hears(noh_turn *turn, const noh_msg *msg)
{
	struct cage *cage = noh_user(turn);

	if (msg->kind == GONE)
		atomic_fetch_add(&cage->heard, 1);
	return NOH_OK;
}

static int zoo_is_built(noh_turn *turn)
{
	char address[32];
	int rc = NOH_OK;

	for (int i = 0; rc == NOH_OK && i < CAGES; i++) {
		snprintf(address, sizeof address, "%s:cage", cages[i].name);
		rc = noh_spawn(turn, address, NULL);
	}
	return rc;
}

static int nothing(noh_turn *turn, const noh_msg *msg)
{
	(void)turn, (void)msg;
	return NOH_OK;
}

/* ── looking ── */

static void expect(bool so, const char *what)
{
	printf("    %s %s\n", so ? "so it is: " : "WRONG:    ", what);
	wrong += !so;
}

static int call(const struct cage *cage, char who, uint32_t kind, uint64_t revision)
{
	char address[32];

	snprintf(address, sizeof address, "%s:%c", cage->animals, who);
	return noh_call(box, address, kind, &revision, kind == FEED ? sizeof revision : 0, SOON, NULL, NULL);
}

/* Ask until it answers so: what follows a failure takes its back-off. */
static bool call_gives(const struct cage *cage, char who, int result)
{
	for (int i = 0; i < SOON; i++) {
		if (call(cage, who, WORK, 0) == result)
			return true;
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	}
	return false;
}

static bool reaches(atomic_int *number, int least)
{
	for (int i = 0; i < SOON && atomic_load(number) < least; i++)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	return atomic_load(number) >= least;
}

static bool births_are(struct cage *cage, int a, int b, int c)
{
	return reaches(&cage->births[0], a) && reaches(&cage->births[1], b) && reaches(&cage->births[2], c) &&
	       cage->births[0] == a && cage->births[1] == b && cage->births[2] == c;
}

static noh_vitals vitals_of(const struct cage *cage, char who)
{
	noh_vitals v = { 0 };
	char address[32];

	snprintf(address, sizeof address, "%s:%c", cage->animals, who);
	(void)noh_get_vitals(box, address, &v);
	return v;
}

static bool is_away(const struct cage *cage, char who)
{
	for (int i = 0; i < SOON && vitals_of(cage, who).life != NOH_NOT_ACTIVE; i++)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	return vitals_of(cage, who).life == NOH_NOT_ACTIVE;
}

static int print_node(void *user, const noh_tree_node *n)
{
	(void)user;
	printf("    %*s%-*s %-12s", (int)n->depth * 3, "", 24 - (int)n->depth * 3, n->address, noh_health_name(n->vitals->health));
	if (n->vitals->restarts)
		printf(" restarts %llu, %s", (unsigned long long)n->vitals->restarts, n->vitals->reason);
	printf("\n");
	return 0;
}

static void print_cage(const struct cage *cage)
{
	char address[40];

	snprintf(address, sizeof address, "%s:cage", cage->name);
	(void)noh_tree(box, address, print_node, NULL);
}

static int print_event(void *user, const noh_event *e)
{
	(void)user;
	printf("    event %-4llu %-20s %-12s %s%s%s %s\n", (unsigned long long)e->seq, e->actor, e->kind, e->from,
	       e->to[0] ? " > " : "", e->to, e->reason);
	return 0;
}

/* Live, until the zoo closes. */
static void *print_events(void *arg)
{
	uint64_t cursor = 0;
	int rc;

	(void)arg;
	do {
		rc = noh_events_read(box, &cursor, NULL, 100, print_event, NULL);
		if (rc == NOH_END)
			rc = noh_events_wait(box, cursor, SOON);
	} while (rc == NOH_OK || rc == NOH_ETIMEOUT);
	return NULL;
}

/* ── the shows ── */

static void show_strategies(void)
{
	for (int i = ONE; i <= REST; i++) {
		printf("%s: %s\n", cages[i].name, cages[i].title);
		cages[i].faults = 1;
		expect(call(&cages[i], 'b', WORK, 0) == NOH_OK, "b fails, is restarted, and answers all the same");
		expect(births_are(&cages[i], i == ALL ? 2 : 1, 2, i == ONE ? 1 : 2), cages[i].title);
		expect(reaches(&cages[i].heard, 1), "the cage was told: it watches b");
		print_cage(&cages[i]);
	}
}

static void show_messages(void)
{
	struct cage *poison = &cages[POISON], *deadline = &cages[DEADLINE];
	noh_type_stats s;

	printf("%s: %s\n", poison->name, poison->title);
	poison->faults = 3;                              /* once, and two retries */
	expect(call(poison, 'b', WORK, 0) == NOH_EFAILED, "its caller is told that it failed");
	expect(call(poison, 'b', WORK, 0) == NOH_OK, "the next message is handled");
	expect(noh_get_type_stats(box, poison->animals, &s) == NOH_OK && s.set_aside == 1, "one message was set aside");

	printf("%s: %s\n", deadline->name, deadline->title);
	deadline->faults = 1;
	expect(call(deadline, 'b', SLEEP, 0) == NOH_OK, "b sleeps in its turn, is restarted, and answers");
	expect(vitals_of(deadline, 'b').restarts == 1, "that was a failure");
	print_cage(deadline);
}

static void show_restarts(void)
{
	struct cage *temporary = &cages[TEMPORARY];

	printf("%s: %s\n", temporary->name, temporary->title);
	temporary->faults = 1;
	expect(call(temporary, 'b', WORK, 0) == NOH_EFAILED, "its caller is told that it failed");
	expect(call_gives(temporary, 'b', NOH_OK), "the next one is answered");

	for (int i = PERMANENT; i <= TRANSIENT; i++) {
		printf("%s: %s\n", cages[i].name, cages[i].title);
		expect(call(&cages[i], 'b', LEAVE, 0) == NOH_OK, "b leaves");
		if (i == PERMANENT)
			expect(reaches(&cages[i].births[1], 2), "and is back");
		else
			expect(is_away(&cages[i], 'b'), "and is away");
	}
}

static void show_escalation(void)
{
	struct cage *cage = &cages[ESCALATE];

	printf("%s: %s\n", cage->name, cage->title);
	cage->faults = 3;                                /* two restarts are allowed */
	expect(call_gives(cage, 'b', NOH_OK), "b works again in the end");
	expect(reaches(&cage->keeper_births, 2), "the cage was restarted");
	expect(reaches(&cage->births[0], 2) && reaches(&cage->births[2], 2), "and with it a and c, who had done nothing");
	print_cage(cage);
}

/* What becomes of b when it has failed too often: refused so, healthy again by that. */
static void show_giving_up(void)
{
	static const struct { int cage, refused, health; const char *how; } ends[] = {
		{ DEGRADE, NOH_EDEGRADED, NOH_DEGRADED, "time" },
		{ STOP, NOH_EDEGRADED, NOH_STOPPED, "resume" },
		{ QUARANTINE, NOH_EQUARANTINED, NOH_QUARANTINED, "resume" },
		{ QUARANTINE_TYPE, NOH_EQUARANTINED, NOH_QUARANTINED, "resume type" },
		{ AWAIT, NOH_EQUARANTINED, NOH_AWAITING, "revision" },
	};

	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		struct cage *cage = &cages[ends[i].cage];
		char name[32];

		printf("%s: %s\n", cage->name, cage->title);
		cage->faults = 3;
		expect(call_gives(cage, 'b', ends[i].refused), noh_strerror(ends[i].refused));
		expect(vitals_of(cage, 'b').health == (noh_health)ends[i].health, noh_health_name((noh_health)ends[i].health));
		expect(call(cage, 'c', WORK, 0) == (ends[i].cage == QUARANTINE_TYPE ? NOH_EQUARANTINED : NOH_OK),
		       ends[i].cage == QUARANTINE_TYPE ? "c, which has done nothing, is refused as well" : "c works on");
		print_cage(cage);
		snprintf(name, sizeof name, "%s%s", cage->animals, ends[i].cage == QUARANTINE_TYPE ? "" : ":b");
		if (strncmp(ends[i].how, "resume", 6) == 0)
			expect(noh_resume(box, name, SOON) == NOH_OK, "somebody says: resume");
		if (strcmp(ends[i].how, "revision") == 0)
			expect(call(cage, 'b', FEED, 2) == NOH_OK, "a higher revision comes");
		expect(call_gives(cage, 'b', NOH_OK), "b works again");
	}
}

static void revision_of(const void *body, size_t len, uint64_t *key, uint64_t *revision)
{
	*key = 0;
	*revision = 0;
	if (len == sizeof *revision)
		memcpy(revision, body, sizeof *revision);
}

static int open_zoo(void)
{
	static const noh_kind kinds[KINDS] = { [WORK] = { .name = "work" }, [SLEEP] = { .name = "sleep" },
		[LEAVE] = { .name = "leave" }, [GONE] = { .name = "gone" },
		[FEED] = { .name = "feed", .flags = NOH_KIND_COALESCE, .coalesce = revision_of } };
	static const noh_supervision director = { QUICK };
	const noh_type zoo = { .name = "zoo", .idle_timeout_ms = NOH_NEVER, .on_activate = zoo_is_built, .on_message = nothing,
			       .supervision = &director };
	const noh_options options = { .workers = 2, .unpinned = true };
	int rc = noh_open(&box, &options);

	for (int i = 0; rc == NOH_OK && i < CAGES; i++) {
		const noh_type cage = { .name = cages[i].name, .idle_timeout_ms = NOH_NEVER, .kinds = kinds, .kind_count = KINDS,
			.on_activate = cage_is_built, .on_message = cage_hears, .user = &cages[i],
			.supervision = &cages[i].keeper };
		const noh_type animals = { .name = cages[i].animals, .idle_timeout_ms = NOH_NEVER, .kinds = kinds,
			.kind_count = KINDS, .on_activate = animal_is_born, .on_message = animal, .user = &cages[i],
			.supervision = &cages[i].animal };

		rc = noh_register(box, &cage);
		if (rc == NOH_OK)
			rc = noh_register(box, &animals);
	}
	if (rc == NOH_OK)
		rc = noh_register(box, &zoo);
	if (rc == NOH_OK)
		rc = noh_set_log_level(box, "error");
	if (rc == NOH_OK)
		rc = noh_start(box);
	return rc == NOH_OK ? noh_activate(box, "zoo:main", SOON) : rc;
}

int main(void)
{
	pthread_t printer;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (open_zoo() != NOH_OK || pthread_create(&printer, NULL, print_events, NULL) != 0)
		return fprintf(stderr, "%s\n", noh_why()), 1;
	for (int i = 0; i < CAGES; i++)
		for (int who = 0; who < ANIMALS; who++)
			if (!reaches(&cages[i].births[who], 1))
				return fprintf(stderr, "%s: %c was never born\n", cages[i].name, 'a' + who), 1;
	show_strategies();
	show_messages();
	show_restarts();
	show_escalation();
	show_giving_up();
	expect(noh_stop_tree(box, "zoo:main", SOON) == NOH_OK, "the zoo closes, cage by cage, the last one first");
	noh_stop(box, SOON);
	pthread_join(printer, NULL);
	noh_close(box);
	return wrong != 0;
}
