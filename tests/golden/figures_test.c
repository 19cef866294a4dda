/* SPDX-License-Identifier: Apache-2.0 */
/* Figures and tables of fixed numbers, byte for byte: those of the report, and the rooflines of `molsieve bench`.
 *
 * tests/golden/figures.txt has them, a line for each element. MOLSIEVE_WRITE=1 writes it; look at the difference then. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "golden/golden_text.h"
#include "pipeline/base/hash.h"
#include "stages/bench/bench.h"
#include "stages/commands/cmd_bench_roof.h"
#include "stages/report/html.h"
#include "stages/report/plot.h"

static pl_text all;

/* What was drawn, with a line for each element. */
static void add(const char *name, pl_text *drawn)
{
    pl_text_addf(&all, "== %s\n", name);
    for (const char *c = pl_text_str(drawn); *c != '\0'; c++) {
        pl_text_add_n(&all, c, 1);
        if (*c == '>' && c[1] == '<')
            pl_text_add(&all, "\n");
    }
    pl_text_add(&all, "\n");
    pl_text_reset(drawn);
}

static double ramp(int i, double step) { return step * i + (i % 3) * 0.25; }

static void histograms_add(pl_text *out)
{
    static const double ends[][2] = { { 0, 1 }, { -3, 40 }, { 100, 100 }, { 0, 12000 }, { -1e-3, 2e-3 }, { 0, 60 } };

    for (int k = 0; k < 12; k++) {
        const char *name = k == 0 ? "a<b" : "mw";
        st_histogram h = { .name = name, .unit = k % 2 ? "u" : "" };
        st_histogram_init(&h, ends[k / 2][0], ends[k / 2][1], k % 2);
        for (int i = -2; i < 50; i++)
            st_histogram_put(&h, ends[k / 2][0] + (ends[k / 2][1] - ends[k / 2][0]) * i * i / 2200, i % 4 == 0);
        st_plot_histogram(out, &h);
        add("histogram", out);
    }
}

static void curves_add(pl_text *out)
{
    static double x[900], y[4][900];
    st_curve c[4] = { { "train", x, y[0], 900 }, { "valid", x, y[1], 7 }, { "none", x, y[2], 0 }, { "one", x, y[3], 1 } };

    for (int i = 0; i < 900; i++) {
        x[i] = i + 1;
        for (int k = 0; k < 4; k++)
            y[k][i] = 5.0 / (i + 1 + k) - k;
    }
    st_plot_curves(out, "loss <of> steps", "step", "loss", c, 4);
    add("four curves", out);
    for (int n = 1; n <= 8; n++) {
        c[0].n = n;
        st_plot_curves(out, "few", "epoch", "MAE / eV", c, 1);
        add("few points", out);
    }
    for (int n = 399; n <= 402; n++) {
        c[0].n = n;
        st_plot_curves(out, "thinned", "epoch", "MAE / eV", c, 1);
        add("thinned", out);
    }
    for (int i = 0; i < 11; i++) {
        x[i] = 0.1 * i;
        y[0][i] = 0.1 * i * (2 - 0.1 * i);
        y[1][i] = 1 - 0.05 * i;
    }
    c[0].n = c[1].n = 11;
    st_plot_shares(out, "ROC", "false positives", "true positives", c, 2);
    add("shares", out);
    st_plot_shares(out, "falls", "recall", "precision", c + 1, 1);
    add("shares", out);
}

static void parities_add(pl_text *out)
{
    static st_parity p;

    for (int k = 0; k < 3; k++) {
        p = (st_parity){ .name = "gap", .unit = k ? "eV" : "", .scale = st_scale_nice(-2 * k, 3 + 10 * k, 5) };
        for (int i = 0; i < 40; i++)
            st_parity_put(&p, ramp(i, 0.1) - k, ramp(i, 0.12) - k - 0.2);
        st_parity_put(&p, -99, 99);
        st_plot_parity(out, &p);
        add("parity", out);
    }
}

static void texts_add(pl_text *out)
{
    static const double x[] = { 0, -0.0, 1, 9999.4, 9999.5, 10000, 123456.7, -0.00012345, 1e-12, 1e20, -10000, 0.5 };
    static const int64_t n[] = { 0, 1, 999, 1000, 999999, 1000000, -1234567 };

    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        for (int digits = 1; digits < 6; digits += 2)
            st_html_real(out, x[i], digits);
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        st_html_count(out, n[i]);
    for (int i = 0; i < 6; i++)
        st_html_cut(out, "ab<\xc3\xa9>", i);
    add("texts", out);
}

/* ---- rooflines ---- */

enum { ROOFS = 7 };

