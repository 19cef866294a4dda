/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/merge/merge.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/ingest/prepare.h"
#include "stages/steps/ingest/shells.h"

/* ---- which molecules are one ---- */

static pl_code make_indexes(st_merging *m, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_text sql = { 0 };
    pl_code code = pl_db_prepare(m->store->db, &st,
                                 "SELECT sql FROM merge_index WHERE name NOT IN (SELECT name FROM "
                                 "sqlite_master)",
                                 err);

    while (pl_db_next(st, &code, err))
        pl_text_addf(&sql, "%s;\n", (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    if (code == PL_OK)
        code = pl_text_ok(&sql) ? pl_db_exec(m->store->db, pl_text_str(&sql), err) : pl_fail(err, PL_ENOMEM, "a query");
    pl_text_free(&sql);
    return code;
}

/* As find_sql of prepare_store.c: by InChIKey or a part of it, and by SMILES where there is none or both must be the same, else by
 * the number of free valences and the forms of axes; and by the columns that models read. The first step looks at the index alone; what it leaves are few. */
static const char same_sql[] =
    "CREATE TEMP TABLE merge_some AS SELECT mol_id, unit, %s AS inchikey, CASE WHEN inchikey='' OR %d THEN smiles ELSE "
    "free_valences(smiles)%s END%s AS smiles FROM molecule WHERE %s IN (SELECT %s FROM molecule GROUP BY 1 HAVING count(*)>1);"
    "CREATE TEMP TABLE merge_first AS SELECT inchikey, smiles, min(mol_id) AS first FROM merge_some GROUP BY 1,2;"
    "CREATE INDEX temp.merge_first_key ON merge_first(inchikey,smiles);"
    "INSERT INTO merge_same SELECT a.mol_id, b.first, a.unit FROM merge_some a JOIN merge_first b USING(inchikey,smiles)"
    " WHERE a.mol_id<>b.first ORDER BY 1;"
    "DROP TABLE temp.merge_some; DROP TABLE temp.merge_first;";

pl_code st_merge_same(st_merging *m, pl_error *err)
{
    const st_prepare_conf *c = pl_workflow_step(m->wf, "prepare")->conf;
    const int n = st_dedupe_letters(c->dedupe);
    const char *key = n == 27 ? "inchikey" : pl_sprintf(m->mem, "substr(inchikey,1,%d)", n);
    const char *columns = st_columns_text(&c->columns, m->mem);
    pl_code code = key != NULL && columns != NULL ? make_indexes(m, err) : pl_fail(err, PL_ENOMEM, "a query");

    if (code == PL_OK)
        code = pl_db_exec(m->store->db,
                          "DROP TABLE IF EXISTS merge_same;"
                          "CREATE TABLE merge_same(mol_id INTEGER PRIMARY KEY, first INTEGER NOT NULL, unit INTEGER NOT NULL)",
                          err);
    if (code == PL_OK)
        code = st_shells_open(m->store->db, err);
    if (code == PL_OK && c->dedupe != ST_DEDUPE_NONE)
        code = pl_db_execf(m->store->db, err, same_sql, key, c->dedupe == ST_DEDUPE_EXACT,
                           c->dedupe == ST_DEDUPE_SKELETON ? "" : "||axes(smiles)", columns, key, key);
    return code == PL_OK ? pl_db_exec(m->store->db, "CREATE INDEX merge_same_unit ON merge_same(unit)", err) : code;
}

/* ---- labels ---- */

static pl_code put_label(sqlite3_stmt *put, int64_t mol_id, int64_t property_id, const st_label *l, pl_error *err)
{
    if (l->n == 0)
        return PL_OK;
    (void)sqlite3_bind_int64(put, 1, mol_id);
    (void)sqlite3_bind_int64(put, 2, property_id);
    (void)sqlite3_bind_double(put, 3, l->value);
    (void)sqlite3_bind_int64(put, 4, l->n);
    (void)sqlite3_bind_double(put, 5, l->spread);
    return pl_db_run(put, err);
}

/* Computed from the single values, in the order in which one run adds them. */
static pl_code add_labels(st_merging *m, sqlite3_stmt *get, sqlite3_stmt *put, pl_error *err)
{
    const st_prepare_conf *c = pl_workflow_step(m->wf, "prepare")->conf;
    int64_t mol = 0, property = 0;
    st_label l = { 0 };
    pl_code code = PL_OK;

    while (pl_db_next(get, &code, err)) {
        if (sqlite3_column_int64(get, 0) != mol || sqlite3_column_int64(get, 1) != property) {
            code = put_label(put, mol, property, &l, err);
            mol = sqlite3_column_int64(get, 0);
            property = sqlite3_column_int64(get, 1);
            l = (st_label){ 0 };
        }
        st_label_add(&l, sqlite3_column_double(get, 2), st_label_conflict(c, (const char *)sqlite3_column_text(get, 3)));
    }
    return code == PL_OK ? put_label(put, mol, property, &l, err) : code;
}

static pl_code unite_labels(st_merging *m, pl_error *err)
{
    sqlite3 *db = m->store->db;
    sqlite3_stmt *get = NULL, *put = NULL;
    pl_code code = pl_db_prepare(db, &get,
                                 "SELECT r.mol_id, x.property_id, x.value, p.name FROM (SELECT DISTINCT first FROM merge_same) f "
                                 "CROSS JOIN record r ON r.mol_id=f.first CROSS JOIN merge_label x ON x.record_id=r.record_id "
                                 "CROSS JOIN property p USING(property_id) "
                                 "ORDER BY 1, 2, x.record_id",
                                 err);

    if (code == PL_OK)
        code = pl_db_prepare(db, &put,
                             "INSERT OR REPLACE INTO label(mol_id,property_id,value,n_measurements,spread) "
                             "VALUES(?,?,?,?,?)",
                             err);
    if (code == PL_OK)
        code = add_labels(m, get, put, err);
    (void)sqlite3_finalize(get);
    (void)sqlite3_finalize(put);
    return code;
}

/* ---- they become one ---- */

/* How a record is drawn: its reason, or as the molecule of its shard. */
#define DRAWN "coalesce(substr(r.reason,length('" ST_DRAWN_REASON "')+1),m.smiles)"

static const char unite_sql[] =
    "UPDATE record SET reason=(SELECT '" ST_DRAWN_REASON "'||nullif(" DRAWN
    ",f.smiles) FROM record r JOIN merge_same s USING(mol_id)"
    " JOIN molecule m USING(mol_id) JOIN molecule f ON f.mol_id=s.first WHERE r.record_id=record.record_id)"
    " WHERE mol_id IN (SELECT mol_id FROM merge_same);"
    "UPDATE record SET status='duplicate', mol_id=(SELECT first FROM merge_same s WHERE s.mol_id=record.mol_id)"
    " WHERE mol_id IN (SELECT mol_id FROM merge_same);"
    "DELETE FROM label WHERE mol_id IN (SELECT mol_id FROM merge_same);"
    "DELETE FROM failure WHERE mol_id IN (SELECT mol_id FROM merge_same);"
    "DELETE FROM prediction WHERE mol_id IN (SELECT mol_id FROM merge_same);"
    "DELETE FROM score WHERE mol_id IN (SELECT mol_id FROM merge_same);"
    "DELETE FROM fingerprint WHERE mol_id IN (SELECT mol_id FROM merge_same);"
    "DELETE FROM molecule WHERE mol_id IN (SELECT mol_id FROM merge_same);";

#define STAGE(name) "stage_id=(SELECT stage_id FROM stage WHERE name='" name "')"
#define FAILED(name) "(SELECT count(*) FROM failure f WHERE f.mol_id=m.mol_id AND f.stage='" name "')"
#define HURT(column) "coalesce((SELECT " column " FROM merge_hurt h WHERE h.unit=main.unit.unit),0)"

/* Counts of units that have lost molecules, as their stages would have made them. */
static const char units_sql[] =
    "CREATE TEMP TABLE merge_hurt AS SELECT h.unit, count(m.mol_id) AS n, min(m.mol_id) AS lo, max(m.mol_id) AS hi,"
    "  sum(g) AS no_graph, min(CASE WHEN g=0 THEN m.mol_id END) AS lo2, max(CASE WHEN g=0 THEN m.mol_id END) AS hi2,"
    "  sum(g=0 AND z>0) AS no_score, sum(e>0) AS no_program"
    " FROM (SELECT DISTINCT unit FROM merge_same) h LEFT JOIN"
    "  (SELECT m.mol_id, p.unit, " FAILED("graph") " AS g, " FAILED("external") " AS e, " FAILED(
        "score") " AS z FROM unit p CROSS JOIN molecule m"
                 "   ON m.mol_id BETWEEN p.first AND p.last WHERE p." STAGE(
                     "prepare") " AND p.unit IN (SELECT unit FROM merge_same)) m"
                                "  ON m.unit=h.unit GROUP BY h.unit;"
                                "CREATE INDEX temp.merge_hurt_unit ON merge_hurt(unit);"
                                "UPDATE unit SET first=" HURT("lo") ", last=" HURT("hi") ", n_ok=" HURT("n-no_graph") ", n_failed=" HURT("no_graph") " WHERE " STAGE(
                                    "graph") " AND unit IN (SELECT unit FROM merge_hurt);"
                                             "UPDATE unit SET first=" HURT("lo2") ", last=" HURT("hi2") ", n_ok=" HURT(
                                                 "n-no_graph") ", n_failed=0"
                                                               " WHERE " STAGE(
                                                                   "basis") " AND unit IN (SELECT unit FROM merge_hurt);"
                                                                            "UPDATE unit SET first=" HURT("lo2") ", last=" HURT("hi2") ", n_ok=" HURT(
                                                                                "n-no_graph-no_score") ","
                                                                                                       " n_failed=" HURT("no_score") " WHERE " STAGE(
                                                                                                           "score") " AND unit IN (SELECT unit FROM merge_hurt);"
                                                                                                                    "UPDATE unit SET first=" HURT("lo") ", last=" HURT("hi") ", n_ok=" HURT("n-no_program") ", n_failed=" HURT(
                                                                                                                        "no_program") " WHERE " STAGE("external") " AND unit IN (SELECT unit FROM merge_hurt);"
                                                                                                                                                                  "DROP TABLE temp.merge_hurt;";

pl_code st_merge_unite(st_merging *m, pl_error *err)
{
    pl_code code = pl_db_exec(m->store->db, unite_sql, err);

    if (code == PL_OK)
        code = unite_labels(m, err);
    return code == PL_OK ? pl_db_exec(m->store->db, units_sql, err) : code;
}
