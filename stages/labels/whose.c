/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/labels/whose.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "pipeline/base/stop.h"
#include "pipeline/base/text.h"
#include "stages/database/schema.h"
#include "stages/steps/ingest/prepared_as.h"

enum { KEY = 27, SKELETON = 14, SHOWN = 60 };

struct st_whose {
    pl_store *store;
    pl_arena *mem, *scratch;
    sqlite3_stmt *by_key, *by_title;
    st_prepare_conf prepare; /* as the library was prepared */
    ch_worker *worker;
};

/* ---- how the library was prepared ---- */

static pl_code settings_read(st_prepare_conf *c, pl_store *s, pl_error *err)
{
    st_prepared_as as;
    pl_code code = st_prepared_as_read(&as, s, err);

    *c = as.conf;
    if (code == PL_OK && !as.is_done)
        return pl_fail(err, PL_ECONFIG, "%s: its library is not prepared yet; run the workflow first", s->results_path);
    if (code == PL_OK && as.has_columns)
        return pl_fail(err, PL_ECONFIG,
                       "%s: its molecules are observations with columns such as a temperature, so an identifier does not name one; "
                       "add the rows to an input of the workflow",
                       s->results_path);
    return code;
}

/* ---- open, close ---- */

/* Titles of records have no index in results.db. A molecule of several records is also called by all of them, as tables of a run write it. */
static const char titles_sql[] =
    "CREATE TEMP TABLE titles(title TEXT, mol_id INTEGER, PRIMARY KEY(title,mol_id)) WITHOUT ROWID;"
    "INSERT OR IGNORE INTO temp.titles SELECT title, mol_id FROM record WHERE title<>'' AND mol_id IS NOT NULL;"
    "INSERT OR IGNORE INTO temp.titles SELECT " ST_TITLES ", m.mol_id FROM molecule m WHERE m.mol_id IN"
    " (SELECT mol_id FROM record WHERE title<>'' AND mol_id IS NOT NULL GROUP BY mol_id HAVING count(*)>1)";

pl_code st_whose_open(st_whose **out, pl_store *s, pl_arena *mem, pl_error *err)
{
    st_whose *w = PL_NEW(mem, st_whose, 1);
    pl_code code = w != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "molecules of a table");

    *out = w;
    if (code != PL_OK)
        return code;
    *w = (st_whose){ .store = s, .mem = mem, .scratch = pl_arena_new(1 << 14) };
    if (w->scratch == NULL)
        return pl_fail(err, PL_ENOMEM, "molecules of a table");
    code = settings_read(&w->prepare, s, err);
    if (code == PL_OK)
        code = pl_db_exec(s->db, titles_sql, err);
    if (code == PL_OK)
        code =
            pl_db_prepare(s->db, &w->by_key,
                          "SELECT mol_id, inchikey, smiles FROM molecule WHERE inchikey>=?1 AND inchikey<?1||'~' AND inchikey<>'' "
                          "ORDER BY mol_id LIMIT 2",
                          err);
    return code != PL_OK
               ? code
               : pl_db_prepare(s->db, &w->by_title,
                               "SELECT m.mol_id, m.inchikey, m.smiles FROM temp.titles t JOIN molecule m USING(mol_id) WHERE "
                               "t.title=?1 ORDER BY m.mol_id LIMIT 2",
                               err);
}

void st_whose_close(st_whose *w)
{
    if (w == NULL)
        return;
    (void)sqlite3_finalize(w->by_key);
    (void)sqlite3_finalize(w->by_title);
    (void)pl_db_exec(w->store->db, "DROP TABLE IF EXISTS temp.titles", NULL);
    ch_worker_close(w->worker);
    pl_arena_free(w->scratch);
}

/* ---- one way of naming a molecule ---- */

