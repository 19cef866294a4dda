/* SPDX-License-Identifier: Apache-2.0 */
/* Contributions of atoms to log P and molar refractivity: Wildman and Crippen, J. Chem. Inf. Comput. Sci. 1999, 39, 868. Each function
 * asks the definitions of the paper's table in its order; the first that fits is the type of the atom. */
#include "chem/features/crippen.h"

/* clang-format off */
enum type {
    NO_TYPE, C1, C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13, C14, C15, C16, C17, C18, C19, C20, C21, C22, C23, C24, C25, C26, C27, CS,
    H1, H2, H3, H4, HS, N1, N2, N3, N4, N5, N6, N7, N8, N9, N10, N11, N12, N13, N14, NS,
    O1, O2, O3, O4, O5, O6, O7, O8, O9, O10, O11, O12, OS, F, CL, BR, I, HAL, P, S1, S2, S3, ME1, ME2
};
/* clang-format on */

/* log P in 1e-5, molar refractivity in 1e-4 cm3/mol. */
static const ch_crippen value[] = {
    [C1] = { 14410, 25030 },   [C2] = { 0, 24330 },       [C3] = { -20350, 27530 },  [C4] = { -20510, 27310 },
    [C5] = { -27830, 50070 },  [C6] = { 15510, 35130 },   [C7] = { 170, 38880 },     [C8] = { 8452, 24640 },
    [C9] = { -14440, 24120 },  [C10] = { -5160, 24880 },  [C11] = { 11930, 25820 },  [C12] = { -9670, 25760 },
    [C13] = { -54430, 40410 }, [C14] = { 0, 32570 },      [C15] = { 24500, 35640 },  [C16] = { 19800, 31800 },
    [C17] = { 0, 31040 },      [C18] = { 15810, 33500 },  [C19] = { 29550, 43460 },  [C20] = { 27130, 39040 },
    [C21] = { 13600, 35090 },  [C22] = { 46190, 40670 },  [C23] = { 54370, 38530 },  [C24] = { 18930, 26730 },
    [C25] = { -81860, 31350 }, [C26] = { 26400, 43050 },  [C27] = { 21480, 26930 },  [CS] = { 8129, 32430 },
    [H1] = { 12300, 10570 },   [H2] = { -26770, 13950 },  [H3] = { 21420, 9627 },    [H4] = { 29800, 18050 },
    [HS] = { 11250, 11120 },   [N1] = { -101900, 22620 }, [N2] = { -70960, 21730 },  [N3] = { -102700, 28270 },
    [N4] = { -51880, 30000 },  [N5] = { 8387, 17570 },    [N6] = { 18360, 24280 },   [N7] = { -31870, 18390 },
    [N8] = { -44580, 28190 },  [N9] = { 1508, 17250 },    [N10] = { -195000, 0 },    [N11] = { -32390, 22020 },
    [N12] = { -111900, 0 },    [N13] = { -33960, 2604 },  [N14] = { 28870, 33590 },  [NS] = { -48060, 21340 },
    [O1] = { 15520, 10800 },   [O2] = { -28930, 8238 },   [O3] = { -6840, 10850 },   [O4] = { -41950, 11820 },
    [O5] = { 3350, 33670 },    [O6] = { -33390, 7774 },   [O7] = { -118900, 0 },     [O8] = { 17880, 31350 },
    [O9] = { -15260, 0 },      [O10] = { 11290, 2215 },   [O11] = { 48330, 3890 },   [O12] = { -132600, 0 },
    [OS] = { -11880, 6865 },   [F] = { 42020, 11080 },    [CL] = { 68950, 58530 },   [BR] = { 84560, 89270 },
    [I] = { 88570, 140200 },   [HAL] = { -299600, 0 },    [P] = { 86120, 69200 },    [S1] = { 64820, 75910 },
    [S2] = { -240, 73650 },    [S3] = { 62370, 66910 },   [ME1] = { -38080, 57540 }, [ME2] = { -250, 0 },
};

/* The heavy neighbours of an atom, counted. Aliphatic ones are those that are not aromatic. A single bond here is one that is neither double,
 * triple nor aromatic. */
