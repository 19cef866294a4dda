/* SPDX-License-Identifier: Apache-2.0 */
/* Splits by a label or a file; the random split is in split.c, those by scaffold are in split_scaffold.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"
#include "stages/steps/dataset/split_parts.h"
#include "stages/steps/ingest/prepare.h"

int st_split_by_id(const void *a, const void *b)
{
    const member *x = a, *y = b;

    return (x->mol_id > y->mol_id) - (x->mol_id < y->mol_id);
}

member *st_split_member(const split_state *s, int64_t mol_id)
{
    const member key_of = { .mol_id = mol_id };

    return bsearch(&key_of, s->m, (size_t)s->n, sizeof *s->m, st_split_by_id);
}

/* ---- a label ---- */

/* contrary: counts molecules whose records have several values. They have none of a column, and the last of a time (ST_TIMES). */
static pl_code values_read(split_state *s, const char *what, int64_t *contrary, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    int64_t found = 0;
    pl_code code =
        pl_db_prepare(s->env->store->db, &st,
                      "SELECT l.mol_id, l.value, l.spread>0 FROM label l JOIN property p USING(property_id) WHERE p.name=?", err);

    for (int64_t i = 0; i < s->n; i++)
        s->m[i].value = NAN;
    if (code == PL_OK)
        (void)sqlite3_bind_text(st, 1, s->conf->column, -1, SQLITE_STATIC);
    while (pl_db_next(st, &code, err)) {
        member *m = st_split_member(s, sqlite3_column_int64(st, 0));
        found++;
        const bool several = m != NULL && sqlite3_column_int(st, 2) != 0;
        *contrary += several;
        if (m != NULL && (!several || s->conf->method == BY_TIME))
            m->value = sqlite3_column_double(st, 1);
    }
    sqlite3_finalize(st);
    if (code == PL_OK && found == 0)
        code = pl_fail(err, PL_ECONFIG, "no molecule has a label called %s; `column` names the one with %s; there are: %s",
                       s->conf->column, what, st_labels_stored(s->env->store, s->env->mem));
    return code;
}

/* Reports molecules that no line or cell puts into a part. `one` and `many` are the reason, before the name of column or file. */
static void without_part_tell(const split_state *s, int64_t n, const char *one, const char *many, const char *name)
{
    if (n > 0)
        pl_event_add(s->env, PL_WARN, "%lld %s in no part, because %s %s", (long long)n,
                     pl_plural(n, "molecule is", "molecules are"), pl_plural(n, one, many), name);
}

/* The mean of train and test would be valid: a molecule whose records are of several parts is in none. */
pl_code st_split_column(split_state *s, pl_error *err)
{
    int64_t contrary = 0, other = 0, empty = 0;
    double first = 0;
    pl_code code = values_read(s, "0, 1, 2", &contrary, err);

    if (code != PL_OK)
        return code;
    for (int64_t i = 0; i < s->n; i++) {
        const double value = s->m[i].value;
        empty += isnan(value);
        s->m[i].part = value == ST_TRAIN || value == ST_VALID || value == ST_TEST ? (int)value : NO_PART;
        if (s->m[i].part != NO_PART || isnan(value))
            continue;
        first = other == 0 ? value : first;
        other++;
    }
    if (other > 0)
        pl_event_add(s->env, PL_WARN, "%lld %s in no part, because %s is %.10g%s; 0 is training, 1 validation, 2 test",
                     (long long)other, pl_plural(other, "molecule is", "molecules are"), s->conf->column, first,
                     other > 1 ? " or another value" : "");
    if (contrary > 0)
        pl_event_add(s->env, PL_WARN, "%lld %s in no part, because the records have several values in %s", (long long)contrary,
                     pl_plural(contrary, "molecule is", "molecules are"), s->conf->column);
    without_part_tell(s, empty - contrary, "it has no", "they have no", s->conf->column);
    return PL_OK;
}

