/* models/cpu/buf.h - a buffer that grows when needed and never shrinks. */
#ifndef NN_CPU_BUF_H
#define NN_CPU_BUF_H

#include <stdbool.h>
#include <stddef.h>

typedef struct nn_buf {
    void *p;
    size_t bytes;
} nn_buf;

/* Room for n items of `size` bytes. If the buffer must grow, its contents are lost and all bytes are zero.
 * false: no memory. */
bool nn_buf_grow(nn_buf *b, size_t n, size_t size);
void nn_buf_free(nn_buf *b);

#endif
