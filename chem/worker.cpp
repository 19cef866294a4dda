// SPDX-License-Identifier: GPL-2.0-only
// chem/worker.cpp - molsieve-chem: the one program that links Open Babel.
//
// Reads requests from stdin, answers on stdout (chem/protocol.h), and may die
// at any request: the parent copes. Traps of Open Babel 3.1.1 that shape it:
// the builder seeds itself from the clock, MMFF94 uses OpenMP threads whose
// number changes the result, --gen3D's fast levels return zeros, building 3D
// invents stereo, SMILES of thousands of atoms take minutes.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <csignal>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <openbabel/atom.h>
#include <openbabel/babelconfig.h>
#include <openbabel/bond.h>
#include <openbabel/builder.h>
#include <openbabel/descriptor.h>
#include <openbabel/distgeom.h>
#include <openbabel/elements.h>
#include <openbabel/forcefield.h>
#include <openbabel/generic.h>
#include <openbabel/kekulize.h>
#include <openbabel/mol.h>
#include <openbabel/obconversion.h>
#include <openbabel/oberror.h>
#include <openbabel/obiter.h>
#include <openbabel/ring.h>

#include "chem/protocol.h"
#include "chem/salts.h"

using namespace OpenBabel;

// Absent when the library was built without OpenMP.
extern "C" void omp_set_num_threads(int) __attribute__((weak));

namespace {

const size_t smiles_max = 4096; // bytes of one SMILES: far above 250 heavy atoms
const int build_tries = 3;
const int list_max = 100000;    // molecules of one file that we have to hold at once

// ---- bytes in and out -----------------------------------------------------

struct Malformed : std::runtime_error {
    Malformed() : std::runtime_error("malformed request") {}
};

class In {
public:
    explicit In(const std::string &s) : p_(s.data()), end_(s.data() + s.size()) {}
    template <class T> T get()
    {
        T x;
        take(&x, sizeof x);
        return x;
    }
    std::string str()
    {
        uint32_t n = get<uint32_t>();
        if (n > static_cast<size_t>(end_ - p_))
            throw Malformed();
        std::string s(p_, n);
        p_ += n;
        return s;
    }
    void take(void *to, size_t n)
    {
        if (n > static_cast<size_t>(end_ - p_))
            throw Malformed();
        if (n > 0)
            std::memcpy(to, p_, n);
        p_ += n;
    }

private:
    const char *p_, *end_;
};

class Out {
public:
    std::string s;
    template <class T> void put(T x) { s.append(reinterpret_cast<const char *>(&x), sizeof x); }
    void str(const std::string &t)
    {
        put<uint32_t>(static_cast<uint32_t>(t.size()));
        s += t;
    }
    void raw(const void *p, size_t n) { s.append(static_cast<const char *>(p), n); }
};

bool read_all(int fd, void *to, size_t n)
{
    char *p = static_cast<char *>(to);
    while (n > 0) {
        ssize_t got = read(fd, p, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        p += got;
        n -= static_cast<size_t>(got);
    }
    return true;
}

bool write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        p += put;
        n -= static_cast<size_t>(put);
    }
    return true;
}

// ---- failures -------------------------------------------------------------

struct Failure {
    ch_status status;
    std::string text;
};

[[noreturn]] void fail(ch_status s, const std::string &text) { throw Failure{ s, text }; }

std::string number(long n) { return std::to_string(n); }

