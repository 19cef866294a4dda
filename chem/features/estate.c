/* SPDX-License-Identifier: Apache-2.0 */
/* Electrotopological state: Hall, Mohney and Kier, J. Chem. Inf. Comput. Sci. 1991, 31, 76. */
#include "chem/features/element_table.h"
#include "chem/features/parts.h"

static int quantum_number(int z)
{
    static const uint8_t last[] = { 2, 10, 18, 36, 54, 86 };
    int n = 1;

    while (n <= 6 && z > last[n - 1])
        n++;
    return n;
}

/* What the atom would be alone, from its valence electrons and neighbours; 0 without neighbours. */
static double intrinsic(const ch_shape *s, int32_t i)
{
    const double delta = ch_shape_degree(s, i), n = quantum_number(s->z[i]);

    return delta > 0 ? (4 / (n * n) * (ch_element_rows[s->z[i]].outer - s->hydrogens[i]) + 1) / delta : 0;
}

/* Adds what all other atoms of its part do to atom i: (I - J) / r^2, r: atoms on the shortest path. distance is all 0 before and after. */
static double state_of(const ch_shape *s, const double *own, int32_t i, int32_t *distance, int32_t *queue)
{
    int64_t sum = 0;
    int32_t n = 0;

    queue[n++] = i;
    distance[i] = 1;
    for (int32_t q = 0; q < n; q++) {
        const int32_t at = queue[q];
        const double r = distance[at];
        sum += ch_fixed((own[i] - own[at]) / (r * r));
        for (int32_t k = s->row[at]; k < s->row[at + 1]; k++)
            if (distance[s->link[k].to] == 0) {
                distance[s->link[k].to] = distance[at] + 1;
                queue[n++] = s->link[k].to;
            }
    }
    while (n > 0)
        distance[queue[--n]] = 0;
    return own[i] + ch_real(sum);
}

static void take(double *out, double state, bool first)
{
    if (first) {
        out[CH_F_estate_max] = out[CH_F_estate_min] = state;
        out[CH_F_estate_abs_max] = out[CH_F_estate_abs_min] = fabs(state);
        return;
    }
    out[CH_F_estate_max] = fmax(out[CH_F_estate_max], state);
    out[CH_F_estate_min] = fmin(out[CH_F_estate_min], state);
    out[CH_F_estate_abs_max] = fmax(out[CH_F_estate_abs_max], fabs(state));
    out[CH_F_estate_abs_min] = fmin(out[CH_F_estate_abs_min], fabs(state));
}

pl_code ch_features_estate(double *out, const ch_shape *s, pl_arena *mem, pl_error *err)
{
    double *own = PL_NEW(mem, double, s->n + 1);
    int32_t *distance = PL_NEW(mem, int32_t, s->n + 1), *queue = PL_NEW(mem, int32_t, s->n + 1);

    if (own == NULL || distance == NULL || queue == NULL)
        return pl_fail(err, PL_ENOMEM, "E-states");
    for (int32_t i = 0; i < s->n; i++)
        own[i] = intrinsic(s, i);
    for (int32_t i = 0; i < s->n; i++)
        take(out, state_of(s, own, i, distance, queue), i == 0);
    return PL_OK;
}
