/* models/cuda/device/train_ops.cuh - loss and its gradient, norm of the gradient, AdamW and LAMB with the
 * moving average: ops 14, 16, 17, 20 (docs/model.md 8). The arithmetic is that of models/optim/loss.c, models/optim/adam.c and
 * models/optim/lamb.c; sums are doubles, in an order that depends only on the number of summands. All blocks have
 * TRAIN_THREADS threads; the only shared memory is that of block_sum. */
#ifndef NN_CUDA_TRAIN_OPS_CUH
#define NN_CUDA_TRAIN_OPS_CUH

enum { TRAIN_THREADS = 256, ADAMW_EACH = 4, ADAMW_SPAN = TRAIN_THREADS * ADAMW_EACH };

/* The sum over the block, returned to every thread. Shared: part [warps]. */
static __device__ double block_sum(double v)
{
    __shared__ double part[TRAIN_THREADS / 32];
    double sum = 0;

    v = warp_sum(v);
    __syncthreads(); /* the sum before may still be read */
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    for (int i = 0; i < TRAIN_THREADS / 32; i++)
        sum += part[i];
    return sum;
}

typedef struct loss_one {
    double loss, error, slope; /* of one number: its loss, |error|, derivative of the loss */
} loss_one;

/* The distance to the limits. */
static __device__ __forceinline__ double limits_miss(double y, double low, double high)
{
    if (y < low || low == high)
        return y - low;
    return y > high ? y - high : 0 * y;
}

static __device__ __forceinline__ loss_one loss_of(int32_t kind, double y, double t, double high)
{
    const double e = limits_miss(y, t, high), weight = t != 0 ? fabs(t) : 1;
    const double z = t > 0 ? -y : y; /* log odds of the other class */
    const double small = exp(-fabs(z)), large = 1 / (1 + small);
    const double wrong = z < 0 ? small * large : large;

    if (kind == NN_GPU_BCE)
        return loss_one{ weight * (fmax(z, 0.0) + log1p(small)), wrong, weight * (t > 0 ? -wrong : wrong) };
    return kind == NN_GPU_L2 ? loss_one{ e * e, fabs(e), 2 * e } : loss_one{ fabs(e), fabs(e), (double)((e > 0) - (e < 0)) };
}

/* Op 14: loss, and dy = scale * dloss/dy / measured (docs/model.md 1.3). One block, because a batch has few numbers.
 * Equals: nn_loss_backward (models/optim/loss.c). */
__global__ void loss_run(nn_gpu_loss a)
{
    double loss = 0, abs = 0, square = 0, per = a.measured ? a.scale->by / (double)a.measured : 0;

    for (int i = (int)threadIdx.x; i < a.n; i += TRAIN_THREADS) {
        loss_one one = loss_of(a.kind, (double)a.y[i], (double)a.t[i], (double)a.high[i]);
        bool measured = a.t[i] == a.t[i];
        a.dy[i] = measured ? (float)(per * one.slope) : 0;
        loss += measured ? one.loss : 0;
        abs += measured ? one.error : 0;
        square += measured ? one.error * one.error : 0;
    }
    loss = block_sum(loss);
    abs = block_sum(abs);
    square = block_sum(square);
    if (threadIdx.x)
        return;
    a.result->loss = loss;
    a.result->abs = abs;
    a.result->square = square;
    a.result->measured = a.measured;
}

/* Op 20: p[i] = 0. A kernel instead of cudaMemset, because an instantiated graph surely accepts a new number of elements
 * for a kernel. A thread has ADAMW_EACH numbers. */
__global__ void words_zero(uint32_t *p, int64_t n)
{
    int64_t first = (int64_t)blockIdx.x * ADAMW_SPAN + threadIdx.x;

    UNROLL
    for (int k = 0; k < ADAMW_EACH; k++)
        if (first + k * TRAIN_THREADS < n)
            p[first + k * TRAIN_THREADS] = 0;
}

/* Op 20: y[i] += x[i]. A thread has ADAMW_EACH numbers. */
__global__ void rows_add(nn_gpu_add a)
{
    int64_t first = (int64_t)blockIdx.x * ADAMW_SPAN + threadIdx.x;

    UNROLL
    for (int k = 0; k < ADAMW_EACH; k++)
        if (first + k * TRAIN_THREADS < a.n)
            a.y[first + k * TRAIN_THREADS] += a.x[first + k * TRAIN_THREADS];
}

