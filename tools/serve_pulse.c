/* tools/serve_pulse.c - are the workers alive? The service manager's watchdog and the claim live on the answer.
 *
 * Every so often the workers are woken and must have gone round since the last time. While they all do, the service
 * manager is told so (WATCHDOG=1), and the claim on the data directory is renewed. When one does not, both stop: the
 * service manager ends this process and starts another, which has all that was answered. An idle server is woken by
 * this twice a minute, and costs nothing in between.
 *
 * The claim is a file for whoever looks from outside: whose the directory is, and until when that may be believed.
 * What keeps a second server out is the lock, which ends with its process whatever the file says.
 */
#include "tools/serve_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

/* ── the claim ── */

static bool has_directory(const struct server *s)
{
	return strcmp(settings_text(&s->settings, SET_DURABILITY), "none") != 0;
}

static void claim_path(const struct server *s, char *buf, size_t size, const char *end)
{
	snprintf(buf, size, "%s/claim%s", settings_text(&s->settings, SET_DIR), end);
}

/* A name may have anything printable in it. */
static void put_text(FILE *f, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		fprintf(f, *c == '"' || *c == '\\' || *c > '~' ? "\\u%04x" : "%c", *c);
}

/* Replaced as a whole, so that a reader never sees half of one. A disk that is full keeps the old one: it runs out. */
static void renew_claim(struct server *s)
{
	char path[4200], fresh[4200], stamp[32];
	time_t now = time(NULL);
	struct tm utc;
	FILE *f;

	if (!has_directory(s))
		return;
	claim_path(s, path, sizeof path, "");
	claim_path(s, fresh, sizeof fresh, ".new");
	f = fopen(fresh, "we");
	if (!f)
		return;
	strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	fprintf(f, "{\"storeName\":\"actor-claims\",\"resourceId\":\"noh:%s\",\"lockOwner\":\"", s->dir_id);
	put_text(f, s->node_id);
	fprintf(f, "\",\"expiryInSeconds\":%llu,\"refreshedAt\":\"%s\",\"pid\":%ld}\n",
		(unsigned long long)settings_number(&s->settings, SET_CLAIM_TTL) / 1000, stamp, (long)getpid());
	bool good = !ferror(f);

	if (fclose(f) == 0 && good && rename(fresh, path) == 0)
		s->pulse.claimed = true;
	else
		unlink(fresh);
}

static void drop_claim(struct server *s)
{
	char path[4200];

	if (!s->pulse.claimed)
		return;
	claim_path(s, path, sizeof path, "");
	unlink(path);
	s->pulse.claimed = false;
}

/* ── the watchdog ── */

/* What the service manager said when it started us; 0: it does not watch this process. */
static uint64_t watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	char *end;
	unsigned long long us = usec ? strtoull(usec, &end, 10) : 0;

	if (us == 0 || *end || us > UINT64_MAX / 1000 || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	return us * 1000;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How often: the claim's time, or four times within the watchdog's. */
static void plan(struct server *s)
{
	struct server_pulse *p = &s->pulse;

	p->every_ns = settings_number(&s->settings, SET_CLAIM_REFRESH) * MS;
	if (p->watchdog_ns)
		p->every_ns = least(p->every_ns, p->watchdog_ns / 4);
}

void pulse_begin(struct server *s)
{
	s->pulse.watchdog_ns = watchdog_ns();
	s->pulse.next_ns = s->pulse.claim_ns = cli_now_ns();
	plan(s);
}

struct timespec pulse_nap(const struct server *s)
{
	uint64_t now = cli_now_ns(), left = s->pulse.next_ns > now ? s->pulse.next_ns - now : 0;

	left = least(left, 1000 * MS);           /* the accounts and the disk are looked at every second */
	return (struct timespec){ .tv_sec = (time_t)(left / (1000 * MS)), .tv_nsec = (long)(left % (1000 * MS)) };
}

static void tell_silence(struct server *s, uint64_t silent_ms, unsigned worker)
{
	struct server_pulse *p = &s->pulse;
	uint64_t most = settings_number(&s->settings, SET_CLAIM_TTL);

	if (p->watchdog_ns)
		most = least(most, p->watchdog_ns / 2 / MS);
	if (p->silent != (silent_ms >= most)) {
		p->silent = !p->silent;
		if (p->silent)
			server_say(s, NOH_ERROR, "worker %u has not gone round for %llu s: it is stuck in a turn, or the disk "
				   "hangs%s", worker, (unsigned long long)silent_ms / 1000,
				   p->watchdog_ns ? "; the watchdog is not fed any more" : "");
		else
			server_say(s, NOH_WARN, "all workers go round again");
	}
}

void pulse_take(struct server *s)
{
	struct server_pulse *p = &s->pulse;
	uint64_t now = cli_now_ns(), silent_ms;
	unsigned worker = 0;

	if (now < p->next_ns)
		return;
	plan(s);
	p->next_ns = now + p->every_ns;
	if (noh_pulse(s->box, &silent_ms, &worker) != NOH_OK)
		return;
	tell_silence(s, silent_ms, worker);
	if (p->silent)
		return;
	if (p->watchdog_ns)
		server_notify("WATCHDOG=1");
	if (now >= p->claim_ns) {
		renew_claim(s);
		p->claim_ns = now + settings_number(&s->settings, SET_CLAIM_REFRESH) * MS;
	}
}

/* From here on nobody takes the pulse: the stop has a deadline of its own, and the watchdog waits for that. */
void pulse_end(struct server *s, uint64_t deadline_ms)
{
	char state[96] = "STOPPING=1";

	if (s->pulse.watchdog_ns)
		snprintf(state, sizeof state, "STOPPING=1\nWATCHDOG=1\nWATCHDOG_USEC=%llu",
			 (unsigned long long)(deadline_ms * 1000 + s->pulse.watchdog_ns / 1000));
	server_notify(state);
	drop_claim(s);
}
