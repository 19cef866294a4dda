/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/types.h"
#include "chem/structures/type_names.h"

static int neighbours(const ch_perceived *p, int32_t i) { return p->n_neighbours[i]; }

static bool in_ring(const ch_perceived *p, int32_t i, int size) { return (p->ring_sizes[i] >> size & 1) != 0; }

/* Whether an atom has a double (or triple) bond to an atom of element z. */
static bool has_bond(const ch_perceived *p, int32_t i, int order, int z)
{
    for (int k = 0; k < p->n_neighbours[i]; k++)
        if (p->order[p->edge[i][k]] == order && p->z[p->neighbour[i][k]] == z)
            return true;
    return false;
}

/* Ends of oxygen and sulfur. */
static int chalcogens(const ch_perceived *p, int32_t i)
{
    return ch_perceived_terminals(p, i, O) + ch_perceived_terminals(p, i, S);
}

/* ---- carbon ---- */

/* N(+) with a double bond and three neighbours, none of them an oxide. */
static bool is_iminium(const ch_perceived *p, int32_t i)
{
    return p->z[i] == N && p->charge[i] == 1 && neighbours(p, i) == 3 && ch_perceived_terminals(p, i, O) == 0;
}

/* An amine beside atom i whose lone pair is free for it, not needed by another aromatic ring. */
static bool is_amine(const ch_perceived *p, int32_t n, int32_t i)
{
    if (p->z[n] != N || p->charge[n] != 0 || neighbours(p, n) != 3 || p->valence[n] != 3)
        return false;
    for (int k = 0; k < 3; k++)
        if (p->aromatic_bond[p->edge[n][k]] != 0)
            return p->aromatic_bond[ch_perceived_bond(p, n, i)] != 0;
    return true;
}

int ch_types_amidinium(const ch_perceived *p, int32_t i)
{
    int n = 1;
    const int32_t partner = p->z[i] == C && neighbours(p, i) == 3 ? ch_perceived_partner(p, i, 2) : -1;

    if (partner < 0 || !is_iminium(p, partner))
        return 0;
    /* In an aromatic ring of six the charge belongs to the ring. */
    if (p->aromatic_bond[ch_perceived_bond(p, i, partner)] == 1u << 6)
        return 0;
    for (int k = 0; k < 3; k++)
        n += is_amine(p, p->neighbour[i][k], i);
    return n >= 2 ? n : 0;
}

static pl_code sp2_carbon(uint8_t *type, const ch_perceived *p, int32_t i, pl_error *err)
{
    const int32_t partner = ch_perceived_partner(p, i, 2);

    if (partner < 0 || p->charge[i] != 0)
        return ch_perceived_refuse(p, i, err, "MMFF94 has no type for a carbon ion");
    if (ch_perceived_terminals(p, i, O) >= 2 || ch_perceived_terminals(p, i, S) >= 2)
        *type = CO2M;
    else if (ch_types_amidinium(p, i) > 0)
        *type = CGD_PLUS;
    else if (p->z[partner] == C)
        *type = in_ring(p, i, 4) ? CE4R : C_C;
    else
        *type = p->z[partner] == SILICON ? C_C : C_O;
    return PL_OK;
}

static pl_code carbon(uint8_t *type, const ch_perceived *p, int32_t i, pl_error *err)
{
    switch (neighbours(p, i)) {
    case 4:
        *type = in_ring(p, i, 4) ? CR4R : CR;
        if (in_ring(p, i, 3))
            *type = CR3R;
        return PL_OK;
    case 3: return sp2_carbon(type, p, i, err);
    case 2: *type = CSP; break;
    case 1: *type = ISONITRILE_C; break;
    default: return ch_perceived_refuse(p, i, err, "MMFF94 has no type for a lone carbon");
    }
    const bool isonitrile = neighbours(p, i) == 1 && p->charge[i] == -1 && p->z[p->neighbour[i][0]] == N;
    if (neighbours(p, i) == 1 ? !isonitrile : p->charge[i] != 0)
        return ch_perceived_refuse(p, i, err, "MMFF94 has no type for a carbon ion");
    return PL_OK;
}

/* ---- nitrogen ---- */

/* What the neighbours of an amine make of it. */
typedef struct {
    bool sulfonamide; /* S or P with two oxygen ends, or a cyano group */
    bool amide;       /* C=O, C=S */
    bool enamine;     /* C=C, C=N, C=P, C#C */
    bool hydrazone;   /* N=C, N=N */
    int charged;      /* 2: N beside an amidinium carbon, 3: a guanidinium carbon */
} amine_sight;

