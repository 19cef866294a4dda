/* SPDX-License-Identifier: Apache-2.0 */
/* The time per score of the search for the nearest training molecule. SMILES on standard input, one a line:
 *   zcat chembl.smi.gz | bench_fingerprint */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chem/worker/worker_client.h"
#include "models/domain/domain.h"

enum { MAX = 20000, ASKED = 500, ROUNDS = 7 };

typedef struct bench {
    nn_domain_molecule kept[MAX];
    ch_fingerprint asked[ASKED];
    ch_mol mol[ASKED];
    int32_t n; /* read: ASKED molecules to score, then the training molecules */
} bench;

static double cpu_seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void take(bench *b, const ch_mol *mol, pl_arena *scratch)
{
    ch_fingerprint f;

    if (ch_fingerprint_of(&f, mol, scratch, NULL) != PL_OK)
        exit(1);
    if (b->n < ASKED) {
        b->mol[b->n] = *mol;
        b->asked[b->n] = f;
    } else {
        b->kept[b->n - ASKED] = (nn_domain_molecule){ .print = f };
        (void)snprintf(b->kept[b->n - ASKED].key, sizeof b->kept[0].key, "%027d", (int)b->n);
    }
    b->n++;
}

static void read_all(bench *b, pl_arena *mem, pl_arena *scratch)
{
    ch_prepare_opts opts = ch_prepare_defaults();
    ch_worker *w;
    char line[8192];
    ch_prepared p;

    opts.conformer = CH_3D_NONE;
    if (ch_worker_open(&w, NULL, NULL) != PL_OK)
        exit(1);
    while (b->n < ASKED + MAX && fgets(line, sizeof line, stdin) != NULL) {
        pl_arena *where = b->n < ASKED ? mem : scratch;
        pl_arena_reset(scratch);
        line[strcspn(line, " \t\r\n")] = '\0';
        if (ch_worker_prepare(w, line, strlen(line), "smi", &opts, &p, where, NULL) == PL_OK)
            take(b, &p.mol, scratch);
    }
    ch_worker_close(w);
}

static double time_fingerprints(bench *b, pl_arena *scratch)
{
    double best = 1e9;

    for (int r = 0; r < ROUNDS; r++) {
        const double began = cpu_seconds();
        for (int i = 0; i < ASKED; i++) {
            pl_arena_reset(scratch);
            (void)ch_fingerprint_of(&b->asked[i], &b->mol[i], scratch, NULL);
        }
        best = cpu_seconds() - began < best ? cpu_seconds() - began : best;
    }
    return best / ASKED * 1e6;
}

static double time_nearest(const bench *b, const nn_domain *d)
{
    static nn_near near[ASKED];
    double best = 1e9;

    for (int r = 0; r < ROUNDS; r++) {
        const double began = cpu_seconds();
        nn_domain_nearest(near, d, 0, b->asked, ASKED);
        best = cpu_seconds() - began < best ? cpu_seconds() - began : best;
    }
    return near[0].alike >= 0 ? best / ASKED * 1e6 : 0;
}

int main(void)
{
    bench *b = calloc(1, sizeof *b);
    pl_arena *mem = pl_arena_new(1 << 20), *scratch = pl_arena_new(1 << 20);
    nn_domain d;

    if (b == NULL || mem == NULL || scratch == NULL)
        return 1;
    read_all(b, mem, scratch);
    printf("| what | us a molecule |\n|---|--:|\n| fingerprint | %.1f |\n", time_fingerprints(b, scratch));
    for (int32_t n = 1000; n <= b->n - ASKED; n *= 20)
        if (nn_domain_make(&d, b->kept, n, mem, NULL) == PL_OK)
            printf("| nearest of %d | %.1f |\n", (int)n, time_nearest(b, &d));
    pl_arena_free(mem);
    pl_arena_free(scratch);
    free(b);
    return 0;
}
