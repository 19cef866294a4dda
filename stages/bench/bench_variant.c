/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/cpu/kernels/kernels.h"
#include "stages/bench/bench.h"

typedef struct list {
    st_bench_variant *variant;
    int n, max;
} list;

void st_bench_set_use(const char *set)
{
    if (set != NULL)
        (void)setenv("MOLSIEVE_CPU", set, 1);
}

static void variant_name(st_bench_variant *v)
{
    static const char *const radials[] = { [NN_RADIAL_NODES] = "nodes", [NN_RADIAL_EXACT] = "exact" }, *const precisions[] = {
        "fp32", "bf16x3", "bf16", "tf32", "fp16"
    };
    char models[32] = "";

    if (v->models > 1)
        snprintf(models, sizeof models, " %d models %s", v->models, v->at_once ? "at once" : "in turn");
    if (v->kind == &nn_engine_ref)
        snprintf(v->name, sizeof v->name, "ref double");
    else
        snprintf(v->name, sizeof v->name, "%s%s%s %s %s%s%s%s", v->kind->name, v->set != NULL ? " " : "",
                 v->set != NULL ? v->set : "", radials[v->conf.radial], precisions[v->conf.of_contract],
                 v->conf.recompute ? " recompute" : "", v->conf.products == NN_PRODUCTS_CUBLASLT ? " cublaslt" : "", models);
}

static void variant_add(list *s, const st_bench_variant *what)
{
    st_bench_variant *v = &s->variant[s->n];
    pl_error err = { 0 };

    if (s->n == s->max)
        return;
    *v = *what;
    st_bench_set_use(v->set);
    if (v->kind->check(&v->conf, &err) != PL_OK)
        snprintf(v->refused, sizeof v->refused, "%s", err.text);
    variant_name(v);
    if (v->kind != &nn_engine_ref || !v->refused[0])
        s->n++;
}

static nn_engine_conf conf_of(nn_radial radial, nn_precision p, bool recompute)
{
    return (nn_engine_conf){
        .threads = 1, .radial = radial, .width = 0.01, .of_radial = p, .of_contract = p, .of_linear = p, .recompute = recompute
    };
}

/* Engine cuda with the products of fp32 by cuBLASLt. */
static void cublaslt_add(list *s)
{
    for (int i = 0; i < 2; i++) {
        st_bench_variant v = {
            .kind = &nn_engine_cuda, .main = true, .models = 1, .conf = conf_of((nn_radial)i, NN_PREC_FP32, false)
        };
        v.conf.products = NN_PRODUCTS_CUBLASLT;
        variant_add(s, &v);
    }
}

static void modes_add(list *s, const nn_engine_kind *kind, const char *set, bool main)
{
    int n = kind == &nn_engine_cuda ? NN_PREC_FP16 + 1 : NN_PREC_BF16 + 1; /* precisions it has */

    for (int i = 0; i < (kind == &nn_engine_ref ? 2 : 4) * n; i++)
        variant_add(s, &(st_bench_variant){ .kind = kind,
                                            .set = set,
                                            .main = main,
                                            .models = 1,
                                            .conf = conf_of((nn_radial)(i / n % 2), (nn_precision)(i % n), i / n > 1) });
    if (kind == &nn_engine_cuda)
        cublaslt_add(s);
    for (int i = 0; i < (kind->forward_all != NULL ? 2 : 0); i++)
        variant_add(s, &(st_bench_variant){ .kind = kind,
                                            .set = set,
                                            .main = main,
                                            .models = ST_BENCH_TOGETHER,
                                            .at_once = i == 1,
                                            .conf = conf_of(NN_RADIAL_NODES, NN_PREC_BF16, false) });
}

int st_bench_variants(st_bench_variant *out, int max)
{
    const nn_cpu_kernels *best = nn_cpu_kernels_find(NULL);
    list s = { out, 0, max };
    nn_cpu_choice c;

    for (int k = 0; nn_engines[k] != NULL; k++)
        if (nn_engines[k] != &nn_engine_cpu)
            modes_add(&s, nn_engines[k], NULL, true);
        else
            for (int i = 0; nn_cpu_kernels_list(i, &c); i++)
                if (c.here)
                    modes_add(&s, nn_engines[k], c.kernels->name, c.kernels == best);
    return s.n;
}

