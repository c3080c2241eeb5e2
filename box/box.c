/* box/box.c - the order of opening, starting, stopping and closing. */
#include "box/metrics.h"
#include "sched/events.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ── storage, connected ── */

static int storage_load(void *arg, const char *address, size_t len, uint64_t hash,
			struct sched_image *image)
{
	struct stored stored;
	int rc = store_load(arg, address, len, hash, &stored);

	if (rc == NOH_OK)
		*image = (struct sched_image){ stored.image, stored.len, stored.seq, stored.due,
					       stored.gone, stored.fresh, stored.reborn };
	return rc;
}

static int storage_save(void *arg, const char *address, size_t len, uint64_t hash,
			const struct sched_image *image)
{
	struct stored stored = { image->bytes, image->len, image->seq, image->due, image->gone,
				 image->fresh, image->reborn };

	return store_save(arg, address, len, hash, &stored);
}

static int storage_idem_get(void *arg, const char *address, size_t len, uint64_t hash, const void *key,
			    size_t key_len, void **part, size_t *part_len, uint64_t *due)
{
	return store_idem_get(arg, address, len, hash, key, key_len, part, part_len, due);
}

static int storage_idem_put(void *arg, const char *address, size_t len, uint64_t hash, const void *key,
			    size_t key_len, const void *part, size_t part_len, uint64_t due)
{
	return store_idem_put(arg, address, len, hash, key, key_len, part, part_len, due);
}

static bool storage_may_have(void *arg, uint64_t hash)
{
	return store_may_have(arg, hash);
}

static struct sched_storage storage(struct store *store)
{
	return (struct sched_storage){ store, storage_load, storage_save, storage_may_have,
				       storage_idem_get, storage_idem_put };
}

/* ── open ── */

static unsigned cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
		return (unsigned)CPU_COUNT(&set);
	return 1;
}

/* As many as memory could hold at 128 bytes each: it costs address space only. */
static uint32_t default_max_actors(void)
{
	uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t n = bytes / 128;

	return n < 1u << 20 ? 1u << 20 : n > 1u << 31 ? 1u << 31 : (uint32_t)n;
}

static int set_options(noh_box *box, const noh_options *o)
{
	struct sched *s = &box->sched;

	s->worker_count = o->workers ? o->workers : cores();
	if (s->worker_count > 1024)
		return error_set(NOH_EINVAL, "%u workers: at most 1024", s->worker_count);
	if (o->max_actors > UINT64_C(1) << 31 || o->max_message > 1u << 29)
		return error_set(NOH_EINVAL, "max_actors is at most 2^31, max_message at most 2^29");
	s->max_actors = o->max_actors ? (uint32_t)o->max_actors + 2 : default_max_actors();
	s->max_message = o->max_message ? o->max_message : 1u << 20;
	store_relaxed(&s->memory_budget, o->memory_budget);
	store_relaxed(&s->actor_budget, NO_BUDGET);
	store_relaxed(&s->slow_turn_ms, o->slow_turn_ms ? o->slow_turn_ms : BOX_SLOW_TURN_MS);
	s->log = o->log;
	s->log_line = o->log_line;
	s->log_user = o->log_user;
	store_relaxed(&s->log_level, o->log || o->log_line ? NOH_DEBUG : NOH_WARN);
	s->seed = o->seed;
	store_relaxed(&s->min_idle_ds, UINT32_MAX);
	if (s->seed == 0 && getrandom(&s->seed, sizeof s->seed, 0) != sizeof s->seed)
		return error_set(NOH_ESYSTEM, "getrandom: %s", strerror(errno));
	box->unpinned = o->unpinned;
	return NOH_OK;
}

int noh_open(noh_box **out, const noh_options *options)
{
	return box_open(out, options, NULL);
}

