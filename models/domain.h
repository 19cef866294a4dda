/* models/domain.h - the molecules a model was trained on, as far as its file keeps them.
 *
 * A prediction is worth more the more the molecule is like some of them. In the file (models/model_file.h) one tensor:
 *
 *   domain.zlib  U8 [bytes]  uint32 n, little-endian; then n fingerprints of 256 bytes (bit k of chem/fingerprint.h is bit k % 8
 *                            of byte k / 8) and n InChIKeys of 27 letters (zeros where InChI gives none), in ascending order of
 *                            these, as one zlib stream
 *
 * which is about 40 bytes a molecule. Files of earlier versions have domain.fingerprint U8 [n,256] and domain.inchikey U8 [n,27]. */
#ifndef NN_DOMAIN_H
#define NN_DOMAIN_H

#include <stdbool.h>

#include "chem/fingerprint.h"
#include "models/safetensors.h"

enum { NN_DOMAIN_KEY = 27, NN_DOMAIN_TENSORS = 1, NN_DOMAIN_MAX = 1000000 };

typedef struct nn_domain_molecule {
    ch_fingerprint print;
    char key[NN_DOMAIN_KEY + 1]; /* InChIKey or "" */
} nn_domain_molecule;

typedef struct nn_domain {
    int32_t n;                             /* 0: the file tells nothing     */
    const ch_fingerprint *print;           /* [n] in ascending order of key */
    const ch_folds *folds;                 /* of each                       */
    const char (*key)[NN_DOMAIN_KEY + 1];  /* [n]                           */
} nn_domain;

/* Sorts them; the same for any order. In mem. ENOMEM. */
pl_code nn_domain_make(nn_domain *out, nn_domain_molecule *molecule, int32_t n, pl_arena *mem, pl_error *err);

/* Whether a tensor of a model file is one of these. */
bool nn_domain_has(const char *tensor);

/* From the tensors of a file, in mem; n = 0 without them. EDATA says what is wrong with them. */
pl_code nn_domain_take(nn_domain *out, const nn_tensors *all, pl_arena *mem, pl_error *err);

/* The tensors of d, which has molecules, for a file: data in mem. ENOMEM. */
pl_code nn_domain_tensors(nn_tensor out[NN_DOMAIN_TENSORS], const nn_domain *d, pl_arena *mem, pl_error *err);

/* The nearest molecule of d. */
typedef struct nn_near {
    double alike;    /* Tanimoto, 0 to 1; NaN without a domain              */
    const char *key; /* of several the smallest; NULL without a domain      */
} nn_near;

/* For each of to[n], which are many at once: a part of d stays near while all are held against it. */
void nn_domain_nearest(nn_near *out, const nn_domain *d, const ch_fingerprint *to, int32_t n);

bool nn_domain_same(const nn_domain *a, const nn_domain *b);

#endif
