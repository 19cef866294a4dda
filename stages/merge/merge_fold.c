/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/merge/merge.h"

#include "stages/database/descriptor_columns.h"
#include "stages/database/external_models.h"

/* ---- what all shards have in common ---- */

/* Indexes are created at the end, all at once. */
static pl_code drop_indexes(st_merging *m, pl_error *err)
{
    sqlite3 *db = m->store->db;
    pl_text drops = { 0 };
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_exec(db,
                              "CREATE TABLE merge_index AS SELECT name, sql FROM sqlite_master WHERE type='index' AND "
                              "sql IS NOT NULL",
                              err);

    if (code == PL_OK)
        code = pl_db_prepare(db, &st, "SELECT name FROM merge_index", err);
    if (code != PL_OK)
        return code;
    while (pl_db_next(st, &code, err))
        pl_text_addf(&drops, "DROP INDEX %s;", (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    if (code == PL_OK)
        code = pl_text_ok(&drops) ? pl_db_exec(db, pl_text_str(&drops), err) : pl_fail(err, PL_ENOMEM, "a query");
    pl_text_free(&drops);
    return code;
}

/* For each property a shard has the record that first had its label, and whether a model predicts it. */
static pl_code note_properties(st_merging *m, int32_t shard, pl_error *err)
{
    return pl_db_execf(
        m->store->db, err,
        "INSERT OR REPLACE INTO merge_property SELECT %d, p.property_id, name, unit, task, better, description, first, NULL,"
        " EXISTS(SELECT 1 FROM s.prediction x WHERE x.property_id=p.property_id) FROM s.property p LEFT JOIN (SELECT property_id, min(record_id) AS first FROM s.measurement GROUP BY 1)"
        " USING(property_id)",
        (int)shard);
}

/* In the order in which one run meets them: what models predict, then labels by their first record. A
 * prediction that shares the name of a label of another unit has its own (stages/steps/train/model_row.h). */
static const char properties_sql[] =
    "CREATE TEMP TABLE merge_said AS SELECT name, unit, min(first) FROM merge_property WHERE first IS NOT NULL GROUP BY name;"
    "UPDATE merge_property SET name=name||' ('||coalesce(nullif(unit,''),'model')||')' WHERE first IS NULL AND EXISTS"
    " (SELECT 1 FROM merge_said q WHERE q.name=merge_property.name AND q.unit<>'' AND q.unit<>merge_property.unit);"
    "DROP TABLE temp.merge_said;"
    "INSERT INTO property(name,unit,task,better,description) SELECT name,unit,task,better,description FROM"
    " (SELECT *, (SELECT max(predicted) FROM merge_property q WHERE q.name=p.name) AS model FROM"
    "  (SELECT name,unit,task,better,description,property_id,min(coalesce(first,9e18)) AS f FROM merge_property GROUP BY name) p)"
    " ORDER BY model DESC, CASE WHEN model THEN 0 ELSE f END, property_id;"
    "UPDATE merge_property SET id=(SELECT property_id FROM property q WHERE q.name=merge_property.name);";

static const char tables_sql[] =
    "CREATE TABLE merge_done(shard INTEGER PRIMARY KEY);"
    "CREATE TABLE merge_step(name TEXT PRIMARY KEY, key TEXT NOT NULL, place INTEGER NOT NULL);"
    "CREATE TABLE merge_property(shard INTEGER, property_id INTEGER, name TEXT, unit TEXT, task TEXT, better TEXT,"
    " description TEXT, first INTEGER, id INTEGER, predicted INTEGER, PRIMARY KEY(shard,property_id));"
    "CREATE TABLE merge_label(record_id INTEGER, property_id INTEGER, value REAL, PRIMARY KEY(record_id,property_id))"
    " WITHOUT ROWID;";

static pl_code common(st_merging *m, pl_error *err)
{
    pl_code code = drop_indexes(m, err);

    if (code == PL_OK)
        code = pl_db_exec(m->store->db, tables_sql, err);
    for (int i = 0; i < m->wf->n_steps && code == PL_OK; i++)
        if (pl_step_in_shard(m->wf, i))
            code = pl_db_execf(m->store->db, err, "INSERT INTO merge_step VALUES(%Q,%Q,%d)", m->wf->step[i].stage->name,
                               m->wf->step[i].key, i);
    return code;
}

pl_code st_merge_begin(st_merging *m, pl_error *err)
{
    sqlite3 *db = m->store->db;
    pl_code code = pl_db_begin(db, err);

    if (code == PL_OK)
        code = common(m, err);
    if (code == PL_OK)
        code = pl_db_commit(db, err);
    for (int32_t k = 0; k < m->n && code == PL_OK; k++) { /* outside of a transaction: files are attached */
        code = st_merge_attach(m, k, err);
        if (code == PL_OK)
            code = note_properties(m, k, err);
        code = st_merge_detach(m, code, err);
    }
    if (code == PL_OK)
        code = pl_db_begin(db, err);
    if (code == PL_OK)
        code = pl_db_exec(db, properties_sql, err);
    if (code == PL_OK)
        code = pl_db_exec(db, "INSERT INTO meta VALUES('merge_begun','yes')", err);
    return code == PL_OK ? pl_db_commit(db, err) : code;
}

/* ---- one shard ---- */

#define RUN "(SELECT off FROM merge_run)"
#define STEPS "(SELECT name FROM merge_step)"

/* Numbers of runs of the shard come after those that are here. */
static const char runs_sql[] =
    "CREATE TEMP TABLE IF NOT EXISTS merge_run(off INTEGER); DELETE FROM temp.merge_run;"
    "INSERT INTO temp.merge_run SELECT coalesce(max(run_id),0) FROM main.run;"
    "INSERT INTO main.run SELECT run_id+" RUN ", uuid,command,argv_json,config_yaml,config_sha256,resumed_from+" RUN ","
    " state,exit_code,stop_reason,started_utc,ended_utc,host,scheduler,scheduler_job_id,array_task,ranks,workers,seed,"
    " program_version,git_commit,openbabel_version,sqlite_version,kernels,cpu_s,worker_cpu_s FROM s.run;"
    "INSERT INTO main.event(run_id,at_utc,level,stage,message) SELECT run_id+" RUN ",at_utc,level,stage,message FROM s.event"
    " ORDER BY event_id;"
    "INSERT OR IGNORE INTO main.file_hash SELECT * FROM s.file_hash;"
    "INSERT OR IGNORE INTO main.input_file SELECT file_id,path,size_bytes,sha256,format,0 FROM s.input_file;"
    "UPDATE main.input_file SET n_records=n_records+(SELECT i.n_records FROM s.input_file i"
    " WHERE i.file_id=main.input_file.file_id);"
    "INSERT OR IGNORE INTO main.model(name,path,sha256,metadata_json) SELECT name,path,sha256,metadata_json FROM s.model"
    " ORDER BY model_id;"
    "INSERT INTO main.failure(run_id,stage,record_id,mol_id,code,message,signal,cpu_s,attempt,at_utc)"
    " SELECT run_id+" RUN ",stage,record_id,mol_id,code,message,signal,cpu_s,attempt,at_utc FROM s.failure WHERE stage IN " STEPS
    " ORDER BY failure_id;";

static const char stages_sql[] =
    "INSERT OR IGNORE INTO main.stage(name,key,params_json,extra_json,needs_json,code_version,state,n_units,n_blocks,run_id,"
    "created_utc) SELECT a.name,a.key,params_json,extra_json,needs_json,code_version,'running',0,0,run_id+" RUN ",created_utc"
    " FROM s.stage a JOIN merge_step b ON b.key=a.key ORDER BY b.place;"
    "UPDATE main.stage SET"
    " n_units=n_units+(SELECT a.n_units FROM s.stage a WHERE a.key=main.stage.key),"
    " n_blocks=n_blocks+(SELECT a.n_blocks FROM s.stage a WHERE a.key=main.stage.key),"
    " wall_s=wall_s+(SELECT a.wall_s FROM s.stage a WHERE a.key=main.stage.key),"
    " created_utc=min(created_utc,(SELECT a.created_utc FROM s.stage a WHERE a.key=main.stage.key)),"
    " done_utc=max(coalesce(done_utc,''),(SELECT a.done_utc FROM s.stage a WHERE a.key=main.stage.key));";

/* Columns of `molecule` that are the same in all: the others. */
#define COPIED                                                                                                     \
    "mol_id,inchikey,smiles,formula,n_atoms,n_heavy,charge,removed,geometry,energy,neutralised,alerts,structures," \
    "undefined_stereo,built_by,steps,converged,fallback" ST_DESCRIPTOR_NAMES

/* %1 is the number of shards, %2 this one: unit i here is unit i*n+k of all. */
static pl_code fold_units(st_merging *m, int32_t shard, pl_error *err)
{
    return pl_db_execf(
        m->store->db, err,
        "INSERT INTO main.unit SELECT c.stage_id, u.unit*%d+%d, u.first,u.last,u.n_ok,u.n_failed,u.wall_s,u.run_id+" RUN
        " FROM s.stage a JOIN s.unit u USING(stage_id) JOIN main.stage c ON c.key=a.key;"
        "INSERT INTO main.record SELECT * FROM s.record;"
        "INSERT INTO main.molecule(" COPIED ",unit) SELECT " COPIED ",unit*%d+%d FROM s.molecule;"
        "INSERT INTO main.fingerprint SELECT mol_id,scaffold,bits FROM s.fingerprint ORDER BY mol_id;",
        (int)m->n, (int)shard, (int)m->n, (int)shard);
}

static pl_code fold_values(st_merging *m, int32_t shard, pl_error *err)
{
    return pl_db_execf(
        m->store->db, err,
        "INSERT INTO main.merge_label SELECT x.record_id,p.id,x.value FROM s.measurement x JOIN merge_property p ON "
        "p.property_id=x.property_id AND p.shard=%d;"
        "INSERT INTO main.label SELECT x.mol_id,p.id,x.value,x.n_measurements,x.spread FROM s.label x JOIN merge_property p "
        "ON p.property_id=x.property_id AND p.shard=%d;"
        "INSERT INTO main.prediction SELECT x.mol_id,p.id,c.model_id,x.value,x.similarity,x.nearest,x.spread,x.uncertainty FROM s.prediction x JOIN merge_property p ON "
        "p.property_id=x.property_id AND p.shard=%d JOIN s.model b ON b.model_id=x.model_id JOIN main.model c ON "
        "c.name=b.name WHERE CASE WHEN " ST_IS_EXTERNAL(
            "b.") " THEN 'external' ELSE 'score' END IN " STEPS ";"
                  "INSERT INTO main.score SELECT x.mol_id,p.id,x.mean,x.stdev,x.n_models,x.similarity,x.interval90,x.domain,x.reasons FROM s.score x JOIN merge_property p ON "
                  "p.property_id=x.property_id AND p.shard=%d WHERE CASE WHEN x.property_id IN (SELECT q.property_id FROM s.prediction q JOIN "
                  "s.model b USING(model_id) WHERE " ST_IS_EXTERNAL("b.") ") THEN 'external' ELSE 'score' END IN " STEPS ";"
                                                                          "INSERT INTO main.merge_done VALUES(%d)",
        (int)shard, (int)shard, (int)shard, (int)shard, (int)shard);
}

pl_code st_merge_fold(st_merging *m, int32_t shard, pl_error *err)
{
    pl_code code = pl_db_exec(m->store->db, runs_sql, err);

    if (code == PL_OK)
        code = pl_db_exec(m->store->db, stages_sql, err);
    if (code == PL_OK)
        code = fold_units(m, shard, err);
    return code == PL_OK ? fold_values(m, shard, err) : code;
}
