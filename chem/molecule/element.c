/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/molecule/element.h"

#include <strings.h>

static const char *const symbols[CH_ELEMENTS + 1] = {
    "X",  "H",  "He", "Li", "Be", "B",  "C",  "N",  "O",  "F",  "Ne", "Na", "Mg", "Al", "Si", "P",  "S",  "Cl", "Ar", "K",
    "Ca", "Sc", "Ti", "V",  "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga", "Ge", "As", "Se", "Br", "Kr", "Rb", "Sr", "Y",
    "Zr", "Nb", "Mo", "Tc", "Ru", "Rh", "Pd", "Ag", "Cd", "In", "Sn", "Sb", "Te", "I",  "Xe", "Cs", "Ba", "La", "Ce", "Pr",
    "Nd", "Pm", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu", "Hf", "Ta", "W",  "Re", "Os", "Ir", "Pt", "Au",
    "Hg", "Tl", "Pb", "Bi", "Po", "At", "Rn", "Fr", "Ra", "Ac", "Th", "Pa", "U",  "Np", "Pu", "Am", "Cm", "Bk", "Cf", "Es",
    "Fm", "Md", "No", "Lr", "Rf", "Db", "Sg", "Bh", "Hs", "Mt", "Ds", "Rg", "Cn", "Nh", "Fl", "Mc", "Lv", "Ts", "Og",
};

const char *ch_element_symbol(int z) { return symbols[z >= 1 && z <= CH_ELEMENTS ? z : 0]; }

int ch_element_number(const char *symbol)
{
    if (strcasecmp(symbol, "D") == 0 || strcasecmp(symbol, "T") == 0)
        return 1;
    for (int z = 1; z <= CH_ELEMENTS; z++)
        if (strcasecmp(symbol, symbols[z]) == 0)
            return z;
    return 0;
}
