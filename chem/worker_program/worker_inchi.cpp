// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_inchi.cpp - InChI that Open Babel reads as another molecule: without the hydrogens that no layer names,
// perchlorates and sulfonamides whose hydrogen is at one of several atoms, stereo of allenes.
#include "chem/worker_program/worker.hpp"

#include <sstream>

using namespace OpenBabel;

namespace worker {

// All but whether stereo is absolute, and what options add: hydrogens in one place, bonds to metals.
static std::string common_layers(const std::string &inchi)
{
    std::istringstream layers(inchi.substr(inchi.find('/') + 1));
    std::string kept, layer;
    for (size_t n = 0; std::getline(layers, layer, '/'); n++) {
        const char first = layer.empty() ? ' ' : layer[0];
        if (first == 'f' || first == 'r')
            break;
        if (n == 0 || first != 's')
            kept += "/" + layer;
    }
    return kept;
}

void inchi_read_check(OBMol &mol, const std::string &inchi)
{
    const bool standard = inchi.compare(0, 9, "InChI=1S/") == 0;
    OBMol copy = mol; // writing takes away marks
    const std::string read = first_word(mol_write(copy, "inchi", "r"));
    if (standard ? read != inchi : common_layers(read) != common_layers(inchi))
        fail(CH_PARSE, "the library reads this InChI as another molecule: " + read.substr(0, 100));
}

} // namespace worker
