/* models/range.h - which molecules a model was trained on, in numbers; and whether another one is like that.
 *
 * An interval was calibrated on molecules like those of the training: as large, as charged, of the same rings and atoms, with
 * structures made in the same way. A molecule that differs in one of these is outside of the domain of the model, and its
 * interval means nothing. Beside this stands the similarity to the nearest training molecule (models/domain.h).
 *
 * A value counts as seen when at least `least` training molecules have it or go beyond it: one in a hundred, from 1 to
 * NN_RANGE_LEAST. So neither a single odd molecule widens a range, nor does a large training set need hundreds of them. */
#ifndef NN_RANGE_H
#define NN_RANGE_H

#include "chem/graph.h"
#include "pipeline/base/text.h"

enum { NN_RANGE_LEAST = 5, NN_KINDS_MAX = 64, NN_RING_MOST = 31, NN_FORM_BYTES = 32 };

/* Numbers of a molecule. Conjugated atoms: heavy atoms with a double, triple or aromatic bond. Valences: atoms of the common
 * nonmetals with more or fewer bonds than closed shells take, as in radicals and carbenes. */
typedef enum nn_number { NN_HEAVY, NN_CHARGE, NN_RINGS, NN_CONJUGATED, NN_FRAGMENTS, NN_VALENCES, NN_NUMBERS } nn_number;

/* How a structure was made: molecule.geometry of results.db. */
typedef enum nn_source { NN_SOURCE_INPUT, NN_SOURCE_MMFF94, NN_SOURCE_UFF, NN_SOURCE_NONE, NN_SOURCES } nn_source;

nn_source nn_source_of(const char *geometry); /* NN_SOURCE_NONE for any other text, and NULL */

/* A kind of atom. paired: an atom that is bonded to it has the opposite charge, as in a nitro group. */
typedef struct nn_kind {
    uint8_t z;
    int8_t charge;
    bool paired;
} nn_kind;

typedef struct nn_traits {
    int32_t number[NN_NUMBERS];
    uint32_t ring_sizes;            /* bit k: a bond whose smallest ring has k atoms; NN_RING_MOST: so many or more */
    int32_t n_kinds;                /* one more than a range can have stands for any number of them                 */
    nn_kind kind[NN_KINDS_MAX + 1];
} nn_traits;

/* Of the heavy atoms; a bond that is no edge of the graph is not seen. Scratch in mem. ENOMEM. */
pl_code nn_traits_of(nn_traits *out, const ch_graph *g, pl_arena *mem, pl_error *err);

typedef struct nn_range {
    int64_t molecules;              /* of the training; 0: the file does not tell */
    int32_t low[NN_NUMBERS], high[NN_NUMBERS];
    uint32_t ring_sizes, sources;   /* sources: bit of nn_source                  */
    int32_t n_kinds;
    nn_kind kind[NN_KINDS_MAX];
    char form[NN_FORM_BYTES];       /* of acids and bases: "as drawn", "neutral", "at pH 7.4" */
} nn_range;

/* ---- making ---- */

/* Counts of the training molecules, one after the other; zeroed at first. */
typedef struct nn_census {
    int64_t n, ring[NN_RING_MOST + 1], source[NN_SOURCES];
    int32_t least[NN_NUMBERS][NN_RANGE_LEAST], most[NN_NUMBERS][NN_RANGE_LEAST]; /* the smallest and the largest, in order */
    int32_t n_kinds;
    struct nn_kind_count { nn_kind kind; int64_t n; } kind[1024];
} nn_census;

void nn_census_add(nn_census *c, const nn_traits *t, nn_source source);

/* form: no longer than NN_FORM_BYTES with its end. */
void nn_range_of(nn_range *out, const nn_census *c, const char *form);

/* ---- in a model file ---- */

/* A JSON object; NULL when refused. */
const char *nn_range_text(const nn_range *r, pl_arena *mem);
/* EDATA says what is wrong with it. */
pl_code nn_range_take(nn_range *out, const char *text, pl_error *err);

/* ---- using ---- */

/* A molecule to be predicted. */
typedef struct nn_case {
    const nn_traits *traits;
    nn_source source;
    const char *form;    /* of this workflow                                     */
    bool changed;        /* it was neutralised or protonated to have that form   */
    double alike;        /* to the nearest training molecule; NaN: not known     */
} nn_case;

/* Adds why the molecule is outside: "heavy atoms 14 > 9; similarity 0.21 < 0.3". Nothing: inside. lowest: the lowest calibrated
 * similarity, 0: none. A reason that is there already is not added again, so that the models of a score can share a text. */
void nn_range_reasons(pl_text *out, const nn_range *r, double lowest, const nn_case *c);

/* Words that tell one reason from the others, for counts: "heavy atoms". NULL behind the last. */
extern const char *const nn_range_words[];

#endif
