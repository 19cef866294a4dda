/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/type_names.h"
#include "chem/structures/types.h"

/* Where an atom stands in a ring of five, counted from the atom with the lone pair; GENERAL where that has no meaning. */
enum place { NOWHERE, GENERAL, BETA, ALPHA, LONE, CATION };

/* Whether an atom is one of the carbon and the nitrogens that share the charge of an amidinium within the ring. */
static bool is_cation(const ch_perceived *p, const ch_ring *ring, int k, int middle)
{
    const int32_t i = ring->atom[k];
    if (k == middle)
        return true;
    return middle >= 0 && ((k + 1) % 5 == middle || (middle + 1) % 5 == k) && p->z[i] == N && p->n_neighbours[i] == 3;
}

/* The place of the carbon of an amidinium whose double bond is in the ring; -1: none. */
static int amidinium_place(const ch_perceived *p, const ch_ring *ring)
{
    for (int k = 0; k < 5; k++) {
        const int32_t partner = ch_perceived_partner(p, ring->atom[k], 2);
        if ((partner == ring->atom[(k + 4) % 5] || partner == ring->atom[(k + 1) % 5]) && ch_types_amidinium(p, ring->atom[k]) > 0)
            return k;
    }
    return -1;
}

static void place_in_ring(uint8_t *place, const ch_perceived *p, const ch_ring *ring)
{
    static const uint8_t by_distance[] = { LONE, ALPHA, BETA, BETA, ALPHA };
    const bool anion = p->charge[ring->atom[ring->lone]] == -1;
    const int middle = anion ? -1 : amidinium_place(p, ring);
    /* An imidazolium has both nitrogens in the ring, so there is no one atom to count from. */
    const bool general = anion || (middle >= 0 && is_cation(p, ring, ring->lone, middle));

    for (int k = 0; k < ring->size; k++) {
        const int32_t i = ring->atom[k];
        uint8_t here = general ? GENERAL : by_distance[(k - ring->lone + 5) % 5];
        if (is_cation(p, ring, k, middle))
            here = CATION;
        if ((place[i] == ALPHA && here == BETA) || (place[i] == BETA && here == ALPHA))
            place[i] = GENERAL;
        else if (here > place[i])
            place[i] = here;
    }
}

static uint8_t five_carbon(uint8_t place)
{
    switch (place) {
    case CATION: return CIM_PLUS;
    case ALPHA: return C5A;
    case BETA: return C5B;
    default: return C5;
    }
}

static uint8_t five_nitrogen(const ch_perceived *p, int32_t i, uint8_t place)
{
    if (place == LONE)
        return NPYL;
    if (place == CATION)
        return NIM_PLUS;
    if (p->charge[i] == 1)
        return ch_perceived_terminals(p, i, O) > 0 ? N5OX : NIM_PLUS;
    switch (place) {
    case ALPHA: return N5A;
    case BETA: return N5B;
    default: return N5;
    }
}

static pl_code five_ring(uint8_t *type, const ch_perceived *p, const ch_ring *ring, const uint8_t *place, pl_error *err)
{
    const bool anion = p->charge[ring->atom[ring->lone]] == -1;

    for (int k = 0; k < ring->size; k++) {
        const int32_t i = ring->atom[k];
        if (p->z[i] == C)
            type[i] = five_carbon(place[i]);
        else if (p->z[i] == N && anion && p->n_neighbours[i] == 2)
            type[i] = N5M;
        else if (p->z[i] == N && type[i] != N5M)
            type[i] = five_nitrogen(p, i, place[i]);
        else if (p->z[i] == O && k == ring->lone)
            type[i] = OFUR;
        else if (p->z[i] == S && k == ring->lone)
            type[i] = STHI;
        else if (p->z[i] != N)
            return ch_perceived_refuse(p, i, err, "MMFF94 has no type for this atom in an aromatic ring of five");
    }
    return PL_OK;
}