typedef struct around {
    int32_t single, single_a;                      /* single bonds to: any; aromatic                          */
    int32_t aliphatic, carbon, hetero, rare;       /* ... aliphatic; C; N O P S or a halogen; none of these   */
    int32_t aromatic_carbon;                       /* ... aromatic C                                          */
    int32_t twice, twice_carbon, twice_other;      /* double bonds to: any; aliphatic C; aliphatic others     */
    int32_t twice_aromatic, twice_aromatic_carbon; /* ... aromatic; aromatic C                                */
    int32_t thrice;                                /* triple bonds to aliphatic atoms                         */
    int32_t ring;                                  /* aromatic bonds                                          */
} around;

static bool is_halogen(int z) { return z == 9 || z == 17 || z == 35 || z == 53; }
static bool is_hetero(int z) { return z == 7 || z == 8 || z == 15 || z == 16 || is_halogen(z); }

static void add_single(around *a, int z, bool aromatic)
{
    a->single++;
    a->single_a += aromatic;
    a->aromatic_carbon += aromatic && z == 6;
    if (aromatic)
        return;
    a->aliphatic++;
    a->carbon += z == 6;
    a->hetero += is_hetero(z);
    a->rare += z != 6 && !is_hetero(z);
}

static around look_around(const ch_shape *s, int32_t i)
{
    around a = { 0 };

    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++) {
        const int z = s->z[s->link[k].to];
        const bool aromatic = s->aromatic[s->link[k].to];
        if (s->link[k].type == CH_PAIR_SINGLE)
            add_single(&a, z, aromatic);
        if (s->link[k].type == CH_PAIR_DOUBLE) {
            a.twice++;
            a.twice_carbon += !aromatic && z == 6;
            a.twice_other += !aromatic && z != 6;
            a.twice_aromatic += aromatic;
            a.twice_aromatic_carbon += aromatic && z == 6;
        }
        a.thrice += s->link[k].type == CH_PAIR_TRIPLE && !aromatic;
        a.ring += s->link[k].type == CH_PAIR_AROMATIC;
    }
    return a;
}

/* The first neighbour with this kind of bond, element (0: any) and aromaticity; -1: none. */
static int32_t find(const ch_shape *s, int32_t i, int type, int z, bool aromatic)
{
    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++) {
        const int32_t j = s->link[k].to;
        if (s->link[k].type == type && (z == 0 || s->z[j] == z) && s->aromatic[j] == aromatic)
            return j;
    }
    return -1;
}

static bool has(const ch_shape *s, int32_t i, int type, int z, bool aromatic) { return find(s, i, type, z, aromatic) >= 0; }

/* Whether a neighbour of this kind, of any aromaticity, exists. */
static bool has_any(const ch_shape *s, int32_t i, int type, int z) { return has(s, i, type, z, false) || has(s, i, type, z, true); }

/* ---- carbon ---- */

/* sp3 carbons without aromatic neighbours. */
static int aliphatic_carbon(const around *a, int32_t h, int32_t x)
{
    if (h == 4 || (h == 3 && a->carbon >= 1) || (h == 2 && a->carbon >= 2))
        return C1;
    if ((h == 1 && a->carbon >= 3) || a->carbon >= 4)
        return C2;
    if ((h == 3 && a->hetero >= 1) || (h == 2 && x == 4 && a->hetero >= 1 && a->aliphatic >= 2))
        return C3;
    if (x == 4 && a->hetero >= 1 && ((h == 1 && a->aliphatic >= 3) || (h == 0 && a->aliphatic >= 4)))
        return C4;
    return NO_TYPE;
}

static int unsaturated_carbon(const around *a, int32_t h, int32_t x)
{
    if (a->twice_other >= 1)
        return C5;
    if ((a->twice_carbon >= 1 && h <= 2 && a->aliphatic >= 2 - h) || a->twice_carbon >= 2)
        return C6;
    return x == 2 && a->thrice >= 1 ? C7 : NO_TYPE;
}

