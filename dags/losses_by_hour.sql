-- Hourly sums over the minutes of another DAG. Hour h is the minutes 60h to 60h+59.
CREATE VIEW losses_by_hour AS
INITIALIZE losses_by_hour[i] AS
  SELECT src, SUM(loss) AS loss FROM losses_by_minute[i*60 .. i*60+59] GROUP BY src
UPDATE losses_by_hour[j] AS
  SELECT src, SUM(loss) AS loss FROM losses_by_minute[j*60 .. j*60+59] GROUP BY src
PARTITION LENGTH '1 hour';
