// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_build.cpp - 3D positions: taken from the input, or built.
//
// A structure is built from its canonical SMILES in a child forked from the
// "nursery". This process is forked from the worker at its start. When the first
// structure is asked for, it runs the builder on a few fixed molecules, which takes
// most of the time of a start; then it only forks. Open Babel keeps state
// of earlier molecules (tables loaded on demand) and sorts by address, so
// the state of the heap affects the coordinates: mostly rounding, sometimes the
// pucker of a ring. With the nursery, the answer to a record does not depend on
// earlier records, nor on the order in which its atoms are written. A crash
// of the builder ends only the child.
#include "chem/worker_program/worker.hpp"

#include "chem/common/confine.h"

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <new>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <openbabel/atom.h>
#include <openbabel/babelconfig.h>
#include <openbabel/bond.h>
#include <openbabel/builder.h>
#include <openbabel/obconversion.h>
#include <openbabel/oberror.h>
#include <openbabel/obiter.h>
#include <openbabel/stereo/cistrans.h>
#include <openbabel/stereo/stereo.h>
#include <openbabel/stereo/tetrahedral.h>

using namespace OpenBabel;

// Undefined if Open Babel was built without OpenMP.
extern "C" void omp_set_num_threads(int) __attribute__((weak));

// Replaces the function of libgomp: with one thread a parallel region is just its body. Open Babel's force fields enter a region for
// each of seven terms of every energy, and libgomp creates and frees a team for each, which takes a twentieth of the time of a structure.
extern "C" void GOMP_parallel(void (*body)(void *), void *data, unsigned, unsigned);
extern "C" void GOMP_parallel(void (*body)(void *), void *data, unsigned, unsigned) { body(data); }

namespace worker {

static const int build_tries = 3, shuffled_tries = 8, keep_tries = 8;
static const double max_strain = 6; // kcal/mol per atom: most drugs have less than 3, ions with several charges more

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

// Four bonds around one carbon cannot lie in a plane.
static bool flat_is_impossible(OBMol &mol)
{
    FOR_ATOMS_OF_MOL(a, mol)
        if (a->GetExplicitDegree() == 4 && a->GetAtomicNum() == 6)
            return true;
    return false;
}

// An atom at the origin is in its place, but Open Babel would put its hydrogens there, too.
bool is_real_3d(OBMol &mol, const std::string &format)
{
    if (is_smiles(format) || (!mol.HasNonZeroCoords() && (mol.NumAtoms() > 1 || !all_hydrogens_there(mol))))
        return false;
    if (z_spread(mol) > 1e-3)
        return true;
    bool said = format == "xyz" || format == "pdb" || (format == "sdf" && mol.GetDimension() == 3);
    return said && !flat_is_impossible(mol);
}

// No bond is longer; positions in picometres, or of a damaged record, have such bonds.
static const double longest_bond = 5;

void mol_check_geometry(OBMol &mol)
{
    const unsigned n = mol.NumAtoms();
    std::vector<vector3> at;
    FOR_ATOMS_OF_MOL(a, mol) {
        vector3 v = a->GetVector();
        if (!std::isfinite(v.x()) || !std::isfinite(v.y()) || !std::isfinite(v.z()) || std::fabs(v.x()) > 1e4 ||
            std::fabs(v.y()) > 1e4 || std::fabs(v.z()) > 1e4)
            fail(CH_GEOMETRY, "atom " + number(a->GetIdx()) + " has no sane position");
        at.push_back(v);
    }
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < i; j++)
            if (at[i].distSq(at[j]) < 0.36)
                fail(CH_GEOMETRY, "atoms " + number(j + 1) + " and " + number(i + 1) + " are closer than 0.6 Angstrom");
    FOR_BONDS_OF_MOL(b, mol)
        if (b->GetLength() > longest_bond)
            fail(CH_GEOMETRY, "atoms " + number(b->GetBeginAtomIdx()) + " and " + number(b->GetEndAtomIdx()) +
                                  " are bonded, and farther than 5 Angstrom from each other");
}

static uint64_t hash_text(const std::string &s) // FNV-1a; any fixed hash function would do
{
    uint64_t h = 0xcbf29ce484222325u;
    for (unsigned char c : s)
        h = (h ^ c) * 0x100000001b3u;
    return h ^ (h >> 32);
}

namespace {
struct Geometry {
    std::string how = "none";
    double energy = NAN;
};
} // namespace

