// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker.cpp - molsieve-chem: the one program that links Open Babel.
//
// Reads requests from stdin, answers on stdout (chem/common/protocol.h), and may die
// at any request: the parent restarts it. Problems of Open Babel 3.1.1 that explain its design:
// the builder seeds itself from the clock and depends on earlier molecules,
// MMFF94 uses OpenMP threads whose number changes the result, --gen3D's fast
// levels return zeros, building 3D invents stereo, SMILES of thousands of atoms
// take minutes.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <new>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <openbabel/atom.h>
#include <openbabel/babelconfig.h>
#include <openbabel/bond.h>
#include <openbabel/chargemodel.h>
#include <openbabel/elements.h>
#include <openbabel/obconversion.h>
#include <openbabel/oberror.h>
#include <openbabel/obiter.h>

using namespace OpenBabel;

// Replaces the clock that Open Babel reads by a constant. Open Babel stops computing canonical labels after five seconds of the
// clock and then returns other labels or crashes: if the process was suspended or the clock was set, a record would get another
// SMILES. Long computations are ended by the limit on CPU seconds.
extern "C" time_t time(time_t *t) noexcept
{
    if (t != nullptr)
        *t = 0;
    return 0;
}

// Open Babel seeds its random numbers from this clock.
extern "C" int gettimeofday(timeval *__restrict t, void *__restrict) noexcept
{
    *t = timeval();
    return 0;
}

