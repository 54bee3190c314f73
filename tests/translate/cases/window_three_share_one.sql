CREATE STREAM S (ts TIMESTAMP ORDERED, G STRING, A INT, D DOUBLE) PARTITION LENGTH 60;
CREATE VIEW V5 AS SELECT G, sum(A) AS total FROM S [WINDOW 5 minutes] GROUP BY G;
CREATE VIEW V10 AS SELECT g, sum(a) AS total, avg(A) AS mean FROM S [WINDOW 10 minutes] GROUP BY g;
CREATE VIEW V60 AS SELECT G, max(A) AS most FROM S [WINDOW 60 minutes] GROUP BY G WITH (strategy = 'merge')
--- becomes
CREATE VIEW S_per_1_minute_by_g AS
  INITIALIZE S_per_1_minute_by_g[i] AS
    SELECT g,
      count(*) AS row_count,
      coalesce(sum(a), 0) AS sum_a,
      count(a) AS count_a,
      max(a) AS max_a
    FROM S[i]
    GROUP BY g
  UPDATE S_per_1_minute_by_g[j] AS
    SELECT g,
      count(*) AS row_count,
      coalesce(sum(a), 0) AS sum_a,
      count(a) AS count_a,
      max(a) AS max_a
    FROM S[j]
    GROUP BY g
  PARTITION LENGTH 60;

CREATE VIEW V5 AS
  INITIALIZE V5[i] AS
    SELECT g AS G,
      CASE WHEN count_a > 0 THEN sum_a END AS total,
      row_count AS __own_row_count,
      sum_a AS __own_sum_a,
      count_a AS __own_count_a
    FROM (SELECT g,
      coalesce(sum(row_count), 0) AS row_count,
      coalesce(sum(sum_a), 0) AS sum_a,
      coalesce(sum(count_a), 0) AS count_a
    FROM S_per_1_minute_by_g[i - 4 .. i]
    GROUP BY g) AS state
  UPDATE V5[j] AS
    SELECT g AS G,
      CASE WHEN count_a > 0 THEN sum_a END AS total,
      row_count AS __own_row_count,
      sum_a AS __own_sum_a,
      count_a AS __own_count_a
    FROM (SELECT g,
      coalesce(sum(row_count), 0) AS row_count,
      coalesce(sum(sum_a), 0) AS sum_a,
      coalesce(sum(count_a), 0) AS count_a
    FROM (
      SELECT G AS g, __own_row_count AS row_count, __own_sum_a AS sum_a, __own_count_a AS count_a FROM V5[j - 1]
      UNION ALL SELECT g, row_count, sum_a, count_a FROM S_per_1_minute_by_g[j]
      UNION ALL SELECT g, -row_count AS row_count, -sum_a AS sum_a, -count_a AS count_a FROM S_per_1_minute_by_g[j - 5]) AS parts
    GROUP BY g
    HAVING sum(row_count) <> 0) AS state
  PARTITION LENGTH 60;

CREATE VIEW V10 AS
  INITIALIZE V10[i] AS
    SELECT g,
      CASE WHEN count_a > 0 THEN sum_a END AS total,
      CASE WHEN count_a > 0 THEN CAST(sum_a AS DOUBLE) / count_a END AS mean,
      row_count AS __own_row_count,
      sum_a AS __own_sum_a,
      count_a AS __own_count_a
    FROM (SELECT g,
      coalesce(sum(row_count), 0) AS row_count,
      coalesce(sum(sum_a), 0) AS sum_a,
      coalesce(sum(count_a), 0) AS count_a
    FROM S_per_1_minute_by_g[i - 9 .. i]
    GROUP BY g) AS state
  UPDATE V10[j] AS
    SELECT g,
      CASE WHEN count_a > 0 THEN sum_a END AS total,
      CASE WHEN count_a > 0 THEN CAST(sum_a AS DOUBLE) / count_a END AS mean,
      row_count AS __own_row_count,
      sum_a AS __own_sum_a,
      count_a AS __own_count_a
    FROM (SELECT g,
      coalesce(sum(row_count), 0) AS row_count,
      coalesce(sum(sum_a), 0) AS sum_a,
      coalesce(sum(count_a), 0) AS count_a
    FROM (
      SELECT g, __own_row_count AS row_count, __own_sum_a AS sum_a, __own_count_a AS count_a FROM V10[j - 1]
      UNION ALL SELECT g, row_count, sum_a, count_a FROM S_per_1_minute_by_g[j]
      UNION ALL SELECT g, -row_count AS row_count, -sum_a AS sum_a, -count_a AS count_a FROM S_per_1_minute_by_g[j - 10]) AS parts
    GROUP BY g
    HAVING sum(row_count) <> 0) AS state
  PARTITION LENGTH 60;

CREATE VIEW V60 AS
  INITIALIZE V60[i] AS
    SELECT g AS G, max_a AS most
    FROM (SELECT g, coalesce(sum(row_count), 0) AS row_count, max(max_a) AS max_a
    FROM S_per_1_minute_by_g[i - 59 .. i]
    GROUP BY g) AS merged
  UPDATE V60[j] AS
    SELECT g AS G, max_a AS most
    FROM (SELECT g, coalesce(sum(row_count), 0) AS row_count, max(max_a) AS max_a
    FROM S_per_1_minute_by_g[j - 59 .. j]
    GROUP BY g) AS merged
  PARTITION LENGTH 60
--- notes
V5 is over a window of 5 minutes of S (5 parts of 1 minute), full only, sliding by 1 minute.
Strategy delta: all aggregates are of exact numbers and can be subtracted, so an update adds one part and takes one away, however long the window; late rows settle after one window.
S_per_1_minute_by_g keeps row_count, sum_a, count_a, max_a of each part; every window over the same rows and keys reads it.
V5 keeps the state of its window in columns that only its own next part reads.
V10 is over a window of 10 minutes of S (10 parts of 1 minute), full only, sliding by 1 minute.
Strategy delta: all aggregates are of exact numbers and can be subtracted, so an update adds one part and takes one away, however long the window; late rows settle after one window.
S_per_1_minute_by_g keeps row_count, sum_a, count_a, max_a of each part; every window over the same rows and keys reads it.
V10 keeps the state of its window in columns that only its own next part reads.
V60 is over a window of 1 hour of S (60 parts of 1 minute), full only, sliding by 1 minute.
Strategy merge: asked for by WITH.
S_per_1_minute_by_g keeps row_count, sum_a, count_a, max_a of each part; every window over the same rows and keys reads it.
