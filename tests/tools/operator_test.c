/* tests/tools/operator_test.c - noh dead against a server with messages that were set aside: from the words on the command
 * line over HTTP to the actor that gets its message again. The verbs run in processes of their own, as from a shell. */
#include "tests/box/durable_kit.h"
#include "tools/ask.h"
#include "tools/cli.h"

#include "core/atomic.h"

#include <signal.h>
#include <sys/wait.h>

enum { GET, POISON, KINDS };

static atomic_u32 mended;

static int on_message(noh_turn *t, const noh_msg *m)
{
	int64_t *sum = noh_state(t);

	if (m->kind == GET)
		return noh_reply(t, sum, 8);
	if (!load_relaxed(&mended))
		raise(SIGKILL);
	*sum += m->len;
	return NOH_OK;
}

static const noh_kind kinds[KINDS] = { { .name = "get" }, { .name = "poison" } };
static const noh_type type = { .name = "sum", .state_size = 8, .on_message = on_message, .full_mode = NOH_BLOCK, .kinds = kinds,
			       .kind_count = KINDS };

static void quiet(void *user, int level, const char *actor, const char *line)
{
	(void)user; (void)level; (void)actor; (void)line;
}

static char dir[256], path[300];

static noh_box *open_server(void)
{
	noh_box *box = NULL;

	EXPECT_EQ(noh_open(&box, &(noh_options){ .workers = 2, .dir = dir, .unpinned = true, .log = quiet, .max_actors = 1000 }),
		  NOH_OK);
	EXPECT_EQ(noh_register(box, &type), NOH_OK);
	EXPECT_EQ(noh_listen(box, &(noh_listen_options){ .resp_port = -1, .http_unix_path = path }), NOH_OK);
	EXPECT_EQ(noh_start(box), NOH_OK);
	return box;
}

/* Each of these messages kills its process three times. */
static void kill_with(const char *address, const char *body)
{
	for (int i = 0; i < 3; i++) {
		int status = 0;
		pid_t child = fork();

		if (child == 0) {
			noh_box *box = open_server();

			(void)noh_call(box, address, POISON, body, strlen(body), 5000, NULL, NULL);
			_exit(0);
		}
		EXPECT_EQ(waitpid(child, &status, 0), child);
		EXPECT(WIFSIGNALED(status));
	}
}

static noh_box *with_two_dead(void)
{
	noh_box *box;

	fresh_dir(dir, sizeof dir);
	snprintf(path, sizeof path, "%s/http.sock", dir);
	store_relaxed(&mended, 0);
	kill_with("sum:a", "one");
	kill_with("sum:b", "three");
	box = open_server();
	EXPECT_EQ(noh_call(box, "sum:a", POISON, "one", 3, 5000, NULL, NULL), NOH_EPOISON);
	EXPECT_EQ(noh_call(box, "sum:b", POISON, "three", 5, 5000, NULL, NULL), NOH_EPOISON);
	store_relaxed(&mended, 1);
	return box;
}

static void end(noh_box *box)
{
	shut(box);
	remove_dir(dir);
}

/* noh dead ...: the exit code; what it says is in said. */
static char said[65536];

