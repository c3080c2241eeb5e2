/* tests/sim/wrap_cut.c - see wrap_cut.h. */
#include "tests/sim/wrap_cut.h"

#include "core/mem.h"
#include "core/must.h"
#include "noh.h"
#include "persist/db.h"
#include "tests/lib/test.h"
#include "tests/sim/lmdb_wrap.h"

#include <fcntl.h>
#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEYS 40
#define MAX_VALUE 9000           /* some values need pages of their own */

/* What transaction number t left under each key: who wrote it and how long it is; len 0: no such key. */
struct model { struct { uint32_t by, len; } key[KEYS]; };

struct run {
	const struct cut_plan *plan;
	struct db      *db;              /* with plan->fold: the product's image instead of env */
	struct fold    *fold;
	uint64_t        seq;
	char            dir[128], image[160];
	MDB_env        *env;
	MDB_dbi         dbi;
	uint32_t        begun, acknowledged;
	struct cut_result result;
};

/* ── the transactions ── */

static void step(struct model *m, uint64_t seed, uint32_t t, void (*each)(struct run *, uint32_t key,
	uint32_t len, MDB_txn *), struct run *r, MDB_txn *txn)
{
	uint64_t random = seed * 1000003 + t;
	unsigned count = 1 + (unsigned)(test_random(&random) % 8);

	for (unsigned i = 0; i < count; i++) {
		uint32_t key = (uint32_t)(test_random(&random) % KEYS);
		uint32_t len = test_random(&random) % 4 == 0 ? 0 : 1 + (uint32_t)(test_random(&random) %
			       (test_random(&random) % 4 ? 300 : MAX_VALUE));

		m->key[key].by = t;
		m->key[key].len = len;
		if (each)
			each(r, key, len, txn);
	}
}

static void fill(uint8_t *value, uint32_t key, uint32_t by, uint32_t len)
{
	uint64_t random = (uint64_t)by << 32 | key;

	for (uint32_t i = 0; i < len; i++)
		value[i] = (uint8_t)(i % 64 ? i * 7 : test_random(&random));
}

static void store(struct run *r, uint32_t key, uint32_t len, MDB_txn *txn)
{
	static uint8_t value[MAX_VALUE];
	MDB_val k = { sizeof key, &key }, v = { len, value };

	if (len == 0) {
		mdb_del(txn, r->dbi, &k, NULL);
		return;
	}
	fill(value, key, r->begun, len);
	mdb_put(txn, r->dbi, &k, &v, 0);
}

/* ── the same through noh's fold ── */

static void fold_one(struct run *r, uint32_t key, uint32_t len, MDB_txn *none)
{
	static uint8_t bytes[MAX_VALUE + 256];
	struct part_state head = { .version = 1 };
	char address[16];
	int alen = snprintf(address, sizeof address, "k:%u", key);
	uint8_t *at = record_begin(bytes, address, (size_t)alen, key, r->begun, ++r->seq,
				   len ? 0 : RECORD_GONE);
	const struct record_head *record = (const struct record_head *)(const void *)bytes;

	(void)none;
	if (len) {
		uint8_t *data = part_put(&at, PART_STATE, NULL, 0, sizeof head + len);

		memcpy(data, &head, sizeof head);
		fill(data + sizeof head, key, r->begun, len);
	}
	record_finish(bytes, at);
	must(fold_record(r->fold, r->begun, r->begun, record, bytes + record_parts_at(record->address_len),
			 at) == NOH_OK);
}

static int open_db(struct run *r)
{
	return db_open(&r->db, &(struct db_options){ .dir = r->dir, .dir_id = 1, .map_bytes = 1 << 20 });
}

static int fold_commit_one(struct run *r, struct model *m)
{
	int rc = fold_begin(r->db, &r->fold);

	if (rc != NOH_OK)
		return rc;
	r->begun++;
	r->seq = (uint64_t)r->begun << 20;
	step(m, r->plan->seed, r->begun, fold_one, r, NULL);
	rc = fold_commit(r->fold, r->begun, r->begun, 1700000000000u);
	if (rc == NOH_OK)
		r->acknowledged = r->begun;
	return rc;
}

static void work_folding(struct run *r)
{
	struct model m = { 0 };

	r->begun = r->acknowledged = 0;
	if (open_db(r) != NOH_OK)
		return;
	for (unsigned t = 0; t < r->plan->transactions; t++)
		if (fold_commit_one(r, &m) != NOH_OK)
			break;
	db_close(r->db);
}

/* ── and plainly ── */

/* LMDB divides by the page size it finds there, whatever it is. persist/db_open.c looks first, and so do we:
 * a cut may leave the very first write of a new file in pieces. */
static bool head_is_whole(const char *image)
{
	struct { uint32_t magic, version; uint64_t address, map_bytes; uint32_t page; } head;
	char file[4096];
	int fd;
	bool whole = true;

	snprintf(file, sizeof file, "%s/data.mdb", image);
	fd = open(file, O_RDONLY);
	if (fd < 0)
		return true;                     /* there is none: LMDB makes one */
	if (pread(fd, &head, sizeof head, 16) == (ssize_t)sizeof head)
		whole = head.page >= 512 && head.page <= 65536;
	close(fd);
	return whole;
}

