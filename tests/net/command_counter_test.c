/* tests/net/command_counter_test.c - counters and keys: what is asked of which actor, and how its answer reads. */
#include "tests/net/command_kit.h"

#include "core/mem.h"

#include <stdlib.h>

#define MAX "9223372036854775807"
#define MIN "-9223372036854775808"

static const noh_counter_value none = { .outcome = NOH_COUNTER_NONE };
static const noh_counter_value seven = { .existed = 1, .value = -7 };

static void incr_and_its_kin_add(void)
{
	noh_counter_added added = { .value = -42, .applied = 1 };

	fake_open(NOH_USER);
	ASKS("incr k", "counter:k add 1");
	ANSWERS(added, ":-42");
	added.outcome = NOH_COUNTER_OVERFLOW;
	ANSWERS(added, "-ERR increment or decrement would overflow");
	FAILS(NOH_ETIMEOUT, "-TIMEOUT no answer in time; it may still take effect");
	ASKS("decr k", "counter:k add -1");
	ASKS("incrby k " MAX, "counter:k add " MAX);
	ASKS("incrby k " MIN, "counter:k add " MIN);
	ASKS("decrby k 5", "counter:k add -5");
	ASKS("decrby k " MAX, "counter:k add -9223372036854775807");
	REPLIES("decrby k " MIN, "-ERR decrement would overflow");
	ASKS("incr 'a:b c'", "counter:a:b c add 1");
}

static void only_an_integer_is_an_integer(void)
{
	static const char *const bad[] = { "x", "''", "+1", "01", "-0", "-", "1.5", "' 1'", "'1 '", "0x10", "1e3", "--1",
					   "9223372036854775808", "-9223372036854775809", "18446744073709551617",
					   "100000000000000000000000", "\"1\\x00\"" };

	fake_open(NOH_USER);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		char line[64];

		snprintf(line, sizeof line, "incrby k %s", bad[i]);
		REPLIES(line, NOT_INT);
		snprintf(line, sizeof line, "set k %s", bad[i]);
		REPLIES(line, NO_VALUE);
	}
	ASKS("incrby k 0", "counter:k add 0");
}

static void idem_is_the_last_option_of_every_write(void)
{
	char line[400], expected[400], key[300];

	fake_open(NOH_USER);
	ASKS("incr k IDEM o-1", "counter:k add 1 key o-1");
	ASKS("decr k idem o-1", "counter:k add -1 key o-1");
	ASKS("incrby k 5 IDEM o-1", "counter:k add 5 key o-1");
	ASKS("decrby k 5 IDEM o-1", "counter:k add -5 key o-1");
	ASKS("increx k IDEM o-1 BYINT 2",
	     "counter:k add 2 within " MIN " " MAX " time 0 key o-1");
	ASKS("set k 5 IDEM o-1 NX", "counter:k set 5 time 0 ifnone key o-1");
	ASKS("setnx k 5 IDEM o-1", "counter:k set 5 time 0 ifnone key o-1");
	ASKS("setex k 9 5 IDEM o-1", "counter:k set 5 time 9000 in key o-1");
	ASKS("psetex k 9 5 IDEM o-1", "counter:k set 5 time 9 in key o-1");
	ASKS("getset k 5 IDEM o-1", "counter:k set 5 key o-1");
	ASKS("getdel k IDEM o-1", "counter:k delete key o-1");
	ASKS("expire k 5 IDEM o-1", "counter:k expire 5000 in key o-1");
	ASKS("persist k IDEM o-1", "counter:k expire 0 persist key o-1");
	ASKS("mset a 1 b 2 IDEM o-1", "counter:a set 1 key o-1; counter:b set 2");
	ASKS("del a b IDEM o-1", "counter:a delete key o-1; counter:b delete key o-1");
	FAILS(NOH_EIDEM, "-IDEMCONFLICT the idempotency key was used with another message");
	REPLIES("incr k IDEM ''", "-ERR an idempotency key has 1 to 255 bytes, this one has 0");
	memset(key, 'x', 256);
	key[255] = 0;
	snprintf(line, sizeof line, "incr k IDEM %s", key);
	snprintf(expected, sizeof expected, "counter:k add 1 key %s", key);
	ASKS(line, expected);
	snprintf(line, sizeof line, "incr k IDEM %sx", key);
	REPLIES(line, "-ERR an idempotency key has 1 to 255 bytes, this one has 256");
	REPLIES("set k 5 IDEM", SYNTAX);
	REPLIES("set k 5 IDEM a IDEM b", SYNTAX);
	REPLIES("incr k IDEM a b", ARITY("incr"));
	REPLIES("get k IDEM a", ARITY("get"));
}

