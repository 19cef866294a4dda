// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_protonate.cpp - gives acids and bases their state at a pH.
//
// Starts from the form in which every acid and base is neutral, so the state drawn in the record does not matter. Then the
// strongest base takes a proton, the groups are searched again, and so on down to the pH; then acids lose protons, the
// strongest first. The pH only decides where to stop: all steps down to pH 7 are also made on the way to 2, so a
// lower pH never gives a lower charge. Each step is checked; a molecule that fails stays as it was.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/canon.h>
#include <openbabel/graphsym.h>
#include <openbabel/obiter.h>
#include <openbabel/parsmart.h>
#include <openbabel/stereo/stereo.h>
#include <openbabel/stereo/tetrahedral.h>

#include "chem/worker_program/groups.h"

using namespace OpenBabel;

namespace worker {

namespace {
typedef std::vector<int> Match; // indices of the atoms, from 1, in the order of the SMARTS

struct Step {
    Match match; // empty: nothing to do
    double pka = 0;
};

// Orders matches independently of the order of atoms in the file and of explicit hydrogens. Atoms of one symmetry class may be
// mirror images of each other; canonical labels distinguish them. Computed at first use.
struct Ranks {
    explicit Ranks(OBMol &m) : mol(m) {}
    bool is_before(const Match &a, const Match &b);