namespace worker {

static int confined;                // sum of ch_confined; known once Open Babel is initialised
static const int list_max = 100000; // maximum molecules of one file, which are held in memory together

void fail(ch_status s, const std::string &text, int signal) { throw Failure{ s, text, signal }; }

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

struct Prepared {
    std::string smiles, inchikey, formula, removed, alerts, geometry, built_from;
    int32_t n_heavy = 0, charge = 0, charge_read = 0, n_neutralised = 0, undefined_stereo = 0, lost_stereo = 0;
    int32_t lacking = 0, present = 0;
    double descriptor[CH_N_DESCRIPTORS] = {}, energy = NAN;
    std::string mol, stereo; // in the format of chem/common/protocol.h
};

// What a structure is built from: the SMILES and the stereo that it leaves out.
static void prepare_plan(Prepared &p, OBMol &record, const Identity &id, const Marks &marks, int n_unread)
{
    OBMol mol;
    read_with_hydrogens(mol, id.smiles);
    const Kept kept = kept_of(mol, record, marks, id, { p.undefined_stereo, n_unread });
    p.built_from = id.smiles + (kept.text.empty() ? "" : " ") + kept.text;
    p.lost_stereo = kept.n_lost;
    p.undefined_stereo += kept.n_open + open_biaryls(mol, marks_read(mol, kept.text));
    const Plan plan = plan_of(mol, kept.text);
    p.mol = plan.mol;
    p.stereo = plan.stereo;
}

// Marks of a SMILES that the reader ignored: centres are put into the molecule, axes and planes stay beside it. Returns how many are lost,
// and axes and planes.
static int take_unread(Marks &written, OBMol &mol, const std::string &text)
{
    const int n = unread_marks();
    if (n > 0 || may_mark_planes(mol, text))
        written = marks_written(mol, text);
    marks_put(mol, written);
    return std::max(n - static_cast<int>(written.centres.size()), 0) + static_cast<int>(written.planes.size());
}

static void prepare(Prepared &p, const std::string &text, const std::string &format, const std::string &rules, const PrepareOpts &o)
{
    OBMol mol;
    mol_read(mol, text, format);
    Marks written;
    const int n_unread = is_smiles(format) ? take_unread(written, mol, text) : unread_marks();
    mol_check_size(mol, o, 8); // all parts together: far too large for screening
    mol_drop_invented_hydrogens(mol, text, format);
    if (o.one_drawing)
        mol_one_drawing(mol);
    mol_check_dummies(mol); // before a part with one is removed
    if (o.largest_fragment)
        p.removed = mol_keep_main_part(mol, written);
    mol_check_size(mol, o, 1);
    p.charge_read = mol.GetTotalCharge();
    if (is_real_3d(mol, format))
        count_hydrogens(mol, p.lacking, p.present);
    if (o.ph >= 0)
        p.n_neutralised = mol_protonate(mol, o.ph);
    else if (o.neutralise)
        p.n_neutralised = mol_neutralise(mol, true);
    mol_check_atoms(mol);
    mol_hybridize(mol);
    // The identity is that of the input: building 3D would define stereo that the input leaves undefined.
    Marks marks = marks_of(mol);
    const Marks beside = mol.GetDimension() >= 2 ? axes_placed(mol) : written;
    marks.axes = beside.axes;
    marks.planes = beside.planes;
    Identity id;
    id.inchikey = p.inchikey = mol.GetDimension() == 2 ? inchikey_of_drawing(mol) : inchikey(mol);
    id.smiles = canonical_smiles(mol); // takes away marks that it does not write
    marks_put(mol, marks);
    p.smiles = smiles_with_marks(id.smiles, mol, marks);
    if (!written.axes.empty() || !written.planes.empty())
        p.inchikey = inchikey_of_axes(p.smiles, p.inchikey);
    p.formula = mol.GetFormula();
    p.n_heavy = static_cast<int32_t>(mol.NumHvyAtoms());
    p.charge = mol.GetTotalCharge();
    mol_describe(mol, p.descriptor);
    p.undefined_stereo = undefined_stereo_written(mol);
    if (!rules.empty())
        p.alerts = mol_alerts(mol, rules);
    obErrorLog.ClearLog();
    Placed placed = mol_place(mol, format, o);
    p.geometry = placed.geometry;
    p.mol = placed.mol;
    if (p.geometry != "build" && !marks.axes.empty())
        p.built_from = id.smiles + " " + axes_text(mol, id.smiles, marks);
    if (p.geometry == "build")
        prepare_plan(p, mol, id, marks, n_unread);
}

static void put_prepared(Out &out, const Prepared &p)
{
    for (const std::string *s : { &p.smiles, &p.inchikey, &p.formula, &p.removed, &p.alerts, &p.geometry, &p.built_from })
        out.str(*s);
    for (int32_t n :
         { p.n_heavy, p.charge, p.charge_read, p.n_neutralised, p.undefined_stereo, p.lost_stereo, p.lacking, p.present })
        out.put(n);
    for (double x : p.descriptor)
        out.put(x);
    out.put(p.energy);
    out.s += p.mol.empty() ? std::string(12, '\0') : p.mol;
    out.s += p.stereo.empty() ? std::string(12, '\0') : p.stereo;
}

static PrepareOpts get_opts(In &in)
{
    PrepareOpts o;
    for (int32_t *x : { &o.largest_fragment, &o.max_heavy, &o.max_atoms, &o.conformer, &o.force_field, &o.steps, &o.neutralise,
                        &o.n_structures, &o.one_drawing, &o.builder })
        *x = in.get<int32_t>();
    o.seed = in.get<uint64_t>();
    o.ph = in.get<double>();
    o.window = in.get<double>();
    o.structure_s = in.get<double>();
    return o;
}

static void op_prepare(In &in, Out &out, Failure &why)
{
    const PrepareOpts o = get_opts(in);
    const std::string rules = in.str(), format = in.str(), text = in.str();
    Prepared p;
    try {
        prepare(p, text, format, rules, o);
    } catch (const Failure &f) {
        why = f; // the answer still has the values computed before the failure
        p.mol.clear();
        p.stereo.clear();
    }
    put_prepared(out, p);
}

static void op_build(In &in, Out &out, Failure &)
{
    const PrepareOpts o = get_opts(in);
    const Placed placed = build_all(in.str(), o);
    out.str(placed.geometry);
    out.put(placed.energy);
    out.s += placed.mol;
    out.put<int32_t>(static_cast<int32_t>(placed.other.size()));
    for (const std::string &mol : placed.other)
        out.s += mol;
}

// ---- the other requests ---------------------------------------------------

// Tests that readers of formats without bonds call the functions in worker_bonds.cpp, not Open Babel's, which assign no charges.
static void check_readers()
{
    Prepared p;
    PrepareOpts o;
    o.conformer = CH_3D_NONE;
    prepare(p, "5\ncharge=1\nN 0 0 0\nH .6 .6 .6\nH -.6 -.6 .6\nH -.6 .6 -.6\nH .6 -.6 -.6\n", "xyz", "", o);
    if (p.smiles != "[NH4+]")
        fail(CH_INTERNAL, "the chemistry library finds bonds by itself: ammonium gave '" + p.smiles + "'; link it dynamically");
}

// How Open Babel built the structure.
static std::string builder_of(const std::string &smiles, const PrepareOpts &o)
{
    try {
        return build_all(smiles, o).geometry;
    } catch (const Failure &) {
        fail(CH_INTERNAL, "Open Babel builds no structure of benzoic acid, so its tables are missing; set BABEL_DATADIR to their "
                          "folder, or unset it");
    }
}

static void test_library(Out &out, bool builds)
{
    const PrepareOpts o;
    Prepared p;
    std::vector<std::string> formats;
    prepare(p, "OC(=O)c1ccccc1.[Na+]", "smi", "", o);
    const std::string geometry = builds ? builder_of(p.smiles, o) : "mmff94";
    if (p.inchikey != "WPYMKLBDIGXBTP-UHFFFAOYSA-N" || p.removed != "[Na+]" || geometry != "mmff94")
        fail(CH_INTERNAL,
             "the chemistry library is not complete: benzoic acid gave '" + p.inchikey + "', geometry '" + geometry + "'");
    check_readers();
    OBPlugin::ListAsVector("formats", "read", formats);
    out.str(BABEL_VERSION);
    out.put<int32_t>(static_cast<int32_t>(formats.size()));
    out.put<int32_t>(confined);
}

static void op_hello(In &, Out &out, Failure &) { test_library(out, true); }
static void op_ready(In &, Out &out, Failure &) { test_library(out, false); }

static void op_reads(In &in, Out &out, Failure &)
{
    OBFormat *f = OBConversion::FindFormat(in.str().c_str());
    out.put<int32_t>(f != nullptr && (f->Flags() & NOTREADABLE) == 0);
}

static void op_rules(In &in, Out &out, Failure &)
{
    const std::vector<BadRule> bad = rules_check(in.str());
    out.put<int32_t>(static_cast<int32_t>(bad.size()));
    for (const BadRule &b : bad) {
        out.put(b.rule);
        out.put(b.column);
    }
}

static void op_match(In &in, Out &out, Failure &)
{
    const std::string smarts = in.str();
    const int32_t n = in.get<int32_t>(), column = smarts_check(smarts);
    out.put(column);
    out.put<int32_t>(column == 0 ? n : 0);
    for (int32_t i = 0; i < n && column == 0; i++)
        out.put(smarts_match(smarts, in.str()));
}

// Whether only blanks are left; restores the position of the stream.
static bool only_blanks_left(std::istream &text)
{
    const std::streampos at = text.tellg();
    text >> std::ws;
    const bool end = text.eof();
    text.clear();
    text.seekg(at);
    return end;
}

// Why the list may be incomplete; "" if Open Babel reached the end of the text.
static std::string why_short(std::istream &text, size_t n, unsigned errors_before)
{
    text.clear();
    if (only_blanks_left(text) && obErrorLog.GetErrorMessageCount() == errors_before)
        return "";
    return "what follows molecule " + number(static_cast<long>(n)) +
           " could not be read, and may be more than one: " + (library_said().empty() ? "no reason given" : library_said());
}

static std::string listed(OBMol &mol)
{
    if (mol.IsReaction())
        return mol_write(mol, "rxn"); // begins with $RXN, so that it is not read as a molecule
    const bool digits = mol.GetDimension() == 3 && !fits_columns(mol);
    const std::string molfile = without_date(mol_write(mol, "mol", digits || mol.NumAtoms() > 999 ? "3" : ""), "mol");
    return digits ? with_all_digits(molfile, mol) : molfile;
}

namespace {
struct Listed {
    std::string text, problem;
};
} // namespace

// Readers of molfiles add hydrogens to a radical.
static bool reads_back(const std::string &molfile)
{
    OBMol again;
    mol_read(again, molfile, "sdf");
    return all_hydrogens_there(again);
}

// Records that lack bonds fail one by one, with a reason each.
static Listed listed_or_why(OBMol &mol, const std::string &format)
{
    try {
        const bool ours = bonds_complete(mol, "", format);
        const std::string text = listed(mol);
        if (ours && !reads_back(text))
            fail(CH_VALENCE, "a radical, which only xyz records may have (charge=0 in the comment)");
        return { text, "" };
    } catch (const Failure &f) {
        return { std::string(mol.GetTitle()) + "\n", f.text };
    }
}

// What Open Babel does not say of the molecules of a file.
static void add_problems(std::vector<Listed> &found, const std::vector<std::string> &problems)
{
    for (size_t i = 0; i < problems.size(); i++) {
        if (problems[i].empty())
            continue;
        if (problems.size() != found.size())
            fail(CH_PARSE, "molecule " + number(static_cast<long>(i) + 1) + ": " + problems[i]);
        if (found[i].problem.empty())
            found[i] = { found[i].text.substr(0, found[i].text.find('\n')) + "\n", problems[i] };
    }
}

static void op_list(In &in, Out &out, Failure &why)
{
    const std::string format = in.str(), whole = in.str();
    std::istringstream text(whole);
    OBConversion conv(&text);
    std::vector<Listed> found;
    if (!conv.SetInFormat(format.c_str()))
        fail(CH_FORMAT, "no reader for format " + format);
    text_check(whole, format);
    for (bool more = true; more && text.good();) { // a reader may have read the whole text and still return molecules
        const bool at_end = only_blanks_left(text);
        const unsigned errors = obErrorLog.GetErrorMessageCount();
        OBMol mol;
        bonds_begin();
        more = conv.Read(&mol);
        if (more && (mol.NumAtoms() > 0 || mol.NumBonds() > 0 || text.good()))
            found.push_back(listed_or_why(mol, format));
        if (!more && !at_end)
            why.text = why_short(text, found.size(), errors);
        if (found.size() >= static_cast<size_t>(list_max))
            fail(CH_TOO_LARGE, "more than " + number(list_max) + " molecules in one file");
    }
    if (format == "cml")
        add_problems(found, cml_problems(whole));
    if (found.empty())
        fail(CH_PARSE, library_said().empty() ? "no molecule could be read as " + format : library_said());
    out.put<int32_t>(static_cast<int32_t>(found.size()));
    for (const Listed &l : found) {
        out.str(l.text);
        out.str(l.problem);
    }
}

// Partial charges of Gasteiger and Marsili, of all atoms: the writer of pdbqt adds those of hydrogens that it leaves out to their neighbours.
static void charge_atoms(OBMol &mol)
{
    OBChargeModel *model = static_cast<OBChargeModel *>(OBPlugin::GetPlugin("charges", "gasteiger"));
    if (model == nullptr)
        fail(CH_INTERNAL, "Open Babel has no partial charges of Gasteiger; its plug-ins are not complete");
    if (!model->ComputeCharges(mol))
        fail(CH_INTERNAL, "no partial charges (Gasteiger) for this molecule");
}

static void op_write(In &in, Out &out, Failure &)
{
    std::string to = in.str(), title = in.str();
    int32_t n = in.get<int32_t>(), m = in.get<int32_t>(), has = in.get<int32_t>();
    const bool has_xyz = (has & CH_HAS_XYZ) != 0;
    OBMol mol;
    if (n < 0 || n > 1 << 20 || m < 0 || m > 1 << 21)
        throw Malformed();
    std::vector<unsigned char> z(static_cast<size_t>(n)), order(static_cast<size_t>(m));
    std::vector<signed char> q(z.size());
    std::vector<float> xyz(has_xyz ? 3 * z.size() : 0);
    std::vector<int32_t> bond(2 * order.size());
    std::vector<uint16_t> isotope((has & CH_HAS_ISOTOPE) != 0 ? z.size() : 0);
    in.take(z.data(), z.size());
    in.take(q.data(), q.size());
    in.take(xyz.data(), xyz.size() * sizeof(float));
    in.take(bond.data(), bond.size() * sizeof(int32_t));
    in.take(order.data(), order.size());
    in.take(isotope.data(), isotope.size() * sizeof(uint16_t));
    mol.BeginModify();
    for (size_t i = 0; i < z.size(); i++) {
        OBAtom *a = mol.NewAtom();
        a->SetAtomicNum(z[i]);
        a->SetFormalCharge(q[i]);
        a->SetIsotope(isotope.empty() ? 0 : isotope[i]);
        if (has_xyz)
            a->SetVector(xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]);
    }
    for (size_t i = 0; i < order.size(); i++) {
        int32_t a = bond[2 * i], b = bond[2 * i + 1];
        if (a < 0 || a >= n || b < 0 || b >= n || !mol.AddBond(a + 1, b + 1, ch_order_drawn(order[i])) || mol.NumBonds() != i + 1)
            throw Malformed(); // Open Babel ignores a duplicate bond and still reports success
    }
    mol.EndModify();
    mol.SetDimension(has_xyz ? 3 : 0);
    mol.SetTitle(title);
    if (to == "pdbqt")
        charge_atoms(mol);
    out.str(without_date(mol_write(mol, to.c_str()), to));
}

