/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/database/schema.h"

#include "stages/database/descriptor_columns.h"
#include "stages/schema_sql.h" /* made from schema.sql by CMake */

/* "m.mw, m.logp, ": those that v_hits has. */
#define IN_HITS(name, kind, unit, heading, title, shown, ...) IN_HITS_##shown(name)
#define IN_HITS_TOP(name) "m." #name ", "
#define IN_HITS_HITS(name) "m." #name ", "
#define IN_HITS_FILES(name) ""
#define ST_HIT_DESCRIPTORS CH_DESCRIPTORS(IN_HITS)
#include "stages/views_sql.h" /* made from views.sql by CMake */

extern const char *const st_schema_docs[][4]; /* stages/database/schema_docs.c */

/* A row of a molecule is named by the record that first gave it. */
#define KEY(id) "(SELECT i.sha256||':'||r.ordinal FROM record r JOIN input_file i USING(file_id) WHERE r.record_id=" id ")"

static const char *const digest[][2] = {
    { "input_file", "SELECT sha256, format, n_records FROM input_file" },
    { "record", "SELECT i.sha256, r.ordinal, r.byte_offset, r.line, r.title, r.raw_smiles, r.status, " KEY(
                    "x.mol_id") ", r.reason FROM record x JOIN record r ON r.record_id=x.record_id "
                                "JOIN input_file i ON i.file_id=r.file_id" },
    { "molecule", "SELECT " KEY("m.mol_id") ", inchikey, smiles, formula, n_atoms, n_heavy, charge" ST_DESCRIPTOR_NAMES
                                            ", removed, geometry, energy, neutralised, alerts, structures, "
                                            "undefined_stereo, built_by, steps, converged, fallback FROM molecule m" },
    { "fingerprint", "SELECT " KEY("f.mol_id") ", f.scaffold, hex(f.bits) FROM fingerprint f" },
    { "property", "SELECT name, unit, task, better, description FROM property" },
    { "label", "SELECT " KEY("l.mol_id") ", p.name, l.value, l.n_measurements, l.spread "
                                         "FROM label l JOIN property p USING(property_id)" },
    { "split", "SELECT " KEY("s.mol_id") ", s.part FROM split s" },
    { "model", "SELECT name FROM model" },
    { "prediction",
      "SELECT " KEY("x.mol_id") ", p.name, m.name, x.value, x.similarity, x.nearest, x.spread, x.uncertainty FROM prediction x "
                                "JOIN property p USING(property_id) JOIN model m USING(model_id)" },
    { "score", "SELECT " KEY("s.mol_id") ", p.name, s.mean, s.stdev, s.n_models, s.similarity, s.interval90, "
                                         "s.domain, s.reasons FROM score s JOIN property p USING(property_id)" },
    { "evaluation", "SELECT m.name, p.name, e.part, e.metric, e.unit, e.value, e.n FROM evaluation e "
                    "JOIN model m USING(model_id) JOIN property p USING(property_id)" },
    { "evaluated", "SELECT " KEY("e.mol_id") ", m.name, p.name, e.part, e.measured, e.predicted, e.similarity FROM evaluated e "
                                             "JOIN model m USING(model_id) JOIN property p USING(property_id)" },
    { "hit", "SELECT h.rank, " KEY("h.mol_id") ", h.objective, h.front, h.cluster, h.n_similar FROM hit h" },
    { "measured", "SELECT property, inchikey, value, unit, task, round FROM measured" },
    { "acquired",
      "SELECT round, place, inchikey, property, strategy, acquisition, mean, deviation, rank, similarity, reason, outcome "
      "FROM acquired" },
    { "failure", "SELECT f.stage, f.code, f.message, f.signal, " KEY("f.record_id") ", " KEY("f.mol_id") " FROM failure f" },
    { "metric", "SELECT stage, step, epoch, split, name, value FROM metric WHERE name NOT LIKE '%\\_s' ESCAPE '\\'" },
    { NULL, NULL },
};

