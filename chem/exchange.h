/* chem/exchange.h - requests to a worker program and what became of them; used by chem.c only.
 *
 * A few requests are with the child at a time, so that it never waits for us.
 * It answers in order: when it dies, the first unanswered one is the reason and
 * the others are sent to the next child, unharmed (decision 0012). */
#ifndef CH_EXCHANGE_H
#define CH_EXCHANGE_H

#include <sys/stat.h>

#include "chem/chem.h"
#include "chem/child.h"
#include "chem/wire.h"

typedef struct ch_link {
    const char *program; /* not copied */
    struct stat is;      /* as it was found: another one must not answer the rest */
    ch_worker_opts opts; /* all values given */
    ch_child child;
    double child_cpu_s; /* of the living child, as of its last answer */
    pl_text request, answer;
    int64_t started, requests, lost;
} ch_link;

/* What became of one request. */
typedef struct ch_outcome {
    ch_status status;
    char message[256];
    int signal, attempts;
    double cpu_s;
    ch_wire body; /* rest of the answer, until the next one comes; valid when `answered` */
    bool answered;
} ch_outcome;

/* n requests. ask appends number i to the request that was begun; it may be
 * asked again. take gets each outcome once, in the order in which they are known:
 * one that is tried a second time comes after its followers. */
typedef struct ch_work {
    void *ctx;
    int32_t n;
    void (*ask)(void *ctx, int32_t i, pl_text *request);
    pl_code (*take)(void *ctx, int32_t i, ch_outcome *o, pl_error *err);
} ch_work;

/* Not PL_OK: nothing to do with the requests, or what take returned. */
pl_code ch_exchange(ch_link *l, const ch_work *work, pl_error *err);
void ch_link_close(ch_link *l); /* ends the child */

/* An empty request: op and room for the CPU seconds. */
void ch_request_begin(pl_text *request, enum ch_op op);

#endif
