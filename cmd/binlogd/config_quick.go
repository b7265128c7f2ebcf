package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// quickFlags configure a run without a file.
type quickFlags struct {
	source     string // user:password@host:port/database
	start      string
	sink       string
	checkpoint string
}

// config turns the flags into a configuration: every table of one database, no checkpoint
// and events to standard output unless told otherwise. password is asked for where the
// source names none.
func (q quickFlags) config(password func() (string, error)) (*config, error) {
	cfg := defaults()
	connect, database, err := parseSource(q.source)
	if err != nil {
		return nil, fmt.Errorf("--source: %w", err)
	}
	if database == "" {
		return nil, errors.New("--source names no database: write user:password@host:port/database")
	}
	if connect.Password == "" {
		if connect.Password, err = password(); err != nil {
			return nil, fmt.Errorf("read the password: %w", err)
		}
	}
	connect.TLS, connect.Timeout = cfg.Source.TLS, cfg.Source.Timeout
	cfg.Source.ConnectOptions = connect
	if q.start != "" {
		cfg.Source.Start = q.start
	}
	if cfg.Publish, err = parseSink(q.sink); err != nil {
		return nil, fmt.Errorf("--sink: %w", err)
	}
	cfg.Name = pipelineNameFrom(database)
	cfg.Checkpoint.Path = q.checkpoint
	every := mapping.TableRule{Table: mapping.QuotePattern(database) + ".*"}
	if cfg.Publish.Stdout != nil || cfg.Publish.File != nil {
		// Neither shows the topic, and the default one, database.table, does not allow every name of a table.
		every.Topic = cfg.Name
	}
	cfg.Events = []mapping.TableRule{every}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &cfg, nil
}

// parseSource reads user:password@host:port/database, and user:password@unix(path)/database
// for a socket; a leading mysql:// or mariadb:// is allowed. The last @ ends the password,
// so it may hold any character as it is; %XX in user and password is decoded, and a
// percent sign that begins no such code stands for itself.
func parseSource(text string) (connect canal.ConnectOptions, database string, err error) {
	const form = "write user:password@host:port/database"
	for _, scheme := range []string{"mysql://", "mariadb://"} {
		text = strings.TrimPrefix(text, scheme)
	}
	credentials, place, found := cutLast(text, "@")
	if !found {
		return connect, "", errors.New("it names no user: " + form)
	}
	user, password, _ := strings.Cut(credentials, ":")
	if user == "" {
		return connect, "", errors.New("it names no user: " + form)
	}
	connect.User, connect.Password = unescape(user), unescape(password)

	if socket, rest, ok := strings.Cut(strings.TrimPrefix(place, "unix("), ")"); ok && strings.HasPrefix(place, "unix(") {
		connect.Address, database = socket, strings.TrimPrefix(rest, "/")
	} else {
		connect.Address, database, _ = strings.Cut(place, "/")
	}
	if connect.Address == "" {
		return connect, "", errors.New("it names no host: " + form)
	}
	return connect, unescape(database), nil
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// parseSink reads stdout, file:PATH, kafka:BROKER,BROKER or redis:ADDRESS.
func parseSink(text string) (publish.Options, error) {
	kind, target, _ := strings.Cut(text, ":")
	switch {
	case text == "" || text == "stdout":
		return publish.Options{Stdout: &publish.StdoutOptions{}}, nil
	case kind == "file" && target != "":
		return publish.Options{File: &publish.FileOptions{Path: target}}, nil
	case kind == "kafka" && target != "":
		return publish.Options{Kafka: &publish.KafkaOptions{Brokers: strings.Split(target, ",")}}, nil
	case kind == "redis" && target != "":
		return publish.Options{Redis: &publish.RedisOptions{Address: target}}, nil
	}
	return publish.Options{}, errors.New("write stdout, file:PATH, kafka:HOST:PORT,HOST:PORT or redis:HOST:PORT")
}

// pipelineNameFrom makes a pipeline's name of a database's, which may hold any character.
func pipelineNameFrom(database string) string {
	name := legalName(database)
	name = strings.TrimLeft(name, ".-_")
	if name == "" {
		return "binlogd"
	}
	return name[:min(len(name), 64)]
}

// legalName keeps what pipelines' names and topics may hold, and puts a dash for the rest.
func legalName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, s)
}