// The library's last words about this record, on one line.
std::string library_said()
{
    std::string all;
    for (obMessageLevel level : { obError, obWarning })
        for (std::string m : obErrorLog.GetMessagesOfLevel(level)) {
            size_t at = m.find("\n  "); // the text follows a line of signs and the name of a function
            m = at == std::string::npos ? m : m.substr(at + 3);
            std::replace_if(m.begin(), m.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
            while (!m.empty() && m.back() == ' ')
                m.pop_back();
            if (all.size() < 200 && all.find(m) == std::string::npos)
                all += (all.empty() ? "" : "; ") + m;
        }
    return all.substr(0, 300);
}

// ---- reading and writing molecules ----------------------------------------

struct PrepareOpts {
    int32_t largest_fragment, max_heavy, max_atoms, conformer, force_field, sd_steps, cg_steps;
    uint64_t seed;
};

std::string mol_write(OBMol &mol, const char *format, const char *options = "")
{
    static OBConversion conv;
    if (!conv.SetOutFormat(format))
        fail(CH_FORMAT, std::string("no writer for format ") + format);
    conv.SetOptions("", OBConversion::OUTOPTIONS);
    for (const char *o = options; *o != '\0'; o++)
        conv.AddOption(std::string(1, *o).c_str(), OBConversion::OUTOPTIONS);
    return conv.WriteString(&mol, true);
}

// The first word of what the writer gives: SMILES and keys come with a title.
std::string first_word(const std::string &s) { return s.substr(0, s.find_first_of(" \t\r\n")); }

std::string canonical_smiles(OBMol &mol) { return first_word(mol_write(mol, "can", "n")); }

bool is_smiles(const std::string &format) { return format == "smi" || format == "smiles" || format == "can"; }

void mol_read(OBMol &mol, const std::string &text, const std::string &format)
{
    OBConversion conv;
    if (!conv.SetInFormat(format.c_str()))
        fail(CH_FORMAT, "no reader for format " + format);
    if (is_smiles(format) && first_word(text).size() > smiles_max)
        fail(CH_TOO_LARGE, "a SMILES of " + number(static_cast<long>(first_word(text).size())) + " bytes");
    bool read = conv.ReadString(&mol, text);
    std::string said = library_said();
    if (!read && text.find_first_not_of(" \t\r\n") == std::string::npos)
        fail(CH_EMPTY, "nothing but blanks");
    if (!read)
        fail(CH_PARSE, said.empty() ? "not readable as " + format : said);
    if (mol.NumAtoms() == 0)
        fail(CH_EMPTY, said.empty() ? "no atoms" : said);
    if (said.find("kekulize") != std::string::npos)
        fail(CH_PARSE, said); // it goes on with a molecule nobody wrote
}

// ---- salts and the largest part -------------------------------------------

const std::set<std::string> &salt_names()
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

struct Part {
    OBMol mol;
    std::string smiles;
    bool salt;
};

// Largest: heavy atoms, then mass; the SMILES decides the rest, not the order in the file.
bool part_before(Part &a, Part &b)
{
    if (a.salt != b.salt)
        return b.salt;
    if (a.mol.NumHvyAtoms() != b.mol.NumHvyAtoms())
        return a.mol.NumHvyAtoms() > b.mol.NumHvyAtoms();
    double d = a.mol.GetExactMass() - b.mol.GetExactMass();
    return std::fabs(d) > 1e-6 ? d > 0 : a.smiles < b.smiles;
}

// Leaves one part in `mol`; returns the SMILES of the others.
std::string mol_keep_main_part(OBMol &mol)
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
        if (!mol.CopySubstructure(parts.back()->mol, &bits))
            fail(CH_INTERNAL, "the parts could not be separated");
        parts.back()->mol.SetDimension(mol.GetDimension());
        parts.back()->smiles = canonical_smiles(parts.back()->mol);
        parts.back()->salt = salt_names().count(parts.back()->smiles) != 0;
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const std::unique_ptr<Part> &a, const std::unique_ptr<Part> &b) { return part_before(*a, *b); });
    std::string removed;
    for (size_t i = 1; i < parts.size(); i++)
        removed += (removed.empty() ? "" : ".") + parts[i]->smiles;
    mol = parts[0]->mol;
    return removed.size() > 1000 ? removed.substr(0, 1000) + "..." : removed;
}

// ---- checks before any chemistry that could take long ---------------------

bool is_metal(unsigned z)
{
    static const std::set<unsigned> others = { 1,  2,  5,  6,  7,  8,  9,  10, 14, 15, 16, 17, 18,
                                               32, 33, 34, 35, 36, 51, 52, 53, 54, 85, 86 };
    return z > 0 && others.count(z) == 0;
}

