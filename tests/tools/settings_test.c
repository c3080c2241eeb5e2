/* tests/tools/settings_test.c - settings: which place wins, what a value means, what a file may do to us; and the
 * accounts file. */
#include "noh_actors.h"
#include "tests/lib/test.h"
#include "tools/accounts.h"
#include "tools/settings.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ── what was said ── */

static char said[16384];
static unsigned wrongs, warnings;

static void listen_to(void *user, bool wrong, const char *sentence)
{
	size_t at = strlen(said);

	(void)user;
	*(wrong ? &wrongs : &warnings) += 1;
	snprintf(said + at, sizeof said - at, "%s\n", sentence);
}

static struct settings s;
static char *nothing[] = { NULL };

static void begin(void)
{
	said[0] = 0;
	wrongs = warnings = 0;
	settings_init(&s, listen_to, NULL);
}

static bool parse(const char *text)
{
	begin();
	return settings_parse(&s, "f", text, strlen(text));
}

static bool flags(const char *line)
{
	static char words[512];
	char *argv[32], *rest = words;
	struct cli_args args = { .words = argv };
	bool known = true;

	snprintf(words, sizeof words, "%s", line);
	while ((argv[args.count] = strtok_r(rest, " ", &rest)) != NULL)
		args.count++;
	while (known && cli_next(&args))
		known = args.name && settings_flag(&s, &args);
	return known;
}

static bool says(const char *part) { return strstr(said, part) != NULL; }
static bool is(enum setting_id id, const char *text) { return strcmp(settings_text(&s, id), text) == 0; }
static bool from(enum setting_id id, const char *where) { return strcmp(settings_origin(&s, id), where) == 0; }

static bool lines_are_sentences(void)
{
	unsigned lines = 0;

	for (const char *c = said; *c; c++)
		lines += *c == '\n';
	return lines == wrongs + warnings;
}

/* ── places ── */

static void every_default_is_a_value_of_its_own_setting(void)
{
	begin();
	EXPECT_EQ(wrongs, 0);
	EXPECT(settings_check(&s));
	EXPECT_EQ(settings_number(&s, SET_JOURNAL), 256 << 20);
	EXPECT_EQ(settings_number(&s, SET_IDEM_KEEP), 24 * 3600 * 1000);
	EXPECT_EQ(settings_number(&s, SET_ACTOR_IDLE), noh_counter_type()->idle_timeout_ms);
	EXPECT_EQ(settings_number(&s, SET_ACTOR_MAILBOX), noh_counter_type()->mailbox_capacity);
	EXPECT_EQ(settings_number(&s, SET_ACTOR_MAILBOX), noh_inventory_type()->mailbox_capacity);
	EXPECT(from(SET_BIND, "default") && !settings_given(&s, SET_BIND));
	EXPECT_EQ(settings_number(&s, SET_HTTP_PORT), 5012);
	settings_free(&s);
}

static void names_are_used_once(void)
{
	char a[64], b[64];

	for (unsigned i = 0; i < SETTINGS; i++) {
		const struct setting *t = &settings_table[i];

		EXPECT(t->section && t->key && t->preset && t->help && t->help[strlen(t->help) - 1] == '.');
		EXPECT(!t->secret || !t->flag);
		settings_env_name(i, a, sizeof a);
		for (unsigned j = 0; j < i; j++) {
			settings_env_name(j, b, sizeof b);
			EXPECT(strcmp(a, b) != 0);
			EXPECT(!t->flag || !settings_table[j].flag || strcmp(t->flag, settings_table[j].flag) != 0);
		}
	}
}

static void a_flag_beats_the_environment_which_beats_the_file(void)
{
	char path[] = "/tmp/noh-settings-XXXXXX";
	char *environment[] = { "NOH_NET_RESP_PORT=2", "NOH_NET_MAX_ARGS=200", "NOH_NET_UNIX=", NULL };
	char option[64], where[64];
	int fd = mkstemp(path);

	begin();
	EXPECT(dprintf(fd, "[net]\nresp_port = 1\nmax_args = 100\nmax_pipeline = 10\nunix = /u\n") > 0);
	snprintf(option, sizeof option, "--resp-port 3 --config %s", path);
	EXPECT(flags(option));
	EXPECT(settings_load(&s, environment));
	EXPECT(is(SET_RESP_PORT, "3") && from(SET_RESP_PORT, "--resp-port"));
	EXPECT(is(SET_MAX_ARGS, "200") && from(SET_MAX_ARGS, "NOH_NET_MAX_ARGS"));
	snprintf(where, sizeof where, "%s:4", path);
	EXPECT(is(SET_MAX_PIPELINE, "10") && from(SET_MAX_PIPELINE, where));
	EXPECT(is(SET_UNIX, "/u"));                                  /* empty: as if it were not set */
	EXPECT(from(SET_BIND, "default"));

	struct settings again;

	EXPECT(ftruncate(fd, 0) == 0 && pwrite(fd, "[net]\nmax_args = 300\nresp_port = 9\n", 35, 0) == 35);
	EXPECT(settings_reload(&again, &s, listen_to, NULL, nothing));
	EXPECT_EQ(settings_number(&again, SET_RESP_PORT), 3);        /* the flag is still there */
	EXPECT_EQ(settings_number(&again, SET_MAX_ARGS), 300);
	EXPECT_EQ(settings_number(&again, SET_MAX_PIPELINE), 4096);
	settings_free(&again);
	settings_free(&s);
	close(fd);
	unlink(path);
}

