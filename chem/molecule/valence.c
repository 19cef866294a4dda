/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/molecule/valence.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "chem/molecule/element.h"

static bool has_more(int z) { return z > 10 || z == 7; }

int ch_fewest_bonds(int z, int charge)
{
    static const struct {
        uint8_t z, bonds;
    } closed[] = { { 1, 1 },  { 5, 3 },  { 6, 4 },  { 7, 3 },  { 8, 2 },  { 9, 1 },  { 14, 4 },
                   { 15, 3 }, { 16, 2 }, { 17, 1 }, { 33, 3 }, { 34, 2 }, { 35, 1 }, { 53, 1 } };

    for (size_t k = 0; k < sizeof closed / sizeof *closed; k++)
        if (closed[k].z == z - charge)
            return closed[k].bonds;
    return -1;
}

int ch_free_valences(int z, int charge, int bonds)
{
    const int fewest = ch_fewest_bonds(z, charge);

    if (fewest < 0)
        return 0;
    if (bonds > fewest)
        return has_more(z - charge) ? (bonds - fewest) % 2 : -1;
    return fewest - bonds;
}

/* ---- a SMILES ------------------------------------------------------------- */

enum { RINGS = 100, NO_ATOM = -1, UNSAID = 0, AROMATIC = -1, MANY = 99 };

typedef struct atom {
    uint8_t z;
    bool bracket, aromatic, marked;                    /* marked: @ or @@ */
    int charge, hydrogens, bonds, neighbours, doubles; /* bonds: the sum of the orders of those that are not aromatic */
} atom;

typedef struct smiles {
    const char *at;
    atom *atom; /* [n] */
    int n, *open, n_open;
    int before, order; /* the atom and the bond before the next atom */
    bool slash;        /* the text has / or \ */
    struct {
        int atom, order;
    } ring[RINGS];
} smiles;

static void bond_add(smiles *s, int i, int j, int order)
{
    const bool aromatic = order == AROMATIC || (order == UNSAID && s->atom[i].aromatic && s->atom[j].aromatic);
    const int said = order > UNSAID ? order : 1;

    for (int k = 0; k < 2; k++) {
        atom *a = &s->atom[k == 0 ? i : j];
        a->neighbours++;
        a->doubles += said == 2;
        a->bonds += aromatic ? 0 : said;
    }
}

static void atom_add(smiles *s, const atom *a)
{
    s->atom[s->n] = *a;
    if (s->before != NO_ATOM)
        bond_add(s, s->before, s->n, s->order);
    s->before = s->n++;
    s->order = UNSAID;
}

static bool take_digits(smiles *s, int *out)
{
    const char *from = s->at;

    for (*out = 0; isdigit((unsigned char)*s->at); s->at++)
        *out = *out < MANY * MANY ? 10 * *out + *s->at - '0' : *out;
    return s->at > from;
}

/* A capital letter and perhaps a small one, or small ones of an aromatic atom. */
static bool take_symbol(smiles *s, atom *a)
{
    char symbol[3] = { s->at[0], '\0', '\0' };

    a->aromatic = islower((unsigned char)s->at[0]);
    if (symbol[0] != '\0' && islower((unsigned char)s->at[1]))
        symbol[1] = s->at[1];
    a->z = (uint8_t)ch_element_number(symbol);
    s->at += strlen(symbol);
    return a->z > 0;
}

/* "@", "@@", or another class such as "@SP1" */
static void take_chirality(smiles *s)
{
    static const char *const classes[] = { "TH", "AL", "SP", "TB", "OH" };
    int number;

    if (*s->at != '@')
        return;
    while (*s->at == '@')
        s->at++;
    for (size_t k = 0; k < sizeof classes / sizeof *classes; k++)
        if (strncmp(s->at, classes[k], 2) == 0 && isdigit((unsigned char)s->at[2])) {
            s->at += 2;
            (void)take_digits(s, &number);
        }
}

/* "H" or "H3" */
static void take_hydrogens(smiles *s, atom *a)
{
    if (*s->at != 'H')
        return;
    s->at++;
    if (!take_digits(s, &a->hydrogens))
        a->hydrogens = 1;
}

/* "+", "++" or "-2" */
static void take_charge(smiles *s, atom *a)
{
    int sign = 0, n, signs = 0;

    for (; *s->at == '+' || *s->at == '-'; s->at++, signs++)
        sign = *s->at == '+' ? 1 : -1;
    a->charge = sign * (take_digits(s, &n) ? n : signs);
}

/* [13CH3+], [C@@H], [nH], [Fe+2], [CH3:1]; s->at is behind the "[". */
static bool take_bracket(smiles *s)
{
    atom a = { .bracket = true };
    int ignored;

    (void)take_digits(s, &ignored); /* the isotope */
    if (!take_symbol(s, &a))
        return false;
    a.marked = *s->at == '@';
    take_chirality(s);
    take_hydrogens(s, &a);
    take_charge(s, &a);
    if (*s->at == ':') {
        s->at++;
        (void)take_digits(s, &ignored);
    }
    if (*s->at++ != ']')
        return false;
    atom_add(s, &a);
    return true;
}

