/* models/cuda/launch.cuh - launches of the kernels along edges, by precision and width; part of device.cu. */
#ifndef NN_CUDA_LAUNCH_CUH
#define NN_CUDA_LAUNCH_CUH

/* Bytes of shared memory of a tile's block: the maximum over the orders. */
template <int P> static size_t tile_bytes(const nn_gpu_so2 *s, size_t more)
{
    int most = 0;

    for (int m = 0; m < s->n_orders; m++) {
        int side = tile_memory_of<P>(NULL, s->k[m], m).side;
        most = side > most ? side : most;
    }
    return (size_t)(TILE_STAGES * tile_stage() + 2 * NN_GPU_TILE + 2 * most) * sizeof(uint32_t) + more;
}

static bool by_fours(const float *p, int size, const int *at, const int *n)
{
    bool yes = (uintptr_t)p % 16 == 0 && size % 4 == 0;

    for (int i = 0; i < NN_GPU_DEGREES; i++)
        yes = yes && (at[i] | n[i]) % 4 == 0;
    return yes;
}

/* Whether node features, and their places in edge vectors, are aligned for four channels at a time. */
static bool gather_fours(const nn_gpu_turn *t)
{
    bool yes = by_fours(t->x, t->nodes.size, t->nodes.at, t->nodes.ch)
        && by_fours(NULL, 0, t->edges.order, t->edges.ch);

    for (int i = 0; i < NN_GPU_DEGREES * NN_GPU_FREQS; i++)
        yes = yes && t->edges.at[i / NN_GPU_FREQS][i % NN_GPU_FREQS] % 4 == 0;
    return yes;
}

static int so2_fours(const nn_gpu_so2 *s)
{
    return (by_fours(s->x, s->x_size, s->x_at, s->k) ? TILE_X4 : 0)
        | (by_fours(s->y, s->y_size, s->y_at, s->n) ? TILE_Y4 : 0);
}

static int conv_fours(const nn_gpu_conv *c)
{
    return (gather_fours(&c->x) && by_fours(NULL, 0, c->s.x_at, c->s.k) ? TILE_X4 : 0)
        | (so2_fours(&c->s) & (!c->logit || gather_fours(&c->q) ? TILE_Y4 : 0));
}

template <int P> static cudaError_t tile_allow(const nn_gpu *g)
{
    cudaError_t e = SHARED_ALLOW(so2_mma<P>, (int)g->shared);

    if (e == cudaSuccess)
        e = SHARED_ALLOW(tile_conv<P>, (int)g->shared);
    return e;
}

/* Allows large shared memory. Called once, not before each launch: it may be forbidden during a capture, and it may wait
 * for copies. */
static cudaError_t tiles_allow(const nn_gpu *g)
{
    cudaError_t (*const allow[])(const nn_gpu *) = { tile_allow<NN_GPU_BF16X3>, tile_allow<NN_GPU_BF16>,
                                                     tile_allow<NN_GPU_TF32>, tile_allow<NN_GPU_FP16> };
    cudaError_t e = cudaSuccess;

    for (int i = 0; i < 4 && e == cudaSuccess; i++)
        e = allow[i](g);
    return e;
}

/* On tensor cores; false: the tile does not fit into shared memory. */
template <int P> static bool tile_launch(nn_gpu *g, const nn_gpu_so2 *s)
{
    size_t bytes = tile_bytes<P>(s, 0);

    if (bytes > g->shared)
        return false;
    LAUNCH(so2_mma<P>, dim3((unsigned)s->n_tiles, (unsigned)s->n_orders), TILE_THREADS, bytes, g->stream, *s,
           so2_fours(s));
    launched(g, "so2");
    return true;
}

