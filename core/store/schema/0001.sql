-- user_version 1. *_us = UTC microseconds (integer), *_s = float64 seconds, *_bytes = integer bytes, sha256 and ids = 64 hex digits
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;   -- created_by, db_uuid, min_reader
CREATE TABLE env(env_id TEXT PRIMARY KEY, machine_id TEXT NOT NULL, host TEXT NOT NULL, cpu_model TEXT, cpu_count INTEGER, ram_bytes INTEGER,
  device_model TEXT, device_count INTEGER, driver TEXT, clock_policy TEXT, libtorch TEXT, compiler TEXT, build_type TEXT, sanitizer TEXT,
  facts_json TEXT NOT NULL CHECK(json_valid(facts_json))) STRICT;
CREATE TABLE plugins(plugin_id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, version TEXT NOT NULL, abi INTEGER NOT NULL,
  path TEXT NOT NULL, sha256 TEXT NOT NULL, build_type TEXT NOT NULL, UNIQUE(sha256, path)) STRICT;
CREATE TABLE studies(study_id INTEGER PRIMARY KEY, name TEXT NOT NULL, yaml_sha256 TEXT NOT NULL, yaml_text TEXT NOT NULL,
  resolved_json TEXT NOT NULL, nuisance_json TEXT NOT NULL, created_us INTEGER NOT NULL, UNIQUE(name, yaml_sha256)) STRICT;
CREATE TABLE cells(cell_id TEXT PRIMARY KEY CHECK(length(cell_id)=64), recipe_id TEXT NOT NULL, config_id TEXT NOT NULL, config_json TEXT NOT NULL,
  binaries_json TEXT NOT NULL, data_fingerprint TEXT NOT NULL, predicted_bytes INTEGER, predicted_step_s REAL) STRICT;   -- predicted_*: only after --predict
CREATE INDEX cells_recipe ON cells(recipe_id);
CREATE INDEX cells_config ON cells(config_id);
CREATE TABLE study_cells(study_id INTEGER NOT NULL REFERENCES studies, cell_id TEXT NOT NULL REFERENCES cells, ordinal INTEGER NOT NULL,
  slug TEXT NOT NULL, repeats INTEGER NOT NULL, PRIMARY KEY(study_id, cell_id), UNIQUE(study_id, ordinal), UNIQUE(study_id, slug)) STRICT, WITHOUT ROWID;
CREATE TABLE cell_axis(study_id INTEGER NOT NULL, cell_id TEXT NOT NULL, key TEXT NOT NULL, label TEXT NOT NULL, value_json TEXT NOT NULL,
  PRIMARY KEY(study_id, key, cell_id), FOREIGN KEY(study_id, cell_id) REFERENCES study_cells) STRICT, WITHOUT ROWID;   -- what is swept
