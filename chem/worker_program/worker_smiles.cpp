// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_smiles.cpp - marks in the text of a SMILES that Open Babel neither reads nor writes.
//
// Of allenes and longer chains of double bonds (worker_axes.cpp), and of atoms with three neighbours and a lone pair: P, As, Se, Sb, Te, I,
// Bi. They are read from the text of a record and put into that of its canonical SMILES.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/obiter.h>

using namespace OpenBabel;

namespace worker {

// ---- from the text of a SMILES -----------------------------------------------

namespace {
enum { HYDROGEN = -1, UNKNOWN = -2 };

// The atoms of a SMILES with their neighbours in the order of the text, as far as marks of allenes need it.
struct Text {
    std::vector<std::vector<int>> near;                    // numbers of atoms, or HYDROGEN
    std::vector<std::vector<int>> side;                    // of each neighbour: 1 above the atom, -1 below (/ and \\), 0 not said
    std::vector<size_t> from;                              // where the atom stands in the text
    std::vector<bool> follows;                             // the first neighbour stands before the atom
    std::vector<int> sign;                                 // 1: @, -1: @@, 0: neither
    std::map<std::string, std::pair<size_t, size_t>> open; // rings: atom, place among its neighbours
    std::vector<int> branches;
    int last = UNKNOWN, slash = 0; // slash: 1 for / before what comes next, -1 for a backslash

