/* durable.c - a counter that is on disk when the answer comes, and counts a retry once.
 *
 * Run it twice: the second run goes on where the first stopped. Kill it in between: nothing that was
 * answered is lost.
 */
#include <noh.h>
#include <stdio.h>
#include <string.h>

enum { ADD };

static int on_message(noh_turn *turn, const noh_msg *msg)
{
	int64_t *value = noh_state(turn);

	*value += *(const int64_t *)msg->body;
	return noh_reply(turn, value, sizeof *value);    /* leaves when the turn is on disk */
}

int main(int argc, char **argv)
{
	const noh_type counter = { .name = "counter", .state_size = sizeof(int64_t),
				   .full_mode = NOH_BLOCK, .on_message = on_message };
	const noh_options options = { .dir = argc > 1 ? argv[1] : "counter-data" };
	int64_t before = 0, again = 0, none = 0, one = 1;
	size_t len = sizeof before, len_again = sizeof again;
	char key[64];
	noh_box *box;

	if (noh_open(&box, &options) || noh_register(box, &counter) || noh_start(box))
		return fprintf(stderr, "%s\n", noh_why()), 1;
	if (noh_call(box, "counter:home", ADD, &none, sizeof none, 1000, &before, &len))
		return fprintf(stderr, "%s\n", noh_why()), 1;
	/* The same request sent twice, as after a timeout: the key makes it one. */
	snprintf(key, sizeof key, "visit-%lld", (long long)before + 1);
	noh_call_options once = { .key = key, .key_len = strlen(key) };

	for (int i = 0; i < 2; i++)
		if (noh_call_with(box, "counter:home", ADD, &one, sizeof one, &once, &again, &len_again))
			return fprintf(stderr, "%s\n", noh_why()), 1;
	printf("counter:home was %lld, is %lld\n", (long long)before, (long long)again);
	noh_stop(box, 5000);
	noh_close(box);
	return again != before + 1;
}
