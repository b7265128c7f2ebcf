<?php
declare(strict_types=1);

require __DIR__ . '/database.php';
require __DIR__ . '/money.php';
require __DIR__ . '/stock.php';
require __DIR__ . '/orders.php';
require __DIR__ . '/payments.php';
