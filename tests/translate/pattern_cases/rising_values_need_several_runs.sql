CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW Rising AS
  SELECT src, a.loss AS bottom, last(b.loss) AS top
  FROM M PATTERN [a, b+]
  WHERE b[1].loss > a.loss AND b[i].loss > b[i-1].loss AND b.loss > avg(b[..i-1].loss)
  GROUP BY src HAVING top > 2 * bottom;
--- gives
CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW Rising_runs AS
INITIALIZE Rising_runs[i] AS
  SELECT src, inline(filter(array(named_struct('runs', aggregate(rows, filter(array(CASE WHEN FALSE THEN named_struct('state', CASE WHEN FALSE THEN 1 END, 'last_a_loss', CASE WHEN FALSE THEN rows[0].loss END, 'last_b_loss', CASE WHEN FALSE THEN rows[0].loss END, 'first_b_loss', CASE WHEN FALSE THEN rows[0].loss END, 'sum_b_loss', CASE WHEN FALSE THEN rows[0].loss_double END, 'count_b_loss', CASE WHEN FALSE THEN CAST(0 AS BIGINT) END) END), q -> q IS NOT NULL),
    (runs, x) -> aggregate(
      concat(
        flatten(transform(runs, r -> array(
          CASE WHEN r.state = 1 AND x.loss > r.last_a_loss THEN named_struct('state', 2, 'last_a_loss', r.last_a_loss, 'last_b_loss', x.loss, 'first_b_loss', x.loss, 'sum_b_loss', coalesce(r.sum_b_loss + x.loss_double, r.sum_b_loss, x.loss_double), 'count_b_loss', r.count_b_loss + CASE WHEN x.loss IS NULL THEN 0 ELSE 1 END) END,
          CASE WHEN r.state = 2 AND r.first_b_loss > r.last_a_loss AND x.loss > r.last_b_loss AND x.loss > (r.sum_b_loss / nullif(r.count_b_loss, 0)) THEN named_struct('state', 2, 'last_a_loss', r.last_a_loss, 'last_b_loss', x.loss, 'first_b_loss', r.first_b_loss, 'sum_b_loss', coalesce(r.sum_b_loss + x.loss_double, r.sum_b_loss, x.loss_double), 'count_b_loss', r.count_b_loss + CASE WHEN x.loss IS NULL THEN 0 ELSE 1 END) END))),
        array(
          named_struct('state', 1, 'last_a_loss', x.loss, 'last_b_loss', CASE WHEN FALSE THEN x.loss END, 'first_b_loss', CASE WHEN FALSE THEN x.loss END, 'sum_b_loss', CASE WHEN FALSE THEN x.loss_double END, 'count_b_loss', CAST(0 AS BIGINT)))),
      slice(runs, 1, 0),
      (kept, q) -> CASE
        WHEN q IS NULL OR exists(kept, k -> (k.state = q.state AND q.state = 1 AND k.count_b_loss <=> q.count_b_loss AND k.last_a_loss <=> q.last_a_loss AND k.sum_b_loss <=> q.sum_b_loss) OR (k.state = q.state AND q.state = 2 AND k.count_b_loss <=> q.count_b_loss AND k.first_b_loss <=> q.first_b_loss AND k.last_a_loss <=> q.last_a_loss AND k.last_b_loss <=> q.last_b_loss AND k.sum_b_loss <=> q.sum_b_loss)) THEN kept
        ELSE array_append(kept, q) END)))), q -> size(q.runs) > 0))
  FROM (
    SELECT src, array_sort(collect_list(x)) AS rows
    FROM (SELECT src, named_struct('o1', ts, 'loss', loss, 'loss_double', CAST(loss AS DOUBLE)) AS x FROM M[i])
    GROUP BY src
  )
