/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/report/coloured.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/molecule/element.h"

enum { ATOMS_MAX = 999 };

/* How the chemistry worker's library draws: the mean bond is 40 units long, the margin as wide, y points down. */
static const double BOND = 40, MARGIN = 40;

/* The largest absolute value. */
static double most_of(const double *by, int32_t n)
{
    double most = 0;

    for (int32_t i = 0; i < n; i++)
        most = fmax(most, fabs(by[i]));
    return most;
}

/* The next line of a text; NULL: there is none. */
static const char *line_after(const char *p)
{
    p = p != NULL ? strchr(p, '\n') : NULL;
    return p != NULL ? p + 1 : NULL;
}

/* A whole number in three columns. */
static int column3(const char *p)
{
    char word[4] = "";

    (void)strncpy(word, p, 3);
    return (int)strtol(word, NULL, 10);
}

/* Positions of *n atoms in a V2000 molfile, and the length of its mean bond. False: it is none. */
static bool positions(double (*at)[2], int *n, double *bond, const char *molfile)
{
    const char *p = line_after(line_after(line_after(molfile)));
    int n_bonds;
    double sum = 0;

    if (p == NULL || strlen(p) < 39 || strncmp(p + 34, "V2000", 5) != 0)
        return false;
    *n = column3(p); /* three digits: at most ATOMS_MAX */
    n_bonds = column3(p + 3);
    for (int i = 0; i < *n; i++) {
        p = line_after(p);
        if (p == NULL || sscanf(p, "%10lf%10lf", &at[i][0], &at[i][1]) != 2)
            return false;
    }
    for (int b = 0; b < n_bonds; b++) {
        int i, k;
        p = line_after(p);
        if (p == NULL || (i = column3(p)) < 1 || strlen(p) < 6 || (k = column3(p + 3)) < 1 || i > *n || k > *n)
            return false;
        sum += hypot(at[i - 1][0] - at[k - 1][0], at[i - 1][1] - at[k - 1][1]);
    }
    *bond = n_bonds > 0 ? sum / n_bonds : 1;
    return true;
}

/* From the molfile's positions to the drawing's. */
static void place(double (*at)[2], int n, double bond)
{
    double low[2] = { INFINITY, INFINITY };

    for (int i = 0; i < n; i++) {
        at[i][0] *= BOND / bond;
        at[i][1] *= -BOND / bond;
        for (int k = 0; k < 2; k++)
            low[k] = fmin(low[k], at[i][k]);
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            at[i][k] += MARGIN - low[k];
}

bool st_coloured_add(pl_text *out, const ch_drawn *drawn, const char *alt, const st_colours *colours, st_picture *frame,
                     pl_arena *mem)
{
    double(*at)[2] = pl_arena_get(mem, ATOMS_MAX, sizeof *at), bond = 1;
    st_mark *mark = PL_NEW(mem, st_mark, ATOMS_MAX);
    const bool good = at != NULL && mark != NULL;
    const double *by = colours->by, most = most_of(by, colours->n);
    int n_drawn = 0, n_marks = 0;

    out->refused = out->refused || !good;
    if (good && positions(at, &n_drawn, &bond, drawn->molfile) && n_drawn <= colours->n && bond > 0) {
        place(at, n_drawn, bond);
        for (int i = 0; i < n_drawn; i++) {
            if (!(fabs(by[i]) > 0))
                continue;
            mark[n_marks] = (st_mark){ .x = at[i][0], .y = at[i][1], .by = by[i] / most };
            (void)snprintf(mark[n_marks++].title, sizeof mark->title, "%s %d: %+.3g", ch_element_symbol(colours->z[i]), i + 1,
                           by[i]);
        }
    }
    return st_drawing_add_marked(out, drawn->svg, alt, "", frame, mark, n_marks);
}