static int open_env(struct run *r)
{
	MDB_txn *txn;
	int rc;

	if (!head_is_whole(r->image))
		return MDB_INVALID;
	rc = mdb_env_create(&r->env);
	must(rc == 0);
	mdb_env_set_mapsize(r->env, 16 << 20);
	rc = mdb_env_open(r->env, r->image, r->plan->no_sync ? MDB_NOSYNC : 0, 0600);
	if (rc == 0)
		rc = mdb_txn_begin(r->env, NULL, 0, &txn);
	if (rc == 0) {
		rc = mdb_dbi_open(txn, NULL, 0, &r->dbi);
		mdb_txn_abort(txn);
	}
	if (rc != 0) {
		mdb_env_close(r->env);
		r->env = NULL;
	}
	return rc;
}

static int commit_one(struct run *r, struct model *m)
{
	uint32_t stamp = KEYS;
	MDB_val k = { sizeof stamp, &stamp }, v = { sizeof r->begun, &r->begun };
	MDB_txn *txn;
	int rc = mdb_txn_begin(r->env, NULL, 0, &txn);

	if (rc != 0)
		return rc;
	r->begun++;
	step(m, r->plan->seed, r->begun, store, r, txn);
	mdb_put(txn, r->dbi, &k, &v, 0);
	rc = mdb_txn_commit(txn);
	if (rc == 0)
		r->acknowledged = r->begun;
	return rc;
}

static bool sync_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY);
	bool ok = fd >= 0 && fsync(fd) == 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* LMDB syncs no directory: who acknowledges has to. */
static void work(struct run *r)
{
	struct model m = { 0 };

	r->begun = r->acknowledged = 0;
	if (mkdir(r->image, 0700) != 0 || open_env(r) != 0)
		return;
	if (r->plan->no_dir_sync || (sync_directory(r->image) && sync_directory(r->dir)))
		for (unsigned t = 0; t < r->plan->transactions; t++)
			if (commit_one(r, &m) != 0)
				break;
	mdb_env_close(r->env);
}

/* ── the check ── */

static bool wrong(char *why, size_t room, const char *what, uint32_t a, uint32_t b)
{
	snprintf(why, room, "%s (%u, %u)", what, a, b);
	return false;
}

static bool check_open(struct run *r, MDB_txn *txn, char *why, size_t room)
{
	static uint8_t value[MAX_VALUE];
	uint32_t stamp = KEYS, held = 0;
	MDB_val k = { sizeof stamp, &stamp }, v;
	struct model m = { 0 };

	if (mdb_get(txn, r->dbi, &k, &v) == 0)
		memcpy(&held, v.mv_data, sizeof held);
	if (held < r->acknowledged || held > r->begun)
		return wrong(why, room, "not between acknowledged and begun", held, r->acknowledged);
	for (uint32_t t = 1; t <= held; t++)
		step(&m, r->plan->seed, t, NULL, NULL, NULL);
	for (uint32_t key = 0; key < KEYS; key++) {
		k = (MDB_val){ sizeof key, &key };
		int rc = mdb_get(txn, r->dbi, &k, &v);

		if (rc != (m.key[key].len ? 0 : MDB_NOTFOUND))
			return wrong(why, room, "a key is there or is not", key, held);
		if (rc != 0)
			continue;
		fill(value, key, m.key[key].by, m.key[key].len);
		if (v.mv_size != m.key[key].len || memcmp(v.mv_data, value, v.mv_size) != 0)
			return wrong(why, room, "a value is another", key, held);
	}
	return true;
}

static void count_problem(void *arg, const char *what)
{
	snprintf(arg, 100, "%s", what);
}

static bool check_actor(struct run *r, const struct model *m, uint32_t key, char *why, size_t room)
{
	static uint8_t value[MAX_VALUE];
	struct db_loaded loaded = { 0 };
	char address[16];
	int alen = snprintf(address, sizeof address, "k:%u", key);
	int rc = db_load(r->db, address, (size_t)alen, UINT64_MAX, &loaded);
	const uint8_t *at = loaded.image, *end = at + loaded.len;
	struct part p;
	bool ok;

	if (rc != (m->key[key].len ? NOH_OK : NOH_END))
		return wrong(why, room, "an actor is there or is not", key, m->key[key].by);
	if (rc != NOH_OK)
		return true;
	fill(value, key, m->key[key].by, m->key[key].len);
	ok = part_next(&at, end, &p) && p.kind == PART_STATE && at == end &&
	     p.len == sizeof(struct part_state) + m->key[key].len &&
	     memcmp((const uint8_t *)p.data + sizeof(struct part_state), value, m->key[key].len) == 0;
	mem_free(loaded.image, loaded.len);
	return ok || wrong(why, room, "a state is another", key, m->key[key].by);
}