    void neighbour(size_t of, int is, int above)
    {
        near[of].push_back(is);
        side[of].push_back(above);
    }
    void atom(bool hydrogen, int mark, size_t begin)
    {
        const size_t me = near.size();
        near.emplace_back();
        side.emplace_back();
        from.push_back(begin);
        follows.push_back(last >= 0);
        sign.push_back(mark);
        if (last >= 0) {
            neighbour(me, last, -slash);
            neighbour(static_cast<size_t>(last), static_cast<int>(me), slash);
        }
        if (hydrogen)
            neighbour(me, HYDROGEN, 0);
        last = static_cast<int>(me);
        slash = 0;
    }
    void ring(const std::string &name)
    {
        if (last < 0)
            return;
        const auto found = open.find(name);
        const size_t me = static_cast<size_t>(last);
        const int above = slash;
        slash = 0;
        if (found == open.end()) {
            open[name] = { me, near[me].size() };
            neighbour(me, UNKNOWN, above);
            return;
        }
        const size_t first = found->second.first, place = found->second.second;
        const int other = side[first][place];
        near[first][place] = last;
        side[first][place] = other != 0 ? other : -above;
        neighbour(me, static_cast<int>(first), above != 0 ? above : -other);
        open.erase(found);
    }
};
} // namespace

// An atom in brackets, from `begin` to `end`: its hydrogens and its mark.
static void read_bracket(Text &t, const std::string &text, size_t begin, size_t end)
{
    const std::string s = text.substr(begin + 1, end - begin - 2);
    const size_t symbol = s.find_first_not_of("0123456789"), mark = s.find('@');
    const bool hydrogen = symbol != std::string::npos && s.find('H', symbol + 1) != std::string::npos;
    int sign = 0;
    if (mark != std::string::npos)
        sign = s.compare(mark, 2, "@@") == 0 ? -1 : 1;
    t.atom(hydrogen, sign, begin);
}

// What stands at i; returns the next place.
static size_t read_one(Text &t, const std::string &s, size_t i)
{
    const char c = s[i];
    if (c == '[') {
        const size_t end = std::min(s.find(']', i), s.size() - 1) + 1;
        read_bracket(t, s, i, end);
        return end;
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
    } else if (c == '/' || c == '\\')
        t.slash = c == '/' ? 1 : -1;
    else if (c == '.')
        t.last = UNKNOWN;
    else if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '*') {
        t.atom(false, 0, i);
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

// A mark stands on the middle atom, whose neighbours in the text say which end comes first. What `sign` (1: @, -1: @@) means there.
static bool axis_of_mark(const Text &t, OBMol &mol, Ends e, int sign, Axis &x)
{
    OBAtom *before = nullptr;
    const OBAtom *at = middle_of(e, &before);
    const std::vector<int> &near = t.near[at->GetIdx() - 1];
    if (near.size() != 2 || near[0] < 0 || near[1] < 0)
        return false;
    if (static_cast<int>(before->GetIdx()) - 1 != near[0]) {
        std::swap(e.end[0], e.end[1]);
        std::swap(e.inner[0], e.inner[1]);
    }
    x.end[0] = e.end[0]->GetId();
    x.end[1] = e.end[1]->GetId();
    if (!sides_of(t, mol, e.end[0], e.inner[0], x.at) || !sides_of(t, mol, e.end[1], e.inner[1], x.at + 2))
        return false;
    if (sign < 0)
        std::swap(x.at[2], x.at[3]);
    return true;
}

// The neighbours of an end beside the chain, first the one of which / or \ says whether it is above the end. false: none does.
static bool side_written(const Text &t, OBMol &mol, const OBAtom *end, const OBAtom *inner, unsigned long out[2], int *above)
{
    const size_t me = end->GetIdx() - 1;
    size_t n = 0;
    *above = 0;
    out[0] = out[1] = OBStereo::ImplicitRef;
    for (size_t k = 0; k < t.near[me].size(); k++) {
        OBAtom *a = t.near[me][k] >= 0 ? mol.GetAtom(t.near[me][k] + 1) : nullptr;
        if (a == inner || n == 2)
            continue;
        out[n++] = a == nullptr ? static_cast<unsigned long>(OBStereo::ImplicitRef) : a->GetId();
        if (*above == 0 && t.side[me][k] != 0) {
            *above = t.side[me][k];
            std::swap(out[0], out[n - 1]);
        }
    }
    return *above != 0;
}

static bool plane_written(const Text &t, OBMol &mol, const Ends &e, OBCisTransStereo::Config &c)
{
    unsigned long p[2], q[2];
    int above[2];
    if (!side_written(t, mol, e.end[0], e.inner[0], p, &above[0]) || !side_written(t, mol, e.end[1], e.inner[1], q, &above[1]))
        return false;
    c = plane_of(e, p, q, above[0] == above[1]);
    return true;
}

// Three neighbours and a lone pair, which follows the atom before like a hydrogen that is not written.
static bool centre_of_mark(const Text &t, OBMol &mol, size_t which, int sign, OBTetrahedralStereo::Config &c)
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
    if (sign > 0) // anticlockwise
        std::swap(near[2], near[3]);
    c = OBTetrahedralStereo::Config(at->GetId(), near[0], { near[1], near[2], near[3] });
    return !OBStereoFacade(&mol).HasTetrahedralStereo(at->GetId());
}

static Text text_of(const std::string &smiles)
{
    Text t;
    for (size_t i = 0; i < smiles.size();)
        i = read_one(t, smiles, i);
    return t;
}

Marks marks_written(OBMol &mol, const std::string &text)
{
    Marks m;
    const Text t = text_of(first_word(text));
    if (t.near.size() != mol.NumAtoms())
        return m;
    for (const Ends &e : cumulated(mol)) {
        OBAtom *before = nullptr;
        const int sign = e.n_bonds % 2 == 0 ? t.sign[middle_of(e, &before)->GetIdx() - 1] : 0;
        Axis x;
        OBCisTransStereo::Config c;
        if (sign != 0 && axis_of_mark(t, mol, e, sign, x))
            m.axes.push_back(x);
        if (e.n_bonds % 2 != 0 && plane_written(t, mol, e, c))
            m.planes.push_back(c);
    }
    for (size_t k = 0; k < t.sign.size(); k++) {
        OBTetrahedralStereo::Config c;
        if (t.sign[k] != 0 && centre_of_mark(t, mol, k, t.sign[k], c))
            m.centres.push_back(c);
    }
    return m;
}

bool may_mark_planes(OBMol &mol, const std::string &text)
{
    if (first_word(text).find_first_of("/\\") == std::string::npos)
        return false;
    const std::vector<Ends> all = cumulated(mol);
    return std::any_of(all.begin(), all.end(), [](const Ends &e) { return e.n_bonds % 2 == 1; });
}

// ---- into the text of a SMILES -------------------------------------------------

namespace {
struct Edit {
    size_t at; // before this place of the text
    std::string text;
};

// A neighbour of an end of a plane in the text: the place for / or \ between them, and what stands there already.
struct Slash {
    unsigned long id = OBStereo::NoRef;
    int above = 0;        // the end; 0: nothing stands there
    bool follows = false; // the end in the text
    size_t place = 0;
};
} // namespace

// Whether two descriptions of an axis, which name the same atoms, are of one form.
static bool same_form(const Axis &a, Axis b)
{
    if (a.end[0] != b.end[0]) {
        std::swap(b.at[0], b.at[2]);
        std::swap(b.at[1], b.at[3]);
    }
    return (a.at[0] == b.at[0]) == (a.at[2] == b.at[2]);
}

// A hydrogen that the text does not write is the last neighbour of its end.
static void name_hydrogens(OBMol &mol, Axis &x)
{
    for (size_t k = 0; k < 4; k++)
        FOR_NBORS_OF_ATOM(a, mol.GetAtomById(x.end[k / 2]))
            if (x.at[k] == static_cast<unsigned long>(OBStereo::ImplicitRef) && a->GetAtomicNum() == 1 && x.at[k ^ 1] != a->GetId())
                x.at[k] = a->GetId();
}

// "@" or "@@" behind the symbol of an atom, in brackets.
static void mark_atom(std::vector<Edit> &edits, const Text &t, const std::string &smiles, size_t atom, const std::string &mark)
{
    size_t from = t.from[atom];
    const bool bracket = smiles[from] == '[';
    if (bracket)
        from = smiles.find_first_not_of("0123456789", from + 1); // the isotope
    const size_t behind = std::islower(static_cast<unsigned char>(smiles[from + 1])) != 0 ? from + 2 : from + 1;
    edits.push_back({ behind, bracket ? mark : mark + "]" });
    if (!bracket)
        edits.push_back({ from, "[" });
}

// Whether the three neighbours differ. Nitrogen inverts.
static bool has_two_forms(const std::vector<unsigned> &classes, OBMol &mol, const OBTetrahedralStereo::Config &c)
{
    OBAtom *at = mol.GetAtomById(c.center);
    std::vector<unsigned> of;
    FOR_NBORS_OF_ATOM(a, *at)
        of.push_back(classes[a->GetIdx() - 1]);
    std::sort(of.begin(), of.end());
    return at->GetAtomicNum() > 8 && of.size() == 3 && of[0] != of[1] && of[1] != of[2];
}

bool is_centre_by_graph(OBMol &mol, const OBTetrahedralStereo::Config &c) { return has_two_forms(classes_of(mol), mol, c); }

static void mark_centre(std::vector<Edit> &edits, const Text &t, OBMol &mol, const std::string &smiles,
                        const OBTetrahedralStereo::Config &wanted)
{
    const size_t me = mol.GetAtomById(wanted.center)->GetIdx() - 1;
    OBTetrahedralStereo::Config c;
    if (me < t.near.size() && std::islower(static_cast<unsigned char>(smiles[t.from[me]])) == 0 &&
        centre_of_mark(t, mol, me, 1, c) && is_centre_by_graph(mol, wanted))
        mark_atom(edits, t, smiles, me, wanted == c ? "@" : "@@");
}

static void mark_axis(std::vector<Edit> &edits, const Text &t, OBMol &mol, const std::string &smiles, const Ends &e,
                      const Axis &wanted)
{
    OBAtom *before = nullptr;
    Axis x;
    if (!axis_of_mark(t, mol, e, 1, x))
        return;
    name_hydrogens(mol, x);
    mark_atom(edits, t, smiles, middle_of(e, &before)->GetIdx() - 1, same_form(wanted, x) ? "@" : "@@");
}

static bool has_double_bond(OBAtom &a)
{
    bool found = false;
    FOR_BONDS_OF_ATOM(b, a)
        found = found || is_double(&*b);
    return found;
}

// A neighbour with a double bond of its own is taken only where the mark is there already, which would hold for that bond, too.
static Slash slash_at(const Text &t, OBMol &mol, const OBAtom *end, const OBAtom *inner)
{
    const size_t me = end->GetIdx() - 1;
    Slash best;
    for (size_t k = 0; k < t.near[me].size(); k++) {
        if (t.near[me][k] < 0)
            continue;
        const size_t other = static_cast<size_t>(t.near[me][k]);
        OBAtom *a = mol.GetAtom(static_cast<int>(other) + 1);
        const bool follows = t.follows[other] && t.near[other][0] == static_cast<int>(me);
        const bool leads = t.follows[me] && k == 0, said = t.side[me][k] != 0;
        if (a == inner || best.above != 0 || (!said && (has_double_bond(*a) || (!follows && !leads))))
            continue;
        if (said || best.id == static_cast<unsigned long>(OBStereo::NoRef))
            best = { a->GetId(), t.side[me][k], follows, follows ? t.from[other] : t.from[me] };
    }
    return best;
}

static bool are_cis(const OBCisTransStereo::Config &c, unsigned long p, unsigned long q)
{
    const size_t at_p = static_cast<size_t>(std::find(c.refs.begin(), c.refs.end(), p) - c.refs.begin());
    const size_t at_q = static_cast<size_t>(std::find(c.refs.begin(), c.refs.end(), q) - c.refs.begin());
    return at_p + at_q == 3; // the shape of a U
}

static void mark_plane(std::vector<Edit> &edits, const Text &t, OBMol &mol, const Ends &e, const OBCisTransStereo::Config &c)
{
    Slash s[2] = { slash_at(t, mol, e.end[0], e.inner[0]), slash_at(t, mol, e.end[1], e.inner[1]) };
    const auto none = static_cast<unsigned long>(OBStereo::NoRef);
    if (s[0].id == none || s[1].id == none)
        return;
    const int same = are_cis(c, s[0].id, s[1].id) ? 1 : -1;
    const bool there[2] = { s[0].above != 0, s[1].above != 0 };
    if (!there[0])
        s[0].above = s[0].follows ? 1 : -1; // '/', as most SMILES begin
    if (!there[0] && there[1])
        s[0].above = same * s[1].above;
    if (!there[1])
        s[1].above = same * s[0].above;
    for (size_t k = 0; k < 2; k++)
        if (!there[k])
            edits.push_back({ s[k].place, (s[k].above > 0) == s[k].follows ? "/" : "\\" });
}

std::string with_marks(OBMol &mol, const std::string &smiles, const Marks &m)
{
    const Text t = text_of(smiles);
    std::vector<Edit> edits;
    std::string out = smiles;
    OBMol plain;
    mol_read(plain, smiles, "smi");
    if (t.near.size() != plain.NumAtoms())
        return smiles;
    for (const Ends &e : cumulated(mol)) {
        for (const Axis &x : m.axes)
            if (e.n_bonds % 2 == 0 && has_ends(e, x.end[0], x.end[1]))
                mark_axis(edits, t, mol, smiles, e, x);
        for (const auto &c : m.planes)
            if (e.n_bonds % 2 != 0 && has_ends(e, c.begin, c.end))
                mark_plane(edits, t, mol, e, c);
    }
    for (const auto &c : m.centres)
        mark_centre(edits, t, mol, smiles, c);
    std::sort(edits.begin(), edits.end(), [](const Edit &a, const Edit &b) { return a.at > b.at; });
    for (const Edit &e : edits)
        out.insert(e.at, e.text);
    return out;
}

} // namespace worker
