/* models/domain/range.h - the ranges of properties of the training molecules, and whether a molecule is outside of them.
 *
 * Prediction intervals were calibrated on molecules with the sizes, charges, rings, atoms and sources of structures of the
 * training set. A molecule that differs in one of these is outside the applicability domain of the model, and its interval
 * is not valid. The other part of the domain is the similarity to the nearest training molecule (models/domain/domain.h).
 *
 * A value is inside the range if at least `least` training molecules have it or a more extreme one; `least` is 1 % of
 * the training molecules, but from 1 to NN_RANGE_MIN. So a single unusual molecule does not widen a range, and a large
 * training set does not need hundreds of them. */
#ifndef NN_RANGE_H
#define NN_RANGE_H

#include "chem/graph/graph.h"
#include "pipeline/base/text.h"

enum { NN_RANGE_MIN = 5, NN_KINDS_MAX = 64, NN_RING_MAX = 31, NN_FORM_BYTES = 32, NN_EXPANDED = 9, NN_EXPANDED_MAX = 15 };

/* Version of what is counted and judged here: raise it when a molecule could get another verdict. It is part of the keys of the
 * stages score and evaluate, so that scores stored under earlier rules are made again. 1: without unusual and high valences; 2: with the similarity to
 * the nearest training molecule of any target. */
enum { NN_RANGE_RULES = 3 };

/* Counted properties of a molecule. Conjugated atoms: heavy atoms with a double, triple or aromatic bond. Valences: atoms of the
 * common nonmetals with more or fewer bonds than closed shells take, as in radicals and carbenes. */
typedef enum nn_number { NN_HEAVY, NN_CHARGE, NN_RINGS, NN_CONJUGATED, NN_FRAGMENTS, NN_VALENCES, NN_NUMBERS } nn_number;

/* Elements that can have more bonds than their lowest valence: sulfur with 6 in a sulfone, phosphorus with 5, nitrogen in N(=O)=O. */
extern const uint8_t nn_expanded_z[NN_EXPANDED];

/* The source of a 3D structure: column molecule.geometry of results.db. */
typedef enum nn_source {
    NN_SOURCE_INPUT,
    NN_SOURCE_MMFF94,
    NN_SOURCE_UFF,
    NN_SOURCE_MMFF94S,
    NN_SOURCE_NONE,
    NN_SOURCES
} nn_source;

nn_source nn_source_of(const char *geometry); /* NN_SOURCE_NONE for NULL and unknown texts */

/* A kind of atom: element and charge. paired: a bonded atom has the opposite charge, as in a nitro group. */
typedef struct nn_kind {
    uint8_t z;
    int8_t charge;
    bool paired;
} nn_kind;

typedef struct nn_traits {
    int32_t number[NN_NUMBERS];
    uint32_t ring_sizes;            /* bit k: there is a bond whose smallest ring has k atoms; bit NN_RING_MAX: that many or more */
    uint16_t expanded[NN_EXPANDED]; /* bit k: an atom of nn_expanded_z has k bonds (the sum of their orders), more than its lowest
                                       valence; bit NN_EXPANDED_MAX: that many or more */
    int32_t n_kinds;                /* NN_KINDS_MAX + 1 means: more than NN_KINDS_MAX                               */
    nn_kind kind[NN_KINDS_MAX + 1];
} nn_traits;

/* The traits of a molecule. Only bonds that are edges of the graph count. Scratch in mem. ENOMEM. */
pl_code nn_traits_of(nn_traits *out, const ch_graph *g, pl_arena *mem, pl_error *err);

typedef struct nn_range {
    int64_t molecules; /* training molecules; 0: not in the file     */
    int32_t low[NN_NUMBERS], high[NN_NUMBERS];
    uint32_t ring_sizes, sources;   /* sources: bit k is nn_source k              */
    uint16_t expanded[NN_EXPANDED]; /* as in nn_traits; none in a file of an earlier version */
    int32_t n_kinds;
    nn_kind kind[NN_KINDS_MAX];
    char form[NN_FORM_BYTES]; /* protonation state of acids and bases: "as drawn", "neutral", "at pH 7.4" */
} nn_range;

/* ---- making ---- */

/* Counts over the training molecules; set to zero before the first nn_census_add. */
typedef struct nn_census {
    int64_t n, ring[NN_RING_MAX + 1], source[NN_SOURCES], expanded[NN_EXPANDED][NN_EXPANDED_MAX + 1];
    int32_t min[NN_NUMBERS][NN_RANGE_MIN], max[NN_NUMBERS][NN_RANGE_MIN]; /* the smallest and the largest values, sorted */
    int32_t n_kinds;
    struct nn_kind_count {
        nn_kind kind;
        int64_t n;
    } kind[1024];
} nn_census;

void nn_census_add(nn_census *c, const nn_traits *t, nn_source source);

/* The range from all counts. form: at most NN_FORM_BYTES - 1 characters. */
void nn_range_of(nn_range *out, const nn_census *c, const char *form);

/* Leaves in r, the range of some of the molecules of `all`, what is inside of both: fewer molecules may have a wider range. */
void nn_range_meet(nn_range *r, const nn_range *all);

/* The range of census of[0] in out[0], and in out[k] that of of[k], some of its molecules, as it meets the first; k < n. Without molecules, or
 * with of[k] NULL, the number of molecules is 0. */
void nn_ranges_of(nn_range *out, nn_census *const *of, int32_t n, const char *form);

/* For a model that reads no positions: how a structure was made does not matter. */
void nn_range_ignore_sources(nn_range *r);

/* ---- in a model file ---- */

/* The range as a JSON object in mem; NULL: no memory. */
const char *nn_range_text(const nn_range *r, pl_arena *mem);
/* Reads the range from JSON. EDATA says what is wrong with it. */
pl_code nn_range_take(nn_range *out, const char *text, pl_error *err);

/* ---- using ---- */

/* A molecule to be predicted. */
typedef struct nn_case {
    const nn_traits *traits;
    nn_source source;
    const char *form; /* protonation state that this workflow asks for        */
    bool changed;     /* the molecule was neutralised or protonated for it    */
    double alike;     /* similarity to the nearest training molecule; NaN: unknown */
} nn_case;

/* Appends the reasons why the molecule is outside the domain: "heavy atoms 14 > 9; similarity 0.21 < 0.3"; nothing if it is
 * inside. lowest: the lowest calibrated similarity, 0: none. A reason that `out` already has is not repeated, so several
 * models can append to one text. */
void nn_range_reasons(pl_text *out, const nn_range *r, double lowest, const nn_case *c);

/* The lowest calibrated similarity as messages say it: 2 digits, rounded up, so that "0.49 < 0.50" is never "0.50 < 0.50". */
double nn_similarity_limit(double lowest);

/* Appends one more reason, unless `out` has it. */
void nn_reason_add(pl_text *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The words that name the kinds of reasons, for counting them: "heavy atoms". NULL-terminated. */
extern const char *const nn_range_words[];

#endif
