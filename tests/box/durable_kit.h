/* tests/box/durable_kit.h - boxes on a data directory: opened, stopped, killed and opened again. */
#ifndef NOH_TESTS_BOX_DURABLE_KIT_H
#define NOH_TESTS_BOX_DURABLE_KIT_H

#include "noh.h"
#include "tests/lib/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static inline const char *fresh_dir(char *room, size_t size)
{
	const char *base = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";

	snprintf(room, size, "%s/noh-test-XXXXXX", base);
	EXPECT(mkdtemp(room) != NULL);
	return room;
}

/* For tests in which the disk is not the point: in memory, if there is enough, a sync costs nothing. */
static inline const char *light_dir(char *room, size_t size)
{
	struct statvfs fs;

	if (getenv("TMPDIR") || access("/dev/shm", W_OK) || statvfs("/dev/shm", &fs) ||
	    fs.f_bavail * fs.f_frsize < UINT64_C(2) << 30)
		return fresh_dir(room, size);
	snprintf(room, size, "/dev/shm/noh-test-XXXXXX");
	EXPECT(mkdtemp(room) != NULL);
	return room;
}

static inline void remove_dir(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[4096];

	while (d && (e = readdir(d)) != NULL) {
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= sizeof path)
			continue;
		if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			remove_dir(path);
		else
			(void)unlink(path);
	}
	if (d)
		closedir(d);
	(void)rmdir(dir);
}

static inline noh_box *open_dir(const char *dir, unsigned workers, const noh_type *types, size_t count)
{
	noh_options o = { .workers = workers, .dir = dir, .unpinned = true, .max_actors = 100000 };
	noh_box *box = NULL;

	if (!EXPECT_EQ(noh_open(&box, &o), NOH_OK)) {
		fprintf(stderr, "%s\n", noh_why());
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		EXPECT_EQ(noh_register(box, &types[i]), NOH_OK);
	if (!EXPECT_EQ(noh_start(box), NOH_OK))
		fprintf(stderr, "%s\n", noh_why());
	return box;
}

static inline void shut(noh_box *box)
{
	if (!EXPECT_EQ(noh_stop(box, 20000), NOH_OK))
		fprintf(stderr, "%s\n", noh_why());
	noh_close(box);
}

static inline int64_t call_i64(noh_box *box, const char *address, uint32_t kind, int64_t body)
{
	int64_t answer = INT64_MIN;
	size_t len = sizeof answer;
	int rc = noh_call(box, address, kind, &body, sizeof body, 20000, &answer, &len);

	if (!EXPECT_EQ(rc, NOH_OK))
		fprintf(stderr, "%s\n", noh_why());
	return answer;
}

#endif
