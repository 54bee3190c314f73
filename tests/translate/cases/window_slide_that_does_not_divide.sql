CREATE STREAM S (ts TIMESTAMP ORDERED, G STRING, A INT, D DOUBLE) PARTITION LENGTH 60;
CREATE VIEW V AS SELECT min(A) AS least FROM S [WINDOW 7 minutes SLIDE 3 minutes] WITH (strategy = 'dyadic')
--- becomes
CREATE VIEW S_per_1_minute AS
  INITIALIZE S_per_1_minute[i] AS
    SELECT count(*) AS row_count, min(a) AS min_a
    FROM S[i]
  UPDATE S_per_1_minute[j] AS
    SELECT count(*) AS row_count, min(a) AS min_a
    FROM S[j]
  PARTITION LENGTH 60;

CREATE VIEW V AS
  INITIALIZE V[i] AS
    SELECT min_a AS least
    FROM (SELECT coalesce(sum(row_count), 0) AS row_count, min(min_a) AS min_a
    FROM S_per_1_minute[i * 3 - 4 .. i * 3 + 2]) AS merged
  UPDATE V[j] AS
    SELECT min_a AS least
    FROM (SELECT coalesce(sum(row_count), 0) AS row_count, min(min_a) AS min_a
    FROM S_per_1_minute[j * 3 - 4 .. j * 3 + 2]) AS merged
  PARTITION LENGTH 180
--- notes
V is over a window of 7 minutes of S (7 parts of 1 minute), full only, sliding by 3 minutes.
Strategy dyadic: asked for by WITH.
S_per_1_minute keeps row_count, min_a of each part; every window over the same rows and keys reads it.
