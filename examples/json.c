/* json.c - an actor that speaks JSON, so that HTTP reaches it without another word. With a port it serves:
 *
 *	./json 5012 &
 *	curl localhost:5012/actor/invoke -H 'Content-Type: application/json' -d '
 *	  {"actor_address": "guests:party", "message_type": "sign", "message": {"name": "Anna", "friends": 2}}'
 *	{"response":{"guests":3,"last":"Anna"}} */
#define _POSIX_C_SOURCE 200809L
#include <noh.h>
#include <noh_json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIGN };
static const noh_kind kinds[] = { [SIGN] = { .name = "sign" } };

enum { NAME, FRIENDS, FIELDS };
static const noh_json_field fields[FIELDS] = {
	[NAME] = { .name = "name", .type = NOH_JSON_STRING, .required = true, .least = 1, .most = 40 },
	[FRIENDS] = { .name = "friends", .type = NOH_JSON_INT, .least = 0, .most = 10 } };

static int guests(noh_turn *turn, const noh_msg *msg)
{
	int64_t *count = noh_state(turn);
	char name[41], answer[200];
	noh_json_out o = { .at = answer, .room = sizeof answer };
	noh_json_got got[FIELDS];

	if (noh_json_read(msg->body, msg->len, fields, FIELDS, got) != NOH_OK) {
		noh_fail(turn, "%s", noh_why());               /* the caller reads this sentence */
		return NOH_EINVAL;
	}
	*count += 1 + got[FRIENDS].n;
	noh_json_open(&o, NULL, '{');
	noh_json_put_int(&o, "guests", *count);
	noh_json_put_text(&o, "last", name, noh_json_text(got[NAME].value, name, sizeof name));
	noh_json_close(&o, '}');
	return noh_reply(turn, answer, o.len);
}

int main(int argc, char **argv)
{
	const noh_type type = { .name = "guests", .state_size = sizeof(int64_t), .on_message = guests,
				.kinds = kinds, .kind_count = 1 };
	const noh_listen_options listen = { .resp_port = -1, .http_port = argc > 1 ? atoi(argv[1]) : 0 };
	const char *anna = "{\"name\": \"Anna\", \"friends\": 2}";
	char answer[200] = "";
	size_t len = sizeof answer - 1;
	noh_box *box;

	if (noh_open(&box, NULL) || noh_register(box, &type) || (argc > 1 && noh_listen(box, &listen)) || noh_start(box))
		return fprintf(stderr, "%s\n", noh_why()), 1;
	while (argc > 1)
		pause();
	noh_call(box, "guests:party", SIGN, anna, strlen(anna), 1000, answer, &len);
	puts(answer);
	noh_close(box);
	return strcmp(answer, "{\"guests\":3,\"last\":\"Anna\"}") != 0;
}
