// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_marks.cpp - stereo that a record defines and its canonical SMILES leaves out.
//
// Open Babel's SMILES has no mark for a double bond in a ring of eight, for C=N-H, for a quaternary nitrogen on an aromatic
// ring, and for P, As and Se with a lone pair; its InChI has. A structure built from the SMILES alone would be any isomer. So
// such stereo is kept as text beside the SMILES, and InChI judges whether it is complete: what it still misses is counted.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <sstream>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/generic.h>
#include <openbabel/graphsym.h>
#include <openbabel/obiter.h>
#include <openbabel/oberror.h>

using namespace OpenBabel;

namespace worker {

static const size_t tries_max = 4; // centres and imines whose form is found by trying all combinations

Marks marks_of(OBMol &mol)
{
    Marks m;
    OBStereoFacade stereo(&mol);
    FOR_ATOMS_OF_MOL(a, mol)
        if (stereo.HasTetrahedralStereo(a->GetId())) {
            const auto c = stereo.GetTetrahedralStereo(a->GetId())->GetConfig();
            if (c.specified && c.winding != OBStereo::UnknownWinding)
                m.centres.push_back(c);
        }
    FOR_BONDS_OF_MOL(b, mol)
        if (stereo.HasCisTransStereo(b->GetId())) {
            const auto c = stereo.GetCisTransStereo(b->GetId())->GetConfig();
            if (c.specified)
                m.bonds.push_back(c);
        }
    return m;
}

static void put_centre(OBMol &mol, const OBTetrahedralStereo::Config &c)
{
    OBStereoFacade stereo(&mol);
    OBTetrahedralStereo *t = stereo.HasTetrahedralStereo(c.center) ? stereo.GetTetrahedralStereo(c.center) : nullptr;
    if (t == nullptr) {
        t = new OBTetrahedralStereo(&mol); // owned by the molecule from here on
        mol.SetData(t);
    }
    t->SetConfig(c);
}

static void put_bond(OBMol &mol, const OBCisTransStereo::Config &c)
{
    OBStereoFacade stereo(&mol);
    const OBBond *b = mol.GetBond(mol.GetAtomById(c.begin), mol.GetAtomById(c.end));
    OBCisTransStereo *t = stereo.HasCisTransStereo(b->GetId()) ? stereo.GetCisTransStereo(b->GetId()) : nullptr;
    if (t == nullptr) {
        t = new OBCisTransStereo(&mol);
        mol.SetData(t);
    }
    t->SetConfig(c);
}

void marks_put(OBMol &mol, const Marks &m)
{
    for (const auto &c : m.centres)
        put_centre(mol, c);
    for (const auto &c : m.bonds)
        put_bond(mol, c);
}

bool is_known(const Marks &m, const OBTetrahedralStereo::Config &c)
{
    return std::any_of(m.centres.begin(), m.centres.end(),
                       [&](const OBTetrahedralStereo::Config &k) { return k.center == c.center; });
}

bool is_known(const Marks &m, const OBCisTransStereo::Config &c)
{
    return std::any_of(m.bonds.begin(), m.bonds.end(), [&](const OBCisTransStereo::Config &k) {
        return std::minmax(k.begin, k.end) == std::minmax(c.begin, c.end);
    });
}

void find_stereo(OBMol &mol)
{
    mol.SetChiralityPerceived(false);
    StereoFrom0D(&mol);
}

// ---- from the record to its SMILES ------------------------------------------

namespace {
// Numbers of heavy atoms in the order of the SMILES. A hydrogen is named by its neighbour.
struct Names {
    std::vector<OBAtom *> heavy; // of the molecule read from the SMILES
    std::map<unsigned long, int> of_record;
};
enum { HYDROGEN = -1, LONE_PAIR = -2, ISOTOPE = -3, NOBODY = -4 };
} // namespace

static std::vector<OBAtom *> heavy_atoms(OBMol &mol)
{
    std::vector<OBAtom *> heavy;
    FOR_ATOMS_OF_MOL(a, mol)
        if (a->GetAtomicNum() != 1)
            heavy.push_back(&*a);
    return heavy;
}

// The numbers of a record's atoms in its SMILES. Empty: the library does not say, or writes another SMILES now.
static std::map<unsigned long, int> order_of(const OBMol &record, const std::string &smiles)
{
    std::map<unsigned long, int> number;
    std::vector<unsigned> order;
    OBMol copy = record;
    if (smiles_in_order(copy, order) != smiles)
        return number;
    int n = 0;
    for (const unsigned idx : order) {
        OBAtom *a = copy.GetAtom(static_cast<int>(idx));
        if (a != nullptr && a->GetAtomicNum() != 1)
            number[a->GetId()] = n++;
    }
    return number;
}

static int name_of(const OBMol &record, const Names &names, unsigned long id)
{
    const OBAtom *a = id == OBStereo::ImplicitRef ? nullptr : record.GetAtomById(id);
    const auto found = names.of_record.find(id);
    if (found != names.of_record.end())
        return found->second;
    if (a == nullptr || a->GetAtomicNum() != 1)
        return a == nullptr ? static_cast<int>(HYDROGEN) : static_cast<int>(NOBODY);
    return a->GetIsotope() == 0 ? HYDROGEN : ISOTOPE;
}

// An atom of the molecule read from the SMILES: `number`, as a neighbour of `at`. false: there is none.
static bool find(const std::vector<OBAtom *> &heavy, OBAtom &at, int number, unsigned long &id)
{
    id = OBStereo::ImplicitRef;
    if (number >= 0 && static_cast<size_t>(number) < heavy.size())
        id = heavy[static_cast<size_t>(number)]->GetId();
    FOR_NBORS_OF_ATOM(b, at)
        if (b->GetAtomicNum() == 1 && ((number == HYDROGEN && b->GetIsotope() == 0) || (number == ISOTOPE && b->GetIsotope() != 0)))
            id = b->GetId();
    return number == LONE_PAIR || number == HYDROGEN || id != OBStereo::ImplicitRef; // a hydrogen that is not there is a lone pair
}

// Each mark is a letter and numbers: t centre from a b c (clockwise); d begin end a b c d (in the shape of a U); x end end a b c d (an axis:
// a and b at the first end, and the volume of all four is positive); y as d, for the ends of C=C=C=C.
static bool centre_from(const std::vector<OBAtom *> &heavy, const std::vector<int> &n, OBTetrahedralStereo::Config &c)
{
    if (n.size() != 5 || n[0] < 0 || static_cast<size_t>(n[0]) >= heavy.size())
        return false;
    OBAtom &at = *heavy[static_cast<size_t>(n[0])];
    unsigned long id[4];
    for (size_t k = 0; k < 4; k++)
        if (!find(heavy, at, n[k + 1], id[k]))
            return false;
    c = OBTetrahedralStereo::Config(at.GetId(), id[0], { id[1], id[2], id[3] });
    return true;
}

static bool bond_from(const std::vector<OBAtom *> &heavy, const std::vector<int> &n, OBCisTransStereo::Config &c)
{
    if (n.size() != 6 || n[0] < 0 || n[1] < 0 || static_cast<size_t>(std::max(n[0], n[1])) >= heavy.size())
        return false;
    OBAtom &begin = *heavy[static_cast<size_t>(n[0])], &end = *heavy[static_cast<size_t>(n[1])];
    OBStereo::Refs refs(4);
    for (size_t k = 0; k < 4; k++)
        if (!find(heavy, k < 2 ? begin : end, n[k + 2], refs[k]))
            return false;
    c = OBCisTransStereo::Config(begin.GetId(), end.GetId(), refs);
    return n[0] != n[1];
}

static bool are_bonded(OBMol &mol, const OBCisTransStereo::Config &c)
{
    return mol.GetBond(mol.GetAtomById(c.begin), mol.GetAtomById(c.end)) != nullptr;
}

static bool axis_from(const std::vector<OBAtom *> &heavy, const std::vector<int> &n, Axis &x)
{
    if (n.size() != 6 || n[0] < 0 || n[1] < 0 || n[0] == n[1] || static_cast<size_t>(std::max(n[0], n[1])) >= heavy.size())
        return false;
    for (size_t k = 0; k < 6; k++) {
        OBAtom &end = *heavy[static_cast<size_t>(n[k < 2 ? k : k / 2 - 1])];
        unsigned long &id = k < 2 ? x.end[k] : x.at[k - 2];
        if (!find(heavy, end, n[k], id) || id == OBStereo::ImplicitRef ||
            (k >= 2 && end.GetBond(end.GetParent()->GetAtomById(id)) == nullptr))
            return false;
    }
    return true;
}

static std::string text_of(char letter, const std::vector<int> &numbers)
{
    std::string s(1, letter);
    for (const int n : numbers)
        s += (s.size() > 1 ? "," : "") + number(n);
    return s;
}

Marks marks_read(OBMol &mol, const std::string &text)
{
    Marks m;
    const std::vector<OBAtom *> heavy = heavy_atoms(mol);
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        std::istringstream list(word.substr(1));
        std::vector<int> n;
        for (std::string x; std::getline(list, x, ',');)
            n.push_back(static_cast<int>(std::strtol(x.c_str(), nullptr, 10)));
        OBTetrahedralStereo::Config c;
        OBCisTransStereo::Config b;
        Axis x;
        if (word[0] == 't' && centre_from(heavy, n, c))
            m.centres.push_back(c);
        else if (word[0] == 'd' && bond_from(heavy, n, b) && are_bonded(mol, b))
            m.bonds.push_back(b);
        else if (word[0] == 'y' && bond_from(heavy, n, b) && !are_bonded(mol, b))
            m.planes.push_back(b);
        else if (word[0] == 'x' && axis_from(heavy, n, x))
            m.axes.push_back(x);
        else
            fail(CH_CONFORMER, "stereo that does not fit the molecule: " + word);
    }
    return m;
}

