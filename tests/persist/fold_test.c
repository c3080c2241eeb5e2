/* tests/persist/fold_test.c - what frames add up to in LMDB. */
#include "tests/persist/image_kit.h"

static void a_turn_is_there_after_its_fold(void)
{
	uint64_t frame, epoch;

	start();
	EXPECT(loads("cart:1", "none"));
	begin("cart:1", 5); state(1, "three pears"); timers(2, 500, 300); put("b", "2"); put("a", "1");
	in_frame(1);
	EXPECT(loads("cart:1", "none"));
	commit(1);
	EXPECT(loads("cart:1", "5 S1:three pears T[500 300] a=1 b=2"));
	start_again();
	EXPECT(loads("cart:1", "5 S1:three pears T[500 300] a=1 b=2"));
	db_stamp(kit.db, &frame, &epoch);
	EXPECT_EQ(frame, 1);
	EXPECT_EQ(epoch, 10);
	EXPECT(db_has(kit.db, "cart:1", 6));
	EXPECT(!db_has(kit.db, "cart:2", 6));
	EXPECT(verified());
	finish();
}

static void the_highest_sequence_wins_inside_a_fold(void)
{
	start();
	begin("a:1", 7); state(1, "seven"); put("k", "7"); in_frame(1);
	begin("a:1", 9); state(1, "nine"); put("k", "9"); in_frame(1);
	begin("a:1", 8); state(1, "eight"); put("k", "8"); put("l", "8"); in_frame(1);
	commit(1);
	EXPECT(loads("a:1", "9 S1:nine k=9 l=8"));
	EXPECT_EQ(stats().folded_records, 3);
	EXPECT(verified());
	finish();
}

static void older_after_newer_changes_nothing(void)
{
	start();
	begin("a:1", 10); state(1, "new"); timers(1, 50); put("k", "new"); in_frame(1);
	commit(1);
	begin("a:1", 9); state(2, "old"); timers(1, 40); put("k", "old"); put("x", "old"); del("k");
	in_frame(2);
	commit(2);
	EXPECT(loads("a:1", "10 S1:new T[50] k=new"));
	gone("a:1", 8); in_frame(3);
	commit(3);
	EXPECT(loads("a:1", "10 S1:new T[50] k=new"));
	EXPECT(verified());
	finish();
}

static void the_same_frames_twice_are_once(void)
{
	start();
	for (int again = 0; again < 3; again++) {
		begin("a:1", 1); state(1, "x"); put("k", "v"); idem("key", NOW, "answer");
		emitted("b:1", 1, 1, 0, 0, "hello"); dead("c:1", 5, "poison", "body"); in_frame(1);
		begin("b:1", 2); consumed(1, 1, 0); in_frame(2);
		begin("b:2", 2); state(1, "y"); in_frame(2);
		commit(2);
		EXPECT(loads("a:1", "1 S1:x k=v"));
		EXPECT(loads("b:1", "none"));
		EXPECT_EQ(stats().dead, 1);
		EXPECT_EQ(stats().idem, 1);
		EXPECT_EQ(stats().folded_records, 3);
		EXPECT_EQ(stats().folds, 1);
	}
	/* Frames below the stamp together with new ones: only the new ones count. */
	gone("a:1", 5); in_frame(2);
	begin("b:2", 6); state(1, "z"); in_frame(3);
	commit(3);
	EXPECT(loads("a:1", "1 S1:x k=v"));
	EXPECT(loads("b:2", "6 S1:z"));
	EXPECT(verified());
	finish();
}

static void parts_that_did_not_change_stay(void)
{
	start();
	begin("a:1", 1); state(1, "state"); timers(1, 100); put("k", "v"); in_frame(1);
	commit(1);
	begin("a:1", 2); put("l", "w"); in_frame(2);
	commit(2);
	EXPECT(loads("a:1", "2 S1:state T[100] k=v l=w"));
	begin("a:1", 3); timers(2, 200, 150); in_frame(3);
	commit(3);
	EXPECT(loads("a:1", "3 S1:state T[200 150] k=v l=w"));
	begin("a:1", 4); state(1, "other"); in_frame(4);
	begin("a:1", 5); consumed(9, 9, 9); in_frame(4);
	commit(4);
	EXPECT(loads("a:1", "5 S1:other T[200 150] k=v l=w"));
	begin("a:1", 6); timers(0); in_frame(5);
	commit(5);
	EXPECT(loads("a:1", "6 S1:other k=v l=w"));
	EXPECT(verified());
	finish();
}