static void get_and_set(void)
{
	const noh_counter_value kept = { NOH_COUNTER_UNCHANGED, 1, 5 };

	fake_open(NOH_USER);
	ASKS("get k", "counter:k get");
	ANSWERS(seven, "$2\r\n-7");
	ANSWERS(none, "$-1");
	ASKS("set k 5", "counter:k set 5");
	ANSWERS(seven, "+OK");
	ASKS("set k 5 NX", "counter:k set 5 time 0 ifnone");
	ANSWERS(kept, "$-1");
	ASKS("set k 5 xx GET", "counter:k set 5 time 0 ifthere");
	ANSWERS(seven, "$2\r\n-7");
	ASKS("set k 5 NX GET", "counter:k set 5 time 0 ifnone");
	ANSWERS(kept, "$1\r\n5");
	const noh_counter_value absent = { NOH_COUNTER_OK, 0, 0 };

	ANSWERS(absent, "$-1");
	ASKS("set k 5 EX 10", "counter:k set 5 time 10000 in");
	ASKS("set k 5 PX 10", "counter:k set 5 time 10 in");
	ASKS("set k 5 EXAT 10", "counter:k set 5 time 10000 at");
	ASKS("set k 5 PXAT 10", "counter:k set 5 time 10 at");
	ASKS("set k 5 KEEPTTL XX", "counter:k set 5 time 0 keep ifthere");
	ASKS("set k 5 NX nx", "counter:k set 5 time 0 ifnone");
	ASKS("set k 5 XX GET xx", "counter:k set 5 time 0 ifthere");
	REPLIES("set k 5 NX XX", SYNTAX);
	REPLIES("set k 5 XX NX", SYNTAX);
	REPLIES("set k 5 EX 1 PX 1", SYNTAX);
	REPLIES("set k 5 EX 1 KEEPTTL", SYNTAX);
	REPLIES("set k 5 KEEPTTL EX 1", SYNTAX);
	REPLIES("set k 5 EX", SYNTAX);
	REPLIES("set k 5 foo", SYNTAX);
	REPLIES("set k 5 EX x", NOT_INT);
	REPLIES("set k 5 EX 0", "-ERR invalid expire time in 'set' command");
	REPLIES("set k 5 EX -1", "-ERR invalid expire time in 'set' command");
	REPLIES("set k 5 PXAT 0", "-ERR invalid expire time in 'set' command");
	REPLIES("set k 5 EX " MAX, "-ERR invalid expire time in 'set' command");
	REPLIES("set k 5 PX " MAX, "-ERR invalid expire time in 'set' command");
	ASKS("set k 5 PX 126701150399999", "counter:k set 5 time 126701150399999 in");
	REPLIES("set k 5 PX 126701150400000", "-ERR invalid expire time in 'set' command");
	REPLIES("set k 5 EX 126701150400", "-ERR invalid expire time in 'set' command");
	ASKS("set k 5 PXAT 253402300799999", "counter:k set 5 time 253402300799999 at");
	REPLIES("set k 5 PXAT 253402300800000", "-ERR invalid expire time in 'set' command");
	REPLIES("setex k 126701150400 5", "-ERR invalid expire time in 'setex' command");
}

static void older_forms_of_set(void)
{
	const noh_counter_value kept = { NOH_COUNTER_UNCHANGED, 1, 5 };

	fake_open(NOH_USER);
	ASKS("setnx k 5", "counter:k set 5 time 0 ifnone");
	ANSWERS(kept, ":0");
	const noh_counter_value done = { NOH_COUNTER_OK, 0, 0 };

	ANSWERS(done, ":1");
	ASKS("setex k 10 5", "counter:k set 5 time 10000 in");
	ANSWERS(done, "+OK");
	ASKS("psetex k 10 5", "counter:k set 5 time 10 in");
	REPLIES("setex k 0 5", "-ERR invalid expire time in 'setex' command");
	REPLIES("psetex k -1 5", "-ERR invalid expire time in 'psetex' command");
	REPLIES("setex k x 5", NOT_INT);
	REPLIES("setex k 5 x", NO_VALUE);
	ASKS("getset k 5", "counter:k set 5");
	ANSWERS(seven, "$2\r\n-7");
	ANSWERS(done, "$-1");
	ASKS("getdel k", "counter:k delete");
	ANSWERS(seven, "$2\r\n-7");
	ANSWERS(none, "$-1");
}

