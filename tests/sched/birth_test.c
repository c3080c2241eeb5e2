/* tests/sched/birth_test.c - whose cell it is: every byte of an id counts, and nothing behind it does. */
#include "sched/birth.h"
#include "tests/lib/test.h"

#include <string.h>

enum { LONGEST = 255 };

static struct {
	struct type type;
	struct cell cell;
	_Alignas(8) uint8_t body[sizeof(struct body) + 2 + LONGEST + 8];
	char        id[LONGEST + 1];
} kit;

static void start(void)
{
	kit.type.index = 7;
	store_relaxed(&kit.cell.type, 7);
	store_relaxed(&kit.cell.body, (struct body *)(void *)kit.body);
	for (unsigned i = 0; i < LONGEST; i++)
		kit.id[i] = (char)('0' + i % 75);
}

static struct named named(unsigned len)
{
	return (struct named){ .type = &kit.type, .a = { .id = kit.id, .id_len = (uint8_t)len } };
}

/* The body's id: as long, the same, and then whatever stands behind it. */
static char *body_of(unsigned len)
{
	uint8_t *at = ((struct body *)(void *)kit.body)->data;

	memset(at, 'x', 2 + LONGEST);
	at[0] = (uint8_t)len;
	memcpy(at + 1, kit.id, len);
	return (char *)at + 1;
}

static void every_byte_of_an_id_counts(void)
{
	start();
	for (unsigned len = 1; len <= LONGEST; len++) {
		struct named who = named(len);
		char *id = body_of(len);

		EXPECT(birth_is(&kit.cell, &who));
		for (unsigned i = 0; i < len; i++) {
			id[i] ^= 1;
			EXPECT(!birth_is(&kit.cell, &who));
			id[i] ^= 1;
		}
		who.a.id_len = (uint8_t)(len - 1);
		EXPECT(!birth_is(&kit.cell, &who));
	}
}

static void an_id_of_another_type_is_another_actor(void)
{
	struct named who = named(12);

	start();
	(void)body_of(12);
	EXPECT(birth_is(&kit.cell, &who));
	store_relaxed(&kit.cell.type, 8);
	EXPECT(!birth_is(&kit.cell, &who));
}

TEST_MAIN(
	TEST(every_byte_of_an_id_counts),
	TEST(an_id_of_another_type_is_another_actor))
