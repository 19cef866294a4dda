// SPDX-License-Identifier: Apache-2.0
// The hybridisation that molsieve-chem sets is that of Open Babel's patterns: test_hybrid FILE.smi
#include <cstdio>
#include <fstream>
#include <string>

#include <openbabel/atom.h>
#include <openbabel/obconversion.h>
#include <openbabel/oberror.h>

#include "chem/worker_program/worker.hpp"

using namespace OpenBabel;

// Elements, charges and bonds that libraries of drugs do not have.
static const char *const odd[] = { "C[P-](C)(C)C",
                                   "CP",
                                   "C=P",
                                   "CPC=C",
                                   "CP(=O)=O",
                                   "CS",
                                   "S=C=S",
                                   "CS(=O)(=O)[O-]",
                                   "CSO",
                                   "O=P(O)(O)O",
                                   "P(F)(F)(F)(F)F",
                                   "FS(F)(F)(F)(F)F",
                                   "C=C=C",
                                   "N=[N+]=[N-]",
                                   "[C-]#[O+]",
                                   "B(O)(O)c1ccccc1",
                                   "[B-](F)(F)(F)F",
                                   "O=C([O-])c1ccccc1",
                                   "[O-]C(=O)[O-]",
                                   "c1cc[o+]cc1",
                                   "p1ccccc1",
                                   "C[Si](C)(C)C",
                                   "b1ccccc1",
                                   "CN1BN(C)BN(C)B1",
                                   "Cl(=O)(=O)(=O)O",
                                   "I(=O)(=O)c1ccccc1",
                                   "[H][H]",
                                   "[H+]",
                                   "[O-][n+]1ccccc1",
                                   "CN=C=O",
                                   "C[N+]#[C-]",
                                   "O=[Si]=O",
                                   "CS(=O)(=O)N",
                                   "C=S",
                                   "OO",
                                   "[O][O]",
                                   "O=p1ccccc1",
                                   "c1cc[s+]cc1",
                                   "CS(C)(=O)=NC",
                                   "C[S+](C)C",
                                   "C[O+](C)C",
                                   "c1c[nH+]c[nH]1",
                                   "[C-]1=CC=CC1",
                                   "[CH3]",
                                   "[NH2-]",
                                   "C[N+]#N",
                                   "CN(=O)=O",
                                   "FB(F)F",
                                   "P#P",
                                   "CC#P",
                                   "[O-]C#N",
                                   "S=S=O",
                                   "[2H]C([2H])[2H]" };

static int known, unknown, wrong;

static void compare(OBMol mol, const std::string &smiles)
{
    OBMol own = mol;
    mol.SetHybridizationPerceived(false);
    own.SetHybridizationPerceived(false);
    worker::mol_hybridize(own);
    unknown += !own.HasHybridizationPerceived();
    for (unsigned i = 1; own.HasHybridizationPerceived() && i <= mol.NumAtoms(); i++, known++)
        if (own.GetAtom(static_cast<int>(i))->GetHyb() != mol.GetAtom(static_cast<int>(i))->GetHyb()) {
            std::fprintf(stderr, "%s: atom %u is %u, not %u\n", smiles.c_str(), i, own.GetAtom(static_cast<int>(i))->GetHyb(),
                         mol.GetAtom(static_cast<int>(i))->GetHyb());
            wrong++;
        }
}

static void try_one(const std::string &smiles)
{
    OBConversion conv;
    OBMol mol;
    if (!conv.SetInFormat("smi") || !conv.ReadString(&mol, smiles))
        return;
    compare(mol, smiles);
    mol.AddHydrogens();
    compare(mol, smiles);
}

int main(int argc, char **argv)
{
    std::ifstream file(argc > 1 ? argv[1] : "");
    std::string line;

    obErrorLog.StopLogging();
    for (const char *smiles : odd)
        try_one(smiles);
    while (std::getline(file, line))
        try_one(line);
    try_one("C[Mg]Br");
    std::printf("%d atoms, %d wrong, %d molecules left to the library\n", known, wrong, unknown);
    return known < 10000 || wrong > 0 || unknown != 2; // with and without its hydrogens
}
