/* models/domain/seen.h - molecules that a model has met in its making without being trained on them.
 *
 * The validation molecules chose its best epoch, and a model that started from another one inherits what that one was trained on and
 * validated with. Errors on such molecules are too small, so they neither calibrate nor count as new. The model file stores the first
 * block of their InChIKeys, which knows neither stereo nor isotopes:
 *
 *   seen.zlib  U8 [bytes]  uint32 n, little-endian; a byte: 1 if these are all, 0 if there are others; then n blocks of 14 letters in
 *                          ascending order, each once, as one zlib stream
 *
 * Files of earlier versions have no such tensor: which molecules they met is not known. */
#ifndef NN_SEEN_H
#define NN_SEEN_H

#include <stdbool.h>

#include "models/tensors/safetensors.h"

enum { NN_SEEN_KEY = 14, NN_SEEN_TENSORS = 1, NN_SEEN_MAX = 4000000 };

typedef struct nn_seen {
    bool known; /* the file has the tensor          */
    bool all;   /* no other molecules were met      */
    int32_t n;
    const char (*key)[NN_SEEN_KEY + 1]; /* [n] in ascending order */
} nn_seen;

/* Makes *out, in mem, from n InChIKeys or first blocks of them; sorts key[]. Of more than `most` different ones it keeps the first, and
 * an empty key cannot be kept: then out->all is false, else `all`. ENOMEM. */
pl_code nn_seen_make(nn_seen *out, char (*key)[NN_SEEN_KEY + 1], int64_t n, int64_t max, bool all, pl_arena *mem, pl_error *err);

bool nn_seen_has(const nn_seen *s, const char *inchikey); /* whether the molecule is among them */
bool nn_seen_same(const nn_seen *a, const nn_seen *b);

/* Whether the tensor with this name holds them. */
bool nn_seen_is(const char *tensor);
/* Reads them from the tensors of a file, into mem; out->known = false if the file has none. EDATA says what is wrong. */
pl_code nn_seen_take(nn_seen *out, const nn_tensors *all, pl_arena *mem, pl_error *err);
/* The tensor that stores s (s->known) in a file, with its data in mem. ENOMEM. */
pl_code nn_seen_tensor(nn_tensor *out, const nn_seen *s, pl_arena *mem, pl_error *err);

#endif
