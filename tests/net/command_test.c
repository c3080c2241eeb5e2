/* tests/net/command_test.c - commands are found, checked and refused; those about the connection. */
#include "tests/net/command_kit.h"

#include <stdlib.h>

/* ── the table ────────────────────────────────────────────────────────────────────────────────── */
static void every_command_is_found_in_any_case(void)
{
	for (uint32_t i = 0; i < command_total(); i++) {
		const struct command *k = command_row(i);
		char upper[64];
		size_t len = strlen(k->name);

		EXPECT(command_find_full(k->name, (uint32_t)len) == k);
		for (size_t j = 0; j <= len; j++)
			upper[j] = (char)(k->name[j] >= 'a' && k->name[j] <= 'z' ? k->name[j] - 32 : k->name[j]);
		EXPECT(command_find_full(upper, (uint32_t)len) == k);
		EXPECT(command_find_full(k->name, (uint32_t)len - 1) != k);
		EXPECT_EQ(command_index(k), i);
	}
	EXPECT(command_find("", 0) == NULL);
	EXPECT(command_find("client|list", 11) == NULL);
	EXPECT(command_find("incr\0", 5) == NULL);
	EXPECT(command_find("INCR ", 5) == NULL);
}

static void the_table_is_in_order(void)
{
	for (uint32_t i = 0; i < command_total(); i++) {
		const struct command *k = command_row(i);

		EXPECT(k->arity != 0 && k->group < GROUPS && k->role <= NOH_ADMIN);
		EXPECT(k->run || k->subs);
		EXPECT(*k->summary && k->syntax && k->reply && *k->complexity);
		EXPECT((k->first_key == 0) == (k->key_step == 0));
		EXPECT(!(k->flags & COMMAND_WRITE) || !(k->flags & COMMAND_READONLY));
		EXPECT(!(k->flags & COMMAND_IDEM) || strstr(k->syntax, "[IDEM idem]"));
		for (uint32_t s = 1; s <= k->subs; s++)
			EXPECT(strncmp(k[s].name, k->name, strlen(k->name)) == 0 && k[s].name[strlen(k->name)] == '|');
	}
}

static void the_number_of_arguments_is_checked(void)
{
	fake_open(NOH_ADMIN);
	for (uint32_t i = 0; i < command_total(); i++) {
		const struct command *k = command_row(i);
		uint32_t least = (uint32_t)abs(k->arity), words = 1 + (strchr(k->name, '|') != NULL);
		char line[256], expected[128];

		if (k->subs || least <= words)
			continue;
		int len = snprintf(line, sizeof line, "%s", k->name);

		if (strchr(line, '|'))
			*strchr(line, '|') = ' ';
		for (uint32_t j = words + 1; j < least; j++)
			len += snprintf(line + len, sizeof line - (size_t)len, " 1");
		snprintf(expected, sizeof expected, "-ERR wrong number of arguments for '%s' command\r\n", k->name);
		replies(line, expected, __FILE__, __LINE__);
		if (k->arity > 0) {
			snprintf(line + len, sizeof line - (size_t)len, " 1 1");
			replies(line, expected, __FILE__, __LINE__);
		}
	}
	REPLIES("get", ARITY("get"));
	REPLIES("client", ARITY("client"));
	REPLIES("ping a b", ARITY("ping"));
	REPLIES("incr a b", ARITY("incr"));
	REPLIES("incr a IDEM", ARITY("incr"));
	REPLIES("incr a b c", ARITY("incr"));
}

static void unknown_commands_are_told_as_redis_does(void)
{
	char line[600], expected[600];

	fake_open(NOH_ADMIN);
	REPLIES("foo", "-ERR unknown command 'foo', with args beginning with: ");
	REPLIES("foo bar 'b z'", "-ERR unknown command 'foo', with args beginning with: 'bar' 'b z' ");
	REPLIES("client foo", "-ERR unknown subcommand 'foo'. Try CLIENT HELP.");
	REPLIES("\"f\\x00o\\r\\n\\xff\"", "-ERR unknown command 'f?o?" "?" "?', with args beginning with: ");
	REPLIES("\"\"", "-ERR unknown command '', with args beginning with: ");
	/* Whatever came before it. */
	REPLIES("PING", "+PONG");
	REPLIES("PINX", "-ERR unknown command 'PINX', with args beginning with: ");
	REPLIES("PIN", "-ERR unknown command 'PIN', with args beginning with: ");
	REPLIES("ping", "+PONG");
	REPLIES("INV.RESERVE", "-ERR wrong number of arguments for 'inv.reserve' command");
	REPLIES("INV.RESERVX", "-ERR unknown command 'INV.RESERVX', with args beginning with: ");
	REPLIES("INV.RESERV", "-ERR unknown command 'INV.RESERV', with args beginning with: ");
	REPLIES("inv.reserve", "-ERR wrong number of arguments for 'inv.reserve' command");
	REPLIES("client|list", "-ERR unknown command 'client|list', with args beginning with: ");
	memset(line, 'x', 500);
	line[500] = 0;
	snprintf(expected, sizeof expected, "-ERR unknown command '%.128s', with args beginning with: \r\n", line);
	replies(line, expected, __FILE__, __LINE__);
	memcpy(line, "foo ", 4);
	fake_run(line);
	EXPECT(fake.out.len < 220);
	EXPECT(!fake.session.closing);
}

