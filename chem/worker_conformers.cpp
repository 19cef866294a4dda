// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_conformers.cpp - several structures of one molecule.
//
// Each gets an arrangement by chance where the SMILES leaves one open, is built, and turned about its rotatable
// bonds by angles of chance. The force field does the rest.
#include "chem/worker.hpp"

#include <algorithm>
#include <cmath>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/graphsym.h>
#include <openbabel/obiter.h>
#include <openbabel/ring.h>
#include <openbabel/stereo/cistrans.h>
#include <openbabel/stereo/stereo.h>
#include <openbabel/stereo/tetrahedral.h>

using namespace OpenBabel;

namespace worker {

static const double alike = 0.25;                            // Angstrom
static const double turn = 2 * 3.14159265358979323846 / (1 << 24); // radians: a whole one has 2^24

static uint64_t next(uint64_t &state)
{
    state = state * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX
    return state >> 40;
}

// P and S of acids: which of their oxygens has the hydrogen is nobody's arrangement.
static bool is_acid(OBAtom &a)
{
    int ends = 0;
    FOR_NBORS_OF_ATOM(b, a)
        ends += (b->GetAtomicNum() == 8 || b->GetAtomicNum() == 16) && b->GetExplicitDegree() == 1;
    return (a.GetAtomicNum() == 15 || a.GetAtomicNum() == 16) && ends > 1;
}

// Rings of up to seven atoms have no trans double bond.
static bool is_in_small_ring(OBMol &mol, OBBond &b)
{
    for (OBRing *r : mol.GetSSSR())
        if (r->Size() < 8 && r->IsMember(&b))
            return true;
    return false;
}

// The centres and double bonds that have two arrangements of which none is said.
static std::vector<OBStereoUnit> open_units(OBMol &mol)
{
    std::vector<unsigned> classes;
    std::vector<OBStereoUnit> open;
    OBGraphSym(&mol).GetSymmetry(classes);
    const OBStereoUnitSet units = FindStereogenicUnits(&mol, classes);
    OBStereoFacade stereo(&mol);
    for (const OBStereoUnit &u : units) {
        const bool said = u.type == OBStereo::Tetrahedral
                              ? stereo.HasTetrahedralStereo(u.id) && stereo.GetTetrahedralStereo(u.id)->GetConfig().specified
                              : stereo.HasCisTransStereo(u.id) && stereo.GetCisTransStereo(u.id)->GetConfig().specified;
        const bool real = u.type == OBStereo::Tetrahedral ? !is_acid(*mol.GetAtomById(u.id))
                                                          : u.type == OBStereo::CisTrans && !is_in_small_ring(mol, *mol.GetBondById(u.id));
        if (!said && real)
            open.push_back(u);
    }
    return open;
}

int undefined_stereo(const OBMol &mol)
{
    OBMol copy = mol; // looking perceives, and what is perceived matters later
    return static_cast<int>(open_units(copy).size());
}

// The atoms around `a` but for one; a hydrogen that is not written comes last.
static OBStereo::Refs around(OBAtom &a, unsigned long but, size_t n)
{
    OBStereo::Refs refs;
    FOR_NBORS_OF_ATOM(b, a)
        if (b->GetId() != but)
            refs.push_back(b->GetId());
    if (refs.size() + 1 == n)
        refs.push_back(OBStereo::ImplicitRef);
    return refs;
}

static void define_centre(OBMol &mol, OBAtom &a, bool clockwise)
{
    OBStereo::Refs refs = around(a, OBStereo::NoRef, 4);
    if (refs.size() != 4)
        return;
    const unsigned long from = refs.front();
    refs.erase(refs.begin());
    OBTetrahedralStereo *stereo = new OBTetrahedralStereo(&mol); // the molecule's from here on
    mol.SetData(stereo);
    stereo->SetConfig({ a.GetId(), from, refs, clockwise ? OBStereo::Clockwise : OBStereo::AntiClockwise });
}

static void define_bond(OBMol &mol, OBBond &b, bool crossed)
{
    OBAtom *begin = b.GetBeginAtom(), *end = b.GetEndAtom();
    OBStereo::Refs refs = around(*begin, end->GetId(), 2), others = around(*end, begin->GetId(), 2);
    if (refs.size() != 2 || others.size() != 2)
        return;
    refs.push_back(others[crossed]);
    refs.push_back(others[!crossed]);
    OBCisTransStereo *stereo = new OBCisTransStereo(&mol);
    mol.SetData(stereo);
    stereo->SetConfig({ begin->GetId(), end->GetId(), refs });
}

// Atoms where rings meet are left out: most of their arrangements cannot be built, and the library tries for hours.
void define_stereo(OBMol &mol, uint64_t state)
{
    for (const OBStereoUnit &u : open_units(mol)) {
        const bool one = next(state) & 1 << 23;
        if (u.type == OBStereo::CisTrans && !mol.GetBondById(u.id)->IsInRing())
            define_bond(mol, *mol.GetBondById(u.id), one);
        else if (u.type == OBStereo::Tetrahedral && mol.GetAtomById(u.id)->CountRingBonds() <= 2)
            define_centre(mol, *mol.GetAtomById(u.id), one);
    }
}

static bool is_hetero(const OBAtom &a) { return a.GetAtomicNum() == 7 || a.GetAtomicNum() == 8 || a.GetAtomicNum() == 16; }

// C of C=O, C=N or C=S beside N, O or S: amides, esters, amidines and their like stay as they are built.
static bool is_conjugated(OBAtom &c, const OBAtom &other)
{
    if (c.GetAtomicNum() != 6 || !is_hetero(other))
        return false;
    FOR_BONDS_OF_ATOM(b, c)
        if (b->GetBondOrder() == 2 && is_hetero(*b->GetNbrAtom(&c)))
            return true;
    return false;
}

static bool turns(OBBond &b)
{
    return b.IsRotor(false) && !is_conjugated(*b.GetBeginAtom(), *b.GetEndAtom()) &&
           !is_conjugated(*b.GetEndAtom(), *b.GetBeginAtom());
}

bool can_turn(OBMol &mol)
{
    FOR_BONDS_OF_MOL(b, mol)
        if (turns(*b))
            return true;
    return false;
}

static OBAtom *neighbour(OBAtom &of, const OBAtom &but)
{
    FOR_NBORS_OF_ATOM(a, of)
        if (a->GetIdx() != but.GetIdx())
            return &*a;
    return nullptr;
}

void turn_all(OBMol &mol, uint64_t state)
{
    FOR_BONDS_OF_MOL(b, mol) {
        if (!turns(*b))
            continue;
        OBAtom *from = b->GetBeginAtom(), *to = b->GetEndAtom();
        OBAtom *before = neighbour(*from, *to), *after = neighbour(*to, *from);
        if (before != nullptr && after != nullptr)
            mol.SetTorsion(before, from, to, after, turn * static_cast<double>(next(state)));
    }
}

// By the distances between atoms, so places and mirror images do not matter: their root mean square difference.
static double difference(const std::vector<vector3> &a, const std::vector<vector3> &b)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < a.size(); i++)
        for (size_t j = 0; j < i; j++, n++) {
            const double d = std::sqrt(a[i].distSq(a[j])) - std::sqrt(b[i].distSq(b[j]));
            sum += d * d;
        }
    return n > 0 ? std::sqrt(sum / static_cast<double>(n)) : 0;
}

void keep_distinct(std::vector<Structure> &all, double window)
{
    std::vector<Structure> kept;
    std::stable_sort(all.begin(), all.end(), [](const Structure &a, const Structure &b) { return a.energy < b.energy; });
    for (Structure &s : all) {
        const bool known = std::any_of(kept.begin(), kept.end(),
                                       [&](const Structure &k) { return difference(k.heavy, s.heavy) < alike; });
        if (!known && !(s.energy > all.front().energy + window))
            kept.push_back(s);
    }
    all = kept;
}

} // namespace worker
