package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/mapping"
)

// environment makes a lookup function of pairs "NAME=value".
func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, pair := range pairs {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
}

// minimal is a configuration without anything that may be left out; extra goes to its end.
func minimal(extra string) []byte {
	return []byte("name: shop\nsource: {address: db, user: binlogd}\npublish: {stdout: {}}\nevents: [{table: shop.*}]\n" + extra)
}

func TestShippedConfigurationsAreValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*.yaml")
	require.NoError(t, err)
	more, err := filepath.Glob("../../examples/*/*.yaml")
	require.NoError(t, err)
	files = append(files, more...)
	require.NotEmpty(t, files)
	for _, file := range files {
		_, err := loadConfig(file, environment("MYSQL_PASSWORD=secret"))
		require.NoError(t, err, file)
	}
}

func TestAnExampleWithEverythingUncommentedIsValid(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../examples/binlogd.yaml")
	require.NoError(t, err)
	// The keys that show a default, except those that exclude each other.
	text := string(document)
	for _, key := range []string{"server_id", "heartbeat", "timeout", "interval", "workers"} {
		require.Contains(t, text, "# "+key+":")
		text = strings.Replace(text, "# "+key+":", key+":", 1)
	}
	cfg, err := parseConfig("x.yaml", []byte(text), environment("MYSQL_PASSWORD=secret"))
	require.NoError(t, err)
	require.Equal(t, uint32(4711), cfg.Source.ServerID)
	require.Equal(t, 2, cfg.Limits.Workers)
}

func TestConfigurationIsReadIntoEveryPart(t *testing.T) {
	t.Parallel()
	cfg, err := parseConfig("x.yaml", []byte(`
name: shop
source:
  address: ${HOST:-127.0.0.1}:3306
  user: binlogd
  password: ${PASSWORD}
  tls: {mode: verify-ca, ca: ca.pem}
  start: file:binlog.000007:4
  server_id: ${ID}
  heartbeat: 1s
  timeout: 3s
checkpoint: {store: file, path: a.checkpoint, interval: 2s}
publish:
  kafka: {brokers: [kafka-1.example.com:9092, '10.0.0.1:9092'], create_topics: false}
admin: {listen: 127.0.0.1:9808}
limits: {in_flight: 32MiB, workers: 3}
events:
  - table: shop.orders
    topic: orders
    key: [id, "line no"]
  - {table: shop.*}
exclude: [shop.tmp]
`), environment("PASSWORD=0123: #${x}", "ID=7"))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:3306", cfg.Source.Address)
	require.Equal(t, "0123: #${x}", cfg.Source.Password, "what a variable holds is taken as it is")
	require.Equal(t, canal.TLSOptions{Mode: canal.TLSVerifyCA, CA: "ca.pem"}, cfg.Source.TLS)
	require.Equal(t, "file:binlog.000007:4", cfg.Source.Start)
	require.Equal(t, uint32(7), cfg.Source.ServerID)
	require.Equal(t, time.Second, cfg.Source.Heartbeat)
	require.Equal(t, 3*time.Second, cfg.Source.Timeout)
	require.Equal(t, checkpointConfig{Options: checkpoint.Options{Store: "file", Path: "a.checkpoint"}, Interval: 2 * time.Second}, cfg.Checkpoint)
	require.Equal(t, []string{"kafka-1.example.com:9092", "10.0.0.1:9092"}, cfg.Publish.Kafka.Brokers)
	require.False(t, *cfg.Publish.Kafka.CreateTopics)
	require.Equal(t, "127.0.0.1:9808", cfg.Admin.Listen)
	require.Equal(t, limitsConfig{InFlight: 32 << 20, Workers: 3}, cfg.Limits)
	require.Equal(t, []mapping.TableRule{{Table: "shop.orders", Topic: "orders", Key: []string{"id", "line no"}}, {Table: "shop.*"}}, cfg.Events)
	require.Equal(t, []string{"shop.tmp"}, cfg.Exclude)
}

