/* tests/sim/box/world.c - the disk, the clock, and the lives of a box between two crashes. */
#include "tests/sim/box/sim.h"

#include "persist/journal_inside.h"
#include "tests/sim/lmdb_wrap.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int __wrap_crashes_open(struct crashes *c, const char *dir, uint32_t workers, crashes_found_fn *found,
			void *arg);
void __wrap_crashes_close(struct crashes *c);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags);

/* The notes of who is running are a mapped file: outside of the model of the disk. No crash comes in the
 * midst of a handler here, so there is nothing to find in them. */
int __wrap_crashes_open(struct crashes *c, const char *dir, uint32_t workers, crashes_found_fn *found,
			void *arg)
{
	(void)dir;
	(void)found;
	(void)arg;
	memset(c, 0, sizeof *c);
	memset(sim->notes, 0, sizeof sim->notes);
	c->notes = sim->notes;
	c->workers = workers;
	return NOH_OK;
}

void __wrap_crashes_close(struct crashes *c) { (void)c; }

ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags)
{
	uint8_t *at = buf;

	(void)flags;
	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)sim_random();
	return (ssize_t)len;
}

/* ── the plan of a seed ── */

static unsigned draw_faults(void)
{
	unsigned kind = sim_below(10);

	if (kind == 0)
		return 0;
	if (kind < 4)
		return (kind & 1 ? F_KILL : F_CUT) | (sim_one_in(2) ? F_EVICT : 0);
	if (kind < 7)
		return 1u << sim_below(11) | (sim_one_in(2) ? F_KILL : F_CUT);
	return sim_below(F_ALL + 1) | F_KILL | F_CUT;
}

static void draw_plan(struct plan *p)
{
	static const unsigned nests[] = { 0, 2, 5, 20 };
	static const unsigned latencies[] = { 0, 4, 10, 60 };
	static const unsigned every[] = { 60, 200, 600, 2000 };

	p->workers = 1 + sim_below(3);
	p->clients = 1 + sim_below(CLIENTS);
	p->ops = 60 + sim_below(300);
	p->faults = draw_faults();
	p->crash_every = every[sim_below(4)];
	p->nest = nests[sim_below(4)];
	p->kinds = sim_one_in(3) ? UINT64_MAX : sim_random() | 1u << K_ADD;
	p->capacity = 100;
	p->targets = TMP_FIRST;
	p->ring_bytes = 65536;
	p->segment_bytes = 1;                    /* as small as it can be */
	p->fold_bytes = 4096u << sim_below(7);
	p->fold_ms = 20u << sim_below(9);
	p->latency = latencies[sim_below(4)];
	if (sim_one_in(4))
		p->events_bytes = 2000u << sim_below(6);
	p->family = sim->seed % 3 == 0;          /* not drawn: the others stay as they are */
	p->limited = sim->seed % 3 == 1;
	if (p->faults & F_TIGHT) {
		p->capacity = 1 + sim_below(6);
		p->journal_bytes = sim_one_in(2) ? 0 : 65536u << sim_below(3);
		p->memory_budget = sim_one_in(2) ? 0 : 1500 + sim_below(4000);
	}
}

/* ── opening ── */

static void quiet(void *user, int level, const char *actor, const char *line)
{
	(void)user;
	seen->torn += strstr(line, "was torn") != NULL;
	family_log(line);
	if (level >= NOH_WARN)
		sim_say("log: %s %s", actor, line);
}

static void push(void *arg, uint32_t ring)
{
	steps_nest();
	sim->journal.push(arg, ring);
}

static uint64_t epoch(void *arg)
{
	steps_nest();
	return sim->journal.epoch(arg);
}

static int open_on(struct disk_sim *disk, unsigned workers, noh_box **box)
{
	noh_options o = { .workers = workers, .dir = sim->dir, .seed = sim->seed | 1, .log = quiet,
			  .max_actors = 1000, .unpinned = true, .memory_budget = sim->plan.memory_budget,
			  .journal_bytes = sim->plan.journal_bytes, .idem_ms = UINT64_C(864000000),
			  .events_ms = UINT64_C(86400000000), .events_bytes = sim->plan.events_bytes };
	struct box_seams seams = { .clock = sim->clock.clock, .disk = disk_sim_door(disk),
				   .ring_bytes = sim->plan.ring_bytes,
				   .segment_bytes = sim->plan.segment_bytes };

	return box_open(box, &o, &seams);
}

