/* tests/e2e/hiredis.c PORT - noh from C, by hiredis: one by one, in a pipeline, RESP3, errors, binary. Says what is
 * wrong and exits 1, or says "fine". */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static redisContext *c;

static void wrong(const char *what, const redisReply *r)
{
	printf("%s: %s\n", what, r ? r->str ? r->str : "another reply" : c->errstr);
	exit(1);
}

static long long number(const char *what, redisReply *r)
{
	long long n;

	if (!r || r->type != REDIS_REPLY_INTEGER)
		wrong(what, r);
	n = r->integer;
	freeReplyObject(r);
	return n;
}

static void text(const char *what, redisReply *r, int type, const char *want)
{
	if (!r || r->type != type || strncmp(r->str, want, strlen(want)) != 0)
		wrong(what, r);
	freeReplyObject(r);
}

static void pipeline(void)
{
	for (int i = 0; i < 1000; i++)
		if (redisAppendCommand(c, "INCR h:pipe") != REDIS_OK || redisAppendCommand(c, "GET h:pipe") != REDIS_OK)
			wrong("append", NULL);
	for (int i = 1; i <= 1000; i++) {
		redisReply *r = NULL;
		char want[24];

		if (redisGetReply(c, (void **)&r) != REDIS_OK || number("INCR in a pipeline", r) != i)
			wrong("pipeline", NULL);
		if (redisGetReply(c, (void **)&r) != REDIS_OK)
			wrong("pipeline", NULL);
		snprintf(want, sizeof want, "%d", i);
		text("GET in a pipeline", r, REDIS_REPLY_STRING, want);
	}
}

#ifdef REDIS_REPLY_MAP         /* since hiredis 1.0 */
static void resp3(void)
{
	redisReply *r = redisCommand(c, "HELLO 3");

	if (!r || r->type != REDIS_REPLY_MAP)
		wrong("HELLO 3", r);
	freeReplyObject(r);
	r = redisCommand(c, "GET h:none");
	if (!r || r->type != REDIS_REPLY_NIL)
		wrong("nil of RESP3", r);
	freeReplyObject(r);
	r = redisCommand(c, "INV.GET h:sku");
	if (!r || r->type != REDIS_REPLY_MAP || r->elements < 8)
		wrong("INV.GET", r);
	freeReplyObject(r);
}
#else
static void resp3(void)
{
	redisReply *r = redisCommand(c, "INV.GET h:sku");

	if (!r || r->type != REDIS_REPLY_ARRAY || r->elements < 8)
		wrong("INV.GET", r);
	freeReplyObject(r);
}
#endif

int main(int argc, char **argv)
{
	redisReply *r;

	c = redisConnect("127.0.0.1", argc > 1 ? atoi(argv[1]) : 7411);
	if (!c || c->err)
		wrong("connect", NULL);
	freeReplyObject(redisCommand(c, "DEL h:pipe h:a h:b"));
	if (number("INCR", redisCommand(c, "INCR h:a")) != 1 || number("INCRBY", redisCommand(c, "INCRBY %s %d", "h:a", 41)) != 42)
		wrong("INCRBY", NULL);
	text("GET", redisCommand(c, "GET h:a"), REDIS_REPLY_STRING, "42");
	text("MSET", redisCommand(c, "MSET h:a 1 h:b 2"), REDIS_REPLY_STATUS, "OK");
	r = redisCommand(c, "MGET h:a h:b h:none");
	if (!r || r->type != REDIS_REPLY_ARRAY || r->elements != 3 || strcmp(r->element[1]->str, "2") != 0 ||
	    r->element[2]->type != REDIS_REPLY_NIL)
		wrong("MGET", r);
	freeReplyObject(r);
	text("an error", redisCommand(c, "INCRBY h:a many"), REDIS_REPLY_ERROR, "ERR value is not an integer");
	text("unknown", redisCommand(c, "NOSUCH"), REDIS_REPLY_ERROR, "ERR unknown command");
	r = redisCommand(c, "ECHO %b", "a\0b\r\n", (size_t)5);
	if (!r || r->len != 5 || memcmp(r->str, "a\0b\r\n", 5) != 0)
		wrong("binary", r);
	freeReplyObject(r);
	if (number("INV.RESTOCK", redisCommand(c, "INV.RESTOCK h:sku 10 IDEM h1")) != 10 ||
	    number("INV.RESTOCK again", redisCommand(c, "INV.RESTOCK h:sku 10 IDEM h1")) != 10)
		wrong("INV.RESTOCK", NULL);
	pipeline();
	resp3();
	redisFree(c);
	printf("fine\n");
	return 0;
}
