package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/binlogd/binlogd/internal/testenv/daemon"
	"github.com/binlogd/binlogd/internal/testenv/fetch"
)

// service is one development server. The ports are those of docker-compose.yml.
type service struct {
	name string
	port int
	hint string
	// prepare fetches the software and fills dir, where it is new.
	prepare func(ctx context.Context, dir string, fresh bool) (daemon.Spec, error)
	// setUp is done once, when a new server is up.
	setUp func(ctx context.Context, port int) error
}

func (s service) address() string { return daemon.Address(s.port) }

const (
	mysqlPort      = 13306
	mariadbPort    = 13307
	redisPort      = 16379
	kafkaPort      = 19092
	kafkaInnerPort = 19093
)

const databaseHint = "database shop; accounts (user/password) root/root, binlogd/binlogd, shop/shop"

var services = []service{
	{"mysql", mysqlPort, databaseHint, prepareMySQL, createAccounts},
	{"mariadb", mariadbPort, databaseHint, prepareMariaDB, createAccounts},
	{"kafka", kafkaPort, "topics are created on first use", prepareKafka, nil},
	{"redis", redisPort, "", prepareRedis, nil},
}

func prepareMySQL(ctx context.Context, dir string, fresh bool) (daemon.Spec, error) {
	db, err := fetch.MySQL(ctx)
	if err != nil {
		return daemon.Spec{}, err
	}
	if fresh {
		if err := daemon.NewDataDir(ctx, db, dir); err != nil {
			return daemon.Spec{}, err
		}
	}
	return daemon.MySQL(db, dir, daemon.DatabaseOptions{Port: mysqlPort, ServerID: mysqlPort})
}

func prepareMariaDB(ctx context.Context, dir string, fresh bool) (daemon.Spec, error) {
	db, err := fetch.MariaDB118(ctx)
	if err != nil {
		return daemon.Spec{}, err
	}
	if fresh {
		if err := daemon.NewDataDir(ctx, db, dir); err != nil {
			return daemon.Spec{}, err
		}
	}
	return daemon.MariaDB(db, dir, daemon.DatabaseOptions{Port: mariadbPort, ServerID: mariadbPort})
}

//go:embed setup.sql
var setupSQL string

func createAccounts(ctx context.Context, port int) error {
	db, err := daemon.OpenDatabase(port)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, setupSQL); err != nil {
		return fmt.Errorf("create the database and accounts: %w", err)
	}
	return nil
}

func prepareKafka(ctx context.Context, dir string, fresh bool) (daemon.Spec, error) {
	kafka, err := fetch.KafkaServer(ctx)
	if err != nil {
		return daemon.Spec{}, err
	}
	node := daemon.KafkaNode{ID: 1, Port: kafkaPort, Controller: kafkaInnerPort, Dir: dir}
	if fresh {
		if err := daemon.NewKafka(ctx, kafka, []daemon.KafkaNode{node}, nil); err != nil {
			return daemon.Spec{}, err
		}
	}
	return daemon.Kafka(kafka, node, 1), nil
}

func prepareRedis(ctx context.Context, dir string, fresh bool) (daemon.Spec, error) {
	tree, err := fetch.Redis(ctx)
	if err != nil {
		return daemon.Spec{}, err
	}
	if fresh {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return daemon.Spec{}, fmt.Errorf("make a folder for Redis: %w", err)
		}
	}
	return daemon.Redis(tree, dir, redisPort)
}

// home is the folder with a server's data, log and process id.
func home(s service) (string, error) {
	cache, err := fetch.CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "services", s.name), nil
}

func logs(s service) []string {
	dir, err := home(s)
	if err != nil {
		return nil
	}
	return []string{daemon.Spec{Dir: filepath.Join(dir, "data")}.LogFile()}
}

// startLocal starts the named servers that are not running.
func startLocal(ctx context.Context, names []string) error {
	unlock, err := lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, s := range services {
		if !slices.Contains(names, s.name) {
			continue
		}
		if err := startOne(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func startOne(ctx context.Context, s service) error {
	pid, err := runningPID(s)
	if err != nil || pid != 0 {
		return err
	}
	dir, err := home(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make a folder for %s: %w", s.name, err)
	}
	data, ready := filepath.Join(dir, "data"), filepath.Join(dir, "ready")
	_, err = os.Stat(ready)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh { // also after an attempt that came to nothing
		if err := os.RemoveAll(data); err != nil {
			return fmt.Errorf("clear the data of %s: %w", s.name, err)
		}
	}
	spec, err := s.prepare(ctx, data, fresh)
	if err != nil {
		return err
	}
	spec.Detached = true
	if err := daemon.CheckPort(s.port); err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	process, err := daemon.Start(ctx, spec)
	if err != nil {
		return err
	}
	if err := writePID(s, process.PID()); err != nil {
		process.Kill()
		return err
	}
	if !fresh {
		return nil
	}
	if s.setUp != nil {
		if err := s.setUp(ctx, s.port); err != nil {
			process.Kill()
			return err
		}
	}
	return os.WriteFile(ready, nil, 0o644)
}

// stopLocal stops all servers that this command started.
func stopLocal(ctx context.Context, wipe bool) (stopped []string, err error) {
	unlock, err := lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, s := range services {
		pid, err := runningPID(s)
		if err != nil {
			return stopped, err
		}
		if pid != 0 {
			if err := terminate(ctx, s, pid); err != nil {
				return stopped, err
			}
			stopped = append(stopped, s.name)
		}
		if wipe {
			dir, err := home(s)
			if err != nil {
				return stopped, err
			}
			if err := os.RemoveAll(dir); err != nil {
				return stopped, fmt.Errorf("delete the data of %s: %w", s.name, err)
			}
		}
	}
	return stopped, nil
}

// lock keeps two of these commands from working at once.
func lock(ctx context.Context) (unlock func(), err error) {
	cache, err := fetch.CacheDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache folder: %w", err)
	}
	return fetch.Lock(ctx, filepath.Join(cache, "services.lock"))
}

// fetchSoftware gets what the named servers need, or everything, one after the other.
func fetchSoftware(ctx context.Context, names []string) error {
	steps := []struct {
		name  string
		fetch func(context.Context) error
	}{
		{"mysql", func(ctx context.Context) error { _, err := fetch.MySQL(ctx); return err }},
		{"mariadb", func(ctx context.Context) error { _, err := fetch.MariaDB1011(ctx); return err }},
		{"mariadb-11.8", func(ctx context.Context) error { _, err := fetch.MariaDB118(ctx); return err }},
		{"redis", func(ctx context.Context) error { _, err := fetch.Redis(ctx); return err }},
		{"c-compiler", fetch.CCompiler},
		{"kafka", func(ctx context.Context) error { _, err := fetch.KafkaServer(ctx); return err }},
	}
	known := 0
	for _, step := range steps {
		if len(names) > 0 && !slices.Contains(names, step.name) {
			continue
		}
		known++
		if err := step.fetch(ctx); err != nil {
			return err
		}
	}
	if known == 0 || known < len(names) {
		return fmt.Errorf("fetch %v: there are mysql, mariadb, mariadb-11.8, redis, kafka and c-compiler", names)
	}
	return nil
}
