/* tests/sim/box/sim_main.c - noh-sim: run seeds, tell what was found, and show that bugs would be.
 *
 *     noh-sim --seed N [--seeds K] [--minutes M] [--seconds S]     seeds N, N + 1, ...
 *     noh-sim --seed N --loud [--nest K] [--faults HEX]            one seed, step by step; or less of it
 *     noh-sim --plants [--budget SEEDS] [--part I/N]              every planted bug must be found
 *     noh-sim --plant NAME --seed N                               one of them
 *
 * Seeds run in a child process: a violation, a failed must() or a crash ends it, and the parent says which
 * seed that was. Exit 0 nothing found, 1 something, 2 usage.
 */
#include "tests/sim/box/sim.h"
#include "tests/sim/lmdb_wrap.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int noh_plant;
struct sim *sim;
struct sim_seen *seen;

/* Where the search begins: of the rare ones, a little before the seed that found it last. When a change moves that, it goes on from
 * there as from anywhere. */
static const struct { const char *name; uint64_t from; } plant_list[PLANTS] = {
	{ "none", 1 }, { "ack-before-sync", 1 }, { "skip-checksum", 1 }, { "lose-wake", 1 }, { "lose-wake-durable", 1 },
	{ "answer-at-tag", 1 }, { "release-before-push", 1 }, { "error-ungated", 1 }, { "read-ungated", 1 },
	{ "empty-epoch", 1 }, { "gap-is-whole", 1 }, { "stale-snapshot", 176 }, { "fold-past-stamp", 1 },
	{ "redeliver", 1 }, { "overtake", 31 }, { "sequence-reset", 1 }, { "timer-lost", 1 }, { "relay-forgets", 162 },
	{ "key-forgotten", 1 }, { "entries-left", 1 }, { "step-split", 1 }, { "event-stays", 1 }, { "backoff-uncapped", 1 },
	{ "restart-loses", 1 }, { "escalation-loop", 28 }, { "stop-order", 1 }, { "late-lost", 1 },
	{ "late-overtaken", 388 }, { "token-lost", 1 }, { "place-kept", 1 },
};

/* Shared with the children. */
static struct shared {
	struct sim_seen seen;
	uint64_t seed, step, done;
	char     why[400];
} *shared;

struct job {
	uint64_t seed, seeds, until_ns;
	int      plant;
	bool     loud, twice;
	struct only only;
};