// More bonds than any accepted structure shows; 0 = no opinion. Nitro drawn with five bonds is fine.
int valence_max(unsigned z, int charge)
{
    switch (z) {
    case 1: return 1;
    case 5: return 4;
    case 6: return 4;
    case 7: return 5;
    case 8: return charge > 0 ? 3 : 2;
    case 9: return charge > 0 ? 2 : 1;
    case 14: return 6;
    case 15: return 6;
    case 16: return 6;
    case 17: case 35: case 53: return 7;
    default: return 0;
    }
}

// Bonds to metals and boron clusters do not count: organometallics are drawn in many ways.
int valence_of(OBAtom &atom)
{
    int sum = static_cast<int>(atom.GetImplicitHCount());
    FOR_BONDS_OF_ATOM(b, &atom) {
        unsigned z = b->GetNbrAtom(&atom)->GetAtomicNum();
        if (!is_metal(z) && z != 5)
            sum += static_cast<int>(b->GetBondOrder());
    }
    return sum;
}

void mol_check_atoms(OBMol &mol)
{
    FOR_ATOMS_OF_MOL(a, mol) {
        unsigned z = a->GetAtomicNum();
        int max = valence_max(z, a->GetFormalCharge());
        if (z == 0 || z > 118)
            fail(CH_VALENCE, "atom " + number(a->GetIdx()) + " is not an element");
        if (max > 0 && z != 5 && valence_of(*a) > max)
            fail(CH_VALENCE, "atom " + number(a->GetIdx()) + " (" + OBElements::GetSymbol(z) + ") has " +
                                 number(valence_of(*a)) + " bonds");
    }
}

void mol_check_size(OBMol &mol, const PrepareOpts &o, int factor)
{
    if (static_cast<int64_t>(mol.NumAtoms()) > static_cast<int64_t>(o.max_atoms) * factor)
        fail(CH_TOO_LARGE, number(mol.NumAtoms()) + " atoms");
    if (static_cast<int64_t>(mol.NumHvyAtoms()) > static_cast<int64_t>(o.max_heavy) * factor)
        fail(CH_TOO_LARGE, number(mol.NumHvyAtoms()) + " heavy atoms");
}

// ---- positions ------------------------------------------------------------

double z_spread(OBMol &mol)
{
    double lo = INFINITY, hi = -INFINITY;
    FOR_ATOMS_OF_MOL(a, mol) {
        lo = std::min(lo, a->GetZ());
        hi = std::max(hi, a->GetZ());
    }
    return hi - lo;
}

bool all_hydrogens_there(OBMol &mol)
{
    FOR_ATOMS_OF_MOL(a, mol)
        if (a->GetImplicitHCount() != 0)
            return false;
    return true;
}

// Four bonds around one carbon cannot lie in a plane.
bool flat_is_impossible(OBMol &mol)
{
    FOR_ATOMS_OF_MOL(a, mol)
        if (a->GetExplicitDegree() == 4 && a->GetAtomicNum() == 6)
            return true;
    return false;
}

// A flat molecule counts as 3D when its format has no 2D drawings or its header says so.
bool is_real_3d(OBMol &mol, const std::string &format)
{
    if (is_smiles(format) || (!mol.HasNonZeroCoords() && mol.NumAtoms() > 1))
        return false;
    if (z_spread(mol) > 1e-3)
        return true;
    bool said = format == "xyz" || format == "pdb" || (format == "sdf" && mol.GetDimension() == 3);
    return said && !flat_is_impossible(mol);
}

void mol_check_geometry(OBMol &mol)
{
    const unsigned n = mol.NumAtoms();
    std::vector<vector3> at;
    FOR_ATOMS_OF_MOL(a, mol) {
        vector3 v = a->GetVector();
        if (!std::isfinite(v.x()) || !std::isfinite(v.y()) || !std::isfinite(v.z()) ||
            std::fabs(v.x()) > 1e4 || std::fabs(v.y()) > 1e4 || std::fabs(v.z()) > 1e4)
            fail(CH_GEOMETRY, "atom " + number(a->GetIdx()) + " has no sane position");
        at.push_back(v);
    }
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < i; j++)
            if (at[i].distSq(at[j]) < 0.36)
                fail(CH_GEOMETRY, "atoms " + number(j + 1) + " and " + number(i + 1) + " are closer than 0.6 Angstrom");
}

