/* chem/worker_program/salts.h - counter-ions and solvents that are removed from records.
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Counter-ions, acids and bases of salts, and crystal solvents, compared by
 * canonical SMILES before the largest part is kept, so that a drug is kept rather than a
 * larger counter-ion (pamoate, tosylate). Our own list, from general chemistry. */
#ifndef CH_SALTS_H
#define CH_SALTS_H

// clang-format off
static const char *const ch_salts[] = {
    /* metals and small cations */
    "[Li+]", "[Na+]", "[K+]", "[Rb+]", "[Cs+]", "[Mg+2]", "[Ca+2]", "[Sr+2]", "[Ba+2]", "[Al+3]",
    "[Zn+2]", "[Ag+]", "[Fe+2]", "[Fe+3]", "[Bi+3]", "[Na]", "[K]", "[Li]", "[H+]", "[OH3+]", "[NH4+]", "N",
    /* halides and mineral acids */
    "F", "Cl", "Br", "I", "[F-]", "[Cl-]", "[Br-]", "[I-]", "[OH-]", "OS(=O)(=O)O", "OS(=O)(=O)[O-]",
    "[O-]S(=O)(=O)[O-]", "O[N+](=O)[O-]", "[O-][N+](=O)[O-]", "OP(=O)(O)O", "OP(=O)(O)[O-]",
    "OP(=O)([O-])[O-]", "[O-]P(=O)([O-])[O-]", "OCl(=O)(=O)=O", "[O-]Cl(=O)(=O)=O", "OC(=O)O",
    "OC(=O)[O-]", "[O-]C(=O)[O-]", "F[B-](F)(F)F", "F[P-](F)(F)(F)(F)F", "[S-]C#N", "SC#N",
    /* carboxylic acids and carboxylates */
    "OC=O", "[O-]C=O", "CC(=O)O", "CC(=O)[O-]", "OC(=O)C(F)(F)F", "[O-]C(=O)C(F)(F)F", "CCC(=O)O",
    "CCC(=O)[O-]", "OC(=O)C(=O)O", "OC(=O)C(=O)[O-]", "[O-]C(=O)C(=O)[O-]", "OC(=O)CC(=O)O",
    "OC(=O)CC(=O)[O-]", "OC(=O)CCC(=O)O", "OC(=O)CCC(=O)[O-]", "[O-]C(=O)CCC(=O)[O-]",
    "OC(=O)/C=C/C(=O)O", "OC(=O)/C=C\\C(=O)O", "OC(=O)C=CC(=O)O", "OC(=O)/C=C/C(=O)[O-]",
    "OC(=O)/C=C\\C(=O)[O-]", "OC(=O)C=CC(=O)[O-]", "[O-]C(=O)/C=C/C(=O)[O-]", "[O-]C(=O)/C=C\\C(=O)[O-]",
    "OC(=O)CC(O)C(=O)O", "CC(O)C(=O)O", "CC(O)C(=O)[O-]", "OC(=O)C(O)C(O)C(=O)O",
    "O[C@H]([C@@H](O)C(=O)O)C(=O)O", "O[C@@H]([C@H](O)C(=O)O)C(=O)O", "OC(=O)C(O)C(O)C(=O)[O-]",
    "O[C@H]([C@@H](O)C(=O)O)C(=O)[O-]", "OC(=O)CC(O)(C(=O)O)CC(=O)O", "OC(=O)CC(O)(C(=O)O)CC(=O)[O-]",
    "[O-]C(=O)CC(O)(C(=O)[O-])CC(=O)[O-]", "OC(=O)c1ccccc1", "[O-]C(=O)c1ccccc1",
    /* pamoic (embonic) acid */
    "OC(=O)c1cc2ccccc2c(Cc2c(O)c(cc3ccccc23)C(=O)O)c1O",
    "OC(=O)c1cc2ccccc2c(Cc2c(O)c(cc3ccccc23)C(=O)[O-])c1O",
    "[O-]C(=O)c1cc2ccccc2c(Cc2c(O)c(cc3ccccc23)C(=O)[O-])c1O",
    /* sulfonic acids and sulfonates */
    "CS(=O)(=O)O", "CS(=O)(=O)[O-]", "CCS(=O)(=O)O", "CCS(=O)(=O)[O-]", "OS(=O)(=O)c1ccccc1",
    "[O-]S(=O)(=O)c1ccccc1", "Cc1ccc(cc1)S(=O)(=O)O", "Cc1ccc(cc1)S(=O)(=O)[O-]",
    "OS(=O)(=O)C(F)(F)F", "[O-]S(=O)(=O)C(F)(F)F", "OS(=O)(=O)c1cccc2cccc(c12)S(=O)(=O)O",
    "OS(=O)(=O)c1cccc2c1cccc2S(=O)(=O)O", "COS(=O)(=O)[O-]", "COS(=O)(=O)O",
    /* organic bases of salts */
    "CCN(CC)CC", "CC[NH+](CC)CC", "NCCO", "[NH3+]CCO", "OCCNCCO", "OCC[NH2+]CCO", "OCCN(CCO)CCO",
    "OCC[NH+](CCO)CCO", "NC(CO)(CO)CO", "[NH3+]C(CO)(CO)CO", "C[N+](C)(C)CCO",
    "CNC[C@H](O)[C@@H](O)[C@H](O)[C@H](O)CO", "C[NH2+]C[C@H](O)[C@@H](O)[C@H](O)[C@H](O)CO",
    /* solvents */
    "O", "CO", "CCO", "CC(C)O", "CCCO", "CC(C)=O", "CC#N", "ClCCl", "ClC(Cl)Cl", "CS(C)=O", "CN(C)C=O",
    "CCOC(C)=O", "C1CCOC1", "C1COCCO1", "CCOCC", "Cc1ccccc1", "c1ccccc1", "c1ccncc1", "C1CCCCC1",
    "CCCCCC",
};
// clang-format on

#endif