static void increx_adds_within_bounds(void)
{
	noh_counter_added added = { .value = 10, .applied = 3 };

	fake_open(NOH_USER);
	ASKS("increx k", "counter:k add 1 within " MIN " " MAX " time 0");
	ANSWERS(added, "*2\r\n:10\r\n:3");
	added = (noh_counter_added){ .outcome = NOH_COUNTER_OUT_OF_BOUNDS, .value = 10 };
	ANSWERS(added, "*2\r\n:10\r\n:0");
	added.outcome = NOH_COUNTER_OVERFLOW;
	ANSWERS(added, "*2\r\n:10\r\n:0");
	ASKS("increx k BYINT 5 LBOUND -3 UBOUND 9 SATURATE EX 60 ENX",
	     "counter:k add 5 within -3 9 time 60000 in ifnotime saturate");
	ANSWERS(added, "-ERR increment or decrement would overflow");
	ASKS("increx k saturate ubound 9 byint -5", "counter:k add -5 within " MIN " 9 time 0 saturate");
	ASKS("increx k PX 5", "counter:k add 1 within " MIN " " MAX " time 5 in");
	ASKS("increx k EXAT 5", "counter:k add 1 within " MIN " " MAX " time 5000 at");
	ASKS("increx k PXAT 5 ENX", "counter:k add 1 within " MIN " " MAX " time 5 at ifnotime");
	ASKS("increx k PERSIST", "counter:k add 1 within " MIN " " MAX " time 0 persist");
	ASKS("increx k lbound 5 ubound 5", "counter:k add 1 within 5 5 time 0");
	REPLIES("increx k lbound 6 ubound 5", "-ERR LBOUND is above UBOUND");
	REPLIES("increx k ENX", "-ERR ENX needs one of EX, PX, EXAT and PXAT");
	REPLIES("increx k PERSIST ENX", "-ERR ENX needs one of EX, PX, EXAT and PXAT");
	REPLIES("increx k EX 5 PERSIST", SYNTAX);
	REPLIES("increx k PERSIST EX 5", SYNTAX);
	REPLIES("increx k EX 5 EX 5", SYNTAX);
	REPLIES("increx k EX 0", "-ERR invalid expire time in 'increx' command");
	REPLIES("increx k BYINT", SYNTAX);
	REPLIES("increx k BYINT 1 BYINT 2", SYNTAX);
	REPLIES("increx k BYINT x", NOT_INT);
	REPLIES("increx k BYFLOAT 1.5", "-ERR BYFLOAT is not supported: a counter is a 64-bit integer");
	REPLIES("increx k SATURATE SATURATE", SYNTAX);
	REPLIES("increx k foo", SYNTAX);
}

static void several_keys_are_asked_one_by_one(void)
{
	const noh_counter_value two = { .existed = 1, .value = 2 };
	const struct reply_part parts[] = { { NOH_OK, sizeof seven, &seven }, { NOH_OK, sizeof none, &none },
				      { NOH_OK, sizeof two, &two } };
	const struct reply_part broken[] = { { NOH_OK, sizeof seven, &seven }, { NOH_EADDRESS, 0, NULL },
				       { NOH_OK, sizeof two, &two } };

	fake_open(NOH_USER);
	ASKS("mget a b a", "counter:a get; counter:b get; counter:a get");
	EXPECT(!fake.step);
	fake_answer(parts, 3);
	WROTE("*3\r\n$2\r\n-7\r\n$-1\r\n$1\r\n2");
	fake_run("mget a b c");
	fake_answer(broken, 3);
	WROTE("-BADADDRESS a key has 1 to 247 bytes, an address is \"type:id\" of at most 255, and neither has a NUL byte");
	ASKS("exists a b a", "counter:a get; counter:b get; counter:a get");
	fake_answer(parts, 3);
	WROTE(":2");
	ASKS("touch a b c", "counter:a get; counter:b get; counter:c get");
	fake_answer(parts, 3);
	WROTE(":2");
	ASKS("del a b a", "counter:a delete; counter:b delete; counter:a delete");
	fake_answer(parts, 3);
	WROTE(":2");
	ASKS("unlink a", "counter:a delete");
	ASKS("del a b a IDEM k", "counter:a delete key k; counter:b delete key k");   /* the same is not asked twice */
	ASKS("del IDEM k", "counter:IDEM delete; counter:k delete");
}

