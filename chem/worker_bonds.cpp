// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_bonds.cpp - bonds of a record that has positions only (xyz).
//
// Open Babel 3.1.1 gives such atoms no charges, so zwitterions become radicals, and its bond orders depend on the order of
// the atoms. It only says here which atoms are connected, on a copy whose atoms have an order of their own; orders and charges
// come from chem/bonding.h. Molecules with metals have what the library makes of that copy.
#include "chem/worker.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <vector>

#include <strings.h>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/elements.h>
#include <openbabel/obiter.h>

#include "chem/bonding.h"

using namespace OpenBabel;

namespace worker {

static const int charge_max = 10; // that a comment may state

// ---- the charge that the comment states: charge=-1 or total_charge=-1

static bool is_charge(const std::string &word)
{
    const size_t equals = word.find('=');
    const std::string name = equals == std::string::npos ? "" : word.substr(0, equals);
    return strcasecmp(name.c_str(), "charge") == 0 || strcasecmp(name.c_str(), "total_charge") == 0;
}

static int charge_of(const std::string &word)
{
    const char *from = word.c_str() + word.find('=') + 1;
    char *end;
    const double q = std::strtod(from, &end);
    if (end == from || *end != '\0' || !(std::fabs(q) <= charge_max) || q != std::round(q))
        fail(CH_PARSE, "xyz: '" + word.substr(0, 40) + "' is not a whole charge from -" + number(charge_max) + " to " + number(charge_max));
    return static_cast<int>(q);
}

// false: the comment says nothing of it.
static bool stated_charge(const std::string &text, int *charge)
{
    const size_t from = text.find('\n') + 1, end = std::min(text.find('\n', from), text.size());
    bool found = false;
    for (size_t at = from, stop; at < end; at = stop + 1) {
        stop = std::min(text.find_first_of(" \t\r", at), end);
        const std::string word = text.substr(at, stop - at);
        if (is_charge(word)) {
            const int q = charge_of(word);
            if (found && q != *charge)
                fail(CH_PARSE, "xyz: the comment states two charges");
            *charge = q;
            found = true;
        }
    }
    return found;
}

// ---- an order of atoms that is not that of the file

namespace {
struct Place {
    unsigned z;
    long long far; // the sum of distances to all others, in units of 1e-5 Angstrom: whole numbers have the same sum in any order
    double x[3];
    OBAtom *atom;
};
} // namespace

static bool place_before(const Place &a, const Place &b)
{
    if (a.z != b.z)
        return a.z > b.z;
    if (a.far != b.far)
        return a.far < b.far;
    return std::lexicographical_compare(a.x, a.x + 3, b.x, b.x + 3);
}

static std::vector<Place> own_order(OBMol &mol)
{
    std::vector<Place> all;
    FOR_ATOMS_OF_MOL(a, mol)
        all.push_back({ a->GetAtomicNum(), 0, { a->GetX(), a->GetY(), a->GetZ() }, &*a });
    for (size_t i = 0; i < all.size(); i++)
        for (size_t j = 0; j < i; j++) {
            const double *p = all[i].x, *q = all[j].x;
            const double square = (p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]) + (p[2] - q[2]) * (p[2] - q[2]);
            const long long d = std::llround(1e5 * std::sqrt(square));
            all[i].far += d;
            all[j].far += d;
        }
    std::sort(all.begin(), all.end(), place_before);
    return all;
}

static void connect(OBMol &copy, const std::vector<Place> &atoms)
{
    copy.BeginModify();
    for (const Place &p : atoms) {
        OBAtom *a = copy.NewAtom();
        a->SetAtomicNum(static_cast<int>(p.z));
        a->SetVector(p.x[0], p.x[1], p.x[2]);
    }
    copy.SetDimension(3);
    copy.ConnectTheDots();
    copy.EndModify();
}

// ---- orders and charges

static const char *reason(ch_bonding end)
{
    switch (end) {
    case CH_BONDING_PARITY: return "an odd number of electrons: a radical, or an ion whose charge the file does not state "
                                   "(write charge=N into the comment of the xyz record; charge=0 for a radical)";
    case CH_BONDING_SEARCH: return "too many ways to arrange its double bonds";
    default: return "no bond orders and charges give every atom a closed shell: atoms are missing, or positions are wrong";
    }
}

static ch_bonding assign(OBMol &copy, int charge, bool radical)
{
    std::vector<uint8_t> z, order(copy.NumBonds());
    std::vector<int32_t> bond; // pairs
    std::vector<double> length;
    std::vector<int8_t> formal(copy.NumAtoms());
    long electrons = -charge;
    FOR_ATOMS_OF_MOL(a, copy) {
        z.push_back(static_cast<uint8_t>(a->GetAtomicNum()));
        electrons += a->GetAtomicNum();
    }
    FOR_BONDS_OF_MOL(b, copy) {
        bond.push_back(static_cast<int32_t>(b->GetBeginAtomIdx()) - 1);
        bond.push_back(static_cast<int32_t>(b->GetEndAtomIdx()) - 1);
        length.push_back(b->GetLength());
    }
    ch_skeleton s = {};
    s.n_atoms = static_cast<int32_t>(z.size());
    s.n_bonds = static_cast<int32_t>(order.size());
    s.z = z.data();
    s.bond = reinterpret_cast<const int32_t(*)[2]>(bond.data());
    s.length = length.data();
    s.charge = charge;
    s.unpaired = radical && electrons % 2 != 0;
    const ch_bonding end = ch_bonding_solve(&s, order.data(), formal.data());
    if (end != CH_BONDING_OK)
        return end;
    FOR_BONDS_OF_MOL(b, copy)
        b->SetBondOrder(order[b->GetIdx()]);
    FOR_ATOMS_OF_MOL(a, copy)
        a->SetFormalCharge(formal[a->GetIdx() - 1]);
    return end;
}

static void carry_back(OBMol &mol, const std::vector<Place> &atoms, OBMol &copy)
{
    mol.BeginModify();
    FOR_ATOMS_OF_MOL(a, copy) {
        OBAtom *own = atoms[a->GetIdx() - 1].atom;
        own->SetFormalCharge(a->GetFormalCharge());
        own->SetImplicitHCount(a->GetImplicitHCount());
    }
    FOR_BONDS_OF_MOL(b, copy)
        mol.AddBond(static_cast<int>(atoms[b->GetBeginAtomIdx() - 1].atom->GetIdx()),
                    static_cast<int>(atoms[b->GetEndAtomIdx() - 1].atom->GetIdx()), static_cast<int>(b->GetBondOrder()));
    mol.EndModify();
    mol.SetDimension(3);
}

void bond_atoms(OBMol &mol, const std::string &text)
{
    int charge = 0;
    const bool stated = stated_charge(text, &charge);
    const std::vector<Place> atoms = own_order(mol);
    OBMol copy;
    mol_check_geometry(mol);
    connect(copy, atoms);
    const ch_bonding end = assign(copy, charge, stated);
    if (end == CH_BONDING_MEMORY)
        throw std::bad_alloc();
    if (end == CH_BONDING_ELEMENT && charge != 0)
        fail(CH_VALENCE, "a charge of " + number(charge) + " in a molecule with a metal: the library does not say where it is");
    if (end == CH_BONDING_ELEMENT)
        copy.PerceiveBondOrders();
    else if (end != CH_BONDING_OK)
        fail(end == CH_BONDING_SEARCH ? CH_TOO_LARGE : CH_VALENCE, reason(end));
    carry_back(mol, atoms, copy);
}

} // namespace worker