UPDATE Rising_runs[j] AS
  SELECT x.src, inline(filter(array(named_struct('runs', aggregate(array(named_struct('loss', x.loss, 'loss_double', x.loss_double)), coalesce(r.runs, array()),
    (runs, x) -> aggregate(
      concat(
        flatten(transform(runs, r -> array(
          CASE WHEN r.state = 1 AND x.loss > r.last_a_loss THEN named_struct('state', 2, 'last_a_loss', r.last_a_loss, 'last_b_loss', x.loss, 'first_b_loss', x.loss, 'sum_b_loss', coalesce(r.sum_b_loss + x.loss_double, r.sum_b_loss, x.loss_double), 'count_b_loss', r.count_b_loss + CASE WHEN x.loss IS NULL THEN 0 ELSE 1 END) END,
          CASE WHEN r.state = 2 AND r.first_b_loss > r.last_a_loss AND x.loss > r.last_b_loss AND x.loss > (r.sum_b_loss / nullif(r.count_b_loss, 0)) THEN named_struct('state', 2, 'last_a_loss', r.last_a_loss, 'last_b_loss', x.loss, 'first_b_loss', r.first_b_loss, 'sum_b_loss', coalesce(r.sum_b_loss + x.loss_double, r.sum_b_loss, x.loss_double), 'count_b_loss', r.count_b_loss + CASE WHEN x.loss IS NULL THEN 0 ELSE 1 END) END))),
        array(
          named_struct('state', 1, 'last_a_loss', x.loss, 'last_b_loss', CASE WHEN FALSE THEN x.loss END, 'first_b_loss', CASE WHEN FALSE THEN x.loss END, 'sum_b_loss', CASE WHEN FALSE THEN x.loss_double END, 'count_b_loss', CAST(0 AS BIGINT)))),
      slice(runs, 1, 0),
      (kept, q) -> CASE
        WHEN q IS NULL OR exists(kept, k -> (k.state = q.state AND q.state = 1 AND k.count_b_loss <=> q.count_b_loss AND k.last_a_loss <=> q.last_a_loss AND k.sum_b_loss <=> q.sum_b_loss) OR (k.state = q.state AND q.state = 2 AND k.count_b_loss <=> q.count_b_loss AND k.first_b_loss <=> q.first_b_loss AND k.last_a_loss <=> q.last_a_loss AND k.last_b_loss <=> q.last_b_loss AND k.sum_b_loss <=> q.sum_b_loss)) THEN kept
        ELSE array_append(kept, q) END)))), q -> size(q.runs) > 0))
  FROM (SELECT src, loss AS loss, CAST(loss AS DOUBLE) AS loss_double FROM M[j]) AS x
      LEFT ANTI JOIN (SELECT g.src FROM (SELECT src FROM M[j]) AS g GROUP BY g.src HAVING count(*) > 1) AS q ON xxhash64(x.src) = xxhash64(q.src) AND least(TRUE, x.src <=> q.src)
      LEFT JOIN Rising_runs[j - 1] AS r ON xxhash64(x.src) = xxhash64(r.src) AND least(TRUE, x.src <=> r.src)
  UNION ALL
  SELECT src, inline(filter(array(named_struct('runs', aggregate(rows, coalesce(before, array()),
    (runs, x) -> aggregate(
      concat(
        flatten(transform(runs, r -> array(
          CASE WHEN r.state = 1 AND x.loss > r.last_a_loss THEN named_struct('state', 2, 'last_a_loss', r.last_a_loss, 'last_b_loss', x.loss, 'first_b_loss', x.loss, 'sum_b_loss', coalesce(r.sum_b_loss + x.loss_double, r.sum_b_loss, x.loss_double), 'count_b_loss', r.count_b_loss + CASE WHEN x.loss IS NULL THEN 0 ELSE 1 END) END,
          CASE WHEN r.state = 2 AND r.first_b_loss > r.last_a_loss AND x.loss > r.last_b_loss AND x.loss > (r.sum_b_loss / nullif(r.count_b_loss, 0)) THEN named_struct('state', 2, 'last_a_loss', r.last_a_loss, 'last_b_loss', x.loss, 'first_b_loss', r.first_b_loss, 'sum_b_loss', coalesce(r.sum_b_loss + x.loss_double, r.sum_b_loss, x.loss_double), 'count_b_loss', r.count_b_loss + CASE WHEN x.loss IS NULL THEN 0 ELSE 1 END) END))),
        array(
          named_struct('state', 1, 'last_a_loss', x.loss, 'last_b_loss', CASE WHEN FALSE THEN x.loss END, 'first_b_loss', CASE WHEN FALSE THEN x.loss END, 'sum_b_loss', CASE WHEN FALSE THEN x.loss_double END, 'count_b_loss', CAST(0 AS BIGINT)))),
      slice(runs, 1, 0),
      (kept, q) -> CASE
        WHEN q IS NULL OR exists(kept, k -> (k.state = q.state AND q.state = 1 AND k.count_b_loss <=> q.count_b_loss AND k.last_a_loss <=> q.last_a_loss AND k.sum_b_loss <=> q.sum_b_loss) OR (k.state = q.state AND q.state = 2 AND k.count_b_loss <=> q.count_b_loss AND k.first_b_loss <=> q.first_b_loss AND k.last_a_loss <=> q.last_a_loss AND k.last_b_loss <=> q.last_b_loss AND k.sum_b_loss <=> q.sum_b_loss)) THEN kept
        ELSE array_append(kept, q) END)))), q -> size(q.runs) > 0))
  FROM (
    SELECT src, array_sort(collect_list(x)) AS rows, any_value(runs, TRUE) AS before
    FROM (
      SELECT g.src, g.x AS x, NULL AS runs FROM (SELECT src, named_struct('o1', ts, 'loss', loss, 'loss_double', CAST(loss AS DOUBLE)) AS x FROM M[j]) AS g
      LEFT SEMI JOIN (SELECT g.src FROM (SELECT src FROM M[j]) AS g GROUP BY g.src HAVING count(*) > 1) AS q ON xxhash64(g.src) = xxhash64(q.src) AND least(TRUE, g.src <=> q.src)
      UNION ALL
      SELECT src, NULL, runs FROM Rising_runs[j - 1] AS g
      LEFT SEMI JOIN (SELECT g.src FROM (SELECT src FROM M[j]) AS g GROUP BY g.src HAVING count(*) > 1) AS q ON xxhash64(g.src) = xxhash64(q.src) AND least(TRUE, g.src <=> q.src))
    GROUP BY src
  )
  WHERE size(rows) > 0
