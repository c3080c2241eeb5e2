/* tools/accounts.c - the accounts file: read strictly, replaced as a whole. */
#include "tools/accounts.h"

#include "noh.h"
#include "tools/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 4 << 20 };

static const char *const roles[] = { [NOH_USER] = "user", [NOH_DEVELOPER] = "developer", [NOH_ADMIN] = "admin" };

/* ── words ── */

bool account_name_ok(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return len > 0 && len <= ACCOUNT_NAME_MAX && name[len] == 0;
}

bool account_role(const char *text, int *role)
{
	for (*role = NOH_USER; *role <= NOH_ADMIN; (*role)++)
		if (strcmp(roles[*role], text) == 0)
			return true;
	return false;
}

const char *account_role_name(int role)
{
	return role >= NOH_USER && role <= NOH_ADMIN ? roles[role] : "?";
}

void account_hash(const char *token, uint8_t hash[TOKEN_HASH])
{
	SHA256((const unsigned char *)token, strlen(token), hash);
}

static void to_hex(const uint8_t *bytes, size_t count, char *text)
{
	for (size_t i = 0; i < count; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

static bool from_hex(const char *text, uint8_t *bytes, size_t count)
{
	if (strspn(text, "0123456789abcdef") != 2 * count || text[2 * count])
		return false;
	for (size_t i = 0; i < count; i++) {
		char two[3] = { text[2 * i], text[2 * i + 1], 0 };

		bytes[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return true;
}

void accounts_path(const struct settings *s, char *buf, size_t size)
{
	if (*settings_text(s, SET_USERS_FILE))
		snprintf(buf, size, "%s", settings_text(s, SET_USERS_FILE));
	else
		snprintf(buf, size, "%s/users", settings_text(s, SET_DIR));
}

/* ── reading ── */

static struct account *find(const struct accounts *a, const char *name)
{
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->all[i].name, name) == 0)
			return &a->all[i];
	return NULL;
}

bool accounts_append(struct accounts *a, const char *name, int role, const uint8_t token[TOKEN_HASH],
		     const char *since)
{
	if (a->count >= ACCOUNTS_MAX || find(a, name))
		return false;
	if ((a->count & (a->count - 1)) == 0) {          /* full at 0, 1, 2, 4, 8 ... */
		void *room = realloc(a->all, (a->count ? 2 * a->count : 1) * sizeof *a->all);

		if (!room)
			return false;
		a->all = room;
	}
	struct account *new = &a->all[a->count++];

	memset(new, 0, sizeof *new);
	snprintf(new->name, sizeof new->name, "%s", name);
	snprintf(new->since, sizeof new->since, "%s", since);
	new->role = role;
	memcpy(new->token, token, TOKEN_HASH);
	return true;
}

/* NULL: fine, or what is wrong with the line. */
static const char *parse_line(struct accounts *a, char *line)
{
	uint8_t token[TOKEN_HASH];
	char *rest = line, *word[5];
	int count = 0, role;

	while (count < 5 && (word[count] = strtok_r(rest, " \t\r", &rest)) != NULL)
		count++;
	if (count == 0 || word[0][0] == '#')
		return NULL;
	if (count != 4)
		return "a line is: name role sha256 since";
	if (!account_name_ok(word[0]))
		return "a name has 1 to 63 letters, digits, dots, dashes and underscores";
	if (!account_role(word[1], &role))
		return "a role is user, developer or admin";
	if (!from_hex(word[2], token, TOKEN_HASH))
		return "the third word is a SHA-256: 64 of 0-9 and a-f";
	if (strlen(word[3]) >= sizeof a->all->since)
		return "the fourth word is a time such as 2031-05-01T12:00:00Z";
	if (find(a, word[0]))
		return "this name is there already";
	return accounts_append(a, word[0], role, token, word[3]) ? NULL : "there are too many users";
}

bool accounts_parse(struct accounts *a, const char *name, const char *text, size_t len, char *why, size_t size)
{
	const char *end = text + len, *problem = NULL;
	unsigned number = 0;

	while (text < end && !problem) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((stop ? stop : end) - text);
		char line[512];

		number++;
		if (n >= sizeof line || memchr(text, 0, n)) {
			problem = "this line is too long, or no text";
			break;
		}
		memcpy(line, text, n);
		line[n] = 0;
		problem = parse_line(a, line);
		text += n + (stop != NULL);
	}
	if (!problem)
		return true;
	snprintf(why, size, "%s:%u: %s", name, number, problem);
	accounts_free(a);
	return false;
}

void accounts_free(struct accounts *a)
{
	free(a->all);
	memset(a, 0, sizeof *a);
}

/* Who may write the file may become anybody. */
static bool is_ours(int fd, const char *path, char *why, size_t size)
{
	struct stat st;

	if (fstat(fd, &st)) {
		snprintf(why, size, "%s: %s", path, strerror(errno));
		return false;
	}
	if (S_ISREG(st.st_mode) && !(st.st_mode & 022) && st.st_size <= FILE_MAX_BYTES)
		return true;
	snprintf(why, size, "%s %s", path, !S_ISREG(st.st_mode) ? "is not a file" :
		 st.st_size > FILE_MAX_BYTES ? "is too large to be a list of users" :
		 "can be written by others than its owner; chmod 600 it");
	return false;
}

bool accounts_read(struct accounts *a, const char *path, char *why, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool good = false;
	size_t len = 0;
	ssize_t n = 0;

	memset(a, 0, sizeof *a);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return true;
	if (fd < 0) {
		snprintf(why, size, "cannot open %s: %s", path, strerror(errno));
		return false;
	}
	char *text = malloc(FILE_MAX_BYTES);

	a->present = true;
	if (!text) {
		snprintf(why, size, "%s: out of memory", path);
	} else if (is_ours(fd, path, why, size)) {
		while (len < FILE_MAX_BYTES && (n = read(fd, text + len, FILE_MAX_BYTES - len)) > 0)
			len += (size_t)n;
		if (n < 0)
			snprintf(why, size, "cannot read %s: %s", path, strerror(errno));
		else
			good = accounts_parse(a, path, text, len, why, size);
	}
	free(text);
	close(fd);
	return good;
}

/* ── writing ── */

static bool write_all(const struct accounts *a, int fd)
{
	bool good = dprintf(fd, "# name role sha256(token) since; written by noh user\n") > 0;

	for (size_t i = 0; good && i < a->count; i++) {
		char hex[2 * TOKEN_HASH + 1];

		to_hex(a->all[i].token, TOKEN_HASH, hex);
		good = dprintf(fd, "%s %s %s %s\n", a->all[i].name, account_role_name(a->all[i].role), hex,
			       a->all[i].since) > 0;
	}
	return good && fsync(fd) == 0;
}

/* Written beside, synced, renamed, and the folder synced: it is the old file or the new one. */
static bool replace(const struct accounts *a, const char *path, int folder, char *why, size_t size)
{
	char beside[4200];
	int fd;

	snprintf(beside, sizeof beside, "%s.new", path);
	unlink(beside);                                  /* of one that was interrupted: we hold the lock */
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool good = fd >= 0 && write_all(a, fd);

	if (fd >= 0 && close(fd))
		good = false;
	if (good && rename(beside, path) == 0 && fsync(folder) == 0)
		return true;
	snprintf(why, size, "cannot write %s: %s; nothing was changed", path, strerror(errno));
	unlink(beside);
	return false;
}

/* The folder of the file, locked against others who change it; -1: why. */
static int lock_folder(const char *path, char *why, size_t size)
{
	char folder[4200];
	int fd;

	snprintf(folder, sizeof folder, "%s", path);
	char *slash = strrchr(folder, '/');

	if (slash)
		slash[slash == folder] = 0;
	fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX) == 0)
		return fd;
	snprintf(why, size, "cannot open the folder of %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool new_token(char text[TOKEN_TEXT])
{
	uint8_t bits[TOKEN_HASH];

	if (getrandom(bits, sizeof bits, 0) != sizeof bits)
		return false;
	to_hex(bits, sizeof bits, text);
	explicit_bzero(bits, sizeof bits);
	return true;
}

static bool add_to(struct accounts *a, const char *path, const char *name, int role, char token[TOKEN_TEXT],
		   char *why, size_t size)
{
	uint8_t hash[TOKEN_HASH];
	char since[24];
	time_t now = time(NULL);
	struct tm utc;

	if (find(a, name)) {
		snprintf(why, size, "there is a user %s already in %s; noh user revoke %s removes it", name, path, name);
		return false;
	}
	strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	if (!new_token(token)) {
		snprintf(why, size, "no random numbers to be had: %s", strerror(errno));
		return false;
	}
	account_hash(token, hash);
	if (accounts_append(a, name, role, hash, since))
		return true;
	snprintf(why, size, "%s: there are too many users", path);
	return false;
}

bool accounts_add(const char *path, const char *name, int role, char token[TOKEN_TEXT], char *why, size_t size)
{
	struct accounts a = { 0 };
	int folder = lock_folder(path, why, size);
	bool good = folder >= 0 && accounts_read(&a, path, why, size) &&
		    add_to(&a, path, name, role, token, why, size) && replace(&a, path, folder, why, size);

	accounts_free(&a);
	if (folder >= 0)
		close(folder);
	return good;
}

static bool remove_from(struct accounts *a, const char *path, const char *name, char *why, size_t size)
{
	struct account *gone = find(a, name);

	if (!gone) {
		snprintf(why, size, "there is no user %s in %s", name, path);
		return false;
	}
	memmove(gone, gone + 1, (size_t)(a->all + a->count - (gone + 1)) * sizeof *gone);
	a->count--;
	return true;
}

bool accounts_revoke(const char *path, const char *name, size_t *left, char *why, size_t size)
{
	struct accounts a = { 0 };
	int folder = lock_folder(path, why, size);
	bool good = folder >= 0 && accounts_read(&a, path, why, size) && remove_from(&a, path, name, why, size) &&
		    replace(&a, path, folder, why, size);

	*left = a.count;
	accounts_free(&a);
	if (folder >= 0)
		close(folder);
	return good;
}