bool st_bench_variant_wanted(const st_bench_variant *v, const char *words, int threads)
{
    char copy[512], *word, *rest = copy;

    if (v->refused[0] || (v->kind == &nn_engine_ref && threads > 1))
        return false;
    if (words == NULL)
        return (v->main && v->kind != &nn_engine_ref && (!v->conf.recompute || threads == 1)) ||
               (threads == 1 && v->conf.of_contract == NN_PREC_FP32 && !v->conf.recompute);
    snprintf(copy, sizeof copy, "%s", words);
    while ((word = strsep(&rest, ",")) != NULL)
        if (*word && (strstr(v->name, word) != NULL || !strcmp(word, "all")))
            return true;
    return false;
}

/* ---- measuring ----------------------------------------------------------- */

static pl_code step(const st_bench_case *c, const nn_engine_kind *kind, nn_engine *e, bool train, pl_error *err)
{
    pl_code code = train ? kind->set_params(e, c->params, err) : PL_OK; /* a training step folds the weights again */

    if (code == PL_OK)
        code = kind->forward(e, &c->batch, train, c->y, err);
    if (code == PL_OK && train)
        code = kind->backward(e, &c->batch, c->dy, c->grad, err);
    return code;
}

/* The first step is not counted. */
static pl_code step_best(const st_bench_case *c, const st_bench_variant *v, nn_engine *e, double seconds, bool train, double *best,
                         pl_error *err)
{
    int threads = v->kind->training != NULL ? 2 : v->conf.threads; /* a GPU's work is not this processor's time */
    double start = st_bench_now(threads);
    pl_code code = step(c, v->kind, e, train, err);

    *best = HUGE_VAL;
    for (int i = 0; code == PL_OK && (i < 1 || st_bench_now(threads) - start < seconds); i++) {
        double from = st_bench_now(threads);
        code = step(c, v->kind, e, train, err);
        *best = fmin(*best, st_bench_now(threads) - from);
    }
    return code;
}

/* Forward of several models, seconds for each. */
static pl_code together_best(const st_bench_case *c, const st_bench_variant *v, nn_engine *const *e, double seconds, double *best,
                             pl_error *err)
{
    const nn_batch *in[ST_BENCH_TOGETHER];
    float *y[ST_BENCH_TOGETHER];
    double start = st_bench_now(2);
    pl_code code = PL_OK;

    for (int k = 0; k < v->models; k++) {
        in[k] = &c->batch;
        y[k] = c->y;
    }
    *best = HUGE_VAL;
    for (int i = 0; code == PL_OK && (i < 2 || st_bench_now(2) - start < seconds); i++) {
        double from = st_bench_now(2);
        if (v->at_once)
            code = v->kind->forward_all(e, in, y, v->models, err);
        for (int k = 0; k < v->models && !v->at_once && code == PL_OK; k++)
            code = v->kind->forward(e[k], &c->batch, false, c->y, err);
        if (i) /* the first is not counted */
            *best = fmin(*best, (st_bench_now(2) - from) / v->models);
    }
    return code;
}

static pl_code alone_best(st_bench_times *out, const st_bench_case *c, const st_bench_variant *v, nn_engine *e, double seconds,
                          pl_error *err)
{
    pl_code code = step_best(c, v, e, seconds, false, &out->forward, err);

    if (code == PL_OK && v->kind->training != NULL)
        return st_bench_steps(&out->train, c, v, e, seconds, err);
    return code != PL_OK ? code : step_best(c, v, e, seconds, true, &out->train, err);
}

pl_code st_bench_variant_time(st_bench_times *out, st_bench_variant *v, const st_bench_case *c, int threads, double seconds,
                              pl_error *err)
{
    nn_engine *e[ST_BENCH_TOGETHER] = { NULL };
    pl_code code = PL_OK;

    *out = (st_bench_times){ 0 };
    v->conf.threads = threads;
    st_bench_set_use(v->set);
    for (int k = 0; k < v->models && code == PL_OK; k++) {
        code = v->kind->open(&e[k], c->model, &v->conf, err);
        if (code == PL_OK)
            code = v->kind->set_params(e[k], c->params, err);
    }
    if (code == PL_OK)
        code = v->models > 1 ? together_best(c, v, e, seconds, &out->forward, err) : alone_best(out, c, v, e[0], seconds, err);
    for (int k = 0; k < v->models; k++) {
        out->bytes += code != PL_OK ? 0 : (double)v->kind->workspace_bytes(e[k]);
        v->kind->close(e[k]);
    }
    return code;
}