static void names_of_other_systems_are_understood(void)
{
	char *environment[] = { "ACTOR_NODE_ID=n1", "ACTOR_MAX_PER_NODE=1000", "ACTOR_DEFAULT_IDLE_TIMEOUT_SECONDS=60",
				"ACTOR_DEFAULT_MAILBOX_CAPACITY=50", "ACTOR_MODE=local", NULL };

	begin();
	EXPECT(settings_environment(&s, environment) && settings_check(&s));
	EXPECT(is(SET_NODE_ID, "n1") && from(SET_NODE_ID, "ACTOR_NODE_ID"));
	EXPECT_EQ(settings_number(&s, SET_MAX_ACTORS), 1000);
	EXPECT_EQ(settings_number(&s, SET_ACTOR_IDLE), 60000);
	EXPECT_EQ(settings_number(&s, SET_ACTOR_MAILBOX), 50);
	EXPECT_EQ(wrongs + warnings, 0);
	settings_free(&s);

	char *both[] = { "ACTOR_NODE_ID=theirs", "NOH_NODE_ID=ours", NULL };

	begin();
	EXPECT(settings_environment(&s, both) && is(SET_NODE_ID, "ours"));
	settings_free(&s);
}

static void what_one_box_has_no_use_for_is_accepted_with_a_warning(void)
{
	char *environment[] = { "ACTOR_PLACEMENT_ENDPOINT=http://control-plane:5012", NULL };

	begin();
	EXPECT(settings_environment(&s, environment) && settings_check(&s));
	EXPECT_EQ(warnings, 1);
	EXPECT(says("ACTOR_PLACEMENT_ENDPOINT is accepted, but has no effect"));
	settings_free(&s);
	EXPECT(parse("[pool]\nname = actor-nodes\npool_type = actor-node\nmin_instances = 10\nmax_instances = 150\n"
		     "scale_up_threshold = 0.8\nscale_down_threshold = 0.2\nactors_per_node = 1000\n"
		     "[node]\nnodes = 3\npartitions = 4\nreplicas = 8\n"));
	EXPECT(settings_check(&s));
	EXPECT_EQ(warnings, 8);                          /* all but what decides how many workers there are */
	EXPECT_EQ(settings_number(&s, SET_MAX_INSTANCES), 150);
	EXPECT_EQ(settings_number(&s, SET_PARTITIONS), 4);
	EXPECT_EQ(settings_number(&s, SET_SCALE_UP), 800);
	settings_free(&s);
}

static void keys_of_other_systems_are_read_in_files_with_the_unit_of_their_names(void)
{
	EXPECT(parse("[node]\nNodeId = n7\nActorsPerNode = 1000\nDefaultIdleTimeoutSeconds = 300\n"
		     "DefaultMailboxCapacity = 100\nClaimTtlSeconds = 60\n[net]\nClaimRefreshIntervalSeconds = 20s\n"));
	EXPECT(settings_check(&s) && warnings == 0);
	EXPECT(is(SET_NODE_ID, "n7") && from(SET_NODE_ID, "f:2"));
	EXPECT_EQ(settings_number(&s, SET_MAX_ACTORS), 1000);
	EXPECT_EQ(settings_number(&s, SET_ACTOR_IDLE), 300000);
	EXPECT_EQ(settings_number(&s, SET_ACTOR_MAILBOX), 100);
	EXPECT_EQ(settings_number(&s, SET_CLAIM_TTL), 60000);
	EXPECT_EQ(settings_number(&s, SET_CLAIM_REFRESH), 20000);
	settings_free(&s);
	EXPECT(!parse("[node]\nid = a\nNodeId = b\n") && says("f:3: id is set in line 2 already"));
	settings_free(&s);
	EXPECT(!parse("[node]\nnodeid = b\n") && says("there is no key nodeid in [node]"));
	settings_free(&s);
}

