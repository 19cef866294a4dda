/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors_of < smiles.txt: prepares the SMILES of each line and prints, a line each, as tests/bench/features_rdkit.py reads it: the SMILES,
 * the descriptors, "|", and the environments as id:count. The last line of standard error says what a molecule takes. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "chem/features/features.h"
#include "chem/worker/worker_client.h"

enum { LINE = 8192, REPEAT = 20 };

typedef struct tally {
    double features_s, environments_s;
    int n;
} tally;

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print(const char *smiles, const float *x, const ch_environments *e)
{
    printf("%s", smiles);
    for (int k = 0; k < CH_N_FEATURES; k++)
        printf(" %.9g", (double)x[k]);
    printf(" |");
    for (int32_t k = 0; k < e->n; k++)
        printf(" %u:%u", (unsigned)e->at[k].id, (unsigned)e->at[k].count);
    printf("\n");
}

/* Computed several times, so that the clock can measure it. */
static pl_code compute(tally *t, const char *smiles, const ch_graph *g, pl_arena *mem, pl_error *err)
{
    float x[CH_N_FEATURES];
    ch_environments e = { 0 };
    pl_code code = PL_OK;
    double from = now();

    for (int k = 0; k < REPEAT && code == PL_OK; k++) {
        pl_arena_reset(mem);
        code = ch_features_of(x, g, mem, err);
    }
    t->features_s += (now() - from) / REPEAT;
    from = now();
    for (int k = 0; k < REPEAT && code == PL_OK; k++) {
        pl_arena_reset(mem);
        code = ch_environments_of(&e, g, mem, err);
    }
    t->environments_s += (now() - from) / REPEAT;
    t->n++;
    if (code == PL_OK)
        print(smiles, x, &e);
    return code;
}

static pl_code one(tally *t, ch_worker *w, const char *smiles, pl_arena *mem, pl_arena *scratch, pl_error *err)
{
    ch_prepare_opts opts = ch_prepare_defaults();
    ch_prepared p;
    ch_graph g;
    pl_code code;

    opts.conformer = CH_3D_NONE;
    code = ch_worker_prepare(w, smiles, strlen(smiles), "smi", &opts, &p, mem, err);
    if (code == PL_OK)
        code = ch_graph_build(&g, &p.mol, &(ch_graph_opts){ .edges = CH_EDGES_TOPOLOGY }, mem, err);
    return code == PL_OK ? compute(t, p.smiles, &g, scratch, err) : code;
}

int main(void)
{
    static char line[LINE];
    pl_arena *mem = pl_arena_new(1 << 20), *scratch = pl_arena_new(1 << 20);
    ch_worker *w = NULL;
    tally t = { 0 };

    if (mem == NULL || scratch == NULL || ch_worker_open(&w, NULL, NULL) != PL_OK)
        return 1;
    printf("smiles");
    for (int k = 0; k < CH_N_FEATURES; k++)
        printf(" %s", ch_features[k].name);
    printf("\n");
    while (fgets(line, LINE, stdin) != NULL) {
        pl_error err = { 0 };
        line[strcspn(line, "\r\n")] = '\0';
        pl_arena_reset(mem);
        if (one(&t, w, line, mem, scratch, &err) != PL_OK)
            fprintf(stderr, "%s: %s\n", line, err.text);
    }
    fprintf(stderr, "%d molecules: descriptors %.1f us, environments %.1f us each\n", t.n, 1e6 * t.features_s / t.n,
            1e6 * t.environments_s / t.n);
    ch_worker_close(w);
    pl_arena_free(scratch);
    pl_arena_free(mem);
    return 0;
}
