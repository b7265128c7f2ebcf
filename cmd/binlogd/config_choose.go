package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/term"
)

// passwordVariable may hold the password of a quick look.
const passwordVariable = "BINLOGD_PASSWORD"

// config finds the configuration that the flags mean: the file of --config, what --source
// says, or binlogd.yaml.
func (a *app) config() (*config, error) {
	q := a.quick
	if q.source != "" {
		if a.configPath != "" {
			return nil, &usageError{errors.New("--source and --config exclude each other: leave one out")}
		}
		cfg, err := q.config(a.password)
		if err != nil {
			return nil, &usageError{err}
		}
		return cfg, nil
	}
	for flag, value := range map[string]string{"--start": q.start, "--sink": q.sink, "--checkpoint": q.checkpoint} {
		if value != "" {
			return nil, &usageError{fmt.Errorf("%s goes with --source; with a configuration file, write it there", flag)}
		}
	}
	path := a.configPath
	if path == "" {
		path = defaultConfigFile
	}
	cfg, err := loadConfig(path, a.lookup)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &usageError{fmt.Errorf("there is no configuration %s: name one with -c, write one with `binlogd init -w %s`, or look at a database with --source user:password@host:port/database", path, defaultConfigFile)}
	}
	if err != nil {
		return nil, &usageError{err}
	}
	return cfg, nil
}

// password finds the password that --source does not hold: in the environment, or by
// asking where somebody sits in front of a terminal. Accounts without one exist.
func (a *app) password() (string, error) {
	if password, ok := a.lookup(passwordVariable); ok {
		return password, nil
	}
	file, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return "", nil
	}
	fmt.Fprint(a.stderr, "Password: ")
	password, err := term.ReadPassword(int(file.Fd()))
	fmt.Fprintln(a.stderr)
	return string(password), err
}
