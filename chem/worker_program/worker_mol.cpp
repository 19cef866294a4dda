// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_mol.cpp - reading, splitting into parts and checking molecules.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <vector>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/elements.h>
#include <openbabel/generic.h>
#include <openbabel/obconversion.h>
#include <openbabel/oberror.h>
#include <openbabel/obiter.h>

#include "chem/worker_program/salts.h"

using namespace OpenBabel;

namespace worker {

static const size_t smiles_max = 4096; // bytes of one SMILES: far above 250 heavy atoms

std::string number(long n) { return std::to_string(n); }

// Open Babel's last messages about this record, on one line.
std::string library_said()
{
    std::string all;
    for (obMessageLevel level : { obError, obWarning })
        for (std::string m : obErrorLog.GetMessagesOfLevel(level)) {
            size_t at = m.find("\n  "); // the text follows a separator line and the name of a function
            m = at == std::string::npos ? m : m.substr(at + 3);
            std::replace_if(
                m.begin(), m.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
            while (!m.empty() && m.back() == ' ')
                m.pop_back();
            if (all.size() < 200 && all.find(m) == std::string::npos)
                all += (all.empty() ? "" : "; ") + m;
        }
    return all.substr(0, 300);
}

// ---- reading and writing molecules ----------------------------------------

static std::string write_by(OBConversion &conv, OBMol &mol, const char *format, const char *options)
{
    if (!conv.SetOutFormat(format))
        fail(CH_FORMAT, std::string("no writer for format ") + format);
    conv.SetOptions("", OBConversion::OUTOPTIONS);
    for (const char *o = options; *o != '\0'; o++)
        conv.AddOption(std::string(1, *o).c_str(), OBConversion::OUTOPTIONS);
    return conv.WriteString(&mol, true);
}

// A new converter each time: a reused one failed inside Open Babel after a million writes by a fuzzer, drawings among them.
std::string mol_write(OBMol &mol, const char *format, const char *options)
{
    OBConversion conv;
    return write_by(conv, mol, format, options);
}

// Creating a converter takes a tenth of the time of a record, so one is kept for all records. It is taken out while in use: after an
// exception it points to streams that no longer exist, so it is abandoned (leaked), not kept.
static std::string identity_write(OBMol &mol, const char *format, const char *options)
{
    static OBConversion *kept = nullptr;
    OBConversion *conv = kept != nullptr ? kept : new OBConversion;
    kept = nullptr;
    const std::string s = write_by(*conv, mol, format, options);
    kept = conv;
    return s;
}

// The first word of the writer's output: SMILES and keys are followed by a title.
std::string first_word(const std::string &s) { return s.substr(0, s.find_first_of(" \t\r\n")); }

bool is_wavy(const OBTetrahedralStereo::Config &c) { return c.specified && c.winding == OBStereo::UnknownWinding; }

static std::vector<OBTetrahedralStereo *> wavy_centres(OBMol &mol)
{
    std::vector<OBTetrahedralStereo *> wavy;
    for (OBGenericData *d : mol.GetAllData(OBGenericDataType::StereoData))
        if (static_cast<OBStereoBase *>(d)->GetType() == OBStereo::Tetrahedral &&
            is_wavy(static_cast<OBTetrahedralStereo *>(d)->GetConfig()))
            wavy.push_back(static_cast<OBTetrahedralStereo *>(d));
    return wavy;
}

static void open_wavy_centres(OBMol &mol)
{
    for (OBTetrahedralStereo *centre : wavy_centres(mol)) {
        OBTetrahedralStereo::Config c = centre->GetConfig();
        c.specified = false;
        centre->SetConfig(c);
    }
}

// A SMILES has no mark for a wavy bond, but which of two equal atoms comes first if one has such a bond would depend on addresses. Beside
// a metal, a bare P is read as one without a hydrogen, so that of one with a hydrogen is written.
std::string smiles_in_order(OBMol &mol, std::vector<unsigned> &order)
{
    open_wavy_centres(mol);
    const std::string smiles = first_word(identity_write(mol, "can", "nO"));
    const OBPairData *data = static_cast<OBPairData *>(mol.GetData("SMILES Atom Order"));
    std::istringstream list(data != nullptr ? data->GetValue() : "");
    for (unsigned idx; list >> idx;)
        order.push_back(idx);
    return own_hydrogens_written(smiles, mol, order);
}

std::string canonical_smiles(OBMol &mol)
{
    OBMol copy;
    std::vector<unsigned> order;
    mol.DeleteData("OpenBabel Symmetry Classes"); // of an earlier writing
    if (!has_own_hydrogens(mol) && wavy_centres(mol).empty())
        return first_word(identity_write(mol, "can", "n"));
    copy = mol;
    return smiles_in_order(copy, order);
}

std::string inchikey(OBMol &mol) { return first_word(identity_write(mol, "inchikey", "")); }

static int n_defined(OBMol &mol)
{
    std::string rest;
    return inchi_defined(first_word(identity_write(mol, "inchi", "")), rest);
}

// In drawings of bridged rings InChI calls centres ambiguous that have a wedge, or sees the other form; the SMILES has what the wedges say.
// What it sees in positions alone is kept: the axes of allenes, double bonds of large rings.
std::string inchikey_of_drawing(OBMol &mol)
{
    OBMol plain = mol;
    FOR_ATOMS_OF_MOL(a, plain)
        a->SetVector(0, 0, 0);
    plain.SetDimension(0);
    open_wavy_centres(plain);
    const std::string drawn = inchikey(mol), read = inchikey(plain);
    return drawn == read || n_defined(mol) > n_defined(plain) ? drawn : read;
}

bool is_smiles(const std::string &format) { return format == "smi" || format == "smiles" || format == "can"; }

// Open Babel would read both sides of the arrow as one molecule of several parts.
static void refuse_reaction(const std::string &text, const std::string &format)
{
    const std::string smiles = is_smiles(format) ? first_word(text) : "";
    const size_t at = smiles.find('>');
    if (at != std::string::npos && at > 0 && smiles[at - 1] == '-')
        fail(CH_PARSE, "a bond is written as an arrow ('->'), which the library does not read");
    if (at != std::string::npos || (format == "sdf" && text.compare(0, 4, "$RXN") == 0))
        fail(CH_PARSE, "a reaction, not a molecule");
}

static bool read_by(OBFormat *format, OBMol &mol, const std::string &text)
{
    static OBConversion *kept = nullptr; // as in identity_write
    OBConversion *conv = kept != nullptr ? kept : new OBConversion;
    kept = nullptr;
    const bool read = conv->SetInFormat(format) && conv->ReadString(&mol, text);
    kept = conv;
    return read;
}

// Its kind, then the id of its centre, or those of its double bond.
static std::array<unsigned long, 3> key_of(OBGenericData *data)
{
    const unsigned long kind = static_cast<OBStereoBase *>(data)->GetType();
    if (const auto *t = dynamic_cast<OBTetrahedralStereo *>(data))
        return { kind, t->GetConfig().center, 0 };
    if (const auto *c = dynamic_cast<OBCisTransStereo *>(data))
        return { kind, c->GetConfig().begin, c->GetConfig().end };
    return { kind, 0, 0 };
}

void stereo_in_order(OBMol &mol)
{
    std::vector<OBGenericData *> sorted = mol.GetAllData(OBGenericDataType::StereoData);
    std::stable_sort(sorted.begin(), sorted.end(), [](OBGenericData *a, OBGenericData *b) { return key_of(a) < key_of(b); });
    size_t n = 0;
    for (OBGenericData *&data : mol.GetData())
        if (data->GetDataType() == OBGenericDataType::StereoData)
            data = sorted[n++];
}

// A mark at an atom with fewer than three neighbours, hydrogen or lone pair among them, as in C[S@]=O, says nothing; the writer of InChI would
// follow neighbours that are not there.
static void drop_marks_of_no_centre(OBMol &mol)
{
    for (OBGenericData *data : mol.GetAllData(OBGenericDataType::StereoData)) {
        auto *centre = dynamic_cast<OBTetrahedralStereo *>(data);
        if (centre == nullptr)
            continue;
        const OBTetrahedralStereo::Config c = centre->GetConfig();
        if (c.refs.size() != 3 || c.from == OBStereo::NoRef || std::count(c.refs.begin(), c.refs.end(), OBStereo::NoRef) > 0)
            mol.DeleteData(data);
    }
}

// A copy of a molecule mixes up the neighbours of a double bond whose first one is a hydrogen that is no atom, as after reading InChI. Of
// the four, 0 and 1 are at one end, and 0 and 3 on one side.
static void atoms_before_hydrogens(OBMol &mol)
{
    for (OBGenericData *data : mol.GetAllData(OBGenericDataType::StereoData)) {
        auto *bond = dynamic_cast<OBCisTransStereo *>(data);
        OBCisTransStereo::Config c = bond != nullptr ? bond->GetConfig() : OBCisTransStereo::Config();
        if (c.refs.size() != 4 || c.refs[0] != OBStereo::ImplicitRef)
            continue;
        std::swap(c.refs[0], c.refs[1]);
        std::swap(c.refs[2], c.refs[3]);
        bond->SetConfig(c);
    }
}

// Hydrogens fill an atom up to the valence that a V3000 molfile states.
static void set_valences(OBMol &mol, const V3000 &v)
{
    for (const auto &stated : v.valence) {
        OBAtom *a = stated.first <= static_cast<long>(mol.NumAtoms()) ? mol.GetAtom(static_cast<int>(stated.first)) : nullptr;
        const int missing = a == nullptr ? 0 : std::max(stated.second, 0) - static_cast<int>(a->GetExplicitValence());
        if (missing < 0)
            fail(CH_PARSE, "atom " + number(stated.first) + " has VAL=" + number(stated.second) + " and more bonds");
        if (a != nullptr)
            a->SetImplicitHCount(static_cast<unsigned>(missing));
    }
}

void mol_read(OBMol &mol, const std::string &text, const std::string &format)
{
    OBFormat *known = OBConversion::FindFormat(format.c_str());
    if (known == nullptr || (known->Flags() & NOTREADABLE) != 0)
        fail(CH_FORMAT, "no reader for format " + format);
    if (is_smiles(format) && first_word(text).size() > smiles_max)
        fail(CH_TOO_LARGE, "a SMILES of " + number(static_cast<long>(first_word(text).size())) + " bytes");
    refuse_reaction(text, format);
    if (is_smiles(format))
        smiles_check(first_word(text));
    const bool v3000 = is_v3000(text, format);
    const V3000 v = v3000 ? v3000_of(text) : V3000();
    if (!v3000)
        text_check(text, format);
    bonds_begin();
    const bool read = read_by(known, mol, v3000 ? v.text : ended(text, format));
    std::string said = library_said();
    if (!read && text.find_first_not_of(" \t\r\n") == std::string::npos)
        fail(CH_EMPTY, "nothing but blanks");
    if (!read)
        fail(CH_PARSE, said.empty() ? "not readable as " + format : said);
    if (mol.NumAtoms() == 0)
        fail(CH_EMPTY, said.empty() ? "no atoms" : said);
    if (said.find("kekulize") != std::string::npos)
        fail(CH_PARSE, said); // Open Babel continues with a molecule that is not the one in the record
    if (is_smiles(format))
        smiles_read_check(mol, first_word(text));
    drop_marks_of_no_centre(mol);
    atoms_before_hydrogens(mol);
    mol.DeleteData(OBGenericDataType::PairData); // of a field called "inchi" Open Babel would make the InChIKey
    if (format == "inchi")
        inchi_read_check(mol, words_in(text).front());
    aromatic_check(mol, text, format);
    if (format == "mol2")
        mol2_complete(mol, text);
    set_valences(mol, v);
    v3000_leave_open(mol, v);
    if (mol.GetDimension() == 2)
        drawn_centres_check(mol);
    stereo_in_order(mol);
    bonds_complete(mol, text, format);
    if (v3000 && (mol.NumAtoms() != v.atoms || mol.NumBonds() != v.bonds))
        fail(CH_PARSE, "the library read " + number(mol.NumAtoms()) + " of " + number(v.atoms) + " atoms and " +
                           number(mol.NumBonds()) + " of " + number(v.bonds) + " bonds of a V3000 molfile");
}

// ---- salts and the largest part -------------------------------------------

static const std::set<std::string> &salt_names()
{
    static std::set<std::string> names;
    if (names.empty())
        for (const char *s : ch_salts) {
            OBMol mol;
            OBConversion conv;
            conv.SetInFormat("smi");
            if (conv.ReadString(&mol, s))
                names.insert(canonical_smiles(mol));
        }
    return names;
}

namespace {
struct Part {
    OBMol mol;
    std::string smiles;
    int rank;                   // 0: with carbon, 1: without, 2: a known counter-ion or solvent
    std::vector<unsigned> from; // of each atom: its number in the whole
};
} // namespace

// The number in the part of an atom of the whole, from 0; a hydrogen that is no atom stays one; NoRef: not in this part.
static unsigned long place_in(const Part &part, OBMol &whole, unsigned long id)
{
    if (id == static_cast<unsigned long>(OBStereo::ImplicitRef))
        return id;
    const auto found = std::find(part.from.begin(), part.from.end(), whole.GetAtomById(id)->GetIdx());
    return found == part.from.end() ? static_cast<unsigned long>(OBStereo::NoRef)
                                    : static_cast<unsigned long>(found - part.from.begin());
}

static std::vector<unsigned long *> atoms_of(Axis &x) { return { &x.end[0], &x.end[1], &x.at[0], &x.at[1], &x.at[2], &x.at[3] }; }

static std::vector<unsigned long *> atoms_of(OBCisTransStereo::Config &c)
{
    return { &c.begin, &c.end, &c.refs[0], &c.refs[1], &c.refs[2], &c.refs[3] };
}

// Keeps those of the part, whose atoms are then numbers in the part instead of ids of the whole.
template <class T> static void keep_in(std::vector<T> &all, const Part &part, OBMol &whole)
{
    std::vector<T> kept;
    for (T &x : all) {
        for (unsigned long *id : atoms_of(x))
            *id = place_in(part, whole, *id);
        if (*atoms_of(x)[0] != static_cast<unsigned long>(OBStereo::NoRef))
            kept.push_back(x);
    }
    all = kept;
}

template <class T> static void name_by_id(std::vector<T> &all, const OBMol &mol)
{
    for (T &x : all)
        for (unsigned long *id : atoms_of(x))
            if (*id != static_cast<unsigned long>(OBStereo::ImplicitRef))
                *id = mol.GetAtom(static_cast<int>(*id) + 1)->GetId();
}

static int rank_of(OBMol &mol, const std::string &smiles)
{
    if (salt_names().count(smiles) != 0)
        return 2;
    FOR_ATOMS_OF_MOL(a, mol)
        if (a->GetAtomicNum() == 6)
            return 0;
    return 1;
}

// Largest: by heavy atoms, then mass, then SMILES, so that the order in the file does not matter.
static bool part_before(Part &a, Part &b)
{
    if (a.rank != b.rank)
        return a.rank < b.rank;
    if (a.mol.NumHvyAtoms() != b.mol.NumHvyAtoms())
        return a.mol.NumHvyAtoms() > b.mol.NumHvyAtoms();
    double d = a.mol.GetExactMass() - b.mol.GetExactMass();
    return std::fabs(d) > 1e-6 ? d > 0 : a.smiles < b.smiles;
}

// Keeps one part in `mol`; returns the SMILES of the removed ones.
std::string mol_keep_main_part(OBMol &mol, Marks &m)
{
    std::vector<std::vector<int>> frags;
    mol.ContigFragList(frags);
    if (frags.size() < 2)
        return "";
    std::vector<std::unique_ptr<Part>> parts;
    for (const auto &frag : frags) {
        OBBitVec bits;
        for (int i : frag)
            bits.SetBitOn(static_cast<unsigned>(i));
        parts.emplace_back(new Part);
        if (!mol.CopySubstructure(parts.back()->mol, &bits, nullptr, 1, &parts.back()->from))
            fail(CH_INTERNAL, "the parts could not be separated");
        parts.back()->mol.SetDimension(mol.GetDimension());
        if (mol.HasChiralityPerceived())
            parts.back()
                ->mol.SetChiralityPerceived(); // the stereo was copied; perceived again, some would be lost (worker_marks.cpp)
        OBMol copy = parts.back()->mol;        // writing takes marks away
        parts.back()->smiles = canonical_smiles(copy);
        parts.back()->rank = rank_of(parts.back()->mol, parts.back()->smiles);
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const std::unique_ptr<Part> &a, const std::unique_ptr<Part> &b) { return part_before(*a, *b); });
    std::string removed;
    for (size_t i = 1; i < parts.size(); i++)
        removed += (removed.empty() ? "" : ".") + parts[i]->smiles;
    keep_in(m.axes, *parts[0], mol);
    keep_in(m.planes, *parts[0], mol);
    mol = parts[0]->mol;
    name_by_id(m.axes, mol);
    name_by_id(m.planes, mol);
    return removed.size() > 1000 ? removed.substr(0, 1000) + "..." : removed;
}

// ---- checks before any chemistry that could take long ---------------------

bool is_metal(unsigned z)
{
    static const std::set<unsigned> others = { 1,  2,  5,  6,  7,  8,  9,  10, 14, 15, 16, 17,
                                               18, 32, 33, 34, 35, 36, 51, 52, 53, 54, 85, 86 };
    return z > 0 && others.count(z) == 0;
}

void mol_check_size(OBMol &mol, const PrepareOpts &o, int factor)
{
    if (static_cast<int64_t>(mol.NumAtoms()) > static_cast<int64_t>(o.max_atoms) * factor)
        fail(CH_TOO_LARGE, number(mol.NumAtoms()) + " atoms");
    if (static_cast<int64_t>(mol.NumHvyAtoms()) > static_cast<int64_t>(o.max_heavy) * factor)
        fail(CH_TOO_LARGE, number(mol.NumHvyAtoms()) + " heavy atoms");
}

bool all_hydrogens_there(OBMol &mol)
{
    FOR_ATOMS_OF_MOL(a, mol)
        if (a->GetImplicitHCount() != 0)
            return false;
    return true;
}

void count_hydrogens(OBMol &mol, int32_t &lacking, int32_t &present)
{
    lacking = present = 0;
    FOR_ATOMS_OF_MOL(a, mol) {
        lacking += static_cast<int32_t>(a->GetImplicitHCount());
        present += a->GetAtomicNum() == 1;
    }
}

void restart_chance(uint64_t seed) { srand(static_cast<unsigned>(seed ^ (seed >> 32))); }

// The direction of an added hydrogen depends on the order of the atoms and bonds: in an alcohol it is opposite to a neighbour of its neighbour.
static void take_own_order(OBMol &mol)
{
    std::vector<OBAtom *> atoms;
    for (const Place &p : own_order(mol))
        atoms.push_back(p.atom);
    mol.RenumberAtoms(atoms);
    FOR_ATOMS_OF_MOL(a, mol) {
        OBAtom *at = &*a;
        std::sort(a->BeginBonds(), a->EndBonds(),
                  [at](OBBond *p, OBBond *q) { return p->GetNbrAtom(at)->GetIdx() < q->GetNbrAtom(at)->GetIdx(); });
    }
}

// Restores the order: the atoms of the record, then the added hydrogens in the order of their heavy atoms.
static void back_to_order(OBMol &mol, std::vector<OBAtom *> atoms)
{
    std::map<OBAtom *, std::vector<OBAtom *>> added;
    for (unsigned i = static_cast<unsigned>(atoms.size()) + 1; i <= mol.NumAtoms(); i++)
        FOR_NBORS_OF_ATOM(parent, mol.GetAtom(static_cast<int>(i)))
            added[&*parent].push_back(mol.GetAtom(static_cast<int>(i)));
    const size_t n = atoms.size();
    for (size_t i = 0; i < n; i++)
        atoms.insert(atoms.end(), added[atoms[i]].begin(), added[atoms[i]].end());
    mol.RenumberAtoms(atoms);
}

// Open Babel leaves out a hydrogen for which it finds no direction, as between two bonds in one line, and says nothing. Where no atom
// has a position it leaves out none.
static void add_without_positions(OBMol &mol)
{
    std::vector<vector3> at;
    FOR_ATOMS_OF_MOL(a, mol) {
        at.push_back(a->GetVector());
        a->SetVector(VZero);
    }
    mol.AddHydrogens(false, false);
    for (size_t i = 0; i < at.size(); i++)
        mol.GetAtom(static_cast<int>(i + 1))->SetVector(at[i]);
}

static unsigned with_hydrogens(OBMol &mol)
{
    unsigned n = mol.NumAtoms();
    FOR_ATOMS_OF_MOL(a, mol)
        n += a->GetImplicitHCount();
    return n;
}

// With the atoms moved a little off their lines; then they are put back, and their hydrogens moved with them.
static void add_off_lines(OBMol &mol)
{
    const double little = 0.1; // Angstrom
    std::vector<vector3> moved;
    FOR_ATOMS_OF_MOL(a, mol) {
        const double n = a->GetIdx();
        moved.push_back(little * vector3(std::sin(n), std::sin(2 * n + 1), std::sin(3 * n + 2)));
        a->SetVector(a->GetVector() + moved.back());
    }
    mol.AddHydrogens(false, false);
    for (unsigned i = 1; i <= moved.size(); i++) {
        OBAtom *atom = mol.GetAtom(static_cast<int>(i));
        atom->SetVector(atom->GetVector() - moved[i - 1]);
        FOR_NBORS_OF_ATOM(h, *atom)
            if (h->GetIdx() > moved.size())
                h->SetVector(h->GetVector() - moved[i - 1]);
    }
}

void add_at_positions(OBMol &mol)
{
    const unsigned n = with_hydrogens(mol);
    const OBMol given = mol;
    mol.AddHydrogens(false, false);
    if (mol.NumAtoms() == n)
        return;
    mol = given;
    add_off_lines(mol);
    if (mol.NumAtoms() != n)
        fail(CH_GEOMETRY, "there is no place for its hydrogens");
}

// Open Babel's dimension is not enough: it is 2 also where a molfile has positions and does not say so.
static bool has_no_places(OBMol &mol) { return !mol.HasNonZeroCoords() || (mol.GetDimension() == 2 && z_spread(mol) <= 1e-3); }

void add_hydrogens(OBMol &mol, uint64_t seed)
{
    std::vector<OBAtom *> atoms;
    std::vector<unsigned> at;
    restart_chance(seed);
    if (has_no_places(mol) || all_hydrogens_there(mol)) {
        add_without_positions(mol);
        return;
    }
    FOR_ATOMS_OF_MOL(a, mol)
        atoms.push_back(&*a);
    take_own_order(mol);
    for (const OBAtom *a : atoms)
        at.push_back(a->GetIdx());
    add_at_positions(mol);
    for (size_t i = 0; i < at.size(); i++)
        atoms[i] = mol.GetAtom(static_cast<int>(at[i]));
    back_to_order(mol, atoms);
}

// ---- the answer ----------------------------------------------------------

std::string mol_pack(OBMol &mol, bool with_xyz)
{
    Out out;
    std::string z, q;
    std::vector<uint16_t> isotope;
    bool isotopes = false;
    std::vector<float> xyz;
    std::vector<std::pair<std::pair<int32_t, int32_t>, char>> bonds;
    FOR_ATOMS_OF_MOL(a, mol) {
        z += static_cast<char>(a->GetAtomicNum());
        q += static_cast<char>(a->GetFormalCharge());
        isotope.push_back(static_cast<uint16_t>(a->GetIsotope()));
        isotopes = isotopes || isotope.back() != 0;
        for (double x : { a->GetX(), a->GetY(), a->GetZ() })
            xyz.push_back(static_cast<float>(x));
    }
    FOR_BONDS_OF_MOL(b, mol) {
        int32_t i = static_cast<int32_t>(b->GetBeginAtomIdx()) - 1, j = static_cast<int32_t>(b->GetEndAtomIdx()) - 1;
        int order = std::min(3, std::max(1, static_cast<int>(b->GetBondOrder())));
        if (b->IsAromatic())
            order = order == CH_DOUBLE ? CH_AROMATIC_DOUBLE : CH_AROMATIC_SINGLE;
        bonds.push_back({ { std::min(i, j), std::max(i, j) }, static_cast<char>(order) });
    }
    std::sort(bonds.begin(), bonds.end());
    out.put<int32_t>(static_cast<int32_t>(z.size()));
    out.put<int32_t>(static_cast<int32_t>(bonds.size()));
    out.put<int32_t>((with_xyz ? CH_HAS_XYZ : 0) | (isotopes ? CH_HAS_ISOTOPE : 0));
    out.s += z + q;
    if (with_xyz)
        out.raw(xyz.data(), xyz.size() * sizeof(float));
    for (const auto &b : bonds) {
        out.put<int32_t>(b.first.first);
        out.put<int32_t>(b.first.second);
    }
    for (const auto &b : bonds)
        out.put<char>(b.second);
    if (isotopes)
        out.raw(isotope.data(), isotope.size() * sizeof(uint16_t));
    return out.s;
}

} // namespace worker
