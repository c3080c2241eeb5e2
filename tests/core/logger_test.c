/* tests/core/logger_test.c - lines that nothing can break, floods that do not fill a disk, a pipe nobody reads. */
#include "core/log_limit.h"
#include "core/log_text.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static noh_log_line about(int level, const char *actor, const char *msg)
{
	return (noh_log_line){ .level = level, .msg = msg, .actor = actor, .type = "", .msg_id = "", .trace_id = "",
			       .span_id = "", .shard = -1 };
}

static char text[LOG_LINE_MAX + 1];

static const char *as(enum log_form form, bool journal, const noh_log_line *line)
{
	size_t n = log_text(text, line, form, journal, UINT64_C(1700000000123), 0);

	EXPECT(n > 0 && n <= LOG_LINE_MAX && text[n - 1] == '\n');
	text[n] = 0;
	return text;
}

/* ── a line ── */

static void a_line_of_text_has_time_level_actor_and_message(void)
{
	noh_log_line line = about(NOH_WARN, "counter:hits", "turn failed: no");

	EXPECT(strcmp(as(LOG_TEXT, false, &line), "2023-11-14T22:13:20.123Z warn  counter:hits: turn failed: no\n") == 0);
	line.trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
	EXPECT(strstr(as(LOG_TEXT, false, &line), ": no trace_id=4bf92f3577b34da6a3ce929d0e0e4736\n") != NULL);
	line = about(NOH_ERROR, "", "the disk failed");
	EXPECT(strcmp(as(LOG_TEXT, true, &line), "<3>the disk failed\n") == 0);
}

static void a_line_of_json_has_every_field_that_is_known(void)
{
	noh_log_line line = about(NOH_INFO, "counter:hits", "said \"so\"");

	line.type = "counter";
	line.msg_id = "00ab-1-0";
	line.trace_id = "t";
	line.span_id = "s";
	line.shard = 3;
	EXPECT(strcmp(as(LOG_JSON, false, &line),
		      "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"info\",\"msg\":\"said \\\"so\\\"\","
		      "\"actor\":\"counter:hits\",\"type\":\"counter\",\"msg_id\":\"00ab-1-0\",\"trace_id\":\"t\","
		      "\"span_id\":\"s\",\"shard\":3}\n") == 0);
	line = about(NOH_DEBUG, "", "x");
	EXPECT(strcmp(as(LOG_JSON, true, &line),
		      "<7>{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"debug\",\"msg\":\"x\"}\n") == 0);
}

static void nothing_said_can_end_its_line_or_hide(void)
{
	noh_log_line line = about(NOH_WARN, "a:b\r\n2026 error fake", "x\033[2J\x7f\x01 \xe2\x80\xae \xc2\x9b" "1m \\n");

	as(LOG_TEXT, false, &line);
	EXPECT(strstr(text, "a:b\\x0d\\x0a2026 error fake: x\\x1b[2J\\x7f\\x01 \\u202e \\x9b1m \\\\n\n") != NULL);
	as(LOG_JSON, false, &line);
	EXPECT(strstr(text, "\"actor\":\"a:b\\u000d\\u000a2026 error fake\"") != NULL);
	EXPECT(strstr(text, "x\\u001b[2J\\u007f\\u0001 \\u202e \\u009b1m \\\\n") != NULL);
}

static void text_in_utf8_stays_and_what_is_none_is_shown_as_such(void)
{
	noh_log_line line = about(NOH_WARN, "caf\xc3\xa9:\xf0\x9f\x8d\x8e", "\xff \xc3 \xed\xa0\x80 \xc0\xaf");

	EXPECT(strstr(as(LOG_TEXT, false, &line), "caf\xc3\xa9:\xf0\x9f\x8d\x8e: \\xff \\xc3 \\xed\\xa0\\x80 \\xc0\\xaf\n"));
	EXPECT(strstr(as(LOG_JSON, false, &line), "\"msg\":\"\\ufffd \\ufffd \\ufffd\\ufffd\\ufffd \\ufffd\\ufffd\""));
}

