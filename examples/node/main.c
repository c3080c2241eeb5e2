/* main.c - a node agent at work: what is desired, what happens, and whether it came out right.
 *
 *	node [DIRECTORY [SEED]]        without a directory: a fresh one, which is left in place
 *
 * Four acts: things come to be; they change, in bursts, and one dies behind everybody's back; the agent is stopped and started
 * again; all is taken down. After each act the world is compared with what is desired. Ends with 0 only if it is right.
 */
#define _XOPEN_SOURCE 700
#include "node.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SOON = 60000 };

static noh_box *box;
static atomic_int wrong;
static pthread_t printer;
static atomic_ullong printed;                    /* the last event that was */

static void expect(bool so, const char *what)
{
	if (!so)
		printf("  WRONG: %s\n", what);
	wrong += !so;
}

/* ── what is to be seen ── */

static int print_event(void *user, const noh_event *e)
{
	(void)user;
	expect(e->seq == printed + 1, "no event is missing, and none comes twice");
	printf("  %5llu  %-34s %-17s %s%s%s %s\n", (unsigned long long)e->seq, e->actor, e->kind, e->from,
	       e->to[0] ? " > " : "", e->to, e->reason);
	printed = e->seq;
	return 0;
}

/* Live: as they happen, from where the last one stopped, also in another life of the agent. */
static void *print_events(void *arg)
{
	uint64_t cursor = printed;
	int rc;

	(void)arg;
	do {
		rc = noh_events_read(box, &cursor, NULL, 100, print_event, NULL);
		if (rc == NOH_END)
			rc = noh_events_wait(box, cursor, SOON);
	} while (rc == NOH_OK || rc == NOH_ETIMEOUT);
	expect(rc == NOH_ESTOPPED, "events are told until the agent stops");
	return NULL;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
}

/* All that has happened so far is on the screen. */
static void until_printed(void)
{
	uint64_t oldest, newest = 0;

	expect(noh_events_bounds(box, &oldest, &newest) == NOH_OK, "there are events");
	for (int i = 0; i < SOON && printed < newest; i++)
		pause_ms(1);
	expect(printed >= newest, "the events are all there");
}

static int print_node(void *user, const noh_tree_node *n)
{
	int *count = user;

	++*count;
	printf("  %*s%-*s %-8s", (int)n->depth * 3, "", 46 - (int)n->depth * 3, n->address, noh_health_name(n->vitals->health));
	if (n->vitals->desired)
		printf(" revision %llu of %llu", (unsigned long long)n->vitals->observed, (unsigned long long)n->vitals->desired);
	if (n->vitals->restarts)
		printf(" restarts %llu (%s)", (unsigned long long)n->vitals->restarts, n->vitals->reason);
	printf("\n");
	return 0;
}

static void print_tree(int least)
{
	int count = 0;

	expect(noh_tree(box, "node_supervisor:" NODE, print_node, &count) == NOH_OK, "there is a tree");
	expect(count >= least, "everybody is in the tree");
}

/* ── what is desired ── */

static struct plane_event event(const char *supervisor, const char *child, uint32_t kind, const void *body, size_t len)
{
	struct plane_event e = { .message = { .kind = kind, .len = (uint32_t)len } };

	snprintf(e.supervisor, sizeof e.supervisor, "%s:" NODE, supervisor);
	snprintf(e.message.address, sizeof e.message.address, "%s", child);
	memcpy(e.message.body, body, len);
	return e;
}

static void want(const char *supervisor, const char *child, uint64_t revision, const void *spec, size_t len)
{
	uint8_t body[sizeof(((struct child_message *)0)->body)];

	memcpy(body, &revision, sizeof revision);
	memcpy(body + sizeof revision, spec, len);
	struct plane_event e = event(supervisor, child, NOH_RECONCILE_APPLY, body, sizeof revision + len);

	plane_publish(&e);
}

