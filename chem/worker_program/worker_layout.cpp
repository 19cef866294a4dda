// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_layout.cpp - positions for drawings: bonds of length 1, as few overlaps as turns about bonds allow, and the
// longer side across.
//
// Open Babel's gen2D leaves some fused rings open, with a bond of several lengths: their atoms are pulled to the lengths and angles of
// regular polygons. It also places rings and chains one after another, so that large substituents may lie on each other: parts of the
// molecule behind a bond outside of rings are mirrored at the bond or turned about its end, whatever helps most, until nothing helps.
// Stereo comes from the SMILES, not from the positions. gen2D draws some double bonds the other way round: the part behind such a bond is
// mirrored at it, or in a large ring one end of the bond is pushed into the ring. Nothing else mirrors a double bond.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/obiter.h>
#include <openbabel/op.h>
#include <openbabel/ring.h>
#include <openbabel/stereo/cistrans.h>
#include <openbabel/stereo/stereo.h>

using namespace OpenBabel;

namespace worker {

namespace {

const double near = 0.6, touching = 0.4, beside_bond = 0.3; // in bond lengths
const double bond_error = 0.25;
const size_t atoms_max = 150; // of a molecule that is repaired
const int rounds = 400, tries = 40;
const double work_max = 6e7; // pairs looked at, in all
const double degree = 0.017453292519943295;

struct Point {
    double x, y;
};

Point operator-(Point a, Point b) { return { a.x - b.x, a.y - b.y }; }
double dot(Point a, Point b) { return a.x * b.x + a.y * b.y; }
double cross(Point a, Point b) { return a.x * b.y - a.y * b.x; }
double length(Point a) { return std::sqrt(dot(a, a)); }

Point turned(Point p, Point about, double angle)
{
    const Point d = p - about;
    const double c = std::cos(angle), s = std::sin(angle);
    return { about.x + c * d.x - s * d.y, about.y + s * d.x + c * d.y };
}

Point mirrored(Point p, Point a, Point b)
{
    const Point axis = b - a, d = p - a;
    const double t = 2 * dot(d, axis) / dot(axis, axis);
    return { a.x + t * axis.x - d.x, a.y + t * axis.y - d.y };
}

double to_segment(Point p, Point a, Point b)
{
    const Point axis = b - a, d = p - a;
    const double n = dot(axis, axis), t = n > 0 ? std::min(1.0, std::max(0.0, dot(d, axis) / n)) : 0;
    return length(p - Point{ a.x + t * axis.x, a.y + t * axis.y });
}

bool is_crossing(Point a, Point b, Point c, Point d)
{
    return cross(b - a, c - a) * cross(b - a, d - a) < 0 && cross(d - c, a - c) * cross(d - c, b - c) < 0;
}

struct Bond {
    size_t a, b;
    bool in_ring, single;
};

struct Distance {
    size_t a, b;
    double length;
};

// A double bond whose neighbours p (of a) and q (of b) are on one side, or on two. So are those at the ends of C=C=C=C, where the atoms
// beside the ends, next_a and next_b, are others.
struct Sided {
    size_t a, b, p, q;
    bool same;
    size_t next_a, next_b;
};

// Angle 0: mirror the atoms of the side at the bond; else turn them about the atom that stays.
struct Move {
    double angle, cost;
};

class Layout {
public:
    Layout(OBMol &mol, const std::vector<OBCisTransStereo::Config> &planes)
        : beside_(mol.NumAtoms()), has_double_(mol.NumAtoms(), false)
    {
        FOR_ATOMS_OF_MOL(a, mol)
            at_.push_back({ a->GetX(), a->GetY() });
        FOR_BONDS_OF_MOL(b, mol) {
            const Bond bond = { b->GetBeginAtomIdx() - 1, b->GetEndAtomIdx() - 1, b->IsInRing(), b->GetBondOrder() == 1 };
            bonds_.push_back(bond);
            beside_[bond.a].push_back(bond.b);
            beside_[bond.b].push_back(bond.a);
            if (!bond.single)
                has_double_[bond.a] = has_double_[bond.b] = true;
        }
        read_stereo(mol);
        for (const Ends &e : planes.empty() ? std::vector<Ends>() : cumulated(mol))
            for (const auto &c : planes)
                if (e.n_bonds % 2 == 1 && has_ends(e, c.begin, c.end))
                    add_sided(mol, c, index_of(e.inner[e.end[0]->GetId() != c.begin]),
                              index_of(e.inner[e.end[0]->GetId() == c.begin]));
        scale();
    }

    // Gives double bonds the stereo that they have, as far as that is possible.
    void turn_double_bonds()
    {
        for (size_t before = 0, now = n_wrong(); now > 0 && now != before;) {
            before = now;
            for (const Sided &s : sided_)
                if (is_wrong(s))
                    turn_one(s);
            now = n_wrong();
        }
    }

