/* SPDX-License-Identifier: Apache-2.0 */
/* Model files of families: with and without a network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "family_toy.h"
#include "pipeline/base/file.h"
#include "tests/unit/guarded.h"
#include "tests/unit/model_bench.h"

enum { MOLECULES = 60, TARGETS = 2 };

typedef struct family_bench {
    bench b;
    family_toy toy;
    nn_member *one[TARGETS];
} family_bench;

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static int bench_open(void **state)
{
    family_bench *f = *state = calloc(1, sizeof *f);
    bench *b = *state;
    nn_fit_conf conf = { .seed = 3, .stop = never };

    if (f == NULL || !bench_make(b) || !family_toy_make(&f->toy, MOLECULES, 1, b->mem))
        return 1;
    for (int k = 0; k < TARGETS; k++) {
        conf.seed += (uint64_t)k;
        if (nn_gp.fit(&f->one[k], &f->toy.x, f->toy.y, &conf, b->mem, NULL) != PL_OK)
            return 1;
    }
    b->target[0] = (nn_target){ "first", "eV", "low", { 2, 3, 0, { 0 } }, { .n = 0 }, 0, NULL, NULL };
    b->target[1] = (nn_target){ "second", "", "none", { 0, 1, 0, { 0 } }, { .n = 0 }, 0, NULL, NULL };
    b->m = (nn_model_file){ .name = "family", .target = b->target, .provenance = "{}", .conf = { .outputs = TARGETS } };
    b->m.inputs = (nn_inputs){ .n_elements = 2, .element = { 1, 6 } };
    b->m.graph = (ch_graph_opts){ .edges = CH_EDGES_BONDS };
    b->m.members = (nn_members){ .n = 1, .outputs = TARGETS, .at = { { &nn_gp, f->one } } };
    return 0;
}

/* Refused with a text that contains `want`, after the words `from` in the file became `to`, of the same length. */
static void refused(bench *b, const char *from, const char *to, const char *want)
{
    nn_model_file *back;
    pl_error err = { 0 };
    pl_bytes file;
    char *at, *sum;
    FILE *f;

    assert_int_equal(strlen(from), strlen(to));
    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    assert_int_equal(pl_file_read(&file, b->path, b->mem, NULL), PL_OK);
    at = memmem(file.data, file.len, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    sum = memmem(file.data, file.len, "\"sha256\"", 8); /* without a checksum, as other programs write it */
    assert_non_null(sum);
    memcpy(sum, "\"sha25x\":\"g", 11); /* the value has 64 characters, but is no number */
    f = fopen(b->path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(file.data, 1, file.len, f), file.len);
    assert_int_equal(fclose(f), 0);
    if (nn_model_read(&back, b->path, b->mem, &err) != PL_EDATA || strstr(err.text, want) == NULL)
        fail_msg("%s became %s: %s", from, to, err.text);
}

static void a_family_without_a_network_is_written_and_read(void **state)
{
    bench *b = *state;
    nn_model_file *back = written_and_read(b);
    nn_member_outputs before, after;
    const uint8_t z[] = { 6, 1 };

    assert_null(back->model);
    assert_true(!nn_model_may_have_network(b->path) && !nn_model_has_basis(b->path));
    assert_int_equal(back->conf.outputs, TARGETS);
    assert_int_equal(nn_model_components(back), 1);
    assert_int_equal(nn_members_predict(&before, &b->m.members, &((family_bench *)b)->toy.x, b->mem, NULL), PL_OK);
    assert_int_equal(nn_members_predict(&after, &back->members, &((family_bench *)b)->toy.x, b->mem, NULL), PL_OK);
    for (int i = 0; i < MOLECULES * TARGETS; i++) {
        assert_true(isfinite(before.y[0][i]) && before.y[0][i] == after.y[0][i]);
        assert_true(before.variance[i] > 0 && before.variance[i] == after.variance[i]);
    }
    assert_true(nn_model_mean(back, 0, z, 2, NAN, &after, 5) == 2 + 3 * after.y[0][5 * TARGETS]);
    assert_true(nn_model_mean(back, 1, z, 2, NAN, &after, 5) == after.y[0][5 * TARGETS + 1]);
    assert_non_null(strstr(nn_model_metadata(back, b->mem), "\"format_version\":\"4\""));
    assert_null(strstr(nn_model_metadata(back, b->mem), "\"model\":"));
}

static void network_add(bench *b)
{
    nn_se3 *plan;

    b->m.conf = (nn_se3_conf){ .layers = 1, .degrees = 1, .channels = 4, .heads = 1, .channels_div = 1, .outputs = TARGETS };
    b->m.conf.node_features = nn_inputs_node_features(&b->m.inputs);
    b->m.conf.edge_features = nn_inputs_edge_features(&b->m.inputs);
    assert_int_equal(nn_se3_plan(&plan, &b->m.conf, b->mem, NULL), PL_OK);
    b->m.model = plan;
    b->m.params = PL_NEW(b->mem, float, plan->n_floats);
    nn_se3_init(plan, b->m.params, 5);
}

static void a_network_and_members_are_averaged(void **state)
{
    bench *b = *state;
    nn_model_file *back;
    nn_member_outputs y;
    const uint8_t z[] = { 6, 1 };

    network_add(b);
    back = written_and_read(b);
    assert_non_null(back->model);
    assert_true(nn_model_may_have_network(b->path));
    assert_memory_equal(back->params, b->m.params, b->m.model->n_floats * sizeof(float));
    assert_int_equal(nn_model_components(back), 2);
    assert_int_equal(nn_members_predict(&y, &back->members, &((family_bench *)b)->toy.x, b->mem, NULL), PL_OK);
    assert_true(nn_model_mean(back, 0, z, 2, 7.0, &y, 5) == (7.0 + (2 + 3 * y.y[0][5 * TARGETS])) / 2);
    back->classifies = true; /* a probability is not scaled */
    assert_true(nn_model_mean(back, 0, z, 2, 0.25, &y, 5) == (0.25 + y.y[0][5 * TARGETS]) / 2);
}

static void whatever_is_wrong_is_named(void **state)
{
    bench *b = *state;

    refused(b, "\\\"features\\\":1", "\\\"features\\\":7", "features of version 7, this program computes those of version 1");
    refused(b, "\\\"kind\\\":\\\"gp\\\"", "\\\"kind\\\":\\\"gq\\\"", "no member called gq");
    refused(b, "\\\"members\\\"", "\\\"nembers\\\"", "no list of 1 to 8 members");
    refused(b, "\\\"settings\\\"", "\\\"zettings\\\"", "no settings for each target");
    refused(b, "\"gp.0.alpha\"", "\"gp.5.alpha\"", "gp.0.alpha");
    refused(b, "\"gp.0.alpha\"", "\"gq.0.alpha\"", "gp.0.alpha");
    refused(b, "\"family\":", "\"famili\":", "metadata has no family");
    refused(b, "\"format_version\":\"4\"", "\"format_version\":\"3\"", "metadata has no model");
    refused(b, "\"format_version\":\"4\"", "\"format_version\":\"0\"", "this program reads 1 to 9");
    refused(b, "\"format_version\":\"4\"", "\"format_version\":\"9\"", "metadata has no model");
}

static void columns_give(bench *b)
{
    b->m.inputs.n_columns = 2;
    b->m.inputs.column[0] = (nn_input_column){ "temperature", "C", { 28.47, 18.8123 }, 5, 60, 0 };
    b->m.inputs.column[1] = (nn_input_column){ "pH", "", { 0.1, 1.0 / 3 }, -0.1, 8.9, 1 };
}

static void columns_and_descriptors_are_written_and_read(void **state)
{
    static nn_moments all[CH_N_FEATURES];
    const char *name[NN_COLUMNS_MAX] = { NULL };
    bench *b = *state;
    nn_model_file *back;

    for (int k = 0; k < CH_N_FEATURES; k++)
        all[k] = (nn_moments){ k / 3.0, k / 7.0 };
    columns_give(b);
    b->m.inputs.descriptors = true;
    b->m.inputs.descriptor = all;
    back = written_and_read(b);
    assert_true(nn_inputs_same(&back->inputs, &b->m.inputs));
    assert_int_equal(back->inputs.n_columns, 2);
    for (int k = 0; k < 2; k++) {
        const nn_input_column *x = &back->inputs.column[k], *y = &b->m.inputs.column[k];
        assert_string_equal(x->name, y->name);
        assert_string_equal(x->unit, y->unit);
        assert_true(x->low == y->low && x->high == y->high && x->at == k);
    }
    assert_memory_equal(back->inputs.descriptor, all, sizeof all);
    assert_non_null(strstr(nn_model_metadata(back, b->mem), "\"format_version\":\"5\""));
    assert_int_equal(nn_model_column_names(name, b->path, b->mem), 2);
    for (int k = 0; k < NN_COLUMNS_MAX; k++)
        if (k < 2)
            assert_string_equal(name[k], b->m.inputs.column[k].name);
        else
            assert_null(name[k]);
    assert_int_equal(nn_model_column_names(name, "/dev/null", b->mem), 0);
}

static void descriptors_may_come_alone(void **state)
{
    static nn_moments all[CH_N_FEATURES];
    bench *b = *state;
    nn_model_file *back;

    b->m.inputs.descriptors = true;
    b->m.inputs.descriptor = all;
    back = written_and_read(b);
    assert_true(back->inputs.descriptors && back->inputs.n_columns == 0);
    assert_null(strstr(nn_model_metadata(back, b->mem), "\"columns\""));
    b->m.inputs.descriptors = false;
    assert_false(written_and_read(b)->inputs.descriptors);
}

static void each_molecule_has_its_row_of_the_columns(void **state)
{
    const float first[] = { 1, 2, 3 }, second[] = { 4, 5, 6 }, *const value[] = { first, second };
    const float want[] = { 3, 1, 6, 4 };
    const nn_inputs in = { .n_columns = 2, .column = { { .name = "pH", .at = 2 }, { .name = "temperature", .at = 0 } } };
    bench *b = *state;
    nn_table x = { .n = 2 };

    assert_int_equal(nn_members_columns(&x, &in, value, b->mem, NULL), PL_OK);
    assert_int_equal(x.n_columns, 2);
    assert_memory_equal(x.column, want, sizeof want);
    assert_int_equal(nn_members_columns(&x, &(nn_inputs){ 0 }, value, b->mem, NULL), PL_OK);
    assert_true(x.n_columns == 0 && x.column == NULL);
}

static void wrong_columns_are_named(void **state)
{
    bench *b = *state;

    columns_give(b);
    refused(b, "\\\"columns\\\":[", "\\\"columns\\\":{", "metadata inputs is not JSON");
    refused(b, "\\\"std\\\":18.8123", "\\\"std\\\":-8.8123", "std");
    refused(b, "\\\"low\\\":5.0", "\\\"low\\\":5e9", "low and high of temperature");
    refused(b, "\\\"pH\\\"", "[null]", "name and unit of column 2");
    refused(b, "\\\"unit\\\":\\\"C\\\"", "\\\"unit\\\":[1,2]", "name and unit of column 1");
    b->m.inputs.column[1].name = "temperaturE";
    refused(b, "temperaturE", "temperature", "two are called temperature");
}

static void wrong_descriptors_are_named(void **state)
{
    static nn_moments all[CH_N_FEATURES];
    bench *b = *state;
    char version[100];

    for (int k = 0; k < CH_N_FEATURES; k++)
        all[k] = (nn_moments){ 3, 5 };
    all[1] = (nn_moments){ 2.75, 0 };
    b->m.inputs.descriptors = true;
    b->m.inputs.descriptor = all;
    assert_true(written_and_read(b)->inputs.descriptor[1].stdev == 0); /* the same in all molecules */
    refused(b, "3.0,2.75,", "3.0,null,", "metadata inputs.descriptors: number 1 is not a mean and a deviation");
    refused(b, "5.0,0.0,5", "5.0,-.0,5", "metadata inputs is not JSON");
    refused(b, "5.0,0.0,5", "5.0,-1 ,5", "metadata inputs.descriptors: number 1 is not a mean and a deviation");
    refused(b, "5.0,0.0,5", "5.0,[] ,5", "metadata inputs.descriptors: number 1 is not a mean and a deviation");
    refused(b, "3.0,2.75,", "3.0     ,", "metadata inputs.descriptors is not a list of ");
    refused(b, "5.0,0.0,5", "5.0    ,5", " means and deviations");
    (void)snprintf(version, sizeof version,
                   "the model was trained with descriptors of version 9, this program computes those of version %d",
                   (int)CH_FEATURES_VERSION);
    refused(b, "\\\"descriptors\\\":{\\\"version\\\":1", "\\\"descriptors\\\":{\\\"version\\\":9", version);
    columns_give(b); /* good descriptors do not excuse wrong columns */
    refused(b, "\\\"std\\\":18.8123", "\\\"std\\\":-8.8123", "metadata inputs.columns: mean, std, low and high of temperature");
}

/* Of the molecules that have it. */
static void a_target_has_a_domain_of_its_own(void **state)
{
    bench *b = *state;
    nn_range own = {
        .molecules = 5, .high = { 9 }, .ring_sizes = 1u << 6, .form = "neutral", .n_kinds = 1, .kind = { { .z = 6 } }
    };
    nn_limits columns[2] = { { 6.5, 7 }, { -0.1, 0 } };
    const nn_traits traits = { .number = { 10 } };
    const nn_case c = { .traits = &traits, .alike = 1, .form = "neutral" };
    const float column[] = { 7.5f, -0.2f };
    const nn_model_file *back;
    pl_text why = { 0 };

    nn_range_ignore_sources(&own); /* as a file without a network is read */
    b->target[1].range = &own;
    back = written_and_read(b);
    assert_null(back->target[0].range);
    assert_string_equal(nn_range_text(back->target[1].range, b->mem), nn_range_text(&own, b->mem));
    nn_model_reasons(&why, back, 1, &c, NULL);
    assert_string_equal(pl_text_str(&why), "heavy atoms 10 > 9");
    refused(b, "\\\"molecules\\\":5,", "\\\"molecules\\\":0,", "metadata range is not valid");
    b->target[1].range = NULL;
    columns_give(b);
    b->target[1].columns = columns;
    back = written_and_read(b);
    assert_null(back->target[0].columns);
    pl_text_reset(&why);
    nn_model_reasons(&why, back, 1, &c, column);
    assert_string_equal(pl_text_str(&why), "heavy atoms 10 > 0; column temperature 7.5 > 7; column pH -0.2 < -0.1");
    pl_text_reset(&why);
    nn_model_reasons(&why, back, 0, &c, column);
    assert_string_equal(pl_text_str(&why), "heavy atoms 10 > 0; column pH -0.2 < -0.1");
    pl_text_free(&why);
    refused(b, "[[6.5,", "[[7.5,", "metadata target.columns: number 1 is not the lowest and the highest value");
    refused(b, "[[6.5,7.0]", "[[6.5,7,7]", "metadata target.columns: number 1 is not");
    refused(b, "[[6.5,7.0]", "[[6.5,{ }]", "metadata target.columns: number 1 is not");
    refused(b, "[[6.5,7.0],", "[[6,7],[7],", "metadata target.columns is not a list of 2 pairs of numbers");
    b->target[1].columns = NULL;
}

/* One domain for all targets, as earlier versions wrote it, although their counts differ. */
static void a_shared_domain_is_told_by_counts(void **state)
{
    static const struct {
        const char *provenance;
        bool shares;
    } all[] = {
        { NULL, false },
        { "{}", false },
        { "{\"errors\":{\"first\":{\"valid\":{\"n\":9}},\"second\":{\"valid\":{\"n\":9}}}}", false },
        { "{\"errors\":{\"first\":{\"valid\":{\"n\":9}},\"second\":{\"valid\":{\"n\":8}}}}", true },
        { "{\"errors\":{\"first\":{\"calibration\":{\"n\":9}},\"second\":{}}}", true },
        { "{\"errors\":{\"first\":{},\"second\":{\"test\":{\"n\":8}}}}", true },
        { "{\"errors\":{\"first\":{\"test\":{\"n\":8}}},\"calibration\":{\"molecules\":{\"first\":7,\"second\":7}}}", false },
        { "{\"calibration\":{\"molecules\":{\"first\":7,\"second\":6}}}", true },
        { "{\"joined\":[{\"provenance\":{\"joined\":[{\"provenance\":{\"errors\":{\"first\":{\"test\":{\"n\":8}}}}}]}}]}", true },
    };
    bench *b = *state;
    nn_range own = { .molecules = 5 };

    b->m.range.molecules = 20;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        b->m.provenance = all[k].provenance;
        if (nn_model_shares_range(&b->m) != all[k].shares)
            fail_msg("case %zu", k);
    }
    b->target[0].range = &own; /* the other has all molecules */
    assert_false(nn_model_shares_range(&b->m));
    b->target[0].range = NULL;
    assert_true(nn_model_shares_range(&b->m));
    b->m.range.molecules = 0; /* told as a model without a domain */
    assert_false(nn_model_shares_range(&b->m));
    b->m.range.molecules = 20;
    b->m.conf.outputs = 1;
    assert_false(nn_model_shares_range(&b->m));
}

