/* chem/worker/request_queue.h - sends requests to a worker program and collects the outcomes; used by worker_client.c only.
 *
 * Several requests are sent ahead, so that the child never waits.
 * It answers in order: if it dies, the first unanswered request is taken as the cause, and
 * the others are sent to the next child without penalty (decision 0012). */
#ifndef CH_REQUEST_QUEUE_H
#define CH_REQUEST_QUEUE_H

#include <sys/stat.h>

#include "chem/common/protocol.h"
#include "chem/worker/wire.h"
#include "chem/worker/worker_opts.h"
#include "chem/worker/worker_process.h"

typedef struct ch_link {
    const char *program; /* not copied */
    struct stat is;      /* the program file as first found: a replaced one must not answer the rest */
    ch_worker_opts opts; /* defaults filled in */
    ch_worker_process child;
    double child_cpu_s; /* of the running child, as reported with its last answer */
    pl_text request, answer;
    int64_t started, requests, lost;
} ch_link;

/* The outcome of one request. */
typedef struct ch_outcome {
    ch_status status;
    char message[256];
    int signal, attempts;
    double cpu_s;
    ch_wire body; /* rest of the answer, valid until the next one, and only if `answered` */
    bool answered;
} ch_outcome;

/* n requests. ask appends the content of request i to `request`, which has been begun; it may be
 * called again for the same i. take gets each outcome once, in the order in which they become known:
 * a request that is tried a second time comes after later ones. */
typedef struct ch_work {
    void *ctx;
    int32_t n;
    void (*ask)(void *ctx, int32_t i, pl_text *request);
    pl_code (*take)(void *ctx, int32_t i, ch_outcome *o, pl_error *err);
} ch_work;

/* Not PL_OK: an error that no request caused, or the value that take returned. */
pl_code ch_link_exchange(ch_link *l, const ch_work *work, pl_error *err);
void ch_link_close(ch_link *l); /* ends the child */

/* Begins a request: writes op, and a placeholder for the CPU seconds. */
void ch_request_begin(pl_text *request, enum ch_op op);

#endif
