/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/records/record.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/records/csv_delimiter.h"
#include "chem/records/gunzip.h"
#include "chem/records/qm9bin.h"
#include "chem/records/record_parts.h"

enum { TITLE_MAX = 1000, PROBLEM_MAX = 300 };

static const ch_format formats[] = {
    { "smi", "smi", ch_next_line_record, NULL, NULL }, { "inchi", "inchi", ch_next_line_record, NULL, NULL },
    { "sdf", "sdf", ch_next_sdf, NULL, NULL },         { "mol2", "mol2", ch_next_headed, NULL, "@<TRIPOS>MOLECULE" },
    { "xyz", "xyz", ch_next_xyz, NULL, NULL },         { "pdb", "pdb", ch_next_pdb, NULL, NULL },
    { "cif", "cif", ch_next_headed, NULL, "data_" },   { "mmcif", "mmcif", ch_next_headed, NULL, "data_" },
    { "qm9bin", "sdf", ch_next_qm9, NULL, NULL },      { "csv", "smi", ch_next_csv, ch_begin_csv, NULL },
    { "tsv", "smi", ch_next_csv, ch_begin_csv, NULL },
};
static const ch_format listed = { "listed", "sdf", ch_next_listed, NULL, NULL };

/* Other names of formats, and endings of file names. */
static const char *const aliases[][2] = {
    { "smiles", "smi" }, { "ism", "smi" },  { "can", "smi" },    { "rsmi", "smi" },   { "sd", "sdf" },
    { "mol", "sdf" },    { "mdl", "sdf" },  { "ml2", "mol2" },   { "sy2", "mol2" },   { "ent", "pdb" },
    { "tab", "tsv" },    { "exyz", "xyz" }, { "extxyz", "xyz" }, { "mcif", "mmcif" },
};

static const ch_format *format_named(const char *name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcasecmp(name, aliases[i][0]) == 0)
            name = aliases[i][1];
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcasecmp(name, formats[i].name) == 0)
            return &formats[i];
    return NULL;
}

bool ch_format_is_ours(const char *name) { return format_named(name) != NULL; }

/* The ending without .gz, lower-case; "" if there is none. */
static void path_ending(const char *path, char *out, size_t n)
{
    const char *base = strrchr(path, '/');
    size_t len;
    const char *dot = NULL;

    base = base != NULL ? base + 1 : path;
    len = strlen(base);
    if (len > 3 && strcasecmp(base + len - 3, ".gz") == 0)
        len -= 3;
    for (size_t i = 0; i < len; i++)
        if (base[i] == '.')
            dot = base + i + 1;
    out[0] = '\0';
    if (dot == NULL || (size_t)(base + len - dot) >= n)
        return;
    len = (size_t)(base + len - dot);
    for (size_t i = 0; i < len; i++)
        out[i] = (char)tolower((unsigned char)dot[i]);
    out[len] = '\0';
}

static bool holds(const char *data, size_t n, const char *what) { return memmem(data, n, what, strlen(what)) != NULL; }

/* Whether the line is the header of a table: "Name,SMILES,IC50". */
static bool names_smiles(const char *line, size_t n)
{
    char head[1024];

    n = n < sizeof head - 1 ? n : sizeof head - 1;
    memcpy(head, line, n);
    head[n] = '\0';
    if (n == 6 || (n == 7 && head[6] == '\r')) /* the only column */
        return strncasecmp(head, "smiles", 6) == 0;
    return strcasestr(head, "smiles") != NULL && strpbrk(head, ",;\t") != NULL;
}

/* Recognises the format by the first bytes, if the file name does not tell. */
static const char *content_format(const char *data, size_t n)
{
    const char *eol = memchr(data, '\n', n);
    long count;

    if (ch_qm9_starts(data, n))
        return "qm9bin";
    if (holds(data, n, "@<TRIPOS>MOLECULE"))
        return "mol2";
    if (holds(data, n, "M  END") || holds(data, n, "$$$$") || holds(data, n, " V2000"))
        return "sdf";
    if (holds(data, n, "HETATM") || holds(data, n, "\nATOM  ") || (n > 6 && memcmp(data, "HEADER", 6) == 0))
        return "pdb";
    if (holds(data, n, "<cml") || holds(data, n, "<molecule"))
        return "cml";
    if (n > 6 && memcmp(data, "InChI=", 6) == 0)
        return "inchi";
    if (eol != NULL && ch_line_is_count(data, (size_t)(eol - data), &count))
        return "xyz";
    if (eol != NULL && (names_smiles(data, (size_t)(eol - data)) || ch_delimiter_said(data, n) != '\0'))
        return "csv";
    return "smi";
}