/* One similarity for all targets, as a network of an earlier version has it: without what was measured. */
static void a_shared_similarity_is_told_by_ranges_and_counts(void **state)
{
    static const float value[3] = { 0 };
    bench *b = *state;
    nn_range own = { .molecules = 5 };

    b->m.range.molecules = 20;
    b->m.domain = (nn_domain){ .n = 1 };
    b->m.provenance = "{}";
    assert_false(nn_model_has_gaps(&b->m) || nn_model_shares_similarity(&b->m));
    b->m.target[1].range = &own;
    assert_true(nn_model_has_gaps(&b->m) && nn_model_shares_similarity(&b->m));
    b->m.domain.value = value;
    assert_false(nn_model_shares_similarity(&b->m));
    b->m.domain.value = NULL;
    own.molecules = 20; /* those that lack it are not of the training .. */
    assert_true(nn_model_has_gaps(&b->m) && !nn_model_shares_similarity(&b->m));
    b->m.target[1].range = NULL;
    b->m.provenance = "{\"errors\":{\"first\":{\"valid\":{\"n\":9}},\"second\":{\"valid\":{\"n\":8}}},"
                      "\"calibration\":{\"molecules\":{\"first\":7,\"second\":7}}}";
    assert_true(nn_model_shares_similarity(&b->m) && !nn_model_shares_range(&b->m)); /* .. whatever calibrates */
    b->m.domain.n = 0;
    assert_false(nn_model_shares_similarity(&b->m));
    b->m.domain.n = 1;
    b->m.conf.outputs = 1;
    assert_false(nn_model_shares_similarity(&b->m));
}