static void op_svg(In &in, Out &out, Failure &)
{
    const Picture p = picture_of(in.str());
    out.str(p.svg);
    out.str(p.molfile);
    out.put<int32_t>(p.overlaps);
}

// ---- the loop -------------------------------------------------------------

typedef void handler(In &, Out &, Failure &);

static handler *const handlers[] = { nullptr, op_hello, op_reads, op_prepare, op_list,  op_write,
                                     op_svg,  op_build, nullptr,  op_rules,   op_match, op_ready };

double cpu_now()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec) + cpu_built();
}

static double cpu_end; // of this request; 0: none

double cpu_left() { return cpu_end > 0 ? std::max(0.001, cpu_end - cpu_now()) : 0; }

void cpu_limit(double seconds)
{
    itimerval t = {};
    t.it_value.tv_sec = static_cast<time_t>(seconds);
    t.it_value.tv_usec = static_cast<suseconds_t>((seconds - std::floor(seconds)) * 1e6);
    cpu_end = seconds > 0 ? cpu_now() + seconds : 0;
    setitimer(ITIMER_PROF, &t, nullptr); // its signal ends this process; nothing can block that
}

// Throws nothing. After CH_MEMORY and CH_INTERNAL the client replaces this process: its state may be corrupt.
static void answer(const std::string &request, Out &reply)
{
    Failure why = { CH_OK, "", 0 };
    Out body;
    try {
        In in(request);
        uint32_t op = in.get<uint32_t>();
        if (op >= sizeof handlers / sizeof handlers[0] || handlers[op] == nullptr)
            throw Malformed();
        cpu_limit(in.get<double>());
        restart_chance(0);
        handlers[op](in, body, why);
    } catch (const Failure &f) {
        why = f;
    } catch (const std::bad_alloc &) {
        why = { CH_MEMORY, "more memory than allowed", 0 };
    } catch (const std::exception &e) {
        why = { CH_INTERNAL, std::string("exception: ") + e.what(), 0 };
    } catch (...) {
        why = { CH_INTERNAL, "unknown exception", 0 };
    }
    cpu_limit(0);
    reply.put<uint32_t>(why.status);
    reply.put<int32_t>(why.signal);
    reply.put<double>(cpu_now());
    reply.str(why.text);
    reply.s += body.s;
}

