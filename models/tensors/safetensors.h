/* models/tensors/safetensors.h - reads and writes named tensors in a safetensors file.
 *
 * Format: 8 bytes little-endian header length, a JSON header, raw little-endian data
 * (https://github.com/huggingface/safetensors). It cannot contain executable code. The
 * writer aligns every tensor to its type without padding: wide types come first. The reader
 * checks every offset, size and shape against the size of the file; PL_EDATA says what is
 * wrong.
 *
 * Written files contain a checksum: the metadata string `sha256` is the SHA-256 of the whole file with these 64 digits
 * replaced by '0'. It is verified whenever a file that has it is read; files of other programs have none. */
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
    const void *data; /* borrowed; may be unaligned in files of other programs: read it
                         with nn_tensor_floats, _doubles or _ints               */
} nn_tensor;

typedef struct nn_meta {
    const char *key, *value;
} nn_meta;

typedef struct nn_tensors {
    int n, n_meta;
    const nn_tensor *t;
    const nn_meta *meta; /* the strings of __metadata__ */
    bool verified;       /* the file has a checksum and it matches; read only */
} nn_tensors;

size_t nn_dtype_bytes(nn_dtype type);
const char *nn_dtype_name(nn_dtype type); /* "F32" */

/* Reads a file; its bytes and the result are in mem. EIO, EDATA. */
pl_code nn_tensors_read(nn_tensors **out, const char *path, pl_arena *mem, pl_error *err);
/* The same for the bytes of a file in memory; they must outlive the result. */
pl_code nn_tensors_parse(nn_tensors **out, pl_bytes file, pl_arena *mem, pl_error *err);

const nn_tensor *nn_tensors_find(const nn_tensors *all, const char *name); /* or NULL */
const char *nn_tensors_meta(const nn_tensors *all, const char *key);       /* or NULL */

/* Copies all n numbers of t to out. PL_EDATA: t does not have n numbers, or its type
 * cannot be converted (F64 is rounded to float, BF16 widened; I32 and U8 widened to int64). */
pl_code nn_tensor_floats(float *out, size_t n, const nn_tensor *t, pl_error *err);
pl_code nn_tensor_doubles(double *out, size_t n, const nn_tensor *t, pl_error *err);
pl_code nn_tensor_ints(int64_t *out, size_t n, const nn_tensor *t, pl_error *err);

/* Writes a file; the file at path is replaced at once, so it is never incomplete. Fields used: name, dtype, dims,
 * data, metadata. */
pl_code nn_tensors_write(const char *path, const nn_tensors *what, pl_error *err);

#endif
