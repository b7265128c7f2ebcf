package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/admin"
	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// runAsBinlogd makes the test binary be binlogd, so that tests run a real process with the
// code under test, race detector included.
const runAsBinlogd = "BINLOGD_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runAsBinlogd) != "" {
		main()
	}
	testenv.Main(m)
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	plain := errors.New("x")
	tests := map[string]struct {
		err  error
		want int
	}{
		"none":               {nil, 0},
		"anything":           {plain, 1},
		"usage":              {&usageError{plain}, 2},
		"configuration file": {&locatedError{"x.yaml", 1, plain}, 2},
		"account":            {&canal.ConfigError{Err: plain}, 2},
		"mapping":            {&mapping.OptionError{Key: "events"}, 2},
		"source":             {&canal.SourceError{Err: plain}, 3},
		"source away":        {&unavailableError{exitSource, plain, ""}, 3},
		"schema":             {&canal.SchemaError{}, 3},
		"schema history":     {&checkpoint.SchemaError{}, 5},
		"row":                {&canal.DecodeError{Err: plain}, 3},
		"admin port":         {&admin.ListenError{Err: plain}, 2},
		"sink refuses":       {&publish.PermanentError{Err: plain}, 4},
		"sink away":          {&unavailableError{exitSink, plain, ""}, 4},
		"damaged checkpoint": {&checkpoint.CorruptError{}, 5},
		"newer checkpoint":   {&checkpoint.NewerVersionError{}, 5},
		"other checkpoint":   {&checkpoint.NameError{}, 5},
		"checkpoint unsaved": {&checkpoint.SaveError{Err: plain}, 5},
		"checkpoint access":  {&checkpoint.AccessError{Err: plain}, 5},
		"locked":             {&checkpoint.LockedError{}, 6},
		"taken over":         {&checkpoint.SaveError{Err: &checkpoint.FencedError{}}, 6},
		"reported":           {&reportedError{3}, 3},
		"two":                {errors.Join(&canal.SourceError{Err: plain}, plain), 3},
	}
	for name, test := range tests {
		require.Equal(t, test.want, exitCode(test.err), name)
		if test.err != nil {
			require.Equal(t, test.want, exitCode(fmt.Errorf("do something: %w", test.err)), name)
		}
	}
}

// command runs a command line inside this process.
func command(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = newApp(strings.NewReader(""), &out, &errs, environment(env...)).run(t.Context(), args)
	return code, out.String(), errs.String()
}

func TestUsageErrorsAreExitCode2(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"rum"}, `unknown command "rum"`},
		{[]string{"run", "--sauce"}, "run `binlogd run --help`"},
		{[]string{"run", "extra"}, `unknown command "extra"`},
		{[]string{"run", "-c", "no-such.yaml"}, "there is no configuration no-such.yaml"},
		{[]string{"run", "--start", "latest"}, "--start goes with --source"},
		{[]string{"check", "-o", "xml"}, "write text or json"},
		{[]string{"version", "--log-format", "xml"}, "--log-format"},
		{[]string{"version", "--log-level", "loud"}, "--log-level"},
		{[]string{"check", "-c", "x", "--source", "u@h/d"}, "exclude each other"},
		{[]string{"init"}, "init needs --source"},
		{[]string{"checkpoint", "shw"}, `unknown command "shw"`},
	} {
		code, stdout, stderr := command(t, nil, test.args...)
		require.Equal(t, exitConfig, code, test.args)
		require.Contains(t, stderr, test.want, test.args)
		require.Empty(t, stdout, test.args)
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	root := newApp(nil, nil, nil, environment()).rootCommand()
	commands := append(root.Commands(), root)
	for i := 0; i < len(commands); i++ {
		commands = append(commands, commands[i].Commands()...)
		require.NotEmpty(t, commands[i].Example, commands[i].CommandPath())
		require.Contains(t, commands[i].Example, "binlogd")
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	code, stdout, _ := command(t, nil, "version", "-o", "json")
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, `"go_mysql": "v1.`)
}

func TestHelpListsExitCodes(t *testing.T) {
	t.Parallel()
	code, stdout, _ := command(t, nil, "--help")
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, "6  another instance holds the checkpoint")
}
