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

static inline ch_prepared prepare(const char *text, const char *format, const ch_prepare_opts *opts)
{
    ch_prepared p;
    pl_error err = { 0 };

    if (ch_worker_prepare(worker, text, strlen(text), format, opts, &p, mem, &err) != PL_OK)
        fail_msg("%s: %s", text, err.text);
    return p;
}

/* Without a structure: the SMILES is that, or, where smiles is NULL, an error says that. */
static inline void assert_reads_as(const char *text, const char *format, const char *smiles, const char *says)
{
    ch_prepare_opts o = ch_prepare_defaults();
    ch_prepared p;
    pl_error err = { 0 };
    pl_code code;

    o.conformer = CH_3D_NONE;
    code = ch_worker_prepare(worker, text, strlen(text), format, &o, &p, mem, &err);
    if ((code == PL_OK) != (smiles != NULL) || (code == PL_OK && smiles != NULL && strcmp(p.smiles, smiles) != 0) ||
        (code != PL_OK && strstr(err.text, says) == NULL))
        fail_msg("%s: %s", text, code == PL_OK ? p.smiles : err.text);
}

#endif