static void a_claim_that_runs_out_between_two_renewals_is_refused(void)
{
	char *environment[] = { "ACTOR_CLAIM_TTL_SECONDS=30", "ACTOR_CLAIM_REFRESH_INTERVAL_SECONDS=30", NULL };

	begin();
	EXPECT(settings_environment(&s, environment) && !settings_check(&s));
	EXPECT(says("node.claim_refresh (30s) is not less than node.claim_ttl (30s)"));
	settings_free(&s);
	EXPECT(parse("[node]\npartitions = 4\nreplicas = 6\n") && !settings_check(&s));
	EXPECT(says("node.replicas (6) is not a multiple of node.partitions (4)"));
	settings_free(&s);
}

static void a_part_of_the_whole_is_exact_and_within_it(void)
{
	static const struct { const char *text; int thousandths; } all[] = {
		{ "0", 0 }, { "1", 1000 }, { "0.8", 800 }, { "0.25", 250 }, { "0.125", 125 }, { "1.0", 1000 }, { "0.0", 0 },
		{ "1.001", -1 }, { "2", -1 }, { "0.", -1 }, { ".5", -1 }, { "0.1234", -1 }, { "-1", -1 }, { "00", -1 },
		{ "0.5x", -1 }, { "80%", -1 }, { "1e0", -1 }, { "0,8", -1 },
	};

	for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
		uint64_t number = 9;
		char why[256];
		bool good = settings_value(&settings_table[SET_SCALE_UP], all[i].text, &number, why, sizeof why);

		EXPECT_EQ(good, all[i].thousandths >= 0);
		EXPECT(!good || number == (uint64_t)all[i].thousandths);
	}
}

/* Nothing of a broken file shows, and nothing of the old is lost: what is in effect is exchanged as a whole. */
static void a_reload_with_any_error_leaves_the_settings_as_they_were(void)
{
	static const char *const broken[] = { "[net]\nmax_args = 200\n[nett]\n", "[net]\nmax_args = 200\ntimeout = 5\n",
					      "[net]\nmax_args = 200\n[node]\nmode = worker\n", "\x01" };
	char path[] = "/tmp/noh-reload-XXXXXX", option[64];
	int fd = mkstemp(path);
	struct settings fresh;

	begin();
	EXPECT(dprintf(fd, "[net]\nmax_args = 100\n") > 0);
	snprintf(option, sizeof option, "--config %s", path);
	EXPECT(flags(option) && settings_load(&s, nothing));
	for (unsigned i = 0; i < 4; i++) {
		EXPECT(ftruncate(fd, 0) == 0 && pwrite(fd, broken[i], strlen(broken[i]), 0) > 0);
		EXPECT(!settings_reload(&fresh, &s, listen_to, NULL, nothing));
		EXPECT(fresh.errors > 0);
		settings_free(&fresh);
		EXPECT_EQ(settings_number(&s, SET_MAX_ARGS), 100);
	}
	unlink(path);
	EXPECT(!settings_reload(&fresh, &s, listen_to, NULL, nothing));       /* gone: --config named it */
	settings_free(&fresh);
	settings_free(&s);
	close(fd);
}

static void what_differs_is_told_by_meaning_not_by_spelling(void)
{
	static const char text[] = "[net]\ntimeout = 1m\nunix = /b\n[log]\nlevel = info\n";
	struct settings other;

	EXPECT(parse("[net]\ntimeout = 60s\nunix = /a\n[log]\nlevel = info\n"));
	settings_init(&other, listen_to, NULL);
	EXPECT(settings_parse(&other, "g", text, strlen(text)));
	EXPECT(settings_same(&s, &other, SET_TIMEOUT) && settings_same(&s, &other, SET_LOG_LEVEL));
	EXPECT(!settings_same(&s, &other, SET_UNIX));
	settings_free(&other);
	settings_free(&s);
}

static void modes_of_clusters_are_refused_in_one_sentence(void)
{
	static char *modes[] = { "ACTOR_MODE=worker", "ACTOR_NODE_MODE=worker", "ACTOR_MODE=control-plane" };

	for (unsigned i = 0; i < 3; i++) {
		char *environment[] = { modes[i], NULL };

		begin();
		EXPECT(settings_environment(&s, environment) && !settings_check(&s));
		EXPECT_EQ(wrongs, 1);
		EXPECT(says("only local works") && says("MODE: the mode"));
		settings_free(&s);
	}
}

