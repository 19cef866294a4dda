// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_bonds.cpp - bonds of records that have positions only: xyz, pdb, cif, outputs of quantum chemistry.
//
// Readers of such formats call two functions of Open Babel, ConnectTheDots and PerceiveBondOrders. The bonds that they find from 3D
// positions depend on the order of the atoms, and they assign no charges, so zwitterions become radicals. This file replaces both functions
// by ones that only record what is missing. Then the atoms are sorted into an order that does not depend on the file, and chem/common/bonding.h finds
// bonds, orders and charges.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <strings.h>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/elements.h>
#include <openbabel/obiter.h>

#include "chem/common/bonding.h"

using namespace OpenBabel;

// What the record lacks, and the charge known to the reader at that time: later, readers of crystals guess charges, and others drop it.
namespace {
struct Lacking {
    bool connections, orders, total; // total: a net charge was read
    int charge;
};
} // namespace

static Lacking lacking;

static void note_charge(OBMol &mol)
{
    lacking.total = mol.HasFlag(OB_TCHARGE_MOL);
    lacking.charge = lacking.total ? mol.GetTotalCharge() : worker::sum_of_charges(mol);
}

// Open Babel's formats are loaded at run time; their calls resolve to these two functions of the program, not to those of the library.
namespace OpenBabel {

void OBMol::ConnectTheDots()
{
    lacking.connections = true;
    note_charge(*this);
}

void OBMol::PerceiveBondOrders()
{
    lacking.orders = true;
    note_charge(*this);
}

} // namespace OpenBabel