/* NaN sorts after all numbers. */
static int compare_value(const void *a, const void *b)
{
    const double x = ((const member *)a)->value, y = ((const member *)b)->value;

    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

static void times_tell(const split_state *s, int64_t n)
{
    pl_text text = { 0 };

    for (int64_t i = 0; i < n; i++)
        if (i == 0 || s->m[i].part != s->m[i - 1].part)
            pl_text_addf(&text, "%s%s from %.10g", i ? ", " : "", st_part_name[s->m[i].part], s->m[i].value);
    if (n > 0)
        pl_event_add(s->env, PL_INFO, "%s to %.10g", pl_text_str(&text), s->m[n - 1].value);
    pl_text_free(&text);
}

/* The smallest values train, the largest test; equal values, such as molecules of one year, go to the part of the first. */
pl_code st_split_time(split_state *s, pl_error *err)
{
    static const int order[ST_SPLIT_PARTS] = { ST_TRAIN, ST_VALID, ST_CALIBRATION, ST_TEST };
    int64_t n = 0, several = 0;
    int k = 0;
    double end = s->conf->fraction[order[0]];
    pl_code code = values_read(s, "the year, or any number that grows with time", &several, err);

    if (code != PL_OK)
        return code;
    qsort(s->m, (size_t)s->n, sizeof *s->m, compare_value);
    while (n < s->n && !isnan(s->m[n].value))
        n++;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || s->m[i].value != s->m[i - 1].value)
            while (k < ST_SPLIT_PARTS - 1 && (double)i >= end * (double)n - 1e-9)
                end += s->conf->fraction[order[++k]];
        s->m[i].part = order[k];
    }
    if (several > 0)
        pl_event_add(s->env, PL_WARN, "%lld %s records with several values in %s; %s as of the last", (long long)several,
                     pl_plural(several, "molecule has", "molecules have"), s->conf->column,
                     pl_plural(several, "it counts", "each counts"));
    times_tell(s, n);
    without_part_tell(s, s->n - n, "it has no", "they have no", s->conf->column);
    return PL_OK;
}

/* ---- lines of a file ---- */

static int part_of(const char *word)
{
    for (int p = 0; p < ST_SPLIT_PARTS; p++)
        if (!strcmp(word, st_part_name[p]) || (word[0] == '0' + p && !word[1]))
            return p;
    return NO_PART;
}

static bool is_separator(char c) { return c == ' ' || c == '\t' || c == ',' || c == '\r'; }

/* Ends the text before the separators at its end. */
static void cut_separators(char *text)
{
    for (size_t n = strlen(text); n > 0 && is_separator(text[n - 1]); n--)
        text[n - 1] = '\0';
}