static void a_long_field_is_cut_and_the_line_is_whole(void)
{
	static char big[1 << 20];
	noh_log_line line = about(NOH_WARN, big, big);

	memset(big, 1, sizeof big - 1);
	line.type = line.msg_id = line.trace_id = line.span_id = big;
	for (int form = LOG_TEXT; form <= LOG_JSON; form++) {
		as((enum log_form)form, true, &line);
		EXPECT(strstr(text, "...") != NULL);
		EXPECT(strchr(text, '\n') == text + strlen(text) - 1);
	}
	EXPECT(strcmp(text + strlen(text) - 3, "\"}\n") == 0);
}

/* Whatever bytes: one line, no control byte in it, and of JSON every quote has its partner. */
static void any_bytes_at_all_make_one_printable_line(void)
{
	uint64_t state = test_seed;
	char actor[256], msg[1024];

	for (int round = 0; round < 3000; round++) {
		noh_log_line line = about((int)(test_random(&state) % 4), actor, msg);
		unsigned quotes = 0;
		size_t n = test_random(&state) % sizeof msg;

		for (size_t i = 0; i < sizeof actor; i++)
			actor[i] = (char)test_random(&state);
		for (size_t i = 0; i < n; i++)
			msg[i] = (char)test_random(&state);
		actor[255] = msg[n] = 0;
		as(round & 1 ? LOG_JSON : LOG_TEXT, round & 2, &line);
		for (const unsigned char *c = (const unsigned char *)text; c[1]; c++) {
			if (*c < ' ' || *c == 0x7f) {
				test_failed(__FILE__, __LINE__, "a control byte in %s", text);
				return;
			}
			if (*c == '\\')
				c++;
			else
				quotes += *c == '"';
		}
		if (round & 1)
			EXPECT(quotes % 2 == 0 && text[strlen(text) - 2] == '}');
	}
}

/* ── which lines are written ── */

static struct { uint64_t lines, repeated; char last[1400]; } said;

static void say(void *user, const struct log_entry *e, uint64_t repeated)
{
	(void)user;
	said.lines++;
	said.repeated += repeated;
	snprintf(said.last, sizeof said.last, "%s|%s", e->actor, e->msg);
}

static struct log_limit limit;

static void take(const char *msg, uint64_t now_ms)
{
	struct log_entry e = { .level = NOH_WARN, .type = "counter" };

	snprintf(e.msg, sizeof e.msg, "%s", msg);
	log_limit_take(&limit, &e, now_ms, say, NULL);
}

static void fresh_limit(void)
{
	memset(&limit, 0, sizeof limit);
	memset(&said, 0, sizeof said);
}

static void of_a_flood_ten_are_written_and_the_rest_counted(void)
{
	char msg[64];

	fresh_limit();
	for (int i = 0; i < 5000; i++) {         /* alike but for their numbers */
		snprintf(msg, sizeof msg, "no order %d", i);
		take(msg, 1000);
	}
	EXPECT_EQ(said.lines, LOG_ALIKE);
	EXPECT_EQ(log_limit_tick(&limit, 1500, false, say, NULL), 2000);
	EXPECT_EQ(said.lines, LOG_ALIKE);
	log_limit_tick(&limit, 2000, false, say, NULL);
	EXPECT_EQ(said.lines, LOG_ALIKE + 1);
	EXPECT_EQ(said.repeated, 5000 - LOG_ALIKE);
	EXPECT(strcmp(said.last, "|no order 10") == 0);
}

static void a_flood_that_goes_on_costs_a_line_a_minute(void)
{
	fresh_limit();
	for (uint64_t ms = 1000; ms < 1000 + 3600 * 1000; ms += 10) {
		take("the same again", ms);
		if (ms % 1000 == 0)
			log_limit_tick(&limit, ms, false, say, NULL);
	}
	EXPECT(said.lines < LOG_ALIKE + 70);
	log_limit_tick(&limit, 1000 + 3600 * 1000, true, say, NULL);
	EXPECT_EQ(said.repeated + LOG_ALIKE, 360000);
}

static void after_a_quiet_window_all_begins_anew(void)
{
	fresh_limit();
	for (int i = 0; i < 100; i++)
		take("alike", 1000);
	log_limit_tick(&limit, 2000, false, say, NULL);
	said.lines = 0;
	take("alike", 3000);                     /* within the second window, which is stricter */
	EXPECT_EQ(said.lines, 0);
	log_limit_tick(&limit, 4000, false, say, NULL);
	EXPECT_EQ(said.lines, 1);
	take("alike", 60000);
	EXPECT_EQ(said.lines, 2);
}