int box_open(noh_box **out, const noh_options *options, const struct box_seams *seams)
{
	static const noh_options defaults;
	noh_box *box;
	int rc;

	if (!out)
		return error_set(NOH_EINVAL, "noh_open: no place for the box");
	*out = NULL;
	box = mem_aligned(CACHE_LINE, sizeof *box);
	if (!box)
		return error_set(NOH_ENOMEM, "no memory for a box");
	box->sched.box = box;
	clock_real(&box->sched.clock);
	if (seams) {
		box->sched.clock = seams->clock;
		box->disk.disk = seams->disk;
		box->disk.segment_bytes = seams->segment_bytes;
		box->disk.ring_bytes = seams->ring_bytes;
	}
	box->opened_ns = clock_now_ns(&box->sched.clock);
	box->opened_wall_ms = clock_wall_ms(&box->sched.clock);
	box->process_start_ms = process_start_ms(box->opened_wall_ms);
	marks_open(&box->marks);
	rc = set_options(box, options ? options : &defaults);
	if (rc == NOH_OK)
		rc = sched_open(&box->sched);
	if (rc == NOH_OK && store_mem_open(&box->store) != NOH_OK)
		rc = error_set(NOH_ENOMEM, "no memory for the storage");
	box->sched.storage = storage(box->store);
	if (rc == NOH_OK)
		rc = box_events_open(box, options ? options : &defaults);
	if (rc == NOH_OK && options && options->dir)
		rc = box_disk_open(box, options);
	box->sched.disk = storage(box->disk.store);
	if (rc != NOH_OK) {
		noh_close(box);
		return rc;
	}
	*out = box;
	return NOH_OK;
}

/* ── start ── */

static void sit(noh_box *box, uint32_t index)
{
	uint32_t  count = (uint32_t)CPU_COUNT(&box->cpus), seen = 0;
	cpu_set_t one;

	index %= count;
	if (box->sched.journal.arg)      /* from the last one on: the disk's interrupts are most often the first one's */
		index = count - 1 - index;
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &box->cpus) && seen++ == index) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			(void)pthread_setaffinity_np(pthread_self(), sizeof one, &one);
			return;
		}
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	char name[16];

	snprintf(name, sizeof name, "noh/%u", w->fixed.index);
	(void)pthread_setname_np(pthread_self(), name);
	if (w->fixed.sched->sit)
		sit(w->fixed.sched->box, w->fixed.index);
	sched_loop(w);
	return NULL;
}

static void *watch_main(void *arg)
{
	(void)pthread_setname_np(pthread_self(), "noh/watch");
	sched_watch(arg);
	return NULL;
}

static void end_threads(noh_box *box)
{
	store_seq_cst(&box->sched.stopping, 3);
	if (box->sched.workers)
		sched_wake_all(&box->sched);
	for (uint32_t i = 0; i < box->thread_count; i++)
		pthread_join(box->threads[i], NULL);
	box->thread_count = 0;
}

int box_start_stepped(noh_box *box)
{
	int rc;

	if (load_relaxed(&box->phase) != BOX_OPEN)
		return error_set(NOH_ESTOPPED, "the box was started before");
	if (box->sched.type_count == 0)
		return error_set(NOH_EINVAL, "noh_start: no type is registered");
	rc = box_register_clerk(box);
	if (rc != NOH_OK)
		return rc;
	box->sched.wall_offset_ms = clock_wall_ms(&box->sched.clock) -
				    clock_now_ns(&box->sched.clock) / 1000000u;
	rc = sched_start(&box->sched);
	if (rc == NOH_OK)
		rc = box_disk_start(box, false);
	box_events_start(box);
	box->stepped = true;
	store_relaxed(&box->ready_ns, clock_now_ns(&box->sched.clock));
	store_release(&box->phase, rc == NOH_OK ? BOX_RUNNING : BOX_STOPPED);
	return rc;
}

int noh_start(noh_box *box)
{
	struct sched *s = &box->sched;
	int rc = box_start_stepped(box);

	if (rc != NOH_OK)
		return rc;
	box->stepped = false;
	if (!box->unpinned && sched_getaffinity(0, sizeof box->cpus, &box->cpus) == 0 && CPU_COUNT(&box->cpus) > 0)
		s->sit = sit;
	box_net_start(box);
	box->threads = mem_alloc((s->worker_count + 1) * sizeof *box->threads);
	for (uint32_t i = 0; box->threads && i <= s->worker_count; i++) {
		bool worker = i < s->worker_count;

		errno = pthread_create(&box->threads[i], NULL, worker ? worker_main : watch_main,
				       worker ? (void *)&s->workers[i] : (void *)s);
		if (errno)
			break;
		box->thread_count++;
	}
	if (box->thread_count == s->worker_count + 1) {
		rc = box_disk_start(box, true);
		store_relaxed(&box->ready_ns, clock_now_ns(&s->clock));
		if (rc == NOH_OK)
			return NOH_OK;
		end_threads(box);
		(void)box_disk_stop(box, false);
		store_release(&box->phase, BOX_STOPPED);
		return rc;
	}
	end_threads(box);
	store_release(&box->phase, BOX_STOPPED);
	return error_set(box->threads ? NOH_ESYSTEM : NOH_ENOMEM, "cannot start %u threads: %s",
			 s->worker_count + 1, strerror(errno));
}

