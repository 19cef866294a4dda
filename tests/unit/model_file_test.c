/* SPDX-License-Identifier: Apache-2.0 */
/* Model files: what is written is read, and what it means. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/files/model_file_parts.h"
#include "models/network/w3j.h"
#include "models/tensors/safetensors.h"
#include "tests/unit/written_model.h"

static void what_is_written_is_read(void **state)
{
    bench *b = *state;
    nn_model_file *back = written_and_read(b);

    assert_string_equal(back->name, "tiny");
    same_target(back->target, b->target);
    assert_non_null(strstr(nn_model_metadata(back, b->mem), "\"format_version\":\"1\""));
    assert_string_equal(back->provenance, "{\"a\":1}");
    assert_string_equal(nn_model_metadata(back, b->mem),
                        nn_model_metadata(&b->m, b->mem)); /* bytes of structures differ in padding */
    assert_int_equal(back->inputs.n_elements, 3);
    assert_memory_equal(back->inputs.element, b->m.inputs.element, 3);
    assert_true(back->inputs.z && back->inputs.bonds && !back->inputs.charge && !back->bf16);
    assert_memory_equal(back->params, b->m.params, b->m.model->n_floats * sizeof(float));
    assert_int_equal(strlen(back->sha256), 64);
    assert_int_equal(nn_model_graph_check(back, &b->m.graph, NULL), PL_OK);
}

static void bfloat16_holds_exactly_the_rounded_numbers(void **state)
{
    bench *b = *state;
    nn_model_file *back;
    float before[4] = { 1.0f, 1.00390625f, 1.01171875f, -3.14159274f };

    b->m.bf16 = true;
    memcpy(b->m.params, before, sizeof before);
    nn_model_round(&b->m);
    assert_true(b->m.params[0] == 1.0f);
    assert_true(b->m.params[1] == 1.0f);      /* tie to even, down */
    assert_true(b->m.params[2] == 1.015625f); /* tie to even, up   */
    assert_true(b->m.params[3] == -3.140625f);
    back = written_and_read(b);
    assert_true(back->bf16);
    assert_memory_equal(back->params, b->m.params, b->m.model->n_floats * sizeof(float));
}

static void the_same_model_gives_the_same_bytes(void **state)
{
    bench *b = *state;
    char first[65];

    memcpy(first, written_and_read(b)->sha256, sizeof first);
    assert_string_equal(written_and_read(b)->sha256, first);
}

/* The file keeps the training molecules, whatever the type of its numbers. */
static void the_domain_is_written_and_read(void **state)
{
    bench *b = *state;
    nn_domain_molecule two[2] = { { .print = { { 5, 6 } }, .key = "ZZZZZZZZZZZZZZ-UHFFFAOYSA-N" },
                                  { .print = { { 7 } }, .key = "AAAAAAAAAAAAAA-UHFFFAOYSA-N" } };
    char met[1][NN_SEEN_KEY + 1] = { "MMMMMMMMMMMMMM" };

    assert_int_equal(written_and_read(b)->domain.n, 0);
    assert_int_equal(nn_domain_make(&b->m.domain, two, 2, b->mem, NULL), PL_OK);
    for (int k = 0; k < 2; k++) {
        nn_model_file *back;
        b->m.bf16 = k;
        if (k == 1)
            assert_int_equal(nn_seen_make(&b->m.seen, met, 1, 1, true, b->mem, NULL), PL_OK);
        nn_model_round(&b->m);
        back = written_and_read(b);
        assert_true(nn_seen_same(&back->seen, &b->m.seen) && back->seen.known == k);
        assert_true(nn_domain_same(&back->domain, &b->m.domain) && back->domain.n == 2 && back->bf16 == b->m.bf16);
        assert_memory_equal(back->params, b->m.params, b->m.model->n_floats * sizeof(float));
    }
}