/* Version of results.db: CHANGES, or a descriptor's `since` where that is larger. */
enum { CHANGES = 11 };
#define SINCE(name, kind, unit, heading, title, shown, since, ...) char name[since];
union versions {
    char changes[CHANGES];
    CH_DESCRIPTORS(SINCE)
};
enum { VERSION = sizeof(union versions) };

#define ADDED(name, kind, unit, heading, title, shown, since, ...) { "molecule", #name " " ST_SQL(kind), since },
static const pl_added added[] = { CH_DESCRIPTORS(ADDED){ 0 } };

/* From version i to i+1, besides `added` and the views. Old versions are never edited. */
static const char *const migrate[VERSION] = {
    NULL,
    "CREATE TABLE evaluated(model_id INTEGER NOT NULL REFERENCES model, property_id INTEGER NOT NULL REFERENCES property, "
    "mol_id INTEGER NOT NULL REFERENCES molecule, part TEXT NOT NULL, measured REAL NOT NULL, predicted REAL NOT NULL, "
    "PRIMARY KEY(model_id,property_id,mol_id)) WITHOUT ROWID;",
    "ALTER TABLE molecule ADD COLUMN neutralised INTEGER; ALTER TABLE molecule ADD COLUMN alerts TEXT; "
    "ALTER TABLE record ADD COLUMN reason TEXT; "
    "ALTER TABLE prediction ADD COLUMN similarity REAL; ALTER TABLE prediction ADD COLUMN nearest TEXT; "
    "ALTER TABLE score ADD COLUMN similarity REAL; ALTER TABLE evaluated ADD COLUMN similarity REAL; "
    "ALTER TABLE hit ADD COLUMN front INTEGER; ALTER TABLE hit ADD COLUMN cluster INTEGER; ALTER TABLE hit ADD COLUMN n_similar INTEGER;",
    "ALTER TABLE score ADD COLUMN interval90 REAL;",
    "ALTER TABLE molecule ADD COLUMN structures INTEGER; ALTER TABLE molecule ADD COLUMN undefined_stereo INTEGER; "
    "ALTER TABLE prediction ADD COLUMN spread REAL;",
    "ALTER TABLE score ADD COLUMN domain TEXT; ALTER TABLE score ADD COLUMN reasons TEXT; ALTER TABLE run ADD COLUMN kernels TEXT;",
    "ALTER TABLE run ADD COLUMN cpu_s REAL; ALTER TABLE run ADD COLUMN worker_cpu_s REAL;",
    "ALTER TABLE molecule ADD COLUMN built_by TEXT; ALTER TABLE molecule ADD COLUMN steps INTEGER; "
    "ALTER TABLE molecule ADD COLUMN converged INTEGER; ALTER TABLE molecule ADD COLUMN fallback TEXT;",
    "ALTER TABLE prediction ADD COLUMN uncertainty REAL;",
    "CREATE TABLE fingerprint(mol_id INTEGER PRIMARY KEY REFERENCES molecule, scaffold TEXT NOT NULL, bits BLOB NOT NULL);",
    "CREATE TABLE measured(property TEXT NOT NULL, inchikey TEXT NOT NULL, value REAL NOT NULL, unit TEXT NOT NULL, task TEXT NOT NULL, "
    "round INTEGER NOT NULL, source TEXT NOT NULL, PRIMARY KEY(property,inchikey)) WITHOUT ROWID; "
    "CREATE TABLE acquired(round INTEGER NOT NULL, place INTEGER NOT NULL, inchikey TEXT NOT NULL, property TEXT NOT NULL, strategy TEXT "
    "NOT NULL, acquisition REAL, mean REAL, deviation REAL, rank INTEGER, similarity REAL, reason TEXT NOT NULL, outcome TEXT, "
    "PRIMARY KEY(round,place)) WITHOUT ROWID;",
};

const pl_schema st_schema = {
    .sql = st_schema_sql,
    .views = st_views_sql,
    .version = VERSION,
    .migrate = migrate,
    .added = added,
    .docs = st_schema_docs,
    .digest = digest,
};
