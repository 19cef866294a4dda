/* pipeline/base/par.h - threads, as one call.
 *
 * pl_pipe_run: read -> compute -> write over items 0, 1, 2, ...; read and write
 *              run on the calling thread, write strictly in order; compute runs
 *              on the workers. At most `depth` items are in flight, so memory is
 *              bounded and the result does not depend on the number of workers.
 *
 * Of several failures the one with the smallest index is returned. */
#ifndef PL_BASE_PAR_H
#define PL_BASE_PAR_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"

typedef struct pl_pipe {
    void *ctx;
    /* Fills slot `slot` (0..depth-1) with the next item; *more = false at the end. */
    pl_code (*read)(void *ctx, int slot, bool *more, pl_error *err);
    pl_code (*compute)(void *ctx, int worker, int slot, pl_error *err);
    pl_code (*write)(void *ctx, int slot, pl_error *err);
} pl_pipe;

pl_code pl_pipe_run(const pl_pipe *p, int workers, int depth, pl_error *err);

int pl_cpu_count(void); /* processors this process may use (affinity), at least 1 */

#endif