namespace worker {

static const int charge_max = 10; // maximum absolute charge that a comment may state

// ---- what the comment states: charge=-1, total_charge=-1 or net_charge=-1; multiplicity=2

// The text of a comment that may name a charge in another form, which must not be ignored.
static std::string comment_of(const std::string &text)
{
    const size_t from = text.find('\n') + 1, end = std::min(text.find('\n', from), text.size());
    return text.substr(from, end - from);
}

static bool is_blank(char c) { return std::strchr(" \t\r", c) != nullptr; }

static bool is_charge(const std::string &word)
{
    const size_t equals = word.find('=');
    const std::string name = equals == std::string::npos ? "" : word.substr(0, equals);
    for (const char *known : { "charge", "total_charge", "net_charge" })
        if (strcasecmp(name.c_str(), known) == 0)
            return true;
    return false;
}

static int charge_of(const std::string &word)
{
    const char *from = word.c_str() + word.find('=') + 1;
    char *end;
    const double q = std::strtod(from, &end);
    if (end == from || *end != '\0' || !(std::fabs(q) <= charge_max) || q != std::round(q))
        fail(CH_PARSE,
             "xyz: '" + word.substr(0, 40) + "' is not a whole charge from -" + number(charge_max) + " to " + number(charge_max));
    return static_cast<int>(q);
}

// The word between blanks around a position.
static std::string word_at(const std::string &comment, size_t at)
{
    size_t from = at, end = at;
    while (from > 0 && !is_blank(comment[from - 1]))
        from--;
    while (end < comment.size() && !is_blank(comment[end]))
        end++;
    return comment.substr(from, end - from);
}

// Where the number begins that belongs to a name that ends at `at`: behind blanks, "=", ":", brackets, quotes, "is" and "of"; 0: there is
// none. A sign is needed between a name of few letters and its number.
static size_t value_after(const std::string &comment, size_t at, bool needs_sign)
{
    bool sign = false;
    size_t i = at;
    for (; i < comment.size(); i++) {
        const bool word =
            i > at && is_blank(comment[i - 1]) && (comment.compare(i, 3, "is ") == 0 || comment.compare(i, 3, "of ") == 0);
        sign = sign || comment[i] == '=' || comment[i] == ':';
        if (word)
            i++;
        else if (std::strchr(" \t\r=:([{'\"", comment[i]) == nullptr)
            break;
    }
    return i > at && i < comment.size() && (sign || !needs_sign) && std::strchr("+-.0123456789", comment[i]) != nullptr ? i : 0;
}

// "charge = -2", "Charge: 1", "net charge of -1", "q=1", "id=7,charge=2": the comment states a charge in a form that this program does not
// read.
static void refuse_other_ways(const std::string &comment)
{
    static const char *const names[] = { "charge",    "totalcharge", "netcharge", "molcharge", "formalcharge",
                                         "ioncharge", "chg",         "totchg",    "q",         "qtot",
                                         "qtotal",    "total_q",     "net_q",     "tot_charge" };
    for (size_t at = 0; at < comment.size(); at++)
        for (const char *name : names) {
            const size_t n = std::strlen(name);
            const bool starts = at == 0 || !std::isalnum(static_cast<unsigned char>(comment[at - 1]));
            if (starts && strncasecmp(comment.c_str() + at, name, n) == 0 && value_after(comment, at + n, n < 5) != 0 &&
                !is_charge(word_at(comment, at)))
                fail(CH_PARSE, "xyz: '" + comment.substr(at, 30) + "' states a charge; write charge=N as a word of its own");
        }
}

// "-1 1" and nothing else: charge and multiplicity, as inputs of quantum chemistry have them.
static void refuse_pair(const std::string &comment)
{
    std::istringstream words(comment);
    std::string first, second, third;
    words >> first >> second >> third;
    const bool numbers = first.size() == 2 && std::strchr("+-", first[0]) != nullptr &&
                         std::isdigit(static_cast<unsigned char>(first[1])) && second.size() == 1 &&
                         std::isdigit(static_cast<unsigned char>(second[0]));
    if (numbers && third.empty())
        fail(CH_PARSE, "xyz: '" + first + " " + second + "' looks like a charge and a multiplicity; write charge=N");
}

// false: the comment states no charge.
static bool stated_charge(const std::string &text, int *charge)
{
    const std::string comment = comment_of(text);
    std::istringstream words(comment);
    std::string word;
    bool found = false;
    refuse_other_ways(comment);
    refuse_pair(comment);
    while (words >> word)
        if (is_charge(word)) {
            const int q = charge_of(word);
            if (found && q != *charge)
                fail(CH_PARSE, "xyz: the comment states two charges");
            *charge = q;
            found = true;
        }
    return found;
}

// A closed shell, or the doublet of a radical: bonding.h knows no other, so a triplet would be read as a singlet.
static void check_multiplicity(const std::string &text, const std::string &format, bool unpaired)
{
    const std::string comment = format == "xyz" ? comment_of(text) : "";
    for (size_t at = 0; at < comment.size(); at++)
        for (const char *name : { "multiplicity", "mult" }) {
            const size_t n = std::strlen(name);
            const bool starts = at == 0 || !std::isalnum(static_cast<unsigned char>(comment[at - 1]));
            const bool here = starts && strncasecmp(comment.c_str() + at, name, n) == 0;
            const size_t value = here ? value_after(comment, at + n, n < 5) : 0;
            if (value != 0 && std::strtod(comment.c_str() + value, nullptr) != (unpaired ? 2 : 1))
                fail(CH_VALENCE, "xyz: '" + comment.substr(at, 30) +
                                     "': only closed shells, and radicals with one unpaired electron and a "
                                     "stated charge, are read");
        }
}

// false: the record does not state the charge, which is then taken as 0. Quantum chemistry outputs state the total, pdb and cif atomic ones.
static bool charge_said(OBMol &mol, const std::string &text, const std::string &format, int *charge)
{
    const bool later = mol.HasFlag(OB_TCHARGE_MOL); // most formats read it after the atoms
    if (format == "xyz")
        return stated_charge(text, charge);
    *charge = later ? mol.GetTotalCharge() : lacking.charge;
    if (std::abs(*charge) > charge_max)
        fail(CH_VALENCE, "a charge of " + number(*charge) + " without bonds that explain it");
    return later || lacking.total || *charge != 0;
}

// ---- an order of atoms that does not depend on the file

static bool place_before(const Place &a, const Place &b)
{
    if (a.z != b.z)
        return a.z > b.z;
    if (a.far != b.far)
        return a.far < b.far;
    return std::lexicographical_compare(a.x, a.x + 3, b.x, b.x + 3);
}

// In units of 1e-5 Angstrom. Open Babel reads any number as a position, "inf" and "nan" too.
static long long apart(const double *p, const double *q)
{
    const double square = (p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]) + (p[2] - q[2]) * (p[2] - q[2]);
    const double d = 1e5 * std::sqrt(square), most = 1e12;
    return std::llround(d < most ? d : most);
}

