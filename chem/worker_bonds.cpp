// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_bonds.cpp - bonds of a record that has positions only (xyz).
//
// Open Babel 3.1.1 gives such atoms no charges, so zwitterions become radicals, and its bond orders depend on the order of
// the atoms. Here the atoms get an order of their own, and chem/bonding.h finds bonds, orders and charges. Molecules with metals
// have what the library makes of a copy in that order.
#include "chem/worker.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>
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

// ---- orders and charges

namespace {
struct Bonds {
    std::vector<uint8_t> z, order;
    std::vector<int32_t> pairs;
    std::vector<double> xyz;
    std::vector<int8_t> formal;
    ch_skeleton s = {};
    int32_t where[2] = { 0, 0 }; // what does not fit
};
} // namespace

static ch_bonding find_bonds(Bonds &b, const std::vector<Place> &atoms, int charge, bool stated)
{
    long electrons = -charge;
    for (const Place &p : atoms) {
        b.z.push_back(static_cast<uint8_t>(p.z));
        b.xyz.insert(b.xyz.end(), p.x, p.x + 3);
        electrons += p.z;
    }
    b.pairs.resize(2 * CH_BONDING_PER_ATOM * atoms.size());
    b.formal.resize(atoms.size());
    b.s.n_atoms = static_cast<int32_t>(atoms.size());
    b.s.z = b.z.data();
    b.s.xyz = reinterpret_cast<const double(*)[3]>(b.xyz.data());
    b.s.bond = reinterpret_cast<const int32_t(*)[2]>(b.pairs.data());
    b.s.charge = charge;
    b.s.unpaired = stated && electrons % 2 != 0; // who states the charge means it
    ch_bonding end = ch_bonding_connect(b.s.n_atoms, b.s.z, b.s.xyz, reinterpret_cast<int32_t(*)[2]>(b.pairs.data()), &b.s.n_bonds);
    b.order.resize(static_cast<size_t>(b.s.n_bonds));
    if (end == CH_BONDING_OK)
        end = ch_bonding_solve(&b.s, b.order.data(), b.formal.data());
    return end == CH_BONDING_OK ? ch_bonding_check(&b.s, b.order.data(), b.formal.data(), b.where) : end;
}

static std::string name_of(const std::vector<Place> &atoms, int32_t i)
{
    OBAtom *a = atoms[static_cast<size_t>(i)].atom;
    return std::string(OBElements::GetSymbol(a->GetAtomicNum())) + number(a->GetIdx());
}

[[noreturn]] static void refuse(ch_bonding end, const Bonds &b, const std::vector<Place> &atoms)
{
    const std::string cause = ": hydrogens are missing, or positions are wrong";
    if (end == CH_BONDING_PARITY)
        fail(CH_VALENCE, "an odd number of electrons: a radical, or an ion whose charge the file does not state "
                         "(write charge=N into the comment of the xyz record; charge=0 for a radical)");
    if (end == CH_BONDING_LONG)
        fail(CH_VALENCE, "a multiple bond between " + name_of(atoms, b.where[0]) + " and " + name_of(atoms, b.where[1]) +
                             ", which are as far apart as a single bond" + cause);
    if (end == CH_BONDING_BENT)
        fail(CH_VALENCE, name_of(atoms, b.where[0]) + " has two neighbours, which are not in line with it" + cause);
    if (end == CH_BONDING_SEARCH)
        fail(CH_TOO_LARGE, "too many ways to arrange the double bonds");
    fail(CH_VALENCE, "no bond orders and charges give every atom a closed shell" + cause);
}

// ---- back to the order of the file

static void add_bonds(OBMol &mol, const std::vector<Place> &atoms, const Bonds &b)
{
    mol.BeginModify();
    for (size_t i = 0; i < atoms.size(); i++)
        atoms[i].atom->SetFormalCharge(b.formal[i]);
    for (size_t i = 0; i < b.order.size(); i++)
        mol.AddBond(static_cast<int>(atoms[static_cast<size_t>(b.pairs[2 * i])].atom->GetIdx()),
                    static_cast<int>(atoms[static_cast<size_t>(b.pairs[2 * i + 1])].atom->GetIdx()), b.order[i]);
    mol.EndModify();
}

// What the library makes of a copy in our order.
static void add_library_bonds(OBMol &mol, const std::vector<Place> &atoms)
{
    OBMol copy;
    copy.BeginModify();
    for (const Place &p : atoms) {
        OBAtom *a = copy.NewAtom();
        a->SetAtomicNum(static_cast<int>(p.z));
        a->SetVector(p.x[0], p.x[1], p.x[2]);
    }
    copy.SetDimension(3);
    copy.ConnectTheDots();
    copy.PerceiveBondOrders();
    copy.EndModify();
    mol.BeginModify();
    FOR_ATOMS_OF_MOL(a, copy)
        atoms[a->GetIdx() - 1].atom->SetFormalCharge(a->GetFormalCharge());
    FOR_BONDS_OF_MOL(b, copy)
        mol.AddBond(static_cast<int>(atoms[b->GetBeginAtomIdx() - 1].atom->GetIdx()),
                    static_cast<int>(atoms[b->GetEndAtomIdx() - 1].atom->GetIdx()), static_cast<int>(b->GetBondOrder()));
    mol.EndModify();
}

void bond_atoms(OBMol &mol, const std::string &text)
{
    int charge = 0;
    const bool stated = stated_charge(text, &charge);
    const std::vector<Place> atoms = own_order(mol);
    Bonds b;
    mol_check_geometry(mol);
    const ch_bonding end = find_bonds(b, atoms, charge, stated);
    if (end == CH_BONDING_MEMORY)
        throw std::bad_alloc();
    if (end == CH_BONDING_ELEMENT && charge != 0)
        fail(CH_VALENCE, "a charge of " + number(charge) + " in a molecule with a metal: it is not known where it is");
    if (end == CH_BONDING_OK)
        add_bonds(mol, atoms, b);
    else if (end == CH_BONDING_ELEMENT)
        add_library_bonds(mol, atoms);
    else
        refuse(end, b, atoms);
    mol.SetDimension(3);
}

} // namespace worker
