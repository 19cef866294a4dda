-- What a screening run stores; the engine's tables are in pipeline/store/store.sql. Descriptors after the first seven are
-- added at the end of `molecule` (chem/common/descriptors.h).
CREATE TABLE record(
  record_id INTEGER PRIMARY KEY, file_id INTEGER NOT NULL REFERENCES input_file, ordinal INTEGER NOT NULL,
  byte_offset INTEGER NOT NULL, line INTEGER NOT NULL, title TEXT, raw_smiles TEXT, mol_id INTEGER REFERENCES molecule,
  status TEXT NOT NULL CHECK(status='read' OR status='ok' OR status='duplicate' OR status='filtered' OR status='failed'),
  reason TEXT, UNIQUE(file_id,ordinal)); -- IN(...) would put the list into a table for every row
CREATE TABLE molecule(
  mol_id INTEGER PRIMARY KEY, -- the record_id of the first record that gave it
  inchikey TEXT NOT NULL, smiles TEXT NOT NULL, formula TEXT NOT NULL, n_atoms INTEGER NOT NULL, n_heavy INTEGER NOT NULL,
  charge INTEGER NOT NULL, mw REAL, logp REAL, tpsa REAL, hbd INTEGER, hba INTEGER, rotb INTEGER, rings INTEGER,
  removed TEXT, geometry TEXT NOT NULL, -- 'input', 'mmff94', 'uff' or 'none'
  energy REAL, unit INTEGER NOT NULL,   -- the block of features.db that holds its conformer
  neutralised INTEGER, alerts TEXT, structures INTEGER, undefined_stereo INTEGER,
  built_by TEXT, steps INTEGER, converged INTEGER, fallback TEXT);
CREATE TABLE fingerprint( -- what searches need, apart from `molecule` so that this stays narrow
  mol_id INTEGER PRIMARY KEY REFERENCES molecule, scaffold TEXT NOT NULL, bits BLOB NOT NULL);
CREATE TABLE property(
  property_id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, unit TEXT NOT NULL,
  task TEXT NOT NULL CHECK(task IN('regression','classification')),
  better TEXT NOT NULL CHECK(better IN('low','high','none')), description TEXT);
CREATE TABLE label(
  mol_id INTEGER NOT NULL REFERENCES molecule, property_id INTEGER NOT NULL REFERENCES property, value REAL NOT NULL,
  n_measurements INTEGER NOT NULL DEFAULT 1, spread REAL NOT NULL DEFAULT 0, PRIMARY KEY(mol_id,property_id)) WITHOUT ROWID;
CREATE TABLE split(
  mol_id INTEGER PRIMARY KEY REFERENCES molecule,
  part TEXT NOT NULL CHECK(part='train' OR part='valid' OR part='test' OR part='calibration'));
CREATE TABLE model(
  model_id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, path TEXT NOT NULL, sha256 TEXT NOT NULL, metadata_json TEXT NOT NULL);
CREATE TABLE prediction(
  mol_id INTEGER NOT NULL REFERENCES molecule, property_id INTEGER NOT NULL REFERENCES property,
  model_id INTEGER NOT NULL REFERENCES model, value REAL NOT NULL,
  similarity REAL, nearest TEXT, spread REAL, uncertainty REAL, PRIMARY KEY(property_id,model_id,mol_id)) WITHOUT ROWID;
CREATE TABLE score( -- over the models of a property
  mol_id INTEGER NOT NULL REFERENCES molecule, property_id INTEGER NOT NULL REFERENCES property,
  mean REAL NOT NULL, stdev REAL, n_models INTEGER NOT NULL, similarity REAL, interval90 REAL,
  domain TEXT, reasons TEXT, PRIMARY KEY(property_id,mol_id)) WITHOUT ROWID;
CREATE TABLE evaluation(
  model_id INTEGER NOT NULL REFERENCES model, property_id INTEGER NOT NULL REFERENCES property, part TEXT NOT NULL,
  metric TEXT NOT NULL, unit TEXT, value REAL NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(model_id,property_id,part,metric)) WITHOUT ROWID;
CREATE TABLE evaluated( -- molecule by molecule what evaluation sums up
  model_id INTEGER NOT NULL REFERENCES model, property_id INTEGER NOT NULL REFERENCES property,
  mol_id INTEGER NOT NULL REFERENCES molecule, part TEXT NOT NULL, measured REAL NOT NULL, predicted REAL NOT NULL,
  similarity REAL, PRIMARY KEY(model_id,property_id,mol_id)) WITHOUT ROWID;
CREATE TABLE hit(
  rank INTEGER PRIMARY KEY, mol_id INTEGER NOT NULL REFERENCES molecule, objective REAL NOT NULL,
  front INTEGER, cluster INTEGER, n_similar INTEGER); -- of rankings by fronts, of diverse ones