std::vector<Place> own_order(OBMol &mol)
{
    std::vector<Place> all;
    FOR_ATOMS_OF_MOL(a, mol)
        all.push_back({ a->GetAtomicNum(), 0, { a->GetX(), a->GetY(), a->GetZ() }, &*a });
    for (size_t i = 0; i < all.size(); i++)
        for (size_t j = 0; j < i; j++) {
            const long long d = apart(all[i].x, all[j].x);
            all[i].far += d;
            all[j].far += d;
        }
    std::sort(all.begin(), all.end(), place_before);
    return all;
}

// ---- orders and charges

namespace {
struct Bonds {
    std::vector<uint8_t> z, order;
    std::vector<int32_t> pairs;
    std::vector<double> xyz;
    std::vector<int8_t> formal;
    ch_skeleton s = {};
    int32_t where[2] = { 0, 0 }; // atoms where the positions do not fit
};
} // namespace

// rank[i]: position in own_order of atom i of the file, from 0.
static std::vector<int32_t> ranks_of(const std::vector<Place> &atoms)
{
    std::vector<int32_t> rank(atoms.size());
    for (size_t i = 0; i < atoms.size(); i++)
        rank[atoms[i].atom->GetIdx() - 1] = static_cast<int32_t>(i);
    return rank;
}

// The bonds of the file as sorted pairs of ranks: their order does not depend on the file.
static std::vector<std::pair<int32_t, int32_t>> given_bonds(OBMol &mol, const std::vector<Place> &atoms)
{
    const std::vector<int32_t> rank = ranks_of(atoms);
    std::vector<std::pair<int32_t, int32_t>> given;
    FOR_BONDS_OF_MOL(b, mol)
        given.push_back(std::minmax(rank[b->GetBeginAtomIdx() - 1], rank[b->GetEndAtomIdx() - 1]));
    std::sort(given.begin(), given.end());
    return given;
}

static void describe_atoms(Bonds &b, const std::vector<Place> &atoms, int charge, bool stated)
{
    long electrons = -charge;
    for (const Place &p : atoms) {
        b.z.push_back(static_cast<uint8_t>(p.z));
        b.xyz.insert(b.xyz.end(), p.x, p.x + 3);
        electrons += p.z;
    }
    b.formal.resize(atoms.size());
    b.s.n_atoms = static_cast<int32_t>(atoms.size());
    b.s.z = b.z.data();
    b.s.xyz = reinterpret_cast<const double(*)[3]>(b.xyz.data());
    b.s.charge = charge;
    b.s.unpaired = stated && electrons % 2 != 0; // an explicit charge is taken literally: a radical
}

static ch_bonding connect(Bonds &b, const std::vector<std::pair<int32_t, int32_t>> &given)
{
    ch_bonding end = CH_BONDING_OK;
    b.pairs.resize(2 * std::max(CH_BONDING_PER_ATOM * b.z.size(), given.size()));
    if (lacking.connections)
        end = ch_bonding_connect(b.s.n_atoms, b.s.z, b.s.xyz, reinterpret_cast<int32_t(*)[2]>(b.pairs.data()), &b.s.n_bonds);
    else
        for (const auto &g : given) {
            b.pairs[2 * static_cast<size_t>(b.s.n_bonds)] = g.first;
            b.pairs[2 * static_cast<size_t>(b.s.n_bonds++) + 1] = g.second;
        }
    b.s.bond = reinterpret_cast<const int32_t(*)[2]>(b.pairs.data());
    b.order.resize(static_cast<size_t>(b.s.n_bonds));
    return end;
}

