CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW Slow AS
  SELECT src, min(loss) AS least, max(d.loss) - min(d.loss) AS width
  FROM M PATTERN [a, d+] ACROSS GAPS WITHIN '10 minutes'
  WHERE a.loss > 10 AND d.loss > 10
  GROUP BY src
  STARTING '2015-01-01';
--- gives
CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW Slow_runs AS
INITIALIZE Slow_runs[i] AS
  SELECT src, size(rows) > 0 AS has_row, inline(filter(array(named_struct('runs', aggregate(rows, filter(array(CASE WHEN FALSE THEN named_struct('state', CASE WHEN FALSE THEN 1 END, 'min_loss', CASE WHEN FALSE THEN rows[0].loss END, 'max_d_loss', CASE WHEN FALSE THEN rows[0].loss END, 'min_d_loss', CASE WHEN FALSE THEN rows[0].loss END, 'started', CASE WHEN FALSE THEN rows[0].row_time END) END), q -> q IS NOT NULL),
    (runs, x) -> aggregate(
      concat(
        flatten(transform(runs, r -> array(
          CASE WHEN r.state IN (1, 2) AND x.is_a AND x.row_time - r.started <= 600000000 THEN named_struct('state', 2, 'min_loss', least(r.min_loss, x.loss), 'max_d_loss', greatest(r.max_d_loss, x.loss), 'min_d_loss', least(r.min_d_loss, x.loss), 'started', r.started) END))),
        array(
          CASE WHEN x.is_a THEN named_struct('state', 1, 'min_loss', x.loss, 'max_d_loss', CASE WHEN FALSE THEN x.loss END, 'min_d_loss', CASE WHEN FALSE THEN x.loss END, 'started', x.row_time) END)),
      slice(runs, 1, 0),
      (kept, q) -> CASE
        WHEN q IS NULL OR exists(kept, k -> (k.state IN (1, 2) AND q.state = 1 AND k.started <=> q.started) OR (k.state = q.state AND q.state = 2 AND k.started <=> q.started)) THEN kept
        ELSE array_append(kept, q) END)))), q -> size(q.runs) > 0))
  FROM (
    SELECT src, array_sort(collect_list(x)) AS rows
    FROM (SELECT src, named_struct('o1', ts, 'loss', loss, 'is_a', loss > 10, 'row_time', unix_micros(CAST(ts AS TIMESTAMP))) AS x FROM M[i])
    GROUP BY src
  )
UPDATE Slow_runs[j] AS
  SELECT src, size(rows) > 0 AS has_row, inline(filter(array(named_struct('runs', aggregate(rows, coalesce(before, array()),
    (runs, x) -> aggregate(
      concat(
        flatten(transform(runs, r -> array(
          CASE WHEN r.state IN (1, 2) AND x.is_a AND x.row_time - r.started <= 600000000 THEN named_struct('state', 2, 'min_loss', least(r.min_loss, x.loss), 'max_d_loss', greatest(r.max_d_loss, x.loss), 'min_d_loss', least(r.min_d_loss, x.loss), 'started', r.started) END))),
        array(
          CASE WHEN x.is_a THEN named_struct('state', 1, 'min_loss', x.loss, 'max_d_loss', CASE WHEN FALSE THEN x.loss END, 'min_d_loss', CASE WHEN FALSE THEN x.loss END, 'started', x.row_time) END)),
      slice(runs, 1, 0),
      (kept, q) -> CASE
        WHEN q IS NULL OR exists(kept, k -> (k.state IN (1, 2) AND q.state = 1 AND k.started <=> q.started) OR (k.state = q.state AND q.state = 2 AND k.started <=> q.started)) THEN kept
        ELSE array_append(kept, q) END)))), q -> size(q.runs) > 0))
  FROM (
    SELECT src, array_sort(collect_list(x)) AS rows, any_value(runs, TRUE) AS before
    FROM (
      SELECT *, NULL AS runs FROM (SELECT src, named_struct('o1', ts, 'loss', loss, 'is_a', loss > 10, 'row_time', unix_micros(CAST(ts AS TIMESTAMP))) AS x FROM M[j])
      UNION ALL
      SELECT src, NULL, runs FROM Slow_runs[j - 1] AS g)
    GROUP BY src
  )
PARTITION LENGTH 60 STARTING '2015-01-01T00:00' KEY (src);

CREATE VIEW Slow AS
INITIALIZE Slow[i] AS
  SELECT g.src AS src, r.min_loss AS least, r.max_d_loss - r.min_d_loss AS width
  FROM (SELECT src, get(filter(runs, q -> q.state = 2), 0) AS r FROM Slow_runs[i] WHERE has_row) AS g
  WHERE r IS NOT NULL
UPDATE Slow[j] AS
  SELECT g.src AS src, r.min_loss AS least, r.max_d_loss - r.min_d_loss AS width
  FROM (SELECT src, get(filter(runs, q -> q.state = 2), 0) AS r FROM Slow_runs[j] WHERE has_row) AS g
  WHERE r IS NOT NULL
PARTITION LENGTH 60 STARTING '2015-01-01T00:00' KEY (src);
--- notes
PATTERN [a, d+] ACROSS GAPS over M, for each src
  state 1: a
  state 2: d, ends a match
  begin -> 1: a.loss > 10
  1 -> 2: d.loss > 10 AND within 600 seconds
  2 -> 2: d.loss > 10 AND within 600 seconds
  a run remembers: min(loss), max(d.loss), min(d.loss), the time of its first row
  kept: one run per group and state and values of started, the one with the earliest start
  computed: by collecting the rows of a group in a part, ordering them, and taking the runs over one after the other, because ACROSS GAPS also keeps groups that have no row in a part
--- diagram
stateDiagram-v2
    s1: a
    s2: d
    [*] --> s1: a.loss #gt; 10
    s1 --> s2: d.loss #gt; 10 AND within 600 seconds
    s2 --> s2: d.loss #gt; 10 AND within 600 seconds
    s2 --> [*]