/* Without counts, without a peak, with one unit or two, with three products for each, with products by cuBLASLt. */
static st_bench_roof roof_of(int k)
{
    st_bench_roof r = {
        .variant = "cpu portable exact fp32", .threads = k + 1, .flops = 118e9, .bytes = 10.6e9, .products = 1, .step = 0.02
    };

    for (int i = 0; i < NN_OPS; i++) {
        const double flops = i == 2 ? 0 : 1e6 * (i + 1) * (i + 1) * (i + 1);
        r.op[i] = (st_bench_roof_op){ .flops = flops,
                                      .bytes = i == 0 ? 0 : 2e5 * (i + 1) * (i % 4 + 1),
                                      .seconds = i == 4 ? 0 : 1e-4 * (i + 1) };
        r.op[i].rounded = k >= 3 ? 0.75 * r.op[i].flops : 0;
        r.cublaslt[i] = k == 5 && i % 3 == 1 ? 0.5e-4 * i : 0;
    }
    if (k == 1)
        r.flops = 0;
    if (k == 2)
        r.bytes = 0;
    if (k >= 3) {
        r.unit = k == 6 ? "bf16 pairs" : "bf16 tiles";
        r.unit_flops = k == 6 ? 200e9 : 900e9;
        r.products = k >= 4 ? 3 : 1;
    }
    return r;
}

/* What was printed since. */
static void printed_add(const char *name, FILE *to, int before)
{
    char line[4096];

    assert_int_equal(fflush(stdout), 0);
    assert_int_equal(dup2(before, 1), 1);
    pl_text_addf(&all, "== %s\n", name);
    rewind(to);
    while (fgets(line, sizeof line, to) != NULL)
        pl_text_add(&all, line);
    rewind(to);
    assert_int_equal(ftruncate(fileno(to), 0), 0);
    assert_int_equal(dup2(fileno(to), 1), 1);
}

static void tables_add(void)
{
    FILE *to = tmpfile();
    int before = dup(1);

    assert_true(to != NULL && before >= 0 && fflush(stdout) == 0 && dup2(fileno(to), 1) == 1);
    for (int k = 0; k < ROOFS; k++) {
        st_bench_roof r = roof_of(k);
        off_t there;
        st_bench_roof_print(&r);
        there = lseek(fileno(to), 0, SEEK_END); /* a table of minutes is there to read when it is printed */
        printed_add("a table of operations", to, before);
        assert_true(there > 500);
    }
    st_bench_roof_foot_print();
    printed_add("below the tables", to, before);
    assert_int_equal(dup2(before, 1), 1);
    assert_int_equal(close(before), 0);
    assert_int_equal(fclose(to), 0);
}

static void rooflines_add(pl_text *out)
{
    for (int k = 0; k < ROOFS; k++) {
        st_bench_roof r = roof_of(k);
        json_t *o = st_bench_roof_json(&r);
        char *text = json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(5));
        bool drawn = st_bench_roof_plot(out, "bonds", &r, k);
        assert_true(drawn == (k != 1 && k != 2));
        add("a roofline", out);
        pl_text_addf(&all, "== the same as JSON\n%s\n", text);
        free(text);
        json_decref(o);
    }
    pl_text_add(out, "<g></g>\n");
    for (int n = 1; n < 4; n++) {
        pl_text page = { 0 };
        st_roof_page(&page, out, n);
        add("a page", &page);
        pl_text_free(&page);
    }
    pl_text_reset(out);
}

/* ---- what the rooflines count ---- */

/* Operations, those with rounded factors and bytes of a step, for each way to compute it. */
static void counts_add(void)
{
    static const nn_precision precision[] = { NN_PREC_FP32, NN_PREC_BF16, NN_PREC_FP16, NN_PREC_BF16X3 };
    pl_arena *mem = pl_arena_new(1 << 16);

    pl_text_add(&all, "== counts\n");
    for (int k = 0; k < 32; k++) {
        const nn_se3_conf conf = {
            2, 3, 4, 2, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, k % 2 ? NN_PARITY_NATURAL : NN_PARITY_BOTH, { 0 }, false
        };
        const st_bench_variant v = { .kind = k / 2 % 2 ? &nn_engine_cuda : &nn_engine_cpu,
                                     .conf = { .radial = k / 4 % 2 ? NN_RADIAL_EXACT : NN_RADIAL_NODES,
                                               .of_contract = precision[k / 8] } };
        st_bench_case c = { .batch = { .n_graphs = 2, .n_nodes = 5, .n_edges = 8, .n_pairs = 4, .n_edge_features = 4 } };
        st_bench_roof_op op[NN_OPS] = { { 0 } };
        nn_se3 *model;
        assert_int_equal(nn_se3_plan(&model, &conf, mem, NULL), PL_OK);
        c.model = model;
        st_bench_roof_count(op, &c, &v, 3);
        pl_text_addf(&all, "%s, %s, %s, precision %d\n", v.kind == &nn_engine_cpu ? "cpu" : "cuda", k % 2 ? "natural" : "both",
                     k / 4 % 2 ? "exact" : "nodes", (int)v.conf.of_contract);
        for (int i = 0; i < NN_OPS; i++)
            pl_text_addf(&all, "  %.10g %.10g %.10g\n", op[i].flops, op[i].rounded, op[i].bytes);
    }
    pl_arena_free(mem);
}

/* ---- many figures, of each a digest: a place that a label takes is decided by a pixel in some of them ---- */

enum { MADE = 60 };

static double made(uint64_t *seed, double lo, double hi)
{
    return lo + (hi - lo) * (double)(pl_hash64(seed, sizeof *seed, (*seed)++) >> 11) * 0x1p-53;
}