/* In its domain, at its limits, and outside of it. */
static void a_column_has_a_domain(void **state)
{
    static const float inside[] = { 5, 8.9f }, outside[] = { 60.5f, -0.25f };
    bench *b = *state;
    nn_traits traits = { 0 };
    const nn_case c = { .traits = &traits, .alike = 1, .form = "" };
    pl_text why = { 0 };

    columns_give(b);
    b->m.inputs.column[1].high = 8.9f;
    nn_range_ignore_sources(&b->m.range);
    nn_model_reasons(&why, &b->m, 0, &c, inside);
    assert_int_equal(why.len, 0);
    nn_model_reasons(&why, &b->m, 0, &c, NULL);
    assert_int_equal(why.len, 0);
    nn_model_reasons(&why, &b->m, 0, &c, outside);
    assert_string_equal(pl_text_str(&why), "column temperature 60.5 > 60; column pH -0.25 < -0.1");
    pl_text_free(&why);
}

static void names_of_tensors_are_those_of_members(void **state)
{
    const bench *b = *state;
    const nn_members *all = &b->m.members;

    assert_true(nn_members_has(all, "gp.0.alpha") && nn_members_has(all, "gp.17.x"));
    assert_false(nn_members_has(all, "gp") || nn_members_has(all, "gp.alpha") || nn_members_has(all, "gp..alpha"));
    assert_false(nn_members_has(all, "gp.x1.alpha") || nn_members_has(all, "trees.0.node") || nn_members_has(all, "gpp.0.x"));
}