static void other_lines_are_written_beside_a_flood(void)
{
	fresh_limit();
	for (int i = 0; i < 100; i++)
		take("alike", 1000);
	take("another", 1000);
	EXPECT_EQ(said.lines, LOG_ALIKE + 1);
	EXPECT(strcmp(said.last, "|another") == 0);
}

static void of_all_lines_together_so_many_a_second_are_written(void)
{
	char msg[16] = "aaaaaaaa";

	fresh_limit();
	for (int i = 0; i < LOG_A_SECOND * 3; i++) {     /* all of them different */
		for (int k = 0, n = i; k < 6; k++, n /= 26)
			msg[k] = (char)('a' + n % 26);
		take(msg, 1000);
	}
	EXPECT_EQ(said.lines, LOG_A_SECOND);
	EXPECT_EQ(limit.left_out, 2 * LOG_A_SECOND);
	take("later", 2000);
	EXPECT_EQ(said.lines, LOG_A_SECOND + 2);
}

/* ── the logger ── */

static size_t drain(int fd, char *out, size_t size)
{
	size_t n = 0;
	ssize_t got;

	while (n < size - 1 && (got = read(fd, out + n, size - 1 - n)) > 0)
		n += (size_t)got;
	out[n] = 0;
	return n;
}

static void lines_come_out_in_order_and_all_of_them(void)
{
	noh_logger *logger;
	noh_logger_stats stats;
	char out[8192];
	int ends[2];

	EXPECT_EQ(pipe(ends), 0);
	EXPECT_EQ(noh_logger_open(&logger, &(noh_logger_options){ .fd = ends[1] }), NOH_OK);
	noh_logger_write(logger, &(noh_log_line){ .level = NOH_INFO, .msg = "one", .actor = "" });
	noh_logger_write(logger, &(noh_log_line){ .level = NOH_INFO, .msg = "two", .actor = "" });
	EXPECT_EQ(noh_logger_flush(logger, 10000), NOH_OK);
	noh_get_logger_stats(logger, &stats);
	EXPECT_EQ(stats.written, 2);
	noh_logger_set_json(logger, true);
	noh_logger_write(logger, &(noh_log_line){ .level = NOH_INFO, .msg = "three", .actor = "", .shard = -1 });
	noh_logger_close(logger, 10000);
	close(ends[1]);
	drain(ends[0], out, sizeof out);
	close(ends[0]);
	const char *one = strstr(out, "one\n"), *two = strstr(out, "two\n"), *three = strstr(out, "\"msg\":\"three\"}\n");

	EXPECT(one && two && three && one < two && two < three);
}

/* A pipe that is full and that nobody reads: whoever logs goes on, and what is lost is counted and told. */
static void a_stalled_pipe_holds_up_nobody(void)
{
	static char out[1 << 21];
	noh_logger *logger;
	noh_logger_stats stats;
	char junk[4096] = { 0 }, msg[64];
	int ends[2];

	EXPECT_EQ(pipe(ends), 0);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	while (write(ends[1], junk, sizeof junk) > 0)
		;
	fcntl(ends[1], F_SETFL, 0);
	EXPECT_EQ(noh_logger_open(&logger, &(noh_logger_options){ .fd = ends[1] }), NOH_OK);
	for (int i = 0; i < 20000; i++) {
		snprintf(msg, sizeof msg, "line %c%c%c", 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i / 676);
		noh_logger_write(logger, &(noh_log_line){ .level = NOH_INFO, .msg = msg, .actor = "" });
	}
	noh_get_logger_stats(logger, &stats);
	EXPECT(stats.lost > 15000);
	EXPECT_EQ(stats.written, 0);
	EXPECT_EQ(noh_logger_flush(logger, 50), NOH_ETIMEOUT);
	EXPECT(fcntl(ends[0], F_SETPIPE_SZ, 1 << 20) > 0);       /* there is room again */
	EXPECT_EQ(noh_logger_flush(logger, 10000), NOH_OK);
	noh_logger_close(logger, 10000);
	close(ends[1]);
	drain(ends[0], out, sizeof out);
	close(ends[0]);
	char *at = out;

	while (at < out + sizeof out - 1 && *at == 0)
		at++;
	EXPECT(strstr(at, "lines of the log were lost: it could not be written fast enough\n") != NULL);
}

