// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_written.cpp - what Open Babel reads from the text of a record as something else.
//
// It reads a position that is no number as far as it is one ("1,36" as 1, "abc" as 0), the bonds of queries (types 5 to 8 of a molfile)
// and between molecules (9, 10) as bonds of that order, and bonds of MOL2 that are not known or none ("un", "du", "nc") as single.
#include "chem/worker_program/worker.hpp"

#include <cstdlib>
#include <set>
#include <sstream>
#include <vector>

namespace worker {

static std::string trimmed(const std::string &s)
{
    const size_t from = s.find_first_not_of(" \t\r");
    return from == std::string::npos ? "" : s.substr(from, s.find_last_not_of(" \t\r") + 1 - from);
}

static std::string columns(const std::string &line, size_t from, size_t n)
{
    return from < line.size() ? trimmed(line.substr(from, n)) : "";
}

std::vector<std::string> words_in(const std::string &line)
{
    std::istringstream in(line);
    std::vector<std::string> all;
    for (std::string s; in >> s;)
        all.push_back(s);
    return all;
}

void position_check(long atom, const std::string &field)
{
    char *end = nullptr;
    (void)std::strtod(field.c_str(), &end);
    if (field.empty() || end != field.c_str() + field.size())
        fail(CH_PARSE, "atom " + number(atom) + " has '" + field + "' where a position has a number");
}

void molfile_bond_check(long bond, const std::string &type)
{
    if (std::atol(type.c_str()) > 4)
        fail(CH_PARSE, "bond " + number(bond) + " of a molfile has type " + type +
                           ", which is of queries or between molecules; 1 to 3 and 4 (aromatic) are read");
}

static void check_molfile(std::istream &in)
{
    std::string s;
    for (int i = 0; i < 4 && std::getline(in, s); i++)
        continue;
    const long atoms = std::atol(columns(s, 0, 3).c_str()), bonds = std::atol(columns(s, 3, 3).c_str());
    for (long k = 1; k <= atoms && std::getline(in, s); k++)
        for (size_t from = 0; from < 30 && s.size() >= 34; from += 10) // Open Babel refuses shorter lines
            position_check(k, columns(s, from, 10));
    for (long k = 1; k <= bonds && std::getline(in, s); k++)
        molfile_bond_check(k, columns(s, 6, 3));
}

static void check_mol2(std::istream &in)
{
    static const std::set<std::string> types = { "1", "2", "3", "am", "ar", "AM", "AR", "Am", "Ar", "aromatic" };
    std::string section;
    long k = 0;
    for (std::string s; std::getline(in, s);) {
        const std::vector<std::string> w = words_in(s);
        if (s[0] == '@') {
            section = trimmed(s);
            k = 0;
            continue;
        }
        k += !w.empty();
        for (size_t i = 2; i < 5 && section == "@<TRIPOS>ATOM" && w.size() > 5; i++)
            position_check(k, w[i]);
        if (section == "@<TRIPOS>BOND" && w.size() > 3 && types.count(w[3]) == 0)
            fail(CH_PARSE, "bond " + number(k) + " of a MOL2 record has type " + w[3] + "; 1, 2, 3, am and ar are read");
    }
}

static void check_pdb(std::istream &in)
{
    long k = 0;
    for (std::string s; std::getline(in, s);)
        if (s.compare(0, 6, "ATOM  ") == 0 || s.compare(0, 6, "HETATM") == 0) {
            k++;
            for (size_t from = 30; from < 54 && s.size() >= 54; from += 8)
                position_check(k, columns(s, from, 8));
        }
}

void text_check(const std::string &text, const std::string &format)
{
    std::istringstream in(text);
    if (is_molfile(format))
        check_molfile(in);
    else if (format == "mol2")
        check_mol2(in);
    else if (format == "pdb")
        check_pdb(in);
}

} // namespace worker