static pl_code six_ring(uint8_t *type, const ch_perceived *p, const ch_ring *ring, pl_error *err)
{
    for (int k = 0; k < ring->size; k++) {
        const int32_t i = ring->atom[k];
        if (p->z[i] == C)
            type[i] = CB;
        else if (p->z[i] == N && p->n_neighbours[i] == 2)
            type[i] = NPYD;
        else if (p->z[i] == N)
            type[i] = ch_perceived_terminals(p, i, O) > 0 ? NPOX : NPD_PLUS;
        else if (p->z[i] != O)
            return ch_perceived_refuse(p, i, err, "MMFF94 has no type for this atom in an aromatic ring of six");
    }
    return PL_OK;
}

/* Rings of five come last: an atom of both has its type from the ring of five. */
pl_code ch_types_aromatic(uint8_t *type, const ch_perceived *p, uint8_t *place, pl_error *err)
{
    for (int32_t r = 0; r < p->n_rings; r++) {
        if (p->rings[r].aromatic && p->rings[r].size == 5)
            place_in_ring(place, p, &p->rings[r]);
        const pl_code code = p->rings[r].aromatic && p->rings[r].size == 6 ? six_ring(type, p, &p->rings[r], err) : PL_OK;
        if (code != PL_OK)
            return code;
    }
    for (int32_t r = 0; r < p->n_rings; r++) {
        if (!p->rings[r].aromatic || p->rings[r].size != 5)
            continue;
        const pl_code code = five_ring(type, p, &p->rings[r], place, err);
        if (code != PL_OK)
            return code;
    }
    return PL_OK;
}

/* ---- hydrogens ---- */

static uint8_t on_nitrogen(uint8_t type)
{
    switch (type) {
    case NR:
    case NPYL:
    case NM:
    case N2OX:
    case N3OX: return HNR;
    case N_C: return HN_C;
    case NR_PLUS:
    case N_PLUS_C:
    case NCN_PLUS:
    case NGD_PLUS:
    case NPD_PLUS:
    case NR_TRIPLE:
    case NIM_PLUS: return HNR_PLUS;
    default: return HNCO;
    }
}

/* On the oxygen of an alcohol, acid, enol and so on: what its carbon is bound to decides. */
static uint8_t on_carbon_oxygen(const ch_perceived *p, int32_t c)
{
    const int32_t partner = ch_perceived_partner(p, c, 2);

    if (p->n_neighbours[c] != 3 || partner < 0)
        return HOR;
    switch (p->z[partner]) {
    case O: return HOCO;
    case C:
    case N: return HOCC;
    default: return HOR;
    }
}

static uint8_t on_oxygen(const ch_perceived *p, int32_t o, uint8_t type)
{
    if (type == OH2)
        return HOH;
    if (type == O_PLUS)
        return HO_PLUS;
    if (type == O_DOUBLE_PLUS)
        return HO_DOUBLE_PLUS;
    if (type != OR)
        return HOR;
    const int32_t other = p->z[p->neighbour[o][0]] == H ? p->neighbour[o][1] : p->neighbour[o][0];
    switch (p->z[other]) {
    case C: return on_carbon_oxygen(p, other);
    case S: return HOS;
    case P: return HOCO;
    default: return HOR;
    }
}

pl_code ch_types_hydrogens(uint8_t *type, const ch_perceived *p, pl_error *err)
{
    for (int32_t i = 0; i < p->n_atoms; i++) {
        if (p->z[i] != H)
            continue;
        if (p->n_neighbours[i] != 1)
            return ch_perceived_refuse(p, i, err, "MMFF94 has no type for a hydrogen that is not at the end of one bond");
        const int32_t j = p->neighbour[i][0];
        switch (p->z[j]) {
        case C:
        case SILICON: type[i] = HC; break;
        case N: type[i] = on_nitrogen(type[j]); break;
        case O: type[i] = on_oxygen(p, j, type[j]); break;
        case P:
        case S: type[i] = HS; break;
        default: return ch_perceived_refuse(p, i, err, "MMFF94 has no type for hydrogen on this element");
        }
    }
    return PL_OK;
}
