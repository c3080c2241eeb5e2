/* bench/load_main.c - noh bench load: the command line. */
#include "bench/load.h"
#include "tools/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void usage(void)
{
	printf("usage: noh bench load [options]\n"
	       "\n"
	       "Puts load on a RESP server (noh, Redis, Valkey), checks every reply, and shows throughput, latency\n"
	       "and the server's CPU time. Exit 0: all requests were answered as they should be.\n"
	       "\n"
	       "the server\n"
	       "  --host NAME --port N   where it is (127.0.0.1, 7411)       --unix PATH     or its Unix socket\n"
	       "  --auth USER:TOKEN      AUTH first; or --auth TOKEN         --server-pid N  show its CPU, memory\n"
	       "  --dialect noh|redis    which commands reserve-commit and flash-sale use\n"
	       "how much\n"
	       "  --connections N        (50)                                --pipeline P    requests in a batch (1)\n"
	       "  --seconds S            (5)                                 --warmup S      before, not counted (1)\n"
	       "  --requests N           instead of a time: exactly so many, all counted\n"
	       "  --rate R               open loop: R requests/s, each begun when intended even if the server cannot\n"
	       "                         keep up; latency counts from the intended start. Without it a connection\n"
	       "                         sends its next batch when the last one is answered\n"
	       "  --threads N            of the generator (1)\n"
	       "what\n"
	       "  --mix incr|get|set|ping                one command\n"
	       "        reserve-commit   half INV.RESERVE, half INV.COMMIT of what was reserved (--dialect redis:\n"
	       "                         scripts of the same meaning by EVALSHA); one operation is one command\n"
	       "        flash-sale       --requests orders (twice the units) for --units N (10k) of one SKU, each\n"
	       "                         with its idempotency key; counts winners, checks the stock afterwards\n"
	       "        pubsub           --connections subscribers, --publishers N (1), --payload BYTES (64); an\n"
	       "                         operation is a delivered message\n"
	       "  --reads SHARE          of incr or set: this share are GETs, 0 to 1\n"
	       "  --keys N               (1M)             --key-bytes B --prefix TEXT    how they look (12, k or s)\n"
	       "  --dist uniform         every key alike; or zipf[:s] (0.99); or hot[:share]: one key with this\n"
	       "                         share (1); or seq: one after the other, for loading\n"
	       "  --idem                 reservations with idempotency keys  --ttl S         of reservations (600)\n"
	       "  --holds N              left open on each SKU beforehand    --no-prepare    do not restock first\n"
	       "and\n"
	       "  --io auto|uring|epoll  --seed N (1)                        --patience S    without an answer (10)\n"
	       "  --retry S              when a connection is lost connect again, for so long, and repeat what was\n"
	       "                         not answered (exactly once only with idempotency keys)\n"
	       "  --json                 one JSON object, times in microseconds\n"
	       "\n"
	       "  noh bench load --mix incr --pipeline 16 --server-pid $(pidof noh)\n"
	       "  noh bench load --mix incr --rate 50k --dist zipf --seconds 30\n"
	       "  noh bench load --mix flash-sale --units 10k --connections 200 --retry 60\n"
	       "  noh bench load --port 6379 --dialect redis --mix reserve-commit --keys 100k\n");
}

LOAD_PRINTF(1, 2) static int usage_error(const char *format, ...)
{
	char message[400];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(message, sizeof message, format, args);
	va_end(args);
	bool question = n > 0 && n < (int)sizeof message && message[n - 1] == '?';
	fprintf(stderr, "noh bench load: %s%s\n", message, question ? "" : "; see noh bench load --help");
	return CLI_USAGE;
}

/* ── options: one table ───────────────────────────────────────────────────────────────────── */
enum option_kind { NUMBER, REAL, TEXT, FLAG, CHOICE, SPECIAL };

struct option {
	const char      *name;
	enum option_kind kind;
	size_t           offset, size;
	double           min, max;
	const char      *choices;      /* "a|b|c": the value is the number of the word */
};

