/* noh_reconcile.h - actors that keep a thing as it should be: reconciliation, on top of noh.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One actor owns one thing of the world outside: an instance, a network interface, an image on disk. It is told what
 * is *desired* (a spec, with a revision) and what is *observed* (a snapshot), and drives the thing from one to the
 * other, over and over, whatever fails in between. You write two functions; the kit does the rest: revisions, waiting,
 * retries, deadlines, what is kept on disk, and an event for every transition.
 *
 *	static int diff(noh_turn *turn, noh_reconcile *now, noh_action *next, size_t room)
 *	{
 *		const struct spec *want = now->desired;
 *		const struct seen *is = now->observed;
 *		int copies = now->goal == NOH_GOAL_RUN ? want->copies : 0;
 *
 *		if (is->copies == copies)
 *			return 0;                              nothing to do: it is as it should be
 *		next[0] = (noh_action){ .code = SCALE, .arg = copies };
 *		return 1;
 *	}
 *	static int apply(noh_turn *turn, noh_reconcile *now, const noh_action *action)
 *	{
 *		return noh_reconcile_ask(turn, now, "hypervisor:0", SET_COPIES, &action->arg, 8);
 *	}
 *	static const noh_reconciler app = { .name = "app", .spec_max = sizeof(struct spec),
 *		.observed_max = sizeof(struct seen), .diff = diff, .apply = apply, .done = done };
 *	...
 *	noh_type type = noh_reconcile_type(&app);
 *	noh_register(box, &type);
 *	struct { uint64_t revision; struct spec spec; } m = { 7, { .copies = 3 } };
 *	noh_send(box, "app:web", NOH_RECONCILE_APPLY, &m, sizeof m);
 *
 * A pass     asks diff() for the next actions, the fewest that lead on, and gives them to apply() in order. What
 *            apply() finishes at once is done; what it begins (NOH_UNDER_WAY) is waited for, and whatever arrives
 *            meanwhile waits for the next pass: a thing has one action under way at most. Then diff() is asked
 *            again, until it has nothing to do: then the revision is *applied*.
 * Settling   a new revision does not begin a pass at once but settle_ms after the first change: a burst of changes is
 *            one pass, with the last of them. Of the changes that wait in the mailbox only the highest revision is
 *            kept (NOH_KIND_COALESCE); one that is not higher than what is known is stale, and changes nothing.
 * Failing    an action that fails is tried again after a back-off that grows, with full jitter; after
 *            backoff.attempts failures in a row it is given up until there is a higher revision, or somebody says
 *            NOH_RECONCILE_RETRY. apply() failing is the world's fault, and costs a retry. diff() failing is the
 *            program's: the turn fails, and that is the supervisor's matter.
 * Again      apply() must be idempotent ("ensure that X exists"): an action is repeated if its answer does not come
 *            in time, or was lost with the process; what is on disk is the last applied revision, the phase, and the
 *            action that was under way, not whether the world has seen it.
 *
 * Contents   1 back-off      2 the type      3 what callbacks are handed      4 messages
 * Threads    as noh.h: callbacks run in the actor's turn.
 */
#ifndef NOH_RECONCILE_H
#define NOH_RECONCILE_H

#include "noh.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ── 1 back-off ──────────────────────────────────────────────────────────────────────────────
 * For whatever is tried again: of use to any actor that calls the world outside, with or without the rest of this
 * header. All zero is a good start. */
typedef struct noh_backoff {
	uint32_t base_ms;          /* 0: 100                                                       */
	uint32_t factor;           /* 0: 2                                                         */
	uint32_t cap_ms;           /* 0: 30 000                                                    */
	uint32_t attempts;         /* failures in a row, then it is given up; 0: never             */
} noh_backoff;

/* How long to wait after so many failures in a row (1 and more): full jitter, uniform in [0, min(cap, base * factor ^
 * (failures - 1))]. random: any 64 random bits. policy NULL: the defaults. */
NOH_API uint64_t noh_backoff_ms(const noh_backoff *policy, uint32_t failures, uint64_t random);

/* The same with a memory: keep it in the actor's state, zeroed at first.
 *
 *	if (failed && noh_retry_after(turn, &s->retry, NULL, &ms) == NOH_OK)
 *		return noh_schedule_once(turn, TRY_AGAIN, ms);
 *
 * noh_retry_after counts one failure more. NOH_OK: try again in *wait_ms; NOH_END: that was the last attempt.
 * noh_retry_done: it went well, the next failure is the first. The jitter of two actors has nothing in common, and is
 * the same again in a simulation. */
typedef struct noh_retry {
	uint64_t random;
	uint32_t failures;
	uint32_t reserved;
} noh_retry;
NOH_API int noh_retry_after(noh_turn *turn, noh_retry *retry, const noh_backoff *policy, uint64_t *wait_ms);
NOH_API void noh_retry_done(noh_retry *retry);