static void look_at_carbon(amine_sight *sight, const ch_perceived *p, int32_t i)
{
    const int n_nitrogens = ch_types_amidinium(p, i);

    if (n_nitrogens > sight->charged)
        sight->charged = n_nitrogens;
    sight->sulfonamide |= has_bond(p, i, 3, N);
    sight->amide |= neighbours(p, i) == 3 && (has_bond(p, i, 2, O) || has_bond(p, i, 2, S));
    sight->enamine |= has_bond(p, i, 2, C) || has_bond(p, i, 2, N) || has_bond(p, i, 2, P) || has_bond(p, i, 3, C);
}

/* N=N, or N=C with a carbon that has no other nitrogen, oxygen or sulfur to conjugate with. */
static bool is_hydrazone(const ch_perceived *p, int32_t n)
{
    const int32_t partner = ch_perceived_partner(p, n, 2);

    if (partner < 0 || (p->z[partner] != N && p->z[partner] != C))
        return false;
    if (p->z[partner] == N)
        return true;
    for (int k = 0; k < neighbours(p, partner); k++) {
        const int32_t i = p->neighbour[partner][k];
        if (i != n && (p->z[i] == N || p->z[i] == O || p->z[i] == S))
            return false;
    }
    return true;
}

static amine_sight look_around(const ch_perceived *p, int32_t i)
{
    amine_sight sight = { 0 };

    for (int k = 0; k < neighbours(p, i); k++) {
        const int32_t j = p->neighbour[i][k];
        if (p->z[j] == C)
            look_at_carbon(&sight, p, j);
        else if (p->z[j] == N)
            sight.hydrazone |= is_hydrazone(p, j);
        else if (p->z[j] == S || p->z[j] == P)
            sight.sulfonamide |= ch_perceived_terminals(p, j, O) >= 2;
    }
    return sight;
}

static uint8_t amine(const ch_perceived *p, int32_t i)
{
    const amine_sight sight = look_around(p, i);

    if (sight.charged > 0)
        return sight.charged > 2 ? NGD_PLUS : NCN_PLUS;
    if (sight.sulfonamide)
        return NSO2;
    if (sight.amide)
        return NC_O;
    if (sight.enamine)
        return NC_C;
    return sight.hydrazone ? NC_O : NR;
}

static uint8_t iminium(const ch_perceived *p, int32_t i)
{
    const int32_t partner = ch_perceived_partner(p, i, 2);
    const int shared = ch_types_amidinium(p, partner);

    if (shared > 0)
        return shared > 2 ? NGD_PLUS : NCN_PLUS;
    return N_PLUS_C;
}

static pl_code nitrogen_of_three(uint8_t *type, const ch_perceived *p, int32_t i, pl_error *err)
{
    const int oxides = ch_perceived_terminals(p, i, O);

    if (p->charge[i] == 0)
        *type = amine(p, i);
    else if (oxides >= 2)
        *type = NO2;
    else
        *type = oxides == 1 ? N2OX : iminium(p, i);
    if (p->charge[i] == 1 && oxides < 2 && !has_bond(p, i, 2, C) && !has_bond(p, i, 2, N))
        return ch_perceived_refuse(p, i, err, "MMFF94 has no type for this double bond of a nitrogen cation");
    return PL_OK;
}

static pl_code nitrogen_of_two(uint8_t *type, const ch_perceived *p, int32_t i, pl_error *err)
{
    const int32_t partner = ch_perceived_partner(p, i, 2);

    if (p->charge[i] == -1) {
        *type = NM;
    } else if (p->charge[i] == 1) {
        *type = partner >= 0 ? N_TWICE : NR_TRIPLE;
    } else if (p->z[partner] == O) {
        *type = N_O;
    } else if (p->z[partner] == S) {
        if (ch_perceived_terminals(p, partner, O) != 1)
            return ch_perceived_refuse(p, i, err, "MMFF94 has a type for N=S in the groups S(=N)=O and N=S=O only");
        *type = NSO;
    } else if (p->z[partner] == C || p->z[partner] == N) {
        *type = N_C;
    } else {
        return ch_perceived_refuse(p, i, err, "MMFF94 has no type for a nitrogen with this double bond");
    }
    return PL_OK;
}