static uint64_t real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void sim_say(const char *format, ...)
{
	va_list args;

	if (!sim->loud)
		return;
	printf("  %8llu %10.3f  ", (unsigned long long)sim->step, (double)sim_now() / 1e6);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

_Noreturn void sim_violation(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(shared->why, sizeof shared->why, format, args);
	va_end(args);
	shared->step = sim->step;
	_exit(1);
}

/* ── one seed ── */

#define DRAIN_NS UINT64_C(200000000000)
#define PATIENCE_NS UINT64_C(60000000000)
#define ASK_AGAIN_NS UINT64_C(500000000)         /* of a mailbox that was full */

static void work(void)
{
	while (sim->ops < sim->plan.ops && sim->step < 60000 && sim->messages + 200 < MESSAGES &&
	       sim->versions + 200 < VERSIONS) {
		world_faults();
		shared->step = sim->step;
		if (!steps_one(sim_one_in(3)))
			steps_wait();
		else if (sim_one_in(60))
			clock_virtual_advance(&sim->clock, sim_random() % UINT64_C(300000000));
		if (sim->step % 64 == 0 && !(sim->plan.faults & (F_NOSPC | F_EIO)))
			client_check_patience(PATIENCE_NS);
	}
}

static void drain(void)
{
	uint64_t until, asked = 0;

	sim->calm = true;
	world_faults();
	disk_sim_cut_at(sim->disk, 0);
	for (enum sim_op op = 0; op < SIM_OPS; op++)
		disk_sim_fail(sim->disk, op, 0, FAULT_EIO);
	/* Each start may have set the wall clock back by ten minutes, and schedules keep to it. */
	until = sim_now() + DRAIN_NS + (sim->plan.faults & F_JUMP ? 60 * UINT64_C(600000000000) : 0);
	for (uint64_t i = 0; sim_now() < until && i < 300000; i++) {
		shared->step = sim->step;
		if (i % 32 == 0) {
			world_faults();
			if (model_quiet() && !world_holds() && family_quiet() && limited_quiet())     /* an answer nobody waits for any more waits, too */
				break;
			if (sim_now() - asked > ASK_AGAIN_NS) {
				client_end_schedules();
				asked = sim_now();
			}
		}
		if (!steps_one(false))
			steps_wait();
	}
	model_finished();
	family_finished();
	limited_finished();
}

static uint64_t run_seed(uint64_t seed, const char *dir)
{
	shared->seed = seed;
	world_begin(seed, dir);
	work();
	drain();
	world_end();
	return sim->hash;
}

static int child(const struct job *job, const char *dir)
{
	noh_plant = job->plant;
	sim = calloc(1, sizeof *sim);
	seen = &shared->seen;
	sim->loud = job->loud;
	sim->only = job->only;
	for (uint64_t i = 0; i < job->seeds && (i == 0 || real_ns() < job->until_ns); i++) {
		uint64_t hash = run_seed(job->seed + i, dir);

		if ((job->twice || (job->seed + i) % 100 == 0) && hash != run_seed(job->seed + i, dir)) {
			snprintf(shared->why, sizeof shared->why, "the same seed took another course");
			return 1;
		}
		shared->done++;
		seen->seeds++;
	}
	return 0;
}

/* True: nothing was found. */
static bool run(const struct job *job)
{
	char dir[128];
	int status;
	pid_t pid;

	fflush(stdout);
	lmdb_wrap_make_dir(dir, sizeof dir);
	shared->done = 0;
	shared->why[0] = 0;
	pid = fork();
	if (pid == 0)
		_exit(child(job, dir));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	lmdb_wrap_remove_dir(dir);
	if (WIFSIGNALED(status))
		snprintf(shared->why, sizeof shared->why, "the process ended: %s", strsignal(WTERMSIG(status)));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ── planted bugs ── */

static int plants(uint64_t budget, unsigned part, unsigned parts)
{
	unsigned found = 0, missed = 0;

	for (int p = 1; p < PLANTS; p++) {
		struct job job = { .seed = plant_list[p].from, .seeds = budget, .until_ns = UINT64_MAX, .plant = p,
				   .only = { -1, -1 } };
		uint64_t from = real_ns();

		if ((unsigned)p % parts != part)
			continue;
		bool ok = run(&job);

		printf("  %-20s %s after %4llu seeds, %5.1f s  %s\n", plant_list[p].name, ok ? "MISSED" : "found",
		       (unsigned long long)shared->done + !ok, (double)(real_ns() - from) / 1e9, shared->why);
		*(ok ? &missed : &found) += 1;
	}
	printf("%u passed, %u failed\n", found, missed);
	return missed ? 1 : 0;
}

/* ── the command ── */

static void say_seen(void)
{
	const struct sim_seen *s = &shared->seen;
#define N(x) (unsigned long long)s->x
	printf("  %llu seeds, %llu steps, %llu turns, %llu versions, %llu messages, %llu virtual seconds\n"
	       "  calls: %llu, answered %llu, refused %llu, unknown %llu; reads beside the mailbox %llu\n"
	       "  crashes: %llu (%llu kills, %llu power cuts), %llu inside recovery, %llu torn tails, %llu recovered "
	       "twice, %llu clean stops\n"
	       "  faults: %llu disk errors, %llu full disks, %llu clock jumps, %llu rotten (%llu noticed; of %llu in LMDB %llu "
	       "ended the process)\n"
	       "  folds %llu, slept %llu, nested %llu, steals %llu, redelivered %llu, failed turns %llu, full %llu\n"
	       "  keys repeated %llu, refused %llu; once %llu, again %llu; erased %llu; evicted %llu (%llu forced); "
	       "dropped %llu\n"
	       "  steps over several actors: %llu, undone turns %llu, lost in a crash %llu\n"
	       "  scans %llu, types counted %llu; supervised: failures %llu, escalations %llu, trees stopped %llu\n"
	       "  events read %llu (%llu readers came too late)\n"
	       "  memory was short %llu times, refused %llu times; rounds with late messages %llu\n"
	       "  limits: %llu messages at a rate, %llu refused for it, %llu with a place\n",
	       N(seeds), N(steps), N(turns), N(versions), N(messages), N(virtual_ms) / 1000, N(ops), N(answers),
	       N(refused), N(unknown), N(reads), N(crashes), N(kills), N(cuts), N(deep), N(torn), N(twice),
	       N(clean_stops), N(eio), N(nospc), N(jumps), N(rot), N(rot_found), N(rot_image),
	       N(rot_image_ends), N(folds), N(slept), N(nested),
	       N(steals), N(redelivered), N(failed_turns), N(full), N(keys_repeated), N(idem), N(ticks), N(beats),
	       N(erased), N(evictions), N(forced), N(coalesced_or_dropped),
	       N(several_ok), N(several_undone), N(several_lost), N(scans), N(counted), N(family_failures), N(escalations), N(tree_stops), N(events), N(events_gone),
	       N(shortages), N(refused_memory), N(late), N(paced), N(refused_rate), N(placed));
#undef N
}

static int seeds(struct job *job)
{
	uint64_t from = real_ns(), first = job->seed;
	unsigned failed = 0;
	bool alone = job->seeds == 1;

	while (job->seeds && (job->seed == first || real_ns() < job->until_ns)) {
		if (!run(job)) {
			printf("  seed %llu, step %llu: %s\n  again: noh-sim --seed %llu --loud\n",
			       (unsigned long long)shared->seed, (unsigned long long)shared->step, shared->why,
			       (unsigned long long)shared->seed);
			if (++failed == 10)
				break;
			shared->done++;
		}
		job->seeds -= shared->done < job->seeds ? shared->done : job->seeds;
		job->seed += shared->done;
		if (shared->done == 0)
			break;
	}
	if (!alone || !failed)
		say_seen();
	printf("  %.1f seeds/s\n%llu passed, %u failed\n",
	       (double)shared->seen.seeds / ((double)(real_ns() - from) / 1e9 + 1e-9),
	       (unsigned long long)shared->seen.seeds, failed);
	return failed ? 1 : 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: noh-sim [--seed N] [--seeds K] [--minutes M] [--seconds S] [--loud] [--twice]\n"
		"       noh-sim --plants [--budget SEEDS] [--part I/N]    noh-sim --plant NAME --seed N\n");
	return 2;
}

static int plant_of(const char *text)
{
	for (int p = 1; p < PLANTS; p++)
		if (strcmp(text, plant_list[p].name) == 0)
			return p;
	return -1;
}

int main(int argc, char **argv)
{
	struct job job = { .seed = 1, .seeds = UINT64_MAX, .only = { -1, -1 } };
	uint64_t budget = 400, limit_s = 0;
	unsigned part = 0, parts = 1;
	bool all = false, given = false;

	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 1; i < argc; i++) {
		const char *w = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(w, "--loud") == 0)
			job.loud = true;
		else if (strcmp(w, "--twice") == 0)
			job.twice = true;
		else if (strcmp(w, "--plants") == 0)
			all = true;
		else if (!v)
			return usage();
		else if (strcmp(w, "--seed") == 0)
			job.seed = strtoull(v, NULL, 10);
		else if (strcmp(w, "--seeds") == 0)
			job.seeds = strtoull(v, NULL, 10);
		else if (strcmp(w, "--minutes") == 0)
			limit_s = (uint64_t)(strtod(v, NULL) * 60);
		else if (strcmp(w, "--seconds") == 0)
			limit_s = strtoull(v, NULL, 10);
		else if (strcmp(w, "--nest") == 0)
			job.only.nest = strtol(v, NULL, 10);
		else if (strcmp(w, "--faults") == 0)
			job.only.faults = strtol(v, NULL, 16);
		else if (strcmp(w, "--budget") == 0)
			budget = strtoull(v, NULL, 10);
		else if (strcmp(w, "--part") == 0 && sscanf(v, "%u/%u", &part, &parts) != 2)
			return usage();
		else if (strcmp(w, "--plant") == 0 && (job.plant = plant_of(v)) < 0)
			return usage();
		given |= strcmp(w, "--seeds") == 0;
		i += v && strcmp(w, "--loud") != 0 && strcmp(w, "--twice") != 0 && strcmp(w, "--plants") != 0;
	}
	if (shared == MAP_FAILED || parts == 0)
		return usage();
	if (all)
		return plants(budget, part, parts);
	if (!given && !limit_s)
		job.seeds = 1;
	job.until_ns = limit_s ? real_ns() + limit_s * UINT64_C(1000000000) : UINT64_MAX;
	return seeds(&job);
}
