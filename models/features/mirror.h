/* models/features/mirror.h - makes the mirror images of the molecules of a batch.
 *
 * A network of parity `both` (models/network/se3.h) gives mirror images different outputs; the mean over a molecule
 * and its mirror image is the same for both. The image is made by inversion (x, y, z -> -x, -y, -z), which is a
 * reflection and a half turn. Stored frames become those of the reverse edge (nn_frame_reverse in models/network/frame.h). */
#ifndef NN_MIRROR_H
#define NN_MIRROR_H

#include "models/features/batch.h"
#include "models/network/se3.h"
#include "pipeline/base/error.h"

/* Settings score.mirror and evaluate.mirror. */
typedef enum nn_mirror_mode { NN_MIRROR_AS_IS, NN_MIRROR_AVERAGE } nn_mirror_mode;

/* Whether averaging can change outputs: not with natural parity, and not if the model has degree 0 only. */
static inline bool nn_mirror_wanted(nn_mirror_mode mode, const nn_se3_conf *conf)
{
    return mode == NN_MIRROR_AVERAGE && conf->parity == NN_PARITY_BOTH && conf->degrees > 1;
}

/* Owns vectors and frames of the last image and reuses them. One per thread. */
typedef struct nn_mirror nn_mirror;

nn_mirror *nn_mirror_new(void);    /* NULL: no memory   */
void nn_mirror_free(nn_mirror *m); /* NULL is fine      */

/* out: `in` with its vectors and stored frames inverted; everything else is borrowed from `in`.
 * Valid until the next call. ENOMEM. */
pl_code nn_mirror_batch(nn_mirror *m, nn_batch *out, const nn_batch *in, pl_error *err);

#endif
