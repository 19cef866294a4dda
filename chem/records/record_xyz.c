/* SPDX-License-Identifier: Apache-2.0 */
/* xyz: a count, a comment, count atoms. Also QM9's original files, and exponents as Mathematica prints them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/records/record_parts.h"

enum { WORD_MAX = 64 };

bool ch_line_is_count(const char *s, size_t n, long *count)
{
    const char *at = s, *word;
    char digits[20];
    size_t len, rest;

    word = ch_word(&at, s + n, &len);
    if (word == NULL || len >= sizeof digits || ch_word(&at, s + n, &rest) != NULL)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isdigit((unsigned char)word[i]))
            return false;
    memcpy(digits, word, len);
    digits[len] = '\0';
    *count = strtol(digits, NULL, 10);
    return true;
}

/* "2.1997*^-6" to "2.1997e-6" in `out`; false when it does not fit. */
static bool plain_exponent(const char *s, size_t n, char out[WORD_MAX])
{
    size_t m = 0;

    if (n >= WORD_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '*' && i + 1 < n && s[i + 1] == '^') {
            out[m++] = 'e';
            i++;
        } else {
            out[m++] = s[i];
        }
    }
    out[m] = '\0';
    return strlen(out) == m;
}

bool ch_word_real(const char *s, size_t n, double *out)
{
    char plain[WORD_MAX];

    if (!plain_exponent(s, n, plain))
        return false;
    return pl_parse_real(plain, out);
}

/* Symbol or atomic number, x, y, z: rewritten without further columns. */
static bool add_atom(ch_reader *r, const ch_line *line)
{
    const char *at = line->s, *end = line->s + line->len;
    char plain[WORD_MAX];
    const size_t before = r->text.len;

    for (int i = 0; i < 4; i++) {
        size_t n;
        const char *word = ch_word(&at, end, &n);
        double x;

        if (word == NULL || !plain_exponent(word, n, plain) || (i > 0 && !ch_word_real(word, n, &x))) {
            r->text.len = before;
            if (r->text.s != NULL)
                r->text.s[before] = '\0';
            return false;
        }
        pl_text_add(&r->text, plain);
        pl_text_add(&r->text, i < 3 ? " " : "\n");
    }
    return true;
}

static void add_raw(ch_reader *r, const ch_line *line)
{
    r->has_raw = true;
    if (r->dropped > 0 || line->len < line->whole || r->raw.len + line->len > r->limit) {
        r->dropped += line->whole + 1;
        return;
    }
    pl_text_add_n(&r->raw, line->s, line->len);
    pl_text_add_n(&r->raw, "\n", 1);
}

static bool comment_is_qm9(const ch_line *line) { return ch_line_starts(line, "gdb ") || ch_line_starts(line, "gdb\t"); }

/* Extended xyz may say that positions are not in columns 2 to 4. */
static void check_columns(ch_reader *r, const ch_line *line)
{
    const char *at = memmem(line->s, line->len, "Properties=", 11);

    if (at != NULL && strncasecmp(at + 11, "species:S:1:pos:R:3", 19) != 0)
        ch_reader_set_problem(r, "xyz: columns other than species:S:1:pos:R:3 first are not understood");
}

/* The title: "gdb 212" of QM9, the first word of extended xyz, else the whole comment. */
static void set_comment(ch_reader *r, const ch_line *line)
{
    const char *at = line->s, *end = line->s + line->len, *word;
    size_t n = 0;

    if (comment_is_qm9(line)) {
        (void)ch_word(&at, end, &n);
        (void)ch_word(&at, end, &n);
        ch_reader_set_title(r, line->s, (size_t)(at - line->s));
    } else if (memchr(line->s, '=', line->len) != NULL) {
        word = ch_word(&at, end, &n);
        ch_reader_set_title(r, line->s, word != NULL && memchr(word, '=', n) == NULL ? (size_t)(at - line->s) : 0);
        check_columns(r, line);
    } else {
        ch_reader_set_title(r, line->s, line->len);
    }
    if (comment_is_qm9(line))
        pl_text_add_n(&r->text, r->title.len ? r->title.s : "", r->title.len);
    else
        pl_text_add_n(&r->text, line->s, line->len); /* all of it: the worker looks for a charge */
    pl_text_add(&r->text, "\n");
}

