/* net/unconnected.c - stands in for the connection layer until it is there: weak, does nothing. */
#include "net/session.h"

#define WEAK __attribute__((weak))

WEAK struct out *call_out(struct call *c)
{
	(void)c;
	return NULL;
}
WEAK noh_box *call_box(struct call *c)
{
	(void)c;
	return NULL;
}
WEAK struct session *call_session(struct call *c)
{
	(void)c;
	return NULL;
}
WEAK void call_actors(struct call *c, const struct request *r, uint32_t n, format_fn *f, struct tag t)
{
	(void)c, (void)r, (void)n, (void)f, (void)t;
}
WEAK void call_step(struct call *c, const struct request *r, uint32_t n, format_fn *f, struct tag t)
{
	(void)c, (void)r, (void)n, (void)f, (void)t;
}
WEAK int net_login(struct net *n, const struct arg *name, const struct arg *secret)
{
	(void)n, (void)name, (void)secret;
	return -1;
}
WEAK void net_client_changed(struct conn *conn)
{
	(void)conn;
}
WEAK void net_client(struct conn *conn, struct client *client)
{
	(void)conn, (void)client;
}
WEAK void net_each_client(struct net *n, client_fn *each, void *user)
{
	(void)n, (void)each, (void)user;
}
WEAK bool net_kill_client(struct net *n, uint64_t id)
{
	(void)n, (void)id;
	return false;
}
WEAK const noh_listen_options *net_options(struct net *n)
{
	(void)n;
	return NULL;
}
WEAK bool net_set_option(struct net *n, const char *name, uint64_t value)
{
	(void)n, (void)name, (void)value;
	return false;
}
WEAK uint64_t net_started_ms(struct net *n)
{
	(void)n;
	return 0;
}
WEAK uint64_t net_command_calls(struct net *n, uint32_t index)
{
	(void)n, (void)index;
	return 0;
}
WEAK void net_reset_stats(struct net *n)
{
	(void)n;
}
WEAK void net_shutdown(struct net *n)
{
	(void)n;
}
WEAK int noh_get_net_stats(noh_box *box, noh_net_stats *stats)
{
	(void)box, (void)stats;
	return NOH_ESTOPPED;
}
