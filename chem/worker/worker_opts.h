/* chem/worker/worker_opts.h - the limits of a chemistry worker, and where its program is. */
#ifndef CH_WORKER_OPTS_H
#define CH_WORKER_OPTS_H

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>

#include "pipeline/base/error.h"

typedef struct ch_worker_opts {
    const char *program;    /* NULL: beside this program (library), else $MOLSIEVE_CHEM, else PATH    */
    double cpu_first_s;     /* 0: 2                                                         */
    double cpu_retry_s;     /* 0: 30                                                        */
    double wall_slack_s;    /* 0: 20; a worker may be idle for this plus 4 times the budget */
    size_t memory_bytes;    /* 0: 2 GiB; address space of the child                         */
    const atomic_int *stop; /* non-zero ends every call with ESTOP; NULL: none      */
} ch_worker_opts;

/* Fills path with the program that `program` (ch_worker_opts.program, borrowed) means; it can be executed. ECONFIG: there is none. */
pl_code ch_worker_find(char path[PATH_MAX], const char *program, pl_error *err);
/* The same options with the defaults in place of zeros; opts NULL: all defaults. */
ch_worker_opts ch_worker_opts_complete(const ch_worker_opts *opts);

#endif
