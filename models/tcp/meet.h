/* models/tcp/meet.h - how the ranks of one start find each other over TCP.
 *
 * Rank 0 waits, the others come. Where it waits is said by the launcher (host and
 * port) or by a file in a folder that all see: written under a temporary name and
 * renamed, with the name of the run, all addresses of rank 0's machine and a random
 * key; removed when all have come. A file that an earlier start left is passed over:
 * its run is another, or nobody answers there, or who answers knows another key. */
#ifndef NN_TCP_MEET_H
#define NN_TCP_MEET_H

#include "models/tcp/wire.h"

typedef struct nn_meeting {
    int rank, size;
    const char *job;           /* tells starts apart; "": the launcher does not say */
    const char *host, *port;   /* of rank 0; "": by file                            */
    const char *folder;        /* for the file; made if it is not there             */
    double patience;           /* seconds for all to come                           */
} nn_meeting;

/* Connected to all (rank 0) or to rank 0 (the others); patience is the meeting's.
 * EDEVICE: somebody did not come, and on rank 0 who. ECONFIG: the starts do not fit:
 * another number of ranks, a rank twice, a host that has no address. EIO: the file. */
pl_code nn_meet(nn_wires **out, const nn_meeting *m, pl_error *err);

/* The file's path: one for each job. false when it would not fit. */
bool nn_meet_path(char *path, size_t size, const nn_meeting *m);

#endif
