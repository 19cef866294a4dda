/* chem/fingerprint.h - which atom environments a molecule has, and how many two molecules share.
 *
 * Extended-connectivity fingerprints of radius 2, ECFP4 (Rogers and Hahn, J. Chem. Inf. Model. 2010, 50, 742): every atom with
 * what is at most two bonds away becomes a number, the number a bit. An atom is its element, charge, number of heavy
 * neighbours and of hydrogens, and whether a ring goes through it; hydrogens belong to their heavy atom. Isotopes and stereo do
 * not count. Environments with one set of bonds count once. Before they are folded to bits they are those of RDKit's Morgan
 * fingerprint (docs/SCIENCE.md). Model files keep the bits: another way to make them needs another name there. */
#ifndef CH_FINGERPRINT_H
#define CH_FINGERPRINT_H

#include <stdint.h>

#include "chem/graph.h"
#include "chem/mol.h"

enum { CH_FINGERPRINT_BITS = 2048, CH_FINGERPRINT_BYTES = CH_FINGERPRINT_BITS / 8 };

typedef struct ch_fingerprint {
    uint64_t word[CH_FINGERPRINT_BITS / 64]; /* bit k is bit k % 64 of word k / 64 */
} ch_fingerprint;

/* The same for every order of the atoms and every choice of an aromatic ring's double bonds. No bits without a heavy
 * atom. Scratch in mem. ENOMEM. */
pl_code ch_fingerprint_of(ch_fingerprint *out, const ch_mol *mol, pl_arena *mem, pl_error *err);

/* The same from a graph; a bond that is no edge of it (a cutoff shorter than the bond) is not seen. */
pl_code ch_fingerprint_of_graph(ch_fingerprint *out, const ch_graph *g, pl_arena *mem, pl_error *err);

int32_t ch_fingerprint_ones(const ch_fingerprint *f);

/* Tanimoto: bits of both over bits of either, 0 to 1; 0 when neither has a bit. Equal ratios are equal numbers. */
double ch_fingerprint_alike(const ch_fingerprint *a, const ch_fingerprint *b);

/* ---- the most alike of many ---- */

/* Eight fingerprints folded to 512 bits (bit k is any of bits k, k + 512, ..). Two have at most as many bits in common as
 * their folds have and as fell on others in both: mostly that is too few, and an eighth of the reading. */
enum { CH_FOLD = 8 };
typedef struct ch_folds {
    uint64_t word[CH_FOLD][CH_FOLD];      /* [word][fingerprint]                       */
    int64_t ones[CH_FOLD], lost[CH_FOLD]; /* bits of each, and those that fell on others */
} ch_folds;

/* Fingerprint i of all, after those before it. */
void ch_folds_put(ch_folds *all, int32_t i, const ch_fingerprint *f);

/* What is looked for, and the most alike so far: number `at`, -1 where none has a bit in common, with both / either. */
typedef struct ch_sought {
    const ch_fingerprint *print;
    uint64_t word[CH_FOLD];
    int64_t ones, lost, both, either;
    int32_t at;
} ch_sought;

void ch_sought_open(ch_sought *s, const ch_fingerprint *print); /* print stays */

/* Among all[from .. end-1], after those before; from is a multiple of CH_FOLD. Of several as alike the first is kept. */
void ch_sought_in(ch_sought *s, const ch_fingerprint *all, const ch_folds *folds, int32_t from, int32_t end);

/* The ways to do that on this processor, the fastest, which ch_sought_in takes, first; NULL behind the last. */
typedef void ch_look(ch_sought *s, const ch_fingerprint *all, const ch_folds *folds, int32_t from, int32_t end);
ch_look *ch_look_at(int k);

double ch_sought_alike(const ch_sought *s); /* Tanimoto, the number of ch_fingerprint_alike */

#endif
