/* SPDX-License-Identifier: Apache-2.0 */
/* Stored bases give the scores of recomputed ones: float32 frames the same bits,
 * 16-bit frames the same to their accuracy. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "made_mol.h"
#include "models/engine/engine.h"
#include "models/features/feature.h"
#include "models/features/mirror.h"

enum { N_GRAPHS = 6 };

typedef struct world {
    pl_arena *mem;
    ch_graph_block graphs;
    nn_basis_block q15, f32;
    nn_se3 *model;
    float *params;
} world;

static void must(pl_code code, const pl_error *err)
{
    if (code != PL_OK)
        fail_msg("%s", err->text);
}

static void make_graphs(world *w)
{
    ch_graph graph[N_GRAPHS];
    int64_t id[N_GRAPHS];
    pl_bytes bytes;
    pl_error err;

    for (int32_t i = 0; i < N_GRAPHS; i++) {
        ch_mol m = made_mol(4 + 4 * i, 9, (uint64_t)i, w->mem);
        ch_graph_opts o = { .edges = i % 3 == 2 ? CH_EDGES_KNN : CH_EDGES_RADIUS, .cutoff = 3, .k = 3 };
        id[i] = 1 + i;
        must(ch_graph_build(&graph[i], &m, &o, w->mem, &err), &err);
    }
    must(ch_graph_block_pack(&bytes, id, graph, N_GRAPHS, w->mem, &err), &err);
    must(ch_graph_block_unpack(&w->graphs, bytes, w->mem, &err), &err);
    must(nn_basis_pack(&bytes, NN_BASIS_FRAME_Q15, 3, &w->graphs, w->mem, &err), &err);
    must(nn_basis_unpack(&w->q15, bytes, &w->graphs, w->mem, &err), &err);
    must(nn_basis_pack(&bytes, NN_BASIS_FRAME_F32, 3, &w->graphs, w->mem, &err), &err);
    must(nn_basis_unpack(&w->f32, bytes, &w->graphs, w->mem, &err), &err);
}

static int open_parity(void **state, nn_parity parity)
{
    static world w;
    nn_inputs in = nn_inputs_qm9();
    nn_se3_conf conf = { .layers = 3,
                         .degrees = 4,
                         .channels = 8,
                         .heads = 2,
                         .channels_div = 2,
                         .norm = true,
                         .layer_norm = true,
                         .pooling = NN_POOL_MAX,
                         .fusion = NN_FUSE_FULL,
                         .outputs = 2,
                         .node_features = nn_inputs_node_features(&in),
                         .edge_features = nn_inputs_edge_features(&in),
                         .parity = parity };
    pl_error err;

    w.mem = pl_arena_new(1 << 20);
    make_graphs(&w);
    must(nn_se3_plan(&w.model, &conf, w.mem, &err), &err);
    w.params = PL_NEW(w.mem, float, w.model->n_floats);
    nn_se3_init(w.model, w.params, 3);
    *state = &w;
    return 0;
}

static int open_world(void **state) { return open_parity(state, NN_PARITY_BOTH); }

static int open_natural(void **state) { return open_parity(state, NN_PARITY_NATURAL); }

static int close_world(void **state)
{
    world *w = *state;

    pl_arena_free(w->mem);
    return 0;
}

static void scores_of(float *y, const world *w, const nn_batch *batch)
{
    nn_engine *e;
    pl_error err;

    must(nn_engine_cpu.open(&e, w->model, &(nn_engine_conf){ .threads = 1, .radial = NN_RADIAL_EXACT }, &err), &err);
    must(nn_engine_cpu.set_params(e, w->params, &err), &err);
    must(nn_engine_cpu.forward(e, batch, false, y, &err), &err);
    nn_engine_cpu.close(e);
}

/* Scores of all graphs in one batch, and of their mirror images; y, image [N_GRAPHS][2]. */
static void scores_both(float *y, float *image, const world *w, const nn_basis_block *basis, bool want_frames)
{
    nn_collate *c = nn_collate_new();
    nn_inputs in = nn_inputs_qm9();
    nn_item items[N_GRAPHS];
    nn_collated out;
    nn_mirror *mirror = nn_mirror_new();
    nn_batch other;
    pl_error err;

    for (int32_t i = 0; i < N_GRAPHS; i++)
        items[i] = nn_item_of(&w->graphs, basis, i);
    must(nn_collate_run(c, &out, items, N_GRAPHS, &in, &err), &err);
    assert_int_equal(out.batch.frame != NULL, want_frames);
    scores_of(y, w, &out.batch);
    must(nn_mirror_batch(mirror, &other, &out.batch, &err), &err);
    scores_of(image, w, &other);
    nn_mirror_free(mirror);
    nn_collate_free(c);
}

