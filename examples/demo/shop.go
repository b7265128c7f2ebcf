package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

// shop is the PHP application with a database of its own.
type shop struct {
	dir      string // examples/php-shop
	php      []string
	server   server
	database string
	user     string
	password string

	command *exec.Cmd
	output  bytes.Buffer
	closed  chan struct{} // closed once load.php is done
	err     error         // how it ended; valid after closed
}

// openShop makes a fresh database with the shop's tables and a user for the shop.
func openShop(ctx context.Context, dir string, php []string, s server) (*shop, error) {
	random := make([]byte, 8)
	rand.Read(random)
	tag := hex.EncodeToString(random[:3])
	shop := &shop{dir: dir, php: php, server: s, database: "shop_" + tag, user: "shop_" + tag, password: hex.EncodeToString(random)}
	schema, err := os.ReadFile(filepath.Join(dir, "schema.sql"))
	if err != nil {
		return nil, fmt.Errorf("read the shop's schema: %w", err)
	}
	// One session, so that USE holds for the tables.
	conn, err := s.DB.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to MySQL: %w", err)
	}
	defer conn.Close()
	for _, statement := range []string{
		"CREATE DATABASE " + shop.database + " CHARACTER SET utf8mb4",
		fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY '%s'", shop.user, shop.password),
		fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %s.* TO %s@'%%'", shop.database, shop.user),
		"USE " + shop.database,
		string(schema),
		"USE mysql", // the connection goes back to the pool
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return nil, fmt.Errorf("create the shop's database: %w", err)
		}
	}
	return shop, nil
}

// tables are the names of the shop's tables.
func (s *shop) tables(ctx context.Context) ([]string, error) {
	conn, err := s.server.DB.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to MySQL: %w", err)
	}
	defer conn.Close()
	keys, err := primaryKeys(ctx, conn, s.database)
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range keys {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// start lets the buyers in: load.php runs until it has served them.
func (s *shop) start(orders, seed, rate int) error {
	words := slices.Concat(s.php, []string{
		filepath.Join(s.dir, "load.php"),
		fmt.Sprintf("--orders=%d", orders), fmt.Sprintf("--seed=%d", seed), fmt.Sprintf("--rate=%d", rate),
	})
	s.command = exec.Command(words[0], words[1:]...) //nolint:noctx // ended by stop
	s.command.Env = append(os.Environ(),
		fmt.Sprintf("SHOP_DSN=mysql:host=%s;port=%s;dbname=%s;charset=utf8mb4", s.server.Host, s.server.Port, s.database),
		"SHOP_USER="+s.user, "SHOP_PASSWORD="+s.password)
	s.command.Stdout, s.command.Stderr = &s.output, &s.output
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.command.Start(); err != nil {
		return fmt.Errorf("start the shop: %w", err)
	}
	s.closed = make(chan struct{})
	go func() {
		defer close(s.closed)
		s.err = s.command.Wait()
	}()
	return nil
}

// orders is how far the shop is: the number of the newest order.
func (s *shop) orders(ctx context.Context) (int, error) {
	var newest sql.NullInt64
	if err := s.server.DB.QueryRowContext(ctx, "SELECT MAX(id) FROM "+s.database+".orders").Scan(&newest); err != nil {
		return 0, fmt.Errorf("look how far the shop is: %w", err)
	}
	return int(newest.Int64), nil
}

// done reports whether the shop has served all buyers.
func (s *shop) done() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// report waits for the end and returns what the shop counted.
func (s *shop) report(ctx context.Context) (map[string]any, error) {
	select {
	case <-s.closed:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.err != nil {
		return nil, fmt.Errorf("run the shop: %w:\n%s", s.err, bytes.TrimSpace(s.output.Bytes()))
	}
	var counts map[string]any
	if err := json.Unmarshal(s.output.Bytes(), &counts); err != nil {
		return nil, fmt.Errorf("read the shop's counts: %w:\n%s", err, bytes.TrimSpace(s.output.Bytes()))
	}
	return counts, nil
}

// stop ends load.php if it still runs.
func (s *shop) stop() {
	if s.command != nil && !s.done() {
		s.command.Process.Kill() //nolint:errcheck // an error means that it is gone already
		<-s.closed
	}
}

// drop removes database and user from a server that is not the demo's own.
func (s *shop) drop(ctx context.Context) error {
	for _, statement := range []string{"DROP DATABASE " + s.database, fmt.Sprintf("DROP USER %s@'%%'", s.user)} {
		if _, err := s.server.DB.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("drop the shop's database and user: %w", err)
		}
	}
	return nil
}
