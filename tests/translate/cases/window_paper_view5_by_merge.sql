CREATE STREAM S (ts TIMESTAMP ORDERED, G STRING, A INT, D DOUBLE) PARTITION LENGTH 60;
-- The paper's section 5.2.1 with W = 10. INITIALIZE waits for the first full window.
CREATE VIEW View5 AS SELECT G, max(A) AS max_A FROM S [WINDOW 10 minutes] GROUP BY G HAVING max(A) > 5
--- becomes
-- The paper's section 5.2.1 with W = 10. INITIALIZE waits for the first full window.
CREATE VIEW S_per_1_minute_by_g AS
  INITIALIZE S_per_1_minute_by_g[i] AS
    SELECT g, count(*) AS row_count, max(a) AS max_a
    FROM S[i]
    GROUP BY g
  UPDATE S_per_1_minute_by_g[j] AS
    SELECT g, count(*) AS row_count, max(a) AS max_a
    FROM S[j]
    GROUP BY g
  PARTITION LENGTH 60;

CREATE VIEW View5 AS
  INITIALIZE View5[i] AS
    SELECT g AS G, max_a AS max_A
    FROM (SELECT g, coalesce(sum(row_count), 0) AS row_count, max(max_a) AS max_a
    FROM S_per_1_minute_by_g[i - 9 .. i]
    GROUP BY g) AS merged
    WHERE max_a > 5
  UPDATE View5[j] AS
    SELECT g AS G, max_a AS max_A
    FROM (SELECT g, coalesce(sum(row_count), 0) AS row_count, max(max_a) AS max_a
    FROM S_per_1_minute_by_g[j - 9 .. j]
    GROUP BY g) AS merged
    WHERE max_a > 5
  PARTITION LENGTH 60
--- notes
View5 is over a window of 10 minutes of S (10 parts of 1 minute), full only, sliding by 1 minute.
Strategy merge: max(a) cannot be subtracted, and 10 parts are few, so their partial aggregates are merged every time.
S_per_1_minute_by_g keeps row_count, max_a of each part; every window over the same rows and keys reads it.