/* What most folds are made of has a short way; what looks like it has not. */
static void a_new_state_alone_takes_the_place_of_the_old_one(void)
{
	start();
	begin("a:1", 10); state(1, "one"); put("k", "v"); in_frame(1);
	begin("b:1", 10); state(1, "one"); timers(1, 100); in_frame(1);
	commit(1);
	begin("a:1", 12); state(1, "two"); in_frame(2);
	begin("a:1", 11); state(1, "no!"); in_frame(2);
	begin("b:1", 12); state(1, "two"); in_frame(2);
	commit(2);
	EXPECT(loads("a:1", "12 S1:two k=v"));
	EXPECT(loads("b:1", "12 S1:two T[100]"));
	EXPECT(verified());
	begin("a:1", 9); state(1, "old"); in_frame(3);
	begin("b:1", 12); state(1, "no!"); in_frame(3);
	commit(3);
	EXPECT(loads("a:1", "12 S1:two k=v"));
	EXPECT(loads("b:1", "12 S1:two T[100]"));
	begin("a:1", 13); state(2, "six"); in_frame(4);            /* another version, as long */
	commit(4);
	EXPECT(loads("a:1", "13 S2:six k=v"));
	EXPECT(verified());                                        /* types are counted */
	begin("a:1", 14); state(2, "eleven"); in_frame(5);
	begin("a:1", 15); state(2, "twelve"); idem("key", NOW, "answer"); in_frame(5);
	commit(5);
	EXPECT(loads("a:1", "15 S2:twelve k=v"));
	EXPECT_EQ(stats().idem, 1);
	gone("a:1", 16); in_frame(6);
	begin("a:1", 17); state(2, "anew12"); in_frame(6);
	commit(6);
	EXPECT(loads("a:1", "17 S2:anew12"));
	EXPECT(verified());
	finish();
}

static void an_actor_of_entries_alone_is_stored(void)
{
	start();
	begin("kv:1", 3); put("k", "v"); in_frame(1);
	commit(1);
	EXPECT(loads("kv:1", "3 k=v"));
	begin("kv:1", 4); del("k"); in_frame(2);
	commit(2);
	EXPECT(loads("kv:1", "4"));
	EXPECT_EQ(stats().images, 1);
	EXPECT(verified());
	finish();
}

static void entries_come_and_go_across_folds(void)
{
	char key[16], value[32];

	start();
	begin("a:1", 1); state(1, "s");
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "k%02d", i);
		put(key, "first");
	}
	in_frame(1);
	begin("a:11", 1); put("k00", "of another"); in_frame(1);
	commit(1);
	EXPECT_EQ(stats().entries, 101);
	for (uint64_t fold = 2; fold < 6; fold++) {
		begin("a:1", fold);
		for (int i = 0; i < 100; i++) {
			snprintf(key, sizeof key, "k%02d", i);
			snprintf(value, sizeof value, "value of fold %d", (int)fold);
			if (i % 5 == (int)fold - 2)
				del(key);
			else if (i % 7 == 0)
				put(key, value);
		}
		in_frame(fold);
		commit(fold);
		EXPECT(verified());
	}
	begin("a:1", 9);
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "k%02d", i);
		if (i != 42)
			del(key);
	}
	put("k42", "left"); del("never there");
	in_frame(9);
	commit(9);
	EXPECT(loads("a:1", "9 S1:s k42=left"));
	EXPECT(loads("a:11", "1 k00=of another"));
	EXPECT(verified());
	finish();
}

