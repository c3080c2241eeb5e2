#!/bin/bash
# tests/tsan/ck_shim.sh OUTDIR - CK's headers as ThreadSanitizer can read them.
#
# CK speaks to memory in assembly, or, with CK_USE_CC_BUILTINS, in plain volatile accesses; both
# look like races to ThreadSanitizer. The copies made here turn each CK load into an acquire load
# and each CK store into a release store: the strength x86 gives them anyway. Use
#     -IOUTDIR -DCK_USE_CC_BUILTINS=1 -fsanitize=thread
# OUTDIR then holds ck_pr.h and what it includes by a relative path; the rest is the system's.
#
# libck itself is not instrumented: what it publishes, it publishes unseen. For ck_epoch the shim
# says it aloud (what a reader did before ck_epoch_end has happened before what is reclaimed); a
# pointer that travels through another CK structure needs an order of our own.
set -eu
out=${1:?usage: tests/tsan/ck_shim.sh OUTDIR}
cc=${CC:-cc}

# Where does the compiler find ck_pr.h?
header=$(printf '#include <ck_pr.h>\n' | $cc $(pkg-config --cflags ck 2>/dev/null) -E -x c - |
	sed -n 's/^# [0-9]* "\(.*\/ck_pr\.h\)".*/\1/p' | head -n 1)
[ -n "$header" ] || { echo "ck_shim.sh: no ck_pr.h found; tools/deps.sh installs it" >&2; exit 1; }
inc=$(dirname "$header")

mkdir -p "$out/gcc"
# Not our code: no warnings from it.
copy() { { echo '#pragma GCC system_header'; cat; } > "$2.new" < "$1"; mv "$2.new" "$2"; }
copy "$inc/gcc/ck_f_pr.h" "$out/gcc/ck_f_pr.h"
sed -e 's/r = CK_PR_ACCESS(\*(const T \*)target);/__atomic_load((const T *)target, \&r, __ATOMIC_ACQUIRE);/' \
    -e 's/CK_PR_ACCESS(\*(T \*)target) = v;/__atomic_store((T *)target, \&v, __ATOMIC_RELEASE);/' \
    -e 's/r = CK_CC_DECONST_PTR(\*(volatile void \*const\*)(target));/r = __atomic_load_n((void *const *)target, __ATOMIC_ACQUIRE);/' \
    -e 's/\*(volatile void \*\*)target = CK_CC_DECONST_PTR(v);/__atomic_store_n((void **)target, (void *)(uintptr_t)v, __ATOMIC_RELEASE);/' \
    "$inc/gcc/ck_pr.h" > "$out/gcc/ck_pr.h.sed"
copy "$out/gcc/ck_pr.h.sed" "$out/gcc/ck_pr.h"
rm "$out/gcc/ck_pr.h.sed"

# Another version of CK may be worded differently: better no shim than half of one.
for want in '__atomic_load(' '__atomic_store(' '__atomic_load_n(' '__atomic_store_n('; do
	grep -qF "$want" "$out/gcc/ck_pr.h" || {
		echo "ck_shim.sh: $inc/gcc/ck_pr.h is worded in a new way; $want found no place" >&2
		exit 1
	}
done
cat > "$out/ck_epoch.h" <<'END'
#pragma GCC system_header
#ifndef SHIM_CK_EPOCH_H
#define SHIM_CK_EPOCH_H
#include_next <ck_epoch.h>

void __tsan_acquire(void *);
void __tsan_release(void *);

static inline bool shim_epoch_end(ck_epoch_record_t *r, ck_epoch_section_t *s)
{
	__tsan_release(r->global);
	return ck_epoch_end(r, s);
}
static inline bool shim_epoch_poll(ck_epoch_record_t *r)
{
	ck_stack_t due = CK_STACK_INITIALIZER;
	ck_stack_entry_t *at, *next;
	bool moved = ck_epoch_poll_deferred(r, &due);

	__tsan_acquire(r->global);
	CK_STACK_FOREACH_SAFE(&due, at, next) {
		ck_epoch_entry_t *e = (ck_epoch_entry_t *)(void *)
			((char *)at - offsetof(ck_epoch_entry_t, stack_entry));
		e->function(e);
	}
	return moved;
}
static inline void shim_epoch_synchronize(ck_epoch_record_t *r)
{
	ck_epoch_synchronize(r);
	__tsan_acquire(r->global);
}
static inline void shim_epoch_barrier(ck_epoch_record_t *r)
{
	shim_epoch_synchronize(r);
	ck_epoch_reclaim(r);
}
#define ck_epoch_end shim_epoch_end
#define ck_epoch_poll shim_epoch_poll
#define ck_epoch_synchronize shim_epoch_synchronize
#define ck_epoch_barrier shim_epoch_barrier
#endif
END
copy "$inc/ck_pr.h" "$out/ck_pr.h"   # last: make takes it as the sign that all is there
