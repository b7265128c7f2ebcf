package canal

import (
	"context"
	"math/rand/v2"
	"strconv"
)

// chooseServerID finds a replica id that neither the server nor any replica registered with it uses. It is taken from the
// upper half of the range, which people seldom number by hand.
func chooseServerID(ctx context.Context, o ConnectOptions) (uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*o.timeout())
	defer cancel()
	conn, err := o.Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Quit() }()
	server, err := Identify(ctx, conn)
	if err != nil {
		return 0, err
	}
	used := map[uint32]bool{server.ServerID: true}
	statement := "SHOW REPLICAS"
	if server.Flavor == MariaDB {
		statement = "SHOW SLAVE HOSTS"
	}
	replicas, err := ask(ctx, conn, statement)
	if err != nil && !accountLacks(err) {
		return 0, err
	}
	if err == nil {
		for i := range replicas.rows {
			if id, err := strconv.ParseUint(replicas.value(i, "server_id"), 10, 32); err == nil {
				used[uint32(id)] = true
			}
		}
	}
	for {
		if id := 1<<31 | rand.Uint32N(1<<31-1); !used[id] {
			return id, nil
		}
	}
}