uint64_t hash_text(const std::string &s) // FNV-1a: any fixed function will do
{
    uint64_t h = 0xcbf29ce484222325u;
    for (unsigned char c : s)
        h = (h ^ c) * 0x100000001b3u;
    return h ^ (h >> 32);
}

struct Geometry {
    std::string how = "none";
    double energy = NAN;
};

// UFF's setup decides by a local variable that nobody sets (valgrind shows it), so what the stack held
// before would leak into a result. Zeros below us make it the same every time.
__attribute__((noinline)) void clean_stack()
{
    char room[128 << 10];
    std::memset(room, 0, sizeof room);
    asm volatile("" : : "r"(room) : "memory");
}

bool relax(OBMol &mol, const char *field, const PrepareOpts &o, double *energy)
{
    OBForceField *ff = OBForceField::FindForceField(field);
    if (ff == nullptr)
        return false;
    ff->SetLogFile(nullptr);
    ff->SetLogLevel(OBFF_LOGLVL_NONE);
    clean_stack();
    if (!ff->Setup(mol))
        return false;
    if (o.sd_steps > 0)
        ff->SteepestDescent(o.sd_steps, 1.0e-4);
    if (o.cg_steps > 0)
        ff->ConjugateGradients(o.cg_steps, 1.0e-6);
    *energy = ff->Energy(false);
    if (!std::isfinite(*energy) || !ff->GetCoordinates(mol))
        return false;
    return true;
}

// The builder makes exactly straight lines, where the library's angle terms have no gradient: nitriles
// would keep a C-N bond 0.1 Angstrom too long. A hundredth of an Angstrom off the line is enough.
void mol_shake(OBMol &mol, uint64_t state)
{
    FOR_ATOMS_OF_MOL(a, mol) {
        double d[3];
        for (double &x : d) {
            state = state * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX
            x = (static_cast<double>(state >> 40) / 16777216.0 - 0.5) * 0.02;
        }
        a->SetVector(a->GetX() + d[0], a->GetY() + d[1], a->GetZ() + d[2]);
    }
}

// `mol` without hydrogens comes in; heavy atoms first, hydrogens after, goes out.
Geometry mol_build(OBMol &mol, const std::string &smiles, const PrepareOpts &o)
{
    OBBuilder builder;
    Geometry g;
    if (mol.NumHvyAtoms() > 0)
        mol.DeleteHydrogens();
    mol.SetDimension(0);
    srand(static_cast<unsigned>(hash_text(smiles) ^ o.seed ^ (o.seed >> 32)));
    if (!builder.Build(mol, false))
        fail(CH_CONFORMER, "no 3D structure could be built: " + library_said());
    mol.SetDimension(3);
    mol.AddHydrogens(false, false);
    mol.SetDimension(3);
    mol_shake(mol, hash_text(smiles) ^ o.seed);
    const OBMol start = mol;
    for (int field : { static_cast<int>(CH_FF_MMFF94), static_cast<int>(CH_FF_UFF) }) {
        const char *name = field == CH_FF_MMFF94 ? "mmff94" : "uff";
        if (field < o.force_field)
            continue;
        if (relax(mol, field == CH_FF_MMFF94 ? "MMFF94" : "UFF", o, &g.energy)) {
            g.how = name;
            return g;
        }
        mol = start;
    }
    if (mol.NumAtoms() > 1)
        fail(CH_CONFORMER, "no force field knows all of its atoms");
    g.energy = NAN;
    return g;
}