/* Offsets of elements would make a wrong number of an element that they do not have. */
static void only_models_without_offsets_read_any_element(void **state)
{
    bench *b = *state;
    nn_model_file *back;

    b->m.inputs.any_element = true;
    assert_true(written_and_read(b)->inputs.any_element);
    for (int k = 0; k < TARGETS; k++)
        for (int e = 0; e < 2; e++) {
            pl_error err = { 0 };
            b->target[k].scale.offset[e] = 0.5;
            assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
            assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
            assert_string_equal(err.text + strlen(b->path), ": metadata inputs.any_element is true, but the model reads elements");
            b->target[k].scale.offset[e] = 0;
        }
}

static pl_code save_many(const nn_member *m, const char *prefix, nn_tensor **out, int *n, const char **json, pl_arena *mem,
                         pl_error *err)
{
    static nn_tensor none[NN_MEMBER_TENSORS_MAX + 1];

    (void)m, (void)prefix, (void)mem, (void)err;
    *out = none;
    *n = (int)(sizeof none / sizeof *none);
    *json = "{}";
    return PL_OK;
}

static void a_member_with_too_many_tensors_is_refused(void **state)
{
    static const nn_member_kind many = { .name = "many", .save = save_many };
    bench *b = *state;
    nn_members all = b->m.members;
    const char **json;
    nn_tensor *t;
    pl_error err = { 0 };
    char want[80];
    int n;

    all.at[0].kind = &many;
    assert_int_equal(nn_members_tensors(&t, &n, &json, &all, b->mem, &err), PL_EDATA);
    (void)snprintf(want, sizeof want, "many.0 has %d tensors, at most %d", NN_MEMBER_TENSORS_MAX + 1, NN_MEMBER_TENSORS_MAX);
    assert_string_equal(err.text, want);
    assert_int_equal(n, 0);
}

