package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
)

// The order table has 12 columns of the types that an order table has.
const orderTable = `CREATE TABLE %s (
	id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
	order_no VARCHAR(32) NOT NULL,
	user_id BIGINT UNSIGNED NOT NULL,
	status ENUM('pending','paid','shipped','cancelled') NOT NULL,
	amount DECIMAL(12,2) NOT NULL,
	currency CHAR(3) NOT NULL,
	quantity INT NOT NULL,
	remark VARCHAR(255) NULL,
	address VARCHAR(500) NOT NULL,
	extra JSON NULL,
	created_at DATETIME NOT NULL,
	updated_at TIMESTAMP(3) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`

// loader makes the load that the throughput is measured with: inserts, updates and deletes in transactions of 1 to 200 rows.
type loader struct {
	random *rand.Rand
	next   int // id of the next row
}

// fill writes at least rows row changes to bench.orders and gives their number.
func (l *lab) fill(ctx context.Context, rows int) (done int, err error) {
	w := loader{random: newRandom(l.opts.seed), next: 1}
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	for done < rows {
		result, err := conn.ExecContext(ctx, w.transaction())
		if err != nil {
			return 0, fmt.Errorf("write the load: %w", err)
		}
		changed, err := result.RowsAffected()
		if err != nil {
			return 0, err
		}
		done += int(changed)
	}
	return done, nil
}

// newRandom makes the same load every time.
func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func (w *loader) transaction() string {
	n := 1 + w.random.IntN(200)
	switch kind := w.random.IntN(10); {
	case w.next > 1000 && kind < 3:
		from := 1 + w.random.IntN(w.next-n-1)
		return fmt.Sprintf("UPDATE bench.orders SET status='paid', amount=amount+1, updated_at=NOW(3) WHERE id BETWEEN %d AND %d", from, from+n-1)
	case w.next > 1000 && kind == 3:
		n = 1 + n/10
		from := 1 + w.random.IntN(w.next-n-1)
		return fmt.Sprintf("DELETE FROM bench.orders WHERE id BETWEEN %d AND %d", from, from+n-1)
	}
	w.next += n
	return "INSERT INTO bench.orders (order_no, user_id, status, amount, currency, quantity, remark, address, extra, created_at, updated_at) VALUES " + w.rows(n)
}

func (w *loader) rows(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		remark := "NULL"
		if w.random.IntN(3) == 0 {
			remark = "'please ring twice, the bell is broken 请按门铃'"
		}
		fmt.Fprintf(&b, "('SO%018d', %d, 'pending', %d.%02d, 'EUR', %d, %s, '%s', '{\"channel\": \"web\", \"coupon\": %d, \"tags\": [\"a\", \"b\"]}', '2026-11-29 10:%02d:00', '2026-11-29 10:%02d:00.123')",
			w.random.Uint64()%1e18, w.random.IntN(1e6), w.random.IntN(1000), w.random.IntN(100), 1+w.random.IntN(9), remark,
			strings.Repeat("Hauptstrasse 1, 10115 Berlin. ", 1+w.random.IntN(6)), w.random.IntN(1000), w.random.IntN(60), w.random.IntN(60))
	}
	return b.String()
}
