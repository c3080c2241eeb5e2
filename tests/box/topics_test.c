/* tests/box/topics_test.c - channels, as actors know them: who hears what, when, and what a turn that fails has said. */
#include "tests/box/kit.h"

#include "box/box.h"
#include "tests/box/durable_kit.h"

/* ── ears: each writes down what it hears ── */

enum { TICK, OTHER, MAIL, HOLD, LISTEN, LISTEN_OTHER, STOP_LISTENING, SAY, SAY_AND_FAIL, SAY_TO_EAR, SAY_MANY, GET, KINDS };
static const noh_kind kinds[KINDS] = {
	{ .name = "tick" }, { .name = "other" }, { .name = "mail", .flags = NOH_KIND_PERSONAL }, { .name = "hold" },
	{ .name = "listen" }, { .name = "listen_other" }, { .name = "stop_listening" }, { .name = "say" },
	{ .name = "say_and_fail" }, { .name = "say_to_ear" }, { .name = "say_many" },
	{ .name = "get", .flags = NOH_KIND_READ },
};

static struct { pthread_mutex_t lock; char text[1 << 16]; size_t len; } notes = { .lock = PTHREAD_MUTEX_INITIALIZER };
static atomic_u64 heard;
static atomic_u32 activate_fails, activate_says;

static void forget_notes(void)
{
	pthread_mutex_lock(&notes.lock);
	notes.len = 0;
	notes.text[0] = 0;
	pthread_mutex_unlock(&notes.lock);
	store_seq_cst(&heard, 0);
}

static void note(noh_turn *t, const noh_msg *m)
{
	const char *channel = noh_channel(t, m);

	pthread_mutex_lock(&notes.lock);
	if (notes.len + m->len + 300 < sizeof notes.text)
		notes.len += (size_t)sprintf(notes.text + notes.len, "%s %s %s %.*s\n", noh_address(t),
					     kinds[m->kind].name, channel ? channel : "-", (int)m->len,
					     (const char *)m->body);
	pthread_mutex_unlock(&notes.lock);
	add_seq_cst(&heard, 1);
}

static bool noted(const char *text)
{
	bool same;

	pthread_mutex_lock(&notes.lock);
	same = strcmp(notes.text, text) == 0;
	if (!same)
		printf("  noted: %s", notes.text);
	pthread_mutex_unlock(&notes.lock);
	return same;
}

/* "channel text" */
static int say(noh_turn *t, const noh_msg *m)
{
	char channel[64];
	const char *space = memchr(m->body, ' ', m->len);
	size_t n = (size_t)(space - (const char *)m->body);

	memcpy(channel, m->body, n);
	channel[n] = 0;
	return noh_publish(t, channel, space + 1, m->len - n - 1);
}

static int say_many(noh_turn *t, const noh_msg *m)
{
	char text[16];
	uint64_t from;
	int rc = NOH_OK;

	memcpy(&from, m->body, sizeof from);
	for (uint64_t i = from; rc == NOH_OK && i < from + 10; i++)
		rc = noh_publish(t, "ticks", text, (size_t)sprintf(text, "%06u", (unsigned)i));
	return rc;
}

static int on_message(noh_turn *t, const noh_msg *m)
{
	switch (m->kind) {
	case HOLD:
		gate_pass();
		return NOH_OK;
	case LISTEN:
		return noh_subscribe(t, "extra", TICK);
	case LISTEN_OTHER:
		return noh_subscribe(t, "extra", OTHER);
	case STOP_LISTENING:
		return noh_unsubscribe(t, "extra");
	case SAY:
		return say(t, m);
	case SAY_AND_FAIL:
		EXPECT_EQ(noh_publish(t, "ticks", "never", 5), NOH_OK);
		EXPECT_EQ(noh_publish(t, "actor.personal.ear.1", "never", 5), NOH_OK);
		EXPECT_EQ(noh_subscribe(t, "never", TICK), NOH_OK);
		EXPECT_EQ(noh_unsubscribe(t, "ticks"), NOH_OK);
		return noh_fail(t, "after all");
	case SAY_MANY:
		return say_many(t, m);
	case GET:
		EXPECT_EQ(noh_publish(t, "ticks", "x", 1), NOH_EREADONLY);
		EXPECT_EQ(noh_subscribe(t, "ticks", TICK), NOH_EREADONLY);
		EXPECT_EQ(noh_unsubscribe(t, "ticks"), NOH_EREADONLY);
		return NOH_OK;
	default:
		note(t, m);
		return NOH_OK;
	}
}

