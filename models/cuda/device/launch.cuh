/* models/cuda/device/launch.cuh - launches of the kernels along edges, by precision and width; part of device.cu. */
#ifndef NN_CUDA_LAUNCH_CUH
#define NN_CUDA_LAUNCH_CUH

/* Allows large shared memory. Called once, not before each launch: it may be forbidden during a capture, and it may wait
 * for copies. */
static cudaError_t tiles_allow(const nn_gpu *g)
{
    cudaError_t e = cudaSuccess;

    for (int p = NN_GPU_FP32 + 1; p < GPU_PRECISIONS && e == cudaSuccess; p++)
        e = gpu_products[p]->allow(g);
    return e;
}

static bool op_so2(nn_gpu *g, const nn_gpu_so2 *a)
{
    unsigned orders = (unsigned)a->n_orders;

    if (a->precision != NN_GPU_FP32)
        return gpu_products[a->precision]->tile(g, a);
    if (a->unit)
        return false; /* tables of hidden units are not for fp32 */
    if (!a->n_tiles)
        return true;
    LAUNCH(so2_rows, dim3((unsigned)a->n_tiles * (NN_GPU_TILE / SO2_ROWS), orders * blocks(a->max_n, SO2_THREADS)),
           SO2_THREADS, 0, g->stream, *a);
    launched(g, "so2");
    return true;
}

static bool op_conv(nn_gpu *g, const nn_gpu_conv *c)
{
    return c->s.precision != NN_GPU_FP32 && gpu_products[c->s.precision]->conv(g, c);
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
    edge_shape s = { 1, 0, 1, 1, to ? 2 : 4 };

    if (!turn_fours(t) || (uintptr_t)to % 16)
        s.v = 1;
    for (int l = 0; l < NN_GPU_DEGREES; l++) {
        if (t->edges.ch[l] && s.degrees < l + 1)
            s.degrees = l + 1;
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

    if (!s->room && each >= EDGE_SHARED)
        s->room = 1;
    else if (!s->room)
        s->room = each * EDGE_ROOM <= EDGE_SHARED ? EDGE_ROOM : (int)(EDGE_SHARED / each);
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

static void op_so2_outer(nn_gpu *g, const nn_gpu_so2 *a)
{
    if (!a->n_nodes)
        return;
    if (a->precision != NN_GPU_FP32)
        gpu_products[a->precision]->outer(g, a);
    else
        outer_launch<NN_GPU_FP32>(g, a);
    if (a->slots)
        LAUNCH(outer_add, (unsigned)a->n_nodes * blocks(a->table_size, ADD_NUMBERS), ADD_THREADS, 0, g->stream, *a);
    launched(g, "so2_outer");
}

#endif
