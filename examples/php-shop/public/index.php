<?php
declare(strict_types=1);

// The shop over HTTP: php -S 127.0.0.1:8080 public/index.php

require __DIR__ . '/../src/shop.php';

/** Answers the request and ends. */
function answer(int $status, array $body): never
{
    http_response_code($status);
    header('Content-Type: application/json; charset=utf-8');
    echo json_encode($body, JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR), "\n";
    exit;
}

$db = shop_database();
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
$body = json_decode(file_get_contents('php://input') ?: '[]', true) ?? [];

try {
    switch (true) {
        case $_SERVER['REQUEST_METHOD'] === 'GET' && $path === '/stock':
            answer(200, run($db, 'SELECT sku, name, price, quantity FROM stock ORDER BY sku')->fetchAll());
        case $_SERVER['REQUEST_METHOD'] === 'GET' && preg_match('#^/orders/(\w+)$#', $path, $match) === 1:
            $order = run($db, 'SELECT order_no, status, total, recipient, created_at, paid_at FROM orders WHERE order_no = ?', [$match[1]])->fetch();
            answer($order === false ? 404 : 200, $order ?: ['error' => 'no such order']);
        case $_SERVER['REQUEST_METHOD'] === 'POST' && $path === '/stock':
            stock_receive($db, $body['sku'], $body['name'], $body['price'], $body['quantity']);
            answer(201, ['sku' => $body['sku']]);
        case $_SERVER['REQUEST_METHOD'] === 'POST' && $path === '/orders':
            $key = $_SERVER['HTTP_IDEMPOTENCY_KEY'] ?? '';
            if ($key === '') {
                answer(400, ['error' => 'send an Idempotency-Key header: one per order, the same in every repeat of it']);
            }
            $placed = order_place($db, $key, $body['customer_id'], $body['recipient'], $body['pieces'], $body['note'] ?? null);
            answer($placed['repeated'] ? 200 : 201, $placed);
        case $_SERVER['REQUEST_METHOD'] === 'POST' && $path === '/payments/callback':
            $result = payment_callback($db, $body);
            answer($result === 'refused' ? 409 : 200, ['result' => $result]);
        case $_SERVER['REQUEST_METHOD'] === 'POST' && preg_match('#^/orders/(\w+)/(cancel|ship)$#', $path, $match) === 1:
            $done = $match[2] === 'cancel' ? order_cancel($db, $match[1]) : order_ship($db, $match[1]);
            answer($done ? 200 : 409, ['done' => $done]);
        default:
            answer(404, ['error' => 'no such page']);
    }
} catch (OutOfStock | InvalidArgumentException $e) {
    answer(409, ['error' => $e->getMessage()]);
} catch (TypeError $e) {
    answer(400, ['error' => 'a field is missing or of the wrong type']);
}
