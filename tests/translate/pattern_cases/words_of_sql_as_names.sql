CREATE STREAM S (ts TIMESTAMP ORDERED, state STRING, `order` INT, x DECIMAL(10,2)) PARTITION LENGTH 60;
CREATE VIEW V AS
  SELECT state, sum(x) AS total, avg(x) AS mean, count(end.`order`) AS ct
  FROM S PATTERN [start, end+]
  WHERE Start.`order` > 1 AND END.x > START.x
  GROUP BY state;
--- gives
CREATE STREAM S (ts TIMESTAMP ORDERED, state STRING, `order` INT, x DECIMAL(10,2)) PARTITION LENGTH 60;
CREATE VIEW V_runs AS
INITIALIZE V_runs[i] AS
  SELECT group_state, inline(filter(array(named_struct('runs', aggregate(rows, filter(array(CASE WHEN FALSE THEN named_struct('state', CASE WHEN FALSE THEN 1 END, 'sum_x', CASE WHEN FALSE THEN rows[0].x_decimal_20_2 END, 'count_x', CASE WHEN FALSE THEN CAST(0 AS BIGINT) END, 'count_end__order', CASE WHEN FALSE THEN CAST(0 AS BIGINT) END, 'last_start_x', CASE WHEN FALSE THEN rows[0].x_2 END) END), q -> q IS NOT NULL),
    (runs, x) -> aggregate(
      concat(
        flatten(transform(runs, r -> array(
          CASE WHEN r.state IN (1, 2) AND x.x_2 > r.last_start_x THEN named_struct('state', 2, 'sum_x', coalesce(CAST(r.sum_x + x.x_decimal_20_2 AS DECIMAL(20, 2)), r.sum_x, x.x_decimal_20_2), 'count_x', r.count_x + CASE WHEN x.x_2 IS NULL THEN 0 ELSE 1 END, 'count_end__order', r.count_end__order + CASE WHEN x.order_2 IS NULL THEN 0 ELSE 1 END, 'last_start_x', r.last_start_x) END))),
        array(
          CASE WHEN x.is_start THEN named_struct('state', 1, 'sum_x', x.x_decimal_20_2, 'count_x', CAST(CASE WHEN x.x_2 IS NULL THEN 0 ELSE 1 END AS BIGINT), 'count_end__order', CAST(0 AS BIGINT), 'last_start_x', x.x_2) END)),
      slice(runs, 1, 0),
      (kept, q) -> CASE
        WHEN q IS NULL OR exists(kept, k -> (k.state IN (1, 2) AND q.state = 1 AND k.last_start_x <=> q.last_start_x) OR (k.state = q.state AND q.state = 2 AND k.last_start_x <=> q.last_start_x)) THEN kept
        ELSE array_append(kept, q) END)))), q -> size(q.runs) > 0))
  FROM (
    SELECT group_state, array_sort(collect_list(x)) AS rows
    FROM (SELECT state AS group_state, named_struct('o1', ts, 'x_decimal_20_2', CAST(x AS DECIMAL(20, 2)), 'x_2', x, 'order_2', `order`, 'is_start', `order` > 1) AS x FROM S[i])
    GROUP BY group_state
  )
