CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW V AS
  INITIALIZE V[i] AS SELECT 1 AS x FROM M[i]
  UPDATE V[j] AS SELECT element_at(map(src, loss), 'a'), date_add(ts, 1), to_timestamp('2015', 'yyyy'), transform(array(1), x -> x + 1), count_if(loss > 1) FILTER (WHERE src <> '') FROM M[j] GROUP BY ALL
  PARTITION LENGTH 60;
--- part V[23667845] by update
--- gives
SELECT
  element_at(map(src, loss), 'a'),
  date_add(ts, 1),
  to_timestamp('2015', 'yyyy'),
  TRANSFORM(array(1), x -> x + 1),
  count_if(loss > 1) FILTER(WHERE
    src <> '')
FROM M_23667845 AS M
GROUP BY ALL
--- reads
M_23667845 = M[23667845]
