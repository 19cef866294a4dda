// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_molfile.cpp - what Open Babel reads from a molfile as if it were a molecule.
//
// It reads a position that is no number as far as it is one ("1,36" as 1, "abc" as 0), and the bonds of queries (types 5 to 8) and
// between molecules (9, 10) as bonds of that order.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

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

void molfile_position(long atom, const std::string &field)
{
    char *end = nullptr;
    (void)std::strtod(field.c_str(), &end);
    if (field.empty() || end != field.c_str() + field.size())
        fail(CH_PARSE, "atom " + number(atom) + " of a molfile has '" + field + "' where a position has a number");
}

void molfile_bond(long bond, const std::string &type)
{
    if (std::atol(type.c_str()) > 4)
        fail(CH_PARSE, "bond " + number(bond) + " of a molfile has type " + type +
                           ", which is of queries or between molecules; 1 to 3 and 4 (aromatic) are read");
}

void molfile_check(const std::string &text)
{
    std::istringstream in(text);
    std::string s;
    for (int i = 0; i < 4 && std::getline(in, s); i++)
        continue;
    const long atoms = std::atol(columns(s, 0, 3).c_str()), bonds = std::atol(columns(s, 3, 3).c_str());
    for (long k = 1; k <= atoms && std::getline(in, s); k++)
        for (size_t from = 0; from < 30 && s.size() >= 34; from += 10) // Open Babel refuses shorter lines
            molfile_position(k, columns(s, from, 10));
    for (long k = 1; k <= bonds && std::getline(in, s); k++)
        molfile_bond(k, columns(s, 6, 3));
}

} // namespace worker
