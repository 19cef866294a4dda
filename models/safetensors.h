/* models/safetensors.h - named tensors in one file that any tool can open and
 * that cannot execute anything.
 *
 * 8 bytes little-endian header length, a JSON header, raw little-endian data
 * (https://github.com/huggingface/safetensors). Written files keep every tensor
 * naturally aligned without holes: wide types first. A file that is read is not
 * trusted: every offset, size and shape is checked against the bytes there are,
 * and what is wrong is PL_EDATA with a sentence.
 *
 * Written files carry a checksum of themselves: the metadata string `sha256` is the SHA-256 of the whole file in which
 * these 64 digits are '0'. It is verified whenever a file that has it is read; files of other programs have none. */
#ifndef NN_SAFETENSORS_H
#define NN_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/file.h"

typedef enum nn_dtype { NN_F64, NN_I64, NN_F32, NN_I32, NN_BF16, NN_U8, NN_DTYPES } nn_dtype;

enum { NN_TENSOR_DIMS = 8 };

typedef struct nn_tensor {
    const char *name;
    nn_dtype dtype;
    int n_dims;
    int64_t dims[NN_TENSOR_DIMS];
    size_t count;     /* product of dims; 1 when n_dims = 0                     */
    const void *data; /* borrowed; in a foreign file perhaps not aligned: read
                         through nn_tensor_floats and its sisters               */
} nn_tensor;

typedef struct nn_meta {
    const char *key, *value;
} nn_meta;

typedef struct nn_tensors {
    int n, n_meta;
    const nn_tensor *t;
    const nn_meta *meta; /* the strings of __metadata__ */
    bool verified;       /* the file has a checksum, and it holds; read only */
} nn_tensors;

size_t nn_dtype_bytes(nn_dtype type);
const char *nn_dtype_name(nn_dtype type); /* "F32" */

/* The file and everything found in it live in mem. */
pl_code nn_tensors_read(nn_tensors **out, const char *path, pl_arena *mem, pl_error *err);
/* The same for bytes already in memory, which must outlive the result. */
pl_code nn_tensors_parse(nn_tensors **out, pl_bytes file, pl_arena *mem, pl_error *err);

const nn_tensor *nn_tensors_find(const nn_tensors *all, const char *name); /* or NULL */
const char *nn_tensors_meta(const nn_tensors *all, const char *key);       /* or NULL */

/* All `n` numbers of t; PL_EDATA when t has another count or a type that does
 * not convert (F64 rounds to float, BF16 widens; I32 and U8 widen to int64). */
pl_code nn_tensor_floats(float *out, size_t n, const nn_tensor *t, pl_error *err);
pl_code nn_tensor_doubles(double *out, size_t n, const nn_tensor *t, pl_error *err);
pl_code nn_tensor_ints(int64_t *out, size_t n, const nn_tensor *t, pl_error *err);

/* Old file or new file, never half. Fields used: name, dtype, dims, data, metadata. */
pl_code nn_tensors_write(const char *path, const nn_tensors *what, pl_error *err);

#endif
