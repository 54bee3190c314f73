CREATE STREAM S (ts TIMESTAMP ORDERED, G STRING, A INT, D DOUBLE) PARTITION LENGTH 60;
CREATE VIEW V AS SELECT q.G, median(A) AS middle, first(A) AS first_a FROM S [WINDOW 10 minutes] AS q WHERE A > 0 GROUP BY q.G
--- becomes
CREATE VIEW V AS
  INITIALIZE V[i] AS
    SELECT q.G AS G, median(A) AS middle, min(named_struct('at', ts, 'value', a)).value AS first_a FROM S[i - 9 .. i] AS q WHERE A > 0 GROUP BY q.G
  UPDATE V[j] AS
    SELECT q.G AS G, median(A) AS middle, min(named_struct('at', ts, 'value', a)).value AS first_a FROM S[j - 9 .. j] AS q WHERE A > 0 GROUP BY q.G
  PARTITION LENGTH 60
--- notes
V is over a window of 10 minutes of S (10 parts of 1 minute), full only, sliding by 1 minute.
Strategy recompute: median needs all rows of the window.
