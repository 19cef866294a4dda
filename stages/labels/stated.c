/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/labels/stated.h"

#include <stdio.h>
#include <sys/stat.h>

#include "pipeline/base/stop.h"
#include "stages/database/measured.h"
#include "stages/steps/ingest/label_scan.h"

/* ---- the library ---- */

typedef struct looking {
    st_stated *out;
    const char *property;
    int64_t left; /* records that are still looked at */
    pl_arena *mem;
} looking;

static bool all_found(const looking *x) { return x->out->unit_at != NULL && x->out->type_at != NULL; }

static pl_code place_keep(const char **at, const ch_said *s, const char *path, pl_arena *mem, pl_error *err)
{
    if (*at != NULL || s->first[0] == '\0')
        return PL_OK;
    *at = pl_sprintf(mem, "%s:%lld", path, (long long)s->line);
    return *at != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a place");
}

static pl_code record_look(looking *x, const char *path, ch_reader *reader, const ch_record *r, pl_arena *scratch, pl_error *err)
{
    ch_field *field = NULL;
    const ch_field *f;
    int n = 0;
    pl_code code = ch_record_measured(&field, &n, reader, r, scratch, err);

    f = code == PL_OK ? ch_field_named(field, n, x->property) : NULL; /* as prepare takes it */
    if (f == NULL || f->text[0] == '\0')
        return code;
    (void)ch_units_add(&x->out->units, field, n, f, r->line);
    code = place_keep(&x->out->unit_at, &x->out->units.unit, path, x->mem, err);
    return code == PL_OK ? place_keep(&x->out->type_at, &x->out->units.type, path, x->mem, err) : code;
}

static pl_code file_read(looking *x, const char *path, ch_reader *reader, pl_error *err)
{
    pl_arena *scratch = pl_arena_new(1 << 14);
    bool more = true;
    pl_code code = scratch != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a table");

    while (code == PL_OK && x->left > 0 && !all_found(x)) {
        ch_record r;
        code = ch_reader_next(reader, &r, &more, err);
        if (code != PL_OK || !more)
            break;
        x->left--;
        pl_arena_reset(scratch);
        if (r.problem == NULL || r.no_smiles)
            code = record_look(x, path, reader, &r, scratch, err);
    }
    pl_arena_free(scratch);
    return code;
}

static pl_code file_look(looking *x, const char *path, int64_t size, const char *format, pl_error *err)
{
    const ch_reader_opts opts = { .stop = pl_stop_flag(), .smiles_later = true };
    ch_reader *reader = NULL;
    struct stat at;
    pl_code code;

    if (!ch_format_is_ours(format))
        return PL_OK;
    if (stat(path, &at) != 0 || (int64_t)at.st_size != size || ch_reader_open(&reader, path, format, &opts, NULL) != PL_OK) {
        x->out->unread = pl_strdup(x->mem, path);
        return x->out->unread != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a path");
    }
    code = file_read(x, path, reader, err);
    ch_reader_close(reader);
    return code;
}

/* Labels that the library's own files gave: those that were added later are in `measured`, too. */
static pl_code library_has(int64_t *any, pl_store *s, const char *property, pl_error *err)
{
    return pl_db_int(
        s->db, any, err,
        "SELECT EXISTS(SELECT 1 FROM label l JOIN molecule m USING(mol_id) WHERE l.property_id=(SELECT property_id FROM "
        "property WHERE name=%Q) AND NOT EXISTS(SELECT 1 FROM measured x WHERE x.property=%Q AND x.inchikey="
        "coalesce(nullif(m.inchikey,''),m.smiles)))",
        property, property);
}

static pl_code library_read(looking *x, pl_store *s, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    int64_t any = 0;
    pl_code code = library_has(&any, s, x->property, err);

    if (code != PL_OK || !any)
        return code;
    code = pl_db_prepare(s->db, &st, "SELECT path, size_bytes, format FROM input_file ORDER BY file_id", err);
    while (pl_db_next(st, &code, err) && !all_found(x))
        code = file_look(x, (const char *)sqlite3_column_text(st, 0), sqlite3_column_int64(st, 1),
                         (const char *)sqlite3_column_text(st, 2), err);
    (void)sqlite3_finalize(st);
    return code;
}

