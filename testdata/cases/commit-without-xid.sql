-- Servers: MySQL, MariaDB.
-- Expected: three events, and the checkpoint reaches the last transaction: a transaction on a non-transactional engine
-- ends with COMMIT, not with an XID.
CREATE TABLE m (id INT PRIMARY KEY, v INT) ENGINE=MyISAM;
INSERT INTO m VALUES (1,1),(2,2);
UPDATE m SET v=3 WHERE id=2;
