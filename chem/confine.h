/* chem/confine.h - what a process gives up before it reads the bytes of strangers.
 * SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only (the worker and its test use it)
 *
 * For this process and all that it forks, for ever: no new privileges, files
 * cannot grow, and where the kernel allows it
 *   calls   a seccomp filter: only the system calls of reading, computing, forking
 *           and answering; no socket, no exec, no opening for writing, no signal to
 *           another process. What is not on the list looks as if the kernel did not have it.
 *   files   Landlock: only what lies in the given folders can be opened, for
 *           reading; from its version 4 no TCP, from 6 no signals to others.
 * Nothing is allocated: the worker's heap reaches its results. */
#ifndef CH_CONFINE_H
#define CH_CONFINE_H

#ifdef __cplusplus
extern "C" {
#endif

enum ch_confined { CH_CONFINED_GROWTH = 1, CH_CONFINED_CALLS = 2, CH_CONFINED_FILES = 4, CH_CONFINED_ALL = 7 };

/* Folders end with NULL; one that is not there is left out. Which of ch_confined are in force. */
int ch_confine(const char *const *folders);

#ifdef __cplusplus
}
#endif

#endif