static void want_instance(const char *id, uint64_t revision, const char *image, uint64_t cpus)
{
	struct instance_spec spec = { .cpus = cpus };
	char address[40];

	snprintf(spec.image, sizeof spec.image, "%s", image);
	snprintf(address, sizeof address, "instance:%s", id);
	want("instance_supervisor", address, revision, &spec, sizeof spec);
}

static void want_peers(uint64_t revision, uint64_t a, uint64_t b, uint64_t c)
{
	struct wireguard_spec spec = { 3, { a, b, c } };

	want("overlay_supervisor", "wireguard:wg0", revision, &spec, sizeof spec);
}

static noh_reconcile_state state_of(const char *address)
{
	noh_reconcile_state s = { 0 };
	size_t len = sizeof s;

	(void)noh_call(box, address, NOH_RECONCILE_STATE, NULL, 0, SOON, &s, &len);
	return s;
}

static void until_applied(const char *address, uint64_t revision)
{
	expect(noh_call(box, address, NOH_RECONCILE_WAIT, &revision, sizeof revision, SOON, NULL, NULL) == NOH_OK, address);
}

/* ── the acts ── */

static void begin_agent(const char *dir)
{
	const noh_options options = { .dir = dir, .workers = 2, .unpinned = true };
	const noh_type types[] = { instance_type(), image_pull_type(), volume_attachment_type(), wireguard_type(), image_gc_type(),
				   stream_type() };
	int rc = noh_open(&box, &options);

	for (size_t i = 0; rc == NOH_OK && i < sizeof types / sizeof types[0]; i++)
		rc = noh_register(box, &types[i]);
	if (rc == NOH_OK)
		rc = register_supervisors(box);
	if (rc == NOH_OK)
		rc = register_devices(box);
	if (rc == NOH_OK)
		rc = noh_set_log_level(box, "error");
	if (rc == NOH_OK)
		rc = noh_start(box);
	if (rc == NOH_OK)
		rc = noh_activate(box, "node_supervisor:" NODE, SOON);
	if (rc != NOH_OK || pthread_create(&printer, NULL, print_events, NULL) != 0) {
		fprintf(stderr, "%s\n", noh_why());
		exit(1);
	}
}

static void end_agent(void)
{
	expect(noh_stop(box, SOON) == NOH_OK, "the agent stops");
	pthread_join(printer, NULL);
	noh_close(box);
}

static void things_come_to_be(void)
{
	struct volume_spec disk = { "disk-a" };

	printf("Act 1: three instances of two images, a disk, a network\n");
	want_instance("web", 1, "sha-aaa", 2);
	want_instance("api", 1, "sha-aaa", 4);
	want_instance("db", 1, "sha-bbb", 8);
	want_peers(1, 11, 22, 33);
	want("volume_supervisor", "volume_attachment:db", 1, &disk, sizeof disk);
	until_applied("instance:web", 1);
	until_applied("instance:api", 1);
	until_applied("instance:db", 1);
	until_applied("wireguard:wg0", 1);
	until_applied("volume_attachment:db", 1);
	until_printed();
	print_tree(17);
	expect(host_runs("web", "sha-aaa", 2) && host_runs("api", "sha-aaa", 4) && host_runs("db", "sha-bbb", 8), "all run");
	expect(disk_attached("disk-a"), "the disk is attached");
	expect(wire_peers().count == 3, "the network has its peers");
	expect(devices_report().pulls == 2, "two images, two pulls: those who wait share one");
}

