/* tests/sim/box/recovery.c - what must hold after a crash, read from the store of the box that opened. */
#include "tests/sim/box/sim.h"

#include "core/address.h"
#include "core/mem.h"
#include "core/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct image {
	int      rc;
	bool     there;
	struct sim_state state;
	uint64_t entries;
	unsigned ticks, beats;
};
static bool pending[MESSAGES];

static void read_part(struct image *i, const struct part *p, bool mark)
{
	struct part_timer t;
	struct part_emitted e;
	struct sim_body b;

	switch (p->kind) {
	case PART_STATE:
		if (p->len != sizeof(struct part_state) + sizeof i->state)
			sim_violation("a stored state has %u bytes", p->len);
		memcpy(&i->state, (const char *)p->data + sizeof(struct part_state), sizeof i->state);
		i->there = true;
		break;
	case PART_TIMERS:
		for (uint32_t at = 0; at < p->len; at += sizeof t) {
			memcpy(&t, (const char *)p->data + at, sizeof t);
			i->ticks += t.kind == K_TICK;
			i->beats += t.kind == K_BEAT;
		}
		break;
	case PART_PUT:
		i->entries += actors_entry_sum(p->key, p->key_len, p->data, p->len);
		break;
	case PART_EMITTED:
		memcpy(&e, p->data, sizeof e);
		if (e.flags & EMITTED_ANSWER)
			break;
		memcpy(&b, (const char *)p->data + sizeof e + record_pad(e.from_len), sizeof b);
		if (b.uid == 0 || b.uid > sim->messages)
			sim_violation("message %u is stored, but was never sent", b.uid);
		if (mark)
			pending[b.uid] = true;
		break;
	}
}

static uint64_t hash_of(noh_box *box, unsigned a)
{
	return address_hash_text(sim_name(a), strlen(sim_name(a)), box->sched.seed);
}

static void read_image(noh_box *box, unsigned a, struct image *i, bool mark)
{
	struct stored stored;
	struct part p;

	memset(i, 0, sizeof *i);
	i->rc = store_load(box->disk.store, sim_name(a), strlen(sim_name(a)), hash_of(box, a), &stored);
	if (i->rc != NOH_OK)
		return;
	const uint8_t *at = stored.image, *end = at + stored.len;

	while (at && part_next(&at, end, &p))
		read_part(i, &p, mark);
	mem_free(stored.image, stored.len);
}

/* The version a stored image stands for. Nothing stored: the last end or beginning that is allowed. */
static uint32_t version_of(unsigned a, const struct image *i)
{
	uint32_t v = (uint32_t)i->state.version;

	if (i->there && v)
		return v;
	for (v = sim->tip[a]; v && !sim->version[v].erased; v = sim->version[v].parent)
		continue;
	return v;
}

static void check_image(unsigned a, const struct image *i)
{
	const struct sim_state *s = &i->state;

	for (size_t n = 0; n < sizeof s->pad; n++)
		if (s->pad[n] != (uint8_t)s->version)
			sim_violation("%s: a state is stored that nobody wrote", sim_name(a));
	if (i->entries != s->entries)
		sim_violation("%s, version %" PRIu64 ": its entries are not those of its state", sim_name(a),
			      s->version);
	if (!i->ticks != !s->armed || !i->beats != !s->every)
		sim_violation("%s, version %" PRIu64 ": its schedules (%u, %u) are not those of its state "
			      "(%u, %u)", sim_name(a), s->version, i->ticks, i->beats, s->armed, s->every);
}

static uint32_t recover_actor(noh_box *box, unsigned a, bool *there)
{
	struct image i;
	uint32_t v;

	read_image(box, a, &i, true);
	if (i.rc != NOH_OK && i.rc != NOH_END)
		sim_violation("%s cannot be read after a crash: %s", sim_name(a), noh_why());
	*there = i.there;
	v = version_of(a, &i);
	if (v > sim->versions || sim->version[v].failed || (v && sim->version[v].actor != a))
		sim_violation("%s has version %u after a crash, which never was", sim_name(a), v);
	if (!model_reaches(v, sim->tip[a]))
		sim_violation("%s has version %u after a crash, which does not lead to its last, %u", sim_name(a),
			      v, sim->tip[a]);
	if (!model_reaches(sim->shown[a], v))
		sim_violation("%s showed version %u at disk, and has %u after a crash", sim_name(a),
			      sim->shown[a], v);
	check_image(a, &i);
	return v;
}

/* An effect that survived has its causes with it (P6). */
static void check_causes(unsigned a)
{
	for (uint32_t v = sim->found[a]; v && v != sim->shown[a]; v = sim->version[v].parent)
		for (unsigned i = 0; i < CAUSES; i++) {
			uint32_t c = sim->version[v].causes[i];

			if (c && !model_reaches(c, sim->found[sim->version[c].actor]))
				sim_violation("%s has version %u after a crash, but not its cause, %u of %s",
					      sim_name(a), v, c, sim_name(sim->version[c].actor));
		}
}

