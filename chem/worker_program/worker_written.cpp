// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_written.cpp - what Open Babel reads from the text of a record as something else.
//
// It reads a position that is no number as far as it is one ("1,36" as 1, "abc" as 0), and adds no hydrogens where one is "inf". It reads
// the bonds of queries (types 5 to 8 of a molfile) and between molecules (9, 10) as bonds of that order, bonds of MOL2 that are not known
// or none ("un", "du", "nc") as single, and "aromatic" as order 0. Of the fourth line of a molfile it reads as many columns as are
// numbers ("3 2" as 3 atoms without bonds), a polymer as one unit with hydrogen at its ends, the atom of a list of elements as the first
// of them, an atom that is called "Boc" as the element that it has, a bond of order 0 as a single one, and the old code of a radical not
// at all.
// Of an atom of a crystal in two places, and of all models of a CIF, it makes atoms of one molecule. Where a line of MOL2 is cut short it
// takes what the line before had, it leaves out such an atom of PDB, and a position that CML or CIF do not have is 0.
#include "chem/worker_program/worker.hpp"

#include <openbabel/atom.h>
#include <openbabel/elements.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
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
    const double x = std::strtod(field.c_str(), &end);
    if (field.empty() || end != field.c_str() + field.size() || !std::isfinite(x))
        fail(CH_PARSE, "atom " + number(atom) + " has '" + field + "' where a position has a number");
}

// Three positions, or none of them.
static void all_or_none(long atom, const char *const names[3], const std::map<std::string, std::string> &values)
{
    size_t n = 0;
    for (size_t i = 0; i < 3; i++)
        n += values.count(names[i]);
    for (size_t i = 0; i < 3 && n > 0; i++)
        position_check(atom, values.count(names[i]) > 0 ? values.at(names[i]) : "");
}

void molfile_bond_check(long bond, const std::string &type)
{
    const long n = std::atol(type.c_str());
    if (!type.empty() && (n < 1 || n > 4)) // Open Babel refuses a blank
        fail(CH_PARSE, "bond " + number(bond) + " of a molfile has type " + type +
                           ", which is of queries or between molecules; 1 to 3 and 4 (aromatic) are read");
}

// Names of repeating units, monomers and copolymers; the others are of molecules (SUP, DAT, MUL, ...).
void sgroup_check(const std::string &kind)
{
    static const std::set<std::string> polymers = { "SRU", "MON", "MER", "COP", "CRO", "GRA", "MOD", "ANY" };
    if (polymers.count(kind) > 0)
        fail(CH_PARSE, "a polymer (" + kind + " in a molfile), not a molecule");
}

// A number of a counts line; blank is 0.
static long count_in(const std::string &line, size_t from)
{
    const std::string s = columns(line, from, 3);
    if (s.find_first_not_of("0123456789") != std::string::npos)
        fail(CH_PARSE, "the fourth line of a molfile has '" + s + "' in columns " + number(static_cast<long>(from) + 1) + " to " +
                           number(static_cast<long>(from) + 3) + ", where a number of atoms or bonds has to be");
    return std::atol(s.c_str());
}

// A line after the bonds. Kinds that no table here has are ignored, as by Open Babel.
static void check_property(const std::string &s)
{
    static const std::set<std::string> read = { "CHG", "RAD", "ISO" };
    static const std::map<std::string, std::string> refused = {
        { "ALS", "a list of elements, which is of queries" },
        { "LIN", "a part that repeats (link nodes), not a molecule" },
        { "APO", "a point of attachment: a part, not a molecule" },
        { "ZBO", "a bond of order 0, which is not read" },
    };
    const std::vector<std::string> word = words_in(s);
    if (word.size() < 2 || word[0] != "M")
        return;
    if (read.count(word[1]) > 0 && s.compare(0, 6, "M  " + word[1]) != 0)
        fail(CH_PARSE, "a line of a molfile begins with '" + s.substr(0, 6) + "', not with 'M  " + word[1] + "'");
    if (refused.count(word[1]) > 0)
        fail(CH_PARSE, "a molfile has M  " + word[1] + ": " + refused.at(word[1]));
    for (size_t i = 4; i < word.size() && word[1] == "STY"; i += 2)
        sgroup_check(word[i]);
}