static bool has_lone_pair(OBMol &mol, const OBTetrahedralStereo::Config &c)
{
    const OBAtom *a = mol.GetAtomById(c.center);
    return a != nullptr && a->GetAtomicNum() > 8 && a->GetTotalDegree() == 3;
}

// Sb, Te, I, Bi: InChI has no stereo for them.
static bool is_beyond_inchi(OBMol &mol, const OBTetrahedralStereo::Config &c)
{
    const unsigned z = has_lone_pair(mol, c) ? mol.GetAtomById(c.center)->GetAtomicNum() : 0;
    return z > 50 && is_centre_by_graph(mol, c);
}

// What is implicit beside a hydrogen that is an atom is a lone pair, whichever comes first. ids: of n[first] on.
static void name_lone_pairs(std::vector<int> &n, size_t first, const std::vector<unsigned long> &ids)
{
    size_t hydrogen = ids.size();
    for (size_t k = ids.size(); k-- > 0;) {
        const bool is_atom = ids[k] != OBStereo::ImplicitRef;
        if (n[first + k] == HYDROGEN && (is_atom || hydrogen == ids.size() || ids[hydrogen] == OBStereo::ImplicitRef))
            hydrogen = k;
    }
    for (size_t k = 0; k < ids.size(); k++)
        if (n[first + k] == HYDROGEN && k != hydrogen)
            n[first + k] = LONE_PAIR;
}