/* ── 2 the type ──────────────────────────────────────────────────────────────────────────────*/

/* What the thing is to be driven to. */
enum {
	NOH_GOAL_RUN,              /* as its spec says                                             */
	NOH_GOAL_DRAIN,            /* no new work, finish what it does: then stop                  */
	NOH_GOAL_STOP              /* gone                                                         */
};

/* Where it is. The name (noh_phase_name) is what events tell as from and to. */
typedef enum {
	NOH_PHASE_NEW,             /* "new": there is no spec yet                                  */
	NOH_PHASE_CONVERGING,      /* "converging": on its way                                     */
	NOH_PHASE_ACTIVE,          /* "active": as desired                                         */
	NOH_PHASE_RETRYING,        /* "retrying": an action failed; waits for its next attempt     */
	NOH_PHASE_FAILED,          /* "failed": given up; waits for a higher revision, or RETRY    */
	NOH_PHASE_DRAINING,        /* "draining"                                                   */
	NOH_PHASE_STOPPING,        /* "stopping"                                                   */
	NOH_PHASE_STOPPED          /* "stopped": a higher revision makes it run again              */
} noh_phase;
NOH_API const char *noh_phase_name(noh_phase phase);

typedef struct noh_reconcile noh_reconcile;

/* One step of the way. code and arg are yours; kept on disk while it is under way. */
typedef struct noh_action {
	uint32_t code;             /* below NOH_ACTION_OBSERVE                                     */
	uint32_t timeout_ms;       /* under way longer: failed, and tried again; 0: action_ms      */
	uint64_t arg;
	uint64_t number;           /* set by the kit: no two of this actor have the same           */
} noh_action;
#define NOH_ACTION_OBSERVE UINT32_MAX     /* observe(), as done() sees it                          */
#define NOH_ACTIONS_MAX 16

enum { NOH_UNDER_WAY = 64 };              /* apply, observe: begun; its end comes as a message     */
#define NOH_RECONCILE_AT_ONCE UINT32_MAX  /* settle_ms: no burst is waited for                     */
#define NOH_RECONCILE_ERROR 200           /* bytes of what went wrong, with the NUL                */

/* diff     the next actions, in order: how many, at most room (NOH_ACTIONS_MAX); 0: nothing is left to do for now->goal.
 *          Must depend on nothing but `now`, and do nothing. Below zero: the turn fails.
 * apply    do it. NOH_OK: done; NOH_UNDER_WAY: begun (noh_reconcile_ask, or a thread of yours that will call
 *          noh_reconcile_finish); below zero: failed, noh_reconcile_fail says why. What it changed and sent before it
 *          failed stays: decide, then change. Never blocks.
 * done     an action under way has ended, and answer is what came: status, body. NOH_OK: it is done, and if that shows
 *          how the thing is now, tell (noh_reconcile_observe). Below zero: failed. NULL: NOH_OK and whatever is
 *          not an answer with NOH_OK is a failure; of observe(), the answer's body is the snapshot.
 * observe  look at the thing: noh_reconcile_observe and NOH_OK, or begin to look (NOH_UNDER_WAY); called at each tick,
 *          before the first pass, and after an action whose end did not show how the thing is now. NULL: whoever sees
 *          it sends NOH_RECONCILE_OBSERVED.
 * check    is this a spec? From anybody: believe nothing. Below zero: no, and noh_reconcile_fail says why; its sender
 *          is told so. NULL: any bytes are.
 * on_phase it has got from one phase to another (now->phase): tell the parent, publish, count.
 * on_activate, on_message   as those of noh_type; on_message gets kinds from NOH_RECONCILE_KINDS on.
 *
 * After an action diff() is asked again when the observation has changed: until then, or until the next tick, it is
 * not known whether it is there, and doing it again and again would not help. */
