// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_corners.cpp - centres of drawings that Open Babel reads by chance: all bonds in one line, or two beside a wedge.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/obiter.h>
#include <openbabel/stereo/tetrahedral.h>

using namespace OpenBabel;

namespace worker {

static bool has_bonds_in_one_line(OBAtom &centre)
{
    const double one_degree = 0.017;
    std::vector<vector3> bonds;
    FOR_NBORS_OF_ATOM(a, centre)
        bonds.push_back(a->GetVector() - centre.GetVector());
    for (const vector3 &p : bonds)
        for (const vector3 &q : bonds)
            if (std::fabs(p.x() * q.y() - p.y() * q.x()) > one_degree * p.length() * q.length())
                return false;
    return true;
}

// Wedges say nothing where all bonds of a centre lie in one line, as in a drawing without width.
static void leave_open_without_width(OBMol &mol)
{
    for (OBGenericData *data : mol.GetAllData(OBGenericDataType::StereoData)) {
        auto *centre = dynamic_cast<OBTetrahedralStereo *>(data);
        OBTetrahedralStereo::Config c = centre != nullptr ? centre->GetConfig() : OBTetrahedralStereo::Config();
        if (centre == nullptr || !c.specified || !has_bonds_in_one_line(*mol.GetAtomById(c.center)))
            continue;
        c.specified = false;
        centre->SetConfig(c);
    }
}

// A centre with three bonds of which only `stem` has a wedge; the angles of all three, and which bond is the stem.
struct Corner {
    std::vector<std::pair<double, OBAtom *>> around; // against the clock
    OBBond *stem = nullptr;
};

static Corner corner_of(OBAtom &centre)
{
    Corner k;
    int wedges = 0;
    FOR_BONDS_OF_ATOM(b, centre) {
        OBAtom *a = b->GetNbrAtom(&centre);
        const vector3 d = a->GetVector() - centre.GetVector();
        k.around.push_back({ std::atan2(d.y(), d.x()), a });
        if ((b->IsWedge() || b->IsHash()) && b->GetBeginAtom() == &centre) {
            k.stem = &*b;
            wedges++;
        }
    }
    std::sort(k.around.begin(), k.around.end());
    if (k.around.size() != 3 || wedges != 1)
        k.stem = nullptr;
    return k;
}

// The angle at the centre that the stem divides, in radians.
static double divided_angle(const Corner &k, const OBAtom *stem)
{
    size_t at = 0;
    while (k.around[at].second != stem)
        at++;
    const double turn = 2 * std::acos(-1.0);
    return std::fmod(k.around[(at + 1) % 3].first - k.around[(at + 2) % 3].first + 2 * turn, turn);
}

// A wedge in a corner of less than 180 degrees means the other form. In a T, where InChI calls the centre ambiguous, decimals decided: a
// corner of up to 181 degrees is such a one, as in RDKit, which draws them.
static void read_straight_corners(OBMol &mol)
{
    const double half = std::acos(-1.0), degree = half / 180;
    for (OBGenericData *data : mol.GetAllData(OBGenericDataType::StereoData)) {
        auto *centre = dynamic_cast<OBTetrahedralStereo *>(data);
        OBTetrahedralStereo::Config c = centre != nullptr ? centre->GetConfig() : OBTetrahedralStereo::Config();
        if (centre == nullptr || !c.specified || c.winding == OBStereo::UnknownWinding)
            continue;
        OBAtom &atom = *mol.GetAtomById(c.center);
        const Corner k = corner_of(atom);
        const double angle = k.stem != nullptr ? divided_angle(k, k.stem->GetNbrAtom(&atom)) : 0;
        if (angle < half - 0.02 * degree || angle > half + 1.005 * degree)
            continue;
        c.from = OBStereo::ImplicitRef;
        c.refs = { k.around[0].second->GetId(), k.around[1].second->GetId(), k.around[2].second->GetId() };
        c.winding = k.stem->IsWedge() ? OBStereo::AntiClockwise : OBStereo::Clockwise;
        centre->SetConfig(c);
    }
}

void drawn_centres_check(OBMol &mol)
{
    read_straight_corners(mol);
    leave_open_without_width(mol);
}

} // namespace worker
