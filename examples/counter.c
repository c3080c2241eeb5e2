/* counter.c - an actor of your own: a number that many may add to. */
#include <noh.h>
#include <stdio.h>

enum { ADD, GET };                               /* the messages it understands */

static int on_message(noh_turn *turn, const noh_msg *msg)
{
	int64_t *value = noh_state(turn);        /* its own; needs no lock; zero at first */

	if (msg->kind == ADD)
		*value += *(const int64_t *)msg->body;
	noh_reply(turn, value, sizeof *value);
	return NOH_OK;                           /* all of it counts, or (below zero) nothing */
}

int main(void)
{
	const noh_type counter = { .name = "counter", .state_size = sizeof(int64_t),
				   .full_mode = NOH_BLOCK, .on_message = on_message };
	int64_t one = 1, value = 0;
	size_t len = sizeof value;
	noh_box *box;

	if (noh_open(&box, NULL) || noh_register(box, &counter) || noh_start(box))
		return fprintf(stderr, "%s\n", noh_why()), 1;
	for (int i = 0; i < 1000; i++)           /* the first message activates counter:home */
		noh_send_wait(box, "counter:home", ADD, &one, sizeof one, 1000);
	noh_call(box, "counter:home", GET, NULL, 0, 1000, &value, &len);
	printf("counter:home is %lld\n", (long long)value);
	noh_close(box);
	return value != 1000;
}
