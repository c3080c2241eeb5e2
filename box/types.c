/* box/types.c - noh.h, section 3: a type is checked, and what follows from it is worked out once. */
#include "box/box.h"
#include "sched/events.h"

#include <string.h>

static int check_topics(const noh_type *t)
{
	uint32_t personal = 0;

	if (t->topic_count && !t->topics)
		return error_set(NOH_EINVAL, "type %s: topic_count without topics", t->name);
	if (t->topic_count > EVENTS_TOPICS_MAX)
		return error_set(NOH_EINVAL, "type %s: %u topics: at most %d", t->name, t->topic_count,
				 EVENTS_TOPICS_MAX);
	for (uint32_t i = 0; i < t->topic_count; i++) {
		size_t len = t->topics[i].channel ? strlen(t->topics[i].channel) : 0;

		if (len == 0 || len > CHANNEL_MAX)
			return error_set(NOH_EINVAL, "type %s: topic %u: a channel has 1 to %d bytes", t->name, i,
					 CHANNEL_MAX);
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(t->topics[j].channel, t->topics[i].channel) == 0)
				return error_set(NOH_EINVAL, "type %s: topic %s stands there twice", t->name,
						 t->topics[i].channel);
		if (t->kinds && t->topics[i].kind >= t->kind_count)
			return error_set(NOH_EINVAL, "type %s: topic %s comes as kind %u: it has %u", t->name,
					 t->topics[i].channel, t->topics[i].kind, t->kind_count);
	}
	for (uint32_t i = 0; i < t->kind_count; i++)
		personal += (t->kinds[i].flags & NOH_KIND_PERSONAL) != 0;
	if (personal > 1)
		return error_set(NOH_EINVAL, "type %s: %u kinds are NOH_KIND_PERSONAL: one can be", t->name, personal);
	return NOH_OK;
}

#define LONGEST_MS (24u * 3600 * 1000)

static int check_supervision(const noh_type *t)
{
	const noh_supervision *p = t->supervision;

	if (!p)
		return NOH_OK;
	if (p->strategy < NOH_ONE_FOR_ONE || p->strategy > NOH_REST_FOR_ONE || p->restart < NOH_PERMANENT ||
	    p->restart > NOH_TEMPORARY || p->then < NOH_THEN_ESCALATE || p->then > NOH_THEN_AWAIT)
		return error_set(NOH_EINVAL, "type %s: its supervision's strategy, restart or then is none there is", t->name);
	if (p->factor > 100 || p->base_ms > LONGEST_MS || p->cap_ms > LONGEST_MS)
		return error_set(NOH_EINVAL, "type %s: a back-off grows by a factor of at most 100, up to a day", t->name);
	if (p->retries > 200 && p->retries != NOH_NEVER)
		return error_set(NOH_EINVAL, "type %s: a message is retried at most 200 times, not %u", t->name, p->retries);
	return NOH_OK;
}

static int check_type(const noh_type *t)
{
	size_t len = t && t->name ? strlen(t->name) : 0;

	if (len == 0 || len > TYPE_NAME_MAX || strpbrk(t->name, ":/"))
		return error_set(NOH_EINVAL, "a type's name has 1 to %d bytes, no colon and no slash",
				 TYPE_NAME_MAX);
	if (!t->on_message && !t->on_batch)
		return error_set(NOH_EINVAL, "type %s has neither on_message nor on_batch", t->name);
	if (t->state_size > 1u << 20 || t->mailbox_capacity > 1u << 20)
		return error_set(NOH_EINVAL, "type %s: state and mailbox are at most 1 Mi", t->name);
	if (t->full_mode < NOH_DROP_OLDEST || t->full_mode > NOH_BLOCK)
		return error_set(NOH_EINVAL, "type %s: full_mode %d is none of the three", t->name,
				 t->full_mode);
	if (t->kind_count && !t->kinds)
		return error_set(NOH_EINVAL, "type %s: kind_count without kinds", t->name);
	for (uint32_t i = 0; i < t->kind_count; i++)
		if ((t->kinds[i].flags & NOH_KIND_COALESCE) && !t->kinds[i].coalesce)
			return error_set(NOH_EINVAL, "type %s: kind %u coalesces but has no coalesce()",
					 t->name, i);
	int rc = limit_check(t->name, &t->limits);

	if (rc == NOH_OK)
		rc = check_supervision(t);
	return rc == NOH_OK ? check_topics(t) : rc;
}

