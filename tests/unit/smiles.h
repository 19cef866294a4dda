/* tests/unit/smiles.h - molecules of SMILES, from the real chemistry worker; setup and teardown of a group of tests. */
#ifndef TESTS_SMILES_H
#define TESTS_SMILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "chem/worker/worker_client.h"

typedef struct bench_side {
    ch_worker *w;
    pl_arena *mem;
} bench_side;

static int setup(void **state)
{
    static bench_side b;

    b.mem = pl_arena_new(0);
    *state = &b;
    return ch_worker_open(&b.w, NULL, NULL) == PL_OK && b.mem != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    bench_side *b = *state;

    ch_worker_close(b->w);
    pl_arena_free(b->mem);
    return 0;
}

static ch_mol molecule(bench_side *b, const char *smiles)
{
    ch_prepare_opts opts = ch_prepare_defaults();
    ch_prepared p;
    pl_error err = { 0 };

    opts.conformer = CH_3D_NONE;
    if (ch_worker_prepare(b->w, smiles, strlen(smiles), "smi", &opts, &p, b->mem, &err) != PL_OK)
        fail_msg("%s: %s", smiles, err.text);
    return p.mol;
}

#endif
