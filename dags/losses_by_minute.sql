-- Packets lost between two hosts, measured once a minute for each pair.
CREATE STREAM losses (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH '1 minute';

CREATE VIEW losses_by_minute AS
SELECT src, SUM(loss) AS loss FROM losses GROUP BY src;
