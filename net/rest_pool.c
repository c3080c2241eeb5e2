/* net/rest_pool.c - /actor/pool/status: one node, and how its workers are. */
#include "net/rest.h"

#include "net/net.h"

#include <stdio.h>
#include <string.h>

enum { STUCK_MS = 1000 };        /* in one turn: shorter ones are nobody's trouble */

struct pool {
	noh_box      *box;
	const char   *node;
	noh_box_stats stats;
	uint64_t      now_ms;
	uint64_t      given_up;  /* actors that take no messages: degraded, stopped, quarantined, awaiting */
};

static void put_c_text(noh_json_out *o, const char *name, const char *text)
{
	noh_json_put_text(o, name, text, strlen(text));
}

/* A worker that sleeps is well: it would wake for the first message. One in a long turn last showed up when that began,
 * and others do its work meanwhile. */
static void put_health(noh_json_out *o, const struct pool *p, bool well, uint64_t stuck_ms)
{
	put_c_text(o, "status", well ? "healthy" : "degraded");
	noh_json_put_time(o, "last_heartbeat", (int64_t)(p->now_ms - stuck_ms));
}

static bool is_well(const struct pool *p)
{
	return !p->stats.read_only && p->stats.total.stuck_ms < STUCK_MS && !p->given_up;
}

static uint64_t given_up(noh_box *box)
{
	uint64_t sum = 0;
	const char *type;

	for (unsigned i = 0; (type = noh_type_name(box, i)) != NULL; i++) {
		noh_type_stats of;

		if (noh_get_type_stats(box, type, &of) == NOH_OK)
			sum += of.degraded + of.stopped + of.unwell;
	}
	return sum;
}

/* With a point whatever the locale is: no printf of fractions. */
static void put_percent(noh_json_out *o, const struct pool *p)
{
	char text[48];
	uint64_t parts = p->stats.capacity ? p->stats.actors * 1000000 / p->stats.capacity : 0;

	noh_json_put_raw(o, "utilization_percent", text,
			 (size_t)snprintf(text, sizeof text, "%llu.%04llu", (unsigned long long)(parts / 10000),
					  (unsigned long long)(parts % 10000)));
}

static void put_shards(noh_json_out *o, const struct pool *p)
{
	noh_json_open(o, "shards", '[');
	for (unsigned i = 0; i < p->stats.workers; i++) {
		noh_worker_stats w;

		if (noh_get_worker_stats(p->box, i, &w) != NOH_OK)
			continue;
		noh_json_open(o, NULL, '{');
		noh_json_put_uint(o, "worker", i);
		put_health(o, p, w.stuck_ms < STUCK_MS, w.stuck_ms);
		noh_json_close(o, '}');
	}
	noh_json_close(o, ']');
}

static void write_pool(noh_json_out *o, const void *arg)
{
	const struct pool *p = arg;

	noh_json_open(o, NULL, '{');
	noh_json_put_uint(o, "total_nodes", 1);
	noh_json_put_uint(o, "healthy_nodes", is_well(p));
	noh_json_put_uint(o, "total_actors_active", p->stats.actors);
	noh_json_put_uint(o, "total_capacity", p->stats.capacity);
	put_percent(o, p);
	noh_json_open(o, "nodes", '[');
	noh_json_open(o, NULL, '{');
	put_c_text(o, "node_id", p->node);
	noh_json_put_uint(o, "actors_active", p->stats.actors);
	noh_json_put_uint(o, "actors_capacity", p->stats.capacity);
	noh_json_put_uint(o, "actors_given_up", p->given_up);
	put_health(o, p, is_well(p), p->stats.total.stuck_ms);
	put_shards(o, p);
	noh_json_close(o, '}');
	noh_json_close(o, ']');
	noh_json_close(o, '}');
}

void rest_pool(struct call *c, const struct http_request *q)
{
	struct pool p = { .box = call_box(c), .node = rest_node(c), .now_ms = c->now_ms };
	int rc;

	c->later = !call_alone(c);
	if (c->later || !rest_read(c, q, FORM_POOL, NULL))
		return;
	rc = noh_get_stats(p.box, &p.stats);
	p.given_up = rc == NOH_OK ? given_up(p.box) : 0;
	if (rc == NOH_OK)
		rest_reply_json(call_out(c), 200, write_pool, &p);
	else
		rest_problem_of(call_out(c), rc);
}
