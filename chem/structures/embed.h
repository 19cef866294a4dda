/* chem/structures/embed.h - distance geometry: positions that agree with bounds (Crippen and Havel, Distance Geometry and
 * Molecular Conformation, 1988).
 *
 * Random distances within the bounds become positions in four dimensions through the metric matrix; violations of bounds,
 * chirality and flatness are minimised there, where centres can turn inside out; then the fourth dimension is squeezed out. The
 * result depends on nothing but the bounds, the stream of random numbers and the set of kernels. A ch_embedder serves one thread
 * at a time and any number of attempts; it lives in the arena, and the bounds must live as long. */
#ifndef CH_EMBED_H
#define CH_EMBED_H

#include "chem/structures/bounds.h"
#include "chem/structures/descent.h"
#include "pipeline/base/rng.h"

typedef struct ch_embedder {
    const ch_bounds *bounds;
    const ch_kernels *kernels;
    ch_distance_plan plan;
    float *x, *work, *metric, *basis;
    float *upper, *lower, *packed; /* of one attempt: bounds with the torsions drawn for it */
} ch_embedder;

enum ch_embedding {
    CH_EMBEDDED,
    CH_FAR_FROM_BOUNDS, /* a distance is off by more than 0.5 Angstrom, or all together by too much */
    CH_WRONG_CHIRALITY
};

typedef struct ch_embedded {
    enum ch_embedding what;
    double error, violation; /* of all bounds by the atom; the largest of one distance, Angstrom */
    int32_t n_values;        /* errors computed */
} ch_embedded;

pl_code ch_embedder_make(ch_embedder *out, const ch_bounds *bounds, const ch_kernels *kernels, pl_arena *mem, pl_error *err);

/* One attempt: xyz[n][3]. heat: of the torsions (rotors.h), kcal/mol; 0: they are free. The stream advances. */
ch_embedded ch_embed(float (*xyz)[3], ch_embedder *e, double heat, pl_rng *random);

#endif