// One text for one arrangement: neighbours in increasing order, of which two are exchanged if the order was an odd one.
static void sort_centre(std::vector<int> &n)
{
    bool odd = false;
    for (size_t i = 2; i < n.size(); i++)
        for (size_t k = i; k > 1 && n[k - 1] > n[k]; k--, odd = !odd)
            std::swap(n[k - 1], n[k]);
    if (odd)
        std::swap(n[3], n[4]);
}

static void sort_bond(std::vector<int> &n)
{
    if (n[0] > n[1])
        n = { n[1], n[0], n[5], n[4], n[3], n[2] };
    if (n[2] > n[3])
        n = { n[0], n[1], n[3], n[2], n[5], n[4] };
}

// Exchanging the ends, or the neighbours of both ends, changes nothing.
static void sort_axis(std::vector<int> &n)
{
    if (n[0] > n[1])
        n = { n[1], n[0], n[4], n[5], n[2], n[3] };
    if (n[2] > n[3])
        n = { n[0], n[1], n[3], n[2], n[5], n[4] };
}

static bool all_named(const std::vector<int> &n) { return std::find(n.begin(), n.end(), static_cast<int>(NOBODY)) == n.end(); }

static std::vector<int> bond_names(const OBMol &record, const Names &names, const OBCisTransStereo::Config &c)
{
    std::vector<int> n = { name_of(record, names, c.begin), name_of(record, names, c.end) };
    for (const unsigned long id : c.refs)
        n.push_back(name_of(record, names, id));
    name_lone_pairs(n, 2, { c.refs[0], c.refs[1] });
    name_lone_pairs(n, 4, { c.refs[2], c.refs[3] });
    return n;
}

