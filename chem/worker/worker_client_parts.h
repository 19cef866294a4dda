/* chem/worker/worker_client_parts.h - what the sources of the worker's client share. */
#ifndef CH_WORKER_CLIENT_PARTS_H
#define CH_WORKER_CLIENT_PARTS_H

#include <limits.h>

#include "chem/worker/request_queue.h"
#include "chem/worker/worker_client.h"

struct ch_worker {
    char program[PATH_MAX];
    ch_link link;
    bool tested, tested_builder;
    ch_worker_info info;
    pl_arena *scratch;
};

/* Runs the child's self-test before the first real request, and with `builds` before its first structure. Without it, a missing
 * data table of Open Babel would look like bad molecules. */
pl_code ch_worker_test(ch_worker *w, bool builds, pl_error *err);

#endif
