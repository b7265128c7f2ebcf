-- Servers: MySQL, MariaDB.
-- Expected: one transaction, five events with five different ids, which are the same ids after a rewind; in commit order.
CREATE TABLE rep (id INT PRIMARY KEY, v INT);
BEGIN;
INSERT INTO rep VALUES (1,0);
UPDATE rep SET v=1 WHERE id=1;
UPDATE rep SET v=2 WHERE id=1;
DELETE FROM rep WHERE id=1;
INSERT INTO rep VALUES (1,0);
COMMIT;
