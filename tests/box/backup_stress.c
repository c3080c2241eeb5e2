/* tests/box/backup_stress.c - backups, verifies and inspections beside a box that writes as fast as it can through
 * a small journal, so that segments are folded and recycled while they are copied.
 * Checks that every backup is clean and has what was answered before it, and that nothing is taken for damage. */
#include "tests/box/care_kit.h"

#include <pthread.h>
#include <time.h>

enum { WRITERS = 8, BYTES = 12000, SECONDS = 20 };

struct load { atomic_u64 answered[WRITERS]; atomic_u32 ready; };

static int on_message(noh_turn *t, const noh_msg *m)
{
	char key[8];

	if (m->kind == CARE_GET)
		return noh_reply(t, noh_look(t), 8);
	int64_t n = ++*(int64_t *)noh_state(t);

	snprintf(key, sizeof key, "%d", (int)(n % 50));
	int rc = noh_kv_put(t, key, strlen(key), m->body, m->len);

	return rc == NOH_OK ? noh_reply(t, &n, 8) : rc;
}

static const noh_type big = { .name = "big", .state_size = 8, .on_message = on_message, .full_mode = NOH_BLOCK };

static noh_box *open_big(const char *dir)
{
	noh_options o = { .workers = 2, .dir = dir, .unpinned = true, .max_actors = 10000,
			  .journal_bytes = UINT64_C(64) << 20 };
	noh_box *box = NULL;

	if (!EXPECT_EQ(noh_open(&box, &o), NOH_OK))
		fprintf(stderr, "%s\n", noh_why());
	EXPECT(box && noh_register(box, &big) == NOH_OK && noh_start(box) == NOH_OK);
	return box;
}

struct writer { noh_box *box; struct load *load; int number; };

static void *write_on(void *arg)
{
	struct writer *w = arg;
	static char body[BYTES];
	char address[32];

	snprintf(address, sizeof address, "big:%d", w->number);
	for (uint64_t n = 1;; n++) {
		int64_t answer = 0;
		size_t len = 8;

		if (noh_call(w->box, address, CARE_ADD, body, BYTES, 60000, &answer, &len) != NOH_OK)
			_exit(1);
		store_seq_cst(&w->load->answered[w->number], (uint64_t)answer);
		if (n == 20)
			store_seq_cst(&w->load->ready, 1);
	}
}

static void write_until_killed(struct load *load, const char *dir)
{
	struct writer w[WRITERS];
	pthread_t thread;
	noh_box *box = open_big(dir);

	for (int i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){ box, load, i };
		pthread_create(&thread, NULL, write_on, &w[i]);
	}
	pthread_join(thread, NULL);
	_exit(1);
}

static bool ready(void *arg)
{
	return load_seq_cst(&((struct load *)arg)->ready) != 0;
}

static void expect_all(const char *dir, const uint64_t *answered)
{
	noh_box *box = open_big(dir);
	char address[32];

	for (int i = 0; box && i < WRITERS; i++) {
		snprintf(address, sizeof address, "big:%d", i);
		EXPECT((uint64_t)call_i64(box, address, CARE_GET, 0) >= answered[i]);
	}
	noh_close(box);
}

/* Beside its box. A slow reader may not come to an end, but it does not take that for damage. */
static void expect_no_damage(const char *dir)
{
	struct findings f;
	noh_verified v;
	int rc = verify_dir(dir, &f, &v);

	if (!EXPECT(rc == NOH_OK || rc == NOH_EINUSE))
		fprintf(stderr, "%s%s\n", f.all, noh_why());
	EXPECT_EQ(f.count, 0);
}

static void one_round(const struct place *p, struct load *load, int round)
{
	uint64_t answered[WRITERS];
	char backup[300];
	noh_dir_info info;

	snprintf(backup, sizeof backup, "%s/backup%d", p->base, round);
	for (int i = 0; i < WRITERS; i++)
		answered[i] = load_seq_cst(&load->answered[i]);
	if (!EXPECT_EQ(noh_backup_dir(p->path, backup, NULL), NOH_OK))
		fprintf(stderr, "%s\n", noh_why());
	expect_clean(backup);
	expect_all(backup, answered);
	remove_dir(backup);
	expect_no_damage(p->path);
	EXPECT_EQ(noh_inspect(p->path, &info), NOH_OK);
}

static void every_backup_of_a_busy_box_is_whole(void)
{
	struct load *load = mmap(NULL, sizeof *load, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct place p;
	time_t end = time(NULL) + SECONDS;
	int status, round = 0;

	place_make(&p);
	pid_t pid = fork();

	if (pid == 0)
		write_until_killed(load, p.path);
	EXPECT(test_wait_until(ready, load, 30000));
	for (; time(NULL) < end; round++)
		one_round(&p, load, round);
	kill(pid, SIGKILL);
	EXPECT(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	uint64_t sum = 0;

	for (int i = 0; i < WRITERS; i++)
		sum += load_seq_cst(&load->answered[i]);
	printf("%d backups, %llu answers of %d bytes\n", round, (unsigned long long)sum, BYTES);
	expect_clean(p.path);
	munmap(load, sizeof *load);
	remove_dir(p.base);
}

TEST_MAIN(
	TEST(every_backup_of_a_busy_box_is_whole, "P5 P6"))
