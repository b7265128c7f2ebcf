<?php
declare(strict_types=1);

final class OutOfStock extends RuntimeException
{
}

/**
 * Puts a product on the shelf, or adds to what stands there.
 */
function stock_receive(PDO $db, string $sku, string $name, string $price, int $quantity): void
{
    run($db, 'INSERT INTO stock (sku, name, price, quantity) VALUES (?, ?, ?, ?)
              ON DUPLICATE KEY UPDATE quantity = quantity + ?', [$sku, $name, $price, $quantity, $quantity]);
}

/**
 * Takes pieces off the shelf, inside the caller's transaction. The condition in the
 * statement keeps two buyers from taking the last piece.
 */
function stock_deduct(PDO $db, string $sku, int $quantity): void
{
    $taken = run($db, 'UPDATE stock SET quantity = quantity - ? WHERE sku = ? AND quantity >= ?', [$quantity, $sku, $quantity]);
    if ($taken->rowCount() === 0) {
        throw new OutOfStock("not enough of $sku");
    }
}

/**
 * Puts an order's pieces back, inside the caller's transaction, shelf by shelf in the
 * order that all transactions use, so that they do not deadlock.
 */
function stock_give_back(PDO $db, int $orderId): void
{
    $items = run($db, 'SELECT sku, quantity FROM order_items WHERE order_id = ? ORDER BY sku', [$orderId]);
    foreach ($items->fetchAll() as $item) {
        run($db, 'UPDATE stock SET quantity = quantity + ? WHERE sku = ?', [$item['quantity'], $item['sku']]);
    }
}
