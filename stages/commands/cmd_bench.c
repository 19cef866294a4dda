/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/files/model_file.h"
#include "pipeline/base/par.h"
#include "pipeline/base/text.h"
#include "stages/bench/bench.h"
#include "stages/commands/commands.h"
#include "stages/commands/output/cmd_json.h"
#include "stages/commands/cmd_bench_memory.h"
#include "stages/commands/cmd_bench_roof.h"
#include "stages/files/data_dir.h"
#include "stages/files/version.h"

enum { THREADS = 8, MOLS_MAX = 1000, ORACLE_EDGES = 150 };

static const pl_opt opts[] = {
    { "--batch", 'b', "N", "molecules in a batch (240)" },
    { "--seconds", 's', "S", "seconds to measure each figure, at least one step after the first (5)" },
    { "--threads", 't', "N,..", "numbers of threads (1 and all processors)" },
    { "--graphs", 'g', "WHAT", "bonds, radius5 or both (both)" },
    { "--model", 'm', "FILE", "a model file (the default network with weights of no meaning)" },
    { "--parity", 0, "WHAT", "of the default network: both or natural (both)" },
    { "--molecules", 0, "FILE", "any file that `read` takes (30 of QM9)" },
    { "--variants", 'v', "NAME,..", "only rows with one of these in their name, as \"nodes,avx2 exact\"; `all`: every one" },
    { "--no-reference", 0, NULL, "leave out the reference formulation" },
    { "--memory", 0, NULL, "only what engine cuda would allocate; measures nothing" },
    { "--ranks", 0, "N", "with --memory: training on one of N ranks with optimiser.sharded (1: alone)" },
    { "--roofline", 0, NULL, "each operation of a training step: work, bytes, time, shares of peak and bandwidth" },
    { "--gpu-roof", 0, "F,T,B", "of the GPU: 1e9 operations a second in float32 and on tensor cores in the precision, GB/s" },
    { "--svg", 0, "FILE", "--roofline also as figures, one below the other" },
    { "--json", 0, NULL, "one JSON object in place of the tables" },
    { 0 }
};

typedef struct setup {
    const pl_args *args;
    pl_arena *mem;
    int32_t batch;
    int ranks;
    double seconds;
    int n_threads, threads[THREADS];
    st_bench_peak peak[THREADS];
    double bandwidth[THREADS]; /* --roofline                  */
    double gpu_roof[3];        /* --gpu-roof                  */
    const nn_se3 *model;
    const float *params;
    nn_inputs inputs;
    st_bench_mols mols;
    int n_variants;
    st_bench_variant variant[ST_BENCH_VARIANTS];
    double load; /* before the start                  */
    st_out file; /* --svg                             */
    pl_text svg; /* n_svg figures for it              */
    int n_svg;
    json_t *json; /* NULL: tables                      */
} setup;

/* A row of the table; seconds are those of the best step. */
typedef struct row {
    const char *name;
    int threads;
    st_bench_times t;
    st_bench_work done, peak; /* operations of the step; of the machine in a second */
} row;

/* ---- settings ------------------------------------------------------------ */

static bool number_get(const pl_args *args, const char *name, double min, double max, double *out)
{
    const char *text = pl_arg(args, name);
    char *end;

    if (text == NULL)
        return true;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= min && *out <= max;
}

static bool threads_get(setup *s)
{
    const char *text = pl_arg(s->args, "--threads");
    int all = pl_cpu_count();

    s->threads[s->n_threads++] = 1;
    if (text == NULL && all > 1)
        s->threads[s->n_threads++] = all;
    if (text == NULL)
        return true;
    for (s->n_threads = 0; s->n_threads < THREADS; text++) {
        char *end;
        long n = strtol(text, &end, 10);
        if (end == text || n < 1 || n > 256 || (*end && *end != ','))
            return false;
        s->threads[s->n_threads++] = (int)n;
        text = end;
        if (!*end)
            return true;
    }
    return false;
}

