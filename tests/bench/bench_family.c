/* SPDX-License-Identifier: Apache-2.0 */
/* bench_family FILE KIND regression|classes SEED - learns a member of a model family from FILE, predicts, and writes the predictions to
 * standard output: a line "value variance" for each molecule. Times and sizes go to
 * standard error, and its settings. tests/bench/family.py makes FILE:
 *
 *   int32 n_learn, n_new, n_columns; then for each molecule: double value, int32 n, n times uint32 id and count, float [n_columns]
 *
 * All numbers beside environments are columns of the table; descriptors are zero, so that peers read exactly the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "models/family/family.h"

typedef struct table {
    nn_table x;
    double *y;
} table;

static void need(int ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "bench_family: %s\n", what);
        exit(1);
    }
}

static void take(void *to, size_t size, size_t n, FILE *f) { need(fread(to, size, n, f) == n, "FILE ends early"); }

static void read_molecule(ch_environments *e, double *y, float *column, int32_t n_columns, FILE *f, pl_arena *mem)
{
    take(y, sizeof *y, 1, f);
    take(&e->n, sizeof e->n, 1, f);
    e->at = PL_NEW(mem, ch_environment, e->n + 1);
    need(e->at != NULL, "no memory");
    take(e->at, sizeof *e->at, (size_t)e->n, f);
    take(column, sizeof *column, (size_t)n_columns, f);
}

static table read_table(int32_t n, int32_t n_columns, FILE *f, pl_arena *mem)
{
    ch_environments *e = PL_NEW(mem, ch_environments, n);
    float *column = PL_NEW(mem, float, (size_t)n *(size_t)n_columns), *features = PL_NEW(mem, float, (size_t)n *CH_N_FEATURES);
    table t = { { n, e, (const float(*)[CH_N_FEATURES])features, n_columns, column }, PL_NEW(mem, double, n) };

    need(e != NULL && column != NULL && features != NULL && t.y != NULL, "no memory");
    for (int32_t i = 0; i < n; i++)
        read_molecule(&e[i], &t.y[i], column + (size_t)i * (size_t)n_columns, n_columns, f, mem);
    return t;
}

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t bytes_of(const nn_member_kind *kind, const nn_member *m, const char **settings, pl_arena *mem)
{
    const char *json;
    nn_tensor *t;
    size_t bytes = 0;
    int n;

    need(kind->save(m, "m", &t, &n, &json, mem, NULL) == PL_OK, "save");
    for (int k = 0; k < n; k++)
        bytes += t[k].count * nn_dtype_bytes(t[k].dtype);
    *settings = json;
    return bytes + strlen(json);
}

int main(int argc, char **argv)
{
    const nn_member_kind *kind = argc == 5 ? nn_member_kind_of(argv[2]) : NULL;
    FILE *f = kind != NULL ? fopen(argv[1], "rb") : NULL;
    pl_arena *mem = pl_arena_new(1 << 20);
    int32_t size[3];
    nn_member *m;
    pl_error err = { 0 };
    double from, fitted, predicted, *value, *variance;
    const char *settings;
    size_t bytes;
    nn_fit_conf conf = { 0 };
    table learn, new;

    need(f != NULL && mem != NULL, "usage: bench_family FILE KIND regression|classes SEED");
    take(size, sizeof *size, 3, f);
    learn = read_table(size[0], size[2], f, mem);
    new = read_table(size[1], size[2], f, mem);
    value = PL_NEW(mem, double, size[1]);
    variance = PL_NEW(mem, double, size[1]);
    conf.seed = strtoull(argv[4], NULL, 10);
    conf.classifies = strcmp(argv[3], "classes") == 0;
    from = now();
    need(kind->fit(&m, &learn.x, learn.y, &conf, mem, &err) == PL_OK, err.text);
    fitted = now();
    need(kind->predict(m, &new.x, value, variance, mem, &err) == PL_OK, err.text);
    predicted = now();
    bytes = bytes_of(kind, m, &settings, mem);
    (void)fprintf(stderr, "%s: %s; fit %.2f s, predict %.0f us a molecule (processor time), %zu bytes\n%s\n", kind->name,
                  kind->describe(m, mem), fitted - from, 1e6 * (predicted - fitted) / size[1], bytes, settings);
    for (int32_t i = 0; i < size[1]; i++)
        (void)printf("%.17g %.17g\n", value[i], variance[i]);
    pl_arena_free(mem);
    return fclose(f) != 0;
}
