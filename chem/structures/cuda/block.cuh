/* chem/structures/cuda/block.cuh - what the threads of a block share: a molecule, working memory, sums; part of structures.cu.
 *
 * Arrays lie in shared memory as far as it reaches, in the order in which they are asked for, and behind that in global
 * memory; the numbers are the same. Positions are [component][n_atoms]. Every thread that returns a sum has the same bits. */
#ifndef CH_GPU_BLOCK_CUH
#define CH_GPU_BLOCK_CUH

#include "chem/structures/cuda/prim.cuh"

enum { MOST_SUMS = 3, DOTS = 2 * CH_GPU_MEMORY };

struct room { /* floats that are free */
    float *shared, *global;
    int shared_left;
};

struct search {
    double gradient;
    int max_steps;
    float max_move, first_scale; /* first_scale: of the gradient, without a preconditioner */
};

struct outcome {
    double value, gradient;
    int steps, n_values;
    bool converged, finite;
};

struct site {
    const ch_gpu_molecule *m;
    const int32_t *words;
    int n, dims; /* atoms; components of a position: 4 while embedding, then 3 */
    float fourth;
    /* of both stages */
    float *x, *g, *trial, *trial_g, *d, *moves, *changes, *best, *partial;
    /* of relaxing */
    float *slots, *matrix, *diagonal, *right, *middle;
    /* of embedding: volume_slots as slots; upper and lower [n][n], later 1 / upper^2 and lower^2 */
    float *volume_slots, *upper, *lower, *metric, *mean, *basis, *next;
    /* of L-BFGS: products of moves and changes; coefficients of a direction */
    double sy[CH_GPU_MEMORY][CH_GPU_MEMORY], rho[CH_GPU_MEMORY], alpha[CH_GPU_MEMORY], beta[CH_GPU_MEMORY], dots[DOTS];
    double part[CH_GPU_WARPS][MOST_SUMS];
    float scale; /* of a gradient: what the newest pair says of the curvature */
    const ch_gpu_job *job;
    ch_gpu_result result; /* the first thread's */
    search how;
    outcome out;
    double least; /* energy of the best start */
};

struct point {
    float x, y, z;
};

static __device__ __forceinline__ point minus(point a, point b)
{
    return { a.x - b.x, a.y - b.y, a.z - b.z };
}

static __device__ __forceinline__ point plus(point a, point b)
{
    return { a.x + b.x, a.y + b.y, a.z + b.z };
}

static __device__ __forceinline__ point scaled(point a, float s)
{
    return { a.x * s, a.y * s, a.z * s };
}

static __device__ __forceinline__ float inner(point a, point b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static __device__ __forceinline__ point cross(point a, point b)
{
    return { a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x };
}

static __device__ __forceinline__ point atom_at(const float *x, int n, int i)
{
    return { x[i], x[n + i], x[2 * n + i] };
}

static __device__ __forceinline__ const int32_t *ints(const site *s, ch_gpu_array a)
{
    return s->words + s->m->at[a];
}

static __device__ __forceinline__ const float *floats(const site *s, ch_gpu_array a)
{
    return (const float *)(s->words + s->m->at[a]);
}

static __device__ __forceinline__ int thread_now()
{
    return (int)threadIdx.x;
}

template <class T> static __device__ __forceinline__ T lanes_sum(T v)
{
    for (int mask = 16; mask; mask /= 2)
        v += warp_xor(v, mask);
    return v;
}

/* v[k] becomes the sum over all threads of the block. */
template <int N> static __device__ __forceinline__ void block_sums(site *s, double *v)
{
    const int warp = thread_now() / 32, lane = thread_now() % 32;

    for (int k = 0; k < N; k++)
        v[k] = lanes_sum(v[k]);
    __syncthreads(); /* the sums before have been read */
    for (int k = 0; k < N && lane == 0; k++)
        s->part[warp][k] = v[k];
    __syncthreads();
    for (int k = 0; k < N; k++) {
        v[k] = 0;
        for (int w = 0; w < CH_GPU_WARPS; w++)
            v[k] += s->part[w][k];
    }
}

static __device__ __forceinline__ double block_sum(site *s, double v)
{
    block_sums<1>(s, &v);
    return v;
}

static __device__ __forceinline__ float block_max(site *s, float v)
{
    const int warp = thread_now() / 32, lane = thread_now() % 32;

    for (int mask = 16; mask; mask /= 2)
        v = fmaxf(v, warp_xor(v, mask));
    __syncthreads();
    if (lane == 0)
        s->part[warp][0] = (double)v;
    __syncthreads();
    v = (float)s->part[0][0];
    for (int w = 1; w < CH_GPU_WARPS; w++)
        v = fmaxf(v, (float)s->part[w][0]);
    return v;
}

/* Of one warp; every lane has it. */
static __device__ __forceinline__ double warp_dot(const float *a, const float *b, int n)
{
    double sum = 0;

    for (int i = thread_now() % 32; i < n; i += 32)
        sum += (double)a[i] * (double)b[i];
    return lanes_sum(sum);
}

static __device__ float *take(room *r, int n)
{
    float *at = r->shared;

    if (n <= r->shared_left) {
        r->shared += n;
        r->shared_left -= n;
        return at;
    }
    at = r->global;
    r->global += n;
    return at;
}

/* What both stages have comes first; the stages use the rest one after the other. */
static __device__ void site_make(site *s, const ch_gpu_molecule *m, const int32_t *words, room r)
{
    const int n = m->n_atoms;
    room second;

    s->m = m;
    s->words = words;
    s->n = n;
    s->x = take(&r, 4 * n);
    s->g = take(&r, 4 * n);
    s->trial = take(&r, 4 * n);
    s->trial_g = take(&r, 4 * n);
    s->d = take(&r, 4 * n);
    s->best = take(&r, 3 * n);
    s->partial = take(&r, 4 * m->parts * n);
    s->moves = take(&r, 4 * CH_GPU_MEMORY * n);
    s->changes = take(&r, 4 * CH_GPU_MEMORY * n);
    second = r;
    s->volume_slots = take(&r, 12 * m->n_volumes);
    s->basis = take(&r, 4 * n);
    s->next = take(&r, 4 * n);
    s->mean = take(&r, n);
    s->upper = take(&r, n * n);
    s->lower = take(&r, n * n);
    s->metric = take(&r, n * n);
    s->slots = take(&second, 3 * m->n_slots);
    s->right = take(&second, 3 * n);
    s->middle = take(&second, 3 * n);
    s->diagonal = take(&second, 6 * n);
    s->matrix = take(&second, 9 * m->n_blocks);
}

#endif