static void mset_is_one_step(void)
{
	const struct reply_part parts[] = { { NOH_OK, sizeof seven, &seven }, { NOH_OK, sizeof none, &none } };
	const struct reply_part failed[] = { { NOH_OK, sizeof seven, &seven }, { NOH_ENOSPC, 0, NULL } };

	fake_open(NOH_USER);
	ASKS("mset a 1 b 2", "counter:a set 1; counter:b set 2");
	EXPECT(fake.step);
	fake_answer(parts, 2);
	WROTE("+OK");
	ASKS("mset a 1 b 2", "counter:a set 1; counter:b set 2");
	fake_answer(failed, 2);
	WROTE("-READONLY no space left on disk: nothing was changed, reads go on");
	ASKS("mset a 1 b 2 a 3 '' 4", "counter:a set 3; counter:b set 2; counter: set 4");
	REPLIES("mset a 1 b", ARITY("mset"));
	REPLIES("mset a 1 b x", NO_VALUE);
	REPLIES("mset a 1 IDEM ''", "-ERR an idempotency key has 1 to 255 bytes, this one has 0");
	ASKS("mset IDEM 1", "counter:IDEM set 1");
	ASKS("mset a 1 IDEM 5", "counter:a set 1 key 5");
}

static void very_many_keys_need_memory(void)
{
	enum { KEYS = 2000 };
	struct arg *argv = malloc((1 + 2 * KEYS) * sizeof *argv);

	fake_open(NOH_USER);
	argv[0] = (struct arg){ "mset", 4 };
	for (int i = 0; i < KEYS; i++) {
		argv[1 + 2 * i] = (struct arg){ i % 2 ? "odd" : "even", i % 2 ? 3 : 4 };
		argv[2 + 2 * i] = (struct arg){ "7", 1 };
	}
	fake_run_args(argv, 1 + 2 * KEYS);
	EXPECT(strcmp(fake.asked, "counter:even set 7; counter:odd set 7") == 0);
	argv[0] = (struct arg){ "mget", 4 };
	fake_run_args(argv, 1 + 2 * KEYS);
	EXPECT_EQ(fake.requests, 2 * KEYS);
	for (int i = 0; i < KEYS; i++) {                         /* as many different ones are too many */
		static char names[KEYS][8];

		argv[1 + 2 * i] = (struct arg){ names[i], (uint32_t)snprintf(names[i], sizeof names[i], "%d", i) };
	}
	argv[0] = (struct arg){ "mset", 4 };
	fake_run_args(argv, 1 + 2 * KEYS);
	WROTE("-TOOBIG 2000 at one instant: at most 1024 in one command");
	fake_run_args(argv, 1 + 2 * 1024);
	EXPECT(fake.requests == 1024 && fake.step);
	for (int command = 0; command < 3; command++) {
		static const char *const names[] = { "mset", "mget", "del" };

		argv[0] = (struct arg){ names[command], (uint32_t)strlen(names[command]) };
		mem_fail_at(1, 0);
		fake_run_args(argv, 1 + 2 * KEYS);
		mem_fail_at(0, 0);
		WROTE("-OOM out of memory, or over the memory budget; nothing was changed");
		EXPECT(fake.format == NULL);
	}
	free(argv);
}

static void times_to_live_are_set(void)
{
	noh_counter_times done = { .outcome = NOH_COUNTER_OK }, kept = { .outcome = NOH_COUNTER_UNCHANGED },
			  gone = { .outcome = NOH_COUNTER_NONE };

	fake_open(NOH_USER);
	ASKS("expire k 10", "counter:k expire 10000 in");
	ANSWERS(done, ":1");
	ANSWERS(kept, ":0");
	ANSWERS(gone, ":0");
	ASKS("pexpire k 10 NX", "counter:k expire 10 in ifnotime");
	ASKS("expireat k 10 XX", "counter:k expire 10000 at iftime");
	ASKS("pexpireat k 10 GT", "counter:k expire 10 at iflater");
	ASKS("expire k -5 LT", "counter:k expire -5000 in ifearlier");
	ASKS("expire k 5 XX GT", "counter:k expire 5000 in iftime iflater");
	ASKS("persist k", "counter:k expire 0 persist");
	ANSWERS(done, ":1");
	REPLIES("expire k 5 NX XX", "-ERR NX and XX, GT or LT options at the same time are not compatible");
	REPLIES("expire k 5 LT NX", "-ERR NX and XX, GT or LT options at the same time are not compatible");
	REPLIES("expire k 5 GT LT", "-ERR GT and LT options at the same time are not compatible");
	REPLIES("expire k 5 foo", "-ERR Unsupported option foo");
	REPLIES("expire k x", NOT_INT);
	ASKS("expireat k 253402300799", "counter:k expire 253402300799000 at");
	REPLIES("expireat k 253402300800", "-ERR invalid expire time in 'expireat' command");
	REPLIES("pexpire k 126701150400000", "-ERR invalid expire time in 'pexpire' command");
	REPLIES("expire k " MAX, "-ERR invalid expire time in 'expire' command");
	REPLIES("expire k " MIN, "-ERR invalid expire time in 'expire' command");
	ASKS("pexpire k " MIN, "counter:k expire -253402300799999 in");     /* over is over: it goes */
	ASKS("pexpireat k " MIN, "counter:k expire -253402300799999 at");
	ASKS("expire k -9223372036854775", "counter:k expire -253402300799999 in");
	REPLIES("pexpireat k " MAX, "-ERR invalid expire time in 'pexpireat' command");
}

