/* tests/box/golden_test.c - data directories of released formats open, and every value is there.
 *
 * tests/golden/vN.tar.xz was made once, by tests/golden/make.c of that time: two runs, both killed. The first
 * one's work is in the image, the second one's in the journal beyond it. */
#include "tests/box/care_kit.h"
#include "tests/golden/golden.h"

#define CENTURY_MS (UINT64_C(36525) * 24 * 3600 * 1000)      /* keys are as old as the file */

static void unpack(const struct place *p, const char *name)
{
	EXPECT_EQ(mkdir(p->path, 0700), 0);
	EXPECT_EQ(shell("tar -C %s -xJf tests/golden/%s.tar.xz", p->path, name), 0);
}

/* ── what is stored, without opening it ── */

struct pieces { int state, timer, entry, pending, record, key; int64_t last; uint64_t due, period; uint32_t kind; };

static int count_piece(void *arg, const noh_piece *p)
{
	struct pieces *s = arg;

	switch (p->what) {
	case NOH_PIECE_STATE:
		EXPECT_EQ(p->len, 8);
		EXPECT_EQ(p->version, 1);
		EXPECT(p->schema == GOLD_SCHEMA);
		memcpy(&s->last, p->value, sizeof s->last);
		s->state++;
		break;
	case NOH_PIECE_TIMER:
		s->timer++;
		s->due = p->due_ms;
		s->period = p->period_ms;
		s->kind = p->kind;
		break;
	case NOH_PIECE_ENTRY:
		EXPECT(p->len == sizeof GOLD_VALUE && memcmp(p->value, GOLD_VALUE, sizeof GOLD_VALUE) == 0);
		s->entry++;
		break;
	case NOH_PIECE_PENDING:
		EXPECT_EQ(p->kind, GOLD_ADD);
		s->pending++;
		break;
	case NOH_PIECE_RECORD: s->record++; break;
	case NOH_PIECE_KEY: s->key++; break;
	default: break;
	}
	return 0;
}

static struct pieces pieces_of(const char *dir, const char *address)
{
	struct pieces s = { 0 };

	EXPECT_EQ(noh_inspect_actor(dir, address, count_piece, &s), NOH_OK);
	return s;
}

static void look_at_v1(const char *dir)
{
	noh_dir_info info;
	struct pieces s;

	EXPECT_EQ(noh_inspect(dir, &info), NOH_OK);
	EXPECT_EQ(info.format, 1);
	EXPECT(!info.in_use && info.end > info.stamp);
	EXPECT_EQ(info.pending, 1);
	EXPECT_EQ(info.keys, 1);
	EXPECT_EQ(info.timers, 2);
	EXPECT_EQ(info.entries, 2);
	EXPECT(info.events == 0 && info.event_seq == 0);
	s = pieces_of(dir, "gold:plain");
	EXPECT(s.state == 2 && s.last == 142);
	s = pieces_of(dir, "gold/entries");          /* the other spelling */
	EXPECT(s.entry == 3 && s.last == 7);
	s = pieces_of(dir, "gold:once");
	EXPECT(s.timer == 1 && s.kind == GOLD_TICK && s.period == 0 && s.due > 1000000000000u);
	s = pieces_of(dir, "gold:every");
	EXPECT(s.timer == 1 && s.kind == GOLD_BEAT && s.period == 3600000);
	s = pieces_of(dir, "gold:stuck");
	EXPECT_EQ(s.pending, 2);
	s = pieces_of(dir, "gold:key");
	EXPECT(s.key == 1 && s.last == 11);
	EXPECT_EQ(noh_inspect_actor(dir, "gold:erased", count_piece, &s), NOH_ENOACTOR);
	EXPECT_EQ(noh_inspect_actor(dir, "gold:nobody", count_piece, &s), NOH_ENOACTOR);
	EXPECT_EQ(noh_inspect_actor(dir, "nonsense", count_piece, &s), NOH_EADDRESS);
}