static void http_is_recognised_and_cut_off(void)
{
	fake_open(NOH_ADMIN);
	fake_run("POST / HTTP/1.1");
	EXPECT(fake.session.closing && memcmp(fake.out.bytes, "-ERR this is HTTP", 17) == 0);
	fake_open(NOH_ADMIN);
	fake_run("Host: localhost:7411");
	EXPECT(fake.session.closing);
}

static void nobody_may_do_anything_before_a_log_in(void)
{
	fake_open(SESSION_NOBODY);
	fake.accounts = true;
	REPLIES("get k", "-NOAUTH Authentication required.");
	REPLIES("ping", "-NOAUTH Authentication required.");
	REPLIES("client list", "-NOAUTH Authentication required.");
	REPLIES("get", ARITY("get"));
	REPLIES("auth anna wrong", "-WRONGPASS invalid username-password pair or user is disabled.");
	REPLIES("auth nobody secret", "-WRONGPASS invalid username-password pair or user is disabled.");
	REPLIES("ping", "-NOAUTH Authentication required.");
	REPLIES("auth a b c", SYNTAX);
	REPLIES("auth secret", "+OK");
	EXPECT(fake.session.role == NOH_USER && strcmp(fake.session.user, "default") == 0);
	REPLIES("reset", "+RESET");
	REPLIES("ping", "-NOAUTH Authentication required.");
	REPLIES("auth anna secret", "+OK");
	REPLIES("ping", "+PONG");
	REPLIES("client list", "-NOPERM User anna has no permissions to run the 'client|list' command");
	REPLIES("config set timeout 1", "-NOPERM User anna has no permissions to run the 'config|set' command");
	REPLIES("auth anna wrong", "-WRONGPASS invalid username-password pair or user is disabled.");
	REPLIES("ping", "+PONG");
	REPLIES("auth root secret", "+OK");
	REPLIES("config set timeout 1", "+OK");
	REPLIES("quit", "+OK");
	EXPECT(fake.session.closing);
}

static void without_accounts_a_log_in_is_a_mistake(void)
{
	fake_open(NOH_ADMIN);
	fake_run("auth secret");
	EXPECT(memcmp(fake.out.bytes, "-ERR AUTH <password> called without any password configured", 59) == 0);
	REPLIES("auth anna secret", "-WRONGPASS invalid username-password pair or user is disabled.");
	REPLIES("hello 3 auth anna secret", "-WRONGPASS invalid username-password pair or user is disabled.");
	EXPECT_EQ(fake.session.proto, 2);
	EXPECT_EQ(fake.logins_failed, 0);                        /* there is nothing to find out */
	REPLIES("auth default secret", "+OK");
	REPLIES("auth defaults secret", "-WRONGPASS invalid username-password pair or user is disabled.");
	EXPECT_EQ(fake.session.role, NOH_ADMIN);
	fake.session.role = SESSION_NOBODY;
	REPLIES("auth default secret", "-WRONGPASS invalid username-password pair or user is disabled.");
	EXPECT_EQ(fake.session.role, SESSION_NOBODY);
}

static void every_role_is_asked_for(void)
{
	fake_open(NOH_USER);
	REPLIES("actor.activate a:b", "-NOPERM User default has no permissions to run the 'actor.activate' command");
	REPLIES("actor.pool", "-NOPERM User default has no permissions to run the 'actor.pool' command");
	REPLIES("shutdown", "-NOPERM User default has no permissions to run the 'shutdown' command");
	fake_open(NOH_DEVELOPER);
	ASKS("actor.activate a:b", "activate a:b");
	REPLIES("actor.pool", "-NOPERM User default has no permissions to run the 'actor.pool' command");
}

/* ── the connection ───────────────────────────────────────────────────────────────────────────── */
static void simple_commands_answer(void)
{
	fake_open(NOH_ADMIN);
	REPLIES("ping", "+PONG");
	REPLIES("PiNg hey", "$3\r\nhey");
	REPLIES("echo hello", "$5\r\nhello");
	REPLIES("echo ''", "$0\r\n");
	REPLIES("select 0", "+OK");
	REPLIES("select 1", "-ERR DB index is out of range");
	REPLIES("select x", NOT_INT);
	REPLIES("time", "*2\r\n$10\r\n1700000000\r\n$6\r\n123000");
	fake_run("multi");
	EXPECT(memcmp(fake.out.bytes, "-ERR 'multi' is not supported: ", 31) == 0);
	fake_run("watch a b c");
	EXPECT(memcmp(fake.out.bytes, "-ERR 'watch' is not supported: ", 31) == 0);
}

#define HELLO_REPLY(head, proto)                                                                            \
	head "\r\n$6\r\nserver\r\n$3\r\nnoh\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n$5\r\nproto\r\n:" proto "\r\n$2\r\nid\r\n:12\r\n" \
	"$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0"