static void digest_add(pl_text *drawn)
{
    pl_text_addf(&all, "%016llx\n", (unsigned long long)pl_hash64(pl_text_str(drawn), drawn->len, 0));
    pl_text_reset(drawn);
}

/* Few dots far apart, and as many as there may be in a small part. */
static void made_rooflines_add(pl_text *out, uint64_t *seed)
{
    static const char *const names[] = { "a", "key", "values", "attention", "a longer name", "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9" };

    pl_text_add(&all, "== made rooflines\n");
    for (int k = 0; k < MADE; k++) {
        st_roof r = { .title = names[k % 6], .bandwidth = pow(10, made(seed, 0, 3)), .n_peaks = 1 + k % 2, .n = k % 17 };
        const double wide = made(seed, 0.1, 2.5);
        for (int i = 0; i < r.n_peaks; i++)
            r.peak[i] = (st_roof_peak){ names[(k + i) % 6], r.bandwidth * pow(10, made(seed, 0, 2)) };
        for (int i = 0; i < r.n; i++) {
            const double x = pow(10, made(seed, -wide, wide)), roof = fmin(x * r.bandwidth, r.peak[0].rate);
            r.dot[i] = (st_roof_dot){ names[(k + i) % 5], "says", (st_roof_kind)(i % 3), x, roof * made(seed, 0.02, 1) };
        }
        st_plot_roofline(out, &r);
        digest_add(out);
    }
}

static void made_plots_add(pl_text *out, uint64_t *seed)
{
    static double x[500], y[ST_CURVES_MAX][500];
    static st_parity p;

    pl_text_add(&all, "== made histograms, curves and parities\n");
    for (int k = 0; k < MADE; k++) {
        const double lo = made(seed, -5, 5), wide = pow(10, made(seed, -2, 4));
        st_histogram h = { .name = "mw", .unit = "u" };
        st_curve c[ST_CURVES_MAX] = {
            { "train", x, y[0], k }, { "valid", x, y[1], k / 2 }, { "a third", x, y[2], k % 5 }, { "d", x, y[3], 1 }
        };
        st_histogram_init(&h, lo, lo + wide, k % 3 == 0);
        p = (st_parity){ .name = "gap", .unit = k % 2 ? "eV" : "", .scale = st_scale_nice(lo, lo + wide, 3 + k % 5) };
        for (int i = 0; i < 300; i++) {
            const double v = lo + wide * made(seed, -0.05, 1.05);
            x[i] = i == 0 ? lo : x[i - 1] + made(seed, 0, wide);
            for (int j = 0; j < ST_CURVES_MAX; j++)
                y[j][i] = made(seed, j, 1 + wide);
            st_histogram_put(&h, k % 3 == 0 ? floor(v) : v, i % 3 == 0);
            st_parity_put(&p, v, v + wide * made(seed, -0.1, 0.1));
        }
        st_plot_histogram(out, &h);
        digest_add(out);
        st_plot_curves(out, "made", "epoch", "MAE", c, 1 + k % ST_CURVES_MAX);
        digest_add(out);
        st_plot_parity(out, &p);
        digest_add(out);
    }
}

static void made_texts_add(pl_text *out, uint64_t *seed)
{
    pl_text_add(&all, "== made numbers\n");
    for (int k = 0; k < MADE; k++) {
        for (int i = 0; i < 40; i++) {
            st_html_real(out, made(seed, -1, 1) * pow(10, i / 2 - 8), 1 + i % 6);
            st_html_count(out, (int64_t)(made(seed, -1, 1) * pow(10, i / 3)));
        }
        digest_add(out);
    }
}

static void roofs_read_add(void)
{
    static const char *const words[] = { "1,2,3", "1.5,2e3,0.5", "1,2",     "1,2,3,4", "1,2,x", "0,1,2", "1,-1,2", "1,2,0",
                                         "",      "1;2;3",       "1e9,2,3", "1,2,3 ",  ",,",    "x",     "1,2,1e9" };

    pl_text_add(&all, "== --gpu-roof\n");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        double roof[3] = { 0 };
        bool good = st_bench_gpu_roof_read(roof, words[i]);
        pl_text_addf(&all, "'%s' %s", words[i], good ? "good" : "bad");
        for (int k = 0; k < 3 && good; k++)
            pl_text_addf(&all, " %.4g", roof[k]);
        pl_text_add(&all, "\n");
    }
}

static void figures_and_tables_are_drawn_as_before(void **state)
{
    pl_text out = { 0 };
    uint64_t seed = 1;

    (void)state;
    texts_add(&out);
    histograms_add(&out);
    curves_add(&out);
    parities_add(&out);
    tables_add();
    rooflines_add(&out);
    roofs_read_add();
    counts_add();
    made_rooflines_add(&out, &seed);
    made_plots_add(&out, &seed);
    made_texts_add(&out, &seed);
    pl_text_free(&out);
    golden_check(MOLSIEVE_TESTS "/golden/figures.txt", &all);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(figures_and_tables_are_drawn_as_before) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