// ---- other names of atoms: a line "A  nnn" with the atom, and the next with its name

struct Alias {
    long atom;
    std::string name, element;
};

// As the PDB calls atoms: "CA" or "O1P", "CL" of chlorine.
static bool begins_with_element(const Alias &a)
{
    if (a.name.size() < a.element.size())
        return false;
    return std::equal(a.element.begin(), a.element.end(), a.name.begin(),
                      [](unsigned char x, unsigned char y) { return std::toupper(x) == std::toupper(y); });
}

// "CH3", "H2N+" or "C2" of an atom of the element says what is drawn, and so does "ZN" of zinc.
static bool is_drawn(const Alias &a)
{
    const size_t at = begins_with_element(a) ? 0 : a.name.find(a.element);
    if (at == std::string::npos)
        return false;
    const std::string rest = a.name.substr(0, at) + a.name.substr(at + a.element.size());
    return rest.find_first_not_of("H0123456789+-.:' ") == std::string::npos;
}

// "Boc" or "R1" is not the carbon that it stands at. Where the atom is no element, Open Babel expands the groups that it knows, and the
// others fail. Where all heavy atoms have a name, these are names of atoms: RDKit writes those of the PDB so.
static void check_aliases(const std::vector<Alias> &aliases, const std::vector<std::string> &elements)
{
    const size_t few = 4, hydrogens = static_cast<size_t>(std::count(elements.begin(), elements.end(), "H"));
    const bool named = aliases.size() > few && aliases.size() >= elements.size() - hydrogens;
    for (const Alias &a : aliases)
        if (!is_drawn(a) && !(named && begins_with_element(a)))
            fail(CH_PARSE, "atom " + number(a.atom) + " of a molfile is " + a.element + ", and a line A calls it '" +
                               a.name.substr(0, 40) + "': draw the atoms of the group, or remove the line");
}

// Of an atom that is an element.
static void add_alias(std::vector<Alias> &aliases, const std::string &line, const std::string &name,
                      const std::vector<std::string> &elements)
{
    const size_t atom = static_cast<size_t>(std::max(0L, std::atol(columns(line, 3, 3).c_str())));
    if (atom < 1 || atom > elements.size() || trimmed(name).empty())
        return;
    const std::string &element = elements[atom - 1];
    if (OpenBabel::OBElements::GetAtomicNum(element.c_str()) > 0)
        aliases.push_back({ static_cast<long>(atom), trimmed(name), element });
}

// Lines of charges or radicals replace the codes of all atoms.
static void check_properties(std::istream &in, long radical, const std::vector<std::string> &elements)
{
    std::vector<Alias> aliases;
    for (std::string s, name; std::getline(in, s) && s.compare(0, 6, "M  END") != 0 && s.compare(0, 1, ">") != 0;) {
        check_property(s);
        if (s.compare(0, 6, "S  SKP") == 0)
            fail(CH_PARSE, "a molfile has S  SKP, lines to pass over: remove them");
        if (s.compare(0, 3, "A  ") == 0 && std::getline(in, name))
            add_alias(aliases, s, name, elements);
        if (s.compare(0, 6, "M  CHG") == 0 || s.compare(0, 6, "M  RAD") == 0)
            radical = 0;
    }
    check_aliases(aliases, elements);
    if (radical > 0)
        fail(CH_PARSE, "atom " + number(radical) + " of a molfile has the charge code 4, a radical: write a line M  RAD");
}

static void check_molfile(std::istream &in)
{
    std::string s;
    long radical = 0; // an atom with the code of a radical
    std::vector<std::string> elements;
    for (int i = 0; i < 4 && std::getline(in, s); i++)
        continue;
    const long atoms = count_in(s, 0), bonds = count_in(s, 3);
    if (count_in(s, 6) > 0)
        fail(CH_PARSE, "a molfile has lists of elements, which are of queries");
    for (long k = 1; k <= atoms && std::getline(in, s); k++) {
        for (size_t from = 0; from < 30 && s.size() >= 34; from += 10) // Open Babel refuses shorter lines
            position_check(k, columns(s, from, 10));
        radical = columns(s, 36, 3) == "4" ? k : radical;
        elements.push_back(columns(s, 31, 3));
    }
    for (long k = 1; k <= bonds && std::getline(in, s); k++)
        molfile_bond_check(k, columns(s, 6, 3));
    check_properties(in, radical, elements);
}

