/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "chem/structures/type_names.h"
#include "chem/structures/types.h"

/* Oxygen and sulfur ends of one atom share the charge of the group, whichever of them the drawing gives it to. */
static void ends_share(double *shared, const uint8_t *type, const ch_perceived *p, int32_t centre)
{
    double sum = p->charge[centre];
    int n = 0;

    for (int k = 0; k < p->n_neighbours[centre]; k++) {
        const int32_t j = p->neighbour[centre][k];
        if (type[j] != O2CM && type[j] != S2CM)
            continue;
        sum += p->charge[j];
        n++;
    }
    if (n == 0)
        return;
    shared[centre] = 0;
    for (int k = 0; k < p->n_neighbours[centre]; k++) {
        const int32_t j = p->neighbour[centre][k];
        if (type[j] == O2CM || type[j] == S2CM)
            shared[j] = sum / n;
    }
}

/* The nitrogens of an amidinium, guanidinium or imidazolium. */
static void amidinium_shares(double *shared, const ch_perceived *p, int32_t i, const uint8_t *type)
{
    const int n = ch_types_amidinium(p, i);

    for (int k = 0; k < p->n_neighbours[i] && n > 0; k++) {
        const int32_t j = p->neighbour[i][k];
        if (type[j] == NCN_PLUS || type[j] == NGD_PLUS || type[j] == NIM_PLUS)
            shared[j] = 1.0 / n;
    }
}

/* The nitrogens of an aromatic ring of five with a negative charge. */
static void ring_shares(double *shared, const uint8_t *type, const ch_perceived *p, const ch_ring *ring)
{
    int n = 0;

    if (!ring->aromatic || ring->size != 5 || p->charge[ring->atom[ring->lone]] != -1)
        return;
    for (int k = 0; k < ring->size; k++)
        n += type[ring->atom[k]] == N5M;
    for (int k = 0; k < ring->size; k++)
        if (type[ring->atom[k]] == N5M)
            shared[ring->atom[k]] = -1.0 / n;
}

/* In azides, diazo compounds and isonitriles the two charges of the drawing are none. */
static void pairs_cancel(double *shared, const uint8_t *type, const ch_perceived *p, int32_t i)
{
    const int32_t j = p->neighbour[i][0];

    if ((type[i] == NAZT && type[j] == N_TWICE) || (type[i] == ISONITRILE_C && type[j] == NR_TRIPLE))
        shared[i] = shared[j] = 0;
}

pl_code ch_types_share_charges(double *shared, const uint8_t *type, const ch_perceived *p, pl_error *err)
{
    double sum = 0;

    for (int32_t i = 0; i < p->n_atoms; i++)
        shared[i] = p->charge[i];
    for (int32_t i = 0; i < p->n_atoms; i++) {
        ends_share(shared, type, p, i);
        if (p->n_neighbours[i] == 1)
            pairs_cancel(shared, type, p, i);
        amidinium_shares(shared, p, i, type);
    }
    for (int32_t r = 0; r < p->n_rings; r++)
        ring_shares(shared, type, p, &p->rings[r]);
    for (int32_t i = 0; i < p->n_atoms; i++)
        sum += shared[i] - p->charge[i];
    return fabs(sum) <= 1e-6
               ? PL_OK
               : pl_fail(err, PL_EINPUT, "MMFF94 has no way to share the formal charges of this molecule: %.3g is left over", sum);
}
