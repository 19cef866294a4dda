// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker.hpp - what the files of molsieve-chem share. Nothing else includes it.
//
// Failures travel as exceptions of type Failure up to answer() in worker.cpp and no further.
#ifndef CH_WORKER_HPP
#define CH_WORKER_HPP

#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <openbabel/mol.h>
#include <openbabel/stereo/cistrans.h>
#include <openbabel/stereo/stereo.h>
#include <openbabel/stereo/tetrahedral.h>

#include "chem/common/descriptors.h"
#include "chem/common/protocol.h"

namespace worker {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const bool sanitized = true; // sanitizers need terabytes of address space, and files for their reports
#else
const bool sanitized = false;
#endif

struct Failure {
    ch_status status;
    std::string text;
    int signal; // that ended the process building the 3D structure; else 0
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

// Read or write exactly n bytes; false at the end of the file or on an error.
bool read_all(int fd, void *to, size_t n);
bool write_all(int fd, const char *p, size_t n);

struct PrepareOpts { // the defaults are those of the worker's self-test
    int32_t largest_fragment = 1, max_heavy = 250, max_atoms = 1000, conformer = CH_3D_GENERATE, force_field = CH_FF_MMFF94;
    int32_t steps = 40, neutralise = 0, n_structures = 1, one_drawing = 1, builder = CH_OPENBABEL;
    uint64_t seed = 0;
    double ph = -1;         // < 0: none
    double window = 0;      // kcal/mol
    double structure_s = 0; // CPU seconds of each conformer but the first; 0: all that are left
};

// Returns 24 random bits and advances the state: linear congruential generator of Knuth's MMIX.
inline uint64_t chance(uint64_t &state)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 40;
}

// Open Babel takes its random numbers from the C library (rand). The worker seeds it again for every request, and wherever a random number
// decides a position, so that an answer does not depend on earlier requests.
void restart_chance(uint64_t seed);

// CPU seconds used by this process and its children; left to the request; a limit that ends this process.
double cpu_now();
double cpu_left(); // 0: no limit
void cpu_limit(double seconds);

// ---- worker_start.cpp: the worker before Open Babel is initialised

// The requests of the parent process. The length of one and its text may arrive apart, so nothing here may peek: MSG_WAITALL does not
// wait where MSG_PEEK is set.
class Requests {
public:
    explicit Requests(int fd) : fd_(fd) {}
    bool begin(); // reads the length of the next request, and its text if it is as short as a request can be. false: no more
    bool asks_version() const;
    bool finish(std::string &request); // reads the rest. false: cut or too long

private:
    int fd_;
    uint32_t length_ = 0, have_ = 0;
    char start_[12] = ""; // operation and CPU limit
};

// Open Babel may print to stdout, so the protocol gets its own descriptors. 0, or a ch_exit.
int take_streams(int *in, int *out);
void close_others();     // closes descriptors inherited from the shell, so that untrusted input cannot reach them
void name_own_library(); // before the library starts: its tables and plug-ins beside this program, unless the environment names others

// PR_SET_PDEATHSIG would fire when the thread that started this process ends, so the parent process is checked instead.
void watch_parent();

// Answers requests for the version, without using the heap, whose state affects coordinates. true: another request has begun.
bool answer_version(Requests &requests, int out);

// ---- worker_marks.cpp: stereo as ids of atoms

// Stereo about an axis: its ends, two neighbours of the first one and two of the second one, whose volume is positive
// (chem/structures/stereo.h). Ids; ImplicitRef: a hydrogen that is no atom.
struct Axis {
    unsigned long end[2], at[4];
};

// The stereo that a molecule defines, by the ids of its atoms.
struct Marks {
    std::vector<OpenBabel::OBTetrahedralStereo::Config> centres;
    std::vector<OpenBabel::OBCisTransStereo::Config> bonds;
    std::vector<Axis> axes;
    std::vector<OpenBabel::OBCisTransStereo::Config> planes; // of C=C=C=C: begin and end are the ends
};

Marks marks_of(OpenBabel::OBMol &mol);
void marks_put(OpenBabel::OBMol &mol, const Marks &m); // defines them, whatever was defined before

void find_stereo(OpenBabel::OBMol &mol); // anew, from the graph; what is defined and what the library knows stays
bool is_known(const Marks &m, const OpenBabel::OBTetrahedralStereo::Config &c); // whether m has this centre
bool is_known(const Marks &m, const OpenBabel::OBCisTransStereo::Config &c);    // whether m has this bond

// ---- worker_kept.cpp

// Finds stereo anew after protons were added or removed, or bonds moved. `was`: the molecule before.
void perceive_again(OpenBabel::OBMol &mol, OpenBabel::OBMol &was);

// ---- worker_axes.cpp: allenes and atropisomers

// An axis from one end to the other: atoms, and the neighbours that point at each other.
struct Ends {
    OpenBabel::OBAtom *end[2] = { nullptr, nullptr }, *inner[2] = { nullptr, nullptr };
    int n_bonds = 0; // from end to end
};

std::vector<Ends> cumulated(OpenBabel::OBMol &mol); // chains of two double bonds and more
bool has_ends(const Ends &e, unsigned long p, unsigned long q);
OpenBabel::OBAtom *middle_of(const Ends &e,
                             OpenBabel::OBAtom **before); // of an even number of bonds; *before: the atom in front of it

// p[0] and q[0], neighbours of the ends, are on one side or not; p[1] and q[1] are the others.
OpenBabel::OBCisTransStereo::Config plane_of(const Ends &e, const unsigned long p[2], const unsigned long q[2], bool cis);

bool is_double(const OpenBabel::OBBond *b);                            // false for NULL and aromatic ones
std::vector<unsigned> classes_of(OpenBabel::OBMol &mol);               // of equal atoms, by index
Marks axes_placed(OpenBabel::OBMol &mol);                              // axes and planes, from positions or wedges
bool is_axis(OpenBabel::OBMol &mol, unsigned long p, unsigned long q); // whether these are its ends, with two arrangements
int open_axes(OpenBabel::OBMol &mol); // cumulated double bonds, two or more in a row, that can be arranged in two ways
// Bonds of biaryls that cannot turn and have two forms (atropisomers), but those among the axes of `known`. Neither SMILES nor InChIKey has
// the form.
int open_biaryls(OpenBabel::OBMol &mol, const Marks &known);

// ---- worker_smiles.cpp: marks in the text of a SMILES

// Those that the reader ignores: of allenes and longer chains, and of atoms with three neighbours and a lone pair. The SMILES gave mol,
// atom by atom. What it cannot follow is left out.
Marks marks_written(OpenBabel::OBMol &mol, const std::string &text);
bool may_mark_planes(OpenBabel::OBMol &mol, const std::string &text); // C=C=C=C in a SMILES with / or backslash

// Whether three neighbours and a lone pair can be arranged in two ways; not for nitrogen.
bool is_centre_by_graph(OpenBabel::OBMol &mol, const OpenBabel::OBTetrahedralStereo::Config &c);

// The SMILES, which gave mol, with marks that it lacks: of axes and planes of cumulated double bonds, and of centres with a lone pair.
std::string with_marks(OpenBabel::OBMol &mol, const std::string &smiles, const Marks &m);

// ---- worker_mol.cpp: molecules in two dimensions

std::string number(long n);
std::string library_said(); // Open Babel's messages since its log was cleared, on one line
std::string first_word(const std::string &s);
bool is_smiles(const std::string &format);

// options: letters, as in Open Babel's documentation of the format.
std::string mol_write(OpenBabel::OBMol &mol, const char *format, const char *options = "");
void mol_read(OpenBabel::OBMol &mol, const std::string &text, const std::string &format);

// Sorts the stereo of a molecule by atoms. Open Babel's reader of SMILES leaves it in the order of the addresses of atoms, and its writers
// choose wedges in that order.
void stereo_in_order(OpenBabel::OBMol &mol);

// Of a molecule with positions in the plane: its centres where bonds lie in one line.
void drawn_centres_check(OpenBabel::OBMol &mol);

// Whether a molfile draws the centre with a wavy bond.
bool is_wavy(const OpenBabel::OBTetrahedralStereo::Config &c);

std::string canonical_smiles(OpenBabel::OBMol &mol);
// The same, and the numbers of the atoms in the order of the text. The molecule gets data of the library and loses wavy bonds.
std::string smiles_in_order(OpenBabel::OBMol &mol, std::vector<unsigned> &order);
std::string inchikey(OpenBabel::OBMol &mol);
// Of a molecule with positions in the plane: that of the stereo which its wedges say.
std::string inchikey_of_drawing(OpenBabel::OBMol &mol);

// Keeps one part; returns the SMILES of the removed ones. m: axes and planes, which get the ids of the atoms that are kept.
std::string mol_keep_main_part(OpenBabel::OBMol &mol, Marks &m);

void mol_check_size(OpenBabel::OBMol &mol, const PrepareOpts &o, int factor);

bool is_metal(unsigned z);
bool all_hydrogens_there(OpenBabel::OBMol &mol);
void count_hydrogens(OpenBabel::OBMol &mol, int32_t &lacking, int32_t &present);

// Adds the missing hydrogens as atoms: in three dimensions in positions that do not depend on the order of the atoms, else without
// positions. If the neighbours do not determine a direction, Open Babel chooses one at random; another seed gives another direction.
void add_hydrogens(OpenBabel::OBMol &mol, uint64_t seed = 0);
// The same of a molecule with positions, in the order of its atoms and without another seed.
void add_at_positions(OpenBabel::OBMol &mol);

// In the format of chem/common/protocol.h.
std::string mol_pack(OpenBabel::OBMol &mol, bool with_xyz);

// ---- worker_hybrid.cpp

// Sets the hybridisation of all atoms to that of Open Babel's patterns, unless it is known or an element is unusual.
void mol_hybridize(OpenBabel::OBMol &mol);

// ---- worker_descriptors.cpp

void mol_describe(OpenBabel::OBMol &mol, double descriptor[CH_N_DESCRIPTORS]);

// ---- worker_bonds.cpp

// Call these before and after each call of a reader. If the reader asked Open Babel for bonds or bond orders, bonds_complete finds them
// from the positions. text: the record, whose xyz comment may state the charge. CH_VALENCE if the positions do not determine the bonds.
// false: the reader did not ask for bonds.
void bonds_begin();
bool bonds_complete(OpenBabel::OBMol &mol, const std::string &text, const std::string &format);

struct Place {
    unsigned z;
    long long far; // sum of the distances to all others, in units of 1e-5 Angstrom: sums of integers do not depend on the order
    double x[3];
    OpenBabel::OBAtom *atom;
};

// The atoms in an order that depends on elements and positions only.
std::vector<Place> own_order(OpenBabel::OBMol &mol);

// ---- worker_v3000.cpp

struct V3000 {
    std::string text; // every atom and bond on a line of its own
    long atoms = 0, bonds = 0;
    std::vector<std::pair<long, int>> valence; // of atoms with VAL, which Open Babel does not read; -1: none
    std::vector<std::pair<long, long>> either; // atoms of bonds with CFG=2, the narrow end first
};

bool is_molfile(const std::string &format);
bool is_v3000(const std::string &text, const std::string &format);
bool fits_columns(OpenBabel::OBMol &mol);                                       // whether four decimals hold all positions
std::string with_all_digits(const std::string &molfile, OpenBabel::OBMol &mol); // of a V3000 molfile
V3000 v3000_of(const std::string &text);                                        // CH_PARSE if Open Babel would read out of bounds
void v3000_leave_open(OpenBabel::OBMol &mol, const V3000 &v);                   // double bonds whose form is drawn as not known

// ---- worker_written.cpp

// CH_PARSE where a position is no number, or something is of no molecule (a query, a polymer): of a V2000 molfile, MOL2 or PDB.
void text_check(const std::string &text, const std::string &format);
std::string ended(const std::string &text, const std::string &format); // a V2000 molfile without M  END gets one
std::vector<std::string> words_in(const std::string &line);
void position_check(long atom, const std::string &field); // one of the three
void molfile_bond_check(long bond, const std::string &type);
void sgroup_check(const std::string &kind); // SRU, DAT, ...
// Fails where Open Babel has read bonds of type 4 of a molfile without the charges of its atoms.
void aromatic_check(OpenBabel::OBMol &mol, const std::string &text, const std::string &format);
// What is no SMILES, before and after Open Babel has read it (worker_syntax.cpp).
void smiles_check(const std::string &smiles);
void smiles_read_check(OpenBabel::OBMol &mol, const std::string &smiles);
// Fails unless the molecule that was read of an InChI is the one that it names (worker_inchi.cpp).
void inchi_read_check(OpenBabel::OBMol &mol, const std::string &inchi);
// Of each molecule of a CML file why it is not read as it is written; "": it is.
std::vector<std::string> cml_problems(const std::string &text);

// ---- worker_mol2.cpp

// After the reader of MOL2: sets charges, and hydrogens that only records for docking lack. CH_VALENCE where they are not known.
void mol2_complete(OpenBabel::OBMol &mol, const std::string &text);

// ---- worker_drawing.cpp

// Gives groups with several drawings (nitro, N-oxide, azide, sulfoxide ...) one drawing. Only bond orders and formal charges change.
void mol_one_drawing(OpenBabel::OBMol &mol);

// A nitrogen with four or five bonds in one of these groups, without the charges that they get: N(=O)=O, N=N#N, N#C.
bool is_drawn_uncharged(OpenBabel::OBAtom *nitrogen);

// Positions for a drawing, in the plane (worker_layout.cpp). Returns the number of overlaps that are left.
// planes: C=C=C=C and the like, whose ends lie as they say, if that is possible. clear: the positions say of each double bond with stereo, and
// of these, which isomer it is.
int mol_lay_out(OpenBabel::OBMol &mol, const std::vector<OpenBabel::OBCisTransStereo::Config> &planes, bool &clear);

// ---- worker_valence.cpp

// Fails if an atom with a bond is no element: it stands for a group, or for a place in another part.
void mol_check_dummies(OpenBabel::OBMol &mol);

// Fails if an atom is no element, or has more bonds than its charge allows.
void mol_check_atoms(OpenBabel::OBMol &mol);

// Takes away the hydrogen that Open Babel adds to neutral nitrogen, phosphorus, sulfur and their like with one bond more to a metal or boron.
// One that a SMILES writes stays (but at nitrogen).
void mol_drop_invented_hydrogens(OpenBabel::OBMol &mol, const std::string &text, const std::string &format);

// Hydrogens of atoms beside a metal that it would take away from the molecule's SMILES; that SMILES with the hydrogens written. order:
// the number of each atom of the text.
bool has_own_hydrogens(OpenBabel::OBMol &mol);
std::string own_hydrogens_written(const std::string &smiles, OpenBabel::OBMol &mol, const std::vector<unsigned> &order);

// ---- worker_wedges.cpp

// A wedge or hash for each centre of a molecule with positions in the plane, as flags of bonds, whose first atom is then the centre.
class Wedges {
public:
    explicit Wedges(OpenBabel::OBMol &mol);

