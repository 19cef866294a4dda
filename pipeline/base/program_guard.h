/* pipeline/base/program_guard.h - a small process that ends what programs of the user's have started, if this process is killed.
 *
 * The kernel kills a program when the thread that runs it dies, but not the programs that it started. One process, forked with the
 * first program, is told of each process group. When this process ends, by KILL too, it kills the groups that are left, and
 * ends. It holds no file, no lock and no output of this process. Any thread. Where no process can be forked nothing is guarded. */
#ifndef PL_PROGRAM_GUARD_H
#define PL_PROGRAM_GUARD_H

#include <sys/types.h>

/* The descriptor to tell it by, for the program's process between fork and exec; -1: there is no guard. */
int pl_guard_begin(void);
/* Called by the new process itself, which is the first of its group. Only async-signal-safe calls. */
void pl_guard_add(int guard);
/* The group has been killed, and its first process has not been reaped. */
void pl_guard_remove(pid_t group);

#endif
