CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE TABLE Hosts (src STRING, city STRING) LOCATION 'hosts.csv' FORMAT csv;
CREATE VIEW V AS
  INITIALIZE V[i] AS SELECT 1 AS x FROM M[i]
  UPDATE V[j] AS SELECT h.city FROM M[j] JOIN hosts h ON M.src = h.src
  PARTITION LENGTH 60;
--- part V[23667845] by update
--- gives
SELECT
  h.city
FROM M_23667845 AS M
JOIN hosts AS h
  ON M.src = h.src
--- reads
M_23667845 = M[23667845]
Hosts = Hosts, dimension
