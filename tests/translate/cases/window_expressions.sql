CREATE STREAM S (ts TIMESTAMP ORDERED, G STRING, A INT, D DOUBLE) PARTITION LENGTH 60;
CREATE VIEW V AS SELECT upper(G) AS g, hour(ts), sum(A) / count(*) AS mean, 2 * sum(A) FILTER (WHERE A > 0) AS twice
  FROM S [WINDOW 3 minutes] GROUP BY upper(G), 2 HAVING mean > 1 AND count(*) > 2
  STARTING LATEST KEY (g)
--- becomes
CREATE VIEW S_per_1_minute_h4b7c0a9 AS
  INITIALIZE S_per_1_minute_h4b7c0a9[i] AS
    SELECT hour(ts) AS key_1,
      upper(g) AS key_2,
      count(*) AS row_count,
      coalesce(sum(a), 0) AS sum_a,
      count(a) AS count_a,
      coalesce(sum(a) FILTER (WHERE a > 0), 0) AS sum_ha686fed,
      count(a) FILTER (WHERE a > 0) AS count_ha686fed
    FROM S[i]
    GROUP BY hour(ts), upper(g)
  UPDATE S_per_1_minute_h4b7c0a9[j] AS
    SELECT hour(ts) AS key_1,
      upper(g) AS key_2,
      count(*) AS row_count,
      coalesce(sum(a), 0) AS sum_a,
      count(a) AS count_a,
      coalesce(sum(a) FILTER (WHERE a > 0), 0) AS sum_ha686fed,
      count(a) FILTER (WHERE a > 0) AS count_ha686fed
    FROM S[j]
    GROUP BY hour(ts), upper(g)
  PARTITION LENGTH 60;

CREATE VIEW V AS
  INITIALIZE V[i] AS
    SELECT key_2 AS g,
      key_1 AS `hour(ts)`,
      CASE WHEN count_a > 0 THEN sum_a END / row_count AS mean,
      2 * CASE WHEN count_ha686fed > 0 THEN sum_ha686fed END AS twice
    FROM (SELECT key_1,
      key_2,
      coalesce(sum(row_count), 0) AS row_count,
      coalesce(sum(sum_a), 0) AS sum_a,
      coalesce(sum(count_a), 0) AS count_a,
      coalesce(sum(sum_ha686fed), 0) AS sum_ha686fed,
      coalesce(sum(count_ha686fed), 0) AS count_ha686fed
    FROM S_per_1_minute_h4b7c0a9[i - 2 .. i]
    GROUP BY key_1, key_2) AS merged
    WHERE (CASE WHEN count_a > 0 THEN sum_a END / row_count) > 1 AND row_count > 2
  UPDATE V[j] AS
    SELECT key_2 AS g,
      key_1 AS `hour(ts)`,
      CASE WHEN count_a > 0 THEN sum_a END / row_count AS mean,
      2 * CASE WHEN count_ha686fed > 0 THEN sum_ha686fed END AS twice
    FROM (SELECT key_1,
      key_2,
      coalesce(sum(row_count), 0) AS row_count,
      coalesce(sum(sum_a), 0) AS sum_a,
      coalesce(sum(count_a), 0) AS count_a,
      coalesce(sum(sum_ha686fed), 0) AS sum_ha686fed,
      coalesce(sum(count_ha686fed), 0) AS count_ha686fed
    FROM S_per_1_minute_h4b7c0a9[j - 2 .. j]
    GROUP BY key_1, key_2) AS merged
    WHERE (CASE WHEN count_a > 0 THEN sum_a END / row_count) > 1 AND row_count > 2
  PARTITION LENGTH 60 STARTING LATEST KEY (g)
--- notes
V is over a window of 3 minutes of S (3 parts of 1 minute), full only, sliding by 1 minute.
Strategy merge: 3 parts are few, so their partial aggregates are merged every time.
S_per_1_minute_h4b7c0a9 keeps row_count, sum_a, count_a, sum_ha686fed, count_ha686fed of each part; every window over the same rows and keys reads it.
