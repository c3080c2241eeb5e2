/* core/must.h - what we rely on, and what must never be. Stays on in release builds. */
#ifndef NOH_CORE_MUST_H
#define NOH_CORE_MUST_H

#include <stdnoreturn.h>

noreturn void must_fail(const char *what, const char *file, int line);

#define must(claim) (__builtin_expect(!!(claim), 1) ? (void)0 : must_fail(#claim, __FILE__, __LINE__))

/* Only where the bench shows the cost: on in sanitizer builds and in the interleaving checks. */
#ifdef NOH_SANITIZED
#define must_debug(claim) must(claim)
#else
#define must_debug(claim) ((void)0)
#endif

#endif
