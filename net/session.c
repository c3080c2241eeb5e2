/* net/session.c - what a connection remembers between its commands. */
#include "net/session.h"

#include "net/command.h"

#include <string.h>

void session_open(struct session *s, uint64_t id, int role, uint64_t now_ms)
{
	*s = (struct session){ .id = id, .since_ms = now_ms, .first_role = (int8_t)role };
	session_reset(s);
}

void session_reset(struct session *s)
{
	s->role = s->first_role;
	s->account = 0;
	s->proto = 2;
	s->reply = REPLY_ON;
	s->no_evict = s->no_touch = false;
	strcpy(s->user, "default");
	s->name[0] = 0;
}

bool session_mutes(struct session *s)
{
	switch (s->reply) {
	case REPLY_ON:
		return false;
	case REPLY_SKIP_NEXT:                     /* CLIENT REPLY SKIP itself says nothing */
		s->reply = REPLY_SKIP;
		return true;
	case REPLY_SKIP:
		s->reply = REPLY_ON;
		return true;
	default:
		return true;
	}
}

void session_describe(const struct session *s, struct client *client)
{
	*client = (struct client){ .id = s->id, .since_ms = s->since_ms, .role = s->role, .proto = s->proto,
				   .flag = s->channels + s->patterns ? 'P' : 'N', .channels = s->channels,
				   .patterns = s->patterns, .command = s->last ? s->last->name : "NULL" };
	memcpy(client->user, s->user, sizeof client->user);
	memcpy(client->name, s->name, sizeof client->name);
	memcpy(client->lib, s->lib, sizeof client->lib);
	memcpy(client->lib_version, s->lib_version, sizeof client->lib_version);
}