// One in some hundred drug-like molecules ends with atoms on top of each other; another start mostly helps.
Geometry mol_build_checked(OBMol &mol, const std::string &smiles, const PrepareOpts &o)
{
    PrepareOpts again = o;
    for (int left = build_tries - 1;; left--, again.seed = again.seed * 0x9e3779b97f4a7c15u + 1)
        try {
            OBMol built = mol;
            Geometry g = mol_build(built, smiles, again);
            mol_check_geometry(built);
            if (built.NumAtoms() > 3 && z_spread(built) <= 1e-3 && flat_is_impossible(built))
                fail(CH_GEOMETRY, "flat, although a carbon has four neighbours");
            mol = built;
            return g;
        } catch (const Failure &) {
            if (left == 0)
                throw;
        }
}

// Returns with hydrogens and, unless conformer is none, checked positions.
Geometry mol_place(OBMol &mol, const std::string &smiles, const std::string &format, const PrepareOpts &o)
{
    Geometry g;
    bool real = is_real_3d(mol, format);
    if (o.conformer == CH_3D_NONE) {
        mol.AddHydrogens(false, false);
        return g;
    }
    if (o.conformer == CH_3D_KEEP && !real)
        fail(CH_CONFORMER, "the record has no 3D positions to keep");
    if (o.conformer == CH_3D_KEEP || (o.conformer == CH_3D_AUTO && real && all_hydrogens_there(mol))) {
        mol.AddHydrogens(false, false);
        g.how = "input";
    } else {
        return mol_build_checked(mol, smiles, o);
    }
    mol_check_geometry(mol);
    return g;
}

// ---- prepare --------------------------------------------------------------

struct Prepared {
    std::string smiles, inchikey, formula, removed, geometry;
    int32_t n_heavy = 0, charge = 0, hbd = 0, hba = 0, rotors = 0, rings = 0;
    double mw = 0, logp = 0, tpsa = 0, energy = NAN;
    std::string mol; // as on the wire
};

double predict(OBMol &mol, const char *name)
{
    OBDescriptor *d = OBDescriptor::FindType(name);
    return d == nullptr ? NAN : d->Predict(&mol);
}

void describe(OBMol &mol, Prepared &p)
{
    p.formula = mol.GetFormula();
    p.n_heavy = static_cast<int32_t>(mol.NumHvyAtoms());
    p.charge = mol.GetTotalCharge();
    p.mw = mol.GetMolWt();
    p.logp = predict(mol, "logP");
    p.tpsa = predict(mol, "TPSA");
    p.hbd = static_cast<int32_t>(predict(mol, "HBD"));
    p.rotors = static_cast<int32_t>(mol.NumRotors());
    p.rings = static_cast<int32_t>(mol.GetSSSR().size());
    FOR_ATOMS_OF_MOL(a, mol)
        p.hba += a->GetAtomicNum() == 7 || a->GetAtomicNum() == 8; // Lipinski's count
}

std::string mol_pack(OBMol &mol, bool with_xyz)
{
    Out out;
    std::string z, q;
    std::vector<float> xyz;
    std::vector<std::pair<std::pair<int32_t, int32_t>, char>> bonds;
    FOR_ATOMS_OF_MOL(a, mol) {
        z += static_cast<char>(a->GetAtomicNum());
        q += static_cast<char>(a->GetFormalCharge());
        for (double x : { a->GetX(), a->GetY(), a->GetZ() })
            xyz.push_back(static_cast<float>(x));
    }
    FOR_BONDS_OF_MOL(b, mol) {
        int32_t i = static_cast<int32_t>(b->GetBeginAtomIdx()) - 1, j = static_cast<int32_t>(b->GetEndAtomIdx()) - 1;
        int order = b->IsAromatic() ? 4 : std::min(3, std::max(1, static_cast<int>(b->GetBondOrder())));
        bonds.push_back({ { std::min(i, j), std::max(i, j) }, static_cast<char>(order) });
    }
    std::sort(bonds.begin(), bonds.end());
    out.put<int32_t>(static_cast<int32_t>(z.size()));
    out.put<int32_t>(static_cast<int32_t>(bonds.size()));
    out.put<int32_t>(with_xyz);
    out.s += z + q;
    if (with_xyz)
        out.raw(xyz.data(), xyz.size() * sizeof(float));
    for (const auto &b : bonds) {
        out.put<int32_t>(b.first.first);
        out.put<int32_t>(b.first.second);
    }
    for (const auto &b : bonds)
        out.put<char>(b.second);
    return out.s;
}

