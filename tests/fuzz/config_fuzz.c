/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a workflow give a tree or a problem, and no crash.
 * Built with -fsanitize=fuzzer and -DMOLSIEVE_LIBFUZZER it is a libFuzzer target;
 * as a test it runs over mutations of the seeds below, the same ones every time. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/rng.h"
#include "pipeline/workflow/settings.h"
#include "pipeline/workflow/tree.h"
#include "unit/fake_stages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_stage(const pl_node *root, const pl_settings *ctx)
{
    static const char *const also[] = { "needs", NULL };
    const pl_node *node = pl_node_get(pl_node_get(root, "stages"), "graph");
    void *conf = PL_NEW(ctx->mem, char, sizeof(fake_conf));
    int before = ctx->problems->n;

    if (conf == NULL)
        abort();
    pl_settings_read(ctx, fake_fields, conf, node, "stages.graph", also);
    if (ctx->problems->n == before && before < PL_PROBLEMS_MAX && pl_params_json(fake_fields, conf, ctx->mem) == NULL)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_problems problems = { .mem = mem };
    pl_settings ctx = { .problems = &problems, .mem = mem, .folder = "/tmp" };
    pl_text report = { 0 };
    pl_node *root;

    if (mem == NULL)
        abort();
    root = pl_yaml_parse((const char *)data, size, "f", &problems, mem);
    if (root == NULL && problems.n == 0)
        abort();
    if (root != NULL && root->kind == PL_MAPPING) {
        pl_tree_override(root, "stages.graph.cutoff=${vars.a}", &problems, mem);
        pl_tree_override(root, "stages.graph.targets.0.name=x", &problems, mem);
        pl_tree_substitute(root, &problems, mem);
        read_stage(root, &ctx);
    }
    pl_problems_sort(&problems);
    pl_problems_write(&problems, &report);
    pl_text_free(&report);
    pl_arena_free(mem);
    return 0;
}

#ifndef MOLSIEVE_LIBFUZZER
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char *const seeds[] = {
    "format: 1\nvars: {a: 4.5, b: 'x${vars.a}'}\nstages:\n  read:\n  graph:\n    cutoff: ${vars.a}\n    unit: 1e3\n"
    "    neighbours: {max: auto, edges: knn}\n    cpu_limit: 1m30s\n    memory: 64MiB\n    strict: false\n"
    "    label: \"yes: no\"\n    elements: [C, N]\n    fractions: [0.8, 0.2]\n    targets:\n      - {name: gap, unit: eV}\n"
    "      - name: mu\n    by_name: {b: {weight: 2}, a: {}}\n    needs: [read, split]\n",
    "a: &x [1, 2, {b: c}]\nc: *x\nd: |\n  text\n  more\ne: >-\n  folded\nf: \"\\u00e9\\x41\"\n? g\n: h\n--- \n...\n",
    "\xEF\xBB\xBFstages: {graph: {label: ${env:HOME:-x}, file: ~, unit: 0100, cpu_limit: 1:30, strict: yes}}\n",
};

static size_t mutate(char *to, size_t cap, pl_rng *r)
{
    static const char signs[] = "{}[]:,&*!|>'\"%@`#-?$\n\t \x00\x80\xff~<=.0";
    const char *seed = seeds[pl_rng_below(r, sizeof seeds / sizeof *seeds)];
    size_t n = strlen(seed);

    if (n > cap / 2)
        n = cap / 2;
    memcpy(to, seed, n);
    for (uint64_t k = 1 + pl_rng_below(r, 8); k > 0 && n > 4; k--) {
        size_t at = pl_rng_below(r, n), len = 1 + pl_rng_below(r, n - at < 24 ? n - at : 24);
        uint64_t how = pl_rng_below(r, 4);
        if (how == 0) {
            to[at] = signs[pl_rng_below(r, sizeof signs - 1)];
        } else if (how == 1) { /* cut a piece out */
            memmove(to + at, to + at + len, n - at - len);
            n -= len;
        } else if (how == 2 && n + len < cap) { /* repeat a piece */
            memmove(to + at + len, to + at, n - at);
            n += len;
        } else {
            to[at] = (char)pl_rng_u64(r);
        }
    }
    return n;
}

static int64_t rounds = 4000;

static void any_bytes_give_a_tree_or_a_problem(void **unused)
{
    char text[4096];

    (void)unused;
    for (int64_t i = 0; i < rounds; i++) {
        pl_rng r = pl_rng_at(7, (uint64_t)i, 1);
        size_t n = mutate(text, sizeof text, &r);
        uint8_t *exact = malloc(n ? n : 1); /* so that ASan sees a read beyond the end */
        assert_non_null(exact);
        memcpy(exact, text, n);
        (void)LLVMFuzzerTestOneInput(exact, n);
        free(exact);
    }
    print_message("%lld inputs\n", (long long)rounds);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(any_bytes_give_a_tree_or_a_problem) };

    if (argc > 1 && !pl_parse_int(argv[1], &rounds))
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