static void mol2_atom_check(long k, const std::vector<std::string> &w)
{
    if (w.size() < 6)
        fail(CH_PARSE, "the line of atom " + number(k) + " of a MOL2 record has " + number(static_cast<long>(w.size())) +
                           " words; a number, a name, three positions and a type are needed");
    for (size_t i = 2; i < 5; i++)
        position_check(k, w[i]);
}

static void mol2_bond_check(long k, const std::vector<std::string> &w)
{
    static const std::set<std::string> types = { "1", "2", "3", "am", "ar", "AM", "AR", "Am", "Ar" };
    if (w.size() < 4)
        fail(CH_PARSE, "the line of bond " + number(k) + " of a MOL2 record has " + number(static_cast<long>(w.size())) +
                           " words; a number, two atoms and a type are needed");
    if (types.count(w[3]) == 0)
        fail(CH_PARSE, "bond " + number(k) + " of a MOL2 record has type " + w[3] + "; 1, 2, 3, am and ar are read");
}

// The second line of a molecule has the numbers of atoms and bonds; Open Babel reads as many lines, whatever is in them.
static void check_mol2(std::istream &in)
{
    std::string section;
    long k = 0, atoms = 0, bonds = 0;
    for (std::string s; std::getline(in, s);) {
        const std::vector<std::string> w = words_in(s);
        if (s[0] == '@') {
            section = trimmed(s);
            k = 0;
            continue;
        }
        k++;
        if (section == "@<TRIPOS>MOLECULE" && k == 2) {
            atoms = w.empty() ? 0 : std::atol(w[0].c_str());
            bonds = w.size() < 2 ? 0 : std::atol(w[1].c_str());
        }
        if (section == "@<TRIPOS>ATOM" && k <= atoms)
            mol2_atom_check(k, w);
        if (section == "@<TRIPOS>BOND" && k <= bonds)
            mol2_bond_check(k, w);
    }
}

static std::string place_called(const std::string &place) { return place.empty() ? "none" : place; }

// An atom of a crystal in two places: Open Babel reads all of them as atoms. `where`: where the atom called so was first.
static void check_place(std::map<std::string, std::string> &where, const std::string &name, const std::string &place)
{
    const auto first = where.emplace(name, place).first;
    if (first->second == place)
        return;
    fail(CH_PARSE, "atom " + name + " is in alternate locations (" + place_called(first->second) + " and " + place_called(place) +
                       "), which are places of one atom: keep the atoms of one location");
}

static void check_pdb(std::istream &in)
{
    std::map<std::string, std::string> where;
    long k = 0;
    for (std::string s; std::getline(in, s);)
        if (s.compare(0, 6, "ATOM  ") == 0 || s.compare(0, 6, "HETATM") == 0) {
            k++;
            if (s.size() < 54)
                fail(CH_PARSE, "the line of atom " + number(k) +
                                   " of a PDB record ends before its positions, which are in columns 31 "
                                   "to 54");
            for (size_t from = 30; from < 54; from += 8)
                position_check(k, columns(s, from, 8));
            check_place(where, columns(s, 12, 4) + " " + columns(s, 17, 10), columns(s, 16, 1));
        }
}

// ---- CIF and mmCIF