static void hello_chooses_the_protocol(void)
{
	fake_open(NOH_ADMIN);
	REPLIES("hello", HELLO_REPLY("*14", "2"));
	REPLIES("hello 3", HELLO_REPLY("%7", "3"));
	EXPECT_EQ(fake.session.proto, 3);
	REPLIES("client getname", "_");
	REPLIES("hello", HELLO_REPLY("%7", "3"));
	REPLIES("hello 2 setname joe", HELLO_REPLY("*14", "2"));
	REPLIES("client getname", "$3\r\njoe");
	REPLIES("hello 4", "-NOPROTO unsupported protocol version");
	REPLIES("hello 1", "-NOPROTO unsupported protocol version");
	REPLIES("hello x", "-ERR Protocol version is not an integer or out of range");
	REPLIES("hello 3 auth joe", "-ERR Syntax error in HELLO option 'auth'");
	REPLIES("hello 3 foo", "-ERR Syntax error in HELLO option 'foo'");
	REPLIES("hello 3 setname", "-ERR Syntax error in HELLO option 'setname'");
	REPLIES("hello 3 setname 'a b'", "-ERR Client names cannot contain spaces, newlines or special characters.");
	EXPECT_EQ(fake.session.proto, 2);
	fake_open(SESSION_NOBODY);
	fake.accounts = true;
	fake_run("hello 3");
	EXPECT(memcmp(fake.out.bytes, "-NOAUTH HELLO must be called", 28) == 0);
	EXPECT_EQ(fake.session.proto, 2);
	REPLIES("hello 3 auth anna wrong", "-WRONGPASS invalid username-password pair or user is disabled.");
	EXPECT(fake.session.role == SESSION_NOBODY && fake.session.proto == 2);
	REPLIES("hello 3 auth anna secret setname joe", HELLO_REPLY("%7", "3"));
	EXPECT(fake.session.role == NOH_USER && strcmp(fake.session.user, "anna") == 0);
	REPLIES("reset", "+RESET");
	EXPECT(fake.session.proto == 2 && fake.session.role == SESSION_NOBODY && !*fake.session.name);
}

static void a_connection_has_a_name(void)
{
	fake_open(NOH_ADMIN);
	REPLIES("client id", ":12");
	REPLIES("client getname", "$-1");
	REPLIES("client setname joe", "+OK");
	EXPECT_EQ(fake.changes, 1);
	REPLIES("client getname", "$3\r\njoe");
	REPLIES("client setname 'a b'", "-ERR Client names cannot contain spaces, newlines or special characters.");
	REPLIES("client setname 1234567890123456789012345678901234567890123456789012345678901234",
		"-ERR Client names have at most 63 characters");
	REPLIES("client setname ''", "+OK");
	REPLIES("client getname", "$-1");
	REPLIES("client setinfo lib-name lettuce", "+OK");
	REPLIES("client setinfo LIB-VER 6.1", "+OK");
	REPLIES("client setinfo lib-foo 6.1", "-ERR Unrecognized option 'lib-foo'");
	REPLIES("client setinfo lib-name 'a b'", "-ERR lib-name cannot contain spaces, newlines or special characters.");
	fake_run("client info");
	EXPECT(strncmp(strchr(fake.out.bytes, '\n') + 1, "id=12 addr=127.0.0.1:1001 laddr=127.0.0.1:7411 fd=7 name= age=5 "
		       "idle=0 flags=N db=0 sub=0 psub=0", 90) == 0);
	out_bytes(&fake.out, "", 1);
	EXPECT(strstr(fake.out.bytes, " cmd=client|info user=default ") && strstr(fake.out.bytes,
	       "resp=2 lib-name=lettuce lib-ver=6.1\n\r\n"));
	REPLIES("client no-evict on", "+OK");
	REPLIES("client no-touch off", "+OK");
	REPLIES("client no-evict maybe", SYNTAX);
	REPLIES("client unpause", "+OK");
}

static void replies_can_be_switched_off(void)
{
	fake_open(NOH_ADMIN);
	fake_run("ping"), EXPECT(!fake.muted);
	fake_run("client reply skip"), EXPECT(fake.muted && fake.out.len == 0);
	fake_run("ping"), EXPECT(fake.muted);
	fake_run("ping"), EXPECT(!fake.muted);
	fake_run("client reply off"), EXPECT(fake.muted);
	fake_run("ping"), EXPECT(fake.muted);
	fake_run("client reply skip"), EXPECT(fake.muted);
	fake_run("ping"), EXPECT(fake.muted);
	fake_run("nonsense"), EXPECT(fake.muted);
	REPLIES("client reply on", "+OK");
	EXPECT(!fake.muted);
	REPLIES("client reply maybe", SYNTAX);
	fake_run("ping"), EXPECT(!fake.muted);
}

static int lines(void)
{
	int n = 0;

	for (size_t i = 0; i < fake.out.len; i++)
		n += fake.out.bytes[i] == '\n';
	return n - 2;                                        /* the bulk's own */
}