static bool op_so2(nn_gpu *g, const nn_gpu_so2 *a)
{
    unsigned orders = (unsigned)a->n_orders;

    if (!a->n_tiles)
        return true;
    switch (a->precision) {
    case NN_GPU_BF16X3:
        return tile_launch<NN_GPU_BF16X3>(g, a);
    case NN_GPU_BF16:
        return tile_launch<NN_GPU_BF16>(g, a);
    case NN_GPU_TF32:
        return tile_launch<NN_GPU_TF32>(g, a);
    case NN_GPU_FP16:
        return tile_launch<NN_GPU_FP16>(g, a);
    case NN_GPU_FP32:
        break;
    }
    LAUNCH(so2_rows, dim3((unsigned)a->n_tiles * (NN_GPU_TILE / SO2_ROWS), orders * blocks(a->most_n, SO2_THREADS)),
           SO2_THREADS, 0, g->stream, *a);
    launched(g, "so2");
    return true;
}

template <int P> static bool conv_launch(nn_gpu *g, const nn_gpu_conv *c)
{
    size_t bytes = tile_bytes<P>(&c->s, sizeof(tile_heads));

    if (bytes > g->shared || (int64_t)c->key_channels * NN_GPU_TILE * 2 > TILE_STAGES * tile_stage())
        return false;
    if (c->s.n_tiles)
        LAUNCH(tile_conv<P>, dim3((unsigned)c->s.n_tiles, (unsigned)c->s.n_orders), TILE_THREADS, bytes, g->stream, *c,
               conv_fours(c));
    launched(g, "conv");
    return true;
}

static bool op_conv(nn_gpu *g, const nn_gpu_conv *c)
{
    switch (c->s.precision) {
    case NN_GPU_BF16X3:
        return conv_launch<NN_GPU_BF16X3>(g, c);
    case NN_GPU_BF16:
        return conv_launch<NN_GPU_BF16>(g, c);
    case NN_GPU_TF32:
        return conv_launch<NN_GPU_TF32>(g, c);
    case NN_GPU_FP16:
        return conv_launch<NN_GPU_FP16>(g, c);
    case NN_GPU_FP32:
        break;
    }
    return false;
}

/* ---- nodes and their edges ---- */

/* Whether groups of four channels are aligned to 16 bytes everywhere. */
static bool turn_fours(const nn_gpu_turn *t)
{
    bool fours = ((uintptr_t)t->x | (uintptr_t)t->y) % 16 == 0 && (t->nodes.size | t->edges.size) % 4 == 0;

    for (int l = 0; l < NN_GPU_DEGREES; l++)
        for (int c = 0; c < 2 * l + 1 && t->edges.ch[l]; c++)
            fours = fours && (t->edges.ch[l] | t->nodes.at[l] | t->edges.at[l][c]) % 4 == 0;
    return fours;
}

/* The shape of a launch over rows (to NULL), or of sums over edges, which go `to`. In sums lanes have two channels instead
 * of four, so fewer nodes share a warp, which takes as long as the node with the most edges. */
static edge_shape edge_shape_of(const nn_gpu_turn *t, const float *to)
{
    edge_shape s = { 1, 0, 1, 1, !turn_fours(t) || (uintptr_t)to % 16 ? 1 : to ? 2 : 4 };

    for (int l = 0; l < NN_GPU_DEGREES; l++) {
        s.degrees = t->edges.ch[l] ? (l + 1 > s.degrees ? l + 1 : s.degrees) : s.degrees;
        s.channels = t->edges.ch[l] > s.channels ? t->edges.ch[l] : s.channels;
    }
    while (s.group < 32 && s.group * s.v < s.channels)
        s.group *= 2;
    return s;
}

enum { EDGE_ROOM = 32, EDGE_SHARED = 24 << 10 }; /* a warp looks up as many frames at once */

/* Bytes of shared memory for `room` edges; if room is 0 it is first set to a suitable number. */
static size_t edge_room(edge_shape *s, int frame_size, bool dots)
{
    size_t each = ((size_t)stage_ld(frame_size) + 1 + (dots ? (size_t)shape_slots(s->degrees) * (size_t)s->channels : 0)) * sizeof(float);

    if (!s->room)
        s->room = each * EDGE_ROOM <= EDGE_SHARED ? EDGE_ROOM : each < EDGE_SHARED ? (int)(EDGE_SHARED / each) : 1;
    return (size_t)s->room * each;
}

static unsigned edge_threads(const edge_shape *s)
{
    return 32 * (unsigned)shape_warps(s->degrees);
}

