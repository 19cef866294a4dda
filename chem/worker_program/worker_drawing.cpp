// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_drawing.cpp - gives groups that are drawn in several ways one drawing.
//
// Only bond orders and formal charges change; atoms, hydrogens, connections and the net charge stay (docs/SCIENCE.md). Nitrogen has four
// bonds at most (nitro, N-oxide, azide, diazo and isonitrile have charges); S, P and halogens have none (S=O, P=O, Cl=O). Opposite charges
// that a shift of double bonds joins are removed.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/graphsym.h>
#include <openbabel/obiter.h>

using namespace OpenBabel;

namespace worker {

namespace {

const int path_max = 12;      // double bonds that move together
const int steps_max = 100000; // atoms visited in all searches of a molecule

// The atoms, in an order that does not depend on the file.
class Order {
public:
    explicit Order(OBMol &mol) : mol_(mol) {}

    // Whether a comes before b: by element, isotope, symmetry class and, of a molecule with positions, place.
    bool before(OBAtom *a, OBAtom *b)
    {
        rank();
        return key(a) < key(b);
    }

    std::vector<OBAtom *> sorted(std::vector<OBAtom *> atoms)
    {
        std::stable_sort(atoms.begin(), atoms.end(), [this](OBAtom *a, OBAtom *b) { return before(a, b); });
        return atoms;
    }

private:
    OBMol &mol_;
    std::vector<unsigned> class_, place_;

    std::array<unsigned, 4> key(OBAtom *a) const
    {
        const size_t i = a->GetIdx() - 1;
        return { a->GetAtomicNum(), a->GetIsotope(), class_[i], place_.empty() ? 0 : place_[i] };
    }

