-- Made again after every migration (pl_schema.views).
DROP VIEW IF EXISTS v_hits;
CREATE VIEW v_hits AS SELECT -- one row for each hit and property, in order; without scores the property is NULL
  h.rank, m.inchikey, m.smiles, p.name AS property, p.unit, s.mean AS score, s.stdev, s.interval90, s.similarity, s.domain, s.reasons, h.objective,
    $DESCRIPTORSm.charge, m.formula,
    (SELECT group_concat(title,'; ') FROM (SELECT title FROM record r WHERE r.mol_id=m.mol_id ORDER BY r.record_id)) AS titles, h.front, h.cluster, h.n_similar, m.alerts,
    m.undefined_stereo
  FROM hit h CROSS JOIN molecule m ON m.mol_id=h.mol_id
  LEFT JOIN property p ON EXISTS(SELECT 1 FROM score e WHERE e.property_id=p.property_id AND e.mol_id=h.mol_id)
  LEFT JOIN score s ON s.property_id=p.property_id AND s.mol_id=h.mol_id ORDER BY h.rank, p.property_id;
DROP VIEW IF EXISTS v_failures;
CREATE VIEW v_failures AS SELECT
  f.stage, f.code, f.message, coalesce(i.path||':'||r.line,'') AS place, r.ordinal, r.title, r.raw_smiles, m.inchikey,
    f.signal, f.cpu_s, f.attempt, f.at_utc
  FROM failure f LEFT JOIN record r ON r.record_id=coalesce(f.record_id,f.mol_id)
  LEFT JOIN input_file i USING(file_id) LEFT JOIN molecule m ON m.mol_id=f.mol_id;
DROP VIEW IF EXISTS v_funnel;
CREATE VIEW v_funnel AS SELECT
  count(*) AS records, sum(status='ok') AS ok, sum(status='duplicate') AS duplicate, sum(status='filtered') AS filtered,
    sum(status='failed') AS failed, sum(status='read') AS waiting,
    (SELECT count(*) FROM molecule) AS molecules, (SELECT count(DISTINCT mol_id) FROM score) AS scored,
    (SELECT count(*) FROM hit) AS hits FROM record;
DROP VIEW IF EXISTS v_scaffolds;
CREATE VIEW v_scaffolds AS SELECT -- one row for each scaffold of the ranking, with its best hit; the others take their values from that one
  f.scaffold, min(h.rank) AS best_rank, count(*) AS hits, h.objective, m.inchikey, m.smiles,
    (SELECT group_concat(title,'; ') FROM (SELECT title FROM record r WHERE r.mol_id=m.mol_id ORDER BY r.record_id)) AS titles
  FROM hit h CROSS JOIN molecule m ON m.mol_id=h.mol_id CROSS JOIN fingerprint f ON f.mol_id=h.mol_id
  GROUP BY f.scaffold ORDER BY best_rank;
DROP VIEW IF EXISTS v_properties;
CREATE VIEW v_properties AS SELECT -- one row for each molecule
  m.mol_id, h.rank, (SELECT group_concat(title,'; ') FROM (SELECT title FROM record r WHERE r.mol_id=m.mol_id ORDER BY r.record_id)) AS titles, m.smiles, m.inchikey,
    (SELECT group_concat(one,'; ') FROM (SELECT p.name||' '||printf('%.6g',s.mean) AS one FROM property p JOIN score s USING(property_id)
      WHERE s.mol_id=m.mol_id ORDER BY p.name)) AS scores,
    (SELECT group_concat(one,'; ') FROM (SELECT p.name||' '||printf('%.6g',l.value) AS one FROM property p JOIN label l USING(property_id)
      WHERE l.mol_id=m.mol_id ORDER BY p.name)) AS measured,
    $DESCRIPTORSm.charge, m.formula, f.scaffold
  FROM molecule m LEFT JOIN hit h ON h.mol_id=m.mol_id LEFT JOIN fingerprint f ON f.mol_id=m.mol_id;
DROP VIEW IF EXISTS v_nearest;
CREATE VIEW v_nearest AS SELECT -- one row for each molecule and model that knows its training molecules
  h.rank, m.inchikey, m.smiles, p.name AS property, d.name AS model, x.value AS score, p.unit, x.similarity, x.nearest,
    (SELECT n.smiles FROM molecule n WHERE n.inchikey=x.nearest ORDER BY n.mol_id LIMIT 1) AS nearest_smiles,
    (SELECT l.value FROM molecule n JOIN label l ON l.mol_id=n.mol_id AND l.property_id=x.property_id WHERE n.inchikey=x.nearest
      ORDER BY n.mol_id LIMIT 1)
      AS nearest_measured
  FROM prediction x CROSS JOIN molecule m ON m.mol_id=x.mol_id JOIN property p ON p.property_id=x.property_id
  JOIN model d ON d.model_id=x.model_id LEFT JOIN hit h ON h.mol_id=x.mol_id WHERE x.nearest IS NOT NULL;
DROP VIEW IF EXISTS v_acquired;
CREATE VIEW v_acquired AS SELECT -- what each round chose, why, and what came of it
  a.round, a.place, (SELECT group_concat(title,'; ') FROM (SELECT title FROM record r WHERE r.mol_id=m.mol_id ORDER BY r.record_id)) AS titles, m.smiles, a.inchikey, a.property, a.strategy,
    a.acquisition, a.mean, a.deviation, a.rank, a.similarity,
    CASE a.outcome WHEN 'measured' THEN coalesce((SELECT x.value FROM measured x WHERE x.property=a.property AND x.inchikey=a.inchikey),
      (SELECT x.value FROM measured x WHERE x.inchikey=a.inchikey AND x.round>=a.round ORDER BY x.round, x.property LIMIT 1)) END AS value, -- the label may have another name, and come later
    a.outcome, a.reason
  FROM acquired a LEFT JOIN molecule m ON m.mol_id=(SELECT min(n.mol_id) FROM molecule n WHERE n.inchikey=a.inchikey) ORDER BY a.round, a.place;
