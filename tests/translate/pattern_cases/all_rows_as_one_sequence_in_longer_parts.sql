CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW Hourly AS
  SELECT count(*), avg(loss) AS mean FROM M PATTERN [a{2,}] WHERE a.loss > 10 ORDER BY loss
  PARTITION LENGTH '5 minutes';
--- gives
CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW Hourly_runs AS
INITIALIZE Hourly_runs[i] AS
  SELECT inline(array_compact(array(aggregate(rows, CASE WHEN FALSE THEN named_struct('state', CASE WHEN FALSE THEN 1 END, 'count_rows', CASE WHEN FALSE THEN CAST(0 AS BIGINT) END, 'sum_loss', CASE WHEN FALSE THEN rows[0].loss_double END, 'count_loss', CASE WHEN FALSE THEN CAST(0 AS BIGINT) END) END,
    (r, x) -> CASE
    WHEN r.state IN (1, 2) AND x.is_a
      THEN named_struct('state', 2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_double, r.sum_loss, x.loss_double), 'count_loss', r.count_loss + CASE WHEN x.loss IS NULL THEN 0 ELSE 1 END)
    WHEN x.is_a
      THEN named_struct('state', 1, 'count_rows', CAST(1 AS BIGINT), 'sum_loss', x.loss_double, 'count_loss', CAST(CASE WHEN x.loss IS NULL THEN 0 ELSE 1 END AS BIGINT))
    END))))
  FROM (
    SELECT array_sort(collect_list(x)) AS rows
    FROM (SELECT named_struct('o1', PART, 'o2', loss, 'loss_double', CAST(loss AS DOUBLE), 'loss', loss, 'is_a', loss > 10) AS x FROM M[i * 5 .. i * 5 + 4])
  )
  WHERE size(rows) > 0
UPDATE Hourly_runs[j] AS
  SELECT inline(array_compact(array(aggregate(rows, before,
    (r, x) -> CASE
    WHEN r.state IN (1, 2) AND x.is_a
      THEN named_struct('state', 2, 'count_rows', r.count_rows + 1, 'sum_loss', coalesce(r.sum_loss + x.loss_double, r.sum_loss, x.loss_double), 'count_loss', r.count_loss + CASE WHEN x.loss IS NULL THEN 0 ELSE 1 END)
    WHEN x.is_a
      THEN named_struct('state', 1, 'count_rows', CAST(1 AS BIGINT), 'sum_loss', x.loss_double, 'count_loss', CAST(CASE WHEN x.loss IS NULL THEN 0 ELSE 1 END AS BIGINT))
    END))))
  FROM (
    SELECT array_sort(collect_list(x)) AS rows, any_value(r, TRUE) AS before
    FROM (
      SELECT *, NULL AS r FROM (SELECT named_struct('o1', PART, 'o2', loss, 'loss_double', CAST(loss AS DOUBLE), 'loss', loss, 'is_a', loss > 10) AS x FROM M[j * 5 .. j * 5 + 4])
      UNION ALL
      SELECT NULL, named_struct('state', state, 'count_rows', count_rows, 'sum_loss', sum_loss, 'count_loss', count_loss) FROM Hourly_runs[j - 1] AS g)
  )
  WHERE size(rows) > 0
PARTITION LENGTH 300;

CREATE VIEW Hourly AS
INITIALIZE Hourly[i] AS
  SELECT r.count_rows AS `count(*)`, (r.sum_loss / nullif(r.count_loss, 0)) AS mean
  FROM Hourly_runs[i] AS r
  WHERE r.state = 2
UPDATE Hourly[j] AS
  SELECT r.count_rows AS `count(*)`, (r.sum_loss / nullif(r.count_loss, 0)) AS mean
  FROM Hourly_runs[j] AS r
  WHERE r.state = 2
PARTITION LENGTH 300;
--- notes
PATTERN [a{2,}] over M, all rows as one sequence
  state 1: a#1
  state 2: a#2, ends a match
  begin -> 1: a.loss > 10
  1 -> 2: a.loss > 10
  2 -> 2: a.loss > 10
  a run remembers: the number of rows, sum(CAST(loss AS DOUBLE)), count(loss)
  kept: one run per group, the longest; it makes every later one superfluous
  computed: by collecting the rows of a group in a part, ordering them, and taking the runs over one after the other, because all rows are one sequence
--- diagram
stateDiagram-v2
    s1: a#1
    s2: a#2
    [*] --> s1: a.loss #gt; 10
    s1 --> s2: a.loss #gt; 10
    s2 --> s2: a.loss #gt; 10
    s2 --> [*]
