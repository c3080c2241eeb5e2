/* tests/box/crash_report_test.c - a process that dies in an actor's code says which one, from the handler. */
#include "tests/box/care_kit.h"

#include <execinfo.h>
#include <lmdb.h>

enum { FINE, CRASH, CRASH_IN_LMDB };

static noh_box *dying;
static int report_fd;

static void on_crash(int sig)
{
	noh_crash_report(dying, report_fd);
	raise(sig);
}

static int on_message(noh_turn *t, const noh_msg *m)
{
	(void)t;
	MDB_envinfo info;

	if (m->kind == CRASH)
		raise(SIGSEGV);
	if (m->kind == CRASH_IN_LMDB)
		(void)mdb_env_info((MDB_env *)(uintptr_t)16, &info);
	return NOH_OK;
}

static const noh_type fragile = { .name = "fragile", .on_message = on_message, .version = 7 };

static void die(const char *dir, uint32_t kind)
{
	struct sigaction act = { .sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND };
	void *stack[1];

	(void)backtrace(stack, 1);
	sigaction(SIGSEGV, &act, NULL);
	dying = open_dir(dir, 2, &fragile, 1);
	(void)noh_call(dying, "fragile:one", FINE, NULL, 0, 5000, NULL, NULL);
	(void)noh_call(dying, "fragile:two", kind, NULL, 0, 5000, NULL, NULL);
	_exit(1);
}

/* What a process says that ends while fragile:two handles this. */
static void report_of(const char *dir, uint32_t kind, char *text, size_t room)
{
	int ends[2], status;

	EXPECT_EQ(pipe(ends), 0);
	pid_t pid = fork();

	if (pid == 0) {
		report_fd = ends[1];
		die(dir, kind);
	}
	close(ends[1]);
	for (size_t at = 0; at < room - 1; ) {
		ssize_t n = read(ends[0], text + at, room - 1 - at);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	close(ends[0]);
	EXPECT(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void the_actor_and_its_message_are_named(void)
{
	struct place p;
	char text[8192] = "";

	place_make(&p);
	report_of(p.path, CRASH, text, sizeof text);
	if (!EXPECT(strstr(text, ": actor fragile:two, message kind 1, type version 7\n") != NULL))
		fprintf(stderr, "%s\n", text);
	EXPECT(strstr(text, "fragile:one") == NULL);
	EXPECT(strstr(text, "data.mdb") == NULL);
	EXPECT(strstr(text, "stack of this thread:") != NULL);
	expect_clean(p.path);
	remove_dir(p.base);
}

static void who_ends_inside_lmdb_is_told_which_file_may_be_damaged(void)
{
	struct place p;
	char text[8192] = "", file[sizeof p.path + 64];

	place_make(&p);
	report_of(p.path, CRASH_IN_LMDB, text, sizeof text);
	snprintf(file, sizeof file, "%s/image/data.mdb may be damaged; noh verify", p.path);
	if (!EXPECT(strstr(text, file) != NULL))
		fprintf(stderr, "%s\n", text);
	remove_dir(p.base);
}

static void without_a_box_there_is_still_a_stack(void)
{
	char text[4096] = "";
	int ends[2];

	EXPECT_EQ(pipe(ends), 0);
	noh_crash_report(NULL, ends[1]);
	close(ends[1]);
	EXPECT(read(ends[0], text, sizeof text - 1) > 0);
	close(ends[0]);
	EXPECT(strstr(text, "crash report") != NULL);
}

TEST_MAIN(
	TEST(the_actor_and_its_message_are_named, "P11"),
	TEST(who_ends_inside_lmdb_is_told_which_file_may_be_damaged, "P11"),
	TEST(without_a_box_there_is_still_a_stack))
