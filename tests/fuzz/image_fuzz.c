/* tests/fuzz/image_fuzz.c - any bytes as a stored actor: refused, or an actor that encodes to an image
 * which decodes to the same again. */
#include "box/box.h"
#include "sched/image.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int nothing(noh_turn *turn, const noh_msg *msg)
{
	(void)turn;
	(void)msg;
	return NOH_OK;
}

static noh_box *the_box(void)
{
	static noh_box *box;
	noh_type t = { .name = "t", .state_size = 12, .on_message = nothing };

	if (!box) {
		must(noh_open(&box, &(noh_options){ .workers = 1, .max_actors = 1000, .seed = 7 }) == NOH_OK);
		must(noh_register(box, &t) == NOH_OK && box_start_stepped(box) == NOH_OK);
	}
	return box;
}

/* Messages that were put in line go. */
static void clear(struct cell *c)
{
	while (c->ext && c->ext->redo) {
		struct redo *r = c->ext->redo;

		c->ext->redo = r->next;
		msg_free_body(&r->msg);
		mem_free(r, sizeof *r);
	}
	ext_free(c->ext);
	c->ext = NULL;
	c->flags = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sched *s = &the_box()->sched;
	struct worker *w = &s->workers[0];
	uint8_t *image = malloc(len ? len : 1), *out;   /* exactly as long: one byte too far is seen */
	struct cell *c;
	uint32_t gen;

	must(image);
	memcpy(image, data, len);
	must(sched_resolve(&w->mine.port, "t:1", 3, &c, &gen) == NOH_OK);
	int rc = image_decode(w, c, image, len);

	must(rc == NOH_OK || rc == NOH_ECORRUPT || rc == NOH_EVERSION || rc == NOH_ENOMEM || rc == NOH_EINVAL);
	if (rc == NOH_OK) {
		size_t n = image_size(s, c), again;

		memcpy(body_state(cell_type(s, c), c->body), w->mine.scratch, 12);
		out = malloc(n);
		must(out);
		image_encode(s, c, out);
		clear(c);
		must(image_decode(w, c, out, n) == NOH_OK);
		again = image_size(s, c);
		must(again == n);
		free(out);
	}
	clear(c);
	free(image);
	return 0;
}
