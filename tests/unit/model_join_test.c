/* SPDX-License-Identifier: Apache-2.0 */
/* Several networks in one model file, and the models that may become one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "models/files/join.h"
#include "models/files/model_file_parts.h"
#include "models/network/sparse.h"
#include "models/tensors/safetensors.h"
#include "pipeline/base/text.h"
#include "tests/unit/written_model.h"

enum { N = 3 };

/* The bench's model and two others that differ in their weights and in what was calibrated. */
typedef struct several {
    nn_model_file m[N], *list[N];
    nn_target target[N][3];
} several;

/* All three targets. */
static int three_open(void **state)
{
    const int code = bench_open(state);
    bench *b = *state;

    if (code != 0)
        return code;
    bench_describe(b, 2, 3, 3);
    return !bench_network(b);
}

static nn_seen seen_of(const char *block, const char *other, bool all, pl_arena *mem)
{
    char key[2][NN_SEEN_KEY + 1];
    nn_seen seen;

    strcpy(key[0], block);
    strcpy(key[1], other);
    assert_int_equal(nn_seen_make(&seen, key, 2, 2, all, mem, NULL), PL_OK);
    return seen;
}

static void make(several *s, bench *b)
{
    static const char *const name[N] = { "a", "b", "c" };
    static const char *const provenance[N] = {
        "{\"date\":\"2026\",\"seed\":1,\"training\":{\"molecules\":9,\"epochs\":5},\"errors\":{\"valid\":{\"n\":3}},\"calibration\":1}",
        "{\"date\":\"2026\",\"seed\":2,\"training\":{\"molecules\":9,\"epochs\":6},\"errors\":{\"valid\":{\"n\":3}},\"calibration\":1}",
        "{\"date\":\"2026\",\"training\":{\"molecules\":9,\"epochs\":5}}"
    };

    for (int k = 0; k < N; k++) {
        s->list[k] = &s->m[k];
        s->m[k] = b->m;
        s->m[k].name = name[k];
        s->m[k].provenance = provenance[k];
        s->m[k].target = s->target[k];
        memcpy(s->target[k], b->target, sizeof b->target);
        s->m[k].params = PL_NEW(b->mem, float, b->m.model->n_floats);
        for (size_t i = 0; i < b->m.model->n_floats; i++)
            s->m[k].params[i] = b->m.params[i] + (float)k;
        (void)snprintf(s->m[k].sha256, sizeof s->m[k].sha256, "%064d", k);
        s->m[k].seen = seen_of("MMMMMMMMMMMMMM", k == 1 ? "AAAAAAAAAAAAAA" : "ZZZZZZZZZZZZZZ", true, b->mem);
    }
    s->target[1]->interval.band[0].within = 9;
    s->target[2]->lowest = 0.7;
}

static void join(nn_model_file *out, several *s, int32_t n, bench *b)
{
    pl_error err = { 0 };

    if (nn_model_join(out, s->list, n, b->mem, &err) != PL_OK)
        fail_msg("%s", err.text);
}

/* What the refusal of the first n says. */
static const char *refused(several *s, int32_t n, bench *b)
{
    nn_model_file out;
    pl_error err = { 0 };

    assert_int_equal(nn_model_join(&out, s->list, n, b->mem, &err), PL_ECONFIG);
    return err.where[0] == '\0' ? pl_strdup(b->mem, err.text) : pl_sprintf(b->mem, "%s: %s", err.where, err.text);
}

static void same_params(const nn_model_file *a, const nn_model_file *b)
{
    assert_int_equal(nn_model_networks(a), nn_model_networks(b));
    assert_memory_equal(a->params, b->params, (size_t)nn_model_networks(a) * a->model->n_floats * sizeof(float));
}

