CREATE STREAM S (ts TIMESTAMP ORDERED, G STRING, A INT, D DOUBLE) PARTITION LENGTH 60;
CREATE VIEW V AS SELECT G, sum(D) AS total FROM S [WINDOW 22 minutes] GROUP BY G WITH (strategy = 'dyadic')
--- becomes
CREATE VIEW S_per_1_minute_by_g AS
  INITIALIZE S_per_1_minute_by_g[i] AS
    SELECT g, count(*) AS row_count, sum(d) AS sum_d
    FROM S[i]
    GROUP BY g
  UPDATE S_per_1_minute_by_g[j] AS
    SELECT g, count(*) AS row_count, sum(d) AS sum_d
    FROM S[j]
    GROUP BY g
  PARTITION LENGTH 60;

CREATE VIEW S_per_1_minute_by_g_block8 AS
  INITIALIZE S_per_1_minute_by_g_block8[i] AS
    SELECT g, coalesce(sum(row_count), 0) AS row_count, sum(sum_d) AS sum_d
    FROM S_per_1_minute_by_g[i - 7 .. i]
    GROUP BY g
  UPDATE S_per_1_minute_by_g_block8[j] AS
    SELECT g, coalesce(sum(row_count), 0) AS row_count, sum(sum_d) AS sum_d
    FROM S_per_1_minute_by_g[j - 7 .. j]
    GROUP BY g
  PARTITION LENGTH 60;

CREATE VIEW V AS
  INITIALIZE V[i] AS
    SELECT g AS G, sum_d AS total
    FROM (SELECT g, coalesce(sum(row_count), 0) AS row_count, sum(sum_d) AS sum_d
    FROM S_per_1_minute_by_g[i - 21 .. i]
    GROUP BY g) AS merged
  UPDATE V[j] AS
    SELECT g AS G, sum_d AS total
    FROM (SELECT g, coalesce(sum(row_count), 0) AS row_count, sum(sum_d) AS sum_d
    FROM (
      SELECT g, row_count, sum_d FROM S_per_1_minute_by_g_block8[j]
      UNION ALL SELECT g, row_count, sum_d FROM S_per_1_minute_by_g_block8[j - 8]
      UNION ALL SELECT g, row_count, sum_d FROM S_per_1_minute_by_g[j - 21 .. j - 16]) AS parts
    GROUP BY g) AS merged
  PARTITION LENGTH 60
--- notes
V is over a window of 22 minutes of S (22 parts of 1 minute), full only, sliding by 1 minute.
Strategy dyadic: asked for by WITH.
S_per_1_minute_by_g keeps row_count, sum_d of each part; every window over the same rows and keys reads it.
Further helper views: S_per_1_minute_by_g_block8.