static void the_range_is_written_and_read(void **state)
{
    bench *b = *state;
    nn_model_file *back = written_and_read(b);

    assert_int_equal(back->range.molecules, 0); /* a file of an earlier version */
    assert_null(strstr(nn_model_metadata(back, b->mem), "range"));
    b->m.range = (nn_range){ .molecules = 70,
                             .low = { 1, -1 },
                             .high = { 9, 1, 2, 3, 1 },
                             .sources = 1u << NN_SOURCE_INPUT,
                             .n_kinds = 1,
                             .kind = { { 7, 1, true } },
                             .form = "neutral" };
    back = written_and_read(b);
    assert_string_equal(nn_range_text(&back->range, b->mem), nn_range_text(&b->m.range, b->mem));
    assert_int_equal(back->range.molecules, 70);
}

/* y stdev + mean + constant + offsets, for HBr with y = 2. */
static void values_have_their_linear_part(void **state)
{
    bench *b = *state;
    const uint8_t z[] = { 1, 35 }, strange[] = { 1, 9 };

    assert_true(fabs(nn_model_value(&b->m, 0, z, 2, 2.0) - (2 * 0.5 + 1.25 - 3.0 + 0.1 + 1.0 / 3)) <= 1e-12);
    assert_true(fabs(nn_model_offset(&b->target->scale, &b->m.inputs, strange, 2) - (-3.0 + 0.1)) <= 1e-12);
}

/* A model without training molecules has the same metadata as before. */
/* A rate constant or a count of molecules has errors of 1e15 and more. */
static void an_interval_of_any_size_is_read(void **state)
{
    static const double within[] = { 0, 1e-300, 2e15, 1e30, 1e300 };
    bench *b = *state;

    for (size_t i = 0; i < sizeof within / sizeof within[0]; i++) {
        b->target->interval.band[0].within = within[i];
        assert_true(written_and_read(b)->target->interval.band[0].within == within[i]);
    }
}

static void an_interval_that_is_not_known_is_not_written(void **state)
{
    bench *b = *state;

    assert_non_null(strstr(nn_model_metadata(&b->m, b->mem), "interval"));
    b->target->interval.n = 0;
    assert_null(strstr(nn_model_metadata(&b->m, b->mem), "interval"));
    assert_int_equal(written_and_read(b)->target->interval.n, 0);
}

/* Format 2, which programs without classes refuse; without `output` it is not accepted. */
static void a_classifier_says_so_and_gives_probabilities(void **state)
{
    bench *b = *state;
    const uint8_t z[] = { 1, 35 };
    nn_model_file *back;
    const char *text;

    b->target->scale = (nn_scale){ .stdev = 1 };
    b->m.classifies = true;
    back = written_and_read(b);
    assert_true(back->classifies);
    text = nn_model_metadata(back, b->mem);
    assert_non_null(strstr(text, "\"format_version\":\"2\""));
    assert_non_null(strstr(text, "\"task\":\"classification\",\"output\":\"logistic\""));
    assert_true(nn_model_value(back, 0, z, 2, 0.0) == 0.5 && nn_model_value(back, 0, z, 2, 1e4) == 1);
    assert_true(fabs(nn_model_value(back, 0, z, 2, -1.0) - 1 / (1 + exp(1))) <= 1e-15);
    b->m.classifies = false;
    text = nn_model_metadata(written_and_read(b), b->mem);
    assert_true(strstr(text, "\"format_version\":\"1\"") && !strstr(text, "task"));
}

static void graph_says(const nn_model_file *m, const ch_graph_opts *o, const char *want)
{
    pl_error err = { 0 };

    assert_int_equal(nn_model_graph_check(m, o, &err), want[0] != '\0' ? PL_ECONFIG : PL_OK);
    assert_string_equal(err.text, want);
}

