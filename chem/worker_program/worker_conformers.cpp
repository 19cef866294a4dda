// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_conformers.cpp - several conformers of one molecule.
//
// For each conformer, undefined stereo is chosen at random, the molecule is built, and its rotatable bonds are rotated
// by random angles. Then the force field minimises the energy.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/generic.h>
#include <openbabel/graphsym.h>
#include <openbabel/obiter.h>
#include <openbabel/ring.h>
#include <openbabel/stereo/cistrans.h>
#include <openbabel/stereo/stereo.h>
#include <openbabel/stereo/tetrahedral.h>

using namespace OpenBabel;

namespace worker {

static const double alike = 0.25;                                  // Angstrom
static const double turn = 2 * 3.14159265358979323846 / (1 << 24); // radians: a full rotation is 2^24 of these

// P and S of acids are not stereocentres: the hydrogen moves between their oxygens.
static bool is_acid(OBAtom &a)
{
    int ends = 0;
    FOR_NBORS_OF_ATOM(b, a)
        ends += (b->GetAtomicNum() == 8 || b->GetAtomicNum() == 16) && b->GetHvyDegree() == 1;
    return (a.GetAtomicNum() == 15 || a.GetAtomicNum() == 16) && ends > 1;
}

// Rings of up to seven atoms have no trans double bond.
static bool is_in_small_ring(OBMol &mol, OBBond &b)
{
    for (OBRing *r : mol.GetSSSR())
        if (r->Size() < 8 && r->IsMember(&b))
            return true;
    return false;
}

// The symmetry classes that the writer of canonical SMILES left with the molecule. Empty: it has hydrogens or several parts, which
// that writer treats apart.
static std::vector<unsigned> known_classes(OBMol &mol)
{
    std::vector<unsigned> classes;
    const OBPairData *kept = dynamic_cast<OBPairData *>(mol.GetData("OpenBabel Symmetry Classes"));
    std::istringstream text(kept != nullptr ? kept->GetValue() : "");
    for (unsigned c; text >> c;)
        classes.push_back(c);
    if (classes.size() != mol.NumAtoms() || std::count(classes.begin(), classes.end(), OBGraphSym::NoSymmetryClass) > 0)
        classes.clear();
    return classes;
}

// A wavy bond says that nothing is.
static bool is_defined(const OBTetrahedralStereo::Config &c) { return c.specified && !is_wavy(c); }

// The stereocentres and double bonds whose stereo is undefined.
static std::vector<OBStereoUnit> open_units(OBMol &mol, std::vector<unsigned> classes = {})
{
    std::vector<OBStereoUnit> open;
    if (classes.empty())
        OBGraphSym(&mol).GetSymmetry(classes);
    const OBStereoUnitSet units = FindStereogenicUnits(&mol, classes);
    OBStereoFacade stereo(&mol);
    for (const OBStereoUnit &u : units) {
        const bool said = u.type == OBStereo::Tetrahedral
                              ? stereo.HasTetrahedralStereo(u.id) && is_defined(stereo.GetTetrahedralStereo(u.id)->GetConfig())
                              : stereo.HasCisTransStereo(u.id) && stereo.GetCisTransStereo(u.id)->GetConfig().specified;
        const bool real = u.type == OBStereo::Tetrahedral
                              ? !is_acid(*mol.GetAtomById(u.id))
                              : u.type == OBStereo::CisTrans && !is_in_small_ring(mol, *mol.GetBondById(u.id));
        if (!said && real)
            open.push_back(u);
    }
    return open;
}

int undefined_stereo(const OBMol &mol)
{
    OBMol copy = mol; // a copy, because stereo perception changes flags that matter later
    return static_cast<int>(open_units(copy).size());
}

int undefined_stereo_written(OBMol &mol) { return static_cast<int>(open_units(mol, known_classes(mol)).size()); }

// The neighbours of `a` except one; an implicit hydrogen comes last.
static OBStereo::Refs around(OBAtom &a, unsigned long but, size_t n)
{
    OBStereo::Refs refs;
    FOR_NBORS_OF_ATOM(b, a)
        if (b->GetId() != but)
            refs.push_back(b->GetId());
    if (refs.size() + 1 == n)
        refs.push_back(OBStereo::ImplicitRef);
    return refs;
}

static void define_centre(OBMol &mol, OBAtom &a, bool clockwise)
{
    OBStereo::Refs refs = around(a, OBStereo::NoRef, 4);
    if (refs.size() != 4)
        return;
    const unsigned long from = refs.front();
    refs.erase(refs.begin());
    OBTetrahedralStereo *stereo = new OBTetrahedralStereo(&mol); // owned by the molecule from here on
    mol.SetData(stereo);
    stereo->SetConfig({ a.GetId(), from, refs, clockwise ? OBStereo::Clockwise : OBStereo::AntiClockwise });
}

static void define_bond(OBMol &mol, OBBond &b, bool crossed)
{
    OBAtom *begin = b.GetBeginAtom(), *end = b.GetEndAtom();
    OBStereo::Refs refs = around(*begin, end->GetId(), 2), others = around(*end, begin->GetId(), 2);
    if (refs.size() != 2 || others.size() != 2)
        return;
    refs.push_back(others[crossed]);
    refs.push_back(others[!crossed]);
    OBCisTransStereo *stereo = new OBCisTransStereo(&mol);
    mol.SetData(stereo);
    stereo->SetConfig({ begin->GetId(), end->GetId(), refs });
}

// Excludes atoms where rings meet: most of their arrangements cannot be built, and Open Babel tries for hours.
void define_stereo(OBMol &mol, uint64_t state)
{
    for (const OBStereoUnit &u : open_units(mol)) {
        const bool one = chance(state) & 1 << 23;
        if (u.type == OBStereo::CisTrans && !mol.GetBondById(u.id)->IsInRing())
            define_bond(mol, *mol.GetBondById(u.id), one);
        else if (u.type == OBStereo::Tetrahedral && mol.GetAtomById(u.id)->CountRingBonds() <= 2)
            define_centre(mol, *mol.GetAtomById(u.id), one);
    }
}

static bool is_hetero(const OBAtom &a) { return a.GetAtomicNum() == 7 || a.GetAtomicNum() == 8 || a.GetAtomicNum() == 16; }

// C of C=O, C=N or C=S beside N, O or S: amides, esters, amidines and similar groups keep their built geometry.
static bool is_conjugated(OBAtom &c, const OBAtom &other)
{
    if (c.GetAtomicNum() != 6 || !is_hetero(other))
        return false;
    FOR_BONDS_OF_ATOM(b, c)
        if (b->GetBondOrder() == 2 && is_hetero(*b->GetNbrAtom(&c)))
            return true;
    return false;
}

static bool turns(OBBond &b)
{
    return b.IsRotor(false) && !is_conjugated(*b.GetBeginAtom(), *b.GetEndAtom()) &&
           !is_conjugated(*b.GetEndAtom(), *b.GetBeginAtom());
}

static OBAtom *neighbour(OBAtom &of, const OBAtom &but)
{
    FOR_NBORS_OF_ATOM(a, of)
        if (a->GetIdx() != but.GetIdx())
            return &*a;
    return nullptr;
}

void turn_all(OBMol &mol, uint64_t state)
{
    FOR_BONDS_OF_MOL(b, mol) {
        if (!turns(*b))
            continue;
        OBAtom *from = b->GetBeginAtom(), *to = b->GetEndAtom();
        OBAtom *before = neighbour(*from, *to), *after = neighbour(*to, *from);
        if (before != nullptr && after != nullptr)
            mol.SetTorsion(before, from, to, after, turn * static_cast<double>(chance(state)));
    }
}

// Whether the molecule can have more than one conformer.
static bool has_several(const std::string &smiles)
{
    OBMol mol;
    mol_read(mol, smiles, "smi");
    FOR_BONDS_OF_MOL(b, mol)
        if (turns(*b))
            return true;
    return undefined_stereo(mol) > 0;
}

namespace {
struct Structure {
    double energy; // kcal/mol
    std::string mol;
    std::vector<vector3> heavy; // positions of its heavy atoms
};
} // namespace

static Structure structure_of(const Placed &p)
{
    Structure s = { p.energy, p.mol, {} };
    In in(p.mol);
    std::string z(static_cast<size_t>(in.get<int32_t>()), '\0'), charge = z;
    (void)in.get<int32_t>(); // bonds
    (void)in.get<int32_t>(); // CH_HAS_...: positions
    in.take(&z[0], z.size());
    in.take(&charge[0], charge.size());
    for (const char element : z) {
        const float x = in.get<float>(), y = in.get<float>(), w = in.get<float>();
        if (element != 1)
            s.heavy.push_back(vector3(x, y, w));
    }
    return s;
}

// Root mean square difference of interatomic distances: independent of position, orientation and reflection.
static double difference(const std::vector<vector3> &a, const std::vector<vector3> &b)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < a.size(); i++)
        for (size_t j = 0; j < i; j++, n++) {
            const double d = std::sqrt(a[i].distSq(a[j])) - std::sqrt(b[i].distSq(b[j]));
            sum += d * d;
        }
    return n > 0 ? std::sqrt(sum / static_cast<double>(n)) : 0;
}

