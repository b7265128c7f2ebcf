<?php
declare(strict_types=1);

// A day in the shop: php load.php --orders 1000 --seed 1 --rate 200
//
//   --orders N   orders to place (1000)
//   --seed S     the same seed makes the same buyers do the same things (1)
//   --rate R     orders per second; 0 is as fast as the database can (0)
//
// Customers click twice, pay late or never, change their minds; the payment provider
// calls several times; the shelf runs empty. At the end the counts of what happened go
// to standard output as one JSON object.

require __DIR__ . '/src/shop.php';
require __DIR__ . '/src/catalogue.php';

$options = getopt('', ['orders:', 'seed:', 'rate:'], $rest);
foreach (['orders', 'seed', 'rate'] as $name) {
    if (isset($options[$name]) && !ctype_digit($options[$name])) {
        fwrite(STDERR, "--$name takes a whole number, not {$options[$name]}\n");
        exit(2);
    }
}
if ($rest !== $argc) {
    fwrite(STDERR, "usage: php load.php [--orders N] [--seed S] [--rate R]\n");
    exit(2);
}
$orders = (int) ($options['orders'] ?? 1000);
$seed = (int) ($options['seed'] ?? 1);
$rate = (int) ($options['rate'] ?? 0);

mt_srand($seed);
$run = bin2hex(random_bytes(4)); // a second run sells to the same people again, in other baskets
$db = shop_database();
$counts = ['placed' => 0, 'repeated_orders' => 0, 'out_of_stock' => 0, 'paid' => 0, 'repeated_callbacks' => 0,
    'refused_callbacks' => 0, 'cancelled' => 0, 'refunded' => 0, 'shipped' => 0, 'forgotten' => 0];
$catalogue = catalogue();
foreach ($catalogue as [$sku, $name, $price, $quantity]) {
    stock_receive($db, $sku, $name, $price, $quantity);
}

/** True in $percent of all cases. */
function chance(int $percent): bool
{
    return mt_rand(1, 100) <= $percent;
}

/** One of the given values. */
function one_of(array $values): mixed
{
    return $values[mt_rand(0, count($values) - 1)];
}

/** The payment provider's call for an order; each attempt has a serial of its own. */
function provider_calls(PDO $db, array &$counts, string $orderNo, string $amount): void
{
    $result = payment_callback($db, ['order_no' => $orderNo, 'amount' => $amount, 'serial' => 'pay_' . bin2hex(random_bytes(8))]);
    $counts[['paid' => 'paid', 'repeated' => 'repeated_callbacks', 'refused' => 'refused_callbacks'][$result]]++;
}

$started = microtime(true);
for ($n = 1; $n <= $orders; $n++) {
    if ($rate > 0) {
        $early = $started + ($n - 1) / $rate - microtime(true);
        if ($early > 0) {
            usleep((int) ($early * 1e6));
        }
    }

    // The buyer fills a basket and clicks, now and then twice.
    $pieces = [];
    for ($lines = mt_rand(1, 4); count($pieces) < $lines;) {
        $pieces[one_of($catalogue)[0]] = mt_rand(1, 3);
    }
    $customer = mt_rand(1, 500);
    $recipient = one_of(RECIPIENTS);
    $note = chance(30) ? ['gift' => chance(50), 'text' => one_of(NOTES), 'weight' => mt_rand(1, 40) / 4] : null;
    $clicks = chance(8) ? 2 : 1;
    $orderNo = null;
    for ($click = 1; $click <= $clicks; $click++) {
        try {
            $placed = order_place($db, "basket-$run-$n", $customer, $recipient, $pieces, $note);
            $orderNo = $placed['order_no'];
            $counts[$placed['repeated'] ? 'repeated_orders' : 'placed']++;
        } catch (OutOfStock) {
            $counts['out_of_stock']++;
        }
    }

    // What becomes of it. The draws do not depend on whether the order went through,
    // so that the same seed keeps the same course.
    $pays = chance(78);
    $calls = one_of([1, 1, 1, 2, 3]);
    $cancels = chance($pays ? 6 : 70);
    $ships = chance(60);
    if ($orderNo !== null) {
        $total = run($db, 'SELECT total FROM orders WHERE order_no = ?', [$orderNo])->fetchColumn();
        if ($pays) {
            for ($call = 1; $call <= $calls; $call++) {
                provider_calls($db, $counts, $orderNo, $total);
            }
        }
        if ($cancels && order_cancel($db, $orderNo)) {
            $counts['cancelled']++;
            $counts['refunded'] += $pays ? 1 : 0;
            if (!$pays && $calls > 2) { // the money comes after the customer gave up
                provider_calls($db, $counts, $orderNo, $total);
            }
        } elseif ($pays && $ships && order_ship($db, $orderNo)) {
            $counts['shipped']++;
        }
    }

    // The store-room brings more, and the night tidies up.
    if ($n % 40 === 0) {
        [$sku, $name, $price, $quantity] = one_of($catalogue);
        stock_receive($db, $sku, $name, $price, $quantity);
    }
    if ($n % 100 === 0) {
        $counts['forgotten'] += orders_forget_cancelled($db);
    }
}

echo json_encode(['orders' => $orders, 'seed' => $seed, 'seconds' => round(microtime(true) - $started, 3)] + $counts, JSON_THROW_ON_ERROR), "\n";
