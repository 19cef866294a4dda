/* SPDX-License-Identifier: Apache-2.0 */
/* Model files with all that they can have: metadata that is wrong is named in full, and what is used while a file is read or written
 * is given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "models/tensors/safetensors.h"
#include "pipeline/base/text.h"
#include "tests/unit/held.h"
#include "tests/unit/model_bench.h"

static nn_moments moments[CH_N_FEATURES];

/* A network with training and validation molecules, a range, columns, descriptors and an interval. */
static int bench_open(void **state)
{
    bench *b = *state = calloc(1, sizeof *b);
    nn_domain_molecule two[2] = { { .print = { { 5, 6 } }, .key = "ZZZZZZZZZZZZZZ-UHFFFAOYSA-N" },
                                  { .print = { { 7 } }, .key = "AAAAAAAAAAAAAA-UHFFFAOYSA-N" } };
    char met[1][NN_SEEN_KEY + 1] = { "MMMMMMMMMMMMMM" };

    if (b == NULL || !bench_make(b))
        return 1;
    b->target[0] =
        (nn_target){ "gap", "eV", "low", { 1, 2, 3, { 0 } }, { "test", 2, { { 0, 1.5, 40 }, { 0.3, 0.5, 30 } } }, 0.5, NULL, NULL };
    bench_describe(b, 1, 2, 1);
    b->m.inputs = (nn_inputs){ .n_elements = 3,
                               .element = { 1, 6, 35 },
                               .z = true,
                               .bonds = true,
                               .n_columns = 2,
                               .column = { { "temperature", "C", { 28.5, 18.5 }, 5, 60, 0 }, { "pH", "", { 7, 1 }, 1, 9, 1 } },
                               .descriptors = true,
                               .descriptor = moments };
    b->m.range = (nn_range){ .molecules = 70, .high = { 9 }, .n_kinds = 1, .kind = { { 7, 1, true } }, .form = "neutral" };
    return !made_network(&b->m, 5, b->mem) || nn_domain_make(&b->m.domain, two, 2, b->mem, NULL) != PL_OK ||
           nn_seen_make(&b->m.seen, met, 1, 1, true, b->mem, NULL) != PL_OK;
}

/* Writes the file with another value of a key; NULL: without it. Memory in mem. */
static void write_with(const bench *b, const char *key, const char *value, pl_arena *mem)
{
    nn_tensors *all, out;
    nn_meta *meta;

    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    assert_int_equal(nn_tensors_read(&all, b->path, mem, NULL), PL_OK);
    out = *all;
    out.meta = meta = PL_NEW(mem, nn_meta, all->n_meta + 1);
    out.n_meta = 0;
    for (int k = 0; k < all->n_meta; k++)
        if (strcmp(all->meta[k].key, key) != 0)
            meta[out.n_meta++] = all->meta[k];
    if (value != NULL)
        meta[out.n_meta++] = (nn_meta){ key, value };
    assert_int_equal(nn_tensors_write(b->path, &out, NULL), PL_OK);
}

/* The message behind the path; "": it is read. */
static const char *said(const bench *b, const char *key, const char *value)
{
    nn_model_file *back;
    pl_error err = { 0 };
    const size_t n = strlen(b->path);

    write_with(b, key, value, b->mem);
    if (nn_model_read(&back, b->path, b->mem, &err) == PL_OK)
        return "";
    assert_int_equal(err.code, PL_EDATA);
    assert_memory_equal(err.text, b->path, n);
    assert_memory_equal(err.text + n, ": ", 2);
    return pl_strdup(b->mem, err.text + n + 2);
}

#define TARGET "\"name\":\"gap\",\"unit\":\"eV\",\"better\":\"low\""
#define BAND(from) "{\"similarity\":" from ",\"within\":1,\"molecules\":9}"