/* One line of the file into the table split_line. */
static pl_code line_add(const split_state *s, sqlite3_stmt *add, char *line, int number, pl_error *err)
{
    char *cut = NULL;
    int part;

    cut_separators(line);
    for (char *c = line; *c; c++)
        if (is_separator(*c))
            cut = c;
    part = cut != NULL ? part_of(cut + 1) : NO_PART;
    if (cut != NULL)
        *cut = '\0';
    cut_separators(line);
    if (part == NO_PART || !line[0]) /* an empty name would match every molecule without one */
        return pl_fail(err, PL_ECONFIG, "%s:%d: expected `InChIKey-or-title part`; part is train, valid, test or calibration",
                       s->conf->path, number);
    (void)sqlite3_bind_text(add, 1, line, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(add, 2, part);
    (void)sqlite3_bind_int(add, 3, number);
    return pl_db_run(add, err);
}

/* The key has the hash of the file as it was when the run began. */
static pl_code check_same(const split_state *s, pl_bytes text, pl_error *err)
{
    char now[65];
    pl_sha256 sha;

    pl_sha256_start(&sha);
    pl_sha256_add(&sha, text.data, text.len);
    pl_sha256_hex(&sha, now);
    return strstr(s->env->step->extra_json, now) != NULL ? PL_OK
                                                         : pl_fail(err, PL_EINPUT,
                                                                   "%s was changed since the run began; run again when no "
                                                                   "program writes to it",
                                                                   s->conf->path);
}

static pl_code lines_add(const split_state *s, pl_error *err)
{
    sqlite3_stmt *add = NULL;
    pl_bytes text;
    pl_code code = pl_file_read(&text, s->conf->path, s->env->mem, err);

    if (code == PL_OK)
        code = check_same(s, text, err);
    if (code == PL_OK)
        code = pl_db_prepare(s->env->store->db, &add, "INSERT INTO temp.split_line VALUES(?1,?2,?3)", err);
    if (code != PL_OK)
        return code;
    char *line = (char *)text.data, *next;
    line += strncmp(line, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; /* a byte-order mark */
    for (int number = 1; line != NULL && code == PL_OK; line = next, number++) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        if (line[strspn(line, " \t\r")] && line[0] != '#')
            code = line_add(s, add, line, number, err);
    }
    sqlite3_finalize(add);
    return code;
}

/* What two lines say of one molecule; n: of how many molecules they differ. */
typedef struct contradiction {
    const char *inchikey;
    int line[2], part[2];
    int64_t n;
} contradiction;

/* The part of a line for a molecule. first: [s->n] the first line that named each member, 0 none. */
static void member_place(const split_state *s, contradiction *c, int *first, member *m, int part, int line)
{
    int *was = &first[m - s->m];

    if (*was == 0) {
        *was = line;
        m->part = part;
    } else if (m->part != part && c->n++ == 0)
        *c = (contradiction){ m->key, { *was, line }, { m->part, part }, 1 };
}

static pl_code contradiction_tell(const split_state *s, const contradiction *c, pl_error *err)
{
    char more[64] = "";

    if (c->n == 0)
        return PL_OK;
    if (c->n > 1)
        (void)snprintf(more, sizeof more, " (%lld such lines in all)", (long long)c->n);
    return pl_fail(err, PL_ECONFIG,
                   "%s:%d puts molecule %s in %s, but %s:%d puts it in %s%s; a molecule is in one part: remove one of the lines",
                   s->conf->path, c->line[1], c->inchikey, st_part_name[c->part[1]], s->conf->path, c->line[0],
                   st_part_name[c->part[0]], more);
}

/* Several lines may name a molecule, by its InChIKey and by the titles of its records. */
static pl_code lines_apply(split_state *s, pl_error *err)
{
    sqlite3_stmt *find = NULL;
    contradiction found = { 0 };
    int *first = PL_NEW(s->env->mem, int, s->n + 1);
    pl_code code = first == NULL
                       ? pl_fail(err, PL_ENOMEM, "lines of %s", s->conf->path)
                       : pl_db_prepare(s->env->store->db, &find,
                                       "SELECT mol_id, part, number FROM molecule JOIN temp.split_line ON word=inchikey "
                                       "UNION ALL SELECT mol_id, part, number FROM record JOIN temp.split_line ON word=title "
                                       "WHERE mol_id IS NOT NULL ORDER BY number",
                                       err);

    while (pl_db_next(find, &code, err)) {
        member *m = st_split_member(s, sqlite3_column_int64(find, 0));
        if (m != NULL)
            member_place(s, &found, first, m, sqlite3_column_int(find, 1), sqlite3_column_int(find, 2));
    }
    sqlite3_finalize(find);
    return code == PL_OK ? contradiction_tell(s, &found, err) : code;
}

/* Names that are misspelled, or whose records failed. */
static pl_code lines_strange(const split_state *s, pl_error *err)
{
    int64_t n = 0;
    pl_code code =
        pl_db_int(s->env->store->db, &n, err,
                  "SELECT count(*) FROM temp.split_line WHERE NOT EXISTS(SELECT 1 FROM molecule WHERE inchikey=word) AND "
                  "word NOT IN (SELECT title FROM record WHERE mol_id IS NOT NULL AND title IS NOT NULL)");

    if (n > 0)
        pl_event_add(s->env, PL_WARN, "%lld %s of %s %s no molecule that was read", (long long)n, pl_plural(n, "line", "lines"),
                     s->conf->path, pl_plural(n, "names", "name"));
    return code;
}

/* The lines become a table that is joined once, because titles have no index. */
pl_code st_split_file(split_state *s, pl_error *err)
{
    sqlite3 *db = s->env->store->db;
    int64_t without = 0;
    pl_code code = pl_db_exec(db,
                              "DROP TABLE IF EXISTS temp.split_line;"
                              "CREATE TEMP TABLE split_line(word TEXT NOT NULL, part INTEGER, number INTEGER);",
                              err);

    if (code == PL_OK)
        code = lines_add(s, err);
    if (code == PL_OK)
        code = pl_db_exec(db, "CREATE INDEX temp.split_word ON split_line(word)", err);
    if (code == PL_OK)
        code = lines_apply(s, err);
    if (code == PL_OK)
        code = lines_strange(s, err);
    for (int64_t i = 0; i < s->n; i++)
        without += s->m[i].part == NO_PART;
    if (code == PL_OK)
        without_part_tell(s, without, "no line names it in", "no line names them in", s->conf->path);
    return code != PL_OK ? code : pl_db_exec(db, "DROP TABLE temp.split_line", err);
}
