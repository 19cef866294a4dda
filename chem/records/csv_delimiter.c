/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/records/csv_delimiter.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_blank(char c) { return isspace((unsigned char)c) != 0; }
static bool ends_line(const char *s, const char *end) { return s >= end || *s == '\n' || *s == '\r'; }

static const char *past_mark(const char *s, const char *end)
{
    return end - s >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0 ? s + 3 : s;
}

static const char *past_blank_lines(const char *s, const char *end)
{
    const char *line = s;

    for (; s < end && is_blank(*s); s++)
        if (*s == '\n' || *s == '\r')
            line = s + 1;
    return line;
}

char ch_delimiter_said(const char *s, size_t n)
{
    const char *end = s + n;
    bool quoted;
    char sign;

    s = past_blank_lines(past_mark(s, end), end);
    quoted = s < end && *s == '"';
    s += quoted;
    if (end - s < 5 || strncasecmp(s, "sep=", 4) != 0 || ends_line(s + 4, end))
        return '\0';
    sign = s[4];
    s += 5;
    if (quoted && (s >= end || *s++ != '"'))
        return '\0';
    if (!ends_line(s, end))
        return '\0';
    return sign;
}

/* The end of the row of names, which quotes may extend over lines. */
static const char *row_end(const char *s, const char *end)
{
    bool within = false;

    for (; s < end && (within || !ends_line(s, end)); s++)
        within = within != (*s == '"');
    return s;
}

/* Whether the sign is there outside of quotes, and (*named) between it a value "smiles". */
static bool is_there(bool *named, char sign, const char *s, const char *end)
{
    const char *value = s;
    bool within = false, there = false;

    *named = false;
    for (; s <= end; s++) {
        if (s < end && *s == '"')
            within = !within;
        if (s < end && (within || *s != sign))
            continue;
        while (value < s && (is_blank(*value) || *value == '"'))
            value++;
        *named = *named || (s - value >= 6 && strncasecmp(value, "smiles", 6) == 0 &&
                            (value + 6 == s || is_blank(value[6]) || value[6] == '"'));
        there = there || s < end;
        value = s + 1;
    }
    return there;
}

char ch_delimiter_find(const char *s, size_t n)
{
    static const char signs[] = ",;\t";
    const char *end = s + n;
    char found = '\0';

    s = past_blank_lines(past_mark(s, end), end);
    end = row_end(s, end);
    for (const char *sign = signs; *sign != '\0'; sign++) {
        bool named;
        if (!is_there(&named, *sign, s, end))
            continue;
        if (named)
            return *sign;
        if (found == '\0')
            found = *sign;
    }
    return found;
}
