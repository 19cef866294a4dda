/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/database/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/wrap.h"
#include "pipeline/store/store.h"

enum { MAX_COLUMNS = 256, LOOK_AHEAD = 500, FLUSH_BYTES = 1 << 16, NARROWEST = 16 };

pl_code st_format_parse(st_format *out, const char *word, pl_error *err)
{
    static const char *const names[] = { "table", "csv", "json", "jsonl" };

    for (int i = 0; i < 4; i++)
        if (strcmp(names[i], word) == 0) {
            *out = (st_format)i;
            return PL_OK;
        }
    return pl_fail(err, PL_ECONFIG, "'%s' is not a format; allowed: table, csv, json or jsonl", word);
}

const char *st_cell_str(sqlite3_stmt *st, int column, pl_arena *mem)
{
    char buf[32];

    switch (sqlite3_column_type(st, column)) {
    case SQLITE_NULL: return "";
    case SQLITE_FLOAT: return pl_strdup(mem, pl_real_str(sqlite3_column_double(st, column), buf));
    default: return pl_strdup(mem, (const char *)sqlite3_column_text(st, column));
    }
}

void st_csv_add(pl_text *out, const char *s)
{
    if (strpbrk(s, ",\"\r\n") == NULL) {
        pl_text_add(out, s);
        return;
    }
    pl_text_add(out, "\"");
    for (; *s != '\0'; s++)
        pl_text_add_n(out, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
    pl_text_add(out, "\"");
}

void st_csv_end(pl_text *out, size_t start) { pl_text_add(out, out->len == start ? "\"\"\n" : "\n"); }

/* ---- one cell ---- */

static void add_hex(pl_text *out, sqlite3_stmt *st, int i)
{
    const unsigned char *bytes = sqlite3_column_blob(st, i);
    int n = sqlite3_column_bytes(st, i);

    for (int k = 0; k < n; k++)
        pl_text_addf(out, "%02x", bytes[k]);
}

static const char *number(sqlite3_stmt *st, int i, char buf[64])
{
    if (sqlite3_column_type(st, i) == SQLITE_INTEGER)
        (void)snprintf(buf, 64, "%lld", (long long)sqlite3_column_int64(st, i));
    else
        (void)pl_real_str(sqlite3_column_double(st, i), buf);
    return buf;
}

static void add_csv_cell(pl_text *out, sqlite3_stmt *st, int i)
{
    char buf[64];

    switch (sqlite3_column_type(st, i)) {
    case SQLITE_NULL: break;
    case SQLITE_BLOB: add_hex(out, st, i); break;
    case SQLITE_TEXT: st_csv_add(out, (const char *)sqlite3_column_text(st, i)); break;
    default: pl_text_add(out, number(st, i, buf)); break;
    }
}

static void add_json_cell(pl_text *out, sqlite3_stmt *st, int i)
{
    int type = sqlite3_column_type(st, i);
    char buf[64];

    if (type == SQLITE_NULL) {
        pl_text_add(out, "null");
    } else if (type == SQLITE_FLOAT && !isfinite(sqlite3_column_double(st, i))) {
        pl_text_add(out, sqlite3_column_double(st, i) < 0 ? "-9.0e+999" : "9.0e+999"); /* as SQLite's own JSON */
    } else if (type == SQLITE_BLOB) {
        pl_text_add(out, "\"");
        add_hex(out, st, i);
        pl_text_add(out, "\"");
    } else if (type == SQLITE_TEXT) {
        pl_text_add_json(out, (const char *)sqlite3_column_text(st, i));
    } else {
        pl_text_add(out, number(st, i, buf));
    }
}

/* Characters of UTF-8, not bytes. */
static int width_of(const char *s)
{
    int n = 0;

    for (; *s != '\0'; s++)
        n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

static void cut(char *s, int max)
{
    int n = 0;

    for (; *s != '\0' && n < max; s++)
        n += ((unsigned char)s[1] & 0xC0) != 0x80;
    if (*s != '\0')
        memcpy(s - 1, "~", 2);
}

/* A copy for a table; NULL: no memory. Line ends would break the table. */
static char *table_cell(sqlite3_stmt *st, int i, int max_cell, int digits)
{
    char buf[64], *s;
    int type = sqlite3_column_type(st, i);

    if (type == SQLITE_FLOAT) {
        const double x = sqlite3_column_double(st, i);
        if (digits == 0)
            (void)snprintf(buf, sizeof buf, "%.6g", x);
        else
            (void)pl_digits_str(x, digits, buf);
        return strdup(buf);
    }
    if (type == SQLITE_BLOB) {
        (void)snprintf(buf, sizeof buf, "(%d bytes)", sqlite3_column_bytes(st, i));
        return strdup(buf);
    }
    s = strdup(type == SQLITE_NULL ? "" : (const char *)sqlite3_column_text(st, i));
    for (char *c = s; c != NULL && *c != '\0'; c++)
        if ((unsigned char)*c < 0x20)
            *c = ' ';
    if (s != NULL && max_cell > 0 && width_of(s) > max_cell)
        cut(s, max_cell);
    return s;
}

/* ---- rows for programs ---- */

static void add_row(pl_text *out, sqlite3_stmt *st, st_format format, bool first)
{
    const size_t start = out->len;
    int n = sqlite3_column_count(st);

    if (format == ST_JSON)
        pl_text_add(out, first ? "\n " : ",\n ");
    pl_text_add(out, format == ST_CSV ? "" : "{");
    for (int i = 0; i < n; i++) {
        if (i > 0)
            pl_text_add(out, format == ST_CSV ? "," : ", ");
        if (format == ST_CSV) {
            add_csv_cell(out, st, i);
            continue;
        }
        pl_text_add_json(out, sqlite3_column_name(st, i));
        pl_text_add(out, ": ");
        add_json_cell(out, st, i);
    }
    if (format == ST_CSV)
        st_csv_end(out, start);
    else
        pl_text_add(out, format == ST_JSON ? "}" : "}\n");
}

static void add_head(pl_text *out, sqlite3_stmt *st, st_format format)
{
    int n = sqlite3_column_count(st);

    if (format == ST_JSON)
        pl_text_add(out, "[");
    for (int i = 0; i < n && format == ST_CSV; i++) {
        pl_text_add(out, i ? "," : "");
        st_csv_add(out, sqlite3_column_name(st, i));
    }
    if (format == ST_CSV)
        pl_text_add(out, "\n");
}

static pl_code flush(pl_text *text, size_t limit, st_sink *sink, void *ctx, pl_error *err)
{
    pl_code code = PL_OK;

    if (!pl_text_ok(text))
        return pl_fail(err, PL_ENOMEM, "out of memory while writing rows");
    if (text->len > limit) {
        code = sink(ctx, text, err);
        pl_text_reset(text);
    }
    return code;
}

static pl_code write_plain(sqlite3_stmt *st, st_format format, int64_t *n_rows, st_sink *sink, void *ctx, pl_error *err)
{
    pl_text text = { 0 };
    pl_code code = PL_OK;

    add_head(&text, st, format);
    while (pl_db_next(st, &code, err)) {
        add_row(&text, st, format, *n_rows == 0);
        *n_rows += 1;
        code = flush(&text, FLUSH_BYTES, sink, ctx, err);
    }
    if (format == ST_JSON)
        pl_text_add(&text, *n_rows ? "\n]\n" : "]\n");
    if (code == PL_OK)
        code = flush(&text, 0, sink, ctx, err);
    pl_text_free(&text);
    return code;
}

/* ---- rows for people ---- */

typedef struct table {
    int n_columns, n_all, max_cell, n_kept, digits; /* n_all: also those beyond MAX_COLUMNS, which are told */
    int room, n_shown;                              /* columns of the terminal, or 0; the columns of the table that fit */
    int head_lines;                                 /* 1, or more if names stand one word a line */
    int width[MAX_COLUMNS];                         /* of the cells, then of the column */
    bool right[MAX_COLUMNS];
    char **cell; /* [n_kept][n_columns], the rows kept to measure */
    pl_text text;
} table;

static void add_padded(pl_text *out, const char *s, int width, bool right, bool last)
{
    int pad = width - width_of(s);

    if (right && pad > 0)
        pl_text_addf(out, "%*s", pad, "");
    pl_text_add(out, s);
    if (!right && pad > 0 && !last)
        pl_text_addf(out, "%*s", pad, "");
    pl_text_add(out, last ? "\n" : "  ");
}

static pl_code read_row(table *t, sqlite3_stmt *st, char **cells, pl_error *err)
{
    for (int i = 0; i < t->n_columns; i++) {
        cells[i] = table_cell(st, i, t->max_cell, t->digits);
        if (cells[i] == NULL)
            return pl_fail(err, PL_ENOMEM, "out of memory while writing rows");
    }
    return PL_OK;
}

static void add_cells(table *t, char **cells)
{
    for (int i = 0; i < t->n_columns; i++) {
        if (t->room > 0 && width_of(cells[i]) > t->width[i])
            cut(cells[i], t->width[i]);
        if (i < t->n_shown)
            add_padded(&t->text, cells[i], t->width[i], t->right[i], i == t->n_shown - 1);
        free(cells[i]);
        cells[i] = NULL;
    }
}

/* The word of the name that stands in this line of the head, counted from the last line; "" if it has fewer words. */
static const char *head_word(const char *name, int line, int *n)
{
    const char *end = name + strlen(name), *start;

    for (;; line--, end = start > name ? start - 1 : name) {
        for (start = end; start > name && start[-1] != ' ';)
            start--;
        *n = (int)(end - start);
        if (line == 0 || start == name)
            return line == 0 ? start : (*n = 0, start);
    }
}

/* Widths of the columns with their names, each name on one line or one word a line. Returns the width of the table. */
static int widen(int width[], table *t, sqlite3_stmt *st, bool stacked)
{
    int all = 0;

    t->head_lines = 1;
    for (int i = 0; i < t->n_columns; i++) {
        const char *name = sqlite3_column_name(st, i);
        int lines = stacked ? 0 : 1, n = stacked ? 0 : width_of(name), one = 1;
        for (; stacked && one > 0; lines += one > 0, n = one > n ? one : n)
            (void)head_word(name, lines, &one);
        t->head_lines = lines > t->head_lines ? lines : t->head_lines;
        width[i] = n > t->width[i] ? n : t->width[i];
        all += width[i] + (i > 0 ? 2 : 0);
    }
    return all;
}

/* On a terminal only the columns that fit. The last of these may be cut, if it is text. */
static void fit_columns(table *t, sqlite3_stmt *st)
{
    int left = t->room, width[MAX_COLUMNS];
    const int whole = widen(width, t, st, false);

    if (t->room != 0 && whole > t->room)
        (void)widen(width, t, st, true);
    memcpy(t->width, width, (size_t)t->n_columns * sizeof width[0]);
    t->n_shown = t->n_columns;
    if (t->room == 0)
        return;
    for (int i = 0; i < t->n_columns; i++) {
        if (t->width[i] > left) {
            bool some = (!t->right[i] && left >= NARROWEST) || i == 0;
            t->n_shown = some ? i + 1 : i;
            t->width[i] = some ? left : t->width[i];
            return;
        }
        left -= t->width[i] + 2;
    }
}

static void add_not_shown(table *t, sqlite3_stmt *st)
{
    pl_text names = { 0 };

    for (int i = t->n_shown; i < t->n_columns; i++)
        pl_text_addf(&names, "%s%s", i > t->n_shown ? ", " : "not shown: ", sqlite3_column_name(st, i));
    if (t->n_all > t->n_columns)
        pl_text_addf(&names, "%s%d columns", names.len > 0 ? " and " : "not shown: ", t->n_all - t->n_columns);
    if (names.len > 0) {
        pl_text_addf(&names, "; %s--csv and --json show all columns\n", t->room > 0 ? "a wider terminal, " : "");
        pl_text_wrap(&t->text, pl_text_str(&names), t->room > 0 ? t->room : PL_COLUMNS);
    }
    pl_text_free(&names);
}

static void measure(table *t, sqlite3_stmt *st, char **cells)
{
    for (int i = 0; i < t->n_columns; i++) {
        int width = width_of(cells[i]), type = sqlite3_column_type(st, i);
        t->width[i] = width > t->width[i] ? width : t->width[i];
        t->right[i] = t->right[i] && (type == SQLITE_INTEGER || type == SQLITE_FLOAT || type == SQLITE_NULL);
    }
}

static pl_code keep_first_rows(table *t, sqlite3_stmt *st, bool *more, pl_error *err)
{
    pl_code code = PL_OK;

    while (t->n_kept < LOOK_AHEAD && (*more = pl_db_next(st, &code, err))) {
        char **cells = t->cell + (size_t)t->n_kept * (size_t)t->n_columns;
        code = read_row(t, st, cells, err);
        if (code == PL_OK)
            measure(t, st, cells);
        t->n_kept++;
    }
    return code;
}

static void add_table_head(table *t, sqlite3_stmt *st)
{
    char head[256];

    for (int line = t->head_lines - 1; line >= 0; line--)
        for (int i = 0; i < t->n_shown; i++) {
            const char *name = sqlite3_column_name(st, i), *word = name;
            int n = (int)strlen(name);
            if (t->head_lines > 1)
                word = head_word(name, line, &n);
            (void)snprintf(head, sizeof head, "%.*s", n, word);
            add_padded(&t->text, head, t->width[i], t->right[i], i == t->n_shown - 1);
        }
    for (int i = 0; i < t->n_shown; i++) {
        for (int k = 0; k < t->width[i]; k++)
            pl_text_add(&t->text, "-");
        pl_text_add(&t->text, i == t->n_shown - 1 ? "\n" : "  ");
    }
}

static pl_code write_rest(table *t, sqlite3_stmt *st, bool more, int64_t *n_rows, st_sink *sink, void *ctx, pl_error *err)
{
    pl_code code = PL_OK;

    for (int r = 0; r < t->n_kept; r++)
        add_cells(t, t->cell + (size_t)r * (size_t)t->n_columns);
    *n_rows = t->n_kept;
    while (more && pl_db_next(st, &code, err)) {
        code = read_row(t, st, t->cell, err);
        if (code == PL_OK)
            add_cells(t, t->cell);
        *n_rows += 1;
        if (code == PL_OK)
            code = flush(&t->text, FLUSH_BYTES, sink, ctx, err);
    }
    add_not_shown(t, st);
    return code == PL_OK ? flush(&t->text, 0, sink, ctx, err) : code;
}

/* room: characters of a line; 0: any. digits: of pl_digits_str; 0: up to 6. */
typedef struct shape {
    int max_cell, room, digits;
} shape;

static pl_code write_table(sqlite3_stmt *st, shape as, int64_t *n_rows, st_sink *sink, void *ctx, pl_error *err)
{
    table t = { .n_columns = sqlite3_column_count(st), .max_cell = as.max_cell, .room = as.room, .digits = as.digits };
    bool more = true;
    pl_code code = PL_OK;

    t.n_all = t.n_columns;
    if (t.n_columns > MAX_COLUMNS)
        t.n_columns = MAX_COLUMNS;
    t.cell = calloc((size_t)LOOK_AHEAD * (size_t)t.n_columns, sizeof *t.cell);
    if (t.cell == NULL)
        return pl_fail(err, PL_ENOMEM, "out of memory while writing rows");
    for (int i = 0; i < t.n_columns; i++)
        t.right[i] = true;
    code = keep_first_rows(&t, st, &more, err);
    if (code == PL_OK) {
        fit_columns(&t, st);
        add_table_head(&t, st);
        code = write_rest(&t, st, more, n_rows, sink, ctx, err);
    }
    for (int i = 0; i < LOOK_AHEAD * t.n_columns; i++)
        free(t.cell[i]);
    free(t.cell);
    pl_text_free(&t.text);
    return code;
}

pl_code st_rows_write(sqlite3_stmt *st, st_format format, int max_cell, int64_t *n_rows, st_sink *sink, void *ctx, pl_error *err)
{
    int64_t n = 0;
    pl_code code = format == ST_TABLE ? write_table(st, (shape){ max_cell, 0, 0 }, &n, sink, ctx, err)
                                      : write_plain(st, format, &n, sink, ctx, err);

    if (n_rows != NULL)
        *n_rows = n;
    return code;
}

static pl_code print_text(void *ctx, const pl_text *text, pl_error *err)
{
    (void)ctx;
    if (fwrite(pl_text_str(text), 1, text->len, stdout) != text->len)
        return pl_fail_errno(err, "standard output");
    return PL_OK;
}

pl_code st_rows_print(sqlite3_stmt *st, st_format format, int max_cell, int64_t *n_rows, pl_error *err)
{
    int64_t n = 0;
    const shape as = { max_cell, pl_columns(stdout), 0 };
    pl_code code =
        format == ST_TABLE ? write_table(st, as, &n, print_text, NULL, err) : write_plain(st, format, &n, print_text, NULL, err);

    if (n_rows != NULL)
        *n_rows = n;
    return code;
}

pl_code st_rows_show(sqlite3_stmt *st, int digits, int max_cell, pl_error *err)
{
    int64_t n = 0;
    return write_table(st, (shape){ max_cell, pl_columns(stdout), digits }, &n, print_text, NULL, err);
}
