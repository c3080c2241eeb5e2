/* tests/fuzz/log_fuzz.c - any bytes as a line of the log and as a trace: one line comes out, printable and whole; what is
 * read as a trace is written as it was. Input: traceparent, NUL, tracestate, NUL, actor, NUL, message. */
#include "core/log_text.h"
#include "core/must.h"
#include "core/trace.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void one_line(const char *text, size_t n, bool json)
{
	bool inside = false;

	must(n > 0 && n <= LOG_LINE_MAX && text[n - 1] == '\n');
	for (size_t i = 0; i + 1 < n; i++) {
		must((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
		if (json && inside && text[i] == '\\')
			i++;
		else if (json && text[i] == '"')
			inside = !inside;
	}
	must(!inside);
}

static void as_trace(const char *parent, size_t len)
{
	char again[TRACE_PARENT_LEN + 1];
	struct trace t, back;

	if (!trace_parse(parent, len, &t))
		return;
	t.span = t.parent;
	trace_write(&t, again);
	must(trace_parse(again, TRACE_PARENT_LEN, &back));
	must(back.hi == t.hi && back.lo == t.lo && back.parent == t.parent && back.flags == t.flags);
	must(memcmp(again + 3, parent + 3, 50) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *copy = malloc(len + 1), *field[4], line[LOG_LINE_MAX];
	noh_log_line l = { .level = NOH_WARN, .type = "", .msg_id = "", .trace_id = "", .span_id = "", .shard = 1 };
	char *at = copy;

	if (!copy)
		return 0;
	if (len)
		memcpy(copy, data, len);
	copy[len] = 0;
	for (int i = 0; i < 4; i++) {
		field[i] = at;
		at += strlen(at);
		at += at < copy + len;
	}
	as_trace(field[0], strlen(field[0]));
	if (trace_state_ok(field[1], strlen(field[1])))
		must(strlen(field[1]) <= TRACE_STATE_MAX && !strpbrk(field[1], "\r\n"));
	l.trace_id = l.type = field[1];
	l.actor = field[2];
	l.msg = field[3];
	one_line(line, log_text(line, &l, LOG_TEXT, len & 1, 1, len & 2), false);
	one_line(line, log_text(line, &l, LOG_JSON, len & 1, 1, len & 2), true);
	free(copy);
	return 0;
}