#define AT(field) offsetof(struct load_plan, field), sizeof(((struct load_plan *)0)->field)
static const struct option options[] = {
	{ "host", TEXT, AT(host), 0, 0, NULL },
	{ "unix", TEXT, AT(unix_path), 0, 0, NULL },
	{ "prefix", TEXT, AT(prefix), 0, 0, NULL },
	{ "port", NUMBER, AT(port), 1, 65535, NULL },
	{ "connections", NUMBER, AT(connections), 1, LOAD_MOST_CONNECTIONS, NULL },
	{ "publishers", NUMBER, AT(publishers), 1, 1000, NULL },
	{ "pipeline", NUMBER, AT(pipeline), 1, LOAD_MOST_PIPELINE, NULL },
	{ "threads", NUMBER, AT(threads), 1, LOAD_MOST_THREADS, NULL },
	{ "requests", NUMBER, AT(requests), 1, 1e15, NULL },
	{ "rate", NUMBER, AT(rate), 1, 1e9, NULL },
	{ "keys", NUMBER, AT(keys), 1, 4e9, NULL },
	{ "key-bytes", NUMBER, AT(key_bytes), 1, LOAD_KEY - 1, NULL },
	{ "payload", NUMBER, AT(payload), LOAD_STAMP, LOAD_PAYLOAD, NULL },
	{ "ttl", NUMBER, AT(ttl), 1, 1e9, NULL },
	{ "holds", NUMBER, AT(holds), 0, 1e9, NULL },
	{ "units", NUMBER, AT(units), 1, 1e12, NULL },
	{ "seed", NUMBER, AT(seed), 0, 1e15, NULL },
	{ "server-pid", NUMBER, AT(server_pid), 1, 1 << 30, NULL },
	{ "seconds", REAL, AT(seconds), 0.001, 1e6, NULL },
	{ "warmup", REAL, AT(warmup), 0, 1e6, NULL },
	{ "patience", REAL, AT(patience), 0.1, 1e6, NULL },
	{ "retry", REAL, AT(retry), 0, 1e6, NULL },
	{ "reads", REAL, AT(reads), 0, 1, NULL },
	{ "idem", FLAG, AT(idem), 1, 0, NULL },
	{ "no-prepare", FLAG, AT(prepare), 0, 0, NULL },
	{ "json", FLAG, AT(json), 1, 0, NULL },
	{ "mix", CHOICE, AT(mix), 0, 0, "incr|get|set|ping|reserve-commit|flash-sale|pubsub" },
	{ "dialect", CHOICE, AT(dialect), 0, 0, "noh|redis" },
	{ "io", CHOICE, AT(io), 0, 0, "auto|uring|epoll" },
	{ "dist", SPECIAL, 0, 0, 0, 0, "uniform|zipf|hot|seq" },
	{ "auth", SPECIAL, 0, 0, 0, 0, NULL },
	{ "help", SPECIAL, 0, 0, 0, 0, NULL },
};
enum { OPTIONS = sizeof options / sizeof options[0] };

static int choose(const char *choices, const char *word, size_t len)
{
	int number = 0;

	for (const char *at = choices; *at != '\0'; number++) {
		size_t n = strcspn(at, "|");

		if (n == len && memcmp(at, word, n) == 0)
			return number;
		at += n + (at[n] == '|');
	}
	return -1;
}

static bool real(const char *value, double min, double max, double *out)
{
	char *end;

	*out = strtod(value, &end);
	return end != value && *end == '\0' && *out >= min && *out <= max;
}

static int set_dist(struct load_plan *plan, const char *value, const char *choices)
{
	size_t len = strcspn(value, ":");
	int kind = choose(choices, value, len);

	if (kind < 0)
		return usage_error("--dist takes one of %s, not \"%s\"", choices, value);
	plan->dist = (enum keys_kind)kind;
	plan->dist_parameter = kind == KEYS_ZIPF ? 0.99 : 1;
	if (value[len] == '\0')
		return CLI_FINE;
	if (kind == KEYS_ZIPF && real(value + len + 1, 0.01, 20, &plan->dist_parameter))
		return CLI_FINE;
	if (kind == KEYS_HOT && real(value + len + 1, 0, 1, &plan->dist_parameter))
		return CLI_FINE;
	return usage_error("--dist zipf:s takes an s from 0.01 to 20 and hot:share a share from 0 to 1, not \"%s\"",
			   value);
}

static int set_auth(struct load_plan *plan, char *value)
{
	char *colon = strchr(value, ':');

	plan->user = colon != NULL ? value : NULL;
	plan->token = colon != NULL ? colon + 1 : value;
	if (colon != NULL)
		*colon = '\0';
	return CLI_FINE;
}

static int set_number(struct load_plan *plan, const struct option *o, const char *value)
{
	char *field = (char *)plan + o->offset;
	uint64_t n;

	if (!cli_number(value, (uint64_t)o->min, (uint64_t)o->max, &n))
		return usage_error("--%s takes a number from %.0f to %.0f, not \"%s\"", o->name, o->min, o->max,
				   value);
	if (o->size == sizeof(uint64_t))
		*(uint64_t *)(void *)field = n;
	else
		*(unsigned *)(void *)field = (unsigned)n;
	return CLI_FINE;
}

static int set_value(struct load_plan *plan, const struct option *o, const char *value)
{
	char *field = (char *)plan + o->offset;

	switch (o->kind) {
	case NUMBER:
		return set_number(plan, o, value);
	case TEXT:
		*(const char **)(void *)field = value;
		return CLI_FINE;
	case REAL:
		if (real(value, o->min, o->max, (double *)(void *)field))
			return CLI_FINE;
		return usage_error("--%s takes a number from %g to %g, not \"%s\"", o->name, o->min, o->max,
				   value);
	case CHOICE: {
		int n = choose(o->choices, value, strlen(value));

		if (n < 0)
			return usage_error("--%s takes one of %s, not \"%s\"", o->name, o->choices, value);
		*(unsigned *)(void *)field = (unsigned)n;
		return CLI_FINE;
	}
	default:
		return strcmp(o->name, "dist") == 0 ? set_dist(plan, value, o->choices)
						    : set_auth(plan, (char *)(uintptr_t)value);
	}
}

