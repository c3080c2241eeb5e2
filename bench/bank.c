/* bench/bank.c - transfers between a thousand accounts, 256 of them under way at a time.
 *
 * The teller debits one account, which credits another, which acknowledges to the first, which
 * tells the teller: four messages, one op. At the end the books are read: no money made or lost.
 */
#include "bench/bench.h"

enum { START, DEBIT, CREDIT, ACK, REPORT };
enum { ACCOUNTS = 1000, UNDER_WAY = 256 };

struct bank { noh_actor accounts[ACCOUNTS], teller, gather; uint64_t n, seed; };
struct account { int64_t balance, debits, credits; };
struct teller { uint64_t random, sent, acks; };
struct transfer { int64_t amount; noh_actor peer; };

static int account_message(noh_turn *turn, const noh_msg *msg)
{
	const struct bank *bank = noh_user(turn);
	const struct transfer *t = msg->body;

	if (msg->kind == ACK)
		return noh_tell(turn, bank->teller, ACK, NULL, 0);
	if (msg->kind == REPORT)
		return noh_tell(turn, bank->gather, GATHER_ADD, noh_look(turn),
				sizeof(struct account));
	struct account *me = noh_state(turn);

	if (msg->kind == CREDIT) {
		me->balance += t->amount;
		me->credits++;
		return noh_tell(turn, t->peer, ACK, NULL, 0);
	}
	struct transfer credit = { t->amount, noh_self(turn) };

	me->balance -= t->amount;
	me->debits++;
	return noh_tell(turn, t->peer, CREDIT, &credit, sizeof credit);
}

static int send_transfer(noh_turn *turn, const struct bank *bank, struct teller *me)
{
	uint64_t from = bench_below(&me->random, ACCOUNTS);
	uint64_t to = bench_other(&me->random, from, ACCOUNTS);
	struct transfer debit = { (int64_t)(1 + ++me->sent % 100), bank->accounts[to] };

	return noh_tell(turn, bank->accounts[from], DEBIT, &debit, sizeof debit);
}

static int teller_message(noh_turn *turn, const noh_msg *msg)
{
	const struct bank *bank = noh_user(turn);
	struct teller *me = noh_state(turn);

	if (msg->kind == ACK) {
		if (++me->acks == bank->n)
			return gather_add(turn, bank->gather, (int64_t)me->acks);
		return me->sent < bank->n ? send_transfer(turn, bank, me) : NOH_OK;
	}
	me->random = bench_seed(bank->seed);
	for (unsigned i = 0; i < UNDER_WAY && me->sent < bank->n; i++) {
		int rc = send_transfer(turn, bank, me);
		if (rc != NOH_OK)
			return rc;
	}
	return NOH_OK;
}

void bench_bank(struct bench_run *r)
{
	static struct bank bank;
	noh_type account = bench_type("account", sizeof(struct account), account_message, &bank);
	noh_type teller = bench_type("teller", sizeof(struct teller), teller_message, &bank);

	bench_register(r, &account);
	bench_register(r, &teller);
	bench_start(r);
	bank.gather = r->gather;
	bank.n = r->n;
	bank.seed = r->seed;
	bank.teller = bench_ref(r, "teller", 1);
	for (uint64_t i = 0; i < ACCOUNTS; i++)
		bank.accounts[i] = bench_ref(r, "account", i);

	bench_begin(r);
	bench_send(r, bank.teller, START, NULL, 0);
	struct gathered acks = bench_wait(r, 1);
	bench_end(r, r->n);
	bench_same(r, "transfers acknowledged", acks.sums[0], (int64_t)r->n);

	for (unsigned i = 0; i < ACCOUNTS; i++)
		bench_send(r, bank.accounts[i], REPORT, NULL, 0);
	struct gathered books = bench_wait(r, ACCOUNTS);
	bench_same(r, "money made or lost", books.sums[0], 0);
	bench_same(r, "debits", books.sums[1], (int64_t)r->n);
	bench_same(r, "credits", books.sums[2], (int64_t)r->n);
}
