/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/parameters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "pipeline/base/text.h"

enum { MAX_COLUMNS = 9, WORD_BYTES = 24 };

uint64_t ch_mmff_key(int class, int a, int b, int c, int d)
{
    return (((((uint64_t) class << 8 | (unsigned)a) << 8 | (unsigned)b) << 8 | (unsigned)c) << 8) | (unsigned)d;
}

const double *ch_mmff_find(const ch_mmff_table *table, uint64_t key)
{
    int32_t low = 0, high = table->n;

    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (table->rows[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < table->n && table->rows[low].key == key ? table->rows[low].value : NULL;
}

/* ---- lines ---- */

/* A table while it is read. columns: one letter a column, 't' a number of 0 to 99, 'v' a value, 's' a word. */
typedef struct {
    const char *file, *columns;
    char *text; /* what is left to read */
    int line;
    bool ended; /* by the line "$" */
} table_file;

typedef struct {
    int number[MAX_COLUMNS];   /* of the columns 't', in order */
    double value[MAX_COLUMNS]; /* of the columns 'v', in order */
    char word[WORD_BYTES];     /* of the last column 's' */
} table_line;

static pl_code damaged(const table_file *t, pl_error *err, const char *what)
{
    const pl_code code = pl_fail(err, PL_EDATA, "%s", what);
    pl_at(err, "%s:%d", t->file, t->line);
    return code;
}

/* Cuts the next line off the text and returns it. */
static char *next_line(table_file *t)
{
    char *line = t->text, *end = line + strcspn(line, "\n");

    t->text = *end == '\n' ? end + 1 : end;
    *end = '\0';
    t->line++;
    return line;
}

/* Cuts the next word off the line into `word`; false: there is none or it is too long. */
static bool next_word(char **line, char word[WORD_BYTES])
{
    const char *start = *line + strspn(*line, " \t\r");
    const size_t n = strcspn(start, " \t\r");

    *line += (start - *line) + (ptrdiff_t)n;
    if (n == 0 || n >= WORD_BYTES)
        return false;
    memcpy(word, start, n);
    word[n] = '\0';
    return true;
}

static bool line_parse(table_line *out, const char *columns, char *line)
{
    int n_numbers = 0, n_values = 0;
    char word[WORD_BYTES];
    int64_t number;

    *out = (table_line){ 0 };
    for (const char *c = columns; *c != '\0'; c++) {
        if (!next_word(&line, word))
            return false;
        if (*c == 't') {
            if (!pl_parse_int(word, &number) || number < 0 || number >= CH_MMFF_TYPES)
                return false;
            out->number[n_numbers++] = (int)number;
        } else if (*c == 'v') {
            if (!pl_parse_real(word, &out->value[n_values++]))
                return false;
        } else {
            memcpy(out->word, word, sizeof word);
        }
    }
    return true;
}

static pl_code table_open(table_file *out, const char *folder, const char *file, const char *columns, pl_arena *mem, pl_error *err)
{
    const char *path = pl_sprintf(mem, "%s/%s", folder, file);
    static char nothing[1];
    pl_bytes bytes;

    *out = (table_file){ .file = path, .columns = columns, .text = nothing };
    if (path == NULL)
        return pl_fail(err, PL_ENOMEM, "a table of MMFF94");
    if (pl_path_is_gone(path))
        return pl_fail(err, PL_ECONFIG,
                       "%s is not there: it is a table of the force field and comes with Open Babel; set "
                       "BABEL_DATADIR to its data folder",
                       path);
    const pl_code code = pl_file_read(&bytes, path, mem, err);
    if (code != PL_OK)
        return code;
    char *text = pl_strndup(mem, bytes.data, bytes.len);
    if (text == NULL)
        return pl_fail(err, PL_ENOMEM, "a table of MMFF94");
    out->text = text;
    return PL_OK;
}

/* The next row; *more is false after the line "$", without which the file is cut. */
static pl_code table_next(table_line *out, bool *more, table_file *t, pl_error *err)
{
    *more = false;
    while (*t->text != '\0') {
        char *line = next_line(t);
        const size_t blanks = strspn(line, " \t\r");
        if (line[blanks] == '$') {
            t->ended = true;
            return PL_OK;
        }
        if (line[0] == '*' || line[blanks] == '\0')
            continue;
        *more = true;
        return line_parse(out, t->columns, line) ? PL_OK : damaged(t, err, "this is not a row of the table");
    }
    return damaged(t, err, "the table ends without its last line, $");
}

/* ---- tables of rows ---- */

typedef struct {
    const char *file, *columns;
    uint64_t (*key)(table_line *line); /* puts types and values into the table's order */
} table_kind;

static void swap_int(int *a, int *b)
{
    const int kept = *a;
    *a = *b;
    *b = kept;
}

static void swap_values(table_line *line)
{
    const double kept = line->value[0];
    line->value[0] = line->value[1];
    line->value[1] = kept;
}

static uint64_t pair_key(table_line *line)
{
    int *t = line->number;
    if (t[1] > t[2])
        swap_int(&t[1], &t[2]);
    return ch_mmff_key(t[0], t[1], t[2], 0, 0);
}

/* An increment has a direction. */
static uint64_t charge_key(table_line *line)
{
    if (line->number[1] > line->number[2])
        line->value[0] = -line->value[0];
    return pair_key(line);
}

static uint64_t element_key(table_line *line)
{
    int *t = line->number;
    if (t[0] > t[1])
        swap_int(&t[0], &t[1]);
    return ch_mmff_key(0, t[0], t[1], 0, 0);
}

static uint64_t angle_key(table_line *line)
{
    int *t = line->number;
    if (t[1] > t[3])
        swap_int(&t[1], &t[3]);
    return ch_mmff_key(t[0], t[1], t[2], t[3], 0);
}

static uint64_t stretch_bend_key(table_line *line)
{
    if (line->number[1] > line->number[3])
        swap_values(line);
    return angle_key(line);
}

static uint64_t row_key(table_line *line)
{
    int *t = line->number;
    if (t[0] > t[2]) {
        swap_int(&t[0], &t[2]);
        swap_values(line);
    }
    return ch_mmff_key(0, t[0], t[1], t[2], 0);
}

static uint64_t torsion_key(table_line *line)
{
    int *t = line->number;
    if (t[2] > t[3] || (t[2] == t[3] && t[1] > t[4])) {
        swap_int(&t[1], &t[4]);
        swap_int(&t[2], &t[3]);
    }
    return ch_mmff_key(t[0], t[1], t[2], t[3], t[4]);
}

static uint64_t out_of_plane_key(table_line *line)
{
    int *t = line->number;
    if (t[0] > t[2])
        swap_int(&t[0], &t[2]);
    if (t[2] > t[3])
        swap_int(&t[2], &t[3]);
    if (t[0] > t[2])
        swap_int(&t[0], &t[2]);
    return ch_mmff_key(0, t[1], t[0], t[2], t[3]);
}

static int compare_rows(const void *a, const void *b)
{
    const ch_mmff_row *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static pl_code rows_sort(ch_mmff_table *table, const table_file *t, pl_error *err)
{
    if (table->n == 0)
        return damaged(t, err, "the table is empty");
    qsort(table->rows, (size_t)table->n, sizeof *table->rows, compare_rows);
    for (int32_t i = 1; i < table->n; i++)
        if (table->rows[i].key == table->rows[i - 1].key) {
            const uint64_t key = table->rows[i].key;
            const pl_code code = pl_fail(err, PL_EDATA, "the table has two rows %d %d %d %d %d", (int)(key >> 32 & 255),
                                         (int)(key >> 24 & 255), (int)(key >> 16 & 255), (int)(key >> 8 & 255), (int)(key & 255));
            pl_at(err, "%s", t->file);
            return code;
        }
    return PL_OK;
}

static pl_code rows_read(ch_mmff_table *out, const table_kind *kind, const char *folder, pl_arena *mem, pl_error *err)
{
    table_file file;
    table_line line;
    bool more;
    pl_code code = table_open(&file, folder, kind->file, kind->columns, mem, err);

    *out = (ch_mmff_table){ 0 };
    if (code != PL_OK)
        return code;
    int32_t max = 1;
    for (const char *s = file.text; *s != '\0'; s++)
        max += *s == '\n';
    out->rows = PL_NEW(mem, ch_mmff_row, max);
    if (out->rows == NULL)
        return pl_fail(err, PL_ENOMEM, "a table of MMFF94");
    while ((code = table_next(&line, &more, &file, err)) == PL_OK && more) {
        ch_mmff_row *row = &out->rows[out->n++];
        row->key = kind->key(&line);
        memcpy(row->value, line.value, sizeof row->value);
    }
    return code != PL_OK ? code : rows_sort(out, &file, err);
}

static pl_code all_rows_read(ch_mmff *p, const char *folder, pl_arena *mem, pl_error *err)
{
    const struct {
        ch_mmff_table *table;
        table_kind kind;
    } tables[] = {
        { &p->bond, { "mmffbond.par", "tttvv", pair_key } },
        { &p->bond_rule, { "mmffbndk.par", "ttvv", element_key } },
        { &p->angle, { "mmffang.par", "ttttvv", angle_key } },
        { &p->stretch_bend, { "mmffstbn.par", "ttttvv", stretch_bend_key } },
        { &p->stretch_bend_rule, { "mmffdfsb.par", "tttvv", row_key } },
        { &p->torsion[0], { "mmfftor.par", "tttttvvv", torsion_key } },
        { &p->torsion[1], { "mmffs_tor.par", "tttttvvv", torsion_key } },
        { &p->out_of_plane[0], { "mmffoop.par", "ttttv", out_of_plane_key } },
        { &p->out_of_plane[1], { "mmffs_oop.par", "ttttv", out_of_plane_key } },
        { &p->charge, { "mmffchg.par", "tttv", charge_key } },
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const pl_code code = rows_read(tables[i].table, &tables[i].kind, folder, mem, err);
        if (code != PL_OK)
            return code;
    }
    return PL_OK;
}

/* ---- properties of types ---- */

typedef void take_line(ch_mmff_type types[CH_MMFF_TYPES], const table_line *line);

static void take_properties(ch_mmff_type types[CH_MMFF_TYPES], const table_line *line)
{
    const int *t = line->number;
    ch_mmff_type *type = &types[t[0]];

    type->known = true;
    type->z = (uint8_t)t[1];
    type->neighbours = (uint8_t)t[2];
    type->valence = (uint8_t)t[3];
    type->lone_pair = t[4] != 0;
    type->multiple = (uint8_t)t[5];
    type->aromatic = t[6] != 0;
    type->linear = t[7] != 0;
    type->single_between = t[8] != 0;
}

static void take_equivalents(ch_mmff_type types[CH_MMFF_TYPES], const table_line *line)
{
    for (int level = 0; level < CH_MMFF_LEVELS; level++)
        types[line->number[0]].equivalent[level] = (uint8_t)line->number[level];
}

static void take_increments(ch_mmff_type types[CH_MMFF_TYPES], const table_line *line)
{
    types[line->number[1]].increment = line->value[0];
    types[line->number[1]].share = line->value[1];
}

static void take_vdw(ch_mmff_type types[CH_MMFF_TYPES], const table_line *line)
{
    ch_mmff_type *type = &types[line->number[0]];

    type->alpha = line->value[0];
    type->electrons = line->value[1];
    type->a = line->value[2];
    type->g = line->value[3];
    type->hydrogen_bond = line->word[0];
}

static pl_code types_read(ch_mmff *p, const char *folder, pl_arena *mem, pl_error *err)
{
    static const struct {
        const char *file, *columns;
        take_line *take;
    } tables[] = { { "mmffprop.par", "ttttttttt", take_properties },
                   { "mmffdef.par", "sttttt", take_equivalents },
                   { "mmffpbci.par", "ttvv", take_increments },
                   { "mmffvdw.par", "tvvvvs", take_vdw } };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        table_file file;
        table_line line;
        bool more;
        pl_code code = table_open(&file, folder, tables[i].file, tables[i].columns, mem, err);
        while (code == PL_OK && (code = table_next(&line, &more, &file, err)) == PL_OK && more)
            tables[i].take(p->type, &line);
        if (code != PL_OK)
            return code;
    }
    return PL_OK;
}

static pl_code types_check(const ch_mmff *p, const char *folder, pl_error *err)
{
    for (int t = 1; t < CH_MMFF_TYPES; t++) {
        const ch_mmff_type *type = &p->type[t];
        const char *file = NULL;
        if (!type->known)
            continue;
        if (type->equivalent[0] != t)
            file = "mmffdef.par";
        else if (!(type->alpha > 0 && type->electrons > 0 && type->a > 0 && type->g > 0))
            file = "mmffvdw.par";
        if (file != NULL)
            return pl_fail(err, PL_EDATA, "%s/%s has no row for type %d", folder, file, t);
    }
    return PL_OK;
}

/* ---- van der Waals ---- */

/* Paper II, equations 3 to 7. */
static void vdw_pair(double *r_star, double *epsilon, const ch_mmff_type *x, const ch_mmff_type *y)
{
    const double rx = x->a * pow(x->alpha, 0.25), ry = y->a * pow(y->alpha, 0.25), gamma = (rx - ry) / (rx + ry);
    const bool donor = x->hydrogen_bond == 'D' || y->hydrogen_bond == 'D';
    const bool acceptor = x->hydrogen_bond == 'A' || y->hydrogen_bond == 'A';
    const double root = sqrt(x->alpha / x->electrons) + sqrt(y->alpha / y->electrons);

    *r_star = 0.5 * (rx + ry) * (donor ? 1.0 : 1.0 + 0.2 * (1.0 - exp(-12.0 * gamma * gamma)));
    *epsilon = 181.16 * x->g * y->g * x->alpha * y->alpha / (root * pow(*r_star, 6));
    if (donor && acceptor) {
        *r_star *= 0.8;
        *epsilon *= 0.5;
    }
}

static pl_code vdw_make(ch_mmff *p, pl_arena *mem, pl_error *err)
{
    p->r_star = pl_arena_get(mem, CH_MMFF_TYPES, sizeof *p->r_star);
    p->epsilon = pl_arena_get(mem, CH_MMFF_TYPES, sizeof *p->epsilon);
    if (p->r_star == NULL || p->epsilon == NULL)
        return pl_fail(err, PL_ENOMEM, "tables of MMFF94");
    for (int i = 1; i < CH_MMFF_TYPES; i++)
        for (int j = 1; j < CH_MMFF_TYPES; j++)
            if (p->type[i].known && p->type[j].known)
                vdw_pair(&p->r_star[i][j], &p->epsilon[i][j], &p->type[i], &p->type[j]);
    return PL_OK;
}

pl_code ch_mmff_read(ch_mmff *out, const char *folder, pl_arena *mem, pl_error *err)
{
    *out = (ch_mmff){ 0 };
    pl_code code = types_read(out, folder, mem, err);
    if (code == PL_OK)
        code = types_check(out, folder, err);
    if (code == PL_OK)
        code = all_rows_read(out, folder, mem, err);
    return code != PL_OK ? code : vdw_make(out, mem, err);
}
