package canal

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
)

// DefaultTimeout bounds one attempt to connect, from the dial to the end of the
// authentication.
const DefaultTimeout = 10 * time.Second

// ConnectOptions say how to reach the server and as whom.
type ConnectOptions struct {
	// Address is host:port (the port defaults to 3306) or the path of a unix socket.
	Address string `yaml:"address"`
	// Addresses are those of further servers with the same transactions, such as replicas: the
	// source goes on with one of them where Address is away. Servers chooses.
	Addresses []string   `yaml:"addresses"`
	User      string     `yaml:"user"`
	Password  string     `yaml:"password" json:"-"`
	TLS       TLSOptions `yaml:"tls"`
	// Timeout bounds one attempt to connect; zero means DefaultTimeout.
	Timeout time.Duration `yaml:"timeout"`
}

// String leaves the password out, so that no log or message holds it.
func (o ConnectOptions) String() string { return o.User + "@" + strings.Join(o.all(), ",") }

// GoString is String: %#v must not show the password either.
func (o ConnectOptions) GoString() string { return o.String() }

// LogValue is String.
func (o ConnectOptions) LogValue() slog.Value { return slog.StringValue(o.String()) }

// TLSMode is how much a connection asks of TLS; the names are those of MySQL's own
// clients.
type TLSMode string

// The modes, from the least to the most.
const (
	TLSDisabled       TLSMode = "disabled"
	TLSPreferred      TLSMode = "preferred"       // encrypted if the server offers it; the default
	TLSRequired       TLSMode = "required"        // encrypted, whoever answers
	TLSVerifyCA       TLSMode = "verify-ca"       // and signed by CA
	TLSVerifyIdentity TLSMode = "verify-identity" // and made out to the host of Address
)

// TLSOptions configure the encryption of a connection. CA, Cert and Key are paths
// of PEM files.
type TLSOptions struct {
	Mode TLSMode `yaml:"mode"`
	CA   string  `yaml:"ca"`   // the authorities to trust; the system's when empty
	Cert string  `yaml:"cert"` // the client's certificate, where the account asks for one
	Key  string  `yaml:"key"`  // and its private key
}

// Validate reports the first setting that cannot work, by its YAML key.
func (o ConnectOptions) Validate() error {
	switch {
	case len(o.all()) == 0:
		return errors.New("source.address is missing: write host:port, such as 127.0.0.1:3306, or the path of a unix socket")
	case o.User == "":
		return errors.New("source.user is missing: write the account that replicates; `binlogd init` prints the statements that create it")
	case o.Timeout < 0:
		return fmt.Errorf("source.timeout is %s: write a time above 0, such as 10s", o.Timeout)
	}
	if o.Address != "" {
		if _, err := dialAddress(o.Address); err != nil {
			return fmt.Errorf("source.address: %w", err)
		}
	}
	for i, address := range o.Addresses {
		if _, err := dialAddress(address); err != nil {
			return fmt.Errorf("source.addresses[%d]: %w", i, err)
		}
	}
	return o.TLS.validate()
}