// The words of a CIF: quotes are taken off, and texts between lines that begin with a semicolon are one word.
static std::vector<std::string> cif_words(std::istream &in)
{
    std::vector<std::string> all;
    bool inside = false;
    for (std::string s; std::getline(in, s);) {
        if (s[0] == ';') {
            inside = !inside;
            if (inside)
                all.emplace_back();
            continue;
        }
        for (size_t i = 0; !inside && (i = s.find_first_not_of(" \t\r", i)) != std::string::npos && s[i] != '#';) {
            const bool quoted = s[i] == '\'' || s[i] == '"';
            size_t end = s.find_first_of(" \t\r", i);
            for (end = std::min(end, s.size()); quoted && end < s.size() && (s[end - 1] != s[i] || end < i + 2);)
                end = std::min(s.find_first_of(" \t\r", end + 1), s.size());
            all.push_back(quoted && end > i + 1 ? s.substr(i + 1, end - i - 2) : s.substr(i, end - i));
            i = end;
        }
    }
    return all;
}

// One row of the table of atoms: the value of a column, "" where there is none.
struct CifAtom {
    const std::map<std::string, size_t> &column;
    const std::string *word;

    std::string value(const std::string &name) const
    {
        const auto at = column.find(name);
        const std::string s = at != column.end() ? word[at->second] : "";
        return s == "." || s == "?" ? "" : s;
    }
};

// Models, and places of one atom: in mmCIF of an atom, in CIF of a part of the molecule.
struct CifPlaces {
    std::map<std::string, std::string> where;
    std::string model, group;
    long k = 0; // atoms so far

    // "0.1234(5)": digits in brackets are the error of the last ones.
    void check_positions(const CifAtom &a) const
    {
        static const char *const sets[][3] = { { "fract_x", "fract_y", "fract_z" }, { "Cartn_x", "Cartn_y", "Cartn_z" } };
        for (const auto &names : sets) {
            std::map<std::string, std::string> values;
            for (const char *name : names)
                if (a.column.count(name) > 0)
                    values[name] = a.value(name).substr(0, a.value(name).find('('));
            all_or_none(k, names, values);
        }
    }

    void check(const CifAtom &a)
    {
        k++;
        check_positions(a);
        const std::string in = a.value("pdbx_PDB_model_num"), part = a.value("disorder_group");
        if (!model.empty() && !in.empty() && in != model)
            fail(CH_PARSE, "several models (" + model + " and " + in + "), which are structures of one molecule: keep one");
        if (!group.empty() && !part.empty() && part != group)
            fail(CH_PARSE,
                 "disordered atoms (groups " + group + " and " + part + "), which are places of one atom: keep one group");
        model = in.empty() ? model : in;
        group = part.empty() ? group : part;
        if (a.column.count("label_alt_id") > 0)
            check_place(where,
                        a.value("label_atom_id") + " " + a.value("label_comp_id") + " " + a.value("label_asym_id") + " " +
                            a.value("label_seq_id") + a.value("auth_seq_id"),
                        a.value("label_alt_id"));
    }
};

// Not the beginning of something else.
static bool is_value(const std::string &word)
{
    return word[0] != '_' && word != "loop_" && word.compare(0, 5, "data_") != 0 && word.compare(0, 5, "save_") != 0;
}

static bool has_values(const std::vector<std::string> &w, size_t from, size_t n)
{
    if (from + n > w.size())
        return false;
    return std::all_of(w.begin() + static_cast<long>(from), w.begin() + static_cast<long>(from + n), is_value);
}

static void check_cif(std::istream &in)
{
    static const std::string table = "_atom_site";
    const std::vector<std::string> w = cif_words(in);
    CifPlaces places;
    for (size_t i = 0; i < w.size(); i++) {
        std::map<std::string, size_t> column;
        size_t n = 0;
        if (w[i] != "loop_")
            continue;
        for (i++; i < w.size() && w[i][0] == '_'; i++, n++)
            if (w[i].compare(0, table.size(), table) == 0 && w[i].size() > table.size() + 1)
                column[w[i].substr(table.size() + 1)] = n;
        for (; n > 0 && column.size() == n && has_values(w, i, n); i += n)
            places.check({ column, &w[i] });
        if (n > 0 && column.size() == n && i < w.size() && is_value(w[i]))
            fail(CH_PARSE, "the last row of the atoms of a CIF has fewer values than there are columns");
        i -= 1;
    }
}

// ---- CML