/* ── stop ── */

static uint64_t turns(struct sched *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->worker_count; i++)
		sum += load_relaxed(&s->workers[i].shown.counts.turns);
	return sum;
}

/* Everybody sleeps and nothing is on its way: with no sends from outside and no schedules firing,
 * only deadlines of asks can still start something. */
static bool quiet(struct sched *s, bool network)
{
	if (load_seq_cst(&s->sleepers) != s->worker_count || (network && s->net.arg && !s->net.idle(s->net.arg)))
		return false;
	for (uint32_t i = 0; i < s->worker_count; i++)
		if (inbox_has(&s->workers[i].shared.inbox) || runq_length(&s->workers[i].runq) ||
		    load_relaxed(&s->workers[i].shown.awaits) != UINT64_MAX ||
		    hands_length(&s->workers[i].hands) || load_relaxed(&s->workers[i].shown.late))
			return false;
	return true;
}

bool box_is_quiet(struct sched *s, bool network)
{
	uint64_t before = turns(s);

	if (!quiet(s, network))
		return false;
	usleep(200);
	return quiet(s, network) && turns(s) == before;
}

static bool wait_quiet(struct sched *s, uint64_t until_ns)
{
	while (clock_now_ns(&s->clock) < until_ns) {
		if (box_is_quiet(s, true))
			return true;
		usleep(200);
	}
	return false;
}

void box_wait_for_ports(struct sched *s)
{
	for (uint32_t i = 0; i < OUTSIDE_PORTS; i++)
		while (load_seq_cst(&s->outside[i].busy))
			sched_yield();
}

int noh_stop(noh_box *box, uint32_t timeout_ms)
{
	struct sched *s = &box->sched;
	uint64_t until = clock_now_ns(&s->clock) + (uint64_t)timeout_ms * 1000000u;
	uint64_t left;
	bool done = false;
	int rc;

	if (sched_in_turn())
		return error_set(NOH_EINTURN, "noh_stop blocks: not inside a turn");
	if (load_relaxed(&box->phase) != BOX_RUNNING)
		return error_set(NOH_ESTOPPED, "the box is not running");
	box_net_stop(box);
	store_seq_cst(&s->stopping, 1);
	box_events_stop(box);
	box_wait_for_ports(s);                   /* who came before the flag may finish */
	if (!box->stepped && wait_quiet(s, until)) {
		box_stop_trees(box, until, NULL, NULL);
		store_seq_cst(&s->stopping, 2);
		while (!(done = sched_actors(s) == 0) && clock_now_ns(&s->clock) < until) {
			store_seq_cst(&s->sweep_next, 0);
			sched_wake_all(s);
			(void)wait_quiet(s, until);
			if (sched_actors(s))
				usleep(1000);            /* some rest until a token comes, or an answer */
		}
	}
	box_errands_stop(box);                   /* what it waits for is answered as long as there are workers */
	end_threads(box);
	store_seq_cst(&box->phase, BOX_STOPPED);
	box_wait_for_ports(s);                       /* and who looks, before what he looks at goes */
	left = sched_actors(s);
	rc = box_disk_stop(box, done);
	sched_discard(s);
	if (rc != NOH_OK)
		return rc;
	if (!done && !box->stepped)
		return error_set(NOH_ETIMEOUT, "%llu actors could not be deactivated within %u ms",
				 (unsigned long long)left, timeout_ms);
	return NOH_OK;
}

void noh_close(noh_box *box)
{
	if (!box)
		return;
	store_seq_cst(&box->sched.stopping, 1);
	box_feeds_stop(box);                     /* as in noh_stop, if that was not called */
	box_errands_stop(box);
	if (load_relaxed(&box->phase) == BOX_RUNNING) {
		end_threads(box);
		(void)box_disk_stop(box, false);
	}
	sched_close(&box->sched);
	box_net_close(box);
	topics_close(&box->sched.topics);
	box_disk_close(box);
	store_close(box->store);
	marks_close(&box->marks);
	box_events_close(box);
	mem_free(box->threads, 0);
	mem_free(box->pulse, 0);
	mem_free(box, sizeof *box);
}