static void clients_are_listed_and_ended(void)
{
	fake_open(NOH_ADMIN);
	fake_run("client list"), EXPECT_EQ(lines(), 3);
	fake_run("client list type pubsub"), EXPECT_EQ(lines(), 1);
	fake_run("client list id 11 13 99"), EXPECT_EQ(lines(), 2);
	REPLIES("client list type foo", "-ERR Unknown client type 'foo'");
	REPLIES("client list id x", "-ERR Invalid client ID");
	REPLIES("client list foo", SYNTAX);
	REPLIES("client kill 127.0.0.1:1000", "+OK");
	EXPECT_EQ(fake.killed, 1);
	REPLIES("client kill 127.0.0.1:9", "-ERR No such client");
	REPLIES("client kill id 13", ":1");
	EXPECT_EQ(fake.killed, 5);
	REPLIES("client kill id 99", ":0");
	REPLIES("client kill id x", "-ERR client-id should be greater than 0");
	REPLIES("client kill id 12", ":0");
	EXPECT(!fake.session.closing);
	fake.killed = 0;
	REPLIES("client kill user anna type normal", ":0");
	REPLIES("client kill user anna", ":1");
	EXPECT_EQ(fake.killed, 4);
	fake.killed = 0;
	REPLIES("client kill maxage 100", ":1");
	EXPECT_EQ(fake.killed, 1);
	REPLIES("client kill maxage -1", NOT_INT);
	REPLIES("client kill id 11 foo bar", SYNTAX);
	REPLIES("client kill id 11 skipme", SYNTAX);
	REPLIES("client kill id 12 skipme no", ":1");
	EXPECT(fake.session.closing);
}

/* ── the server ───────────────────────────────────────────────────────────────────────────────── */
static void settings_are_shown_by_pattern_and_few_are_changed(void)
{
	static const char *const info[] = { "maxmemory", "0", "port", "never shown twice", NULL };

	fake_open(NOH_ADMIN);
	fake.options.info = info;
	REPLIES("config get port", "*2\r\n$4\r\nport\r\n$4\r\n7411");
	REPLIES("config get nosuch", "*0");
	REPLIES("config get MAXM* timeout",
		"*6\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n$7\r\ntimeout\r\n$1\r\n5\r\n$9\r\nmaxmemory\r\n$1\r\n0");
	REPLIES("config get unixsocket", "*2\r\n$10\r\nunixsocket\r\n$0\r\n");
	REPLIES("config set timeout 60", "+OK");
	EXPECT(strcmp(fake.option, "timeout") == 0 && fake.option_value == 60000);
	REPLIES("config set timeout 0", "+OK");
	REPLIES("config set maxclients 5 timeout 7", "+OK");
	EXPECT(strcmp(fake.audit, "config set - maxclients timeout") == 0);
	REPLIES("config set maxclients 0",
		"-ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument must be between 1 and 4294967 "
		"inclusive");
	fake.option_value = 0;
	REPLIES("config set timeout 9 port 1",
		"-ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable config");
	EXPECT_EQ(fake.option_value, 0);                       /* none of them, then */
	REPLIES("config set port 7411", "+OK");
	REPLIES("config set noh-max-args 7",
		"-ERR CONFIG SET failed (possibly related to argument 'noh-max-args') - can't set immutable config");
	REPLIES("config set foo 1", "-ERR Unknown option or number of arguments for CONFIG SET - 'foo'");
	REPLIES("config set foo 1 bar", SYNTAX);
	REPLIES("config reload", "-ERR this program has no settings to read again");
	fake.reloads = true;
	fake_run("config reload");
	fake_answer(&(struct reply_part){ NOH_OK, 24, "restart\ta.b\t1\t2\tdefault\n" }, 1);
	out_bytes(&fake.out, "", 1);
	EXPECT(strcmp(fake.out.bytes, "*1\r\n*5\r\n$7\r\nrestart\r\n$3\r\na.b\r\n$1\r\n1\r\n$1\r\n2\r\n$7\r\ndefault\r\n") == 0);
	REPLIES("config resetstat", "+OK");
	EXPECT_EQ(fake.resets, 1);
}

static void levels_of_the_log_are_set_by_their_names(void)
{
	fake_open(NOH_ADMIN);
	REPLIES("config set loglevel 'warn counter=debug'", "+OK");
	REPLIES("config get loglevel", "*2\r\n$8\r\nloglevel\r\n$18\r\nwarn counter=debug");
	fake.option_value = 0;
	REPLIES("config set timeout 60 loglevel loud",
		"-ERR CONFIG SET failed (possibly related to argument 'loglevel') - no such level");
	EXPECT_EQ(fake.option_value, 0);                       /* none of them, then */
	REPLIES("config set loglevel info port 1",
		"-ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable config");
	REPLIES("config get loglevel", "*2\r\n$8\r\nloglevel\r\n$18\r\nwarn counter=debug");
	REPLIES("config set noh-trace-sample 0", "+OK");       /* as it is; 0 is none */
}