// The attributes of a tag: text[at] is behind its name.
static std::map<std::string, std::string> attributes_of(const std::string &text, size_t at)
{
    std::map<std::string, std::string> all;
    while ((at = text.find_first_not_of(" \t\r\n", at)) != std::string::npos && text[at] != '>' && text[at] != '/') {
        const size_t equals = text.find('=', at), open = text.find_first_of("\"'", at);
        const size_t close = open != std::string::npos ? text.find(text[open], open + 1) : open;
        if (equals == std::string::npos || close == std::string::npos || equals > open)
            break;
        all[trimmed(text.substr(at, equals - at))] = text.substr(open + 1, close - open - 1);
        at = close + 1;
    }
    return all;
}

static void cml_atom_check(long k, const std::map<std::string, std::string> &attributes)
{
    static const char *const sets[][3] = { { "x3", "y3", "z3" }, { "xFract", "yFract", "zFract" } };
    for (const auto &names : sets)
        all_or_none(k, names, attributes);
}

// Why an atom is not read as it is written; "": it is.
static std::string cml_atom_problem(long k, const std::map<std::string, std::string> &attributes)
{
    try {
        cml_atom_check(k, attributes);
    } catch (const Failure &f) {
        return f.text;
    }
    return "";
}

// The name of the tag at a "<", without its namespace; *end is behind it.
static std::string tag_name(const std::string &text, size_t at, size_t *end)
{
    *end = std::min(text.find_first_of(" \t\r\n/>", at + 2), text.size());
    const std::string name = text.substr(at + 1, *end - at - 1);
    const size_t colon = name.find(':');
    if (colon == std::string::npos)
        return name;
    const std::string slash = name[0] == '/' ? "/" : "";
    return slash + name.substr(colon + 1);
}

std::vector<std::string> cml_problems(const std::string &text)
{
    std::vector<std::string> all;
    long depth = 0, atoms = 0;
    for (size_t at = 0, end; (at = text.find('<', at)) != std::string::npos; at++) {
        if (text.compare(at, 4, "<!--") == 0) {
            at = std::min(text.find("-->", at), text.size() - 1);
            continue;
        }
        const std::string name = tag_name(text, at, &end);
        if (name == "molecule" && depth == 0) {
            all.emplace_back();
            atoms = 0;
        }
        if (name == "molecule")
            depth += text[std::min(text.find('>', at), text.size()) - 1] != '/';
        else if (name == "/molecule")
            depth--;
        else if (name == "atom" && depth > 0 && all.back().empty())
            all.back() = cml_atom_problem(++atoms, attributes_of(text, end));
    }
    return all;
}

// ---- rows of atoms in files of quantum chemistry and dynamics

// A letter for each word: d with a decimal point, i an integer, w no number.
static std::string shape_of(const std::vector<std::string> &words)
{
    std::string shape;
    for (const std::string &s : words) {
        char *end = nullptr;
        (void)std::strtod(s.c_str(), &end);
        const char number_kind = s.find('.') == std::string::npos ? 'i' : 'd';
        shape += end == s.c_str() + s.size() ? number_kind : 'w';
    }
    return shape;
}

static size_t decimals(const std::string &shape) { return static_cast<size_t>(std::count(shape.begin(), shape.end(), 'd')); }

// "initial_moment" beside "atom", unlike an element or a residue with its number.
static bool is_keyword(const std::string &word) { return word.size() > 4 && word.find_first_of("0123456789") == std::string::npos; }

// Whether row begins as the row of an atom beside it does, and ends early.
static bool is_cut(const std::vector<std::string> &row, const std::vector<std::string> &beside)
{
    const std::string is = shape_of(row), whole = shape_of(beside);
    if (is.empty() || is.size() >= whole.size() || whole.compare(0, is.size(), is) != 0 || decimals(whole) < 3)
        return false;
    if (is[0] == 'w' && row[0] != beside[0] && is_keyword(row[0]))
        return false;
    return decimals(is) > 0 || is.size() > 1;
}

