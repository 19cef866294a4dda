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
CREATE TABLE measured( -- labels that came after the library was read (stages/database/measured.h)
  property TEXT NOT NULL, inchikey TEXT NOT NULL, value REAL NOT NULL, unit TEXT NOT NULL, task TEXT NOT NULL,
  round INTEGER NOT NULL, source TEXT NOT NULL, PRIMARY KEY(property,inchikey)) WITHOUT ROWID;
CREATE TABLE acquired( -- what each round chose to try
  round INTEGER NOT NULL, place INTEGER NOT NULL, inchikey TEXT NOT NULL, property TEXT NOT NULL, strategy TEXT NOT NULL,
  acquisition REAL, mean REAL, deviation REAL, rank INTEGER, similarity REAL, reason TEXT NOT NULL, outcome TEXT,
  PRIMARY KEY(round,place)) WITHOUT ROWID;
CREATE INDEX molecule_inchikey ON molecule(inchikey);
CREATE INDEX record_mol ON record(mol_id);
CREATE INDEX score_rank ON score(property_id,mean);
CREATE INDEX hit_mol ON hit(mol_id);