    // Whether each end of these double bonds has its two neighbours on two sides. If not, readers take either for the one across.
    bool is_clear() const
    {
        return std::all_of(sided_.begin(), sided_.end(),
                           [this](const Sided &s) { return is_on_two_sides(s.a, s.next_a) && is_on_two_sides(s.b, s.next_b); });
    }

    // Where bonds are too long or too short: from gen2D's positions, then from ones that are shaken more and more; keeps the best.
    void repair(OBMol &mol)
    {
        const std::vector<Point> was = at_;
        std::vector<Point> best = was;
        double min = worst_bond();
        if (min < bond_error || at_.size() > atoms_max)
            return;
        const std::vector<Distance> wanted = distances(mol);
        for (int k = 0; k < tries && min > bond_error; k++) {
            at_ = was;
            shake(0.1 * k);
            relax(wanted);
            if (worst_bond() < min) {
                min = worst_bond();
                best = at_;
            }
        }
        at_ = best;
    }

    void spread()
    {
        double now = crowding();
        for (bool better = true; better && now > 0 && work_ < work_max;)
            better = improve(now);
    }

    // The turn by a multiple of 30 degrees that makes it flattest; as it is, unless that saves a tenth.
    void lie_down()
    {
        const std::vector<Point> was = at_;
        double best = 0.9 * height();
        std::vector<Point> flattest = at_;
        for (int k = 1; k < 6; k++) {
            for (size_t i = 0; i < at_.size(); i++)
                at_[i] = turned(was[i], { 0, 0 }, 30 * k * degree);
            if (height() < best - 1e-6) {
                best = height();
                flattest = at_;
            }
        }
        at_ = flattest;
    }

    // Pairs of atoms that touch, and crossing bonds.
    int overlaps() const
    {
        int n = 0;
        for (size_t i = 0; i < at_.size(); i++)
            for (size_t j = 0; j < i; j++)
                n += length(at_[i] - at_[j]) < touching;
        for (size_t i = 0; i < bonds_.size(); i++)
            for (size_t j = 0; j < i; j++)
                n += crosses(bonds_[i], bonds_[j]);
        return n;
    }

    void store(OBMol &mol) const
    {
        FOR_ATOMS_OF_MOL(a, mol)
            a->SetVector(at_[a->GetIdx() - 1].x, at_[a->GetIdx() - 1].y, 0);
    }

private:
    std::vector<Point> at_;
    std::vector<Bond> bonds_;
    std::vector<std::vector<size_t>> beside_;
    std::vector<bool> has_double_;
    std::vector<Sided> sided_;
    double work_ = 0;
    uint64_t chance_ = 1;

    void read_stereo(OBMol &mol)
    {
        OBStereoFacade stereo(&mol);
        FOR_BONDS_OF_MOL(b, mol) {
            if (!stereo.HasCisTransStereo(b->GetId()))
                continue;
            const OBCisTransStereo::Config c = stereo.GetCisTransStereo(b->GetId())->GetConfig(OBStereo::ShapeU);
            add_sided(mol, c, index_of(mol.GetAtomById(c.end)), index_of(mol.GetAtomById(c.begin)));
        }
    }

    static size_t index_of(const OBAtom *a) { return a->GetIdx() - 1; }

    void add_sided(OBMol &mol, const OBCisTransStereo::Config &c, size_t next_a, size_t next_b)
    {
        const OBAtom *at[4] = { nullptr, nullptr, nullptr, nullptr };
        for (size_t k = 0; k < 4 && c.refs.size() == 4; k++)
            at[k] = c.refs[k] == OBStereo::ImplicitRef ? nullptr : mol.GetAtomById(c.refs[k]);
        const size_t p = at[0] != nullptr ? 0 : 1;
        const size_t q = at[3] != nullptr ? 3 : 2;
        if (c.specified && at[p] != nullptr && at[q] != nullptr)
            sided_.push_back({ index_of(mol.GetAtomById(c.begin)), index_of(mol.GetAtomById(c.end)), index_of(at[p]),
                               index_of(at[q]), p + q == 3, next_a, next_b });
    }

    bool is_wrong(const Sided &s) const
    {
        const Point axis = at_[s.b] - at_[s.a];
        const double sides = cross(axis, at_[s.p] - at_[s.a]) * cross(axis, at_[s.q] - at_[s.a]);
        return !(s.same ? sides > 0 : sides < 0);
    }

    bool is_on_two_sides(size_t end, size_t other) const
    {
        std::vector<double> side;
        for (const size_t i : beside_[end])
            if (i != other)
                side.push_back(cross(at_[other] - at_[end], at_[i] - at_[end]));
        return side.size() != 2 || side[0] * side[1] < 0;
    }