void prepare(Prepared &p, const std::string &text, const std::string &format, const PrepareOpts &o)
{
    OBMol mol;
    mol_read(mol, text, format);
    mol_check_size(mol, o, 8); // whatever the parts are, this is no record for screening
    if (o.largest_fragment)
        p.removed = mol_keep_main_part(mol);
    mol_check_size(mol, o, 1);
    mol_check_atoms(mol);
    // Identity comes from the input: building 3D invents stereo that it left open.
    p.smiles = canonical_smiles(mol);
    p.inchikey = first_word(mol_write(mol, "inchikey"));
    describe(mol, p);
    obErrorLog.ClearLog();
    Geometry g = mol_place(mol, p.smiles, format, o);
    mol_check_size(mol, o, 1);
    p.geometry = g.how;
    p.energy = g.energy;
    p.mol = mol_pack(mol, o.conformer != CH_3D_NONE);
}

void put_prepared(Out &out, const Prepared &p)
{
    for (const std::string *s : { &p.smiles, &p.inchikey, &p.formula, &p.removed, &p.geometry })
        out.str(*s);
    for (int32_t n : { p.n_heavy, p.charge, p.hbd, p.hba, p.rotors, p.rings })
        out.put(n);
    for (double x : { p.mw, p.logp, p.tpsa, p.energy })
        out.put(x);
    out.s += p.mol.empty() ? std::string(12, '\0') : p.mol;
}

void op_prepare(In &in, Out &out, Failure &why)
{
    PrepareOpts o;
    for (int32_t *x : { &o.largest_fragment, &o.max_heavy, &o.max_atoms, &o.conformer, &o.force_field, &o.sd_steps, &o.cg_steps })
        *x = in.get<int32_t>();
    o.seed = in.get<uint64_t>();
    std::string format = in.str(), text = in.str();
    Prepared p;
    try {
        prepare(p, text, format, o);
    } catch (const Failure &f) {
        why = f; // what is known already is still worth keeping
        p.mol.clear();
    }
    put_prepared(out, p);
}

// ---- the other requests ---------------------------------------------------

void op_hello(In &, Out &out, Failure &)
{
    const PrepareOpts o = { 1, 250, 1000, CH_3D_GENERATE, CH_FF_MMFF94, 20, 20, 0 };
    Prepared p;
    std::vector<std::string> formats;
    prepare(p, "OC(=O)c1ccccc1.[Na+]", "smi", o);
    if (p.inchikey != "WPYMKLBDIGXBTP-UHFFFAOYSA-N" || p.removed != "[Na+]" || p.geometry != "mmff94" ||
        !(p.logp > 1 && p.logp < 2))
        fail(CH_INTERNAL, "the chemistry library is not complete: benzoic acid gave '" + p.inchikey + "', geometry '" +
                              p.geometry + "'");
    OBPlugin::ListAsVector("formats", "read", formats);
    out.str(BABEL_VERSION);
    out.put<int32_t>(static_cast<int32_t>(formats.size()));
}

void op_reads(In &in, Out &out, Failure &)
{
    OBFormat *f = OBConversion::FindFormat(in.str().c_str());
    out.put<int32_t>(f != nullptr && (f->Flags() & NOTREADABLE) == 0);
}

// The second line of an MDL text names program, date and dimension: the date would make each export differ.
std::string without_date(std::string s, const std::string &format)
{
    size_t line = s.find('\n') + 1, end = s.find('\n', line);
    if ((format != "sdf" && format != "sd" && format != "mol" && format != "mdl") || line == 0 || end == std::string::npos)
        return s;
    std::string dimension = end - line >= 22 ? s.substr(line + 20, 2) : "  ";
    return s.replace(line, end - line, "  molsieve          " + dimension);
}

