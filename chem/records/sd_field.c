/* SPDX-License-Identifier: Apache-2.0 */
/* The data fields of records. */
#include <string.h>
#include <strings.h>

#include "chem/records/record_parts.h"

enum { FIELDS_MAX = 4096, NAME_BYTES = 1000 };

typedef struct gather {
    ch_field *fields; /* NULL in the first pass, which only counts */
    int n;
    bool refused;
    pl_arena *mem;
} gather;

static void field_add(gather *g, const char *name, size_t name_len, const char *text, size_t len)
{
    pl_text clean = { 0 };
    ch_field *f;

    if (g->n >= FIELDS_MAX)
        return;
    g->n++;
    if (g->fields == NULL)
        return;
    while (len > 0 && ch_line_blank(text + len - 1, 1))
        len--;
    while (len > 0 && ch_line_blank(text, 1))
        text++, len--;
    f = &g->fields[g->n - 1];
    pl_text_add_clean(&clean, name, name_len, NAME_BYTES);
    f->name = pl_text_ok(&clean) ? pl_strdup(g->mem, pl_text_str(&clean)) : NULL;
    pl_text_free(&clean);
    f->text = pl_strndup(g->mem, text, len);
    f->is_number = ch_word_real(text, len, &f->value);
    g->refused = g->refused || f->name == NULL || f->text == NULL;
}

static const char *line_end(const char *s, const char *end)
{
    const char *eol = memchr(s, '\n', (size_t)(end - s));
    return eol != NULL ? eol : end;
}

static const char *line_after(const char *s, const char *end)
{
    const char *eol = line_end(s, end);
    return eol < end ? eol + 1 : end;
}

/* "> 25 <NAME> (1)": the name is between the first < and the last >. */
static bool sdf_name(const char *s, const char *end, const char **name, size_t *n)
{
    const char *from = memchr(s, '<', (size_t)(end - s)), *to = end;

    if (from == NULL)
        return false;
    while (to > from && to[-1] != '>')
        to--;
    *name = from + 1;
    *n = to > from + 1 ? (size_t)(to - 1 - *name) : 0;
    return *n > 0;
}

/* Whether a value has no line at s. Its first line may begin as a header does, without a name: ">10". */
static bool sdf_value_ends(const char *value, const char *s, const char *end)
{
    const char *eol = line_end(s, end), *name;
    size_t n;

    if (s >= end || ch_line_blank(s, (size_t)(eol - s)) || (end - s >= 4 && memcmp(s, "$$$$", 4) == 0))
        return true;
    return *s == '>' && (s != value || sdf_name(s, eol, &name, &n));
}

static void sdf_fields(gather *g, const char *s, const char *end)
{
    const char *body = memmem(s, (size_t)(end - s), "\nM  END", 7);

    for (s = body != NULL ? body + 1 : s; s < end;) {
        const char *eol = line_end(s, end), *name, *value;
        size_t n;

        if (*s != '>' || !sdf_name(s, eol, &name, &n)) {
            s = line_after(s, end);
            continue;
        }
        value = s = line_after(s, end);
        while (!sdf_value_ends(value, s, end))
            s = line_after(s, end);
        field_add(g, name, n, value, (size_t)(s - value));
    }
}

/* Second line of an original QM9 file; Ramakrishnan et al., Sci. Data 1, 140022 (2014), table 2. */
static void qm9_fields(gather *g, const char *s, const char *end)
{
    static const char *const names[] = { "gdb", "A",  "B",    "C",  "mu", "alpha", "homo", "lumo",
                                         "gap", "r2", "zpve", "U0", "U",  "H",     "G",    "Cv" };
    size_t n;

    (void)ch_word(&s, end, &n); /* "gdb" */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *word = ch_word(&s, end, &n);
        if (word == NULL)
            return;
        field_add(g, names[i], strlen(names[i]), word, n);
    }
}

static bool is_key(char c)
{
    return c != '\0' && (strchr("_-.", c) != NULL || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
}

/* key=value, value with or without quotes; words without = are skipped. */
static void key_value_fields(gather *g, const char *s, const char *end)
{
    while (s < end) {
        const char *key = s, *value, *stop;
        char quote = '\0';

        while (s < end && is_key(*s))
            s++;
        if (s == key || s >= end || *s != '=') {
            s += s == key;
            continue;
        }
        value = s + 1;
        if (value < end && (*value == '"' || *value == '\''))
            quote = *value++;
        for (stop = value; stop < end && (quote ? *stop != quote : !ch_line_blank(stop, 1)); stop++)
            continue;
        field_add(g, key, (size_t)(s - key), value, (size_t)(stop - value));
        s = stop + (quote != '\0' && stop < end);
    }
}

static void xyz_fields(gather *g, const char *s, const char *end)
{
    const char *eol;

    s = line_after(s, end);
    eol = line_end(s, end);
    if (eol - s > 4 && memcmp(s, "gdb", 3) == 0 && (s[3] == ' ' || s[3] == '\t'))
        qm9_fields(g, s, eol);
    else
        key_value_fields(g, s, eol);
}

static void csv_fields(gather *g, const ch_reader *r, const char *s, const char *end)
{
    pl_text field = { 0 };
    ch_quote quote;

    for (int i = 0; i < r->n_columns && ch_csv_field(&s, end, r->delimiter, &field, &quote); i++)
        if (r->columns[i][0] != '\0') /* row numbers, as written by pandas, have no column name */
            field_add(g, r->columns[i], strlen(r->columns[i]), pl_text_str(&field), field.len);
    g->refused = g->refused || !pl_text_ok(&field);
    pl_text_free(&field);
}

static void all_fields(gather *g, const ch_reader *r, const ch_record *rec)
{
    const char *s = rec->raw, *end = rec->raw + rec->raw_len;

    if (r->n_columns > 0)
        csv_fields(g, r, s, end);
    else if (strcmp(rec->format, "sdf") == 0)
        sdf_fields(g, s, end);
    else if (strcmp(rec->format, "xyz") == 0)
        xyz_fields(g, s, end);
}

pl_code ch_record_fields(ch_field **out, int *n_out, const ch_reader *r, const ch_record *rec, pl_arena *mem, pl_error *err)
{
    gather g = { .mem = mem };

    *out = NULL;
    *n_out = 0;
    all_fields(&g, r, rec);
    g.fields = PL_NEW(mem, ch_field, g.n);
    if (g.fields == NULL)
        return pl_fail(err, PL_ENOMEM, "%d data fields", g.n);
    g.n = 0;
    all_fields(&g, r, rec);
    if (g.refused)
        return pl_fail(err, PL_ENOMEM, "%d data fields", g.n);
    *out = g.fields;
    *n_out = g.n;
    return PL_OK;
}

const ch_field *ch_field_named(const ch_field *fields, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

const ch_field *ch_field_again(const ch_field *fields, int n, const ch_field *f)
{
    for (int i = 0; i < n && f != NULL; i++)
        if (&fields[i] != f && strcmp(fields[i].name, f->name) == 0 && strcmp(fields[i].text, f->text) != 0)
            return &fields[i];
    return NULL;
}

const ch_field *ch_field_find(const ch_field *fields, int n, const char *name)
{
    const ch_field *named = ch_field_named(fields, n, name);

    if (named != NULL)
        return named;
    for (int i = 0; i < n; i++)
        if (strcasecmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}
