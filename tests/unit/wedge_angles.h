/* tests/unit/wedge_angles.h - whether readers can agree on the wedges of a molfile: of the bonds beside one, none is behind another,
 * and of two the wedge is not in their wide angle (IUPAC 2006, Graphical representation of stereochemical configuration). */
#ifndef TESTS_WEDGE_ANGLES_H
#define TESTS_WEDGE_ANGLES_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WEDGE_ATOMS = 100, WEDGE_ARMS = 8 };

typedef struct wedge_drawing {
    double xy[WEDGE_ATOMS][2];
    int n_atoms, n_bonds, bond[WEDGE_ATOMS][4]; /* from, to, order, mark */
} wedge_drawing;

static inline void wedge_read(wedge_drawing *d, const char *molfile)
{
    const char *line = molfile;

    for (int i = 0; i < 3; i++)
        line = strchr(line, '\n') + 1;
    assert_int_equal(sscanf(line, "%3d%3d", &d->n_atoms, &d->n_bonds), 2);
    assert_true(d->n_atoms < WEDGE_ATOMS && d->n_bonds < WEDGE_ATOMS);
    for (int i = 0; i < d->n_atoms; i++) {
        line = strchr(line, '\n') + 1;
        assert_int_equal(sscanf(line, "%10lf%10lf", &d->xy[i][0], &d->xy[i][1]), 2);
    }
    for (int b = 0; b < d->n_bonds; b++) {
        int *to = d->bond[b];
        line = strchr(line, '\n') + 1;
        assert_int_equal(sscanf(line, "%3d%3d%3d%3d", &to[0], &to[1], &to[2], &to[3]), 4);
    }
}

static inline double wedge_direction(const wedge_drawing *d, int from, int to)
{
    return atan2(d->xy[to - 1][1] - d->xy[from - 1][1], d->xy[to - 1][0] - d->xy[from - 1][0]) * 180 / M_PI;
}

static inline int wedge_before(const void *a, const void *b)
{
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

/* The bonds at the narrow end of bond b, as angles from it, in order. Returns their number. */
static inline int wedge_others(const wedge_drawing *d, int b, double at[WEDGE_ARMS])
{
    const int centre = d->bond[b][0];
    const double zero = wedge_direction(d, centre, d->bond[b][1]);
    int n = 0;

    for (int k = 0; k < d->n_bonds; k++) {
        const int *o = d->bond[k];
        if (k != b && (o[0] == centre || o[1] == centre) && n < WEDGE_ARMS)
            at[n++] = fmod(wedge_direction(d, centre, o[0] == centre ? o[1] : o[0]) - zero + 720, 360);
    }
    qsort(at, (size_t)n, sizeof *at, wedge_before);
    return n;
}

static inline bool wedges_are_clear(const char *molfile)
{
    wedge_drawing *d = calloc(1, sizeof *d);
    bool clear = true;

    assert_non_null(d);
    wedge_read(d, molfile);
    for (int b = 0; b < d->n_bonds; b++) {
        double at[WEDGE_ARMS];
        const bool marked = d->bond[b][2] == 1 && (d->bond[b][3] == 1 || d->bond[b][3] == 6);
        const int n = marked ? wedge_others(d, b, at) : 0;
        for (int k = 1; k < n; k++)
            clear = clear && at[k] - at[k - 1] >= 20;
        clear = clear && (!marked || n > 2 || (n == 2 && at[1] - at[0] <= 170));
    }
    free(d);
    return clear;
}

#endif
