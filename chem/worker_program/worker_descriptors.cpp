// SPDX-License-Identifier: GPL-2.0-only
// One function for each line of chem/common/descriptors.h, of the same name: its value, NAN where there is none.
#include "chem/worker_program/worker.hpp"

#include <cmath>

#include <openbabel/atom.h>
#include <openbabel/descriptor.h>
#include <openbabel/obiter.h>
#include <openbabel/ring.h>

using namespace OpenBabel;

namespace worker {

static double predict(OBMol &mol, const char *name)
{
    OBDescriptor *d = OBDescriptor::FindType(name);
    return d == nullptr ? NAN : d->Predict(&mol);
}

static double mw(OBMol &mol) { return mol.GetMolWt(); }

static double logp(OBMol &mol) { return predict(mol, "logP"); }

static double tpsa(OBMol &mol) { return predict(mol, "TPSA"); }

static double hbd(OBMol &mol) { return predict(mol, "HBD"); }

static double hba(OBMol &mol)
{
    int n = 0;
    FOR_ATOMS_OF_MOL(a, mol)
        n += a->GetAtomicNum() == 7 || a->GetAtomicNum() == 8;
    return n;
}

static double rotb(OBMol &mol) { return mol.NumRotors(); }

static double rings(OBMol &mol) { return static_cast<double>(mol.GetSSSR().size()); }

void mol_describe(OBMol &mol, double descriptor[CH_N_DESCRIPTORS])
{
#define COMPUTE(name, ...) descriptor[CH_D_##name] = name(mol);
    CH_DESCRIPTORS(COMPUTE)
#undef COMPUTE
}

} // namespace worker