static int carbon(const around *a, int32_t h, int32_t x)
{
    int type = aliphatic_carbon(a, h, x);

    if (type == NO_TYPE)
        type = unsaturated_carbon(a, h, x);
    if (type != NO_TYPE)
        return type;
    if (h == 3 && a->single_a >= 1)
        return a->aromatic_carbon >= 1 ? C8 : C9;
    if (h <= 2 && x == 4 && a->single_a >= 1) {
        static const int of_hydrogens[] = { C12, C11, C10 };
        return of_hydrogens[h];
    }
    if (a->twice_aromatic_carbon >= 1 || (a->twice_carbon >= 1 && a->single_a >= 1 &&
                                          (h == 1 || a->aliphatic >= 1 || (a->single_a >= 2 && a->aromatic_carbon >= 1))))
        return C26;
    return x == 4 && a->rare >= 1 ? C27 : CS;
}

/* The substituent of an aromatic carbon with two aromatic bonds. */
static int substituted_carbon(const ch_shape *s, int32_t i, const around *a)
{
    static const struct {
        int z, type;
    } by[] = { { 6, C21 }, { 7, C22 }, { 8, C23 }, { 16, C24 } };

    if (a->ring >= 3)
        return C19;
    if (a->single_a >= 1)
        return C20;
    for (int k = 0; k < 4; k++)
        if (has(s, i, CH_PAIR_SINGLE, by[k].z, false))
            return by[k].type;
    if (has(s, i, CH_PAIR_DOUBLE, 6, false) || has(s, i, CH_PAIR_DOUBLE, 7, false) || has(s, i, CH_PAIR_DOUBLE, 8, false))
        return C25;
    return CS;
}

static int aromatic_carbon(const ch_shape *s, int32_t i, const around *a)
{
    static const struct {
        int z, type;
    } halogen[] = { { 9, C14 }, { 17, C15 }, { 35, C16 }, { 53, C17 } };

    /* Of the aliphatic neighbours, phosphorus is rare here. */
    if (s->hydrogens[i] == 0 && (a->rare >= 1 || has(s, i, CH_PAIR_SINGLE, 15, false)))
        return C13;
    for (int k = 0; k < 4; k++)
        if (has_any(s, i, CH_PAIR_SINGLE, halogen[k].z))
            return halogen[k].type;
    if (s->hydrogens[i] == 1)
        return C18;
    return a->ring >= 2 ? substituted_carbon(s, i, a) : CS;
}

/* ---- nitrogen ---- */

static int neutral_nitrogen(const around *a, int32_t h)
{
    if (h == 2 && a->single >= 1)
        return a->aliphatic >= 1 ? N1 : N3;
    if (h == 1 && a->single >= 2)
        return a->aliphatic >= 2 ? N2 : N4;
    if (h == 1 && a->twice >= 1)
        return N5;
    if (a->twice >= 1 && a->single >= 1)
        return N6;
    if (a->aliphatic >= 3)
        return N7;
    if (a->single_a >= 3 || (a->single_a >= 1 && a->aliphatic >= 1 && a->single >= 3))
        return N8;
    return a->thrice >= 1 ? N9 : NS;
}

/* [N+]=[N-] and another =N: the middle of three. */
static bool is_middle_of_azide(const ch_shape *s, int32_t i, const around *a)
{
    bool negative = false;

    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++)
        negative |= s->link[k].type == CH_PAIR_DOUBLE && s->z[s->link[k].to] == 7 && s->charge[s->link[k].to] < 0;
    return negative && a->twice >= 2 && has(s, i, CH_PAIR_DOUBLE, 7, false);
}

static int charged_nitrogen(const ch_shape *s, int32_t i, const around *a)
{
    const int32_t h = s->hydrogens[i];
    const int q = s->charge[i];

    if (q < 0)
        return q >= -3 ? N14 : NS;
    if (q > 3)
        return NS;
    if (h >= 1 && h <= 3)
        return N10;
    if (h == 0 && (a->aliphatic >= 4 || (a->twice > a->twice_aromatic && a->aliphatic >= 1 && a->single >= 2)))
        return N13;
    if (h == 0 && a->twice >= 2 && has_any(s, i, CH_PAIR_DOUBLE, 6) && has_any(s, i, CH_PAIR_DOUBLE, 7))
        return N13;
    return a->thrice >= 1 || is_middle_of_azide(s, i, a) ? N14 : NS;
}

