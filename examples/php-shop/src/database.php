<?php
declare(strict_types=1);

/**
 * Connects to the shop's database as SHOP_DSN, SHOP_USER and SHOP_PASSWORD say.
 */
function shop_database(): PDO
{
    return new PDO(
        getenv('SHOP_DSN') ?: 'mysql:host=127.0.0.1;dbname=shop;charset=utf8mb4',
        getenv('SHOP_USER') ?: 'shop',
        getenv('SHOP_PASSWORD') ?: '',
        [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
            PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
            PDO::ATTR_EMULATE_PREPARES => false,
        ],
    );
}

/**
 * Runs $work in one transaction and returns its result. A deadlock or a lock wait that
 * timed out is tried again; whatever else $work throws rolls the transaction back.
 */
function in_transaction(PDO $db, callable $work): mixed
{
    for ($attempt = 1; ; $attempt++) {
        $db->beginTransaction();
        try {
            $result = $work();
            $db->commit();
            return $result;
        } catch (Throwable $e) {
            if ($db->inTransaction()) {
                $db->rollBack();
            }
            $lockError = $e instanceof PDOException && in_array($e->errorInfo[1] ?? 0, [1205, 1213], true);
            if (!$lockError || $attempt === 5) {
                throw $e;
            }
            usleep(random_int(1_000, 20_000) * $attempt);
        }
    }
}

/**
 * Runs one statement and returns it, for its rows or its number of changed rows.
 */
function run(PDO $db, string $sql, array $parameters = []): PDOStatement
{
    $statement = $db->prepare($sql);
    $statement->execute($parameters);
    return $statement;
}