static int settings_get(setup *s)
{
    const char *graphs = pl_arg(s->args, "--graphs"), *parity = pl_arg(s->args, "--parity");
    double batch = 240, ranks = 1;

    s->seconds = 5;
    if (!number_get(s->args, "--batch", 1, 100000, &batch))
        return pl_cmd_usage(s->args, "--batch is a number of molecules, 1 to 100000");
    if (!number_get(s->args, "--seconds", 0, 3600, &s->seconds))
        return pl_cmd_usage(s->args, "--seconds is 0 to 3600");
    if (!number_get(s->args, "--ranks", 1, 1024, &ranks))
        return pl_cmd_usage(s->args, "--ranks is 1 to 1024");
    if (!threads_get(s))
        return pl_cmd_usage(s->args, "--threads is a list like 1,2,8");
    if (graphs != NULL && strcmp(graphs, "bonds") != 0 && strcmp(graphs, "radius5") != 0 && strcmp(graphs, "both") != 0)
        return pl_cmd_usage(s->args, "--graphs is bonds, radius5 or both");
    if (parity != NULL && strcmp(parity, "both") != 0 && strcmp(parity, "natural") != 0)
        return pl_cmd_usage(s->args, "--parity is both or natural");
    if (pl_arg(s->args, "--roofline") != NULL && pl_arg(s->args, "--memory") != NULL)
        return pl_cmd_usage(s->args, "--roofline measures and --memory only counts: give one of them");
    if (pl_arg(s->args, "--svg") != NULL && pl_arg(s->args, "--roofline") == NULL)
        return pl_cmd_usage(s->args, "--svg draws a roofline: give --roofline, too");
    if (!st_bench_gpu_roof_read(s->gpu_roof, pl_arg(s->args, "--gpu-roof")))
        return pl_cmd_usage(s->args, "--gpu-roof is three numbers above 0, as 60000,800000,3900");
    s->batch = (int32_t)batch;
    s->ranks = (int)ranks;
    return 0;
}