static void a_name_that_is_nearly_ours_is_told_and_others_are_left_alone(void)
{
	char *environment[] = { "NOH_NET_BIMD=1.1.1.1", "NOH_SERVICE_HOST=10.0.0.1", "NOH_PORT_7411_TCP_ADDR=10.0.0.1",
				"NOH_SERVICE_PORT=7411", "PATH=/bin", NULL };

	begin();
	EXPECT(settings_environment(&s, environment));
	EXPECT_EQ(warnings, 1);
	EXPECT(says("did you mean NOH_NET_BIND?"));
	settings_free(&s);
}

static void a_name_without_its_section_is_told_the_whole_name(void)
{
	char *slip[] = { "NOH_RESP_PORT=7000", NULL };
	char *right[] = { "NOH_NET_RESP_PORT=7000", "NOH_HTTP_PORT=7001", "NOH_PORT_7411_TCP_PORT=7411", NULL };

	begin();
	EXPECT(settings_environment(&s, slip));
	EXPECT_EQ(warnings, 1);
	EXPECT(says("NOH_RESP_PORT in the environment is not a setting; did you mean NOH_NET_RESP_PORT?"));
	settings_free(&s);
	begin();
	EXPECT(settings_environment(&s, right));
	EXPECT_EQ(warnings, 0);
	settings_free(&s);
}

static void secrets_come_from_files_and_are_never_shown(void)
{
	char path[] = "/tmp/noh-secret-XXXXXX", name[128];
	char *environment[] = { name, NULL, NULL };
	int fd = mkstemp(path);

	EXPECT(write(fd, "0123456789abcdef0123456789abcdef\n", 33) == 33);
	snprintf(name, sizeof name, "NOH_USERS_ADMIN_TOKEN_FILE=%s", path);
	begin();
	EXPECT(settings_environment(&s, environment));
	EXPECT(is(SET_ADMIN_TOKEN, "0123456789abcdef0123456789abcdef"));
	EXPECT(strcmp(settings_shown(&s, SET_ADMIN_TOKEN), "(secret)") == 0);
	settings_free(&s);

	environment[1] = "NOH_USERS_ADMIN_TOKEN=0123456789abcdef0123456789abcdef";
	begin();
	EXPECT(!settings_environment(&s, environment) && says("are both set"));
	settings_free(&s);

	EXPECT(!parse("[users]\nadmin_token = hunter2\n"));
	EXPECT(says("f:2: the value is not 32 to 1024 characters long") && !says("hunter2"));
	settings_free(&s);
	close(fd);
	unlink(path);
}

/* ── values ── */

static bool value(enum setting_id id, const char *text, uint64_t expected)
{
	uint64_t number;
	char why[256] = "";
	bool good = settings_value(&settings_table[id], text, &number, why, sizeof why);

	EXPECT(good || why[0]);
	return good && number == expected;
}

static void units_are_written_out(void)
{
	EXPECT(value(SET_MEMORY, "200MB", 200000000));
	EXPECT(value(SET_MEMORY, "64MiB", 64 << 20));
	EXPECT(value(SET_MEMORY, "64mib", 64 << 20));
	EXPECT(value(SET_MEMORY, "2GiB", UINT64_C(2) << 30));
	EXPECT(value(SET_MEMORY, "0", 0));
	EXPECT(value(SET_SLOW_TURN, "250ms", 250));
	EXPECT(value(SET_SLOW_TURN, "2s", 2000));
	EXPECT(value(SET_IDEM_KEEP, "90m", 90 * 60000));
	EXPECT(value(SET_IDEM_KEEP, "2d", 2 * 86400000));
	EXPECT(value(SET_PIN, "off", 0) && value(SET_PIN, "Yes", 1));
	EXPECT(value(SET_IO, "epoll", 2));
	EXPECT(value(SET_TRACE_SAMPLE, "1024", 1024) && value(SET_TRACE_SAMPLE, "0", 0));
}

static void levels_of_types_are_pairs(void)
{
	EXPECT(value(SET_LOG_TYPES, "counter=debug", 0));
	EXPECT(value(SET_LOG_TYPES, "counter=debug,inventory=error", 0));
	EXPECT(!parse("[log]\ntypes = \"counter=loud\"\n"));
	EXPECT(says("has \"loud\" for counter, which is none of debug, info, warn, error"));
	settings_free(&s);
	EXPECT(!parse("[log]\ntypes = \"counter\"\n"));
	EXPECT(says("is not TYPE=WORD"));
	settings_free(&s);
}

