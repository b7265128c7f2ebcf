-- Servers: MySQL, MariaDB.
-- Expected: three created and one deleted event, with four different ids that stay the same after a rewind, although two
-- rows are equal.
CREATE TABLE nopk (a INT, b VARCHAR(10));
INSERT INTO nopk VALUES (1,'x'),(1,'x'),(2,'y');
DELETE FROM nopk LIMIT 1;