static ch_bonding find_orders(Bonds &b)
{
    ch_bonding end = ch_bonding_solve(&b.s, b.order.data(), b.formal.data());
    if (end == CH_BONDING_OK)
        end = ch_bonding_check(&b.s, b.order.data(), b.formal.data(), b.where);
    return end;
}

static std::string name_of(const std::vector<Place> &atoms, int32_t i)
{
    OBAtom *a = atoms[static_cast<size_t>(i)].atom;
    return std::string(OBElements::GetSymbol(a->GetAtomicNum())) + number(a->GetIdx());
}

// The first atom in the file for whose element bonding.h has no rules.
static std::string stranger(const std::vector<Place> &atoms)
{
    size_t first = atoms.size();
    for (size_t i = 0; i < atoms.size(); i++)
        if (ch_bonding_valence(static_cast<int>(atoms[i].z)) < 0 &&
            (first == atoms.size() || atoms[i].atom->GetIdx() < atoms[first].atom->GetIdx()))
            first = i;
    return name_of(atoms, static_cast<int32_t>(first));
}

static std::string two_atoms(const Bonds &b, const std::vector<Place> &atoms)
{
    return name_of(atoms, b.where[0]) + " and " + name_of(atoms, b.where[1]);
}

// A record of an organic molecule without a single hydrogen, as most PDB files are.
static bool has_no_hydrogens(const std::vector<Place> &atoms)
{
    bool carbon = false, hydrogen = false;
    for (const Place &p : atoms) {
        carbon = carbon || p.z == 6;
        hydrogen = hydrogen || p.z == 1;
    }
    return carbon && !hydrogen;
}

[[noreturn]] static void refuse(ch_bonding end, const Bonds &b, const std::vector<Place> &atoms)
{
    const std::string cause = ": hydrogens are missing, or positions are wrong", carbene = "; carbenes are not read";
    if (end == CH_BONDING_ELEMENT)
        fail(CH_VALENCE,
             "the bonds of " + stranger(atoms) + " cannot be told from positions: use a format that has bonds (sdf, mol2)");
    if (has_no_hydrogens(atoms) && end != CH_BONDING_LOOSE && end != CH_BONDING_SEARCH)
        fail(CH_VALENCE,
             "hydrogens are missing (the record has none), so bonds are uncertain: use an sdf or mol2 file, or add all hydrogens "
             "with a program that knows the bonds");
    if (end == CH_BONDING_PARITY)
        fail(CH_VALENCE,
             "an odd number of electrons: hydrogens are missing, or it is a radical or an ion whose charge the file does not state "
             "(write charge=N into the comment of an xyz record; charge=0 for a radical)");
    if (end == CH_BONDING_LONG)
        fail(CH_VALENCE, "a multiple bond between " + two_atoms(b, atoms) + ", which are as far apart as a single bond" + cause);
    if (end == CH_BONDING_LOOSE)
        fail(CH_VALENCE,
             two_atoms(b, atoms) + " are too far apart for a bond, and too near for two atoms without one: positions are wrong");
    if (end == CH_BONDING_BENT)
        fail(CH_VALENCE, name_of(atoms, b.where[0]) + " has two neighbours, which are not in line with it" + cause + carbene);
    if (end == CH_BONDING_SEARCH)
        fail(CH_TOO_LARGE, "too many ways to arrange the double bonds");
    fail(CH_VALENCE, "no bond orders and charges give every atom a closed shell" + cause + carbene);
}

