package canal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

func TestConnectOptionsValidate(t *testing.T) {
	t.Parallel()
	ok := ConnectOptions{Address: "db", User: "u"}
	require.NoError(t, ok.Validate())
	for _, address := range []string{"db", "db:3306", "127.0.0.1:1", "[::1]:3306", "[::1]", "/run/mysqld/mysqld.sock"} {
		o := ok
		o.Address = address
		require.NoError(t, o.Validate(), address)
	}
	for want, change := range map[string]func(*ConnectOptions){
		"source.address is missing":       func(o *ConnectOptions) { o.Address = "" },
		`source.address: "db:port"`:       func(o *ConnectOptions) { o.Address = "db:port" },
		`source.address: "db:65536"`:      func(o *ConnectOptions) { o.Address = "db:65536" },
		`source.address: ":3306"`:         func(o *ConnectOptions) { o.Address = ":3306" },
		`source.address: "::1"`:           func(o *ConnectOptions) { o.Address = "::1" },
		"source.user is missing":          func(o *ConnectOptions) { o.User = "" },
		"source.timeout":                  func(o *ConnectOptions) { o.Timeout = -1 },
		`source.tls.mode is "on"`:         func(o *ConnectOptions) { o.TLS.Mode = "on" },
		"source.tls.ca is not looked at":  func(o *ConnectOptions) { o.TLS.CA = "ca.pem" },
		"source.tls.cert and source.tls.": func(o *ConnectOptions) { o.TLS.Cert = "x" },
	} {
		o := ok
		change(&o)
		require.ErrorContains(t, o.Validate(), want)
	}
}

func TestThePasswordIsNotShown(t *testing.T) {
	t.Parallel()
	o := ConnectOptions{Address: "db:1", User: "u", Password: "hunter2"}
	marshalled, err := json.Marshal(o)
	require.NoError(t, err)
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", o, o, o, o), o.LogValue().String(), string(marshalled)} {
		require.NotContains(t, text, "hunter2")
	}
}

// optionsFor connects as a user that may do nothing.
func optionsFor(t *testing.T, server *testenv.Server) ConnectOptions {
	t.Helper()
	user, password := server.User(t)
	return ConnectOptions{Address: server.Addr, User: user, Password: password}
}

// requireConfigError asserts that connecting fails for good, with a remedy.
func requireConfigError(t *testing.T, o ConnectOptions, remedy string) {
	t.Helper()
	_, err := o.Connect(t.Context())
	var config *ConfigError
	require.ErrorAs(t, err, &config)
	require.Contains(t, config.Remedy, remedy, err.Error())
}

func TestTLSModes(t *testing.T) {
	t.Parallel()
	server := testenv.MySQL(t)
	o := optionsFor(t, server)
	ca := filepath.Join(server.DataDir(), "ca.pem") // the server made it at its first start
	for _, test := range []struct {
		tls       TLSOptions
		encrypted bool
	}{
		{TLSOptions{}, true},
		{TLSOptions{Mode: TLSPreferred}, true},
		{TLSOptions{Mode: TLSDisabled}, false},
		{TLSOptions{Mode: TLSRequired}, true},
		{TLSOptions{Mode: TLSVerifyCA, CA: ca}, true},
	} {
		o.TLS = test.tls
		conn, err := o.Connect(t.Context())
		require.NoError(t, err, test.tls)
		require.Equal(t, test.encrypted, encrypted(conn), test.tls)
		server, err := Identify(t.Context(), conn)
		require.NoError(t, err)
		require.Equal(t, MySQL, server.Flavor)
		require.NotZero(t, server.ServerID)
		require.Len(t, server.UUID, 36)
		require.NoError(t, conn.Close())
	}
	// The server's own certificate names no host, and no authority of the system signed it.
	o.TLS = TLSOptions{Mode: TLSVerifyIdentity, CA: ca}
	requireConfigError(t, o, "verify-ca")
	o.TLS = TLSOptions{Mode: TLSVerifyCA}
	requireConfigError(t, o, "source.tls.ca")
	o.TLS = TLSOptions{Mode: TLSVerifyCA, CA: filepath.Join(t.TempDir(), "none.pem")}
	requireConfigError(t, o, "source.tls.ca")
}

func TestAServerWithoutTLS(t *testing.T) {
	t.Parallel()
	server := testenv.MariaDB(t) // 10.11 has no certificate unless it is given one
	o := optionsFor(t, server)
	conn, err := o.Connect(t.Context())
	require.NoError(t, err)
	require.False(t, encrypted(conn))
	id, err := Identify(t.Context(), conn)
	require.NoError(t, err)
	require.Equal(t, MariaDB, id.Flavor)
	require.NoError(t, conn.Close())

	o.TLS.Mode = TLSRequired
	requireConfigError(t, o, "source.tls.mode: preferred")
}

func TestWhatOnlyAnOperatorCanMend(t *testing.T) {
	t.Parallel()
	for _, server := range []*testenv.Server{testenv.MySQL(t), testenv.MariaDB(t)} {
		o := optionsFor(t, server)
		o.Password = "wrong"
		requireConfigError(t, o, "check source.user and source.password")

		o = optionsFor(t, server)
		server.Exec(t, "ALTER USER '"+o.User+"'@'%' ACCOUNT LOCK")
		requireConfigError(t, o, "ACCOUNT UNLOCK")
	}
	o := optionsFor(t, testenv.MySQL(t))
	o.Address = "no-such-host.invalid"
	requireConfigError(t, o, "source.address")
}

func TestAServerThatIsAwayIsWorthAnotherAttempt(t *testing.T) {
	t.Parallel()
	_, err := ConnectOptions{Address: "127.0.0.1:1", User: "u"}.Connect(t.Context())
	var config *ConfigError
	require.Error(t, err)
	require.False(t, errors.As(err, &config), err.Error())
}

// mute is a server that accepts connections and says nothing.
func mute(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	return listener.Addr().String()
}

func TestAServerThatSaysNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	_, err := ConnectOptions{Address: mute(t), User: "u", Timeout: 50 * time.Millisecond}.Connect(t.Context())
	require.ErrorContains(t, err, "no answer within 50ms")
}

func TestConnectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := ConnectOptions{Address: mute(t), User: "u", Timeout: time.Minute}.Connect(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
