// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_axes.cpp - stereo about an axis: allenes, longer cumulenes and hindered biaryls (atropisomers).
//
// Open Babel reads no mark of an allene and knows no atropisomers, so its SMILES has neither. Marks of allenes are read from the text of
// the record (and with them those of P, As, Se with a lone pair, which it does not read either), and both kinds from positions and wedges. An axis is two end atoms with two neighbours each: the four
// neighbours are the corners of a tetrahedron, whose sign is that of a centre (chem/structures/stereo.h).
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/graphsym.h>
#include <openbabel/obiter.h>

using namespace OpenBabel;

namespace worker {

static const double least_twist = 0.3; // of a volume, in that of a rectangular one: drawn flatter, an axis is not defined

// ---- which axes a molecule has -----------------------------------------------

namespace {
// From one end to the other: atoms and the neighbours that point at each other.
struct Ends {
    OBAtom *end[2] = { nullptr, nullptr }, *inner[2] = { nullptr, nullptr };
    int n_bonds = 0; // from end to end
};
} // namespace

static bool is_double(const OBBond *b) { return b != nullptr && b->GetBondOrder() == 2 && !b->IsAromatic(); }

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

static std::vector<Ends> cumulated(OBMol &mol)
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

static std::vector<unsigned> classes_of(OBMol &mol)
{
    std::vector<unsigned> classes;
    OBGraphSym(&mol).GetSymmetry(classes);
    return classes;
}

int open_axes(OBMol &mol)
{
    const std::vector<Ends> all = cumulated(mol);
    if (all.empty())
        return 0;
    const std::vector<unsigned> classes = classes_of(mol);
    return static_cast<int>(std::count_if(all.begin(), all.end(), [&](const Ends &e) { return has_two_forms(classes, e); }));
}

bool is_axis(OBMol &mol, const Axis &x)
{
    const std::vector<unsigned> classes = classes_of(mol);
    for (const auto &list : { cumulated(mol), hindered(mol) })
        for (const Ends &e : list) {
            const unsigned long p = e.end[0]->GetId(), q = e.end[1]->GetId();
            if (std::min(p, q) == std::min(x.end[0], x.end[1]) && std::max(p, q) == std::max(x.end[0], x.end[1]))
                return has_two_forms(classes, e);
        }
    return false;
}

// ---- from the text of a SMILES -----------------------------------------------

namespace {
enum { HYDROGEN = -1, UNKNOWN = -2 };

// The atoms of a SMILES with their neighbours in the order of the text, as far as marks of allenes need it.
struct Text {
    std::vector<std::vector<int>> near;                    // numbers of atoms, or HYDROGEN
    std::vector<bool> follows;                             // the first neighbour stands before the atom
    std::vector<int> sign;                                 // 1: @, -1: @@, 0: neither
    std::map<std::string, std::pair<size_t, size_t>> open; // rings: atom, place among its neighbours
    std::vector<int> branches;
    int last = UNKNOWN;

    void atom(bool hydrogen, int mark)
    {
        const int me = static_cast<int>(near.size());
        near.emplace_back();
        follows.push_back(last >= 0);
        sign.push_back(mark);
        if (last >= 0) {
            near.back().push_back(last);
            near[static_cast<size_t>(last)].push_back(me);
        }
        if (hydrogen)
            near.back().push_back(HYDROGEN);
        last = me;
    }
    void ring(const std::string &name)
    {
        if (last < 0)
            return;
        const auto found = open.find(name);
        auto &mine = near[static_cast<size_t>(last)];
        if (found == open.end()) {
            open[name] = { static_cast<size_t>(last), mine.size() };
            mine.push_back(UNKNOWN);
            return;
        }
        near[found->second.first][found->second.second] = last;
        mine.push_back(static_cast<int>(found->second.first));
        open.erase(found);
    }
};
} // namespace

// An atom in brackets: its hydrogens and its mark.
static void read_bracket(Text &t, const std::string &s)
{
    const size_t symbol = s.find_first_not_of("0123456789"), mark = s.find('@');
    const bool hydrogen = symbol != std::string::npos && s.find('H', symbol + 1) != std::string::npos;
    int sign = 0;
    if (mark != std::string::npos)
        sign = s.compare(mark, 2, "@@") == 0 ? -1 : 1;
    t.atom(hydrogen, sign);
}

// What stands at i; returns the next place.
static size_t read_one(Text &t, const std::string &s, size_t i)
{
    const char c = s[i];
    if (c == '[') {
        const size_t end = std::min(s.find(']', i), s.size());
        read_bracket(t, s.substr(i + 1, end - i - 1));
        return end + 1;
    }
    if (c == '%') {
        const bool wide = s.compare(i + 1, 1, "(") == 0;
        const size_t end = wide ? std::min(s.find(')', i), s.size()) : i + 3;
        t.ring(wide ? s.substr(i + 2, end - i - 2) : s.substr(i + 1, 2));
        return wide ? end + 1 : end;
    }
    if (std::isdigit(static_cast<unsigned char>(c)) != 0)
        t.ring(std::string(1, c));
    else if (c == '(')
        t.branches.push_back(t.last);
    else if (c == ')' && !t.branches.empty()) {
        t.last = t.branches.back();
        t.branches.pop_back();
    } else if (c == '.')
        t.last = UNKNOWN;
    else if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '*') {
        t.atom(false, 0);
        return i + (s.compare(i, 2, "Cl") == 0 || s.compare(i, 2, "Br") == 0 ? 2 : 1);
    }
    return i + 1;
}

