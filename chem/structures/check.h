/* chem/structures/check.h - whether a finished structure is the molecule that was asked for.
 *
 * Everything is read from the positions: nothing that embedding or relaxing believed is taken over. Angstrom, degrees. Nothing
 * is allocated. */
#ifndef CH_CHECK_H
#define CH_CHECK_H

#include "chem/structures/cycles.h"
#include "chem/structures/stereo.h"
#include "chem/structures/terms.h"

/* What is wrong; the order is that of the checks. */
enum ch_fault {
    CH_NO_FAULT,
    CH_NOT_FINITE_POSITION,
    CH_BOND_LENGTH,  /* more than 0.3 from the ideal length */
    CH_CLASH,        /* atoms three and more bonds apart, closer than half of R* */
    CH_CENTRE,       /* a tetrahedral centre has the other sign, or is flat */
    CH_AXIS,         /* the four neighbours of an axis have the other sign */
    CH_NOT_WITHIN,   /* an atom lies outside the tetrahedron of its four neighbours; not tested in two rings of 3 or 4 */
    CH_DOUBLE_BOND,  /* cis and trans are exchanged, or the bond is turned by more than 50 degrees */
    CH_NOT_FLAT,     /* an atom of a flat ring (cycles.h) is more than 0.35 from its plane */
    CH_THROUGH_RING, /* a bond passes through a ring of 3 to CH_MAX_LARGE atoms (cycles.h): larger ones can be threaded */
    CH_N_FAULTS
};

typedef struct ch_checked {
    enum ch_fault fault; /* the first one found */
    int32_t a, b;        /* atoms that have it; -1: none */
    double value;        /* the length, the distance, the volume, the angle, the height; 0 for a ring */
} ch_checked;

ch_checked ch_check(const float (*xyz)[3], const ch_cycles *cycles, const ch_terms *terms, const ch_stereo *stereo);

/* Only the last check: bonds that pass through rings. */
ch_checked ch_check_rings(const float (*xyz)[3], const ch_cycles *cycles);

/* The signed volume of a centre (stereo.h), cubic Angstrom. */
double ch_centre_volume(const float (*xyz)[3], const ch_centre *c);

/* The torsion a-b-c-d, -180 to 180 degrees. */
double ch_torsion_angle(const float (*xyz)[3], int32_t a, int32_t b, int32_t c, int32_t d);

/* In plain words, without a full stop: "a bond passes through a ring". */
const char *ch_fault_text(enum ch_fault fault);

#endif
