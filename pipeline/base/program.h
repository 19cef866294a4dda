/* pipeline/base/program.h - runs a program of the user's, within limits.
 *
 * The program is not confined: it may read and write what the user may. It is bounded in time, memory, processor time,
 * the size of each file and of its folder. It has a process group of its own, which ends with it: what it started and left is killed,
 * unless that made a group or session of its own. There is no shell. Any number of threads may run programs. If this process ends, even
 * by KILL, the program and its group are killed as well (pipeline/base/program_guard.h). */
#ifndef PL_BASE_PROGRAM_H
#define PL_BASE_PROGRAM_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "pipeline/base/error.h"

typedef struct pl_program {
    const char *path;                       /* of the program, with a slash: no search in PATH */
    char *const *argv;                      /* NULL-terminated; argv[0] too                    */
    char *const *env;                       /* NULL-terminated, "NAME=value"                   */
    const char *dir;                        /* its working directory                           */
    double timeout_s;                       /* on the wall                                     */
    size_t cpu_s, memory_bytes, file_bytes; /* of each process; 0: no limit */
    double dir_bytes;                       /* of all files in dir, looked at twice a second; 0: no limit */
} pl_program;

typedef enum pl_program_end { PL_PROGRAM_EXITED, PL_PROGRAM_SIGNALLED, PL_PROGRAM_TIMEOUT, PL_PROGRAM_FULL } pl_program_end;

enum { PL_PROGRAM_LAST = 1024 };

typedef struct pl_program_result {
    pl_program_end end;             /* TIMEOUT: killed after timeout_s; FULL: killed for dir_bytes              */
    int status;                     /* exit status, or number of the signal                            */
    char *out;                      /* the caller's: the first `size` bytes of stdout, not terminated; may be NULL if size is 0 */
    size_t size, n_out;             /* size: set by the caller; n_out: bytes of out that are filled    */
    bool cut;                       /* stdout was longer than size                                     */
    char last[PL_PROGRAM_LAST + 1]; /* the last bytes of stdout and stderr as they came, terminated    */
    size_t n_last;
} pl_program_result;

/* Runs the program and waits for it. A program that fails is a result, no error. PL_EIO: it could not be started.
 * PL_ESTOP: *stop (may be NULL) became other than 0; the program was killed. */
pl_code pl_program_run(const pl_program *p, const atomic_int *stop, pl_program_result *r, pl_error *err);

#endif