static pl_code nitrogen(uint8_t *type, const ch_perceived *p, int32_t i, pl_error *err)
{
    switch (neighbours(p, i)) {
    case 4: *type = ch_perceived_terminals(p, i, O) > 0 ? N3OX : NR_PLUS; return PL_OK;
    case 3: return nitrogen_of_three(type, p, i, err);
    case 2: return nitrogen_of_two(type, p, i, err);
    case 1: break;
    default: return ch_perceived_refuse(p, i, err, "MMFF94 has no type for a lone nitrogen");
    }
    const int32_t j = p->neighbour[i][0];
    if (p->valence[i] == 3 && p->charge[i] == 0)
        *type = NSP;
    else if (p->charge[i] == -1 && p->valence[i] == 2 && p->z[j] == N && p->charge[j] == 1)
        *type = NAZT;
    else
        return ch_perceived_refuse(p, i, err, "MMFF94 has no type for a nitrogen with one neighbour and this bond");
    return PL_OK;
}

/* ---- oxygen, sulfur, phosphorus ---- */

static uint8_t oxygen_of_sulfur(const ch_perceived *p, int32_t i)
{
    const int32_t s = p->neighbour[i][0];

    if (neighbours(p, s) == 4 || chalcogens(p, s) >= 2)
        return O2CM;
    return O_C;
}

static pl_code oxygen_end(uint8_t *type, const ch_perceived *p, int32_t i, pl_error *err)
{
    const int32_t j = p->neighbour[i][0];
    const bool is_double = p->valence[i] == 2;

    *type = 0;
    if (p->z[j] == C) {
        if (neighbours(p, j) == 3 && ch_perceived_terminals(p, j, O) >= 2)
            *type = O2CM;
        else
            *type = is_double ? O_C : OM;
    } else if (p->z[j] == N) {
        if (p->charge[j] == 1)
            *type = O2CM;
        else
            *type = is_double ? O_C : OM;
    } else if (p->z[j] == S) {
        *type = oxygen_of_sulfur(p, i);
    } else if (p->z[j] == P || p->z[j] == CL) {
        *type = O2CM;
    } else if (p->z[j] == H) {
        *type = OM;
    }
    return *type != 0 ? PL_OK : ch_perceived_refuse(p, i, err, "MMFF94 has no type for an oxygen with this neighbour alone");
}

static pl_code oxygen(uint8_t *type, const ch_perceived *p, int32_t i, pl_error *err)
{
    switch (neighbours(p, i)) {
    case 3: *type = O_PLUS; return PL_OK;
    case 2:
        if (p->charge[i] == 1)
            *type = O_DOUBLE_PLUS;
        else
            *type = p->z[p->neighbour[i][0]] == H && p->z[p->neighbour[i][1]] == H ? OH2 : OR;
        return PL_OK;
    case 1: return oxygen_end(type, p, i, err);
    default: return ch_perceived_refuse(p, i, err, "MMFF94 has no type for this oxygen");
    }
}

static pl_code sulfur_end(uint8_t *type, const ch_perceived *p, int32_t i, pl_error *err)
{
    const int32_t j = p->neighbour[i][0];

    if (p->z[j] == C && p->valence[i] == 2 && (neighbours(p, j) != 3 || ch_perceived_terminals(p, j, S) < 2))
        *type = S_C;
    else if (p->z[j] == C || p->z[j] == P || p->z[j] == S)
        *type = S2CM;
    else
        return ch_perceived_refuse(p, i, err, "MMFF94 has no type for a sulfur with this neighbour alone");
    return PL_OK;
}

/* Three neighbours: a sulfoxide, the anion of a sulfinic acid, C=SO2. */
static pl_code sulfur_of_three(uint8_t *type, const ch_perceived *p, int32_t i, pl_error *err)
{
    const int ends = chalcogens(p, i);

    if (p->valence[i] == 6 && ch_perceived_terminals(p, i, O) == 2 && has_bond(p, i, 2, C))
        *type = SO2;
    else if (p->valence[i] == 4 && ends == 2)
        *type = SO2M;
    else if (p->valence[i] == 4 && ch_perceived_terminals(p, i, O) == 1)
        *type = S_O;
    else
        return ch_perceived_refuse(p, i, err, "MMFF94 has no type for a sulfur with these three neighbours");
    return PL_OK;
}