// Treats deuterium as hydrogen in the force field: MMFF94 has no van der Waals radius for it, and its chemistry is the same.
static std::vector<unsigned> take_isotopes(OBMol &mol)
{
    std::vector<unsigned> taken; // usually allocates nothing: the state of the heap affects the coordinates
    FOR_ATOMS_OF_MOL(a, mol)
        if (a->GetIsotope() != 0) {
            taken.resize(mol.NumAtoms());
            taken[a->GetIdx() - 1] = a->GetIsotope();
            a->SetIsotope(0);
        }
    return taken;
}

static void put_isotopes(OBMol &mol, const std::vector<unsigned> &taken)
{
    FOR_ATOMS_OF_MOL(a, mol)
        if (!taken.empty())
            a->SetIsotope(taken[a->GetIdx() - 1]);
}

// The builder makes exactly linear groups, for which Open Babel's angle terms have no gradient: nitriles
// would keep a C-N bond 0.1 Angstrom too long. Moving atoms a hundredth of an Angstrom off the line is enough.
static void mol_shake(OBMol &mol, uint64_t state)
{
    FOR_ATOMS_OF_MOL(a, mol) {
        double d[3];
        for (double &x : d)
            x = (static_cast<double>(chance(state)) / 16777216.0 - 0.5) * 0.02;
        a->SetVector(a->GetX() + d[0], a->GetY() + d[1], a->GetZ() + d[2]);
    }
}

// How a further structure differs from the first one.
struct Start {
    bool turned;   // parts of the molecule, by a random angle
    bool shuffled; // the builder sees the atoms in a random order: it is deterministic, and what it gets wrong depends on the order
};

// A random order of n atoms, as numbers from 1; the same for the same state.
static std::vector<int> random_order(unsigned n, uint64_t state)
{
    std::vector<int> order(n);
    for (unsigned i = 0; i < n; i++)
        order[i] = static_cast<int>(i + 1);
    for (unsigned i = n; i > 1; i--)
        std::swap(order[i - 1], order[chance(state) % i]);
    return order;
}

static bool build_shuffled(OBBuilder &builder, OBMol &mol, uint64_t state)
{
    const std::vector<int> order = random_order(mol.NumAtoms(), state);
    std::vector<int> back(order.size());
    for (size_t i = 0; i < order.size(); i++)
        back[static_cast<size_t>(order[i]) - 1] = static_cast<int>(i + 1);
    mol.RenumberAtoms(order);
    const bool built = builder.Build(mol, false);
    mol.RenumberAtoms(back);
    return built;
}

