/* SPDX-License-Identifier: Apache-2.0 */
/* 2:4 sparsity: which weights are kept, how they are packed, and the model files that hold them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "models/network/sparse.h"
#include "models/tensors/safetensors.h"
#include "pipeline/base/text.h"
#include "tests/unit/guarded.h"
#include "tests/unit/model_bench.h"

static int bench_open(void **state)
{
    bench *b = *state = calloc(1, sizeof *b);

    if (b == NULL || !bench_make(b))
        return 1;
    b->target[0] = (nn_target){ .name = "gap", .unit = "eV", .better = "low", .scale = { .stdev = 1 } };
    b->m = (nn_model_file){ .name = "tiny", .target = b->target, .provenance = "{}", .sparse = true };
    b->m.graph = (ch_graph_opts){ .edges = CH_EDGES_BONDS };
    b->m.conf = nn_se3_published();
    b->m.conf.layers = 2;
    b->m.conf.degrees = 3;
    b->m.conf.channels = 16;
    b->m.conf.heads = 2;
    return !bench_network(b);
}

static void prune_all(bench *b)
{
    for (int32_t k = 0; k < b->m.model->n_params; k++)
        if (nn_sparse_fits(&b->m.model->param[k]))
            nn_sparse_prune(b->m.params + b->m.model->param[k].at, &b->m.model->param[k]);
}

static const nn_param *param_named(const bench *b, const char *part)
{
    for (int32_t k = 0; k < b->m.model->n_params; k++)
        if (strstr(b->m.model->param[k].name, part) != NULL)
            return &b->m.model->param[k];
    fail_msg("no tensor %s", part);
    return NULL;
}

/* ---- the rule ------------------------------------------------------------ */

static void the_two_largest_of_four_are_kept(void **state)
{
    const nn_param p = { .n_dims = 2, .dims = { 8, 16 }, .size = 128 };
    const float group[4][4] = { { 1, -3, 2, 0.5f }, { -1, 1, -1, 1 }, { 0, 0, 0, 5 }, { 0.25f, -0.25f, 0.5f, 0.125f } };
    const float kept[4][4] = { { 0, -3, 2, 0 }, { -1, 1, 0, 0 }, { 0, 0, 0, 5 }, { 0.25f, 0, 0.5f, 0 } };
    float w[128];

    (void)state;
    for (int r = 0; r < 8; r++)
        memcpy(w + 16 * r, group, sizeof group);
    nn_sparse_prune(w, &p);
    for (int r = 0; r < 8; r++)
        for (int i = 0; i < 16; i++)
            assert_true(w[16 * r + i] == kept[i / 4][i % 4]);
}

static void vectors_and_short_rows_stay_dense(void **state)
{
    const struct {
        int32_t n_dims, dims[2];
        bool fits;
    } all[] = { { 2, { 8, 16 }, true },  { 2, { 7, 16 }, false }, { 2, { 8, 12 }, false },
                { 2, { 8, 18 }, false }, { 2, { 8, 20 }, true },  { 1, { 64, 1 }, false } };
    const bench *b = *state;
    nn_sparse_count c;

    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        const nn_param p = { .n_dims = all[k].n_dims, .dims = { all[k].dims[0], all[k].dims[1] } };
        assert_int_equal(nn_sparse_fits(&p), all[k].fits);
    }
    assert_true(nn_sparse_fits(param_named(b, "mlp.0.weight")) && !nn_sparse_fits(param_named(b, "mlp.2.weight")));
    assert_true(!nn_sparse_fits(param_named(b, "0.bias")) && nn_sparse_fits(param_named(b, "net.3.weight")));
    c = nn_sparse_count_of(b->m.model->param, b->m.model->n_params, NULL);
    assert_true(c.matrices > 10 && c.dense > 2 && c.zeros == 0);
    assert_true(c.weights > b->m.model->n_floats * 95 / 100);
}

