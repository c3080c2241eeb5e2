/* tests/golden/make.c - makes a golden data directory: DIR is what this release leaves after kill -9.
 *
 *     make out/plain/tests/golden/make && out/plain/tests/golden/make DIR
 *     tar -C DIR -cJf tests/golden/vN.tar.xz .
 *
 * Run once per format version; what is kept is never made again, since every later release has to open
 * it. Two runs, both killed: the first one's work is in the image, the second one's in the journal.
 */
#include "tests/golden/golden.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static noh_box *box;
static struct gold_world world = { .stuck = true };

static void must_be_ok(int rc, const char *what)
{
	if (rc == NOH_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, noh_why());
	_exit(1);
}

static void call(const char *address, uint32_t kind, int64_t n)
{
	must_be_ok(noh_call(box, address, kind, &n, sizeof n, 10000, NULL, NULL), address);
}

/* Its receiver does not come back, and may have taken the worker that would bring the answer. */
static void send_to_stuck(int64_t n)
{
	must_be_ok(noh_send(box, "gold:sender", GOLD_SEND, &n, sizeof n), "gold:sender");
	while (!world.reached)
		usleep(1000);
	usleep(100000);
}

static void entry(const char *address, uint32_t kind, const char *key)
{
	must_be_ok(noh_call(box, address, kind, key, strlen(key), 10000, NULL, NULL), address);
}

static void with_key(const char *address, const char *key, int64_t n)
{
	noh_call_options o = { .key = key, .key_len = strlen(key) };

	must_be_ok(noh_call_with(box, address, GOLD_ADD, &n, sizeof n, &o, NULL, NULL), address);
}

static void first_run(void)
{
	call("gold:plain", GOLD_ADD, 41);
	call("gold:plain", GOLD_ADD, 1);
	call("gold:entries", GOLD_ADD, 7);
	entry("gold:entries", GOLD_PUT, "one");
	entry("gold:entries", GOLD_PUT, "two");
	entry("gold:entries", GOLD_PUT, "three");
	entry("gold:entries", GOLD_REMOVE, "two");
	call("gold:once", GOLD_ONCE, 60000);
	call("gold:every", GOLD_EVERY, 3600000);
	with_key("gold:key", "first", 5);
	call("gold:erased", GOLD_ADD, 9);
	call("gold:erased", GOLD_ERASE, 0);
	send_to_stuck(11);
}

static void second_run(void)
{
	call("gold:plain", GOLD_ADD, 100);
	call("gold:late", GOLD_ADD, 3);
	entry("gold:entries", GOLD_PUT, "four");
	with_key("gold:key", "second", 6);
	send_to_stuck(22);
}

static void run(const char *dir, void (*work)(void))
{
	noh_options o = { .workers = 2, .dir = dir, .unpinned = true, .seed = 42 };
	noh_type type = gold_type(&world);
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		must_be_ok(noh_open(&box, &o), "open");
		must_be_ok(noh_register(box, &type), "register");
		must_be_ok(noh_start(box), "start");
		work();
		must_be_ok(noh_sync(box, 10000), "sync");
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, &status, 0);
	if (!WIFSIGNALED(status))
		exit(1);
}

int main(int argc, char **argv)
{
	static const char *const help_files[] = { "lock", "running", "crashes", "image/lock.mdb" };
	char path[4096];

	if (argc != 2) {
		fprintf(stderr, "usage: make DIR\n");
		return 2;
	}
	run(argv[1], first_run);
	run(argv[1], second_run);
	for (size_t i = 0; i < 4; i++) {         /* of processes, not of data */
		snprintf(path, sizeof path, "%s/%s", argv[1], help_files[i]);
		(void)unlink(path);
	}
	return 0;
}