static int on_activate(noh_turn *t)
{
	if (load_seq_cst(&activate_fails))
		return noh_fail(t, "not today");
	return load_seq_cst(&activate_says) ? noh_publish(t, "ticks", "born", 4) : NOH_OK;
}

static const noh_topic ticks[] = { { "ticks", TICK } };
#define EAR .on_message = on_message, .kinds = kinds, .kind_count = KINDS
static const noh_type ear = { .name = "ear", EAR, .on_activate = on_activate, .topics = ticks, .topic_count = 1,
			      .mailbox_capacity = 100000 };
static const noh_type mouth = { .name = "mouth", EAR };
static const noh_type newest = { .name = "newest", EAR, .topics = ticks, .topic_count = 1, .mailbox_capacity = 4,
				 .full_mode = NOH_DROP_NEWEST };
static const noh_type oldest = { .name = "oldest", EAR, .topics = ticks, .topic_count = 1, .mailbox_capacity = 4 };
static const noh_type block = { .name = "block", EAR, .topics = ticks, .topic_count = 1, .mailbox_capacity = 4,
				.full_mode = NOH_BLOCK };

static noh_box *begin(unsigned workers)
{
	forget_notes();
	store_seq_cst(&activate_fails, 0);
	store_seq_cst(&activate_says, 0);
	return BOX(workers, &ear, &mouth, &newest, &oldest, &block);
}

static int publish(noh_box *box, const char *channel, const char *text)
{
	return noh_publish_to(box, channel, text, strlen(text));
}

static int send(noh_box *box, const char *address, uint32_t kind, const char *text)
{
	return noh_call(box, address, kind, text, strlen(text), SOON, NULL, NULL);
}

/* ── who hears ── */

static void an_active_actor_hears_what_its_type_listens_to(void)
{
	noh_box *box = begin(2);

	EXPECT_EQ(publish(box, "ticks", "nobody"), 0);
	EXPECT_EQ(noh_activate(box, "ear:1", SOON), NOH_OK);
	EXPECT_EQ(publish(box, "ticks", "one"), 1);
	EXPECT(reaches(&heard, 1));
	EXPECT(noted("ear:1 tick ticks one\n"));
	EXPECT_EQ(noh_activate(box, "ear:2", SOON), NOH_OK);
	EXPECT_EQ(publish(box, "ticks", ""), 2);
	EXPECT_EQ(publish(box, "tick", "x"), 0);
	EXPECT(reaches(&heard, 3));
	EXPECT(settles(box, "ear"));
	end(box);
}

/* What it says in on_activate it hears itself: it was subscribed before. */
static void it_listens_before_on_activate_runs(void)
{
	noh_box *box = begin(1);

	store_seq_cst(&activate_says, 1);
	EXPECT_EQ(noh_activate(box, "ear:1", SOON), NOH_OK);
	EXPECT(reaches(&heard, 1));
	EXPECT(noted("ear:1 tick ticks born\n"));
	end(box);
}

static void an_actor_in_storage_is_not_woken(void)
{
	noh_box *box = begin(2);

	EXPECT_EQ(noh_activate(box, "ear:1", SOON), NOH_OK);
	EXPECT_EQ(publish(box, "ticks", "one"), 1);
	EXPECT(reaches(&heard, 1));
	EXPECT_EQ(noh_deactivate(box, "ear:1", false, SOON), NOH_OK);
	EXPECT_EQ(publish(box, "ticks", "two"), 0);
	EXPECT_EQ(topics_count(&box->sched.topics, false), 0);
	EXPECT_EQ(status_of(box, "ear:1").life, NOH_NOT_ACTIVE);
	EXPECT_EQ(noh_activate(box, "ear:1", SOON), NOH_OK);      /* and comes back to what is said then */
	EXPECT_EQ(publish(box, "ticks", "three"), 1);
	EXPECT(reaches(&heard, 2));
	EXPECT(noted("ear:1 tick ticks one\near:1 tick ticks three\n"));
	EXPECT_EQ(stats_of(box, "ear").activations, 2);
	end(box);
}

static void who_could_not_be_activated_does_not_listen(void)
{
	noh_box *box = begin(1);

	store_seq_cst(&activate_fails, 1);
	EXPECT_EQ(noh_activate(box, "ear:1", SOON), NOH_EFAILED);
	EXPECT(goes_to_storage(box, "ear:1"));
	EXPECT_EQ(publish(box, "ticks", "x"), 0);
	end(box);
}

