/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/report/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Number of bytes of a UTF-8 character that begins with `first`; 0: none begins so. */
static int bytes_after(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first < 0xe0)
        return 2;
    if ((first & 0xf0) == 0xe0)
        return 3;
    return (first & 0xf8) == 0xf0 ? 4 : 0;
}

/* Number of bytes of the character at s, and its code point; 0: not UTF-8. */
static int decode(const unsigned char *s, uint32_t *c)
{
    static const uint32_t min[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    int n = bytes_after(s[0]);

    *c = n > 1 ? s[0] & (0xffu >> (n + 1)) : s[0];
    if (n == 0)
        *c = 0;
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *c = *c << 6 | (s[i] & 0x3f);
    }
    return n > 0 && *c >= min[n] && *c <= 0x10ffff && !(*c >= 0xd800 && *c < 0xe000) ? n : 0;
}

static bool unfit(uint32_t c)
{
    return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x2028 || c == 0x2029 || (c & 0xfffe) == 0xfffe;
}

static const char *entity(uint32_t c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

/* Adds the first max characters; true: that was the whole text. */
static bool add(pl_text *out, const char *s, long max)
{
    const unsigned char *p = (const unsigned char *)s;

    for (; *p != '\0' && max > 0; max--) {
        uint32_t c;
        int n = decode(p, &c);
        if (n == 0 || unfit(c))
            pl_text_add(out, "\xef\xbf\xbd");
        else if (entity(c) != NULL)
            pl_text_add(out, entity(c));
        else
            pl_text_add_n(out, (const char *)p, (size_t)n);
        p += n > 0 ? n : 1;
    }
    return *p == '\0';
}

void st_html_add(pl_text *out, const char *s)
{
    if (s != NULL)
        (void)add(out, s, (long)strlen(s));
}

void st_html_cut(pl_text *out, const char *s, int max)
{
    if (s != NULL && !add(out, s, max))
        pl_text_add(out, "\xe2\x80\xa6");
}

void st_html_real(pl_text *out, double x, int digits)
{
    char full[32], text[32];

    if (x > -1e15 && x < 1e15 && (x >= 1e4 || x <= -1e4))
        (void)pl_count_str(llround(x), text);
    else
        (void)pl_digits_str(x, digits, text);
    pl_text_addf(out, "<data value=\"%s\">%s</data>", pl_real_str(x, full), strcmp(text, "-0") == 0 ? "0" : text);
}

void st_html_count(pl_text *out, int64_t n)
{
    char text[32];

    pl_text_addf(out, "<data value=\"%lld\">%s</data>", (long long)n, pl_count_str(n, text));
}
