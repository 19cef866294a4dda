// SPDX-License-Identifier: GPL-2.0-only
// chem/worker.hpp - what the files of molsieve-chem share. Nothing else includes it.
//
// Failures travel as exceptions of type Failure up to answer() in worker.cpp and no further.
#ifndef CH_WORKER_HPP
#define CH_WORKER_HPP

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <openbabel/mol.h>

#include "chem/descriptors.h"
#include "chem/protocol.h"

namespace worker {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const bool sanitized = true; // their shadow needs terabytes of address space, their reports files
#else
const bool sanitized = false;
#endif

struct Failure {
    ch_status status;
    std::string text;
    int signal; // that ended the process which built the 3D structure; else 0
};

[[noreturn]] void fail(ch_status s, const std::string &text, int signal = 0);

struct Malformed : std::runtime_error {
    Malformed() : std::runtime_error("malformed request") {}
};

// A request, read from the front.
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
        const uint32_t n = get<uint32_t>();
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
    std::string rest() const { return std::string(p_, end_); }

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

// Whole messages over a descriptor; false at its end.
bool read_all(int fd, void *to, size_t n);
bool write_all(int fd, const char *p, size_t n);

struct PrepareOpts { // what is not asked for by a request is of the worker's own test
    int32_t largest_fragment = 1, max_heavy = 250, max_atoms = 1000, conformer = CH_3D_GENERATE, force_field = CH_FF_MMFF94;
    int32_t steps = 40, neutralise = 0, n_structures = 1;
    uint64_t seed = 0;
    double ph = -1;         // < 0: none
    double window = 0;      // kcal/mol
    double structure_s = 0; // CPU of each structure but the first; 0: what is left
};

// 24 bits of chance, and the next state: Knuth's MMIX.
inline uint64_t chance(uint64_t &state)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 40;
}

// The library draws its random numbers from rand(). They begin anew with every request, and wherever they decide a
// position, so that an answer does not depend on earlier requests.
void restart_chance(uint64_t seed);

// CPU seconds of this process and its children; what the request has left; ends us when it is spent.
double cpu_now();
double cpu_left(); // 0: no limit
void cpu_limit(double seconds);

// ---- worker_mol.cpp: molecules in two dimensions

std::string number(long n);
std::string library_said(); // its complaints since the log was cleared, on one line
std::string first_word(const std::string &s);
bool is_smiles(const std::string &format);

// Options: letters that Open Babel's writer understands.
std::string mol_write(OpenBabel::OBMol &mol, const char *format, const char *options = "");
void mol_read(OpenBabel::OBMol &mol, const std::string &text, const std::string &format);
std::string canonical_smiles(OpenBabel::OBMol &mol);
std::string inchikey(OpenBabel::OBMol &mol);

// Leaves one part; returns the SMILES of the others.
std::string mol_keep_main_part(OpenBabel::OBMol &mol);

void mol_check_atoms(OpenBabel::OBMol &mol);
void mol_check_size(OpenBabel::OBMol &mol, const PrepareOpts &o, int factor);

bool is_metal(unsigned z);
bool all_hydrogens_there(OpenBabel::OBMol &mol);

// Adds the hydrogens that are not atoms yet, in positions that do not depend on the order of the atoms. The library places one by chance
// where the neighbours do not determine the direction; another seed gives another direction.
void add_hydrogens(OpenBabel::OBMol &mol, uint64_t seed = 0);

// As on the wire.
std::string mol_pack(OpenBabel::OBMol &mol, bool with_xyz);

// ---- worker_descriptors.cpp

void mol_describe(OpenBabel::OBMol &mol, double descriptor[CH_N_DESCRIPTORS]);

// ---- worker_bonds.cpp

// Around each call of a reader. Where it asked the library for bonds or their orders, bonds_complete finds them from the positions;
// text: the record, whose xyz comment may state the charge. CH_VALENCE where the positions do not say enough. false: it asked for
// nothing.
void bonds_begin();
bool bonds_complete(OpenBabel::OBMol &mol, const std::string &text, const std::string &format);

