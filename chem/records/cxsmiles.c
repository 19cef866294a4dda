/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/records/cxsmiles.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

typedef struct view {
    const char *s;
    size_t n;
} view;

static bool begins(view v, const char *with) { return v.n >= strlen(with) && memcmp(v.s, with, strlen(with)) == 0; }

static bool has(view v, char c) { return memchr(v.s, c, v.n) != NULL; }

/* Whether the atom of that number, from 0, is written in brackets. */
static bool is_bracketed(view smiles, long number)
{
    long atom = -1;

    for (size_t i = 0; i < smiles.n && atom < number; i++) {
        const char c = smiles.s[i];
        const char *end = c == '[' ? memchr(smiles.s + i, ']', smiles.n - i) : NULL;
        atom += end != NULL || strchr("BCNOPSFIbcnops*", c) != NULL;
        if (end != NULL && atom == number)
            return true;
        i = end != NULL ? (size_t)(end - smiles.s) : i;
        i += end == NULL && i + 1 < smiles.n && ((c == 'C' && smiles.s[i + 1] == 'l') || (c == 'B' && smiles.s[i + 1] == 'r'));
    }
    return false;
}

/* "^1:0,3": the numbers of atoms behind the colon; those in later parts are read with it, up to one that is no number. */
static bool radicals_are_written(view smiles, const char *at, const char *end)
{
    const char *colon = memchr(at, ':', (size_t)(end - at));

    for (const char *s = colon != NULL ? colon + 1 : end; s < end && isdigit((unsigned char)*s); s += s < end && *s == ',') {
        long atom = 0;
        for (; s < end && isdigit((unsigned char)*s); s++)
            atom = atom < 1000000 ? 10 * atom + (*s - '0') : atom;
        if (!is_bracketed(smiles, atom))
            return false;
    }
    return true;
}

static bool is_polymer(view part)
{
    static const char *const kinds[] = { "Sg:n:",   "Sg:mon:", "Sg:mer:", "Sg:co:",  "Sg:xl:", "Sg:mod:",
                                         "Sg:grf:", "Sg:alt:", "Sg:ran:", "Sg:blk:", "Sg:any:" };
    bool polymer = false;

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        polymer = polymer || begins(part, kinds[k]);
    return polymer;
}

static const char *part_problem(view smiles, view part, const char *end)
{
    if (begins(part, "^") && !radicals_are_written(smiles, part.s, end))
        return "CXSMILES: it has a radical (^) at an atom that the SMILES writes without brackets";
    if (is_polymer(part))
        return "CXSMILES: a polymer (Sg), not a molecule";
    if (begins(part, "LN:"))
        return "CXSMILES: a part that repeats (LN), not a molecule";
    if (begins(part, "m:"))
        return "CXSMILES: a bond to one of several atoms (m), not one molecule";
    if (begins(part, "C:"))
        return "CXSMILES: coordinate bonds (C) are not read";
    if ((begins(part, "c:") || begins(part, "t:")) && !has(smiles, '/') && !has(smiles, '\\'))
        return "CXSMILES: double bonds are cis or trans (c, t); write them with / and \\ in the SMILES";
    return NULL;
}

/* Behind "$names$" or "(positions)"; else s. */
static const char *skip_list(const char *s, const char *end)
{
    const char *close = *s == '$' ? memchr(s + 1, '$', (size_t)(end - s - 1)) : NULL;

    if (*s == '(')
        close = memchr(s, ')', (size_t)(end - s));
    return close != NULL ? close + 1 : s;
}

/* What stands between the bars; s NULL: there are none. */
static view inside(const char *behind, size_t n)
{
    const char *s = behind, *all = behind + n, *end = NULL;

    while (s < all && (*s == ' ' || *s == '\t'))
        s++;
    if (s < all && *s == '|')
        end = memchr(s + 1, '|', (size_t)(all - s - 1));
    return end != NULL ? (view){ s + 1, (size_t)(end - s - 1) } : (view){ NULL, 0 };
}

size_t ch_cx_length(const char *behind, size_t n_behind)
{
    const view cx = inside(behind, n_behind);

    return cx.s != NULL ? (size_t)(cx.s + cx.n + 1 - behind) : 0;
}

const char *ch_cx_problem(const char *smiles, size_t n_smiles, const char *behind, size_t n_behind)
{
    const view cx = inside(behind, n_behind);
    const char *problem = NULL, *end;

    if (cx.s == NULL)
        return NULL;
    end = cx.s + cx.n;
    for (const char *s = cx.s; s < end && problem == NULL; s++) {
        s = skip_list(s, end);
        const char *comma = s < end ? memchr(s, ',', (size_t)(end - s)) : NULL;
        const char *stop = comma != NULL ? comma : end;
        if (s < end)
            problem = part_problem((view){ smiles, n_smiles }, (view){ s, (size_t)(stop - s) }, end);
        s = stop;
    }
    return problem;
}