/* *n: how many there are, at most 2. Of copies with one InChIKey it counts one. */
static pl_code look_up(st_found *out, int *n, st_whose *w, sqlite3_stmt *st, const char *text, pl_error *err)
{
    pl_code code = PL_OK;

    *n = 0;
    *out = (st_found){ 0 };
    (void)sqlite3_bind_text(st, 1, text, -1, SQLITE_STATIC);
    while (pl_db_next(st, &code, err)) {
        const char *key = (const char *)sqlite3_column_text(st, 1);
        key = key[0] != '\0' ? key : (const char *)sqlite3_column_text(st, 2);
        if (*n > 0 && strcmp(out->inchikey, key) == 0)
            continue;
        if (++*n == 1)
            *out = (st_found){ .mol_id = sqlite3_column_int64(st, 0), .inchikey = pl_strdup(w->mem, key) };
        if (out->inchikey == NULL)
            code = pl_fail(err, PL_ENOMEM, "a molecule");
    }
    (void)sqlite3_reset(st);
    (void)sqlite3_clear_bindings(st);
    return code;
}

static bool is_key(const char *s)
{
    if (strlen(s) != KEY)
        return false;
    for (int i = 0; i < KEY; i++) {
        const bool dash = i == 14 || i == 25;
        if (dash ? s[i] != '-' : !isupper((unsigned char)s[i]))
            return false;
    }
    return true;
}

/* As far as the library tells molecules apart: stages.prepare.dedupe. */
static pl_code by_key(st_found *out, int *n, st_whose *w, const char *key, pl_error *err)
{
    char cut[KEY + 1];

    memcpy(cut, key, KEY);
    cut[st_dedupe_letters(w->prepare.dedupe)] = '\0';
    return look_up(out, n, w, w->by_key, cut, err);
}

/* The InChIKey of a SMILES, prepared as the library was. "": it has none, or, with *why, it cannot be prepared. */
static pl_code key_of(char key[KEY + 1], const char **why, st_whose *w, const ch_record *r, pl_error *err)
{
    const ch_prepare_opts opts = st_prepare_opts(&w->prepare, 0);
    const ch_worker_opts budget = st_prepare_budget(&w->prepare, pl_stop_flag());
    ch_prepared p = { 0 };
    pl_code code = w->worker != NULL ? PL_OK : ch_worker_open(&w->worker, &budget, err);

    key[0] = '\0';
    pl_arena_reset(w->scratch);
    if (code == PL_OK)
        code = ch_worker_prepare(w->worker, r->text, r->len, r->format, &opts, &p, w->scratch, err);
    if (code == PL_EINPUT)
        *why = pl_sprintf(w->mem, "%.*s", 2 * SHOWN, p.message != NULL ? p.message : "it cannot be read");
    if (code == PL_OK && p.inchikey != NULL && strlen(p.inchikey) == KEY)
        memcpy(key, p.inchikey, KEY + 1);
    return code == PL_EINPUT ? PL_OK : code;
}

/* ---- all of them ---- */

typedef struct names {
    const char *key, *title; /* "": none */
    st_found found;
    const char *by;               /* the name that found it */
    const char *alien;            /* InChIKey of the SMILES, if the library lacks it; NULL: no such */
    bool drawn;                   /* the SMILES defines stereo, or isotopes */
    const char *unread;           /* why the SMILES cannot be prepared; NULL: it can, or there is none */
    bool key_known, smiles_known; /* the library has the molecule of the InChIKey; of the SMILES */
    const char *tried;            /* "InChIKey X, title Y" */
    bool refused;                 /* memory for that */
    const char *problem;          /* NULL: none         */
} names;

/* The InChIKey that the row has; *other: another one, NULL: there is none. */
static const char *key_text(const char **other, const ch_field *field, int n)
{
    static const char *const name[] = { "inchikey", "inchi_key", "inchi key", "standard_inchi_key" };
    const char *found = "";

    *other = NULL;
    for (size_t k = 0; k < sizeof name / sizeof *name; k++)
        for (int i = 0; i < n; i++) {
            if (strcasecmp(field[i].name, name[k]) != 0 || field[i].text[0] == '\0')
                continue;
            if (found[0] == '\0')
                found = field[i].text;
            else if (strcmp(found, field[i].text) != 0)
                *other = field[i].text;
        }
    return found;
}

