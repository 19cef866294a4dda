/* chem/structures/kernels.h - inner loops of building structures, one set for each instruction set.
 *
 * Every set is the same C text, compiled for vectors of 4 (portable), 8 (avx2) or 16 floats (avx512), and chosen at run time.
 * The same set gives the same bits on every machine and for any number of threads; two sets differ in the last digits.
 * Positions and gradients are float, component by component: x[3][stride] (or x[4][stride]), where stride is the number of
 * atoms rounded up to a multiple of CH_LANES. Elements past the last atom must be 0 and stay 0. Energies and dot products
 * are summed in double. Arrays start at addresses that are multiples of 64 (ch_floats).
 * Units: Angstrom, kcal/mol. Nothing here allocates or keeps state, so threads may share everything that is const. */
#ifndef CH_KERNELS_H
#define CH_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"

enum { CH_LANES = 16 }; /* the widest vector of any set, in floats */

static inline int32_t ch_stride(int32_t n_atoms) { return (n_atoms + CH_LANES - 1) / CH_LANES * CH_LANES; }

/* n zeroed floats at a multiple of 64 bytes; NULL when memory is refused. */
float *ch_floats(pl_arena *mem, int64_t n);

/* ch_terms as a kernel reads them (energy_plan.h makes it). One vector of terms is W of them, where W is the width of the kernels;
 * lanes that only fill a vector repeat another term with all force constants 0. Force constants are in kcal/mol, Angstrom and
 * radians. An atom index here is 4 times the atom. */
typedef struct ch_energy_plan {
    int32_t n_atoms, stride, width;
    int32_t n_bonds, n_angles, n_planes, n_torsions; /* vectors of W terms */
    const int32_t *bond_atoms;                       /* [n_bonds][2][W] */
    const float *bond_params;                        /* [n_bonds][2][W]     k, r0 */
    const int32_t *angle_atoms;                      /* [n_angles][3][W]    the centre is the second */
    const float *angle_params;    /* [n_angles][8][W]    of bending, theta0 in radians, of linear, of stretch-bend ij and kj, r0 */
    const int32_t *plane_atoms;   /* [n_planes][4][W]    centre, three neighbours */
    const float *plane_params;    /* [n_planes][3][W]    for each neighbour leaving the plane of the others */
    const int32_t *torsion_atoms; /* [n_torsions][4][W] */
    const float *torsion_params;  /* [n_torsions][3][W]  v1, v2, v3 */
    const float *pairs;           /* atom i with W atoms from W * (i / W) on: [.][3][W]  1 / R*, epsilon, charges */
} ch_energy_plan;

enum { CH_ANGLE_PARAMS = 8 };

/* Four atoms whose signed volume (x1 - x4) . ((x2 - x4) x (x3 - x4)) must lie within [low, high], in cubic Angstrom. */
typedef struct ch_volume {
    int32_t atom[4];
    float low, high, weight;
} ch_volume;

/* What distance geometry minimises: squared violations of bounds, of volumes, and the fourth coordinate. */
typedef struct ch_distance_plan {
    int32_t n_atoms, stride, n_volumes;
    const float *bounds;      /* as pairs above, [.][2][W]: 1 / upper^2, lower^2; both 0: no bound */
    const ch_volume *volumes; /* [n_volumes] */
    float volume_weight, fourth_weight;
} ch_distance_plan;

/* A symmetric matrix of 3 x 3 blocks, only the part of the upper rows that is not 0 (precondition.h). */
typedef struct ch_block_matrix {
    int32_t n;              /* blocks of a side */
    const int32_t *last;    /* [n] the last block of a row; never decreases, last[i] >= i */
    const int64_t *row;     /* [3 n] element (i, j) is data[row[i] + j]; row[i] is a multiple of CH_LANES */
    float *data, *diagonal; /* diagonal: [n][6] of the factor */
} ch_block_matrix;

typedef struct ch_kernels {
    const char *name;
    int32_t width; /* W */

    /* The energy at x[3][stride]; overwrites g[3][stride]. scratch: 8 * stride floats. A position that is not finite gives an
     * energy that is not finite; atoms at one place and angles of 180 degrees give finite numbers. */
    double (*energy)(const ch_energy_plan *plan, const float *x, float *g, float *scratch);

    /* The error at x[4][stride]; overwrites g[4][stride]. */
    double (*distance)(const ch_distance_plan *plan, const float *x, float *g);

    /* Triangle inequality on upper[n][stride] and lower[n][stride], both symmetric with a diagonal of 0. */
    void (*smooth)(float *upper, float *lower, int32_t n, int32_t stride);

    double (*dot)(const float *a, const float *b, int32_t n);                           /* n a multiple of CH_LANES, as below */
    void (*add)(float *y, float s, const float *x, int32_t n);                          /* y += s x */
    void (*step)(float *y, const float *x, float s, const float *d, int32_t n);         /* y = x + s d */
    void (*times)(float *y, const float *m, const float *x, int32_t n, int32_t stride); /* y[4][stride] = m[n][stride] x */

    void (*factor)(const ch_block_matrix *m);          /* Cholesky in place */
    void (*solve)(const ch_block_matrix *m, float *b); /* b[3 n], rounded up to CH_LANES; after factor */
} ch_kernels;

extern const ch_kernels ch_kernels_portable;
#if defined(__x86_64__)
extern const ch_kernels ch_kernels_avx2, ch_kernels_avx512;
#endif

/* NULL: the best one. NULL is returned for a name that is unknown or that this processor cannot run. */
const ch_kernels *ch_kernels_find(const char *name);

/* The i-th set that this processor can run, best first; NULL past the last. */
const ch_kernels *ch_kernels_at(int i);

/* What MOLSIEVE_CPU asks for (`amx` means avx512 here), or the best one. NULL: this processor cannot run what it asks for. */
const ch_kernels *ch_kernels_choose(void);

#endif
