package pipeline_test

// stepFiles are read by LOAD DATA.
var stepFiles = map[string]string{
	"goods.tsv":   "101\tloaded-1\t5\t1.50\n102\tloaded-2\t\\N\t2.25\n103\tcafé 订单\t7\t0.01\n",
	"replace.csv": "101;'replaced';1;9.99\n104;'a;b';2;3.00\n",
}

// statementSteps go from one to the next in one database.
var statementSteps = []step{
	{name: "create", sql: `ALTER DATABASE CHARACTER SET utf8mb4; CREATE TABLE goods (id INT PRIMARY KEY AUTO_INCREMENT, sku VARCHAR(20) UNIQUE, n INT, price DECIMAL(8,2) NOT NULL DEFAULT 1,
		total DECIMAL(12,2) AS (n * price) STORED, label VARCHAR(30) AS (CONCAT(sku, '!')) VIRTUAL, touched INT NOT NULL DEFAULT 0);
		CREATE TABLE bare (a INT, b VARCHAR(10), touched INT NOT NULL DEFAULT 0); CREATE TABLE journal (no INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(100))`},

	// Changes of rows.
	{name: "INSERT", sql: "INSERT INTO goods (sku, n, price) VALUES ('a', 1, 1.10), ('b', NULL, 2.20), (NULL, 3, DEFAULT); INSERT INTO goods SET sku = 'c', n = 4"},
	{name: "without a key", sql: "INSERT INTO bare (a, b) VALUES (1,'x'), (1,'x'), (2,'y'), (NULL,NULL); DELETE FROM bare WHERE a = 1 LIMIT 1; UPDATE bare SET b = 'z' WHERE a IS NULL"},
	{name: "INSERT SELECT", sql: "INSERT INTO goods (sku, n, price) SELECT CONCAT('from-', a), a, 3 FROM bare WHERE a IS NOT NULL"},
	{name: "UPDATE of nothing", sql: "UPDATE goods SET n = n; UPDATE goods SET n = 1 WHERE id = 4711"},
	{name: "UPDATE ORDER BY LIMIT", sql: "UPDATE goods SET n = n + 1 ORDER BY id DESC LIMIT 2"},
	{name: "REPLACE", sql: "REPLACE INTO goods (id, sku, n, price) VALUES (1, 'a', 11, 1), (50, 'new', 1, 1); REPLACE INTO goods (id, sku, n, price) VALUES (2, 'c', 5, 5)"},
	{name: "ON DUPLICATE KEY UPDATE", sql: `INSERT INTO goods (id, sku, n, price) VALUES (1, 'a', 7, 1), (60, 'sixty', 6, 6) ON DUPLICATE KEY UPDATE n = goods.n + VALUES(n);
		INSERT INTO goods (sku, n) VALUES ('sixty', 1) ON DUPLICATE KEY UPDATE n = goods.n, id = 61; INSERT IGNORE INTO goods (id, sku) VALUES (1, 'zz'), (62, 'a'), (63, 'fresh')`},
	{name: "LOAD DATA", sql: "LOAD DATA INFILE '{dir}/goods.tsv' INTO TABLE goods CHARACTER SET utf8mb4 (id, sku, n, price)"},
	{name: "LOAD DATA REPLACE", sql: "LOAD DATA INFILE '{dir}/replace.csv' REPLACE INTO TABLE goods CHARACTER SET utf8mb4 FIELDS TERMINATED BY ';' ENCLOSED BY '\\'' (id, sku, @n, price) SET n = @n * 10"},
	{name: "multi-table UPDATE and DELETE", sql: `UPDATE goods g JOIN bare b ON g.n = b.a SET g.n = g.n + 100, b.b = 'joined';
		DELETE g, b FROM goods g JOIN bare b ON g.n = b.a + 100 WHERE b.a = 1`},
	{name: "a changed key", sql: "UPDATE goods SET id = id + 1000 WHERE sku = 'fresh'; UPDATE goods SET id = id + 1 ORDER BY id DESC LIMIT 3"},
	{name: "triggers", sql: `CREATE TRIGGER shape BEFORE INSERT ON goods FOR EACH ROW SET NEW.n = COALESCE(NEW.n, 0) + 1;
		CREATE TRIGGER note AFTER UPDATE ON goods FOR EACH ROW INSERT INTO journal (what) VALUES (CONCAT(OLD.n, ' to ', NEW.n));
		CREATE TRIGGER drop_bare AFTER DELETE ON goods FOR EACH ROW DELETE FROM bare WHERE a = OLD.n;
		INSERT INTO bare (a, b) VALUES (42, 'goes'); INSERT INTO goods (sku, n) VALUES ('t1', 41), ('t2', NULL); UPDATE goods SET n = n + 1 WHERE sku = 't2'; DELETE FROM goods WHERE sku = 't1'`},
	{name: "a procedure", sql: `CREATE PROCEDURE work(IN rounds INT) BEGIN DECLARE i INT DEFAULT 0; START TRANSACTION;
			WHILE i < rounds DO INSERT INTO goods (sku, n) VALUES (CONCAT('p', i), i); UPDATE goods SET price = price + 1 WHERE sku = CONCAT('p', i); SET i = i + 1; END WHILE; COMMIT; END;
		CALL work(3)`},
	{name: "a function", sql: "CREATE FUNCTION noted(w VARCHAR(50)) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO journal (what) VALUES (w); RETURN 1; END; SELECT noted('by SELECT'); DO noted('by DO'); INSERT INTO bare (a, b) VALUES (noted('by INSERT'), 'f')"},
	{name: "a view", sql: "CREATE VIEW cheap AS SELECT id, sku, n FROM goods WHERE price < 5; UPDATE cheap SET n = 77 WHERE sku = 'a'; INSERT INTO cheap (sku, n) VALUES ('viewed', 1); DELETE FROM cheap WHERE sku = 'p0'"},
	{name: "prepared", sql: "PREPARE p FROM 'INSERT INTO bare (a, b) VALUES (?, ?)'; SET @a = 8, @b = 'prep'; EXECUTE p USING @a, @b; DEALLOCATE PREPARE p"},
	{name: "a temporary table", sql: "CREATE TEMPORARY TABLE goods (x INT); INSERT INTO goods VALUES (1),(2); INSERT INTO bare (a, b) SELECT x, 'temp' FROM goods; ALTER TABLE goods ADD y INT; TRUNCATE TABLE goods; DROP TEMPORARY TABLE goods; DELETE FROM goods WHERE sku = 'p1'"},
	{name: "a savepoint", sql: "BEGIN; UPDATE goods SET n = 5 WHERE sku = 'a'; SAVEPOINT s; DELETE FROM goods WHERE sku <> 'a'; ROLLBACK TO s; INSERT INTO bare (a) VALUES (9); RELEASE SAVEPOINT s; COMMIT; BEGIN; DELETE FROM goods; ROLLBACK"},
	{name: "cascades that are logged", only: "mysql", sql: `CREATE TABLE parent (id INT PRIMARY KEY, v INT); CREATE TABLE child (id INT PRIMARY KEY, p INT, q INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE,
			FOREIGN KEY (q) REFERENCES parent (id) ON DELETE SET NULL ON UPDATE SET NULL);
		CREATE TABLE grandchild (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES child (id) ON DELETE CASCADE);
		INSERT INTO parent VALUES (1,1),(2,2),(3,3); INSERT INTO child VALUES (1,1,2),(2,2,1),(3,2,3); INSERT INTO grandchild VALUES (1,1),(2,3);
		UPDATE parent SET id = 20 WHERE id = 2; DELETE FROM parent WHERE id = 1; DELETE FROM parent WHERE id = 20`},
	{name: "RETURNING", only: "mariadb", sql: "INSERT INTO bare (a, b) VALUES (70, 'r') RETURNING a; DELETE FROM bare WHERE a = 70 RETURNING *; REPLACE INTO goods (id, sku) VALUES (900, 'rr') RETURNING id"},
	{name: "an invisible key", only: "mysql", sql: "SET sql_generate_invisible_primary_key = ON; CREATE TABLE keyless (v VARCHAR(5), touched INT DEFAULT 0); INSERT INTO keyless (v) VALUES ('a'),('a'),('b'); UPDATE keyless SET v = 'c' WHERE v = 'b'; DELETE FROM keyless LIMIT 1"},
	{name: "an invisible column", sql: "CREATE TABLE veiled (id INT PRIMARY KEY, v INT INVISIBLE DEFAULT 3, touched INT DEFAULT 0); INSERT INTO veiled (id) VALUES (1); INSERT INTO veiled (id, v) VALUES (2, 4); UPDATE veiled SET v = v + 1"},

	// Other engines.
	{name: "MyISAM", sql: "CREATE TABLE m (id INT PRIMARY KEY, v INT, touched INT DEFAULT 0) ENGINE = MyISAM; INSERT INTO m (id, v) VALUES (1,1),(2,2); UPDATE m SET v = v + 10; REPLACE INTO m (id, v) VALUES (1, 5); DELETE FROM m WHERE id = 2"},
	{name: "MyISAM stops half-way", sql: "INSERT IGNORE INTO m (id, v) VALUES (3,3),(1,0),(4,4)"},
	{name: "two engines in a transaction", only: "mariadb", sql: "BEGIN; INSERT INTO m (id, v) VALUES (7,7); UPDATE goods SET n = 6 WHERE sku = 'a'; UPDATE m SET v = 8 WHERE id = 7; COMMIT"},
	{name: "MEMORY", sql: "CREATE TABLE mem (id INT PRIMARY KEY, v INT) ENGINE = MEMORY; INSERT INTO mem VALUES (1,1),(2,2); DELETE FROM mem WHERE id = 1"},
	{name: "another engine", silent: true, sql: "ALTER TABLE m ENGINE = InnoDB; OPTIMIZE TABLE m; ANALYZE TABLE m"},

	// Tables as a whole.
	{name: "TRUNCATE", sql: "TRUNCATE TABLE journal; INSERT INTO journal (what) VALUES ('after'); TRUNCATE bare; INSERT INTO bare (a) VALUES (1),(2)"},
	{name: "CREATE LIKE", sql: "CREATE TABLE twin LIKE goods; INSERT INTO twin (sku, n, price) SELECT sku, n, price FROM goods WHERE sku IS NOT NULL"},
	{name: "CREATE SELECT", sql: "CREATE TABLE copied AS SELECT id, sku, total, label FROM goods; CREATE TABLE counted (what VARCHAR(9) PRIMARY KEY, touched INT DEFAULT 0) SELECT 'all' AS what, COUNT(*) AS c FROM goods; UPDATE counted SET c = c + 1"},
	{name: "RENAME", silent: true, sql: "RENAME TABLE twin TO t_tmp, bare TO twin, t_tmp TO bare; ALTER TABLE copied RENAME TO copies; DROP TABLE counted"},
	{name: "the same name, another table", silent: true, sql: "DROP TABLE copies; CREATE TABLE copies (v VARCHAR(5), touched INT DEFAULT 0, id INT PRIMARY KEY); INSERT INTO copies (id, v) VALUES (1, 'one')"},
	{name: "an online schema change", silent: true, sql: "CREATE TABLE _copies_new LIKE copies; ALTER TABLE _copies_new ADD w INT FIRST; INSERT INTO _copies_new (id, v) SELECT id, v FROM copies; RENAME TABLE copies TO _copies_old, _copies_new TO copies; DROP TABLE _copies_old"},
	{name: "into another database and back", silent: true, sql: "CREATE DATABASE {db}_aside; RENAME TABLE copies TO {db}_aside.copies; ALTER TABLE {db}_aside.copies ADD aside INT AFTER w; INSERT INTO {db}_aside.copies (id) VALUES (2); RENAME TABLE {db}_aside.copies TO copies; DROP DATABASE {db}_aside"},

	// Columns.
	{name: "instant columns", silent: true, sql: `ALTER TABLE copies ADD last VARCHAR(9) DEFAULT 'inst', ALGORITHM = INSTANT; INSERT INTO copies (id, v) VALUES (3, 'i');
		ALTER TABLE copies DROP COLUMN w, ALGORITHM = INSTANT; INSERT INTO copies (id, v) VALUES (4, 'd'); ALTER TABLE copies ADD mid INT DEFAULT 5 AFTER v, ALGORITHM = INSTANT; INSERT INTO copies (id) VALUES (5);
		ALTER TABLE copies RENAME COLUMN mid TO middle, ALGORITHM = INSTANT; UPDATE copies SET middle = middle + 1 WHERE id > 3`},
	{name: "moved, changed and swapped", silent: true, sql: "ALTER TABLE copies MODIFY last VARCHAR(12) FIRST, CHANGE middle centre BIGINT AFTER last; UPDATE copies SET centre = 1; ALTER TABLE copies RENAME COLUMN last TO v, RENAME COLUMN v TO last; INSERT INTO copies (id, v, last) VALUES (6, 'V', 'L')"},
	{name: "several statements at once", silent: true, sql: "ALTER TABLE copies ADD e1 INT; ALTER TABLE copies ADD e2 INT FIRST; INSERT INTO copies (id, e1, e2) VALUES (7, 1, 2); ALTER TABLE copies DROP e1, ADD e3 INT AFTER id; INSERT INTO copies (id, e2, e3) VALUES (8, 2, 3)"},
	{name: "comments and version hints", silent: true, sql: `/* by the shop */ ALTER /* a */ TABLE /*!50000 copies */ ADD -- the end
		hinted INT /*!40101 DEFAULT 4 */ # now
		; /*!40000 ALTER TABLE copies ADD h2 INT */; /* i */ INSERT /*!40000 INTO */ copies (id, h2) VALUES (9, 1) -- done`},
	{name: "ANSI_QUOTES", silent: true, sql: `SET sql_mode = 'ANSI_QUOTES'; CREATE TABLE "quoted" ("id" INT PRIMARY KEY, "it""s" VARCHAR(9) DEFAULT 'x', touched INT DEFAULT 0); INSERT INTO "quoted" ("id") VALUES (1);
		ALTER TABLE "quoted" ADD "order" INT FIRST; INSERT INTO "quoted" VALUES (1, 2, 'y', 0); UPDATE "quoted" SET "it""s" = 'z'; ALTER TABLE "quoted" DROP COLUMN "it""s"`},
	{name: "keys", silent: true, sql: "ALTER TABLE copies DROP PRIMARY KEY; UPDATE copies SET e3 = 1 WHERE id < 3; ALTER TABLE copies ADD PRIMARY KEY (id, touched); UPDATE copies SET e3 = 2"},
	{name: "generated columns", silent: true, sql: "ALTER TABLE copies ADD g INT AS (id * 2) STORED AFTER id, ADD h VARCHAR(20) AS (CONCAT(id, '/', touched)) VIRTUAL FIRST; INSERT INTO copies (id) VALUES (30); ALTER TABLE copies DROP g; UPDATE copies SET id = 31 WHERE id = 30"},

	// Character sets.
	{name: "ALTER DATABASE", sql: "ALTER DATABASE CHARACTER SET latin1; CREATE TABLE western (id INT PRIMARY KEY, v VARCHAR(20), e ENUM('e','b,c'), touched INT DEFAULT 0); INSERT INTO western (id, v, e) VALUES (1, 'café', 'b,c'); ALTER DATABASE {db} CHARACTER SET gbk; CREATE TABLE eastern (id INT PRIMARY KEY, v VARCHAR(20)); INSERT INTO eastern VALUES (1, '订单')"},
	{name: "CONVERT TO CHARACTER SET", silent: true, sql: "ALTER TABLE western CONVERT TO CHARACTER SET utf8mb4; INSERT INTO western (id, v, e) VALUES (2, '订单', 'e'); ALTER TABLE western MODIFY v VARCHAR(20) CHARACTER SET gbk; INSERT INTO western (id, v) VALUES (3, '订单'); ALTER TABLE western DEFAULT CHARACTER SET ucs2, ADD u VARCHAR(5); UPDATE western SET u = '订', v = '单' WHERE id = 3"},

	// Partitions: what goes with a partition goes without events.
	{name: "partitions", sql: "CREATE TABLE parts (id INT PRIMARY KEY, v INT, touched INT DEFAULT 0) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20), PARTITION p2 VALUES LESS THAN (30)); INSERT INTO parts (id, v) VALUES (1,1),(11,2),(21,3); UPDATE parts SET id = 12 WHERE id = 1; INSERT INTO parts PARTITION (p0) (id) VALUES (5); DELETE FROM parts PARTITION (p2) WHERE v = 3"},
	{name: "DROP PARTITION", silent: true, sql: "ALTER TABLE parts ADD PARTITION (PARTITION p3 VALUES LESS THAN (40)); INSERT INTO parts (id) VALUES (35); ALTER TABLE parts DROP PARTITION p1; INSERT INTO parts (id) VALUES (25)"},
	{name: "TRUNCATE PARTITION", silent: true, sql: "ALTER TABLE parts TRUNCATE PARTITION p2; INSERT INTO parts (id) VALUES (26)"},
	{name: "EXCHANGE PARTITION", silent: true, sql: "CREATE TABLE whole (id INT PRIMARY KEY, v INT, touched INT DEFAULT 0); INSERT INTO whole (id) VALUES (7); ALTER TABLE parts EXCHANGE PARTITION p0 WITH TABLE whole"},
	{name: "REORGANIZE and REMOVE", silent: true, sql: "ALTER TABLE parts REORGANIZE PARTITION p2, p3 INTO (PARTITION p9 VALUES LESS THAN (90)); INSERT INTO parts (id) VALUES (80); ALTER TABLE parts REMOVE PARTITIONING; INSERT INTO parts (id) VALUES (99)"},
}
