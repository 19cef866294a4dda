// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_neutral.cpp - gives acids and bases their neutral form.
//
// The rule, our own (docs/SCIENCE.md): an anion of O, S, Se, N, or C beside C=O or C#N, that lacks one proton gets it; a
// cation of N, O, S, Se or P that has one too many loses it. An atom beside a metal or an atom of opposite charge stays as
// it is (nitro, N-oxide, azide, ylide). Charges that no proton explains - quaternary nitrogen, metals, halides, borates -
// stay, and as many acids (bases) keep their charge as balance them: the absolute net charge never grows.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <vector>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/graphsym.h>
#include <openbabel/obiter.h>
#include <openbabel/stereo/stereo.h>

using namespace OpenBabel;

namespace worker {

namespace {
enum class Kind { other, acid, base };

struct Site {
    OBAtom *atom;
    int weakness;   // the strongest acids and bases keep their charge
    unsigned order; // does not depend on the order in the file
};
} // namespace

int usual_valence(unsigned z)
{
    switch (z) {
    case 6: return 4;
    case 7:
    case 15: return 3;
    case 8:
    case 16:
    case 34: return 2;
    default: return 0;
    }
}

// A labelled hydrogen (isotope) is deliberate and stays.
bool has_proton(OBAtom &a) { return a.GetImplicitHCount() > 0 || a.ExplicitHydrogenCount(true) > 0; }

static bool has_bond(OBAtom &a, unsigned order, unsigned z)
{
    FOR_BONDS_OF_ATOM(b, &a)
        if (b->GetBondOrder() == order && b->GetNbrAtom(&a)->GetAtomicNum() == z)
            return true;
    return false;
}

// Carbon only beside C=O or C#N: not carbanions of organometallics or cyclopentadienyl.
static bool is_made_of_acids(OBAtom &a)
{
    bool beside = a.GetAtomicNum() != 6;
    if (a.GetAtomicNum() == 15 || (!beside && a.IsAromatic()))
        return false;
    FOR_NBORS_OF_ATOM(n, &a)
        beside = beside || has_bond(*n, 2, 8) || has_bond(*n, 3, 7);
    return beside;
}

static Kind kind_of(OBAtom &a)
{
    const int q = a.GetFormalCharge(), usual = usual_valence(a.GetAtomicNum()), valence = static_cast<int>(a.GetTotalValence());
    if (usual == 0)
        return Kind::other;
    FOR_NBORS_OF_ATOM(n, &a)
        if (n->GetFormalCharge() * q < 0 || is_metal(n->GetAtomicNum()))
            return Kind::other;
    if (q == -1)
        return valence == usual - 1 && is_made_of_acids(a) ? Kind::acid : Kind::other;
    return q == 1 && valence == usual + 1 && has_proton(a) ? Kind::base : Kind::other;
}

// Order of strength: sulfonic and phosphoric acids, carboxylic acids, others; bases that are not aromatic before those like pyridine.
static int weakness_of(OBAtom &a)
{
    int min = 2;
    if (a.GetFormalCharge() > 0)
        return a.IsAromatic();
    FOR_NBORS_OF_ATOM(n, &a)
        if (a.GetAtomicNum() > 7 && has_bond(*n, 2, 8))
            min = std::min(min, n->GetAtomicNum() == 6 ? 1 : 0);
    return min;
}

// Sorts them; the first `keep` keep their charge.
static void sort_sites(OBMol &mol, std::vector<Site> &sites, size_t keep)
{
    if (keep == 0 || keep >= sites.size())
        return;
    std::vector<unsigned> classes;
    OBGraphSym(&mol).GetSymmetry(classes);
    for (Site &s : sites) {
        s.weakness = weakness_of(*s.atom);
        s.order = classes[s.atom->GetIdx() - 1];
    }
    std::stable_sort(sites.begin(), sites.end(), [](const Site &a, const Site &b) {
        return a.weakness != b.weakness ? a.weakness < b.weakness : a.order < b.order;
    });
}

void add_proton(OBAtom &a)
{
    a.SetFormalCharge(a.GetFormalCharge() + 1);
    a.SetImplicitHCount(a.GetImplicitHCount() + 1);
}

void take_proton(OBMol &mol, OBAtom &a)
{
    OBAtom *hydrogen = nullptr;
    a.SetFormalCharge(a.GetFormalCharge() - 1);
    if (a.GetImplicitHCount() > 0) {
        a.SetImplicitHCount(a.GetImplicitHCount() - 1);
    } else {
        for (const Place &p : own_order(mol)) // so that the choice does not depend on the file
            if (p.z == 1 && p.atom->GetIsotope() == 0 && p.atom->IsConnected(&a))
                hydrogen = p.atom;
        mol.DeleteHydrogen(hydrogen);
    }
}

int sum_of_charges(OBMol &mol)
{
    int sum = 0;
    FOR_ATOMS_OF_MOL(a, mol)
        sum += a->GetFormalCharge();
    return sum;
}

int mol_neutralise(OBMol &mol, bool balanced)
{
    std::vector<Site> acids, bases;
    int rest = 0; // charge that no proton explains
    FOR_ATOMS_OF_MOL(a, mol) {
        const Kind kind = a->GetFormalCharge() == 0 ? Kind::other : kind_of(*a);
        if (kind == Kind::other)
            rest += a->GetFormalCharge();
        else
            (kind == Kind::acid ? acids : bases).push_back({ &*a, 0, 0 });
    }
    if (!balanced)
        rest = 0;
    const size_t keep_acids = std::min(acids.size(), static_cast<size_t>(std::max(rest, 0)));
    const size_t keep_bases = std::min(bases.size(), static_cast<size_t>(std::max(-rest, 0)));
    const size_t changed = acids.size() - keep_acids + bases.size() - keep_bases;
    if (changed == 0)
        return 0;
    const bool whole = mol.GetDimension() == 3 && all_hydrogens_there(mol); // then it must have all of them afterwards, too
    OBMol was = mol;
    sort_sites(mol, acids, keep_acids);
    sort_sites(mol, bases, keep_bases);
    for (size_t i = keep_acids; i < acids.size(); i++)
        add_proton(*acids[i].atom);
    for (size_t i = keep_bases; i < bases.size(); i++)
        take_proton(mol, *bases[i].atom);
    perceive_again(mol, was);
    if (whole)
        add_hydrogens(mol);
    return static_cast<int>(changed);
}

} // namespace worker
