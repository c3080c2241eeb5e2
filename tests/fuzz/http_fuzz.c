/* tests/fuzz/http_fuzz.c - any bytes as requests of HTTP: read in pieces as in one, within its limits, and nothing kept
 * that is not needed. */
#include "core/must.h"
#include "net/http_read.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct http_limits limits = { .head_bytes = 512, .fields = 8, .body_bytes = 256 };

static uint64_t add(uint64_t sum, const struct resp_place *p, const char *bytes, size_t len)
{
	must((uint64_t)p->at + p->len <= len);
	for (uint32_t i = 0; i < p->len; i++)
		sum = sum * 31 + (uint8_t)bytes[p->at + i];
	return sum * 31 + p->len;
}

static void check_request(const struct http_reader *r, const char *bytes)
{
	must(r->method.len > 0 && r->path.len > 0 && bytes[r->path.at] == '/');
	must(r->body.len <= limits.body_bytes && r->fields <= limits.fields);
	must(!(r->chunked && r->has_length));
	must(r->http_1_0 || r->seen & 1u << FIELD_HOST);
	for (uint32_t i = 0; i < r->path.len; i++)
		must((uint8_t)bytes[r->path.at + i] >= ' ');
	for (int k = 0; k < HTTP_FIELDS; k++)
		for (uint32_t i = 0; i < r->field[k].len; i++)
			must((uint8_t)bytes[r->field[k].at + i] >= ' ' || bytes[r->field[k].at + i] == '\t');
}

/* The bytes arrive `piece` at a time, into a buffer as long as what has to be there. Returns a number for all that was
 * read. */
static uint64_t read_all(const uint8_t *data, size_t len, size_t piece, bool drop)
{
	struct http_reader r;
	uint64_t sum = 1;
	size_t held = 0;
	char *bytes = NULL;

	http_open(&r);
	for (size_t from = 0, some; from < len; from += some) {
		size_t taken = 0, there;

		some = len - from < piece ? len - from : piece;
		bytes = realloc(bytes, held + some);
		must(bytes);
		memcpy(bytes + held, data + from, some);
		there = held + some;
		while (taken < there) {
			size_t rest = there - taken;
			char *at = bytes + taken;
			enum http_result result = http_read(&r, at, &rest, &limits);

			if (result == HTTP_MORE) {
				must(rest <= there - taken && rest <= limits.head_bytes + limits.body_bytes);
				there = taken + rest;
				break;
			}
			if (result == HTTP_BAD) {
				must(r.status >= 400 && r.status < 600 && r.code && r.why);
				sum = sum * 31 + (uint64_t)r.status;
				free(bytes);
				return sum;
			}
			if (result == HTTP_HEAD_READ) {
				if (drop)
					http_drop_body(&r);
				continue;
			}
			check_request(&r, at);
			sum = add(sum, &r.method, at, there - taken);
			sum = add(sum, &r.path, at, there - taken);
			sum = add(sum, &r.query, at, there - taken);
			for (int i = 0; i < HTTP_FIELDS; i++)
				sum = add(sum, &r.field[i], at, there - taken);
			sum = add(sum, &r.body, at, there - taken);
			size_t took = http_next(&r);

			must(took > 0 && took <= there - taken);
			taken += took;
		}
		held = there - taken;
		memmove(bytes, bytes + taken, held);
	}
	free(bytes);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t sum = read_all(data, len, len ? len : 1, false), dropped = read_all(data, len, len ? len : 1, true);

	must(read_all(data, len, 1, false) == sum);
	must(read_all(data, len, 7, false) == sum);
	must(read_all(data, len, 3, true) == dropped);
	return 0;
}
