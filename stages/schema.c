/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/schema.h"

#include "stages/schema_sql.h" /* made from schema.sql by CMake */

extern const char *const st_schema_docs[][4]; /* stages/schema_docs.c */

/* A row of a molecule is named by the record that first gave it. */
#define KEY(id) "(SELECT i.sha256||':'||r.ordinal FROM record r JOIN input_file i USING(file_id) WHERE r.record_id=" id ")"

static const char *const digest[][2] = {
    { "input_file", "SELECT sha256, format, n_records FROM input_file" },
    { "record", "SELECT i.sha256, r.ordinal, r.byte_offset, r.line, r.title, r.raw_smiles, r.status, "
                KEY("x.mol_id") ", r.reason FROM record x JOIN record r ON r.record_id=x.record_id "
                "JOIN input_file i ON i.file_id=r.file_id" },
    { "molecule", "SELECT " KEY("m.mol_id") ", inchikey, smiles, formula, n_atoms, n_heavy, charge, mw, logp, "
                  "tpsa, hbd, hba, rotb, rings, removed, geometry, energy, neutralised, alerts, structures, "
                  "undefined_stereo FROM molecule m" },
    { "property", "SELECT name, unit, task, better, description FROM property" },
    { "label", "SELECT " KEY("l.mol_id") ", p.name, l.value, l.n_measurements, l.spread "
               "FROM label l JOIN property p USING(property_id)" },
    { "split", "SELECT " KEY("s.mol_id") ", s.part FROM split s" },
    { "model", "SELECT name FROM model" },
    { "prediction", "SELECT " KEY("x.mol_id") ", p.name, m.name, x.value, x.similarity, x.nearest, x.spread FROM prediction x "
                    "JOIN property p USING(property_id) JOIN model m USING(model_id)" },
    { "score", "SELECT " KEY("s.mol_id") ", p.name, s.mean, s.stdev, s.n_models, s.similarity, s.interval90, "
               "s.domain, s.reasons FROM score s JOIN property p USING(property_id)" },
    { "evaluation", "SELECT m.name, p.name, e.part, e.metric, e.unit, e.value, e.n FROM evaluation e "
                    "JOIN model m USING(model_id) JOIN property p USING(property_id)" },
    { "evaluated", "SELECT " KEY("e.mol_id") ", m.name, p.name, e.part, e.measured, e.predicted, e.similarity FROM evaluated e "
                   "JOIN model m USING(model_id) JOIN property p USING(property_id)" },
    { "hit", "SELECT h.rank, " KEY("h.mol_id") ", h.objective, h.front, h.cluster, h.n_similar FROM hit h" },
    { "failure", "SELECT f.stage, f.code, f.message, f.signal, " KEY("f.record_id") ", " KEY("f.mol_id")
                 " FROM failure f" },
    { "metric", "SELECT stage, step, epoch, split, name, value FROM metric WHERE name NOT LIKE '%\\_s' ESCAPE '\\'" },
    { NULL, NULL },
};

