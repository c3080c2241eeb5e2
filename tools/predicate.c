/* tools/predicate.c - see predicate.h. */
#include "tools/predicate.h"

#include "tools/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum op { OP_EQ, OP_NE, OP_GE, OP_LE, OP_GT, OP_LT, OP_AND, OP_OR, OP_NOT };

static const char *const fields[FACTS] = {
	[FACT_STATE] = "state", [FACT_HEALTH] = "health", [FACT_PARENT] = "parent", [FACT_ERROR] = "error",
	[FACT_FAILURE] = "failure", [FACT_EVENT] = "event", [FACT_EXISTS] = "exists", [FACT_REVISION] = "revision",
	[FACT_DESIRED] = "desired", [FACT_RESTARTS] = "restarts", [FACT_MAILBOX] = "mailbox", [FACT_CHILDREN] = "children",
};

/* What these may be: a test for any other word would never hold. */
static const char *const states[] = { "active", "inactive", "activating", "deactivating", "down", "degraded", "stopped", "quarantined",
				      "awaiting" };
static const char *const healths[] = { "healthy", "down", "degraded", "stopped", "quarantined", "awaiting" };
static const char *const truths[] = { "true", "false" };
static const struct { enum predicate_field field; const char *const *words; size_t count; } closed[] = {
	{ FACT_STATE, states, sizeof states / sizeof states[0] },
	{ FACT_HEALTH, healths, sizeof healths / sizeof healths[0] },
	{ FACT_EXISTS, truths, 2 },
};

static const char all_fields[] = "state, health, parent, error, failure, event, exists, revision, desired, restarts, mailbox, children";

/* ── words ── */

enum kind { WORD, TEXT, OPERATOR, OPEN, CLOSE, END };

struct token {
	enum kind kind;
	size_t    at, len;                 /* of TEXT: with its quotes    */
	enum op   op;
};

struct reading {
	struct predicate *p;
	const char   *text;
	size_t        len, next;           /* next: where to read on */
	struct token  t;                   /* the one in hand        */
	unsigned      depth;
	struct predicate_step spare;       /* for those that are too many */
	bool          bad;
	size_t        place;
	char         *why;
	size_t        size;
};

static void wrong(struct reading *r, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void wrong(struct reading *r, size_t at, const char *format, ...)
{
	va_list args;

	if (r->bad)
		return;                          /* the first one counts */
	r->bad = true;
	r->place = at;
	va_start(args, format);
	(void)vsnprintf(r->why, r->size, format, args);
	va_end(args);
}

static bool is_word_byte(char c)
{
	return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || (c && strchr("_-.:/@", c)) || (unsigned char)c >= 128;
}

static bool operator_at(struct reading *r)
{
	static const struct { const char *text; enum op op; } all[] = {
		{ "==", OP_EQ }, { "!=", OP_NE }, { ">=", OP_GE }, { "<=", OP_LE }, { "=", OP_EQ }, { ">", OP_GT }, { "<", OP_LT } };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		size_t len = strlen(all[i].text);

		if (r->len - r->next >= len && memcmp(r->text + r->next, all[i].text, len) == 0) {
			r->t = (struct token){ OPERATOR, r->next, len, all[i].op };
			r->next += len;
			return true;
		}
	}
	return false;
}

static void quoted(struct reading *r, char quote)
{
	const char *from = r->text + r->next + 1, *to = memchr(from, quote, r->len - r->next - 1);

	r->t = (struct token){ .kind = TEXT, .at = r->next, .len = to ? (size_t)(to - from) + 2 : 0 };
	if (!to)
		wrong(r, r->next, "this quote is not closed");
	r->next = to ? (size_t)(to + 1 - r->text) : r->len;
}

static void advance(struct reading *r)
{
	size_t from;

	while (r->next < r->len && (r->text[r->next] == ' ' || r->text[r->next] == '\t' || r->text[r->next] == '\n'))
		r->next++;
	from = r->next;
	r->t = (struct token){ .kind = END, .at = from };
	if (from == r->len || operator_at(r))
		return;
	if (r->text[from] == '(' || r->text[from] == ')') {
		r->t = (struct token){ .kind = r->text[from] == '(' ? OPEN : CLOSE, .at = from, .len = 1 };
		r->next++;
		return;
	}
	if (r->text[from] == '\'' || r->text[from] == '"') {
		quoted(r, r->text[from]);
		return;
	}
	while (r->next < r->len && is_word_byte(r->text[r->next]))
		r->next++;
	r->t = (struct token){ .kind = WORD, .at = from, .len = r->next - from };
	if (r->next == from) {
		r->next = r->len;
		wrong(r, from, "what is this? A test is FIELD=VALUE; tests are joined by and, or, not and parentheses");
	}
}