struct Place {
    unsigned z;
    long long far; // the sum of distances to all others, in units of 1e-5 Angstrom: whole numbers have the same sum in any order
    double x[3];
    OpenBabel::OBAtom *atom;
};

// The atoms in an order that depends on elements and positions only.
std::vector<Place> own_order(OpenBabel::OBMol &mol);

// ---- worker_v3000.cpp

struct V3000 {
    std::string text; // every atom and bond on a line of its own
    long atoms = 0, bonds = 0;
};

bool is_v3000(const std::string &text, const std::string &format);
V3000 v3000_of(const std::string &text); // CH_PARSE where the library would read what is not there

// ---- worker_neutral.cpp

// How many atoms lost their charge. A 3D structure with all hydrogens still has all of them. balanced: the net charge
// does not grow; else every acid and base loses its own.
int mol_neutralise(OpenBabel::OBMol &mol, bool balanced);

// Of one atom with formal charge 0 or, for take_proton, also 1.
bool has_proton(OpenBabel::OBAtom &a); // of the common isotope
void add_proton(OpenBabel::OBAtom &a);
void take_proton(OpenBabel::OBMol &mol, OpenBabel::OBAtom &a);

int usual_valence(unsigned z); // bonds of the neutral atom; 0: acids and bases are not made of it
int sum_of_charges(OpenBabel::OBMol &mol);
void perceive_again(OpenBabel::OBMol &mol); // after protons came and went

// ---- worker_protonate.cpp

// Acids and bases as they are at this pH, whatever way they are drawn: chem/groups.h. How many atoms have another charge.
int mol_protonate(OpenBabel::OBMol &mol, double ph);

// ---- worker_alerts.cpp; rules are lines of a SMARTS, a blank and a name

struct BadRule {
    int32_t rule, column; // from 0; from 1
};
std::vector<BadRule> rules_check(const std::string &rules); // those that are no SMARTS

// The names of those that match, each once, in the order of the rules, with ", " between.
std::string mol_alerts(const OpenBabel::OBMol &mol, const std::string &rules);

// Centres and double bonds whose arrangement is open.
int undefined_stereo(const OpenBabel::OBMol &mol);

// ---- worker_conformers.cpp: one structure of a molecule and another

// About each single bond where the parts of a molecule turn freely, by an angle that state gives.
void turn_all(OpenBabel::OBMol &mol, uint64_t state);

// Chance decides between arrangements that are open, before anything is built.
void define_stereo(OpenBabel::OBMol &mol, uint64_t state);

// ---- worker_relax.cpp

// Down the energy of a field of the library ("MMFF94", "UFF"), so many steps at most or until its gradient is small. kcal/mol.
// false: it does not know all atoms, or gives no number.
bool relax(OpenBabel::OBMol &mol, const char *field, int steps, double *energy);

// ---- worker_build.cpp: and in three

struct Placed {
    std::string geometry = "none"; // "input", "mmff94", "uff", "none", "build": not yet
    double energy;                 // kcal/mol or NaN
    std::string mol;               // packed
    std::vector<std::string> other; // more structures of it, by growing energy
};

void mol_check_geometry(OpenBabel::OBMol &mol); // CH_GEOMETRY: atoms coincide, or are far out or not finite

// Hydrogens and, unless the conformer is none or has to be built, checked positions.
Placed mol_place(OpenBabel::OBMol &mol, const std::string &format, const PrepareOpts &o);

// A structure of a canonical SMILES, in a process of its own, which has so many CPU seconds (0: no limit). Not the first: with chance's arrangement
// of open stereo, and turned.
Placed build_apart(const std::string &smiles, const PrepareOpts &o, bool first, double seconds);

// That, and others if they are asked for.
Placed build_all(const std::string &smiles, const PrepareOpts &o);

// Before the first molecule: loads tables, gives up what a worker does not need (ch_confined tells what is gone),
// starts the process that builds. false: no process.
bool builder_start(int *confined);
double cpu_built(); // CPU seconds of all builds

} // namespace worker

#endif