static bool says_nothing(const char *ending)
{
    static const char *const words[] = { "", "txt", "dat", "gz", "bin", "data", "in", "input" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(ending, words[i]) == 0)
            return true;
    return false;
}

static pl_code choose_format(ch_reader *r, const char *format, pl_error *err)
{
    char ending[32];
    const char *data;
    size_t n;

    if (format == NULL || format[0] == '\0') {
        path_ending(r->path, ending, sizeof ending);
        format = ending;
        if (says_nothing(ending)) {
            pl_code code = ch_source_peek(r->src, &data, &n, err);
            if (code != PL_OK)
                return code;
            format = content_format(data, n);
        }
    }
    if (snprintf(r->name, sizeof r->name, "%s", format) >= (int)sizeof r->name)
        return pl_fail(err, PL_ECONFIG, "%s: no format is called \"%s\"", r->path, format);
    for (char *c = r->name; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    r->format = format_named(r->name);
    if (r->format == NULL)
        r->format = &listed;
    return PL_OK;
}

pl_code ch_reader_open(ch_reader **out, const char *path, const char *format, const ch_reader_opts *opts, pl_error *err)
{
    static const ch_reader_opts none = { 0 };
    ch_reader *r = calloc(1, sizeof *r);
    pl_code code;

    *out = NULL;
    if (r == NULL)
        return pl_fail(err, PL_ENOMEM, "%s", path);
    opts = opts != NULL ? opts : &none;
    r->limit = opts->max_record_bytes ? opts->max_record_bytes : (size_t)1 << 20;
    r->file_limit = opts->max_file_bytes ? opts->max_file_bytes : (size_t)64 << 20;
    r->lister = opts->lister;
    r->whole_lines = opts->whole_lines;
    r->n_listed = -1;
    r->smiles_column = r->title_column = -1;
    r->path = strdup(path);
    r->title_from = opts->title_from != NULL ? strdup(opts->title_from) : NULL;
    if (r->path == NULL || (opts->title_from != NULL && r->title_from == NULL))
        code = pl_fail(err, PL_ENOMEM, "%s", path);
    else
        code = ch_source_open(&r->src, path, r->limit, err);
    if (code == PL_OK)
        ch_source_set_stop(r->src, opts->stop);
    if (code == PL_OK && opts->hash)
        ch_gunzip_hash(ch_source_file(r->src));
    if (code == PL_OK)
        code = choose_format(r, format, err);
    if (code == PL_OK && r->format == &listed) /* read as a whole, so lines may have any length */
        ch_source_set_limit(r->src, r->file_limit);
    if (code == PL_OK && r->format->begin != NULL)
        code = r->format->begin(r, opts, err);
    if (code != PL_OK)
        ch_reader_close(r);
    else
        *out = r;
    return code;
}

void ch_reader_close(ch_reader *r)
{
    if (r == NULL)
        return;
    ch_source_close(r->src);
    pl_text_free(&r->text);
    pl_text_free(&r->raw);
    pl_text_free(&r->title);
    pl_text_free(&r->problem);
    for (int i = 0; i < r->n_columns; i++)
        free(r->columns[i]);
    free(r->columns);
    pl_arena_free(r->listed_mem);
    ch_qm9_close(r->qm9);
    free(r->path);
    free(r->title_from);
    free(r);
}

const char *ch_reader_format(const ch_reader *r) { return r->format == &listed ? r->name : r->format->name; }

int ch_reader_smiles(const ch_reader *r) { return r->smiles_column; }

const char *ch_reader_damage(const ch_reader *r) { return r->src != NULL ? ch_source_damage(r->src) : NULL; }
const char *ch_reader_guessed(const ch_reader *r) { return r->smiles_guessed ? r->columns[r->smiles_column] : NULL; }

const char *const *ch_reader_columns(const ch_reader *r, int *n)
{
    *n = r->n_columns;
    return (const char *const *)r->columns;
}

int64_t ch_reader_count(const ch_reader *r) { return r->qm9 != NULL ? ch_qm9_count(r->qm9) : -1; }

int64_t ch_reader_atoms(const ch_reader *r) { return r->qm9 != NULL ? ch_qm9_atoms(r->qm9) : -1; }

/* ---- assembling one record ---------------------------------------- */

static void record_clear(ch_reader *r)
{
    pl_text_reset(&r->text);
    pl_text_reset(&r->raw);
    pl_text_reset(&r->title);
    pl_text_reset(&r->problem);
    r->dropped = 0;
    r->begun = r->has_raw = r->is_short = false;
}

void ch_reader_begin(ch_reader *r, const ch_line *line)
{
    r->offset = line->offset;
    r->line = line->number;
    r->begun = true;
}

void ch_reader_add(ch_reader *r, const ch_line *line)
{
    if (!r->begun)
        ch_reader_begin(r, line);
    if (r->dropped > 0 || line->len < line->whole || r->text.len + line->len > r->limit) {
        r->dropped += line->whole + 1;
        return;
    }
    pl_text_add_n(&r->text, line->s, line->len);
    pl_text_add_n(&r->text, "\n", 1);
}

void ch_reader_set_title(ch_reader *r, const char *s, size_t n)
{
    pl_text_reset(&r->title);
    while (n > 0 && isspace((unsigned char)s[n - 1]))
        n--;
    while (n > 0 && isspace((unsigned char)*s))
        s++, n--;
    pl_text_add_clean(&r->title, s, n, TITLE_MAX);
}

void ch_reader_set_problem(ch_reader *r, const char *fmt, ...)
{
    char text[PROBLEM_MAX];
    va_list ap;

    if (r->problem.len > 0)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    pl_text_add(&r->problem, text);
}

static const pl_text *raw_of(const ch_reader *r) { return r->has_raw ? &r->raw : &r->text; }

static void record_give(ch_reader *r, ch_record *out)
{
    const pl_text *raw = raw_of(r);

    *out = (ch_record){ .text = pl_text_str(&r->text),
                        .len = r->text.len,
                        .format = r->format->parse_as,
                        .raw = pl_text_str(raw),
                        .raw_len = raw->len,
                        .ordinal = ++r->ordinal,
                        .offset = r->offset,
                        .line = r->line,
                        .title = pl_text_str(&r->title),
                        .problem = r->problem.len > 0 ? r->problem.s : NULL,
                        .no_smiles = r->problem.len > 0 && strcmp(r->problem.s, CH_NO_SMILES) == 0,
                        .is_short = r->is_short };
}

pl_code ch_reader_next(ch_reader *r, ch_record *out, bool *more, pl_error *err)
{
    const char *damage;
    pl_code code;

    record_clear(r);
    code = r->format->next(r, more, err);
    if (code != PL_OK)
        return code;
    /* Everything after the damage is lost, and a record that may be cut short must not be used. For listed formats the
     * worker decides that. */
    damage = ch_source_met_end(r->src) ? ch_source_damage(r->src) : NULL;
    if (damage != NULL && !r->damage_told && (!*more || (r->format != &listed && ch_source_may_be_cut(r->src)))) {
        if (!*more && !r->begun) /* an extra record with its own offset, so that a seek to it does not find the previous one */
            ch_source_where(r->src, &r->offset, &r->line);
        r->damage_told = *more = true;
        pl_text_reset(&r->problem); /* an incomplete row has other problems, too */
        ch_reader_set_problem(r, "%s", damage);
    }
    if (!*more)
        return PL_OK;
    if (r->whole_lines && r->format != &listed && ch_source_is_open(r->src))
        ch_reader_set_problem(r, "the input ended within this line, so it may be incomplete; end each line with a line feed");
    if (r->dropped > 0) {
        r->problem.len = 0; /* other problems are due to the missing bytes */
        ch_reader_set_problem(r, "record too long: %zu bytes, %zu allowed", raw_of(r)->len + r->dropped, r->limit);
    }
    if (!pl_text_ok(&r->text) || !pl_text_ok(&r->raw) || !pl_text_ok(&r->title) || !pl_text_ok(&r->problem))
        return pl_fail(err, PL_ENOMEM, "%s: record %lld", r->path, (long long)r->ordinal + 1);
    record_give(r, out);
    return PL_OK;
}

pl_code ch_reader_seek(ch_reader *r, int64_t offset, int64_t ordinal, int64_t line, pl_error *err)
{
    pl_code code;

    if (r->format == &listed) {
        r->next_listed = ordinal - 1;
        r->ordinal = ordinal - 1;
        return PL_OK;
    }
    code = ch_source_seek(r->src, offset, line, err);
    r->damage_told = false;
    if (code == PL_OK)
        r->ordinal = ordinal - 1;
    return code;
}

pl_code ch_reader_hash(ch_reader *r, bool at_end, int64_t *n, char out[65], pl_error *err)
{
    pl_code code = at_end ? ch_gunzip_drain(ch_source_file(r->src), err) : PL_OK;

    *n = ch_gunzip_hashed(ch_source_file(r->src), out);
    return code;
}
