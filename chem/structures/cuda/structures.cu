/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions (ops.h): one kernel, memory and errors of one device. With CH_GPU_EMULATED the calls of the runtime
 * come from tests/emulator instead of CUDA. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/structures/cuda/descent.cuh"

struct ch_gpu_launch {
    const ch_gpu_molecule *molecules;
    const int32_t *words;
    const ch_gpu_job *jobs; /* a block does job order[block] */
    const int32_t *order;
    ch_gpu_result *results;
    float *xyz, *work; /* work: [blocks][work_floats], behind shared memory */
    int64_t work_floats;
    int32_t shared_floats, pad;
};

static __device__ const double largest_violation = 0.5, largest_error = 0.05; /* Angstrom; of an atom */
static __device__ const double embed_gradient = 1e-2, squeeze_gradient = 3e-3;
static __device__ const float free_fourth = 0.01f, squeezed_fourth = 1, longest_step = 0.2f;
static __device__ const float too_near = 0.05f, straight = 1e-3f, push = 0.05f;
enum { FREE_STEPS = 150, SQUEEZE_STEPS = 100 };

/* Distances do not know left from right: of the two images, the one with fewer centres inside out. */
static __device__ void reflect_if_better(site *s)
{
    double good = 0;

    for (int v = thread_now(); v < s->m->n_chiral; v += CH_GPU_THREADS) {
        point c[3];
        good += (signed_volume(s, s->x, v, c) > 0) == (floats(s, CH_GPU_VOLUME_PARAMS)[v] > 0) ? 1 : 0;
    }
    good = block_sum(s, good);
    for (int i = thread_now(); 2 * good < s->m->n_chiral && i < s->n; i += CH_GPU_THREADS)
        s->x[i] = -s->x[i];
    __syncthreads();
}

static __device__ bool is_inside_out(site *s)
{
    const int n = s->m->n_volumes;
    double bad = 0;

    for (int v = thread_now(); v < s->m->n_chiral; v += CH_GPU_THREADS) {
        const float *of = floats(s, CH_GPU_VOLUME_PARAMS) + v;
        point c[3];
        const float value = signed_volume(s, s->x, v, c) * (of[0] > 0 ? 1.0f : -1.0f);
        bad += value > 0.3f * fminf(fabsf(of[0]), fabsf(of[n])) ? 0 : 1;
    }
    return block_sum(s, bad) > 0;
}

/* The largest violation of the bounds that no torsions were drawn for. */
static __device__ float most_violated(site *s)
{
    const int n = s->n;
    float most = 0;

    for (int item = thread_now(); item < n * n; item += CH_GPU_THREADS) {
        const int i = item / n, j = item - i * n;
        const point d = minus(atom_at(s->x, n, i), atom_at(s->x, n, j));
        const float r = sqrtf(inner(d, d));
        most = fmaxf(most, i == j ? 0 : fmaxf(r - floats(s, CH_GPU_UPPER)[item], floats(s, CH_GPU_LOWER)[item] - r));
    }
    return block_max(s, most);
}

/* Whether atom i shares its place with an earlier one, or is the centre of a straight angle. */
static __device__ bool is_stuck(const site *s, int i)
{
    const int angles = s->m->n_angles;
    const int32_t *at = ints(s, CH_GPU_ANGLE_ATOMS);
    const float *linear = floats(s, CH_GPU_ANGLE_PARAMS) + 2 * angles;
    const point q = atom_at(s->x, s->n, i);
    bool stuck = false;

    for (int j = 0; j < i; j++) {
        const point d = minus(atom_at(s->x, s->n, j), q);
        stuck = stuck || inner(d, d) < too_near * too_near;
    }
    for (int k = 0; k < angles; k++) {
        if (at[angles + k] != i || linear[k] != 0)
            continue;
        const point a = minus(atom_at(s->x, s->n, at[k]), q), b = minus(atom_at(s->x, s->n, at[2 * angles + k]), q);
        const float cosine = inner(a, b) / fmaxf(sqrtf(inner(a, a) * inner(b, b)), 1e-12f);
        stuck = stuck || cosine < -1 + straight * straight * 0.5f + 1e-6f;
    }
    return stuck;
}

/* Moves atoms from where the gradient is not defined, as relax.c. */
static __device__ void part(site *s)
{
    __syncthreads();
    for (int i = thread_now(); i < s->n; i += CH_GPU_THREADS)
        s->d[i] = is_stuck(s, i) ? push : 0;
    __syncthreads();
    for (int i = thread_now(); i < s->n; i += CH_GPU_THREADS) {
        const float turn = 2.399963f * (float)(i + 1), z = fmodf(0.618034f * (float)(i + 1), 1) * 1.6f - 0.8f;
        const float r = sqrtf(1 - z * z);
        if (s->d[i] == 0)
            continue;
        s->x[i] += s->d[i] * r * cosf(turn);
        s->x[s->n + i] += s->d[i] * r * sinf(turn);
        s->x[2 * s->n + i] += s->d[i] * z;
    }
    __syncthreads();
}

static __device__ void copy(float *to, const float *from, int n)
{
    __syncthreads();
    for (int i = thread_now(); i < n; i += CH_GPU_THREADS)
        to[i] = from[i];
    __syncthreads();
}

/* A job goes through stages, each of which ends with one search. */
enum stage { SPREAD, SQUEEZE, TRY, FINISH, OVER };

