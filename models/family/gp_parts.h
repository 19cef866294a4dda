/* models/family/gp_parts.h - the Gaussian process from inside, for its own files. */
#ifndef NN_GP_PARTS_H
#define NN_GP_PARTS_H

#include "models/family/gp_data.h"

enum { NN_GP_SUBSET = 700 };

/* The covariance of two molecules is signal * (k + noise if they are one), k as in models/family/gp_data.h. */
typedef struct nn_gp_kernel {
    double w, length, noise, signal;
} nn_gp_kernel;

struct nn_member {
    nn_gp_data g;
    nn_gp_kernel k;
    bool classifies;
    double mean, scale;    /* value = mean + scale * (sum over i of alpha[i] k(x, i)) */
    const double *alpha;   /* [g.s.n]                                                */
    int32_t m;             /* molecules of the subset                                */
    const int32_t *subset; /* [m] ascending                                          */
    const float *factor;   /* [m*(m+1)/2] rows of the Cholesky factor of k + noise of the subset */
};

/* k of two molecules with T and D. */
double nn_gp_alike(const nn_gp_kernel *k, double t, double d);

/* w, length, noise and signal that make y [n] of the molecules `which` [n <= NN_GP_SUBSET] of g most likely. ESTOP. ENOMEM. */
pl_code nn_gp_search(nn_gp_kernel *out, const nn_gp_data *g, const int32_t *which, int32_t n, const double *y,
                     const nn_fit_conf *conf, pl_error *err);

/* The values [x->n] before they are limited to probabilities. ENOMEM. */
pl_code nn_gp_value(const nn_member *m, const nn_table *x, double *value, pl_arena *mem, pl_error *err);

/* nn_member_kind's save, open and explain. */
pl_code nn_gp_save(const nn_member *m, const char *prefix, nn_tensor **out, int *n, const char **json, pl_arena *mem,
                   pl_error *err);
pl_code nn_gp_open(nn_member **out, const char *prefix, const nn_tensors *all, const char *json, pl_arena *mem, pl_error *err);
pl_code nn_gp_explain(const nn_member *m, const nn_table *x, int32_t row, nn_parts *out, pl_arena *mem, pl_error *err);

#endif
