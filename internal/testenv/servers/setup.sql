-- What the development servers start with, besides root with the password "root":
-- an account for binlogd with exactly the rights that it needs, and one for the shop.
-- Used by `make services-up` and by docker-compose.yml.
CREATE DATABASE IF NOT EXISTS shop;
CREATE USER IF NOT EXISTS binlogd@'%' IDENTIFIED BY 'binlogd';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO binlogd@'%';
GRANT SELECT ON shop.* TO binlogd@'%';
CREATE USER IF NOT EXISTS shop@'%' IDENTIFIED BY 'shop';
GRANT ALL ON shop.* TO shop@'%';
