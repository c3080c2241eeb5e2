/* tests/box/log_test.c - what a box logs: fields, levels by type that change while it runs, a log nobody reads. */
#include "tests/box/durable_kit.h"
#include "tests/box/kit.h"
#include "tests/box/metrics_kit.h"

#include <fcntl.h>

#define TRACE_ID "4bf92f3577b34da6a3ce929d0e0e4736"

enum { SAY, SAY_ON, FAIL };

static int talker_message(noh_turn *t, const noh_msg *m)
{
	if (m->kind == FAIL)
		return noh_fail(t, "as told");
	if (m->kind == SAY_ON)
		return noh_tell_to(t, "loud:other", SAY, NULL, 0);
	for (int level = NOH_DEBUG; level <= NOH_ERROR; level++)
		noh_log(t, level, "line %d", level);
	return noh_reply(t, NULL, 0);
}
static const noh_type loud_type = { .name = "loud", .on_message = talker_message, .state_size = 8 };
static const noh_type shy_type = { .name = "shy", .on_message = talker_message, .state_size = 8 };

/* ── lines, kept ── */

static struct seen { int level; char msg[128], actor[64], type[32], msg_id[64], trace_id[40], span_id[24]; int shard; } seen[64];
static atomic_u32 count;                 /* whoever has seen it sees the lines */

static void see(void *user, const noh_log_line *l)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint32_t i;

	(void)user;
	pthread_mutex_lock(&lock);
	i = load_relaxed(&count) % 64;
	seen[i].level = l->level;
	seen[i].shard = l->shard;
	snprintf(seen[i].msg, sizeof seen[i].msg, "%s", l->msg);
	snprintf(seen[i].actor, sizeof seen[i].actor, "%s", l->actor);
	snprintf(seen[i].type, sizeof seen[i].type, "%s", l->type);
	snprintf(seen[i].msg_id, sizeof seen[i].msg_id, "%s", l->msg_id);
	snprintf(seen[i].trace_id, sizeof seen[i].trace_id, "%s", l->trace_id);
	snprintf(seen[i].span_id, sizeof seen[i].span_id, "%s", l->span_id);
	store_seq_cst(&count, load_relaxed(&count) + 1);
	pthread_mutex_unlock(&lock);
}

static noh_box *watched(const noh_options *more)
{
	noh_options o = more ? *more : (noh_options){ .workers = 1 };

	o.unpinned = true;
	o.max_actors = 1000;
	o.log_line = see;
	store_seq_cst(&count, 0);
	memset(seen, 0, sizeof seen);
	return kit_start(&o, TYPES(&loud_type, &shy_type));
}

static bool are_seen(void *n)
{
	return load_seq_cst(&count) >= *(uint32_t *)n;
}

/* A failure is logged after its answer has gone. */
static bool come_to(uint32_t n)
{
	return test_wait_until(are_seen, &n, SOON);
}

/* How many lines a call of SAY makes. */
static uint32_t lines_of(noh_box *box, const char *address)
{
	uint32_t before = load_seq_cst(&count);

	EXPECT_EQ(call(box, address, SAY), NOH_OK);
	return load_seq_cst(&count) - before;
}

static void a_line_tells_actor_type_and_worker(void)
{
	noh_box *box = watched(NULL);

	EXPECT_EQ(lines_of(box, "loud:a"), 4);
	EXPECT_EQ(seen[2].level, NOH_WARN);
	EXPECT(strcmp(seen[2].msg, "line 2") == 0 && strcmp(seen[2].actor, "loud:a") == 0);
	EXPECT(strcmp(seen[2].type, "loud") == 0);
	EXPECT_EQ(seen[2].shard, 0);
	EXPECT(!*seen[2].trace_id && !*seen[2].msg_id);
	EXPECT_EQ(call(box, "loud:a", FAIL), NOH_EFAILED);
	EXPECT(come_to(5));
	EXPECT(strcmp(seen[4].msg, "turn failed: as told") == 0 && strcmp(seen[4].actor, "loud:a") == 0);
	end(box);
}

static void levels_change_while_it_runs_for_all_and_for_one_type(void)
{
	noh_box *box = watched(NULL);
	char levels[128];

	EXPECT_EQ(noh_set_log_level(box, "warn"), NOH_OK);
	EXPECT_EQ(lines_of(box, "loud:a"), 2);
	EXPECT_EQ(lines_of(box, "shy:a"), 2);
	EXPECT_EQ(noh_set_log_level(box, "warn loud=debug,shy=error"), NOH_OK);
	EXPECT_EQ(lines_of(box, "loud:a"), 4);
	EXPECT_EQ(lines_of(box, "shy:a"), 1);
	EXPECT_EQ(noh_get_log_level(box, levels, sizeof levels), NOH_OK);
	EXPECT(strcmp(levels, "warn loud=debug shy=error") == 0);
	EXPECT_EQ(noh_set_log_level(box, "info"), NOH_OK);
	EXPECT_EQ(lines_of(box, "loud:a"), 3);
	EXPECT_EQ(lines_of(box, "shy:a"), 3);
	end(box);
}

