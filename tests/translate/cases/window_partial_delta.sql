CREATE STREAM S (ts TIMESTAMP ORDERED, G STRING, A INT, D DOUBLE) PARTITION LENGTH 60;
CREATE VIEW V AS SELECT count(*) AS n FROM S [WINDOW 10 minutes PARTIAL]
--- becomes
CREATE VIEW S_per_1_minute AS
  INITIALIZE S_per_1_minute[i] AS
    SELECT count(*) AS row_count
    FROM S[i]
  UPDATE S_per_1_minute[j] AS
    SELECT count(*) AS row_count
    FROM S[j]
  PARTITION LENGTH 60;

CREATE VIEW V AS
  INITIALIZE V[i] AS
    SELECT row_count AS n
    FROM (SELECT coalesce(sum(row_count), 0) AS row_count
    FROM S_per_1_minute[i - 9 .. i PARTIAL]) AS state
  UPDATE V[j] AS
    SELECT row_count AS n
    FROM (SELECT coalesce(sum(row_count), 0) AS row_count
    FROM (
      SELECT n AS row_count FROM V[j - 1]
      UNION ALL SELECT row_count FROM S_per_1_minute[j]
      UNION ALL SELECT -row_count AS row_count FROM S_per_1_minute[j - 10]) AS parts) AS state
  PARTITION LENGTH 60
--- notes
V is over a window of 10 minutes of S (10 parts of 1 minute), also while it fills, sliding by 1 minute.
Strategy delta: all aggregates are of exact numbers and can be subtracted, so an update adds one part and takes one away, however long the window; late rows settle after one window.
S_per_1_minute keeps row_count of each part; every window over the same rows and keys reads it.
V keeps the state of its window in columns that only its own next part reads.
