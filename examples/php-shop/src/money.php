<?php
declare(strict_types=1);

/** "19.90" as 1990: sums of money are whole cents, never floats. */
function cents(string $amount): int
{
    [$whole, $fraction] = explode('.', $amount . '.00');
    return (int) $whole * 100 + (int) str_pad(substr($fraction, 0, 2), 2, '0');
}

/** 1990 as "19.90". */
function amount(int $cents): string
{
    return sprintf('%d.%02d', intdiv($cents, 100), $cents % 100);
}