static bool take_plain(smiles *s)
{
    const bool two = (s->at[0] == 'C' && s->at[1] == 'l') || (s->at[0] == 'B' && s->at[1] == 'r');
    const atom a = { .aromatic = islower((unsigned char)s->at[0]) };

    if (strchr("BCNOPSFIbcnops", s->at[0]) == NULL)
        return false;
    s->at += two ? 2 : 1;
    atom_add(s, &a);
    return true;
}

/* "1" or "%12": opens a ring, or closes it. */
static bool take_ring(smiles *s)
{
    int k = *s->at - '0';

    if (*s->at == '%' && isdigit((unsigned char)s->at[1]) && isdigit((unsigned char)s->at[2])) {
        k = 10 * (s->at[1] - '0') + s->at[2] - '0';
        s->at += 2;
    }
    s->at++;
    if (k < 0 || k >= RINGS || s->before == NO_ATOM)
        return false;
    if (s->ring[k].atom != NO_ATOM) {
        bond_add(s, s->ring[k].atom, s->before, s->order != UNSAID ? s->order : s->ring[k].order);
        s->ring[k].atom = NO_ATOM;
    } else {
        s->ring[k].atom = s->before;
        s->ring[k].order = s->order;
    }
    s->order = UNSAID;
    return true;
}

static bool take_sign(smiles *s)
{
    static const char signs[] = "-=#$/\\:";
    static const int orders[] = { 1, 2, 3, 4, 1, 1, AROMATIC };
    const char c = *s->at++, *bond = strchr(signs, c);

    if (c == '(')
        s->open[s->n_open++] = s->before;
    else if (c == ')' && s->n_open > 0)
        s->before = s->open[--s->n_open];
    else if (c == '.')
        s->before = NO_ATOM;
    else if (bond != NULL)
        s->order = orders[bond - signs];
    else
        return false;
    s->slash = s->slash || c == '/' || c == '\\';
    return true;
}

static bool take_all(smiles *s)
{
    bool good = true;

    while (good && *s->at != '\0')
        if (*s->at == '[') {
            s->at++;
            good = take_bracket(s);
        } else if (isalpha((unsigned char)*s->at)) {
            good = take_plain(s);
        } else if (isdigit((unsigned char)*s->at) || *s->at == '%') {
            good = take_ring(s);
        } else {
            good = take_sign(s);
        }
    return good;
}

static int free_of(const atom *a)
{
    const int missing = 3 - a->neighbours - a->hydrogens;

    if (!a->bracket)
        return 0;
    if (a->aromatic)
        return a->z - a->charge == 6 && missing > 0 ? missing : 0;
    return ch_free_valences(a->z, a->charge, a->bonds + a->hydrogens);
}

/* Reads a text; *good: all of it is a SMILES. smiles_free in any case. */
static pl_code smiles_read(smiles *s, const char *text, bool *good, pl_error *err)
{
    const size_t room = strlen(text) + 1;

    *s = (smiles){ .at = text, .atom = calloc(room, sizeof *s->atom), .open = calloc(room, sizeof *s->open), .before = NO_ATOM };
    *good = false;
    if (s->atom == NULL || s->open == NULL)
        return pl_fail(err, PL_ENOMEM, "a SMILES of %zu bytes", room);
    for (int k = 0; k < RINGS; k++)
        s->ring[k].atom = NO_ATOM;
    *good = take_all(s);
    return PL_OK;
}

static void smiles_free(smiles *s)
{
    free(s->atom);
    free(s->open);
}

pl_code ch_smiles_free_valences(int32_t *out, const char *text, pl_error *err)
{
    smiles s;
    bool good = false;
    const pl_code code = smiles_read(&s, text, &good, err);

    *out = good ? 0 : -1;
    for (int i = 0; i < s.n && *out >= 0; i++) {
        const int n = free_of(&s.atom[i]);
        *out += n > 0 ? n : 0;
    }
    smiles_free(&s);
    return code;
}

pl_code ch_smiles_marks_axis(bool *out, const char *text, pl_error *err)
{
    smiles s;
    bool good = false;
    int cumulated = 0;
    const pl_code code = smiles_read(&s, text, &good, err);

    *out = false;
    for (int i = 0; i < s.n && good; i++) {
        const atom *a = &s.atom[i];
        const bool middle = a->doubles == 2 && a->neighbours == 2;
        cumulated += middle;
        *out = *out || (middle && a->marked);
    }
    *out = *out || (s.slash && cumulated > 1);
    smiles_free(&s);
    return code;
}