static void tried_add(names *x, st_whose *w, const char *what, const char *name)
{
    const int n = (int)strcspn(name, "\t\r\n"); /* of a SMILES without its title, of a molfile the first line */

    x->tried = pl_sprintf(w->mem, "%s%s%s '%.*s'", x->tried != NULL ? x->tried : "", x->tried != NULL ? ", " : "", what,
                          n < SHOWN ? n : SHOWN, name);
    x->refused = x->refused || x->tried == NULL;
}

/* Two names of a row that the library has mean one molecule if their InChIKeys are equal. */
static void take(names *x, st_whose *w, st_found f, const char *what)
{
    if (x->found.mol_id == 0) {
        x->found = f;
        x->by = what;
    } else if (strcmp(x->found.inchikey, f.inchikey) != 0 && !x->found.two) {
        x->found.two = true;
        x->problem = pl_sprintf(w->mem, "its %s is of %s, its %s of %s: two molecules", x->by, x->found.inchikey, what, f.inchikey);
    }
}

/* *n: how many molecules have it, at most 2. */
static pl_code try_key(int *n, names *x, st_whose *w, const char *key, const char *what, const char *shown, pl_error *err)
{
    st_found f;
    pl_code code = by_key(&f, n, w, key, err);

    if (code != PL_OK)
        return code;
    if (*n > 0)
        take(x, w, f, what);
    else
        tried_add(x, w, what, shown);
    return PL_OK;
}

/* Whether a SMILES says which stereoisomer or isotopologue it is. */
static bool is_drawn(const char *smiles)
{
    const size_t n = strcspn(smiles, "\t\r\n ");
    bool drawn = false;

    for (size_t i = 0; i < n; i++)
        drawn = drawn || strchr("@/\\", smiles[i]) != NULL || (smiles[i] == '[' && isdigit((unsigned char)smiles[i + 1]));
    return drawn;
}

static pl_code try_smiles(names *x, st_whose *w, const ch_record *r, pl_error *err)
{
    char key[KEY + 1];
    int n = 0;
    const char *why = NULL;
    pl_code code = key_of(key, &why, w, r, err);

    if (code != PL_OK)
        return code;
    if (key[0] != '\0') {
        code = try_key(&n, x, w, key, "SMILES", r->text, err);
        x->smiles_known = n > 0;
        if (code != PL_OK || n > 0)
            return code;
        x->alien = pl_strdup(w->mem, key);
        x->drawn = is_drawn(r->text);
        return x->alien != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a molecule");
    }
    x->unread = why;
    tried_add(x, w, "SMILES", r->text);
    if (x->tried != NULL)
        x->tried = pl_sprintf(w->mem, "%s (%s)", x->tried, why != NULL ? why : "it has no InChIKey");
    x->refused = x->refused || x->tried == NULL;
    return PL_OK;
}

/* The SMILES of a row was prepared as the library was: it is of the molecule that the other names mean, or these mean another one. It may
 * leave stereo and isotopes out, but not have others. */
static void compare_alien(names *x, st_whose *w)
{
    if (x->alien == NULL || x->found.mol_id == 0 || x->found.two)
        return;
    if (x->drawn ? strcmp(x->alien, x->found.inchikey) == 0 : strncmp(x->alien, x->found.inchikey, SKELETON) == 0)
        return;
    x->found.two = true;
    x->problem = pl_sprintf(w->mem, "its %s is of %s, its SMILES of %s, which the library lacks: two molecules", x->by,
                            x->found.inchikey, x->alien);
}

/* Whether the key that the library lacks may be of the molecule that was found: of the same atoms and bonds, without stereo or with the
 * same; or of its salt, if the SMILES says which molecule it is. */