static int dead(const char *line)
{
	char text[512], *argv[32], *rest = text, verb[] = "dead", option[] = "--socket";
	int argc = 1, ends[2], status = -1;
	size_t n = 0;
	ssize_t got;

	argv[0] = verb;
	snprintf(text, sizeof text, "%s", line);
	while ((argv[argc] = strtok_r(rest, " ", &rest)) != NULL)
		argc++;
	argv[argc++] = option;
	argv[argc++] = path;
	argv[argc] = NULL;
	EXPECT(pipe(ends) == 0);
	fflush(NULL);
	pid_t child = fork();

	if (child == 0) {
		dup2(ends[1], 1);
		dup2(ends[1], 2);
		close(ends[0]);
		status = dead_main(argc, argv);
		fflush(NULL);
		_exit(status);
	}
	close(ends[1]);
	said[0] = 0;
	while ((got = read(ends[0], said + n, sizeof said - 1 - n)) > 0)
		said[n += (size_t)got] = 0;
	close(ends[0]);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool says(const char *what)
{
	if (strstr(said, what))
		return true;
	fprintf(stderr, "said: %s\n", said);
	return false;
}

/* The id in a list, of the line with this address. */
static void id_of(const char *address, char *id, size_t size)
{
	char *at;

	EXPECT_EQ(dead("list"), CLI_FINE);
	at = strstr(said, address);
	while (at && at > said && at[-1] != '\n')
		at--;
	snprintf(id, size, "%.*s", at ? (int)strcspn(at, " ") : 0, at ? at : "");
	EXPECT(*id != 0);
}

static int64_t sum_of(noh_box *box, const char *address)
{
	return call_i64(box, address, GET, 0);
}

static void an_operator_sees_them_and_sends_one_again(void)
{
	noh_box *box = with_two_dead();
	char id[64], line[128];

	EXPECT_EQ(dead("list"), CLI_FINE);
	EXPECT(says("sum:a") && says("sum:b") && says("poison") && says("each time"));
	EXPECT_EQ(dead("list --actor sum:b"), CLI_FINE);
	EXPECT(says("sum:b") && !strstr(said, "sum:a"));
	EXPECT_EQ(dead("list --limit 1"), CLI_FINE);
	EXPECT(says("there are more"));
	id_of("sum:b", id, sizeof id);
	snprintf(line, sizeof line, "show %s", id);
	EXPECT_EQ(dead(line), CLI_FINE);
	EXPECT(says("dGhyZWU=") && says("poison"));              /* "three" */
	snprintf(line, sizeof line, "redrive %s", id);
	EXPECT_EQ(dead(line), CLI_FINE);
	EXPECT(says("1 redriven"));
	EXPECT_EQ(sum_of(box, "sum:b"), 5);
	(void)dead(line);                                        /* once more: done already, or gone */
	EXPECT_EQ(sum_of(box, "sum:b"), 5);
	EXPECT_EQ(dead("list"), CLI_FINE);
	EXPECT(says("sum:a") && !strstr(said, "sum:b"));
	EXPECT_EQ(dead(line), CLI_NOT_FOUND);
	end(box);
}

static void all_of_them_can_be_sent_again(void)
{
	noh_box *box = with_two_dead();

	EXPECT_EQ(dead("redrive --all --json"), CLI_FINE);
	EXPECT(says("\"redriven\":true") && !strstr(said, "next_cursor"));
	EXPECT_EQ(sum_of(box, "sum:a"), 3);
	EXPECT_EQ(sum_of(box, "sum:b"), 5);
	EXPECT_EQ(dead("list"), CLI_FINE);
	EXPECT(says("none"));
	end(box);
}

static void or_forgotten(void)
{
	noh_box *box = with_two_dead();
	char id[64], line[128];

	id_of("sum:a", id, sizeof id);
	snprintf(line, sizeof line, "purge %s 1-1", id);
	EXPECT_EQ(dead(line), CLI_NOT_FOUND);                    /* one of the two: said, and the other done */
	EXPECT(says("1 purged") && says("none of this id"));
	snprintf(line, sizeof line, "redrive %s", id);
	EXPECT_EQ(dead(line), CLI_FAILED);
	EXPECT(says("purged before"));
	EXPECT_EQ(dead("purge --all --yes --actor sum:b"), CLI_FINE);
	EXPECT_EQ(dead("list"), CLI_FINE);
	EXPECT(says("none"));
	EXPECT_EQ(sum_of(box, "sum:a") + sum_of(box, "sum:b"), 0);
	end(box);
}

TEST_MAIN(
	TEST(an_operator_sees_them_and_sends_one_again),
	TEST(all_of_them_can_be_sent_again),
	TEST(or_forgotten))
