/* chem/worker/worker_process.h - one child process and its two ends of a socket; used by request_queue.c only.
 *
 * A message is a u32 length and that many bytes (chem/common/protocol.h). Waiting
 * always ends: when the caller's stop flag is set, when the child dies, or when it neither answers
 * nor uses CPU for a while. A child that computes too long is ended by its own CPU limit. */
#ifndef CH_WORKER_PROCESS_H
#define CH_WORKER_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

typedef struct ch_worker_process {
    pid_t pid;     /* 0: none */
    pid_t builder; /* the child's own child, which builds structures; 0: not known */
    int fd;
} ch_worker_process; /* all zeros: no child */

typedef enum ch_talk { CH_TALK_OK, CH_TALK_DIED, CH_TALK_LATE, CH_TALK_STOP, CH_TALK_NOMEM, CH_TALK_GARBLED } ch_talk;

/* Starts the program with memory_bytes as its argument. EIO if it cannot be started. */
pl_code ch_worker_process_start(ch_worker_process *c, const char *program, size_t memory_bytes, pl_error *err);

/* Send a request; wait for the next answer. CH_TALK_LATE: the child used no CPU for wall_s seconds. */
ch_talk ch_worker_process_send(ch_worker_process *c, const pl_text *request, double wall_s, const atomic_int *stop);
ch_talk ch_worker_process_receive(ch_worker_process *c, pl_text *answer, double wall_s, const atomic_int *stop);

/* How a child ended: the signal (0: none), else its exit status; and CPU seconds, of its family. */
typedef struct ch_worker_end {
    int signal, status;
    double cpu_s;
} ch_worker_end;

/* Ends the child if it still lives and reaps it. Its CPU seconds include those of
 * the processes that built structures for it. These outlive the child for a moment and then become children of this process, which is
 * made a subreaper (prctl PR_SET_CHILD_SUBREAPER), so that `time` and a cluster's accounting include them. */
ch_worker_end ch_worker_process_end(ch_worker_process *c, bool dying);

#endif
