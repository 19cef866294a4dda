/* models/cpu/kernels/kernels_gate.h - the gate after attention blocks, docs/model.md 5.6; part of kernels_body.h. */

/* One node: rstd of its scalars, 1/length of each degree, the normalised scalars; padding channels are 0. */
typedef struct gate_state {
    float rstd, each[NN_DEGREES], hat[NORM_MAX];
} gate_state;

static void gate_open(const nn_cpu_gate *g, const float *x, gate_state *s)
{
    const nn_cpu_layout *f = g->f;
    const int ch = f->ch[0], pad = f->pad[0];
    const float mean = sum_of(x + f->at[0], pad) / (float)ch;

    for (int k = 0; k < pad; k++)
        s->hat[k] = k < ch ? x[f->at[0] + k] - mean : 0;
    s->rstd = 1 / sqrtf(dot_of(s->hat, s->hat, pad) / (float)ch + 1e-5f);
    for (int k = 0; k < pad; k++)
        s->hat[k] *= s->rstd;
    for (int l = 1; l < f->n_degrees; l++) {
        float sum = 0;
        for (int c = 0; c < 2 * l + 1; c++)
            sum += dot_of(x + f->at[l] + c * pad, x + f->at[l] + c * pad, pad);
        s->each[l] = 1 / sqrtf(sum / (float)ch + 1e-5f);
    }
}

static inline float gate_input(const nn_cpu_gate *g, const gate_state *s, int l, int k)
{
    return g->gain[l][k] * s->hat[k] + g->bias[l][k];
}

static inline float sigmoid(float t) { return 1 / (1 + expf(-t)); }

static void gate_node(const nn_cpu_gate *g, const float *x, float *y)
{
    const nn_cpu_layout *f = g->f;
    const int pad = f->pad[0];
    float factor[NORM_MAX];
    gate_state s;

    gate_open(g, x, &s);
    for (int k = 0; k < pad; k++) {
        const float t = gate_input(g, &s, 0, k);
        y[f->at[0] + k] = t * sigmoid(t);
    }
    for (int l = 1; l < f->n_degrees; l++) {
        for (int k = 0; k < pad; k++)
            factor[k] = sigmoid(gate_input(g, &s, l, k)) * s.each[l];
        for (int c = 0; c < 2 * l + 1; c++)
            for (int k = 0; k < pad; k += NK_W) {
                const int at = f->at[l] + c * pad + k;
                store(y + at, load(x + at) * load(factor + k));
            }
    }
}

static void gate(const nn_cpu_gate *g)
{
    for (int i = 0; i < g->n_nodes; i++)
        gate_node(g, g->x + (size_t)i * (size_t)g->f->size, g->y + (size_t)i * (size_t)g->f->size);
}

/* From dt, the gradients of a degree's gates: those of gain and bias, and of the normalised scalars. */
static void gate_inputs_back(const nn_cpu_gate *g, const gate_state *s, int l, const float *dt, float *dhat)
{
    for (int k = 0; k < g->f->pad[0]; k++) {
        g->dbias[l][k] += dt[k];
        g->dgain[l][k] += dt[k] * s->hat[k];
        dhat[k] += dt[k] * g->gain[l][k];
    }
}

/* A degree above 0: dx, and dt. */
static void gate_vectors_back(const nn_cpu_gate *g, const gate_state *s, int l, const float *x, const float *dy, float *dx,
                              float *dt)
{
    const int pad = g->f->pad[0], at = g->f->at[l];
    const float each = s->each[l];
    float open[NORM_MAX], along = 0;

    for (int k = 0; k < pad; k++) {
        open[k] = sigmoid(gate_input(g, s, l, k));
        dt[k] = 0;
    }
    for (int c = 0; c < 2 * l + 1; c++)
        for (int k = 0; k < pad; k += NK_W)
            store(dt + k, load(dt + k) + load(x + at + c * pad + k) * load(dy + at + c * pad + k));
    along = dot_of(dt, open, pad) * each * each * each / (float)g->f->ch[0];
    for (int k = 0; k < pad; k++)
        dt[k] *= each * open[k] * (1 - open[k]);
    for (int c = 0; c < 2 * l + 1; c++)
        for (int k = 0; k < pad; k += NK_W) {
            const int i = at + c * pad + k;
            store(dx + i, load(dy + i) * load(open + k) * each - along * load(x + i));
        }
}

static void gate_node_back(const nn_cpu_gate *g, const float *x, const float *dy, float *dx)
{
    const nn_cpu_layout *f = g->f;
    const int ch = f->ch[0], pad = f->pad[0];
    float dt[NORM_MAX], dhat[NORM_MAX] = { 0 }, mean, dot;
    gate_state s;

    gate_open(g, x, &s);
    for (int k = 0; k < pad; k++) {
        const float t = gate_input(g, &s, 0, k), open = sigmoid(t);
        dt[k] = dy[f->at[0] + k] * open * (1 + t * (1 - open));
    }
    for (int k = ch; k < pad; k++)
        dt[k] = 0;
    gate_inputs_back(g, &s, 0, dt, dhat);
    for (int l = 1; l < f->n_degrees; l++) {
        gate_vectors_back(g, &s, l, x, dy, dx, dt);
        gate_inputs_back(g, &s, l, dt, dhat);
    }
    mean = sum_of(dhat, pad) / (float)ch; /* zero where padded: the gain is */
    dot = dot_of(dhat, s.hat, pad) / (float)ch;
    for (int k = 0; k < pad; k++)
        dx[f->at[0] + k] = k < ch ? s.rstd * (dhat[k] - mean - s.hat[k] * dot) : 0;
}

static void gate_back(const nn_cpu_gate *g)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const size_t at = (size_t)i * (size_t)g->f->size;
        gate_node_back(g, g->x + at, g->dy + at, g->dx + at);
    }
}
