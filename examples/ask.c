/* ask.c - an actor that asks another one, and answers its own caller when the answer is here.
 * A till is told what was bought, asks the price list, and answers with what is to be paid. */
#include <noh.h>
#include <stdio.h>

enum { PRICE };                    /* the price list's only message; its body: nothing */
enum { BUY, PRICE_IS };            /* the till's messages; the body of BUY: how many   */

struct till {
	noh_promise buyer;         /* who waits for an answer */
	int64_t     count;
};

static int price_list(noh_turn *turn, const noh_msg *msg)
{
	int64_t cents = 250;

	(void)msg;
	noh_reply(turn, &cents, sizeof cents);
	return NOH_OK;
}

static int till(noh_turn *turn, const noh_msg *msg)
{
	/* With wait, the next message this till handles is the answer: one buyer at a time. */
	const noh_ask_options ask = { .answer_kind = PRICE_IS, .timeout_ms = 1000, .wait = true };
	struct till *t = noh_state(turn);

	if (msg->kind == BUY) {
		t->buyer = noh_defer(turn, msg);           /* answer later, not in this turn */
		t->count = *(const int64_t *)msg->body;
		return noh_ask_to(turn, "prices:today", PRICE, NULL, 0, &ask, NULL);
	}
	int64_t total = msg->status == NOH_OK ? t->count * *(const int64_t *)msg->body : 0;
	noh_answer(turn, t->buyer, msg->status, &total, sizeof total);   /* or: no price in time */
	return NOH_OK;
}

int main(void)
{
	const noh_type prices = { .name = "prices", .on_message = price_list };
	const noh_type tills = { .name = "till", .state_size = sizeof(struct till), .on_message = till };
	int64_t count = 3, total = 0;
	size_t len = sizeof total;
	noh_box *box;

	if (noh_open(&box, NULL) || noh_register(box, &prices) || noh_register(box, &tills) ||
	    noh_start(box))
		return fprintf(stderr, "%s\n", noh_why()), 1;
	int rc = noh_call(box, "till:1", BUY, &count, sizeof count, 2000, &total, &len);
	printf("3 pieces cost %lld cents (%s)\n", (long long)total, noh_strerror(rc));
	noh_close(box);
	return total != 750;
}