// The marks of the record that the SMILES, which gave `mol`, does not define; those that cannot be named are left out.
static std::vector<std::string> missing_marks(OBMol &mol, const OBMol &record, const Marks &m, const Names &names)
{
    std::vector<std::string> words;
    const Marks known = marks_of(mol);
    for (const auto &c : m.centres) {
        std::vector<unsigned long> ids = { c.from };
        ids.insert(ids.end(), c.refs.begin(), c.refs.end());
        std::vector<int> n = { name_of(record, names, c.center) };
        for (const unsigned long id : ids)
            n.push_back(name_of(record, names, id));
        name_lone_pairs(n, 1, ids);
        OBTetrahedralStereo::Config is;
        if (all_named(n) && centre_from(names.heavy, n, is) && !is_known(known, is)) {
            sort_centre(n);
            words.push_back(text_of('t', n));
        }
    }
    for (const auto &c : m.bonds) {
        std::vector<int> n = bond_names(record, names, c);
        OBCisTransStereo::Config is;
        if (all_named(n) && bond_from(names.heavy, n, is) && are_bonded(mol, is) && !is_known(known, is)) {
            sort_bond(n);
            words.push_back(text_of('d', n));
        }
    }
    std::sort(words.begin(), words.end());
    return words;
}

// Those of the record's axes that can have two forms and can be named. *n_cumulated: how many of them are allenes and longer ones.
static std::vector<std::string> axis_words(OBMol &mol, const OBMol &record, const Marks &m, const Names &names, int *n_cumulated)
{
    std::vector<std::string> words;
    for (const Axis &x : m.axes) {
        std::vector<int> n;
        for (const unsigned long id : { x.end[0], x.end[1], x.at[0], x.at[1], x.at[2], x.at[3] })
            n.push_back(name_of(record, names, id));
        Axis is;
        if (!all_named(n) || !axis_from(names.heavy, n, is) || !is_axis(mol, is.end[0], is.end[1]))
            continue;
        sort_axis(n);
        words.push_back(text_of('x', n));
        *n_cumulated += mol.GetAtomById(is.end[0])->GetBond(mol.GetAtomById(is.end[1])) == nullptr;
    }
    for (const auto &c : m.planes) {
        std::vector<int> n = bond_names(record, names, c);
        OBCisTransStereo::Config is;
        if (!all_named(n) || !bond_from(names.heavy, n, is) || !is_axis(mol, is.begin, is.end))
            continue;
        sort_bond(n);
        words.push_back(text_of('y', n));
        ++*n_cumulated;
    }
    std::sort(words.begin(), words.end());
    return words;
}

static std::string joined(const std::vector<std::string> &words)
{
    std::string all;
    for (const std::string &w : words)
        all += (all.empty() ? "" : " ") + w;
    return all;
}

std::string smiles_with_marks(const std::string &smiles, OBMol &record, const Marks &m)
{
    const bool lone_pairs = std::any_of(m.centres.begin(), m.centres.end(),
                                        [&](const OBTetrahedralStereo::Config &c) { return has_lone_pair(record, c); });
    if (!lone_pairs && m.axes.empty() && m.planes.empty())
        return smiles;
    OBMol mol;
    read_with_hydrogens(mol, smiles);
    int n = 0;
    const Names names = { heavy_atoms(mol), order_of(record, smiles) };
    const std::vector<std::string> axes = axis_words(mol, record, m, names, &n), others = missing_marks(mol, record, m, names);
    return with_marks(mol, smiles, marks_read(mol, joined(axes) + " " + joined(others)));
}

// ---- the judge ----------------------------------------------------------------

static std::string key_with(const OBMol &mol, const std::string &text)
{
    OBMol copy = mol;
    marks_put(copy, marks_read(copy, text));
    return inchikey(copy);
}

// The names of the neighbours of an atom but one; a lone pair makes up for what is missing of n.
static std::vector<int> names_around(const Names &names, OBAtom &at, const OBAtom *but, size_t n)
{
    std::vector<int> found;
    FOR_NBORS_OF_ATOM(b, at) {
        const int hydrogen = b->GetIsotope() == 0 ? HYDROGEN : ISOTOPE;
        const auto place = std::find(names.heavy.begin(), names.heavy.end(), &*b) - names.heavy.begin();
        if (&*b != but)
            found.push_back(b->GetAtomicNum() == 1 ? hydrogen : static_cast<int>(place));
    }
    if (found.size() + 1 == n)
        found.push_back(LONE_PAIR);
    std::sort(found.begin(), found.end());
    return found;
}

