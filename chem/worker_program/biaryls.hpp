// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/biaryls.hpp - bonds of biaryls that cannot turn, whose two forms (atropisomers) neither SMILES nor InChIKey has.
#ifndef CHEM_WORKER_PROGRAM_BIARYLS_HPP
#define CHEM_WORKER_PROGRAM_BIARYLS_HPP

#include "chem/worker_program/worker.hpp"

namespace worker {

int open_biaryls(OpenBabel::OBMol &mol, const Marks &known); // those with two forms that are not among the axes of `known`

// The words of Kept::text about axes, of a record with positions or wedges.
std::string axes_text(OpenBabel::OBMol &record, const std::string &smiles, const Marks &m);

} // namespace worker

#endif