static bool info_has(const char *text)
{
	out_bytes(&fake.out, "", 1);
	return strstr(fake.out.bytes, text) != NULL;
}

static unsigned long long info_number(const char *name)
{
	const char *at;

	out_bytes(&fake.out, "", 1);
	at = strstr(fake.out.bytes, name);
	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void info_tells_the_memory_of_the_process(void)
{
	fake_open(NOH_ADMIN);
	fake_run("info memory");
	EXPECT(info_number("\nused_memory:") > 500000);          /* no process is smaller; and there are no actors here */
	EXPECT_EQ(info_number("\nused_memory:"), info_number("\nused_memory_rss:"));
	EXPECT(info_number("\nused_memory_peak:") >= info_number("\nused_memory:") / 2);
	fake_run("info noh");
	EXPECT(info_has("actors_bytes:") && info_has("actors_peak_bytes:"));
}

static void info_has_what_clients_and_exporters_look_for(void)
{
	static const char *const info[] = { "durability", "disk", NULL };

	fake_open(NOH_ADMIN);
	fake.options.info = info;
	fake_run("get k");
	fake_run("get k");
	fake_run("info");
	EXPECT(info_has("redis_version:7.2.0\r\n") && info_has("noh_version:" NOH_VERSION "\r\n"));
	EXPECT(info_has("# Server\r\n") && info_has("\r\n\r\n# Noh\r\n") && !info_has("# Commandstats"));
	EXPECT(info_has("loading:0\r\n") && info_has("connected_clients:3\r\n") && info_has("used_memory:"));
	EXPECT(info_has("uptime_in_seconds:10\r\n") && info_has("io_backend:epoll\r\n") && info_has("role:master\r\n"));
	EXPECT(info_has("db0:keys=4\r\n") && info_has("durability:disk\r\n"));
	fake_run("info COMMANDSTATS");
	EXPECT(info_has("# Commandstats\r\n") && info_has("cmdstat_get:calls=2\r\n") && !info_has("# Server"));
	fake_run("info server noh");
	EXPECT(info_has("# Server") && info_has("# Noh") && !info_has("# Stats"));
	fake_run("info all");
	EXPECT(info_has("# Server") && info_has("# Commandstats"));
	REPLIES("info nosuch", "$0\r\n");
}

static void commands_tell_about_themselves(void)
{
	fake_open(NOH_ADMIN);
	REPLIES("command info get nosuch",
		"*2\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*3\r\n+@read\r\n+@string\r\n+@fast\r\n"
		"*0\r\n*0\r\n*0\r\n$-1");
	REPLIES("command info client|id",
		"*1\r\n*10\r\n$9\r\nclient|id\r\n:2\r\n*1\r\n+fast\r\n:0\r\n:0\r\n:0\r\n*2\r\n+@connection\r\n+@fast\r\n*0\r\n*0\r\n*0");
	REPLIES("command docs time nosuch",
		"*2\r\n$4\r\ntime\r\n*12\r\n$7\r\nsummary\r\n$65\r\nThe server's wall clock; the microseconds are whole milliseconds.\r\n"
		"$5\r\nsince\r\n$5\r\n0.1.0\r\n$5\r\ngroup\r\n$6\r\nserver\r\n$10\r\ncomplexity\r\n$4\r\nO(1)\r\n$6\r\nsyntax\r\n$0\r\n\r\n"
		"$5\r\nreply\r\n$28\r\narray: seconds, microseconds");
	REPLIES("command list filterby pattern inv.re*e", "*2\r\n$11\r\ninv.release\r\n$11\r\ninv.reserve");
	REPLIES("command list filterby aclcat transaction", "*0");
	REPLIES("command list filterby module json", "*0");
	REPLIES("command list filterby foo json", SYNTAX);
	REPLIES("command list foo", SYNTAX);
	REPLIES("command getkeys mset a 1 b 2", "*2\r\n$1\r\na\r\n$1\r\nb");
	REPLIES("command getkeys del a b IDEM x", "*2\r\n$1\r\na\r\n$1\r\nb");
	REPLIES("command getkeys incr a IDEM x", "*1\r\n$1\r\na");
	REPLIES("command getkeys get", "-ERR Invalid number of arguments specified for command");
	REPLIES("command getkeys ping", "-ERR The command has no key arguments");
	REPLIES("command getkeys foo", "-ERR Invalid command specified");
	REPLIES("config help",
		"*11\r\n+CONFIG <subcommand> [<arg> ...]. Subcommands are:\r\n+GET pattern [pattern ...]\r\n"
		"+    Settings whose names match.\r\n+HELP\r\n+    The subcommands of CONFIG.\r\n+RELOAD\r\n"
		"+    Read the settings and the users again. All of it happens or, with an error, nothing; what is marked restart "
		"waits for one.\r\n+RESETSTAT\r\n"
		"+    Begin to count anew.\r\n+SET name value [name value ...]\r\n"
		"+    Change a setting, until the server ends. Few can be changed while it runs.");
	fake_run("client help"), EXPECT(fake.out.len > 100);
	fake_run("command help"), EXPECT(fake.out.len > 100);
}

/* How many replies there are in the text, however deep: what COMMAND writes must add up. */
static const char *skip_reply(const char *p)
{
	long n = strtol(p + 1, NULL, 10);
	char mark = *p;

	p = strchr(p, '\n') + 1;
	if (mark == '$' || mark == '=')
		return n < 0 ? p : p + n + 2;
	if (mark == '*' || mark == '~' || mark == '%')
		for (long i = 0; i < n * (mark == '%' ? 2 : 1); i++)
			p = skip_reply(p);
	return p;
}

static void every_listing_adds_up(void)
{
	static const char *const listings[] = { "command", "command docs", "command info", "command list", "client list",
						"config get *", "info", "info all", "actor.pool", "actor.list", "client help",
						"actor.status a:b" };

	for (int proto = 2; proto <= 3; proto++)
		for (size_t i = 0; i < sizeof listings / sizeof listings[0]; i++) {
			fake_open(NOH_ADMIN);
			fake.session.proto = (uint8_t)proto;
			fake_run(listings[i]);
			size_t len = fake.out.len;

			out_bytes(&fake.out, "", 1);
			EXPECT(len > 0 && skip_reply(fake.out.bytes) == fake.out.bytes + len);
		}
	fake_open(NOH_ADMIN);
	uint32_t listed = 0;

	for (uint32_t i = 0; i < command_total(); i++)
		listed += !strchr(command_row(i)->name, '|') && !(command_row(i)->flags & COMMAND_REFUSED);
	char expected[32];

	snprintf(expected, sizeof expected, ":%u\r\n", listed);
	replies("command count", expected, __FILE__, __LINE__);
}

static void shutdown_asks_the_program(void)
{
	fake_open(NOH_ADMIN);
	fake_run("shutdown nosave");
	EXPECT(fake.shutdowns == 1 && fake.session.closing && fake.out.len == 0);
	fake_open(NOH_ADMIN);
	fake.options.may_shutdown = false;
	REPLIES("shutdown", "-ERR this server does not shut down by command; send it SIGTERM");
	REPLIES("shutdown foo", SYNTAX);
	REPLIES("shutdown abort", "-ERR No shutdown in progress.");
	EXPECT(fake.shutdowns == 0 && !fake.session.closing);
}

/* ── actors of any type ───────────────────────────────────────────────────────────────────────── */
static void messages_go_to_any_actor(void)
{
	fake_open(NOH_ADMIN);
	ASKS("actor.send npc:7 poke hello", "send npc:7 3 'hello'");
	FAILS(NOH_OK, "+OK");
	fake.out.len = 0;
	fake_answer(&(struct reply_part){ NOH_REFUSED, 7, "not now" }, 1);
	WROTE("-REFUSED not now");
	ASKS("actor.send npc:7 12 hello ACK memory IDEM k", "send npc:7 12 'hello' memory key k");
	ASKS("actor.send npc:7 12 hello ACK none", "send npc:7 12 'hello' nowait");
	ASKS("actor.send npc:7 12 '' ACK disk", "send npc:7 12 ''");
	ASKS("actor.send npc:7 12 x TRACE 00-t-p-01 ACK memory", "send npc:7 12 'x' memory trace 00-t-p-01");
	ASKS("actor.invoke npc:7 12 x TRACESTATE a=b TRACE 00-t-p-01", "npc:7 12 'x' trace 00-t-p-01 state a=b");
	REPLIES("actor.invoke npc:7 12 x TRACE", SYNTAX);
	REPLIES("actor.invoke npc:7 12 x TRACE a TRACE b", SYNTAX);
	REPLIES("actor.send npc:7 12 x ACK maybe", "-ERR ACK must be none, memory or disk");
	REPLIES("actor.send npc:7 12 x ACK", SYNTAX);
	REPLIES("actor.send npc:7 12 x ACK disk ACK disk", SYNTAX);
	REPLIES("actor.send npc:7 12 x TIMEOUT 5", SYNTAX);
	ASKS("actor.send npc/7 poke x DELAY 5 IDEM k", "send later:npc:7 0 '\x05' key k");        /* up to the first NUL */
	ASKS("actor.send npc:7 12 x DELAY 0", "send npc:7 12 'x'");
	REPLIES("actor.send npc:7 12 x DELAY soon", "-ERR DELAY must be a number of milliseconds, at most a year (31536000000)");
	REPLIES("actor.send npc:7 12 x DELAY 31536000001",
		"-ERR DELAY must be a number of milliseconds, at most a year (31536000000)");
	REPLIES("actor.send npc:7 12 x DELAY", SYNTAX);
	REPLIES("actor.send no:7 12 x DELAY 5", "-NOTYPE no such actor type is registered");
	ASKS("actor.invoke npc/7 poke hello TIMEOUT 250 IDEM k", "npc/7 3 'hello' timeout 250 key k");
	fake_answer(&(struct reply_part){ NOH_OK, 6, "answer" }, 1);
	WROTE("$6\r\nanswer");
	fake.out.len = 0;
	fake_answer(&(struct reply_part){ NOH_REFUSED, 0, NULL }, 1);
	WROTE("-REFUSED the actor says no; nothing was done");
	REPLIES("actor.invoke npc:7 poke x TIMEOUT 0", "-ERR TIMEOUT must be a number of milliseconds, 1 to 86400000");
	REPLIES("actor.invoke npc:7 poke x ACK none", SYNTAX);
	REPLIES("actor.invoke npc:7 nosuch x", "-NOKIND type npc has no message kind \"nosuch\"; it has poke");
	REPLIES("actor.invoke no:7 poke x", "-NOTYPE no such actor type is registered");
	REPLIES("actor.invoke npc:7 \"p\\x00\" x", "-NOKIND the type has no such message kind");
	REPLIES("actor.invoke npc:7 4294967296 x", "-NOKIND type npc has no message kind \"4294967296\"; it has poke");
	fake_run("actor.invoke npc 1 x");
	EXPECT(memcmp(fake.out.bytes, "-BADADDRESS ", 12) == 0 && !fake.format);
	fake_run("actor.invoke \"n\\x00:7\" 1 x");
	EXPECT(memcmp(fake.out.bytes, "-BADADDRESS ", 12) == 0);
}

static void actors_come_and_go(void)
{
	fake_open(NOH_ADMIN);
	ASKS("actor.activate npc/7", "activate npc/7");
	EXPECT(strcmp(fake.audit, "activate npc:7 -") == 0);
	ASKS("actor.deactivate npc:7", "deactivate npc:7");
	EXPECT(strcmp(fake.audit, "deactivate npc:7 -") == 0);
	FAILS(NOH_ENOACTOR, "-NOACTOR no such actor is active");
	ASKS("actor.deactivate npc:7 FORCE", "force npc:7");
	EXPECT(strcmp(fake.audit, "deactivate by force npc:7 -") == 0);
	fake_run("actor.activate npc");
	EXPECT(fake.audit[0] == 0);
	REPLIES("actor.deactivate npc:7 foo", SYNTAX);
	REPLIES("actor.status npc:7",
		"*28\r\n$13\r\nactor_address\r\n$5\r\nnpc:7\r\n$9\r\nis_active\r\n:1\r\n$4\r\nlife\r\n$6\r\nactive\r\n$6\r\nexists\r\n:1\r\n$6\r\nstored\r\n:1\r\n"
		"$12\r\nmailbox_size\r\n:4\r\n$7\r\nidle_ms\r\n:250\r\n$7\r\nresting\r\n:0\r\n$18\r\nmessages_processed\r\n:7\r\n"
		"$5\r\nstate\r\n$8\r\ndegraded\r\n$8\r\nrestarts\r\n:3\r\n$12\r\nlast_failure\r\n$5\r\nbroke\r\n$15\r\nlast_failure_ms\r\n:99\r\n"
		"$8\r\nretry_ms\r\n:100");
	REPLIES("actor.status no:7", "-NOTYPE no such actor type is registered");
	REPLIES("actor.list TYPE npc LIMIT 1", "*2\r\n$2\r\n77\r\n*1\r\n*2\r\n$5\r\nnpc:0\r\n$6\r\nactive");
	REPLIES("actor.list CURSOR 77", "*2\r\n$1\r\n0\r\n*2\r\n*2\r\n$5\r\nany:0\r\n$6\r\nactive\r\n*2\r\n$5\r\nany:1\r\n$6\r\nactive");
	REPLIES("actor.list TYPE no", "-NOTYPE no such actor type is registered");
	REPLIES("actor.list ALL TYPE npc",
		"*2\r\n$20\r\n18446744073709551615\r\n*2\r\n*2\r\n$5\r\nnpc:b\r\n$6\r\nactive\r\n*2\r\n$7\r\nnpc:abc\r\n$6\r\nstored");
	REPLIES("actor.list CURSOR 5 ALL", "-ERR invalid cursor");
	REPLIES("actor.list ALL ALL", SYNTAX);
	REPLIES("actor.list ALL TYPE no", "-NOTYPE no such actor type is registered");
	REPLIES("actor.list LIMIT 0", "-ERR LIMIT must be 1 to 1000");
	REPLIES("actor.list LIMIT 1001", "-ERR LIMIT must be 1 to 1000");
	REPLIES("actor.list CURSOR x", "-ERR invalid cursor");
	REPLIES("actor.list CURSOR", SYNTAX);
	REPLIES("actor.list foo", SYNTAX);
}

static void every_failure_has_its_word(void)
{
	static const struct { int status; const char *word; } words[] = {
		{ NOH_FULL, "-MAILBOXFULL " }, { NOH_ENOMEM, "-OOM " }, { NOH_EADDRESS, "-BADADDRESS " },
		{ NOH_ENOTYPE, "-NOTYPE " }, { NOH_EKIND, "-NOKIND " }, { NOH_ETOOBIG, "-TOOBIG " },
		{ NOH_ESTOPPED, "-STOPPING " }, { NOH_EGONE, "-GONE " }, { NOH_ETIMEOUT, "-TIMEOUT " },
		{ NOH_EFAILED, "-FAILED " }, { NOH_ENOACTOR, "-NOACTOR " }, { NOH_ENOSPC, "-READONLY " },
		{ NOH_EIDEM, "-IDEMCONFLICT " }, { NOH_EPOISON, "-QUARANTINED " },
		{ NOH_EQUARANTINED, "-QUARANTINED " }, { NOH_EDEGRADED, "-DEGRADED " }, { NOH_ERATE, "-RATE " }, { NOH_EDISK, "-DISKFAILED " },
		{ NOH_EINVAL, "-ERR " }, { -999, "-FAILED " } };

	fake_open(NOH_ADMIN);
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		fake_run("get k");
		fake_answer(&(struct reply_part){ words[i].status, 0, NULL }, 1);
		EXPECT(fake.out.len > strlen(words[i].word) && memcmp(fake.out.bytes, words[i].word, strlen(words[i].word)) == 0);
	}
	fake_run("get k");
	fake_answer(&(struct reply_part){ NOH_EFAILED, 8, "too\r\nbad" }, 1);
	WROTE("-FAILED too  bad");
	fake_run("get k");
	fake_answer(&(struct reply_part){ NOH_ENOSPC, 17, "/data needs 4 MiB" }, 1);
	WROTE("-READONLY /data needs 4 MiB");
	fake_run("get k");
	fake_answer(&(struct reply_part){ NOH_OK, 3, "abc" }, 1);
	WROTE("-FAILED the actor gave an answer of 3 bytes where 16 were expected");
}

