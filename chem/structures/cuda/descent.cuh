/* chem/structures/cuda/descent.cuh - L-BFGS of one block; part of structures.cu.
 *
 * The method, line search and limits of descent.c. The products of all moves and changes are kept, so a direction takes two
 * rounds of sums instead of sixteen that wait for each other. All threads compute the same scalars from the same sums. */
#ifndef CH_GPU_DESCENT_CUH
#define CH_GPU_DESCENT_CUH

#include "chem/structures/cuda/factor.cuh"
#include "chem/structures/cuda/start.cuh"

enum { MAX_TRIALS = 8, MAX_RESETS = 5, REFRESH_STEPS = 12 };

/* The pairs that are remembered: the newest is before `head`. */
struct memory {
    int count, head;
};

struct state {
    double value, slope, squared; /* squared: of the gradient */
    memory pairs;
    int since_refresh, resets;
};

static __device__ double evaluate(site *s, const float *x, float *g)
{
    return s->dims == 4 ? distance_error(s, x, g) : energy(s, x, g);
}

static __device__ __forceinline__ float *stored(const site *s, float *vectors, int q)
{
    return vectors + q * s->dims * s->n;
}

/* dots[q] = vectors[q] . v */
static __device__ void dots_with(site *s, float *vectors, int count, const float *v)
{
    __syncthreads();
    for (int q = thread_now() / 32; q < count; q += CH_GPU_WARPS) {
        const double sum = warp_dot(stored(s, vectors, q), v, s->dims * s->n);
        if (thread_now() % 32 == 0)
            s->dots[q] = sum;
    }
    __syncthreads();
}

/* The q-th newest pair. */
static __device__ __forceinline__ int newest(memory m, int q)
{
    return (m.head - 1 - q + 2 * CH_GPU_MEMORY) % CH_GPU_MEMORY;
}

/* First loop: what of each change is taken from the gradient. One thread. */
static __device__ void first_loop(site *s, memory m)
{
    for (int a = 0; a < m.count; a++) {
        const int i = newest(m, a);
        double sum = s->dots[i];
        for (int b = 0; b < a; b++)
            sum -= s->alpha[newest(m, b)] * s->sy[i][newest(m, b)];
        s->alpha[i] = s->rho[i] * sum;
    }
}

/* Second loop: what of each move is added. One thread. */
static __device__ void second_loop(site *s, memory m)
{
    for (int a = m.count - 1; a >= 0; a--) {
        const int i = newest(m, a);
        double sum = s->dots[i];
        for (int b = m.count - 1; b > a; b--)
            sum += s->beta[newest(m, b)] * s->sy[newest(m, b)][i];
        s->beta[i] = s->alpha[i] - s->rho[i] * sum;
    }
}

/* d = H g; returns the slope along -d. scale: of the gradient, where there is no preconditioner. */
static __device__ A_CALL double direction(site *s, memory m, float scale)
{
    const int n = s->dims * s->n;
    double slope = 0;

    dots_with(s, s->moves, m.count, s->g);
    if (thread_now() == 0)
        first_loop(s, m);
    __syncthreads();
    for (int i = thread_now(); i < n; i += CH_GPU_THREADS) {
        float d = s->g[i];
        for (int a = 0; a < m.count; a++)
            d -= (float)s->alpha[newest(m, a)] * s->changes[newest(m, a) * n + i];
        s->d[i] = d * scale;
    }
    if (s->dims == 3)
        precondition(s, s->d);
    dots_with(s, s->changes, m.count, s->d);
    if (thread_now() == 0)
        second_loop(s, m);
    __syncthreads();
    for (int i = thread_now(); i < n; i += CH_GPU_THREADS) {
        float d = s->d[i];
        for (int a = m.count - 1; a >= 0; a--)
            d += (float)s->beta[newest(m, a)] * s->moves[newest(m, a) * n + i];
        s->d[i] = d;
        slope -= (double)d * (double)s->g[i];
    }
    return block_sum(s, slope);
}

static __device__ __forceinline__ float scale_of(const site *s, memory m)
{
    if (s->dims == 3)
        return 1;
    return m.count > 0 ? s->scale : s->how.first_scale;
}

static __device__ float longest_move(site *s)
{
    float most = 0;

    for (int i = thread_now(); i < s->n; i += CH_GPU_THREADS) {
        float m = 0;
        for (int c = 0; c < s->dims; c++)
            m += s->d[c * s->n + i] * s->d[c * s->n + i];
        most = fmaxf(most, m);
    }
    return sqrtf(block_max(s, most));
}

