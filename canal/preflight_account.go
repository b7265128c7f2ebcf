package canal

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// checkPrivileges tries what the source will do, instead of reading grants: roles, proxies
// and grants to other hosts make those hard to read.
func (i *Inspector) checkPrivileges(ctx context.Context) []Check {
	client := i.clientPrivilege()
	_, statusErr := ask(ctx, i.conn, i.statusStatement())
	return []Check{
		i.privilege(ctx, client, statusErr),
		i.privilege(ctx, "REPLICATION SLAVE", i.tryRegister(ctx)),
	}
}

func (i *Inspector) privilege(ctx context.Context, privilege string, err error) Check {
	name := "privilege " + privilege
	switch {
	case err == nil:
		return checkOK(name, "granted")
	case accountLacks(err):
		account := i.Account(ctx)
		return failConfig(name, fmt.Sprintf("the account %s lacks it", account),
			fmt.Sprintf("run on the server: GRANT %s ON *.* TO %s;", privilege, account))
	}
	return FailedCheck(name, err)
}

// clientPrivilege is the server's name of the privilege that shows binlog positions.
func (i *Inspector) clientPrivilege() string {
	if i.server.Flavor == MariaDB {
		return "BINLOG MONITOR"
	}
	return "REPLICATION CLIENT"
}

// statusStatement shows the binlog position; MySQL 8.4 renamed it.
func (i *Inspector) statusStatement() string {
	if i.atLeast("8.2.0") {
		return "SHOW BINARY LOG STATUS"
	}
	return "SHOW MASTER STATUS"
}

// Account is the account that the server took the user for, quoted as GRANT takes it.
func (i *Inspector) Account(ctx context.Context) string {
	user, host := i.user, "%"
	if r, err := ask(ctx, i.conn, "SELECT CURRENT_USER()"); err == nil && len(r.rows) == 1 {
		if at := strings.LastIndexByte(r.rows[0][0], '@'); at >= 0 {
			user, host = r.rows[0][0][:at], r.rows[0][0][at+1:]
		}
	}
	return quoteText(user) + "@" + quoteText(host)
}

// quoteText writes a SQL string.
func quoteText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(s) + "'"
}

// tryRegister registers as a replica (COM_REGISTER_SLAVE), which takes the privilege that a
// dump takes and has no effect beyond a line in SHOW REPLICAS until the connection ends. No
// statement asks for that privilege on both MySQL and MariaDB.
func (i *Inspector) tryRegister(ctx context.Context) error {
	const (
		idOffset = 1
		// server id, three empty strings (host, user, password), port, rank, master id
		length = 4 + 3 + 2 + 4 + 4
	)
	packet := make([]byte, 4+idOffset+length) // the packet's header goes before
	packet[4] = mysql.COM_REGISTER_SLAVE
	binary.LittleEndian.PutUint32(packet[4+idOffset:], rand.Uint32()|1<<31)
	defer bound(ctx, i.conn)()
	i.conn.ResetSequence()
	if err := i.conn.WritePacket(packet); err != nil {
		return fmt.Errorf("register as a replica: %w", err)
	}
	if _, err := i.conn.ReadOKPacket(); err != nil {
		return fmt.Errorf("register as a replica: %w", err)
	}
	return nil
}