static void limits_of_types_are_rates_and_counts(void)
{
	static const char *const bad[] = { "counter=fast", "counter=", "counter=-5", "counter=1e3", "counter=0x10", "counter=inf",
		"counter=nan", "counter=0", "counter=0.0001", "counter=99999999", "counter=5:0", "counter=5:", "counter=5:x",
		"counter=5:2000000", "counter=5:1:1", "counter=5 ", "=5", "counter" };
	uint32_t burst;
	double rate;

	EXPECT(value(SET_LIMIT_RATE, "counter=5000,later=0.5:10", 0));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		EXPECT(!value(SET_LIMIT_RATE, bad[i], 0));
	EXPECT(value(SET_LIMIT_TURNS, "inventory=2,counter=1024", 0));
	EXPECT(!value(SET_LIMIT_TURNS, "inventory=0", 0) && !value(SET_LIMIT_TURNS, "inventory=1025", 0));
	EXPECT(value(SET_LIMIT_OVER, "counter=refuse,later=wait", 0) && !value(SET_LIMIT_OVER, "counter=drop", 0));
	EXPECT(settings_rate("0.5:10", &rate, &burst) && rate > 0.49 && rate < 0.51 && burst == 10);
	EXPECT(settings_rate("5000", &rate, &burst) && rate > 4999 && rate < 5001 && burst == 0);
}

static void a_list_is_asked_for_one_type(void)
{
	char text[32];

	EXPECT(parse("[limits]\nrate = \"counter=5,later=100:10,counters=7\"\n"));
	EXPECT(settings_of_type(&s, SET_LIMIT_RATE, "later", text, sizeof text) && strcmp(text, "100:10") == 0);
	EXPECT(settings_of_type(&s, SET_LIMIT_RATE, "counter", text, sizeof text) && strcmp(text, "5") == 0);
	EXPECT(settings_of_type(&s, SET_LIMIT_RATE, "counters", text, sizeof text) && strcmp(text, "7") == 0);
	EXPECT(!settings_of_type(&s, SET_LIMIT_RATE, "count", text, sizeof text));
	EXPECT(!settings_of_type(&s, SET_LIMIT_TURNS, "counter", text, sizeof text));
	settings_free(&s);
}

static void what_is_no_value_is_refused(void)
{
	static const struct { enum setting_id id; const char *text; } none[] = {
		{ SET_MEMORY, "200" }, { SET_MEMORY, "200M" }, { SET_MEMORY, "MiB" }, { SET_MEMORY, "-1MiB" },
		{ SET_MEMORY, "1.5GiB" }, { SET_MEMORY, "1MiB" }, { SET_MEMORY, "16777216TiB" /* 2^64: not 0 */ },
		{ SET_MEMORY, "18446744073709551615TiB" },
		{ SET_MEMORY, "99999999999999999999MiB" }, { SET_MEMORY, "64MiB " }, { SET_MEMORY, " 64MiB" },
		{ SET_TIMEOUT, "0" }, { SET_TIMEOUT, "30" }, { SET_TIMEOUT, "30 s" }, { SET_TIMEOUT, "400d" },
		{ SET_RESP_PORT, "65536" }, { SET_RESP_PORT, "0x10" }, { SET_RESP_PORT, "+1" }, { SET_RESP_PORT, "" },
		{ SET_DURABILITY, "Disk" }, { SET_DURABILITY, "di" }, { SET_PIN, "maybe" }, { SET_BIND, "example.org" },
		{ SET_BIND, "127.0.0.1:80" }, { SET_BIND, "1.2.3" }, { SET_DIR, "" }, { SET_DIR, "a\nb" },
	};

	for (unsigned i = 0; i < sizeof none / sizeof none[0]; i++) {
		uint64_t number;
		char why[256] = "";

		if (settings_value(&settings_table[none[i].id], none[i].text, &number, why, sizeof why))
			test_failed(__FILE__, __LINE__, "\"%s\" was accepted for %s", none[i].text,
				    settings_table[none[i].id].key);
		EXPECT(why[0]);
	}
}

static void a_wrong_value_is_told_with_what_would_be_right(void)
{
	begin();
	EXPECT(flags("--memory 200 --durability dsik --timeout 3y --resp-port 70000 --bind"));
	EXPECT_EQ(wrongs, 5);
	EXPECT(says("--memory: \"200\" lacks a unit: B, KiB"));
	EXPECT(says("--durability: \"dsik\" is none of disk, memory, none; did you mean disk?"));
	EXPECT(says("a time with its unit, such as 300s"));
	EXPECT(says("is not within 1 and 65535, or 0"));
	EXPECT(says("--bind needs a value"));
	settings_free(&s);

	char *environment[] = { "NOH_NET_IO=auto\nINFO all is well", NULL };

	begin();                                 /* a forged line of the log stays inside ours */
	EXPECT(!settings_environment(&s, environment) && lines_are_sentences());
	settings_free(&s);
}