static pl_code model_default(setup *s, pl_error *err)
{
    const char *parity = pl_arg(s->args, "--parity");
    nn_se3_conf conf = nn_se3_published();
    nn_se3 *model;
    float *params;
    pl_code code;

    s->inputs = nn_inputs_qm9();
    if (parity != NULL && !strcmp(parity, "natural"))
        conf.parity = NN_PARITY_NATURAL;
    conf.node_features = nn_inputs_node_features(&s->inputs);
    conf.edge_features = nn_inputs_edge_features(&s->inputs);
    code = nn_se3_plan(&model, &conf, s->mem, err);
    if (code != PL_OK)
        return code;
    params = PL_NEW(s->mem, float, model->n_floats);
    if (params == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a model");
    nn_se3_init(model, params, 1);
    s->model = model;
    s->params = params;
    return PL_OK;
}

static pl_code model_get(setup *s, pl_error *err)
{
    const char *path = pl_arg(s->args, "--model");
    nn_model_file *m;
    pl_code code;

    if (path == NULL || !strcmp(path, "default"))
        return model_default(s, err);
    code = nn_model_read(&m, path, s->mem, err);
    if (code == PL_OK && m->model == NULL)
        code = pl_fail(err, PL_ECONFIG, "%s has no network to measure", path);
    if (code != PL_OK)
        return code;
    if (nn_model_networks(m) > 1)
        pl_cmd_say("%s is the mean of %d networks; one of them is measured", path, (int)nn_model_networks(m));
    s->model = m->model;
    s->params = m->params;
    s->inputs = m->inputs;
    return PL_OK;
}

static pl_code mols_get(setup *s, pl_error *err)
{
    const char *path = pl_arg(s->args, "--molecules"), *share;
    int32_t max = s->batch < MOLS_MAX ? s->batch : MOLS_MAX;
    pl_code code = path != NULL ? PL_OK : st_data_dir_find(&share, s->mem, err);

    if (code == PL_OK && path == NULL)
        path = pl_sprintf(s->mem, "%s/workflows/data/qm9-30.sdf", share);
    if (code == PL_OK)
        code = path != NULL ? st_bench_mols_open(&s->mols, path, max, err) : pl_fail(err, PL_ENOMEM, "no memory");
    if (code == PL_ECONFIG && path != NULL)
        pl_at(err, "%s", path);
    return code;
}

/* ---- measuring ----------------------------------------------------------- */

/* The engine's own work, and the peak of the unit that does it. bf16x3: three products for one. */
static void row_work(row *r, const setup *s, const st_bench_case *c, const st_bench_variant *v, int t)
{
    double unit = v->conf.of_contract && !strcmp(v->set != NULL ? v->set : "", "amx") ? s->peak[t].bf16 : s->peak[t].fp32;
    double products = v->conf.of_contract == NN_PREC_BF16X3 ? 3 : 1;

    if (v->kind != &nn_engine_cpu)
        return;
    r->done = st_bench_work_engine(c, v->conf.radial);
    r->done.forward *= products;
    r->done.train *= products;
    r->peak = (st_bench_work){ unit, unit };
}

/* ---- showing ------------------------------------------------------------- */

/* Shared by the rows of one table: the reference formulation's values, per edge. */
typedef struct table {
    const char *graph;
    const st_bench_case *c;
    double reference_forward, reference_train; /* seconds an edge, one thread; 0: not measured */
    json_t *rows;
} table;

static void cell_print(double value, const char *format)
{
    char text[32] = "-";

    if (isfinite(value) && value > 0)
        snprintf(text, sizeof text, format, value);
    (void)printf(" %9s |", text);
}

static void table_head(const setup *s, const table *t)
{
    static const char *const head[] = { "forward", "training", "forward", "training", "forward", "training",
                                        "forward", "training", "forward", "training", "memory" };
    static const char *const unit[] = { "mol/s",   "mol/s",   "us/e/l", "us/e/l", "GFLOP/s*", "GFLOP/s*",
                                        "of peak", "of peak", "x ref",  "x ref",  "MiB" };
    const nn_batch *b = &t->c->batch;

    (void)printf("\n### %s: %d molecules of %.1f atoms and %.1f directed edges\n\n", t->graph, (int)b->n_graphs,
                 (double)b->n_nodes / b->n_graphs, (double)b->n_edges / b->n_graphs);
    if (pl_arg(s->args, "--memory") != NULL)
        return;
    (void)printf("| %-31s | threads |", "variant");
    for (int i = 0; i < 11; i++)
        (void)printf(" %s %s |", head[i], unit[i]);
    (void)printf("\n|%s|--:|", "---");
    for (int i = 0; i < 11; i++)
        (void)printf("--:|");
    (void)printf("\n");
    (void)fflush(stdout);
}

static json_t *row_json(const row *r, const double *v)
{
    static const char *const key[] = { "forward_mol_s",
                                       "train_mol_s",
                                       "forward_us_edge_layer",
                                       "train_us_edge_layer",
                                       "forward_gflops_reference_work",
                                       "train_gflops_reference_work",
                                       "forward_of_peak",
                                       "train_of_peak",
                                       "forward_x_reference",
                                       "train_x_reference",
                                       "memory_mib" };
    json_t *o = json_pack("{s:s, s:i}", "variant", r->name, "threads", r->threads);

    for (int i = 0; i < 11; i++)
        json_object_set_new(o, key[i], isfinite(v[i]) && v[i] > 0 ? json_real(v[i]) : json_null());
    return o;
}

/* n_graphs, n_edges: of the batch that the row was measured with. */
static void row_print(const table *t, const row *r, const st_bench_case *c)
{
    static const char *const format[] = { "%.1f",    "%.1f",    "%.2f", "%.2f", "%.0f", "%.0f",
                                          "%.0f %%", "%.0f %%", "%.2f", "%.2f", "%.0f" };
    int32_t layers = c->model->conf.layers > 1 ? c->model->conf.layers - 1 : 1;
    double n = c->batch.n_graphs, edges = c->batch.n_edges, el = edges * layers;
    st_bench_work ref = st_bench_work_reference(c);
    double v[11] = { n / r->t.forward,
                     n / r->t.train,
                     1e6 * r->t.forward / el,
                     1e6 * r->t.train / el,
                     1e-9 * ref.forward / r->t.forward,
                     1e-9 * ref.train / r->t.train,
                     100 * r->done.forward / r->t.forward / r->peak.forward,
                     100 * r->done.train / r->t.train / r->peak.train,
                     r->threads == 1 ? t->reference_forward * edges / r->t.forward : 0,
                     r->threads == 1 ? t->reference_train * edges / r->t.train : 0,
                     r->t.bytes / (1 << 20) };

    if (t->rows != NULL) {
        json_array_append_new(t->rows, row_json(r, v));
        return;
    }
    (void)printf("| %-31s | %7d |", r->name, r->threads);
    for (int i = 0; i < 11; i++)
        cell_print(v[i], format[i]);
    (void)printf("\n");
    (void)fflush(stdout);
}

/* ---- a table ------------------------------------------------------------- */

/* 1,200 edges, or as many as fit into half of the free memory. */
static int32_t blas_edges(const setup *s)
{
    double bytes = 0.5 * (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);

    return st_bench_blas_edges(s->model, bytes);
}

static void reference_rows(const setup *s, table *t, const ch_graph_opts *graph)
{
    int32_t limits[2] = { s->batch, blas_edges(s) };
    pl_arena *mem = pl_arena_new(1 << 20);
    st_bench_case c = { 0 };
    st_bench_blas b = { 0 };
    pl_error err = { 0 };
    pl_code code = mem != NULL ? st_bench_case_open(&c, s->model, s->params, &s->inputs, &s->mols, graph, limits, &err)
                               : pl_fail(&err, PL_ENOMEM, "no memory");

    if (code == PL_OK)
        code = st_bench_blas_run(&b, &c, 3, mem, &err);
    if (code == PL_OK) {
        double unit = s->peak[0].fp32;
        st_bench_work w = st_bench_work_reference(&c), peak = { unit, unit };
        t->reference_forward = b.forward / c.batch.n_edges;
        t->reference_train = b.train / c.batch.n_edges;
        row_print(t, &(row){ "reference formulation, OpenBLAS", 1, { b.forward, b.train, 0 }, w, peak }, &c);
        row_print(t, &(row){ "the same, R in cache (a bound)", 1, { b.forward, b.train_cached, 0 }, w, peak }, &c);
    } else if (t->rows == NULL) {
        (void)printf("| %-31s | %s |\n", "reference formulation", err.text);
    }
    st_bench_case_close(&c);
    pl_arena_free(mem);
}

static pl_code engine_row(setup *s, const table *t, const ch_graph_opts *graph, st_bench_variant *v, int k, pl_error *err)
{
    row r = { .name = v->name, .threads = s->threads[k] };
    int32_t limits[2] = { s->batch, ORACLE_EDGES };
    st_bench_case small = { 0 };
    const st_bench_case *c = t->c;
    pl_code code = PL_OK;

    if (v->kind == &nn_engine_ref) {
        code = st_bench_case_open(&small, s->model, s->params, &s->inputs, &s->mols, graph, limits, err);
        c = &small;
    }
    if (code == PL_OK)
        code = st_bench_variant_time(&r.t, v, c, r.threads, s->seconds, err);
    if (code == PL_OK) {
        row_work(&r, s, c, v, k);
        row_print(t, &r, c);
    }
    st_bench_case_close(&small);
    return code;
}

static st_bench_roof roof_of(const setup *s, const st_bench_variant *v, int k)
{
    const st_bench_peak gpu = { .fp32 = s->gpu_roof[0], .bf16 = s->gpu_roof[1] };

    return v->kind == &nn_engine_cuda ? st_bench_roof_of(v, s->threads[k], &gpu, s->gpu_roof[2])
                                      : st_bench_roof_of(v, s->threads[k], &s->peak[k], s->bandwidth[k]);
}

/* --roofline in place of the table's rows. */
static pl_code roof_rows(setup *s, const table *t, pl_error *err)
{
    const char *words = pl_arg(s->args, "--variants");
    pl_code code = PL_OK;

    if (s->json == NULL)
        (void)printf("\n### %s: %d molecules, %d atoms, %d directed edges\n", t->graph, (int)t->c->batch.n_graphs,
                     (int)t->c->batch.n_nodes, (int)t->c->batch.n_edges);
    for (int k = 0; k < s->n_threads; k++)
        for (int i = 0; i < s->n_variants && code == PL_OK; i++) {
            st_bench_roof roof = roof_of(s, &s->variant[i], k);
            if (!st_bench_roof_wanted(&s->variant[i], words, s->threads[k]))
                continue;
            code = st_bench_roof_run(&roof, t->c, &s->variant[i], s->seconds, err);
            if (code == PL_OK)
                code = st_bench_roof_beside(&roof, t->c, &s->variant[i], s->seconds, err);
            if (code == PL_OK)
                s->n_svg += st_bench_roof_plot(&s->svg, t->graph, &roof, s->n_svg);
            if (code == PL_OK && t->rows != NULL)
                json_array_append_new(t->rows, st_bench_roof_json(&roof));
            else if (code == PL_OK)
                st_bench_roof_print(&roof);
        }
    return code;
}

/* --roofline: whether there is a variant to measure. */
static pl_code roof_check(const setup *s, pl_error *err)
{
    const char *words = pl_arg(s->args, "--variants");
    int n = 0, drawn = 0;

    for (int k = 0; k < s->n_threads; k++)
        for (int i = 0; i < s->n_variants; i++)
            if (st_bench_roof_wanted(&s->variant[i], words, s->threads[k])) {
                n++;
                drawn += s->variant[i].kind != &nn_engine_cuda || s->gpu_roof[0] > 0;
            }
    if (n > 0 && drawn == 0 && pl_arg(s->args, "--svg") != NULL)
        return pl_fail(err, PL_ECONFIG, "--svg draws no roof of a GPU that is not known: give --gpu-roof, too");
    if (n > 0)
        return PL_OK;
    return pl_fail(err, PL_ECONFIG,
                   "--roofline measures engines cpu and cuda, and --variants %s names none that runs here; try --variants fp32",
                   words != NULL ? words : "");
}

static pl_code rows_measure(setup *s, table *t, const ch_graph_opts *graph, pl_error *err)
{
    pl_code code = PL_OK;

    if (s->json == NULL)
        table_head(s, t);
    if (pl_arg(s->args, "--memory") == NULL && pl_arg(s->args, "--no-reference") == NULL)
        reference_rows(s, t, graph);
    for (int k = 0; k < s->n_threads && code == PL_OK && pl_arg(s->args, "--memory") == NULL; k++)
        for (int i = 0; i < s->n_variants && code == PL_OK; i++)
            if (st_bench_variant_wanted(&s->variant[i], pl_arg(s->args, "--variants"), s->threads[k]))
                code = engine_row(s, t, graph, &s->variant[i], k, err);
    return code == PL_OK ? st_bench_memory_print(t->c, s->ranks, t->rows, err) : code;
}

static pl_code graph_table(setup *s, const char *name, const ch_graph_opts *graph, pl_error *err)
{
    int32_t limits[2] = { s->batch, 0 };
    st_bench_case c;
    table t = { .graph = name, .c = &c, .rows = s->json != NULL ? json_array() : NULL };
    pl_code code = st_bench_case_open(&c, s->model, s->params, &s->inputs, &s->mols, graph, limits, err);

    if (code == PL_OK)
        code = pl_arg(s->args, "--roofline") != NULL ? roof_rows(s, &t, err) : rows_measure(s, &t, graph, err);
    if (s->json != NULL)
        json_object_set_new(json_object_get(s->json, "graphs"), name,
                            json_pack("{s:i, s:i, s:i, s:O}", "molecules", (int)c.batch.n_graphs, "atoms", (int)c.batch.n_nodes,
                                      "edges", (int)c.batch.n_edges, "rows", t.rows));
    json_decref(t.rows);
    st_bench_case_close(&c);
    return code;
}

/* ---- the command --------------------------------------------------------- */

static void head_print(const setup *s)
{
    char cpu[256];
    const nn_se3_conf *m = &s->model->conf;

    (void)printf("    molsieve bench");
    for (int i = 2; i < s->args->argc; i++)
        (void)printf(" %s", s->args->argv[i]);
    (void)printf("\n\nmolsieve %s, commit %s; %d processors: %s. Load average before the start: %.2f.\n", st_version, st_commit,
                 pl_cpu_count(), st_cpu_features(cpu, sizeof cpu), s->load);
    (void)printf("Network: %d layers, %d degrees, %d channels, %d heads; %zu parameters.\nMeasured peak:", (int)m->layers,
                 (int)m->degrees, (int)m->channels, (int)m->heads, s->model->n_floats);
    for (int k = 0; k < s->n_threads; k++) {
        (void)printf("%s float32 %.0f GFLOP/s", k ? ";" : "", 1e-9 * s->peak[k].fp32);
        if (s->peak[k].bf16 > 0)
            (void)printf(", bf16 tiles %.0f GFLOP/s", 1e-9 * s->peak[k].bf16);
        if (s->peak[k].dot16 > 0)
            (void)printf(", bf16 pairs %.0f GFLOP/s", 1e-9 * s->peak[k].dot16);
        (void)printf(" with %d thread%s", s->threads[k], s->threads[k] == 1 ? "" : "s");
    }
    (void)printf(".\n");
}

static void foot_print(const setup *s)
{
    double load = 0;
    const char *last = "";

    if (pl_arg(s->args, "--roofline") != NULL) {
        st_bench_roof_foot_print();
        return;
    }
    (void)getloadavg(&load, 1);
    (void)printf(
        "\nEach figure is the best step within about %g s: processor time with one thread, wall time with more. Training:\n"
        "folding the weights, forward and backward, without the optimiser. cuda: wall time; its training is the mean of\n"
        "whole steps with the optimiser. us/e/l: microseconds per edge and hidden layer.\n"
        "\\* counts the reference formulation's work along edges for the same molecules, not the work really done.\n"
        "5 models: seconds per model. At once: from one batch, each on its own stream; else one after the other.\n"
        "Of peak: the work really done along edges (products with zeros and all three of bf16x3 count) as a share of the\n"
        "measured peak of the unit that does it. x ref: speed relative to the reference formulation, same run, one thread.\n",
        s->seconds);
    for (int i = 0; i < s->n_variants; i++)
        if (s->variant[i].refused[0] && s->variant[i].main && strcmp(s->variant[i].refused, last) != 0)
            (void)printf("Not here: %s (%s).\n", s->variant[i].name, last = s->variant[i].refused);
    (void)printf("Load average at the end: %.2f.\n", load);
}

static pl_code json_print(const setup *s, pl_error *err)
{
    json_t *peaks = json_array();

    for (int k = 0; k < s->n_threads; k++)
        json_array_append_new(peaks,
                              json_pack("{s:i, s:f, s:f, s:f}", "threads", s->threads[k], "fp32_gflops", 1e-9 * s->peak[k].fp32,
                                        "bf16_gflops", 1e-9 * s->peak[k].bf16, "bf16_pairs_gflops", 1e-9 * s->peak[k].dot16));
    json_object_set_new(s->json, "peak", peaks);
    json_object_set_new(s->json, "load_before", json_real(s->load));
    json_object_set_new(s->json, "commit", json_string(st_commit));
    return st_json_print(s->json, JSON_REAL_PRECISION(5), err);
}

static pl_code measure(setup *s, pl_error *err)
{
    static const struct {
        const char *name;
        ch_graph_opts opts;
    } graphs[] = { { "bonds", { .edges = CH_EDGES_BONDS } }, { "radius5", { .edges = CH_EDGES_RADIUS, .cutoff = 5 } } };
    const char *wanted = pl_arg(s->args, "--graphs");
    bool only = pl_arg(s->args, "--memory") != NULL;
    pl_code code = model_get(s, err);

    if (code == PL_OK)
        code = mols_get(s, err);
    if (code != PL_OK)
        return code;
    s->n_variants = st_bench_variants(s->variant, ST_BENCH_VARIANTS);
    if (pl_arg(s->args, "--roofline") != NULL)
        code = roof_check(s, err);
    if (code == PL_OK && pl_arg(s->args, "--svg") != NULL) /* before minutes of measuring */
        code = st_out_open(&s->file, pl_arg(s->args, "--svg"), s->mem, err);
    if (code != PL_OK)
        return code;
    for (int k = 0; k < s->n_threads && !only; k++)
        s->peak[k] = st_bench_peak_find(s->threads[k]);
    for (int k = 0; k < s->n_threads && pl_arg(s->args, "--roofline") != NULL; k++)
        s->bandwidth[k] = st_bench_bandwidth_find(s->threads[k]);
    if (s->json == NULL && !only)
        head_print(s);
    for (int g = 0; g < 2 && code == PL_OK; g++)
        if (wanted == NULL || !strcmp(wanted, "both") || !strcmp(wanted, graphs[g].name))
            code = graph_table(s, graphs[g].name, &graphs[g].opts, err);
    if (code != PL_OK)
        return code;
    if (s->json != NULL)
        code = json_print(s, err);
    else if (!only)
        foot_print(s);
    if (code == PL_OK && pl_arg(s->args, "--svg") != NULL)
        code = st_bench_roof_keep(&s->file, &s->svg, s->n_svg, err);
    return code;
}

static int run(const pl_app *app, const pl_args *args)
{
    setup s = { .args = args, .mem = pl_arena_new(1 << 20) };
    pl_error err = { 0 };
    int status = settings_get(&s);
    pl_code code;

    (void)app;
    if (status)
        return status;
    (void)getloadavg(&s.load, 1);
    if (s.load > 0.5 && pl_arg(args, "--memory") == NULL)
        pl_cmd_say("warning: the load average is %.2f: other programs are at work, and the figures will be too low", s.load);
    if (pl_arg(args, "--json") != NULL)
        s.json = json_pack("{s:{}}", "graphs");
    code = s.mem != NULL ? measure(&s, &err) : pl_fail(&err, PL_ENOMEM, "no memory");
    status = code != PL_OK ? pl_cmd_fail(&err) : 0;
    json_decref(s.json);
    st_out_close(&s.file);
    pl_text_free(&s.svg);
    st_bench_mols_close(&s.mols);
    pl_arena_free(s.mem);
    return status;
}

const pl_cmd st_cmd_bench = {
    .name = "bench",
    .args = "",
    .help = "measure the speed of models, against the reference formulation",
    .about = "Measures every engine, set of kernels, radial mode and precision that this\n"
             "machine has, on real molecules. If OpenBLAS is installed, the same run measures\n"
             "the reference formulation (radial matrices and bases in memory, OpenBLAS). The\n"
             "tables are Markdown. Run it on an idle machine.\n"
             "\n"
             "  molsieve bench --graphs bonds --seconds 2\n"
             "  molsieve bench --model workflows/models/esol.safetensors --variants nodes\n",
    .opts = opts,
    .max_args = PL_ARGS_NONE,
    .run = run,
};