/* Nothing it holds may reach the disk any more. */
static void abandon(struct disk_sim *disk, noh_box *box)
{
	sim->dead = true;
	disk_sim_off(disk);
	while (box->disk.journal && box_journal_round(box, true) == JOURNAL_BUSY)
		continue;                /* what is under way fails: nobody owns its buffers any more */
	noh_close(box);
	sim->dead = false;
	if (disk_sim_problem(disk))
		sim_violation("the disk was used wrongly: %s", disk_sim_problem(disk));
	if (disk_sim_open_files(disk))
		sim_violation("a closed box left %u files open", disk_sim_open_files(disk));
}

static void start(void)
{
	noh_box *box = sim->box;

	sim->journal = box->sched.journal;
	box->sched.journal.push = push;
	box->sched.journal.epoch = epoch;
	box->disk.keeper.fold_bytes = sim->plan.fold_bytes;
	box->disk.keeper.fold_ms = sim->plan.fold_ms;
	if (actors_register(box) != NOH_OK || family_register(box) != NOH_OK || limited_register(box) != NOH_OK ||
	    box_start_stepped(box) != NOH_OK)
		sim_violation("the box does not start: %s", noh_why());
	steps_restart();
}

/* ── what is tried on copies of the disk ── */

#define IMAGE "image/data.mdb"

static void count_segment(void *arg, const char *path)
{
	unsigned *at = arg;

	if (strstr(path, ".seg") && at[0]++ == at[1])
		snprintf((char *)(at + 2), 32, "%s", path);
}

/* A few bits of what was written, in one segment. */
static void rot(struct disk_sim *disk)
{
	struct { unsigned count, pick; char path[32]; } at = { 0, UINT32_MAX, "" };
	const uint8_t *bytes;
	size_t len = 0, used = 0;

	disk_sim_each(disk, count_segment, &at);
	if (at.count == 0)
		return;
	at.pick = sim_below(at.count);
	at.count = 0;
	disk_sim_each(disk, count_segment, &at);
	bytes = disk_sim_bytes(disk, at.path, &len);
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			used = i + 1;
	for (unsigned i = 1 + sim_below(3); used && i; i--)
		(void)disk_sim_rot(disk, at.path, sim_random() % used, sim_below(8));
}

/* What a last frame that is damaged looks like nobody can tell from one that was never finished, nor
 * those that were on their way with it. More than these are not given up in silence. */
static void check_rotten(noh_box *box, uint64_t last)
{
	uint64_t found = box->disk.journal->fixed.old_last;

	if (found + box->disk.disk->in_flight + 1 < last)
		sim_violation("a damaged journal ends with frame %llu, and had %llu",
			      (unsigned long long)found, (unsigned long long)last);
	model_any_image(box);
}

/* Recover a copy, with any number of workers: what is it then? */
static uint64_t recover_copy(bool rotten, uint64_t *last)
{
	struct disk_sim *copy = disk_sim_copy(sim->disk);
	uint64_t hash = 0;
	noh_box *box;
	int rc;

	lmdb_wrap(copy, sim->dir);
	lmdb_wrap_rebuild();
	if (rotten)
		rot(copy);
	rc = open_on(copy, 1 + sim_below(WORKERS_MAX), &box);
	if (rc == NOH_OK) {
		if (rotten)
			check_rotten(box, *last);
		else
			hash = model_image_hash(box);
		*last = box->disk.journal->fixed.old_last;
		abandon(copy, box);
	} else if (!rotten) {
		sim_violation("recovery of a copy: %s", noh_why());
	} else {
		seen->rot_found++;
		if (rc != NOH_ECORRUPT)
			sim_violation("a damaged journal is refused with %d, %s", rc, noh_why());
	}
	disk_sim_free(copy);
	lmdb_wrap(sim->disk, sim->dir);
	lmdb_wrap_rebuild();
	return hash;
}

static void rot_image(struct disk_sim *disk)
{
	size_t len = 0;

	(void)disk_sim_bytes(disk, IMAGE, &len);
	for (unsigned i = 1 + sim_below(3); len && i; i--)
		(void)disk_sim_rot(disk, IMAGE, sim_random() % len, sim_below(8));
}

/* LMDB does not check what it reads: a flipped bit may end the process, so that is another one's. What it
 * shows must be right, or refused. */