/* Op 17: part[block] = sum of squares of NN_GPU_SQUARES numbers of g. Equals: piece_square (models/training/train_step.c), but for
 * the order of the sum. */
__global__ void square_parts(nn_gpu_optimise a)
{
    int64_t first = (int64_t)blockIdx.x * NN_GPU_SQUARES + threadIdx.x;
    double sum = 0;

    UNROLL
    for (int k = 0; k < NN_GPU_SQUARES / TRAIN_THREADS; k++) {
        int64_t i = first + k * TRAIN_THREADS;
        double x = i < a.n ? a.g[i] : 0.0f;
        sum += x * x;
    }
    sum = block_sum(sum);
    if (!threadIdx.x)
        a.part[blockIdx.x] = sum;
}

/* nn_adamw_rule_make and nn_lamb_rule_make for this step; clip also divides by the loss scale. */
static __device__ nn_gpu_rule rule_of(const nn_gpu_optimise &a, int64_t step, double norm)
{
    double t = (double)step, max = (1 + t) / (10 + t);
    double clip = a.grad_clip > 0 && norm > a.grad_clip ? a.grad_clip / norm : 1;
    nn_gpu_rule r;

    r.b1 = (float)a.beta1;
    r.b2 = (float)a.beta2;
    r.a1 = (float)(1 - a.beta1);
    r.a2 = (float)(1 - a.beta2);
    r.eps = (float)a.eps;
    r.keep = (float)(1 - a.lr * a.decay);
    r.rate = (float)(a.lr / (1 - pow(a.beta1, t)));
    r.fix = (float)(1 / sqrt(1 - pow(a.beta2, t)));
    r.clip = (float)(clip / a.scale->by);
    r.average = (float)(1 - (a.ema < max ? a.ema : max));
    r.decay = (float)a.decay;
    r.lr = (float)a.lr;
    r.fix1 = (float)(1 / (1 - pow(a.beta1, t)));
    r.taken = 1;
    return r;
}

/* nn_loss_scale_next */
static __device__ nn_gpu_loss_scale scale_next(nn_gpu_loss_scale s, int64_t after, bool taken)
{
    if (!after)
        return s;
    if (!taken)
        return nn_gpu_loss_scale{ fmax(s.by / 2, 1.0), 0 };
    if (++s.good < after)
        return s;
    return nn_gpu_loss_scale{ fmin(2 * s.by, (double)NN_GPU_SCALE_MAX), 0 };
}

/* The losses of the whole batch, summed over its shards; returned to every thread of the block. */
static __device__ nn_gpu_step_result shards_sum(const nn_gpu_optimise &a)
{
    nn_gpu_step_result sum = {};

    for (int i = (int)threadIdx.x; i < a.n_shards; i += TRAIN_THREADS) {
        sum.loss += a.shard[i].loss;
        sum.abs += a.shard[i].abs;
        sum.square += a.shard[i].square;
    }
    sum.loss = block_sum(sum.loss);
    sum.abs = block_sum(sum.abs);
    sum.square = block_sum(sum.square);
    return sum;
}

/* Op 17: norm = sqrt(sum of part) / scale; decides whether the step is taken; its constants; the next loss scale. One block.
 * Equals: clipping in models/training/train_step.c, nn_adamw_rule_make, nn_lamb_rule_make, nn_loss_scale_next. */
__global__ void rule_make(nn_gpu_optimise a)
{
    int64_t parts = (a.n + NN_GPU_SQUARES - 1) / NN_GPU_SQUARES;
    nn_gpu_rule rule = {};
    nn_gpu_step_result result;
    double norm = 0;

    UNROLL_BY(8)
    for (int64_t i = threadIdx.x; i < parts; i += TRAIN_THREADS)
        norm += a.part[i];
    norm = block_sum(norm);
    result = shards_sum(a);
    if (threadIdx.x)
        return;
    result.norm = norm = sqrt(norm) / a.scale->by;
    result.measured = a.shard[0].measured;
    result.taken = isfinite(norm) && isfinite(result.loss);
    if (result.taken)
        rule = rule_of(a, ++*a.step, norm);
    *a.rule = rule;
    *a.scale = result.scale = scale_next(*a.scale, a.scale_after, result.taken);
    *a.result = result;
}