// Of a row that ends early Open Babel takes the missing positions from the row before, or ends the molecule there.
static void check_rows(std::istream &in)
{
    std::vector<std::string> before;
    long k = 0;
    for (std::string s; std::getline(in, s);) {
        const std::vector<std::string> now = words_in(s);
        k++;
        if (is_cut(now, before))
            fail(CH_PARSE, "line " + number(k) + " has fewer words than the line before, '" + trimmed(s).substr(0, 60) + "'");
        if (before.size() > 1 && decimals(shape_of(before)) < 3 && is_cut(before, now))
            fail(CH_PARSE, "line " + number(k - 1) + " has fewer words than the line behind it");
        before = now;
    }
}

// Case does not count, as for Open Babel.
static bool has_rows(const std::string &format)
{
    static const std::set<std::string> all = { "dalmol", "dmol", "outmol", "feat", "fhiaims", "gamin",  "inp", "gro",
                                               "jin",    "mold", "molden", "molf", "mop",     "mopcrt", "mpc", "vmol" };
    std::string name = format;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return all.count(name) > 0;
}

void text_check(const std::string &text, const std::string &format)
{
    std::istringstream in(text);
    if (is_molfile(format))
        check_molfile(in);
    else if (format == "mol2")
        check_mol2(in);
    else if (format == "pdb" || format == "pdbqt")
        check_pdb(in);
    else if (format == "cif" || format == "mmcif" || format == "mcif")
        check_cif(in);
    else if (has_rows(format))
        check_rows(in);
}

// Without a line M  END Open Babel stops at $$$$, before it adds the hydrogens. So it gets one where the data begin.
std::string ended(const std::string &text, const std::string &format)
{
    std::istringstream in(text);
    std::string s;
    if (!is_molfile(format))
        return text;
    for (int i = 0; i < 4 && std::getline(in, s); i++)
        continue;
    for (long k = count_in(s, 0) + count_in(s, 3); k > 0 && std::getline(in, s); k--)
        continue;
    for (auto at = in.tellg(); std::getline(in, s) && s.compare(0, 6, "M  END") != 0; at = in.tellg()) {
        if (s[0] == '>' || s.compare(0, 4, "$$$$") == 0)
            return text.substr(0, static_cast<size_t>(at)) + "M  END\n" + text.substr(static_cast<size_t>(at));
        if (s.compare(0, 3, "A  ") == 0)
            std::getline(in, s); // a name
    }
    return text;
}

// ---- bonds of type 4 of a V2000 molfile ------------------------------------

static int number_at(const std::string &line, size_t from)
{
    return static_cast<int>(std::strtol(columns(line, from, 3).c_str(), nullptr, 10));
}

// How many such bonds each atom has, from 1.
static std::map<int, int> aromatic_bonds(const std::string &text)
{
    std::map<int, int> n;
    std::istringstream in(text);
    std::string line;
    int atoms = 0, bonds = 0;
    for (int k = 1; std::getline(in, line) && k <= 4 + atoms + bonds; k++) {
        if (k == 4) {
            atoms = number_at(line, 0);
            bonds = number_at(line, 3);
        }
        if (k <= 4 + atoms || number_at(line, 6) != 4)
            continue;
        n[number_at(line, 0)]++;
        n[number_at(line, 3)]++;
    }
    return n;
}

void aromatic_check(OpenBabel::OBMol &mol, const std::string &text, const std::string &format)
{
    if (!is_molfile(format))
        return;
    for (const auto &of : aromatic_bonds(text)) {
        OpenBabel::OBAtom *a = mol.GetAtom(of.first);
        const unsigned z = a != nullptr ? a->GetAtomicNum() : 0;
        const unsigned full = z == 7 || z == 15 || z == 33 ? 3 : 2;
        if (a != nullptr && z != 6 && of.second > 1 && a->GetFormalCharge() > 0 && a->GetImplicitHCount() > 0 &&
            a->GetExplicitDegree() >= full)
            fail(CH_PARSE, "atom " + number(of.first) +
                               " has a charge and bonds of type 4 (aromatic), which are read before the charge, so "
                               "it would get a hydrogen: write them as single and double bonds");
    }
}

} // namespace worker
