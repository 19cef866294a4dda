/* SPDX-License-Identifier: Apache-2.0 */
/* A model file with all that one can have: every request for memory while it is written and read, refused in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "pipeline/base/file.h"
#include "tests/unit/model_bench.h"

typedef struct full {
    bench b; /* first */
    nn_moments descriptor[CH_N_FEATURES];
    nn_range own; /* of a target with gaps */
    nn_limits columns[2];
    pl_bytes file;        /* as it is written with memory enough */
    const char *metadata; /* as it is read                       */
} full;

/* ---- the model ---- */

static void add_columns(full *f)
{
    nn_inputs *in = &f->b.m.inputs;

    in->n_columns = 2;
    in->column[0] = (nn_input_column){ .name = "temperature", .unit = "K", .over = { 300, 10 }, .low = 280, .high = 320 };
    in->column[1] = (nn_input_column){ .name = "odd", .unit = "", .over = { 7, 1 }, .low = 4, .high = 9, .at = 1 };
    in->descriptors = true;
    in->descriptor = f->descriptor;
    for (int k = 0; k < CH_N_FEATURES; k++)
        f->descriptor[k] = (nn_moments){ 0.25 * k, 1 + k % 3 };
}

static bool add_molecules(full *f)
{
    nn_domain_molecule two[2] = { { .print = { { 5, 6 } }, .key = "ZZZZZZZZZZZZZZ-UHFFFAOYSA-N" },
                                  { .print = { { 7 } }, .key = "AAAAAAAAAAAAAA-UHFFFAOYSA-N" } };
    char met[1][NN_SEEN_KEY + 1] = { "MMMMMMMMMMMMMM" };
    bench *b = &f->b;

    b->m.range = (nn_range){ .molecules = 70,
                             .low = { 1, -1 },
                             .high = { 9, 1, 2, 3, 1 },
                             .sources = 1u << NN_SOURCE_INPUT,
                             .n_kinds = 2,
                             .kind = { { 6, 0, false }, { 7, 1, true } },
                             .form = "neutral" };
    return nn_domain_make(&b->m.domain, two, 2, b->mem, NULL) == PL_OK &&
           nn_seen_make(&b->m.seen, met, 1, 1, true, b->mem, NULL) == PL_OK;
}

static int open_full(void **state)
{
    full *f = *state = calloc(1, sizeof *f);
    bench *b = *state;
    nn_model_file *back;

    if (f == NULL || !bench_make(b))
        return 1;
    b->target[0] =
        (nn_target){ "gap", "eV", "low", { 1, 0.5, -3, { 0.1, 0.2, 1 } }, { "test", 1, { { 0, 1.5, 40 } } }, 0.25, NULL, NULL };
    b->target[1] = (nn_target){ "mu", "D", "none", { -2, 4, 0, { 0 } }, { .n = 0 }, 0, NULL, NULL };
    bench_describe(b, 1, 2, 2);
    b->m.inputs = (nn_inputs){ .n_elements = 3, .element = { 1, 6, 35 }, .z = true, .bonds = true };
    add_columns(f);
    f->own = (nn_range){ .molecules = 7, .high = { 9 }, .form = "neutral" };
    b->target[1].range = &f->own;
    b->target[1].columns = f->columns;
    if (!made_network(&b->m, 5, b->mem) || !add_molecules(f))
        return 1;
    back = written_and_read(b);
    f->metadata = nn_model_metadata(back, b->mem);
    return pl_file_read(&f->file, b->path, b->mem, NULL) != PL_OK || f->metadata == NULL;
}

/* ---- what is refused ---- */

static bool is_said(pl_code code, const pl_error *err) { return err->text[0] != '\0' && code == PL_ENOMEM; }

/* Whether it was read; if so, as it is, else with an error that says so. */
static bool is_read(full *f, long nth)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    nn_model_file *back = NULL;
    pl_error err = { 0 };
    pl_code code;

    pl_arena_refuse(nth);
    code = nn_model_read(&back, f->b.path, mem, &err);
    pl_arena_refuse(0);
    if (code == PL_OK) {
        assert_string_equal(nn_model_metadata(back, f->b.mem), f->metadata);
        assert_true(nn_domain_same(&back->domain, &f->b.m.domain) && nn_seen_same(&back->seen, &f->b.m.seen));
        assert_memory_equal(back->params, f->b.m.params, f->b.m.model->n_floats * sizeof(float));
    } else if (!is_said(code, &err)) {
        fail_msg("request %ld of reading: %d, \"%s\"", nth, (int)code, err.text);
    }
    pl_arena_free(mem);
    return code == PL_OK;
}

/* Whether it was written. In any case the file is whole. */
static bool is_written(full *f, long nth)
{
    pl_error err = { 0 };
    pl_bytes now;
    pl_code code;

    pl_arena_refuse(nth);
    code = nn_model_write(&f->b.m, f->b.path, &err);
    pl_arena_refuse(0);
    assert_int_equal(pl_file_read(&now, f->b.path, f->b.mem, NULL), PL_OK);
    if (now.len != f->file.len || memcmp(now.data, f->file.data, now.len) != 0)
        fail_msg("request %ld of writing: another file", nth);
    if (code != PL_OK && !is_said(code, &err))
        fail_msg("request %ld of writing: %d, \"%s\"", nth, (int)code, err.text);
    return code == PL_OK;
}

/* Requests in turn, until so many in a row were not needed that no more come. */
static long refused_in_turn(full *f, bool (*one)(full *, long))
{
    long refused = 0, since = 0;

    for (long nth = 1; since < 3; nth++) {
        const bool went = one(f, nth);
        refused += !went;
        since = went ? since + 1 : 0;
    }
    return refused;
}

static void memory_that_is_refused_is_told(void **state)
{
    assert_true(refused_in_turn(*state, is_read) > 20);
    assert_true(refused_in_turn(*state, is_written) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_that_is_refused_is_told, open_full, bench_close),
    };

    return cmocka_run_group_tests_name("model files, refused memory", tests, NULL, NULL);
}
