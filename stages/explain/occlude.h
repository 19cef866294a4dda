/* stages/explain/occlude.h - what each atom does for a network's prediction of a molecule.
 *
 * The part of an atom is the prediction minus the prediction of the same structure without the atom and its hydrogens: the other
 * atoms stay where they are, bonds to it are gone, and what the network reads of the whole molecule (columns, descriptors) stays.
 * The parts do not add up to the prediction: an atom also does what it does together with others, and what is left of a molecule is
 * no molecule that the network has seen. They do not depend on the order of the atoms. It takes one prediction for each heavy atom. */
#ifndef ST_OCCLUDE_H
#define ST_OCCLUDE_H

#include "models/family/family.h"
#include "models/files/model_file.h"
#include "stages/steps/train/compute.h"

typedef struct st_occlusion {
    int32_t n;           /* atoms of the structures */
    bool log_odds;       /* of class 1; else in the target's unit */
    const double *value; /* [outputs] what the network predicts of the molecule */
    const double *by;    /* [outputs][n] by atom; 0 for a hydrogen that is left out with its atom, or for an atom that is alone */
} st_occlusion;

/* Of the network of m: mol[n_structures] are the structures of a molecule with the same atoms; x: its row, with m's columns. In mem.
 * EINPUT: a structure has no positions, or an element that the network does not know. */
pl_code st_occlude(st_occlusion *out, const nn_model_file *m, const st_compute *how, const ch_mol *mol, int32_t n_structures,
                   const nn_table *x, pl_arena *mem, pl_error *err);

#endif
