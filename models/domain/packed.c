/* SPDX-License-Identifier: Apache-2.0 */
#include "models/domain/packed.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { COUNT_BYTES = 4, SHRINKS_MAX = 1032 /* by zlib, at most */ };

pl_code nn_packed_tensor(nn_tensor *out, const nn_packed *p, const void *extra, const void *rows, int32_t n, pl_arena *mem,
                         pl_error *err)
{
    static const char nothing[1];
    const size_t size = (size_t)n * (size_t)p->row, head = COUNT_BYTES + (size_t)p->extra;
    uLongf packed = compressBound((uLong)size);
    unsigned char *to = PL_NEW(mem, unsigned char, packed + head);

    if (to == NULL)
        return pl_fail(err, PL_ENOMEM, "tensor %s, %d molecules", p->name, (int)n);
    for (int k = 0; k < COUNT_BYTES; k++)
        to[k] = (unsigned char)((uint32_t)n >> (8 * k));
    if (p->extra > 0)
        memcpy(to + COUNT_BYTES, extra, (size_t)p->extra);
    if (compress2(to + head, &packed, n > 0 ? rows : nothing, (uLong)size, Z_BEST_COMPRESSION) != Z_OK)
        return pl_fail(err, PL_ENOMEM, "tensor %s, %d molecules", p->name, (int)n);
    *out = (nn_tensor){
        .name = p->name, .dtype = NN_U8, .n_dims = 1, .dims = { (int64_t)(packed + head) }, .count = packed + head, .data = to
    };
    return PL_OK;
}

/* How many rows a tensor says it has; -1: more than its bytes can hold. */
static int64_t count_of(const nn_packed *p, const nn_tensor *t)
{
    const unsigned char *b = t->data;
    int64_t n;

    if (t->dtype != NN_U8 || t->n_dims != 1 || t->dims[0] < COUNT_BYTES + p->extra)
        return -1;
    n = (int64_t)b[0] | (int64_t)b[1] << 8 | (int64_t)b[2] << 16 | (int64_t)b[3] << 24;
    return n > p->max || n * p->row > SHRINKS_MAX * t->dims[0] ? -1 : n;
}

pl_code nn_packed_take(void **rows, const void **extra, int32_t *n, const nn_packed *p, const nn_tensor *t, pl_error *err)
{
    const int64_t count = count_of(p, t), head = COUNT_BYTES + p->extra;
    uLongf size = count > 0 ? (uLongf)(count * p->row) : 0;
    const unsigned char *b = t->data;

    *rows = NULL;
    if (count < 0)
        return pl_fail(err, PL_EDATA, "tensor %s is not U8 with a number of molecules", p->name);
    *rows = malloc(size + 1);
    if (*rows == NULL)
        return pl_fail(err, PL_ENOMEM, "tensor %s, %lld molecules", p->name, (long long)count);
    if (uncompress(*rows, &size, b + head, (uLong)(t->dims[0] - head)) != Z_OK || size != (uLongf)(count * p->row)) {
        free(*rows);
        *rows = NULL;
        return pl_fail(err, PL_EDATA, "tensor %s is damaged: it does not hold %lld molecules", p->name, (long long)count);
    }
    *extra = b + COUNT_BYTES;
    *n = (int32_t)count;
    return PL_OK;
}