static void set_supervision(struct type *t)
{
	static const noh_supervision defaults = { .base_ms = 100, .factor = 2, .cap_ms = 30000, .restarts = 5,
						  .within_ms = 60000, .retries = 3, .stop_ms = 5000 };
	noh_supervision *p = &t->sup;

	*p = t->pub.supervision ? *t->pub.supervision : defaults;
	p->base_ms = p->base_ms ? p->base_ms : defaults.base_ms;
	p->factor = p->factor ? p->factor : defaults.factor;
	p->cap_ms = p->cap_ms ? p->cap_ms : defaults.cap_ms;
	p->restarts = p->restarts ? p->restarts : defaults.restarts;
	p->within_ms = p->within_ms ? p->within_ms : defaults.within_ms;
	p->retries = p->retries ? p->retries : defaults.retries;
	p->stop_ms = p->stop_ms ? p->stop_ms : defaults.stop_ms;
	t->supervised = t->tells = t->pub.supervision != NULL;
	if (t->supervised)
		t->pub.supervision = p;
}

static int batch_of_one(noh_turn *turn, const noh_msg *msg)
{
	return turn->type->pub.on_batch(turn, msg, 1);
}

static void set_type(struct sched *s, struct type *t, const noh_type *pub)
{
	bool disk = s->journal.arg != NULL;

	t->pub = *pub;
	t->name_len = (uint32_t)strlen(pub->name);
	memcpy(t->name, pub->name, t->name_len + 1);
	t->pub.name = t->name;
	t->capacity = pub->mailbox_capacity ? pub->mailbox_capacity : 100;
	t->half = t->capacity / 2;
	t->hard = t->capacity * HARD_FACTOR;
	store_relaxed(&t->idle_ds, box_idle_ds(pub->idle_timeout_ms));
	t->personal = -1;
	for (uint32_t i = 0; i < pub->kind_count; i++) {
		if (pub->kinds[i].flags & NOH_KIND_PERSONAL)
			t->personal = (int32_t)i;
		t->reads |= (pub->kinds[i].flags & NOH_KIND_READ) != 0;
		t->coalesces |= (pub->kinds[i].flags & NOH_KIND_COALESCE) != 0;
	}
	t->single = pub->on_message ? pub->on_message : batch_of_one;
	t->windowed = t->coalesces || pub->on_batch;
	set_supervision(t);
	t->noted = disk || t->sup.turn_deadline_ms;
	t->durable = disk && !pub->is_volatile;
	t->shared = pub->full_mode == NOH_DROP_OLDEST && !t->durable;
	t->sheds = pub->full_mode == NOH_DROP_OLDEST && t->durable;
	t->storage = t->durable ? &s->disk : &s->storage;
	t->pub.version = pub->version ? pub->version : 1;
	t->comes_easily = !pub->on_activate && !pub->topic_count && !t->durable;
	t->odd_itself = t->reads || t->windowed || t->noted;
	t->version_off = disk ? 16 : 0;          /* behind due and sequence */
	t->state_off = t->version_off + (t->reads ? 8 : 0);
	t->state_words = (pub->state_size + 7) / 8;
	t->id_off = t->state_off + ((pub->state_size + 7) & ~7u);
}

int noh_register(noh_box *box, const noh_type *pub)
{
	struct sched *s = &box->sched;
	struct type *t;
	int rc = check_type(pub);

	if (rc != NOH_OK)
		return rc;
	if (load_relaxed(&box->phase) != BOX_OPEN)
		return error_set(NOH_ESTOPPED, "type %s: register types before noh_start", pub->name);
	if (sched_find_type(s, pub->name, strlen(pub->name)))
		return error_set(NOH_EEXISTS, "type %s is registered already", pub->name);
	if (s->type_count == TYPES_MAX)
		return error_set(NOH_EINVAL, "type %s: a box has at most %d types", pub->name, TYPES_MAX);
	t = mem_aligned(CACHE_LINE, sizeof *t);
	if (!t)
		return error_set(NOH_ENOMEM, "no memory for type %s", pub->name);
	set_type(s, t, pub);
	t->index = s->type_count;
	t->short_itself = pub->kinds || s->max_message < MSG_INLINE ? 0 : t->capacity;
	rc = limit_set(s, t, &pub->limits);
	if (rc != NOH_OK) {
		mem_free(t, sizeof *t);
		return rc;
	}
	if (load_relaxed(&t->idle_ds) < load_relaxed(&s->min_idle_ds))
		store_relaxed(&s->min_idle_ds, load_relaxed(&t->idle_ds));
	s->types[s->type_count++] = t;
	return NOH_OK;
}