static int nitrogen(const ch_shape *s, int32_t i, const around *a)
{
    if (s->aromatic[i] && s->charge[i] >= 0 && s->charge[i] <= 3)
        return s->charge[i] == 0 ? N11 : N12;
    if (s->aromatic[i])
        return NS;
    return s->charge[i] == 0 ? neutral_nitrogen(a, s->hydrogens[i]) : charged_nitrogen(s, i, a);
}

/* ---- oxygen ---- */

/* The oxygen of C=O by what else the carbon c has. */
static int carbonyl_oxygen(const ch_shape *s, int32_t c)
{
    const around a = look_around(s, c);
    const int32_t h = s->hydrogens[c];

    if (h == 1 && (a.carbon >= 1 || has(s, c, CH_PAIR_SINGLE, 7, false) || has(s, c, CH_PAIR_SINGLE, 8, false)))
        return O9;
    if ((a.carbon >= 1 && a.aliphatic >= 2) || h == 2)
        return O9;
    if (ch_shape_connections(s, c) == 2 && a.twice >= 2 && a.twice_other >= 2 && has(s, c, CH_PAIR_DOUBLE, 8, false))
        return O9;
    if (h == 1 && a.aromatic_carbon >= 1)
        return O10;
    if (a.single_a >= 1 && a.single >= 2 && (a.carbon >= 1 || a.aromatic_carbon >= 1))
        return O10;
    return a.single - a.carbon - a.aromatic_carbon >= 2 ? O11 : OS;
}

static bool is_acid(const ch_shape *s, int32_t i)
{
    const int32_t c = find(s, i, CH_PAIR_SINGLE, 6, false);

    return s->charge[i] == -1 && c >= 0 && has(s, c, CH_PAIR_DOUBLE, 8, false);
}

static bool is_oxide_of_sulphur(const ch_shape *s, int32_t i)
{
    for (int32_t k = s->row[i]; s->charge[i] == 0 && k < s->row[i + 1]; k++)
        if (s->link[k].type == CH_PAIR_DOUBLE && s->z[s->link[k].to] == 16 && s->charge[s->link[k].to] == 0)
            return true;
    return false;
}

/* A negative oxygen at one atom, or a double bond. */
static int terminal_oxygen(const ch_shape *s, int32_t i, const around *a)
{
    const bool alone = ch_shape_connections(s, i) == 1 && s->charge[i] < 0 && s->charge[i] >= -3;

    if (has_any(s, i, CH_PAIR_DOUBLE, 7) || has_any(s, i, CH_PAIR_DOUBLE, 8) || (alone && has_any(s, i, CH_PAIR_SINGLE, 7)))
        return O5;
    if ((alone && s->charge[i] >= -2 && has_any(s, i, CH_PAIR_SINGLE, 16)) || is_oxide_of_sulphur(s, i))
        return O6;
    if (is_acid(s, i))
        return O12;
    if (alone && a->single >= 1)
        return O7;
    if (a->twice_aromatic_carbon >= 1)
        return O8;
    return a->twice_carbon >= 1 ? carbonyl_oxygen(s, find(s, i, CH_PAIR_DOUBLE, 6, false)) : OS;
}

static int oxygen(const ch_shape *s, int32_t i, const around *a)
{
    if (s->aromatic[i])
        return O1;
    if (s->hydrogens[i] == 1 || s->hydrogens[i] == 2)
        return O2;
    if (a->aliphatic >= 2)
        return O3;
    if (a->single_a >= 1 && a->single >= 2)
        return O4;
    return terminal_oxygen(s, i, a);
}

/* ---- others ---- */

