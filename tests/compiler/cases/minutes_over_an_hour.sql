CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW View3 AS
  INITIALIZE View3[i] AS SELECT src, sum(loss) AS s FROM M[i*60 .. i*60+59] GROUP BY src
  UPDATE View3[j] AS SELECT src, sum(loss) AS s FROM M[j*60 .. j*60+59] GROUP BY src
  PARTITION LENGTH 3600;
CREATE VIEW Share AS
  INITIALIZE Share[i] AS SELECT m.src, m.loss / h.s AS share FROM M[i] m JOIN View3[i/60] h ON m.src = h.src
  UPDATE Share[j] AS SELECT m.src, m.loss / h.s FROM M[j] m JOIN View3[j/60] h ON m.src = h.src
  PARTITION LENGTH 60;
--- part Share[23667899] by update
--- gives
SELECT
  m.src,
  m.loss / h.s
FROM M_23667899 AS m
JOIN View3_394464 AS h
  ON m.src = h.src
--- reads
M_23667899 = M[23667899]
View3_394464 = View3[394464]
