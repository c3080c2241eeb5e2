/* box/metrics_net.c - numbers of the network; a box that does not listen has none of them. */
#include "box/metrics.h"
#include "net/command.h"

static void put(struct scrape *m, uint64_t n)
{
	if (m->box->server)
		metric_number(m, "", n);
}

static void put_as(struct scrape *m, const char *name, const char *value, uint64_t n)
{
	struct labels l = { .len = 0 };

	label_add(&l, name, value);
	if (m->box->server)
		metric_number(m, l.text, n);
}

void metric_connections(struct scrape *m)
{
	uint64_t all = 0, http = 0;

	for (uint32_t i = 0; m->box->server && i < m->box->server->workers; i++) {
		struct net *n = load_acquire(&m->box->server->nets[i]);

		http += n ? load_relaxed(&n->shown.http) : 0;
		all += n ? load_relaxed(&n->shown.connections) : 0;
	}
	put_as(m, "protocol", "resp", all > http ? all - http : 0);
	put_as(m, "protocol", "http", http);
}

void metric_connections_total(struct scrape *m) { put(m, m->net.accepted); }
void metric_connections_refused(struct scrape *m) { put(m, m->net.refused); }
void metric_connections_crowded(struct scrape *m) { put(m, m->net.refused_address); }
void metric_connections_slow(struct scrape *m) { put(m, m->net.closed_slow); }

void metric_connections_moved(struct scrape *m)
{
	uint64_t moved = 0;

	for (uint32_t i = 0; m->box->server && i < m->box->server->workers; i++) {
		struct net *n = load_acquire(&m->box->server->nets[i]);

		moved += n ? load_relaxed(&n->shown.moved) : 0;
	}
	put(m, moved);
}

void metric_connections_workers(struct scrape *m)
{
	uint32_t width = m->box->server ? load_relaxed(&m->box->server->crew.width) : 0;

	put(m, width ? width : m->box->sched.worker_count);
}

void metric_request_errors(struct scrape *m) { put(m, m->net.errors); }
void metric_pushes(struct scrape *m) { put(m, m->net.pushed); }
void metric_pushes_dropped(struct scrape *m) { put(m, m->net.pushes_dropped); }

void metric_logins(struct scrape *m)
{
	put_as(m, "result", "failed", m->net.logins_failed);
	put_as(m, "result", "held", m->net.logins_held);
}

void metric_bytes(struct scrape *m)
{
	put_as(m, "direction", "in", m->net.bytes_in);
	put_as(m, "direction", "out", m->net.bytes_out);
}

/* ── commands of RESP, routes of HTTP ── */

static struct labels labels_of(struct scrape *m, uint32_t what)
{
	struct labels l = { .len = 0 };
	bool http = what >= command_total();

	label_add(&l, "protocol", http ? "http" : "resp");
	label_add(&l, "op", http ? m->box->server->routes[what - command_total()].op : command_row(what)->name);
	return l;
}

/* Those that nobody ever sent are left out: there are more than a hundred. */
void metric_requests(struct scrape *m)
{
	for (uint32_t i = 0; m->box->server && i < took_total(m->box->server); i++) {
		struct labels l = labels_of(m, i);
		uint64_t calls = server_calls(m->box->server, i);

		if (calls)
			metric_number(m, l.text, calls);
	}
}

void metric_request_duration(struct scrape *m)
{
	for (uint32_t i = 0; m->box->server && i < took_total(m->box->server); i++) {
		struct histogram_sum sum = { .count = 0 };
		struct labels l = labels_of(m, i);

		server_took(m->box->server, i, &sum);
		if (sum.count)
			metric_histogram(m, l.text, &histogram_latency, &sum);
	}
}

/* ── the system ── */

void metric_sq_full(struct scrape *m)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; m->box->server && i < m->box->server->workers; i++) {
		struct net *n = load_acquire(&m->box->server->nets[i]);

		sum += n ? load_relaxed(&n->io->shown.sq_full) : 0;
	}
	put(m, sum);
}

void metric_io_errors(struct scrape *m)
{
	static const char *const names[IO_OPS] = { [IO_ACCEPT] = "accept", [IO_RECEIVE] = "receive", [IO_SEND] = "send" };
	struct labels disk = { .len = 0 };

	for (uint32_t op = 0; op < IO_OPS; op++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; m->box->server && i < m->box->server->workers; i++) {
			struct net *n = load_acquire(&m->box->server->nets[i]);

			sum += n ? load_relaxed(&n->io->shown.errors[op]) : 0;
		}
		put_as(m, "op", names[op], sum);
	}
	label_add(&disk, "op", "disk");          /* the first one is final */
	if (m->box->disk.journal)
		metric_number(m, disk.text, load_relaxed(&m->box->disk.failed) != 0);
}
