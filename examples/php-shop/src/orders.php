<?php
declare(strict_types=1);

/**
 * Places an order with its items and takes them off the shelf, in one transaction.
 * The same $idempotencyKey again (a second click, a repeated request) is the same
 * order again: the unique key decides, and nothing is written.
 *
 * @param array<string,int> $pieces sku => quantity
 * @return array{order_no: string, repeated: bool}
 * @throws OutOfStock nothing was written
 */
function order_place(PDO $db, string $idempotencyKey, int $customerId, string $recipient, array $pieces, ?array $note = null): array
{
    ksort($pieces); // locks are taken in one order, so that two orders do not deadlock
    try {
        return in_transaction($db, function () use ($db, $idempotencyKey, $customerId, $recipient, $pieces, $note): array {
            $orderNo = date('ymd') . strtoupper(bin2hex(random_bytes(7)));
            $prices = order_prices($db, array_keys($pieces));
            $total = 0;
            foreach ($pieces as $sku => $quantity) {
                $total += cents($prices[$sku]) * $quantity;
            }
            run($db, 'INSERT INTO orders (order_no, idempotency_key, customer_id, total, recipient, note, created_at)
                      VALUES (?, ?, ?, ?, ?, ?, NOW())',
                [$orderNo, $idempotencyKey, $customerId, amount($total), $recipient,
                    $note === null ? null : json_encode($note, JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR)]);
            $orderId = (int) $db->lastInsertId();
            $line = 0;
            foreach ($pieces as $sku => $quantity) {
                stock_deduct($db, $sku, $quantity);
                run($db, 'INSERT INTO order_items (order_id, line, sku, quantity, price) VALUES (?, ?, ?, ?, ?)',
                    [$orderId, ++$line, $sku, $quantity, $prices[$sku]]);
            }
            return ['order_no' => $orderNo, 'repeated' => false];
        });
    } catch (PDOException $e) {
        if (($e->errorInfo[1] ?? 0) !== 1062) { // duplicate key
            throw $e;
        }
        $earlier = run($db, 'SELECT order_no FROM orders WHERE idempotency_key = ?', [$idempotencyKey])->fetchColumn();
        if ($earlier === false) {
            throw $e;
        }
        return ['order_no' => $earlier, 'repeated' => true];
    }
}

/**
 * @param list<string> $skus
 * @return array<string,string> sku => price
 */
function order_prices(PDO $db, array $skus): array
{
    $marks = implode(',', array_fill(0, count($skus), '?'));
    $prices = run($db, "SELECT sku, price FROM stock WHERE sku IN ($marks)", $skus)->fetchAll(PDO::FETCH_KEY_PAIR);
    foreach ($skus as $sku) {
        if (!isset($prices[$sku])) {
            throw new InvalidArgumentException("no product $sku");
        }
    }
    return $prices;
}

/**
 * Cancels an order that is not shipped: its pieces go back on the shelf, and what was
 * paid is refunded together with the points. Returns false when there is nothing to do.
 */
function order_cancel(PDO $db, string $orderNo): bool
{
    return in_transaction($db, function () use ($db, $orderNo): bool {
        $order = run($db, 'SELECT id, customer_id, status FROM orders WHERE order_no = ? FOR UPDATE', [$orderNo])->fetch();
        if ($order === false || !in_array($order['status'], ['pending', 'paid'], true)) {
            return false;
        }
        run($db, "UPDATE orders SET status = 'cancelled' WHERE id = ?", [$order['id']]);
        if ($order['status'] === 'paid') {
            run($db, "UPDATE payments SET status = 'refunded' WHERE order_id = ? AND status = 'succeeded'", [$order['id']]);
            run($db, "INSERT INTO points (customer_id, order_id, reason, delta)
                      SELECT customer_id, order_id, 'refund', -delta FROM points WHERE order_id = ? AND reason = 'purchase'", [$order['id']]);
        }
        stock_give_back($db, (int) $order['id']);
        return true;
    });
}

/**
 * Ships a paid order. Returns false when it is not paid or was shipped before.
 */
function order_ship(PDO $db, string $orderNo): bool
{
    return run($db, "UPDATE orders SET status = 'shipped' WHERE order_no = ? AND status = 'paid'", [$orderNo])->rowCount() === 1;
}

/**
 * The nightly tidying: forgets cancelled orders that were never paid, with their items,
 * in one transaction. Returns how many.
 */
function orders_forget_cancelled(PDO $db, int $atMost = 500): int
{
    return in_transaction($db, function () use ($db, $atMost): int {
        $ids = run($db, "SELECT id FROM orders WHERE status = 'cancelled'
                           AND NOT EXISTS (SELECT 1 FROM payments WHERE payments.order_id = orders.id)
                         ORDER BY id LIMIT $atMost FOR UPDATE")->fetchAll(PDO::FETCH_COLUMN);
        if ($ids === []) {
            return 0;
        }
        $marks = implode(',', array_fill(0, count($ids), '?'));
        run($db, "DELETE FROM order_items WHERE order_id IN ($marks)", $ids);
        run($db, "DELETE FROM orders WHERE id IN ($marks)", $ids);
        return count($ids);
    });
}