static void joined_networks_are_written_and_read(void **state)
{
    bench *b = *state;
    several s;
    nn_model_file *back;

    make(&s, b);
    for (int half = 0; half < 2; half++) {
        for (int k = 0; k < N; k++) {
            s.m[k].bf16 = half;
            nn_model_round(&s.m[k]);
        }
        join(&b->m, &s, N, b);
        assert_true(nn_model_networks(&b->m) == N && b->m.bf16 == half && b->m.sha256[0] == '\0');
        for (int32_t k = 0; k < N; k++)
            assert_memory_equal(nn_model_params(&b->m, k), s.m[k].params, b->m.model->n_floats * sizeof(float));
        nn_model_round(&b->m);
        back = written_and_read(b);
        same_params(back, &b->m);
        assert_non_null(strstr(nn_model_metadata(back, b->mem), "\"format_version\":\"9\""));
        assert_non_null(strstr(nn_model_metadata(back, b->mem), "\"networks\":3"));
        assert_string_equal(nn_model_metadata(back, b->mem), nn_model_metadata(&b->m, b->mem));
        assert_int_equal(nn_model_components(back), 1);
    }
    s.m[2].bf16 = false; /* float32 holds both */
    join(&b->m, &s, N, b);
    assert_false(b->m.bf16);
}

static void what_was_calibrated_is_the_widest(void **state)
{
    bench *b = *state;
    several s;
    nn_model_file out;

    make(&s, b);
    join(&out, &s, N, b);
    assert_true(out.target[0].interval.n == 2 && out.target[0].interval.band[0].within == 9);
    assert_true(out.target[0].interval.band[1].within == b->target[0].interval.band[1].within);
    assert_true(out.target[0].lowest == 0.7 && out.target[1].interval.n == 0 && out.target[2].interval.n == 1);
    assert_true(s.target[0]->interval.band[0].within == 1.5 && s.target[0]->lowest == b->target[0].lowest); /* as it was */
    s.target[1]->interval.band[1].from = 0.4; /* other bands: none is right for all */
    join(&out, &s, N, b);
    assert_true(out.target[0].interval.n == 0 && out.target[2].interval.n == 1);
    make(&s, b);
    s.target[2][2].interval.part = "test";
    join(&out, &s, N, b);
    assert_true(out.target[0].interval.n == 2 && out.target[2].interval.n == 0);
    make(&s, b);
    s.target[2][2].interval.band[0].n++; /* other molecules */
    join(&out, &s, N, b);
    assert_int_equal(out.target[2].interval.n, 0);
}

static void what_one_has_met_all_have_met(void **state)
{
    bench *b = *state;
    several s;
    nn_model_file out;

    make(&s, b);
    join(&out, &s, N, b);
    assert_true(out.seen.known && out.seen.all && out.seen.n == 3);
    assert_string_equal(out.seen.key[0], "AAAAAAAAAAAAAA");
    assert_string_equal(out.seen.key[2], "ZZZZZZZZZZZZZZ");
    s.m[2].seen.all = false;
    join(&out, &s, N, b);
    assert_true(out.seen.known && !out.seen.all && out.seen.n == 3);
    s.m[1].seen = (nn_seen){ .known = false };
    join(&out, &s, N, b);
    assert_true(!out.seen.known && out.seen.n == 0);
}

static void provenance_is_what_all_say(void **state)
{
    bench *b = *state;
    several s;
    nn_model_file out;

    make(&s, b);
    join(&out, &s, 2, b);
    assert_string_equal(
        out.provenance,
        "{\"date\":\"2026\",\"training\":{\"molecules\":9},\"joined\":["
        "{\"name\":\"a\",\"sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\",\"provenance\":"
        "{\"date\":\"2026\",\"seed\":1,\"training\":{\"molecules\":9,\"epochs\":5},\"errors\":{\"valid\":{\"n\":3}},\"calibration\":1}},"
        "{\"name\":\"b\",\"sha256\":\"0000000000000000000000000000000000000000000000000000000000000001\",\"provenance\":"
        "{\"date\":\"2026\",\"seed\":2,\"training\":{\"molecules\":9,\"epochs\":6},\"errors\":{\"valid\":{\"n\":3}},\"calibration\":1}}]}");
}

/* Joined ones can be joined again. */
static void all_networks_of_all_models_are_there(void **state)
{
    bench *b = *state;
    several s;
    nn_model_file two, three, all;
    nn_model_file *list[2] = { &two };

    make(&s, b);
    join(&two, &s, 2, b);
    join(&all, &s, N, b);
    list[1] = &s.m[2];
    assert_int_equal(nn_model_join(&three, list, 2, b->mem, NULL), PL_OK);
    same_params(&three, &all);
    two.networks = NN_NETWORKS_MAX;
    pl_error err = { 0 };
    assert_int_equal(nn_model_join(&three, list, 2, b->mem, &err), PL_ECONFIG);
    assert_string_equal(err.text, "they have 17 networks; at most 16 can be joined");
}

