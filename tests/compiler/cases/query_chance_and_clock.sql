CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW Helper AS
  INITIALIZE Helper[i] AS SELECT src, dest, 1 AS ct, loss AS total FROM M[i] WHERE loss > 5
  UPDATE Helper[j] AS
    SELECT m.src, m.dest, coalesce(h.ct, 0) + 1, coalesce(h.total, 0) + m.loss
    FROM M[j] m LEFT JOIN Helper[j-1] h ON m.src = h.src AND m.dest = h.dest
    WHERE m.loss > 5
  PARTITION LENGTH 60;
CREATE VIEW View2 AS
  INITIALIZE View2[i] AS SELECT src, dest, ct, total FROM Helper[i] WHERE Helper.ct > 3
  UPDATE View2[j] AS SELECT src, dest, ct, total FROM Helper[j] WHERE Helper.ct > 3
  PARTITION LENGTH 60;
--- query
SELECT rand(), now(), src FROM M[23667841] TABLESAMPLE (10 PERCENT) AS m
--- gives
SELECT
  rand(),
  now(),
  src
FROM M_23667841_q TABLESAMPLE (10 PERCENT) AS m
--- reads
M_23667841_q = M[23667841]
