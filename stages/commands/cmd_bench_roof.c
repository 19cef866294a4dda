/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "stages/commands/cmd_bench_roof.h"
#include "stages/report/plot.h"

static const char *const names[NN_OPS] = { [NN_OP_PREPARE] = "prepare",
                                           [NN_OP_RADIAL] = "radial",
                                           [NN_OP_EDGES] = "edges",
                                           [NN_OP_ATTENTION] = "attention",
                                           [NN_OP_SUM] = "sum",
                                           [NN_OP_HEAD] = "head",
                                           [NN_OP_HEAD_BACK] = "head back",
                                           [NN_OP_SUM_BACK] = "sum back",
                                           [NN_OP_EDGES_BACK] = "edges back",
                                           [NN_OP_RADIAL_BACK] = "radial back",
                                           [NN_OP_ATTENTION_BACK] = "attention back",
                                           [NN_OP_WEIGHTS] = "weights" };

bool st_bench_gpu_roof_read(double roof[3], const char *text)
{
    static const char behind[3] = { ',', ',', '\0' };
    char *end;

    for (int i = 0; text != NULL && i < 3; i++, text = end + 1) {
        roof[i] = 1e9 * strtod(text, &end);
        if (end == text || !(roof[i] > 0 && roof[i] < 1e18) || *end != behind[i])
            return false;
    }
    return true;
}

/* What is shown of an operation: shares of the two roofs, of the step. */
typedef struct shares {
    double intensity, of_peak, of_bandwidth, of_step;
} shares;

static shares shares_of(const st_bench_roof *r, int i)
{
    const st_bench_roof_op *o = &r->op[i];
    shares s = { 0 };
    double sum = 0;

    for (int k = 0; k < NN_OPS; k++)
        sum += r->op[k].seconds;
    s.of_step = sum > 0 ? o->seconds / sum : 0;
    if (!(o->bytes > 0 && o->seconds > 0))
        return s;
    s.intensity = o->flops / o->bytes;
    s.of_peak = st_bench_roof_least(r, o) / o->seconds;
    s.of_bandwidth = r->bytes > 0 ? o->bytes / o->seconds / r->bytes : 0;
    return s;
}

static bool has_roof(const st_bench_roof *r) { return r->flops > 0 && r->bytes > 0; }

/* 20 characters for the nearer roof. */
static void bar_print(double share)
{
    int n = share > 1 ? 20 : (int)(20 * share + 0.5);

    (void)printf(" `");
    for (int i = 0; i < 20; i++)
        (void)printf("%c", i < n ? '#' : '.');
    (void)printf("` |\n");
}

static void roof_print(const st_bench_roof *r)
{
    (void)printf("\n%s, %d thread%s: roof ", r->variant, r->threads, r->threads == 1 ? "" : "s");
    if (!has_roof(r)) {
        (void)printf("not known (--gpu-roof)\n\n");
        return;
    }
    (void)printf("%.0f GFLOP/s", 1e-9 * r->flops);
    if (r->unit != NULL)
        (void)printf(", %.0f of %s for products of rounded factors%s,", 1e-9 * r->unit_flops, r->unit,
                     r->products == 3 ? " (three for each)" : "");
    (void)printf(" and %.1f GB/s, which meet at %.1f", 1e-9 * r->bytes, r->flops / r->bytes);
    if (r->unit != NULL)
        (void)printf(" and %.1f", r->unit_flops / r->products / r->bytes);
    (void)printf(" flop/byte.\n\n");
}

/* Whether the products were also measured by cuBLASLt. */
static bool has_beside(const st_bench_roof *r)
{
    for (int i = 0; i < NN_OPS; i++)
        if (r->cublaslt[i] > 0)
            return true;
    return false;
}

void st_bench_roof_print(const st_bench_roof *r)
{
    const char *rounded = r->unit != NULL ? " rounded |" : "";
    const char *line = r->unit != NULL ? "--:|" : "", *beside = has_beside(r) ? " us, cuBLASLt |" : "";

    roof_print(r);
    (void)printf("| operation | us |%s of step | MFLOP |%s MB | flop/byte | of peak | of bandwidth | nearer roof | share of it |\n"
                 "|---|--:|%s--:|--:|%s--:|--:|--:|--:|---|---|\n",
                 beside, rounded, *beside ? "--:|" : "", line);
    for (int i = 0; i < NN_OPS; i++) {
        const st_bench_roof_op *o = &r->op[i];
        shares s = shares_of(r, i);
        bool arithmetic = s.of_peak > s.of_bandwidth;
        if (!(o->seconds > 0))
            continue;
        (void)printf("| %-14s | %9.0f |", names[i], 1e6 * o->seconds);
        if (*beside)
            (void)printf(" %9.0f |", 1e6 * r->cublaslt[i]);
        (void)printf(" %3.0f %% |", 100 * s.of_step);
        if (!(o->bytes > 0)) {
            (void)printf(" - |%s - | - | - | - | not counted | |\n", r->unit != NULL ? " - |" : "");
            continue;
        }
        (void)printf(" %8.2f |", 1e-6 * o->flops);
        if (r->unit != NULL)
            (void)printf(" %3.0f %% |", o->flops > 0 ? 100 * o->rounded / o->flops : 0);
        if (!has_roof(r)) {
            (void)printf(" %7.2f | %6.1f | - | - | not known | |\n", 1e-6 * o->bytes, s.intensity);
            continue;
        }
        (void)printf(" %7.2f | %6.1f | %4.1f %% | %4.1f %% | %-10s |", 1e-6 * o->bytes, s.intensity, 100 * s.of_peak,
                     100 * s.of_bandwidth, arithmetic ? "arithmetic" : "memory");
        bar_print(arithmetic ? s.of_peak : s.of_bandwidth);
    }
    (void)fflush(stdout);
}