static void scores(float *y, const world *w, const nn_basis_block *basis, bool want_frames)
{
    float image[2 * N_GRAPHS];

    scores_both(y, image, w, basis, want_frames);
}

static void float_frames_give_the_same_bits(void **state)
{
    float stored[2 * N_GRAPHS], computed[2 * N_GRAPHS];

    scores(stored, *state, &((world *)*state)->f32, true);
    scores(computed, *state, NULL, false);
    for (int i = 0; i < 2 * N_GRAPHS; i++)
        assert_true(stored[i] == computed[i]);
}

static void sixteen_bit_frames_give_the_same_to_their_accuracy(void **state)
{
    float stored[2 * N_GRAPHS], computed[2 * N_GRAPHS];
    double worst = 0, scale = 0;

    scores(stored, *state, &((world *)*state)->q15, true);
    scores(computed, *state, NULL, false);
    for (int i = 0; i < 2 * N_GRAPHS; i++) {
        worst = fmax(worst, fabs((double)stored[i] - computed[i]));
        scale = fmax(scale, fabs((double)computed[i]));
        assert_true(isfinite(stored[i]));
    }
    assert_true(worst > 0); /* the stored ones were really used */
    if (!(worst <= 2e-4 * scale))
        fail_msg("scores differ by %g of %g", worst, scale);
}

/* Largest difference of a and b as a part of the largest of b. */
static double off(const float *a, const float *b)
{
    double worst = 0, scale = 0;

    for (int i = 0; i < 2 * N_GRAPHS; i++) {
        worst = isfinite(a[i]) ? fmax(worst, fabs((double)a[i] - b[i])) : INFINITY;
        scale = fmax(scale, fabs((double)b[i]));
    }
    return worst / scale;
}

/* The image of a stored frame is the frame of the image. */
static void mirror_images_with_stored_frames_are_those_of_computed_ones(void **state)
{
    const world *w = *state;
    float plain[2 * N_GRAPHS], image[2 * N_GRAPHS], y[2 * N_GRAPHS], stored[2 * N_GRAPHS];
    bool natural = w->model->conf.parity == NN_PARITY_NATURAL;

    scores_both(plain, image, w, NULL, false);
    assert_true(natural ? off(image, plain) < 2e-5 : off(image, plain) > 1e-3);
    scores_both(y, stored, w, &w->f32, true);
    assert_true(off(stored, image) < 2e-5);
    scores_both(y, stored, w, &w->q15, true);
    assert_true(off(stored, image) < 2e-4);
}

/* ---- linked with -Wl,--wrap=malloc ---- */

static bool refuses;

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

void *__wrap_malloc(size_t n) { return refuses ? NULL : __real_malloc(n); }

static nn_batch first_of(const world *w, int32_t n, nn_collate *c)
{
    nn_inputs in = nn_inputs_qm9();
    nn_item items[N_GRAPHS];
    nn_collated out;
    pl_error err;

    for (int32_t i = 0; i < n; i++)
        items[i] = nn_item_of(&w->graphs, &w->f32, i);
    must(nn_collate_run(c, &out, items, n, &in, &err), &err);
    return out.batch;
}

/* Once there was room for a batch, one of its size or smaller needs no memory. */
static void a_mirror_keeps_its_room(void **state)
{
    static const struct {
        int32_t n;
        bool refused;
        pl_code code;
    } calls[] = {
        { 2, true, PL_ENOMEM }, { 3, false, PL_OK }, { 3, true, PL_OK }, { 2, true, PL_OK }, { N_GRAPHS, true, PL_ENOMEM }
    };
    nn_mirror *m = nn_mirror_new();
    nn_collate *c = nn_collate_new();
    pl_error err;

    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        const nn_batch in = first_of(*state, calls[k].n, c);
        nn_batch other;
        pl_code code;
        assert_non_null(in.frame);
        refuses = calls[k].refused;
        code = nn_mirror_batch(m, &other, &in, &err);
        refuses = false;
        assert_int_equal(code, calls[k].code);
    }
    nn_collate_free(c);
    nn_mirror_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mirror_keeps_its_room),
        cmocka_unit_test(float_frames_give_the_same_bits),
        cmocka_unit_test(sixteen_bit_frames_give_the_same_to_their_accuracy),
        cmocka_unit_test(mirror_images_with_stored_frames_are_those_of_computed_ones),
    };

    return cmocka_run_group_tests_name("both", tests, open_world, close_world) +
           cmocka_run_group_tests_name("natural", tests, open_natural, close_world);
}
