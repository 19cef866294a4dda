/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/records/unit_names.h"

#include <string.h>

const char *ch_unquoted(size_t *n, const char *text)
{
    static const char around[] = "'\" ";

    text += strspn(text, around);
    *n = strlen(text);
    while (*n > 0 && strchr(around, text[*n - 1]) != NULL)
        (*n)--;
    return text;
}

bool ch_is_micro(const char *text) { return strncmp(text, "\xc2\xb5", 2) == 0 || strncmp(text, "\xce\xbc", 2) == 0; }

void ch_unit_plain(char unit[CH_UNIT_BYTES], const char *given)
{
    size_t n, to = 0;
    const char *text = ch_unquoted(&n, given);

    for (size_t i = 0; i < n && to + 1 < CH_UNIT_BYTES; i++) {
        const bool is_micro = ch_is_micro(text + i);
        unit[to] = text[i];
        if (is_micro)
            unit[to] = 'u';
        to++;
        i += is_micro;
    }
    unit[to] = '\0';
}

/* A unit as some write it, and one name for each. */
typedef struct spelling {
    const char *text, *unit;
} spelling;

static const spelling concentrations[] = {
    { "M", "M" },       { "mol/L", "M" },    { "mM", "mM" },        { "mmol/L", "mM" },  { "uM", "uM" },     { "umol/L", "uM" },
    { "nM", "nM" },     { "nmol/L", "nM" },  { "pM", "pM" },        { "pmol/L", "pM" },  { "g/L", "g/L" },   { "mg/mL", "g/L" },
    { "mg/L", "mg/L" }, { "ug/mL", "mg/L" }, { "ug.mL-1", "mg/L" }, { "ng/mL", "ug/L" }, { "ug/L", "ug/L" },
};

/* Of a column or in brackets behind a name: elsewhere these texts mean other things. */
static const spelling others[] = {
    { "%", "%" },
    { "kcal/mol", "kcal/mol" },
    { "kcal.mol-1", "kcal/mol" },
    { "kcal mol-1", "kcal/mol" },
    { "kJ/mol", "kJ/mol" },
    { "kJ.mol-1", "kJ/mol" },
    { "kJ mol-1", "kJ/mol" },
    { "eV", "eV" },
    { "meV", "meV" },
    { "Hartree", "Hartree" },
    { "hartree", "Hartree" },
    { "Ha", "Hartree" },
    { "Eh", "Hartree" },
    { "K", "K" },
    { "C", "C" },
    { "degC", "C" },
    { "deg C", "C" },
    { "\u00b0C", "C" },
    { "F", "F" },
    { "s", "s" },
    { "sec", "s" },
    { "min", "min" },
    { "h", "h" },
    { "hr", "h" },
    { "d", "d" },
    { "mg/kg", "mg/kg" },
    { "ug/kg", "ug/kg" },
    { "mol/kg", "mol/kg" },
    { "mmol/kg", "mmol/kg" },
    { "D", "D" },
    { "Debye", "D" },
    { "cm/s", "cm/s" },
    { "nm/s", "nm/s" },
};

/* NULL: it is none of them. */
static const char *spelled(const spelling *all, size_t n, const char *unit)
{
    for (size_t k = 0; k < n; k++)
        if (strcmp(unit, all[k].text) == 0)
            return all[k].unit;
    return NULL;
}

const char *ch_unit_concentration(const char *text)
{
    char unit[CH_UNIT_BYTES];

    ch_unit_plain(unit, text);
    for (char *s = strchr(unit, '/'); s != NULL && *s != '\0'; s++) /* "mg/ml" */
        *s = (char)(*s == 'l' ? 'L' : *s);
    return spelled(concentrations, sizeof concentrations / sizeof *concentrations, unit);
}

const char *ch_unit_known(const char *text)
{
    const char *unit = ch_unit_concentration(text);
    char plain[CH_UNIT_BYTES];

    ch_unit_plain(plain, text);
    return unit != NULL ? unit : spelled(others, sizeof others / sizeof *others, plain);
}