// TestCheckpointOnAServer: what is left out is taken from the source and from the sink.
func TestCheckpointOnAServer(t *testing.T) {
	t.Parallel()
	parse := func(t *testing.T, text string) checkpointConfig {
		t.Helper()
		cfg, err := parseConfig("x.yaml", []byte(text), environment())
		require.NoError(t, err)
		require.NotContains(t, cfg.String(), "secret")
		require.Contains(t, cfg.mapping().Exclude, checkpoint.OwnTables)
		return cfg.Checkpoint
	}
	const head = "name: shop\nsource: {address: 'db:3306', user: u, password: secret, tls: {mode: required}}\nevents: [{table: shop.*}]\n"

	c := parse(t, head+"publish: {stdout: {}}\ncheckpoint: {store: mysql, lease: 3s}\n")
	require.Equal(t, "u@db:3306", c.MySQL.String())
	require.Equal(t, "secret", c.MySQL.Password)
	require.Equal(t, canal.TLSRequired, c.MySQL.TLS.Mode)
	require.Equal(t, 3*time.Second, c.Lease)
	require.Empty(t, c.Path)
	c = parse(t, head+"publish: {stdout: {}}\ncheckpoint: {store: mysql, mysql: {user: keeper, password: other, database: places}}\n")
	require.Equal(t, "keeper@db:3306", c.MySQL.String())
	require.Equal(t, "other", c.MySQL.Password)
	c = parse(t, head+"publish: {stdout: {}}\ncheckpoint: {store: mysql, mysql: {address: 'db2:3306', user: keeper}}\n")
	require.Empty(t, c.MySQL.Password, "an account of the source is none of another server")
	require.Equal(t, canal.TLSPreferred, c.MySQL.TLS.Mode)
	c = parse(t, head+"publish: {redis: {address: 'cache:6379', password: secret, db: 3}}\ncheckpoint: {store: redis}\n")
	require.Equal(t, &checkpoint.RedisOptions{Address: "cache:6379", Password: "secret", DB: 3}, c.Redis)
	c = parse(t, head+"publish: {kafka: {brokers: ['k:9092'], sasl: {user: u, password: secret}}}\ncheckpoint: {store: kafka}\n")
	require.Equal(t, []string{"k:9092"}, c.Kafka.Brokers)
	require.Equal(t, "secret", c.Kafka.SASL.Password)
	c = parse(t, head+"publish: {kafka: {brokers: ['k:9092']}}\ncheckpoint: {store: kafka, kafka: {brokers: ['other:9092'], topic: places}}\n")
	require.Equal(t, []string{"other:9092"}, c.Kafka.Brokers)
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	cfg, err := parseConfig("x.yaml", minimal(""), environment())
	require.NoError(t, err)
	require.Equal(t, canal.TLSPreferred, cfg.Source.TLS.Mode)
	require.Equal(t, "latest", cfg.Source.Start)
	require.Equal(t, "shop.checkpoint", cfg.Checkpoint.Path)
	require.Equal(t, 500*time.Millisecond, cfg.Checkpoint.Interval)
	require.Equal(t, size(16<<20), cfg.Limits.InFlight)
}

func TestASinkWithoutKeysIsChosenByItsName(t *testing.T) {
	t.Parallel()
	cfg, err := parseConfig("x.yaml", []byte("name: shop\nsource: {address: db, user: u}\npublish:\n  stdout:\nevents: [{table: shop.*}]\n"), environment())
	require.NoError(t, err)
	require.NotNil(t, cfg.Publish.Stdout)
}

