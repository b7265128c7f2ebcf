package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/internal/testenv"
)

// proposal is a line of a rule or an aggregate that init proposes, commented out.
var proposal = regexp.MustCompile(`(?m)^((?:    )?(?:  )?)# ((?:emit:|  - \{|- aggregate:|  root:|  on:|  type:|  topic:|  include:|    \S).*)$`)

// TestInitProposesRules: a rule for each value of a status, an aggregate for each table that others refer to, one entry for shards;
// the configuration is valid as it is, and with the proposals in force.
func TestInitProposesRules(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *testenv.Server) {
		s := newSetup(t, server)
		server.Exec(t, "USE `"+s.database+"`; DROP TABLE orders",
			"CREATE TABLE orders (id INT, shop INT, status ENUM('new','in transit','it''s \"paid\"','created'), pay_state TINYINT, items INT, PRIMARY KEY (shop, id))",
			"INSERT INTO orders VALUES (1, 1, 'new', 0, 1), (2, 1, 'new', 7, 1), (3, 1, 'new', NULL, 1)",
			"CREATE TABLE items (id INT PRIMARY KEY, order_id INT, order_shop INT, FOREIGN KEY (order_shop, order_id) REFERENCES orders (shop, id))",
			"CREATE TABLE `odd {part}` (id INT PRIMARY KEY, `of $x` INT, FOREIGN KEY (`of $x`) REFERENCES items (id))",
			"CREATE TABLE log_0000 (id INT PRIMARY KEY, status ENUM('a','b'))", "CREATE TABLE log_0001 LIKE log_0000", "CREATE TABLE log_0011 LIKE log_0000",
			"CREATE TABLE log_0002 (id INT PRIMARY KEY)")
		source := fmt.Sprintf("%s:%s@%s/%s", s.user, s.password, server.Addr, s.database)
		code, _, stderr := binlogd(t, s.dir, "init", "--source", source, "-w", "new.yaml")
		require.Equal(t, exitOK, code, stderr)
		written, err := os.ReadFile(filepath.Join(s.dir, "new.yaml"))
		require.NoError(t, err)
		text := string(written)
		for _, line := range []string{
			"    #   - {type: orders.updated, on: update}",
			`    #   - {type: order.in_transit, on: update, when: 'became("status", "in transit")'}`,
			`    #   - {type: order.it_s__paid, on: update, when: 'became("status", "it''s \"paid\"")'}`,
			`    #   - {type: order.pay_state_7, on: update, when: 'became("pay_state", 7)'}`,
			"  # - aggregate: order ",
			"  #     items_2: {table: " + s.database + ".items, on: {order_shop: shop, order_id: id}}",
			`.log_{0000..0011}'   # 3 shards of one table`,
			"    name: log\n",
		} {
			require.Contains(t, text, line, text)
		}
		for _, document := range []string{text, proposal.ReplaceAllString(text, "$1$2")} {
			cfg, err := parseConfig("new.yaml", []byte(document), environment("MYSQL_PASSWORD="+s.password))
			require.NoError(t, err, document)
			cfg.Source.User = s.user
			for _, c := range preflightSource(t.Context(), cfg, nil) {
				require.NotEqual(t, canal.CheckFail, c.Status, "%s: %s\n%s", c.Name, c.Detail, document)
			}
			proposed := 0
			for i := range cfg.Events {
				proposed += len(cfg.Events[i].Emit) + len(cfg.Events[i].Include)
			}
			if document == text {
				require.Zero(t, proposed)
			} else {
				require.Equal(t, 3+4+2+3+2+2, proposed, document)
			}
		}
		require.NotContains(t, strings.ReplaceAll(text, "# ", ""), "\t")
	})
}
