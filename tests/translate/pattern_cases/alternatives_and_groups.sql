CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW Mixed AS
  SELECT src, count(a.*) AS n, first(b.ts) AS since
  FROM M PATTERN [(a | b), (c, d?){1,2}]
  WHERE a.loss > 10 AND b.loss < 3 AND c.loss BETWEEN 3 AND 10 AND (d.loss > a.loss OR a.loss IS NULL) AND dest <> 'x'
  GROUP BY src;
--- gives
CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW Mixed_runs AS
INITIALIZE Mixed_runs[i] AS
  SELECT src, inline(filter(array(named_struct('runs', aggregate(rows, filter(array(CASE WHEN FALSE THEN named_struct('state', CASE WHEN FALSE THEN 1 END, 'count_a_rows', CASE WHEN FALSE THEN CAST(0 AS BIGINT) END, 'first_b_ts', CASE WHEN FALSE THEN rows[0].ts END, 'last_a_loss', CASE WHEN FALSE THEN rows[0].loss END) END), q -> q IS NOT NULL),
    (runs, x) -> aggregate(
      concat(
        flatten(transform(runs, r -> array(
          CASE WHEN r.state = 1 AND x.is_c THEN named_struct('state', 3, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 2 AND x.is_c THEN named_struct('state', 4, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 3 AND ((x.loss > r.last_a_loss OR r.last_a_loss IS NULL)) THEN named_struct('state', 5, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 4 AND ((x.loss > r.last_a_loss OR r.last_a_loss IS NULL)) THEN named_struct('state', 6, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state IN (3, 5) AND x.is_c THEN named_struct('state', 7, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state IN (4, 6) AND x.is_c THEN named_struct('state', 8, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 7 AND ((x.loss > r.last_a_loss OR r.last_a_loss IS NULL)) THEN named_struct('state', 9, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 8 AND ((x.loss > r.last_a_loss OR r.last_a_loss IS NULL)) THEN named_struct('state', 10, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END))),
        array(
          CASE WHEN x.is_a THEN named_struct('state', 1, 'count_a_rows', CAST(1 AS BIGINT), 'first_b_ts', CASE WHEN FALSE THEN x.ts END, 'last_a_loss', x.loss) END,
          CASE WHEN x.is_b THEN named_struct('state', 2, 'count_a_rows', CAST(0 AS BIGINT), 'first_b_ts', x.ts, 'last_a_loss', CASE WHEN FALSE THEN x.loss END) END)),
      slice(runs, 1, 0),
      (kept, q) -> CASE
        WHEN q IS NULL OR exists(kept, k -> (k.state IN (1, 2) AND q.state IN (1, 2) AND k.last_a_loss <=> q.last_a_loss) OR (k.state IN (3, 4) AND q.state IN (3, 4) AND k.last_a_loss <=> q.last_a_loss) OR (k.state IN (3, 4, 5, 6) AND q.state IN (5, 6) AND k.last_a_loss <=> q.last_a_loss) OR (k.state IN (3, 4, 7, 8) AND q.state IN (7, 8) AND k.last_a_loss <=> q.last_a_loss) OR (k.state IN (3, 4, 5, 6, 7, 8, 9, 10) AND q.state IN (9, 10))) THEN kept
        ELSE array_append(kept, q) END)))), q -> size(q.runs) > 0))
  FROM (
    SELECT src, array_sort(collect_list(x)) AS rows
    FROM (SELECT src, named_struct('o1', ts, 'ts', ts, 'is_a', loss > 10, 'is_b', loss < 3, 'is_c', loss BETWEEN 3 AND 10, 'loss', loss) AS x FROM M[i] WHERE dest <> 'x')
    GROUP BY src
  )
UPDATE Mixed_runs[j] AS
  SELECT x.src, inline(filter(array(named_struct('runs', aggregate(array(named_struct('ts', x.ts, 'is_a', x.is_a, 'is_b', x.is_b, 'is_c', x.is_c, 'loss', x.loss)), coalesce(r.runs, array()),
    (runs, x) -> aggregate(
      concat(
        flatten(transform(runs, r -> array(
          CASE WHEN r.state = 1 AND x.is_c THEN named_struct('state', 3, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 2 AND x.is_c THEN named_struct('state', 4, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 3 AND ((x.loss > r.last_a_loss OR r.last_a_loss IS NULL)) THEN named_struct('state', 5, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 4 AND ((x.loss > r.last_a_loss OR r.last_a_loss IS NULL)) THEN named_struct('state', 6, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state IN (3, 5) AND x.is_c THEN named_struct('state', 7, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state IN (4, 6) AND x.is_c THEN named_struct('state', 8, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 7 AND ((x.loss > r.last_a_loss OR r.last_a_loss IS NULL)) THEN named_struct('state', 9, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 8 AND ((x.loss > r.last_a_loss OR r.last_a_loss IS NULL)) THEN named_struct('state', 10, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END))),
        array(
          CASE WHEN x.is_a THEN named_struct('state', 1, 'count_a_rows', CAST(1 AS BIGINT), 'first_b_ts', CASE WHEN FALSE THEN x.ts END, 'last_a_loss', x.loss) END,
          CASE WHEN x.is_b THEN named_struct('state', 2, 'count_a_rows', CAST(0 AS BIGINT), 'first_b_ts', x.ts, 'last_a_loss', CASE WHEN FALSE THEN x.loss END) END)),
      slice(runs, 1, 0),
      (kept, q) -> CASE
        WHEN q IS NULL OR exists(kept, k -> (k.state IN (1, 2) AND q.state IN (1, 2) AND k.last_a_loss <=> q.last_a_loss) OR (k.state IN (3, 4) AND q.state IN (3, 4) AND k.last_a_loss <=> q.last_a_loss) OR (k.state IN (3, 4, 5, 6) AND q.state IN (5, 6) AND k.last_a_loss <=> q.last_a_loss) OR (k.state IN (3, 4, 7, 8) AND q.state IN (7, 8) AND k.last_a_loss <=> q.last_a_loss) OR (k.state IN (3, 4, 5, 6, 7, 8, 9, 10) AND q.state IN (9, 10))) THEN kept
        ELSE array_append(kept, q) END)))), q -> size(q.runs) > 0))
  FROM (SELECT src, ts AS ts, loss > 10 AS is_a, loss < 3 AS is_b, loss BETWEEN 3 AND 10 AS is_c, loss AS loss FROM M[j] WHERE dest <> 'x') AS x
      LEFT ANTI JOIN (SELECT g.src FROM (SELECT src FROM M[j] WHERE dest <> 'x') AS g GROUP BY g.src HAVING count(*) > 1) AS q ON xxhash64(x.src) = xxhash64(q.src) AND least(TRUE, x.src <=> q.src)
      LEFT JOIN Mixed_runs[j - 1] AS r ON xxhash64(x.src) = xxhash64(r.src) AND least(TRUE, x.src <=> r.src)
  UNION ALL
  SELECT src, inline(filter(array(named_struct('runs', aggregate(rows, coalesce(before, array()),
    (runs, x) -> aggregate(
      concat(
        flatten(transform(runs, r -> array(
          CASE WHEN r.state = 1 AND x.is_c THEN named_struct('state', 3, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 2 AND x.is_c THEN named_struct('state', 4, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 3 AND ((x.loss > r.last_a_loss OR r.last_a_loss IS NULL)) THEN named_struct('state', 5, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 4 AND ((x.loss > r.last_a_loss OR r.last_a_loss IS NULL)) THEN named_struct('state', 6, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state IN (3, 5) AND x.is_c THEN named_struct('state', 7, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state IN (4, 6) AND x.is_c THEN named_struct('state', 8, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 7 AND ((x.loss > r.last_a_loss OR r.last_a_loss IS NULL)) THEN named_struct('state', 9, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END,
          CASE WHEN r.state = 8 AND ((x.loss > r.last_a_loss OR r.last_a_loss IS NULL)) THEN named_struct('state', 10, 'count_a_rows', r.count_a_rows, 'first_b_ts', r.first_b_ts, 'last_a_loss', r.last_a_loss) END))),
        array(
          CASE WHEN x.is_a THEN named_struct('state', 1, 'count_a_rows', CAST(1 AS BIGINT), 'first_b_ts', CASE WHEN FALSE THEN x.ts END, 'last_a_loss', x.loss) END,
          CASE WHEN x.is_b THEN named_struct('state', 2, 'count_a_rows', CAST(0 AS BIGINT), 'first_b_ts', x.ts, 'last_a_loss', CASE WHEN FALSE THEN x.loss END) END)),
      slice(runs, 1, 0),
      (kept, q) -> CASE
        WHEN q IS NULL OR exists(kept, k -> (k.state IN (1, 2) AND q.state IN (1, 2) AND k.last_a_loss <=> q.last_a_loss) OR (k.state IN (3, 4) AND q.state IN (3, 4) AND k.last_a_loss <=> q.last_a_loss) OR (k.state IN (3, 4, 5, 6) AND q.state IN (5, 6) AND k.last_a_loss <=> q.last_a_loss) OR (k.state IN (3, 4, 7, 8) AND q.state IN (7, 8) AND k.last_a_loss <=> q.last_a_loss) OR (k.state IN (3, 4, 5, 6, 7, 8, 9, 10) AND q.state IN (9, 10))) THEN kept
        ELSE array_append(kept, q) END)))), q -> size(q.runs) > 0))
  FROM (
    SELECT src, array_sort(collect_list(x)) AS rows, any_value(runs, TRUE) AS before
    FROM (
      SELECT g.src, g.x AS x, NULL AS runs FROM (SELECT src, named_struct('o1', ts, 'ts', ts, 'is_a', loss > 10, 'is_b', loss < 3, 'is_c', loss BETWEEN 3 AND 10, 'loss', loss) AS x FROM M[j] WHERE dest <> 'x') AS g
      LEFT SEMI JOIN (SELECT g.src FROM (SELECT src FROM M[j] WHERE dest <> 'x') AS g GROUP BY g.src HAVING count(*) > 1) AS q ON xxhash64(g.src) = xxhash64(q.src) AND least(TRUE, g.src <=> q.src)
      UNION ALL
      SELECT src, NULL, runs FROM Mixed_runs[j - 1] AS g
      LEFT SEMI JOIN (SELECT g.src FROM (SELECT src FROM M[j] WHERE dest <> 'x') AS g GROUP BY g.src HAVING count(*) > 1) AS q ON xxhash64(g.src) = xxhash64(q.src) AND least(TRUE, g.src <=> q.src))
    GROUP BY src
  )
  WHERE size(rows) > 0
PARTITION LENGTH 60 KEY (src);

CREATE VIEW Mixed AS
INITIALIZE Mixed[i] AS
  SELECT g.src AS src, r.count_a_rows AS n, r.first_b_ts AS since
  FROM (SELECT src, get(filter(runs, q -> q.state IN (3, 4, 5, 6, 7, 8, 9, 10)), 0) AS r FROM Mixed_runs[i]) AS g
  WHERE r IS NOT NULL
UPDATE Mixed[j] AS
  SELECT g.src AS src, r.count_a_rows AS n, r.first_b_ts AS since
  FROM (SELECT src, get(filter(runs, q -> q.state IN (3, 4, 5, 6, 7, 8, 9, 10)), 0) AS r FROM Mixed_runs[j]) AS g
  WHERE r IS NOT NULL
PARTITION LENGTH 60 KEY (src);
--- notes
PATTERN [(a | b), (c, d?){1,2}] over M, for each src
  state 1: a
  state 2: b
  state 3: c#1 at first, ends a match
  state 4: c#1 after b, ends a match
  state 5: d#1 at first, ends a match
  state 6: d#1 after b, ends a match
  state 7: c#2 at first, ends a match
  state 8: c#2 after b, ends a match
  state 9: d#2 at first, ends a match
  state 10: d#2 after b, ends a match
  begin -> 1: a.loss > 10
  begin -> 2: b.loss < 3
  1 -> 3: c.loss BETWEEN 3 AND 10
  2 -> 4: c.loss BETWEEN 3 AND 10
  3 -> 5: (d.loss > a.loss OR a.loss IS NULL)
  3 -> 7: c.loss BETWEEN 3 AND 10
  4 -> 6: (d.loss > a.loss OR a.loss IS NULL)
  4 -> 8: c.loss BETWEEN 3 AND 10
  5 -> 7: c.loss BETWEEN 3 AND 10
  6 -> 8: c.loss BETWEEN 3 AND 10
  7 -> 9: (d.loss > a.loss OR a.loss IS NULL)
  8 -> 10: (d.loss > a.loss OR a.loss IS NULL)
  a run remembers: the number of rows of a, the first b.ts, the last a.loss
  kept: one run per group and state and values of last_a_loss, the one with the earliest start
  computed: by an outer join with the part before for groups with one row in a part, by collecting the rows of a group in a part, ordering them, and taking the runs over one after the other for groups with several, because how many rows a group has is seen when the part is computed
--- diagram
stateDiagram-v2
    s1: a
    s2: b
    s3: c#1 at first
    s4: c#1 after b
    s5: d#1 at first
    s6: d#1 after b
    s7: c#2 at first
    s8: c#2 after b
    s9: d#2 at first
    s10: d#2 after b
    [*] --> s1: a.loss #gt; 10
    [*] --> s2: b.loss #lt; 3
    s1 --> s3: c.loss BETWEEN 3 AND 10
    s2 --> s4: c.loss BETWEEN 3 AND 10
    s3 --> s5: (d.loss #gt; a.loss OR a.loss IS NULL)
    s3 --> s7: c.loss BETWEEN 3 AND 10
    s4 --> s6: (d.loss #gt; a.loss OR a.loss IS NULL)
    s4 --> s8: c.loss BETWEEN 3 AND 10
    s5 --> s7: c.loss BETWEEN 3 AND 10
    s6 --> s8: c.loss BETWEEN 3 AND 10
    s7 --> s9: (d.loss #gt; a.loss OR a.loss IS NULL)
    s8 --> s10: (d.loss #gt; a.loss OR a.loss IS NULL)
    s3 --> [*]
    s4 --> [*]
    s5 --> [*]
    s6 --> [*]
    s7 --> [*]
    s8 --> [*]
    s9 --> [*]
    s10 --> [*]
