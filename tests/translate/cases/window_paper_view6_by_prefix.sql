CREATE STREAM S (ts TIMESTAMP ORDERED, G STRING, A INT, D DOUBLE) PARTITION LENGTH 60;
-- The paper's section 5.2.2 with W = 10, corrected: a group is in the window as long as it has rows there, whatever its sum.
CREATE VIEW View6 AS SELECT G, sum(A) AS sum_A FROM S [WINDOW 10 minutes] GROUP BY G HAVING sum_A > 5
  WITH (strategy = 'prefix')
--- becomes
-- The paper's section 5.2.2 with W = 10, corrected: a group is in the window as long as it has rows there, whatever its sum.
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

CREATE VIEW S_per_1_minute_by_g_total AS
  INITIALIZE S_per_1_minute_by_g_total[i] AS
    SELECT g,
      coalesce(sum(row_count), 0) AS row_count,
      coalesce(sum(sum_a), 0) AS sum_a,
      coalesce(sum(count_a), 0) AS count_a
    FROM S_per_1_minute_by_g[i]
    GROUP BY g
  UPDATE S_per_1_minute_by_g_total[j] AS
    SELECT g,
      coalesce(sum(row_count), 0) AS row_count,
      coalesce(sum(sum_a), 0) AS sum_a,
      coalesce(sum(count_a), 0) AS count_a
    FROM (
      SELECT g, row_count, sum_a, count_a FROM S_per_1_minute_by_g_total[j - 1]
      UNION ALL SELECT g, row_count, sum_a, count_a FROM S_per_1_minute_by_g[j]) AS parts
    GROUP BY g
  PARTITION LENGTH 60;

CREATE VIEW View6 AS
  INITIALIZE View6[i] AS
    SELECT g AS G, CASE WHEN count_a > 0 THEN sum_a END AS sum_A
    FROM (SELECT g,
      coalesce(sum(row_count), 0) AS row_count,
      coalesce(sum(sum_a), 0) AS sum_a,
      coalesce(sum(count_a), 0) AS count_a
    FROM S_per_1_minute_by_g[i - 9 .. i]
    GROUP BY g) AS merged
    WHERE CASE WHEN count_a > 0 THEN sum_a END > 5
  UPDATE View6[j] AS
    SELECT g AS G, CASE WHEN count_a > 0 THEN sum_a END AS sum_A
    FROM (SELECT g,
      CAST(coalesce(sum(row_count), 0) AS BIGINT) AS row_count,
      CAST(coalesce(sum(sum_a), 0) AS BIGINT) AS sum_a,
      CAST(coalesce(sum(count_a), 0) AS BIGINT) AS count_a
    FROM (
      SELECT g, row_count, sum_a, count_a FROM S_per_1_minute_by_g_total[j]
      UNION ALL SELECT g, -row_count AS row_count, -sum_a AS sum_a, -count_a AS count_a FROM S_per_1_minute_by_g_total[j - 10]) AS parts
    GROUP BY g
    HAVING sum(row_count) <> 0) AS difference
    WHERE CASE WHEN count_a > 0 THEN sum_a END > 5
  PARTITION LENGTH 60
--- notes
View6 is over a window of 10 minutes of S (10 parts of 1 minute), full only, sliding by 1 minute.
Strategy prefix: asked for by WITH.
S_per_1_minute_by_g keeps row_count, sum_a, count_a of each part; every window over the same rows and keys reads it.
Further helper views: S_per_1_minute_by_g_total.
