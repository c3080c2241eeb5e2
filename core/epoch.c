/* core/epoch.c - epoch sections, by ck_epoch. */
#include "core/epoch.h"

#if defined(__SANITIZE_THREAD__)
#define NOH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NOH_TSAN 1
#endif
#endif
#ifdef NOH_TSAN
/* libck's own half of the protocol is not instrumented: tell ThreadSanitizer what it orders. */
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#define TSAN_ACQUIRE(p) __tsan_acquire(p)
#define TSAN_RELEASE(p) __tsan_release(p)
#else
#define TSAN_ACQUIRE(p) ((void)(p))
#define TSAN_RELEASE(p) ((void)(p))
#endif

void epoch_enter(ck_epoch_record_t *r)
{
	ck_epoch_begin(r, NULL);
}

void epoch_leave(ck_epoch_record_t *r)
{
	TSAN_RELEASE(r->global);
	ck_epoch_end(r, NULL);
}

void epoch_defer(ck_epoch_record_t *r, ck_epoch_entry_t *e, epoch_fn *fn)
{
	ck_epoch_call(r, e, fn);
}

void epoch_poll(ck_epoch_record_t *r)
{
	if (r->n_pending) {
		TSAN_ACQUIRE(r->global);
		(void)ck_epoch_poll(r);
	}
}

void epoch_synchronize_all(ck_epoch_record_t *r)
{
	TSAN_ACQUIRE(r->global);
	ck_epoch_barrier(r);
}
