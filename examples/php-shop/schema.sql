-- The shop's tables. Load them into an empty database:
--   mysql shop < schema.sql

CREATE TABLE stock (
  sku        VARCHAR(32)    CHARACTER SET ascii NOT NULL,
  name       VARCHAR(200)   NOT NULL,
  price      DECIMAL(10,2)  NOT NULL,
  quantity   INT UNSIGNED   NOT NULL,
  updated_at TIMESTAMP(3)   NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
  PRIMARY KEY (sku)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE orders (
  id              BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  order_no        CHAR(20)        CHARACTER SET ascii NOT NULL,
  idempotency_key VARCHAR(64)     CHARACTER SET ascii NOT NULL, -- made by the buyer's browser, one per click on "buy"
  customer_id     BIGINT UNSIGNED NOT NULL,
  status          ENUM('pending','paid','shipped','cancelled') NOT NULL DEFAULT 'pending',
  total           DECIMAL(10,2)   NOT NULL,
  recipient       VARCHAR(100)    NOT NULL,
  note            JSON            NULL,
  created_at      DATETIME        NOT NULL,
  paid_at         DATETIME        NULL,
  updated_at      TIMESTAMP(3)    NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
  PRIMARY KEY (id),
  UNIQUE KEY order_no (order_no),
  UNIQUE KEY idempotency_key (idempotency_key),
  KEY customer (customer_id, created_at),
  KEY status (status)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE order_items (
  order_id BIGINT UNSIGNED NOT NULL,
  line     TINYINT UNSIGNED NOT NULL,
  sku      VARCHAR(32)     CHARACTER SET ascii NOT NULL,
  quantity INT UNSIGNED    NOT NULL,
  price    DECIMAL(10,2)   NOT NULL,                  -- of one piece, on the day of the order
  PRIMARY KEY (order_id, line),
  KEY sku (sku),
  CONSTRAINT order_items_order FOREIGN KEY (order_id) REFERENCES orders (id),
  CONSTRAINT order_items_stock FOREIGN KEY (sku) REFERENCES stock (sku)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE payments (
  id              BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  order_id        BIGINT UNSIGNED NOT NULL,
  amount          DECIMAL(10,2)   NOT NULL,
  status          ENUM('succeeded','refunded') NOT NULL,
  provider_serial VARCHAR(64)     CHARACTER SET ascii NOT NULL, -- of the callback that paid; others may follow
  callback        JSON            NOT NULL,
  created_at      TIMESTAMP(3)    NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  PRIMARY KEY (id),
  UNIQUE KEY order_id (order_id),
  CONSTRAINT payments_order FOREIGN KEY (order_id) REFERENCES orders (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE points (
  id          BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  customer_id BIGINT UNSIGNED NOT NULL,
  order_id    BIGINT UNSIGNED NOT NULL,
  reason      ENUM('purchase','refund') NOT NULL,
  delta       INT             NOT NULL,                -- a refund takes points back
  created_at  TIMESTAMP(3)    NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  PRIMARY KEY (id),
  UNIQUE KEY order_reason (order_id, reason),
  KEY customer (customer_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