static void unlike_models_are_refused_by_name(void **state)
{
    bench *b = *state;
    several s;
    nn_domain_molecule one[1] = { { .print = { { 7 } }, .key = "AAAAAAAAAAAAAA-UHFFFAOYSA-N" } };
    static const float measured[3] = { 1, NAN, 1 };
    nn_range own = { .molecules = 7 };
    nn_limits columns[1] = { { 0 } };
    static const char tail[] = " differ from those of model a; give both to `score` or `predict`, which take the mean";

#define DIFFERS(change, what)                                                                        \
    do {                                                                                             \
        make(&s, b);                                                                                 \
        change;                                                                                      \
        assert_string_equal(refused(&s, N, b), pl_sprintf(b->mem, "model c: its %s%s", what, tail)); \
    } while (0)
    DIFFERS(s.m[2].conf.heads = 1, "settings of the network");
    DIFFERS(s.m[2].inputs.charge = true, "inputs");
    DIFFERS(s.m[2].graph.cutoff = 4, "graph");
    DIFFERS(s.target[2][1].scale.mean = 7, "scales");
    DIFFERS(s.target[2][2].scale.stdev = 7, "scales");
    DIFFERS(s.target[2][0].scale.constant = 7, "scales");
    DIFFERS(s.target[2][0].scale.offset[2] = 7, "scales");
    DIFFERS(s.target[2][1].name = "nu", "targets");
    DIFFERS(s.target[2][1].unit = "C m", "targets");
    DIFFERS(s.target[2][1].better = "high", "targets");
    DIFFERS(s.m[2].conf.outputs = 2, "targets");
    DIFFERS(s.m[2].classifies = true, "targets");
    DIFFERS(s.m[2].range.molecules = 7, "range");
    DIFFERS(s.target[2][1].range = &own, "ranges of the targets");
    DIFFERS(s.target[2][2].columns = columns, "ranges of the targets");
    DIFFERS(s.m[2].provenance = "{\"prepare\":{\"fragment\":\"keep\"}}", "settings of prepare");
    DIFFERS(s.m[2].provenance = "{\"conformers\":{\"count\":8}}", "settings of prepare");
    DIFFERS(s.m[2].provenance = "{\"molecules\":\"neutral\"}", "settings of prepare");
    DIFFERS(assert_int_equal(nn_domain_make(&s.m[2].domain, one, 1, b->mem, NULL), PL_OK), "training molecules");
#undef DIFFERS
    make(&s, b); /* the same molecule, of which one has not all values */
    for (int k = 0; k < N; k++)
        assert_int_equal(nn_domain_make(&s.m[k].domain, one, 1, b->mem, NULL), PL_OK);
    assert_int_equal(nn_domain_measured(&s.m[2].domain, measured, 3, b->mem, NULL), PL_OK);
    assert_string_equal(refused(&s, N, b), pl_sprintf(b->mem, "model c: its training molecules%s", tail));
    make(&s, b);
    s.m[0].model = NULL;
    assert_string_equal(refused(&s, N, b), "model a: it has no network");
    make(&s, b);
    s.m[1].members.n = 1;
    assert_string_equal(refused(&s, N, b), "model b: it has members besides its network; only networks can be joined");
    make(&s, b);
    s.m[1].denoises = true;
    assert_string_equal(refused(&s, N, b), "model b: it learned noise alone and predicts nothing");
    make(&s, b);
    memcpy(s.m[2].sha256, s.m[1].sha256, sizeof s.m[2].sha256);
    assert_string_equal(refused(&s, N, b), "model c: it is the same file as that of model b");
}

/* ---- files that are not right -------------------------------------------- */

static void every_second(float *w, const nn_model_file *m)
{
    for (int32_t k = 0; k < m->model->n_params; k++)
        for (size_t i = 0; i < m->model->param[k].size && nn_sparse_fits(&m->model->param[k]); i += 2)
            w[m->model->param[k].at + i] = 0;
}

