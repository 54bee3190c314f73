CREATE STREAM S (ts TIMESTAMP ORDERED, G STRING, A INT, D DOUBLE) PARTITION LENGTH 60;
CREATE VIEW V AS SELECT G, sum(A) AS total FROM S [WINDOW 1 hour] GROUP BY G STARTING '2015-01-01'
--- becomes
CREATE VIEW S_per_1_minute_by_g AS
  INITIALIZE S_per_1_minute_by_g[i] AS
    SELECT g, count(*) AS row_count, coalesce(sum(a), 0) AS sum_a, count(a) AS count_a
    FROM S[i]
    GROUP BY g
  UPDATE S_per_1_minute_by_g[j] AS
    SELECT g, count(*) AS row_count, coalesce(sum(a), 0) AS sum_a, count(a) AS count_a
    FROM S[j]
    GROUP BY g
  PARTITION LENGTH 60;

CREATE VIEW V AS
  INITIALIZE V[i] AS
    SELECT g AS G,
      CASE WHEN count_a > 0 THEN sum_a END AS total,
      row_count AS __own_row_count,
      sum_a AS __own_sum_a,
      count_a AS __own_count_a
    FROM (SELECT g,
      coalesce(sum(row_count), 0) AS row_count,
      coalesce(sum(sum_a), 0) AS sum_a,
      coalesce(sum(count_a), 0) AS count_a
    FROM S_per_1_minute_by_g[i - 59 .. i]
    GROUP BY g) AS state
  UPDATE V[j] AS
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
      SELECT G AS g, __own_row_count AS row_count, __own_sum_a AS sum_a, __own_count_a AS count_a FROM V[j - 1]
      UNION ALL SELECT g, row_count, sum_a, count_a FROM S_per_1_minute_by_g[j]
      UNION ALL SELECT g, -row_count AS row_count, -sum_a AS sum_a, -count_a AS count_a FROM S_per_1_minute_by_g[j - 60]) AS parts
    GROUP BY g
    HAVING sum(row_count) <> 0) AS state
  PARTITION LENGTH 60 STARTING '2015-01-01T00:00'
--- notes
V is over a window of 1 hour of S (60 parts of 1 minute), full only, sliding by 1 minute.
Strategy delta: all aggregates are of exact numbers and can be subtracted, so an update adds one part and takes one away, however long the window; late rows settle after one window.
S_per_1_minute_by_g keeps row_count, sum_a, count_a of each part; every window over the same rows and keys reads it.
V keeps the state of its window in columns that only its own next part reads.
