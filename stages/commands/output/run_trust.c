/* SPDX-License-Identifier: Apache-2.0 */
/* A last line of `run`: which component of a model to trust, by its evaluation here, or by that in its file. */
#include <jansson.h>
#include <string.h>

#include "stages/commands/output/run_words.h"
#include "stages/steps/errors/trust.h"

static const char *text(sqlite3_stmt *st, int i) { return (const char *)sqlite3_column_text(st, i); }

static void print_one(const char *model, const char *property, const st_trust *t, const char *part, const char *unit)
{
    pl_text words = { 0 };

    st_trust_sentence(&words, t, part, unit);
    if (words.len > 0)
        pl_cmd_print("model %s, %s: %s\n", model, property, pl_text_str(&words));
    pl_text_free(&words);
}

/* Models that this run evaluated: a row for each number, those of one model and property together. */
static const char found_sql[] =
    "SELECT m.name, p.name, e.part, coalesce(p.unit,''), e.metric, e.value, e.n, e.model_id*1000+e.property_id, EXISTS(SELECT 1 FROM evaluation b "
    "WHERE b.model_id=e.model_id AND b.property_id=e.property_id AND b.metric='brier') FROM evaluation e JOIN model m USING(model_id) JOIN "
    "property p USING(property_id) WHERE (e.metric='coverage90' OR e.metric LIKE '%.domain %') AND e.part=(SELECT min(part) FROM evaluation "
    "WHERE part IN('new','test','valid')) ORDER BY 8, e.metric";

typedef struct group {
    char model[128], property[128], part[16], unit[64];
    int64_t key;
    st_trust t;
} group;

static void group_begin(group *g, sqlite3_stmt *st)
{
    (void)snprintf(g->model, sizeof g->model, "%s", text(st, 0));
    (void)snprintf(g->property, sizeof g->property, "%s", text(st, 1));
    (void)snprintf(g->part, sizeof g->part, "%s", text(st, 2));
    (void)snprintf(g->unit, sizeof g->unit, "%s", text(st, 3));
    g->key = sqlite3_column_int64(st, 7);
    g->t = st_trust_new(sqlite3_column_int(st, 8) != 0);
}

static void print_found(pl_store *s)
{
    sqlite3_stmt *st = NULL;
    group g = { .key = 0 };
    bool row = false;

    if (pl_db_prepare(s->db, &st, found_sql, NULL) != PL_OK)
        return;
    while (pl_db_step(st, &row, NULL) == PL_OK && row) {
        if (g.key != sqlite3_column_int64(st, 7)) {
            print_one(g.model, g.property, &g.t, g.part, g.unit);
            group_begin(&g, st);
        }
        st_trust_add(&g.t, text(st, 4), sqlite3_column_double(st, 5), sqlite3_column_int64(st, 6));
    }
    print_one(g.model, g.property, &g.t, g.part, g.unit);
    (void)sqlite3_finalize(st);
}

/* ---- by the file of the model ---- */

static const char known_sql[] =
    "SELECT name, metadata_json FROM model m WHERE EXISTS(SELECT 1 FROM prediction x WHERE x.model_id=m.model_id) "
    "AND NOT EXISTS(SELECT 1 FROM evaluation e WHERE e.model_id=m.model_id) ORDER BY 1 LIMIT 16";

static void print_target(const char *model, const json_t *target, const json_t *errors)
{
    const char *part = json_object_get(errors, "test") != NULL ? "test" : "valid";
    const char *name = json_string_value(json_object_get(target, "name")),
               *unit = json_string_value(json_object_get(target, "unit"));
    const json_t *e = json_object_get(errors, part);
    st_trust t = st_trust_new(json_object_get(e, "brier") != NULL);

    st_trust_take(&t, json_object_get(e, "domain"));
    if (name != NULL)
        print_one(model, name, &t, part, unit != NULL ? unit : "");
}

static void print_known(pl_store *s)
{
    sqlite3_stmt *st = NULL;
    bool row = false;

    if (pl_db_prepare(s->db, &st, known_sql, NULL) != PL_OK)
        return;
    while (pl_db_step(st, &row, NULL) == PL_OK && row) {
        json_t *meta = json_loads(text(st, 1), 0, NULL), *one;
        const json_t *errors = json_object_get(json_object_get(meta, "provenance"), "errors"),
                     *list = json_object_get(json_object_get(meta, "target"), "targets");
        size_t k;
        json_array_foreach(list, k, one) /* a file without the list has one network, so no components to compare */
            print_target(text(st, 0), one,
                         json_array_size(list) > 1 ? json_object_get(errors, json_string_value(json_object_get(one, "name")))
                                                   : errors);
        json_decref(meta);
    }
    (void)sqlite3_finalize(st);
}

void st_trust_print(pl_store *s)
{
    print_found(s);
    print_known(s);
}