static bool is_word(const struct reading *r, const char *word)
{
	return r->t.kind == WORD && r->t.len == strlen(word) && strncasecmp(r->text + r->t.at, word, r->t.len) == 0;
}

/* A copy that can be compared; longer words are nobody's. */
static const char *copy(const struct reading *r, char buf[64])
{
	snprintf(buf, 64, "%.*s", (int)(r->t.len < 63 ? r->t.len : 63), r->text + r->t.at);
	return buf;
}

/* ── steps ── */

static struct predicate_step *step(struct reading *r, enum op op)
{
	if (r->p->count == PREDICATE_STEPS) {
		wrong(r, r->t.at, "this is too much: at most %d tests and words between them", PREDICATE_STEPS);
		return &r->spare;
	}
	r->p->steps[r->p->count] = (struct predicate_step){ .op = (uint8_t)op, .other = FACTS };
	return &r->p->steps[r->p->count++];
}

static int field_of(const struct reading *r)
{
	char name[64];

	copy(r, name);
	for (int i = 0; i < FACTS; i++)
		if (r->t.len < 63 && strcasecmp(fields[i], name) == 0)
			return i;
	return -1;
}

static bool number_of(const struct reading *r, uint64_t *n)
{
	*n = 0;
	for (size_t i = 0; i < r->t.len; i++) {
		char c = r->text[r->t.at + i];

		if (c < '0' || c > '9' || *n > (UINT64_MAX - 9) / 10)
			return false;
		*n = *n * 10 + (uint64_t)(c - '0');
	}
	return r->t.len > 0;
}

static void number_value(struct reading *r, struct predicate_step *s)
{
	int other = r->t.kind == WORD ? field_of(r) : -1;

	if (r->t.kind == WORD && number_of(r, &s->number))
		return;
	if (other >= FACT_REVISION)
		s->other = (uint8_t)other;
	else
		wrong(r, r->t.at, "%s is a number: compare it with one (3), or with revision, desired, restarts, mailbox or children",
		      fields[s->field]);
}

static void text_value(struct reading *r, struct predicate_step *s)
{
	size_t quote = r->t.kind == TEXT;
	char word[64];

	s->text = (uint16_t)(r->t.at + quote);
	s->len = (uint16_t)(r->t.len - 2 * quote);
	snprintf(word, sizeof word, "%.*s", s->len < 63 ? s->len : 63, r->text + s->text);
	for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++) {
		const char *near;

		if (closed[i].field != s->field)
			continue;
		for (size_t k = 0; k < closed[i].count; k++)
			if (s->len < 63 && strcmp(closed[i].words[k], word) == 0)
				return;
		near = cli_nearest(word, closed[i].words, closed[i].count);
		wrong(r, r->t.at, "%s is never \"%s\"%s%s%s", fields[s->field], word, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	}
}

static void test(struct reading *r)
{
	int field = r->t.kind == WORD ? field_of(r) : -1;
	size_t at = r->t.at;
	char name[64];
	struct predicate_step *s;

	if (field < 0) {
		const char *near = r->t.kind == WORD ? cli_nearest(copy(r, name), fields, FACTS) : NULL;

		if (r->t.kind == END)
			wrong(r, at, "something is missing here: FIELD=VALUE, such as state=active");
		else if (near)
			wrong(r, at, "there is no field \"%s\"; did you mean %s?", name, near);
		else
			wrong(r, at, "here a field is expected: %s", all_fields);
		return;
	}
	advance(r);
	if (r->t.kind != OPERATOR) {
		wrong(r, r->t.at, "behind %s comes one of = != >= <= > <", fields[field]);
		return;
	}
	if (field < FACT_REVISION && r->t.op != OP_EQ && (r->t.op != OP_NE || field == FACT_EVENT)) {
		wrong(r, r->t.at, "%s is compared by = %s", fields[field], field == FACT_EVENT ? "alone" : "and != alone");
		return;
	}
	s = step(r, r->t.op);
	s->field = (uint8_t)field;
	advance(r);
	if (r->t.kind != WORD && r->t.kind != TEXT)
		wrong(r, r->t.at, "a value is missing here: %s", field < FACT_REVISION ? "a word, or 'text in quotes'" : "a number");
	else if (field < FACT_REVISION)
		text_value(r, s);
	else
		number_value(r, s);
	advance(r);
}

