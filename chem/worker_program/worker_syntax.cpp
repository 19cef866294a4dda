// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_syntax.cpp - SMILES that Open Babel reads although they are none, as another molecule than was meant.
//
// It reads what was cut short, and leaves out what it does not expect: of "C(=/O)N" the double bond, of "c(.O)c" the dot, of "C1C1" the
// ring closure; ":" between atoms that are not aromatic is a single bond, and "Cc=1ccccc1" a carbene. The grammar is that of OpenSMILES;
// a branch before the number of a ring ("C(C)1CC1") is read, as by most programs.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <vector>

#include <openbabel/atom.h>
#include <openbabel/obiter.h>

using namespace OpenBabel;

namespace worker {

namespace {
enum Kind { START, ATOM, BOND, OPEN, CLOSE, DOT, RING, END };

// What stands at a place of a SMILES.
struct Token {
    Kind kind;
    size_t at, n; // its characters
};
} // namespace

static Kind kind_of(char c)
{
    if (c == '(')
        return OPEN;
    if (c == ')')
        return CLOSE;
    if (c == '.')
        return DOT;
    if (std::strchr("=#$:/\\-~", c) != nullptr)
        return BOND;
    return c == '%' || std::isdigit(static_cast<unsigned char>(c)) != 0 ? RING : ATOM;
}

static size_t behind_digits(const std::string &s, size_t at)
{
    while (at < s.size() && std::isdigit(static_cast<unsigned char>(s[at])) != 0)
        at++;
    return at;
}

static size_t length_of(const std::string &s, size_t at)
{
    const bool bracket = s[at] == '[', wide = s.compare(at, 2, "%(") == 0;
    if (bracket || wide)
        return std::min(s.find(bracket ? ']' : ')', at), s.size() - 1) + 1 - at;
    if (s[at] == '%')
        return std::min<size_t>(3, behind_digits(s, at + 1) - at);
    return s.compare(at, 2, "Cl") == 0 || s.compare(at, 2, "Br") == 0 ? 2 : 1;
}

static std::vector<Token> tokens_of(const std::string &s)
{
    std::vector<Token> all;
    for (size_t at = 0; at < s.size(); at += all.back().n)
        all.push_back({ kind_of(s[at]), at, length_of(s, at) });
    return all;
}

// Whether an atom is written as aromatic, in lower case.
static bool is_lower(const std::string &atom)
{
    const size_t symbol = atom.find_first_not_of("[0123456789");
    return symbol != std::string::npos && std::islower(static_cast<unsigned char>(atom[symbol])) != 0;
}

static std::string place(const std::string &s, const Token &t)
{
    std::string shown = s.substr(t.at, std::min<size_t>(t.n, 20));
    for (char &c : shown)
        c = std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
    return "'" + shown + "' at character " + number(static_cast<long>(t.at) + 1) + " of a SMILES";
}

// ---- what may follow what

static const char *wanted_after(Kind before, Kind now)
{
    const bool begins = now == ATOM || now == BOND;
    if (before == BOND && now != ATOM && now != RING)
        return ": after a bond comes an atom or the number of a ring";
    if (before == OPEN && !begins)
        return ": after '(' comes a bond or an atom";
    if ((before == START || before == DOT) && now != ATOM)
        return ": a molecule begins with an atom";
    return nullptr;
}

static size_t behind_symbol(const std::string &s, size_t at)
{
    if (at >= s.size() || (s[at] != '*' && std::isalpha(static_cast<unsigned char>(s[at])) == 0))
        return std::string::npos;
    const bool two = s[at] != '*' && at + 1 < s.size() && std::islower(static_cast<unsigned char>(s[at + 1])) != 0;
    return at + (two ? 2 : 1);
}

// "@", "@@", "@SP2"
static size_t behind_mark(const std::string &s, size_t at)
{
    if (s.compare(at, 1, "@") != 0)
        return at;
    for (const char *kind : { "TH", "AL", "SP", "TB", "OH" })
        if (s.compare(at + 1, 2, kind) == 0)
            return behind_digits(s, at + 3);
    return at + (s.compare(at, 2, "@@") == 0 ? 2 : 1);
}

// "+", "+2", "++"
static size_t behind_charge(const std::string &s, size_t at)
{
    const size_t from = at;
    while (at < s.size() && (s[at] == '+' || s[at] == '-') && s[at] == s[from])
        at++;
    return at == from + 1 ? behind_digits(s, at) : at;
}

static bool is_bracket_atom(const std::string &s)
{
    size_t at = behind_symbol(s, behind_digits(s, 1));
    if (at == std::string::npos)
        return false;
    at = behind_mark(s, at);
    if (s.compare(at, 1, "H") == 0)
        at = behind_digits(s, at + 1);
    at = behind_charge(s, at);
    if (s.compare(at, 1, ":") == 0)
        at = behind_digits(s, at + 1);
    return at + 1 == s.size() && s[at] == ']';
}

static void bracket_check(const std::string &s, const Token &t)
{
    if (!is_bracket_atom(s.substr(t.at, t.n)))
        fail(CH_PARSE, place(s, t) + ": an atom in brackets has isotope, element, @, H, charge and number, in this order");
    if (s.substr(t.at, t.n).find("@SP") != std::string::npos)
        fail(CH_PARSE, place(s, t) + ": square-planar stereo, which no InChIKey has and no structure would keep; leave @SP out");
}

// ":" joins aromatic atoms. `last` is the atom before, in lower case or not.
static void aromatic_check(const std::string &s, const std::vector<Token> &all)
{
    std::vector<bool> branches;
    bool last = false;
    for (size_t k = 0; k < all.size(); k++) {
        const bool colon = k > 0 && s[all[k - 1].at] == ':' && all[k - 1].kind == BOND;
        if (all[k].kind == OPEN)
            branches.push_back(last);
        if (all[k].kind == CLOSE && !branches.empty()) {
            last = branches.back();
            branches.pop_back();
        }
        if (colon && (!last || (all[k].kind == ATOM && !is_lower(s.substr(all[k].at, all[k].n)))))
            fail(CH_PARSE, place(s, all[k - 1]) + ": it is a bond between aromatic atoms, in lower case");
        if (all[k].kind == ATOM)
            last = is_lower(s.substr(all[k].at, all[k].n));
    }
}

// "C(C", "C=" and "C(=)C" were cut short or mistyped.
static void branches_check(const std::vector<Token> &all)
{
    Kind before = START;
    int open = 0;
    for (const Token &t : all) {
        if (t.kind == CLOSE && open == 0)
            fail(CH_PARSE, "a SMILES with a ')' that closes nothing");
        if (t.kind == CLOSE && (before == OPEN || before == BOND))
            fail(CH_PARSE, "a SMILES with a bond or '(' before ')'");
        open += (t.kind == OPEN) - (t.kind == CLOSE);
        before = t.kind;
    }
    if (open > 0 || before == BOND)
        fail(CH_PARSE, open > 0 ? "a SMILES with a '(' that is not closed" : "a SMILES that ends with a bond");
}

void smiles_check(const std::string &s)
{
    const std::vector<Token> all = tokens_of(s);
    Kind before = START;
    branches_check(all);
    for (const Token &t : all) {
        const char *wanted = wanted_after(before, t.kind);
        if (wanted != nullptr)
            fail(CH_PARSE, place(s, t) + wanted);
        if (s[t.at] == '[')
            bracket_check(s, t);
        else if (t.kind == ATOM && t.n == 1 && std::strchr("BCNOPSFIbcnops*", s[t.at]) == nullptr)
            fail(CH_PARSE, place(s, t) + ": no atom that is written without brackets");
        before = t.kind;
    }
    if (before == DOT)
        fail(CH_PARSE, "a SMILES that ends with '.'");
    aromatic_check(s, all);
}

// ---- what was read

// How many bonds it has: of each atom but the first of a part that to an atom before, and those of rings.
static size_t bonds_in(const std::vector<Token> &all)
{
    size_t n[END] = { 0 };
    for (const Token &t : all)
        n[t.kind]++;
    return n[ATOM] > n[DOT] ? n[ATOM] - n[DOT] - 1 + n[RING] / 2 : 0;
}

static int bonds_of(OBAtom &a) { return static_cast<int>(a.GetExplicitValence() + a.GetImplicitHCount()); }

// Neighbours of a halogen but oxygen and fluorine: one at most has a bond to chlorine or bromine with several bonds.
static int others_of(OBAtom &a)
{
    int n = 0;
    FOR_NBORS_OF_ATOM(b, &a)
        n += b->GetAtomicNum() != 8 && b->GetAtomicNum() != 9;
    return n;
}

static void atom_check(const std::string &s, const Token &t, OBAtom &a)
{
    const bool bare = s[t.at] != '[', halogen = a.GetAtomicNum() == 17 || a.GetAtomicNum() == 35;
    if (bare && a.GetAtomicNum() == 6 && a.GetFormalCharge() == 0 && bonds_of(a) < 4)
        fail(CH_PARSE, place(s, t) + ": with these aromatic bonds it is a carbon with " + number(bonds_of(a)) + " bonds");
    if (bare && halogen && bonds_of(a) == 3 && others_of(a) > 1)
        fail(CH_PARSE,
             place(s, t) + ": a halogen with 3 bonds, of which at most one may be to another atom than oxygen and fluorine");
}

void smiles_read_check(OBMol &mol, const std::string &s)
{
    const std::vector<Token> all = tokens_of(s);
    std::vector<Token> atoms;
    for (const Token &t : all)
        if (t.kind == ATOM)
            atoms.push_back(t);
    if (mol.NumBonds() < bonds_in(all))
        fail(CH_PARSE, "a ring closure of a SMILES joins two atoms that have a bond already");
    if (atoms.size() != mol.NumAtoms())
        return;
    FOR_ATOMS_OF_MOL(a, mol) {
        const Token &t = atoms[a->GetIdx() - 1];
        if (is_lower(s.substr(t.at, t.n)) && !a->IsInRing())
            fail(CH_PARSE, "atom " + number(a->GetIdx()) + " of a SMILES is written in lower case, as aromatic, and is in no ring");
        atom_check(s, t, *a);
    }
}

} // namespace worker
