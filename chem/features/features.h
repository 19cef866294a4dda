/* chem/features/features.h - what a molecule looks like in numbers that do not depend on a 3D structure: descriptors and the
 * counts of its circular environments (ECFP4). Models that are no networks learn from them (models/family/family.h).
 *
 * Everything is computed from a graph (chem/graph/graph.h) whose edges contain all bonds: elements, formal charges, bonds. Positions
 * and edges without a bond are not read. The numbers do not depend on the order of the atoms or on the Kekule structure drawn,
 * and equal molecules give equal bits. The table of descriptors is chem/features/feature_table.h, a line each; how they
 * compare with RDKit's: docs/DESCRIPTORS.md.
 *
 * CH_FEATURES_VERSION is in every model file: a model is refused where the program computes other numbers. Raise it with any change of a
 * number. */
#ifndef CH_FEATURES_H
#define CH_FEATURES_H

#include <stdint.h>

#include "chem/features/feature_table.h"
#include "chem/fingerprint/fingerprint.h"
#include "chem/graph/graph.h"

enum { CH_FEATURES_VERSION = 1 };

/* CH_F_mw, ...: places in an array of CH_N_FEATURES floats. */
#define CH_FEATURE_PLACE(name, ...) CH_F_##name,
enum { CH_FEATURES(CH_FEATURE_PLACE) CH_N_FEATURES };

typedef struct ch_feature {
    const char *name, *unit, *meaning; /* unit NULL: none */
} ch_feature;
extern const ch_feature ch_features[CH_N_FEATURES];

/* One circular environment and how often it occurs. */
typedef struct ch_environment {
    uint32_t id, count; /* id: the low 32 bits of its hash; its bit in the fingerprint is id % 2048 */
} ch_environment;

typedef struct ch_environments {
    int32_t n;
    ch_environment *at; /* [n] in ascending order of id, each id once */
} ch_environments;

/* All descriptors of a molecule; each is finite. mem is scratch memory. EINPUT: no atoms. ENOMEM. */
pl_code ch_features_of(float out[CH_N_FEATURES], const ch_graph *g, pl_arena *mem, pl_error *err);

/* log P and polar surface alone, with the values of ch_features_of, in a tenth of the time. mem is scratch memory. EINPUT: no atoms. ENOMEM. */
pl_code ch_polarity_of(double *logp, double *tpsa, const ch_graph *g, pl_arena *mem, pl_error *err);

/* The environments of radius 0 to 2 of all heavy atoms, before folding: those whose bits chem/fingerprint/fingerprint.h sets. An
 * environment counts once for every set of bonds that it has in the molecule; two environments with the same set of bonds (an atom
 * at a chain's end sees at radius 2 what its neighbour sees at radius 1) count once, by the smaller radius. Single atoms all
 * count. These are RDKit's counts: GetSparseCountFingerprint of a Morgan generator of radius 2 without redundant environments, its
 * default, has the same counts under other ids. out->at in mem; n is 0 without heavy atoms. ENOMEM. */
pl_code ch_environments_of(ch_environments *out, const ch_graph *g, pl_arena *mem, pl_error *err);

/* Counts folded to 2,048 places; a place is above 0 exactly where the fingerprint has a bit. */
void ch_environments_fold(uint32_t count[CH_FINGERPRINT_BITS], const ch_environments *all);

#endif
