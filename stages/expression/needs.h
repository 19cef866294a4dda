/* stages/expression/needs.h - elements that every match of a SMARTS has, to pass over molecules that lack them.
 *
 * An exact test beside the chemistry worker, which takes 0.1 ms for a molecule: what does not meet the needs cannot match. A pattern
 * asks for nothing where its atoms are not plainly elements (or, not, recursion), and never for hydrogens. */
#ifndef ST_NEEDS_H
#define ST_NEEDS_H

#include <stdbool.h>
#include <stdint.h>

enum { ST_NEEDS = 10 };

/* How many atoms of B, C, N, O, F, P, S, Cl, Br, I there are at least; all 0: nothing is known. */
typedef struct st_needs {
    int32_t n[ST_NEEDS];
} st_needs;

/* smarts: valid. */
st_needs st_needs_of(const char *smarts);

/* false: the molecule, a SMILES, has fewer atoms of one of them. */
bool st_needs_met(const st_needs *needs, const char *smiles);

#endif
