-- The engine's own tables; the application's follow in stages/database/schema.sql.
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE column_doc(
  tbl TEXT NOT NULL, col TEXT NOT NULL, unit TEXT, description TEXT NOT NULL, PRIMARY KEY(tbl,col)) WITHOUT ROWID;
CREATE TABLE run(
  run_id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, command TEXT NOT NULL, argv_json TEXT NOT NULL,
  config_yaml TEXT NOT NULL, config_sha256 TEXT NOT NULL, resumed_from INTEGER REFERENCES run(run_id),
  state TEXT NOT NULL CHECK(state IN('running','done','stopped','failed','lost')), exit_code INTEGER,
  stop_reason TEXT, started_utc TEXT NOT NULL, ended_utc TEXT, host TEXT, scheduler TEXT, scheduler_job_id TEXT,
  array_task INTEGER, ranks INTEGER, workers INTEGER, seed INTEGER, program_version TEXT NOT NULL,
  git_commit TEXT, openbabel_version TEXT, sqlite_version TEXT, kernels TEXT,
  cpu_s REAL, worker_cpu_s REAL);
CREATE TABLE input_file(
  file_id INTEGER PRIMARY KEY, path TEXT NOT NULL, size_bytes INTEGER NOT NULL, sha256 TEXT NOT NULL,
  format TEXT NOT NULL, n_records INTEGER, UNIQUE(path,sha256));
CREATE TABLE file_hash(
  path TEXT PRIMARY KEY, size_bytes INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
  sha256 TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE stage(
  stage_id INTEGER PRIMARY KEY, name TEXT NOT NULL, key TEXT NOT NULL UNIQUE, params_json TEXT NOT NULL,
  extra_json TEXT NOT NULL, needs_json TEXT NOT NULL, code_version INTEGER NOT NULL,
  state TEXT NOT NULL CHECK(state IN('running','done')), n_units INTEGER, wall_s REAL NOT NULL DEFAULT 0,
  n_blocks INTEGER NOT NULL DEFAULT 0, -- that it has in features.db
  run_id INTEGER REFERENCES run, -- that began it
  created_utc TEXT NOT NULL, done_utc TEXT);
CREATE TABLE unit(
  stage_id INTEGER NOT NULL REFERENCES stage ON DELETE CASCADE, unit INTEGER NOT NULL, first INTEGER, last INTEGER,
  n_ok INTEGER NOT NULL, n_failed INTEGER NOT NULL, wall_s REAL, run_id INTEGER REFERENCES run,
  PRIMARY KEY(stage_id,unit)) WITHOUT ROWID;
CREATE TABLE failure(
  failure_id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES run, stage TEXT NOT NULL,
  record_id INTEGER, mol_id INTEGER, code TEXT NOT NULL, message TEXT NOT NULL,
  signal INTEGER, cpu_s REAL, attempt INTEGER NOT NULL, at_utc TEXT NOT NULL);
CREATE TABLE metric(
  stage TEXT NOT NULL, step INTEGER NOT NULL, epoch REAL, split TEXT NOT NULL, name TEXT NOT NULL,
  value REAL NOT NULL, run_id INTEGER REFERENCES run, at_utc TEXT NOT NULL, PRIMARY KEY(stage,name,split,step)) WITHOUT ROWID;
CREATE TABLE event(
  event_id INTEGER PRIMARY KEY, run_id INTEGER REFERENCES run, at_utc TEXT NOT NULL, level TEXT NOT NULL,
  stage TEXT, message TEXT NOT NULL);
CREATE INDEX failure_stage ON failure(stage,code);
CREATE INDEX failure_record ON failure(record_id) WHERE record_id IS NOT NULL;
CREATE INDEX failure_mol ON failure(mol_id) WHERE mol_id IS NOT NULL;
CREATE VIEW v_progress AS SELECT
  st.name AS stage, st.state, st.n_units AS units, count(u.unit) AS done, sum(coalesce(u.n_ok,0)) AS ok,
    sum(coalesce(u.n_failed,0)) AS failed, round(st.wall_s,2) AS wall_s
  FROM stage st LEFT JOIN unit u USING(stage_id) GROUP BY st.stage_id;
CREATE VIEW v_runs AS SELECT
  run_id, command, state, exit_code, stop_reason, started_utc, ended_utc,
    round((julianday(ended_utc)-julianday(started_utc))*86400,1) AS wall_s, scheduler, scheduler_job_id, host,
    workers, program_version, git_commit, config_sha256, resumed_from FROM run;