/* Launches the kernel with V channels a lane, or with one. */
#define LAUNCH_WIDE(kernel, V, v, ...)          \
    do {                                        \
        if ((v) == (V))                         \
            LAUNCH(kernel<V>, __VA_ARGS__);     \
        else                                    \
            LAUNCH(kernel<1>, __VA_ARGS__);     \
    } while (0)

static void op_turn(nn_gpu *g, const nn_gpu_turn *a)
{
    edge_shape s = edge_shape_of(a, NULL);

    s.room = 32 / s.group;
    if (a->n_rows)
        LAUNCH_WIDE(turn_run, 4, s.v, blocks(a->n_rows, s.room), edge_threads(&s), edge_room(&s, a->frame_size, false),
               g->stream, *a, s);
    launched(g, "turn");
}

static void op_sum(nn_gpu *g, const nn_gpu_sum *a)
{
    edge_shape s = edge_shape_of(&a->t, a->to);
    size_t bytes = edge_room(&s, a->t.frame_size, false);

    if (a->n_nodes)
        LAUNCH_WIDE(sum_run, 2, s.v, blocks(a->n_nodes, 32 / s.group), edge_threads(&s), bytes, g->stream, *a, s);
    launched(g, "sum");
}

static void op_attend(nn_gpu *g, const nn_gpu_attend *a)
{
    edge_shape s = edge_shape_of(&a->sum.t, a->sum.to);
    size_t bytes = edge_room(&s, a->sum.t.frame_size, false);

    if (a->sum.n_nodes)
        LAUNCH_WIDE(attend_run, 2, s.v, blocks(a->sum.n_nodes, 32 / s.group), edge_threads(&s), bytes, g->stream, *a, s);
    launched(g, "attend");
}

static void op_attend_back(nn_gpu *g, const nn_gpu_attend_back *a)
{
    edge_shape s = edge_shape_of(&a->dvalue, NULL), keys = edge_shape_of(&a->dkey, a->dq.to);
    size_t bytes, of_keys = edge_room(&keys, a->dq.t.frame_size, false);

    s.room = 32 / s.group;
    bytes = edge_room(&s, a->dq.t.frame_size, true);
    if (a->dvalue.n_rows)
        LAUNCH_WIDE(attend_values, 4, s.v, blocks(a->dvalue.n_rows, s.room), edge_threads(&s), bytes, g->stream, *a, s);
    if (a->dq.n_nodes)
        LAUNCH_WIDE(attend_keys, 2, keys.v, blocks(a->dq.n_nodes, 32 / keys.group), edge_threads(&keys), of_keys, g->stream, *a, keys);
    launched(g, "attend_back");
}

template <int P> static void outer_launch(nn_gpu *g, const nn_gpu_so2 *a)
{
    unsigned tiles = 0, rows = (unsigned)(a->n_nodes + 2 * a->slots);

    for (int m = 0; m < a->n_orders; m++)
        tiles += blocks(a->k[m], GEMM_TILE) * blocks(a->n[m], GEMM_TILE);
    if (tiles)
        LAUNCH(so2_outer<P>, dim3(rows, tiles), GEMM_THREADS, 0, g->stream, *a,
               so2_fours(a) == (TILE_X4 | TILE_Y4));
    launched(g, "so2_outer");
}

static void op_so2_outer(nn_gpu *g, const nn_gpu_so2 *a)
{
    if (!a->n_nodes)
        return;
    if (a->precision == NN_GPU_BF16X3)
        outer_launch<NN_GPU_BF16X3>(g, a);
    else if (a->precision == NN_GPU_BF16)
        outer_launch<NN_GPU_BF16>(g, a);
    else if (a->precision == NN_GPU_TF32)
        outer_launch<NN_GPU_TF32>(g, a);
    else if (a->precision == NN_GPU_FP16)
        outer_launch<NN_GPU_FP16>(g, a);
    else
        outer_launch<NN_GPU_FP32>(g, a);
    if (a->slots)
        LAUNCH(outer_add, (unsigned)a->n_nodes * blocks(a->table_size, ADD_NUMBERS), ADD_THREADS, 0, g->stream, *a);
    launched(g, "so2_outer");
}

#endif