static void gone_takes_state_timers_and_entries(void)
{
	start();
	begin("a:1", 1); state(3, "s"); timers(1, 70); put("k", "v"); put("l", "w"); in_frame(1);
	begin("a:2", 1); state(3, "s"); put("k", "v"); in_frame(1);
	commit(1);
	gone("a:1", 2); in_frame(2);
	commit(2);
	EXPECT(loads("a:1", "none"));
	EXPECT(loads("a:2", "1 S3:s k=v"));
	EXPECT_EQ(stats().images, 1);
	EXPECT_EQ(stats().entries, 1);
	EXPECT_EQ(stats().timers, 0);
	EXPECT(verified());
	/* Erased and born again inside one fold, with what the erasing record itself brings. */
	begin("a:2", 5); put("before", "x"); state(3, "before"); in_frame(3);
	gone("a:2", 6); put("with", "it"); in_frame(3);
	begin("a:2", 7); state(4, "after"); in_frame(3);
	commit(3);
	EXPECT(loads("a:2", "7 S4:after with=it"));
	/* Born and erased inside one fold. */
	begin("a:3", 5); state(1, "x"); timers(1, 9); put("k", "v"); in_frame(4);
	gone("a:3", 6); in_frame(4);
	commit(4);
	EXPECT(loads("a:3", "none"));
	EXPECT(verified());
	finish();
}

static uint64_t images_of(const char *type, uint32_t version);
struct type_count { const char *type; uint32_t version; uint64_t images; };

static int one_type(void *arg, const char *type, uint32_t version, uint64_t schema, uint64_t images)
{
	struct type_count *c = arg;

	EXPECT_EQ(schema, version ? 77 : 0);
	if (strcmp(c->type, type) == 0 && c->version == version)
		c->images += images;
	return 0;
}

static uint64_t images_of(const char *type, uint32_t version)
{
	struct type_count c = { type, version, 0 };

	EXPECT_EQ(db_types(kit.db, one_type, &c), NOH_OK);
	return c.images;
}

static void types_are_counted(void)
{
	start();
	begin("cart:1", 1); state(1, "x"); in_frame(1);
	begin("cart:2", 1); state(1, "x"); in_frame(1);
	begin("cart:3", 1); state(2, "x"); in_frame(1);
	begin("user:1", 1); put("k", "v"); in_frame(1);
	commit(1);
	EXPECT_EQ(images_of("cart", 1), 2);
	EXPECT_EQ(images_of("cart", 2), 1);
	EXPECT_EQ(images_of("user", 0), 1);
	begin("cart:1", 2); state(2, "migrated"); in_frame(2);
	gone("cart:3", 2); in_frame(2);
	begin("user:1", 2); state(5, "now with state"); in_frame(2);
	commit(2);
	EXPECT_EQ(images_of("cart", 1), 1);
	EXPECT_EQ(images_of("cart", 2), 1);
	EXPECT_EQ(images_of("user", 0), 0);
	EXPECT_EQ(images_of("user", 5), 1);
	gone("cart:1", 3); in_frame(3);
	gone("cart:2", 3); in_frame(3);
	gone("cart:2", 4); in_frame(3);
	commit(3);
	EXPECT_EQ(images_of("cart", 1) + images_of("cart", 2), 0);
	EXPECT(verified());
	finish();
}

struct due_list { char text[200]; };

static int one_timer(void *arg, uint64_t due_ms, const char *address, size_t len)
{
	struct due_list *l = arg;

	say(l->text, sizeof l->text, "%d %.*s,", (int)due_ms, (int)len, address);
	return 0;
}

static bool due_between(uint64_t from, uint64_t to, const char *text)
{
	struct due_list l = { "" };

	EXPECT_EQ(db_timers(kit.db, from, to, one_timer, &l), NOH_OK);
	if (strcmp(l.text, text) != 0)
		fprintf(stderr, "due: %s\n", l.text);
	return strcmp(l.text, text) == 0;
}

static void the_timers_index_follows_the_images(void)
{
	start();
	begin("a:1", 1); timers(3, 500, 300, 400); in_frame(1);
	begin("a:2", 1); timers(1, 300); in_frame(1);
	begin("a:3", 1); state(1, "no timers"); in_frame(1);
	commit(1);
	EXPECT(due_between(0, UINT64_MAX, "300 a:1,300 a:2,"));
	begin("a:1", 2); timers(2, 500, 400); in_frame(2);
	begin("a:3", 2); timers(1, 100); in_frame(2);
	begin("a:3", 3); timers(1, 350); in_frame(2);
	commit(2);
	EXPECT(due_between(0, UINT64_MAX, "300 a:2,350 a:3,400 a:1,"));
	EXPECT(due_between(301, 400, "350 a:3,400 a:1,"));
	EXPECT(due_between(301, 399, "350 a:3,"));
	EXPECT(due_between(300, 300, "300 a:2,"));
	EXPECT(due_between(401, UINT64_MAX, ""));
	begin("a:2", 4); state(1, "still due"); in_frame(3);
	begin("a:3", 4); timers(0); in_frame(3);
	gone("a:1", 4); in_frame(3);
	commit(3);
	EXPECT(due_between(0, UINT64_MAX, "300 a:2,"));
	EXPECT(verified());
	finish();
}