static void drain_asks_the_program_and_tells_what_came_of_it(void)
{
	static const char left[] = "3 actors are still in memory";

	fake_open(NOH_ADMIN);
	REPLIES("drain", "-ERR this server does not end by command; send it SIGTERM");
	fake.drains = true;
	fake_run("drain");
	EXPECT(fake.drain_ms == 30000 && fake.format && fake.out.len == 0);
	EXPECT(strcmp(fake.audit, "drain - -") == 0 && fake.asked[0] == 0);
	fake_answer(&(struct reply_part){ NOH_OK, 0, NULL }, 1);
	EXPECT(memcmp(fake.out.bytes, "+OK", 3) == 0);
	fake_run("drain deadline 250");
	EXPECT_EQ(fake.drain_ms, 250);
	fake_answer(&(struct reply_part){ NOH_REFUSED, sizeof left - 1, left }, 1);
	EXPECT(memcmp(fake.out.bytes, "-DRAINTIMEOUT 3 actors", 22) == 0);
	REPLIES("drain nowait deadline 5", "+OK");
	EXPECT_EQ(fake.drain_ms, 5);
	REPLIES("drain deadline 0", "-ERR DEADLINE is 1 to 86400000 milliseconds");
	REPLIES("drain deadline", SYNTAX);
	REPLIES("drain soon", SYNTAX);
	fake.draining = true;
	fake_run("drain status");
	EXPECT(memmem(fake.out.bytes, fake.out.len, "actors\r\n:7", 10) && memmem(fake.out.bytes, fake.out.len, "messages\r\n:9", 12));
	fake.options.may_shutdown = false;
	REPLIES("drain nowait", "-ERR this server does not end by command; send it SIGTERM");
	fake_close();
	fake_open(NOH_DEVELOPER);
	REPLIES("drain", "-NOPERM User default has no permissions to run the 'drain' command");
	fake_close();
}

