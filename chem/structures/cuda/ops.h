/* chem/structures/cuda/ops.h - the interface between the builder of structures and a GPU: a table of functions.
 *
 * The functions are in libmolsieve_cuda.so, which is opened at run time (device.h). The same kernels are compiled as C++
 * against tests/emulator, where every thread of a block is a fiber; that library has the same table.
 *
 * One block of CH_GPU_THREADS threads makes one structure from a molecule's arrays: it draws torsions and distances, minimises
 * in four dimensions, squeezes, and relaxes with MMFF94, as embed.h and relax.h do on a processor. Sums have a fixed order and
 * nothing is atomic, so the result of a job depends on its molecule and its key alone, not on the batch.
 *
 * A batch is one array of 4-byte words (float or int32_t); a molecule says where its arrays begin. Atoms are numbered as in the
 * preconditioner's matrix, along the bonds. Term t of a list of n terms has atom a at [a * n + t] and parameter p at [p * n + t].
 * Units: Angstrom, kcal/mol, radians. This header includes no other header of the project. */
#ifndef CH_GPU_OPS_H
#define CH_GPU_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CH_GPU_ABI = 1,
    CH_GPU_THREADS = 128,
    CH_GPU_WARPS = CH_GPU_THREADS / 32,
    CH_GPU_MOST_ATOMS = 256, /* larger molecules are left to the processor */
    CH_GPU_MOST_PARTS = 8,
    CH_GPU_MEMORY = 8,       /* pairs of L-BFGS */
    CH_GPU_ROTOR_ANGLES = 13 /* CH_ROTOR_ANGLES */
};

/* The arrays of a molecule; n atoms. */
enum ch_gpu_array {
    CH_GPU_BOND_ATOMS,      /* [2][n_bonds] */
    CH_GPU_BOND_PARAMS,     /* [2][n_bonds]     k, r0 */
    CH_GPU_ANGLE_ATOMS,     /* [3][n_angles]    the centre is the second */
    CH_GPU_ANGLE_PARAMS,    /* [7][n_angles]    as in ch_energy_plan */
    CH_GPU_PLANE_ATOMS,     /* [4][n_planes]    centre, three neighbours */
    CH_GPU_PLANE_PARAMS,    /* [3][n_planes] */
    CH_GPU_TORSION_ATOMS,   /* [4][n_torsions] */
    CH_GPU_TORSION_PARAMS,  /* [3][n_torsions] */
    CH_GPU_PAIRS,           /* [3][n][n]        1 / R*, epsilon, charges; symmetric; no interaction: 1, 0, 0 */
    CH_GPU_SLOT_FIRST,      /* [n + 1]          slots of atom i: SLOTS[first[i]] to SLOTS[first[i + 1] - 1] */
    CH_GPU_SLOTS,           /* [n_slots]        a slot is the force of one term on one of its atoms, see CH_GPU_SLOT_... */
    CH_GPU_NUMBERS,         /* [n]              an atom's number in the molecule: random numbers are counted by it */
    CH_GPU_LAST,            /* [n]              last block of a row of the matrix */
    CH_GPU_BEGIN,           /* [n]              first row with a block in this column */
    CH_GPU_ROW,             /* [n + 1]          blocks before row i */
    CH_GPU_BLOCK_FIRST,     /* [n_blocks + 1] */
    CH_GPU_BLOCK_SLOTS,     /* [.]              products of a block: slot of its row, and 65536 times that of its column */
    CH_GPU_UPPER,           /* [n][n]           bounds, before torsions are drawn */
    CH_GPU_LOWER,           /* [n][n] */
    CH_GPU_VOLUME_ATOMS,    /* [4][n_volumes]   the n_chiral ones first */
    CH_GPU_VOLUME_PARAMS,   /* [3][n_volumes]   low, high, weight */
    CH_GPU_VOLUME_FIRST,    /* [n + 1]          as SLOT_FIRST */
    CH_GPU_VOLUME_SLOTS,    /* [4 n_volumes]    slot a * n_volumes + v is that of atom a of volume v */
    CH_GPU_ROTOR_ATOMS,     /* [2][n_rotors]    the two ends */
    CH_GPU_ROTOR_WEIGHTS,   /* [13][n_rotors]   cumulated; the last is 1 */
    CH_GPU_ROTOR_DISTANCES, /* [13][n_rotors] */
    CH_GPU_N_ARRAYS
};

