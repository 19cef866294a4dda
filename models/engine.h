/* models/engine.h - one way to compute a model: ref or cpu (later cuda).
 *
 * An engine owns its workspace, grows it as needed and never allocates in a
 * step once it has seen the largest batch. Forward overwrites, backward adds.
 * Results do not depend on the number of threads: molecules and reductions are
 * cut in fixed pieces and summed in a fixed order. Not for use by two threads
 * at once. */
#ifndef NN_ENGINE_H
#define NN_ENGINE_H

#include "models/batch.h"
#include "models/se3.h"

typedef struct nn_engine nn_engine;

typedef struct nn_engine_kind {
    const char *name, *help;       /* "ref", "cpu"                                   */
    pl_code (*open)(nn_engine **out, const nn_se3 *model, int threads, pl_error *err);
    void (*close)(nn_engine *e);   /* NULL is fine                                   */

    /* Tells the engine that the parameters changed (refolds weights). */
    pl_code (*set_params)(nn_engine *e, const float *params, pl_error *err);

    /* y [n_graphs][outputs]. keep: remember what backward needs. */
    pl_code (*forward)(nn_engine *e, const nn_batch *in, bool keep, float *y, pl_error *err);

    /* For the batch of the last forward with keep. dy [n_graphs][outputs];
     * grad [n_floats] is ADDED to. */
    pl_code (*backward)(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err);

    size_t (*workspace_bytes)(const nn_engine *e); /* high-water mark               */
} nn_engine_kind;

extern const nn_engine_kind nn_engine_ref; /* plain loops in double, float at the door: the oracle */
extern const nn_engine_kind nn_engine_cpu; /* edge frame, pair sharing, threads                    */
extern const nn_engine_kind *const nn_engines[]; /* NULL-terminated */

#endif
