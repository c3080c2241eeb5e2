/* net/event_text.c - see event_text.h. */
#include "net/event_text.h"

#include "net/rest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void event_put_json(noh_json_out *o, const char *name, const noh_event *e)
{
	noh_json_open(o, name, '{');
	noh_json_put_uint(o, "seq", e->seq);
	noh_json_put_time(o, "at", (int64_t)e->at_ms);
	rest_put_text(o, "actor", e->actor);
	rest_put_text(o, "kind", e->kind);
	rest_put_text(o, "from", e->from);
	rest_put_text(o, "to", e->to);
	rest_put_text(o, "reason", e->reason);
	if (e->revision)
		noh_json_put_uint(o, "revision", e->revision);
	else
		noh_json_put_null(o, "revision");
	noh_json_put_bool(o, "by_box", e->by_box);
	if (e->len)
		codec_put_bytes(o, "data", e->data, e->len);
	else
		noh_json_put_null(o, "data");
	noh_json_close(o, '}');
}

/* An actor's own JSON may have line ends between its words; in a string they are escaped. */
static void put_one_line(struct out *o, const noh_event *e)
{
	noh_json_out counted = { .at = NULL }, all;

	event_put_json(&counted, NULL, e);
	if (!out_room(o, counted.len))
		return;
	all = (noh_json_out){ .at = o->bytes + o->len, .room = counted.len };
	event_put_json(&all, NULL, e);
	for (size_t i = 0; i < all.len; i++)
		if (all.at[i] == '\n' || all.at[i] == '\r')
			all.at[i] = ' ';
	o->len += all.len;
}

void event_put_sse(struct out *o, const noh_event *e)
{
	char head[48];

	out_bytes(o, head, (size_t)snprintf(head, sizeof head, "id: %" PRIu64 "\ndata: ", e->seq));
	put_one_line(o, e);
	out_bytes(o, "\n\n", 2);
}

void event_put_end(struct out *o, const char *event, const char *why, uint64_t cursor)
{
	char text[1024];
	noh_json_out data = { .at = text, .room = sizeof text };
	char head[64];

	noh_json_open(&data, NULL, '{');
	rest_put_text(&data, "reason", why);
	noh_json_put_uint(&data, "cursor", cursor);
	noh_json_close(&data, '}');
	o->len = 0;
	out_bytes(o, head, (size_t)snprintf(head, sizeof head, "event: %s\ndata: ", event));
	out_bytes(o, text, data.len < data.room ? data.len : 0);
	out_bytes(o, "\n\n", 2);
}

void event_put_resp(struct out *o, const noh_event *e)
{
	out_map(o, 10);
	out_text(o, "seq"), out_int(o, (int64_t)e->seq);
	out_text(o, "at_ms"), out_int(o, (int64_t)e->at_ms);
	out_text(o, "actor"), out_text(o, e->actor);
	out_text(o, "kind"), out_text(o, e->kind);
	out_text(o, "from"), out_text(o, e->from);
	out_text(o, "to"), out_text(o, e->to);
	out_text(o, "reason"), out_text(o, e->reason);
	out_text(o, "revision"), out_int(o, (int64_t)e->revision);
	out_text(o, "by_box"), out_bool(o, e->by_box);
	out_text(o, "data"), out_bulk(o, e->data, e->len);
}