static void a_logger_whose_pipe_stays_full_can_be_closed(void)
{
	noh_logger *logger;
	char junk[4096] = { 0 };
	int ends[2];

	EXPECT_EQ(pipe(ends), 0);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	while (write(ends[1], junk, sizeof junk) > 0)
		;
	fcntl(ends[1], F_SETFL, 0);
	EXPECT_EQ(noh_logger_open(&logger, &(noh_logger_options){ .fd = ends[1] }), NOH_OK);
	noh_logger_write(logger, &(noh_log_line){ .level = NOH_INFO, .msg = "x", .actor = "" });
	noh_logger_close(logger, 20);            /* comes back; the thread is left to its pipe */
	close(ends[0]);                          /* which ends it */
}

static void a_pipe_that_nobody_has_open_is_no_end_of_the_process(void)
{
	noh_logger *logger;
	noh_logger_stats stats;
	int ends[2];

	EXPECT_EQ(pipe(ends), 0);
	close(ends[0]);
	EXPECT_EQ(noh_logger_open(&logger, &(noh_logger_options){ .fd = ends[1] }), NOH_OK);
	noh_logger_write(logger, &(noh_log_line){ .level = NOH_INFO, .msg = "x", .actor = "" });
	EXPECT_EQ(noh_logger_flush(logger, 10000), NOH_OK);
	noh_get_logger_stats(logger, &stats);
	EXPECT(stats.lost >= 1);
	noh_logger_close(logger, 10000);
	close(ends[1]);
}

enum { THREADS = 4, EACH = 20000 };

static void *log_many(void *logger)
{
	char msg[64];

	for (int i = 0; i < EACH; i++) {
		snprintf(msg, sizeof msg, "%c%c%c", 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i / 676 % 26);
		noh_logger_write(logger, &(noh_log_line){ .level = NOH_INFO, .msg = msg, .actor = "" });
	}
	return NULL;
}

static void of_many_threads_every_line_is_written_left_out_or_lost(void)
{
	int fd = open("/dev/null", O_WRONLY);
	pthread_t threads[THREADS];
	noh_logger_stats stats;
	noh_logger *logger;

	EXPECT_EQ(noh_logger_open(&logger, &(noh_logger_options){ .fd = fd, .json = true }), NOH_OK);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, log_many, logger);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(noh_logger_flush(logger, 30000), NOH_OK);
	noh_get_logger_stats(logger, &stats);
	EXPECT(stats.written + stats.left_out + stats.lost >= THREADS * EACH);
	EXPECT(stats.left_out + stats.lost <= THREADS * EACH);
	noh_logger_close(logger, 10000);
	close(fd);
}

static void the_journal_is_known_by_its_device_and_inode(void)
{
	char stream[64];
	struct stat st;

	EXPECT_EQ(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	EXPECT(noh_logger_is_journal(STDERR_FILENO));
	setenv("JOURNAL_STREAM", "8:12345", 1);          /* a shell's, and stderr is somewhere else by now */
	EXPECT(!noh_logger_is_journal(STDERR_FILENO));
	unsetenv("JOURNAL_STREAM");
	EXPECT(!noh_logger_is_journal(STDERR_FILENO));
}

TEST_MAIN(
	TEST(a_line_of_text_has_time_level_actor_and_message),
	TEST(a_line_of_json_has_every_field_that_is_known),
	TEST(nothing_said_can_end_its_line_or_hide),
	TEST(text_in_utf8_stays_and_what_is_none_is_shown_as_such),
	TEST(a_long_field_is_cut_and_the_line_is_whole),
	TEST(any_bytes_at_all_make_one_printable_line),
	TEST(of_a_flood_ten_are_written_and_the_rest_counted),
	TEST(a_flood_that_goes_on_costs_a_line_a_minute),
	TEST(after_a_quiet_window_all_begins_anew),
	TEST(other_lines_are_written_beside_a_flood),
	TEST(of_all_lines_together_so_many_a_second_are_written),
	TEST(lines_come_out_in_order_and_all_of_them),
	TEST(a_stalled_pipe_holds_up_nobody),
	TEST(a_logger_whose_pipe_stays_full_can_be_closed),
	TEST(a_pipe_that_nobody_has_open_is_no_end_of_the_process),
	TEST(of_many_threads_every_line_is_written_left_out_or_lost),
	TEST(the_journal_is_known_by_its_device_and_inode))