static void recover_rotten_image(void)
{
	struct disk_sim *copy;
	noh_box *box;
	int status, rc;
	pid_t pid = fork();

	if (pid == 0) {
		copy = disk_sim_copy(sim->disk);
		rot_image(copy);
		lmdb_wrap(copy, sim->dir);
		lmdb_wrap_rebuild();
		rc = open_on(copy, 1, &box);
		if (rc == NOH_OK)
			model_same_image(box);
		else if (rc != NOH_ECORRUPT && rc != NOH_EVERSION)
			sim_violation("a damaged image is refused with %d, %s", rc, noh_why());
		_exit(rc == NOH_OK ? 0 : 2);
	}
	must(pid > 0 && waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
		_exit(1);                        /* it has said why */
	seen->rot_image++;
	seen->rot_image_ends += WIFSIGNALED(status);
	lmdb_wrap_rebuild();
}

/* ── crashes ── */

static void machine_reboots(void)
{
	uint64_t wall = clock_wall_ms(&sim->clock.clock), start = sim_random() % UINT64_C(100000000000);

	sim->spent_ns += sim_now();
	clock_virtual_init(&sim->clock, start);
	store_relaxed(&sim->clock.wall_ms, wall + sim_below(5000) - start / 1000000u);
	sim->spent_ns -= start;
}

static void jump(void)
{
	uint64_t by = sim_below(600000);

	seen->jumps++;
	store_relaxed(&sim->clock.wall_ms, load_relaxed(&sim->clock.wall_ms) + (sim_one_in(2) ? by : -by));
}

/* Only the process dies, or the power goes. */
static void die(void)
{
	bool killed = !(sim->plan.faults & F_CUT) || ((sim->plan.faults & F_KILL) && sim_one_in(2));
	enum cut mode = (enum cut)sim_below(CUT_MODES);

	seen->crashes++;
	*(killed ? &seen->kills : &seen->cuts) += 1;
	sim_say("step %llu: %s", (unsigned long long)sim->step, killed ? "kill" : cut_names[mode]);
	if (sim->box)
		abandon(sim->disk, sim->box);
	sim->box = NULL;
	if (killed)
		disk_sim_kill(sim->disk, sim_random());
	else
		disk_sim_cut(sim->disk, mode, sim_random());
	if (!killed)
		machine_reboots();
	if ((sim->plan.faults & F_JUMP) && sim_one_in(2))
		jump();
	disk_sim_space(sim->disk, 0);
	for (enum sim_op op = 0; op < SIM_OPS; op++)
		disk_sim_fail(sim->disk, op, 0, FAULT_EIO);
	sim->space_until_ns = 0;
	lmdb_wrap_rebuild();
	sim_note(killed ? 1 : 2 + mode);
}

void world_reopen(void)
{
	uint64_t copied = 0, last = 0;
	bool twice = sim_one_in(4);
	int rc;

	sim->verifying = true;
	bool rots = sim->life && (sim->plan.faults & F_ROT) && sim_one_in(2);

	if (sim->life && (twice || rots))
		copied = recover_copy(false, &last);
	if (rots && sim_one_in(2))
		recover_rotten_image();
	else if (rots)
		(void)recover_copy(true, &last);
	seen->rot += rots;
	sim->workers = sim_one_in(2) ? sim->plan.workers : 1 + sim_below(WORKERS_MAX);
	if (sim->life && (sim->plan.faults & F_DEEP) && !sim->calm)
		disk_sim_cut_at(sim->disk, disk_sim_ops(sim->disk) + 1 + sim_below(30));
	while ((rc = open_on(sim->disk, sim->workers, &sim->box)) != NOH_OK) {
		if (!disk_sim_is_off(sim->disk))
			sim_violation("the box does not open: %s", noh_why());
		seen->deep++;
		twice = false;           /* it is another disk now */
		sim->box = NULL;
		die();
	}
	disk_sim_cut_at(sim->disk, 0);
	if (twice && sim->life && copied != model_image_hash(sim->box))
		sim_violation("a second recovery of the same disk gives something else");
	seen->twice += twice;
	model_recovered(sim->box);
	sim->life++;
	start();
	scanner_started();
	family_recovered();
	sim->verifying = false;
	sim_say("life %u: %u workers", sim->life, sim->workers);
}

void world_crash(void)
{
	die();
	client_crashed();
	family_crashed();
	limited_crashed();
	world_reopen();
}

/* ── faults ── */

static void add_bytes(void *arg, const char *path)
{
	size_t len = 0;

	(void)disk_sim_bytes(sim->disk, path, &len);
	*(uint64_t *)arg += len;
}

static void fill_disk(void)
{
	uint64_t used = 0;

	disk_sim_each(sim->disk, add_bytes, &used);
	disk_sim_space(sim->disk, used + sim_below(400000));
	sim->space_until_ns = sim_now() + 1 + sim_random() % UINT64_C(4000000000);
	seen->nospc++;
	sim_say("disk full");
}

static void break_disk(void)
{
	static const enum sim_op ops[] = { SIM_WRITE, SIM_SYNC, SIM_SUBMIT, SIM_FILL, SIM_SYNC_DIR, SIM_READ };

	disk_sim_fail(sim->disk, ops[sim_below(sizeof ops / sizeof ops[0])], 1 + sim_below(4),
		      sim_one_in(4) ? FAULT_SHORT : FAULT_EIO);
	seen->eio++;
}

void world_faults(void)
{
	unsigned f = sim->plan.faults, every = sim->plan.crash_every;
	bool broken = load_relaxed(&sim->box->disk.failed) || disk_sim_is_off(sim->disk);

	if (sim->space_until_ns && (sim_now() >= sim->space_until_ns || sim->calm)) {
		disk_sim_space(sim->disk, 0);
		sim->space_until_ns = 0;
		sim_say("disk has room again");
	}
	if (broken && (sim->calm || sim_one_in(15))) {
		world_crash();
		return;
	}
	if (sim->calm || broken)
		return;
	if ((f & (F_KILL | F_CUT)) && sim_one_in(every)) {
		if ((f & F_CUT) && sim_one_in(2))
			disk_sim_cut_at(sim->disk, disk_sim_ops(sim->disk) + 1 + sim_below(40));
		else
			world_crash();
	} else if ((f & F_EIO) && sim_one_in(every)) {
		break_disk();
	} else if ((f & F_NOSPC) && sim_one_in(every) && !sim->space_until_ns) {
		fill_disk();
	} else if ((f & F_SHORT) && sim_one_in(every < 100 ? every : 100)) {
		shortage_begin();
	} else if ((f & F_JUMP) && sim_one_in(every)) {
		jump();
	}
}

/* ── a seed's beginning and end ── */

void world_begin(uint64_t seed, const char *dir)
{
	bool loud = sim->loud;
	struct only only = sim->only;

	memset(sim, 0, sizeof *sim);
	sim->loud = loud;
	sim->only = only;
	sim->seed = sim->random = seed;
	snprintf(sim->dir, sizeof sim->dir, "%s", dir);
	sim_random();
	draw_plan(&sim->plan);
	if (sim->only.nest >= 0)
		sim->plan.nest = (unsigned)sim->only.nest;
	if (sim->only.faults >= 0)
		sim->plan.faults = (unsigned)sim->only.faults;
	sim->disk = disk_sim_new(sim_random());
	disk_sim_latency(sim->disk, 0, sim->plan.latency);
	clock_virtual_init(&sim->clock, UINT64_C(5000000000));
	store_relaxed(&sim->clock.wall_ms, UINT64_C(1700000000000));
	lmdb_wrap(sim->disk, sim->dir);
	lmdb_wrap_rebuild();
	sim_say("seed %llu: %u workers, %u ops, faults %x, a crash every %u steps, nest %u",
		(unsigned long long)seed, sim->plan.workers, sim->plan.ops, sim->plan.faults,
		sim->plan.crash_every, sim->plan.nest);
	world_reopen();
}

bool world_holds(void)
{
	for (uint32_t i = 0; i < sim->workers; i++)
		if (sim->box->sched.workers[i].gate.count)
			return true;
	return false;
}

static void check_idle(void)
{
	struct sched *s = &sim->box->sched;

	for (uint32_t i = 0; i < sim->workers; i++)
		if (s->workers[i].gate.count)
			sim_violation("worker %u holds %u answers back, and nothing goes on", i,
				      s->workers[i].gate.count);
}

void world_end(void)
{
	uint32_t last[ACTORS];

	check_idle();
	memcpy(last, sim->tip, sizeof last);
	sim->dead = true;
	if (noh_stop(sim->box, 0) != NOH_OK)
		sim_violation("the box does not stop: %s", noh_why());
	noh_close(sim->box);
	sim->dead = false;
	sim->box = NULL;
	disk_sim_off(sim->disk);
	disk_sim_cut(sim->disk, CUT_DROP, 0);
	lmdb_wrap_rebuild();
	client_crashed();
	family_crashed();
	limited_crashed();
	world_reopen();
	for (unsigned a = 0; a < ACTORS; a++)
		if (is_durable(a) && sim->tip[a] != last[a])
			sim_violation("%s was at version %u when the box stopped, and is at %u after the start",
				      sim_name(a), last[a], sim->tip[a]);
	abandon(sim->disk, sim->box);
	sim->box = NULL;
	seen->clean_stops++;
	seen->virtual_ms += (sim->spent_ns + sim_now()) / 1000000u;
	disk_sim_cut(sim->disk, CUT_KEEP, 0);
	lmdb_wrap(NULL, NULL);
	disk_sim_free(sim->disk);
	sim->disk = NULL;
}
