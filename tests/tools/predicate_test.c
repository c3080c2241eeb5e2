/* tests/tools/predicate_test.c - what noh wait waits for: read strictly, refused with a sentence and the place, and tried. */
#include "tests/lib/test.h"
#include "tools/predicate.h"

#include "noh.h"

#include <stdio.h>
#include <string.h>

static struct predicate p;
static char why[300];
static size_t at;

static bool reads(const char *text)
{
	why[0] = 0;
	return predicate_read(&p, text, &at, why, sizeof why);
}

static struct predicate_facts facts(void)
{
	struct predicate_facts f = { .text = { [FACT_STATE] = "active", [FACT_HEALTH] = "healthy", [FACT_PARENT] = "sup:1", [FACT_ERROR] = "",
					       [FACT_FAILURE] = "no disk", [FACT_EVENT] = "", [FACT_EXISTS] = "true" } };

	f.number[FACT_REVISION] = 3;
	f.number[FACT_DESIRED] = 4;
	f.number[FACT_RESTARTS] = 2;
	f.number[FACT_MAILBOX] = 0;
	f.number[FACT_CHILDREN] = 7;
	return f;
}

static bool test_holds(const char *text, bool wanted, int line)
{
	struct predicate_facts f = facts();

	if (!reads(text)) {
		test_failed(__FILE__, line, "\"%s\" is refused at %zu: %s", text, at, why);
		return false;
	}
	if (predicate_holds(&p, &f) != wanted) {
		test_failed(__FILE__, line, "\"%s\" is %s", text, wanted ? "false" : "true");
		return false;
	}
	return true;
}
#define HOLDS(text) test_holds(text, true, __LINE__)
#define FAILS(text) test_holds(text, false, __LINE__)

static void test_refused(const char *text, size_t place, const char *words, int line)
{
	if (reads(text))
		test_failed(__FILE__, line, "\"%s\" is understood", text);
	else if (at != place || !strstr(why, words))
		test_failed(__FILE__, line, "\"%s\": expected %zu with \"%s\", got %zu: %s", text, place, words, at, why);
}
#define REFUSED(text, place, words) test_refused(text, place, words, __LINE__)

static void tests_are_tried(void)
{
	HOLDS("state=active");
	HOLDS("state==active");
	HOLDS("STATE = active");
	FAILS("state=down");
	HOLDS("state != down");
	HOLDS("revision>=3");
	FAILS("revision>3");
	HOLDS("revision<4");
	HOLDS("revision<=3");
	HOLDS("revision!=18446744073709551600");
	HOLDS("restarts=2");
	HOLDS("mailbox=0");
	HOLDS("children>6");
	HOLDS("failure='no disk'");
	HOLDS("failure=\"no disk\"");
	HOLDS("error=''");
	FAILS("error!=''");
	HOLDS("parent=sup:1");
	HOLDS("exists=true");
	FAILS("health=down");
}

static void a_number_may_be_another_field(void)
{
	FAILS("revision=desired");
	HOLDS("revision<desired");
	HOLDS("desired>revision and children>=desired");
}

static void words_join_tests(void)
{
	HOLDS("state=active and revision>=3");
	FAILS("state=active and revision>=4");
	HOLDS("state=down or revision=3");
	HOLDS("not state=down");
	HOLDS("not not state=active");
	FAILS("not (state=active or state=down)");
	HOLDS("(state=down or state=active) and restarts<3");
	HOLDS("(((restarts=2)))");
	HOLDS("\tstate=active\n AND  mailbox=0 ");
}

static void and_binds_closer_than_or(void)
{
	HOLDS("state=active or state=down and restarts=9");
	FAILS("(state=active or state=down) and restarts=9");
	HOLDS("restarts=9 and state=down or state=active");
	FAILS("not state=active and state=active or restarts=9");
}

static void an_event_holds_once_it_was_seen(void)
{
	struct predicate_facts f = facts();

	EXPECT(reads("event=restarted and (event=scaled or event=pulled)"));
	EXPECT(!predicate_holds(&p, &f));
	predicate_event(&p, "restarted");
	predicate_event(&p, "scale");
	EXPECT(!predicate_holds(&p, &f));
	predicate_event(&p, "pulled");
	EXPECT(predicate_holds(&p, &f));
	EXPECT(reads("event=restarted"));        /* it begins anew */
	EXPECT(!predicate_holds(&p, &f));
}