static void wrong_metadata_is_named_in_full(void **state)
{
    static const struct {
        const char *key, *value, *want;
    } cases[] = {
        { "format", NULL, "not a model file of this program (metadata format is missing)" },
        { "format", "other", "not a model file of this program (metadata format is other)" },
        { "format_version", NULL, "model file format ?, this program reads 1 to 9" },
        { "format_version", "9", "metadata model has no networks" },
        { "format_version", "0", "model file format 0, this program reads 1 to 9" },
        { "format_version", "81", "model file format 81, this program reads 1 to 9" },
        { "w3j", NULL, "metadata w3j is missing, not e3nn-0.3.3 or e3nn-0.5" },
        { "w3j", "e3nn-0.4", "metadata w3j is e3nn-0.4, not e3nn-0.3.3 or e3nn-0.5" },
        { "name", "a b", "" },
        { "name", "a\x7f", "metadata name is not a name" },
        { "name", "a\x1f", "metadata name is not a name" },
        { "target", "{" TARGET ",\"task\":\"denoise\"}", "metadata target.task: denoise in a model file of format 5" },
        { "target", "{" TARGET ",\"task\":\"sorting\"}", "metadata target.task: sorting is not known" },
        { "interval", "{\"targets\":[{\"part\":\"test\",\"bands\":[" BAND("0") "," BAND("0.1") "," BAND("0.2") "]}]}", "" },
        { "interval",
          "{\"targets\":[{\"part\":\"test\",\"bands\":[" BAND("0") "," BAND("0.1") "," BAND("0.2") "," BAND("0.3") "]}]}",
          "metadata interval.bands is not a list of up to 3 bands" },
        { "interval", "{\"targets\":[{\"part\":\"te\\nst\",\"bands\":[" BAND("0") "]}]}",
          "metadata interval.bands is not a list of up to 3 bands" },
        { "interval", "{\"targets\":[{\"part\":\"test\",\"bands\":{}}]}",
          "metadata interval.bands is not a list of up to 3 bands" },
        { "interval", "{\"targets\":[{\"part\":\"test\",\"bands\":[" BAND("0") "," BAND("0") "]}]}",
          "metadata interval.bands is not from 0 on" },
    };
    bench *b = *state;

    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *is = said(b, cases[k].key, cases[k].value);
        if (strcmp(is, cases[k].want) != 0)
            fail_msg("%s %s: \"%s\"", cases[k].key, cases[k].value != NULL ? cases[k].value : "-", is);
    }
}

static void names_have_at_most_200_characters(void **state)
{
    char name[202];

    (void)state;
    memset(name, 'n', sizeof name);
    name[201] = '\0';
    assert_false(nn_model_name_fits(name));
    name[200] = '\0';
    assert_true(nn_model_name_fits(name));
    assert_true(nn_model_name_fits("") && nn_model_name_fits("log S (25 °C)"));
}

static void as_many_columns_as_there_may_be(void **state)
{
    bench *b = *state;
    char inputs[200 * (NN_COLUMNS_MAX + 1)];

    for (int n = NN_COLUMNS_MAX; n <= NN_COLUMNS_MAX + 1; n++) {
        size_t at = (size_t)snprintf(inputs, sizeof inputs,
                                     "{\"elements\":[\"H\",\"C\",\"Br\"],\"z\":true,\"charge\":false,\"bonds\":true,\"columns\":[");
        const char *is;
        for (int k = 0; k < n; k++)
            at += (size_t)snprintf(inputs + at, sizeof inputs - at,
                                   "%s{\"name\":\"c%d\",\"unit\":\"\",\"mean\":0,\"std\":1,\"low\":0,\"high\":0}", k > 0 ? "," : "",
                                   k);
        (void)snprintf(inputs + at, sizeof inputs - at, "]}");
        is = said(b, "inputs", inputs);
        if (n > NN_COLUMNS_MAX)
            assert_string_equal(is, "metadata inputs.columns is not a list of 1 to 16 columns");
        else /* the weights are for two */
            assert_non_null(strstr(is, "the model needs"));
    }
}

/* ---- the file of tensors ---- */

static void a_changed_file_says_what_to_do(void **state)
{
    bench *b = *state;
    nn_model_file *back;
    pl_error err = { 0 };
    char want[300];
    FILE *f;

    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    f = fopen(b->path, "r+b");
    assert_true(f != NULL && fseek(f, -1, SEEK_END) == 0 && fputc(77, f) == 77 && fclose(f) == 0);
    assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
    (void)snprintf(want, sizeof want,
                   "%s: damaged, or changed by another program: its checksum (metadata sha256) does not match; restore a copy, or "
                   "train again",
                   b->path);
    assert_string_equal(err.text, want);
}

