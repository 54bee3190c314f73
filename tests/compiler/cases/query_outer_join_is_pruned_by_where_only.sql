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
SELECT m.src, h.PART FROM M m LEFT JOIN Helper h ON m.src = h.src AND h.PART = 23667841 WHERE m.PART = 23667842
--- gives
SELECT
  m.src,
  h.PART
FROM (
  SELECT
    *,
    CAST(23667842 AS BIGINT) AS PART,
    CAST('2015-01-01 00:02:00+00:00' AS TIMESTAMP) AS PART_TIMESTAMP
  FROM M_23667842_q
) AS m
LEFT JOIN (
  SELECT
    *,
    timestamp_seconds(PART * 60) AS PART_TIMESTAMP
  FROM Helper_23667840_23667850_q
) AS h
  ON m.src = h.src AND h.PART = 23667841
WHERE
  m.PART = 23667842
--- reads
M_23667842_q = M[23667842]
Helper_23667840_23667850_q = Helper[23667840 .. 23667850] with PART