// all are the addresses in the order in which they were written, each once.
func (o ConnectOptions) all() []string {
	var all []string
	for _, address := range append([]string{o.Address}, o.Addresses...) {
		if address != "" && !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return all
}

// At is the way to one of the addresses, and to no other.
func (o ConnectOptions) At(address string) ConnectOptions {
	o.Address, o.Addresses = address, nil
	return o
}

func (o TLSOptions) validate() error {
	switch o.Mode {
	case "", TLSDisabled, TLSPreferred, TLSRequired:
		if o.CA != "" {
			return fmt.Errorf("source.tls.ca is not looked at in mode %q: write mode: verify-ca or verify-identity, or leave ca out", o.mode())
		}
	case TLSVerifyCA, TLSVerifyIdentity:
	default:
		return fmt.Errorf("source.tls.mode is %q: write disabled, preferred, required, verify-ca or verify-identity", o.Mode)
	}
	if (o.Cert == "") != (o.Key == "") {
		return errors.New("source.tls.cert and source.tls.key belong together: write both or none")
	}
	return nil
}

func (o TLSOptions) mode() TLSMode {
	if o.Mode == "" {
		return TLSPreferred
	}
	return o.Mode
}

// dialAddress completes an address with the default port.
func dialAddress(address string) (string, error) {
	if strings.Contains(address, "/") {
		return address, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		var bad *net.AddrError
		if !errors.As(err, &bad) || bad.Err != "missing port in address" {
			return "", fmt.Errorf("%q is not host:port (an IPv6 address stands in brackets, as in [::1]:3306)", address)
		}
		host, port = strings.Trim(address, "[]"), "3306"
	}
	if host == "" {
		return "", fmt.Errorf("%q names no host: write host:port, such as 127.0.0.1:3306", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("%q has no port between 1 and 65535", address)
	}
	return net.JoinHostPort(host, port), nil
}

// TLSConfig is what the mode asks for, or nil in mode disabled and for a unix socket in
// mode preferred (its bytes do not leave the machine). In mode preferred the caller has
// to go on without TLS where the server offers none; Connect does.
func (o ConnectOptions) TLSConfig() (*tls.Config, error) {
	mode := o.TLS.mode()
	if mode == TLSDisabled || mode == TLSPreferred && strings.Contains(o.Address, "/") {
		return nil, nil
	}
	// Modes preferred and required promise encryption, not whose key it is.
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	if o.TLS.Cert != "" {
		pair, err := tls.LoadX509KeyPair(o.TLS.Cert, o.TLS.Key)
		if err != nil {
			return nil, &ConfigError{Err: fmt.Errorf("read the client certificate %s: %w", o.TLS.Cert, err), Remedy: "point source.tls.cert and source.tls.key at a PEM certificate and its key"}
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if mode != TLSVerifyCA && mode != TLSVerifyIdentity {
		return config, nil
	}

	if o.TLS.CA != "" {
		pem, err := os.ReadFile(o.TLS.CA)
		if err != nil {
			return nil, &ConfigError{Err: fmt.Errorf("read the certificate authority: %w", err), Remedy: "point source.tls.ca at a PEM file"}
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &ConfigError{Err: fmt.Errorf("read the certificate authority %s: it holds no PEM certificate", o.TLS.CA), Remedy: "point source.tls.ca at a PEM file"}
		}
	}
	if mode == TLSVerifyIdentity {
		address, err := dialAddress(o.Address)
		if err != nil {
			return nil, &ConfigError{Err: err, Remedy: "mend source.address"}
		}
		config.InsecureSkipVerify = false
		config.ServerName, _, _ = net.SplitHostPort(address)
		return config, nil
	}
	// crypto/tls knows "everything" and "nothing"; the chain without the name is
	// checked by hand.
	roots := config.RootCAs
	config.VerifyConnection = func(state tls.ConnectionState) error {
		intermediates := x509.NewCertPool()
		for _, cert := range state.PeerCertificates[1:] {
			intermediates.AddCert(cert)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates})
		return err
	}
	return config, nil
}

// Connect opens one connection and authenticates. ctx and Timeout bound the attempt; the
// connection itself has no limits of time afterwards.
//
// What the operator has to mend is a *ConfigError (wrong password, unknown host, TLS that
// the server does not offer); a server that refuses or does not answer is an ordinary
// error, worth another attempt.
func (o ConnectOptions) Connect(ctx context.Context) (*client.Conn, error) {
	address, err := dialAddress(o.Address)
	if err != nil {
		return nil, &ConfigError{Err: fmt.Errorf("connect to the source: %w", err), Remedy: "mend source.address"}
	}
	config, err := o.TLSConfig()
	if err != nil {
		return nil, err
	}
	conn, err := o.dial(ctx, address, config)
	if config != nil && o.TLS.mode() == TLSPreferred && noTLS(err) {
		conn, err = o.dial(ctx, address, nil)
	}
	if err != nil {
		return nil, o.explain(err)
	}
	return conn, nil
}

func (o ConnectOptions) timeout() time.Duration {
	if o.Timeout == 0 {
		return DefaultTimeout
	}
	return o.Timeout
}

// dial makes one attempt. go-mysql looks at no context and no deadline once the socket
// is open, so both are put on the socket.
func (o ConnectOptions) dial(ctx context.Context, address string, config *tls.Config) (*client.Conn, error) {
	timeout := o.timeout()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	var unblock func() bool
	dialer := func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		socket, err := d.DialContext(ctx, network, address)
		if err == nil {
			unblock = context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
		}
		return socket, err
	}
	conn, err := client.ConnectWithDialer(ctx, "", address, o.User, o.Password, "", dialer, func(c *client.Conn) error {
		c.SetTLSConfig(config)
		c.SetAttributes(map[string]string{"program_name": "binlogd"})
		return nil
	})
	if unblock != nil && !unblock() {
		// The deadline struck; what the connection says now is its consequence.
		if err == nil {
			_ = conn.Close()
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fmt.Errorf("no answer within %s", timeout)
		}
		return nil, ctx.Err()
	}
	return conn, err
}

// encrypted reports whether conn goes through TLS.
func encrypted(conn *client.Conn) bool {
	_, ok := conn.Conn.Conn.(*tls.Conn)
	return ok
}

// noTLS recognises go-mysql's refusal to go on with a server that offers no TLS. It has
// no type and no value of its own.
func noTLS(err error) bool {
	return err != nil && strings.Contains(err.Error(), "does not support TLS")
}