json_t *st_bench_roof_json(const st_bench_roof *r)
{
    json_t *list = json_array();

    for (int i = 0; i < NN_OPS; i++) {
        shares s = shares_of(r, i);
        json_t *o = json_pack("{s:s, s:f, s:f}", "operation", names[i], "seconds", r->op[i].seconds, "of_step", s.of_step);
        if (r->op[i].bytes > 0)
            json_object_update_new(o, json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "flops", r->op[i].flops, "rounded",
                                                r->op[i].rounded, "bytes", r->op[i].bytes, "flops_per_byte", s.intensity, "of_peak",
                                                s.of_peak, "of_bandwidth", s.of_bandwidth));
        if (r->cublaslt[i] > 0)
            json_object_set_new(o, "cublaslt_seconds", json_real(r->cublaslt[i]));
        json_array_append_new(list, o);
    }
    return json_pack("{s:s, s:i, s:f, s:s?, s:f, s:i, s:f, s:f, s:o}", "variant", r->variant, "threads", r->threads, "peak_gflops",
                     1e-9 * r->flops, "unit", r->unit, "unit_gflops", 1e-9 * r->unit_flops, "products", r->products,
                     "bandwidth_gb_s", 1e-9 * r->bytes, "step_seconds", r->step, "operations", list);
}

static st_roof_kind kind_of(int op)
{
    if (op == NN_OP_WEIGHTS)
        return ST_ROOF_WEIGHTS;
    return op < NN_OP_HEAD_BACK ? ST_ROOF_FORWARD : ST_ROOF_BACK;
}

/* What was counted and took time. */
static void dots_add(st_roof *plot, const st_bench_roof *r, char says[][160])
{
    for (int i = 0; i < NN_OPS; i++) {
        const st_bench_roof_op *o = &r->op[i];
        shares s = shares_of(r, i);
        if (!(o->bytes > 0 && o->flops > 0 && o->seconds > 0))
            continue;
        snprintf(says[i], 160, "%s: %.3g ms, %.0f %% of the step, %.1f MFLOP, %.2f MB; %.1f %% of peak, %.1f %% of bandwidth",
                 names[i], 1e3 * o->seconds, 100 * s.of_step, 1e-6 * o->flops, 1e-6 * o->bytes, 100 * s.of_peak,
                 100 * s.of_bandwidth);
        plot->dot[plot->n++] = (st_roof_dot){ names[i], says[i], kind_of(i), s.intensity, 1e-9 * o->flops / o->seconds };
    }
}

bool st_bench_roof_plot(pl_text *out, const char *title, const st_bench_roof *r, int i)
{
    char says[NN_OPS][160], name[2][80], heading[160];
    st_roof plot = { .title = heading, .bandwidth = 1e-9 * r->bytes, .n_peaks = 1, .peak = { { name[0], 1e-9 * r->flops } } };

    if (!has_roof(r))
        return false;
    snprintf(heading, sizeof heading, "%s, %s, %d thread%s", title, r->variant, r->threads, r->threads == 1 ? "" : "s");
    snprintf(name[0], sizeof name[0], "%.0f GFLOP/s in float32", 1e-9 * r->flops);
    if (r->unit != NULL && r->unit_flops / r->products > r->flops) {
        plot.peak[plot.n_peaks++] = (st_roof_peak){ name[1], 1e-9 * r->unit_flops / r->products };
        snprintf(name[1], sizeof name[1], "%.0f GFLOP/s of %s%s", 1e-9 * r->unit_flops / r->products, r->unit,
                 r->products == 3 ? ", three for each" : "");
    }
    dots_add(&plot, r, says);
    pl_text_addf(out, "<g transform=\"translate(0 %d)\">", i * ST_ROOF_HIGH);
    st_plot_roofline(out, &plot);
    pl_text_add(out, "</g>\n");
    return true;
}

pl_code st_bench_roof_keep(st_out *file, const pl_text *figures, int n, pl_error *err)
{
    pl_text page = { 0 };
    pl_code code;

    st_roof_page(&page, figures, n);
    code =
        pl_text_ok(figures) && pl_text_ok(&page) ? st_out_add(file, &page, err) : pl_fail(err, PL_ENOMEM, "no memory for figures");
    if (code == PL_OK)
        code = st_out_keep(file, err);
    pl_text_free(&page);
    return code;
}

void st_bench_roof_foot_print(void)
{
    (void)printf(
        "\nThe quickest training step without its optimiser; times are of all layers together. Work and bytes are\n"
        "counted by the plan, not measured: products and rotations, zeros included, padding left out, what the backward\n"
        "pass computes again once more; arrays in memory once, vectors of atoms once an edge. Bytes that a cache holds\n"
        "from one operation to the next still count, so a share of bandwidth can be above 100 %%. Peak: multiply-adds in\n"
        "registers; bandwidth: a = b + 3 c in memory. Rounded: share of the work whose factors the precision rounds;\n"
        "the least time of an operation is that of both parts, each at the peak of its unit. Exact radial networks are a part\n"
        "of edges. Engine cuda: device times of operations one after the other, without the graph of its training steps.\n");
}
