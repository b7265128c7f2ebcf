-- Servers: MySQL, MariaDB.
-- Expected: binlogd stops before the statement, exit code 3, naming table, GTID and remedy; it never passes the change in silence.
CREATE TABLE sf (id INT PRIMARY KEY, v INT);
INSERT INTO sf VALUES (1,1);
SET SESSION binlog_format=STATEMENT;
UPDATE sf SET v=2;
