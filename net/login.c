/* net/login.c - who is who, and from where somebody may try to find out. */
#include "net/net.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

int net_login(struct net *n, struct session *s, const struct arg *name, const struct arg *secret)
{
	const struct accounts *a = load_acquire(&n->server->accounts);
	uint8_t token[SHA256_DIGEST_LENGTH];
	int role = -1;

	if (!a || a->count == 0)
		return -2;
	SHA256((const uint8_t *)secret->at, secret->len, token);
	for (size_t i = 0; i < a->count; i++) {          /* all of them, found or not */
		bool named = strlen(a->list[i].name) == name->len && memcmp(a->list[i].name, name->at, name->len) == 0;
		bool right = CRYPTO_memcmp(token, a->list[i].token, sizeof token) == 0;

		if (named && right) {
			role = a->list[i].role;
			s->account = account_mark(token);
		}
	}
	return role;
}

int net_token_role(struct net *n, const struct arg *secret, char name[SESSION_NAME_MAX + 1], uint64_t *account)
{
	const struct accounts *a = load_acquire(&n->server->accounts);
	uint8_t token[SHA256_DIGEST_LENGTH];
	int role = -1;

	if (!a || a->count == 0)
		return -2;
	SHA256((const uint8_t *)secret->at, secret->len, token);
	for (size_t i = 0; i < a->count; i++)            /* all of them, found or not */
		if (CRYPTO_memcmp(token, a->list[i].token, sizeof token) == 0) {
			role = a->list[i].role;
			*account = account_mark(a->list[i].token);
			memcpy(name, a->list[i].name, sizeof a->list[i].name);
		}
	return role;
}

/* ── those that failed ── */

uint32_t call_login_waits_s(struct call *c)
{
	struct net *n = c->net;
	uint64_t ms = source_waits_ms(&n->server->sources, c->conn->source, n->o.auth_failures, n->now_ms);

	if (ms == 0)
		return 0;
	count_one(&n->shown.counts.logins_held, 1);
	return (uint32_t)((ms + 999) / 1000);
}

void call_login_failed(struct call *c)
{
	struct net *n = c->net;
	struct source *from = c->conn->source;
	char address[SOURCE_TEXT_MAX], line[200];

	count_one(&n->shown.counts.logins_failed, 1);
	if (!source_failed(&n->server->sources, from, n->o.auth_failures, n->now_ms))
		return;
	source_text(from, address);
	snprintf(line, sizeof line, "too many failed logins from %s: one in %u ms is looked at until there are fewer", address,
		 60000 / n->o.auth_failures);
	n->server->door.log(n->server->door.box, NOH_WARN, line);
}