static void it_subscribes_and_leaves_as_it_likes(void)
{
	noh_box *box = begin(2);

	EXPECT_EQ(call(box, "mouth:1", LISTEN), NOH_OK);
	EXPECT_EQ(call(box, "mouth:1", LISTEN), NOH_OK);
	EXPECT_EQ(publish(box, "extra", "a"), 1);                 /* once, however often it asked */
	EXPECT_EQ(call(box, "mouth:1", LISTEN_OTHER), NOH_OK);
	EXPECT_EQ(publish(box, "extra", "b"), 1);
	EXPECT_EQ(call(box, "mouth:1", STOP_LISTENING), NOH_OK);
	EXPECT_EQ(call(box, "mouth:1", STOP_LISTENING), NOH_OK);
	EXPECT_EQ(publish(box, "extra", "c"), 0);
	EXPECT_EQ(call(box, "mouth:1", LISTEN), NOH_OK);
	EXPECT_EQ(noh_deactivate(box, "mouth:1", false, SOON), NOH_OK);
	EXPECT_EQ(publish(box, "extra", "d"), 0);
	EXPECT_EQ(noh_activate(box, "mouth:1", SOON), NOH_OK);
	EXPECT_EQ(publish(box, "extra", "e"), 0);                 /* that was in another life */
	EXPECT(noted("mouth:1 tick extra a\nmouth:1 other extra b\n"));
	end(box);
}

/* ── turns ── */

static void a_turn_that_fails_has_said_nothing(void)
{
	noh_box *box = begin(2);

	EXPECT_EQ(noh_activate(box, "ear:2", SOON), NOH_OK);
	EXPECT_EQ(call(box, "ear:2", SAY_AND_FAIL), NOH_EFAILED);
	EXPECT_EQ(call(box, "mouth:1", SAY_AND_FAIL), NOH_EFAILED);
	EXPECT_EQ(status_of(box, "ear:1").life, NOH_NOT_ACTIVE);
	EXPECT_EQ(publish(box, "never", "x"), 0);
	EXPECT_EQ(publish(box, "ticks", "still"), 1);
	EXPECT(reaches(&heard, 1));
	EXPECT(settles(box, "ear"));
	EXPECT(noted("ear:2 tick ticks still\n"));
	end(box);
}

static void what_a_turn_says_is_heard_in_order(void)
{
	FOR_WORKERS(n) {
		noh_box *box = begin(n);
		char ears[4][16];
		size_t at = 0;

		for (int i = 0; i < 4; i++) {
			sprintf(ears[i], "ear:%d", i);
			EXPECT_EQ(noh_activate(box, ears[i], SOON), NOH_OK);
		}
		for (uint64_t k = 0; k < 30; k++)
			EXPECT_EQ(put(box, "mouth:1", SAY_MANY, k * 10), NOH_OK);
		EXPECT(reaches(&heard, 4 * 300));
		for (int i = 0; i < 4; i++) {
			char line[128];

			at = 0;
			for (unsigned k = 0; k < 300; k++) {
				const char *found;

				sprintf(line, "%s tick ticks %06u\n", ears[i], k);
				found = strstr(notes.text + at, line);
				if (!EXPECT(found != NULL))
					break;
				at = (size_t)(found - notes.text);
			}
		}
		end(box);
	}
}

/* ── the personal channel ── */

static void the_personal_channel_wakes_its_actor(void)
{
	noh_box *box = begin(2);

	EXPECT_EQ(publish(box, "actor.personal.ear.1", "from a thread"), 1);
	EXPECT(reaches(&heard, 1));
	EXPECT_EQ(status_of(box, "ear:1").life, NOH_ACTIVE);
	EXPECT_EQ(send(box, "mouth:1", SAY, "actor.personal.ear.2 from a turn"), NOH_OK);
	EXPECT(reaches(&heard, 2));
	EXPECT_EQ(publish(box, "actor.personal.ear.a.b:c", "dots"), 1);
	EXPECT(reaches(&heard, 3));
	EXPECT(noted("ear:1 mail - from a thread\near:2 mail - from a turn\near:a.b:c mail - dots\n"));
	EXPECT_EQ(publish(box, "actor.personal.nobody.1", "x"), 0);
	EXPECT_EQ(publish(box, "actor.personal.ear.", "x"), 0);
	EXPECT_EQ(publish(box, "actor.personal.ear", "x"), 0);
	end(box);
}

static void of_two_types_the_longer_name_is_meant(void)
{
	static const noh_type other = { .name = "ear.inner", EAR };
	noh_box *box;

	forget_notes();
	box = BOX(1, &ear, &other);
	EXPECT_EQ(publish(box, "actor.personal.ear.inner.1", "x"), 1);
	EXPECT(reaches(&heard, 1));
	EXPECT(noted("ear.inner:1 mail - x\n"));
	end(box);
}