/* The engines mix the rows of a path (docs/performance.md 2.1). */
static void rows_that_are_mixed_share_their_zeros(void **state)
{
    bench *b = *state;
    const nn_param *p = param_named(b, "2.to_key_value.conv.radial_func.net.6.weight");
    const float *w = b->m.params + p->at;
    const nn_group *g = p->last_of;
    size_t kept = 0;

    if (g == NULL)
        fail_msg("%s belongs to no radial network", p->name);
    prune_all(b);
    for (int32_t row = 0; row < p->dims[0]; row += g->n_freq)
        for (int32_t i = 0; i < g->n_paths; i++)
            for (int32_t f = 0; f < g->path[i].n_freq; f++)
                for (int k = 0; k < NN_RADIAL_HIDDEN; k++) {
                    const size_t first = (size_t)(row + g->path[i].f0) * NN_RADIAL_HIDDEN + (size_t)k;
                    assert_int_equal(w[first] == 0, w[first + (size_t)f * NN_RADIAL_HIDDEN] == 0);
                    kept += w[first + (size_t)f * NN_RADIAL_HIDDEN] != 0;
                }
    assert_int_equal(kept, p->size / 2);
}

static void pruning_twice_is_as_once_and_halves(void **state)
{
    bench *b = *state;
    const size_t bytes = b->m.model->n_floats * sizeof(float);
    float *once = PL_NEW(b->mem, float, b->m.model->n_floats);
    nn_sparse_count c;

    prune_all(b);
    memcpy(once, b->m.params, bytes);
    prune_all(b);
    assert_memory_equal(once, b->m.params, bytes);
    c = nn_sparse_count_of(b->m.model->param, b->m.model->n_params, b->m.params);
    assert_int_equal(c.zeros, c.weights / 2);
}

/* ---- packing -------------------------------------------------------------- */

static void what_is_packed_is_unpacked(void **state)
{
    const float w[12] = { 0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0 }, dense[4] = { 1, 2, 0, 3 };
    const float numbers[6] = { 1, 2, 0, 3, 0, 0 };
    const uint8_t bits[2] = { 0xCD, 0x04 }; /* (1, 3), (0, 3); (0, 1) */
    float value[6], back[12];
    uint8_t index[2];

    (void)state;
    assert_int_equal(nn_sparse_index_bytes(12), 2);
    assert_true(nn_sparse_pack(value, index, w, 12));
    assert_memory_equal(value, numbers, sizeof numbers);
    assert_memory_equal(index, bits, sizeof bits);
    assert_int_equal(nn_sparse_unpack(back, value, index, 12), 3);
    assert_memory_equal(back, w, sizeof w);
    assert_false(nn_sparse_pack(value, index, dense, 4));
    index[0] = 0xCC; /* (0, 3), then (0, 3); the first is (0, 3) */
    assert_int_equal(nn_sparse_unpack(back, value, index, 12), 3);
    index[0] = 0xC7; /* (3, 1) */
    assert_int_equal(nn_sparse_unpack(back, value, index, 12), 0);
    index[0] = 0xAD; /* (2, 2) */
    assert_int_equal(nn_sparse_unpack(back, value, index, 12), 1);
    index[0] = 0xCD;
    index[1] = 0x14; /* something behind the end */
    assert_int_equal(nn_sparse_unpack(back, value, index, 12), 4);
}

static void nothing_is_read_behind_two_groups(void **state)
{
    float *w = guarded(8, sizeof *w), *value = guarded(4, sizeof *value), *back = guarded(8, sizeof *back);
    uint8_t *index = guarded(nn_sparse_index_bytes(8), sizeof *index);

    (void)state;
    w[1] = 2;
    w[4] = w[7] = 3;
    assert_int_equal(nn_sparse_index_bytes(8), 1);
    assert_true(nn_sparse_pack(value, index, w, 8));
    assert_int_equal(nn_sparse_unpack(back, value, index, 8), 2);
    assert_memory_equal(back, w, 8 * sizeof *w);
}

/* ---- files ---------------------------------------------------------------- */