// An exit status, or 0.
static int start_library()
{
    static std::ostringstream nowhere;
    nowhere.setstate(std::ios::badbit); // print nothing; messages stay in Open Babel's log
    obErrorLog.SetOutputStream(&nowhere);
    obErrorLog.SetOutputLevel(obWarning);
    return builder_start(&confined);
}

} // namespace worker

using namespace worker;

// molsieve-chem [bytes of address space]
int main(int argc, char **argv)
{
    int in, out;
    const rlimit no_core = { 0, 0 };
    const rlim_t bytes = argc > 1 ? strtoull(argv[1], nullptr, 10) : 0;
    const rlimit memory = { bytes, bytes };
    bool written;

    close_others();
    setrlimit(RLIMIT_CORE, &no_core);
    if (bytes > 0 && !sanitized)
        setrlimit(RLIMIT_AS, &memory);
    int failed = take_streams(&in, &out);
    if (failed != 0)
        return failed;
    name_own_library();
    Requests requests(in);
    if (!answer_version(requests, out))
        return 1;
    failed = start_library();
    if (failed != 0)
        return failed;
    watch_parent();
    do {
        Out reply, framed;
        std::string request;
        if (!requests.finish(request))
            break;
        obErrorLog.ClearLog();
        answer(request, reply);
        framed.put<uint32_t>(static_cast<uint32_t>(reply.s.size()));
        framed.s += reply.s;
        written = write_all(out, framed.s.data(), framed.s.size());
    } while (written && requests.begin());
    return 0;
}