func TestMistakesNameTheLineAndTheRemedy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		document string
		want     []string // each on a line of its own
	}{
		"unknown key": {string(minimal("admin:\n  lisen: x\n")), []string{"x.yaml:6: admin.lisen: unknown key; did you mean listen?"}},
		"unknown key without a near one": {
			string(minimal("admin:\n  telemetry: x\n")), []string{"x.yaml:6: admin.telemetry: unknown key; known here: listen"},
		},
		"unknown key at the top":        {string(minimal("sauce: 1\n")), []string{"x.yaml:5: sauce: unknown key; did you mean source?"}},
		"unknown key in a list":         {"events:\n- table: a.b\n  topik: x\n", []string{"x.yaml:3: events[0].topik: unknown key; did you mean topic?"}},
		"unknown key of a sink":         {"publish:\n  kafka:\n    broker: [a]\n", []string{"x.yaml:3: publish.kafka.broker: unknown key; did you mean brokers?"}},
		"a rule without a type":         {"name: x\nsource: {address: db, user: binlogd}\npublish: {stdout: {}}\nevents:\n- table: a.b\n  emit:\n  - {on: insert}\n", []string{"x.yaml:7: events[0].emit[0].type: missing: write what the event is called, such as order.paid"}},
		"a later sink":                  {"publish:\n  nats: {url: x}\n", []string{"x.yaml:2: publish.nats: NATS comes with a later release: write kafka, redis, file or stdout"}},
		"an unknown store":              {string(minimal("checkpoint: {store: x}\n")), []string{"x.yaml:5: checkpoint.store: write file, mysql, redis or kafka"}},
		"a store without its section":   {string(minimal("checkpoint: {store: redis}\n")), []string{"x.yaml:5: checkpoint.redis: is missing; write {address: 127.0.0.1:6379}"}},
		"another store's section":       {string(minimal("checkpoint:\n  store: redis\n  kafka: {brokers: [k:9092]}\n")), []string{"x.yaml:7: checkpoint.kafka: stands beside checkpoint.store: redis"}},
		"a path beside a server":        {string(minimal("checkpoint:\n  store: mysql\n  path: a\n")), []string{"x.yaml:7: checkpoint.path: is of the store file, and checkpoint.store is mysql"}},
		"a store's unknown key":         {string(minimal("checkpoint:\n  store: kafka\n  kafka: {broker: [k:9092]}\n")), []string{"x.yaml:7: checkpoint.kafka.broker: unknown key; did you mean brokers?"}},
		"a store without an account":    {string(minimal("checkpoint:\n  store: mysql\n  mysql: {address: 'db2:3306'}\n")), []string{"x.yaml:7: checkpoint.mysql.user is missing"}},
		"a store without a port":        {string(minimal("checkpoint:\n  store: redis\n  redis: {address: cache}\n")), []string{"x.yaml:7: checkpoint.redis.address: \"cache\" is not an address"}},
		"a lease that is too short":     {string(minimal("checkpoint:\n  store: mysql\n  lease: 10ms\n")), []string{"x.yaml:7: checkpoint.lease: 10ms is too short; write at least 500ms, for example 10s"}},
		"undefined variable":            {"source:\n  password: ${NO_SUCH}\n", []string{"x.yaml:2: source.password: the environment variable NO_SUCH is not set: set it, or write ${NO_SUCH:-default}"}},
		"open variable":                 {"name: ${A\n", []string{"x.yaml:1: name: ${ without its }: write ${NAME}, or $$ for a dollar sign"}},
		"no number":                     {"source:\n  server_id: many\n", []string{"x.yaml:2: source.server_id: write a whole number from 0 to 4294967295 here"}},
		"no duration":                   {"source:\n  heartbeat: 5\n", []string{"x.yaml:2: source.heartbeat: write a duration such as 500ms or 10s here"}},
		"no size":                       {"limits: {in_flight: much}\n", []string{"x.yaml:1: limits.in_flight: write a size such as 512KiB, 16MiB or 1GiB"}},
		"no boolean":                    {"publish: {kafka: {create_topics: yes}}\n", []string{"x.yaml:1: publish.kafka.create_topics: write true or false here"}},
		"a scalar for keys":             {"source: x\n", []string{"x.yaml:1: source: write keys and values here: address, addresses, user, password, tls, timeout, start, server_id, heartbeat"}},
		"keys for a scalar":             {"name: {a: b}\n", []string{"x.yaml:1: name: write one text here, not keys or a list"}},
		"a scalar for a list":           {"events: x\n", []string{"x.yaml:1: events: write a list here: [a, b], or one line each that begins with a dash"}},
		"a key twice":                   {"name: a\nname: b\n", []string{`x.yaml:2: mapping key "name" already defined at [1:1]`}},
		"merge keys":                    {"source: &s {address: a}\nadmin:\n  <<: *s\n", []string{"x.yaml:3: admin: merge keys (<<) are not known here: write the keys out"}},
		"a tag":                         {"name: !!str shop\n", []string{"x.yaml:1: name: YAML tags are not known here: leave !!str out"}},
		"two documents":                 {"name: a\n---\nname: b\n", []string{"x.yaml:3: a second document begins here: write one configuration a file"}},
		"an empty file":                 {"# nothing\n", []string{"x.yaml: the file is empty: `binlogd init` writes one to begin with"}},
		"unquoted variable in brackets": {"source: {password: ${A}}\n", []string{"(inside { } or [ ], values with ${…} need quotes)"}},
		"several at once": {
			"name: shop\nsource:\n  address: db:x\n  user: u\n  start: yesterday\npublish:\n  kafka: {brokers: [a:1]}\n  stdout: {}\nevents:\n- table: shop.a\n- table: shop\n",
			[]string{
				`x.yaml:3: source.address: "db:x" has no port between 1 and 65535`,
				`x.yaml:5: source.start: "yesterday" is unknown: write latest, earliest, gtid:SET, file:NAME:POS or time:RFC3339`,
				"x.yaml:6: publish: kafka and stdout are configured together; keep exactly one",
				"x.yaml:11: events[1].table: ",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseConfig("x.yaml", []byte(test.document), environment())
			require.Error(t, err)
			lines := strings.Split(err.Error(), "\n")
			require.Len(t, lines, len(test.want), err.Error())
			for i, want := range test.want {
				require.Contains(t, lines[i], want)
			}
		})
	}
}