/* A symbol or an atomic number, and three numbers. */
static bool is_atom(const ch_line *line)
{
    const char *at = line->s, *end = line->s + line->len, *word;
    double x;
    size_t n, numbers = 0;

    word = ch_word(&at, end, &n);
    if (word == NULL || memchr(word, '.', n) != NULL)
        return false;
    while (numbers < 3 && (word = ch_word(&at, end, &n)) != NULL && ch_word_real(word, n, &x))
        numbers++;
    return numbers == 3;
}

/* Skips lines up to the next count: QM9's frequencies and names, or other text. */
static pl_code read_tail(ch_reader *r, bool is_qm9, bool wanted, pl_error *err)
{
    for (;;) {
        ch_line line;
        bool more;
        long n;
        pl_code code = ch_source_line(r->src, &line, &more, err);

        if (code != PL_OK || !more)
            return code;
        if (!wanted && !is_qm9 && is_atom(&line)) {
            ch_reader_set_problem(r, "xyz: line %lld is one atom more than the record announces", (long long)line.number);
            wanted = true;
        }
        if (ch_line_is_count(line.s, line.len, &n) || (!wanted && !is_qm9 && !ch_line_blank(line.s, line.len))) {
            ch_source_unread(r->src);
            return PL_OK;
        }
        if (is_qm9 || wanted)
            add_raw(r, &line);
    }
}

static pl_code read_atoms(ch_reader *r, long count, pl_error *err)
{
    for (long i = 0; i < count; i++) {
        ch_line line;
        bool more;
        pl_code code = ch_source_line(r->src, &line, &more, err);

        if (code != PL_OK)
            return code;
        if (!more) {
            ch_reader_set_problem(r, "xyz: %ld atoms announced, %ld found", count, i);
            return PL_OK;
        }
        if (r->dropped == 0 && !add_atom(r, &line)) {
            ch_source_unread(r->src);
            ch_reader_set_problem(r, "xyz: line %lld is not an atom (%ld announced, %ld found)", (long long)line.number, count, i);
            return read_tail(r, false, true, err);
        }
        add_raw(r, &line);
    }
    return PL_OK;
}

/* The first line that is not blank. */
static pl_code first_line(ch_reader *r, ch_line *line, bool *more, pl_error *err)
{
    pl_code code;

    do
        code = ch_source_line(r->src, line, more, err);
    while (code == PL_OK && *more && ch_line_blank(line->s, line->len));
    return code;
}

pl_code ch_next_xyz(ch_reader *r, bool *more, pl_error *err)
{
    ch_line line;
    bool has_comment;
    long count;
    pl_code code = first_line(r, &line, more, err);

    if (code != PL_OK || !*more)
        return code;
    ch_reader_begin(r, &line);
    add_raw(r, &line);
    if (!ch_line_is_count(line.s, line.len, &count)) {
        ch_reader_set_problem(r, "xyz: line %lld is not a count of atoms", (long long)line.number);
        return read_tail(r, false, true, err);
    }
    pl_text_addf(&r->text, "%ld\n", count);
    code = ch_source_line(r->src, &line, &has_comment, err);
    if (code != PL_OK)
        return code;
    if (!has_comment) {
        ch_reader_set_problem(r, "xyz: nothing after the count of atoms");
        return PL_OK;
    }
    add_raw(r, &line);
    set_comment(r, &line);
    r->is_qm9 = comment_is_qm9(&line);
    code = read_atoms(r, count, err);
    if (code == PL_OK && r->problem.len == 0)
        code = read_tail(r, r->is_qm9, false, err);
    return code;
}