static void an_unknown_flag_gets_the_nearest_known_one(void)
{
	begin();
	EXPECT(!flags("--memroy 1GiB"));
	settings_unknown_flag(&s, "serve", "memroy", NULL, 0);
	EXPECT(says("there is no option --memroy; did you mean --memory?"));
	settings_unknown_flag(&s, "serve", "xyzzyxyzzy", NULL, 0);
	EXPECT(says("noh serve --help lists them"));
	settings_free(&s);
}

static void a_bool_flag_stands_alone(void)
{
	begin();
	EXPECT(flags("--insecure --pin=false --workers 3"));
	EXPECT_EQ(settings_number(&s, SET_INSECURE), 1);
	EXPECT_EQ(settings_number(&s, SET_PIN), 0);
	EXPECT_EQ(settings_number(&s, SET_WORKERS), 3);
	settings_free(&s);
}

static void only_loopback_is_loopback(void)
{
	static const char *const inside[] = { "127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1" };
	static const char *const outside[] = { "0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "::2", "::ffff:10.0.0.1", "" };

	for (unsigned i = 0; i < sizeof inside / sizeof *inside; i++)
		EXPECT(settings_is_loopback(inside[i]));
	for (unsigned i = 0; i < sizeof outside / sizeof *outside; i++)
		EXPECT(!settings_is_loopback(outside[i]));
}

/* ── the file ── */

static void a_file_has_sections_comments_and_quotes(void)
{
	EXPECT(parse("\xef\xbb\xbf# first\r\n\r\n[net]   # second\r\nbind=::1\r\n\tunix = \"/a \\\"b\\\\#\" # third\r\n"
		     "[data]\ndir = /var/lib/noh# fourth\n[net]\nmax_args = 77"));
	EXPECT_EQ(wrongs, 0);
	EXPECT(is(SET_BIND, "::1") && from(SET_BIND, "f:4"));
	EXPECT(is(SET_UNIX, "/a \"b\\#"));
	EXPECT(is(SET_DIR, "/var/lib/noh"));
	EXPECT(is(SET_MAX_ARGS, "77"));
	settings_free(&s);
}

static void each_error_of_a_file_has_its_line(void)
{
	EXPECT(!parse("[net]\nbimd = 3\nbind = nowhere\n[nett]\nanything = 1\n[data]\nbind = ::1\ndir = a b\ndir\n"
		      "dir = \"x\nnode = \ndir = /x\ndir = /y\n[data\n= 3\n[]\n"));
	EXPECT(says("f:2: there is no key bimd in [net]; did you mean bind?\n"));
	EXPECT(says("f:3: \"nowhere\" is not an address"));
	EXPECT(says("f:4: there is no section [nett]; did you mean [net]?\n"));
	EXPECT(!says("f:5:"));
	EXPECT(says("f:7: bind belongs to the section [net]\n"));
	EXPECT(says("f:8: a value with blanks in it needs quotes"));
	EXPECT(says("f:9: after dir comes = and a value\n"));
	EXPECT(says("f:10: the closing \" is missing\n"));
	EXPECT(says("f:13: dir is set in line 12 already\n"));
	EXPECT(says("f:14: a section is a line of its own: [data]\n"));
	EXPECT(says("f:15: this is neither [section] nor key = value\n"));
	EXPECT(says("f:16: after [ comes the name of a section"));
	settings_free(&s);
	EXPECT(!parse("bind = ::1\n") && says("f:1: bind belongs to the section [net]"));
	settings_free(&s);
	EXPECT(!parse("colour = red\n") && says("f:1: colour stands before any section"));
	settings_free(&s);
}

static void hostile_files_are_refused_and_cost_little(void)
{
	static char big[SETTINGS_FILE_MAX];
	struct settings *t = &s;

	begin();
	EXPECT(!settings_parse(t, "f", "[net]\0bind", 10) && says("f:1: there is a control character (0)"));
	settings_free(t);
	EXPECT(!parse("[net]\nbind = \x1b[31m\n") && says("f:2: there is a control character (0x1b)"));
	settings_free(t);
	memset(big, 'a', sizeof big);
	begin();
	EXPECT(!settings_parse(t, "f", big, sizeof big));            /* one word without end */
	settings_free(t);
	memcpy(big, "[data]\ndir = \"", 14);
	begin();
	EXPECT(!settings_parse(t, "f", big, sizeof big) && says("f:2: the value is longer than 4095 bytes"));
	settings_free(t);
	memset(big, '\n', sizeof big);
	begin();
	EXPECT(settings_parse(t, "f", big, sizeof big));
	settings_free(t);
	for (size_t i = 0; i + 1 < sizeof big; i += 2)
		memcpy(big + i, "=\n", 2);
	begin();
	EXPECT(!settings_parse(t, "f", big, sizeof big));
	EXPECT_EQ(wrongs, 20);                                       /* and not half a million */
	settings_free(t);
}

static void a_file_that_cannot_be_read_is_named(void)
{
	begin();
	EXPECT(!settings_read_file(&s, "/nonexistent/noh.conf", true) && says("/nonexistent/noh.conf: No such file"));
	EXPECT(settings_read_file(&s, "/nonexistent/noh.conf", false));
	EXPECT(!settings_read_file(&s, "/tmp", true) && says("/tmp: Is a directory"));
	EXPECT(!settings_read_file(&s, "/dev/zero", true) && says("/dev/zero: File too large"));
	settings_free(&s);
}

static void settings_that_contradict_each_other_are_refused(void)
{
	begin();
	EXPECT(flags("--max-arg-bytes 32MiB --resp-port 0 --http-port 0"));
	EXPECT(!settings_check(&s));
	EXPECT(says("net.max_arg_bytes (32MiB) is more than a whole command"));
	EXPECT(says("--resp-port: without a TCP port a Unix socket is needed"));
	settings_free(&s);
	begin();
	EXPECT(flags("--resp-port 5012"));
	EXPECT(!settings_check(&s) && says("net.resp_port (--resp-port) and http.port (default) are both 5012"));
	settings_free(&s);
}

static void the_socket_for_http_is_in_the_data_directory_unless_told_otherwise(void)
{
	char buf[200], deep[150], words[200];
	const char *path;

	begin();
	EXPECT(flags("--data /var/lib/noh"));
	path = settings_http_path(&s, buf, sizeof buf);
	EXPECT(path && strcmp(path, "/var/lib/noh/http.sock") == 0);
	EXPECT_EQ(settings_number(&s, SET_HTTP_PORT), 5012);
	EXPECT(flags("--http-unix /run/noh.sock"));
	path = settings_http_path(&s, buf, sizeof buf);
	EXPECT(path && strcmp(path, "/run/noh.sock") == 0);
	EXPECT(flags("--http-unix off") && !settings_http_path(&s, buf, sizeof buf));
	settings_free(&s);
	begin();
	EXPECT(flags("--durability none") && !settings_http_path(&s, buf, sizeof buf));       /* there is no directory */
	settings_free(&s);
	begin();
	memset(deep, 'd', sizeof deep - 1);
	deep[sizeof deep - 1] = 0;
	snprintf(words, sizeof words, "--data /%s", deep);
	EXPECT(flags(words) && !settings_http_path(&s, buf, sizeof buf));                     /* no kernel takes so long a path */
	settings_free(&s);
}

/* ── accounts ── */

static char folder[] = "/tmp/noh-accounts-XXXXXX", users[64], why[1024];

static void a_user_gets_a_token_and_the_file_its_hash(void)
{
	struct accounts a;
	struct stat st;
	char token[TOKEN_TEXT], other[TOKEN_TEXT];
	uint8_t hash[TOKEN_HASH];
	size_t left;

	strcpy(folder, "/tmp/noh-accounts-XXXXXX");
	EXPECT(mkdtemp(folder) != NULL);
	snprintf(users, sizeof users, "%s/users", folder);
	EXPECT(accounts_read(&a, users, why, sizeof why) && a.count == 0 && !a.present);
	EXPECT(accounts_add(users, "alice", NOH_ADMIN, token, why, sizeof why));
	EXPECT(accounts_add(users, "bob", NOH_USER, other, why, sizeof why));
	EXPECT(strlen(token) == 64 && strcmp(token, other) != 0);
	EXPECT(!accounts_add(users, "bob", NOH_USER, other, why, sizeof why) && strstr(why, "there is a user bob"));
	EXPECT(stat(users, &st) == 0 && (st.st_mode & 0777) == 0600);
	EXPECT(accounts_read(&a, users, why, sizeof why) && a.count == 2 && a.present);
	account_hash(token, hash);
	EXPECT(strcmp(a.all[0].name, "alice") == 0 && a.all[0].role == NOH_ADMIN);
	EXPECT(memcmp(a.all[0].token, hash, sizeof hash) == 0);
	accounts_free(&a);

	EXPECT(!accounts_revoke(users, "carol", &left, why, sizeof why) && strstr(why, "there is no user carol"));
	EXPECT(accounts_revoke(users, "alice", &left, why, sizeof why) && left == 1);
	EXPECT(accounts_revoke(users, "bob", &left, why, sizeof why) && left == 0);
	EXPECT(accounts_read(&a, users, why, sizeof why) && a.count == 0 && a.present);
	accounts_free(&a);

	EXPECT(chmod(users, 0620) == 0);
	EXPECT(!accounts_read(&a, users, why, sizeof why) && strstr(why, "chmod 600"));
	EXPECT(unlink(users) == 0 && rmdir(folder) == 0);            /* and nothing else is left there */
}

static bool refused(const char *text, size_t len, const char *sentence)
{
	struct accounts a = { 0 };
	bool good = accounts_parse(&a, "u", text, len, why, sizeof why);

	accounts_free(&a);
	return !good && strstr(why, sentence);
}

static void a_broken_accounts_file_is_refused_as_a_whole(void)
{
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	static const char good[] = "# c\n\na user " HASH " now\nb admin " HASH " now";
	struct accounts a = { 0 };
	char line[1024];

	EXPECT(accounts_parse(&a, "u", good, strlen(good), why, sizeof why) && a.count == 2);
	accounts_free(&a);
#define REFUSED(text, sentence) EXPECT(refused(text, sizeof text - 1, sentence))
	REFUSED("a user " HASH " now\na user " HASH " now\n", "u:2: this name is there already");
	REFUSED("a user " HASH "\n", "u:1: a line is");
	REFUSED("a user " HASH " now more\n", "u:1: a line is");
	REFUSED("a root " HASH " now\n", "a role is");
	REFUSED("a user " HASH "0 now\n", "SHA-256");
	REFUSED("a user 12 now\n", "SHA-256");
	REFUSED("a/b user " HASH " now\n", "a name has");
	REFUSED("a user " HASH " 0123456789012345678901234567890\n", "the fourth word");
	REFUSED("a\0user " HASH " now\n", "no text");
	memset(line, 'x', sizeof line);
	EXPECT(refused(line, sizeof line, "too long"));
}

TEST_MAIN(
	TEST(every_default_is_a_value_of_its_own_setting, "CF-03 CF-04 CF-19"),
	TEST(names_are_used_once),
	TEST(a_flag_beats_the_environment_which_beats_the_file, "CF-20"),
	TEST(names_of_other_systems_are_understood, "CF-01 CF-02 CF-03 CF-04"),
	TEST(what_one_box_has_no_use_for_is_accepted_with_a_warning, "CF-09 CF-10 CF-11 CF-12 CF-13 CF-14 CF-15 CF-18"),
	TEST(keys_of_other_systems_are_read_in_files_with_the_unit_of_their_names, "CF-01 CF-02 CF-03 CF-04 CF-05 CF-06"),
	TEST(a_claim_that_runs_out_between_two_renewals_is_refused, "CF-05 CF-06 CF-18"),
	TEST(a_part_of_the_whole_is_exact_and_within_it, "CF-13 CF-14"),
	TEST(a_reload_with_any_error_leaves_the_settings_as_they_were, "CF-20 CF-21"),
	TEST(what_differs_is_told_by_meaning_not_by_spelling, "CF-20"),
	TEST(modes_of_clusters_are_refused_in_one_sentence, "CF-07 CF-08"),
	TEST(a_name_without_its_section_is_told_the_whole_name),
	TEST(a_name_that_is_nearly_ours_is_told_and_others_are_left_alone),
	TEST(secrets_come_from_files_and_are_never_shown),
	TEST(units_are_written_out),
	TEST(levels_of_types_are_pairs),
	TEST(limits_of_types_are_rates_and_counts, "MB-11"),
	TEST(a_list_is_asked_for_one_type),
	TEST(what_is_no_value_is_refused, "P11"),
	TEST(a_wrong_value_is_told_with_what_would_be_right, "P11"),
	TEST(an_unknown_flag_gets_the_nearest_known_one),
	TEST(a_bool_flag_stands_alone),
	TEST(only_loopback_is_loopback),
	TEST(a_file_has_sections_comments_and_quotes),
	TEST(each_error_of_a_file_has_its_line, "P11"),
	TEST(hostile_files_are_refused_and_cost_little, "P11"),
	TEST(a_file_that_cannot_be_read_is_named),
	TEST(the_socket_for_http_is_in_the_data_directory_unless_told_otherwise, "CF-19"),
	TEST(settings_that_contradict_each_other_are_refused),
	TEST(a_user_gets_a_token_and_the_file_its_hash),
	TEST(a_broken_accounts_file_is_refused_as_a_whole, "P11"))
