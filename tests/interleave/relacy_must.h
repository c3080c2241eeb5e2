/* tests/interleave/relacy_must.h - core/must.h under Relacy: a broken promise ends the schedule. */
#ifndef NOH_CORE_MUST_H
#define NOH_CORE_MUST_H

void check_failed(const char *claim, const char *file, int line);
#define must(claim) ((claim) ? (void)0 : check_failed(#claim, __FILE__, __LINE__))
#define must_debug(claim) must(claim)

#endif
