/* SPDX-License-Identifier: Apache-2.0 */
/* Similarities a second, and what prepare pays for a fingerprint and a scaffold.
 *
 *   head -1000 library.smi | build/release/bin/bench_search [million fingerprints, default 10]
 *
 * Reads SMILES, one a line. Processor time of one thread, best of 5. "cache": 4,096 fingerprints again and again; "memory": as many
 * as asked for, one after the other (256 bytes each), copies of those of the input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chem/fingerprint/common.h"
#include "chem/fingerprint/scaffold_smiles.h"
#include "chem/worker/worker_client.h"

enum { MOLECULES = 2000, CACHE = 4096, CHUNK = 4096, TIMES = 5 };

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int read_all(ch_mol *mol, pl_arena *mem)
{
    ch_prepare_opts opts = ch_prepare_defaults();
    ch_worker *w = NULL;
    char line[4000];
    int n = 0;

    opts.conformer = CH_3D_NONE;
    if (ch_worker_open(&w, NULL, NULL) != PL_OK)
        return 0;
    while (n < MOLECULES && fgets(line, sizeof line, stdin) != NULL) {
        ch_prepared p;
        line[strcspn(line, " \t\r\n")] = '\0';
        if (ch_worker_prepare(w, line, strlen(line), "smi", &opts, &p, mem, NULL) == PL_OK)
            mol[n++] = p.mol;
    }
    ch_worker_close(w);
    return n;
}

/* Microseconds a molecule. */
static double time_of(int what, const ch_mol *mol, int n, pl_arena *mem)
{
    double best = 1e9;

    for (int k = 0; k < TIMES; k++) {
        const double start = now();
        for (int i = 0; i < n; i++) {
            ch_fingerprint print;
            const char *text;
            pl_arena_reset(mem);
            if ((what == 0 ? ch_fingerprint_of(&print, &mol[i], mem, NULL) : ch_scaffold_smiles(&text, &mol[i], mem, NULL)) !=
                PL_OK)
                return 0;
        }
        best = now() - start < best ? now() - start : best;
    }
    return 1e6 * best / n;
}

/* Seconds for `all` similarities of the first fingerprint to the others; *near: how many are at least 0.6. */
static double time_kernel(ch_common_kernel *kernel, const ch_fingerprint *print, const int32_t *ones, int64_t n, int64_t all,
                          int64_t *near)
{
    static int32_t both[CHUNK];
    double best = 1e9;

    for (int k = 0; k < TIMES; k++) {
        const double start = now();
        *near = 0;
        for (int64_t done = 0; done < all; done += CHUNK) {
            const int64_t at = done % n, m = all - done < CHUNK ? all - done : CHUNK;
            kernel(both, &print[0], &print[at], (int32_t)m);
            for (int32_t i = 0; i < m; i++)
                *near += 10 * both[i] >= 6 * (ones[0] + ones[at + i] - both[i]);
        }
        best = now() - start < best ? now() - start : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    static ch_mol mol[MOLECULES];
    const int64_t all = (argc > 1 ? strtol(argv[1], NULL, 10) : 10) * 1000000 / CHUNK * CHUNK;
    pl_arena *mem = pl_arena_new(1 << 20), *scratch = pl_arena_new(1 << 16);
    ch_fingerprint *print = malloc((size_t)all * sizeof *print);
    int32_t *ones = malloc((size_t)all * sizeof *ones);
    const int n = mem != NULL ? read_all(mol, mem) : 0;
    int64_t near;

    if (n == 0 || all <= 0 || print == NULL || ones == NULL || scratch == NULL)
        return 1;
    printf("%d molecules: fingerprint %.2f us, scaffold %.2f us\n", n, time_of(0, mol, n, scratch), time_of(1, mol, n, scratch));
    for (int64_t i = 0; i < all; i++)
        if (i < n)
            (void)ch_fingerprint_of(&print[i], &mol[i], mem, NULL);
        else
            print[i] = print[i % n];
    ch_common_ones(ones, print, (int32_t)all);
    printf("%lld similarities:\n", (long long)all);
    for (int k = 0; ch_common_at(k) != NULL; k++) {
        printf("  kernel %d  cache %.3f s", k, time_kernel(ch_common_at(k), print, ones, CACHE, all, &near));
        printf("  memory %.3f s  (%lld of at least 0.6)\n", time_kernel(ch_common_at(k), print, ones, all, all, &near),
               (long long)near);
    }
    return 0;
}
