/* tools/accounts.h - who may use the server: the accounts file.
 *
 *	alice admin 9f86d081...0a08 2031-05-01T12:00:00Z         name, role, SHA-256 of the token, since when
 *
 * The token itself is shown once, to whoever adds the user, and kept nowhere: it is 256 random bits, so its
 * plain hash tells nothing. The file is replaced as a whole (written, synced, renamed), never changed in
 * place: a server that reads it at any moment sees all of the old one or all of the new one.
 *
 * Owns     the entries of a struct accounts, from accounts_read to accounts_free.
 * Threads  one. Processes: any number; who changes the file holds a lock on its folder.
 */
#ifndef NOH_TOOLS_ACCOUNTS_H
#define NOH_TOOLS_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ACCOUNT_NAME_MAX = 63, ACCOUNTS_MAX = 10000, TOKEN_TEXT = 65, TOKEN_HASH = 32 };

struct account {
	char    name[ACCOUNT_NAME_MAX + 1];
	int     role;                        /* NOH_USER, NOH_DEVELOPER, NOH_ADMIN */
	uint8_t token[TOKEN_HASH];
	char    since[24];
};

struct accounts {
	struct account *all;
	size_t          count;
	bool            present;             /* there is a file: then nobody gets in without an account,
						also if it has none                    */
};

struct settings;

/* The file of these settings: users.file, or "users" in the data directory. */
void accounts_path(const struct settings *s, char *buf, size_t size);

/* False: why is a sentence that names the file and the line. accounts_parse adds to what a has. */
bool accounts_read(struct accounts *a, const char *path, char *why, size_t size);
bool accounts_parse(struct accounts *a, const char *name, const char *text, size_t len, char *why, size_t size);
void accounts_free(struct accounts *a);

/* Change the file: with a new token for a new user, or without a user. False: why. */
bool accounts_add(const char *path, const char *name, int role, char token[TOKEN_TEXT], char *why, size_t size);
bool accounts_revoke(const char *path, const char *name, size_t *left, char *why, size_t size);

/* One more in memory alone; false if the name is taken or there are too many. */
bool accounts_append(struct accounts *a, const char *name, int role, const uint8_t token[TOKEN_HASH],
		     const char *since);

bool        account_name_ok(const char *name);       /* letters, digits, . _ -                 */
bool        account_role(const char *text, int *role);
const char *account_role_name(int role);
void        account_hash(const char *token, uint8_t hash[TOKEN_HASH]);

#endif
