CREATE STREAM S (ts TIMESTAMP ORDERED, G STRING, A INT, D DOUBLE) PARTITION LENGTH 60;
CREATE VIEW V AS SELECT min(A) AS least FROM S [WINDOW 1 hour SLIDE 5 minutes]
--- becomes
CREATE VIEW S_per_5_minutes AS
  INITIALIZE S_per_5_minutes[i] AS
    SELECT count(*) AS row_count, min(a) AS min_a
    FROM S[i * 5 .. i * 5 + 4]
  UPDATE S_per_5_minutes[j] AS
    SELECT count(*) AS row_count, min(a) AS min_a
    FROM S[j * 5 .. j * 5 + 4]
  PARTITION LENGTH 300;

CREATE VIEW V AS
  INITIALIZE V[i] AS
    SELECT min_a AS least
    FROM (SELECT coalesce(sum(row_count), 0) AS row_count, min(min_a) AS min_a
    FROM S_per_5_minutes[i - 11 .. i]) AS merged
  UPDATE V[j] AS
    SELECT min_a AS least
    FROM (SELECT coalesce(sum(row_count), 0) AS row_count, min(min_a) AS min_a
    FROM S_per_5_minutes[j - 11 .. j]) AS merged
  PARTITION LENGTH 300
--- notes
V is over a window of 1 hour of S (12 parts of 5 minutes), full only, sliding by 5 minutes.
Strategy merge: min(a) cannot be subtracted, and 12 parts are few, so their partial aggregates are merged every time.
S_per_5_minutes keeps row_count, min_a of each part; every window over the same rows and keys reads it.
