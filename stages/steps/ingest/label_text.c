/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/label_text.h"

#include <stdbool.h>
#include <string.h>

#include "pipeline/base/text.h"

/* Digits, a separator, digits. */
static bool is_decimal_comma(const char *s)
{
    static const char digits[] = "0123456789";
    size_t n, after;

    s += *s == '-' || *s == '+';
    n = strspn(s, digits);
    after = s[n] == ',' ? strspn(s + n + 1, digits) : 0;
    return n > 0 && after > 0 && s[n + 1 + after] == '\0';
}

/* "<", ">", "<=", ">=", "~", or the signs for at most and at least, and a number. */
static bool is_limit(const char *s)
{
    static const char *const signs[] = { "<=", ">=", "<", ">", "\xe2\x89\xa4", "\xe2\x89\xa5", "~" };
    double x;

    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strncmp(s, signs[i], strlen(signs[i])) == 0) {
            s += strlen(signs[i]);
            s += strspn(s, " ");
            return pl_parse_real(s, &x) || is_decimal_comma(s);
        }
    return false;
}

st_label_text st_label_text_of(const char *text)
{
    if (is_decimal_comma(text))
        return ST_TEXT_COMMA;
    return is_limit(text) ? ST_TEXT_LIMIT : ST_TEXT_OTHER;
}
