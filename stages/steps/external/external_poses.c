/* SPDX-License-Identifier: Apache-2.0 */
/* Poses: positions that a program wrote, for the atoms of the molecule that it got. Hydrogens that it left out are put where they were
 * beside their neighbours. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/molecule/element.h"
#include "stages/steps/external/external_parts.h"

static const float NEAR2 = 0.01F; /* Angstrom squared: pdbqt has three decimals */

enum { POSES_MAX = 1000, COLUMN = 8 /* of a coordinate in pdbqt */ };

void st_ext_atoms_begin(st_ext_atoms *a)
{
    a->n = 0;
    a->bad = NULL;
}

static bool no_atom(st_ext_atoms *a)
{
    a->bad = a->bad != NULL ? a->bad : "an atom has no finite position";
    return false;
}

static bool grow(st_ext_atoms *a, pl_arena *mem)
{
    const int32_t cap = a->cap > 0 ? 2 * a->cap : 64;
    st_ext_atom *more = a->n < a->cap ? a->atom : PL_NEW(mem, st_ext_atom, cap);

    a->refused = a->refused || more == NULL;
    if (more == NULL)
        return false;
    if (more != a->atom) {
        if (a->n > 0)
            memcpy(more, a->atom, (size_t)a->n * sizeof *more);
        a->atom = more;
        a->cap = cap;
    }
    return true;
}

static bool is_finite(const float xyz[3]) { return isfinite(xyz[0]) && isfinite(xyz[1]) && isfinite(xyz[2]); }

static bool keep(st_ext_atoms *a, const st_ext_atom *one, pl_arena *mem)
{
    if (!is_finite(one->xyz))
        return no_atom(a);
    if (!grow(a, mem))
        return false;
    a->atom[a->n++] = *one;
    return true;
}

bool st_ext_atom_sdf(st_ext_atoms *a, const char *line, pl_arena *mem)
{
    st_ext_atom one = { .type = "" };
    char *end = NULL;

    for (int k = 0; k < 3; k++) {
        one.xyz[k] = strtof(line, &end);
        if (end == line)
            return no_atom(a);
        line = end;
    }
    line += strspn(line, " ");
    (void)snprintf(one.type, sizeof one.type, "%.*s", (int)strcspn(line, " "), line);
    return keep(a, &one, mem);
}

/* Columns of PDB: 31 to 54 have the positions, 78 and 79 the type. */
bool st_ext_atom_pdbqt(st_ext_atoms *a, const char *line, pl_arena *mem)
{
    st_ext_atom one = { .type = "" };
    char number[COLUMN + 1];

    if (strlen(line) < 78)
        return no_atom(a);
    for (int k = 0; k < 3; k++) {
        double x;
        (void)snprintf(number, sizeof number, "%.*s", (int)COLUMN, line + 30 + k * COLUMN);
        if (!pl_parse_real(number + strspn(number, " "), &x))
            return no_atom(a);
        one.xyz[k] = (float)x;
    }
    (void)snprintf(one.type, sizeof one.type, "%.*s", (int)strcspn(line + 77, " \r\n"), line + 77);
    return keep(a, &one, mem);
}

bool st_ext_is_atom_pdbqt(const char *line) { return strncmp(line, "ATOM  ", 6) == 0 || strncmp(line, "HETATM", 6) == 0; }

/* ---- which atom of the molecule is which ---- */

static float apart2(const float a[3], const float b[3])
{
    const float d[3] = { a[0] - b[0], a[1] - b[1], a[2] - b[2] };

    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
}

static int32_t nearest(const ch_mol *mol, const float xyz[3])
{
    int32_t best = 0;

    for (int32_t i = 1; i < mol->n_atoms; i++)
        if (apart2(mol->xyz[i], xyz) < apart2(mol->xyz[best], xyz))
            best = i;
    return mol->n_atoms > 0 && apart2(mol->xyz[best], xyz) < NEAR2 ? best : -1;
}

/* In SDF the atoms keep their order: all of them, or those that are no hydrogens. */
static bool which_in_order(int32_t *which, const ch_mol *mol, const st_ext_atoms *a)
{
    int32_t k = 0;

    for (int32_t i = 0; i < mol->n_atoms; i++)
        if (a->n == mol->n_atoms || mol->z[i] != 1) {
            if (k == a->n || ch_element_number(a->atom[k].type) != mol->z[i])
                return false;
            which[k++] = i;
        }
    return k == a->n;
}

