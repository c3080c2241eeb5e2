/* core/thread.h - what a thread asks of the kernel's scheduler. */
#ifndef NOH_CORE_THREAD_H
#define NOH_CORE_THREAD_H

#include <stdbool.h>

/* true: from now on the calling thread, when woken, waits until whoever runs on that core sleeps, and does not stop him in
 * the middle of his work; its share of the core stays as it was. false: as before. Where an administrator has chosen a policy (real
 * time, idle), and where the system does not allow it, nothing changes. */
void thread_gives_way(bool does);

#endif
