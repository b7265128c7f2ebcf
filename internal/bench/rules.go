package main

import "github.com/binlogd/binlogd/mapping"

// shopRules are what a shop writes about its orders: the way "rules" maps with them, to be compared with "null".
func shopRules() []mapping.EmitRule {
	value := func(name, expression string) mapping.Member {
		return mapping.Member{Name: name, Value: mapping.Template{Expression: expression}}
	}
	became := func(kind, status string) mapping.EmitRule {
		return mapping.EmitRule{
			Type: kind, On: mapping.Operations{"update"}, When: `became("status", "` + status + `")`,
			Data: mapping.Object{value("order_id", "new.id"), value("amount", "new.amount"), value("customer_id", "new.user_id")},
		}
	}
	return []mapping.EmitRule{
		{Type: "order.placed", On: mapping.Operations{"insert"}},
		became("order.paid", "paid"), became("order.shipped", "shipped"), became("order.cancelled", "cancelled"),
		{Type: "order.changed", On: mapping.Operations{"update"}, When: `changed("amount", "quantity", "address", "remark")`},
		{Type: "order.removed", On: mapping.Operations{"delete"}},
	}
}