CREATE INDEX molecule_inchikey ON molecule(inchikey);
CREATE INDEX record_mol ON record(mol_id);
CREATE INDEX score_rank ON score(property_id,mean);
CREATE INDEX hit_mol ON hit(mol_id);
-- Made again after every migration (pl_schema.views).
CREATE VIEW v_hits AS SELECT -- one row for each hit and property, in order; without scores the property is NULL
  h.rank, m.inchikey, m.smiles, p.name AS property, p.unit, s.mean AS score, s.stdev, s.interval90, s.similarity, s.domain, s.reasons, h.objective,
    m.mw, m.logp, m.tpsa, m.hbd, m.hba, m.rotb, m.charge, m.formula,
    (SELECT group_concat(title,'; ') FROM record r WHERE r.mol_id=m.mol_id) AS titles, h.front, h.cluster, h.n_similar, m.alerts,
    m.undefined_stereo
  FROM hit h CROSS JOIN molecule m ON m.mol_id=h.mol_id
  LEFT JOIN property p ON EXISTS(SELECT 1 FROM score e WHERE e.property_id=p.property_id AND e.mol_id=h.mol_id)
  LEFT JOIN score s ON s.property_id=p.property_id AND s.mol_id=h.mol_id ORDER BY h.rank, p.property_id;
CREATE VIEW v_failures AS SELECT
  f.stage, f.code, f.message, coalesce(i.path||':'||r.line,'') AS place, r.ordinal, r.title, r.raw_smiles, m.inchikey,
    f.signal, f.cpu_s, f.attempt, f.at_utc
  FROM failure f LEFT JOIN record r ON r.record_id=coalesce(f.record_id,f.mol_id)
  LEFT JOIN input_file i USING(file_id) LEFT JOIN molecule m ON m.mol_id=f.mol_id;
CREATE VIEW v_funnel AS SELECT
  count(*) AS records, sum(status='ok') AS ok, sum(status='duplicate') AS duplicate, sum(status='filtered') AS filtered,
    sum(status='failed') AS failed, sum(status='read') AS waiting,
    (SELECT count(*) FROM molecule) AS molecules, (SELECT count(DISTINCT mol_id) FROM score) AS scored,
    (SELECT count(*) FROM hit) AS hits FROM record;
CREATE VIEW v_scaffolds AS SELECT -- one row for each scaffold of the ranking, with its best hit; the others take their values from that one
  f.scaffold, min(h.rank) AS best_rank, count(*) AS hits, h.objective, m.inchikey, m.smiles,
    (SELECT group_concat(title,'; ') FROM record r WHERE r.mol_id=m.mol_id) AS titles
  FROM hit h CROSS JOIN molecule m ON m.mol_id=h.mol_id CROSS JOIN fingerprint f ON f.mol_id=h.mol_id
  GROUP BY f.scaffold ORDER BY best_rank;
CREATE VIEW v_properties AS SELECT -- one row for each molecule
  m.mol_id, h.rank, (SELECT group_concat(title,'; ') FROM record r WHERE r.mol_id=m.mol_id) AS titles, m.smiles, m.inchikey,
    (SELECT group_concat(p.name||' '||printf('%.6g',s.mean),'; ') FROM property p JOIN score s USING(property_id) WHERE s.mol_id=m.mol_id) AS scores,
    (SELECT group_concat(p.name||' '||printf('%.6g',l.value),'; ') FROM property p JOIN label l USING(property_id) WHERE l.mol_id=m.mol_id) AS measured,
    m.mw, m.logp, m.tpsa, m.hbd, m.hba, m.rotb, m.charge, m.formula, f.scaffold
  FROM molecule m LEFT JOIN hit h ON h.mol_id=m.mol_id LEFT JOIN fingerprint f ON f.mol_id=m.mol_id;
CREATE VIEW v_nearest AS SELECT -- one row for each molecule and model that knows its training molecules
  h.rank, m.inchikey, m.smiles, p.name AS property, d.name AS model, x.value AS score, p.unit, x.similarity, x.nearest,
    (SELECT n.smiles FROM molecule n WHERE n.inchikey=x.nearest) AS nearest_smiles,
    (SELECT l.value FROM molecule n JOIN label l ON l.mol_id=n.mol_id AND l.property_id=x.property_id WHERE n.inchikey=x.nearest)
      AS nearest_measured
  FROM prediction x CROSS JOIN molecule m ON m.mol_id=x.mol_id JOIN property p ON p.property_id=x.property_id
  JOIN model d ON d.model_id=x.model_id LEFT JOIN hit h ON h.mol_id=x.mol_id WHERE x.nearest IS NOT NULL;
