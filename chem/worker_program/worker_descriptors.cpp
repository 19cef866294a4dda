// SPDX-License-Identifier: GPL-2.0-only
// One function for each line of chem/common/descriptors.h, of the same name: its value, NAN where there is none.
#include "chem/worker_program/worker.hpp"

#include <cmath>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/obiter.h>
#include <openbabel/ring.h>

using namespace OpenBabel;

namespace worker {

static double mw(OBMol &mol) { return mol.GetMolWt(); }

// These two are computed by the main program from the molecule in the answer (chem/worker/worker_client.c).
static double logp(OBMol &) { return NAN; }

static double tpsa(OBMol &) { return NAN; }

static double hbd(OBMol &mol)
{
    int n = 0;
    FOR_ATOMS_OF_MOL(a, mol)
        n += a->GetAtomicNum() != 6 && a->GetImplicitHCount() + a->ExplicitHydrogenCount() > 0;
    return n;
}

static double hba(OBMol &mol)
{
    int n = 0;
    FOR_ATOMS_OF_MOL(a, mol)
        n += a->GetAtomicNum() == 7 || a->GetAtomicNum() == 8;
    return n;
}

// OBMol::NumRotors without the order of the rotors, whose search takes most of its time. IsRotor knows only the bonds of the smallest rings
// that it finds, which in a cage are not all, and depend on the order of the atoms.
static double rotb(OBMol &mol)
{
    int n = 0;
    FOR_BONDS_OF_MOL(b, mol)
        n += b->IsRotor() && !b->IsInRing();
    return n;
}

static double rings(OBMol &mol) { return static_cast<double>(mol.GetSSSR().size()); }

void mol_describe(OBMol &mol, double descriptor[CH_N_DESCRIPTORS])
{
#define COMPUTE(name, ...) descriptor[CH_D_##name] = name(mol);
    CH_DESCRIPTORS(COMPUTE)
#undef COMPUTE
}

} // namespace worker