static __device__ search search_of(const ch_gpu_job *job, stage at)
{
    if (at == SPREAD)
        return { embed_gradient, FREE_STEPS, 1, 1 };
    if (at == SQUEEZE)
        return { squeeze_gradient, SQUEEZE_STEPS, 0.5f, 0.5f };
    return { job->gradient, at == TRY ? job->first_steps : job->max_steps, longest_step, 0 };
}

/* What a stage does before its search. */
static __device__ void stage_begin(site *s, stage at, int start_number)
{
    __syncthreads();
    if (thread_now() == 0) {
        s->how = search_of(s->job, at);
        s->dims = at == SPREAD || at == SQUEEZE ? 4 : 3;
        s->fourth = at == SPREAD ? free_fourth : squeezed_fourth;
    }
    __syncthreads();
    if (at == SPREAD) {
        start(s, s->job->key, (uint64_t)start_number * draws(s));
        reflect_if_better(s);
    } else if (at != SQUEEZE) {
        part(s);
    }
}

/* Counts a search. One thread. */
static __device__ void note_search(site *s, stage at)
{
    const outcome *o = &s->out;
    ch_gpu_result *r = &s->result;

    if (at == SPREAD || at == SQUEEZE)
        r->n_values += o->n_values;
    else
        r->n_energies += o->n_values;
    if (at != FINISH)
        return;
    r->steps += o->steps;
    r->energy = o->value;
    r->gradient = o->gradient;
    r->converged = o->converged;
    r->what = o->finite ? CH_GPU_DONE : CH_GPU_NOT_FINITE;
}

/* Whether what is left of the fourth dimension is a structure. */
static __device__ bool is_embedded(site *s)
{
    const bool wrong = is_inside_out(s), far = !((double)most_violated(s) < largest_violation && s->out.value / s->n < largest_error);

    if (thread_now() == 0) {
        s->result.wrong_chirality += wrong;
        s->result.far_from_bounds += !wrong && far;
        s->result.what = far ? CH_GPU_FAR_FROM_BOUNDS : CH_GPU_DONE;
        if (wrong)
            s->result.what = CH_GPU_WRONG_CHIRALITY;
    }
    return !wrong && !far;
}

/* A start that was tried is kept if it is the lowest so far. */
static __device__ void keep_lowest(site *s)
{
    const bool better = s->out.finite && s->out.value < s->least;

    __syncthreads();
    if (better && thread_now() == 0) {
        s->least = s->out.value;
        s->result.steps = s->out.steps;
    }
    if (better)
        copy(s->best, s->x, 3 * s->n);
}

/* The stage after the last start: the lowest one is relaxed further. */
static __device__ stage after_starts(site *s)
{
    __syncthreads();
    if (s->least < INFINITY) {
        copy(s->x, s->best, 3 * s->n);
        return FINISH;
    }
    if (thread_now() == 0 && s->result.what == CH_GPU_DONE)
        s->result.what = CH_GPU_NOT_FINITE;
    return OVER;
}

/* The stage that follows a search; *number: of the start. */
static __device__ stage stage_after(site *s, stage at, int *number)
{
    const ch_gpu_job *job = s->job;

    if (at == SPREAD)
        return SQUEEZE;
    if (at == FINISH)
        return OVER;
    if (at == SQUEEZE && is_embedded(s)) {
        const stage next = job->starts == 1 ? FINISH : TRY;
        return job->mode == CH_GPU_EMBED ? OVER : next;
    }
    if (at == TRY)
        keep_lowest(s);
    return ++*number < job->starts ? SPREAD : after_starts(s);
}

/* Embeds job->starts times, tries each start for a few steps, and relaxes the lowest one; or only relaxes. */
static __device__ void build(site *s)
{
    stage at = s->job->mode == CH_GPU_RELAX ? FINISH : SPREAD;

    for (int number = 0; at != OVER;) {
        stage_begin(s, at, number);
        descend(s);
        if (thread_now() == 0)
            note_search(s, at);
        at = stage_after(s, at, &number);
    }
}

static __device__ void do_job(site *s, float *xyz)
{
    const int mode = s->job->mode;

    if (mode == CH_GPU_RELAX || mode == CH_GPU_ENERGY)
        copy(s->x, xyz, 3 * s->n);
    if (mode == CH_GPU_ENERGY) {
        if (thread_now() == 0)
            s->dims = 3;
        const double e = energy(s, s->x, s->g);
        if (thread_now() == 0)
            s->result.energy = e;
        copy(s->x, s->g, 3 * s->n);
    } else {
        build(s);
    }
    copy(xyz, s->x, 3 * s->n);
}

__global__ void __launch_bounds__(CH_GPU_THREADS) structure_run(ch_gpu_launch l)
{
    __shared__ site shared;
    SHARED_BYTES(bytes);
    const int32_t which = l.order[blockIdx.x];
    site *s = &shared;

    if (thread_now() == 0) {
        const ch_gpu_job *job = &l.jobs[which];
        site_make(s, &l.molecules[job->molecule], l.words,
                  { (float *)bytes, l.work + (int64_t)blockIdx.x * l.work_floats, l.shared_floats });
        s->job = job;
        s->least = INFINITY;
        s->result = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    }
    __syncthreads();
    do_job(s, l.xyz + s->job->xyz);
    if (thread_now() == 0)
        l.results[which] = s->result;
}

#include "chem/structures/cuda/host.cuh"