static void times_to_live_are_told(void)
{
	noh_counter_times t = { .left = 1499, .at = 1700000001500 }, stays = { .left = -1, .at = -1 },
			  gone = { .outcome = NOH_COUNTER_NONE, .left = -2, .at = -2 };
	static const struct { const char *line, *expected; } ways[] = {
		{ "ttl k", ":1\r\n" }, { "pttl k", ":1499\r\n" }, { "expiretime k", ":1700000002\r\n" },
		{ "pexpiretime k", ":1700000001500\r\n" } };

	fake_open(NOH_USER);
	for (size_t i = 0; i < 4; i++) {
		ASKS(ways[i].line, "counter:k ttl");
		fake_answer(&(struct reply_part){ NOH_OK, sizeof t, &t }, 1);
		wrote(ways[i].expected, __FILE__, __LINE__);
		ANSWERS(stays, ":-1");
		ANSWERS(gone, ":-2");
	}
	ASKS("type k", "counter:k get");
	ANSWERS(seven, "+string");
	ANSWERS(none, "+none");
}

static void keys_are_scanned(void)
{
	fake_open(NOH_ADMIN);
	REPLIES("dbsize", ":4");
	REPLIES("scan 0", "*2\r\n$20\r\n18446744073709551615\r\n*2\r\n$1\r\nb\r\n$3\r\nabc");
	EXPECT_EQ(fake.scan_limit, 10);
	REPLIES("scan 18446744073709551615 COUNT 20000 MATCH ab[c]", "*2\r\n$1\r\n0\r\n*1\r\n$3\r\nabc");
	EXPECT_EQ(fake.scan_limit, 10000);
	REPLIES("scan 0 MATCH x*", "*2\r\n$20\r\n18446744073709551615\r\n*0");
	REPLIES("scan 0 TYPE string MATCH b", "*2\r\n$20\r\n18446744073709551615\r\n*1\r\n$1\r\nb");
	REPLIES("scan 0 TYPE hash", "*2\r\n$1\r\n0\r\n*0");
	REPLIES("scan 5", "-ERR invalid cursor");
	REPLIES("scan -1", "-ERR invalid cursor");
	REPLIES("scan x", "-ERR invalid cursor");
	REPLIES("scan 18446744073709551616", "-ERR invalid cursor");
	REPLIES("scan 0 COUNT 0", SYNTAX);
	REPLIES("scan 0 COUNT x", NOT_INT);
	REPLIES("scan 0 COUNT", SYNTAX);
	REPLIES("scan 0 foo 1", SYNTAX);
	REPLIES("keys *", "*3\r\n$3\r\nabc\r\n$3\r\nabd\r\n$1\r\nb");          /* each once */
	REPLIES("keys a?d", "*1\r\n$3\r\nabd");
	REPLIES("keys x", "*0");
	fake.existing = 100001;
	REPLIES("keys *", "-TOOBIG there are more than 100000 keys: KEYS would hold up everybody else, use SCAN");
}

TEST_MAIN(
	TEST(incr_and_its_kin_add),
	TEST(only_an_integer_is_an_integer, "P11"),
	TEST(idem_is_the_last_option_of_every_write, "P7"),
	TEST(get_and_set),
	TEST(older_forms_of_set),
	TEST(increx_adds_within_bounds),
	TEST(several_keys_are_asked_one_by_one),
	TEST(mset_is_one_step),
	TEST(very_many_keys_need_memory, "P11"),
	TEST(times_to_live_are_set),
	TEST(times_to_live_are_told),
	TEST(keys_are_scanned))
