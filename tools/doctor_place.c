/* tools/doctor_place.c - where the data is, who may use the server, and where it listens. */
#include "tools/accounts.h"
#include "tools/doctor.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* ── the data directory ── */

/* The directory itself, or the nearest above it that is there. */
static bool existing(const char *dir, char *found, size_t size)
{
	struct stat st;

	snprintf(found, size, "%s", dir);
	while (stat(found, &st) != 0) {
		char *slash = strrchr(found, '/');

		if (errno != ENOENT)
			return false;
		if (!slash)
			snprintf(found, size, ".");
		else if (slash == found)
			slash[1] = 0;
		else
			*slash = 0;
	}
	return S_ISDIR(st.st_mode);
}

static void file_system(struct doctor *d, const char *dir)
{
	static const struct { long type; const char *name; enum verdict v; const char *todo; } known[] = {
		{ 0x01021994, "tmpfs", VERDICT_FAIL, "it is gone with the next start of the machine: choose a directory on a disk" },
		{ (long)0x858458f6, "ramfs", VERDICT_FAIL, "it is gone with the next start of the machine: choose a directory on a disk" },
		{ 0x794c7630, "overlayfs", VERDICT_WARN, "it goes with its container: mount a volume there" },
		{ 0x6969, "NFS", VERDICT_WARN, "locks and syncs of a network file system are its server's word: choose a local disk" },
		{ (long)0xff534d42, "CIFS", VERDICT_WARN, "locks and syncs of a network file system are its server's word: choose a local disk" },
		{ 0x65735546, "FUSE", VERDICT_WARN, "whether a sync is one depends on the program behind it: choose a local disk" },
	};
	struct statfs fs;

	if (statfs(dir, &fs) != 0)
		return;
	for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++)
		if ((uint32_t)fs.f_type == (uint32_t)known[i].type) {
			doctor_say(d, known[i].v, "file-system", known[i].todo, "%s is on %s", dir, known[i].name);
			return;
		}
	doctor_say(d, VERDICT_OK, "file-system", "", "%s is on a local disk", dir);
}

/* The journal takes up to its limit and one segment more, and a fold writes pages beside those it replaces. */
static void space(struct doctor *d, const char *dir)
{
	uint64_t journal = settings_number(d->settings, SET_JOURNAL), need = journal + journal / 2, has;
	struct statvfs fs;
	char a[24], b[24];

	if (statvfs(dir, &fs) != 0)
		return;
	has = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (d->known)
		need -= d->dir.journal_bytes < need ? d->dir.journal_bytes : need;     /* it has that already */
	cli_bytes(a, sizeof a, has);
	cli_bytes(b, sizeof b, need);
	if (has < need)
		doctor_say(d, VERDICT_FAIL, "disk-space", "make room, or choose a smaller --journal",
			   "%s has %s left, and the journal alone may take %s more", dir, a, b);
	else if (has < 4 * need)
		doctor_say(d, VERDICT_WARN, "disk-space", "make room soon", "%s has %s left", dir, a);
	else
		doctor_say(d, VERDICT_OK, "disk-space", "", "%s left", a);
	if (fs.f_files && fs.f_favail < 1000)
		doctor_say(d, VERDICT_FAIL, "inodes", "remove files there", "%s can take %llu more files", dir,
			   (unsigned long long)fs.f_favail);
}

