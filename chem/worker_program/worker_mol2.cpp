// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_mol2.cpp - charges and hydrogens of a MOL2 record, of which Open Babel reads only some.
//
// MOL2 states no formal charges, except in UNITY_ATOM_ATTR, which Open Babel does not read. It sets the charges of a few atom types, and adds
// no hydrogens to a record that has one: a carboxylate with all hydrogens became a radical, and a methyl group beside NH3 a bare carbon.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>
#include <vector>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/elements.h>
#include <openbabel/obfunctions.h>
#include <openbabel/obiter.h>

using namespace OpenBabel;

namespace worker {

namespace {
struct Written {
    std::map<unsigned, int> charge; // of UNITY_ATOM_ATTR, by the number of the atom, from 1
    double partial = 0;             // the sum of all partial charges
    bool has_partial = false;
};
} // namespace

static void read_atom(Written &w, std::map<std::string, unsigned> &ids, const std::vector<std::string> &word)
{
    const unsigned n = static_cast<unsigned>(ids.size()) + 1;
    if (word.size() < 6)
        return;
    ids[word[0]] = n;
    const double q = word.size() > 8 ? std::strtod(word[8].c_str(), nullptr) : 0;
    w.partial += q;
    w.has_partial = w.has_partial || q != 0;
}

static Written written(const std::string &text)
{
    Written w;
    std::istringstream in(text);
    std::map<std::string, unsigned> ids; // the numbers in the file may be any
    std::string section, of;
    for (std::string s; std::getline(in, s);) {
        const std::vector<std::string> word = words_in(s);
        if (s[0] == '@')
            section = word[0];
        else if (section == "@<TRIPOS>ATOM")
            read_atom(w, ids, word);
        else if (section == "@<TRIPOS>UNITY_ATOM_ATTR" && word.size() == 2 && word[0] == "charge" && ids.count(of) > 0)
            w.charge[ids[of]] = static_cast<int>(std::max(-99L, std::min(99L, std::atol(word[1].c_str()))));
        else if (section == "@<TRIPOS>UNITY_ATOM_ATTR" && word.size() == 2 && ids.count(word[0]) > 0)
            of = word[0];
    }
    return w;
}

// ---- what the bonds of an atom say of its charge

static const int open_shell = 9;

// By the sum of the bond orders, 0 to 7, of an atom that has all its hydrogens.
static int closed_charge(unsigned z, unsigned bonds)
{
    static const int x = open_shell;
    static const std::map<unsigned, std::vector<int>> charges = {
        { 1, { x, 0, x, x, x, x, x, x } },    { 5, { x, x, x, 0, -1, x, x, x } },   { 6, { x, x, x, x, 0, x, x, x } },
        { 7, { x, x, -1, 0, 1, 0, x, x } },   { 8, { x, -1, 0, 1, x, x, x, x } },   { 9, { -1, 0, x, x, x, x, x, x } },
        { 14, { x, x, x, x, 0, -1, -2, x } }, { 15, { x, x, -1, 0, 1, 0, -1, x } }, { 16, { x, -1, 0, 1, 0, 1, 0, x } },
        { 17, { -1, 0, 1, 0, x, 0, x, 0 } },  { 33, { x, x, -1, 0, 1, 0, -1, x } }, { 34, { x, -1, 0, 1, 0, 1, 0, x } },
        { 35, { -1, 0, 1, 0, x, 0, x, 0 } },  { 53, { -1, 0, 1, 0, x, 0, x, 0 } },
    };
    const auto found = charges.find(z);
    return found == charges.end() || bonds > 7 ? x : found->second[bonds];
}

// Metals and boron clusters are drawn in many ways.
static bool is_left(OBAtom &a)
{
    bool left = is_metal(a.GetAtomicNum()) || a.GetAtomicNum() == 0;
    FOR_NBORS_OF_ATOM(b, &a)
        left = left || is_metal(b->GetAtomicNum()) || (b->GetAtomicNum() == 5 && a.GetAtomicNum() <= 5);
    return left;
}

// The carbon of an isonitrile or of carbon monoxide.
static bool is_carbide(OBAtom &a)
{
    bool end = a.GetAtomicNum() == 6 && a.GetExplicitDegree() == 1;
    FOR_BONDS_OF_ATOM(b, &a)
        end = end && b->GetBondOrder() == 3 && (b->GetNbrAtom(&a)->GetAtomicNum() == 7 || b->GetNbrAtom(&a)->GetAtomicNum() == 8);
    return end;
}

static unsigned lacking(OBAtom &a)
{
    const unsigned bonds = a.GetExplicitValence();
    return a.GetAtomicNum() == 6 && bonds < 4 && !is_carbide(a) && !is_left(a) ? 4 - bonds : 0;
}

// ---- records with hydrogens, and without

// Only hydrogens that can bind to others are in the record, as docking programs want it.
static bool has_polar_only(OBMol &mol)
{
    bool bare = true;
    FOR_ATOMS_OF_MOL(a, mol)
        bare = bare && (a->GetAtomicNum() != 6 || a->ExplicitHydrogenCount() == 0);
    return bare;
}

static void complete_atom(OBAtom &a, bool polar_only)
{
    const unsigned bonds = a.GetExplicitValence(), missing = lacking(a);
    if (missing > 0 && polar_only) {
        a.SetImplicitHCount(missing);
        a.SetFormalCharge(0);
        return;
    }
    const int charge = is_carbide(a) ? -1 : closed_charge(a.GetAtomicNum(), bonds);
    if (charge == open_shell)
        fail(CH_VALENCE,
             "atom " + number(a.GetIdx()) + " (" + OBElements::GetSymbol(a.GetAtomicNum()) + ") of a MOL2 record has " +
                 number(bonds) + (bonds == 1 ? " bond" : " bonds") +
                 " and no charge: hydrogens are missing, or it is a radical or an ion, of which MOL2 says nothing; use sdf");
    a.SetFormalCharge(charge);
}

static void compare_charges(OBMol &mol, const Written &w)
{
    const int sum = sum_of_charges(mol);
    if (w.has_partial && std::fabs(w.partial) < 100 && std::fabs(w.partial - std::round(w.partial)) < 0.2 &&
        std::lround(w.partial) != sum)
        fail(CH_VALENCE, "the partial charges of a MOL2 record add up to " + number(std::lround(w.partial)) +
                             ", its bonds and hydrogens to a charge of " + number(sum));
}

static void complete_all(OBMol &mol, const Written &w)
{
    const bool polar_only = has_polar_only(mol);
    FOR_ATOMS_OF_MOL(a, mol) {
        const auto stated = w.charge.find(a->GetIdx());
        if (stated != w.charge.end())
            a->SetFormalCharge(stated->second);
        else if (!is_left(*a))
            complete_atom(*a, polar_only);
    }
    compare_charges(mol, w);
}

static void charge_atom(OBAtom &a, int charge)
{
    a.SetFormalCharge(charge);
    a.SetImplicitHCount(0);
    OBAtomAssignTypicalImplicitHydrogens(&a);
}

// A nitro group, an azide or an isonitrile: four bonds to other atoms give nitrogen a charge, and one at the end of it the opposite.
static void charge_group(OBAtom &a)
{
    OBAtom *end = nullptr;
    FOR_BONDS_OF_ATOM(b, &a) {
        OBAtom *other = b->GetNbrAtom(&a);
        const unsigned z = other->GetAtomicNum(), order = b->GetBondOrder();
        if (other->GetExplicitDegree() == 1 && other->GetFormalCharge() == 0 &&
            ((z == 8 && order == 1) || (z == 7 && order == 2) || is_carbide(*other)))
            end = other;
    }
    charge_atom(a, 1);
    if (end != nullptr)
        charge_atom(*end, -1);
}

static void charge_without_hydrogens(OBMol &mol, const Written &w)
{
    for (const auto &q : w.charge)
        if (q.first <= mol.NumAtoms())
            charge_atom(*mol.GetAtom(static_cast<int>(q.first)), q.second);
    FOR_ATOMS_OF_MOL(a, mol)
        if (a->GetAtomicNum() == 7 && a->GetFormalCharge() == 0 && a->GetExplicitValence() == 4 && !is_left(*a))
            charge_group(*a);
}

void mol2_complete(OBMol &mol, const std::string &text)
{
    const Written w = written(text);
    bool hydrogens = false;
    FOR_ATOMS_OF_MOL(a, mol)
        hydrogens = hydrogens || (a->GetAtomicNum() == 1 && a->GetExplicitDegree() > 0);
    if (hydrogens)
        complete_all(mol, w);
    else
        charge_without_hydrogens(mol, w);
    mol.SetTotalCharge(sum_of_charges(mol));
    mol.SetAromaticPerceived(false);
    mol.SetChiralityPerceived(false);
}

} // namespace worker
