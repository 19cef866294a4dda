// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_kept.cpp - stereo after protons were added or removed, or bonds moved.
//
// Open Babel finds it anew from the graph, so that what only the former molecule had is gone: an amine inverts, and a neutral amidine with
// two equal sides is not stereogenic. But it knows no stereo of C=N-H, P-H and CHD, and takes a double bond in a ring of eight for cis. What
// the change has left alone is therefore put back.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <iterator>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/graphsym.h>
#include <openbabel/obiter.h>

using namespace OpenBabel;

namespace worker {

// Whether all of these are still neighbours, and as many hydrogens that are no atoms.
static bool is_as_before(OBMol &mol, OBMol &was, unsigned long of, const OBStereo::Refs &refs)
{
    OBAtom *a = mol.GetAtomById(of);
    return a != nullptr && a->GetImplicitHCount() == was.GetAtomById(of)->GetImplicitHCount() &&
           std::all_of(refs.begin(), refs.end(), [&](unsigned long id) {
               OBAtom *other = id == OBStereo::ImplicitRef ? nullptr : mol.GetAtomById(id);
               return id == OBStereo::ImplicitRef || (other != nullptr && mol.GetBond(a, other) != nullptr);
           });
}

static unsigned hydrogens_of(OBAtom *a)
{
    unsigned n = a->GetImplicitHCount();
    FOR_NBORS_OF_ATOM(b, a)
        n += b->GetAtomicNum() == 1 && b->GetIsotope() == 0;
    return n;
}

// Whether what is on this side of a double bond differs.
static bool is_uneven(OBMol &mol, const std::vector<unsigned> &classes, unsigned long end, unsigned long x, unsigned long y)
{
    if (x == OBStereo::ImplicitRef || y == OBStereo::ImplicitRef)
        return hydrogens_of(mol.GetAtomById(end)) < 2;
    return classes[mol.GetAtomById(x)->GetIndex()] != classes[mol.GetAtomById(y)->GetIndex()];
}

// Of a double bond that the library does not find.
static bool is_stereo(OBMol &mol, const OBCisTransStereo::Config &c)
{
    const OBBond *bond = mol.GetBond(mol.GetAtomById(c.begin), mol.GetAtomById(c.end));
    std::vector<unsigned> classes;
    if (bond->GetBondOrder() != 2)
        return false;
    OBGraphSym(&mol).GetSymmetry(classes);
    return is_uneven(mol, classes, c.begin, c.refs[0], c.refs[1]) && is_uneven(mol, classes, c.end, c.refs[2], c.refs[3]);
}

// Of centres that the library does not find now, those that it did not find before either: it does not know them.
static std::vector<OBTetrahedralStereo::Config> not_known(const std::vector<OBTetrahedralStereo::Config> &centres, const OBMol &was)
{
    std::vector<OBTetrahedralStereo::Config> left;
    if (centres.empty())
        return left;
    OBMol again = was;
    find_stereo(again);
    const Marks found = marks_of(again);
    std::copy_if(centres.begin(), centres.end(), std::back_inserter(left),
                 [&](const OBTetrahedralStereo::Config &c) { return !is_known(found, c); });
    return left;
}

// Those whose atoms have the same neighbours and hydrogens, and are stereo still.
static Marks marks_left(OBMol &mol, OBMol &was, const Marks &before)
{
    Marks left;
    const Marks now = marks_of(mol);
    std::vector<OBTetrahedralStereo::Config> gone;
    for (const auto &c : before.centres)
        if (is_as_before(mol, was, c.center, c.refs) && is_as_before(mol, was, c.center, { c.from }))
            (is_known(now, c) ? left.centres : gone).push_back(c);
    for (const auto &c : before.bonds)
        if (is_as_before(mol, was, c.begin, { c.refs[0], c.refs[1], c.end }) &&
            is_as_before(mol, was, c.end, { c.refs[2], c.refs[3] }) && (is_known(now, c) || is_stereo(mol, c)))
            left.bonds.push_back(c);
    const auto more = not_known(gone, was);
    left.centres.insert(left.centres.end(), more.begin(), more.end());
    return left;
}

static bool has_bond(const Marks &m, const OBCisTransStereo::Config &c)
{
    return std::any_of(m.bonds.begin(), m.bonds.end(), [&](const OBCisTransStereo::Config &other) {
        return std::minmax(other.begin, other.end) == std::minmax(c.begin, c.end);
    });
}

// Double bonds that had no stereo before: the library takes them for cis, because they are in a ring of eight or more.
static void leave_open(OBMol &mol, const Marks &before)
{
    for (OBGenericData *data : mol.GetAllData(OBGenericDataType::StereoData)) {
        auto *bond = dynamic_cast<OBCisTransStereo *>(data);
        OBCisTransStereo::Config c = bond != nullptr ? bond->GetConfig() : OBCisTransStereo::Config();
        if (bond == nullptr || has_bond(before, c))
            continue;
        c.specified = false;
        bond->SetConfig(c);
    }
}

void perceive_again(OBMol &mol, OBMol &was)
{
    mol.SetTotalCharge(sum_of_charges(mol));
    mol.SetAromaticPerceived(false);
    if (was.HasChiralityPerceived()) {
        const Marks before = marks_of(was);
        find_stereo(mol);
        marks_put(mol, marks_left(mol, was, before));
        leave_open(mol, before);
    }
}

} // namespace worker