static bool unwell_are(const char *text)
{
	struct due_list l = { "" };

	EXPECT_EQ(db_unwell(kit.db, one_timer, &l), NOH_OK);
	if (strcmp(l.text, text) != 0)
		fprintf(stderr, "unwell: %s\n", l.text);
	return strcmp(l.text, text) == 0;
}

static void who_is_given_up_has_a_row_of_its_own(void)
{
	start();
	begin("a:1", 1); state(1, "s"); vitals(NOH_QUARANTINED, "p:1"); in_frame(1);
	begin("a:2", 1); timers(1, 300); vitals(NOH_DOWN, ""); in_frame(1);
	begin("a:3", 1); vitals(NOH_STOPPED, ""); in_frame(1);
	commit(1);
	EXPECT(loads("a:1", "1 S1:s V4:p:1"));
	EXPECT(loads("a:2", "1 T[300] V1:"));
	EXPECT(loads("a:3", "1 V3:"));
	EXPECT(unwell_are("-1 a:1,-1 a:3,"));
	EXPECT(due_between(0, NOW, "300 a:2,"));
	EXPECT(verified());
	begin("a:1", 2); state(1, "t"); in_frame(2);     /* what is not said stays */
	begin("a:2", 2); vitals(NOH_AWAITING, ""); in_frame(2);
	begin("a:3", 2); vitals(NOH_HEALTHY, ""); in_frame(2);
	commit(2);
	EXPECT(loads("a:1", "2 S1:t V4:p:1"));
	EXPECT(unwell_are("-1 a:1,-1 a:2,"));
	gone("a:1", 3); in_frame(3);
	gone("a:2", 3); state(1, "anew"); in_frame(3);
	commit(3);
	EXPECT(loads("a:2", "3 S1:anew"));
	EXPECT(unwell_are(""));
	EXPECT(verified());
	finish();
}

static void messages_wait_until_consumed(void)
{
	start();
	begin("s:1", 1); emitted("r:1", 1, 1, 0, 3, "one"); emitted("r:1", 1, 1, 1, 3, "two"); in_frame(1);
	commit(1);
	EXPECT(loads("r:1", "0 <1.1.0:one <1.1.1:two"));
	EXPECT(loads_before("r:1", 3, "none"));
	EXPECT(db_has(kit.db, "r:1", 3));
	begin("r:1", 5); state(1, "s"); consumed(1, 1, 0); in_frame(2);
	commit(2);
	EXPECT(loads("r:1", "5 S1:s <1.1.1:two"));
	EXPECT(loads_before("r:1", 3, "5 S1:s"));
	begin("r:1", 6); consumed(1, 1, 1); consumed(1, 1, 7); in_frame(3);
	commit(3);
	EXPECT(loads("r:1", "6 S1:s"));
	EXPECT_EQ(stats().pending, 0);
	EXPECT(verified());
	finish();
}

static void a_pair_inside_one_fold_is_never_written(void)
{
	start();
	begin("s:1", 1); emitted("r:1", 1, 1, 0, 0, "pair"); emitted("r:1", 1, 1, 1, 0, "left"); in_frame(1);
	begin("r:1", 2); consumed(1, 1, 0); in_frame(1);
	begin("r:1", 3); consumed(2, 2, 0); in_frame(2);
	begin("s:2", 2); emitted("r:1", 2, 2, 0, 0, "pair"); in_frame(2);
	commit(2);
	EXPECT_EQ(stats().pending, 1);
	EXPECT(loads("r:1", "0 <1.1.1:left"));
	EXPECT_EQ(stats().images, 0);
	finish();
}

/* Numbers that would not sort if they were written as they lie in memory, and a receiver that is
 * another one's prefix. */
