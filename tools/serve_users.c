/* tools/serve_users.c - accounts of a running server: read, put into effect, watched. */
#include "tools/serve_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

static struct users_mark mark_of(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return (struct users_mark){ .there = false };
	return (struct users_mark){ st.st_mtim, st.st_ino, st.st_size, true };
}

static bool same_mark(const struct users_mark *a, const struct users_mark *b)
{
	return a->there == b->there && a->inode == b->inode && a->size == b->size &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

bool users_read(struct server *s, const struct settings *settings, const char *path, struct accounts *fresh,
		struct users_mark *mark, char *why, size_t size)
{
	const char *admin = settings_text(settings, SET_ADMIN_TOKEN);
	uint8_t hash[TOKEN_HASH];

	*mark = mark_of(path);                   /* before it is read: a change in between is seen next time */
	memset(fresh, 0, sizeof *fresh);
	if (!accounts_read(fresh, path, why, size))
		return false;
	if (!fresh->present && s->accounts.present) {
		snprintf(why, size, "%s is gone; to serve without users, restart", path);
		return false;
	}
	account_hash(admin, hash);
	if (*admin && !accounts_append(fresh, "admin", NOH_ADMIN, hash, "-")) {
		snprintf(why, size, "users.admin_token is set, and %s has a user admin as well; one of them is enough", path);
		accounts_free(fresh);
		return false;
	}
	return true;
}

bool users_exist(const struct server *s)
{
	return s->accounts.present || s->accounts.count > 0;
}

/* To the library no accounts mean no door. A list that has become empty is a locked one instead: an account
 * whose token nobody has. */
static int lock_door(noh_box *box)
{
	noh_account nobody = { .name = "nobody", .role = NOH_USER };

	if (getrandom(nobody.token, sizeof nobody.token, 0) != sizeof nobody.token)
		return NOH_ESYSTEM;
	return noh_set_accounts(box, &nobody, 1);
}

int users_apply(struct server *s, const struct accounts *list)
{
	size_t count = list->count;

	if (count == 0)
		return list->present || users_exist(s) ? lock_door(s->box) : NOH_OK;
	noh_account *all = calloc(count, sizeof *all);

	if (!all)
		return NOH_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		all[i].name = list->all[i].name;
		all[i].role = list->all[i].role;
		memcpy(all[i].token, list->all[i].token, TOKEN_HASH);
	}
	int rc = noh_set_accounts(s->box, all, count);

	free(all);
	return rc;
}

void users_take(struct server *s, struct accounts *fresh)
{
	accounts_free(&s->accounts);
	s->accounts = *fresh;
	memset(fresh, 0, sizeof *fresh);
}

void users_tell(struct server *s)
{
	if (s->accounts.count)
		server_say(s, NOH_INFO, "users: %zu now, from %s", s->accounts.count, s->users);
	else if (s->accounts.present)
		server_say(s, NOH_WARN, "%s has no user: nobody may use the server until one is added", s->users);
}

void users_watch(struct server *s)
{
	struct users_mark now = mark_of(s->users);
	struct accounts fresh;
	char why[1024];

	if (same_mark(&now, &s->mark))
		return;
	if (!users_read(s, &s->settings, s->users, &fresh, &s->mark, why, sizeof why)) {
		server_say(s, NOH_ERROR, "%s; the users stay as they were", why);
	} else if (users_apply(s, &fresh) != NOH_OK) {
		server_say(s, NOH_ERROR, "the users could not be changed: %s", noh_why());
		accounts_free(&fresh);
	} else {
		users_take(s, &fresh);
		users_tell(s);
	}
}
