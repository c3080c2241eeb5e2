/* tests/tsan/shim_check.c - is ThreadSanitizer silent on correct use of ck_pr and ck_epoch, and does
 * it still see a race (-DPLANTED_RACE)? tests/run.sh builds it both ways against the shim. */
#include <ck_epoch.h>
#include <ck_pr.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 3000

struct node {
	ck_epoch_entry_t entry;
	int              value;
};

static ck_epoch_t epoch;
static struct node *shared;
static uint64_t said;       /* guards data */
static unsigned ended;
static int data;

static ck_epoch_record_t *join_epoch(void)
{
	ck_epoch_record_t *r = NULL;

	if (posix_memalign((void **)&r, 64, sizeof *r))
		abort();
	ck_epoch_register(&epoch, r, NULL);
	return r;
}

static void bury(ck_epoch_entry_t *e)
{
	struct node *n = (struct node *)(void *)e;

	n->value = -1;          /* a race with any reader that is still there */
	free(n);
}

static void *reader(void *arg)
{
	ck_epoch_record_t *r = join_epoch();

	while (ck_pr_load_64(&said) == 0)
		ck_pr_stall();
	if (data != 42)
		abort();
	while (!ck_pr_load_uint(&ended)) {
		ck_epoch_section_t section;

		ck_epoch_begin(r, &section);
		struct node *n = ck_pr_load_ptr(&shared);
		if (n->value < 0)
			abort();
		ck_epoch_end(r, &section);
	}
	ck_epoch_unregister(r);
	return arg;
}

static struct node *fresh(int value)
{
	struct node *n = malloc(sizeof *n);

	if (!n)
		abort();
	n->value = value;
	return n;
}

int main(void)
{
	pthread_t threads[2];

	ck_epoch_init(&epoch);
	ck_epoch_record_t *r = join_epoch();
	shared = fresh(0);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, reader, NULL);
	data = 42;
	ck_pr_store_64(&said, 1);
#ifdef PLANTED_RACE
	data = 42;
#endif
	for (int i = 0; i < ROUNDS; i++) {
		struct node *old = ck_pr_load_ptr(&shared);

		ck_pr_store_ptr(&shared, fresh(i));
		ck_epoch_call(r, &old->entry, bury);
		if (i % 16 == 0)
			ck_epoch_barrier(r);
		else
			ck_epoch_poll(r);
	}
	ck_pr_store_uint(&ended, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ck_epoch_barrier(r);
	return 0;
}