static void packed_networks_are_packed_each(void **state)
{
    bench *b = *state;
    several s;
    nn_tensors *all;
    int packed = 0;

    make(&s, b);
    for (int k = 0; k < N; k++) {
        s.m[k].sparse = true;
        every_second(s.m[k].params, &s.m[k]);
    }
    join(&b->m, &s, N, b);
    assert_true(b->m.sparse);
    same_params(written_and_read(b), &b->m);
    assert_int_equal(nn_tensors_read(&all, b->path, b->mem, NULL), PL_OK);
    for (int k = 0; k < all->n; k++)
        packed += strncmp(all->t[k].name, "networks.2.", 11) == 0 && strstr(all->t[k].name, ".index") != NULL;
    assert_true(packed > 0);
    s.m[1].sparse = false; /* then none is packed */
    join(&b->m, &s, N, b);
    assert_false(b->m.sparse);
    same_params(written_and_read(b), &b->m);
}

/* Writes the file with a tensor called otherwise (NULL: without it), or with another number of networks; what the refusal says of it. */
static const char *said(bench *b, const char *name, const char *other, const char *networks)
{
    nn_tensors *all, out;
    nn_tensor *t;
    nn_meta *meta;
    nn_model_file *back;
    pl_error err = { 0 };

    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    assert_int_equal(nn_tensors_read(&all, b->path, b->mem, NULL), PL_OK);
    out = *all;
    out.t = t = PL_NEW(b->mem, nn_tensor, all->n);
    out.meta = meta = PL_NEW(b->mem, nn_meta, all->n_meta);
    out.n = 0;
    for (int k = 0; k < all->n; k++) {
        t[out.n] = all->t[k];
        if (strcmp(all->t[k].name, name) == 0)
            t[out.n].name = other;
        out.n += t[out.n].name != NULL;
    }
    for (int k = 0; k < all->n_meta; k++) {
        const char *was = strstr(all->meta[k].value, "\"networks\":3");
        meta[k] = all->meta[k];
        if (was != NULL && networks != NULL)
            meta[k].value = pl_sprintf(b->mem, "%.*s%s%s", (int)(was - meta[k].value), meta[k].value, networks, was + 12);
    }
    assert_int_equal(nn_tensors_write(b->path, &out, NULL), PL_OK);
    assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
    return pl_strdup(b->mem, err.text + strlen(b->path) + 2);
}

static void what_is_not_right_is_named(void **state)
{
    static const char first[] = "transformer.graph_modules.0.project.weights.0";
    bench *b = *state;
    several s;
    const char *second = pl_sprintf(b->mem, "networks.1.%s", first), *fourth = pl_sprintf(b->mem, "networks.3.%s", first);

    make(&s, b);
    join(&b->m, &s, N, b);
    assert_string_equal(said(b, second, NULL, NULL), pl_sprintf(b->mem, "tensor %s is missing", second));
    assert_string_equal(said(b, first, NULL, NULL), pl_sprintf(b->mem, "tensor %s is missing", first));
    assert_string_equal(said(b, second, fourth, NULL), pl_sprintf(b->mem, "tensor %s is missing", second));
    assert_non_null(strstr(said(b, "", "", "\"networks\":2"), "tensor networks.2."));
    assert_non_null(strstr(said(b, "", "", "\"networks\":2"), "does not belong to this model"));
    assert_non_null(strstr(said(b, "", "", "\"networks\":4"), "tensor networks.3."));
    assert_string_equal(said(b, "", "", "\"networks\":1"), "metadata model.networks is not a number from 2 to 16");
    assert_string_equal(said(b, "", "", "\"networks\":17"), "metadata model.networks is not a number from 2 to 16");
    assert_string_equal(said(b, "", "", "\"nets\":3"), "metadata model has no networks");
}

#define WITH_THREE(f) cmocka_unit_test_setup_teardown(f, three_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_THREE(joined_networks_are_written_and_read), WITH_THREE(what_was_calibrated_is_the_widest),
        WITH_THREE(what_one_has_met_all_have_met),        WITH_THREE(provenance_is_what_all_say),
        WITH_THREE(all_networks_of_all_models_are_there), WITH_THREE(unlike_models_are_refused_by_name),
        WITH_THREE(packed_networks_are_packed_each),      WITH_THREE(what_is_not_right_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
