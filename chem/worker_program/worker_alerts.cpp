// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_alerts.cpp - which of the user's SMARTS a molecule matches.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cctype>
#include <memory>
#include <sstream>
#include <vector>

#include <openbabel/oberror.h>
#include <openbabel/parsmart.h>

using namespace OpenBabel;

namespace worker {

namespace {
struct Rule {
    OBSmartsPattern smarts;
    std::string name;
    bool hydrogens; // it names hydrogen as an atom
};
} // namespace

// "[H]", or the element number 1, also when negated: such a pattern is matched against the molecule with explicit hydrogens.
static bool names_hydrogen(const std::string &smarts)
{
    size_t at = smarts.find("#1");
    while (at != std::string::npos && at + 2 < smarts.size() && std::isdigit(static_cast<unsigned char>(smarts[at + 2])))
        at = smarts.find("#1", at + 2);
    return at != std::string::npos || smarts.find("[H]") != std::string::npos;
}

// The column of an error: Open Babel marks it with a caret on the next line.
static int32_t column_of_error()
{
    for (const std::string &m : obErrorLog.GetMessagesOfLevel(obError)) {
        const size_t caret = m.rfind('^'), line = caret == std::string::npos ? caret : m.rfind('\n', caret);
        if (line != std::string::npos)
            return static_cast<int32_t>(caret - line);
    }
    return 1;
}

int32_t smarts_check(const std::string &smarts)
{
    const size_t blank = smarts.find_first_of(" \t\r\n");
    OBSmartsPattern pattern;
    if (smarts.empty() || blank != std::string::npos)
        return smarts.empty() ? 1 : static_cast<int32_t>(blank) + 1;
    obErrorLog.ClearLog();
    return pattern.Init(smarts) ? 0 : column_of_error();
}

std::vector<BadRule> rules_check(const std::string &rules)
{
    std::istringstream lines(rules);
    std::string line;
    std::vector<BadRule> bad;
    for (int32_t i = 0; std::getline(lines, line); i++) {
        OBSmartsPattern pattern;
        obErrorLog.ClearLog();
        if (!pattern.Init(first_word(line)))
            bad.push_back({ i, column_of_error() });
    }
    return bad;
}

// The parsed rules of the last record, which are nearly always the same for this one.
static const std::vector<std::unique_ptr<Rule>> &rules_of(const std::string &text)
{
    static std::string known;
    static std::vector<std::unique_ptr<Rule>> rules;
    if (text == known)
        return rules;
    std::istringstream lines(text);
    std::string line;
    known.clear();
    rules.clear();
    while (std::getline(lines, line)) {
        const std::string smarts = first_word(line);
        rules.emplace_back(new Rule);
        if (!rules.back()->smarts.Init(smarts))
            fail(CH_FORMAT, "an alert that is no SMARTS: " + smarts);
        rules.back()->name = line.substr(std::min(line.size(), smarts.size() + 1));
        rules.back()->hydrogens = names_hydrogen(smarts);
    }
    known = text;
    return rules;
}

std::string mol_alerts(const OBMol &mol, const std::string &text)
{
    const std::vector<std::unique_ptr<Rule>> &rules = rules_of(text);
    OBMol bare = mol, full; // so that explicit hydrogens in the record do not change the alerts
    std::vector<std::string> found;
    std::string all;
    if (bare.NumHvyAtoms() > 0)
        bare.DeleteHydrogens();
    for (const auto &rule : rules) {
        if (std::find(found.begin(), found.end(), rule->name) != found.end())
            continue;
        if (rule->hydrogens && full.NumAtoms() == 0) {
            full = bare;
            add_hydrogens(full);
        }
        if (!rule->smarts.HasMatch(rule->hydrogens ? full : bare))
            continue;
        found.push_back(rule->name);
        all += (all.empty() ? "" : ", ") + rule->name;
    }
    return all;
}

int32_t smarts_match(const std::string &smarts, const std::string &smiles)
{
    OBMol mol;
    try {
        mol_read(mol, smiles, "smi");
    } catch (const Failure &) {
        return -1;
    }
    return mol_alerts(mol, smarts + " x").empty() ? 0 : 1;
}

} // namespace worker