static void a_server_that_drains_publishes_nothing_more(void)
{
	fake_open(NOH_ADMIN);
	fake.draining = true;
	REPLIES("publish c m", "-STOPPING the server is stopping; nothing was changed");
	fake_close();
}

TEST_MAIN(
	TEST(every_command_is_found_in_any_case),
	TEST(the_table_is_in_order),
	TEST(the_number_of_arguments_is_checked, "P11"),
	TEST(unknown_commands_are_told_as_redis_does, "P11"),
	TEST(http_is_recognised_and_cut_off, "P11"),
	TEST(nobody_may_do_anything_before_a_log_in, "API-09"),
	TEST(without_accounts_a_log_in_is_a_mistake),
	TEST(every_role_is_asked_for, "API-09"),
	TEST(simple_commands_answer),
	TEST(hello_chooses_the_protocol),
	TEST(a_connection_has_a_name),
	TEST(replies_can_be_switched_off),
	TEST(clients_are_listed_and_ended),
	TEST(settings_are_shown_by_pattern_and_few_are_changed),
	TEST(levels_of_the_log_are_set_by_their_names),
	TEST(info_tells_the_memory_of_the_process),
	TEST(info_has_what_clients_and_exporters_look_for),
	TEST(commands_tell_about_themselves),
	TEST(every_listing_adds_up),
	TEST(shutdown_asks_the_program),
	TEST(drain_asks_the_program_and_tells_what_came_of_it, "CLI-05"),
	TEST(a_server_that_drains_publishes_nothing_more),
	TEST(messages_go_to_any_actor),
	TEST(actors_come_and_go),
	TEST(every_failure_has_its_word, "P11"))
