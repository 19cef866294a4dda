/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: a header row, then one molecule per row. Quotes as in RFC 4180. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/molecule/valence.h"
#include "chem/records/csv_delimiter.h"
#include "chem/records/cxsmiles.h"
#include "chem/records/record_parts.h"

enum { QUOTED_LINES_MAX = 100 };

/* Blanks before a quote are no part of the value, and the quote begins it. */
static const char *past_blanks(const char *s, const char *end, char delimiter)
{
    const char *from = s;

    while (from < end && *from != delimiter && ch_line_blank(from, 1))
        from++;
    return from < end && *from == '"' ? from : s;
}

bool ch_csv_field(const char **at, const char *end, char delimiter, pl_text *out, ch_quote *quote)
{
    const char *s = *at;
    bool quoted;

    *quote = CH_QUOTE_GOOD;
    out->len = 0; /* not pl_text_reset: that a value was refused stays known beyond the next one */
    if (out->s != NULL)
        out->s[0] = '\0';
    if (s > end)
        return false;
    s = past_blanks(s, end, delimiter);
    quoted = s < end && *s == '"';
    if (quoted) {
        *quote = CH_QUOTE_OPEN;
        for (s++; s < end && *quote == CH_QUOTE_OPEN; s++) {
            if (*s == '"' && s + 1 < end && s[1] == '"')
                pl_text_add_n(out, s++, 1);
            else if (*s == '"')
                *quote = CH_QUOTE_GOOD;
            else
                pl_text_add_n(out, s, 1);
        }
    }
    for (; s < end && *s != delimiter; s++) {
        if (quoted && !ch_line_blank(s, 1))
            *quote = CH_QUOTE_LOOSE;
        pl_text_add_n(out, s, 1);
    }
    *at = s + 1; /* beyond the end after the last field */
    return true;
}

/* The quote state of a whole row: OPEN if a field is open, else LOOSE if one is. */
static ch_quote quotes_of(const ch_reader *r, pl_text *field)
{
    const char *at = r->raw.s, *end = r->raw.s + r->raw.len;
    ch_quote one = CH_QUOTE_GOOD, all = CH_QUOTE_GOOD;

    while (one != CH_QUOTE_OPEN && ch_csv_field(&at, end, r->delimiter, field, &one))
        all = one == CH_QUOTE_GOOD ? all : one;
    return all;
}

/* Appends lines while a quote is open. A quote that is never closed costs only its own line: the lines after it are
 * read again. The same holds if it seems to be closed by the start of another quote lines later: then text follows it. */
static pl_code read_quoted(ch_reader *r, const ch_line *first, pl_text *field, pl_error *err)
{
    const size_t first_len = r->raw.len;
    const int64_t first_number = first->number;
    int64_t second_offset = -1;
    ch_quote how = quotes_of(r, field);
    bool more = true;

    for (int i = 0; i < QUOTED_LINES_MAX && how == CH_QUOTE_OPEN; i++) {
        ch_line line;
        pl_code code = ch_source_line(r->src, &line, &more, err);
        if (code != PL_OK)
            return code;
        if (more && second_offset < 0)
            second_offset = line.offset;
        if (!more || r->raw.len + line.len > r->limit)
            break;
        pl_text_add_n(&r->raw, "\n", 1);
        pl_text_add_n(&r->raw, line.s, line.len);
        how = quotes_of(r, field);
    }
    if (how == CH_QUOTE_LOOSE && second_offset < 0)
        ch_reader_set_problem(r, "csv: text behind a closing quote; a quote within quotes is written twice");
    if (how == CH_QUOTE_GOOD || (how == CH_QUOTE_LOOSE && second_offset < 0))
        return PL_OK;
    r->raw.len = first_len;
    r->raw.s[first_len] = '\0';
    ch_reader_set_problem(r, "csv: a quote that is not closed");
    return second_offset < 0 ? PL_OK : ch_source_seek(r->src, second_offset, first_number + 1, err);
}

/* Reads one row into r->raw, without line end. */
static pl_code read_row(ch_reader *r, bool *more, pl_error *err)
{
    pl_text field = { 0 };
    ch_line line;
    pl_code code;

    do
        code = ch_source_line(r->src, &line, more, err);
    while (code == PL_OK && *more && ch_line_blank(line.s, line.len));
    if (code != PL_OK || !*more)
        return code;
    ch_reader_begin(r, &line);
    r->has_raw = true;
    pl_text_add_n(&r->raw, line.s, line.len);
    if (line.whole > line.len)
        r->dropped = line.whole - line.len;
    else if (memchr(line.s, '"', line.len) != NULL)
        code = read_quoted(r, &line, &field, err);
    if (code == PL_OK && !(pl_text_ok(&field) && pl_text_ok(&r->raw)))
        code = pl_fail(err, PL_ENOMEM, "%s:%lld", r->path, (long long)r->line);
    pl_text_free(&field);
    return code;
}