// In: `mol` without hydrogens. Out: heavy atoms first, then hydrogens, with positions.
static Geometry mol_build(OBMol &mol, const std::string &smiles, const PrepareOpts &o, Start how)
{
    OBBuilder builder;
    Geometry g;
    if (mol.NumHvyAtoms() > 0)
        mol.DeleteHydrogens();
    restart_chance(hash_text(smiles) ^ o.seed);
    if (how.shuffled ? !build_shuffled(builder, mol, hash_text(smiles) ^ o.seed) : !builder.Build(mol, false))
        fail(CH_CONFORMER, "no 3D structure could be built: " + library_said());
    add_at_positions(mol);
    if (how.turned)
        turn_all(mol, hash_text(smiles) ^ o.seed);
    mol_shake(mol, hash_text(smiles) ^ o.seed);
    const OBMol start = mol;
    const int first = o.force_field == CH_FF_UFF ? CH_FF_UFF : CH_FF_MMFF94;
    for (int field : { static_cast<int>(CH_FF_MMFF94), static_cast<int>(CH_FF_UFF) }) {
        const char *name = field == CH_FF_MMFF94 ? "mmff94" : "uff";
        if (field < first)
            continue;
        const std::vector<unsigned> isotopes = take_isotopes(mol);
        const bool relaxed = relax(mol, field == CH_FF_MMFF94 ? "MMFF94" : "UFF", o.steps, &g.energy);
        put_isotopes(mol, isotopes);
        if (relaxed) {
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

// One in several hundred drug-like molecules is built with a bond through a ring, which no force field can correct.
static bool is_strained(const Geometry &g, const OBMol &mol) { return g.energy > max_strain * mol.NumAtoms(); }

static bool is_other(const OBTetrahedralStereo::Config &wanted, const OBTetrahedralStereo::Config &found)
{
    return wanted.specified && wanted.winding != OBStereo::UnknownWinding && wanted != found;
}

static bool is_other_bond(const OBCisTransStereo::Config &wanted, const OBCisTransStereo::Config &found)
{
    return wanted.specified && found.specified && wanted != found;
}

// Whether the positions have the stereocentres and double bonds that the molecule defines. Open Babel's builder inverts some.
static bool keeps_stereo(const OBMol &built)
{
    OBMol wanted = built, found = built;
    StereoFrom3D(&found, true);
    OBStereoFacade by_drawing(&wanted, false), by_positions(&found, false);
    FOR_ATOMS_OF_MOL(a, wanted) {
        const unsigned long id = a->GetId();
        if (by_drawing.HasTetrahedralStereo(id) && by_positions.HasTetrahedralStereo(id) &&
            is_other(by_drawing.GetTetrahedralStereo(id)->GetConfig(), by_positions.GetTetrahedralStereo(id)->GetConfig()))
            return false;
    }
    FOR_BONDS_OF_MOL(b, wanted) {
        const unsigned long id = b->GetId();
        if (by_drawing.HasCisTransStereo(id) && by_positions.HasCisTransStereo(id) &&
            is_other_bond(by_drawing.GetCisTransStereo(id)->GetConfig(), by_positions.GetCisTransStereo(id)->GetConfig()))
            return false;
    }
    return true;
}

// Whether the positions have the stereo behind the SMILES (Kept.text). Without such text nothing is allocated: the state of the heap affects
// what the builder does next.
static bool keeps_marks(OBMol &mol, const std::string &smiles)
{
    const size_t end = smiles.find(' ');
    return end == std::string::npos || positions_have(mol, marks_read(mol, smiles.substr(end + 1)));
}

static Geometry mol_build_sane(OBMol &mol, const std::string &smiles, const PrepareOpts &o, Start how)
{
    const Geometry g = mol_build(mol, smiles, o, how);
    mol_check_geometry(mol);
    if (!keeps_stereo(mol) || !keeps_marks(mol, smiles))
        fail(CH_GEOMETRY,
             "built with a stereocentre or double bond other than defined; a 3D structure in the input is kept as it is");
    if (mol.NumAtoms() > 3 && z_spread(mol) <= 1e-3 && flat_is_impossible(mol))
        fail(CH_GEOMETRY, "flat, although a carbon has four neighbours");
    return g;
}

// Others end with coinciding atoms, or with other stereo than defined; another start usually helps. If all are strained, the least
// strained one is used.
static Geometry mol_build_checked(OBMol &mol, const std::string &smiles, const PrepareOpts &o, bool turned)
{
    const OBMol flat = mol;
    PrepareOpts again = o;
    Geometry best;
    bool shuffled = false;
    for (int left = build_tries - 1; left >= 0; left--, again.seed = again.seed * 0x9e3779b97f4a7c15u + 1)
        try {
            OBMol built = flat;
            const Geometry g = mol_build_sane(built, smiles, again, { turned || best.how != "none", shuffled });
            if (best.how == "none" || (g.how == best.how && g.energy < best.energy)) {
                best = g;
                mol = built;
            }
            if (!is_strained(best, mol))
                break;
        } catch (const Failure &) {
            if (left == 0 && best.how == "none" && shuffled)
                throw;
            if (best.how == "none" && !shuffled)
                left = shuffled_tries;
            shuffled = true;
        }
    return best;
}

// ---- in a separate process ----------------------------------------------

namespace {
struct Order { // main process to nursery, followed by the SMILES
    PrepareOpts opts;
    double seconds;           // CPU, 0: no limit
    uint32_t n_smiles, first; // first: 1 for the first conformer
};
struct Result {     // nursery to main process, followed by the child's output
    int32_t status; // as waitpid gives it
    uint32_t n_said;
    double cpu_s;
};
} // namespace

static const size_t said_max = 4 << 20, order_smiles_max = 1 << 16;
static char said[said_max], order_smiles[order_smiles_max]; // not on the heap, which must not change
static int nursery = -1;                                    // this process's end of the socket
static double cpu_of_children;

double cpu_built() { return cpu_of_children; }

static Placed place(const std::string &smiles, const PrepareOpts &o, bool first)
{
    OBMol mol;
    mol_read(mol, smiles, "smi");
    if (!first)
        define_stereo(mol, hash_text(smiles) ^ o.seed);
    Geometry g = mol_build_checked(mol, smiles, o, !first);
    return { g.how, g.energy, mol_pack(mol, true), {} };
}

// Builds in the child and sends the result; does not return.
[[noreturn]] static void run_child(int fd, const Order &order)
{
    Failure why = { CH_OK, "", 0 };
    Placed placed;
    Out out;

    prctl(PR_SET_PDEATHSIG, SIGKILL); // fires when the parent thread ends; the nursery has only one
    cpu_limit(order.seconds);
    try {
        placed = place(std::string(order_smiles, order.n_smiles), order.opts, order.first);
    } catch (const Failure &f) {
        why = f;
    } catch (const std::bad_alloc &) {
        why = { CH_MEMORY, "more memory than allowed", 0 };
    } catch (const std::exception &e) {
        why = { CH_INTERNAL, std::string("exception: ") + e.what(), 0 };
    }
    out.put<uint32_t>(why.status);
    out.str(why.text);
    out.str(placed.geometry);
    out.put(placed.energy);
    out.str(placed.mol);
    _exit(out.s.size() <= said_max && write_all(fd, out.s.data(), out.s.size()) ? 0 : 1);
}

static size_t read_to_end(int fd)
{
    size_t n = 0;
    while (n < said_max) {
        ssize_t got = read(fd, said + n, said_max - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += static_cast<size_t>(got);
    }
    return n;
}

// Others on the machine may have taken all processes for a moment.
static pid_t fork_patiently()
{
    const timespec moment = { 0, 100 * 1000 * 1000 };
    pid_t pid = fork();
    for (int tries = 0; pid < 0 && tries < 30; tries++) {
        nanosleep(&moment, nullptr);
        pid = fork();
    }
    return pid;
}

// Handles one order. false: the main process has ended.
static bool serve(int fd, const Order &order)
{
    Result r = { -1, 0, 0 };
    rusage use = {};
    int ends[2];

    if (pipe(ends) != 0)
        return false;
    pid_t pid = fork_patiently();
    if (pid == 0) {
        close(ends[0]);
        close(fd);
        run_child(ends[1], order);
    }
    close(ends[1]);
    r.n_said = pid > 0 ? static_cast<uint32_t>(read_to_end(ends[0])) : 0;
    close(ends[0]);
    int status = 0;
    while (pid > 0 && wait4(pid, &status, 0, &use) < 0 && errno == EINTR)
        continue;
    r.status = pid > 0 ? status : -1;
    r.cpu_s = static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
              1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
    return write_all(fd, reinterpret_cast<char *>(&r), sizeof r) && write_all(fd, said, r.n_said);
}

static void build_first_molecules();
static int confine();

// Nothing is allocated before the first molecules are built: the state of the heap affects the coordinates.
[[noreturn]] static void run_nursery(int fd)
{
    Order order;
    pollfd asked = { fd, POLLIN, 0 };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (poll(&asked, 1, -1) < 0 && errno == EINTR)
        continue;
    if ((asked.revents & POLLHUP) != 0)
        _exit(0); // the worker has ended without a structure
    build_first_molecules();
    (void)confine(); // before it reads anything
    while (read_all(fd, &order, sizeof order) && order.n_smiles <= order_smiles_max && read_all(fd, order_smiles, order.n_smiles) &&
           serve(fd, order))
        continue;
    _exit(0);
}

static Placed read_child(const std::string &words, int status)
{
    if (status == -1)
        _exit(CH_EXIT_PROCESS); // no record is the cause
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
        fail(CH_TIMEOUT, "3D building spent its CPU seconds", SIGPROF);
    if (WIFSIGNALED(status))
        fail(CH_CRASH, "3D building was ended by signal " + number(WTERMSIG(status)), WTERMSIG(status));
    In in(words);
    Placed p;
    ch_status code = static_cast<ch_status>(in.get<uint32_t>());
    std::string why = in.str();
    if (code != CH_OK)
        fail(code, why);
    p.geometry = in.str();
    p.energy = in.get<double>();
    p.mol = in.str();
    return p;
}

Placed build_apart(const std::string &smiles, const PrepareOpts &o, bool first, double seconds)
{
    const Order order = { o, seconds, static_cast<uint32_t>(smiles.size()), first };
    Result r;

    if (smiles.size() > order_smiles_max)
        fail(CH_TOO_LARGE, "a SMILES of " + number(static_cast<long>(smiles.size())) + " bytes");
    if (!write_all(nursery, reinterpret_cast<const char *>(&order), sizeof order) ||
        !write_all(nursery, smiles.data(), smiles.size()) || !read_all(nursery, &r, sizeof r) || r.n_said > said_max)
        throw std::runtime_error("the 3D builder is gone"); // ends this worker; the parent starts another
    std::string words(r.n_said, '\0');
    if (!read_all(nursery, &words[0], words.size()))
        throw std::runtime_error("the 3D builder is gone");
    cpu_of_children += r.cpu_s;
    return read_child(words, r.status);
}

// Checks the size with hydrogens before any time is spent on building.
static void mol_check_hydrogenated(OBMol &mol, const PrepareOpts &o)
{
    int64_t n = mol.NumAtoms();
    FOR_ATOMS_OF_MOL(a, mol)
        n += a->GetImplicitHCount();
    if (n > o.max_atoms)
        fail(CH_TOO_LARGE, number(static_cast<long>(n)) + " atoms");
}

// Adding hydrogens makes Open Babel discard aromaticity, although they do not change it; this restores it.
static void complete(OBMol &mol, uint64_t seed = 0)
{
    const bool known = mol.HasAromaticPerceived();
    add_hydrogens(mol, seed);
    mol.SetAromaticPerceived(known);
}

// Keeps the positions of the input. A hydrogen that was randomly placed on another atom is placed again in another direction.
static void keep_positions(OBMol &mol, const PrepareOpts &o)
{
    const int tries = all_hydrogens_there(mol) ? 1 : keep_tries;
    const OBMol given = tries > 1 ? mol : OBMol();
    for (int k = 1; k <= tries; k++)
        try {
            complete(mol, static_cast<uint64_t>(k));
            mol_check_size(mol, o, 1);
            mol_check_geometry(mol);
            return;
        } catch (const Failure &f) {
            if (k == tries || f.status != CH_GEOMETRY)
                throw;
            mol = given;
        }
}

Placed mol_place(OBMol &mol, const std::string &format, const PrepareOpts &o)
{
    const bool real = is_real_3d(mol, format);

    if (o.conformer == CH_3D_NONE) {
        complete(mol);
        mol_check_size(mol, o, 1);
        return { "none", NAN, mol_pack(mol, false), {} };
    }
    if (o.conformer == CH_3D_KEEP && !real)
        fail(CH_CONFORMER, "the record has no 3D positions to keep");
    if (o.conformer == CH_3D_GENERATE || (o.conformer == CH_3D_AUTO && !(real && all_hydrogens_there(mol)))) {
        mol_check_hydrogenated(mol, o);
        return { "build", NAN, "", {} };
    }
    keep_positions(mol, o);
    return { "input", NAN, mol_pack(mol, true), {} };
}

// Open Babel's plug-ins are loaded by now; some of its tables are read later, when a molecule needs them.
static int confine()
{
    const char *named = getenv("BABEL_DATADIR");
    const char *const folders[] = { named != nullptr ? named : BABEL_DATADIR, BABEL_DATADIR, nullptr };
    return sanitized ? 0 : ch_confine(folders); // a sanitizer must be able to write its report
}

static void build_first_molecules()
{
    // Different rings, so that the tables for them are loaded once and not by every child; the last molecule needs UFF.
    static const char *const first[] = { "CC(=O)Oc1ccccc1C(=O)O", "C[C@H]1CC([NH2+][C@@H](C)c2c[nH]c3cc(F)ccc23)C[C@H](C)O1",
                                         "C1CC2CCC1N2C1CCCCC1", "O=C1NC2(CCCC2)C(=O)N1C1CC1", "C[Hg]C" };
    PrepareOpts o;

    o.steps = 4;
    vector3 v;
    v.randomUnitVector(); // seeds itself from the clock at first use; afterwards srand determines the sequence
    for (const char *smiles : first) {
        try {
            (void)place(smiles, o, true);
        } catch (const Failure &) {
            continue; // missing tables are reported by hello
        }
    }
}

int builder_start(int *confined)
{
    int ends[2];

    if (omp_set_num_threads != nullptr)
        omp_set_num_threads(1); // more would change the last bits, spin, and hang in the forked child
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return CH_EXIT_FILES;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        run_nursery(ends[1]);
    }
    close(ends[1]);
    nursery = ends[0];
    (void)OBConversion::FindFormat("smi"); // loads the plug-ins
    vector3 v;
    v.randomUnitVector();
    *confined = confine();
    return pid > 0 ? 0 : CH_EXIT_PROCESS;
}

} // namespace worker
