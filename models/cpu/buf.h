/* models/cpu/buf.h - memory that grows and is kept. */
#ifndef NN_CPU_BUF_H
#define NN_CPU_BUF_H

#include <stdbool.h>
#include <stddef.h>

typedef struct nn_buf {
    void *p;
    size_t bytes;
} nn_buf;

bool nn_buf_grow(nn_buf *b, size_t n, size_t size); /* false when refused; contents are lost; new bytes are zero */
void nn_buf_free(nn_buf *b);

#endif