/* ── full mailboxes ── */

static void a_full_mailbox_drops_by_its_mode(void)
{
	static const char *const who[] = { "newest:1", "oldest:1", "block:1" };
	noh_box *box = begin(4);
	int got[3] = { 0, 0, 0 };

	for (int i = 0; i < 3; i++) {
		gate_shut();
		EXPECT_EQ(noh_send(box, who[i], HOLD, NULL, 0), NOH_OK);
		EXPECT(gate_holds(1));
		for (int k = 0; k < 10; k++)
			got[i] += publish(box, "ticks", "x");
		gate_open();
		EXPECT_EQ(noh_deactivate(box, who[i], false, SOON), NOH_OK);
	}
	EXPECT_EQ(got[0], 4);
	EXPECT_EQ(got[1], 10);
	EXPECT_EQ(got[2], 4);
	EXPECT_EQ(load_seq_cst(&heard), 12);
	EXPECT_EQ(stats_of(box, "newest").refused, 6);
	EXPECT_EQ(stats_of(box, "oldest").dropped_oldest, 6);
	EXPECT_EQ(stats_of(box, "block").refused, 6);
	end(box);
}

/* ── bad arguments ── */

static void what_makes_no_sense_is_refused(void)
{
	static const noh_topic twice[] = { { "a", TICK }, { "a", OTHER } }, no_kind[] = { { "a", KINDS } };
	static const noh_topic unnamed[] = { { "", TICK } };
	static const noh_kind both[] = { { "a", NOH_KIND_PERSONAL, NULL }, { "b", NOH_KIND_PERSONAL, NULL } };
	noh_type bad = mouth;
	noh_box *box = NULL;
	char name[NOH_CHANNEL_MAX + 2];

	EXPECT_EQ(noh_open(&box, NULL), NOH_OK);
	bad.topic_count = 2;
	EXPECT_EQ(noh_register(box, &bad), NOH_EINVAL);
	bad.topics = twice;
	EXPECT_EQ(noh_register(box, &bad), NOH_EINVAL);
	bad.topics = no_kind, bad.topic_count = 1;
	EXPECT_EQ(noh_register(box, &bad), NOH_EINVAL);
	bad.topics = unnamed;
	EXPECT_EQ(noh_register(box, &bad), NOH_EINVAL);
	bad = mouth, bad.kinds = both, bad.kind_count = 2;
	EXPECT_EQ(noh_register(box, &bad), NOH_EINVAL);
	EXPECT_EQ(noh_publish_to(box, "a", NULL, 0), NOH_ESTOPPED);
	noh_close(box);
	box = begin(1);
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = 0;
	EXPECT_EQ(publish(box, "", "x"), NOH_EINVAL);
	EXPECT_EQ(publish(box, name, "x"), NOH_EINVAL);
	EXPECT_EQ(publish(box, name + 1, "x"), 0);
	EXPECT_EQ(noh_publish_to(box, "a", name, 1u << 21), NOH_ETOOBIG);
	EXPECT_EQ(call(box, "mouth:1", GET), NOH_OK);
	end(box);
}

/* ── on disk ── */

static struct { char dir[256]; noh_box *box; } k;
static int answered;

static void on_answer(void *user, int status, const void *answer, size_t len)
{
	(void)user;
	(void)answer;
	(void)len;
	answered += status == NOH_OK;
}

enum { D_SET_AND_SAY, D_HEAR, D_GET, D_ASK, D_WAIT, D_ANSWER, D_MAIL };
static const noh_kind d_kinds[] = { { .name = "set" }, { .name = "hear" }, { .name = "get" }, { .name = "ask" },
				    { .name = "wait" }, { .name = "answer" }, { .name = "mail", .flags = NOH_KIND_PERSONAL } };

static int on_durable(noh_turn *t, const noh_msg *m)
{
	int64_t *n = m->kind == D_GET || m->kind == D_WAIT || m->kind == D_ANSWER ? NULL : noh_state(t);

	switch (m->kind) {
	case D_SET_AND_SAY:
		++*n;
		EXPECT_EQ(noh_publish(t, "ticks", "tock", 4), NOH_OK);
		return noh_publish(t, "actor.personal.keeps.1", "post", 4);
	case D_HEAR:
		*n += 1;
		return NOH_OK;
	case D_MAIL:
		*n += 100;
		return NOH_OK;
	case D_GET:
		return noh_reply(t, noh_look(t), 8);
	case D_ASK:
		return noh_ask_to(t, "mute:1", D_WAIT, NULL, 0,
				  &(noh_ask_options){ .answer_kind = D_ANSWER, .wait = true }, NULL);
	case D_WAIT:
		(void)noh_defer(t, m);
		return NOH_OK;
	}
	return NOH_OK;
}