    OBMol &mol;
    OBBitVec heavy;
    std::vector<unsigned> classes, labels;
};

struct Groups {
    const ch_group *rows;
    size_t n;
    int sign; // -1: acids
    std::vector<std::unique_ptr<OBSmartsPattern>> smarts;
};
} // namespace

static void read_groups(Groups &g)
{
    for (size_t i = 0; i < g.n; i++) {
        g.smarts.emplace_back(new OBSmartsPattern);
        if (!g.smarts.back()->Init(g.rows[i].smarts))
            fail(CH_INTERNAL, std::string("not a SMARTS: ") + g.rows[i].smarts);
    }
}

static const Groups &acids()
{
    static Groups g = { ch_acids, sizeof ch_acids / sizeof *ch_acids, -1, {} };
    if (g.smarts.empty())
        read_groups(g);
    return g;
}

static const Groups &bases()
{
    static Groups g = { ch_bases, sizeof ch_bases / sizeof *ch_bases, 1, {} };
    if (g.smarts.empty())
        read_groups(g);
    return g;
}

static bool can_change(OBAtom &a, int sign)
{
    return a.GetFormalCharge() == 0 && static_cast<int>(a.GetTotalValence()) == usual_valence(a.GetAtomicNum()) &&
           (sign > 0 || has_proton(a));
}

static int first_difference(const std::vector<unsigned> &rank, const Match &a, const Match &b)
{
    for (size_t i = 0; i < std::min(a.size(), b.size()); i++) {
        const unsigned p = rank[static_cast<size_t>(a[i] - 1)], q = rank[static_cast<size_t>(b[i] - 1)];
        if (p != q)
            return p < q ? -1 : 1;
    }
    return 0;
}

bool Ranks::is_before(const Match &a, const Match &b)
{
    if (classes.empty()) {
        FOR_ATOMS_OF_MOL(x, mol)
            if (x->GetAtomicNum() != 1)
                heavy.SetBitOn(x->GetIdx());
        OBGraphSym(&mol, &heavy).GetSymmetry(classes);
    }
    const int by_class = first_difference(classes, a, b);
    if (by_class != 0)
        return by_class < 0;
    if (labels.empty())
        CanonicalLabels(&mol, classes, labels, heavy);
    return first_difference(labels, a, b) < 0;
}

// The strongest of the groups that match.
static Step next_step(OBMol &mol, const Groups &g)
{
    std::vector<bool> seen(mol.NumAtoms() + 1);
    Ranks ranks(mol);
    Step best;
    for (size_t i = 0; i < g.n; i++) {
        const double pka = g.rows[i].pka;
        std::vector<Match> matches;
        std::vector<size_t> here;
        if (!g.smarts[i]->Match(mol, matches))
            continue;
        for (const Match &m : matches) {
            const size_t atom = static_cast<size_t>(m[0]);
            if (seen[atom] || !can_change(*mol.GetAtom(m[0]), g.sign))
                continue;
            here.push_back(atom);
            if (best.match.empty() || g.sign * (pka - best.pka) > 0 || (pka == best.pka && ranks.is_before(m, best.match)))
                best = { m, pka };
        }
        for (size_t atom : here)
            seen[atom] = true;
    }
    return best;
}

// C-H beside C=O: the double bond moves, and the oxygen gets the charge.
static OBAtom *to_enol(OBMol &mol, const Match &m)
{
    OBAtom *carbon = mol.GetAtom(m[0]), *oxygen = mol.GetAtom(m[2]);
    mol.GetBond(m[0], m[1])->SetBondOrder(2);
    mol.GetBond(m[1], m[2])->SetBondOrder(1);
    oxygen->SetImplicitHCount(oxygen->GetImplicitHCount() + 1);
    take_proton(mol, *carbon);
    carbon->SetFormalCharge(0);
    return oxygen;
}

// false: the group does not have the atoms that the rule expects.
static bool change(OBMol &mol, const Match &m, int sign)
{
    OBAtom *a = mol.GetAtom(m[0]);
    if (a->GetAtomicNum() == 6)
        a = to_enol(mol, m);
    if (sign > 0)
        add_proton(*a);
    else
        take_proton(mol, *a);
    mol.SetAromaticPerceived(false);
    return a->GetFormalCharge() == sign && static_cast<int>(a->GetTotalValence()) == usual_valence(a->GetAtomicNum()) + sign;
}

static bool titrate(OBMol &mol, const Groups &g, double ph)
{
    for (unsigned left = mol.NumAtoms() + 1; left > 0; left--) {
        const Step step = next_step(mol, g);
        if (step.match.empty() || g.sign * (step.pka - ph) <= 0)
            return true;
        if (!change(mol, step.match, g.sign))
            return false;
    }
    return false; // never: nothing is charged twice
}

// An amine inverts, and its cation does by exchanging a proton: neither is a stereocentre.
static void forget_inverting(OBMol &mol)
{
    OBStereoFacade stereo(&mol);
    FOR_ATOMS_OF_MOL(a, mol) {
        if (a->GetAtomicNum() != 7 || a->GetFormalCharge() != 1 || !has_proton(*a) || !stereo.HasTetrahedralStereo(a->GetId()))
            continue;
        OBTetrahedralStereo *centre = stereo.GetTetrahedralStereo(a->GetId());
        OBTetrahedralStereo::Config config = centre->GetConfig();
        config.specified = false;
        centre->SetConfig(config);
    }
}

static std::vector<int> charges(OBMol &mol)
{
    std::vector<int> q;
    FOR_ATOMS_OF_MOL(a, mol)
        if (a->GetAtomicNum() != 1)
            q.push_back(a->GetFormalCharge());
    return q;
}

// Number of atoms whose charge changed; 0 if the result is the same molecule with the charge on an equivalent atom.
static int n_changed(OBMol &before, OBMol &after)
{
    const std::vector<int> was = charges(before), is = charges(after);
    int n = 0;
    for (size_t i = 0; i < is.size(); i++)
        n += was[i] != is[i];
    if (n == 0 || sum_of_charges(before) != sum_of_charges(after))
        return n;
    OBMol a = before, b = after; // writing takes away marks
    return canonical_smiles(a) == canonical_smiles(b) ? 0 : n;
}

int mol_protonate(OBMol &mol, double ph)
{
    const bool whole = mol.GetDimension() == 3 && all_hydrogens_there(mol); // if nothing changes, no atom moves
    OBMol charged = mol;
    (void)mol_neutralise(charged, false);
    if (!titrate(charged, bases(), ph) || !titrate(charged, acids(), ph))
        return 0;
    perceive_again(charged, mol);
    if (whole)
        add_hydrogens(charged);
    const int n = n_changed(mol, charged);
    if (n > 0 || !whole)
        mol = charged;
    forget_inverting(mol);
    return n;
}

} // namespace worker