static void all(struct reading *r);

static void part(struct reading *r)
{
	bool turned = false;

	for (; is_word(r, "not"); advance(r))
		turned = !turned;
	if (r->t.kind != OPEN) {
		test(r);
	} else {
		size_t at = r->t.at;

		if (++r->depth > PREDICATE_DEPTH)
			wrong(r, at, "more than %d parentheses inside each other", PREDICATE_DEPTH);
		advance(r);
		if (!r->bad)
			all(r);
		if (r->t.kind != CLOSE)
			wrong(r, at, "this parenthesis is not closed");
		advance(r);
		r->depth--;
	}
	if (turned && !r->bad)
		(void)step(r, OP_NOT);
}

static void one(struct reading *r)
{
	part(r);
	while (!r->bad && is_word(r, "and")) {
		advance(r);
		part(r);
		(void)step(r, OP_AND);
	}
}

static void all(struct reading *r)
{
	one(r);
	while (!r->bad && is_word(r, "or")) {
		advance(r);
		one(r);
		(void)step(r, OP_OR);
	}
}

bool predicate_read(struct predicate *p, const char *text, size_t *at, char *why, size_t size)
{
	struct reading r = { .p = p, .text = p->text, .len = strlen(text), .why = why, .size = size };

	p->count = 0;
	if (r.len > PREDICATE_MAX) {
		*at = PREDICATE_MAX;
		snprintf(why, size, "this is too long: at most %d bytes", PREDICATE_MAX);
		return false;
	}
	memcpy(p->text, text, r.len + 1);
	advance(&r);
	if (!r.bad)
		all(&r);
	if (r.t.kind != END)
		wrong(&r, r.t.at, "here comes and, or, or the end");
	*at = r.place;
	return !r.bad;
}

/* ── trying it ── */

static bool text_is(const struct predicate *p, const struct predicate_step *s, const char *text)
{
	return strlen(text) == s->len && memcmp(text, p->text + s->text, s->len) == 0;
}

static bool compare(enum op op, uint64_t a, uint64_t b)
{
	switch (op) {
	case OP_EQ: return a == b;
	case OP_NE: return a != b;
	case OP_GE: return a >= b;
	case OP_LE: return a <= b;
	case OP_GT: return a > b;
	default: return a < b;
	}
}

static bool try(const struct predicate *p, const struct predicate_step *s, const struct predicate_facts *f)
{
	if (s->field == FACT_EVENT)
		return s->seen;
	if (s->field < FACT_REVISION)
		return text_is(p, s, f->text[s->field]) == (s->op == OP_EQ);
	return compare((enum op)s->op, f->number[s->field], s->other < FACTS ? f->number[s->other] : s->number);
}

bool predicate_holds(const struct predicate *p, const struct predicate_facts *facts)
{
	bool stack[PREDICATE_STEPS + 1] = { false };
	unsigned n = 0;

	for (unsigned i = 0; i < p->count; i++) {
		const struct predicate_step *s = &p->steps[i];

		if (s->op == OP_NOT) {
			stack[n - 1] = !stack[n - 1];
		} else if (s->op == OP_AND || s->op == OP_OR) {
			n--;
			stack[n - 1] = s->op == OP_AND ? stack[n - 1] && stack[n] : stack[n - 1] || stack[n];
		} else {
			stack[n++] = try(p, s, facts);
		}
	}
	return n == 1 && stack[0];
}

void predicate_event(struct predicate *p, const char *kind)
{
	for (unsigned i = 0; i < p->count; i++)
		if (p->steps[i].op == OP_EQ && p->steps[i].field == FACT_EVENT && text_is(p, &p->steps[i], kind))
			p->steps[i].seen = true;
}
