<?php
declare(strict_types=1);

/**
 * What the payment provider calls when an order was paid. It calls until it gets an
 * answer, so one payment arrives several times, each with a serial number of its own:
 * the order's state decides, not the serial. Order, payment and points are one
 * transaction. Returns "paid", "repeated" or "refused" (unknown order, wrong amount,
 * cancelled in the meantime).
 *
 * @param array{order_no: string, amount: string, serial: string} $callback
 */
function payment_callback(PDO $db, array $callback): string
{
    return in_transaction($db, function () use ($db, $callback): string {
        $paid = run($db, "UPDATE orders SET status = 'paid', paid_at = NOW()
                          WHERE order_no = ? AND total = ? AND status = 'pending'", [$callback['order_no'], $callback['amount']]);
        $order = run($db, 'SELECT id, customer_id, total, status FROM orders WHERE order_no = ?', [$callback['order_no']])->fetch();
        if ($paid->rowCount() === 0) {
            $known = $order !== false && in_array($order['status'], ['paid', 'shipped'], true);
            return $known && $order['total'] === $callback['amount'] ? 'repeated' : 'refused';
        }
        run($db, "INSERT INTO payments (order_id, amount, status, provider_serial, callback) VALUES (?, ?, 'succeeded', ?, ?)",
            [$order['id'], $callback['amount'], $callback['serial'], json_encode($callback, JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR)]);
        run($db, "INSERT INTO points (customer_id, order_id, reason, delta) VALUES (?, ?, 'purchase', ?)",
            [$order['customer_id'], $order['id'], intdiv(cents($order['total']), 100)]);
        return 'paid';
    });
}
