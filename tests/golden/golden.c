/* SPDX-License-Identifier: Apache-2.0 */
#include "golden/golden.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

const char *golden_folder(void)
{
    static char path[4096]; /* filled once, before any test runs */
    const char *shared = getenv("MOLSIEVE_SHARED");

    snprintf(path, sizeof path, "%s/golden", shared ? shared : "../shared");
    if (access(path, R_OK)) {
        fprintf(stderr, "skipped: no golden tensors in %s (set MOLSIEVE_SHARED)\n", path);
        exit(77);
    }
    return path;
}

const nn_tensors *golden_open(const char *name, pl_arena *mem)
{
    char path[4352];
    nn_tensors *all = NULL;
    pl_error err = { 0 };

    snprintf(path, sizeof path, "%s/%s.safetensors", golden_folder(), name);
    if (nn_tensors_read(&all, path, mem, &err))
        fail_msg("%s: %s", err.where, err.text);
    return all;
}

bool golden_has(const nn_tensors *all, const char *fmt, ...)
{
    char name[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    return nn_tensors_find(all, name) != NULL;
}

const double *golden_get(const nn_tensors *all, size_t *n, pl_arena *mem, const char *fmt, ...)
{
    char name[256];
    const nn_tensor *t;
    pl_error err = { 0 };
    double *out;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    t = nn_tensors_find(all, name);
    if (!t)
        fail_msg("no tensor %s", name);
    out = PL_NEW(mem, double, t->count + 1);
    assert_non_null(out);
    if (nn_tensor_doubles(out, t->count, t, &err))
        fail_msg("%s", err.text);
    if (n)
        *n = t->count;
    return out;
}

const int32_t *golden_ints(const nn_tensors *all, size_t *n, pl_arena *mem, const char *name)
{
    const nn_tensor *t = nn_tensors_find(all, name);
    int64_t *wide;
    int32_t *out;

    if (!t)
        fail_msg("no tensor %s", name);
    wide = PL_NEW(mem, int64_t, t->count + 1);
    out = PL_NEW(mem, int32_t, t->count + 1);
    assert_true(wide && out);
    assert_int_equal(nn_tensor_ints(wide, t->count, t, NULL), PL_OK);
    for (size_t k = 0; k < t->count; k++)
        out[k] = (int32_t)wide[k];
    if (n)
        *n = t->count;
    return out;
}

void golden_check(const char *name, const double *got, const double *want, size_t n, double rel)
{
    double scale = 0.0;

    for (size_t k = 0; k < n; k++)
        scale = fmax(scale, fabs(want[k]));
    for (size_t k = 0; k < n; k++)
        if (!(fabs(got[k] - want[k]) <= rel * scale))
            fail_msg("%s[%zu]: got %.15g, want %.15g, off by %.2g of the largest entry %.6g", name, k,
                     got[k], want[k], fabs(got[k] - want[k]) / scale, scale);
}

double *golden_params(const nn_tensors *all, const nn_se3 *model, const char *prefix, pl_arena *mem)
{
    double *out = PL_NEW(mem, double, model->n_floats);
    size_t n;

    assert_non_null(out);
    for (int32_t k = 0; k < model->n_params; k++) {
        const nn_param *p = &model->param[k];
        const double *w = golden_get(all, &n, mem, "%s%s", prefix, p->name);
        assert_int_equal(n, p->size);
        for (size_t e = 0; e < n; e++)
            out[p->at + e] = w[e];
    }
    return out;
}