    // judge: 0 if the molecule with these wedges is right; else less, and the less, the worse. false: no choice is right.
    bool solve(const std::function<int(OpenBabel::OBMol &)> &judge, int tries);

private:
    struct Choice {
        OpenBabel::OBBond *bond;
        double cost;
    };
    struct Centre {
        OpenBabel::OBTetrahedralStereo::Config config;
        std::vector<Choice> choices; // by increasing cost
        size_t taken;
    };
    OpenBabel::OBMol &mol_;
    std::vector<Centre> centres_;

    static double least_cost(const Centre &c);
    bool find(size_t centre, std::vector<bool> &asked);
    bool assign();
    void put();
};

// Beside those: a wedge or hash at one end of each axis that shows its form. false: an axis has no free bond for it.
bool put_axis_wedges(OpenBabel::OBMol &mol, const std::vector<Axis> &axes);

// ---- worker_picture.cpp

struct Picture {
    std::string svg, molfile; // with the same positions; both with CH_NO_STEREO if they do not show the stereo of the molecule
    int overlaps = 0;
};
Picture picture_of(const std::string &smiles);

// The InChIKey of a molecule without positions whose SMILES marks an axis, which InChI knows from positions only: that of its drawing. `key`,
// the key without the axis, if the drawing does not show all of the stereo.
std::string inchikey_of_axes(const std::string &smiles, const std::string &key);
std::string without_date(std::string s, const std::string &format); // of an MDL text

// ---- worker_neutral.cpp

// Returns how many atoms lost their charge. A 3D structure with all hydrogens still has all of them afterwards. balanced: the absolute
// net charge does not grow; otherwise every acid and base loses its charge.
int mol_neutralise(OpenBabel::OBMol &mol, bool balanced);

// For one atom with formal charge 0 or, for take_proton, also 1.
bool has_proton(OpenBabel::OBAtom &a); // a hydrogen of natural isotopes
void add_proton(OpenBabel::OBAtom &a);
void take_proton(OpenBabel::OBMol &mol, OpenBabel::OBAtom &a);

int usual_valence(unsigned z); // number of bonds of the neutral atom; 0: the element is not part of acids and bases
int sum_of_charges(OpenBabel::OBMol &mol);

// ---- worker_protonate.cpp

// Gives acids and bases their state at this pH, independent of the drawing (chem/worker_program/groups.h). Returns how many atoms changed their charge.
int mol_protonate(OpenBabel::OBMol &mol, double ph);

// ---- worker_alerts.cpp; rules: one per line, a SMARTS, a blank and a name

struct BadRule {
    int32_t rule, column; // from 0; from 1
};
std::vector<BadRule> rules_check(const std::string &rules); // the rules that are not valid SMARTS

// The names of the matching rules, each once, in the order of the rules, separated by ", ".
std::string mol_alerts(const OpenBabel::OBMol &mol, const std::string &rules);

// The column (from 1) where a pattern is not valid SMARTS; 0: it is valid.
int32_t smarts_check(const std::string &smarts);

// Whether the molecule of a SMILES matches a valid pattern, as an alert would: 1 yes, 0 no, -1 the SMILES cannot be read.
int32_t smarts_match(const std::string &smarts, const std::string &smiles);

// Number of stereocentres and double bonds whose stereo is undefined.
int undefined_stereo(const OpenBabel::OBMol &mol);
int undefined_stereo_written(OpenBabel::OBMol &mol); // the same, of a molecule whose canonical SMILES was just written

// ---- worker_conformers.cpp: further conformers of a molecule

// Rotates around each rotatable bond by a random angle derived from state.
void turn_all(OpenBabel::OBMol &mol, uint64_t state);

// Chooses undefined stereo at random, before the structure is built.
void define_stereo(OpenBabel::OBMol &mol, uint64_t state);

// ---- worker_marks.cpp: what SMILES leave out

struct Kept {
    std::string text; // stereo that the record defines and its SMILES does not, for marks_read; "" mostly
    int n_open;       // stereo that a structure has by chance, beside what undefined_stereo counts
    int n_lost;       // stereo that the record defines and the structure has by chance
};

struct Open {
    int n_open, n_unread; // undefined_stereo of the record; marks that the reader left out
};

struct Identity {
    std::string smiles, inchikey;
};

// mol: read_with_hydrogens of the record's SMILES; m: of the record before its SMILES was written, which takes marks away.
// The defined items of the layers /b and /t of an InChI, and in rest what stands before all stereo.
int inchi_defined(const std::string &inchi, std::string &rest);

int unread_marks(); // since the library's log was cleared
Kept kept_of(OpenBabel::OBMol &mol, OpenBabel::OBMol &record, const Marks &m, const Identity &id, const Open &open);
std::string axes_text(OpenBabel::OBMol &record, const std::string &smiles,
                      const Marks &m); // those words of Kept::text that are about axes

// The canonical SMILES of the record with marks that it lacks (with_marks).
std::string smiles_with_marks(const std::string &smiles, OpenBabel::OBMol &record, const Marks &m);

// The marks in the text of Kept, for any molecule read from the same SMILES. CH_CONFORMER if they do not fit.
Marks marks_read(OpenBabel::OBMol &mol, const std::string &text);

// ---- worker_plan.cpp

// Reads a SMILES and makes all hydrogens atoms, which come last.
void read_with_hydrogens(OpenBabel::OBMol &mol, const std::string &smiles);

// What a structure is built from: mol and stereo in the format of chem/common/protocol.h. mol: from read_with_hydrogens; kept: Kept.text.
struct Plan {
    std::string mol, stereo;
};
Plan plan_of(OpenBabel::OBMol &mol, const std::string &kept);

// Whether the positions have the stereo of these marks.
bool positions_have(OpenBabel::OBMol &mol, const Marks &m);

// ---- worker_relax.cpp

// Minimises the energy of one of Open Babel's force fields ("MMFF94", "UFF") in at most `steps` steps, or until the gradient is small.
// *energy in kcal/mol. false: the force field has no parameters for an atom, or the energy is not finite.
bool relax(OpenBabel::OBMol &mol, const char *field, int steps, double *energy);

// ---- worker_build.cpp: 3D structures

struct Placed {
    std::string geometry = "none";  // "input", "mmff94", "uff", "none"; "build": still to be built
    double energy;                  // kcal/mol or NaN
    std::string mol;                // packed
    std::vector<std::string> other; // the other conformers, by increasing energy
};

void mol_check_geometry(OpenBabel::OBMol &mol); // CH_GEOMETRY: atoms coincide, bonds of 5 Angstrom, positions not finite

double z_spread(OpenBabel::OBMol &mol); // the largest difference of heights, in Angstrom

// Whether positions are in the record. A flat molecule counts as 3D if its format has no 2D drawings or its header says 3D.
bool is_real_3d(OpenBabel::OBMol &mol, const std::string &format);

// Adds hydrogens and checks the positions, unless the conformer is none or must be built.
Placed mol_place(OpenBabel::OBMol &mol, const std::string &format, const PrepareOpts &o);

// Builds a structure of a canonical SMILES in a separate process with a limit in CPU seconds (0: none). Behind the SMILES and a blank may
// stand the text of Kept. If it is not the first, undefined stereo is chosen at random and rotatable bonds get random angles.
Placed build_apart(const std::string &smiles, const PrepareOpts &o, bool first, double seconds);

// Builds the first structure, and further conformers if the options ask for them.
Placed build_all(const std::string &smiles, const PrepareOpts &o);

// Call it before the first molecule: loads tables, confines the process (*confined: sum of ch_confined) and starts the process that
// builds structures. 0, or a ch_exit.
int builder_start(int *confined);
double cpu_built(); // CPU seconds of all builds

} // namespace worker

#endif