static int64_t size_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

/* The file is smaller by nearly half of what is pruned, and has the weights that a dense file has. */
static void a_file_has_all_weights_in_less_space(void **state)
{
    bench *b = *state;
    const size_t bytes = b->m.model->n_floats * sizeof(float);

    prune_all(b);
    for (int half = 0; half < 2; half++) {
        nn_model_file *packed, *dense;
        int64_t small;
        b->m.bf16 = half;
        b->m.sparse = true;
        nn_model_round(&b->m);
        packed = written_and_read(b);
        small = size_of(b->path);
        assert_non_null(strstr(nn_model_metadata(packed, b->mem), "\"format_version\":\"8\""));
        assert_true(packed->sparse && packed->verified && packed->bf16 == (bool)half);
        b->m.sparse = false;
        dense = written_and_read(b);
        assert_false(dense->sparse);
        assert_non_null(strstr(nn_model_metadata(dense, b->mem), "\"format_version\":\"1\""));
        assert_memory_equal(packed->params, b->m.params, bytes);
        assert_memory_equal(packed->params, dense->params, bytes);
        if (!((double)small < 0.6 * (double)size_of(b->path)))
            fail_msg("%lld bytes, dense %lld", (long long)small, (long long)size_of(b->path));
    }
}

static void weights_that_are_not_2_4_are_not_written(void **state)
{
    bench *b = *state;
    pl_error err = { 0 };

    assert_int_equal(nn_model_write(&b->m, b->path, &err), PL_EBUG);
    assert_non_null(strstr(err.text, "is not 2:4"));
}

/* Changes the first tensor of that ending, or the metadata, and gives the file a checksum that fits. */
typedef void change(nn_tensor *t, nn_meta *meta, pl_arena *mem);

static void refused_with(bench *b, const char *ending, change *how, const char *text)
{
    nn_tensors *all, out;
    nn_tensor *t;
    nn_meta *meta, *version = NULL;
    nn_model_file *back;
    pl_error err = { 0 };
    int k = 0;

    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    assert_int_equal(nn_tensors_read(&all, b->path, b->mem, NULL), PL_OK);
    t = PL_NEW(b->mem, nn_tensor, all->n);
    meta = PL_NEW(b->mem, nn_meta, all->n_meta);
    memcpy(t, all->t, (size_t)all->n * sizeof *t);
    memcpy(meta, all->meta, (size_t)all->n_meta * sizeof *meta);
    while (k < all->n && strstr(t[k].name, ending) == NULL)
        k++;
    assert_true(k < all->n);
    for (int i = 0; i < all->n_meta; i++)
        if (strcmp(meta[i].key, "format_version") == 0)
            version = &meta[i];
    assert_non_null(version);
    how(&t[k], version, b->mem);
    out = *all;
    out.t = t;
    out.meta = meta;
    assert_int_equal(nn_tensors_write(b->path, &out, NULL), PL_OK);
    assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
    if (strstr(err.text, text) == NULL || strstr(err.text, b->path) == NULL)
        fail_msg("'%s' does not say '%s' and the file", err.text, text);
}

static void an_index_twice(nn_tensor *t, nn_meta *version, pl_arena *mem)
{
    uint8_t *copy = PL_NEW(mem, uint8_t, t->count);

    (void)version;
    memcpy(copy, t->data, t->count);
    copy[1] = (uint8_t)((copy[1] & 0x0F) | 0xF0); /* group 4: (3, 3) */
    t->data = copy;
}

static void another_name(nn_tensor *t, nn_meta *version, pl_arena *mem)
{
    (void)version;
    t->name = pl_sprintf(mem, "%.4s", t->name);
}

static void fewer(nn_tensor *t, nn_meta *version, pl_arena *mem)
{
    (void)version;
    (void)mem;
    t->dims[0]--;
    t->count = (size_t)(t->n_dims == 2 ? t->dims[0] * t->dims[1] : t->dims[0]);
}

