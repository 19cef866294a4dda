/* SPDX-License-Identifier: Apache-2.0 */
/* Texts from outside: which bytes are UTF-8 and which characters control a terminal, by code points instead of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/base/text.h"

enum { LAST = 0x10FFFF, ROOM = 64 };

/* Bytes of a code point: the shortest form of n bits. */
static size_t encode(uint32_t c, char out[5])
{
    const size_t n = 1 + (c >= 0x80) + (c >= 0x800) + (c >= 0x10000);
    static const unsigned char first[] = { 0, 0, 0xC0, 0xE0, 0xF0 };

    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(first[n] | c);
    out[n] = '\0';
    return n;
}

static bool is_surrogate(uint32_t c) { return c >= 0xD800 && c <= 0xDFFF; }

static bool controls(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x61C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
           (c >= 0x2066 && c <= 0x2069);
}

static void clean_is(const char *s, size_t n, const char *want)
{
    pl_text t = { 0 };

    pl_text_add_clean(&t, s, n, ROOM);
    if (strcmp(pl_text_str(&t), want) != 0)
        fail_msg("%02x %02x %02x %02x: '%s', '%s' wanted", (unsigned char)s[0], (unsigned char)s[1], (unsigned char)s[2],
                 (unsigned char)s[3], pl_text_str(&t), want);
    pl_text_free(&t);
}

static void each_code_point_is_kept_or_a_space(void **state)
{
    (void)state;
    for (uint32_t c = 1; c <= LAST; c++) {
        char s[8] = "", line[8], spaces[] = "    ";
        const size_t n = encode(c, s);

        if (is_surrogate(c))
            continue;
        clean_is(s, n, controls(c) ? " " : s);
        memcpy(line, s, sizeof line);
        pl_clean_line(line);
        spaces[n] = '\0';
        assert_string_equal(line, controls(c) ? spaces : s);
    }
}

/* The code point whose one form in UTF-8 the first n bytes are, found by reading and writing it; -1: they are none. */
static int32_t decode(const char *s, size_t *n)
{
    const unsigned char first = (unsigned char)s[0];
    static const unsigned char bits[] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
    uint32_t c;
    char again[5];

    *n = 1 + (size_t)(first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0);
    c = first & bits[*n];
    for (size_t i = 1; i < *n; i++)
        c = c << 6 | ((unsigned char)s[i] & 0x3FU);
    if (first > 0xF7 || (first >= 0x80 && first < 0xC0) || c > LAST || is_surrogate(c) || encode(c, again) != *n)
        return -1;
    return memcmp(again, s, *n) == 0 ? (int32_t)c : -1;
}

/* What pl_clean_line makes of s, which ends with 4 zeros. */
static void cleaned(char *out, const char *s)
{
    for (size_t n; *s != '\0'; s += n, out += n) {
        const int32_t c = decode(s, &n);
        n = c < 0 ? 1 : n;
        memcpy(out, s, n);
        if (c < 0 || controls((uint32_t)c))
            memset(out, c < 0 ? '?' : ' ', n);
    }
    *out = '\0';
}

static void other_bytes_are_replaced_one_by_one(void **state)
{
    static const char ends[][2] = { { '\x80', '\x80' }, { '\xBF', '\xBF' }, { 'A', 'B' }, { '\x80', 'B' }, { '\xC3', '\x84' } };

    (void)state;
    for (int first = 0x80; first <= 0xFF; first++)
        for (int second = 1; second <= 0xFF; second++)
            for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
                const char s[9] = { (char)first, (char)second, ends[e][0], ends[e][1] };
                char line[9], want[9];

                memcpy(line, s, sizeof line);
                pl_clean_line(line);
                cleaned(want, s);
                assert_string_equal(line, want);
            }
}

static void a_sequence_that_the_end_cuts_is_none(void **state)
{
    (void)state;
    clean_is("\xC3\xA9", 1, "\xEF\xBF\xBD");
    clean_is("\xE2\x82\xAC", 2, "\xEF\xBF\xBD\xEF\xBF\xBD");
    clean_is("\xF4\x8F\xBF\xBF", 4, "\xF4\x8F\xBF\xBF");
    clean_is("\xF4\x8F\xBF\xBF", 3, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

static void json_escapes_what_controls(void **state)
{
    (void)state;
    for (uint32_t c = 1; c <= LAST; c += c < 0x3000 ? 1 : 0x101) {
        char s[8] = "", want[16];
        pl_text t = { 0 };

        if (is_surrogate(c))
            continue;
        (void)encode(c, s);
        (void)snprintf(want, sizeof want, "\"%s%s\"", c == '"' || c == '\\' ? "\\" : "", s);
        if (controls(c))
            (void)snprintf(want, sizeof want, "\"\\u%04x\"", (unsigned)c);
        pl_text_add_json(&t, s);
        assert_string_equal(pl_text_str(&t), want);
        pl_text_free(&t);
    }
}

static void an_ending_is_told_from_what_is_like_it(void **state)
{
    (void)state;
    assert_true(pl_ends_with("a.gz", ".gz") && pl_ends_with(".gz", ".gz") && pl_ends_with("a.gz.gz", ".gz") &&
                pl_ends_with("a", ""));
    assert_false(pl_ends_with("a.gz.", ".gz") || pl_ends_with("gz", ".gz") || pl_ends_with("", ".gz") ||
                 pl_ends_with("a.gx", ".gz"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_code_point_is_kept_or_a_space),     cmocka_unit_test(other_bytes_are_replaced_one_by_one),
        cmocka_unit_test(a_sequence_that_the_end_cuts_is_none),   cmocka_unit_test(json_escapes_what_controls),
        cmocka_unit_test(an_ending_is_told_from_what_is_like_it),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