static void names_that_are_no_text_are_not_written(void **state)
{
    const bench *b = *state;
    const nn_meta meta = { "name", "\xff\xfe" };
    pl_error err = { 0 };
    char want[200];

    (void)snprintf(want, sizeof want, "%s: a tensor name or metadata is not UTF-8, or no memory", b->path);
    assert_int_equal(nn_tensors_write(b->path, &(nn_tensors){ .meta = &meta, .n_meta = 1 }, &err), PL_EDATA);
    assert_string_equal(err.text, want);
}

static void a_model_of_noise_alone_says_what_it_is_for(void **state)
{
    bench *b = *state;
    nn_model_file *back;
    pl_error err = { 0 };
    char want[300];

    b->m.denoises = true;
    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    (void)snprintf(want, sizeof want,
                   "%s: this model learned noise alone (task: denoise) and predicts nothing; start a training from it "
                   "(stages.train.start)",
                   b->path);
    assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_ECONFIG);
    assert_string_equal(err.text, want);
}

/* ---- memory ---- */

/* Reads the file as it lies there, good or damaged. */
static void read_once(void *ctx)
{
    const bench *b = ctx;
    nn_model_file *back;
    pl_arena *mem = pl_arena_new(0);

    (void)nn_model_read(&back, b->path, mem, NULL);
    pl_arena_free(mem);
}

static void write_once(void *ctx)
{
    const bench *b = ctx;

    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
}

static void no_utf8_once(void *ctx)
{
    const bench *b = ctx;
    const nn_meta meta = { "name", "\xff" };

    assert_int_equal(nn_tensors_write(b->path, &(nn_tensors){ .meta = &meta, .n_meta = 1 }, NULL), PL_EDATA);
}

static void reading_and_writing_hold_nothing(void **state)
{
    static const char *const damaged[] = { "format", "inputs", "graph", "model", "target", "scale", "interval", "range" };
    bench *b = *state;

    assert_holds_nothing(write_once, b);
    assert_holds_nothing(read_once, b);
    assert_holds_nothing(no_utf8_once, b);
    for (size_t k = 0; k < sizeof damaged / sizeof *damaged; k++)
        for (int none = 0; none < 2; none++) {
            write_with(b, damaged[k], none ? NULL : "{\"a\":[1,2]}", b->mem);
            assert_holds_nothing(read_once, b);
        }
}

static void head_once(void *ctx)
{
    const bench *b = ctx;
    const char *name[NN_COLUMNS_MAX];
    pl_arena *mem = pl_arena_new(0);

    (void)nn_model_column_names(name, b->path, mem);
    (void)nn_model_may_have_network(b->path);
    (void)nn_model_has_basis(b->path);
    pl_arena_free(mem);
}

static void a_glance_at_a_file_holds_nothing(void **state)
{
    bench *b = *state;

    assert_holds_nothing(head_once, b);
    write_with(b, "inputs", "[]", b->mem);
    assert_holds_nothing(head_once, b);
    assert_int_equal(pl_file_write(b->path, (pl_bytes){ "no model", 8 }, NULL), PL_OK);
    assert_holds_nothing(head_once, b);
}

static void a_glance_tells_networks_and_their_radial_basis(void **state)
{
    bench *b = *state;

    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    assert_true(nn_model_may_have_network(b->path) && !nn_model_has_basis(b->path));
    b->m.conf.radial = (nn_radial_conf){ NN_BASIS_BESSEL, 6, NN_ENVELOPE_POLYNOMIAL, 4.5 };
    assert_true(made_network(&b->m, 5, b->mem));
    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    assert_true(nn_model_may_have_network(b->path) && nn_model_has_basis(b->path));
    write_with(b, "family", "{}", b->mem); /* members beside it */
    assert_true(nn_model_may_have_network(b->path));
    write_with(b, "model", NULL, b->mem);
    assert_true(nn_model_may_have_network(b->path) && !nn_model_has_basis(b->path));
    assert_true(nn_model_may_have_network("/nowhere/model") && !nn_model_has_basis("/nowhere/model"));
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(wrong_metadata_is_named_in_full),        WITH_BENCH(names_have_at_most_200_characters),
        WITH_BENCH(as_many_columns_as_there_may_be),        WITH_BENCH(a_changed_file_says_what_to_do),
        WITH_BENCH(names_that_are_no_text_are_not_written), WITH_BENCH(a_model_of_noise_alone_says_what_it_is_for),
        WITH_BENCH(reading_and_writing_hold_nothing),       WITH_BENCH(a_glance_tells_networks_and_their_radial_basis),
        WITH_BENCH(a_glance_at_a_file_holds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