/* Sent and not handled: it waits. Everything else does not. */
static void check_message(uint32_t uid, const struct message *m)
{
	bool sent = model_reaches(m->sent_by, sim->found[m->from]) && !sim->version[m->sent_by].failed;
	bool handled = m->handled_by && !sim->version[m->handled_by].failed &&
		       model_reaches(m->handled_by, sim->found[m->to]);

	if (pending[uid] && !sent)
		sim_violation("message %u to %s is stored, but the turn that sent it is not", uid, sim_name(m->to));
	if (pending[uid] && handled)
		sim_violation("message %u to %s was handled, and is stored all the same", uid, sim_name(m->to));
	if (sent && !handled && !pending[uid] && !m->ended && !model_may_drop(m))
		sim_violation("message %u to %s was sent, not handled, and is not stored", uid, sim_name(m->to));
	seen->redelivered += pending[uid];
	seen->coalesced_or_dropped += sent && !handled && !pending[uid] && !m->ended;
}

static void check_keys(noh_box *box)
{
	for (uint32_t k = 1; k <= sim->keys; k++) {
		unsigned a = sim->key[k].actor;
		char text[16];
		size_t n = (size_t)snprintf(text, sizeof text, "key-%u", k), len;
		uint64_t due;
		void *part;
		int rc = store_idem_get(box->disk.store, sim_name(a), strlen(sim_name(a)), hash_of(box, a), text, n,
					&part, &len, &due);
		bool used = model_with_key(sim->found[a], k);

		if (rc == NOH_OK)
			mem_free(part, len);
		if (used != (rc == NOH_OK))
			sim_violation("key %u of %s was %sused, but is %sstored", k, sim_name(a), used ? "" : "not ",
				      rc == NOH_OK ? "" : "not ");
	}
}

void model_recovered(noh_box *box)
{
	bool there[ACTORS] = { false };

	memset(pending, 0, sizeof pending);
	for (unsigned a = 0; a < ACTORS; a++)
		if (is_durable(a))
			sim->found[a] = recover_actor(box, a, &there[a]);
	events_recovered(box, there);
	scanner_recovered(there);
	for (unsigned a = 0; a < ACTORS; a++)
		if (is_durable(a))
			check_causes(a);
	for (uint32_t uid = 1; uid <= sim->messages; uid++)
		if (sim->message[uid].recorded)
			check_message(uid, &sim->message[uid]);
	check_keys(box);
	several_check(sim->found, "after a crash");
	for (unsigned a = 0; a < ACTORS; a++)
		sim->tip[a] = sim->shown[a] = sim->found[a];
	memset(sim->heard, 0, sizeof sim->heard);
	memset(sim->busy, 0, sizeof sim->busy);
}

uint64_t model_image_hash(noh_box *box)
{
	uint64_t was = sim->hash, hash;
	struct image i;

	memset(pending, 0, sizeof pending);
	sim->hash = 1;
	for (unsigned a = 0; a < ACTORS; a++)
		if (is_durable(a)) {
			read_image(box, a, &i, true);
			sim_say("%s: rc %d, version %" PRIu64 ", entries %" PRIx64 ", schedules %u %u", sim_name(a), i.rc,
				i.state.version, i.entries, i.ticks, i.beats);
			sim->clean[a] = i.state.version + i.entries;
			sim_note(i.state.version << 8 | i.there);
			sim_note(i.entries);
			sim_note(i.ticks << 16 | i.beats);
		}
	for (uint32_t uid = 1; uid <= sim->messages; uid++) {
		if (pending[uid])
			sim_say("message %u waits for %s", uid, sim_name(sim->message[uid].to));
		sim_note(pending[uid]);
	}
	hash = sim->hash;
	sim->hash = was;
	return hash;
}

void model_any_image(noh_box *box)
{
	for (unsigned a = 0; a < ACTORS; a++) {
		struct image i = { .rc = NOH_END };

		if (is_durable(a))
			read_image(box, a, &i, false);
		if (i.rc != NOH_OK) {
			seen->rot_found += i.rc == NOH_ECORRUPT;
			continue;
		}
		if (!model_reaches(version_of(a, &i), sim->tip[a]))
			sim_violation("%s: a damaged file shows version %" PRIu64, sim_name(a), i.state.version);
		check_image(a, &i);
	}
}

/* Only the image is damaged: an actor is what it is in a copy that is not, or cannot be read. */
void model_same_image(noh_box *box)
{
	for (unsigned a = 0; a < ACTORS; a++) {
		struct image i;

		if (!is_durable(a))
			continue;
		read_image(box, a, &i, false);
		if ((i.rc == NOH_OK || i.rc == NOH_END) && i.state.version + i.entries != sim->clean[a])
			sim_violation("%s: a damaged image shows version %" PRIu64 " (%d)", sim_name(a),
				      i.state.version, i.rc);
	}
}