/* Reads past the line that names the delimiter. */
static pl_code said_take(ch_reader *r, char said, pl_error *err)
{
    ch_line line;
    bool more = true;
    pl_code code;

    do
        code = ch_source_line(r->src, &line, &more, err);
    while (code == PL_OK && more && ch_line_blank(line.s, line.len));
    if (code != PL_OK)
        return code;
    r->delimiter = said;
    return strchr(",;\t|", said) != NULL
               ? PL_OK
               : pl_fail(err, PL_ECONFIG, "%s:%lld: \"sep=%c\": values are separated by a comma, a semicolon, a tab or |", r->path,
                         (long long)line.number, said);
}

/* Chooses the delimiter by the row of names before that is read, because quotes may extend beyond its line. */
static pl_code find_delimiter(ch_reader *r, pl_error *err)
{
    const bool tabs = strcmp(r->format->name, "tsv") == 0;
    const char *s;
    size_t n;
    char said, found;
    pl_code code = ch_source_peek(r->src, &s, &n, err);

    if (code != PL_OK)
        return code;
    said = ch_delimiter_said(s, n);
    if (said != '\0')
        return said_take(r, said, err);
    found = '\t';
    if (!tabs)
        found = ch_delimiter_find(s, n);
    r->delimiter = ',';
    if (found != '\0')
        r->delimiter = found;
    return PL_OK;
}

/* Room for one more name. */
static bool grow_columns(ch_reader *r)
{
    char **more = realloc(r->columns, ((size_t)r->n_columns + 1) * sizeof *more);

    r->columns = more != NULL ? more : r->columns;
    return more != NULL;
}

static pl_code split_header(ch_reader *r, pl_error *err)
{
    const char *at = pl_text_str(&r->raw), *end = at + r->raw.len;
    pl_text field = { 0 };
    ch_quote quote;
    pl_code code = PL_OK;

    while (code == PL_OK && ch_csv_field(&at, end, r->delimiter, &field, &quote)) {
        const char *s = pl_text_str(&field);
        size_t n = strlen(s);
        while (n > 0 && ch_line_blank(s + n - 1, 1))
            n--;
        while (n > 0 && ch_line_blank(s, 1))
            s++, n--;
        char *name = grow_columns(r) ? strndup(s, n) : NULL;
        if (name != NULL)
            r->columns[r->n_columns++] = name;
        if (name == NULL || !pl_text_ok(&field))
            code = pl_fail(err, PL_ENOMEM, "%s", r->path);
    }
    pl_text_free(&field);
    return code;
}

typedef int same_name(const char *a, const char *b); /* 0 if so, as strcmp */

/* The first column of that name, -1: none; *other: the second one. */
static int column_named(const ch_reader *r, const char *name, same_name *compare, int *other)
{
    int found = -1;

    *other = -1;
    for (int i = r->n_columns - 1; i >= 0; i--)
        if (compare(r->columns[i], name) == 0) {
            *other = found;
            found = i;
        }
    return found;
}

/* Which of two columns gives all molecules, or their titles, must not be a guess. */
static pl_code one_only(const ch_reader *r, int found, int other, const char *what, pl_error *err)
{
    if (other < 0)
        return PL_OK;
    return pl_fail(err, PL_ECONFIG, "%s:%lld: columns %d (\"%.60s\") and %d (\"%.60s\") may both be the %s; rename one of them",
                   r->path, (long long)r->line, found + 1, r->columns[found], other + 1, r->columns[other], what);
}

/* The first name that a column has, in any letter case; -1: none. */
static pl_code column_of(int *out, const ch_reader *r, const char *const *names, int n, const char *what, pl_error *err)
{
    int other = -1;

    *out = -1;
    for (int i = 0; i < n && *out < 0; i++)
        *out = column_named(r, names[i], strcasecmp, &other);
    return one_only(r, *out, other, what, err);
}

/* The only column with the word in its name; -1: there is none, or several, or the name may be several in a table with another
 * delimiter. */
static int column_with(const ch_reader *r, const char *word)
{
    int found = -1, n = 0;

    for (int i = 0; i < r->n_columns; i++)
        if (strcasestr(r->columns[i], word) != NULL) {
            found = i;
            n++;
        }
    return n == 1 && strpbrk(r->columns[found], ",;|") == NULL ? found : -1;
}

