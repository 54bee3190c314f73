CREATE STREAM S (timestamp TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION BY 1 minute;
CREATE VIEW View2 AS
  SELECT timestamp, src, dest, count(*) as count, sum(loss) as sum_loss
  FROM S
  PATTERN (a, b, c, d+)
  WHERE a.loss > 10
  AND b.loss > 10
  AND c.loss > 10
  AND d[1].loss > 10
  AND d[i].loss > 10
  GROUP BY src, dest;
--- gives
CREATE STREAM S (timestamp TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION BY 1 minute;
CREATE VIEW View2_runs AS
INITIALIZE View2_runs[i] AS
  SELECT src, dest, inline(array_compact(array(aggregate(rows, CASE WHEN FALSE THEN named_struct('state', CASE WHEN FALSE THEN 1 END, 'last_timestamp', CASE WHEN FALSE THEN rows[0].timestamp_2 END, 'count_rows', CASE WHEN FALSE THEN CAST(0 AS BIGINT) END, 'sum_loss', CASE WHEN FALSE THEN rows[0].loss_bigint END) END,
    (r, x) -> CASE
    WHEN r.state = 1 AND x.is_a
      THEN named_struct('state', 2, 'last_timestamp', x.timestamp_2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
    WHEN r.state = 2 AND x.is_a
      THEN named_struct('state', 3, 'last_timestamp', x.timestamp_2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
    WHEN r.state = 3 AND x.is_a AND x.is_a
      THEN named_struct('state', 4, 'last_timestamp', x.timestamp_2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
    WHEN r.state = 4 AND x.is_a
      THEN named_struct('state', 4, 'last_timestamp', x.timestamp_2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
    WHEN x.is_a
      THEN named_struct('state', 1, 'last_timestamp', x.timestamp_2, 'count_rows', CAST(1 AS BIGINT), 'sum_loss', x.loss_bigint)
    END))))
  FROM (
    SELECT src, dest, array_sort(collect_list(x)) AS rows
    FROM (SELECT g.src, g.dest, g.x AS x FROM (SELECT src, dest, named_struct('o1', `timestamp`, 'timestamp_2', timestamp, 'loss_bigint', CAST(loss AS BIGINT), 'is_a', loss > 10) AS x FROM S[i]) AS g
      LEFT SEMI JOIN (SELECT src, dest FROM S[i] WHERE loss > 10) AS q ON xxhash64(g.src, g.dest) = xxhash64(q.src, q.dest) AND least(TRUE, g.src <=> q.src, g.dest <=> q.dest))
    GROUP BY src, dest
  )
UPDATE View2_runs[j] AS
  SELECT src, dest, r.state AS state, r.last_timestamp AS last_timestamp, r.count_rows AS count_rows, r.sum_loss AS sum_loss FROM (
    SELECT x.src, x.dest, CASE
      WHEN r.state = 1
        THEN named_struct('state', 2, 'last_timestamp', x.timestamp_2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
      WHEN r.state = 2
        THEN named_struct('state', 3, 'last_timestamp', x.timestamp_2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
      WHEN r.state IN (3, 4)
        THEN named_struct('state', 4, 'last_timestamp', x.timestamp_2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
      WHEN TRUE
        THEN named_struct('state', 1, 'last_timestamp', x.timestamp_2, 'count_rows', CAST(1 AS BIGINT), 'sum_loss', x.loss_bigint)
      END AS r
    FROM (SELECT src, dest, timestamp AS timestamp_2, CAST(loss AS BIGINT) AS loss_bigint FROM S[j] WHERE loss > 10) AS x
      LEFT ANTI JOIN (SELECT g.src, g.dest FROM (SELECT src, dest FROM S[j]) AS g
      LEFT SEMI JOIN (SELECT src, dest FROM S[j] WHERE loss > 10) AS q ON xxhash64(g.src, g.dest) = xxhash64(q.src, q.dest) AND least(TRUE, g.src <=> q.src, g.dest <=> q.dest) GROUP BY g.src, g.dest HAVING count(*) > 1) AS q ON xxhash64(x.src, x.dest) = xxhash64(q.src, q.dest) AND least(TRUE, x.src <=> q.src, x.dest <=> q.dest)
      LEFT JOIN View2_runs[j - 1] AS r ON xxhash64(x.src, x.dest) = xxhash64(r.src, r.dest) AND least(TRUE, x.src <=> r.src, x.dest <=> r.dest)
  ) WHERE r IS NOT NULL
  UNION ALL
  SELECT src, dest, inline(array_compact(array(aggregate(rows, before,
    (r, x) -> CASE
    WHEN r.state = 1 AND x.is_a
      THEN named_struct('state', 2, 'last_timestamp', x.timestamp_2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
    WHEN r.state = 2 AND x.is_a
      THEN named_struct('state', 3, 'last_timestamp', x.timestamp_2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
    WHEN r.state = 3 AND x.is_a AND x.is_a
      THEN named_struct('state', 4, 'last_timestamp', x.timestamp_2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
    WHEN r.state = 4 AND x.is_a
      THEN named_struct('state', 4, 'last_timestamp', x.timestamp_2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_bigint, r.sum_loss, x.loss_bigint))
    WHEN x.is_a
      THEN named_struct('state', 1, 'last_timestamp', x.timestamp_2, 'count_rows', CAST(1 AS BIGINT), 'sum_loss', x.loss_bigint)
    END))))
  FROM (
    SELECT src, dest, array_sort(collect_list(x)) AS rows, any_value(r, TRUE) AS before
    FROM (
      SELECT g.src, g.dest, g.x AS x, NULL AS r FROM (SELECT src, dest, named_struct('o1', `timestamp`, 'timestamp_2', timestamp, 'loss_bigint', CAST(loss AS BIGINT), 'is_a', loss > 10) AS x FROM S[j]) AS g
      LEFT SEMI JOIN (SELECT g.src, g.dest FROM (SELECT src, dest FROM S[j]) AS g
      LEFT SEMI JOIN (SELECT src, dest FROM S[j] WHERE loss > 10) AS q ON xxhash64(g.src, g.dest) = xxhash64(q.src, q.dest) AND least(TRUE, g.src <=> q.src, g.dest <=> q.dest) GROUP BY g.src, g.dest HAVING count(*) > 1) AS q ON xxhash64(g.src, g.dest) = xxhash64(q.src, q.dest) AND least(TRUE, g.src <=> q.src, g.dest <=> q.dest)
      UNION ALL
      SELECT src, dest, NULL, named_struct('state', state, 'last_timestamp', last_timestamp, 'count_rows', count_rows, 'sum_loss', sum_loss) FROM View2_runs[j - 1] AS g
      LEFT SEMI JOIN (SELECT g.src, g.dest FROM (SELECT src, dest FROM S[j]) AS g
      LEFT SEMI JOIN (SELECT src, dest FROM S[j] WHERE loss > 10) AS q ON xxhash64(g.src, g.dest) = xxhash64(q.src, q.dest) AND least(TRUE, g.src <=> q.src, g.dest <=> q.dest) GROUP BY g.src, g.dest HAVING count(*) > 1) AS q ON xxhash64(g.src, g.dest) = xxhash64(q.src, q.dest) AND least(TRUE, g.src <=> q.src, g.dest <=> q.dest))
    GROUP BY src, dest
  )
  WHERE size(rows) > 0
PARTITION LENGTH 60 KEY (src, dest);

CREATE VIEW View2 AS
INITIALIZE View2[i] AS
  SELECT r.last_timestamp AS `timestamp`, r.src AS src, r.dest AS dest, r.count_rows AS count, r.sum_loss AS sum_loss
  FROM View2_runs[i] AS r
  WHERE r.state = 4
UPDATE View2[j] AS
  SELECT r.last_timestamp AS `timestamp`, r.src AS src, r.dest AS dest, r.count_rows AS count, r.sum_loss AS sum_loss
  FROM View2_runs[j] AS r
  WHERE r.state = 4
PARTITION LENGTH 60 KEY (src, dest);
--- notes
PATTERN [a, b, c, d+] over S, for each src, dest
  state 1: a
  state 2: b
  state 3: c
  state 4: d, ends a match
  begin -> 1: a.loss > 10
  1 -> 2: b.loss > 10
  2 -> 3: c.loss > 10
  3 -> 4: d[1].loss > 10 AND d[i].loss > 10
  4 -> 4: d[i].loss > 10
  a run remembers: the last timestamp, the number of rows, sum(CAST(loss AS BIGINT))
  kept: one run per group, the longest; it makes every later one superfluous
  computed: by an outer join with the part before for groups with one row in a part, by collecting the rows of a group in a part, ordering them, and taking the runs over one after the other for groups with several, because how many rows a group has is seen when the part is computed
--- diagram
stateDiagram-v2
    s1: a
    s2: b
    s3: c
    s4: d
    [*] --> s1: a.loss #gt; 10
    s1 --> s2: b.loss #gt; 10
    s2 --> s3: c.loss #gt; 10
    s3 --> s4: d[1].loss #gt; 10 AND d[i].loss #gt; 10
    s4 --> s4: d[i].loss #gt; 10
    s4 --> [*]
