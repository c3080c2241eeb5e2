/* core/epoch.h - when may memory be freed that others read without a lock?
 *
 * What was reachable inside an epoch section is not freed before the section ends. Sections may be nested.
 * defer: call fn after every section that is open now. poll: do so where it is time.
 *
 * Owns     nothing: a record belongs to whoever registered it.
 * Threads  a record is used by one thread at a time.
 */
#ifndef NOH_CORE_EPOCH_H
#define NOH_CORE_EPOCH_H

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif
#include <ck_epoch.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

typedef void epoch_fn(ck_epoch_entry_t *e);
void epoch_enter(ck_epoch_record_t *r);
void epoch_leave(ck_epoch_record_t *r);
void epoch_defer(ck_epoch_record_t *r, ck_epoch_entry_t *e, epoch_fn *fn);
void epoch_poll(ck_epoch_record_t *r);
void epoch_synchronize_all(ck_epoch_record_t *r);   /* ... and do all that was deferred */

#endif