    void rank()
    {
        if (!class_.empty())
            return;
        OBGraphSym(&mol_).GetSymmetry(class_);
        if (mol_.GetDimension() != 3)
            return;
        place_.resize(mol_.NumAtoms());
        unsigned n = 0;
        for (const Place &p : own_order(mol_))
            place_[p.atom->GetIdx() - 1] = n++;
    }
};

bool is_chalcogen(unsigned z) { return z == 8 || z == 16 || z == 34 || z == 52; }

int valence(OBAtom *a) { return static_cast<int>(a->GetTotalValence()); }

bool beside_metal(OBAtom *a)
{
    FOR_NBORS_OF_ATOM(n, a)
        if (is_metal(n->GetAtomicNum()))
            return true;
    return false;
}

bool beside_charge(OBAtom *a, int sign)
{
    FOR_NBORS_OF_ATOM(n, a)
        if (n->GetFormalCharge() * sign > 0)
            return true;
    return false;
}

bool is_terminal(OBAtom *a) { return a->GetTotalDegree() == 1; }

void shift(OBBond *bond, int orders) { bond->SetBondOrder(static_cast<unsigned>(static_cast<int>(bond->GetBondOrder()) + orders)); }

void charge(OBAtom *a, int more) { a->SetFormalCharge(a->GetFormalCharge() + more); }

// ---- nitrogen with five bonds: nitro, N-oxide, nitrone, azide, diazo

// The lowest takes the electrons: O (S, Se, Te), then the last N of N#N, then another N, one of the same ring last. -1: none of these.
int rank_of_partner(OBAtom *nitrogen, OBAtom *a)
{
    const unsigned order = nitrogen->GetBond(a)->GetBondOrder(), z = a->GetAtomicNum();
    if (order < 2 || a->GetFormalCharge() != 0 || beside_metal(a))
        return -1;
    if (is_chalcogen(z))
        return order == 2 && is_terminal(a) ? 0 : -1;
    if (z != 7 || valence(a) != 3)
        return -1;
    if (order == 3 && is_terminal(a))
        return 1;
    return nitrogen->GetBond(a)->IsInRing() ? 3 : 2;
}

// Without hydrogen: Open Babel adds one to the nitrogen of [O-]N(=O)C, which lacks a charge.
bool has_five_bonds(OBAtom *a)
{
    return a->GetAtomicNum() == 7 && a->GetFormalCharge() == 0 && valence(a) == 5 && a->GetImplicitHCount() == 0 &&
           a->ExplicitHydrogenCount() == 0 && !beside_metal(a);
}

bool separate(OBAtom *nitrogen, Order &order)
{
    OBAtom *best = nullptr;
    int min = 4;
    if (!has_five_bonds(nitrogen))
        return false;
    FOR_NBORS_OF_ATOM(n, nitrogen) {
        const int rank = rank_of_partner(nitrogen, &*n);
        if (rank >= 0 && (rank < min || (rank == min && order.before(&*n, best)))) {
            best = &*n;
            min = rank;
        }
    }
    if (best == nullptr)
        return false;
    shift(nitrogen->GetBond(best), -1);
    charge(nitrogen, 1);
    charge(best, -1);
    return true;
}

// ---- isonitriles without charges

// The bond to the terminal carbon, or NULL.
OBBond *isonitrile_bond(OBAtom *nitrogen)
{
    if (nitrogen->GetAtomicNum() != 7 || nitrogen->GetFormalCharge() != 0 || nitrogen->GetTotalDegree() != 2)
        return nullptr;
    FOR_BONDS_OF_ATOM(b, nitrogen) {
        OBAtom *c = b->GetNbrAtom(nitrogen);
        const unsigned bonds = b->GetBondOrder();
        if (c->GetAtomicNum() != 6 || c->GetFormalCharge() != 0 || !is_terminal(c) || beside_metal(nitrogen))
            continue;
        if ((bonds == 3 && valence(nitrogen) == 4) || (bonds == 2 && valence(nitrogen) == 3))
            return &*b;
    }
    return nullptr;
}

bool separate_isonitrile(OBAtom *nitrogen)
{
    OBBond *b = isonitrile_bond(nitrogen);
    if (b == nullptr)
        return false;
    b->SetBondOrder(3);
    charge(nitrogen, 1);
    charge(b->GetNbrAtom(nitrogen), -1);
    return true;
}

// ---- neighbours of opposite charge: S+-O-, P+-O-, Cl+-O-, C+-O-

bool may_have(unsigned z, int bonds)
{
    switch (z) {
    case 6: return bonds == 4;
    case 15:
    case 33:
    case 51: return bonds == 5;
    case 16:
    case 34:
    case 52: return bonds == 4 || bonds == 6;
    case 17:
    case 35:
    case 53: return bonds == 3 || bonds == 5 || bonds == 7;
    default: return false;
    }
}

// An anion with a lone pair for one more bond.
bool is_donor(OBAtom *a)
{
    const unsigned z = a->GetAtomicNum();
    return a->GetFormalCharge() < 0 && (z == 6 || z == 7 || is_chalcogen(z)) && !beside_metal(a) &&
           valence(a) - a->GetFormalCharge() == (z == 52 ? 2 : usual_valence(z));
}

// Oxygen first, carbon last.
int rank_of_donor(OBAtom *a)
{
    const unsigned z = a->GetAtomicNum();
    return is_chalcogen(z) ? static_cast<int>(z) : 100 - static_cast<int>(z);
}

std::vector<OBAtom *> donors_beside(OBAtom *a, Order &order)
{
    std::vector<OBAtom *> found;
    FOR_NBORS_OF_ATOM(n, a)
        if (is_donor(&*n) && (a->GetAtomicNum() != 6 || n->GetAtomicNum() != 6))
            found.push_back(&*n);
    if (found.size() > 1) {
        found = order.sorted(found);
        std::stable_sort(found.begin(), found.end(), [](OBAtom *x, OBAtom *y) { return rank_of_donor(x) < rank_of_donor(y); });
    }
    return found;
}

// How many charges the atom loses: all, or one of N+2 between two O- (nitro).
int charges_to_lose(OBAtom *a)
{
    const int q = a->GetFormalCharge();
    if (a->GetAtomicNum() == 7)
        return q == 2 && valence(a) == 3 ? 1 : 0;
    return q > 0 && may_have(a->GetAtomicNum(), valence(a) + q) ? q : 0;
}

// S+2 beside one O- stays, because it would keep a charge.
bool join(OBAtom *a, Order &order)
{
    const int n = charges_to_lose(a);
    if (n == 0 || beside_metal(a))
        return false;
    const std::vector<OBAtom *> donors = donors_beside(a, order);
    if (donors.size() < static_cast<size_t>(a->GetFormalCharge()))
        return false;
    for (size_t i = 0; i < static_cast<size_t>(n); i++) {
        shift(a->GetBond(donors[i]), 1);
        charge(donors[i], 1);
    }
    charge(a, -n);
    return true;
}

// ---- X- and N+#N, side by side: X=N+=N- (azide, diazo)

// The end of a diazonium group, or NULL.
OBAtom *diazonium_end(OBAtom *a)
{
    if (a->GetAtomicNum() != 7 || a->GetFormalCharge() != 1 || a->GetTotalDegree() != 2 || valence(a) != 4)
        return nullptr;
    FOR_BONDS_OF_ATOM(b, a) {
        OBAtom *n = b->GetNbrAtom(a);
        if (b->GetBondOrder() == 3 && n->GetAtomicNum() == 7 && n->GetFormalCharge() == 0 && is_terminal(n))
            return n;
    }
    return nullptr;
}

bool join_diazonium(OBAtom *a)
{
    OBAtom *end = diazonium_end(a);
    if (end == nullptr)
        return false;
    FOR_BONDS_OF_ATOM(b, a) {
        OBAtom *x = b->GetNbrAtom(a);
        if (x == end || b->GetBondOrder() != 1 || !is_donor(x) || is_chalcogen(x->GetAtomicNum()))
            continue;
        shift(&*b, 1);
        shift(a->GetBond(end), -1);
        charge(x, 1);
        charge(end, -1);
        return true;
    }
    return false;
}

// ---- opposite charges joined by alternating bonds: X-, single, double ... single, double, Y+

class Recombiner {
public:
    Recombiner(OBMol &mol, Order &order) : mol_(mol), order_(order), seen_(mol.NumAtoms() + 1, false) {}

