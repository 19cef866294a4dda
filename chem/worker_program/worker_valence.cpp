// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_valence.cpp - how many bonds an atom may have.
//
// Open Babel fills nitrogen up to five bonds: it reads CN(C)(C)C, an ammonium without its charge, as a molecule
// with one hydrogen more. It does the same with sulfur and phosphorus, and reads halogens with two bonds as radicals.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

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

bool is_halogen(unsigned z) { return z == 17 || z == 35 || z == 53; }

bool is_chalcogen(unsigned z) { return z == 16 || z == 34 || z == 52; }

bool is_to_hydrogen(OBBond &b, OBAtom &a) { return b.GetNbrAtom(&a)->GetAtomicNum() == 1; }

bool has_only_carbons(OBAtom &a)
{
    FOR_BONDS_OF_ATOM(b, &a)
        if (!is_to_hydrogen(*b, a) && (b->GetBondOrder() != 1 || b->GetNbrAtom(&a)->GetAtomicNum() != 6))
            return false;
    return true;
}

// As in ClO2, a radical that is stable.
bool has_only_oxides(OBAtom &a)
{
    FOR_BONDS_OF_ATOM(b, &a)
        if (!is_to_hydrogen(*b, a) && (b->GetBondOrder() != 2 || b->GetNbrAtom(&a)->GetAtomicNum() != 8))
            return false;
    return true;
}

// An onium ion without its charge: such bonds would leave a radical, or need a hydrogen. Not phosphorus with four bonds: MoleculeNet's HIV
// has phosphonium ions as [PH]. Hydrogens do not count, whether they are atoms of the record or not.
bool is_bare_onium(OBAtom &a)
{
    const unsigned z = a.GetAtomicNum();
    const int bonds = bonds_of(a) - static_cast<int>(a.ExplicitHydrogenCount());
    if (a.GetFormalCharge() != 0 || has_such_neighbour(a))
        return false;
    if (is_halogen(z))
        return bonds > 0 && bonds % 2 == 0 && !has_only_oxides(a);
    return is_chalcogen(z) && a.GetHvyDegree() == 3 && has_only_carbons(a);
}

std::string signed_number(int q) { return (q > 0 ? "+" : "") + number(q); }

void check_valence(OBAtom &a)
{
    const unsigned z = a.GetAtomicNum();
    const int q = a.GetFormalCharge(), drawn = bonds_of(a), all = drawn + static_cast<int>(a.GetImplicitHCount());
    if (is_bare_onium(a))
        fail(CH_VALENCE, "atom " + number(a.GetIdx()) + " (" + OBElements::GetSymbol(z) + ") has " + number(drawn) +
                             " bonds and no charge, as only its ion has (SMILES: [" + OBElements::GetSymbol(z) +
                             "+], molfile: M  CHG)");
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

void mol_check_dummies(OBMol &mol)
{
    FOR_ATOMS_OF_MOL(a, mol)
        if (a->GetAtomicNum() == 0 && a->GetExplicitDegree() > 0)
            fail(CH_VALENCE, "atom " + number(a->GetIdx()) + " is not an element");
}

void mol_check_atoms(OBMol &mol)
{
    FOR_BONDS_OF_MOL(b, mol)
        if (b->GetBondOrder() > 3)
            fail(CH_VALENCE, "atom " + number(b->GetBeginAtomIdx()) + " has a bond of order " + number(b->GetBondOrder()) +
                                 "; orders up to 3 are known here");
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

// Where the atoms of a SMILES stand.
static std::vector<size_t> places_of(const std::string &smiles)
{
    std::vector<size_t> all;
    for (size_t i = 0; i < smiles.size() && !std::isspace(static_cast<unsigned char>(smiles[i])); i++) {
        if (smiles[i] == '[' || std::isalpha(static_cast<unsigned char>(smiles[i])))
            all.push_back(i);
        if (smiles[i] == '[')
            i = std::min(smiles.find(']', i), smiles.size() - 1);
        else if (smiles.compare(i, 2, "Cl") == 0 || smiles.compare(i, 2, "Br") == 0)
            i++;
    }
    return all;
}

// Whether an atom with so many bonds, without that to a metal, is complete.
static bool is_closed(unsigned z, int bonds)
{
    switch (z) {
    case 7: return bonds == 3;
    case 15:
    case 33: return bonds == 3 || bonds == 5;
    case 16:
    case 34:
    case 52: return bonds == 2 || bonds == 4 || bonds == 6;
    default: return false;
    }
}

void mol_drop_invented_hydrogens(OBMol &mol, const std::string &text, const std::string &format)
{
    const std::vector<size_t> at = is_smiles(format) ? places_of(text) : std::vector<size_t>();
    const bool known = at.size() == mol.NumAtoms();
    FOR_ATOMS_OF_MOL(a, mol) {
        const bool bracketed = is_smiles(format) && (!known || text[at[a->GetIdx() - 1]] == '[');
        const bool own = a->GetAtomicNum() != 7 && bracketed;
        if (!own && a->GetFormalCharge() == 0 && a->GetImplicitHCount() > 0 && is_closed(a->GetAtomicNum(), bonds_of(*a)) &&
            has_such_neighbour(*a))
            a->SetImplicitHCount(0);
    }
}

// Hydrogens that would be taken away above if they were not written: in [PH](C)(C)(C)[Pd].
static int own_hydrogens(OBAtom &a)
{
    const int drawn = static_cast<int>(a.ExplicitHydrogenCount());
    const bool own = a.GetFormalCharge() == 0 && has_such_neighbour(a) && is_closed(a.GetAtomicNum(), bonds_of(a) - drawn);
    return own ? static_cast<int>(a.GetImplicitHCount()) + drawn : 0;
}

bool has_own_hydrogens(OBMol &mol)
{
    FOR_ATOMS_OF_MOL(a, mol)
        if (own_hydrogens(*a) > 0)
            return true;
    return false;
}

std::string own_hydrogens_written(const std::string &smiles, OBMol &mol, const std::vector<unsigned> &order)
{
    const std::vector<size_t> at = places_of(smiles);
    std::string out = smiles;
    for (size_t k = at.size(); k-- > 0 && at.size() == order.size();) {
        OBAtom *a = mol.GetAtom(static_cast<int>(order[k]));
        const int n = own_hydrogens(*a);
        const std::string symbol = OBElements::GetSymbol(a->GetAtomicNum());
        if (n > 0 && smiles[at[k]] != '[')
            out.replace(at[k], symbol.size(), "[" + symbol + "H" + (n > 1 ? number(n) : "") + "]");
    }
    return out;
}

} // namespace worker
