// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_plan.cpp - what molsieve's own builder needs of a molecule: atoms, bonds and the stereo that is defined.
//
// The plan is of the canonical SMILES alone, so it does not depend on the order in which the input has the atoms.
#include "chem/worker_program/worker.hpp"

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/obiter.h>
#include <openbabel/stereo/cistrans.h>
#include <openbabel/stereo/stereo.h>
#include <openbabel/stereo/tetrahedral.h>

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

// Open Babel lists three neighbours clockwise, seen from the fourth. A lone pair is the centre itself, and last.
static bool put_centre(Out &out, OBMol &mol, const OBTetrahedralStereo::Config &c)
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
    out.put(atom);
    for (const int32_t i : neighbour)
        out.put(i);
    out.put(sign);
    return true;
}

// In Open Babel's U shape, neighbours 0 and 1 are on one atom, 2 and 3 on the other, and 0 and 3 are cis.
static bool put_double_bond(Out &out, OBMol &mol, const OBCisTransStereo::Config &c)
{
    if (c.refs.size() != 4)
        return false;
    const int32_t at[] = { index_of(mol, c.refs[0]), index_of(mol, c.refs[1]), index_of(mol, c.refs[2]), index_of(mol, c.refs[3]) };
    const bool second = at[0] < 0, third = at[3] < 0;
    const int32_t a = at[second ? 1 : 0], d = at[third ? 2 : 3], b = index_of(mol, c.begin), e = index_of(mol, c.end);
    if (a < 0 || d < 0 || b < 0 || e < 0)
        return false;
    for (const int32_t i : { a, b, e, d, static_cast<int32_t>(second == third) })
        out.put(i);
    return true;
}

static std::string stereo_of(OBMol &mol)
{
    Out centres, bonds, out;
    int32_t n_centres = 0, n_bonds = 0;
    OBStereoFacade stereo(&mol);
    FOR_ATOMS_OF_MOL(a, mol)
        if (stereo.HasTetrahedralStereo(a->GetId())) {
            const auto c = stereo.GetTetrahedralStereo(a->GetId())->GetConfig();
            n_centres += c.specified && c.winding != OBStereo::UnknownWinding && put_centre(centres, mol, c);
        }
    FOR_BONDS_OF_MOL(b, mol)
        if (stereo.HasCisTransStereo(b->GetId())) {
            const auto c = stereo.GetCisTransStereo(b->GetId())->GetConfig();
            n_bonds += c.specified && put_double_bond(bonds, mol, c);
        }
    out.put(n_centres);
    out.put(n_bonds);
    return out.s + centres.s + bonds.s;
}

Plan plan_of(const std::string &smiles)
{
    OBMol mol;
    mol_read(mol, smiles, "smi");
    const bool aromatic = mol.HasAromaticPerceived();
    mol.AddHydrogens(false, false);
    mol.SetAromaticPerceived(aromatic);
    heavy_atoms_first(mol);
    return { mol_pack(mol, false), stereo_of(mol) };
}

} // namespace worker
