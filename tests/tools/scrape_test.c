/* tests/tools/scrape_test.c - /metrics as noh top reads it: names, labels, sums, rates and quantiles. */
#include "tests/lib/test.h"
#include "tools/scrape.h"

#include <math.h>
#include <string.h>

static struct scrape read_text(const char *text)
{
	struct scrape s;

	EXPECT(scrape_read(&s, text, strlen(text)));
	return s;
}

static void samples_have_names_labels_and_values(void)
{
	struct scrape s = read_text("# HELP x y\n# TYPE x counter\nx 1\nx{a=\"b\"} 2.5e3\nx{a=\"c\",d=\"e\\\"f\\\\\"} 3 1700000000\ny{} 7\n");

	EXPECT_EQ(s.count, 4);
	EXPECT_EQ(s.bad, 0);
	EXPECT(scrape_sum(&s, "x", NULL, NULL) == 2504);
	EXPECT(scrape_sum(&s, "x", "a", "b") == 2500);
	EXPECT(strcmp(sample_label(&s.all[2], "d"), "e\"f\\") == 0);
	EXPECT(scrape_sum(&s, "y", NULL, NULL) == 7);
	EXPECT(!scrape_has(&s, "z") && scrape_has(&s, "y"));
	scrape_free(&s);
}

static void lines_that_are_none_are_skipped(void)
{
	static const char *const bad[] = { "x", "x{", "x{a}", "x{a=\"b\" 1", "x{a=\"b", "x{a=b} 1", " 1", "{a=\"b\"} 1", "x y", "x 1y",
					   "x{a=\"b\"c=\"d\"} 1", "\"" };
	struct scrape s;

	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		s = read_text(bad[i]);
		if (!EXPECT(s.count == 0 && s.bad == 1))
			test_failed(__FILE__, __LINE__, "%s", bad[i]);
		scrape_free(&s);
	}
	s = read_text("");
	EXPECT(s.count == 0 && s.bad == 0);
	scrape_free(&s);
}

static void values_of_a_label_come_sorted_as_numbers(void)
{
	struct scrape s = read_text("t{w=\"10\"} 1\nt{w=\"9\"} 1\nt{w=\"10\",x=\"y\"} 1\nt{w=\"0\"} 1\nu{w=\"5\"} 1\n");
	const char *values[8];

	EXPECT_EQ(scrape_values(&s, "t", "w", values, 8), 3);
	EXPECT(strcmp(values[0], "0") == 0 && strcmp(values[1], "9") == 0 && strcmp(values[2], "10") == 0);
	scrape_free(&s);
}

static void a_quantile_is_of_what_came_in_between(void)
{
	struct scrape before = read_text("h_bucket{type=\"a\",le=\"0.1\"} 100\nh_bucket{type=\"a\",le=\"1\"} 100\n"
					 "h_bucket{type=\"a\",le=\"+Inf\"} 100\n");
	struct scrape now = read_text("h_bucket{type=\"a\",le=\"0.1\"} 150\nh_bucket{type=\"a\",le=\"1\"} 198\n"
				      "h_bucket{type=\"a\",le=\"+Inf\"} 200\nh_bucket{type=\"b\",le=\"+Inf\"} 5\n");

	EXPECT(scrape_quantile(&before, &now, "h", "type", "a", 0.5) == 0.1);
	EXPECT(scrape_quantile(&before, &now, "h", "type", "a", 0.98) == 1);
	EXPECT(scrape_quantile(&before, &now, "h", "type", "a", 0.999) == 1);      /* beyond the last bound: that */
	EXPECT(scrape_quantile(&now, &now, "h", "type", "a", 0.5) < 0);            /* nothing came */
	EXPECT(scrape_quantile(NULL, &now, "h", "type", "none", 0.5) < 0);
	scrape_free(&before);
	scrape_free(&now);
}

TEST_MAIN(
	TEST(samples_have_names_labels_and_values),
	TEST(lines_that_are_none_are_skipped),
	TEST(values_of_a_label_come_sorted_as_numbers),
	TEST(a_quantile_is_of_what_came_in_between))
