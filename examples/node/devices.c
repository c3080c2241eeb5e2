/* devices.c - the world outside: a hypervisor, a registry, disks, a network interface, and a control plane.
 *
 * It survives the node agent, as a world does: it lives in memory of its own, behind one lock. Its actors are only the
 * way to it. Each call may fail (it is refused, with a sentence) or never be answered.
 */
#include "node.h"

#include <pthread.h>
#include <string.h>

enum { THINGS = 16, PULL_MS = 20 };

struct machine { char id[NAME], image[NAME]; uint64_t cpus; };
struct image { char digest[NAME]; bool here, pulling; };

static struct {
	pthread_mutex_t       lock;
	uint64_t              random;
	unsigned              percent;
	struct device_report  report;
	struct machine        machines[THINGS];
	struct image          images[THINGS];
	char                  disks[THINGS][NAME];
	struct wireguard_spec wire;
	struct plane_event    wanted[64];
	uint64_t              published;
} world = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ── chance ── */

static uint64_t roll(void)
{
	world.random ^= world.random << 13;
	world.random ^= world.random >> 7;
	world.random ^= world.random << 17;
	return world.random % 100;
}

enum { WORKS, FAILS, SAYS_NOTHING };
static int fate(void)
{
	uint64_t n = roll();

	world.report.calls++;
	if (n >= world.percent)
		return WORKS;
	if (n % 8 == 0)
		return world.report.silent++, SAYS_NOTHING;
	return world.report.failed++, FAILS;
}

bool flaky(void)
{
	pthread_mutex_lock(&world.lock);
	bool fails = roll() < world.percent;

	pthread_mutex_unlock(&world.lock);
	return fails;
}

/* ── its parts; all under the lock ── */

/* The place of a name in a table whose entries begin with theirs; made if there is none. */
static void *place(void *table, size_t size, const char *name)
{
	char *at = table;

	while (*at && strncmp(at, name, NAME) != 0)
		at += size;                      /* the examples have fewer than THINGS */
	strncpy(at, name, NAME - 1);
	return at;
}

static struct instance_seen machine_seen(const struct machine *m)
{
	struct instance_seen seen = { .cpus = m->cpus };

	memcpy(seen.runs, m->image, NAME);
	return seen;
}

static int host(noh_turn *turn, const noh_msg *msg)
{
	const struct host_order *order = msg->body;
	struct machine *m = place(world.machines, sizeof *m, msg->body);

	if (msg->kind == HOST_RUN) {             /* so again, if it is so already: nothing happens */
		world.report.runs += m->cpus != order->spec.cpus || strncmp(m->image, order->spec.image, NAME) != 0;
		memcpy(m->image, order->spec.image, NAME);
		m->cpus = order->spec.cpus;
	} else if (msg->kind == HOST_STOP && m->cpus) {
		world.report.stops++;
		m->cpus = 0;
		memset(m->image, 0, NAME);
	}
	struct instance_seen seen = machine_seen(m);

	return noh_reply(turn, &seen, sizeof seen);
}

static int wire(noh_turn *turn, const noh_msg *msg)
{
	struct wireguard_spec *w = &world.wire;
	uint64_t peer = msg->len == sizeof peer ? *(const uint64_t *)msg->body : 0, i = 0;

	while (i < w->count && w->peers[i] != peer)
		i++;
	if (msg->kind == WIRE_ADD && i == w->count && i < PEERS) {
		w->peers[w->count++] = peer;
		world.report.peer_changes++;
	} else if (msg->kind == WIRE_REMOVE && i < w->count) {
		w->peers[i] = w->peers[--w->count];
		w->peers[w->count] = 0;
		world.report.peer_changes++;
	}
	return noh_reply(turn, w, sizeof *w);
}

static int disk(noh_turn *turn, const noh_msg *msg)
{
	char *at = place(world.disks, NAME, msg->body);
	uint64_t attached = msg->kind == DISK_ATTACH;

	if (!attached)
		memset(at, '-', 1);              /* its place stays taken */
	return noh_reply(turn, &attached, sizeof attached);
}

static int plane(noh_turn *turn, const noh_msg *msg)
{
	uint64_t from = *(const uint64_t *)msg->body, n = world.published - from;

	world.report.reads++;
	if (n > PLANE_BATCH)
		n = PLANE_BATCH;
	return noh_reply(turn, &world.wanted[from], n * sizeof world.wanted[0]);
}

static int device(noh_turn *turn, const noh_msg *msg)
{
	if (msg->kind == PLANE_READ)
		return plane(turn, msg);
	if (msg->kind <= HOST_STOP)
		return host(turn, msg);
	if (msg->kind <= DISK_DETACH)
		return disk(turn, msg);
	return wire(turn, msg);
}

