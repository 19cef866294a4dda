// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_hybrid.cpp - the hybridisation of atoms, without Open Babel's patterns.
//
// Open Babel matches 40 SMARTS patterns (atomtyp.txt, INTHYB) for every molecule; the last one that matches counts. This
// gives the same answer for the elements of organic molecules in a twentieth of the time, and leaves other molecules to Open Babel.
#include "chem/worker_program/worker.hpp"

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/obiter.h>

using namespace OpenBabel;

namespace worker {

static bool is_organic(unsigned z) { return z == 1 || (z >= 5 && z <= 9) || (z >= 14 && z <= 17) || z == 35 || z == 53; }

// The number of bonds of this order that are not aromatic.
static int bonds_of(OBAtom &a, unsigned order)
{
    int n = 0;
    FOR_BONDS_OF_ATOM(b, &a)
        n += b->GetBondOrder() == order && !b->IsAromatic();
    return n;
}

// A bond that a SMARTS pattern without a bond symbol matches.
static bool is_plain(OBBond &b) { return b.GetBondOrder() == 1 || b.IsAromatic(); }

// Whether `a` has a plain bond to C, N or O with a multiple bond to a third atom.
static bool is_beside_multiple(OBAtom &a, bool triple)
{
    FOR_BONDS_OF_ATOM(b, &a) {
        OBAtom *next = b->GetNbrAtom(&a);
        const unsigned z = next->GetAtomicNum();
        if (!is_plain(*b) || z < 6 || z > 8)
            continue;
        FOR_BONDS_OF_ATOM(c, next)
            if (c->GetNbrAtom(next) != &a && (c->IsAromatic() || c->GetBondOrder() == 2 || (triple && c->GetBondOrder() == 3)))
                return true;
    }
    return false;
}

static bool is_beside_aromatic(OBAtom &a)
{
    FOR_BONDS_OF_ATOM(b, &a)
        if (is_plain(*b) && b->GetNbrAtom(&a)->IsAromatic())
            return true;
    return false;
}

// One of two oxygens with one bond each on a carbon, by plain bonds.
static bool is_of_carboxylate(OBAtom &a)
{
    if (a.GetExplicitDegree() != 1)
        return false;
    FOR_BONDS_OF_ATOM(b, &a) {
        OBAtom *carbon = b->GetNbrAtom(&a);
        if (carbon->GetAtomicNum() != 6 || !is_plain(*b))
            return false;
        FOR_BONDS_OF_ATOM(c, carbon) {
            OBAtom *other = c->GetNbrAtom(carbon);
            if (other != &a && other->GetAtomicNum() == 8 && other->GetExplicitDegree() == 1 && is_plain(*c))
                return true;
        }
    }
    return false;
}

static int by_degree(unsigned degree)
{
    if (degree <= 2)
        return 1;
    return degree <= 4 ? static_cast<int>(degree) - 1 : static_cast<int>(degree);
}

static int of_carbon(OBAtom &a)
{
    if (a.IsAromatic())
        return 2;
    const int doubles = bonds_of(a, 2);
    if (doubles > 1 || bonds_of(a, 3) > 0)
        return 1;
    return doubles == 1 ? 2 : 3;
}

static int of_nitrogen(OBAtom &a)
{
    const unsigned degree = a.GetExplicitDegree();
    if (a.IsAromatic())
        return 2;
    const int doubles = bonds_of(a, 2);
    if (bonds_of(a, 3) > 0 || (degree == 2 && doubles == 2))
        return 1;
    return doubles > 0 || is_beside_multiple(a, true) || (degree <= 3 && is_beside_aromatic(a)) ? 2 : 3;
}

static int of_oxygen(OBAtom &a)
{
    if (a.IsAromatic())
        return 2;
    if (bonds_of(a, 3) > 0)
        return 1;
    return bonds_of(a, 2) > 0 || is_beside_multiple(a, false) || is_of_carboxylate(a) ? 2 : 3;
}

static int of_phosphorus(OBAtom &a)
{
    const unsigned degree = a.GetExplicitDegree();
    if (degree == 5 || a.GetTotalValence() == 5)
        return 5;
    return degree == 1 && bonds_of(a, 2) > 0 ? 2 : 3;
}

static int of_sulphur(OBAtom &a)
{
    const unsigned degree = a.GetExplicitDegree();
    if (a.IsAromatic())
        return 2;
    if (degree == 6)
        return 6;
    return degree == 1 && bonds_of(a, 2) > 0 ? 2 : 3;
}

static int of_atom(OBAtom &a)
{
    const unsigned degree = a.GetExplicitDegree();
    switch (a.GetAtomicNum()) {
    case 5: return degree == 4 ? 3 : 2;
    case 6: return of_carbon(a);
    case 7: return of_nitrogen(a);
    case 8: return of_oxygen(a);
    case 14: return 3;
    case 15: return of_phosphorus(a);
    case 16: return of_sulphur(a);
    default: return by_degree(degree);
    }
}

void mol_hybridize(OBMol &mol)
{
    if (mol.HasHybridizationPerceived())
        return;
    FOR_ATOMS_OF_MOL(a, mol)
        if (!is_organic(a->GetAtomicNum()))
            return;
    FOR_ATOMS_OF_MOL(a, mol) // aromaticity is perceived on the way
        a->SetHyb(of_atom(*a));
    mol.SetHybridizationPerceived();
}

} // namespace worker
