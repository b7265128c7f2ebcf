// Package expression compiles the expressions of rules, such as
//
//	old.status != "paid" && new.status == "paid"
//
// for one table, and evaluates them over row changes.
//
// Lexer, parser and syntax tree are those of github.com/expr-lang/expr. What an expression means is SQL's: comparisons
// with NULL are unknown, DECIMALs are exact, and columns have the types of their table, against which everything is checked before the
// first row. The tree is compiled to closures over canal.Value, so that no value of a row is boxed; see
// docs/decisions/expressions.md.
//
// Expressions have no loops, no variables and no side effects: each part is evaluated at most once a row, so that time
// and memory are bounded by the length of the expression and the size of the row.
package expression
