/* models/comm/tcp/meet.h - connects the ranks of one start over TCP.
 *
 * Rank 0 listens, the other ranks connect to it. They get its address from the launcher (host and
 * port), or from a file in a directory that all ranks see. Rank 0 writes this file under a temporary name
 * and renames it; it contains the name of the run, all addresses of rank 0's machine and a random
 * key, and is removed when all ranks are connected. A file left by an earlier start is ignored: it
 * names another run, or no process answers there, or the process that answers has another key. */
#ifndef NN_TCP_MEET_H
#define NN_TCP_MEET_H

#include "models/comm/tcp/tcp_wire.h"

typedef struct nn_meeting {
    int rank, size;
    const char *job;         /* text that only this start has; "": not given      */
    const char *host, *port; /* address of rank 0; "": use the file               */
    const char *folder;      /* directory of the file; created if it is missing   */
    double patience;         /* seconds until all ranks must be connected         */
} nn_meeting;

/* Connects rank 0 to all others, the others to rank 0; patience of *out is that of m.
 * EDEVICE: a rank did not connect in time; on rank 0 the text says which. ECONFIG: the ranks do not match:
 * different numbers of ranks, a rank twice, a host without an address. EIO: the file. */
pl_code nn_meet(nn_wires **out, const nn_meeting *m, pl_error *err);

/* Writes the path of the file to path[size]; it depends on the job. false: path is too small. */
bool nn_meet_path(char *path, size_t size, const nn_meeting *m);

#endif
