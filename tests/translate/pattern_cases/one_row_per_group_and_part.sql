CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT, UNIQUE (src, dest)) PARTITION LENGTH 60;
CREATE VIEW View1 AS
  SELECT src, dest, count(*) AS ct, sum(loss) AS sum_loss
  FROM M PATTERN [a, b, c, d+]
  WHERE a.loss > 10 AND b.loss > 10 AND c.loss > 10 AND d.loss > 10
  GROUP BY src, dest;
--- gives
CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT, UNIQUE (src, dest)) PARTITION LENGTH 60;
CREATE VIEW View1_runs AS
INITIALIZE View1_runs[i] AS
  SELECT src, dest, inline(array_compact(array(aggregate(rows, CASE WHEN FALSE THEN named_struct('state', CASE WHEN FALSE THEN 1 END, 'count_rows', CASE WHEN FALSE THEN CAST(0 AS BIGINT) END, 'sum_loss', CASE WHEN FALSE THEN rows[0].loss_bigint END) END,
    (r, x) -> CASE
    WHEN r.state = 1 AND x.is_a
      THEN named_struct('state', 2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
    WHEN r.state = 2 AND x.is_a
      THEN named_struct('state', 3, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
    WHEN r.state IN (3, 4) AND x.is_a
      THEN named_struct('state', 4, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
    WHEN x.is_a
      THEN named_struct('state', 1, 'count_rows', CAST(1 AS BIGINT), 'sum_loss', x.loss_bigint)
    END))))
  FROM (
    SELECT src, dest, array_sort(collect_list(x)) AS rows
    FROM (SELECT g.src, g.dest, g.x AS x FROM (SELECT src, dest, named_struct('o1', ts, 'loss_bigint', CAST(loss AS BIGINT), 'is_a', loss > 10) AS x FROM M[i]) AS g
      LEFT SEMI JOIN (SELECT src, dest FROM M[i] WHERE loss > 10) AS q ON xxhash64(g.src, g.dest) = xxhash64(q.src, q.dest) AND least(TRUE, g.src <=> q.src, g.dest <=> q.dest))
    GROUP BY src, dest
  )
UPDATE View1_runs[j] AS
  SELECT src, dest, r.state AS state, r.count_rows AS count_rows, r.sum_loss AS sum_loss FROM (
    SELECT x.src, x.dest, CASE
      WHEN r.state = 1
        THEN named_struct('state', 2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
      WHEN r.state = 2
        THEN named_struct('state', 3, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
      WHEN r.state IN (3, 4)
        THEN named_struct('state', 4, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
      WHEN TRUE
        THEN named_struct('state', 1, 'count_rows', CAST(1 AS BIGINT), 'sum_loss', x.loss_bigint)
      END AS r
    FROM (SELECT src, dest, CAST(loss AS BIGINT) AS loss_bigint FROM M[j] WHERE loss > 10) AS x
      LEFT JOIN View1_runs[j - 1] AS r ON xxhash64(x.src, x.dest) = xxhash64(r.src, r.dest) AND least(TRUE, x.src <=> r.src, x.dest <=> r.dest)
  ) WHERE r IS NOT NULL
PARTITION LENGTH 60 KEY (src, dest);

CREATE VIEW View1 AS
INITIALIZE View1[i] AS
  SELECT r.src AS src, r.dest AS dest, r.count_rows AS ct, r.sum_loss AS sum_loss
  FROM View1_runs[i] AS r
  WHERE r.state = 4
UPDATE View1[j] AS
  SELECT r.src AS src, r.dest AS dest, r.count_rows AS ct, r.sum_loss AS sum_loss
  FROM View1_runs[j] AS r
  WHERE r.state = 4
PARTITION LENGTH 60 KEY (src, dest);
--- notes
PATTERN [a, b, c, d+] over M, for each src, dest
  state 1: a
  state 2: b
  state 3: c
  state 4: d, ends a match
  begin -> 1: a.loss > 10
  1 -> 2: b.loss > 10
  2 -> 3: c.loss > 10
  3 -> 4: d.loss > 10
  4 -> 4: d.loss > 10
  a run remembers: the number of rows, sum(CAST(loss AS BIGINT))
  kept: one run per group, the longest; it makes every later one superfluous
  computed: by an outer join with the part before, because M has UNIQUE (src, dest)
--- diagram
stateDiagram-v2
    s1: a
    s2: b
    s3: c
    s4: d
    [*] --> s1: a.loss #gt; 10
    s1 --> s2: b.loss #gt; 10
    s2 --> s3: c.loss #gt; 10
    s3 --> s4: d.loss #gt; 10
    s4 --> s4: d.loss #gt; 10
    s4 --> [*]