    // Moves the double bonds of a path from x to the nearest atom that takes its charge; false: there is none. Which atoms have a path
    // does not depend on how the double bonds of aromatic rings are drawn; how long it is does.
    bool from(OBAtom *x)
    {
        for (OBAtom *target : targets(x)) {
            target_ = target;
            for (int length = 1; length <= path_max && steps_ > 0; length++) {
                bonds_.clear();
                if (search(x, length))
                    return apply(x);
            }
        }
        return false;
    }

private:
    OBMol &mol_;
    Order &order_;
    std::vector<bool> seen_;
    std::vector<OBBond *> bonds_;
    int steps_ = steps_max;
    OBAtom *target_ = nullptr;
    OBBond *last_ = nullptr; // from the end of the path to a target that takes a bond; NULL: the target is the end

    // Y+, the end of a double bond.
    static bool is_acceptor(OBAtom *a)
    {
        const int usual = usual_valence(a->GetAtomicNum());
        return a->GetFormalCharge() == 1 && a->GetAtomicNum() != 6 && usual > 0 && valence(a) == usual + 1 &&
               !beside_charge(a, -1) && !beside_metal(a);
    }

    // Beside a carbon: C-N+#N becomes C=N+=N-, C-P+ becomes C=P.
    static bool takes_bond(OBAtom *a)
    {
        const unsigned z = a->GetAtomicNum();
        if (diazonium_end(a) != nullptr)
            return true;
        return z != 6 && a->GetFormalCharge() == 1 && may_have(z, valence(a) + 1) && !beside_metal(a);
    }

    static bool carries(OBAtom *a)
    {
        const unsigned z = a->GetAtomicNum();
        return (a->GetFormalCharge() == 0 && (z == 6 || z == 7) && valence(a) == usual_valence(z)) || is_acceptor(a);
    }

    // Nearest first, in numbers of bonds.
    std::vector<OBAtom *> targets(OBAtom *x)
    {
        std::vector<OBAtom *> found;
        FOR_ATOMS_OF_MOL(a, mol_)
            if (is_acceptor(&*a) || takes_bond(&*a))
                found.push_back(&*a);
        found = found.size() > 1 ? order_.sorted(found) : found;
        const std::vector<int> far = distances(x);
        std::stable_sort(found.begin(), found.end(), [&far](OBAtom *a, OBAtom *b) { return far[a->GetIdx()] < far[b->GetIdx()]; });
        return found;
    }

