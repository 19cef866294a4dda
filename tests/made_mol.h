/* tests/made_mol.h - random molecules, for tests and benchmarks of graphs. */
#ifndef MADE_MOL_H
#define MADE_MOL_H

#include "chem/molecule/mol.h"
#include "pipeline/base/rng.h"

/* n atoms of H, C, N, O, F in a cube that gives them `volume` cubic Angstrom each, no
 * two closer than 0.6; atom i is bonded to its nearest earlier atom. NULL arrays when refused. */
ch_mol made_mol(int32_t n, double volume, uint64_t seed, pl_arena *mem);

/* The same molecule with atom i renamed to[i]; bonds sorted again. */
ch_mol made_permuted(const ch_mol *mol, const int32_t *to, pl_arena *mem);

/* A random order of 0..n-1. */
int32_t *made_order(int32_t n, uint64_t seed, pl_arena *mem);

#endif