    size_t n_wrong() const
    {
        return static_cast<size_t>(std::count_if(sided_.begin(), sided_.end(), [this](const Sided &s) { return is_wrong(s); }));
    }

    bool is_ring_bond(size_t a, size_t b) const
    {
        return std::any_of(bonds_.begin(), bonds_.end(),
                           [=](const Bond &x) { return x.in_ring && ((x.a == a && x.b == b) || (x.a == b && x.b == a)); });
    }

    void turn_one(const Sided &s)
    {
        if (is_ring_bond(s.a, s.b)) {
            if (!push_in(s.b))
                (void)push_in(s.a);
            return;
        }
        size_t from = s.a, to = s.b;
        if (2 * side(from, to).size() > at_.size())
            std::swap(from, to);
        const Point a = at_[from], b = at_[to];
        for (const size_t i : side(from, to))
            at_[i] = mirrored(at_[i], a, b);
    }

    // Mirrors an atom of one ring at the line between its neighbours there; what hangs on it moves along. false: that would not give more
    // double bonds their stereo, or would put the atom on another one.
    bool push_in(size_t atom)
    {
        const std::vector<Point> was = at_;
        const size_t wrong = n_wrong();
        std::vector<size_t> in_ring, beside;
        for (const size_t i : beside_[atom])
            (is_ring_bond(atom, i) ? in_ring : beside).push_back(i);
        if (in_ring.size() != 2)
            return false;
        at_[atom] = mirrored(at_[atom], at_[in_ring[0]], at_[in_ring[1]]);
        for (const size_t to : beside)
            for (const size_t i : side(atom, to))
                at_[i] = at_[i] - (was[atom] - at_[atom]);
        bool free = true;
        for (size_t i = 0; i < at_.size(); i++)
            free = free && (i == atom || length(at_[i] - at_[atom]) > touching);
        if (free && n_wrong() < wrong)
            return true;
        at_ = was;
        return false;
    }

    // The same numbers for every molecule and run.
    void shake(double by)
    {
        for (Point &p : at_)
            for (double *x : { &p.x, &p.y }) {
                chance_ = chance_ * 6364136223846793005u + 1442695040888963407u;
                *x += by * (static_cast<double>(chance_ >> 40) / 16777216 - 0.5);
            }
    }

    void relax(const std::vector<Distance> &wanted)
    {
        for (int round = 0; round < rounds; round++) {
            for (const Distance &d : wanted)
                pull(d.a, d.b, d.length, 0.5);
            for (size_t i = 0; i < at_.size() && round < rounds / 2; i++)
                for (size_t j = 0; j < i; j++)
                    if (length(at_[i] - at_[j]) < 0.9)
                        pull(i, j, 1, 0.05);
        }
    }

    double worst_bond() const
    {
        double worst = 0;
        for (const Bond &b : bonds_)
            worst = std::max(worst, std::fabs(length(at_[b.a] - at_[b.b]) - 1));
        return worst;
    }

    // Moves both atoms by a share of what they lack.
    void pull(size_t a, size_t b, double wanted, double share)
    {
        const Point d = at_[b] - at_[a];
        const double now = length(d);
        if (!(now > 1e-9))
            return;
        const double move = share / 2 * (now - wanted) / now;
        at_[a] = { at_[a].x + move * d.x, at_[a].y + move * d.y };
        at_[b] = { at_[b].x - move * d.x, at_[b].y - move * d.y };
    }

    // The smallest ring that has all three atoms; 0: none.
    static size_t ring_of(OBMol &mol, OBAtom *a, OBAtom *b, OBAtom *c)
    {
        size_t size = 0;
        for (OBRing *r : mol.GetSSSR())
            if (r->IsMember(a) && r->IsMember(b) && r->IsMember(c) && (size == 0 || r->Size() < size))
                size = r->Size();
        return size;
    }

    // Of bonded atoms, and of the neighbours of one: as in a regular polygon, or 120 degrees.
    static std::vector<Distance> distances(OBMol &mol)
    {
        std::vector<Distance> list;
        FOR_BONDS_OF_MOL(b, mol)
            list.push_back({ b->GetBeginAtomIdx() - 1, b->GetEndAtomIdx() - 1, 1 });
        FOR_ATOMS_OF_MOL(k, mol)
            FOR_NBORS_OF_ATOM(i, &*k)
                FOR_NBORS_OF_ATOM(j, &*k) {
                    const size_t n = j->GetIdx() < i->GetIdx() ? ring_of(mol, &*i, &*k, &*j) : 0;
                    if (n > 0)
                        list.push_back({ i->GetIdx() - 1, j->GetIdx() - 1, 2 * std::cos(M_PI / static_cast<double>(n)) });
                    else if (j->GetIdx() < i->GetIdx() && k->GetExplicitDegree() < 4 && k->GetHyb() != 1)
                        list.push_back({ i->GetIdx() - 1, j->GetIdx() - 1, std::sqrt(3) });
                }
        return list;
    }