static pl_code sulfur(uint8_t *type, const ch_perceived *p, int32_t i, pl_error *err)
{
    const bool neutral = p->charge[i] == 0;

    switch (neutral || neighbours(p, i) == 1 ? neighbours(p, i) : 0) {
    case 4:
        if (p->valence[i] != 6)
            return ch_perceived_refuse(p, i, err, "MMFF94 has no type for sulfur(IV) with four neighbours");
        *type = SO2;
        return PL_OK;
    case 3: return sulfur_of_three(type, p, i, err);
    case 2:
        if (p->valence[i] == 2)
            *type = SULFIDE;
        else if (p->valence[i] == 4 && ch_perceived_terminals(p, i, O) == 1)
            *type = S_SULFINYL;
        else
            return ch_perceived_refuse(p, i, err, "MMFF94 has no type for a sulfur with these two double bonds");
        return PL_OK;
    case 1: return sulfur_end(type, p, i, err);
    default: return ch_perceived_refuse(p, i, err, "MMFF94 has no type for this sulfur ion");
    }
}

static pl_code phosphorus(uint8_t *type, const ch_perceived *p, int32_t i, pl_error *err)
{
    const int n = neighbours(p, i);

    if (n == 4 && p->valence[i] == 5)
        *type = PO4;
    else if (n == 3 && p->valence[i] == 3)
        *type = PHOSPHINE;
    else if (n == 2 && p->valence[i] == 3 && has_bond(p, i, 2, C))
        *type = P_DOUBLE;
    else
        return ch_perceived_refuse(p, i, err, "MMFF94 has no type for a phosphorus with these bonds");
    return PL_OK;
}

/* ---- halogens, ions ---- */

static pl_code lone_atom(uint8_t *type, const ch_perceived *p, int32_t i, pl_error *err)
{
    static const struct {
        uint8_t z;
        int8_t charge;
        uint8_t type;
    } ions[] = { { 26, 2, 87 }, { 26, 3, 88 }, { F, -1, 89 }, { CL, -1, 90 }, { BR, -1, 91 }, { 3, 1, 92 }, { 11, 1, 93 },
                 { 19, 1, 94 }, { 30, 2, 95 }, { 20, 2, 96 }, { 29, 1, 97 },  { 29, 2, 98 },  { 12, 2, 99 } };

    for (size_t k = 0; k < sizeof ions / sizeof *ions; k++)
        if (p->z[i] == ions[k].z && p->charge[i] == ions[k].charge) {
            *type = ions[k].type;
            return PL_OK;
        }
    return ch_perceived_refuse(p, i, err, "MMFF94 has no type for this atom without bonds");
}

static pl_code halogen(uint8_t *type, const ch_perceived *p, int32_t i, pl_error *err)
{
    if (neighbours(p, i) == 1) {
        switch (p->z[i]) {
        case F: *type = FLUORINE; break;
        case CL: *type = CHLORINE; break;
        case BR: *type = BROMINE; break;
        default: *type = IODINE; break;
        }
        return PL_OK;
    }
    if (p->z[i] != CL || ch_perceived_terminals(p, i, O) != 4)
        return ch_perceived_refuse(p, i, err, "MMFF94 has a type for a halogen with more neighbours in perchlorate only");
    *type = CLO4;
    return PL_OK;
}

static pl_code heavy_atom(uint8_t *type, const ch_perceived *p, int32_t i, pl_error *err)
{
    if (neighbours(p, i) == 0)
        return lone_atom(type, p, i, err);
    switch (p->z[i]) {
    case C: return carbon(type, p, i, err);
    case N: return nitrogen(type, p, i, err);
    case O: return oxygen(type, p, i, err);
    case S: return sulfur(type, p, i, err);
    case P: return phosphorus(type, p, i, err);
    case F:
    case CL:
    case BR:
    case I: return halogen(type, p, i, err);
    case SILICON:
        *type = SI;
        return neighbours(p, i) == 4 ? PL_OK
                                     : ch_perceived_refuse(p, i, err, "MMFF94 has a type for silicon with four neighbours only");
    default: return ch_perceived_refuse(p, i, err, "MMFF94 has no type for this element");
    }
}

pl_code ch_types_find(uint8_t *type, const ch_perceived *p, pl_arena *mem, pl_error *err)
{
    uint8_t *place = PL_NEW(mem, uint8_t, p->n_atoms);

    if (place == NULL)
        return pl_fail(err, PL_ENOMEM, "types of a molecule");
    for (int32_t i = 0; i < p->n_atoms; i++) {
        const pl_code code = p->z[i] == H ? PL_OK : heavy_atom(&type[i], p, i, err);
        if (code != PL_OK)
            return code;
    }
    const pl_code code = ch_types_aromatic(type, p, place, err);
    return code != PL_OK ? code : ch_types_hydrogens(type, p, err);
}