static pl_code predict_wrongly(const nn_member *m, const nn_table *x, double *value, double *variance, pl_arena *mem, pl_error *err)
{
    (void)m, (void)mem;
    for (int32_t i = 0; i < x->n; i++)
        value[i] = variance[i] = 7;
    return pl_fail(err, PL_EDATA, "no prediction");
}

/* What a member left behind before its error is no prediction. */
static void a_prediction_that_failed_is_not_taken(void **state)
{
    static const nn_member_kind wrong = { .name = "wrong", .predict = predict_wrongly };
    family_bench *f = *state;
    nn_members all = f->b.m.members;
    nn_member_outputs out;
    pl_error err = { 0 };

    all.at[0].kind = &wrong;
    assert_int_equal(nn_members_predict(&out, &all, &f->toy.x, f->b.mem, &err), PL_EDATA);
    assert_string_equal(err.text, "no prediction");
    for (int i = 0; i < MOLECULES * TARGETS; i++)
        assert_true(out.y[0][i] == 0 && isnan(out.variance[i]));
}

/* ---- memory that is refused: linked with -Wl,--wrap=pl_arena_get ---- */

static int until_refused; /* calls; 0: none is refused */
static bool guards;       /* requests get memory with nothing behind it */
void *__real_pl_arena_get(pl_arena *mem, size_t n, size_t size);
void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size);