typedef struct ch_gpu_molecule {
    int32_t n_atoms, n_bonds, n_angles, n_planes, n_torsions, n_volumes, n_chiral, n_rotors;
    int32_t n_slots, n_blocks;   /* slots: of bonds, angles, planes, torsions, in this order: atom a of term t is at a * n + t */
    int32_t parts;               /* the row of an atom's pairs is summed by so many threads */
    int32_t floats;              /* of working memory: ch_gpu_floats */
    int64_t at[CH_GPU_N_ARRAYS]; /* words from the beginning of the batch */
} ch_gpu_molecule;

/* Working memory of a block, in floats: what embedding and relaxing have in common, and the larger of both. */
static inline int32_t ch_gpu_floats(const ch_gpu_molecule *m)
{
    const int32_t n = m->n_atoms, vectors = 4 * (5 + 2 * CH_GPU_MEMORY) * n + 3 * n + 4 * m->parts * n;
    const int32_t embed = 12 * m->n_volumes + 9 * n + 3 * n * n, relax = 3 * m->n_slots + 12 * n + 9 * m->n_blocks;

    return vectors + (embed > relax ? embed : relax);
}

enum ch_gpu_mode {
    CH_GPU_BUILD,  /* embeds `starts` times, relaxes each start for first_steps, and the lowest one to the end */
    CH_GPU_RELAX,  /* from the positions given */
    CH_GPU_ENERGY, /* of the positions given; these become the gradient */
    CH_GPU_EMBED   /* one embedding, not relaxed */
};

typedef struct ch_gpu_job {
    int32_t molecule, mode, starts, first_steps, max_steps, pad;
    uint64_t key;    /* of the random numbers: pl_rng.key */
    double gradient; /* see relax.h */
    int64_t xyz;     /* place of its positions, [3][n_atoms], in floats */
} ch_gpu_job;

enum ch_gpu_what { CH_GPU_DONE, CH_GPU_FAR_FROM_BOUNDS, CH_GPU_WRONG_CHIRALITY, CH_GPU_NOT_FINITE };

typedef struct ch_gpu_result {
    int32_t what, converged, steps, n_energies, n_values; /* n_values: errors of distances computed */
    int32_t far_from_bounds, wrong_chirality, pad;        /* starts that ended so */
    double energy, gradient;
} ch_gpu_result;

typedef struct ch_gpu ch_gpu; /* a device, a stream and memory; one thread at a time */

typedef struct ch_gpu_ops {
    int32_t abi, bytes; /* CH_GPU_ABI, sizeof(ch_gpu_ops) */
    int32_t (*count)(void);
    /* Whether that device can be used; text: what it is, or why not. */
    bool (*find)(int32_t device, char *text, size_t n);
    ch_gpu *(*open)(int32_t device, char *text, size_t n); /* NULL: see text */
    void (*close)(ch_gpu *g);                              /* NULL is fine */
    /* Copies a batch to the device, where it stays until the next load. Both return NULL, or why not; after that only close. */
    const char *(*load)(ch_gpu *g, const ch_gpu_molecule *molecules, int32_t n_molecules, const void *words, int64_t n_words);
    /* Runs n jobs of the batch and waits for them. result[n]; xyz[n_floats] in and out. */
    const char *(*run)(ch_gpu *g, const ch_gpu_job *jobs, int32_t n, ch_gpu_result *result, float *xyz, int64_t n_floats);
} ch_gpu_ops;

#ifdef __cplusplus
}
#endif

#endif
