CREATE STREAM `Left` (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60;
CREATE VIEW V AS SELECT x FROM `Left`;
--- part V[5] by update
--- gives
SELECT
  x
FROM Left_5 AS `Left`
--- reads
Left_5 = Left[5]