static int on_message(noh_turn *turn, const noh_msg *msg)
{
	static const char no[] = "device is busy";
	int rc;

	pthread_mutex_lock(&world.lock);
	switch (fate()) {
	case WORKS: rc = device(turn, msg); break;
	case FAILS: rc = noh_refuse(turn, no, sizeof no - 1); break;
	default: (void)noh_defer(turn, msg); rc = NOH_OK;        /* whoever asked waits for ever */
	}
	pthread_mutex_unlock(&world.lock);
	return rc == NOH_NOBODY ? NOH_OK : rc;
}

/* ── the registry: an actor per digest, which takes its time ── */

static int registry(noh_turn *turn, const noh_msg *msg)
{
	static const char no[] = "connection reset by registry";
	noh_promise *who = noh_state(turn);
	struct image *image = place(world.images, sizeof *image, noh_id(turn));
	uint64_t here = 1;
	int end;

	switch (msg->kind) {
	case REGISTRY_PULL:
		world.report.double_pulls += image->pulling;
		image->pulling = true;
		*who = noh_defer(turn, msg);
		return noh_schedule_once(turn, REGISTRY_PULLED, PULL_MS);
	case REGISTRY_PULLED:
		end = fate();
		image->pulling = false;
		image->here |= end == WORKS;
		world.report.pulls += end == WORKS;
		if (end == SAYS_NOTHING)
			return NOH_OK;
		end = end == WORKS ? noh_answer(turn, *who, NOH_OK, &here, sizeof here) :
				     noh_answer(turn, *who, NOH_EFAILED, no, sizeof no - 1);
		return end < 0 ? end : NOH_OK;
	}
	image->here = false;
	here = 0;
	return noh_reply(turn, &here, sizeof here) < 0 ? NOH_EFAILED : NOH_OK;
}

static int on_registry(noh_turn *turn, const noh_msg *msg)
{
	pthread_mutex_lock(&world.lock);
	int rc = registry(turn, msg);

	pthread_mutex_unlock(&world.lock);
	return rc;
}

int register_devices(noh_box *box)
{
	const noh_type devices = { .name = "device", .is_volatile = true, .full_mode = NOH_BLOCK, .on_message = on_message };
	const noh_type registries = { .name = "registry", .is_volatile = true, .full_mode = NOH_BLOCK,
				      .state_size = sizeof(noh_promise), .on_message = on_registry };
	int rc = noh_register(box, &devices);

	return rc ? rc : noh_register(box, &registries);
}

/* ── for main ── */

void devices_begin(uint64_t seed, unsigned percent)
{
	world.random = seed ? seed : 1;
	world.percent = percent;
}

void plane_publish(const struct plane_event *event)
{
	pthread_mutex_lock(&world.lock);
	world.wanted[world.published] = *event;
	world.published++;
	world.wanted[world.published - 1].seq = world.published;
	pthread_mutex_unlock(&world.lock);
}

struct device_report devices_report(void)
{
	pthread_mutex_lock(&world.lock);
	struct device_report report = world.report;

	pthread_mutex_unlock(&world.lock);
	return report;
}

bool host_runs(const char *id, const char *image, uint64_t cpus)
{
	pthread_mutex_lock(&world.lock);
	const struct machine *m = place(world.machines, sizeof *m, id);
	bool so = image ? m->cpus == cpus && strcmp(m->image, image) == 0 : m->cpus == 0;

	pthread_mutex_unlock(&world.lock);
	return so;
}

bool disk_attached(const char *name)
{
	bool found = false;

	pthread_mutex_lock(&world.lock);
	for (int i = 0; i < THINGS; i++)
		found |= strcmp(world.disks[i], name) == 0;
	pthread_mutex_unlock(&world.lock);
	return found;
}

bool registry_has(const char *digest)
{
	pthread_mutex_lock(&world.lock);
	bool here = ((struct image *)place(world.images, sizeof(struct image), digest))->here;

	pthread_mutex_unlock(&world.lock);
	return here;
}

struct wireguard_spec wire_peers(void)
{
	pthread_mutex_lock(&world.lock);
	struct wireguard_spec peers = world.wire;

	pthread_mutex_unlock(&world.lock);
	return peers;
}

void host_lose(const char *id)
{
	pthread_mutex_lock(&world.lock);
	struct machine *m = place(world.machines, sizeof *m, id);

	m->cpus = 0;
	memset(m->image, 0, NAME);
	pthread_mutex_unlock(&world.lock);
}