static void things_change(void)
{
	struct device_report before = devices_report();
	uint64_t passes = state_of("instance:web").passes;

	printf("Act 2: web is scaled twenty times at once, api gets a new image, a peer is replaced\n");
	for (uint64_t i = 2; i <= 21; i++)
		want_instance("web", i, "sha-aaa", i);
	want_instance("api", 2, "sha-ccc", 4);
	want_peers(2, 11, 44, 33);
	until_applied("instance:web", 21);
	until_applied("instance:api", 2);
	until_applied("wireguard:wg0", 2);
	until_printed();
	expect(host_runs("web", "sha-aaa", 21) && host_runs("api", "sha-ccc", 4), "web and api are as desired");
	passes = state_of("instance:web").passes - passes;
	/* One; or two if the first began before all were there. A machine that is busy elsewhere spreads them. */
	expect(passes >= 1 && passes <= 10, "twenty changes are a pass or two, not twenty");
	expect(devices_report().peer_changes == before.peer_changes + 2, "one peer removed, one added, nobody else touched");

	printf("       db dies, and nobody is told\n");
	host_lose("db");
	for (int i = 0; i < SOON && !host_runs("db", "sha-bbb", 8); i++)
		pause_ms(1);
	expect(host_runs("db", "sha-bbb", 8), "its next look finds that, and it runs again");
}

static void the_agent_is_replaced(const char *dir)
{
	struct device_report before;

	printf("Act 3: the agent stops, and another one goes on where it was\n");
	end_agent();
	before = devices_report();
	begin_agent(dir);
	expect(state_of("instance:web").applied == 21, "the last applied revision was kept");
	want_instance("web", 20, "sha-bbb", 1);                  /* late: it is known better */
	want_instance("web", 22, "sha-aaa", 3);
	until_applied("instance:web", 22);
	until_printed();
	print_tree(11);                                          /* who needs nothing is still in storage */
	expect(host_runs("web", "sha-aaa", 3), "web is as desired last");
	expect(devices_report().runs == before.runs + 1, "nothing was done again");
	expect(devices_report().pulls == before.pulls, "nothing was pulled again");
}

static void all_is_taken_down(void)
{
	uint64_t body[1] = { 2000 };
	struct plane_event e;

	printf("Act 4: api drains, web and db stop, then the tree, from its leaves to its root\n");
	e = event("instance_supervisor", "instance:api", NOH_RECONCILE_DRAIN, body, sizeof body);
	plane_publish(&e);
	e = event("instance_supervisor", "instance:web", NOH_RECONCILE_STOP, "not needed", 10);
	plane_publish(&e);
	e = event("instance_supervisor", "instance:db", NOH_RECONCILE_STOP, "not needed", 10);
	plane_publish(&e);
	for (int i = 0; i < SOON && (registry_has("sha-aaa") || registry_has("sha-bbb") || registry_has("sha-ccc")); i++)
		pause_ms(1);
	expect(host_runs("web", NULL, 0) && host_runs("api", NULL, 0) && host_runs("db", NULL, 0), "nothing runs any more");
	expect(!registry_has("sha-aaa") && !registry_has("sha-bbb") && !registry_has("sha-ccc"), "images nobody uses are gone");
	print_tree(10);
	expect(noh_stop_tree(box, "node_supervisor:" NODE, SOON) == NOH_OK, "the tree stops");
	until_printed();
	end_agent();
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 42;
	char fresh[] = "node-XXXXXX";
	const char *dir = argc > 1 ? argv[1] : mkdtemp(fresh);
	struct device_report r;

	setvbuf(stdout, NULL, _IOLBF, 0);                        /* live, also into a pipe */
	printf("Seed %llu; three of ten calls to a device fail\n", (unsigned long long)seed);
	devices_begin(seed, 30);
	begin_agent(dir);
	things_come_to_be();
	things_change();
	the_agent_is_replaced(dir);
	all_is_taken_down();
	r = devices_report();
	printf("%u calls to devices, %u failed, %u never answered; %u runs, %u stops, %u pulls\n", r.calls, r.failed, r.silent,
	       r.runs, r.stops, r.pulls);
	expect(r.double_pulls == 0, "no digest was pulled twice at a time");
	expect(r.failed > 0, "some calls failed");
	if (wrong)
		printf("%d things are wrong\n", (int)wrong);
	else
		printf("All is as desired.\n");
	return wrong != 0;
}