func TestAnchorsAndAliases(t *testing.T) {
	t.Parallel()
	cfg, err := parseConfig("x.yaml", []byte("name: &n shop\nsource: {address: db, user: *n}\npublish: {stdout: {}}\nevents: [{table: shop.*}]\n"), environment())
	require.NoError(t, err)
	require.Equal(t, "shop", cfg.Source.User)
	_, err = parseConfig("x.yaml", []byte("name: *nobody\n"), environment())
	require.ErrorContains(t, err, "x.yaml:1")
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	cfg, err := parseConfig("x.yaml", []byte(`
name: shop
source: {address: db, user: u, password: `+secret+`}
publish:
  redis: {address: "r:1", password: `+secret+`}
events: [{table: shop.*}]
`), environment())
	require.NoError(t, err)
	var log strings.Builder
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("x", "config", cfg, "value", *cfg, "source", cfg.Source, "connect", cfg.Source.ConnectOptions)
	}
	for _, format := range []string{"%v", "%+v", "%s"} {
		fmt.Fprintf(&log, format, cfg)
		fmt.Fprintf(&log, format, *cfg)
		fmt.Fprintf(&log, format, cfg.Source)
	}
	fmt.Fprintf(&log, "%#v", cfg.Source.ConnectOptions)
	require.NotContains(t, log.String(), secret)

	for _, document := range []string{
		"source: {password: [" + secret + "]}\n",
		"source:\n  password: {" + secret + ": x}\n",
		"source:\n  server_id: " + secret + "\n",
		"source:\n  heartbeat: " + secret + "\n",
		"source:\n  password: " + secret + "\n bad indent: x\n",
		"source:\n  password: \"" + secret + "\n",
		"limits: {in_flight: " + secret + "}\n",
		"checkpoint: {store: " + secret + "}\n",
	} {
		_, err := parseConfig("x.yaml", []byte(document), environment())
		require.Error(t, err, document)
		require.NotContains(t, err.Error(), secret, document)
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	variables := environment("A=one", "EMPTY=", "DOLLAR=$A")
	tests := map[string]string{
		"":                   "",
		"plain":              "plain",
		"${A}":               "one",
		"x${A}y${A}":         "xoney" + "one",
		"${EMPTY}":           "",
		"${EMPTY:-two}":      "two",
		"${NONE:-two}":       "two",
		"${NONE:-}":          "",
		"${A:-two}":          "one",
		"$$":                 "$",
		"$${A}":              "${A}",
		"$A":                 "$A",
		"100$":               "100$",
		"a$$$b":              "a$$b",
		"${DOLLAR}":          "$A",
		"${NONE:-a:-b}":      "a:-b",
		"${NONE:-$$}":        "$$",
		"mysql://${A}:${A}@": "mysql://one:one@",
	}
	for text, want := range tests {
		got, err := expand(text, variables)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"${", "${}", "${A", "${1}", "${A B}", "${A-x}", "${NONE}", "$${A} ${NONE}"} {
		_, err := expand(text, variables)
		require.Error(t, err, text)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]size{"0": 0, "512": 512, "1B": 1, "64KiB": 64 << 10, "16MiB": 16 << 20, "16 MiB": 16 << 20, "1GiB": 1 << 30, "2kB": 2000, "3MB": 3e6, "1GB": 1e9} {
		var got size
		require.NoError(t, got.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, got, text)
		var again size
		require.NoError(t, again.UnmarshalText([]byte(got.String())), got.String())
		require.Equal(t, want, again)
	}
	for _, text := range []string{"", "MiB", "-1", "1.5MiB", "16mib", "9999999999GiB", "1TiB"} {
		var got size
		require.Error(t, got.UnmarshalText([]byte(text)), text)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"address", "user", "password", "tls", "start", "server_id", "heartbeat"}
	for word, want := range map[string]string{"adddress": "address", "Password": "password", "serverid": "server_id", "stat": "start", "topology": "", "x": ""} {
		require.Equal(t, want, nearest(word, known), word)
	}
}