namespace {
// Stereo that may be defined: the numbers of one form; of the other form, the last two are exchanged.
struct Candidate {
    char letter;
    std::vector<int> numbers;
};
} // namespace

// Nitrogen cations, aziridines, P, As, S, Se and Te: centres that InChI knows from positions and Open Babel may not.
static void add_centres(std::vector<Candidate> &found, const Marks &known, const Names &names)
{
    for (size_t i = 0; i < names.heavy.size(); i++) {
        OBAtom &a = *names.heavy[i];
        const unsigned z = a.GetAtomicNum(), n = a.GetExplicitDegree();
        const bool may = (z == 7 && a.GetFormalCharge() == 1 && n == 4) || (z == 7 && n == 3 && a.IsInRingSize(3)) ||
                         ((z == 15 || z == 16 || z == 33 || z == 34 || z == 52) && (n == 3 || n == 4));
        OBTetrahedralStereo::Config c;
        c.center = a.GetId();
        if (!may || is_known(known, c))
            continue;
        std::vector<int> numbers = names_around(names, a, nullptr, 4);
        numbers.insert(numbers.begin(), static_cast<int>(i));
        found.push_back({ 't', numbers });
    }
}

// C=N-H.
static void add_imines(std::vector<Candidate> &found, OBMol &mol, const Marks &known, const Names &names)
{
    FOR_BONDS_OF_MOL(b, mol) {
        OBAtom *n = b->GetBeginAtom()->GetAtomicNum() == 7 ? b->GetBeginAtom() : b->GetEndAtom(), *c = b->GetNbrAtom(n);
        OBCisTransStereo::Config is;
        is.begin = n->GetId();
        is.end = c->GetId();
        if (b->GetBondOrder() != 2 || b->IsAromatic() || n->GetAtomicNum() != 7 || c->GetAtomicNum() != 6 || is_known(known, is))
            continue;
        const std::vector<int> at_n = names_around(names, *n, c, 2), at_c = names_around(names, *c, n, 2);
        if (at_n.size() != 2 || at_c.size() != 2 || at_n.front() != LONE_PAIR || at_n.back() != HYDROGEN)
            continue;
        const auto place = [&](OBAtom *a) {
            return static_cast<int>(std::find(names.heavy.begin(), names.heavy.end(), a) - names.heavy.begin());
        };
        found.push_back({ 'd', { place(n), place(c), at_n[0], at_n[1], at_c[0], at_c[1] } });
    }
}

static std::string candidate_text(Candidate c, bool other)
{
    if (other)
        std::swap(c.numbers[c.numbers.size() - 1], c.numbers[c.numbers.size() - 2]);
    if (c.letter == 't')
        sort_centre(c.numbers);
    else
        sort_bond(c.numbers);
    return text_of(c.letter, c.numbers);
}

// Positions tell InChI the form of centres and imines that Open Babel does not see: the combination that gives the key of the record. "" if
// none does.
static std::string by_trying(OBMol &mol, const Names &names, const std::vector<std::string> &words, const std::string &key)
{
    std::vector<Candidate> open;
    const Marks known = marks_of(mol);
    add_centres(open, known, names);
    add_imines(open, mol, known, names);
    size_t all = open.size() > tries_max ? 0 : 1;
    for (size_t k = 0; k < open.size(); k++)
        all *= 3; // each: not defined, one way, the other way
    for (size_t t = 1; t < all; t++) {
        std::vector<std::string> more = words;
        for (size_t k = 0, left = t; k < open.size(); k++, left /= 3)
            if (left % 3 != 0)
                more.push_back(candidate_text(open[k], left % 3 == 2));
        std::sort(more.begin(), more.end());
        if (key_with(mol, joined(more)) == key)
            return joined(more);
    }
    return "";
}

