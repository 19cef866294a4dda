// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_plan.cpp - what molsieve's own builder needs of a molecule: atoms, bonds and the stereo that is defined.
//
// The plan is of the canonical SMILES and the stereo kept beside it (worker_marks.cpp), so it does not depend on the order in which the
// input has the atoms.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cmath>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/obiter.h>

using namespace OpenBabel;

namespace worker {

static void heavy_atoms_first(OBMol &mol)
{
    std::vector<int> order;
    for (const bool hydrogen : { false, true })
        FOR_ATOMS_OF_MOL(a, mol)
            if ((a->GetAtomicNum() == 1) == hydrogen)
                order.push_back(static_cast<int>(a->GetIdx()));
    for (size_t i = 0; i < order.size(); i++)
        if (order[i] != static_cast<int>(i + 1)) {
            mol.RenumberAtoms(order);
            return;
        }
}

static int32_t index_of(OBMol &mol, unsigned long id)
{
    const OBAtom *a = id == OBStereo::ImplicitRef ? nullptr : mol.GetAtomById(id);
    return a == nullptr ? -1 : static_cast<int32_t>(a->GetIdx()) - 1;
}

// Open Babel lists three neighbours clockwise, seen from the fourth. A lone pair is the centre itself, and last. out: atom, neighbours, sign.
static bool centre_of(int32_t out[6], OBMol &mol, const OBTetrahedralStereo::Config &c)
{
    int32_t sign = -1, atom = index_of(mol, c.center);
    std::vector<int32_t> neighbour = { index_of(mol, c.from) };
    for (const unsigned long id : c.refs)
        neighbour.push_back(index_of(mol, id));
    if (atom < 0 || neighbour.size() != 4)
        return false;
    for (size_t i = 0; i < 3; i++)
        if (neighbour[i] < 0) {
            std::swap(neighbour[i], neighbour[3]);
            sign = -sign;
        }
    if (neighbour[0] < 0 || neighbour[1] < 0 || neighbour[2] < 0)
        return false;
    if (neighbour[3] < 0)
        neighbour[3] = atom;
    out[0] = atom;
    std::copy(neighbour.begin(), neighbour.end(), out + 1);
    out[5] = sign;
    return true;
}

// In Open Babel's U shape, neighbours 0 and 1 are on one atom, 2 and 3 on the other, and 0 and 3 are cis. out: a, b, c, d, cis.
static bool double_bond_of(int32_t out[5], OBMol &mol, const OBCisTransStereo::Config &c)
{
    if (c.refs.size() != 4)
        return false;
    const int32_t at[] = { index_of(mol, c.refs[0]), index_of(mol, c.refs[1]), index_of(mol, c.refs[2]), index_of(mol, c.refs[3]) };
    const bool second = at[0] < 0, third = at[3] < 0;
    const int32_t all[] = { at[second ? 1 : 0], index_of(mol, c.begin), index_of(mol, c.end), at[third ? 2 : 3], second == third };
    std::copy(all, all + 5, out);
    return *std::min_element(all, all + 4) >= 0;
}

// more: axes and planes, which the molecule itself does not know.
static std::string stereo_of(OBMol &mol, const Marks &more)
{
    Out centres, bonds, out;
    int32_t n_centres = 0, n_bonds = 0, x[6];
    Marks m = marks_of(mol);
    m.bonds.insert(m.bonds.end(), more.planes.begin(), more.planes.end());
    for (const auto &c : m.centres)
        if (centre_of(x, mol, c)) {
            centres.raw(x, 6 * sizeof *x);
            n_centres++;
        }
    for (const auto &c : m.bonds)
        if (double_bond_of(x, mol, c)) {
            bonds.raw(x, 5 * sizeof *x);
            n_bonds++;
        }
    out.put(n_centres);
    out.put(n_bonds);
    out.put(static_cast<int32_t>(more.axes.size()));
    for (const Axis &a : more.axes)
        for (const unsigned long id : a.at)
            bonds.put(index_of(mol, id));
    return out.s + centres.s + bonds.s;
}

void read_with_hydrogens(OBMol &mol, const std::string &smiles)
{
    mol_read(mol, smiles, "smi");
    const bool aromatic = mol.HasAromaticPerceived();
    mol.AddHydrogens(false, false);
    mol.SetAromaticPerceived(aromatic);
}

Plan plan_of(OBMol &mol, const std::string &kept)
{
    const Marks more = marks_read(mol, kept);
    marks_put(mol, more);
    heavy_atoms_first(mol);
    return { mol_pack(mol, false), stereo_of(mol, more) };
}

bool positions_have(OBMol &mol, const Marks &m)
{
    int32_t x[6];
    const auto at = [&](int32_t i) { return mol.GetAtom(i + 1)->GetVector(); };
    for (const auto &c : m.centres)
        if (centre_of(x, mol, c) && !(dot(at(x[1]) - at(x[4]), cross(at(x[2]) - at(x[4]), at(x[3]) - at(x[4]))) * x[5] > 0))
            return false;
    for (const auto &list : { m.bonds, m.planes })
        for (const auto &c : list)
            if (double_bond_of(x, mol, c) &&
                (std::fabs(mol.GetTorsion(x[0] + 1, x[1] + 1, x[2] + 1, x[3] + 1)) < 90) != (x[4] != 0))
                return false;
    for (const Axis &a : m.axes) {
        const auto by_id = [&](unsigned long id) { return mol.GetAtomById(id)->GetVector(); };
        const vector3 o = by_id(a.at[3]);
        if (!(dot(by_id(a.at[0]) - o, cross(by_id(a.at[1]) - o, by_id(a.at[2]) - o)) > 0))
            return false;
    }
    return true;
}

} // namespace worker
