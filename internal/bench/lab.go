package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/binlogd/binlogd/internal/testenv/daemon"
	"github.com/binlogd/binlogd/internal/testenv/fetch"
)

// lab holds the servers of a run.
type lab struct {
	opts     options
	dir      string
	mysql    fetch.Database
	port     int
	db       *sql.DB
	kafka    string // address
	redis    string
	closers  []func()
	topicSeq int
}

func startLab(ctx context.Context, o options) (l *lab, err error) {
	l = &lab{opts: o}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.dir, err = os.MkdirTemp("", "binlogd-bench-"); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	l.closers = append(l.closers, func() { _ = os.RemoveAll(l.dir) })
	say("starting MySQL, Kafka and Redis in %s", l.dir)
	if err := l.startMySQL(ctx); err != nil {
		return nil, err
	}
	if o.wants("throughput") || o.wants("latency") {
		if err := l.startKafka(ctx); err != nil {
			return nil, err
		}
	}
	if o.wants("throughput") {
		if err := l.startRedis(ctx); err != nil {
			return nil, err
		}
	}
	fmt.Printf("%s/%s, %d processors, %s; MySQL, Kafka and Redis on the same machine.\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	return l, nil
}

func (l *lab) close() {
	for _, undo := range slices.Backward(l.closers) {
		undo()
	}
}

func (l *lab) start(ctx context.Context, spec daemon.Spec) error {
	p, err := daemon.Start(ctx, spec)
	if err != nil {
		return err
	}
	l.closers = append(l.closers, p.Kill)
	return nil
}

func (l *lab) reserve() (int, error) {
	port, release, err := daemon.ReservePort()
	if err == nil {
		l.closers = append(l.closers, release)
	}
	return port, err
}

func (l *lab) startMySQL(ctx context.Context) (err error) {
	if l.mysql, err = fetch.MySQL(ctx); err != nil {
		return err
	}
	if l.port, err = l.reserve(); err != nil {
		return err
	}
	dir := filepath.Join(l.dir, "mysql")
	if err := daemon.NewDataDir(ctx, l.mysql, dir); err != nil {
		return err
	}
	// The server is to be no bottleneck: it need not survive a power cut.
	spec, err := daemon.MySQL(l.mysql, dir, daemon.DatabaseOptions{
		Port: l.port, ServerID: 1,
		Args: []string{"--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=512M", "--innodb-redo-log-capacity=1G", "--innodb-doublewrite=OFF"},
	})
	if err != nil {
		return err
	}
	if err := l.start(ctx, spec); err != nil {
		return err
	}
	l.db, err = daemon.OpenDatabase(l.port)
	if err == nil {
		l.closers = append(l.closers, func() { _ = l.db.Close() })
	}
	return err
}

func (l *lab) startKafka(ctx context.Context) error {
	software, err := fetch.KafkaServer(ctx)
	if err != nil {
		return err
	}
	port, err := l.reserve()
	if err != nil {
		return err
	}
	controller, err := l.reserve()
	if err != nil {
		return err
	}
	node := daemon.KafkaNode{ID: 1, Port: port, Controller: controller, Dir: filepath.Join(l.dir, "kafka")}
	if err := daemon.NewKafka(ctx, software, []daemon.KafkaNode{node}, nil); err != nil {
		return err
	}
	l.kafka = daemon.Address(port)
	return l.start(ctx, daemon.Kafka(software, node, 1))
}

func (l *lab) startRedis(ctx context.Context) error {
	software, err := fetch.Redis(ctx)
	if err != nil {
		return err
	}
	port, err := l.reserve()
	if err != nil {
		return err
	}
	dir := filepath.Join(l.dir, "redis")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	l.redis = daemon.Address(port)
	spec, err := daemon.Redis(software, dir, port)
	if err != nil {
		return err
	}
	return l.start(ctx, spec)
}

// topic is a name that no measurement before has used.
func (l *lab) topic() string {
	l.topicSeq++
	return fmt.Sprintf("bench-%d", l.topicSeq)
}

func (l *lab) exec(ctx context.Context, statements ...string) error {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to MySQL: %w", err)
	}
	defer conn.Close()
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.60s: %w", statement, err)
		}
	}
	return nil
}

// executed is the server's executed set.
func (l *lab) executed(ctx context.Context) (string, error) {
	var set string
	err := l.db.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&set)
	return set, err
}

// binlog is the file that the server writes to.
func (l *lab) binlog(ctx context.Context) (string, error) {
	var file, ignored string
	if err := l.db.QueryRowContext(ctx, "SHOW BINARY LOG STATUS").Scan(&file, &ignored, &ignored, &ignored, &ignored); err != nil {
		return "", fmt.Errorf("find the binlog: %w", err)
	}
	return file, nil
}