    std::vector<int> distances(OBAtom *x)
    {
        std::vector<int> far(mol_.NumAtoms() + 1, -1);
        std::vector<OBAtom *> queue(1, x);
        far[x->GetIdx()] = 0;
        for (size_t i = 0; i < queue.size(); i++)
            FOR_NBORS_OF_ATOM(n, queue[i])
                if (far[n->GetIdx()] < 0) {
                    far[n->GetIdx()] = far[queue[i]->GetIdx()] + 1;
                    queue.push_back(&*n);
                }
        return far;
    }

    std::vector<OBAtom *> neighbours(OBAtom *a, unsigned bonds)
    {
        std::vector<OBAtom *> found;
        FOR_BONDS_OF_ATOM(b, a)
            if (b->GetBondOrder() == bonds && !seen_[b->GetNbrAtom(a)->GetIdx()])
                found.push_back(b->GetNbrAtom(a));
        return found.size() > 1 ? order_.sorted(found) : found;
    }

    // Two bonds further: single to `a`, double to its end.
    bool search(OBAtom *from, int length)
    {
        bool found = false;
        seen_[from->GetIdx()] = true;
        for (OBAtom *a : neighbours(from, 1)) {
            if (found || --steps_ <= 0 || !carries(a))
                continue;
            bonds_.push_back(from->GetBond(a));
            seen_[a->GetIdx()] = true;
            found = leave(a, length);
            seen_[a->GetIdx()] = false;
            if (!found)
                bonds_.pop_back();
        }
        seen_[from->GetIdx()] = false;
        return found;
    }

    bool leave(OBAtom *a, int length)
    {
        for (OBAtom *b : neighbours(a, 2)) {
            bonds_.push_back(a->GetBond(b));
            if (length == 1 ? is_end(b) : carries(b) && search(b, length - 1))
                return true;
            bonds_.pop_back();
        }
        return false;
    }

    bool is_end(OBAtom *b)
    {
        last_ = nullptr;
        if (b == target_)
            return is_acceptor(b);
        last_ = b->GetAtomicNum() == 6 && carries(b) && takes_bond(target_) ? b->GetBond(target_) : nullptr;
        return last_ != nullptr && last_->GetBondOrder() == 1;
    }

    bool apply(OBAtom *x)
    {
        OBAtom *end = diazonium_end(target_);
        for (size_t i = 0; i < bonds_.size(); i++)
            shift(bonds_[i], i % 2 == 0 ? 1 : -1);
        if (last_ != nullptr)
            shift(last_, 1);
        if (end != nullptr)
            shift(target_->GetBond(end), -1);
        charge(x, 1);
        charge(end != nullptr ? end : target_, -1);
        return true;
    }
};

int recombine(OBMol &mol, Order &order)
{
    std::vector<OBAtom *> donors;
    int changed = 0;
    bool positive = false;
    FOR_ATOMS_OF_MOL(a, mol) {
        positive = positive || a->GetFormalCharge() > 0;
        if (a->GetFormalCharge() < 0 && is_donor(&*a) && !beside_charge(&*a, 1))
            donors.push_back(&*a);
    }
    if (donors.empty() || !positive)
        return 0;
    Recombiner recombiner(mol, order);
    for (OBAtom *x : order.sorted(donors))
        changed += recombiner.from(x);
    return changed;
}

int for_all(OBMol &mol, const std::function<bool(OBAtom *)> &rule)
{
    int changed = 0;
    FOR_ATOMS_OF_MOL(a, mol)
        changed += rule(&*a);
    return changed;
}

} // namespace

bool is_drawn_uncharged(OBAtom *nitrogen)
{
    FOR_NBORS_OF_ATOM(n, nitrogen)
        if (has_five_bonds(nitrogen) && rank_of_partner(nitrogen, &*n) >= 0)
            return true;
    return isonitrile_bond(nitrogen) != nullptr;
}

void mol_one_drawing(OBMol &mol)
{
    OBMol was = mol;
    Order order(mol);
    int changed = for_all(mol, [&order](OBAtom *a) { return separate(a, order); });
    changed += for_all(mol, separate_isonitrile);
    changed += for_all(mol, [&order](OBAtom *a) { return join(a, order); });
    changed += for_all(mol, join_diazonium);
    changed += recombine(mol, order);
    if (changed > 0) {
        mol.SetHybridizationPerceived(false);
        perceive_again(mol, was);
    }
}

} // namespace worker
