// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_axes.cpp - stereo about an axis: allenes, longer cumulenes and hindered biaryls (atropisomers).
//
// Open Babel reads no mark of an allene and knows no atropisomers. Both kinds are found here, and read from positions and wedges; marks of
// allenes in SMILES are in worker_smiles.cpp. An axis is two end atoms with two neighbours each: the four
// neighbours are the corners of a tetrahedron, whose sign is that of a centre (chem/structures/stereo.h). With an odd number of double bonds
// they lie in a plane and are cis or trans, as at one double bond.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cmath>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/graphsym.h>
#include <openbabel/obiter.h>

using namespace OpenBabel;

namespace worker {

static const double least_cosine = 0.5; // between the sides of C=C=C=C: twisted more, cis and trans are not defined
static const double least_twist = 0.3;  // of a volume, in that of a rectangular one: drawn flatter, an axis is not defined

// ---- which axes a molecule has -----------------------------------------------

bool is_double(const OBBond *b) { return b != nullptr && b->GetBondOrder() == 2 && !b->IsAromatic(); }

// The atom behind `at`, coming from `from`, if `at` has two double bonds and nothing else; else NULL.
static OBAtom *next_cumulated(OBAtom *at, OBAtom *from)
{
    OBAtom *to = nullptr;
    if (at->GetAtomicNum() != 6 || at->GetTotalDegree() != 2 || at->GetExplicitDegree() != 2)
        return nullptr;
    FOR_NBORS_OF_ATOM(b, *at)
        if (&*b != from)
            to = &*b;
    return to != nullptr && is_double(at->GetBond(to)) && is_double(at->GetBond(from)) ? to : nullptr;
}

// The chain of double bonds that begins at `end` with the bond to `inner`. false: it is one bond only, or does not end at carbons.
static bool cumulated_from(OBMol &mol, OBAtom *end, OBAtom *inner, Ends &e)
{
    OBAtom *from = end, *at = inner;
    e.n_bonds = 1;
    for (OBAtom *to = next_cumulated(at, from); to != nullptr && e.n_bonds < static_cast<int>(mol.NumAtoms()); e.n_bonds++) {
        from = at;
        at = to;
        to = next_cumulated(at, from);
    }
    e.end[0] = end;
    e.inner[0] = inner;
    e.end[1] = at;
    e.inner[1] = from;
    return e.n_bonds > 1 && end->GetAtomicNum() == 6 && at->GetAtomicNum() == 6 && end->GetTotalDegree() == 3 &&
           at->GetTotalDegree() == 3;
}

std::vector<Ends> cumulated(OBMol &mol)
{
    std::vector<Ends> all;
    FOR_BONDS_OF_MOL(b, mol)
        for (const bool turned : { false, true }) {
            OBAtom *end = turned ? b->GetEndAtom() : b->GetBeginAtom(), *inner = b->GetNbrAtom(end);
            Ends e;
            if (is_double(&*b) && cumulated_from(mol, end, inner, e) && e.end[0]->GetIdx() < e.end[1]->GetIdx())
                all.push_back(e);
        }
    return all;
}

// Atoms of the ring beside an end of a biaryl that carry something.
static int n_ortho(const OBAtom *end, const OBAtom *other)
{
    int n = 0;
    FOR_NBORS_OF_ATOM(a, *const_cast<OBAtom *>(end))
        n += &*a != other && a->GetHvyDegree() > 2;
    return n;
}

static bool is_flat_in_ring(OBAtom *a) { return a->IsInRing() && a->GetHvyDegree() == 3 && a->GetHyb() == 2; }

// Bonds between two flat rings with three or four groups beside them.
static std::vector<Ends> hindered(OBMol &mol)
{
    std::vector<Ends> all;
    FOR_BONDS_OF_MOL(b, mol) {
        OBAtom *p = b->GetBeginAtom(), *q = b->GetEndAtom();
        Ends e;
        if (b->GetBondOrder() != 1 || b->IsInRing() || !is_flat_in_ring(p) || !is_flat_in_ring(q) ||
            n_ortho(p, q) + n_ortho(q, p) < 3)
            continue;
        e.end[0] = e.inner[1] = p;
        e.end[1] = e.inner[0] = q;
        e.n_bonds = 1;
        all.push_back(e);
    }
    return all;
}

// ---- what differs ------------------------------------------------------------

static bool ends_differ(const std::vector<unsigned> &classes, OBAtom *end, const OBAtom *inner)
{
    std::vector<unsigned> other;
    FOR_NBORS_OF_ATOM(c, *end)
        if (&*c != inner)
            other.push_back(classes[c->GetIdx() - 1]);
    return other.size() == 1 || (other.size() == 2 && other[0] != other[1]); // one: the other is a hydrogen
}

static bool has_two_forms(const std::vector<unsigned> &classes, const Ends &e)
{
    return ends_differ(classes, e.end[0], e.inner[0]) && ends_differ(classes, e.end[1], e.inner[1]);
}

std::vector<unsigned> classes_of(OBMol &mol)
{
    std::vector<unsigned> classes;
    OBGraphSym(&mol).GetSymmetry(classes);
    return classes;
}

static int n_with_two_forms(OBMol &mol, const std::vector<Ends> &all)
{
    if (all.empty())
        return 0;
    const std::vector<unsigned> classes = classes_of(mol);
    return static_cast<int>(std::count_if(all.begin(), all.end(), [&](const Ends &e) { return has_two_forms(classes, e); }));
}

int open_axes(OBMol &mol) { return n_with_two_forms(mol, cumulated(mol)); }

int open_biaryls(OBMol &mol, const Marks &known)
{
    const auto bonded = [&](const Axis &x) { return mol.GetBond(mol.GetAtomById(x.end[0]), mol.GetAtomById(x.end[1])) != nullptr; };
    const auto n = std::count_if(known.axes.begin(), known.axes.end(), bonded);
    return std::max(n_with_two_forms(mol, hindered(mol)) - static_cast<int>(n), 0);
}

// The middle atom of an even number of double bonds, and in *before the one in front of it.
OBAtom *middle_of(const Ends &e, OBAtom **before)
{
    OBAtom *here = e.inner[0];
    *before = e.end[0];
    for (int k = 1; k < e.n_bonds / 2; k++) {
        OBAtom *to = next_cumulated(here, *before);
        *before = here;
        here = to;
    }
    return here;
}

bool has_ends(const Ends &e, unsigned long p, unsigned long q)
{
    return (e.end[0]->GetId() == p && e.end[1]->GetId() == q) || (e.end[0]->GetId() == q && e.end[1]->GetId() == p);
}

bool is_axis(OBMol &mol, unsigned long p, unsigned long q)
{
    const std::vector<unsigned> classes = classes_of(mol);
    const std::vector<Ends> allenes = cumulated(mol), biaryls = hindered(mol);
    const auto is = [&](const Ends &e) { return has_ends(e, p, q) && has_two_forms(classes, e); };
    return std::any_of(allenes.begin(), allenes.end(), is) || std::any_of(biaryls.begin(), biaryls.end(), is);
}

// p[0] and q[0] are on one side, or not.
OBCisTransStereo::Config plane_of(const Ends &e, const unsigned long p[2], const unsigned long q[2], bool cis)
{
    unsigned long first = q[0], second = q[1];
    if (cis)
        std::swap(first, second);
    return OBCisTransStereo::Config(e.end[0]->GetId(), e.end[1]->GetId(), { p[0], p[1], first, second });
}

// ---- from positions ------------------------------------------------------------

// Positions of the neighbours of an end. A drawing in the plane gets its third dimension from wedges that begin at the end; *seen: there are some.
static bool corners(const Ends &e, int which, bool flat, unsigned long id[2], vector3 x[2], bool *seen)
{
    OBAtom *end = e.end[which];
    const OBAtom *inner = e.inner[which];
    size_t n = 0;
    double height[2] = { 0, 0 };
    FOR_BONDS_OF_ATOM(b, *end) {
        OBAtom *a = b->GetNbrAtom(end);
        if (a == inner)
            continue;
        if (n == 2)
            return false;
        if (flat && b->GetBeginAtom() == end)
            height[n] = static_cast<int>(b->IsWedge()) - static_cast<int>(b->IsHash());
        id[n] = a->GetId();
        x[n++] = a->GetVector();
    }
    if (n == 0)
        return false;
    *seen = *seen || height[0] != 0 || height[1] != 0;
    x[0].SetZ(x[0].z() + (height[0] != 0 ? height[0] : -height[1]));
    if (n == 2) {
        x[1].SetZ(x[1].z() + (height[1] != 0 ? height[1] : -height[0]));
        return true;
    }
    vector3 along = end->GetVector() - inner->GetVector(), side = x[0] - end->GetVector();
    along.normalize();
    id[1] = OBStereo::ImplicitRef;
    x[1] = end->GetVector() - (side - along * dot(side, along));
    return true;
}

static bool axis_placed(const Ends &e, bool flat, Axis &x)
{
    vector3 at[4];
    bool seen = !flat;
    if (!corners(e, 0, flat, x.at, at, &seen) || !corners(e, 1, flat, x.at + 2, at + 2, &seen) || !seen)
        return false;
    const vector3 along = (at[2] + at[3] - at[0] - at[1]) / 2;
    const double volume = dot(at[0] - at[3], cross(at[1] - at[3], at[2] - at[3]));
    const double all = (at[0] - at[1]).length() * (at[2] - at[3]).length() * along.length();
    if (volume < 0)
        std::swap(x.at[2], x.at[3]);
    x.end[0] = e.end[0]->GetId();
    x.end[1] = e.end[1]->GetId();
    return std::fabs(volume) > least_twist * all;
}

static bool plane_placed(const Ends &e, OBCisTransStereo::Config &c)
{
    unsigned long id[4];
    vector3 at[4], side[2], along = e.end[1]->GetVector() - e.end[0]->GetVector();
    bool seen = true;
    if (!corners(e, 0, false, id, at, &seen) || !corners(e, 1, false, id + 2, at + 2, &seen))
        return false;
    along.normalize();
    for (size_t k = 0; k < 2; k++) {
        const vector3 to = at[2 * k] - e.end[k]->GetVector();
        side[k] = to - along * dot(to, along);
    }
    const double cosine = dot(side[0], side[1]) / (side[0].length() * side[1].length());
    c = plane_of(e, id, id + 2, cosine > 0);
    return std::fabs(cosine) > least_cosine;
}

Marks axes_placed(OBMol &mol)
{
    Marks m;
    for (const auto &list : { cumulated(mol), hindered(mol) })
        for (const Ends &e : list) {
            const bool plane = e.n_bonds > 1 && e.n_bonds % 2 == 1;
            Axis x;
            OBCisTransStereo::Config c;
            if (!plane && axis_placed(e, mol.GetDimension() == 2, x))
                m.axes.push_back(x);
            if (plane && plane_placed(e, c))
                m.planes.push_back(c);
        }
    return m;
}

} // namespace worker