static void not_finite(nn_tensor *t, nn_meta *version, pl_arena *mem)
{
    float *copy = PL_NEW(mem, float, t->count);

    (void)version;
    memcpy(copy, t->data, t->count * sizeof *copy);
    copy[0] = INFINITY;
    t->data = copy;
}

static void bytes_for_numbers(nn_tensor *t, nn_meta *version, pl_arena *mem)
{
    (void)version;
    t->data = PL_NEW(mem, uint8_t, t->count);
    t->dtype = NN_U8;
}

static void of_format_7(nn_tensor *t, nn_meta *version, pl_arena *mem)
{
    (void)t;
    (void)mem;
    version->value = "7";
}

static void damage_is_named(void **state)
{
    bench *b = *state;

    prune_all(b);
    refused_with(b, ".index", an_index_twice, ".index is damaged: the indices of group 4 of ");
    refused_with(b, ".index", an_index_twice, " are not two that ascend");
    refused_with(b, ".index", another_name, ".index is missing");
    refused_with(b, ".values", another_name, ".values is missing");
    refused_with(b, ".index", fewer, " numbers, the model needs ");
    refused_with(b, ".values", fewer, " numbers, the model needs ");
    refused_with(b, ".values", not_finite, "is not finite");
    refused_with(b, ".values", bytes_for_numbers, "has type U8, F32 or BF16 is needed");
    refused_with(b, ".index", of_format_7, "is missing"); /* a program that knows no packed matrix lacks the weights */
}

/* Beside the file's own tensors one more: the parts of a vector, which is never packed, a matrix that is there twice, a stranger. */
static void a_tensor_that_is_not_packed_has_no_parts(void **state)
{
    bench *b = *state;
    nn_tensors *all, out;
    nn_tensor *t;
    const nn_param *matrix = NULL, *vector = NULL;
    char want[200];

    prune_all(b);
    for (int32_t k = 0; k < b->m.model->n_params; k++)
        *(nn_sparse_fits(&b->m.model->param[k]) ? &matrix : &vector) = &b->m.model->param[k];
    assert_true(matrix != NULL && vector != NULL);
    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    assert_int_equal(nn_tensors_read(&all, b->path, b->mem, NULL), PL_OK);
    t = PL_NEW(b->mem, nn_tensor, all->n + 1);
    memcpy(t, all->t, (size_t)all->n * sizeof *t);
    out = *all;
    out.t = t;
    out.n++;
    for (int k = 0; k < 3; k++) {
        const nn_param *p = k ? matrix : vector;
        const char *const names[] = { pl_sprintf(b->mem, "%s.index", p->name), p->name, "stranger" };
        nn_model_file *back;
        pl_error err = { 0 };
        t[all->n] = (nn_tensor){ .name = names[k],
                                 .dtype = k ? NN_F32 : NN_U8,
                                 .n_dims = p->n_dims,
                                 .dims = { p->dims[0], p->dims[1] },
                                 .count = p->size,
                                 .data = b->m.params + p->at };
        assert_int_equal(nn_tensors_write(b->path, &out, NULL), PL_OK);
        assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
        (void)snprintf(want, sizeof want, "tensor %s%s does not belong to this model", names[k], k == 1 ? ".values" : "");
        if (strstr(err.text, want) == NULL)
            fail_msg("'%s' does not say '%s'", err.text, want);
    }
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_two_largest_of_four_are_kept),
        WITH_BENCH(vectors_and_short_rows_stay_dense),
        WITH_BENCH(rows_that_are_mixed_share_their_zeros),
        WITH_BENCH(pruning_twice_is_as_once_and_halves),
        cmocka_unit_test(nothing_is_read_behind_two_groups),
        cmocka_unit_test(what_is_packed_is_unpacked),
        WITH_BENCH(a_file_has_all_weights_in_less_space),
        WITH_BENCH(weights_that_are_not_2_4_are_not_written),
        WITH_BENCH(damage_is_named),
        WITH_BENCH(a_tensor_that_is_not_packed_has_no_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