static bool check_folded(struct run *r, char *why, size_t room)
{
	struct model m = { 0 };
	uint64_t frame, epoch;
	char problem[100];

	if (open_db(r) != NOH_OK) {
		snprintf(why, room, "%s", noh_why());
		return false;
	}
	db_stamp(r->db, &frame, &epoch);
	uint32_t held = (uint32_t)frame;
	bool ok = held >= r->acknowledged && held <= r->begun;

	if (!ok)
		wrong(why, room, "not between acknowledged and begun", held, r->acknowledged);
	for (uint32_t t = 1; ok && t <= held; t++)
		step(&m, r->plan->seed, t, NULL, NULL, NULL);
	for (uint32_t key = 0; ok && key < KEYS; key++)
		ok = check_actor(r, &m, key, why, room);
	if (ok && db_verify(r->db, count_problem, NULL, problem) != 0) {
		ok = false;
		snprintf(why, room, "%s", problem);
	}
	r->begun = held;
	if (ok && fold_commit_one(r, &m) != NOH_OK)
		ok = wrong(why, room, "no further fold", held, 0);
	db_close(r->db);
	return ok;
}

static bool check_plain(struct run *r, char *why, size_t room)
{
	struct model m = { 0 };
	MDB_txn *txn;
	int rc = open_env(r);

	/* Creation that was not acknowledged may have left anything. */
	if (rc != 0)
		return r->acknowledged == 0 || wrong(why, room, mdb_strerror(rc), 0, r->acknowledged);
	bool ok = mdb_txn_begin(r->env, NULL, MDB_RDONLY, &txn) == 0;

	if (!ok)
		wrong(why, room, "it cannot be read", 0, 0);
	else
		ok = check_open(r, txn, why, room);
	if (txn)
		mdb_txn_abort(txn);
	if (ok && commit_one(r, &m) != 0)
		ok = wrong(why, room, "no further transaction", 0, 0);
	mdb_env_close(r->env);
	return ok;
}

static bool check(struct run *r, char *why, size_t room)
{
	return r->plan->fold ? check_folded(r, why, room) : check_plain(r, why, room);
}

/* A damaged file makes LMDB fault (its map ends early) or worse: where that is expected, a child looks. */
static bool check_in_child(struct run *r, char *why, size_t room)
{
	int status = 0, ends[2];

	must(pipe(ends) == 0);
	pid_t child = fork();

	must(child >= 0);
	if (child == 0) {
		signal(SIGBUS, SIG_DFL);
		signal(SIGSEGV, SIG_DFL);
		signal(SIGABRT, SIG_DFL);
		bool ok = check(r, why, room);

		_exit(write(ends[1], why, strlen(why) + 1) < 0 || !ok);
	}
	close(ends[1]);
	ssize_t got = read(ends[0], why, room - 1);

	close(ends[0]);
	must(waitpid(child, &status, 0) == child);
	if (got <= 0)
		return wrong(why, room, "it crashed", (uint32_t)status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ── every operation, every mode ── */

static void cut_one(struct run *r, const struct disk_sim *at, enum cut mode, uint64_t op)
{
	struct disk_sim *s = disk_sim_copy(at);
	uint32_t begun = r->begun, acknowledged = r->acknowledged;
	char why[120] = "";

	disk_sim_lie(s, false);
	disk_sim_cut(s, mode, r->plan->seed ^ op * 97);
	lmdb_wrap(s, r->dir);
	lmdb_wrap_rebuild();
	r->result.points++;
	bool damage = r->plan->no_sync || r->plan->lie || r->plan->no_dir_sync;

	if (!(damage ? check_in_child : check)(r, why, sizeof why)) {
		if (r->result.violations++ == 0)
			snprintf(r->result.first, sizeof r->result.first, "operation %llu, %s: %s",
				 (unsigned long long)op, cut_names[mode], why);
	}
	r->begun = begun;
	r->acknowledged = acknowledged;
	lmdb_wrap(NULL, NULL);
	disk_sim_free(s);
}

static bool run_to(struct run *r, uint64_t op)     /* false: it ended before */
{
	struct disk_sim *s = disk_sim_new(r->plan->seed);

	disk_sim_lie(s, r->plan->lie);
	disk_sim_cut_at(s, op);
	lmdb_wrap(s, r->dir);
	lmdb_wrap_rebuild();
	(r->plan->fold ? work_folding : work)(r);
	bool off = disk_sim_is_off(s);

	r->result.agreed &= off || lmdb_wrap_agrees();
	lmdb_wrap(NULL, NULL);
	for (enum cut mode = 0; mode < CUT_MODES; mode++)
		cut_one(r, s, mode, op);
	disk_sim_free(s);
	return off;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct cut_result cut_everywhere(const struct cut_plan *plan)
{
	struct run r = { .plan = plan, .result.agreed = true };
	double began = now();

	lmdb_wrap_make_dir(r.dir, sizeof r.dir);
	snprintf(r.image, sizeof r.image, "%s/image", r.dir);
	for (uint64_t op = 1; run_to(&r, op); op++)
		continue;
	lmdb_wrap_remove_dir(r.dir);
	r.result.seconds = now() - began;
	return r.result;
}
