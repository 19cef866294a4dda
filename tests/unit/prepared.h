/* tests/unit/prepared.h - what the real chemistry worker makes of a text; setup and teardown of a group of tests. */
#ifndef TESTS_PREPARED_H
#define TESTS_PREPARED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "chem/worker/worker_client.h"

static ch_worker *worker;
static pl_arena *mem;

static int setup(void **state)
{
    pl_error err = { 0 };

    (void)state;
    mem = pl_arena_new(0);
    if (ch_worker_open(&worker, NULL, &err) != PL_OK)
        print_error("%s\n", err.text);
    return worker != NULL && mem != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    ch_worker_close(worker);
    pl_arena_free(mem);
    return 0;
}

static ch_prepared prepare(const char *text, const char *format, const ch_prepare_opts *opts)
{
    ch_prepared p;
    pl_error err = { 0 };

    if (ch_worker_prepare(worker, text, strlen(text), format, opts, &p, mem, &err) != PL_OK)
        fail_msg("%s: %s", text, err.text);
    return p;
}

#endif
