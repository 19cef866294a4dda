/* models/ref/ref_decl.h - the declarations of ref.h for one `real`. Included
 * once for double and once for float, by ref.h alone. */

/* Features of n nodes or edges: d[l] is [n][fiber.ch[l]][2l+1], NULL if absent. */
typedef struct REF(feat) {
    nn_fiber fiber;
    int32_t n;
    real *d[NN_DEGREES];
} REF(feat);

/* Zeroed, in mem. */
pl_code REF(feat_new)(REF(feat) * out, nn_fiber fiber, int32_t n, pl_arena *mem, pl_error *err);

/* A batch's edges with their bases; lives in mem. */
typedef struct REF(graph) REF(graph);
pl_code REF(graph_new)(REF(graph) * *out, const nn_ref_edges *in, int max_degree, pl_arena *mem, pl_error *err);

size_t REF(graph_bytes)(const REF(graph) * g); /* its bases and edge inputs */

/* Gradients with respect to the edges, each ADDED to; NULL members are not
 * computed. The gradient of pos[dst] - pos[src] is dist * vec/|vec| (what the
 * reference gives by default) plus turn (the rest: rule of docs/model.md 2.6). */
typedef struct REF(edge_grad) {
    real *scalar;              /* [n_edges][n_scalars]       */
    real *dist;                /* [n_edges]                  */
    real (*turn)[3];           /* [n_edges]                  */
    real *feature[NN_DEGREES]; /* [n_edges][ch][2d+1]        */
} REF(edge_grad);

/* The context of all operations on a model. Scratch and results are in mem. */
typedef struct REF(ctx) {
    const nn_se3 *model;
    const real *w; /* [model->n_floats]                    */
    real *dw;      /* the same, ADDED to; backward only    */
    const REF(graph) * graph;
    REF(edge_grad) de;
    pl_arena *mem;
    size_t bytes; /* taken from mem so far                */
} REF(ctx);

/* Forward overwrites y; backward ADDS to dx and ctx->dw. With conv->pool the
 * result belongs to nodes, else to edges. y and dx have their fiber and n set. */
pl_code REF(conv_forward)(REF(ctx) * ctx, const nn_conv *c, const REF(feat) * x, REF(feat) * y, pl_error *err);
pl_code REF(conv_backward)(REF(ctx) * ctx, const nn_conv *c, const REF(feat) * x, const REF(feat) * dy, REF(feat) * dx,
                           pl_error *err);

/* What the forward pass of an attention block stores for its backward pass. */
typedef struct REF(attention_tape) {
    REF(feat) kv, query, cat; /* per edge; per node; per node: sum and skip, concatenated */
    real *alpha;              /* [n_edges][heads]                                         */
} REF(attention_tape);

pl_code REF(attention_forward)(REF(ctx) * ctx, const nn_attention *a, const REF(feat) * x, REF(feat) * y,
                               REF(attention_tape) * tape, pl_error *err);
pl_code REF(attention_backward)(REF(ctx) * ctx, const nn_attention *a, const REF(feat) * x, const REF(attention_tape) * tape,
                                const REF(feat) * dy, REF(feat) * dx, pl_error *err);

void REF(norm_forward)(const REF(ctx) * ctx, const nn_norm *n, const REF(feat) * x, REF(feat) * y);
void REF(norm_backward)(const REF(ctx) * ctx, const nn_norm *n, const REF(feat) * x, const REF(feat) * dy, REF(feat) * dx);

/* y[n][rows][2d+1] = W x, x [n][cols][2d+1]; the backward form ADDS to dw and dx. */
void REF(linear_forward)(real *y, const real *w, const real *x, int32_t n, const int32_t shape[3]);
void REF(linear_backward)(real *dw, real *dx, const real *w, const real *x, const real *dy, int32_t n,
                          const int32_t shape[3]); /* shape: rows, cols, 2d+1 */

/* A forward pass through a whole model, kept for the backward pass. */
typedef struct REF(run) {
    int32_t n_graphs;
    const int32_t *first;       /* [n_graphs+1], borrowed                           */
    REF(feat) * x;              /* [n_modules+1]: x[k] enters module k              */
    REF(attention_tape) * tape; /* [n_modules]                                      */
    int32_t *arg;               /* [n_graphs][wide]  the node that has the maximum  */
    real *pooled, *hidden, *y;  /* [n_graphs][wide], [..][wide], [..][outputs]      */
    real *v;                    /* [n_nodes][3] of the noise head; NULL: there is none */
    const real *dv;             /* the same, its gradient, set by the caller before the backward pass; NULL: zero */
} REF(run);

/* node [n_nodes][node_features], copied. Everything lives in ctx->mem. */
pl_code REF(model_forward)(REF(ctx) * ctx, REF(run) * *out, const double *node, const int32_t *first, int32_t n_graphs,
                           pl_error *err);
/* dnode [n_nodes][node_features] is ADDED to; may be NULL. */
pl_code REF(model_backward)(REF(ctx) * ctx, const REF(run) * run, const real *dy, real *dnode, pl_error *err);
