/* models/domain/domain.h - the applicability domain: fingerprints of the molecules that a model was trained on.
 *
 * Predictions are more reliable for molecules that are similar to training molecules. The model file
 * (models/files/model_file.h) stores them as one tensor:
 *
 *   domain.zlib  U8 [bytes]  uint32 n, little-endian; then n fingerprints of 256 bytes (bit k of chem/fingerprint/fingerprint.h is bit k % 8
 *                            of byte k / 8) and n InChIKeys of 27 letters (zeros where InChI gives none), in ascending order of
 *                            these, as one zlib stream
 *
 *   domain.value F32 [n, targets]  in files of families, and where training molecules lack targets: what was measured of each of these, in the
 *                                  order above; NaN: nothing
 *
 * which is about 40 bytes a molecule. Files of earlier versions have domain.fingerprint U8 [n,256] and domain.inchikey U8 [n,27]. */
#ifndef NN_DOMAIN_H
#define NN_DOMAIN_H

#include <stdbool.h>

#include "chem/fingerprint/fingerprint.h"
#include "models/tensors/safetensors.h"

enum { NN_DOMAIN_KEY = 27, NN_DOMAIN_TENSORS = 2, NN_DOMAIN_MAX = 1000000 };

typedef struct nn_domain_molecule {
    ch_fingerprint print;
    char key[NN_DOMAIN_KEY + 1]; /* InChIKey or "" */
    int64_t at;                  /* the caller's   */
} nn_domain_molecule;

typedef struct nn_domain {
    int32_t n;                            /* molecules; 0: not in the file */
    const ch_fingerprint *print;          /* [n] in ascending order of key */
    const ch_folds *folds;                /* of each                       */
    const char (*key)[NN_DOMAIN_KEY + 1]; /* [n]                           */
    int32_t n_values;
    const float *value;         /* [n][n_values] measured, NaN: not; NULL: not in the file */
    const uint8_t *const *only; /* [n_values] those that have a value (ch_among), NULL: all have; NULL with value */
} nn_domain;

/* Makes *out, in mem, from n molecules, without values; sorts molecule[]. The result does not depend on their order. ENOMEM. */
pl_code nn_domain_make(nn_domain *out, nn_domain_molecule *molecule, int32_t n, pl_arena *mem, pl_error *err);

/* Puts the values [n][n_values], in mem, of the molecules into d. ENOMEM. */
pl_code nn_domain_measured(nn_domain *d, const float *value, int32_t n_values, pl_arena *mem, pl_error *err);

/* The molecules of d that have target k; all where the file does not tell. */
ch_among nn_domain_of(const nn_domain *d, int32_t k);

/* Whether the tensor with this name belongs to the domain. */
bool nn_domain_has(const char *tensor);

/* Reads the domain from the tensors of a file, into mem; out->n = 0 if the file has none. targets: how many the model has. EDATA says what is wrong. */
pl_code nn_domain_take(nn_domain *out, const nn_tensors *all, int32_t targets, pl_arena *mem, pl_error *err);

/* The *n tensors that store d (d->n > 0) in a file, with their data in mem or borrowed. ENOMEM. */
pl_code nn_domain_tensors(nn_tensor out[NN_DOMAIN_TENSORS], int *n, const nn_domain *d, pl_arena *mem, pl_error *err);

/* The nearest training molecule. */
typedef struct nn_near {
    double alike;    /* Tanimoto similarity, 0 to 1; NaN: no molecule has the target */
    const char *key; /* its InChIKey; of several equally near the smallest; NULL: as above */
} nn_near;

/* out[k]: the nearest molecule of d that has the target for fingerprint to[k], k = 0..n-1. Call it with many fingerprints at once:
 * each block of d is compared with all of them while it is in the cache. */
void nn_domain_nearest(nn_near *out, const nn_domain *d, int32_t target, const ch_fingerprint *to, int32_t n);

/* The key of d that is this InChIKey, if that molecule has the target; else NULL. It is as near as any other to its own fingerprint. */
const char *nn_domain_own(const nn_domain *d, int32_t target, const char *inchikey);

/* Whether the domain has a molecule with the first block of this InChIKey: the same atoms and bonds, stereo and isotopes apart. */
bool nn_domain_knows(const nn_domain *d, const char *inchikey);

bool nn_domain_same(const nn_domain *a, const nn_domain *b); /* equal molecules in equal order */
/* Whether the same of these equal molecules have target k of a and target j of b. */
bool nn_domain_same_of(const nn_domain *a, int32_t k, const nn_domain *b, int32_t j);

#endif
