/* SPDX-License-Identifier: Apache-2.0 */
/* A Gaussian process (Rasmussen and Williams 2006, algorithm 2.1) on the kernel of models/family/gp_data.h. The mean is of all training
 * molecules; the variance is that of a subset of them, which is never smaller than that of all, so that a model file stays small. */
#include <math.h>
#include <string.h>

#include "models/family/gp_parts.h"
#include "models/family/labels.h"
#include "pipeline/base/rng.h"
#include "pipeline/base/text.h"

static const double MIN_PROBABILITY = 0.001;

static const char *missing(void) { return NULL; }

/* ---- learning -------------------------------------------------------------------------------- */

/* Chooses m of n molecules by seed; ascending. */
static pl_code choose(nn_member *m, uint64_t seed, pl_arena *mem, pl_error *err)
{
    const int32_t n = m->g.s.n, wanted = n < NN_GP_SUBSET ? n : NN_GP_SUBSET;
    int32_t *subset = PL_NEW(mem, int32_t, wanted);
    pl_rng rng = pl_rng_at(seed, 0, 0);

    if (subset == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a Gaussian process");
    for (int32_t i = 0; i < n && m->m < wanted; i++) /* each subset is equally likely */
        if (pl_rng_below(&rng, (uint64_t)(n - i)) < (uint64_t)(wanted - m->m))
            subset[m->m++] = i;
    m->subset = subset;
    return PL_OK;
}

/* Fills the matrix k + noise of the molecules `which` [n]; NULL: of all. */
static pl_code fill(const nn_tiles *a, const nn_member *m, const int32_t *which, const nn_fit_conf *conf, pl_arena *mem,
                    pl_error *err)
{
    const nn_gp_data *g = &m->g;
    double *t = PL_NEW(mem, double, g->s.n), *d = PL_NEW(mem, double, g->s.n);
    nn_gp_query q;
    pl_code code = nn_gp_query_make(&q, g, g->s.n_ids, mem, err);

    if (t == NULL || d == NULL)
        code = pl_fail(err, PL_ENOMEM, "no memory to compare %d molecules", (int)g->s.n);
    for (int32_t i = 0; code == PL_OK && i < a->n; i++) {
        const int32_t mine = which != NULL ? which[i] : i;
        nn_gp_query_own(&q, g, mine);
        nn_gp_tanimoto(t, g, &q, mine + 1);
        nn_gp_distance(d, g, &q, mine + 1);
        for (int32_t j = 0; j <= i; j++) {
            const int32_t other = which != NULL ? which[j] : j;
            *nn_tiles_at(a, i, j) = nn_gp_alike(&m->k, t[other], d[other]) + (i == j ? m->k.noise : 0);
        }
        if (conf->stop != NULL && conf->stop(conf->ctx))
            code = pl_fail(err, PL_ESTOP, "stopped at molecule %d of %d", (int)i, (int)a->n);
    }
    return code;
}

/* The factor of k + noise of the molecules `which` [n], in scratch. */
static pl_code factor(nn_tiles *out, const nn_member *m, const int32_t *which, int32_t n, const nn_fit_conf *conf,
                      pl_arena *scratch, pl_error *err)
{
    double *room;
    pl_code code = nn_tiles_make(out, n, scratch, err);

    if (code == PL_OK)
        code = fill(out, m, which, conf, scratch, err);
    if (code != PL_OK)
        return code;
    room = PL_NEW(scratch, double, (size_t)out->n_tiles *NN_TILE *NN_TILE);
    if (room == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a matrix of %d rows", (int)n);
    return nn_tiles_factor(out, room, conf->stop, conf->ctx, err);
}

/* alpha and the signal's variance. y: standardised. */
static pl_code learn_mean(nn_member *m, const double *y, const nn_fit_conf *conf, pl_arena *mem, pl_arena *scratch, pl_error *err)
{
    const int32_t n = m->g.s.n;
    double *alpha = PL_NEW(mem, double, n), sum = 0;
    nn_tiles l;
    pl_code code = factor(&l, m, NULL, n, conf, scratch, err);

    if (alpha == NULL)
        code = pl_fail(err, PL_ENOMEM, "no memory for a Gaussian process");
    if (code != PL_OK)
        return code;
    memcpy(alpha, y, sizeof *alpha * (size_t)n);
    nn_tiles_forward(&l, alpha);
    nn_tiles_backward(&l, alpha);
    for (int32_t i = 0; i < n; i++)
        sum += alpha[i] * y[i];
    m->k.signal = sum / n;
    m->alpha = alpha;
    return PL_OK;
}

static pl_code learn_variance(nn_member *m, const nn_fit_conf *conf, pl_arena *mem, pl_arena *scratch, pl_error *err)
{
    float *to = PL_NEW(mem, float, (size_t)m->m *((size_t)m->m + 1) / 2);
    nn_tiles l;
    pl_code code = factor(&l, m, m->subset, m->m, conf, scratch, err);

    if (to == NULL)
        code = pl_fail(err, PL_ENOMEM, "no memory for a Gaussian process");
    m->factor = to;
    for (int32_t i = 0; code == PL_OK && i < m->m; i++)
        for (int32_t j = 0; j <= i; j++)
            *to++ = (float)*nn_tiles_at(&l, i, j);
    return code;
}

static pl_code learn(nn_member *m, const double *y, const nn_fit_conf *conf, pl_arena *mem, pl_arena *scratch, pl_error *err)
{
    const int32_t n = m->g.s.n;
    double *standard = PL_NEW(scratch, double, n), *part = PL_NEW(scratch, double, n);
    pl_code code = choose(m, conf->seed, mem, err);

    if (standard == NULL || part == NULL)
        code = pl_fail(err, PL_ENOMEM, "no memory for a Gaussian process");
    for (int32_t i = 0; code == PL_OK && i < n; i++)
        standard[i] = (y[i] - m->mean) / m->scale;
    for (int32_t i = 0; code == PL_OK && i < m->m; i++)
        part[i] = standard[m->subset[i]];
    if (code == PL_OK)
        code = nn_gp_search(&m->k, &m->g, m->subset, m->m, part, conf, err);
    if (code == PL_OK)
        code = learn_variance(m, conf, mem, scratch, err);
    if (code == PL_OK)
        code = learn_mean(m, standard, conf, mem, scratch, err);
    return code;
}

static pl_code fit(nn_member **out, const nn_table *x, const double *y, const nn_fit_conf *conf, pl_arena *mem, pl_error *err)
{
    nn_member *m = PL_NEW(mem, nn_member, 1);
    pl_arena *scratch;
    nn_gp_stored stored;
    pl_code code = m != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for a Gaussian process");

    *out = m;
    if (code == PL_OK && x->n > NN_GP_MAX)
        code = pl_fail(err, PL_ECONFIG, "%d training molecules; a Gaussian process learns from at most %d: use trees", (int)x->n,
                       (int)NN_GP_MAX);
    if (code == PL_OK)
        code = nn_labels_check(y, x->n, conf->classifies, &m->mean, &m->scale, err);
    if (code != PL_OK)
        return code;
    m->classifies = conf->classifies;
    scratch = pl_arena_new(1 << 20);
    if (scratch == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a Gaussian process");
    code = nn_gp_store(&stored, x, mem, err);
    if (code == PL_OK)
        code = nn_gp_derive(&m->g, &stored, mem, err);
    if (code == PL_OK)
        code = learn(m, y, conf, mem, scratch, err);
    pl_arena_free(scratch);
    return code;
}

/* ---- prediction -------------------------------------------------------------------------------- */

typedef struct scratch {
    nn_gp_query q;
    double *t, *d, *k; /* [g.s.n] */
    float *solved;     /* [m]     */
} scratch;

static pl_code scratch_make(scratch *s, const nn_member *m, const nn_table *x, pl_arena *mem, pl_error *err)
{
    const int32_t n = m->g.s.n;
    int32_t max = 0;

    for (int32_t i = 0; i < x->n; i++)
        max = x->environments[i].n > max ? x->environments[i].n : max;
    s->t = PL_NEW(mem, double, n);
    s->d = PL_NEW(mem, double, n);
    s->k = PL_NEW(mem, double, n);
    s->solved = PL_NEW(mem, float, m->m);
    if (s->t == NULL || s->d == NULL || s->k == NULL || s->solved == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory to compare with %d molecules", (int)n);
    return nn_gp_query_make(&s->q, &m->g, max, mem, err);
}

/* In units of the target. 1 + noise - |L^-1 k|^2, k of the subset; never below the noise. */
static double variance_of(const nn_member *m, const scratch *s)
{
    const float *row = m->factor;
    double known = 0;

    for (int32_t i = 0; i < m->m; i++) {
        float sum = (float)s->k[m->subset[i]];
        for (int32_t j = 0; j < i; j++)
            sum -= row[j] * s->solved[j];
        s->solved[i] = sum / row[i];
        known += (double)s->solved[i] * (double)s->solved[i];
        row += i + 1;
    }
    return m->scale * m->scale * m->k.signal * (m->k.noise + (known < 1 ? 1 - known : 0));
}

static double value_of(const nn_member *m, const scratch *s)
{
    double sum = 0;

    for (int32_t i = 0; i < m->g.s.n; i++)
        sum += m->alpha[i] * s->k[i];
    return m->mean + m->scale * sum;
}

/* variance may be NULL. */
static pl_code predict_all(const nn_member *m, const nn_table *x, double *value, double *variance, pl_arena *mem, pl_error *err)
{
    const int32_t n = m->g.s.n;
    scratch s;
    pl_code code = nn_columns_fit(&m->g.s.numbers, x, err);

    if (code == PL_OK)
        code = scratch_make(&s, m, x, mem, err);
    for (int32_t row = 0; code == PL_OK && row < x->n; row++) {
        nn_gp_query_set(&s.q, &m->g, x, row);
        nn_gp_tanimoto(s.t, &m->g, &s.q, n);
        nn_gp_distance(s.d, &m->g, &s.q, n);
        for (int32_t i = 0; i < n; i++)
            s.k[i] = nn_gp_alike(&m->k, s.t[i], s.d[i]);
        value[row] = value_of(m, &s);
        if (variance != NULL)
            variance[row] = variance_of(m, &s);
    }
    return code;
}

pl_code nn_gp_value(const nn_member *m, const nn_table *x, double *value, pl_arena *mem, pl_error *err)
{
    return predict_all(m, x, value, NULL, mem, err);
}

static pl_code predict(const nn_member *m, const nn_table *x, double *value, double *variance, pl_arena *mem, pl_error *err)
{
    pl_code code = predict_all(m, x, value, variance, mem, err);

    for (int32_t row = 0; code == PL_OK && m->classifies && row < x->n; row++)
        value[row] = fmin(fmax(value[row], MIN_PROBABILITY), 1 - MIN_PROBABILITY);
    return code;
}

/* ---- words ---------------------------------------------------------------------------------------- */

static const char *describe(const nn_member *m, pl_arena *mem)
{
    char n[32];

    return pl_sprintf(mem, "Gaussian process on %s molecules, %.0f %% of the kernel from environments, noise %.2g of the signal",
                      pl_count_str(m->g.s.n, n), 100 * m->k.w, m->k.noise);
}

const nn_member_kind nn_gp = {
    .name = "gp",
    .help = "Gaussian process on descriptors and circular environments; up to 10,000 molecules; has a variance",
    .averaged = true,
    .most = NN_GP_MAX,
    .missing = missing,
    .fit = fit,
    .save = nn_gp_save,
    .open = nn_gp_open,
    .predict = predict,
    .explain = nn_gp_explain,
    .describe = describe,
};