static void what_is_wrong_is_told_with_its_place(void)
{
	REFUSED("", 0, "missing here");
	REFUSED("   ", 3, "missing here");
	REFUSED("stat=active", 0, "did you mean state?");
	REFUSED("colour=red", 0, "a field is expected: state,");
	REFUSED("state", 5, "behind state comes");
	REFUSED("state active", 6, "behind state comes");
	REFUSED("state=", 6, "a value is missing");
	REFUSED("state=actve", 6, "did you mean active?");
	REFUSED("state=zzzzzz", 6, "is never \"zzzzzz\"");
	REFUSED("health=fine", 7, "is never");
	REFUSED("exists=yes", 7, "is never");
	REFUSED("state>active", 5, "by = and != alone");
	REFUSED("event!=x", 5, "by = alone");
	REFUSED("revision=three", 9, "is a number");
	REFUSED("revision=-1", 9, "is a number");
	REFUSED("revision=3.5", 9, "is a number");
	REFUSED("revision='3'", 9, "is a number");
	REFUSED("revision=18446744073709551616", 9, "is a number");
	REFUSED("revision=state", 9, "is a number");
	REFUSED("state=active revision=3", 13, "and, or, or the end");
	REFUSED("state=active and", 16, "missing here");
	REFUSED("and state=active", 0, "a field is expected");
	REFUSED("state=active and or mailbox=0", 17, "a field is expected");
	REFUSED("(state=active", 0, "not closed");
	REFUSED("state=active)", 12, "and, or, or the end");
	REFUSED("()", 1, "a field is expected");
	REFUSED("error='half", 6, "quote is not closed");
	REFUSED("state=active & mailbox=0", 13, "what is this?");
	REFUSED("not", 3, "missing here");
	REFUSED("=3", 0, "a field is expected");
}

static void the_states_there_are_are_known(void)
{
	char text[100];

	for (int h = NOH_HEALTHY; h <= NOH_AWAITING; h++) {
		snprintf(text, sizeof text, "health=%s", noh_health_name((noh_health)h));
		if (!EXPECT(reads(text)))
			printf("  %s: %s\n", text, why);
		snprintf(text, sizeof text, "state=%s", h == NOH_HEALTHY ? "inactive" : noh_health_name((noh_health)h));
		if (!EXPECT(reads(text)))
			printf("  %s: %s\n", text, why);
	}
	for (int l = NOH_ACTIVATING; l <= NOH_DEACTIVATING; l++) {
		snprintf(text, sizeof text, "state=%s", noh_life_name((noh_life)l));
		EXPECT(reads(text));
	}
}

static void nothing_is_read_beyond_its_limits(void)
{
	char text[4 * PREDICATE_MAX] = "";

	for (int i = 0; i < PREDICATE_DEPTH; i++)
		strcat(text, "(");
	strcat(text, "mailbox=0");
	for (int i = 0; i < PREDICATE_DEPTH; i++)
		strcat(text, ")");
	HOLDS(text);
	memmove(text + 1, text, strlen(text) + 1);
	text[0] = '(';
	strcat(text, ")");
	REFUSED(text, PREDICATE_DEPTH, "inside each other");

	strcpy(text, "mailbox=0");
	for (int i = 1; i < PREDICATE_STEPS / 2; i++)
		strcat(text, " or mailbox=0");
	HOLDS(text);                              /* 64 tests and 63 words between them */
	strcat(text, " or mailbox=0");
	EXPECT(!reads(text) && strstr(why, "too much"));

	memset(text, ' ', PREDICATE_MAX);
	strcpy(text + PREDICATE_MAX - 9, "mailbox=0");
	HOLDS(text);
	strcat(text, " ");
	REFUSED(text, PREDICATE_MAX, "too long");
}

TEST_MAIN(
	TEST(tests_are_tried, "CLI-02"),
	TEST(a_number_may_be_another_field),
	TEST(words_join_tests, "CLI-02"),
	TEST(and_binds_closer_than_or),
	TEST(an_event_holds_once_it_was_seen, "CLI-02"),
	TEST(what_is_wrong_is_told_with_its_place),
	TEST(the_states_there_are_are_known),
	TEST(nothing_is_read_beyond_its_limits))