/* Finds a column by name, else by number from 1. */
static pl_code column_asked(int *out, const ch_reader *r, const char *name, const char *what, pl_error *err)
{
    int64_t number;
    int other = -1;
    pl_text all = { 0 };
    pl_code code;

    *out = column_named(r, name, strcmp, &other);
    if (*out < 0)
        *out = column_named(r, name, strcasecmp, &other);
    if (*out >= 0)
        return one_only(r, *out, other, what, err);
    if (pl_parse_int(name, &number) && number >= 1 && number <= r->n_columns) {
        *out = (int)number - 1;
        return PL_OK;
    }
    for (int i = 0; i < r->n_columns; i++)
        pl_text_addf(&all, "%s%s", i ? ", " : "", r->columns[i]);
    code = pl_fail(err, PL_ECONFIG, "%s: no column \"%s\" for the %s; there are: %.300s", r->path, name, what, pl_text_str(&all));
    pl_text_free(&all);
    return code;
}

/* "CCO", "c1ccccc1"; but "S1" has a ring without an end, and "no" and "pos" are words. */
static bool may_be_molecule(const char *name)
{
    int of_ring[10] = { 0 };
    bool sure = false, whole = true, inside = false;

    for (const char *s = name; *s != '\0'; s++) {
        inside = *s == '[' || (inside && *s != ']');
        if (isdigit((unsigned char)*s) && !inside)
            of_ring[*s - '0']++;
        sure = sure || isupper((unsigned char)*s) || isdigit((unsigned char)*s);
    }
    for (int k = 0; k < 10; k++)
        whole = whole && of_ring[k] % 2 == 0;
    return sure && whole;
}

pl_code ch_reader_headed(const ch_reader *r, const char *column, pl_error *err)
{
    int32_t valences = -1;
    pl_code code = may_be_molecule(column) ? ch_smiles_free_valences(&valences, column, err) : PL_OK;

    if (code == PL_OK && valences >= 0)
        code = pl_fail(err, PL_ECONFIG,
                       "%s: the first row has to name the columns, but it has a molecule: the column with SMILES is called "
                       "\"%.60s\"; put a row such as smiles,name before it",
                       r->path, column);
    return code;
}

static pl_code find_smiles(ch_reader *r, const ch_reader_opts *opts, pl_error *err)
{
    static const char *const names[] = { "smiles", "canonical_smiles", "SMILES_string", "mol", "structure" };
    pl_code code;

    if (opts->smiles_column != NULL)
        return column_asked(&r->smiles_column, r, opts->smiles_column, "SMILES", err);
    code = column_of(&r->smiles_column, r, names, sizeof names / sizeof *names, "SMILES", err);
    if (code != PL_OK || r->smiles_column >= 0 || (r->smiles_column = column_with(r, "smiles")) >= 0)
        return code;
    r->smiles_column = 0;
    r->smiles_guessed = true;
    return opts->smiles_later ? PL_OK : ch_reader_headed(r, r->columns[0], err);
}

static pl_code find_title(ch_reader *r, const ch_reader_opts *opts, pl_error *err)
{
    static const char *const names[] = { "id",        "name",    "title",       "mol_id", "molecule_id", "compound",
                                         "chembl_id", "zinc_id", "compound id", "cid",    "num" };

    return opts->title_column != NULL ? column_asked(&r->title_column, r, opts->title_column, "title", err)
                                      : column_of(&r->title_column, r, names, sizeof names / sizeof *names, "title", err);
}

pl_code ch_begin_csv(ch_reader *r, const ch_reader_opts *opts, pl_error *err)
{
    bool more;
    pl_code code = find_delimiter(r, err);

    if (code == PL_OK)
        code = read_row(r, &more, err);
    if (code != PL_OK || !more)
        return code; /* an empty file: no columns and no records */
    if (r->dropped > 0)
        return pl_fail(err, PL_ECONFIG, "%s: the first row, which names the columns, is longer than %zu bytes", r->path, r->limit);
    if (r->problem.len > 0)
        return pl_fail(err, PL_ECONFIG, "%s:%lld: the row of names: %s", r->path, (long long)r->line, r->problem.s);
    code = split_header(r, err);
    if (code == PL_OK)
        code = find_smiles(r, opts, err);
    return code == PL_OK ? find_title(r, opts, err) : code;
}

/* The first word of a cell is its SMILES; a name or a CXSMILES part may follow, but another line, or "+" and another molecule, would be
 * lost without a word. */
