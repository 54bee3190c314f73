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

CREATE VIEW V5_state AS
  INITIALIZE V5_state[i] AS
    SELECT g,
      coalesce(sum(row_count), 0) AS row_count,
      coalesce(sum(sum_a), 0) AS sum_a,
      coalesce(sum(count_a), 0) AS count_a
    FROM S_per_1_minute_by_g[i - 4 .. i]
    GROUP BY g
  UPDATE V5_state[j] AS
    SELECT g,
      coalesce(sum(row_count), 0) AS row_count,
      coalesce(sum(sum_a), 0) AS sum_a,
      coalesce(sum(count_a), 0) AS count_a
    FROM (
      SELECT g, row_count, sum_a, count_a FROM V5_state[j - 1]
      UNION ALL SELECT g, row_count, sum_a, count_a FROM S_per_1_minute_by_g[j]
      UNION ALL SELECT g, -row_count AS row_count, -sum_a AS sum_a, -count_a AS count_a FROM S_per_1_minute_by_g[j - 5]) AS parts
    GROUP BY g
    HAVING sum(row_count) <> 0
  PARTITION LENGTH 60;

CREATE VIEW V5 AS
  INITIALIZE V5[i] AS
    SELECT g AS G, CASE WHEN count_a > 0 THEN sum_a END AS total
    FROM V5_state[i]
  UPDATE V5[j] AS
    SELECT g AS G, CASE WHEN count_a > 0 THEN sum_a END AS total
    FROM V5_state[j]
  PARTITION LENGTH 60;

CREATE VIEW V10_state AS
  INITIALIZE V10_state[i] AS
    SELECT g,
      coalesce(sum(row_count), 0) AS row_count,
      coalesce(sum(sum_a), 0) AS sum_a,
      coalesce(sum(count_a), 0) AS count_a
    FROM S_per_1_minute_by_g[i - 9 .. i]
    GROUP BY g
  UPDATE V10_state[j] AS
    SELECT g,
      coalesce(sum(row_count), 0) AS row_count,
      coalesce(sum(sum_a), 0) AS sum_a,
      coalesce(sum(count_a), 0) AS count_a
    FROM (
      SELECT g, row_count, sum_a, count_a FROM V10_state[j - 1]
      UNION ALL SELECT g, row_count, sum_a, count_a FROM S_per_1_minute_by_g[j]
      UNION ALL SELECT g, -row_count AS row_count, -sum_a AS sum_a, -count_a AS count_a FROM S_per_1_minute_by_g[j - 10]) AS parts
    GROUP BY g
    HAVING sum(row_count) <> 0
  PARTITION LENGTH 60;

CREATE VIEW V10 AS
  INITIALIZE V10[i] AS
    SELECT g,
      CASE WHEN count_a > 0 THEN sum_a END AS total,
      CASE WHEN count_a > 0 THEN CAST(sum_a AS DOUBLE) / count_a END AS mean
    FROM V10_state[i]
  UPDATE V10[j] AS
    SELECT g,
      CASE WHEN count_a > 0 THEN sum_a END AS total,
      CASE WHEN count_a > 0 THEN CAST(sum_a AS DOUBLE) / count_a END AS mean
    FROM V10_state[j]
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
Further helper views: V5_state.
V10 is over a window of 10 minutes of S (10 parts of 1 minute), full only, sliding by 1 minute.
Strategy delta: all aggregates are of exact numbers and can be subtracted, so an update adds one part and takes one away, however long the window; late rows settle after one window.
S_per_1_minute_by_g keeps row_count, sum_a, count_a, max_a of each part; every window over the same rows and keys reads it.
Further helper views: V10_state.
V60 is over a window of 1 hour of S (60 parts of 1 minute), full only, sliding by 1 minute.
Strategy merge: asked for by WITH.
S_per_1_minute_by_g keeps row_count, sum_a, count_a, max_a of each part; every window over the same rows and keys reads it.