static void each_senders_messages_keep_their_order(void)
{
	static const uint64_t seqs[] = { 1, 2, 255, 256, 257, 65535, 65536, 1 << 20 };

	start();
	for (int i = 7; i >= 0; i--) {
		begin("s:1", seqs[i]);
		emitted("r:1", 1, seqs[i], 0, 0, "x"); emitted("r:1", 1, seqs[i], 256, 0, "z");
		emitted("r:1", 1, seqs[i], 1, 0, "y"); emitted("r:10", 1, seqs[i], 0, 0, "other");
		in_frame(1);
	}
	commit(1);
	EXPECT(loads("r:1", "0 <1.1.0:x <1.1.1:y <1.1.256:z <1.2.0:x <1.2.1:y <1.2.256:z "
		     "<1.255.0:x <1.255.1:y <1.255.256:z <1.256.0:x <1.256.1:y <1.256.256:z "
		     "<1.257.0:x <1.257.1:y <1.257.256:z <1.65535.0:x <1.65535.1:y <1.65535.256:z "
		     "<1.65536.0:x <1.65536.1:y <1.65536.256:z "
		     "<1.1048576.0:x <1.1048576.1:y <1.1048576.256:z"));
	finish();
}

static bool idem_is(const char *address, const char *key, const char *answer)
{
	void *part;
	size_t len;
	int rc = db_idem(kit.db, address, strlen(address), key, strlen(key), &part, &len);

	if (rc != NOH_OK)
		return rc == NOH_END && !answer;
	bool same = answer && len == sizeof(struct part_idem) + strlen(answer) &&
		    memcmp((char *)part + sizeof(struct part_idem), answer, strlen(answer)) == 0;
	mem_free(part, len);
	return same;
}

static void keys_are_kept_for_their_time(void)
{
	start();
	db_close(kit.db);
	kit.options.idem_ms = 1000;
	open_db();
	begin("a:1", 1); idem("one", 5000, "first"); idem("two", 5500, "second"); in_frame(1);
	begin("a:2", 1); idem("one", 5000, "of another"); in_frame(1);
	EXPECT_EQ(try_commit_at(1, 5600), NOH_OK);
	EXPECT(idem_is("a:1", "one", "first"));
	EXPECT(idem_is("a:2", "one", "of another"));
	EXPECT(idem_is("a:3", "one", NULL));
	EXPECT(idem_is("a:1", "three", NULL));
	EXPECT(verified());
	begin("a:1", 2); idem("one", 6500, "again"); in_frame(2);        /* its old age goes */
	EXPECT_EQ(try_commit_at(2, 6000), NOH_OK);
	EXPECT(idem_is("a:1", "one", "again"));
	begin("a:1", 1); idem("one", 9999, "stale"); in_frame(3);
	EXPECT_EQ(try_commit_at(3, 6001), NOH_OK);
	EXPECT(idem_is("a:1", "one", "again"));
	EXPECT(idem_is("a:2", "one", NULL));
	EXPECT(idem_is("a:1", "two", "second"));
	EXPECT_EQ(try_commit_at(4, 6501), NOH_OK);
	EXPECT(idem_is("a:1", "two", NULL));
	EXPECT(idem_is("a:1", "one", "again"));
	EXPECT(verified());
	EXPECT_EQ(try_commit_at(5, 99999), NOH_OK);
	EXPECT_EQ(stats().idem, 0);
	EXPECT_EQ(stats().idem_bytes, 0);
	EXPECT_EQ(stats().idem_dropped, 0);
	EXPECT(verified());
	finish();
}

static void too_many_keys_go_oldest_first_and_are_counted(void)
{
	char key[16];

	start();
	db_close(kit.db);
	kit.options.idem_bytes = 5000;
	open_db();
	for (uint64_t i = 0; i < 100; i++) {
		begin("a:1", i + 1);
		snprintf(key, sizeof key, "key %d", (int)i);
		idem(key, NOW + (i * 37) % 100, "an answer of some length"); in_frame(i + 1);
		if (i % 10 == 9)
			EXPECT_EQ(try_commit_at(i + 1, NOW), NOH_OK);
	}
	struct db_stats s = stats();

	EXPECT(s.idem_bytes <= 5000 && s.idem_bytes > 4800);
	EXPECT_EQ(s.idem + s.idem_dropped, 100);
	for (uint64_t i = 90; i < 100; i++) {            /* of the last fold, the youngest stayed */
		snprintf(key, sizeof key, "key %d", (int)i);
		if ((i * 37) % 100 > 60)
			EXPECT(!idem_is("a:1", key, NULL));
	}
	EXPECT(verified());
	finish();
}