int inchi_defined(const std::string &inchi, std::string &rest)
{
    int n = 0;
    std::istringstream layers(inchi);
    rest.clear();
    bool before = true;
    for (std::string layer; std::getline(layers, layer, '/');) {
        const bool stereo = !layer.empty() && std::strchr("btms", layer[0]) != nullptr;
        before = before && !stereo;
        rest += before ? layer + "/" : "";
        std::istringstream items(stereo && (layer[0] == 'b' || layer[0] == 't') ? layer : "");
        for (std::string item; std::getline(items, item, ',');)
            n += item.back() == '+' || item.back() == '-';
    }
    return n;
}

// n_axes: those of the record that are kept, which the InChI of the SMILES does not see.
static int n_lost(OBMol &record, const OBMol &mol, const std::string &text, int n_axes)
{
    OBMol copy = mol;
    std::string of_record, of_mol;
    marks_put(copy, marks_read(copy, text));
    const int had = inchi_defined(first_word(mol_write(record, "inchi", "")), of_record);
    const int has = inchi_defined(first_word(mol_write(copy, "inchi", "")), of_mol);
    return std::max(had - has - n_axes, of_record == of_mol && n_axes == 0 ? 1 : 0);
}

int unread_marks()
{
    int n = 0;
    for (const std::string &m : obErrorLog.GetMessagesOfLevel(obWarning))
        n += m.find("Ignoring stereochemistry") != std::string::npos;
    return n;
}

// What the reader left out: at most as many as the record leaves open: marks on symmetric atoms do not count. n_kept: axes that are kept.
static Kept kept_of_unread(OBMol &mol, int n_open, int n_unread, int n_kept)
{
    const int axes = std::max(open_axes(mol) - n_kept, 0);
    return { "", axes, std::max(std::min(n_unread - n_kept, n_open + axes), 0) };
}

// The marks that the SMILES leaves out, judged by InChI, which does not see the axes of a molecule without positions.
static void keep_marks(Kept &kept, OBMol &mol, OBMol &record, const Marks &m, const Names &names, const std::string &key,
                       int n_axes)
{
    const bool placed = record.GetDimension() >= 2;
    const std::vector<std::string> words = missing_marks(mol, record, m, names);
    kept.text = joined(words);
    if (key_with(mol, kept.text) == key)
        return;
    const std::string tried = placed ? by_trying(mol, names, words, key) : "";
    if (tried.empty()) {
        kept.n_lost = n_lost(record, mol, kept.text, placed ? n_axes : 0);
        kept.n_open = std::max(kept.n_open, kept.n_lost);
    } else {
        kept.text = tried;
    }
}

// Marks that InChI cannot judge.
static Marks beyond_inchi(OBMol &record, const Marks &m)
{
    Marks beyond;
    std::copy_if(m.centres.begin(), m.centres.end(), std::back_inserter(beyond.centres),
                 [&](const OBTetrahedralStereo::Config &c) { return is_beyond_inchi(record, c); });
    return beyond;
}

Kept kept_of(OBMol &mol, OBMol &record, const Marks &m, const Identity &id, const Open &open)
{
    const Marks known = marks_of(mol), beyond = beyond_inchi(record, m);
    const bool placed = record.GetDimension() >= 2;
    const bool differs = (m.centres.size() != known.centres.size() || m.bonds.size() != known.bonds.size() || placed) &&
                         !id.inchikey.empty() && inchikey(mol) != id.inchikey;
    if (!differs && m.axes.empty() && m.planes.empty() && beyond.centres.empty())
        return kept_of_unread(mol, open.n_open, open.n_unread, 0);
    const Names names = { heavy_atoms(mol), order_of(record, id.smiles) };
    int n_cumulated = 0;
    const std::vector<std::string> axes = axis_words(mol, record, m, names, &n_cumulated);
    Kept kept = kept_of_unread(mol, open.n_open, open.n_unread, n_cumulated);
    kept.text = joined(missing_marks(mol, record, beyond, names));
    if (differs)
        keep_marks(kept, mol, record, m, names, id.inchikey, n_cumulated);
    kept.text += (kept.text.empty() || axes.empty() ? "" : " ") + joined(axes);
    return kept;
}

std::string axes_text(OBMol &record, const std::string &smiles, const Marks &m)
{
    OBMol mol;
    int n = 0;
    read_with_hydrogens(mol, smiles);
    return joined(axis_words(mol, record, m, { heavy_atoms(mol), order_of(record, smiles) }, &n));
}

} // namespace worker
