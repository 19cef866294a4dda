/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the output of a program of the stage `external`; the first says of which format and for how many molecules. Each
 * molecule has a finite value or the reason why not, and only poses that are molecules. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "stages/steps/external/external_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ITEMS = 3, ATOMS = 4 };

/* Methanol without two of its hydrogens. */
static bool molecule_make(ch_mol *mol, pl_arena *mem)
{
    static const uint8_t z[ATOMS] = { 6, 8, 1, 1 };
    static const float xyz[ATOMS][3] = { { 0, 0, 0 }, { 1.4F, 0, 0 }, { 1.7F, 0.9F, 0 }, { -0.4F, 1, 0 } };
    static const int32_t bond[ATOMS - 1][2] = { { 0, 1 }, { 0, 3 }, { 1, 2 } };

    if (ch_mol_alloc(mol, ATOMS, ATOMS - 1, mem, NULL) != PL_OK)
        return false;
    memcpy(mol->z, z, sizeof z);
    memcpy(mol->xyz, xyz, sizeof xyz);
    memcpy(mol->bond, bond, sizeof bond);
    memset(mol->order, 1, ATOMS - 1);
    return true;
}

static void input_make(st_ext_atoms *input, const ch_mol *mol, pl_arena *mem)
{
    char line[96];

    for (int i = 0; i < ATOMS - 1; i++) {
        (void)snprintf(line, sizeof line, "ATOM  %5d  X   UNL     1    %8.3f%8.3f%8.3f  0.00  0.00    +0.000 %s", i + 1,
                       (double)mol->xyz[i][0], (double)mol->xyz[i][1], (double)mol->xyz[i][2], i == 0 ? "C" : "OA");
        if (!st_ext_atom_pdbqt(input, line, mem))
            abort();
    }
}

static void look(const st_ext_item *m)
{
    char why[ST_POSE_WHY];
    bool refused;

    if (m->code == NULL ? !isfinite(m->value) : m->code[0] == '\0' || m->message[0] == '\0')
        abort();
    for (int32_t k = 0; k < m->n_poses; k++)
        if (m->pose[k].n_atoms != ATOMS || ch_mol_check(&m->pose[k], NULL) != PL_OK ||
            !st_ext_pose_check(&m->pose[k], m->mol[0], &refused, why))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int format = size > 0 ? data[0] % 5 : 0, n = size > 0 && data[0] >= 128 && format < ST_OUT_REGEX ? ITEMS : 1;
    const st_external_conf conf = {
        .property = "a", .value = format == ST_OUT_PDBQT ? "a" : "a.b", .output = format, .poses = true
    };
    pl_arena *mem = pl_arena_new(0);
    st_ext_atoms input = { .n = 0 };
    st_ext_item item[ITEMS] = { { .id = 1 }, { .id = 2 }, { .id = 30 } };
    ch_mol mol;
    const ch_mol *one[] = { &mol };
    char *text = malloc(size + 1);
    regex_t re;

    if (mem == NULL || text == NULL || !molecule_make(&mol, mem) || regcomp(&re, "a[^0-9]*([^ ]+)", REG_EXTENDED) != 0)
        abort();
    input_make(&input, &mol, mem);
    for (int i = 0; i < n; i++) {
        item[i].mol = one;
        item[i].n_mols = 1;
    }
    if (size > 0)
        memcpy(text, data + 1, size - 1);
    text[size > 0 ? size - 1 : 0] = '\0';
    if (st_ext_read(item, n, &conf, &(st_ext_given){ &re, format == ST_OUT_PDBQT ? &input : NULL, mem }, text,
                    size > 0 ? size - 1 : 0, NULL) != PL_OK)
        abort();
    for (int i = 0; i < n; i++)
        look(&item[i]);
    regfree(&re);
    free(text);
    pl_arena_free(mem);
    return 0;
}