static void other_graphs_are_refused_by_name(void **state)
{
    bench *b = *state;
    nn_model_file m = b->m;
    ch_graph_opts o = m.graph;

    o.k = 5; /* has no meaning here */
    graph_says(&m, &o, "");
    o.cutoff = 5.0f;
    graph_says(&m, &o, "cutoff: 5 Angstrom, but model tiny was trained with 4.5");
    o = m.graph;
    o.max_neighbours = 21;
    graph_says(&m, &o, "max_neighbours: 21, but model tiny was trained with 20");
    o.edges = CH_EDGES_BONDS;
    graph_says(&m, &o, "edges: bonds, but model tiny was trained with edges: radius");
    o.edges = CH_EDGES_TOPOLOGY;
    graph_says(&m, &o, "edges: topology has no positions, but model tiny is a network that was trained with edges: radius");
    m.graph = (ch_graph_opts){ .edges = CH_EDGES_KNN, .k = 4 };
    o = (ch_graph_opts){ .edges = CH_EDGES_KNN, .k = 6, .cutoff = 7, .max_neighbours = 8 };
    graph_says(&m, &o, "k: 6, but model tiny was trained with 4");
    o.k = 4;
    graph_says(&m, &o, "");
    m.model = NULL; /* members read bonds */
    o.k = 6;
    graph_says(&m, &o, "k: 6, but model tiny was trained with 4");
    o.edges = CH_EDGES_TOPOLOGY;
    graph_says(&m, &o, "");
    o.edges = CH_EDGES_RADIUS;
    graph_says(&m, &o, "");
}

/* Weights under the other sign convention come back negated exactly where (J, in,
 * out) is in the list of docs/model.md 2.3; twice is nothing. */
static void weights_of_the_other_convention_are_moved(void **state)
{
    bench *b = *state;
    const nn_group *g = &b->m.model->module[2].u.attention.conv.group[0];
    const nn_param *w2 = &b->m.model->param[g->w2];
    nn_tensors *all, out;
    nn_meta *meta;
    nn_model_file *back;
    int flipped = 0;

    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    assert_int_equal(nn_tensors_read(&all, b->path, b->mem, NULL), PL_OK);
    out = *all;
    meta = PL_NEW(b->mem, nn_meta, all->n_meta);
    memcpy(meta, all->meta, (size_t)all->n_meta * sizeof *meta);
    meta_named(meta, "w3j")->value = "e3nn-0.5";
    out.meta = meta;
    assert_int_equal(nn_tensors_write(b->path, &out, NULL), PL_OK);
    assert_int_equal(nn_model_read(&back, b->path, b->mem, NULL), PL_OK);
    for (int32_t p = 0; p < g->n_paths; p++)
        for (int32_t k = 0; k < g->path[p].n_freq; k++) {
            size_t row = (size_t)(g->path[p].f0 + k); /* o = c = 0 */
            int j = abs(g->path[p].d_in - g->path[p].d_out) + k;
            float want = b->m.params[w2->at + row * 32 + 7], got = back->params[w2->at + row * 32 + 7];
            bool flips = nn_w3j_sign_differs(j, g->path[p].d_in, g->path[p].d_out);
            assert_true(got == (flips ? -want : want));
            flipped += flips;
        }
    assert_int_equal(flipped, 3); /* (1,2,2) (2,1,2) (2,2,1) at degrees to 2 */
}

/* The metadata section `model` of the file, with one text replaced. */
static void model_section_change(bench *b, const char *from, const char *to)
{
    nn_tensors *all, out;
    nn_meta *meta;
    const char *at;

    assert_int_equal(nn_tensors_read(&all, b->path, b->mem, NULL), PL_OK);
    out = *all;
    meta = PL_NEW(b->mem, nn_meta, all->n_meta);
    memcpy(meta, all->meta, (size_t)all->n_meta * sizeof *meta);
    at = strstr(meta_named(meta, "model")->value, from);
    assert_non_null(at);
    meta_named(meta, "model")->value = pl_sprintf(b->mem, "%.*s%s%s", (int)(at - meta_named(meta, "model")->value),
                                                  meta_named(meta, "model")->value, to, at + strlen(from));
    out.meta = meta;
    assert_int_equal(nn_tensors_write(b->path, &out, NULL), PL_OK);
}

