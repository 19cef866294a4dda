/* chem/structures/types.h - numeric atom types and partial charges of MMFF94.
 *
 * The definitions are those of the symbols in paper I (tables of symbols, aromatic symbols, hydrogen symbols and shared formal
 * charges), written as code. An atom that no definition fits is refused with its number and the reason; so is a molecule whose
 * shared formal charges do not add up to its charge. */
#ifndef CH_TYPES_H
#define CH_TYPES_H

#include "chem/structures/parameters.h"
#include "chem/structures/perceive.h"

/* type[n_atoms], 1..99. */
pl_code ch_types_find(uint8_t *type, const ch_perceived *p, pl_arena *mem, pl_error *err);

/* shared[n_atoms]: formal charges after sharing, e.g. -1/2 for both oxygens of a carboxylate. */
pl_code ch_types_share_charges(double *shared, const uint8_t *type, const ch_perceived *p, pl_error *err);

/* Steps of ch_types_find: aromatic rings overwrite the types of their atoms; hydrogens go by the types of their neighbours. */
pl_code ch_types_aromatic(uint8_t *type, const ch_perceived *p, uint8_t *place, pl_error *err); /* place[n_atoms]: zeroed */
pl_code ch_types_hydrogens(uint8_t *type, const ch_perceived *p, pl_error *err);

/* How many nitrogens share the charge of an amidinium or guanidinium carbon: 2 or 3; 0: i is no such carbon. */
int ch_types_amidinium(const ch_perceived *p, int32_t i);

#endif