CREATE TABLE plan_skips(study_id INTEGER NOT NULL REFERENCES studies, seq INTEGER NOT NULL, slug TEXT NOT NULL, line INTEGER, reason TEXT NOT NULL,
  rule TEXT NOT NULL CHECK(rule IN('exclude','when','duplicate','refused','predicted_oom','filter')), rule_id TEXT,               -- R-TPHEADS, ...
  CHECK((rule='refused')=(rule_id IS NOT NULL)), PRIMARY KEY(study_id, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE supervisors(supervisor_id INTEGER PRIMARY KEY, study_id INTEGER REFERENCES studies, env_id TEXT NOT NULL REFERENCES env,
  argv_json TEXT NOT NULL, boot_id TEXT NOT NULL, pid INTEGER NOT NULL, pid_start INTEGER NOT NULL, started_us INTEGER NOT NULL,
  heartbeat_us INTEGER NOT NULL, ended_us INTEGER, end_reason TEXT) STRICT;
CREATE TABLE runs(run_id INTEGER PRIMARY KEY, cell_id TEXT NOT NULL REFERENCES cells, machine_id TEXT NOT NULL,
  purpose TEXT NOT NULL CHECK(purpose IN('measure','pair','control','tune','replay','selftest','envelope')),
  block INTEGER NOT NULL DEFAULT 0, slot INTEGER NOT NULL,                                 -- block: comparison_id for pairs and controls, else 0
  state TEXT NOT NULL CHECK(state IN('queued','running','ok','oom','fail','timeout','killed','infra','invalid')),
  state_us INTEGER NOT NULL, supervisor_id INTEGER REFERENCES supervisors, UNIQUE(cell_id, machine_id, purpose, block, slot)) STRICT;
CREATE INDEX runs_open ON runs(machine_id) WHERE state='queued';
CREATE TABLE attempts(attempt_id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES runs, n INTEGER NOT NULL,
  supervisor_id INTEGER NOT NULL REFERENCES supervisors, env_id TEXT NOT NULL REFERENCES env,
  state TEXT NOT NULL CHECK(state IN('running','ok','oom','fail','timeout','killed','infra','invalid')), started_us INTEGER NOT NULL,
  heartbeat_us INTEGER NOT NULL, ended_us INTEGER, pgid INTEGER, pid INTEGER, pid_start INTEGER, exit_code INTEGER, signal INTEGER,
  reason TEXT, detail TEXT, last_phase TEXT, last_step INTEGER, last_bytes INTEGER, stderr_tail TEXT, log_path TEXT, log_bytes INTEGER,
  log_sha256 TEXT, timed INTEGER NOT NULL DEFAULT 1, resumed_step INTEGER,            -- first step after --resume-from; NULL = from step 0
  steady_first INTEGER, steady_last INTEGER, steady_method TEXT, UNIQUE(run_id, n), CHECK(state='running' OR ended_us IS NOT NULL)) STRICT;
CREATE TABLE spool_files(attempt_id INTEGER NOT NULL REFERENCES attempts, rank INTEGER NOT NULL, path TEXT NOT NULL, bytes_imported INTEGER NOT NULL DEFAULT 0,
  rows_imported INTEGER NOT NULL DEFAULT 0, rows_declared INTEGER, PRIMARY KEY(attempt_id, rank)) STRICT, WITHOUT ROWID;
CREATE TABLE attempt_plugins(attempt_id INTEGER NOT NULL REFERENCES attempts, plugin_id INTEGER NOT NULL REFERENCES plugins, role TEXT NOT NULL,
  git TEXT, PRIMARY KEY(attempt_id, role, plugin_id)) STRICT, WITHOUT ROWID;               -- git: build stamp beside the file, outside its hash
CREATE TABLE steps(attempt_id INTEGER NOT NULL REFERENCES attempts, rank INTEGER NOT NULL, step INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK(kind IN('warmup','steady','eval','checkpoint','profiler')), flags INTEGER NOT NULL DEFAULT 0, end_us INTEGER NOT NULL,
  wall_s REAL NOT NULL, tokens INTEGER NOT NULL, tokens_total INTEGER NOT NULL, loss REAL, loss_bits INTEGER, grad_norm REAL,
  grad_norm_bits INTEGER, lr REAL, data_wait_s REAL, comm_exposed_s REAL,                  -- tokens, loss and grad_norm: global values, see above
  PRIMARY KEY(attempt_id, rank, step, kind)) STRICT, WITHOUT ROWID;
CREATE TABLE samples(attempt_id INTEGER NOT NULL REFERENCES attempts, name TEXT NOT NULL, rank INTEGER NOT NULL, step INTEGER NOT NULL, value REAL,
  nonfinite TEXT CHECK(nonfinite IN('nan','inf','-inf')), PRIMARY KEY(attempt_id, name, rank, step)) STRICT, WITHOUT ROWID;   -- any per-step series
CREATE TABLE metrics(attempt_id INTEGER NOT NULL REFERENCES attempts, name TEXT NOT NULL, rank INTEGER NOT NULL DEFAULT -1, value REAL,
  nonfinite TEXT CHECK(nonfinite IN('nan','inf','-inf')), unit TEXT NOT NULL, formula_id TEXT NOT NULL,
  PRIMARY KEY(attempt_id, name, rank)) STRICT, WITHOUT ROWID;                              -- one figure per run; rank -1 = over all ranks
CREATE TABLE collectives(attempt_id INTEGER NOT NULL REFERENCES attempts, rank INTEGER NOT NULL, grp TEXT NOT NULL, op TEXT NOT NULL, dtype TEXT NOT NULL,
  phase TEXT NOT NULL, steps INTEGER NOT NULL, count INTEGER NOT NULL, payload_bytes INTEGER NOT NULL, wire_bytes INTEGER NOT NULL, total_s REAL,
  exposed_s REAL, PRIMARY KEY(attempt_id, rank, grp, op, dtype, phase)) STRICT, WITHOUT ROWID;
CREATE TABLE memory(attempt_id INTEGER NOT NULL REFERENCES attempts, rank INTEGER NOT NULL, phase TEXT NOT NULL, peak_allocated_bytes INTEGER,
  peak_reserved_bytes INTEGER, peak_rss_bytes INTEGER, limit_bytes INTEGER, alloc_retries INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY(attempt_id, rank, phase)) STRICT, WITHOUT ROWID;
CREATE TABLE memory_categories(attempt_id INTEGER NOT NULL, rank INTEGER NOT NULL, phase TEXT NOT NULL, category TEXT NOT NULL CHECK(category IN('parameters',
  'gradients','optimizer','unsharded','activations','comm_buffers','other')), bytes INTEGER NOT NULL, PRIMARY KEY(attempt_id, rank, phase, category),
  FOREIGN KEY(attempt_id, rank, phase) REFERENCES memory) STRICT, WITHOUT ROWID;           -- at the phase's peak: the sum is peak_allocated_bytes
CREATE TABLE trials(study_id INTEGER NOT NULL REFERENCES studies, arm TEXT NOT NULL, idx INTEGER NOT NULL, run_id INTEGER NOT NULL REFERENCES runs,
  value_json TEXT NOT NULL, score REAL, chosen INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(study_id, arm, idx, run_id)) STRICT, WITHOUT ROWID;   -- tune:, 5.7
CREATE TABLE comparisons(comparison_id INTEGER PRIMARY KEY, study_id INTEGER NOT NULL REFERENCES studies, label TEXT NOT NULL,
  base_cell TEXT NOT NULL REFERENCES cells, cand_cell TEXT NOT NULL REFERENCES cells, design_json TEXT NOT NULL,
  loss_tier TEXT NOT NULL CHECK(loss_tier IN('none','T0','T1','T2')), created_us INTEGER NOT NULL) STRICT;
CREATE TABLE pairs(comparison_id INTEGER NOT NULL REFERENCES comparisons, stage INTEGER NOT NULL CHECK(stage IN(0,1,2)), idx INTEGER NOT NULL,
  orientation TEXT NOT NULL CHECK(orientation IN('AB','BA')), statistic TEXT NOT NULL, run_a INTEGER NOT NULL REFERENCES runs(run_id),
  run_b INTEGER NOT NULL REFERENCES runs(run_id), value_a REAL, value_b REAL, d REAL, change_pct REAL, discarded INTEGER NOT NULL DEFAULT 0,
  discard_reason TEXT, quality_json TEXT NOT NULL, PRIMARY KEY(comparison_id, stage, idx, statistic)) STRICT, WITHOUT ROWID;   -- stage 0 = A/A control
CREATE TABLE verdicts(verdict_id INTEGER PRIMARY KEY, comparison_id INTEGER NOT NULL REFERENCES comparisons, metric TEXT NOT NULL, stage INTEGER NOT NULL,
  verdict TEXT NOT NULL CHECK(verdict IN('FASTER','SLOWER','BETTER','WORSE','SAME','UNRESOLVED','PARITY','NO_PARITY','NOT_SHOWN','INVALID')),
  reason TEXT NOT NULL, n_used INTEGER NOT NULL, n_discarded INTEGER NOT NULL, estimate REAL, ci_lo REAL, ci_hi REAL, ci_level REAL, p_greater REAL,
  p_less REAL, p_same REAL, p_adjusted REAL, min_effect REAL, same_margin REAL, mde REAL, sd REAL, sd_robust REAL, control_verdict TEXT,
  method_id TEXT NOT NULL, labels_json TEXT NOT NULL DEFAULT '[]', computed_us INTEGER NOT NULL, code_version TEXT NOT NULL) STRICT;
CREATE TABLE lint(comparison_id INTEGER NOT NULL REFERENCES comparisons, rule TEXT NOT NULL, value_a TEXT, value_b TEXT, overridden_by TEXT,
  PRIMARY KEY(comparison_id, rule)) STRICT, WITHOUT ROWID;
CREATE TABLE baselines(machine_id TEXT NOT NULL, gate TEXT NOT NULL, config_id TEXT NOT NULL, metric TEXT NOT NULL, anchor TEXT NOT NULL
  CHECK(anchor IN('rolling','release')), value REAL NOT NULL, run_id INTEGER REFERENCES runs, set_us INTEGER NOT NULL,
  PRIMARY KEY(machine_id, gate, config_id, metric, anchor)) STRICT, WITHOUT ROWID;
CREATE TABLE acceptances(acceptance_id INTEGER PRIMARY KEY, machine_id TEXT NOT NULL, gate TEXT NOT NULL, config_id TEXT NOT NULL, metric TEXT NOT NULL,
  old_value REAL, new_value REAL, commit_sha TEXT NOT NULL, author TEXT NOT NULL, reason TEXT NOT NULL, made_us INTEGER NOT NULL) STRICT;
CREATE VIEW v_run AS WITH m AS (SELECT attempt_id, max(CASE name WHEN 'tokens_per_s' THEN value END) tokens_per_s,
  max(CASE name WHEN 'tokens_per_s_device' THEN value END) tokens_per_s_device, max(CASE name WHEN 'step_p10_s' THEN value END) step_p10_s,
  max(CASE name WHEN 'step_p50_s' THEN value END) step_p50_s, max(CASE name WHEN 'step_p90_s' THEN value END) step_p90_s,
  max(CASE name WHEN 'mfu' THEN value END) mfu, max(CASE name WHEN 'final_val_loss' THEN value END) final_val_loss
  FROM metrics JOIN attempts a USING(attempt_id) WHERE rank=-1 AND (name='final_val_loss' OR (a.timed AND a.resumed_step IS NULL)) GROUP BY attempt_id),
pk AS (SELECT attempt_id, max(peak_allocated_bytes) peak_allocated_bytes, max(peak_reserved_bytes) peak_reserved_bytes,
  max(peak_rss_bytes) peak_rss_bytes, max(limit_bytes) limit_bytes FROM memory GROUP BY attempt_id)
SELECT r.run_id, r.cell_id, c.recipe_id, c.config_id, r.machine_id, r.purpose, r.block, r.slot, r.state, l.attempt_id, l.n AS attempts, l.reason,
  l.exit_code, l.signal, l.timed, l.resumed_step, (l.ended_us-l.started_us)/1e6 AS wall_s, m.tokens_per_s, m.tokens_per_s_device, m.step_p10_s,
  m.step_p50_s, m.step_p90_s, m.mfu, m.final_val_loss,
  pk.peak_allocated_bytes, pk.peak_reserved_bytes, pk.peak_rss_bytes, pk.limit_bytes, c.predicted_bytes, l.env_id
FROM runs r JOIN cells c USING(cell_id) LEFT JOIN attempts l ON l.run_id=r.run_id AND l.n=(SELECT max(n) FROM attempts b WHERE b.run_id=r.run_id)
  LEFT JOIN m USING(attempt_id) LEFT JOIN pk USING(attempt_id);
CREATE VIEW v_cell AS WITH o AS (SELECT cell_id, machine_id, tokens_per_s v,             -- one row per cell and machine: timings never mix machines
  row_number() OVER (PARTITION BY cell_id, machine_id ORDER BY tokens_per_s) rn, count(*) OVER (PARTITION BY cell_id, machine_id) n
  FROM v_run WHERE state='ok' AND purpose IN('measure','pair') AND tokens_per_s IS NOT NULL),
med AS (SELECT cell_id, machine_id, avg(v) tokens_per_s FROM o WHERE rn IN((n+1)/2,(n+2)/2) GROUP BY cell_id, machine_id),   -- exact median in plain SQL
g AS (SELECT cell_id, machine_id, count(*) runs, sum(state='ok') runs_ok, max(peak_allocated_bytes) peak_allocated_bytes,
  avg(CASE state WHEN 'ok' THEN final_val_loss END) final_val_loss, CASE WHEN sum(state='running') THEN 'running' WHEN sum(state='queued') THEN 'queued'
  WHEN sum(state='infra') THEN 'infra' WHEN sum(state='invalid') THEN 'invalid' WHEN sum(state='killed') THEN 'killed'
  WHEN sum(state='timeout') THEN 'timeout' WHEN sum(state='fail') THEN 'fail' WHEN sum(state='oom') THEN 'oom' ELSE 'ok' END state
  FROM v_run WHERE purpose IN('measure','pair') GROUP BY cell_id, machine_id)
SELECT s.study_id, t.name AS study, s.ordinal, s.slug, s.cell_id, c.recipe_id, c.config_id, g.machine_id, coalesce(g.state,'queued') AS state,
  coalesce(g.runs,0) AS runs, coalesce(g.runs_ok,0) AS runs_ok, med.tokens_per_s, g.peak_allocated_bytes, c.predicted_bytes, g.final_val_loss
FROM study_cells s JOIN studies t USING(study_id) JOIN cells c USING(cell_id) LEFT JOIN g USING(cell_id) LEFT JOIN med USING(cell_id, machine_id);
CREATE VIEW v_step AS SELECT a.run_id, r.cell_id, s.attempt_id, a.n AS attempt, s.rank, s.step, s.kind, s.flags,
  (s.kind='steady' AND a.timed AND a.resumed_step IS NULL AND s.step BETWEEN a.steady_first AND a.steady_last) AS used, s.end_us,
  s.wall_s, s.tokens, s.tokens_total, s.loss, s.grad_norm, s.lr, s.data_wait_s, s.comm_exposed_s FROM steps s JOIN attempts a USING(attempt_id) JOIN runs r USING(run_id);
CREATE VIEW v_memory AS SELECT a.run_id, r.cell_id, m.attempt_id, m.rank, m.phase, m.category, m.bytes FROM memory_categories m
  JOIN attempts a USING(attempt_id) JOIN runs r USING(run_id);
CREATE VIEW v_pair AS SELECT c.study_id, p.comparison_id, c.label, p.stage, p.idx, p.orientation, p.statistic, p.run_a, p.run_b, p.value_a, p.value_b,
  p.d, p.change_pct, p.discarded, p.discard_reason FROM pairs p JOIN comparisons c USING(comparison_id);
CREATE VIEW v_verdict AS SELECT c.study_id, v.comparison_id, c.label, c.base_cell, c.cand_cell, c.loss_tier, v.metric, v.stage, v.verdict, v.reason,
  v.n_used, v.n_discarded, v.estimate, v.ci_lo, v.ci_hi, v.ci_level, v.p_greater, v.p_less, v.p_same, v.p_adjusted, v.min_effect, v.same_margin,
  v.mde, v.sd_robust, v.control_verdict, v.method_id, v.labels_json, v.computed_us FROM verdicts v JOIN comparisons c USING(comparison_id);
