/* models/domain/packed.h - rows of equal size in one compressed tensor; used by models/domain/domain.c and models/domain/seen.c only.
 *
 * The tensor is U8 [bytes]: uint32 n, little-endian; then `extra` bytes as they are; then n rows as one zlib stream. */
#ifndef NN_PACKED_H
#define NN_PACKED_H

#include "models/tensors/safetensors.h"

typedef struct nn_packed {
    const char *name; /* of the tensor                   */
    int32_t row, max; /* bytes of a row; rows at most    */
    int32_t extra;    /* bytes between n and the stream  */
} nn_packed;

/* The tensor of n rows, in mem. ENOMEM. */
pl_code nn_packed_tensor(nn_tensor *out, const nn_packed *p, const void *extra, const void *rows, int32_t n, pl_arena *mem,
                         pl_error *err);

/* *rows: those of a tensor, for free(); *extra: in the tensor. EDATA says what is wrong with it; then *rows is NULL. */
pl_code nn_packed_take(void **rows, const void **extra, int32_t *n, const nn_packed *p, const nn_tensor *t, pl_error *err);

#endif
