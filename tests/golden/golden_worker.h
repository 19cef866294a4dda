/* tests/golden/golden_worker.h - the chemistry worker of tests whose answers are kept: they are those of Open Babel 3.1, so with another
 * one the test is skipped. */
#ifndef GOLDEN_WORKER_H
#define GOLDEN_WORKER_H

#include "chem/worker/worker_client.h"

static inline ch_worker *golden_worker_open(void)
{
    static const ch_worker_opts opts = { .cpu_first_s = 20, .cpu_retry_s = 20 };
    ch_worker_info info;
    pl_error err = { 0 };
    ch_worker *w;

    if (ch_worker_open(&w, &opts, &err) != PL_OK || ch_worker_version(w, &info, &err) != PL_OK)
        fail_msg("%s", err.text);
    if (strcmp(info.openbabel, "3.1.0") != 0 && strcmp(info.openbabel, "3.1.1") != 0) {
        ch_worker_close(w);
        print_message("skipped: Open Babel is %s, not 3.1\n", info.openbabel);
        skip();
    }
    return w;
}

#endif