/* Files from the future: the clock went back, and timers would wait for that long. */
static void past(struct doctor *d, const char *dir)
{
	DIR *list = opendir(dir);
	struct dirent *e;
	time_t newest = 0, now = time(NULL);

	while (list && (e = readdir(list)) != NULL) {
		struct stat st;

		if (fstatat(dirfd(list), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_mtime > newest)
			newest = st.st_mtime;
	}
	if (list)
		closedir(list);
	if (newest > now + 60)
		doctor_say(d, VERDICT_FAIL, "clock-back", "set the clock (timedatectl), before timers and keys are kept for too long",
			   "the clock is %lld s behind the last file written in %s", (long long)(newest - now), dir);
}

static void content(struct doctor *d, const char *dir)
{
	int rc = noh_inspect(dir, &d->dir);

	d->known = rc == NOH_OK;
	d->running = d->known && d->dir.in_use;
	if (rc == NOH_EVERSION) {
		doctor_say(d, VERDICT_FAIL, "data-format", "nothing is damaged: serve it with the release that wrote it, and see "
			   "\"Upgrade\" in docs/operations.md", "%s", noh_why());
		return;
	}
	if (rc != NOH_OK) {
		doctor_say(d, VERDICT_FAIL, "data", "noh verify says more; noh restore brings a backup back", "%s", noh_why());
		return;
	}
	doctor_say(d, VERDICT_OK, "data", "", "format %u, %llu actors", d->dir.format, (unsigned long long)d->dir.actors);
	if (d->dir.dead_letters)
		doctor_say(d, VERDICT_WARN, "dead-letters", "see noh dead list", "%llu messages were set aside",
			   (unsigned long long)d->dir.dead_letters);
}

void doctor_place(struct doctor *d)
{
	const char *dir = settings_text(d->settings, SET_DIR);
	char found[4200], head[4300];

	if (d->is_volatile) {
		doctor_say(d, VERDICT_WARN, "data-dir", "fine for a trial", "durability none: nothing is ever stored");
		return;
	}
	if (!existing(dir, found, sizeof found)) {
		doctor_say(d, VERDICT_FAIL, "data-dir", "name a directory with --data", "%s is no directory, or not to be reached: %s", dir,
			   strerror(errno));
		return;
	}
	if (access(found, W_OK | X_OK) != 0)
		doctor_say(d, VERDICT_FAIL, "data-dir", "run as its owner, or chown it", "%s may not be written by this user (%u)", found,
			   (unsigned)geteuid());
	else
		doctor_say(d, VERDICT_OK, "data-dir", "", "%s%s", dir, strcmp(found, dir) == 0 ? "" : " will be made");
	file_system(d, found);
	snprintf(head, sizeof head, "%s/noh.dir", dir);
	if (access(head, F_OK) == 0) {
		content(d, dir);
		past(d, dir);
	}
	space(d, found);
}

/* ── who, and where ── */

static void users(struct doctor *d)
{
	const char *address = settings_text(d->settings, SET_BIND);
	bool public = (settings_number(d->settings, SET_RESP_PORT) || settings_number(d->settings, SET_HTTP_PORT)) &&
		      !settings_is_loopback(address);
	struct accounts a = { .count = 0 };
	char path[4200], why[1024];
	struct stat st;

	accounts_path(d->settings, path, sizeof path);
	if (stat(path, &st) == 0 && (st.st_mode & 077))
		doctor_say(d, VERDICT_FAIL, "users-file", "chmod 600 it", "%s may be read or written by others (mode %03o)", path,
			   (unsigned)st.st_mode & 0777);
	if (!accounts_read(&a, path, why, sizeof why)) {
		doctor_say(d, VERDICT_FAIL, "users", "mend the file, or noh serve will not start", "%s", why);
		return;
	}
	bool some = a.present || *settings_text(d->settings, SET_ADMIN_TOKEN);

	if (public && !some && settings_number(d->settings, SET_INSECURE))
		doctor_say(d, VERDICT_WARN, "users", "add one (noh user add NAME)", "%s may be reached from elsewhere, and whoever connects may do everything", address);
	else if (public && !some)
		doctor_say(d, VERDICT_FAIL, "users", "add one (noh user add NAME), or bind to 127.0.0.1",
			   "%s may be reached from elsewhere, and there are no users", address);
	else
		doctor_say(d, VERDICT_OK, "users", "", some ? "tokens are asked for; %zu users in the file" :
			   "none (%zu); only this machine can connect", a.count);
	accounts_free(&a);
}

static int try_bind(const char *address, uint16_t port)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	bool is_six = inet_pton(AF_INET6, address, &six.sin6_addr) == 1;
	int on = 1, err = 0;

	if (strcmp(address, "localhost") == 0)
		address = "127.0.0.1";
	if (!is_six && inet_pton(AF_INET, address, &four.sin_addr) != 1)
		return EINVAL;
	int fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four, is_six ? sizeof six : sizeof four) != 0 ||
	    listen(fd, 1) != 0)
		err = errno;
	close(fd);
	return err;
}

static void port(struct doctor *d, const char *what, enum setting_id id)
{
	const char *address = settings_text(d->settings, SET_BIND);
	uint64_t number = settings_number(d->settings, id);
	int err = number ? try_bind(address, (uint16_t)number) : 0;

	if (number == 0)
		doctor_say(d, VERDICT_OK, what, "", "off");
	else if (err == 0)
		doctor_say(d, VERDICT_OK, what, "", "%s:%llu is free", address, (unsigned long long)number);
	else if (err == EADDRINUSE && d->running)
		doctor_say(d, VERDICT_OK, what, "", "%s:%llu is in use, by the server that runs", address, (unsigned long long)number);
	else if (err == EADDRINUSE)
		doctor_say(d, VERDICT_FAIL, what, "end that program (ss -ltnp shows it), or choose another port",
			   "%s:%llu is used by another program", address, (unsigned long long)number);
	else if (err == EACCES)
		doctor_say(d, VERDICT_FAIL, what, "choose one above 1023", "%s:%llu may not be used by this user", address,
			   (unsigned long long)number);
	else
		doctor_say(d, VERDICT_FAIL, what, "name an address of this machine with --bind", "%s:%llu: %s", address,
			   (unsigned long long)number, strerror(err));
}

static void unix_socket(struct doctor *d, const char *what, const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct stat st;

	if (!path || !*path || lstat(path, &st) != 0)
		return;
	if (!S_ISSOCK(st.st_mode)) {
		doctor_say(d, VERDICT_FAIL, what, "move it away, or name another path", "%s is there and is no socket", path);
		return;
	}
	if (strlen(path) >= sizeof to.sun_path)
		return;
	memcpy(to.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool answers = fd >= 0 && (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EAGAIN);

	if (fd >= 0)
		close(fd);
	if (!answers)
		doctor_say(d, VERDICT_WARN, what, "noh serve replaces it; remove it if you wonder", "%s is left from a server that has ended", path);
	else if (!d->running && !d->is_volatile)
		doctor_say(d, VERDICT_FAIL, what, "name another path, or end that server", "%s belongs to another server that runs", path);
	else
		doctor_say(d, VERDICT_OK, what, "", "%s answers", path);
}

void doctor_door(struct doctor *d)
{
	char path[4200];

	users(d);
	port(d, "resp-port", SET_RESP_PORT);
	port(d, "http-port", SET_HTTP_PORT);
	unix_socket(d, "unix-socket", settings_text(d->settings, SET_UNIX));
	unix_socket(d, "http-socket", settings_http_path(d->settings, path, sizeof path));
}
