/* models/comm/tcp/tcp_wire.h - messages between rank 0 and every other rank, with timeouts.
 *
 * The topology is a star: rank 0 has a connection to each other rank. While one connection
 * is waited for, the others are watched too: a process that ends closes its connection, which
 * is noticed at once. A message has a kind and a length; an unexpected message is EBUG. All
 * ranks are the same program on the same kind of processor, so bytes are sent without
 * conversion. */
#ifndef NN_TCP_WIRE_H
#define NN_TCP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

enum { NN_WIRE_HELLO = 0x6d6f6c31, NN_WIRE_WELCOME, NN_WIRE_REFUSED, NN_WIRE_START, NN_WIRE_DATA, NN_WIRE_GIVE_UP, NN_WIRE_BYE };

typedef struct nn_wires {
    int rank, size;
    int *fd;         /* [size] by rank; -1: no connection             */
    double patience; /* maximum seconds without a byte; 0: no limit   */
} nn_wires;

/* Every fd is -1. NULL: no memory. */
nn_wires *nn_wires_new(int rank, int size);
/* Closes the connections. NULL is fine. */
void nn_wires_free(nn_wires *w);

/* Sends a message. EDEVICE: the text names the rank that is gone, silent, or has given up. */
pl_code nn_wires_send(nn_wires *w, int to, uint32_t kind, const void *bytes, size_t n, pl_error *err);
/* Receives a message of this kind with exactly n bytes. */
pl_code nn_wires_recv(nn_wires *w, int from, uint32_t kind, void *bytes, size_t n, pl_error *err);
/* From now on poll() reports POLLIN only when a whole message of n bytes has arrived or the connection was closed; n 0: any
 * byte. */
bool nn_wires_whole(int fd, size_t n);
/* Receives a message of any kind with at most `most` bytes; NUL-terminated if it is shorter. */
pl_code nn_wires_any(nn_wires *w, int from, uint32_t *kind, char *bytes, size_t max, pl_error *err);
/* EDEVICE: a connection was closed. Does not wait. */
pl_code nn_wires_watch(nn_wires *w, pl_error *err);
/* Seconds on the monotonic clock. */
double nn_wires_clock(void);

#endif
