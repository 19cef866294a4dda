/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "chem/worker/worker_client.h"

static const char *pattern_fault(const char *s, const char *end);

/* Behind the bracket that belongs to *s, or end. */
static const char *behind(const char *s, const char *end, char open, char close)
{
    int depth = 0;

    for (; s < end; s++) {
        depth += *s == open;
        depth -= *s == close;
        if (depth == 0)
            return s + 1;
    }
    return end;
}

/* Of an atom that ends before s: its ring closures, branches and the next atom. */
static int neighbours_behind(const char *s, const char *end)
{
    int n = 0;

    while (s < end && *s != ')') {
        if (*s == '[' || *s == '*' || isalpha((unsigned char)*s))
            return n + 1;
        n += isdigit((unsigned char)*s) || *s == '%' || *s == '(';
        if (*s == '(')
            s = behind(s, end, '(', ')');
        else
            s += *s == '%' && end - s > 2 ? 3 : 1;
    }
    return n;
}

/* Whether nothing but a charge follows. */
static bool only_charge(const char *s, const char *end)
{
    while (s < end && strchr("+-0123456789", *s) != NULL)
        s++;
    return s == end;
}

/* [2H], which Daylight and others take for an atom of hydrogen. */
static bool is_heavy_hydrogen(const char *s, const char *end)
{
    const char *at = s;

    while (at < end && isdigit((unsigned char)*at))
        at++;
    return at > s && at < end && *at == 'H' && only_charge(at + 1, end);
}

/* [H+], which Daylight and others take for a proton. */
static bool is_charged_hydrogen(const char *s, const char *end)
{
    return end - s > 1 && *s == 'H' && (s[1] == '+' || s[1] == '-') && only_charge(s + 1, end);
}

/* Of the mark of an atom in brackets: how many neighbours the pattern has to give it; -1: the matcher passes over the mark, as in
 * [C@H1], [C@+] or [C@,N]. */
static int neighbours_needed(const char *s, const char *end)
{
    const bool has_hydrogen = end[-1] == 'H';

    if (memchr(s, ',', (size_t)(end - s)) != NULL || memchr(s, ';', (size_t)(end - s)) != NULL || end[-1 - has_hydrogen] != '@')
        return -1;
    return has_hydrogen ? 3 : 4;
}

/* Of the atom in brackets from s to end; others are the neighbours that the pattern gives it. */
static const char *atom_fault(const char *s, const char *end, int others)
{
    const char *fault = NULL;
    const char *const begin = s;
    bool has_mark = false;

    if (is_heavy_hydrogen(s, end))
        return "[2H] and [3H] would be atoms with a hydrogen; write [2#1] and [3#1] for hydrogen of that mass";
    if (is_charged_hydrogen(s, end))
        return "[H+] and [H-] would be charged atoms with a hydrogen; write [#1+] and [#1-] for the ions of hydrogen";
    while (s < end && fault == NULL) {
        const char *next = s + 1;
        has_mark = has_mark || *s == '@';
        if (*s == '$' && next < end && *next == '(') {
            next = behind(s + 1, end, '(', ')');
            fault = pattern_fault(s + 2, next - 1);
        }
        s = next;
    }
    if (fault == NULL && has_mark && neighbours_needed(begin, end) != others)
        fault =
            "the mark @ is compared only in [C@H] with three neighbours in the pattern, and in [C@] with four; write it so, or leave "
            "it out, and both forms match";
    return fault;
}

static const char *pattern_fault(const char *s, const char *end)
{
    const char *fault = NULL;
    bool first = true;

    while (s < end && fault == NULL) {
        const char *next = s + 1;
        if (*s == '[') {
            next = behind(s, end, '[', ']');
            fault = atom_fault(s + 1, next - 1, !first + neighbours_behind(next, end));
        }
        first = first && *s != '[' && *s != '*' && !isalpha((unsigned char)*s);
        s = next;
    }
    return fault;
}

const char *ch_smarts_fault(const char *smarts, size_t n)
{
    if (n > CH_SMARTS_MAX)
        return "it has more than 10000 characters";
    if (memchr(smarts, '/', n) != NULL || memchr(smarts, '\\', n) != NULL)
        return "the marks / and \\ of a double bond cannot be compared; leave them out, and both of its forms match";
    if (memchr(smarts, '.', n) != NULL)
        return "parts that are joined by a dot cannot be compared; use a pattern for each part";
    return pattern_fault(smarts, smarts + n);
}