/* As descent.c: the step is shortened until the value falls enough, or is the same in float where the slope is less steep. */
static __device__ bool line_search(site *s, state *t, double *value, outcome *r)
{
    const int n = s->dims * s->n;
    const float longest = longest_move(s);
    double step = longest > s->how.max_move ? (double)(s->how.max_move / longest) : 1;

    for (int trial = 0; trial < MAX_TRIALS; trial++) {
        double slope = 0;
        for (int i = thread_now(); i < n; i += CH_GPU_THREADS)
            s->trial[i] = s->x[i] - (float)step * s->d[i];
        *value = evaluate(s, s->trial, s->trial_g);
        r->n_values++;
        if (*value <= t->value + 1e-4 * step * t->slope)
            return true;
        if (*value <= t->value + 3e-7 * (fabs(t->value) + 100)) {
            for (int i = thread_now(); i < n; i += CH_GPU_THREADS)
                slope += (double)s->d[i] * (double)s->trial_g[i];
            if (-block_sum(s, slope) <= -0.8 * t->slope)
                return true;
        }
        const double parabola = -0.5 * t->slope * step / (*value - t->value - t->slope * step);
        step *= fmin(parabola > 0.1 ? parabola : 0.1, 0.5);
    }
    return false;
}

/* The products of the new pair h with all others. */
static __device__ void multiply(site *s, int h, int count)
{
    const int n = s->dims * s->n;

    __syncthreads();
    for (int k = thread_now() / 32; k < 2 * count; k += CH_GPU_WARPS) {
        const int q = k / 2, move = k % 2 ? q : h, change = k % 2 ? h : q;
        const double sum = warp_dot(s->moves + move * n, s->changes + change * n, n);
        if (thread_now() % 32 == 0 && (k % 2 == 0 || q != h))
            s->sy[move][change] = sum;
    }
    __syncthreads();
}

/* x and g become the trial's; the pair is remembered if it is of use. */
static __device__ void accept(site *s, state *t)
{
    const int n = s->dims * s->n, h = t->pairs.head;
    double sums[3] = { 0, 0, 0 };

    for (int i = thread_now(); i < n; i += CH_GPU_THREADS) {
        const float move = s->trial[i] - s->x[i], change = s->trial_g[i] - s->g[i];
        sums[0] += (double)move * (double)change;
        sums[1] += (double)change * (double)change;
        sums[2] += (double)s->trial_g[i] * (double)s->trial_g[i];
    }
    block_sums<3>(s, sums);
    t->squared = sums[2];
    const bool good = sums[0] > 1e-10 * sums[1] && sums[0] > 0;
    for (int i = thread_now(); i < n; i += CH_GPU_THREADS) {
        if (good) {
            s->moves[h * n + i] = s->trial[i] - s->x[i];
            s->changes[h * n + i] = s->trial_g[i] - s->g[i];
        }
        s->x[i] = s->trial[i];
        s->g[i] = s->trial_g[i];
    }
    if (!good)
        return;
    t->pairs.count += t->pairs.count < CH_GPU_MEMORY;
    if (thread_now() == 0) {
        s->rho[h] = 1 / sums[0];
        s->scale = (float)(sums[0] / sums[1]);
    }
    multiply(s, h, t->pairs.count);
    t->pairs.head = (h + 1) % CH_GPU_MEMORY;
}

/* One step. False: no direction leads down. */
static __device__ bool advance(site *s, state *t, outcome *r)
{
    double value = 0;

    if (s->dims == 3 && t->since_refresh >= REFRESH_STEPS) {
        assemble(s, s->x);
        factor(s);
        t->since_refresh = 0;
    }
    for (;;) {
        t->slope = direction(s, t->pairs, scale_of(s, t->pairs));
        if (t->slope < 0 && line_search(s, t, &value, r))
            break;
        if (t->pairs.count == 0 || t->resets++ >= MAX_RESETS)
            return false;
        t->pairs = { 0, 0 };
    }
    accept(s, t);
    t->value = value;
    t->since_refresh++;
    r->steps++;
    return true;
}

/* From x to x, as s->how says; s->dims says which function. What became of it is in s->out. */
static __device__ void descend(site *s)
{
    const int n = s->dims * s->n;
    outcome r = { 0, 0, 0, 1, false, false };
    state t = { 0, 0, 0, { 0, 0 }, REFRESH_STEPS, 0 };

    t.value = evaluate(s, s->x, s->g);
    for (int i = thread_now(); i < n; i += CH_GPU_THREADS)
        t.squared += (double)s->g[i] * (double)s->g[i];
    t.squared = block_sum(s, t.squared);
    for (;;) {
        const double rms = sqrt(t.squared / n);
        r.finite = isfinite(t.value) && isfinite(rms);
        r.converged = r.finite && rms < s->how.gradient;
        if (!r.finite || r.converged || r.steps >= s->how.max_steps || !advance(s, &t, &r))
            break;
    }
    r.value = t.value;
    r.gradient = sqrt(t.squared / n);
    __syncthreads();
    if (thread_now() == 0)
        s->out = r;
    __syncthreads();
}

#endif