static int one_dead(void *arg, uint64_t at_ms, uint64_t number, const char *receiver, size_t len,
		    const struct part_dead *d, const void *rest, size_t rest_len)
{
	struct due_list *l = arg;
	const char *text = rest;
	size_t pad = record_pad(d->reason_len);

	EXPECT(number > 0);
	EXPECT_EQ(d->at_ms, at_ms);
	say(l->text, sizeof l->text, "%d %.*s %.*s %.*s,", (int)at_ms, (int)len, receiver,
	    (int)d->reason_len, text, (int)(rest_len - pad), text + pad);
	return 0;
}

static void dead_letters_are_listed_oldest_first(void)
{
	struct due_list l = { "" };

	start();
	begin("s:1", 1); dead("r:2", 9, "expired", "late"); in_frame(1);
	commit(1);
	begin("r:1", 1); dead("r:1", 7, "poison", "bad"); dead("r:1", 7, "poison", "worse"); in_frame(2);
	commit(2);
	EXPECT_EQ(db_dead(kit.db, 0, 0, one_dead, &l), NOH_OK);
	EXPECT(strcmp(l.text, "7 r:1 poison bad,7 r:1 poison worse,9 r:2 expired late,") == 0);
	EXPECT(verified());
	finish();
}

/* A model beside it: random records, folded in random batches, must come to the same. */
enum { ACTORS = 12, KEYS = 4 };

static struct model {
	bool     there;
	uint64_t seq;
	int      state, due, entries[KEYS];      /* -1: none */
} model[ACTORS];

static void random_turn(uint64_t dice, uint64_t seq)
{
	char address[16], text[16];
	struct model *m = &model[dice % ACTORS];

	snprintf(address, sizeof address, "t%d:%d", (int)(dice % ACTORS % 3), (int)(dice % ACTORS));
	if ((dice >> 8) % 8 == 0) {
		gone(address, seq);
		*m = (struct model){ false, 0, -1, -1, { -1, -1, -1, -1 } };
	} else {
		begin(address, seq);
	}
	bool any = false;

	if (dice >> 16 & 1) {
		snprintf(text, sizeof text, "%d", (int)(dice >> 20 & 255));
		state(dice >> 40 & 1, text);
		m->state = (int)(dice >> 20 & 255);
		any = true;
	}
	if (dice >> 17 & 1) {
		int due = (int)(dice >> 30 & 63);
		if (due < 20)
			timers(0);
		else
			timers(2, due + 5, due);
		m->due = due < 20 ? -1 : due;
		any |= due >= 20;
	}
	for (int k = 0; k < KEYS; k++) {
		char key[2] = { (char)('a' + k), 0 };
		unsigned what = (unsigned)(dice >> (44 + 4 * k)) & 7;
		if (what == 1 || what == 2) {
			snprintf(text, sizeof text, "%d", (int)(seq & 1023));
			put(key, text);
			m->entries[k] = (int)(seq & 1023);
			any = true;
		} else if (what == 3) {
			del(key);
			m->entries[k] = -1;
		}
	}
	m->there |= any;
	m->seq = seq;
}

static void compare_model(void)
{
	for (int i = 0; i < ACTORS; i++) {
		char address[16], text[200] = "none";
		struct model *m = &model[i];

		snprintf(address, sizeof address, "t%d:%d", i % 3, i);
		if (m->there) {
			const char *found = load_before(address, UINT64_MAX), *colon;

			snprintf(text, sizeof text, "%d", (int)m->seq);
			if (m->state >= 0) {
				colon = strstr(found, " S");
				say(text, sizeof text, " S%c:%d", colon ? colon[2] : '?', m->state);
			}
			if (m->due >= 0)
				say(text, sizeof text, " T[%d %d]", m->due + 5, m->due);
			for (int k = 0; k < KEYS; k++)
				if (m->entries[k] >= 0)
					say(text, sizeof text, " %c=%d", 'a' + k, m->entries[k]);
			/* Nothing is left of it but that it was: a row, or none if that was within one fold. */
			if (!strchr(text, ' ') && strcmp(found, "none") == 0)
				continue;
		}
		EXPECT(loads(address, text));
	}
}