static void files_without_parity_are_of_the_published_network(void **state)
{
    bench *b = *state;
    nn_model_file *back = written_and_read(b);

    assert_int_equal(back->conf.parity, NN_PARITY_BOTH);
    model_section_change(b, ",\"parity\":\"both\"", "");
    back = NULL;
    assert_int_equal(nn_model_read(&back, b->path, b->mem, NULL), PL_OK);
    assert_int_equal(back->conf.parity, NN_PARITY_BOTH);
    assert_memory_equal(back->params, b->m.params, b->m.model->n_floats * sizeof(float));
}

/* Fewer rows: parameters of one parity are not accepted for the other. */
static void parity_is_kept_and_must_fit_the_tensors(void **state)
{
    bench *b = *state;
    nn_model_file *back;
    nn_se3 *model;
    pl_error err = { 0 };

    b->m.conf.parity = NN_PARITY_NATURAL;
    assert_int_equal(nn_se3_plan(&model, &b->m.conf, b->mem, NULL), PL_OK);
    assert_true(model->n_floats < b->m.model->n_floats);
    b->m.model = model;
    back = written_and_read(b);
    assert_int_equal(back->conf.parity, NN_PARITY_NATURAL);
    assert_memory_equal(back->params, b->m.params, model->n_floats * sizeof(float));
    model_section_change(b, "natural", "both");
    assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "the model needs"));
    nn_model_write(&b->m, b->path, NULL);
    model_section_change(b, "natural", "left");
    assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "left is not known"));
}

/* Format 6: an older program would compute without the envelope. */
static void a_radial_basis_and_an_envelope_are_kept(void **state)
{
    static const nn_radial_conf kinds[] = { { NN_BASIS_BESSEL, 6, NN_ENVELOPE_POLYNOMIAL, 4.5 },
                                            { NN_BASIS_GAUSSIAN, 9, NN_ENVELOPE_NONE, 3 },
                                            { NN_BASIS_DISTANCE, 0, NN_ENVELOPE_POLYNOMIAL, 2.25 } };
    bench *b = *state;
    nn_model_file *back = NULL;
    pl_error err = { 0 };

    for (int k = 0; k < 3; k++) {
        b->m.conf.radial = kinds[k];
        assert_true(made_network(&b->m, 1, b->mem));
        back = written_and_read(b);
        assert_true(nn_radial_same(&back->conf.radial, &kinds[k]));
        assert_int_equal(back->conf.radial.number, kinds[k].number);
        assert_non_null(strstr(nn_model_metadata(back, b->mem), "\"format_version\":\"6\""));
        assert_memory_equal(back->params, b->m.params, b->m.model->n_floats * sizeof(float));
    }
    b->m.conf.norm = NN_NORMS_GATE;
    assert_true(made_network(&b->m, 1, b->mem));
    assert_int_equal(written_and_read(b)->conf.norm, NN_NORMS_GATE);
    model_section_change(b, "polynomial", "cosine");
    assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "cosine is not known"));
    nn_model_write(&b->m, b->path, NULL);
    model_section_change(b, "2.25", "-1.0");
    assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "radial.cutoff"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(what_is_written_is_read),
        WITH_BENCH(bfloat16_holds_exactly_the_rounded_numbers),
        WITH_BENCH(the_same_model_gives_the_same_bytes),
        WITH_BENCH(an_interval_of_any_size_is_read),
        WITH_BENCH(an_interval_that_is_not_known_is_not_written),
        WITH_BENCH(the_range_is_written_and_read),
        WITH_BENCH(the_domain_is_written_and_read),
        WITH_BENCH(values_have_their_linear_part),
        WITH_BENCH(a_classifier_says_so_and_gives_probabilities),
        WITH_BENCH(other_graphs_are_refused_by_name),
        WITH_BENCH(weights_of_the_other_convention_are_moved),
        WITH_BENCH(files_without_parity_are_of_the_published_network),
        WITH_BENCH(parity_is_kept_and_must_fit_the_tensors),
        WITH_BENCH(a_radial_basis_and_an_envelope_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
