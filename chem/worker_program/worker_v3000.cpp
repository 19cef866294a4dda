// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_v3000.cpp - checks and rewrites V3000 molfiles before Open Babel reads them.
//
// Open Babel 3.1.1 has six faults here. It reads words of a line without checking that they exist (what it finds depends on
// earlier records). It loses a word where a bond line continues on the next line. It does not compare the numbers of atoms and
// bonds that it read with those in the counts line. It does not read VAL. It passes over CFG=2, by which a double bond, or a wavy bond
// at one, is of no known form. And for the end of an unknown block it searches a name in freed memory: such blocks (SGROUP, COLLECTION,
// RGROUP, ...), which it would ignore, are removed.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/elements.h>
#include <openbabel/obiter.h>

using namespace OpenBabel;

namespace worker {

typedef std::vector<std::string> Words;

// Splits a line as Open Babel does, for which a zero byte ends the line.
static Words words_of(const std::string &line)
{
    const std::string s = line.substr(0, line.find('\0'));
    Words words;
    for (size_t at = 0, end; (at = s.find_first_not_of(" \t\r", at)) != std::string::npos; at = end) {
        end = std::min(s.find_first_of(" \t\r", at), s.size());
        words.push_back(s.substr(at, end - at));
    }
    return words;
}

namespace {
class Walk {
public:
    V3000 v;
    void line(const std::string &s);
    void check() const;

private:
    int n_ = 0;
    std::string held_, block_;          // the line read so far, if it continues; ATOM, BOND, ...
    std::string unknown_;               // name of the block that is being removed
    std::map<std::string, long> place_; // of atoms, from 1, by their numbers
    long said_atoms_ = -1, said_bonds_ = -1;
    bool over_ = false, ctab_over_ = false;

