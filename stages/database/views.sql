-- Made again after every migration (pl_schema.views).
DROP VIEW IF EXISTS v_hits;
CREATE VIEW v_hits AS SELECT -- one row for each hit and property, in order; without scores the property is NULL
  h.rank, m.inchikey, m.smiles, p.name AS property, p.unit, s.mean AS score, s.stdev, s.interval90, s.similarity, s.domain, s.reasons, h.objective,
    $DESCRIPTORSm.charge, m.formula,
    (SELECT group_concat(title,'; ') FROM record r WHERE r.mol_id=m.mol_id) AS titles, h.front, h.cluster, h.n_similar, m.alerts,
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