    // The mean bond becomes 1.
    void scale()
    {
        double sum = 0;
        for (const Bond &b : bonds_)
            sum += length(at_[b.a] - at_[b.b]);
        if (!(sum > 0) || !std::isfinite(sum))
            return;
        for (Point &p : at_)
            p = { p.x * static_cast<double>(bonds_.size()) / sum, p.y * static_cast<double>(bonds_.size()) / sum };
    }

    double height() const
    {
        double low = 0, high = 0;
        for (size_t i = 0; i < at_.size(); i++) {
            low = i == 0 ? at_[i].y : std::min(low, at_[i].y);
            high = i == 0 ? at_[i].y : std::max(high, at_[i].y);
        }
        return high - low;
    }

    bool crosses(const Bond &x, const Bond &y) const
    {
        return x.a != y.a && x.a != y.b && x.b != y.a && x.b != y.b && is_crossing(at_[x.a], at_[x.b], at_[y.a], at_[y.b]);
    }

    // 0: nothing is close to anything that it is not bonded to.
    double crowding()
    {
        double sum = 0;
        for (size_t i = 0; i < at_.size(); i++)
            for (size_t j = 0; j < i; j++) {
                const double d = length(at_[i] - at_[j]);
                sum += d < near ? (near - d) / near : 0;
            }
        for (size_t i = 0; i < bonds_.size(); i++)
            for (size_t j = 0; j < i; j++)
                sum += crosses(bonds_[i], bonds_[j]);
        for (const Bond &b : bonds_)
            for (size_t i = 0; i < at_.size(); i++)
                if (i != b.a && i != b.b) {
                    const double d = to_segment(at_[i], at_[b.a], at_[b.b]);
                    sum += d < beside_bond ? (beside_bond - d) / beside_bond : 0;
                }
        const double n = static_cast<double>(at_.size()), m = static_cast<double>(bonds_.size());
        work_ += n * n / 2 + m * m / 2 + n * m;
        return sum;
    }

    // The atoms that hang on `to`, seen from `from`.
    std::vector<size_t> side(size_t from, size_t to) const
    {
        std::vector<size_t> found(1, to);
        std::vector<bool> seen(at_.size(), false);
        seen[from] = seen[to] = true;
        for (size_t k = 0; k < found.size(); k++)
            for (size_t i : beside_[found[k]])
                if (!seen[i]) {
                    seen[i] = true;
                    found.push_back(i);
                }
        return found;
    }

    std::vector<Move> moves(const Bond &b, size_t from, size_t n_moved) const
    {
        std::vector<Move> list;
        if (b.single && n_moved > 1)
            list.push_back({ 0, 0 });
        for (int angle : { 30, -30, 15, -15 })
            list.push_back({ angle * degree, 0.02 });
        if (!has_double_[from])
            for (int angle : { 60, -60 })
                list.push_back({ angle * degree, 0.05 });
        return list;
    }

    // Keeps the move that helps most; false: none does.
    bool improve(double &now)
    {
        const std::vector<Point> was = at_;
        std::vector<Point> best = was;
        double min = now - 1e-3;
        for (const Bond &b : bonds_) {
            if (b.in_ring)
                continue;
            std::vector<size_t> moved = side(b.a, b.b);
            const bool other = 2 * moved.size() > at_.size();
            size_t from = b.a, to = b.b;
            if (other) {
                std::swap(from, to);
                moved = side(from, to);
            }
            for (const Move &m : moves(b, from, moved.size())) {
                for (size_t i : moved)
                    at_[i] = m.angle == 0 ? mirrored(was[i], was[from], was[to]) : turned(was[i], was[from], m.angle);
                const double sum = crowding() + m.cost;
                if (sum < min) {
                    min = sum;
                    best = at_;
                }
                for (size_t i : moved)
                    at_[i] = was[i];
            }
            if (work_ > work_max)
                break;
        }
        at_ = best;
        const bool better = min < now - 1e-3;
        now = better ? crowding() : now;
        return better;
    }
};

} // namespace

int mol_lay_out(OBMol &mol, const std::vector<OBCisTransStereo::Config> &planes, bool &clear)
{
    OBOp *generate = OBOp::FindType("gen2D");
    if (generate == nullptr || !generate->Do(&mol))
        fail(CH_INTERNAL, "no positions for a drawing");
    Layout layout(mol, planes);
    layout.repair(mol);
    layout.turn_double_bonds();
    layout.spread();
    layout.lie_down();
    layout.store(mol);
    mol.SetDimension(2);
    stereo_in_order(mol);
    clear = layout.is_clear();
    return layout.overlaps();
}

} // namespace worker
