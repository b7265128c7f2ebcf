<?php
declare(strict_types=1);

// What the load sells, and to whom: names with the letters that real customers have.

const RECIPIENTS = ['Jörg Müller', 'Zoë O’Brien', '王小明', 'Nguyễn Thị Lan', 'Søren Kjær', 'María José', 'Łukasz Żak', 'عمر'];

const NOTES = ['Happy birthday! 🎂', "Leave it\nat the neighbour's", '请放门口', 'call "first"', 'C:\\basement', ''];

/** @return list<array{string, string, string, int}> sku, name, price, pieces per delivery */
function catalogue(): array
{
    return [
        ['TEA-GREEN', 'Grüner Tee, 100 g', '7.90', 400],
        ['TEA-BLACK', 'Earl Grey, 250 g', '11.50', 300],
        ['CUP-BLUE', 'Cup, blue 🫖', '14.00', 250],
        ['CUP-WHITE', 'Cup, white', '12.00', 250],
        ['POT-IRON', '鉄瓶, 0.9 l', '129.00', 150],
        ['POT-GLASS', 'Glass pot “Clair”', '34.95', 220],
        ['HONEY', 'Miód gryczany', '9.99', 200],
        ['SUGAR', 'Kandis', '3.49', 500],
        ['BISCUIT', 'Biscuits à l’orange', '4.25', 350],
        ['BOOK', '茶經, bilingual', '24.80', 200],
        ['SPOON', 'Spoon, 1/1', '2.10', 600],
        ['GIFT', 'Gift box', '0.99', 240],
    ];
}
