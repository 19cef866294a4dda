/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a molecular graph with stereo: structures that pass every check again, or a refusal with a reason, within a limit of work. */
#include <math.h>
#include <stdlib.h>

#include "chem/structures/structure.h"
#include "mmff_graph.h"
#include "mmff_suite.h"

enum { HEAD = 4, MOST_BYTES = 160, MOST_STEREO = 8, MOST_WORK = 400000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct made_stereo {
    ch_centre centre[MOST_STEREO];
    ch_double_bond bond[MOST_STEREO];
    ch_axis axis;
    ch_stereo all;
} made_stereo;

/* The neighbours of an atom; more than four are left out. */
static int neighbours(const ch_mol *mol, int32_t atom, int32_t out[4])
{
    int n = 0;

    for (int32_t b = 0; b < mol->n_bonds; b++)
        for (int e = 0; e < 2; e++)
            if (mol->bond[b][e] == atom && n < 4)
                out[n++] = mol->bond[b][1 - e];
    return n;
}

static int32_t neighbour_but(const ch_mol *mol, int32_t atom, int32_t but)
{
    int32_t at[4];

    for (int n = neighbours(mol, atom, at), k = 0; k < n; k++)
        if (at[k] != but)
            return at[k];
    return -1;
}

/* Signs of centres and sides of double bonds, one bit of `bits` each; `wrong` spoils an index. */
static void define(made_stereo *s, const ch_mol *mol, uint8_t bits, bool wrong)
{
    *s = (made_stereo){ .all = { .centres = s->centre, .double_bonds = s->bond, .axes = &s->axis } };
    for (int32_t i = 0; bits != 0 && i < mol->n_atoms && s->all.n_centres < MOST_STEREO; i++) {
        ch_centre *c = &s->centre[s->all.n_centres];
        const int n = neighbours(mol, i, c->neighbour);
        if (n < 3 || (n == 3 && mol->z[i] != 16 && mol->z[i] != 15))
            continue;
        if (n == 3)
            c->neighbour[3] = i;
        c->atom = i;
        c->sign = bits >> s->all.n_centres & 1 ? 1 : -1;
        s->all.n_centres++;
    }
    for (int32_t b = 0; bits != 0 && b < mol->n_bonds && s->all.n_double_bonds < MOST_STEREO; b++) {
        const int32_t i = mol->bond[b][0], j = mol->bond[b][1], p = neighbour_but(mol, i, j), q = neighbour_but(mol, j, i);
        if (mol->order[b] == CH_DOUBLE && p >= 0 && q >= 0)
            s->bond[s->all.n_double_bonds++] = (ch_double_bond){ p, i, j, q, (bits >> s->all.n_double_bonds & 1) != 0 };
    }
    for (int32_t b = 0; bits > 200 && b < mol->n_bonds && s->all.n_axes == 0; b++) { /* also where there can be none */
        int32_t at[2][4];
        const int32_t i = mol->bond[b][0], j = mol->bond[b][1];
        if (neighbours(mol, i, at[0]) != 3 || neighbours(mol, j, at[1]) != 3)
            continue;
        const int p = at[0][0] == j ? 1 : 0, q = at[0][2] == j ? 1 : 2, u = at[1][0] == i ? 1 : 0, v = at[1][2] == i ? 1 : 2;
        s->axis = (ch_axis){ { at[0][p], at[0][q], at[1][u], wrong ? (int32_t)bits - 4 : at[1][v] } };
        s->all.n_axes = 1;
    }
    if (wrong && s->all.n_centres > 0)
        s->centre[0].neighbour[bits & 3] = (int32_t)bits - 4;
    if (wrong && s->all.n_double_bonds > 0)
        s->bond[0].d = (int32_t)bits - 4;
}

static void check(const ch_structures *built, const ch_mol *mol, const ch_stereo *stereo, const ch_terms *terms, pl_arena *mem)
{
    ch_cycles cycles;

    if (built->n < 1 || ch_cycles_make(&cycles, mol, mem, NULL) != PL_OK)
        abort();
    for (int32_t k = 0; k < built->n; k++) {
        const ch_structure *s = &built->all[k];
        if (!isfinite(s->energy) || s->attempts < 1 || (k > 0 && !(s->energy >= s[-1].energy)) ||
            ch_check((const float(*)[3])s->xyz, &cycles, terms, stereo).fault != CH_NO_FAULT)
            abort();
    }
}

static void build(const ch_mol *mol, const uint8_t *head, const ch_mmff *mmff, pl_arena *mem)
{
    const ch_mmff_options field = { .mmff94s = (head[0] & 1) != 0, .cumulenes = (head[0] & 1) != 0 };
    const ch_structure_options how = {
        .seed = head[2], .name = head[3], .count = 1 + (head[0] >> 1) % 3, .attempts = 1 + (head[0] >> 3) % 4, .max_work = MOST_WORK
    };
    made_stereo stereo;
    ch_structures built;
    ch_terms terms;
    pl_error err = { 0 };
    pl_arena *scratch = pl_arena_new(0);

    if (scratch == NULL)
        abort();
    define(&stereo, mol, head[1], head[0] > 250);
    if (ch_terms_make(&terms, mol, mmff, &field, mem, &err) == PL_OK) {
        const pl_code code = ch_structure_build(&built, mol, &stereo.all, &terms, &how, mem, scratch, &err);
        if (code == PL_OK)
            check(&built, mol, &stereo.all, &terms, scratch);
        else if (code != PL_EINPUT || err.text[0] == '\0')
            abort();
    } else if (err.text[0] == '\0') {
        abort();
    }
    pl_arena_free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static ch_mmff mmff;
    static pl_arena *tables;
    pl_arena *mem;

    if (size < HEAD || size > HEAD + MOST_BYTES)
        return 0;
    if (tables == NULL) {
        tables = pl_arena_new(1 << 18);
        if (tables == NULL || ch_mmff_read(&mmff, suite_tables(), tables, NULL) != PL_OK)
            abort();
    }
    mem = pl_arena_new(0);
    if (mem == NULL)
        abort();
    const ch_mol mol = graph_molecule(data + HEAD, size - HEAD, mem);
    if (mol.n_atoms > 0)
        build(&mol, data, &mmff, mem);
    pl_arena_free(mem);
    return 0;
}