/* ---- tables of later values ---- */

static pl_code kept_read(ch_said *s, const char **at, const char *key, const looking *x, pl_store *store, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code;

    if (*at != NULL)
        return PL_OK;
    code = pl_db_prepare(store->db, &st,
                         "SELECT json_extract(value,'$.text'), json_extract(value,'$.column'), json_extract(value,'$.place') FROM "
                         "meta WHERE key=?1||?2",
                         err);
    if (code == PL_OK) {
        (void)sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(st, 2, x->property, -1, SQLITE_STATIC);
    }
    if (pl_db_next(st, &code, err)) {
        (void)snprintf(s->first, sizeof s->first, "%s", (const char *)sqlite3_column_text(st, 0));
        (void)snprintf(s->name, sizeof s->name, "%s", (const char *)sqlite3_column_text(st, 1));
        *at = pl_strdup(x->mem, (const char *)sqlite3_column_text(st, 2));
        if (*at == NULL)
            code = pl_fail(err, PL_ENOMEM, "a place");
    }
    (void)sqlite3_finalize(st);
    return code;
}

pl_code st_stated_read(st_stated *out, pl_store *s, const char *property, pl_arena *mem, pl_error *err)
{
    looking x = { .out = out, .property = property, .left = ST_LABELS_LOOKED_AT, .mem = mem };
    pl_code code;

    *out = (st_stated){ 0 };
    code = library_read(&x, s, err);
    if (code == PL_OK)
        code = kept_read(&out->units.unit, &out->unit_at, ST_STATED_UNIT, &x, s, err);
    return code == PL_OK ? kept_read(&out->units.type, &out->type_at, "stated type ", &x, s, err) : code;
}

static pl_code keep(pl_store *s, const char *key, const char *property, const char *path, const ch_said *said, pl_error *err)
{
    if (said->first[0] == '\0')
        return PL_OK;
    return pl_db_execf(
        s->db, err,
        "INSERT OR IGNORE INTO meta(key,value) VALUES(%Q||%Q, json_object('text',%Q,'column',%Q,'place',%Q||':%lld','logarithm',%d))",
        key, property, said->first, said->name, path, (long long)said->line, ch_is_logarithm(property));
}

pl_code st_stated_store(pl_store *s, const char *property, const char *path, const ch_units *said, pl_error *err)
{
    pl_code code = keep(s, ST_STATED_UNIT, property, path, &said->unit, err);

    return code == PL_OK ? keep(s, "stated type ", property, path, &said->type, err) : code;
}

/* ---- a table against them ---- */

static void differ_say(char out[CH_RELATION_BYTES], const ch_said *now, const ch_said *was, const char *at, const char *what,
                       const char *label, const char *to_do)
{
    (void)snprintf(out, CH_RELATION_BYTES, "%.40s is '%.30s', and '%.30s' in %.120s: %s are not one column of %.40s; %s", now->name,
                   now->first, was->first, at, what, label, to_do);
}

int64_t st_stated_unit_say(char out[CH_RELATION_BYTES], const st_stated *was, const ch_units *now, const char *label)
{
    const ch_said *a = &now->unit, *b = &was->units.unit;

    if (was->unit_at == NULL || !ch_unit_differs(a->first, b->first, a->name, label))
        return 0;
    differ_say(out, a, b, was->unit_at, "numbers of two units", label,
               "convert them, or remove the column of units if it does not belong to them");
    return a->line;
}

int64_t st_stated_type_say(char out[CH_RELATION_BYTES], const st_stated *was, const ch_units *now, const char *label)
{
    const ch_said *a = &now->type, *b = &was->units.type;

    if (was->type_at == NULL || !ch_type_differs(a->first, b->first))
        return 0;
    differ_say(out, a, b, was->type_at, "two kinds of measurement", label,
               "keep the rows of one, or remove the column of types to mix them");
    return a->line;
}
