/* tests/fuzz/json_fuzz.c - any bytes as the body of a request: taken or refused with a sentence, never read beyond the
 * end. What is taken can be walked, read as every form of the API, given to every JSON hook; and what is written of it
 * is JSON again. */
#include "net/rest.h"

#include "core/must.h"
#include "noh_actors.h"

#include <stdlib.h>
#include <string.h>

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
	static const char *const names[] = { "get", "incr", "decr", "set", "expire", "delete", "restock", "reserve", "commit", "holds" };
	const noh_type *types[] = { noh_counter_type(), noh_inventory_type() };

	for (size_t t = 0; t < 2; t++)
		for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
			uint64_t body[32];
			noh_json_message m = { .type = names[i], .json = v.at, .json_len = v.len, .body = body, .room = sizeof body };

			if (types[t]->from_json(NULL, &m) == NOH_OK)
				must(m.len <= sizeof body && m.kind < 8);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len ? len : 1);      /* exactly as long: a byte too far is seen */
	noh_json_got got[REST_FIELDS_MAX];
	noh_json v;

	must(text);
	if (len)
		memcpy(text, data, len);
	if (noh_json_check(text, len, &v) == NOH_OK) {
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