static void random_folds_match_a_model(void)
{
	uint64_t rng = test_seed, seq = 0;

	start();
	for (int i = 0; i < ACTORS; i++)
		model[i] = (struct model){ false, 0, -1, -1, { -1, -1, -1, -1 } };
	for (uint64_t frame = 1; frame <= 60; frame++) {
		for (uint64_t n = test_random(&rng) % 40; n > 0; n--) {
			random_turn(test_random(&rng), ++seq);
			in_frame(frame);
		}
		commit(frame);
		if (frame % 10 == 0) {
			compare_model();
			EXPECT(verified());
		}
	}
	finish();
}

static void a_failed_allocation_changes_nothing(void)
{
	start();
	begin("a:1", 1); state(1, "before"); timers(1, 5); put("k", "before"); in_frame(1);
	commit(1);
	uint64_t frame = 1, nth = 1, failed = 0;

	for (bool done = false; !done; nth++) {
		mem_fail_at(nth, 0);
		int rc = NOH_OK;

		frame++;
		for (uint64_t i = 0; rc == NOH_OK && i < 300; i++) {
			begin(i % 2 ? "a:1" : "b:1", frame * 1000 + i);
			state((uint32_t)i % 40, "after"); timers(1, 7); put("k", "after");
			emitted("r:1", 5, frame * 1000 + i, 0, 0, "m"); idem("key", 5, "answer");
			rc = try_frame(frame);
		}
		if (rc == NOH_OK)
			rc = try_commit_at(frame, NOW);
		else
			fold_abort(kit.fold);
		kit.fold = NULL;
		mem_fail_at(0, 0);
		done = rc == NOH_OK;
		failed += !done;
		if (!done) {
			EXPECT_EQ(rc, NOH_ENOMEM);
			EXPECT(loads("a:1", "1 S1:before T[5] k=before"));
			EXPECT(loads("b:1", "none"));
			EXPECT_EQ(stats().folds, 1);
		}
	}
	EXPECT(failed > 5);
	EXPECT_EQ(stats().pending, 300);
	EXPECT(verified());
	finish();
}

static void records_that_make_no_sense_are_refused(void)
{
	start();
	begin("a:1", 1); state(1, "x");
	kit.at[-8 - 16 - 8] = 99;                        /* some kind, some length */
	memset(kit.record + record_parts_at(3), 0xee, 4);
	EXPECT_EQ(try_frame(1), NOH_ECORRUPT);
	fold_abort(kit.fold);
	kit.fold = NULL;
	finish();
}

TEST_MAIN(
	TEST(a_turn_is_there_after_its_fold, "LC-02 US-10"),
	TEST(the_highest_sequence_wins_inside_a_fold),
	TEST(older_after_newer_changes_nothing),
	TEST(the_same_frames_twice_are_once),
	TEST(parts_that_did_not_change_stay),
	TEST(a_new_state_alone_takes_the_place_of_the_old_one),
	TEST(an_actor_of_entries_alone_is_stored),
	TEST(entries_come_and_go_across_folds),
	TEST(gone_takes_state_timers_and_entries),
	TEST(types_are_counted, "SC-25"),
	TEST(the_timers_index_follows_the_images, "RT-06 RT-07"),
	TEST(who_is_given_up_has_a_row_of_its_own, "SUP-17"),
	TEST(messages_wait_until_consumed, "MB-12 MB-15"),
	TEST(a_pair_inside_one_fold_is_never_written),
	TEST(each_senders_messages_keep_their_order),
	TEST(keys_are_kept_for_their_time, "RT-30"),
	TEST(too_many_keys_go_oldest_first_and_are_counted, "RT-30"),
	TEST(dead_letters_are_listed_oldest_first, "EN-14"),
	TEST(random_folds_match_a_model),
	TEST(a_failed_allocation_changes_nothing),
	TEST(records_that_make_no_sense_are_refused))