#define DURABLE .state_size = 8, .on_message = on_durable, .kinds = d_kinds, .kind_count = 7
static const noh_topic d_topics[] = { { "ticks", D_HEAR } };
static const noh_type d_types[] = {
	{ .name = "says", DURABLE },
	{ .name = "hears", DURABLE, .is_volatile = true, .topics = d_topics, .topic_count = 1 },
	{ .name = "keeps", DURABLE, .topics = d_topics, .topic_count = 1 },
	{ .name = "mute", DURABLE },
};

static void start(void)
{
	EXPECT_EQ(noh_open(&k.box, &(noh_options){ .workers = 1, .dir = k.dir, .max_actors = 1000, .log = kit_log }),
		  NOH_OK);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(noh_register(k.box, &d_types[i]), NOH_OK);
	EXPECT_EQ(box_start_stepped(k.box), NOH_OK);
}

static void run(void)
{
	struct worker *w = &k.box->sched.workers[0];

	sched_set_self(w);
	while (sched_pass(w) != 0)
		;
	sched_set_self(NULL);
}

static void write_journal(void)
{
	while (box_journal_round(k.box, true) == JOURNAL_BUSY)
		;
	run();
}

static void ask(const char *address, uint32_t kind)
{
	EXPECT_EQ(noh_call_then(k.box, address, kind, NULL, 0, SOON, on_answer, NULL), NOH_OK);
	run();
}

/* A volatile actor that has heard of it waits for it, like whoever is sent something. */
static void who_hears_of_a_turn_waits_for_its_record(void)
{
	fresh_dir(k.dir, sizeof k.dir);
	start();
	answered = 0;
	ask("hears:1", D_GET);
	EXPECT_EQ(answered, 1);
	EXPECT_EQ(noh_send(k.box, "says:1", D_SET_AND_SAY, NULL, 0), NOH_OK);
	run();
	ask("hears:1", D_GET);
	EXPECT_EQ(answered, 1);                  /* what it would tell is not on disk */
	write_journal();
	EXPECT_EQ(answered, 2);
	noh_close(k.box);
	remove_dir(k.dir);
}

static int64_t value;

static void on_value(void *user, int status, const void *answer, size_t len)
{
	(void)user;
	EXPECT_EQ(status, NOH_OK);
	if (EXPECT_EQ(len, sizeof value))
		memcpy(&value, answer, len);
}

/* It rests when both come, and the box ends: what came by the personal channel comes again, once. */
static void personal_messages_survive_events_do_not(void)
{
	fresh_dir(k.dir, sizeof k.dir);
	start();
	EXPECT_EQ(noh_send(k.box, "keeps:1", D_ASK, NULL, 0), NOH_OK);
	run();
	EXPECT_EQ(noh_send(k.box, "says:1", D_SET_AND_SAY, NULL, 0), NOH_OK);
	run();
	EXPECT_EQ(status_of(k.box, "keeps:1").mailbox_size, 2);
	write_journal();
	noh_close(k.box);
	for (int again = 0; again < 2; again++) {
		start();
		value = -1;
		EXPECT_EQ(noh_call_then(k.box, "keeps:1", D_GET, NULL, 0, SOON, on_value, NULL), NOH_OK);
		run();
		write_journal();
		EXPECT_EQ(value, 100);
		noh_close(k.box);
	}
	remove_dir(k.dir);
}

TEST_MAIN(
	TEST(an_active_actor_hears_what_its_type_listens_to, "SC-09 C-17 TB-04"),
	TEST(it_listens_before_on_activate_runs, "LC-16 SC-09"),
	TEST(an_actor_in_storage_is_not_woken, "C-17"),
	TEST(who_could_not_be_activated_does_not_listen),
	TEST(it_subscribes_and_leaves_as_it_likes, "RT-04"),
	TEST(a_turn_that_fails_has_said_nothing, "P4 RT-11"),
	TEST(what_a_turn_says_is_heard_in_order, "P3 RT-11"),
	TEST(the_personal_channel_wakes_its_actor, "RT-05 TB-04"),
	TEST(of_two_types_the_longer_name_is_meant, "RT-05"),
	TEST(a_full_mailbox_drops_by_its_mode, "P8 MB-05"),
	TEST(what_makes_no_sense_is_refused, "P11"),
	TEST(who_hears_of_a_turn_waits_for_its_record, "P5"),
	TEST(personal_messages_survive_events_do_not, "P6 RT-05"))
