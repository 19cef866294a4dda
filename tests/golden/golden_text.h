/* tests/golden/golden_text.h - compares a text that a test makes with a stored file.
 *
 * Lines are compared word by word. A word such as E~12.5 is a number that may differ by 2 % or 0.05, and E@12.5 one that may differ
 * by a millionth or 0.0005, as C libraries and processors differ. MOLSIEVE_WRITE=1 writes the files instead of comparing;
 * look at the difference then. Include this once. */
#ifndef GOLDEN_TEXT_H
#define GOLDEN_TEXT_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"

/* Whether the words are alike up to a mark, and nothing but numbers that are near stands behind it (the @ of a SMILES is no mark). */
static bool golden_near(const char *a, size_t n, const char *b, size_t m, char mark, double apart, double share)
{
    const char *x = memchr(a, mark, n), *y = memchr(b, mark, m);
    char *p_end, *q_end;
    double p, q;

    if (x == NULL || y == NULL || x - a != y - b || memcmp(a, b, (size_t)(x - a)) != 0)
        return false;
    p = strtod(x + 1, &p_end);
    q = strtod(y + 1, &q_end);
    if (p_end != a + n || q_end != b + m || p_end == x + 1 || q_end == y + 1)
        return false;
    return (isnan(p) && isnan(q)) || fabs(p - q) <= apart + share * fabs(q);
}

static bool golden_word_same(const char *a, size_t n, const char *b, size_t m)
{
    return (n == m && memcmp(a, b, n) == 0) || golden_near(a, n, b, m, '~', 0.05, 0.02) ||
           golden_near(a, n, b, m, '@', 0.0005, 1e-6);
}

static bool golden_line_same(const char *a, size_t n, const char *b, size_t m)
{
    while (n > 0 || m > 0) {
        const char *p = memchr(a, ' ', n), *q = memchr(b, ' ', m);
        size_t i = p != NULL ? (size_t)(p - a) : n, j = q != NULL ? (size_t)(q - b) : m;
        if (!golden_word_same(a, i, b, j) || (p == NULL) != (q == NULL))
            return false;
        i += p != NULL;
        j += q != NULL;
        a += i, n -= i, b += j, m -= j;
    }
    return true;
}

static void golden_compare(const char *path, const char *got, const char *want)
{
    char where[200] = "";
    int line = 1;

    for (; *got != '\0' || *want != '\0'; line++) {
        size_t n = strcspn(got, "\n"), m = strcspn(want, "\n");
        if (!golden_line_same(got, n, want, m))
            fail_msg("%s, line %d, in %s:\n%.*s\nshould be\n%.*s", path, line, where, (int)n, got, (int)m, want);
        if (n > 3 && memcmp(got, "== ", 3) == 0)
            (void)snprintf(where, sizeof where, "%.*s", (int)n, got + 3);
        got += n + (got[n] == '\n');
        want += m + (want[m] == '\n');
    }
}

/* text: whole lines; it is freed here. */
static void golden_check(const char *path, pl_text *text)
{
    const bool write = getenv("MOLSIEVE_WRITE") != NULL;
    FILE *f = fopen(path, write ? "wb" : "rb");
    char *want = calloc(1, 4u << 20);

    assert_true(pl_text_ok(text) && f != NULL && want != NULL);
    if (write)
        assert_int_equal(fwrite(text->s, 1, text->len, f), text->len);
    else
        want[fread(want, 1, (4u << 20) - 1, f)] = '\0';
    assert_int_equal(fclose(f), 0);
    if (!write)
        golden_compare(path, pl_text_str(text), want);
    free(want);
    pl_text_free(text);
}

/* Bytes as one line of ASCII, at most `most` of them. */
static inline void golden_bytes(pl_text *out, const char *s, size_t n, size_t max)
{
    for (size_t i = 0; i < n && i < max; i++)
        if (s[i] == '\n')
            pl_text_add(out, "\\n");
        else if (s[i] < ' ' || s[i] == '\\' || s[i] == 127)
            pl_text_addf(out, "\\x%02x", (unsigned)(unsigned char)s[i]);
        else
            pl_text_add_n(out, &s[i], 1);
    if (n > max)
        pl_text_addf(out, "... %zu bytes", n);
}

#endif