typedef struct noh_reconciler {
	const char *name;              /* of the type                                              */
	uint32_t    spec_max;          /* bytes of a spec; 0: 256                                  */
	uint32_t    observed_max;      /* bytes of a snapshot; 0: 256                              */
	uint32_t    own_size;          /* bytes of your own, in the state: now->own                */
	uint32_t    settle_ms;         /* 0: 120; NOH_RECONCILE_AT_ONCE                            */
	uint32_t    tick_ms;           /* 0: 30 000, give or take a quarter; NOH_NEVER: no ticks. None either while
					  it is active and there is no observe(): it would see nothing new */
	uint32_t    action_ms;         /* 0: 30 000                                                */
	noh_backoff backoff;
	bool        forget;            /* once stopped nothing of it is kept: a lower revision would be as good as new */
	const char *const *action_names;   /* by code, for events and errors; may be NULL; kept    */
	uint32_t    action_count;

	int (*diff)(noh_turn *turn, noh_reconcile *now, noh_action *next, size_t room);
	int (*apply)(noh_turn *turn, noh_reconcile *now, const noh_action *action);
	int (*done)(noh_turn *turn, noh_reconcile *now, const noh_action *action, const noh_msg *answer);
	int (*observe)(noh_turn *turn, noh_reconcile *now);
	int (*check)(noh_turn *turn, noh_reconcile *now, const void *spec, size_t len);
	int (*on_phase)(noh_turn *turn, noh_reconcile *now, noh_phase from);
	int (*on_activate)(noh_turn *turn, noh_reconcile *now);
	int (*on_message)(noh_turn *turn, noh_reconcile *now, const noh_msg *msg);

	/* Over HTTP a spec and a snapshot are JSON: how they become bytes. NULL: the bytes are the text. NOH_OK;
	 * NOH_EINVAL: `why` (200 bytes) says what must be different; NOH_ETOOBIG: *len is the room it needs. */
	int (*from_json)(void *user, uint32_t kind, const char *json, size_t json_len, void *to, size_t room, size_t *len,
			 char *why);

	const noh_kind *kinds;         /* with kinds of your own: begins with NOH_RECONCILE_TABLE; kept */
	uint32_t    kind_count;
	void       *user;              /* yours: now->user                                         */
} noh_reconciler;

/* An actor type made of it, to be registered: set what else a noh_type has (supervision, limits, mailbox ...) before
 * that, but leave the hooks, kinds, user and state_size. `how` is kept, not copied. Supervised, it is best NOH_TRANSIENT:
 * one that was stopped has stopped. Keys of the key-value part that begin with a zero byte are the kit's.
 * Without diff or apply it is a type without on_message, and noh_register refuses it. Its schema is made of the three
 * sizes and of the kit's own layout: who changes one of them raises type.version, and migrates (noh_reconcile_migrate). */
NOH_API noh_type noh_reconcile_type(const noh_reconciler *how);

/* From a state as it was with the sizes of `old` to one with those of `fresh`, for a noh_migration: what does not fit any
 * more is NOH_ETOOBIG; larger parts are filled with zeros. */
NOH_API int noh_reconcile_migrate(const noh_reconciler *old, const noh_reconciler *fresh, const void *state, size_t len,
				  void *to, size_t *to_len);

/* ── 3 what callbacks are handed ─────────────────────────────────────────────────────────────
 * Valid until the callback returns. desired and observed are aligned to 8, and as long as they came; behind them,
 * up to spec_max and observed_max, are zeros. So a struct of either size may be read when nothing was seen yet. */
struct noh_reconcile {
	int         goal;              /* NOH_GOAL_...                                             */
	noh_phase   phase;
	uint64_t    revision;          /* of desired; 0: there is none                             */
	uint64_t    applied;           /* the last one that was reached                            */
	const void *desired;
	size_t      desired_len;
	const void *observed;
	size_t      observed_len;      /* 0: nothing was seen yet                                  */
	uint32_t    failures;          /* of the action to be tried, in a row                      */
	void       *own;               /* own_size bytes: kept with the state                      */
	void       *user;
	char        error[NOH_RECONCILE_ERROR];
	const noh_reconciler *how;
	void       *kit;               /* the kit's                                                */
};

/* Say why: return noh_reconcile_fail(now, "disk %s is full", name). NOH_EFAILED. */
NOH_API int noh_reconcile_fail(noh_reconcile *now, const char *format, ...) NOH_PRINTF(2, 3);

/* This is how the thing is: now->observed from here on. NOH_OK, NOH_ETOOBIG. */
NOH_API int noh_reconcile_observe(noh_reconcile *now, const void *snapshot, size_t len);

/* In apply and observe: ask another actor; its answer ends the action (done). NOH_UNDER_WAY, or below zero: as
 * noh_ask_to, or NOH_EINVAL: elsewhere. */
NOH_API int noh_reconcile_ask(noh_turn *turn, noh_reconcile *now, const char *address, uint32_t kind, const void *body,
			      size_t len);

/* The action of this number has ended: from any thread, when it was apply() that gave it to one. status: NOH_OK or below
 * zero; body: what done() gets, or, if it failed, why, as text; at most NOH_RECONCILE_BODY bytes. What is not under way
 * (any more) is ignored. As noh_send. */
#define NOH_RECONCILE_BODY 4096
NOH_API int noh_reconcile_finish(noh_box *box, const char *address, uint64_t number, int status, const void *body,
				 size_t len);

/* ── 4 messages ──────────────────────────────────────────────────────────────────────────────
 * Bodies are these structs in the byte order of the machine. Whatever is malformed is refused (NOH_REFUSED, and the
 * answer is a sentence): nothing has happened, and the actor has not failed. Over HTTP: docs/reconcile.md. */