// FuzzParseConfig: whatever stands in the file, it is a configuration or an error that
// begins with the file's name.
func FuzzParseConfig(f *testing.F) {
	f.Add([]byte("name: x\nevents:\n- table: a.b\n  emit:\n  - {type: t, on: [insert, delete], when: 'new.x in [1, \"2\"]', key: [a], headers: {h: new.a}, data: {a: {b: [new.c, null, 1.5]}}, on_error: skip}\n"))
	f.Add([]byte("mask_key: 0123456789abcdef\nevents:\n- table: a.*\n  topic: 'x.{new.y}'\n  topics: [x.a]\n  columns: {include: [a], rename: {a: b}}\n  mask: {a: hash, b: {last: 4}, c: null, d: redact}\n  emit: [{type: t, key: new.a, subject: old.b}]\n"))
	f.Add(minimal(""))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("{name: [a:1]}"))
	f.Add([]byte("name: |\n  x\n  ${A:-b}\n"))
	f.Add([]byte("? a\n: b\n"))
	if example, err := os.ReadFile("../../examples/binlogd.yaml"); err == nil {
		f.Add(example)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		cfg, err := parseConfig("x.yaml", document, environment("A=b"))
		if err == nil {
			require.NoError(t, cfg.validate())
			return
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			require.NotEmpty(t, line)
		}
		require.True(t, strings.HasPrefix(err.Error(), "x.yaml"), err.Error())
	})
}

// TestHostileRules: what could cost without bound is refused, quickly and with the line.
func TestHostileRules(t *testing.T) {
	t.Parallel()
	const head = "name: x\nsource: {address: db, user: binlogd}\npublish: {stdout: {}}\nevents:\n- table: a.b\n  emit:\n  - type: t\n"
	nested := strings.Repeat("{a: ", 500) + "1" + strings.Repeat("}", 500)
	bomb := "    data:\n      a0: &a0 [new.x, new.x, new.x, new.x, new.x, new.x, new.x, new.x, new.x, new.x]\n"
	for i := 1; i < 9; i++ {
		alias := fmt.Sprintf("*a%d, ", i-1)
		bomb += fmt.Sprintf("      a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(alias, 10), ", "))
	}
	many := make([]string, 2000)
	for i := range many {
		many[i] = fmt.Sprintf("t%d", i)
	}
	for name, c := range map[string]struct{ rule, want string }{
		"parentheses":        {"    when: '" + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000) + " == 1'\n", "at most 8192 are allowed"},
		"negations":          {"    when: '" + strings.Repeat("!", 300) + "(1 == 1)'\n", "parts inside parts more than 100 deep"},
		"a long chain":       {"    when: '1 == 1" + strings.Repeat(" || 1 == 1", 700) + "'\n", "more than 1000 parts"},
		"a loop":             {"    when: 'all(1..1000000000, # > 0)'\n", "there are no loops in rules"},
		"a loop of loops":    {"    when: 'map(1..9, map(1..9, #)) == 1'\n", "there are no loops in rules"},
		"a regular bomb":     {"    when: 'new.x matches \"((a{1,30}){1,30}){1,30}\"'\n", "the regular expression"},
		"a long regular":     {"    when: 'new.x matches \"" + strings.Repeat("a?", 400) + "\"'\n", "at most 500 are allowed"},
		"nested objects":     {"    data: {x: " + nested + "}\n", "deep"},
		"aliases of aliases": {bomb, "more than"},
		"topics of values":   {"    topic: 'x.{new.name}'\n", "which could name any topic"},
		"a list of topics":   {"    topic: 'x.{new.name}'\n    topics: [" + strings.Join(many, ", ") + "]\n", "at most 1000 are allowed"},
	} {
		_, err := parseConfig("x.yaml", []byte(head+c.rule), func(string) (string, bool) { return "", false })
		require.ErrorContains(t, err, c.want, name)
		require.ErrorContains(t, err, "x.yaml:", name)
		require.Less(t, len(err.Error()), 4000, name)
	}
}