// The two neighbours of an end in the order of the text; a hydrogen that is not written follows the atom before.
static bool sides_of(const Text &t, OBMol &mol, OBAtom *end, const OBAtom *inner, unsigned long out[2])
{
    const size_t me = end->GetIdx() - 1;
    std::vector<int> near = t.near[me];
    if (near.size() == 2)
        near.insert(near.begin() + (t.follows[me] ? 1 : 0), static_cast<int>(HYDROGEN));
    size_t n = 0;
    for (const int k : near) {
        OBAtom *a = k >= 0 ? mol.GetAtom(k + 1) : nullptr;
        if (k == UNKNOWN || (a != nullptr && end->GetBond(a) == nullptr))
            return false;
        if (a == nullptr || a != inner) {
            if (n == 2)
                return false;
            out[n++] = a == nullptr ? static_cast<unsigned long>(OBStereo::ImplicitRef) : a->GetId();
        }
    }
    return n == 2;
}

// A mark stands on the middle atom, whose neighbours in the text say which end comes first.
static bool axis_of_mark(const Text &t, OBMol &mol, const std::vector<Ends> &all, size_t middle, Axis &x)
{
    OBAtom *at = mol.GetAtom(static_cast<int>(middle) + 1);
    const std::vector<int> &near = t.near[middle];
    if (near.size() != 2 || near[0] < 0 || near[1] < 0)
        return false;
    for (Ends e : all) {
        OBAtom *from = e.end[0], *here = e.inner[0];
        for (int k = 1; k < e.n_bonds / 2; k++) {
            OBAtom *to = next_cumulated(here, from);
            from = here;
            here = to;
        }
        if (e.n_bonds % 2 != 0 || here != at)
            continue;
        if (static_cast<int>(from->GetIdx()) - 1 != near[0]) {
            std::swap(e.end[0], e.end[1]);
            std::swap(e.inner[0], e.inner[1]);
        }
        x.end[0] = e.end[0]->GetId();
        x.end[1] = e.end[1]->GetId();
        if (!sides_of(t, mol, e.end[0], e.inner[0], x.at) || !sides_of(t, mol, e.end[1], e.inner[1], x.at + 2))
            return false;
        if (t.sign[middle] < 0)
            std::swap(x.at[2], x.at[3]);
        return true;
    }
    return false;
}

// Three neighbours and a lone pair, which follows the atom before like a hydrogen that is not written.
static bool centre_of_mark(const Text &t, OBMol &mol, size_t which, OBTetrahedralStereo::Config &c)
{
    OBAtom *at = mol.GetAtom(static_cast<int>(which) + 1);
    std::vector<unsigned long> near;
    for (const int k : t.near[which]) {
        OBAtom *a = k >= 0 ? mol.GetAtom(k + 1) : nullptr;
        if (a == nullptr || at->GetBond(a) == nullptr)
            return false;
        near.push_back(a->GetId());
    }
    if (near.size() != 3 || at->GetAtomicNum() == 6)
        return false;
    near.insert(near.begin() + (t.follows[which] ? 1 : 0), static_cast<unsigned long>(OBStereo::ImplicitRef));
    if (t.sign[which] > 0) // anticlockwise
        std::swap(near[2], near[3]);
    c = OBTetrahedralStereo::Config(at->GetId(), near[0], { near[1], near[2], near[3] });
    return !OBStereoFacade(&mol).HasTetrahedralStereo(at->GetId());
}

Marks marks_written(OBMol &mol, const std::string &text)
{
    const std::string smiles = first_word(text);
    Marks m;
    Text t;
    for (size_t i = 0; i < smiles.size();)
        i = read_one(t, smiles, i);
    if (t.near.size() != mol.NumAtoms())
        return m;
    const std::vector<Ends> all = cumulated(mol);
    for (size_t k = 0; k < t.sign.size(); k++) {
        Axis x;
        OBTetrahedralStereo::Config c;
        if (t.sign[k] != 0 && axis_of_mark(t, mol, all, k, x))
            m.axes.push_back(x);
        else if (t.sign[k] != 0 && centre_of_mark(t, mol, k, c))
            m.centres.push_back(c);
    }
    return m;
}

int unread_planes(OBMol &mol, const std::string &text)
{
    if (first_word(text).find_first_of("/\\") == std::string::npos)
        return 0;
    const std::vector<Ends> all = cumulated(mol);
    return static_cast<int>(std::count_if(all.begin(), all.end(), [](const Ends &e) { return e.n_bonds % 2 == 1; }));
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

std::vector<Axis> axes_placed(OBMol &mol)
{
    std::vector<Axis> axes;
    for (const auto &list : { cumulated(mol), hindered(mol) })
        for (const Ends &e : list) {
            Axis x;
            if ((e.n_bonds == 1 || e.n_bonds % 2 == 0) && axis_placed(e, mol.GetDimension() == 2, x))
                axes.push_back(x);
        }
    return axes;
}

} // namespace worker
