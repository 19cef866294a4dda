/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/features/parts.h"

static pl_code fill(double *out, const ch_shape *s, const ch_rings *rings, pl_arena *mem, pl_error *err)
{
    pl_code code;

    ch_features_basic(out, s, rings);
    ch_features_bonding(out, s, rings);
    ch_features_counts(out, s, rings);
    code = ch_features_meetings(out, s, rings, mem, err);
    if (code == PL_OK)
        code = ch_features_stereo(out, s, rings, mem, err);
    if (code == PL_OK)
        code = ch_features_surface(out, s, mem, err);
    return code == PL_OK ? ch_features_estate(out, s, mem, err) : code;
}

pl_code ch_features_of(float out[CH_N_FEATURES], const ch_graph *g, pl_arena *mem, pl_error *err)
{
    double value[CH_N_FEATURES] = { 0 };
    ch_shape s;
    ch_rings rings;
    pl_code code;

    if (g->n_nodes < 1)
        return pl_fail(err, PL_EINPUT, "atoms: the molecule has none");
    code = ch_shape_make(&s, g, mem, err);
    if (code == PL_OK)
        code = ch_rings_make(&rings, &s, mem, err);
    if (code == PL_OK)
        code = fill(value, &s, &rings, mem, err);
    for (int k = 0; k < CH_N_FEATURES; k++)
        out[k] = (float)value[k];
    return code;
}

pl_code ch_polarity_of(double *logp, double *tpsa, const ch_graph *g, pl_arena *mem, pl_error *err)
{
    double refractivity;
    ch_shape s;
    pl_code code;

    if (g->n_nodes < 1)
        return pl_fail(err, PL_EINPUT, "atoms: the molecule has none");
    code = ch_shape_make(&s, g, mem, err);
    if (code != PL_OK)
        return code;
    ch_crippen_sums(logp, &refractivity, &s);
    *tpsa = ch_polar_surface(&s);
    return PL_OK;
}