static int unknown_option(const char *name)
{
	const char *names[OPTIONS];

	for (unsigned i = 0; i < OPTIONS; i++)
		names[i] = options[i].name;
	const char *near = cli_nearest(name, names, OPTIONS);

	if (near != NULL)
		return usage_error("there is no option --%s; did you mean --%s?", name, near);
	return usage_error("there is no option --%s", name);
}

static int set_option(struct load_plan *plan, struct cli_args *args)
{
	const struct option *o = NULL;

	for (unsigned i = 0; i < OPTIONS && o == NULL; i++)
		if (strcmp(options[i].name, args->name) == 0)
			o = &options[i];
	if (o == NULL)
		return unknown_option(args->name);
	if (strcmp(o->name, "help") == 0)
		return -1;
	if (o->kind == FLAG) {
		if (args->value != NULL)
			return usage_error("--%s takes no value", o->name);
		*(bool *)((char *)plan + o->offset) = o->min > 0;
		return CLI_FINE;
	}
	const char *value = cli_value(args);

	return value != NULL ? set_value(plan, o, value) : usage_error("--%s needs a value", o->name);
}

/* ── what does not go together ────────────────────────────────────────────────────────────── */
static unsigned digits_of(uint64_t n)
{
	return n < 10 ? 1 : 1 + digits_of(n / 10);
}

static int check(struct load_plan *p)
{
	bool stock = p->mix == MIX_RESERVE || p->mix == MIX_SALE;

	if (p->prefix == NULL)
		p->prefix = stock ? "s" : "k";      /* in Redis a key has one type, whoever comes first */
	size_t prefix = strlen(p->prefix);

	if (p->reads > 0 && p->mix != MIX_INCR && p->mix != MIX_SET)
		return usage_error("--reads goes with --mix incr and set");
	if (p->mix == MIX_PUBSUB && p->threads > 1)
		return usage_error("--mix pubsub runs on one thread");
	size_t least = prefix + digits_of(p->keys - 1);

	if (least > p->key_bytes || p->key_bytes > prefix + 20)
		return usage_error("%llu keys with the prefix \"%s\" need --key-bytes from %zu to %zu",
				   (unsigned long long)p->keys, p->prefix, least, prefix + 20);
	if ((p->holds > 0 && p->mix != MIX_RESERVE) || (p->idem && !stock))
		return usage_error("--holds and --idem go with --mix reserve-commit");
	if (p->mix == MIX_SALE && p->requests == 0)
		p->requests = 2 * p->units;
	if (p->requests > 0)
		p->warmup = 0;
	if (p->threads > p->connections)
		p->threads = p->connections;
	return CLI_FINE;
}

int load_parse(int argc, char **argv, struct load_plan *plan)
{
	struct cli_args args = { .count = argc, .at = 1, .words = argv };
	size_t len;

	*plan = (struct load_plan){ .host = "127.0.0.1", .port = 7411, .connections = 50, .publishers = 1,
				    .pipeline = 1, .threads = 1, .seconds = 5, .warmup = 1, .patience = 10,
				    .keys = 1000000, .key_bytes = 12, .payload = 64, .ttl = 600,
				    .units = 10000, .seed = 1, .prepare = true, .dist_parameter = 1 };
	len = (size_t)snprintf(plan->command, sizeof plan->command, "noh bench");
	for (int i = 0; i < argc && len < sizeof plan->command; i++) {
		bool secret = i > 0 && strcmp(argv[i - 1], "--auth") == 0;

		if (strncmp(argv[i], "--auth=", 7) != 0)
			len += (size_t)snprintf(plan->command + len, sizeof plan->command - len, " %s",
						secret ? "..." : argv[i]);
	}
	while (cli_next(&args)) {
		int rc = args.name != NULL ? set_option(plan, &args)
					   : usage_error("\"%s\" is no option", args.value);

		if (rc != CLI_FINE)
			return rc;
	}
	return check(plan);
}

int load_main(int argc, char **argv)
{
	struct load_plan plan;
	int rc = load_parse(argc, argv, &plan);

	if (rc == -1) {
		usage();
		return CLI_FINE;
	}
	if (rc != CLI_FINE)
		return rc;
	struct load_result *r = malloc(sizeof *r);

	if (r == NULL) {
		fprintf(stderr, "noh bench load: no memory\n");
		return CLI_FAILED;
	}
	if (load_run(&plan, r)) {
		if (plan.json)
			load_report_json(&plan, r);
		else
			load_report(&plan, r);
	}
	rc = r->failure[0] == '\0' && r->errors == 0 ? CLI_FINE : CLI_FAILED;
	if (r->failure[0] != '\0')
		fprintf(stderr, "noh bench load: %s\n", r->failure);
	else if (r->errors > 0)
		fprintf(stderr, "noh bench load: %llu of %llu replies were errors; the first: %s\n",
			(unsigned long long)r->errors, (unsigned long long)r->replies, r->first_error);
	free(r);
	return rc;
}
