/* chem/structures/structure.h - structures of one molecule, from its bonds, its stereo and the terms of its force field.
 *
 * Each structure is embedded, relaxed and checked; an attempt that fails is followed by another with other random numbers. One
 * structure, or an ensemble: twice `count` are built, or fewer where `count` were left out, because they lie more than `window` above
 * the lowest energy or have the shape (shape.h: within 0.5 Angstrom) of one of lower energy. Of the rest the lowest is chosen, then
 * always the one that differs most from those chosen, until there are `count`.
 *
 * Deterministic: the result depends on the arguments alone (the stream of random numbers is named by seed, name, structure and
 * attempt), never on threads, order or time; limits count work, not seconds. Two sets of kernels give structures that differ
 * in the last digits, and rarely another minimum. Atoms in another order give another structure: number them canonically first.
 * Every call has its own arenas, so threads may build different molecules. Angstrom, kcal/mol. */
#ifndef CH_STRUCTURE_H
#define CH_STRUCTURE_H

#include "chem/molecule/mol.h"
#include "chem/structures/check.h"
#include "chem/structures/kernels.h"
#include "chem/structures/stereo.h"
#include "chem/structures/terms.h"

typedef struct ch_structure_options {
    uint64_t seed, name;       /* name: of the molecule, a hash of its canonical SMILES */
    int32_t count;             /* structures to return, at most; 0: 1 */
    int32_t attempts;          /* for each structure; 0: 20 */
    int32_t starts;            /* of each attempt: only the lowest after a few steps is relaxed further; 0: 2 for the
                                 * first structure, 1 for the others of an ensemble, which is more diverse then */
    int64_t max_work;          /* energies and embedding errors of the whole call, counted per atom; 0: no limit but the others */
    double window;             /* kcal/mol above the lowest; 0: all */
    double gradient;           /* see relax.h; 0: 0.01 */
    int32_t max_steps;         /* of one relaxation; 0: 2000 */
    const ch_kernels *kernels; /* NULL: ch_kernels_choose() */
    const struct ch_structure
        *given; /* [ch_structure_pool] the first structures, built by a GPU, that passed the checks; those without
                                         xyz are built here. Their positions are in `mem`. NULL: none */
} ch_structure_options;

typedef struct ch_structure {
    float (*xyz)[3]; /* [n_atoms] */
    double energy, gradient;
    int32_t steps, attempts; /* of the relaxation; tries that it took, 1 or more */
    bool converged;          /* the gradient is below the option's; a structure that is not is still checked */
} ch_structure;

/* Why attempts failed, for reports. */
typedef struct ch_structure_tries {
    int32_t attempts, far_from_bounds, wrong_chirality, fault[CH_N_FAULTS];
    ch_checked last; /* the last failed check */
} ch_structure_tries;

typedef struct ch_structures {
    int32_t n;         /* 1 to count */
    ch_structure *all; /* [n] lowest energy first */
    ch_structure_tries tries;
} ch_structures;

/* Results live in `mem`, work in `scratch`, which the caller may reset afterwards. EINPUT, with the reason: the molecule has
 * no atoms or several parts, stereo or terms do not fit it, or no attempt led to a structure. ECONFIG: this processor lacks
 * the kernels that MOLSIEVE_CPU names. ENOMEM. */
pl_code ch_structure_build(ch_structures *out, const ch_mol *mol, const ch_stereo *stereo, const ch_terms *terms,
                           const ch_structure_options *options, pl_arena *mem, pl_arena *scratch, pl_error *err);

/* Of attempt a of structure `which` of an ensemble: the purpose of its stream of random numbers, and its starts. Only the lowest
 * start after CH_FIRST_STEPS is relaxed further. */
enum { CH_FIRST_STEPS = 20 };
uint32_t ch_structure_purpose(int32_t which, int32_t attempt);
int32_t ch_structure_starts(const ch_structure_options *o, int32_t which);

/* Structures that are built, at most, to choose an ensemble from. */
int32_t ch_structure_pool(const ch_structure_options *o);

#endif