void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size)
{
    if (until_refused > 0 && --until_refused == 0)
        return NULL;
    return guards ? guarded(n, size) : __real_pl_arena_get(mem, n, size);
}

static pl_code learns(family_bench *f, pl_arena *mem, pl_error *err)
{
    const nn_fit_conf conf = { .seed = 3, .stop = never };
    nn_member *m;

    return nn_gp.fit(&m, &f->toy.x, f->toy.y, &conf, mem, err);
}

static pl_code is_written(family_bench *f, pl_arena *mem, pl_error *err)
{
    (void)mem;
    return nn_model_write(&f->b.m, f->b.path, err);
}

static pl_code is_read(family_bench *f, pl_arena *mem, pl_error *err)
{
    nn_model_file *back;

    return nn_model_read(&back, f->b.path, mem, err);
}

static pl_code predicts(family_bench *f, pl_arena *mem, pl_error *err)
{
    nn_member_outputs out;

    return nn_members_predict(&out, &f->b.m.members, &f->toy.x, mem, err);
}

static bool third_time(void *ctx)
{
    int *asked = ctx;

    return ++*asked == 3;
}

/* Two trees of it. */
static pl_code learns_a_forest(family_bench *f, pl_arena *mem, pl_error *err)
{
    int asked = 0;
    const nn_fit_conf conf = { .seed = 3, .stop = third_time, .ctx = &asked };
    nn_member *m;

    if (nn_forest.missing() != NULL)
        return PL_OK;
    return nn_forest.fit(&m, &f->toy.x, f->toy.y, &conf, mem, err) == PL_ESTOP ? PL_OK : PL_EBUG;
}

