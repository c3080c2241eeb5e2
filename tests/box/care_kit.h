/* tests/box/care_kit.h - data directories made, copied, hashed and damaged; boxes in another process. */
#ifndef NOH_TESTS_BOX_CARE_KIT_H
#define NOH_TESTS_BOX_CARE_KIT_H

#include "core/atomic.h"
#include "tests/box/durable_kit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { CARE_ADD, CARE_GET, CARE_PASS, CARE_TICK, CARE_ALARM, CARE_PUT };

static inline int care_message(noh_turn *t, const noh_msg *m)
{
	int64_t n = m->len >= 8 ? *(const int64_t *)m->body : 0;
	char to[64];

	switch (m->kind) {
	case CARE_ADD:
		*(int64_t *)noh_state(t) += n;
		return noh_reply(t, noh_look(t), 8);
	case CARE_GET:
		return noh_reply(t, noh_look(t), 8);
	case CARE_PASS:                          /* what leaves here arrives there: the sum is zero */
		*(int64_t *)noh_state(t) -= n;
		snprintf(to, sizeof to, "care:%s-to", noh_id(t));
		return noh_tell_to(t, to, CARE_ADD, &n, 8);
	case CARE_ALARM:
		return noh_schedule_once(t, CARE_TICK, (uint64_t)n);
	case CARE_PUT:
		return noh_kv_put(t, &n, 8, &n, 8);
	}
	return NOH_OK;
}

static const noh_type care_type = { .name = "care", .state_size = 8, .on_message = care_message,
				    .full_mode = NOH_BLOCK };

static inline noh_box *care_box(const char *dir)
{
	return open_dir(dir, 2, &care_type, 1);
}

/* Twenty answered; nothing of it in the image unless the box was shut in order. */
static inline void make_twenty(const char *dir, bool folded)
{
	noh_box *box = care_box(dir);

	for (int64_t i = 0; box && i < 20; i++)
		EXPECT_EQ(call_i64(box, "care:a", CARE_ADD, 1), i + 1);
	if (box && folded)
		shut(box);
	else
		noh_close(box);
}

static inline void expect_twenty(const char *dir)
{
	noh_box *box = care_box(dir);

	if (box) {
		EXPECT_EQ(call_i64(box, "care:a", CARE_GET, 0), 20);
		shut(box);
	}
}

/* A directory with a name in a fresh folder: TEST/NAME. */
struct place { char base[200], path[256]; };

static inline void place_make(struct place *p)
{
	(void)fresh_dir(p->base, sizeof p->base);
	snprintf(p->path, sizeof p->path, "%s/data", p->base);
}

static inline void place_in(char *out, size_t size, const struct place *p, const char *name)
{
	snprintf(out, size, "%s/%s", p->base, name);
}

NOH_PRINTF(1, 2) static inline int shell(const char *format, ...)
{
	char command[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof command, format, args);
	va_end(args);
	return system(command);
}

/* Names, sizes and bytes of all that is data: not the lock's pid, and not LMDB's table of readers. */
static inline void digest(const char *dir, char out[64])
{
	char command[1024];
	FILE *f;

	snprintf(command, sizeof command, "cd %s && find . ! -name lock ! -name lock.mdb -printf '%%p %%s %%m\\n' "
		 "-type f -exec cksum {} + | sort | md5sum", dir);
	f = popen(command, "r");
	out[0] = 0;
	EXPECT(f && fgets(out, 64, f));
	if (f)
		pclose(f);
}

/* ── a box in another process ── */

struct other {
	pid_t      pid;
	atomic_u32 ready;
	atomic_u64 answered[8];          /* by actor: the last answer that came          */
	atomic_u32 passed;               /* how often care:p passed one on, answered     */
};

/* Adds one to each of eight actors in turn, and passes from one to another, until it is killed. */
static inline void other_work(struct other *o, const char *dir)
{
	noh_box *box = care_box(dir);
	char address[32];

	if (!box)
		_exit(1);
	for (uint64_t i = 0; ; i++) {
		int64_t answer = 0;
		size_t len = 8;

		snprintf(address, sizeof address, "care:%d", (int)(i % 8));
		if (noh_call(box, address, CARE_ADD, &(int64_t){ 1 }, 8, 20000, &answer, &len) != NOH_OK)
			_exit(1);
		store_seq_cst(&o->answered[i % 8], (uint64_t)answer);
		if (noh_call(box, "care:p", CARE_PASS, &(int64_t){ 1 }, 8, 20000, NULL, NULL) != NOH_OK)
			_exit(1);
		store_seq_cst(&o->passed, (uint32_t)(i + 1));
		if (i >= 50)
			store_seq_cst(&o->ready, 1);
	}
}

static inline bool other_ready(void *arg)
{
	return load_seq_cst(&((struct other *)arg)->ready) != 0;
}

static inline struct other *other_start(const char *dir)
{
	struct other *o = mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	pid_t pid = fork();

	if (pid == 0)
		other_work(o, dir);
	o->pid = pid;                            /* by the parent alone: the page is shared */
	EXPECT(test_wait_until(other_ready, o, 30000));
	return o;
}

static inline void other_kill(struct other *o)
{
	int status;

	if (EXPECT(o->pid > 0))
		kill(o->pid, SIGKILL);
	EXPECT(waitpid(o->pid, &status, 0) == o->pid && WIFSIGNALED(status));
	munmap(o, sizeof *o);
}

/* ── findings ── */

struct findings { uint64_t count; char all[8192]; };

static inline void note_finding(void *arg, const char *what)
{
	struct findings *f = arg;
	size_t at = strlen(f->all);

	f->count++;
	snprintf(f->all + at, sizeof f->all - at, "%s\n", what);
}

static inline int verify_dir(const char *dir, struct findings *f, noh_verified *v)
{
	*f = (struct findings){ 0 };
	return noh_verify(dir, note_finding, NULL, f, v);
}

static inline void expect_clean(const char *dir)
{
	struct findings f;
	noh_verified v;

	if (!EXPECT_EQ(verify_dir(dir, &f, &v), NOH_OK))
		fprintf(stderr, "%s%s\n", f.all, noh_why());
}

/* Exclusive-or one byte of a file. */
static inline void flip(const char *dir, const char *name, off_t at)
{
	char path[512];
	uint8_t byte = 0;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDWR);

	EXPECT(fd >= 0 && pread(fd, &byte, 1, at) == 1);
	byte ^= 0x20;
	EXPECT(pwrite(fd, &byte, 1, at) == 1);
	close(fd);
}

/* Where in a file these bytes are first; -1: nowhere. */
static inline off_t find_bytes(const char *dir, const char *name, const void *bytes, size_t len)
{
	char path[512];
	struct stat st;
	off_t at = -1;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st) != 0)
		return -1;
	uint8_t *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	uint8_t *hit = memmem(map, (size_t)st.st_size, bytes, len);

	if (hit)
		at = hit - map;
	munmap(map, (size_t)st.st_size);
	close(fd);
	return at;
}

#endif
