/* chem/child.h - one child process and its two ends of a socket; used by exchange.c only.
 *
 * A message is a u32 length and that many bytes (chem/protocol.h). Waiting
 * always ends: at the caller's stop flag, at the child's death, or when it neither answers
 * nor uses CPU for a while; who computes too much is ended by its own limit. */
#ifndef CH_CHILD_H
#define CH_CHILD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

typedef struct ch_child {
    pid_t pid; /* 0: none */
    pid_t builder; /* its own child, which builds structures for it; 0: not seen */
    int fd;
} ch_child; /* zeroed is "none" */

typedef enum ch_talk { CH_TALK_OK, CH_TALK_DIED, CH_TALK_LATE, CH_TALK_STOP, CH_TALK_NOMEM, CH_TALK_GARBLED } ch_talk;

/* memory_bytes is given to the program as its argument. EIO when it cannot be started. */
pl_code ch_child_start(ch_child *c, const char *program, size_t memory_bytes, pl_error *err);

/* Sends a request; waits for the next answer. LATE: for wall_s the child used no CPU. */
ch_talk ch_child_send(ch_child *c, const pl_text *request, double wall_s, const atomic_int *stop);
ch_talk ch_child_receive(ch_child *c, pl_text *answer, double wall_s, const atomic_int *stop);

/* Ends it if it still lives and collects it: the signal that ended it (0: none) and its CPU seconds, those of the processes
 * that built structures for it included. They outlive it for a moment and become ours: this process is made the one that
 * collects its orphaned grandchildren (prctl PR_SET_CHILD_SUBREAPER), so that `time` and a cluster's accounting see them. */
void ch_child_end(ch_child *c, bool dying, int *by_signal, double *cpu_s);

#endif