/* In pdbqt they keep the order of the input, whose positions are those of the molecule. */
static bool which_by_input(int32_t *which, const ch_mol *mol, const st_ext_atoms *input, const st_ext_atoms *a)
{
    if (a->n != input->n)
        return false;
    for (int32_t k = 0; k < a->n; k++) {
        which[k] = nearest(mol, input->atom[k].xyz);
        if (which[k] < 0 || strcmp(a->atom[k].type, input->atom[k].type) != 0)
            return false;
    }
    return true;
}

/* ---- hydrogens that were left out ---- */

typedef struct frame {
    double e[3][3]; /* orthonormal */
} frame;

static void minus(double out[3], const float a[3], const float b[3])
{
    for (int k = 0; k < 3; k++)
        out[k] = (double)a[k] - (double)b[k];
}

static double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static bool unit(double a[3])
{
    const double length = sqrt(dot(a, a));

    for (int k = 0; k < 3; k++)
        a[k] /= length > 1e-3 ? length : 1;
    return length > 1e-3;
}

/* Along a to b, and c beside it; NULL or on the line: any direction, always the same. */
static frame frame_of(const float a[3], const float *b, const float *c)
{
    frame f = { { { 1, 0, 0 } } };
    double side[3] = { 0, 0, 0 };

    if (b != NULL)
        minus(f.e[0], b, a);
    (void)unit(f.e[0]);
    for (int tries = c != NULL ? 0 : 1; tries < 3; tries++) {
        if (tries == 0)
            minus(side, c, a);
        else
            for (int k = 0; k < 3; k++)
                side[k] = k == tries;
        const double along = dot(side, f.e[0]);
        for (int k = 0; k < 3; k++)
            side[k] -= along * f.e[0][k];
        if (unit(side))
            break;
    }
    memcpy(f.e[1], side, sizeof side);
    for (int k = 0; k < 3; k++)
        f.e[2][k] = f.e[0][(k + 1) % 3] * side[(k + 2) % 3] - f.e[0][(k + 2) % 3] * side[(k + 1) % 3];
    return f;
}

/* A neighbour of a whose position is known, other than two atoms; -1: there is none. */
static int32_t neighbour(const ch_mol *mol, const bool *known, int32_t a, int32_t but, int32_t nor)
{
    for (int32_t k = 0; k < mol->n_bonds; k++) {
        const int32_t *bond = mol->bond[k];
        const int32_t other = bond[0] == a ? bond[1] : bond[0];
        if ((bond[0] == a || bond[1] == a) && known[other] && other != but && other != nor)
            return other;
    }
    return -1;
}

static const float *at(const ch_mol *mol, int32_t i) { return i >= 0 ? mol->xyz[i] : NULL; }

/* Puts atom h where it was in `mol` relative to its neighbour and two more atoms. False: it has none, or that is beyond all numbers. */
static bool place(ch_mol *out, const ch_mol *mol, const bool *known, int32_t h)
{
    const int32_t a = neighbour(mol, known, h, -1, -1), b = neighbour(mol, known, a, h, -1); /* -1 has none, too */
    int32_t c = neighbour(mol, known, a, h, b);
    frame was, is;
    double d[3];

    if (a < 0)
        return false;
    if (c < 0 && b >= 0)
        c = neighbour(mol, known, b, a, -1);
    was = frame_of(mol->xyz[a], at(mol, b), at(mol, c));
    is = frame_of(out->xyz[a], at(out, b), at(out, c));
    minus(d, mol->xyz[h], mol->xyz[a]);
    for (int k = 0; k < 3; k++)
        out->xyz[h][k] = (float)((double)out->xyz[a][k] + dot(d, was.e[0]) * is.e[0][k] + dot(d, was.e[1]) * is.e[1][k] +
                                 dot(d, was.e[2]) * is.e[2][k]);
    return is_finite(out->xyz[h]);
}

/* ---- the pose ---- */

/* What is needed to make one. */
typedef struct making {
    int32_t *which; /* [a->n] atoms of the molecule */
    bool *known;    /* [n_atoms] the program wrote its position */
    ch_mol pose;
} making;

static bool making_begin(making *k, const ch_mol *mol, const st_ext_atoms *a, pl_arena *mem)
{
    k->which = PL_NEW(mem, int32_t, a->n + 1);
    k->known = PL_NEW(mem, bool, mol->n_atoms + 1);
    k->pose.xyz = pl_arena_get(mem, (size_t)mol->n_atoms + 1, sizeof *k->pose.xyz);
    return k->which != NULL && k->known != NULL && k->pose.xyz != NULL;
}