func TestConfigAggregate(t *testing.T) {
	cfg, err := parseConfig("binlogd.yaml", []byte(`
name: shop
source: {address: "127.0.0.1:3306", user: binlogd, password: x}
publish: {stdout: {}}
events:
  - {aggregate: order, root: shop.orders, on: insert, type: order.placed, topic: shop.order, max_size: 1MiB, include: {items: {table: shop.order_items, on: {order_id: id}}, payment: {table: shop.payments, on: {order_id: id}, one: true}}}
`), environment())
	require.NoError(t, err)
	require.Equal(t, []mapping.TableRule{{Topic: "shop.order", AggregateRule: mapping.AggregateRule{
		Aggregate: "order", Root: "shop.orders", On: mapping.Operations{"insert"}, Type: "order.placed", MaxSize: 1 << 20,
		Include: mapping.Includes{
			{Name: "items", Table: "shop.order_items", On: mapping.Joins{{Column: "order_id", Root: "id"}}},
			{Name: "payment", Table: "shop.payments", On: mapping.Joins{{Column: "order_id", Root: "id"}}, One: true},
		},
	}}}, cfg.Events)

	_, err = parseConfig("binlogd.yaml", []byte(`
name: shop
source: {address: "127.0.0.1:3306", user: binlogd, password: x}
publish: {stdout: {}}
events:
  - aggregate: order
    root: shop.orders
    on: insert
    type: order.placed
    include:
      items:
        table: shop.order_items
        onn: {order_id: id}
`), environment())
	require.ErrorContains(t, err, "binlogd.yaml:13: events[0].include.items.onn: unknown key; did you mean on?")
}

// TestConfigOutbox: an outbox and the forms of events are read from the file; what the sink cannot carry is refused by its key.
func TestConfigOutbox(t *testing.T) {
	t.Parallel()
	const head = "name: shop\nsource: {address: \"127.0.0.1:3306\", user: binlogd, password: x}\n"
	const events = `events:
  - outbox: shop.message_box
    id: uid
    topic: topic
    key: msg_key
    payload: payload
    headers: {trace: trace_id}
    allow_topics: [order.*, stock.deducted]
    envelope: binary
  - {table: shop.orders, envelope: row, key_format: json, key: [id], tombstones: true}
  - {outbox: shop.other_box, topic: topic, payload: payload, headers: headers, allow_topics: ["*"], on_error: skip}
`
	cfg, err := parseConfig("binlogd.yaml", []byte(head+"publish: {kafka: {brokers: [\"k:9092\"]}}\n"+events), environment())
	require.NoError(t, err)
	require.Equal(t, []mapping.TableRule{
		{
			Topic: "topic", Key: []string{"msg_key"}, Envelope: "binary",
			OutboxRule: mapping.OutboxRule{
				Outbox: "shop.message_box", ID: "uid", Payload: "payload", AllowTopics: []string{"order.*", "stock.deducted"},
				Headers: mapping.OutboxHeaders{Columns: []mapping.HeaderColumn{{Name: "trace", Column: "trace_id"}}},
			},
		},
		{Table: "shop.orders", Envelope: "row", KeyFormat: "json", Key: []string{"id"}, Tombstones: true},
		{
			Topic: "topic", AggregateRule: mapping.AggregateRule{OnError: "skip"},
			OutboxRule: mapping.OutboxRule{Outbox: "shop.other_box", Payload: "payload", AllowTopics: []string{"*"}, Headers: mapping.OutboxHeaders{Column: "headers"}},
		},
	}, cfg.Events)

	_, err = parseConfig("binlogd.yaml", []byte(head+"publish: {file: {path: e}}\n"+events), environment())
	require.ErrorContains(t, err, "binlogd.yaml:12: events[0].envelope: binary needs Kafka's headers, which file does not have")
	require.ErrorContains(t, err, "binlogd.yaml:13: events[1].tombstones: records without a value go with Kafka's compacted topics")
	_, err = parseConfig("binlogd.yaml", []byte(head+"publish: {stdout: {}}\nevents:\n  - outbox: shop.message_box\n    topic: topic\n    payload: payload\n"), environment())
	require.ErrorContains(t, err, "binlogd.yaml:5: events[0].allow_topics: missing: a row could name any topic")
}
