/* chem/structures/rotors.h - which torsions the single bonds of a molecule prefer, from its own force field.
 *
 * Distance geometry alone gives torsions that are far from a minimum of the bond, and relaxing then ends in a neighbouring one
 * that is not the best. For each single bond outside rings the energy of its torsions and of the atoms three bonds apart is
 * computed at ideal lengths and angles; a torsion is drawn from its Boltzmann distribution. Degrees, Angstrom, kcal/mol. */
#ifndef CH_ROTORS_H
#define CH_ROTORS_H

#include "chem/structures/ideal.h"
#include "chem/structures/stereo.h"
#include "pipeline/base/rng.h"

enum { CH_ROTOR_ANGLES = 13 }; /* 0 to 180 degrees */

typedef struct ch_rotor {
    int32_t atom[4];
    float distance[CH_ROTOR_ANGLES]; /* between atom[0] and atom[3] */
    double energy[CH_ROTOR_ANGLES];  /* the lower one of both signs of the angle, above the lowest of all */
} ch_rotor;

typedef struct ch_rotors {
    int32_t n;
    ch_rotor *rotor; /* [n] */
} ch_rotors;

/* `turns[b]` says which bonds take part. terms->pairs must be sorted. ENOMEM. */
pl_code ch_rotors_make(ch_rotors *out, const ch_ideal *ideal, const ch_terms *terms, const ch_stereo *stereo, const bool *turns,
                       pl_arena *mem, pl_error *err);

/* Draws an angle; returns the distance that belongs to it. heat: kcal/mol, the energy that is lost e times as rarely. */
float ch_rotor_draw(const ch_rotor *r, double heat, pl_rng *random);

/* Between the ends of a chain of four atoms at a torsion. */
double ch_ideal_distance(const ch_ideal *x, const int32_t *atoms, double degrees);

#endif