static void take_smiles(ch_reader *r, const char *s, const char *end)
{
    size_t len, n;
    const char *from = ch_word(&s, end, &len), *next, *behind;

    if (from == NULL)
        return;
    pl_text_add_n(&r->text, from, len);
    behind = ch_cx_problem(from, len, s, (size_t)(end - s));
    if (behind != NULL)
        ch_reader_set_problem(r, "%s", behind);
    next = s;
    if (ch_word(&next, end, &n) != NULL && n == 1 && strchr("+/;&,", next[-1]) != NULL)
        ch_reader_set_problem(r, "csv: several molecules in one cell, with '%c' between them", next[-1]);
    while (s < end && *s != '\n' && *s != '\r')
        s++;
    if (ch_word(&s, end, &n) != NULL)
        ch_reader_set_problem(r, "csv: several lines in the column of SMILES");
}

/* A value, without blanks around it, is that name. */
static bool is_named(const char *name, const pl_text *field)
{
    const char *s = pl_text_str(field);
    size_t n = field->len;

    while (n > 0 && ch_line_blank(s + n - 1, 1))
        n--;
    while (n > 0 && ch_line_blank(s, 1))
        s++, n--;
    return n == strlen(name) && memcmp(s, name, n) == 0;
}

/* Tables that were put one behind the other. What follows another row of names is of other columns. A row of names has no number. */
static pl_code look_for_names(ch_reader *r, pl_text *field, pl_error *err)
{
    const char *at = pl_text_str(&r->raw), *end = at + r->raw.len, *smiles = r->columns[r->smiles_column];
    ch_quote quote;
    bool names = false, same = true, numbers = false;
    double number;
    int n = 0;

    if (smiles[0] == '\0' || memmem(at, r->raw.len, smiles, strlen(smiles)) == NULL || may_be_molecule(smiles))
        return PL_OK;
    for (; ch_csv_field(&at, end, r->delimiter, field, &quote); n++) {
        names = names || (n == r->smiles_column && is_named(smiles, field));
        numbers = numbers || ch_word_real(pl_text_str(field), field->len, &number);
        same = same && n < r->n_columns && is_named(r->columns[n], field);
    }
    if (!names || numbers)
        return PL_OK;
    if (!same || n != r->n_columns)
        return pl_fail(err, PL_ECONFIG, "%s:%lld: another row of names: give each table a file of its own", r->path,
                       (long long)r->line);
    ch_reader_set_problem(r, "csv: the row of names once more");
    return PL_OK;
}

/* SMILES and title of the row, separated by a tab, as the SMILES reader expects them. A value beyond the last named column means
 * that the row was misread, for example 1,5 as two values. */
static void take_molecule(ch_reader *r, pl_text *field)
{
    const char *at = pl_text_str(&r->raw), *end = at + r->raw.len;
    ch_quote quote;
    int n = 0, used = 0;

    for (; ch_csv_field(&at, end, r->delimiter, field, &quote); n++) {
        const char *s = pl_text_str(field);
        if (!ch_line_blank(s, field->len))
            used = n + 1;
        if (n == r->title_column)
            ch_reader_set_title(r, s, field->len);
        if (n == r->smiles_column)
            take_smiles(r, s, s + field->len);
    }
    r->is_short = n < r->n_columns;
    if (n <= r->smiles_column)
        ch_reader_set_problem(r, "csv: %d columns, and the SMILES is in column %d", n, r->smiles_column + 1);
    else if (used > r->n_columns)
        ch_reader_set_problem(r, "csv: %d columns, but the first row names %d; put values with '%c' in quotes", used, r->n_columns,
                              r->delimiter);
    else if (r->text.len == 0)
        ch_reader_set_problem(r, "%s", CH_NO_SMILES);
    pl_text_add_n(&r->text, "\t", 1);
    pl_text_add_n(&r->text, pl_text_str(&r->title), r->title.len);
}

pl_code ch_next_csv(ch_reader *r, bool *more, pl_error *err)
{
    pl_text field = { 0 };
    pl_code code;

    *more = false;
    if (r->n_columns == 0)
        return PL_OK;
    code = read_row(r, more, err);
    if (code != PL_OK || !*more)
        return code;
    if (r->dropped == 0 && r->problem.len == 0)
        code = look_for_names(r, &field, err);
    if (code == PL_OK && r->dropped == 0 && r->problem.len == 0)
        take_molecule(r, &field);
    if (code == PL_OK && !pl_text_ok(&field))
        code = pl_fail(err, PL_ENOMEM, "%s:%lld", r->path, (long long)r->line);
    pl_text_free(&field);
    return code;
}
