CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW Helper AS
  INITIALIZE Helper[i] AS SELECT src, dest, 1 AS ct, loss AS total FROM M[i] WHERE loss > 5
  UPDATE Helper[j] AS
    SELECT m.src, m.dest, coalesce(h.ct, 0) + 1, coalesce(h.total, 0) + m.loss
    FROM M[j] m LEFT JOIN Helper[j-1] h ON m.src = h.src AND m.dest = h.dest
    WHERE m.loss > 5
  PARTITION LENGTH 60;
--- part Helper[23667845] by initialize
--- gives
SELECT
  src,
  dest,
  1 AS ct,
  loss AS total
FROM M_23667845 AS M
WHERE
  loss > 5
--- reads
M_23667845 = M[23667845]