// Checks the bonds that a file does have, such as CONECT in pdb.
static void check_given(const Bonds &b, const std::vector<Place> &atoms, const std::vector<std::pair<int32_t, int32_t>> &given)
{
    std::set<std::pair<int32_t, int32_t>> found;
    for (size_t i = 0; i < b.order.size(); i++)
        found.insert(std::minmax(b.pairs[2 * i], b.pairs[2 * i + 1]));
    for (const auto &g : given)
        if (found.count(g) == 0)
            fail(CH_VALENCE, "the file has a bond between " + name_of(atoms, g.first) + " and " + name_of(atoms, g.second) +
                                 ", and their positions do not");
}

// ---- isotopes: Open Babel reads D and T as hydrogen

// The symbol of each atom; empty for formats that are not examined here.
static std::vector<std::string> symbols_of(const std::string &text, const std::string &format)
{
    std::vector<std::string> symbols;
    std::istringstream lines(text);
    std::string line;
    for (int n = 0; (format == "xyz" || format == "pdb") && std::getline(lines, line); n++)
        if (format == "xyz" && n > 1)
            symbols.push_back(first_word(line));
        else if (format == "pdb" && (line.compare(0, 6, "ATOM  ") == 0 || line.compare(0, 6, "HETATM") == 0))
            symbols.push_back(line.size() >= 78 ? first_word(line.substr(line[76] == ' ' ? 77 : 76, 2)) : "");
    return symbols;
}

static void mark_isotopes(OBMol &mol, const std::string &text, const std::string &format)
{
    const std::vector<std::string> symbols = symbols_of(text, format);
    FOR_ATOMS_OF_MOL(a, mol) {
        const std::string s = symbols.size() >= mol.NumAtoms() ? symbols[a->GetIdx() - 1] : "";
        if (s.size() > 1 && std::isdigit(static_cast<unsigned char>(s[0])) &&
            s.find_first_not_of("0123456789") != std::string::npos)
            fail(CH_PARSE, "'" + s.substr(0, 20) + "' is no element"); // Open Babel reads 13C as element 13
        if (a->GetAtomicNum() == 1 && (s == "D" || s == "T"))
            a->SetIsotope(s == "D" ? 2 : 3);
    }
}

// ---- back to the order of the file

static void add_bonds(OBMol &mol, const std::vector<Place> &atoms, const Bonds &b)
{
    mol.BeginModify();
    for (size_t i = 0; i < atoms.size(); i++) {
        atoms[i].atom->SetFormalCharge(b.formal[i]);
        atoms[i].atom->SetImplicitHCount(0);
    }
    for (size_t i = 0; i < b.order.size(); i++) {
        OBAtom *from = atoms[static_cast<size_t>(b.pairs[2 * i])].atom, *to = atoms[static_cast<size_t>(b.pairs[2 * i + 1])].atom;
        OBBond *given = mol.GetBond(from, to);
        if (given != nullptr)
            given->SetBondOrder(b.order[i]);
        else
            mol.AddBond(static_cast<int>(from->GetIdx()), static_cast<int>(to->GetIdx()), b.order[i]);
    }
    mol.EndModify();
}

void bonds_begin() { lacking = Lacking(); }

bool bonds_complete(OBMol &mol, const std::string &text, const std::string &format)
{
    if ((!lacking.connections && !lacking.orders) || mol.NumAtoms() == 0)
        return false;
    int charge = 0;
    const bool stated = charge_said(mol, text, format, &charge);
    mark_isotopes(mol, text, format);
    mol_check_geometry(mol);
    const std::vector<Place> atoms = own_order(mol);
    const std::vector<std::pair<int32_t, int32_t>> given = given_bonds(mol, atoms);
    Bonds b;
    describe_atoms(b, atoms, charge, stated);
    check_multiplicity(text, format, b.s.unpaired != 0);
    ch_bonding end = connect(b, given);
    if (end == CH_BONDING_OK)
        end = find_orders(b);
    if (end == CH_BONDING_MEMORY)
        throw std::bad_alloc();
    if (end != CH_BONDING_OK)
        refuse(end, b, atoms);
    check_given(b, atoms, given);
    add_bonds(mol, atoms, b);
    mol.SetDimension(3);
    return true;
}

} // namespace worker