// Sorts by energy; removes conformers too far above the lowest, and those similar to one of lower energy.
static std::vector<Structure> distinct(std::vector<Structure> all, double window)
{
    std::vector<Structure> kept;
    std::stable_sort(all.begin(), all.end(), [](const Structure &a, const Structure &b) { return a.energy < b.energy; });
    for (Structure &s : all) {
        const bool known =
            std::any_of(kept.begin(), kept.end(), [&](const Structure &k) { return difference(k.heavy, s.heavy) < alike; });
        if (!known && !(s.energy > all.front().energy + window))
            kept.push_back(s);
    }
    return kept;
}

// A conformer that cannot be built, or exceeds its own time limit, is skipped. If the time of the whole request is used up, that is an error.
static void build_another(std::vector<Structure> &all, const Placed &first, const std::string &smiles, const PrepareOpts &o)
{
    const double left = cpu_left();
    const bool own = o.structure_s > 0 && (left <= 0 || left > o.structure_s);
    try {
        const Placed p = build_apart(smiles, o, false, own ? o.structure_s : left);
        if (p.geometry == first.geometry)
            all.push_back(structure_of(p));
    } catch (const Failure &f) {
        if (f.status == CH_MEMORY || (f.status == CH_TIMEOUT && !own))
            throw;
    }
}

Placed build_all(const std::string &smiles, const PrepareOpts &o)
{
    Placed p = build_apart(smiles, o, true, cpu_left());
    if (o.n_structures < 2 || !has_several(smiles))
        return p;
    std::vector<Structure> all = { structure_of(p) };
    PrepareOpts again = o;
    for (int32_t k = 1; k < o.n_structures; k++) {
        again.seed = again.seed * 0xd1342543de82ef95u + 1; // different random numbers for each try
        build_another(all, p, smiles, again);
    }
    all = distinct(all, o.window);
    p.energy = all.front().energy;
    p.mol = all.front().mol;
    for (size_t k = 1; k < all.size(); k++)
        p.other.push_back(all[k].mol);
    return p;
}

} // namespace worker
