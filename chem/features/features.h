/* chem/features/features.h - what a molecule looks like in numbers that do not depend on a 3D structure: descriptors and the
 * counts of its circular environments (ECFP4). Models that are no networks learn from them (models/family/family.h).
 *
 * Everything is computed from a graph (chem/graph/graph.h) whose edges contain all bonds: elements, formal charges, bonds. Positions
 * and edges without a bond are not read. The numbers do not depend on the order of the atoms or on the Kekule structure drawn,
 * and equal molecules give equal bits. The table of descriptors is chem/features/feature_table.h, a line each.
 *
 * CH_FEATURES_VERSION is in every model file: a model is refused where the program computes other numbers. Raise it with any change of a
 * number. */
#ifndef CH_FEATURES_H
#define CH_FEATURES_H

#include <stdint.h>

#include "chem/features/feature_table.h"
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
    uint32_t id, count; /* id: its hash, before folding */
} ch_environment;

typedef struct ch_environments {
    int32_t n;
    ch_environment *at; /* [n] in ascending order of id, each id once */
} ch_environments;

/* All descriptors of a molecule; each is finite. mem is scratch memory. EINPUT: no atoms. ENOMEM. */
pl_code ch_features_of(float out[CH_N_FEATURES], const ch_graph *g, pl_arena *mem, pl_error *err);

/* The environments of radius 0 to 2 of all heavy atoms, before folding: those whose bits chem/fingerprint/fingerprint.h sets, here with
 * duplicate sets of bonds counted once, as there. out->at in mem. ENOMEM. */
pl_code ch_environments_of(ch_environments *out, const ch_graph *g, pl_arena *mem, pl_error *err);

#endif
