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
SELECT * FROM M WHERE 23667842 <= PART AND PART_TIMESTAMP < TIMESTAMP '2015-01-01 00:05:30' AND loss > 3
--- gives
SELECT
  *
  EXCEPT (PART, PART_TIMESTAMP)
FROM (
  SELECT
    *,
    timestamp_seconds(PART * 60) AS PART_TIMESTAMP
  FROM M_23667842_23667845_q
) AS M
WHERE
  23667842 <= PART
  AND PART_TIMESTAMP < CAST('2015-01-01 00:05:30' AS TIMESTAMP)
  AND loss > 3
--- reads
M_23667842_23667845_q = M[23667842 .. 23667845] with PART