    [[noreturn]] void refuse(const std::string &what) const
    {
        fail(CH_PARSE, "line " + number(n_) + " of a V3000 molfile " + what);
    }
    void at_least(const Words &w, size_t n) const
    {
        if (w.size() < n)
            refuse("has " + number(static_cast<long>(w.size())) + " words, " + number(static_cast<long>(n)) + " are needed");
    }
    bool left_out(const Words &w);
    void data(const Words &w);
    void atom(const Words &w);
    void bond(const Words &w);
};
} // namespace

// Whether the line is in a block that Open Babel does not know, including its first and last line.
bool Walk::left_out(const Words &w)
{
    static const std::set<std::string> known = { "CTAB", "ATOM", "BOND" };
    if (unknown_.empty()) {
        if (w.size() > 3 && w[2] == "BEGIN" && !known.count(w[3]))
            unknown_ = w[3];
        return !unknown_.empty();
    }
    if (unknown_ == "SGROUP" && w.size() > 3)
        sgroup_check(w[3]);
    if (over_)
        refuse("comes before the end of " + unknown_);
    if (w.size() > 3 && w[2] == "END" && w[3] == unknown_)
        unknown_.clear();
    return true;
}

// How many words a line of this block has at least.
static size_t words_needed(const std::string &block, const std::string &first)
{
    if (first == "END")
        return 3;
    if (block == "ATOM")
        return 8;
    return block == "BOND" ? 6 : 3;
}

void Walk::data(const Words &w)
{
    at_least(w, words_needed(block_, w[2]));
    if (w[2] == "BEGIN" || w[2] == "END") {
        at_least(w, 4);
        block_ = w[2] == "BEGIN" ? w[3] : "";
        ctab_over_ = ctab_over_ || (w[2] == "END" && w[3] == "CTAB");
    } else if (w[2] == "COUNTS" && said_atoms_ < 0) {
        at_least(w, 5);
        said_atoms_ = std::atol(w[3].c_str());
        said_bonds_ = std::atol(w[4].c_str());
    } else if (!ctab_over_) {
        v.atoms += block_ == "ATOM";
        v.bonds += block_ == "BOND";
        if (block_ == "ATOM")
            atom(w);
        if (block_ == "BOND")
            bond(w);
        if (w[2] == "LINKNODE")
            refuse("has LINKNODE: a part that repeats, not a molecule");
    }
}

void Walk::atom(const Words &w)
{
    for (size_t k = 4; k < 7; k++)
        position_check(v.atoms, w[k]);
    if (!place_.insert({ w[2], v.atoms }).second)
        refuse("has the number of another atom");
    for (size_t k = 8; k < w.size(); k++) {
        const long valence = w[k].compare(0, 4, "VAL=") == 0 ? std::atol(w[k].c_str() + 4) : 0;
        if (valence < -1 || valence > 14)
            refuse("has " + w[k]);
        if (valence != 0)
            v.valence.push_back({ v.atoms, static_cast<int>(valence) });
        if (w[k].compare(0, 8, "ATTCHPT=") == 0 && w[k] != "ATTCHPT=0")
            refuse("has ATTCHPT: a part, not a molecule");
    }
}

void Walk::bond(const Words &w)
{
    molfile_bond_check(v.bonds, w[3]);
    const auto begin = place_.find(w[4]), end = place_.find(w[5]);
    if (begin != place_.end() && end != place_.end() && std::find(w.begin() + 6, w.end(), "CFG=2") != w.end())
        v.either.push_back({ begin->second, end->second });
}

void Walk::line(const std::string &text)
{
    std::string s = !text.empty() && text.back() == '\r' ? text.substr(0, text.size() - 1) : text;
    const Words w = words_of(s);
    if (++n_ > 4 && !over_) {
        over_ = w.size() > 1 && w[0] == "M" && w[1] == "END";
        if (over_ ? !held_.empty() : w.size() < 3 || w[0] != "M" || w[1] != "V30")
            refuse("is not \"M  V30\" and more");
        if (held_.empty() && left_out(w))
            return;
        if (!held_.empty())
            s = held_ + s.substr(s.find("V30") + 4);
        held_.clear();
        if (!over_ && (block_ == "ATOM" || block_ == "BOND") && s.back() == '-') {
            held_ = s.substr(0, s.size() - 1);
            return;
        }
        if (!over_)
            data(words_of(s));
    }
    v.text += s + "\n";
}

void Walk::check() const
{
    if (!unknown_.empty())
        fail(CH_PARSE, "a V3000 molfile has no end of " + unknown_);
    if (said_atoms_ != v.atoms || said_bonds_ != v.bonds)
        fail(CH_PARSE, "a V3000 molfile is to have " + number(said_atoms_) + " atoms and " + number(said_bonds_) +
                           " bonds, and has " + number(v.atoms) + " and " + number(v.bonds));
}

bool is_molfile(const std::string &format)
{
    static const std::set<std::string> molfiles = { "sdf", "sd", "mol", "mdl" };
    return molfiles.count(format) > 0;
}

bool is_v3000(const std::string &text, const std::string &format)
{
    size_t at = 0;
    for (int i = 0; i < 3 && at != std::string::npos; i++) {
        at = text.find('\n', at);
        at += at != std::string::npos;
    }
    return is_molfile(format) && at != std::string::npos &&
           text.substr(at, text.find('\n', at) - at).find("V3000") != std::string::npos;
}

V3000 v3000_of(const std::string &text)
{
    std::istringstream in(text);
    Walk walk;
    for (std::string s; std::getline(in, s);)
        walk.line(s);
    walk.check();
    return walk.v;
}

static void leave_open(OBStereoFacade &stereo, const OBBond *bond)
{
    if (!stereo.HasCisTransStereo(bond->GetId()))
        return;
    OBCisTransStereo *form = stereo.GetCisTransStereo(bond->GetId());
    OBCisTransStereo::Config config = form->GetConfig();
    config.specified = false;
    form->SetConfig(config);
}

void v3000_leave_open(OBMol &mol, const V3000 &v)
{
    OBStereoFacade stereo(&mol);
    for (const auto &drawn : v.either) {
        OBAtom *begin = mol.GetAtom(static_cast<int>(drawn.first)), *end = mol.GetAtom(static_cast<int>(drawn.second));
        const OBBond *bond = mol.GetBond(begin, end); // NULL, too, where an atom is missing
        if (bond == nullptr || mol.GetDimension() != 2)
            continue;
        leave_open(stereo, bond);
        FOR_BONDS_OF_ATOM(b, begin) // a wavy bond has its narrow end there
            if (bond->GetBondOrder() == 1)
                leave_open(stereo, &*b);
    }
}

// The columns of a V2000 molfile have four decimals.
bool fits_columns(OBMol &mol)
{
    FOR_ATOMS_OF_MOL(a, mol)
        for (double x : { a->GetX(), a->GetY(), a->GetZ() })
            if (!(std::fabs(x * 1e4 - std::round(x * 1e4)) < 1e-5))
                return false;
    return true;
}

// V3000 allows more digits, but Open Babel writes six.
std::string with_all_digits(const std::string &molfile, OBMol &mol)
{
    std::istringstream lines(molfile);
    std::string line, all;
    for (unsigned next = 0; std::getline(lines, line); all += line + "\n") {
        if (line == "M  V30 BEGIN ATOM")
            next = 1;
        else if (line == "M  V30 END ATOM")
            next = 0;
        else if (next > 0) {
            OBAtom *a = mol.GetAtom(static_cast<int>(next++));
            const size_t equals = line.find('='), rest = equals == std::string::npos ? equals : line.rfind(' ', equals);
            char atom[128];
            std::snprintf(atom, sizeof atom, "M  V30 %u %s %.12g %.12g %.12g 0", a->GetIdx(),
                          OBElements::GetSymbol(a->GetAtomicNum()), a->GetX(), a->GetY(), a->GetZ());
            line = atom + (rest == std::string::npos ? "" : line.substr(rest));
        }
    }
    return all;
}

} // namespace worker