/* From version i to i+1. Old versions are never edited. */
static const char *const migrate[] = {
    NULL,
    "CREATE TABLE evaluated(model_id INTEGER NOT NULL REFERENCES model, property_id INTEGER NOT NULL REFERENCES property, "
    "mol_id INTEGER NOT NULL REFERENCES molecule, part TEXT NOT NULL, measured REAL NOT NULL, predicted REAL NOT NULL, "
    "PRIMARY KEY(model_id,property_id,mol_id)) WITHOUT ROWID;",
    "ALTER TABLE molecule ADD COLUMN neutralised INTEGER; ALTER TABLE molecule ADD COLUMN alerts TEXT; "
    "ALTER TABLE record ADD COLUMN reason TEXT; "
    "ALTER TABLE prediction ADD COLUMN similarity REAL; ALTER TABLE prediction ADD COLUMN nearest TEXT; "
    "ALTER TABLE score ADD COLUMN similarity REAL; ALTER TABLE evaluated ADD COLUMN similarity REAL; "
    "ALTER TABLE hit ADD COLUMN front INTEGER; ALTER TABLE hit ADD COLUMN cluster INTEGER; ALTER TABLE hit ADD COLUMN n_similar INTEGER; "
    "DROP VIEW v_hits; "
    "CREATE VIEW v_hits AS SELECT h.rank, m.inchikey, m.smiles, p.name AS property, p.unit, s.mean AS score, s.stdev, s.similarity, "
    "h.objective, m.mw, m.logp, m.tpsa, m.hbd, m.hba, m.rotb, m.charge, m.formula, "
    "(SELECT group_concat(title,'; ') FROM record r WHERE r.mol_id=m.mol_id) AS titles, h.front, h.cluster, h.n_similar, m.alerts "
    "FROM hit h CROSS JOIN molecule m ON m.mol_id=h.mol_id "
    "LEFT JOIN property p ON EXISTS(SELECT 1 FROM score e WHERE e.property_id=p.property_id AND e.mol_id=h.mol_id) "
    "LEFT JOIN score s ON s.property_id=p.property_id AND s.mol_id=h.mol_id ORDER BY h.rank, p.property_id;",
    "ALTER TABLE score ADD COLUMN interval90 REAL; DROP VIEW v_hits; "
    "CREATE VIEW v_hits AS SELECT h.rank, m.inchikey, m.smiles, p.name AS property, p.unit, s.mean AS score, s.stdev, s.interval90, "
    "s.similarity, h.objective, m.mw, m.logp, m.tpsa, m.hbd, m.hba, m.rotb, m.charge, m.formula, "
    "(SELECT group_concat(title,'; ') FROM record r WHERE r.mol_id=m.mol_id) AS titles, h.front, h.cluster, h.n_similar, m.alerts "
    "FROM hit h CROSS JOIN molecule m ON m.mol_id=h.mol_id "
    "LEFT JOIN property p ON EXISTS(SELECT 1 FROM score e WHERE e.property_id=p.property_id AND e.mol_id=h.mol_id) "
    "LEFT JOIN score s ON s.property_id=p.property_id AND s.mol_id=h.mol_id ORDER BY h.rank, p.property_id;",
    "ALTER TABLE molecule ADD COLUMN structures INTEGER; ALTER TABLE molecule ADD COLUMN undefined_stereo INTEGER; "
    "ALTER TABLE prediction ADD COLUMN spread REAL; DROP VIEW v_hits; "
    "CREATE VIEW v_hits AS SELECT h.rank, m.inchikey, m.smiles, p.name AS property, p.unit, s.mean AS score, s.stdev, s.interval90, "
    "s.similarity, h.objective, m.mw, m.logp, m.tpsa, m.hbd, m.hba, m.rotb, m.charge, m.formula, "
    "(SELECT group_concat(title,'; ') FROM record r WHERE r.mol_id=m.mol_id) AS titles, h.front, h.cluster, h.n_similar, m.alerts, "
    "m.undefined_stereo FROM hit h CROSS JOIN molecule m ON m.mol_id=h.mol_id "
    "LEFT JOIN property p ON EXISTS(SELECT 1 FROM score e WHERE e.property_id=p.property_id AND e.mol_id=h.mol_id) "
    "LEFT JOIN score s ON s.property_id=p.property_id AND s.mol_id=h.mol_id ORDER BY h.rank, p.property_id;",
    "ALTER TABLE score ADD COLUMN domain TEXT; ALTER TABLE score ADD COLUMN reasons TEXT; DROP VIEW v_hits; "
    "CREATE VIEW v_hits AS SELECT h.rank, m.inchikey, m.smiles, p.name AS property, p.unit, s.mean AS score, s.stdev, s.interval90, "
    "s.similarity, s.domain, s.reasons, h.objective, m.mw, m.logp, m.tpsa, m.hbd, m.hba, m.rotb, m.charge, m.formula, "
    "(SELECT group_concat(title,'; ') FROM record r WHERE r.mol_id=m.mol_id) AS titles, h.front, h.cluster, h.n_similar, m.alerts, "
    "m.undefined_stereo FROM hit h CROSS JOIN molecule m ON m.mol_id=h.mol_id "
    "LEFT JOIN property p ON EXISTS(SELECT 1 FROM score e WHERE e.property_id=p.property_id AND e.mol_id=h.mol_id) "
    "LEFT JOIN score s ON s.property_id=p.property_id AND s.mol_id=h.mol_id ORDER BY h.rank, p.property_id; "
    "ALTER TABLE run ADD COLUMN kernels TEXT;",
    "ALTER TABLE run ADD COLUMN cpu_s REAL; ALTER TABLE run ADD COLUMN worker_cpu_s REAL;",
};

/* What a reader of an older version sees in place of the columns and tables that it lacks. */
#define RUN_6 "CREATE TEMP VIEW run AS SELECT *, NULL AS kernels, NULL AS cpu_s, NULL AS worker_cpu_s FROM main.run;"
#define RUN_7 "CREATE TEMP VIEW run AS SELECT *, NULL AS cpu_s, NULL AS worker_cpu_s FROM main.run;"

#define SINCE_3 \
    "CREATE TEMP VIEW molecule AS SELECT *, NULL AS neutralised, NULL AS alerts, NULL AS structures, NULL AS undefined_stereo FROM " \
    "main.molecule;" \
    "CREATE TEMP VIEW record AS SELECT *, NULL AS reason FROM main.record;" \
    "CREATE TEMP VIEW prediction AS SELECT *, NULL AS similarity, NULL AS nearest, NULL AS spread FROM main.prediction;" \
    "CREATE TEMP VIEW score AS SELECT *, NULL AS similarity, NULL AS interval90, NULL AS domain, NULL AS reasons FROM main.score;" \
    "CREATE TEMP VIEW hit AS SELECT *, NULL AS front, NULL AS cluster, NULL AS n_similar FROM main.hit;"

#define SINCE_5 \
    "CREATE TEMP VIEW molecule AS SELECT *, NULL AS structures, NULL AS undefined_stereo FROM main.molecule;" \
    "CREATE TEMP VIEW prediction AS SELECT *, NULL AS spread FROM main.prediction;"

#define SINCE_6 "CREATE TEMP VIEW score AS SELECT *, NULL AS domain, NULL AS reasons FROM main.score;"

static const char *const older[] = {
    NULL,
    RUN_6 SINCE_3 "CREATE TEMP VIEW evaluated AS SELECT NULL AS model_id, NULL AS property_id, NULL AS mol_id, NULL AS part, "
    "NULL AS measured, NULL AS predicted, NULL AS similarity WHERE 0;",
    RUN_6 SINCE_3 "CREATE TEMP VIEW evaluated AS SELECT *, NULL AS similarity FROM main.evaluated;",
    RUN_6 SINCE_5 "CREATE TEMP VIEW score AS SELECT *, NULL AS interval90, NULL AS domain, NULL AS reasons FROM main.score;",
    RUN_6 SINCE_5 SINCE_6,
    RUN_6 SINCE_6,
    RUN_7,
};

const pl_schema st_schema = {
    .sql = st_schema_sql,
    .version = 7,
    .migrate = migrate,
    .older = older,
    .docs = st_schema_docs,
    .digest = digest,
};
