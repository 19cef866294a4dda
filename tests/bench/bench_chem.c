/* SPDX-License-Identifier: Apache-2.0 */
/* bench_chem library.smi [n]: records a second through reader and worker, one
 * worker, without and with structures. Compare with bench_openbabel. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "chem/records/record.h"
#include "chem/worker/worker_client.h"
#include "pipeline/base/text.h"

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int read_only(const char *path, int n)
{
    ch_reader *r;
    ch_record rec;
    bool more = true;
    int done = 0;

    if (ch_reader_open(&r, path, NULL, NULL, NULL) != PL_OK)
        return 0;
    while (done < n && ch_reader_next(r, &rec, &more, NULL) == PL_OK && more)
        done++;
    ch_reader_close(r);
    return done;
}

enum { UNIT = 100 };

/* The next records, copied; how many. */
static int32_t read_unit(ch_reader *r, ch_input *in, int32_t max, pl_arena *mem)
{
    ch_record rec;
    bool more = true;
    int32_t n = 0;

    while (n < max && ch_reader_next(r, &rec, &more, NULL) == PL_OK && more)
        in[n++] = (ch_input){ pl_strndup(mem, rec.text, rec.len), pl_strdup(mem, rec.format), rec.len };
    return n;
}

/* Units of records, as the stage `prepare` sends them. */
static int through_worker(const char *path, int n, ch_conformer conformer, double *cpu_s)
{
    static ch_input in[UNIT];
    static ch_prepared out[UNIT];
    ch_prepare_opts o = ch_prepare_defaults();
    pl_arena *mem = pl_arena_new(1 << 20);
    ch_worker_info info;
    ch_worker *w;
    ch_reader *r;
    int32_t got = UNIT;
    int done = 0;

    o.conformer = conformer;
    if (ch_worker_open(&w, NULL, NULL) != PL_OK || ch_worker_hello(w, &info, NULL) != PL_OK ||
        ch_reader_open(&r, path, NULL, NULL, NULL) != PL_OK)
        return 0;
    *cpu_s = 0;
    while (done < n && got > 0) {
        pl_arena_reset(mem);
        got = read_unit(r, in, n - done < UNIT ? n - done : UNIT, mem);
        if (ch_worker_prepare_all(w, in, got, &o, NULL, out, mem, NULL) != PL_OK)
            return 0;
        for (int32_t i = 0; i < got; i++)
            *cpu_s += out[i].cpu_s;
        done += got;
    }
    ch_reader_close(r);
    ch_worker_close(w);
    pl_arena_free(mem);
    return done;
}

int main(int argc, char **argv)
{
    const int n = argc > 2 ? atoi(argv[2]) : 1000;
    double t, cpu_s;
    int done;

    if (argc < 2)
        return 2;
    t = now();
    done = read_only(argv[1], 1 << 30);
    (void)printf("split                 %8d records %10.0f /s\n", done, done / (now() - t));
    t = now();
    done = through_worker(argv[1], n, CH_3D_NONE, &cpu_s);
    (void)printf("prepare, no 3D        %8d records %10.1f /s wall, %10.1f /s of worker CPU\n", done, done / (now() - t),
                 done / cpu_s);
    t = now();
    done = through_worker(argv[1], n / 10, CH_3D_GENERATE, &cpu_s);
    (void)printf("prepare, 3D           %8d records %10.1f /s wall, %10.1f /s of worker CPU\n", done, done / (now() - t),
                 done / cpu_s);
    return 0;
}