UPDATE V_runs[j] AS
  SELECT x.group_state, inline(filter(array(named_struct('runs', aggregate(array(named_struct('x_decimal_20_2', x.x_decimal_20_2, 'x_2', x.x_2, 'order_2', x.order_2, 'is_start', x.is_start)), coalesce(r.runs, array()),
    (runs, x) -> aggregate(
      concat(
        flatten(transform(runs, r -> array(
          CASE WHEN r.state IN (1, 2) AND x.x_2 > r.last_start_x THEN named_struct('state', 2, 'sum_x', coalesce(CAST(r.sum_x + x.x_decimal_20_2 AS DECIMAL(20, 2)), r.sum_x, x.x_decimal_20_2), 'count_x', r.count_x + CASE WHEN x.x_2 IS NULL THEN 0 ELSE 1 END, 'count_end__order', r.count_end__order + CASE WHEN x.order_2 IS NULL THEN 0 ELSE 1 END, 'last_start_x', r.last_start_x) END))),
        array(
          CASE WHEN x.is_start THEN named_struct('state', 1, 'sum_x', x.x_decimal_20_2, 'count_x', CAST(CASE WHEN x.x_2 IS NULL THEN 0 ELSE 1 END AS BIGINT), 'count_end__order', CAST(0 AS BIGINT), 'last_start_x', x.x_2) END)),
      slice(runs, 1, 0),
      (kept, q) -> CASE
        WHEN q IS NULL OR exists(kept, k -> (k.state IN (1, 2) AND q.state = 1 AND k.last_start_x <=> q.last_start_x) OR (k.state = q.state AND q.state = 2 AND k.last_start_x <=> q.last_start_x)) THEN kept
        ELSE array_append(kept, q) END)))), q -> size(q.runs) > 0))
  FROM (SELECT state AS group_state, CAST(x AS DECIMAL(20, 2)) AS x_decimal_20_2, x AS x_2, `order` AS order_2, `order` > 1 AS is_start FROM S[j]) AS x
      LEFT ANTI JOIN (SELECT g.group_state FROM (SELECT state AS group_state FROM S[j]) AS g GROUP BY g.group_state HAVING count(*) > 1) AS q ON xxhash64(x.group_state) = xxhash64(q.group_state) AND least(TRUE, x.group_state <=> q.group_state)
      LEFT JOIN V_runs[j - 1] AS r ON xxhash64(x.group_state) = xxhash64(r.group_state) AND least(TRUE, x.group_state <=> r.group_state)
  UNION ALL
  SELECT group_state, inline(filter(array(named_struct('runs', aggregate(rows, coalesce(before, array()),
    (runs, x) -> aggregate(
      concat(
        flatten(transform(runs, r -> array(
          CASE WHEN r.state IN (1, 2) AND x.x_2 > r.last_start_x THEN named_struct('state', 2, 'sum_x', coalesce(CAST(r.sum_x + x.x_decimal_20_2 AS DECIMAL(20, 2)), r.sum_x, x.x_decimal_20_2), 'count_x', r.count_x + CASE WHEN x.x_2 IS NULL THEN 0 ELSE 1 END, 'count_end__order', r.count_end__order + CASE WHEN x.order_2 IS NULL THEN 0 ELSE 1 END, 'last_start_x', r.last_start_x) END))),
        array(
          CASE WHEN x.is_start THEN named_struct('state', 1, 'sum_x', x.x_decimal_20_2, 'count_x', CAST(CASE WHEN x.x_2 IS NULL THEN 0 ELSE 1 END AS BIGINT), 'count_end__order', CAST(0 AS BIGINT), 'last_start_x', x.x_2) END)),
      slice(runs, 1, 0),
      (kept, q) -> CASE
        WHEN q IS NULL OR exists(kept, k -> (k.state IN (1, 2) AND q.state = 1 AND k.last_start_x <=> q.last_start_x) OR (k.state = q.state AND q.state = 2 AND k.last_start_x <=> q.last_start_x)) THEN kept
        ELSE array_append(kept, q) END)))), q -> size(q.runs) > 0))
  FROM (
    SELECT group_state, array_sort(collect_list(x)) AS rows, any_value(runs, TRUE) AS before
    FROM (
      SELECT g.group_state, g.x AS x, NULL AS runs FROM (SELECT state AS group_state, named_struct('o1', ts, 'x_decimal_20_2', CAST(x AS DECIMAL(20, 2)), 'x_2', x, 'order_2', `order`, 'is_start', `order` > 1) AS x FROM S[j]) AS g
      LEFT SEMI JOIN (SELECT g.group_state FROM (SELECT state AS group_state FROM S[j]) AS g GROUP BY g.group_state HAVING count(*) > 1) AS q ON xxhash64(g.group_state) = xxhash64(q.group_state) AND least(TRUE, g.group_state <=> q.group_state)
      UNION ALL
      SELECT group_state, NULL, runs FROM V_runs[j - 1] AS g
      LEFT SEMI JOIN (SELECT g.group_state FROM (SELECT state AS group_state FROM S[j]) AS g GROUP BY g.group_state HAVING count(*) > 1) AS q ON xxhash64(g.group_state) = xxhash64(q.group_state) AND least(TRUE, g.group_state <=> q.group_state))
    GROUP BY group_state
  )
  WHERE size(rows) > 0
PARTITION LENGTH 60 KEY (group_state);

CREATE VIEW V AS
INITIALIZE V[i] AS
  SELECT g.group_state AS state, r.sum_x AS total, CAST(r.sum_x / nullif(r.count_x, 0) AS DECIMAL(14, 6)) AS mean, r.count_end__order AS ct
  FROM (SELECT group_state, get(filter(runs, q -> q.state = 2), 0) AS r FROM V_runs[i]) AS g
  WHERE r IS NOT NULL
UPDATE V[j] AS
  SELECT g.group_state AS state, r.sum_x AS total, CAST(r.sum_x / nullif(r.count_x, 0) AS DECIMAL(14, 6)) AS mean, r.count_end__order AS ct
  FROM (SELECT group_state, get(filter(runs, q -> q.state = 2), 0) AS r FROM V_runs[j]) AS g
  WHERE r IS NOT NULL
PARTITION LENGTH 60 KEY (state);
--- notes
PATTERN [start, end+] over S, for each state
  state 1: start
  state 2: end, ends a match
  begin -> 1: start.`order` > 1
  1 -> 2: end.x > start.x
  2 -> 2: end.x > start.x
  a run remembers: sum(CAST(x AS DECIMAL(20, 2))), count(x), count(end.`order`), the last start.x
  kept: one run per group and state and values of last_start_x, the one with the earliest start
  computed: by an outer join with the part before for groups with one row in a part, by collecting the rows of a group in a part, ordering them, and taking the runs over one after the other for groups with several, because how many rows a group has is seen when the part is computed
--- diagram
stateDiagram-v2
    s1: start
    s2: end
    [*] --> s1: start.`order` #gt; 1
    s1 --> s2: end.x #gt; start.x
    s2 --> s2: end.x #gt; start.x
    s2 --> [*]
