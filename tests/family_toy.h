/* tests/family_toy.h - made-up molecules as rows of numbers, for members of a model family. */
#ifndef FAMILY_TOY_H
#define FAMILY_TOY_H

#include "models/family/family.h"

enum { FAMILY_COLUMNS = 6 };

typedef struct family_toy {
    nn_table x;      /* FAMILY_COLUMNS columns of the user's table, an eighth of them absent */
    double *y;       /* [x.n] a function of all three kinds of numbers, and some noise   */
    double *classes; /* [x.n] 1 if y is above its middle                                 */
} family_toy;

/* n molecules, the same for the same seed; molecules of different seeds follow the same function. Whoever reads behind the arrays of x, y or
 * classes ends the program (tests/unit/guarded.h). In mem, and in memory that is kept; false: no memory. */
bool family_toy_make(family_toy *out, int32_t n, uint64_t seed, pl_arena *mem);

/* Saves m, opens what was saved; false: one of both failed. In mem. */
bool family_toy_again(nn_member **out, const nn_member_kind *kind, const nn_member *m, pl_arena *mem);

#endif
