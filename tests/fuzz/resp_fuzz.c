/* tests/fuzz/resp_fuzz.c - any bytes as a client's: read in pieces as in one, each command run against a fake
 * connection whose actors answer anything, and every reply is whole. */
#include "tests/net/fake_net.c"

#include "core/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct resp_limits limits = { .args = 300, .arg_bytes = 4096, .command_bytes = 16384, .inline_bytes = 2048 };

/* The end of the reply at p, or NULL: it is not whole. */
static const char *reply_end(const char *p, const char *end, int depth)
{
	const char *line = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;

	if (line == NULL || line - p < 2 || line[-1] != '\r' || depth > 6)
		return NULL;
	long n = strtol(p + 1, NULL, 10);
	char mark = *p;

	switch (mark) {
	case '+': case '-': case ':': case '_': case '#': case ',':
		return memchr(p, '\r', (size_t)(line - p - 1)) ? NULL : line + 1;
	case '$': case '=':
		return n < 0 ? line + 1 : end - line - 1 < n + 2 ? NULL : line + 1 + n + 2;
	case '*': case '~': case '>': case '%':
		p = line + 1;
		for (long i = 0; p && i < n * (mark == '%' ? 2 : 1); i++)
			p = reply_end(p, end, depth + 1);
		return p;
	default:
		return NULL;
	}
}

/* The actors' answers: a status or a body of any length, out of the input itself. */
static void answer(const uint8_t *data, size_t len)
{
	static _Alignas(8) char bodies[FAKE_PARTS][64];
	static struct reply_part parts[FAKE_PARTS];
	static const uint32_t lengths[] = { 16, 24, 32, 56, 40, 64, 0, 7 };

	must(fake.requests >= 1 && fake.requests <= FAKE_PARTS);
	for (uint32_t i = 0; i < fake.requests; i++) {
		uint8_t how = len ? data[i % len] : 0;

		for (size_t j = 0; j < sizeof bodies[i]; j++)
			bodies[i][j] = (char)(how & 64 && len ? data[(i + j) % len] : 0);
		parts[i] = (struct reply_part){ how & 128 ? -(how & 31) : NOH_OK, how & 128 ? how & 63u : lengths[how & 7],
					  bodies[i] };
	}
	fake_answer(parts, fake.requests);
}

static void run(struct resp_reader *r, char *bytes, const uint8_t *data, size_t len)
{
	struct arg argv[300];

	must(r->argc >= 1 && r->argc <= limits.args);
	for (uint32_t i = 0; i < r->argc; i++)
		argv[i] = resp_arg(r, bytes, i);
	fake_run_args(argv, r->argc);
	if (fake.format) {
		must(fake.out.len == 0);
		answer(data, len);
	}
	must(!fake.out.failed);
	if (fake.out.len == 0) {
		must(fake.muted || fake.shutdowns);      /* CLIENT REPLY and SHUTDOWN say nothing */
		return;
	}
	must(reply_end(fake.out.bytes, fake.out.bytes + fake.out.len, 0) == fake.out.bytes + fake.out.len);
}

/* Reads all of it; the bytes arrive `piece` at a time. Returns a number for all that was read. */
static uint64_t read_all(const uint8_t *data, size_t len, size_t piece, bool running)
{
	struct resp_reader r;
	uint64_t sum = 1;
	size_t taken = 0, there = 0;
	char *bytes = malloc(len ? len : 1);

	must(bytes);
	if (len)
		memcpy(bytes, data, len);
	resp_open(&r);
	while (there < len) {
		there = len - there < piece ? len : there + piece;
		for (;;) {
			enum resp_result result = resp_read(&r, bytes + taken, there - taken, &limits);

			if (result == RESP_MORE)
				break;
			sum = sum * 31 + (uint64_t)result;
			if (result == RESP_BAD) {
				must(strncmp(r.why, "Protocol error: ", 16) == 0);
				goto done;
			}
			for (uint32_t i = 0; i < r.argc; i++) {
				struct arg a = resp_arg(&r, bytes + taken, i);

				must(a.at >= bytes + taken && a.at + a.len <= bytes + there);
				for (uint32_t j = 0; j < a.len; j++)
					sum = sum * 31 + (uint8_t)a.at[j];
				sum = sum * 31 + a.len;
			}
			if (running && result == RESP_COMMAND && !fake.session.closing)
				run(&r, bytes + taken, data, len);
			size_t took = resp_next(&r);

			must(took > 0 && took <= there - taken);
			taken += took;
		}
	}
done:
	resp_close(&r);
	free(bytes);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	fake_open(NOH_ADMIN);
	fake.accounts = len & 1;
	uint64_t sum = read_all(data, len, len ? len : 1, true);

	must(read_all(data, len, 1, false) == sum);
	must(read_all(data, len, 7, false) == sum);
	fake_close();
	fake.out = (struct out){ 0 };
	return 0;
}
