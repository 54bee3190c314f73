-- The network monitor of "ViewDF: Declarative Incremental View Maintenance for Streaming Data" (Yang, Golab, Özsu), sections 2 and 4.2.

-- Packets lost between two hosts, measured once a minute for each pair.
CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;

-- Their delays, measured by another system, at other seconds of the minute.
CREATE STREAM N (measured_at TIMESTAMP ORDERED, src STRING, dest STRING, delay_ms INT) PARTITION LENGTH 60;

-- For how many minutes in a row a pair has been losing more than ten packets, and how many packets in all.
CREATE VIEW Helper AS
INITIALIZE Helper[i] AS
  SELECT src, dest, 1 AS ct, CAST(loss AS BIGINT) AS sum_loss
  FROM M[i]
  WHERE loss > 10
UPDATE Helper[j] AS
  SELECT New.src, New.dest, COALESCE(Prev.ct, 0) + 1, COALESCE(Prev.sum_loss, 0) + New.loss
  FROM M[j] AS New
  LEFT OUTER JOIN Helper[j-1] AS Prev ON New.src = Prev.src AND New.dest = Prev.dest
  WHERE New.loss > 10
PARTITION LENGTH 60;

-- The pairs that have been losing packets for four minutes or longer.
CREATE VIEW View2 AS
INITIALIZE View2[i] AS
  SELECT src, dest, ct, sum_loss FROM Helper[i] WHERE ct >= {{ params.minutes | default(4) }}
UPDATE View2[j] AS
  SELECT src, dest, ct, sum_loss FROM Helper[j] WHERE ct >= {{ params.minutes | default(4) }}
PARTITION LENGTH 60;

-- The band join: losses and delays of the same pair in the same minute.
CREATE VIEW J AS
INITIALIZE J[i] AS SELECT src, dest, ts, loss, delay_ms FROM M[i] NATURAL JOIN N[i]
UPDATE J[j] AS SELECT src, dest, ts, loss, delay_ms FROM M[j] NATURAL JOIN N[j]
PARTITION LENGTH 60;

-- Hourly sums over a stream of minutes. Hour h is the minutes 60h to 60h+59.
CREATE VIEW View3 AS
INITIALIZE View3[i] AS
  SELECT src, dest, SUM(loss) AS sum_loss FROM M[i*60 .. i*60+59] GROUP BY src, dest
UPDATE View3[j] AS
  SELECT src, dest, SUM(loss) AS sum_loss FROM M[j*60 .. j*60+59] GROUP BY src, dest
PARTITION LENGTH 3600;
