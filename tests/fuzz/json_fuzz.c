/* tests/fuzz/json_fuzz.c - any bytes as the body of a request: taken or refused with a sentence, never read beyond the
 * end. What is taken can be walked, read as every form of the API, given to every JSON hook; and what is written of it
 * is JSON again. Where jansson is installed it must agree on what is JSON, but for numbers and depths it cannot take. */
#include "net/rest.h"

#include "core/must.h"
#include "noh_actors.h"

#include <stdlib.h>
#include <string.h>
#if __has_include(<jansson.h>)
#include <jansson.h>
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void walk(noh_json v, int depth)
{
	noh_json_walk at = { NULL };
	noh_json name, value;
	int64_t n;
	char text[32];

	must(depth < NOH_JSON_DEPTH);
	while (noh_json_next(v, &at, &name, &value)) {
		noh_json_type type = noh_json_type_of(value);

		must(value.at >= v.at && value.at + value.len < v.at + v.len);
		if (type == NOH_JSON_OBJECT || type == NOH_JSON_ARRAY)
			walk(value, depth + 1);
		else if (type == NOH_JSON_STRING)
			(void)noh_json_text(value, text, sizeof text), (void)noh_json_time(value, &n);
		else if (type == NOH_JSON_NUMBER)
			(void)noh_json_int(value, &n);
	}
}

/* Every value by itself is JSON, too; and as text it comes back as it was. */
static void again(noh_json v)
{
	size_t room = 6 * v.len + 3;
	char *quoted = malloc(room), *back = malloc(v.len + 1);
	noh_json_out o = { .at = quoted, .room = room };
	noh_json whole;

	must(quoted && back && noh_json_check(v.at, v.len, &whole) == NOH_OK && whole.len == v.len);
	noh_json_put_text(&o, NULL, v.at, v.len);
	must(o.len <= room && noh_json_check(quoted, o.len, &whole) == NOH_OK);
	must(noh_json_text(whole, back, v.len + 1) == v.len && memcmp(back, v.at, v.len) == 0);
	free(quoted);
	free(back);
}

static void hooks(noh_json v)
{
	static const char *const names[] = { "get", "incr", "decr", "set", "expire", "delete", "restock", "reserve", "commit", "holds",
					    "list", "cancel", "clear" };
	const noh_type *types[] = { noh_counter_type(), noh_inventory_type(), noh_later_type() };

	for (size_t t = 0; t < 3; t++)
		for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
			uint64_t body[32];
			noh_json_message m = { .type = names[i], .json = v.at, .json_len = v.len, .body = body, .room = sizeof body };

			if (types[t]->from_json(NULL, &m) == NOH_OK)
				must(m.len <= sizeof body && m.kind < 8);
		}
}

static void agree(const char *text, size_t len, bool taken)
{
#ifdef JANSSON_VERSION
	json_error_t e;
	json_t *other = json_loadb(text, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);

	if (taken)
		must(other || json_error_code(&e) == json_error_numeric_overflow);
	else                                     /* a NUL byte is the end of the text to it */
		must(!other || strstr(noh_why(), "too deep") || memchr(text, 0, len));
	json_decref(other);
#else
	(void)text, (void)len, (void)taken;
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len ? len : 1);      /* exactly as long: a byte too far is seen */
	noh_json_got got[REST_FIELDS_MAX];
	noh_json v;

	must(text);
	if (len)
		memcpy(text, data, len);
	bool taken = noh_json_check(text, len, &v) == NOH_OK;

	agree(text, len, taken);
	if (taken) {
		if (*v.at == '{' || *v.at == '[')
			walk(v, 0);
		again(v);
		hooks(v);
		for (int i = 0; i < FORMS; i++)
			(void)json_fields(v, rest_forms[i].fields, rest_forms[i].count, got);
	} else {
		must(strncmp(noh_why(), "not JSON", 8) == 0);
	}
	free(text);
	return 0;
}
