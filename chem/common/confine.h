/* chem/common/confine.h - restricts this process before it reads untrusted input.
 * SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only (the worker and its test use it)
 *
 * Permanent, for this process and all that it forks: no new privileges, files
 * cannot grow, and if the kernel supports them
 *   calls   a seccomp filter: only the system calls for reading, computing, forking
 *           and answering; no socket, no exec, no opening for writing, no signal to
 *           another process. Other calls fail with ENOSYS, as on a kernel that lacks them.
 *   files   Landlock: only files in the given folders can be opened, for
 *           reading; from its version 4 no TCP, from 6 no signals to others.
 * Allocates nothing, because the layout of the worker's heap can affect its results. */
#ifndef CH_CONFINE_H
#define CH_CONFINE_H

#ifdef __cplusplus
extern "C" {
#endif

enum ch_confined { CH_CONFINED_GROWTH = 1, CH_CONFINED_CALLS = 2, CH_CONFINED_FILES = 4, CH_CONFINED_ALL = 7 };

/* folders ends with NULL; folders that do not exist are skipped. Returns the sum of the ch_confined in force. */
int ch_confine(const char *const *folders);

#ifdef __cplusplus
}
#endif

#endif
