/* chem/features/parts.h - the blocks of the table of descriptors, each with a file of its own. Internal to chem/features. */
#ifndef CH_FEATURE_PARTS_H
#define CH_FEATURE_PARTS_H

#include "chem/features/features.h"
#include "chem/features/rings.h"
#include "chem/features/shape.h"

/* Each fills its places of out[CH_N_FEATURES], which are zero before. */
void ch_features_basic(double *out, const ch_shape *s, const ch_rings *rings);
void ch_features_bonding(double *out, const ch_shape *s, const ch_rings *rings); /* donors, acceptors, rotors, tpsa, amides */
void ch_features_counts(double *out, const ch_shape *s, const ch_rings *rings);
pl_code ch_features_meetings(double *out, const ch_shape *s, const ch_rings *rings, pl_arena *mem, pl_error *err); /* of rings */
pl_code ch_features_stereo(double *out, const ch_shape *s, const ch_rings *rings, pl_arena *mem, pl_error *err);
pl_code ch_features_surface(double *out, const ch_shape *s, pl_arena *mem, pl_error *err);
pl_code ch_features_estate(double *out, const ch_shape *s, pl_arena *mem, pl_error *err);

/* Of all atoms: log P and molar refractivity in cm3/mol; polar surface of N and O in Angstrom^2. */
void ch_crippen_sums(double *log_p, double *refractivity, const ch_shape *s);
double ch_polar_surface(const ch_shape *s);

/* Gasteiger charges of heavy atoms, in mem; hydrogens keep their own. */
pl_code ch_charges_of(const double **out, const ch_shape *s, pl_arena *mem, pl_error *err);

#endif