static void a_level_that_is_none_changes_nothing(void)
{
	noh_box *box = watched(NULL);
	char levels[128];

	EXPECT_EQ(noh_set_log_level(box, "error loud=warn"), NOH_OK);
	EXPECT_EQ(noh_set_log_level(box, ""), NOH_EINVAL);
	EXPECT_EQ(noh_set_log_level(box, "loudest"), NOH_EINVAL);
	EXPECT(strstr(noh_why(), "\"loudest\""));
	EXPECT_EQ(noh_set_log_level(box, "info warn"), NOH_EINVAL);
	EXPECT_EQ(noh_set_log_level(box, "info loud="), NOH_EINVAL);
	EXPECT_EQ(noh_set_log_level(box, "loud=debug"), NOH_EINVAL);
	EXPECT_EQ(noh_set_log_level(box, "info nobody=debug"), NOH_ENOTYPE);
	EXPECT(strstr(noh_why(), "\"nobody\""));
	EXPECT_EQ(noh_get_log_level(box, levels, sizeof levels), NOH_OK);
	EXPECT(strcmp(levels, "error loud=warn") == 0);
	end(box);
}

static void a_line_in_a_traced_turn_tells_its_trace(void)
{
	noh_box *box = watched(NULL);
	noh_call_options o = { .traceparent = "00-" TRACE_ID "-00f067aa0ba902b7-01" };

	EXPECT_EQ(noh_call_with(box, "loud:a", SAY, NULL, 0, &o, NULL, NULL), NOH_OK);
	EXPECT(strcmp(seen[0].trace_id, TRACE_ID) == 0);
	EXPECT(strlen(seen[0].span_id) == 16 && strcmp(seen[0].span_id, "00f067aa0ba902b7") != 0);
	EXPECT_EQ(noh_call_with(box, "loud:a", FAIL, NULL, 0, &o, NULL, NULL), NOH_EFAILED);
	EXPECT(come_to(5));
	EXPECT(strcmp(seen[4].msg, "turn failed: as told") == 0 && strcmp(seen[4].trace_id, TRACE_ID) == 0);
	EXPECT_EQ(call(box, "loud:a", SAY), NOH_OK);
	EXPECT(!*seen[5].trace_id && !*seen[5].span_id);
	end(box);
}

static void a_recorded_message_is_told_by_its_name(void)
{
	char dir[256];
	noh_box *box = watched(&(noh_options){ .workers = 1, .dir = fresh_dir(dir, sizeof dir) });

	EXPECT_EQ(call(box, "loud:a", SAY_ON), NOH_OK);
	EXPECT(come_to(4));
	EXPECT(strcmp(seen[0].actor, "loud:other") == 0);
	EXPECT(strlen(seen[0].msg_id) > 18 && strcmp(seen[0].msg_id + strlen(seen[0].msg_id) - 2, "-0") == 0);
	end(box);
	remove_dir(dir);
}

/* The log goes to a pipe that is full and that nobody reads: turns go on as ever. */
static void a_log_nobody_reads_does_not_stop_the_box(void)
{
	char junk[4096] = { 0 };
	noh_logger_stats stats;
	noh_logger *logger;
	int ends[2];

	EXPECT_EQ(pipe(ends), 0);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	while (write(ends[1], junk, sizeof junk) > 0)
		;
	fcntl(ends[1], F_SETFL, 0);
	EXPECT_EQ(noh_logger_open(&logger, &(noh_logger_options){ .fd = ends[1] }), NOH_OK);
	noh_options o = { .workers = 2, .unpinned = true, .max_actors = 1000, .log_line = noh_logger_write, .log_user = logger };
	noh_box *box = kit_start(&o, TYPES(&loud_type));

	for (int i = 0; i < 2000; i++)
		EXPECT_EQ(call(box, i & 1 ? "loud:a" : "loud:b", SAY), NOH_OK);
	end(box);
	noh_get_logger_stats(logger, &stats);
	EXPECT_EQ(stats.written, 0);
	EXPECT(stats.lost > 6000);
	close(ends[0]);                          /* that ends the writer's wait */
	noh_logger_close(logger, SOON);
	close(ends[1]);
}

/* noh's own logger tells a scrape how many lines it has written, and how many not; another one tells nothing. */
static void a_scrape_tells_what_became_of_lines(void)
{
	noh_options o = { .workers = 1, .unpinned = true, .max_actors = 1000, .log_line = noh_logger_write };
	int null = open("/dev/null", O_WRONLY);
	noh_logger *logger;
	noh_box *box;

	EXPECT_EQ(noh_logger_open(&logger, &(noh_logger_options){ .fd = null }), NOH_OK);
	o.log_user = logger;
	box = kit_start(&o, TYPES(&loud_type));
	for (int i = 0; i < 100; i++)
		EXPECT_EQ(call(box, "loud:a", SAY), NOH_OK);
	EXPECT_EQ(noh_logger_flush(logger, SOON), NOH_OK);
	scrape(box);
	EXPECT(said("noh_log_lines_total{result=\"written\"}") >= 10);
	EXPECT(said("noh_log_lines_total{result=\"left_out\"}") > 0);          /* they are all alike */
	EXPECT_EQ(said("noh_log_lines_total{result=\"lost\"}"), 0);
	end(box);
	noh_logger_close(logger, SOON);
	close(null);
	box = BOX(1, &loud_type);
	scrape(box);
	EXPECT_EQ(said("noh_log_lines_total{result=\"written\"}"), -1);
	end(box);
	free(scraped.text);
}

TEST_MAIN(
	TEST(a_line_tells_actor_type_and_worker, "RT-12"),
	TEST(levels_change_while_it_runs_for_all_and_for_one_type),
	TEST(a_level_that_is_none_changes_nothing),
	TEST(a_line_in_a_traced_turn_tells_its_trace),
	TEST(a_recorded_message_is_told_by_its_name),
	TEST(a_log_nobody_reads_does_not_stop_the_box),
	TEST(a_scrape_tells_what_became_of_lines))
