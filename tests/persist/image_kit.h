/* tests/persist/image_kit.h - a data directory in /tmp, records by hand, and what an actor loads as.
 *
 *	begin("cart:1", 5); state(1, "pears"); put("a", "1"); in_frame(1);      one record into the fold
 *	commit(1);                                                              the fold into LMDB
 *	EXPECT(loads("cart:1", "5 S1:pears a=1"));
 */
#ifndef NOH_TESTS_PERSIST_IMAGE_KIT_H
#define NOH_TESTS_PERSIST_IMAGE_KIT_H

#include "core/mem.h"
#include "noh.h"
#include "persist/db.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIR_ID UINT64_C(0x1d1d1d1d)
#define NOW UINT64_C(1000000000)

static struct {
	char         dir[64];
	struct db   *db;
	struct fold *fold;
	_Alignas(8) uint8_t record[1 << 20];
	uint8_t     *at;
	struct db_options options;
} kit;

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *where)
{
	(void)s; (void)type; (void)where;
	return remove(path);
}

static void remove_dir(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool open_db(void)
{
	kit.options.dir = kit.dir;
	kit.options.dir_id = DIR_ID;
	return EXPECT_EQ(db_open(&kit.db, &kit.options), NOH_OK);
}

static void start(void)
{
	kit.options = (struct db_options){ .dir = kit.dir };
	kit.fold = NULL;
	strcpy(kit.dir, "/tmp/noh-image-XXXXXX");
	EXPECT(mkdtemp(kit.dir) != NULL);
	open_db();
}

static inline void start_again(void)
{
	db_close(kit.db);
	open_db();
}

static void finish(void)
{
	db_close(kit.db);
	kit.db = NULL;
	remove_dir(kit.dir);
}

/* ── records ── */

static inline uint64_t hash_of(const char *address)
{
	uint64_t h = 1469598103934665603u;

	for (; *address; address++)
		h = (h ^ (uint8_t)*address) * 1099511628211u;
	return test_random(&h);
}

static void begin_flags(const char *address, uint64_t seq, uint8_t flags)
{
	kit.at = record_begin(kit.record, address, strlen(address), hash_of(address), seq >> 20, seq,
			      flags);
}

static inline void begin(const char *address, uint64_t seq)
{
	begin_flags(address, seq, 0);
}

static inline void gone(const char *address, uint64_t seq)
{
	begin_flags(address, seq, RECORD_GONE);
}

static inline void state(uint32_t version, const char *text)
{
	struct part_state head = { .version = version, .schema = 77 };
	uint8_t *data = part_put(&kit.at, PART_STATE, NULL, 0, sizeof head + strlen(text));

	memcpy(data, &head, sizeof head);
	memcpy(data + sizeof head, text, strlen(text));
}

/* timers(n, due, ...): the whole list. */
static inline void timers(unsigned n, ...)
{
	uint8_t *data = part_put(&kit.at, PART_TIMERS, NULL, 0, n * sizeof(struct part_timer));
	va_list args;

	va_start(args, n);
	for (unsigned i = 0; i < n; i++) {
		struct part_timer t = { .due_ms = (uint64_t)va_arg(args, int), .kind = 1 };
		memcpy(data + i * sizeof t, &t, sizeof t);
	}
	va_end(args);
}

static inline void put(const char *key, const char *value)
{
	memcpy(part_put(&kit.at, PART_PUT, key, strlen(key), strlen(value)), value, strlen(value));
}

static inline void del(const char *key)
{
	part_put(&kit.at, PART_DELETE, key, strlen(key), 0);
}

static inline void emitted(const char *to, uint64_t sender, uint64_t seq, uint32_t index, uint64_t tag,
			   const char *body)
{
	struct part_emitted e = { .id = { sender, seq, index, 0 }, .tag = tag };
	uint8_t *data = part_put(&kit.at, PART_EMITTED, to, strlen(to), sizeof e + strlen(body));

	memcpy(data, &e, sizeof e);
	memcpy(data + sizeof e, body, strlen(body));
}

static inline void consumed(uint64_t sender, uint64_t seq, uint32_t index)
{
	struct message_id id = { sender, seq, index, 0 };

	memcpy(part_put(&kit.at, PART_CONSUMED, NULL, 0, sizeof id), &id, sizeof id);
}

static inline void idem(const char *key, uint64_t at_ms, const char *answer)
{
	struct part_idem i = { .at_ms = at_ms, .body_hash = 9 };
	uint8_t *data = part_put(&kit.at, PART_IDEM, key, strlen(key), sizeof i + strlen(answer));

	memcpy(data, &i, sizeof i);
	memcpy(data + sizeof i, answer, strlen(answer));
}

static inline void dead(const char *receiver, uint64_t at_ms, const char *reason, const char *body)
{
	struct part_dead d = { .at_ms = at_ms, .kind = 4, .reason_len = (uint32_t)strlen(reason) };
	size_t pad = record_pad(strlen(reason));
	uint8_t *data = part_put(&kit.at, PART_DEAD, receiver, strlen(receiver),
				 sizeof d + pad + strlen(body));

	memcpy(data, &d, sizeof d);
	memset(data + sizeof d, 0, pad);
	memcpy(data + sizeof d, reason, strlen(reason));
	memcpy(data + sizeof d + pad, body, strlen(body));
}

static inline void vitals(unsigned health, const char *parent)
{
	struct part_vitals v = { .health = (uint8_t)health, .parent_len = (uint8_t)strlen(parent) };
	uint8_t *data = part_put(&kit.at, PART_VITALS, NULL, 0, sizeof v + strlen(parent));

	memcpy(data, &v, sizeof v);
	memcpy(data + sizeof v, parent, strlen(parent));
}

static inline int try_frame(uint64_t frame)
{
	const uint8_t *at = kit.record, *parts, *end;
	const struct record_head *head;

	record_finish(kit.record, kit.at);
	EXPECT(record_next(&at, kit.at, &head, &parts, &end));
	if (!kit.fold) {
		int rc = fold_begin(kit.db, &kit.fold);
		if (rc != NOH_OK)
			return rc;
	}
	return fold_record(kit.fold, frame, frame * 10, head, parts, end);
}

static inline void in_frame(uint64_t frame)
{
	EXPECT_EQ(try_frame(frame), NOH_OK);
}

static inline int try_commit_at(uint64_t frame, uint64_t now_ms)
{
	struct fold *f = kit.fold;
	int rc = NOH_OK;

	kit.fold = NULL;
	if (!f)
		rc = fold_begin(kit.db, &f);
	return rc == NOH_OK ? fold_commit(f, frame, frame * 10, now_ms) : rc;
}

static inline void commit(uint64_t frame)
{
	EXPECT_EQ(try_commit_at(frame, NOW), NOH_OK);
}

/* ── what an actor loads as: "SEQ Sversion:state T[due ...] key=value ... <sender.seq.index:body" ── */

static inline void say(char *to, size_t room, const char *format, ...)
{
	size_t used = strlen(to);
	va_list args;

	va_start(args, format);
	vsnprintf(to + used, room - used, format, args);
	va_end(args);
}

static inline void say_part(const struct part *p, char *to, size_t room)
{
	const uint8_t *data = p->data;
	struct part_state s;
	struct part_emitted e;
	struct part_timer t;
	struct part_vitals v;

	switch (p->kind) {
	case PART_STATE:
		memcpy(&s, data, sizeof s);
		say(to, room, " S%u:%.*s", s.version, (int)(p->len - sizeof s), data + sizeof s);
		break;
	case PART_TIMERS:
		say(to, room, " T[");
		for (size_t i = 0; i * sizeof t < p->len; i++) {
			memcpy(&t, data + i * sizeof t, sizeof t);
			say(to, room, i ? " %d" : "%d", (int)t.due_ms);
		}
		say(to, room, "]");
		break;
	case PART_PUT:
		say(to, room, " %.*s=%.*s", p->key_len, p->key, (int)p->len, data);
		break;
	case PART_EMITTED:
		memcpy(&e, data, sizeof e);
		say(to, room, " <%d.%d.%d:%.*s", (int)e.id.sender, (int)e.id.seq, (int)e.id.index,
		    (int)(p->len - sizeof e), data + sizeof e);
		break;
	case PART_VITALS:
		memcpy(&v, data, sizeof v);
		say(to, room, " V%u:%.*s", v.health, v.parent_len, data + sizeof v);
		break;
	default:
		say(to, room, " ?%d", p->kind);
	}
}

static inline void say_image(const void *image, size_t len, uint64_t seq, char *to, size_t room)
{
	const uint8_t *at = image, *end = at + len;
	struct part p;

	snprintf(to, room, "%d", (int)seq);
	while (part_next(&at, end, &p))
		say_part(&p, to, room);
	EXPECT(at == end);
}

static char loaded_text[1 << 16];

/* The text, "none", or "error N". */
static inline const char *load_before(const char *address, uint64_t before_tag)
{
	struct db_loaded l;
	int rc = db_load(kit.db, address, strlen(address), before_tag, &l);

	if (rc == NOH_END)
		return "none";
	if (rc != NOH_OK) {
		snprintf(loaded_text, sizeof loaded_text, "error %d", rc);
		return loaded_text;
	}
	say_image(l.image, l.len, l.seq, loaded_text, sizeof loaded_text);
	mem_free(l.image, l.len);
	return loaded_text;
}

static inline bool loads_before(const char *address, uint64_t tag, const char *text)
{
	const char *found = load_before(address, tag);

	if (strcmp(found, text) == 0)
		return true;
	fprintf(stderr, "%s is: %s\n", address, found);
	return false;
}

static inline bool loads(const char *address, const char *text)
{
	return loads_before(address, UINT64_MAX, text);
}

static inline struct db_stats stats(void)
{
	struct db_stats s;

	db_get_stats(kit.db, &s);
	return s;
}

static inline void tell_problem(void *arg, const char *what)
{
	(void)arg;
	fprintf(stderr, "verify: %s\n", what);
}

static inline bool verified(void)
{
	return db_verify(kit.db, tell_problem, NULL, NULL) == 0;
}

/* What LMDB makes of a damaged page, in a process of its own, and in silence. What it returned, or -1: it was ended. */
static inline int in_silence(int (*run)(int), int arg)
{
	int status, devnull = open("/dev/null", O_WRONLY);
	pid_t pid = fork();

	if (pid == 0) {
		dup2(devnull, 2);
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		signal(SIGABRT, SIG_DFL);
		_exit(run(arg));
	}
	waitpid(pid, &status, 0);
	close(devnull);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
