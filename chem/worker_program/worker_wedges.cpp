// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_wedges.cpp - the wedges of a drawing, where Open Babel does not find enough of them.
//
// Open Babel gives each centre the bond that scores best and gives up if the scores of all are negative, as at the carbons of a
// steroid between three others. Here each centre gets a bond of its own by bipartite matching. Whether it is a wedge or a hash
// follows from the positions: the sign of the volume of the four neighbours, of which one is above the plane.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cmath>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/obiter.h>

using namespace OpenBabel;

namespace worker {

static const size_t no_choice = static_cast<size_t>(-1);
static const double narrow = 20, straight = 170; // degrees
static const double unclear = 100;               // the cost of a bond with which readers disagree

// ---- geometry ----------------------------------------------------------------

// From the centre to a neighbour, of length 1.
static vector3 arm(OBAtom *centre, OBAtom *to)
{
    vector3 v = to->GetVector() - centre->GetVector();
    v.SetZ(0);
    return v.length() > 1e-9 ? v / v.length() : v;
}

// The angle from one direction to another, counterclockwise: 0 to 360.
static double turn(const vector3 &from, const vector3 &to)
{
    const double angle = (std::atan2(to.y(), to.x()) - std::atan2(from.y(), from.x())) * 180 / M_PI;
    return angle < 0 ? angle + 360 : angle;
}

// Whether the neighbours have the stereo if the one behind `bond` is above the plane. A hydrogen that is no atom is opposite to the others.
static bool is_up(OBMol &mol, const OBTetrahedralStereo::Config &c, OBBond *bond)
{
    OBAtom *centre = mol.GetAtomById(c.center);
    vector3 at[4], sum(0, 0, 0);
    std::vector<unsigned long> ids = { c.from };
    ids.insert(ids.end(), c.refs.begin(), c.refs.end());
    size_t missing = 4;
    for (size_t k = 0; k < 4; k++) {
        OBAtom *a = ids[k] == OBStereo::ImplicitRef ? nullptr : mol.GetAtomById(ids[k]);
        if (a == nullptr) {
            missing = k;
            continue;
        }
        at[k] = arm(centre, a);
        at[k].SetZ(bond->GetNbrAtom(centre) == a ? 1 : 0);
        sum += at[k];
    }
    if (missing < 4)
        at[missing] = -sum;
    const double volume = dot(at[0] - at[3], cross(at[1] - at[3], at[2] - at[3]));
    return (volume < 0) == (c.winding == OBStereo::Clockwise);
}

// Of the bonds in the plane: with three neighbours the other two must be less than 180 degrees apart on the side where the wedge is not, and
// with four no two of the other three may be one behind the other.
static bool is_unclear(OBAtom *centre, const OBBond *bond)
{
    std::vector<double> at;
    const vector3 wedge = arm(centre, const_cast<OBBond *>(bond)->GetNbrAtom(centre));
    FOR_BONDS_OF_ATOM(b, centre)
        if (&*b != bond)
            at.push_back(turn(wedge, arm(centre, b->GetNbrAtom(centre))));
    std::sort(at.begin(), at.end());
    bool close = false;
    for (size_t k = 1; k < at.size(); k++)
        close = close || at[k] - at[k - 1] < narrow;
    return close || at.size() < 2 || (at.size() == 2 && at[1] - at[0] > straight);
}

// ---- which bond ----------------------------------------------------------------

// Low: single, out of rings, to an atom at the end that is no centre itself.
static double cost_of(OBStereoFacade &stereo, OBAtom *centre, OBBond *bond)
{
    OBAtom *to = bond->GetNbrAtom(centre);
    double cost = to->GetExplicitDegree() == 1 ? 0 : 2 + static_cast<double>(to->GetExplicitDegree());
    cost += bond->IsInRing() ? 6 : 0;
    cost += to->IsInRing() && !bond->IsInRing() ? 3 : 0;
    cost += stereo.HasTetrahedralStereo(to->GetId()) ? 8 : 0;
    cost += to->GetAtomicNum() != 6 && to->GetExplicitDegree() > 1 ? 1 : 0;
    return cost + (is_unclear(centre, bond) ? unclear : 0);
}

Wedges::Wedges(OBMol &mol) : mol_(mol)
{
    OBStereoFacade stereo(&mol);
    for (const auto &c : marks_of(mol).centres) {
        Centre centre = { c, {}, no_choice };
        OBAtom *at = mol.GetAtomById(c.center);
        FOR_BONDS_OF_ATOM(b, at)
            if (b->GetBondOrder() == 1 && !b->IsAromatic())
                centre.choices.push_back({ &*b, cost_of(stereo, at, &*b) });
        std::stable_sort(centre.choices.begin(), centre.choices.end(),
                         [](const Choice &x, const Choice &y) { return x.cost < y.cost; });
        centres_.push_back(centre);
    }
}

// Finds a bond for a centre; another centre that has it must find another one.
bool Wedges::find(size_t centre, std::vector<bool> &asked)
{
    if (asked[centre])
        return false;
    asked[centre] = true;
    for (size_t k = 0; k < centres_[centre].choices.size(); k++) {
        size_t holder = no_choice;
        for (size_t i = 0; i < centres_.size(); i++)
            if (centres_[i].taken != no_choice && centres_[i].choices[centres_[i].taken].bond == centres_[centre].choices[k].bond)
                holder = i;
        if (holder == no_choice || (holder != centre && find(holder, asked))) {
            centres_[centre].taken = k;
            return true;
        }
    }
    return false;
}

// Of a centre without a choice: 0.
double Wedges::least_cost(const Centre &c) { return c.choices.empty() ? 0 : c.choices[0].cost; }

// Those with the fewest good bonds first.
bool Wedges::assign()
{
    std::vector<size_t> order;
    for (size_t i = 0; i < centres_.size(); i++) {
        order.push_back(i);
        centres_[i].taken = no_choice;
    }
    std::stable_sort(order.begin(), order.end(),
                     [this](size_t a, size_t b) { return least_cost(centres_[a]) > least_cost(centres_[b]); });
    return std::all_of(order.begin(), order.end(), [this](size_t i) {
        std::vector<bool> asked(centres_.size(), false);
        return find(i, asked);
    });
}

void Wedges::put()
{
    FOR_BONDS_OF_MOL(b, mol_) {
        b->SetWedge(false);
        b->SetHash(false);
    }
    for (const Centre &c : centres_) {
        OBBond *b = c.choices[c.taken].bond;
        OBAtom *at = mol_.GetAtomById(c.config.center), *to = b->GetNbrAtom(at);
        b->SetBegin(at);
        b->SetEnd(to);
        if (is_up(mol_, c.config, b))
            b->SetWedge();
        else
            b->SetHash();
    }
}

// One centre after another tries its other bonds; what brings more stereo back is kept.
bool Wedges::solve(const std::function<int(OBMol &)> &judge, int tries)
{
    if (!assign())
        return false;
    put();
    int best = judge(mol_);
    for (size_t i = 0; i < centres_.size() && best < 0; i++)
        for (size_t k = 1; k < centres_[i].choices.size() && best < 0 && tries-- > 0; k++) {
            const std::vector<Centre> was = centres_;
            auto &choices = centres_[i].choices;
            std::rotate(choices.begin(), choices.begin() + static_cast<long>(k), choices.begin() + static_cast<long>(k) + 1);
            int now = best - 1;
            if (assign()) {
                put();
                now = judge(mol_);
            }
            if (now <= best)
                centres_ = was;
            best = std::max(best, now);
        }
    if (best < 0)
        return false;
    put();
    return true;
}

// ---- axes ----------------------------------------------------------------------

// Exchanging the neighbours of both ends changes nothing. Both have the end with the lower index first (cumulated).
static bool is_same(const Axis &x, const Axis &y)
{
    return x.end[0] == y.end[0] && x.end[1] == y.end[1] && (x.at[0] == y.at[0]) == (x.at[2] == y.at[2]);
}

static bool shows(OBMol &mol, const Axis &x)
{
    const std::vector<Axis> seen = axes_placed(mol).axes;
    return std::any_of(seen.begin(), seen.end(), [&](const Axis &y) { return is_same(x, y); });
}

static bool is_free(OBBond &b) { return b.GetBondOrder() == 1 && !b.IsAromatic() && !b.IsWedge() && !b.IsHash(); }

static void put(OBBond *bond, OBAtom *end, bool up)
{
    OBAtom *to = bond->GetNbrAtom(end);
    bond->SetBegin(end);
    bond->SetEnd(to);
    bond->SetWedge(up);
    bond->SetHash(!up);
}

// One bond of the end up and the other one, if there is one, down, or the other way round: whichever shows the axis. (InChI does not see
// a single wedge where both ends have two neighbours.)
static bool put_at(OBMol &mol, OBAtom *end, const Axis &x)
{
    std::vector<OBBond *> bonds;
    FOR_BONDS_OF_ATOM(b, end)
        if (is_free(*b))
            bonds.push_back(&*b);
    if (bonds.empty() || bonds.size() + 1 < end->GetExplicitDegree())
        return false;
    for (const bool up : { true, false }) {
        for (size_t k = 0; k < bonds.size(); k++)
            put(bonds[k], end, up == (k == 0));
        if (shows(mol, x))
            return true;
    }
    for (OBBond *b : bonds) {
        b->SetWedge(false);
        b->SetHash(false);
    }
    return false;
}

bool put_axis_wedges(OBMol &mol, const std::vector<Axis> &axes)
{
    return std::all_of(axes.begin(), axes.end(), [&](const Axis &x) {
        return put_at(mol, mol.GetAtomById(x.end[0]), x) || put_at(mol, mol.GetAtomById(x.end[1]), x);
    });
}

} // namespace worker