static bool key_agrees(const names *x)
{
    static const char undefined[] = "UHFFFAOYSA";
    const char *key = x->key, *found = x->found.inchikey;

    if (strncmp(key, found, SKELETON) != 0)
        return x->smiles_known || x->alien != NULL;
    return strncmp(key + SKELETON + 1, undefined, 8) == 0 || strncmp(key + SKELETON + 1, found + SKELETON + 1, 8) == 0;
}

static void compare_key(names *x, st_whose *w)
{
    const char *which =
        ", which the library lacks, is of another: two molecules; if it is of a salt, give the SMILES, or leave it out";

    if (x->found.mol_id == 0 || x->found.two || !is_key(x->key) || x->key_known || key_agrees(x))
        return;
    if (strncmp(x->key, x->found.inchikey, SKELETON) == 0)
        which = " is of another stereoisomer: two molecules";
    x->found.two = true;
    x->problem = pl_sprintf(w->mem, "its %s is of %s, and its InChIKey%s", x->by, x->found.inchikey, which);
}

/* Another name decides, but nobody knows whether the SMILES agrees. */
static void compare_unread(names *x, st_whose *w)
{
    if (x->unread == NULL || x->found.mol_id == 0 || x->found.two)
        return;
    x->found.two = true;
    x->problem = pl_sprintf(w->mem, "its %s is of %s, and its SMILES cannot be read (%s): correct it, or leave it out", x->by,
                            x->found.inchikey, x->unread);
}

/* A title that several molecules have says nothing, unless there is nothing else. */
static pl_code try_title(names *x, st_whose *w, pl_error *err)
{
    st_found f;
    int n = 0;
    pl_code code = x->title[0] != '\0' ? look_up(&f, &n, w, w->by_title, x->title, err) : PL_OK;

    if (code != PL_OK || x->title[0] == '\0')
        return code;
    if (n == 1)
        take(x, w, f, "title");
    else if (n == 0)
        tried_add(x, w, "title", x->title);
    else if (x->found.mol_id == 0)
        x->problem = pl_sprintf(w->mem, "several molecules have the title '%.*s'; give an InChIKey or a SMILES", SHOWN, x->title);
    return PL_OK;
}

pl_code st_whose_find(st_found *out, const char **problem, st_whose *w, const ch_record *r, const ch_field *field, int n,
                      bool has_smiles, pl_error *err)
{
    const char *other;
    names x = { .key = key_text(&other, field, n), .title = r->title };
    int n_found = 0;
    pl_code code = PL_OK;

    if (x.key[0] != '\0' && is_key(x.key))
        code = try_key(&n_found, &x, w, x.key, "InChIKey", x.key, err), x.key_known = n_found > 0;
    else if (x.key[0] != '\0')
        x.problem = pl_sprintf(w->mem, "'%.*s' is no InChIKey", SHOWN, x.key);
    if (other != NULL) {
        x.problem = pl_sprintf(w->mem, "it has two InChIKeys, '%.*s' and '%.*s'", SHOWN, x.key, SHOWN, other);
        x.refused = x.problem == NULL;
    }
    if (code == PL_OK && has_smiles && r->len > 0 && r->problem == NULL)
        code = try_smiles(&x, w, r, err);
    if (code == PL_OK)
        code = try_title(&x, w, err);
    if (code != PL_OK)
        return code;
    compare_alien(&x, w);
    compare_key(&x, w);
    compare_unread(&x, w);
    *out = x.found;
    *problem = x.problem;
    if (x.refused || (x.found.two && x.problem == NULL))
        return pl_fail(err, PL_ENOMEM, "a row");
    if (x.found.mol_id == 0 && x.problem == NULL)
        *problem = x.tried != NULL ? pl_sprintf(w->mem, "no molecule of the library has %s", x.tried)
                                   : "it names no molecule: no InChIKey, title or SMILES";
    return *problem == NULL && x.found.mol_id == 0 ? pl_fail(err, PL_ENOMEM, "a row") : PL_OK;
}
