/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/expression/needs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

static const int number[ST_NEEDS] = { 5, 6, 7, 8, 9, 15, 16, 17, 35, 53 };

static int place_of(int z)
{
    for (int k = 0; k < ST_NEEDS; k++)
        if (number[k] == z)
            return k;
    return NONE;
}

/* The element of which s is the symbol, aromatic ones in small letters, and how many letters it has; NONE: another one, or none. */
static int symbol_at(const char *s, int *letters)
{
    static const char one[] = "BCNOFPSIbcnops";
    static const int z[] = { 5, 6, 7, 8, 9, 15, 16, 53, 5, 6, 7, 8, 15, 16 };
    const char *found = *s != '\0' ? strchr(one, *s) : NULL;

    *letters = 2;
    if (strncmp(s, "Cl", 2) == 0)
        return place_of(17);
    if (strncmp(s, "Br", 2) == 0)
        return place_of(35);
    *letters = 1;
    return found != NULL ? place_of(z[found - one]) : NONE;
}

/* ---- of a pattern ---- */

/* The element of an atom in brackets, [s, end): the first primitive, as all others are and-ed to it. */
static int bracket_needs(const char *s, const char *end)
{
    int letters, place;

    if (memchr(s, ',', (size_t)(end - s)) != NULL)
        return NONE;
    while (s < end && isdigit((unsigned char)*s))
        s++;
    if (*s == '#')
        return place_of((int)strtol(s + 1, NULL, 10));
    place = symbol_at(s, &letters);
    return islower((unsigned char)s[letters]) ? NONE : place; /* another element, such as Si or se */
}

/* Neither recursion nor several parts. */
static bool is_plain(const char *smarts) { return strpbrk(smarts, "$.>") == NULL; }

/* A and a are any atoms, but As and as are arsenic. */
static bool is_any(const char *s) { return (*s == 'A' || *s == 'a') && !islower((unsigned char)s[1]); }

st_needs st_needs_of(const char *smarts)
{
    const st_needs nothing = { { 0 } };
    st_needs out = nothing;

    if (!is_plain(smarts))
        return nothing;
    for (const char *s = smarts; *s != '\0'; s++) {
        const char *end = *s == '[' ? strchr(s, ']') : NULL;
        int letters = 1, place = NONE;
        if (end != NULL)
            place = bracket_needs(s + 1, end);
        else if (isalpha((unsigned char)*s) && !is_any(s) && (place = symbol_at(s, &letters)) == NONE)
            return nothing;
        s = end != NULL ? end : s + letters - 1;
        if (place != NONE)
            out.n[place]++;
    }
    return out;
}

/* ---- of a molecule ---- */

/* Never fewer than there are: [Sc] counts as sulfur, too. */
bool st_needs_met(const st_needs *needs, const char *smiles)
{
    int32_t left[ST_NEEDS], n_left = 0;

    memcpy(left, needs->n, sizeof left);
    for (int k = 0; k < ST_NEEDS; k++)
        n_left += left[k];
    for (const char *s = smiles; *s != '\0' && n_left > 0; s++) {
        int letters;
        const int place = symbol_at(s, &letters);
        if (place != NONE && left[place] > 0) {
            left[place]--;
            n_left--;
        }
        s += letters - 1;
    }
    return n_left == 0;
}
