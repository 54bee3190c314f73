CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW V AS
  INITIALIZE V[i] AS SELECT 1 AS x FROM M[i]
  UPDATE V[j] AS SELECT a.loss FROM M[j] a JOIN M[j] b ON a.src = b.dest WHERE a.loss > (SELECT avg(loss) FROM M[j .. j])
  PARTITION LENGTH 60;
--- part V[23667845] by update
--- gives
SELECT
  a.loss
FROM M_23667845 AS a
JOIN M_23667845 AS b
  ON a.src = b.dest
WHERE
  a.loss > (
    SELECT
      avg(loss)
    FROM M_23667845 AS M
  )
--- reads
M_23667845 = M[23667845]
