/* models/tcp/wire.h - messages between rank 0 and every other rank, with deadlines.
 *
 * A star: rank 0 has a connection to each, the others have one to rank 0. While one
 * is waited for, the others are watched: a process that ends closes its connection,
 * and that is known at once. A message has a kind and a length; one that is not what
 * was waited for is EBUG. All ranks are the same program on the same kind of
 * processor, so bytes travel as they are. */
#ifndef NN_TCP_WIRE_H
#define NN_TCP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

enum { NN_WIRE_HELLO = 0x6d6f6c31, NN_WIRE_WELCOME, NN_WIRE_REFUSED, NN_WIRE_START, NN_WIRE_DATA, NN_WIRE_GIVE_UP,
       NN_WIRE_BYE };

typedef struct nn_wires {
    int rank, size;
    int *fd;               /* [size] by rank; -1: no connection to that one */
    double patience;       /* seconds without a byte; 0: for ever           */
} nn_wires;

/* NULL when refused. Every fd is -1. */
nn_wires *nn_wires_new(int rank, int size);
/* Closes the connections. NULL is fine. */
void nn_wires_free(nn_wires *w);

/* EDEVICE names the rank that is gone, silent, or has given up. */
pl_code nn_wires_send(nn_wires *w, int to, uint32_t kind, const void *bytes, size_t n, pl_error *err);
/* Exactly n bytes of that kind. */
pl_code nn_wires_recv(nn_wires *w, int from, uint32_t kind, void *bytes, size_t n, pl_error *err);
/* From now on poll() says POLLIN only when a whole message of n bytes, or an end, is there; n 0: any byte. */
bool nn_wires_whole(int fd, size_t n);
/* A message of any kind of at most `most` bytes, NUL-terminated if shorter. */
pl_code nn_wires_any(nn_wires *w, int from, uint32_t *kind, char *bytes, size_t most, pl_error *err);
/* Whether all connections stand; waits for nothing. */
pl_code nn_wires_watch(nn_wires *w, pl_error *err);
/* Seconds on a clock that is never set. */
double nn_wires_clock(void);

#endif