PARTITION LENGTH 60 KEY (src);

CREATE VIEW Rising AS
INITIALIZE Rising[i] AS
  SELECT g.src AS src, r.last_a_loss AS bottom, r.last_b_loss AS top
  FROM (SELECT src, get(filter(runs, q -> q.state = 2), 0) AS r FROM Rising_runs[i]) AS g
  WHERE r IS NOT NULL AND ((r.last_b_loss) > 2 * (r.last_a_loss))
UPDATE Rising[j] AS
  SELECT g.src AS src, r.last_a_loss AS bottom, r.last_b_loss AS top
  FROM (SELECT src, get(filter(runs, q -> q.state = 2), 0) AS r FROM Rising_runs[j]) AS g
  WHERE r IS NOT NULL AND ((r.last_b_loss) > 2 * (r.last_a_loss))
PARTITION LENGTH 60 KEY (src);
--- notes
PATTERN [a, b+] over M, for each src
  state 1: a
  state 2: b, ends a match
  begin -> 1: any row
  1 -> 2: b[1].loss > a.loss
  2 -> 2: b[1].loss > a.loss AND b[i].loss > b[i-1].loss AND b.loss > avg(b[..i-1].loss)
  a run remembers: the last a.loss, the last b.loss, the first b.loss, sum(b.CAST(loss AS DOUBLE)), count(b.loss)
  kept: one run per group and state and values of count_b_loss, first_b_loss, last_a_loss, last_b_loss, sum_b_loss, the one with the earliest start
  computed: by an outer join with the part before for groups with one row in a part, by collecting the rows of a group in a part, ordering them, and taking the runs over one after the other for groups with several, because how many rows a group has is seen when the part is computed
--- diagram
stateDiagram-v2
    s1: a
    s2: b
    [*] --> s1: any row
    s1 --> s2: b[1].loss #gt; a.loss
    s2 --> s2: b[1].loss #gt; a.loss AND b[i].loss #gt; b[i-1].loss AND b.loss #gt; avg(b[..i-1].loss)
    s2 --> [*]