/* ── and opened ── */

static int64_t get(noh_box *box, const char *address)
{
	return call_i64(box, address, GOLD_GET, 0);
}

static bool stuck_has_both(void *box)
{
	return get(box, "gold:stuck") == 33;
}

static bool timer_rang(void *box)
{
	return get(box, "gold:once") == 1000;
}

static void expect_entry(noh_box *box, const char *key, bool there)
{
	char value[100];
	size_t len = sizeof value;

	EXPECT_EQ(noh_call(box, "gold:entries", GOLD_LOOK, key, strlen(key), 10000, value, &len), NOH_OK);
	EXPECT_EQ(len, there ? sizeof GOLD_VALUE : 0);
	EXPECT(!there || memcmp(value, GOLD_VALUE, sizeof GOLD_VALUE) == 0);
}

/* Answered as the first time, and not added again. */
static void expect_key(noh_box *box, const char *key, int64_t n, int64_t expected)
{
	noh_call_options o = { .timeout_ms = 10000, .key = key, .key_len = strlen(key) };
	int64_t answer = 0;
	size_t len = sizeof answer;

	EXPECT_EQ(noh_call_with(box, "gold:key", GOLD_ADD, &n, 8, &o, &answer, &len), NOH_OK);
	EXPECT_EQ(answer, expected);
}

/* It has a log from now on, and goes on with its numbers. */
static void expect_events(noh_box *box)
{
	uint64_t before = 0, after = 0;

	EXPECT_EQ(noh_events_bounds(box, NULL, &before), NOH_OK);
	EXPECT_EQ(noh_tell_config(box, "golden", "old", "new"), NOH_OK);
	EXPECT_EQ(noh_events_wait(box, before, 20000), NOH_OK);
	EXPECT_EQ(noh_events_bounds(box, NULL, &after), NOH_OK);
	EXPECT_EQ(after, before + 1);
}

static void open_v1(const char *dir)
{
	struct gold_world world = { .stuck = false };
	noh_type type = gold_type(&world);
	noh_options o = { .workers = 2, .dir = dir, .unpinned = true, .max_actors = 10000, .idem_ms = CENTURY_MS };
	noh_box *box;

	if (!EXPECT_EQ(noh_open(&box, &o), NOH_OK)) {
		fprintf(stderr, "%s\n", noh_why());
		return;
	}
	EXPECT_EQ(noh_register(box, &type), NOH_OK);
	EXPECT_EQ(noh_start(box), NOH_OK);
	EXPECT_EQ(get(box, "gold:plain"), 142);
	EXPECT_EQ(get(box, "gold:late"), 3);
	EXPECT_EQ(get(box, "gold:entries"), 7);
	expect_entry(box, "one", true);
	expect_entry(box, "two", false);
	expect_entry(box, "three", true);
	expect_entry(box, "four", true);
	expect_key(box, "first", 5, 5);
	expect_key(box, "second", 6, 11);
	EXPECT_EQ(get(box, "gold:key"), 11);
	EXPECT_EQ(get(box, "gold:erased"), 0);
	EXPECT_EQ(get(box, "gold:sender"), -33);
	EXPECT(test_wait_until(stuck_has_both, box, 20000));
	EXPECT(test_wait_until(timer_rang, box, 20000));     /* overdue since long ago */
	EXPECT_EQ(get(box, "gold:plain"), 142);
	expect_events(box);
	shut(box);
	expect_clean(dir);
}

static void version_1_opens_with_every_value(void)
{
	struct place p;

	place_make(&p);
	unpack(&p, "v1");
	expect_clean(p.path);
	look_at_v1(p.path);
	open_v1(p.path);
	open_v1(p.path);                             /* as this release left it */
	remove_dir(p.base);
}