void op_list(In &in, Out &out, Failure &why)
{
    std::string format = in.str();
    std::istringstream text(in.str());
    OBConversion conv(&text);
    std::vector<std::string> found;
    if (!conv.SetInFormat(format.c_str()))
        fail(CH_FORMAT, "no reader for format " + format);
    OBMol mol;
    for (bool more = conv.Read(&mol); more; mol.Clear(), more = conv.Read(&mol)) {
        if (mol.NumAtoms() > 0 || mol.NumBonds() > 0 || text.good())
            found.push_back(without_date(mol_write(mol, "mol", mol.NumAtoms() > 999 ? "3" : ""), "mol"));
        if (found.size() >= static_cast<size_t>(list_max))
            fail(CH_TOO_LARGE, "more than " + number(list_max) + " molecules in one file");
        if (!text.good())
            break;
    }
    why.text = library_said();
    if (found.empty())
        fail(CH_PARSE, why.text.empty() ? "no molecule could be read as " + format : why.text);
    out.put<int32_t>(static_cast<int32_t>(found.size()));
    for (const std::string &s : found)
        out.str(s);
}

void op_convert(In &in, Out &out, Failure &)
{
    std::string from = in.str(), to = in.str(), text = in.str();
    OBMol mol;
    mol_read(mol, text, from);
    out.str(without_date(mol_write(mol, to.c_str()), to));
}

void op_write(In &in, Out &out, Failure &)
{
    std::string to = in.str(), title = in.str();
    int32_t n = in.get<int32_t>(), m = in.get<int32_t>(), has_xyz = in.get<int32_t>();
    OBMol mol;
    if (n < 0 || n > 1 << 20 || m < 0 || m > 1 << 21)
        throw Malformed();
    std::vector<unsigned char> z(static_cast<size_t>(n)), order(static_cast<size_t>(m));
    std::vector<signed char> q(z.size());
    std::vector<float> xyz(has_xyz ? 3 * z.size() : 0);
    std::vector<int32_t> bond(2 * order.size());
    in.take(z.data(), z.size());
    in.take(q.data(), q.size());
    in.take(xyz.data(), xyz.size() * sizeof(float));
    in.take(bond.data(), bond.size() * sizeof(int32_t));
    in.take(order.data(), order.size());
    mol.BeginModify();
    for (size_t i = 0; i < z.size(); i++) {
        OBAtom *a = mol.NewAtom();
        a->SetAtomicNum(z[i]);
        a->SetFormalCharge(q[i]);
        if (has_xyz)
            a->SetVector(xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]);
    }
    for (size_t i = 0; i < order.size(); i++)
        if (!mol.AddBond(bond[2 * i] + 1, bond[2 * i + 1] + 1, order[i] == 4 ? 1 : order[i]))
            throw Malformed();
    mol.EndModify();
    for (size_t i = 0; i < order.size(); i++)
        if (order[i] == 4) {
            OBBond *b = mol.GetBond(static_cast<int>(i));
            b->SetAromatic();
            b->GetBeginAtom()->SetAromatic();
            b->GetEndAtom()->SetAromatic();
        }
    mol.SetAromaticPerceived();
    if (!OBKekulize(&mol))
        fail(CH_PARSE, "aromatic bonds without a Kekule structure");
    mol.SetAromaticPerceived(false);
    mol.SetDimension(has_xyz ? 3 : 0);
    mol.SetTitle(title);
    out.str(without_date(mol_write(mol, to.c_str()), to));
}

void op_svg(In &in, Out &out, Failure &)
{
    OBMol mol;
    mol_read(mol, in.str(), "smi");
    mol.SetTitle("");
    std::string svg = mol_write(mol, "svg", "dC");
    size_t from = svg.find("<svg"), to = svg.rfind("</svg>");
    if (from == std::string::npos || to == std::string::npos)
        fail(CH_INTERNAL, "no drawing");
    out.str(svg.substr(from, to + 6 - from));
}

// ---- the loop -------------------------------------------------------------

