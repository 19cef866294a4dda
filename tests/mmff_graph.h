/* tests/mmff_graph.h - molecular graphs made from any bytes: typing must accept them, or refuse them with a reason. */
#ifndef MMFF_GRAPH_H
#define MMFF_GRAPH_H

#include "chem/structures/mmff.h"

enum { GRAPH_MAX_ATOMS = 500 };

/* Two bytes a step: a new atom with a bond to an earlier one, a bond that closes a ring, or a charge. Then hydrogens fill what is
 * missing to the usual valences, so that many graphs are molecules. Positions are on a spiral. Aborts when memory is refused. */
ch_mol graph_molecule(const uint8_t *bytes, size_t n, pl_arena *mem);

/* Aborts unless terms are made that keep every promise of terms.h, or the molecule is refused with a reason. Returns whether it was typed. */
bool graph_check(const ch_mol *mol, const ch_mmff *mmff, pl_arena *mem);

#endif