static int sulphur(const ch_shape *s, int32_t i)
{
    const int q = s->charge[i];

    if (s->aromatic[i])
        return S3;
    if (q != 0)
        return q >= -4 && q <= 6 && q != 4 ? S2 : S1;
    if (has(s, i, CH_PAIR_DOUBLE, 7, false) || has(s, i, CH_PAIR_DOUBLE, 8, false) || has(s, i, CH_PAIR_DOUBLE, 15, false) ||
        has(s, i, CH_PAIR_DOUBLE, 16, false))
        return S2;
    return S1;
}

static int halogen(int z, int q)
{
    if (q == 0 && z == 9)
        return F;
    if (q == 0 && z == 17)
        return CL;
    if (q == 0)
        return z == 35 ? BR : I;
    return q == -1 || (z == 53 && q > 0 && q <= 3) ? HAL : NO_TYPE;
}

/* Main groups 1, 2, 13 to 16 from the third period on, and the d block. */
static int metal(int z, int q)
{
    static const uint8_t main_group[] = { 3,  4,  5,  11, 12, 13, 14, 19, 20, 31, 32, 33, 34,
                                          37, 38, 49, 50, 51, 52, 55, 56, 81, 82, 83, 84 };

    if (q == 1 && (z == 3 || z == 11 || z == 19 || z == 37 || z == 55))
        return HAL;
    for (size_t k = 0; k < sizeof main_group; k++)
        if (main_group[k] == z)
            return ME1;
    return (z >= 21 && z <= 30) || (z >= 39 && z <= 48) || (z >= 72 && z <= 80) ? ME2 : NO_TYPE;
}

ch_crippen ch_crippen_of(const ch_shape *s, int32_t i)
{
    const around a = look_around(s, i);
    int type;

    switch (s->z[i]) {
    case 6: type = s->aromatic[i] ? aromatic_carbon(s, i, &a) : carbon(&a, s->hydrogens[i], ch_shape_connections(s, i)); break;
    case 7: type = nitrogen(s, i, &a); break;
    case 8: type = oxygen(s, i, &a); break;
    case 9:
    case 17:
    case 35:
    case 53: type = halogen(s->z[i], s->charge[i]); break;
    case 15: type = P; break;
    case 16: type = sulphur(s, i); break;
    default: type = metal(s->z[i], s->charge[i]); break;
    }
    return value[type];
}

/* ---- hydrogen ---- */

/* Carbon with a double bond to C, N, O or S. */
static bool is_oxo(const ch_shape *s, int32_t i)
{
    return has_any(s, i, CH_PAIR_DOUBLE, 6) || has_any(s, i, CH_PAIR_DOUBLE, 7) || has(s, i, CH_PAIR_DOUBLE, 8, false) ||
           has(s, i, CH_PAIR_DOUBLE, 16, false);
}

/* A hydrogen of OH by the other neighbours of its oxygen. Nitrogen and sulphur here are of any kind, as in the paper's text. */
static int hydrogen_of_oxygen(const ch_shape *s, int32_t o)
{
    int type = s->hydrogens[o] >= 2 ? H2 : HS;

    for (int32_t k = s->row[o]; k < s->row[o + 1]; k++) {
        const int32_t j = s->link[k].to;
        const int z = s->z[j];
        if (s->link[k].type != CH_PAIR_SINGLE)
            continue;
        if ((z == 6 && (s->aromatic[j] || ch_shape_connections(s, j) == 4)) || (z != 6 && z != 7 && z != 8 && z != 16))
            return H2;
        if (z == 7)
            type = type == H2 ? H2 : H3;
        else if ((z != 6 && !s->aromatic[j]) || (z == 6 && is_oxo(s, j)))
            type = type == HS ? H4 : type;
    }
    return type;
}

ch_crippen ch_crippen_hydrogen(const ch_shape *s, int32_t i)
{
    switch (s->z[i]) {
    case 6: return value[H1];
    case 7: return value[H3];
    case 8: return value[s->aromatic[i] ? HS : hydrogen_of_oxygen(s, i)];
    default: return value[H2];
    }
}

ch_crippen ch_crippen_loose(bool bonded) { return value[bonded ? H1 : HS]; }