enum {
	NOH_RECONCILE_APPLY,           /* uint64_t revision (1 and more), spec       -> noh_reconcile_answer   */
	NOH_RECONCILE_OBSERVED,        /* uint64_t sequence, snapshot                -> noh_reconcile_answer   */
	NOH_RECONCILE_TICK,            /* -: look now; its own timer, too            -> noh_reconcile_answer   */
	NOH_RECONCILE_STOP,            /* the reason, as text                        -> noh_reconcile_answer   */
	NOH_RECONCILE_DRAIN,           /* uint64_t deadline_ms from now, reason      -> noh_reconcile_answer   */
	NOH_RECONCILE_RETRY,           /* -: forget the failures, try now            -> noh_reconcile_answer   */
	NOH_RECONCILE_WAIT,            /* uint64_t revision, or - (the present one)  -> noh_reconcile_state, when it is applied */
	NOH_RECONCILE_STATE,           /* -: reads beside the mailbox                -> noh_reconcile_state    */
	NOH_RECONCILE_FINISH,          /* noh_reconcile_finish                                                 */
	NOH_RECONCILE_ANSWER,          /* the answer to noh_reconcile_ask: from anybody else refused           */
	NOH_RECONCILE_KINDS
};

/* Outcomes. Other than OK: nothing was changed.
 *
 * APPLY     OK; STALE: a higher revision is known, or this one with the same spec (a retry of what was said is fine);
 *           CONFLICT: this revision is known, with another spec. One that was coalesced is answered empty.
 * OBSERVED  OK; STALE: a snapshot with a higher sequence, or the same, was seen. 0 in all of them: not numbered, each is
 *           newer than those before.
 * TICK      OK; NOT_NOW: an action is under way, or waits for its next attempt, or there is nothing to look after.
 * STOP, DRAIN   OK; STALE: it stops already (or, for DRAIN, drains).
 * RETRY     OK; NOT_NOW: nothing has failed.
 * WAIT      answered when the revision is applied, or a higher one: NOH_OK. If it is given up meanwhile NOH_EFAILED,
 *           if it stops NOH_EGONE, both with the state. Waiting is not durable: after a restart ask again. At most
 *           NOH_RECONCILE_WAITERS at a time, others are refused. */
enum { NOH_RECONCILE_OK, NOH_RECONCILE_STALE, NOH_RECONCILE_CONFLICT, NOH_RECONCILE_NOT_NOW };
#define NOH_RECONCILE_WAITERS 1024

typedef struct noh_reconcile_answer {
	uint32_t outcome;
	uint32_t phase;                /* noh_phase, after this message                            */
	uint64_t revision, applied;
} noh_reconcile_answer;

typedef struct noh_reconcile_state {
	uint64_t revision, applied;
	uint64_t passes;               /* that had something to do: from there to applied, or to a failure */
	uint64_t actions, failed;      /* begun; failed                                            */
	uint64_t next_ms;              /* wall clock of its next pass or attempt; 0: none is set   */
	uint32_t phase, goal;
	uint32_t failures;             /* in a row                                                 */
	uint32_t action;               /* code of the one under way; NOH_ACTION_NONE               */
	char     error[NOH_RECONCILE_ERROR];   /* of the last failure; "": it went well since      */
} noh_reconcile_state;
#define NOH_ACTION_NONE (UINT32_MAX - 1)

/* The first entries of a table of kinds with others behind them:
 *
 *	enum { ENSURE = NOH_RECONCILE_KINDS, KINDS };
 *	static const noh_kind kinds[KINDS] = { NOH_RECONCILE_TABLE, [ENSURE] = { .name = "ensure" } };
 */
NOH_API void noh_reconcile_coalesce(const void *body, size_t len, uint64_t *key, uint64_t *revision);
#define NOH_RECONCILE_TABLE                                                                                \
	[NOH_RECONCILE_APPLY] = { .name = "apply", .flags = NOH_KIND_COALESCE, .coalesce = noh_reconcile_coalesce }, \
	[NOH_RECONCILE_OBSERVED] = { .name = "observed" },                                                 \
	[NOH_RECONCILE_TICK] = { .name = "tick" },                                                         \
	[NOH_RECONCILE_STOP] = { .name = "stop" },                                                         \
	[NOH_RECONCILE_DRAIN] = { .name = "drain" },                                                       \
	[NOH_RECONCILE_RETRY] = { .name = "retry" },                                                       \
	[NOH_RECONCILE_WAIT] = { .name = "wait" },                                                         \
	[NOH_RECONCILE_STATE] = { .name = "state", .flags = NOH_KIND_READ },                               \
	[NOH_RECONCILE_FINISH] = { .name = "finish" },                                                     \
	[NOH_RECONCILE_ANSWER] = { .name = "answer" }

#ifdef __cplusplus
}
#endif
#endif