/* Its positions, in the coordinates of the program. */
static bool positions_put(making *k, const ch_mol *mol, const st_ext_atoms *a)
{
    float(*xyz)[3] = k->pose.xyz;
    bool good = true;

    k->pose = *mol;
    k->pose.xyz = xyz;
    memset(k->known, 0, (size_t)mol->n_atoms * sizeof *k->known);
    for (int32_t i = 0; i < a->n && good; i++) {
        memcpy(xyz[k->which[i]], a->atom[i].xyz, sizeof *xyz);
        good = !k->known[k->which[i]];
        k->known[k->which[i]] = true;
    }
    for (int32_t i = 0; i < mol->n_atoms && good; i++)
        if (!k->known[i])
            good = place(&k->pose, mol, k->known, i);
    return good;
}

/* A pose of this structure of the molecule. False: it is none, as why says. */
static bool fits(making *k, const ch_mol *mol, st_ext_atoms *a, const st_ext_atoms *input, char why[ST_POSE_WHY])
{
    const bool same = input != NULL ? which_by_input(k->which, mol, input, a) : which_in_order(k->which, mol, a);

    if (!same)
        (void)snprintf(why, ST_POSE_WHY, "its atoms are not those of the molecule in their order");
    else if (!positions_put(k, mol, a))
        (void)snprintf(why, ST_POSE_WHY, "hydrogens that it left out cannot be put beside their neighbours");
    else
        return st_ext_pose_check(&k->pose, mol, &a->refused, why);
    return false;
}

/* Conformers may differ in stereo that the record leaves open: a pose has that of one of them. */
static bool pose_make(making *k, const st_ext_item *m, st_ext_atoms *a, const st_ext_atoms *input, char why[ST_POSE_WHY])
{
    char other[ST_POSE_WHY];

    for (int32_t i = 0; i < m->n_mols && !a->refused; i++)
        if (a->n <= m->mol[i]->n_atoms && m->mol[i]->n_atoms == m->mol[0]->n_atoms &&
            fits(k, m->mol[i], a, input, i == 0 ? why : other))
            return true;
    return false;
}

/* What is wrong with the structure before its atoms are compared. */
static const char *fault_of(const st_ext_item *m, const st_ext_atoms *a, const st_ext_atoms *input)
{
    if (a->bad != NULL)
        return a->bad;
    if (m->n_poses == POSES_MAX)
        return "the molecule has 1000 poses already";
    if (input != NULL && input->bad != NULL)
        return "the file that the program got has an atom without a position";
    return a->n > m->mol[0]->n_atoms ? "it has more atoms than the molecule" : NULL;
}

static bool leave_out(st_ext_item *m, const char *why)
{
    if (m->n_left_out++ == 0)
        (void)snprintf(m->left_out, sizeof m->left_out, "%s", why);
    return false;
}

bool st_ext_pose_add(st_ext_item *m, double value, st_ext_atoms *a, const st_ext_atoms *input, pl_arena *mem)
{
    char why[ST_POSE_WHY] = "";
    const char *fault;
    making k;

    if (a->refused || m->n_mols == 0)
        return false;
    fault = fault_of(m, a, input);
    if (fault != NULL)
        return leave_out(m, fault);
    if (m->pose == NULL) {
        m->pose = PL_NEW(mem, ch_mol, POSES_MAX);
        m->pose_value = PL_NEW(mem, double, POSES_MAX);
    }
    a->refused = m->pose == NULL || m->pose_value == NULL || !making_begin(&k, m->mol[0], a, mem);
    if (a->refused)
        return false;
    if (!pose_make(&k, m, a, input, why))
        return a->refused ? false : leave_out(m, why);
    m->pose_value[m->n_poses] = value;
    m->pose[m->n_poses++] = k.pose;
    return true;
}

static bool is_before(double a, double b, st_ext_better better)
{
    if (isnan(a) || isnan(b))
        return !isnan(a) && isnan(b);
    return better == ST_BETTER_LOW ? a < b : a > b;
}

void st_ext_poses_sort(st_ext_item *m, st_ext_better better)
{
    for (int32_t i = 1; i < m->n_poses && better != ST_BETTER_NONE; i++) {
        const ch_mol pose = m->pose[i];
        const double value = m->pose_value[i];
        int32_t k = i;
        for (; k > 0 && is_before(value, m->pose_value[k - 1], better); k--) {
            m->pose[k] = m->pose[k - 1];
            m->pose_value[k] = m->pose_value[k - 1];
        }
        m->pose[k] = pose;
        m->pose_value[k] = value;
    }
}