static pl_code is_explained(family_bench *f, pl_arena *mem, pl_error *err)
{
    nn_parts parts;

    return nn_gp.explain(f->one[0], &f->toy.x, 3, &parts, mem, err);
}

static void memory_is_used_to_its_end_and_no_further(void **state)
{
    pl_code (*const all[])(family_bench *, pl_arena *, pl_error *) = { learns,  learns_a_forest, is_written,
                                                                       is_read, predicts,        is_explained };
    family_bench *f = *state;

    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        pl_arena *mem = pl_arena_new(0);
        guards = true;
        assert_int_equal(all[k](f, mem, NULL), PL_OK);
        guards = false;
        pl_arena_free(mem);
    }
}

/* Each request for memory in turn. */
static void memory_that_is_refused_is_told(void **state)
{
    pl_code (*const all[])(family_bench *, pl_arena *, pl_error *) = { learns, is_written, is_read, predicts };
    family_bench *f = *state;

    f->toy.x.n = 12; /* enough to learn from, and quick */
    for (int k = 0; k < 8; k++) {
        pl_code code = PL_ENOMEM;
        int n = 0;
        if (k == 4) /* once more, with a network beside the members */
            network_add(&f->b);
        while (code != PL_OK) {
            pl_arena *mem = pl_arena_new(0);
            pl_error err = { 0 };
            until_refused = ++n;
            code = all[k % 4](f, mem, &err);
            if (code == PL_OK)
                assert_int_equal(until_refused, 1); /* none was refused */
            until_refused = 0;
            if (code != PL_OK && (code != PL_ENOMEM || err.text[0] == '\0'))
                fail_msg("%d, request %d: %d, \"%s\"", k, n, (int)code, err.text);
            pl_arena_free(mem);
        }
        assert_true(n > 2);
    }
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(a_family_without_a_network_is_written_and_read),
        WITH_BENCH(a_network_and_members_are_averaged),
        WITH_BENCH(whatever_is_wrong_is_named),
        WITH_BENCH(columns_and_descriptors_are_written_and_read),
        WITH_BENCH(memory_is_used_to_its_end_and_no_further),
        WITH_BENCH(memory_that_is_refused_is_told),
        WITH_BENCH(descriptors_may_come_alone),
        WITH_BENCH(each_molecule_has_its_row_of_the_columns),
        WITH_BENCH(wrong_columns_are_named),
        WITH_BENCH(wrong_descriptors_are_named),
        WITH_BENCH(a_column_has_a_domain),
        WITH_BENCH(a_target_has_a_domain_of_its_own),
        WITH_BENCH(a_shared_domain_is_told_by_counts),
        WITH_BENCH(a_shared_similarity_is_told_by_ranges_and_counts),
        WITH_BENCH(a_prediction_that_failed_is_not_taken),
        WITH_BENCH(only_models_without_offsets_read_any_element),
        WITH_BENCH(a_member_with_too_many_tensors_is_refused),
        WITH_BENCH(names_of_tensors_are_those_of_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
