// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_valence.cpp - how many bonds an atom may have.
//
// Open Babel fills nitrogen up to five bonds: it reads CN(C)(C)C, an ammonium without its charge, as a molecule
// with one hydrogen more.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cstdlib>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/elements.h>
#include <openbabel/mol.h>
#include <openbabel/obiter.h>

using namespace OpenBabel;

namespace worker {

namespace {

const int charge_max = 15; // the minimum range that OpenSMILES requires of readers; stored in one byte
const unsigned mass_max = 999;
const int not_checked = 99;

// The rule of eight, of an atom with so many valence electrons.
int octet(int electrons, int charge) { return std::max(0, std::min(8 - electrons + charge, electrons - charge)); }

// The maximum sum of bond orders.
int valence_max(unsigned z, int charge)
{
    switch (z) {
    case 1: return 1;
    case 6: return octet(4, charge);
    case 7: return octet(5, charge);
    case 8: return octet(6, charge);
    case 9: return octet(7, charge);
    case 14:
    case 15:
    case 16: return 6;
    case 17:
    case 35:
    case 53: return 7;
    default: return not_checked;
    }
}

bool is_beside(OBBond &b, OBAtom &a)
{
    const unsigned z = b.GetNbrAtom(&a)->GetAtomicNum();
    return is_metal(z) || z == 5;
}

// Bonds to metals and boron clusters do not count: organometallics are drawn in many ways.
int bonds_of(OBAtom &a)
{
    int sum = 0;
    FOR_BONDS_OF_ATOM(b, &a)
        sum += is_beside(*b, a) ? 0 : static_cast<int>(b->GetBondOrder());
    return sum;
}

bool has_such_neighbour(OBAtom &a)
{
    FOR_BONDS_OF_ATOM(b, &a)
        if (is_beside(*b, a))
            return true;
    return false;
}

std::string signed_number(int q) { return (q > 0 ? "+" : "") + number(q); }

void check_valence(OBAtom &a)
{
    const unsigned z = a.GetAtomicNum();
    const int q = a.GetFormalCharge(), drawn = bonds_of(a), all = drawn + static_cast<int>(a.GetImplicitHCount());
    if (all <= valence_max(z, q))
        return;
    const bool nitrogen = z == 7 && q == 0;
    if (nitrogen && (is_drawn_uncharged(&a) || (has_such_neighbour(a) && all <= 5))) // O=N(=O)[Cu]
        return;
    const int n = nitrogen && drawn > 3 ? drawn : all; // without the hydrogen that Open Babel adds
    std::string what = n == 1 ? " bond" : " bonds";
    if (q != 0)
        what += " and the charge " + signed_number(q);
    if (nitrogen)
        what += " and no charge; only N+ has four (SMILES: [N+], molfile: M  CHG)";
    fail(CH_VALENCE, "atom " + number(a.GetIdx()) + " (" + OBElements::GetSymbol(z) + ") has " + number(n) + what);
}

} // namespace

void mol_check_atoms(OBMol &mol)
{
    FOR_ATOMS_OF_MOL(a, mol) {
        const unsigned z = a->GetAtomicNum();
        if (z == 0 || z > 118)
            fail(CH_VALENCE, "atom " + number(a->GetIdx()) + " is not an element");
        if (std::abs(a->GetFormalCharge()) > charge_max)
            fail(CH_VALENCE, "atom " + number(a->GetIdx()) + " has the charge " + number(a->GetFormalCharge()));
        if (a->GetIsotope() > mass_max)
            fail(CH_VALENCE, "atom " + number(a->GetIdx()) + " has the mass number " + number(a->GetIsotope()));
        check_valence(*a);
    }
}

void mol_drop_invented_hydrogens(OBMol &mol)
{
    FOR_ATOMS_OF_MOL(a, mol)
        if (a->GetAtomicNum() == 7 && a->GetFormalCharge() == 0 && a->GetImplicitHCount() > 0 && bonds_of(*a) == 3 &&
            has_such_neighbour(*a))
            a->SetImplicitHCount(0);
}

} // namespace worker