static __device__ __forceinline__ void average_one(const nn_gpu_optimise &a, const nn_gpu_rule &r, int64_t i, float p)
{
    if (a.average)
        a.average[i] += r.average * (p - a.average[i]);
}

static __device__ __forceinline__ void adamw_one(const nn_gpu_optimise &a, const nn_gpu_rule &r, int64_t i)
{
    float x = a.g[i] * r.clip, m = r.b1 * a.m[i] + r.a1 * x, v = r.b2 * a.v[i] + r.a2 * x * x;
    float p = r.keep * a.p[i] - r.rate * m / (sqrtf(v) * r.fix + r.eps);

    a.m[i] = m;
    a.v[i] = v;
    a.p[i] = p;
    average_one(a, r, i, p);
}

/* Op 16, AdamW: m = b1 m + a1 g, v = b2 v + a2 g^2, p = keep p - rate m / (sqrt(v) fix + eps), then the moving average
 * (docs/model.md 1.5). A thread has ADAMW_EACH numbers. Equals: nn_adamw_update (models/optim/adam.c). */
__global__ void adamw_run(nn_gpu_optimise a)
{
    int64_t first = (int64_t)blockIdx.x * ADAMW_SPAN + threadIdx.x;
    nn_gpu_rule r = *a.rule;

    if (!r.taken)
        return;
    UNROLL
    for (int k = 0; k < ADAMW_EACH; k++)
        if (first + k * TRAIN_THREADS < a.n)
            adamw_one(a, r, first + k * TRAIN_THREADS);
}

/* ---- LAMB: a block is a piece of a tensor ---- */

static __device__ __forceinline__ float lamb_direction(const nn_gpu_optimise &a, const nn_gpu_rule &r, int64_t i)
{
    return a.m[i] * r.fix1 / (sqrtf(a.v[i]) * r.fix + r.eps) + r.decay * a.p[i];
}

/* Op 16, LAMB, first pass: updates the moments; squares[piece] = sums of squares of p (before the step) and of
 * u = m^ / (sqrt(v^) + eps) + decay p. Equals: nn_lamb_moments (models/optim/lamb.c). */
__global__ void lamb_moments(nn_gpu_optimise a)
{
    nn_gpu_piece piece = a.lamb.piece[blockIdx.x];
    nn_gpu_rule r = *a.rule;
    nn_gpu_squares sum = {};

    if (!r.taken)
        return;
    for (int k = (int)threadIdx.x; k < piece.n; k += TRAIN_THREADS) {
        int64_t i = piece.first + k;
        float x = a.g[i] * r.clip, u;
        a.m[i] = r.b1 * a.m[i] + r.a1 * x;
        a.v[i] = r.b2 * a.v[i] + r.a2 * x * x;
        u = lamb_direction(a, r, i);
        sum.p += (double)a.p[i] * (double)a.p[i];
        sum.u += (double)u * (double)u;
    }
    sum.p = block_sum(sum.p);
    sum.u = block_sum(sum.u);
    if (!threadIdx.x)
        a.lamb.squares[blockIdx.x] = sum;
}

/* Op 16, LAMB, second pass: p = p - lr |p|/|u| u, then the moving average. Every block sums the squares of all pieces of its
 * tensor itself, which costs less than another kernel. Equals: nn_lamb_ratio, nn_lamb_update (models/optim/lamb.c). */
__global__ void lamb_update(nn_gpu_optimise a)
{
    nn_gpu_piece piece = a.lamb.piece[blockIdx.x];
    nn_gpu_rule r = *a.rule;
    nn_gpu_squares sum = {};
    float by;

    if (!r.taken)
        return;
    for (int i = a.lamb.tensor[piece.tensor] + (int)threadIdx.x; i < a.lamb.tensor[piece.tensor + 1]; i += TRAIN_THREADS) {
        sum.p += a.lamb.squares[i].p;
        sum.u += a.lamb.squares[i].u;
    }
    sum.p = block_sum(sum.p);
    sum.u = block_sum(sum.u);
    by = r.lr * (sum.p > 0 && sum.u > 0 ? (float)(sqrt(sum.p) / sqrt(sum.u)) : 1);
    for (int k = (int)threadIdx.x; k < piece.n; k += TRAIN_THREADS) {
        int64_t i = piece.first + k;
        float p = a.p[i] - by * lamb_direction(a, r, i);
        a.p[i] = p;
        average_one(a, r, i, p);
    }
}

#endif