static void version_1_is_backed_up_and_compacted(void)
{
	struct place p;
	char backup[300];

	place_make(&p);
	place_in(backup, sizeof backup, &p, "backup");
	unpack(&p, "v1");
	EXPECT_EQ(noh_backup_dir(p.path, backup, NULL), NOH_OK);
	expect_clean(backup);
	look_at_v1(backup);
	EXPECT_EQ(noh_compact(p.path, NULL), NOH_OK);
	open_v1(p.path);
	open_v1(backup);
	remove_dir(p.base);
}

/* ── what a program needs to open it ── */

struct verdict { int count, verdict; uint32_t missing; };

static int note_verdict(void *arg, const noh_stored_type *t)
{
	struct verdict *v = arg;

	EXPECT(strcmp(t->name, "gold") == 0);
	EXPECT_EQ(t->actors, 6);
	EXPECT(t->tail > 0);
	v->count++;
	v->verdict = t->verdict;
	v->missing = t->missing;
	return 0;
}

static struct verdict check_as(const char *dir, const noh_type *t, int expected)
{
	struct verdict v = { 0 };

	EXPECT_EQ(noh_check(dir, t, t ? 1 : 0, note_verdict, &v), expected);
	EXPECT_EQ(v.count, 1);
	return v;
}

static void check_tells_before_an_upgrade(void)
{
	static const noh_migration steps[] = { { .from = 1 }, { .from = 3 } };
	struct place p;
	noh_type t = gold_type(NULL), other = { .name = "silver" };

	place_make(&p);
	unpack(&p, "v1");
	EXPECT_EQ(check_as(p.path, &t, NOH_OK).verdict, NOH_FITS);
	EXPECT_EQ(check_as(p.path, NULL, NOH_OK).verdict, NOH_UNKNOWN);
	EXPECT_EQ(check_as(p.path, &other, NOH_ENOTYPE).verdict, NOH_UNKNOWN);
	t.schema++;
	EXPECT_EQ(check_as(p.path, &t, NOH_EVERSION).verdict, NOH_OTHER_SCHEMA);
	t.version = 2;
	EXPECT_EQ(check_as(p.path, &t, NOH_EVERSION).verdict, NOH_NO_STEP);
	t.migrations = steps;
	t.migration_count = 2;
	EXPECT_EQ(check_as(p.path, &t, NOH_OK).verdict, NOH_MIGRATES);
	t.version = 4;
	struct verdict v = check_as(p.path, &t, NOH_EVERSION);

	EXPECT(v.verdict == NOH_NO_STEP && v.missing == 2);
	remove_dir(p.base);
}

static int count_addresses(void *arg, const char *address)
{
	EXPECT(strncmp(address, "gold:", 5) == 0);
	++*(int *)arg;
	return *(int *)arg == 100;
}

static void addresses_are_listed_with_those_in_the_tail(void)
{
	struct place p;
	int count = 0;

	place_make(&p);
	unpack(&p, "v1");
	EXPECT_EQ(noh_inspect_list(p.path, NULL, count_addresses, &count), NOH_OK);
	EXPECT_EQ(count, 7);                         /* six, and gold:late */
	count = 0;
	EXPECT_EQ(noh_inspect_list(p.path, "gold", count_addresses, &count), NOH_OK);
	EXPECT_EQ(count, 7);
	count = 0;
	EXPECT_EQ(noh_inspect_list(p.path, "gol", count_addresses, &count), NOH_OK);
	EXPECT_EQ(count, 0);
	count = 97;
	EXPECT_EQ(noh_inspect_list(p.path, "gold", count_addresses, &count), NOH_OK);
	EXPECT_EQ(count, 100);
	remove_dir(p.base);
}

TEST_MAIN(
	TEST(version_1_opens_with_every_value, "P5 P6 P7"),
	TEST(version_1_is_backed_up_and_compacted, "P5"),
	TEST(check_tells_before_an_upgrade),
	TEST(addresses_are_listed_with_those_in_the_tail))
