/* chem/fingerprint/fingerprint.h - ECFP4 fingerprints, Tanimoto similarity, and the search for the most similar fingerprint.
 *
 * Extended-connectivity fingerprints of radius 2, ECFP4 (Rogers and Hahn, J. Chem. Inf. Model. 2010, 50, 742): every atom
 * and its environment up to two bonds away is hashed to a number, and the number sets a bit. An atom is described by its element,
 * charge, number of heavy neighbours and of hydrogens, and whether it is in a ring; hydrogens belong to their heavy atom. Isotopes and
 * stereo do not count. Environments with the same set of bonds count once. Before folding to bits the environments are those of RDKit's
 * Morgan fingerprint (docs/SCIENCE.md). Model files store the bits: if this method changes, it needs another name there. */
#ifndef CH_FINGERPRINT_H
#define CH_FINGERPRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "chem/graph/graph.h"
#include "chem/molecule/mol.h"

enum { CH_FINGERPRINT_BITS = 2048, CH_FINGERPRINT_BYTES = CH_FINGERPRINT_BITS / 8 };

typedef struct ch_fingerprint {
    uint64_t word[CH_FINGERPRINT_BITS / 64]; /* bit k is bit k % 64 of word k / 64 */
} ch_fingerprint;

/* Independent of the order of the atoms and of the Kekule structure drawn for aromatic rings. No bits are set if there is no heavy
 * atom. mem is scratch memory. ENOMEM. */
pl_code ch_fingerprint_of(ch_fingerprint *out, const ch_mol *mol, pl_arena *mem, pl_error *err);

/* The same from a graph. A bond that is not an edge of the graph (longer than the cutoff) is ignored. */
pl_code ch_fingerprint_of_graph(ch_fingerprint *out, const ch_graph *g, pl_arena *mem, pl_error *err);

/* As bytes: bit k is bit k % 8 of byte k / 8. */
void ch_fingerprint_pack(unsigned char to[CH_FINGERPRINT_BYTES], const ch_fingerprint *f);
void ch_fingerprint_unpack(ch_fingerprint *to, const unsigned char from[CH_FINGERPRINT_BYTES]);

/* An environment: what the bits are made from. */
typedef struct ch_circle {
    uint64_t bonds,
        value; /* bonds: identifies the set of bonds, 0: a single atom; value: hash of the environment, its bit is value % 2048 */
    int32_t radius, atom; /* 0 to 2 bonds; the atom in its middle */
} ch_circle;

/* All environments that set a bit: every heavy atom, then one for each set of bonds (of those with equal bonds the one of the smallest
 * radius, then of the smallest value). Equal values occur as often as the environment does in the molecule. out[n] is in mem. ENOMEM. */
pl_code ch_circles_of(ch_circle **out, int32_t *n, const ch_mol *mol, pl_arena *mem, pl_error *err);
pl_code ch_circles_of_graph(ch_circle **out, int32_t *n, const ch_graph *g, pl_arena *mem, pl_error *err);

int32_t ch_fingerprint_ones(const ch_fingerprint *f); /* number of bits that are set */

/* Tanimoto similarity: bits in both / bits in either, 0 to 1; 0 if neither has a bit. Equal ratios give equal doubles. */
double ch_fingerprint_alike(const ch_fingerprint *a, const ch_fingerprint *b);

/* ---- the most similar of many ---- */

/* Eight fingerprints folded to 512 bits: bit k is the OR of bits k, k + 512, k + 1024 and k + 1536. The number of common bits of
 * two fingerprints is bounded by the common bits of their folds plus the smaller number of bits that collided in folding. The bound
 * rules out most candidates while reading only the folds. */
enum { CH_FOLD = 8 };
typedef struct ch_folds {
    uint64_t word[CH_FOLD][CH_FOLD];      /* [word][fingerprint]                      */
    int64_t ones[CH_FOLD], lost[CH_FOLD]; /* bits of each; bits that collided in folding */
} ch_folds;

/* Stores fingerprint i; call it for i = 0, 1, 2, ... in order. */
void ch_folds_put(ch_folds *all, int32_t i, const ch_fingerprint *f);

/* The query and the most similar fingerprint so far: index `at` (-1: none has a common bit), similarity both / either. */
typedef struct ch_sought {
    const ch_fingerprint *print;
    uint64_t word[CH_FOLD];
    int64_t ones, lost, both, either;
    int32_t at;
} ch_sought;

void ch_sought_open(ch_sought *s, const ch_fingerprint *print); /* borrows print */

/* Those of many fingerprints that are searched. */
typedef struct ch_among {
    const ch_fingerprint *all;
    const ch_folds *folds;
    const uint8_t *only; /* bit k of byte b: whether fingerprint CH_FOLD b + k is one of them; NULL: all are */
} ch_among;

static inline bool ch_among_has(const ch_among *a, int32_t i) { return a->only == NULL || a->only[i / CH_FOLD] >> i % CH_FOLD & 1; }

/* Searches all[from .. end-1]; call it for increasing ranges; from is a multiple of CH_FOLD. Of equally similar ones the first is kept. */
void ch_sought_in(ch_sought *s, const ch_among *a, int32_t from, int32_t end);

/* Implementation k of ch_sought_in for this processor, the fastest (the one it uses) first; NULL after the last. */
typedef void ch_look(ch_sought *s, const ch_among *a, int32_t from, int32_t end);
ch_look *ch_look_at(int k);

double ch_sought_alike(const ch_sought *s); /* Tanimoto similarity, equal to that of ch_fingerprint_alike */

#endif