typedef void handler(In &, Out &, Failure &);

handler *const handlers[] = { nullptr, op_hello, op_reads, op_prepare, op_list, op_convert, op_write, op_svg };

double cpu_now()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void cpu_limit(double seconds)
{
    itimerval t = {};
    t.it_value.tv_sec = static_cast<time_t>(seconds);
    t.it_value.tv_usec = static_cast<suseconds_t>((seconds - std::floor(seconds)) * 1e6);
    setitimer(ITIMER_PROF, &t, nullptr); // its signal ends us: nothing can stand in the way
}

// No exception leaves it. false: the answer is good but the worker should be replaced.
bool answer(const std::string &request, Out &reply)
{
    Failure why = { CH_OK, "" };
    Out body;
    bool healthy = true;
    try {
        In in(request);
        uint32_t op = in.get<uint32_t>();
        if (op == 0 || op >= sizeof handlers / sizeof handlers[0])
            throw Malformed();
        cpu_limit(in.get<double>());
        handlers[op](in, body, why);
    } catch (const Failure &f) {
        why = f;
    } catch (const std::bad_alloc &) {
        why = { CH_MEMORY, "more memory than allowed" };
        healthy = false;
    } catch (const std::exception &e) {
        why = { CH_INTERNAL, std::string("exception: ") + e.what() };
        healthy = false;
    } catch (...) {
        why = { CH_INTERNAL, "unknown exception" };
        healthy = false;
    }
    cpu_limit(0);
    reply.put<uint32_t>(why.status);
    reply.put<double>(cpu_now());
    reply.str(why.text);
    reply.s += body.s;
    return healthy;
}

pid_t parent;

void on_alarm(int)
{
    if (getppid() != parent)
        _exit(0);
}

// PR_SET_PDEATHSIG would fire when the thread that started us ends, so we look for the process instead.
void watch_parent()
{
    struct sigaction act = {};
    itimerval every = { { 1, 0 }, { 1, 0 } };
    parent = getppid();
    act.sa_handler = on_alarm;
    act.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &act, nullptr);
    setitimer(ITIMER_REAL, &every, nullptr);
}

// The library may print; the protocol gets descriptors of its own.
bool take_streams(int *in, int *out)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    *in = fcntl(0, F_DUPFD_CLOEXEC, 3);
    *out = fcntl(1, F_DUPFD_CLOEXEC, 3);
    return null >= 0 && *in >= 0 && *out >= 0 && dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2;
}

void start_library()
{
    static std::ostringstream nowhere;
    nowhere.setstate(std::ios::badbit); // nothing is kept twice; messages stay in the log
    if (omp_set_num_threads != nullptr)
        omp_set_num_threads(1);
    obErrorLog.SetOutputStream(&nowhere);
    obErrorLog.SetOutputLevel(obWarning);
    vector3 v;
    v.randomUnitVector(); // seeds itself from the clock at first use; afterwards srand decides
}

} // namespace

// molsieve-chem [bytes of address space]
int main(int argc, char **argv)
{
    int in, out;
    uint32_t n;
    const rlimit no_core = { 0, 0 };
    const rlim_t bytes = argc > 1 ? strtoull(argv[1], nullptr, 10) : 0;
    const rlimit memory = { bytes, bytes };

    setrlimit(RLIMIT_CORE, &no_core);
    if (bytes > 0)
        setrlimit(RLIMIT_AS, &memory);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!take_streams(&in, &out))
        return 1;
    watch_parent();
    start_library();
    while (read_all(in, &n, sizeof n) && n <= CH_MESSAGE_MAX) {
        Out reply, framed;
        std::string request(n, '\0');
        if (!read_all(in, &request[0], n))
            break;
        obErrorLog.ClearLog();
        bool healthy = answer(request, reply);
        framed.put<uint32_t>(static_cast<uint32_t>(reply.s.size()));
        framed.s += reply.s;
        if (!write_all(out, framed.s.data(), framed.s.size()) || !healthy)
            break;
    }
    return 0;
}
